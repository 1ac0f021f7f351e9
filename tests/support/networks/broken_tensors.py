"""Models with broken weights, weights in other files, or inputs other than images."""

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from support.networks.broken_models import DIMS, FLOAT, case, dense, single, weight_of
from support.networks.operator_models import node


def spoiled(name: str, value: float) -> ModelProto:
    """The dense model with one number replaced."""
    model = dense()
    tensor = weight_of(model, name)
    numbers = numpy_helper.to_array(tensor).copy()
    numbers.flat[1] = value
    tensor.CopyFrom(numpy_helper.from_array(numbers, name))
    return model


@case("tensor 'w1' holds NaN or infinity")
def weight_nan():
    return spoiled("w1", np.nan)


@case("tensor 'b2' holds NaN or infinity")
def weight_infinite():
    return spoiled("b2", np.inf)


def replaced(**fields) -> ModelProto:
    """The dense model with other fields in its first weight."""
    model = dense()
    tensor = weight_of(model, "w1")
    for name, value in fields.items():
        if name == "dims":
            del tensor.dims[:]
            tensor.dims.extend(value)
        else:
            setattr(tensor, name, value)
    return model


@case("needs 384 bytes, but holds 8")
def weight_cut():
    return replaced(raw_data=bytes(8))


@case("claims 1.1e+12 elements")
def weight_huge():
    return replaced(dims=[2**20, 2**20])


@case("elements; at most")
def weight_beyond_64_bits():
    return replaced(dims=[2**62, 2**62])


@case("negative dimension -16")
def weight_negative():
    return replaced(dims=[-16, 6])


@case("needs 0 bytes, but holds 384")
def weight_empty():
    return replaced(dims=[0, 6])


@case("has type complex64")
def weight_complex():
    return replaced(data_type=TensorProto.COMPLEX64)


@case("has type number 77")
def weight_of_no_type():
    return replaced(data_type=77)


@case("has type undefined")
def weight_undefined():
    return replaced(data_type=0)


@case("has type string")
def weight_of_strings():
    model = dense()
    weight_of(model, "w1").CopyFrom(helper.make_tensor("w1", TensorProto.STRING, [2], ["a", "b"]))
    return model


@case("has type int4")
def weight_of_half_bytes():
    model = dense()
    weight_of(model, "w1").CopyFrom(TensorProto(name="w1", data_type=TensorProto.INT4, dims=[2], raw_data=b"1"))
    return model


@case("sparse initializers are not supported")
def weight_sparse():
    model = dense()
    values = numpy_helper.from_array(np.ones(1, np.float32), "sparse")
    indices = numpy_helper.from_array(np.zeros(1, np.int64), "where")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    return model


@case("contains neither a tensor nor numbers")
def weight_as_text():
    model = single("Add", "image c")
    model.graph.node.insert(0, node("Constant", [], "c", value_string="text"))
    return model


def stored_outside(**entries) -> ModelProto:
    """The dense model with the first weight in another file."""
    model = dense()
    tensor = weight_of(model, "w1")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return model


@case("outside the model's folder")
def external_above():
    return stored_outside(location="../secret.bin")


@case("outside the model's folder")
def external_hidden_above():
    return stored_outside(location="here/../../secret.bin")


@case("outside the model's folder")
def external_absolute():
    return stored_outside(location="/etc/hostname")


@case("outside the model's folder")
def external_on_a_drive():
    return stored_outside(location="C:\\secret.bin")


@case("which is missing from the model's folder")
def external_missing():
    return stored_outside(location="missing.bin")


@case("names no external data file")
def external_nowhere():
    return stored_outside()


@case("is a directory")
def external_folder():
    return stored_outside(location=".")


@case("lies at bytes 60 to 444")
def external_too_short():
    return stored_outside(location="weights.bin", offset="60", length="384")


@case("has a damaged external offset or length")
def external_offset_that_is_no_number():
    return stored_outside(location="weights.bin", offset="1e3")


@case("lies at bytes -5 to")
def external_negative_offset():
    return stored_outside(location="weights.bin", offset="-5")


def fed(dims=None, *, elem: int = FLOAT) -> ModelProto:
    """The dense model with another input."""
    model = dense()
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("image", elem, dims))
    return model


@case("is not of a float type")
def input_of_bytes():
    return fed(DIMS, elem=TensorProto.UINT8)


@case("is not of a float type")
def input_of_strings():
    return fed(DIMS, elem=TensorProto.STRING)


@case("is not of a float type")
def input_sequence():
    model = dense()
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, DIMS))
    model.graph.input[0].CopyFrom(helper.make_value_info("image", kind))
    return model


@case("Field 'shape' of 'type' is required")
def input_without_shape():
    return fed(None)


@case("a fixed batch of 7")
def input_of_seven_images():
    return fed([7, 1, 4, 4])


@case("expected a batch of images")
def input_without_batch():
    return fed([16])


@case("expected [1, C, H, W]")
def input_of_five_axes():
    return fed([1, 1, 1, 4, 4])


@case("open dimensions")
def input_of_open_size():
    return fed([None, 1, "height", "width"])


@case("has the dimension 0")
def input_empty():
    return fed([1, 1, 0, 4])


@case("has the dimension -4")
def input_negative():
    return fed([1, 1, -4, 4])


@case("has the dimension 1099511627776")
def input_huge():
    return fed([1, 1, 2**40, 4])


@case("the image has shape [1, 134217728, 134217728]")
def input_of_many_pixels():
    return fed([1, 1, 2**27, 2**27])
