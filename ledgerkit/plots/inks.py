"""Colours that are readable on the background of a plot, light or dark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledgerkit import extras

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
WHITE, GREY = "#FFFFFF", "#999999"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW)
# Contrast ratios of WCAG 2.2, success criteria 1.4.3 (text) and 1.4.11 (graphical objects).
TEXT_CONTRAST, SHAPE_CONTRAST = 4.5, 3.0
_LINEAR_PART = 0.04045  # the part of the sRGB curve that is a line
_SHADE = 0.12  # share of the text's colour in a shade
_TINT = 0.6  # share of the colour in a tint
_STEPS = 50


@dataclass(frozen=True, slots=True)
class Inks:
    """The colours of texts and shapes on a background of colour `face`."""

    face: str
    text: str
    faint: str
    shade: str

    def readable_or_text(self, colour: Any) -> str:
        """Return a colour of the user's style, or the text's if that is not readable here."""
        return _hex(colour) if contrast(colour, self.face) >= TEXT_CONTRAST else self.text

    def shape(self, colour: str) -> str:
        """Return a colour of a line or an area, as near to `colour` as is visible."""
        return readable(colour, self.face, SHAPE_CONTRAST)

    def tint(self, colour: str) -> str:
        """Return a lighter colour on a light background, or a darker one on a dark one."""
        return _mix(self.face, colour, _TINT)

    def text_colour(self, colour: str) -> str:
        """Return a colour of a text, as near to `colour` as is readable."""
        return readable(colour, self.face, TEXT_CONTRAST)


def inside(ax: Axes) -> Inks:
    return _choose_inks(_blend(ax.get_facecolor(), outside(ax).face))


def outside(ax: Axes) -> Inks:
    """Return the colours for what is written around the axes."""
    figure: Any = ax.get_figure(root=True)
    face = _blend(figure.get_facecolor(), _page_colour())
    return _choose_inks(_blend(ax.figure.get_facecolor(), face))


def readable(colour: Any, face: str, ratio: float) -> str:
    """Return `colour`, mixed with black or white until its contrast with `face` is `ratio`."""
    far = on_colour(face)
    for step in range(_STEPS):
        mixed = _mix(_hex(colour), far, step / _STEPS)
        if contrast(mixed, face) >= ratio:
            return mixed
    return far


def on_colour(background: Any) -> str:
    """Return black or white, whichever has more contrast with a background."""
    return max(BLACK, WHITE, key=lambda colour: contrast(colour, background))


def contrast(colour: Any, other: Any) -> float:
    """Compute the contrast ratio of two opaque colours, from 1 to 21, as WCAG defines it."""
    dark, light = sorted((_luminance(colour), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Any) -> float:
    linear: list[float] = [
        part / 12.92 if part <= _LINEAR_PART else ((part + 0.055) / 1.055) ** 2.4
        for part in _colors().to_rgb(colour)
    ]
    red, green, blue = linear
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _choose_inks(face: str) -> Inks:
    """Choose the colours for a background; text has the style's colour if that is readable."""
    style_text = _hex(_style_text())
    text = style_text if contrast(style_text, face) >= TEXT_CONTRAST else on_colour(face)
    return Inks(
        face=face,
        text=text,
        faint=readable(GREY, face, SHAPE_CONTRAST),
        shade=_mix(face, text, _SHADE),
    )


def _page_colour() -> str:
    """Return the likely colour of the page below a transparent figure."""
    return BLACK if on_colour(_style_text()) == BLACK else WHITE


def _blend(colour: Any, below: str) -> str:
    """Return the visible colour where `colour`, which may be transparent, covers another."""
    return _mix(below, _hex(colour), _colors().to_rgba(colour)[3])


def _mix(colour: str, other: str, share: float) -> str:
    pairs = zip(_colors().to_rgb(colour), _colors().to_rgb(other), strict=True)
    return _hex(tuple(a + (b - a) * share for a, b in pairs))


def _hex(colour: Any) -> str:
    text: str = _colors().to_hex(colour)
    return text


def _colors() -> Any:
    return extras.require("matplotlib.colors", "notebook", "A plot")


def _style_text() -> Any:
    return extras.require("matplotlib", "notebook", "A plot").rcParams["text.color"]
