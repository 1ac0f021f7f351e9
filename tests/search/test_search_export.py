"""The rows of a search: visited regions with the labels of the question."""

import numpy as np
import pytest

from steadygaze import search
from steadygaze.results.export import make_table
from support.readers.tables import rows_of

SQUARE = ["brightness:0..0.1", "patch:x=12,y=12,w=4,h=4:0..0.2"]


@pytest.mark.parametrize("specs", [["brightness:0..0.05"], SQUARE, [*SQUARE, "translate:dx=1:0..0.02"]], ids=len)
def test_regions_of_a_search(specs):
    found = search("M-FNN-100", "mnist:69990", specs, method="gbs", property="ar", delta=3.0)
    rows = rows_of(make_table(found, "regions"))
    assert len(rows) == len(found.tiling.visited)
    domain = found.question.perturbed.domain
    for row, one in zip(rows, found.tiling.visited, strict=True):
        assert (row["share"], row["attention"], row["classification"]) == (one.region.volume, one.attention, None)
        assert np.isnan(row["margin_low"]) and np.isnan(row["label_open"])
        assert (row["inconsistency_low"], row["inconsistency_high"]) == one.inconsistency
        own = np.array(sorted((domain.low + one.region.vertices * domain.widths).tolist()))
        ours = np.array(sorted(row["vertices"]))
        ours, own = (np.unique(points.round(9), axis=0) for points in (ours, own))
        np.testing.assert_allclose(ours, own, atol=1e-8)
        if len(specs) == 2:
            x, y = np.array(row["vertices"]).T
            area = 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))
            assert area / np.prod(domain.widths) == pytest.approx(row["share"], rel=1e-6), "counter-clockwise"
