"""
A decoder of transactions either refuses bytes, or encodes its result to the same bytes again.

Each string is random, or a valid transaction that was cut, changed, spliced or given other
lengths. Decoding must raise DecodeError, or return a transaction that encodes to the same
bytes, and must not allocate the memory that a length only claims.
"""

from __future__ import annotations

import random
import struct
import time
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import DecodeError
from ledgerkit.protocol import SignedTransaction, Transaction
from tools.campaigns._memory import limited_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tools.campaigns._tally import Tally

DECODERS: dict[str, Callable[[bytes], Any]] = {
    "signed": SignedTransaction.decode,
    "unsigned": Transaction.decode,
}
COUNT = 1_000_000
SMALL = 10_000
EXPECTED = ("decoded", "refused")
MEMORY = 2**30  # far below what the longest lengths claim
LENGTHS = (0, 1, 2, 63, 64, 65, 255, 2**16, 2**24, 2**30, 2**31 - 1, 2**31, 2**32 - 1)

# Valid transactions, built byte by byte, without the code under test -----------------------


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
VALID = SIGNED + UNSIGNED

# Mutations that make most of them invalid ------------------------------------------------------


def at_random(rng: random.Random) -> bytes:
    """Return random bytes."""
    return rng.randbytes(rng.randrange(300))


def cut(rng: random.Random) -> bytes:
    """Cut off the end."""
    valid = rng.choice(VALID)
    return valid[: rng.randrange(len(valid))]


def invented_end(rng: random.Random) -> bytes:
    """Replace the end by random bytes."""
    return cut(rng) + rng.randbytes(rng.randrange(120))


def changed(rng: random.Random) -> bytes:
    """Set one to four bytes at random."""
    data = bytearray(rng.choice(VALID))
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def one_bit(rng: random.Random) -> bytes:
    """Flip one bit."""
    data = bytearray(rng.choice(VALID))
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def small_step(rng: random.Random) -> bytes:
    """Change one byte by one or two: the next tag, length or letter."""
    data = bytearray(rng.choice(VALID))
    at = rng.randrange(len(data))
    data[at] = (data[at] + rng.choice((-2, -1, 1, 2))) % 256
    return bytes(data)


def other_length(rng: random.Random) -> bytes:
    """Write a hostile length over any four bytes."""
    data = rng.choice(VALID)
    at = rng.randrange(len(data) - 3)
    return data[:at] + u32(rng.choice(LENGTHS)) + data[at + 4 :]


def spliced(rng: random.Random) -> bytes:
    """Join the start of one and the end of another."""
    other = rng.choice(VALID)
    return cut(rng) + other[rng.randrange(len(other)) :]


def grown(rng: random.Random) -> bytes:
    """Insert random bytes, or repeat some."""
    data = rng.choice(VALID)
    at = rng.randrange(len(data) + 1)
    size = rng.randint(1, 8)
    return data[:at] + rng.choice((rng.randbytes(size), data[at : at + size])) + data[at:]


def shrunk(rng: random.Random) -> bytes:
    """Remove bytes from the middle."""
    data = rng.choice(VALID)
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randint(1, 8) :]


WAYS = (
    at_random,
    cut,
    invented_end,
    changed,
    one_bit,
    small_step,
    other_length,
    spliced,
    grown,
    shrunk,
)

# Checks ----------------------------------------------------------------------------------


def outcome(decode: Callable[[bytes], Any], data: bytes) -> str:
    """Decode a string; return "decoded", "refused", or what is wrong."""
    try:
        value = decode(data)
        if value.encode() != data:
            return f"decodes, but encodes to {value.encode().hex()}"
        repr(value)
    except DecodeError as error:
        return "refused" if error.path else "refused without saying where"
    except Exception as error:  # noqa: BLE001 - any other error is what this script looks for
        return f"raises {type(error).__name__}: {error}"
    return "decoded"


def valid_ones() -> Iterator[str]:
    """Yield a line for each valid transaction that is not decoded."""
    for name, examples in (("signed", SIGNED), ("unsigned", UNSIGNED)):
        for data in examples:
            result = outcome(DECODERS[name], data)
            if result != "decoded":
                yield f"{name}, valid: {data.hex()} {result}"


def feed(tally: Tally, way: str, data: bytes) -> float:
    """Pass one string to every decoder; return the seconds it took."""
    start = time.process_time()
    for name, decode in DECODERS.items():
        result = outcome(decode, data)
        if result in EXPECTED:
            tally.count(result)
        else:
            tally.violate(f"{name}, {way}: {data.hex()} {result}")
    return time.process_time() - start


def run(count: int, seed: int, tally: Tally) -> None:
    """Decode the valid transactions, then the strings."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    tally.violations += valid_ones()
    slowest_s = 0.0
    with limited_memory(MEMORY):
        for number in range(count):
            way = WAYS[number % len(WAYS)]
            slowest_s = max(slowest_s, feed(tally, way.__name__, way(rng)))
    tally.notes.append(
        f"{len(VALID)} valid transactions first; slowest string {slowest_s * 1e3:.1f} ms"
    )
