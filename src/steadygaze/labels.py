"""Labels, verdicts, statuses, and why a run stopped: for each its code, its word and its sentence."""

from enum import Enum, IntEnum, StrEnum

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

    @property
    def asks_label(self) -> bool:
        """Whether the label is part of it."""
        return self is not Property.AR

    @property
    def asks_attention(self) -> bool:
        """Whether the attention is part of it."""
        return self is not Property.CR

    @property
    def sentence(self) -> str:
        """What has to hold, for people."""
        return {
            Property.CR: "the label is kept (cr)",
            Property.AR: "the attention is kept (ar)",
            Property.BOTH: "the label and the attention are kept (both)",
        }[self]


class Kept(IntEnum):
    """Whether something is kept on a piece of the domain."""

    YES = 0
    UNKNOWN = 1
    NO = 2


class Label(StrEnum):
    """The label of a region: of its classification (CR, MR, CB), of its attention (AR, IR, AB), or undecided.

    A label equals its word, so that JSON, tables and arrays of texts hold it as it is.

    >>> Label.CR == "CR", Label.of_classification(Kept.NO), Label.of_attention(Kept.UNKNOWN)
    (True, <Label.MR: 'MR'>, <Label.UNDECIDED: 'undecided'>)
    """

    CR = "CR"
    MR = "MR"
    CB = "CB"
    AR = "AR"
    IR = "IR"
    AB = "AB"
    UNDECIDED = "undecided"

    @classmethod
    def of_classification(cls, code: Kept) -> "Label":
        """The label for a code of the classification."""
        return (cls.CR, cls.UNDECIDED, cls.MR)[code]

    @classmethod
    def of_attention(cls, code: Kept) -> "Label":
        """The label for a code of the attention."""
        return (cls.AR, cls.UNDECIDED, cls.IR)[code]

    @property
    def sentence(self) -> str:
        """What the label says of a region."""
        return {
            Label.CR: "label kept",
            Label.MR: "label lost",
            Label.CB: "label kept in part",
            Label.AR: "attention kept",
            Label.IR: "attention lost",
            Label.AB: "attention kept in part",
            Label.UNDECIDED: "undecided",
        }[self]


CLASSIFICATIONS = (Label.CR, Label.MR, Label.CB)
ATTENTIONS = (Label.AR, Label.IR, Label.AB)
SHARES = ("CR", "MR", "AR", "IR", "CR&AR", "CR&IR", "MR&AR", "MR&IR")
"""The shares of the domain that an answer gives, beside `undecided`."""


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
    def sentence(self) -> str:
        """The verdict for people; it says no more than was proved."""
        return {
            Verdict.ROBUST: "The property holds everywhere in the domain.",
            Verdict.NOT_ROBUST: "The property is violated somewhere in the domain.",
            Verdict.UNDECIDED: "No violation was found, but part of the domain is undecided.",
        }[self]

    @classmethod
    def of(cls, *, violated: float, undecided: float) -> "Verdict":
        """The verdict for the shares of the domain that surely violate the property and that are undecided.

        >>> Verdict.of(violated=0.0, undecided=1e-9)
        <Verdict.UNDECIDED: 'undecided'>
        """
        if violated > 0.0:
            return cls.NOT_ROBUST
        return cls.UNDECIDED if undecided > 0.0 else cls.ROBUST


class StopKind(Enum):
    """The limits that end a run; each value starts the words of a `Stop`."""

    INTERRUPTED = "interrupted"
    TIME = "timeout"
    REGIONS = "limit"
    MEMORY = "memory"


class Stop(str):
    """Why a run ended early, in words that name the limit.

    >>> Stop("timeout of 30 s").kind, Stop("memory limit of 2 GiB").kind.name
    (<StopKind.TIME: 'timeout'>, 'MEMORY')
    """

    __slots__ = ()

    @property
    def kind(self) -> StopKind:
        """Which limit ended the run."""
        return next((kind for kind in StopKind if self.startswith(kind.value)), StopKind.INTERRUPTED)


class Status(Enum):
    """How a run ended, in the paper's words; it speaks only of visited regions."""

    ROBUST = "Robust"
    NOT_ROBUST = "NotRobust"
    TIMEOUT = "Timeout"
    FAILED = "Failed"

    @classmethod
    def stopped_by(cls, stop: Stop) -> "Status":
        """The status of a run that a limit ended: memory is a failure, every other limit counts as time."""
        return cls.FAILED if stop.kind is StopKind.MEMORY else cls.TIMEOUT

    @property
    def sentence(self) -> str:
        """The status for people."""
        return {
            Status.ROBUST: "Every visited region satisfies the property.",
            Status.NOT_ROBUST: "A visited region violates the property, or contains part of its boundary.",
            Status.TIMEOUT: "A limit ended the run before it was done.",
            Status.FAILED: "Regions were lost or left undecided for numerical reasons, or memory ran out.",
        }[self]
