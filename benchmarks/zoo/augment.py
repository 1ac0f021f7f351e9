"""Turns a batch of images into a randomly perturbed one: brightness, a 4×4 patch, a shift of up to one pixel in y.

These are the perturbations of the package, implemented in torch for whole batches. Each image gets each perturbation
with probability one half and a random strength.
"""

from dataclasses import dataclass

import torch

PATCH = 4
BRIGHTEST = 0.5  # training on brighter images, which are nearly white, costs accuracy on the original ones


@dataclass(frozen=True)
class Perturbation:
    """One perturbation for each image of a batch; all fields have shape (B, 1, 1, 1), the patch (B, 1, H, W)."""

    shift: torch.Tensor
    is_down: torch.Tensor
    patch: torch.Tensor
    density: torch.Tensor
    brightness: torch.Tensor

    def move(self, values: torch.Tensor) -> torch.Tensor:
        """Return images or masks (B, C, H, W) after the shift alone: x + θ_T·(shift(x) − x)."""
        down = torch.zeros_like(values)
        down[:, :, 1:] = values[:, :, :-1]
        up = torch.zeros_like(values)
        up[:, :, :-1] = values[:, :, 1:]
        return values + self.shift * (torch.where(self.is_down, down, up) - values)

    def apply(self, images: torch.Tensor) -> torch.Tensor:
        """Return clip(x + θ_T·(shift(x) − x) + θ_P·patch + θ_B) for images (B, C, H, W), pixels in [0,1]."""
        return (self.move(images) + self.density * self.patch + self.brightness).clamp(0, 1)


def draw(batch: int, height: int, width: int, random: torch.Generator) -> Perturbation:
    """Return random perturbations: θ_T and θ_P up to 1, θ_B up to BRIGHTEST, shifted up or down."""
    theta = torch.rand(3, batch, 1, 1, 1, generator=random)
    is_used = torch.rand(3, batch, 1, 1, 1, generator=random) < 0.5
    strength = torch.tensor([1.0, 1.0, BRIGHTEST]).view(3, 1, 1, 1, 1)
    shift, density, brightness = theta * is_used * strength
    is_down = torch.rand(batch, 1, 1, 1, generator=random) < 0.5

    left = torch.randint(0, width - PATCH + 1, (batch, 1, 1, 1), generator=random)
    top = torch.randint(0, height - PATCH + 1, (batch, 1, 1, 1), generator=random)
    x = torch.arange(width).view(1, 1, 1, -1)
    y = torch.arange(height).view(1, 1, -1, 1)
    patch = (x >= left) & (x < left + PATCH) & (y >= top) & (y < top + PATCH)
    return Perturbation(shift, is_down, patch, density, brightness)
