"""A pytest plugin: the fixture `steadygaze` states requirements, and attaches a report to a test that misses one.

pytest imports this module at every start, so the rest of steadygaze is imported only when a test uses the fixture.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pytest

if TYPE_CHECKING:
    from .api import VerifyOptions
    from .inputs import ImageLike, ModelLike, PerturbationsLike
    from .results.result import Result

REPORTS = "steadygaze-reports"
LONGEST_NAME = 150


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for reports."""
    group, text = parser.getgroup("steadygaze"), "folder for the reports of tests that miss a requirement of steadygaze"
    group.addoption(
        "--steadygaze-reports", metavar="DIR", default=None, help=f"{text} (default: {REPORTS} in the root directory)"
    )
    group.addoption(
        "--steadygaze-no-weights", action="store_true", help="leave the weights of networks out of these reports"
    )


class Gaze:
    """The value of the fixture `steadygaze`."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request, self._count = request, 0

    def require(
        self,
        requirement: str,
        model: "ModelLike",
        image: "ImageLike",
        perturbations: "PerturbationsLike",
        *,
        expect: str | None = None,
        **options: "Unpack[VerifyOptions]",
    ) -> "Result":
        """Fail the test unless a requirement such as "CR&AR >= 0.9" is proved; returns the result.

        model, image, perturbations and options are those of `steadygaze.verify`. expect: the label that the unperturbed
        image must have. The test also fails if the bounds leave the requirement open. The report of a failing test is
        written to --steadygaze-reports; the output of the test and the properties of a JUnit file name it.
        """
        __tracebackhide__ = True
        from .api import verify  # noqa: PLC0415 (imported only when needed)
        from .class_names import find_label  # noqa: PLC0415
        from .requirement import Outcome, Requirement  # noqa: PLC0415
        from .results.description import verdict_sentences  # noqa: PLC0415
        from .words import class_text, share_text  # noqa: PLC0415

        needed = Requirement.parse(requirement, "require")
        # Each overload of `verify` is for one method; here the method is any word.
        result: Result = verify(model, image, perturbations, **options)  # type: ignore[call-overload]
        question, outcome = result.question, needed.judge(result.areas, result.verdict)
        wanted = question.label if expect is None else find_label(str(expect), question.names, "expect")
        if wanted == question.label and outcome is Outcome.MET:
            return result
        subject = f"{question.model_name} on {question.image_name}"
        lines = [f"{subject}: required {requirement}: {outcome.value}"]
        if wanted != question.label:
            found, missed = (class_text(question.names[label], label) for label in (question.label, wanted))
            lines = [f"{subject}: misclassified: predicts {found}, expected {missed}"]
        shown = [term.name for term in needed.terms if term.name in result.areas]
        lines += [f"{name}: {share_text(*result.areas[name])} of the domain" for name in dict.fromkeys(shown)]
        lines += [" ".join(verdict_sentences(result.described)), self._attach(result)]
        pytest.fail("\n".join(lines), pytrace=False)

    def _attach(self, result: "Result") -> str:
        """Write the report of a result, and name it in the test's own report; returns a line for the reader."""
        from .errors import SteadygazeError  # noqa: PLC0415

        node, self._count = self._request.node, self._count + 1
        config = self._request.config
        folder = Path(config.getoption("--steadygaze-reports") or config.rootpath / REPORTS)
        name = re.sub(r"[^A-Za-z0-9.+-]+", "-", node.nodeid).strip("-.")[-LONGEST_NAME:]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            weights = not config.getoption("--steadygaze-no-weights")
            page = result.report(folder / f"{name}-{self._count}.html", force=True, weights=weights)
        except (OSError, SteadygazeError) as error:
            return f"no report: {error}"
        node.user_properties.append(("steadygaze_report", str(page)))
        node.add_report_section("call", "steadygaze report", str(page))
        return f"report: {page}"


@pytest.fixture(name="steadygaze")
def steadygaze_fixture(request: pytest.FixtureRequest) -> Gaze:
    """State requirements: steadygaze.require("CR&AR >= 0.9", model, image, perturbations)."""
    return Gaze(request)
