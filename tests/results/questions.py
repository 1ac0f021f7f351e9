"""Small questions whose maps the tests of this folder share: lost labels, moving maps in both distances, one axis."""

from steadygaze.api import verify
from steadygaze.budget import Budget, Limits
from steadygaze.results.result import Result

QUESTIONS = {
    "keep": (["brightness:0.9..1", "patch:x=12,y=12,w=4,h=4"], {"delta": 3.0}),
    "moving l2": (["translate:dx=2:0.9..1.1", "brightness:0..0.02"], {"delta": "50%"}),
    "moving l1": (
        ["translate:dx=2:0.9..1.1", "brightness:0..0.02"],
        {"delta": "25%", "dist": "l1", "filter": "abs+mean", "classes": "3,7"},
    ),
    "line": (["translate:dy=-2"], {"delta": "25%", "property": "ar"}),
    "robust": (["brightness:0..0.001"], {"delta": "25%"}),
}

ALL = (*QUESTIONS, "partial")


def run(name: str, *, threads: int = 1) -> Result:
    """The result of one of the questions; "partial" is the first of them, stopped early."""
    is_partial = name == "partial"
    specs, options = QUESTIONS["keep" if is_partial else name]
    budget = Budget(Limits(max_regions=10)) if is_partial else None
    return verify("M-FNN-100", "mnist:69990", specs, threads=threads, budget=budget, **options)
