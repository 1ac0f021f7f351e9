"""Reads the idx files of MNIST and Fashion-MNIST into arrays; it downloads nothing.

A data folder has the sub-folders `mnist` and `fashion-mnist`, each with the four usual files, gzipped or not.
"""

import gzip
import math
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDERS = {"mnist": "mnist", "fashion": "fashion-mnist"}


@dataclass(frozen=True)
class Dataset:
    """Images (N, 28, 28), or (N, 28, 28, 3) in colour, and labels (N,) of both parts, all uint8."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def read_idx(path: Path) -> np.ndarray:
    """Return the uint8 array of an idx file; a name without `.gz` also finds the gzipped file beside it."""
    zipped = path.with_name(path.name + ".gz")
    if path.exists():
        raw = path.read_bytes()
    elif zipped.exists():
        raw = gzip.decompress(zipped.read_bytes())
    else:
        raise SystemExit(
            f"{path}: no such file, nor {zipped.name}. Point --data at a folder as README.md describes it."
        )
    kind, dimensions = struct.unpack(">HBB", raw[:4])[1:]
    shape = struct.unpack(f">{dimensions}I", raw[4 : 4 + 4 * dimensions])
    pixels = np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * dimensions)
    if kind != 0x08 or pixels.size != math.prod(shape):
        raise SystemExit(f"{path}: not an idx file of unsigned bytes, or cut short. Fetch it again (README.md).")
    return pixels.reshape(shape)


def read_dataset(folder: Path, dataset: str) -> Dataset:
    """Return the arrays of `mnist` or `fashion` below the data folder."""
    at = folder / FOLDERS[dataset]
    return Dataset(
        read_idx(at / "train-images-idx3-ubyte"),
        read_idx(at / "train-labels-idx1-ubyte"),
        read_idx(at / "t10k-images-idx3-ubyte"),
        read_idx(at / "t10k-labels-idx1-ubyte"),
    )
