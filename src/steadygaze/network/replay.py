"""Runs the model file itself: canonical pixels in, onnxruntime's logits out, in the file's own float type.

The second opinion on everything that the graph says: it shares the bytes of the file with it, and the decision which
layout the input has, but no arithmetic. Preprocessing and layout are therefore written again here.
"""

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto

from steadygaze.errors import ModelError
from steadygaze.network.file_rounding import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FloatType
from steadygaze.network.layout import Layout, Order, Preprocessing
from steadygaze.network.onnx_file import OnnxFile, final_softmax, float_types, input_dims, one_line

# Images that go through a session at once.
CHUNK = 128

KINDS: dict[int, FloatType] = {
    TensorProto.BFLOAT16: BFLOAT16,
    TensorProto.FLOAT16: FLOAT16,
    TensorProto.FLOAT: FLOAT32,
    TensorProto.DOUBLE: FLOAT64,
}

SILENT = 4  # onnxruntime's log level for fatal errors only; what goes wrong is raised as well


class Replay:
    """A single-threaded onnxruntime session that gives logits, also where the file ends in a softmax.

    float_type: the coarsest float type that the file computes in.
    """

    def __init__(self, file: OnnxFile, layout: Layout, preprocessing: Preprocessing) -> None:
        self._name = file.path.name
        self._layout = layout
        self.preprocessing = preprocessing
        self._input, dims = input_dims(file)
        self._session = _session(_ending_in_logits(file.proto), self._name)
        kinds = [KINDS[kind] for kind in float_types(file.proto)]
        self.float_type = max(kinds, key=lambda kind: kind.unit, default=FLOAT32)
        self._dtype = _numpy_type(file, self._input)
        self._takes_batches = dims[0] is None and self._is_batched()

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of one rounding, but at least that of float32: no tolerance need be finer."""
        return max(self.float_type.unit, FLOAT32.unit)

    def logits(self, images: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logits (B, K) of images (B, C, H, W) with pixels in [0,1]; each row is what the file gives that image."""
        batch = self._model_input(np.asarray(images, dtype=np.float64))
        step = CHUNK if self._takes_batches else 1
        rows = [
            self._run(batch[i : i + step]).reshape(len(batch[i : i + step]), -1) for i in range(0, len(batch), step)
        ]
        if not rows:
            return np.zeros((0, self._run(self._model_input(np.zeros((1, *self._layout.image_shape)))).size))
        return np.concatenate(rows).astype(np.float64)

    def _model_input(self, images: NDArray[np.float64]) -> NDArray:
        """(x·scale − mean)/std in float64, rounded once to the file's type, in the file's order and shape."""
        if images.shape[1:] != self._layout.image_shape:
            raise ValueError(f"images of shape {images.shape}, expected (B, *{self._layout.image_shape})")
        prepared = images * self.preprocessing.scale
        for channel, (mean, std) in enumerate(zip(self.preprocessing.mean, self.preprocessing.std, strict=True)):
            prepared[:, channel] = (prepared[:, channel] - mean) / std
        if self._layout.order is Order.CHANNELS_LAST:
            prepared = np.moveaxis(prepared, 1, -1)
        shaped = prepared.reshape(len(images), *self._layout.model_shape[1:])
        return np.ascontiguousarray(shaped, dtype=self._dtype)

    def _run(self, batch: NDArray) -> NDArray:
        try:
            return np.asarray(self._session.run(None, {self._input: batch})[0])
        except Exception as error:
            raise ModelError(
                f"{self._name}: onnxruntime cannot run it ({one_line(error)}); export the model again"
            ) from None

    def _is_batched(self) -> bool:
        """Whether two images at once give what they give alone; a file with an open batch may still assume one."""
        shape = (2, *self._layout.image_shape)
        batch = self._model_input(np.random.default_rng(0).random(shape))
        alone = [self._run(batch[i : i + 1]) for i in range(2)]
        try:
            together = self._run(batch)
        except ModelError:
            return False
        if together.size != 2 * alone[0].size or together.shape[:1] != (2,):
            return False
        return np.allclose(together.reshape(2, -1), np.stack([row.ravel() for row in alone]), rtol=1e-3, atol=1e-5)


def _ending_in_logits(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of a model in which what follows the final softmax reads the logits instead."""
    softmax = final_softmax(proto)
    if softmax is None:
        return proto
    position = next(i for i, node in enumerate(proto.graph.node) if softmax.output[0] in node.output)
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    # An Identity in its place keeps every name, and so every reader of it, as it is.
    changed.graph.node[position].CopyFrom(
        onnx.helper.make_node("Identity", [softmax.input[0]], [softmax.output[0]], name=softmax.name)
    )
    return changed


def _session(proto: onnx.ModelProto, name: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = SILENT
    # Node by node as the file says, so that a rewriting of the graph cannot hide a difference.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelError(f"{name}: onnxruntime cannot load it ({one_line(error)}); export the model again") from None


def _numpy_type(file: OnnxFile, name: str) -> np.dtype:
    kind = next(value.type.tensor_type.elem_type for value in file.proto.graph.input if value.name == name)
    if kind == TensorProto.BFLOAT16:
        raise ModelError(f"{file.path.name}: onnxruntime cannot feed a bfloat16 input; export the model in float32")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))
