"""A table of patterns returns every stored row, whichever rows it keeps whole and however it was joined."""

import numpy as np
import pytest

from steadygaze.question import make_question
from steadygaze.regions.patterns import EVERY, NARROW, PatternTable, join_tables
from steadygaze.regions.subdivide import subdivide


def walked(rows: int, width: int, seed: int, changes: int = 3) -> np.ndarray:
    """Rows that differ from the row before in a few bytes, now and then in all of them."""
    generator = np.random.default_rng(seed)
    table = generator.integers(0, 256, (rows, width), dtype=np.uint8)
    for r in range(1, rows):
        if generator.random() > 0.02:
            kept = table[r].copy()
            table[r] = table[r - 1]
            places = generator.integers(0, width, changes)
            table[r, places] = kept[places]
    return table


@pytest.mark.parametrize("every", [None, 1, 2, 7, 1000])
@pytest.mark.parametrize(("rows", "width"), [(0, 5), (1, 300), (EVERY, 300), (EVERY + 1, 300), (500, NARROW), (500, 9)])
def test_rows_are_given_back(rows: int, width: int, every: int | None) -> None:
    wanted = walked(rows, width, seed=rows + width)
    table = PatternTable.of(wanted, every=every)
    assert table.shape == wanted.shape
    assert np.array_equal(np.asarray(table), wanted)
    chosen = np.random.default_rng(0).integers(0, max(rows, 1), 40 if rows else 0)
    assert np.array_equal(table[chosen], wanted[chosen])
    if rows:
        assert np.array_equal(table[rows - 1], wanted[-1])


def test_wide_rows_take_little() -> None:
    wanted = walked(2_000, 1_853, seed=3)
    table = PatternTable.of(wanted)
    held = sum(array.nbytes for array in (table.keys, table.key_row, table.starts, table.places, table.bytes))
    assert not table.is_plain
    assert held < 0.15 * wanted.nbytes


@pytest.mark.parametrize("width", [9, 300])
def test_joined_tables(width: int) -> None:
    parts = [walked(rows, width, seed) for seed, rows in enumerate((70, 0, 1, 64, 200))]
    table = join_tables([PatternTable.of(part) for part in parts])
    assert np.array_equal(np.asarray(table), np.concatenate(parts))


def test_rows_that_do_not_exist() -> None:
    table = PatternTable.of(walked(100, 300, seed=1))
    with pytest.raises(IndexError, match="of 100"):
        table[np.array([5, 100])]
    with pytest.raises(IndexError):
        table[-1]


def test_the_map_of_a_convolutional_network_keeps_differences() -> None:
    question = make_question("M-CNN-S", "mnist:69990", ["brightness:0..0.1", "patch:x=12,y=12,w=4,h=4:0..0.1"])
    regions = subdivide(question.compound)
    assert not regions.patterns.is_plain
    assert len(np.unique(np.asarray(regions.patterns), axis=0)) == len(regions.patterns)
    images = question.perturbed.images(question.compound.to_theta(regions.polytopes.centres[::50]))
    values = question.model.graph.trace(images)[0]
    bits = np.concatenate([np.packbits(value > 0.0, axis=1) for value in values], axis=1)
    assert (np.asarray(regions.patterns)[regions.pattern[::50]] == bits).mean() > 0.999
