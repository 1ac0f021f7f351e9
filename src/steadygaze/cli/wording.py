"""An answer in words: the sentence of the verdict, shares and thetas as people read them.

Turns the plain data of a summary into text. Rounds for reading, but never to nothing or everything, and says no more
than the proved bounds do. Prints nothing.
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from ..results.answer import round_up
from ..results.summary import violating_theta

Summary = Mapping[str, Any]


def share_text(share: float) -> str:
    """A share as a percentage; what is not exactly nothing or everything never looks like it.

    >>> share_text(0.0), share_text(0.12434), share_text(3e-9), share_text(1.0 - 3e-9), share_text(1.0)
    ('0 %', '12.43 %', '3e-07 %', '99.9999997 %', '100 %')
    >>> share_text(1.0 - 2.0**-53)
    'just below 100 %'
    """
    if share in (0.0, 1.0):
        return f"{100.0 * share:.0f} %"
    percent = 100.0 * share
    if percent < 0.005:
        return f"{percent:.2g} %"
    for decimals in range(2, 12):
        text = f"{percent:.{decimals}f}"
        if float(text) < 100.0:
            return f"{text} %"
    return "just below 100 %"


def bounds_text(bounds: Sequence[float]) -> str:
    """A share with its proved bounds; one number where both read the same.

    >>> bounds_text([0.5, 0.5 + 1e-12]), bounds_text([0.0, 1e-12]), bounds_text([0.25, 0.75])
    ('50.00 %', '0 to 1e-10 %', '25.00 to 75.00 %')
    """
    low, high = (share_text(share) for share in bounds)
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def number_text(number: float) -> str:
    """A number with five significant digits.

    >>> number_text(0.0123456789), number_text(3.0), number_text(4e-13)
    ('0.012346', '3', '4e-13')
    """
    return f"{number:.5g}"


def theta_text(theta: Sequence[float], axes: Sequence[str]) -> str:
    """A theta with the names of its axes.

    >>> theta_text([0.25, 1.5], ["brightness", "translation right [px]"])
    'brightness = 0.25, translation right [px] = 1.5'
    """
    return ", ".join(f"{axis} = {number_text(value)}" for axis, value in zip(axes, theta, strict=True))


def question_text(summary: Summary) -> str:
    """What was asked: model and image on one line, the domain on the next."""
    domain = summary["domain"]
    axes = " × ".join(
        f"{name} {number_text(low)}..{number_text(high)}"
        for name, low, high in zip(domain["names"], domain["low"], domain["high"], strict=True)
    )
    return f"{summary['model']['name']} says {label_text(summary)} for {summary['image']['name']}\nDomain: {axes}"


def label_text(summary: Summary) -> str:
    """The label of the unperturbed image, by name and number."""
    name, number = summary["label_name"], summary["label"]
    return name if name == str(number) else f"{name} (class {number})"


def delta_text(summary: Summary) -> str:
    """The threshold, absolute, and how it was given if it was relative."""
    text, value = summary["delta"]["text"], number_text(summary["delta"]["value"])
    return f"{value} ({text.removesuffix('%')} % of the original maps)" if text.endswith("%") else value


def verdict_text(summary: Summary) -> str:
    """One sentence for the verdict: what is proved, where, and for which δ."""
    area, wanted = summary["area"], summary["property"]
    asks_label, asks_attention = wanted in ("cr", "both"), wanted in ("ar", "both")
    within = within_text(summary)
    if summary["verdict"] == "robust":
        return robust_text(summary)
    if summary["verdict"] == "not robust":
        parts = []
        if asks_label and area["MR"][0] > 0.0:
            parts.append(f"the label changes on {_at_least(area['MR'])} of the domain")
        if asks_attention and area["IR"][0] > 0.0:
            parts.append(f"the attention maps are not {within} on {_at_least(area['IR'])} of it")
        if not parts:
            return sentence(_single_violation_text(summary))
        text = " and ".join(parts)
        return sentence(text.replace(" of it", " of the domain") if len(parts) == 1 else text)
    name = {"cr": "CR", "ar": "AR"}.get(wanted)
    share = area["undecided"][1] if name is None else area[name][1] - area[name][0]
    return sentence(f"no violation is proved, but {share_text(share)} of the domain is not decided")


def within_text(summary: Summary) -> str:
    """What the attention maps have to be."""
    return f"within δ = {delta_text(summary)} of the expected ones"


def robust_text(summary: Summary) -> str:
    """One sentence for the verdict robust, whatever the method."""
    wanted = summary["property"]
    parts = ["the label is kept"] * (wanted in ("cr", "both"))
    parts += [f"the attention maps stay {within_text(summary)}"] * (wanted in ("ar", "both"))
    return sentence(" and ".join(parts) + " everywhere in the domain")


def nearest_text(summary: Summary, name: str) -> str:
    """Where the nearest violation of CR or AR is, or that there is none; of AR on kinks nothing is said."""
    found = summary["nearest"][name]
    low, high = found["low"], found["high"]
    aside = " outside of kinks" if name == "AR" and summary["sliver_share"] > 0.0 else ""
    if high is None and low is None:
        return f"none in the domain{aside}"
    below = f"none below distance {number_text(low)}{aside}" if low else "a nearer one is not excluded"
    if high is None:
        return f"none is proved; {below}" if low else "none is proved so far"
    where = f"{theta_text(found['theta'], summary['domain']['names'])} (distance {number_text(high)}"
    return f"{where})" if number_text(low) == number_text(high) else f"{where}; {below})"


def kept_text(summary: Summary) -> str:
    """The share of AR at other thresholds, which are relative to the size of the original maps."""
    kept = {name: bounds for name, bounds in summary["ar_at_delta"].items() if name != "all"}
    shares = "; ".join(f"at {name.removesuffix('%')} % {bounds_text(bounds)}" for name, bounds in kept.items())
    return f"{shares} (of the original maps' size, {number_text(summary['delta']['map_size'])})"


def enough_text(summary: Summary) -> str:
    """The smallest known δ at which the whole domain is AR, kinks aside."""
    enough = summary["ar_at_delta"]["all"]
    if enough is None:
        why = "the map is partial" if summary.get("boxes") is None else "that was not proved"
        return f"not known, as {why}"
    size = summary["delta"]["map_size"]
    share = f" ({round_up(100.0 * enough / size, 4):g} % of the original maps)" if size > 0.0 else ""
    # The bounds of boxes are wide where nothing had to be known precisely.
    start = "from" if summary.get("boxes") is None else "at the latest from"
    return f"{start} δ = {enough:.8g}{share}, kinks aside"


def measures_attention(summary: Summary) -> bool:
    """Whether attention was looked at; a refinement does not where the label alone is asked for."""
    return "attention" in summary.get("measures", ("attention",))


def boxes_text(summary: Summary) -> str:
    """How the boxes of a refinement ended."""
    boxes = summary["boxes"]
    parts = [f"{boxes['bounded']:,} decided by bounds", f"{boxes['open']:,} open"]
    if boxes["exact"]:
        parts.insert(1, f"{boxes['exact']:,} mapped region by region")
    return ", ".join(parts)


def _single_violation_text(summary: Summary) -> str:
    """A violation at a theta where no share of the domain is proved to violate."""
    names = {"cr": ("CR",), "ar": ("AR",)}.get(summary["property"], ("CR", "AR"))
    what = {"CR": "the label changes", "AR": f"the attention maps are not {within_text(summary)}"}
    found = [(name, violating_theta(summary, name)) for name in names]
    parts = [
        f"{what[name]} at {theta_text(theta, summary['domain']['names'])}" for name, theta in found if theta is not None
    ]
    return " and ".join(parts) + "; how much of the domain violates is not decided"


def _at_least(bounds: Sequence[float]) -> str:
    low, high = (share_text(share) for share in bounds)
    return low if low == high else f"at least {share_text(_rounded_down(bounds[0]))}"


def _rounded_down(share: float) -> float:
    """The largest share that is not above the given one, and that `share_text` writes as it is.

    >>> _rounded_down(0.12999), _rounded_down(5.76e-5), _rounded_down(2.99e-9)
    (0.1299, 5.7e-05, 2.9e-09)
    """
    if share in (0.0, 1.0):
        return share
    exact = Decimal(share)
    places = min(-4, exact.adjusted() - 1)
    return float(exact.quantize(Decimal(1).scaleb(places), rounding=ROUND_FLOOR))


def sentence(text: str) -> str:
    """A text as a sentence."""
    return text[0].upper() + text[1:] + "."
