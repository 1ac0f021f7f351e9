"""A campaign on disk: `campaign.json` says what it is, `rows/KEY.json` how each problem ended. Nothing else is state.

Every file is written beside its place and renamed, so that a crash leaves it whole or not there. One run at a time
holds the directory. Solves nothing.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import StoreError
from .origin import commit, made_by
from .plan import Plan

try:
    import fcntl
except ImportError:  # no such locks on this system: two runs at once are then not noticed
    fcntl = None  # type: ignore[assignment]

SCHEMA_VERSION = 1
LOCK_TRIES = 5
HEAD, ROWS, TEMPORARY = "campaign.json", "rows", ".writing-"


class Store:
    """The directory of a campaign."""

    def __init__(self, directory: Path, plan: Plan, head: Mapping[str, Any]) -> None:
        self.directory, self.plan, self.head = directory, plan, head

    @classmethod
    def open(cls, directory: str | Path) -> "Store":
        """The campaign in a directory, to be read; StoreError where there is none."""
        place = Path(directory)
        try:
            head = json.loads((place / HEAD).read_text(encoding="utf-8"))
            if head["schema_version"] != SCHEMA_VERSION:
                raise StoreError(f"{place}: is of another version of steadygaze; run the campaign again")
            return cls(place, Plan.from_data(head["plan"]), head)
        except FileNotFoundError:
            raise StoreError(f"{place}: holds no campaign; give the --out of campaign run") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{place}: {HEAD} cannot be read ({type(error).__name__}); run the campaign again"
            ) from None

    @classmethod
    def begin(cls, directory: str | Path, plan: Plan) -> "Store":
        """A directory for a campaign: a new one, or the one that a run of the same plan has left; for `held` ones.

        Refuses a directory of anything else, of another plan, and of other versions of what computes.
        """
        place = Path(directory)
        if not (place / HEAD).exists():
            return cls._create(place, plan)
        found = cls.open(place)
        _refuse_other_plan(place, found.head["plan"], json.loads(json.dumps(plan.as_data())))
        mine = made_by()
        other = [
            f"{name} {found.head['made_by'].get(name)} (now {mine[name]})"
            for name in mine
            if found.head["made_by"].get(name) != mine[name]
        ]
        if other:
            raise StoreError(f"{place}: was begun with {', '.join(other)}; go on with that, or choose another --out")
        _tidy(place)
        return cls(place, plan, found.head)

    @classmethod
    def _create(cls, place: Path, plan: Plan) -> "Store":
        try:
            if place.exists() and any(
                path.name != ROWS and not path.name.startswith(TEMPORARY) for path in place.iterdir()
            ):
                raise StoreError(f"{place}: exists and holds no campaign; choose another --out")
            if any((place / ROWS).glob("*.json")):
                raise StoreError(f"{place}: holds rows of an unknown campaign ({HEAD} is gone); choose another --out")
            (place / ROWS).mkdir(parents=True, exist_ok=True)
            _tidy(place)
            head = {"schema_version": SCHEMA_VERSION, "commit": commit(), "made_by": made_by(), "plan": plan.as_data()}
            write_whole(place / HEAD, _head_text(head))
        except OSError as error:
            raise StoreError(f"{place}: cannot be written ({error.strerror}); choose another --out") from None
        return cls(place, plan, head)

    def is_held(self) -> bool:
        """Whether a run is going on, as far as the system tells."""
        if fcntl is None:
            return False
        handle = os.open(self.directory, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(handle)
        return False

    def put(self, row: Mapping[str, Any]) -> None:
        """Store how a problem ended, for good."""
        try:
            write_whole(self._path(row["key"]), json.dumps(row, indent=1, allow_nan=False) + "\n")
        except OSError as error:
            raise StoreError(
                f"{self.directory}: a row cannot be written ({error.strerror}); mend that, and run again to go on"
            ) from None

    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of all problems that have ended, by their keys, in the order of the plan."""
        found = {}
        present = {path.name for path in (self.directory / ROWS).glob("*.json")}
        for task in self.plan.tasks:
            path = self._path(task.key)
            if path.name not in present:
                continue
            try:
                row = json.loads(path.read_text(encoding="utf-8"))
                if row["key"] != task.key:
                    raise ValueError
                found[task.key] = row
            except (OSError, ValueError, KeyError, TypeError):
                raise StoreError(f"{path}: is damaged; delete it, and run again to solve that problem again") from None
        return found

    def _path(self, key: str) -> Path:
        return self.directory / ROWS / f"{key}.json"


@contextmanager
def held(directory: str | Path) -> Iterator[None]:
    """Keep other runs out of a directory, which is made, while the block runs; a process that is killed lets go."""
    place = Path(directory)
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"{place}: cannot be written ({error.strerror}); choose another --out") from None
    try:
        if fcntl is not None and not _lock(handle):
            raise StoreError(f"{place}: another run is going on there; wait for it or end it")
        yield
    finally:
        os.close(handle)


def _tidy(place: Path) -> None:
    """Remove what a run that was killed had begun to write."""
    for leftover in place.rglob(f"{TEMPORARY}*"):
        leftover.unlink(missing_ok=True)


def _lock(handle: int) -> bool:
    """Lock a directory; tells whether nobody else holds it. Whoever only looks holds it for a moment."""
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.05)
        except OSError:
            return True  # not every file system has locks
    return False


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it is there with all of its content, or as it was before, whatever happens meanwhile."""
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    try:
        with temporary.open("wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system can; the renaming itself is safe without it
            os.fsync(handle)
    finally:
        os.close(handle)


def _head_text(head: Mapping[str, Any]) -> str:
    """The head as JSON with one line for each model, image and problem."""
    plan = dict(head["plan"])
    long = {name: plan.pop(name) for name in ("models", "images", "tasks")}
    lists = [
        f"  {json.dumps(name)}: [\n   " + ",\n   ".join(json.dumps(entry) for entry in entries) + "\n  ]"
        for name, entries in long.items()
    ]
    short = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in plan.items()]
    first = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items() if name != "plan"]
    return "{\n" + ",\n".join([*first, ' "plan": {\n' + ",\n".join([*short, *lists]) + "\n }"]) + "\n}\n"


def _refuse_other_plan(place: Path, stored: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    if stored == given:
        return
    part = next(name for name in given if stored.get(name) != given[name])
    raise StoreError(
        f"{place}: holds the campaign {stored.get('name')!r}, which differs from this plan in its {part}; choose "
        "another --out, or run that plan again"
    )
