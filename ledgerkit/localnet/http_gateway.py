"""
The door of the embedded ledger: one HTTP request in, one answer out, whoever carries them.

Answering is a generator, so that waiting needs no thread: it yields the seconds to sleep,
or None where it goes on when another block may have come.
"""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Generator, Mapping
from contextlib import closing
from http.client import responses
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl

import msgspec
from msgspec import Raw, Struct, structs

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import rest_api, rpc_api
from ledgerkit.localnet.faults import HEADER, Fault, Faults

if TYPE_CHECKING:
    from ledgerkit.localnet.http_messages import Reply
    from ledgerkit.localnet.world import World

MOST_BODY = 10 * 2**20

Surface = Literal["rpc", "rest", "node"]
_ALLOWED: dict[Surface, tuple[str, ...]] = {
    "rpc": ("POST",),
    "rest": ("GET", "HEAD"),
    "node": ("GET", "HEAD"),
}
_BY_KEY = (401, 402, 403)  # what stands before both surfaces refuses so
_LIMITED = 429
_BROKEN = 500
_NODE_PAGES = ("/status", "/health", "/metrics")
_API = "/api"
_CORS = (
    ("access-control-allow-origin", "*"),
    ("access-control-expose-headers", "retry-after"),
)
_JSON_TYPE = re.compile(r"application/(?:json|[\w.-]+\+json)\s*(?:;|$)", re.IGNORECASE)
_HEADER_NAMES = re.compile(r"[\w!#$%&'*+.^`|~-]+(?:\s*,\s*[\w!#$%&'*+.^`|~-]+)*")
_PAGE = "<!DOCTYPE html><html><head><title>{0}</title></head><body><h1>{0}</h1></body></html>\n"
_LOG = logging.getLogger("ledgerkit.localnet")


class Request(Struct, frozen=True):
    """What came; the path still percent-encoded, the names of headers in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        """Leave out the headers and the query, which may hold a key."""
        return f"<Request {self.method} {self.path}>"


class Answer(Struct, frozen=True):
    """
    What goes back.

    Parameters
    ----------
    status
        The HTTP status.
    headers
        Names in lower case, the length of the whole body among them.
    body
        The body.
    dropped
        Whether the connection is closed without an answer.
    truncated
        How many bytes of the body are sent before the connection is closed; None is all.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    dropped: bool = False
    truncated: int | None = None

    @property
    def sent(self) -> bytes:
        """What is really sent of the body."""
        return self.body[: self.truncated]


Steps = Generator[float | None, None, Answer]


class Gateway:
    """
    Both surfaces of one world, as one HTTP host.

    Parameters
    ----------
    world
        Whose answers they are.
    faults
        What is to go wrong.
    """

    def __init__(self, world: World, faults: Faults | None = None) -> None:
        self.world = world
        self.faults = Faults() if faults is None else faults

    def answer(self, request: Request) -> Steps:
        """
        Answer one request, step by step.

        Parameters
        ----------
        request
            The request.

        Returns
        -------
        steps
            Yields what to wait for; returns the answer.
        """
        answer = yield from self._answer(request)
        length = ("content-length", str(len(answer.body)))
        body = b"" if request.method == "HEAD" else answer.body
        return structs.replace(answer, headers=(*answer.headers, length, *_CORS), body=body)

    def _answer(self, request: Request) -> Steps:
        """Find who answers, and what goes wrong."""
        if request.method == "OPTIONS":
            return _preflight(request)
        surface = surface_of(request.path)
        if surface is None:
            return Answer(404, (), b"")
        if request.method not in _ALLOWED[surface]:
            return Answer(405, (("allow", ", ".join((*_ALLOWED[surface], "OPTIONS"))),), b"")
        try:
            fault = self.faults.pick(request.headers.get(HEADER))
        except InvalidRequestError as error:
            return _text(400, str(error))
        if fault is None:
            return (yield from self._ask(surface, request))
        return (yield from self._fail(fault, surface, request))

    def _fail(self, fault: Fault, surface: Surface, request: Request) -> Steps:
        """Answer late, wrongly, in part, or not at all."""
        with self.world.lock:
            fault.stumble(self.world)
        if fault.latency:
            yield fault.latency
        if fault.drop == "before":
            return Answer(503, (), b"", dropped=True)
        if fault.replaces:
            return _failure(fault, surface, request.body)
        answer = yield from self._ask(surface, request)
        return structs.replace(answer, dropped=fault.drop == "after", truncated=fault.truncate)

    def _ask(self, surface: Surface, request: Request) -> Steps:
        """Let a surface answer whoever may ask."""
        if not self._admits(request):
            return _unauthorized(surface, request)
        if surface == "rpc":
            return (yield from self._rpc(request))
        return self._page(surface, request.path)

    def _admits(self, request: Request) -> bool:
        """Compare the keys that came with those that are demanded, each in constant time."""
        wanted = self.world.settings.api_keys
        if not wanted:
            return True
        offered = [key.encode() for key in _keys_of(request)]
        found = [hmac.compare_digest(key, one.encode()) for one in wanted for key in offered]
        return True in found

    def _rpc(self, request: Request) -> Steps:
        """Call a method; the lock is free while it waits for a block."""
        if not _JSON_TYPE.match(request.headers.get("content-type", "")):
            return _text(415, "Expected request with `Content-Type: application/json`")
        if len(request.body) > MOST_BODY:
            return _text(413, "Failed to buffer the request body: length limit exceeded")
        with closing(rpc_api.respond(self.world, request.body)) as steps:
            try:
                while True:
                    with self.world.lock:
                        next(steps)
                    yield None
            except StopIteration as end:
                return _told(end.value)
            except Exception:  # noqa: BLE001 - whatever it is, the next request is answered
                _LOG.exception("a JSON-RPC call could not be answered")
                return _internal_error(request.body)

    def _page(self, surface: Surface, path: str) -> Answer:
        """Read a path of the REST API, or one of the node's own pages."""
        try:
            with self.world.lock:
                if surface == "rest":
                    return _told(rest_api.respond(self.world, path.removeprefix(_API) or "/"))
                reply = rpc_api.node_page(self.world, path)
                return Answer(404, (), b"") if reply is None else _told(reply)
        except Exception:  # noqa: BLE001 - as above
            _LOG.exception("a page could not be read")
            return _json(500, "Internal server error")


def surface_of(path: str) -> Surface | None:
    """Tell whose a path is; None where there is nothing."""
    if path in ("", "/"):
        return "rpc"
    if path == _API or path.startswith((f"{_API}/", "/v0/", "/v1/")):
        return "rest"
    return "node" if path in _NODE_PAGES else None


def _keys_of(request: Request) -> list[str]:
    """Find the keys a request carries, in its header and in its query."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    found = [value for name, value in parse_qsl(request.query) if name == "apiKey"][-1:]
    return [key.strip(), *found] if scheme.lower() == "bearer" else found


# Answers that no surface gives ------------------------------------------------------------


def _told(reply: Reply) -> Answer:
    """Carry what a surface replied."""
    return Answer(reply.status, (("content-type", reply.content_type),), reply.body)


def _json(status: int, value: Any, *headers: tuple[str, str]) -> Answer:
    """Answer with JSON."""
    return Answer(
        status, (("content-type", "application/json"), *headers), msgspec.json.encode(value)
    )


def _text(status: int, text: str, *headers: tuple[str, str]) -> Answer:
    """Answer with plain text."""
    kind = ("content-type", "text/plain; charset=utf-8")
    return Answer(status, (kind, *headers), text.encode())


def _preflight(request: Request) -> Answer:
    """Tell a browser that it may ask, with whatever headers it wants to send."""
    wanted = request.headers.get("access-control-request-headers", "")
    names = wanted if _HEADER_NAMES.fullmatch(wanted) else "authorization, content-type"
    headers = (
        ("access-control-allow-methods", "GET, HEAD, POST, OPTIONS"),
        ("access-control-allow-headers", names),
        ("access-control-max-age", "600"),
    )
    return Answer(200, headers, b"")


def _unauthorized(surface: Surface, request: Request) -> Answer:
    """Ask for a key, without showing the one that came."""
    text = "Unauthorized: this ledger demands an API key, and the request carries no valid one"
    if request.path == "/metrics":
        return _text(403, text)
    return _refusal(401, text, surface, ("www-authenticate", "Bearer"))


def _refusal(status: int, text: str, surface: Surface, *headers: tuple[str, str]) -> Answer:
    """Refuse before anything is looked at."""
    return (_json if surface == "rest" else _text)(status, text, *headers)


def _limited(text: str, surface: Surface, body: bytes, *headers: tuple[str, str]) -> Answer:
    """Ask for fewer requests; to a call in its own form."""
    if surface != "rpc":
        return _refusal(_LIMITED, text, surface, *headers)
    error = {"code": -_LIMITED, "message": text}
    return _json(_LIMITED, {"jsonrpc": "2.0", "error": error, "id": _id_of(body)}, *headers)


def _internal_error(body: bytes) -> Answer:
    """Own up to a mistake of the node's, in its words."""
    text = "the embedded ledger failed to answer; its log tells why"
    error = {
        "name": "INTERNAL_ERROR",
        "cause": {"name": "INTERNAL_ERROR", "info": {"error_message": text}},
        "code": -32000,
        "message": "Server error",
        "data": text,
    }
    return _json(500, {"jsonrpc": "2.0", "error": error, "id": _id_of(body)})


def _failure(fault: Fault, surface: Surface, body: bytes) -> Answer:
    """Put a failure in the answer's place, as hosts and what stands before them do."""
    status = 502 if fault.status is None else fault.status
    phrase = responses.get(status, "Failure")
    pause = () if fault.retry_after is None else (("retry-after", fault.retry_after),)
    if fault.html:
        page = _PAGE.format(f"{status} {phrase}").encode()
        return Answer(status, (("content-type", "text/html; charset=utf-8"), *pause), page)
    if status in _BY_KEY:
        return _refusal(status, phrase, surface, *pause)
    if status == _LIMITED:
        return _limited(phrase, surface, body, *pause)
    if status == _BROKEN:
        failed = _internal_error(body) if surface == "rpc" else _json(500, "Internal server error")
        return structs.replace(failed, headers=(*failed.headers, *pause))
    return _text(status, phrase, *pause)


class _Call(Struct):
    """As much of a JSON-RPC call as an answer repeats."""

    id: Raw = Raw(b"null")


def _id_of(body: bytes) -> Raw:
    """Find the id of a call, null where there is none to be found."""
    try:
        return msgspec.json.decode(body, type=_Call).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Raw(b"null")
