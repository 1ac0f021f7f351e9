"""Trains the VGG-16 layout of `vgg.py` for some minutes, and prunes most of its weights.

Every convolution except the first starts near the identity (near a blur if it halves the side), plus noise, so signals
pass thirteen layers without batch normalization. During training the smallest weights of each layer are set to zero
permanently, until few of them remain per channel. Later proofs therefore hold for such sparse networks, not for densely
trained ones. Needs torch; reads no files.
"""

import math
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

NOISE = 0.25
"""Size of the random part of the initial weights, as a share of He initialisation."""

RATE, BATCH, WARMUP = 1e-3, 24, 30
BRIGHTEST = 0.1
"""Training images have up to this brightness, and a patch of up to this density."""

PRUNED_FROM, PRUNED_TO, PRUNED_EVERY = 0.15, 0.7, 10
"""The first and the last share of the steps in which weights are pruned, and the steps between two prunings."""


class Vgg(nn.Module):
    """Convolutions 3×3 with padding 1, ReLUs, one dense layer: images (B, 3, side, side) to logits (B, classes)."""

    def __init__(self, channels: tuple[int, ...], strides: tuple[int, ...], side: int, classes: int) -> None:
        super().__init__()
        before = (3, *channels[:-1])
        self.convolutions = nn.ModuleList(
            nn.Conv2d(a, b, 3, stride=s, padding=1) for a, b, s in zip(before, channels, strides, strict=True)
        )
        self.dense = nn.Linear(channels[-1] * (side // math.prod(strides)) ** 2, classes)
        with torch.no_grad():
            for number, conv in enumerate(self.convolutions):
                start(conv, share=NOISE if number else 1.0)
            self.dense.weight.normal_(std=0.01)
            self.dense.bias.zero_()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        for conv in self.convolutions:
            images = functional.relu(conv(images))
        return self.dense(images.flatten(1))


def start(conv: nn.Conv2d, *, share: float) -> None:
    """Set the initial weights: noise, and for `share` below 1 also the identity, or a blur if the side is halved."""
    outputs, inputs = conv.weight.shape[:2]
    conv.weight.normal_(std=share * math.sqrt(2.0 / (9 * inputs)))
    conv.bias.zero_()
    if share < 1.0:
        blur = torch.tensor([1.0, 2.0, 1.0]) / 4.0 if conv.stride[0] > 1 else torch.tensor([0.0, 1.0, 0.0])
        for channel in range(outputs):
            conv.weight[channel, channel % inputs] += torch.outer(blur, blur)


def share_kept(weight: torch.Tensor, kept: int, progress: float) -> float:
    """The share of weights of a convolution that remain after this share (0 to 1) of the pruning."""
    least = min(1.0, kept / weight[0].numel())
    return least + (1.0 - least) * (1.0 - progress) ** 3


def prune(masks: list[torch.Tensor], network: Vgg, kept: int, progress: float) -> None:
    """Set the smallest weights of every convolution except the first to zero."""
    for mask, conv in zip(masks, network.convolutions[1:], strict=True):
        count = conv.weight.numel() - int(share_kept(conv.weight, kept, progress) * conv.weight.numel())
        if count:
            mask.copy_(conv.weight.abs() > conv.weight.abs().flatten().kthvalue(count).values)


def perturbed(images: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Return images with random brightness and a random density of the patch 4×4 at (12, 12)."""
    brightness, density = BRIGHTEST * torch.rand(2, len(images), 1, 1, 1, generator=random)
    patch = torch.zeros(images.shape[-2:])
    patch[12:16, 12:16] = 1.0
    return (images + brightness + density * patch).clamp(0.0, 1.0)


def train(network: Vgg, images: np.ndarray, labels: np.ndarray, *, steps: int, kept: int, seed: int) -> None:
    """Train on images (N, 3, side, side) uint8: Adam, linear warm-up, cosine decay.

    `kept` weights remain for each channel of a convolution, on average; the first one and the logits keep all.
    """
    random = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE, betas=(0.9, 0.99))
    masks = [torch.ones_like(conv.weight) for conv in network.convolutions[1:]]
    started = time.perf_counter()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / WARMUP) * (0.5 + 0.5 * math.cos(math.pi * step / steps)) + 1e-5
        chosen = torch.randint(len(images), (BATCH,), generator=random).numpy()
        batch = perturbed(torch.from_numpy(images[chosen].astype(np.float32) / 255), random)
        loss = functional.cross_entropy(network(batch), torch.from_numpy(labels[chosen]))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        progress = (step / steps - PRUNED_FROM) / (PRUNED_TO - PRUNED_FROM)
        with torch.no_grad():
            if progress > 0.0 and step % PRUNED_EVERY == 0:
                prune(masks, network, kept, min(1.0, progress))
            for mask, conv in zip(masks, network.convolutions[1:], strict=True):
                conv.weight.mul_(mask)
        if step % 50 == 0:
            print(f"step {step} of {steps}: loss {loss.item():.4f}, {time.perf_counter() - started:.0f} s", flush=True)


def weights_of(network: Vgg) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return weight and bias of every layer."""
    layers = [*network.convolutions, network.dense]
    return [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in layers]
