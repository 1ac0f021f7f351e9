"""Figures of a campaign: their data, their files, and refusals."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from msgspec.structs import replace

from steadygaze.campaign import figures
from steadygaze.campaign.figures import (
    NAMES,
    NothingToDrawError,
    choose_example,
    draw_figures,
    figure_makers,
    has_files,
    located,
    make_series,
)
from steadygaze.campaign.panels import LogScale, Panel, draw_panels, name_places
from steadygaze.campaign.stored_campaign import Store, Task
from steadygaze.campaign.tables import make_records
from steadygaze.errors import OptionError, StoreError
from steadygaze.report.drawing.sheet import drawing_settings
from support.stand_ins.made_up_campaigns import MAPS, SEARCHES, made_up, made_up_plan, shares, visited


def answer(task: Task) -> dict[str, Any] | None:
    """Maps of two sizes; one search that timed out, one that failed, one that has not ended."""
    if task.method == "map":
        return shares(0.9, 0.5) | {"seconds": 2.0 if task.model == "M-FNN-200" else 1.0}
    if task.method == "bfs":
        return (
            {"status": "Failed", "reason": "out of memory", "seconds": None} if task.combination == "P" else visited(40)
        )
    if task.options["property"] == "ar" and task.image == "mnist:69991":
        return None if task.combination == "P" else visited(99, status="Timeout", seconds=60.0)
    return visited(7 if task.combination == "B" else 9)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return made_up(tmp_path, answer)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def make(store: Store, letter: str) -> Figure:
    with drawing_settings():
        return figure_makers(store.plan, make_records(store))[letter]()


def test_a_series_is_an_algorithm(store: Store):
    series = make_series(store.plan, make_records(store))
    assert [(one.name, one.planned, len(one.records)) for one in series] == [
        ("map", {100: 4, 200: 4}, 8),
        ("gbs-CR", {100: 4, 200: 4}, 8),
        ("gbs-AR", {100: 4, 200: 4}, 6),
        ("bfs", {100: 4}, 4),
    ]
    others = {"mnist:69991": {"delta": "25%"}}
    tasks = tuple(replace(task, options=task.options | others.get(task.image, {})) for task in store.plan.tasks)
    named = [one.name for one in make_series(replace(store.plan, tasks=tasks), [])]
    assert named[:2] == ["map, δ = 3", "map, δ = 25%"] and len(named) == 8


def test_statuses_are_counted_where_attention_is_asked_and_for_the_label(store: Store):
    attention, label = make(store, "A"), make(store, "B")
    assert {"map", "gbs-AR", "bfs"} <= set(texts(attention)) and "gbs-CR" not in texts(attention)
    assert {"NotRobust", "Timeout", "Failed", "open"} <= set(texts(attention)) and "Robust" not in texts(attention)
    assert "gbs-CR" in texts(label) and "map" not in texts(label) and "Timeout" not in texts(label)
    panel = next(axes for axes in attention.axes if any(text.get_text() == "1" for text in axes.texts))
    heights = [round(bar.get_height(), 6) for bar in panel.patches if bar.get_height() > 0.0]
    assert sorted(heights) == [0.25, 0.25, 0.25, 0.25, 0.5, 0.5]  # gbs-AR: of both sizes 2 NotRobust, 1 Timeout, 1 open


def test_seconds_hold_timeouts_but_no_failures(store: Store):
    figure = make(store, "C")
    words = texts(figure)
    assert "2 timeouts at the limit" in words and any("without 2 problems that failed" in word for word in words)
    panels = [axes for axes in figure.axes if axes.get_yscale() == "log"]
    assert len(panels) == 4 and all(axes.get_ylim() == panels[0].get_ylim() for axes in panels)
    assert panels[0].get_ylim()[0] < 0.1 and panels[0].get_ylim()[1] > 60.0


def test_points_are_those_of_problems_that_came_to_an_answer(store: Store):
    points = {letter: sum(len(each.get_offsets()) for axes in make(store, letter).axes for each in axes.collections)
              for letter in "EF"}  # fmt: skip
    assert points == {"E": 8 + 8 + 4 + 2, "F": 8 + 4 + 2}
    assert any(text == "combination" for text in texts(make(store, "D")))


def test_what_a_campaign_lacks_is_said(tmp_path: Path):
    only_maps = made_up(tmp_path, lambda task: None, MAPS)
    for letter, message in (
        ("B", "no problem of the plan has the property cr"),
        ("C", "has seconds"),
        ("F", "face checks"),
    ):
        with pytest.raises(NothingToDrawError, match=message):
            make(only_maps, letter)
    drawn = draw_figures(only_maps, tmp_path / "figures")
    assert [file.name for file in drawn.files] == ["figure-A-status-attention.png"]
    assert list(drawn.missing) == ["B", "C", "D", "E", "F", "G"]


def test_files_are_there_and_not_replaced(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(figures, "_draw_example", lambda *_: Figure())
    first = draw_figures(store, tmp_path / "1", formats=("svg",)).files
    assert [file.name for file in first] == [f"figure-{letter}-{name}.svg" for letter, name in NAMES.items()]
    for file in first[1:]:
        file.unlink()
    with pytest.raises(StoreError, match="--force"):
        draw_figures(store, tmp_path / "1", formats=("svg",))
    assert list((tmp_path / "1").iterdir()) == [first[0]]  # refused before anything is drawn
    assert len(draw_figures(store, tmp_path / "1", formats=("svg",), force=True).files) == 7
    (tmp_path / "file").write_text("", encoding="ascii")
    with pytest.raises(StoreError, match="choose another --out"):
        draw_figures(store, tmp_path / "file")


def test_the_example_is_chosen_by_answers_alone(tmp_path: Path):
    counts = {"M-FNN-100": 300, "M-FNN-200": 310}

    def search(task: Task) -> dict[str, Any]:
        return visited(counts[task.model], seconds=1.0 if task.model == "M-FNN-100" else 0.1)

    store = made_up(tmp_path, lambda task: search(task) if task.method == "gbs" else None, SEARCHES)
    records = make_records(store)
    chosen = choose_example(store.plan, records)
    assert chosen is not None and (chosen.model, chosen.options["property"]) == ("M-FNN-100", "ar")
    slower = [record | {"seconds": 9.0} for record in records]
    assert choose_example(store.plan, slower) == chosen
    unseen = [record | ({"visited_share": 1e-4} if record["property"] == "ar" else {}) for record in records]
    seen = choose_example(store.plan, unseen)
    assert seen is not None and seen.options["property"] == "cr"
    assert choose_example(store.plan, [record | {"regions": 10**6} for record in records]) is None
    assert choose_example(store.plan, [record | {"status": "Timeout", "regions": None} for record in records]) is None


def test_where_files_are_is_known_of_what_is_bundled_or_from_the_plan(store: Store, tmp_path: Path):
    plan = located(store.plan, None)
    assert all(has_files(plan, task) for task in plan.tasks)
    own = replace(store.plan, models={name: replace(one, name="own.onnx") for name, one in store.plan.models.items()})
    own = replace(own, models={"own.onnx": own.models["M-FNN-100"]}, tasks=(replace(own.tasks[0], model="own.onnx"),))
    assert not has_files(located(own, None), own.tasks[0])
    given = made_up_plan(tmp_path)
    assert located(store.plan, given) is given
    with pytest.raises(OptionError, match="--plan differs from the plan of the campaign"):
        located(store.plan, made_up_plan(tmp_path, MAPS))


def test_ticks_are_few_and_inside():
    for values in ([0.02, 30.0], [1.0], [3.0, 4.0], [1.0, 1e9]):
        scale = LogScale.of(values)
        ticks = scale.ticks()
        assert 2 <= len(ticks) <= 8 and all(scale.low <= tick <= scale.high for tick in ticks)


def test_long_legends_and_names_stay_on_the_page():
    legend = {f"{size} neurons": "#808080" for size in range(100, 130)}
    names = ["a combination with a long name", "another one that is as long", "B"]
    with drawing_settings():
        figure = draw_panels("t", ["f"], legend, [Panel("p", lambda axes: name_places(axes, names))], ("x", "y"))
        figure.draw_without_rendering()
    width = figure.bbox.width
    written = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    assert sum(text.get_text().endswith(" neurons") for text in written) == 30
    assert all(0 <= text.get_window_extent().x0 < text.get_window_extent().x1 <= width for text in written)
    boxes = [label.get_window_extent() for label in figure.axes[1].get_xticklabels()]
    assert all(first.x1 < second.x0 for first, second in pairwise(boxes))
