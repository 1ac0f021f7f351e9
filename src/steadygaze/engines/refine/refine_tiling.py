"""The tiling of a refinement: boxes and exact regions, with their guarantee, claims to replay, arrays and rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...boundary import Boundary, find_boundary
from ...bounds.bounder import Bounder
from ...budget import Budget
from ...errors import OptionError, StoreError
from ...labels import Kept, Label, Property, Stop, Verdict
from ...properties.box_ties import box_tie_volumes
from ...properties.ties import add_volumes
from ...question import Question
from ...regions.region import Cut
from ...results.answer import Answers, round_up
from ...results.array_file import read_arrays
from ...results.arrays import array_shapes, check_range, pack, require, shaped, unpack_answers
from ...results.claims import (
    TRIES,
    Claim,
    Doubts,
    Sample,
    Violation,
    Visible,
    piece_claims,
    piece_samples,
    theta_samples,
)
from ...results.delta_answer import verdict_from
from ...results.export import ATTENTIONS, LABELS, Block, Part, region_part, shape_columns
from ...results.label_counts import ROWS
from ...results.result import Result
from ...results.store import MAP
from ...results.summary import SINGLE_THETAS, kinks_text, ties_sentences
from ...results.tiling import NOT_ASKED, TileLabels, Tiling, region_tiles
from ...results.view import Region, Regions
from ...tolerances import AREA, MAX_MAP_PARAMETERS
from ...words import percent_down, percent_up
from ..contract import Goal, Until
from .boxes import Boxes, State
from .merged_answer import MergedAnswer, box_at, distances, parted_violations
from .parted_boxes import Parted
from .pointwise import PointPasses

BOX_SHAPES: dict[str, tuple[type, tuple[int | str, ...]]] = {
    "box_cell": (np.int64, ("boxes",)),
    "box_low": (np.float64, ("boxes", "coordinates")),
    "box_high": (np.float64, ("boxes", "coordinates")),
    "box_sides": (np.int64, ("boxes", "coordinates", 2)),
    "box_margin": (np.float64, ("boxes", 2)),
    "box_inconsistency": (np.float64, ("boxes", 2)),
    "box_state": (np.uint8, ("boxes",)),
    "box_cuts": (np.int32, ("box cuts", 3)),
}
"""Type and shape of every array of `Boxes`, in order; a word is a size."""

PART_SHAPES: dict[str, tuple[type, tuple[int | str, ...]]] = {
    "part_slopes": (np.float64, ("parted", "axes")),
    "part_offset": (np.float64, ("parted",)),
    "part_slack": (np.float64, ("parted",)),
    "part_margin": (np.float64, ("parted", 2, 2)),
    "part_inconsistency": (np.float64, ("parted", 2, 2)),
}
"""Type and shape of the arrays of parted boxes. Results without such boxes lack these arrays."""

SHAPES = BOX_SHAPES | PART_SHAPES | {"points": (np.float64, ("points", "axes")), "box_of": (np.int64, ("regions",))}
"""Type and shape of all arrays except those of the exact regions. Results without regions lack `box_of`."""

ENCLOSURES = ("box_margin", "box_inconsistency", "part_margin", "part_inconsistency")


@dataclass(frozen=True, eq=False)
class RefineTiling(Tiling[MergedAnswer]):
    """Boxes that tile the domain, and the regions of the subdivided boxes.

    answers: the regions of EXACT boxes (None if there are none), whose table of cuts begins with that of the boxes;
    box_of (R,): the box of each region. points (N, d): violations that the search found. until and goal: when the run
    should end; relaxation: which bounds it used.
    """

    kind, method = "refinement", "refine"

    question: Question
    boxes: Boxes
    answers: Answers | None
    box_of: np.ndarray
    until: Until
    goal: Goal
    stopped: Stop | None = None
    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    relaxation: str = ""
    parted: Parted = field(default_factory=lambda: Parted.none(0))

    def answer(self, delta: float) -> MergedAnswer:
        exact = None if self.answers is None else self.answers.at(delta)
        return MergedAnswer(self.question, self.boxes, exact, self.box_of, delta, self.points, self.parted)

    @property
    def region_count(self) -> int:
        """The number of exact regions, counted by patterns if the network has windows.

        Without windows, a region counts once for every box that it meets.
        """
        if self.answers is None or self.question.compound.graph.is_plain:
            return super().region_count
        return self.answers.regions.pattern_count

    @property
    def is_measured(self) -> bool:
        return self.question.property.asks_attention

    @cached_property
    def enough_delta(self) -> float | None:
        own = self.answer(self.question.own_limit)
        top = float(self.boxes.inconsistency[own.bounded, 1].max(initial=0.0))
        if self.answers is not None and self.answers.largest_inconsistency > top:
            # The error bounds of single regions are worth their time only if some region exceeds all boxes.
            exact = self.answers.enough_delta
            top = np.inf if exact is None else max(top, exact)
        return None if own.missing.any() or not np.isfinite(top) else round_up(top)

    def _find_ties(self, budget: Budget | None) -> tuple[float, float] | None:
        question, boxes, d = self.question, self.boxes, self.question.perturbed.domain.dimension
        if not self.is_measured:
            return None
        own = self.answer(question.own_limit)
        bounder = Bounder(question.graph, question.perturbed, question.label, question.attention)
        chosen, corners = own.bounded, (boxes.low[own.bounded, :d], boxes.high[own.bounded, :d])
        parts = [
            box_tie_volumes(question.compound, bounder, boxes.cell[chosen], *corners, boxes.volumes[chosen], budget)
        ]
        holes = 0.0
        if self.answers is not None:
            parts += [found for found in (self.answers.tie_volumes(),) if found is not None]
            holes = self.answers.regions.accuracy.holes
        return add_volumes(parts).bounds(missing=float(own.missing.sum()) + holes, slack=own.slivers)

    def regions(self, answer: MergedAnswer) -> Sequence[Region]:
        return () if answer.exact is None else Regions(self.question, answer.exact)

    def region_at(self, theta: ArrayLike) -> int | None:
        compound, where = self.question.compound, np.asarray(theta, dtype=np.float64)
        box = box_at(compound, self.boxes, where)
        if box is None or self.boxes.state[box] != State.EXACT or self.answers is None:
            return None
        return self.answers.regions.polytopes.deepest(compound.to_unit(where[None])[0])

    def boundary(self, answer: MergedAnswer, wanted: Property) -> Boundary:
        if self.question.compound.domain.dimension > MAX_MAP_PARAMETERS:
            raise OptionError(
                f"the boundary takes up to {MAX_MAP_PARAMETERS} parameters, but this result has "
                f"{self.question.compound.domain.dimension}; leave some out, or use --method boundary"
            )
        if not self.is_measured and wanted.asks_attention:
            raise OptionError(
                f"the boundary of {wanted.value} needs the attention, which this result did not measure (--property "
                "cr); verify again with --property both, or ask for --property cr"
            )
        return find_boundary(self.question.compound, None, answer.joint, wanted)

    def claims(self, answer: MergedAnswer, kind: Violation, visible: Visible) -> Iterator[Claim]:
        if kind is not Violation.LABEL and not self.is_measured:
            return
        found: list[np.ndarray | Claim] = [*_box_thetas(answer, kind), *_found_thetas(answer, kind)]
        if answer.exact is not None:
            found += piece_claims(answer.exact, kind, visible)
        thetas = [one.theta if isinstance(one, Claim) else one for one in found]
        widths = self.question.perturbed.domain.widths
        # One by one: usually the first succeeds.
        for place in np.argsort([np.linalg.norm(theta / widths) for theta in thetas], kind="stable"):
            one = found[place]
            if not isinstance(one, Claim):  # its region is unknown: use the pattern of a plain forward pass
                measured = self._passes.measure(one[None], has_attention=self.is_measured)
                slack = float(measured.inconsistency_slack[0])
                one = Claim(one, None, float(measured.margin_slack[0]), partial(float, slack))
            yield one

    def samples(self, answer: MergedAnswer, count: int) -> Iterator[Sample]:
        """Points of the search for violations, and centres of pieces; units are numbered as in `Units`."""
        yield from _box_samples(answer)
        if answer.exact is not None:
            # Regions tile only EXACT boxes: no piece contains a point outside them.
            for sample in (*theta_samples(answer.exact, self.points), *piece_samples(answer.exact, count)):
                yield sample._replace(unit=len(self.boxes) + sample.unit)

    def without(self, doubts: Doubts) -> "RefineTiling":
        count, margin, inconsistency = len(self.boxes), self.boxes.margin.copy(), self.boxes.inconsistency.copy()
        margin[[unit for unit in doubts.label if unit < count]] = -np.inf, np.inf
        inconsistency[[unit for unit in doubts.attention if unit < count]] = 0.0, np.inf
        answers = self.answers
        if answers is not None:
            answers = answers.without(*([unit - count for unit in units if unit >= count] for units in doubts))
        return replace(self, boxes=replace(self.boxes, margin=margin, inconsistency=inconsistency), answers=answers)

    @cached_property
    def _passes(self) -> PointPasses:
        return PointPasses(self.question, self.question.original)

    def facts(self, answer: MergedAnswer) -> dict[str, Any]:
        state = self.boxes.state
        return {
            "guarantee_shares": dict(answer.guarantee_shares),
            "boxes": {"all": len(state)} | {kind.name.lower(): int((state == kind).sum()) for kind in State},
            "until": self.until,
            "goal": self.goal,
            "relaxation": self.relaxation,
        }

    def words(self) -> list[str]:
        return ["--until", str(self.until), "--goal", self.goal]

    def tiles(self, answer: MergedAnswer) -> TileLabels:
        boxes = self.boxes
        numbers = np.array([ROWS.index(Label.of_classification(code)) for code in Kept], dtype=np.uint8)
        labels = numbers[answer.label_codes], numbers[answer.attention_codes]
        own = TileLabels(*labels, np.where(boxes.state == State.EXACT, 0.0, boxes.volumes))
        found = own if answer.exact is None else TileLabels.join([own, region_tiles(answer.exact)])
        return found if self.is_measured else replace(found, attention=np.full_like(found.attention, NOT_ASKED))

    @property
    def tile_patterns(self) -> np.ndarray:
        boxes, exact = np.full(len(self.boxes), -1), self.exact_regions
        return boxes if exact is None else np.concatenate([boxes, exact.pattern])

    def parts(self, answer: MergedAnswer, what: str) -> tuple[Part, ...]:
        exact = answer.exact
        parts = () if exact is None else (region_part(exact, what, is_measured=self.is_measured),)
        return (_box_part(answer), *parts)

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {name: getattr(self.boxes, name.removeprefix("box_")) for name in BOX_SHAPES}
        arrays["points"] = self.points.reshape(len(self.points), self.question.compound.domain.dimension)
        if len(self.parted):
            arrays |= {name: getattr(self.parted, name.removeprefix("part_")) for name in PART_SHAPES}
        if self.answers is None:
            return arrays
        answers = self.answers
        return arrays | {"box_of": self.box_of} | pack(answers.regions, answers.pieces, answers.curves)

    def guarantee(self, result: Result) -> str:
        answer: MergedAnswer = result.answer  # type: ignore[assignment]
        bounded, exact, undecided = answer.guarantee_shares.values()
        shares = [percent_down(share) for share in (bounded, exact)]
        parts = [f"on {shares[0]} of the domain by bounds over boxes that hold whatever the rounding"] * (bounded > 0.0)
        by_regions = "by regions, in float64 arithmetic with error bounds or in exact arithmetic"
        parts += [f"on {shares[1]} of the domain {by_regions}"] * (exact > 0.0)
        proved = f"Proved for the real-valued network: {'; '.join(parts)}."
        sentences = [proved if parts else "Nothing is proved for any part of the domain."]
        by_shares = verdict_from(result.answer.shares, result.question.property)
        if result.verdict is Verdict.NOT_ROBUST and by_shares is not Verdict.NOT_ROBUST:
            sentences.append(SINGLE_THETAS)
        if result.is_measured and result.answer.shares.slivers > 0.0:
            sentences.append(kinks_text(result.answer.shares.slivers))
        sentences += ties_sentences(result.tie_share)
        why = f"; the run ended ({result.stopped})" if result.stopped is not None else ""
        sentences.append(
            f"At most {percent_up(undecided)} of it is undecided{why}." if undecided > 0.0 else "Nothing is undecided."
        )
        if not result.is_measured:
            sentences.append("Attention was not measured.")
        return " ".join([*sentences, result.agreement.sentence])


def _box_samples(answer: MergedAnswer) -> Iterator[Sample]:
    """The points of the search that lie in boxes labelled by bounds; such labels hold whatever the rounding."""
    for theta in answer.points:
        box = box_at(answer.compound, answer.boxes, theta)
        if box is not None and answer.boxes.state[box] != State.EXACT:
            codes = Kept(int(answer.label_codes[box])), Kept(int(answer.attention_codes[box]))
            yield Sample(Claim(theta, None, 0.0, partial(float, 0.0)), *codes, box)


def _is_violating(kind: Violation, label: np.ndarray, attention: np.ndarray) -> np.ndarray:
    """Where (N,) the `Kept` codes (N,) of label and attention mean a violation of the given kind."""
    return {
        Violation.LABEL: label == Kept.NO,
        Violation.ATTENTION: attention == Kept.NO,
        Violation.EVIDENCE: (label == Kept.YES) & (attention == Kept.NO),
    }[kind]


def _box_thetas(answer: MergedAnswer, kind: Violation) -> list[np.ndarray]:
    """The centres of violating boxes, at most `TRIES`: those nearest to zero, then the clearest violation."""
    boxes, bounded = answer.boxes, answer.bounded
    label, attention = answer.label_codes[bounded], answer.attention_codes[bounded]
    chosen = _is_violating(kind, label, attention)
    fails, beyond = bounded[chosen], _parted_thetas(answer, kind)
    if not len(fails):
        return beyond
    depth = -boxes.margin[fails, 1] if kind is Violation.LABEL else boxes.inconsistency[fails, 0]
    away = distances(answer.compound, boxes.low[fails], boxes.high[fails])[0]
    tried = np.append(fails[np.argsort(away, kind="stable")[: TRIES - 1]], fails[np.argmax(depth)])
    return [*answer.compound.to_theta(0.5 * (boxes.low[tried] + boxes.high[tried])), *beyond]


def _parted_thetas(answer: MergedAnswer, kind: Violation) -> list[np.ndarray]:
    """Thetas on the violating sides of planes, at most `TRIES`: those nearest to zero."""
    points = parted_violations(answer, partial(_is_violating, kind))
    away = np.linalg.norm(points / answer.compound.domain.widths, axis=1)
    return list(points[np.argsort(away, kind="stable")[:TRIES]])


def _found_thetas(answer: MergedAnswer, kind: Violation) -> list[np.ndarray]:
    """The proved violations of a kind among the points of the search."""
    if kind is Violation.EVIDENCE:
        lost = {theta.tobytes() for theta in answer.violating[Label.CR]}
        return [theta for theta in answer.violating[Label.AR] if theta.tobytes() not in lost]
    return list(answer.violating[Label.CR if kind is Violation.LABEL else Label.AR])


def restore_tiling(content: dict[str, Any], folder: Path, question: Question) -> RefineTiling:
    """Restore the boxes and regions from a directory; StoreError if they do not fit each other and the question."""
    stored, path, version = content["stored"], folder / MAP, content["schema_version"]
    is_measured, has_exact = question.property.asks_attention, stored["map"] is not None
    has_parted = bool(content["boxes"].get("parted"))  # earlier versions parted no boxes
    names = [name for name in SHAPES if (has_exact or name != "box_of") and (has_parted or name not in PART_SHAPES)]
    if has_exact:
        has_sums = question.attention.has_sums
        shapes = array_shapes(
            question.compound.coordinates, is_measured=is_measured, version=version, has_sums=has_sums
        )
        names += list(shapes)
    arrays = read_arrays(path, names)
    try:
        checked, boxes = _checked_boxes(arrays, question, has_exact=has_exact)
        answers = unpack_answers(arrays, stored["map"], question, is_measured=is_measured) if has_exact else None
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from None
    return RefineTiling(
        question=question,
        boxes=boxes,
        answers=answers,
        box_of=checked.get("box_of", np.zeros(0, dtype=np.int64)),
        until="exact" if content["until"] == "exact" else float(content["until"]),
        goal="verdict" if content["goal"] == "verdict" else "map",
        stopped=None if content["stopped"] is None else Stop(content["stopped"]),
        points=checked["points"],
        parted=Parted(**{name.removeprefix("part_"): checked[name] for name in PART_SHAPES})
        if has_parted
        else Parted.none(question.compound.domain.dimension),
        relaxation=str(content["relaxation"]),
    )


def _checked_boxes(
    arrays: Mapping[str, np.ndarray], question: Question, *, has_exact: bool
) -> tuple[dict[str, np.ndarray], Boxes]:
    """The arrays, converted to their types, and the boxes; StoreError if they do not fit each other and the problem."""
    compound = question.compound
    sizes = {"coordinates": compound.coordinates, "axes": compound.domain.dimension}
    if has_exact:
        sizes["regions"] = len(arrays["cell"])
    checked = {
        name: shaped(name, arrays[name], shape, sizes, may_be_infinite=name in ENCLOSURES)
        for name, shape in SHAPES.items()
        if name in arrays
    }
    boxes = Boxes(**{name.removeprefix("box_"): checked[name] for name in BOX_SHAPES})
    check_range("box_cell", boxes.cell, 0, len(compound.cells))
    check_range("box_state", boxes.state, 0, len(State))
    check_range("box_cuts", boxes.cuts[:, 0], 0, len(Cut))
    check_range("box_sides", np.abs(boxes.sides), 1, len(boxes.cuts) + 1)
    first = Boxes.of(compound).cuts
    require(np.array_equal(boxes.cuts[: len(first)], first), "box_cuts", "does not begin with borders and knots")
    require(((boxes.low >= 0.0) & (boxes.low < boxes.high) & (boxes.high <= 1.0)).all(), "box_low", "has an empty box")
    require(abs(float(boxes.volumes.sum()) - 1.0) <= AREA, "box_low", "does not tile the domain")
    for name in (name for name in ENCLOSURES if name in checked):
        require((checked[name][..., 0] <= checked[name][..., 1]).all(), name, "has an empty enclosure")
    is_parted = boxes.state == State.PARTED
    require(int(is_parted.sum()) == len(checked.get("part_offset", ())), "box_state", "has parted boxes without planes")
    require((checked.get("part_slack", np.zeros(0)) >= 0.0).all(), "part_slack", "has a negative slack")
    is_exact = boxes.state == State.EXACT
    require(has_exact or not is_exact.any(), "box_state", "has exact boxes, but there are no regions")
    if has_exact:
        check_range("box_of", checked["box_of"], 0, len(boxes))
        require(is_exact[checked["box_of"]].all(), "box_of", "names boxes that are not exact")
        shared = arrays["cuts"][: len(boxes.cuts)]
        require(np.array_equal(shared, boxes.cuts), "cuts", "does not begin with the cuts of the boxes")
    return checked, boxes


def _box_part(answer: MergedAnswer) -> Part:
    """The boxes that are not EXACT; each has one label and is its own piece."""
    boxes, domain = answer.boxes, answer.compound.domain
    chosen, volumes = answer.bounded, boxes.volumes
    low, high = (answer.compound.to_theta(ends) for ends in (boxes.low, boxes.high))

    def make(start: int, stop: int) -> Block:
        rows = chosen[start:stop]
        label, attention = answer.label_codes[rows], answer.attention_codes[rows]
        columns: Block = {
            "kind": ["box"] * len(rows),
            "number": rows,
            "classification": LABELS[label].tolist(),
            "attention": ATTENTIONS[attention].tolist(),
            "winner": np.where(label == Kept.YES, answer.label, -1),
            "share": volumes[rows],
            "label_open": np.where(label == Kept.UNKNOWN, volumes[rows], 0.0),
            "attention_open": np.where(attention == Kept.UNKNOWN, volumes[rows], 0.0),
            "margin_low": boxes.margin[rows, 0],
            "margin_high": boxes.margin[rows, 1],
            "inconsistency_low": boxes.inconsistency[rows, 0],
            "inconsistency_high": boxes.inconsistency[rows, 1],
            "delta": np.full(len(rows), answer.delta),
        }
        if not answer.is_measured:
            unknown = ("attention_open", "inconsistency_low", "inconsistency_high")
            columns |= dict.fromkeys(unknown, np.full(len(rows), np.nan)) | {"attention": [None] * len(rows)}
        corners = _corners(low[rows], high[rows])
        starts, inside = corners.shape[1] * np.arange(len(rows) + 1), 0.5 * (low[rows] + high[rows])
        return columns | shape_columns(corners.reshape(-1, domain.dimension), starts, inside)

    return Part(len(chosen), make)


def _corners(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The corners (B, 2^d, d) of boxes from low (B, d) to high (B, d), counter-clockwise in the plane.

    >>> _corners(np.zeros((1, 2)), np.ones((1, 2)))[0].tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """
    sides = np.array(list(product((False, True), repeat=low.shape[1])))
    corners = np.where(sides, high[:, None], low[:, None])
    return corners[:, [0, 2, 3, 1]] if low.shape[1] == 2 else corners
