"""A result of a torch module holds the exported model, so it is read without torch and without the module."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import steadygaze
from steadygaze.errors import StoreError
from steadygaze.report.page.html import verify_command

torch = pytest.importorskip("torch")
SPECS = ["brightness:0..0.1"]


class Net(torch.nn.Module):
    """A small classifier that torch's tracer warns of."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.layers = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(784, 9), torch.nn.ReLU(), torch.nn.Linear(9, 4)
        )

    def forward(self, images: "torch.Tensor") -> "torch.Tensor":
        assert images.shape[1] == 1
        return self.layers(images)


@pytest.fixture(scope="module")
def result() -> steadygaze.Result:
    return steadygaze.verify(Net().eval(), "mnist:69990", SPECS, mean=0.1, std=0.5)


@pytest.fixture
def folder(result, tmp_path) -> Path:
    return result.save(tmp_path / "one")


def test_it_is_loaded_as_it_was_saved(result, folder, tmp_path):
    again = steadygaze.load(folder)
    assert again.summary() == result.summary()
    assert again.question.model_name == "module Net"
    assert again.with_delta("50%").areas == result.with_delta("50%").areas
    assert any("tracer warns" in note for note in again.question.notes)
    second = again.save(tmp_path / "two")
    for name in ("result.json", "regions.npz", "model.onnx"):
        assert (second / name).read_bytes() == (folder / name).read_bytes()


def test_another_process_needs_no_torch(folder):
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import steadygaze\n"
        f"print(steadygaze.load({str(folder)!r}).question.model_name)\n"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=False)
    assert told.stdout == "module Net\n", told.stderr


def test_the_command_of_a_report_names_the_stored_model(result, folder):
    words = shlex.split(verify_command(result, folder).replace("\\\n", ""))
    assert words[:3] == ["steadygaze", "verify", str(folder / "model.onnx")]
    answer = steadygaze.verify(words[2], "mnist:69990", SPECS, mean=0.1, std=0.5)
    assert answer.areas == result.areas
    assert answer.question.model.sha256 == result.question.model.sha256


def test_a_moved_directory_and_a_file_elsewhere_are_read(result, folder, tmp_path):
    moved = Path(shutil.move(folder, tmp_path / "moved"))
    assert steadygaze.load(moved).areas == result.areas
    elsewhere = Path(shutil.move(moved / "model.onnx", tmp_path / "elsewhere.onnx"))
    assert steadygaze.load(moved, model=elsewhere).areas == result.areas
    with pytest.raises(StoreError, match=r"its model is no longer at .*model\.onnx; restore the file with SHA-256"):
        steadygaze.load(moved)


def test_another_model_is_refused(folder):
    file = folder / "model.onnx"
    content = file.read_bytes()
    weights = content.index(b"layers.1.weight")
    for changed in (content[:-40], content[: weights + 200] + b"\x3f" + content[weights + 201 :], b"none"):
        file.write_bytes(changed)
        with pytest.raises(StoreError, match=r"its model at .*model\.onnx has changed"):
            steadygaze.load(folder)


def test_it_is_replaced_by_force_and_resumed(result, folder, tmp_path):
    result.save(folder, force=True)
    assert sorted(path.name for path in folder.iterdir()) == [
        "image.npy", "image.png", "model.onnx", "regions.npz", "result.json", "timings.json",
    ]  # fmt: skip
    refined = steadygaze.verify(Net().eval(), "mnist:69990", SPECS, method="refine", until=0.5)
    place = refined.save(tmp_path / "refined")
    again = steadygaze.verify(Net().eval(), "mnist:69990", SPECS, method="refine", resume=place)
    assert again.question.model.sha256 == refined.question.model.sha256


def test_a_model_of_a_module_is_stored_too(tmp_path):
    model = steadygaze.read_model(Net().eval(), image_shape=(1, 28, 28))
    place = steadygaze.verify(model, "mnist:69990", SPECS, property="cr").save(tmp_path / "model")
    assert (place / "model.onnx").read_bytes() == model.content
    assert steadygaze.load(place).question.model.sha256 == model.sha256


def test_a_model_file_is_not_copied(tmp_path):
    place = steadygaze.verify("M-FNN-100", "mnist:69990", SPECS, property="cr").save(tmp_path / "bundled")
    assert not (place / "model.onnx").exists()
    assert "notes" not in json.loads((place / "result.json").read_text())["stored"]["model"]
