"""Every threshold of the float64 computation, each with its derivation.

Lengths are in units of the domain: each axis of the domain is scaled to [0, 1] before anything is compared.
"""

UNIT = 2.0**-53
"""Unit roundoff of float64."""

DISTANCE = 1e-10
"""A line closer to a vertex than this does not split there.

Vertices are interpolated along edges of length ≤ √2 with a relative error of a few 2⁻⁵³, and a vertex inherits the
error of at most a few hundred ancestors: below 1e-13. Lines that coincide in exact arithmetic differ by the rounding of
their forms, of the same order unless they cancel (see NOISE). 1e-10 leaves a factor of a thousand, and a strip of
that width across the whole domain is 1e-10 of its area; what is left unsplit is added up and reported.
"""

NOISE = 2.0**-40
"""Values of a neuron below this times its scale are taken for rounding; for few inputs less (`noise_share`).

The scale of a neuron is the largest sum of |weight · input| + |bias| seen on sample thetas. A neuron that is zero in
exact arithmetic (a dead input, w·h − w·h) stays below it, so that rounding does not split regions. No proof rests on
it: values taken for rounding count as missed parts, and enter the error of every layer above.
"""


def noise_share(terms: int) -> float:
    """The share of its scale below which a sum of so many products is taken for rounding.

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
seen on sixteen layers; a pattern that is wrong by one neuron shows up well above it away from its kink."""

TIE = 1e-9
"""Two largest logits closer than this (relative to their size) at the unperturbed image are a tie: no label to keep.
A forward pass in float64 is off by about 1e-13; the margin has to be well above the slack of every region around."""

CLIPPED = 1e-9
"""A pixel farther than this from 0 and 1 is not clipped: a point BESIDE an edge moves a pixel by more, unless the
pixel hardly depends on theta; then either state is right to within this."""

TOUCH = 1e-9
"""Two polytopes touch where their common facet is wider than this: 10 DISTANCE, since tolerance may have moved the
ends of both facets by DISTANCE each. What is narrower may be nothing but a common vertex or edge."""

FEASIBILITY = 1e-10
"""The smallest tolerance that HiGHS takes; rows have unit normals, so it is a distance in t."""

THIN = 10 * DISTANCE
"""Facets and regions of the traversal with a smaller inscribed ball do not count, where they are found by linear
programs: ten times the tolerance of these."""

SHORTEST = 4 * DISTANCE
"""Edges of a traversed polygon below this are no facets: what lies beyond is reached through longer ones."""

CLEAR = 1e-7
"""Distance to the other facets from which on a point inside a facet is good enough without a program: 1,000 times what
decides the pattern there."""

BEYOND = 1e-9
"""How far a point is moved to tell in which knot cell it goes on: far below the width of a cell, far above rounding."""

SLOW = 1e-12
"""A line runs along a plane when it comes nearer by less than this, in t, over its whole length."""

MAX_MAP_PARAMETERS = 3
"""Parameters that a map takes at once, and with it exact regions, figures and boundaries: polytopes have up to three
dimensions."""
