"""Modules exported by torch: the operators that its exporter writes give the same logits as the module itself."""

import io
import warnings

import numpy as np
import onnx
import pytest

from steadygaze.errors import ModelError
from support.networks.operator_models import graph_of

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

SHAPE = (4, 6, 6)


class Function(nn.Module):
    """A module that applies a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Block(nn.Module):
    """A residual block with batch norm and a projection."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.second, self.projection = nn.Conv2d(4, 3, 3, stride=2, padding=1), nn.Conv2d(4, 3, 1, stride=2)

    def forward(self, x):
        return functional.relu(self.second(self.first(x)) + self.projection(x))


MODULES = {
    "LeakyReLU": lambda: nn.LeakyReLU(0.1),
    "PReLU": lambda: nn.PReLU(4),
    "ReLU6": nn.ReLU6,
    "RReLU": nn.RReLU,
    "Hardtanh": lambda: nn.Hardtanh(-0.5, 0.7),
    "Hardsigmoid": nn.Hardsigmoid,
    "Threshold": lambda: nn.Threshold(0, 0),
    "MaxPool2d": lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True),
    "MaxPool2d dilated": lambda: nn.MaxPool2d(2, 1, dilation=3),
    "AvgPool2d": lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True),
    "AdaptiveMaxPool2d": lambda: nn.AdaptiveMaxPool2d(2),
    "AdaptiveAvgPool2d": lambda: nn.AdaptiveAvgPool2d(1),
    "ConvTranspose2d": lambda: nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1),
    "Conv1d": lambda: nn.Sequential(nn.Flatten(2), nn.Conv1d(4, 3, 3)),
    "BatchNorm1d": lambda: nn.Sequential(nn.Flatten(), nn.BatchNorm1d(144)),
    "PixelShuffle": lambda: nn.PixelShuffle(2),
    "PixelUnshuffle": lambda: nn.PixelUnshuffle(2),
    "Upsample": lambda: nn.Upsample(size=(5, 11)),
    "Upsample bilinear": lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
    "Upsample corners": lambda: nn.Upsample(scale_factor=1.5, mode="bilinear", align_corners=True),
    "ReflectionPad2d": lambda: nn.ReflectionPad2d(2),
    "ReplicationPad2d": lambda: nn.ReplicationPad2d(2),
    "CircularPad2d": lambda: nn.CircularPad2d(1),
    "ConstantPad2d": lambda: nn.ConstantPad2d(1, 0.5),
    "Dropout": nn.Dropout,
    "Block": Block,
}

FUNCTIONS = {
    "abs": lambda x: x.abs(),
    "maximum": lambda x: torch.maximum(x, x.flip(-1)),
    "minimum": lambda x: torch.minimum(x[:, :2], x[:, 2:]),
    "amax": lambda x: x.amax((2, 3)),
    "max": lambda x: x.max(dim=1)[0],
    "chunk and cat": lambda x: torch.cat(x.chunk(2, 1)[::-1], 1),
    "split": lambda x: x.split([1, 3], 1)[1],
    "clamp": lambda x: x.clamp(min=0.2),
    "sum": lambda x: x.sum((2, 3)),
    "slice": lambda x: x[:, 1:, ::2, -3:],
    "index": lambda x: x[:, [2, 0]],
    "expand": lambda x: x.mean(1, keepdim=True).expand(-1, 4, -1, -1) - x,
    "repeat": lambda x: x.repeat(1, 2, 1, 1),
    "roll": lambda x: x.roll(1, -1),
    "stack": lambda x: torch.stack([x, x * 2], 1),
    "view": lambda x: x.view(x.size(0), -1),
    "unflatten": lambda x: x.flatten(1).unflatten(1, (2, -1)),
    "interpolate": lambda x: functional.interpolate(x, size=(9, 13), mode="bilinear", align_corners=False),
}


def export(module):
    """The module in eval mode with its values flattened, and its ONNX model."""
    torch.manual_seed(3)
    whole = nn.Sequential(module, nn.Flatten()).eval()
    for part in whole.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(whole, torch.zeros(1, *SHAPE), content, opset_version=17, dynamo=False)
    return whole, onnx.load_model_from_string(content.getvalue())


@pytest.mark.parametrize("name", [*MODULES, *FUNCTIONS])
def test_a_module_and_its_graph_agree(name):
    module = MODULES[name]() if name in MODULES else Function(FUNCTIONS[name])
    whole, model = export(module)
    images = np.random.default_rng(1).normal(size=(3, *SHAPE))
    with torch.no_grad():
        expected = whole(torch.tensor(images, dtype=torch.float32)).numpy()
    ours = graph_of(model, image_shape=SHAPE).logits(images)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5 * (1.0 + np.abs(expected).max()))


@pytest.mark.parametrize(
    "module,words",
    [
        (nn.SiLU, "is Sigmoid, which is not piecewise linear"),
        (nn.GELU, "is Erf, which is not piecewise linear"),
        (nn.Hardswish, "is HardSwish, which is not piecewise linear"),
        (nn.Tanh, "is Tanh, which is not piecewise linear"),
        (lambda: nn.LayerNorm(6), "is LayerNormalization, which is not piecewise linear"),
        (lambda: nn.GroupNorm(2, 4), "is InstanceNormalization, which is not piecewise linear"),
        (lambda: nn.LocalResponseNorm(3), "multiplies values that both depend on the image"),
    ],
)
def test_modules_that_are_not_piecewise_linear(module, words):
    model = export(nn.Sequential(module(), nn.ReLU()))[1]
    with pytest.raises(ModelError, match=words):
        graph_of(model, image_shape=SHAPE)
