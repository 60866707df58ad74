"""Workers that answer calls concurrently: tasks of the background loop, or threads."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import CancelledError
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import LedgerError
from ledgerkit.transport import background_loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

STOP_S = 1.0  # to wait for workers that stop; one that is stuck in a transport stops later


class Batch:
    """Calls and their answers; workers fill it, in any order."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._answered = self._reported = 0
        self._size: int | None = None
        self._lock = threading.Lock()

    @property
    def is_complete(self) -> bool:
        """True once the batch is closed and all its calls are answered."""
        return self._answered == self._size

    def extend(self, count: int) -> range:
        """Add places for the answers to more calls and return them."""
        first = len(self.values)
        self.values.extend([None] * count)
        return range(first, first + count)

    def close(self) -> None:
        """Accept no more calls."""
        self._size = len(self.values)

    def answer(self, place: int, value: Any) -> bool:
        """Set the answer to a call; return True if it completes the batch."""
        self.values[place] = value
        with self._lock:
            self._answered += 1
            return self._answered == self._size

    def report(self, progress: Callable[[int], object]) -> None:
        """Report the number of answers since the last report."""
        answered = self._answered
        if answered > self._reported:
            progress(answered - self._reported)
        self._reported = answered


class WorkerPool(ABC):
    """
    Workers that answer calls in the order they were added, and end when there are no more.

    Parameters
    ----------
    count
        Most workers at a time.
    stop_on_error
        Whether the first call that fails is raised by `wait_for`; otherwise its error is its
        answer.
    """

    def __init__(self, count: int, *, stop_on_error: bool) -> None:
        self._count = count
        self._stop_on_error = stop_on_error
        self._calls: deque[tuple[Batch, int, Any]] = deque()
        self._active = 0
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        # The events for `wait_for`: None for a complete batch, or the error that ended a worker.
        self._events: SimpleQueue[BaseException | None] = SimpleQueue()

    def add(self, batch: Batch, calls: Sequence[Any]) -> None:
        """Add calls to a batch and start the workers that they need."""
        places = batch.extend(len(calls))
        with self._lock:
            self._calls.extend(
                (batch, place, call) for place, call in zip(places, calls, strict=True)
            )
            count = min(self._count - self._active, len(self._calls))
            self._active += count
        if count:
            self._start(count)

    def wait_for(self, batch: Batch, progress: Callable[[int], object]) -> None:
        """Wait until a batch is complete; raise the error that ended a worker."""
        while not batch.is_complete:
            try:
                error = self._events.get(timeout=background_loop.WAIT_SLICE_S)
            except Empty:
                error = None
            batch.report(progress)
            if error is not None:
                try:
                    raise error
                finally:
                    del error  # its traceback holds this frame
        batch.report(progress)

    def stop(self, wait_s: float = STOP_S) -> None:
        """Cancel the workers, and wait for them for at most some seconds."""
        self._stopped.set()
        self._events.put(CancelledError())
        self._stop_workers(wait_s)

    def _next_call(self) -> tuple[Batch, int, Any] | None:
        """Return the next call for a worker; None if the worker should end."""
        with self._lock:
            if self._calls and not self._stopped.is_set():
                return self._calls.popleft()
            self._active -= 1
            return None

    def _answer(self, batch: Batch, place: int, value: Any) -> None:
        """Set the answer to a call."""
        if self._stop_on_error and isinstance(value, LedgerError):
            raise value
        if batch.answer(place, value):
            self._events.put(None)

    @abstractmethod
    def _start(self, count: int) -> None:
        """Start some workers."""

    @abstractmethod
    def _stop_workers(self, wait_s: float) -> None:
        """Cancel the workers, and wait for them for at most some seconds."""


class TaskPool(WorkerPool):
    """Workers that are tasks of the background loop."""

    def __init__(
        self, send: Callable[[Any], Awaitable[Any]], count: int, *, stop_on_error: bool
    ) -> None:
        super().__init__(count, stop_on_error=stop_on_error)
        self._send = send
        self._loop = background_loop.current()
        self._tasks: set[asyncio.Task[None]] = set()

    def _start(self, count: int) -> None:
        """Start some workers, on the loop."""
        self._loop.call_soon(self._create_tasks, count)

    def _create_tasks(self, count: int) -> None:
        """Create the tasks of some workers."""
        for _ in range(count):
            task = asyncio.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._report_end)

    async def _work(self) -> None:
        """Answer calls until there are no more."""
        while call := self._next_call():
            self._answer(call[0], call[1], await self._send(call[2]))

    def _report_end(self, task: asyncio.Task[None]) -> None:
        """Report the error that ended a worker, if there is one."""
        self._tasks.discard(task)
        if task.cancelled():
            self._events.put(CancelledError())
        elif error := task.exception():
            self._events.put(error)

    def _stop_workers(self, wait_s: float) -> None:
        if self._loop.inside:  # the garbage collector may stop a stream on any thread
            self._cancel_tasks()
        elif self._loop.alive and wait_s:
            with suppress(TimeoutError):
                self._loop.run(self._cancel_and_wait(), wait_s)
        elif self._loop.alive:
            self._loop.call_soon(self._cancel_tasks)

    def _cancel_tasks(self) -> None:
        """Cancel the workers, on the loop."""
        for task in self._tasks:
            task.cancel()

    async def _cancel_and_wait(self) -> None:
        """Cancel the workers and wait for their end."""
        self._cancel_tasks()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class ThreadPool(WorkerPool):
    """Workers that are threads, for transports that block."""

    def __init__(
        self,
        send: Callable[[Any, Callable[[float], None]], Any],
        count: int,
        *,
        stop_on_error: bool,
    ) -> None:
        # `send` is also passed a function that sleeps, and that stops with the pool.
        super().__init__(count, stop_on_error=stop_on_error)
        self._send = send
        self._threads: list[threading.Thread] = []

    def _start(self, count: int) -> None:
        """Start some workers; as daemons, so that none of them delays the interpreter's end."""
        threads = [
            threading.Thread(
                target=copy_context().run,  # for the line that shows waits
                args=(self._work,),
                name=f"ledgerkit_{number}",
                daemon=True,
            )
            for number in range(count)
        ]
        self._threads = [thread for thread in self._threads if thread.is_alive()] + threads
        for thread in threads:
            thread.start()

    def _work(self) -> None:
        """Answer calls until there are no more."""
        try:
            while call := self._next_call():
                self._answer(call[0], call[1], self._send(call[2], self._sleep))
        except BaseException as error:  # noqa: BLE001 - raised by `wait_for`
            self._events.put(error)

    def _sleep(self, seconds: float) -> None:
        """Sleep, unless the pool is stopped meanwhile."""
        if self._stopped.wait(seconds):
            raise CancelledError

    def _stop_workers(self, wait_s: float) -> None:
        until = time.monotonic() + wait_s
        for thread in self._threads:
            # The current thread may collect garbage, and Ctrl-C may leave one unstarted.
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))
