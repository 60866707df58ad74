"""Requests before they are sent, and how responses are decoded: bytes in, typed values out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, get_args

import msgspec

from ledgerkit import errors, json_decoding, validation
from ledgerkit.api import chain_errors, matching
from ledgerkit.api.models.chain import Envelope, QueryFailure
from ledgerkit.api.models.other_kinds import decode_with_other_kinds

if TYPE_CHECKING:
    from ledgerkit.errors import LedgerError

T = TypeVar("T")
NodeSurface = Literal["rpc", "archival_rpc"]
RestSurface = Literal["api", "transactions", "transfers", "blocks", "kv"]
Surface = Literal[NodeSurface, RestSurface]
Kind = Literal["", "block", "chunk", "transaction", "read", "metadata"]

_HTTP_ERROR = 400
_NODE_SURFACES = get_args(NodeSurface)


class Response(NamedTuple):
    """
    An HTTP response: body, status, and the pause that the host requests.

    `give_up` closes the connection that it was received on. `is_saved` is True for a response from
    a file, which may belong to any request. `location` is the target of a redirect.
    """

    body: bytes
    status: int = 200
    retry_after: float | None = None
    give_up: Callable[[], Awaitable[None]] | None = None
    is_saved: bool = False
    location: str | None = None


# It is not frozen, because each request would take 2 us longer.
@dataclass(slots=True, kw_only=True, eq=False)
class Call(Generic[T]):
    """
    A request that is not sent yet; calls with the same `key` are the same request.

    `request` describes the request in a few words, for errors. `read` decodes a response or
    raises. `keep` returns True for a response that never changes. The disk cache stores it under
    `kind`, or not at all if `kind` is empty. `parts` splits the value of a response to several
    requests into single calls and the bodies to cache for them. `repeatable` is True if the request
    may be sent twice. `url` is the address of another host of the same service, or empty for the
    host of the surface. `newer` is the call by the newer name of its method, for the hosts that
    have it.
    """

    surface: Surface
    request: str
    read: Callable[[Response], T] = field(repr=False)
    path: str = ""
    body: bytes | None = field(default=None, repr=False)
    keep: Callable[[T], bool] | None = field(default=None, repr=False)
    kind: Kind = ""
    parts: Callable[[T], Iterable[tuple[Call[Any], bytes]]] | None = field(default=None, repr=False)
    repeatable: bool = True
    url: str = ""
    newer: Call[T] | None = field(default=None, repr=False)

    @property
    def key(self) -> tuple[str, bytes | None]:
        """The path and body, which identify the request."""
        return self.path, self.body

    @property
    def is_rpc(self) -> bool:
        """True for a JSON-RPC call, which is sent with a unique id."""
        return self.surface in _NODE_SURFACES


def rpc(
    method: str,
    params: Any,
    result: Any,
    *,
    request: str,
    read: Callable[[Response], Any] | None = None,
    expected: matching.Expected | None = None,
    keep: Callable[[Any], bool] | None = None,
    kind: Kind = "",
    repeatable: bool = True,
    surface: Surface = "rpc",
) -> Call[Any]:
    """
    Build a JSON-RPC call; `keep`, `kind` and `repeatable` are those of `Call`.

    `read` decodes the response if the type `result` is not enough. `expected` are further members
    that repeat the request, in addition to those of `matching`.
    """
    raw = msgspec.Raw(validation.json_bytes(params, "params"))
    document = {"jsonrpc": "2.0", "id": matching.PLACEHOLDER, "method": method, "params": raw}
    members = {**matching.expected_of_params(method, params), **(expected or {})}
    read = read or (lambda response: read_rpc(response, result, request))
    return Call(
        surface=surface,
        request=request,
        read=partial(_read_checked, read, members, request, params=params),
        body=msgspec.json.encode(document),
        keep=keep,
        kind=kind,
        repeatable=repeatable,
    )


def get(
    path: str,
    result: Any,
    *,
    request: str,
    read: Callable[[Response], Any] | None = None,
    expected: matching.Expected | None = None,
    surface: Surface = "api",
) -> Call[Any]:
    """
    Build a call of a REST service; `path` is percent-encoded, below the service's address.

    `read` and `expected` as in `rpc`.
    """
    members = matching.expected_of_path(path) if surface == "api" else expected or {}
    read = read or (lambda response: read_api(response, result, request))
    checked = partial(_read_checked, read, members, request, is_rest=True)
    return Call(surface=surface, request=request, read=checked, path=path)


# Bound by `partial`: closures would add ten objects per call for the garbage collector.
def _read_checked(
    read: Callable[[Response], T],
    expected: matching.Expected,
    request: str,
    response: Response,
    *,
    params: Any = None,
    is_rest: bool = False,
) -> T:
    try:
        value = read(response)
    except errors.LedgerError as error:
        if not response.is_saved:
            matching.check_members(error, expected, request)
            if isinstance(error, errors.UnknownBlockError) and error.block is None:
                chain_errors.name_block(error, params)
            if is_rest and isinstance(error, errors.DecodeError):
                matching.check_document(response.body, expected, request)
        raise
    if not response.is_saved:
        matching.check_members(value, expected, request)
    return value


def post(
    surface: Surface,
    path: str,
    body: dict[str, Any],
    result: Any,
    *,
    request: str,
    read: Callable[[Response], Any] | None = None,
    expected: matching.Expected | None = None,
) -> Call[Any]:
    """Build a call of a REST service that sends a JSON object; `read` as in `rpc`."""
    call = get(path, result, request=request, read=read, expected=expected, surface=surface)
    return replace(call, body=validation.json_bytes(body, "body"))


def read_rpc(response: Response, result: Any, request: str) -> Any:
    """Decode the result of a JSON-RPC response, or raise its typed error."""
    # The body comes before the status: nodes send errors with HTTP 200, and results with 4xx.
    try:
        envelope = decode_with_other_kinds(json_decoding.decoder(Envelope[result]), response.body)
    except msgspec.DecodeError as error:
        decode_error = error
    else:
        if envelope.error is not msgspec.UNSET and bytes(envelope.error) != b"null":
            raise _rpc_error(envelope.error, response, request)
        if envelope.result is not msgspec.UNSET and not _is_query_failure(envelope.result):
            return envelope.result
        decode_error = msgspec.DecodeError("neither result nor error")
    raise _undecodable(response, request, decode_error)


def read_api(response: Response, result: Any, request: str) -> Any:
    """Decode the body of a REST response, or raise the typed error of its status."""
    check_status(response, request)
    try:
        return json_decoding.decode(response.body, result)
    except msgspec.DecodeError as error:
        decode_error = error
    raise not_as_documented(request, decode_error)


def check_status(response: Response, request: str) -> None:
    """Raise the typed error of a REST response's status, if the status is an error."""
    if response.status >= _HTTP_ERROR:
        raise _status_error(response, request)


def read_saved(call: Call[T], body: bytes) -> T:
    """Decode a saved response: a whole JSON-RPC response, its bare result, or a REST body."""
    if call.surface == "rpc" and not _is_envelope(body):
        body = b'{"jsonrpc":"2.0","result":' + body + b"}"
    return call.read(Response(body, is_saved=True))


def not_as_documented(request: str, decode_error: Exception) -> errors.DecodeError:
    """Build the error for an undecodable response, with the path in the document."""
    return errors.not_as_documented(f"the response to {request}", decode_error, request=request)


def _is_envelope(body: bytes) -> bool:
    try:
        names = json_decoding.decode(body, dict[str, msgspec.Raw]).keys()
    except msgspec.DecodeError:
        return True  # not an object: the decoder reports the problem
    return not (names.isdisjoint(("jsonrpc", "id")) or names.isdisjoint(("result", "error")))


def _undecodable(response: Response, request: str, decode_error: Exception) -> Exception:
    try:
        failure = json_decoding.decode(response.body, Envelope[QueryFailure]).result
    except msgspec.DecodeError:
        failure = msgspec.UNSET
    if isinstance(failure, QueryFailure):
        return chain_errors.from_query_text(
            failure.error,
            request=request,
            block_height=failure.block_height,
            block_hash=failure.block_hash,
        )
    return prefer_status_error(response, request, not_as_documented(request, decode_error))


def _rpc_error(error: msgspec.Raw, response: Response, request: str) -> LedgerError:
    try:
        member = json_decoding.decode(error)
    except msgspec.DecodeError as problem:
        return prefer_status_error(response, request, not_as_documented(request, problem))
    if response.status >= _HTTP_ERROR and not isinstance(member, dict):
        # A gateway in front of the node wrote {"error": "text"}: only the status is reliable.
        return _status_error(response, request)
    typed_error = chain_errors.from_rpc(member, request=request)
    if isinstance(typed_error, errors.RateLimitedError | errors.TransportError):
        typed_error.retry_after = response.retry_after
    return typed_error


def prefer_status_error(response: Response, request: str, decode_error: LedgerError) -> LedgerError:
    """Return the error of a failing status; otherwise the decode error."""
    return _status_error(response, request) if response.status >= _HTTP_ERROR else decode_error


def _is_query_failure(result: Any) -> bool:
    """Return True for a failure that `query` sends as a result, if it is decoded JSON."""
    return isinstance(result, dict) and "error" in result and "block_hash" in result


def _status_error(response: Response, request: str) -> LedgerError:
    return errors.from_status(
        response.status,
        response.body.decode("utf-8", "replace"),
        request=request,
        retry_after=response.retry_after,
    )
