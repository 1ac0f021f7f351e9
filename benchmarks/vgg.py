"""Makes a VGG-16 layout for 32×32×3 images as an ONNX file: 13 convolutions, strides instead of pools, 276,480 neurons.

    python benchmarks/vgg.py FOLDER            # trains FOLDER/vgg16.onnx (59 MB) unless it is there; ten minutes
    python benchmarks/vgg.py FOLDER --again --steps 300

It is trained for some minutes on MNIST, padded to 32×32 and repeated to three channels, because no larger set of colour
images is available. `FOLDER/vgg16.json` records the outcome: accuracy on 1,000 test images, share of zero weights.
Reading the file back needs neither torch nor the data.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

CHANNELS = (64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512)
STRIDES = (1, 1, 2, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1)
SIDE, CLASSES = 32, 10
NAME = "vgg16.onnx"
SEED = 16
TESTED = 1000
OPSET, IR_VERSION = 13, 8

Weights = list[tuple[np.ndarray, np.ndarray]]


def neurons() -> int:
    """The number of ReLUs.

    >>> neurons()
    276480
    """
    sides = [SIDE // prod(STRIDES[: number + 1]) for number in range(len(STRIDES))]
    return sum(channels * side**2 for channels, side in zip(CHANNELS, sides, strict=True))


def as_colour(images: np.ndarray) -> np.ndarray:
    """Grey images (N, 28, 28), padded with black to (N, 3, 32, 32).

    >>> as_colour(np.ones((1, 28, 28))).sum(axis=(2, 3))
    array([[784., 784., 784.]])
    """
    padded = np.pad(images, ((0, 0), (2, 2), (2, 2)))
    return np.repeat(padded[:, None], 3, axis=1)


def export(path: Path, weights: Weights) -> None:
    """Write the network as float32, atomically."""
    import onnx  # noqa: PLC0415 (slow; this module is also imported for its layout)
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415

    nodes, tensors, value = [], [], "image"
    for number, (weight, bias) in enumerate(weights):
        label = f"conv{number + 1}" if number < len(CHANNELS) else "fc"
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(weight, np.float32), f"{label}.weight"))
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(bias, np.float32), f"{label}.bias"))
        inputs = [f"{label}.weight", f"{label}.bias"]
        if number == len(CHANNELS):
            nodes.append(helper.make_node("Flatten", [value], ["flat"], name="flatten", axis=1))
            nodes.append(helper.make_node("Gemm", ["flat", *inputs], ["logits"], name=label, transB=1))
            break
        stride = STRIDES[number]
        window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [stride, stride]}
        nodes.append(helper.make_node("Conv", [value, *inputs], [f"{label}.out"], name=label, **window))
        value = f"relu{number + 1}.out"
        nodes.append(helper.make_node("Relu", [f"{label}.out"], [value], name=f"relu{number + 1}"))
    graph = helper.make_graph(
        nodes,
        "vgg16",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", CLASSES])],
        tensors,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, producer_name="steadygaze", opset_imports=opsets, ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    part = path.with_name(path.name + ".part")
    onnx.save(model, part)
    part.replace(path)


def predictions(path: Path, images: np.ndarray) -> np.ndarray:
    """The classes (N,) that onnxruntime predicts for images (N, 3, 32, 32) with pixels in [0,1]."""
    import onnxruntime  # noqa: PLC0415

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    parts = np.array_split(images.astype(np.float32), max(1, len(images) // 100))
    return np.concatenate([session.run(None, {"image": part})[0].argmax(axis=1) for part in parts])


def make(path: Path, data: Path, *, steps: int, kept: int, threads: int) -> dict[str, Any]:
    """Train and write the network; the outcome is returned, and stored beside it."""
    sys.path.insert(0, str(Path(__file__).resolve().parent / "zoo"))
    import torch  # noqa: PLC0415
    from idx import read_dataset  # noqa: PLC0415

    from vgg_training import Vgg, train, weights_of  # noqa: PLC0415

    torch.set_num_threads(threads)
    torch.manual_seed(SEED)
    digits = read_dataset(data, "mnist")
    network = Vgg(CHANNELS, STRIDES, SIDE, CLASSES)
    train(
        network, as_colour(digits.train_images), digits.train_labels.astype(np.int64), steps=steps, kept=kept, seed=SEED
    )
    weights = weights_of(network)
    path.parent.mkdir(parents=True, exist_ok=True)
    export(path, weights)
    tested = as_colour(digits.test_images[-TESTED:].astype(np.float64) / 255)
    right = predictions(path, tested) == digits.test_labels[-TESTED:]
    zeros, total = sum(int((weight == 0.0).sum()) for weight, _ in weights), sum(weight.size for weight, _ in weights)
    facts = {
        "neurons": neurons(), "weights": total, "zero_share": zeros / total, "kept_per_channel": kept,
        "steps": steps, "accuracy": float(right.mean()), "tested": TESTED, "seed": SEED,
        "data": "MNIST, padded to 32×32, three equal channels",
    }  # fmt: skip
    path.with_suffix(".json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return facts


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the file, or to write it to")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=beside, help="folder with the idx files (see zoo/idx.py)")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--kept", type=int, default=32, help="weights that remain per channel, on average")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="train even if the file exists")
    options = parser.parse_args(arguments)
    path = options.folder / NAME
    if path.exists() and not options.again:
        print(f"{path}: exists already; --again trains it again")
        return 0
    facts = make(path, options.data, steps=options.steps, kept=options.kept, threads=options.threads)
    print(json.dumps(facts, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
