"""Turns a batch of images into a randomly perturbed one: brightness, a 4×4 patch, a shift of up to one pixel in y.

These are the perturbations of the package, written once more in torch for whole batches. Each image gets each
perturbation with probability one half, with a random strength.
"""

import torch

PATCH = 4
BRIGHTEST = 0.5  # training on brighter images, which are nearly white, costs accuracy on the original ones


def augment(images: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Return perturbed copies of images (B, C, 28, 28), pixels in [0,1].

    clip(x + θ_T·(shift(x) − x) + θ_P·patch + θ_B), with θ_T and θ_P up to 1, θ_B up to BRIGHTEST, shifted up or down.
    """
    batch, _, height, width = images.shape
    theta = torch.rand(3, batch, 1, 1, 1, generator=random)
    is_used = torch.rand(3, batch, 1, 1, 1, generator=random) < 0.5
    strength = torch.tensor([1.0, 1.0, BRIGHTEST]).view(3, 1, 1, 1, 1)
    shift, density, brightness = theta * is_used * strength

    down = torch.zeros_like(images)
    down[:, :, 1:] = images[:, :, :-1]
    up = torch.zeros_like(images)
    up[:, :, :-1] = images[:, :, 1:]
    is_down = torch.rand(batch, 1, 1, 1, generator=random) < 0.5
    moved = images + shift * (torch.where(is_down, down, up) - images)

    left = torch.randint(0, width - PATCH + 1, (batch, 1, 1, 1), generator=random)
    top = torch.randint(0, height - PATCH + 1, (batch, 1, 1, 1), generator=random)
    x = torch.arange(width).view(1, 1, 1, -1)
    y = torch.arange(height).view(1, 1, -1, 1)
    patch = (x >= left) & (x < left + PATCH) & (y >= top) & (y < top + PATCH)
    return (moved + density * patch + brightness).clamp(0, 1)
