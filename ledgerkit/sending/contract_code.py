"""The code of a contract: bytes, or a file of WebAssembly."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol import (
    AccountId,
    Action,
    CryptoHash,
    DeployContract,
    DeployGlobalContract,
    UseGlobalContract,
)
from ledgerkit.validation import one_of

_MAGIC = b"\0asm"
_MODES: dict[str, Literal["CodeHash", "AccountId"]] = {
    "hash": "CodeHash",
    "account_id": "AccountId",
}
_EXPECTED = (
    "the bytes of a compiled contract, a pathlib.Path to its .wasm file, or a published global "
    "contract: a CryptoHash or an AccountId of ledgerkit.protocol"
)


def deploy_action(code: Any, publish: str | None) -> Action:
    """Build the action that deploys code, publishes it, or uses what is published."""
    if publish is not None:
        one_of(publish, "publish", tuple(_MODES))
    if isinstance(code, CryptoHash | AccountId):
        if publish is not None:
            msg = "publish= needs code: this is a contract that is published already"
            raise InvalidRequestError(msg, field="publish", value=publish)
        return UseGlobalContract(code)
    data = read_code(code)
    return DeployContract(data) if publish is None else DeployGlobalContract(data, _MODES[publish])


def read_code(code: Any) -> bytes:
    """Return the bytes of a compiled contract, read from its file if it is a path."""
    if isinstance(code, PathLike):
        path = Path(code)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InvalidRequestError.refuse("code", path, f"a readable file ({error})") from None
    elif isinstance(code, bytes):
        data = code
    else:
        raise InvalidRequestError.refuse("code", code, _EXPECTED)
    if not data.startswith(_MAGIC):
        expected = "a module of WebAssembly, whose first bytes are \\0asm"
        raise InvalidRequestError.refuse("code", data[:8], expected)
    return data
