"""From the records of a campaign to the tables that the paper argues in words: attention, label, δ, filter, ranking.

Only maps and refinements count, whose bounds hold for the whole domain. What is compared is compared on the same
problems; means over images have the means of proved bounds. Solves nothing and prints nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..compare.rank import Ranking, find_contrary, rank
from .insight import Insight, Ranks, Share, as_data, mean_share, ratio_share, to_csv, to_text
from .schema import PERCENTS, percent_column
from .table import Record

__all__ = ["TABLES", "Insight", "as_data", "make_insights", "to_csv", "to_text"]

METHODS = ("map", "refine")
SETTINGS = ("delta", "filter", "dist", "classes")
ALL = "all"
Bounds = tuple[float, float]
Line = dict[str, Any]


def make_insights(records: Sequence[Record]) -> tuple[Insight, ...]:
    """All tables, in the order of `TABLES`; those that nothing is known for have no lines."""
    found = domain_records(records)
    return tuple(make(found) for make in TABLES.values())


def domain_records(records: Sequence[Record]) -> list[Record]:
    """The records of maps and refinements that know both properties, one for each question: the narrowest answer."""
    known = [
        record
        for record in records
        if record["method"] in METHODS
        and None not in [record[f"{start}_low"] for start in ("cr", "ar", percent_column(PERCENTS[0]))]
    ]
    return _narrowest(known, SETTINGS, ("cr", "ar"))


def show_collapse(records: Sequence[Record]) -> Insight:
    """Which perturbation takes most attention away, for every network."""
    lines = []
    for settings, own in _by(records, *_several(records)):
        for (model,), of_model in _by(own, "model"):
            compared = _balanced(of_model, "combination", ("image",))
            if not compared:
                continue
            lost = {name: _mean(each, "ir") for name, each in compared.items()}
            ranking = rank("IR", "", [(share.low, share.high) for share in lost.values()])
            names = list(lost)
            for place in ranking.ranks:
                name = names[place.result]
                lines.append(
                    _named(records, settings)
                    | {"model": model, "neurons": of_model[0]["neurons"], "combination": name}
                    | {"rank": Ranks(place.first, place.last), "IR": lost[name], "MR": _mean(compared[name], "mr")}
                    | {"images": len(compared[name]), "images where most": _most_often(compared, name)}
                )
    note = "IR, MR: mean shares of the domain; a rank is a range where bounds leave the order open, or values are equal"
    return Insight("collapse", "which perturbation takes most attention away, for every network", note, tuple(lines))


def show_silent(records: Sequence[Record]) -> Insight:
    """How often the label is kept and the attention is not."""
    lines = []
    for settings, own in _by(records, *_several(records)):
        for (model,), of_model in _by(own, "model"):
            parts = [(name, each) for (name,), each in _by(of_model, "combination")]
            for combination, each in parts + ([(ALL, of_model)] if len(parts) > 1 else []):
                counted = [one for one in each if one["method"] == "map" and one["regions_cr_ir"] is not None]
                regions = sum(one["regions"] for one in counted)
                silent = sum(one["regions_cr_ir"] for one in counted)
                lines.append(
                    _named(records, settings)
                    | {"model": model, "neurons": each[0]["neurons"], "combination": combination}
                    | {"problems": len(each), "with CR&IR": sum(one["cr_ir_low"] > 0.0 for one in each)}
                    | {"not known": sum(one["cr_ir_low"] <= 0.0 < one["cr_ir_high"] for one in each)}
                    | {"CR&IR": _mean(each, "cr_ir"), "CR": _mean(each, "cr")}
                    | {"CR&IR of CR": ratio_share(_all(each, "cr_ir"), _all(each, "cr"))}
                    | {"regions": regions or None, "regions CR&IR": silent if regions else None}
                )
    note = "CR&IR: mean share of the domain with the right label and other evidence; regions: of maps alone"
    return Insight("silent", "how often the label is kept, but the attention is not", note, tuple(lines))


def show_delta(records: Sequence[Record]) -> Insight:
    """How the share of AR moves with δ."""
    deltas = list(dict.fromkeys(one["delta"] for one in records))
    lines = []
    for settings, own in _by(records, *_several(records, without=("delta",))):
        for (model, combination), each in _by(own, "model", "combination"):
            by_delta = _balanced(each, "delta", ("image",))
            first = next(iter(by_delta.values()), [])
            if not first:
                continue
            line = _named(records, settings, without=("delta",))
            line |= {"model": model, "combination": combination, "images": len(first)}
            line |= {f"AR at {percent}": _mean(first, percent_column(percent)) for percent in PERCENTS}
            line |= {
                f"AR at δ={delta}": _mean(by_delta[delta], "ar") if delta in by_delta else None for delta in deltas
            }
            lines.append(line | {"map size": sum(one["map_size"] for one in first) / len(first)})
    note = "mean shares of the domain; percentages are of the size of the original maps, whose mean is the last column"
    return Insight("delta", "how the share of AR moves with δ", note, tuple(lines))


def show_filter(records: Sequence[Record]) -> Insight:
    """How the share of AR moves with the filter and the distance."""
    lines = []
    for (classes,), own in _by(records, "classes"):
        # The shares of this table do not depend on the δ that was asked for: one answer for each problem.
        once = _narrowest(own, ("filter", "dist"), [percent_column(part) for part in PERCENTS])
        tagged = [{**one, "way": (one["filter"], one["dist"])} for one in once]
        ways = _balanced(tagged, "way", ("model", "image", "combination"))
        models = list(dict.fromkeys(one["model"] for each in ways.values() for one in each))
        for model in [*models, ALL] if len(models) > 1 else models:
            for (name, dist), each in ways.items():
                chosen = [one for one in each if model in (ALL, one["model"])]
                line: Line = {"classes": classes} if "classes" in _several(records) else {}
                line |= {"model": model, "filter": name, "dist": dist, "problems": len(chosen)}
                lines.append(line | {f"AR at {part}": _mean(chosen, percent_column(part)) for part in PERCENTS})
    ways_count = len({(one["filter"], one["dist"]) for one in records})
    note = "mean shares of the domain on the problems that all filters and distances have; percentages as for delta"
    if ways_count == 1:
        note += '; this plan has one filter and distance: give runs several, filter = ["identity", "abs", "mean"]'
    return Insight("filter", "how the share of AR moves with filter and distance", note, tuple(lines))


def show_ranking(records: Sequence[Record]) -> Insight:
    """How label and attention rank networks differently."""
    lines = []
    for settings, of_setting in _by(records, *_several(records)):
        for (group,), own in _by(of_setting, "group"):
            networks = _balanced(own, "model", ("image", "combination"))
            if len(networks) < 2:
                continue
            names = list(networks)
            shares = {kind: [_mean(networks[name], kind) for name in names] for kind in ("cr", "ar", "cr_ar")}
            rankings = {kind: rank("share", "", [(one.low, one.high) for one in each]) for kind, each in shares.items()}
            turned = find_contrary(rankings["cr"], rankings["ar"])
            for place in rankings["cr"].ranks:
                number = place.result
                line = _named(records, settings) | {"group": group, "model": names[number]}
                line |= {"problems": len(networks[names[number]])}
                for kind, title in (("cr", "CR"), ("ar", "AR"), ("cr_ar", "CR&AR")):
                    line |= {title: shares[kind][number], f"rank {title}": _ranks(rankings[kind], number)}
                overtaken = [names[before] for before, after in turned if after == number]
                lines.append(line | {"passes by AR": ", ".join(overtaken)})
    note = (
        "mean shares on the problems that all networks of a group have, by CR; the last column: networks that are "
        "proved to come before by CR, and behind by AR"
    )
    return Insight("ranking", "how label and attention rank networks", note, tuple(lines))


TABLES: Mapping[str, Callable[[Sequence[Record]], Insight]] = {
    "collapse": show_collapse,
    "silent": show_silent,
    "delta": show_delta,
    "filter": show_filter,
    "ranking": show_ranking,
}


def _problem(record: Record) -> tuple[str, str, str]:
    return record["model"], record["image"], record["combination"]


def _narrowest(records: Sequence[Record], names: Sequence[str], starts: Sequence[str]) -> list[Record]:
    """For each problem, and each value of some columns, the record with the narrowest bounds of some shares."""
    best: dict[tuple[Any, ...], tuple[float, Record]] = {}
    for record in records:
        question = (*_problem(record), *(record[name] for name in names))
        width = sum(high - low for start in starts for low, high in _all([record], start))
        if question not in best or width < best[question][0]:
            best[question] = width, record
    return [record for _, record in best.values()]


def _several(records: Sequence[Record], *, without: tuple[str, ...] = ()) -> list[str]:
    """Which settings differ between records, and so have to be told."""
    return [name for name in SETTINGS if name not in without and len({one[name] for one in records}) > 1]


def _named(records: Sequence[Record], values: tuple[Any, ...], *, without: tuple[str, ...] = ()) -> Line:
    return dict(zip(_several(records, without=without), values, strict=True))


def _by(records: Iterable[Record], *names: str) -> list[tuple[tuple[Any, ...], list[Record]]]:
    """Records by the values of some columns, in the order in which these come."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[name] for name in names), []).append(record)
    return list(groups.items())


def _balanced(records: Sequence[Record], kind: str, names: tuple[str, ...]) -> dict[Any, list[Record]]:
    """Records by what is compared, those only whose other columns all of them have; empty where there are none."""
    groups = {value: each for (value,), each in _by(records, kind)}
    if not groups:
        return {}
    kept = set.intersection(*({tuple(one[name] for name in names) for one in each} for each in groups.values()))
    if not kept:
        return {}
    return {
        value: [one for one in each if tuple(one[name] for name in names) in kept] for value, each in groups.items()
    }


def _all(records: Sequence[Record], start: str) -> list[Bounds]:
    return [(one[f"{start}_low"], one[f"{start}_high"]) for one in records]


def _mean(records: Sequence[Record], start: str) -> Share:
    return mean_share(_all(records, start))


def _most_often(compared: Mapping[str, Sequence[Record]], name: str) -> int:
    """For how many images a combination is proved to take more attention away than every other."""
    by_image: dict[str, list[float]] = {}
    for other, each in compared.items():
        for one in each:
            by_image.setdefault(one["image"], []).extend([one["ir_high"]] if other != name else [])
    return sum(all(one["ir_low"] > high for high in by_image[one["image"]]) for one in compared[name])


def _ranks(ranking: Ranking, number: int) -> Ranks:
    found = next(place for place in ranking.ranks if place.result == number)
    return Ranks(found.first, found.last)
