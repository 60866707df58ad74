"""
The services besides the node and the REST API, computed from the blocks of a world.

Each service has its own prefix, as in `/transactions/v0/account`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

from ledgerkit.localnet.http_messages import HttpRequest, HttpResponse, json_response, text_response
from ledgerkit.localnet.services import key_values, transactions_api, transfers_api
from ledgerkit.localnet.services.requests import RefusedError

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

    # A world, the method, the path below the prefix and the body of a request; None: no such path.
    Respond = Callable[[World, str, str, bytes], dict[str, Any] | None]

Service = Literal["transactions", "transfers", "blocks", "kv"]

_MAX_BODY_BYTES = 2 * 2**20
_BY_NAME: dict[str, Service] = {service: service for service in get_args(Service)}

# The gateway calls the block documents itself, because they may wait for a block.
_RESPOND: dict[Service, Respond] = {
    "transactions": transactions_api.respond,
    "transfers": transfers_api.respond,
    "kv": key_values.respond,
}


def service_of(path: str) -> Service | None:
    begin, *names = path.split("/", 2)
    return _BY_NAME.get(names[0]) if not begin and len(names) > 1 else None


def respond(service: Service, world: World, request: HttpRequest) -> HttpResponse:
    """Answer a request of a service, whose path has the prefix."""
    # Source: actix-web 4, JsonPayloadError and its default limit of 2 MiB.
    if request.method == "POST" and not request.has_json:
        return text_response("Content type error", 400)
    if len(request.body) > _MAX_BODY_BYTES:
        text = f"JSON payload ({len(request.body)} bytes) is larger than allowed"
        return text_response(f"{text} (limit: {_MAX_BODY_BYTES} bytes).", 413)
    path = request.path.removeprefix(f"/{service}")
    try:
        result = _RESPOND[service](world, request.method, path, request.body)
    except RefusedError as refused:
        return refused.response
    return HttpResponse(404) if result is None else json_response(result)
