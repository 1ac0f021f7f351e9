"""Reads an ONNX model into memory: reads and hashes every byte once, and checks every size before using it.

Tensors stored outside the file are embedded, and must lie in the model's own folder. So the graph and the replay see
the same self-contained bytes.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..lazily import onnx

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

# A file of this size holds 2**27 float64 weights; protobuf's own limit is twice that.
MAX_BYTES = 2**30
MAX_ELEMENTS = 2**27


class DataType(IntEnum):
    """Types of tensors by their number in a file (`TensorProto.DataType`)."""

    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    BFLOAT16 = 16


FLOAT_TYPES = (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.BFLOAT16)
INTEGER_TYPES = tuple(kind for kind in DataType if kind not in FLOAT_TYPES)
OLDEST_OPSET = 9

# Functions that keep the order of the logits.
FINAL_ACTIVATIONS = ("Softmax", "LogSoftmax", "Sigmoid")

# Operators that compute nothing: a Softmax before them still ends the network.
SHAPE_ONLY = ("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Cast", "Dropout")

# A dimension of a model's input: a number, or None if the file leaves it open.
Dimension: TypeAlias = int | None


@dataclass(frozen=True, eq=False)
class OnnxFile:
    """A parsed model: the nodes that its output needs, with all tensors inside; the hash of the original bytes; opset.

    `is_chosen`: whether the output was chosen among several.
    """

    path: Path
    proto: "ModelProto"
    sha256: str
    opset: int
    output: str
    is_chosen: bool

    @property
    def tensors(self) -> list["TensorProto"]:
        """All tensors of the graph: initializers, and values of Constant nodes."""
        return _tensors(self.proto)


def read_onnx(path: str | Path, output: str | None = None) -> OnnxFile:
    """Read, check and hash an ONNX file, then its external data by name; raises ModelError with a one-line message.

    output: the name of the output with the logits; required if there are several.
    """
    path = Path(path)
    return parse_onnx(read_bytes(path), path, output)


def read_bytes(path: Path) -> bytes:
    """The bytes of a model file of bounded size; raises ModelError."""
    return _read_file(path, str(path))


def is_torch_file(content: bytes) -> bool:
    """Whether bytes begin like a file of torch.save: an archive with a pickle, or a plain pickle in older versions.

    >>> is_torch_file(b"PK\\x03\\x04" + b" net/data.pkl"), is_torch_file(b"PK\\x03\\x04 weights.npy")
    (True, False)
    """
    return (content.startswith(b"PK\x03\x04") and b"/data.pkl" in content[:512]) or content.startswith(b"\x80\x02")


def parse_onnx(content: bytes, path: Path, output: str | None = None) -> OnnxFile:
    """Check and hash the bytes of the ONNX model at a path, then its external data by name; raises ModelError."""
    if is_torch_file(content):
        raise ModelError(
            f"{path.name}: looks like a file written by torch.save, not an ONNX model; export the module with "
            "torch.onnx.export, or give the module itself to steadygaze.verify in Python"
        )
    digest = hashlib.sha256(content)
    try:
        proto = onnx.load_model_from_string(content)
    except Exception as error:
        raise ModelError(f"{path.name}: not an ONNX model ({one_line(error)}); export the model to ONNX") from None
    if not proto.graph.node and not proto.graph.output:
        raise ModelError(f"{path.name}: not an ONNX model (it holds no graph); export the model to ONNX")
    opset = _opset(proto, path.name)
    tensors = _tensors(proto)
    for name, data in _embed_external(tensors, path).items():
        digest.update(name.encode())
        digest.update(data)
    for tensor in tensors:
        check_tensor(tensor, path.name)
    if proto.graph.sparse_initializer:
        raise ModelError(f"{path.name}: sparse initializers are not supported; export with dense weights")
    _check_structure(proto, path.name)
    chosen = _choose_output(proto, output, path.name)
    is_chosen = len(proto.graph.output) > 1
    keep_needed(proto, chosen)
    for node in proto.graph.node:
        if "" in node.input:
            _check_missing(node, opset, path.name)
    return OnnxFile(path, proto, digest.hexdigest(), opset, chosen, is_chosen)


def keep_needed(proto: "ModelProto", output: str) -> None:
    """Delete outputs, nodes, weights and functions that this output does not need: onnxruntime would load them."""
    graph, wanted = proto.graph, {output}
    for place in reversed(range(len(graph.node))):
        if wanted.intersection(graph.node[place].output):
            wanted.update(graph.node[place].input)
        else:
            del graph.node[place]
    weights = {tensor.name for tensor in graph.initializer}
    _delete(graph.initializer, lambda tensor: tensor.name not in wanted)
    _delete(graph.input, lambda value: value.name in weights and value.name not in wanted)
    _delete(graph.output, lambda value: value.name != output)
    del graph.value_info[:]
    del proto.functions[:]


def _delete(entries: Any, is_needless: Callable[[Any], bool]) -> None:
    for place in reversed(range(len(entries))):
        if is_needless(entries[place]):
            del entries[place]


def _choose_output(proto: "ModelProto", wanted: str | None, name: str) -> str:
    """The name of the output to read."""
    outputs = [value.name for value in proto.graph.output]
    names = one_line(", ".join(f"'{output}'" for output in outputs) or "none")
    if wanted is not None:
        if wanted not in outputs:
            raise ModelError(f"{name}: has no output '{wanted}'; its outputs are: {names}")
        return wanted
    if len(outputs) != 1:
        advice = "; choose one with --output NAME" if outputs else ""
        raise ModelError(f"{name}: has {len(outputs)} outputs ({names}); expected one, the logits{advice}")
    return outputs[0]


def one_line(error: object, limit: int = 240) -> str:
    """The text of an error on one line, cut to a readable length, without control characters.

    >>> one_line("first\\n  second")
    'first second'
    """
    text = "".join(one if one.isprintable() else "�" for one in " ".join(str(error).split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def input_dims(file: OnnxFile) -> tuple[str, list[Dimension]]:
    """Name and dimensions of the one input that is not an initializer; None for a dimension left open."""
    weights = {tensor.name for tensor in file.proto.graph.initializer}
    inputs = [value for value in file.proto.graph.input if value.name not in weights]
    if len(inputs) != 1:
        names = ", ".join(f"'{value.name}'" for value in inputs) or "none"
        remedy = "" if inputs else ". The output must be computed from it, by operations that the exporter knows"
        raise ModelError(f"{file.path.name}: has {len(inputs)} inputs ({names}); expected one, the image{remedy}")
    tensor = inputs[0].type.tensor_type
    if not inputs[0].type.HasField("tensor_type") or tensor.elem_type not in FLOAT_TYPES:
        raise ModelError(
            f"{file.path.name}: input '{inputs[0].name}' is not of a float type; export the model with a float input, "
            "and pass casts and scaling as the options mean, std and scale"
        )
    if not tensor.HasField("shape"):
        raise ModelError(f"{file.path.name}: input '{inputs[0].name}' has no shape; export the model with one")
    dims: list[Dimension] = []
    for position, dim in enumerate(tensor.shape.dim):
        is_open = not dim.HasField("dim_value") or (position == 0 and dim.dim_value == -1)
        if not is_open and not 0 < dim.dim_value <= MAX_ELEMENTS:
            raise ModelError(
                f"{file.path.name}: input '{inputs[0].name}' has the dimension {dim.dim_value}; the file is damaged"
            )
        dims.append(None if is_open else dim.dim_value)
    return inputs[0].name, dims


def final_activation(file: OnnxFile) -> "NodeProto | None":
    """The Softmax, LogSoftmax or Sigmoid that ends the network, if there is one."""
    makers = {output: node for node in file.proto.graph.node for output in node.output if output}
    node = makers.get(file.output)
    while node is not None and node.op_type in SHAPE_ONLY and node.input:
        node = makers.get(node.input[0])
    return node if node is not None and node.op_type in FINAL_ACTIVATIONS else None


def tensor_array(
    tensor: "TensorProto", name: str, *, is_bound: bool = False
) -> NDArray[np.float64] | NDArray[np.int64]:
    """The numbers of a tensor, exact as float64 or int64; raises ModelError, with the file's name, if not finite.

    A bound may be infinite, but not NaN.
    """
    check_tensor(tensor, name)
    try:
        values = onnx.numpy_helper.to_array(tensor)
    except Exception as error:
        raise ModelError(f"{name}: tensor '{tensor.name}' cannot be read: {one_line(error)}") from None
    if tensor.data_type in INTEGER_TYPES:
        return np.asarray(values, dtype=np.int64)
    with np.errstate(invalid="ignore"):  # the next line refuses NaN
        lifted = np.asarray(values, dtype=np.float64)
    if not (~np.isnan(lifted) if is_bound else np.isfinite(lifted)).all():
        raise ModelError(f"{name}: tensor '{tensor.name}' holds NaN or infinity; train or export the model again")
    return lifted


def float_types(proto: "ModelProto") -> set[int]:
    """The float types of the weights, of the input and of Cast targets."""
    found = {tensor.data_type for tensor in _tensors(proto)}
    found.update(value.type.tensor_type.elem_type for value in proto.graph.input)
    found.update(a.i for node in proto.graph.node if node.op_type == "Cast" for a in node.attribute if a.name == "to")
    return found.intersection(FLOAT_TYPES)


def check_tensor(tensor: "TensorProto", name: str) -> None:
    """Check that the type, dimensions and data of a tensor agree; raises ModelError before any allocation."""
    where = f"{name}: tensor '{tensor.name}'"
    dims = list(tensor.dims)
    if tensor.data_type not in FLOAT_TYPES + INTEGER_TYPES:
        kind = _type_name(tensor.data_type)
        raise ModelError(f"{where} has type {kind}; supported: float16, bfloat16, float, double and integers")
    if any(size < 0 for size in dims):
        raise ModelError(f"{where} has the negative dimension {min(dims)}; the file is damaged")
    count = prod(dims)
    if count > MAX_ELEMENTS:
        raise ModelError(f"{where} claims {count:.3g} elements; at most {MAX_ELEMENTS:.3g} are supported")
    if tensor.HasField("raw_data"):
        item = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        found, expected, unit = len(tensor.raw_data), count * item, "bytes"
    else:
        lists = (getattr(tensor, f"{kind}_data") for kind in ("float", "double", "int32", "int64", "uint64"))
        found, expected, unit = sum(len(numbers) for numbers in lists), count, "numbers"
    if found != expected:
        raise ModelError(f"{where} of shape {dims} needs {expected} {unit}, but holds {found}; the file is damaged")


def _check_structure(proto: "ModelProto", name: str) -> None:
    """Let onnx check names, order and attributes, but allow an output without a shape."""
    shapeless = [value.type.tensor_type for value in proto.graph.output if not value.type.tensor_type.HasField("shape")]
    for tensor_type in shapeless:
        tensor_type.shape.SetInParent()
    try:
        onnx.checker.check_model(proto)
    except Exception as error:
        raise ModelError(f"{name}: not a valid ONNX model; export the model again ({one_line(error)})") from None
    for tensor_type in shapeless:
        tensor_type.ClearField("shape")


def _check_missing(node: "NodeProto", opset: int, name: str) -> None:
    """Refuse a missing input that is not optional: onnx ignores it, but it would crash onnxruntime."""
    if node.domain not in ("", "ai.onnx"):
        return  # `from_onnx` refuses it
    formal = onnx.defs.get_schema(node.op_type, opset, "").inputs
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    for place, value in enumerate(node.input):
        if not value and formal[min(place, len(formal) - 1)].option != optional:
            where = f"{name}: node '{node.name or node.output[0]}' ({node.op_type})"
            raise ModelError(f"{where}: its input {place + 1} is missing; the file is damaged")


def _type_name(data_type: int) -> str:
    try:
        return onnx.TensorProto.DataType.Name(data_type).lower()
    except ValueError:
        return f"number {data_type}"


def _read_file(path: Path, label: str, expected: str = "give the .onnx file inside it") -> bytes:
    """Bytes of a regular file of bounded size."""
    try:
        if path.is_dir():
            raise ModelError(f"{label}: is a directory; {expected}")
        if not path.exists():
            raise ModelError(f"{path}: no such file; check the path of the model")
        if not path.is_file():
            raise ModelError(f"{label}: is not a regular file; give an .onnx file")
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ModelError(f"{label}: has {size / 2**30:.1f} GiB; at most {MAX_BYTES / 2**30:.0f} GiB are supported")
        if size == 0:
            raise ModelError(f"{label}: is empty; export the model again")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ModelError(f"{label}: cannot be read ({one_line(error)})") from None


def _opset(proto: "ModelProto", label: str) -> int:
    versions = [entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")]
    if not versions:
        raise ModelError(f"{label}: has no ONNX opset; export the model again")
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= versions[0] <= newest:
        raise ModelError(
            f"{label}: has opset {versions[0]}; supported: {OLDEST_OPSET} to {newest}. Export with opset_version=17"
        )
    return versions[0]


def _tensors(proto: "ModelProto") -> list["TensorProto"]:
    """All weights of the graph: initializers, and values of Constant nodes."""
    attributes = (attribute for node in proto.graph.node for attribute in node.attribute)
    return [*proto.graph.initializer, *(attribute.t for attribute in attributes if attribute.HasField("t"))]


def _embed_external(tensors: list["TensorProto"], path: Path) -> dict[str, bytes]:
    """Embed the data of external tensors; return the files read, sorted by name."""
    files: dict[str, bytes] = {}
    total = 0
    for tensor in tensors:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        where = f"{path.name}: tensor '{tensor.name}'"
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        if location not in files:
            label = f"{path.name}: external data '{location}'"
            files[location] = _read_file(_inside(path, location, where), label, "export the model again")
        size = len(files[location])
        try:
            offset = int(entries.get("offset", 0))
            length = int(entries.get("length", size - offset))
        except ValueError:
            raise ModelError(f"{where} has a damaged external offset or length; export the model again") from None
        if offset < 0 or length < 0 or offset + length > size:
            raise ModelError(
                f"{where} lies at bytes {offset} to {offset + length} of '{location}', which has {size}; "
                "the external data file is damaged or belongs to another model"
            )
        total += length
        if total > MAX_BYTES:  # several tensors may use the same bytes
            raise ModelError(f"{path.name}: external data exceed {MAX_BYTES / 2**30:.0f} GiB; verify a smaller network")
        tensor.raw_data = files[location][offset : offset + length]
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.DEFAULT
    return dict(sorted(files.items()))


def _inside(path: Path, location: str, where: str) -> Path:
    """Path of an external data file, which must lie in the model's own folder after following links."""
    if not location:
        raise ModelError(f"{where} names no external data file; export the model again")
    folder = path.parent.resolve()
    absolute = PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor
    try:
        target = (folder / location).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"{where}: external data '{location}' cannot be found ({one_line(error)})") from None
    if absolute or not target.is_relative_to(folder):
        raise ModelError(
            f"{where} keeps its data in '{one_line(location)}', outside the model's folder; "
            "move the data file next to the model and export again"
        )
    if not target.exists():
        raise ModelError(f"{where} keeps its data in '{one_line(location)}', which is missing from the model's folder")
    return target
