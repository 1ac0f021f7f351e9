"""The self-check before any verification: do the graph, its linear steps and the file itself compute the same function?

The graph is compared with onnxruntime on the image, on noise around it and on plain noise, and with its own linear
steps in float64. A model that fails is refused. It samples: it finds a misread operator, not a bug that needs a special
image. Affine maps are compared with the graph when they are made (`lower`).
"""

from dataclasses import dataclass

import numpy as np

from steadygaze.errors import InternalError, ModelError
from steadygaze.network.graph import Graph
from steadygaze.network.model import Model
from steadygaze.network.operators import Array
from steadygaze.network.passes import downwards, magnitude, preactivations, upwards

SEED = 20240
RANDOM_IMAGES = 16
NOISE = 0.25  # how far the noise around the image reaches

# Bounds of the tolerance, as a share of the largest logit. The rounding estimate below is first order; it must neither
# refuse a model over what it leaves out, nor let a visible difference pass.
LEAST_SHARE = 1e-5
MOST_SHARE = {2.0**-24: 1e-3, 2.0**-11: 5e-2, 2.0**-8: 2e-1}

# On the bundled networks and two that others made, the largest rounding error of an image is at most 1/20 of the
# estimate, and the median over images at most 1/32 of the median estimate. So the median of the differences must stay
# below a tenth of the median tolerance (or below LEAST_SHARE).
USUAL_SHARE = 0.1

# The steps repeat the graph's sums in float64 in another order: n·2⁻⁵³ for n ≤ 10⁵ terms is 1e-11.
STEP_SHARE = 1e-9


@dataclass(frozen=True)
class Agreement:
    """How far graph and file are apart: the largest difference of a logit, what was allowed there, on how many images.

    `scale` is the largest logit seen; `chain_difference` is the largest one between graph and linear steps, relative to
    the magnitude of their layer.
    """

    difference: float
    tolerance: float
    scale: float
    chain_difference: float
    images: int


def check_agreement(model: Model, image: Array) -> Agreement:
    """Compare the model's graph with onnxruntime and with its linear steps; `image` (C, H, W) with pixels in [0,1].

    Every logit of every image must be within the tolerance of that image: the first-order effect of rounding each
    layer's sums in the file's float type (see `rounding_effect`), held between 1e-5 and 1e-3 of the largest logit
    (more for half precision). Their median must be within a tenth of the median tolerance. Raises ModelError when file
    and graph disagree, InternalError when graph and steps do. The random images are always the same.
    """
    images = sample_images(image)
    layers, ours = model.graph.trace(images)
    theirs = model.replay.logits(images)
    name = model.path.name
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        raise ModelError(f"{name}: gives NaN or infinite logits; check its weights, and mean, std and scale")
    if ours.shape != theirs.shape:
        raise ModelError(f"{name}: gives {theirs.shape[1]} logits in onnxruntime, but {ours.shape[1]} here")
    chain_difference = _check_steps(model, images, [*layers, ours])
    scale = float(np.abs(ours).max())
    unit = model.replay.unit_roundoff
    differences = np.abs(ours - theirs).max(axis=1)
    tolerances = np.full(len(images), LEAST_SHARE * scale)
    # Where no image needs more than the least tolerance, only the one that is reported is estimated.
    needed = [int(np.argmax(differences))] if (differences <= tolerances).all() else range(len(images))
    for number in needed:
        effect = rounding_effect(model.graph, images[number].ravel(), unit)
        tolerances[number] = np.clip(effect, LEAST_SHARE * scale, MOST_SHARE[unit] * scale)
    usual = max(LEAST_SHARE * scale, USUAL_SHARE * float(np.median(tolerances)))
    if np.median(differences) > usual:
        # Rounding varies from image to image; the same small difference on most of them is a misread number.
        tolerances = np.minimum(tolerances, usual)
    worst = int(np.argmax(differences - tolerances))
    if differences[worst] > tolerances[worst]:
        which = "the given image" if worst == 0 else f"random image {worst}"
        raise ModelError(
            f"{name}: onnxruntime and the graph read from the file disagree by {differences[worst]:.3g} on {which} "
            f"(logits up to {scale:.3g}, tolerance {tolerances[worst]:.2g}); nothing is verified. Export the model "
            "again with plainer operators, and report the file"
        )
    worst = int(np.argmax(differences))
    return Agreement(
        difference=float(differences[worst]),
        tolerance=float(tolerances[worst]),
        scale=scale,
        chain_difference=chain_difference,
        images=len(images),
    )


def sample_images(image: Array) -> Array:
    """Image itself, then fixed noise around it and plain noise: (1 + RANDOM_IMAGES, C, H, W), pixels in [0,1]."""
    generator = np.random.default_rng(SEED)
    noise = generator.random((RANDOM_IMAGES, *image.shape))
    near = np.clip(image + NOISE * (2 * noise[::2] - 1), 0.0, 1.0)
    return np.concatenate([image[None], near, noise[1::2]])


def rounding_effect(graph: Graph, pixels: Array, unit: float) -> float:
    """How far rounding with unit roundoff `unit` moves any logit of one image (C·H·W,), to first order.

    A sum of n products is off by about √n·unit·Σ|products| in the usual random model of rounding errors (n·unit in the
    worst case); that error reaches the logits through the layers above, whose ReLUs are fixed by the image: |J|·error,
    added up over all layers. Pixels count as 1 in the first layer, so that what preprocessing subtracts is covered.
    """
    sizes, values = np.ones((1, len(pixels))), pixels[None]
    errors, actives = [], []
    for segment in graph.steps:
        share = unit * sum(np.sqrt(step.terms) + 1.0 for step in segment)
        errors.append(share * magnitude(segment, sizes)[0])
        values = upwards(segment, values)
        actives.append(values > 0.0)
        sizes = values = np.maximum(values, 0.0)
    total = errors[-1].copy()
    jacobian = np.eye(len(total))
    for segment, active, error in zip(graph.steps[:0:-1], actives[-2::-1], errors[-2::-1], strict=True):
        jacobian = downwards(segment, jacobian) * active
        total += np.abs(jacobian) @ error
    return float(total.max())


def _check_steps(model: Model, images: Array, ours: list[Array]) -> float:
    """Largest difference between the layers of the graph and of its steps, relative to the magnitude of each."""
    pixels = images.reshape(len(images), -1)
    theirs = preactivations(model.graph, pixels)
    if [layer.shape for layer in ours] != [layer.shape for layer in theirs]:
        raise InternalError(f"{model.path.name}: graph and linear steps differ in their layers; report this file")
    largest = 0.0
    values = pixels
    for segment, left, right in zip(model.graph.steps, ours, theirs, strict=True):
        scale = float(magnitude(segment, values).max(initial=0.0))
        difference = float(np.abs(left - right).max(initial=0.0))
        if difference > STEP_SHARE * scale:
            raise InternalError(
                f"{model.path.name}: graph and linear steps differ by {difference:.3g} in a layer of size "
                f"{scale:.3g}; report this file"
            )
        largest = max(largest, difference / scale if scale else 0.0)
        values = np.maximum(right, 0.0)
    return largest
