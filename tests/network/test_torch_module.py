"""A torch module is verified like its exported file."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import steadygaze
from steadygaze.errors import ImageError, ModelError
from steadygaze.images import read_image
from steadygaze.network import torch_module
from steadygaze.network.graph import gradients, patterns, preactivations
from steadygaze.zoo import image_path
from support.networks.torch_modules import Calling, Normalize, branching, convolutional, dense

torch = pytest.importorskip("torch")
nn = torch.nn
IMAGE, SPECS = "mnist:69990", ["brightness:0..0.1", "patch:x=12,y=12,w=4,h=4:0..0.2"]


def written(module: "nn.Module", path) -> str:
    """The module as a file, by torch's exporter with the options that people use."""
    torch.onnx.export(module, (torch.rand(1, 1, 28, 28),), str(path), dynamo=False)
    return str(path)


def answer(result: steadygaze.Result) -> dict:
    """Everything but names."""
    summary = result.summary()
    return {key: value for key, value in summary.items() if key not in ("model", "image", "seconds")}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestSameAsFile:
    def test_map_and_search_equal_those_of_the_file(self, tmp_path):
        module = dense()
        file = written(module, tmp_path / "dense.onnx")
        assert answer(steadygaze.verify(module, IMAGE, SPECS)) == answer(steadygaze.verify(file, IMAGE, SPECS))
        ours, theirs = (steadygaze.search(one, IMAGE, SPECS[:1], method="bfs") for one in (module, file))
        assert answer(ours) == answer(theirs)
        assert ours.question.model_name == "module Sequential"

    def test_preprocessing_in_front_is_the_one_of_the_options(self, tmp_path):
        network = dense()
        inside = steadygaze.verify(nn.Sequential(Normalize(), network).eval(), IMAGE, SPECS[:1])
        options = steadygaze.verify(network, IMAGE, SPECS[:1], mean=0.1307, std=0.3081)
        file = written(network, tmp_path / "dense.onnx")
        assert answer(options) == answer(steadygaze.verify(file, IMAGE, SPECS[:1], mean=0.1307, std=0.3081))
        for name, (low, high) in inside.areas.items():
            assert options.areas[name] == pytest.approx((low, high), abs=1e-5)

    def test_batch_normalisation_and_dropout_are_those_of_eval_mode(self):
        module = convolutional()
        model = steadygaze.read_model(module, image_shape=(1, 28, 28))
        lifted = convolutional().double()
        for image in np.random.default_rng(0).random((3, 1, 28, 28)):
            pixels = torch.from_numpy(image)[None].requires_grad_()
            logits = lifted(pixels)[0]
            rows = [torch.autograd.grad(logit, pixels, retain_graph=True)[0].ravel().numpy() for logit in logits]
            *inputs, ours = preactivations(model.graph, image.reshape(1, -1))
            *_, maps = gradients(model.graph, [layer[0] for layer in patterns(model.graph, inputs)])
            # The module's own constants 0.1307 and 0.3081 are float32 or float64, as its author wrote them.
            np.testing.assert_allclose(ours[0], logits.detach().numpy(), atol=1e-6)
            np.testing.assert_allclose(maps, rows, atol=1e-6 * np.abs(rows).max())

    @pytest.mark.parametrize("make", [branching, lambda: dense(nn.ReLU(), nn.Linear(10, 1), nn.Sigmoid())])
    def test_windows_branches_and_single_logits_agree_with_autograd(self, make, monkeypatch):
        """On tied windows too: torch and steadygaze let the first entry win."""
        monkeypatch.setattr(torch_module, "is_near_kink", lambda *_: False)
        for image in (np.zeros((1, 28, 28)), read_image(image_path(IMAGE)).pixels):
            assert torch_module.read_module(make(), image).classes in (2, 10)

    def test_weights_are_kept_bit_by_bit(self):
        """The exporter must not fold batch normalisation into float32 weights."""
        module = convolutional()
        model = steadygaze.read_model(module, image_shape=(1, 28, 28))
        stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in _proto(model).graph.initializer}
        for name, value in module.state_dict().items():
            if value.is_floating_point():
                np.testing.assert_array_equal(stored[name], value.numpy())

    @pytest.mark.parametrize("end", [nn.Softmax(1), nn.LogSoftmax(1)], ids=["softmax", "log-softmax"])
    def test_a_softmax_at_the_end_is_dropped(self, end):
        plain, ended = (steadygaze.verify(one, IMAGE, SPECS[:1]) for one in (dense(), dense(end)))
        assert ended.areas == plain.areas
        assert any("dropped" in note for note in ended.question.notes)
        functional = Calling(dense(), lambda logits: nn.functional.softmax(logits, dim=1), nn.Identity()).eval()
        assert steadygaze.verify(functional, IMAGE, SPECS[:1]).areas == plain.areas

    def test_compiled_and_frozen_modules_and_blocks_without_gradients(self):
        expected = steadygaze.verify(dense(), IMAGE, SPECS[:1]).areas
        assert steadygaze.verify(torch.compile(dense()), IMAGE, SPECS[:1]).areas == expected
        assert steadygaze.verify(dense().requires_grad_(False), IMAGE, SPECS[:1]).areas == expected
        for block in (torch.no_grad(), torch.inference_mode()):
            module = dense()
            with block:
                assert steadygaze.verify(module, IMAGE, SPECS[:1]).areas == expected

    def test_weights_that_a_module_computes(self):
        layer = nn.utils.parametrizations.weight_norm(nn.Linear(784, 12))
        module = nn.Sequential(nn.Flatten(), layer, nn.ReLU(), nn.Linear(12, 10)).eval()
        plain = nn.Sequential(nn.Flatten(), nn.Linear(784, 12), nn.ReLU(), module[3]).eval()
        with torch.no_grad():
            plain[1].weight.copy_(layer.weight)
            plain[1].bias.copy_(layer.bias)
        found, expected = (steadygaze.verify(one, IMAGE, SPECS[:1]).areas for one in (module, plain))
        for name, (low, high) in expected.items():
            assert found[name] == pytest.approx((low, high), abs=1e-4)

    def test_a_module_in_float64(self):
        expected, found = (steadygaze.verify(one, IMAGE, SPECS[:1]).areas for one in (dense(), dense().double()))
        assert found == expected

    def test_the_module_is_left_as_it_was(self):
        module = convolutional()
        before = {name: value.clone() for name, value in module.state_dict().items()}
        steadygaze.read_model(module, image_shape=(1, 28, 28))
        assert not module.training
        assert all(parameter.grad is None for parameter in module.parameters())
        for name, value in module.state_dict().items():
            assert torch.equal(value, before[name]) and value.dtype == before[name].dtype

    def test_changed_weights_give_another_model(self):
        module = dense()
        before = steadygaze.read_model(module, image_shape=(1, 28, 28))
        assert steadygaze.read_model(module, image_shape=(1, 28, 28)).graph is before.graph
        with torch.no_grad():
            module[1].weight[0, 0] += 1.0
        assert steadygaze.read_model(module, image_shape=(1, 28, 28)).sha256 != before.sha256


def _proto(model: steadygaze.Model) -> onnx.ModelProto:
    assert model.content is not None
    return onnx.load_model_from_string(model.content)


class TestMode:
    def test_training_mode_is_refused_with_the_remedy(self):
        with pytest.raises(ModelError, match=r"module Sequential: is in training mode; call module\.eval\(\) first"):
            steadygaze.verify(dense().train(), IMAGE, SPECS)

    @pytest.mark.parametrize("part", [nn.BatchNorm2d(1), nn.Dropout(), Normalize()], ids=lambda one: type(one).__name__)
    def test_a_part_that_depends_on_the_mode_is_refused(self, part):
        module = nn.Sequential(nn.Identity(), dense()).eval()
        module[0] = part
        kind = type(part).__name__
        with pytest.raises(ModelError, match=rf"its part '0' \({kind}\) is in training mode; call module\.eval\(\)"):
            steadygaze.verify(module, IMAGE, SPECS)

    def test_a_new_head_in_training_mode_computes_the_same(self):
        module = dense()
        module[3] = nn.Linear(12, 10)
        assert module[3].training
        assert steadygaze.read_model(module, image_shape=(1, 28, 28)).classes == 10


class TestOtherObjects:
    @pytest.mark.parametrize(
        ("thing", "said"),
        [
            (dense().state_dict(), "received collections.OrderedDict; .* Load a state dict into its module"),
            (nn.Sequential, "received class Sequential; .* Make an object of it"),
            (torch.zeros(1, 28, 28), "received torch.Tensor; .* The model comes first"),
            (np.zeros((1, 28, 28)), "received numpy.ndarray; .* The model comes first"),
            (onnx.ModelProto(), "received onnx.*ModelProto; .* Write the model to an .onnx file"),
            (print, "received builtin_function_or_method; .* to ONNX"),
            (None, "received NoneType; expected an .onnx file, the name of a bundled network, a Model, or a torch"),
        ],
    )
    def test_any_other_object_gets_one_line(self, thing, said):
        for ask in (lambda: steadygaze.verify(thing, IMAGE, SPECS), lambda: steadygaze.read_model(thing)):
            with pytest.raises(ModelError, match=said) as caught:
                ask()
            assert "\n" not in str(caught.value)

    def test_modules_that_are_no_classifiers_get_one_line(self, capfd):
        class Several(nn.Module):
            def forward(self, images):
                return images, images

        cases = {
            "fails on an image of shape .*nn.Flatten": nn.Sequential(nn.Linear(784, 10)),
            "returns a tuple; wrap it": Several(),
            "node '.*Tanh' is Tanh, which is not piecewise linear": dense(nn.Tanh(), nn.Linear(10, 10)),
            "torch cannot export it to ONNX .*svd.*; replace that operator": Calling(
                nn.Identity(), lambda images: images + torch.linalg.svdvals(images).sum(), dense()
            ),
            "is in training mode": Calling(nn.Identity(), nn.functional.dropout, dense()),
        }
        for said, module in cases.items():
            with pytest.raises(ModelError, match=rf"^module {type(module).__name__}: .*{said}") as caught:
                steadygaze.verify(module.eval(), IMAGE, SPECS)
            assert "\n" not in str(caught.value)
        assert capfd.readouterr() == ("", "")

    def test_a_module_alone_does_not_say_its_shape(self):
        with pytest.raises(ModelError, match=r"give image_shape=\(channels, height, width\)"):
            steadygaze.read_model(dense())

    def test_torch_is_imported_by_nobody_else(self):
        script = (
            "import sys, numpy, steadygaze\n"
            "steadygaze.verify('M-FNN-100', numpy.zeros((28, 28)), 'brightness:0..0.01', property='cr', method='map')\n"
            "for model, image in ((object(), 'mnist:69990'), ('M-FNN-100', object())):\n"
            "    try: steadygaze.verify(model, image, 'brightness')\n"
            "    except steadygaze.SteadygazeError as error: print(error)\n"
            "assert 'torch' not in sys.modules\n"
        )
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=False)
        assert run.returncode == 0, run.stderr
        first, second = run.stdout.splitlines()
        assert first.startswith("model: received object; expected an .onnx file")
        assert second.startswith("image: received object; expected a PNG")


class TestTensorImages:
    pixels = np.rint(255.0 * read_image(image_path(IMAGE)).pixels).astype(np.uint8)

    def question(self, image):
        return steadygaze.verify("M-FNN-100", image, SPECS[:1], property="cr").question

    def test_all_forms_are_the_same_image(self):
        exact = self.pixels / 255.0
        grey = torch.from_numpy(self.pixels)
        floats = grey.float() / 255
        for image in (
            grey,
            grey[None],
            grey[0],
            floats,
            floats[None],
            torch.from_numpy(exact),
            floats.requires_grad_(),
        ):
            question = self.question(image)
            np.testing.assert_array_equal(question.perturbed.x0, exact)
            assert question.image_name == "image"

    def test_half_precision_is_taken_as_it_is(self):
        for kind in (torch.bfloat16, torch.float16):
            image = (torch.from_numpy(self.pixels).float() / 255).to(kind)
            np.testing.assert_array_equal(self.question(image).perturbed.x0, image.double().numpy())

    @pytest.mark.parametrize(
        ("image", "said"),
        [
            (torch.zeros(8, 1, 28, 28), r"shape \(8, 1, 28, 28\), a batch of 8 images; give one of them"),
            (torch.zeros(1, 28, 28) - 0.4, r"values from -0.4 to -0.4; floats must be in 0..1"),
            (torch.full((1, 28, 28), torch.nan), "NaN or infinity"),
            (torch.zeros(1, 28, 28, dtype=torch.int64), "has type int64; save it as uint8"),
            (torch.zeros(1, 28, 28, dtype=torch.complex64), "complex64.*give a dense one"),
            (torch.zeros(1, 28, 28, device="meta"), "device meta, so it has no numbers; give one with numbers"),
            (torch.zeros(3, 28, 28), "convert it with --grey"),
            (torch.zeros(28), r"has shape \(28,\)"),
        ],
    )
    def test_other_tensors_are_refused(self, image, said):
        with pytest.raises(ImageError, match=said):
            self.question(image)
