"""Layouts and preprocessing: canonical pixels in [0,1] reach the file in its own form."""

import numpy as np
import pytest
from onnx import helper

from steadygaze.errors import LayoutError, ModelError, OptionError
from steadygaze.network.model import check_agreement, read_model
from steadygaze.question import make_question


def linear(pixels, classes=3):
    """Flatten and one Gemm."""
    weights = {"w": np.random.default_rng(4).normal(size=(classes, pixels)).astype(np.float32)}
    flatten = helper.make_node("Flatten", ["image"], ["f"])
    return [flatten, helper.make_node("Gemm", ["f", "w"], ["logits"], transB=1)], weights


@pytest.mark.parametrize(
    "dims,shape,order",
    [
        ([1, 1, 4, 4], (1, 4, 4), "chw"),
        ([None, 3, 4, 5], (3, 4, 5), "chw"),
        (["batch", 5, 4, 3], (3, 5, 4), "hwc"),
        ([-1, 6, 6, 1], (1, 6, 6), "hwc"),
        ([1, 3, 5, 3], (3, 5, 3), "chw"),
        ([1, 2, 7, 9], (2, 7, 9), "chw"),
        ([1, 16], (1, 4, 4), "chw"),
        ([1, 16, 1], (1, 4, 4), "chw"),
        ([1, 1, 16], (1, 4, 4), "chw"),
        (["N", 48], (3, 4, 4), "chw"),
        ([1, 5, 6], (1, 5, 6), "chw"),
    ],
)
def test_layouts(save, run, dims, shape, order):
    path = save(*linear(int(np.prod(shape))), dims)
    model = read_model(path)
    assert model.input_shape == shape
    images = np.random.default_rng(1).random((4, *shape))
    arranged = images if order == "chw" else images.transpose(0, 2, 3, 1)
    expected = run(path, arranged.reshape(4, *(np.array(arranged.shape[1:]) if len(dims) == 4 else dims[1:])))
    np.testing.assert_allclose(model.graph.logits(images), expected, atol=1e-5)
    np.testing.assert_allclose(model.replay.logits(images), expected, atol=1e-5)
    check_agreement(model, images[0])


def test_image_shape_decides(save):
    nodes, weights = linear(24)
    assert read_model(save(nodes, weights, [1, 24]), image_shape=(2, 3, 4)).input_shape == (2, 3, 4)
    assert read_model(save(nodes, weights, [1, 24]), image_shape=(4, 6)).input_shape == (1, 4, 6)
    assert read_model(save(nodes, weights, [1, 3, 2, 4]), image_shape=(4, 3, 2)).input_shape == (4, 3, 2)
    assert read_model(save(nodes, weights, [1, 1, "h", "w"]), image_shape=(1, 4, 6)).input_shape == (1, 4, 6)
    assert read_model(save(nodes, weights, [1, "n"]), image_shape=(1, 4, 6)).input_shape == (1, 4, 6)
    with pytest.raises(ModelError, match="but an image of shape"):
        read_model(save(nodes, weights, [1, 24]), image_shape=(1, 5, 5))
    with pytest.raises(ModelError, match="does not fit image_shape"):
        read_model(save(nodes, weights, [1, 3, 2, 4]), image_shape=(1, 5, 5))
    for bad in ((24,), (0, 4, 6), (1, -4, -6)):
        with pytest.raises(OptionError, match="image_shape is"):
            read_model(save(nodes, weights, [1, 24]), image_shape=bad)


def test_flat_colour_says_its_order(save):
    assert any("channel, row, column" in note for note in read_model(save(*linear(48), [1, 48])).notes)
    assert read_model(save(*linear(16), [1, 16])).notes == ()


@pytest.mark.parametrize("dims", [[1, 3, 4, 4], [1, 4, 4, 3], [1, 48]])
@pytest.mark.parametrize("scale", [1.0, 255.0])
def test_preprocessing_per_channel(save, run, dims, scale):
    path = save(*linear(48), dims)
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
    model = read_model(path, image_shape=(3, 4, 4), mean=mean, std=std, scale=scale)
    images = np.random.default_rng(1).random((4, 3, 4, 4))
    prepared = (images * scale - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    if dims == [1, 4, 4, 3]:
        prepared = prepared.transpose(0, 2, 3, 1)
    expected = run(path, prepared.reshape(4, *dims[1:]))
    size = np.abs(expected).max()
    np.testing.assert_allclose(model.graph.logits(images), expected, atol=1e-6 * size)
    np.testing.assert_allclose(model.replay.logits(images), expected, atol=1e-6 * size)
    np.testing.assert_allclose(model.chain.preactivations(images.reshape(4, -1))[-1], expected, atol=1e-6 * size)
    assert check_agreement(model, images[0]).images == 17


def test_preprocessing_by_one_number(save):
    path = save(*linear(48), [1, 3, 4, 4])
    one = read_model(path, mean=0.5, std=0.25)
    three = read_model(path, mean=[0.5] * 3, std=[0.25] * 3)
    image = np.random.default_rng(1).random((1, 3, 4, 4))
    np.testing.assert_array_equal(one.graph.logits(image), three.graph.logits(image))


@pytest.mark.parametrize(
    "options",
    [
        {"std": 0.0},
        {"std": -1.0},
        {"std": np.nan},
        {"std": "wide"},
        {"mean": np.inf},
        {"mean": (0.1, 0.2)},
        {"mean": [[0.1]]},
        {"scale": 0.0},
        {"scale": -255.0},
    ],
)
def test_preprocessing_that_makes_no_sense(save, options):
    path = save(*linear(48), [1, 3, 4, 4])
    with pytest.raises(OptionError, match=next(iter(options))) as caught:
        read_model(path, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"mean": np.full(3, 0.5)}, {"std": [0.5] * 3}, {"scale": 255.0}, {"output": "logits"}], ids=list
)
def test_a_model_that_was_read_takes_no_options_any_more(save, options):
    model = read_model(save(*linear(48), [1, 3, 4, 4]))
    image = np.random.default_rng(2).random((3, 4, 4))
    make_question(model, image, ["brightness:0..0.1"], mean=None, scale=1.0)
    with pytest.raises(OptionError, match="mean, std, scale and output apply to model files only"):
        make_question(model, image, ["brightness:0..0.1"], **options)


def test_names_and_hash(save):
    path = save(*linear(16), [1, 16], name="digits.v2.onnx")
    model = read_model(str(path))
    assert (model.name, model.path, model.classes) == ("digits.v2", path, 3)
    assert len(model.sha256) == 64


def test_an_open_batch_that_is_not_open_inside(save, run):
    """A file may call its batch open and still reshape to one row: then the images run one by one."""
    nodes, weights = linear(16)
    nodes[0] = helper.make_node("Reshape", ["image", "s"], ["f"])
    path = save(nodes, {**weights, "s": np.array([1, 16])}, ["batch", 1, 4, 4])
    images = np.random.default_rng(1).random((5, 1, 4, 4))
    np.testing.assert_allclose(read_model(path).replay.logits(images), run(path, images), atol=1e-6)


def test_an_open_batch_that_mixes_its_images(save, run):
    """A mean over the batch axis makes two images at once something else than each alone."""
    nodes, weights = linear(16)
    nodes.insert(0, helper.make_node("ReduceMean", ["image"], ["m"], axes=[0], keepdims=1))
    nodes[1] = helper.make_node("Flatten", ["m"], ["f"])
    path = save(nodes, weights, ["batch", 1, 4, 4])
    images = np.random.default_rng(1).random((5, 1, 4, 4))
    np.testing.assert_allclose(read_model(path).replay.logits(images), run(path, images), atol=1e-6)


def test_replay_of_no_images_and_of_many(save):
    model = read_model(save(*linear(16), ["batch", 1, 4, 4]))
    images = np.random.default_rng(1).random((300, 1, 4, 4))
    assert model.replay.logits(images[:0]).shape == (0, 3)
    np.testing.assert_allclose(model.replay.logits(images), model.graph.logits(images), atol=1e-5)
    with pytest.raises(ValueError, match="expected"):
        model.replay.logits(images[0])


@pytest.mark.parametrize("dims", [[1, 1, None, None], [None, None, 4, 4], [1, None]])
def test_open_sizes_need_an_image_shape_and_a_note_says_so(save, dims):
    with pytest.raises(LayoutError, match="open dimensions; only the batch may be open"):
        make_question(save(*linear(16), dims), np.zeros((1, 4, 4)), "brightness:0..0.1")
    model = read_model(save(*linear(16), dims), image_shape=(1, 4, 4))
    assert model.input_shape == (1, 4, 4)
    assert [note for note in model.notes if "leaves sizes open: the answer is about images of shape [1, 4, 4]" in note]
    assert not read_model(save(*linear(16), [None, 1, 4, 4]), image_shape=(1, 4, 4)).notes
