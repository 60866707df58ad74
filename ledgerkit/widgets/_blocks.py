"""
Blocks, such as tables, that a panel shows in pages below its form.

A block describes itself to the front end once, answers the front end's messages, and can be
formatted as HTML without scripts, for a notebook without a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

from ledgerkit.plots.svg import LIGHT, svg_text
from ledgerkit.widgets import _html

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_NUMBERS = count(1)


class Block:
    """A part of a page; `kind` names the function in ``static/`` that draws it."""

    kind: ClassVar[str] = ""

    def describe(self) -> dict[str, Any]:
        """Return what the front end draws first, as JSON values; large numbers are texts."""
        raise NotImplementedError

    def handle(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a message of the front end; runs in a thread of its own."""
        raise NotImplementedError

    def static(self) -> str:
        """Format the block as HTML without scripts; every text is escaped."""
        raise NotImplementedError


class Html(Block):
    """
    Markup that this package wrote, with every text of the network escaped.

    Elements with ``data-kind`` and ``data-id`` become links in a front end.
    """

    kind = "html"

    def __init__(self, html: str) -> None:
        self.html = html

    def describe(self) -> dict[str, Any]:
        return {"html": self.html}

    def static(self) -> str:
        return self.html


class Plot(Block):
    """A plot for light and for dark pages; a notebook without a kernel shows the light one."""

    kind = "html"

    def __init__(self, draw: Callable[[], Axes]) -> None:
        self.light, self.dark = svg_text(draw), svg_text(draw, dark=True)

    def describe(self) -> dict[str, Any]:
        themes = {"on-light": self.light, "on-dark": self.dark}
        return {"html": "".join(f'<div class="{c}">{svg}</div>' for c, svg in themes.items())}

    def static(self) -> str:
        return f'<div style="background:{LIGHT}">{self.light}</div>'


class Page:
    """One page of a result: the title of its tab, and blocks; a text is markup, as in `Html`."""

    def __init__(self, title: str, *blocks: Block | str) -> None:
        self.title = title
        self.blocks = [Html(block) if isinstance(block, str) else block for block in blocks]

    @cached_property
    def described(self) -> list[dict[str, Any]]:
        """The blocks as the front end draws them first; computed in the request's thread."""
        return [{"kind": block.kind, **block.describe()} for block in self.blocks]

    def static(self) -> str:
        body = "".join(block.static() for block in self.blocks)
        return f"<h4>{_html.text(self.title)}</h4>{body}" if body else ""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a panel: a status, the main frame, pages, all frames and their source."""

    status: str
    result: pd.DataFrame | None = None
    pages: tuple[Page, ...] = ()
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    value: Any = None
    error: Exception | None = None
    warnings: tuple[str, ...] = ()
    rewrite: Callable[[str], str] = str  # rewrites messages for their reader
    number: int = field(default_factory=lambda: next(_NUMBERS))  # unique to this content

    @property
    def message(self) -> str:
        texts = (self.status, *map(self.rewrite, self.warnings))
        lines = "<br>".join(_html.text(line, 600) for line in texts)
        if self.error is None:
            return _html.status(lines)
        return _html.alert(self.error, self.rewrite) + (_html.status(lines) if lines else "")
