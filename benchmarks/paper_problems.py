"""The names of the paper's problems: networks, the last ten images of each set, combinations of perturbations.

Imports no heavy modules, because processes that start others use it; only `question_of` reads a model.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timing import commit

if TYPE_CHECKING:
    from steadygaze.network.model import Model
    from steadygaze.question import Question

SIZES = ("FNN-100", "FNN-200", "FNN-400", "FNN-800")
INDEXES = tuple(range(69990, 70000))
DOMAINS = ("BP", "TP", "TB")
PROPERTIES = ("cr", "ar", "both")
SHIFT = "dy=1"
DELTA = 3.0
W_DELTA = 0.2


@dataclass(frozen=True)
class Asked:
    """One problem by its names.

    >>> print(Asked("M-FNN-100", "BP", "mnist:69990"))
    M-FNN-100 BP mnist:69990
    """

    model: str
    domain: str
    image: str

    def __str__(self) -> str:
        return f"{self.model} {self.domain} {self.image}"


def image_name(model: str, index: int) -> str:
    """The image with an index in the set that a network was trained on."""
    return f"{'mnist' if model.startswith('M-') else 'fashion'}:{index}"


def problems_of(model: str) -> list[Asked]:
    """The thirty problems of one network."""
    return [Asked(model, domain, image_name(model, index)) for index in INDEXES for domain in DOMAINS]


def sample() -> list[Asked]:
    """Twelve fixed problems: every size with every combination, both sets in turn, different images."""
    chosen = []
    for i, size in enumerate(SIZES):
        for j, domain in enumerate(DOMAINS):
            model = f"{'MF'[(i + j) % 2]}-{size}"
            chosen.append(Asked(model, domain, image_name(model, INDEXES[(3 * i + j) % len(INDEXES)])))
    return chosen


def restricted(problems: Sequence[Asked], only: Sequence[str]) -> list[Asked]:
    """The problems whose name contains one of the phrases; all without a phrase."""
    return [asked for asked in problems if not only or any(phrase in str(asked) for phrase in only)]


def specs(domain: str, shift: str = SHIFT) -> tuple[str, ...]:
    """The perturbations of a combination: B brightness, P a patch of 4×4 at (12, 12), T a translation by one pixel."""
    letters = {"B": "brightness", "P": "patch:x=12,y=12,w=4,h=4", "T": f"translate:{shift}"}
    return tuple(letters[letter] for letter in domain)


def question_of(asked: Asked, wanted: str, *, shift: str = SHIFT, model: "Model | None" = None) -> "Question":
    """The question for the package; a model that was read before is reused."""
    from steadygaze.question import make_question  # noqa: PLC0415 (heavy)

    domain = specs(asked.domain, shift)
    question = make_question(model or asked.model, asked.image, domain, property=wanted, delta=DELTA)
    _ = question.agreement  # checking the model file is no part of what is measured
    return question


def stored(path: Path, field: str, empty: Any, **options: Any) -> Any:
    """The field that an earlier run at this commit stored with the same options; `empty` if there is none."""
    if not path.exists():
        return empty
    content = json.loads(path.read_text(encoding="utf-8"))
    is_same = content.get("commit") == commit() and content.get("options") == options
    return content.get(field, empty) if is_same else empty
