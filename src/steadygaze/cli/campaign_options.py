"""The options of `steadygaze campaign`: spelling, value, one line of help each. What they mean is in `campaign`."""

from pathlib import Path
from typing import Annotated

import typer

from .options import LIMITS, OUTPUT

PlanOption = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A plan in TOML (see docs/campaign.md), or a bundled one: paper, smoke, filters or perturbations.",
    ),
]
RunOutOption = Annotated[
    Path,
    typer.Option(
        "--out", metavar="DIR", rich_help_panel=OUTPUT,
        help="The directory of the campaign; one that was interrupted goes on.",
    ),
]  # fmt: skip
WorkersOption = Annotated[
    str | None,
    typer.Option(
        "--workers", metavar="N", rich_help_panel=LIMITS, show_default="one for each processor",
        help="Problems to solve at once on this machine.",
    ),
]  # fmt: skip
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="ADDRESS", rich_help_panel=LIMITS,
        help="Solve the problems on a Dask cluster instead: the address of its scheduler, such as "
        "tcp://127.0.0.1:8786. Its workers need this version of steadygaze and the files of the plan.",
    ),
]  # fmt: skip
QuietOption = Annotated[bool, typer.Option("--quiet", rich_help_panel=OUTPUT, help="Print nothing but errors.")]
CampaignOption = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a campaign.")]
FormatOption = Annotated[
    str,
    typer.Option(
        "--format", metavar="text|json|csv|parquet", rich_help_panel=OUTPUT,
        help="The table of statuses (text, json), or all results with one line per problem (csv, parquet).",
    ),
]  # fmt: skip
TableOutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", rich_help_panel=OUTPUT, show_default="stdout",
        help="The file to write; needed for parquet.",
    ),
]  # fmt: skip
ReplaceOption = Annotated[
    bool, typer.Option("--force", rich_help_panel=OUTPUT, help="Replace the file if it is there.")
]
AnswersOption = Annotated[
    bool,
    typer.Option(
        "--answers", rich_help_panel=OUTPUT,
        help="Leave seconds and memory out: what is left is the same, byte for byte, whenever the campaign is run.",
    ),
]  # fmt: skip
FiguresOutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FOLDER", rich_help_panel=OUTPUT, show_default="figures in DIR",
        help="The folder to write to.",
    ),
]  # fmt: skip
FigureFormatOption = Annotated[
    list[str] | None,
    typer.Option(
        "--format", metavar="png|svg|pdf", rich_help_panel=OUTPUT, show_default="png",
        help="The format of the files; several: png,pdf.",
    ),
]  # fmt: skip
FilesPlanOption = Annotated[
    str | None,
    typer.Option(
        "--plan", metavar="FILE",
        help="The plan that was run: says for (G) where models and images are that are not bundled.",
    ),
]  # fmt: skip
ReplaceFilesOption = Annotated[
    bool, typer.Option("--force", rich_help_panel=OUTPUT, help="Replace files that are there.")
]
InsightsFormatOption = Annotated[
    str,
    typer.Option(
        "--format", metavar="text|json|csv", rich_help_panel=OUTPUT, help="How to write; csv takes one --table."
    ),
]
InsightsTableOption = Annotated[
    str | None,
    typer.Option(
        "--table", metavar="NAME", show_default="all",
        help="One of collapse, silent, delta, filter and ranking.",
    ),
]  # fmt: skip
InsightsOutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", rich_help_panel=OUTPUT, show_default="stdout", help="The file to write."),
]
