"""Turns MNIST into digits on coloured, textured backgrounds: colour images (N, 28, 28, 3) with the same labels.

A background mixes two colours by stripes and smooth spots, with noise on top; the digit has a third colour, brighter
than both or darker than both. Each part has a fixed seed, so the same digits always give the same images.
"""

import numpy as np
from idx import Dataset

SEEDS = {"train": 1, "test": 2}
BATCH = 2000  # images made at once; changing it changes the images
SPOTS = 5  # knots of the smooth spots along each side
NOISE = 0.04
DARK = (0.0, 0.5)
BRIGHT = (0.6, 1.0)


def colour_dataset(grey: Dataset) -> Dataset:
    """Return both parts of a grey data set as colour images."""
    return Dataset(
        coloured(grey.train_images, SEEDS["train"]),
        grey.train_labels,
        coloured(grey.test_images, SEEDS["test"]),
        grey.test_labels,
    )


def coloured(digits: np.ndarray, seed: int) -> np.ndarray:
    """Return digits (N, H, W) uint8 on random backgrounds: (N, H, W, 3) uint8."""
    random = np.random.default_rng(seed)
    parts = [_batch(digits[i : i + BATCH] / 255.0, random) for i in range(0, len(digits), BATCH)]
    return np.concatenate(parts)


def _batch(ink: np.ndarray, random: np.random.Generator) -> np.ndarray:
    count = len(ink)
    first, second = random.uniform(*DARK, (2, count, 1, 1, 3))
    pen = random.uniform(*BRIGHT, (count, 1, 1, 3))
    texture = _texture(ink.shape, random)[..., None]
    ground = first + texture * (second - first)
    image = ground + ink[..., None] * (pen - ground)
    image = np.where(random.random((count, 1, 1, 1)) < 0.5, image, 1.0 - image)
    image += random.uniform(-NOISE, NOISE, image.shape)
    return np.rint(255.0 * np.clip(image, 0.0, 1.0)).astype(np.uint8)


def _texture(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Weights (N, H, W) in [0,1] of the second colour: stripes in a random direction, mixed with smooth spots."""
    count, height, width = shape
    angle, phase = random.uniform(0.0, 2.0 * np.pi, (2, count, 1, 1))
    waves = random.uniform(1.0, 5.0, (count, 1, 1))
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    stripes = 0.5 + 0.5 * np.sin(2.0 * np.pi * waves * (np.cos(angle) * x + np.sin(angle) * y) + phase)
    knots = random.random((count, SPOTS, SPOTS))
    spots = _interpolation(height) @ knots @ _interpolation(width).T
    share = random.random((count, 1, 1))
    return share * stripes + (1.0 - share) * spots


def _interpolation(side: int) -> np.ndarray:
    """Matrix (side, SPOTS) of the linear interpolation between equally spaced knots."""
    at = np.linspace(0.0, SPOTS - 1.0, side)[:, None]
    return np.maximum(0.0, 1.0 - np.abs(at - np.arange(SPOTS)))
