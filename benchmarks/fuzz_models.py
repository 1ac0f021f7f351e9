"""Small valid ONNX models that use every supported operator, and random damage to their bytes and fields."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

DIMS = [1, 2, 6, 5]
NUMBERS = (0, 1, -1, 2, 3, 7, 255, 1024, 2**20, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, -(2**63), -2, -(2**31))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-38, 1e38, 3.4e38, -3.4e38, float("nan"), float("inf"), float("-inf"))
TEXTS = ("", "image", "y", "two\nlines", "x" * 2000, "ai.onnx", "SAME_UPPER", "linear", "cubic", "\udcff", "é")

# fmt: off
OPERATORS = (
    "Abs", "Add", "AveragePool", "BatchNormalization", "Cast", "Clip", "Concat", "Conv", "ConvTranspose",
    "DepthToSpace", "Div", "Dropout", "Expand", "Flatten", "Gather", "Gemm", "GlobalAveragePool", "GlobalMaxPool",
    "HardSigmoid",
    "Identity", "LeakyRelu", "MatMul", "Max", "MaxPool", "Mean", "Min", "Mul", "Neg", "PRelu", "Pad", "ReduceMax",
    "ReduceMean", "ReduceMin", "ReduceSum", "Relu", "Reshape", "Resize", "Shrink", "Sigmoid", "Slice", "Softmax",
    "SpaceToDepth", "Split", "Squeeze", "Sub", "Sum", "ThresholdedRelu", "Tile", "Transpose", "Unsqueeze", "Upsample",
    "Where", "Range", "ConstantOfShape", "Shape", "Size", "Equal", "If", "Floor",
)
ATTRIBUTES = (
    ("axis", -1), ("axis", 3), ("axes", [0]), ("axes", [3, -1]), ("keepdims", 0), ("auto_pad", "SAME_LOWER"),
    ("auto_pad", "VALID"), ("kernel_shape", [2, 2]), ("strides", [3, 1]), ("pads", [1, 1, 1, 1]), ("pads", [2, 0]),
    ("dilations", [2, 2]), ("group", 2), ("ceil_mode", 1), ("mode", "nearest"), ("mode", "edge"), ("mode", "wrap"),
    ("output_shape", [9, 9]), ("perm", [3, 2, 1, 0]), ("to", 1), ("to", 7), ("alpha", 2.0), ("transB", 1),
    ("num_outputs", 2), ("count_include_pad", 1), ("noop_with_empty_axes", 1), ("allowzero", 1), ("blocksize", 2),
    ("nearest_mode", "ceil"), ("coordinate_transformation_mode", "align_corners"), ("training_mode", 1),
    ("split", [1, 1]),
)
# fmt: on

# Nodes from 'image' to 'y', as (operator, inputs, outputs, attributes), and their constants.
BODIES: tuple[tuple[list[tuple], dict[str, Any]], ...] = (
    (
        [
            ("Conv", "image w b", "c", {"pads": [1, 0, 1, 1], "strides": [2, 1], "dilations": [1, 2]}),
            ("Relu", "c", "y", {}),
        ],
        {"w": (3, 2, 3, 2), "b": (3,)},
    ),
    (
        [
            (
                "MaxPool",
                "image",
                "p q",
                {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], "ceil_mode": 1},
            ),
            ("AveragePool", "p", "y", {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}),
        ],
        {},
    ),
    (
        [
            ("Conv", "image w b", "h", {"pads": [1, 1, 1, 1]}),
            ("Add", "h image", "s", {}),
            ("LeakyRelu", "s", "y", {"alpha": 0.1}),
        ],
        {"w": (2, 2, 3, 3), "b": (2,)},
    ),
    (
        [("Split", "image", "u v", {"axis": 1}), ("Max", "u v c", "m", {}), ("Concat", "m u c", "y", {"axis": 1})],
        {"c": (1, 1, 6, 5)},
    ),
    (
        [
            ("Slice", "image starts ends axes steps", "s", {}),
            ("Gather", "s index", "g", {"axis": 2}),
            ("PRelu", "g slope", "y", {}),
        ],
        {
            "starts": [5, 0],
            "ends": [-9, 4],
            "axes": [2, 3],
            "steps": [-1, 2],
            "index": [[0, 1], [-1, 2]],
            "slope": (2, 1, 1, 1),
        },
    ),
    (
        [
            (
                "ConvTranspose",
                "image w b",
                "c",
                {"strides": [2, 1], "pads": [1, 0, 0, 1], "group": 2, "output_padding": [1, 0]},
            ),
            ("Clip", "c low high", "y", {}),
        ],
        {"w": (2, 1, 2, 3), "b": (2,), "low": -0.5, "high": 0.75},
    ),
    (
        [
            ("Resize", "image  scales", "r", {"mode": "linear"}),
            ("Pad", "r pads", "p", {"mode": "reflect"}),
            ("Abs", "p", "y", {}),
        ],
        {"scales": [1.0, 1.0, 1.5, 2.0], "pads": [0, 0, 1, 2, 0, 0, 0, 1]},
    ),
    (
        [
            ("Shape", "image", "s", {}),
            ("Slice", "s zero two", "nc", {}),
            ("Concat", "nc rest", "t", {"axis": 0}),
            ("Reshape", "image t", "r", {}),
            ("ReduceMax", "r", "x", {"axes": [2]}),
            ("Sub", "x r", "y", {}),
        ],
        {"zero": [0], "two": [2], "rest": [-1]},
    ),
    (
        [
            ("BatchNormalization", "image g b m v", "n", {}),
            ("Transpose", "n", "t", {"perm": [0, 2, 3, 1]}),
            ("ReduceMean", "t", "y", {"axes": [-1], "keepdims": 0}),
        ],
        {"g": (2,), "b": (2,), "m": (2,), "v": (2,)},
    ),
    (
        [
            ("Tile", "image times", "t", {}),
            ("Expand", "t shape", "e", {}),
            ("Min", "e image", "n", {}),
            ("HardSigmoid", "n", "y", {}),
        ],
        {"times": [1, 1, 1, 1], "shape": [2, 1, 1, 1]},
    ),
    (
        [("Flatten", "image", "f", {}), ("Gemm", "f w b", "g", {"alpha": 0.5, "beta": 2.0}), ("Softmax", "g", "y", {})],
        {"w": (60, 4), "b": (4,)},
    ),
    (
        [
            ("Resize", "image   sizes", "r", {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}),
            ("DepthToSpace", "r", "d", {"blocksize": 1}),
            ("Sum", "d d r", "y", {}),
        ],
        {"sizes": [1, 2, 4, 9]},
    ),
)


def models() -> Iterator[ModelProto]:
    """The valid models."""
    for nodes, constants in BODIES:
        made = [
            helper.make_node(kind, inputs.split(" "), outputs.split(" "), name=f"{kind}_{i}", **attributes)
            for i, (kind, inputs, outputs, attributes) in enumerate(nodes)
        ]
        made.append(helper.make_node("Flatten", ["y"], ["logits"], name="end", axis=0))
        graph = helper.make_graph(
            made,
            "small",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, DIMS)],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(_constant(value), name) for name, value in constants.items()],
        )
        yield helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _constant(value: Any) -> np.ndarray:
    """A tuple is the shape of random weights; any other entry is the value itself."""
    if isinstance(value, tuple):
        return np.abs(np.random.default_rng(1).normal(size=value)).astype(np.float32)
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def damage(model: ModelProto, generator: np.random.Generator) -> bytes:
    """The bytes of a model after one to three random changes of its meaning, of its fields, or of its bytes."""
    changed = ModelProto()
    changed.CopyFrom(model)
    kind = generator.random()
    if kind > 0.85:
        return _change_bytes(changed.SerializeToString(), generator)
    for _ in range(generator.integers(1, 4)):
        (_change_meaning if kind < 0.6 else _change_field)(changed, generator)
    return changed.SerializeToString()


def _change_meaning(model: ModelProto, generator: np.random.Generator) -> None:
    """Change an operator, an edge, an attribute, a constant or the opset, so that the file stays well formed."""
    graph = model.graph
    node = graph.node[generator.integers(len(graph.node))]
    kind = generator.integers(7)
    if kind == 0:
        node.op_type = OPERATORS[generator.integers(len(OPERATORS))]
    elif kind == 1 and node.input:
        names = [name for other in graph.node for name in other.input]
        node.input[generator.integers(len(node.input))] = names[generator.integers(len(names))]
    elif kind == 2 and node.attribute:
        _change_value_of(node.attribute[generator.integers(len(node.attribute))], generator)
    elif kind == 3 and graph.initializer:
        _change_constant(graph.initializer[generator.integers(len(graph.initializer))], generator)
    elif kind == 4:
        model.opset_import[0].version = int(generator.integers(9, 24))
    elif kind == 5:
        name, value = ATTRIBUTES[generator.integers(len(ATTRIBUTES))]
        node.attribute.append(helper.make_attribute(name, value))
    else:
        dims = graph.input[0].type.tensor_type.shape.dim
        dims[generator.integers(len(dims))].dim_value = int(generator.integers(0, 9))


def _change_value_of(attribute: Any, generator: np.random.Generator) -> None:
    """Another number in an attribute."""
    small = int(generator.integers(-3, 6))
    number = NUMBERS[generator.integers(len(NUMBERS))] if generator.random() < 0.3 else small
    if attribute.ints:
        attribute.ints[generator.integers(len(attribute.ints))] = number
    else:
        attribute.i = number
        attribute.f = FLOATS[generator.integers(len(FLOATS))]


def _change_constant(tensor: TensorProto, generator: np.random.Generator) -> None:
    """Another number, or another shape, in a constant."""
    array = numpy_helper.to_array(tensor).copy()
    kind = generator.integers(3)
    if kind == 0:
        array = array.reshape([(-1,), (1, -1), (-1, 1), (1, 1, -1)][generator.integers(4)])
    elif kind == 1 or not array.size:
        array = np.concatenate([array.ravel(), array.ravel()[:1]])
    elif array.dtype.kind == "f":
        array.flat[generator.integers(array.size)] = FLOATS[generator.integers(len(FLOATS))]
    else:
        array.flat[generator.integers(array.size)] = NUMBERS[generator.integers(len(NUMBERS))]
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _change_bytes(content: bytes, generator: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(generator.integers(1, 5)):
        place = int(generator.integers(len(changed)))
        kind = generator.integers(5)
        if kind == 0:
            changed[place] = int(generator.integers(256))
        elif kind == 1:
            changed[place] ^= 1 << int(generator.integers(8))
        elif kind == 2:
            del changed[place : place + int(generator.integers(1, 20))]
        elif kind == 3:
            changed[place:place] = generator.bytes(int(generator.integers(1, 12)))
        else:
            changed[place:place] = changed[place : place + int(generator.integers(1, 60))]
        if not changed:
            return bytes(generator.bytes(3))
    return bytes(changed)


def _change_field(message: Any, generator: np.random.Generator) -> None:
    """Walk down to a random field and change it."""
    while True:
        fields = [field for field, _ in message.ListFields()]
        if generator.random() < 0.1 or not fields:
            fields = list(message.DESCRIPTOR.fields)
        field = fields[generator.integers(len(fields))]
        value = getattr(message, field.name)
        is_list = hasattr(value, "extend")
        if field.message_type is None:
            _change_value(message, field, generator)
            return
        if is_list and (not len(value) or generator.random() < 0.15):
            _change_list(value, generator)
            return
        message = value[generator.integers(len(value))] if is_list else value


def _change_list(values: Any, generator: np.random.Generator) -> None:
    """Delete, repeat or swap messages."""
    if not len(values):
        values.add()
        return
    place = int(generator.integers(len(values)))
    kind = generator.integers(3)
    if kind == 0:
        del values[place]
    elif kind == 1:
        values.add().CopyFrom(values[place])
    else:
        other, copy = values[int(generator.integers(len(values)))], type(values[place])()
        copy.CopyFrom(other)
        other.CopyFrom(values[place])
        values[place].CopyFrom(copy)


def _change_value(message: Any, field: Any, generator: np.random.Generator) -> None:
    """Set, append or delete a plain value of any type; a value that the field cannot hold changes nothing."""
    value = getattr(message, field.name)
    pool = (
        NUMBERS + tuple(int(n) for n in generator.integers(-20, 20, 4)) if field.cpp_type in (1, 2, 3, 4, 8) else FLOATS
    )
    new: Any = pool[generator.integers(len(pool))]
    if field.cpp_type == 9:
        text = TEXTS[generator.integers(len(TEXTS))]
        is_bytes = field.type == 12
        new = text.encode("utf-8", "replace") if is_bytes else text.encode("utf-8", "replace").decode()
        if is_bytes and generator.random() < 0.5:
            new = generator.bytes(int(generator.integers(0, 200)))
    try:
        if not hasattr(value, "extend"):
            setattr(message, field.name, new)
        elif len(value) and generator.random() < 0.3:
            del value[int(generator.integers(len(value)))]
        elif len(value) and generator.random() < 0.7:
            value[int(generator.integers(len(value)))] = new
        else:
            value.append(new)
    except (ValueError, TypeError, OverflowError):
        pass
