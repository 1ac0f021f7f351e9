"""Searches on disk: a result into a directory as for maps, and a directory into its summary and regions again.

`regions.npz` holds every visited region in theta. Files are never trusted: what is damaged, foreign or does not fit
is refused. The question is not put again, so the model is not needed for reading.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import StoreError
from ..perturbation import Domain
from ..results.archive import read_arrays
from ..results.store import MAP, check_directory, describe_stored, is_search, read_checked, write_result
from .outcome import ATTENTIONS, CLASSIFICATIONS, SearchResult
from .summary import summarise_search

CODES = ("", "undecided")
"""What comes before the three labels of a kind in their codes: not asked for, and not decided."""

KINDS = {"f": np.float64, "i": np.int32, "u": np.uint8}
SHAPES = {
    "halfspaces": ("f", "facets", "forms"),
    "starts": ("i", "bounds"),
    "inside": ("f", "regions", "axes"),
    "volume": ("f", "regions"),
    "logits": ("f", "regions", "forms", "classes"),
    "cell": ("i", "regions"),
    "clip": ("u", "clip"),
    "clip_starts": ("i", "bounds"),
    "pattern": ("u", "regions", "pattern"),
    "classification": ("i", "regions"),
    "attention": ("i", "regions"),
    "margin": ("f", "regions", "ends"),
    "inconsistency": ("f", "regions", "ends"),
    "is_following": ("u", "regions"),
    "is_doubtful": ("u", "regions"),
    "component": ("i", "along"),
    "component_region": ("i", "along"),
    "component_is_inner": ("u", "along"),
}
"""Kind and sizes of every array; sizes of the same name are equal."""


@dataclass(frozen=True, eq=False)
class StoredSearch:
    """A search that was read from a directory: its summary, and its regions as arrays.

    halfspaces (F, d+1) in theta, unit inward normal n and offset c with n·θ + c ≥ 0; those of region r are
    starts[r]:starts[r+1]. inside (R, d) is a theta inside each region, volume (R,) its share of the domain, logits
    (R, d+1, K) slope in theta and constant. cell (R,), clip[clip_starts[r]:clip_starts[r+1]] and pattern (R, B) are
    the packed bits that tell a region from all others. classification and attention (R,): 0 not asked for, 1
    undecided, then 2, 3, 4 for CR, MR, CB or AR, IR, AB. margin and inconsistency (R, 2) are bounds over the region.
    component, component_region and component_is_inner (N,): the regions along each component of the boundary.
    """

    summary: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.arrays["volume"])

    @property
    def classification(self) -> list[str]:
        """CR, MR, CB, undecided, or "" of every region."""
        return [(*CODES, *CLASSIFICATIONS)[code] for code in self.arrays["classification"]]

    @property
    def attention(self) -> list[str]:
        """AR, IR, AB, undecided, or "" of every region."""
        return [(*CODES, *ATTENTIONS)[code] for code in self.arrays["attention"]]

    def halfspaces(self, region: int) -> np.ndarray:
        """The half-spaces (F, d+1) of one region, in theta."""
        starts = self.arrays["starts"]
        return self.arrays["halfspaces"][starts[region] : starts[region + 1]]


def save_search(result: SearchResult, directory: str | Path, *, force: bool = False) -> Path:
    """Store a search in a new directory, all or nothing; returns its path. With `force` a result is replaced."""
    check_directory(directory, force=force)
    return write_result(
        directory,
        summarise_search(result),
        describe_stored(result.problem, result.problem.delta),
        pack_search(result),
        result.problem,
        {"total": result.seconds},
        force=force,
    )


def stored_search(result: SearchResult) -> StoredSearch:
    """A search in the form that `load_search` gives, without a directory."""
    return StoredSearch(summarise_search(result), pack_search(result))


def load_search(directory: str | Path) -> StoredSearch:
    """The stored search; raises StoreError for anything that is not one, or no longer whole."""
    folder = Path(directory)
    content = read_checked(folder)
    if not is_search(content):
        raise StoreError(f"{folder}: holds a map, not a search; read it with steadygaze.load")
    arrays = read_arrays(folder / MAP, list(SHAPES))
    try:
        _check_arrays(arrays, content)
    except StoreError as error:
        raise StoreError(f"{folder / MAP}: {error}; the result is damaged: run the verification again") from None
    return StoredSearch({key: value for key, value in content.items() if key not in ("stored", "checksum")}, arrays)


def pack_search(result: SearchResult) -> dict[str, np.ndarray]:
    """The visited regions as arrays; see `StoredSearch`."""
    domain, visited = result.problem.perturbed.domain, result.visited
    regions = [one.region for one in visited]
    d, count = domain.dimension, len(regions)
    program = result.problem.compound.programs[0].program
    classes = int(program.offsets[-1] - program.offsets[-2])
    clips = [np.frombuffer(region.clip, dtype=np.uint8) for region in regions]
    patterns = [np.frombuffer(region.pattern, dtype=np.uint8) for region in regions]
    logits = np.array([region.logits for region in regions]).reshape(count, d + 1, classes)
    logits[:, :d] /= domain.widths[:, None]
    logits[:, d] -= (logits[:, :d] * domain.low[:, None]).sum(axis=1)
    inside = np.array([region.inside for region in regions]).reshape(count, d)
    return {
        "halfspaces": _in_theta(np.concatenate([np.zeros((0, d + 1)), *(r.halfspaces for r in regions)]), domain),
        "starts": _starts([len(region.halfspaces) for region in regions]),
        "inside": domain.low + inside * domain.widths,
        "volume": np.array([region.volume for region in regions], dtype=np.float64),
        "logits": logits,
        "cell": np.array([region.cell for region in regions], dtype=np.int64),
        "clip": np.concatenate([np.zeros(0, dtype=np.uint8), *clips]),
        "clip_starts": _starts([len(clip) for clip in clips]),
        "pattern": np.array(patterns, dtype=np.uint8).reshape(count, -1 if count else 0),
        "classification": _codes([one.classification for one in visited], CLASSIFICATIONS),
        "attention": _codes([one.attention for one in visited], ATTENTIONS),
        "margin": np.array([one.margin for one in visited], dtype=np.float64).reshape(count, 2),
        "inconsistency": np.array([one.inconsistency for one in visited], dtype=np.float64).reshape(count, 2),
        "is_following": np.array([one.is_following for one in visited], dtype=np.uint8),
        "is_doubtful": np.array([one.is_doubtful for one in visited], dtype=np.uint8),
        **_pack_components(result),
    }


def _in_theta(rows: np.ndarray, domain: Domain) -> np.ndarray:
    """Half-spaces (F, d+1) of the unit cube in theta, with unit normals again."""
    normals = rows[:, :-1] / domain.widths
    offsets = rows[:, -1] - normals @ domain.low
    return np.column_stack([normals, offsets]) / np.linalg.norm(normals, axis=1)[:, None]


def _starts(counts: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _codes(labels: list[str], names: tuple[str, ...]) -> np.ndarray:
    known = {label: code for code, label in enumerate((*CODES, *names))}
    return np.array([known[label] for label in labels], dtype=np.int64)


def _pack_components(result: SearchResult) -> dict[str, np.ndarray]:
    """The visited regions along each component of the boundary, in the order in which they were visited."""
    place = {one.region.key: number for number, one in enumerate(result.visited)}
    rows = sorted(
        (number, place[key], is_inner)
        for number, part in enumerate(result.components or ())
        for is_inner, keys in ((1, part.inner), (0, part.outer))
        for key in keys
        if key in place
    )
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return {
        "component": table[:, 0],
        "component_region": table[:, 1],
        "component_is_inner": table[:, 2].astype(np.uint8),
    }


def _check_arrays(arrays: dict[str, np.ndarray], content: dict[str, Any]) -> None:
    """Raise StoreError where arrays do not fit each other or the answer beside them."""
    try:
        regions, axes = int(content["visited"]), len(content["domain"]["names"])
        parts = len(content["components"] or ())
        sets: dict[str, Any] = dict(content["sets"])
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"result.json beside it is not complete ({type(error).__name__})") from None
    sizes = {"regions": regions, "axes": axes, "forms": axes + 1, "bounds": regions + 1, "ends": 2}
    for name, (kind, *wanted) in SHAPES.items():
        array = arrays[name]
        expected = tuple(sizes.setdefault(size, length) for size, length in zip(wanted, array.shape, strict=False))
        if array.dtype != KINDS[kind] or array.shape != expected or array.ndim != len(wanted):
            raise StoreError(f"the array {name} has {array.shape} entries of {array.dtype}, which do not fit")
    _check_entries(arrays, regions, parts)
    for kind, names in (("classification", CLASSIFICATIONS), ("attention", ATTENTIONS)):
        for code, name in enumerate(names, start=len(CODES)):
            if int((arrays[kind] == code).sum()) != (sets.get(name) or 0):
                raise StoreError(f"the array {kind} does not hold the regions that result.json counts")


def _check_entries(arrays: dict[str, np.ndarray], regions: int, parts: int) -> None:
    """Raise StoreError where the entries of arrays of the right shapes make no sense."""
    most = {"cell": None, "classification": 4, "attention": 4, "is_following": 1, "is_doubtful": 1}
    most |= {"component": parts - 1, "component_region": regions - 1, "component_is_inner": 1}
    for name, limit in most.items():
        if (arrays[name] < 0).any() or (limit is not None and (arrays[name] > limit).any()):
            raise StoreError(f"the array {name} has entries out of range")
    for name, of in (("starts", "halfspaces"), ("clip_starts", "clip")):
        ends = arrays[name]
        if ends[0] != 0 or ends[-1] != len(arrays[of]) or any(b < a for a, b in pairwise(ends.tolist())):
            raise StoreError(f"the array {name} does not divide {of}")
    for name in ("halfspaces", "inside", "volume", "logits"):
        if not np.isfinite(arrays[name]).all():
            raise StoreError(f"the array {name} has entries that are not finite")
    if any(np.isnan(arrays[name]).any() for name in ("margin", "inconsistency")):
        raise StoreError("the array margin or inconsistency has entries that are not numbers")
