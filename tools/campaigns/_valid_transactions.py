"""Valid transactions, built byte by byte, without the code under test."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def u16(number: int) -> bytes:
    """Encode two bytes, little-endian."""
    return struct.pack("<H", number)


def u32(number: int) -> bytes:
    """Encode four bytes."""
    return struct.pack("<I", number)


def u64(number: int) -> bytes:
    """Encode eight bytes."""
    return struct.pack("<Q", number)


def u128(number: int) -> bytes:
    """Encode sixteen bytes."""
    return number.to_bytes(16, "little")


def blob(value: bytes) -> bytes:
    """Encode a length and the bytes."""
    return u32(len(value)) + value


def several(*items: bytes) -> bytes:
    """Encode a count and the items."""
    return u32(len(items)) + b"".join(items)


ALICE, BOB, WRAP = blob(b"alice.near"), blob(b"bob.near"), blob(b"wrap.near")
ED25519 = b"\0" + bytes(range(32))
SECP256K1 = b"\1" + bytes(range(64))
SIGNATURES = (b"\0" + bytes(range(63)) + b"\x0f", b"\1" + bytes(range(1, 65)) + b"\1")
HASH = bytes(range(100, 132))
NONCES = (b"\0" + u64(7), b"\1" + u64(8) + u16(3))
LIMITS = WRAP + several(blob(b"ft_transfer"), blob(b"storage_deposit"))
GAS_KEY = u128(10**24) + u16(4)
PERMISSIONS = (
    b"\0\1" + u128(10**24) + LIMITS,
    b"\0\0" + WRAP + several(),
    b"\1",
    b"\2" + GAS_KEY + b"\0" + LIMITS,
    b"\3" + GAS_KEY,
)
CODES = (b"\0" + HASH, b"\1" + WRAP)
STATE = several(blob(b"a") + blob(b"1"), blob(b"b") + blob(b"\xff\0"))
CALL = b"\2" + blob(b"ft_transfer") + blob(b'{"amount":"1"}') + u64(30 * 10**12) + u128(1)
TRANSFER = b"\3" + u128(2**128 - 1)
DELEGATED = ALICE + BOB + several(TRANSFER, CALL)
ACTIONS = (
    b"\0",
    b"\1" + blob(b"\0asm" * 4),
    CALL,
    TRANSFER,
    b"\4" + u128(10**24) + ED25519,
    *(b"\5" + SECP256K1 + u64(5) + permission for permission in PERMISSIONS),
    b"\6" + ED25519,
    b"\7" + BOB,
    b"\x08" + DELEGATED + u64(12) + u64(99) + ED25519 + SIGNATURES[0],
    *(b"\x09" + blob(b"\0asm") + mode for mode in (b"\0", b"\1")),
    *(b"\x0a" + code for code in CODES),
    *(b"\x0b\0" + code + STATE + u128(5) for code in CODES),
    b"\x0c" + ED25519 + u128(6),
    b"\x0d" + SECP256K1 + u128(7),
    *(b"\x0e\0" + DELEGATED + nonce + u64(99) + ED25519 + SIGNATURES[0] for nonce in NONCES),
)


def transactions() -> Iterator[bytes]:
    """Yield unsigned transactions: each action in both versions, several actions, and none."""
    lists = [several(action) for action in ACTIONS]
    lists += [several(), several(TRANSFER, CALL, TRANSFER)]
    for number, actions in enumerate(lists):
        key = (ED25519, SECP256K1)[number % 2]
        yield ALICE + key + u64(7) + WRAP + HASH + actions
        nonce, mode = NONCES[number // 2 % 2], bytes([number % 2])
        yield b"\1" + ALICE + key + nonce + WRAP + HASH + actions + mode


UNSIGNED = list(transactions())
SIGNED = [tx + SIGNATURES[number // 2 % 2] for number, tx in enumerate(UNSIGNED)]
