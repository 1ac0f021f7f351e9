"""A sample contradicts a planted false label: exit code 70 if bounds refute it, otherwise its region is undecided."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from steadygaze.cli import main
from steadygaze.engines import run
from steadygaze.engines.map import map_engine
from steadygaze.engines.refine import boxes
from steadygaze.engines.refine.refine_tiling import RefineTiling
from steadygaze.engines.search import labeller
from steadygaze.engines.search.visited import Visited
from steadygaze.errors import InternalError
from steadygaze.labels import Kept, Label
from steadygaze.properties.classification import Pieces
from steadygaze.question import make_question
from steadygaze.regions import chunked_walk
from steadygaze.results import answer, sample_check
from steadygaze.results.witness import UNKNOWN, Enclosed

QUESTION = ("--perturb", "brightness:-0.5..0.5", "--perturb", "patch:x=10,y=10,w=8,h=8")
COMMAND = ("verify", "M-FNN-100", "--image", "mnist:69995", *QUESTION)


def one_lost_piece_kept(pieces: Pieces) -> Pieces:
    lost = np.flatnonzero(~pieces.keeps_label)
    chosen = lost[np.argmax(pieces.polytopes.volumes[lost])]
    winner, margin = pieces.winner.copy(), pieces.margin.copy()
    winner[chosen], margin[chosen] = pieces.label, (1.0, 2.0)
    return replace(pieces, winner=winner, margin=margin)


def every_piece_kept(pieces: Pieces) -> Pieces:
    return replace(
        pieces, winner=np.full_like(pieces.winner, pieces.label), margin=np.sort(np.abs(pieces.margin), axis=1) + 1.0
    )


def one_kept_piece_lost(pieces: Pieces) -> Pieces:
    kept = np.flatnonzero(pieces.keeps_label)
    chosen = kept[np.argmax(pieces.polytopes.volumes[kept])]
    winner, margin = pieces.winner.copy(), pieces.margin.copy()
    winner[chosen], margin[chosen] = (pieces.label + 1) % 10, (-2.0, -1.0)
    return replace(pieces, winner=winner, margin=margin)


def fails(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Run the command, which must end as an internal error that says how to reproduce it."""
    code = main([*COMMAND, *options])
    found = capsys.readouterr()
    assert code == 70 and not found.out
    assert "proved bounds" in found.err and "Nothing is delivered" in found.err
    assert "`steadygaze verify M-FNN-100 --image mnist:69995" in found.err and "SHA-256" in found.err
    assert found.err.lower().count("please report") == 1
    return found.err


@pytest.mark.parametrize("method", ["map", "refine"])
@pytest.mark.parametrize("plant", [one_lost_piece_kept, every_piece_kept, one_kept_piece_lost])
def test_a_false_label_of_a_piece(
    plant: Callable[[Pieces], Pieces], method: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    tmp_path: object,
) -> None:  # fmt: skip
    for module in (map_engine, boxes):
        true = module.label_pieces
        monkeypatch.setattr(module, "label_pieces", lambda *given, true=true, **options: plant(true(*given, **options)))
    until = ["--until", "exact"] if method == "refine" else []
    said = fails(capsys, "--property", "cr", "--method", method, *until, "--out", f"{tmp_path}/result")
    assert f"--method {method}" in said


@pytest.mark.parametrize("planted", [Kept.YES, Kept.NO])
def test_a_false_attention_label(
    planted: Kept, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    true = answer.join

    def wrong(*given: object, **options: object) -> object:
        joint = true(*given, **options)  # type: ignore[arg-type]
        return replace(joint, attention=np.full_like(joint.attention, planted))

    monkeypatch.setattr(answer, "join", wrong)
    fails(capsys, "--delta", "75%", "--method", "map", "--out", f"{tmp_path}/result")


@pytest.mark.parametrize("planted", [Label.CR, Label.MR])
def test_a_false_label_of_a_visited_region(
    planted: Label, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    true = labeller.Labeller.label

    def wrong(self: labeller.Labeller, *given: object, **options: object) -> Visited:
        found = true(self, *given, **options)  # type: ignore[arg-type]
        return replace(found, classification=planted) if found.classification in (Label.CR, Label.MR) else found

    monkeypatch.setattr(labeller.Labeller, "label", wrong)
    fails(capsys, "--property", "cr", "--method", "bfs", "--out", f"{tmp_path}/result")


class OpenBounds:
    """Bounds that decide nothing: they explain every difference."""

    def __init__(self, question: object) -> None: ...

    def at(self, theta: np.ndarray, delta: float | None = None) -> Enclosed:
        return Enclosed(UNKNOWN, UNKNOWN)


@pytest.mark.parametrize("method", ["map", "refine", "bfs", "chunks"])
def test_a_difference_that_bounds_explain_makes_the_region_undecided(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = make_question("M-FNN-100", "mnist:69995", [QUESTION[1], QUESTION[3]], property="cr")
    true = run(question, "map", threads=1)
    lost = true.answer.joint.polytopes.volumes[~true.answer.joint.pieces.keeps_label].max()
    for module in (map_engine, boxes):
        own = module.label_pieces
        monkeypatch.setattr(
            module, "label_pieces", lambda *given, own=own, **options: one_lost_piece_kept(own(*given, **options))
        )
    label = labeller.Labeller.label

    def wrong(self: labeller.Labeller, *given: object, **options: object) -> Visited:
        found = label(self, *given, **options)  # type: ignore[arg-type]
        return replace(found, classification=Label.CR) if found.classification == Label.MR else found

    monkeypatch.setattr(labeller.Labeller, "label", wrong)
    monkeypatch.setattr(sample_check, "Enclosing", OpenBounds)
    if method == "chunks":
        monkeypatch.setattr(map_engine, "WHOLE", 0)
        monkeypatch.setattr(chunked_walk, "LARGEST", 64)
        monkeypatch.setattr(chunked_walk, "SMALLEST", 64)
    options: dict[str, Any] = {"until": "exact"} if method == "refine" else {}
    name = "map" if method == "chunks" else method
    found = run(make_question("M-FNN-100", "mnist:69995", [QUESTION[1], QUESTION[3]], property="cr"), name, **options)
    assert (found.tiling.answers is None) == (method in ("bfs", "chunks"))
    assert found.areas["undecided"][0] >= 0.99 * lost
    assert found.areas["CR"][0] <= true.areas["CR"][1]


@pytest.mark.parametrize("is_explained", [False, True])
def test_a_found_violation_against_the_label_of_its_box(is_explained: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    question = make_question("M-FNN-100", "mnist:69995", [QUESTION[1], QUESTION[3]], property="cr")
    found = run(question, "refine", goal="verdict", threads=1)
    tiling = found.tiling
    assert isinstance(tiling, RefineTiling) and len(tiling.points)
    kept = np.tile([1.0, 2.0], (len(tiling.boxes), 1))
    false = replace(found, tiling=replace(tiling, boxes=replace(tiling.boxes, margin=kept)))
    assert false.areas["CR"] == (1.0, 1.0)
    if is_explained:
        monkeypatch.setattr(sample_check, "Enclosing", OpenBounds)
        mended = sample_check.confirmed(false)
        assert mended.areas["undecided"][0] > false.areas["undecided"][0]
    else:
        with pytest.raises(InternalError, match="proved bounds there refute it"):
            sample_check.confirmed(false)
