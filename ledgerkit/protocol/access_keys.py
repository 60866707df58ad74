"""Access keys: what the chain notes beside a public key, and what each kind may sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol.borsh import Borsh, Reader, items, option, text, u16, u64, u128
from ledgerkit.protocol.types import U16_MAX, U64_MAX, plain_text, whole
from ledgerkit.units import U128_MAX

_set = object.__setattr__  # how a frozen dataclass settles its own fields


class Permission(Borsh):
    """What an access key may sign."""

    __slots__ = ()
    tag: ClassVar[int]

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields, after the tag."""
        raise NotImplementedError

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take one permission, of this class."""
        at = reader.at
        found = read_permission(reader)
        if not isinstance(found, cls):
            raise reader.refuse(f"a {type(found).__name__} stands there", at)
        return found


@dataclass(frozen=True, slots=True)
class FunctionCallPermission(Permission):
    """
    A key that may only call one contract, without deposits.

    Parameters
    ----------
    allowance
        How many yoctoNEAR it may spend on gas; None for as many as there are.
    receiver_id
        The contract. The format takes any text here, and the chain checks it.
    method_names
        The methods; none allows all.
    """

    allowance: int | None
    receiver_id: str
    method_names: Sequence[str] = ()
    tag: ClassVar[int] = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        if self.allowance is not None:
            _set(self, "allowance", whole(self.allowance, "allowance", U128_MAX))
        plain_text(self.receiver_id, "receiver_id")
        _set(self, "method_names", _names(self.method_names))

    def fields(self) -> bytes:
        """Write what a gas key's permission ends with too."""
        allowance = option(None if self.allowance is None else u128(self.allowance))
        return allowance + text(self.receiver_id) + items([text(m) for m in self.method_names])

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\0" + self.fields()

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(reader.option(reader.u128), reader.text(), reader.items(reader.text, 4))


@dataclass(frozen=True, slots=True)
class FullAccess(Permission):
    """A key that may do everything its account may."""

    tag: ClassVar[int] = 1

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\1"

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take nothing."""
        del reader
        return cls()


@dataclass(frozen=True, slots=True)
class GasKeyFunctionCall(Permission):
    """
    A gas key that may only call one contract.

    Parameters
    ----------
    balance
        The yoctoNEAR it holds for gas; 0 in a new key.
    num_nonces
        How many nonces it counts side by side.
    allowance
        As in `FunctionCallPermission`.
    receiver_id
        The contract.
    method_names
        The methods; none allows all.
    """

    balance: int
    num_nonces: int
    allowance: int | None
    receiver_id: str
    method_names: Sequence[str] = ()
    tag: ClassVar[int] = 2

    def __post_init__(self) -> None:
        """Check the fields."""
        _set(self, "balance", whole(self.balance, "balance", U128_MAX))
        _set(self, "num_nonces", whole(self.num_nonces, "num_nonces", U16_MAX))
        call = FunctionCallPermission(self.allowance, self.receiver_id, self.method_names)
        _set(self, "allowance", call.allowance)
        _set(self, "method_names", call.method_names)

    def encode(self) -> bytes:
        """Write the binary form."""
        call = FunctionCallPermission(self.allowance, self.receiver_id, self.method_names)
        return b"\2" + u128(self.balance) + u16(self.num_nonces) + call.fields()

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        balance, num_nonces = reader.u128(), reader.u16()
        call = FunctionCallPermission.body(reader)
        return cls(balance, num_nonces, call.allowance, call.receiver_id, call.method_names)


@dataclass(frozen=True, slots=True)
class GasKeyFullAccess(Permission):
    """
    A gas key that may do everything its account may.

    Parameters
    ----------
    balance
        The yoctoNEAR it holds for gas; 0 in a new key.
    num_nonces
        How many nonces it counts side by side.
    """

    balance: int
    num_nonces: int
    tag: ClassVar[int] = 3

    def __post_init__(self) -> None:
        """Check the fields."""
        _set(self, "balance", whole(self.balance, "balance", U128_MAX))
        _set(self, "num_nonces", whole(self.num_nonces, "num_nonces", U16_MAX))

    def encode(self) -> bytes:
        """Write the binary form."""
        return b"\3" + u128(self.balance) + u16(self.num_nonces)

    @classmethod
    def body(cls, reader: Reader) -> Self:
        """Take the fields."""
        return cls(reader.u128(), reader.u16())


# Borsh writes the variant's position: appending is safe, sorting is not.
_PERMISSIONS: tuple[type[Permission], ...] = (
    FunctionCallPermission,
    FullAccess,
    GasKeyFunctionCall,
    GasKeyFullAccess,
)


def read_permission(reader: Reader) -> Permission:
    """Take a permission of any kind."""
    return _PERMISSIONS[reader.tag(len(_PERMISSIONS), "a permission")].body(reader)


@dataclass(frozen=True, slots=True)
class AccessKey(Borsh):
    """
    What the chain notes beside a public key.

    Parameters
    ----------
    nonce
        The last nonce used; the chain sets its own in a new key.
    permission
        What it may sign.
    """

    nonce: int = 0
    permission: Permission = field(default_factory=FullAccess)

    def __post_init__(self) -> None:
        """Check the fields."""
        _set(self, "nonce", whole(self.nonce, "nonce", U64_MAX))
        if not isinstance(self.permission, _PERMISSIONS):
            rule = "FullAccess(), FunctionCallPermission(…) or a gas key's permission"
            raise InvalidRequestError.refuse("permission", self.permission, rule)

    def encode(self) -> bytes:
        """Write the binary form."""
        return u64(self.nonce) + self.permission.encode()

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take one."""
        return cls(reader.u64(), read_permission(reader))


def _names(value: Any) -> tuple[str, ...]:
    """Check a list of method names."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidRequestError.refuse("method_names", value, "a list of texts")
    return tuple(plain_text(name, "method_names") for name in value)
