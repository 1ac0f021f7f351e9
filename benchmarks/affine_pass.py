"""One pass of the affine form through the compound network in plain numpy: the unit for the cost of a region.

Turns a question and a theta into the affine form (K, d + 1) of the logits under the pattern there: the clip
elementwise, dense layers as numpy products, convolutions as CSR products. Finding the pattern is not part of the pass.
"""

from dataclasses import dataclass

import numpy as np

from steadygaze.network.graph import AffineMap
from steadygaze.question import Question


@dataclass(frozen=True, eq=False)
class AffinePass:
    """The compound network around one theta: all matrices that a pass multiplies.

    root (pixels, d + 1) is the image before the clip, affine in theta; inside (pixels, 1) is 1 where a pixel is within
    [0,1], white (pixels,) is 1 where it is above; masks (n, 1) of every ReLU layer are 1 where it is active.
    """

    root: np.ndarray
    inside: np.ndarray
    white: np.ndarray
    maps: tuple[AffineMap, ...]
    masks: tuple[np.ndarray, ...]

    def logits(self) -> np.ndarray:
        """The affine form of the logits, (K, d + 1): the timed part."""
        forms = self.root * self.inside
        forms[:, -1] += self.white
        for affine, mask in zip(self.maps[:-1], self.masks, strict=True):
            forms = affine.matrix @ forms
            forms[:, -1] += affine.bias
            forms *= mask
        forms = self.maps[-1].matrix @ forms
        forms[:, -1] += self.maps[-1].bias
        return forms


def pass_at(question: Question, theta: np.ndarray) -> AffinePass:
    """Prepare the pass under the pattern of theta (d,)."""
    perturbed, chain = question.perturbed, question.model.chain
    cell = perturbed.cell_of(theta)
    slope = cell.slope.reshape(len(theta), -1)
    root = np.column_stack([slope.T, (perturbed.x0 + cell.offset).ravel()])
    unclipped = root @ np.append(theta, 1.0)
    pixels = np.clip(unclipped, 0.0, 1.0)
    active = [values[0] > 0.0 for values in chain.preactivations(pixels[None])[:-1]]
    return AffinePass(
        root=root,
        inside=((unclipped > 0.0) & (unclipped < 1.0)).astype(np.float64)[:, None],
        white=(unclipped >= 1.0).astype(np.float64),
        maps=chain.maps,
        masks=tuple(mask.astype(np.float64)[:, None] for mask in active),
    )
