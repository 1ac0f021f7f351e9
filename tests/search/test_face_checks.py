"""`face_checks` counts the facets that a search looked across, each once."""

import numpy as np
import pytest

from steadygaze.results.result import Result
from support.networks.search_problems import random_problem, search_alone


def inner_facets(result: Result) -> int:
    """Facets of the visited regions that are not on the border of the unit cube."""
    count = 0
    for one in result.tiling.visited:
        for *normal, offset in one.region.halfspaces:
            axis = int(np.argmax(np.abs(normal)))
            is_along_axis = np.abs(np.delete(normal, axis)).max(initial=0.0) < 1e-12
            place = -offset / normal[axis]
            count += not (is_along_axis and (abs(place) < 1e-12 or abs(place - 1.0) < 1e-12))
    return count


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_bfs_looks_once_across_every_facet(seed: int, dimension: int):
    result = search_alone(random_problem(seed, dimension), method="bfs")
    assert result.coverage == pytest.approx(1.0) and result.tiling.face_checks == inner_facets(result)
    if dimension == 1:
        assert result.tiling.face_checks == 2 * (result.region_count - 1)


@pytest.mark.parametrize("method", ["gbs", "boundary"])
@pytest.mark.parametrize("seed", range(8))
def test_other_searches_look_across_no_facet_twice(seed: int, method: str):
    result = search_alone(random_problem(seed, 2), method=method)
    whole = search_alone(random_problem(seed, 2), method="bfs")
    assert 0 <= result.tiling.face_checks <= whole.tiling.face_checks
