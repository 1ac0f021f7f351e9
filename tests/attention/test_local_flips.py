"""Maps that are updated flip by flip on convolution-like layers, against plain products in extended precision."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

from steadygaze.attention import flip_kernels, rows
from steadygaze.attention.distances import Distance
from steadygaze.attention.filters import Filter
from steadygaze.attention.gradients import AimedChain, coarse_error, gradient_maps, pattern_error
from steadygaze.attention.inconsistency import original_maps
from steadygaze.attention.local_errors import path_error, path_norms
from steadygaze.attention.map_errors import MapErrors
from steadygaze.attention.measuring import measure, measure_again
from steadygaze.attention.options import AttentionOptions
from steadygaze.attention.spans import Spans
from steadygaze.network.graph import AffineMap, Chain
from steadygaze.question import make_question
from steadygaze.regions.subdivide import subdivide

LAYOUTS = {
    "one convolution": ("s", (30, 40)),
    "one convolution and heads": ("sd", (30, 40, 9)),
    "two convolutions": ("ss", (30, 40, 26)),
    "two convolutions and heads": ("ssd", (40, 50, 60, 12)),
    "three convolutions and heads": ("sssd", (30, 40, 30, 20, 7)),
    "two dense layers": ("ssdd", (30, 40, 26, 9, 8)),
    "three dense layers": ("sddd", (41, 35, 12, 9, 8)),
    "a convolution above": ("ds", (30, 20, 26)),
}
LOCAL = list(LAYOUTS)[:7]
OPTIONS = AttentionOptions(Filter(()), Distance.L2, None)


def make_chain(kinds: str, sizes: tuple[int, ...], rng: np.random.Generator) -> Chain:
    """Random layers, a sparse one with two to six weights a row; some weights are thirty times larger."""
    maps = []
    for kind, (before, after) in zip(kinds + "d", pairwise((*sizes, 4)), strict=True):
        matrix = rng.normal(size=(after, before)) * np.where(rng.random((after, before)) < 0.05, 30.0, 1.0)
        if kind == "s":
            ranks = rng.random((after, before)).argsort(axis=1)
            matrix *= ranks < rng.integers(2, 7, size=(after, 1))
            maps.append(AffineMap(csr_array(matrix), np.zeros(after)))
        else:
            maps.append(AffineMap(np.ascontiguousarray(matrix), np.zeros(after)))
    return Chain(tuple(maps))


def true_maps(chain: Chain, bits: list[np.ndarray]) -> np.ndarray:
    """Gradients of the logits (K, pixels) under a pattern, in extended precision."""
    dense = [a.matrix.toarray() if issparse(a.matrix) else a.matrix for a in chain.maps]
    product = dense[-1].astype(np.longdouble)
    for matrix, layer in zip(dense[-2::-1], bits[::-1], strict=True):
        product = (product * layer) @ matrix.astype(np.longdouble)
    return product


class Walker:
    """Moves maps from pattern to pattern."""

    def __init__(self, chain: Chain, max_flips: int, rng: np.random.Generator) -> None:
        self.chain, self.rng = chain, rng
        self.rows = rows.lay_out(chain.maps, max_flips)
        self.maps = rows.blank_maps(self.rows)
        self.bits = [rng.random(len(affine.bias)) < 0.5 for affine in chain.maps[:-1]]

    def flip(self, flips: int) -> None:
        """Flip a number of random neurons, in the upper layers as often as in the lower ones."""
        for _ in range(flips):
            layer = self.bits[self.rng.integers(len(self.bits))]
            layer[self.rng.integers(len(layer))] ^= True
        packed = np.concatenate([np.packbits(layer) for layer in self.bits])
        packed = np.pad(packed, (0, len(self.maps.packed) - len(packed)))
        flip_kernels.move_to(self.rows, self.maps, packed, packed.view(np.uint64))

    @property
    def error(self) -> float:
        here = self.maps.gradient[:, : self.rows.offsets[1]]
        return OPTIONS.total_size(np.asarray(here - true_maps(self.chain, self.bits), dtype=np.float64))


@pytest.mark.parametrize("room", [2, 48])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_maps_stay_within_their_error(layout: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "ROOM", room)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        chain = make_chain(*LAYOUTS[layout], rng)
        assert rows.is_local(chain.maps) == (layout in LOCAL)
        walker = Walker(chain, 500, rng)
        walker.rows = walker.rows._replace(full_cost=np.inf)
        bound = coarse_error(AimedChain.of(chain, np.eye(4)), OPTIONS, 500)
        size = OPTIONS.total_size(np.asarray(true_maps(chain, walker.bits), dtype=np.float64))
        assert bound < 1e-6 * size
        since_scratch = []
        for _ in range(400):
            walker.flip(int(rng.integers(4)))
            assert walker.error <= bound
            since_scratch.append(int(walker.maps.state[0]))
        if layout in LOCAL and room == 48:
            assert max(since_scratch) > 400


@pytest.mark.parametrize("layer", [2, 3])
def test_a_dense_neuron_that_lost_its_row_too_often_means_from_scratch(
    layer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "ROOM", 1)
    rng = np.random.default_rng(3)
    walker = Walker(make_chain(*LAYOUTS["two dense layers"], rng), 10_000, rng)
    walker.rows = walker.rows._replace(full_cost=np.inf)
    walker.flip(0)
    states = []
    for number in range(40):
        walker.bits[layer][number % 2] ^= True
        walker.flip(1)
        states.append(int(walker.maps.state[0]))
        assert walker.error <= coarse_error(AimedChain.of(walker.chain, np.eye(4)), OPTIONS, 100)
    assert (np.diff(states) < 0).any() and max(states) < 20


def stale_walker() -> tuple[Walker, float]:
    """Maps that follow flips in all four layers, with a row of the first neuron of each dense layer; their bound."""
    rng = np.random.default_rng(8)
    walker = Walker(make_chain(*LAYOUTS["two dense layers"], rng), 10_000, rng)
    walker.rows = walker.rows._replace(full_cost=np.inf)
    walker.flip(0)
    for layer in (3, 2, 3, 2, 1, 0):
        walker.bits[layer][0] ^= True
        walker.flip(0)
    bound = coarse_error(AimedChain.of(walker.chain, np.eye(4)), OPTIONS, 10_000)
    assert walker.error <= bound
    return walker, bound


def flip_all_layers(walker: Walker) -> float:
    """The largest error while all neurons of one layer after another flip."""
    errors = []
    for layer in (1, 0, 2, 3):
        walker.bits[layer] ^= True
        walker.flip(0)
        errors.append(walker.error)
        assert walker.maps.state[0] > 0
    return max(errors)


@pytest.mark.parametrize("name", [None, "tail_rows", "tail", "gradient", "active"])
def test_whatever_a_flip_forgets_to_update_is_noticed(name: str | None) -> None:
    """Two neurons of one layer flip, after which one array is what it was before: rows, gradients in the tail, …"""
    caught = []
    for layer in range(4):
        walker, bound = stale_walker()
        stale = None if name is None else getattr(walker.maps, name).copy()
        for number in np.flatnonzero(walker.bits[layer])[-2:]:
            walker.bits[layer][number] ^= True
        walker.flip(0)
        if stale is not None and not np.array_equal(stale, getattr(walker.maps, name)):
            getattr(walker.maps, name)[...] = stale
        caught.append(max(walker.error, flip_all_layers(walker)) > bound)
    # The upper dense layer alone changes gradients in the tail: those of the lower one are part of its weights.
    expected = {None: [], "tail_rows": [0, 1, 2, 3], "tail": [3], "gradient": [0, 1, 2, 3], "active": [0, 1, 2, 3]}
    assert [layer for layer in range(4) if caught[layer]] == expected[name]


@pytest.mark.parametrize("distance", Distance)
@pytest.mark.parametrize("layout", LOCAL)
def test_norms_of_paths_are_bounds(layout: str, distance: Distance) -> None:
    """Against products of the absolute matrices: the paths from each neuron to the pixels, and through one neuron."""
    chain = make_chain(*LAYOUTS[layout], np.random.default_rng(9))
    sizes = [abs(a.matrix.toarray()) if issparse(a.matrix) else abs(a.matrix) for a in chain.maps]
    below, above, heaviest = np.eye(sizes[0].shape[1]), [sizes[-1]], []
    for matrix in sizes[-2:0:-1]:
        above.append(above[-1] @ matrix)
    for number, norm in enumerate(path_norms(chain, distance)):
        below = sizes[number] @ below
        true = np.linalg.norm(below, ord=distance.value, axis=1)
        assert (true <= norm * (1.0 + 1e-12)).all()
        heaviest.append(float((above[-1 - number].sum(axis=0) * true).max()))
    is_last_exact = len(LAYOUTS[layout][0]) > LAYOUTS[layout][0].count("s")
    assert max(heaviest[:-1] if is_last_exact else heaviest) * 10 <= path_error(chain, distance)


def test_few_flips_are_worth_following_many_are_not() -> None:
    rng = np.random.default_rng(5)
    walker = Walker(make_chain(*LAYOUTS["two convolutions and heads"], rng), 10_000, rng)
    walker.flip(0)
    assert walker.maps.state[0] == 0
    walker.flip(1)
    assert walker.maps.state[0] == 1
    walker.flip(3000)
    assert walker.maps.state[0] == 0


def test_no_flip_is_followed_where_none_is_allowed() -> None:
    rng = np.random.default_rng(6)
    walker = Walker(make_chain(*LAYOUTS["two convolutions and heads"], rng), 0, rng)
    for _ in range(10):
        walker.flip(1)
        assert walker.maps.state[0] == 0


@pytest.mark.parametrize("words", [("identity", "l2"), ("mean", "l1")], ids="+".join)
def test_convolutional_curves_do_not_depend_on_threads_and_are_those_from_scratch(words: tuple[str, str]) -> None:
    """More than one block of patterns, on a bundled network."""
    specs = ["brightness:0.3..0.45", "patch:x=12,y=12,w=4,h=4:0.3..0.45"]
    question = make_question("M-CNN-S", "mnist:69990", specs, filter=words[0], dist=words[1])
    compound, options = question.compound, question.attention
    regions, original = subdivide(compound), original_maps(compound, options)
    assert len(regions.patterns) > 300
    first, second = (measure(compound, regions, options, original, threads=threads) for threads in (1, 3))
    assert np.array_equal(first.constant, second.constant)
    everyone = np.arange(len(first.constant))
    spans = Spans.of_regions(compound, regions)
    _, again = measure_again(compound, regions.patterns, first, spans, options, original, everyone)
    bound = MapErrors(compound, regions.patterns, first, options).coarse
    assert 0.0 < np.abs(first.constant - again.constant).max() <= bound < 1e-6 * first.constant.max()


@pytest.mark.parametrize("layout", ["d", "dd", "ddd", *LOCAL])
def test_maps_of_sums_of_logits_are_within_their_bounds(layout: str) -> None:
    """Weights of logits that cancel: the rounding that remains is within the bounds."""
    rng = np.random.default_rng(5)
    kinds, sizes = LAYOUTS.get(layout, (layout[1:], tuple([12] * len(layout))))
    chain = make_chain(kinds, sizes, rng)
    targets = rng.normal(size=(3, 4)) * 10.0 ** rng.integers(0, 6, size=(3, 4))
    aimed = AimedChain.of(chain, targets)
    for _ in range(5):
        bits = [rng.random((1, len(affine.bias))) < 0.5 for affine in chain.maps[:-1]]
        true = targets.astype(np.longdouble) @ true_maps(chain, [layer[0] for layer in bits])
        error = float(np.linalg.norm((gradient_maps(aimed, bits)[0] - true).astype(np.float64), axis=1).sum())
        assert 0.0 < error <= pattern_error(aimed, OPTIONS, bits)
        assert error <= coarse_error(aimed, OPTIONS, 0)
