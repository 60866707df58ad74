"""Deadlines of many requests with one timer: asyncio.timeout() takes a tenth of a request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class Deadlines:
    """The deadlines of the tasks of one loop, in time.monotonic()."""

    def __init__(self) -> None:
        self._deadlines: dict[asyncio.Task[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def limit(self, work: Coroutine[Any, Any, T], deadline: float) -> T:
        """Return the result of some work of this task; raise TimeoutError at the deadline."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        cancellations = task.cancelling()
        self._deadlines[task] = deadline
        if self._timer is None or deadline < self._timer.when():
            self._set_timer(deadline)
        try:
            return await work
        except asyncio.CancelledError as error:
            is_over = task not in self._deadlines
            if is_over and task.cancelling() == cancellations + 1:  # nobody else has cancelled it
                raise TimeoutError from error
            raise
        finally:
            if self._deadlines.pop(task, None) is None:
                task.uncancel()

    def close(self) -> None:
        """End the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, when: float) -> None:
        """Check the deadlines at a time."""
        self.close()
        self._timer = asyncio.get_running_loop().call_at(when, self._check)

    def _check(self) -> None:
        """Cancel the tasks whose time is over; set the timer for the next one."""
        now = asyncio.get_running_loop().time()
        for task, deadline in list(self._deadlines.items()):
            if deadline <= now:
                del self._deadlines[task]
                task.cancel()
        self._timer = None
        if self._deadlines:
            self._set_timer(min(self._deadlines.values()))
