"""The remaining time of a campaign, estimated from similar problems."""

import pytest

from steadygaze.campaign.run import Pace
from support.stand_ins.fault_plans import plan_of


def test_similar_problems_say_how_long_it_takes():
    plan = plan_of(("small", "large"), ("1", "2", "3"))
    small, large = plan.tasks[:3], plan.tasks[3:]
    pace = Pace()
    assert pace.seconds_left(plan.tasks, 2) is None
    pace.add(small[0], 1.0)
    # Nothing is known of the large ones yet, but that they use the same algorithm.
    assert pace.seconds_left([*small[1:], *large], 1) == pytest.approx(5.0)
    pace.add(large[0], 9.0)
    pace.add(large[1], None)
    assert pace.seconds_left([*small[1:], *large[1:]], 2) == pytest.approx((2 * 1.0 + 2 * 9.0) / 2)
    assert pace.seconds_left([], 2) == 0.0
    # However many workers there are, the longest problem takes its time.
    assert pace.seconds_left([*small[1:], *large[2:]], 16) == pytest.approx(9.0)
