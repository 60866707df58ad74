"""The one place that talks HTTP: hosts, retries, concurrency, redaction."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import ssl
import threading
import time
import traceback
import weakref
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar, cast
from urllib.parse import urlsplit

import httpx
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_result,
    stop_after_attempt,
    stop_before_delay,
    wait_random_exponential,
)

from ledgerkit._version import __version__
from ledgerkit.api.calls import Call, Response
from ledgerkit.errors import InvalidRequestError, LedgerError, RateLimitedError, TransportError, cut
from ledgerkit.transport import background_loop, networks, streaming
from ledgerkit.transport.aiohttp_pool import Bulk
from ledgerkit.transport.rate_limit import Cache, Pacer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from ledgerkit.transport.aiohttp_pool import Reply
    from ledgerkit.transport.disk_cache import Store
    from ledgerkit.transport.networks import ApiKey, Network, Surface
    from ledgerkit.transport.settings import Cache as Kept
    from ledgerkit.transport.settings import Settings

    T_ = TypeVar("T_")
    # A wait in seconds, or an exchange; what comes back is None, or how the exchange ended.
    Steps = Generator[float | "Ask", Response | LedgerError | None, T_]

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)
AnyTransport = httpx.BaseTransport | httpx.AsyncBaseTransport
Way = httpx.AsyncBaseTransport | Bulk

_PLAIN_POOL = 8  # beyond this many in flight httpcore's shared pool gets slow
_BACKOFF = wait_random_exponential(multiplier=0.25, max=5.0)
_OK = 200
# Cancelled in a TLS handshake httpcore leaves its socket open: let it give up before.
_CONNECTING = 0.9
_REDIRECT = range(300, 400)
# Nothing in it is quoted, normalised or split: httpx leaves such a path as it is.
_PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")
_LOG = logging.getLogger("ledgerkit")
_HEADERS = {
    "accept": "application/json",
    "accept-encoding": "gzip, deflate",
    "user-agent": f"ledgerkit/{__version__}",
}


def _in_bytes(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Write headers as httpx keeps them."""
    return [(name.encode(), text.encode()) for name, text in headers.items()]


_HEADER_BYTES = _in_bytes(_HEADERS)

_keys: weakref.WeakSet[ApiKey] = weakref.WeakSet()


def _without_keys(record: logging.LogRecord) -> bool:
    """Take the keys in use out of a log record."""
    text = record.getMessage().encode()
    for key in list(_keys):
        text = key.hide(text)
    record.msg, record.args = text.decode(), ()
    return True


# Its debug log tells the headers of answers, and a redirect repeats the query with the key.
logging.getLogger("httpcore.http11").addFilter(_without_keys)


# Transports -------------------------------------------------------------------------------


class Lanes(httpx.AsyncBaseTransport):
    """
    Single connections, one a request in flight: what a shared pool can't do quickly.

    Parameters
    ----------
    make
        Opens one more connection.
    """

    def __init__(self, make: Callable[[], httpx.AsyncBaseTransport]) -> None:
        self._make = make
        self._free: list[httpx.AsyncBaseTransport] = []
        self._all: list[httpx.AsyncBaseTransport] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer over a free connection, or a new one; the body is read whole."""
        lane = self._free.pop() if self._free else self._open()
        try:
            response = await lane.handle_async_request(request)
            try:
                await response.aread()
            finally:
                await response.aclose()  # a lane with an open answer takes no other request
        finally:
            self._free.append(lane)
        return response

    def _open(self) -> httpx.AsyncBaseTransport:
        """Open one more connection."""
        self._all.append(self._make())
        return self._all[-1]

    async def aclose(self) -> None:
        """Close all connections."""
        for lane in self._all:
            await lane.aclose()


def _own_transports(network: Network, in_flight: int) -> dict[Surface, Way]:
    """Open the ways to a network: one for all its hosts, unless their proxies differ."""
    urls = {s: url for s in networks.SURFACES if (url := network.address(s))}
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody
    if any(urlsplit(url).scheme == "https" for url in urls.values()):
        tls = httpx.create_ssl_context()  # takes some 20 ms
    proxies = {surface: networks.proxy_for(url) for surface, url in urls.items()}
    ways = {proxy: _own_transport(proxy, tls, in_flight) for proxy in set(proxies.values())}
    return {surface: ways[proxy] for surface, proxy in proxies.items()}


def _own_transport(proxy: str | None, tls: ssl.SSLContext, in_flight: int) -> Way:
    """Choose what reaches the limit at this many in flight."""
    scheme = urlsplit(proxy).scheme if proxy else "http"
    try:
        if in_flight > _PLAIN_POOL and scheme == "http" and find_spec("aiohttp"):
            return Bulk(proxy, tls, in_flight, _HEADERS)
        if in_flight > _PLAIN_POOL:
            return Lanes(lambda: _pool(proxy, tls, 1))
        return _pool(proxy, tls, in_flight)
    except (ImportError, ValueError):  # the text would quote the proxy's password
        msg = f"the {scheme} proxy that the environment names cannot be used"
    remedy = "Name an http proxy, or for a SOCKS one: pip install 'httpx[socks]'."
    raise InvalidRequestError(msg, remedy=remedy, field="proxy")


def _pool(proxy: str | None, tls: ssl.SSLContext, size: int) -> httpx.AsyncBaseTransport:
    """Make httpx's own transport."""
    limits = httpx.Limits(max_connections=size, max_keepalive_connections=size)
    return httpx.AsyncHTTPTransport(verify=tls, limits=limits, proxy=proxy)


async def _close_all(transports: Iterable[Way]) -> None:
    """Close each transport once."""
    for transport in set(transports):
        await transport.aclose()


def _close_later(loop: background_loop.Loop, transports: Sequence[Way]) -> None:
    """Close what nobody closed."""
    if loop.alive:
        loop.later(_close_all(transports))
    else:
        background_loop.leave_to_parent(transports)


def _checked(transport: AnyTransport) -> AnyTransport:
    """Refuse what is not a transport."""
    if not isinstance(transport, httpx.BaseTransport | httpx.AsyncBaseTransport):
        rule = "an httpx.BaseTransport or httpx.AsyncBaseTransport"
        raise InvalidRequestError.refuse("transport", transport, rule)
    return transport


# Calls ------------------------------------------------------------------------------------


class Address:
    """
    Where a host's calls go.

    Parameters
    ----------
    root
        Its address, which each call's path is added to.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._url = httpx.URL(root)
        self._path = urlsplit(root).path
        self._origin = f"{self._url.scheme}://{self._url.netloc.decode()}"

    def text(self, path: str) -> str:
        """Add a path; the text of what `below` gives."""
        whole = self._path + path
        if path and _PLAIN_PATH.fullmatch(whole):
            return self._origin + whole
        return str(self.below(path))

    def below(self, path: str) -> httpx.URL:
        """Add a path; to let httpx parse it again would be a fifth of a call's time."""
        if not path:
            return self._url
        whole = self._path + path
        if not _PLAIN_PATH.fullmatch(whole) or not hasattr(self._url, "_uri_reference"):
            return httpx.URL(self._root + path)
        url = httpx.URL(self._url)
        # Its parts, of which only the path differs, have no public name.
        url._uri_reference = url._uri_reference._replace(path=whole, query=None)  # noqa: SLF001 - as above
        return url


class Ask(NamedTuple):
    """One exchange to make: of which call, with which host, and the seconds it may take."""

    call: Call[Any]
    surface: Surface
    seconds: float


class Share(Generic[T]):
    """
    Calls that workers share until none is left, or the first failure.

    Parameters
    ----------
    calls
        The calls.
    stop
        Whether a failure ends it all and is raised; otherwise it is an answer.
    done
        Called after each answer.
    """

    def __init__(self, calls: Sequence[Call[T]], *, stop: bool, done: Callable[[], object]) -> None:
        self._left = enumerate(calls)
        self._stop = stop
        self._done = done
        self._ended = threading.Event()
        self.values: list[Any] = [None] * len(calls)

    def __iter__(self) -> Iterator[tuple[int, Call[T]]]:
        while not self._ended.is_set() and (item := next(self._left, None)):
            yield item

    def answer(self, place: int, value: T | LedgerError) -> None:
        """Put an answer in its place."""
        if self._ended.is_set():
            return
        if self._stop and isinstance(value, LedgerError):
            raise value
        self.values[place] = value
        self._done()

    def sleep(self, seconds: float) -> None:
        """Wait, unless there is nothing to wait for any more."""
        if self._ended.wait(seconds):
            raise CancelledError

    def end(self) -> None:
        """Let the workers leave."""
        self._ended.set()


class Http:
    """
    Sends calls and reads their answers; all it raises is a `LedgerError`.

    A failure is a value until the last moment: an exception of the HTTP library holds
    the request, and with it the key, so none may hang on one of ours, nor may a frame
    that has seen the key be on its traceback.

    Parameters
    ----------
    settings
        Where, as whom and how patiently to ask.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        addresses = {s: settings.network.address(s) for s in networks.SURFACES}
        self._roots = {s: url for s, url in addresses.items() if url}
        self._addresses = {s: Address(url) for s, url in self._roots.items()}
        given = settings.transport
        self._is_async = given is None or isinstance(given, httpx.AsyncBaseTransport)
        self._closed = False
        if settings.key is not None:
            _keys.add(settings.key)
        self._open()

    # Opening and closing ------------------------------------------------------------------

    def _open(self) -> None:
        """Begin in this process: nothing remembered, no connection made."""
        settings = self.settings
        self._pid = os.getpid()
        self._pacer = Pacer(settings.rate)
        self._crews: weakref.WeakSet[streaming.Crew] = weakref.WeakSet()
        self._cache = Cache()
        self._store = None if settings.cache is None else _store(settings.cache, self._roots)
        self._places = threading.BoundedSemaphore(settings.in_flight)
        self._async_places = asyncio.BoundedSemaphore(settings.in_flight)
        self._transports: dict[Surface, Any]
        self._finalizer: weakref.finalize[..., Http] | None = None
        if settings.transport is not None:
            self._transports = dict.fromkeys(self._roots, _checked(settings.transport))
        else:
            self._transports = dict(_own_transports(settings.network, settings.in_flight))
            own = list(self._transports.values())
            self._finalizer = weakref.finalize(self, _close_later, background_loop.current(), own)

    def ready(self) -> Self:
        """Refuse to work once closed; share no connection with the process we came from."""
        if self._closed:
            msg = "this ledger is closed"
            raise InvalidRequestError(msg, remedy="Connect again.", field="ledger")
        if self._pid != os.getpid():
            self._abandon()
            self._open()
        return self

    def _abandon(self) -> None:
        """Leave the connections to the parent process."""
        if self._finalizer is not None:
            self._finalizer.detach()
        if self._store is not None:
            self._store.abandon()
        background_loop.leave_to_parent(self._transports)

    def close(self) -> None:
        """Close the connections; calling it again does nothing."""
        closed, self._closed = self._closed, True
        if closed:
            return
        if self._pid == os.getpid():
            for crew in list(self._crews):  # or they would open connections anew
                crew.end()
        if self._store is not None and self._pid == os.getpid():
            self._store.close()
        if self._pid != os.getpid():
            self._abandon()
        elif self.settings.transport is not None and self.settings.borrowed:
            return
        elif self._is_async:
            background_loop.current().run(_close_all(self._transports.values()))
        else:
            for transport in set(self._transports.values()):
                transport.close()
        if self._finalizer is not None:
            self._finalizer.detach()

    # One call or many ---------------------------------------------------------------------

    def send(self, call: Call[T]) -> T:
        """Send one call and read its answer."""
        self.ready()
        if self._is_async:
            value: T | LedgerError = background_loop.current().run(self._aone(call))
        else:
            value = self._one(call, time.sleep)
        if isinstance(value, LedgerError):
            raise value
        return value

    def send_many(
        self, calls: Sequence[Call[T]], *, stop: bool, done: Callable[[], object]
    ) -> list[T | LedgerError]:
        """
        Send calls concurrently.

        Parameters
        ----------
        calls
            The calls.
        stop
            Whether the first failure ends it all and is raised; otherwise a failure
            stands in its call's place.
        done
            Called after each answer.

        Returns
        -------
        values
            One a call, in order.
        """
        self.ready()
        share = Share(calls, stop=stop, done=done)
        workers = min(self.settings.in_flight, len(calls))
        try:
            if self._is_async:
                background_loop.current().run(self._amany(share, workers))
            elif workers:
                self._many(share, workers)
        finally:
            share.end()
        return share.values

    def stream(
        self, calls: Iterable[Call[T]], *, size: int
    ) -> Generator[list[T | LedgerError], None, None]:
        """
        Send calls as they come.

        Parameters
        ----------
        calls
            The calls; they may never end.
        size
            How many answers are given at a time.

        Returns
        -------
        batches
            Lists of answers in the order of the calls; a failure stands in its call's
            place.
        """
        self.ready()
        count = self.settings.in_flight
        crew: streaming.Crew
        if self._is_async:
            crew = streaming.LoopCrew(self._aone, count)
        else:
            crew = streaming.ThreadCrew(self._one, count)
        self._crews.add(crew)
        ahead = streaming.batches_ahead(size, count)
        return streaming.Stream(calls, crew, size=size, ahead=ahead).batches(self.ready)

    async def _amany(self, share: Share[T], count: int) -> None:
        """Let workers of the background loop answer what they share."""

        async def work() -> None:
            for place, call in share:
                share.answer(place, await self._aone(call))

        workers = [asyncio.ensure_future(work()) for _ in range(count)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    def _many(self, share: Share[T], count: int) -> None:
        """Let threads answer what they share; an interrupt waits for none of them."""

        def work() -> None:
            with suppress(CancelledError):
                for place, call in share:
                    share.answer(place, self._one(call, share.sleep))

        pool = ThreadPoolExecutor(count, "ledgerkit")
        workers = [pool.submit(work) for _ in range(count)]
        pool.shutdown(wait=False)
        while not _ended(*wait(workers, background_loop.GLANCE_S, FIRST_EXCEPTION)):
            pass
        share.end()
        wait(workers)
        for worker in workers:
            worker.result()

    def _one(self, call: Call[Any], sleep: Callable[[float], None]) -> Any:
        """Take the steps of a call over a synchronous transport, in this thread."""
        with self._places, closing(self._steps(call)) as steps:
            try:
                step = next(steps)
                while True:
                    if isinstance(step, Ask):
                        step = steps.send(self._exchange(step))
                    else:
                        sleep(step)
                        step = next(steps)
            except StopIteration as end:
                return end.value

    async def _aone(self, call: Call[Any]) -> Any:
        """Take the steps of a call over an asynchronous transport, on its loop."""
        async with self._async_places:
            steps = self._steps(call)
            try:
                step = next(steps)
                while True:
                    if isinstance(step, Ask):
                        step = steps.send(await self._aexchange(step))
                    else:
                        await asyncio.sleep(step)
                        step = next(steps)
            except StopIteration as end:
                return end.value
            finally:
                steps.close()

    # The steps of a call: waits and exchanges, the same for threads and the loop -----------

    def _steps(self, call: Call[Any]) -> Steps[Any]:
        """Ask the caches, the host, and where that does not know the archival one."""
        if call.keep and (kept := self._kept(call)):
            return kept[0]
        yield from self._place(math.inf)  # the queue is ours: no host is to blame for it
        deadline = time.monotonic() + self.settings.retries.total_s
        value = yield from self._tries(call, call.surface, deadline)
        if self._archive_may_know(call, value):
            if not (yield from self._place(deadline)):
                return self._failure(Ask(call, "archival_rpc", 0.0), TimeoutError())
            value = yield from self._tries(call, "archival_rpc", deadline)
        return value

    def _tries(self, call: Call[Any], surface: Surface, deadline: float) -> Steps[Any]:
        """Try until it works or is not worth another try; the library counts and waits."""
        value = yield from self._try(call, surface, deadline)
        if not self._worth_repeating(call, surface, value):
            return value
        waits: list[float] = []
        for attempt in Retrying(
            retry=retry_if_result(lambda value: self._worth_repeating(call, surface, value)),
            stop=stop_after_attempt(self.settings.retries.attempts)
            | stop_before_delay(deadline - time.monotonic()),
            wait=_pause,
            before_sleep=self._hold_back,
            sleep=waits.append,
            retry_error_callback=_outcome,
        ):
            if waits:  # the first attempt is the one already made
                yield waits.pop()
                if not (yield from self._place(deadline)):
                    break
                value = yield from self._try(call, surface, deadline)
            attempt.retry_state.set_result(value)
        return value

    def _try(self, call: Call[Any], surface: Surface, deadline: float) -> Steps[Any]:
        """Ask once."""
        began = time.monotonic()
        seconds = min(self.settings.timeout_s, max(0.0, deadline - began))
        answer = yield Ask(call, surface, seconds)
        if not isinstance(answer, Response):
            return answer
        value = self._read(call, answer)
        if isinstance(value, RateLimitedError) and (rate := self._pacer.slow_down(began)):
            _LOG.info("too many requests: at most %.3g a second for now", rate)
        if call.keep and not isinstance(value, LedgerError) and call.keep(value):
            self._keep(call, surface, answer)
        return value

    def _place(self, until: float) -> Steps[bool]:
        """Wait for a place in the rate; False if none is free in time."""
        while True:
            turn = self._pacer.turn
            seconds = self._pacer.reserve(until)
            if not seconds:
                return seconds is not None
            try:
                yield seconds
            except GeneratorExit:  # the wait was cancelled
                self._pacer.give_back(turn)
                raise
            if turn == self._pacer.turn:  # no host has asked for a pause since
                return True

    def _worth_repeating(self, call: Call[Any], surface: Surface, value: object) -> bool:
        """Tell whether the same request to the same host may work soon."""
        if not isinstance(value, LedgerError) or not (value.retryable and call.repeatable):
            return False
        return surface == "archival_rpc" or not self._archive_may_know(call, value)

    def _archive_may_know(self, call: Call[Any], value: object) -> bool:
        """Tell whether there is another host to ask."""
        unknown = isinstance(value, LedgerError) and value.elsewhere and call.repeatable
        return unknown and call.surface == "rpc" and "archival_rpc" in self._roots

    def _hold_back(self, state: RetryCallState) -> None:
        """Tell those who listen; too many requests are a matter of all, not of one."""
        error = _outcome(state)
        if isinstance(error, RateLimitedError):
            self._pacer.pause(state.upcoming_sleep)
        _LOG.info("asking again in %.2f s: %s", state.upcoming_sleep, error)

    def _read(self, call: Call[Any], answer: Response) -> Any:
        """Read an answer."""
        try:
            return call.read(answer)
        except LedgerError as error:
            return _bare(error)

    # What can't change: in memory for the session, and where asked in a folder --------------

    @property
    def store(self) -> Store | None:
        """What is kept for the next session."""
        return self._store

    def forget(self) -> None:
        """Forget all that is kept, here and in the folder."""
        self._cache.clear()
        if self._store is not None:
            self._store.clear()

    def _kept(self, call: Call[Any]) -> tuple[Any] | None:
        """Find an answer that is known already."""
        store = self._store if call.kind else None
        body = self._cache.get(call.key, store.now() if store else 0.0)
        found = None if body is None else (self._read(call, Response(body)),)
        if store is not None:
            found = found or self._stored(call, store)
            store.count(call.kind, hit=found is not None)
        return found

    def _stored(self, call: Call[Any], store: Store) -> tuple[Any] | None:
        """Find an answer in the folder; one that can't be read there is asked again."""
        for key in store.keys(call):
            found = store.get(key, call.kind)
            if found is None:
                continue
            value = self._read(call, Response(found.body))
            if not isinstance(value, LedgerError) and call.keep and call.keep(value):
                self._cache.put(call.key, found.body, store.until(call.kind, found.since))
                return (value,)
            store.drop(key, "it does not answer what was asked")
        return None

    def _keep(self, call: Call[Any], surface: Surface, answer: Response) -> None:
        """Keep an answer that can't change, under the address that gave it."""
        store = self._store
        if store is None or not call.kind:
            self._cache.put(call.key, answer.body)
            return
        since = store.now()
        self._cache.put(call.key, answer.body, store.until(call.kind, since))
        if answer.status == _OK and not self._repeats_key(answer.body):
            store.put(store.key(call, surface), call.kind, since, answer.body)

    # One exchange: the only frames that see the key, and no exception leaves with them ------

    def _exchange(self, ask: Ask) -> Response | LedgerError:
        """Ask over a synchronous transport."""
        until = time.monotonic() + ask.seconds
        error: BaseException
        try:
            transport = self._transport(ask)
            with closing(transport.handle_request(self._request(ask))) as response:
                body = b"".join(_in_time(response.iter_bytes(), until))
            return self._answer(ask, response.status_code, _pause_asked(response), body)
        except Exception as caught:  # noqa: BLE001 - a transport may be anybody's
            return self._failure(ask, caught)
        except BaseException as caught:  # noqa: BLE001 - raised again below
            error = _bare(caught)
        raise error

    async def _aexchange(self, ask: Ask) -> Response | LedgerError:
        """Ask over an asynchronous transport."""
        try:
            async with asyncio.timeout(ask.seconds):
                transport = self._transport(ask)
                if isinstance(transport, Bulk):
                    reply = await transport.ask(*self._plain_request(ask))
                    return self._answer(ask, reply.status, reply.pause, _decoded(reply))
                response = await transport.handle_async_request(self._request(ask))
                try:
                    body = await _body(response)
                finally:
                    await response.aclose()
            return self._answer(ask, response.status_code, _pause_asked(response), body)
        # These two would end the loop, which is not a transport's to decide.
        except (Exception, KeyboardInterrupt, SystemExit) as caught:  # noqa: BLE001 - as above
            return self._failure(ask, caught)

    def _repeats_key(self, body: bytes) -> bool:
        """Tell whether a host repeated the key, hidden by now or too short to be."""
        key = self.settings.key
        return key is not None and (b"[key hidden]" in body or key.reveal().encode() in body)

    def _transport(self, ask: Ask) -> Any:
        """Find the way to a host."""
        if ask.surface not in self._transports:
            field = f"{ask.surface}_url"
            msg = f"this ledger has no address for {ask.call.asked} ({field})"
            raise InvalidRequestError(msg, remedy=f"Connect with {field}=.", field=field)
        return self._transports[ask.surface]

    def _headers(self, ask: Ask) -> dict[str, str]:
        """Write what only this request says, the key unless it goes into the query."""
        headers = {} if ask.call.body is None else {"content-type": "application/json"}
        key = self.settings.key
        if key is not None and self.settings.key_in == "header":
            headers["authorization"] = f"Bearer {key.reveal()}"
        return headers

    def _with_key(self, url: httpx.URL) -> httpx.URL:
        """Add the key to the query, where asked."""
        key = self.settings.key
        if key is None or self.settings.key_in == "header":
            return url
        return url.copy_merge_params({"apiKey": key.reveal()})

    def _plain_request(self, ask: Ask) -> tuple[str, dict[str, str], bytes | None, float]:
        """Write the request as `Bulk` takes it."""
        address = self._addresses[ask.surface]
        if self.settings.key is None or self.settings.key_in == "header":
            url = address.text(ask.call.path)
        else:
            url = str(self._with_key(address.below(ask.call.path)))
        return url, self._headers(ask), ask.call.body, _CONNECTING * ask.seconds

    def _request(self, ask: Ask) -> httpx.Request:
        """Write the request, the key in its header or, where asked, its query."""
        body = ask.call.body
        url = self._with_key(self._addresses[ask.surface].below(ask.call.path))
        headers = [*_HEADER_BYTES, (b"host", url.netloc), *_in_bytes(self._headers(ask))]
        if body is not None:
            headers.append((b"content-length", str(len(body)).encode()))
        # With a stream httpx takes the headers as they are: a fifth of the time.
        request = httpx.Request(
            "GET" if body is None else "POST",
            url,
            headers=headers,
            stream=httpx.ByteStream(body or b""),
            extensions={"timeout": self._timeout(ask.seconds)},
        )
        request.read()
        return request

    def _timeout(self, seconds: float) -> dict[str, float | None]:
        """Limit the phases of a request, where the loop does not limit the whole."""
        if not self._is_async:
            return dict.fromkeys(("connect", "read", "write", "pool"), seconds)
        return {"connect": _CONNECTING * seconds, "read": None, "write": None, "pool": None}

    def _answer(
        self, ask: Ask, status: int, pause: str | None, body: bytes
    ) -> Response | LedgerError:
        """Take what came back; a host that repeats the key is not repeated."""
        if status in _REDIRECT:
            host = urlsplit(self._roots[ask.surface]).hostname
            sentence = f"{host} answered {ask.call.asked} with a redirect (HTTP {status})"
            return TransportError(
                sentence,
                remedy="Redirects are not followed: give connect() the address it leads to.",
                retryable=False,
                status=status,
                asked=ask.call.asked,
            )
        key = self.settings.key
        return Response(body if key is None else key.hide(body), status, _retry_after(pause))

    def _failure(self, ask: Ask, error: BaseException) -> LedgerError:
        """Translate a failure to ask, without the key or the address's path."""
        if isinstance(error, LedgerError):
            return _bare(error)
        host = urlsplit(self._roots[ask.surface]).hostname
        begun = f"could not ask {host} for {ask.call.asked}"
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            limit = f"no answer within {ask.seconds:.3g} s" if ask.seconds else "no time was left"
            return TransportError(f"{begun}: {limit}", asked=ask.call.asked)
        text = str(error) or type(error).__name__
        if self.settings.key is not None:
            text = self.settings.key.hide(text.encode("utf-8", "replace")).decode()
        if self.settings.transport is None or isinstance(error, httpx.HTTPError | OSError):
            return TransportError(f"{begun}: {cut(text)}", asked=ask.call.asked)
        sentence = f"{begun}: the transport failed, {type(error).__name__}: {cut(text)}"
        return TransportError(
            f"{sentence} ({_place_of(error)})",
            remedy="Correct the transport given to connect().",
            retryable=False,
            asked=ask.call.asked,
        )


def _store(settings: Kept, roots: Mapping[Surface, str]) -> Store:
    """Make a store; SQLite loads with the first one."""
    from ledgerkit.transport.disk_cache import Store

    return Store(settings, roots)


def _ended(through: set[Future[None]], at_work: set[Future[None]]) -> bool:
    """Tell whether all workers are through, or one has failed."""
    return not at_work or any(worker.exception() for worker in through)


def _bare(error: E) -> E:
    """Take from an error what it was raised from, and where."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _place_of(error: BaseException) -> str:
    """Say where an error was raised."""
    frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
    code = frame.f_code
    return f"{Path(code.co_filename).name}, line {line}, in {code.co_name}"


def _header(response: httpx.Response, name: bytes) -> str | None:
    """Find a header; `response.headers` guesses an encoding each time it is asked."""
    found = (text for key, text in response.headers.raw if key.lower() == name)
    return next(found, b"").decode("latin-1") or None


def _pause_asked(response: httpx.Response) -> str | None:
    """Find the pause a host asks for, as it says it."""
    return _header(response, b"retry-after")


def _decoded(reply: Reply) -> bytes:
    """Decompress a body the way httpx does."""
    if not reply.encodings:
        return reply.body
    headers = {"content-encoding": ", ".join(reply.encodings)}
    return httpx.Response(_OK, headers=headers, content=reply.body).content


async def _body(response: httpx.Response) -> bytes:
    """Read a body whole; where nothing needs decoding, past httpx's costly layers."""
    if response.is_stream_consumed or _header(response, b"content-encoding"):
        return await response.aread()
    stream = cast("httpx.AsyncByteStream", response.stream)
    return b"".join([chunk async for chunk in stream])


def _in_time(chunks: Iterable[bytes], until: float) -> Iterator[bytes]:
    """Give up on a body that keeps dripping."""
    for chunk in chunks:
        yield chunk
        if time.monotonic() > until:
            raise TimeoutError


def _outcome(state: RetryCallState) -> Any:
    """Give how the last attempt ended."""
    return state.outcome.result() if state.outcome else None


def _pause(state: RetryCallState) -> float:
    """Wait a random while, growing with each attempt, on top of what the host asks for."""
    asked: float | None = getattr(_outcome(state), "retry_after", None)
    return (asked or 0.0) + _BACKOFF(state)


def _retry_after(text: str | None) -> float | None:
    """Read the pause a host asks for: seconds, or a date."""
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = _seconds_to(text)
    return seconds if 0 <= seconds < math.inf else None


def _seconds_to(date: str) -> float:
    """Tell how far away a date is; not a number if it is none."""
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError):
        return math.nan
