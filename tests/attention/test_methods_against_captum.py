"""Every explanation method against Captum, in float64, with max pooling and a residual block, and without."""

import numpy as np
import pytest

from steadygaze.attention.methods import Method, find_methods
from steadygaze.attention.methods.gradcam import layer_names, upsample
from steadygaze.network.model import read_model

torch = pytest.importorskip("torch")
captum = pytest.importorskip("captum.attr")

SHAPE, CLASSES = (2, 9, 8), 3
TEXTS = (
    "gradient",
    "input-x-gradient",
    "smoothgrad:n=5,sigma=0.3,seed=4",
    "integrated:steps=7,baseline=0",
    "integrated:steps=3,baseline=0.4",
    "occlusion:window=3,stride=2,baseline=0.25",
    "occlusion:window=4,stride=4",
    "occlusion:window=8,stride=1",
    "gradcam:layer=LAYER",
)


@pytest.fixture(autouse=True)
def doubles(monkeypatch):
    """Captum converts weights of steps and windows to float32; here it stays in float64."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    usual = torch.get_default_dtype()
    yield lambda: torch.set_default_dtype(torch.float64)
    torch.set_default_dtype(usual)


class Pooled(torch.nn.Module):
    """A convolution, max pooling, a residual block, batch normalisation, a dense layer."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(2, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.inner = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.joined = torch.nn.ReLU()
        self.last = torch.nn.Linear(4 * 4 * 4, CLASSES)

    def forward(self, images):
        pooled = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.first(images))), 2)
        joined = self.joined(pooled + self.inner(pooled))
        return self.last(joined.flatten(1))


class Plain(torch.nn.Module):
    """Two convolutions and a dense layer."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(2, 3, 3)
        self.joined = torch.nn.ReLU()
        self.second = torch.nn.Conv2d(3, 2, 3)
        self.last = torch.nn.Linear(2 * 5 * 4, CLASSES)

    def forward(self, images):
        return self.last(torch.relu(self.second(self.joined(self.first(images)))).flatten(1))


def made(kind, seed=0):
    torch.manual_seed(seed)
    network = kind().eval()
    if isinstance(network, Pooled):
        network.norm.running_mean.normal_()
        network.norm.running_var.uniform_(0.5, 2.0)
    graph = read_model(network, image_shape=SHAPE).graph
    return network.double(), graph


def by_captum(method, network, images, target):
    """Captum's attribution (B, …) of one class at images (B, C, H, W); noises and steps are the method's own."""
    pixels, settings = torch.from_numpy(images).requires_grad_(), method.settings
    if method.name == "gradient":
        found = captum.Saliency(network).attribute(pixels, target=target, abs=False)
    elif method.name == "input-x-gradient":
        found = captum.InputXGradient(network).attribute(pixels, target=target)
    elif method.name == "smoothgrad":
        found = smooth(method, network, pixels, target)
    elif method.name == "integrated":
        found = captum.IntegratedGradients(network).attribute(
            pixels, torch.full_like(pixels, settings["baseline"]), target=target, n_steps=settings["steps"],
            method="riemann_middle",
        )  # fmt: skip
    elif method.name == "gradcam":
        found = captum.LayerGradCam(network, network.joined).attribute(pixels, target=target, relu_attributions=True)
    else:
        window, stride = settings["window"], settings["stride"]
        found = captum.Occlusion(network).attribute(
            pixels, (SHAPE[0], window, window), strides=(SHAPE[0], stride, stride), target=target,
            baselines=settings["baseline"],
        )  # fmt: skip
    return found.detach().numpy()


def smooth(method, network, pixels, target):
    class Given(captum.NoiseTunnel):
        @staticmethod
        def _add_noise_to_input(given, stdev, count):
            noises = torch.from_numpy(method.arrays["noises"].copy())
            assert len(noises) == count
            return given.repeat_interleave(count, dim=0) + noises.repeat(len(given), 1, 1, 1)

    tunnel = Given(captum.Saliency(network))
    return tunnel.attribute(pixels, nt_type="smoothgrad", nt_samples=method.settings["n"], target=target, abs=False)


@pytest.mark.parametrize("kind", [Pooled, Plain])
@pytest.mark.parametrize("text", TEXTS)
def test_maps_are_captums(kind, text, doubles):
    network, graph = made(kind)
    doubles()
    layer = next(name for name in layer_names(graph) if "joined" in name)
    method = Method.parse(text.replace("LAYER", layer)).fit(graph)
    images = np.random.default_rng(7).random((20, *SHAPE))
    ours = np.stack([method.maps(graph, image, np.arange(CLASSES)) for image in images], axis=1)
    assert np.abs(ours).max() > 0.0
    for target in range(CLASSES):
        theirs = by_captum(method, network, images, target)
        assert ours[target].shape == theirs.shape
        np.testing.assert_allclose(ours[target], theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())


def test_every_method_is_compared():
    assert {Method.parse(text).name for text in TEXTS} == set(find_methods())


def test_only_the_chosen_classes_are_explained():
    _, graph = made(Plain)
    image = np.random.default_rng(1).random(SHAPE)
    for text in TEXTS[:-1]:
        method = Method.parse(text).fit(graph)
        np.testing.assert_array_equal(
            method.maps(graph, image, np.array([2])), method.maps(graph, image, np.arange(CLASSES))[2:]
        )


@pytest.mark.parametrize(("size", "target"), [((5, 4), (9, 8)), ((1, 3), (7, 7)), ((6, 6), (6, 6)), ((8, 8), (3, 5))])
def test_maps_are_upsampled_as_by_torch(size, target):
    maps = np.random.default_rng(0).random((2, 1, *size))
    theirs = torch.nn.functional.interpolate(torch.from_numpy(maps), target, mode="bilinear", align_corners=False)
    np.testing.assert_allclose(upsample(maps, *target), theirs.numpy(), rtol=1e-12, atol=1e-12)
