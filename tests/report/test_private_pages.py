"""Reports for others: without weights, without names, and without an address to contact."""

import getpass
import re
import shutil
import socket

import numpy as np
import pytest
from PIL import Image

import steadygaze
from steadygaze.images import read_image
from steadygaze.report.drawing.sheet import Sheet
from steadygaze.report.page.html import holds_weights, make_report
from steadygaze.zoo import image_path, model_path

SECRETS = ("topsecret", "hiddenphoto", "quietmask", "dirtfile", "privatefolder")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A result whose model, image, mask, perturbation and directory have names to find."""
    folder = tmp_path_factory.mktemp("privatefolder")
    shutil.copy(model_path("M-FNN-100"), folder / "topsecret.onnx")
    digit = np.round(255 * read_image(image_path("mnist:69990")).pixels[0]).astype(np.uint8)
    Image.fromarray(digit).save(folder / "hiddenphoto.png")
    Image.fromarray(np.where(digit > 50, 255, 0).astype(np.uint8)).save(folder / "quietmask.png")
    layers = np.zeros((28, 28, 2), dtype=np.uint8)
    layers[4:9, 4:9] = 255
    Image.fromarray(layers, "LA").save(folder / "dirtfile.png")
    result = steadygaze.verify(
        folder / "topsecret.onnx", folder / "hiddenphoto.png", [f'overlay:image="{folder / "dirtfile.png"}":0..0.3'],
        attention="object", mask=str(folder / "quietmask.png"),
    )  # fmt: skip
    result.save(folder / "stored")
    return folder / "stored"


def test_a_redacted_page_names_nothing(stored, monkeypatch):
    result = steadygaze.load(stored)
    written: list[str] = []
    original = Sheet.write

    def watched(self, left, top, text, **options):
        written.append(text)
        return original(self, left, top, text, **options)

    monkeypatch.setattr(Sheet, "write", watched)
    page = make_report(result, directory=stored, redact=True)
    texts = page + "\n".join(written)
    assert written
    for secret in (*SECRETS, str(stored)):
        assert secret not in texts, secret
    visible = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    words = re.sub(r"data:image/png;base64,[^\"]*", "", visible) + "\n".join(written)
    for name in (getpass.getuser(), socket.gethostname()):  # short, as GiB is: encoded pictures may hold them by chance
        assert not re.search(rf"\b{re.escape(name)}\b", words), name
    assert "GiB" not in words and "processors" not in words and "time of the run" not in words
    assert "are left out" in visible and "MODEL.onnx" in visible
    plain = make_report(result, directory=stored)
    assert all(secret in plain for secret in SECRETS), "the names are there to be left out"


def test_the_redacted_result_answers_the_same(stored):
    from steadygaze.results.redaction import redacted

    result = steadygaze.load(stored)
    hidden = redacted(result)
    assert hidden.areas == result.areas and hidden.verdict == result.verdict
    assert np.array_equal(hidden.question.perturbed.image([0.2]), result.question.perturbed.image([0.2]))


def test_without_weights_the_page_shows_stored_thetas(stored):
    result = steadygaze.load(stored)
    assert holds_weights(result)
    inside, outside = (make_report(result, weights=weights) for weights in (True, False))
    assert "All weights of the network are inside this file" in inside
    assert "All weights" not in outside and "are not in this page: images and maps are stored for" in outside
    assert '"network":null' in outside and '"network":{' in inside
    assert "net.weight" in inside and "net.weight" not in outside


def test_no_page_holds_an_address_to_fetch_from(stored):
    page = make_report(steadygaze.load(stored))
    assert not re.search(r"cdn\.|mathjax@|googleapis", page)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None and policy[1].startswith("default-src &#39;none&#39;") and "connect-src" not in policy[1]


def test_contents_lead_to_every_part(stored):
    page = make_report(steadygaze.load(stored))
    anchors = re.findall(r'<li><a href="#([\w-]+)">', page)
    titles = re.findall(r'<h2 id="([\w-]+)"', page)
    assert anchors == [title for title in titles if title != "verdict-title"]


def test_a_theta_that_violates_in_two_ways_is_one_row():
    result = steadygaze.verify("M-FNN-100", "mnist:69990", ["brightness:0..0.3"])
    kinds = [witness.kind for witness in result.witnesses]
    thetas = {tuple(witness.point.theta) for witness in result.witnesses}
    assert len(kinds) == 2 and len(thetas) == 1
    page = make_report(result)
    rows = re.search(r'<table class="witnesses">.*?</table>', page, flags=re.DOTALL)
    assert rows is not None and rows[0].count("<tr>") == 2
    assert all(str(kind.value) in rows[0] for kind in kinds)


def test_no_margin_is_made_of_rounding_errors():
    result = steadygaze.verify("M-FNN-100", "mnist:69995", ["brightness:-0.5..0.5", "patch:x=10,y=10,w=8,h=8"])
    page = re.sub(r"<script.*?</script>", "", make_report(result), flags=re.DOTALL)
    assert not re.search(r"<dt>margin</dt><dd>[^<]*e−", page)
    assert "on the decision boundary" in page
