"""Which ONNX operators are supported, and why another one is not: the words of the error messages, nothing else."""

SUPPORTED = (
    "Gemm, MatMul, Add, Sub, Mul, Div (with constants), Conv, BatchNormalization, AveragePool, GlobalAveragePool, "
    "ReduceMean, Relu, Flatten, Reshape, Squeeze, Unsqueeze, Transpose, Pad, Constant, Identity, Cast, Dropout, "
    "a final Softmax or LogSoftmax"
)

# fmt: off
NOT_PIECEWISE_LINEAR = frozenset({
    "Sigmoid", "Tanh", "Elu", "Selu", "Celu", "Gelu", "Softplus", "Softsign", "Swish", "HardSwish", "Mish", "Exp",
    "Log", "Erf", "Sqrt", "Pow", "Reciprocal", "Sin", "Cos", "Softmax", "LogSoftmax", "LayerNormalization", "LRN",
    "InstanceNormalization", "GroupNormalization", "LpNormalization", "RMSNormalization", "Attention",
    "LSTM", "GRU", "RNN",
})

# Piecewise linear, and so possible in principle.
LATER = frozenset({
    "MaxPool", "GlobalMaxPool", "LeakyRelu", "PRelu", "Clip", "HardSigmoid", "Abs", "Max", "Min", "Sum", "Neg",
    "ReduceSum", "ReduceMax", "ConvTranspose", "Concat", "Slice", "Split", "Gather", "Resize", "Expand", "Tile",
})
# fmt: on


def why_refused(kind: str) -> str:
    """Rest of the sentence "node 'x' is <kind>, ...": the reason, what is supported, and what to do.

    >>> why_refused("Tanh").split(".")[0]
    'which is not piecewise linear'
    """
    if kind in NOT_PIECEWISE_LINEAR:
        reason = "which is not piecewise linear"
    elif kind in LATER:
        reason = "which is not supported yet"
    else:
        reason = "which is not supported"
    return f"{reason}. Supported: {SUPPORTED}. Replace it, or verify the part before it."
