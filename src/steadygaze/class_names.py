"""Names of classes: read from files, taken from bundled data sets, and recognised in the user's input."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from . import zoo
from .errors import OptionError

MAX_BYTES = 2**22
"""The size limit of a file of class names, far above the needs of any classifier."""


def read_class_names(path: Path) -> tuple[str, ...]:
    """Read a UTF-8 text file with one name on each line; empty lines at the end are ignored."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise OptionError(f"{path}: is larger than {MAX_BYTES >> 20} MiB; expected one class name on each line")
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


def bundled_names(image: str, classes: int) -> tuple[str, ...] | None:
    """The class names of a bundled image's data set, if their number matches `classes`; None for other images."""
    if not zoo.is_reference(image):
        return None
    names = zoo.class_names(image.partition(":")[0])
    return names if len(names) == classes else None


def find_label(text: str, names: Sequence[str], source: str = "--expect") -> int:
    """The number of a class, given by its name or number as text; an error starts with the `source`.

    >>> find_label("Coat", ["shoe", "coat"]), find_label("0", ["shoe", "coat"])
    (1, 0)
    """
    text = text.strip()
    is_number = text.isascii() and text.isdecimal() and len(text) < 10 and int(text) < len(names)
    for found in (
        [label for label, name in enumerate(names) if name == text],
        [label for label, name in enumerate(names) if name.casefold() == text.casefold()],
        [int(text)] if is_number else [],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            numbers = ", ".join(str(label) for label in found)
            raise OptionError(f"{source} {text!r}: several classes have that name; give one of the numbers {numbers}")
    near = get_close_matches(text.casefold(), {name.casefold(): name for name in names}, n=1)
    guess = "".join(f" Did you mean {name}?" for name in names if [name.casefold()] == near)
    raise OptionError(
        f"{source} {text!r}: no such class.{guess} Expected a number from 0 to {len(names) - 1} or a name"
    )


def names_for(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """The names of `count` classes: the given ones, or their numbers."""
    if names is None:
        return tuple(str(number) for number in range(count))
    if len(names) != count:
        raise OptionError(f"received {len(names)} class names for {count} classes; give one name for each class")
    return tuple(names)


def class_numbers(classes: str | Sequence[int], count: int) -> tuple[int, ...] | None:
    """The classes over which the inconsistency is summed; None for all, and for the predicted one, not yet known."""
    if classes in ("all", "predicted"):
        return None
    try:
        numbers = [int(word) for word in (classes.split(",") if isinstance(classes, str) else classes)]
    except ValueError:
        numbers = []
    if not numbers or len(set(numbers)) < len(numbers) or not all(0 <= n < count for n in numbers):
        raise OptionError(
            f"no such classes: {classes!r}; expected all, predicted, or different numbers from 0 to "
            f"{count - 1} such as 3,8"
        )
    return tuple(sorted(numbers))
