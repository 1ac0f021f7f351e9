"""Every threshold of the float64 computation, each with its derivation, and the factors that bound its rounding.

Lengths are in units of the domain: each axis of the domain is scaled to [0, 1] before anything is compared.

A sum of n products, added in any order and with or without fused operations, has an error of at most
γ(n) · Σ|terms|, where γ(n) = n u / (1 − n u) and u = 2⁻⁵³ (Higham, Accuracy and Stability of Numerical Algorithms).
`gamma`, `up` and `down` turn a computed sum into a proved bound.
"""

UNIT = 2.0**-53
"""Unit roundoff u of float64."""

LEAST = 1e-290
"""Added to every bound that is not exactly zero: more than underflow can lose in a sum of fewer than 10²⁰ products."""

FLOOR = 1e-150
"""Errors of values that are not exactly zero are at least this large, so that a product with any weight does not
underflow (see SMALLEST_WEIGHT): where a sum of errors comes out as zero, all of its terms are zero."""

SMALLEST_WEIGHT = 1e-140
"""Weights other than zero must not be smaller than this. No float32 number is."""

LEAST_ROOT = 1e-140
"""The same as LEAST for the root of such a sum."""


def gamma(terms: int) -> float:
    """The relative error of a sum of so many products, twice as large as proved, so that its own rounding is covered.

    >>> gamma(0), gamma(3) > 3 * 2.0**-53
    (0.0, True)
    """
    return 2.0 * terms * UNIT


def up(terms: int) -> float:
    """A factor that lifts a computed sum of so many non-negative products above the exact one."""
    return 1.0 + 2.0 * gamma(terms + 4)


def down(terms: int) -> float:
    """A factor that brings a computed sum of so many non-negative products below the exact one."""
    return 1.0 - 2.0 * gamma(terms + 4)


DISTANCE = 1e-10
"""A line closer to a vertex than this does not split there.

Vertices are interpolated along edges of length ≤ √2 with a relative error of a few 2⁻⁵³, and a vertex inherits the
error of at most a few hundred ancestors: below 1e-13. Lines that coincide in exact arithmetic differ by the rounding of
their forms, of the same order unless they cancel (see NOISE). 1e-10 leaves a factor of a thousand, and a strip of
that width across the whole domain is 1e-10 of its area; unsplit parts are added up and reported.
"""

NOISE = 2.0**-40
"""Values of a neuron below this times its scale count as rounding; for few inputs less (`noise_share`).

The scale of a neuron is the largest sum of |weight · input| + |bias| seen on sample thetas. A neuron that is zero in
exact arithmetic (a dead input, w·h − w·h) stays below it, so rounding does not split regions. No proof rests on it:
values that count as rounding are missed parts, and enter the error of every layer above.
"""


def noise_share(terms: int) -> float:
    """The share of its scale below which a sum of so many products counts as rounding.

    One product has an error of at most terms · 2⁻⁵³; eight times that leaves room for updates and for the errors of the
    inputs themselves.

    >>> noise_share(4) < 2.0**-45, noise_share(10_000) == NOISE
    (True, True)
    """
    return min(NOISE, 8.0 * (terms + 16) * UNIT)


DOUBT = 64.0
"""A region on which a neuron stays below this times its noise is doubtful: its sign may be another one on all of it."""

NEAR = 2.0**-20
"""A region on which a neuron's value comes closer to zero than this times the largest scale of its layer lies beside
its kink.

Only such regions are counted when the width of kinks is added up (`regions.forward_error`), so every proved error has
to be smaller; where one is not, the attention of the whole map is left undecided.
"""

MAX_SYNCS = 256
"""Updates of a layer's forms before they are computed from scratch."""

MAX_ADDITIONS = 256
"""Additions to a layer's forms that updates may make before that: one for each column, but one for several columns that
are summed up first. The errors of updates are bounded from the additions and changes that really occurred (see
`regions.forward_error`); this keeps them of the order of one product."""

MAX_FLIPS = 512
"""Updates of the attention maps before they are computed from scratch."""

MAX_FLIPS_EACH = 8
"""Updates for one and the same neuron before that: a wrong gradient at a neuron enters the maps once for each of its
flips, so errors grow by at most this factor from a layer to the one below (see `attention.gradients`)."""

MAX_LOCAL_FLIPS = 4096
"""Updates of the attention maps before they are computed from scratch, where a flip is local: what it adds is computed
from the weights each time, so that its errors do not depend on the flips before it (`attention.gradients`)."""

MAX_ROWS_EACH = 2
"""How often the gradient of one head may be computed before that: each time its error is another one."""

FLIP_ERROR = 1e-6
"""Maps are updated by flips only where that bounds their error by this share of the original map's size."""

AREA = 1e-9
"""How far the areas of all regions may be from 1: 10⁵ regions of area 1e-5 with vertices off by 1e-13 give 1e-11."""

BESIDE = 1e-7
"""How far beside an edge a point is taken to compare both sides: 1,000 DISTANCE, far below the regions' size there."""

LOGITS = 1e-9
"""How far the logits of a region may be from a plain forward pass, relative to their size: about 1,000 times what is
measured on sixteen layers; a pattern that is wrong by one neuron is off by far more, away from its kink."""

TIE = 1e-9
"""The two largest logits tie at the unperturbed image if they are closer than this, relative to their size.
A forward pass in float64 is off by about 1e-13; the margin has to be well above the slack of every region around."""

CLIPPED = 1e-9
"""A pixel farther than this from 0 and 1 is not clipped: a point BESIDE an edge moves a pixel by more, unless the
pixel hardly depends on theta; then either state is right to within this."""

TOUCH = 1e-9
"""Two polytopes touch if their common facet is wider than this: 10 DISTANCE, since tolerance may have moved the ends of
both facets by DISTANCE each. A narrower one may be a common vertex or edge."""

FEASIBILITY = 1e-10
"""The smallest tolerance that HiGHS takes; rows have unit normals, so it is a distance in t."""

THIN = 10 * DISTANCE
"""Facets and regions of the traversal that linear programs find need a larger inscribed ball: ten times the tolerance
of the programs."""

SHORTEST = 4 * DISTANCE
"""Shorter edges of a traversed polygon are no facets: longer ones lead to the regions beyond."""

CLEAR = 1e-7
"""A point inside a facet this far from the other facets needs no program: 1,000 times the distance that decides the
pattern there."""

BEYOND = 1e-9
"""A point moves this far to tell the next knot cell: far below the width of a cell, far above rounding."""

SLOW = 1e-12
"""A line runs along a plane if it approaches it by less than this, in t, over its whole length."""

MAX_MAP_PARAMETERS = 3
"""Parameters that a map takes at once, and with it exact regions, figures and boundaries: polytopes have up to three
dimensions."""
