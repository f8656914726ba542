"""The colours of the token lens: which step a value falls on, and that text can be read on each of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from datasette_rltracer import lens_scales

CSS = (Path(lens_scales.__file__).parent / "static/lens.css").read_text()
INK = {"light": "#1c2024", "dark": "#e4e6e8"}


@pytest.mark.parametrize(
    ("scale", "value", "look"),
    [
        (lens_scales.LOGPROB, 0.0, "s0"), (lens_scales.LOGPROB, -0.1, "s0"), (lens_scales.LOGPROB, -5.01, "s7"),
        (lens_scales.ENTROPY, 0.0, "e0"), (lens_scales.ENTROPY, 3.0, "e7"), (lens_scales.MISMATCH, 0.0, "z"),
        (lens_scales.MISMATCH, -0.5, "n3"), (lens_scales.signed_scale([0.3, None]), 0.3, "p3"),
        (lens_scales.signed_scale([]), 0.0, "z"), (lens_scales.signed_scale([-2.0]), -2.0, "n4"),
    ],
)  # fmt: skip
def test_a_value_falls_on_its_step(scale, value, look):
    assert scale.look(value) == look
    assert [step.look for step in scale.steps()] == list(scale.looks)


def test_a_signed_scale_says_where_its_steps_end():
    words = [step.words for step in lens_scales.signed_scale([0.15]).steps()]
    assert words[0] == "below −0.15"
    assert words[3:6] == ["−0.05 to 0", "0", "0 to 0.05"]
    assert words[-1] == "from 0.15"


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_every_colour_and_lightness_orders_each_scale(scheme):
    """The contrast of WCAG AA, https://www.w3.org/TR/WCAG22/#contrast-minimum."""
    blocks = CSS.split("@media screen and (prefers-color-scheme: dark)")
    colours = dict(re.findall(r"--([a-z]\d?|hatch): (#[0-9a-f]{6})", blocks[scheme == "dark"]))
    assert len(colours) == 27
    for name, colour in colours.items():
        lighter, darker = sorted((luminance(colour), luminance(INK[scheme])), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, name
    for family in ("n1234", "p1234", "s01234567", "e01234567"):
        steps = [luminance(colours[family[0] + step]) for step in family[1:]]
        assert steps == sorted(steps, reverse=scheme == "light")
