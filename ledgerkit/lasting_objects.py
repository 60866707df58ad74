"""Objects that live on, such as modules, made without a search for garbage among them."""

from __future__ import annotations

import gc

TYPE_CHECKING = False  # importing typing would take longer than a small module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")


def make_lasting(make: Callable[[], T]) -> T:
    """
    Return the result of a function, with the garbage collector paused.

    Python would search the new objects, and all others, again and again in vain: a third of the
    time to a first frame. Afterwards they count as old, as if they had been searched.
    """
    was_running = gc.isenabled()
    gc.disable()
    try:
        return make()
    finally:
        if was_running:
            if gc.get_freeze_count() == 0:  # otherwise the caller has frozen objects, which stay
                gc.freeze()  # moves all objects out of the collector's generations,
                gc.unfreeze()  # and back into the oldest
            gc.enable()
