"""A request that was not sent yet, and how its answer is read: bytes in, typed value out."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from ledgerkit import errors
from ledgerkit.api import chain_errors
from ledgerkit.api.models.chain import Envelope, QueryFailure

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.errors import LedgerError

T = TypeVar("T")

_HTTP_ERROR = 400
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_making = Lock()
# Bytes that are no UTF-8, and nesting without end, are a malformed document too.
MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Response:
    """What came back: a status, a body, and how long the server asks to wait."""

    body: bytes
    status: int = 200
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """
    One request, described: pure, hashable by its `key`, sent by nobody yet.

    `read` turns an answer into its typed value or raises; `keep` tells whether
    an answer can never change; `repeatable` whether asking twice is harmless.
    `kind` is what such an answer is called where it outlives the session; empty: it does not.
    """

    surface: Literal["rpc", "api"]
    asked: str
    read: Callable[[Response], T] = field(repr=False)
    path: str = ""
    body: bytes | None = field(default=None, repr=False)
    keep: Callable[[T], bool] | None = field(default=None, repr=False)
    kind: Literal["", "block", "chunk", "transaction", "read", "metadata"] = ""
    repeatable: bool = True

    @property
    def key(self) -> tuple[str, bytes | None]:
        """What makes two calls the same question."""
        return self.path, self.body


def rpc(
    method: str,
    params: Any,
    result: Any,
    *,
    asked: str,
    keep: Callable[[Any], bool] | None = None,
    repeatable: bool = True,
) -> Call[Any]:
    """
    Describe a JSON-RPC call.

    Parameters
    ----------
    method
        The method's name.
    params
        Its parameters, an object or an array.
    result
        The type its `result` is decoded into.
    asked
        What is asked, in a few words, for errors.
    keep
        Whether an answer can never change.
    repeatable
        Whether asking twice is harmless.

    Returns
    -------
    call
        The call.

    Notes
    -----
    Source: POST / of the JSON-RPC endpoint.
    """
    request = {"jsonrpc": "2.0", "id": "ledgerkit", "method": method, "params": params}
    return Call(
        surface="rpc",
        asked=asked,
        read=lambda answer: read_rpc(answer, result, asked),
        body=msgspec.json.encode(request),
        keep=keep,
        repeatable=repeatable,
    )


def get(path: str, result: Any, *, asked: str) -> Call[Any]:
    """
    Describe a call of the indexed REST API.

    Parameters
    ----------
    path
        The path below the API's address, quoted.
    result
        The type its body is decoded into.
    asked
        What is asked, in a few words, for errors.

    Returns
    -------
    call
        The call.

    Notes
    -----
    Source: GET of the indexed REST API.
    """
    return Call(
        surface="api", asked=asked, read=lambda answer: read_api(answer, result, asked), path=path
    )


def read_rpc(answer: Response, result: Any, asked: str) -> Any:
    """
    Read a JSON-RPC answer; the body is believed before the status.

    Parameters
    ----------
    answer
        What came back.
    result
        The type of its `result`.
    asked
        What was asked.

    Returns
    -------
    value
        The decoded result.

    Raises
    ------
    LedgerError
        The typed error of the answer, or `DecodeError` where it is not as documented.
    """
    try:
        envelope = decoder(Envelope[result]).decode(answer.body)
    except MALFORMED as error:
        problem = error
    else:
        if envelope.error is not msgspec.UNSET and bytes(envelope.error) != b"null":
            raise _told(envelope.error, answer, asked)
        if envelope.result is not msgspec.UNSET and not _failed_inside(envelope.result):
            return envelope.result
        problem = msgspec.DecodeError("neither result nor error")
    raise _unreadable(answer, asked, problem)


def read_api(answer: Response, result: Any, asked: str) -> Any:
    """
    Read an answer of the REST API.

    Parameters
    ----------
    answer
        What came back.
    result
        The type of its body.
    asked
        What was asked.

    Returns
    -------
    value
        The decoded body.

    Raises
    ------
    LedgerError
        The typed error of the status, or `DecodeError` where the body is not as documented.
    """
    if answer.status >= _HTTP_ERROR:
        raise _from_status(answer, asked)
    try:
        return decoder(result).decode(answer.body)
    except MALFORMED as error:
        problem = error
    raise not_as_documented(asked, problem)


def read_saved(call: Call[T], body: bytes) -> T:
    """
    Read a saved answer: a whole JSON-RPC answer, its bare result, or a REST body.

    Parameters
    ----------
    call
        The call that would have fetched it.
    body
        The saved bytes.

    Returns
    -------
    value
        The decoded value.

    Raises
    ------
    LedgerError
        As for a live answer.
    """
    if call.surface == "rpc" and not _is_envelope(body):
        body = b'{"jsonrpc":"2.0","result":' + body + b"}"
    return call.read(Response(body))


def not_as_documented(asked: str, problem: Exception) -> errors.DecodeError:
    """
    Say where in an answer a value is not what was documented.

    Parameters
    ----------
    asked
        What was asked.
    problem
        The decoder's complaint.

    Returns
    -------
    error
        Names what was asked and the path in the document.
    """
    what, _, path = str(problem).partition(" - at `")
    path = path.rstrip("`") or "$"
    sentence = f"the answer to {asked} is not as documented: {what} at {path}"
    return errors.DecodeError(sentence, asked=asked, path=path)


class _Member(msgspec.Struct):
    """The members that tell a whole JSON-RPC answer from a bare result."""

    jsonrpc: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def _is_envelope(body: bytes) -> bool:
    """Tell a whole JSON-RPC answer from a bare result."""
    try:
        found = decoder(_Member).decode(body)
    except MALFORMED:
        return True  # not an object: let the reader say what is wrong
    marked = found.jsonrpc is not msgspec.UNSET or found.id is not msgspec.UNSET
    told = found.result is not msgspec.UNSET or found.error is not msgspec.UNSET
    return marked and told


def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """
    Give the decoder of a type, which is made once, and by one thread at a time.

    A type is taken apart when it is first decoded. Where two threads met at that, msgspec
    0.22 read what was not written yet, and the process died.

    Parameters
    ----------
    kind
        The type.

    Returns
    -------
    decoder
        Any thread may use it.
    """
    found = _decoders.get(kind)
    if found is None:
        with _making:
            found = _decoders.get(kind)
            if found is None:
                found = _decoders[kind] = msgspec.json.Decoder(kind)
    return found


def _unreadable(answer: Response, asked: str, problem: Exception) -> Exception:
    """Find out why a body could not be read as the wanted answer."""
    failure = _query_failure(answer.body)
    if failure is not None:
        return chain_errors.from_query_text(
            failure.error,
            asked=asked,
            block_height=failure.block_height,
            block_hash=failure.block_hash,
        )
    return status_first(answer, asked, not_as_documented(asked, problem))


def _told(error: msgspec.Raw, answer: Response, asked: str) -> LedgerError:
    """Read the error of an answer; the pause a host asks for stands in its header."""
    told = msgspec.json.decode(error)
    if answer.status >= _HTTP_ERROR and not isinstance(told, dict):
        return _from_status(answer, asked)  # {"error": "some text"}, by what stands before the node
    failure = chain_errors.from_rpc(told, asked=asked)
    if isinstance(failure, errors.RateLimitedError | errors.TransportError):
        failure.retry_after = answer.retry_after
    return failure


def status_first(answer: Response, asked: str, problem: LedgerError) -> LedgerError:
    """
    Prefer what a failing status means to a body that could not be read.

    Parameters
    ----------
    answer
        What came back.
    asked
        What was asked.
    problem
        Why the body could not be read.

    Returns
    -------
    error
        To be raised by the caller.
    """
    return _from_status(answer, asked) if answer.status >= _HTTP_ERROR else problem


def _failed_inside(result: Any) -> bool:
    """Tell the failure that `query` sends as a result, where the result is kept as JSON."""
    return isinstance(result, dict) and "error" in result and "block_hash" in result


def _query_failure(body: bytes) -> QueryFailure | None:
    """Find the failure that `query` sends as a result, if this is one."""
    try:
        result = decoder(Envelope[QueryFailure]).decode(body).result
    except MALFORMED:
        return None
    return result if isinstance(result, QueryFailure) else None


def _from_status(answer: Response, asked: str) -> LedgerError:
    """Read a plain HTTP failure."""
    return errors.from_status(
        answer.status,
        answer.body.decode("utf-8", "replace"),
        asked=asked,
        retry_after=answer.retry_after,
    )
