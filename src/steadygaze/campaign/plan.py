"""What a campaign consists of: models, images, combinations of perturbations, and every problem to be solved, in order.

Data only, which another process can be given and a file can hold. `plan_file` makes it from TOML.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from hashlib import sha256
from typing import Any

METHODS = ("map", "refine", "bfs", "gbs", "boundary")
LETTERS = {"cr": "CR", "ar": "AR", "both": "CRAR"}
LONGEST_KEY = 150
"""Names of files may have 255 bytes; the rest is for endings and temporary names."""


@dataclass(frozen=True)
class PlannedModel:
    """A network: its `name` as the plan spells it; `location` is a bundled name, or a file on this machine."""

    name: str
    group: str
    neurons: int
    sha256: str
    location: str
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    scale: float = 1.0


@dataclass(frozen=True)
class PlannedImage:
    """An image: its `name` as the plan spells it; `location` is a bundled reference, or a file on this machine."""

    name: str
    group: str
    sha256: str
    location: str


@dataclass(frozen=True)
class Task:
    """One problem: a model, an image, a combination of perturbations, and how it is to be answered within which limits.

    `until` is for refine, `w_delta` for gbs; None elsewhere. `key` names it uniquely, and may name a file.
    """

    key: str
    model: str
    image: str
    combination: str
    method: str
    property: str
    delta: str
    filter: str
    dist: str
    classes: str
    until: float | str | None
    w_delta: float | None
    seconds: float
    memory_gib: float

    @cached_property
    def algorithm(self) -> str:
        """Method and property in the paper's words.

        >>> Task("", "", "", "", "gbs", "both", "3", "I", "l2", "all", None, 0.2, 1.0, 1.0).algorithm
        'gbs-CRAR'
        """
        is_plain = self.method not in ("gbs", "boundary") and self.property == "both"
        return self.method if is_plain else f"{self.method}-{LETTERS[self.property]}"


@dataclass(frozen=True)
class Plan:
    """A campaign as it will be run; `tasks` are in the order in which tables list them."""

    name: str
    models: Mapping[str, PlannedModel]
    images: Mapping[str, PlannedImage]
    combinations: Mapping[str, tuple[str, ...]]
    tasks: tuple[Task, ...] = field(repr=False)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that are used, in a fixed order."""
        used = {task.method for task in self.tasks}
        return tuple(method for method in METHODS if method in used)

    @property
    def needs(self) -> tuple[str, ...]:
        """What solving needs to be prepared for: methods, and `solid` where there are three parameters and more."""
        is_solid = any(len(self.combinations[task.combination]) > 2 for task in self.tasks)
        return (*self.methods, "solid") if is_solid else self.methods

    def question(self, task: Task) -> dict[str, Any]:
        """Everything that solving a task needs, as plain data."""
        model, image = self.models[task.model], self.images[task.image]
        return {
            "task": asdict(task),
            "model": asdict(model),
            "image": asdict(image),
            "perturbations": list(self.combinations[task.combination]),
        }

    def as_data(self) -> dict[str, Any]:
        """The plan as plain data without the places of files: the same plan gives the same data on every machine."""
        return {
            "name": self.name,
            "models": [_placeless(model) for model in self.models.values()],
            "images": [_placeless(image) for image in self.images.values()],
            "combinations": {name: list(specs) for name, specs in self.combinations.items()},
            "tasks": [asdict(task) for task in self.tasks],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Plan":
        """The plan again, of which no problem can be solved: where its files are is not known."""
        models = [_made(PlannedModel, entry) for entry in data["models"]]
        images = [_made(PlannedImage, entry) for entry in data["images"]]
        return cls(
            name=data["name"],
            models={model.name: model for model in models},
            images={image.name: image for image in images},
            combinations={name: tuple(specs) for name, specs in data["combinations"].items()},
            tasks=tuple(Task(**entry) for entry in data["tasks"]),
        )


def make_key(*words: str) -> str:
    """A name for a file, readable and unique for its words.

    >>> make_key("M-FNN-100", "mnist:69990", "BP", "map")
    'M-FNN-100_mnist-69990_BP_map'
    >>> make_key("a/b", "x"), make_key("a b", "x")
    ('a-b_x_f3cdf8d1', 'a-b_x_77632f64')
    """
    plain = [word.replace(":", "-") for word in words]
    safe = [re.sub(r"[^A-Za-z0-9.+%-]+", "-", word) for word in plain]
    key = "_".join(safe)
    if safe == plain and len(key) <= LONGEST_KEY and not key.startswith("."):
        return key
    # Letters that no file name should have were replaced: a digest keeps what differs apart.
    digest = sha256("\0".join(words).encode()).hexdigest()[:8]
    return f"{key[:LONGEST_KEY].lstrip('.')}_{digest}"


def _placeless(entry: PlannedModel | PlannedImage) -> dict[str, Any]:
    return {name: value for name, value in asdict(entry).items() if name != "location"}


def _made(kind: Any, entry: Mapping[str, Any]) -> Any:
    known = {each.name for each in fields(kind)}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    return kind(**{name: value for name, value in values.items() if name in known}, location="")
