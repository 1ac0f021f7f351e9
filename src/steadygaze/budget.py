"""Limits of a run: time, regions, memory, and an interrupt. Reaching one is an outcome, not an error."""

import ctypes
import os
import threading
import time
from dataclasses import dataclass, field
from functools import cache

from .errors import OptionError
from .labels import Stop


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


@dataclass
class Budget:
    """The limits of one run and its use so far; engines poll it."""

    limits: Limits = field(default_factory=Limits)
    started: float = field(default_factory=time.monotonic)
    cancelled: threading.Event = field(default_factory=threading.Event)
    regions: int = 0

    def exhausted(self) -> Stop | None:
        """The limit that ends the run now, or None."""
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


@cache
def machine_gib() -> float:
    """Physical memory in GiB; infinite if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError, AttributeError):
        return float("inf")


def resident_gib() -> float:
    """Memory of this process in GiB; 0 if the system does not report it."""
    try:
        # Engines ask this often: no text layer, no buffer.
        statm = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            pages = int(os.read(statm, 256).split()[1])
        finally:
            os.close(statm)
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (OSError, ValueError, AttributeError):
        return 0.0


def give_back_memory() -> None:
    """Return freed memory to the system if the C library can; by itself it keeps large arrays that threads freed."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return
