"""The embedded ledger as transports of httpx, for any client of that library."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

import httpx

from ledgerkit.localnet.clock import WaitEndedError
from ledgerkit.localnet.forking import SourceError
from ledgerkit.localnet.http_gateway import Gateway
from ledgerkit.transport.background_loop import drive
from ledgerkit.transport.embedded import DROPPED, TRUNCATED, CallerClock, local_request
from tests.loopback import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from ledgerkit.localnet.clock import Clock
    from ledgerkit.localnet.faults import Faults
    from ledgerkit.localnet.world import World
    from tests.loopback import Handler


class _ToWorld:
    """The gateway to a world, for both transports."""

    def __init__(self, world: World, faults: Faults | None = None) -> None:
        self.gateway = Gateway(world, faults)
        self.world, self.faults = world, self.gateway.faults

    async def _respond(self, request: httpx.Request, clock: Clock) -> httpx.Response:
        """Compute a response, or raise as a lost connection does."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        sent = local_request(request.method, str(request.url), headers, request.content)
        try:
            response = await self.gateway.answer(sent, clock)
        except SourceError as error:
            raise error.error from None
        except WaitEndedError:
            msg = "The read operation timed out"
            raise httpx.ReadTimeout(msg, request=request) from None
        if response.dropped:
            raise httpx.RemoteProtocolError(DROPPED, request=request)
        is_whole = response.truncated is None
        stream = httpx.ByteStream(response.body) if is_whole else _CutBody(response.sent_body)
        return httpx.Response(response.status, headers=list(response.headers), stream=stream)


class LocalTransport(_ToWorld, httpx.BaseTransport):
    """A transport to a world, in the caller's thread."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        clock = CallerClock(self.world, _deadline(request), time.sleep)
        return drive(self._respond(request, clock))


def responding(way: LocalTransport) -> Handler:
    """Return the handler of a server that responds as a world does."""

    def handler(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        request = httpx.Request(method, f"http://localhost{path}", headers=headers, content=body)
        response = way.handle_request(request)
        kind = {"content-type": response.headers.get("content-type", "application/json")}
        return Reply(response.status_code, response.read(), kind)

    return handler


class AsyncLocalTransport(_ToWorld, httpx.AsyncBaseTransport):
    """A transport to a world; other tasks run while a request waits."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return await self._respond(request, _LoopClock(self.world, _deadline(request)))


class _LoopClock(CallerClock):
    """A clock that suspends the request in an event loop."""

    def __init__(self, world: World, deadline: float) -> None:
        super().__init__(world, deadline, time.sleep)

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run; give the request up at its deadline."""
        remaining_s = self._deadline - time.monotonic()
        await asyncio.sleep(max(0.0, min(seconds, remaining_s)))
        if seconds > remaining_s:
            raise WaitEndedError(TimeoutError())


def _deadline(request: httpx.Request) -> float:
    """Return when a request is given up, in time.monotonic()."""
    seconds = request.extensions.get("timeout", {}).get("read")
    return math.inf if seconds is None else time.monotonic() + float(seconds)


class _CutBody(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that ends too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __iter__(self) -> Iterator[bytes]:
        yield self._data
        raise httpx.RemoteProtocolError(TRUNCATED)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data
        raise httpx.RemoteProtocolError(TRUNCATED)
