"""The outcomes of a verification: what each means, its exit code, and how properties combine."""

from enum import Enum

from .errors import OptionError


class Property(Enum):
    """What has to hold everywhere in the domain."""

    CR = "cr"
    AR = "ar"
    BOTH = "both"

    @classmethod
    def parse(cls, text: "str | Property") -> "Property":
        """Read cr, ar or both; OptionError for anything else."""
        try:
            return cls(text)
        except ValueError:
            raise OptionError(f"property {text!r} is not known; expected cr, ar or both") from None


class Verdict(Enum):
    """What was proved of a property over the whole domain.

    >>> Verdict.ROBUST.exit_code, Verdict.NOT_ROBUST.exit_code, Verdict.UNDECIDED.exit_code
    (0, 10, 3)
    """

    ROBUST = "robust"
    NOT_ROBUST = "not robust"
    UNDECIDED = "undecided"

    @property
    def exit_code(self) -> int:
        """The exit code of the command line."""
        return {Verdict.ROBUST: 0, Verdict.NOT_ROBUST: 10, Verdict.UNDECIDED: 3}[self]

    @property
    def meaning(self) -> str:
        """One sentence for people, which says no more than was proved."""
        return {
            Verdict.ROBUST: "The property holds everywhere in the domain.",
            Verdict.NOT_ROBUST: "The property is violated somewhere in the domain.",
            Verdict.UNDECIDED: "No violation was found, but part of the domain is not decided.",
        }[self]

    @classmethod
    def of(cls, *, violated: float, undecided: float) -> "Verdict":
        """The verdict for shares of the domain where the property is surely violated and where it is not decided.

        >>> Verdict.of(violated=0.0, undecided=1e-9)
        <Verdict.UNDECIDED: 'undecided'>
        """
        if violated > 0.0:
            return cls.NOT_ROBUST
        return cls.UNDECIDED if undecided > 0.0 else cls.ROBUST


class Status(Enum):
    """How a run ended, in the paper's words; unlike a verdict, it speaks of what was visited alone."""

    ROBUST = "Robust"
    NOT_ROBUST = "NotRobust"
    TIMEOUT = "Timeout"
    FAILED = "Failed"

    @classmethod
    def stopped_by(cls, limit: str) -> "Status":
        """The status of a run that a limit ended: memory is a failure, everything else counts as time."""
        return cls.FAILED if "memory" in limit else cls.TIMEOUT

    @property
    def meaning(self) -> str:
        """One sentence for people."""
        return {
            Status.ROBUST: "Every region that was visited satisfies the property.",
            Status.NOT_ROBUST: "A region that was visited violates the property, or contains part of its boundary.",
            Status.TIMEOUT: "The search was ended by a limit before it was done.",
            Status.FAILED: "Regions were lost or left undecided for numerical reasons, or memory ran out.",
        }[self]
