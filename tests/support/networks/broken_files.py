"""Writes a corpus of broken and unsupported ONNX files; each comes with words that its refusal must contain."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from support.networks import broken_attributes, broken_structure, broken_tensors, unsupported_operators
from support.networks.broken_models import MODELS, dense
from support.networks.broken_tensors import stored_outside

CASES = (broken_structure, broken_tensors, unsupported_operators, broken_attributes)
"""The modules that add their models to the corpus when they are imported."""


def write_corpus(folder: Path) -> Iterator[tuple[Path, str]]:
    """Write all broken files into an empty folder; yields their paths and words of their refusal."""
    (folder.parent / "secret.bin").write_bytes(bytes(1000))
    (folder / "weights.bin").write_bytes(bytes(100))
    for name, (words, make) in MODELS.items():
        yield _write(folder, name, make().SerializeToString()), words
    whole = dense().SerializeToString()
    for length in (1, 2, 10, 40, len(whole) // 3, len(whole) // 2, len(whole) - 100, len(whole) - 1):
        yield _write(folder, f"cut_to_{length}", whole[:length]), ""
    yield _write(folder, "empty", b""), "is empty"
    yield _write(folder, "text", b"this is no model\n" * 20), "not an ONNX model"
    yield _write(folder, "json", json.dumps({"ir_version": 8, "graph": {}}).encode()), "not an ONNX model"
    yield _write(folder, "zeros", bytes(1000)), "not an ONNX model"
    yield _write(folder, "compressed", gzip.compress(whole)), "not an ONNX model"
    yield _write(folder, "archive", b"PK\x03\x04" + whole), "not an ONNX model"
    yield _write(folder, "doubled_bytes", whole + whole), ""
    generator = np.random.default_rng(1)
    for number in range(4):
        yield _write(folder, f"random_{number}", generator.bytes(1000)), "not an ONNX model"
    directory = folder / "folder.onnx"
    directory.mkdir()
    yield directory, "is a directory"
    yield folder / "missing.onnx", "no such file"
    pipe = folder / "pipe.onnx"
    os.mkfifo(pipe)
    yield pipe, "is not a regular file"
    linked = folder / "linked.bin"
    linked.symlink_to("../secret.bin")
    yield (
        _write(folder, "external_link", stored_outside(location="linked.bin").SerializeToString()),
        "outside the model",
    )


def _write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / f"{name}.onnx"
    path.write_bytes(content)
    return path
