"""The questions of every preset: one or two perturbations each, with realistic ranges.

Places and distances are shares of the image, so a preset fits images of any size. Solves nothing.
"""

from dataclasses import dataclass
from difflib import get_close_matches

from ..errors import OptionError


@dataclass(frozen=True)
class PresetQuestion:
    """One question: its name, and the specs of its perturbations.

    A spec holds words in braces: {dx} and {dy} are a tenth of the image's width and height, at least one pixel. For a
    rectangle of a quarter of the width and height, {w} and {h} are its sides; it lies at {left}, {top}, in the middle
    at {centre}, {middle}, or at {right}, {bottom}.
    """

    name: str
    templates: tuple[str, ...]

    def specs(self, height: int, width: int) -> tuple[str, ...]:
        """The specs for an image of this size.

        >>> PRESETS["dirt"].questions[0].specs(28, 28)
        ('occlude:x=10,y=10,w=7,h=7,colour=black:0..1',)
        """
        w, h = max(1, width // 4), max(1, height // 4)
        words = {
            "dx": max(1, round(width / 10)), "dy": max(1, round(height / 10)), "w": w, "h": h,
            "left": width // 8 if width >= 8 else 0, "top": height // 8 if height >= 8 else 0,
            "centre": (width - w) // 2, "middle": (height - h) // 2,
            "right": width - w - width // 8, "bottom": height - h - height // 8,
        }  # fmt: skip
        return tuple(template.format(**words) for template in self.templates)


@dataclass(frozen=True)
class Preset:
    """A list of questions under one name; `text` names their subject."""

    name: str
    text: str
    questions: tuple[PresetQuestion, ...]


def _questions(**templates: tuple[str, ...]) -> tuple[PresetQuestion, ...]:
    return tuple(PresetQuestion(name.replace("_", "-"), texts) for name, texts in templates.items())


_ALL = (
    Preset(
        "light",
        "another time of day, another lamp, shadows",
        _questions(
            brightness=("brightness:-0.2..0.2",),
            contrast=("contrast:pivot=mean:-0.5..0.5",),
            brightness_and_contrast=("brightness:-0.1..0.1", "contrast:pivot=mean:-0.3..0.3"),
            shadow_from_the_left=("shadow:side=left,at=0.5,soft=0.1:0..0.7",),
            shadow_from_the_top=("shadow:side=top,at=0.5,soft=0.1:0..0.7",),
            light_from_a_side=("field:kind=x:-0.2..0.2", "field:kind=y:-0.2..0.2"),
            vignette=("field:kind=radial,mode=times:-0.5..0",),
            saturation=("saturation:-1..0.5",),
        ),
    ),
    Preset(
        "weather",
        "haze, fog, dusk, rain",
        _questions(
            haze=("haze:colour=white:0..0.5",),
            grey_fog=("haze:colour=0.5:0..0.5",),
            dusk=("darkness:0..0.3", "contrast:pivot=mean:-0.5..0"),
            haze_at_dusk=("haze:colour=0.5:0..0.3", "darkness:0..0.2"),
            rain=("motion:dx=0,dy=5:0..1", "haze:colour=white:0..0.3"),
            low_sun=("haze:colour=1/0.8/0.5:0..0.4",),
        ),
    ),
    Preset(
        "camera",
        "focus, motion, and where the camera points",
        _questions(
            out_of_focus=("blur:sigma=1.5:0..1",),
            out_of_focus_and_brighter=("blur:sigma=1.5:0..1", "brightness:-0.1..0.1"),
            moved_sideways=("motion:dx=5,dy=0:0..1",),
            moved_upwards=("motion:dx=0,dy=5:0..1",),
            aimed_to_the_left=("translate:dx={dx}",),
            aimed_to_the_top=("translate:dy={dy}",),
            aimed_to_the_left_and_brighter=("translate:dx={dx}", "brightness:-0.1..0.1"),
            rotated=("rotate:-10..10",),
            scaled=("scale:0.9..1.1",),
            sheared=("shear:axis=x:-0.1..0.1",),
            shifted=("shift:dx={dx},dy={dy}",),
            rotated_and_brighter=("rotate:-5..5", "brightness:-0.1..0.1"),
        ),
    ),
    Preset(
        "dirt",
        "spots on the lens or on the object, and smears",
        _questions(
            dark_spot=("occlude:x={centre},y={middle},w={w},h={h},colour=black:0..1",),
            bright_spot=("occlude:x={centre},y={middle},w={w},h={h},colour=white:0..1",),
            grey_spot_at_the_top=("occlude:x={left},y={top},w={w},h={h},colour=0.5:0..1",),
            two_spots=(
                "occlude:x={left},y={top},w={w},h={h},colour=0.5:0..1",
                "occlude:x={right},y={bottom},w={w},h={h},colour=0.5:0..1",
            ),
            spot_and_film=(
                "occlude:x={centre},y={middle},w={w},h={h},colour=0.5:0..1", "haze:colour=0.5:0..0.3",
            ),
            smear=("blur:sigma=2:0..1", "haze:colour=0.5:0..0.3"),
        ),
    ),
)  # fmt: skip

PRESETS = {preset.name: preset for preset in _ALL}


def find_preset(name: str) -> Preset:
    """The preset of this name; OptionError with the list of all.

    >>> find_preset("wether")
    Traceback (most recent call last):
    steadygaze.errors.OptionError: preset 'wether' is not known; expected light, weather, camera, dirt. Did you mean \
weather?
    """
    if name not in PRESETS:
        near = get_close_matches(str(name).lower(), PRESETS, n=1)
        guess = f". Did you mean {near[0]}?" if near else ""
        raise OptionError(f"preset {name!r} is not known; expected {', '.join(PRESETS)}{guess}")
    return PRESETS[name]
