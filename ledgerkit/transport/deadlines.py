"""
Deadlines of many requests, for which one timer is enough.

asyncio.timeout() sets a timer for each, which took a tenth of a request's time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from types import TracebackType


class Deadlines:
    """The deadlines of the requests under way on one loop."""

    def __init__(self) -> None:
        self._open: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None

    def at(self, when: float) -> Deadline:
        """Return a context that ends in a TimeoutError at a time of time.monotonic()."""
        return Deadline(self, when)

    def add(self, deadline: Deadline) -> None:
        """Begin to watch a deadline."""
        self._open.add(deadline)
        if self._timer is None or self._timer.when() > deadline.when:
            self._set_timer(deadline.when)

    def discard(self, deadline: Deadline) -> None:
        """End to watch a deadline; the timer stays, for the next one."""
        self._open.discard(deadline)

    def close(self) -> None:
        """End the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self, when: float) -> None:
        """Check the deadlines at a time."""
        self.close()
        self._timer = asyncio.get_running_loop().call_at(when, self._check)

    def _check(self) -> None:
        """Cancel the tasks whose time is over, and set the timer for the next one."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        for deadline in list(self._open):
            if deadline.when <= now:
                self._open.discard(deadline)
                deadline.end()
        if self._open:
            self._set_timer(min(deadline.when for deadline in self._open))


class Deadline:
    """A context that cancels the task that enters it, and turns this into a TimeoutError."""

    __slots__ = ("_cancellations", "_deadlines", "_is_over", "_task", "when")

    def __init__(self, deadlines: Deadlines, when: float) -> None:
        self.when = when
        self._deadlines = deadlines
        self._is_over = False

    def __enter__(self) -> None:
        self._task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._cancellations = self._task.cancelling()
        self._deadlines.add(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._deadlines.discard(self)
        if not self._is_over:
            return
        # As in asyncio.timeout(): one that somebody else has cancelled stays cancelled.
        is_ours = self._task.uncancel() <= self._cancellations
        if is_ours and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def end(self) -> None:
        """Cancel the task."""
        self._is_over = True
        self._task.cancel()
