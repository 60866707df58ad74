"""Streams: items are worked on some batches ahead, and their values come in order."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.transport import background_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence

    Work = Callable[[Any], Coroutine[Any, Any, Any]]

STOP_S = 1.0  # to wait for workers that stop; one that is stuck in a transport stops later
_SLOW_SOURCE_S = 0.01  # a batch that is complete does not wait for a source slower than this


def batches_ahead(size: int, in_flight: int) -> int:
    """Return how many batches are sent ahead of the one that is waited for."""
    # Four batches and eight requests of each worker: enough, at any latency, for the caller to
    # process one batch while the next are read.
    return 4 - (-8 * in_flight // size)


class InPlace:
    """Work in the caller's thread, on each item when its value is needed; nothing suspends it."""

    alive = True

    def __init__(self, work: Work, *, stop_on_error: bool) -> None:
        self._work = work
        self._stop_on_error = stop_on_error

    def add(self, item: Any) -> Any:
        """Return the item, which is its own ticket."""
        return item

    def is_done(self, _ticket: Any) -> bool:
        """Return True: there is nothing to wait for."""
        return True

    def values(self, tickets: Sequence[Any], progress: Callable[[int], object]) -> list[Any]:
        """Work on items."""
        values = []
        for item in tickets:
            value = background_loop.drive(self._work(item))
            if self._stop_on_error and isinstance(value, LedgerError):
                raise value
            values.append(value)
            progress(1)
        return values

    def stop(self, wait_s: float) -> None:
        """Do nothing: no work is under way."""


class _Ticket:
    __slots__ = ("is_done", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.is_done = False


class Tasks:
    """
    Tasks of the background loop that work on items in the order in which they were added.

    Parameters
    ----------
    work
        The coroutine function that makes a value of an item.
    count
        Most tasks at a time.
    stop_on_error
        Whether the first item that fails ends the work on all; otherwise its error is its value.
    """

    def __init__(self, work: Work, count: int, *, stop_on_error: bool) -> None:
        self._work = work
        self._count = count
        self._stop_on_error = stop_on_error
        self._loop = background_loop.current()
        self._queue: deque[tuple[Any, _Ticket]] = deque()
        self._n_started = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._end: BaseException | None = None  # why the work has ended early
        self._awaited: _Ticket | None = None
        self._changed = threading.Event()  # the awaited ticket is done, or the work has ended
        self._lock = threading.Lock()

    @property
    def alive(self) -> bool:
        """False in a forked child."""
        return self._loop.alive

    def add(self, item: Any) -> _Ticket:
        """Queue an item, and start a task for it if there are too few."""
        ticket = _Ticket()
        with self._lock:
            self._queue.append((item, ticket))
            is_needed = self._n_started < self._count
            self._n_started += is_needed
        if is_needed:
            self._loop.call_soon(self._start)
        return ticket

    def is_done(self, ticket: _Ticket) -> bool:
        """Return True if there is a value."""
        return ticket.is_done

    def values(self, tickets: Sequence[_Ticket], progress: Callable[[int], object]) -> list[Any]:
        """Wait for values, or for the error that ends the work."""
        n_reported = 0
        # The last one first: waking this thread for each value would take longer than a request.
        for ticket in reversed(tickets):
            while not self._wait_for(ticket):
                n_done = sum(ticket.is_done for ticket in tickets)
                progress(n_done - n_reported)
                n_reported = n_done
        progress(len(tickets) - n_reported)
        return [ticket.value for ticket in tickets]

    def _wait_for(self, ticket: _Ticket) -> bool:
        """Wait for a value for one slice of time; return True if there is one."""
        if ticket.is_done:
            return True
        self._awaited = ticket
        self._changed.clear()
        if not ticket.is_done and self._end is None:
            self._changed.wait(background_loop.WAIT_SLICE_S)
        if self._end is not None:
            raise self._end
        return ticket.is_done

    def stop(self, wait_s: float) -> None:
        """Cancel the tasks; the garbage collector may stop a stream on any thread."""
        if self._loop.inside:
            self._finish(CancelledError())
        elif self._loop.alive and wait_s:
            with suppress(TimeoutError):
                self._loop.run(self._finish_and_wait(), wait_s)
        elif self._loop.alive:
            self._loop.call_soon(self._finish, CancelledError())

    def _start(self) -> None:
        task = asyncio.create_task(self._run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _next(self) -> tuple[Any, _Ticket] | None:
        """Return the next item; None if the task should end."""
        with self._lock:
            if self._queue and self._end is None:
                return self._queue.popleft()
            self._n_started -= 1
            return None

    async def _run(self) -> None:
        """Work on items until there are no more."""
        while entry := self._next():
            item, ticket = entry
            try:
                value = await self._work(item)
            except asyncio.CancelledError:  # the stream is stopped, or its ledger is closed
                self._finish(CancelledError())
                raise
            except BaseException as error:  # noqa: BLE001 - raised where the values are waited for
                self._finish(error)
                return
            if self._stop_on_error and isinstance(value, LedgerError):
                self._finish(value)
                return
            ticket.value, ticket.is_done = value, True
            if ticket is self._awaited:
                self._changed.set()

    def _finish(self, error: BaseException) -> None:
        """End the work on all items; the first error that there was is raised."""
        if self._end is None:
            self._end = error
            for task in self._tasks - {asyncio.current_task()}:
                task.cancel()
        self._changed.set()

    async def _finish_and_wait(self) -> None:
        self._finish(CancelledError())
        others = self._tasks - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)


class Stream:
    """
    Items that are worked on while the values of earlier ones are processed.

    Parameters
    ----------
    items
        The items, taken in the thread that reads the batches.
    workers
        What works on them.
    size
        The number of values in a batch.
    ahead
        How many batches are begun beyond the one returned next.
    progress
        Called with the number of new values, in the same thread; now and then also with 0.
    """

    def __init__(
        self,
        items: Iterable[Any],
        workers: InPlace | Tasks,
        *,
        size: int,
        ahead: int,
        progress: Callable[[int], object],
    ) -> None:
        self._items = iter(items)
        self._workers = workers
        self._size = size
        self._max_pending = size * (ahead + 1)
        self._progress = progress
        self._is_exhausted = False
        self._source_error: Exception | None = None
        self._pending: deque[Any] = deque()

    def batches(self, check: Callable[[], object]) -> Generator[list[Any], None, None]:
        """Yield the values, a batch at a time; `check` may raise before each."""
        stop_s = STOP_S
        try:
            while self._begin_ahead():
                try:
                    batch = self._next_batch()
                except CancelledError:  # perhaps another thread has closed the ledger
                    stop_s = 0.0
                    check()
                    raise
                yield batch
                self._check_process()
                check()
            self._raise_source_error()
        except KeyboardInterrupt:
            stop_s = 0.0
            raise
        finally:
            if self._pending:
                self._workers.stop(stop_s)

    def _begin_ahead(self) -> bool:
        """Begin items some batches ahead; return True if there is a value to wait for."""
        start = time.monotonic()
        while not self._is_exhausted and len(self._pending) < self._max_pending:
            try:
                item = next(self._items)
            except StopIteration:
                self._is_exhausted = True
                break
            except Exception as error:  # noqa: BLE001 - raised after the values of earlier items
                self._source_error, self._is_exhausted = error, True
                break
            self._pending.append(self._workers.add(item))
            if time.monotonic() - start > _SLOW_SOURCE_S and self._has_whole_batch():
                break
        return bool(self._pending)

    def _has_whole_batch(self) -> bool:
        """Return True if all values of the next batch are there."""
        if len(self._pending) < self._size:
            return False
        return all(map(self._workers.is_done, islice(self._pending, self._size)))

    def _next_batch(self) -> list[Any]:
        tickets = list(islice(self._pending, self._size))
        values = self._workers.values(tickets, self._progress)
        for _ in tickets:
            self._pending.popleft()
        return values

    def _check_process(self) -> None:
        """Raise in a forked child: the workers are the parent's."""
        if not self._workers.alive:
            self._pending.clear()
            msg = "a stream cannot continue in a forked process"
            remedy = "Start a new stream in this process."
            raise InvalidRequestError(msg, remedy=remedy, field="stream")

    def _raise_source_error(self) -> None:
        """Raise the error of the source, if there is one."""
        error, self._source_error = self._source_error, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # its traceback holds this frame
