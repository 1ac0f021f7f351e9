"""The bundled networks and images are those of the manifest, meet its promises, and are found by name."""

import doctest
import hashlib
import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image

from steadygaze import zoo
from steadygaze.errors import ImageError, ModelError

SCRIPTS = Path(__file__).resolve().parents[1] / "benchmarks" / "zoo"
NEURONS = {"FNN-100": 100, "FNN-200": 200, "FNN-400": 400, "FNN-800": 800, "CNN-S": 2028, "CNN-M": 14824}
OTHERS = {"M-MAXPOOL": 3410, "M-RESNET": 3136, "C-RESNET": 6272}
PLAIN = ["M-FNN-100-plain", "M-CNN-S-plain"]
ON_OBJECT = ["M-FNN-100-object", "M-CNN-S-object"]
PAPER = [f"{letter}-{size}" for letter in "MF" for size in NEURONS]
CHAINS = [*PAPER, *PLAIN, *ON_OBJECT]
NAMES = [*CHAINS, *OTHERS]
DATASETS = {"M": "mnist", "F": "fashion", "C": "colour"}
LOWEST_ACCURACY = {"mnist": 0.96, "fashion": 0.84, "colour": 0.96}


@pytest.fixture
def load_script(monkeypatch: pytest.MonkeyPatch) -> Iterator:
    """Import a module of benchmarks/zoo by name, and forget it and its neighbours afterwards."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    before = set(sys.modules)

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    for name in {path.stem for path in SCRIPTS.glob("*.py")} & (set(sys.modules) - before):
        del sys.modules[name]


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def pixels(dataset: str) -> np.ndarray:
    own = [image.path for image in zoo.images() if image.reference.startswith(f"{dataset}:")]
    values = np.stack([np.asarray(Image.open(path), dtype=np.float32) / 255 for path in own])
    return values[:, None] if values.ndim == 3 else np.moveaxis(values, 3, 1)


def counted_neurons(path: Path) -> int:
    """Number of ReLUs and of windows, by the shapes that ONNX infers for the results of their nodes."""
    graph = onnx.shape_inference.infer_shapes(onnx.load(path), strict_mode=True).graph
    shapes = {value.name: [axis.dim_value for axis in value.type.tensor_type.shape.dim] for value in graph.value_info}
    bends = [node for node in graph.node if node.op_type in ("Relu", "MaxPool")]
    return sum(int(np.prod(shapes[node.output[0]][1:])) for node in bends)


def test_all_networks_are_bundled() -> None:
    assert sorted(model.name for model in zoo.models()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
class TestModel:
    def test_file_is_the_one_of_the_manifest(self, name: str) -> None:
        [model] = [model for model in zoo.models() if model.name == name]
        assert hashlib.sha256(model.path.read_bytes()).hexdigest() == model.sha256
        assert zoo.model_path(name) == model.path

    def test_has_the_neurons_of_the_paper_or_of_its_layout(self, name: str) -> None:
        [model] = [model for model in zoo.models() if model.name == name]
        size = name[2:].removesuffix("-plain").removesuffix("-object")
        expected = OTHERS[name] if name in OTHERS else NEURONS[size]
        assert model.neurons == counted_neurons(model.path) == expected

    def test_is_small(self, name: str) -> None:
        if name not in PAPER:
            assert zoo.model_path(name).stat().st_size < 2e6

    def test_is_accurate_and_says_how_it_was_trained(self, name: str) -> None:
        [model] = [model for model in zoo.models() if model.name == name]
        assert LOWEST_ACCURACY[model.dataset] <= model.accuracy < 1
        assert model.dataset == DATASETS[name[0]]
        training = "augmented, L1 0.0001" + (", off-object 0.3" if name in ON_OBJECT else "")
        assert model.training == ("plain" if name in PLAIN else training)

    def test_classifies_the_bundled_images(self, name: str) -> None:
        [model] = [model for model in zoo.models() if model.name == name]
        images = pixels(model.dataset)
        truth = [
            zoo.true_label(image.reference) for image in zoo.images() if image.reference.startswith(f"{model.dataset}:")
        ]
        runner = session(model.path)
        [together] = runner.run(None, {"image": images})
        [alone] = runner.run(None, {"image": images[:1]})
        assert together.shape == (10, 10)
        np.testing.assert_allclose(alone[0], together[0], atol=1e-4)
        # another network's file, or other preprocessing, would get about one in ten right
        assert (together.argmax(axis=1) == truth).sum() >= 7

    def test_is_written_with_plain_operators(self, name: str) -> None:
        model = onnx.load(zoo.model_path(name))
        onnx.checker.check_model(model)
        assert model.opset_import[0].version == 13
        kinds = {node.op_type for node in model.graph.node}
        assert kinds <= {"Flatten", "Gemm", "Relu", "Conv"} | {"MaxPool" if "MAXPOOL" in name else "Add"}
        assert ("MaxPool" in kinds, "Add" in kinds) == ("MAXPOOL" in name, "RESNET" in name)
        assert all(node.name for node in model.graph.node)


def test_images_are_those_of_the_manifest() -> None:
    references = [f"{dataset}:{index}" for dataset in DATASETS.values() for index in range(69990, 70000)]
    assert [image.reference for image in zoo.images()] == references
    for image in zoo.images():
        assert hashlib.sha256(image.path.read_bytes()).hexdigest() == image.sha256
        assert zoo.image_path(image.reference) == image.path
        with Image.open(image.path) as picture:
            mode = "RGB" if image.reference.startswith("colour:") else "L"
            assert (picture.mode, picture.size, picture.format) == (mode, (28, 28), "PNG")


def test_coloured_digits_are_those_of_mnist() -> None:
    for index in range(69990, 70000):
        assert zoo.true_label(f"colour:{index}") == zoo.true_label(f"mnist:{index}")


def test_image_and_its_label_are_known_ones() -> None:
    """Image 69990 is a seven with 643 black pixels."""
    assert zoo.true_label("mnist:69990") == 7
    assert int((np.asarray(Image.open(zoo.image_path("mnist:69990"))) == 0).sum()) == 643


def test_class_names() -> None:
    assert zoo.class_names("mnist") == tuple("0123456789")
    assert zoo.class_names("fashion")[0] == "T-shirt/top"
    assert len(set(zoo.class_names("fashion"))) == 10
    assert zoo.class_names("colour") == zoo.class_names("mnist")
    with pytest.raises(ImageError, match=r"'cifar'.*mnist, fashion, colour"):
        zoo.class_names("cifar")


@pytest.mark.parametrize(
    ("wrong", "meant"), [("M-FNN-10", "M-FNN-100"), ("m-cnn-s", "M-CNN-S"), ("F_FNN_800", "F-FNN-800")]
)
def test_unknown_network_gets_the_nearest_name(wrong: str, meant: str) -> None:
    with pytest.raises(
        ModelError, match=f"{wrong!r}.*Did you mean {meant}\\?.*Bundled: M-FNN-100, .*\\.onnx file"
    ) as caught:
        zoo.model_path(wrong)
    assert "\n" not in str(caught.value)


def test_network_unlike_any_gets_no_guess() -> None:
    with pytest.raises(ModelError, match=r"no bundled network '\.\./x'\. Bundled: "):
        zoo.model_path("../x")


@pytest.mark.parametrize("wrong", ["mnist:5", "mnist:", "fashion:70000", "cifar:69990", "", "../69990"])
def test_unknown_image_says_which_exist(wrong: str) -> None:
    expected = (
        f"no bundled image {wrong!r}. Bundled: mnist:69990 to mnist:69999, fashion:69990 to fashion:69999, "
        "colour:69990 to colour:69999."
    )
    for ask in (zoo.image_path, zoo.true_label):
        with pytest.raises(ImageError, match=re.escape(expected)):
            ask(wrong)


def test_is_reference() -> None:
    assert zoo.is_reference("fashion:1")
    assert not any(zoo.is_reference(text) for text in ("mnist", "mnist.png", "C:69990", ""))


def test_layouts_have_the_neurons_of_the_paper(load_script) -> None:
    layouts = load_script("layouts")
    assert {name: layout.neurons for name, layout in layouts.LAYOUTS.items()} == NEURONS
    assert {name: layout.neurons for name, layout in layouts.OTHERS.items()} == OTHERS
    assert sorted(layouts.NAMES) == sorted(NAMES)
    assert doctest.testmod(layouts).failed == 0
    for model in zoo.models():
        recipe = layouts.RECIPES[model.name]
        assert (recipe.seed, recipe.epochs) == (model.seed, model.epochs)
        assert (recipe.layout.describe(), recipe.describe_training()) == (model.layers, model.training)


def test_idx_files_are_read_and_damaged_ones_refused(load_script, tmp_path: Path) -> None:
    idx = load_script("idx")
    file = tmp_path / "images"
    file.write_bytes(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6]))
    assert idx.read_idx(file).tolist() == [[1, 2, 3], [4, 5, 6]]
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(SystemExit, match="cut short"):
        idx.read_idx(file)
    with pytest.raises(SystemExit, match=r"no such file, nor absent\.gz"):
        idx.read_idx(tmp_path / "absent")


@pytest.mark.parametrize("kind", ["chain", "max pooling", "residual", "residual in colour"])
def test_export_equals_torch(load_script, tmp_path: Path, kind: str) -> None:
    torch = pytest.importorskip("torch")
    train, export, layouts = (load_script(name) for name in ("train", "export", "layouts"))
    torch.manual_seed(0)
    conv, pool, block = layouts.Conv, layouts.MaxPool, layouts.Residual
    layout = {
        "chain": layouts.Layout((conv(2), conv(3)), (5, 4)),
        "max pooling": layouts.Layout((conv(2, kernel=5), pool(), conv(3), pool(3)), (5,)),
        "residual": layouts.Layout((conv(2, stride=2, padding=1), block(2), block(3, stride=2), block(4), block(4))),
        "residual in colour": layouts.Layout((block(2, stride=3), pool(2)), (4,), colours=3),
    }[kind]
    model = train.network(layout)
    weights = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in train.weighted(model)]
    onnx.save(export.build("tiny", layout, weights), tmp_path / "tiny.onnx")
    shape = (4, 28, 28) if layout.colours == 1 else (4, 28, 28, 3)
    images = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    inputs = images[:, None] if layout.colours == 1 else images.transpose(0, 3, 1, 2)
    with torch.no_grad():
        expected = model(torch.from_numpy(inputs.astype(np.float32) / 255)).numpy()
    np.testing.assert_allclose(export.logits(tmp_path / "tiny.onnx", images), expected, atol=1e-5)
    assert counted_neurons(tmp_path / "tiny.onnx") == layout.neurons


@pytest.mark.parametrize("name", CHAINS)
def test_the_files_of_chains_are_written_byte_by_byte(load_script, name: str) -> None:
    """The exporter gives the bundled bytes for the bundled weights, so training again can give the same hashes."""
    export, layouts = load_script("export"), load_script("layouts")
    tensors = [onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(zoo.model_path(name)).graph.initializer]
    weights = list(zip(tensors[::2], tensors[1::2], strict=True))
    model = export.build(name, layouts.RECIPES[name].layout, weights)
    assert model.SerializeToString() == zoo.model_path(name).read_bytes()


def test_coloured_digits(load_script) -> None:
    """The digit is brighter than its ground, or darker, in every channel, and equal seeds give equal images."""
    colour = load_script("colour")
    digits = np.zeros((50, 28, 28), dtype=np.uint8)
    digits[:, 8:20, 12:16] = 255
    images = colour.coloured(digits, 3)
    assert (images.shape, images.dtype) == ((50, 28, 28, 3), np.uint8)
    np.testing.assert_array_equal(images, colour.coloured(digits, 3))
    assert (images != colour.coloured(digits, 4)).any(axis=(1, 2, 3)).all()
    ink, ground = images[:, 8:20, 12:16].reshape(50, -1, 3), images[:, :, :10].reshape(50, -1, 3)
    is_brighter = (ink.min(axis=1) > ground.max(axis=1)).all(axis=1)
    is_darker = (ink.max(axis=1) < ground.min(axis=1)).all(axis=1)
    assert (is_brighter | is_darker).all()
    assert 10 < is_brighter.sum() < 40
    assert (ground.max(axis=1) - ground.min(axis=1)).mean() > 40  # textured: more than the noise of ±10


def test_augmentation_is_the_perturbation(load_script) -> None:
    """On a black image it leaves a uniform ground with at most one brighter 4×4 patch."""
    torch = pytest.importorskip("torch")
    draw = load_script("augment").draw
    out = draw(200, 28, 28, torch.Generator().manual_seed(0)).apply(torch.zeros(200, 1, 28, 28)).numpy()
    ground = out.min(axis=(1, 2, 3), keepdims=True)
    brighter = (out > ground).sum(axis=(1, 2, 3))
    assert set(brighter) == {0, 16}
    assert 0 == ground.min() < ground.max() <= 0.5
    line = torch.zeros(200, 1, 28, 28)
    line[:, :, 14] = 1
    moved = draw(200, 28, 28, torch.Generator().manual_seed(1)).apply(line).numpy()
    assert moved.min() >= 0
    assert moved.max() <= 1
    is_unlit = moved[:, 0, 0, :].max(axis=1) == 0
    rows = set(np.nonzero(np.median(moved[is_unlit], axis=3))[2])
    assert rows == {13, 14, 15}


def test_a_mask_moves_with_its_image_and_leaves_the_patch_out(load_script) -> None:
    """An image that is its own mask: where brightness and patch add nothing, both stay equal."""
    torch = pytest.importorskip("torch")
    own = torch.zeros(300, 1, 28, 28)
    own[:, :, 10:14, 5:9] = 1
    perturbation = load_script("augment").draw(300, 28, 28, torch.Generator().manual_seed(0))
    mask, image = perturbation.move(own).numpy(), perturbation.apply(own).numpy()
    added = (perturbation.density * perturbation.patch + perturbation.brightness).numpy()
    np.testing.assert_allclose(image, np.clip(mask + added, 0, 1), atol=1e-6)
    weights = mask[:, 0, 8:16, 6]
    np.testing.assert_allclose(weights.sum(axis=1), 4, atol=1e-5)
    assert set(np.nonzero(weights)[1]) == set(range(1, 7))
    assert mask[:, :, :, 9:].max() == mask[:, :, :9].max() == 0


def test_mask_of_a_digit(load_script) -> None:
    """Pixels above 0.2 in any channel, grown by one pixel in eight directions, also at the edge of the image."""
    torch = pytest.importorskip("torch")
    images = torch.zeros(3, 2, 5, 5)
    images[0, 1, 2, 3] = 0.21
    images[1, :, 2, 2] = 0.2
    images[2, 0, 0, 0], images[2, 1, 4, 4] = 1, 1
    masks = load_script("on_object").object_mask(images)
    assert masks.shape == (3, 1, 5, 5)
    expected = np.zeros((3, 5, 5))
    expected[0, 1:4, 2:5] = 1
    expected[2, :2, :2] = expected[2, 3:, 3:] = 1
    np.testing.assert_array_equal(masks[:, 0].numpy(), expected)


@pytest.mark.parametrize("is_augmented", [False, True])
def test_penalty_of_a_linear_network(load_script, is_augmented: bool) -> None:
    """Its gradient is the row of the image's class, so the share beside the moved mask is known, and its derivative."""
    torch = pytest.importorskip("torch")
    train, layouts, augment = load_script("train"), load_script("layouts"), load_script("augment")
    torch.manual_seed(0)
    model = train.network(layouts.Layout())
    recipe = replace(layouts.RECIPES["M-FNN-100-object"], is_augmented=is_augmented, object_penalty=0.5)
    images, masks = torch.zeros(20, 1, 28, 28), torch.zeros(20, 1, 28, 28)
    images[:, 0, 3, 4], masks[:, 0, 2:5, 3:6] = 1, 1
    labels = torch.arange(20) % 10
    error, penalty = train.losses(model, recipe, images.clone(), labels, torch.Generator().manual_seed(1))
    if is_augmented:
        drawn = augment.draw(20, 28, 28, torch.Generator().manual_seed(1))
        images, masks = drawn.apply(images), drawn.move(masks)
        assert len(set(masks[:, 0, 1, 4].tolist())) > 2  # some move up, by different lengths
    weight = train.weighted(model)[0].weight
    rows = np.abs(weight.detach().numpy().astype(float)).reshape(10, 28, 28)[labels]
    on, whole = (rows * masks[:, 0].numpy()).sum(axis=(1, 2)), rows.sum(axis=(1, 2))
    expected = 0.5 * (1 - on / whole).mean() + recipe.weight_penalty * rows[:10].sum()
    assert penalty.item() == pytest.approx(expected, rel=1e-5)
    assert error.item() == pytest.approx(torch.nn.functional.cross_entropy(model(images), labels).item(), rel=1e-5)
    [slopes] = torch.autograd.grad(penalty, [weight])
    # far from the object: d/dw of 1 − on/whole is sign(w)·on/whole², for the two images of the class
    slope = 0.5 / 20 * (on / whole**2)[labels == 7].sum() + recipe.weight_penalty
    far = slopes.reshape(10, 28, 28)[7, 20, 20].item()
    assert far == pytest.approx(slope * np.sign(weight.detach().reshape(10, 28, 28)[7, 20, 20].item()), rel=1e-4)


def test_a_gradient_of_zero_costs_nothing(load_script) -> None:
    torch = pytest.importorskip("torch")
    share = load_script("on_object").share_beside(torch.zeros(1, 1, 4, 4), torch.zeros(1, 1, 4, 4))
    assert share.tolist() == [0]


@pytest.mark.parametrize("base", ["M-FNN-100", "M-CNN-S"])
def test_siblings_differ_in_how_much_they_look_at_the_object(base: str) -> None:
    pytest.importorskip("torch")
    sampling = importlib.import_module("object_shares")
    plain, own, on_object = (sampling.sampled_shares(base + kind, "BP", 0.5, 20) for kind in ("-plain", "", "-object"))
    assert np.median(plain) < np.median(own) < np.median(on_object)
    # with a threshold of 0.5: kept at every theta of every image, but at none of most images by the plain sibling
    assert on_object.min() > 0.5
    assert np.median((plain >= 0.5).mean(axis=1)) == 0
