"""The session of a ledger: its calls go through caches, rate limit and retries."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
import time
import weakref
from concurrent.futures import CancelledError
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast
from urllib.parse import urlsplit

from ledgerkit import progress
from ledgerkit.api import matching
from ledgerkit.api.calls import Call, Response
from ledgerkit.errors import (
    InvalidRequestError,
    LedgerError,
    RateLimitedError,
    TransportError,
    UnmatchedResponseError,
)
from ledgerkit.transport import background_loop, networks, transports, worker_pools
from ledgerkit.transport.http_client import (
    HEADERS,
    OK,
    Exchange,
    HttpClient,
    Redirect,
    strip_error,
)
from ledgerkit.transport.memory_cache import MemoryCache
from ledgerkit.transport.outage import Outage
from ledgerkit.transport.rate_limit import Limit, RateLimiter
from ledgerkit.transport.retry import Backoff
from ledgerkit.transport.streaming import Stream, batches_ahead
from ledgerkit.transport.worker_pools import TaskPool, ThreadPool

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from ledgerkit.transport.disk_cache import DiskCache
    from ledgerkit.transport.networks import Surface
    from ledgerkit.transport.settings import Cache, Settings
    from ledgerkit.transport.worker_pools import WorkerPool

    T_ = TypeVar("T_")
    # Yields a wait in seconds, or an exchange; it is sent None, or the exchange's result.
    Steps = Generator[float | Exchange, Response | Redirect | LedgerError | None, T_]

T = TypeVar("T")

_LOG = logging.getLogger("ledgerkit")
_LONG_WAIT_S = 5.0  # a longer wait for the rate limit is shown
# Source: fastnear/libs, neardata-fetcher, which follows as many.
MAX_REDIRECTS = 5
_MINUTE_S = 60.0  # a host's limit for a minute has room again after this time


class Session:
    """A sender of calls; all errors that it raises are `LedgerError`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._client = HttpClient(settings)
        wait: Callable[[float], None] | None = getattr(settings.transport, "wait", None)
        self._pass_over = wait  # a wait, in a recording
        self._closed = threading.Event()
        self._open()

    # Opening and closing ------------------------------------------------------------------

    def _open(self) -> None:
        """Open the caches, the limits and the transports in this process."""
        settings = self.settings
        self._pid = os.getpid()
        self._rate_limiters = _rate_limiters(settings)
        self._pools: weakref.WeakSet[WorkerPool] = weakref.WeakSet()
        self.siblings: weakref.WeakSet[Any] = weakref.WeakSet()  # ledgers to close with this
        self._tasks: set[asyncio.Task[Any]] = set()  # those of calls outside a stream
        self._memory_cache = MemoryCache()
        self._disk_cache = _disk_cache(settings.cache, self._client.roots)
        # Several streams of one ledger share its limit of requests in flight.
        self._thread_slots = threading.BoundedSemaphore(settings.in_flight)
        self._task_slots = asyncio.Semaphore(settings.in_flight)
        self._finalizer: weakref.finalize[..., Session] | None = None
        if settings.transport is not None:
            transport = transports.check_transport(settings.transport)
            self._client.transports = dict.fromkeys(self._client.roots, transport)
        else:
            own = transports.open_transports(settings.network, settings.in_flight, HEADERS)
            self._client.transports = dict(own.shared)
            self._client.connectors = own.connectors
            loop = background_loop.current()
            self._finalizer = weakref.finalize(
                self, transports.close_unclosed, loop, list(own.shared.values())
            )

    def ready(self) -> Self:
        """Return this session; raise if it is closed, and open anew in a forked process."""
        self._check_open()
        if self._pid != os.getpid():
            self._abandon()
            self._open()
        return self

    def _check_open(self) -> None:
        """Raise if this session is closed."""
        if self._closed.is_set():
            msg = "this ledger is closed"
            raise InvalidRequestError(msg, remedy="Connect again.", field="ledger")

    def sleep(self, seconds: float) -> None:
        """Sleep; raise as soon as the session is closed. In a recording it takes no time."""
        if self._pass_over is not None:
            self._pass_over(seconds)
            seconds = 0.0
        until = time.monotonic() + seconds
        while not self._closed.is_set() and (remaining_s := until - time.monotonic()) > 0:
            self._closed.wait(min(remaining_s, background_loop.WAIT_SLICE_S))
        self._check_open()

    def _abandon(self) -> None:
        """Leave the connections to the parent process."""
        if self._finalizer is not None:
            self._finalizer.detach()
        if self._disk_cache is not None:
            self._disk_cache.abandon()
        background_loop.leave_to_parent(self._client.transports)

    def close(self) -> None:
        """End the calls under way and close the connections; a second time does nothing."""
        was_closed = self._closed.is_set()
        self._closed.set()
        if was_closed:
            return
        if self._pid != os.getpid():
            self._abandon()
            return
        for ledger in list(self.siblings):
            ledger.close()
        pools = list(self._pools)
        for wait_s in (0.0, worker_pools.STOP_S):  # first all are stopped, then waited for
            for pool in pools:
                pool.stop(wait_s)
        if self._client.is_async:
            background_loop.current().run(self._cancel_tasks())
        if self._disk_cache is not None:
            self._disk_cache.close()
        recorder = self.settings.recorder
        if recorder is not None and not (recorder.is_shared or self.settings.borrowed):
            recorder.close()
        if self.settings.transport is None or not self.settings.borrowed:
            self._close_transports()

    async def _cancel_tasks(self) -> None:
        """Cancel the calls under way, on the loop, and wait for their end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=worker_pools.STOP_S)

    def _close_transports(self) -> None:
        """Close the transports."""
        opened = self._client.transports.values()
        if self._client.is_async:
            background_loop.current().run(transports.close_all(opened))
        else:
            for transport in set(opened):
                transport.close()
        if self._finalizer is not None:
            self._finalizer.detach()

    # One call or many ---------------------------------------------------------------------

    def send(self, call: Call[T]) -> T:
        """Send one call and return its decoded response."""
        self.ready()
        value: T | LedgerError
        if self._client.is_async:
            try:
                value = background_loop.current().run(self._send_alone(call))
            except CancelledError:
                self._check_open()
                raise
        elif getattr(self.settings.transport, "ends_when_closed", False):
            value = self._send(call, self.sleep)
        else:  # in another thread, because closing does not end a request of such a transport
            [value] = self.send_many([call], stop_on_error=True, progress=_no_progress)
        if isinstance(value, LedgerError):
            raise value
        return value

    def send_many(
        self, calls: Sequence[Call[T]], *, stop_on_error: bool, progress: Callable[[int], object]
    ) -> list[T | LedgerError]:
        """Send calls concurrently, as a stream of one batch."""
        pool = self._worker_pool(stop_on_error=stop_on_error)
        stream = Stream(calls, pool, size=max(1, len(calls)), ahead=0, progress=progress)
        return [value for batch in stream.batches(self.ready) for value in batch]

    def stream(
        self,
        calls: Iterable[Call[T]],
        *,
        size: int,
        rate_limit_wait_s: float = 0.0,
        ahead: int | None = None,
    ) -> Generator[list[T | LedgerError], None, None]:
        """Send calls as their iterator yields them; `ahead` limits the batches sent ahead."""
        pool = self._worker_pool(stop_on_error=False, rate_limit_wait_s=rate_limit_wait_s)
        if ahead is None:
            ahead = batches_ahead(size, self.settings.in_flight)
        stream = Stream(calls, pool, size=size, ahead=ahead, progress=_no_progress)
        return stream.batches(self.ready)

    def _worker_pool(self, *, stop_on_error: bool, rate_limit_wait_s: float = 0.0) -> WorkerPool:
        """Build the worker pool of one stream."""
        self.ready()
        count = self.settings.in_flight
        pool: WorkerPool
        limits: Any = {"rate_limit_wait_s": rate_limit_wait_s, "outage": Outage()}
        if self._client.is_async:
            send = partial(self._send_async, **limits)
            pool = TaskPool(send, count, stop_on_error=stop_on_error)
        else:
            blocking_send = partial(self._send, **limits)
            pool = ThreadPool(blocking_send, count, stop_on_error=stop_on_error)
        self._pools.add(pool)
        self._check_open()  # again: `close` in another thread may have missed this pool
        return pool

    def _send(self, call: Call[Any], sleep: Callable[[float], None], **limits: Any) -> Any:
        """Run the steps of a call over a synchronous transport, in this thread."""
        sleep = sleep if self._pass_over is None else self.sleep
        with self._thread_slots, closing(self._steps(call, **limits)) as steps:
            try:
                step = next(steps)
                while True:
                    if isinstance(step, Exchange):
                        step = steps.send(self._client.exchange(step))
                    else:
                        sleep(step)
                        step = next(steps)
            except StopIteration as end:
                return end.value

    async def _send_alone(self, call: Call[Any]) -> Any:
        """Send a call that belongs to no stream, and that `close` therefore cancels itself."""
        task: Any = asyncio.current_task()
        self._tasks.add(task)
        try:
            return await self._send_async(call)
        finally:
            self._tasks.discard(task)

    async def _send_async(self, call: Call[Any], **limits: Any) -> Any:
        """Run the steps of a call over an asynchronous transport, on its loop."""
        self._check_open()  # again: `close` in another thread may have missed this task
        await self._task_slots.acquire()
        steps = self._steps(call, **limits)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Exchange):
                    step = steps.send(await self._client.exchange_async(step))
                else:
                    await asyncio.sleep(step)
                    step = next(steps)
        except StopIteration as end:
            return end.value
        finally:
            steps.close()
            self._task_slots.release()

    # The steps of a call: waits and exchanges, the same for threads and the loop -----------

    def _steps(
        self, call: Call[Any], rate_limit_wait_s: float = 0.0, outage: Outage | None = None
    ) -> Steps[Any]:
        """Answer a call from the caches or from the hosts; a rate-limited one is repeated."""
        if call.keep and (cached := self.cached(call)):
            return cached[0]
        outage = outage or Outage()
        if error := outage.error(call, call.surface):
            return error
        until = 0.0
        while True:
            yield from self._wait_for_slot(call.surface, math.inf)  # our own queue is not counted
            until = until or time.monotonic() + rate_limit_wait_s
            value = yield from self._read_from_hosts(call, outage)
            is_limited = isinstance(value, RateLimitedError) and call.repeatable
            if not is_limited or time.monotonic() >= until:
                return value

    def _read_from_hosts(self, call: Call[Any], outage: Outage) -> Steps[Any]:
        """Send a call to its host, then to the archival one if only that may have the data."""
        retries = self.settings.retries
        backoff = Backoff(retries.attempts, time.monotonic() + retries.total_s)
        value = yield from self._read_with_retries(call, call.surface, backoff)
        outage.record(call.surface, value)
        if self._may_be_archived(call, value):
            if error := outage.error(call, "archival_rpc"):
                return error
            backoff = Backoff(retries.attempts, backoff.deadline)
            if not (yield from self._wait_in_time("archival_rpc", backoff)):
                return self._client.timeout_error(call, "archival_rpc")
            value = yield from self._read_with_retries(call, "archival_rpc", backoff)
            outage.record("archival_rpc", value)
        return value

    def _read_with_retries(self, call: Call[Any], surface: Surface, backoff: Backoff) -> Steps[Any]:
        """Send a call to one host; repeat it while a retry may succeed."""
        value: Any = None
        while True:
            anew = isinstance(value, UnmatchedResponseError)
            value = yield from self._read_once(call, surface, backoff.deadline, anew=anew)
            if not self._may_succeed_later(call, surface, value):
                return value
            pause = backoff.next_pause(value, self._least_pause(surface, value))
            if pause is None:
                return value
            limiter = self._rate_limiters[surface]
            if isinstance(value, RateLimitedError) and not limiter.is_scattered:
                limiter.pause(pause)  # all requests wait, not this one alone
                self._show_wait(surface, pause)
            _LOG.info("retrying in %.2f s: %s", pause, value)
            yield pause
            if not (yield from self._wait_in_time(surface, backoff)):
                return value

    def _read_once(
        self, call: Call[Any], surface: Surface, deadline: float, *, anew: bool
    ) -> Steps[Any]:
        """Send a call to one host once, and add its response to the caches."""
        self._check_open()
        started = time.monotonic()
        timeout_s = min(self.settings.timeout_s, max(0.0, deadline - started))
        call_id = matching.new_id() if call.is_rpc else None
        exchange = Exchange(call, surface, timeout_s, call_id, anew)
        if (recorder := self.settings.recorder) is None:
            response = yield from self._follow(exchange)
        else:
            response = yield from recorder.steps(exchange, self.settings, self._follow)
        self._check_open()  # otherwise the error of a lost connection would be returned
        if not isinstance(response, Response):
            if isinstance(response, TransportError) and response.no_connection:
                self._rate_limiters[surface].uncount()
            return response
        value, response = self._decode_matched(call, call_id, response)
        if isinstance(value, UnmatchedResponseError):
            _LOG.info("%s", value)
            if response.close is not None:
                response.close()
        self._adapt_rate(surface, started, value)
        if not isinstance(value, LedgerError):
            if call.keep and call.keep(value):
                self._add_to_caches(call, surface, response)
            for part, body in call.parts(value) if call.parts else ():
                self._add_to_caches(part, surface, response._replace(body=body))
        return value

    def _follow(self, exchange: Exchange) -> Steps[Response | LedgerError]:
        """Make an exchange, and those that redirects within its service lead to."""
        deadline = time.monotonic() + exchange.timeout_s
        for _ in range(MAX_REDIRECTS + 1):
            response = yield exchange
            if not isinstance(response, Redirect):
                return cast("Response | LedgerError", response)  # an exchange is sent no None
            if not (yield from self._wait_for_slot(exchange.surface, deadline)):
                return self._client.timeout_error(exchange.call, exchange.surface)
            timeout_s = max(0.0, deadline - time.monotonic())
            exchange = exchange._replace(url=response.url, timeout_s=timeout_s)
        return self._client.too_many_redirects(exchange)

    def _adapt_rate(self, surface: Surface, started: float, value: object) -> None:
        """Send less to a host that refuses many requests, and name its limit in the error."""
        is_refused = isinstance(value, RateLimitedError)
        if isinstance(value, RateLimitedError):
            value.remedy = self.settings.rate_limit_remedy(surface) or value.remedy
        if rate := self._rate_limiters[surface].record(started, refused=is_refused):
            _LOG.info("too many requests: at most %.3g a second for now", rate)

    def _least_pause(self, surface: Surface, error: LedgerError) -> float:
        """Return the seconds to wait at least if the host does not name them."""
        is_limited = isinstance(error, RateLimitedError)
        if not is_limited or self.settings.limit(surface).per_minute is None:
            return 0.0
        # The attempts are spread over the total time, because the host refuses all requests
        # until its limit for a minute has room.
        retries = self.settings.retries
        return min(_MINUTE_S, retries.total_s / retries.attempts)

    def _wait_in_time(self, surface: Surface, backoff: Backoff) -> Steps[bool]:
        """Wait for a slot within the deadline, which a limit for each minute moves on."""
        if self.settings.limit(surface).per_minute is None:
            return (yield from self._wait_for_slot(surface, backoff.deadline))
        started = time.monotonic()
        yield from self._wait_for_slot(surface, math.inf)
        backoff.deadline += time.monotonic() - started  # our own queue is not counted
        return True

    def _wait_for_slot(self, surface: Surface, until: float) -> Steps[bool]:
        """Wait for a slot of the host's rate limit; return False if none is free in time."""
        if self._pass_over is not None:
            return True
        limiter = self._rate_limiters[surface]
        while True:
            epoch = limiter.epoch
            seconds = limiter.reserve(until)
            if not seconds:
                return seconds is not None
            self._show_wait(surface, seconds)
            try:
                yield seconds
            except GeneratorExit:  # the wait was cancelled
                limiter.release(epoch)
                raise
            if epoch == limiter.epoch:  # the slot was not voided by a pause
                return True

    def _show_wait(self, surface: Surface, seconds: float) -> None:
        """Show and log a long wait for the rate limit of a host."""
        if seconds > _LONG_WAIT_S:
            host = urlsplit(self.settings.network.address(surface) or "").hostname
            text = f"waiting {seconds:.0f} s: {self.settings.limit(surface)}, to {host}"
            progress.show_wait(text)
            _LOG.info(text)

    def _may_succeed_later(self, call: Call[Any], surface: Surface, value: object) -> bool:
        """Return True if the same request to the same host may soon succeed."""
        if not isinstance(value, LedgerError) or not (value.retryable and call.repeatable):
            return False
        return surface == "archival_rpc" or not self._may_be_archived(call, value)

    def _may_be_archived(self, call: Call[Any], value: object) -> bool:
        """Return True if the archival host may have what the host does not."""
        is_missing = isinstance(value, LedgerError) and value.elsewhere and call.repeatable
        return is_missing and call.surface == "rpc" and "archival_rpc" in self._client.roots

    def _decode_matched(
        self, call: Call[Any], call_id: str | None, response: Response
    ) -> tuple[Any, Response]:
        """Decode the response to a call with an id, if it has one; its id is the placeholder."""
        if call_id is None:
            return self._decode(call, response), response
        body = matching.restore_placeholder(response.body, call_id)
        if body is None:
            value = self._decode(call, response)
            return matching.check_id(value, response.body, call.request), response
        response = response._replace(body=body)
        return self._decode(call, response), response

    def _decode(self, call: Call[Any], response: Response) -> Any:
        """Decode a response; an error is returned."""
        try:
            return call.read(response)
        except LedgerError as error:
            networks.add_account_hint(self.settings.network, error)
            return strip_error(error)

    # Responses that cannot change: in memory, and on request on disk -----------------------

    @property
    def disk_cache(self) -> DiskCache | None:
        """The disk cache, if there is one."""
        return self._disk_cache

    def clear_caches(self) -> None:
        """Drop all cached responses, in memory and on disk."""
        self._memory_cache.clear()
        if self._disk_cache is not None:
            self._disk_cache.clear()

    def cached(self, call: Call[Any]) -> tuple[Any] | None:
        """Return the cached answer to a call as a tuple of one; None if there is none."""
        disk_cache = self._disk_cache if call.kind else None
        body = self._memory_cache.get(call.key, disk_cache.now() if disk_cache else 0.0)
        answer = None if body is None else (self._decode(call, Response(body)),)
        if disk_cache is not None:
            answer = answer or self._cached_on_disk(call, disk_cache)
            disk_cache.count(call.kind, hit=answer is not None)
        return answer

    def _cached_on_disk(self, call: Call[Any], disk_cache: DiskCache) -> tuple[Any] | None:
        """Return the answer on disk; an entry that cannot be decoded is dropped."""
        for key in disk_cache.keys(call):
            entry = disk_cache.get(key, call.kind)
            if entry is None:
                continue
            value = self._decode(call, Response(entry.body))
            if not isinstance(value, LedgerError) and call.keep and call.keep(value):
                expires_at = disk_cache.expires_at(call.kind, entry.stored_at)
                self._memory_cache.put(call.key, entry.body, expires_at)
                return (value,)
            disk_cache.drop(key, "it is no response to its call")
        return None

    def _add_to_caches(self, call: Call[Any], surface: Surface, response: Response) -> None:
        """Add a response that cannot change, on disk under the address that sent it."""
        disk_cache = self._disk_cache
        if disk_cache is None or not call.kind:
            self._memory_cache.put(call.key, response.body)
            return
        now = disk_cache.now()
        expires_at = disk_cache.expires_at(call.kind, now)
        self._memory_cache.put(call.key, response.body, expires_at)
        if response.status == OK and not self._client.has_key(response.body):
            disk_cache.put(disk_cache.key(call, surface), call.kind, now, response.body)


# The limiters of public hosts, which count the requests of the whole process for a minute.
_shared_limiters: dict[tuple[str, Limit], RateLimiter] = {}
if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_shared_limiters.clear)  # a thread may hold their locks


def _rate_limiters(settings: Settings) -> dict[Surface, RateLimiter]:
    """Build the rate limiter of each host; surfaces on one host share it."""
    own_limiters: dict[tuple[str, Limit], RateLimiter] = {}
    limiters: dict[Surface, RateLimiter] = {}
    for surface in networks.SURFACES:
        limit = settings.limit(surface)
        host = urlsplit(settings.network.address(surface) or "").netloc
        by_host = own_limiters if limit.per_minute is None else _shared_limiters
        limiter = RateLimiter(limit.rate, limit.per_minute)
        limiters[surface] = by_host.setdefault((host, limit), limiter)
    return limiters


def _disk_cache(settings: Cache | None, roots: Mapping[Surface, str]) -> DiskCache | None:
    """Build the disk cache; SQLite is imported with the first one."""
    if settings is None:
        return None
    from ledgerkit.transport.disk_cache import DiskCache

    return DiskCache(settings, roots)


def _no_progress(_count: int) -> None:
    """Report nothing."""
