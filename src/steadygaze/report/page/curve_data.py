"""Images that are curved in theta as data and script of a page: the input of `assets/curve.js`.

The page looks pixels, expected maps and masks up as `Moved.images` does, and adds the changes of light.
"""

from typing import Any

import numpy as np

from ...perturbation.curved import Curve
from ...perturbation.lights import CurvedLight, Light

Arrays = dict[str, tuple[str, np.ndarray]]
"""Arrays by name, each with the type (see `KINDS` in `network_data`) that it is stored as."""


def stored_numbers(curve: Curve) -> int:
    """How many numbers describe the image in a page."""
    total = curve.x0.size
    for light in curve.lights:
        total += light.constant.size
        if not light.is_fixed:
            total += sum(2 * matrix.nnz + curve.x0.size for matrix in light.operators)
    return total


def describe_curve(curve: Curve, arrays: Arrays) -> dict[str, Any]:
    """The image as plain data; its arrays go into `arrays`."""
    arrays["pixels"] = ("f8", curve.x0)
    return {
        "outside": "zero" if curve.moved is None else curve.moved.outside,
        "lights": [_describe_light(light, number, arrays) for number, light in enumerate(curve.lights)],
    }


def _describe_light(light: Light, number: int, arrays: Arrays) -> dict[str, Any]:
    """The parts of a change of light: constants, and how they depend on the moved pixels."""
    parts = []
    for place in range(len(light.constant)):
        name = f"light{number}.{place}"
        arrays[f"{name}.constant"] = ("f8", light.constant[place])
        if not light.is_fixed:
            matrix = light.operators[place]
            arrays[f"{name}.rows"] = ("u4", matrix.indptr)
            arrays[f"{name}.columns"] = ("u4", matrix.indices)
            arrays[f"{name}.weights"] = ("f8", matrix.data)
        parts.append(name)
    return {"axis": light.axis, "parts": parts, "isFixed": light.is_fixed}


def curve_script(curve: Curve | None) -> str:
    """The functions of theta that the page calls: coordinates of every movement, and factors of every light."""
    moved = () if curve is None or curve.moved is None else curve.moved.movements
    lights = () if curve is None else curve.lights
    movements = [f"[{axis}, {movement.script}]" for axis, movement in moved]
    factors = [one.family.script if isinstance(one.family, CurvedLight) else "(t) => [t]" for one in lights]
    return f"const SgMovements = [{', '.join(movements)}], SgFactors = [{', '.join(factors)}];"
