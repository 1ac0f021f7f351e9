"""Laws of answers: how shares, verdicts and inconsistency change with δ, classes, scale, threads, and what adds up."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from steadygaze.api import verify
from steadygaze.attention.filters import Filter
from steadygaze.errors import ImageError
from steadygaze.labels import Kept, Verdict
from steadygaze.results.other_deltas import ENOUGH
from steadygaze.results.result import Result
from support.networks.layered_models import ask
from support.oracles.attention_by_definition import plain_filter

SPECS = (
    ("brightness:-0.5..0.5", "patch:x=0,y=0,w=1,h=2"),
    ("translate:dx=1", "brightness:0..0.5"),
    ("translate:dy=2:-1.5..1",),
    ("darkness",),
)
LAWFUL = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def questions(draw: st.DrawFn) -> tuple[list, np.ndarray, tuple[str, ...], dict]:
    """A random network of three classes on a tiny image, perturbations and options."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    layers = [(rng.normal(size=(5, 4)), 0.3 * rng.normal(size=5)), (rng.normal(size=(3, 5)), 0.3 * rng.normal(size=3))]
    image = rng.choice([0.0, 0.2, 0.6, 1.0], size=(1, 2, 2))
    options = {
        "filter": draw(st.sampled_from(["identity", "abs", "mean", "abs+mean"])),
        "dist": draw(st.sampled_from(["l1", "l2"])),
    }
    return layers, image, draw(st.sampled_from(SPECS)), options


def answer(question: tuple[list, np.ndarray, tuple[str, ...], dict], **more: object) -> Result:
    layers, image, specs, options = question
    try:
        return ask(layers, image, specs, **{**options, **more})
    except ImageError:
        assume(False)
        raise


@cache
def bundled(delta: float | str = 3.0, **options: object) -> Result:
    return verify(
        "M-FNN-100", "mnist:69992", ("translate:dy=1", "brightness:0..0.2"), delta=delta, **{"threads": 1, **options}
    )


def inconsistency_bounds(result: Result) -> np.ndarray:
    """[ai_min, ai_max] of every region (R, 2)."""
    return result.answer.labels.reach


# δ


@LAWFUL
@given(questions(), st.lists(st.floats(0, 3), min_size=2, max_size=5))
def test_the_share_of_kept_attention_grows_with_delta(question: tuple, parts: list[float]) -> None:
    result = answer(question)
    shares = [result.with_delta(part * result.tiling.answers.size).areas for part in sorted(parts)]
    for smaller, larger in pairwise(shares):
        for bound in (0, 1):
            assert larger["AR"][bound] >= smaller["AR"][bound] - 1e-12
            assert larger["IR"][bound] <= smaller["IR"][bound] + 1e-12
            assert larger["CR"][bound] == pytest.approx(smaller["CR"][bound], abs=1e-12)


@LAWFUL
@given(questions())
def test_enough_delta_is_enough_and_a_little_less_is_not(question: tuple) -> None:
    result = answer(question, property="ar")
    enough = result.tiling.answers.enough_delta
    assert enough is not None
    kept = result.with_delta(enough)
    # On kinks the bounds of the attention may be wider.
    assert kept.verdict is not Verdict.NOT_ROBUST
    assert kept.areas["AR"] == (1.0 - kept.sliver_share, 1.0)
    assert np.isinf(kept.answer.nearest["AR"].low)
    less = result.with_delta(enough * (1 - 1e-6))
    assume(enough > 1e-9)
    assert less.verdict is Verdict.NOT_ROBUST
    assert less.areas["AR"][1] < 1.0 + less.sliver_share


@LAWFUL
@given(questions(), st.integers(1, 14))
def test_just_below_the_largest_inconsistency_nothing_is_claimed_robust(question: tuple, digits: int) -> None:
    """Also where the part that violates is thinner than every tolerance."""
    result = answer(question, property="ar")
    domain = result.question.perturbed.domain
    corners = np.stack([part.ravel() for part in np.meshgrid(*zip(domain.low, domain.high, strict=True))], axis=1)
    largest = max(result.at(corner).inconsistency for corner in corners)
    low = result.with_delta(largest * (1 - 10.0**-digits)).areas["AR"][0]
    assert result.with_delta(largest * (1 - 10.0**-digits)).verdict is not Verdict.ROBUST
    assert low <= 1.0


@LAWFUL
@given(questions(), st.sampled_from(["10%", "25%", "50%", "100%", "0%", "0.5", "3.0"]))
def test_another_delta_is_as_good_as_a_new_run(question: tuple, delta: str) -> None:
    asked, fresh = answer(question, delta=1.0).with_delta(delta), answer(question, delta=delta)
    assert asked.areas == fresh.areas
    assert asked.verdict is fresh.verdict
    assert asked.answer.sets == fresh.answer.sets
    for key in ("CR", "AR"):
        first, second = asked.answer.nearest[key], fresh.answer.nearest[key]
        assert (first.low, first.high, first.piece) == (second.low, second.high, second.piece)
        assert np.array_equal(first.theta, second.theta) if first.theta is not None else second.theta is None


@LAWFUL
@given(questions())
def test_the_listed_shares_are_those_of_these_deltas(question: tuple) -> None:
    result = answer(question)
    assert list(result.kept_shares) == ["10%", "25%", "50%", "100%"]
    for delta, bounds in result.kept_shares.items():
        low, high = result.with_delta(delta).areas["AR"]
        assert bounds[0] <= low + 1e-12 and high <= bounds[1] + 1e-12
        # Bounds of kinks, and maps computed again, may decide a little more.
        assert bounds[1] - bounds[0] <= high - low + 2.0 * (result.tiling.answers.slivers + ENOUGH)


# What adds up


def assert_adds_up(result: Result) -> None:
    cells = np.array(result.answer.shares.cells)
    areas = result.areas
    assert cells.min() >= 0 and cells.sum() == pytest.approx(1, abs=1e-9)
    assert areas["CR"][0] + areas["MR"][0] + cells[Kept.UNKNOWN].sum() == pytest.approx(1, abs=1e-9)
    assert areas["AR"][0] + areas["IR"][0] + cells[:, Kept.UNKNOWN].sum() == pytest.approx(1, abs=1e-9)
    for word, others in (("CR", ("AR", "IR")), ("MR", ("AR", "IR"))):
        assert sum(areas[f"{word}&{other}"][0] for other in others) <= areas[word][0] + 1e-12
        assert sum(areas[f"{word}&{other}"][1] for other in others) >= areas[word][1] - 1e-12
    for word in ("AR", "IR"):
        assert areas[f"CR&{word}"][0] + areas[f"MR&{word}"][0] <= areas[word][0] + 1e-12
        assert areas[f"CR&{word}"][1] + areas[f"MR&{word}"][1] >= areas[word][1] - 1e-12
    for first, second in (("CR", "MR"), ("AR", "IR")):
        assert areas[first][0] + areas[second][1] == pytest.approx(1, abs=1e-9)
    joint = [areas[f"{a}&{b}"][0] for a in ("CR", "MR") for b in ("AR", "IR")]
    assert sum(joint) + areas["undecided"][0] == pytest.approx(1, abs=1e-9)
    assert all(0 <= low <= high <= 1 for low, high in areas.values())


@LAWFUL
@given(questions(), st.floats(0, 2))
def test_shares_add_up(question: tuple, part: float) -> None:
    result = answer(question)
    assert_adds_up(result.with_delta(part * result.tiling.answers.size))


@pytest.mark.parametrize("delta", [3.0, "10%", "50%", "100%"])
def test_shares_of_a_bundled_network_add_up(delta: float | str) -> None:
    result = bundled().with_delta(delta)
    assert_adds_up(result)
    assert result.areas["undecided"][0] < 1e-6


@pytest.mark.parametrize("delta", [3.0, "50%"])
def test_regions_add_up(delta: float | str) -> None:
    """Every region is in one of the three sets of each kind, unless it is undecided."""
    answer = bundled().with_delta(delta).answer
    count, sets = len(answer.answers.regions), answer.sets
    assert sets["CR"] + sets["MR"] + sets["CB"] <= count
    assert count - 5 <= sets["AR"] + sets["IR"] + sets["AB"] <= count
    assert sets["AB"] > 0


# Classes


@LAWFUL
@given(questions(), st.sampled_from([(0,), (1, 2), (0, 2)]))
def test_fewer_classes_are_less_inconsistent(question: tuple, classes: tuple[int, ...]) -> None:
    everything, some = answer(question), answer(question, classes=list(classes))
    # Where maps meet, rounding takes 1e-8 off the lower bound of every class.
    assert (inconsistency_bounds(some) <= inconsistency_bounds(everything) + 1e-6).all()
    delta = 0.5 * everything.tiling.answers.size
    assert some.with_delta(delta).areas["AR"][0] >= everything.with_delta(delta).areas["AR"][0] - 1e-9


@LAWFUL
@given(questions())
def test_single_classes_add_up(question: tuple) -> None:
    """ai of all classes is the sum over the classes, at every theta."""
    everything = answer(question)
    singles = [answer(question, classes=[j]) for j in range(3)]
    domain = everything.question.perturbed.domain
    for share in (0.1, 0.45, 0.8):
        theta = domain.low + share * domain.widths
        total = sum(single.at(theta).inconsistency for single in singles)
        assert everything.at(theta).inconsistency == pytest.approx(total)
    assert everything.tiling.answers.size == pytest.approx(sum(single.tiling.answers.size for single in singles))


@LAWFUL
@given(questions())
def test_predicted_is_the_label(question: tuple) -> None:
    predicted = answer(question, classes="predicted")
    chosen = answer(question, classes=[predicted.label])
    assert predicted.areas == chosen.areas
    assert predicted.tiling.answers.size == chosen.tiling.answers.size


# Scale


@LAWFUL
@given(questions(), st.sampled_from([2.0, 0.25, 1024.0]))
def test_scaled_logits_scale_the_inconsistency(question: tuple, factor: float) -> None:
    """Powers of two, which floats scale exactly: a relative δ gives the same answer, an absolute one that of
    δ/factor."""
    layers, image, specs, options = question
    weight, bias = layers[-1]
    scaled = ([*layers[:-1], (factor * weight, factor * bias)], image, specs, options)
    before, after = answer(question, delta="50%"), answer(scaled, delta="50%")
    assert after.tiling.answers.size == pytest.approx(factor * before.tiling.answers.size)
    assert inconsistency_bounds(after) == pytest.approx(factor * inconsistency_bounds(before), abs=1e-9 * factor)
    assert after.label == before.label
    for name, bounds in before.areas.items():
        assert after.areas[name] == pytest.approx(bounds, abs=1e-8)
        same = after.with_delta(factor * before.answer.delta).areas[name]
        assert same == pytest.approx(bounds, abs=1e-8)


@LAWFUL
@given(questions(), st.floats(-5, 5))
def test_a_constant_added_to_all_logits_changes_nothing(question: tuple, constant: float) -> None:
    layers, image, specs, options = question
    weight, bias = layers[-1]
    lifted = answer(([*layers[:-1], (weight, bias + constant)], image, specs, options))
    plain = answer(question)
    assert lifted.label == plain.label
    for name, bounds in plain.areas.items():
        assert lifted.areas[name] == pytest.approx(bounds, abs=1e-8)


# Filters


@pytest.mark.parametrize("shape", [(1, 4, 5), (3, 3, 4), (1, 1, 6), (2, 2, 1)])
def test_mean_of_a_constant_map(shape: tuple[int, int, int]) -> None:
    """Inside 9/9 of it, on an edge 6/9, in a corner 4/9; on a single row 3/9 and 2/9."""
    found = Filter.parse("mean")(np.full((2, *shape), 1.5))
    rows, columns = (np.array([sum(0 <= i + d < n for d in (-1, 0, 1)) for i in range(n)]) for n in shape[1:])
    assert found == pytest.approx(np.broadcast_to(1.5 * np.outer(rows, columns) / 9, (2, *shape)))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.sampled_from(["identity", "abs", "mean", "abs+mean", "mean+abs", "abs+mean+mean"]), st.integers(0, 2**32 - 1))
def test_filters_do_what_they_say(words: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    maps, others = rng.normal(size=(2, 3, *rng.integers(1, 6, size=3)))
    chosen = Filter.parse(words)
    assert chosen(maps) == pytest.approx(plain_filter(maps, words))
    assert Filter.parse(chosen.name) == chosen
    # Filters do not push maps apart, which the error bounds build on.
    for order in (1, 2):
        apart = np.linalg.norm((chosen(maps) - chosen(others)).ravel(), ord=order)
        assert apart <= np.linalg.norm((maps - others).ravel(), ord=order) * (1 + 1e-12)


# Threads


@pytest.mark.parametrize("options", [{}, {"dist": "l1", "filter": "abs+mean"}])
def test_threads_do_not_matter(options: dict) -> None:
    one, two = bundled(threads=1, **options), bundled(threads=2, **options)
    assert one.areas == two.areas
    assert one.tiling.answers.enough_delta == two.tiling.answers.enough_delta
    assert one.answer.sets == two.answer.sets
    assert np.array_equal(one.answer.joint.polytopes.points, two.answer.joint.polytopes.points)
    assert np.array_equal(one.answer.joint.attention, two.answer.joint.attention)
    for key in ("CR", "AR"):
        assert np.array_equal(one.answer.nearest[key].theta, two.answer.nearest[key].theta)


# Symmetries


@LAWFUL
@given(questions())
def test_the_order_of_the_perturbations_does_not_matter(question: tuple) -> None:
    layers, image, specs, options = question
    assume(len(specs) == 2)
    forward, backward = answer(question), answer((layers, image, specs[::-1], options))
    for name, bounds in forward.areas.items():
        assert backward.areas[name] == pytest.approx(bounds, abs=1e-8)
    for key in ("CR", "AR"):
        assert backward.answer.nearest[key].low == pytest.approx(forward.answer.nearest[key].low, abs=1e-6)


@LAWFUL
@given(questions())
def test_a_mirrored_image_and_direction(question: tuple) -> None:
    """Turned left to right, with the network turned as well, a translation to the left gives the same shares."""
    layers, image, _, options = question
    turn = np.arange(4).reshape(2, 2)[:, ::-1].ravel()
    weight, bias = layers[0]
    mirrored = (
        [(weight[:, turn], bias), *layers[1:]],
        image[:, :, ::-1].copy(),
        ("translate:dx=-1", "brightness:0..0.5"),
        options,
    )
    plain = answer((layers, image, ("translate:dx=1", "brightness:0..0.5"), options))
    turned = answer(mirrored)
    for name, bounds in plain.areas.items():
        assert turned.areas[name] == pytest.approx(bounds, abs=1e-8)
