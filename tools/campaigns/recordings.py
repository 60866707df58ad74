"""
A recording that was changed is refused, or answers as before: no other answer ever comes from it.

A file with many answers is cut, has bits flipped, or is unpacked, changed as a text and packed
again: answers swapped, left out, repeated, or with another status, size, digest or version.
"""

from __future__ import annotations

import random
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ledgerkit as lk
from ledgerkit.api import rest, rpc
from ledgerkit.errors import LedgerError, NotRecordedError, RecordingError
from ledgerkit.transport.recording_files import zstd
from ledgerkit.validation import block_reference
from tools.campaigns._byte_mutations import flip

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.api.calls import Call
    from tools.campaigns._campaign import Tally

COUNT = 20_000
SMALL = 400
EXPECTED = (
    "cut: its last answers are missing",
    "cut: refused",
    "flipped: refused",
    "rewritten: refused",
)


def calls() -> list[Call[Any]]:
    """Return the calls that the recording has answers to."""
    accounts = ("alice.near", "bob.near", "nina.near", "leo.near")
    heights = range(180_000_001, 180_000_009)
    return [
        *(rest.ft(account_id) for account_id in accounts),
        *(rest.staking(account_id) for account_id in accounts),
        *(rpc.block(block_reference(height)) for height in heights),
    ]


def ask(ledger: lk.Ledger) -> list[Any]:
    """Return the answer to each call, as text, or the class of its error."""
    answers = ledger.send_many(calls(), on_error="collect", progress=False)
    return [type(answer) if isinstance(answer, LedgerError) else repr(answer) for answer in answers]


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def swap_lines(pairs: list[list[bytes]], first: int, second: int) -> None:
    pairs[first], pairs[second] = pairs[second], pairs[first]


def swap_bodies(pairs: list[list[bytes]], first: int, second: int) -> None:
    pairs[first][1], pairs[second][1] = pairs[second][1], pairs[first][1]


def leave_out(pairs: list[list[bytes]], first: int, second: int) -> None:
    """Leave out a record before another one."""
    del pairs[min(first, second)]


def repeat(pairs: list[list[bytes]], first: int, second: int) -> None:
    pairs.insert(first, pairs[second])


def change_status(pairs: list[list[bytes]], first: int, _second: int) -> None:
    pairs[first][0] = pairs[first][0].replace(b'"size"', b'"status":404,"size"')


def change_amount(pairs: list[list[bytes]], first: int, _second: int) -> None:
    pairs[first][1] = pairs[first][1].translate(bytes.maketrans(b"12", b"21"))


_REWRITES = (swap_lines, swap_bodies, leave_out, repeat, change_status, change_amount)


def rewrite(data: bytes, rng: random.Random) -> bytes:
    """Change the unpacked file, and pack it again as an honest one."""
    module = zstd()
    header, *lines = module.decompress(data).split(b"\n")[:-1]
    pairs = [lines[at : at + 2] for at in range(0, len(lines), 2)]  # a line and a body
    first, second = rng.sample(range(len(pairs)), 2)
    rng.choice(_REWRITES)(pairs, first, second)
    records = b"".join(part + b"\n" for pair in pairs for part in pair)
    return bytes(module.compress(header + b"\n") + module.compress(records))


_CHANGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "cut": cut,
    "flipped": flip,
    "rewritten": rewrite,
}


def result(path: Path, expected: list[Any]) -> str:
    """Return how a changed recording answers; raise AssertionError for a wrong answer."""
    try:
        with lk.connect(path, make_default=False) as ledger:
            answers = ask(ledger)
    except RecordingError:
        return "refused"
    for answer, right in zip(answers, expected, strict=True):
        if answer not in (right, NotRecordedError, RecordingError):
            raise AssertionError(f"{answer} in place of {right}")
    return "as before" if answers == expected else "its last answers are missing"


def run(count: int, seed: int, tally: Tally) -> None:
    """Change a recording again and again, and read it."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path, changed = Path(folder) / "case.lk", Path(folder) / "changed.lk"
        with lk.connect("local", record=path, make_default=False) as ledger:
            expected = ask(ledger)
        data = path.read_bytes()
        for number in range(count):
            kind = rng.choice(list(_CHANGES))
            changed.write_bytes(_CHANGES[kind](data, rng))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    tally.count(f"{kind}: {result(changed, expected)}")
            except AssertionError as error:
                tally.violate(f"seed {seed}, case {number}, {kind}: {error}")
