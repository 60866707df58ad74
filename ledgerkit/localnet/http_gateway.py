"""
The HTTP gateway of the embedded ledger: one request in, one response out.

A response is computed by a coroutine that waits with the clock it is given, and with nothing else:
in an event loop a waiting request needs no thread, and elsewhere no loop.
"""

from __future__ import annotations

import hmac
import logging
import re
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
from ledgerkit.localnet.http_messages import (
    HttpResponse,
    json_response,
    text_response,
    with_length,
)
from ledgerkit.localnet.services import block_documents
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    from ledgerkit.localnet.clock import Clock
    from ledgerkit.localnet.http_messages import Header, HttpRequest
    from ledgerkit.localnet.world import World

MAX_BODY_BYTES = 10 * 2**20
_MAX_SERVICE_BODY_BYTES = 2 * 2**20

Surface = Literal["rpc", "rest", "node"] | services.Service

_METHODS: dict[Surface, tuple[str, ...]] = {
    "rpc": ("POST",),
    "rest": ("GET", "HEAD"),
    "node": ("GET", "HEAD"),
    "transactions": ("POST",),
    "transfers": ("POST",),
    "blocks": ("GET", "HEAD"),
    "kv": ("GET", "HEAD", "POST"),
}
_API_KEY_STATUSES = (401, 402, 403)  # sent by the proxy in front of the surfaces
_TOO_MANY_REQUESTS = 429
_INTERNAL_ERROR = 500
_NODE_PAGES = ("/status", "/health", "/metrics")
_API = "/api"
_JSON_TYPE = re.compile(r"application/(?:json|[\w.-]+\+json)\s*(?:;|$)", re.IGNORECASE)
_PAGE = "<!DOCTYPE html><html><head><title>{0}</title></head><body><h1>{0}</h1></body></html>\n"
_LOG = logging.getLogger("ledgerkit.localnet")


class Gateway:
    """The JSON-RPC, REST API, node's pages and services of one world, as one HTTP host."""

    def __init__(self, world: World, faults: Faults | None = None) -> None:
        self.world = world
        self.faults = Faults() if faults is None else faults

    async def answer(self, request: HttpRequest, clock: Clock) -> HttpResponse:
        """
        Compute the response to a request.

        Raises
        ------
        WaitEndedError
            If the clock gives the request up.
        SourceError
            If the world is a fork, and its network could not be read.
        """
        response = await self._respond(request, clock)
        response = with_length(response)
        return structs.replace(response, body=b"") if request.method == "HEAD" else response

    async def _respond(self, request: HttpRequest, clock: Clock) -> HttpResponse:
        """Route a request and pick its fault."""
        surface = surface_of(request.path)
        if surface is None:
            return HttpResponse(404)
        if request.method not in _METHODS[surface]:
            return HttpResponse(405, (("allow", ", ".join((*_METHODS[surface], "OPTIONS"))),))
        try:
            fault = self.faults.pick(request.headers.get(HEADER))
        except InvalidRequestError as error:
            return text_response(str(error), 400)
        if fault is None:
            return await self._dispatch(surface, request, clock)
        return await self._inject_fault(fault, surface, request, clock)

    async def _inject_fault(
        self, fault: Fault, surface: Surface, request: HttpRequest, clock: Clock
    ) -> HttpResponse:
        """Respond with a fault: late, with a failure, in part, or not at all."""
        with self.world.lock:
            fault.disturb_chain(self.world)
        if fault.latency:
            await clock.sleep(fault.latency)
        if fault.drop == "before":
            return HttpResponse(503, dropped=True)
        if fault.replaces_response:
            return _fault_response(fault, surface, request.body)
        response = await self._dispatch(surface, request, clock)
        return structs.replace(response, dropped=fault.drop == "after", truncated=fault.truncate)

    async def _dispatch(self, surface: Surface, request: HttpRequest, clock: Clock) -> HttpResponse:
        """Pass a request to its surface if its API key is accepted."""
        if not self._is_authorized(request):
            return _unauthorized_response(surface, request)
        try:
            return await self._read(surface, request, clock)
        except (SourceError, WaitEndedError):
            raise
        except Exception:  # noqa: BLE001 - the server must survive and answer the next request
            _log_traceback("a request could not be answered")
            return _internal_error(surface, request.body)

    async def _read(self, surface: Surface, request: HttpRequest, clock: Clock) -> HttpResponse:
        """Compute a surface's response."""
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
                return rpc_api.node_page(world, path) or HttpResponse(404)
            return _call_service(surface, world, request)

    def _is_authorized(self, request: HttpRequest) -> bool:
        """Compare the request's API keys with the required ones, each in constant time."""
        required = self.world.settings.api_keys
        if not required:
            return True
        sent = [key.encode() for key in _api_keys(request)]
        # A list, not a generator: stopping at the first match would leak it by timing.
        matches = [hmac.compare_digest(key, each.encode()) for each in required for key in sent]
        return True in matches


async def _call_rpc(world: World, request: HttpRequest, clock: Clock) -> HttpResponse:
    """Call a JSON-RPC method, which may wait for a block."""
    if not _JSON_TYPE.match(request.headers.get("content-type", "")):
        return text_response("Expected request with `Content-Type: application/json`", 415)
    if len(request.body) > MAX_BODY_BYTES:
        return text_response("Failed to buffer the request body: length limit exceeded", 413)
    return await rpc_api.respond(world, request.body, clock)


def _call_service(service: services.Service, world: World, request: HttpRequest) -> HttpResponse:
    """Call a service, whose framework refuses bodies that are not JSON or too large."""
    # Source: actix-web 4, JsonPayloadError and its default limit of 2 MiB.
    if request.method == "POST":
        if not _JSON_TYPE.match(request.headers.get("content-type", "")):
            return text_response("Content type error", 400)
        if len(request.body) > _MAX_SERVICE_BODY_BYTES:
            text = f"JSON payload ({len(request.body)} bytes) is larger than allowed"
            return text_response(f"{text} (limit: {_MAX_SERVICE_BODY_BYTES} bytes).", 413)
    return services.respond(service, world, request)


def _log_traceback(problem: str) -> None:
    """Log the current exception; its text may repeat what a client has sent."""
    _LOG.error("%s\n%s", problem, escape_invisible(traceback.format_exc(), keep="\n"))


def surface_of(path: str) -> Surface | None:
    """Return the surface that serves a path, or None."""
    service = services.service_of(path)
    if service is not None:
        return service
    if path in ("", "/"):
        return "rpc"
    if path == _API or path.startswith((f"{_API}/", "/v0/", "/v1/")):
        return "rest"
    return "node" if path in _NODE_PAGES else None


def _api_keys(request: HttpRequest) -> list[str]:
    """List the API keys in a request's header and query."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    query_keys = [value for name, value in parse_qsl(request.query) if name == "apiKey"][-1:]
    return [key.strip(), *query_keys] if scheme.lower() == "bearer" else query_keys


# Responses of the gateway itself -----------------------------------------------------------


def _unauthorized_response(surface: Surface, request: HttpRequest) -> HttpResponse:
    """Build the refusal of a request without a valid API key; it does not repeat the key."""
    text = "Unauthorized: this ledger requires an API key, and the request has no valid one"
    if request.path == "/metrics":
        return text_response(text, 403)
    return _refusal(401, text, surface, ("www-authenticate", "Bearer"))


def _refusal(status: int, text: str, surface: Surface, *headers: Header) -> HttpResponse:
    """Build a refusal in the surface's form."""
    build = json_response if surface == "rest" else text_response
    return build(text, status, *headers)


def _rate_limited(text: str, surface: Surface, body: bytes, *headers: Header) -> HttpResponse:
    """Build the response to an exceeded rate limit; a call gets a JSON-RPC error."""
    if surface != "rpc":
        return _refusal(_TOO_MANY_REQUESTS, text, surface, *headers)
    error = {"code": -_TOO_MANY_REQUESTS, "message": text}
    members = {"jsonrpc": "2.0", "error": error, "id": _call_id(body)}
    return json_response(members, _TOO_MANY_REQUESTS, *headers)


def _internal_error(surface: Surface, body: bytes) -> HttpResponse:
    """Build the response to a failure of the ledger itself; a call gets nearcore's error."""
    if surface != "rpc":
        return json_response("Internal server error", _INTERNAL_ERROR)
    text = "the embedded ledger failed to answer; its log has the reason"
    error = {
        "name": "INTERNAL_ERROR",
        "cause": {"name": "INTERNAL_ERROR", "info": {"error_message": text}},
        "code": -32000,
        "message": "Server error",
        "data": text,
    }
    return json_response({"jsonrpc": "2.0", "error": error, "id": _call_id(body)}, _INTERNAL_ERROR)


def _fault_response(fault: Fault, surface: Surface, body: bytes) -> HttpResponse:
    """Build the response of a fault in the form of the real hosts and their proxies."""
    status = 502 if fault.status is None else fault.status
    phrase = responses.get(status, "Failure")
    headers = () if fault.retry_after is None else (("retry-after", fault.retry_after),)
    if fault.html:
        page = _PAGE.format(f"{status} {phrase}").encode()
        return HttpResponse(status, (("content-type", "text/html; charset=utf-8"), *headers), page)
    if status in _API_KEY_STATUSES:
        return _refusal(status, phrase, surface, *headers)
    if status == _TOO_MANY_REQUESTS:
        return _rate_limited(phrase, surface, body, *headers)
    if status != _INTERNAL_ERROR:
        return text_response(phrase, status, *headers)
    response = _internal_error(surface, body)
    return structs.replace(response, headers=(*response.headers, *headers))


class _CallId(Struct):
    """The id of a JSON-RPC call, as it was written."""

    id: Raw = Raw(b"null")


def _call_id(body: bytes) -> Raw:
    """Decode the id of a JSON-RPC call; null if there is none."""
    try:
        return json_decoding.decode(body, _CallId).id
    except msgspec.DecodeError:
        return Raw(b"null")
