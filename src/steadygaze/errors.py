"""The exceptions of steadygaze, each with its exit code on the command line.

An error message is one line: the value received, the value expected, and the next step. An exhausted budget is an
outcome (`labels.Stop`), not an error.
"""


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
