"""Writes docs/evaluation.md, and its pictures, from a campaign that has ended: the paper's table beside ours.

    steadygaze campaign run paper --out paper
    steadygaze campaign run filters --out filters
    steadygaze campaign run perturbations --out perturbations
    steadygaze campaign run networks --out networks
    steadygaze campaign run object --out object
    python docs/make_evaluation.py paper --filters filters --perturbations perturbations --networks networks \\
        --object object --machine "2 cores of …"

Every number comes from the campaigns, or from docs/paper_statuses.json, which holds the table and the settings of the
paper. The script also writes the problems of the campaign beside the page, as evaluation.parquet.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from PIL import Image

from steadygaze.campaign.figures import NAMES, draw_figures
from steadygaze.campaign.stored_campaign import Plan, Store
from steadygaze.campaign.tables import (
    PAPER_STATUSES,
    SETTINGS,
    STATUSES,
    Insight,
    Ranks,
    Share,
    count_statuses,
    make_insights,
    make_records,
    to_parquet,
)
from steadygaze.errors import SteadygazeError
from steadygaze.words import percent_down

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from evaluation_object import object_picture, object_section, proved_shares  # noqa: E402

PAPER = FOLDER / "paper_statuses.json"
WIDTH, COLOURS = 1200, 128
TITLES = {
    "A": "how problems about attention ended",
    "B": "how problems about the label alone ended",
    "C": "seconds against neurons",
    "D": "regions by combination",
    "E": "seconds against regions",
    "F": "seconds against face checks",
    "G": "the regions that one search visited",
}
Record = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Write the page; return 2 if the campaign is unsuitable."""
    parser = argparse.ArgumentParser(description="Writes docs/evaluation.md from a campaign that has ended.")
    parser.add_argument("campaign", help="the directory of the campaign")
    parser.add_argument("--filters", help="the directory of a campaign with several filters and distances")
    parser.add_argument("--perturbations", help="the directory of a campaign with perturbations one at a time")
    parser.add_argument("--networks", help="the directory of a campaign with networks that are not chains")
    parser.add_argument("--object", help="the directory of a campaign about attention on the object")
    parser.add_argument("--machine", help="the machine of the campaign, in words")
    parser.add_argument("--out", default=str(FOLDER / "evaluation.md"), help="the page to write")
    given = parser.parse_args(arguments)
    target = Path(given.out)
    try:
        store = Store.open(given.campaign)
        others = {
            table: Store.open(place)
            for table, place in (("filter", given.filters), ("collapse", given.perturbations))
            if place is not None
        }
        networks = None if given.networks is None else Store.open(given.networks)
        on_object = None if given.object is None else Store.open(given.object)
        text = make_page(store, others=others, networks=networks, on_object=on_object, machine=given.machine)
        for one in (store, *others.values(), *(one for one in (networks, on_object) if one is not None)):
            if str(one.head.commit).endswith("+changes"):
                raise ValueError(f"{one.directory}: was run with changes that are in no commit; run it from a commit")
        pictures = make_pictures(store, target.parent / "images" / "evaluation")
        if on_object is not None:
            object_picture(proved_shares(make_records(on_object)), target.parent / "images" / "evaluation")
    except (SteadygazeError, ValueError) as error:
        print(f"make_evaluation: {error}", file=sys.stderr)
        return 2
    target.write_text(text + "".join(show_pictures(pictures)), encoding="utf-8")
    target.with_suffix(".parquet").write_bytes(to_parquet(make_records(store)))
    return 0


def make_page(
    store: Store,
    *,
    others: Mapping[str, Store] | None = None,
    networks: Store | None = None,
    on_object: Store | None = None,
    machine: str | None = None,
) -> str:
    """The page without its pictures; ValueError if a campaign has not ended.

    others: further campaigns for single tables, by the names of the tables. networks: a campaign with networks that are
    not chains. on_object: a campaign about attention on the object.
    """
    others = others or {}
    for one in (store, *others.values(), *(one for one in (networks, on_object) if one is not None)):
        left = len(one.plan.tasks) - len(one.rows())
        if left:
            raise ValueError(f"{left} problems have not ended; run the campaign to its end first")
    plan, records = store.plan, make_records(store)
    paper = json.loads(PAPER.read_text(encoding="utf-8"))
    parts = [
        *_opening(store, machine),
        *_statuses(plan, records, paper),
        *_comparable(plan, paper),
        *_efforts(records),
        *([] if networks is None else _networks(networks)),
        *([] if on_object is None else _on_object(on_object)),
        "## Insights",
        "",
    ]
    for insight in make_insights(records):
        # A campaign with one filter cannot compare filters.
        if insight.name != "filter" or "filter" not in others:
            parts += _insight(insight, plan)
        other = others.get(insight.name)
        if other is not None:
            (found,) = [one for one in make_insights(make_records(other)) if one.name == insight.name]
            told = f"From the campaign `{other.plan.name}` at commit {_commit(other)}: {_combinations(other.plan)}."
            parts += _insight(found, other.plan, told=told)
    return "\n".join(parts).rstrip() + "\n"


def _opening(store: Store, machine: str | None) -> list[str]:
    plan, made = store.plan, store.head.made_by
    versions = ", ".join(f"{name} {version}" for name, version in made.items() if name != "source")
    limits = sorted({(task.seconds, task.memory_gib) for task in plan.tasks})
    words = " or ".join(f"{seconds:g} s and {memory:g} GiB" for seconds, memory in limits)
    return [
        "# The paper's evaluation",
        "",
        "<!-- Written by docs/make_evaluation.py from a campaign; run the script again instead of editing. -->",
        "",
        f"The campaign `{plan.name}` has {len(plan.tasks):,} problems with limits of {words} each. It ran at commit "
        f"{_commit(store)} with {versions}. Machine: {machine or 'not recorded'}. "
        "[evaluation.parquet](evaluation.parquet) has a row for every problem; [campaign.md](campaign.md) describes "
        "its columns, and how to run a campaign.",
        "",
    ]


def _commit(store: Store) -> str:
    commit = store.head.commit
    return "(not known)" if commit is None else f"`{commit}`"


def _statuses(plan: Plan, records: Sequence[Record], paper: Mapping[str, Any]) -> list[str]:
    """Our table beside the paper's, with the rows of either."""
    theirs = {(row[0], row[1]): dict(zip(paper["columns"], row, strict=True)) for row in paper["rows"]}
    common = {name: {task.setting(name) for task in plan.tasks} - {None} for name in SETTINGS}
    rows, both, met = [], [], set()
    lines = count_statuses(plan, list(records))
    # The paper has no open verdicts; a column of zeros would be useless.
    mine = [status for status in STATUSES if status in PAPER_STATUSES or any(line[status] for line in lines)]
    for line in lines:
        kind = line["algorithm"], line["neurons"]
        used = {name: {line[name]} - {None} if name in line else common[name] for name in SETTINGS}
        is_theirs = all(used[name] <= {value} for name, value in paper["settings"].items())
        other = theirs.get(kind) if is_theirs else None
        met |= {kind} if is_theirs else set()
        both += [] if other is None else [(line, other)]
        settings = [str(line[name]) for name in SETTINGS if line.get(name) is not None]
        own = [*(str(line[status]) for status in mine), _seconds(line["median s"]), _seconds(line["most s"])]
        rows.append([", ".join([kind[0], *settings]), f"{kind[1]:,}", *own, *_counts(other)])
    lacking = [kind for kind in theirs if kind not in met]
    rows += [[kind[0], f"{kind[1]:,}", *[""] * (len(mine) + 2), *_counts(theirs[kind])] for kind in lacking]
    heads = ["algorithm", "neurons", *mine, "median s", "most s", *(f"{status} (paper)" for status in PAPER_STATUSES)]
    sentences = []
    if both:
        ours, other = (_unanswered([pair[place] for pair in both]) for place in (0, 1))
        sentences.append(
            f"In the rows of both tables, {ours} problems ended as Timeout or Failed here, and {other} in the paper."
        )
    if lacking:
        names = ", ".join(f"{algorithm} on {neurons:,} neurons" for algorithm, neurons in lacking)
        sentences.append(f"This campaign lacks these rows of the paper: {names}.")
    return [
        "## How problems ended",
        "",
        f"The last columns show the paper's numbers: {paper['source']}. *Robust* has the paper's meaning: no visited "
        "or decided part of the domain violates the property. The section *Proofs, time and memory* counts the proofs "
        "for the whole domain.",
        "",
        *_table(heads, rows, left={0}),
        *(line for sentence in sentences for line in (sentence, "")),
    ]


def _counts(line: Mapping[str, Any] | None) -> list[str]:
    return ["" if line is None else str(line[status]) for status in PAPER_STATUSES]


def _unanswered(lines: Sequence[Mapping[str, Any]]) -> str:
    count = sum(line["Timeout"] + line["Failed"] for line in lines)
    return f"{count:,} of {sum(line.get(status, 0) for line in lines for status in STATUSES):,}"


def _comparable(plan: Plan, paper: Mapping[str, Any]) -> list[str]:
    neurons = ", ".join(f"{size:,}" for size in sorted({model.neurons for model in plan.models.values()}))
    theirs = ", ".join(f"{size:,}" for size in sorted({row[1] for row in paper["rows"]}))
    settings = sorted({(task.options["delta"], task.options["filter"], task.options["dist"]) for task in plan.tasks})
    told = "; ".join(f"δ = {delta}, {name}, {dist.upper()}" for delta, name, dist in settings)
    widths = sorted({task.w_delta for task in plan.tasks if task.w_delta is not None})
    told += "".join(f", w^δ = {width:g}" for width in widths)
    seconds, memory = (
        " or ".join(f"{value:g}" for value in sorted({task.setting(name) for task in plan.tasks}))
        for name in ("seconds", "memory_gib")
    )
    return [
        "## Comparison with the paper",
        "",
        "Comparable:",
        "",
        f"* the questions: networks of {neurons} neurons (the paper: {theirs}); the images {_images(plan)} (the paper: "
        f"{paper['images']}); {told} (the paper: {_settings(paper['settings'])});",
        "* the number of problems that a method answers within its limits, by Timeout and Failed: here within "
        f"{seconds} s and {memory} GiB, in the paper within {paper['seconds']:,} s and {paper['memory_gib']} GiB.",
        "",
        "Not comparable:",
        "",
        "* Robust and NotRobust, row by row: the paper publishes no weights, so these networks were trained anew; the "
        "layouts of the convolutional ones were chosen to match the paper's numbers of neurons;",
        "* the domains: the paper specifies neither the patch, nor the translation, nor their ranges; here "
        f"{_combinations(plan)};",
        f"* seconds: another machine (the paper: {paper['machine']}), compiled code, and one thread per problem;",
        "* regions and face checks of bfs and gbs: the printed searches lose or invent regions; the corrected "
        "searches flip all neurons that vanish on a face together ([paper.md](paper.md));",
        "* `map`, `refine` and `boundary`, which the paper does not have.",
        "",
    ]


def _settings(settings: Mapping[str, Any]) -> str:
    names = {"delta": "δ = ", "w_delta": "w^δ = "}
    return ", ".join(f"{names.get(name, '')}{value}" for name, value in settings.items() if name != "classes")


def _combinations(plan: Plan) -> str:
    told = {name: " with ".join(f"`{spec}`" for spec in specs) for name, specs in plan.combinations.items()}
    return "; ".join(f"{name} is {specs}" for name, specs in told.items())


def _images(plan: Plan) -> str:
    parts = []
    for group in dict.fromkeys(image.group for image in plan.images.values()):
        names = [image.name for image in plan.images.values() if image.group == group]
        ends = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]}"
        parts.append(f"{ends} ({len(names)})")
    return ", ".join(parts)


def _efforts(records: Sequence[Record]) -> list[str]:
    """Time, memory and proofs of every algorithm."""
    rows = []
    for name in dict.fromkeys(record["algorithm"] for record in records):
        own = [record for record in records if record["algorithm"] == name]
        seconds = [record["seconds"] for record in own if record["seconds"] is not None]
        peaks = [record["peak_mib"] for record in own if record["peak_mib"] is not None]
        verdicts = [record["verdict"] for record in own]
        counts = [str(verdicts.count("robust")), str(verdicts.count("not robust"))]
        shares = [text for pair in ("cr mr", "ar ir") for text in _open_shares(own, *pair.split())]
        efforts = [f"{sum(seconds):,.0f}" if seconds else "", f"{max(peaks):,.0f}" if peaks else ""]
        rows.append([name, str(len(own)), *counts, *shares, *efforts])
    heads = ["algorithm", "problems", "proved robust", "proved not robust", "label undecided (median)", "(most)"]
    heads += ["attention undecided (median)", "(most)", "seconds in total", "most MiB"]
    reasons = [record for record in records if record["reason"]]
    listed = [f"* `{record['key']}`: {record['status']}, {record['reason']}" for record in reasons[:20]]
    more = [f"* and {len(reasons) - 20} more"] if len(reasons) > 20 else []
    problems = ["Problems without an answer:", "", *listed, *more, ""] if reasons else []
    note = (
        "A part of the domain is undecided if it is proved neither CR nor MR (label), or neither AR nor IR "
        "(attention). A problem without an answer counts as undecided on the whole domain. For searches these shares "
        "are not listed."
    )
    return ["## Proofs, time and memory", "", *_table(heads, rows, left={0}), note, "", *problems]


def _networks(store: Store) -> list[str]:
    """Regions, seconds and shares of networks with windows and branches."""
    plan, records, rows = store.plan, make_records(store), []
    maps = [record for record in records if record["method"] == "map"]
    for model, combination in dict.fromkeys((record["model"], record["combination"]) for record in maps):
        own = [record for record in maps if (record["model"], record["combination"]) == (model, combination)]
        ended = [record for record in own if record["cr_low"] is not None]
        counts = [f"{record['regions']:,}" for record in sorted(ended, key=lambda record: record["regions"])]
        seconds = [record["seconds"] for record in ended]
        rows.append(
            [
                model,
                combination,
                f"{len(ended)} of {len(own)}",
                counts[len(counts) // 2] if counts else "",
                counts[-1] if counts else "",
                *([_seconds(median(seconds)), _seconds(max(seconds))] if seconds else ["", ""]),
                *(_mean_percent(ended, name) for name in ("cr", "ar")),
                *_open_shares(own, "cr", "mr"),
            ]
        )
    heads = ["network", "combination", "maps that ended", "regions (median)", "(most)", "seconds (median)", "(most)"]
    heads += ["CR (mean)", "AR (mean)", "label undecided (median)", "(most)"]
    searches = [record for record in records if record["method"] == "gbs"]
    counts = {status: sum(record["status"] == status for record in searches) for status in PAPER_STATUSES}
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    return [
        "## Networks with max pooling and residual blocks",
        "",
        f"From the campaign `{plan.name}` at commit {_commit(store)}: {len(plan.tasks):,} problems, images "
        f"{_images(plan)}; {_combinations(plan)}. Accuracies and layouts are in the manifest of the bundled networks.",
        "",
        *_table(heads, rows, left={0, 1}),
        f"Searches (gbs) on the same questions, for the label, the attention and both: {told}.",
        "",
    ]


def _on_object(store: Store) -> list[str]:
    """The proved shares of networks trained plainly, with L1, and to look at the object."""
    opening = (
        f"From the campaign `{store.plan.name}` at commit {_commit(store)}: images {_images(store.plan)}; "
        f"{_combinations(store.plan)}."
    )
    return object_section(proved_shares(make_records(store)), opening, _table)


def _mean_percent(records: Sequence[Record], name: str) -> str:
    """The mean proved share of a label, rounded down."""
    shares = [record[f"{name}_low"] for record in records]
    return percent_down(sum(shares) / len(shares)) if shares else ""


def _open_shares(records: Sequence[Record], kept: str, lost: str) -> list[str]:
    """The share of the domain that maps or refinements left undecided in one property: median and most."""
    if records[0]["method"] not in ("map", "refine"):
        return ["", ""]
    shares = [
        1.0 if record[f"{kept}_low"] is None else max(0.0, 1.0 - record[f"{kept}_low"] - record[f"{lost}_low"])
        for record in records
    ]
    return [f"{median(shares):.2g}", f"{max(shares):.2g}"]


def _insight(insight: Insight, plan: Plan, *, told: str | None = None) -> list[str]:
    title, note = (f"{text[0].upper()}{text[1:]}" for text in (insight.title, insight.note))
    opening = [f"### {title}" + (f" (`{plan.name}`)" if told else ""), "", *([told, ""] if told else [])]
    if not insight.lines:
        return [*opening, "No problem of this campaign has the data for this table.", ""]
    heads = list(insight.lines[0])
    rows = [[_cell(line[head]) for head in heads] for line in insight.lines]
    texts = {place for place, head in enumerate(heads) if isinstance(insight.lines[0][head], str)}
    sentence = SENTENCES[insight.name](insight.lines, plan) if insight.name in SENTENCES else None
    return [*opening, *([sentence, ""] if sentence else []), *_table(heads, rows, left=texts), f"{note}.", ""]


def _say_collapse(lines: Sequence[Mapping[str, Any]], plan: Plan) -> str | None:
    """How often each combination is proved to take most attention away, among networks that were run on all of them."""
    networks: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for line in lines:
        networks.setdefault(tuple(line[name] for name in line if name in ("model", *SETTINGS)), []).append(line)
    whole = [own for own in networks.values() if len(own) == len(plan.combinations) > 1]
    first = [line["combination"] for own in whole for line in own if line["rank"] == Ranks(1, 1)]
    if not whole:
        return None
    counts = {name: first.count(name) for name in sorted(set(first), key=first.count, reverse=True)}
    told = [f"{name} takes most attention away in {count}" for name, count in counts.items()]
    told += [f"the bounds leave it open in {len(whole) - len(first)}"] if len(first) < len(whole) else []
    rest = len(networks) - len(whole)
    skipped = f" ({rest} were not answered for all combinations.)" if rest else ""
    return f"Of {len(whole)} networks with all combinations: {', '.join(told)}.{skipped}"


def _say_silent(lines: Sequence[Mapping[str, Any]], plan: Plan) -> str:
    parts = [line for line in lines if line["combination"] in plan.combinations]
    count, total = sum(line["with CR&IR"] for line in parts), sum(line["problems"] for line in parts)
    return f"In {count:,} of {total:,} problems a part of the domain is proved to be CR and IR."


def _say_ranking(lines: Sequence[Mapping[str, Any]], plan: Plan) -> str:
    turned = sum(len(line["passes by AR"].split(", ")) for line in lines if line["passes by AR"])
    return f"For {turned} pairs of networks, label and attention are proved to give opposite ranks."


SENTENCES = {"collapse": _say_collapse, "silent": _say_silent, "ranking": _say_ranking}
"""The sentence that follows from each table."""


def make_pictures(store: Store, folder: Path) -> dict[str, Path]:
    """Write the figures of a campaign, made smaller, into a folder; return the files by letter."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    with tempfile.TemporaryDirectory() as scratch:
        drawn = draw_figures(store, scratch)
        for letter, name in NAMES.items():
            source = next((file for file in drawn.files if file.stem == f"figure-{letter}-{name}"), None)
            if source is None:
                continue
            made[letter] = folder / f"{name}.png"
            with Image.open(source) as picture:
                size = (WIDTH, round(picture.height * WIDTH / picture.width))
                small = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
            small.quantize(COLOURS, dither=Image.Dither.NONE).save(made[letter], optimize=True)
    return made


def show_pictures(pictures: Mapping[str, Path]) -> list[str]:
    """The part of the page that shows the pictures of `images/evaluation`."""
    lines = ["\n## Figures (A) to (G)\n"]
    for letter, path in pictures.items():
        place = f"images/evaluation/{path.name}"
        lines.append(f"\n({letter}) {TITLES[letter][0].upper()}{TITLES[letter][1:]}.\n\n![{TITLES[letter]}]({place})\n")
    return lines if pictures else []


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Share | Ranks | str):
        return str(value)
    return f"{value:,.3g}" if isinstance(value, float) else f"{value:,}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: set[int]) -> list[str]:
    """A table; `left` are the numbers of the columns with texts."""
    rule = "|".join("---" if place in left else "---:" for place in range(len(heads)))
    escaped = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (heads, *rows)]
    return [f"| {escaped[0]} |", f"|{rule}|", *(f"| {row} |" for row in escaped[1:]), ""]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
