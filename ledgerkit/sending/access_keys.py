"""Access keys as the chain has them: their last nonces, and the number of a gas key's nonces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from ledgerkit import json_decoding
from ledgerkit.api import rpc
from ledgerkit.errors import DecodeError

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger
    from ledgerkit.validation import BlockReference


def read_nonce(
    ledger: Ledger, account_id: str, public_key: str, nonce_index: int | None, at: BlockReference
) -> int:
    """Read the last nonce of a key, of a gas key the one at an index."""
    if nonce_index is None:
        return ledger.send(rpc.view_access_key(account_id, public_key, at)).nonce
    nonces = ledger.send(rpc.view_gas_key_nonces(account_id, public_key, at)).nonces
    if nonce_index >= len(nonces):
        message = f"gas key {public_key} has {len(nonces)} nonces, and none at index {nonce_index}"
        raise DecodeError(message, path="nonces")
    return nonces[nonce_index]


def num_nonces(permission: str | dict[str, Any]) -> int | None:
    """Return the number of nonces of a gas key, by its permission; None for another key."""
    if not isinstance(permission, dict):
        return None
    try:
        kinds = json_decoding.convert(permission, _GasKeys)
    except msgspec.DecodeError as error:
        raise DecodeError(f"a gas key has no known shape: {error}", path="permission") from None
    gas_key = kinds.full_access or kinds.function_call
    return None if gas_key is None else gas_key.num_nonces


class _GasKey(Struct, frozen=True):
    """The member of a gas key's permission that is needed to sign with it."""

    num_nonces: Annotated[int, Meta(ge=1)]


class _GasKeys(Struct, frozen=True):
    """The permissions of the two kinds of gas keys."""

    full_access: _GasKey | None = field(default=None, name="GasKeyFullAccess")
    function_call: _GasKey | None = field(default=None, name="GasKeyFunctionCall")
