"""From a campaign to figures (A) to (G) of the paper's evaluation, one file each. Solves nothing, (G) apart.

(A) and (B): how problems ended, where attention is asked and for the label alone. (C): seconds against neurons. (D):
regions by combination. (E) and (F): seconds against regions and face checks. (G): the regions that one search visited.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..errors import StoreError
from ..report.drawing.colours import FAINT_INK
from ..report.drawing.sheet import figure_files, refuse_in_the_way, write_figure
from ..report.figures.visited import search_figure
from ..report.wording import counted, number
from ..search.store import stored_search
from . import panels as p
from .example import choose_example, has_files, located, search_again
from .plan import Plan
from .series import ENDED, TIMED, Series, count_of_regions, make_series, rank_correlation
from .store import Store
from .table import STATUSES, Record, make_records

NAMES = {
    "A": "status-attention",
    "B": "status-label",
    "C": "seconds-by-neurons",
    "D": "regions-by-combination",
    "E": "seconds-by-regions",
    "F": "seconds-by-face-checks",
    "G": "visited-regions",
}
"""What the figures are called: `figure-A-status-attention.png` and so on."""
COLOURS = {"Robust": "#4f86c0", "NotRobust": "#b8503a", "Timeout": "#9c9c9c", "Failed": "#1f2328", p.OPEN: "#ffffff"}
SMALLEST_SECONDS = 1e-3
"""What is drawn for a time that was rounded to nothing."""


class NothingToDrawError(Exception):
    """A campaign lacks what a figure shows; the text says what."""


@dataclass(frozen=True)
class Drawn:
    """The files that were written, and for each figure that there is none of, why."""

    files: tuple[Path, ...]
    missing: dict[str, str]


def draw_figures(
    store: Store,
    folder: str | Path,
    *,
    formats: Sequence[str] = ("png",),
    force: bool = False,
    plan: Plan | None = None,
) -> Drawn:
    """Write all figures of a campaign into a folder, which is made if it is not there.

    Without `force` files that are there are refused before anything is drawn. `plan` says where models and images are
    that are not bundled (only for (G)).
    """
    place, whole = Path(folder), located(store.plan, plan)
    paths = {letter: place / f"figure-{letter}-{name}" for letter, name in NAMES.items()}
    refuse_in_the_way([file for path in paths.values() for file in figure_files(path, formats)], force=force)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{place}: cannot be made ({error.strerror}); choose another --out") from None
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
    """What draws figures (A) to (F), by letter; NothingToDrawError tells what a campaign lacks for one."""
    series = make_series(plan, records)
    sizes = _sizes(series)
    fills = dict(zip(sizes, p.shades(len(sizes)), strict=True))
    return {
        "A": lambda: _draw_status("(A) Status where attention is asked", plan, series, ("ar", "both")),
        "B": lambda: _draw_status("(B) Status for the label alone", plan, series, ("cr",)),
        "C": lambda: _draw_seconds(plan, series, fills),
        "D": lambda: _draw_regions(plan, series, fills),
        "E": lambda: _draw_against(
            "(E) Seconds against regions", "regions (of refine: with boxes)", plan, series, fills, count_of_regions
        ),
        "F": lambda: _draw_against(
            "(F) Seconds against face checks",
            "face checks",
            plan,
            [one for one in series if one.is_search],
            fills,
            lambda record: record["face_checks"],
        ),
    }


def _draw_status(title: str, plan: Plan, series: Sequence[Series], properties: tuple[str, ...]) -> Figure:
    chosen = [one for one in series if one.asked in properties]
    if not chosen:
        raise NothingToDrawError(f"no problem of the plan asks for {' or '.join(properties)}")
    kinds: set[str] = set()
    multiples = []
    sizes = _sizes(chosen)
    for one in chosen:
        places = []
        for size in sizes:
            own = [record["status"] for record in one.records if record["neurons"] == size]
            counts = {status: own.count(status) for status in STATUSES} | {p.OPEN: one.planned.get(size, 0) - len(own)}
            kinds |= {kind for kind, count in counts.items() if count}
            places.append(counts)
        multiples.append(p.Panel(one.name, partial(_bars, sizes, places)))
    legend = {kind: colour for kind, colour in COLOURS.items() if kind in kinds}
    facts = [plan.name, "share and number of problems"]
    return p.draw_panels(title, facts, legend, multiples, ("neurons", "problems"))


def _bars(sizes: Sequence[int], places: Sequence[dict[str, int]], axes: Axes) -> None:
    p.draw_shares(axes, places, COLOURS)
    p.name_places(axes, [f"{size:,}" for size in sizes])


def _draw_seconds(plan: Plan, series: Sequence[Series], fills: dict[int, str]) -> Figure:
    timed = {one.name: [record for record in one.records if _is_timed(record, TIMED)] for one in series}
    scale = _scale([_seconds(record) for own in timed.values() for record in own], "seconds")
    limits, sizes = _limits(plan), _sizes(series)

    def draw(one: Series, axes: Axes) -> None:
        values = [[_seconds(record) for record in timed[one.name] if record["neurons"] == size] for size in sizes]
        medians = [(place, median(own)) for place, own in enumerate(values) if own]
        axes.plot(*zip(*medians, strict=True), color=FAINT_INK, linewidth=0.8, zorder=1)
        p.draw_boxes(axes, range(len(values)), values, [fills[size] for size in sizes], 0.55)
        scale.set(axes, is_below=False)
        p.name_places(axes, [f"{size:,}" for size in sizes])

    lost = sum(record["status"] not in TIMED for one in series for record in one.records)
    facts = [plan.name, "boxes: quartiles and median, whiskers: least and most", f"time limit {limits}"]
    facts += [f"without {counted(lost, 'problem')} that failed"] if lost else []
    multiples = [p.Panel(one.name, partial(draw, one), _late(timed[one.name])) for one in series if timed[one.name]]
    return p.draw_panels("(C) Seconds against neurons", facts, {}, multiples, ("neurons", "seconds"))


def _draw_regions(plan: Plan, series: Sequence[Series], fills: dict[int, str]) -> Figure:
    counted_ones = {one.name: [record for record in one.records if _regions(record)] for one in series}
    scale = _scale([_regions(record) for own in counted_ones.values() for record in own], "regions")
    used = {task.combination for task in plan.tasks}
    combinations = [name for name in plan.combinations if name in used]

    def draw(one: Series, axes: Axes) -> None:
        width = 0.84 / len(fills)
        for offset, (size, fill) in enumerate(fills.items()):
            places = [place + (offset - 0.5 * (len(fills) - 1)) * width for place in range(len(combinations))]
            values = [
                [_regions(record) for record in counted_ones[one.name] if _is_of(record, size, name)]
                for name in combinations
            ]
            p.draw_boxes(axes, places, values, [fill] * len(values), 0.82 * width)
        scale.set(axes, is_below=False)
        p.name_places(axes, combinations)

    facts = [plan.name, "of problems that came to an answer", "regions visited or found; of refine: with boxes"]
    multiples = [p.Panel(one.name, partial(draw, one)) for one in series if counted_ones[one.name]]
    legend = _size_legend(fills)
    return p.draw_panels("(D) Regions by combination", facts, legend, multiples, ("combination", "regions"))


def _draw_against(
    title: str,
    name: str,
    plan: Plan,
    series: Sequence[Series],
    fills: dict[int, str],
    measure: Callable[[Record], int | None],
) -> Figure:
    found = {
        one.name: [record for record in one.records if _is_timed(record, ENDED) and measure(record)] for one in series
    }
    flat = [record for own in found.values() for record in own]
    across, up = _scale([measure(record) or 0 for record in flat], name), _scale([*map(_seconds, flat)], "seconds")

    def draw(one: Series, axes: Axes) -> None:
        for size, fill in fills.items():
            own = [record for record in found[one.name] if record["neurons"] == size]
            p.draw_points(axes, [measure(record) or 0 for record in own], [_seconds(record) for record in own], fill)
        across.set(axes, is_below=True)
        up.set(axes, is_below=False)

    multiples = []
    for one in series:
        if not found[one.name]:
            continue
        pairs = [
            [(measure(record) or 0, _seconds(record)) for record in found[one.name] if record["neurons"] == size]
            for size in one.sizes
        ]
        multiples.append(p.Panel(one.name, partial(draw, one), _correlation_text(pairs)))
    facts = [plan.name, "problems that came to an answer", "ρ: rank correlation among problems of one size"]
    return p.draw_panels(title, facts, _size_legend(fills), multiples, (name, "seconds"))


def _draw_example(plan: Plan, records: Sequence[Record]) -> Figure:
    known = {task.key for task in plan.tasks if has_files(plan, task)}
    if not known:
        raise NothingToDrawError("where the models and images are is not known; give --plan FILE")
    task = choose_example(plan, [record for record in records if record["key"] in known])
    if task is None:
        raise NothingToDrawError("no gbs problem of up to three parameters has come to an answer")
    result = search_again(plan, task)
    if result.stopped is not None:
        raise NothingToDrawError(f"searching {task.key} again was ended by its {result.stopped}")
    return search_figure(stored_search(result))


def _sizes(series: Sequence[Series]) -> list[int]:
    return sorted({size for one in series for size in one.sizes})


def _scale(values: Sequence[float], what: str) -> p.Scale:
    if not values:
        raise NothingToDrawError(f"no problem that has ended has {what}")
    return p.Scale.of(values)


def _is_timed(record: Record, statuses: tuple[str, ...]) -> bool:
    return record["status"] in statuses and record["seconds"] is not None


def _seconds(record: Record) -> float:
    return max(float(record["seconds"]), SMALLEST_SECONDS)


def _regions(record: Record) -> int:
    return (count_of_regions(record) or 0) if record["status"] in ENDED else 0


def _is_of(record: Record, size: int, combination: str) -> bool:
    return record["neurons"] == size and record["combination"] == combination


def _late(records: Sequence[Record]) -> str:
    count = sum(record["status"] not in ENDED for record in records)
    return f"{counted(count, 'timeout')} at the limit" if count else ""


def _limits(plan: Plan) -> str:
    seconds = sorted({task.seconds for task in plan.tasks})
    return " and ".join(f"{number(value)} s" for value in seconds[:3])


def _size_legend(fills: dict[int, str]) -> dict[str, str]:
    return {f"{size:,} neurons": fill for size, fill in fills.items()}


def _correlation_text(pairs: Sequence[Sequence[tuple[float, float]]]) -> str:
    """The range of ρ over the sizes that have one.

    >>> _correlation_text([[(1, 1.0), (2, 2.0), (3, 3.0)], [(1, 1.0)]])
    'ρ = 1.00'
    """
    found = [rank_correlation(*zip(*own, strict=True)) for own in pairs if own]
    values = sorted(value for value in found if value is not None)
    if not values:
        return ""
    low, high = f"{values[0]:.2f}", f"{values[-1]:.2f}"
    return f"ρ = {low}" if low == high else f"ρ = {low} to {high}"
