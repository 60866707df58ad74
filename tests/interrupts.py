"""Ctrl-C pressed while a test waits."""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE_S = 15.0  # generous, because machines are busy
LONG_S = 40.0  # a wait that no test sits out


def interrupt(
    work: Callable[[], Any], *, after: threading.Event
) -> pytest.ExceptionInfo[KeyboardInterrupt]:
    """
    Check that Ctrl-C, pressed once `after` is set, ends `work` at once.

    Python drops what a signal's handler raises inside the callback of a weak reference or of the
    garbage collector, and in a finalizer, and only reports it. Ctrl-C is then pressed again.
    """
    lock, lost, pressed = threading.Lock(), threading.Event(), [0.0]
    is_over = False

    def press() -> None:
        after.wait(LONG_S)
        time.sleep(0.05)  # most often the work waits by then; if not, the claim is the same
        while True:
            lost.clear()
            with lock:
                if is_over:
                    return
                pressed[0] = time.monotonic()
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            lost.wait(AT_ONCE_S)  # compiled code may drop it without a report

    def report(args: sys.UnraisableHookArgs) -> None:
        if args.exc_type is KeyboardInterrupt:
            lost.set()
        else:
            usual(args)

    usual, sys.unraisablehook = sys.unraisablehook, report
    thread = threading.Thread(target=press)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:  # noqa: PT012 - nothing escapes this block
            try:
                thread.start()
                work()
            finally:
                with lock:
                    is_over = True
        assert time.monotonic() - pressed[0] < AT_ONCE_S
    finally:
        lost.set()
        thread.join()
        sys.unraisablehook = usual
    return caught
