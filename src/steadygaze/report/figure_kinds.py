"""The kinds of figures by name: the content, the options and the results of each, and the function that draws it.

The functions are imported when they are used, so words and options are known before matplotlib is loaded.
"""

from dataclasses import dataclass

from ..tolerances import MAX_MAP_PARAMETERS


@dataclass(frozen=True, eq=False)
class FigureKind:
    """A kind of figure: its content, the function that draws it as module:function in `figures`, options and results.

    The function takes one result, or a list if `is_of_several`, and the given options by name. takes: "map" (maps and
    refinements), "search", or "any".
    """

    shows: str
    place: str
    options: frozenset[str] = frozenset()
    takes: str = "map"
    most_parameters: int | None = MAX_MAP_PARAMETERS
    is_of_several: bool = False

    @property
    def module(self) -> str:
        """The module of the function."""
        return self.place.partition(":")[0]

    @property
    def function(self) -> str:
        """The name of the function."""
        return self.place.partition(":")[2]


KINDS: dict[str, FigureKind] = {
    "map": FigureKind("classification, attention and both on the map, with example images", "map:map_figure"),
    "path": FigureKind(
        "images and predictions along a path of combinations", "path:path_figure", frozenset(("at", "steps")),
        most_parameters=None,
    ),
    "strip": FigureKind(
        "images, actual and expected maps and inconsistency along one parameter", "strip:strip_along",
        frozenset(("at", "along", "steps")), most_parameters=None,
    ),
    "sections": FigureKind(
        "the effect of each parameter alone and of each pair, through zero and the nearest violation (of refinements)",
        "sections:sections_figure", most_parameters=None,
    ),
    "boundary": FigureKind(
        "the outermost boundaries of label and attention side by side, with images", "boundary:boundaries_figure",
        frozenset(("at",)),
    ),
    "curve": FigureKind(
        "the share that keeps its attention against every threshold, with proved bounds", "curve:curve_figure",
        most_parameters=None,
    ),
    "columns": FigureKind(
        "maps of several networks under each perturbation: columns (O), (B), (P), (T)", "columns:columns_figure",
        frozenset(("at",)), most_parameters=None, is_of_several=True,
    ),
    "tiling": FigureKind(
        "all regions with their edges, by label or pattern", "tiling:tiling_figure", frozenset(("by",)), takes="any"
    ),
    "visited": FigureKind(
        "the regions that a search visited, by phase and label", "visited:search_figure", takes="search"
    ),
}  # fmt: skip
"""All kinds of figures."""
