"""`steadygaze completion`: prints a script with which a shell completes commands, options and their values.

The script is made from the commands and holds all words itself, so completing starts no Python.
"""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ..errors import OptionError, did_you_mean

SHELLS = ("bash", "zsh", "fish")
FILES = ""
"""Stands for names of files among the words that an option or argument takes."""


@dataclass(frozen=True)
class Words:
    """The words that may follow a command: subcommands, arguments, and options with their values (None for flags).

    Values and arguments that contain `FILES` may also be names of files.
    """

    path: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str, tuple[str, ...] | None], ...]
    arguments: tuple[str, ...] = ()


def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> int:
    """Print a script that completes commands, options and values in a shell.

    bash: add `eval "$(steadygaze completion bash)"` to ~/.bashrc. zsh: the same with zsh in ~/.zshrc, after compinit.
    fish: steadygaze completion fish > ~/.config/fish/completions/steadygaze.fish. The exit code is 0.
    """
    if shell not in SHELLS:
        raise OptionError(f"shell {shell!r} is not known; expected {', '.join(SHELLS)}.{did_you_mean(shell, SHELLS)}")
    from typer.main import get_command  # noqa: PLC0415 (the commands import this module)

    from .entry_point import app  # noqa: PLC0415

    found = list(collect_words(get_command(app)))
    print({"bash": bash_script, "zsh": zsh_script, "fish": fish_script}[shell](found), end="")
    return 0


def collect_words(command: Any, path: tuple[str, ...] = ()) -> Iterator[Words]:
    """The words after a command, and those after each of its subcommands."""
    inner = getattr(command, "commands", {})
    options: list[tuple[str, str, tuple[str, ...] | None]] = [("--help", "Show this message and exit.", None)]
    arguments: tuple[str, ...] = ()
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            arguments += _values(" ".join((*path, parameter.name)), "")
        else:
            values = None if parameter.is_flag else _values(parameter.opts[-1], parameter.metavar or "")
            options += [(name, parameter.help or "", values) for name in parameter.opts]
    yield Words(
        path,
        tuple((name, " ".join((one.help or "").partition("\n\n")[0].split())) for name, one in inner.items()),
        tuple(options),
        arguments,
    )
    for name, one in inner.items():
        yield from collect_words(one, (*path, name))


def _values(name: str, metavar: str) -> tuple[str, ...]:
    """The words that an option (by its spelling) or argument (by its command and name) takes."""
    words = metavar.split("|")
    if len(words) > 1 and all(word.isascii() and word.islower() for word in words):
        return tuple(words)
    return KNOWN[name]() if name in KNOWN else (FILES,)


def _models() -> tuple[str, ...]:
    from .. import zoo  # noqa: PLC0415 (reads the list of networks)

    return (*(model.name for model in zoo.models()), FILES)


def _families() -> tuple[str, ...]:
    from ..perturbation.families import find_families  # noqa: PLC0415 (slow to import)

    return tuple(find_families())


def _figure_kinds() -> tuple[str, ...]:
    from ..report.figure_kinds import KINDS  # noqa: PLC0415 (slow to import)

    return tuple(KINDS)


def _measures() -> tuple[str, ...]:
    from ..attention.measures import find_measures  # noqa: PLC0415 (slow to import)

    return tuple(find_measures())


def _explanations() -> tuple[str, ...]:
    from ..attention.methods import find_methods  # noqa: PLC0415 (slow to import)

    return tuple(find_methods())


def _plans() -> tuple[str, ...]:
    from ..campaign.plan_file import BUNDLED  # noqa: PLC0415 (slow to import)

    return (*BUNDLED, FILES)


KNOWN: dict[str, Callable[[], tuple[str, ...]]] = {
    "verify model": _models,
    "figure kind": _figure_kinds,
    "completion shell": lambda: SHELLS,
    "campaign run file": _plans,
    "--perturb": _families,
    "--attention": _measures,
    "--explain": _explanations,
    "--mask": lambda: ("auto", FILES),
}
"""The words of options and arguments whose metavar does not list them."""


def bash_script(found: list[Words]) -> str:
    """Completion for bash: a function that looks at the words before the cursor."""
    cases = []
    for words in found:
        names = [*(name for name, _ in words.commands), *words.arguments]
        lines = [f"    {shlex.quote(' '.join(words.path))})"]
        valued = [(name, values) for name, _, values in words.options if values is not None]
        if valued:
            lines.append('      case "$before" in')
            lines += [f"        {name}) {_bash('values', values)} takes=1 ;;" for name, values in valued]
            lines.append("      esac")
        lines.append(f"      options={shlex.quote(' '.join(name for name, _, _ in words.options))}")
        lines.append(f"      ((takes)) || {{ {_bash('values', tuple(names))} }} ;;")
        cases += lines
    groups = " ".join(" ".join(words.path) for words in found if words.commands and words.path)
    first = " ".join(name for name, _ in found[0].commands)
    return "\n".join(
        [
            "_steadygaze() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" path=""',
            '  local options="" values="" takes=0 files=0 i',
            f"  local commands={shlex.quote(first)} groups={shlex.quote(groups)}",
            "  for ((i = 1; i < COMP_CWORD; i++)); do",
            '    [[ "${COMP_WORDS[i]}" == -* ]] && continue',
            '    if [[ -z "$path" ]]; then',
            '      [[ " $commands " == *" ${COMP_WORDS[i]} "* ]] && path="${COMP_WORDS[i]}"',
            '    elif [[ " $groups " == *" $path "* ]]; then path="$path ${COMP_WORDS[i]}"; break',
            "    else break; fi",
            "  done",
            '  case "$path" in',
            *cases,
            "  esac",
            '  if ((!takes)) && [[ "$word" == -* ]]; then',
            '    COMPREPLY=($(compgen -W "$options" -- "$word"))',
            "  else",
            '    COMPREPLY=($(compgen -W "$values" -- "$word"))',
            '    ((files)) && COMPREPLY+=($(compgen -f -- "$word"))',
            "  fi",
            "  return 0",
            "}",
            "complete -o filenames -F _steadygaze steadygaze",
            "",
        ]
    )


def _bash(name: str, values: tuple[str, ...]) -> str:
    """Statements that set a variable to words, and say whether files count."""
    words = " ".join(value for value in values if value != FILES)
    return f"{name}={shlex.quote(words)}; files={int(FILES in values)};"


def zsh_script(found: list[Words]) -> str:
    """Completion for zsh, which runs functions of bash."""
    return "autoload -U +X bashcompinit && bashcompinit\n" + bash_script(found)


def fish_script(found: list[Words]) -> str:
    """Completion for fish: one line for each command and option, with its meaning."""
    lines = []
    for words in found:
        seen = " and ".join(f"__fish_seen_subcommand_from {name}" for name in words.path)
        names = " ".join(name for name, _ in words.commands)
        first = "__fish_use_subcommand" if not words.path else f"{seen}; and not __fish_seen_subcommand_from {names}"
        for name, meaning in words.commands:
            lines.append(f"complete -c steadygaze -f -n {_fish(first)} -a {name} -d {_fish(meaning)}")
        where = _fish((seen or "__fish_use_subcommand").replace(" and ", "; and "))
        if FILES not in words.arguments:
            lines.append(f"complete -c steadygaze -f -n {_fish(first) if words.commands else where}")
        for name in filter(None, words.arguments):
            lines.append(f"complete -c steadygaze -n {where} -a {name}")
        for name, meaning, values in words.options:
            spelt = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            taken = "" if values is None else _fish_values(values)
            lines.append(f"complete -c steadygaze -n {where} {spelt}{taken} -d {_fish(meaning.partition('. ')[0])}")
    return "\n".join([*lines, ""])


def _fish_values(values: tuple[str, ...]) -> str:
    """The words that an option takes; -r keeps files among them, -x does not."""
    words = " ".join(filter(None, values))
    return (" -r" if FILES in values else " -x") + (f" -a {_fish(words)}" if words else "")


def _fish(text: str) -> str:
    """A text in single quotes, as fish reads them."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
