"""A torch module is compared with autograd before it is verified: lost or changed parts are caught."""

import re

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import steadygaze
from steadygaze.errors import ModelError
from steadygaze.images import read_image
from steadygaze.network import torch_module
from steadygaze.network.layers import CARRIED, ENTRY, RELU, Layer
from steadygaze.network.layout import ReadOptions
from steadygaze.zoo import image_path
from support.networks.torch_modules import Calling, Identity, LooseRelu, branching, dense

torch = pytest.importorskip("torch")
nn = torch.nn
IMAGE, SPECS = "mnist:69990", ["brightness:0..0.1", "patch:x=12,y=12,w=4,h=4:0..0.2"]


class TestComparison:
    @pytest.fixture
    def export(self, monkeypatch):
        """Let the exporter apply a change to every model that it writes."""

        def plant(change):
            honest = torch_module.export_module

            def dishonest(*arguments):
                content, notes = honest(*arguments)
                proto = onnx.load_model_from_string(content)
                change(proto)
                return proto.SerializeToString(), notes

            monkeypatch.setattr(torch_module, "export_module", dishonest)

        return plant

    @pytest.mark.parametrize("share", [1e-3, 1.0])
    def test_a_changed_weight_is_caught(self, export, share):
        def change(proto):
            weight = next(one for one in proto.graph.initializer if one.name == "3.weight")
            values = numpy_helper.to_array(weight).copy()
            values[0] *= 1.0 + share
            weight.CopyFrom(numpy_helper.from_array(values, weight.name))

        export(change)
        with pytest.raises(ModelError, match=r"torch and the exported network disagree by .* nothing is verified"):
            steadygaze.verify(dense(), IMAGE, SPECS)

    def test_a_lost_layer_is_caught(self, export):
        def change(proto):
            relu = next(node for node in proto.graph.node if node.op_type == "Relu")
            relu.op_type = "Identity"

        export(change)
        with pytest.raises(ModelError, match="disagree by"):
            steadygaze.verify(dense(), IMAGE, SPECS)

    def test_a_lost_branch_is_caught(self, export):
        def change(proto):
            node = next(node for node in proto.graph.node if node.op_type == "Add")
            node.op_type = "Identity"
            del node.input[1:]

        export(change)
        with pytest.raises(ModelError, match="disagree by"):
            torch_module.read_module(branching(), np.full((1, 28, 28), 0.5))

    def test_a_weight_that_the_given_image_does_not_show_is_caught(self, export):
        """The weights of a black pixel: only noise and gradients show them."""

        def change(proto):
            weight = next(one for one in proto.graph.initializer if one.name == "1.weight")
            values = numpy_helper.to_array(weight).copy()
            values[:, 0] += 1e-4
            weight.CopyFrom(numpy_helper.from_array(values, weight.name))

        export(change)
        with pytest.raises(ModelError, match=r"disagree by|gradients .* differ by"):
            steadygaze.verify(dense(), IMAGE, SPECS)

    def test_a_backward_pass_that_is_no_derivative_is_refused_with_numbers(self):
        module = Calling(nn.Identity(), Identity.apply, dense()).eval()
        with pytest.raises(ModelError, match=r"input gradients .* differ by .*entries up to .*tolerance") as caught:
            steadygaze.verify(module, IMAGE, SPECS)
        assert "on the given image" in str(caught.value)

    def test_a_branch_on_values_is_refused(self):
        network = dense()
        module = Calling(nn.Identity(), lambda images: -images if images.mean() > 0.4 else images, network).eval()
        with pytest.raises(ModelError, match=r"disagree by .* without Python branches that depend on values"):
            steadygaze.verify(module, IMAGE, SPECS)

    @pytest.mark.parametrize("image_first", [True, False], ids=["at once", "read before"])
    @pytest.mark.parametrize(("border", "where"), [(10.0, "an end of"), (600.0, "an image of")])
    def test_a_branch_that_only_the_domain_leaves_is_refused(self, image_first, border, where):
        """The image and all noise around it lie on one side of the branch, or on both of a narrow one."""

        class Branch(nn.Module):
            def __init__(self):
                super().__init__()
                self.network = dense()

            def forward(self, images):
                is_kept = images.sum() > border if border < 100 else abs(images.sum() - border) > 20
                return self.network(images) if is_kept else -self.network(images)

        module, image = Branch().eval(), read_image(image_path(IMAGE)).pixels
        model = module if image_first else steadygaze.read_model(module, image_shape=(1, 28, 28))
        with pytest.raises(ModelError, match=rf"disagree by .*{where}.* without Python branches") as caught:
            steadygaze.verify(model, image, "brightness:-1..1", property="cr")
        assert "\n" not in str(caught.value)

    def test_a_module_that_changes_after_it_was_read_stays_as_read(self):
        module = dense()
        model = steadygaze.read_model(module, image_shape=(1, 28, 28))
        with torch.no_grad():
            module[1].weight.zero_()
        assert steadygaze.verify(model, IMAGE, SPECS[:1], property="cr").question.model is model

    def test_warnings_of_the_tracer_become_notes(self):
        def check(images):
            assert images.shape[1] == 1
            return images

        module = Calling(nn.Identity(), check, dense()).eval()
        result = steadygaze.verify(module, IMAGE, SPECS[:1])
        assert any(re.search("as traced on one image; torch's tracer warns: ", note) for note in result.question.notes)

    def test_an_image_on_a_kink_is_left_out(self):
        """A neuron that sees one black pixel is exactly zero there, where the two derivatives differ."""
        torch.manual_seed(3)
        first, after = nn.Linear(784, 12), nn.Linear(12, 10)
        pixels = torch.from_numpy(read_image(image_path(IMAGE)).pixels)
        with torch.no_grad():
            first.weight[0], first.bias[0] = 0.0, 0.0
            first.weight[0, pixels.argmin()] = 1.0
        module = Calling(nn.Sequential(nn.Flatten(), first), LooseRelu.apply, after).eval()
        assert first(pixels.float().reshape(1, -1))[0, 0] == 0.0
        given = read_image(image_path(IMAGE)).pixels
        with pytest.raises(ModelError, match=r"differ by .* on the given image"), pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch_module, "is_near_kink", lambda *_: False)
            torch_module.read_module(module, given)
        assert torch_module.read_module(module, given).classes == 10

    def test_kinks_and_ties(self):
        """A window counts as tied if rounding may choose its winner, a carried value never."""
        kinds, windows = np.array([RELU, CARRIED, ENTRY, ENTRY, ENTRY], np.uint8), np.array([-1, -1, 0, 0, 0], np.int32)
        layer, spread = Layer(kinds, windows), np.full(5, 0.1)
        assert not torch_module._has_kink(layer, np.array([0.2, 0.0, 0.0, 1.0, 0.0]), spread)
        assert torch_module._has_kink(layer, np.array([-0.1, 9.0, 0.0, 1.0, 0.0]), spread)
        assert torch_module._has_kink(layer, np.array([0.2, 9.0, 0.9, 1.0, 0.0]), spread)
        assert not torch_module._has_kink(layer, np.array([0.2, 9.0, 0.7, 1.0, 0.7]), spread)
        assert torch_module._has_kink(layer, np.array([0.2, 9.0, 1.0, 0.0, 1.0]), np.zeros(5))

    def test_a_module_that_does_not_run_in_float64_is_compared_in_its_own_type(self):
        class Fixed(nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(6)
                self.weight, self.last = torch.randn(12, 784), nn.Linear(12, 10)  # a weight that is no parameter

            def forward(self, images):
                return self.last(torch.relu(nn.functional.linear(images.flatten(1), self.weight)))

        pixels = read_image(image_path(IMAGE)).pixels
        run = torch_module.TorchRun(Fixed(), ReadOptions().preprocessing(1), "module Fixed")
        assert run.in_float64(pixels) is None
        assert torch_module.read_module(Fixed().eval(), pixels).classes == 10
        faulty = Calling(nn.Identity(), Identity.apply, Fixed()).eval()
        with pytest.raises(ModelError, match=r"input gradients .* differ by"):
            torch_module.read_module(faulty, pixels)

    def test_without_any_comparison_nothing_is_verified(self, monkeypatch):
        monkeypatch.setattr(torch_module, "is_near_kink", lambda *_: True)
        module = Calling(nn.Identity(), Identity.apply, dense()).eval()
        with pytest.raises(ModelError, match=r"cannot be compared .* on each of 17 images .* nothing is verified"):
            steadygaze.verify(module, IMAGE, SPECS)
