"""The one result of all methods: the question, its tiling, and the answer for a δ."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from ..attention.asking import GivenThresholds, own_threshold
from ..attention.measures.wording import Stated
from ..boundary import Boundary
from ..budget import OPTIONAL, Budget, is_over
from ..errors import OptionError, PerturbationError
from ..labels import Kept, Label, Property, Status, Stop, Verdict
from ..network.model import Agreement
from ..products import products_on_one_thread
from ..properties.nearest import Nearest
from ..question import Question
from ..regions.check import CheckedMap
from ..requirement import Outcome, Requirement
from ..threshold import Threshold, sharpened
from .delta_answer import DeltaAnswer
from .display import result_text
from .point import Point, pattern_at_theta, view_point
from .tiling import Tiling

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..report.page.html import Cell
    from .summary import Summary
    from .witness import Findings, Witness


@dataclass(frozen=True, eq=False)
class Result:
    """The result of any method: a question, the units that cover its domain or part of it, and their proofs.

    Immutable; `with_delta` answers for another threshold. agreement: the model as read against its file. checked: the
    self-check of a tiling, None for searches. seconds: by phase of the run; summary, pictures and files count too as
    soon as they are made. budget: of the run, which also limits later computations; None after loading.
    """

    question: Question
    tiling: Tiling[Any]
    threshold: Threshold
    agreement: Agreement
    checked: CheckedMap | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    budget: Budget | None = None

    def __repr__(self) -> str:
        return result_text(self)

    def _repr_html_(self) -> str:
        """The picture of the result and its shares, for a cell of a notebook."""
        from ..report.page.html import result_html  # noqa: PLC0415 (matplotlib is slow to import)

        return result_html(self)

    @classmethod
    def of_run(
        cls, question: Question, tiling: Tiling[Any], budget: Budget, checked: CheckedMap | None = None
    ) -> "Result":
        """The result of an engine that ran within a budget."""
        return cls(question, tiling, question.threshold, question.agreement, checked, budget.clock.seconds, budget)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of a block for a phase of the run, if this result comes from a run."""
        counting = nullcontext() if self.budget is None else self.budget.clock.phase(name)
        with products_on_one_thread(), counting:
            yield

    def with_check(self, checked: CheckedMap) -> "Result":
        """This result with a checked tiling; it keeps the answer computed so far."""
        found = replace(self, checked=checked)
        found.__dict__.update({name: value for name, value in self.__dict__.items() if name == "answer"})
        return found

    @property
    def method(self) -> str:
        """The engine that gave the result."""
        return self.tiling.method

    @cached_property
    def answer(self) -> DeltaAnswer:
        """The answer for this δ; OptionError if it is relative, above 100 %, and the original maps are uncertain."""
        if (
            self.threshold.is_relative
            and self.threshold.number > 1.0
            and self.is_measured
            and self.question.original_doubt > 0.0
        ):
            raise OptionError(
                f"δ = {self.threshold} is relative to maps that are uncertain at the unperturbed image; give at most "
                "100 %, or an absolute δ"
            )
        return self.tiling.answer(self.question.limit(self.threshold))

    @property
    def label(self) -> int:
        """The predicted class of the unperturbed image."""
        return self.question.label

    @cached_property
    def verdict(self) -> Verdict:
        """The proved verdict on the property over the whole domain."""
        return self.verdict_of(self.question.property)

    def verdict_of(self, wanted: Property) -> Verdict:
        """The proved verdict on a property over the whole domain."""
        return self.answer.verdict(wanted)

    @property
    def status(self) -> Status:
        """How the run ended, in the paper's words; covers the visited units only."""
        return self.tiling.status(self.answer, self.verdict)

    @property
    def areas(self) -> dict[str, tuple[float, float]]:
        """Shares of the domain: CR, MR, AR, IR, their combinations and undecided, each as proved (low, high)."""
        areas = self.answer.areas
        if self.is_measured:
            return areas
        undecided = min(1.0, float(sum(self.answer.shares.cells[Kept.UNKNOWN])))
        return areas | {Label.UNDECIDED: (undecided, undecided)}

    @property
    def knows_shares(self) -> bool:
        """Whether `areas` bounds shares of the whole domain: always, except for searches of a part of it."""
        return not self.tiling.is_search or self.sliver_share is not None

    @property
    def coverage(self) -> float:
        """The share of the domain mapped, decided or visited."""
        return self.answer.coverage

    @property
    def sets(self) -> Mapping[str, int | None]:
        """Number of regions by label; None if the label was not asked for."""
        return self.answer.sets

    @property
    def nearest(self) -> dict[str, Nearest]:
        """The nearest violations of CR and of AR."""
        return self.answer.nearest

    @property
    def stopped(self) -> Stop | None:
        """The limit that ended the run early, None for none."""
        return self.tiling.stopped

    @property
    def is_complete(self) -> bool:
        """Whether no limit ended the run."""
        return self.stopped is None

    @property
    def is_measured(self) -> bool:
        """Whether attention was measured."""
        return self.tiling.is_measured

    @property
    def measures(self) -> list[str]:
        """The parts that were measured: the label, and the attention unless it was not asked for."""
        return ["label", "attention"] if self.is_measured else ["label"]

    @property
    def region_count(self) -> int:
        """The number of regions found one by one."""
        return self.tiling.region_count

    @cached_property
    def regions(self) -> Sequence[Any]:
        """The activation regions, one by one, with vertices, pattern, affine logits and labels."""
        return self.tiling.regions(self.answer)

    @cached_property
    def skips_other_deltas(self) -> bool:
        """Whether the run ended before shares at other δ were computed: they are optional."""
        return not self.tiling.knows_other_deltas and is_over(self.budget, OPTIONAL)

    @property
    def kept_shares(self) -> dict[str, tuple[float, float]]:
        """The share of AR at some thresholds, as bounds: 0 and 1 if skipped; 10, 25, 50 and 100 % for distances."""
        marks, found = self.question.marks, None if self.skips_other_deltas else self.tiling.kept_shares
        if found is None:
            return dict.fromkeys(marks, (0.0, 1.0))
        own_limit = self.question.limit(self.threshold)
        is_certain = self.is_measured and self.question.original_doubt == 0.0
        return sharpened(found, marks, own_limit, self.areas[Label.AR]) if is_certain else found

    @property
    def enough_delta(self) -> float | None:
        """The smallest δ known to make the whole domain AR, kinks aside, rounded up; None if unknown."""
        return None if self.skips_other_deltas else self.tiling.enough_delta

    @property
    def zero_share(self) -> tuple[float, float] | None:
        """Bounds of the share of the domain whose maps are zero everywhere; None for distances, and if not known."""
        return self.answer.zero_share if self.is_measured else None

    @property
    def sliver_share(self) -> float | None:
        """A bound of the share of the domain on kinks, where the attention is undecided; None if unknown."""
        return self.answer.sliver_share

    @property
    def tie_share(self) -> tuple[float, float] | None:
        """Bounds of the share of the domain whose attention depends on the rule that the first of equal entries wins.

        None for networks without maxima over windows, and if attention was not measured. 0 and 1 if nothing is known.
        """
        return self.tiling.ties_within(self.budget)

    @cached_property
    def findings(self) -> "Findings":
        """The witnesses, and notes about those that are missing or that onnxruntime does not show.

        InternalError if proved bounds refute the result at a theta.
        """
        from .witness import find_witnesses  # noqa: PLC0415 (a witness holds points of a result)

        if self.threshold != self.question.threshold:  # the run compared samples for its own δ
            from .sample_check import find_doubts  # noqa: PLC0415 (samples a result)

            find_doubts(self)
        return find_witnesses(self)

    @property
    def witnesses(self) -> tuple["Witness", ...]:
        """One replayed witness for each kind of violation."""
        return self.findings.witnesses

    @property
    def stated(self) -> Stated:
        """The threshold of this result for sentences."""
        return self.question.stated(self.threshold)

    def judge(self, requirement: str) -> Outcome:
        """Whether shares of the domain are proved, such as "CR&AR>=0.9", or "robust": "met", "not met", "undecided"."""
        return Requirement.parse(requirement, "requirement").judge(self.areas, self.verdict)

    def with_delta(self, delta: str | float) -> "Result":
        """The same proofs for another δ: absolute (3.0) or relative ("25%"). A search answers only its own."""
        return self.with_options({"delta": delta})

    def with_options(self, thresholds: GivenThresholds) -> "Result":
        """The same proofs for the threshold given for its property; itself if none is given.

        OptionError for a threshold of another property.
        """
        found = own_threshold(self.question.attention.measure, thresholds)
        return self if found is None else self.with_threshold(found)

    def with_threshold(self, threshold: str | float) -> "Result":
        """The same proofs for another threshold of its property, written as for the option (δ, τ, γ, k:share)."""
        before = self.question.attention.measure
        if before.option is None:
            raise OptionError(f"attention {before.name} has no threshold; leave {threshold!r} out")
        if not self.tiling.answers_any_delta:
            option, own = before.option, before.threshold_text(self.threshold)
            raise OptionError(
                f"a {self.tiling.kind} ({self.method}) answers only {before.symbol} = {own}; leave --{option} out, or "
                f"run verify with another --{option} or with --method map"
            )
        measure, found = before.with_threshold(threshold)
        if measure != before:
            raise OptionError(
                f"{before.option} {threshold!r} needs other numbers than this result stores, which are for "
                f"{before.threshold_text(self.threshold)}; run verify again"
            )
        return replace(self, threshold=found)

    def region_at(self, theta: ArrayLike) -> int | None:
        """The region that contains theta (d,), or None."""
        return self.tiling.region_at(theta)

    def at(self, theta: ArrayLike) -> Point:
        """Everything about one theta (d,) of the domain, from the plain definitions (a forward and a backward pass).

        If the value of a neuron is only rounding, its activity is that of theta's region; at the unperturbed image,
        that of the expected maps.
        """
        domain = self.question.perturbed.domain
        where = np.asarray(theta, dtype=np.float64)
        if not domain.contains(where):
            low, high = domain.low.tolist(), domain.high.tolist()
            raise PerturbationError(f"theta {where.tolist()} is outside the domain from {low} to {high}")
        region = self.region_at(where)
        if where.any():
            bits = pattern_at_theta(self.question, where, None if region is None else self.tiling.pattern(region))
        else:  # entries that are equal there may differ everywhere around it
            bits = self.question.compound.original_pattern
        return view_point(self.question, where, bits, region=region)

    def boundary(self, property: str | Property | None = None) -> Boundary:
        """The outermost boundary of a property ("cr", "ar", "both"; by default that of the question) at this δ.

        The domain must contain zero, and a map must be complete. Undecided parts count as not kept.
        """
        return self.tiling.boundary(self.answer, Property.parse(property or self.question.property))

    def summary(self) -> dict[str, Any]:
        """The answer as plain data, as `--json` prints and `result.json` stores it, without timings."""
        return self.described.plain()

    @cached_property
    def described(self) -> "Summary":
        """The answer as a typed summary."""
        from .summary import summarise  # noqa: PLC0415 (a summary describes a result)

        with self.phase("summary"):
            return summarise(self)

    def save(self, directory: str | Path, *, force: bool = False) -> Path:
        """Store the result in a directory, atomically; refuses an existing one without `force`."""
        from .store import save  # noqa: PLC0415 (stores results)

        with self.phase("store"):
            return save(self, directory, force=force)

    @overload
    def plot(self, path: str | Path, *, formats: Sequence[str] = ("png",)) -> list[Path]: ...

    @overload
    def plot(self, *, ax: "Axes", by: str | None = None) -> "Axes": ...

    @overload
    def plot(self) -> "Figure": ...

    def plot(
        self,
        path: str | Path | None = None,
        *,
        formats: Sequence[str] = ("png",),
        ax: "Axes | None" = None,
        by: str | None = None,
    ) -> "list[Path] | Axes | Figure":
        """Draw the map or the visited regions.

        * path: writes PATH.png, or other formats ("svg", "pdf"), and returns the files (no files for a search with
          four parameters).
        * ax: draws one view into these axes of matplotlib and returns them: `by` is "cr" (the label), "ar" (the
          attention) or "both"; by default the property of the question. With three parameters, draws the section where
          the third is zero.
        * neither: returns the whole figure.
        """
        with self.phase("pictures"):
            from ..report import figures  # noqa: PLC0415 (matplotlib is slow to import)

            return figures.plot(self, path, formats=formats, ax=ax, by=by)

    def report(self, path: str | Path, *, force: bool = False, weights: bool = True, redact: bool = False) -> Path:
        """Write the report: one self-contained HTML file; refuses an existing report without `force`.

        The page of a small network holds its weights, unless `weights` is false; it then shows stored thetas only. With
        `redact` it names no files, users or machines.
        """
        from ..report.page.html import write_report  # noqa: PLC0415 (matplotlib is slow to import)

        return write_report(self, path, force=force, weights=weights, redact=redact)

    def show_map(self, *, height: int = 900) -> "Cell":
        """The interactive map of the report, for a cell of a notebook that is `height` pixels high."""
        from ..report.page.html import map_cell  # noqa: PLC0415 (matplotlib is slow to import)

        return map_cell(self, height)

    def to_arrow(self, what: str = "regions") -> Any:
        """All regions, or their "pieces", as a `pyarrow.Table` with the columns of an export; needs pyarrow."""
        from .frames import arrow_table  # noqa: PLC0415 (rows of results)

        return arrow_table(self, what)

    def to_pandas(self, what: str = "regions") -> Any:
        """All regions, or their "pieces", as a `pandas.DataFrame` with the columns of an export; needs pandas."""
        from .frames import pandas_frame  # noqa: PLC0415 (rows of results)

        return pandas_frame(self, what)

    def to_geopandas(self, what: str = "regions") -> Any:
        """All regions, or their "pieces", as a `geopandas.GeoDataFrame`, for one or two parameters; needs geopandas."""
        from .frames import geo_frame  # noqa: PLC0415 (rows of results)

        return geo_frame(self, what)
