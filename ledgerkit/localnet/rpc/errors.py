"""How a call fails: the error's members, and the HTTP status that goes with it."""

from __future__ import annotations

from typing import Any

from ledgerkit.localnet.execution_errors import LocalnetError

Object = dict[str, Any]

_VALIDATION = "REQUEST_VALIDATION_ERROR"
OK, BAD_REQUEST, TIMEOUT, UNPROCESSABLE = 200, 400, 408, 422


class RpcError(LocalnetError):
    """
    A call that ends in an error.

    Parameters
    ----------
    error
        What stands under `error` in the answer.
    status
        The HTTP status.
    """

    def __init__(self, error: Object, status: int) -> None:
        super().__init__(error, status)
        self.error, self.status = error, status


class ParseError(RpcError):
    """
    Params that the method does not understand, or a body that is no call.

    Parameters
    ----------
    message
        Why, in the node's words.
    """

    def __init__(self, message: str) -> None:
        cause = {"name": "PARSE_ERROR", "info": {"error_message": message}}
        shown = _error(_VALIDATION, cause, -32700, "Parse error", message)
        super().__init__(shown, BAD_REQUEST)
        self.message = message


class MethodNotFoundError(RpcError):
    """
    There is no such method.

    Parameters
    ----------
    method_name
        Which one was called.
    """

    def __init__(self, method_name: str) -> None:
        cause = {"name": "METHOD_NOT_FOUND", "info": {"method_name": method_name}}
        shown = _error(_VALIDATION, cause, -32601, "Method not found", method_name)
        super().__init__(shown, BAD_REQUEST)


class HandlerError(RpcError):
    """
    A call that was understood and can't be answered.

    Parameters
    ----------
    cause
        The name of the reason.
    data
        The reason, as older nodes tell it.
    info
        What goes with the reason; None if nothing ever does.
    status
        The HTTP status.
    told
        What `query` tells in a result in place of this error; None if it tells the error.
    """

    def __init__(
        self,
        cause: str,
        data: object,
        info: Object | None = None,
        *,
        status: int = OK,
        told: str | None = None,
    ) -> None:
        named: Object = {"name": cause}
        if info is not None:
            named["info"] = info
        super().__init__(_error("HANDLER_ERROR", named, -32000, "Server error", data), status)
        self.info, self.told = info, told


def _error(name: str, cause: Object, code: int, message: str, data: object) -> Object:
    """Write an error, in the form of today and the one before it."""
    return {"name": name, "cause": cause, "code": code, "message": message, "data": data}
