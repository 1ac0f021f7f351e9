"""The benchmark that compares proved labels with torch, on a few thetas; it detects a planted error in either."""

import json

import pytest

pytest.importorskip("torch")

import attention_samples
from steadygaze.attention.methods.smoothgrad import SmoothGrad
from steadygaze.attention.options import AttentionOptions
from steadygaze.perturbation import Perturbed

SMALL = ["--models", "M-FNN-100", "--thetas", "120", "--seconds", "20"]


def compared(tmp_path, *more):
    code = attention_samples.main([*SMALL, *more, "--out", str(tmp_path / "found.json")])
    return code, json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def small_domains(monkeypatch):
    domains = tuple(attention_samples.Domain(one.name, 0.02) for one in attention_samples.DOMAINS)
    monkeypatch.setattr(attention_samples, "DOMAINS", domains)


@pytest.mark.parametrize("method", ["gradient", "smoothgrad:n=2", "input-x-gradient"])
def test_labels_agree(method, tmp_path):
    code, found = compared(tmp_path, "--methods", method, "--properties", "object", "pointing", "topk")
    assert (code, found["contradictions"], found["values_off"], len(found["rows"])) == (0, 0, 0, 6)
    assert found["thetas"] > 90
    assert any(0 < row["kept"] < row["thetas"] for row in found["rows"])


def test_a_mask_of_the_background_contradicts_pointing(tmp_path, monkeypatch):
    usual = attention_samples.own_mask
    monkeypatch.setattr(attention_samples, "own_mask", lambda image, bright: 1.0 - usual(image, bright))
    code, found = compared(tmp_path, "--methods", "gradient", "--properties", "pointing")
    assert code == 1 and found["contradictions"] > 60 and found["values_off"] > 30


@pytest.mark.parametrize("fault", ["mask not moved", "expected map not moved", "wrong class"])
def test_planted_errors_are_seen(fault, tmp_path, monkeypatch):
    """Errors in the package: a moving map stays, or another class is explained."""
    if fault == "wrong class":
        usual = AttentionOptions.targets
        monkeypatch.setattr(AttentionOptions, "targets", lambda self, count: usual(self, count)[:, ::-1])
    else:
        wanted, usual = (2 if fault == "mask not moved" else 4), Perturbed.transport

        def transport(self, maps, cell):
            found = usual(self, maps, cell)
            return tuple(0.0 * part for part in found) if found is not None and maps.ndim == wanted else found

        monkeypatch.setattr(Perturbed, "transport", transport)
    asked = "alike" if fault == "expected map not moved" else "object"
    code, found = compared(tmp_path, "--methods", "gradient", "--properties", asked)
    assert code == 1 and found["values_off"] > 10


def test_a_missing_noise_copy_is_seen(tmp_path, monkeypatch):
    usual = SmoothGrad.targets

    def without_last(self, classes):
        found = usual(self, classes)
        found[:, -classes:] = 0.0
        return found

    monkeypatch.setattr(SmoothGrad, "targets", without_last)
    monkeypatch.setitem(attention_samples.PROPERTIES, "distance", {"delta": "60%"})
    assert compared(tmp_path, "--methods", "smoothgrad:n=2,sigma=0.6", "--properties", "distance", "object")[0] == 1
