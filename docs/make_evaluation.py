"""Writes docs/evaluation.md, and its pictures, from a campaign that has ended: the paper's table beside ours.

    steadygaze campaign run paper --out paper
    python docs/make_evaluation.py paper --machine "2 cores of …"

Every number comes from the campaign, or from docs/paper_statuses.json, which holds the table of the paper.
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

from steadygaze.campaign import Plan, Store, make_records
from steadygaze.campaign.figures import NAMES, draw_figures
from steadygaze.campaign.insight import Insight, Ranks, Share
from steadygaze.campaign.insights import make_insights
from steadygaze.campaign.table import STATUSES, count_statuses
from steadygaze.errors import SteadygazeError

FOLDER = Path(__file__).resolve().parent
PAPER = FOLDER / "paper_statuses.json"
WIDTH, COLOURS = 1200, 128
TITLES = {
    "A": "how problems ended where attention is asked",
    "B": "how problems ended for the label alone",
    "C": "seconds against neurons",
    "D": "regions by combination",
    "E": "seconds against regions",
    "F": "seconds against face checks",
    "G": "the regions that one search visited",
}
Record = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Write the page; 2 where the campaign is not one to write it from."""
    parser = argparse.ArgumentParser(description="Writes docs/evaluation.md from a campaign that has ended.")
    parser.add_argument("campaign", help="the directory of the campaign")
    parser.add_argument("--filters", help="the directory of a campaign with several filters and distances")
    parser.add_argument("--machine", help="what the campaign ran on, in words")
    parser.add_argument("--out", default=str(FOLDER / "evaluation.md"), help="the page to write")
    given = parser.parse_args(arguments)
    target = Path(given.out)
    try:
        store = Store.open(given.campaign)
        filters = None if given.filters is None else Store.open(given.filters)
        text = make_page(store, filters=filters, machine=given.machine)
        pictures = make_pictures(store, target.parent / "images" / "evaluation")
    except (SteadygazeError, ValueError) as error:
        print(f"make_evaluation: {error}", file=sys.stderr)
        return 2
    if str(store.head["commit"]).endswith("+changes"):
        print("make_evaluation: the campaign was run with changes that are in no commit", file=sys.stderr)
    target.write_text(text + "".join(show_pictures(pictures)), encoding="utf-8")
    return 0


def make_page(store: Store, *, filters: Store | None = None, machine: str | None = None) -> str:
    """The page without its pictures; ValueError where a campaign has not ended."""
    for one in (store, filters):
        left = 0 if one is None else len(one.plan.tasks) - len(one.rows())
        if left:
            raise ValueError(f"{left} problems have not ended; run the campaign to its end first")
    plan, records = store.plan, make_records(store)
    paper = json.loads(PAPER.read_text(encoding="utf-8"))
    parts = [
        *_opening(store, machine),
        *_statuses(plan, records, paper),
        *_comparable(plan, paper),
        *_efforts(records),
        *_insights(make_insights(plan, records), is_alone=filters is None),
    ]
    if filters is not None:
        found = [one for one in make_insights(filters.plan, make_records(filters)) if one.name == "filter"]
        parts += [f"From the campaign `{filters.plan.name}` at commit {_commit(filters)}.", "", *_insight(found[0])]
    return "\n".join(parts).rstrip() + "\n"


def _opening(store: Store, machine: str | None) -> list[str]:
    plan, made = store.plan, store.head["made_by"]
    versions = ", ".join(f"{name} {version}" for name, version in made.items() if name != "source")
    limits = sorted({(task.seconds, task.memory_gib) for task in plan.tasks})
    words = " or ".join(f"{seconds:g} s and {memory:g} GiB" for seconds, memory in limits)
    return [
        "# The paper's evaluation",
        "",
        "<!-- Written by docs/make_evaluation.py from a campaign; run it again, do not edit. -->",
        "",
        f"The campaign `{plan.name}`: {len(plan.tasks):,} problems, with limits of {words} each, run at commit "
        f"{_commit(store)} with {versions}. Machine: {machine or 'not recorded'}. How to run it: "
        "[campaign.md](campaign.md).",
        "",
    ]


def _commit(store: Store) -> str:
    commit = store.head["commit"]
    return "(not known)" if commit is None else f"`{commit}`"


def _statuses(plan: Plan, records: Sequence[Record], paper: Mapping[str, Any]) -> list[str]:
    """Our table beside the paper's; rows that only one of them has are there too."""
    theirs = {(row[0], row[1]): dict(zip(paper["columns"], row, strict=True)) for row in paper["rows"]}
    rows, both, met = [], [], set()
    for line in count_statuses(plan, list(records)):
        kind = line["algorithm"], line["neurons"]
        other = theirs.get(kind)
        met.add(kind)
        both += [] if other is None else [(line, other)]
        settings = [str(line[name]) for name in ("delta", "filter", "dist") if name in line]
        own = [*(str(line[status]) for status in STATUSES), _seconds(line["median s"]), _seconds(line["most s"])]
        rows.append([", ".join([kind[0], *settings]), f"{kind[1]:,}", *own, *_counts(other)])
    lacking = [kind for kind in theirs if kind not in met]
    rows += [[kind[0], f"{kind[1]:,}", *[""] * (len(STATUSES) + 2), *_counts(theirs[kind])] for kind in lacking]
    heads = ["algorithm", "neurons", *STATUSES, "median s", "most s", *(f"{status} (paper)" for status in STATUSES)]
    sentences = []
    if both:
        ours, other = (_unanswered([pair[place] for pair in both]) for place in (0, 1))
        sentences.append(
            f"On the rows that both have, {ours} of our problems ended as Timeout or Failed; of the paper's, {other}."
        )
    if lacking:
        names = ", ".join(f"{algorithm} on {neurons:,} neurons" for algorithm, neurons in lacking)
        sentences.append(f"Rows of the paper that this campaign does not have: {names}.")
    return [
        "## How problems ended",
        "",
        f"Beside ours, the numbers of the paper: {paper['source']}. *Robust* has the paper's meaning, nothing that was "
        "visited or decided violates the property; what is proved of the whole domain is in the table after next.",
        "",
        *_table(heads, rows, left={0}),
        *(line for sentence in sentences for line in (sentence, "")),
    ]


def _counts(line: Mapping[str, Any] | None) -> list[str]:
    return ["" if line is None else str(line[status]) for status in STATUSES]


def _unanswered(lines: Sequence[Mapping[str, Any]]) -> str:
    count = sum(line["Timeout"] + line["Failed"] for line in lines)
    return f"{count:,} of {sum(line[status] for line in lines for status in STATUSES):,}"


def _comparable(plan: Plan, paper: Mapping[str, Any]) -> list[str]:
    neurons = ", ".join(f"{size:,}" for size in sorted({model.neurons for model in plan.models.values()}))
    theirs = ", ".join(f"{size:,}" for size in sorted({row[1] for row in paper["rows"]}))
    settings = sorted({(task.delta, task.filter, task.dist) for task in plan.tasks})
    told = "; ".join(f"δ = {delta}, {name}, {dist.upper()}" for delta, name, dist in settings)
    widths = sorted({task.w_delta for task in plan.tasks if task.w_delta is not None})
    told += "".join(f", w^δ = {width:g}" for width in widths)
    seconds, memory = (
        " or ".join(f"{value:g}" for value in sorted({getattr(task, name) for task in plan.tasks}))
        for name in ("seconds", "memory_gib")
    )
    specs = "; ".join(
        f"{name} is {' with '.join(f'`{spec}`' for spec in each)}" for name, each in plan.combinations.items()
    )
    return [
        "## What is comparable, and what is not",
        "",
        "Comparable:",
        "",
        f"* the questions: networks of {neurons} neurons (the paper: {theirs}); the images {_images(plan)} (the paper: "
        f"indexes 69990 to 69999 of each set); {told} (the paper: δ = 3.0, identity, L2, w^δ = 0.2);",
        "* how many problems a method brings to an answer within its limits, by Timeout and Failed: here within "
        f"{seconds} s and {memory} GiB, in the paper within {paper['seconds']:,} s and {paper['memory_gib']} GiB.",
        "",
        "Not comparable:",
        "",
        "* Robust against NotRobust, row by row: the paper publishes no weights, so the networks are of our own "
        "training, and the layout of the convolutional ones is our reading;",
        f"* the domains: the paper gives neither patch nor translation, nor how far they go; here {specs};",
        f"* seconds: another machine (the paper: {paper['machine']}), compiled code, and one thread for a problem;",
        "* regions and face checks of bfs and gbs: the searches are corrected where the printed ones lose or invent "
        "regions, so that all neurons that vanish on a face flip at once ([paper.md](paper.md));",
        "* `map`, `refine` and `boundary` are not in the paper.",
        "",
    ]


def _images(plan: Plan) -> str:
    parts = []
    for group in dict.fromkeys(image.group for image in plan.images.values()):
        names = [image.name for image in plan.images.values() if image.group == group]
        ends = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]}"
        parts.append(f"{ends} ({len(names)})")
    return ", ".join(parts)


def _efforts(records: Sequence[Record]) -> list[str]:
    """Time, memory and what is proved, for every algorithm."""
    rows = []
    for name in dict.fromkeys(record["algorithm"] for record in records):
        own = [record for record in records if record["algorithm"] == name]
        seconds = [record["seconds"] for record in own if record["seconds"] is not None]
        peaks = [record["peak_mib"] for record in own if record["peak_mib"] is not None]
        open_shares = [record["undecided"] for record in own if record["undecided"] is not None]
        verdicts = [record["verdict"] for record in own]
        shares = [f"{median(open_shares):.2g}", f"{max(open_shares):.2g}"] if open_shares else ["", ""]
        efforts = [f"{sum(seconds):,.0f}" if seconds else "", f"{max(peaks):,.0f}" if peaks else ""]
        counts = [str(verdicts.count("robust")), str(verdicts.count("not robust"))]
        rows.append([name, str(len(own)), *counts, *shares, *efforts])
    heads = ["algorithm", "problems", "proved robust", "proved not robust", "undecided share (median)"]
    heads += ["undecided share (most)", "seconds in all", "most MiB"]
    reasons = [record for record in records if record["reason"]]
    listed = [f"* `{record['key']}`: {record['status']}, {record['reason']}" for record in reasons[:20]]
    more = [f"* and {len(reasons) - 20} more"] if len(reasons) > 20 else []
    problems = ["Problems without an answer:", "", *listed, *more, ""] if reasons else []
    return ["## What is proved, time and memory", "", *_table(heads, rows, left={0}), *problems]


def _insights(insights: Sequence[Insight], *, is_alone: bool) -> list[str]:
    chosen = [one for one in insights if one.name != "filter" or is_alone]
    return ["## What the maps show", "", *(line for insight in chosen for line in _insight(insight))]


def _insight(insight: Insight) -> list[str]:
    title, note = (f"{text[0].upper()}{text[1:]}" for text in (insight.title, insight.note))
    if not insight.lines:
        return [f"### {title}", "", "No problem to tell it from.", ""]
    heads = list(insight.lines[0])
    rows = [[_cell(line[head]) for head in heads] for line in insight.lines]
    texts = {place for place, head in enumerate(heads) if isinstance(insight.lines[0][head], str)}
    return [f"### {title}", "", *_sentence(insight), *_table(heads, rows, left=texts), f"{note}.", ""]


def _sentence(insight: Insight) -> list[str]:
    """What a table says, in a sentence that follows from it."""
    lines = insight.lines
    if insight.name == "collapse":
        first = [line["combination"] for line in lines if line["rank"] == Ranks(1, 1)]
        networks = len(
            {tuple(line[name] for name in line if name in ("model", "delta", "filter", "dist")) for line in lines}
        )
        counts = {name: first.count(name) for name in sorted(set(first), key=first.count, reverse=True)}
        told = ", ".join(f"{name} for {count}" for name, count in counts.items())
        return (
            [f"Of {networks} networks, the perturbation that takes most attention away is {told}.", ""] if told else []
        )
    if insight.name == "silent":
        parts = [line for line in lines if line["combination"] != "all"]
        count, total = sum(line["with CR&IR"] for line in parts), sum(line["problems"] for line in parts)
        return (
            [f"In {count:,} of {total:,} problems a part of the domain is proved to be CR and IR.", ""] if total else []
        )
    if insight.name == "ranking":
        turned = sum(len(line["passes by AR"].split(", ")) for line in lines if line["passes by AR"])
        return (
            [f"Label and attention are proved to rank {turned} pairs of networks the other way round.", ""]
            if lines
            else []
        )
    return []


def make_pictures(store: Store, folder: Path) -> dict[str, Path]:
    """Write the figures of a campaign, made smaller, into a folder; those that there are, by letter."""
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
    """The part of the page that shows pictures, which are in `images/evaluation` beside it."""
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
    """A table; the columns of these numbers are texts."""
    rule = "|".join("---" if place in left else "---:" for place in range(len(heads)))
    escaped = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (heads, *rows)]
    return [f"| {escaped[0]} |", f"|{rule}|", *(f"| {row} |" for row in escaped[1:]), ""]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
