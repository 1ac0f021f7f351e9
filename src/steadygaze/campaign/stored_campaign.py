"""A campaign as data: its plan with every problem in order, its directory, and the versions that made its rows.

`campaign.json` holds the plan, `rows/KEY.json` how each problem ended. There is no other state. Every file is written
atomically, and one run at a time holds the directory. Solves nothing.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from .. import zoo
from ..engines import ENGINES
from ..errors import StoreError, not_writable
from ..labels import Label, Status
from ..question import OPTIONS
from ..results.directory import atomic_file
from .versions import commit, made_by

try:
    import fcntl
except ImportError:  # without such locks, two runs at once go unnoticed
    fcntl = None  # type: ignore[assignment]

METHODS = tuple(ENGINES)
LIMITED = (Status.TIMEOUT.value, Status.FAILED.value, Status.UNDECIDED.value)
LETTERS = {"cr": Label.CR, "ar": Label.AR, "both": "CRAR"}
LONGEST_KEY = 150  # names of files may have 255 bytes; the rest is for endings and temporary names
SCHEMA_VERSION = 1
HEAD, ROWS, RESULTS, TEMPORARY = "campaign.json", "rows", "results", ".steadygaze-"
LOCK_TRIES = 5


def image_file(location: str) -> Path:
    """The file of an image: a bundled one by its reference, or any other."""
    return zoo.image_path(location) if zoo.is_reference(location) else Path(location)


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()


class PlannedImage(Struct, frozen=True, forbid_unknown_fields=True):
    """An image: its `name` as the plan spells it; `location` is a bundled reference, or a file on this machine.

    expected: the name or number of its true class, if known.
    """

    name: str
    group: str
    sha256: str
    location: str = ""
    expected: str | None = None


class PlannedModel(Struct, frozen=True, forbid_unknown_fields=True):
    """A network: its `name` as the plan spells it; `location` is a bundled name, or a file on this machine.

    neurons: 0 if the file cannot be read or is not supported, which makes its problems Failed.
    """

    name: str
    group: str
    neurons: int
    sha256: str
    location: str = ""
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    scale: float = 1.0
    output: str | None = None
    class_names: tuple[str, ...] | None = None


class PlannedRequirement(Struct, frozen=True, forbid_unknown_fields=True):
    """A requirement as the plan spells it, of one run (by its number from 1 on) or of all problems (None)."""

    text: str
    run: int | None = None


class Task(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """One problem: a model, an image, a combination of perturbations, how to answer it, and its limits.

    options: those of the question, as texts (see `question.OPTIONS`). `until` and `goal` are for refine,
    `w_delta` for gbs; None elsewhere. `key` is unique in the plan, and names a file. `run` is the number of its run.
    """

    key: str
    model: str
    image: str
    combination: str
    method: str
    options: dict[str, str]
    until: float | str | None
    w_delta: float | None
    seconds: float
    memory_gib: float
    goal: str | None = None
    run: int = 1

    def setting(self, name: str) -> Any:
        """An option of the question, or one of the method."""
        return self.options[name] if name in self.options else getattr(self, name)

    @cached_property
    def algorithm(self) -> str:
        """Method and property in the paper's words.

        >>> Task("", "", "", "", "gbs", {"property": "both"}, None, 0.2, 1.0, 1.0).algorithm
        'gbs-CRAR'
        """
        wanted = self.options["property"]
        is_plain = self.method not in ("gbs", "boundary") and wanted == "both"
        return self.method if is_plain else f"{self.method}-{LETTERS[wanted]}"


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """A campaign as it will be run; tables list `tasks` in this order.

    keep: which results stay on disk, `all`, `violations` or `none`. files: digests of the files behind perturbations,
    by the names of combinations, and of masks, by their texts. notes: problems left out, and why. misfits: reasons
    why an image does not fit its model, by the keys of problems, which are Failed without being solved.
    """

    name: str
    models: dict[str, PlannedModel]
    images: dict[str, PlannedImage]
    combinations: dict[str, tuple[str, ...]]
    tasks: tuple[Task, ...]
    require: tuple[PlannedRequirement, ...] = ()
    keep: str = "none"
    files: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    misfits: dict[str, str] = {}

    @property
    def has_expected(self) -> bool:
        """Whether the label of an image is expected: such images may be misclassified."""
        return any(image.expected is not None for image in self.images.values())

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods in use, in a fixed order."""
        used = {task.method for task in self.tasks}
        return tuple(method for method in METHODS if method in used)

    @property
    def needs(self) -> tuple[str, ...]:
        """The code that workers must prepare: methods, and `solid` if a problem has three parameters or more."""
        is_solid = any(len(self.combinations[task.combination]) > 2 for task in self.tasks)
        return (*self.methods, "solid") if is_solid else self.methods

    def question(self, task: Task) -> dict[str, Any]:
        """Everything that solving a task needs, as plain data."""
        parts = {"task": task, "model": self.models[task.model], "image": self.images[task.image]}
        return msgspec.to_builtins(parts) | {"perturbations": list(self.combinations[task.combination])}

    def digest(self, task: Task) -> str:
        """The identity of a problem: everything its answer depends on, apart from its limits and names of files."""
        question = self.question(task)
        asked = {name: question["task"][name] for name in ("method", "until", "w_delta", "goal")}
        # Rows written before an option existed used the paper's value.
        asked["options"] = {name: text for name, text in task.options.items() if text != OPTIONS[name].paper}
        for kind in ("model", "image"):
            given = {key: value for key, value in question[kind].items() if key not in ("name", "group", "location")}
            asked |= {kind: {key: value for key, value in given.items() if value is not None and key != "neurons"}}
        named = (task.combination, task.options.get("mask", ""))
        asked |= {name: self.files[name] for name in named if name in self.files}
        return sha256(json.dumps([asked, question["perturbations"]], sort_keys=True).encode()).hexdigest()[:32]

    def as_data(self) -> dict[str, Any]:
        """The plan as plain data without the locations of files: one plan gives the same data on every machine."""
        data = msgspec.json.decode(msgspec.json.encode(self))
        for name in ("models", "images"):
            data[name] = [
                {key: value for key, value in entry.items() if key != "location"} for entry in data[name].values()
            ]
        data["tasks"] = [task.pop("options") | task for task in data["tasks"]]
        return data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Plan":
        """The plan as stored, for reports only: it does not say where the files are.

        Options that are newer than the campaign have their values in the paper's runs.
        """
        named = {name: {entry["name"]: entry for entry in data[name]} for name in ("models", "images")}
        tasks = [
            {key: value for key, value in task.items() if key not in OPTIONS}
            | {"options": {name: task.get(name, option.paper) for name, option in OPTIONS.items()}}
            for task in data["tasks"]
        ]
        return msgspec.convert({**data, **named, "tasks": tasks}, cls)


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
    # Letters unfit for file names were replaced: a digest distinguishes such names.
    digest = sha256("\0".join(words).encode()).hexdigest()[:8]
    return f"{key[:LONGEST_KEY].lstrip('.')}_{digest}"


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `campaign.json`; `plan` is `Plan.as_data`."""

    schema_version: int
    commit: str | None
    made_by: dict[str, str]
    plan: dict[str, Any]


@dataclass(frozen=True)
class Store:
    """The directory of a campaign."""

    directory: Path
    plan: Plan
    head: Head

    @classmethod
    def open(cls, directory: str | Path) -> "Store":
        """Open the campaign in a directory for reading; StoreError if there is none."""
        place = Path(directory)
        try:
            content = json.loads((place / HEAD).read_text(encoding="utf-8"))
            if content["schema_version"] != SCHEMA_VERSION:
                raise StoreError(f"{place}: was written by another version of steadygaze; run the campaign again")
            head = msgspec.convert(content, Head)
            return cls(place, Plan.from_data(head.plan), head)
        except FileNotFoundError:
            raise StoreError(f"{place}: holds no campaign; give the --out of campaign run") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"{place}: {HEAD} cannot be read ({error!r}); run the campaign again") from None

    @classmethod
    def begin(cls, directory: str | Path, plan: Plan) -> "Store":
        """Open a `held` directory for a run: a new one, or that of an earlier run of the campaign.

        The plan may have changed since: rows count for the problems that they answer. Refuses any other directory, a
        campaign of another name, and other versions of the packages that compute.
        """
        place = Path(directory)
        if not (place / HEAD).exists():
            return cls._create(place, plan)
        found = cls.open(place)
        stored, given = found.head.plan, plan.as_data()
        if stored["name"] != given["name"]:
            raise StoreError(
                f"{place}: holds the campaign {stored['name']!r}, but this plan is named {given['name']!r}; choose "
                "another --out, or run that plan again"
            )
        former = found.head.made_by
        other = [f"{name} {former.get(name)} (now {now})" for name, now in made_by().items() if former.get(name) != now]
        if other:
            raise StoreError(f"{place}: was started with {', '.join(other)}; restore these, or choose another --out")
        _tidy(place)
        head = msgspec.structs.replace(found.head, plan=given)
        if found.plan.as_data() != given:
            if any("question" not in row for row in found.rows().values()):
                raise StoreError(
                    f"{place}: the plan has changed, and rows of an earlier version of steadygaze do not record which "
                    "problems they answer; choose another --out"
                )
            try:
                write_whole(place / HEAD, _head_text(head))
            except OSError as error:
                raise not_writable(place, error) from None
        return cls(place, plan, head)

    @classmethod
    def _create(cls, place: Path, plan: Plan) -> "Store":
        try:
            inside = list(place.iterdir()) if place.exists() else []
            if any(path.name != ROWS and not path.name.startswith(TEMPORARY) for path in inside):
                raise StoreError(f"{place}: exists and holds no campaign; choose another --out")
            if any((place / ROWS).glob("*.json")):
                raise StoreError(f"{place}: holds rows of an unknown campaign ({HEAD} is gone); choose another --out")
            (place / ROWS).mkdir(parents=True, exist_ok=True)
            _tidy(place)
            head = Head(SCHEMA_VERSION, commit(), made_by(), plan.as_data())
            write_whole(place / HEAD, _head_text(head))
        except OSError as error:
            raise not_writable(place, error) from None
        return cls(place, plan, head)

    def is_held(self) -> bool:
        """Whether a run is active, as far as the system shows."""
        try:
            with held(self.directory):
                return False
        except StoreError:
            return True

    def put(self, row: Mapping[str, Any]) -> None:
        """Store how a problem ended, with the identity of the problem and its limits."""
        task = self._tasks[row["key"]]
        whole = {"key": task.key, "question": self.plan.digest(task), "limits": _limits(task)} | dict(row)
        try:
            write_whole(self._path(task.key), json.dumps(whole, indent=1, allow_nan=False) + "\n")
        except OSError as error:
            raise StoreError(
                f"{self.directory}: a row cannot be written ({error.strerror}); fix this and run again to continue"
            ) from None

    def kept(self, key: str) -> Path:
        """The directory of a problem's result, if the campaign keeps it."""
        return self.directory / RESULTS / key

    def keeping(self, task: Task) -> dict[str, Any]:
        """The instructions for a worker to keep the result of a task; deletes the result of an earlier question."""
        shutil.rmtree(self.kept(task.key), ignore_errors=True)
        if self.plan.keep == "none":
            return {}
        texts = [one.text for one in self.plan.require if one.run in (None, task.run)]
        place = str(self.kept(task.key).resolve())
        return {"keep": {"directory": place, "is_violation_only": self.plan.keep != "all", "require": texts}}

    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of all problems that have ended, by their keys, in the order of the plan.

        A row of another question does not count: a file has changed since. Neither does one that a limit may have
        ended, and the limits have changed since.
        """
        found = {}
        present = {path.stem for path in (self.directory / ROWS).glob("*.json")}
        for task in (task for task in self.plan.tasks if task.key in present):
            path = self._path(task.key)
            try:
                row = json.loads(path.read_text(encoding="utf-8"))
                if row["key"] != task.key:
                    raise ValueError
                is_limited = row["answer"]["status"] in LIMITED and row.get("limits", _limits(task)) != _limits(task)
            except (OSError, ValueError, KeyError, TypeError):
                raise StoreError(f"{path}: is damaged; delete it and run again to solve that problem again") from None
            if not is_limited and row.get("question") in (None, self.plan.digest(task)):
                found[task.key] = row
        return found

    @cached_property
    def _tasks(self) -> dict[str, Task]:
        return {task.key: task for task in self.plan.tasks}

    def _path(self, key: str) -> Path:
        return self.directory / ROWS / f"{key}.json"


def _limits(task: Task) -> list[float]:
    return [task.seconds, task.memory_gib]


@contextmanager
def held(directory: str | Path) -> Iterator[None]:
    """Make a directory and keep other runs out of it while the block runs; a killed process releases it."""
    place = Path(directory)
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDONLY)
    except OSError as error:
        raise not_writable(place, error) from None
    try:
        if not _is_locked(handle):
            raise StoreError(f"{place}: another run is active there; wait for it or stop it")
        yield
    finally:
        os.close(handle)


def _is_locked(handle: int) -> bool:
    """Lock a directory; False if another run holds it. `is_held` holds the lock for a moment, hence several tries."""
    for _ in range(LOCK_TRIES):
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.05)
        except OSError:
            return True  # not every file system has locks
    return False


def _tidy(place: Path) -> None:
    """Remove the unfinished files of a killed run."""
    for leftover in place.rglob(f"{TEMPORARY}*"):
        leftover.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file into an existing folder atomically: a crash leaves the old content or the new."""
    path.parent.stat()  # raises OSError if there is no such folder
    with atomic_file(path) as new:
        new.write_bytes(content.encode() if isinstance(content, str) else content)


def _head_text(head: Head) -> str:
    """The head as JSON with one line for each model, image and problem."""
    data = msgspec.to_builtins(head)
    plan = data.pop("plan")
    lists = [
        f"  {json.dumps(name)}: [\n   " + ",\n   ".join(json.dumps(entry) for entry in plan.pop(name)) + "\n  ]"
        for name in ("models", "images", "tasks")
    ]
    short = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in plan.items()]
    first = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in data.items()]
    return "{\n" + ",\n".join([*first, ' "plan": {\n' + ",\n".join([*short, *lists]) + "\n }"]) + "\n}\n"
