"""Hearing what a verb warns of in a thread, where nobody would read it."""

from __future__ import annotations

import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS = "the embedded ledger|no ledger was chosen"  # how the sentences begin


class _Ear:
    """
    Who listens now, by thread.

    Filters of warnings are the whole process's: the first to listen sets them, the last
    puts them back, whatever their order.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard: dict[int, list[str]] = {}
        self._filters = warnings.catch_warnings()
        self._usual: Any = None

    def open(self) -> list[str]:
        """Begin to listen in this thread."""
        with self._lock:
            if not self._heard:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.filterwarnings("always", message=_OURS)
                if warnings.showwarning != self._take:  # which someone else may have put back
                    self._usual = warnings.showwarning
                warnings.showwarning = self._take  # type: ignore[assignment]  # passes the rest on
            return self._heard.setdefault(threading.get_ident(), [])

    def close(self) -> None:
        """Stop listening in this thread."""
        with self._lock:
            self._heard.pop(threading.get_ident(), None)
            if not self._heard:
                self._filters.__exit__(None, None, None)

    def _take(self, message: Warning | str, category: type[Warning], *place: Any) -> None:
        """Take a warning of a thread that is listened to; the others go their way."""
        heard = self._heard.get(threading.get_ident())
        if heard is None:
            self._usual(message, category, *place)
        else:
            heard.append(str(message))


_warnings = _Ear()


@contextmanager
def listening() -> Iterator[list[str]]:
    """Hear what is warned of in this thread."""
    heard = _warnings.open()
    try:
        yield heard
    finally:
        _warnings.close()
