"""Reads a `Plan` from a TOML file or a bundled plan: looks up, hashes and orders everything.

Reports a mistake in one line, with its place in the file, before anything runs. Solves nothing.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from .. import zoo
from ..attention.measures import Measure
from ..class_names import bundled_names, find_label, read_class_names
from ..engines import ENGINES
from ..engines.contract import UNTIL, W_DELTA
from ..errors import ImageError, ModelError, OptionError, PerturbationError, SteadygazeError, did_you_mean
from ..image_fit import ImageFit
from ..images import read_image
from ..inputs import read_fitting
from ..network.layout import ReadOptions
from ..perturbation import compose, file_digests, parse_specs
from ..question import OPTIONS
from ..question_options import THRESHOLDS, fitted_options
from .plan_inputs import (
    IMAGE_ENDINGS,
    ExpectedLabels,
    PlanFits,
    find_files,
    find_models,
    pixels_of,
    preset_combinations,
)
from .plan_tables import COMBINATIONS, RunTable, Texts, parse_tables, plan_words
from .set_requirement import SetRequirement
from .stored_campaign import (
    Plan,
    PlannedImage,
    PlannedModel,
    PlannedRequirement,
    Task,
    digest_of,
    image_file,
    make_key,
)

BUNDLED = ("paper", "smoke", "filters", "perturbations", "networks", "object")
MOST_TASKS = 1_000_000

USUAL = {"until": UNTIL, "w_delta": W_DELTA, "goal": "map"}
"""Keys name these settings only if they differ."""


def read_plan(text: str | Path) -> Plan:
    """The plan in a file, or a bundled one by its name; OptionError, ModelError or ImageError names the mistake.

    >>> plan = read_plan("smoke")
    >>> plan.name, plan.methods
    ('smoke', ('map', 'refine', 'bfs', 'gbs', 'boundary'))
    """
    path = Path(__file__).with_name("plans") / f"{text}.toml" if str(text) in BUNDLED else Path(text)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        guess = did_you_mean(str(text), BUNDLED)
        raise OptionError(
            f"{text}: no such file; expected a plan in TOML, or the name of a bundled one: {', '.join(BUNDLED)}"
            f"{'.' if guess else ''}{guess}"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise OptionError(f"{text}: cannot be read as TOML ({reason}); docs/campaign.md has an example") from None
    return _Reader(path, content).plan()


class _Reader:
    """Reads one file; every error names it."""

    def __init__(self, path: Path, content: Mapping[str, Any]) -> None:
        self.path, self.folder = path, path.resolve().parent
        try:
            self.file = parse_tables(content)
        except ValueError as error:
            self._refuse(str(error))
        self.fits = PlanFits()
        self.checked: set[tuple[str, ...]] = set()
        self.misfits: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.preset_names: set[str] = set()  # combinations that need not fit every image
        self.notes: dict[str, None] = {}

    def plan(self) -> Plan:
        combinations = dict(self._combinations())
        images: dict[str, PlannedImage] = {}
        for place, image in self._images():
            self._add(place, images, image)
        models: dict[str, PlannedModel] = {}
        for place, model in self._models(images):
            self._add(place, models, model)
        combinations |= self._preset_combinations(models, images)
        tasks: dict[str, Task] = {}
        for task in self._tasks(models, images, combinations):
            if task.key in tasks:
                self._refuse(f"{task.key} occurs twice; leave one of the two runs out")
            tasks[task.key] = task
            if len(tasks) > MOST_TASKS:
                self._refuse(f"more than {MOST_TASKS:,} problems; split the plan")
        name, planned = self.file.campaign.name or self.path.stem, tuple(tasks.values())
        for mask in {task.options["mask"] for task in planned}:
            if Path(mask).is_file():
                self.files[mask] = digest_of(Path(mask))
        require, keep = tuple(self._require(planned)), self.file.campaign.keep
        notes = (*self.notes, *self.fits.notes())
        return Plan(name, models, images, combinations, planned, require, keep, self.files, notes, self.misfits)

    def _require(self, tasks: Sequence[Task]) -> Iterator[PlannedRequirement]:
        """The requirements of single runs, and those of all problems."""
        places = [(f"runs {number}", number, run.require) for number, run in enumerate(self.file.runs, 1)]
        for place, number, texts in [*places, ("campaign", None, self.file.campaign.require)]:
            for text in _listed(texts or []):
                found = self._checked(place, SetRequirement.parse, text)
                blind = [task.method for task in tasks if number in (None, task.run) and not _has_shares(task.method)]
                if found.needs_shares and blind:
                    self._refuse(
                        f"{place}.require {text!r} does not go with method {blind[0]}, which bounds no shares of the "
                        "domain; require 'robust', or give the requirement to runs of map, refine or bfs"
                    )
                yield PlannedRequirement(text, number)

    def _add(self, place: str, known: dict[str, Any], entry: PlannedImage | PlannedModel) -> None:
        if entry.name in known:
            self._refuse(f"{place}: {entry.name} occurs twice; leave one out")
        known[entry.name] = entry

    def _combinations(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        if self.file.combinations is None and self.file.preset is None:
            self._refuse(f"the file has no combinations; expected {COMBINATIONS}, or a preset")
        for name, value in (self.file.combinations or {}).items():
            try:
                specs = _listed(msgspec.convert(value, Texts))
            except msgspec.ValidationError:
                self._refuse(f"combinations.{name} is {value!r}; expected a text, or a list of texts")
            found = [self._checked(f"combinations.{name}", parse_specs, [spec]) for spec in specs]
            digests = [digest for families in found for family in families for digest in file_digests(family.spec)]
            if digests:
                self.files[name] = " ".join(digests)
            yield name, tuple(specs)

    def _preset_combinations(
        self, models: Mapping[str, PlannedModel], images: Mapping[str, PlannedImage]
    ) -> dict[str, tuple[str, ...]]:
        """The questions of presets as combinations; their places depend on the size of the images, once fitted."""
        presets = _listed(self.file.preset or [])
        pairs = product(self.file.runs, models.values(), images.values()) if presets else ()
        sizes = [size for run, model, image in pairs if (size := self._fitted_size(run, model, image)) is not None]
        found = self._checked("preset", preset_combinations, presets, sizes, list(self.file.combinations or {}))
        self.preset_names = set(found)
        return found

    def _fitted_size(self, run: RunTable, model: PlannedModel, image: PlannedImage) -> tuple[int, ...] | None:
        """Height and width of an image in the problems of a run; None if model and image do not meet."""
        if image.group != model.group:
            return None
        shape, fits = pixels_of(image).shape, [ImageFit.of(text) for text in _listed(run.fit)]
        taken = self.fits.input_shape(model, shape) if any(fit.how for fit in fits) else None
        found = {
            (fit.size[1], fit.size[0]) if fit.size else taken[1:] if fit.how and taken else shape[1:] for fit in fits
        }
        return found.pop() if len(found) == 1 else shape[1:]

    def _images(self) -> Iterator[tuple[str, PlannedImage]]:
        for number, table in enumerate(self.file.images, 1):
            labels = self._checked(f"images {number}", ExpectedLabels, self.folder, table.expect)
            for text in _listed(table.use):
                for name, location in self._image_files(f"images {number}.use", text):
                    expected = self._checked(f"images {number}", labels.of, name)
                    digest = digest_of(image_file(location))
                    yield f"images {number}", PlannedImage(name, table.group, digest, location, expected)

    def _image_files(self, place: str, text: str) -> Iterator[tuple[str, str]]:
        """Name and location of each image of a text: a bundled slice, a file, a folder, a glob."""
        if zoo.is_reference(text):
            dataset, _, numbers = text.partition(":")
            first, dots, last = numbers.partition("..")
            if not first.isdecimal() or (dots and not last.isdecimal()) or (dots and int(last) < int(first)):
                self._refuse(f"{place} has {text!r}; expected an index or a slice, such as {dataset}:69990..69999")
            for number in range(int(first), int(last or first) + 1):
                reference = f"{dataset}:{number}"
                self._checked(place, zoo.image_path, reference)
                yield reference, reference
            return
        files = find_files(self.folder, text, IMAGE_ENDINGS)
        if not files:
            self._refuse(f"{place}: {text} holds no image; expected files that end with {', '.join(IMAGE_ENDINGS)}")
        for name, file in files:
            self._checked(place, read_image, file)
            yield name, str(file)

    def _models(self, images: Mapping[str, PlannedImage]) -> Iterator[tuple[str, PlannedModel]]:
        bundled = {model.name: model for model in zoo.models()}
        for number, table in enumerate(self.file.models, 1):
            place, group = f"models {number}", table.group
            own = [image for image in images.values() if image.group == group]
            if not own:
                self._refuse(f"{place} is in group {group!r}, which has no images; add [[images]] to it")
            mean, std = (None if each is None else tuple(_listed(each)) for each in (table.mean, table.std))
            names = table.class_names and self._checked(place, read_class_names, self.folder / table.class_names)
            for text in _listed(table.use):
                for name, path in self._checked(f"{place}.use", find_models, self.folder, text):
                    options: dict[str, Any] = {"mean": mean, "std": std, "scale": table.scale, "output": table.output}
                    classes: int | None
                    if path is None:
                        neurons, digest = bundled[name].neurons, digest_of(bundled[name].path)
                        classes = len(zoo.class_names(bundled[name].dataset))
                    else:
                        neurons, digest, classes = self._look_at(f"{place}.use", path, own[0], **options)
                    self._check_labels(place, name, names, classes, own)
                    location = name if path is None else str(path)
                    yield (
                        place,
                        PlannedModel(name, group, neurons, digest, location, class_names=names or None, **options),
                    )

    def _look_at(self, place: str, path: Path, image: PlannedImage, **options: Any) -> tuple[int, str, int | None]:
        """Neurons, digest and classes of a model file; 0 and None if it is not supported: its problems will fail."""
        digest = self._checked(place, _digest_or_error, path)
        try:
            read = self._checked(place, read_fitting, path, pixels_of(image).shape, ReadOptions(**options))
        except ModelError:
            return 0, digest, None
        return read.graph.neurons, digest, read.classes

    def _check_labels(
        self, place: str, model: str, names: Sequence[str] | None, classes: int | None, images: Sequence[PlannedImage]
    ) -> None:
        """Refuse expected labels that are none of a model's classes."""
        if classes is None:
            return
        if names and len(names) != classes:
            self._refuse(f"{place}.class_names has {len(names)} names, but {model} has {classes} classes")
        for image in images:
            if image.expected is not None:
                known = names or bundled_names(image.location, classes) or [str(label) for label in range(classes)]
                self._checked(f"{image.name}, {model}", find_label, image.expected, known, "expect")

    def _tasks(
        self,
        models: Mapping[str, PlannedModel],
        images: Mapping[str, PlannedImage],
        combinations: Mapping[str, tuple[str, ...]],
    ) -> Iterator[Task]:
        for number, run in enumerate(self.file.runs, 1):
            place = f"runs {number}"
            chosen = self._chosen(f"{place}.models", run.models, list(models))
            named = self._chosen(f"{place}.combinations", run.combinations, list(combinations))
            options = self._options(place, number, run)
            for model in chosen:
                own = [image for image in images.values() if image.group == models[model].group]
                for image, name, option in product(own, named, options):
                    task = _task(model, image.name, name, option)
                    try:
                        if self._is_asked(models[model], image, task, combinations[name]):
                            yield task
                    except ImageError as error:
                        self.misfits[task.key] = str(error)
                        yield task

    def _is_asked(self, model: PlannedModel, image: PlannedImage, task: Task, specs: Sequence[str]) -> bool:
        """Refuse perturbations that leave the image or cannot be combined, before anything runs.

        A question of a preset that does not apply to the image is left out, with a note: then the answer is False.
        ImageError if the image does not fit the model.
        """
        pixels, name = self.fits.fitted(model, image, task.options), task.combination
        if pixels is None and task.options["fit"]:
            return True
        pixels = pixels_of(image) if pixels is None else pixels
        known = (image.name, name, *(task.options[key] for key in ("fit", "grey", "rgb")), str(pixels.shape))
        if known in self.checked:
            return True
        try:
            self._checked(f"combinations.{name}, {image.name}", compose, parse_specs(specs), pixels)
        except PerturbationError as error:
            if name not in self.preset_names:
                raise
            self.notes[f"{error} (left out)"] = None
            return False
        self.checked.add(known)
        return True

    def _options(self, place: str, number: int, run: RunTable) -> list[dict[str, Any]]:
        """The settings of a run's problems: one set for every choice of the question's options."""
        fixed: dict[str, Any] = {
            "method": run.method,
            "until": None if run.method != "refine" else USUAL["until"] if run.until is None else run.until,
            "w_delta": None if run.method != "gbs" else USUAL["w_delta"] if run.w_delta is None else run.w_delta,
            "goal": None if run.method != "refine" else run.goal or USUAL["goal"],
            "run": number,
        }
        for key, unit in (("seconds", "seconds"), ("memory_gib", "GiB")):
            fixed[key] = getattr(run, key) or getattr(self.file.limits, key)
            if fixed[key] is None:
                self._refuse(f"{place} has no limit: expected {key} there or in [limits], a number of {unit}")
        choices = [
            [self._checked(f"{place}.{name}", option.parse, text) for text in _listed(getattr(run, name))]
            for name, option in OPTIONS.items()
        ]
        uses = {Measure.parse(name).option for name in choices[list(OPTIONS).index("attention")]}
        for name in THRESHOLDS:
            if getattr(run, name) != OPTIONS[name].paper and name not in uses:
                self._refuse(f"{place}.{name} does not go with the attention of this run; leave it out")
        asked = [dict(zip(OPTIONS, values, strict=True)) for values in product(*choices)]
        found: list[dict[str, Any]] = []
        first: dict[tuple[str, ...], dict[str, str]] = {}
        for options in asked:
            fitted = self._checked(place, fitted_options, options)
            self._checked(place, ImageFit.of, fitted["fit"], grey=fitted["grey"], rgb=fitted["rgb"])
            # Options that do not belong to a property would repeat its problems.
            if first.setdefault(tuple(fitted.values()), options) == options:
                found.append(fixed | {"options": fitted})
        return found

    def _chosen(self, place: str, patterns: Any, names: Sequence[str]) -> list[str]:
        """The names that match one of the patterns, in the order of the names."""
        wanted = _listed(patterns)
        for pattern in wanted:
            if not any(_matches(name, pattern) for name in names):
                self._refuse(f"{place} has {pattern!r}, which matches none of {', '.join(names)}")
        return [name for name in names if any(_matches(name, pattern) for pattern in wanted)]

    def _checked(self, place: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a function; its error names the file and the place."""
        try:
            return function(*arguments, **options)
        except SteadygazeError as error:
            raise type(error)(plan_words(f"{self.path.name}: {place}: {error}")) from None

    def _refuse(self, mistake: str) -> NoReturn:
        raise OptionError(f"{self.path.name}: {mistake}")


def _digest_or_error(path: Path) -> str:
    try:
        return digest_of(path)
    except OSError as error:
        raise OptionError(f"{path.name}: cannot be read ({error.strerror})") from None


def _has_shares(method: str) -> bool:
    return ENGINES[method].gives_shares


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _task(model: str, image: str, combination: str, settings: Mapping[str, Any]) -> Task:
    chosen = settings["options"]
    words = [model, image, combination, settings["method"]]
    words += [chosen[name] for name, option in OPTIONS.items() if option.is_in_key and chosen[name]]
    usual = {name: option.paper for name, option in OPTIONS.items() if not option.is_in_key} | USUAL
    usual["classes"] = Measure.parse(chosen["attention"]).classes
    given = chosen | settings
    words += [f"{name.replace('_', '-')}-{given[name]}" for name in usual if given[name] not in (None, "", usual[name])]
    return Task(key=make_key(*words), model=model, image=image, combination=combination, **settings)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(Path(name).stem, pattern)
