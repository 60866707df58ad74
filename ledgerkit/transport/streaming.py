"""A pipeline of many calls, which sends some batches ahead of the batch that is processed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.transport import background_loop

if TYPE_CHECKING:
    Work = Callable[[Any], Coroutine[Any, Any, Any]]

STOP_S = 1.0  # seconds to wait for tasks to stop; a task may be stuck in a transport
_SLOW_SOURCE_S = 0.01  # a batch that is complete does not wait for a source slower than this
_NO_MORE = object()


def batches_ahead(size: int, in_flight: int) -> int:
    """Return how many batches are sent ahead of the awaited batch."""
    # Four batches and eight requests of each worker: enough, at any latency, for the caller to
    # process one batch while the next are read.
    return 4 - (-8 * in_flight // size)


def _until_error(items: Iterable[Any], errors: list[Exception]) -> Iterator[Any]:
    """Yield items; an exception of their source ends them, and is added to `errors`."""
    try:
        # Not `yield from`, which would close the caller's generator.
        for item in items:  # noqa: UP028
            yield item
    except Exception as error:  # noqa: BLE001 - raised after the values of earlier items
        errors.append(error)


def batches_in_place(
    items: Iterable[Any],
    work: Work,
    *,
    size: int,
    stop_on_error: bool,
    progress: Callable[[int], object],
    check: Callable[[], object],
) -> Generator[list[Any], None, None]:
    """Yield batches as `Stream.batches` does, of work that never suspends, in this thread."""

    def value_of(item: Any) -> Any:
        value = background_loop.drive(work(item))
        if stop_on_error and isinstance(value, LedgerError):
            raise value
        progress(1)
        return value

    errors: list[Exception] = []
    source = _until_error(items, errors)
    while batch := list(islice(source, size)):
        yield [value_of(item) for item in batch]
        check()
    if errors:
        raise errors.pop()


class _Ticket:
    """An item, and then its value."""

    __slots__ = ("is_done", "value")

    def __init__(self, item: Any) -> None:
        self.value = item
        self.is_done = False


class Stream:
    """
    Work of background tasks on items, while the values of earlier items are processed.

    The thread that reads the batches takes the items, and calls `progress` with the number of new
    values, which may be 0. At most `count` tasks run at a time, and `ahead` batches are begun after
    the batch that is returned next. With `stop_on_error` the first item that fails ends all work;
    otherwise its error is its value.
    """

    def __init__(
        self,
        items: Iterable[Any],
        work: Work,
        *,
        count: int,
        size: int,
        ahead: int,
        stop_on_error: bool,
        progress: Callable[[int], object],
    ) -> None:
        self._source_errors: list[Exception] = []
        self._items = _until_error(items, self._source_errors)
        self._work = work
        self._count = count
        self._size = size
        self._max_pending = size * (ahead + 1)
        self._stop_on_error = stop_on_error
        self._progress = progress
        self._pending: deque[_Ticket] = deque()  # with values that were not returned
        self._loop = background_loop.current()
        self._queue: deque[_Ticket] = deque()  # without a task yet
        self._n_started = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._end: BaseException | None = None  # why the work has ended early
        self._awaited: _Ticket | None = None
        self._changed = threading.Event()  # the awaited ticket is done, or the work has ended
        self._lock = threading.Lock()

    # In the thread that reads the batches -------------------------------------------------

    def batches(self, check: Callable[[], object]) -> Generator[list[Any], None, None]:
        """Yield the values, a batch at a time; `check` may raise after each."""
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
                if not self._loop.alive:
                    msg = "a stream cannot continue in a forked process"
                    remedy = "Start a new stream in this process."
                    raise InvalidRequestError(msg, remedy=remedy, field="stream")
                check()
        except KeyboardInterrupt:
            stop_s = 0.0
            raise
        finally:
            if self._pending:
                self._stop(stop_s)
        if self._source_errors:
            raise self._source_errors.pop()

    def _begin_ahead(self) -> bool:
        """Begin items some batches ahead; return True if there is a value to wait for."""
        start = time.monotonic()
        while len(self._pending) < self._max_pending:
            item = next(self._items, _NO_MORE)
            if item is _NO_MORE:
                break
            self._begin(_Ticket(item))
            if time.monotonic() - start > _SLOW_SOURCE_S and self._has_whole_batch():
                break
        return bool(self._pending)

    def _begin(self, ticket: _Ticket) -> None:
        """Queue a ticket, and start a task for it if there are too few."""
        self._pending.append(ticket)
        with self._lock:
            self._queue.append(ticket)
            is_needed = self._n_started < self._count
            self._n_started += is_needed
        if is_needed:
            self._loop.call_soon(self._start)

    def _has_whole_batch(self) -> bool:
        if len(self._pending) < self._size or not self._pending[self._size - 1].is_done:
            return False
        return all(ticket.is_done for ticket in islice(self._pending, self._size))

    def _next_batch(self) -> list[Any]:
        """Wait for the values of a batch, or for the error that ends the work."""
        tickets: Sequence[_Ticket] = list(islice(self._pending, self._size))
        n_reported = 0
        # The last ticket first: waking this thread for each value would take longer than a request.
        for ticket in reversed(tickets):
            while not self._wait_for(ticket):
                n_done = sum(ticket.is_done for ticket in tickets)
                self._progress(n_done - n_reported)
                n_reported = n_done
        self._progress(len(tickets) - n_reported)
        return [self._pending.popleft().value for _ in tickets]

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

    def _stop(self, wait_s: float) -> None:
        """Cancel the tasks; the garbage collector may stop a stream on any thread."""
        if self._loop.inside:
            self._finish(CancelledError())
        elif self._loop.alive and wait_s:
            with suppress(TimeoutError):
                self._loop.run(self._finish_and_wait(), wait_s)
        elif self._loop.alive:
            self._loop.call_soon(self._finish, CancelledError())

    # On the background loop ---------------------------------------------------------------

    def _start(self) -> None:
        task = asyncio.create_task(self._run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _next(self) -> _Ticket | None:
        """Return the next ticket; None if the task should end."""
        with self._lock:
            if self._queue and self._end is None:
                return self._queue.popleft()
            self._n_started -= 1
            return None

    async def _run(self) -> None:
        """Work on items until there are no more."""
        while ticket := self._next():
            try:
                value = await self._work(ticket.value)
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
        """End the work on all items; the first error is raised."""
        if self._end is None:
            self._end = error
            for task in self._tasks - {asyncio.current_task()}:
                task.cancel()
        self._changed.set()

    async def _finish_and_wait(self) -> None:
        self._finish(CancelledError())
        others = self._tasks - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
