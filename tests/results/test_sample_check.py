"""A false label planted in a region is refuted by a sample: no answer, exit code 70, and the data to reproduce it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from steadygaze.cli.entry_point import main
from steadygaze.engines.map import whole_map
from steadygaze.engines.refine import boxes
from steadygaze.engines.search import labeller
from steadygaze.engines.search.visited import Visited
from steadygaze.labels import Kept, Label
from steadygaze.properties.classification import Pieces
from steadygaze.results import answer

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
    for module in (whole_map, boxes):
        true = module.label_pieces
        monkeypatch.setattr(module, "label_pieces", lambda *given, true=true: plant(true(*given)))
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
