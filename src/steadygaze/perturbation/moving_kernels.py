"""Compiled loops that look up pixels, at single coordinates and over whole ranges of them.

A looked-up pixel is a bilinear function of its coordinates between neighbouring knots, the whole numbers. Minus any
affine function, it is largest and smallest at corners of the rectangles into which knots cut the range of the
coordinates. So the values at finitely many points enclose a whole range, whatever the movement is.
"""

import numpy as np

from ..compiling import compiled


@compiled
def place_breaks(low, high, last, breaks, cell, share):
    """Write the ends of a range and the knots inside it, each with its cell and its place in the cell; return how many.

    Knots are 0 … last; beyond them the pixel is the same as at the nearest knot.
    """
    breaks[0] = low
    count = 1
    for number in range(int(np.ceil(max(low, 0.0))), int(np.floor(min(high, float(last)))) + 1):
        if low < number < high:
            breaks[count] = float(number)
            count += 1
    breaks[count] = high
    count += 1
    for number in range(count):
        inside = min(max(breaks[number], 0.0), float(last))
        place = min(int(np.floor(inside)), last - 1)
        cell[number], share[number] = place, inside - place
    return count


@compiled
def is_flat(pixels, top, bottom, left, right):
    """Whether all pixels of a rectangle, ends included, are equal."""
    value = pixels[top, left]
    for row in range(top, bottom + 1):
        for column in range(left, right + 1):
            if pixels[row, column] != value:
                return False
    return True


@compiled
def enclose_in_cell(pixels, row, column, x, y, far_x, far_y, unit, form):
    """Enclose a pixel whose coordinates stay in one cell: write its form (1 + d,), return its remainder.

    x and y (1 + d,): the forms of the coordinates, off by far_x and far_y.
    """
    p, right = pixels[row, column], pixels[row, column + 1]
    below, across = pixels[row + 1, column], pixels[row + 1, column + 1]
    a, b, twist = right - p, below - p, across - right - below + p
    fx, fy = x[0] - column, y[0] - row
    along_x, along_y = a + twist * fy, b + twist * fx
    centre, rest = p + a * fx + b * fy + twist * fx * fy, abs(along_x) * far_x + abs(along_y) * far_y
    square, spread_x, spread_y, mixed = 0.0, 0.0, 0.0, 0.0
    for k in range(1, len(x)):
        form[k] = along_x * x[k] + along_y * y[k]
        square += x[k] * y[k]
        mixed += 0.5 * abs(x[k] * y[k])
        spread_x += abs(x[k])
        spread_y += abs(y[k])
        for other in range(k + 1, len(x)):
            mixed += abs(x[k] * y[other] + x[other] * y[k])
    form[0] = centre + 0.5 * twist * square
    mixed += far_x * spread_y + far_y * spread_x + far_x * far_y
    # All coordinates inside the cell are at most 1, so no term is larger than the sum of the pixels.
    rounding = 16.0 * unit * (abs(p) + abs(right) + abs(below) + abs(across))
    return (rest + abs(twist) * mixed) * (1.0 + unit) + rounding


@compiled
def look_up(pixels, row, column, share_y, share_x):
    """Interpolate between the four pixels of a cell."""
    above = pixels[row, column] + share_x * (pixels[row, column + 1] - pixels[row, column])
    below = pixels[row + 1, column] + share_x * (pixels[row + 1, column + 1] - pixels[row + 1, column])
    return above + share_y * (below - above)


@compiled
def look_up_all(padded, source, moved):
    """Look up N images, padded as below, at the coordinates given by source (B, 2, 3): moved (B, N, H, W)."""
    count, height, width = padded.shape[0], padded.shape[1] - 2, padded.shape[2] - 2
    for b in range(len(source)):
        for row in range(height):
            for column in range(width):
                across, down = column - 0.5 * (width - 1), row - 0.5 * (height - 1)
                x = source[b, 0, 0] * across + source[b, 0, 1] * down + source[b, 0, 2] + 0.5 * (width + 1)
                y = source[b, 1, 0] * across + source[b, 1, 1] * down + source[b, 1, 2] + 0.5 * (height + 1)
                x, y = min(max(x, 0.0), width + 1.0), min(max(y, 0.0), height + 1.0)
                left, top = min(int(x), width), min(int(y), height)
                for number in range(count):
                    moved[b, number, row, column] = look_up(padded[number], top, left, y - top, x - left)


@compiled
def enclose_across(pixels, columns, rows, breaks_x, breaks_y, cell_x, cell_y, share_x, share_y, x, y, far_x, far_y,
                   unit, form):  # fmt: skip
    """Enclose a pixel whose coordinates cross knots: write its form (1 + d,), return its remainder."""
    end_x, end_y = columns - 1, rows - 1
    first = look_up(pixels, cell_y[0], cell_x[0], share_y[0], share_x[0])
    right = look_up(pixels, cell_y[0], cell_x[end_x], share_y[0], share_x[end_x])
    below = look_up(pixels, cell_y[end_y], cell_x[0], share_y[end_y], share_x[0])
    opposite = look_up(pixels, cell_y[end_y], cell_x[end_x], share_y[end_y], share_x[end_x])
    wide, high = breaks_x[end_x] - breaks_x[0], breaks_y[end_y] - breaks_y[0]
    along_x = 0.5 * (right + opposite - first - below) / wide if wide > 0.0 else 0.0
    along_y = 0.5 * (below + opposite - first - right) / high if high > 0.0 else 0.0
    least, most, size = np.inf, -np.inf, 0.0
    for i in range(rows):
        for j in range(columns):
            value = look_up(pixels, cell_y[i], cell_x[j], share_y[i], share_x[j])
            size = max(size, abs(value))
            value -= along_x * (breaks_x[j] - x[0]) + along_y * (breaks_y[i] - y[0])
            least, most = min(least, value), max(most, value)
    form[0] = 0.5 * (least + most)
    for k in range(1, len(x)):
        form[k] = along_x * x[k] + along_y * y[k]
    rest = 0.5 * (most - least) + abs(along_x) * far_x + abs(along_y) * far_y
    return rest * (1.0 + unit) + 16.0 * unit * (size + abs(along_x) * wide + abs(along_y) * high)


@compiled
def enclose_moved(padded, coordinates, radii, unit, least, x, y, breaks, cells, shares, form, forms, remainder):
    """Enclose the moved images (C, H, W) on B boxes: forms (B, 1 + d, C, H, W), remainder (B, C, H, W).

    padded (C, H + 2, W + 2): the pixels with their border. A pixel at (column, row) from the centre looks up
    coordinates[b, axis, :, 0] · column + coordinates[b, axis, :, 1] · row + coordinates[b, axis, :, 2], as forms
    (1 + d,) that are off by radii (B, 2, 3). Scratch space: x, y and form (1 + d,); breaks, cells and shares (2, n).
    """
    boxes, rows = forms.shape[:2]
    channels, height, width = padded.shape[0], padded.shape[1] - 2, padded.shape[2] - 2
    middle_x, middle_y = 0.5 * (width - 1), 0.5 * (height - 1)
    for b in range(boxes):
        for row in range(height):
            for column in range(width):
                across, down = column - middle_x, row - middle_y
                size_x, size_y, spread_x, spread_y = 0.0, 0.0, 0.0, 0.0
                for k in range(rows):
                    first, second = coordinates[b, 0, k], coordinates[b, 1, k]
                    x[k] = first[0] * across + first[1] * down + first[2]
                    y[k] = second[0] * across + second[1] * down + second[2]
                    size_x += abs(first[0] * across) + abs(first[1] * down) + abs(first[2])
                    size_y += abs(second[0] * across) + abs(second[1] * down) + abs(second[2])
                    if k > 0:
                        spread_x += abs(x[k])
                        spread_y += abs(y[k])
                # The padded image starts one pixel before the image.
                x[0] += middle_x + 1.0
                y[0] += middle_y + 1.0
                far_x = radii[b, 0, 0] * abs(across) + radii[b, 0, 1] * abs(down) + radii[b, 0, 2]
                far_y = radii[b, 1, 0] * abs(across) + radii[b, 1, 1] * abs(down) + radii[b, 1, 2]
                far_x = far_x * (1.0 + unit) + unit * (size_x + middle_x + 1.0)
                far_y = far_y * (1.0 + unit) + unit * (size_y + middle_y + 1.0)
                reach_x, reach_y = (spread_x + far_x) * (1.0 + unit), (spread_y + far_y) * (1.0 + unit)
                low_x, high_x, low_y, high_y = x[0] - reach_x, x[0] + reach_x, y[0] - reach_y, y[0] + reach_y
                # The subtractions above are rounded.
                low_x, high_x = low_x - unit * (abs(low_x) + width), high_x + unit * (abs(high_x) + width)
                low_y, high_y = low_y - unit * (abs(low_y) + height), high_y + unit * (abs(high_y) + height)
                if not (np.isfinite(low_x) and np.isfinite(high_x) and np.isfinite(low_y) and np.isfinite(high_y)):
                    for channel in range(channels):
                        for k in range(rows):
                            forms[b, k, channel, row, column] = 0.0
                        remainder[b, channel, row, column] = np.inf
                    continue
                columns = place_breaks(low_x, high_x, width + 1, breaks[0], cells[0], shares[0])
                lines = place_breaks(low_y, high_y, height + 1, breaks[1], cells[1], shares[1])
                left, right = cells[0, 0], cells[0, columns - 1] + 1
                top, bottom = cells[1, 0], cells[1, lines - 1] + 1
                is_one_cell = low_x >= left and high_x <= left + 1 and low_y >= top and high_y <= top + 1
                for channel in range(channels):
                    if is_flat(padded[channel], top, bottom, left, right):
                        form[:] = 0.0
                        form[0] = padded[channel, top, left]
                        rest = 0.0
                    elif is_one_cell:
                        rest = enclose_in_cell(padded[channel], top, left, x, y, far_x, far_y, unit, form)
                    else:
                        rest = enclose_across(
                            padded[channel], columns, lines, breaks[0], breaks[1], cells[0], cells[1], shares[0],
                            shares[1], x, y, far_x, far_y, unit, form
                        )  # fmt: skip
                    if rest > 0.0:
                        rest += least
                    for k in range(rows):
                        forms[b, k, channel, row, column] = form[k]
                    remainder[b, channel, row, column] = rest
