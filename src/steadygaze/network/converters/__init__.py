"""Converters from one ONNX operator to operators of a graph in float64: `Linear`, `Relu`, `Sum`, `Concat`, `Winner`.

A converter in `CHAINS` returns operators to apply one after another to the one input that depends on the image. A
converter in `BRANCHES` adds nodes to a draft of the graph, and returns the number of each output.
"""

from collections.abc import Callable

from ..operators import Operator
from . import affine, bends, branches, maxima, moves, resizing, sliding
from .call import Call, Draft

CHAINS: dict[str, Callable[[Call], list[Operator]]] = {
    "Add": affine.add,
    "AveragePool": sliding.average_pool,
    "BatchNormalization": affine.batch_normalization,
    "Cast": moves.cast,
    "Clip": bends.clip,
    "Conv": sliding.conv,
    "ConvTranspose": sliding.conv_transpose,
    "DepthToSpace": moves.depth_to_space,
    "Div": affine.divide,
    "Dropout": moves.dropout,
    "Expand": moves.expand,
    "Flatten": moves.flatten,
    "Gather": moves.gather,
    "Gemm": affine.gemm,
    "GlobalAveragePool": affine.global_average_pool,
    "GlobalMaxPool": sliding.global_max_pool,
    "HardSigmoid": bends.hard_sigmoid,
    "Identity": lambda call: [],
    "MatMul": affine.matmul,
    "MaxPool": sliding.max_pool,
    "Mul": affine.multiply,
    "Neg": affine.negate,
    "Pad": moves.pad,
    "ReduceMax": maxima.reduce_max,
    "ReduceMean": affine.reduce_mean,
    "ReduceMin": maxima.reduce_min,
    "ReduceSum": affine.reduce_sum,
    "Relu": bends.relu,
    "Reshape": moves.reshape,
    "Resize": resizing.resize,
    "Slice": moves.slice_value,
    "SpaceToDepth": moves.space_to_depth,
    "Squeeze": moves.squeeze,
    "Sub": affine.subtract,
    "ThresholdedRelu": bends.thresholded_relu,
    "Tile": moves.tile,
    "Transpose": moves.transpose,
    "Unsqueeze": moves.unsqueeze,
    "Upsample": resizing.resize,
}

BRANCHES: dict[str, Callable[[Call, Draft], list[int]]] = {
    "Abs": bends.absolute,
    "Add": branches.add,
    "Concat": branches.concat,
    "LeakyRelu": bends.leaky_relu,
    "Max": maxima.maximum,
    "Mean": branches.mean,
    "Min": maxima.minimum,
    "PRelu": bends.prelu,
    "Shrink": bends.shrink,
    "Split": branches.split_value,
    "Sub": branches.subtract,
    "Sum": branches.total,
}
"""Add and Sub appear in both: here for two values that depend on the image."""
