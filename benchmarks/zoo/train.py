"""Trains the networks of the zoo from idx files and writes them, the bundled images and the manifest into the package.

    python benchmarks/zoo/train.py                     # every missing network, then images and manifest
    python benchmarks/zoo/train.py M-FNN-100 --again   # one network again
    python benchmarks/zoo/train.py --manifest          # only images and manifest; accuracies measured from the files

Uses one thread and fixed seeds: the same machine and torch version give the same bytes.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
import onnx
import torch
from augment import draw
from colour import colour_dataset
from export import Weights, as_input, build, logits
from idx import Dataset, read_dataset
from layouts import (
    CLASSES,
    KERNEL,
    NAMES,
    RECIPES,
    Conv,
    Layout,
    MaxPool,
    Recipe,
    Residual,
    Shape,
    has_projection,
)
from manifest import write_images, write_manifest
from on_object import logit_gradients, object_mask, share_beside
from torch import nn

CHECKOUT = Path(__file__).resolve().parents[2]
WARMUP = 0.1  # share of the steps in which the rate rises; without it the 16-layer networks may stall at chance


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions with a ReLU between, plus a shortcut, then a ReLU."""

    def __init__(self, layer: Residual, shape: Shape) -> None:
        super().__init__()
        self.first = nn.Conv2d(shape[0], layer.channels, KERNEL, layer.stride, 1)
        self.second = nn.Conv2d(layer.channels, layer.channels, KERNEL, 1, 1)
        is_projected = has_projection(layer, shape)
        self.shortcut = nn.Conv2d(shape[0], layer.channels, 1, layer.stride) if is_projected else nn.Identity()

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the picture after the block."""
        return torch.relu(self.second(torch.relu(self.first(values))) + self.shortcut(values))


def network(layout: Layout) -> nn.Sequential:
    """Return an untrained network with He weights and zero biases."""
    modules: list[nn.Module] = []
    for layer, shape in zip(layout.spatial, layout.shapes, strict=False):
        if isinstance(layer, Conv):
            modules += [nn.Conv2d(shape[0], layer.channels, layer.kernel, layer.stride, layer.padding), nn.ReLU()]
        elif isinstance(layer, MaxPool):
            modules.append(nn.MaxPool2d(layer.size))
        else:
            modules.append(ResidualBlock(layer, shape))
    modules.append(nn.Flatten())
    before = layout.flat
    for width in layout.hidden:
        modules += [nn.Linear(before, width), nn.ReLU()]
        before = width
    modules.append(nn.Linear(before, CLASSES))
    model = nn.Sequential(*modules)
    for module in weighted(model):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        nn.init.zeros_(module.bias)
    return model


def weighted(model: nn.Sequential) -> list[nn.Conv2d | nn.Linear]:
    """Return the layers that have weights, in the order in which they are used."""
    return [module for module in model.modules() if isinstance(module, nn.Conv2d | nn.Linear)]


def losses(
    model: nn.Sequential, recipe: Recipe, images: torch.Tensor, labels: torch.Tensor, random: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the cross-entropy of a batch (B, C, 28, 28), perturbed as the recipe says, and the recipe's penalties."""
    masks, batch = object_mask(images), images
    if recipe.is_augmented:
        perturbation = draw(len(images), *images.shape[2:], random)
        masks, batch = perturbation.move(masks), perturbation.apply(images)
    batch.requires_grad_(recipe.object_penalty > 0)
    answers = model(batch)
    penalty = torch.zeros(())
    if recipe.weight_penalty:
        penalty = penalty + recipe.weight_penalty * sum(layer.weight.abs().sum() for layer in weighted(model))
    if recipe.object_penalty:
        beside = share_beside(logit_gradients(answers, labels, batch), masks)
        penalty = penalty + recipe.object_penalty * beside.mean()
    return nn.functional.cross_entropy(answers, labels), penalty


def train(recipe: Recipe, data: Dataset) -> nn.Sequential:
    """Return the trained network: Adam, linear warm-up, cosine decay to zero."""
    torch.manual_seed(recipe.seed)
    random = torch.Generator().manual_seed(recipe.seed)
    model = network(recipe.layout)
    images = data.train_images
    labels = torch.from_numpy(data.train_labels.astype(np.int64))
    steps = recipe.epochs * (len(images) // recipe.batch)
    warmup = int(WARMUP * steps)
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: (
            (step + 1) / warmup
            if step < warmup
            else 0.5 + 0.5 * math.cos(math.pi * (step - warmup) / max(1, steps - warmup))
        ),
    )
    for epoch in range(recipe.epochs):
        start, total = time.perf_counter(), 0.0
        order = torch.randperm(len(images), generator=random)
        for chosen in order[: len(images) // recipe.batch * recipe.batch].view(-1, recipe.batch):
            batch = torch.from_numpy(as_input(images[chosen.numpy()]))
            error, penalty = losses(model, recipe, batch, labels[chosen], random)
            total += error.item()
            loss = error + penalty
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        mean = total / (len(images) // recipe.batch)
        print(
            f"{recipe.name} epoch {epoch + 1}/{recipe.epochs}: loss {mean:.4f}, {time.perf_counter() - start:.1f} s",
            flush=True,
        )
    return model


def correct(model: nn.Sequential, images: np.ndarray, labels: np.ndarray) -> int:
    """Return how many images (N, 28, 28) or (N, 28, 28, 3) uint8 the network classifies correctly."""
    with torch.no_grad():
        parts = torch.from_numpy(as_input(images)).split(1000)
        answer = torch.cat([model(part).argmax(1) for part in parts]).numpy()
    return int((answer == labels).sum())


def write_model(path: Path, recipe: Recipe, model: nn.Sequential, data: Dataset) -> None:
    """Write the ONNX file atomically, after onnxruntime has confirmed torch's logits."""
    weights: Weights = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in weighted(model)]
    part = path.with_name(path.name + ".part")
    onnx.save(build(recipe.name, recipe.layout, weights), part)
    images = data.test_images[-100:]
    with torch.no_grad():
        expected = model(torch.from_numpy(as_input(images))).numpy()
    difference = float(np.abs(logits(part, images) - expected).max())
    if not difference < 1e-4:
        raise SystemExit(f"{part}: onnxruntime and torch differ by {difference:g}; the export is wrong.")
    part.replace(path)


def main() -> None:
    """Train the requested networks, then write images and manifest."""
    parser = argparse.ArgumentParser(description="Train the networks of the zoo.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"networks to train (default: all): {', '.join(NAMES)}"
    )
    parser.add_argument("--data", type=Path, default=CHECKOUT.parent / "shared" / "data", help="folder with idx files")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "src" / "steadygaze" / "zoo", help="folder to write to")
    parser.add_argument("--again", action="store_true", help="also train networks whose file exists")
    parser.add_argument("--manifest", action="store_true", help="train nothing, write images and manifest only")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in RECIPES]
    if unknown:
        parser.error(f"unknown network {', '.join(unknown)}; known: {', '.join(NAMES)}")

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    data = {dataset: read_dataset(options.data, dataset) for dataset in ("mnist", "fashion")}
    data["colour"] = colour_dataset(data["mnist"])
    (options.out / "models").mkdir(parents=True, exist_ok=True)
    for name in () if options.manifest else options.names or NAMES:
        recipe, path = RECIPES[name], options.out / "models" / f"{name}.onnx"
        if path.exists() and not options.again:
            print(f"{name}: exists already; --again trains it again", flush=True)
            continue
        chosen = data[recipe.dataset]
        model = train(recipe, chosen)
        write_model(path, recipe, model, chosen)
        share = correct(model, chosen.test_images, chosen.test_labels) / len(chosen.test_labels)
        print(f"{name}: test accuracy {share:.4f}", flush=True)
    write_images(options.out, data)
    write_manifest(options.out, data)


if __name__ == "__main__":
    main()
