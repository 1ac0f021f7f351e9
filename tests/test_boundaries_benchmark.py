"""The benchmark of boundaries finds what is wrong: planted components, failures, and searches that did not end."""

from dataclasses import replace

import boundaries
from steadygaze.api import make_problem, solve
from steadygaze.engines.search import search
from steadygaze.labels import Property


def test_boundaries_are_compared_with_the_map():
    question = make_problem(
        "M-FNN-100", "mnist:69990", ["brightness:0..0.3", "patch:x=12,y=12,w=4,h=4:0..0.3"], property="ar", delta=3.0
    )
    result = solve(question)
    keys = boundaries.keys_of(result)
    found = search(question, method="boundary")
    assert found.components
    assert boundaries.differences(result, keys, found, Property.AR) == []
    part = found.components[0]
    shifted = replace(part, inner=frozenset(sorted(part.inner)[1:]))
    for components, failures in (([shifted, *found.components[1:]], 0), ([], 0), (None, 0), (found.components, 1)):
        planted = replace(found, components=components, failures=failures)
        assert boundaries.differences(result, keys, planted, Property.AR)
