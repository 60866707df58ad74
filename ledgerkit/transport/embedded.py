"""The embedded ledger behind httpx: transports that answer in process, without a socket."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httpx
import msgspec

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.faults import Faults
from ledgerkit.localnet.http_gateway import Gateway
from ledgerkit.localnet.http_messages import HttpRequest, HttpResponse
from ledgerkit.localnet.settings import SECOND_NS
from ledgerkit.localnet.world import World
from ledgerkit.localnet.worlds import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from ledgerkit.api.calls import Call

__all__ = ["AsyncLocal", "Faults", "Local", "World", "open_local"]

_LOST = "Server disconnected without sending a response."
_CUT = "peer closed connection without sending complete message body"
_ACCOUNT_PATH = re.compile(r"/v\d/account/([^/]+)/")
_ACCOUNT_QUERIES = {"view_account", "view_access_key", "view_access_key_list"}


class _Way:
    """What both transports share: a gateway, and how time passes while one waits."""

    def __init__(self, world: World, faults: Faults | None = None, *, name: str = "") -> None:
        self.gateway = Gateway(world, faults)
        self.name = name

    @property
    def world(self) -> World:
        """Whose answers they are."""
        return self.gateway.world

    @property
    def faults(self) -> Faults:
        """What is to go wrong."""
        return self.gateway.faults

    @property
    def liquid_tokens(self) -> tuple[str, ...]:
        """The world's tokens of liquid stake."""
        told = self.world.summary.contracts.get("liquid", ())
        return (told,) if isinstance(told, str) else tuple(told)

    def strangers(self, calls: Iterable[Call[Any]]) -> list[str]:
        """
        Find the accounts that are asked about and that the world does not hold.

        Parameters
        ----------
        calls
            What is asked.

        Returns
        -------
        account_ids
            Each once, in the order of the calls.
        """
        with self.world.lock:
            state = self.world.state()
            subjects = dict.fromkeys(map(_subject, calls))
            return [one for one in subjects if one is not None and state.account(one) is None]

    def _pass_time(self) -> float:
        """Make a block; gives the seconds it takes where time is real."""
        world = self.world
        with world.lock:
            world.advance()
        return world.settings.block_time_ns / SECOND_NS if world.settings.real_time else 0.0


class Local(_Way, httpx.BaseTransport):
    """
    A synchronous transport.

    Parameters
    ----------
    world
        Whose answers they are. Blocks come while a request waits for one.
    faults
        What is to go wrong.
    name
        What the world is called.
    """

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer."""
        request.read()
        patience = _Patience(request)
        with closing(self.gateway.answer(_taken(request))) as steps:
            try:
                while True:
                    pause = next(steps)
                    time.sleep(patience.take(self._pass_time() if pause is None else pause))
                    patience.check()
            except StopIteration as end:
                return _response(end.value, request)


class AsyncLocal(_Way, httpx.AsyncBaseTransport):
    """
    An asynchronous transport.

    Parameters
    ----------
    world
        Whose answers they are. Blocks come while a request waits for one.
    faults
        What is to go wrong.
    name
        What the world is called.
    """

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer."""
        await request.aread()
        patience = _Patience(request)
        with closing(self.gateway.answer(_taken(request))) as steps:
            try:
                while True:
                    pause = next(steps)
                    seconds = self._pass_time() if pause is None else pause
                    await asyncio.sleep(patience.take(seconds))
                    patience.check()
            except StopIteration as end:
                return _response(end.value, request)


def open_local(world: str | World, *, size: int | None = None, seed: int = 0) -> Local:
    """
    Open a world, and a way to it.

    Parameters
    ----------
    world
        A name, or a world that is open.
    size, seed
        For a name: how large, and which of the possible ones.

    Returns
    -------
    transport
        The way to it.

    Raises
    ------
    InvalidRequestError
        If there is no such world.
    """
    if isinstance(world, World):
        if size is not None or seed:
            rule = "left out where the world is open already"
            raise InvalidRequestError.refuse("size" if seed == 0 else "seed", size or seed, rule)
        return Local(world)
    if not isinstance(world, str):
        rule = "the name of a world, or a World"
        raise InvalidRequestError.refuse("world", world, rule)
    return Local(open_world(world, size=size, seed=seed), name=world)


class _Asked(msgspec.Struct):
    """Whose state or keys a query is about."""

    request_type: str = ""
    account_id: str | None = None


class _Query(msgspec.Struct):
    """As much of a JSON-RPC call as tells that."""

    params: _Asked


def _subject(call: Call[Any]) -> str | None:
    """Find the account that a call is about, if it is about one."""
    if call.body is None:
        found = _ACCOUNT_PATH.match(call.path)
        return None if found is None else unquote(found[1])
    try:
        asked = msgspec.json.decode(call.body, type=_Query).params
    except msgspec.DecodeError:  # no query's parameters
        return None
    return asked.account_id if asked.request_type in _ACCOUNT_QUERIES else None


def _taken(request: httpx.Request) -> HttpRequest:
    """Translate a request."""
    path, _, query = request.url.raw_path.decode("ascii").partition("?")
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1")
        for name, value in request.headers.raw
    }
    return HttpRequest(request.method, path, query, headers, request.content)


class _Patience:
    """How long a client still waits for its answer."""

    def __init__(self, request: httpx.Request) -> None:
        self._request = request
        limit = request.extensions.get("timeout", {}).get("read")
        self._left = float("inf") if limit is None else float(limit)

    def take(self, seconds: float) -> float:
        """Take from it; gives how long it lasts of these seconds."""
        left, self._left = self._left, self._left - seconds
        return min(seconds, left)

    def check(self) -> None:
        """Give up where the client does."""
        if self._left < 0:
            msg = "The read operation timed out"
            raise httpx.ReadTimeout(msg, request=self._request)


def _response(answer: HttpResponse, request: httpx.Request) -> httpx.Response:
    """Translate an answer, or lose it as a connection does."""
    if answer.dropped:
        raise httpx.RemoteProtocolError(_LOST, request=request)
    stream = httpx.ByteStream(answer.body) if answer.truncated is None else _Cut(answer.sent_body)
    return httpx.Response(answer.status, headers=list(answer.headers), stream=stream)


class _Cut(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that ends too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __iter__(self) -> Iterator[bytes]:
        yield self._data
        raise httpx.RemoteProtocolError(_CUT)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data
        raise httpx.RemoteProtocolError(_CUT)
