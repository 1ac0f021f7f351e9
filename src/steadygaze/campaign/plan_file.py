"""From a TOML file, or the name of a bundled plan, to a `Plan`: everything is looked up, hashed and put in order.

Whatever is misspelt or missing is refused here in one line, before anything runs. Solves nothing.
"""

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .. import zoo
from ..attention.filters import Filter
from ..attention.options import Distance
from ..errors import OptionError, SteadygazeError
from ..images import read_image
from ..network.model import read_model
from ..perturbation import compose, parse_spec
from ..problem import Delta
from ..verdict import Property
from .plan import METHODS, Plan, PlannedImage, PlannedModel, Task, make_key

BUNDLED = ("paper", "smoke", "filters", "perturbations")
ENDINGS = (".png", ".jpg", ".jpeg", ".npy")
MOST_TASKS = 1_000_000
KEYS = {
    "the file": ("campaign", "limits", "models", "images", "combinations", "runs"),
    "[campaign]": ("name",),
    "[limits]": ("seconds", "memory_gib"),
    "[[models]]": ("use", "group", "mean", "std", "scale"),
    "[[images]]": ("use", "group"),
    "[[runs]]": (
        "method", "property", "delta", "filter", "dist", "classes", "models", "combinations", "until", "w_delta",
        "seconds", "memory_gib",
    ),
}  # fmt: skip
DEFAULTS: dict[str, Any] = {
    "property": "both", "delta": 3.0, "filter": "identity", "dist": "l2", "classes": "all", "until": 0.001,
    "w_delta": 0.2,
}  # fmt: skip
"""As in the paper's runs; `until` is that of verify."""


def read_plan(text: str | Path) -> Plan:
    """The plan in a file, or a bundled one by its name; OptionError, ModelError or ImageError says what is wrong.

    >>> plan = read_plan("smoke")
    >>> plan.name, plan.methods
    ('smoke', ('map', 'refine', 'bfs', 'gbs', 'boundary'))
    """
    path = Path(__file__).with_name("plans") / f"{text}.toml" if str(text) in BUNDLED else Path(text)
    try:
        with path.open("rb") as stream:
            content = tomllib.load(stream)
    except FileNotFoundError:
        near = get_close_matches(str(text), BUNDLED, 1)
        guess = f" Did you mean {near[0]}?" if near else ""
        raise OptionError(
            f"{text}: no such file;{guess} expected a plan in TOML, or the name of a bundled one: {', '.join(BUNDLED)}"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise OptionError(f"{text}: cannot be read as TOML ({what}); see docs/campaign.md for what it holds") from None
    return _Reader(path, content).plan()


class _Reader:
    """Reads one file; every error names it."""

    def __init__(self, path: Path, content: Mapping[str, Any]) -> None:
        self.path, self.content = path, content
        self.folder = path.resolve().parent
        self.fitting: set[tuple[str, str]] = set()

    def plan(self) -> Plan:
        self._known("the file", self.content)
        head = self._table("campaign")
        name = self._text("campaign.name", head.get("name", self.path.stem))
        combinations = self._combinations()
        images = {image.name: image for image in self._images()}
        models = {model.name: model for model in self._models(images)}
        tasks = tuple(self._tasks(models, images, combinations))
        keys: set[str] = set()
        for task in tasks:
            if task.key in keys:
                self._refuse(f"{task.key} is asked for twice; leave one of the two runs out")
            keys.add(task.key)
        return Plan(name, models, images, combinations, tasks)

    def _combinations(self) -> dict[str, tuple[str, ...]]:
        table = self._table("combinations")
        if not table:
            self._refuse('[combinations] is missing; expected names with perturbations, such as BP = ["brightness"]')
        found = {}
        for name, value in table.items():
            specs = self._texts(f"combinations.{name}", value)
            for spec in specs:
                self._checked(f"combinations.{name}", parse_spec, spec)
            found[name] = specs
        return found

    def _images(self) -> Iterator[PlannedImage]:
        seen: set[str] = set()
        for place, entry in self._entries("images"):
            group = self._text(f"{place}.group", entry.get("group", ""))
            for text in self._texts(f"{place}.use", entry.get("use")):
                for name, location in self._image_files(place, text):
                    if name in seen:
                        self._refuse(f"{place}: {name} is there twice; leave one out")
                    seen.add(name)
                    file = zoo.image_path(location) if zoo.is_reference(location) else Path(location)
                    yield PlannedImage(name, group, _digest(file), location)

    def _image_files(self, place: str, text: str) -> Iterator[tuple[str, str]]:
        """Name and location of each image that a text stands for: a bundled slice, a file, a folder."""
        if zoo.is_reference(text):
            dataset, _, numbers = text.partition(":")
            first, dots, last = numbers.partition("..")
            if not first.isdecimal() or (dots and not last.isdecimal()) or (dots and int(last) < int(first)):
                self._refuse(f"{place}.use has {text!r}; expected an index or a slice, such as {dataset}:69990..69999")
            for number in range(int(first), int(last or first) + 1):
                reference = f"{dataset}:{number}"
                self._checked(f"{place}.use", zoo.image_path, reference)
                yield reference, reference
            return
        path = self.folder / text
        if not path.is_dir():
            self._checked(f"{place}.use", read_image, path)
            yield text, str(path)
            return
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in ENDINGS and file.is_file())
        if not files:
            self._refuse(f"{place}.use: {text} holds no image; expected files that end with {', '.join(ENDINGS)}")
        for file in files:
            self._checked(f"{place}.use", read_image, file)
            yield (Path(text) / file.name).as_posix(), str(file)

    def _models(self, images: Mapping[str, PlannedImage]) -> Iterator[PlannedModel]:
        bundled = {model.name: model for model in zoo.models()}
        seen: set[str] = set()
        for place, entry in self._entries("models"):
            group = self._text(f"{place}.group", entry.get("group", ""))
            own = [image for image in images.values() if image.group == group]
            if not own:
                self._refuse(f"{place} is in group {group!r}, in which there are no images; add [[images]] to it")
            mean, std = (self._numbers(f"{place}.{key}", entry.get(key)) for key in ("mean", "std"))
            scale = self._number(f"{place}.scale", entry.get("scale", 1.0))
            for text in self._texts(f"{place}.use", entry.get("use")):
                if text in seen:
                    self._refuse(f"{place}: {text} is there twice; leave one out")
                seen.add(text)
                if text in bundled:
                    model = bundled[text]
                    yield PlannedModel(
                        text, group, model.neurons, _digest(model.path), text, mean=mean, std=std, scale=scale
                    )
                    continue
                path = self.folder / text
                if not path.exists() and not text.endswith(".onnx"):
                    self._checked(f"{place}.use", zoo.model_path, text)
                shape = _pixels(own[0]).shape
                read = self._checked(
                    f"{place}.use", read_model, path, image_shape=shape, mean=mean, std=std, scale=scale
                )
                neurons = sum(read.graph.hidden)
                yield PlannedModel(text, group, neurons, read.sha256, str(path), mean=mean, std=std, scale=scale)

    def _tasks(
        self,
        models: Mapping[str, PlannedModel],
        images: Mapping[str, PlannedImage],
        combinations: Mapping[str, tuple[str, ...]],
    ) -> Iterator[Task]:
        limits = self._table("limits")
        self._known("[limits]", limits)
        count = 0
        for place, entry in self._entries("runs"):
            if "method" not in entry:
                self._refuse(f"{place} has no method; expected one of {', '.join(METHODS)}")
            chosen = self._chosen(f"{place}.models", entry.get("models", ["*"]), list(models))
            named = self._chosen(f"{place}.combinations", entry.get("combinations", ["*"]), list(combinations))
            options = self._options(place, {**limits, **entry})
            for model in chosen:
                own = [image for image in images.values() if image.group == models[model].group]
                self._check_combinations(own, {name: combinations[name] for name in named})
                for image, combination, option in product(own, named, options):
                    count += 1
                    if count > MOST_TASKS:
                        self._refuse(f"more than {MOST_TASKS:,} problems; split the plan")
                    yield _task(model, image.name, combination, option)

    def _check_combinations(self, images: Sequence[PlannedImage], named: Mapping[str, tuple[str, ...]]) -> None:
        """Refuse perturbations that leave an image or do not go together, before anything runs."""
        for image, (name, specs) in product(images, named.items()):
            if (image.name, name) not in self.fitting:
                self.fitting.add((image.name, name))
                self._checked(f"combinations.{name}, {image.name}", compose, [*map(parse_spec, specs)], _pixels(image))

    def _options(self, place: str, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
        """How the problems of a run are answered: one set of options for every choice that is left open."""
        method = self._text(f"{place}.method", entry["method"])
        if method not in METHODS:
            self._refuse(f"{place}.method is {method!r}; expected one of {', '.join(METHODS)}")
        for key, owner in (("until", "refine"), ("w_delta", "gbs")):
            if key in entry and method != owner:
                self._refuse(f"{place}.{key} belongs to method {owner}, not {method}; leave it out")
        given = DEFAULTS | dict(entry)
        deltas = given["delta"] if isinstance(given["delta"], list) else [given["delta"]]
        choices = {
            "property": [
                self._checked(place, Property.parse, text).value for text in self._several(place, given, "property")
            ],
            "delta": [self._delta(place, delta) for delta in deltas],
            "filter": [self._checked(place, Filter.parse, text).name for text in self._several(place, given, "filter")],
            "dist": [
                self._checked(place, Distance.parse, text).name.lower() for text in self._several(place, given, "dist")
            ],
        }
        fixed: dict[str, Any] = {
            "method": method,
            "classes": self._classes(f"{place}.classes", given["classes"]),
            "until": self._until(place, given["until"]) if method == "refine" else None,
            "w_delta": self._number(f"{place}.w_delta", given["w_delta"]) if method == "gbs" else None,
        }
        for key, unit in (("seconds", "seconds"), ("memory_gib", "GiB")):
            if key not in entry:
                self._refuse(f"{place} has no limit: expected {key} there or in [limits], a number of {unit}")
            fixed[key] = self._number(f"{place}.{key}", entry[key])
            if fixed[key] <= 0.0:
                self._refuse(f"{place}.{key} is {entry[key]}; expected a number above 0")
        names = list(choices)
        return [fixed | dict(zip(names, values, strict=True)) for values in product(*choices.values())]

    def _several(self, place: str, given: Mapping[str, Any], key: str) -> tuple[str, ...]:
        return self._texts(f"{place}.{key}", given[key])

    def _delta(self, place: str, value: Any) -> str:
        """A threshold as text, with all its digits, the same however it is written."""
        return str(self._checked(f"{place}.delta", Delta.parse, value))

    def _classes(self, place: str, value: Any) -> str:
        words = [word.strip() for word in self._text(place, value).split(",")]
        is_numbers = all(word.isdecimal() for word in words) and len(set(words)) == len(words)
        if words not in (["all"], ["predicted"]) and not is_numbers:
            self._refuse(f"{place} is {value!r}; expected all, predicted, or different numbers such as 3,8")
        return ",".join(words)

    def _until(self, place: str, value: Any) -> float | str:
        if value == "exact":
            return "exact"
        share = self._number(f"{place}.until", value)
        if share >= 1.0:
            self._refuse(f"{place}.until is {value!r}; expected a share such as 0.001, or exact")
        return share

    def _chosen(self, place: str, patterns: Any, names: Sequence[str]) -> list[str]:
        """The names that fit one of the patterns, in the order of the names."""
        wanted = self._texts(place, patterns)
        for pattern in wanted:
            if not any(_fits(name, pattern) for name in names):
                self._refuse(f"{place} has {pattern!r}, which fits none of {', '.join(names)}")
        return [name for name in names if any(_fits(name, pattern) for pattern in wanted)]

    def _entries(self, key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        entries = self.content.get(key)
        if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
            self._refuse(f"[[{key}]] is missing; expected at least one such table; docs/campaign.md has an example")
        for number, entry in enumerate(entries, 1):
            self._known(f"[[{key}]]", entry)
            yield f"{key} {number}", entry

    def _table(self, key: str) -> Mapping[str, Any]:
        table = self.content.get(key, {})
        if not isinstance(table, dict):
            self._refuse(f"{key} is {table!r}; expected a table [{key}]")
        if f"[{key}]" in KEYS:
            self._known(f"[{key}]", table)
        return table

    def _known(self, place: str, table: Mapping[str, Any]) -> None:
        for key in table:
            if key not in KEYS[place]:
                near = get_close_matches(key, KEYS[place], n=1)
                guess = f" Did you mean {near[0]}?" if near else ""
                self._refuse(f"{place} has a key {key!r}, which is not known.{guess} Expected {', '.join(KEYS[place])}")

    def _text(self, place: str, value: Any) -> str:
        if not isinstance(value, str):
            self._refuse(f"{place} is {value!r}; expected a text")
        return value

    def _texts(self, place: str, value: Any) -> tuple[str, ...]:
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
            self._refuse(f"{place} is {value!r}; expected a text, or a list of texts")
        return tuple(texts)

    def _number(self, place: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
            self._refuse(f"{place} is {value!r}; expected a number of at least 0")
        return float(value)

    def _numbers(self, place: str, value: Any) -> tuple[float, ...] | None:
        if value is None:
            return None
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(each, int | float) and math.isfinite(each) for each in values):
            self._refuse(f"{place} is {value!r}; expected a number, or one for each channel")
        return tuple(float(each) for each in values)

    def _checked(self, place: str, function: Any, *arguments: Any, **options: Any) -> Any:
        """What a function makes of a value; its error with the name of the file and the place."""
        try:
            return function(*arguments, **options)
        except SteadygazeError as error:
            raise type(error)(f"{self.path.name}: {place}: {error}") from None

    def _refuse(self, what: str) -> NoReturn:
        raise OptionError(f"{self.path.name}: {what}")


def _task(model: str, image: str, combination: str, options: Mapping[str, Any]) -> Task:
    words = [model, image, combination, options["method"], options["property"], options["delta"]]
    for key in ("filter", "dist", "classes", "until", "w_delta"):
        if options[key] not in (None, DEFAULTS[key]):
            words.append(f"{key.replace('_', '-')}-{options[key]}")
    return Task(key=make_key(*words), model=model, image=image, combination=combination, **options)


@lru_cache(maxsize=1)
def _pixels(image: PlannedImage) -> np.ndarray:
    return read_image(zoo.image_path(image.location) if zoo.is_reference(image.location) else image.location).pixels


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(Path(name).stem, pattern)


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
