"""How much of a domain with many parameters is decided in 30 s, and by how many boxes?

    python benchmarks/many_parameters.py    # --seeds 6 --seconds 30

Two kinds of questions with four parameters stall if boxes are only halved: a network that depends on one of four
parameters, and random networks with 10 inputs, 2 neurons and 2 classes, whose kinks cross the domain at any angle. The
benchmark adds random networks with 4 inputs and layers of 10 and 2 neurons, and the verdict for a bias field with 16
parameters (x^i y^j, i and j up to 3, each ± a small number). Shares are compared with samples; the benchmark fails if a
sampled share lies outside its bounds by five deviations.
"""

import argparse
import sys
import tempfile
import time
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import steadygaze
from steadygaze.budget import Budget, Limits
from steadygaze.engines.refine.pointwise import PointPasses
from timing import RESULTS, print_table, write_json

ASKED = 0.99
"""The target: the decided share."""
LAYOUTS = {"10-2-2": (10, 2, 2), "4-10-2-2": (4, 10, 2, 2)}
SAMPLES = 20_000
RANGES = (0.01, 0.05, 0.1, 0.3)


def write_network(path: Path, layers: list[tuple[np.ndarray, np.ndarray]]) -> Path:
    """Dense layers with ReLUs between them, for images with one row of pixels."""
    nodes, tensors, last = [onnx.helper.make_node("Flatten", ["x"], ["h0"])], [], len(layers) - 1
    for number, (weights, bias) in enumerate(layers):
        named = zip((f"w{number}", f"b{number}"), (weights, bias), strict=True)
        tensors += [onnx.numpy_helper.from_array(np.asarray(array, dtype=np.float32), name) for name, array in named]
        output = "y" if number == last else f"z{number}"
        nodes.append(onnx.helper.make_node("Gemm", [f"h{number}", f"w{number}", f"b{number}"], [output], transB=1))
        nodes += [] if number == last else [onnx.helper.make_node("Relu", [output], [f"h{number + 1}"])]
    sizes = ("x", [1, 1, 1, layers[0][0].shape[1]]), ("y", [1, len(layers[-1][1])])
    ends = [onnx.helper.make_tensor_value_info(name, 1, size) for name, size in sizes]
    graph = onnx.helper.make_graph(nodes, "dense", ends[:1], ends[1:], tensors)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return path


def questions(folder: Path, seeds: int) -> list[tuple[str, Path, np.ndarray]]:
    """Name, network and image of every question with four parameters."""
    one = [(np.array([[0.0, 0, 1, 0], [0, 0, -1, 0]]), np.array([-0.3, 0.6])), (np.eye(2), np.array([0.05, 0.0]))]
    found = [("one of four", write_network(folder / "one.onnx", one), np.full((1, 1, 4), 0.2))]
    for (name, sizes), seed in product(LAYOUTS.items(), range(seeds)):
        random = np.random.default_rng(seed)
        layers = [(random.normal(size=(b, a)), 0.5 * random.normal(size=b)) for a, b in pairwise(sizes)]
        path = write_network(folder / f"{name}-{seed}.onnx", layers)
        found.append((f"{name} seed {seed}", path, 0.5 * random.random((1, 1, sizes[0]))))
    return found


def measure(name: str, path: Path, image: np.ndarray, wanted: str, seconds: float) -> dict[str, Any]:
    """A row for one question."""
    specs = [f"patch:x={n},y=0,w=1,h=1:0..0.5" for n in range(4)]
    budget, start, wall = Budget(Limits(timeout_seconds=seconds)), time.process_time(), time.perf_counter()
    result = steadygaze.verify(
        path, image, specs, property=wanted, method="refine", until=1.0 - ASKED, threads=1, budget=budget
    )
    used, total = time.process_time() - start, time.perf_counter() - wall
    return {
        "question": name, "property": wanted, "boxes": len(result.tiling.boxes), "seconds": total, "cpu_seconds": used,
        "decided": 1.0 - result.areas["undecided"][1], "wrong": wrong_shares(result, wanted),
    }  # fmt: skip


def wrong_shares(result: steadygaze.Result, wanted: str) -> list[str]:
    """The names of shares that samples contradict."""
    domain, passes = result.question.perturbed.domain, PointPasses(result.question)
    thetas = domain.to_theta(np.random.default_rng(1).random((SAMPLES, domain.dimension)))
    found = {"CR": passes.margins(thetas) > 0.0}
    if wanted == "both":
        found["AR"] = passes.inconsistencies(thetas) <= result.question.own_limit
        found["CR&AR"] = found["CR"] & found["AR"]
    spread = 5.0 * np.sqrt(0.25 / SAMPLES)
    bounds = {name: result.areas[name] for name in found}
    return [
        name for name, hits in found.items() if not bounds[name][0] - spread <= hits.mean() <= bounds[name][1] + spread
    ]


def measure_field(folder: Path, width: float, seconds: float) -> dict[str, Any]:
    """A row for the bias field with 16 parameters from −width to width."""
    axis, specs = np.linspace(-1.0, 1.0, 28), []
    for i, j in product(range(4), repeat=2):
        np.save(folder / f"field{i}{j}.npy", axis[None] ** i * axis[:, None] ** j)
        specs.append(f'field:file="{folder / f"field{i}{j}.npy"}":{-width}..{width}')
    budget, start, wall = Budget(Limits(timeout_seconds=seconds)), time.process_time(), time.perf_counter()
    result = steadygaze.verify(
        "M-FNN-100", "mnist:69990", specs, property="cr", method="refine", goal="verdict", threads=1, budget=budget
    )
    return {
        "question": f"bias field, 16 × ±{width:g}", "property": "cr", "boxes": len(result.tiling.boxes),
        "seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - start,
        "verdict": result.verdict.value,
    }  # fmt: skip


def main() -> None:
    """Measure all questions, print a table, write JSON; exit 1 if a share is wrong or too little is decided."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--out", type=Path, default=RESULTS / "many_parameters.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        asked = list(product(questions(Path(place), given.seeds), ("cr", "both")))
        rows = [measure(*question, wanted, given.seconds) for question, wanted in asked]
        fields = [measure_field(Path(place), width, given.seconds) for width in RANGES]
    print_table([
        {
            "question": row["question"], "property": row["property"], "boxes": f"{row['boxes']:,}",
            "CPU seconds": f"{row['cpu_seconds']:.2f}",
            "decided": f"{row['decided']:.2%}" if "decided" in row else row["verdict"],
        }
        for row in (*rows, *fields)
    ])  # fmt: skip
    write_json(
        given.out, "How much of a question with many parameters is decided, and by how many boxes?", repetitions=1,
        limit_seconds=given.seconds, asked=ASKED, rows=rows, fields=fields,
    )  # fmt: skip
    wrong = [f"{row['question']} ({row['property']}): {', '.join(row['wrong'])}" for row in rows if row["wrong"]]
    if wrong:
        sys.exit(f"sampled shares lie outside their bounds: {'; '.join(wrong)}")
    if min(row["decided"] for row in rows) < ASKED - 1e-9:
        sys.exit(f"less than {ASKED:.0%} of a question was decided")


if __name__ == "__main__":
    main()
