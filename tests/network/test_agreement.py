"""The self-check passes correct models and stops planted bugs; files from other tools are read correctly."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from steadygaze.attention.inconsistency import original_maps
from steadygaze.errors import InternalError, ModelError
from steadygaze.network import graph as lowering
from steadygaze.network.graph import AffineMap, Chain, check_lowered, lower
from steadygaze.network.model import check_agreement, read_model, sample_images
from steadygaze.network.operators import MatMul, Transpose
from steadygaze.network.replay import FLOAT32, estimate_rounding
from steadygaze.network.steps import ScaleStep
from steadygaze.network.windows import Conv
from steadygaze.question import make_question

SHARED = Path(__file__).parents[2].parent / "shared" / "models"
DIMS = [1, 1, 6, 6]


def tampered(model, change, *, also_chain=True):
    """Model whose graph has `change(operator)` in place of every operator for which that is not None."""
    nodes = tuple(replace(n, operator=change(n.operator) or n.operator) for n in model.graph.nodes)
    graph = replace(model.graph, nodes=nodes)
    return replace(model, graph=graph, chain=lower(graph) if also_chain else model.chain)


@pytest.fixture
def convolutional(save):
    """Conv with BatchNormalization, ReLU, Gemm: (1, 6, 6) to three logits."""
    generator = np.random.default_rng(9)
    shapes = {"w": (4, 1, 3, 3), "s": (4,), "b": (4,), "m": (4,), "v": (4,), "g": (3, 64), "c": (3,)}
    weights = {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    weights["v"] = np.abs(weights["v"])
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["h"]),
        helper.make_node("BatchNormalization", ["h", "s", "b", "m", "v"], ["n"]),
        helper.make_node("Relu", ["n"], ["a"]),
        helper.make_node("Flatten", ["a"], ["f"]),
        helper.make_node("Gemm", ["f", "g", "c"], ["logits"], transB=1),
    ]
    return read_model(save(nodes, weights, DIMS))


def test_an_honest_model_agrees(convolutional):
    agreement = check_agreement(convolutional, np.full((1, 6, 6), 0.5))
    assert agreement.difference < 0.1 * agreement.tolerance
    assert agreement.tolerance <= 1e-3 * agreement.scale
    assert agreement.chain_difference < 1e-13
    assert agreement.images == 17
    assert agreement == check_agreement(convolutional, np.full((1, 6, 6), 0.5))


def test_the_sample_is_fixed_and_valid():
    images = sample_images(np.full((1, 3, 3), 0.9))
    assert images.shape == (17, 1, 3, 3)
    assert (images[0] == 0.9).all() and images.min() >= 0.0 and images.max() <= 1.0
    np.testing.assert_array_equal(images, sample_images(np.full((1, 3, 3), 0.9)))


def flipped_kernel(operator):
    return replace(operator, weight=operator.weight[..., ::-1]) if isinstance(operator, Conv) else None


def moved_bias(operator):
    return replace(operator, bias=operator.bias + 1e-3) if isinstance(operator, MatMul) else None


def slightly_scaled(operator):
    return replace(operator, weight=operator.weight * (1 + 3e-4)) if isinstance(operator, MatMul) else None


@pytest.mark.parametrize("change", [flipped_kernel, moved_bias, slightly_scaled])
def test_a_planted_misreading_is_refused(convolutional, change):
    with pytest.raises(ModelError, match=r"disagree by .* tolerance") as caught:
        check_agreement(tampered(convolutional, change), np.full((1, 6, 6), 0.5))
    assert "\n" not in str(caught.value) and "small.onnx" in str(caught.value)


@pytest.fixture
def cancelling(save):
    """relu(1e6·sum) twice, subtracted again: rounding could move the logits (0, 1, 2) by far more than one."""
    weights = {"w": np.full((36, 2), 1e6, np.float32), "c": np.array([0, 1, 2], np.float32)}
    weights["g"] = np.array([[1, 1, 1], [-1, -1, -1]], np.float32)
    nodes = [
        helper.make_node("Flatten", ["image"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["a"]),
        helper.make_node("Gemm", ["a", "g", "c"], ["logits"]),
    ]
    return read_model(save(nodes, weights, DIMS))


@pytest.mark.parametrize("offset", [0.1, 5e-4])
def test_the_tolerance_is_never_so_wide_that_a_misread_bias_fits(cancelling, offset):
    """Rounding may explain 0.1 to first order; 5e-4 lies within the tolerance, but on every image."""
    image = np.full((1, 6, 6), 0.5)
    assert estimate_rounding(cancelling.graph, image.ravel(), FLOAT32).effect > 0.2
    assert check_agreement(cancelling, image).tolerance == pytest.approx(2e-3, rel=1e-6)

    def change(operator):
        return replace(operator, bias=operator.bias + offset) if getattr(operator, "bias", np.zeros(1)).any() else None

    with pytest.raises(ModelError, match="disagree"):
        check_agreement(tampered(cancelling, change), image)


def test_a_wrong_image_order_is_refused(save):
    weights = {"w": np.random.default_rng(0).normal(size=(3, 75)).astype(np.float32)}
    nodes = [helper.make_node("Flatten", ["image"], ["f"]), helper.make_node("Gemm", ["f", "w"], ["l"], transB=1)]
    model = read_model(save(nodes, weights, [1, 5, 5, 3]))

    def change(operator):
        return Transpose((2, 1, 0)) if isinstance(operator, Transpose) else None

    with pytest.raises(ModelError, match="disagree"):
        check_agreement(tampered(model, change), np.zeros((3, 5, 5)))


def test_a_chain_that_differs_from_the_graph_is_an_internal_error(convolutional):
    maps = list(convolutional.chain.maps)
    maps[0] = AffineMap(maps[0].matrix, maps[0].bias + 1e-7)
    with pytest.raises(InternalError, match=r"small\.onnx: .* affine maps differ by"):
        check_lowered(convolutional.graph, Chain(tuple(maps)), "small.onnx")
    identity = AffineMap(np.eye(3), np.zeros(3))
    with pytest.raises(InternalError, match="differ in the shapes of their layers"):
        check_lowered(convolutional.graph, Chain((*maps, identity)), "small.onnx")


def test_lowered_maps_are_compared_with_the_graph(convolutional, monkeypatch):
    wrong = Chain(tuple(AffineMap(affine.matrix, affine.bias + 1e-7) for affine in lower(convolutional.graph).maps))
    monkeypatch.setattr(lowering, "lower", lambda graph: wrong)
    with pytest.raises(InternalError, match="affine maps differ"):
        _ = convolutional.chain.maps


def test_steps_that_differ_from_the_graph_are_an_internal_error(convolutional):
    image = np.full((1, 6, 6), 0.5)
    segments = convolutional.graph.steps
    convolutional.graph.__dict__["steps"] = (segments[0], (*segments[1], ScaleStep(np.full(3, 1 + 1e-7), np.zeros(3))))
    with pytest.raises(InternalError, match="linear steps differ by"):
        check_agreement(convolutional, image)
    convolutional.graph.__dict__["steps"] = (*segments, ())
    with pytest.raises(InternalError, match="differ in the shapes of their layers"):
        check_agreement(convolutional, image)


def test_nothing_is_lowered_before_it_is_asked_for(convolutional, monkeypatch):
    """Reading, the agreement, the label, the notes and the original map of a network too large to lower."""
    monkeypatch.setattr(lowering, "MAX_ENTRIES", 0)
    image = np.full((1, 6, 6), 0.5)
    question = make_question(convolutional, image, ["brightness"], delta=1.0)
    assert question.agreement.chain_difference < 1e-13
    assert question.label in range(3) and question.compound.hidden == (64,) and len(question.notes) >= 0
    assert original_maps(question.compound, question.attention).shape == (3, 1, 6, 6)
    with pytest.raises(ModelError, match=r"small\.onnx: .*--method refine"):
        _ = question.compound.programs


def test_logits_that_overflow_are_refused(save):
    weights = {"w": np.full((3, 36), 3e38, np.float32)}
    nodes = [helper.make_node("Flatten", ["image"], ["f"]), helper.make_node("Gemm", ["f", "w"], ["l"], transB=1)]
    with pytest.raises(ModelError, match="NaN or infinite logits"):
        check_agreement(read_model(save(nodes, weights, DIMS)), np.ones((1, 6, 6)))


@pytest.mark.parametrize("weight", [0.0, 1e-30])
def test_logits_that_are_zero_or_tiny_agree(save, weight):
    weights = {"w": np.full((3, 36), weight, np.float32)}
    nodes = [helper.make_node("Flatten", ["image"], ["f"]), helper.make_node("Gemm", ["f", "w"], ["l"], transB=1)]
    assert check_agreement(read_model(save(nodes, weights, DIMS)), np.ones((1, 6, 6))).scale <= 37 * weight


def test_half_precision_agrees_within_its_own_rounding(save, dense):
    nodes, weights = dense(pixels=36, hidden=30)
    weights = {name: value.astype(np.float16) for name, value in weights.items()}
    model = read_model(save(nodes, weights, DIMS, elem=TensorProto.FLOAT16))
    agreement = check_agreement(model, np.full((1, 6, 6), 0.5))
    assert 1e-7 < agreement.difference / agreement.scale < 2e-3

    def change(operator):
        return replace(operator, weight=operator.weight * 1.2) if isinstance(operator, MatMul) else None

    with pytest.raises(ModelError, match="disagree"):
        check_agreement(tampered(model, change), np.full((1, 6, 6), 0.5))


@pytest.mark.parametrize(
    "name,shape,sizes",
    [
        ("mnist-net_256x2.onnx", (1, 28, 28), [256, 256, 10]),
        ("cifar10_small.onnx", (3, 32, 32), [1800, 576, 128, 64, 10]),
    ],
)
def test_chains_that_others_made(name, shape, sizes):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not beside the repository")
    model = read_model(path)
    assert model.input_shape == shape and model.classes == 10
    assert [affine.bias.size for affine in model.chain.maps] == sizes
    agreement = check_agreement(model, np.random.default_rng(0).random(shape))
    assert agreement.difference < 1e-5


@pytest.mark.parametrize("name,shape", [("resnet_2b.onnx", (3, 32, 32)), ("Convnet_maxpool.onnx", (1, 28, 28))])
def test_graphs_that_others_made(name, shape):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not beside the repository")
    model = read_model(path)
    assert model.input_shape == shape and model.classes == 10
    assert check_agreement(model, np.random.default_rng(0).random(shape)).difference < 1e-4


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("folding", [True, False])
def test_a_torch_model_exported_as_the_readme_shows(tmp_path, folding):
    torch = pytest.importorskip("torch")
    nn = torch.nn
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2)]
    layers += [nn.Conv2d(4, 6, 3, stride=2, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Dropout()]
    network = nn.Sequential(*layers, nn.Linear(6 * 36, 10))
    network.train()
    for _ in range(3):
        network(torch.rand(16, 1, 28, 28))
    network.eval()
    path = tmp_path / "model.onnx"
    torch.onnx.export(network, (torch.rand(1, 1, 28, 28),), str(path), dynamo=False, do_constant_folding=folding)
    model = read_model(path)
    images = np.random.default_rng(0).random((3, 1, 28, 28))
    check_agreement(model, images[0])
    exact = network.double()(torch.from_numpy(images)).detach().numpy()
    np.testing.assert_allclose(model.graph.logits(images), exact, atol=1e-6)
    assert [affine.bias.size for affine in model.chain.maps] == [4 * 28 * 28, 6 * 6 * 6, 10]


def scaled_chain(save, factors):
    """Logits (∏ factors · x₀, 1), one layer for each factor; the first factor comes last."""
    weights, nodes, last = {}, [helper.make_node("Flatten", ["image"], ["f"])], "f"
    first = np.zeros((36, 1), np.float32)
    first[0] = 1.0
    for number, factor in enumerate(factors):
        weights[f"w{number}"] = first if number == 0 else np.array([[factor]], np.float32)
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"h{number}"]))
        nodes.append(helper.make_node("Relu", [f"h{number}"], [f"a{number}"]))
        last = f"a{number}"
    weights["g"], weights["c"] = np.array([[factors[0], 0.0]], np.float32), np.array([0.0, 1.0], np.float32)
    nodes.append(helper.make_node("Gemm", [last, "g", "c"], ["logits"]))
    return read_model(save(nodes, weights, DIMS))


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ([2.0**60, 2.0**-100, 2.0**-100, 2.0**70, 2.0**70], "values vanish in float32"),
        ([2.0**-60, 2.0**100, 2.0**100, 2.0**-70, 2.0**-70], "onnxruntime, in float32, gives NaN or infinite logits"),
    ],
)
def test_a_model_that_leaves_the_range_of_float32_is_refused_with_that_cause(save, factors, words):
    with pytest.raises(ModelError, match=words) as caught:
        check_agreement(scaled_chain(save, factors), np.full((1, 6, 6), 0.5))
    assert "float32" in str(caught.value) and "Export the model in float64" in str(caught.value)
    assert "report the file" not in str(caught.value)


def test_rounding_beyond_the_tolerance_is_named_as_the_cause(save):
    """Logits (x₀ + 2⁴⁰ x₁ − 2⁴⁰ x₁, 1): the sum loses x₀ in float32, and keeps it in float64."""
    first = np.zeros((36, 2), np.float32)
    first[0, 0], first[1, :] = 1.0, 2.0**40
    weights = {"w": first, "g": np.array([[1.0, 0.0], [-1.0, 0.0]], np.float32), "c": np.array([0, 1], np.float32)}
    nodes = [
        helper.make_node("Flatten", ["image"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["a"]),
        helper.make_node("Gemm", ["a", "g", "c"], ["logits"]),
    ]
    with pytest.raises(ModelError, match="rounding in float32 can move these logits by up to"):
        check_agreement(read_model(save(nodes, weights, DIMS)), np.full((1, 6, 6), 0.5))


def test_an_overflow_in_float64_is_refused_with_its_layer(save):
    with pytest.raises(ModelError, match="ReLU layer 12 are NaN or infinite in float64"):
        check_agreement(scaled_chain(save, [1.0] + [2.0**100] * 12), np.full((1, 6, 6), 0.5))
