"""
A signed transaction from its arguments to base64: ledgerkit, its peers, and the signature alone.

All start from the same account ids, nonce, arguments and parsed keys, and must return the same
text. Prints medians of interleaved rounds in this process. Targets: at most 1.2 times
PyNaCl's signature alone, and ahead of every peer that is installed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import base58
from _measuring import medians
from _verdict import finish, say
from nacl.signing import SigningKey

from ledgerkit import protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    Way = Callable[[int], str]

CALLS = 250
ROUNDS = 41
TARGET = 1.2
SIGNER, RECEIVER = "alice.near", "wrap.near"
SEED = bytes(range(32))
BLOCK_HASH = hashlib.sha256(b"a block").digest()
DEPOSIT, GAS = 10**24, 30 * 10**12
METHOD = "ft_transfer"
ARGS = json.dumps({"receiver_id": "bob.near", "amount": "1000000"}).encode()

native = SigningKey(SEED)
PUBLIC = bytes(native.verify_key)
SECRET = SEED + PUBLIC
SECRET_TEXT = "ed25519:" + base58.b58encode(SECRET).decode()


def with_ledgerkit() -> dict[str, Way]:
    key = protocol.SecretKey.from_text(SECRET_TEXT)
    public_key, block_hash = key.public_key, protocol.CryptoHash(BLOCK_HASH)

    def signed(action: Callable[[], Any], nonce: int) -> str:
        parts = (SIGNER, public_key, nonce, RECEIVER, block_hash, [action()])
        return protocol.Transaction(*parts).sign(key).to_base64()

    return both(
        signed,
        lambda: protocol.Transfer(DEPOSIT),
        lambda: protocol.FunctionCall(METHOD, ARGS, GAS, 1),
    )


def both(
    signed: Callable[[Callable[[], Any], int], str],
    transfer: Callable[[], Any],
    call: Callable[[], Any],
) -> dict[str, Way]:
    """Return the signing of a transfer and of a call; the action is built anew each time."""
    return {"transfer": partial(signed, transfer), "function call": partial(signed, call)}


def with_py_near_primitives() -> dict[str, Way]:
    lib = import_module("py_near_primitives")

    def signed(action: Callable[[], Any], nonce: int) -> str:
        built = lib.Transaction(SIGNER, PUBLIC, nonce, RECEIVER, BLOCK_HASH, [action()])
        return base64.b64encode(built.to_vec(SECRET)).decode()

    return both(
        signed,
        lambda: lib.TransferAction(DEPOSIT),
        lambda: lib.FunctionCallAction(METHOD, ARGS, GAS, 1),
    )


def with_py_near() -> dict[str, Way]:
    lib = import_module("py_near.transactions")

    def signed(action: Callable[[], Any], nonce: int) -> str:
        parts = (SIGNER, SECRET, RECEIVER, nonce, [action()], BLOCK_HASH)
        return str(lib.sign_and_serialize_transaction(*parts))

    return both(
        signed,
        lambda: lib.create_transfer_action(DEPOSIT),
        lambda: lib.create_function_call_action(METHOD, ARGS, GAS, 1),
    )


def with_near_kit() -> dict[str, Way]:
    keys, wire = import_module("near.keys"), import_module("near.wire")
    signer = keys.KeyPairSigner(SIGNER, keys.parse_key(SECRET_TEXT))
    public_key = wire.to_wire_public_key(signer.public_key)

    def signed(action: Callable[[], Any], nonce: int) -> str:
        built = wire.Transaction(
            signer_id=SIGNER,
            public_key=public_key,
            nonce=nonce,
            receiver_id=RECEIVER,
            block_hash=BLOCK_HASH,
            actions=[action()],
        )
        return base64.b64encode(wire.sign_transaction(built, signer)[1]).decode()

    return both(
        signed,
        lambda: wire.Action.Transfer(deposit=DEPOSIT),
        lambda: wire.Action.FunctionCall(method_name=METHOD, args=ARGS, gas=GAS, deposit=1),
    )


PEERS = {
    "py-near-primitives": with_py_near_primitives,
    "py-near": with_py_near,
    "near-kit": with_near_kit,
}


DIGESTS = [hashlib.sha256(str(number).encode()).digest() for number in range(CALLS + 1)]


def signature_alone(nonce: int) -> str:
    native.sign(DIGESTS[nonce])
    return ""


def contenders() -> dict[str, dict[str, Way]]:
    """Return the installed libraries, and print those that are not."""
    ways = {"ledgerkit": with_ledgerkit()}
    for name, prepare in PEERS.items():
        try:
            ways[name] = prepare()
        except ImportError as error:
            print(f"{name}: not installed ({error})")
        else:
            print(f"{name} {version(name)}")
    return ways


def seconds_each(way: Way) -> float:
    begin = time.perf_counter()
    for nonce in range(1, CALLS + 1):
        way(nonce)
    return (time.perf_counter() - begin) / CALLS


def report(case: str, medians: dict[str, float]) -> None:
    limit, ours = medians["PyNaCl sign alone"], medians["ledgerkit"]
    print(f"\n{case:<20}{'us':>8}{'a second':>11}{'x signature':>13}{'x ledgerkit':>13}")
    for name, median in medians.items():
        ratios = f"{median / limit:>13.2f}{median / ours:>13.2f}"
        print(f"{name:<20}{median * 1e6:>8.1f}{1 / median:>11,.0f}{ratios}")
    claim = f"{case}: at most {TARGET} x the time of the signature alone"
    say(claim, f"{ours / limit:.2f}", met=ours <= TARGET * limit)
    peers = {name: median / ours for name, median in medians.items() if name in PEERS}
    if peers:
        nearest = min(peers, key=lambda name: peers[name])
        figure = f"{peers[nearest]:.2f} x {nearest}"
        say(f"{case}: ahead of every peer that is installed", figure, met=peers[nearest] > 1)


def main() -> None:
    installed = contenders()
    for case in ("transfer", "function call"):
        ways = {name: cases[case] for name, cases in installed.items()}
        assert len({way(7) for way in ways.values()}) == 1, "not the same bytes"
        timed = {
            name: partial(seconds_each, way)
            for name, way in {"PyNaCl sign alone": signature_alone, **ways}.items()
        }
        report(case, medians(timed, ROUNDS))
    finish()


if __name__ == "__main__":
    main()
