"""Kernel: x + theta (K∗x − x), where K comes from a file. Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..base import FloatArray, Mix
from ..correlation import correlate
from ..fields import NumberFile

LARGEST = 201
"""The longest side of a kernel."""
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Kernel(Mix):
    """Mix the image with its correlation with a kernel, for theta in 0..1; at theta = 1 only the correlation is left.

    file: an NPY array (h, w) with odd sides that sums to one; normalise=1 scales it to sum to one. The kernel is not
    flipped. Edge pixels are repeated beyond the image.

    >>> Kernel(file=np.full((3, 3), 1.0), normalise=1).name
    'kernel array'
    """

    keyword: ClassVar[str] = "kernel"
    example: ClassVar[str] = 'kernel:file="K.npy"'
    share_of: ClassVar[str] = "the image under the kernel"

    file: NumberFile
    normalise: int = 0

    @property
    def name(self) -> str:
        return f"kernel {self.file.short}"

    def check_fields(self) -> None:
        kernel, total = self.file.values, float(self.file.values.sum())
        if kernel.ndim != 2 or not all(side % 2 and side <= LARGEST for side in kernel.shape):
            self.refuse(f"file: {self.file.short} has shape {kernel.shape}; expected odd sides (h, w) up to {LARGEST}")
        if self.normalise not in (0, 1):
            self.refuse(f"normalise={self.normalise}; expected 0, or 1 to scale the kernel to sum to one")
        if self.normalise and abs(total) <= SUM_TOLERANCE * np.abs(kernel).sum():
            self.refuse(f"file: {self.file.short} sums to {total:g}; a kernel that sums to zero cannot be scaled")
        if not self.normalise and not abs(total - 1.0) <= SUM_TOLERANCE:
            self.refuse(f"file: {self.file.short} sums to {total:g}, expected 1; normalise=1 scales it")

    def slope(self, image: FloatArray) -> FloatArray:
        kernel = self.file.values / self.file.values.sum() if self.normalise else self.file.values
        return correlate(image, kernel) - image
