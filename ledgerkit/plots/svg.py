"""
A plot as SVG to embed in an HTML page, with a title under the pointer for each mark.

The SVG of matplotlib has a document type, metadata with addresses, a style sheet for the whole
page, and ids. Only drawing elements and their presentation attributes are copied: the SVG
runs nothing, loads nothing, and changes nothing else in the page.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

from ledgerkit import extras
from ledgerkit.plots import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIGHT, DARK = "#ffffff", "#111111"  # the backgrounds of JupyterLab's themes
_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
_ELEMENTS = {"svg", "g", "defs", "path", "use", "text", "tspan", "clipPath", "rect", "pattern"}
_ATTRIBUTES = {
    *("viewBox", "width", "height", "x", "y", "d", "transform", "clip-path", "patternUnits"),
    *("fill", "fill-opacity", "fill-rule", "opacity", "stroke", "stroke-width", "stroke-opacity"),
    *("stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin"),
    *("stroke-miterlimit", "font-size", "font-weight", "font-style", "text-anchor"),
}
_REFERENCE = re.compile(r"#([\w-]+)")
_FONT_SETTING = "svg.fonttype"
_SETTING = Lock()  # the setting is global to the process


def svg_text(draw: Callable[[], Axes], *, dark: bool = False) -> str:
    """
    Draw a plot as SVG text, without pyplot, so in any thread.

    Parameters
    ----------
    draw
        Draws the plot with new axes, such as ``lambda: trace.plot("timeline")``.
    dark
        True chooses colours for a dark page, False for a light one; the background is
        transparent.

    Returns
    -------
    svg
        An ``<svg>`` element as wide as its container at most, to be placed inside a page: it
        has a ``<title>`` for each mark, no ids but those it refers to, no scripts and no
        references to other documents.

    Raises
    ------
    InvalidRequestError
        If matplotlib is not installed.
    """
    with canvas.without_pyplot(DARK if dark else LIGHT):
        ax = draw()
    titles = _name_artists(ax)
    root = ET.fromstring(_matplotlib_svg(ax))  # noqa: S314 - written by matplotlib, in this process
    return ET.tostring(_clean_root(root, titles, ax.get_title(loc="left")), encoding="unicode")


def _name_artists(ax: Axes) -> dict[str, list[str]]:
    titles = {}
    figure: Any = ax.figure
    for number, artist in enumerate(figure.findobj(lambda artist: hasattr(artist, "hover_texts"))):
        artist.set_gid(f"mark{number}")
        titles[f"mark{number}"] = getattr(artist, "hover_texts")  # noqa: B009 - Artist declares none
    return titles


def _matplotlib_svg(ax: Axes) -> bytes:
    figure: Any = ax.figure
    figure.patch.set_visible(False)
    for panel in figure.axes:
        panel.patch.set_visible(False)
    settings = extras.require("matplotlib", "notebook", "A plot").rcParams
    buffer = io.BytesIO()
    with _SETTING:
        before = settings[_FONT_SETTING]
        settings[_FONT_SETTING] = "none"
        try:
            figure.savefig(buffer, format="svg", metadata={"Date": None})
        finally:
            settings[_FONT_SETTING] = before
    return buffer.getvalue()


def _clean_root(root: ET.Element, titles: dict[str, list[str]], name: str) -> ET.Element:
    references = {id_ for child in root.iter() for id_ in _REFERENCE.findall(_links(child))}
    copied = _clean(root, titles, references)
    lines = {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    copied.attrib |= {"role": "img", "aria-label": name, "font-family": "sans-serif", **lines}
    copied.set("xmlns", _SVG)
    return copied


def _links(element: ET.Element) -> str:
    return " ".join(element.get(name, "") for name in (_HREF, "style", "clip-path", "fill"))


def _clean(element: ET.Element, titles: dict[str, list[str]], references: set[str]) -> ET.Element:
    """Copy the allowed parts of an element and its children, and add the titles of its marks."""
    attributes = {**element.attrib, **_parse_style(element.get("style", ""))}
    copied = ET.Element(_tag(element), {k: v for k, v in attributes.items() if k in _ATTRIBUTES})
    name = element.get("id", "")
    if name in references:
        copied.set("id", name)
    if element.get(_HREF, "").startswith("#"):
        copied.set("href", element.get(_HREF, ""))
    if _tag(element) in ("text", "tspan"):
        copied.text, copied.tail = element.text, element.tail
    for child in element:
        if _tag(child) in _ELEMENTS:
            copied.append(_clean(child, titles, references))
    if name in titles:
        _add_titles(copied, titles[name])
    return copied


def _tag(element: ET.Element) -> str:
    return element.tag.removeprefix(f"{{{_SVG}}}")


def _parse_style(style: str) -> dict[str, str]:
    pairs = (part.partition(":") for part in style.split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _add_titles(group: ET.Element, titles: list[str]) -> None:
    """Add a single title to the whole mark, or a title to each of its markers."""
    parents = {child: parent for parent in group.iter() for child in parent if child.tag == "use"}
    if len(titles) == 1:
        _add_title(group, titles[0])
    elif len(parents) == len(titles):
        for (marker, parent), title in zip(parents.items(), titles, strict=True):
            wrapped = ET.Element("g")
            parent[list(parent).index(marker)] = wrapped
            wrapped.append(marker)
            _add_title(wrapped, title)


def _add_title(element: ET.Element, text: str) -> None:
    title = ET.Element("title")
    title.text = text
    element.insert(0, title)
