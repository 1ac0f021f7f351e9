"""Operators that move, repeat, spread and resize values: their graphs against onnxruntime, over random attributes."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from steadygaze.errors import ModelError
from steadygaze.exact.network_forms import exact_map
from steadygaze.network.operators import WeightedSum
from steadygaze.network.steps import is_folded, step_of
from steadygaze.tolerances import gamma
from support.networks.operator_attributes import transposed
from support.networks.operator_models import check_model, flat_model, floats, graph_of, node

FEW = settings(max_examples=40, deadline=None)
MANY = settings(max_examples=80, deadline=None)
DIMS = [1, 3, 5, 4]
COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]


def check(nodes, weights=None, dims=DIMS, *, opset=17, **options):
    return check_model(flat_model(nodes, weights or {}, dims, opset=opset), dims, **options)


@FEW
@given(st.data(), st.sampled_from([9, 11, 13]))
def test_slice(data, opset):
    axes = data.draw(st.lists(st.integers(-4, 3), min_size=1, max_size=3, unique_by=lambda axis: axis % 4))
    starts = [data.draw(st.integers(-7, 7)) for _ in axes]
    ends = [data.draw(st.integers(-7, 7) | st.sampled_from([2**31 - 1, -(2**31)])) for _ in axes]
    steps = [data.draw(st.sampled_from([1, 1, 2, -1, -2, 3])) if opset >= 10 else 1 for _ in axes]

    def length(axis, start, end, step):
        size = DIMS[axis]
        return len(range(size)[slice(start, None if step < 0 and end < -size else end, step)])

    for place, (axis, start, end, step) in enumerate(zip(axes, starts, ends, steps, strict=True)):
        if not length(axis, start, end, step):  # the whole axis instead
            starts[place], ends[place] = (0, DIMS[axis]) if step > 0 else (-1, -9)
    if opset < 10:
        check([node("Slice", "image", starts=starts, ends=ends, axes=axes)], opset=opset)
    else:
        weights = {"s": np.array(starts), "e": np.array(ends), "a": np.array(axes), "t": np.array(steps)}
        check([node("Slice", "image s e a t")], weights, opset=opset)


@FEW
@given(st.integers(-4, 3), st.sampled_from([(), (1,), (3,), (2, 2)]), st.data())
def test_gather(axis, shape, data):
    size = DIMS[axis]
    count = int(np.prod(shape))
    index = data.draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
    check([node("Gather", "image i", axis=axis)], {"i": np.array(index).reshape(shape)})


@FEW
@given(st.sampled_from(["reflect", "edge", "wrap", "constant"]), st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_pad_modes(mode, pads):
    amounts = [0, *(min(amount, size - 1) for amount, size in zip(pads[:3], DIMS[1:], strict=True))]
    amounts += [0, *(min(amount, size - 1) for amount, size in zip(pads[3:], DIMS[1:], strict=True))]
    check([node("Pad", "image p", mode=mode)], {"p": np.array(amounts)}, opset=19)


def test_pad_modes_that_do_not_fit():
    for mode, pads in (("reflect", [0, 0, 5, 0] * 2), ("wrap", [0, 0, 6, 0] * 2), ("edge", [0, 0, -1, 0] * 2)):
        with pytest.raises(ModelError, match=f"in mode '{mode}'"):
            graph_of(flat_model([node("Pad", "image p", mode=mode)], {"p": np.array(pads)}, DIMS))


def test_expand_and_tile():
    check([node("ReduceMean", "image", "m", axes=[1, 3]), node("Expand", "m s")], {"s": np.array([2, 3, 1, 4])})
    check([node("Expand", "image s")], {"s": np.array([5, 1])})
    check([node("Tile", "image r")], {"r": np.array([1, 2, 1, 3])})


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode):
    check([node("DepthToSpace", "image", blocksize=2, mode=mode)], dims=[1, 8, 3, 2])


def test_space_to_depth():
    check([node("SpaceToDepth", "image", blocksize=2)], dims=[1, 3, 4, 6])


@MANY
@given(transposed(2), st.booleans())
def test_conv_transpose(case, has_bias):
    shape, attributes, weights = case
    check([node("ConvTranspose", "image w b" if has_bias else "image w", **attributes)], weights, [1, *shape])


def test_conv_transpose_to_a_larger_shape():
    weights = {"w": floats(3, 2, 1, 1)}
    for attributes in ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, {"output_shape": [9, 9]}):
        with pytest.raises(ModelError, match="export it with explicit pads"):
            graph_of(flat_model([node("ConvTranspose", "image w", **attributes)], weights, DIMS))


@FEW
@given(transposed(1))
def test_conv_transpose_in_one_dimension(case):
    shape, attributes, weights = case
    nodes = [node("Reshape", "image s", "x"), node("ConvTranspose", "x w b", **attributes)]
    check(nodes, {"s": np.array([2, *shape]), **weights}, [1, 2, *shape])


@MANY
@given(
    st.sampled_from([11, 13, 18, 19]),
    st.sampled_from(COORDINATES),
    st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
    st.tuples(*[st.integers(1, 40)] * 2),
    st.tuples(*[st.integers(2, 30)] * 2),
    st.booleans(),
)
def test_resize_nearest(opset, coordinates, rounding, sizes, old, by_scales):
    attributes = {"mode": "nearest", "coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    resize(opset, attributes, sizes, old, by_scales)


@MANY
@given(
    st.sampled_from([11, 13, 18, 19]),
    st.sampled_from(COORDINATES),
    st.tuples(*[st.integers(1, 12)] * 2),
    st.tuples(*[st.integers(2, 7)] * 2),
    st.booleans(),
)
def test_resize_linear(opset, coordinates, sizes, old, by_scales):
    resize(opset, {"mode": "linear", "coordinate_transformation_mode": coordinates}, sizes, old, by_scales)


def resize(opset, attributes, sizes, old, by_scales):
    assume(opset >= 19 or attributes["coordinate_transformation_mode"] != "half_pixel_symmetric")
    dims = [1, 2, *old]
    none = "none" if opset < 13 else ""  # missing inputs were empty tensors
    weights = {"none": np.zeros(0, np.float32)} if none else {}
    if by_scales:
        scales = np.array([1, 1, *(new / size for new, size in zip(sizes, old, strict=True))], np.float32)
        assume((np.floor(scales * np.float32(dims)) >= 1).all())
        inputs, weights["s"] = ["image", none, "s"], scales
    else:
        inputs, weights["s"] = ["image", none, none, "s"], np.array([1, 2, *sizes])
    check([node("Resize", inputs, **attributes)], weights, dims, opset=opset)


@FEW
@given(st.sampled_from(["nearest", "linear"]), st.sampled_from([9, 10]), st.tuples(*[st.integers(1, 12)] * 2))
def test_upsample_and_the_first_resize(mode, opset, sizes):
    scales = np.array([1, 1, sizes[0] / 4, sizes[1] / 6], np.float32)
    assume(opset == 10 or (scales >= 1).all())
    assume((np.floor(scales * np.float32([1, 2, 4, 6])) >= 1).all())
    kind = "Upsample" if opset == 9 else "Resize"
    check([node(kind, "image s", mode=mode)], {"s": scales}, [1, 2, 4, 6], opset=opset)


def test_resize_of_chosen_axes():
    weights = {"s": np.array([2.0, 3.0], np.float32)}
    check([node("Resize", ["image", "", "s"], mode="linear", axes=[2, 3])], weights, opset=18)
    check([node("Resize", ["image", "", "s"], mode="nearest", axes=[-1, -2])], weights, opset=18)


def test_weights_of_a_linear_resize_count_their_roundings():
    def roundings(scale):
        nodes = [node("Resize", ["image", "", "s"], mode="linear")]
        graph = graph_of(flat_model(nodes, {"s": np.array([1, 1, scale, 1], np.float32)}, DIMS))
        (blend,) = [entry.operator for entry in graph.nodes if isinstance(entry.operator, WeightedSum)]
        return blend.read_roundings

    assert (roundings(2.0), roundings(3.0)) == (0, 1)


def test_sums_of_weights_of_one_entry_count_their_roundings():
    """1 + 2⁻⁶⁰ is 1 in float64: the matrix alone would prove that both numbers are equal."""
    blend = WeightedSum(np.array([[0, 0, 1], [0, 1, 1]]), np.array([[1.0, 2.0**-60, 0.0], [1.0, 0.0, 0.0]]), (1, 2))
    matrix = blend.affine((1, 2))[0].toarray()
    assert matrix.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    step = step_of(blend, (1, 2))
    exact = Fraction(1) + Fraction(1, 2**60)
    assert 0 < exact - Fraction(matrix[0, 0]) <= Fraction(gamma(step.roundings)) * Fraction(matrix[0, 0])
    assert step.roundings == 1 and is_folded([step])
    with pytest.raises(ModelError, match="does not support WeightedSum"):
        exact_map(blend, (1, 2), 128)
    whole = WeightedSum(np.array([[0, 0, 1]]), np.array([[1.0, 0.0, 0.5]]), (1, 1))
    assert step_of(whole, (1, 2)).roundings == 0, "adding zero rounds nothing"
    with pytest.raises(ValueError, match="different signs"):
        _ = WeightedSum(np.array([[0, 0]]), np.array([[1.0, -1.0]]), (1, 1)).roundings


@pytest.mark.parametrize(
    "attributes,words",
    [
        ({"mode": "cubic"}, "has mode 'cubic'; supported: nearest and linear"),
        ({"coordinate_transformation_mode": "tf_crop_and_resize"}, "'tf_crop_and_resize'; supported: half_pixel"),
        ({"nearest_mode": "odd"}, "has nearest_mode 'odd'"),
        ({"mode": "linear", "antialias": 1}, "has antialias 1; supported: 0"),
        ({"keep_aspect_ratio_policy": "not_larger"}, "has keep_aspect_ratio_policy not_larger"),
    ],
)
def test_resizes_that_are_refused(attributes, words):
    weights = {"s": np.array([1, 3, 7, 8])}
    with pytest.raises(ModelError, match="'y' \\(Resize\\)") as caught:
        graph_of(flat_model([node("Resize", ["image", "", "", "s"], **attributes)], weights, DIMS, opset=18))
    assert words in str(caught.value)


def test_shape_arithmetic_around_a_resize():
    """F.interpolate(x, scale_factor=2) without constant folding."""
    nodes = [
        node("Shape", "image", "s"),
        node("Slice", "s two four", "hw"),
        node("Slice", "s zero two", "nc"),
        node("Cast", "hw", "f", to=TensorProto.FLOAT),
        node("Mul", "f factor", "g"),
        node("Floor", "g", "h"),
        node("Cast", "h", "i", to=TensorProto.INT64),
        node("Concat", "nc i", "sizes", axis=0),
        node("Resize", ["image", "", "", "sizes"], mode="nearest"),
    ]
    weights = {"zero": np.array([0]), "two": np.array([2]), "four": np.array([4]), "factor": np.float32(2)}
    check(nodes, weights)


def test_shape_arithmetic_around_an_expand():
    """x.expand(-1, 3, -1, -1) as exporters write it: -1 becomes 1 by Equal and Where."""
    nodes = [
        node("ConstantOfShape", "four", "ones", value=one(np.int64)),
        node("Mul", "ones minus", "minus_ones"),
        node("Equal", "wanted minus_ones", "is_open"),
        node("Where", "is_open ones wanted", "sizes"),
        node("ReduceMean", "image", "m", axes=[1]),
        node("Expand", "m sizes", "e"),
        node("Split", "sizes", "a b", axis=0),
        node("Concat", "a b", "c", axis=0),
        node("Range", "start size step", "r"),
        node("Gather", "e r", "g", axis=1),
        node("Expand", "g c"),
    ]
    weights = {"four": np.array([4]), "minus": np.array(-1), "wanted": np.array([-1, 3, -1, -1])}
    check(
        nodes,
        {**weights, "start": np.array(0), "size": np.array(2), "step": np.array(1)}
        | {"wanted": np.array([-1, 2, -1, -1])},
    )


def one(dtype):
    from onnx import numpy_helper

    return numpy_helper.from_array(np.ones(1, dtype))
