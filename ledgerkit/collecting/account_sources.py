"""The sources of account ids: lists, iterators and files; entries are checked and numbered."""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ledgerkit import validation
from ledgerkit.collecting.manifests import DUPLICATE, MALFORMED
from ledgerkit.errors import FileError, InvalidRequestError, cut
from ledgerkit.u128 import arrow, parquet

_NOT_SHOWN = "(not shown)"
_SLICE = 1_000  # entries that are checked at a time
_MAX_RUN = 2**24  # hashes that are sorted at a time: 270 MB
_SUFFIXES = (".csv", ".parquet", ".txt")


class Subject(NamedTuple):
    """One entry of a source: its position and text, and the problem that prevents a request."""

    position: int
    text: str
    problem: str | None = None
    message: str = ""


def height_subject(height: int) -> Subject:
    """Return the subject of a height, which is also its position."""
    return Subject(height, str(height))


class Source:
    """
    The entries of a source in order, with their number if it is known.

    `read` begins at the first entry each time, unless the source is an iterator.
    """

    def __init__(
        self,
        read: Callable[[], Iterator[object]],
        total: int | None,
        *,
        is_repeatable: bool = True,
    ) -> None:
        self._read, self.total, self.is_repeatable = read, total, is_repeatable

    def __iter__(self) -> Iterator[Subject]:
        seen = SeenTexts()
        iterator, position = self._read(), 0
        while entries := list(islice(iterator, _SLICE)):
            texts = [entry if isinstance(entry, str) else cut(repr(entry)) for entry in entries]
            for entry, text, repeated in zip(entries, texts, seen.add(texts), strict=True):
                yield _subject(position, entry, text, repeated=bool(repeated))
                position += 1


def _subject(position: int, entry: object, text: str, *, repeated: bool) -> Subject:
    try:
        validation.account_id(entry)
    except InvalidRequestError as error:  # it has no value if the entry may be a secret
        label = cut(text) if error.value is not None or entry is None else _NOT_SHOWN
        return Subject(position, label, MALFORMED, str(error))
    if repeated:
        return Subject(position, text, DUPLICATE, f"{text} occurs earlier in the source")
    return Subject(position, text)


class SeenTexts:
    """
    The set of texts seen so far, at 16 bytes each.

    Texts are identified by 128 bits of a cryptographic hash: for 10^9 texts, the probability
    of any collision is 10^-21.
    """

    def __init__(self) -> None:
        # Sorted runs of decreasing length, as in merge sort: inserting into a single sorted
        # array would copy all of it each time.
        self._runs: list[_SortedRun] = []

    def add(self, texts: Sequence[str]) -> np.ndarray:
        """Add texts; return a mask of texts seen before, including earlier in `texts`."""
        high, low = _hash_halves(texts)
        order = np.lexsort((np.arange(len(texts)), low, high))
        high, low = high[order], low[order]
        is_repeated = np.zeros(len(texts), dtype=bool)
        is_repeated[1:] = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        for run in self._runs:
            is_repeated |= run.contains(high, low)
        self._add_run(_SortedRun(high[~is_repeated], low[~is_repeated]))
        mask = np.empty(len(texts), dtype=bool)
        mask[order] = is_repeated
        return mask

    def _add_run(self, run: _SortedRun) -> None:
        """Add a run; merge it with runs of similar length, up to a maximum."""
        while self._runs and len(self._runs[-1].high) <= min(len(run.high), _MAX_RUN // 2):
            run = self._runs.pop().merged(run)
        if len(run.high):
            self._runs.append(run)


class _SortedRun(NamedTuple):
    """Hashes sorted by their high words."""

    high: np.ndarray
    low: np.ndarray

    def contains(self, high: np.ndarray, low: np.ndarray) -> np.ndarray:
        mask = np.zeros(len(high), dtype=bool)
        first = np.searchsorted(self.high, high)
        same_high = self.high[np.minimum(first, len(self.high) - 1)] == high
        for row in np.flatnonzero(same_high):
            stop = np.searchsorted(self.high, high[row], side="right")
            mask[row] = (self.low[first[row] : stop] == low[row]).any()
        return mask

    def merged(self, other: _SortedRun) -> _SortedRun:
        high = np.concatenate([self.high, other.high])
        order = np.argsort(high, kind="stable")  # fast for two sorted halves
        return _SortedRun(high[order], np.concatenate([self.low, other.low])[order])


def _hash_halves(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    digests = (hashlib.blake2b(_encode(text), digest_size=16).digest() for text in texts)
    halves = np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2)
    return halves[:, 0], halves[:, 1]


def _encode(text: str) -> bytes:
    """Encode any text, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


class Digest:
    """A digest of consecutive subjects: equal for equal texts in the same order."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, subject: Subject) -> None:
        self._hash.update(_encode(subject.text) + b"\n")

    def text(self) -> str:
        return self._hash.hexdigest()


def source(account_ids: object, column: str = "account_id") -> Source:
    """
    Return the source for the arguments `account_ids` and `column`; only its entries are counted.

    Raises `InvalidRequestError` if `account_ids` is neither a list, Series or iterator of account
    ids nor the path of a text, CSV or Parquet file with the column; `FileError` if the file cannot
    be read, and `DecodeError` if a Parquet file is damaged.
    """
    if isinstance(account_ids, str):
        if "://" in account_ids:
            expected = "account ids, or the path of a file on disk"
            raise InvalidRequestError.refuse("account_ids", account_ids, expected)
        # An account id has no slash and no such suffix.
        is_path = os.sep in account_ids or "/" in account_ids or account_ids.endswith(_SUFFIXES)
        if not is_path:
            account_ids = [validation.account_id(account_ids, "account_ids")]
    if isinstance(account_ids, str | os.PathLike):
        return _file_source(Path(account_ids), column)
    is_no_list = isinstance(account_ids, bytes | dict) or hasattr(account_ids, "columns")
    if is_no_list or not isinstance(account_ids, Iterable):
        expected = "a list, Series or iterator of account ids, or the path of a file"
        raise InvalidRequestError.refuse("account_ids", account_ids, expected)
    entries = validation.elements(account_ids)
    total = len(account_ids) if isinstance(account_ids, Sized) else None
    return Source(partial(iter, entries), total, is_repeatable=iter(entries) is not entries)


def _file_source(path: Path, column: str) -> Source:
    validation.no_secret(path, "account_ids")
    try:
        if path.is_dir() or path.suffix == ".parquet":
            return _parquet_source(_parquet_paths(path), column)
        read = partial(_read_csv, path, column) if path.suffix == ".csv" else partial(_lines, path)
        return Source(read, sum(1 for _ in read()))
    except OSError as error:
        raise FileError.failed(f"read {path}", error) from None
    except (UnicodeDecodeError, csv.Error):
        raise InvalidRequestError.refuse("account_ids", str(path), "a CSV file in UTF-8") from None


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        yield from (text for line in file if (text := line.strip()))


def _read_csv(path: Path, column: str) -> Iterator[str]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        _check_column(column, rows.fieldnames or (), path)
        yield from (row[column] or "" for row in rows)


def _parquet_source(paths: Sequence[Path], column: str) -> Source:
    total = 0
    for path in paths:
        with parquet.reading(path), _open_parquet(path) as file:
            _check_column(column, file.schema_arrow.names, path)
            total += file.metadata.num_rows
    return Source(partial(_read_parquet, paths, column), total)


def _read_parquet(paths: Sequence[Path], column: str) -> Iterator[object]:
    for path in paths:
        with parquet.reading(path), _open_parquet(path) as file:
            for batch in file.iter_batches(_SLICE, columns=[column]):
                yield from batch.column(0).to_pylist()


def _open_parquet(path: Path) -> Any:
    return arrow.library("pyarrow.parquet").ParquetFile(path)


def _check_column(column: str, names: Sequence[str], path: Path) -> None:
    if column not in names:
        expected = f"a column of {path}, which has {', '.join(names) or 'none'}"
        raise InvalidRequestError.refuse("column", column, expected, choices=names)


def _parquet_paths(path: Path) -> list[Path]:
    """Return the Parquet files of a folder, or the file itself."""
    paths = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not paths:
        raise InvalidRequestError.refuse("account_ids", str(path), "a folder with Parquet files")
    return paths
