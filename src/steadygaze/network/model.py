"""Reads a model file into a `Model`, and checks that the graph, its linear steps and the file itself agree.

The check compares the graph with onnxruntime on the image, on noise around it and on plain noise, and with its own
linear steps in float64. A model that fails is refused. The check samples: it finds a misread operator, but may miss a
bug that needs a special image. `LazyChain` compares the affine maps with the graph when it makes them.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..errors import ModelError
from .from_onnx import build_graph
from .graph import Chain, Graph, LazyChain, compare_layers, preactivations
from .layout import Layout, PerChannel, Preprocessing, ReadOptions, choose_layout
from .onnx_file import OnnxFile, input_dims, one_line, parse_onnx, read_onnx
from .operators import Array
from .replay import Replay, estimate_rounding, explain_difference
from .torch_objects import TorchModule, is_module, not_a_model

SEED = 20240
RANDOM_IMAGES = 16
NOISE = 0.25  # amplitude of the noise around the image
TRACED_NUMBERS = 2**23  # layers are compared on as many images as have this many neurons in total, at least on two

# Bounds of an image's tolerance: at least this share of its own largest logit, at most that share of the largest logit
# of all images. The estimate is first-order: neglected terms must not refuse a model, and visible differences must not
# pass.
LEAST_SHARE = 1e-5
MOST_SHARE = {2.0**-24: 1e-3, 2.0**-11: 5e-2, 2.0**-8: 2e-1}

# On the bundled networks and two from other sources, the largest rounding error of an image is at most 1/20 of the
# estimate, and the median over images at most 1/32 of the median estimate. So the median difference must stay below a
# tenth of the median tolerance (or below LEAST_SHARE).
USUAL_SHARE = 0.1

# The steps repeat the graph's sums in float64 in another order: n·2⁻⁵³ for n ≤ 10⁵ terms.
STEP_ROUNDING = 1e-11

# Logits that differ by more than this share of the largest one are reported as different, even if rounding explains it.
SAME_SHARE = 1e-2


@dataclass(frozen=True, eq=False)
class Model:
    """A classifier of images (C, H, W) with pixels in [0,1], read from a file.

    `graph` computes in float64, `chain` is the same function as affine maps with layers of neurons between (made on
    first use, because they are large), `replay` runs the file itself. `notes` are sentences for the user. `content`
    holds the bytes of an exported torch module; it is None for a model file. `output` names the output that was chosen
    among several. compare_module: raises ModelError if the torch module itself differs on a domain, given its ends and
    the image at a theta; None for a model file.
    """

    graph: Graph
    chain: Chain
    path: Path
    name: str
    sha256: str
    notes: tuple[str, ...]
    replay: Replay
    content: bytes | None = None
    output: str | None = None
    compare_module: Callable[[Array, Array, Callable[[Array], Array]], None] | None = None

    def __repr__(self) -> str:
        return f"Model({self.name}, images {'×'.join(map(str, self.input_shape))}, {self.classes} classes)"

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Shape (C, H, W) of its images."""
        return self.graph.input_shape

    @property
    def classes(self) -> int:
        """Number of logits."""
        return self.graph.classes

    def compare_on(self, low: Array, high: Array, image: Callable[[Array], Array]) -> None:
        """Raise ModelError if the model is an exported torch module that differs from the module itself on a domain.

        The domain goes from low to high (d,); image: theta (d,) → image (C, H, W).
        """
        if self.compare_module is not None:
            self.compare_module(low, high, image)


class RecentModels:
    """A cache of the models read last: reading the same bytes again, with the same options, returns the same object.

    A model holds everything that depends on the network alone (graph, affine maps, onnxruntime session), so a loop over
    images makes these once.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._models: OrderedDict[Hashable, Model] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable, make: Callable[[], Model]) -> Model:
        """The model with this key, made now unless it is among the last ones."""
        with self._lock:
            found = self._models.get(key)
        found = make() if found is None else found
        with self._lock:
            self._models[key] = found
            self._models.move_to_end(key)
            while len(self._models) > self.most:
                self._models.popitem(last=False)
        return found

    def clear(self) -> None:
        """Forget all models."""
        with self._lock:
            self._models.clear()


_recent = RecentModels(most=4)


def forget_models() -> None:
    """Free the models that `read_model` keeps, unless something else holds them."""
    _recent.clear()


def read_model(
    path: str | Path | TorchModule,
    *,
    image_shape: Sequence[int] | None = None,
    mean: PerChannel = None,
    std: PerChannel = None,
    scale: float = 1.0,
    output: str | None = None,
) -> Model:
    """Read an ONNX classifier, or a torch module in eval mode; weights are lifted to float64 exactly.

    `output` names the output with the logits; a file with several needs it. The graph starts with
    (pixel·scale − mean)/std, one mean and std for all channels or one each, so images always have pixels in [0,1]. Flat
    inputs other than grey or RGB squares, and inputs of open size, need `image_shape` (C, H, W). A module needs it too:
    it is exported for one image of that shape, and compared with torch's autograd. Reads and hashes the file every
    time; if its bytes are those of one of the last models read, returns that model. Raises ModelError or OptionError.
    """
    options = ReadOptions(mean, std, scale, output)
    if is_module(path):
        from .torch_module import read_module  # noqa: PLC0415 (imports this module)

        return read_module(path, image_shape=image_shape, options=options)
    if not isinstance(path, str | Path):
        raise ModelError(not_a_model(path))
    return model_from_file(Path(path), image_shape, options)


def model_from_file(
    path: Path, image_shape: Sequence[int] | None, options: ReadOptions, *, fills_open: bool = True
) -> Model:
    """The model of an ONNX file; see `read_model`. `fills_open`: whether `image_shape` sets open dimensions."""
    return _read(lambda: read_onnx(path, options.output), path, image_shape, options, fills_open=fills_open)


def model_from_bytes(content: bytes, name: str, image_shape: Sequence[int], options: ReadOptions) -> Model:
    """The model of an ONNX file given as bytes, which the model keeps; messages use `name` as the file's name."""
    path = Path(name)
    model = _read(lambda: parse_onnx(content, path, options.output), path, image_shape, options)
    return replace(model, content=content, name=name)


def _read(
    read: Callable[[], OnnxFile],
    path: Path,
    image_shape: Sequence[int] | None,
    options: ReadOptions,
    *,
    fills_open: bool = True,
) -> Model:
    try:
        file = read()
        layout = choose_layout(input_dims(file)[1], image_shape, path.name, fills_open=fills_open)
        preprocessing = options.preprocessing(layout.image_shape[0])
        key = (path, file.sha256, file.output, layout, *preprocessing.mean, *preprocessing.std, preprocessing.scale)
        return _recent.find(key, lambda: _make_model(file, layout, preprocessing))
    except ModelError as error:  # names inside the file may contain anything, even line breaks
        raise type(error)(one_line(error, limit=800)) from None
    except UnicodeError:
        raise ModelError(f"{path.name}: holds names that are not text; the file is damaged") from None


def _make_model(file: OnnxFile, layout: Layout, preprocessing: Preprocessing) -> Model:
    graph, path = build_graph(file, layout, preprocessing), file.path
    replay = Replay(file, layout, preprocessing)
    output = file.output if file.is_chosen else None
    chain = LazyChain(graph, path.name)
    return Model(graph, chain, path, path.stem, file.sha256, graph.notes, replay, output=output)


@dataclass(frozen=True)
class Agreement:
    """How far the logits of graph and file differ: the largest difference, its tolerance, the number of images.

    `scale` is the largest logit; `chain_difference` is the largest difference between graph and linear steps, relative
    to the magnitude of their layer. relative_difference is the largest difference as a share of the largest logit of
    its own image; relative_rounding is the share that rounding in `float_type` can explain there (None: a value leaves
    the range of the type). label and replayed_label are the classes that graph and file predict for the image. In
    results stored by earlier versions the last four may be None.
    """

    difference: float
    tolerance: float
    scale: float
    chain_difference: float
    images: int
    float_type: str = "float32"
    relative_difference: float | None = None
    relative_rounding: float | None = None
    label: int | None = None
    replayed_label: int | None = None

    @property
    def sentence(self) -> str:
        """How well the model file and the graph agree, in one or two readable sentences."""
        run = f"The model file, run by onnxruntime in {self.float_type}, gave"
        if self.relative_difference is None:
            return f"{run} the same logits within {_two_digits_up(self.difference)} on {self.images} images."
        share = f"{_two_digits_up(self.relative_difference)} of an image's largest logit"
        rounding = f"rounding in {self.float_type} can account for"
        if self.relative_difference <= SAME_SHARE:
            allowed = "more" if self.relative_rounding is None else f"up to {self.relative_rounding:.2g}"
            text = f"{run} the same logits on {self.images} images, within {share} ({rounding} {allowed})."
        else:
            text = f"{run} different logits on {self.images} images: they differ by up to {share}; {rounding} that."
        if self.label != self.replayed_label:
            text += f" For the image itself it predicts class {self.replayed_label}, not {self.label}."
        return text


def check_agreement(model: Model, image: Array, farthest: Sequence[Array] = ()) -> Agreement:
    """Compare the model's graph with onnxruntime and with its linear steps; `image` (C, H, W) with pixels in [0,1].

    `farthest` are images at ends of the domain, compared too. Every logit must be within its image's tolerance: the
    effect of rounding in the file's float type, at least 1e-5 of the image's own largest logit, and at most 1e-3 of
    the largest logit of all images (more for half precision). The median of the differences must be within a tenth of
    the median tolerance. Raises ModelError if file and graph disagree or a logit is not finite, InternalError if graph
    and steps disagree. The random images are always the same.
    """
    images = np.concatenate([sample_images(image), *(one[None] for one in farthest)])
    # Comparing all layers of a large network takes much time and memory: a few images are enough.
    few = images[: max(2, TRACED_NUMBERS // max(1, model.graph.neurons))]
    layers, first = model.graph.trace(few)
    ours = np.concatenate([first, model.graph.logits(images[len(few) :])])
    theirs = model.replay.logits(images)
    name = model.path.name
    _refuse_infinite(model, images, layers, ours, theirs)
    if ours.shape != theirs.shape:
        raise ModelError(f"{name}: gives {theirs.shape[1]} logits in onnxruntime, but {ours.shape[1]} here")
    steps = preactivations(model.graph, few.reshape(len(few), -1))
    what = f"{name}: graph and linear steps"
    chain_difference = compare_layers(model.graph, few, [*layers, first], steps, what, rounding=STEP_ROUNDING)
    differences = np.abs(ours - theirs).max(axis=1)
    scales = np.maximum(np.abs(ours), np.abs(theirs)).max(axis=1)
    scale = float(np.abs(ours).max())
    shares = np.divide(differences, scales, out=np.zeros(len(images)), where=scales > 0.0)
    worst = int(np.argmax(shares))
    effects = np.zeros(len(images))
    # If no image needs more than the least tolerance, one estimate is enough: for the reported image.
    is_close = differences <= LEAST_SHARE * scales
    needed = {worst, *np.flatnonzero(~is_close)} if (differences <= LEAST_SHARE * scale).all() else range(len(images))
    for number in needed:
        effects[number] = estimate_rounding(model.graph, images[number].ravel(), model.replay.float_type).effect
    most = MOST_SHARE[model.replay.unit_roundoff] * scale
    tolerances = np.clip(effects, LEAST_SHARE * scales, most)
    usual = max(LEAST_SHARE * scale, USUAL_SHARE * float(np.median(np.clip(effects, LEAST_SHARE * scale, most))))
    if not np.median(differences) <= usual:
        # Rounding varies between images; a small difference on most of them means a misread number.
        tolerances = np.minimum(tolerances, usual)
    _refuse_beyond(model, images, differences, tolerances, scales)
    allowed = max(effects[worst] / scales[worst], LEAST_SHARE) if scales[worst] > 0.0 else 0.0
    largest = int(np.argmax(differences))
    return Agreement(
        difference=float(differences[largest]),
        tolerance=float(tolerances[largest]),
        scale=scale,
        chain_difference=chain_difference,
        images=len(images),
        float_type=model.replay.float_type.name,
        relative_difference=float(shares[worst]),
        relative_rounding=float(allowed) if np.isfinite(allowed) else None,
        label=int(np.argmax(ours[0])),
        replayed_label=int(np.argmax(theirs[0])),
    )


def _refuse_infinite(model: Model, images: Array, layers: Sequence[Array], ours: Array, theirs: Array) -> None:
    """Raise ModelError if a logit (B, K) is NaN or infinite in float64, or in the file's own float type."""
    name, kind = model.path.name, model.replay.float_type
    for number, values in enumerate([*layers, ours], start=1):
        if not np.isfinite(values).all():
            where = f"the inputs of ReLU layer {number}" if number <= len(layers) else "the logits"
            raise ModelError(
                f"{name}: {where} are NaN or infinite in float64; check the weights before it, and mean, std and scale"
            )
    is_bad = ~np.isfinite(theirs).all(axis=1)
    if not is_bad.any():
        return
    worst = int(np.argmax(is_bad))
    cause = explain_difference(model.graph, images[worst].ravel(), kind, np.inf)
    raise ModelError(
        f"{name}: onnxruntime, in {kind.name}, gives NaN or infinite logits on {which_image(worst)}, where float64 "
        f"gives logits up to {np.abs(ours[worst]).max():.3g}"
        + (f": {cause}. {_FINER}" if cause else ". Check the operators of the file; nothing is verified")
    )


_FINER = (
    "The model file's own arithmetic is too coarse to check how the file was read, so nothing is verified. Export the "
    "model in float64, or rescale its weights"
)


def _refuse_beyond(model: Model, images: Array, differences: Array, tolerances: Array, scales: Array) -> None:
    """Raise ModelError if a difference (B,) exceeds its tolerance or is NaN."""
    worst = int(np.argmax(differences - tolerances))
    if differences[worst] <= tolerances[worst]:
        return
    found = (
        f"{model.path.name}: onnxruntime and the graph read from the file disagree by {differences[worst]:.3g} on "
        f"{which_image(worst)} (logits up to {scales[worst]:.3g}, tolerance {tolerances[worst]:.2g})"
    )
    pixels = images[worst].ravel()
    cause = explain_difference(model.graph, pixels, model.replay.float_type, float(differences[worst]))
    if cause:
        raise ModelError(f"{found}: {cause}. {_FINER}")
    raise ModelError(
        f"{found}; nothing is verified. Export the model again with simpler operators, and report the file"
    )


def which_image(number: int) -> str:
    """The name of an image of the comparison, for messages."""
    if number == 0:
        return "the given image"
    return f"random image {number}" if number <= RANDOM_IMAGES else "an image at an end of the domain"


def sample_images(image: Array) -> Array:
    """The image itself, then fixed noise around it and plain noise: (1 + RANDOM_IMAGES, C, H, W), pixels in [0,1]."""
    generator = np.random.default_rng(SEED)
    noise = generator.random((RANDOM_IMAGES, *image.shape))
    near = np.clip(image + NOISE * (2 * noise[::2] - 1), 0.0, 1.0)
    return np.concatenate([image[None], near, noise[1::2]])


def _two_digits_up(number: float) -> str:
    """A number with two digits, rounded up.

    >>> _two_digits_up(1.01e-7), _two_digits_up(0.5), _two_digits_up(0.0)
    ('1.1e-07', '0.5', '0')
    """
    if number <= 0.0 or not math.isfinite(number):
        return f"{number:g}"
    nearest = float(f"{number:.1e}")
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    return f"{nearest if nearest >= number else nearest + step:.2g}"
