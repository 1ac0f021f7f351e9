"""Operators with bends and branches: their graphs against onnxruntime, over random shapes and attributes."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from steadygaze.errors import ModelError
from steadygaze.network.joins import Concat, Sum, Winner
from steadygaze.network.operators import Linear, Relu
from support.networks.operator_attributes import pools
from support.networks.operator_models import check_model, flat_model, floats, graph_of, node

FEW = settings(max_examples=40, deadline=None)
DIMS = [1, 3, 5, 4]
SEEDS = st.integers(0, 2**31)
SIZES = st.integers(1, 7)
SLOPES = st.floats(-3.0, 3.0, width=32, allow_subnormal=False)


def kinds(graph):
    return [type(entry.operator) for entry in graph.nodes if not isinstance(entry.operator, Linear)]


def check(nodes, weights=None, dims=DIMS, *, opset=17, **options):
    return check_model(flat_model(nodes, weights or {}, dims, opset=opset), dims, **options)


def pool(dims, shape, attributes, opset):
    nodes = [node("Reshape", "image s", "x"), node("MaxPool", "x", **attributes)]
    check(nodes, {"s": np.array(shape)}, dims, opset=opset)


@FEW
@given(pools(2), st.sampled_from([10, 11, 12, 22]))
def test_max_pool(case, opset):
    size, attributes = case
    pool([1, 2, *size], [1, 2, *size], attributes, opset)


@FEW
@given(pools(1), st.sampled_from([10, 12, 22]))
def test_max_pool_in_one_dimension(case, opset):
    size, attributes = case
    pool([1, 2, size[0], 3], [2, 3, *size], attributes, opset)


def test_max_pool_takes_the_first_of_equal_entries():
    graph = graph_of(flat_model([node("MaxPool", "image", kernel_shape=[2, 2], pads=[1, 1, 0, 0])], {}, [1, 1, 2, 2]))
    (winner,) = [entry.operator for entry in graph.nodes if isinstance(entry.operator, Winner)]
    assert winner.index.tolist() == [[0, -1, -1, -1], [0, 1, -1, -1], [0, 2, -1, -1], [0, 1, 2, 3]]
    assert winner.counts.tolist() == [1, 2, 2, 4]


def test_max_pool_of_negative_numbers_ignores_the_padding():
    values = -1.0 - np.random.default_rng(0).random((2, 3, 5, 4))
    check([node("MaxPool", "image", kernel_shape=[3, 3], pads=[1, 1, 1, 1])], values=values)


def test_max_pool_with_dilations_and_auto_pad():
    """By the standard the padding depends on the dilation; onnxruntime ignores it."""
    attributes = {"kernel_shape": [2, 2], "dilations": [2, 1], "auto_pad": "SAME_UPPER"}
    with pytest.raises(ModelError, match="export it with explicit pads"):
        graph_of(flat_model([node("MaxPool", "image", **attributes)], {}, DIMS))


def test_max_pool_with_an_unused_second_output():
    check([node("MaxPool", "image", "y i", kernel_shape=[2, 2])])


def test_global_max_pool():
    assert kinds(check([node("GlobalMaxPool", "image")])) == [Winner]


@FEW
@given(
    st.sampled_from(["ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean"]),
    st.sets(st.integers(0, 3), min_size=1),
    st.booleans(),
    st.sampled_from([11, 12, 13, 18, 20]),
)
def test_reductions(kind, axes, keepdims, opset):
    shifted = [axis - 4 if axis % 2 else axis for axis in axes]
    if opset >= (13 if kind == "ReduceSum" else 18):
        check([node(kind, "image a", keepdims=keepdims)], {"a": np.array(shifted)}, opset=opset)
    else:
        check([node(kind, "image", axes=shifted, keepdims=keepdims)], opset=opset)


@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMin", "ReduceSum"])
def test_reductions_without_axes(kind):
    check([node(kind, "image", "m"), node("Add", "m c")], {"c": floats(1, 3, 1, 1)}, opset=18)
    check([node(kind, "image", noop_with_empty_axes=1)], opset=18)


@st.composite
def broadcast(draw):
    """A shape that fits (1, 3, 5, 4)."""
    shape = [draw(st.sampled_from([1, size])) for size in DIMS]
    return shape[draw(st.integers(0, 4)) :]


@FEW
@given(st.sampled_from(["Max", "Min", "Sum", "Mean"]), st.lists(broadcast(), max_size=3), st.data())
def test_functions_of_several_tensors(kind, shapes, data):
    """Some inputs are constants, some depend on the image, and values repeat."""
    weights = {f"c{i}": floats(*shape, seed=i) for i, shape in enumerate(shapes)}
    values = ["image", "r", "m"]
    nodes = [node("Relu", "image", "r"), node("ReduceMean", "image", "m", axes=[1, 3])]
    inputs = data.draw(st.lists(st.sampled_from([*values, *weights]), min_size=1, max_size=5))
    assume(set(inputs) & set(values))
    nodes.append(node(kind, inputs, "z"))
    check([*nodes, node("Add", "z image")], weights)


@FEW
@given(st.sampled_from(["Add", "Sub"]), st.sampled_from(["image", "r", "m", "z"]), st.sampled_from(["image", "r", "m"]))
def test_sums_of_two_branches(kind, left, right):
    nodes = [
        node("Relu", "image", "r"),
        node("ReduceMean", "image", "m", axes=[1, 3]),
        node("ReduceMax", "image", "z", axes=[1, 2, 3], keepdims=0),
        node(kind, [left, right]),
    ]
    graph = check(nodes)
    for entry in graph.nodes:
        if isinstance(entry.operator, Sum):
            assert len(set(entry.inputs)) == len(entry.inputs)
            assert {graph.shape_of(number) for number in entry.inputs} == {entry.shape}


def test_a_residual_block():
    weights = {"w": floats(3, 3, 3, 3), "b": floats(3), "v": floats(3, 3, 1, 1, seed=2)}
    nodes = [
        node("Conv", "image w b", "h", pads=[1, 1, 1, 1]),
        node("Relu", "h", "r"),
        node("Conv", "r w b", "g", pads=[1, 1, 1, 1]),
        node("Conv", "image v", "s"),
        node("Add", "g s", "t"),
        node("Relu", "t"),
    ]
    graph = check(nodes, weights)
    assert kinds(graph) == [Relu, Sum, Relu]


@FEW
@given(st.integers(-4, 3), st.lists(st.sampled_from(["image", "r", "c", "d"]), min_size=1, max_size=4))
def test_concat(axis, parts):
    assume({"image", "r"} & set(parts))
    weights = {"c": floats(*DIMS), "d": floats(*DIMS, seed=3)}
    graph = check([node("Relu", "image", "r"), node("Concat", parts, "t", axis=axis), node("Neg", "t")], weights)
    for entry in graph.nodes:
        assert len(set(entry.inputs)) == len(entry.inputs)


def test_concat_of_different_lengths():
    nodes = [
        node("Slice", "image a b x", "s"),
        node("Concat", "image s c s", "t", axis=1),
        node("Concat", "t s image"),
    ]
    nodes[-1].attribute.append(node("Concat", "t", axis=1).attribute[0])
    weights = {"a": np.array([1]), "b": np.array([3]), "x": np.array([1]), "c": floats(1, 1, 5, 4)}
    assert Concat in kinds(check(nodes, weights))


@FEW
@given(SLOPES)
def test_leaky_relu(alpha):
    check([node("LeakyRelu", "image", alpha=alpha)])


@FEW
@given(broadcast(), SEEDS)
def test_prelu(shape, seed):
    check([node("PRelu", "image s")], {"s": 2 * floats(*shape, seed=seed)})


def test_the_gain_of_a_leaky_relu_counts_its_rounding():
    def gains(alpha):
        graph = graph_of(flat_model([node("LeakyRelu", "image", alpha=alpha)], {}, DIMS))
        return [entry.operator for entry in graph.nodes if getattr(entry.operator, "gain", 1.0) not in (1.0, alpha)]

    assert [gain.read_roundings for gain in gains(np.float32(0.01))] == [0]
    assert [gain.read_roundings for gain in gains(np.float32(1e-12))] == [1]


@FEW
@given(
    st.none() | st.floats(-2.0, 2.0, width=32, allow_subnormal=False),
    st.none() | st.floats(-2.0, 2.0, width=32, allow_subnormal=False),
    st.sampled_from([9, 10, 11, 13]),
)
def test_clip(low, high, opset):
    """A missing bound, equal bounds, and a lower bound above the upper one."""
    if opset < 11:
        assume(low is None or high is None or low <= high)  # onnxruntime refuses the file
        attributes = {name: value for name, value in (("min", low), ("max", high)) if value is not None}
        nodes, weights = [node("Clip", "image", **attributes)], {}
    else:
        weights = {n: np.float32(v) for n, v in (("lo", low), ("hi", high)) if v is not None}
        nodes = [node("Clip", ["image", "lo" if low is not None else "", "hi" if high is not None else ""])]
    graph = check(nodes, weights, opset=opset)
    assert set(kinds(graph)) <= {Relu}, "a chain"


@FEW
@given(SLOPES, SLOPES)
def test_hard_sigmoid(alpha, beta):
    check([node("HardSigmoid", "image", alpha=alpha, beta=beta)])


@pytest.mark.parametrize("kind", ["Abs", "Neg"])
def test_abs_and_neg(kind):
    check([node(kind, "image")])


def test_shrink_and_thresholded_relu():
    check([node("Shrink", "image", lambd=0.5, bias=0.5)])
    check([node("ThresholdedRelu", "image", alpha=0.0)])
    for bent in (node("Shrink", "image", lambd=0.5), node("ThresholdedRelu", "image", alpha=1.0)):
        with pytest.raises(ModelError, match="not continuous"):
            graph_of(flat_model([bent], {}, DIMS))


@FEW
@given(st.integers(-3, 3), st.sampled_from([11, 13, 18]), st.data())
def test_split(axis, opset, data):
    size = DIMS[axis]
    count = data.draw(st.integers(1, size))
    mode = data.draw(st.sampled_from(["sizes", "equal"]))
    cuts = (
        sorted(data.draw(st.sets(st.integers(1, size - 1), min_size=count - 1, max_size=count - 1))) if size > 1 else []
    )
    sizes = np.diff([0, *cuts, size])
    names = [f"p{i}" for i in range(len(sizes))]
    attributes, weights, inputs = {"axis": axis}, {}, "image"
    if mode == "sizes":
        if opset < 13:
            attributes["split"] = sizes.tolist()
        else:
            inputs, weights = "image s", {"s": sizes}
    elif opset >= 18:
        assume((len(names) - 1) * -(-size // len(names)) < size)
        attributes["num_outputs"] = len(names)
    else:
        assume(size % len(names) == 0)
    kept = data.draw(st.permutations(names))[: data.draw(st.integers(1, len(names)))]
    nodes = [node("Split", inputs, names, **attributes), node("Concat", kept, axis=axis)]
    check(nodes, weights, opset=opset)


@pytest.mark.parametrize(
    "last",
    [
        node("PRelu", "image c"),
        node("Clip", ["image", "", "c"]),
        node("Resize", ["image", "", "scales"], mode="linear"),
    ],
    ids=lambda last: last.op_type,
)
def test_rounded_constants_are_refused_where_differences_of_them_matter(last):
    """1 − slope of a rounded slope may be off by far more than a rounding of its own."""
    weights = {"a": np.float32(1.0), "b": np.float32(3.0), "ones": np.ones(4, np.float32)}
    nodes = [node("Div", "a b", "c"), node("Mul", "c ones", "scales"), last]
    with pytest.raises(ModelError, match="has constants that were rounded"):
        graph_of(flat_model(nodes, weights, DIMS))


@pytest.mark.parametrize("kind", ["Max", "Sum", "Concat"])
def test_roundings_of_constants_are_counted(kind):
    weights = {"a": floats(1, 1, 5, 4), "b": np.float32(3.0)}
    attributes = {"axis": 1} if kind == "Concat" else {}
    graph = graph_of(flat_model([node("Div", "a b", "c"), node(kind, "image c", **attributes)], weights, DIMS))
    assert max(entry.operator.read_roundings for entry in graph.nodes if isinstance(entry.operator, Linear)) >= 1


@pytest.mark.parametrize("is_node", [False, True])
def test_an_infinite_bound_of_clip_is_none(is_node):
    bounds = {"lo": np.float32(0.25), "hi": np.float32(np.inf)}
    nodes = [node("Constant", [], name, value=numpy_helper.from_array(value)) for name, value in bounds.items()]
    check([*(nodes if is_node else []), node("Clip", "image lo hi")], {} if is_node else bounds)
    for kind, bound, words in (
        ("Clip", -np.inf, "its max is -inf"),
        ("Clip", np.nan, "NaN"),
        ("Add", np.inf, "infinity"),
    ):
        names = ["image", "", "c"] if kind == "Clip" else ["image", "c"]
        with pytest.raises(ModelError, match=words):
            check([node(kind, names)], {"c": np.float32(bound)})
