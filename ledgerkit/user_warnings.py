"""Warnings about a verb's result: issued as Python warnings, or passed to a handler."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ledgerkit.redaction import hide
from ledgerkit.visible_text import escape_invisible

_handler: ContextVar[Callable[[str], object] | None] = ContextVar("handler", default=None)


def warn(message: str) -> None:
    """
    Issue a warning, or pass its message to the handler of this context.

    The warning points at the line that called the package.
    """
    message = escape_invisible(hide(message))
    handler = _handler.get()
    if handler is None:
        warnings.warn(message, stacklevel=_stacklevel())
    else:
        handler(message)


def _stacklevel() -> int:
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("ledgerkit."):
        frame, depth = frame.f_back, depth + 1
    return depth


@contextmanager
def handle_warnings(handler: Callable[[str], object]) -> Iterator[None]:
    """Pass the package's own warnings in this thread or task to a function."""
    # warnings.catch_warnings cannot be used: before Python 3.14 its filters and hook apply to the
    # whole process, and panels run in several threads at a time.
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the package's own warnings in this thread or task instead of issuing them."""
    messages: list[str] = []
    with handle_warnings(messages.append):
        yield messages
