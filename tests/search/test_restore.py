"""A stored search is restored to the same result."""

from pathlib import Path

import numpy as np
import pytest

import steadygaze
from steadygaze import StoreError, load

QUESTIONS = {
    "gbs": (["translate:dx=2:0..0.5", "brightness:0..0.05"], {"method": "gbs", "line": [0.5, 0.05]}),
    "boundary": (["translate:dx=2:0..0.5", "brightness:0..0.05"], {"method": "boundary", "property": "ar"}),
    "line": (["brightness:0..0.1"], {"method": "bfs", "property": "cr"}),
    "solid": (["brightness:0..0.02", "translate:dx=1:0..0.1", "patch:x=12,y=12,w=4,h=4:0..0.1"], {"method": "bfs"}),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_everything_that_is_told_of_it_is_the_same(name: str, tmp_path: Path):
    specs, options = QUESTIONS[name]
    budget = steadygaze.Budget(steadygaze.Limits(max_regions=15)) if name == "solid" else None
    result = steadygaze.search("M-FNN-100", "mnist:69992", specs, delta=3.0, budget=budget, **options)
    restored = load(result.save(tmp_path / "out"))
    assert restored.summary() == result.summary()
    assert restored.region_count == result.region_count
    for old, new in zip(result.tiling.visited, restored.tiling.visited, strict=True):
        assert new.region.key == old.region.key and new.margin == old.margin
        assert np.allclose(new.region.inside, old.region.inside, atol=1e-12)
        assert np.allclose(new.region.logits, old.region.logits, rtol=1e-9, atol=1e-9)
        assert new.region.volume == pytest.approx(old.region.volume, abs=1e-9)
        assert all(old.region.contains(vertex) for vertex in new.region.vertices)
    if result.tiling.components is not None:
        assert [part.inner for part in restored.tiling.components or ()] == [
            part.inner for part in result.tiling.components
        ]


def test_a_damaged_search_is_refused(tmp_path: Path):
    search = steadygaze.search("M-FNN-100", "mnist:69990", ["brightness:0..0.02"], method="bfs")
    folder = search.save(tmp_path / "search")
    (folder / "image.npy").write_bytes(b"")
    with pytest.raises(StoreError, match=r"image\.npy"):
        load(folder)
