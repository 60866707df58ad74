"""
Errors of transactions, receipts and view calls, with the JSON and the texts of nearcore.

A transaction's `InvalidTxError` and a receipt's `ActionError` are JSON values; a contract call
that fails has two forms, one for receipts and one, Rust's debug output, for view calls.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any] | str


def variant(name: str, payload: dict[str, Any] | None = None) -> Json:
    """Build the JSON of a Rust enum's variant: its name, or an object with one member."""
    return name if payload is None else {name: payload}


class LocalnetError(Exception):
    """Base of the embedded ledger's errors."""


class InvalidTransactionError(LocalnetError):
    """A transaction that cannot be included in a block."""

    def __init__(self, error: Json) -> None:
        super().__init__(error)
        self.error = error


class ActionError(LocalnetError):
    """A failed action, with which its whole receipt fails."""

    def __init__(self, kind: Json) -> None:
        super().__init__(kind)
        self.kind = kind
        self.index: int | None = None  # the action's position; None: the whole receipt failed


class CallError(LocalnetError):
    """A failed contract call: the `FunctionCallError` of a receipt, and the text for view calls."""

    def __init__(self, text: str, failure: Json, view_message: str) -> None:
        super().__init__(text)
        self.text, self.failure = text, failure
        self.view_message = view_message  # Rust's debug output
        self.logs: tuple[str, ...] = ()  # a view call's logs before it failed


class PanicError(CallError):
    """A panic of a contract."""

    def __init__(self, message: str) -> None:
        failure = {"ExecutionError": f"Smart contract panicked: {message}"}
        view_message = f"HostError({rust_struct('GuestPanic', panic_msg=message)})"
        super().__init__(message, failure, view_message)


class HostError(CallError):
    """A call that a host function stopped, by nearcore's variant of `HostError`."""

    def __init__(self, text: str, name: str, **members: int | str) -> None:
        message = f"HostError({rust_struct(name, **members)})"
        super().__init__(text, {"ExecutionError": text}, message)


class MethodError(CallError):
    """A call of a method that the contract does not have, by nearcore's `MethodResolveError`."""

    def __init__(self, name: str = "MethodNotFound") -> None:
        super().__init__(name, {"MethodResolveError": name}, f"MethodResolveError({name})")


class CodeError(CallError):
    """A call of an account without code."""

    def __init__(self, account_id: str) -> None:
        failure = {"CompilationError": {"CodeDoesNotExist": {"account_id": str(account_id)}}}
        reason = rust_struct("CodeDoesNotExist", account_id=account_id)
        super().__init__(account_id, failure, f"CompilationError({reason})")


class PrepareError(CallError):
    """A call of code that is not a module, or beyond a limit, by nearcore's `PrepareError`."""

    def __init__(self, reason: str) -> None:
        failure = {"CompilationError": {"PrepareError": reason}}
        super().__init__(reason, failure, f"CompilationError(PrepareError({reason}))")


class LinkError(CallError):
    """A call of a module whose imports are not host functions."""

    def __init__(self, message: str) -> None:
        failure = {"ExecutionError": f"Link Error: {message}"}
        super().__init__(message, failure, rust_struct("LinkError", msg=message))


class TrapError(CallError):
    """A call that an instruction stopped, by nearcore's `WasmTrap`."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text, {"ExecutionError": f"WebAssembly trap: {text}"}, f"WasmTrap({name})")


class UnavailableError(CallError):
    """A call of a module without the library that runs modules."""

    def __init__(self, message: str) -> None:
        super().__init__(message, {"ExecutionError": message}, message)


def rust_struct(name: str, **members: int | str) -> str:
    """Write a variant with its members as Rust's debug output does."""
    parts = [
        f"{key}: {_rust_text(value) if isinstance(value, str) else value}"
        for key, value in members.items()
    ]
    return f"{name} {{ {', '.join(parts)} }}" if parts else name


def _rust_text(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
    return '"' + "".join(escapes.get(char, char) for char in text) + '"'
