"""How much of a brightness range does a refinement decide for a ResNet-18 layout, within limits of time and memory?

    python benchmarks/resnet18.py                                  # 3×224×224, 10 classes, brightness 0..0.002
    python benchmarks/resnet18.py --side 64 --range 0.0005

The network is untrained. It has random He weights, and batch norms with the statistics of a few random images, so its
activations have ordinary sizes. The last batch norm of every block has small gains, as many networks have before
training; `--gain 1` makes all gains equal. The network is written as a float32 ONNX file to a temporary folder, read,
and compared with onnxruntime. The question: is the label kept over a range of brightness, within 4 GiB and 600 seconds?
Prints the decided share, the peak memory, and the largest range, found by halving, of which at least half is decided.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from timing import clock, peak_mib, print_table, write_json

SEED, STATISTICS = 18, 4  # of the weights; random images behind the batch norms
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
LIMIT_SECONDS, LIMIT_GIB = 600.0, 4.0
UNTIL = 0.01
EPSILON = 1e-5
OPSET, IR_VERSION = 13, 8


class Writer:
    """Writes nodes of an ONNX graph and runs them on a few images at once, for the statistics of batch norms."""

    def __init__(self, images: np.ndarray) -> None:
        self.rng = np.random.default_rng(SEED)
        self.values = {"image": images}
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []

    def _tensor(self, name: str, array: np.ndarray) -> str:
        from onnx import numpy_helper  # noqa: PLC0415 (slow)

        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name))
        return name

    def _node(self, kind: str, inputs: list[str], value: np.ndarray, **attributes: Any) -> str:
        from onnx import helper  # noqa: PLC0415 (slow)

        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        self.values[name] = value
        return name

    def conv(self, source: str, channels: int, kernel: int, stride: int, gain: float = 1.0) -> str:
        """A convolution without bias, and its batch norm with gains around `gain`."""
        from torch import from_numpy  # noqa: PLC0415 (slow)
        from torch.nn.functional import conv2d  # noqa: PLC0415

        before = self.values[source]
        fan = before.shape[1] * kernel**2
        weight = self.rng.normal(size=(channels, before.shape[1], kernel, kernel)) * np.sqrt(2.0 / fan)
        weight = weight.astype(np.float32)
        after = conv2d(from_numpy(before), from_numpy(weight), stride=stride, padding=kernel // 2).numpy()
        names = [source, self._tensor(f"weight{len(self.nodes)}", weight)]
        found = self._node(
            "Conv", names, after, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4
        )
        mean, variance = after.mean(axis=(0, 2, 3)), after.var(axis=(0, 2, 3))
        gains, bias = gain * self.rng.uniform(0.5, 1.5, channels), 0.2 * self.rng.normal(size=channels)
        parts = {"gain": gains, "bias": bias, "mean": mean, "variance": variance}
        inputs = [self._tensor(f"{name}{len(self.nodes)}", part) for name, part in parts.items()]
        gains, bias, mean, variance = (part.astype(np.float32)[:, None, None] for part in parts.values())
        normed = (after - mean) / np.sqrt(variance + np.float32(EPSILON)) * gains + bias
        return self._node("BatchNormalization", [found, *inputs], normed, epsilon=EPSILON)

    def relu(self, source: str) -> str:
        return self._node("Relu", [source], np.maximum(self.values[source], 0))

    def add(self, one: str, two: str) -> str:
        return self._node("Add", [one, two], self.values[one] + self.values[two])

    def pool(self, source: str) -> str:
        from torch import from_numpy  # noqa: PLC0415 (slow)
        from torch.nn.functional import max_pool2d  # noqa: PLC0415

        pooled = max_pool2d(from_numpy(self.values[source]), 3, 2, 1).numpy()
        return self._node("MaxPool", [source], pooled, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])

    def head(self, source: str, classes: int) -> str:
        """The mean over all places, and a dense layer."""
        mean = self.values[source].mean(axis=(2, 3), keepdims=True)
        pooled = self._node("GlobalAveragePool", [source], mean)
        flat = self._node("Flatten", [pooled], mean[:, :, 0, 0])
        weight = (self.rng.normal(size=(mean.shape[1], classes)) * np.sqrt(1.0 / mean.shape[1])).astype(np.float32)
        bias = np.zeros(classes, np.float32)
        names = [flat, self._tensor("dense.weight", weight), self._tensor("dense.bias", bias)]
        return self._node("Gemm", names, mean[:, :, 0, 0] @ weight + bias)

    def save(self, path: Path, result: str) -> None:
        """Write the file."""
        import onnx  # noqa: PLC0415 (slow)
        from onnx import TensorProto, helper  # noqa: PLC0415

        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, *self.values[name].shape[1:]])
            for name in ("image", result)
        ]
        graph = helper.make_graph(self.nodes, "resnet18", ends[:1], ends[1:], self.tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        onnx.save(model, str(path))


def write_resnet(path: Path, side: int, classes: int, gain: float) -> None:
    """Write the network for images (3, side, side): 7×7 convolution, MaxPool, 4 stages of 2 basic blocks, head."""
    writer = Writer(np.stack([random_image(side, number) for number in range(1, 1 + STATISTICS)]).astype(np.float32))
    value = writer.pool(writer.relu(writer.conv("image", 64, 7, 2)))
    for stage, (channels, first) in enumerate(STAGES):
        for stride in (first, 1):
            inner = writer.conv(writer.relu(writer.conv(value, channels, 3, stride)), channels, 3, 1, gain)
            is_changed = stage > 0 and stride > 1
            kept = writer.conv(value, channels, 1, stride) if is_changed else value
            value = writer.relu(writer.add(inner, kept))
    writer.save(path, writer.head(value, classes))


def random_image(side: int, number: int) -> np.ndarray:
    """A smooth random image (3, side, side) in [0.1, 0.9]: noise of several sizes, added up."""
    rng, image = np.random.default_rng([SEED, number]), np.zeros((3, side, side))
    cells = 2
    while cells <= side:
        repeat = -(-side // cells)
        noise = rng.normal(size=(3, cells, cells)).repeat(repeat, axis=1).repeat(repeat, axis=2)
        image += noise[:, :side, :side] / cells**0.5
        cells *= 2
    return 0.1 + 0.8 * (image - image.min()) / (image.max() - image.min())


def refined(model: Any, image: np.ndarray, most: float, threads: int | None) -> dict[str, Any]:
    """The outcome over brightness from 0 to `most`."""
    from steadygaze.budget import Budget, Limits  # noqa: PLC0415 (after the environment is known)
    from steadygaze.engines import run  # noqa: PLC0415
    from steadygaze.question import make_question  # noqa: PLC0415

    question = make_question(model, image, [f"brightness:0..{most!r}"], property="cr", classes="predicted")
    budget = Budget(Limits(timeout_seconds=LIMIT_SECONDS, memory_gib=LIMIT_GIB))
    seconds, result = clock(lambda: run(question, "refine", budget=budget, until=UNTIL, threads=threads))
    return {
        "range": most,
        "percent": 100.0 * (1.0 - result.areas["undecided"][1]),
        "seconds": seconds,
        "boxes": len(result.tiling.boxes),
        "peak_mib": peak_mib(),
        "relaxation": result.tiling.relaxation,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--gain", type=float, default=0.1, help="gain of the last batch norm of every block")
    parser.add_argument("--range", type=float, default=0.002, help="the largest brightness")
    parser.add_argument("--halvings", type=int, default=6, help="halvings of the range until at least half is decided")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args(arguments)
    from steadygaze.network.model import check_agreement, read_model  # noqa: PLC0415 (slow)

    image = random_image(options.side, 0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet18.onnx"
        # In a process of its own: torch would count as memory of the verification.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            given = path, options.side, options.classes, options.gain
            writing, _ = clock(lambda: pool.submit(write_resnet, *given).result())
        reading, model = clock(lambda: read_model(path))
        checking, agreement = clock(lambda: check_agreement(model, image, []))
        print(
            f"{model.graph.neurons:,} ReLUs and windows; written in {writing:.1f} s, read in {reading:.1f} s, compared "
            f"with onnxruntime in {checking:.1f} s: {agreement}"
        )
        rows = []
        for halving in range(options.halvings + 1):
            rows.append(refined(model, image, options.range / 2**halving, options.threads))
            if rows[-1]["percent"] >= 50.0:
                break
    print_table(
        [
            {
                "brightness": f"0..{row['range']:.3g}",
                "decided %": f"{row['percent']:.2f}",
                "seconds": f"{row['seconds']:.1f}",
                "boxes": f"{row['boxes']:,}",
                "peak MiB": f"{row['peak_mib']:,.0f}",
                "method": row["relaxation"],
            }
            for row in rows
        ]
    )
    is_found = rows[-1]["percent"] >= 50.0
    reach = f"0..{rows[-1]['range']:.3g}" if is_found else f"none of the ranges down to 0..{rows[-1]['range']:.3g}"
    print(f"largest range with at least half decided: {reach}")
    if options.json is not None:
        question = "how much of a brightness range is decided for a ResNet-18 layout, within limits of time and memory?"
        write_json(
            options.json,
            question,
            repetitions=1,
            side=options.side,
            classes=options.classes,
            gain=options.gain,
            rows=rows,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
