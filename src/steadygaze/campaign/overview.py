"""A campaign → one HTML page with all problems, and full reports of single problems that it links to.

Full reports come from results that the campaign kept, or from solving a problem again. Judges and proves nothing.
"""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Any

from PIL import Image, ImageColor

from ..engines import load
from ..errors import OptionError, SteadygazeError, not_writable
from ..labels import Joint, Label, Status, Verdict
from ..report.drawing.colours import JOINT, KEPT, UNKNOWN
from ..report.page import fill, read_asset
from ..report.page.html import ALLOWED, check_target, write_report
from ..requirement import Outcome
from ..words import rounded, share_text
from .problem_names import SETTING_TEXTS
from .set_requirement import Gate, Problem, judge_each, judge_plan, problems_of
from .solving import LETTERS, has_files, located, solve_again
from .stored_campaign import Plan, Store, Task, write_whole
from .tables import make_records, statuses_of

INDEX, PAGES = "index.html", "problems"
FULL = ("kept", "violations", "all", "none")
COLOURS = dict(zip(LETTERS.values(), [*JOINT.values(), KEPT, JOINT[Joint.ATTENTION_ALONE]], strict=True)) | {
    "-": UNKNOWN
}
MEANINGS = dict(zip("abcd", (one.sentence for one in Joint), strict=True)) | {"-": Label.UNDECIDED.sentence}
WITHOUT, OWN_PAGE = "-no-weights", re.compile(r"_[0-9a-f]{8}(-no-weights)?\.html$")
"""The end of the names of reports without weights, and the names of all full reports."""
SPREAD: Mapping[str, Callable[[list[float]], float]] = {"least": min, "median": median, "most": max}
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
    progress: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> Written:
    """Write the page `index.html`, then the full reports that are wanted; replaces earlier pages of steadygaze only.

    full: "kept" (the results that the campaign keeps), a number (of these, the worst), "violations", "all", "none", or
    keys of problems; those without a kept result are solved again. plan: locates the models and images that are not
    bundled. weights: whether full reports may hold the weights of small networks. Full reports of former problems, or
    with weights that they may not hold, are deleted. progress: receives how many full reports are done, how many will
    be made, and the name of the next.
    """
    _check_wanted(store.plan, full)
    whole = located(store.plan, plan)
    shown = _Shown(store, folder, weights=weights)
    written = Written(folder / INDEX)
    try:
        (folder / PAGES).mkdir(parents=True, exist_ok=True)
        target = check_target(written.page, force=True)
        for page in (folder / PAGES).glob("*.html"):
            if OWN_PAGE.search(page.name) and page.name not in shown.files.values():
                page.unlink()
    except OSError as error:
        raise not_writable(folder, error) from None
    for key, row in shown.raw.items():
        if "not_kept" in row["answer"]:
            written.notes.append(f"{shown.names[key]}: its result was not kept: {row['answer']['not_kept']}")
    # The page comes first: full reports may take long.
    _write_index(target, shown)
    todo = shown.missing(full)
    try:
        for number, (task, is_wanted) in enumerate(todo):
            progress(number, len(todo), shown.names[task.key])
            _write_page(shown, whole, task, is_wanted=is_wanted, notes=written.notes)
    finally:
        if todo:
            _write_index(target, shown)
    written.reports += [folder / place for place in shown.pages.values()]
    return written


def _write_index(target: Path, shown: "_Shown") -> None:
    try:
        write_whole(target, _fill(shown).encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        raise not_writable(target, error) from None


def _check_wanted(plan: Plan, full: Sequence[str]) -> None:
    known = {task.key for task in plan.tasks}
    for word in full:
        if word not in known and word not in FULL and not word.isdecimal():
            raise OptionError(
                f"--full {word!r}: no such problem; expected {', '.join(FULL)}, a number of reports, or the key of a "
                "problem"
            )


class _Shown:
    """A campaign as the page shows it."""

    def __init__(self, store: Store, folder: Path, *, weights: bool) -> None:
        self.store, self.plan, self.folder, self.weights = store, store.plan, folder, weights
        self.raw = store.rows()
        self.records = {record["key"]: record for record in make_records(store)}
        found = list(self.records.values())
        self.problems = {one.key: one for one in problems_of(self.plan, found)}
        self.names = {key: one.name for key, one in self.problems.items()}
        self.gate = judge_plan(self.plan, found)
        outcomes = judge_each(self.plan, found)
        self.states = {key: _state(self.records.get(key), outcomes[key]) for key in self.problems}
        self.files = {
            task.key: f"{task.key}_{self.plan.digest(task)[:8]}{'' if weights else WITHOUT}.html"
            for task in self.plan.tasks
        }

    @property
    def pages(self) -> dict[str, str]:
        """The full reports that exist, by the keys of problems, as addresses from the page."""
        return {key: f"{PAGES}/{name}" for key, name in self.files.items() if (self.folder / PAGES / name).exists()}

    def is_kept(self, task: Task) -> bool:
        """Whether the campaign keeps the result of a problem."""
        return (self.store.kept(task.key) / "result.json").exists()

    def missing(self, full: Sequence[str]) -> list[tuple[Task, bool]]:
        """The problems whose full report will be made, the worst first, and whether `full` names each."""
        if "none" in full:
            return []
        found, most = [], [int(word) for word in full if word.isdecimal()]
        takes_kept = bool(most) or "kept" in full
        for task in self.worst_first():
            is_bad = self.states[task.key][1] == BAD
            is_wanted = task.key in full or "all" in full or ("violations" in full and is_bad)
            if task.key in self.records and (is_wanted or (takes_kept and self.is_kept(task))):
                found.append((task, is_wanted))
        if most:
            wanted = [pair for pair in found if pair[1]]
            found = wanted + [pair for pair in found if not pair[1]][: max(0, max(most) - len(wanted))]
        pages = self.pages
        return [pair for pair in found if pair[0].key not in pages]

    def worst_first(self) -> list[Task]:
        """All problems: those to blame for a requirement in their order, then those with the least CR and AR."""
        judged = () if self.gate is None else self.gate.judgements
        blamed = list(dict.fromkeys(one.problem.key for each in judged for one in each.to_blame))
        place = {key: number for number, key in enumerate(blamed)}
        return sorted(
            self.plan.tasks, key=lambda task: (place.get(task.key, len(place)), _low(self.problems[task.key]))
        )


def _low(problem: Problem) -> float:
    """The proved share that keeps label and attention; below 0 if it is not known."""
    return problem.area[Joint.BOTH][0] if Joint.BOTH in problem.area else -1.0


def _write_page(shown: _Shown, whole: Plan, task: Task, *, is_wanted: bool, notes: list[str]) -> None:
    """The full report of one problem: from its kept result, or, if it is wanted, by solving it again."""
    page, kept, name = shown.folder / PAGES / shown.files[task.key], shown.store.kept(task.key), shown.names[task.key]
    try:
        if shown.is_kept(task):
            write_report(load(kept), page, directory=kept, weights=shown.weights)
        elif is_wanted and not has_files(whole, task):
            notes.append(f"{name}: no report: the files are not known; give the plan with --plan")
        elif is_wanted:
            write_report(solve_again(whole, task), page, weights=shown.weights)
    except SteadygazeError as error:
        notes.append(f"{name}: no report: {error}")


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
        return record["verdict"], {Verdict.ROBUST: GOOD, Verdict.NOT_ROBUST: BAD}.get(record["verdict"], OPEN)
    return {Outcome.MET: ("met", GOOD), Outcome.NOT_MET: ("missed", BAD)}.get(outcome, ("open", OPEN))


def _fill(shown: _Shown) -> str:
    plan, records, gate, pages = shown.plan, shown.records, shown.gate, shown.pages
    command = f"steadygaze campaign report {shown.store.directory} --out {shown.folder} --full"
    lines = [_line(task, shown, pages, command) for task in plan.tasks]
    counts = Counter(record["status"] for record in records.values())
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
            "asked": _asked(plan),
            "looks": _object_shares(records.values()),
        },
    )


def _asked(plan: Plan) -> list[tuple[str, str]]:
    """The settings of a plan's problems: names, and all values that occur."""
    found = []
    for name in ("method", "property", *SETTING_TEXTS):
        values = dict.fromkeys(task.setting(name) for task in plan.tasks)
        texts = [str(value) for value in values if value not in (None, "")]
        if texts:
            found.append((name, ", ".join(texts)))
    return found


def _object_shares(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """For each model, how much of the maps' mass is on the object at the unperturbed images: least, median, most."""
    shares: dict[str, list[float]] = {}
    for record in records:
        if record["object_share"] is not None:
            shares.setdefault(record["model"], []).append(record["object_share"])
    return [
        f"{model}: {', '.join(f'{word} {rounded(100.0 * share(own), 3)} %' for word, share in SPREAD.items())}"
        for model, own in shares.items()
    ]


def _line(task: Task, shown: _Shown, pages: Mapping[str, str], command: str) -> dict[str, Any]:
    """One problem as a row of the table."""
    record, problem = shown.records.get(task.key), shown.problems[task.key]
    area = problem.area
    small = shown.raw[task.key]["answer"].get("map") if record is not None else None
    word, kind = shown.states[task.key]
    return {
        "key": task.key,
        "name": problem.name,
        "model": task.model,
        "image": task.image,
        "combination": task.combination,
        "algorithm": task.algorithm,
        "state": word,
        "kind": kind,
        "reason": "" if record is None else record["reason"] or "",
        "shares": {name: share_text(*area[name]) if name in area else "" for name in (Label.CR, Label.AR, Joint.BOTH)},
        "low": _low(problem),
        "seconds": None if record is None or record["seconds"] is None else f"{record['seconds']:.2f} s",
        "map": None if small is None else _picture(small["rows"]),
        "held": None if small is None else small["held"],
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
            "blamed": [
                (each.problem.key, each.problem.name, each.state, pages.get(each.problem.key)) for each in one.to_blame
            ],
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
