"""Transports of httpx that pass requests to the embedded ledger, without a socket."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api import chain_errors
from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.clock import WaitEndedError, run_without_loop
from ledgerkit.localnet.execution_errors import InvalidTransactionError
from ledgerkit.localnet.faults import Faults
from ledgerkit.localnet.forking import ForkedWorld, SourceError
from ledgerkit.localnet.http_gateway import Gateway
from ledgerkit.localnet.http_messages import HttpRequest, HttpResponse
from ledgerkit.localnet.settings import SECOND_NS
from ledgerkit.localnet.world import World
from ledgerkit.localnet.worlds import open_world
from ledgerkit.transport.httpx_library import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

    from ledgerkit.api.calls import Call
    from ledgerkit.protocol import Action, SignedTransaction

__all__ = [
    "AsyncLocal",
    "Faults",
    "Local",
    "World",
    "open_fork",
    "open_local",
    "run_signed",
    "run_unsigned",
]

_CLOSED = "the transport was closed"
_DROPPED = "Server disconnected without sending a response."
_TRUNCATED = "peer closed connection without sending complete message body"
_ACCOUNT_PATH = re.compile(r"/v\d/(?:account|ft)/([^/]+)/")
_ACCOUNT_QUERIES = {"view_account", "view_access_key", "view_access_key_list"}


class _EmbeddedTransport:
    """The gateway to a world, for both transports."""

    # `HttpClient` then passes the path as the extension "target" of httpcore, so that httpx parses
    # no URL, which would take a fifth of a request's time.
    reads_target = True
    # `Session` then sends single calls in the caller's thread.
    ends_when_closed = True

    def __init__(self, world: World, faults: Faults | None = None, *, name: str = "") -> None:
        self.gateway = Gateway(world, faults)
        self.name = name
        self._closed = threading.Event()

    @property
    def world(self) -> World:
        """The world that requests are passed to."""
        return self.gateway.world

    @property
    def faults(self) -> Faults:
        """The injected faults."""
        return self.gateway.faults

    @property
    def liquid_tokens(self) -> tuple[str, ...]:
        """The liquid staking tokens of the world."""
        tokens = self.world.summary.contracts.get("liquid", ())
        return (tokens,) if isinstance(tokens, str) else tuple(tokens)

    def missing_accounts(self, calls: Iterable[Call[Any]]) -> list[str]:
        """Return the accounts of calls that the world does not have, without repeats."""
        if isinstance(self.world, ForkedWorld):  # whose accounts are those of its network
            return []
        with self.world.lock:
            state = self.world.state()
            account_ids = dict.fromkeys(map(_account_of, calls))
            return [i for i in account_ids if i is not None and state.account(i) is None]

    def close(self) -> None:
        """End the requests that wait for a block; the transport can be used again."""
        self._closed.set()
        self._closed = threading.Event()


class Local(_EmbeddedTransport, httpx.BaseTransport):
    """A synchronous transport; blocks are produced while a request waits for one."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the world's response."""
        request.read()
        clock = _ThreadClock(self.world, request, self._closed)
        try:
            response = run_without_loop(self.gateway.answer(_local_request(request), clock))
        except (SourceError, WaitEndedError) as error:
            raise error.error from None
        return _httpx_response(response, request)


class AsyncLocal(_EmbeddedTransport, httpx.AsyncBaseTransport):
    """An asynchronous transport; blocks are produced while a request waits for one."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the world's response."""
        await request.aread()
        clock = _LoopClock(self.world, request)
        try:
            response = await self.gateway.answer(_local_request(request), clock)
        except (SourceError, WaitEndedError) as error:
            raise error.error from None
        return _httpx_response(response, request)


class _RequestClock:
    """A clock that produces blocks, for a request with a read timeout."""

    def __init__(self, world: World, request: httpx.Request) -> None:
        self._world, self._request = world, request
        limit = request.extensions.get("timeout", {}).get("read")
        self._remaining_s = float("inf") if limit is None else float(limit)

    def _produce_block(self) -> float:
        """Produce a block and return the seconds it takes: 0 unless time is real."""
        self._world.advance()
        settings = self._world.settings
        return settings.block_time_ns / SECOND_NS if settings.real_time else 0.0

    def _cap(self, seconds: float) -> float:
        """Subtract a wait from the remaining time; return the wait, cut to that time."""
        remaining_s, self._remaining_s = self._remaining_s, self._remaining_s - seconds
        return min(seconds, remaining_s)

    def _check(self) -> None:
        """Give the request up once its time is over."""
        if self._remaining_s < 0:
            msg = "The read operation timed out"
            raise WaitEndedError(httpx.ReadTimeout(msg, request=self._request))


class _ThreadClock(_RequestClock):
    """A clock that blocks the thread, until the transport is closed."""

    def __init__(self, world: World, request: httpx.Request, closed: threading.Event) -> None:
        super().__init__(world, request)
        self._closed = closed

    async def next_block(self) -> None:
        """Produce a block, and wait as long as it takes in real time."""
        await self.sleep(self._produce_block())

    async def sleep(self, seconds: float) -> None:
        """Block the thread."""
        if seconds and self._closed.wait(self._cap(seconds)):
            raise WaitEndedError(httpx.ReadError(_CLOSED, request=self._request))
        self._check()


class _LoopClock(_RequestClock):
    """A clock that suspends the request in an event loop."""

    async def next_block(self) -> None:
        """Produce a block, and wait as long as it takes in real time."""
        await self.sleep(self._produce_block())

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run."""
        await asyncio.sleep(self._cap(seconds))
        self._check()


def open_local(world: str | World, *, size: int | None = None, seed: int = 0) -> Local:
    """Open a world, by its name or as it is, and a transport to it."""
    if isinstance(world, World):
        if size is not None or seed:
            msg = "size and seed are for a world's name, not for an open world"
            raise InvalidRequestError(msg, field="seed" if seed else "size")
        return Local(world)
    if not isinstance(world, str):
        raise InvalidRequestError.refuse("world", world, "a world's name, or a World")
    return Local(open_world(world, size=size, seed=seed), name=world)


def open_fork(read: Callable[[str, Any], Any], network: str, block_hash: str) -> Local:
    """Open a world that continues a network from a block, and a transport to it."""
    return Local(ForkedWorld(read, network, block_hash), name=f"fork of {network}")


def run_unsigned(world: World, signer_id: str, receiver_id: str, actions: Sequence[Action]) -> str:
    """Run a transaction of any account until all is executed; return its hash."""
    return _run(world, lambda: world.submit_unsigned(signer_id, receiver_id, actions))


def run_signed(world: World, signed: SignedTransaction) -> str:
    """Run a signed transaction until all is executed; return its hash."""

    def submit() -> SignedTransaction:
        world.submit(signed)
        return signed

    return _run(world, submit)


def _run(world: World, submit: Callable[[], SignedTransaction]) -> str:
    """Submit a transaction and run it; raise the client's errors."""
    try:
        with world.lock:
            signed = submit()
            world.settle()
    except SourceError as error:
        raise error.error from None
    except InvalidTransactionError as error:
        raise chain_errors.invalid_transaction(error.error) from None
    return str(signed.hash)


class _QueryParams(msgspec.Struct):
    """The parameters of a query that name its account."""

    request_type: str = ""
    account_id: str | None = None


class _Query(msgspec.Struct):
    """The part of a JSON-RPC request that names its account."""

    params: _QueryParams


def _account_of(call: Call[Any]) -> str | None:
    """Return the account that a call reads; None if it reads none."""
    if call.body is None:
        match = _ACCOUNT_PATH.match(call.path)
        return None if match is None else unquote(match[1])
    try:
        params = json_decoding.decode(call.body, _Query).params
    except msgspec.DecodeError:  # a method without such parameters
        return None
    return params.account_id if params.request_type in _ACCOUNT_QUERIES else None


def _local_request(request: httpx.Request) -> HttpRequest:
    """Convert a request of httpx."""
    target: bytes = request.extensions.get("target") or request.url.raw_path
    path, _, query = target.decode("ascii").partition("?")
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1")
        for name, value in request.headers.raw
    }
    return HttpRequest(request.method, path, query, headers, request.content)


def _httpx_response(response: HttpResponse, request: httpx.Request) -> httpx.Response:
    """Convert a response, or raise as a lost connection does."""
    if response.dropped:
        raise httpx.RemoteProtocolError(_DROPPED, request=request)
    truncated = response.truncated is not None
    stream = _TruncatedBody(response.sent_body) if truncated else httpx.ByteStream(response.body)
    return httpx.Response(response.status, headers=list(response.headers), stream=stream)


class _TruncatedBody(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that ends too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __iter__(self) -> Iterator[bytes]:
        yield self._data
        raise httpx.RemoteProtocolError(_TRUNCATED)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data
        raise httpx.RemoteProtocolError(_TRUNCATED)
