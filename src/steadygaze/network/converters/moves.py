"""Converters of operators that move numbers: reshaped, transposed, cut, repeated, padded values.

They treat constants and values that depend on the image alike, so `folding` uses them too.
"""

from math import prod

import numpy as np

from ..onnx_file import FLOAT_TYPES
from ..operators import Operator, Pad, Reshape, Select, ShapeError, Transpose
from .call import Call, ConversionError, check_entries, entries_of, normal_axes, normal_axis

PAD_MODES = ("edge", "reflect", "wrap")


def choose(index: np.ndarray) -> list[Operator]:
    """The operator that selects these entries of the flattened value, in the shape of the index."""
    return [Select(np.ravel(index), index.shape)]


def cast(call: Call) -> list[Operator]:
    """Cast between float types."""
    if call.attribute("to", 0) not in FLOAT_TYPES:
        raise ConversionError("casts to a type other than float; only casts between float types are supported")
    return []


def dropout(call: Call) -> list[Operator]:
    """Dropout in inference: the value itself."""
    call.require_variable_first()
    refuse_training(call.constant(2))
    return []


def refuse_training(mode: np.ndarray | int | bool | None) -> None:
    """Refuse an operator in training mode."""
    if mode is not None and np.any(mode):
        raise ConversionError(
            "is in training mode; export the model in inference mode (model.eval(), and training=self.training for "
            "functional dropout)"
        )


def flatten(call: Call) -> list[Operator]:
    """Flatten to two axes."""
    rank = len(call.shape)
    axis = call.attribute("axis", 1)
    if not -rank <= axis <= rank:
        raise ShapeError(f"axis {axis} does not exist in shape {list(call.shape)}")
    axis = axis + rank if axis < 0 else axis
    return [Reshape((prod(call.shape[:axis]), prod(call.shape[axis:])))]


def reshape(call: Call) -> list[Operator]:
    """Reshape; 0 keeps a size, −1 stands for the remaining size."""
    call.require_variable_first()
    wanted = [int(size) for size in np.ravel(call.needed(1, "shape"))]
    old = call.shape
    zeros = [axis for axis, size in enumerate(wanted) if size == 0 and not call.attribute("allowzero", 0)]
    sizes = [old[axis] if axis in zeros and axis < len(old) else size for axis, size in enumerate(wanted)]
    known = prod(size for size in sizes if size != -1)
    if sizes.count(-1) > 1 or min(sizes, default=1) < -1 or known < 1 or prod(old) % known:
        raise ShapeError(f"cannot reshape {list(old)} to {wanted}")
    return [Reshape(tuple(prod(old) // known if size == -1 else size for size in sizes))]


def squeeze(call: Call) -> list[Operator]:
    """Drop axes of length 1."""
    call.require_variable_first()
    given = call.integers("axes", 1)
    rank = len(call.shape)
    axes = normal_axes([i for i, size in enumerate(call.shape) if size == 1] if given is None else given, rank)
    if any(call.shape[axis] != 1 for axis in axes):
        raise ShapeError(f"axes {list(axes)} of shape {list(call.shape)} do not all have length 1")
    return [Reshape(tuple(size for axis, size in enumerate(call.shape) if axis not in axes))]


def unsqueeze(call: Call) -> list[Operator]:
    """Insert axes of length 1."""
    call.require_variable_first()
    given = call.integers("axes", 1) or []
    rank = len(call.shape) + len(given)
    axes = normal_axes(given, rank)
    sizes = iter(call.shape)
    return [Reshape(tuple(1 if axis in axes else next(sizes) for axis in range(rank)))]


def transpose(call: Call) -> list[Operator]:
    """Transpose; without perm, all axes in reverse."""
    return [Transpose(tuple(call.attribute("perm", range(len(call.shape))[::-1])))]


def pad(call: Call) -> list[Operator]:
    """Pad by a constant, or by entries of the value itself; negative amounts crop."""
    call.require_variable_first()
    mode = call.attribute("mode", "constant")
    before, after = _pads(call)
    if mode == "constant":
        fill = call.constant(2)
        value = float(np.ravel(fill)[0]) if fill is not None and fill.size else float(call.attribute("value", 0.0))
        return [Pad(before, after, value)]
    if mode not in PAD_MODES:
        raise ConversionError(f"has mode '{mode}'; supported: constant, {', '.join(PAD_MODES)}")
    if min(before + after, default=0) < 0:
        raise ConversionError(f"crops in mode '{mode}'; crop by a Slice before it")
    for size, *sides in zip(call.shape, before, after, strict=True):
        if mode != "edge" and max(sides) > (size - 1 if mode == "reflect" else size):
            raise ShapeError(f"pads {list(before + after)} in mode '{mode}' exceed shape {list(call.shape)}")
    check_entries(prod(size + b + a for size, b, a in zip(call.shape, before, after, strict=True)))
    widths = list(zip(before, after, strict=True))
    return choose(np.pad(entries_of(call.shape), widths, mode=mode))


def _pads(call: Call) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The amounts before and after each axis."""
    pads = call.integers("pads", 1) or []
    rank = len(call.shape)
    listed = call.constant(3)
    axes = list(range(rank)) if listed is None else [int(axis) for axis in np.ravel(listed)]
    normal_axes(axes, rank)
    if len(pads) != 2 * len(axes):
        raise ShapeError(f"{len(pads)} pads do not fit a value of shape {list(call.shape)}")
    before, after = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        before[axis % rank], after[axis % rank] = pads[place], pads[place + len(axes)]
    return tuple(before), tuple(after)


def slice_value(call: Call) -> list[Operator]:
    """Slice with constant starts, ends, axes and steps."""
    call.require_variable_first()
    starts, ends = call.integers("starts", 1) or [], call.integers("ends", 2) or []
    axes = call.integers("axes", 3) or list(range(len(starts)))
    steps = call.integers("steps", 4) or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise ConversionError("its starts, ends, axes and steps do not fit together")
    normal_axes(axes, len(call.shape))
    cut = [slice(None)] * len(call.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # A negative end counts from the back. With a negative step, an end before the first entry includes that entry.
        stop = None if step < 0 and end < -call.shape[axis] else end
        cut[axis] = slice(start, stop, step)
    return choose(entries_of(call.shape)[tuple(cut)])


def gather(call: Call) -> list[Operator]:
    """Gather with constant indices."""
    call.require_variable_first()
    index = call.needed(1, "index")
    axis = normal_axis(call.attribute("axis", 0), len(call.shape))
    size = call.shape[axis]
    if index.dtype.kind != "i":
        raise ConversionError("its index must consist of integers")
    if index.size and not -size <= index.min() <= index.max() < size:
        raise ShapeError(f"its index runs from {index.min()} to {index.max()}, but axis {axis} has length {size}")
    check_entries(prod(call.shape) // max(size, 1) * index.size)
    return choose(np.take(entries_of(call.shape), index, axis=axis))


def split(call: Call) -> list[list[Operator]]:
    """The operators of every output of Split."""
    call.require_variable_first()
    axis = normal_axis(call.attribute("axis", 0), len(call.shape))
    size, count = call.shape[axis], len(call.node.output)
    sizes = call.integers("split", 1)
    if sizes is None:
        if call.attribute("num_outputs", count) != count or (call.opset < 18 and size % count):
            raise ShapeError(f"cannot split axis {axis} of length {size} into {count} parts")
        part = -(-size // count)
        sizes = [min(part, size - start) for start in range(0, part * count, part)]
    if len(sizes) != count or sum(sizes) != size or min(sizes) < 0:
        raise ShapeError(f"cannot split axis {axis} of length {size} into parts of length {sizes}")
    parts = np.split(entries_of(call.shape), np.cumsum(sizes)[:-1], axis=axis)
    return [choose(part) for part in parts]


def expand(call: Call) -> list[Operator]:
    """Expand to a constant shape by broadcasting."""
    call.require_variable_first()
    wanted = tuple(int(size) for size in np.ravel(call.needed(1, "shape")))
    if min(wanted, default=1) < 1:
        raise ShapeError(f"cannot expand {list(call.shape)} to {list(wanted)}")
    try:
        target = np.broadcast_shapes(call.shape, wanted)
    except ValueError:
        raise ShapeError(f"cannot expand {list(call.shape)} to {list(wanted)}") from None
    if target == call.shape:
        return []
    check_entries(prod(target))
    return choose(np.broadcast_to(entries_of(call.shape), target))


def tile(call: Call) -> list[Operator]:
    """Tile with a constant number of repeats along each axis."""
    call.require_variable_first()
    repeats = [int(count) for count in np.ravel(call.needed(1, "repeats"))]
    if len(repeats) != len(call.shape) or min(repeats, default=1) < 1:
        raise ShapeError(f"repeats {repeats} do not fit a value of shape {list(call.shape)}")
    check_entries(prod(call.shape) * prod(repeats))
    return choose(np.tile(entries_of(call.shape), repeats))


def depth_to_space(call: Call) -> list[Operator]:
    """DepthToSpace: blocks of channels become blocks of pixels."""
    block, mode = call.attribute("blocksize", 0), call.attribute("mode", "DCR")
    if len(call.shape) != 4 or block < 1 or call.shape[1] % (block * block) or mode not in ("DCR", "CRD"):
        raise ShapeError(f"blocks of {block} in mode '{mode}' do not fit a value of shape {list(call.shape)}")
    n, channels, height, width = call.shape
    depth = channels // (block * block)
    result = (n, depth, height * block, width * block)
    if mode == "DCR":
        return [Reshape((n, block, block, depth, height, width)), Transpose((0, 3, 4, 1, 5, 2)), Reshape(result)]
    return [Reshape((n, depth, block, block, height, width)), Transpose((0, 1, 4, 2, 5, 3)), Reshape(result)]


def space_to_depth(call: Call) -> list[Operator]:
    """SpaceToDepth: blocks of pixels become blocks of channels."""
    block = call.attribute("blocksize", 0)
    if len(call.shape) != 4 or block < 1 or call.shape[2] % block or call.shape[3] % block:
        raise ShapeError(f"blocks of {block} do not fit a value of shape {list(call.shape)}")
    n, depth, height, width = call.shape
    rows, columns = height // block, width // block
    return [
        Reshape((n, depth, rows, block, columns, block)),
        Transpose((0, 3, 5, 1, 2, 4)),
        Reshape((n, depth * block * block, rows, columns)),
    ]
