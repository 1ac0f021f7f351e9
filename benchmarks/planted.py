"""Can the verifier be deceived? Planted violations, equivalent and random networks, compared with an exact oracle.

    python benchmarks/planted.py                                        # everything, about twenty minutes
    python benchmarks/planted.py --planted 30 --equivalent 0 --random 0 # thirty planted networks with their twins
    python benchmarks/planted.py --only label-noise-inside-1d-1e-03-560 wild-12 --keep folder  # these, with files

An answer is wrong if it says robust although some theta violates, or not robust although none does; if the interval of
a share excludes the exact share; if a witness does not violate; or if the run fails in any way other than a refusal.
Ends with exit code 1 if any answer is wrong.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# Read when numpy is imported: products on one thread.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

from adversary.equivalent import Pair, make_pair, pairs
from adversary.files import Norm, write_onnx
from adversary.judge import ENGINES, WHOLE, Answer, ask, complaints, contradictions
from adversary.nets import is_ordinary
from adversary.oracle import Oracle, Question
from adversary.planting import Planted, by_name, plan
from adversary.wild import Wild, make_wild, wild_networks
from timing import RESULTS, print_table, write_json

PLANTED, EQUIVALENT, RANDOM = 300, 150, 500
SIZES = ((1e-6, "1e-3..1e-6"), (1e-10, "1e-6..1e-10"), (0.0, "below 1e-10"))
FOUND = 0.95


@dataclass
class Tally:
    """Counts by (set, engine, weights, size), and every wrong answer."""

    counts: dict[tuple[str, str, str, str], Counter] = field(default_factory=dict)
    wrong: list[dict[str, Any]] = field(default_factory=list)
    missed: list[dict[str, Any]] = field(default_factory=list)
    networks: Counter = field(default_factory=Counter)
    seconds: Counter = field(default_factory=Counter)

    def add(self, key: tuple[str, str, str, str], answer: Answer, outcome: str) -> None:
        self.counts.setdefault(key, Counter())[outcome] += 1
        self.seconds[answer.engine] += answer.seconds

    def accuse(self, name: str, engine: str, wanted: str, question: Question, sentences: list[str]) -> None:
        about = {"name": name, "engine": engine, "property": wanted, "delta": question.delta, "specs": question.specs}
        self.wrong.append(about | {"wrong": sentences})

    def join(self, other: "Tally") -> None:
        """Add the counts of another tally."""
        for key, count in other.counts.items():
            self.counts.setdefault(key, Counter()).update(count)
        self.wrong += other.wrong
        self.missed += other.missed
        self.networks.update(other.networks)
        self.seconds.update(other.seconds)

    def share_of(self, outcome: str, keys: Iterable[tuple[str, str, str, str]]) -> tuple[int, int]:
        """The number of answers with an outcome, and of all answers."""
        chosen = [self.counts[key] for key in keys if key in self.counts]
        return sum(count[outcome] for count in chosen), sum(sum(count.values()) for count in chosen)


class Clock:
    """Tells whether the time for the whole run is over."""

    def __init__(self, limit_seconds: float | None) -> None:
        self.end = None if limit_seconds is None else time.monotonic() + limit_seconds

    def is_over(self) -> bool:
        return self.end is not None and time.monotonic() > self.end


def size_class(share: float) -> str:
    return next(name for least, name in SIZES if share >= least)


def outcome_of(answer: Answer, sentences: list[str], *, is_violated: bool) -> str:
    """One word for an answer: wrong, crashed, found, missed, refused, robust or undecided."""
    if sentences:
        return "crashed" if answer.verdict == "crashed" else "wrong"
    if answer.verdict == "refused":
        return "refused"
    if answer.verdict == "not robust":
        return "found"
    return "missed" if is_violated else answer.verdict


def try_planted(one: Planted, engines: Sequence[str], folder: Path, tally: Tally) -> None:
    """Try a network and its twin with every engine."""
    weights, size = "ordinary" if one.is_ordinary else "extraordinary", size_class(one.share)
    name = "tie" if one.kind == "tie" else "planted"  # a tie cannot be found as a violation, only left undecided
    sides = ((name, one.question, one.truth), ("twin", one.twin, one.twin_truth))
    for side, question, truth in sides:
        path = write_question(folder, side, question, one.wanted)
        oracle = Oracle(question)
        for engine in engines:
            answer = ask(path, question, one.wanted, engine)
            sentences = complaints(answer, truth, one.wanted, oracle)
            outcome = outcome_of(answer, sentences, is_violated=side != "twin")
            tally.add((side, engine, weights, size), answer, outcome)
            if outcome in ("missed", "refused") and side == "planted" and engine in WHOLE:
                about = {"share": one.share, "seconds": round(answer.seconds, 1), "message": answer.message}
                tally.missed.append({"name": one.name, "engine": engine, "weights": weights} | about)
            if sentences:
                tally.accuse(f"{side}: {one.name}", engine, one.wanted, question, sentences)
    tally.networks["planted"] += 1


def try_pair(pair: Pair, engines: Sequence[str], folder: Path, tally: Tally) -> None:
    """Compare both networks of a pair with the truth and with each other."""
    weights = "ordinary" if is_ordinary([*pair.first.layers, *pair.second.layers]) else "extraordinary"
    is_violated = bool(pair.truth.is_violated(pair.wanted))
    paths = [
        write_question(folder, "first", pair.first, pair.wanted),
        write_question(folder, "second", pair.second, pair.wanted, pair.norms),
    ]
    for engine in engines:
        answers = []
        for path, question in zip(paths, (pair.first, pair.second), strict=True):
            answer = ask(path, question, pair.wanted, engine)
            sentences = complaints(answer, pair.truth, pair.wanted)
            answers.append(answer)
            tally.add(
                ("equivalent", engine, weights, ""), answer, outcome_of(answer, sentences, is_violated=is_violated)
            )
            if sentences:
                tally.accuse(f"equivalent: {pair.name}", engine, pair.wanted, question, sentences)
        apart = contradictions(*answers)
        if apart:
            tally.accuse(f"equivalent: {pair.name}", engine, pair.wanted, pair.second, apart)
    tally.networks["equivalent"] += 1


def try_wild(one: Wild, engines: Sequence[str], folder: Path, tally: Tally) -> None:
    """Try a random network with every engine."""
    path = write_question(folder, "wild", one.question, one.wanted)
    oracle = Oracle(one.question)
    is_violated = bool(one.truth.is_violated(one.wanted))
    for engine in engines:
        answer = ask(path, one.question, one.wanted, engine)
        sentences = complaints(answer, one.truth, one.wanted, oracle)
        tally.add(
            ("random", engine, "extraordinary", ""), answer, outcome_of(answer, sentences, is_violated=is_violated)
        )
        if sentences:
            tally.accuse(f"random: {one.name}", engine, one.wanted, one.question, sentences)
    tally.networks["random"] += 1


def targets(tally: Tally) -> list[dict[str, Any]]:
    """The targets of the suite, and whether they are met."""
    found = [
        {"target": f"{name} networks", "least": least, "value": tally.networks[name]}
        for name, least in (("planted", PLANTED), ("equivalent", EQUIVALENT), ("random", RANDOM))
    ]
    for target in found:
        target["is_met"] = target["value"] >= target["least"]
    found.append({"target": "wrong answers", "most": 0, "value": len(tally.wrong), "is_met": not tally.wrong})
    large, sizes = SIZES[0][1], [name for _, name in SIZES]
    for engine in WHOLE:
        for words, side, outcome, among in (
            (f"found by {engine}, ordinary weights, share ≥ 1e-6", "planted", "found", [large]),
            (f"twins proved robust by {engine}, ordinary weights, share ≥ 1e-6", "twin", "robust", [large]),
            (f"twins proved robust by {engine}, ordinary weights, all", "twin", "robust", sizes),
        ):
            part, whole = tally.share_of(outcome, [(side, engine, "ordinary", size) for size in among])
            if whole:
                value = part / whole
                found.append({"target": words, "least": FOUND, "value": value, "of": whole, "is_met": value >= FOUND})
    return found


def shown(key: tuple[str, str, str, str], count: Counter) -> dict[str, str]:
    """A row of the table."""
    heads = ("wrong", "crashed", "found", "missed", "robust", "undecided", "refused")
    side, engine, weights, size = key
    row = {"set": side, "engine": engine, "weights": weights, "size": size, "runs": str(sum(count.values()))}
    return row | {head: str(count[head]) if count[head] else "" for head in heads}


def show_target(target: dict[str, Any]) -> str:
    bound = f"at least {target['least']}" if "least" in target else f"at most {target['most']}"
    value = target["value"]
    text = f"{value:.3f} of {target['of']}" if "of" in target else f"{value}"
    return f"{'met   ' if target['is_met'] else 'MISSED'} {target['target']}: {text} ({bound})"


def networks(options: argparse.Namespace) -> Iterator[Planted | Pair | Wild]:
    """The requested networks, made one by one."""
    if not options.only:
        yield from plan(options.planted, options.seed)
        yield from pairs(options.equivalent, options.seed)
        yield from wild_networks(options.random, options.seed)
    for name in options.only:
        one = named(name)
        if one is None:
            raise SystemExit(f"{name}: no such network")
        yield one


def named(name: str) -> Planted | Pair | Wild | None:
    """Make a network again from its reported name."""
    kind, *rest = name.split("-")
    if kind == "wild":
        return make_wild(int(rest[0]))
    return make_pair(int(rest[1]), int(rest[0])) if kind == "pair" else by_name(name)


def run(options: argparse.Namespace) -> Tally:
    """Try the networks in the given number of processes."""
    tally, clock = Tally(), Clock(options.seconds)
    attempt = partial(try_one, engines=options.methods.split(","), keep=options.keep)
    with ExitStack() as stack:
        if options.processes == 1:
            found = map(attempt, networks(options))
        else:
            pool = stack.enter_context(get_context("spawn").Pool(options.processes))
            found = pool.imap_unordered(attempt, networks(options))
        for part in found:
            tally.join(part)
            if clock.is_over():
                break
    return tally


def try_one(one: Planted | Pair | Wild, engines: Sequence[str], keep: Path | None) -> Tally:
    """Try one network with every engine."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        {Planted: try_planted, Pair: try_pair, Wild: try_wild}[type(one)](one, engines, folder, tally)
    for item in tally.wrong:
        print(f"WRONG {item['name']} {item['engine']}: {'; '.join(item['wrong'])}", file=sys.stderr)
    return tally


def write_question(
    folder: Path, name: str, question: Question, wanted: str, norms: Mapping[int, Norm] | None = None
) -> Path:
    """Write the model, the image, and the command that asks the question."""
    path = write_onnx(folder / f"{name}.onnx", question.layers, question.image.shape, norms)
    np.save(folder / f"{name}.npy", question.image)
    perturbed = " ".join(f"--perturb {spec}" for spec in question.specs)
    about = f"--property {wanted} --delta {question.delta!r} --dist {question.dist}"
    command = f"steadygaze verify {name}.onnx --image {name}.npy {perturbed} {about}\n"
    (folder / f"{name}.txt").write_text(command, encoding="utf-8")
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planted", type=int, default=PLANTED, help="networks with a violation, each with its twin")
    parser.add_argument("--equivalent", type=int, default=EQUIVALENT, help="pairs of equivalent networks")
    parser.add_argument("--random", type=int, default=RANDOM, help="networks with weights over twelve orders")
    parser.add_argument("--methods", default=",".join(ENGINES), help="engines, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], help="only these networks, by their reported names")
    parser.add_argument("--keep", type=Path, help="folder for the files of the last network of each kind")
    parser.add_argument("--seconds", type=float, help="time limit for the whole run")
    parser.add_argument("--processes", type=int, default=1, help="processes that try networks; one more makes networks")
    parser.add_argument("--out", type=Path, default=RESULTS / "planted.json")
    options = parser.parse_args(arguments)
    unknown = set(options.methods.split(",")) - set(ENGINES)
    if unknown:
        parser.error(f"--methods: {', '.join(sorted(unknown))}; expected some of {', '.join(ENGINES)}")
    tally = run(options)
    met = targets(tally)
    rows = [{"key": list(key), **dict(count)} for key, count in sorted(tally.counts.items())]
    if tally.counts:
        print_table([shown(key, count) for key, count in sorted(tally.counts.items())])
    for target in met:
        print(show_target(target))
    write_json(
        options.out,
        (__doc__ or "").splitlines()[0],
        repetitions=1,
        seed=options.seed,
        engines=options.methods.split(","),
        rows=rows,
        targets=met,
        wrong=tally.wrong,
        missed=tally.missed,
        seconds={name: round(value, 1) for name, value in tally.seconds.items()},
    )
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
