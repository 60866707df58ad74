"""Warnings about a verb's answer: issued as Python warnings, or collected by a panel."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def warn(message: str, stacklevel: int) -> None:
    """Issue a warning, or add it to the list of `collect_warnings` in this context."""
    collected = _collected.get()
    if collected is None:
        warnings.warn(message, stacklevel=stacklevel + 1)
    else:
        collected.append(message)


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the package's own warnings in this thread or task instead of issuing them."""
    # warnings.catch_warnings would not do: before Python 3.14 its filters and hook are those of
    # the whole process, and panels run in several threads at a time.
    messages: list[str] = []
    token = _collected.set(messages)
    try:
        yield messages
    finally:
        _collected.reset(token)
