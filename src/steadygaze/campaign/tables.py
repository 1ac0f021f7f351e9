"""The rows of a campaign → tables: one line per problem as CSV or Parquet, the paper's statuses, and insights.

Insights are tables of findings that the paper states in words: attention, label, δ, filter, ranking. They use only maps
and refinements, whose bounds hold for the whole domain, compare on the same problems, and give means of proved bounds.
Tables follow the order of the plan. Solves nothing and prints nothing.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from statistics import median
from typing import Any

from ..compare.ranking import Ranking, find_contrary, rank
from ..labels import Joint, Label, Status
from ..question import OPTIONS
from ..question_options import THRESHOLDS, threshold_of
from ..results.export import import_pyarrow
from ..words import share_text
from . import INSIGHTS
from .columns import COLUMNS, MEASURED, PERCENTS, CampaignColumn, make_record, percent_column
from .stored_campaign import Plan, Store, Task

STATUSES = tuple(status.value for status in Status if status is not Status.MISCLASSIFIED)
"""The statuses of problems that were solved."""
PAPER_STATUSES = tuple(status for status in STATUSES if status != Status.UNDECIDED)
"""The statuses of the paper."""
INSIGHT_SETTINGS = tuple(name for name in OPTIONS if name != "property")
UNTIMED = (Status.FAILED.value, Status.MISCLASSIFIED.value)
SETTINGS = (*INSIGHT_SETTINGS, "until", "goal", "w_delta")
"""Settings that distinguish problems of one algorithm, besides model, image and perturbations."""
ALL = "all"
Record = dict[str, Any]


def make_records(store: Store) -> list[Record]:
    """One record for each problem that has ended, with all columns, in the order of the plan."""
    rows = store.rows()
    return [make_record(store.plan, task, rows[task.key]) for task in store.plan.tasks if task.key in rows]


def statuses_of(plan: Plan) -> tuple[str, ...]:
    """The statuses that problems of a plan may have: misclassified images are known only where labels are expected."""
    return (*STATUSES, Status.MISCLASSIFIED.value) if plan.has_expected else STATUSES


def _columns(*, is_measured: bool) -> tuple[CampaignColumn, ...]:
    # Without measured columns, the same campaign gives the same bytes every time.
    return COLUMNS if is_measured else COLUMNS[: -len(MEASURED)]


def to_csv(records: Sequence[Mapping[str, Any]], *, is_measured: bool = True) -> str:
    """Records as CSV (RFC 4180, with \\n at the end of lines); unknown values are empty, numbers have all digits."""
    return _csv([column.name for column in _columns(is_measured=is_measured)], records)


def to_parquet(records: Sequence[Record], *, is_measured: bool = True) -> bytes:
    """Records as a Parquet file; unknown values are null. Needs the extra `export`."""
    pyarrow, parquet = import_pyarrow()
    kinds = {"text": pyarrow.string(), "whole": pyarrow.int64(), "number": pyarrow.float64()}
    schema = pyarrow.schema([(column.name, kinds[column.kind]) for column in _columns(is_measured=is_measured)])
    stream = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(list(records), schema=schema), stream)
    return stream.getvalue()


def settings_of(plan: Plan) -> list[str]:
    """Which of `SETTINGS` have several values in the plan."""
    return [name for name in SETTINGS if len({task.setting(name) for task in plan.tasks} - {None}) > 1]


def group_tasks(plan: Plan, kind: Callable[[Task], tuple[Any, ...]]) -> dict[tuple[Any, ...], list[Task]]:
    """Problems by kind and by the settings that have several values in the plan."""
    extra = settings_of(plan)
    groups: dict[tuple[Any, ...], list[Task]] = {}
    for task in plan.tasks:
        groups.setdefault((*kind(task), *(task.setting(name) for name in extra)), []).append(task)
    return groups


def count_statuses(plan: Plan, records: Sequence[Record], *, is_measured: bool = True) -> list[Record]:
    """The table of the paper's appendix: the number of problems by status, for every algorithm and number of neurons.

    `open` counts problems that have not ended. Seconds (a Timeout counts as long as it ran, a Failed problem does not
    count) and memory need `is_measured`.
    """
    by_key = {record["key"]: record for record in records}
    groups = group_tasks(plan, lambda task: (task.algorithm, plan.models[task.model].neurons))
    algorithms = list(dict.fromkeys(task.algorithm for task in plan.tasks))
    lines = []
    for kind in sorted(groups, key=lambda kind: (algorithms.index(kind[0]), kind[1])):
        own = [by_key[task.key] for task in groups[kind] if task.key in by_key]
        line: Record = dict(zip(("algorithm", "neurons", *settings_of(plan)), kind, strict=True))
        line |= {status: sum(record["status"] == status for record in own) for status in statuses_of(plan)}
        line |= {"open": len(groups[kind]) - len(own)}
        lines.append(line | (_efforts(own) if is_measured else {}))
    return lines


def _efforts(records: Sequence[Record]) -> Record:
    timed = [record["seconds"] for record in records if record["status"] not in UNTIMED]
    seconds = [each for each in timed if each is not None]
    peaks = [record["peak_mib"] for record in records if record["peak_mib"] is not None]
    return {
        "median s": median(seconds) if seconds else None,
        "most s": max(seconds, default=None),
        "all s": sum(seconds) if seconds else None,
        "most MiB": max(peaks, default=None),
    }


def to_text(lines: Sequence[Mapping[str, Any]]) -> str:
    """Lines of a table (at least one) in aligned columns, headings first; texts to the left, numbers to the right."""
    heads = list(lines[0])
    rows = [heads, *([_short(line[head]) for head in heads] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = ["<" if isinstance(lines[0][head], str) else ">" for head in heads]
    padded = [[f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)] for row in rows]
    return "".join(f"{'  '.join(row).rstrip()}\n" for row in padded)


def _short(value: Any) -> str:
    """A value for people.

    >>> _short(None), _short(0.12345), _short(1234.5), _short(7)
    ('-', '0.12', '1,234', '7')
    """
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _csv(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


@dataclass(frozen=True)
class Share:
    """A share of the domain, or a mean of such shares, between proved bounds."""

    low: float
    high: float

    def __str__(self) -> str:
        """The share for people.

        >>> str(Share(0.25, 0.25)), str(Share(0.25, 0.5))
        ('25.00 %', '25.00 to 50.00 %')
        """
        return share_text(self.low, self.high)


@dataclass(frozen=True)
class Ranks:
    """The first and the last rank that proved bounds allow."""

    first: int
    last: int

    def __str__(self) -> str:
        """The ranks for people.

        >>> str(Ranks(2, 2)), str(Ranks(1, 3))
        ('2', '1 to 3')
        """
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True)
class Insight:
    """A table: its name, its title, a note for the reader, and its lines, all with the same columns."""

    name: str
    title: str
    note: str
    lines: tuple[Record, ...]

    def to_text(self) -> str:
        """The table for people, with its title and note."""
        body = to_text(self.lines) if self.lines else "no problems for this table\n"
        return f"{self.name}: {self.title}\n{body}" + (f"({self.note})\n" if self.note else "")

    def to_csv(self) -> str:
        """The table as CSV; a share has columns `_low` and `_high`, a rank `_first` and `_last`; unknown is empty."""
        flat = [dict(pair for item in line.items() for pair in _flat(*item)) for line in self.lines]
        names = dict.fromkeys(name for row in flat for name in row)
        # An unknown share has two empty columns.
        return _csv([name for name in names if f"{name}_low" not in names], flat)

    def as_data(self) -> Record:
        """The table as plain data; shares are `[low, high]`, ranks `[first, last]`."""
        lines = [
            {name: list(astuple(value)) if isinstance(value, Share | Ranks) else value for name, value in line.items()}
            for line in self.lines
        ]
        return {"name": self.name, "title": self.title, "note": self.note, "lines": lines}


def _flat(name: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, Share | Ranks):
        return [(name, value)]
    return [(f"{name}_{part.name}", getattr(value, part.name)) for part in fields(value)]


def mean_share(bounds: Iterable[tuple[float, float]]) -> Share:
    """The mean of one or more shares with bounds: the means of the bounds.

    >>> mean_share([(0.0, 0.5), (1.0, 1.0)])
    Share(low=0.5, high=0.75)
    """
    return Share(*(math.fsum(ends) / len(ends) for ends in zip(*bounds, strict=True)))


def ratio_share(parts: Sequence[tuple[float, float]], wholes: Sequence[tuple[float, float]]) -> Share | None:
    """The sum of some parts as a share of the sum of their wholes; None if the wholes may add up to 0.

    >>> ratio_share([(0.1, 0.2)], [(0.4, 0.5)]), ratio_share([(0.0, 0.0)], [(0.0, 0.1)])
    (Share(low=0.2, high=0.5), None)
    """
    (low, high), (least, most) = ([math.fsum(ends) for ends in zip(*each, strict=True)] for each in (parts, wholes))
    return Share(low / most, min(1.0, high / least)) if least > 0.0 else None


def make_insights(records: Sequence[Record]) -> tuple[Insight, ...]:
    """All insights, in the order of `TABLES`; a table without answers has no lines."""
    starts = ("cr", "ar", percent_column(PERCENTS[0]))
    known = [
        record
        for record in records
        if record["method"] in ("map", "refine") and None not in [record[f"{start}_low"] for start in starts]
    ]
    # One record for each question: the narrowest answer.
    found = _narrowest(known, INSIGHT_SETTINGS, ("cr", "ar"))
    return tuple(make(found) for make in TABLES.values())


def _show_collapse(records: Sequence[Record]) -> Insight:
    lines = []
    for settings, model, of_model in _by_model(records):
        compared = _balanced(of_model, "combination", ("image",))
        lost = {name: _mean(each, "ir") for name, each in compared.items()}
        ranking = rank(Label.IR, "", [(share.low, share.high) for share in lost.values()])
        for place in ranking.ranks:
            name = list(lost)[place.result]
            lines.append(
                settings
                | {"model": model, "neurons": of_model[0]["neurons"], "combination": name}
                | {"rank": Ranks(place.first, place.last), Label.IR: lost[name], Label.MR: _mean(compared[name], "mr")}
                | {"images": len(compared[name]), "images where most": _most_often(compared, name)}
            )
    note = "IR, MR: mean shares of the domain; a rank is a range if bounds leave the order open or values are equal"
    return Insight("collapse", "which perturbation takes most attention away, for every network", note, tuple(lines))


def _show_silent(records: Sequence[Record]) -> Insight:
    lines = []
    for settings, model, of_model in _by_model(records):
        parts = [(name, each) for (name,), each in _by(of_model, "combination")]
        for combination, each in parts + ([(ALL, of_model)] if len(parts) > 1 else []):
            counted = [one for one in each if one["method"] == "map" and one["regions_cr_ir"] is not None]
            regions = sum(one["regions"] for one in counted)
            silent = sum(one["regions_cr_ir"] for one in counted)
            lines.append(
                settings
                | {"model": model, "neurons": each[0]["neurons"], "combination": combination}
                | {"problems": len(each), "with CR&IR": sum(one["cr_ir_low"] > 0.0 for one in each)}
                | {"not known": sum(one["cr_ir_low"] <= 0.0 < one["cr_ir_high"] for one in each)}
                | {Joint.LABEL_ALONE: _mean(each, "cr_ir"), Label.CR: _mean(each, "cr")}
                | {"CR&IR of CR": ratio_share(_all(each, "cr_ir"), _all(each, "cr"))}
                | {"regions": regions or None, "regions CR&IR": silent if regions else None}
            )
    note = "CR&IR: mean share of the domain with the same label and other evidence; regions: of maps only"
    return Insight("silent", "how often the label is kept, but the attention is not", note, tuple(lines))


def _show_delta(records: Sequence[Record]) -> Insight:
    records = [{**one, "threshold": threshold_of(one)} for one in records]
    deltas = list(dict.fromkeys(one["threshold"] for one in records))
    lines = []
    for settings, own in _by_settings(records, without=THRESHOLDS):
        for (model, combination), each in _by(own, "model", "combination"):
            by_delta = _balanced(each, "threshold", ("image",))
            if not by_delta:
                continue
            first = next(iter(by_delta.values()))
            line = settings | {"model": model, "combination": combination, "images": len(first)}
            if all(one["attention"] in (None, "distance") for one in first):
                line |= {f"AR at {percent}": _mean(first, percent_column(percent)) for percent in PERCENTS}
            line |= {f"AR at {one}": _mean(by_delta[one], "ar") if one in by_delta else None for one in deltas}
            lines.append(line | {"map size": sum(one["map_size"] for one in first) / len(first)})
    note = "mean shares of the domain; percentages are of the size of the original maps, whose mean is the last column"
    return Insight("delta", "how the share of AR varies with the threshold", note, tuple(lines))


def _show_filter(records: Sequence[Record]) -> Insight:
    lines = []
    # The percentages are those of distances.
    records = [one for one in records if one["attention"] in (None, "distance")]
    for settings, own in _by_settings(records, without=(*THRESHOLDS, "filter", "dist")):
        # These shares do not depend on the δ of the question: one answer for each problem.
        once = _narrowest(own, ("filter", "dist"), [percent_column(part) for part in PERCENTS])
        tagged = [{**one, "way": (one["filter"], one["dist"])} for one in once]
        ways = _balanced(tagged, "way", ("model", "image", "combination"))
        models = list(dict.fromkeys(one["model"] for each in ways.values() for one in each))
        for model in [*models, ALL] if len(models) > 1 else models:
            for (name, dist), each in ways.items():
                chosen = [one for one in each if model in (ALL, one["model"])]
                line = settings | {"model": model, "filter": name, "dist": dist, "problems": len(chosen)}
                lines.append(line | {f"AR at {part}": _mean(chosen, percent_column(part)) for part in PERCENTS})
    note = "mean shares of the domain on the problems that all filters and distances have; percentages as for delta"
    if len({(one["filter"], one["dist"]) for one in records}) == 1:
        note += '; this plan has one filter and distance: give runs several, filter = ["identity", "abs", "mean"]'
    return Insight("filter", "how the share of AR varies with filter and distance", note, tuple(lines))


def _show_ranking(records: Sequence[Record]) -> Insight:
    lines = []
    for settings, of_setting in _by_settings(records):
        for (group,), own in _by(of_setting, "group"):
            networks = _balanced(own, "model", ("image", "combination"))
            names = list(networks)
            if len(names) < 2:
                continue
            shares = {kind: [_mean(networks[name], kind) for name in names] for kind in ("cr", "ar", "cr_ar")}
            rankings = {kind: rank("share", "", [(one.low, one.high) for one in each]) for kind, each in shares.items()}
            turned = find_contrary(rankings["cr"], rankings["ar"])
            for number in (place.result for place in rankings["cr"].ranks):
                line = settings | {"group": group, "model": names[number], "problems": len(networks[names[number]])}
                for kind, title in (("cr", Label.CR), ("ar", Label.AR), ("cr_ar", Joint.BOTH)):
                    line |= {title: shares[kind][number], f"rank {title}": _ranks(rankings[kind], number)}
                overtaken = [names[before] for before, after in turned if after == number]
                lines.append(line | {"passes by AR": ", ".join(overtaken)})
    note = "mean shares on the problems that all networks of a group have, by CR; the last column: networks that are "
    note += "proved to come before by CR, and behind by AR"
    return Insight("ranking", "how label and attention rank networks", note, tuple(lines))


TABLES: Mapping[str, Callable[[Sequence[Record]], Insight]] = dict(
    zip(INSIGHTS, (_show_collapse, _show_silent, _show_delta, _show_filter, _show_ranking), strict=True)
)


def _narrowest(records: Sequence[Record], names: Sequence[str], starts: Sequence[str]) -> list[Record]:
    """For each problem, and each value of some columns, the record with the narrowest bounds of some shares."""

    def width(record: Record) -> float:
        return sum(high - low for start in starts for low, high in _all([record], start))

    return [min(own, key=width) for _, own in _by(records, "model", "image", "combination", *names)]


def _by(records: Iterable[Record], *names: str) -> list[tuple[tuple[Any, ...], list[Record]]]:
    """Records by the values of some columns, in the order of their first records."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[name] for name in names), []).append(record)
    return list(groups.items())


def _by_settings(records: Sequence[Record], *, without: tuple[str, ...] = ()) -> list[tuple[Record, list[Record]]]:
    """Records by the settings that differ between them, each with its name."""
    several = [name for name in INSIGHT_SETTINGS if len({one[name] for one in records}) > 1 and name not in without]
    return [(dict(zip(several, values, strict=True)), own) for values, own in _by(records, *several)]


def _by_model(records: Sequence[Record]) -> list[tuple[Record, str, list[Record]]]:
    return [(settings, name, each) for settings, own in _by_settings(records) for (name,), each in _by(own, "model")]


def _balanced(records: Sequence[Record], kind: str, names: tuple[str, ...]) -> dict[Any, list[Record]]:
    """Records by the column to compare, only those whose other columns occur with all its values; may be empty."""
    groups = {value: {tuple(one[name] for name in names): one for one in each} for (value,), each in _by(records, kind)}
    common = set.intersection(*(set(each) for each in groups.values())) if groups else set()
    return {value: [own[key] for key in own if key in common] for value, own in groups.items()} if common else {}


def _all(records: Sequence[Record], start: str) -> list[tuple[float, float]]:
    return [(one[f"{start}_low"], one[f"{start}_high"]) for one in records]


def _mean(records: Sequence[Record], start: str) -> Share:
    return mean_share(_all(records, start))


def _most_often(compared: Mapping[str, Sequence[Record]], name: str) -> int:
    """The number of images for which a combination is proved to take more attention away than every other."""
    most: dict[str, float] = {}
    for one in (one for other, each in compared.items() if other != name for one in each):
        most[one["image"]] = max(one["ir_high"], most.get(one["image"], -1.0))
    return sum(one["ir_low"] > most.get(one["image"], -1.0) for one in compared[name])


def _ranks(ranking: Ranking, number: int) -> Ranks:
    found = next(place for place in ranking.ranks if place.result == number)
    return Ranks(found.first, found.last)
