"""One event loop on a thread of its own, so that callers stay synchronous."""

from __future__ import annotations

import asyncio
import ctypes
import math
import os
import threading
import time
import weakref
from concurrent.futures import wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from ledgerkit.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

T = TypeVar("T")

# Waits are cut into pieces of this length. A library may install a SIGINT handler of its own,
# as Polars does; a wait then resumes after Ctrl-C instead of raising KeyboardInterrupt.
WAIT_SLICE_S = 0.1
_CLOSING_S = 3.0  # for connections to close when the interpreter ends


class Loop:
    """An event loop that runs coroutines for any thread, whether it has a loop or not."""

    def __init__(self) -> None:
        runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = runner.get_loop()
        self._closings: set[Future[None]] = set()
        self._thread = threading.Thread(
            target=_serve, args=(runner,), name="ledgerkit", daemon=True
        )
        self._thread.start()
        self._end = weakref.finalize(self, _end, self._loop, self._thread, self._closings)

    @property
    def alive(self) -> bool:
        """True while the loop's thread runs."""
        return self._thread.is_alive()

    @property
    def inside(self) -> bool:
        """True in the thread of the loop itself."""
        return threading.current_thread() is self._thread

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run a coroutine and return its result; a timeout or an interrupt cancels it."""
        if self.inside:
            work.close()
            msg = "a ledger cannot be used from inside its own transport"
            raise InvalidRequestError(msg, remedy="Use it from another thread.", field="ledger")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return _result(future, timeout_s)
        finally:
            future.cancel()
            del future  # it may hold an error, whose traceback holds this frame

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

    def abandon(self) -> None:
        """Leave the loop to the parent process, after a fork."""
        self._end.detach()


def _result(future: Future[T], timeout_s: float | None) -> T:
    """Wait for a result, one slice at a time."""
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


def _serve(runner: asyncio.Runner) -> None:
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
    """The loop of this process, and the lock for opening it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a signal handler may close a ledger
        self.loop: Loop | None = None


_process = _Process()


def current() -> Loop:
    """Return the loop of this process; open a new one if none runs."""
    with _process.lock:
        if _process.loop is None or not _process.loop.alive:
            _process.loop = Loop()
        return _process.loop


def leave_to_parent(thing: object) -> None:
    """Keep an object of the parent process alive in a forked child until the child ends."""
    # Were a connection or a loop collected in the child, its file descriptors would leave the
    # epoll instance that both processes share, and the parent would wait forever. A module's
    # list would not keep it: modules are cleared when the interpreter ends, and finalizers run
    # then. CPython resets the current loop of a forked child (gh-66285), but no other.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _after_fork() -> None:
    """Start without a loop in a forked child."""
    if _process.loop is not None:
        _process.loop.abandon()
        leave_to_parent(_process.loop)
    _process.lock, _process.loop = threading.RLock(), None


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_after_fork)
