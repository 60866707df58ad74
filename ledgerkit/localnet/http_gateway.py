"""
The HTTP gateway of the embedded ledger: one request in, one response out.

A coroutine computes a response and waits with the given clock only. So a waiting request needs no
thread in an event loop, and no loop elsewhere.
"""

from __future__ import annotations

import logging
import traceback
from http.client import responses
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qsl

from msgspec import structs

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import rest_api, rpc_api, services
from ledgerkit.localnet.clock import UnansweredError
from ledgerkit.localnet.faults import HEADER, Fault, Faults
from ledgerkit.localnet.http_messages import HttpResponse, json_response, text_response
from ledgerkit.localnet.rpc import node
from ledgerkit.localnet.services import block_documents
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    from ledgerkit.localnet.clock import Clock
    from ledgerkit.localnet.http_messages import Header, HttpRequest
    from ledgerkit.localnet.world import World

Surface = Literal["rpc", "rest", "node"] | services.Service

_READING = ("GET", "HEAD")
_METHODS: dict[Surface, tuple[str, ...]] = {  # surfaces that are not for reading only
    "rpc": ("POST",),
    "transactions": ("POST",),
    "transfers": ("POST",),
    "kv": (*_READING, "POST"),
}
_API = "/api"
_PROXY_ERRORS = (401, 402, 403, 429)  # in the REST API's form
_NO_KEY = "Unauthorized: this ledger requires an API key, and the request has no valid one"
_HTML = "<!DOCTYPE html><html><head><title>{0}</title></head><body><h1>{0}</h1></body></html>\n"
_LOG = logging.getLogger("ledgerkit.localnet")


class Gateway:
    """The JSON-RPC, REST API, node's pages and services of one world, as one HTTP host."""

    def __init__(self, world: World, faults: Faults | None = None) -> None:
        self.world = world
        self.faults = Faults() if faults is None else faults

    async def answer(self, request: HttpRequest, clock: Clock) -> HttpResponse:
        """Compute a response; raises UnansweredError of the clock or of a fork."""
        surface = _surface_of(request.path)
        if surface is None:
            return HttpResponse(404)
        methods = _METHODS.get(surface, _READING)
        if request.method not in methods:
            return HttpResponse(405, (("allow", ", ".join((*methods, "OPTIONS"))),))
        try:
            return await self._respond(surface, request, clock)
        except UnansweredError:
            raise
        except Exception:  # noqa: BLE001 - the server must survive and answer the next request
            text = escape_invisible(traceback.format_exc(), keep="\n")  # may repeat the request
            _LOG.error("a request could not be answered\n%s", text)
            return _failure(500, surface, request.body)

    async def _respond(self, surface: Surface, request: HttpRequest, clock: Clock) -> HttpResponse:
        try:
            fault = self.faults.pick(request.headers.get(HEADER))
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
        world = self.world
        if surface == "rpc":
            refusal = rpc_api.refuse_body(request)
            return refusal or await rpc_api.respond(world, request.body, clock)
        if surface == "blocks":
            return await block_documents.respond(world, request, clock)
        if world.lags or (surface != "node" and world.index_lags):
            await clock.next_block()  # so that polling final blocks advances the chain
        with world.lock:
            if surface == "rest":
                return rest_api.respond(world, request.path.removeprefix(_API) or "/")
            if surface == "node":
                return node.PAGES[request.path](world)
            return services.respond(surface, world, request)

    def _refuse_key(self, surface: Surface, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal of a request without a required API key, or None."""
        required = self.world.settings.api_keys
        # Sets compare hashes, so the time does not reveal how many characters of a key are right.
        if not required or not {*required}.isdisjoint(_api_keys(request)):
            return None
        if request.path == "/metrics":
            return text_response(_NO_KEY, 403)
        header = ("www-authenticate", "Bearer")
        return _failure(401, surface, request.body, header, text=_NO_KEY)


def _surface_of(path: str) -> Surface | None:
    service = services.service_of(path)
    if service is not None:
        return service
    if path in ("", "/"):
        return "rpc"
    if path == _API or path.startswith((f"{_API}/", "/v0/", "/v1/")):
        return "rest"
    return "node" if path in node.PAGES else None


def _api_keys(request: HttpRequest) -> list[str]:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    query_keys = [value for name, value in parse_qsl(request.query) if name == "apiKey"][-1:]
    return [key.strip(), *query_keys] if scheme.lower() == "bearer" else query_keys


def _fault_response(fault: Fault, surface: Surface, body: bytes) -> HttpResponse:
    status = fault.status or 502
    headers = (("retry-after", fault.retry_after),) if fault.retry_after is not None else ()
    if not fault.html:
        return _failure(status, surface, body, *headers)
    html = _HTML.format(f"{status} {responses.get(status, 'Failure')}")
    return text_response(html, status, *headers, kind="html")


def _failure(
    status: int, surface: Surface, body: bytes, *headers: Header, text: str = ""
) -> HttpResponse:
    """Build a failure in the form of the real hosts and of the proxies in front of them."""
    text = text or responses.get(status, "Failure")
    if surface == "rpc" and status in rpc_api.FAILURES:
        return rpc_api.failure(body, status, text, *headers)
    if status == 500:  # noqa: PLR2004 - in the words of the REST API and the services
        return json_response("Internal server error", status, *headers)
    build = json_response if surface == "rest" and status in _PROXY_ERRORS else text_response
    return build(text, status, *headers)
