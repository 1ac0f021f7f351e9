"""Every operator: input gradients of the logits under the pattern at an image, against torch's autograd in float64.

Each operator `y = op(image)` is followed by the logits relu(y + b) @ w. The same function is written in torch by hand,
so a wrong derivative is found even if all values are right.
"""

from collections.abc import Callable
from math import ceil

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

import steadygaze  # noqa: E402
from steadygaze.attention.gradients import gradient_maps, maps_under, pattern_at  # noqa: E402
from steadygaze.network.graph import lower  # noqa: E402
from steadygaze.network.replay import FLOAT64  # noqa: E402
from steadygaze.network.torch_module import is_near_kink  # noqa: E402
from support.networks.onnx_files import make_proto  # noqa: E402
from support.networks.operator_attributes import pools, transposed  # noqa: E402
from support.networks.operator_models import floats, graph_of, node  # noqa: E402

FEW = settings(max_examples=25, deadline=None)
DIMS = [1, 3, 5, 4]
SLOPES = st.floats(-3.0, 3.0, width=32, allow_subnormal=False)
BOUNDS = st.floats(-2.0, 2.0, width=32, allow_subnormal=False)
CLASSES = 3

Function = Callable[["torch.Tensor"], "torch.Tensor"]


def tensor(values) -> "torch.Tensor":
    """In float64, exactly."""
    return torch.from_numpy(np.array(values, dtype=np.float64))


def check(nodes, function: Function, weights=None, dims=DIMS, *, opset=17) -> None:
    """Compare the gradients of steps and of matrices with autograd's, at two images without a tie."""
    images = np.random.default_rng(7).normal(size=(6, *dims[1:]))
    size = function(tensor(images[:1])).numel()
    own = {"tail_b": floats(size, seed=11), "tail_w": floats(size, CLASSES, seed=12)}
    tail = [
        node("Reshape", "y tail_s", "tail_0"),
        node("Add", "tail_0 tail_b", "tail_1"),
        node("Relu", "tail_1", "tail_2"),
        node("MatMul", "tail_2 tail_w", "logits"),
    ]
    constants = {**(weights or {}), **own, "tail_s": np.array([1, size])}
    graph = graph_of(make_proto([*nodes, *tail], constants, dims, opset=opset), image_shape=dims[1:])
    chain, bias, matrix = lower(graph), tensor(own["tail_b"]), tensor(own["tail_w"])
    clear = [image for image in images if not is_near_kink(graph, image.ravel(), FLOAT64)]
    assert len(clear) > 1
    for image in clear[:2]:
        pixels = image.reshape(1, -1)
        given_image = tensor(image)[None].requires_grad_()
        logits = (functional.relu(function(given_image).reshape(1, -1) + bias) @ matrix)[0]
        rows = [torch.autograd.grad(logit, given_image, retain_graph=True)[0].numpy().ravel() for logit in logits]
        bits = pattern_at(graph, pixels)
        scale = 1.0 + np.abs(rows).max()
        # Scales of a Resize are float32 in onnxruntime, and float64 in torch.
        share = 1e-6 if any(each.op_type == "Resize" for each in nodes) else 1e-11
        options = {"rtol": 0.0, "atol": share * scale}
        np.testing.assert_allclose(graph.logits(image[None])[0], logits.detach().numpy(), **options)
        np.testing.assert_allclose(maps_under(graph, bits), rows, **options)
        np.testing.assert_allclose(gradient_maps(chain, bits)[0], rows, **options)


def starts_and_sizes(size, attributes):
    """Of a pooling with explicit or automatic pads: rows before the image, and windows, for every axis."""
    rank = len(size)
    kernel, strides = attributes["kernel_shape"], attributes["strides"]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, attributes.get("dilations", [1] * rank), strict=True)]
    pads, auto = attributes.get("pads", [0] * 2 * rank), attributes.get("auto_pad", "NOTSET")
    found = []
    for axis, (n, r, s) in enumerate(zip(size, reach, strides, strict=True)):
        if auto.startswith("SAME"):
            count = ceil(n / s)
            total = max(0, (count - 1) * s + r - n)
            found.append((total // 2 if auto == "SAME_UPPER" else total - total // 2, count))
        else:
            before, after = pads[axis], pads[axis + rank]
            count = (n + before + after - r) / s + 1
            count = ceil(count) if attributes.get("ceil_mode") else int(count)
            # A window that would start behind the image does not exist.
            found.append((before, count - ((count - 1) * s >= n + before)))
    return found


def largest_of_windows(values, size, attributes):
    """The maximum over windows of the last axes: over all places of a window, of −∞ around the image."""
    rank, infinity = len(size), float("-inf")
    geometry = starts_and_sizes(size, attributes)
    room = [pair for before, _ in reversed(geometry) for pair in (before, 40)]
    padded = functional.pad(values, room, value=infinity)
    places = []
    for offset in np.ndindex(*attributes["kernel_shape"]):
        dilations = attributes.get("dilations", [1] * rank)
        cut = [
            slice(o * d, o * d + (count - 1) * s + 1, s)
            for o, d, s, (_, count) in zip(offset, dilations, attributes["strides"], geometry, strict=True)
        ]
        places.append(padded[(..., *cut)])
    return torch.stack(places).amax(dim=0)


@FEW
@given(pools(2), st.sampled_from([10, 12, 22]))
def test_max_pool(case, opset):
    size, attributes = case
    check([node("MaxPool", "image", **attributes)], lambda x: largest_of_windows(x, size, attributes),
          dims=[1, 2, *size], opset=opset)  # fmt: skip


@FEW
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 2), st.booleans(), st.data())
def test_max_pool_as_torch_has_it(kernel, stride, dilation, is_ceil, data):
    padding = data.draw(st.integers(0, kernel // 2))
    assume(5 + 2 * padding >= dilation * (kernel - 1) + 1)
    attributes = {
        "kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [padding] * 4,
        "dilations": [dilation] * 2, "ceil_mode": int(is_ceil),
    }  # fmt: skip
    options = {"stride": stride, "padding": padding, "dilation": dilation, "ceil_mode": is_ceil}
    check([node("MaxPool", "image", **attributes)], lambda x: functional.max_pool2d(x, kernel, **options),
          dims=[1, 2, 5, 6])  # fmt: skip


def test_global_max_pool():
    check([node("GlobalMaxPool", "image")], lambda x: functional.adaptive_max_pool2d(x, 1))


REDUCTIONS = {"ReduceMax": torch.amax, "ReduceMin": torch.amin, "ReduceSum": torch.sum, "ReduceMean": torch.mean}


@FEW
@given(st.sampled_from(sorted(REDUCTIONS)), st.sets(st.integers(0, 3), min_size=1), st.booleans())
def test_reductions(kind, axes, keepdims):
    function, chosen = REDUCTIONS[kind], sorted(axes)
    check([node(kind, "image a", keepdims=keepdims)], lambda x: function(x, dim=chosen, keepdim=keepdims),
          {"a": np.array(chosen)}, opset=18)  # fmt: skip


BRANCHES = {
    "image": lambda x: x,
    "r": functional.relu,
    "m": lambda x: x.mean(dim=(1, 3), keepdim=True),
    "z": lambda x: x.amax(dim=(1, 2, 3), keepdim=True),
}
BRANCH_NODES = [
    node("Relu", "image", "r"),
    node("ReduceMean", "image", "m", axes=[1, 3]),
    node("ReduceMax", "image", "z", axes=[1, 2, 3]),
]
SEVERAL = {
    "Max": lambda parts: torch.stack(parts).amax(dim=0),
    "Min": lambda parts: torch.stack(parts).amin(dim=0),
    "Sum": lambda parts: torch.stack(parts).sum(dim=0),
    "Mean": lambda parts: torch.stack(parts).mean(dim=0),
    "Add": lambda parts: parts[0] + parts[1],
    "Sub": lambda parts: parts[0] - parts[1],
}


@FEW
@given(st.sampled_from(sorted(SEVERAL)), st.permutations([*BRANCHES, "c"]), st.integers(2, 4))
def test_functions_of_several_branches(kind, names, count):
    """Joins of the image, a ReLU of it, a mean, a maximum and a constant."""
    chosen = names[: 2 if kind in ("Add", "Sub") else count]
    # Where image and relu(image) are both largest, or z is the image's own entry, the tie is by construction.
    assume(kind not in ("Max", "Min") or not {"image", "r"} <= set(chosen))
    assume(kind not in ("Max", "Min") or "z" not in chosen)
    assume(set(chosen) & set(BRANCHES))
    constant = floats(3, 1, 4, seed=5)

    def function(x):
        parts = [tensor(constant) if name == "c" else BRANCHES[name](x) for name in chosen]
        return SEVERAL[kind](torch.broadcast_tensors(*parts))

    check([*BRANCH_NODES, node(kind, chosen)], function, {"c": constant})


@FEW
@given(st.sampled_from([1, 3]), st.booleans())
def test_residual_blocks(kernel, is_projected):
    shape = {"padding": kernel // 2}
    weights = {"w": floats(3, 3, kernel, kernel), "b": floats(3), "v": floats(3, 3, 1, 1, seed=2)}
    w, b, v = (tensor(weights[name]) for name in "wbv")
    nodes = [
        node("Conv", "image w b", "h", auto_pad="SAME_UPPER"),
        node("Relu", "h", "a"),
        node("Conv", "a w b", "g", auto_pad="SAME_UPPER"),
        node("Conv", "image v", "s"),
        node("Add", "g s" if is_projected else "g image", "t"),
        node("Relu", "t"),
    ]

    def function(x):
        inner = functional.conv2d(functional.relu(functional.conv2d(x, w, b, **shape)), w, b, **shape)
        return functional.relu(inner + (functional.conv2d(x, v) if is_projected else x))

    check(nodes, function, weights)


@FEW
@given(st.integers(-3, 3), st.lists(st.sampled_from(["image", "r", "c"]), min_size=2, max_size=4))
def test_concat(axis, parts):
    assume({"image", "r"} & set(parts))
    constant = floats(*DIMS)

    def function(x):
        return torch.cat([tensor(constant) if name == "c" else BRANCHES[name](x) for name in parts], dim=axis)

    check([node("Relu", "image", "r"), node("Concat", parts, axis=axis)], function, {"c": constant})


@FEW
@given(st.integers(1, 3), st.data())
def test_split(axis, data):
    size = DIMS[axis]
    cuts = sorted(data.draw(st.sets(st.integers(1, size - 1), min_size=1)))
    sizes = np.diff([0, *cuts, size])
    names = [f"p{i}" for i in range(len(sizes))]
    order = data.draw(st.permutations(range(len(sizes))))[: data.draw(st.integers(1, len(sizes)))]
    nodes = [node("Split", "image s", names, axis=axis), node("Concat", [names[i] for i in order], axis=axis)]

    def function(x):
        parts = torch.split(x, sizes.tolist(), dim=axis)
        return torch.cat([parts[i] for i in order], dim=axis)

    check(nodes, function, {"s": sizes})


@FEW
@given(st.integers(1, 3), st.integers(-5, 4), st.sampled_from([1, 2, -1, -2]), st.integers(1, 4))
def test_slice(axis, start, step, count):
    places = list(range(DIMS[axis]))[start::step][:count]
    assume(places)
    weights = {"s": np.array([start]), "e": np.array([places[-1] + (1 if step > 0 else -1)]), "a": np.array([axis]),
               "t": np.array([step])}  # fmt: skip
    weights["e"] = np.where(weights["e"] < 0, -(2**31), weights["e"])
    check([node("Slice", "image s e a t")], lambda x: x.index_select(axis, torch.tensor(places)), weights)


@FEW
@given(st.integers(1, 3), st.data())
def test_gather(axis, data):
    index = data.draw(st.lists(st.integers(0, DIMS[axis] - 1), min_size=1, max_size=4))
    check([node("Gather", "image i", axis=axis)], lambda x: x.index_select(axis, torch.tensor(index)),
          {"i": np.array(index)})  # fmt: skip


@FEW
@given(SLOPES)
def test_leaky_relu(alpha):
    check([node("LeakyRelu", "image", alpha=alpha)], lambda x: torch.where(x > 0, x, alpha * x))


@FEW
@given(st.sampled_from([(3, 1, 1), (1,), (3, 5, 4), (4,)]), st.integers(0, 2**31))
def test_prelu(shape, seed):
    slopes = 2 * floats(*shape, seed=seed)
    check([node("PRelu", "image s")], lambda x: torch.where(x > 0, x, tensor(slopes) * x), {"s": slopes})


@FEW
@given(st.none() | BOUNDS, st.none() | BOUNDS)
def test_clip(low, high):
    assume(low is not None or high is not None)
    assume(low is None or high is None or low < high)
    weights = {n: np.float32(v) for n, v in (("lo", low), ("hi", high)) if v is not None}
    nodes = [node("Clip", ["image", "lo" if low is not None else "", "hi" if high is not None else ""])]
    check(nodes, lambda x: torch.clamp(x, low, high), weights)


def test_relu6_and_hard_tanh():
    bounds = {"lo": np.float32(0), "six": np.float32(6), "minus": np.float32(-1), "one": np.float32(1)}
    gain = {"k": np.float32(5)}
    check([node("Mul", "image k", "x"), node("Clip", "x lo six")], lambda x: functional.relu6(5.0 * x),
          {**bounds, **gain})  # fmt: skip
    check([node("Clip", "image minus one")], functional.hardtanh, bounds)


@FEW
@given(st.floats(0.125, 2.0, width=32), st.floats(-1.0, 1.0, width=32, allow_subnormal=False))
def test_hard_sigmoid(alpha, beta):
    check([node("HardSigmoid", "image", alpha=alpha, beta=beta)], lambda x: torch.clamp(alpha * x + beta, 0.0, 1.0))


def test_abs():
    check([node("Abs", "image")], torch.abs)


@FEW
@given(transposed(2), st.booleans())
def test_conv_transpose(case, has_bias):
    shape, attributes, weights = case
    extra = attributes.get("output_padding", [0, 0])
    strides, dilations, auto = attributes["strides"], attributes["dilations"], attributes.get("auto_pad", "NOTSET")

    def function(x):
        bias = tensor(weights["b"]) if has_bias else None
        # torch pads the output by less than the stride; rows that no entry reaches hold the bias.
        whole = functional.conv_transpose2d(
            x, tensor(weights["w"]), bias, strides, 0, extra, attributes["group"], dilations
        )
        cut = []
        for axis, full in enumerate(whole.shape[2:]):
            if "pads" in attributes:
                begin, end = attributes["pads"][axis], attributes["pads"][axis + 2]
            else:
                wanted = attributes.get("output_shape", [strides[i] * shape[1 + i] for i in range(2)])[axis]
                total = 0 if auto == "VALID" else full - wanted
                begin = total // 2 if auto == "SAME_UPPER" else total - total // 2
                end = total - begin
            cut.append(slice(begin, full - end))
        return whole[(..., *cut)]

    check([node("ConvTranspose", "image w b" if has_bias else "image w", **attributes)], function, weights, [1, *shape])


RESIZES = {
    "nearest": ({"coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": "floor"}, {}),
    "corners": (
        {"coordinate_transformation_mode": "align_corners", "mode": "linear"},
        {"mode": "bilinear", "align_corners": True},
    ),
    "bilinear": (
        {"coordinate_transformation_mode": "half_pixel", "mode": "linear"},
        {"mode": "bilinear", "align_corners": False},
    ),
}


@FEW
@given(st.sampled_from(sorted(RESIZES)), st.tuples(*[st.integers(1, 10)] * 2), st.tuples(*[st.integers(2, 6)] * 2))
def test_resize(kind, sizes, old):
    attributes, options = RESIZES[kind]
    check([node("Resize", ["image", "", "", "s"], **attributes)],
          lambda x: functional.interpolate(x, sizes, **options),
          {"s": np.array([1, 2, *sizes])}, [1, 2, *old], opset=13)  # fmt: skip


@FEW
@given(st.tuples(*[st.integers(1, 4)] * 2), st.sampled_from(["nearest", "linear"]))
def test_upsample(factors, mode):
    """In the first standard a linear resize looks up places at i / factor."""
    scales = np.array([1, 1, *factors], np.float32)

    def function(x):
        if mode == "nearest":
            return x.repeat_interleave(factors[0], dim=2).repeat_interleave(factors[1], dim=3)
        for axis, factor in zip((2, 3), factors, strict=True):
            size = x.shape[axis]
            at = torch.arange(size * factor, dtype=torch.float64) / factor
            lower_row = at.floor().long()
            upper_row = torch.clamp(lower_row + 1, max=size - 1)
            share = (at - lower_row).reshape(-1, *[1] * (3 - axis))
            x = x.index_select(axis, lower_row) * (1 - share) + x.index_select(axis, upper_row) * share
        return x

    check([node("Upsample", "image s", mode=mode)], function, {"s": scales}, [1, 2, 3, 4], opset=9)


@FEW
@given(st.sampled_from(["constant", "reflect", "edge"]), st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_pad(mode, pads):
    pads = [min(amount, size - 1) for amount, size in zip(pads, [5, 4, 5, 4], strict=True)]
    named = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}[mode]
    around = [pads[1], pads[3], pads[0], pads[2]]
    filled = {"value": 0.75} if mode == "constant" else {}
    weights = {"p": np.array([0, 0, *pads[:2], 0, 0, *pads[2:]]), "v": np.float32(0.75)}
    inputs = "image p v" if mode == "constant" else "image p"
    check([node("Pad", inputs, mode=mode)], lambda x: functional.pad(x, around, mode=named, **filled), weights)


@FEW
@given(st.integers(1, 4), st.integers(1, 3), st.booleans(), st.booleans(), st.data())
def test_average_pool(kernel, stride, is_ceil, counts_padding, data):
    padding = data.draw(st.integers(0, kernel // 2))
    attributes = {
        "kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [padding] * 4, "ceil_mode": int(is_ceil),
        "count_include_pad": int(counts_padding),
    }  # fmt: skip
    options = {"padding": padding, "ceil_mode": is_ceil, "count_include_pad": counts_padding}
    check([node("AveragePool", "image", **attributes)], lambda x: functional.avg_pool2d(x, kernel, stride, **options),
          dims=[1, 2, 5, 6], opset=19)  # fmt: skip


@FEW
@given(st.floats(2.0**-16, 0.5, width=32), st.integers(0, 1000))
def test_batch_normalization(epsilon, seed):
    weights = {name: floats(3, seed=seed + i) for i, name in enumerate("sbm")}
    weights["v"] = np.abs(floats(3, seed=seed + 3))
    s, b, m, v = (tensor(weights[name]) for name in "sbmv")
    check([node("BatchNormalization", "image s b m v", epsilon=epsilon)],
          lambda x: functional.batch_norm(x, m, v, s, b, eps=epsilon), weights)  # fmt: skip


class _Everything(torch.nn.Module):
    """A convolution, MaxPool, a residual join, a Concat, and dense logits."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first, self.inner = torch.nn.Conv2d(1, 3, 3), torch.nn.Conv2d(3, 3, 3, padding=1)
        self.last = torch.nn.Linear(54, 4)

    def forward(self, images):
        pooled = functional.max_pool2d(functional.leaky_relu(self.first(images), 0.125), 2)
        joined = functional.relu(pooled + self.inner(pooled))
        return self.last(torch.flatten(torch.cat([joined, pooled.abs()], dim=1), 1))


def test_points_of_a_result():
    """`Result.at` on a map, at random thetas: the maps of all classes are autograd's."""
    module = _Everything().eval()
    image = np.random.default_rng(0).integers(1, 256, (1, 8, 8)) / 255
    result = steadygaze.verify(module, image, ["brightness:0..0.2", "patch:x=2,y=2,w=3,h=3"], method="map", threads=1)
    lifted = module.double()
    for theta in np.random.default_rng(1).uniform(size=(20, 2)) * [0.2, 1.0]:
        point = result.at(theta)
        given_image = tensor(point.image)[None].requires_grad_()
        rows = [torch.autograd.grad(one, given_image, retain_graph=True)[0][0] for one in lifted(given_image)[0]]
        np.testing.assert_allclose(point.actual, np.stack(rows), rtol=0, atol=1e-10)
