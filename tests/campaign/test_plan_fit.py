"""Images of a plan that do not fit its model: reported together, Failed at once, or fitted if the run says so."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from steadygaze import zoo
from steadygaze.campaign.plan_file import read_plan
from steadygaze.campaign.run import run_campaign
from steadygaze.campaign.solving import solve
from steadygaze.campaign.stored_campaign import Plan, Store
from steadygaze.campaign.worker_pool import Duty
from steadygaze.errors import OptionError
from steadygaze.images import read_image

TEXT = """
PRESET[limits]
seconds = 60
memory_gib = 16
[[models]]
use = "M-FNN-100"
[[images]]
use = "photos"
COMBINATIONS[[runs]]
method = "map"
property = "cr"
"""
LIGHT = '[combinations]\nlight = ["brightness:0..0.01"]\n'


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A digit as it is, enlarged in grey, and enlarged in colour."""
    (tmp_path / "photos").mkdir()
    digit = Image.fromarray((255 * read_image(zoo.image_path("mnist:69990")).pixels[0]).astype(np.uint8))
    digit.save(tmp_path / "photos" / "as-it-is.png")
    digit.resize((56, 56)).save(tmp_path / "photos" / "large.png")
    digit.resize((40, 30)).convert("RGB").save(tmp_path / "photos" / "wide.png")
    return tmp_path


def plan_from(folder: Path, more: str = "", preset: str = "", combinations: str = LIGHT) -> Plan:
    text = TEXT.replace("PRESET", preset).replace("COMBINATIONS", combinations) + more
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    return read_plan(folder / "plan.toml")


def never_called(question: dict) -> dict:
    raise AssertionError(question)


def test_misfits_are_told_together_and_failed_without_a_worker(photos: Path):
    plan = plan_from(photos)
    assert plan.notes == (
        "2 of 3 images do not fit M-FNN-100, which takes 28 × 28 in grey: 2 other sizes, 1 RGB; "
        'add fit = "pad" (or "crop", "resize") and grey = true to [[runs]]',
    )
    assert plan.models["M-FNN-100"].neurons == 100 and len(plan.tasks) == 3
    # Without the one that fits, no worker has anything to do.
    (photos / "photos" / "as-it-is.png").unlink()
    plan = plan_from(photos)
    report = run_campaign(plan, photos / "out", workers=1, duty=Duty.of(never_called))
    assert report.counts == {"Failed": 2} and report.missing == 0
    reasons = {key: row["answer"]["reason"] for key, row in Store.open(photos / "out").rows().items()}
    assert sorted(reasons.values()) == [
        'is 40 × 30 in RGB, but the model takes 28 × 28 in grey; add fit = "pad" (or "crop", "resize") and grey = true '
        "to [[runs]]",
        'is 56 × 56 in grey, but the model takes 28 × 28 in grey; add fit = "pad" (or "crop", "resize") to [[runs]]',
    ]
    assert Plan.from_data(plan.as_data()).misfits == plan.misfits


def test_fitted_images_are_solved(photos: Path):
    plan = plan_from(photos, 'fit = "pad"\ngrey = true\n')
    assert plan.notes == () and plan.misfits == {}
    assert {solve(plan.question(task))["label"] for task in plan.tasks} == {7}


def test_perturbations_must_lie_within_the_fitted_image(photos: Path):
    combinations = '[combinations]\npatch = ["patch:x=40,y=10,w=4,h=4"]\n'
    with pytest.raises(Exception, match="leave"):
        plan_from(photos, 'fit = "pad"\ngrey = true\n', combinations=combinations)


def test_a_preset_goes_with_images_that_a_run_fits_to_one_size(photos: Path):
    plan = plan_from(photos, 'fit = "pad"\ngrey = true\n', preset='preset = "dirt"\n', combinations="")
    specs = [specs for name, specs in plan.combinations.items() if name == "dirt-dark-spot"]
    assert len(specs) == 1 and {task.image for task in plan.tasks} == set(plan.images)
    assert {task.combination for task in plan.tasks} == set(plan.combinations)
    with pytest.raises(OptionError, match="a preset needs images of one size"):
        plan_from(photos, preset='preset = "dirt"\n', combinations="")


def test_errors_speak_the_words_of_plans(photos: Path):
    with pytest.raises(OptionError, match=r"^plan.toml: runs 1.fit: fit is 'padd'\. Did you mean pad\?"):
        plan_from(photos, 'fit = "padd"\n')
    with pytest.raises(OptionError, match="grey = true and rgb = true exclude each other"):
        plan_from(photos, 'fit = "pad"\ngrey = true\nrgb = true\n')
