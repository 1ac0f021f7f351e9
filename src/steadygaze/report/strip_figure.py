"""The figure of one parameter: margin and inconsistency along it, and a strip of images, actual and expected maps."""

import numpy as np
from matplotlib.figure import Figure

from ..results.domain_result import DomainResult
from ..tolerances import MAX_MAP_PARAMETERS
from .curves import CURVES, draw_curves
from .exhibits import Exhibit
from .extent import extent_text
from .files import finish
from .lines import line_through
from .marks import NUMBERS, mark_along
from .sheet import Sheet
from .strip import HEIGHT, draw_strip
from .titles import HEADER, attention_text, delta_text, subject_text, write_header
from .values import profile
from .wording import number

WIDTH, LEFT, RIGHT = 13.0, 0.4, 0.45
NAMES = 1.5


def strip_figure(result: DomainResult, axis: int, thetas: np.ndarray) -> Figure:
    """Thetas (N, d) that differ along one axis alone; the curves are there for up to three parameters."""
    domain = result.problem.perturbed.domain
    name, ends = domain.names[axis], (float(domain.low[axis]), float(domain.high[axis]))
    exhibits = [Exhibit(f"{_short(name)} {_value(theta[axis])}", result.at(theta)) for theta in thetas]
    has_curves = domain.dimension <= MAX_MAP_PARAMETERS
    upper = NUMBERS + CURVES + 0.65 if has_curves else 0.0
    sheet = Sheet(WIDTH, HEADER + upper + HEIGHT + 0.2)
    facts = [extent_text(result), delta_text(result), attention_text(result.problem)]
    write_header(sheet, f"{subject_text(result.problem)}: along {name}{_held(result, axis, thetas[0])}", facts)
    if has_curves:
        curves = profile(result.answer, line_through(result.answer, axis, thetas[0]))
        width = WIDTH - LEFT - NAMES - RIGHT
        top = HEADER + NUMBERS
        draw_curves(
            sheet, curves, result.answer.delta, LEFT, top, NAMES, width, name, ends, is_measured=result.is_measured
        )
        mark_along(sheet, thetas[:, axis].tolist(), ends, LEFT + NAMES, HEADER, top + CURVES - 0.15, width)
    draw_strip(sheet, result, exhibits, LEFT, HEADER + upper, WIDTH - LEFT - 0.3)
    return finish(sheet.figure)


def _held(result: DomainResult, axis: int, theta: np.ndarray) -> str:
    """The values of the other parameters, for the title."""
    names = result.problem.perturbed.domain.names
    others = [f"{names[other]} = {_value(theta[other])}" for other in range(len(names)) if other != axis]
    return f", at {', '.join(others)}" if others else ""


def _short(name: str) -> str:
    """The first word of the name of a parameter: it stands above every image."""
    return name.partition(" ")[0]


def _value(value: float) -> str:
    return number(float(value), 3).replace("-", "−")
