"""Encodes the arrays of a chunk in fewer bytes, and decodes them: no claim changes.

Logits of regions with a clearly decided label are stored in float32; their rounding is added to the slack of their
pieces. Numbers that most rows share become separate arrays, which compress to almost nothing.
"""

from collections.abc import Mapping

import numpy as np

from ...errors import StoreError
from ...results.arrays import Shapes, shaped

ROUNDING = 2.0**-22
"""A bound on the error of a difference of two logits in float32, relative to the larger sum of |coefficients|."""

FAR = 8.0
"""A label is clearly decided if its margin exceeds its slack by so many times the error of float32."""

EXTRA: Shapes = {
    "narrow_logits": (np.float32, ("narrow", "rows", "classes")),
    "wide_logits": (np.float64, ("wide", "rows", "classes")),
    "is_wide": (np.uint8, ("regions",)),
    "alpha_beta": (np.float64, ("quadratics", "compared classes", 2)),
    "gamma": (np.float64, ("quadratics", "compared classes")),
    "strip_piece": (np.int64, ("strips",)),
    "strip_most": (np.float64, ("strips",)),
}
"""Arrays of the stored form, which replace logits, quadratic and most_strip."""

REPLACED = ("logits", "quadratic", "most_strip")


def encode(arrays: Mapping[str, np.ndarray], volumes: np.ndarray) -> dict[str, np.ndarray]:
    """The stored form of the arrays of a chunk; volumes (P,): the volumes of its pieces."""
    logits, region = arrays["logits"], arrays["piece_region"]
    error = _rounding(logits)
    margin, slack = arrays["margin"], arrays["slack"]
    room = np.maximum(margin[:, 0], -margin[:, 1]) - slack
    is_near = ~(room > FAR * error[region]) | ~np.isfinite(error[region])
    is_wide = np.bincount(region[is_near], minlength=len(logits)) > 0
    chosen = np.flatnonzero(arrays["most_strip"] != volumes)
    quadratic = arrays.get("quadratic", np.zeros((0, 1, 3)))  # missing if attention was not measured
    return {name: array for name, array in arrays.items() if name not in REPLACED} | {
        "narrow_logits": logits[~is_wide].astype(np.float32),
        "wide_logits": logits[is_wide],
        "is_wide": is_wide.astype(np.uint8),
        "alpha_beta": quadratic[:, :, :2],
        "gamma": quadratic[:, :, 2],
        "strip_piece": chosen,
        "strip_most": arrays["most_strip"][chosen],
    }


def decode(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a chunk from their stored form, not yet checked; `restore_strips` restores most_strip."""
    sizes: dict[str, int] = {}
    arrays = {**arrays, **{name: shaped(name, arrays[name], shape, sizes) for name, shape in EXTRA.items()}}
    is_wide = arrays["is_wide"].astype(bool)
    wide, narrow = arrays["wide_logits"], arrays["narrow_logits"]
    regions = len(is_wide)
    region = arrays["piece_region"]
    if (
        int(is_wide.sum()) != len(wide) or regions - len(wide) != len(narrow)
        or (len(region) and not (region.min() >= 0 and region.max() < regions))
    ):  # fmt: skip
        raise StoreError("its logits do not fit its regions; the result is damaged: run the verification again")
    logits = narrow.astype(np.float64)
    if len(wide):
        logits = np.empty((regions, *wide.shape[1:]))
        logits[is_wide], logits[~is_wide] = wide, narrow
    error = np.where(is_wide, 0.0, _rounding(logits))
    quadratic = np.concatenate([arrays["alpha_beta"], arrays["gamma"][:, :, None]], axis=2)
    return {name: array for name, array in arrays.items() if name not in EXTRA} | {
        "logits": logits,
        "slack": arrays["slack"] + error[region],
        "most_strip": np.zeros(len(region)),
        "quadratic": quadratic,
    }


def _rounding(logits: np.ndarray) -> np.ndarray:
    """A bound (R,) on the error of differences of logits (R, rows, classes) in float32."""
    total = np.abs(logits[:, 0])
    for row in range(1, logits.shape[1]):
        total += np.abs(logits[:, row])
    return np.asarray(ROUNDING * total.max(axis=1, initial=0.0))


def restore_strips(arrays: Mapping[str, np.ndarray], volumes: np.ndarray) -> np.ndarray:
    """most_strip (P,) of the pieces with given volumes."""
    found, chosen = volumes.copy(), arrays["strip_piece"]
    if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(found)):
        raise StoreError("its strips do not fit its pieces; the result is damaged: run the verification again")
    found[chosen] = arrays["strip_most"]
    return found
