"""The records of a campaign → a JUnit XML file: a test suite for each model, a test case for each problem.

If the plan has requirements, the file has failures or errors if and only if `campaign run` does not exit with 0. Every
requirement is a case. The case of a problem fails if the problem is to blame for a missed requirement or, in a plan
without requirements, if it is misclassified or not robust. A problem without an answer is an error, and so is a problem
that leaves a requirement open.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from ..labels import Joint, Label
from ..requirement import Outcome
from ..words import share_text
from .set_requirement import Gate, Problem, judge_plan, problems_of
from .stored_campaign import Plan

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def make_junit(plan: Plan, records: Sequence[Mapping[str, Any]]) -> str:
    """The XML text; the requirements over sets are a suite of their own."""
    found, gate = {record["key"]: record for record in records}, judge_plan(plan, records)
    blamed = _worst(gate) if gate is not None else {}
    unanswered = set() if gate is None else {one.key for one in gate.unanswered}
    suites: dict[str, list[ElementTree.Element]] = {}
    for task, problem in zip(plan.tasks, problems_of(plan, records), strict=True):
        case = _case(f"{plan.name}.{task.model}", problem.name, found.get(task.key))
        outcome, text = blamed.get(task.key, (None, _text(problem)))
        if gate is None:
            outcome = Outcome.NOT_MET if problem.is_misclassified else Outcome.of(problem.verdict)
        lacks = problem.lacks_answer() if gate is None else problem.key in unanswered
        _judge(case, problem, outcome, text, lacks_answer=lacks)
        suites.setdefault(task.model, []).append(case)
    if gate is not None:
        suites["requirements"] = _requirements(plan, gate)
    root = ElementTree.Element("testsuites", name=_plain(plan.name))
    for name, cases in suites.items():
        _add_suite(root, name, cases)
    for attribute in ("tests", "failures", "errors"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in root)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(place: str, name: str, record: Mapping[str, Any] | None = None) -> ElementTree.Element:
    seconds = (record or {}).get("seconds")
    case = ElementTree.Element("testcase", classname=_plain(place), name=_plain(name))
    if seconds is not None:
        case.set("time", f"{seconds:.3f}")
    return case


def _worst(gate: Gate) -> dict[str, tuple[Outcome, str]]:
    """The effect of each problem to blame on the gate, by its key: misses it or leaves it open; its state in words.

    A problem that misses a requirement for a part of a set, which others leave open, is not the one to blame.
    """
    found: dict[str, tuple[Outcome, str]] = {}
    for one in sorted(gate.judgements, key=lambda one: one.outcome is not Outcome.NOT_MET):
        for blamed in one.to_blame:
            if blamed.outcome is one.outcome:
                found.setdefault(blamed.problem.key, (blamed.outcome, blamed.state))
    return found


def _judge(
    case: ElementTree.Element, problem: Problem, outcome: Outcome | None, text: str, *, lacks_answer: bool
) -> None:
    """Add the known facts about a problem to its case: a failure, an error, or plain output."""
    if outcome is Outcome.NOT_MET:
        _add(case, "failure", text)
    elif lacks_answer:
        _add(case, "error", "has not ended" if problem.status is None else f"{problem.status}: {problem.reason}")
    elif outcome is Outcome.UNDECIDED:
        _add(case, "error", f"the proved bounds leave it open: {text}")
    else:
        ElementTree.SubElement(case, "system-out").text = _plain(text)


def _text(problem: Problem) -> str:
    if problem.is_misclassified:
        return f"misclassified: {problem.reason}"
    shown = [(name, problem.area[name]) for name in (Label.CR, Label.AR, Joint.BOTH) if name in problem.area]
    shares = [f"{name} {share_text(*bounds)}" for name, bounds in shown]
    return ", ".join([problem.verdict.value, *shares])


def _requirements(plan: Plan, gate: Gate) -> list[ElementTree.Element]:
    cases = []
    for one in gate.judgements:
        case = _case(f"{plan.name}.requirements", one.text)
        if one.outcome is not Outcome.MET:
            kind = "failure" if one.outcome is Outcome.NOT_MET else "error"
            lines = [f"{each.problem.name}: {each.state}" for each in one.to_blame]
            _add(case, kind, f"{one.outcome.value}: {one.found}", lines)
        cases.append(case)
    return cases


def _add(case: ElementTree.Element, kind: str, message: str, lines: Sequence[str] = ()) -> None:
    ElementTree.SubElement(case, kind, message=_plain(message)).text = _plain("\n".join(lines)) or None


def _add_suite(root: ElementTree.Element, name: str, cases: Sequence[ElementTree.Element]) -> None:
    kinds = [child.tag for case in cases for child in case]
    counts = {"failures": kinds.count("failure"), "errors": kinds.count("error")}
    seconds = sum(float(case.get("time", "0")) for case in cases)
    facts = {"tests": len(cases)} | counts
    suite = ElementTree.SubElement(root, "testsuite", name=_plain(name), time=f"{seconds:.3f}")
    for attribute, value in facts.items():
        suite.set(attribute, str(value))
    suite.extend(cases)


def _plain(text: str) -> str:
    """A text without the characters that XML forbids."""
    return _FORBIDDEN.sub("?", text)
