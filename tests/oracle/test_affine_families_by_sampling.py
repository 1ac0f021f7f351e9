"""Maps and refinements of families with slopes that are not whole numbers, against plain forward passes."""

import numpy as np
import pytest

import steadygaze as sg

SPECS = [
    ["haze"], ["contrast:pivot=mean:-1..1"], ["blur:sigma=1.5"], ["motion:dx=4,dy=2"], ["sharpen:sigma=1:0..3"],
    ["shadow:side=left,at=0.5,soft=0.3"], ["occlude:x=8,y=8,w=9,h=9"],
    ["field:kind=radial,mode=times:-0.5..0.5", "field:kind=x:0..0.1"], ["haze:0..0.3", "blur:sigma=1:0..0.5"],
]  # fmt: skip


@pytest.mark.parametrize("specs", SPECS, ids=" ".join)
@pytest.mark.parametrize("method", ["map", "refine"])
def test_labels_hold_at_samples(specs, method):
    options = {"until": 0.05} if method == "refine" else {}
    result = sg.verify("M-FNN-100", "mnist:69990", specs, method=method, property="cr", threads=1, **options)
    domain, random = result.question.perturbed.domain, np.random.default_rng(5)
    thetas = random.uniform(domain.low, domain.high, (1000, domain.dimension))
    logits = result.question.model.graph.logits(result.question.perturbed.images(thetas))
    label = result.question.label
    margins = logits[:, label] - np.delete(logits, label, axis=1).max(axis=1)
    low, high = result.summary()["area"]["CR"]
    # A thousand samples: three deviations of their share are below 0.05.
    assert low - 0.05 <= (margins > 0).mean() <= high + 0.05
    for theta, margin in zip(thetas[:50], margins, strict=False):
        assert abs(result.at(theta).margin - margin) < 1e-9
    if domain.dimension == 1 and (margins < 0).any():
        assert result.nearest["CR"].low <= np.abs(thetas[margins < 0, 0]).min()
