"""Streams of calls: sent some batches ahead, with the responses in order."""

from __future__ import annotations

import os
import time
from collections import deque
from concurrent.futures import CancelledError
from itertools import islice
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.transport import background_loop, worker_pools
from ledgerkit.transport.worker_pools import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from ledgerkit.transport.worker_pools import WorkerPool

_SLOW_SOURCE_S = 0.01  # calls of a source slower than this are sent before their batch is full


def batches_ahead(size: int, in_flight: int) -> int:
    """Return how many batches are sent ahead of the one that is waited for."""
    # Four batches and eight requests of each worker: enough, at any latency, for the caller to
    # process one batch while the next are read.
    return 4 - (-8 * in_flight // size)


class Stream:
    """Calls that are sent while the answers to earlier ones are processed."""

    # The calls are taken, and `progress` is called with the number of new answers, in the
    # thread that reads the answers. `ahead` counts batches beyond the one returned next.
    def __init__(
        self,
        calls: Iterable[Any],
        pool: WorkerPool,
        *,
        size: int,
        ahead: int,
        progress: Callable[[int], object],
    ) -> None:
        self._calls = iter(calls)
        self._pool = pool
        self._size = size
        self._max_pending = ahead + 1
        self._progress = progress
        self._exhausted = False
        self._source_error: Exception | None = None
        self._pending: deque[Batch] = deque()

    def batches(self, check: Callable[[], object]) -> Generator[list[Any], None, None]:
        """Yield the answers, a batch at a time; `check` may raise before each."""
        process, stop_s = os.getpid(), worker_pools.STOP_S
        try:
            while self._send_ahead():
                try:
                    self._pool.wait_for(self._pending[0], self._progress)
                except CancelledError:  # perhaps another thread has closed the ledger
                    stop_s = 0.0
                    check()
                    raise
                yield self._pending.popleft().values
                _check_process(process)
                check()
            self._raise_source_error()
        except KeyboardInterrupt:
            stop_s = 0.0
            raise
        finally:
            if os.getpid() != process:
                background_loop.leave_to_parent(self._pool)
            elif self._pending:
                self._pool.stop(stop_s)

    def _send_ahead(self) -> bool:
        """Send batches ahead; return True if there is one to wait for."""
        start = time.monotonic()
        while not self._exhausted and len(self._pending) < self._max_pending:
            self._send_batch()
            is_slow = time.monotonic() - start > _SLOW_SOURCE_S
            if is_slow and self._pending and self._pending[0].is_complete:
                break
        return bool(self._pending)

    def _send_batch(self) -> None:
        """Send one batch, in pieces where the source is slow."""
        batch, piece, start = Batch(), [], time.monotonic()
        self._pending.append(batch)
        try:
            for call in islice(self._calls, self._size):
                piece.append(call)
                if time.monotonic() - start > _SLOW_SOURCE_S:
                    self._pool.add(batch, piece)
                    piece, start = [], time.monotonic()
        except Exception as error:  # noqa: BLE001 - raised after the answers to what was sent
            self._source_error = error
        if piece:
            self._pool.add(batch, piece)
        batch.close()
        self._exhausted = self._source_error is not None or len(batch.values) < self._size
        if not batch.values:
            self._pending.pop()

    def _raise_source_error(self) -> None:
        """Raise the error of the source, if there is one."""
        error, self._source_error = self._source_error, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # its traceback holds this frame


def _check_process(process: int) -> None:
    """Raise in a forked child: the workers are the parent's."""
    if os.getpid() != process:
        msg = "a stream cannot continue in a forked process"
        raise InvalidRequestError(msg, remedy="Start a new stream in this process.", field="stream")
