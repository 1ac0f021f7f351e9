"""A second implementation of attention, by torch's autograd in float64: networks, perturbations, methods, properties.

It works in batches, and uses only the package's bundled files and the noises of SmoothGrad. docs/attention.md and the
guide give the definitions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from torch.nn import functional

Array = np.ndarray
Network = Callable[[torch.Tensor], dict[str, torch.Tensor]]
"""Images (N, C, H, W) to the results of all nodes by name; `logits` is (N, K)."""

NO_ATTENTION = 3.0
TIED = 1e-9
"""Values that differ by less than this share may be equal, and so may a weight and 0.5."""
BATCH = 64


def read_network(path: Path) -> Network:
    """Return a bundled network in float64."""
    graph = onnx.load(path).graph
    weights = {
        tensor.name: torch.from_numpy(onnx.numpy_helper.to_array(tensor).astype(np.float64))
        for tensor in graph.initializer
    }

    def run(images: torch.Tensor) -> dict[str, torch.Tensor]:
        values, named = {graph.input[0].name: images, **weights}, {}
        for node in graph.node:
            given = {one.name: list(one.ints) or one.i for one in node.attribute}
            found = _node(node.op_type, [values[name] for name in node.input], given)
            values[node.output[0]] = named[node.name] = found
        return {**named, "logits": values[graph.output[0].name]}

    return run


def _node(kind: str, inputs: Sequence[torch.Tensor], given: dict) -> torch.Tensor:
    first = inputs[0]
    if kind == "Conv":
        pads = given.get("pads", [0, 0, 0, 0])
        return torch.conv2d(first, inputs[1], inputs[2], given.get("strides", 1), pads[:2])
    if kind == "MaxPool":
        return functional.max_pool2d(first, given["kernel_shape"], given["strides"])
    if kind == "Gemm":
        return first @ inputs[1].T + inputs[2]
    if kind in ("Relu", "Flatten", "Add"):
        return {"Relu": torch.relu, "Flatten": lambda x: x.flatten(1), "Add": torch.add}[kind](*inputs)
    raise ValueError(f"no {kind} here")


@dataclass(frozen=True)
class Domain:
    """Two perturbations of an image (C, H, W): brightness, and a patch of 4×4 at (12, 12) or a shift downwards."""

    name: str
    brightest: float

    @property
    def specs(self) -> tuple[str, str]:
        """The perturbations as the package reads them."""
        other = "patch:x=12,y=12,w=4,h=4" if self.name == "BP" else "translate:dy=1"
        return f"brightness:0..{self.brightest:g}", other

    def images(self, image: Array, thetas: Array) -> Array:
        """Return the images (N, C, H, W) at thetas (N, 2)."""
        brightness, other = thetas.T[:, :, None, None, None]
        if self.name == "BP":
            patch = np.zeros(image.shape)
            patch[:, 12:16, 12:16] = 1
            return (image + other * patch + brightness).clip(0, 1)
        return (self.moved(image, thetas) + brightness).clip(0, 1)

    def moved(self, values: Array, thetas: Array) -> Array:
        """Return an array (…, H, W) of the unperturbed image, moved with the image: (N or 1, …, H, W)."""
        if self.name == "BP":
            return values[None]
        share = thetas[:, 1].reshape(-1, *(1,) * values.ndim)
        lower = np.concatenate([np.zeros_like(values[..., :1, :]), values[..., :-1, :]], axis=-2)
        return (1 - share) * values + share * lower


@dataclass(frozen=True)
class Explanation:
    """A method by name, with its settings; noises (n, C, H, W) of SmoothGrad."""

    name: str
    settings: dict
    noises: Array | None = None

    @property
    def has_image(self) -> bool:
        """Whether maps contain the image itself as a factor."""
        return self.name in ("input-x-gradient", "integrated")

    def maps(self, network: Network, images: Array, classes: Sequence[int]) -> Array:
        """Return the maps (N, K', C, h, w) of images (N, C, H, W)."""
        found = [self._batch(network, images[i : i + BATCH], classes) for i in range(0, len(images), BATCH)]
        return np.concatenate(found)

    def gradients(self, network: Network, images: Array, classes: Sequence[int]) -> Array:
        """Return the gradients (N, K', C, H, W) behind maps that have the image as a factor."""
        if self.name != "integrated":
            return _gradients(network, images, classes)
        steps, baseline = self.settings["steps"], self.settings["baseline"]
        middles = [(k + 0.5) / steps for k in range(steps)]
        return np.mean([_gradients(network, baseline + s * (images - baseline), classes) for s in middles], axis=0)

    def _batch(self, network: Network, images: Array, classes: Sequence[int]) -> Array:
        if self.has_image:
            return self.factor(images) * self.gradients(network, images, classes)
        if self.name == "smoothgrad":
            assert self.noises is not None
            return np.mean([_gradients(network, images + noise, classes) for noise in self.noises], axis=0)
        if self.name == "gradcam":
            return self._cam(network, images, classes)
        if self.name == "occlusion":
            return self._occluded(network, images, classes)
        return _gradients(network, images, classes)

    def factor(self, images: Array) -> Array:
        """Return the factor (N, 1, C, H, W) of gradients."""
        return images[:, None] - self.settings.get("baseline", 0.0)

    def _cam(self, network: Network, images: Array, classes: Sequence[int]) -> Array:
        values = network(torch.tensor(images, requires_grad=True))
        layer, found = values[self.settings["layer"]], []
        for number in classes:
            [slopes] = torch.autograd.grad(values["logits"][:, number].sum(), layer, retain_graph=True)
            weighted = (slopes.mean(dim=(2, 3), keepdim=True) * layer).sum(dim=1, keepdim=True)
            found.append(torch.relu(weighted).detach().numpy())
        return np.stack(found, axis=1)

    def _occluded(self, network: Network, images: Array, classes: Sequence[int]) -> Array:
        window, stride, baseline = (self.settings[name] for name in ("window", "stride", "baseline"))
        height, width = images.shape[2:]
        with torch.no_grad():
            whole = network(torch.tensor(images))["logits"].numpy()
            total, times = np.zeros((len(images), len(classes), 1, height, width)), np.zeros((height, width))
            for top in range(0, height - window + stride, stride):
                for left in range(0, width - window + stride, stride):
                    place = np.s_[..., top : top + window, left : left + window]
                    blank = images.copy()
                    blank[place] = baseline
                    lost = (whole - network(torch.from_numpy(blank))["logits"].numpy())[:, list(classes)]
                    total[place] += lost[:, :, None, None, None]
                    times[place] += 1
        return np.repeat(total / times, images.shape[1], axis=2)


def _gradients(network: Network, images: Array, classes: Sequence[int]) -> Array:
    """Return the gradients (N, K', C, H, W) of logits with respect to the pixels."""
    inputs = torch.tensor(images, requires_grad=True)
    logits = network(inputs)["logits"]
    parts = [torch.autograd.grad(logits[:, number].sum(), inputs, retain_graph=True)[0].numpy() for number in classes]
    return np.stack(parts, axis=1)


def enlarged(maps: Array, size: tuple[int, int]) -> Array:
    """Return maps (N, K', C, h, w) at another resolution, bilinearly."""
    flat = torch.from_numpy(np.ascontiguousarray(maps)).flatten(0, 1)
    return (
        functional.interpolate(flat, size, mode="bilinear", align_corners=False).numpy().reshape(*maps.shape[:3], *size)
    )


def losses(name: str, actual: Array, expected: Array, weights: Array | None, k: int = 0) -> Array:
    """Return the loss (N,) of a property: maps (N, K', C, H, W), expected ones, and the mask (N or 1, H, W).

    NaN: two of the largest values of `pointing` are too close to tell.
    """
    count = len(actual)
    if name == "distance":
        return np.sqrt(((actual - expected) ** 2).sum(axis=(2, 3, 4))).sum(axis=1)
    sizes = np.abs(actual)
    total = sizes.sum(axis=(1, 2, 3, 4))
    safe = np.where(total > 0, total, 1)
    if name == "object":
        assert weights is not None
        found = 1 - (sizes * weights[:, None, None]).sum(axis=(1, 2, 3, 4)) / safe
    elif name == "pointing":
        assert weights is not None
        values = sizes.max(axis=(1, 2))
        is_on, is_off = weights > 0.5 + TIED, weights < 0.5 - TIED
        on, off, beside = (
            np.where(chosen, values, 0.0).max(axis=(1, 2)) for chosen in (is_on, is_off, ~is_on & ~is_off)
        )
        # Rounding must not decide which of two pixels is the larger one, or which side of 0.5 a weight lies on.
        is_lost, is_kept = off * (1 - TIED) > np.maximum(on, beside), on * (1 - TIED) > np.maximum(off, beside)
        found = np.where(is_kept, 0.0, np.where(is_lost, 1.0, np.nan))
    elif name == "alike":
        flat, other = actual.reshape(count, -1), np.broadcast_to(expected, actual.shape).reshape(count, -1)
        norms = np.sqrt((flat**2).sum(axis=1) * (other**2).sum(axis=1))
        found = 1 - (flat * other).sum(axis=1) / np.where(norms > 0, norms, 1)
    else:
        strongest = [np.abs(np.broadcast_to(maps, actual.shape)).sum(axis=(1, 2)).reshape(count, -1)
                     for maps in (actual, expected)]  # fmt: skip
        tops = [np.argsort(-one, axis=1, kind="stable")[:, :k] for one in strongest]
        found = np.array([1 - len(np.intersect1d(*pair)) / k for pair in zip(*tops, strict=True)])
    return np.where(total > 0, found, NO_ATTENTION)
