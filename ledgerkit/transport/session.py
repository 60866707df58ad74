"""The session of a ledger: its calls go through caches, rate limit and retries."""

from __future__ import annotations

import asyncio
import logging
import math
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from ledgerkit import progress
from ledgerkit.api import matching
from ledgerkit.api.calls import Call, Response, Surface
from ledgerkit.errors import (
    InvalidRequestError,
    LedgerError,
    NotRecordedError,
    RateLimitedError,
    RpcMethodNotFoundError,
    TransportError,
    UnmatchedResponseError,
)
from ledgerkit.transport import background_loop, forks, networks
from ledgerkit.transport.exchange import (
    HTTPX_TRANSPORT,
    Connections,
    Exchange,
    Source,
    Transport,
    timeout_error,
)
from ledgerkit.transport.http_transport import HttpTransport, strip_error
from ledgerkit.transport.memory_cache import MemoryCache
from ledgerkit.transport.rate_limit import MINUTE_S, Limit, RateLimiter
from ledgerkit.transport.retry import Backoff, Outage
from ledgerkit.transport.streaming import STOP_S, Stream, batches_ahead, batches_in_place

if TYPE_CHECKING:
    from ledgerkit.transport.disk_cache import DiskCache
    from ledgerkit.transport.httpx_transports import AnyTransport
    from ledgerkit.transport.settings import Settings
    from ledgerkit.transport.streaming import Work

T = TypeVar("T")
S = TypeVar("S")

_LOG = logging.getLogger("ledgerkit")
_LONG_WAIT_S = 5.0  # a longer wait for the rate limit is shown
_CLOSING_S = 3 * STOP_S
_OK = 200


class Session:
    """
    A sender of calls; all errors that it raises are `LedgerError`.

    Coroutines wait for hosts, on the background loop. With the embedded ledger or a recording
    nothing suspends, so they run in the caller's thread.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.siblings: weakref.WeakSet[Any] = weakref.WeakSet()  # ledgers to close with this one
        # A plain flag, because a threading.Event has a lock that a signal handler or a fork could
        # find held.
        self._is_closed = False
        self._rate_limiters = _rate_limiters(settings)
        self.disk_cache: DiskCache | None = None
        if settings.cache is not None:
            from ledgerkit.transport.disk_cache import DiskCache  # imports SQLite

            self.disk_cache = DiskCache(settings.cache, settings.network.addresses)
        self._transport = self._open_transport()
        if settings.recorder is not None:
            self._transport = settings.recorder.wrap(self._transport, settings)
        self.after_fork()
        forks.register(self)

    # Opening and closing ------------------------------------------------------------------

    def after_fork(self) -> None:
        """Reset the state of calls, as in a forked child."""
        self._memory_cache = MemoryCache()
        self._tasks: set[asyncio.Task[Any]] = set()  # unfinished calls
        self._without_newer: set[Surface] = set()  # hosts that lack the newer names of methods
        self._tried_newer: dict[Surface, asyncio.Event] = {}
        self._slots = asyncio.Semaphore(self.settings.in_flight)  # shared by all streams

    def _open_transport(self) -> Transport:
        """Open the transport: to hosts, to what a caller passed, or in this process."""
        source = self.settings.transport
        if isinstance(source, Transport):
            return source
        # A reference to the session would keep a dropped ledger until garbage is collected.
        wait = partial(Session._wait_for_slot, weakref.proxy(self))
        return HttpTransport(self.settings, self._open_connections(source), wait)

    def _open_connections(self, source: Source | AnyTransport | None) -> Connections:
        if source is None:
            from ledgerkit.transport.connections import NetworkConnections

            network, count = self.settings.network, self.settings.in_flight
            return NetworkConnections(network.addresses, count)
        if isinstance(source, Source):
            return source.open(partial(Session.sleep, weakref.proxy(self)))
        if find_spec("httpx") is None:
            raise InvalidRequestError.refuse("transport", source, HTTPX_TRANSPORT)
        from ledgerkit.transport.httpx_transports import HttpxConnections

        return HttpxConnections(source, is_borrowed=self.settings.borrowed)

    def ready(self) -> Session:
        """Return this session; raise if it is closed."""
        if self._is_closed:
            msg = "this ledger is closed"
            raise InvalidRequestError(msg, remedy="Connect again.", field="ledger")
        return self

    def close(self) -> None:
        """End the calls under way and close the connections; a second time does nothing."""
        was_closed, self._is_closed = self._is_closed, True
        if was_closed:
            return
        for ledger in list(self.siblings):
            ledger.close()
        if self._transport.in_process:
            background_loop.drive(self._transport.aclose())
        else:
            with suppress(TimeoutError):  # a caller's transport may block the loop
                background_loop.current().run(self._end_calls(), _CLOSING_S)
        if self.disk_cache is not None:
            self.disk_cache.close()
        recorder = self.settings.recorder
        if recorder is not None and not (recorder.is_shared or self.settings.borrowed):
            recorder.close()

    async def _end_calls(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_S)
        await self._transport.aclose()

    # Running and waiting ------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, on the background loop unless nothing in it suspends."""
        if self._transport.in_process:
            return background_loop.drive(work)
        try:
            return background_loop.current().run(work)
        except CancelledError:  # perhaps another thread has closed the ledger
            self.ready()
            raise

    def sleep(self, seconds: float) -> None:
        """Sleep; raise as soon as the session is closed. In a recording it takes no time."""
        until = time.monotonic() + self._transport.wait(seconds)
        while not self._is_closed and (remaining_s := until - time.monotonic()) > 0:
            time.sleep(min(remaining_s, background_loop.WAIT_SLICE_S))
        self.ready()

    def wait_for_block(self, seconds: float) -> None:
        """Sleep until there may be a block; the embedded ledger may produce it."""
        source = self.settings.transport
        if not (isinstance(source, Source) and source.produce_block()):
            self.sleep(seconds)

    async def _sleep(self, seconds: float) -> None:
        """Sleep in a coroutine, which closing cancels."""
        if self._transport.in_process:
            self.sleep(seconds)
        else:
            await asyncio.sleep(seconds)

    # One call or many ---------------------------------------------------------------------

    def send(self, call: Call[T]) -> T:
        self.ready()
        value: T | LedgerError = self._run(self.answer(call))
        if isinstance(value, LedgerError):
            raise value
        return value

    def send_many(
        self, calls: Sequence[Call[T]], *, stop_on_error: bool, progress: Callable[[int], object]
    ) -> list[T | LedgerError]:
        """Send calls concurrently, as a stream of one batch."""
        size = max(1, len(calls))
        options: Any = {"stop_on_error": stop_on_error, "progress": progress}
        batches = self._batches(calls, self._answer_function(), size=size, **options)
        return [value for batch in batches for value in batch]

    def stream(
        self, calls: Iterable[Call[T]], *, size: int, rate_limit_wait_s: float = 0.0
    ) -> Generator[list[T | LedgerError], None, None]:
        answer = self._answer_function(rate_limit_wait_s)
        ahead = batches_ahead(size, self.settings.in_flight)
        return self._batches(calls, answer, size=size, ahead=ahead)

    def stream_pairs(
        self,
        requests: Iterable[tuple[S, Call[Any] | None]],
        *,
        size: int,
        rate_limit_wait_s: float = 0.0,
        ahead: int | None = None,
    ) -> Generator[list[tuple[S, Any]], None, None]:
        """
        Send the calls of subjects as their iterator yields them; yield each subject with its value.

        A subject without a call has None. `ahead` limits the batches sent ahead.
        """
        answer = self._answer_function(rate_limit_wait_s)

        async def answer_pair(request: tuple[S, Call[Any] | None]) -> tuple[S, Any]:
            subject, call = request
            return subject, None if call is None else await answer(call)

        ahead = batches_ahead(size, self.settings.in_flight) if ahead is None else ahead
        return self._batches(requests, answer_pair, size=size, ahead=ahead)

    def read_each(
        self,
        subjects: Iterable[Any],
        read: Callable[[Reader, Any], Coroutine[Any, Any, T]],
        *,
        n_calls: int = 1,
        rate_limit_wait_s: float = 0.0,
        progress: Callable[[int], object] | None = None,
    ) -> Generator[T, None, None]:
        """
        Read subjects that need several calls each; yield the values that `read` returns.

        `n_calls` calls of a subject are sent together. The session therefore reads
        ``in_flight / n_calls`` subjects at a time; early subjects finish early.
        """
        answer = self._answer_function(rate_limit_wait_s)
        reader = Reader(answer, in_process=self._transport.in_process)
        count = -(-self.settings.in_flight // n_calls)
        options: Any = {"count": count, "ahead": count, "progress": progress}
        for [value] in self._batches(subjects, partial(read, reader), size=1, **options):
            yield value

    def iterate(
        self, rows: Callable[[Reader], AsyncGenerator[T, None]]
    ) -> Generator[T, None, None]:
        """Yield what an asynchronous generator yields; it is advanced on demand."""
        reader = Reader(self._answer_function(), in_process=self._transport.in_process)
        source = rows(reader)

        async def advance() -> list[T]:
            async for value in source:
                return [value]
            return []

        while values := self._run(advance()):
            yield from values

    def _batches(
        self,
        items: Iterable[Any],
        work: Work,
        *,
        size: int,
        ahead: int = 0,
        count: int | None = None,
        stop_on_error: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> Generator[list[Any], None, None]:
        self.ready()
        progress = progress or (lambda _count: None)
        options: Any = {"stop_on_error": stop_on_error, "progress": progress}
        if self._transport.in_process:
            return batches_in_place(items, work, size=size, check=self.ready, **options)
        count = count or self.settings.in_flight
        stream = Stream(items, work, count=count, size=size, ahead=ahead, **options)
        return stream.batches(self.ready)

    def _answer_function(self, rate_limit_wait_s: float = 0.0) -> Work:
        return partial(self.answer, rate_limit_wait_s=rate_limit_wait_s, outage=Outage())

    async def answer(
        self, call: Call[Any], rate_limit_wait_s: float = 0.0, outage: Outage | None = None
    ) -> Any:
        """Return the value of a call or its error, from the caches or from the hosts."""
        self.ready()  # again: `close` in another thread may have missed this call
        outage = outage or Outage()
        if call.keep and (cached := self.cached(call)):
            return cached[0]
        if self._transport.in_process:
            return await self._read(call, rate_limit_wait_s, outage)
        task: Any = asyncio.current_task()
        self._tasks.add(task)
        try:
            async with self._slots:
                return await self._read(call, rate_limit_wait_s, outage)
        finally:
            self._tasks.discard(task)

    # Hosts, retries and limits ------------------------------------------------------------

    async def _read(self, call: Call[Any], rate_limit_wait_s: float, outage: Outage) -> Any:
        """Send a call to its hosts; repeat it for some seconds if it is rate-limited."""
        if error := outage.error(call, call.surface):
            return error
        until = 0.0
        while True:
            await self._wait_for_slot(call.surface, math.inf)  # our own queue is not counted
            until = until or time.monotonic() + rate_limit_wait_s
            value = await self._read_from_hosts(call, outage)
            is_limited = isinstance(value, RateLimitedError) and call.repeatable
            if not is_limited or time.monotonic() >= until:
                return value

    async def _read_from_hosts(self, call: Call[Any], outage: Outage) -> Any:
        """Send a call to its host, then to the archival one if only that may have the data."""
        retries = self.settings.retries
        backoff = Backoff(retries.attempts, time.monotonic() + retries.total_s)
        value = await self._read_with_retries(call, call.surface, backoff)
        outage.record(call.surface, value)
        if self._may_be_archived(call, value):
            if error := outage.error(call, "archival_rpc"):
                return error
            backoff = Backoff(retries.attempts, backoff.deadline)
            if not await self._wait_in_time("archival_rpc", backoff):
                return timeout_error(call.request, self.settings.network.host("archival_rpc"), 0.0)
            value = await self._read_with_retries(call, "archival_rpc", backoff)
            outage.record("archival_rpc", value)
        return value

    async def _read_with_retries(self, call: Call[Any], surface: Surface, backoff: Backoff) -> Any:
        """Send a call to one host; repeat it while a retry may succeed."""
        value: Any = None
        while True:
            reconnect = isinstance(value, UnmatchedResponseError)
            value = await self._read_by_newer_name(call, surface, backoff, reconnect=reconnect)
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
            await self._sleep(pause)
            if not await self._wait_in_time(surface, backoff):
                return value

    async def _read_by_newer_name(
        self, call: Call[Any], surface: Surface, backoff: Backoff, *, reconnect: bool
    ) -> Any:
        """Send a call to one host once, by the newer name of its method if the host has it."""
        if call.newer is None or await self._lacks_newer(surface):
            return await self._read_once(call, surface, backoff.deadline, reconnect=reconnect)
        try:
            value = await self._read_once(
                call.newer, surface, backoff.deadline, reconnect=reconnect
            )
            if isinstance(value, RpcMethodNotFoundError):
                self._without_newer.add(surface)
        finally:
            self._tried_newer[surface].set()
        # A recording may have been made by a ledger that knew the earlier name only.
        if not isinstance(value, RpcMethodNotFoundError | NotRecordedError):
            return value
        if not await self._wait_in_time(surface, backoff):
            return value
        return await self._read_once(call, surface, backoff.deadline, reconnect=reconnect)

    async def _lacks_newer(self, surface: Surface) -> bool:
        """Return True for a host without newer names; wait while the first call finds out."""
        tried = self._tried_newer.get(surface)
        if tried is None:
            self._tried_newer[surface] = asyncio.Event()
        elif not self._transport.in_process:
            await tried.wait()
        return surface in self._without_newer

    async def _read_once(
        self, call: Call[Any], surface: Surface, deadline: float, *, reconnect: bool
    ) -> Any:
        """Send a call to one host once, and add its response to the caches."""
        self.ready()
        started = time.monotonic()
        timeout_s = min(self.settings.timeout_s, max(0.0, deadline - started))
        call_id = matching.new_id() if call.is_rpc else None
        exchange = Exchange(call, surface, timeout_s, call_id, reconnect)
        response = await self._transport.exchange(exchange)
        self.ready()  # otherwise the error of a lost connection would be returned
        if not isinstance(response, Response):
            if isinstance(response, TransportError) and response.no_connection:
                self._rate_limiters[surface].uncount()
            return response
        value, response = self._decode_matched(call, call_id, response)
        if isinstance(value, UnmatchedResponseError):
            _LOG.info("%s", value)
            if response.give_up is not None:
                await response.give_up()
        self._adapt_rate(surface, started, value)
        if not isinstance(value, LedgerError):
            if call.keep and call.keep(value):
                self._add_to_caches(call, surface, response)
            for part, body in call.parts(value) if call.parts else ():
                self._add_to_caches(part, surface, response._replace(body=body))
        return value

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
        return min(MINUTE_S, retries.total_s / retries.attempts)

    async def _wait_in_time(self, surface: Surface, backoff: Backoff) -> bool:
        """Wait for a slot within the deadline, which a limit for each minute moves on."""
        if self.settings.limit(surface).per_minute is None:
            return await self._wait_for_slot(surface, backoff.deadline)
        started = time.monotonic()
        await self._wait_for_slot(surface, math.inf)
        backoff.deadline += time.monotonic() - started  # our own queue is not counted
        return True

    async def _wait_for_slot(self, surface: Surface, until: float) -> bool:
        """Wait for a slot of the host's rate limit; return False if none is free in time."""
        if self._transport.is_recording:
            return True
        limiter = self._rate_limiters[surface]
        while True:
            void_count = limiter.void_count
            seconds = limiter.reserve(until)
            if not seconds:
                return seconds is not None
            self._show_wait(surface, seconds)
            try:
                await self._sleep(seconds)
            except BaseException:  # the wait was cancelled
                limiter.release(void_count)
                raise
            if void_count == limiter.void_count:  # the slot was not voided
                return True

    def _show_wait(self, surface: Surface, seconds: float) -> None:
        if seconds > _LONG_WAIT_S:
            limit, host = self.settings.limit(surface), self.settings.network.host(surface)
            text = f"waiting {seconds:.0f} s: {limit}, to {host}"
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
        has_archive = self.settings.network.archival_rpc_url is not None
        return is_missing and call.surface == "rpc" and has_archive

    def _decode_matched(
        self, call: Call[Any], call_id: str | None, response: Response
    ) -> tuple[Any, Response]:
        """Decode a response; if it has the call's id, the placeholder replaces the id."""
        if call_id is None:
            return self._decode(call, response), response
        body = matching.restore_placeholder(response.body, call_id)
        if body is None:
            value = self._decode(call, response)
            return matching.wrong_id_error(value, response.body, call.request), response
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

    def clear_caches(self) -> None:
        """Drop all cached responses, in memory and on disk."""
        self._memory_cache.clear()
        if self.disk_cache is not None:
            self.disk_cache.clear()

    def cached(self, call: Call[Any]) -> tuple[Any] | None:
        """Return the cached value of a call as a tuple of one; None if there is none."""
        disk_cache = self.disk_cache if call.kind else None
        value = self._cached(call.newer, disk_cache) if call.newer else None
        value = value or self._cached(call, disk_cache)
        if disk_cache is not None:
            disk_cache.count(call.kind, hit=value is not None)
        return value

    def _cached(self, call: Call[Any], disk_cache: DiskCache | None) -> tuple[Any] | None:
        body = self._memory_cache.get(call.key, disk_cache.now() if disk_cache else 0.0)
        if body is not None:
            return (self._decode(call, Response(body)),)
        return None if disk_cache is None else self._cached_on_disk(call, disk_cache)

    def _cached_on_disk(self, call: Call[Any], disk_cache: DiskCache) -> tuple[Any] | None:
        """Return the value on disk; an entry that cannot be decoded is dropped."""
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
        disk_cache = self.disk_cache
        if disk_cache is None or not call.kind:
            self._memory_cache.put(call.key, response.body)
            return
        now = disk_cache.now()
        expires_at = disk_cache.expires_at(call.kind, now)
        self._memory_cache.put(call.key, response.body, expires_at)
        if response.status == _OK and not self._has_key(response.body):
            disk_cache.put(disk_cache.key(call, surface), call.kind, now, response.body)

    def _has_key(self, body: bytes) -> bool:
        """Return True if a body repeats the key, hidden or too short to be hidden."""
        key = self.settings.key
        return key is not None and any(
            text.encode() in body for text in (key.placeholder, key.reveal())
        )


class Reader:
    """
    A sender of the calls of subjects that need several; equal calls in flight are sent once.

    With `in_process` the coroutine function `answer` never suspends.
    """

    def __init__(self, answer: Work, *, in_process: bool) -> None:
        self._answer = answer
        self._in_process = in_process
        self._in_flight: dict[Any, asyncio.Task[Any]] = {}

    async def answer(self, call: Call[T]) -> T | LedgerError:
        if self._in_process:
            return cast("T | LedgerError", await self._answer(call))
        task = self._in_flight.get(call.key)
        if task is None:
            task = self._in_flight[call.key] = asyncio.create_task(self._answer(call))
            task.add_done_callback(lambda _: self._in_flight.pop(call.key))
        return cast("T | LedgerError", await task)

    async def answers(self, calls: Iterable[Call[Any]]) -> list[Any]:
        """Return the values of calls that are sent together, or their errors."""
        if self._in_process:
            return [await self.answer(call) for call in calls]
        return list(await asyncio.gather(*[self.answer(call) for call in calls]))

    async def value(self, call: Call[T]) -> T:
        """Return the value of a call; raise its error."""
        value = await self.answer(call)
        if isinstance(value, LedgerError):
            raise value
        return value

    async def values(self, calls: Iterable[Call[Any]]) -> list[Any]:
        """Return the values of calls that are sent together; raise the first error."""
        values = await self.answers(calls)
        for value in values:
            if isinstance(value, LedgerError):
                raise value
        return values


# The limiters of public hosts, which count the requests of the whole process for a minute.
_shared_limiters: dict[tuple[str, Limit], RateLimiter] = {}


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
