"""verify(model, image, perturbations, …) -> Result or RefineResult, search(…) -> SearchResult; load; draw.

Reads, checks, and answers by a map, a refinement or a search; draws figures of results. Prints nothing.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from . import zoo
from .attention.filters import Filter
from .attention.inconsistency import measure, original_maps
from .attention.map_errors import MapErrors
from .attention.options import AttentionOptions, Distance
from .budget import Budget
from .compare.comparison import Comparison, compare_results
from .engines.refine.planning import choose_method
from .engines.refine.refine_files import load_refine, load_to_resume, refine_table
from .engines.refine.refine_result import Goal, RefineResult, Until
from .engines.refine.run_refinement import RefineProgress, refine
from .engines.search import SearchResult
from .engines.search import search as search_problem
from .engines.search.search_files import load_search, search_table
from .errors import ModelError, OptionError
from .images import fit_image, image_from_array, read_image
from .labels import Property
from .network.model import Model, read_model
from .perturbation import Perturbation, compose, parse_spec
from .properties.settling import label_pieces
from .question import Question, Threshold
from .regions.check import check_map
from .regions.subdivide import Progress, subdivide
from .results.answer import Answers
from .results.export import check_what, map_table, write_table
from .results.result import DomainResult, Result
from .results.store import is_refinement, is_search, read_summary
from .results.store import load as load_map

Drawn = str | Path | DomainResult | SearchResult
"""What figures are drawn from: results, or the directories that hold them."""

ModelLike = str | Path | Model
ImageLike = str | Path | np.ndarray
PerturbationsLike = Sequence[Perturbation | str] | Perturbation | str

METHODS = ("auto", "map", "refine")
UNTIL = 0.001
"""The share that a refinement may leave undecided unless told otherwise."""

MOST_CONFIRMING = 200_000
"""Boxes that may be bounded to confirm that a search covers the domain."""


def make_problem(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    property: str = "both",
    delta: str | float = "25%",
    filter: str = "identity",
    dist: str = "l2",
    classes: str | Sequence[int] = "all",
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    scale: float = 1.0,
    names: Sequence[str] | None = None,
) -> Question:
    """Read and check everything that a question consists of; see `verify` for the arguments."""
    pixels, image_name, notes = _image(image)
    if not isinstance(model, Model):
        path = Path(model) if _is_file_name(str(model)) else zoo.model_path(str(model))
        model = _read_fitting(path, pixels.shape, mean=mean, std=std, scale=scale)
    elif mean is not None or std is not None or scale != 1.0:
        raise OptionError("mean, std and scale belong to reading a model; give them to read_model")
    pixels = fit_image(pixels, model.input_shape, image_name)
    chosen = [perturbations] if isinstance(perturbations, Perturbation | str) else list(perturbations)
    perturbed = compose([parse_spec(item) if isinstance(item, str) else item for item in chosen], pixels)
    wanted = Property.parse(property)
    return Question(
        model=model,
        perturbed=perturbed,
        attention=AttentionOptions(Filter.parse(filter), Distance.parse(dist), _classes(classes, model, perturbed.x0)),
        property=wanted,
        delta=Threshold.parse(delta),
        names=_class_names(names, model.classes),
        image_name=image_name,
        model_name=model.name,
        image_notes=notes,
    )


class QuestionOptions(TypedDict, total=False):
    """The options of a question, as `verify` and `search` take them."""

    property: str
    delta: str | float
    filter: str
    dist: str
    classes: str | Sequence[int]
    mean: float | Sequence[float] | None
    std: float | Sequence[float] | None
    scale: float
    names: Sequence[str] | None


@overload
def verify(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: Literal["map"],
    budget: Budget | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[QuestionOptions],
) -> Result: ...


@overload
def verify(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: Literal["refine"],
    until: Until = UNTIL,
    goal: Goal = "map",
    resume: str | Path | None = None,
    budget: Budget | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[QuestionOptions],
) -> RefineResult: ...


@overload
def verify(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: str = "auto",
    until: Until = UNTIL,
    goal: Goal = "map",
    resume: str | Path | None = None,
    budget: Budget | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[QuestionOptions],
) -> Result | RefineResult: ...


def verify(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: str = "auto",
    until: Until = UNTIL,
    goal: Goal = "map",
    resume: str | Path | None = None,
    budget: Budget | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    property: str = "both",
    delta: str | float = "25%",
    filter: str = "identity",
    dist: str = "l2",
    classes: str | Sequence[int] = "all",
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    scale: float = 1.0,
    names: Sequence[str] | None = None,
) -> Result | RefineResult:
    """Prove where the label and the attention of an image are kept under one to four perturbations at once.

    model: an .onnx file, the name of a bundled network ("M-FNN-100"), or a `Model`. image: a PNG, JPEG or NPY file,
    "mnist:69990", or an array (C, H, W) or (H, W) with pixels in [0,1]. perturbations: objects or specs.
    property: "cr", "ar" or "both". delta: 3.0, or "25%" of the original maps. filter: "identity", "abs", "mean" or
    "abs+mean". dist: "l1" or "l2". classes: "all", "predicted" or numbers. mean, std and scale are what the model file
    expects of its pixels; names are words for the classes.
    method: "map" (all regions, up to three perturbations: exact up to the tolerances that the result reports), "refine"
    (boxes decided by bounds first, and by their regions where bounds do not suffice; for large networks and four
    perturbations), or "auto": the map while it is expected to be small. A refinement ends when the share that is not
    decided is at most `until`, or nothing is left ("exact"), with goal "verdict" also at the first violation; `resume`
    is the directory of an earlier one to go on from. A budget that ends first makes the result partial. `progress` is
    called with the share of the domain that is done, and the number of regions.

    >>> result = verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], delta=3.0)
    >>> result.verdict.value, result.label, result.areas["CR"]
    ('not robust', 7, (1.0, 1.0))
    >>> low, high = result.areas["AR"]
    >>> 0.0 < low <= high < 1.0
    True
    """
    question = make_problem(
        model, image, perturbations, property=property, delta=delta, filter=filter, dist=dist, classes=classes,
        mean=mean, std=std, scale=scale, names=names,
    )  # fmt: skip
    if method not in METHODS:
        raise OptionError(f"method is {method!r}; expected {', '.join(METHODS)}, or call search for the others")
    is_refined = resume is not None or until != UNTIL or goal != "map"
    if method == "map" and is_refined:
        raise OptionError("until, goal and resume belong to method refine; leave them out, or take method='refine'")
    if method == "auto":
        method = "refine" if is_refined else choose_method(question.compound, budget=budget).method
    if method == "map":
        return solve(question, budget=budget, threads=threads, progress=progress)

    def advance(done: RefineProgress) -> None:
        if progress is not None:
            progress(done.share, done.regions)

    earlier = None if resume is None else load_to_resume(resume, question)
    return refine(question, until=until, goal=goal, budget=budget, threads=threads, progress=advance, resume=earlier)


def load(directory: str | Path, *, model: str | Path | None = None) -> Result | RefineResult | SearchResult:
    """The stored result of any method: it answers as after the run, maps and refinements for any δ.

    The model is read again from its place, or from `model`; its hash must be the same. Raises StoreError.
    """
    content = read_summary(directory)
    if is_search(content):
        return load_search(directory, model=model)
    return (load_refine if is_refinement(content) else load_map)(directory, model=model)


def draw(
    kind: str,
    results: Drawn | Sequence[Drawn],
    path: str | Path,
    *,
    formats: Sequence[str] = ("png",),
    force: bool = False,
    delta: str | float | None = None,
    at: Sequence[ArrayLike] = (),
    along: str | int | None = None,
    steps: int | None = None,
    by: str | None = None,
) -> list[Path]:
    """Draw a figure from results, or from the directories that hold them, into PATH.png and so on; returns the files.

    kind: "map", "path", "strip", "boundary", "columns" (of several results), "tiling" or "visited" (of searches).
    formats: "png", "svg", "pdf". An existing file is refused without `force`. delta: another threshold, for maps and
    refinements. at: thetas (d,): the path goes through them, boundary shows them, columns has one column for each;
    strip takes one, where it holds the other parameters. along: the parameter of a strip, by number from 1 on or by the
    beginning of its name. steps: how many images path and strip show. by: "cr", "ar", "both" or "pattern", the colours
    of a tiling.
    """
    from .report import figures  # noqa: PLC0415 (matplotlib is slow to import)

    figures.check_request(kind, path, formats=formats, force=force, at=at, along=along, steps=steps, by=by)
    given = [results] if isinstance(results, Drawn) else list(results)
    loaded = [load(item) if isinstance(item, str | Path) else item for item in given]
    return figures.draw(
        kind, loaded, path, formats=formats, force=force, delta=delta, at=at, along=along, steps=steps, by=by
    )


def compare(results: Sequence[str | Path | Result | RefineResult], *, delta: str | float | None = None) -> Comparison:
    """Compare two or more maps and refinements, given as results or as directories that hold them.

    Each is asked for its own δ, unless `delta` is given for all. What differs, the shares of each, rankings, and where
    the first keeps what another does not stand in the `Comparison`; difference maps need the same domain.

    >>> sides = [verify("M-FNN-100", "mnist:69990", [spec]) for spec in ("brightness:0..0.1", "darkness:0..0.1")]
    >>> found = compare(sides)
    >>> found.names, found.differs, found.differences
    (('brightness:0..0.1', 'darkness:0..0.1'), ('perturbation',), ())
    """
    return compare_results([load(one) if isinstance(one, str | Path) else one for one in results], delta=delta)


def export(
    result: str | Path | Result | RefineResult | SearchResult,
    path: str | Path,
    *,
    format: str = "csv",
    what: str = "regions",
    delta: str | float | None = None,
    force: bool = False,
) -> int:
    """Write the regions of a result, or of a directory that holds one, to a file; returns the number of rows.

    format: "csv", "geojson" (one and two parameters) or "parquet" (needs pyarrow). what: "regions" (a row for each
    region and box), or "pieces" (of maps and refinements: the parts of them that have one label alone). docs/export.md
    has the columns. Another δ than that of the result can be given, except for searches.
    """
    check_what(what)
    if isinstance(result, str | Path):
        result = load(result)
    if isinstance(result, SearchResult):
        if delta is not None:
            raise OptionError(
                f"a search ({result.method}) answers δ = {result.question.delta} alone; leave "
                "--delta out, or run verify with another --delta or with --method map"
            )
        table = search_table(result, what)
    else:
        chosen = result if delta is None else result.with_delta(delta)
        table = refine_table(chosen, what) if isinstance(chosen, RefineResult) else map_table(chosen, what)
    write_table(table, path, format, force=force)
    return len(table)


def search(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: str = "gbs",
    w_delta: float = 0.2,
    line: str | Sequence[float] | np.ndarray = "corner",
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
    property: str = "both",
    delta: str | float = "25%",
    filter: str = "identity",
    dist: str = "l2",
    classes: str | Sequence[int] = "all",
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    scale: float = 1.0,
    names: Sequence[str] | None = None,
) -> SearchResult:
    """Visit regions of a question one by one, for up to four perturbations at once.

    method: "bfs" (all regions), "gbs" (those on a line from zero and near the outermost boundary, as in the paper) or
    "boundary" (those along the boundary alone). w_delta (gbs): how far from δ a region may be to count as near. line
    (gbs and boundary): "corner", or the theta where the line from zero ends. Model, image, perturbations and the other
    options are as for `verify`. `status` speaks of what was visited; `verdict` of the whole domain, so it is robust
    only when all of it was visited and a refinement, which covers every theta, confirms it.

    >>> result = search("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], method="gbs", property="ar", delta=3.0)
    >>> result.verdict.value, result.status.value, result.sets["CR"], 0.0 < result.visited_share < 1.0
    ('not robust', 'NotRobust', None, True)
    """
    question = make_problem(
        model, image, perturbations, property=property, delta=delta, filter=filter, dist=dist, classes=classes,
        mean=mean, std=std, scale=scale, names=names,
    )  # fmt: skip
    return explore(question, method=method, w_delta=w_delta, line=line, budget=budget, progress=progress)


def explore(
    question: Question,
    *,
    method: str,
    w_delta: float,
    line: str | Sequence[float] | np.ndarray,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> SearchResult:
    """Search a question that was made by `make_problem`, once the model file is known to agree with what was read.

    Robust is confirmed by a refinement, which covers every theta; the search finds regions up to tolerances.
    """
    _ = question.agreement  # a model file that computes something else is refused here
    budget = budget or Budget()
    found = search_problem(question, method=method, w_delta=w_delta, line=line, budget=budget, progress=progress)
    if not found.is_covering:
        return found
    confirmation = _confirm(question, budget)
    return replace(found, confirmation=confirmation.verdict, seconds=found.seconds + confirmation.seconds["total"])


def _confirm(question: Question, budget: Budget) -> RefineResult:
    """Decide a question by a refinement, with the time that is left and a limit of its own for boxes."""
    own = Budget(budget.limits, started=budget.started)

    def advance(done: RefineProgress) -> None:
        if budget.cancelled.is_set() or done.boxes > MOST_CONFIRMING:
            own.cancelled.set()

    return refine(question, until=0.0, budget=own, threads=1, progress=advance)


def solve(
    question: Question, *, budget: Budget | None = None, threads: int | None = None, progress: Progress | None = None
) -> Result:
    """Answer a question that was made by `make_problem`."""
    # Sums of a matrix product depend on the number of threads of BLAS; the products here are small.
    with threadpool_limits(limits=1):
        return _solve(question, budget, threads, progress)


def _solve(question: Question, budget: Budget | None, threads: int | None, progress: Progress | None) -> Result:
    started = time.perf_counter()
    budget = budget or Budget()
    workers = threads if threads is not None else os.cpu_count() or 1
    if workers < 1:
        raise OptionError(f"threads is {workers}; expected a whole number above 0")
    agreement = question.agreement
    compound, label = question.compound, question.label
    original = original_maps(compound, question.attention)
    engine = time.perf_counter()
    regions = subdivide(compound, budget=budget, threads=workers, progress=progress)
    if not np.isfinite(regions.logits).all():
        raise ModelError(f"{question.model_name}: the logits overflow float64 in the domain; scale the weights down")
    curves = measure(compound, regions, question.attention, original, threads=workers)
    pieces = label_pieces(compound, regions, label)
    errors = MapErrors(compound, regions.patterns, curves, question.attention, question.original_doubt)
    size = sum(question.attention.distance.size(part) for part in original)
    answers = Answers(compound, regions, pieces, curves, errors, float(size))
    answers.at(question.delta.value(answers.size))
    checking = time.perf_counter()
    checked = check_map(compound, regions)
    done = time.perf_counter()
    seconds = {"total": done - started, "engine": checking - engine, "check": done - checking}
    return Result(question, answers, question.delta, original, agreement, checked, seconds)


def _read_fitting(path: Path, image_shape: tuple[int, ...], **preprocessing: Any) -> Model:
    """Read a model for images of a shape; where the shape does not fit, `fit_image` says so better afterwards."""
    try:
        return read_model(path, image_shape=image_shape, **preprocessing)
    except (ModelError, OptionError) as error:
        try:
            return read_model(path, **preprocessing)
        except (ModelError, OptionError):
            raise error from None


def _is_file_name(text: str) -> bool:
    return text.endswith(".onnx") or "/" in text or Path(text).exists()


def _image(image: str | Path | np.ndarray) -> tuple[np.ndarray, str, tuple[str, ...]]:
    if isinstance(image, str | Path):
        name = str(image)
        file = read_image(zoo.image_path(name) if zoo.is_reference(name) else name)
        return file.pixels, name if zoo.is_reference(name) else Path(name).name, file.notes
    file = image_from_array(np.asarray(image), "image")
    return file.pixels, "image", file.notes


def _class_names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(str(number) for number in range(count))
    if len(names) != count:
        raise OptionError(f"{len(names)} class names for {count} classes; give one name for each class")
    return tuple(names)


def _classes(classes: str | Sequence[int], model: Model, image: np.ndarray) -> tuple[int, ...] | None:
    """The classes that inconsistency sums over; None for all."""
    if classes == "all":
        return None
    if classes == "predicted":
        return (int(np.argmax(model.graph.logits(image[None])[0])),)
    try:
        numbers = [int(word) for word in (classes.split(",") if isinstance(classes, str) else classes)]
    except ValueError:
        numbers = []
    if not numbers or len(set(numbers)) < len(numbers) or not all(0 <= n < model.classes for n in numbers):
        raise OptionError(
            f"classes {classes!r} do not fit; expected all, predicted, or different numbers from 0 to "
            f"{model.classes - 1} such as 3,8"
        )
    return tuple(sorted(numbers))
