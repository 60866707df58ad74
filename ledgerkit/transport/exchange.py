"""The interface of transports: exchanges of a request for a response, and waits between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit._version import __version__
from ledgerkit.api import matching
from ledgerkit.api.calls import Call, Response, Surface
from ledgerkit.errors import InvalidRequestError, LedgerError, TransportError
from ledgerkit.transport.retry import parse_retry_after

if TYPE_CHECKING:
    from ledgerkit.transport.networks import Network

ACCEPTED_ENCODING = "gzip"  # `zlib` unpacks it in steps, and it has one form; "deflate" has two
HEADERS = {  # sent with every request to a host
    "accept": "application/json",
    "accept-encoding": ACCEPTED_ENCODING,
    "user-agent": f"ledgerkit/{__version__}",
}
_OTHERS_S = 0.05  # seconds in which requests sent together are noted, too
HTTPX_TRANSPORT = "an httpx.BaseTransport or httpx.AsyncBaseTransport"


class Exchange(NamedTuple):
    """
    An exchange: its call, the surface to send it to, and its timeout in seconds.

    `call_id` is the id of a JSON-RPC call. `needs_new_connection` is True after the response to
    another request came in over a shared one.
    """

    call: Call[Any]
    surface: Surface
    timeout_s: float
    call_id: str | None = None
    needs_new_connection: bool = False

    @property
    def body(self) -> bytes | None:
        body = self.call.body
        if body is None or self.call_id is None:
            return body
        return matching.replace_placeholder(body, self.call_id)


class Transport(ABC):
    """
    The transport of a ledger's calls: to hosts, to the embedded ledger, or from a recording.

    With `in_process` its coroutines never suspend, and run in the caller's thread. With
    `is_recording` responses come from a file, and waits take no time.
    """

    in_process = False
    is_recording = False

    @abstractmethod
    async def exchange(self, exchange: Exchange) -> Response | LedgerError:
        """Make an exchange; a failure is returned without cause, context and traceback."""

    def wait(self, seconds: float) -> float:
        """Begin a wait; return the seconds that it takes: none in a recording."""
        return seconds

    async def aclose(self) -> None:  # noqa: B027 - most have nothing open
        """Close what is open."""


class DryRun(Transport):
    """A transport that notes calls and sends none."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.calls: list[Call[Any]] = []

    async def exchange(self, exchange: Exchange) -> LedgerError:
        """Note a call; return an error that is not retried."""
        import asyncio

        request = exchange.call.request
        try:
            self._network.required_address(exchange.surface, request)
        except InvalidRequestError as error:
            return error
        self.calls.append(exchange.call)
        await asyncio.sleep(_OTHERS_S)
        return TransportError(f"{request} was not sent", request=request, retryable=False)


class RawRequest(NamedTuple):
    """
    A GET, or a POST if there is a body, and the limits of its response.

    `headers` are sent in addition to `HEADERS`, and `request` describes it in errors. The response
    has at most `max_bytes`, as sent and unpacked, until `deadline`, a time of time.monotonic().
    """

    surface: Surface
    url: str
    headers: dict[str, str]
    body: bytes | None
    request: str
    max_bytes: int
    deadline: float
    needs_new_connection: bool = False

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"


def http_response(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    give_up: Callable[[], Awaitable[None]] | None = None,
) -> Response:
    pause = parse_retry_after(headers.get("retry-after"))
    return Response(body, status, pause, give_up, location=headers.get("location"))


class Connections(ABC):
    """Connections over the network, to a caller's transport, or to the embedded ledger."""

    in_process = False

    @abstractmethod
    async def send(self, request: RawRequest) -> Response:
        """Send a request, and return its response; raise TimeoutError after its deadline."""

    async def aclose(self) -> None:  # noqa: B027 - as in `Transport`
        """Close what is open."""


class Source(ABC):
    """The embedded ledger, which replaces the hosts of a ledger."""

    @abstractmethod
    def open(self, sleep: Callable[[float], None]) -> Connections:
        """Open connections for one ledger; `sleep` raises as soon as the ledger is closed."""

    @abstractmethod
    def produce_block(self) -> bool:
        """Produce a block if none comes by itself; return False otherwise."""


class NoConnectionError(ConnectionError):
    """The host could not be connected to, so nothing was sent."""


def timeout_error(request: str, host: str, seconds: float) -> TransportError:
    """Build the error of a request without a response in time; with 0 seconds it was not sent."""
    begin = f"the request to {host} for {request} failed"
    if not seconds:
        return TransportError(f"{begin}: no time was left", request=request)
    sentence = f"{begin}: no answer within {seconds:.3g} s"
    return TransportError(sentence, request=request, reason=f"{host}: no answer in time")
