"""Limits of a run: time, regions, memory, and an interrupt. Reaching one is an outcome, not an error."""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from .errors import OptionError
from .labels import Stop

try:
    import resource
except ImportError:  # not a Unix system
    resource = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Limits:
    """The limits that a user sets; None means no limit, or 80 % of the machine's memory for `memory_gib`."""

    timeout_seconds: float | None = None
    max_regions: int | None = None
    memory_gib: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("timeout", self.timeout_seconds), ("memory", self.memory_gib)):
            if value is not None and not 0 < value < float("inf"):
                raise OptionError(f"--{name} is {value}; expected a number above 0")
        if self.max_regions is not None and self.max_regions < 1:
            raise OptionError(f"--max-regions is {self.max_regions}; expected a whole number above 0")


class Clock:
    """The seconds of a run by phase; phases do not overlap, so they add up to the time from the first to the last.

    Only one thread enters phases. Threads that work in parallel report their shares of one phase with `divide`.

    >>> clock = Clock()
    >>> with clock.phase("walk"):
    ...     with clock.phase("labels"):
    ...         pass
    >>> sorted(clock.seconds), clock.current
    (['labels', 'walk'], '')
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.current = ""
        self._since = time.perf_counter()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of the block for a phase, without the time of the phases inside it."""
        outer = self.current
        self._enter(name)
        try:
            yield
        finally:
            self._enter(outer)

    def _enter(self, name: str) -> None:
        """Count the time so far for the current phase, and begin another."""
        self.count()
        self.current = name

    def count(self) -> None:
        """Count the time so far for the current phase."""
        now = time.perf_counter()
        if self.current:
            self._add(self.current, now - self._since)
        self._since = now

    def start_with_process(self) -> None:
        """Count the time since the process began, if the system reports it, as the phase "start"."""
        self._add("start", process_seconds())

    def divide(self, name: str, parts: dict[str, float]) -> None:
        """Divide the seconds of a phase among parts, in proportion to the seconds that threads spent on each."""
        total = sum(parts.values())
        if total > 0.0 and name in self.seconds:
            whole = self.seconds.pop(name)
            for part, seconds in parts.items():
                self._add(part, whole * seconds / total)

    def _add(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + max(0.0, seconds)


@dataclass
class Budget:
    """The limits of one run and its use so far; engines poll it. depth: how many `running` blocks are open."""

    limits: Limits = Limits()
    started: float = field(default_factory=time.monotonic)
    cancelled: threading.Event = field(default_factory=threading.Event)
    regions: int = 0
    clock: Clock = field(default_factory=Clock)
    depth: int = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """A block during which the limits apply; blocks may be nested. Later computations are not limited."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def exhausted(self, share: float = 1.0, *, memory_share: float = 1.0) -> Stop | None:
        """The limit that ends the run now, or None; the caller may use these shares of the time and of the memory.

        The rest is for later steps: labels, checks, files.
        """
        if self.cancelled.is_set():
            return Stop("interrupted")
        limits = self.limits
        if limits.timeout_seconds is not None and self.seconds() > share * limits.timeout_seconds:
            return Stop(f"timeout of {limits.timeout_seconds:g} s")
        if limits.max_regions is not None and self.regions >= limits.max_regions:
            return Stop(f"limit of {limits.max_regions} region{'' if limits.max_regions == 1 else 's'}")
        limit = memory_share * self.memory_gib
        # The peak is cheap to query; while it is within the limit, so is the memory in use.
        if peak_gib() > limit and resident_gib() > limit:
            return Stop(f"memory limit of {self.memory_gib:.3g} GiB")
        return None

    @cached_property
    def memory_gib(self) -> float:
        """The memory that the run may use: the given limit, or 80 % of the machine's or the container's memory."""
        given = self.limits.memory_gib
        return 0.8 * min(machine_gib(), container_gib()) if given is None else given

    @property
    def is_short_of_memory(self) -> bool:
        """Whether joining the arrays in memory, which takes as much memory again, might exceed the memory limit."""
        return resident_gib() > 0.5 * self.memory_gib

    def is_over(self, share: float = 1.0) -> bool:
        """Whether a running run was cancelled or has used this share of its time: it then skips optional work.

        Limits of regions and memory do not count: after they end the walk, there is still time for its answer.
        """
        limit = self.limits.timeout_seconds
        return self.depth > 0 and (self.cancelled.is_set() or (limit is not None and self.seconds() > share * limit))

    def seconds_left(self) -> float:
        """Seconds until the time limit; infinite without one, 0 once the run was cancelled."""
        if self.cancelled.is_set():
            return 0.0
        limit = self.limits.timeout_seconds
        return float("inf") if limit is None else max(0.0, limit - self.seconds())

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started


def is_over(budget: Budget | None, share: float = 1.0) -> bool:
    """Whether there is a budget, and it was cancelled or has used this share of its time."""
    return budget is not None and budget.is_over(share)


WALKING = 0.8
"""The share of the time limit after which engines find no further units: the rest is for labels, checks and files."""

OPTIONAL = 0.95
"""The share of the time limit after which optional work is left out: witnesses, shares at other δ, pictures."""


@cache
def container_gib(root: Path = Path("/")) -> float:
    """The memory limit of the control group of this process, or of a group around it, in GiB; infinite if none has one.

    Groups of version 1 have the controller `memory`, those of version 2 have no controllers in their line.
    """
    groups = root / "sys/fs/cgroup"
    files = [groups / "memory.max", groups / "memory/memory.limit_in_bytes"]
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    for line in lines:
        _, controllers, path = (line + "::").split(":")[:3]
        place = groups if not controllers else groups / "memory" if "memory" in controllers.split(",") else None
        parts = [part for part in path.split("/") if part not in ("", "..")]
        if place is not None:
            name = "memory.limit_in_bytes" if controllers else "memory.max"
            files += [place.joinpath(*parts[:count], name) for count in range(1, len(parts) + 1)]
    return min(map(_limit_gib, files))


def _limit_gib(file: Path) -> float:
    """The limit in GiB that the file of a control group states; infinite if it states none."""
    try:
        return int(file.read_text(encoding="ascii")) / 2**30
    except (OSError, ValueError):
        return float("inf")


@cache
def machine_gib() -> float:
    """Physical memory in GiB; infinite if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError, AttributeError):
        return float("inf")


def process_seconds() -> float:
    """Seconds since this process began; 0 if the system does not report it."""
    try:
        ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def peak_gib() -> float:
    """An upper bound on the memory of this process in GiB: the most that it has held; infinite if unknown."""
    if resource is None:
        return float("inf")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**30 if sys.platform == "darwin" else peak / 2**20


def resident_gib() -> float:
    """Memory of this process in GiB; 0 if the system does not report it."""
    try:
        # Engines call this often: skip the text layer and the buffer.
        statm = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            pages = int(os.read(statm, 256).split()[1])
        finally:
            os.close(statm)
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (OSError, ValueError, AttributeError):
        return 0.0


def give_back_memory() -> None:
    """Return freed memory to the system, if the C library can: otherwise it keeps large arrays that threads freed."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return
