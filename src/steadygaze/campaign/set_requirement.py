"""Requirements of plans: for each problem, or over a set of them (`median CR&AR >= 0.6`), judged by proved bounds.

A share without proved bounds may be anything from 0 to 1. A misclassified image meets no requirement, and counts with
the worst share. A `Gate` has the outcomes of all requirements of a plan, with the problems to blame. Reads no files.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Any, NamedTuple

from ..errors import OptionError
from ..labels import Label, Status, Verdict
from ..requirement import NAMES, Outcome, Requirement, Term, read_term
from ..words import share_text
from .columns import share_column
from .problem_names import problem_names
from .stored_campaign import Plan


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


KINDS: Mapping[str, Callable[[Sequence[Fraction]], Fraction]] = {"median": median, "mean": _mean}
"""Numbers that grow with every share."""
UNITS = ("images", "problems")
EXAMPLES = "'CR&AR >= 0.9', 'median CR&AR >= 0.6' or '95% of images meet CR&AR >= 0.9'"

_MIDDLE = re.compile(rf"(?:the )?({'|'.join(KINDS)}) (?:of )?(?:the )?(.*)", re.IGNORECASE)
_PART = re.compile(
    r"(?:at least )?(\d+(?:\.\d*)?|\.\d+) ?% of (?:the |all )?(\w+) (?:meet|are|have)(?: (.*))?", re.IGNORECASE
)
_PERCENT = re.compile(r"\d\s*%\s*of\b", re.IGNORECASE)


@dataclass(frozen=True)
class Problem:
    """The proved facts about one problem: bounds of its shares (unknown ones are missing), verdict and status.

    status: None if the problem has not ended. name: for people.
    """

    key: str
    image: str
    area: Mapping[str, tuple[float, float]]
    verdict: Verdict = Verdict.UNDECIDED
    status: str | None = None
    reason: str | None = None
    name: str = ""

    @classmethod
    def of(cls, key: str, image: str, record: Mapping[str, Any] | None, name: str = "") -> "Problem":
        """A problem with its columns, if it has ended."""
        if record is None:
            return cls(key, image, {}, name=name or key)
        area = {name: _bounds(record, share_column(name)) for name in NAMES[:-1]}
        area[Label.UNDECIDED] = (record["undecided"],) * 2 if record["undecided"] is not None else None
        known = {name: bounds for name, bounds in area.items() if bounds is not None}
        verdict = next((one for one in Verdict if one.value == record["verdict"]), Verdict.UNDECIDED)
        return cls(key, image, known, verdict, record["status"], record["reason"], name or key)

    @property
    def is_misclassified(self) -> bool:
        """Whether the network predicts another label than expected for the unperturbed image."""
        return self.status == Status.MISCLASSIFIED.value

    def lacks_answer(self, requirement: Requirement | None = None) -> bool:
        """Whether the problem did not finish by itself, and proved nothing that a requirement could use.

        >>> late = Problem("a", "a", {"CR": (0.2, 1.0)}, status="Timeout")
        >>> late.lacks_answer(Requirement.parse("CR >= 0.1")), late.lacks_answer(Requirement.parse("robust"))
        (False, True)
        """
        if self.status != Status.TIMEOUT.value or requirement is None:
            return self.status in (None, Status.FAILED.value, Status.TIMEOUT.value)
        known = [isinstance(term, Term) and self.bounds(term) != (0.0, 1.0) for term in requirement.terms]
        return self.judge(requirement) is Outcome.UNDECIDED and not all(known)

    def bounds(self, term: Term) -> tuple[float, float]:
        """Proved bounds of the share that a term compares."""
        if self.is_misclassified:
            return (0.0, 0.0) if term.inequality.asks_more else (1.0, 1.0)
        return self.area.get(term.name, (0.0, 1.0))

    def judge(self, requirement: Requirement) -> Outcome:
        """Whether this problem meets a requirement."""
        if self.is_misclassified:
            return Outcome.NOT_MET
        area = dict.fromkeys(NAMES, (0.0, 1.0)) | dict(self.area)
        return requirement.judge(area, self.verdict)

    def state(self, requirement: Requirement) -> str:
        """The known facts about this problem, for people."""
        if self.is_misclassified:
            return f"misclassified: {self.reason}"
        if self.status is None:
            return "has not ended"
        terms = [term for term in requirement.terms if isinstance(term, Term) and term.name in self.area]
        known = [f"{term.name} {share_text(*self.bounds(term))} ({term.inequality} required)" for term in terms]
        known += [self.verdict.value] if len(terms) < len(requirement.terms) and self.area else []
        return ", ".join([*known, *([f"{self.status}: {self.reason}"] if self.reason else [])]) or str(self.status)


class Blamed(NamedTuple):
    """A problem that is not proved to meet a requirement: its known facts in words, and whether it surely misses it."""

    problem: Problem
    state: str
    outcome: Outcome


@dataclass(frozen=True)
class Judgement:
    """The outcome of a requirement over a set: the finding in words, and the problems to blame, worst first."""

    text: str
    outcome: Outcome
    found: str
    to_blame: tuple[Blamed, ...]

    def plain(self) -> dict[str, Any]:
        """The judgement as plain data."""
        blamed = [{"key": one.problem.key, "name": one.problem.name, "state": one.state} for one in self.to_blame]
        return {"text": self.text, "outcome": self.outcome.value, "found": self.found, "to_blame": blamed}


@dataclass(frozen=True)
class SetRequirement:
    """A requirement over a set of problems.

    kind: `each` (every problem meets it), `median` or `mean` (of one share), or `part` (of the images, or problems).

    >>> half = [Problem("a", "a", {"CR": (0.4, 0.5)}), Problem("b", "b", {"CR": (0.9, 1.0)})]
    >>> SetRequirement.parse("mean CR >= 0.6").judge(half).outcome
    <Outcome.MET: 'met'>
    >>> SetRequirement.parse("60% of images meet CR >= 0.5").judge(half).outcome
    <Outcome.UNDECIDED: 'undecided'>
    """

    text: str
    kind: str
    requirement: Requirement
    unit: str = UNITS[1]
    part: Fraction = Fraction(1)

    @classmethod
    def parse(cls, text: str, source: str = "require") -> "SetRequirement":
        """Read one requirement of a plan; OptionError names the mistake and the `source` of the text."""
        line, where = " ".join(text.split()), f"{source} {text!r}"
        found = _MIDDLE.fullmatch(line)
        if found is not None:
            term = read_term(where, found[2])
            return cls(text, found[1].lower(), Requirement(found[2], (term,)))
        found = _PART.fullmatch(line)
        if found is None and _PERCENT.search(line):
            raise OptionError(f"{where}: cannot be read; expected for example {EXAMPLES}")
        if found is None:
            return cls(text, "each", Requirement.parse(text, source))
        if found[2].lower() not in UNITS:
            raise OptionError(f"{where}: unknown unit {found[2]!r}; expected {' or '.join(UNITS)}")
        part = Fraction(found[1]) / 100
        if not 0 < part <= 1:
            raise OptionError(f"{where}: {found[1]}% is not part of a set; expected more than 0% and up to 100%")
        needed = Requirement.parse(found[3] or "", source)
        return cls(text, "part", needed, found[2].lower(), part)

    @property
    def counts_single_problems(self) -> bool:
        """Whether single problems meet it or not, unlike a median or a mean."""
        return self.kind not in KINDS

    @property
    def needs_shares(self) -> bool:
        """Whether it asks for shares of the domain, which some searches do not bound."""
        return self.requirement.needs_shares

    def judge(self, problems: Sequence[Problem]) -> Judgement:
        """Judge one or more problems; all arithmetic is exact."""
        outcomes = [problem.judge(self.requirement) for problem in problems]
        if self.kind in KINDS:
            outcome, found = self._judge_middle(problems)
        else:
            outcome, found = self._judge_part(problems, outcomes)
        blamed = [pair for pair in zip(problems, outcomes, strict=True) if pair[1] is not Outcome.MET]
        if outcome is Outcome.MET:
            blamed = []
        blamed.sort(key=lambda pair: (pair[1] is not Outcome.NOT_MET, self._badness(pair[0])))
        states = tuple(Blamed(problem, problem.state(self.requirement), own) for problem, own in blamed)
        return Judgement(self.text, outcome, found, states)

    def _judge_middle(self, problems: Sequence[Problem]) -> tuple[Outcome, str]:
        """Judge the statistic of all lower bounds and of all upper bounds, both as exact fractions."""
        term = self.requirement.terms[0]
        assert isinstance(term, Term)
        ends = zip(*(problem.bounds(term) for problem in problems), strict=True)
        low, high = (KINDS[self.kind]([Fraction(float(end)) for end in each]) for each in ends)
        return term.inequality.judge(low, high), f"{self.kind} {term.name} {share_text(*_outward(low, high))}"

    def _judge_part(self, problems: Sequence[Problem], outcomes: Sequence[Outcome]) -> tuple[Outcome, str]:
        units: dict[str, list[Outcome]] = {}
        for problem, outcome in zip(problems, outcomes, strict=True):
            units.setdefault(problem.image if self.unit == "images" else problem.key, []).append(outcome)
        judged = [Outcome.all_of(each) for each in units.values()]
        met, open_ones = judged.count(Outcome.MET), judged.count(Outcome.UNDECIDED)
        found = f"{met:,} of {len(judged):,} {self.unit} meet it" + (f", {open_ones:,} are open" if open_ones else "")
        if Fraction(met, len(judged)) >= self.part:
            return Outcome.MET, found
        is_possible = Fraction(met + open_ones, len(judged)) >= self.part
        return Outcome.UNDECIDED if is_possible else Outcome.NOT_MET, found

    def _badness(self, problem: Problem) -> float:
        """Orders problems, the worst first, by the first share compared."""
        term = next((one for one in self.requirement.terms if isinstance(one, Term)), None)
        if term is None:
            return 0.0
        low, high = problem.bounds(term)
        return low + high if term.inequality.asks_more else -low - high


def _outward(low: Fraction, high: Fraction) -> tuple[float, float]:
    """Bounds in floating point that contain the exact ones."""
    below, above = float(low), float(high)
    return (
        below if Fraction(below) <= low else math.nextafter(below, -math.inf),
        above if Fraction(above) >= high else math.nextafter(above, math.inf),
    )


def _bounds(record: Mapping[str, Any], start: str) -> tuple[float, float] | None:
    low, high = record[f"{start}_low"], record[f"{start}_high"]
    return None if low is None or high is None else (low, high)


@dataclass(frozen=True)
class Gate:
    """Every requirement of a plan with its judgement.

    unanswered: problems that failed, have not ended, or timed out without proved bounds of the required shares.
    """

    judgements: tuple[Judgement, ...]
    unanswered: tuple[Problem, ...]

    @property
    def outcome(self) -> Outcome:
        """The outcome of all; a set with problems that lack an answer is open, even if the others suffice."""
        found = Outcome.all_of(one.outcome for one in self.judgements)
        return Outcome.UNDECIDED if found is Outcome.MET and self.unanswered else found

    def plain(self) -> dict[str, Any]:
        """The gate as `--json` prints it."""
        lacking = [
            {"key": one.key, "name": one.name, "status": one.status, "reason": one.reason} for one in self.unanswered
        ]
        judged = [one.plain() for one in self.judgements]
        return {"outcome": self.outcome.value, "requirements": judged, "unanswered": lacking}


def problems_of(plan: Plan, records: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """The problems of a plan in its order, with their proved facts."""
    found, names = {record["key"]: record for record in records}, problem_names(plan)
    return [Problem.of(task.key, task.image, found.get(task.key), names[task.key]) for task in plan.tasks]


def judge_plan(plan: Plan, records: Sequence[Mapping[str, Any]]) -> Gate | None:
    """Judge the requirements of a plan; None if it has none."""
    if not plan.require:
        return None
    problems = [(task.run, problem) for task, problem in zip(plan.tasks, problems_of(plan, records), strict=True)]
    judgements, lacking = [], set()
    for one in plan.require:
        own, needed = [problem for run, problem in problems if one.run in (None, run)], SetRequirement.parse(one.text)
        lacking |= {problem.key for problem in own if problem.lacks_answer(needed.requirement)}
        judgements.append(needed.judge(own))
    return Gate(tuple(judgements), tuple(problem for _, problem in problems if problem.key in lacking))


def judge_each(plan: Plan, records: Sequence[Mapping[str, Any]]) -> dict[str, Outcome | None]:
    """Whether each problem meets the requirements on single problems and on parts of sets; None if it has none.

    A requirement on a median or a mean says nothing about a single problem.
    """
    read = [(one.run, SetRequirement.parse(one.text)) for one in plan.require]
    outcomes: dict[str, Outcome | None] = {}
    for task, problem in zip(plan.tasks, problems_of(plan, records), strict=True):
        own = [each for run, each in read if run in (None, task.run) and each.counts_single_problems]
        outcomes[task.key] = Outcome.all_of(problem.judge(each.requirement) for each in own) if own else None
    return outcomes
