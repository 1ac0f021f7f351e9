"""The chunks of a large map on disk: written once, then loaded one at a time.

A chunk file holds the arrays of its regions (see `results/arrays.py`); a file next to the chunks holds the accuracy
measures of the whole map. The files of a run lie in a temporary folder, deleted with the map, until the result is
stored.

Chunks are stored in fewer bytes, and no claim changes: logits of regions with a clearly decided label are stored in
float32, and their rounding is added to the slack of their pieces. Numbers that most rows share become separate arrays,
which compress to almost nothing.
"""

import hashlib
import os
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...accuracy import Accuracy
from ...attention.map_errors import MapErrors, SingleCurves
from ...errors import StoreError
from ...question import Question
from ...results.answer import Answers
from ...results.array_file import read_arrays, write_arrays
from ...results.arrays import Shapes, array_shapes, pack, shaped, unpack_map

KEPT = 4
"""The number of loaded chunks that stay in memory."""

CELLS = {2: 256, 3: 40}
"""The number of cells along each side of the grid that locates chunks, by dimension; stored maps may have fewer."""

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


@dataclass(frozen=True, eq=False)
class ChunkFile:
    """A chunk on disk: file, hash, place in the walk, number of regions, and the grid cells that it touches."""

    path: Path
    sha256: str
    place: tuple[int, int, int]
    regions: int
    cells: np.ndarray

    def may_touch(self, box: np.ndarray) -> bool:
        """Whether the chunk may touch a box (2, D) in the unit square or cube, given its low and its high corner."""
        dimension = box.shape[1]
        side = round(len(self.cells) ** (1.0 / dimension))
        low, high = np.clip((box * side).astype(np.int64), 0, side - 1)
        cells = self.cells.reshape((side,) * dimension)
        return bool(cells[tuple(map(slice, low, high + 1))].any())

    def stored(self, number: int) -> dict[str, Any]:
        """The facts of the chunk for `result.json`, given its number."""
        return {"file": chunk_name(number), "sha256": self.sha256, "place": list(self.place), "regions": self.regions}


class Folder:
    """A temporary folder that is deleted when no object refers to it any more."""

    def __init__(self) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix="steadygaze-map-"))
        except OSError as error:
            raise _unusable(error) from None
        self._delete = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class ChunkFiles:
    """All chunks of a map, in order. accuracy: that of the whole map; folder: keeps temporary files alive."""

    def __init__(
        self, question: Question, files: tuple[ChunkFile, ...], accuracy: Accuracy, folder: Folder | None = None
    ) -> None:
        self.question, self.files, self.accuracy, self.folder = question, files, accuracy, folder
        self.first = np.cumsum([0, *(file.regions for file in files)])
        self._loaded: OrderedDict[int, tuple[Answers, np.ndarray]] = OrderedDict()
        self._checked: set[int] = set()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.files)

    def load(self, number: int) -> Answers:
        """The regions of a chunk, ready for any δ."""
        return self.load_with_ids(number)[0]

    def load_with_ids(self, number: int, *, is_kept: bool = True) -> tuple[Answers, np.ndarray]:
        """The regions of a chunk, and the ids (E,) of its cuts; if `is_kept`, the chunk stays in memory for a while."""
        with self._lock:
            if number in self._loaded:
                self._loaded.move_to_end(number)
                return self._loaded[number]
        found = self._read(number)
        if is_kept:
            with self._lock:
                self._loaded[number] = found
                while len(self._loaded) > KEPT:
                    self._loaded.popitem(last=False)
        return found

    def _read(self, number: int) -> tuple[Answers, np.ndarray]:
        file = self.files[number]
        content = read_bytes(file.path)
        if number not in self._checked:
            if sha256_of(content) != file.sha256:
                raise StoreError(
                    f"{file.path}: differs from what was written; the result is damaged: run the verification again"
                )
            self._checked.add(number)
        question = self.question
        is_measured, errors = question.measures_regions, None
        shapes = array_shapes(
            question.compound.coordinates, is_measured=is_measured, is_part=True, has_sums=question.has_sums
        )
        stored = read_arrays(file.path, [name for name in [*shapes, *EXTRA] if name not in REPLACED], content)
        try:
            arrays = decode(stored)
            regions, pieces, curves = unpack_map(
                arrays, {"depth": 0, "stopped": None}, question, is_measured=is_measured, accuracy=self.accuracy
            )
            pieces = replace(pieces, most_strip=restore_strips(stored, pieces.polytopes.volumes))
        except StoreError as error:
            raise StoreError(f"{file.path}: {error}") from None
        if len(regions) != file.regions:
            raise StoreError(
                f"{file.path}: has {len(regions)} regions, expected {file.regions}; the result is damaged: run the "
                "verification again"
            )
        if curves is not None:
            errors = self._errors.for_curves(regions.patterns, curves)
        answers = Answers(question.compound, regions, pieces, curves, errors, question.map_size, is_part=True)
        return answers, arrays["cut_id"]

    @cached_property
    def _errors(self) -> MapErrors:
        return shared_errors(self.question)

    def touching(self, box: np.ndarray) -> list[int]:
        """The chunks that may touch a box (2, D) in the unit square or cube, given its low and its high corner."""
        return [number for number, file in enumerate(self.files) if file.may_touch(box)]

    def chunk_of(self, region: int) -> tuple[int, int]:
        """The chunk of a region, and the region's number in it."""
        number = int(np.searchsorted(self.first, region, side="right")) - 1
        return number, int(region - self.first[number])

    def copy_to(self, folder: Path) -> None:
        """Copy all files into a folder, or link them if it is on the same disk."""
        for number, file in enumerate(self.files):
            target = folder / chunk_name(number)
            try:
                os.link(file.path, target)
            except OSError:
                shutil.copyfile(file.path, target)

    def arrays(self) -> dict[str, np.ndarray]:
        """The grid of every chunk (N, cells), packed, and the accuracy measures of the whole map."""
        cells = np.array([file.cells for file in self.files])
        names = ("peaks", "missed", "beside", "pixels_beside", "drift")
        return {"cells": np.packbits(cells, axis=1), **{name: getattr(self.accuracy, name) for name in names}}


def shared_errors(question: Question) -> MapErrors:
    """Error bounds that the curves of all chunks share, computed in advance: threads only read them."""
    compound = question.compound
    errors = SingleCurves(compound, question.attention, question.original_doubt).errors
    own = "scratch_error" if errors.is_large else "original_error"
    for name in ("original", "chain", "chain_error", "underflow", "known", own):
        getattr(errors, name)
    return errors


def write_chunk(folder: Folder, place: tuple[int, int, int], answers: Answers, cut_id: np.ndarray) -> ChunkFile:
    """Write a chunk into a temporary folder."""
    path = folder.path / "-".join(f"{number:06d}" for number in place)
    arrays = pack(answers.regions, answers.pieces, answers.curves, cut_id)
    try:
        write_arrays(path, encode(arrays, answers.pieces.polytopes.volumes))
    except OSError as error:
        raise _unusable(error, folder.path) from None
    return ChunkFile(path, sha256_of(read_bytes(path)), place, len(answers.regions), _touched(answers))


def _unusable(error: OSError, folder: Path | None = None) -> StoreError:
    """The refusal of a temporary folder where the chunks of a map cannot be written."""
    where = f" {folder}" if folder is not None else ""
    return StoreError(
        f"cannot write the regions of this large map into a temporary folder{where} ({error.strerror or error}); make "
        "room there, set TMPDIR to a folder with more room, or use --max-regions or a smaller domain"
    )


def _touched(answers: Answers) -> np.ndarray:
    """The cells (N,) of the grid that the bounding box of some region touches."""
    low, high = answers.regions.polytopes.bounding_boxes()
    dimension = low.shape[1]
    side = CELLS[dimension]
    # Marks at the corners of boxes; cumulative sums along all axes count the boxes that cover each cell.
    first, last = np.clip(low * side - 1e-6, 0, side - 1), np.clip(high * side + 1e-6, 0, side - 1)
    counts = np.zeros((side + 1,) * dimension, dtype=np.int64)
    for corner in np.ndindex((2,) * dimension):
        place = np.where(corner, last.astype(np.int64) + 1, first.astype(np.int64))
        np.add.at(counts, tuple(place.T), (-1) ** sum(corner))
    for axis in range(dimension):
        counts = counts.cumsum(axis=axis)
    return (counts[(slice(0, side),) * dimension] > 0).ravel()


def chunk_name(number: int) -> str:
    """The name of a chunk's file in the directory of a result."""
    return f"regions-{number:05d}.npz"


def sha256_of(content: bytes) -> str:
    """The hash of the content of a file."""
    return hashlib.sha256(content).hexdigest()


def read_bytes(path: Path) -> bytes:
    """The content of a chunk file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror or error}); check its permissions") from None


def restore_files(stored: list[Mapping[str, Any]], folder: Path, cells: np.ndarray) -> tuple[ChunkFile, ...]:
    """The chunks named in a `result.json`; each is checked when it is loaded."""
    found = []
    for number, facts in enumerate(stored):
        if facts["file"] != chunk_name(number):
            raise StoreError(
                f"{folder}: chunk {number} is called {str(facts['file'])[:40]!r}, expected {chunk_name(number)}; the "
                "result is damaged: run the verification again"
            )
        place = tuple(int(part) for part in facts["place"])
        path = folder / chunk_name(number)
        found.append(ChunkFile(path, str(facts["sha256"]), place, int(facts["regions"]), cells[number]))  # type: ignore[arg-type]
    return tuple(found)


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
