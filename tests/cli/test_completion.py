"""`steadygaze completion`: bash completes with the script; those of the other shells name every command and option."""

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from steadygaze.attention.measures import find_measures
from steadygaze.attention.methods import find_methods
from steadygaze.cli import app
from steadygaze.cli.completion_command import KNOWN, bash_script, collect_words, fish_script, zsh_script
from steadygaze.perturbation.families import find_families
from steadygaze.report import figure_kinds
from support.command_line import Runner

WORDS = list(collect_words(get_command(app)))


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "steadygaze.bash"
    path.write_text(bash_script(WORDS), encoding="utf-8")
    return path


def complete(script: Path, place: Path, typed: list[str]) -> set[str]:
    """The completions of bash for the last word typed after the name of the program."""
    words = " ".join(f"'{word}'" for word in ["steadygaze", *typed])
    asked = f"source '{script}'; COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _steadygaze; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", asked], cwd=place, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ver"], {"verify"}),
        (["verify", "--meth"], {"--method"}),
        (["verify", "M-FNN-100", "--method", "b"], {"bfs", "boundary"}),
        (["verify", "M-MAX"], {"M-MAXPOOL"}),
        (["verify", "M-FNN-100", "--property", ""], {"cr", "ar", "both"}),
        (["campaign", "ins"], {"insights"}),
        (["campaign", "run", "--forc"], set()),
        (["report", "--no"], {"--no-weights"}),
        (["figure", "ti"], {"tiling"}),
        (["figure", "sec"], {"sections"}),
        (["verify", "M-FNN-100", "--perturb", "br"], {"brightness"}),
        (["verify", "M-FNN-100", "--explain", "gr"], {"gradcam", "gradient"}),
        (["verify", "M-FNN-100", "--mask", "a"], {"auto", "another.toml"}),
        (["campaign", "run", "s"], {"smoke", "set.toml"}),
        (["campaign", "i"], {"insights"}),
        (["completion", ""], {"bash", "zsh", "fish"}),
    ],
)
def test_bash_completes(script: Path, tmp_path: Path, typed: list[str], offered: set[str]):
    for name in ("another.toml", "set.toml", "insights.toml"):
        (tmp_path / name).touch()
    assert complete(script, tmp_path, typed) == offered


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_offers_files_for_options_that_take_them(script: Path, tmp_path: Path):
    (tmp_path / "photo.png").touch()
    assert complete(script, tmp_path, ["verify", "m", "--image", "ph"]) == {"photo.png"}


def test_words_come_from_the_lists_that_define_them():
    words = {"figure kind": figure_kinds.KINDS, "--attention": find_measures(), "--perturb": find_families()}
    for name, known in words.items():
        assert set(KNOWN[name]()) == set(known)
    assert set(KNOWN["--explain"]()) == set(find_methods())


def test_every_command_and_option_is_in_every_script():
    for make in (bash_script, zsh_script, fish_script):
        text = make(WORDS)
        for words in WORDS:
            assert all(name in text for name, _ in words.commands)
            assert all(name.removeprefix("--") in text for name, _, _ in words.options)
    assert zsh_script(WORDS).startswith("autoload -U +X bashcompinit")
    assert (
        "complete -c steadygaze -n '__fish_seen_subcommand_from verify' -l method -x -a 'auto map refine"
        in fish_script(WORDS)
    )


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("verify M-FNN-100 --perturb bri", {"brightness"}),
        ("verify M-FNN-100 --explain gr", {"gradcam", "gradient"}),
        ("campaign run s", {"smoke", "set.toml"}),
        ("campaign i", {"insights"}),
        ("completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_fish_completes(tmp_path: Path, typed: str, offered: set[str]):
    (tmp_path / "set.toml").touch()
    (tmp_path / "insights.toml").touch()
    (tmp_path / "script").write_text(fish_script(WORDS), encoding="utf-8")
    asked = f"source script; complete -C 'steadygaze {typed}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert {line.partition("\t")[0] for line in done.stdout.splitlines()} - {"script"} == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(tmp_path: Path, shell: str):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text((zsh_script if shell == "zsh" else fish_script)(WORDS), encoding="utf-8")
    subprocess.run([shell, "-n", str(path)], check=True)


def test_the_command_prints_the_script(run: Runner):
    printed = run("completion", "bash")
    assert printed.code == 0 and printed.out == bash_script(WORDS)
    wrong = run("completion", "bsah")
    assert wrong.code == 2 and "Did you mean bash?" in wrong.err
