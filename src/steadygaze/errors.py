"""The exceptions of steadygaze, each with its exit code on the command line, and phrases that their messages share.

An error message is one line: the value received, the value expected, and the next step. An exhausted budget is an
outcome (`labels.Stop`), not an error. For a misspelt word, a message suggests the known word that is the fewest typing
mistakes away.
"""

from collections.abc import Iterable

BEGUN = 3
"""From this many letters on, the beginning of a known word counts as that word."""


class SteadygazeError(Exception):
    """A mistake that the caller can fix; the message says how."""

    exit_code = 2


class ModelError(SteadygazeError):
    """The model file cannot be read, or has unsupported contents."""


class LayoutError(ModelError):
    """The model does not accept images of the given shape; it may accept another shape."""


class ImageError(SteadygazeError):
    """The image cannot be read, or does not fit the model."""


class PerturbationError(SteadygazeError):
    """A perturbation is misspelt, empty, leaves the image, or cannot be combined with the others."""


class OptionError(SteadygazeError):
    """An option has an impossible value."""


class StoreError(SteadygazeError):
    """A result directory is missing, damaged or foreign, or an existing one is in the way of a new one."""


def without_controls(text: str) -> str:
    """A text whose control characters are blanks: names come from files, and a terminal obeys such characters.

    >>> without_controls("a\\nb\\x1b")
    'a b '
    """
    return "".join(letter if letter.isprintable() else " " for letter in text)


def not_writable(place: object, error: OSError) -> StoreError:
    """The error about a file or directory that the system does not write."""
    return StoreError(f"{place}: cannot be written ({error.strerror or error}); choose another --out")


class InternalError(SteadygazeError):
    """A self-check of steadygaze failed, so there is no result. The fault is in steadygaze, not in the input."""

    exit_code = 70


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """A sentence with the nearest known word, after a leading blank; empty if no word is near.

    >>> did_you_mean("bsf", ["map", "bfs", "gbs"]), did_you_mean("colour", ["map", "bfs"])
    (' Did you mean bfs?', '')
    """
    found = nearest_word(text, known)
    return "" if found is None else f" Did you mean {found}?"


def nearest_word(text: str, known: Iterable[str]) -> str | None:
    """The known word that begins with the text, or is within one mistake for every three letters, at least one.

    >>> nearest_word("PNGG", ["svg", "png"]), nearest_word("x", ["cr", "ar"]), nearest_word("bou", ["gbs", "boundary"])
    ('png', None, 'boundary')
    """
    known, given = list(known), text.strip().lower()
    begun = [word for word in known if len(given) >= BEGUN and word.lower().startswith(given)]
    if begun:
        return begun[0]
    most = max(1, len(given) // 3)
    ranked = [(count_mistakes(given, word.lower()), place, word) for place, word in enumerate(known)]
    near = [item for item in ranked if item[0] <= most and item[0] < len(given)]
    return min(near)[2] if near else None


def count_mistakes(first: str, second: str) -> int:
    """Letters to add, drop, change or swap with the next one (optimal string alignment).

    >>> count_mistakes("bsf", "bfs"), count_mistakes("bsf", "gbs"), count_mistakes("", "ab")
    (1, 2, 2)
    """
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        older, before, row = before, row, [i]
        for j, other in enumerate(second, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
