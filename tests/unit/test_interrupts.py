"""The helper that presses Ctrl-C in tests."""

import threading

from tests.interrupts import LONG_S, interrupt


class Late:
    """An object whose finalizer waits."""

    def __del__(self) -> None:
        """Wait where Python drops what Ctrl-C raises."""
        threading.Event().wait(LONG_S)


def test_an_interrupt_that_python_drops():
    """Ctrl-C inside a finalizer is dropped by Python, and pressed again without a warning."""
    now, lost = threading.Event(), []

    def work() -> None:
        now.set()
        Late()
        lost.append(now)
        threading.Event().wait(LONG_S)

    interrupt(work, after=now)
    assert lost == [now]
