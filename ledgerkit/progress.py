"""Progress bars and status lines, in a notebook or a terminal; nothing elsewhere."""

from __future__ import annotations

import math
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

from ledgerkit.errors import cut
from ledgerkit.visible_text import escape_invisible

_DELAY_S = 0.5  # nothing is shown for shorter work


class Line:
    """A line that is rewritten in place, and removed at the end of its ``with`` block."""

    def __init__(self, *, at_once: bool = False, is_shown: bool = True) -> None:
        self._start = time.monotonic() + (0.0 if at_once else _DELAY_S)
        self._handle: Any = None
        self._width = 0
        is_shown = is_shown and threading.current_thread() is threading.main_thread()
        self._notebook = is_shown and _in_notebook()
        self._terminal = is_shown and not self._notebook and sys.stderr.isatty()

    def show(self, text: str | Callable[[], str]) -> None:
        """Replace the line's text; a function is called only if the line is shown."""
        if time.monotonic() < self._start:
            return
        text = escape_invisible(text if isinstance(text, str) else text())
        if self._notebook:
            self._display(text)
        elif self._terminal:
            text = text[: shutil.get_terminal_size().columns - 1]  # a second row would stay
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width = len(text)

    def _display(self, text: str) -> None:
        display = import_module("IPython.display").display
        plain = {"text/plain": text}
        if self._handle is None:
            self._handle = display(plain, raw=True, display_id=True)
        else:
            self._handle.update(plain, raw=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove the line, until a text is shown again."""
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
        elif self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0


_wait_line: ContextVar[Line | None] = ContextVar("wait_line", default=None)


@contextmanager
def show_waits() -> Iterator[None]:
    """Show long waits of the requests that are sent in a ``with`` block."""
    with Line(at_once=True) as line:
        token = _wait_line.set(line)
        try:
            yield
        finally:
            _wait_line.reset(token)


def show_wait(text: str) -> None:
    """Show a long wait, on the line of the block that the request was sent in."""
    if line := _wait_line.get():
        line.show(text)


def _in_notebook() -> bool:
    """Return True in a notebook's kernel, without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


class Bar:
    """A progress bar, which appears after half a second and is removed at its end."""

    def __init__(self, *, disable: bool, delay: float = _DELAY_S, **options: Any) -> None:
        self._options = {"leave": False, "initial": 0} | options
        self._start = math.inf if disable else time.monotonic() + delay
        self._shown: Any = None

    def update(self, count: int = 1) -> None:
        if self._shown is not None:
            self._shown.update(count)
            return
        self._options["initial"] += count
        self.refresh()

    def refresh(self) -> None:
        if self._shown is not None:
            self._shown.refresh()
        elif time.monotonic() >= self._start:
            self._shown = _open_bar(self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown.close()


def _open_bar(options: dict[str, Any]) -> Any:
    # tqdm is imported when a bar appears: short work does not wait for it.
    options["desc"] = cut(options["desc"])
    if find_spec("ipywidgets"):  # without it, tqdm.auto would warn in a notebook
        from tqdm import auto

        return auto.tqdm(**options)
    import tqdm

    return tqdm.tqdm(**options)
