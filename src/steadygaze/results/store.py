"""Results on disk: writes a result to a directory and reads the same result back, ready for another δ.

`result.json` holds the answer and the data to rebuild the question, `regions.npz` the map, `image.npy` the pixels
(`image.png` for people), `perturbations.npz` the arrays of files that perturbations read, `timings.json` the data that
differ from run to run. A model file is not copied: its place and hash are stored. A torch module has no file, so
`model.onnx` holds it as exported. Files are never trusted: damaged, foreign and other versions are refused.
"""

import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from .. import zoo
from ..budget import machine_gib
from ..errors import SteadygazeError, StoreError, not_writable
from ..images import MAX_PIXELS, fit_image
from ..installed import installed_version
from ..network.layout import ReadOptions
from ..network.model import Agreement, Model, model_from_bytes, model_from_file
from ..network.onnx_file import read_bytes
from ..perturbation import file_digests, without_names
from ..question import Question
from ..regions.check import CheckedMap
from .array_file import read_arrays, write_arrays
from .arrays import OLDER, READ_VERSIONS, SCHEMA_VERSION
from .directory import atomic_directory, write_json
from .result import Result
from .summary import Summary
from .tiling import MAP, Tiling

ANSWER, PIXELS, PICTURE, TIMINGS = "result.json", "image.npy", "image.png", "timings.json"
MASK = "mask.npy"
"""The weights of the mask, if there is one."""
NOISES = "noises.npy"
"""The noises of the explanation method, if it has any."""
ARRAYS = "perturbations.npz"
"""The contents of the files that perturbations read, by digest: a result does not need the files again."""
MODEL = "model.onnx"
"""The model, if it has no file of its own."""
CHUNKS = re.compile(r"regions-\d{5,}\.npz")
"""The files of a map in chunks, beside `regions.npz`."""
FIGURES = (".png", ".svg", ".pdf", ".html")
"""Files beside a result that do not block --force."""

PACKAGES = ("steadygaze", "numpy", "scipy", "numba", "onnx", "onnxruntime")
LONGEST_ANSWER = 1 << 28
LONGEST_NAME = 120


def save(result: Result, directory: str | Path, *, force: bool = False) -> Path:
    """Store a result in a new directory, all or nothing; returns its path.

    The bytes of `result.json` and `regions.npz` depend on the question and the versions alone. Refuses an existing
    directory; with `force`, replaces it if it is a result, once the new one is complete.
    """
    target = check_directory(directory, force=force)
    question, tiling = result.question, result.tiling
    stored = question.stored(result.threshold) | {
        "versions": current_versions(),
        "agreement": asdict(result.agreement),
        "checked": None if result.checked is None else asdict(result.checked),
        "map": tiling.numbers,
    }
    content = result.summary()
    try:
        with atomic_directory(target, replaces=force) as folder:
            tiling.write(folder)
            np.save(folder / PIXELS, question.perturbed.x0, allow_pickle=False)
            _picture(question.perturbed.x0).save(folder / PICTURE)
            if question.arrays:
                write_arrays(folder / ARRAYS, question.arrays)
            if question.model.content is not None:
                (folder / MODEL).write_bytes(question.model.content)
            mask = question.attention.mask
            if mask is not None:
                np.save(folder / MASK, mask.weights, allow_pickle=False)
            for name, array in question.attention.method.arrays.items():
                np.save(folder / f"{name}.npy", array, allow_pickle=False)
            files = {name: _sha256(folder / name) for name in _hashed_files(content)}
            whole = content | {"stored": stored | {"files": files}}
            write_json(folder / ANSWER, whole | {"checksum": _checksum(whole)})
            write_timings(result, folder)
    except OSError as error:
        raise not_writable(directory, error) from None
    return Path(directory)


def write_timings(result: Result, folder: Path) -> None:
    """Write, or write again, the seconds of a run by phase, and what else differs from run to run."""
    if result.budget is not None:
        result.budget.clock.count()
    when = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(folder / TIMINGS, {"seconds": result.seconds, "finished": when, "machine": _machine()})


def load(
    directory: str | Path, restore: Callable[[dict[str, Any], Path, Question], Tiling[Any]],
    *, model: str | Path | None = None,
) -> Result:  # fmt: skip
    """The stored result of any method; `restore` makes its tiling from the content of `result.json`.

    Reads the model from its old place, or from `model`; its hash must be the same. Raises StoreError.
    """
    folder = Path(directory)
    content = read_checked(folder)
    with refusing_damage(folder):
        pixels, stored = read_pixels(folder / PIXELS), content["stored"]
        network = _read_model(content, pixels, folder, model)
        older = [OLDER] if content["schema_version"] < SCHEMA_VERSION else []
        has_mask = content["attention"].get("mask") is not None
        mask = read_pixels(folder / MASK, 2) if has_mask else None
        arrays = {"noises": read_pixels(folder / NOISES, 4)} if NOISES in _hashed_files(content) else {}
        files = _read_files(content["domain"]["specs"], folder)
        question = Question.restore(content, pixels, network, mask=mask, arrays=arrays, files=files, notes=older)
        if question.label != content["label"]:
            raise StoreError(
                f"{folder}: the label was {content['label']} and is {question.label} now; run the verification again"
            )
        tiling = restore(content, folder, question)
        is_search = tiling.is_search
        # Searches of earlier versions stored no agreement.
        agreement = question.agreement if is_search and "agreement" not in stored else Agreement(**stored["agreement"])
        checked = None if is_search else CheckedMap(**stored["checked"])
    return Result(question, tiling, question.threshold, agreement, checked, read_seconds(folder))


@contextmanager
def refusing_damage(folder: Path) -> Iterator[None]:
    """Turn any error while a result is rebuilt into a StoreError that names its directory."""
    try:
        yield
    except StoreError:
        raise
    except SteadygazeError as error:
        raise StoreError(f"{folder}: cannot restore the stored question: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
        raise StoreError(
            f"{folder}: result.json is not complete ({reason}); the result is damaged: run the verification again"
        ) from None


def _read_model(content: dict[str, Any], pixels: np.ndarray, folder: Path, given: str | Path | None) -> Model:
    """The model from its stored place, if its hash is the same."""
    stored, digest = content["stored"]["model"], content["model"]["sha256"]
    mend = f"restore the file with SHA-256 {digest[:12]}… there, or run the verification again"
    if given is not None:
        path = Path(given)
    elif stored["bundled"] is not None:
        path = zoo.model_path(str(stored["bundled"]))
    else:
        path = folder / MODEL if stored["path"] is None else Path(str(stored["path"]))
    if not path.is_file():
        raise StoreError(f"{folder}: its model is no longer at {os.fspath(path)}; {mend}")
    options = ReadOptions(stored["mean"], stored["std"], float(stored["scale"]), stored.get("output"))
    try:
        if stored["path"] is None and stored["bundled"] is None:  # stored with the result; its bytes are saved again
            model = model_from_bytes(read_bytes(path), str(content["model"]["name"]), pixels.shape, options)
            model = replace(model, notes=tuple(str(note) for note in stored["notes"]))
        else:
            model = model_from_file(path, pixels.shape, options)
    except SteadygazeError as error:
        raise StoreError(f"{folder}: its model at {os.fspath(path)} has changed: {error}; {mend}") from None
    if model.sha256 != digest:
        raise StoreError(f"{folder}: its model at {os.fspath(path)} has changed since; {mend}")
    fit_image(pixels, model.input_shape, "image.npy")
    return model


def read_pixels(path: Path, dimension: int = 3) -> np.ndarray:
    """The stored image (C, H, W), or the mask (H, W), or noises (n, C, H, W)."""
    try:
        # Mapped: a header with absurd dimensions fails on the size of the file before anything is allocated.
        pixels = np.load(path, mmap_mode="r", allow_pickle=False)
        if pixels.dtype != np.float64 or pixels.ndim != dimension or not 0 < pixels.size <= 4 * MAX_PIXELS:
            raise ValueError(f"{pixels.shape} of {pixels.dtype}")
        return np.array(pixels)
    except (OSError, ValueError, EOFError) as error:
        reason = " ".join(str(error).split())[:200]
        raise StoreError(f"{path}: is not an array of a result ({reason}); run the verification again") from None


def _read_files(specs: list[str], folder: Path) -> dict[str, np.ndarray]:
    """The contents of the files that specs name, by digest; `parse_specs` checks the digests."""
    digests = sorted({digest for spec in specs for digest in file_digests(str(spec))})
    return read_arrays(folder / ARRAYS, digests) if digests else {}


def read_checked(folder: Path) -> dict[str, Any]:
    """The content of `result.json`, if the arrays and the image beside it have the stored hashes."""
    content = _read_answer(folder)
    for name in _hashed_files(content):
        path = folder / name
        if not path.is_file():
            raise StoreError(f"{path}: is missing; the result is damaged: run the verification again")
        try:
            is_same = _sha256(path) == content["stored"]["files"].get(name)
        except OSError as error:
            raise StoreError(f"{path}: cannot be read ({error.strerror or error}); check its permissions") from None
        if not is_same:
            raise StoreError(
                f"{path}: differs from what was written; the result is damaged: run the verification again"
            )
    return content


def _hashed_files(content: dict[str, Any]) -> list[str]:
    """The files beside a `result.json` whose hashes it holds."""
    attention = content.get("attention")
    asked = attention if isinstance(attention, dict) else {}
    masks, noises = [MASK] * (asked.get("mask") is not None), [NOISES] * ("explain_sha256" in asked)
    return [MAP, PIXELS, *masks, *noises]


def read_summary(directory: str | Path) -> Summary:
    """The stored answer at its δ, from `result.json` alone: neither the model nor the map is needed."""
    content = _read_answer(Path(directory))
    if content["schema_version"] < SCHEMA_VERSION and isinstance(content.get("notes"), list):
        content["notes"] = [*content["notes"], OLDER]
    return Summary.read(content, directory)


def read_seconds(directory: str | Path) -> dict[str, float]:
    """The seconds of the run, by part; empty if `timings.json` is missing or unreadable, which changes no answer."""
    try:
        content = json.loads((Path(directory) / TIMINGS).read_text(encoding="utf-8"))
        return {str(name): float(seconds) for name, seconds in content["seconds"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def read_origin(directory: str | Path) -> dict[str, Any]:
    """The origin of an answer: "versions" of packages, and "finished" and "machine" of the run if known.

    Raises StoreError for anything but a result; `timings.json` may be missing.
    """
    origin = {"versions": _read_answer(Path(directory))["stored"].get("versions")}
    with suppress(OSError, ValueError, RecursionError):
        content = json.loads((Path(directory) / TIMINGS).read_text(encoding="utf-8"))
        if isinstance(content, dict):
            origin |= {name: content[name] for name in ("finished", "machine") if name in content}
    return origin


def current_versions() -> dict[str, str | None]:
    """The versions of the packages that answers depend on."""
    return {name: installed_version(name) for name in PACKAGES}


def check_directory(directory: str | Path, *, force: bool = False) -> Path:
    """Return the directory that `save` will write, links followed; StoreError now if `save` would refuse it."""
    target = Path(os.path.realpath(directory))
    try:
        if not target.exists():
            return target
        inside = sorted(target.iterdir()) if target.is_dir() else None
    except OSError as error:
        raise StoreError(f"{directory}: cannot be read ({error.strerror or error}); choose another --out") from None
    if inside is None:
        raise StoreError(f"{directory}: is a file; choose another --out")
    if not force:
        raise StoreError(f"{directory}: exists already; choose another --out, or replace it with --force")
    if inside and not _is_ours(target):
        raise StoreError(
            f"{directory}: is not a steadygaze result, so --force does not replace it; choose another --out"
        )
    for path in inside:
        own = (ANSWER, MAP, PIXELS, MASK, NOISES, PICTURE, TIMINGS, MODEL, ARRAYS)
        is_ours = path.name in own or path.suffix in FIGURES
        is_ours = is_ours or CHUNKS.fullmatch(path.name) is not None
        if not is_ours or path.is_symlink() or not path.is_file():
            raise StoreError(
                f"{directory}: holds {path.name!r}, which --force would delete; move it, or choose another --out"
            )
    return target


def default_directory(question: Question, *, method: str | None = None) -> Path:
    """A name made of model, image, perturbations and the method of a search, at most 120 characters long.

    It has only ASCII letters, digits and . _ -
    """
    image = re.sub(r"\.(png|jpe?g|npy)$", "", question.image_name, flags=re.IGNORECASE)
    texts = (question.model_name, image, *(_name_of(spec) for spec in question.specs))
    return directory_name(*texts, *([] if method is None else [method]))


def directory_name(*texts: str) -> Path:
    """A name made of texts, at most 120 characters long, with only ASCII letters, digits and . _ -"""
    parts = [re.sub(r"-+", "-", re.sub(r"[^A-Za-z0-9._-]", "-", text)).strip("-.") or "unnamed" for text in texts]
    name = "--".join(parts)
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return Path(name)


def _name_of(spec: str) -> str:
    """A spec as part of a name; a minus sign becomes m: ranges stay distinct.

    >>> _name_of("patch:x=12,y=12,w=4,h=4"), _name_of("brightness:-0.2..0.5")
    ('patch-x12-y12-w4-h4', 'brightness-m0.2-to-0.5')
    >>> _name_of('blend:image="sky/clouds.png#0123456789abcdef"')
    'blend-image"clouds#0123456789abcdef"'
    """
    spec = without_names(spec, lambda name: Path(name).stem)
    return re.sub(r"-(?=\d)", "m", spec).replace("..", "-to-").replace("=", "").replace(":", "-").replace(",", "-")


def _read_answer(folder: Path) -> dict[str, Any]:
    """The content of `result.json`, if it is whole and of this schema version."""
    path = folder / ANSWER
    try:
        if not folder.is_dir():
            raise StoreError(f"{folder}: no such directory; give the directory of a result")
        if not path.is_file():
            raise StoreError(f"{folder}: is not a steadygaze result (it has no {ANSWER}); give the directory of one")
    except OSError as error:
        raise StoreError(f"{folder}: cannot be read ({error.strerror or error}); check the path") from None
    content = _parse(path)
    if not _looks_ours(content):
        raise StoreError(f"{path}: is not a steadygaze answer, or damaged; run the verification again")
    if content["schema_version"] not in READ_VERSIONS:
        raise StoreError(
            f"{path}: has schema version {str(content['schema_version'])[:20]}, but this steadygaze reads "
            f"{' and '.join(map(str, READ_VERSIONS))}; read it with the version that wrote it, or run the verification "
            "again"
        )
    if content.get("checksum") != _checksum(content):
        raise StoreError(f"{path}: differs from what was written; the result is damaged: run the verification again")
    return content


def _parse(path: Path) -> Any:
    try:
        if path.stat().st_size > LONGEST_ANSWER:
            return None
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror or error}); check its permissions") from None
    except (ValueError, RecursionError):
        return None


def _looks_ours(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and "schema_version" in content
        and isinstance(content.get("stored"), dict)
        and isinstance(content["stored"].get("files"), dict)
    )


def _is_ours(folder: Path) -> bool:
    path = folder / ANSWER
    return path.is_file() and _looks_ours(_parse(path))


def _checksum(content: dict[str, Any]) -> str:
    """Hash of everything else in the answer: it reveals any change."""
    rest = {key: value for key, value in content.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _picture(pixels: np.ndarray) -> Image.Image:
    """The image for people: grey or RGB; any other channels side by side."""
    values = np.rint(255.0 * pixels).astype(np.uint8)
    if len(values) == 3:
        return Image.fromarray(np.ascontiguousarray(np.moveaxis(values, 0, 2)))
    return Image.fromarray(np.hstack(list(values)))


def _machine() -> dict[str, Any]:
    memory = machine_gib()
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": memory if np.isfinite(memory) else None,
        "python": platform.python_version(),
    }
