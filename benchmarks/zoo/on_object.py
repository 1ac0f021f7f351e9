"""The penalty for looking beside the object: the mask of a digit, and the gradient's mass outside it.

The penalty follows Ross, Hughes and Doshi-Velez, "Right for the Right Reasons: Training Differentiable Models by
Constraining their Explanations" (IJCAI 2017). They penalise squared gradients of the log-probabilities where an
annotator forbids the network to look. Here the penalty is the share of the absolute gradient of the correct logit, so a
network gains nothing by making all gradients small.
"""

import torch
from torch.nn import functional

BRIGHT = 0.2  # pixels above it belong to the digit
GROWN = 1  # pixels that the mask grows by, in eight directions
LEAST_MASS = 1e-12  # a gradient that vanishes everywhere costs nothing


def object_mask(images: torch.Tensor) -> torch.Tensor:
    """Return masks (B, 1, H, W), 1 on the object and 0 elsewhere, for unperturbed images (B, C, H, W)."""
    is_bright = (images > BRIGHT).any(dim=1, keepdim=True).to(images.dtype)
    return functional.max_pool2d(is_bright, 2 * GROWN + 1, stride=1, padding=GROWN)


def share_beside(gradients: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return the share (B,) of the mass of gradients (B, C, H, W) that lies beside masks (B, 1, H, W) in [0,1]."""
    mass = gradients.abs()
    return (mass * (1 - masks)).sum(dim=(1, 2, 3)) / (mass.sum(dim=(1, 2, 3)) + LEAST_MASS)


def logit_gradients(logits: torch.Tensor, labels: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
    """Return the gradients (B, C, H, W) of each image's own logit; they can be differentiated by the weights."""
    chosen = logits.gather(1, labels[:, None]).sum()
    [gradients] = torch.autograd.grad(chosen, images, create_graph=True)
    return gradients
