"""Access keys: the data that the chain stores with a public key, and their permissions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol import borsh
from ledgerkit.units import U64_MAX
from ledgerkit.validation import integer, plain_text


def _check_names(value: Any, name: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidRequestError.refuse(name, value, "a list of texts")
    return tuple(plain_text(method, name) for method in value)


_METHOD_NAMES = borsh.Codec(
    _check_names,
    lambda names: borsh.items([borsh.text(name) for name in names]),
    lambda reader: reader.items(borsh.Reader.text, 4),  # each text has a length of 4 bytes
)


class Permission(borsh.Variant):
    """The permission of an access key: the transactions that it may sign."""

    __slots__ = ()
    enum: ClassVar[str] = "a permission"


@dataclass(frozen=True, slots=True)
class FunctionCallPermission(Permission):
    """
    The permission to call one contract, without deposits.

    Parameters
    ----------
    allowance
        The yoctoNEAR that the key may spend on gas; None for no limit.
    receiver_id
        The contract. Borsh allows any text here; the chain checks it.
    method_names
        The methods; an empty list allows all.
    """

    allowance: int | None = field(metadata={"borsh": borsh.optional(borsh.U128)})
    receiver_id: str = field(metadata={"borsh": borsh.TEXT})
    method_names: Sequence[str] = field(default=(), metadata={"borsh": _METHOD_NAMES})


@dataclass(frozen=True, slots=True)
class FullAccess(Permission):
    """The permission to do everything the account may."""


@dataclass(frozen=True, slots=True)
class GasKeyFunctionCall(Permission):
    """
    The permission of a gas key to call one contract.

    Parameters
    ----------
    balance
        The yoctoNEAR that the key holds for gas; 0 in a new key.
    num_nonces
        The number of nonces that the key counts independently.
    allowance
        As in `FunctionCallPermission`.
    receiver_id
        The contract.
    method_names
        The methods; an empty list allows all.
    """

    balance: int = field(metadata={"borsh": borsh.U128})
    num_nonces: int = field(metadata={"borsh": borsh.U16})
    allowance: int | None = field(metadata={"borsh": borsh.optional(borsh.U128)})
    receiver_id: str = field(metadata={"borsh": borsh.TEXT})
    method_names: Sequence[str] = field(default=(), metadata={"borsh": _METHOD_NAMES})


@dataclass(frozen=True, slots=True)
class GasKeyFullAccess(Permission):
    """
    The permission of a gas key to do everything the account may.

    Parameters
    ----------
    balance
        The yoctoNEAR that the key holds for gas; 0 in a new key.
    num_nonces
        The number of nonces that the key counts independently.
    """

    balance: int = field(metadata={"borsh": borsh.U128})
    num_nonces: int = field(metadata={"borsh": borsh.U16})


GasKey = GasKeyFunctionCall | GasKeyFullAccess  # both have a balance and several nonces

# Borsh writes a variant's position, so new ones are appended and none is moved.
borsh.number_variants(
    Permission, [FunctionCallPermission, FullAccess, GasKeyFunctionCall, GasKeyFullAccess]
)

_PERMISSION = borsh.nested(
    Permission, "FullAccess(), FunctionCallPermission(…) or that of a gas key"
)
_FULL_ACCESS = FullAccess()


@dataclass(frozen=True, slots=True, init=False)
class AccessKey(borsh.Record):
    """
    The data that the chain stores with a public key.

    Parameters
    ----------
    nonce
        The last nonce used; the chain sets its own in a new key.
    permission
        What the key may sign.
    """

    nonce: int = field(default=0, metadata={"borsh": borsh.U64})
    permission: Permission = field(default=_FULL_ACCESS, metadata={"borsh": _PERMISSION})

    # The embedded ledger builds one per transaction; the checks of a record take 3 us.
    def __init__(self, nonce: int = 0, permission: Permission = _FULL_ACCESS) -> None:
        plain = type(nonce) is int and 0 <= nonce <= U64_MAX
        borsh.set_field(self, "nonce", nonce if plain else integer(nonce, "nonce", most=U64_MAX))
        is_one = isinstance(permission, Permission)
        checked = permission if is_one else _PERMISSION.check(permission, "permission")
        borsh.set_field(self, "permission", checked)
