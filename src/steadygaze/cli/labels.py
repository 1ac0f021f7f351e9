"""Names of classes for `--class-names`, and the label that `--expect` asks for. Reads text; verifies nothing else."""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from .. import zoo
from ..errors import OptionError
from ..problem import Problem

MOST_BYTES = 2**22
"""Far more than the names of any classifier need; a larger file was given by mistake."""


def read_class_names(path: Path) -> tuple[str, ...]:
    """Read a text file in UTF-8 with one name on each line; empty lines at its end do not count."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise OptionError(f"{path}: is larger than {MOST_BYTES >> 20} MiB; expected one class name on each line")
        lines = path.read_text(encoding="utf-8-sig").rstrip().splitlines()
    except OSError as error:
        raise OptionError(f"{path}: cannot be read ({error.strerror}); give a text file with class names") from None
    except UnicodeDecodeError as error:
        raise OptionError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    names = tuple(line.strip() for line in lines)
    for number, name in enumerate(names, start=1):
        if not name or not name.isprintable():
            raise OptionError(f"{path}: line {number} holds no printable name; write one class name on each line")
    return names


def with_bundled_names(problem: Problem, image: str) -> Problem:
    """Name the classes after the data set of a bundled image, where the network has as many classes."""
    if not zoo.is_reference(image):
        return problem
    names = zoo.class_names(image.partition(":")[0])
    return replace(problem, names=names) if len(names) == problem.model.classes else problem


def check_expected(problem: Problem, expected: str) -> None:
    """Raise OptionError unless the predicted label is the expected one, given as name or number."""
    wanted = _find_label(expected.strip(), problem.names)
    if problem.label != wanted:
        found, missed = (_shown(label, problem.names) for label in (problem.label, wanted))
        raise OptionError(
            f"{problem.image_name}: {problem.model_name} says {found}, but --expect asks for {missed}; check the "
            "image, the order of the classes, and --mean, --std and --scale"
        )


def _find_label(text: str, names: Sequence[str]) -> int:
    for found in (
        [label for label, name in enumerate(names) if name == text],
        [label for label, name in enumerate(names) if name.casefold() == text.casefold()],
        [int(text)] if text.isascii() and text.isdecimal() and len(text) < 10 and int(text) < len(names) else [],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            numbers = ", ".join(str(label) for label in found)
            raise OptionError(f"--expect {text!r}: several classes have that name; give one of the numbers {numbers}")
    near = get_close_matches(text.casefold(), {name.casefold(): name for name in names}, n=1)
    guess = "".join(f" Did you mean {name}?" for name in names if [name.casefold()] == near)
    raise OptionError(
        f"--expect {text!r}: no such class.{guess} Expected a number from 0 to {len(names) - 1} or a name"
    )


def _shown(label: int, names: Sequence[str]) -> str:
    return names[label] if names[label] == str(label) else f"{names[label]} (class {label})"
