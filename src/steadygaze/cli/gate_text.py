"""The requirements of a campaign for the terminal: their outcomes, and the problems to blame."""

from rich.console import Console
from rich.text import Text

from ..campaign.gate import Gate
from .printing import print_outcome

MOST_BLAMED = 20
"""Problems listed for one requirement; --json of `campaign status` has all."""


def describe_gate(gate: Gate) -> None:
    """Print every requirement with its outcome, the problems to blame, and the outcome of all."""
    console = Console(highlight=False)
    for one in gate.judgements:
        print_outcome(console, f"Required {one.text}: ", one.outcome, f" ({one.found})")
        _list(console, [f"{blamed.problem.name}: {blamed.state}" for blamed in one.to_blame])
    if gate.unanswered:
        listed = {blamed.problem.key for one in gate.judgements for blamed in one.to_blame}
        others = [f"{one.name}: {one.status}: {one.reason}" for one in gate.unanswered if one.key not in listed]
        console.print(Text(f"{len(gate.unanswered):,} problems failed, timed out or have not ended"))
        _list(console, others)
    if len(gate.judgements) > 1 or gate.unanswered:
        print_outcome(console, "All requirements: ", gate.outcome)


def _list(console: Console, lines: list[str]) -> None:
    for line in lines[:MOST_BLAMED]:
        console.print(Text(f"  {line}"), soft_wrap=True)
    if len(lines) > MOST_BLAMED:
        console.print(Text(f"  and {len(lines) - MOST_BLAMED:,} more; campaign status DIR --json lists all"))
