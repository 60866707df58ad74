"""Where the account ids of a collection come from: each with its place, or what is wrong."""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterable, Sized
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ledgerkit import validation
from ledgerkit.errors import FileError, InvalidRequestError, cut
from ledgerkit.u128 import arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MALFORMED, DUPLICATE = "malformed", "duplicate"
_SLICE = 1_000
_LONGEST = 2**24  # hashes that are ever sorted at a time: 270 MB
_SUFFIXES = (".csv", ".parquet", ".txt")


class Subject(NamedTuple):
    """One entry of a source: its place, its text, and why it is not asked about, if so."""

    position: int
    text: str
    problem: str | None = None
    message: str = ""


class Source:
    """
    The entries of a source, in order, any number of times where the source allows that.

    Parameters
    ----------
    entries
        The account ids.
    total
        How many there are, where that is known.
    """

    def __init__(self, entries: Iterable[object], total: int | None) -> None:
        self._entries = entries
        self.total = total
        self.again = iter(entries) is not entries

    def __iter__(self) -> Iterator[Subject]:
        seen = Seen()
        entries, position = iter(self._entries), 0
        while listed := list(islice(entries, _SLICE)):
            texts = [entry if isinstance(entry, str) else cut(repr(entry)) for entry in listed]
            for entry, text, repeated in zip(listed, texts, seen.repeated(texts), strict=True):
                yield _subject(position, entry, text, repeated=bool(repeated))
                position += 1


def _subject(position: int, entry: object, text: str, *, repeated: bool) -> Subject:
    """Check one entry."""
    try:
        validation.account_id(entry)
    except InvalidRequestError as error:
        return Subject(position, cut(text), MALFORMED, str(error))
    if repeated:
        return Subject(position, text, DUPLICATE, f"{text} stands in the source already")
    return Subject(position, text)


class Seen:
    """
    Which texts were there before, at 16 bytes each.

    They are known by 128 bits of a cryptographic hash: among 10^9 the chance that any two
    are taken for one is 10^-21.
    """

    def __init__(self) -> None:
        # Sorted each, a longer one before a shorter one: to insert into a single one would
        # copy all of it each time.
        self._runs: list[_Run] = []

    def repeated(self, texts: Sequence[str]) -> np.ndarray:
        """Tell which of some texts were there before, among them too, and remember all."""
        high, low = _hashes(texts)
        order = np.lexsort((np.arange(len(texts)), low, high))
        high, low = high[order], low[order]
        known = np.zeros(len(texts), dtype=bool)
        known[1:] = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        for run in self._runs:
            known |= run.holds(high, low)
        self._add(_Run(high[~known], low[~known]))
        found = np.empty(len(texts), dtype=bool)
        found[order] = known
        return found

    def _add(self, run: _Run) -> None:
        """Remember hashes; runs that are as long as each other become one, up to a length."""
        while self._runs and len(self._runs[-1].high) <= min(len(run.high), _LONGEST // 2):
            run = self._runs.pop().joined(run)
        if len(run.high):
            self._runs.append(run)


class _Run(NamedTuple):
    """Hashes in the order of their first words."""

    high: np.ndarray
    low: np.ndarray

    def holds(self, high: np.ndarray, low: np.ndarray) -> np.ndarray:
        """Tell which of some hashes are here."""
        found = np.zeros(len(high), dtype=bool)
        place = np.searchsorted(self.high, high)
        alike = self.high[np.minimum(place, len(self.high) - 1)] == high
        for row in np.flatnonzero(alike):
            until = np.searchsorted(self.high, high[row], side="right")
            found[row] = (self.low[place[row] : until] == low[row]).any()
        return found

    def joined(self, other: _Run) -> _Run:
        """Put two runs in one."""
        high = np.concatenate([self.high, other.high])
        order = np.argsort(high, kind="stable")  # which is quick where two parts are sorted
        return _Run(high[order], np.concatenate([self.low, other.low])[order])


def _hashes(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Hash texts to two words each."""
    digests = (hashlib.blake2b(_bytes(text), digest_size=16).digest() for text in texts)
    words = np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2)
    return words[:, 0], words[:, 1]


def _bytes(text: str) -> bytes:
    """Encode any text, lone surrogates too."""
    return text.encode("utf-8", "surrogatepass")


class Digest:
    """The running digest of a stretch of subjects: the same texts in the same order, or not."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, subject: Subject) -> None:
        """Take in the next subject."""
        self._hash.update(_bytes(subject.text) + b"\n")

    def text(self) -> str:
        """Give the digest so far."""
        return self._hash.hexdigest()


def source(ids: object, column: str = "account_id") -> Source:
    """
    Find the entries that `ids` names.

    Parameters
    ----------
    ids
        An account id; a list, Series or iterator of them; or the path of a file: text with
        a line each, CSV, or Parquet (a folder of Parquet files too).
    column
        The column of a CSV or Parquet file.

    Returns
    -------
    source
        Nothing was read yet but how many there are.

    Raises
    ------
    InvalidRequestError
        If it is none of these, or the file has no such column.
    FileError
        If the file cannot be read.
    """
    if isinstance(ids, os.PathLike) or (isinstance(ids, str) and _is_path(ids)):
        return _file(Path(ids), column)
    if isinstance(ids, str):
        return Source([validation.account_id(ids, "ids")], 1)
    if not isinstance(ids, Iterable) or isinstance(ids, bytes | dict) or hasattr(ids, "columns"):
        rule = "account ids: a list, Series or iterator of them, or the path of a file"
        raise InvalidRequestError.refuse("ids", ids, rule)
    return Source(ids, len(ids) if isinstance(ids, Sized) else None)


def _is_path(text: str) -> bool:
    """Tell the path of a file from an account id, which has neither slash nor such an ending."""
    return os.sep in text or "/" in text or text.endswith(_SUFFIXES)


class _Lines:
    """The entries of a text file, read anew each time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[str]:
        with self._path.open(encoding="utf-8", errors="surrogateescape") as file:
            yield from (text for line in file if (text := line.strip()))


class _Csv:
    """A column of a CSV file, read anew each time."""

    def __init__(self, path: Path, column: str) -> None:
        self._path, self._column = path, column
        with path.open(newline="", encoding="utf-8") as file:
            _has(column, csv.DictReader(file).fieldnames or (), path)

    def __iter__(self) -> Iterator[str]:
        with self._path.open(newline="", encoding="utf-8") as file:
            yield from (row[self._column] or "" for row in csv.DictReader(file))


class _Parquet:
    """A column of Parquet files, read anew each time, a few rows at once."""

    def __init__(self, paths: Sequence[Path], column: str) -> None:
        self._paths, self._column = paths, column
        files = [self._open(path) for path in paths]
        for path, file in zip(paths, files, strict=True):
            _has(column, file.schema_arrow.names, path)
        self._rows: int = sum(file.metadata.num_rows for file in files)

    @staticmethod
    def _open(path: Path) -> Any:
        """Open one file."""
        try:
            return arrow.library("pyarrow.parquet").ParquetFile(path)
        except arrow.library().ArrowInvalid:
            raise InvalidRequestError.refuse("ids", str(path), "a Parquet file") from None

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[object]:
        for path in self._paths:
            with self._open(path) as file:
                for batch in file.iter_batches(_SLICE, columns=[self._column]):
                    yield from batch.column(0).to_pylist()


def _has(column: str, names: Sequence[str], path: Path) -> None:
    """Refuse a column that a file has not."""
    if column not in names:
        rule = f"a column of {path}, which has {', '.join(names) or 'none'}"
        raise InvalidRequestError.refuse("column", column, rule)


def _file(path: Path, column: str) -> Source:
    """Open a file of account ids."""
    try:
        if path.is_dir() or path.suffix == ".parquet":
            rows = _Parquet(_parquet_files(path), column)
            return Source(rows, len(rows))
        lines = _Csv(path, column) if path.suffix == ".csv" else _Lines(path)
        return Source(lines, sum(1 for _ in lines))
    except OSError as error:
        raise FileError.failed(f"read {path}", error) from None
    except UnicodeDecodeError:
        raise InvalidRequestError.refuse("ids", str(path), "a CSV file in UTF-8") from None


def _parquet_files(path: Path) -> list[Path]:
    """List the Parquet files of a folder, or the one."""
    found = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not found:
        raise InvalidRequestError.refuse("ids", str(path), "a folder that holds Parquet files")
    return found
