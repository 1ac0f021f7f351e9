"""Writes the bundled images and the manifest of the zoo: names, layers, accuracies measured from the files, hashes."""

import hashlib
import json
from pathlib import Path

from export import accuracy
from idx import Dataset
from layouts import NAMES, RECIPES
from PIL import Image

SCHEMA = 1
TRAINING_IMAGES = 60_000  # indexes count the 70,000 images of training and test set together, as the paper does
BUNDLED = 10  # the last ten test images
CLASS_NAMES = {
    "mnist": [str(digit) for digit in range(10)],
    "fashion": [
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ],
    "colour": [str(digit) for digit in range(10)],
}  # fmt: skip


def bundled_indexes(data: Dataset) -> range:
    """Return the positions of the bundled images in the test set."""
    return range(len(data.test_images) - BUNDLED, len(data.test_images))


def sha256(path: Path) -> str:
    """Return the hash of a file as hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_images(out: Path, data: dict[str, Dataset]) -> None:
    """Write the last ten test images of each set as 8-bit PNG, grey or RGB, named by their index among the 70,000."""
    for dataset, arrays in data.items():
        folder = out / "images" / dataset
        folder.mkdir(parents=True, exist_ok=True)
        for position in bundled_indexes(arrays):
            Image.fromarray(arrays.test_images[position]).save(folder / f"{TRAINING_IMAGES + position}.png")


def model_entry(out: Path, name: str, data: dict[str, Dataset]) -> dict[str, object]:
    """Return the manifest entry of one network; the accuracy is measured with onnxruntime."""
    recipe = RECIPES[name]
    path = out / "models" / f"{name}.onnx"
    arrays = data[recipe.dataset]
    return {
        "name": name,
        "dataset": recipe.dataset,
        "file": f"models/{name}.onnx",
        "sha256": sha256(path),
        "layers": recipe.layout.describe(),
        "neurons": recipe.layout.neurons,
        "accuracy": round(accuracy(path, arrays.test_images, arrays.test_labels), 4),
        "training": recipe.describe_training(),
        "seed": recipe.seed,
        "epochs": recipe.epochs,
    }


def image_entry(out: Path, dataset: str, position: int, data: Dataset) -> dict[str, object]:
    """Return the manifest entry of one bundled image."""
    index = TRAINING_IMAGES + position
    file = f"images/{dataset}/{index}.png"
    return {
        "reference": f"{dataset}:{index}",
        "file": file,
        "sha256": sha256(out / file),
        "true_label": int(data.test_labels[position]),
    }


def write_manifest(out: Path, data: dict[str, Dataset]) -> None:
    """Write manifest.json for the existing networks and the bundled images."""
    manifest = {
        "schema": SCHEMA,
        "class_names": CLASS_NAMES,
        "models": [model_entry(out, name, data) for name in NAMES if (out / "models" / f"{name}.onnx").exists()],
        "images": [
            image_entry(out, dataset, position, arrays)
            for dataset, arrays in data.items()
            for position in bundled_indexes(arrays)
        ],
    }
    part = out / "manifest.json.part"
    part.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(out / "manifest.json")
