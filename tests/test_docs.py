"""The documentation is true: snippets run, commands parse, links lead somewhere."""

import doctest
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from typer.main import get_command

import steadygaze
from steadygaze.cli.entry_point import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted((ROOT / "docs").glob("*.md"))


def commands_in(page: Path) -> list[list[str]]:
    """The words of every steadygaze command in the shell blocks of a page."""
    lines = "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines]
    return [line for line in words if line and line[0].endswith("steadygaze")]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("name", ["guide.md", "first-steps.md"])
def test_python_sessions_are_doctests(name):
    outcome = doctest.testfile(str(ROOT / "docs" / name), module_relative=False)
    assert outcome.attempted > 5
    assert outcome.failed == 0


def test_the_python_snippet_of_the_readme_asks_the_question_of_its_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(blocks(ROOT / "README.md", "python")[0], "README.md", "exec"), names)
    assert capsys.readouterr().out.startswith("not robust")
    assert (tmp_path / "map.png").exists()
    assert (tmp_path / "my-result" / "result.json").exists()
    question = names["result"].question
    command = next(line for line in commands_in(ROOT / "README.md") if line[1] == "verify")
    specs = [word for option, word in pairwise(command) if option == "--perturb"]
    assert command[2:5] == [question.model_name, "--image", question.image_name]
    assert specs == list(question.specs)
    assert len(command) == 5 + 2 * len(specs), "an option that the snippet does not give"
    assert question.describe() == steadygaze.verify(command[2], command[4], specs).question.describe()


def test_first_steps_shows_the_answer_of_its_command(tmp_path):
    page = ROOT / "docs" / "first-steps.md"
    command = next(line for line in commands_in(page) if line[1] == "verify")
    words = [sys.executable, "-m", "steadygaze", *command[1:], "--pictures", "none"]
    environment = os.environ | {"COLUMNS": "80"}
    found = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert found.returncode == 10, found.stderr
    printed = "\n".join(line.rstrip() for line in found.stdout.splitlines())
    assert printed.startswith(blocks(page, "text")[0])


def test_the_torch_snippet_exports_a_model_that_is_read(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks(ROOT / "docs" / "own-model.md", "python")[1], "own-model.md", "exec"), {})
    assert steadygaze.read_model("mine.onnx").classes == 10


def test_the_torch_snippet_of_the_readme_runs(capsys):
    pytest.importorskip("torch")
    exec(compile(blocks(ROOT / "README.md", "python")[1], "README.md", "exec"), {})
    assert capsys.readouterr().out.strip() in ("robust", "not robust", "undecided")


@pytest.mark.parametrize(("name", "number"), [("own-model.md", 0), ("choose-a-threshold.md", 0), ("how-to.md", 0)])
def test_the_snippets_of_the_recipes_run(name, number, tmp_path, monkeypatch):
    for library in ("torch", "pandas"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks(ROOT / "docs" / name, "python")[number], name, "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_exist(page):
    commands = get_command(app).commands
    for words in commands_in(page):
        command = commands[words[1]]
        if hasattr(command, "commands"):
            command = command.commands[words[2]]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, words


def test_names_in_the_page_of_the_paper_exist():
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    names = [name for name in re.findall(r"`([a-z_]+(?:\.\w+)+)`", text) if not name.endswith((".md", ".py"))]
    assert len(names) > 30
    for name in names:
        assert pkgutil.resolve_name(f"steadygaze.{name}"), name


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does: a warning is an error."""
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    command += ["-d", str(folder / "doctrees"), "-c", "docs", ".", str(folder / "pages")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder / "pages"


def test_the_site_has_every_page_and_every_public_name(site):
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / "docs" / f"{page.stem}.html").exists()
    reference = (site / "docs" / "python.html").read_text(encoding="utf-8")
    missing = [name for name in steadygaze.__all__ if f'id="steadygaze.{name}"' not in reference]
    assert not missing


def test_the_site_has_the_notebooks(site):
    for notebook in (ROOT / "docs" / "notebooks").glob("*.ipynb"):
        page = (site / "docs" / "notebooks" / f"{notebook.stem}.html").read_text(encoding="utf-8")
        assert "steadygaze" in page and "cell_type" not in page


def test_the_site_fetches_nothing(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r"""<(?:script|img|iframe|link)[^>]*(?:src|href)=["'](?:https?:)?//""", text), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"""(?:@import|url\()\s*["']?(?:https?:)?//""", sheet.read_text(encoding="utf-8")), sheet


def test_the_first_page_leads_to_the_index(site):
    target = re.search(r"url=([^\"]+)", (site / "index.html").read_text(encoding="utf-8"))
    assert target is not None and (site / target[1]).exists()
