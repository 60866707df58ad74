"""Valid transactions, from bytes that tests write down: each action, several, and none."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from ledgerkit.protocol.access_keys import Permission
from ledgerkit.protocol.actions import Action
from tests.unit.protocol.test_layouts import VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

LAYOUTS = {name: bytes.fromhex(layout) for name, (_, layout) in VALUES.items()}
KEYS = (LAYOUTS["ed25519 key"], LAYOUTS["secp256k1 key"])
SIGNATURES = (LAYOUTS["ed25519 signature"], LAYOUTS["secp256k1 signature"])
NONCES = (b"\0" + bytes(8), b"\1" + bytes(8) + b"\3\0")  # of a key, and of a lane of a gas key
NAME = bytes.fromhex("02000000 6162")
HASH = bytes(range(100, 132))


def of_kind(kind: type) -> list[bytes]:
    return [LAYOUTS[name] for name, (value, _) in VALUES.items() if isinstance(value, kind)]


def several(actions: list[bytes]) -> bytes:
    return len(actions).to_bytes(4, "little") + b"".join(actions)


def transactions() -> Iterator[bytes]:
    actions = of_kind(Action)
    keyed = [b"\5" + KEYS[1] + bytes(8) + permission for permission in of_kind(Permission)]
    lists = [*([action] for action in (*actions, *keyed)), [], actions[:3]]
    for number, (listed, key) in enumerate(zip(lists, cycle(KEYS), strict=False)):
        yield NAME + key + bytes(8) + NAME + HASH + several(listed)
        nonce, mode = NONCES[number // 2 % 2], bytes([number % 2])
        yield b"\1" + NAME + key + nonce + NAME + HASH + several(listed) + mode


UNSIGNED = list(transactions())
SIGNED = [tx + SIGNATURES[number // 2 % 2] for number, tx in enumerate(UNSIGNED)]
