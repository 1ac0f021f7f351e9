"""A campaign → one HTML page with all problems, and full reports of single problems that it links to.

Full reports come from results that the campaign kept, or from solving a problem again. Judges and proves nothing.
"""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image, ImageColor

from ..engines import load
from ..errors import OptionError, SteadygazeError, StoreError
from ..labels import Status
from ..report.drawing.colours import JOINT, KEPT, UNKNOWN
from ..report.page import fill, read_asset
from ..report.page.html import ALLOWED, check_target, write_report
from ..requirement import Outcome
from ..words import share_text
from .gate import Gate, judge_each, judge_plan
from .set_requirement import Problem
from .small_maps import LETTERS
from .solving import has_files, located, solve_again
from .stored_campaign import Plan, Store, Task, write_whole
from .tables import make_records, statuses_of

INDEX, PAGES = "index.html", "problems"
FULL = ("kept", "violations", "all", "none")
COLOURS = dict(zip(LETTERS.values(), [*JOINT.values(), KEPT, JOINT["MR&AR"]], strict=True)) | {"-": UNKNOWN}
MEANINGS = {
    "a": "label and attention kept",
    "b": "label kept, attention lost",
    "c": "label lost, attention kept",
    "d": "both lost",
    "-": "undecided",
}
WITHOUT, WITH_WEIGHTS = "-no-weights", re.compile(r"_[0-9a-f]{8}\.html$")
"""The end of the names of reports without weights, and the names of other reports."""
GOOD, BAD, OPEN = "good", "bad", "open"


@dataclass
class Written:
    """The page, the full reports that it links to, and why others are missing."""

    page: Path
    reports: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def write_overview(
    store: Store,
    folder: Path,
    *,
    full: Sequence[str] = ("kept",),
    plan: Plan | None = None,
    weights: bool = True,
    progress: Callable[[str], None] = lambda key: None,
) -> Written:
    """Write the page `index.html` and the full reports that are wanted; replaces earlier pages of steadygaze only.

    full: "kept" (the results that the campaign keeps), "violations", "all", "none", or keys of problems; those without
    a kept result are solved again. plan: says where the files of models and images are that are not bundled. weights:
    whether full reports may hold the weights of small networks; otherwise earlier ones that may are removed.
    """
    _check_wanted(store.plan, full)
    whole = located(store.plan, plan)
    records = {record["key"]: record for record in make_records(store)}
    outcomes = judge_each(store.plan, list(records.values()))
    states = {task.key: _state(records.get(task.key), outcomes[task.key]) for task in store.plan.tasks}
    written = Written(folder / INDEX)
    try:
        (folder / PAGES).mkdir(parents=True, exist_ok=True)
        target = check_target(written.page, force=True)
        for page in () if weights else (folder / PAGES).glob("*.html"):
            if WITH_WEIGHTS.search(page.name):
                page.unlink()
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written ({error.strerror}); choose another --out") from None
    pages: dict[str, str] = {}
    for key, row in store.rows().items():
        if "not_kept" in row["answer"]:
            written.notes.append(f"{key}: its result was not kept: {row['answer']['not_kept']}")
    for task in store.plan.tasks:
        name = f"{task.key}_{store.plan.digest(task)[:8]}{'' if weights else WITHOUT}.html"
        page = folder / PAGES / name
        is_wanted = task.key in full or "all" in full or ("violations" in full and states[task.key][1] == BAD)
        if task.key in records and not page.exists() and "none" not in full:
            progress(task.key)
            _write_page(store, whole, task, page, is_wanted=is_wanted, weights=weights, notes=written.notes)
        if page.exists():
            pages[task.key] = f"{PAGES}/{name}"
            written.reports.append(page)
    text = _fill(store, records, states, pages, folder)
    try:
        write_whole(target, text.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        raise StoreError(f"{written.page}: cannot be written ({error.strerror}); choose another --out") from None
    return written


def _check_wanted(plan: Plan, full: Sequence[str]) -> None:
    known = {task.key for task in plan.tasks}
    for word in full:
        if word not in known and word not in FULL:
            raise OptionError(f"--full {word!r}: no such problem; expected {', '.join(FULL)}, or the key of a problem")


def _write_page(
    store: Store, whole: Plan, task: Task, page: Path, *, is_wanted: bool, weights: bool, notes: list[str]
) -> None:
    """The full report of one problem: from its kept result, or, if it is wanted, by solving it again."""
    kept = store.kept(task.key)
    try:
        if (kept / "result.json").exists():
            write_report(load(kept), page, directory=kept, weights=weights)
        elif is_wanted and not has_files(whole, task):
            notes.append(f"{task.key}: no report: the files are not known; give the plan with --plan")
        elif is_wanted:
            write_report(solve_again(whole, task), page, weights=weights)
    except SteadygazeError as error:
        notes.append(f"{task.key}: no report: {error}")


def _state(record: Mapping[str, Any] | None, outcome: Outcome | None) -> tuple[str, str]:
    """The state of a problem in one word, and whether it is good, bad or open."""
    if record is None:
        return "not ended", OPEN
    status = record["status"]
    if status == Status.MISCLASSIFIED.value:
        return "misclassified", BAD
    if (status == Status.FAILED and outcome is not Outcome.NOT_MET) or (
        status == Status.TIMEOUT and outcome in (None, Outcome.UNDECIDED)
    ):
        return status.lower(), OPEN
    if outcome is None:
        return record["verdict"], {"robust": GOOD, "not robust": BAD}.get(record["verdict"], OPEN)
    return {Outcome.MET: ("met", GOOD), Outcome.NOT_MET: ("missed", BAD)}.get(outcome, ("open", OPEN))


def _fill(
    store: Store,
    records: Mapping[str, Mapping[str, Any]],
    states: Mapping[str, tuple[str, str]],
    pages: Mapping[str, str],
    folder: Path,
) -> str:
    plan, raw = store.plan, store.rows()
    command = f"steadygaze campaign report {store.directory} --out {folder} --full"
    lines = [_line(task, records, states, pages, raw, command) for task in plan.tasks]
    counts = Counter(record["status"] for record in records.values())
    gate = judge_plan(plan, list(records.values()))
    return fill(
        "overview.html.j2",
        {
            "version": version("steadygaze"),
            "allowed": ALLOWED,
            "css": read_asset("overview.css"),
            "script": read_asset("overview.js"),
            "name": plan.name,
            "lines": lines,
            "gate": None if gate is None else _gate(gate, pages),
            "statuses": [(status, counts[status]) for status in statuses_of(plan)],
            "unfinished": len(plan.tasks) - len(records),
            "states": list(dict.fromkeys(line["state"] for line in lines)),
            "models": list(dict.fromkeys(line["model"] for line in lines)),
            "combinations": list(dict.fromkeys(line["combination"] for line in lines)),
            "algorithms": list(dict.fromkeys(line["algorithm"] for line in lines)),
            "specs": [(name, " + ".join(specs)) for name, specs in plan.combinations.items()],
            "legend": [(COLOURS[letter], text) for letter, text in MEANINGS.items()],
        },
    )


def _line(
    task: Task,
    records: Mapping[str, Mapping[str, Any]],
    states: Mapping[str, tuple[str, str]],
    pages: Mapping[str, str],
    raw: Mapping[str, Mapping[str, Any]],
    command: str,
) -> dict[str, Any]:
    """What the table shows of one problem."""
    record = records.get(task.key)
    area = Problem.of(task.key, task.image, record).area
    shown = raw[task.key]["answer"].get("map") if record is not None else None
    word, kind = states[task.key]
    return {
        "key": task.key,
        "model": task.model,
        "image": task.image,
        "combination": task.combination,
        "algorithm": task.algorithm,
        "state": word,
        "kind": kind,
        "reason": "" if record is None else record["reason"] or "",
        "shares": {name: share_text(*area[name]) if name in area else "" for name in ("CR", "AR", "CR&AR")},
        "low": area["CR&AR"][0] if "CR&AR" in area else -1.0,
        "seconds": None if record is None or record["seconds"] is None else f"{record['seconds']:.2f} s",
        "map": None if shown is None else _picture(shown["rows"]),
        "held": None if shown is None else shown["held"],
        "page": pages.get(task.key),
        "command": None if record is None or word == "misclassified" else f"{command} {task.key}",
    }


def _gate(gate: Gate, pages: Mapping[str, str]) -> dict[str, Any]:
    """The requirements for the page, with links to the problems to blame."""
    kinds = {Outcome.MET: GOOD, Outcome.NOT_MET: BAD, Outcome.UNDECIDED: OPEN}
    judged = [
        {
            "text": one.text,
            "outcome": one.outcome.value,
            "kind": kinds[one.outcome],
            "found": one.found,
            "blamed": [(each.key, state, pages.get(each.key)) for each, state in one.to_blame],
        }
        for one in gate.judgements
    ]
    return {
        "outcome": gate.outcome.value,
        "kind": kinds[gate.outcome],
        "judged": judged,
        "unanswered": len(gate.unanswered),
    }


def _picture(rows: Sequence[str]) -> str:
    """A small map as the address of a PNG with a palette."""
    letters = list(COLOURS)
    image = Image.new("P", (len(rows[0]), len(rows)))
    image.putpalette([value for letter in letters for value in ImageColor.getrgb(COLOURS[letter])])
    image.putdata([letters.index(letter) for row in rows for letter in row])
    stream = BytesIO()
    image.save(stream, "PNG", optimize=True)
    return "data:image/png;base64," + b64encode(stream.getvalue()).decode("ascii")
