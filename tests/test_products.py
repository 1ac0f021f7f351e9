"""Matrix products run on one thread, while a result is computed and while it is described."""

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from steadygaze.api import verify
from steadygaze.engines.map import map_engine
from steadygaze.results import summary


def threads_of_products():
    return {library["num_threads"] for library in ThreadpoolController().info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    """Two threads outside of runs; nothing to see on a machine that does not allow them."""
    with threadpool_limits(limits=2):
        if threads_of_products() != {2}:
            pytest.skip("products have one thread anyway")
        yield


@pytest.mark.usefixtures("two_threads")
def test_runs_and_summaries_use_one_thread(monkeypatch):
    seen = []
    for owner, name in ((map_engine, "_solve"), (summary, "summarise")):
        usual = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *given, usual=usual: (seen.append(threads_of_products()), usual(*given))[1]
        )
    verify("M-FNN-100", "mnist:69990", "brightness:0..0.01", method="map").summary()
    assert seen == [{1}, {1}]
    assert threads_of_products() == {2}
