"""
A decoder of bytes returns a value that can be displayed, or raises an error of ledgerkit.

Each string is random, or a valid one that was cut, changed, spliced or given other lengths. It is
passed to every decoder: of transactions, keys, hashes and credentials, of arguments, results, logs
and events of contracts, of saved documents, and of files. A transaction that is decoded must
encode to the same bytes again. No decoder may allocate the memory that a length only claims.
"""

from __future__ import annotations

import base64
import io
import json
import os
import random
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

import ledgerkit as lk
from ledgerkit import cli, units, validation
from ledgerkit.collecting import account_sources
from ledgerkit.errors import DecodeError
from ledgerkit.protocol import (
    AccountId,
    Credentials,
    CryptoHash,
    DelegateAction,
    OffchainMessage,
    PublicKey,
    SecretKey,
    Signature,
    SignedTransaction,
    Transaction,
)
from ledgerkit.protocol import Delegate as SignedDelegate
from ledgerkit.verbs import saved_responses
from tests.unit import builders
from tools.campaigns import _replay
from tools.campaigns._byte_mutations import WAYS
from tools.campaigns._outcomes import hostile_conditions, outcome
from tools.campaigns._valid_transactions import SIGNED, UNSIGNED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tools.campaigns._campaign import Tally

COUNT = 1_000_000
SMALL = 400
EXPECTED = ("value", "error")
MEMORY = 2**30  # far below what the longest lengths claim
CALLING = (  # verbs that call views
    "view",
    "balance of a token",
    "ft",
    "token_metadata",
    "nft_tokens",
    "staking",
    "verify_archive",
)
PHRASE = "abandon " * 11 + "about"
KEY = SecretKey.from_seed_phrase(PHRASE)


class Decoder(NamedTuple):
    """A decoder, and strings that it decodes."""

    name: str
    decode: Callable[[bytes], Any]
    valid: Sequence[bytes]


# Decoders --------------------------------------------------------------------------------


def same_bytes(kind: Any) -> Callable[[bytes], Any]:
    """Return a decoder that also checks its encoding, and that an error names the place."""

    def decode(data: bytes) -> Any:
        try:
            value = kind.decode(data)
        except DecodeError as error:
            if not error.path:
                raise AssertionError("refused without a path") from error
            raise
        if value.encode() != data:
            raise AssertionError("encodes to other bytes")
        return value

    return decode


def of_text(parse: Callable[[str], Any]) -> Callable[[bytes], Any]:
    """Return a decoder of bytes from a parser of text, which also reads lone surrogates."""
    return lambda data: parse(data.decode("utf-8", "surrogateescape"))


def binary() -> Iterator[Decoder]:
    actions = [lk.protocol.Transfer(1)]
    inner = DelegateAction("alice.near", "bob.near", actions, 1, 9, KEY.public_key)
    yield Decoder("SignedTransaction", same_bytes(SignedTransaction), SIGNED)
    yield Decoder("Transaction", same_bytes(Transaction), UNSIGNED)
    yield Decoder("DelegateAction", same_bytes(DelegateAction), [inner.encode()])
    yield Decoder("Delegate", same_bytes(SignedDelegate), [inner.sign(KEY).encode()])
    for kind, valid in ((SignedTransaction, SIGNED), (Transaction, UNSIGNED)):
        texts = [base64.b64encode(data) for data in valid]
        yield Decoder(f"{kind.__name__}.from_base64", of_text(kind.from_base64), texts)


def texts() -> Iterator[Decoder]:
    """Yield the parsers of keys, ids, amounts and block references."""
    public, secret = str(KEY.public_key), KEY.reveal()
    fields = {"account_id": "alice.near", "public_key": public, "private_key": secret}
    account = json.dumps(fields)
    amounts = ("1 NEAR", "0.5 NEAR", "30 Tgas", "12 yocto", "1_000 NEAR")
    times = ("2026-01-01T00:00:00Z", "2026-01-01 00:00:00.123456789+02:00")
    parsers: list[tuple[str, Callable[[str], Any], Sequence[str]]] = [
        ("PublicKey", PublicKey.from_text, [public]),
        ("SecretKey", SecretKey.from_text, [secret]),
        ("Signature", Signature.from_text, [str(KEY.sign(bytes(32)))]),
        ("seed phrase", SecretKey.from_seed_phrase, [PHRASE]),
        ("CryptoHash", CryptoHash, ["1" * 32]),
        ("AccountId", AccountId, ["alice.near", "0x" + "cd" * 20]),
        ("message", signed_message, ["login", "\U0001f511"]),
        ("yocto", units.yocto, amounts),
        ("gas", units.gas, amounts),
        ("units", partial(units.from_units, decimals=24), ["1.5", "3"]),
        ("block reference", validation.block_reference, [*times, "final", "1" * 32]),
    ]
    for name, parse, valid in parsers:
        yield Decoder(name, of_text(parse), [text.encode() for text in valid])
    yield Decoder("SecretKey.from_credentials", SecretKey.from_credentials, [account.encode()])
    yield Decoder("Credentials", Credentials.from_text, [account.encode()])
    yield Decoder("CryptoHash of bytes", CryptoHash, [bytes(32)])


def signed_message(text: str) -> bool:
    message = OffchainMessage(text, bytes(32), "app.near")
    return message.verify(KEY.public_key, message.sign(KEY))


def contract_bytes() -> Iterator[Decoder]:
    """Yield readers of what a contract returns and logs, and of the arguments of its calls."""
    replay = _replay.Replay()
    ledger = _replay.connect(replay)
    known = _replay.verbs(replay)
    verbs = {name: partial(known[name], ledger) for name in CALLING}
    for name, verb in verbs.items():
        seen = returned_by(replay, ledger, verb)

        def read(data: bytes, verb: Callable[[], Any] = verb) -> Any:
            replay.change = lambda body, status: (with_result(body, data), status)
            ledger.forget()
            ledger._memo.clear()  # noqa: SLF001 - cheaper than another ledger
            return verb()

        yield Decoder(f"result of {name}", read, seen)
    yield Decoder("arguments", lambda data: trace_of(args=data), ARGUMENTS)
    yield Decoder("returned value", lambda data: trace_of(value=data), ARGUMENTS)
    yield Decoder("log", lambda data: trace_of(log=data.decode("utf-8", "replace")), EVENTS)


def returned_by(replay: _replay.Replay, ledger: lk.Ledger, verb: Callable[[], Any]) -> list[bytes]:
    """Return the results of the view calls that a verb reads."""
    results: list[bytes] = []

    def change(body: bytes, status: int) -> tuple[bytes, int]:
        result = json.loads(body).get("result")
        if isinstance(result, dict) and "result" in result:
            results.append(bytes(result["result"]))
        return body, status

    replay.change = change
    ledger.forget()
    verb()
    return results


def with_result(body: bytes, data: bytes) -> bytes:
    """Return the response to a view call with another result; other responses unchanged."""
    document = json.loads(body)
    result = document.get("result")
    if isinstance(result, dict) and "result" in result:
        result["result"] = list(data)
        return json.dumps(document, separators=(",", ":")).encode()
    return body


ARGUMENTS = [
    b'{"receiver_id":"bob.near","amount":"5","memo":null,"msg":"{\\"actions\\":[]}"}',
    b'{"receiver_id":"bob.near","token_id":"7"}',
    b'"5"',
    b"null",
]
TRANSFERRED = {"old_owner_id": "alice.near", "new_owner_id": "bob.near", "amount": "5"}
EVENTS = [
    builders.event("nep141", "ft_transfer", TRANSFERRED).encode(),
    b"Transfer 5 from alice.near to bob.near",
    b"Refund 5 from bob.near to alice.near",
]


def trace_of(args: bytes = b"{}", value: bytes = b"", log: str = "") -> lk.Trace:
    """Read the trace of a token's transfer, with these arguments, result and log."""
    action = builders.call_bytes("ft_transfer_call", args, 1)
    status = {"SuccessValue": base64.b64encode(value).decode()}
    ran = builders.outcome("R0", logs=[log], status=status, executor_id="gold.near")
    sent = builders.body("R0", action, to="gold.near")
    document = builders.result([ran], [sent], status=status)
    return lk.Trace.from_json(document)


def files(folder: Path) -> Iterator[Decoder]:
    def written(name: str, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
        """Return a decoder that writes the bytes to a file and reads it."""
        path = folder / name

        def decode(data: bytes) -> Any:
            path.write_bytes(data)
            return read(path)

        return decode

    balances = pd.Series([1, 10**38 - 1], dtype="u128")
    texts = {"account_id": ["alice.near", "bob.near"], "text": ["a", None]}
    frame = pd.DataFrame({**texts, "balance": balances, "number": [1.5, 2]})
    lk.write_parquet(frame, folder / "valid.parquet")
    lk.write_parquet(frame.set_index("balance"), folder / "indexed.parquet")
    parquet = [(folder / name).read_bytes() for name in ("valid.parquet", "indexed.parquet")]
    trace_of().save(folder / "valid.json")
    trace = (folder / "valid.json").read_bytes()
    table = b'account_id,note\nalice.near,"a"\nbob.near,\n'
    yield Decoder("read_parquet", written("read.parquet", lk.read_parquet), parquet)
    yield Decoder("ids in Parquet", written("ids.parquet", source_ids), parquet)
    yield Decoder("ids in CSV", written("ids.csv", source_ids), [table])
    yield Decoder("ids in a text", written("ids.txt", source_ids), [b"alice.near\nbob.near\n"])
    yield Decoder("Trace.load", written("trace.json", lk.Trace.load), [trace])
    receipts = partial(lk.read_response, view="receipts")
    yield Decoder("read a file", written("r.json", receipts), [trace])
    for view in saved_responses._VIEWS:  # noqa: SLF001 - every view, also later ones
        yield Decoder(f"read {view}", partial(lk.read_response, view=view), [trace, *ARGUMENTS])
    yield Decoder("command line", written("from-file.json", command_line), [trace])


def proxies() -> Iterator[Decoder]:
    """Yield the readers of the variables that name a proxy, for few and for many connections."""
    valid = [b"http://me:secret@127.0.0.1:3128", b"http://[::1]:3128", b"https://proxy.example"]
    for in_flight in (1, 16):
        yield Decoder("proxy", partial(connect_through, in_flight=in_flight), valid)


def connect_through(proxy: bytes, in_flight: int) -> None:
    """Open the connections through a proxy; nothing is sent."""
    os.environb[b"http_proxy"] = proxy.replace(b"\0", b"")
    try:
        lk.connect("lab", rpc_url="http://rpc.example", in_flight=in_flight).close()
    finally:
        del os.environb[b"http_proxy"]


def source_ids(path: Path) -> list[Any]:
    return list(account_sources.source(path))


def command_line(path: Path) -> None:
    """Print the receipts of a file from the command line."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        code = cli.main(["receipts", "--from-file", str(path)])
    if code not in range(10):
        raise AssertionError(f"exit code {code}")


# The campaign ----------------------------------------------------------------------------


def run(count: int, seed: int, tally: Tally) -> None:
    """Decode the valid binary forms, then the strings."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, hostile_conditions(MEMORY):
        decoders = [*binary(), *texts(), *contract_bytes(), *proxies(), *files(Path(folder))]
        for decoder in binary():
            for data in decoder.valid:
                if (result := outcome(partial(decoder.decode, data), closely=True)) != "value":
                    tally.violate(f"{decoder.name}, valid: {result}: {data!r}")
        for number in range(count):
            decoder, way = decoders[number % len(decoders)], rng.choice(WAYS)
            data = way(rng, decoder.valid)
            closely = rng.random() < 0.03
            result = outcome(partial(decoder.decode, data), closely=closely)
            tally.count(result if result in EXPECTED else "violation")
            if result not in EXPECTED:
                tally.violate(f"{decoder.name}, {way.__name__}: {result}: {data[:1000]!r}")
    tally.notes.append(f"{len(decoders)} decoders")
