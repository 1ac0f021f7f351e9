"""Requirements over sets of problems: accepted texts, refusals, and proved outcomes."""

from fractions import Fraction
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadygaze.campaign.set_requirement import Problem, SetRequirement
from steadygaze.errors import OptionError
from steadygaze.labels import Verdict
from steadygaze.requirement import Outcome


@pytest.mark.parametrize(
    ("text", "kind", "unit", "part", "needed"),
    [
        ("CR&AR >= 0.9", "each", "problems", 1, "CR&AR >= 0.9"),
        ("CR>=1 and MR<=1%", "each", "problems", 1, "CR>=1 and MR<=1%"),
        ("robust", "each", "problems", 1, "robust"),
        ("median CR&AR >= 0.6", "median", "problems", 1, "CR&AR >= 0.6"),
        ("the median of the CR&AR at least 0.6", "median", "problems", 1, "CR&AR at least 0.6"),
        ("Mean AR > 50%", "mean", "problems", 1, "AR > 50%"),
        ("95% of images meet CR&AR >= 0.9", "part", "images", Fraction(19, 20), "CR&AR >= 0.9"),
        ("at least 99.5 %  of the problems meet CR>=1", "part", "problems", Fraction(199, 200), "CR>=1"),
        ("100% of all images are robust", "part", "images", 1, "robust"),
    ],
)
def test_reads(text, kind, unit, part, needed):
    found = SetRequirement.parse(text)
    assert (found.text, found.kind, found.unit, found.part) == (text, kind, unit, part)
    assert found.requirement.text == needed and found.needs_shares == (needed != "robust")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "'' is not a comparison"),
        ("median", "'median' is not a comparison"),
        ("median robust", "'robust' is not a comparison"),
        ("median CR>=0.5 and AR>=0.5", "is not a comparison"),
        ("95% of cats meet CR>=0.5", "unknown unit 'cats'; expected images or problems"),
        ("0% of images meet CR>=0.5", "expected more than 0%"),
        ("101% of images meet CR>=0.5", "up to 100%"),
        ("95% of images", "cannot be read; expected for example 'CR&AR >= 0.9'"),
        ("95% of images meet", "'' is not a comparison"),
        ("95% of images meet CX>=1", "no share 'CX'"),
        ("95% CR>=1", "no share '95% CR'"),
    ],
)
def test_refuses_in_one_line(text, complaint):
    with pytest.raises(OptionError) as caught:
        SetRequirement.parse(text)
    assert complaint in str(caught.value) and "\n" not in str(caught.value)


def problems(*bounds: tuple[float, float]) -> list[Problem]:
    return [Problem(str(n), str(n // 2), {"CR": pair}, status="NotRobust") for n, pair in enumerate(bounds)]


def holds(text: str, shares: list[float]) -> bool:
    """A requirement on exact shares, from its definition."""
    images = [shares[place : place + 2] for place in range(0, len(shares), 2)]
    exact = [Fraction(share) for share in shares]
    return {
        "CR >= 0.5": all(share >= 0.5 for share in shares),
        "median CR >= 0.5": median(exact) >= Fraction(1, 2),
        "mean CR < 0.5": sum(exact) / len(exact) < Fraction(1, 2),
        "60% of problems meet CR > 0.5": 10 * sum(share > 0.5 for share in shares) >= 6 * len(shares),
        "50% of images meet CR >= 0.5": 2 * sum(min(image) >= 0.5 for image in images) >= len(images),
    }[text]


ENDS = st.sampled_from([0.0, 0.25, 0.5, 0.5000000001, 0.75, 1.0])


@pytest.mark.parametrize(
    "text",
    [
        "CR >= 0.5",
        "median CR >= 0.5",
        "mean CR < 0.5",
        "60% of problems meet CR > 0.5",
        "50% of images meet CR >= 0.5",
    ],
)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(bounds=st.lists(st.tuples(ENDS, ENDS).map(sorted), min_size=1, max_size=5))
def test_an_outcome_is_that_of_all_shares_between_the_bounds(text, bounds):
    """All requirements are monotone in every share: the corners tell whether some shares meet it, and if all do."""
    lows, highs = [low for low, _ in bounds], [high for _, high in bounds]
    worst, best = (highs, lows) if "<" in text else (lows, highs)
    expected = Outcome.MET if holds(text, worst) else Outcome.UNDECIDED if holds(text, best) else Outcome.NOT_MET
    found = SetRequirement.parse(text).judge(problems(*bounds))
    assert found.outcome is expected
    assert bool(found.to_blame) == (expected is not Outcome.MET)


def test_a_problem_without_an_answer_may_have_any_share():
    unknown = Problem("a", "a", {}, status="Failed", reason="no such thing")
    assert SetRequirement.parse("CR>=0").judge([unknown]).outcome is Outcome.MET
    assert SetRequirement.parse("CR>0").judge([unknown]).outcome is Outcome.UNDECIDED
    assert SetRequirement.parse("robust").judge([unknown]).outcome is Outcome.UNDECIDED
    assert SetRequirement.parse("median CR>=0.5").judge([unknown]).found == "median CR 0 to 100 %"


@pytest.mark.parametrize("text", ["CR>=0", "MR<=1", "mean MR<0.5", "mean AR>0", "robust", "50% of images meet CR>=0"])
def test_a_misclassified_image_meets_nothing(text):
    wrong = Problem("a", "a", {"CR": (1.0, 1.0)}, Verdict.ROBUST, "Misclassified", "predicts 3, expected 4")
    judged = SetRequirement.parse(text).judge([wrong])
    assert judged.outcome is Outcome.NOT_MET
    assert judged.to_blame[0][1] == "misclassified: predicts 3, expected 4"


def test_the_worst_is_blamed_first_and_the_missed_before_the_open():
    found = SetRequirement.parse("median CR>=0.5").judge(problems((0.4, 0.6), (0.3, 0.3), (0.1, 0.1), (0.9, 1.0)))
    assert [blamed.problem.key for blamed in found.to_blame] == ["2", "1", "0"]
    assert found.to_blame[0].state == "CR 10.00 % (0.5 required)" and found.found == "median CR 35.00 to 45.00 %"


def test_bounds_for_people_are_rounded_outward():
    third = SetRequirement.parse("mean CR>=0.5").judge(problems((1.0, 1.0), (0.0, 0.0), (0.0, 0.0)))
    assert third.found in ("mean CR 33.33 to 33.34 %", "mean CR 33.33 %")
