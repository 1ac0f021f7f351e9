"""Fingerprints of neurons: exact sums modulo a prime, equal only for equal values."""

import numpy as np
import pytest

from steadygaze.fingerprints import AFTER_CLIP, AFTER_LAYER, PRIME, pixel_prints, products_of, symbols
from steadygaze.network.joins import Winner
from steadygaze.network.operators import MatMul, Reshape, ScaleShift
from steadygaze.regions.assemble import Block, CutTable
from steadygaze.regions.fingerprint_kernels import update_prints
from steadygaze.regions.walks import start_walk
from support.networks.branching import Builder, random_graph
from support.networks.layered_networks import batch_norm
from support.networks.pooled import branching_compound


def by_integers(program, active):
    """All fingerprints under a pattern, in Python's integers."""
    found = [int(value) for value in program.prints]
    for gate, layer, first, size, result, _, pointers in program.print_stages.tolist():
        for k in range(size):
            value = found[first + k]
            if gate == AFTER_CLIP:
                value = (value if active[k] else 0) if active[program.offsets[1] + k] else 1
            if gate == AFTER_LAYER and not active[program.offsets[layer - 1] + k]:
                value = 0
            for entry in range(program.print_columns[pointers + k], program.print_columns[pointers + k + 1]):
                row = result + int(program.print_rows[entry])
                found[row] = (found[row] + int(program.print_values[entry]) * value) % PRIME
    return found


@pytest.mark.parametrize("seed", range(20))
def test_updates_are_exact(seed):
    image = np.random.default_rng(seed).integers(0, 9, (1, 2, 2)) / 8.0
    compound = branching_compound(random_graph(seed), image, "brightness:-0.5..0.5", "patch:x=0,y=0,w=2,h=1")
    (cell,) = compound.programs
    last = len(cell.program.offsets) - 3
    walk = start_walk(cell, CutTable([cell]).cell(0), np.zeros(1, dtype=np.int64), Block(0))
    walk.run(last)
    for _ in range(2):
        update_prints(cell.program, walk.walk, last)
        assert walk.walk.prints.tolist() == by_integers(cell.program, walk.walk.active)
        walk.walk.active[: cell.program.offsets[-2]] ^= 1


def test_symbols_are_odd_distinct_and_below_the_prime():
    values = np.concatenate([np.random.default_rng(0).normal(size=1000), [2.0, 0.5, 1e-300]])
    found = symbols(values).astype(object)
    assert len(set(found)) == len(values)
    assert ((found + symbols(-values).astype(object)) % PRIME == 0).all()
    assert (found < PRIME).all()


def test_pixels_that_share_a_line_by_rounding_are_not_equal():
    line_of, definition = np.array([0, 0, 1, 1, -1, -1, -1]), np.array([[1.0, 1, 2, 3, 4, 4, 0]])
    lines, (pointers, rows, values, start) = pixel_prints(line_of, 2, np.array([0, 0, 0, 0, 0.5, 0.5, 0]), definition)
    assert len(lines) == 2
    assert lines[0] != lines[1]
    assert start[:2].tolist() == [0, 0]
    assert start[2] != start[3]
    assert 0 not in start[2:6]
    assert start[4] == start[5]
    assert start[6] == 0
    assert pointers.tolist() == [0, 2, 4]
    assert rows.tolist() == [0, 1, 2, 3]
    assert values.tolist() == [1] * 4


def scaled_graph(scale):
    """The largest of four pixels after a scale."""
    builder = Builder((1, 2, 2))
    value = builder.add(scale, builder.add(Reshape((1, 1, 2, 2)), 0))
    value = builder.add(Winner(np.array([[0, 1, 2, 3]]), (1, 1)), value)
    builder.add(MatMul(np.ones((1, 2)), np.zeros(2)), value)
    return builder.graph()


def test_constants_that_were_rounded_before_are_equal_to_nothing():
    (products,) = products_of(scaled_graph(ScaleShift(offset=0.1, read_roundings=1)))
    assert any(len(set(product.start.tolist())) == 4 for product in products)


@pytest.mark.parametrize(
    "scale",
    [batch_norm([0.1], [1.3], [2.0], [0.7], 1e-5), ScaleShift(mean=0.1307, divisor=0.3081), ScaleShift(gain=0.3)],
)
def test_a_scale_counts_by_its_numbers(scale):
    (products,) = products_of(scaled_graph(scale))
    for product in products:
        assert len(set(product.start.tolist())) == 1
        assert len(set(product.values.tolist())) == 1


def test_scales_that_differ_below_rounding_are_not_equal():
    """Roots of 2 and of the next float are the same float."""
    variance = np.array([[2.0, np.nextafter(2.0, 3.0)], [2.0, 2.0]])
    scale = ScaleShift(gain=1e-3, variance=variance, epsilon=0.0)
    (products,) = products_of(scaled_graph(scale))
    assert any(len(set(product.values.tolist())) == 2 for product in products)
