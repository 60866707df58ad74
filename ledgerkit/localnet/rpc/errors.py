"""The errors of JSON-RPC requests: their members and HTTP status."""

from __future__ import annotations

from typing import Any

from ledgerkit.localnet.execution_errors import LocalnetError

Object = dict[str, Any]

_VALIDATION = "REQUEST_VALIDATION_ERROR"
OK, BAD_REQUEST, TIMEOUT, UNPROCESSABLE, SERVER_ERROR = 200, 400, 408, 422, 500


class RpcError(LocalnetError):
    """An error response: its member `error`, and its HTTP status."""

    def __init__(self, error: Object, status: int) -> None:
        super().__init__(error, status)
        self.error, self.status = error, status


class ParseError(RpcError):
    """Params that the method cannot parse, or a body that is not a JSON-RPC request."""

    def __init__(self, message: str) -> None:
        cause = {"name": "PARSE_ERROR", "info": {"error_message": message}}
        error = _error_object(_VALIDATION, cause, -32700, "Parse error", message)
        super().__init__(error, BAD_REQUEST)
        self.message = message


class MethodNotFoundError(RpcError):
    """A method that the node does not have."""

    def __init__(self, method_name: str) -> None:
        cause = {"name": "METHOD_NOT_FOUND", "info": {"method_name": method_name}}
        error = _error_object(_VALIDATION, cause, -32601, "Method not found", method_name)
        super().__init__(error, BAD_REQUEST)


class HandlerError(RpcError):
    """A valid request that the node cannot answer."""

    def __init__(
        self,
        cause: str,  # such as UNKNOWN_BLOCK
        data: object,  # the message, in the member that older clients read
        info: Object | None = None,  # the details, if the cause has any
        *,
        status: int = OK,  # the HTTP status
        query_message: str | None = None,  # `query` returns it as a result, without an error
    ) -> None:
        cause_object: Object = {"name": cause}
        if info is not None:
            cause_object["info"] = info
        error = _error_object("HANDLER_ERROR", cause_object, -32000, "Server error", data)
        super().__init__(error, status)
        self.info, self.query_message = info, query_message


class InternalError(RpcError):
    """A request that the node fails to fulfil."""

    def __init__(self, message: str, data: object = None) -> None:
        cause = {"name": "INTERNAL_ERROR", "info": {"error_message": message}}
        error = _error_object("INTERNAL_ERROR", cause, -32000, "Server error", data or cause)
        super().__init__(error, SERVER_ERROR)


def _error_object(name: str, cause: Object, code: int, message: str, data: object) -> Object:
    return {"name": name, "cause": cause, "code": code, "message": message, "data": data}
