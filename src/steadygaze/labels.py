"""Labels, verdicts, statuses and stop reasons, each with its code, word and sentence."""

from enum import Enum, IntEnum, StrEnum

from .errors import OptionError, did_you_mean


class Property(Enum):
    """The property that must hold everywhere in the domain."""

    CR = "cr"
    AR = "ar"
    BOTH = "both"

    @classmethod
    def parse(cls, text: "str | Property") -> "Property":
        """Read cr, ar or both; OptionError for anything else."""
        try:
            return cls(text)
        except ValueError:
            guess = did_you_mean(str(text), [one.value for one in cls])
            raise OptionError(
                f"property {text!r} is not known; expected cr, ar or both{'.' if guess else ''}{guess}"
            ) from None

    @property
    def asks_label(self) -> bool:
        """Whether the property includes the label."""
        return self is not Property.AR

    @property
    def asks_attention(self) -> bool:
        """Whether the property includes the attention."""
        return self is not Property.CR

    @property
    def share(self) -> str:
        """The name of the share of the domain that has the property.

        >>> Property.AR.share, Property.BOTH.share
        ('AR', 'CR&AR')
        """
        return {Property.CR: "CR", Property.AR: "AR", Property.BOTH: "CR&AR"}[self]

    @property
    def noun(self) -> str:
        """What the property keeps, for titles."""
        return {Property.CR: "label", Property.AR: "attention", Property.BOTH: "label and attention"}[self]

    @property
    def sentence(self) -> str:
        """The property in words."""
        return {
            Property.CR: "the label is kept (cr)",
            Property.AR: "the attention is kept (ar)",
            Property.BOTH: "the label and the attention are kept (both)",
        }[self]


class Kept(IntEnum):
    """Whether a piece of the domain keeps the label, the attention or both."""

    YES = 0
    UNKNOWN = 1
    NO = 2

    @classmethod
    def of_label(cls, text: str) -> "Kept":
        """The code of a label that holds on a whole region; UNKNOWN for any other label, and for none.

        >>> Kept.of_label("IR"), Kept.of_label("AB"), Kept.of_label("")
        (<Kept.NO: 2>, <Kept.UNKNOWN: 1>, <Kept.UNKNOWN: 1>)
        """
        return {"CR": cls.YES, "AR": cls.YES, "MR": cls.NO, "IR": cls.NO}.get(text, cls.UNKNOWN)


class Label(StrEnum):
    """The label of a region: for classification (CR, MR, CB), for attention (AR, IR, AB), or undecided.

    A label equals its string, so JSON, tables and string arrays can hold it directly.

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
        """The label for a `Kept` code of the classification."""
        return (cls.CR, cls.UNDECIDED, cls.MR)[code]

    @classmethod
    def of_attention(cls, code: Kept) -> "Label":
        """The label for a `Kept` code of the attention."""
        return (cls.AR, cls.UNDECIDED, cls.IR)[code]

    @property
    def sentence(self) -> str:
        """The label in words."""
        return {
            Label.CR: "label kept",
            Label.MR: "label changed",
            Label.CB: "label kept in part",
            Label.AR: "attention kept",
            Label.IR: "attention not kept",
            Label.AB: "attention kept in part",
            Label.UNDECIDED: "undecided",
        }[self]


class Joint(StrEnum):
    """The four combinations of label and attention. A combination equals its string.

    >>> Joint.of(Label.CR, Label.IR), Joint.LABEL_ALONE == "CR&IR"
    (<Joint.LABEL_ALONE: 'CR&IR'>, True)
    """

    BOTH = "CR&AR"
    LABEL_ALONE = "CR&IR"
    ATTENTION_ALONE = "MR&AR"
    NEITHER = "MR&IR"

    @classmethod
    def of(cls, classification: Label, attention: Label) -> "Joint":
        """The combination of CR or MR with AR or IR."""
        return cls(f"{classification}&{attention}")

    @property
    def sentence(self) -> str:
        """The combination in words, for tables, figures and pages."""
        return {
            Joint.BOTH: "label and attention kept",
            Joint.LABEL_ALONE: "label kept, attention not",
            Joint.ATTENTION_ALONE: "attention kept, label not",
            Joint.NEITHER: "neither kept",
        }[self]


CLASSIFICATIONS = (Label.CR, Label.MR, Label.CB)
ATTENTIONS = (Label.AR, Label.IR, Label.AB)
SHARES = tuple(str(name) for name in (Label.CR, Label.MR, Label.AR, Label.IR, *Joint))
"""The shares of the domain in an answer, apart from `undecided`."""


class Verdict(StrEnum):
    """The proved answer for a property over the whole domain. It prints as its word, and equals it.

    >>> Verdict.ROBUST.exit_code, Verdict.NOT_ROBUST.exit_code, Verdict.UNDECIDED.exit_code
    (0, 10, 3)
    >>> str(Verdict.NOT_ROBUST), Verdict.ROBUST == "robust"
    ('not robust', True)
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
        """The verdict in words; claims no more than was proved."""
        return {
            Verdict.ROBUST: "The property holds everywhere in the domain.",
            Verdict.NOT_ROBUST: "The property is violated somewhere in the domain.",
            Verdict.UNDECIDED: "No violation was found, but part of the domain is undecided.",
        }[self]

    @classmethod
    def of(cls, *, violated: float, undecided: float) -> "Verdict":
        """The verdict, given the shares of the domain that surely violate the property and that are undecided.

        >>> Verdict.of(violated=0.0, undecided=1e-9)
        <Verdict.UNDECIDED: 'undecided'>
        """
        if violated > 0.0:
            return cls.NOT_ROBUST
        return cls.UNDECIDED if undecided > 0.0 else cls.ROBUST


class StopKind(Enum):
    """The limits that end a run; each value is the first word of a `Stop`."""

    INTERRUPTED = "interrupted"
    TIME = "timeout"
    REGIONS = "limit"
    MEMORY = "memory"


class Stop(str):
    """Why a run ended early: a text that names the limit.

    >>> Stop("timeout of 30 s").kind, Stop("memory limit of 2 GiB").kind.name
    (<StopKind.TIME: 'timeout'>, 'MEMORY')
    """

    __slots__ = ()

    @property
    def kind(self) -> StopKind:
        """Which limit ended the run."""
        return next((kind for kind in StopKind if self.startswith(kind.value)), StopKind.INTERRUPTED)


class Status(StrEnum):
    """How a run ended, in the paper's words; covers visited regions only. It prints as its word, and equals it.

    UNDECIDED is not in the paper: the run completed with proved bounds, which leave the verdict open. MISCLASSIFIED is
    for campaigns with expected labels: the problem was not solved.
    """

    ROBUST = "Robust"
    NOT_ROBUST = "NotRobust"
    UNDECIDED = "Undecided"
    TIMEOUT = "Timeout"
    FAILED = "Failed"
    MISCLASSIFIED = "Misclassified"

    @classmethod
    def stopped_by(cls, stop: Stop) -> "Status":
        """The status of a run that a limit ended: FAILED for memory, TIMEOUT for every other limit."""
        return cls.FAILED if stop.kind is StopKind.MEMORY else cls.TIMEOUT

    @property
    def sentence(self) -> str:
        """The status in words."""
        return {
            Status.ROBUST: "Every visited region satisfies the property.",
            Status.NOT_ROBUST: "A visited region violates the property, or contains part of its boundary.",
            Status.UNDECIDED: "The run completed, and the proved bounds leave the verdict open.",
            Status.TIMEOUT: "A limit ended the run early.",
            Status.FAILED: "A search lost regions or left them undecided for numerical reasons, or memory ran out.",
            Status.MISCLASSIFIED: "The network does not predict the expected label for the unperturbed image.",
        }[self]
