"""One live line about something that takes a while: in a notebook or a terminal, else nothing."""

from __future__ import annotations

import sys
import threading
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

_AFTER_S = 0.5  # what is quicker shows nothing


class Line:
    """A line that is rewritten in its place, and gone when its block ends."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._handle: Any = None
        self._width = 0
        main = threading.current_thread() is threading.main_thread()
        self._notebook = main and _in_notebook()
        self._terminal = main and not self._notebook and sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Show a text in place of the one before."""
        if time.monotonic() - self._begin < _AFTER_S:
            return
        if self._notebook:
            self._display(text)
        elif self._terminal:
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width = len(text)

    def _display(self, text: str) -> None:
        """Show it in the notebook's own way."""
        display = import_module("IPython.display").display
        plain = {"text/plain": text}
        if self._handle is None:
            self._handle = display(plain, raw=True, display_id=True)
        else:
            self._handle.update(plain, raw=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
        elif self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


def _in_notebook() -> bool:
    """Tell whether a notebook's kernel runs this; nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


class NoBar:
    """A progress bar that nobody sees."""

    def update(self, count: int = 1) -> None:
        """Count on."""

    def refresh(self) -> None:
        """Show how far it is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
