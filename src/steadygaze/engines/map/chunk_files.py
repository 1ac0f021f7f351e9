"""The chunks of a large map on disk: written once, then loaded one at a time.

A chunk file holds the arrays of its regions (see `results/arrays.py`); a file next to the chunks holds the accuracy
measures of the whole map. The files of a run lie in a temporary folder, deleted with the map, until the result is
stored.
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
from ...results.arrays import array_shapes, pack, unpack_map
from .chunk_coding import EXTRA, REPLACED, decode, encode, restore_strips

KEPT = 4
"""The number of loaded chunks that stay in memory."""

CELLS = {2: 64, 3: 16}
"""The number of cells along each side of the grid that locates chunks, by dimension."""


@dataclass(frozen=True, eq=False)
class ChunkFile:
    """A chunk on disk: file, hash, place in the walk, number of regions, and the grid cells that it touches."""

    path: Path
    sha256: str
    place: tuple[int, int, int]
    regions: int
    cells: np.ndarray

    def stored(self, number: int) -> dict[str, Any]:
        """The facts of the chunk for `result.json`, given its number."""
        return {"file": chunk_name(number), "sha256": self.sha256, "place": list(self.place), "regions": self.regions}


class Folder:
    """A temporary folder that is deleted when no object refers to it any more."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="steadygaze-map-"))
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

    def candidates(self, point: np.ndarray) -> list[int]:
        """The chunks that may contain a point (D,) of the unit square or cube."""
        side = CELLS[len(point)]
        cell = np.clip((point * side).astype(np.int64), 0, side - 1)
        place = int(np.ravel_multi_index(tuple(cell), (side,) * len(point)))
        return [number for number, file in enumerate(self.files) if file.cells[place]]

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
    write_arrays(path, encode(arrays, answers.pieces.polytopes.volumes))
    return ChunkFile(path, sha256_of(read_bytes(path)), place, len(answers.regions), _touched(answers))


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
