"""
The JSON-RPC of the embedded ledger: the body of a call in, a response out.

The methods are in `ledgerkit.localnet.rpc`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ledgerkit import json_decoding
from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.http_messages import json_response, text_response
from ledgerkit.localnet.rpc import errors, methods

if TYPE_CHECKING:
    from ledgerkit.localnet.clock import Clock
    from ledgerkit.localnet.http_messages import Header, HttpRequest, HttpResponse
    from ledgerkit.localnet.world import World

MAX_BODY_BYTES = 10 * 2**20
FAILURES = (429, errors.SERVER_ERROR)  # that have the form of JSON-RPC

_NULL = msgspec.Raw(b"null")
_FAILED = "the embedded ledger failed to answer; its log has the reason"
_NOT_A_CALL = "JSON RPC Request format was expected"  # nearcore, chain/jsonrpc/src/lib.rs


class _CallId(msgspec.Struct):
    """The id of a JSON-RPC call, as it was written."""

    id: msgspec.Raw = _NULL


class _RpcCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON-RPC call; its id is not decoded."""

    jsonrpc: Literal["2.0"]
    method: str
    params: Any = None
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def refuse_body(request: HttpRequest) -> HttpResponse | None:
    """Refuse a body of another media type or that is too large; None accepts it."""
    if not request.has_json:
        return text_response("Expected request with `Content-Type: application/json`", 415)
    if len(request.body) > MAX_BODY_BYTES:
        return text_response("Failed to buffer the request body: length limit exceeded", 413)
    return None


async def respond(world: World, body: bytes, clock: Clock) -> HttpResponse:
    """Answer the body of a call, which may wait for a block."""
    try:
        if not body.isascii():
            body.decode()  # msgspec does not check the UTF-8 of members that it skips
        call = json_decoding.decode(body, _RpcCall)
    except ValueError as error:  # not UTF-8, or not a call
        return _explain(body, str(error))
    if isinstance(call.id, msgspec.UnsetType):
        return _error_response(errors.ParseError(_NOT_A_CALL), _NULL)
    try:
        result = await methods.run(world, call.method, call.params, clock)
    except errors.RpcError as error:
        return _error_response(error, call.id)
    except InvalidRequestError as error:  # a library that the request needs is not installed
        return _error_response(errors.InternalError(str(error)), call.id)
    return json_response({"jsonrpc": "2.0", "result": result, "id": call.id})


def failure(body: bytes, status: int, text: str, *headers: Header) -> HttpResponse:
    """Build the failure of a call: an internal error, or that of a proxy before the node."""
    try:
        call_id = json_decoding.decode(body, _CallId).id
    except msgspec.DecodeError:
        call_id = _NULL
    error = {"code": -status, "message": text}
    if status == errors.SERVER_ERROR:
        error = errors.InternalError(_FAILED, _FAILED).error
    return json_response({"jsonrpc": "2.0", "error": error, "id": call_id}, status, *headers)


def _error_response(error: errors.RpcError, call_id: msgspec.Raw) -> HttpResponse:
    return json_response({"jsonrpc": "2.0", "error": error.error, "id": call_id}, error.status)


def _explain(body: bytes, error: str) -> HttpResponse:
    """Build the refusal of a body that is not a call: a batch, another JSON value, or no JSON."""
    # The texts of axum's extractor of JSON bodies.
    try:
        is_batch = isinstance(json_decoding.decode(body), list)
    except msgspec.DecodeError:
        return text_response(f"Failed to parse the request body as JSON: {error}", 400)
    if is_batch:
        return _error_response(errors.ParseError(_NOT_A_CALL), _NULL)
    reason = "data did not match any variant of untagged enum Message"
    return text_response(f"Failed to deserialize the JSON body into the target type: {reason}", 422)
