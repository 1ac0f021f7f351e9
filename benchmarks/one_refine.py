"""Refines one problem in its own process and prints the outcome as one line of JSON; `refine.py` starts it.

    python benchmarks/one_refine.py cnn-m M-CNN-M BP mnist:69990

Measured: seconds, decided shares, boxes, regions, and the peak memory over all questions of the problem. Checked:
thetas sampled in every result, and the other checks of the part (`refine_check.py`).
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

# Read when numpy is imported: boxes are shared among threads, products stay on one.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

from paper_problems import DELTA, Asked, specs
from refine_check import map_disagreements, sampled, window_disagreements
from steadygaze import zoo
from steadygaze.budget import Budget, Limits
from steadygaze.engines import run
from steadygaze.errors import SteadygazeError
from steadygaze.images import read_image
from steadygaze.network.model import Model
from steadygaze.question import Question as Problem
from steadygaze.question import make_question
from steadygaze.results.result import Result
from timing import CHECKOUT, clock, peak_mib
from vgg import NAME as VGG
from vgg import as_colour

WARM = ("M-CNN-S", "mnist:69990")
WARM_DOMAINS = (("brightness", "patch:x=12,y=12,w=4,h=4"), ("brightness:0..0.02", "translate:dy=1:0..0.02"))
"""Problems that load all compiled loops before anything is measured: by bounds, and exactly."""

REPETITIONS = 3
"""Alternating runs of map and refinement, if both are compared; more than one only below this many seconds: """
QUICK = 2.0

PATCH = "patch:x=12,y=12,w=4,h=4"
SMALL_DOMAINS = {
    "cifar": ("brightness:0..0.1", f"{PATCH}:0..0.1"),
    "vgg": ("brightness:0..0.05", f"{PATCH}:0..0.05"),
}


@dataclass(frozen=True)
class Question:
    """A question about a problem: the property, the threshold, and the share at which to stop."""

    wanted: str
    delta: str
    until: float | str

    def __str__(self) -> str:
        name = self.wanted if self.wanted == "cr" else f"{self.wanted} {self.delta}"
        return f"{name} {self.until}"


QUESTIONS = {
    "cnn-m": (Question("cr", "3.0", 0.001), Question("ar", "3.0", 0.001), Question("ar", "50%", 0.001)),
    "cnn-m-exact": (Question("cr", "3.0", "exact"),),
    "map": (Question("both", str(DELTA), "exact"),),
    "cifar": (Question("cr", "3.0", 0.01), Question("ar", "50%", 0.01)),
    "vgg": (Question("cr", "3.0", 0.001),),
}


class OneProblem:
    """The questions of one problem: one row each."""

    def __init__(self, part: str, asked: Asked, options: argparse.Namespace) -> None:
        self.part, self.asked, self.options = part, asked, options
        self.model: Model | None = None

    def ask(self, question: Question) -> Problem:
        """A fresh question without cached values; the model is read once."""
        path: str | Path | Model = self.asked.model
        image: Any = self.asked.image
        if self.part == "cifar":
            path = self.options.shared / "models" / self.asked.model
            image = _cifar(self.options.shared, int(image.partition(":")[2]))
        elif self.part == "vgg":
            path = self.options.vgg / VGG
            image = as_colour(read_image(zoo.image_path(image)).pixels)[0]
        domain = SMALL_DOMAINS.get(self.part) or specs(self.asked.domain)
        problem = make_question(self.model or path, image, domain, property=question.wanted, delta=question.delta)
        self.model = problem.model
        _ = problem.agreement  # checking the model file is no part of what is measured
        return problem

    def measure(self, question: Question) -> dict[str, Any]:
        """Run and time one question; errors are in `wrong`."""
        row: dict[str, Any] = {"question": str(question), "wrong": []}
        try:
            seconds, result = self._refined(question)
            row |= {"seconds": seconds, "peak_mib": peak_mib()} | facts(result)
            found = sampled(result, self.options.samples)
            row["sampled"] = {"inside": found.inside, "beside": found.beside, "attention": found.inconsistencies}
            row["wrong"] += found.contradictions
            if self.part == "cnn-m-exact":
                row["wrong"] += window_disagreements(result, self.options.windows)
            if self.part == "map":
                row |= self._compared(question, seconds, result, row["wrong"])
        except SteadygazeError as error:
            row["wrong"].append(str(error))
        return row

    def _refined(self, question: Question) -> tuple[float, Result]:
        problem = self.ask(question)
        limits = Limits(timeout_seconds=self.options.timeout)
        return clock(
            lambda: run(problem, "refine", until=question.until, budget=Budget(limits), threads=self.options.threads)
        )

    def _compared(self, question: Question, first: float, result: Result, wrong: list[str]) -> dict[str, Any]:
        """Seconds of refinement and map in turn, and their disagreements."""
        refined, mapped = [first], []
        for number in range(REPETITIONS):
            problem = self.ask(question)
            seconds, whole = clock(lambda problem=problem: run(problem, "map", threads=self.options.threads))
            mapped.append(seconds)
            if number == 0:
                wrong += map_disagreements(result, whole)
            if refined[0] + mapped[0] > QUICK or number == REPETITIONS - 1:
                break
            refined.append(self._refined(question)[0])
        ratio = median(mapped) / median(refined)
        return {"seconds": median(refined), "map_seconds": median(mapped), "map_per_refine": ratio,
                "map_regions": len(whole.tiling.answers.regions)}  # fmt: skip


def facts(result: Result) -> dict[str, Any]:
    """The row of a result."""
    undecided = result.areas["undecided"][1]
    guarantee = result.answer.guarantee_shares
    return {
        "decided": 1.0 - undecided,
        "bounded": guarantee["rounding-sound"],
        "boxes": len(result.tiling.boxes),
        "regions": 0 if result.tiling.answers is None else len(result.tiling.answers.regions),
        "verdict": result.verdict.value,
        "relaxation": result.tiling.relaxation,
        "stopped": result.stopped,
        "areas": result.areas,
    }


def _cifar(shared: Path, index: int) -> np.ndarray:
    """An image (3, 32, 32) with pixels in [0,1]."""
    with np.load(shared / "data" / "cifar10" / "test_first100.npz") as data:
        return data["images"][index].transpose(2, 0, 1) / 255.0


def warm(threads: int) -> None:
    """Load the compiled loops."""
    for domain, until in zip(WARM_DOMAINS, (0.5, "exact"), strict=True):
        problem = make_question(*WARM, domain, property="both", delta=DELTA)
        run(problem, "refine", until=until, budget=Budget(Limits(timeout_seconds=10.0)), threads=threads)
    run(problem, "map", threads=threads)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=QUESTIONS)
    parser.add_argument("model")
    parser.add_argument("domain")
    parser.add_argument("image")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--samples", type=int, default=10_000, help="thetas checked in every result")
    parser.add_argument("--windows", type=int, default=6, help="sub-boxes compared with the exact engine")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each question")
    parser.add_argument("--shared", type=Path, default=CHECKOUT.parent / "shared")
    parser.add_argument("--vgg", type=Path, help=f"the folder of {VGG}")
    options = parser.parse_args(arguments)
    warm(options.threads)
    problem = OneProblem(options.part, Asked(options.model, options.domain, options.image), options)
    rows = [problem.measure(question) for question in QUESTIONS[options.part]]
    print(json.dumps({"part": options.part, "asked": str(problem.asked), "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
