"""Writes docs/cli.md, the reference of the command line, from the commands themselves: `python docs/make_cli.py`.

It takes the texts of `--help` and lays them out itself: the layout of typer changes between versions. A test fails if
the file is stale.
"""

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from typer.main import get_command

from steadygaze.cli import ABORTED
from steadygaze.cli.entry_point import BAD_INPUT, BUG, app
from steadygaze.engines.refine.refine_tiling import SHAPES as REFINE_SHAPES
from steadygaze.engines.search.search_arrays import SHAPES as SEARCH_SHAPES
from steadygaze.labels import Verdict
from steadygaze.perturbation import Shift, find_families
from steadygaze.requirement import NAMES, Outcome

TARGET = Path(__file__).with_name("cli.md")

JSON_KEYS = {
    "schema_version": "grows when a reader of the older form would misread the newer one",
    "method, kind": "`map`, `refine`, `bfs`, `gbs` or `boundary`; and whether it gives a `map`, a `refinement` or a "
    "`search`",
    "verdict": "`robust`, `not robust` or `undecided`, for the property of the question, over the whole domain",
    "status": "`Robust`, `NotRobust`, `Timeout` (a limit or Ctrl-C ended the run) or `Failed`, as in the paper, or "
    "`Undecided` (the run completed, and a part of the domain is too close to a threshold to decide); for a "
    "search it concerns the visited regions, so `Robust` alone proves nothing about the whole domain",
    "property": "`cr`, `ar` or `both`",
    "label, label_name": "the predicted class of the unperturbed image",
    "regions": "number of activation regions; for a refinement, those of mapped boxes; for a search, those visited. A "
    "map in memory counts patterns; other counts may count a region more than once if maxima over windows cut it into "
    "parts",
    "visited, visited_share": "number of visited regions (all regions of a map), and the share of the domain that they "
    "cover; for a refinement, the share of all boxes except open ones",
    "measures": "the measured properties: `label`, and `attention` unless the property is `cr`; a map measures both",
    "face_checks, lps": "facets crossed and linear programs solved; a map needs neither",
    "area": "proved `[low, high]` of each share of the domain: " + ", ".join(f"`{name}`" for name in NAMES),
    "nearest": "for `CR` and `AR`: the violation nearest to zero, each axis divided by its width. No violation is "
    "nearer than `low` (for AR: except on kinks); `theta`, at distance `high`, violates. `null` stands for infinity, "
    "or for no violation",
    "delta": "the threshold as given (`text`), the largest loss that it allows (`value`, the absolute δ for the "
    "distance), and the base of relative thresholds (`map_size`; for the distance, the size of the original "
    "maps)",
    "ar_at_delta": "`[low, high]` of AR at 10, 25, 50 and 100 % of that size; `all` is a threshold at which the whole "
    "domain is AR, kinks aside, rounded up",
    "at_threshold": "for every property of attention: `[low, high]` of AR at some thresholds, as texts; `all` is a "
    "threshold at which the whole domain is AR, kinks aside, `null` if there is none. For the distance the same as "
    "`ar_at_delta`, which is `null` for other properties",
    "zero_attention_share": "not for the distance: `[low, high]` of the share of the domain whose maps are zero "
    "everywhere; they have no attention, and count as IR",
    "sets": "number of regions in CR, MR, CB (both occur in the region) and AR, IR, AB; for a search, `null` for a "
    "property that was not asked for",
    "undecided": "number of regions with an undecided `classification` or `attention`; `null` as in `sets`",
    "tiling_error": "how far the areas of all regions are from the whole domain",
    "sliver_share": "upper bound of the share of the domain on kinks (borders between regions), where the attention is "
    "undecided; `area` and `ar_at_delta` count it as undecided",
    "ties": "only networks with maxima over windows have this key: under `share`, `[low, high]` of the share "
    "of the domain whose attention depends on the rule that the first of equal entries wins",
    "strayed": "not for the distance: the nearest known `theta` that loses the attention, how much is `left` there in "
    "words, the `loss` there and before, and where the attention is instead (`place`; `pixels` as row and column); "
    "`null` if none is known",
    "guarantee": "the guarantee of the answer, in words",
    "complete, stopped": "whether the whole domain was mapped, and the reason for an early end",
    "domain": "names, ends and specs of the axes",
    "model, image": "the model and the image",
    "attention": "the property of attention: `property`, `explain` (the method that makes the maps), `threshold` as a "
    "text (`null` for pointing), `mask` (`text` and `sha256`, or `null`), `classes`, `filter`; `distance` for the "
    "distance alone",
    "notes": "sentences for the reader of the answer",
    "witnesses": "a theta for each kind of violation, replayed through the model file",
    "seconds": (
        "by phase: `start`, `read`, `check model`, `plan`, `prepare`, `falsify`, `bounds`, `walk`, `attention`, "
        "`labels`, `self-check`, `summary`, `store`, `pictures`, as far as the run had them; they add up to its time. "
        "Stored in `timings.json`"
    ),
    "require": "with `--require` (verify and show): its `text` and `outcome` ("
    + ", ".join(f"`{o.value}`" for o in Outcome)
    + ")",
    "output": "verify only: the `directory` of the result and its `pictures`; `picked`: the reason for the "
    "method, if none was given",
}

REFINE_KEYS = {
    "guarantee_shares": "shares of the domain where the property is decided by bounds that hold whatever the rounding "
    "(`rounding-sound`), where it is decided by regions in float64 arithmetic with error bounds or in exact arithmetic "
    "(`float64 with slack`), and where it is undecided (`undecided`)",
    "boxes": "number of boxes: `all`, decided by bounds (`bounded`), decided on either side of a plane "
    "(`parted`), mapped region by region (`exact`), undecided "
    "(`open`)",
    "until, goal": "the options of that name, as given",
    "relaxation": "the kind of bounds used",
}
"""Keys that are null for every other method."""

SEARCH_KEYS = {
    "following": "number of visited regions that were reached by following the boundary",
    "failures": "number of regions and linear programs without an answer, for numerical reasons",
    "components": "boundary only: for each component of the outermost boundary the number of regions along its `inner` "
    "(reachable) and `outer` side; `null` for other methods and when a limit ended the search",
    "confirmation": "the verdict of a refinement, which covers every theta. It runs if the visited regions cover the "
    "domain and all of them satisfy the property; the search is robust only if it is. `null` otherwise",
    "w_delta": "the w^δ of a gbs for the attention; `null` for other searches",
    "line": "the theta where the search line from zero ends; `null` for bfs",
}
"""Keys that are null for every other method."""

UNKNOWN_TO_SEARCHES = ("nearest", "ar_at_delta", "at_threshold", "tiling_error")
"""Keys that are null for a search."""

COMMON_KEYS = (
    "schema_version", "method", "kind", "verdict", "property", "label", "label_name", "delta", "attention", "domain",
    "model", "image", "regions", "sliver_share",
)  # fmt: skip

BOUNDARY_KEYS = {
    "satisfying_share": "the share of the domain that is proved to satisfy the property",
    "reachable_share": "the proved share that can be reached from zero without leaving this part",
    "unreachable_share": "the share of the pieces that satisfy the property but cannot be reached",
    "enclosed_share": "the proved share inside the outermost boundary: the reachable part and its enclaves",
    "farthest": "a reachable `theta` with the largest `distance` ‖theta‖₂; `null` if nothing is reachable",
    "components": "the components of the outermost boundary, the longest first. `measure`: length with every axis "
    "scaled to 1 (area with three parameters, number of thetas with one); `touches_border`: whether it reaches the "
    "border of the domain; `share_beyond`: the share of the domain behind it; `inner_regions` and `outer_regions`: "
    "the numbers of the regions along it",
    "enclaves": "the parts of the domain that the reachable part encloses, the largest first. `share`, and how much of "
    "it satisfies the property; `nearest`: its `theta` nearest to zero and the `distance` ‖theta‖₂; `regions`: the "
    "regions that overlap it; the other keys as for components",
    "starts": "how many components of the satisfying part meet at zero; all of them count as reachable",
    "undecided": "`share` of the undecided pieces; `pieces_beside`: how many of them touch the reachable part; "
    "`strip_share`: the share within the error of a threshold, in and beside the reachable part",
    "output": "the `pictures`",
}


SEARCH_ARRAYS = {
    "halfspaces": "unit inward normal n and offset c of every facet, in theta: n·θ + c ≥ 0",
    "starts": "region r has the rows `starts[r]:starts[r+1]` of `halfspaces`",
    "inside": "a theta inside each region",
    "volume": "its share of the domain",
    "logits": "slope in theta and constant of each logit",
    "cell": "the knot cell; `cell`, clip and pattern together identify a region",
    "clip": "the packed pattern of the clip: region r has `clip[clip_starts[r]:clip_starts[r+1]]`",
    "clip_starts": "see `clip`",
    "pattern": "the packed pattern of the classifier",
    "classification": "0 not requested, 1 undecided, 2 CR, 3 MR, 4 CB",
    "attention": "0 not requested, 1 undecided, 2 AR, 3 IR, 4 AB",
    "margin": "bounds over the region",
    "inconsistency": "bounds over the region",
    "is_following": "1 if the region was reached by following the boundary",
    "is_doubtful": "1 if the pattern is uncertain",
    "component": "the component of the outermost boundary",
    "component_region": "a region along this component",
    "component_is_inner": "1 if this region is on the reachable side",
    "shares": "the shares by label and attention, row by row, each in the order kept, undecided, lost; then the share "
    "of kinks",
}
"""The arrays of `regions.npz` after a search."""

REFINE_ARRAYS = {
    "box_cell": "the knot cell; if two cells share a box of the grid, the first",
    "box_low": "the low corner, in t; neighbours share these numbers bit by bit",
    "box_high": "the high corner, in t",
    "box_sides": "the signed cut at the low and the high side of every axis; two boxes that touch along a cut carry it "
    "with opposite signs",
    "box_margin": "a proved enclosure over the box",
    "box_inconsistency": "a proved enclosure over the box",
    "box_state": "0 open, 1 decided by bounds, 2 mapped region by region, 3 parted by a plane",
    "box_cuts": "the table of all cuts, borders and knots first",
    "part_slopes": "slopes of the plane of each parted box, in order; e ∈ [−1, 1]^d scales the box",
    "part_offset": "offset of the plane",
    "part_slack": "slack of the plane: the side is certain where |slopes · e + offset| is larger",
    "part_margin": "proved enclosures on the positive and on the negative side",
    "part_inconsistency": "proved enclosures on the positive and on the negative side",
    "points": "violating thetas",
    "box_of": "the box of each region",
}
"""The arrays that `regions.npz` has after a refinement, besides those of a map."""


def reference() -> str:
    """The whole text of docs/cli.md."""
    program: Any = get_command(app)
    lines = [
        "# The command line",
        "",
        "<!-- Written by docs/make_cli.py from the commands themselves; change their texts, not this file. -->",
        "",
        inspect.cleandoc(program.help),
        "",
        *_table(("option", "meaning"), ((f"`{option.opts[0]}`", option.help) for option in program.params)),
    ]
    for name, command in _commands(program):
        lines += _command(name, command)
    lines += ["## Perturbations", "", "A SPEC is `keyword[:key=value,...][:low..high]`:", ""]
    lines += _table(("family", "example", "effect"), _families())
    lines += ["## Exit codes", "", *_table(("code", "meaning"), _exit_codes())]
    lines += ["steadygaze never returns 1, the code of a crash of Python.", ""]
    lines += [
        "## JSON",
        "",
        "`--json` prints one object on stdout; everything else goes to stderr. All methods print the same keys; `null` "
        "stands for a fact that the method does not know.",
        "",
    ]
    keys = [(", ".join(f"`{key}`" for key in name.split(", ")), text) for name, text in JSON_KEYS.items()]
    lines += _table(("key", "meaning"), iter(keys))
    lines += [
        "In `area` of a refinement, `undecided` refers to the property of the question. Without attention, the shares "
        "of AR and IR are unknown. Only refinements have these keys:",
        "",
    ]
    rows = [(", ".join(f"`{key}`" for key in name.split(", ")), text) for name, text in REFINE_KEYS.items()]
    lines += _table(("key", "meaning"), iter(rows))
    unknown = ", ".join(f"`{key}`" for key in UNKNOWN_TO_SEARCHES)
    lines += [
        f"A search does not know {unknown}, and has no `witnesses`. With up to three parameters, `area` of a bfs has "
        "the shares that its visited regions prove, and `sliver_share` bounds the share of kinks, where both labels "
        "count as undecided. The same holds for gbs and boundary if they visited the whole domain. Otherwise no share "
        "is known, and `sliver_share` is `null`. Only searches have these keys:",
        "",
    ]
    lines += _table(("key", "meaning"), ((f"`{key}`", text) for key, text in SEARCH_KEYS.items()))
    lines += ["`boundary --json` prints `" + "`, `".join(COMMON_KEYS) + "` with the same meaning, and:", ""]
    lines += _table(("key", "meaning"), ((f"`{key}`", text) for key, text in BOUNDARY_KEYS.items()))
    lines += [
        "## regions.npz after a search",
        "",
        "A word in a shape is a size.",
        "",
        *_table(("array", "type", "shape", "meaning"), _arrays(SEARCH_SHAPES, SEARCH_ARRAYS)),
    ]
    lines += [
        "## regions.npz after a refinement",
        "",
        "t is the domain scaled to the unit cube. The arrays of a map hold the regions of mapped boxes. Results "
        "without parted boxes lack the arrays `part_…`, results without regions `box_of`.",
        "",
        *_table(("array", "type", "shape", "meaning"), _arrays(REFINE_SHAPES, REFINE_ARRAYS)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _arrays(shapes: Mapping[str, Any], meanings: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The rows of a table of arrays; every array needs a meaning."""
    for name, (kind, shape) in shapes.items():
        yield f"`{name}`", kind.__name__, f"({', '.join(map(str, shape))})", meanings[name]


def _commands(group: Any, start: str = "") -> Iterator[tuple[str, Any]]:
    """All commands by their full names, those of a group after it."""
    for name, command in group.commands.items():
        yield start + name, command
        if hasattr(command, "commands"):
            yield from _commands(command, f"{start}{name} ")


def _command(name: str, command: Any) -> list[str]:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = ["steadygaze", name, *(["COMMAND"] if hasattr(command, "commands") else [])]
    usage += [argument.metavar for argument in arguments]
    usage += [f"{option.opts[0]} {option.metavar}" for option in options if option.required]
    usage += ["[OPTIONS]"] if any(not option.required for option in options) else []
    lines = [f"## steadygaze {name}", "", "```", " ".join(usage), "```", "", inspect.cleandoc(command.help), ""]
    if arguments:
        lines += _table(("argument", "meaning"), ((f"`{each.metavar}`", _meaning(each)) for each in arguments))
    for panel in dict.fromkeys(option.rich_help_panel for option in options):
        chosen = [option for option in options if option.rich_help_panel == panel]
        rows = ((f"`{' '.join([each.opts[0], each.metavar or '']).strip()}`", _meaning(each)) for each in chosen)
        lines += _table((panel or "option", "meaning"), rows)
    return lines


def _meaning(parameter: Any) -> str:
    """The help of a parameter, with its default."""
    shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    if parameter.required:
        return f"{parameter.help} Required."
    return parameter.help if shown in (None, False) else f"{parameter.help} Default: {shown}."


def _families() -> Iterator[tuple[str, str, str]]:
    for keyword, family in sorted({**find_families(), Shift.keyword: Shift}.items()):
        yield keyword, f"`{family.example}`", (inspect.getdoc(family) or "").splitlines()[0]


def _exit_codes() -> Iterator[tuple[str, str]]:
    yield (
        str(Verdict.ROBUST.exit_code),
        (
            "robust: the property holds everywhere in the domain; or the requirement is met. Commands that only show "
            "or write something end with 0 when they did, unless `--exit-code` is given"
        ),
    )
    yield str(Verdict.NOT_ROBUST.exit_code), "not robust: a violation is proved; or the requirement is missed"
    yield (
        str(Verdict.UNDECIDED.exit_code),
        "undecided: a limit ended the run, points are too close to a threshold to decide, a search found no "
        "violation in the part of the domain that it visited, or bounds leave a requirement open",
    )
    yield (
        str(BAD_INPUT),
        "bad input: one line on stderr names the mistake, its place and a remedy; nothing is written",
    )
    yield (
        str(BUG),
        "internal error: a self-check failed, and nothing is delivered; report it with the command and the model",
    )
    yield str(ABORTED), "aborted by a second Ctrl-C (the first one ends the run with a partial result)"


def _table(titles: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    lines += [f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [*lines, ""]


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
