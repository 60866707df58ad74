"""
The HTTP gateway of the embedded ledger: one request in, one response out.

A response is computed by a coroutine that waits with the clock it is given, and with nothing else:
in an event loop a waiting request needs no thread, and elsewhere no loop.
"""

from __future__ import annotations

import hmac
import logging
import traceback
from http.client import responses
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qsl

import msgspec
from msgspec import Raw, Struct, structs

from ledgerkit import json_decoding
from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import rest_api, rpc_api, services
from ledgerkit.localnet.clock import WaitEndedError
from ledgerkit.localnet.faults import HEADER, Fault, Faults
from ledgerkit.localnet.forking import SourceError
from ledgerkit.localnet.http_messages import HttpResponse, json_response, text_response
from ledgerkit.localnet.rpc import node
from ledgerkit.localnet.rpc.errors import InternalError
from ledgerkit.localnet.services import block_documents
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    from ledgerkit.localnet.clock import Clock
    from ledgerkit.localnet.http_messages import Header, HttpRequest
    from ledgerkit.localnet.world import World

MAX_BODY_BYTES = 10 * 2**20

Surface = Literal["rpc", "rest", "node"] | services.Service

_READING = ("GET", "HEAD")
_METHODS: dict[Surface, tuple[str, ...]] = {  # of the surfaces that are not only for reading
    "rpc": ("POST",),
    "transactions": ("POST",),
    "transfers": ("POST",),
    "kv": (*_READING, "POST"),
}
_API = "/api"
_INTERNAL_ERROR = 500
_RPC_ERRORS = (429, _INTERNAL_ERROR)  # in JSON-RPC's form
_PROXY_ERRORS = (401, 402, 403, 429)  # in the REST API's form
_NO_FAULT = Fault()
_NO_KEY = "Unauthorized: this ledger requires an API key, and the request has no valid one"
_FAILED = "the embedded ledger failed to answer; its log has the reason"
_PAGE = "<!DOCTYPE html><html><head><title>{0}</title></head><body><h1>{0}</h1></body></html>\n"
_LOG = logging.getLogger("ledgerkit.localnet")


class Gateway:
    """The JSON-RPC, REST API, node's pages and services of one world, as one HTTP host."""

    def __init__(self, world: World, faults: Faults | None = None) -> None:
        self.world = world
        self.faults = Faults() if faults is None else faults

    async def answer(self, request: HttpRequest, clock: Clock) -> HttpResponse:
        """Compute a response; raises WaitEndedError of the clock, and SourceError of a fork."""
        surface = surface_of(request.path)
        try:
            response = await self._respond(surface, request, clock)
        except (SourceError, WaitEndedError):
            raise
        except Exception:  # noqa: BLE001 - the server must survive and answer the next request
            text = escape_invisible(traceback.format_exc(), keep="\n")  # may repeat the request
            _LOG.error("a request could not be answered\n%s", text)
            response = _failure(_INTERNAL_ERROR, surface, request.body)
        length = ("content-length", str(len(response.body)))
        body = b"" if request.method == "HEAD" else response.body
        return structs.replace(response, headers=(*response.headers, length), body=body)

    async def _respond(
        self, surface: Surface | None, request: HttpRequest, clock: Clock
    ) -> HttpResponse:
        """Check the method, and inject a fault into the response."""
        if surface is None:
            return HttpResponse(404)
        methods = _METHODS.get(surface, _READING)
        if request.method not in methods:
            return HttpResponse(405, (("allow", ", ".join((*methods, "OPTIONS"))),))
        try:
            fault = self.faults.pick(request.headers.get(HEADER)) or _NO_FAULT
        except InvalidRequestError as error:
            return text_response(str(error), 400)
        with self.world.lock:
            fault.disturb_chain(self.world)
        if fault.latency:
            await clock.sleep(fault.latency)
        if fault.drop == "before":
            return HttpResponse(503, dropped=True)
        if fault.replaces_response:
            return _fault_response(fault, surface, request.body)
        refusal = self._refuse_key(surface, request)
        response = refusal or await self._read(surface, request, clock)
        return structs.replace(response, dropped=fault.drop == "after", truncated=fault.truncate)

    async def _read(self, surface: Surface, request: HttpRequest, clock: Clock) -> HttpResponse:
        world, path = self.world, request.path
        if surface == "rpc":
            return await _call_rpc(world, request, clock)
        if surface == "blocks":
            path = path.removeprefix(block_documents.PREFIX)
            return await block_documents.respond(world, path, request.query, clock)
        if world.lags or (surface != "node" and world.index_lags):
            await clock.next_block()  # these read final blocks: polling them advances the chain
        with world.lock:
            if surface == "rest":
                return rest_api.respond(world, path.removeprefix(_API) or "/")
            if surface == "node":
                return node.PAGES[path](world)
            return services.respond(surface, world, request)

    def _refuse_key(self, surface: Surface, request: HttpRequest) -> HttpResponse | None:
        """Refuse a request without a required API key; None accepts it."""
        required = self.world.settings.api_keys
        sent = [key.encode() for key in _api_keys(request)] if required else []
        # Each in constant time, and in a list: stopping at the first match would leak it by timing.
        matches = [hmac.compare_digest(key, each.encode()) for each in required for key in sent]
        if not required or True in matches:
            return None
        if request.path == "/metrics":
            return text_response(_NO_KEY, 403)
        header = ("www-authenticate", "Bearer")
        return _failure(401, surface, request.body, header, text=_NO_KEY)


async def _call_rpc(world: World, request: HttpRequest, clock: Clock) -> HttpResponse:
    if not request.has_json:
        return text_response("Expected request with `Content-Type: application/json`", 415)
    if len(request.body) > MAX_BODY_BYTES:
        return text_response("Failed to buffer the request body: length limit exceeded", 413)
    return await rpc_api.respond(world, request.body, clock)


def surface_of(path: str) -> Surface | None:
    """Return the surface that serves a path, or None."""
    service = services.service_of(path)
    if service is not None:
        return service
    if path in ("", "/"):
        return "rpc"
    if path == _API or path.startswith((f"{_API}/", "/v0/", "/v1/")):
        return "rest"
    return "node" if path in node.PAGES else None


def _api_keys(request: HttpRequest) -> list[str]:
    """List the API keys in a request's header and query."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    query_keys = [value for name, value in parse_qsl(request.query) if name == "apiKey"][-1:]
    return [key.strip(), *query_keys] if scheme.lower() == "bearer" else query_keys


def _fault_response(fault: Fault, surface: Surface, body: bytes) -> HttpResponse:
    """Build the failure that a fault sends in place of a response."""
    status = fault.status or 502
    headers = (("retry-after", fault.retry_after),) if fault.retry_after is not None else ()
    if not fault.html:
        return _failure(status, surface, body, *headers)
    page = _PAGE.format(f"{status} {responses.get(status, 'Failure')}").encode()
    return HttpResponse(status, (("content-type", "text/html; charset=utf-8"), *headers), page)


def _failure(
    status: int, surface: Surface | None, body: bytes, *headers: Header, text: str = ""
) -> HttpResponse:
    """Build a failure in the form of the real hosts and of the proxies in front of them."""
    text = text or responses.get(status, "Failure")
    if surface == "rpc" and status in _RPC_ERRORS:
        error = {"code": -status, "message": text}
        if status == _INTERNAL_ERROR:
            error = InternalError(_FAILED, _FAILED).error
        members = {"jsonrpc": "2.0", "error": error, "id": _call_id(body)}
        return json_response(members, status, *headers)
    if status == _INTERNAL_ERROR:
        return json_response("Internal server error", status, *headers)
    build = json_response if surface == "rest" and status in _PROXY_ERRORS else text_response
    return build(text, status, *headers)


class _CallId(Struct):
    """The id of a JSON-RPC call, as it was written."""

    id: Raw = Raw(b"null")


def _call_id(body: bytes) -> Raw:
    try:
        return json_decoding.decode(body, _CallId).id
    except msgspec.DecodeError:
        return Raw(b"null")
