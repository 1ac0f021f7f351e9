"""Numbers in a report are rounded in the direction that keeps the statement true."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from steadygaze.words import percent_down, percent_up, rounded_down, rounded_up, share_between, share_text

SHARES = st.floats(0.0, 1.0)
NUMBERS = st.floats(-1e6, 1e6).filter(lambda value: value == 0.0 or abs(value) > 1e-12)


def value_of(text: str) -> float:
    return float(text.removesuffix(" %").replace("−", "-"))


def share_of(text: str) -> float:
    # One part in 10¹² for the division of the decimal by 100.
    return value_of(text) / 100.0


@given(SHARES)
@example(1.0 - 2.0**-53)
@example(5e-324)
@example(0.999)
def test_percentages_are_rounded_outward(share: float):
    assert share_of(percent_down(share)) <= share * (1 + 1e-12) <= share_of(percent_up(share)) * (1 + 2e-12)
    assert (percent_down(share) == "100 %") == (share == 1.0), "not everything never looks like everything"
    assert (percent_up(share) == "0 %") == (share == 0.0), "not nothing never looks like nothing"


@given(NUMBERS)
def test_numbers_are_rounded_in_the_given_direction(value: float):
    low, high = value_of(rounded_down(value)), value_of(rounded_up(value))
    assert low <= value <= high and high - low <= 0.011 * abs(value)


@given(SHARES, SHARES)
@example(0.12449, 0.12451)
@example(0.0, 1.0)
@example(0.9996, 0.9999)
def test_a_share_between_bounds_claims_no_more_than_they_do(first: float, second: float):
    low, high = sorted((first, second))
    text = share_between(low, high)
    numbers = [share_of(f"{number} %") for number in re.findall(r"[\d.]+(?:e−?\d+)?(?= %| to)", text)]
    if text.startswith("at most"):
        assert numbers[0] >= high * (1 - 1e-12)
    elif text.startswith("at least"):
        assert numbers[0] <= low * (1 + 1e-12)
    elif " to " in text:
        assert numbers[0] <= low * (1 + 1e-12) and numbers[1] >= high * (1 - 1e-12)
    else:
        assert high - low < 1e-6 and numbers[0] <= low * (1 + 1e-12) and low - numbers[0] <= 1.1e-4


@given(SHARES, SHARES)
@example(0.0, 1e-9)
def test_bounds_are_rounded_outward_unless_they_are_tight(first: float, second: float):
    low, high = sorted((first, second))
    text = share_text(low, high)
    if text.startswith("≤ "):
        assert low == 0.0 and high <= share_of(text.removeprefix("≤ ")) * (1 + 1e-12) and high < 1e-6
        return
    ends = [share_of(end) for end in text.removesuffix(" %").split(" to ")]
    assert ends[0] <= low * (1 + 1e-12)
    assert ends[1] >= high * (1 - 1e-12) if len(ends) == 2 else high - low < 1e-6
