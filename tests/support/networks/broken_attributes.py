"""Models whose operators have attributes or shapes that do not fit, or results that are too large."""

import numpy as np
from onnx import AttributeProto, ModelProto, helper

from support.networks.broken_models import DIMS, FLOAT, case, single
from support.networks.onnx_files import make_proto
from support.networks.operator_models import floats, node


@case("not a valid ONNX model")
def attribute_of_another_type():
    model = single("Conv", "image w", {"w": floats(2, 1, 2, 2)})
    model.graph.node[0].attribute.append(helper.make_attribute("strides", [1.0, 1.0]))
    return model


@case("not a valid ONNX model")
def attribute_without_a_type():
    model = single("MaxPool")
    attribute = AttributeProto(name="kernel_shape")
    attribute.ints.extend([2, 2])
    model.graph.node[0].attribute.append(attribute)
    return model


@case("not a valid ONNX model")
def attribute_missing():
    return single("MaxPool")


@case("does not fit [1, 1, 4, 4]")
def conv_of_other_channels():
    return single("Conv", "image w", {"w": floats(2, 3, 2, 2)})


@case("supported: 1-D and 2-D")
def conv_in_three_dimensions():
    return single("Conv", "image w", {"w": floats(2, 1, 2, 2, 2)})


@case("does not fit into [4, 4]")
def conv_larger_than_its_image():
    return single("Conv", "image w", {"w": floats(2, 1, 9, 9)})


@case("0 group(s)")
def conv_without_groups():
    return single("Conv", "image w", {"w": floats(2, 1, 2, 2)}, group=0)


@case("does not fit a weight of shape")
def conv_with_a_long_bias():
    return single("Conv", "image w b", {"w": floats(2, 1, 2, 2), "b": floats(3)})


@case("does not fit into [4, 4]")
def pool_larger_than_its_image():
    return single("MaxPool", kernel_shape=[9, 9])


@case("must be positive")
def pool_without_strides():
    return single("MaxPool", kernel_shape=[2, 2], strides=[0, 1])


@case("needs an index of 1.6e+09 entries")
def pool_of_many_positions():
    return single("AveragePool", kernel_shape=[2 * 10**4, 1], pads=[2 * 10**4 - 2, 0, 2 * 10**4 - 2, 0])


@case("has a window of 1.05e+06 places")
def pool_of_many_places():
    return single("AveragePool", kernel_shape=[2**20, 1], auto_pad="SAME_UPPER")


@case("pads exceed")
def pool_with_huge_pads():
    return single("MaxPool", kernel_shape=[2, 1], pads=[2**40, 0, 0, 0])


@case("lies entirely in the padding")
def pool_of_nothing():
    return single("MaxPool", kernel_shape=[2, 2], pads=[2, 2, 2, 2])


@case("its index runs from 7 to 7")
def gather_beyond_the_end():
    return single("Gather", "image i", {"i": np.array(7)})


@case("only its first input may depend on the image")
def gather_by_the_image():
    return single("Gather", "image image")


@case("cannot reshape [1, 1, 4, 4] to [3, -1]")
def reshape_impossible():
    return single("Reshape", "image s", {"s": np.array([3, -1])})


@case("cannot reshape")
def reshape_to_two_open_sizes():
    return single("Reshape", "image s", {"s": np.array([-1, -1])})


@case("do not fit")
def concat_of_other_shapes():
    return single("Concat", "image c", {"c": floats(1, 1, 5, 5)}, axis=1)


@case("do not fit")
def concat_of_other_values():
    nodes = [node("GlobalMaxPool", "image", "p"), node("Concat", "image p", "y", axis=1), node("Flatten", "y", "l")]
    return make_proto(nodes, {}, DIMS)


@case("axis 4 does not exist")
def concat_along_no_axis():
    return single("Concat", "image image", axis=4)


@case("perm [0, 1] does not fit")
def transpose_of_too_few_axes():
    return single("Transpose", perm=[0, 1])


@case("do not fit together")
def slice_without_step():
    return single(
        "Slice",
        "image s e a t",
        {"s": np.zeros(1, int), "e": np.ones(1, int), "a": np.zeros(1, int), "t": np.zeros(1, int)},
    )


@case("is empty")
def slice_of_nothing():
    return single("Slice", "image s e", {"s": np.zeros(4, int), "e": np.zeros(4, int)})


@case("cannot split axis 2 of length 4 into parts of length [1, 1]")
def split_of_a_part():
    model = single("Split", "image s", {"s": np.array([1, 1])}, axis=2)
    model.graph.node[0].output.append("y2")
    return model


@case("entries; at most")
def expand_huge():
    return single("Expand", "image s", {"s": np.array([2**20, 2**20, 4, 4])})


@case("entries; at most")
def tile_huge():
    return single("Tile", "image n", {"n": np.array([2**31, 2**31, 1, 1])})


@case("entries; at most")
def resize_huge():
    return single("Resize", ["image", "", "", "s"], {"s": np.array([1, 1, 2**20, 2**20])})


@case("has mode 'cubic'")
def resize_cubic():
    return single("Resize", ["image", "", "", "s"], {"s": np.array([1, 1, 8, 8])}, mode="cubic")


@case("is too large")
def pad_huge():
    return single("Pad", "image p", {"p": np.full(8, 2**40)})


@case("leave nothing")
def pad_that_crops_everything():
    return single("Pad", "image p", {"p": np.full(8, -9)})


@case("does not fit [1, 1, 4, 4]")
def add_of_another_shape():
    return single("Add", "image c", {"c": floats(5, 5)})


@case("do not fit")
def sum_of_other_shapes():
    return single("Sum", "image c", {"c": floats(5, 5)})


@case("do not fit")
def maximum_of_other_shapes():
    return single("Max", "image c", {"c": floats(5, 5)})


@case("a slope of shape [3, 1, 1] does not fit")
def prelu_of_other_channels():
    return single("PRelu", "image s", {"s": floats(3, 1, 1)})


@case("its min is -3.4e+38, too large to compute with")
def clip_by_a_huge_number():
    return single("Clip", "image c", {"c": np.float32(-3.4e38)})


@case("its min has shape [4]; expected one number")
def clip_by_several_numbers():
    return single("Clip", "image c", {"c": floats(4)})


@case("does not fit [1, 1, 4, 4]")
def transposed_conv_of_other_channels():
    return single("ConvTranspose", "image w", {"w": floats(2, 1, 2, 2)})


@case("entries; at most")
def transposed_conv_huge():
    return single("ConvTranspose", "image w", {"w": floats(1, 1, 2, 2)}, strides=[2**20, 2**20])


@case("axis 9 does not exist")
def squeeze_of_no_axis():
    return single("Squeeze", "image a", {"a": np.array([9])})


@case("only its first input may depend on the image")
def axes_that_depend_on_the_image():
    return single("ReduceSum", "image image")


@case("its first input must be the value that depends on the image")
def conv_of_a_constant():
    return single("Conv", "w image", {"w": floats(1, 1, 9, 9)})


@case("would give 1.1e+12 numbers")
def constant_huge():
    model = single("Add", "image c", {"s": np.array([2**20, 2**20])})
    model.graph.node.insert(0, node("ConstantOfShape", "s", "c"))
    return model


@case("would give 1.1e+12 numbers")
def range_huge():
    model = single("Add", "image c", {"a": np.array(0), "b": np.array(2**40), "s": np.array(1)})
    model.graph.node.insert(0, node("Cast", "q", "c", to=FLOAT))
    model.graph.node.insert(0, node("Range", "a b s", "q"))
    return model


def doubled(first: str) -> ModelProto:
    """A value that is joined to itself again and again."""
    nodes = [node("Concat", [f"{first}{i or ''}"] * 2, f"{first}{i + 1}", axis=0) for i in range(40)]
    nodes += [node("ReduceMean", f"{first}40", "m"), node("Add", "m image", "y"), node("Flatten", "y", "l")]
    return make_proto(nodes, {"c": floats(1, 4)} if first == "c" else {}, DIMS)


@case("numbers, but folded constants may have only")
def constants_that_grow():
    return doubled("c")


@case("entries; at most")
def values_that_grow():
    return doubled("image")


@case("entries in all")
def many_large_rearrangements():
    nodes = [node("Tile", "image r", "v0")]
    nodes += [node("Gather", f"v{i} k", f"v{i + 1}") for i in range(100)]
    weights = {"r": np.array([1, 1, 2**9, 2**9]), "k": np.array([0])}
    return make_proto(
        [*nodes, node("ReduceMax", "v100", "y"), node("Add", "y image", "z"), node("Flatten", "z", "l")], weights, DIMS
    )


@case("entries; at most")
def outer_sum():
    """Two values whose sum is far larger than each."""
    weights = {"a": np.array([2**16, 1]), "b": np.array([1, 2**16]), "r": np.array([1, 1, 2**6, 2**6])}
    nodes = [node("Tile", "image r", "t"), node("Reshape", "t a", "x"), node("Reshape", "t b", "y")]
    return make_proto([*nodes, node("Add", "x y", "z"), node("Flatten", "z", "l")], weights, DIMS)
