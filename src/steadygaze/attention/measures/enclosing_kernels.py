"""Compiled loops over the enclosed maps of many boxes: one pass over memory for each measure."""

from ...compiling import compiled


@compiled
def map_distances(centre, radius, low, high, slack, order, out):
    """Sum the least and greatest differences between maps centre ± radius (B, K, P) and expected maps.

    The expected maps lie between low and high (B or 1, K, P). out (B, K, 2): sums of differences, or of squares
    (order 2).
    """
    boxes, classes, size = centre.shape
    for b in range(boxes):
        e = b if len(low) > 1 else 0
        for k in range(classes):
            near_sum = far_sum = 0.0
            for p in range(size):
                reach = radius[b, k, p] + slack * (abs(centre[b, k, p]) + radius[b, k, p])
                least, most = centre[b, k, p] - reach, centre[b, k, p] + reach
                near = max(least - high[e, k, p], low[e, k, p] - most, 0.0)
                far = max(most - low[e, k, p], high[e, k, p] - least)
                near_sum += near * near if order == 2 else near
                far_sum += far * far if order == 2 else far
            out[b, k, 0] = near_sum
            out[b, k, 1] = far_sum


@compiled
def mass_ends(centre, radius, low, high, slack, out):
    """Sum the least and greatest masses of maps centre ± radius (B, N, P), given weights between low and high.

    low, high: (B or 1, P). out (B, 6): least and greatest mass outside the mask, on the mask, and in total.
    """
    boxes, rows, size = centre.shape
    for b in range(boxes):
        e = b if len(low) > 1 else 0
        out_least = out_most = on_least = on_most = all_least = all_most = 0.0
        for n in range(rows):
            for p in range(size):
                middle = abs(centre[b, n, p])
                reach = radius[b, n, p] + slack * (middle + radius[b, n, p])
                # The order matters: max keeps a NaN only as its first argument.
                least, most = max(middle - reach, 0.0), middle + reach
                out_least += (1.0 - high[e, p]) * least
                out_most += (1.0 - low[e, p]) * most
                on_least += low[e, p] * least
                on_most += high[e, p] * most
                all_least += least
                all_most += most
        out[b, 0], out[b, 1] = out_least, out_most
        out[b, 2], out[b, 3] = on_least, on_most
        out[b, 4], out[b, 5] = all_least, all_most
