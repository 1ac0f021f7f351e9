"""A corpus of broken and unsupported files: one clear line each, in seconds, and within a GiB."""

import os
import subprocess
import sys

import numpy as np
import onnx
import pytest

from fuzz_models import damage, models
from fuzz_reader import read
from steadygaze.errors import ModelError
from steadygaze.network.model import read_model
from support.networks.broken_files import write_corpus
from support.networks.broken_models import MANY
from support.networks.onnx_files import make_proto
from support.networks.operator_models import graph_of, node

MOST_SECONDS = 2.0
MOST_BYTES = 2**30

MEASURE = """
import sys
from pathlib import Path
from steadygaze.errors import ModelError
from steadygaze.network.model import read_model
for path in map(Path, sys.stdin.read().splitlines()):
    try:
        read_model(path)
    except ModelError:
        pass
    else:
        sys.exit(f"{path.name} was read")
# Of this program alone: the largest memory that getrusage knows includes that of the process before exec.
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


def user_seconds() -> float:
    """CPU time without that of the system, which takes up to 10 ms to provide a megabyte for the first time."""
    return os.times().user


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus") / "files"
    folder.mkdir()
    return list(write_corpus(folder))


def test_the_corpus_is_large(corpus):
    assert len({path for path, _ in corpus}) == len(corpus) >= 60


def test_every_file_is_refused_in_one_line_and_in_time(corpus):
    wrong = []
    for path, words in corpus:
        started = user_seconds()
        try:
            read_model(path)
            message = "was read"
        except ModelError as error:
            message = str(error)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        seconds = user_seconds() - started
        is_line = path.name in message and "\n" not in message and len(message) < 800
        if not is_line or words not in message or seconds > MOST_SECONDS:
            wrong.append(f"{path.name} ({seconds:.1f} s): expected '{words}', found: {message}")
    assert not wrong, "\n".join(wrong)


def test_refusals_take_little_memory(corpus):
    """All files in one process: its largest memory, far from what damaged sizes promise."""
    names = "\n".join(str(path) for path, _ in corpus)
    done = subprocess.run([sys.executable, "-c", MEASURE], input=names, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * 1024 < MOST_BYTES


def test_damaged_models_are_read_or_refused_in_one_line(tmp_path):
    """A sample of what `benchmarks/fuzz_reader.py` tries for minutes."""
    generator, path = np.random.default_rng(4), tmp_path / "damaged.onnx"
    outcomes = {"read": 0, "refused": 0}
    for model in models():
        for _ in range(12):
            path.write_bytes(damage(model, generator))
            outcome = read(path)
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert outcomes["read"] > 10 and outcomes["refused"] > 50


@pytest.mark.parametrize("kind", ["Identity", "Relu", "Abs", "Add"])
def test_a_network_of_many_nodes_is_read_in_time(kind):
    """Neither recursion nor quadratic time in the number of nodes."""
    nodes = []
    for i in range(MANY):
        value = f"v{i}" if i else "image"
        nodes.append(node(kind, [value, "image"] if kind == "Add" else value, f"v{i + 1}"))
    proto = make_proto([*nodes, node("Flatten", f"v{MANY}", "l")], {}, [1, 1, 2, 2])
    started = user_seconds()
    graph = graph_of(proto)
    assert user_seconds() - started < MOST_SECONDS
    image = np.array([[[[0.25, 0.5], [0.0, 1.0]]]])
    assert (graph.logits(image) == image.ravel() * (MANY + 1 if kind == "Add" else 1)).all()


@pytest.mark.parametrize("kind", ["Identity", "Relu"])
def test_a_file_of_many_nodes_is_read_in_time(kind, tmp_path):
    """The layers, too, take linear time."""
    nodes = [node(kind, f"v{i}" if i else "image", f"v{i + 1}") for i in range(MANY)]
    path = tmp_path / "many.onnx"
    onnx.save(make_proto([*nodes, node("Flatten", f"v{MANY}", "l")], {}, [1, 1, 2, 2]), path)
    started = user_seconds()
    model = read_model(path)
    assert user_seconds() - started < MOST_SECONDS
    assert len(model.graph.layers) == (MANY if kind == "Relu" else 0)
