"""Small random networks that share an image and a domain, answered by maps or refinements."""

from functools import cache

import numpy as np

from steadygaze.api import verify
from steadygaze.errors import ImageError
from steadygaze.results.result import Result
from support.networks.layered_models import make_model
from support.networks.layered_networks import crossing_layers

SPECS = {
    "kept": ("brightness:-0.5..0.5", "patch:x=0,y=0,w=1,h=1"),
    "moving": ("translate:dx=1", "brightness:-0.25..0.5"),
    "line": ("translate:dx=1:-1..1",),
    "solid": ("translate:dx=1", "patch:x=0,y=0,w=1,h=1", "brightness:0..0.5"),
}


@cache
def answered(seed: int, kind: str, *, method: str = "map", delta: str = "40%") -> Result:
    """One network; the image depends on the kind alone, so all seeds share a domain."""
    image = np.random.default_rng(len(kind)).choice([0.0, 0.25, 0.5, 0.75, 1.0], size=(1, 2, 3))
    options = {"until": 0.2} if method == "refine" else {}
    for attempt in range(50):
        rng = np.random.default_rng([seed, attempt])
        layers = crossing_layers(rng, [6, 5, 4, 3], rng.integers(0, 5, size=(3, 6)) / 4)
        try:
            model = make_model(layers, image.shape)
            return verify(model, image, list(SPECS[kind]), threads=1, delta=delta, method=method, **options)
        except ImageError:  # tied at zero
            continue
    raise AssertionError("no network without a tie")
