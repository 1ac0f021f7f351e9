"""The public functions: verify, search, load, compare, draw, export. They print nothing."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from .attention.masks import MaskLike
from .budget import Budget
from .compare.comparison import Comparison, compare_results
from .engines import AUTO, PlainMethod, RunPlan, load
from .engines.contract import Goal, Progress, RunOptions, RunWords, Until
from .errors import OptionError
from .presets.answering import PresetAnswer, PresetResult, image_shape, refuse_options, run_preset
from .presets.lists import find_preset
from .question import ImageLike, ModelLike, PerturbationsLike, Question, make_question
from .results.export import check_what, make_table, write_table
from .results.result import Result

Drawn = str | Path | Result
"""A result, or the directory that holds it."""

SEARCHES = ("bfs", "gbs", "boundary")
LineLike = str | Sequence[float] | np.ndarray

__all__ = ["compare", "draw", "export", "load", "search", "verify", "verify_preset"]


class QuestionOptions(TypedDict, total=False):
    """The options of a question, for `verify` and `search`."""

    property: str
    explain: str
    attention: str
    delta: str | float | None
    tau: str | float | None
    gamma: str | float | None
    top: str | None
    mask: MaskLike | None
    filter: str
    dist: str | None
    classes: str | Sequence[int] | None
    mean: float | Sequence[float] | None
    std: float | Sequence[float] | None
    scale: float
    output: str | None
    names: Sequence[str] | None
    fit: str | None
    grey: bool
    rgb: bool


class VerifyOptions(QuestionOptions, RunWords, total=False):
    """All options of `verify`."""

    method: str
    budget: Budget | None
    progress: Callable[[float, int], None] | None


@overload
def verify(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: Literal["map"],
    threads: int | None = None,
    budget: Budget | None = None,
    progress: Callable[[float, int], None] | None = None,
    **question: Unpack[QuestionOptions],
) -> Result: ...


@overload
def verify(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: Literal["refine"],
    until: Until | None = None,
    goal: Goal | None = None,
    resume: str | Path | None = None,
    threads: int | None = None,
    budget: Budget | None = None,
    progress: Callable[[float, int], None] | None = None,
    **question: Unpack[QuestionOptions],
) -> Result: ...


@overload
def verify(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: PlainMethod,
    budget: Budget | None = None,
    progress: Callable[[float, int], None] | None = None,
    **question: Unpack[QuestionOptions],
) -> Result: ...


@overload
def verify(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: Literal["gbs"],
    w_delta: float | None = None,
    line: LineLike | None = None,
    budget: Budget | None = None,
    progress: Callable[[float, int], None] | None = None,
    **question: Unpack[QuestionOptions],
) -> Result: ...


@overload
def verify(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: Literal["boundary"],
    line: LineLike | None = None,
    budget: Budget | None = None,
    progress: Callable[[float, int], None] | None = None,
    **question: Unpack[QuestionOptions],
) -> Result: ...


@overload
def verify(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: Literal["auto"] = "auto",
    until: Until | None = None,
    goal: Goal | None = None,
    resume: str | Path | None = None,
    threads: int | None = None,
    budget: Budget | None = None,
    progress: Callable[[float, int], None] | None = None,
    **question: Unpack[QuestionOptions],
) -> Result: ...


def verify(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: str = AUTO,
    until: Until | None = None,
    goal: Goal | None = None,
    resume: str | Path | None = None,
    w_delta: float | None = None,
    line: LineLike | None = None,
    threads: int | None = None,
    budget: Budget | None = None,
    progress: Callable[[float, int], None] | None = None,
    property: str = "both",
    explain: str = "gradient",
    attention: str = "distance",
    delta: str | float | None = None,
    tau: str | float | None = None,
    gamma: str | float | None = None,
    top: str | None = None,
    mask: MaskLike | None = None,
    filter: str = "identity",
    dist: str | None = None,
    classes: str | Sequence[int] | None = None,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    scale: float = 1.0,
    output: str | None = None,
    names: Sequence[str] | None = None,
    fit: str | None = None,
    grey: bool = False,
    rgb: bool = False,
) -> Result:
    """Prove where the label and the attention of an image are kept under one or more perturbations at once.

    * model: an .onnx file, the name of a bundled network ("M-FNN-100"), a `torch.nn.Module` in eval mode, or a `Model`.
    * image: a PNG, JPEG or NPY file, "mnist:69990", or an array or `torch.Tensor` (C, H, W) or (H, W), uint8 or float
      with pixels in [0,1].
    * perturbations: objects, or specs such as "brightness:0..0.1".
    * property: "cr", "ar" or "both".
    * explain: the explanation method: "gradient"; "input-x-gradient", the gradient times the image;
      "smoothgrad:n=8,sigma=0.1,seed=0", the mean gradient over n copies of the image with noise of standard deviation
      sigma; "integrated:steps=8,baseline=0", integrated gradients by midpoints; "gradcam:layer=NAME", Grad-CAM;
      "occlusion:window=4,stride=4,baseline=0", the drop of a logit when a window is blanked. These are the defaults of
      the settings. Every engine proves the gradient and SmoothGrad, "refine" all methods, and "map" most properties
      of the two methods that multiply the gradient by the image.
    * attention: when attention counts as kept. "distance": the maps stay close to the expected ones; "object": their
      mass stays on the object; "pointing": their largest value lies on the object; "alike": they point the same way as
      the expected ones; "topk": they keep their strongest pixels.
    * delta (distance): an absolute threshold (3.0), or a percentage of the size of the original maps ("25%", the
      default).
    * tau (object): the smallest share of the mass that must lie on the mask (0.5), or a percentage of that share for
      the unperturbed image ("90%", the default).
    * gamma (alike): the smallest cosine allowed between actual and expected maps, 0.9 by default.
    * top (topk): "50:0.8", the default: at least 80 % of the 50 strongest pixels stay among the 50 strongest.
    * mask (object and pointing): a grey PNG, "auto:bright=0.2,grow=1" (pixels above 0.2 in any channel, grown by one
      pixel), or an array (H, W) of weights from 0 to 1. The mask moves with the image.
    * filter: "identity", "abs", "mean" or "abs+mean".
    * dist (distance): "l2", the default, or "l1".
    * classes: "all", "predicted" or numbers; by default "predicted" for object and pointing, "all" otherwise.
    * mean, std, scale: the preprocessing that the model file or module expects.
    * output: the name of the output with the logits, for a model with several.
    * names: words for the classes.
    * fit: how to fit an image of another size to the model's input, with Pillow: "resize" stretches it, "crop" scales
      it to cover the input and cuts out its centre, "pad" scales it to lie within the input and pads it with black. A
      size may follow, as in "resize:28x28"; a torch module has no input size to read. By default, such an image is
      refused.
    * grey, rgb: convert a colour image to grey, or give a grey image three equal channels.
    * method: "map": all regions, up to three perturbations, exact up to the tolerances that the result reports.
      "refine": boxes decided by bounds, or by their regions if bounds do not suffice; for large networks and four or
      more perturbations. "bfs", "gbs", "boundary": see `search`. "auto": a map if it is expected to be small, else
      "refine".
    * until (refine): the share that may stay undecided (0.001), or "exact".
    * goal (refine): "verdict" also ends the run at the first violation.
    * resume (refine): the directory of an earlier refinement to continue.
    * w_delta, line: see `search`.
    * threads (map and refine): by default one for each processor.
    * budget: limits; a run that reaches one gives a partial result.
    * progress: called with the finished share of the domain (0 for a search) and the number of regions.

    >>> result = verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], delta=3.0)
    >>> result.verdict.value, result.label, result.areas["CR"]
    ('not robust', 7, (1.0, 1.0))
    >>> low, high = result.areas["AR"]
    >>> 0.0 < low <= high < 1.0
    True
    """
    options = RunOptions(until=until, goal=goal, resume=resume, w_delta=w_delta, line=line, threads=threads)
    plan, budget = RunPlan.check(method, options, property=property), budget or Budget()
    with budget.clock.phase("read"):
        question = make_question(
            model, image, perturbations, property=property, explain=explain, attention=attention, delta=delta,
            tau=tau, gamma=gamma, top=top, mask=mask, filter=filter, dist=dist, classes=classes, mean=mean,
            std=std, scale=scale, output=output, names=names, fit=fit, grey=grey, rgb=rgb,
        )  # fmt: skip

    def advance(done: Progress) -> None:
        if progress is not None:
            progress(done.share or 0.0, done.regions)

    return plan.run(question, budget, advance)


def search(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    method: Literal["bfs", "gbs", "boundary"] = "gbs",
    w_delta: float | None = None,
    line: LineLike | None = None,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
    property: str = "both",
    explain: str = "gradient",
    attention: str = "distance",
    delta: str | float | None = None,
    tau: str | float | None = None,
    gamma: str | float | None = None,
    top: str | None = None,
    mask: MaskLike | None = None,
    filter: str = "identity",
    dist: str | None = None,
    classes: str | Sequence[int] | None = None,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    scale: float = 1.0,
    output: str | None = None,
    names: Sequence[str] | None = None,
    fit: str | None = None,
    grey: bool = False,
    rgb: bool = False,
) -> Result:
    """Verify by a search, which visits regions one by one, for up to four perturbations at once.

    * method: "bfs" (all regions), "gbs" (regions on a line from zero and near the outermost boundary, as in the paper)
      or "boundary" (regions along the boundary only).
    * w_delta (gbs): how much the inconsistency of a region near the boundary may differ from δ, 0.2 as in the paper.
    * line (gbs and boundary): "corner", or the theta where the line from zero ends.

    The other arguments are those of `verify`. `status` describes the visited regions, `verdict` the whole domain. The
    verdict is robust only if the search visited the whole domain and a refinement, which covers every theta, confirms
    it.

    >>> result = search("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], method="gbs", property="ar", delta=3.0)
    >>> result.verdict.value, result.status.value, result.sets["CR"], 0.0 < result.coverage < 1.0
    ('not robust', 'NotRobust', None, True)
    """

    plan, budget = RunPlan.check(method, RunOptions(w_delta=w_delta, line=line), property=property), budget or Budget()
    with budget.clock.phase("read"):
        question = make_question(
            model, image, perturbations, property=property, explain=explain, attention=attention, delta=delta,
            tau=tau, gamma=gamma, top=top, mask=mask, filter=filter, dist=dist, classes=classes, mean=mean,
            std=std, scale=scale, output=output, names=names, fit=fit, grey=grey, rgb=rgb,
        )  # fmt: skip
    if plan.method not in SEARCHES:
        raise OptionError(f"method {method!r} is not a search; expected {', '.join(SEARCHES)}, or call verify")

    def advance(done: Progress) -> None:
        if progress is not None:
            progress(done.regions)

    return plan.run(question, budget, advance)


def verify_preset(
    model: ModelLike,
    image: ImageLike,
    preset: str,
    *,
    method: Literal["auto", "map", "refine"] = "auto",
    until: Until | None = None,
    goal: Goal | None = None,
    threads: int | None = None,
    budget: Budget | None = None,
    progress: Callable[[PresetAnswer], None] | None = None,
    **question: Unpack[QuestionOptions],
) -> PresetResult:
    """Answer the questions of a preset one after another: "light", "weather", "camera" or "dirt"; see the guide.

    * budget: for all questions together; each may use an equal part of the remaining time.
    * progress: called with every answer.

    The other arguments are those of `verify`. A question that does not apply (saturation of a grey image) is skipped
    with a reason. `verdict` is "not robust" if any answer is, else "undecided" if any is, else "robust".
    `results` holds the results by name, `comparison` compares them, `save` stores all of them.

    >>> found = verify_preset("M-FNN-100", "mnist:69990", "dirt", method="refine", goal="verdict", property="cr")
    >>> found.verdict.value, len(found.answers)
    ('not robust', 6)
    """
    chosen = find_preset(preset)
    refuse_options({}, method)
    options = RunOptions(until=until, goal=goal, threads=threads)
    plan = RunPlan.check(method, options, property=question.get("property", "both"))

    def ask(specs: Sequence[str]) -> Question:
        return make_question(model, image, specs, **question)

    def run(asked: Question, own: Budget) -> Result:
        return plan.run(asked, own)

    return run_preset(chosen, image_shape(ask), ask, run, budget or Budget(), progress)


def draw(
    kind: str,
    results: Drawn | Sequence[Drawn],
    path: str | Path,
    *,
    formats: Sequence[str] = ("png",),
    force: bool = False,
    delta: str | float | None = None,
    tau: str | float | None = None,
    gamma: str | float | None = None,
    top: str | None = None,
    at: Sequence[ArrayLike] = (),
    along: str | int | None = None,
    steps: int | None = None,
    by: str | None = None,
) -> list[Path]:
    """Draw a figure from results, or from the directories that hold them; returns the files written.

    * kind: "map", "path", "strip", "sections" (of refinements of more than three parameters), "boundary", "curve",
      "columns" (of several results), "tiling" or "visited" (of searches).
    * path: the name of the files without their endings.
    * formats: "png", "svg", "pdf".
    * force: replace existing files.
    * delta, tau, gamma, top: another threshold for the property of the question, for maps and refinements.
    * at: thetas (d,). path goes through them, boundary shows them, columns has one column for each. strip takes a
      single theta, and fixes the other parameters there.
    * along: the parameter of a strip, given by its number, from 1, or the beginning of its name.
    * steps: the number of images in path and strip.
    * by: the colours of a tiling, "cr", "ar", "both" or "pattern".
    """
    from .report import figures  # noqa: PLC0415 (matplotlib is slow to import)

    figures.check_request(kind, path, formats=formats, force=force, at=at, along=along, steps=steps, by=by)
    given = [results] if isinstance(results, Drawn) else list(results)
    loaded = [load(item) if isinstance(item, str | Path) else item for item in given]
    return figures.draw(
        kind, loaded, path, formats=formats, force=force, delta=delta, tau=tau, gamma=gamma, top=top, at=at,
        along=along, steps=steps, by=by,
    )  # fmt: skip


def compare(
    results: Sequence[str | Path | Result],
    *,
    delta: str | float | None = None,
    tau: str | float | None = None,
    gamma: str | float | None = None,
    top: str | None = None,
) -> Comparison:
    """Compare two or more maps and refinements, given as results or as directories that hold them.

    Each result keeps its own threshold, unless `delta`, `tau`, `gamma` or `top` is given for all. The `Comparison`
    holds the differences between the questions, the shares, rankings, and difference maps, which compare each result
    with the first and need the same domain.

    >>> sides = [verify("M-FNN-100", "mnist:69990", [spec]) for spec in ("brightness:0..0.1", "darkness:0..0.1")]
    >>> found = compare(sides)
    >>> found.names, found.differs, found.differences
    (('brightness:0..0.1', 'darkness:0..0.1'), ('perturbation',), ())
    """
    loaded = [load(one) if isinstance(one, str | Path) else one for one in results]
    return compare_results(loaded, {"delta": delta, "tau": tau, "gamma": gamma, "top": top})


def export(
    result: str | Path | Result,
    path: str | Path,
    *,
    format: str = "csv",
    what: str = "regions",
    delta: str | float | None = None,
    tau: str | float | None = None,
    gamma: str | float | None = None,
    top: str | None = None,
    force: bool = False,
) -> int:
    """Write the regions of a result, or of a directory that holds one, to a file; returns the number of rows.

    * format: "csv", "geojson" (one or two parameters) or "parquet" (needs pyarrow).
    * what: "regions" (a row for each region and box), or "pieces" (of maps and refinements: parts with a single label).
    * delta, tau, gamma, top: another threshold for the property of the question, except for searches.

    docs/export.md lists the columns.
    """
    check_what(what)
    chosen = load(result) if isinstance(result, str | Path) else result
    table = make_table(chosen.with_options({"delta": delta, "tau": tau, "gamma": gamma, "top": top}), what)
    write_table(table, path, format, force=force)
    return len(table)
