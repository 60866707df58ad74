"""The Parquet file of a statement: its entries as rows, all else as JSON in the metadata."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import json_decoding, validation
from ledgerkit.errors import DecodeError, InvalidRequestError, cut
from ledgerkit.files import check_format, file_errors, replacing
from ledgerkit.reconciling import entry_store
from ledgerkit.reconciling.entry_store import REMEDY, EntryStore
from ledgerkit.reconciling.model import StatementData
from ledgerkit.u128 import arrow, parquet
from ledgerkit.units import MAX_DECIMALS, U128_MAX

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
_FACTS, _CHECKSUM = b"ledgerkit.statement", b"ledgerkit.checksum"
_MAX_HEIGHT = 2**63 - 1
_MAX_MISSING = 2**160  # a sum of many amounts


class _Document(msgspec.Struct, frozen=True):
    n_entries: int
    facts: StatementData


def write(path: str | PathLike[str], facts: StatementData, entries: EntryStore) -> Path:
    """Write a statement to a file, which appears complete or not at all."""
    target = validation.file_path(path, "path")
    document = {"format": FORMAT, "n_entries": len(entries), "facts": facts}
    body = msgspec.json.encode(document)
    metadata = {_FACTS: body, _CHECKSUM: hashlib.sha256(body).hexdigest()}
    schema = entry_store.schema().with_metadata(metadata)
    with file_errors(f"write {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as file, parquet.open_writer(file, schema) as writer:
        for table in entries.tables():
            writer.write_table(table.replace_schema_metadata(metadata))
    return target


def read(path: str | PathLike[str]) -> tuple[StatementData, EntryStore]:
    """
    Read the file of a statement.

    Raises `FileError` if it can't be read, `DecodeError` if it is damaged or no statement, and
    `InvalidRequestError` if a newer ledgerkit wrote it.
    """
    source = validation.file_path(path, "path")
    with parquet.reading(source, REMEDY):
        document = _read_document(source)
        for problem in _problems(document.facts, document.n_entries):
            raise DecodeError(f"{source} is no statement: {problem}", remedy=REMEDY)
        entries = EntryStore(entry_store.read_entries(source, source))
    if len(entries) != document.n_entries:
        msg = f"{source} has {len(entries):,} entries, and its document {document.n_entries:,}"
        raise DecodeError(msg, remedy=REMEDY)
    return document.facts, entries


def _read_document(source: Path) -> _Document:
    with arrow.library("pyarrow.parquet").ParquetFile(source) as file:
        metadata: dict[bytes, bytes] = file.schema_arrow.metadata or {}
    body = metadata.get(_FACTS)
    if body is None:
        msg = f"{source} is no statement: ledgerkit's statement.save() did not write it"
        raise DecodeError(msg, remedy=REMEDY)
    if hashlib.sha256(body).hexdigest().encode() != metadata.get(_CHECKSUM):
        raise DecodeError(f"{source} is damaged: its checksum is wrong", remedy=REMEDY)
    check_format(body, FORMAT, "path", str(source))
    document: _Document = json_decoding.decode(body, _Document)
    return document


def _problems(facts: StatementData, n_entries: int) -> Iterator[str]:
    try:
        validation.account_id(facts.account_id, "account_id")
    except InvalidRequestError as error:
        yield error.sentence
    amounts = [*facts.opening.values(), *facts.closing.values(), *_reward_amounts(facts)]
    missing = [None if gap.missing is None else abs(gap.missing) for gap in facts.gaps]
    spans = [(gap.start_height, gap.stop_height) for gap in facts.gaps]
    spans += [(reward.start_height, reward.stop_height) for reward in facts.rewards]
    heights = [facts.start.height, facts.stop.height, *chain.from_iterable(spans)]
    if facts.start.height > facts.stop.height:
        yield "it starts after its stop"
    for name, values, maximum in (
        ("the height", heights, _MAX_HEIGHT),
        ("the amount", amounts, U128_MAX),
        ("the missing amount", missing, _MAX_MISSING),
        ("the number of decimals", [t.decimals for t in facts.tokens.values()], MAX_DECIMALS),
        ("the number of values", [facts.n_valued], n_entries),
    ):
        for value in values:
            if value is not None and not 0 <= value <= maximum:
                yield f"{name} {cut(value)} is impossible"
    if not all(math.isfinite(reward.apy or 0.0) for reward in facts.rewards):
        yield "a yearly rate is no number"


def _reward_amounts(facts: StatementData) -> Iterator[Any]:
    for reward in facts.rewards:
        yield from (reward.total_before, reward.deposits, reward.withdrawals, reward.total_after)
