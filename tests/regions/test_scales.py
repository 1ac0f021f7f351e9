"""The scales of a program's neurons: compiled loops against plain numpy, for dense and sparse layers and windows."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from steadygaze.compound import CellProgram, Program, plain_program
from steadygaze.network.layers import Layer
from steadygaze.tolerances import noise_share
from support.networks.branching import random_graph
from support.networks.pooled import branching_compound

TICKS = np.linspace(0.0, 1.0, 7)
POINTS = np.stack([*(axis.ravel() for axis in np.meshgrid(TICKS, TICKS)), np.ones(49)])


def matrix_into(program: Program, layer: int) -> np.ndarray:
    """The matrix (n_out, n_in) that leads to a layer, from the arrays of the program."""
    inputs, outputs = np.diff(program.offsets)[layer - 1 : layer + 1]
    start, first = program.dense_start[layer], program.column_start[layer]
    if start >= 0:
        return program.dense[start : start + inputs * outputs].reshape(inputs, outputs).T
    pointers = program.columns[first : first + inputs + 1]
    own = slice(pointers[0], pointers[-1])
    columns = (program.values[own], program.rows[own], pointers - pointers[0])
    return sparse.csc_array(columns, shape=(outputs, inputs)).toarray()


def least_noise(cell: CellProgram, layers: list[Layer]) -> np.ndarray:
    """The noise of all neurons (N,), before neurons that only pass one input on inherit a larger one."""
    program = cell.program
    sizes = [np.abs(cell.root).sum(axis=0)]
    values = np.maximum(cell.root.T @ POINTS, 0.0)
    if program.clipped:
        sizes.append(1.0 + sizes[0])
        values = np.minimum(values, 1.0)
    for layer in range(len(sizes), len(program.offsets) - 1):
        matrix, bias = matrix_into(program, layer), program.bias[program.offsets[layer] : program.offsets[layer + 1]]
        sizes.append((np.abs(matrix) @ values).max(axis=1) + np.abs(bias))
        if layer + 1 < len(program.offsets) - 1:
            values = layers[layer - 1 - program.clipped].apply((matrix @ values + bias[:, None]).T).T
    shares = [noise_share(int(terms)) for terms in program.terms]
    return np.concatenate([share * size for share, size in zip(shares, sizes, strict=True)])


@pytest.mark.parametrize("widths", [(2, 3, 1), (2, 9, 5, 6, 4)])
def test_scales_of_dense_layers(widths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(widths))
    sizes = pairwise(widths)
    cell = plain_program([(rng.normal(size=(after, before)), rng.normal(size=after)) for before, after in sizes])
    np.testing.assert_allclose(cell.program.noise, least_noise(cell, [Layer.relus(size) for size in widths[2:-1]]))


@pytest.mark.parametrize("seed", range(12))
def test_scales_of_branches_and_windows(seed: int) -> None:
    image = np.random.default_rng(seed).integers(0, 9, (1, 2, 2)) / 8.0
    compound = branching_compound(random_graph(seed), image, "brightness:-0.5..0.5", "patch:x=0,y=0,w=2,h=1")
    for cell in compound.programs:
        wanted, found = least_noise(cell, list(compound.graph.layers)), cell.program.noise
        assert (found >= wanted * (1.0 - 1e-12)).all()
        first = cell.program.offsets[3]  # the first layer also counts pixels that are part of its bias
        inherits = [
            np.count_nonzero(matrix_into(cell.program, layer), axis=1) == 1
            for layer in range(3, len(cell.program.offsets) - 1)
        ]
        is_own = ~np.concatenate([np.zeros(0, dtype=bool), *inherits])
        np.testing.assert_allclose(found[first:][is_own], wanted[first:][is_own])
