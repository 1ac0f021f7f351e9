"""Makes small ONNX models, and runs them by onnxruntime alone."""

from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPTIONS = onnxruntime.SessionOptions()
OPTIONS.intra_op_num_threads = 1
OPTIONS.log_severity_level = 4
NUMBERS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


def make_proto(nodes, weights, dims, *, opset=17, classes=None, elem=TensorProto.FLOAT):
    """Model with the input 'image' of these dimensions; its output is that of the last node."""
    last = nodes[-1].output[0]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "small",
            [helper.make_tensor_value_info("image", elem, dims)],
            [helper.make_tensor_value_info(last, elem, classes)],
            [
                w if isinstance(w, TensorProto) else numpy_helper.from_array(np.asarray(w), name)
                for name, w in weights.items()
            ],
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8 if opset <= 18 else 10,
    )


def run_file(path: Path, inputs: np.ndarray) -> np.ndarray:
    """Outputs (B, n) of a model file for inputs (B, *dims), one image at a time, by onnxruntime alone."""
    session = onnxruntime.InferenceSession(str(path), OPTIONS, providers=["CPUExecutionProvider"])
    first = session.get_inputs()[0]
    dtype = NUMBERS[first.type]
    return np.stack([session.run(None, {first.name: one[None].astype(dtype)})[0].ravel() for one in inputs]).astype(
        float
    )
