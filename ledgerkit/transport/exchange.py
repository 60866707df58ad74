"""What a transport does: one exchange of a request and its response; and the waits between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from ledgerkit._version import __version__
from ledgerkit.api import matching
from ledgerkit.errors import TransportError
from ledgerkit.transport.response_body import ACCEPTED_ENCODING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ledgerkit.api.calls import Call, Response, Surface
    from ledgerkit.errors import LedgerError
    from ledgerkit.transport.response_body import BodyLimits

HEADERS = {  # of every request to a host
    "accept": "application/json",
    "accept-encoding": ACCEPTED_ENCODING,
    "user-agent": f"ledgerkit/{__version__}",
}
HTTPX_TRANSPORT = "an httpx.BaseTransport or httpx.AsyncBaseTransport"


class Exchange(NamedTuple):
    """
    One exchange: its call, the surface to send it to, and its timeout in seconds.

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
        """The body to send, with the id of the call."""
        body = self.call.body
        if body is None or self.call_id is None:
            return body
        return matching.replace_placeholder(body, self.call_id)


class Transport(Protocol):
    """
    What answers the calls of a ledger: hosts, the embedded ledger, or a recording.

    With `in_process` its coroutines never suspend, and run in the caller's thread. With
    `is_recording` answers come from a file, and waits take no time.
    """

    in_process: bool
    is_recording: bool

    async def exchange(self, exchange: Exchange) -> Response | LedgerError:
        """Make an exchange; a failure is returned without cause, context and traceback."""

    def wait(self, seconds: float) -> float:
        """Begin a wait; return the seconds that it takes: none in a recording."""

    async def aclose(self) -> None:
        """Close what is open."""


class Source(ABC):
    """What answers a ledger in place of hosts, in this process."""

    kind: Literal["embedded", "recording", "dry run"]

    @abstractmethod
    def open(
        self, over_http: Callable[[Connections], Transport], sleep: Callable[[float], None]
    ) -> Transport:
        """
        Return a transport for one ledger.

        `over_http` returns one that sends HTTP over connections. `sleep` raises as soon as the
        ledger is closed.
        """


class RawRequest(NamedTuple):
    """
    A GET, or a POST if there is a body, and the limits of its response.

    `headers` are those beside `HEADERS`.
    """

    surface: Surface
    url: str
    headers: dict[str, str]
    body: bytes | None
    limits: BodyLimits
    needs_new_connection: bool = False


class RawResponse(NamedTuple):
    """
    The parts of a response that are used, with the body unpacked.

    `give_up` closes the connection that it was received on.
    """

    status: int
    retry_after: str | None
    body: bytes
    location: str | None = None
    give_up: Callable[[], Awaitable[None]] | None = None


class Connections(Protocol):
    """What HTTP requests are sent over: the network, a caller's transport, the embedded ledger."""

    in_process: bool

    async def send(self, request: RawRequest) -> RawResponse:
        """Send a request, and return its response; raise TimeoutError after its deadline."""

    async def aclose(self) -> None:
        """Close what is open."""


class NoConnectionError(ConnectionError):
    """The host could not be connected to, so nothing was sent."""


def timeout_error(request: str, host: str, seconds: float) -> TransportError:
    """Build the error of a request without a response in time; with 0 seconds it was not sent."""
    begin = f"the request to {host} for {request} failed"
    if not seconds:
        return TransportError(f"{begin}: no time was left", request=request)
    sentence = f"{begin}: no answer within {seconds:.3g} s"
    return TransportError(sentence, request=request, reason=f"{host}: no answer in time")
