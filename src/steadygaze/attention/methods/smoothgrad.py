"""SmoothGrad: the mean of the gradients at the image plus n noises, which are drawn once and stored with a result.

The noises are Gaussian with deviation `sigma`, in pixels from 0 to 1; the noisy images are not clipped. The seed fixes
them for one version of numpy, whose normal numbers may change between versions. So a result stores the noises
themselves: it can be loaded, compared and continued under any version.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from ...errors import OptionError
from ...network.graph import Graph
from ...network.rewrites import Copies
from . import GradientMethod, Method

MOST_COPIES = 1000
"""The most noises: each is a copy of the classifier."""


@dataclass(frozen=True)
class SmoothGrad(GradientMethod):
    """The mean over n noises of the gradient of every logit; `fit` draws the noises."""

    name: ClassVar[str] = "smoothgrad"

    n: int = 8
    sigma: float = 0.1
    seed: int = 0
    _noises: np.ndarray | None = field(default=None, compare=False, repr=False)
    _sha256: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.n <= MOST_COPIES:
            raise OptionError(f"smoothgrad: n is {self.n}; expected a whole number from 1 to {MOST_COPIES}")
        if not self.sigma > 0.0:
            raise OptionError(f"smoothgrad: sigma is {self.sigma}; expected a deviation above 0, such as 0.1")
        if self.seed < 0:
            raise OptionError(f"smoothgrad: seed is {self.seed}; expected a whole number of at least 0")

    def fit(self, graph: Graph) -> Method:
        if self._noises is not None and self._noises.shape[1:] == graph.input_shape:
            return self
        drawn = np.random.default_rng(self.seed).standard_normal((self.n, *graph.input_shape))
        return self.with_arrays({"noises": self.sigma * drawn})

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        return {} if self._noises is None else {"noises": self._noises}

    @property
    def sha256(self) -> str:
        return self._sha256

    def with_arrays(self, arrays: Mapping[str, np.ndarray]) -> Method:
        noises = np.ascontiguousarray(arrays["noises"], dtype=np.float64)
        if noises.ndim != 4 or len(noises) != self.n or not np.isfinite(noises).all():
            raise ValueError(f"noises of shape {noises.shape} for n={self.n}")
        noises.setflags(write=False)
        return replace(self, _noises=noises, _sha256=hashlib.sha256(noises.tobytes()).hexdigest())

    def copies(self, shape: tuple[int, int, int]) -> Copies | None:
        if self._noises is None or self._noises.shape[1:] != shape:
            raise ValueError(f"no noises for images of shape {shape}: fit the method to a classifier first")
        return Copies(np.ones((self.n, 1, 1, 1)), self._noises)

    def targets(self, classes: int) -> np.ndarray:
        return np.tile(np.eye(classes), self.n) / self.n
