"""Small questions whose maps tests store and export: lost labels, moving maps in both distances, one axis."""

from steadygaze.api import verify
from steadygaze.budget import Budget, Limits
from steadygaze.results.result import Result

QUESTIONS = {
    "keep": (["brightness:0.9..1", "patch:x=12,y=12,w=4,h=4"], {"delta": 3.0}),
    "moving l2": (["translate:dx=2:-0.2..0.3", "brightness:0..0.02"], {"delta": "10%"}),
    "moving l1": (
        ["translate:dx=2:-0.2..0.3", "brightness:0..0.02"],
        {"delta": 0.7, "dist": "l1", "filter": "abs+mean", "classes": "3,7"},
    ),
    "line": (["translate:dy=-2"], {"delta": "25%", "property": "ar"}),
    "robust": (["brightness:0..0.001"], {"delta": "25%"}),
}

STOPPED = ("partial", "empty")
ALL = (*QUESTIONS, *STOPPED)


def run(name: str, *, threads: int = 1) -> Result:
    """The result of one of the questions, or of one that is stopped: after the first knot cell, or at once."""
    specs, options = QUESTIONS.get(name, (["translate:dx=3:0.9..2.1", "brightness:0..0.02"], {"delta": 3.0}))
    budget = Budget(Limits(max_regions=1 if name == "partial" else None))
    if name == "empty":
        budget.cancelled.set()
    return verify("M-FNN-100", "mnist:69990", specs, threads=threads, budget=budget, **options)
