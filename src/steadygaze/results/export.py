"""From a map to the rows of an export: one for each region, or for each piece of a region with one label alone.

Refinements and searches make their own rows (see `refine_files` and `search.export`); `export_files` writes them all.
"""

from typing import Any

import numpy as np

from ..compound import Compound
from ..errors import OptionError
from ..problem import Problem
from ..properties.joint import Kept
from ..properties.shapes import Polytopes
from .answer import Answer
from .domain_result import DomainResult
from .result import Result
from .summary import describe_question
from .table import Block, Part, Table, shape_columns

WHATS = ("regions", "pieces")
LABELS, ATTENTIONS = np.array(["CR", "undecided", "MR"]), np.array(["AR", "undecided", "IR"])
"""Words for `Kept` codes."""

NOTE = "Coordinates are perturbation parameters (theta), not degrees of longitude and latitude."


def map_table(result: Result, what: str) -> Table:
    """The rows of a map: its regions, or their pieces, which tile what was mapped."""
    return make_table(result, what, (exact_part(result.answer, what, is_measured=True),))


def make_table(result: DomainResult, what: str, parts: tuple[Part, ...]) -> Table:
    """Parts of a result over a whole domain, with the facts about it."""
    facts = describe_facts(result.problem, what) | {
        "method": result.method,
        "delta": {"text": str(result.delta), "value": result.answer.delta, "map_size": result.map_size},
        "complete": result.is_complete,
        "sliver_share": result.sliver_share,
    }
    return Table(parts, result.problem.compound.domain.dimension, facts)


def check_what(what: str) -> str:
    """The kind of rows, if it is one; OptionError otherwise."""
    if what not in WHATS:
        raise OptionError(f"--what {what!r} is not known; expected {' or '.join(WHATS)}")
    return what


def describe_facts(problem: Problem, what: str) -> dict[str, Any]:
    """What all exports say about the question."""
    question = describe_question(problem)
    return {
        "note": NOTE,
        "rows": what,
        "property": problem.property.value,
        "label": problem.label,
        "class_names": list(problem.names),
        **{name: question[name] for name in ("domain", "model", "image", "attention")},
    }


def exact_part(answer: Answer, what: str, *, is_measured: bool) -> Part:
    """The regions of an answer, or the pieces of them."""
    return _regions(answer, is_measured) if what == "regions" else _pieces(answer, is_measured)


def _regions(answer: Answer, is_measured: bool) -> Part:
    answers, joint = answer.answers, answer.joint
    found, count = answers.regions, len(answers.regions)
    owner = joint.pieces.region
    slack, winner = np.zeros(count), np.full(count, -1)
    np.maximum.at(slack, owner, joint.pieces.slack)
    winner[owner] = joint.pieces.winner
    has_others = np.zeros(count, dtype=bool)
    has_others[owner[winner[owner] != joint.pieces.winner]] = True
    classification = answer.classifications
    winner[has_others | ~np.isin(classification, ("CR", "MR"))] = -1
    label_open, attention_open = (np.bincount(owner, open_, count) for open_ in _open_shares(answer, is_measured))

    def make(start: int, stop: int) -> Block:
        rows = np.arange(start, stop)
        return {
            "kind": ["region"] * len(rows),
            "number": rows,
            "classification": classification[rows].tolist(),
            "attention": answer.attentions[rows].tolist() if is_measured else [None] * len(rows),
            "winner": winner[rows],
            "share": found.polytopes.volumes[rows],
            "label_open": label_open[rows],
            "attention_open": attention_open[rows],
            **_bounds(answer, found.polytopes.take(rows), rows, slack[rows], is_measured),
            **shape_of(answers.compound, found.polytopes.take(rows)),
        }

    return Part(count, make)


def _pieces(answer: Answer, is_measured: bool) -> Part:
    joint, compound = answer.joint, answer.answers.compound
    label, attention = joint.label_codes, joint.attention_codes
    winner = np.where(label == Kept.UNKNOWN, -1, joint.pieces.winner)
    label_open, attention_open = _open_shares(answer, is_measured)

    def make(start: int, stop: int) -> Block:
        rows = np.arange(start, stop)
        region, polytopes = joint.pieces.region[rows], joint.polytopes.take(rows)
        return {
            "kind": ["region"] * len(rows),
            "number": region,
            "classification": LABELS[label[rows]].tolist(),
            "attention": ATTENTIONS[attention[rows]].tolist() if is_measured else [None] * len(rows),
            "winner": winner[rows],
            "share": joint.polytopes.volumes[rows],
            "label_open": label_open[rows],
            "attention_open": attention_open[rows],
            **_bounds(answer, polytopes, region, joint.pieces.slack[rows], is_measured),
            **shape_of(compound, polytopes),
        }

    return Part(len(joint.pieces), make)


def _open_shares(answer: Answer, is_measured: bool) -> tuple[np.ndarray, np.ndarray]:
    """The shares (P,) of the domain in every piece where the label, and where the attention, is not decided."""
    joint = answer.joint
    volumes = joint.polytopes.volumes
    label, attention = (np.minimum(strip, volumes) for strip in (joint.label_strip, joint.attention_strip))
    if not is_measured:
        return label, np.full(len(volumes), np.nan)
    return label, np.where(joint.attention == Kept.UNKNOWN, volumes, attention)


def _bounds(
    answer: Answer, polytopes: Polytopes, region: np.ndarray, slack: np.ndarray, is_measured: bool
) -> dict[str, Any]:
    """Proved bounds of margin and inconsistency for shapes (N of them) in regions (N,), and the threshold."""
    low, high = _margin_bounds(answer, polytopes, region)
    reach = answer.labels.reach[region] if is_measured else np.full((len(region), 2), np.nan)
    return {
        "margin_low": low - slack,
        "margin_high": high + slack,
        "inconsistency_low": np.maximum(reach[:, 0], 0.0),
        "inconsistency_high": reach[:, 1],
        "delta": np.full(len(region), answer.delta),
    }


def _margin_bounds(answer: Answer, polytopes: Polytopes, region: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest margin, and a bound of the largest: no rival can be farther behind than the one that is least so."""
    found, label = answer.answers.regions, answer.answers.pieces.label
    points = np.hstack([polytopes.points, np.ones((len(polytopes.points), 1))])
    logits = np.einsum("nd,ndk->nk", points, found.logits[region][polytopes.owner])
    leads = logits[:, label, None] - np.delete(logits, label, axis=1)
    starts = polytopes.starts[:-1]
    return np.minimum.reduceat(leads.min(axis=1), starts), np.maximum.reduceat(leads, starts, axis=0).min(axis=1)


def shape_of(compound: Compound, polytopes: Polytopes) -> Block:
    """The columns that say where shapes in t are, in theta."""
    points, starts = polytopes.points, polytopes.starts
    if compound.domain.dimension == 1:
        ends = np.stack(polytopes.extent(0), axis=1)
        thetas = compound.to_theta(np.stack([ends.ravel(), np.zeros(ends.size)], axis=1))
        starts = 2 * np.arange(len(polytopes) + 1)
    else:
        thetas = compound.to_theta(points)
    return shape_columns(thetas, starts, compound.to_theta(polytopes.centres))
