"""The questions of presets as combinations of a plan."""

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import OptionError
from ..presets.lists import find_preset


class PresetCombinations(NamedTuple):
    """Specs by the names of combinations, and notes on questions that cannot be asked."""

    combinations: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]


def preset_combinations(
    presets: Sequence[str], sizes: Sequence[tuple[int, ...]], known: Sequence[str]
) -> PresetCombinations:
    """The questions of presets for images of these sizes (height, width), named apart from the known combinations.

    >>> list(preset_combinations(["dirt"], [(28, 28)], []).combinations)[:2]
    ['dirt-dark-spot', 'dirt-bright-spot']
    """
    found: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    if presets and len(set(sizes)) != 1:
        raise OptionError(
            f"a preset needs images of one size, these have {len(set(sizes))}; write a plan for each size"
        )
    for text in presets:
        preset = find_preset(text)
        for question in preset.questions:
            name = f"{preset.name}-{question.name}"
            if name in known or name in found:
                raise OptionError(f"combination {name} occurs twice; leave one out")
            height, width = sizes[0]
            found[name] = question.specs(height, width)
        for question in preset.awaited:
            notes.append(f"{preset.name}-{question.name} is left out: no family {question.keywords[0]} yet")
    return PresetCombinations(found, tuple(notes))
