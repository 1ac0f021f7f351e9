"""Figures (A) to (G) of the paper's evaluation from a campaign, one file each. Solves nothing, except for (G).

(A) and (B): how problems ended, with attention and for the label alone. (C): seconds against neurons. (D):
regions by combination. (E) and (F): seconds against regions and face checks. (G): the regions that one search visited;
a campaign stores no regions, so a cheap search is chosen by its row and run again in this process.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..errors import StoreError
from ..labels import Status
from ..report.drawing.colours import FAINT_INK
from ..report.drawing.sheet import figure_files, refuse_in_the_way, write_figure
from ..report.figures.visited import search_figure
from ..tolerances import MAX_MAP_PARAMETERS
from ..words import counted, rounded
from . import panels as p
from .problem_names import setting_texts
from .solving import has_files, located, solve_again
from .stored_campaign import Plan, Store, Task
from .tables import STATUSES, Record, group_tasks, make_records, settings_of

NAMES = {
    "A": "status-attention", "B": "status-label", "C": "seconds-by-neurons", "D": "regions-by-combination",
    "E": "seconds-by-regions", "F": "seconds-by-face-checks", "G": "visited-regions",
}  # fmt: skip
"""Names of the figures: `figure-A-status-attention.png` and so on."""
COLOURS = {
    Status.ROBUST: "#4f86c0", Status.NOT_ROBUST: "#b8503a", Status.UNDECIDED: "#d8c58a", Status.TIMEOUT: "#9c9c9c",
    Status.FAILED: "#1f2328", p.OPEN: "#ffffff",
}  # fmt: skip
ENDED = (Status.ROBUST.value, Status.NOT_ROBUST.value, Status.UNDECIDED.value)  # statuses of answered problems
TIMED = (*ENDED, Status.TIMEOUT.value)  # statuses of problems with a meaningful time; failed ones ended early
SMALLEST_SECONDS = 1e-3  # drawn in place of a time that was rounded to 0
LIKED_REGIONS, LIKED_SHARE = 300, 0.3
"""The example of (G) covers this share of the domain, with enough regions to see and few enough to tell apart."""
MOST_WORK = 3_000_000  # regions times neurons: a search takes seconds, not minutes
LIMIT_SECONDS = 120.0
DISLIKED = {"ar": 0.0, "both": 0.5, "cr": 1.5}
"""The paper shows a search for the attention; visibility comes first."""


class NothingToDrawError(Exception):
    """A campaign lacks the problems for a figure; the text says which."""


@dataclass(frozen=True)
class Drawn:
    """The files written, and the reasons for missing figures."""

    files: tuple[Path, ...]
    missing: dict[str, str]


@dataclass(frozen=True)
class Series:
    """The problems of one algorithm and setting: planned ones by number of neurons, and the records of ended ones.

    `asked` is the property: cr, ar or both.
    """

    name: str
    method: str
    asked: str
    planned: dict[int, int]
    records: tuple[Record, ...] = field(repr=False)


def make_series(plan: Plan, records: Sequence[Record]) -> tuple[Series, ...]:
    """The series of a campaign in the order of the plan."""
    extra = settings_of(plan)
    by_key = {record["key"]: record for record in records}
    series = []
    for (algorithm, *_), tasks in group_tasks(plan, lambda task: (task.algorithm,)).items():
        told = setting_texts(tasks[0], extra)
        neurons = [plan.models[task.model].neurons for task in tasks]
        planned = {size: neurons.count(size) for size in sorted(set(neurons))}
        own = tuple(by_key[task.key] for task in tasks if task.key in by_key)
        series.append(
            Series(", ".join([algorithm, *told]), tasks[0].method, tasks[0].options["property"], planned, own)
        )
    return tuple(series)


def draw_figures(
    store: Store,
    folder: str | Path,
    *,
    formats: Sequence[str] = ("png",),
    force: bool = False,
    plan: Plan | None = None,
) -> Drawn:
    """Write all figures of a campaign into a folder, which is created if needed.

    Without `force`, refuses existing files before it draws anything. `plan` locates models and images that are not
    bundled (only for (G)).
    """
    place, whole = Path(folder), located(store.plan, plan)
    paths = {letter: place / f"figure-{letter}-{name}" for letter, name in NAMES.items()}
    refuse_in_the_way([file for path in paths.values() for file in figure_files(path, formats)], force=force)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{place}: cannot be created ({error.strerror}); choose another --out") from None
    records = make_records(store)
    makers = figure_makers(store.plan, records)
    makers["G"] = partial(_draw_example, whole, records)
    files: list[Path] = []
    missing = {}
    for letter, path in paths.items():
        try:
            files += write_figure(makers[letter], path, formats=formats, force=force)
        except NothingToDrawError as reason:
            missing[letter] = str(reason)
    return Drawn(tuple(files), missing)


def figure_makers(plan: Plan, records: Sequence[Record]) -> dict[str, Callable[[], Figure]]:
    """Functions that draw figures (A) to (F), by letter; NothingToDrawError says what a campaign lacks for one."""
    series = make_series(plan, records)
    sizes = _sizes(series)
    fills = dict(zip(sizes, p.shades(len(sizes)), strict=True))
    searches = [one for one in series if one.method not in ("map", "refine")]
    against_regions = "(E) Seconds against regions", "regions (of refine: with boxes)"
    against_checks = "(F) Seconds against face checks", "face checks"
    return {
        "A": lambda: _draw_status("(A) Status where attention is asked", plan, series, ("ar", "both")),
        "B": lambda: _draw_status("(B) Status for the label alone", plan, series, ("cr",)),
        "C": lambda: _draw_seconds(plan, series, fills),
        "D": lambda: _draw_regions(plan, series, fills),
        "E": lambda: _draw_against(*against_regions, plan, series, fills, _regions),
        "F": lambda: _draw_against(*against_checks, plan, searches, fills, lambda record: record["face_checks"] or 0),
    }


def _draw_status(title: str, plan: Plan, series: Sequence[Series], properties: tuple[str, ...]) -> Figure:
    chosen = [one for one in series if one.asked in properties]
    if not chosen:
        raise NothingToDrawError(f"no problem of the plan has the property {' or '.join(properties)}")
    sizes = _sizes(chosen)
    kinds: set[str] = set()
    multiples = []
    for one in chosen:
        places = []
        for size in sizes:
            own = [record["status"] for record in one.records if record["neurons"] == size]
            counts = {status: own.count(status) for status in STATUSES} | {p.OPEN: one.planned.get(size, 0) - len(own)}
            kinds |= {kind for kind, count in counts.items() if count}
            places.append(counts)
        multiples.append(p.Panel(one.name, partial(_draw_shares, sizes, places)))
    legend = {kind: colour for kind, colour in COLOURS.items() if kind in kinds}
    facts = [plan.name, "share and number of problems"]
    return p.draw_panels(title, facts, legend, multiples, ("neurons", "problems"))


def _draw_shares(sizes: Sequence[int], places: Sequence[dict[str, int]], axes: Axes) -> None:
    p.draw_shares(axes, places, COLOURS)
    p.name_places(axes, [f"{size:,}" for size in sizes])


def _draw_seconds(plan: Plan, series: Sequence[Series], fills: dict[int, str]) -> Figure:
    timed = {one.name: [record for record in one.records if _is_timed(record, TIMED)] for one in series}
    scale = _scale([_seconds(record) for own in timed.values() for record in own], "seconds")

    def draw(one: Series, axes: Axes) -> None:
        values = [[_seconds(record) for record in timed[one.name] if record["neurons"] == size] for size in fills]
        medians = [(place, median(own)) for place, own in enumerate(values) if own]
        axes.plot(*zip(*medians, strict=True), color=FAINT_INK, linewidth=0.8, zorder=1)
        p.draw_boxes(axes, range(len(values)), values, list(fills.values()), 0.55)
        scale.set(axes, is_below=False)
        p.name_places(axes, [f"{size:,}" for size in fills])

    limits = " and ".join(f"{rounded(value, 4)} s" for value in sorted({task.seconds for task in plan.tasks})[:3])
    lost = sum(record["status"] not in TIMED for one in series for record in one.records)
    facts = [plan.name, "boxes: quartiles and median, whiskers: least and most", f"time limit {limits}"]
    facts += [f"without {counted(lost, 'problem')} that failed"] if lost else []
    multiples = []
    for one in series:
        late = sum(record["status"] not in ENDED for record in timed[one.name])
        remark = f"{counted(late, 'timeout')} at the limit" if late else ""
        multiples += [p.Panel(one.name, partial(draw, one), remark)] if timed[one.name] else []
    return p.draw_panels("(C) Seconds against neurons", facts, {}, multiples, ("neurons", "seconds"))


def _draw_regions(plan: Plan, series: Sequence[Series], fills: dict[int, str]) -> Figure:
    found = {one.name: [each for each in one.records if each["status"] in ENDED and _regions(each)] for one in series}
    scale = _scale([_regions(record) for own in found.values() for record in own], "regions")
    used = {task.combination for task in plan.tasks}
    combinations = [name for name in plan.combinations if name in used]

    def draw(one: Series, axes: Axes) -> None:
        width = 0.84 / len(fills)
        for offset, (size, fill) in enumerate(fills.items()):
            places = [place + (offset - 0.5 * (len(fills) - 1)) * width for place in range(len(combinations))]
            own = [record for record in found[one.name] if record["neurons"] == size]
            values = [[_regions(each) for each in own if each["combination"] == name] for name in combinations]
            p.draw_boxes(axes, places, values, [fill] * len(values), 0.82 * width)
        scale.set(axes, is_below=False)
        p.name_places(axes, combinations)

    facts = [plan.name, "of problems that came to an answer", "regions visited or found; of refine: with boxes"]
    multiples = [p.Panel(one.name, partial(draw, one)) for one in series if found[one.name]]
    legend = _size_legend(fills)
    return p.draw_panels("(D) Regions by combination", facts, legend, multiples, ("combination", "regions"))


def _draw_against(
    title: str, name: str, plan: Plan, series: Sequence[Series], fills: dict[int, str], measure: Callable[[Record], int]
) -> Figure:
    found = {
        one.name: [record for record in one.records if _is_timed(record, ENDED) and measure(record)] for one in series
    }
    flat = [record for own in found.values() for record in own]
    across, up = _scale([*map(measure, flat)], name), _scale([*map(_seconds, flat)], "seconds")

    def draw(pairs: dict[int, list[tuple[float, float]]], axes: Axes) -> None:
        for size, own in pairs.items():
            p.draw_points(axes, [pair[0] for pair in own], [pair[1] for pair in own], fills[size])
        across.set(axes, is_below=True)
        up.set(axes, is_below=False)

    multiples = []
    for one in series:
        pairs: dict[int, list[tuple[float, float]]] = {size: [] for size in fills}
        for record in found[one.name]:
            pairs[record["neurons"]].append((measure(record), _seconds(record)))
        if found[one.name]:
            multiples.append(p.Panel(one.name, partial(draw, pairs), p.correlation_text(pairs.values())))
    facts = [plan.name, "problems that came to an answer", "ρ: rank correlation among problems of one size"]
    return p.draw_panels(title, facts, _size_legend(fills), multiples, (name, "seconds"))


def _draw_example(plan: Plan, records: Sequence[Record]) -> Figure:
    known = {task.key for task in plan.tasks if has_files(plan, task)}
    if not known:
        raise NothingToDrawError("the locations of the models and images are unknown; give --plan FILE")
    task = choose_example(plan, [record for record in records if record["key"] in known])
    if task is None:
        raise NothingToDrawError("no gbs problem of up to three parameters has an answer")
    result = solve_again(plan, task, limit_seconds=LIMIT_SECONDS)
    if result.stopped is not None:
        raise NothingToDrawError(f"the repeated search of {task.key} stopped early ({result.stopped})")
    return search_figure(result)


def choose_example(plan: Plan, records: Sequence[Record]) -> Task | None:
    """The gbs problem to show: preferably for the attention, not robust, with some 300 visible regions.

    The choice depends on answers only, so it is the same in every run of the campaign.
    """
    by_key = {record["key"]: record for record in records if record["status"] in ENDED}
    tasks = [
        task
        for task in plan.tasks
        if task.method == "gbs"
        and len(plan.combinations[task.combination]) <= MAX_MAP_PARAMETERS
        and task.key in by_key
        and 0 < by_key[task.key]["regions"] * by_key[task.key]["neurons"] <= MOST_WORK
        and by_key[task.key]["visited_share"] > 0.0
    ]

    def cost(task: Task) -> tuple[float, int]:
        record = by_key[task.key]
        unlike = abs(math.log(record["regions"] / LIKED_REGIONS))
        too_small = math.log(LIKED_SHARE / min(record["visited_share"], LIKED_SHARE))
        nothing_found = 2.0 * (record["status"] != Status.NOT_ROBUST.value)
        return round(DISLIKED[task.options["property"]] + unlike + too_small + nothing_found, 6), record["neurons"]

    return min(tasks, key=cost, default=None)


def _sizes(series: Sequence[Series]) -> list[int]:
    return sorted({size for one in series for size in one.planned})


def _scale(values: Sequence[float], name: str) -> p.LogScale:
    if not values:
        raise NothingToDrawError(f"no finished problem has {name}")
    return p.LogScale.of(values)


def _is_timed(record: Record, statuses: tuple[str, ...]) -> bool:
    return record["status"] in statuses and record["seconds"] is not None


def _seconds(record: Record) -> float:
    return max(float(record["seconds"]), SMALLEST_SECONDS)


def _regions(record: Record) -> int:
    """Regions found or visited, 0 if unknown; for a refinement plus its boxes, each of which covers many regions."""
    return 0 if record["regions"] is None else int(record["regions"]) + int(record["boxes"] or 0)


def _size_legend(fills: dict[int, str]) -> dict[str, str]:
    return {f"{size:,} neurons": fill for size, fill in fills.items()}
