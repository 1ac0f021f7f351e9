"""Limits of a run: time, regions, memory, and the user's wish to stop. Reaching one is an outcome, not an error."""

import ctypes
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from .errors import OptionError
from .labels import Stop


@dataclass(frozen=True)
class Limits:
    """What a run may use; None means no limit. `memory_gib` defaults to 80 % of what the machine has."""

    timeout_seconds: float | None = None
    max_regions: int | None = None
    memory_gib: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("timeout", self.timeout_seconds), ("memory", self.memory_gib)):
            if value is not None and not 0 < value < float("inf"):
                raise OptionError(f"--{name} is {value}; expected a number above 0")
        if self.max_regions is not None and self.max_regions < 1:
            raise OptionError(f"--max-regions is {self.max_regions}; expected a whole number above 0")


@dataclass
class Budget:
    """The limits of one run since its start; asked now and then by the engine."""

    limits: Limits = field(default_factory=Limits)
    started: float = field(default_factory=time.monotonic)
    cancelled: threading.Event = field(default_factory=threading.Event)
    regions: int = 0

    def exhausted(self) -> Stop | None:
        """Why the run has to end now, or None."""
        if self.cancelled.is_set():
            return Stop("interrupted")
        limits = self.limits
        if limits.timeout_seconds is not None and self.seconds() > limits.timeout_seconds:
            return Stop(f"timeout of {limits.timeout_seconds:g} s")
        if limits.max_regions is not None and self.regions >= limits.max_regions:
            return Stop(f"limit of {limits.max_regions} regions")
        memory = limits.memory_gib if limits.memory_gib is not None else 0.8 * machine_gib()
        if resident_gib() > memory:
            return Stop(f"memory limit of {memory:.3g} GiB")
        return None

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started


def machine_gib() -> float:
    """Physical memory in GiB; infinite where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError, AttributeError):
        return float("inf")


def resident_gib() -> float:
    """Memory that this process holds now, in GiB; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (OSError, ValueError, AttributeError):
        return 0.0


def give_back_memory() -> None:
    """Return what was freed to the system, where its C library can: large arrays of threads are kept otherwise."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return
