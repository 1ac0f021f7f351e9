"""Does the reader refuse damaged model files in one line, within limits, and read valid ones correctly?

    python benchmarks/fuzz_reader.py --minutes 10

Damages bytes and fields of small models that use every supported operator, and reads them as `verify` does: file,
graph, onnxruntime session. The reader must either read a file or refuse it in one line, within two seconds and one GiB.
A crash, any other exception, and a file that takes longer are failures; `--keep` stores their files. Graphs whose
logits differ from onnxruntime's are counted: `verify` refuses them.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fuzz_models import damage, models
from steadygaze.errors import ModelError
from steadygaze.network.from_onnx import build_graph
from steadygaze.network.layout import ReadOptions, choose_layout
from steadygaze.network.onnx_file import input_dims, one_line, read_onnx
from steadygaze.network.replay import Replay
from timing import RESULTS, one_thread, peak_mib, print_table, write_json

MOST_SECONDS = 2.0
MOST_MIB = 1024.0
PATIENCE = 30.0  # seconds without a new file before a process counts as hanging
LONGEST = 15.0  # minutes
STEP = 1e-3  # share of the largest logit by which graph and onnxruntime may differ


def read(path: Path) -> str:
    """The outcome of reading a file: 'read', 'refused', 'differs' (from onnxruntime), or 'not finite'."""
    try:
        try:
            file = read_onnx(path)
            layout = choose_layout(input_dims(file)[1], None, path.name)
            preprocessing = ReadOptions().preprocessing(layout.image_shape[0])
            graph = build_graph(file, layout, preprocessing)
            replay = Replay(file, layout, preprocessing)
            images = np.random.default_rng(0).random((1, *layout.image_shape))
            if images.size > 10**6 or sum(np.prod(node.shape) for node in graph.nodes) > 10**6:
                return "read, large"
            with np.errstate(all="ignore"):
                ours, theirs = graph.logits(images), replay.logits(images)
        except ModelError as error:
            raise ModelError(one_line(error, limit=800)) from None
        except UnicodeError:
            raise ModelError(f"{path.name}: names that are not text") from None
    except ModelError as error:
        if "\n" in str(error) or path.name not in str(error):
            raise ValueError(f"the refusal is not one line that names the file: {error}") from None
        return "refused"
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return "not finite"
    is_same = ours.shape == theirs.shape and np.abs(ours - theirs).max() <= STEP * (np.abs(theirs).max() + 1e-3)
    return "read" if is_same else "differs"


def work(seed: int, seconds: float, folder: Path) -> None:
    """Damage and read models until the time is up; append failures to a file as lines of JSON."""
    generator = np.random.default_rng(seed)
    valid = list(models())
    path, end, outcomes = folder / "case.onnx", time.monotonic() + seconds, Counter()
    number = 0
    while time.monotonic() < end:
        number += 1
        path.write_bytes(damage(valid[generator.integers(len(valid))], generator))
        before, started, cause = peak_mib(), time.process_time(), ""
        try:
            outcome = read(path)
        except Exception as error:
            outcome, cause = "failed", f"{type(error).__name__}: {error}"
        used = time.process_time() - started
        if used > MOST_SECONDS:
            outcome, cause = "failed", f"{cause} {used:.1f} s".strip()
        if peak_mib() > max(MOST_MIB, before):
            outcome, cause = "failed", f"{cause} {peak_mib():.0f} MiB".strip()
        outcomes[outcome] += 1
        if outcome in ("failed", "differs"):
            kept = folder / f"{outcome}-{seed}-{number}.onnx"
            kept.write_bytes(path.read_bytes())
            with (folder / "failures.jsonl").open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"outcome": outcome, "cause": cause[:300], "file": kept.name}) + "\n")
        (folder / "outcomes.json").write_text(json.dumps(outcomes))


def watch(seed: int, seconds: float, folder: Path) -> Counter:
    """Run one process; if it dies or hangs, its last file is a failure. Returns counts of outcomes."""
    command = [sys.executable, __file__, "--worker", str(seed), str(seconds), str(folder)]
    path = folder / "case.onnx"
    (folder / "outcomes.json").unlink(missing_ok=True)
    path.touch()
    process = subprocess.Popen(command, env=one_thread(), stderr=subprocess.PIPE, text=True)
    cause = ""
    while process.poll() is None and not cause:
        time.sleep(0.2)
        if time.time() - path.stat().st_mtime > PATIENCE:
            cause = f"no answer in {PATIENCE:.0f} s"
            process.kill()
    errors = process.communicate()[1]
    outcomes = folder / "outcomes.json"
    counts = Counter(json.loads(outcomes.read_text() or "{}") if outcomes.exists() else {})
    if cause or process.returncode:
        counts["crashed"] += 1
        kept = folder / f"crashed-{seed}.onnx"
        path.replace(kept)
        cause = cause or f"exit code {process.returncode}: {errors[-300:]}"
        with (folder / "failures.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"outcome": "crashed", "cause": cause, "file": kept.name}) + "\n")
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0, help=f"at most {LONGEST:g}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the files that failed")
    parser.add_argument("--out", type=Path, default=RESULTS / "fuzz_reader.json")
    options = parser.parse_args(arguments)
    seconds, seed, counts = 60.0 * min(options.minutes, LONGEST), options.seed, Counter()
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for model in models():
            (folder / "case.onnx").write_bytes(model.SerializeToString())
            if read(folder / "case.onnx") != "read":
                raise ValueError(f"a valid model is not read: {[node.op_type for node in model.graph.node]}")
        while (left := end - time.monotonic()) > 0:
            counts += watch(seed, left, folder)
            seed += 1
        lines = folder / "failures.jsonl"
        failures = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    bad = [failure for failure in failures if failure["outcome"] != "differs"]
    rows = [{"outcome": name, "files": f"{count:,}"} for name, count in counts.most_common()]
    print_table([*rows, {"outcome": "all", "files": f"{sum(counts.values()):,}"}])
    for failure in bad[:20]:
        print(f"{failure['file']}: {failure['cause']}", file=sys.stderr)
    write_json(
        options.out,
        (__doc__ or "").splitlines()[0],
        repetitions=1,
        minutes=seconds / 60.0,
        outcomes=counts,
        failures=bad,
    )
    return 1 if bad else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
        sys.exit(0)
    sys.exit(main())
