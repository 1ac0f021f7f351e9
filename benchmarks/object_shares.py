"""How much attention do the plain, L1 and on-object siblings pay to the digit? Answered by sampling, with autograd.

    python benchmarks/object_shares.py                       # six networks, ten images, BP and TB: one minute
    python benchmarks/object_shares.py --thetas 50 --models M-CNN-S-plain M-CNN-S-object

Needs torch, and uses only the bundled files of the package: perturbations, masks and networks are implemented again.
The mask consists of the pixels above 0.2, grown by one pixel in eight directions, and moves with the image. Attention
is the gradient of the logit of the class that the network predicts for the unperturbed image.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from PIL import Image

from paper_problems import INDEXES, image_name
from steadygaze import zoo
from timing import RESULTS, Spread, print_table, write_json

BASES = ("M-FNN-100", "M-CNN-S")
SIBLINGS = ("-plain", "", "-object")
MODELS = tuple(base + sibling for base in BASES for sibling in SIBLINGS)
DOMAINS = ("BP", "TB")
BRIGHTEST = (0.5, 1.0)
TAU = 0.5
LEAST_DIFFERENCE = 0.2
"""The target: on-object minus plain, for the median over images of the share of thetas with at least TAU on the
digit."""

Array = np.ndarray
Network = Callable[[torch.Tensor], torch.Tensor]


def read_chain(path: Path) -> Network:
    """Return a bundled network without pools or branches as a function of images (N, 1, H, W), in float64."""
    stored = [onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer]
    tensors = [torch.from_numpy(values.astype(np.float64)) for values in stored]

    def logits(values: torch.Tensor) -> torch.Tensor:
        *hidden, last = zip(tensors[::2], tensors[1::2], strict=True)
        for weight, bias in hidden:
            is_conv = weight.ndim == 4
            values = torch.conv2d(values, weight, bias) if is_conv else values.flatten(1) @ weight.T + bias
            values = torch.relu(values)
        return values.flatten(1) @ last[0].T + last[1]

    return logits


def mask_of(image: Array) -> Array:
    """Return the mask (H, W) of an image (H, W)."""
    is_bright = np.pad(image > 0.2, 1)
    height, width = image.shape
    return np.any([is_bright[y : y + height, x : x + width] for y in range(3) for x in range(3)], axis=0).astype(float)


def down(values: Array) -> Array:
    """Return an array (H, W) one pixel lower."""
    return np.vstack([np.zeros_like(values[:1]), values[:-1]])


def perturb(image: Array, domain: str, brightness: Array, other: Array) -> tuple[Array, Array]:
    """Return images and masks (N, H, W) at thetas: brightness (N,), and density of the patch or shift (N,)."""
    mask, brightness, other = mask_of(image), brightness[:, None, None], other[:, None, None]
    if domain == "TB":
        moved, masks = ((1 - other) * values + other * down(values) for values in (image, mask))
        return (moved + brightness).clip(0, 1), masks
    patch = np.zeros(image.shape)
    patch[12:16, 12:16] = 1
    return (image + other * patch + brightness).clip(0, 1), np.broadcast_to(mask, (len(other), *mask.shape))


def shares_on_digit(network: Network, image: Array, domain: str, brightness: Array, other: Array) -> Array:
    """Return the share of the gradient's mass on the digit (N,) at thetas; 0 where the gradient vanishes."""
    images, masks = perturb(image, domain, brightness, other)
    label = int(network(torch.from_numpy(image[None, None])).argmax())
    inputs = torch.from_numpy(images[:, None]).requires_grad_(True)
    [gradients] = torch.autograd.grad(network(inputs)[:, label].sum(), inputs)
    mass = gradients[:, 0].abs().numpy()
    whole = mass.sum(axis=(1, 2))
    return (mass * masks).sum(axis=(1, 2)) / np.where(whole > 0, whole, 1)


def sampled_shares(model: str, domain: str, brightest: float, thetas: int) -> Array:
    """Return the shares (10, N) at the unperturbed image, then at random thetas, of the ten images of the paper."""
    random, network, shares = np.random.default_rng(0), read_chain(zoo.model_path(model)), []
    for index in INDEXES:
        image = np.asarray(Image.open(zoo.image_path(image_name(model, index))), dtype=float) / 255
        brightness, other = random.uniform(0, brightest, thetas), random.uniform(0, 1, thetas)
        brightness[0] = other[0] = 0
        shares.append(shares_on_digit(network, image, domain, brightness, other))
    return np.array(shares)


def row_of(model: str, domain: str, brightest: float, thetas: int) -> dict[str, object]:
    """Measure one network on one domain."""
    shares = sampled_shares(model, domain, brightest, thetas)
    return {
        "model": model,
        "domain": domain,
        "brightest": brightest,
        "unperturbed": Spread.of(shares[:, 0].tolist()),
        "share": Spread.of(np.median(shares, axis=1).tolist()),
        "kept": Spread.of((shares >= TAU).mean(axis=1).tolist()),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--thetas", type=int, default=200, help="for each image and domain; the first one is zero")
    parser.add_argument("--out", type=Path, default=RESULTS / "object_shares.json")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    domains = [(domain, brightest) for domain in DOMAINS for brightest in BRIGHTEST]
    rows = [row_of(model, *domain, options.thetas) for domain in domains for model in options.models]
    print_table([shown(row) for row in rows])
    kept = {(row["model"], row["domain"], row["brightest"]): row["kept"].median for row in rows}
    differences = [
        {"base": base, "domain": domain, "brightest": brightest, "difference": last - first,
         "is_met": last - first >= LEAST_DIFFERENCE}
        for base in BASES for domain, brightest in domains
        if (first := kept.get((f"{base}-plain", domain, brightest))) is not None
        and (last := kept.get((f"{base}-object", domain, brightest))) is not None
    ]  # fmt: skip
    for found in differences:
        verdict = "" if found["is_met"] else "  MISSED"
        print(f"{found['base']} {found['domain']} up to {found['brightest']}: on-object keeps attention on "
              f"{100 * found['difference']:.1f} percentage points more than plain{verdict}")  # fmt: skip
    question = (__doc__ or "").splitlines()[0]
    write_json(options.out, question, repetitions=options.thetas, tau=TAU, rows=rows, differences=differences)
    return 0


def shown(row: dict) -> dict[str, str]:
    """A row as text; medians, smallest and largest are over the ten images."""
    return {
        "network": row["model"],
        "domain": f"{row['domain']} brightness 0..{row['brightest']:g}",
        "unperturbed": f"{row['unperturbed']:.2f}",
        "median theta": f"{row['share']:.2f}",
        f"thetas with {TAU} and more": f"{row['kept']:.1%}",
    }


if __name__ == "__main__":
    sys.exit(main())
