"""Python's garbage collector, paused while many objects are made that stay in use."""

from __future__ import annotations

import gc

MANY_OBJECTS = 10_000  # new containers, from which on they are moved to the oldest generation


class collector_paused:  # noqa: N801 - used as a function; a generator takes several times as long
    """
    Pause the garbage collector, which would search the new objects again and again in vain.

    With `ages`, if many were made, all objects count as old afterwards, as if they had been
    searched. It takes longer the more objects the caller has frozen, so it is for rare moments.
    """

    __slots__ = ("_ages", "_was_running")

    def __init__(self, *, ages: bool = False) -> None:
        self._ages = ages

    def __enter__(self) -> None:
        self._was_running = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: object) -> None:
        if not self._was_running:
            return
        if self._ages and gc.get_count()[0] >= MANY_OBJECTS and not gc.get_freeze_count():
            gc.freeze()  # moves all objects out of the collector's generations, without a search,
            gc.unfreeze()  # and back into the oldest; what the caller has frozen would not stay so
        gc.enable()
