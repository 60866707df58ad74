"""An event loop in a thread of its own, so that callers stay synchronous."""

from __future__ import annotations

import asyncio
import math
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, TypeVar

from ledgerkit.errors import InvalidRequestError
from ledgerkit.transport import forks

T = TypeVar("T")

# Waits are cut into pieces of this length. A library may install a SIGINT handler of its own,
# as Polars does; a wait then resumes after Ctrl-C instead of raising KeyboardInterrupt.
WAIT_SLICE_S = 0.1
_CLOSING_S = 3.0  # seconds for connections to close when the interpreter ends


class Loop:
    """An event loop that runs coroutines for any thread, whether it has a loop or not."""

    def __init__(self) -> None:
        runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = runner.get_loop()
        self._closings: set[Future[None]] = set()
        arguments = runner, forks.inherited
        self._thread = threading.Thread(
            target=_serve, args=arguments, name="ledgerkit", daemon=True
        )
        self._thread.start()
        self._end = weakref.finalize(self, _end, self._loop, self._thread, self._closings)

    @property
    def alive(self) -> bool:
        """True while the loop's thread runs; False in a forked child."""
        return self._thread.is_alive()

    @property
    def inside(self) -> bool:
        return threading.current_thread() is self._thread

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run a coroutine and return its result; a timeout or an interrupt cancels it."""
        if self.inside:
            work.close()
            msg = "a ledger cannot be used from inside its own transport"
            raise InvalidRequestError(msg, remedy="Use it from another thread.", field="ledger")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return _wait_for(future, timeout_s)
        finally:
            future.cancel()
            del future  # the traceback of its error would reference this frame

    def call_soon(self, function: Callable[..., object], *args: Any) -> None:
        """Call a function on the loop's thread, without waiting for it."""
        self._loop.call_soon_threadsafe(function, *args)

    def run_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine without waiting; the garbage collector may call this on any thread."""
        if not self.alive:
            work.close()
            return
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._closings.add(future)
        future.add_done_callback(self._closings.discard)

    def leave_to_parent(self) -> None:
        """Leave the loop to the parent process, after a fork."""
        self._end.detach()
        forks.inherited.append(self)


def _wait_for(future: Future[T], timeout_s: float | None) -> T:
    until = math.inf if timeout_s is None else time.monotonic() + timeout_s
    try:
        while not future.done():
            with suppress(TimeoutError):
                future.result(min(WAIT_SLICE_S, max(0.0, until - time.monotonic())))
            if time.monotonic() >= until and not future.done():
                raise TimeoutError
        return future.result()
    finally:
        del future  # as in `Loop.run`


def _serve(runner: asyncio.Runner, _inherited: list[object]) -> None:
    """Run the loop until it is stopped, then cancel its tasks."""
    with runner:
        runner.get_loop().run_forever()


def _end(
    loop: asyncio.AbstractEventLoop, thread: threading.Thread, closings: set[Future[None]]
) -> None:
    """Stop the loop, once the connections are closed."""
    if thread.is_alive():
        wait(list(closings), _CLOSING_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_CLOSING_S)


class _Process:
    def __init__(self) -> None:
        self.lock = threading.RLock()  # a signal handler may close a ledger
        self.loop: Loop | None = None

    def after_fork(self) -> None:
        """Start without a loop in a forked child."""
        if self.loop is not None:
            self.loop.leave_to_parent()
        self.lock, self.loop = threading.RLock(), None


_process = _Process()
forks.register(_process)


def current() -> Loop:
    """Return the loop of this process; open a new one if none runs."""
    with _process.lock:
        if _process.loop is None or not _process.loop.alive:
            _process.loop = Loop()
        return _process.loop


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends to its end, in this thread and without a loop."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    msg = "a coroutine that runs without a loop has to end without waiting"
    raise RuntimeError(msg)
