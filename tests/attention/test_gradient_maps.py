"""Gradients of the logits with respect to pixels and neurons, against torch's autograd and finite differences."""

from itertools import pairwise

import numpy as np
import pytest

from steadygaze.attention.gradients import gradient_maps, sensitivities
from steadygaze.images import read_image
from steadygaze.network.graph import Chain, lower
from steadygaze.network.model import read_model
from steadygaze.zoo import image_path, model_path
from support.networks.layered_networks import make_graph
from support.oracles.attention_by_definition import chain_gradients, pattern_at
from support.oracles.torch_gradients import autograd, from_chain, from_onnx, torch

SHAPES = ((1, 3, 4), (3, 2, 3), (1, 1, 5))


def random_chain(rng: np.random.Generator, shape: tuple[int, int, int]) -> Chain:
    sizes = [int(np.prod(shape)), *rng.integers(2, 9, size=rng.integers(0, 5)), int(rng.integers(2, 5))]
    layers = [(rng.normal(size=(after, before)), 0.3 * rng.normal(size=after)) for before, after in pairwise(sizes)]
    return lower(make_graph(layers, shape))


@pytest.mark.parametrize("name", ["M-FNN-100", "M-CNN-S", "M-FNN-400"])
def test_bundled_networks_against_autograd(name: str) -> None:
    """The torch network is made from the file's tensors, so the lowering to a chain is compared as well."""
    model = read_model(model_path(name))
    gradients = autograd(from_onnx(model_path(name)))
    rng = np.random.default_rng(1)
    digits = [read_image(image_path(f"mnist:{69990 + i}")).pixels for i in range(4)]
    images = np.stack([*digits, *rng.random((3, *model.input_shape)), np.clip(digits[0] + 0.37, 0, 1)])
    found = gradient_maps(model.chain, pattern_at(model.chain, images.reshape(len(images), -1)))
    expected = np.stack([gradients(image) for image in images]).reshape(found.shape)
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
    assert len({row.tobytes() for row in found}) == len(images), "images that share a map test less than they seem to"


@pytest.mark.parametrize("seed", range(20))
def test_small_chains_against_autograd(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    chain = random_chain(rng, shape)
    gradients = autograd(from_chain(chain))
    images = rng.random((5, *shape))
    bits = pattern_at(chain, images.reshape(5, -1))
    expected = np.stack([gradients(image) for image in images])
    found = gradient_maps(chain, bits).reshape(-1, *expected.shape[1:])
    assert np.allclose(found, expected if bits else expected[:1], rtol=0, atol=1e-12)
    plain = chain_gradients(chain, shape)
    assert np.allclose(expected, np.stack([plain(image) for image in images]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_small_chains_against_finite_differences(seed: int) -> None:
    """Inside a region the logits are affine, so a central difference is exact up to rounding."""
    rng = np.random.default_rng([seed, 1])
    shape = SHAPES[seed % len(SHAPES)]
    chain = random_chain(rng, shape)
    pixels, step = rng.random(int(np.prod(shape))), 1e-6
    moved = pixels + step * np.concatenate([np.eye(len(pixels)), -np.eye(len(pixels))])
    patterns = [np.vstack([layer]) for layer in pattern_at(chain, moved)]
    own = pattern_at(chain, pixels[None])
    assert all((layer == ours).all() for layer, ours in zip(patterns, own, strict=True)), "the step crosses a kink"
    logits = chain.preactivations(moved)[-1]
    slopes = (logits[: len(pixels)] - logits[len(pixels) :]).T / (2 * step)
    found = gradient_maps(chain, own)[0]
    assert np.allclose(found, slopes, rtol=0, atol=1e-8 * max(1.0, np.abs(found).max()))


@pytest.mark.parametrize("seed", range(6))
def test_sensitivities_are_gradients_with_respect_to_every_layer(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    sizes = [6, 5, 4, 3]
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(sizes)]
    chain = lower(make_graph(layers, (1, 2, 3)))
    pixels = rng.random((1, 6))
    values = [torch.from_numpy(pixels).requires_grad_()]
    for affine in chain.maps:
        last = values[-1] if len(values) == 1 else torch.relu(values[-1])
        values.append(last @ torch.from_numpy(affine.matrix.copy()).T + torch.from_numpy(affine.bias.copy()))
    bits = pattern_at(chain, pixels)
    found = sensitivities(chain, bits)
    assert len(found) == 3
    for j in range(3):
        expected = torch.autograd.grad(values[-1][0, j], values[:-1], retain_graph=True)
        for part, whole in zip(found, expected, strict=True):
            assert np.allclose(part[0, j], whole[0].numpy(), rtol=0, atol=1e-12)


def test_an_inactive_neuron_stops_the_gradient() -> None:
    """h1 = ReLU(x1 − 1/2), h2 = ReLU(x2); logits (h1 + h2, 2 h1): at (1/2, 1) the neuron on its kink is inactive."""
    layers = [(np.eye(2), np.array([-0.5, 0.0])), (np.array([[1.0, 1.0], [2.0, 0.0]]), np.zeros(2))]
    chain = lower(make_graph(layers, (1, 1, 2)))
    bits = pattern_at(chain, np.array([[0.5, 1.0], [0.75, 1.0], [0.25, 0.0]]))
    assert gradient_maps(chain, bits).tolist() == [[[0, 1], [0, 0]], [[1, 1], [2, 0]], [[0, 0], [0, 0]]]
