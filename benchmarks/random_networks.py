"""The random networks of `tasks/`: their layers, their true numbers of regions, and a check of their maps."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reference_splitter import Layers
from steadygaze.compound import plain_program
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide_cells

TASKS = Path(__file__).resolve().parent / "tasks"


def load_tasks(folder: Path, names: Sequence[str], *, dimension: int = 2) -> dict[str, tuple[Layers, int]]:
    """Layers and the true number of regions of each task of a dimension; all tasks of the folder if none is named."""
    entries = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    entries.pop("_", None)
    counts = {name: int(entry["regions"]) for name, entry in entries.items() if entry.get("dimension", 2) == dimension}
    unknown = sorted(set(names) - set(counts))
    if unknown:
        raise SystemExit(f"no task {', '.join(unknown)} in {folder}; expected some of: {', '.join(counts)}")
    return {name: (load_layers(folder / f"{name}.npz"), counts[name]) for name in (names or counts)}


def load_layers(path: Path) -> Layers:
    with np.load(path) as data:
        return [(data[f"W{i}"], data[f"b{i}"]) for i in range(len(data.files) // 2)]


def enumerate_regions(layers: Layers) -> RegionSet:
    """The engine's whole work on one task."""
    return subdivide_cells([plain_program(layers)], threads=1)


def complaints(layers: Layers, regions: RegionSet, expected: int) -> list[str]:
    """The errors of a map: its count, its area, or logits that differ from a plain forward pass."""
    found = []
    if len(regions) != expected:
        found.append(f"{len(regions)} regions, {expected} expected")
    if abs(regions.polytopes.volumes.sum() - 1.0) > 1e-9:
        found.append(f"the areas or volumes add up to {regions.polytopes.volumes.sum()!r}")
    values = centres = regions.polytopes.centres
    for weight, bias in layers[:-1]:
        values = np.maximum(values @ weight.T + bias, 0.0)
    logits = values @ layers[-1][0].T + layers[-1][1]
    claimed = np.einsum("ri,rik->rk", np.column_stack([centres, np.ones(len(centres))]), regions.logits)
    wrong = np.abs(claimed - logits).max(axis=1) > 1e-9 * (1.0 + np.abs(logits).max(axis=1))
    if wrong.any():
        found.append(f"the logits of {wrong.sum()} regions differ from a forward pass")
    return found
