"""From the result of a refinement to plain data: what `--json` prints and `result.json` stores. Decides nothing."""

import math
from typing import Any

from ..results.answer import round_up, verdict_from
from ..results.summary import SINGLE_THETAS, agreement_text, kinks_text, summarise_domain
from ..verdict import Verdict
from .boxes import State
from .outcome import RefineResult

SUMMED = 1e-14
"""What rounding may take from a share that is the sum of many."""


def summarise_refine(result: RefineResult) -> dict[str, Any]:
    """The answer as for a map; `boxes` counts boxes by state, `guarantee_shares` says how much rests on what.

    `until`, `goal` and `relaxation` say how the run was to end and which bounds it used; `measures` what was looked at.
    """
    state = result.boxes.state
    more = {
        "guarantee_shares": dict(result.guarantee_shares),
        "boxes": {"all": len(state)} | {kind.name.lower(): int((state == kind).sum()) for kind in State},
        "until": result.until,
        "goal": result.goal,
        "relaxation": result.relaxation,
        "measures": ["label", "attention"] if result.is_measured else ["label"],
    }
    reached = float(result.boxes.volumes[state != State.OPEN].sum())
    return summarise_domain(result, visited_share=min(1.0, reached), guarantee=_guarantee(result), more=more)


def _guarantee(result: RefineResult) -> str:
    """What the answer rests on, and what is left open, in a few sentences."""
    shares = result.guarantee_shares
    bounded, exact, undecided = (shares[name] for name in ("rounding-sound", "float64 with slack", "undecided"))
    parts = []
    if bounded > 0.0:
        parts.append(f"on {_percent_down(bounded)} of the domain by bounds over boxes that hold whatever the rounding")
    if exact > 0.0:
        parts.append(
            f"on {_percent_down(exact)} of the domain by regions, in float64 arithmetic with error bounds or in exact "
            "arithmetic"
        )
    sentences = ["Nothing is proved of any part of the domain."]
    if parts:
        sentences = [f"Proved for the real-valued network: {'; '.join(parts)}."]
    by_shares = verdict_from(result.answer.shares, result.problem.property)
    if result.verdict is Verdict.NOT_ROBUST and by_shares is not Verdict.NOT_ROBUST:
        sentences.append(SINGLE_THETAS)
    if result.is_measured and result.sliver_share > 0.0:
        sentences.append(kinks_text(result.sliver_share))
    if undecided > 0.0:
        why = f"; the run was ended ({result.stopped})" if result.stopped is not None else ""
        sentences.append(f"A share of {round_up(undecided, 2):g} is undecided{why}.")
    else:
        sentences.append("Nothing is undecided.")
    if not result.is_measured:
        sentences.append("Attention was not measured.")
    return " ".join([*sentences, agreement_text(result.agreement)])


def _percent_down(share: float) -> str:
    """A share in percent, rounded down: never more than was proved, the rounding of sums of shares apart.

    >>> _percent_down(0.99999999), _percent_down(1.0 - 1e-16)
    ('99.999999 %', '100 %')
    """
    if share < 1e-4:
        return "less than 0.01 %"
    digits = 1e4 if share < 0.9999 else 1e8
    return f"{100.0 * math.floor(digits * min(share + SUMMED, 1.0)) / digits:.8g} %"
