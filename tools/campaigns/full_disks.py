"""
A full disk costs nothing that a file had, is a `FileError`, and another attempt completes the file.

Files may have a size chosen at random while a recording is extended, or an Excel file is written
again. What the recording had must still be answered, and the Excel file is the old one or the new
one. Without the limit, the same work must end as if there had been none.
"""

from __future__ import annotations

import random
import resource
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

import ledgerkit as lk
from ledgerkit.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.campaigns._campaign import Tally

COUNT = 1_000
SMALL = 16
EXPECTED = ("recording: full", "recording: written", "Excel file: full", "Excel file: written")
IDS = ("alice.near", "bob.near", "nina.near", "leo.near", "dave.near", "grace.near")
MOST_BYTES = {"recording": 3_000, "Excel file": 12_000}  # more than the work needs


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def record(path: Path, ids: tuple[str, ...]) -> None:
    with (
        lk.connect("local", make_default=False) as ledger,
        lk.record(path, mode="extend" if path.exists() else "new", ledger=ledger),
    ):
        for account_id in ids:
            lk.ft(account_id)


def replay(path: Path, ids: tuple[str, ...]) -> list[str]:
    with lk.connect(path, make_default=False) as ledger:
        return [lk.ft(account_id, ledger=ledger).to_csv() for account_id in ids]


def try_recording(path: Path, size: int, n_before: int, expected: list[str]) -> str:
    """Extend a recording on a full disk, and complete it; return whether the disk was full."""
    result = "written"
    if n_before:
        record(path, IDS[:n_before])
    try:
        with full_disk(size):
            record(path, IDS)
    except FileError:
        result = "full"
    if n_before and replay(path, IDS[:n_before]) != expected[:n_before]:
        raise AssertionError("what was recorded before is not answered")
    record(path, IDS)
    if replay(path, IDS) != expected:
        raise AssertionError("the recording was not completed")
    return result


def try_excel(path: Path, size: int, before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Replace an Excel file on a full disk; return whether the disk was full."""
    lk.to_excel(before, path)
    old = path.read_bytes()
    try:
        with full_disk(size):
            lk.to_excel(after, path)
    except FileError:
        if path.read_bytes() != old:
            raise AssertionError("the old file is not what it was") from None
        return "full"
    if len(pd.read_excel(path)) != len(after):
        raise AssertionError("the new file is not whole")
    return "written"


def run(count: int, seed: int, tally: Tally) -> None:
    """Fill the disk again and again."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record(folder / "whole.lk", IDS)
        expected = replay(folder / "whole.lk", IDS)
        before, after = pd.DataFrame({"a": [1]}), pd.DataFrame({"a": range(40)})
        for number in range(count):
            kind, case = rng.choice(list(MOST_BYTES)), folder / f"{number}.lk"
            size = rng.randrange(MOST_BYTES[kind])
            try:
                if kind == "recording":
                    result = try_recording(case, size, rng.randrange(len(IDS)), expected)
                else:
                    result = try_excel(folder / "a.xlsx", size, before, after)
                tally.count(f"{kind}: {result}")
            except AssertionError as error:
                tally.violate(f"seed {seed}, case {number}, {kind}, {size} bytes: {error}")
            case.unlink(missing_ok=True)
        if remains := [path.name for path in folder.glob(".*")]:
            tally.violate(f"seed {seed}: left {remains}")
