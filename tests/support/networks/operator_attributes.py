"""Random attributes of ONNX operators with windows, and shapes that fit them."""

from hypothesis import assume
from hypothesis import strategies as st

from support.networks.operator_models import floats


@st.composite
def pools(draw, rank):
    """Spatial sizes, and attributes of a MaxPool that fit them."""
    size = [draw(st.integers(2, 8)) for _ in range(rank)]
    kernel = [draw(st.integers(1, 4)) for _ in range(rank)]
    attributes = {"kernel_shape": kernel, "strides": [draw(st.integers(1, 4)) for _ in range(rank)]}
    if draw(st.booleans()):
        attributes["dilations"] = [draw(st.integers(1, 3)) for _ in range(rank)]
    auto = draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, attributes.get("dilations", [1] * rank), strict=True)]
    if auto == "NOTSET":
        attributes["pads"] = [draw(st.integers(0, k - 1)) for k in kernel * 2]
        attributes["ceil_mode"] = draw(st.integers(0, 1))
        room = zip(size, attributes["pads"][:rank], attributes["pads"][rank:], reach, strict=True)
        assume(all(s + b + a >= r for s, b, a, r in room))
    else:
        attributes["auto_pad"] = auto
        if auto != "VALID":
            attributes.pop("dilations", None)  # refused
            reach = kernel
        assume(auto != "VALID" or all(s >= r for s, r in zip(size, reach, strict=True)))
        # onnxruntime fails if windows leave gaps.
        assume(auto == "VALID" or all(r >= s for s, r in zip(attributes["strides"], reach, strict=True)))
    return size, attributes


@st.composite
def transposed(draw, rank):
    """A shape (C, …), attributes of a ConvTranspose that fit it, and its weights."""
    groups = draw(st.integers(1, 2))
    depth, outputs = groups * draw(st.integers(1, 2)), draw(st.integers(1, 2))
    size = [draw(st.integers(1, 4)) for _ in range(rank)]
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    strides = [draw(st.integers(1, 3)) for _ in range(rank)]
    dilations = [draw(st.integers(1, 2)) for _ in range(rank)]
    attributes = {"strides": strides, "dilations": dilations, "group": groups}
    extra = [draw(st.integers(0, s - 1)) for s in strides]
    if draw(st.booleans()):
        attributes["output_padding"] = extra
    else:
        extra = [0] * rank
    full = [
        s * (n - 1) + e + d * (k - 1) + 1 for s, n, e, d, k in zip(strides, size, extra, dilations, kernel, strict=True)
    ]
    mode = draw(st.sampled_from(["pads", "SAME_UPPER", "SAME_LOWER", "VALID", "shape"]))
    if mode == "pads":
        attributes["pads"] = [draw(st.integers(0, 2)) for _ in range(2 * rank)]
        cut = zip(full, attributes["pads"][:rank], attributes["pads"][rank:], strict=True)
        assume(all(f > b + a for f, b, a in cut))
    elif mode == "shape":
        attributes["output_shape"] = [draw(st.integers(max(1, f - 3), f)) for f in full]
        attributes["auto_pad"] = draw(st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER"]))
    else:
        attributes["auto_pad"] = mode
        assume(mode == "VALID" or all(f >= s * n for f, s, n in zip(full, strides, size, strict=True)))  # else refused
    weights = {"w": floats(depth, outputs, *kernel, seed=3), "b": floats(outputs * groups, seed=4)}
    return [depth, *size], attributes, weights
