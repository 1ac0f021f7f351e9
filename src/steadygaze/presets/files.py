"""A preset on disk: a folder for the result of each question, `preset.json`, and one report that compares them."""

import base64
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import StoreError, not_writable
from ..labels import Joint, Label, Verdict
from ..report.page import fill
from ..results.directory import atomic_file, write_json
from ..results.result import Result
from ..words import percent_up, share_text
from .answering import PresetAnswer, PresetResult

ANSWER, REPORT, PICTURE = "preset.json", "report.html", "comparison.png"


def check_preset_directory(directory: str | Path, *, force: bool) -> Path:
    """Return the place of a preset; StoreError, before anything is computed, if something else is there."""
    target = Path(directory)
    try:
        if target.exists() and not target.is_dir():
            raise StoreError(f"{directory}: is a file; choose another --out")
        names = [inside.name for inside in target.iterdir()] if target.exists() else []
    except OSError as error:
        raise StoreError(f"{directory}: cannot be read ({error.strerror}); choose another --out") from None
    if names and ANSWER not in names:
        raise StoreError(f"{directory}: exists already and holds no preset; choose another --out")
    if names and not force:
        raise StoreError(f"{directory}: exists already; choose another --out, or replace it with --force")
    return target


def begin_preset(target: Path, preset: str) -> None:
    """Make the directory, without the results of an earlier run there."""
    earlier = target / ANSWER
    try:
        if earlier.exists():
            for name in _question_names(earlier):
                shutil.rmtree(target / name, ignore_errors=True)
            for name in (REPORT, PICTURE):
                (target / name).unlink(missing_ok=True)
        target.mkdir(parents=True, exist_ok=True)
        # An interrupted run leaves a directory that --force may replace.
        _write_answer(earlier, {"preset": preset, "questions": []})
    except OSError as error:
        raise not_writable(target, error) from None


def _question_names(path: Path) -> list[str]:
    """The folders of an earlier run: names without any separator."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        names = [str(one["name"]) for one in content["questions"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if name and Path(name).name == name]


def finish_preset(target: Path, found: PresetResult, *, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write `preset.json`, the report, and the picture of the comparison if pictures are wanted; the files written."""
    files = [target / ANSWER, target / REPORT]
    try:
        _write_answer(files[0], found.summary())
        if formats and found.comparison is not None:
            files += found.comparison.plot(target / PICTURE)
        with atomic_file(files[1]) as new:
            new.write_text(_page(found, files[2:]), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{target}: cannot be written ({error.strerror or error})") from None
    return files


def save_preset(found: PresetResult, directory: str | Path, *, force: bool = False) -> Path:
    """Store every result in a folder of its own, with `preset.json` and the report beside them."""
    target = check_preset_directory(directory, force=force)
    begin_preset(target, found.preset.name)
    for name, result in found.results.items():
        result.save(target / name, force=force)
    finish_preset(target, found)
    return target


def _write_answer(path: Path, content: dict[str, Any]) -> None:
    with atomic_file(path) as new:
        write_json(new, content)


def _page(found: PresetResult, pictures: Sequence[Path]) -> str:
    """The report: one HTML file that links to the folders beside it."""
    first = next(iter(found.results.values()), None)
    return fill(
        "preset.html.j2",
        {
            "preset": found.preset.name,
            "about": found.preset.text,
            "subject": "" if first is None else f"{first.question.model_name}, {first.question.image_name}",
            "verdict": found.verdict.value,
            "sentence": verdict_sentence(found),
            "rows": [_row(answer) for answer in found.answers],
            "notes": found.notes,
            "picture": base64.b64encode(pictures[0].read_bytes()).decode() if pictures else "",
        },
    )


def verdict_sentence(found: PresetResult) -> str:
    """The number of questions with each verdict."""
    asked = [answer.verdict for answer in found.answers if answer.verdict is not None]
    counts = [f"{asked.count(verdict)} {verdict.value}" for verdict in Verdict if verdict in asked]
    return f"{len(asked)} questions: {', '.join(counts)}" if asked else "no question applies to this image"


def _row(answer: PresetAnswer) -> dict[str, Any]:
    result = answer.result
    return {
        "name": answer.name,
        "specs": " + ".join(answer.specs),
        "verdict": "skipped" if answer.verdict is None else answer.verdict.value,
        "reason": answer.reason or "",
        "has_folder": result is not None,
        "shares": ["", "", "", ""] if result is None else share_cells(result),
    }


def share_cells(result: Result) -> list[str]:
    """The shares of the domain that keep the label, the attention and both, and that are undecided, in words."""
    area = result.areas
    names: list[str] = [Label.CR, *([Label.AR, Joint.BOTH] if result.is_measured else [])]
    cells = [share_text(*area[name]) for name in names] + ["not measured"] * (3 - len(names))
    return [*cells, percent_up(area[Label.UNDECIDED][1])]
