"""Images under small kernels: correlation with edge pixels repeated, and the kernels of blur and motion."""

from itertools import pairwise
from math import ceil, floor

import numpy as np

from .base import FloatArray, Perturbation

SMALLEST_SIGMA, LARGEST_SIGMA = 0.2, 50
"""The allowed widths of a Gaussian in pixels; a smaller one would leave every pixel unchanged."""


def correlate(image: FloatArray, kernel: FloatArray) -> FloatArray:
    """Return Σ_ij kernel[i, j] · image shifted by (i − h//2, j − w//2), for a kernel (h, w) with odd sides.

    The kernel is not flipped. Pixels outside the image equal the nearest pixel of its edge.

    >>> correlate(np.array([[[0.0, 1.0, 4.0]]]), np.array([[0.5, 0.0, 0.5]]))
    array([[[0.5, 2. , 2.5]]])
    """
    height, width = kernel.shape
    around = ((0, 0), (height // 2, height // 2), (width // 2, width // 2))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(image, around, mode="edge"), kernel.shape, axis=(1, 2))
    return np.einsum("chwij,ij->chw", windows, kernel)


def blurred(image: FloatArray, sigma: float) -> FloatArray:
    """Return an image (C, H, W) blurred by a Gaussian of `sigma` pixels, cut at four sigma and scaled to sum to one."""
    reach = int(4.0 * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    weights /= weights.sum()
    return correlate(correlate(image, weights[:, None]), weights[None])


def line_kernel(dx: float, dy: float) -> FloatArray:
    """Return the kernel (h, w) of a centred line from (−dx/2, −dy/2) to (dx/2, dy/2), with y down; it sums to one.

    Along the longer axis, the weight of a pixel is the part of the line inside its unit interval. Along the other axis,
    the line is divided linearly between the two nearest pixels.

    >>> line_kernel(4.0, 0.0)
    array([[0.125, 0.25 , 0.25 , 0.25 , 0.125]])
    """
    if abs(dy) > abs(dx):
        return line_kernel(dy, dx).T
    half, tilt = 0.5 * abs(dx), dy / dx
    width, height = ceil(half - 0.5), ceil(abs(tilt) * half)
    kernel = np.zeros((2 * height + 1, 2 * width + 1))
    # Between neighbours of these places the weight is linear: its mean is its value in the middle.
    sides = [number + 0.5 for number in range(-width - 1, width + 1)]
    rows = [row / tilt for row in range(-height, height + 1)] if tilt else []
    places = np.unique(np.clip([-half, half, *sides, *rows], -half, half))
    for low, high in pairwise(places.tolist()):
        middle = 0.5 * (low + high)
        column, row = floor(middle + 0.5) + width, tilt * middle + height
        above, share = floor(row), row - floor(row)
        kernel[above, column] += (1.0 - share) * (high - low)
        if share > 0.0:
            kernel[above + 1, column] += share * (high - low)
    return kernel / kernel.sum()


def check_sigma(one: Perturbation, sigma: float) -> None:
    """Refuse a width of a Gaussian that is too small to change an image, or too large."""
    if not SMALLEST_SIGMA <= sigma <= LARGEST_SIGMA:
        one.refuse(f"sigma={sigma:g}; expected pixels from {SMALLEST_SIGMA} to {LARGEST_SIGMA}, for example 1.5")
