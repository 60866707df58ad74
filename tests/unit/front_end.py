"""A front end without a page: it receives what a view sends, and sends what a person does."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.widgets._panel import Displayable


class FrontEnd:
    """
    The messages between one view and the kernel.

    Parameters
    ----------
    shown
        A panel or an explorer.
    """

    def __init__(self, shown: Displayable) -> None:
        self.window = shown.window
        self.messages: list[dict[str, Any]] = []
        self.panel: dict[str, Any] = {}
        self.state: dict[str, Any] = {}
        self.typed: dict[str, Any] = {}
        self.window.view.send = self._receive
        self.send(type="ready")

    def _receive(self, message: dict[str, Any]) -> None:
        """Store a message as the page would get it, through JSON."""
        message = json.loads(json.dumps(message))
        self.messages.append(message)
        if message["type"] == "window":
            self.state = message
        elif message["type"] == "panel":
            if message["pages"] is None:
                message["pages"] = self.panel["pages"]
            self.panel = message

    def send(self, **message: Any) -> None:
        self.window.receive(message)

    def type(self, name: str, value: object) -> None:
        """Type a text into a field; it is sent with the next click or Enter."""
        self.typed[name] = value

    def press(self, button: str | None = None) -> None:
        """Click a button, or press Enter in a field."""
        shown = {field["name"]: field["value"] for field in self.panel["fields"]}
        self.send(type="press", button=button, values={**shown, **self.typed})
        self.typed.clear()

    def cancel(self) -> None:
        self.send(type="cancel")

    def enter_secret(self, name: str, text: str) -> None:
        """Type into a password field, and leave it."""
        self.send(type="secret", name=name, text=text)

    def ask_block(self, at: list[int], message: dict[str, Any]) -> Any:
        result = self.panel["result"]
        self.send(type="block", at=at, result=result, request="1", message=message)
        return next(m["payload"] for m in reversed(self.messages) if m["type"] == "reply")

    def is_enabled(self, button: str) -> bool:
        """Return True if a further button can be pressed."""
        return next(b["enabled"] for b in self.panel["buttons"] if b["name"] == button)

    @property
    def titles(self) -> list[str]:
        return [page["title"] for page in self.panel["pages"]]

    @property
    def text(self) -> str:
        """Everything that was ever sent to the page."""
        return json.dumps(self.messages)


async def until(true: Callable[[], bool]) -> None:
    """Wait for something, a minute at most."""
    for _ in range(6_000):
        if true():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it never came true")
