"""Bias field: x + theta f or x (1 + theta f), where f is smooth or comes from a file. Keeps the expected map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..base import FloatArray, Ramp
from ..fields import NumberFile

KINDS = {
    "x": lambda x, y: x,
    "y": lambda x, y: y,
    "xy": lambda x, y: x * y,
    "radial": lambda x, y: 0.5 * (x * x + y * y),
    "x2": lambda x, y: x * x,
    "y2": lambda x, y: y * y,
}


@dataclass(frozen=True, kw_only=True)
class Field(Ramp):
    """Add theta times a field f, or multiply by 1 + theta f, by default for theta in 0..1.

    kind: x, y, xy (x times y), radial ((x² + y²) / 2), x2 (x²) or y2 (y²); x runs from -1 at the left to 1 at the right
    edge, y from -1 at the top to 1 at the bottom. file: an NPY array (H, W) or (C, H, W) instead. mode: add or times.

    >>> Field(kind="x").slope(np.ones((1, 1, 3))), Field(kind="radial", mode="times").spec
    (array([[-1.,  0.,  1.]]), 'field:kind=radial,mode=times')
    """

    keyword: ClassVar[str] = "field"
    example: ClassVar[str] = "field:kind=radial,mode=times:-0.5..0.5"
    why_no_wider: ClassVar[str] = "beyond ±1 the field exceeds the range of the pixels"

    kind: str = ""
    file: NumberFile | None = None
    mode: str = "add"

    @property
    def name(self) -> str:
        source = f"{self.kind}" if self.file is None else self.file.short
        return f"{'added' if self.mode == 'add' else 'multiplied'} field {source}"

    @property
    def reads_image(self) -> bool:
        return self.mode == "times"

    def check_fields(self) -> None:
        if self.mode not in ("add", "times"):
            self.refuse(f"mode is {self.mode[:80]!r}; expected add or times")
        if (self.file is None) == (not self.kind):
            self.refuse("give either kind or file, for example kind=x")
        if self.file is None and self.kind not in KINDS:
            self.refuse(f"kind is {self.kind[:80]!r}; expected one of {', '.join(KINDS)}, or file=FILE")

    def check(self, shape: tuple[int, int, int]) -> None:
        if self.file is not None:
            self.check_size("file", self.file.short, self.file.values.shape, shape)
            self.check_reach("file", self.file.short, self.file.values)

    def slope(self, image: FloatArray) -> FloatArray:
        field = self._field(image)
        return field if self.mode == "add" else field * image

    def _field(self, image: FloatArray) -> FloatArray:
        if self.file is not None:
            return self.file.values
        y, x = (np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(1) for count in image.shape[-2:])
        return np.broadcast_to(KINDS[self.kind](x, y[:, None]), image.shape[-2:])
