"""Small torch modules: classifiers in eval mode, and functions whose backward pass is no derivative."""

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn


def dense(*more: "nn.Module", seed: int = 1) -> "nn.Sequential":
    """A small classifier in eval mode."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 12), nn.ReLU(), nn.Linear(12, 10), *more).eval()


class Normalize(nn.Module):
    """Preprocessing as people write it: constants that are no buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.std = torch.tensor([0.1307]), 0.3081

    def forward(self, images: "torch.Tensor") -> "torch.Tensor":
        return (images - self.mean.view(1, -1, 1, 1)) / self.std


def convolutional() -> "nn.Sequential":
    """Normalisation, batch normalisation with statistics of its own, and dropout, in eval mode."""
    torch.manual_seed(2)
    network = nn.Sequential(
        Normalize(), nn.Conv2d(1, 2, 3, stride=3, bias=False), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout(0.5),
        nn.Flatten(), nn.Linear(162, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 10),
    )  # fmt: skip
    for _ in range(8):
        network(torch.rand(16, 1, 28, 28))
    return network.eval()


class Identity(torch.autograd.Function):
    """Passes values on; its backward pass doubles gradients, which no derivative does."""

    @staticmethod
    def forward(ctx, values):
        return values * 1.0

    @staticmethod
    def backward(ctx, gradient):
        return 2.0 * gradient


class LooseRelu(torch.autograd.Function):
    """A ReLU whose derivative at zero is one, against the rule of torch and steadygaze."""

    @staticmethod
    def forward(ctx, values):
        ctx.save_for_backward(values)
        return torch.relu(values)

    @staticmethod
    def backward(ctx, gradient):
        (values,) = ctx.saved_tensors
        return gradient * (values >= 0.0)


class Residual(nn.Module):
    """A block whose branches meet in a sum."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU())
        self.last = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, values: "torch.Tensor") -> "torch.Tensor":
        return torch.relu(values + self.last(self.inner(values)))


def branching() -> "nn.Sequential":
    """Overlapping max pooling, a residual block and leaky neurons, in eval mode."""
    torch.manual_seed(5)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, stride=2), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1), Residual(3), nn.LeakyReLU(0.1),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 8), nn.ReLU6(), nn.Linear(8, 10),
    ).eval()  # fmt: skip


class Calling(nn.Module):
    """A module that puts a function between parts."""

    def __init__(self, before: "nn.Module", function, after: "nn.Module") -> None:
        super().__init__()
        self.before, self.function, self.after = before, function, after

    def forward(self, images: "torch.Tensor") -> "torch.Tensor":
        return self.after(self.function(self.before(images)))
