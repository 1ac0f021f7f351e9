"""The bundled networks and images: paths, labels and facts from the manifest.

`network` and `images` read the files; the tests check their hashes. `benchmarks/zoo/train.py` made this folder.
"""

import difflib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import ImageError, ModelError

_FOLDER = Path(__file__).resolve().parent

LONGEST_NAME = 100
"""The most letters of a wrong name that an error quotes."""


@dataclass(frozen=True)
class ZooModel:
    """A bundled network; `accuracy` is the share of its 10,000 test images with the right label."""

    name: str
    dataset: str
    path: Path
    layers: str
    neurons: int
    accuracy: float
    training: str
    seed: int
    epochs: int
    sha256: str


@dataclass(frozen=True)
class ZooImage:
    """A bundled image, named `dataset:index`; the index counts all 70,000 images of a set, test images last."""

    reference: str
    path: Path
    true_label: int
    sha256: str


@cache
def _manifest() -> dict:
    return json.loads((_FOLDER / "manifest.json").read_text(encoding="utf-8"))


def _entries(kind: str) -> list[dict]:
    """Entries of the manifest, with a path instead of the name of the file."""
    return [
        {key: value for key, value in entry.items() if key != "file"} | {"path": _FOLDER / entry["file"]}
        for entry in _manifest()[kind]
    ]


@cache
def models() -> tuple[ZooModel, ...]:
    """Return the bundled networks in the order of the manifest.

    >>> models()[0].name, models()[0].neurons
    ('M-FNN-100', 100)
    """
    return tuple(ZooModel(**entry) for entry in _entries("models"))


@cache
def images() -> tuple[ZooImage, ...]:
    """Return the thirty bundled images in the order of the manifest.

    >>> images()[0].reference, images()[0].true_label
    ('mnist:69990', 7)
    """
    return tuple(ZooImage(**entry) for entry in _entries("images"))


def model_path(name: str) -> Path:
    """Return the path of a bundled network's ONNX file.

    >>> model_path("M-FNN-100").name
    'M-FNN-100.onnx'
    >>> model_path("M-FNN-10")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    steadygaze.errors.ModelError: no bundled network 'M-FNN-10'. Did you mean M-FNN-100? Bundled: M-FNN-100, ...
    """
    known = {model.name: model.path for model in models()}
    if name in known:
        return known[name]
    if len(name) > LONGEST_NAME:
        name = f"{name[:LONGEST_NAME]}…"
    nearest = difflib.get_close_matches(name.upper(), [other.upper() for other in known], n=1)
    guess = "".join(f" Did you mean {other}?" for other in known if [other.upper()] == nearest)
    raise ModelError(
        f"no bundled network {name!r}.{guess} Bundled: {', '.join(known)}. Or give the path of an .onnx file."
    )


def is_reference(text: str) -> bool:
    """Return whether a text refers to a bundled image (`mnist:…`, `colour:…`), even to one that does not exist.

    >>> is_reference("mnist:1"), is_reference("digit.png")
    (True, False)
    """
    dataset, colon, _ = text.partition(":")
    return bool(colon) and dataset in _manifest()["class_names"]


def image_path(reference: str) -> Path:
    """Return the path of a bundled image's PNG file.

    >>> image_path("fashion:69995").name
    '69995.png'
    """
    return _image(reference).path


def true_label(reference: str) -> int:
    """Return the class of a bundled image in its test set.

    >>> true_label("mnist:69990")
    7
    """
    return _image(reference).true_label


def class_names(dataset: str) -> tuple[str, ...]:
    """Return the ten class names of `mnist`, `fashion` or `colour`, in the order of the logits.

    >>> class_names("fashion")[9]
    'Ankle boot'
    """
    known = _manifest()["class_names"]
    if dataset not in known:
        raise ImageError(f"no bundled data set {dataset!r}. Bundled: {', '.join(known)}. Use one of these names.")
    return tuple(known[dataset])


def _image(reference: str) -> ZooImage:
    known = {image.reference: image for image in images()}
    if reference in known:
        return known[reference]
    ranges = []
    for dataset in _manifest()["class_names"]:
        own = [name for name in known if name.startswith(f"{dataset}:")]
        ranges.append(f"{own[0]} to {own[-1]}")
    raise ImageError(
        f"no bundled image {reference!r}. Bundled: {', '.join(ranges)}. Or give the path of an image file."
    )
