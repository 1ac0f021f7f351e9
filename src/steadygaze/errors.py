"""The few kinds of failure, each with the exit code that the command line gives it.

An error message is one line that says what was received, what is expected and what to do next. An exhausted budget
is an outcome (see `verdict`), not an error.
"""


class SteadygazeError(Exception):
    """Something that the caller can mend; the message says how."""

    exit_code = 2


class ModelError(SteadygazeError):
    """The model file cannot be read, or holds something that is not supported."""


class ImageError(SteadygazeError):
    """The image cannot be read, or does not fit the model."""


class PerturbationError(SteadygazeError):
    """A perturbation is misspelt, empty, leaves the image, or cannot be combined with the others."""


class OptionError(SteadygazeError):
    """An option has a value that makes no sense."""


class StoreError(SteadygazeError):
    """A result directory is missing, damaged, foreign, or in the way."""


class InternalError(SteadygazeError):
    """A self-check of steadygaze failed: nothing is delivered. The fault is in steadygaze, not in the input."""

    exit_code = 70
