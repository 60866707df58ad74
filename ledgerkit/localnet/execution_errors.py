"""How transactions, receipts and view calls fail, in the words of the wire."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any] | str


def variant(name: str, payload: dict[str, Any] | None = None) -> Json:
    """Write an error as the node does: a bare word, or an object of one member."""
    return name if payload is None else {name: payload}


class LocalnetError(Exception):
    """Anything the embedded ledger refuses."""


class UndecodableError(LocalnetError):
    """
    Bytes that are no transaction this node knows.

    Parameters
    ----------
    message
        What is wrong with them.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidTransactionError(LocalnetError):
    """
    A transaction that no block takes.

    Parameters
    ----------
    error
        The `InvalidTxError`, as JSON.
    """

    def __init__(self, error: Json) -> None:
        super().__init__(error)
        self.error = error


class ActionError(LocalnetError):
    """
    An action that fails, and its receipt with it.

    Parameters
    ----------
    kind
        The `ActionErrorKind`, as JSON.
    index
        Which action; None for what concerns the whole receipt.
    """

    def __init__(self, kind: Json, index: int | None = None) -> None:
        super().__init__(kind, index)
        self.kind, self.index = kind, index


class CallError(LocalnetError):
    """A call that its contract or the machine stopped; `logs` is what a view said before."""

    logs: tuple[str, ...] = ()

    @property
    def failure(self) -> Json:
        """The `FunctionCallError` of a receipt."""
        raise NotImplementedError

    @property
    def view_message(self) -> str:
        """The same as views tell it, without what stands before it there."""
        raise NotImplementedError


class PanicError(CallError):
    """
    A contract gave up.

    Parameters
    ----------
    message
        Why.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def failure(self) -> Json:
        """The `FunctionCallError` of a receipt."""
        return {"ExecutionError": f"Smart contract panicked: {self.message}"}

    @property
    def view_message(self) -> str:
        """The same as views tell it."""
        return f"HostError(GuestPanic {{ panic_msg: {rust_text(self.message)} }})"


class HostError(CallError):
    """
    The machine stopped a call.

    Parameters
    ----------
    text
        What a receipt's `ExecutionError` reads.
    view_message
        What a view tells.
    """

    def __init__(self, text: str, view_message: str) -> None:
        super().__init__(text, view_message)
        self.text, self._view_message = text, view_message

    @property
    def failure(self) -> Json:
        """The `FunctionCallError` of a receipt."""
        return {"ExecutionError": self.text}

    @property
    def view_message(self) -> str:
        """The same as views tell it."""
        return f"HostError({self._view_message})"


class MethodError(CallError):
    """
    There is no such method.

    Parameters
    ----------
    name
        A `MethodResolveError`.
    """

    def __init__(self, name: str = "MethodNotFound") -> None:
        super().__init__(name)
        self.name = name

    @property
    def failure(self) -> Json:
        """The `FunctionCallError` of a receipt."""
        return {"MethodResolveError": self.name}

    @property
    def view_message(self) -> str:
        """The same as views tell it."""
        return f"MethodResolveError({self.name})"


class CodeError(CallError):
    """
    There is no code, or none that runs.

    Parameters
    ----------
    account_id
        Whose code is missing; None if there is some that can't be prepared.
    """

    def __init__(self, account_id: str | None) -> None:
        super().__init__(account_id)
        self.account_id = account_id

    @property
    def failure(self) -> Json:
        """The `FunctionCallError` of a receipt."""
        if self.account_id is None:
            return {"CompilationError": {"PrepareError": "Deserialization"}}
        return {"CompilationError": {"CodeDoesNotExist": {"account_id": str(self.account_id)}}}

    @property
    def view_message(self) -> str:
        """The same as views tell it."""
        if self.account_id is None:
            return "CompilationError(PrepareError(Deserialization))"
        missing = f"CodeDoesNotExist {{ account_id: {rust_text(self.account_id)} }}"
        return f"CompilationError({missing})"


def prohibited_in_view(method_name: str) -> HostError:
    """Refuse in a view what only a transaction may do."""
    return HostError(
        f"{method_name} is not allowed in view calls",
        f"ProhibitedInView {{ method_name: {rust_text(method_name)} }}",
    )


def rust_text(text: str) -> str:
    """Quote a text as the node's debug output does."""
    quoted = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
    return '"' + "".join(quoted.get(char, char) for char in text) + '"'
