"""What the subdivision engine runs on: a network in t as flat arrays. Data only; `compound` makes it."""

from typing import NamedTuple

import numpy as np


class Program(NamedTuple):
    """What is walked: layers 0 … L−1 are hidden, layer L gives the logits. Constant during a walk."""

    offsets: np.ndarray  # (L+2,) neurons of layer l are offsets[l]:offsets[l+1]
    clipped: int  # 1 if layers 0 and 1 are the two halves of the clip to [0,1]
    dense_start: np.ndarray  # (L+1,) where the matrix into layer l starts in `dense`, −1 if it is sparse
    dense: np.ndarray  # transposed matrices, row-major (n_in, n_out)
    column_start: np.ndarray  # (L+1,) where the columns of the matrix into layer l start in `columns`
    columns: np.ndarray  # CSC pointers into `rows` and `values`
    rows: np.ndarray
    values: np.ndarray
    bias: np.ndarray  # (N,)
    noise: np.ndarray  # (N,) values of a neuron below this are rounding
    near: np.ndarray  # (N,) a polytope on which a neuron comes this close to zero lies beside its kink
    is_folded: np.ndarray  # (L+1,) whether weights into a layer are rounded products, so that a zero may not be one
    terms: np.ndarray  # (L+1,) the most inputs that one neuron of a layer sums up
    largest: np.ndarray  # (N,) the largest |weight| of a neuron's output in the next layer
    byte_start: np.ndarray  # (L+1,) where the packed pattern of layer l starts
