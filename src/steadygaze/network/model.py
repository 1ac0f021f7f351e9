"""From a model file to a `Model`: the graph, its affine maps, its replay, and what names and identifies it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steadygaze.errors import ModelError
from steadygaze.network.from_onnx import build_graph, input_dims
from steadygaze.network.graph import Graph
from steadygaze.network.layout import choose_layout, make_preprocessing
from steadygaze.network.lower import Chain, LaterChain, check_chain
from steadygaze.network.onnx_file import one_line, read_onnx
from steadygaze.network.replay import Replay


@dataclass(frozen=True, eq=False)
class Model:
    """A classifier of images (C, H, W) with pixels in [0,1], read from a file.

    `graph` computes in float64, `chain` is the same function as affine maps with ReLUs between (made on first use: they
    are large), `replay` runs the file itself in float32. `notes` are sentences that a user should see.
    """

    graph: Graph
    chain: Chain
    path: Path
    name: str
    sha256: str
    notes: tuple[str, ...]
    replay: Replay

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Shape (C, H, W) of the images that it takes."""
        return self.graph.input_shape

    @property
    def classes(self) -> int:
        """Number of logits."""
        return self.graph.classes


def read_model(
    path: str | Path,
    *,
    image_shape: Sequence[int] | None = None,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    scale: float = 1.0,
) -> Model:
    """Read an ONNX classifier; weights are lifted to float64 exactly.

    The model is taken to expect (pixel·scale − mean)/std, with one mean and std or one for each channel; that becomes
    part of the graph, so that images always have pixels in [0,1]. `image_shape` (C, H, W) is needed for flat inputs
    that are not a grey or RGB square, and for inputs whose size the file leaves open. Raises ModelError or OptionError.
    """
    try:
        return _read(Path(path), image_shape, mean, std, scale)
    except ModelError as error:  # names inside the file may hold anything, line breaks too
        raise ModelError(one_line(error, limit=800)) from None
    except UnicodeError:
        raise ModelError(f"{Path(path).name}: holds names that are not text; the file is damaged") from None


def _read(
    path: Path,
    image_shape: Sequence[int] | None,
    mean: float | Sequence[float] | None,
    std: float | Sequence[float] | None,
    scale: float,
) -> Model:
    file = read_onnx(path)
    layout = choose_layout(input_dims(file)[1], image_shape, path.name)
    preprocessing = make_preprocessing(mean, std, scale, layout.image_shape[0])
    graph = build_graph(file, layout, preprocessing)
    try:
        check_chain(graph)
    except ModelError as error:
        raise ModelError(f"{path.name}: {error}") from None
    replay = Replay(file, layout, preprocessing)
    return Model(graph, LaterChain(graph, path.name), path, path.stem, file.sha256, graph.notes, replay)
