"""Every threshold of the float64 computation with its derivation, and the factors that bound rounding.

Lengths are in units of the domain: each axis of the domain is scaled to [0, 1] before anything is compared.

A sum of n products, added in any order and with or without fused operations, has an error of at most
γ(n) · Σ|terms|, where γ(n) = n u / (1 − n u) and u = 2⁻⁵³ (Higham, Accuracy and Stability of Numerical Algorithms).
`gamma`, `up` and `down` turn a computed sum into a proved bound.
"""

UNIT = 2.0**-53
"""Unit roundoff u of float64."""

LEAST = 1e-290
"""Added to every bound that is not exactly zero: exceeds the loss by underflow in a sum of fewer than 10²⁰ products."""

FLOOR = 1e-150
"""The least error of a value that is not exactly zero. Its product with any weight cannot underflow (see
SMALLEST_WEIGHT): if a sum of errors is computed as zero, all of its terms are zero."""

SMALLEST_WEIGHT = 1e-140
"""The least size of a nonzero weight. No nonzero float32 number is smaller."""

LEAST_ROOT = 1e-140
"""Like LEAST, for the root of a sum of products."""

OWN = 1.0 + 1e-6
"""Covers the rounding of error bounds themselves: sums of fewer than 10⁹ non-negative numbers."""

MORE = 1.0 + 1e-9
"""OWN for bounds from a few operations on numbers that are bounds already."""

SMALLEST = 2.0**-1022
"""The smallest positive number that float64 holds with full precision: stands for the sign of a proved margin."""

UNKNOWN = (float("-inf"), float("inf"))
"""The range of a value of which nothing is known."""


def gamma(terms: int) -> float:
    """The relative error of a sum of `terms` products, doubled to cover the rounding of this bound itself.

    >>> gamma(0), gamma(3) > 3 * 2.0**-53
    (0.0, True)
    """
    return 2.0 * terms * UNIT


def up(terms: int) -> float:
    """A factor that raises a computed sum of `terms` non-negative products to at least the exact sum."""
    return 1.0 + 2.0 * gamma(terms + 4)


def down(terms: int) -> float:
    """A factor that lowers a computed sum of `terms` non-negative products to at most the exact sum."""
    return 1.0 - 2.0 * gamma(terms + 4)


DISTANCE = 1e-10
"""A line closer to a vertex than this does not split there.

Vertices are interpolated along edges of length ≤ √2 with a relative error of a few 2⁻⁵³, and a vertex inherits the
error of at most a few hundred ancestors: below 1e-13. Lines that coincide in exact arithmetic differ by the rounding of
their forms, which is of the same order unless they cancel (see NOISE). 1e-10 leaves a factor of a thousand. A strip of
this width across the whole domain has 1e-10 of its area; unsplit parts are added up and reported.
"""

NOISE = 2.0**-40
"""Values of a neuron below this times its scale count as rounding; with few inputs the factor is less (`noise_share`).

The scale of a neuron is the largest sum of |weight · input| + |bias| seen on sample thetas. A neuron that is zero in
exact arithmetic (a dead input, w·h − w·h) stays below this threshold, so rounding does not split regions. No proof
depends on the choice: parts where a value counts as rounding are counted as missed, and enter the error of every layer
above.
"""


def noise_share(terms: int) -> float:
    """The share of its scale below which a sum of `terms` products counts as rounding.

    The sum has a relative error of about terms · 2⁻⁵³; eight times that allows for updates and errors of the inputs.

    >>> noise_share(4) < 2.0**-45, noise_share(10_000) == NOISE
    (True, True)
    """
    return min(NOISE, 8.0 * (terms + 16) * UNIT)


DOUBT = 64.0
"""A region is doubtful if a neuron stays below this times its noise on all of it: its sign may be wrong everywhere."""

NEAR = 2.0**-20
"""A region lies beside a neuron's kink if the neuron's value there comes closer to zero than this times the largest
scale of its layer.

Only such regions count when the width of kinks is added up (`regions.forward_error`), so every proved error must be
smaller; otherwise the attention of the whole map stays undecided.
"""

MAX_SYNCS = 256
"""The most updates of a layer's forms before they are computed from scratch."""

MAX_ADDITIONS = 256
"""The most additions that updates may make to a layer's forms before that: one for each column, or one for several
columns that are summed first. `regions.forward_error` bounds the errors of updates from the additions and changes that
occurred; this limit keeps them of the order of one product."""

MAX_FLIPS = 512
"""The most updates of the attention maps before they are computed from scratch."""

MAX_FLIPS_EACH = 8
"""The most updates for the same neuron before that. An error in a neuron's gradient enters the maps once for each of
its flips, so errors grow by at most this factor from a layer to the one below (see `attention.gradients`)."""

MAX_LOCAL_FLIPS = 4096
"""The most updates of the attention maps before they are computed from scratch, if flips are local. The change of a
local flip is computed from the weights each time, so its errors do not depend on earlier flips
(`attention.gradients`)."""

LEAST_FLIPS = 64
"""If updates can follow fewer flips than this within FLIP_ERROR, all maps are computed from scratch."""

MAX_ROWS_EACH = 2
"""How often the gradient of one dense neuron may be computed before maps are: its error differs each time."""

FLIP_ERROR = 1e-6
"""Maps are updated by flips only if their error stays below this share of the original map's size."""

AREA = 1e-9
"""The largest error of the total area of all regions, which is 1: 10⁵ regions of area 1e-5 with vertices off by 1e-13
give 1e-11."""

BESIDE = 1e-7
"""The distance from an edge at which points on both sides are compared: 1,000 DISTANCE, far below the regions' size."""

LOGITS = 1e-9
"""The largest difference between a region's logits and a plain forward pass, relative to their size: about 1,000 times
the difference measured on sixteen layers. Away from kinks, a pattern with one wrong neuron is off by far more."""

CLIPPED = 1e-9
"""A pixel farther than this from 0 and 1 is not clipped. At a point BESIDE an edge, a pixel has moved by more, unless
it hardly depends on theta; either state is then right to within this tolerance."""

TOUCH = 1e-9
"""Two polytopes touch if their common facet is wider than this: 10 DISTANCE, because the tolerance may have moved the
ends of both facets by DISTANCE each. A narrower common part may be only a vertex or an edge."""

FEASIBILITY = 1e-10
"""The smallest tolerance that HiGHS accepts; rows have unit normals, so it is a distance in t."""

THIN = 10 * DISTANCE
"""Facets and regions that linear programs find in the traversal need an inscribed ball larger than this: ten times the
tolerance of the programs."""

SHORTEST = 4 * DISTANCE
"""The traversal ignores shorter edges of a polygon: longer edges lead to the regions beyond."""

CLEAR = 1e-7
"""A point in a facet this far from the other facets needs no linear program: 1,000 times the distance that decides the
pattern there."""

BEYOND = 1e-9
"""A point moves this far to find the next knot cell: far below the width of a cell, far above rounding."""

SLOW = 1e-12
"""A line runs along a plane if its distance from the plane, in t, changes by less than this over its whole length."""

MAX_SEARCH_PARAMETERS = 4
"""The most parameters of a search: with more, regions have too many facets to find by rays and linear programs."""

MAX_MAP_PARAMETERS = 3
"""The most parameters of a map, exact regions, figures and boundaries: polytopes have up to three dimensions."""
