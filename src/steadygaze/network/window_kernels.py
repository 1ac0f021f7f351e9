"""Compiled loops between images and the columns of their windows: what turns a convolution into a matrix product."""

import numpy as np

from ..compiling import compiled


@compiled
def gather(images: np.ndarray, window: np.ndarray, columns: np.ndarray) -> None:
    """Write what every place of the window sees: images (N, C, H, W) → columns (N, C, kh, kw, ph, pw), 0 outside.

    window: strides, dilations and paddings before, two numbers each.
    """
    count, depth, height, width = images.shape
    kernel_height, kernel_width, rows, across = columns.shape[2:]
    for n in range(count):
        for c in range(depth):
            for i in range(kernel_height):
                for j in range(kernel_width):
                    left = j * window[3] - window[5]
                    for y in range(rows):
                        source = y * window[0] + i * window[2] - window[4]
                        if source < 0 or source >= height:
                            for x in range(across):
                                columns[n, c, i, j, y, x] = 0.0
                        elif window[1] == 1 and left >= 0 and left + across <= width:
                            seen = columns[n, c, i, j, y]
                            row = images[n, c, source, left : left + across]
                            for x in range(across):
                                seen[x] = row[x]
                        else:
                            for x in range(across):
                                place = left + x * window[1]
                                inside = 0 <= place < width
                                columns[n, c, i, j, y, x] = images[n, c, source, place] if inside else 0.0


@compiled
def scatter(columns: np.ndarray, window: np.ndarray, images: np.ndarray) -> None:
    """Add up what every place of the window saw: the transpose of `gather`; images are overwritten."""
    count, depth, height, width = images.shape
    kernel_height, kernel_width, rows, across = columns.shape[2:]
    for n in range(count):
        for c in range(depth):
            for y in range(height):
                for x in range(width):
                    images[n, c, y, x] = 0.0
            for i in range(kernel_height):
                for j in range(kernel_width):
                    left = j * window[3] - window[5]
                    first, last = 0, across
                    while first < last and left + first * window[1] < 0:
                        first += 1
                    while last > first and left + (last - 1) * window[1] >= width:
                        last -= 1
                    for y in range(rows):
                        target = y * window[0] + i * window[2] - window[4]
                        if target < 0 or target >= height:
                            continue
                        if window[1] == 1:
                            # Slices from zero on: only then are several numbers added at once.
                            into = images[n, c, target, left + first : left + last]
                            seen = columns[n, c, i, j, y, first:last]
                            for x in range(last - first):
                                into[x] += seen[x]
                        else:
                            for x in range(first, last):
                                images[n, c, target, left + x * window[1]] += columns[n, c, i, j, y, x]
