"""The colours of the style sheet can be told from their ground, in the light scheme and in the dark one."""

import re

import pytest

from app.assets import static_folder

TEXT = ("text", "quiet", "link", "send-text", "receive", "connect", "heap", "error", "overlap-text")
"""Colours of words and of marks between words."""

SHAPES = ("send", "receive", "connect", "heap", "error", "overlap", "unknown", "focus", "warn-line")
"""Colours of bars, lines and outlines."""


def scheme(dark: bool) -> dict[str, str]:
    """The custom properties of one scheme."""
    style = (static_folder() / "css" / "sockscope.css").read_text("utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, re.S)
    found = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", blocks[0]))
    return found | dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", blocks[1])) if dark else found


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_of_black_and_white_is_the_greatest() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("dark", [False, True])
def test_words_and_marks_can_be_read(dark: bool) -> None:
    colours = scheme(dark)
    pairs = [(name, ground) for name in TEXT for ground in ("ground", "raised")] + [("warn-text", "warn-ground")]
    assert [(a, b, contrast(colours[a], colours[b])) for a, b in pairs if contrast(colours[a], colours[b]) < 4.5] == []


@pytest.mark.parametrize("dark", [False, True])
def test_shapes_can_be_seen(dark: bool) -> None:
    colours = scheme(dark)
    assert [(name, contrast(colours[name], colours["ground"])) for name in SHAPES if contrast(colours[name], colours["ground"]) < 3] == []
