"""Compiled loops over pairs of polygons of two tilings: what they have in common, added up by their codes."""

from ..compiling import compiled
from ..geometry.polygon import shared_area


@compiled
def _square(at, side):
    """The row or column of the grid that a coordinate of the unit square lies in."""
    return min(max(int(at * side), 0), side - 1)


@compiled
def fill_grid(low_x, high_x, low_y, high_y, side, starts, members, is_counting):
    """Put every polygon into all squares of a side × side grid that its bounding box meets.

    With `is_counting` only their number is added to starts[square + 1]; otherwise they are written to `members`, and
    starts[square] moves on to the end of the square's part.
    """
    for p in range(low_x.shape[0]):
        for row in range(_square(low_y[p], side), _square(high_y[p], side) + 1):
            for column in range(_square(low_x[p], side), _square(high_x[p], side) + 1):
                square = row * side + column
                if is_counting:
                    starts[square + 1] += 1
                else:
                    members[starts[square]] = p
                    starts[square] += 1


@compiled
def add_shared_areas(first, second, side, starts, members, cells, doubt):
    """Add the common areas of all pairs to cells (3, 3) by their codes, what is doubtful of each to doubt (2, 3, 3).

    first and second are (x, y, starts, low_x, high_x, low_y, high_y, code, strip) of two tilings of the unit square;
    starts and members hold the second one in a grid. The strip of a polygon may lie anywhere in it, so as much of it as
    fits counts as doubtful in every pair.
    """
    x, y, ends, low_x, high_x, low_y, high_y, code, strip = first
    u, v, other_ends, low_u, high_u, low_v, high_v, other_code, other_strip = second
    for p in range(code.shape[0]):
        for row in range(_square(low_y[p], side), _square(high_y[p], side) + 1):
            for column in range(_square(low_x[p], side), _square(high_x[p], side) + 1):
                square = row * side + column
                for place in range(starts[square], starts[square + 1]):
                    q = members[place]
                    corner_x, corner_y = max(low_x[p], low_u[q]), max(low_y[p], low_v[q])
                    if corner_x >= min(high_x[p], high_u[q]) or corner_y >= min(high_y[p], high_v[q]):
                        continue
                    # A pair meets in many squares; it counts in the one with the lower left corner of what is common.
                    if _square(corner_x, side) != column or _square(corner_y, side) != row:
                        continue
                    area = shared_area(
                        x, y, ends[p], ends[p + 1] - ends[p],
                        u, v, other_ends[q], other_ends[q + 1] - other_ends[q], min(low_y[p], low_v[q]),
                    )  # fmt: skip
                    area = max(area, 0.0)
                    cells[code[p], other_code[q]] += area
                    doubt[0, code[p], other_code[q]] += min(area, strip[p])
                    doubt[1, code[p], other_code[q]] += min(area, other_strip[q])
