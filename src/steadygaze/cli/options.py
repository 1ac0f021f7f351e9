"""The options of the commands: spelling, value, one line of help each. What they mean is in the modules that use them.

Values are texts: the commands read them, so that every error has the same form whatever the version of typer.
"""

from pathlib import Path
from typing import Annotated

import typer

QUESTION = "What is asked"
METHOD = "How it is answered"
CLASSIFIER = "The classifier"
LIMITS = "Limits"
OUTPUT = "Output"
FIGURE = "What is drawn"

ModelOption = Annotated[
    str, typer.Argument(metavar="MODEL", help="An .onnx file, or the name of a bundled network such as M-FNN-100.")
]
ImageOption = Annotated[
    str,
    typer.Option(
        "--image", metavar="IMAGE", rich_help_panel=QUESTION,
        help="A PNG, JPEG or NPY file, or a bundled image such as mnist:69990 or fashion:69990.",
    ),
]  # fmt: skip
PerturbOption = Annotated[
    list[str],
    typer.Option(
        "--perturb", metavar="SPEC", rich_help_panel=QUESTION,
        help="A perturbation: brightness, brightness:-0.2..0.5, darkness:0..0.3, patch:x=12,y=12,w=4,h=4, "
        "translate:dy=1 or translate:dx=3:0..1.5. Repeat the option for several at once: up to four "
        "(up to three for a map).",
    ),
]  # fmt: skip
PropertyOption = Annotated[
    str,
    typer.Option(
        "--property", metavar="cr|ar|both", rich_help_panel=QUESTION,
        help="What has to hold everywhere: the label is kept (cr), the attention is kept (ar), or both.",
    ),
]  # fmt: skip
DeltaOption = Annotated[
    str,
    typer.Option(
        "--delta", metavar="NUMBER|PERCENT", rich_help_panel=QUESTION,
        help="How far the attention maps may be from the expected ones: absolute (3.0), or a percentage of the size of "
        "the original maps.",
    ),
]  # fmt: skip
FilterOption = Annotated[
    str,
    typer.Option(
        "--filter", metavar="FILTER", rich_help_panel=QUESTION,
        help="What is done to a gradient before maps are compared: identity (nothing), abs (absolute values), mean (of "
        "3×3 pixels), or several in a row, such as abs+mean.",
    ),
]  # fmt: skip
DistOption = Annotated[
    str, typer.Option("--dist", metavar="l1|l2", rich_help_panel=QUESTION, help="The distance between two maps.")
]
ClassesOption = Annotated[
    str,
    typer.Option(
        "--classes", metavar="all|predicted|3,8", rich_help_panel=QUESTION,
        help="The classes whose maps are compared.",
    ),
]  # fmt: skip
RequireOption = Annotated[
    str | None,
    typer.Option(
        "--require", metavar="TEXT", rich_help_panel=QUESTION,
        help="Shares of the domain that are demanded, such as 'CR&AR>=0.9' or 'CR>=99% and IR<0.5'. The exit code then "
        "says whether they are proved, in place of the verdict.",
    ),
]  # fmt: skip
MethodOption = Annotated[
    str | None,
    typer.Option(
        "--method", metavar="auto|map|refine|bfs|gbs|boundary", rich_help_panel=METHOD,
        show_default="auto: map while it is expected to have at most 200,000 regions, else refine",
        help="The whole domain at once: all its regions with shares for every δ (map), or boxes decided by bounds "
        "first, and by their regions where bounds do not suffice (refine: for large networks and for four "
        "perturbations). Or region by region: all of them (bfs), those on a line from zero and near the boundary, as "
        "in the paper (gbs), or those along the boundary alone (boundary). gbs and boundary find violations but visit "
        "part of the domain, so they rarely prove robustness.",
    ),
]  # fmt: skip
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="SHARE|exact", rich_help_panel=METHOD, show_default="0.001",
        help="For refine: the share of the domain that may stay undecided, or exact: as much is decided "
        "as by a map.",
    ),
]  # fmt: skip
GoalOption = Annotated[
    str | None,
    typer.Option(
        "--goal", metavar="map|verdict", rich_help_panel=METHOD, show_default="map",
        help="For refine: shares of the domain (map), or only whether the property holds everywhere (verdict), which "
        "ends at the first violation.",
    ),
]  # fmt: skip
ResumeOption = Annotated[
    Path | None,
    typer.Option(
        "--resume", metavar="DIR", rich_help_panel=METHOD,
        help="For refine: go on from the stored result of the same question; --until, --goal and the limits may "
        "differ. The result replaces the one in DIR unless --out names another place.",
    ),
]  # fmt: skip
WDeltaOption = Annotated[
    str | None,
    typer.Option(
        "--w-delta", metavar="NUMBER", rich_help_panel=METHOD, show_default="0.2",
        help="For gbs: how far from δ the inconsistency of a region may be for it to count as near the boundary.",
    ),
]  # fmt: skip
LineOption = Annotated[
    str | None,
    typer.Option(
        "--line", metavar="corner|THETA", rich_help_panel=METHOD, show_default="corner",
        help="For gbs and boundary: where the search line leads from zero: to the corner of the domain that is "
        "farthest away, or to a theta, such as 0.5,1.",
    ),
]  # fmt: skip
MeanOption = Annotated[
    str | None,
    typer.Option(
        "--mean", metavar="M", rich_help_panel=CLASSIFIER,
        help="The model expects (pixel·scale − mean)/std: one number, or one for each channel, joined by commas.",
    ),
]  # fmt: skip
StdOption = Annotated[
    str | None,
    typer.Option("--std", metavar="S", rich_help_panel=CLASSIFIER, help="See --mean; as many numbers."),
]
ScaleOption = Annotated[
    str | None,
    typer.Option(
        "--scale", metavar="1|255", rich_help_panel=CLASSIFIER, show_default="1",
        help="See --mean; 255 for a model that takes pixels from 0 to 255.",
    ),
]  # fmt: skip
ClassNamesOption = Annotated[
    Path | None,
    typer.Option(
        "--class-names", metavar="FILE", rich_help_panel=CLASSIFIER,
        help="A text file in UTF-8 with the name of one class on each line.",
    ),
]  # fmt: skip
ExpectOption = Annotated[
    str | None,
    typer.Option(
        "--expect", metavar="LABEL", rich_help_panel=CLASSIFIER,
        help="The label, as number or name, that the unperturbed image must have; otherwise nothing is done.",
    ),
]  # fmt: skip
TimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        rich_help_panel=LIMITS,
        help="Stop after so long; the result is then partial, as for the other limits.",
    ),
]
MaxRegionsOption = Annotated[
    str | None,
    typer.Option("--max-regions", metavar="N", rich_help_panel=LIMITS, help="Stop at so many regions."),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory", metavar="GIB", rich_help_panel=LIMITS, show_default="80 % of what the machine has",
        help="Stop when the process holds so many GiB.",
    ),
]  # fmt: skip
ThreadsOption = Annotated[
    str | None,
    typer.Option(
        "--threads", metavar="N", rich_help_panel=LIMITS, show_default="one for each processor",
        help="Threads to map or refine with; the answer does not depend on them.",
    ),
]  # fmt: skip
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", rich_help_panel=OUTPUT, show_default="named after the question",
        help="The directory for the result and the pictures.",
    ),
]  # fmt: skip
DEMO_DIRECTORY = Path("demo")
DemoOutOption = Annotated[
    Path,
    typer.Option(
        "--out", metavar="DIR", rich_help_panel=OUTPUT, help="The directory for the results and the pictures."
    ),
]
ReportOutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE.html", rich_help_panel=OUTPUT, show_default="report.html in DIR",
        help="The file for the report.",
    ),
]  # fmt: skip
ReportForceOption = Annotated[
    bool,
    typer.Option(
        "--force", rich_help_panel=OUTPUT,
        help="Replace a report of steadygaze that is in the way; nothing else is ever replaced.",
    ),
]  # fmt: skip
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force", rich_help_panel=OUTPUT,
        help="Replace results of steadygaze that are in the way; nothing else is ever replaced.",
    ),
]  # fmt: skip
ComparedDirectoriesOption = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR1 DIR2 ...",
        help="Directories that verify wrote, two or more; difference maps are against the first.",
    ),
]
ComparedDeltaOption = Annotated[
    str | None,
    typer.Option(
        "--delta", metavar="NUMBER|PERCENT", rich_help_panel=QUESTION, show_default="of each result its own",
        help="The same threshold for all results, absolute (3.0) or a percentage of the size of each one's original "
        "maps; without a new run.",
    ),
]  # fmt: skip
ComparisonOutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR|FILE", rich_help_panel=OUTPUT, show_default="nothing is written",
        help="A directory for comparison.json, .png, .svg and .pdf, or a file with one of these endings.",
    ),
]  # fmt: skip
ForceFilesOption = Annotated[
    bool,
    typer.Option("--force", rich_help_panel=OUTPUT, help="Replace files that were written before to the same place."),
]
ExportFormatOption = Annotated[
    str,
    typer.Option(
        "--format", metavar="csv|geojson|parquet", rich_help_panel=OUTPUT,
        help="The form of the file. GeoJSON takes one and two parameters; Parquet needs pyarrow.",
    ),
]  # fmt: skip
WhatOption = Annotated[
    str,
    typer.Option(
        "--what", metavar="regions|pieces", rich_help_panel=OUTPUT,
        help="A row for each activation region and box (regions), or for each part of them that has one label alone "
        "(pieces).",
    ),
]  # fmt: skip
ExportOutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", rich_help_panel=OUTPUT, show_default="here, named after DIR", help="The file to write."
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option(
        "--json", rich_help_panel=OUTPUT, help="Print the answer as one JSON object on stdout, and no summary."
    ),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", rich_help_panel=OUTPUT, help="Print nothing but errors (and what --json asks for).")
]
DebugOption = Annotated[
    bool, typer.Option("--debug", rich_help_panel=OUTPUT, help="Show the traceback of an error before its line.")
]
DirectoryOption = Annotated[Path, typer.Argument(metavar="DIR", help="A directory that verify wrote.")]
OtherDeltaOption = Annotated[
    str | None,
    typer.Option(
        "--delta", metavar="NUMBER|PERCENT", rich_help_panel=QUESTION, show_default="as stored",
        help="Answer for another threshold, from what is stored and without a new run; boxes of a refinement then give "
        "bounds. A search answers one threshold alone.",
    ),
]  # fmt: skip
OtherPropertyOption = Annotated[
    str | None,
    typer.Option(
        "--property", metavar="cr|ar|both", rich_help_panel=QUESTION, show_default="as stored",
        help="What is kept inside the boundary: the label (cr), the attention (ar), or both.",
    ),
]  # fmt: skip
KindOption = Annotated[
    str,
    typer.Argument(metavar="KIND", help="map, path, strip, boundary, columns, tiling or visited; see above."),
]
DirectoriesOption = Annotated[
    list[Path],
    typer.Argument(metavar="DIR...", help="A directory that verify wrote; for columns one or more for each network."),
]
AtOption = Annotated[
    list[str] | None,
    typer.Option(
        "--at", metavar="THETA", rich_help_panel=FIGURE, show_default="chosen by the kind",
        help="A theta such as 0.5,1. Repeat the option for several: the path goes through them, boundary shows them, "
        "columns has one column for each; strip takes one, where the other parameters are held.",
    ),
]  # fmt: skip
AlongOption = Annotated[
    str | None,
    typer.Option(
        "--along", metavar="PARAMETER", rich_help_panel=FIGURE, show_default="the first",
        help="For strip: the parameter that varies, by number from 1 on or by the beginning of its name.",
    ),
]  # fmt: skip
StepsOption = Annotated[
    str | None,
    typer.Option(
        "--steps", metavar="N", rich_help_panel=FIGURE, show_default="8 and 6",
        help="For path and strip: how many images are shown, up to 24.",
    ),
]  # fmt: skip
ByOption = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="cr|ar|both|pattern", rich_help_panel=FIGURE, show_default="what was asked",
        help="For tiling: what regions are coloured by: the label (cr), the attention (ar), both, or the activation "
        "pattern of the classifier.",
    ),
]  # fmt: skip
FigureOutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", rich_help_panel=OUTPUT, show_default="figure-KIND in DIR",
        help="The file to write; its ending names the format unless --format does. In a directory it is figure-KIND.",
    ),
]  # fmt: skip
FormatOption = Annotated[
    list[str] | None,
    typer.Option(
        "--format", metavar="png|svg|pdf", rich_help_panel=OUTPUT, show_default="png",
        help="The format; several are joined by commas, or the option is repeated.",
    ),
]  # fmt: skip
FigureForceOption = Annotated[
    bool, typer.Option("--force", rich_help_panel=OUTPUT, help="Replace files of that name that exist already.")
]
