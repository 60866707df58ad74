"""Answers to calls that may never end: in their order, some batches ahead of who takes them."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections import deque
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from ledgerkit.errors import InvalidRequestError
from ledgerkit.transport import background_loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable

_PARTING_S = 1.0  # for workers to leave; one that is stuck in a transport leaves later
_HASTE_S = 0.01  # a source slower than this does not hold up what it has given


class Batch:
    """Some calls, answered in their places by several workers."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._answered = 0
        self._asked: int | None = None
        self._lock = threading.Lock()

    @property
    def whole(self) -> bool:
        """Tell whether all of it is asked and answered."""
        return self._answered == self._asked

    def end(self) -> None:
        """Add no more calls."""
        self._asked = len(self.values)

    def answer(self, place: int, value: Any) -> bool:
        """Put an answer in its place; tells whether the batch is whole."""
        self.values[place] = value
        with self._lock:
            self._answered += 1
            return self._answered == self._asked


class Crew(Protocol):
    """Workers that answer calls, the oldest first."""

    def hire(self) -> None:
        """Begin."""

    def give(self, batch: Batch, calls: list[Any]) -> None:
        """Add calls to a batch."""

    def wait_for(self, batch: Batch) -> None:
        """Wait until a batch is whole; raises what stopped a worker."""

    def end(self) -> None:
        """Cancel what is under way and let the workers leave."""


def _places(batch: Batch, calls: list[Any]) -> range:
    """Make room for answers in a batch."""
    first = len(batch.values)
    batch.values.extend([None] * len(calls))
    return range(first, len(batch.values))


class LoopCrew:
    """
    Tasks of the background loop.

    Parameters
    ----------
    ask
        Answers one call.
    count
        How many calls are answered at a time.
    """

    def __init__(self, ask: Callable[[Any], Awaitable[Any]], count: int) -> None:
        self._ask = ask
        self._count = count
        self._loop = background_loop.current()
        self._calls: asyncio.Queue[tuple[Batch, int, Any]] = asyncio.Queue()
        self._news: SimpleQueue[BaseException | None] = SimpleQueue()
        self._workers: list[asyncio.Task[None]] = []
        self._ended = False

    def hire(self) -> None:
        """Begin."""
        self._loop.run(self._hire())

    async def _hire(self) -> None:
        """Start the workers, on the loop."""
        for _ in range(self._count):
            worker = asyncio.create_task(self._work())
            worker.add_done_callback(self._left)
            self._workers.append(worker)

    async def _work(self) -> None:
        """Answer what is next, until there is an end."""
        while not self._ended:  # a transport may have swallowed the cancellation
            batch, place, call = await self._calls.get()
            if batch.answer(place, await self._ask(call)):
                self._news.put(None)

    def _left(self, worker: asyncio.Task[None]) -> None:
        """Tell why a worker stopped."""
        self._news.put(CancelledError() if worker.cancelled() else worker.exception())

    def give(self, batch: Batch, calls: list[Any]) -> None:
        """Add calls to a batch: one hand-over to the loop's thread for all of them."""
        places = _places(batch, calls)
        self._loop.soon(self._take, batch, places, calls)

    def _take(self, batch: Batch, places: range, calls: list[Any]) -> None:
        """Queue calls, on the loop."""
        for place, call in zip(places, calls, strict=True):
            self._calls.put_nowait((batch, place, call))

    def wait_for(self, batch: Batch) -> None:
        """Wait until a batch is whole; raises what stopped a worker."""
        _wait_for(batch, self._news)

    def end(self) -> None:
        """Cancel what is under way and let the workers leave."""
        if self._loop.inside:  # a collector may call this anywhere
            self._cancel()
        elif self._loop.alive:
            with suppress(TimeoutError):
                self._loop.run(self._dismiss(), _PARTING_S)

    def _cancel(self) -> None:
        """Cancel every worker, on the loop."""
        self._ended = True
        for worker in self._workers:
            worker.cancel()

    async def _dismiss(self) -> None:
        """Cancel every worker and see it off."""
        self._cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)


class ThreadCrew:
    """
    Threads, for what blocks.

    Parameters
    ----------
    ask
        Answers one call; it is given a way to sleep that ends with the crew.
    count
        How many calls are answered at a time.
    """

    def __init__(self, ask: Callable[[Any, Callable[[float], None]], Any], count: int) -> None:
        self._ask = ask
        self._count = count
        self._calls: SimpleQueue[tuple[Batch, int, Any] | None] = SimpleQueue()
        self._news: SimpleQueue[BaseException | None] = SimpleQueue()
        self._ended = threading.Event()
        self._workers: list[threading.Thread] = []
        parts = (os.getpid(), self._ended, self._calls, self._workers)
        # At its end the interpreter would wait for ever for threads that wait for calls.
        self._end = weakref.finalize(self, _send_home, *parts)

    def hire(self) -> None:
        """Begin."""
        for number in range(self._count):
            name = f"ledgerkit_{number}"
            self._workers.append(threading.Thread(target=self._work, name=name, daemon=True))
            self._workers[-1].start()

    def _work(self) -> None:
        """Answer what is next, until there is an end."""
        try:
            while (item := self._calls.get()) is not None and not self._ended.is_set():
                batch, place, call = item
                if batch.answer(place, self._ask(call, self._sleep)):
                    self._news.put(None)
            self._news.put(CancelledError())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self._news.put(error)

    def _sleep(self, seconds: float) -> None:
        """Wait, unless there is nothing to wait for any more."""
        if self._ended.wait(seconds):
            raise CancelledError

    def give(self, batch: Batch, calls: list[Any]) -> None:
        """Add calls to a batch."""
        for place, call in zip(_places(batch, calls), calls, strict=True):
            self._calls.put((batch, place, call))

    def wait_for(self, batch: Batch) -> None:
        """Wait until a batch is whole; raises what stopped a worker."""
        _wait_for(batch, self._news)

    def end(self) -> None:
        """Begin no more calls and let the workers leave."""
        self._end()


def _wait_for(batch: Batch, news: SimpleQueue[BaseException | None]) -> None:
    """Wait until a batch is whole; raises what stopped a worker."""
    while not batch.whole:
        try:
            error = news.get(timeout=background_loop.GLANCE_S)
        except Empty:
            continue
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame


def _send_home(
    process: int,
    ended: threading.Event,
    calls: SimpleQueue[Any],
    workers: list[threading.Thread],
) -> None:
    """Let threads leave, in the process that has them."""
    if os.getpid() != process:
        return
    ended.set()
    for _ in workers:
        calls.put(None)
    until = time.monotonic() + _PARTING_S
    for worker in workers:
        if worker is not threading.current_thread():  # a collector may call this anywhere
            worker.join(max(0.0, until - time.monotonic()))


def batches_ahead(size: int, in_flight: int) -> int:
    """
    Tell how many batches are asked ahead of the one that is waited for.

    Four of them, and eight requests of each worker: at any latency that is time enough
    for who takes the answers to be busy with one batch while the next are fetched.

    Parameters
    ----------
    size
        Calls a batch.
    in_flight
        Requests at a time.

    Returns
    -------
    batches
        A number above 4.
    """
    return 4 - (-8 * in_flight // size)


class Stream:
    """
    Takes calls from their source as their answers are taken.

    Parameters
    ----------
    calls
        The source. It is asked in the thread of who takes the answers.
    crew
        Who answers.
    size
        How many calls make a batch.
    ahead
        How many batches are asked beyond the one that is given next.
    """

    def __init__(self, calls: Iterable[Any], crew: Crew, *, size: int, ahead: int) -> None:
        self._calls = iter(calls)
        self._crew = crew
        self._size = size
        self._most = ahead + 1
        self._dry = False
        self._trouble: Exception | None = None
        self._asked: deque[Batch] = deque()

    def batches(self, check: Callable[[], object]) -> Generator[list[Any], None, None]:
        """Give the answers of one batch after the other; `check` may end it before each."""
        process = os.getpid()
        try:
            self._crew.hire()
            while self._top_up():
                try:
                    self._crew.wait_for(self._asked[0])
                except CancelledError:  # perhaps by who closed the ledger, in another thread
                    check()
                    raise
                yield self._asked.popleft().values
                _same(process)
                check()
            self._complain()
        finally:
            if os.getpid() == process:
                self._crew.end()
            else:
                background_loop.leave_to_parent(self._crew)

    def _top_up(self) -> bool:
        """Ask ahead; tells whether there is something to wait for."""
        begin = time.monotonic()
        while not self._dry and len(self._asked) < self._most:
            self._ask_batch()
            if time.monotonic() - begin > _HASTE_S and self._asked and self._asked[0].whole:
                break
        return bool(self._asked)

    def _ask_batch(self) -> None:
        """Ask one batch, in pieces where the source is slow."""
        batch, piece, begin = Batch(), [], time.monotonic()
        try:
            for call in islice(self._calls, self._size):
                piece.append(call)
                if time.monotonic() - begin > _HASTE_S:
                    self._crew.give(batch, piece)
                    piece, begin = [], time.monotonic()
        except Exception as error:  # noqa: BLE001 - raised once all that was asked is given
            self._trouble = error
        if piece:
            self._crew.give(batch, piece)
        batch.end()
        self._dry = self._trouble is not None or len(batch.values) < self._size
        if batch.values:
            self._asked.append(batch)

    def _complain(self) -> None:
        """Raise what the source raised."""
        trouble, self._trouble = self._trouble, None
        try:
            if trouble is not None:
                raise trouble
        finally:
            del trouble  # its traceback holds this frame


def _same(process: int) -> None:
    """Refuse to go on in a forked child: who answers is in the parent."""
    if os.getpid() != process:
        msg = "a stream ends where its process forks"
        raise InvalidRequestError(msg, remedy="Begin another one here.", field="stream")
