"""Python's garbage collector, paused or slowed while many objects are made that stay in use."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from threading import Lock

TYPE_CHECKING = False  # importing typing would take longer
if TYPE_CHECKING:
    from collections.abc import Iterator

MANY_OBJECTS = 10_000  # new containers, from which on they are moved to the oldest generation
# New containers before the collector searches them, usually 700. A collection has fewer at a time:
# a thousand responses that become tables together, and those in flight.
IN_USE = 20_000


class collector_paused:  # noqa: N801 - used as a function; a generator takes several times as long
    """
    Pause the garbage collector, which would search the new objects again and again in vain.

    With `ages`, if many were made, all objects count as old afterwards, as if they had been
    searched. It takes longer the more objects the caller has frozen, so it is for rare moments.
    """

    __slots__ = ("_ages", "_n_before", "_was_running")

    def __init__(self, *, ages: bool = False) -> None:
        self._ages = ages

    def __enter__(self) -> None:
        self._was_running = gc.isenabled()
        gc.disable()
        self._n_before = gc.get_count()[0]

    def __exit__(self, *error: object) -> None:
        if not self._was_running:
            return
        n_new = gc.get_count()[0] - self._n_before
        if self._ages and n_new >= MANY_OBJECTS and not gc.get_freeze_count():
            gc.freeze()  # moves all objects out of the collector's generations, without a search,
            gc.unfreeze()  # and back into the oldest; what the caller has frozen would not stay so
        gc.enable()


_lock = Lock()
_thresholds: list[tuple[int, int, int]] = []  # the collector's, at the start of each open block


@contextmanager
def collector_slowed() -> Iterator[None]:
    """
    Search new objects for garbage only when there are more than bulk work uses.

    It would search the same responses several times, in vain. Garbage is still found, but later.
    """
    with _lock:
        _thresholds.append(gc.get_threshold())
        new, *older = _thresholds[-1]
        gc.set_threshold(max(new, IN_USE) if new else 0, *older)  # 0: the caller's has stopped
    try:
        yield
    finally:
        with _lock:
            before = _thresholds[0]
            _thresholds.pop()
            if not _thresholds:
                gc.set_threshold(*before)
