"""Grad-CAM and occlusion: enclosures over boxes, points, refinements, stored results, reports."""

import numpy as np
import pytest

from steadygaze import load, verify
from steadygaze.attention.masks import Mask
from steadygaze.attention.measures import Measure
from steadygaze.attention.methods import GradientMethod, Method, find_methods
from steadygaze.attention.methods.gradcam import layer_names, upsample
from steadygaze.attention.options import AttentionOptions
from steadygaze.bounds import explained
from steadygaze.bounds.bounder import Bounder
from steadygaze.bounds.explained import ENCLOSURES
from steadygaze.engines.refine.merged_answer import box_at
from steadygaze.engines.refine.pointwise import PointPasses
from steadygaze.errors import OptionError
from steadygaze.labels import Label
from steadygaze.network.graph import gradients, patterns, preactivations
from steadygaze.network.model import read_model
from steadygaze.network.node_gradients import gradients_at, values_of
from steadygaze.network.rewrites import anchored
from steadygaze.perturbation import compose, parse_spec

torch = pytest.importorskip("torch")

SHAPE, CLASSES = (2, 8, 8), 3
IMAGE = np.random.default_rng(3).random(SHAPE)
WEIGHTS = np.zeros((8, 8))
WEIGHTS[2:6, 1:5] = 1.0
KEPT = ("brightness:0..0.2", "patch:x=1,y=2,w=3,h=3:0..0.5")
MOVED = ("brightness:-0.1..0.1", "translate:dx=2:0..1.5")
SMALL_KEPT = ("brightness:0..0.05", "patch:x=1,y=2,w=3,h=3:0..0.1")
SMALL_MOVED = ("brightness:-0.02..0.02", "translate:dx=2:0..0.2")
OCCLUSIONS = ("occlusion:window=3,stride=2,baseline=0.25", "occlusion:window=4,stride=4", "occlusion:window=8,stride=1")


class Pooled(torch.nn.Module):
    """Convolution, batch normalisation, max pooling, a residual block, two dense layers."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.BatchNorm2d(4)
        self.inner = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.dense, self.last = torch.nn.Linear(64, 10), torch.nn.Linear(10, CLASSES)

    def forward(self, images):
        pooled = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.first(images))), 2)
        joined = torch.relu(pooled + self.inner(pooled))
        return self.last(torch.relu(self.dense(joined.flatten(1))))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(5)
    network = Pooled().eval()
    network.norm.running_mean.normal_()
    network.norm.running_var.uniform_(0.5, 2.0)
    return read_model(network, image_shape=SHAPE)


def texts(graph):
    return [*(f"gradcam:layer={name}" for name in layer_names(graph)), *OCCLUSIONS]


def options_of(graph, text, measure="distance", *, moves=False):
    kind = Measure.parse(measure)
    mask = Mask(WEIGHTS, "given") if kind.needs_mask else None
    options = AttentionOptions(method=Method.parse(text).fit(graph), measure=kind, mask=mask, classes=(0, 2))
    return options.judged_on(IMAGE, moves=moves)


def check_entries(graph, text, specs, measure="distance", *, boxes=6, samples=8):
    """Every entry of the maps at random thetas lies in the intervals over random boxes; returns the least width."""
    perturbed = compose([parse_spec(spec) for spec in specs], IMAGE)
    options = options_of(graph, text, measure, moves=perturbed.moving_axis is not None)
    bounder, rng, least = Bounder(graph, perturbed, 0, options), np.random.default_rng(1), np.inf
    for number in range(boxes):
        theta = rng.uniform(perturbed.domain.low, perturbed.domain.high)
        cell = perturbed.cell_of(theta)
        low, high = (perturbed.domain.to_unit(end[None])[0] for end in (cell.low, cell.high))
        centre, half = perturbed.domain.to_unit(theta[None])[0], 10.0 ** (-1.5 * number / 2) * (high - low)
        low, high = np.maximum(low, centre - half), np.minimum(high, centre + half)
        maps = bounder.explained.maps(bounder.image(cell.index, low[None], high[None]))
        ends = [end[0] for end in maps.ends]
        least = min(least, float((ends[1] - ends[0]).max()))
        for place in rng.uniform(low, high, (samples, 2)):
            image = perturbed.image(perturbed.domain.to_theta(place[None])[0])
            found = options.explained(graph, image)
            assert found.shape == ends[0].shape
            # The definition itself is rounded.
            assert (found >= ends[0] - 1e-12).all() and (found <= ends[1] + 1e-12).all()
    return least


@pytest.mark.parametrize("specs", [KEPT, MOVED], ids=["kept", "moved"])
def test_intervals_hold_all_entries_of_the_maps(model, specs):
    widths = [check_entries(model.graph, text, specs) for text in texts(model.graph)]
    assert np.median(widths) < 1e-2


def test_single_thetas_are_enclosed_to_rounding(model):
    perturbed = compose([parse_spec(spec) for spec in KEPT], IMAGE)
    for text in texts(model.graph):
        bounder = Bounder(model.graph, perturbed, 0, options_of(model.graph, text))
        place = np.array([[0.371, 0.613]])
        assert bounder.explained.maps(bounder.image(0, place, place)).radius.max() < 1e-10


def test_maps_are_upsampled_where_masks_movements_or_pixels_need_it(model):
    text = next(text for text in texts(model.graph) if "max_pool" in text.lower() or "maxpool" in text.lower())
    own = options_of(model.graph, text)
    assert own.map_shape(SHAPE) == (1, 4, 4) and own.explained(model.graph, IMAGE).shape == (2, 1, 4, 4)
    for other in (
        options_of(model.graph, text, "object"),
        options_of(model.graph, text, moves=True),
        options_of(model.graph, text, "topk"),
    ):
        np.testing.assert_allclose(
            other.explained(model.graph, IMAGE), upsample(own.explained(model.graph, IMAGE), 8, 8), rtol=1e-12
        )
    check_entries(model.graph, text, KEPT, "object")


def test_every_method_without_an_enclosure_has_only_gradients():
    others = {type(one) for one in find_methods().values() if not isinstance(one, GradientMethod)}
    assert others == set(ENCLOSURES)


def test_anchored_values_have_their_gradients(model):
    """Every value of the graph, skipped around or not: gradients by layers are those node by node."""
    graph, rows = model.graph, np.eye(CLASSES)
    values = values_of(graph, IMAGE)
    for value in layer_names(graph).values():
        anchor = anchored(graph, value)
        np.testing.assert_allclose(anchor.graph.logits(IMAGE[None]), graph.logits(IMAGE[None]), rtol=1e-12)
        flat = IMAGE.reshape(1, -1)
        bits = patterns(anchor.graph, preactivations(anchor.graph, flat)[:-1])
        *by_layer, _ = gradients(anchor.graph, [part[0] for part in bits], rows)
        found = by_layer[::-1][anchor.layer][:, anchor.neurons]
        plain = gradients_at(graph, values, rows, value).reshape(CLASSES, -1)
        np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-12)


def test_planted_errors_are_caught(model, monkeypatch):
    """A window that is not blanked, a gradient of the wrong class, weights that are not averaged."""
    layer = next(name for name in layer_names(model.graph) if "relu" in name.lower())
    with monkeypatch.context() as patched:
        usual = explained.OccludedMaps._passed
        patched.setattr(
            explained.OccludedMaps, "_passed", lambda self, image, keep=None: usual(self, _one_whole(image))
        )
        with pytest.raises(AssertionError):
            check_entries(model.graph, OCCLUSIONS[1], KEPT)
    with monkeypatch.context() as patched:
        patched.setattr(AttentionOptions, "chosen", lambda self, count: np.array([1, 2]))
        bounder = Bounder(model.graph, compose([parse_spec(KEPT[0])], IMAGE), 0, options_of(model.graph, OCCLUSIONS[1]))
        patched.undo()
        place = np.array([[0.5]])
        maps = bounder.explained.maps(bounder.image(0, place, place))
        true = bounder.attention.explained(model.graph, bounder.perturbed.image([0.1]))
        assert not (np.abs(true - maps.centre[0]) <= maps.radius[0] + 1e-9).all()
    with monkeypatch.context() as patched:
        usual = explained.CamMaps._weights

        def summed(self, slopes):
            found = usual(self, slopes)
            return type(found)(2.0 * found.centre, 2.0 * found.radius)

        patched.setattr(explained.CamMaps, "_weights", summed)
        with pytest.raises(AssertionError):
            check_entries(model.graph, f"gradcam:layer={layer}", KEPT)


def _one_whole(images):
    """The images of occlusions, with one window not blanked."""
    forms = images.forms.copy()
    forms[2] = forms[0]
    return type(images)(forms, images.remainder, images.corners, images.norms)


@pytest.mark.parametrize("specs", [SMALL_KEPT, SMALL_MOVED], ids=["kept", "moved"])
@pytest.mark.parametrize("attention", [{"delta": "10%"}, {"attention": "object", "mask": WEIGHTS, "tau": "98%"}])
@pytest.mark.parametrize("kind", ["gradcam", "occlusion"])
def test_refinements_agree_with_the_definition(model, kind, attention, specs, tmp_path):
    layer = next(name for name in layer_names(model.graph) if "relu" in name.lower())
    text = f"gradcam:layer={layer}" if kind == "gradcam" else OCCLUSIONS[1]
    result = verify(model, IMAGE, specs, explain=text, until=0.1, threads=1, **attention)
    assert result.method == "refine"
    assert result.areas["undecided"][1] <= 0.1 + 1e-9
    domain, boxes, codes = result.question.perturbed.domain, result.tiling.boxes, result.answer
    thetas = np.random.default_rng(4).uniform(domain.low, domain.high, (60, 2))
    losses = PointPasses(result.question).inconsistencies(thetas)
    decided = 0
    for theta, loss in zip(thetas, losses, strict=True):
        assert result.at(theta).inconsistency == pytest.approx(loss, abs=1e-10)
        low, high = boxes.inconsistency[box_at(result.question.compound, boxes, theta)]
        assert low - 1e-9 <= loss <= high + 1e-9
        decided += high <= codes.delta or low > codes.delta
    assert decided > 40
    assert result.witnesses or result.areas[Label.IR][0] == 0.0
    result.save(tmp_path / "one")
    again = load(tmp_path / "one")
    assert again.question.attention == result.question.attention
    assert again.areas == result.areas
    np.testing.assert_array_equal(again.at(thetas[0]).actual, result.at(thetas[0]).actual)


def test_reports_and_figures_show_them(model, tmp_path):
    layer = next(name for name in layer_names(model.graph) if "pool" in name.lower())
    result = verify(model, IMAGE, SMALL_KEPT, explain=f"gradcam:layer={layer}", until=0.3, threads=1)
    page = result.report(tmp_path / "report.html").read_text()
    assert f"gradcam:layer={layer}" in page
    assert "This page does not compute maps of gradcam: images and maps are stored for" in page
    [picture] = result.plot(tmp_path / "map")
    assert picture.stat().st_size > 1000


def test_engines_that_label_whole_regions_refuse_with_the_reason(model):
    for engine in ("map", "bfs", "gbs", "boundary"):
        with pytest.raises(OptionError, match="maps of occlusion change within a region, so only bounds can prove"):
            verify(model, IMAGE, KEPT, explain=OCCLUSIONS[0], method=engine)
