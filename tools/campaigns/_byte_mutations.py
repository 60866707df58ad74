"""Mutations of byte strings, each made of one or two of some valid strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

LENGTHS = (0, 1, 2, 63, 64, 65, 255, 2**16, 2**24, 2**30, 2**31 - 1, 2**31, 2**32 - 1)


def flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def at_random(rng: random.Random, _: Sequence[bytes]) -> bytes:
    return rng.randbytes(rng.randrange(300))


def cut(rng: random.Random, valid: Sequence[bytes]) -> bytes:
    data = rng.choice(valid)
    return data[: rng.randrange(len(data) + 1)]


def invented_end(rng: random.Random, valid: Sequence[bytes]) -> bytes:
    return cut(rng, valid) + rng.randbytes(rng.randrange(120))


def changed(rng: random.Random, valid: Sequence[bytes]) -> bytes:
    data = bytearray(rng.choice(valid))
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def one_bit(rng: random.Random, valid: Sequence[bytes]) -> bytes:
    return flip(rng.choice(valid), rng)


def small_step(rng: random.Random, valid: Sequence[bytes]) -> bytes:
    """Change one byte by one or two: the next tag, length or letter."""
    data = bytearray(rng.choice(valid))
    at = rng.randrange(len(data))
    data[at] = (data[at] + rng.choice((-2, -1, 1, 2))) % 256
    return bytes(data)


def other_length(rng: random.Random, valid: Sequence[bytes]) -> bytes:
    data = rng.choice(valid)
    at = rng.randrange(max(1, len(data) - 3))
    return data[:at] + rng.choice(LENGTHS).to_bytes(4, "little") + data[at + 4 :]


def spliced(rng: random.Random, valid: Sequence[bytes]) -> bytes:
    """Join the start of one and the end of another."""
    other = rng.choice(valid)
    return cut(rng, valid) + other[rng.randrange(len(other)) :]


def grown(rng: random.Random, valid: Sequence[bytes]) -> bytes:
    """Insert random bytes, or repeat some."""
    data = rng.choice(valid)
    at = rng.randrange(len(data) + 1)
    size = rng.randint(1, 8)
    return data[:at] + rng.choice((rng.randbytes(size), data[at : at + size])) + data[at:]


def shrunk(rng: random.Random, valid: Sequence[bytes]) -> bytes:
    data = rng.choice(valid)
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randint(1, 8) :]


def odd_text(rng: random.Random, valid: Sequence[bytes]) -> bytes:
    """Insert characters that decoders of text treat differently."""
    data = rng.choice(valid)
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(ODD).encode("utf-8", "surrogatepass") + data[at:]


ODD = (*"\0\n\ufeff\u0661\ud800\u202e ,", '"', "\r\n", "[" * 3000, "9" * 5000)
WAYS = (
    *(at_random, cut, invented_end, changed, one_bit, small_step),
    *(other_length, spliced, grown, shrunk, odd_text),
)
