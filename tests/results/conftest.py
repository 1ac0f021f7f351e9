"""Every question of this folder answered once, in memory and on disk."""

from pathlib import Path

import pytest

from steadygaze.results.result import Result
from steadygaze.results.store import save
from support.networks.stored_questions import ALL, run


@pytest.fixture(scope="session")
def results() -> dict[str, Result]:
    return {name: run(name) for name in ALL}


@pytest.fixture(scope="session")
def stored(results: dict[str, Result], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The directory of every result; tests copy what they change."""
    place = tmp_path_factory.mktemp("stored")
    return {name: save(result, place / name.replace(" ", "-")) for name, result in results.items()}
