"""Small maps answered in three ways: whole, joined from chunks in memory, and in chunks on disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from steadygaze import load, verify
from steadygaze.budget import Budget, Limits
from steadygaze.engines.map import map_engine
from steadygaze.regions import chunked_walk, walks
from steadygaze.results.result import Result

QUESTIONS = {
    "moving, L2": (("translate:dx=1", "brightness:0..0.3"), {}),
    "moving, L1": (("translate:dx=1", "brightness:0..0.1"), {"dist": "l1"}),
    "kept, L2": (("brightness:0..0.9", "darkness:0..0.9"), {}),
    "kept, L1": (("brightness:0..0.9", "darkness:0..0.9"), {"dist": "l1"}),
    "one parameter": (("translate:dx=2",), {}),
    "three parameters": (("translate:dx=1", "brightness:0..0.03", "darkness:0..0.03"), {}),
}
"""Perturbations and options of each question about M-FNN-100 and one image."""

MOVING = "moving, L2"

WHOLE, CHUNK = 10, 4
"""So few regions per chunk that all questions need several chunks."""


@contextmanager
def small_chunks(*, whole: int = WHOLE) -> Iterator[None]:
    """Chunks of a few regions; maps of more than `whole` regions stay on disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(map_engine, "WHOLE", whole)
        patch.setattr(chunked_walk, "LARGEST", CHUNK)
        patch.setattr(chunked_walk, "SMALLEST", CHUNK)
        # A walk checks for a full chunk after this many steps; regions in between belong to one chunk.
        patch.setattr(walks, "NODES_TIMES_NEURONS", 1 << 13)
        yield


def run_map(name: str, *, threads: int = 1, limits: Limits | None = None) -> Result:
    """The map of a question, whole unless `small_chunks` are in force."""
    perturbations, options = QUESTIONS[name]
    budget = Budget(limits or Limits())
    return verify(
        "M-FNN-100", "mnist:69993", list(perturbations), method="map", threads=threads, budget=budget, **options
    )


def run_in_chunks(name: str, *, threads: int = 1, limits: Limits | None = None) -> Result:
    """The map of a question in chunks on disk."""
    with small_chunks():
        return run_map(name, threads=threads, limits=limits)


class Three(NamedTuple):
    """The same map in three forms, and the one on disk loaded again."""

    streamed: Result
    joined: Result
    whole: Result
    loaded: Result
    place: Path


_MADE: dict[str, Three] = {}


def make_three(name: str, places: pytest.TempPathFactory) -> Three:
    """The map of a question in all forms, made once."""
    if name not in _MADE:
        streamed, whole = run_in_chunks(name), run_map(name)
        with small_chunks(whole=10**6):
            joined = run_map(name)
        place = streamed.save(places.mktemp("chunks") / "result")
        _MADE[name] = Three(streamed, joined, whole, load(place), place)
    return _MADE[name]
