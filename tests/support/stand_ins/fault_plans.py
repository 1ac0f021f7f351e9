"""Plans of the problems in `faults`: the name of a model is an act, the name of an image its duration."""

from collections.abc import Sequence

from steadygaze.campaign.stored_campaign import Plan, PlannedImage, PlannedModel, Task, make_key
from steadygaze.campaign.worker_pool import Duty
from steadygaze.question import OPTIONS
from support.stand_ins import faults

DUTY = Duty.of(faults.solve_task)


def plan_of(
    acts: Sequence[str], seconds: Sequence[str] = ("0",), *, limit: float = 20.0, memory_gib: float = 4.0
) -> Plan:
    """All acts × all times; every problem has the same limits."""
    models = {act: PlannedModel(act, "", 10 * len(act), "0" * 64, act) for act in acts}
    images = {text: PlannedImage(text, "", "0" * 64, text) for text in seconds}
    tasks = tuple(
        Task(
            key=make_key(act, text), model=act, image=text, combination="B", method="map",
            options={name: option.paper for name, option in OPTIONS.items()}, until=None, w_delta=None, seconds=limit,
            memory_gib=memory_gib,
        )
        for act in acts
        for text in seconds
    )  # fmt: skip
    return Plan("faults", models, images, {"B": ("brightness",)}, tasks)
