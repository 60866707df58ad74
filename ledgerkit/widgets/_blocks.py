"""
The parts that the page of a panel consists of.

A block describes itself to the front end once, answers the front end's messages, and can be
formatted as HTML without scripts, for a notebook that is only read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping


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

    Parameters
    ----------
    html
        The markup. Elements with ``data-kind`` and ``data-id`` become links in a front end.
    """

    kind = "html"

    def __init__(self, html: str) -> None:
        self.html = html

    def describe(self) -> dict[str, Any]:
        """Return the markup."""
        return {"html": self.html}

    def static(self) -> str:
        """Return the markup."""
        return self.html
