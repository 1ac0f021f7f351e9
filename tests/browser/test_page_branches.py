"""Networks with branches and windows in the page, without a result: values, patterns and gradients at random images."""

from collections.abc import Iterator
from importlib.resources import files

import numpy as np
import pytest

from steadygaze.network.graph import Graph, gradients, patterns, preactivations
from steadygaze.network.joins import Sum, Winner
from steadygaze.network.operators import MatMul, Relu, Reshape
from steadygaze.network.steps import ConvStep, MatrixStep, PartStep
from steadygaze.network.windows import Conv, Window
from steadygaze.report.page.network_data import Arrays, describe_layers, pack
from support.browsing import Browser, running_browser
from support.networks.branching import Builder, random_graph

SCRIPT = """
async ({ block, places, facts, image, inside }) => {
  const arrays = await SgData.unpack(block, places);
  const network = new SgNetwork({ shape: [image.length], filter: [], baseline: null, ...facts }, arrays, 0, []);
  const values = network.preactivations(Float64Array.from(image));
  network.imageAt = (given) => Float64Array.from(given);
  const { bits, onKink, doubtful } = network.pattern(values, inside);
  const lists = (arrays) => arrays.map((one) => [...one]);
  return { values: lists(values), bits: lists(bits), maps: lists(network.maps(bits, image)), onKink, doubtful };
}
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("pages")) as started:
        yield started


def run(browser: Browser, graph: Graph, image: np.ndarray, noise: float | None = None, inside: object = None) -> dict:
    """The numbers that the page computes for one image (C·H·W,); the noise is that of every neuron."""
    arrays: Arrays = {}
    facts = describe_layers(graph, arrays) | {"targets": [[[j, 1.0]] for j in range(graph.classes)]}
    if noise is not None:
        arrays["noise"] = ("f4", np.full(sum(graph.hidden), noise))
    packed, page = pack(arrays), browser.chromium.new_page()
    assets = files("steadygaze.report.page") / "assets"
    for name in ("data.js", "network.js"):
        page.add_script_tag(content=(assets / name).read_text())
    given = {"block": packed.block, "places": packed.places, "facts": facts, "image": image.tolist(), "inside": inside}
    found = page.evaluate(SCRIPT, given)
    page.close()
    return found


def compare(browser: Browser, graph: Graph, image: np.ndarray) -> None:
    found, values = run(browser, graph, image), preactivations(graph, image[None])
    for one, two in zip(found["values"], values, strict=True):
        np.testing.assert_allclose(one, two[0], atol=1e-9)
    bits = [layer[0] for layer in patterns(graph, values[:-1])]
    for one, two in zip(found["bits"], bits, strict=True):
        np.testing.assert_array_equal(one, two)
    *_, maps = gradients(graph, bits)
    np.testing.assert_allclose(found["maps"], maps, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(browser: Browser, seed: int) -> None:
    compare(browser, random_graph(seed), np.random.default_rng(seed).random(4))


def pooled_residual() -> Graph:
    """Convolutions with a residual connection, a MaxPool with padding (windows of 4 to 9 entries), and three logits."""
    rng, builder = np.random.default_rng(4), Builder((2, 6, 5))
    same = Window((3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
    convs = [Conv(rng.normal(size=(3, depth, 3, 3)), rng.normal(size=3), same) for depth in (2, 3, 3)]
    first = builder.add(Relu(), builder.add(convs[0], builder.add(Reshape((1, 2, 6, 5)), 0)))
    inner = builder.add(convs[2], builder.add(Relu(), builder.add(convs[1], first)))
    joined = builder.add(Relu(), builder.add(Sum((1, 1)), inner, first))
    places = np.pad(np.arange(90).reshape(3, 6, 5), ((0, 0), (1, 1), (1, 1)), constant_values=-1)
    windows = np.stack(
        [places[c, y : y + 3, x : x + 3].ravel() for c in range(3) for y in range(0, 6, 2) for x in range(0, 5, 2)]
    )
    index = np.array([[*row[row >= 0], *row[row < 0]] for row in windows])
    pool = builder.add(Winner(index, (1, 3, 3, 3)), joined)
    builder.add(MatMul(rng.normal(size=(27, 3)), rng.normal(size=3)), builder.add(Reshape((1, 27)), pool))
    return builder.graph()


def test_a_residual_network_with_a_maximum_over_windows(browser: Browser) -> None:
    graph = pooled_residual()
    for seed in range(3):
        compare(browser, graph, np.random.default_rng(seed).random(60))


def test_convolutions_stay_convolutions() -> None:
    graph, arrays = pooled_residual(), {}
    facts = describe_layers(graph, arrays)
    kinds = [
        step["inner"]["kind"] if step["kind"] == "part" else step["kind"] for one in facts["layers"] for step in one
    ]
    assert kinds.count("conv") == 3
    inner = [step.inner if isinstance(step, PartStep) else step for one in graph.steps for step in one]
    assert {ConvStep, MatrixStep} <= {type(step) for step in inner}
    stored = sum(array.size for name, (_, array) in arrays.items() if name.startswith(("weight", "bias")))
    assert (
        stored
        == sum(part.size for conv in inner if isinstance(conv, ConvStep) for part in (conv.weight, conv.conv.bias)) + 84
    )
    assert facts["neurons"][1] == [{"kind": "relu", "count": 90}, {"kind": "carried", "count": 90}]
    (run,) = facts["neurons"][3]
    assert run["count"] == arrays[run["sizes"]][1].sum()


def tied() -> Graph:
    """The largest of four pixels, after a ReLU."""
    builder = Builder((1, 2, 2))
    row = builder.add(Relu(), builder.add(Reshape((1, 4)), 0))
    builder.add(MatMul(np.array([[1.0, -1.0]]), np.zeros(2)), builder.add(Winner(np.arange(4)[None], (1, 1)), row))
    return builder.graph()


@pytest.mark.parametrize(
    ("image", "inside", "winner", "on_kink", "doubtful"),
    [
        ([0.5, 0.5, 0.1, 0.1], [0.4, 0.4, 0.1, 0.1], 0, 0, 0),  # equal on the whole region: the first wins
        ([0.5, 0.5, 0.1, 0.1], [0.4, 0.6, 0.1, 0.1], 1, 1, 0),  # equal only here
        ([0.5, 0.5 + 1e-12, 0.1, 0.1], [0.6, 0.4, 0.1, 0.1], 0, 1, 0),
        ([0.5, 0.5 + 1e-12, 0.1, 0.1], [0.5, 0.5 + 1e-12, 0.1, 0.1], 0, 1, 1),  # only rounding on the whole region
        ([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], 0, 0, 0),
        ([0.5, 0.6, 0.1, 0.1], [0.6, 0.5, 0.1, 0.1], 1, 0, 0),  # far from a kink, the theta itself decides
    ],
)
def test_a_point_inside_the_region_decides_what_rounding_leaves_open(
    browser: Browser, image: list, inside: list, winner: int, on_kink: int, doubtful: int
) -> None:
    found = run(browser, tied(), np.array(image), 1e-9, inside)
    assert found["bits"][1] == [int(entry == winner) for entry in range(4)]
    assert (found["onKink"], found["doubtful"]) == (on_kink, doubtful)
