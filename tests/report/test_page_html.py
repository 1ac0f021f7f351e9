"""The report as a file: it agrees with the result, no text of a user becomes markup, and it fetches nothing."""

import base64
import io
import json
import re
import shlex
import shutil
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import steadygaze
from steadygaze import Budget, Limits, StoreError, zoo
from steadygaze.cli import main
from steadygaze.report.page import cards, html
from steadygaze.report.page.cards import image_uri, map_uri
from steadygaze.report.page.explorer import make_explorer
from steadygaze.report.page.html import make_report, write_report
from steadygaze.report.thresholds import make_thresholds
from steadygaze.results.result import Result
from steadygaze.results.store import read_summary

PATCH = "patch:x=12,y=12,w=4,h=4"
EVIL_MODEL = "<img src=x onerror=alert(1)>.onnx"
EVIL_CLASS = "</script><script>alert(1)</script>"
EVIL_IMAGE = '"><svg onload=alert(1)>.png'
PIXEL = "data:image/png;base64,"


class Page(HTMLParser):
    """Tags with their attributes, and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not {"style", "script", "svg"} & set(self.open):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """No interactive map, and pictures that take no time; what they show is tested elsewhere."""
    monkeypatch.setattr(
        html, "make_explorer", lambda *_, **__: SimpleNamespace(head="", html="<p>map</p>", has_weights=True)
    )

    tiny = image_uri(np.zeros((1, 2, 2)))
    monkeypatch.setattr(cards, "figure_uri", lambda make: tiny)
    monkeypatch.setattr(html, "result_png", lambda result: base64.b64decode(tiny.partition(",")[2]))


@pytest.fixture(scope="module")
def result() -> Result:
    return steadygaze.verify("M-FNN-100", "mnist:69990", ["brightness:0..0.3", PATCH], delta="50%")


@pytest.fixture(scope="module")
def stored(result: Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return result.save(tmp_path_factory.mktemp("results") / "out")


def test_numbers_are_those_of_the_result(result: Result, stored: Path):
    page = Page(make_report(result, directory=stored))
    summary, text = result.summary(), page.text
    for name in ("CR&AR", "CR&IR", "AR", "IR"):
        low = summary["area"][name][0]
        assert f"{np.floor(1e4 * low) / 1e2:.2f} %" in text
    assert summary["guarantee"] in text and summary["model"]["sha256"] in text
    theta = result.nearest["AR"].theta
    assert theta is not None and f"brightness ≈ {theta[0]:.5g}" in text
    for witness in result.witnesses:
        assert repr(float(witness.point.theta[0])) in text
    for name in ("steadygaze", "numpy", "numba", "onnxruntime", "Python"):
        assert name in text
    assert "finished" in text and "not robust" in text
    assert re.search(r"<svg[^>]*aria-label=\"Share of AR against δ\"", make_report(result)) is not None


def test_the_command_gives_the_same_answer(result: Result, stored: Path, tmp_path: Path):
    commands = re.findall(r"<code>(.*?)</code>", make_report(result, directory=stored), flags=re.DOTALL)
    words = commands[0].replace("\\\n", " ").split()
    assert words[:2] == ["steadygaze", "verify"] and commands[1] == f"steadygaze report {stored} --force"
    code = main([*words[1:], "--out", str(tmp_path / "again"), "--quiet"])
    again = steadygaze.load(tmp_path / "again")
    assert code == result.verdict.exit_code and again.summary() == result.summary()


@pytest.mark.parametrize("method", ["refine", "gbs", "boundary"])
def test_the_command_names_the_method_and_its_options(method: str, tmp_path: Path):
    """Also of an image without a name, whose pixels are taken from the stored result, and an odd threshold."""
    image = np.zeros((28, 28))
    image[4:24, 12:16] = 0.8
    options = {"property": "ar", "delta": 0.1234567891, "classes": [1, 7], "dist": "l1"}
    specs = ["brightness:-0.05..0.1"]
    if method == "refine":
        result = steadygaze.verify("M-FNN-100", image, specs, method=method, until=0.4, **options)
    else:
        result = steadygaze.search("M-FNN-100", image, specs, method=method, **options)
    stored = result.save(tmp_path / "a folder")
    commands = re.findall(r"<code>(.*?)</code>", make_report(result, directory=stored), flags=re.DOTALL)
    words = shlex.split(unescape(commands[0]).replace("\\\n", " "))
    assert main([*words[1:], "--out", str(tmp_path / "again"), "--quiet"]) == result.verdict.exit_code
    summary, again = (read_summary(place).plain() for place in (stored, tmp_path / "again"))
    # The name of the image, the last digit of the end of a line, and a note on the file's type are all that differ.
    for name in ("image", "line", "notes"):
        again.pop(name, None), summary.pop(name, None)
    assert again == summary


def test_a_file_called_like_a_bundled_image_is_not_taken_for_it(tmp_path: Path):
    file = tmp_path / "mnist:69990"
    Image.open(zoo.image_path("mnist:69991")).save(file, format="PNG")
    result = steadygaze.verify("M-FNN-100", file, ["brightness:0..0.1"])
    stored = result.save(tmp_path / "stored")
    assert str(stored / "image.npy") in Page(make_report(result, directory=stored)).text


def test_it_is_accessible_in_its_bones(result: Result):
    text = make_report(result)
    page = Page(text)
    assert page.all("html")[0]["lang"] == "en" and len(page.all("h1")) == 1 and len(page.all("title")) == 1
    assert all(image.get("alt") for image in page.all("img")) and len(page.all("img")) >= 10
    assert all(cell.get("scope") in ("col", "row") for cell in page.all("th"))
    labels = [section["aria-labelledby"] for section in page.all("section")]
    ids = {attributes["id"] for _, attributes in page.tags if attributes.get("id")}
    assert set(labels) <= ids
    assert all(figure.get("src", "").startswith(PIXEL) for figure in page.all("img"))


def assert_quiet(text: str) -> None:
    """No address outside of the file: URLs are those of namespaces, and everything that loads is inside."""
    addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'<>)]*", re.sub(r"base64,[\w+/=]+", "", text)))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    page = Page(text)
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "data", "xlink:href"):
            value = attributes.get(name) or ""
            assert not value or value.startswith(("data:", "#")), (tag, name, value)
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'") and "http" not in policy
    assert not re.search(r"url\((?!#)", text) and "@import" not in text


KINDS = {
    "map": (["brightness:0..0.3", PATCH], {}),
    "partial": (["brightness:0..0.9", "translate:dx=1"], {"method": "map", "budget": 100}),
    "refined": (["brightness:0..0.3"], {"method": "refine", "property": "cr"}),
    "four": (["brightness:0..0.02", PATCH + ":0..0.02", "translate:dx=1:0..0.02", "darkness:0..0.02"], {"until": 0.9}),
    "away": (["brightness:0.1..0.2"], {}),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_result_has_a_page(name: str):
    specs, options = KINDS[name]
    budget = Budget(Limits(max_regions=options["budget"])) if "budget" in options else None
    result = steadygaze.verify("M-FNN-100", "mnist:69992", specs, **(options | {"budget": budget}))
    text = make_report(result)
    assert_quiet(text)
    page = Page(text)
    assert (result.stopped is None) or f"stopped early ({result.stopped})" in page.text
    assert ("The attention was not measured." in page.text) == (name == "refined")
    assert ("The domain does not contain the unperturbed image." in page.text) == (name == "away")
    assert ("Not available: the boundary" in page.text) == (name in ("partial", "four", "away"))


@pytest.mark.parametrize("method", ["gbs", "bfs", "boundary"])
def test_searches_have_a_page(method: str):
    result = steadygaze.search("M-FNN-100", "mnist:69990", ["brightness:0..0.2"], method=method, delta=3.0)
    text = make_report(result)
    assert_quiet(text)
    page = Page(text)
    assert f"({method})" in page.text and f"IR {result.sets['IR']}" in page.text
    assert "Attention violation" in page.text and "The outermost boundary" not in page.text


def test_violations_are_told_where_the_unperturbed_image_is_outside():
    question = ("M-FNN-100", "mnist:69990", ["brightness:0.9..1"])
    refined = Page(make_report(steadygaze.verify(*question, method="refine", property="cr"))).text
    assert "No violation is proved" not in refined and "Nearest label violation" in refined
    searched = Page(make_report(steadygaze.search(*question, method="bfs"))).text
    assert "Attention violation" in searched and "Without any perturbation." not in searched


@pytest.mark.parametrize(("range", "place"), [("0..0.1", "the unperturbed image."), ("0.9..1", "the corner nearest")])
def test_the_key_home_goes_where_the_page_says(range: str, place: str):
    result = steadygaze.verify("M-FNN-100", "mnist:69990", [f"brightness:{range}"], delta=3.0)
    text = " ".join(make_explorer(result, make_thresholds(result)).html.split())
    assert f"Home goes to {place}" in text


def test_a_violation_in_part_of_a_region_is_not_denied():
    """The label is lost from brightness 0.9924 on, in the middle of the last region."""
    question = {"property": "cr", "delta": "1000%", "method": "bfs"}
    result = steadygaze.search("M-FNN-100", "mnist:69990", ["brightness:0..1"], **question)
    assert result.verdict.value == "not robust" and result.sets["CB"] == 1 and not result.sets["MR"]
    text = Page(make_report(result)).text
    assert "No violation is proved" not in text and "No violation is shown: each covers only part of a region." in text


def test_texts_of_users_are_never_markup(tmp_path: Path):
    folder = tmp_path / "<b>folder"
    folder.mkdir()
    model, image = folder / EVIL_MODEL, folder / EVIL_IMAGE
    shutil.copy(zoo.model_path("M-FNN-100"), model)
    shutil.copy(zoo.image_path("mnist:69990"), image)
    names = [EVIL_CLASS] * 10
    evil = steadygaze.verify(model, image, ["brightness:0..0.2"], delta=3.0, names=names)
    stored = evil.save(folder / "<script>out")
    text = make_report(evil, directory=stored)
    good = steadygaze.verify("M-FNN-100", "mnist:69990", ["brightness:0..0.2"], delta=3.0)
    harmless = make_report(good, directory=good.save(tmp_path / "good"))
    assert [tag for tag, _ in Page(text).tags] == [tag for tag, _ in Page(harmless).tags]
    for _, attributes in Page(text).tags:
        assert not [name for name in attributes if name.startswith("on")]
    assert EVIL_CLASS in Page(text).text and EVIL_MODEL.removesuffix(".onnx") in Page(text).text
    assert "<script" not in text and "<img src=x" not in text and "<svg onload" not in text


def test_what_is_not_decided_around_zero_is_not_said_to_be_out_of_reach():
    result = steadygaze.verify("M-FNN-100", "mnist:69990", ["brightness:-0.02..0.02"], delta=0.0, property="ar")
    assert result.verdict.value == "undecided"
    text = Page(make_report(result)).text
    assert "so no part counts as reachable." in text and "nothing can be reached" not in text


def test_names_cannot_turn_the_text_around_them():
    names = [f"{number}\u202eevil\u2066" for number in range(10)]
    result = steadygaze.verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], delta=3.0, names=names)
    page, explorer = make_report(result), make_explorer(result, make_thresholds(result)).html
    assert "7\\u202eevil" in page and not set("\u202e\u2066") & set(page + explorer)
    facts = re.search(r'id="sg-facts">(.*?)</script>', explorer, re.DOTALL)
    assert facts is not None and json.loads(facts[1])["names"][7] == "7\\u202eevil\\u2066"


def test_a_file_is_written_whole_and_only_reports_are_replaced(result: Result, tmp_path: Path):
    path = tmp_path / "new" / "report.html"
    assert write_report(result, path) == path and result.report(tmp_path / "own.html").read_bytes() == path.read_bytes()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="exists already"):
        write_report(result, path)
    assert write_report(result, path, force=True).read_bytes() == before, "the same result gives the same bytes"
    other = tmp_path / "precious.html"
    other.write_text("<p>mine", encoding="ascii")
    with pytest.raises(StoreError, match="is not a report"):
        write_report(result, other, force=True)
    with pytest.raises(StoreError, match="is a directory"):
        write_report(result, tmp_path, force=True)
    with pytest.raises(StoreError, match="is not a directory"):
        write_report(result, other / "report.html")
    assert other.read_text(encoding="ascii") == "<p>mine"
    assert sorted(file.name for file in tmp_path.rglob("*.html")) == ["own.html", "precious.html", "report.html"]


def test_real_pictures_are_inside(result: Result, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    monkeypatch.setattr(
        html, "make_explorer", lambda *_, **__: SimpleNamespace(head="", html="<p>map</p>", has_weights=True)
    )
    text = make_report(result)
    sizes = sorted(len(image["src"] or "") for image in Page(text).all("img"))
    assert sizes[-1] > 50_000 and sizes[-2] > 20_000, "the map and the boundary"
    assert len(text) < 4_000_000
    assert_quiet(text)


def pixels_of(uri: str) -> np.ndarray:
    assert uri.startswith(PIXEL)
    with Image.open(io.BytesIO(base64.b64decode(uri.removeprefix(PIXEL)))) as picture:
        return np.asarray(picture).astype(np.int64)


def test_pictures_show_pixels_and_the_sign_of_maps():
    colours = np.zeros((3, 1, 2))
    colours[0, 0, 1] = 1.0
    assert pixels_of(image_uri(colours)).tolist() == [[[0, 0, 0], [255, 0, 0]]]
    assert pixels_of(image_uri(np.array([[[0.0, 0.5, 2.0]]]))).tolist() == [[0, 128, 255]]
    assert pixels_of(image_uri(np.array([[[0.0]], [[1.0]]]))).tolist() == [[128]]
    low, middle, high = pixels_of(map_uri(np.array([[-1.0, 0.0, 3.0]]), 2.0))[0]
    assert low[2] > low[0] and high[0] > high[2] and (middle > 240).all()
    assert (pixels_of(map_uri(np.zeros((2, 2)), 0.0)) > 240).all()
