"""Files of dense networks with ReLUs, for images with one row of pixels."""

import numpy as np
import onnx


def write_dense(path, layers):
    """Write layers of (weights (b, a), bias (b,)) with ReLUs between them; the path as text."""
    nodes, tensors = [onnx.helper.make_node("Flatten", ["x"], ["h0"])], []
    for number, (weights, bias) in enumerate(layers):
        for name, array in ((f"w{number}", weights), (f"b{number}", bias)):
            tensors.append(onnx.numpy_helper.from_array(np.asarray(array, dtype=np.float32), name))
        is_last = number == len(layers) - 1
        inputs, output = [f"h{number}", f"w{number}", f"b{number}"], "y" if is_last else f"z{number}"
        nodes.append(onnx.helper.make_node("Gemm", inputs, [output], transB=1))
        if not is_last:
            nodes.append(onnx.helper.make_node("Relu", [output], [f"h{number + 1}"]))
    shapes = ("x", [1, 1, 1, np.shape(layers[0][0])[1]]), ("y", [1, len(layers[-1][1])])
    ends = [onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
    return str(path)
