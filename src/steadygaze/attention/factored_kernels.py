"""Compiled loops over pixels, patterns and regions for losses that are ratios of affine functions (see `factored`)."""

from ..compiling import compiled_apart, compiled_reordered


@compiled_apart
def clipped_forms(
    points, starts, lines, off, sizes, baseline, share, is_signed,
    value, slope, constant, error, largest, is_nothing,
):  # fmt: skip
    """Enclose |clipped line − baseline| (is_signed: the difference itself) on N regions for L lines (see `PixelForms`).

    Region r has the vertices points[starts[r] : starts[r + 1]] (V, D). lines (D+1, L): slopes, then constants; off (L,)
    bounds their errors, sizes (L,) sums their absolute values. share: the relative error of sums of forms, which counts
    as an error of each. value (L,) is scratch. is_nothing (N,): for regions with a line that is not black, it becomes
    False.
    """
    dimension, count = points.shape[1], lines.shape[1]
    for r in range(slope.shape[0]):
        low, high = slope[r], constant[r]
        for n in range(starts[r], starts[r + 1]):
            for i in range(count):
                value[i] = lines[dimension, i]
            for d in range(dimension):
                factor = points[n, d]
                for i in range(count):
                    value[i] += factor * lines[d, i]
            if n == starts[r]:
                for i in range(count):
                    low[i] = high[i] = value[i]
            else:
                for i in range(count):
                    low[i], high[i] = min(low[i], value[i]), max(high[i], value[i])
        is_black = is_nothing[r]
        for i in range(count):
            is_black &= (high[i] <= off[i]) & (low[i] < -off[i])
        is_nothing[r] = is_black
        for i in range(count):
            lowest, highest = low[i] - off[i], high[i] + off[i]
            middle = 0.5 * (lowest + highest)
            least, most = min(max(lowest, 0.0), 1.0), min(max(highest, 0.0), 1.0)
            is_clipped = (middle <= 0.0) | (middle >= 1.0)
            end = 1.0 if middle >= 1.0 else 0.0
            beyond = max(-lowest, highest - 1.0, 0.0) + off[i]
            room = max(most - end, end - least) if is_clipped else beyond
            least, most = least - baseline, most - baseline
            sign = 1.0 if is_signed or least + most >= 0.0 else -1.0
            # Beyond the baseline, the form has the wrong sign.
            wrong = 0.0 if is_signed else max(-least if sign > 0.0 else most, 0.0)
            factor, rest = 0.0 if is_clipped else sign, sign * (end - baseline)
            slope[r, i], constant[r, i] = factor, rest
            error[r, i] = room + 2.0 * wrong + share * (abs(factor) * sizes[i] + abs(rest))
            largest[r, i] = max(abs(least), abs(most))


@compiled_reordered
def group_sums(maps, subtracted, pixels, starts, weights, scratch, out):
    """Add up the absolute values of maps, weighted, over groups of pixels.

    maps (P, K, pixels) less subtracted (K, pixels). Group g consists of the pixels in
    pixels[starts[g] : starts[g + 1]], with weights (W, n) for each entry of `pixels`. scratch: one number per pixel;
    out (P, W, groups).
    """
    size = scratch.shape[0]
    for p in range(maps.shape[0]):
        for i in range(size):
            scratch[i] = abs(maps[p, 0, i] - subtracted[0, i])
        for k in range(1, maps.shape[1]):
            for i in range(size):
                scratch[i] += abs(maps[p, k, i] - subtracted[k, i])
        for w in range(weights.shape[0]):
            for g in range(out.shape[2]):
                total = 0.0
                for n in range(starts[g], starts[g + 1]):
                    total += weights[w, n] * scratch[pixels[n]]
                out[p, w, g] = total


@compiled_reordered
def add_forms(owner, sums, lines, slope, constant, error, largest, heaviest, scratch, out):
    """Add up the forms of L lines (N, L), weighted by the sums (P, W, L+2) of the pattern that owns each region (N,).

    The last two sums belong to pixels that do not change: their distance from the baseline, and its error. heaviest (W,
    L+1): the largest weight in each group, and the largest weight times distance of the others. scratch (L,). out (N,
    W, D+3): slopes, constant, error, largest factor.
    """
    dimension, count = lines.shape[0] - 1, lines.shape[1]
    for r in range(owner.shape[0]):
        for w in range(sums.shape[1]):
            own, most = sums[owner[r], w], heaviest[w, count]
            for i in range(count):
                scratch[i] = own[i] * slope[r, i]
                most = max(most, largest[r, i] * heaviest[w, i])
            for d in range(dimension + 1):
                total = 0.0
                for i in range(count):
                    total += scratch[i] * lines[d, i]
                out[r, w, d] = total
            rest = doubt = 0.0
            for i in range(count):
                rest += own[i] * constant[r, i]
                doubt += own[i] * error[r, i]
            out[r, w, dimension] += rest + own[count]
            out[r, w, dimension + 1] = doubt + own[count + 1]
            out[r, w, dimension + 2] = most
