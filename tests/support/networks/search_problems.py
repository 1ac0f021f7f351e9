"""Small questions for the searches: random networks on tiny images, and shapes drawn by hand.

`free_pixels` makes every pixel a separate parameter (a patch on one grey pixel), so a network on [0,1]^d is the
compound network itself, with zero in the middle or in a corner.
"""

from collections.abc import Sequence

import numpy as np

from steadygaze.budget import Budget
from steadygaze.engines.contract import RunOptions
from steadygaze.engines.search.paper_searches import search
from steadygaze.errors import ImageError
from steadygaze.network.model import Model
from steadygaze.network.operators import MatMul, Operator, Relu, Reshape
from steadygaze.network.windows import Conv, Window
from steadygaze.question import Question, make_question
from steadygaze.results.result import Result
from support.networks.layered_models import make_model, model_of
from support.networks.layered_networks import FloatLayer, crossing_layers, graph_of

SPECS: dict[int, tuple[tuple[str, ...], ...]] = {
    1: (("brightness:-0.5..0.5",), ("patch:x=0,y=0,w=2,h=1",), ("translate:dx=1:-1..1",), ("darkness",)),
    2: (
        ("brightness", "patch:x=0,y=0,w=1,h=1"),
        ("translate:dx=1", "brightness:-0.5..0.5"),
        ("patch:x=1,y=0,w=1,h=2:-0.5..0.5", "translate:dx=-1:-0.5..1"),
        ("darkness:-0.25..0.75", "patch:x=0,y=1,w=2,h=1,tone=-1"),
    ),
    3: (
        ("translate:dx=1", "patch:x=0,y=0,w=1,h=1", "brightness"),
        ("translate:dx=-1:-0.5..1", "patch:x=1,y=0,w=1,h=2:-0.5..0.5", "brightness:-0.25..0.5"),
    ),
}
GREY = (0.0, 0.0, 0.25, 0.5, 0.75, 1.0)


def random_problem(seed: int, dimension: int, **options: object) -> Question:
    """One of four kinds: an image under the paper's perturbations (dense, or convolutional), free pixels (with a line
    given twice, or once). Many kinks run through the same points. Networks that are tied at zero are drawn again."""
    kind = seed % 4
    for attempt in range(50):
        rng = np.random.default_rng([seed, dimension, attempt])
        if kind < 2:
            specs = SPECS[dimension][int(rng.integers(len(SPECS[dimension])))]
            shape = (1, 2, 2)
            layers = _layers(rng, [4, int(rng.integers(2, 4)), 3], twice=False)
            model = (
                make_model(layers, shape) if kind == 0 else convolutional(rng, (1, 2, 3) if dimension < 3 else shape)
            )
            image = rng.choice(GREY, size=model.input_shape)
        else:
            hidden = [int(n) for n in rng.integers(3, (8, 6, 5)[dimension - 1], size=rng.integers(1, 3))]
            layers = _layers(rng, [dimension, *hidden, 3], twice=kind == 2)
            model, image, specs = free_pixels(layers, in_middle=bool(rng.random() < 0.5))
        question = make_question(model, image, list(specs), **options)  # type: ignore[arg-type]
        try:
            _ = question.label
        except ImageError:
            continue
        return question
    raise AssertionError("no network without a tie")


def free_pixels(layers: Sequence[FloatLayer], *, in_middle: bool) -> tuple[Model, np.ndarray, tuple[str, ...]]:
    """A network on [0,1]^d as a compound network: theta runs over ±1/2 around grey pixels, or over 0..1 from black."""
    d = layers[0][0].shape[1]
    ends = "-0.5..0.5" if in_middle else "0..1"
    specs = tuple(f"patch:x={i},y=0,w=1,h=1:{ends}" for i in range(d))
    return make_model(layers, (1, 1, d)), np.full((1, 1, d), 0.5 if in_middle else 0.0), specs


def convolutional(rng: np.random.Generator, shape: tuple[int, int, int]) -> Model:
    """A 2×2 convolution, a ReLU, and a dense layer with three classes."""
    kernel = rng.choice([-1.0, -0.5, 0.5, 1.0, 2.0], size=(2, 1, 2, 2))
    window = Window((2, 2), (1, 1), (1, 1), (0, 0), (0, 0))
    positions = (shape[1] - 1) * (shape[2] - 1) * 2
    dense = rng.choice([-2.0, -1.0, 0.5, 1.0, 1.5], size=(positions, 3))
    operators: list[Operator] = [
        Reshape((1, *shape)),
        Conv(kernel, rng.choice([-0.5, -0.25, 0.25, 0.5], size=2), window),
        Relu(),
        Reshape((1, positions)),
        MatMul(dense, rng.choice([-0.5, 0.0, 0.5], size=3)),
    ]
    return model_of(graph_of(operators, shape))


def _layers(rng: np.random.Generator, sizes: Sequence[int], *, twice: bool) -> list[FloatLayer]:
    layers = crossing_layers(rng, sizes, rng.integers(0, 5, size=(3, sizes[0])) / 4)
    for weight, bias in layers[:-1] if twice else []:
        scale = float(rng.choice([1.0, 2.0, -1.0]))
        weight[1], bias[1] = scale * weight[0], scale * bias[0]
    return layers


def diamond(
    centre: Sequence[float], radius: float, *, height: float = 0.125, outside: bool = False
) -> list[FloatLayer]:
    """Logits (height, b) with b = ReLU(radius + height − Σ|x_i − c_i|): class 1 leads inside of Σ|x_i − c_i| < radius.

    With `outside` the sum is taken the other way round, and class 1 leads where Σ|x_i − c_i| > radius.
    """
    d, sign = len(centre), -1.0 if outside else 1.0
    middle = np.array(centre)
    first = (np.vstack([np.eye(d), -np.eye(d)]), np.concatenate([-middle, middle]))
    second = (-sign * np.ones((1, 2 * d)), np.array([sign * radius + height]))
    return [first, second, (np.array([[0.0], [1.0]]), np.array([height, 0.0]))]


def together(*networks: Sequence[FloatLayer], height: float = 0.125) -> list[FloatLayer]:
    """Two-class networks of `diamond` side by side: logits (height, b_1, b_2, …)."""
    first = (np.vstack([n[0][0] for n in networks]), np.concatenate([n[0][1] for n in networks]))
    widths = [len(n[0][1]) for n in networks]
    rows = np.zeros((len(networks), sum(widths)))
    for number, network in enumerate(networks):
        start = sum(widths[:number])
        rows[number, start : start + widths[number]] = network[1][0][0]
    second = (rows, np.concatenate([n[1][1] for n in networks]))
    last = np.vstack([np.zeros((1, len(networks))), np.eye(len(networks))])
    return [first, second, (last, np.array([height] + [0.0] * len(networks)))]


def shaped_problem(layers: Sequence[FloatLayer], **options: object) -> Question:
    """A network on [0,1]^d with zero in the middle."""
    model, image, specs = free_pixels(layers, in_middle=True)
    return make_question(model, image, list(specs), **options)  # type: ignore[arg-type]


def search_alone(question: Question, method: str, *, budget: Budget | None = None, **options: object) -> Result:
    """A search that no refinement confirms, with options that its method need not take."""
    tiling = search(question, method, budget or Budget(), RunOptions(**options))
    return Result(question, tiling, question.threshold, question.agreement)
