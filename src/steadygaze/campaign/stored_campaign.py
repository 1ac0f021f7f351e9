"""A campaign as data: its plan with every problem in order, its directory, and the versions that made its rows.

`campaign.json` holds the plan, `rows/KEY.json` how each problem ended. There is no other state. Every file is written
atomically, and one run at a time holds the directory. Solves nothing.
"""

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from .. import zoo
from ..engines import ENGINES
from ..errors import StoreError
from ..labels import Label
from ..question_options import OPTIONS
from ..results.directory import atomic_file

try:
    import fcntl
except ImportError:  # without such locks, two runs at once go unnoticed
    fcntl = None  # type: ignore[assignment]

METHODS = tuple(ENGINES)
LETTERS = {"cr": Label.CR, "ar": Label.AR, "both": "CRAR"}
LONGEST_KEY = 150  # names of files may have 255 bytes; the rest is for endings and temporary names
SCHEMA_VERSION = 1
HEAD, ROWS, TEMPORARY = "campaign.json", "rows", ".steadygaze-"
LOCK_TRIES = 5
PACKAGE = Path(__file__).resolve().parents[1]
PACKAGES = ("steadygaze", "numpy", "scipy", "numba", "onnxruntime", "highspy")
SILENT = ("cli", "report", "compare", "campaign/figures.py", "campaign/panels.py", "campaign/plan_file.py",
          "campaign/tables.py")  # fmt: skip
"""Parts of the source that only show answers; plan files are compared with the stored plan instead."""


def image_file(location: str) -> Path:
    """The file of an image: a bundled one by its reference, or any other."""
    return zoo.image_path(location) if zoo.is_reference(location) else Path(location)


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()


class PlannedImage(Struct, frozen=True, forbid_unknown_fields=True):
    """An image: its `name` as the plan spells it; `location` is a bundled reference, or a file on this machine."""

    name: str
    group: str
    sha256: str
    location: str = ""


class PlannedModel(Struct, frozen=True, forbid_unknown_fields=True):
    """A network: its `name` as the plan spells it; `location` is a bundled name, or a file on this machine."""

    name: str
    group: str
    neurons: int
    sha256: str
    location: str = ""
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    scale: float = 1.0
    output: str | None = None


class Task(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """One problem: a model, an image, a combination of perturbations, how to answer it, and its limits.

    options: those of the question, as texts (see `question_options.OPTIONS`). `until` is for refine, `w_delta` for gbs;
    None elsewhere. `key` is unique in the plan, and names a file.
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
    """A campaign as it will be run; tables list `tasks` in this order."""

    name: str
    models: dict[str, PlannedModel]
    images: dict[str, PlannedImage]
    combinations: dict[str, tuple[str, ...]]
    tasks: tuple[Task, ...]

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
    # Letters unfit for file names were replaced: a digest tells such names apart.
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
        """Open a `held` directory for a run: a new one, or that of an earlier run of the same plan.

        Refuses any other directory, another plan, and other versions of the packages that compute.
        """
        place = Path(directory)
        if not (place / HEAD).exists():
            return cls._create(place, plan)
        found = cls.open(place)
        stored, given = found.head.plan, plan.as_data()
        differs = [name for name in given if stored[name] != given[name]]
        if differs:
            raise StoreError(
                f"{place}: holds the campaign {stored['name']!r}, which differs from this plan in its {differs[0]}; "
                "choose another --out, or run that plan again"
            )
        former = found.head.made_by
        other = [f"{name} {former.get(name)} (now {now})" for name, now in made_by().items() if former.get(name) != now]
        if other:
            raise StoreError(f"{place}: was started with {', '.join(other)}; restore these, or choose another --out")
        _tidy(place)
        return cls(place, plan, found.head)

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
            raise _not_writable(place, error) from None
        return cls(place, plan, head)

    def is_held(self) -> bool:
        """Whether a run is active, as far as the system shows."""
        try:
            with held(self.directory):
                return False
        except StoreError:
            return True

    def put(self, row: Mapping[str, Any]) -> None:
        """Store how a problem ended."""
        try:
            write_whole(self._path(row["key"]), json.dumps(row, indent=1, allow_nan=False) + "\n")
        except OSError as error:
            raise StoreError(
                f"{self.directory}: a row cannot be written ({error.strerror}); fix this and run again to continue"
            ) from None

    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of all problems that have ended, by their keys, in the order of the plan."""
        found = {}
        present = {path.stem for path in (self.directory / ROWS).glob("*.json")}
        for key in (task.key for task in self.plan.tasks if task.key in present):
            path = self._path(key)
            try:
                found[key] = json.loads(path.read_text(encoding="utf-8"))
                if found[key]["key"] != key:
                    raise ValueError
            except (OSError, ValueError, KeyError, TypeError):
                raise StoreError(f"{path}: is damaged; delete it and run again to solve that problem again") from None
        return found

    def _path(self, key: str) -> Path:
        return self.directory / ROWS / f"{key}.json"


@contextmanager
def held(directory: str | Path) -> Iterator[None]:
    """Make a directory and keep other runs out of it while the block runs; a killed process releases it."""
    place = Path(directory)
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDONLY)
    except OSError as error:
        raise _not_writable(place, error) from None
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


def _not_writable(place: Path, error: OSError) -> StoreError:
    return StoreError(f"{place}: cannot be written ({error.strerror}); choose another --out")


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


@cache
def made_by() -> dict[str, str]:
    """Versions of the packages that compute, and a digest of the source that solves problems.

    A campaign continues only with the versions it started with. They do not include the processor.
    """
    digest = sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in SILENT and name.partition("/")[0] not in SILENT:
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    versions = {name: version(name) for name in PACKAGES}
    return versions | {"python": platform.python_version(), "source": digest.hexdigest()[:16]}


def commit() -> str | None:
    """The commit of the source, with `+changes` if files differ from it; None if unknown."""
    try:
        # An installed copy may lie inside another repository, which does not track it.
        _git("ls-files", "--error-unmatch", "__init__.py")
        return _git("rev-parse", "HEAD") + ("+changes" if _git("status", "--porcelain", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(PACKAGE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
