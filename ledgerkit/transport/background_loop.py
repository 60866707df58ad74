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

# How long a wait lasts at a time. Polars, for one, has a handler of its own for Ctrl-C, under
# which a wait goes on to its end.
GLANCE_S = 0.1
_PARTING_S = 3.0  # for connections to say goodbye when the interpreter ends


class Loop:
    """Runs coroutines for threads that have, or want, no loop of their own."""

    def __init__(self) -> None:
        runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = runner.get_loop()
        self._partings: set[Future[None]] = set()
        self._thread = threading.Thread(
            target=_serve, args=(runner,), name="ledgerkit", daemon=True
        )
        self._thread.start()
        self._end = weakref.finalize(self, _end, self._loop, self._thread, self._partings)

    @property
    def alive(self) -> bool:
        """Tell whether there still is someone to run anything."""
        return self._thread.is_alive()

    @property
    def inside(self) -> bool:
        """Tell whether this is the thread of the loop itself."""
        return threading.current_thread() is self._thread

    def run(self, work: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """Run to the end, or so long; an interrupt cancels the work first."""
        if self.inside:
            work.close()
            msg = "a ledger cannot be asked from inside its own transport or progress bar"
            raise InvalidRequestError(msg, remedy="Ask from another thread.", field="ledger")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return _result(future, seconds)
        finally:
            future.cancel()
            del future  # it may hold an error, whose traceback holds this frame

    def soon(self, act: Callable[..., object], *args: Any) -> None:
        """Do something on the loop's thread, without waiting for it."""
        self._loop.call_soon_threadsafe(act, *args)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run without waiting: a collector calls this on any thread, holding any lock."""
        if not self.alive:
            work.close()
            return
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._partings.add(future)
        future.add_done_callback(self._partings.discard)

    def abandon(self) -> None:
        """Leave the loop alone: after a fork it is the parent's, down to its file descriptors."""
        self._end.detach()


def _result(future: Future[T], seconds: float | None) -> T:
    """Wait for a result, a glance at a time."""
    until = math.inf if seconds is None else time.monotonic() + seconds
    try:
        while not future.done():
            with suppress(TimeoutError):
                future.result(min(GLANCE_S, max(0.0, until - time.monotonic())))
            if time.monotonic() >= until and not future.done():
                raise TimeoutError
        return future.result()
    finally:
        del future  # as above


def _serve(runner: asyncio.Runner) -> None:
    """Run what is handed over until stopped, then cancel what is left."""
    with runner:
        runner.get_loop().run_forever()


def _end(
    loop: asyncio.AbstractEventLoop, thread: threading.Thread, partings: set[Future[None]]
) -> None:
    """Stop, once the connections are closed."""
    if thread.is_alive():
        wait(list(partings), _PARTING_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_PARTING_S)


class _Process:
    """What belongs to this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loop: Loop | None = None


_process = _Process()


def current() -> Loop:
    """Give the loop of this process, a new one if it has none that runs."""
    with _process.lock:
        if _process.loop is None or not _process.loop.alive:
            _process.loop = Loop()
        return _process.loop


def leave_to_parent(thing: object) -> None:
    """
    Keep a thing of the parent process forever.

    To collect a connection or a loop in the child would take its file descriptors out of
    the epoll instance that both processes share, and the parent would wait for ever.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _forked() -> None:
    """Begin anew in a forked child."""
    if _process.loop is not None:
        _process.loop.abandon()
        leave_to_parent(_process.loop)
    _process.lock, _process.loop = threading.Lock(), None


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_forked)
