"""Images of other sizes and colours: fitted only on request, by Pillow, with a note, and stored as fitted."""

import numpy as np
import pytest
from PIL import Image, ImageOps

import steadygaze
from steadygaze import ImageError, ModelError, OptionError
from steadygaze.image_fit import ImageFit
from support.networks.onnx_files import make_proto
from support.networks.operator_models import floats, node

COLOURS = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
PIXELS = np.moveaxis(COLOURS, 2, 0) / 255.0


def as_pillow_does(how: str, size: tuple[int, int]) -> np.ndarray:
    picture, smooth = Image.fromarray(COLOURS), Image.Resampling.BILINEAR
    if how == "resize":
        found = picture.resize(size, smooth)
    else:
        found = (ImageOps.fit if how == "crop" else ImageOps.pad)(picture, size, smooth)
    return np.moveaxis(np.asarray(found), 2, 0) / 255.0


class TestSizes:
    @pytest.mark.parametrize("how", ["resize", "crop", "pad"])
    def test_eight_bits_are_what_pillow_gives(self, how: str):
        found, notes = ImageFit.of(how).finish(PIXELS, (3, 28, 20))
        assert np.array_equal(found, as_pillow_does(how, (20, 28)))
        assert len(notes) == 1 and "60 × 40" in notes[0] and "20 × 28" in notes[0] and f"--fit {how}" in notes[0]

    def test_padding_is_black_and_keeps_the_proportions(self):
        found, _ = ImageFit.of("pad").finish(np.ones((1, 40, 60)), (1, 30, 30))
        assert (found[0, :5] == 0.0).all() and (found[0, -5:] == 0.0).all() and (found[0, 5:25] == 1.0).all()

    def test_cropping_keeps_the_centre(self):
        pixels = np.zeros((1, 20, 60))
        pixels[:, :, 20:40] = 1.0
        found, _ = ImageFit.of("crop").finish(pixels, (1, 20, 20))
        assert (found == 1.0).all()

    def test_other_numbers_keep_more_than_eight_bits(self):
        pixels = np.full((1, 10, 10), 0.1234567)
        found, _ = ImageFit.of("resize").finish(pixels, (1, 5, 5))
        assert np.allclose(found, 0.1234567, atol=1e-7) and found.dtype == np.float64

    def test_an_image_of_the_right_size_is_not_touched(self):
        pixels = np.random.default_rng(1).random((1, 28, 28))
        found, notes = ImageFit.of("resize").finish(pixels, (1, 28, 28))
        assert found is pixels and notes == ()

    def test_a_size_may_be_named(self):
        found, notes = ImageFit.of("resize:7x9").prepare(PIXELS, "x.png")
        assert found.shape == (3, 9, 7) and "--fit resize:7x9" in notes[0]


class TestColours:
    def test_grey_is_what_pillow_gives(self):
        found, notes = ImageFit.of(grey=True).prepare(PIXELS, "x.png")
        assert np.array_equal(found[0], np.asarray(Image.fromarray(COLOURS).convert("L")) / 255.0)
        assert "--grey" in notes[0]

    def test_rgb_repeats_grey(self):
        found, notes = ImageFit.of(rgb=True).prepare(PIXELS[:1], "x.png")
        assert np.array_equal(found, np.repeat(PIXELS[:1], 3, axis=0)) and "--rgb" in notes[0]

    def test_images_of_the_wanted_colour_stay_unchanged(self):
        assert ImageFit.of(grey=True).prepare(PIXELS[:1], "x.png") == (pytest.approx(PIXELS[:1]), ())
        assert ImageFit.of(rgb=True).prepare(PIXELS, "x.png")[1] == ()

    def test_other_numbers_of_channels_are_refused(self):
        with pytest.raises(ImageError, match="has 4 channels"):
            ImageFit.of(grey=True).prepare(np.zeros((4, 5, 5)), "x.png")


class TestOptions:
    @pytest.mark.parametrize("text", ["resise", "Crop it", "resize:28", "resize:0x5", "resize:", "pad:5x5x5", ":5x5"])
    def test_wrong_texts_are_refused(self, text: str):
        with pytest.raises(OptionError, match="--fit is"):
            ImageFit.of(text)

    def test_a_misspelt_word_is_guessed(self):
        with pytest.raises(OptionError, match=r"Did you mean resize\?"):
            ImageFit.of("resise")

    def test_grey_and_rgb_exclude_each_other(self):
        with pytest.raises(OptionError, match="exclude each other"):
            ImageFit.of(grey=True, rgb=True)


class TestQuestions:
    ASKED = ("M-FNN-100", ["brightness:0..0.01"])

    def verify(self, image: object, **options: object) -> steadygaze.Result:
        return steadygaze.verify("M-FNN-100", image, ["brightness:0..0.01"], property="cr", method="map", **options)

    def test_off_by_default_with_advice(self, tmp_path):
        Image.fromarray(COLOURS).save(tmp_path / "photo.png")
        with pytest.raises(ImageError, match="--grey"):
            self.verify(tmp_path / "photo.png")
        with pytest.raises(ImageError, match="--fit resize, crop or pad"):
            self.verify(tmp_path / "photo.png", grey=True)

    def test_notes_and_stored_pixels(self, tmp_path):
        Image.fromarray(COLOURS).save(tmp_path / "photo.png")
        result = self.verify(tmp_path / "photo.png", fit="crop", grey=True)
        assert [note for note in result.question.notes if note.startswith("the image is ") and "--fit crop" in note]
        result.save(tmp_path / "stored")
        loaded = steadygaze.load(tmp_path / "stored")
        assert np.array_equal(loaded.question.perturbed.x0, result.question.perturbed.x0)
        assert loaded.question.fit == result.question.fit == ImageFit("crop", None, "grey")
        assert loaded.question.image_notes == result.question.image_notes
        words = loaded.question.words(loaded.threshold, "photo.png")
        assert words[5:8] == ["--fit", "crop", "--grey"]

    def test_a_model_that_no_image_fits_is_refused_for_what_is_wrong_with_it(self, tmp_path):
        nodes = [
            node("Flatten", "image", "f"),
            node("MatMul", "f w", "h"),
            node("Tanh", "h", "t"),
            node("MatMul", "t v", "y"),
        ]
        weights = {"w": floats(16, 3), "v": floats(3, 2)}
        (tmp_path / "curved.onnx").write_bytes(make_proto(nodes, weights, [1, 1, 4, 4]).SerializeToString())
        for size in (4, 7):
            with pytest.raises(ModelError, match="Tanh"):
                steadygaze.verify(
                    tmp_path / "curved.onnx", np.full((1, size, size), 0.5), "brightness:0..0.1", fit="pad"
                )

    def test_a_torch_module_needs_the_size(self):
        torch = pytest.importorskip("torch")
        module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2)).eval()
        image, asked = np.random.default_rng(3).random((1, 7, 5)), ("brightness:0..0.1",)
        with pytest.raises(ModelError, match=r"does not state the size of its input.*fit='pad:28x28'") as refused:
            steadygaze.verify(module, image, *asked, fit="pad")
        assert "nn.Flatten" not in str(refused.value)
        assert steadygaze.verify(module, image, *asked, property="cr", fit="pad:4x4").question.model.classes == 2
        with pytest.raises(ModelError, match=r"nn\.Flatten"):
            steadygaze.verify(module, image, *asked)

    def test_results_without_the_options_are_stored_as_before(self, tmp_path):
        stored = self.verify("mnist:69990").question
        assert not {"fit", "colours"} & set(stored.stored(stored.threshold))
