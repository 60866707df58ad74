"""Builders of collections: their rows are written without a ledger, to test what reads them."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ledgerkit.collecting import manifests, storage
from ledgerkit.collecting.account_sources import Subject
from ledgerkit.collecting.collection import Collection
from ledgerkit.collecting.part_files import Part
from ledgerkit.frames import arrow_tables, build, collected
from ledgerkit.frames.collected import INDEXED_VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

FETCHED_AT = 1_767_225_600_000_000_000  # 2026-01-01
Balance = tuple[int | None, str]  # a balance and its status


@dataclass
class Holdings:
    """The holdings of one account."""

    balance: Balance = (0, "ok")
    ft: Mapping[str, Balance] = field(default_factory=dict)
    nft: Sequence[str | tuple[str, str]] = ()  # collections, or their tokens
    staking: Sequence[str] = ()
    exposure: str = "no_visible_staking_position"


def view_columns(accounts: Mapping[str, Holdings]) -> dict[str, dict[str, list[Any]]]:
    holdings = list(accounts.values())
    ft = [
        (account_id, contract_id, *balance)
        for account_id, item in accounts.items()
        for contract_id, balance in item.ft.items()
    ]
    nft = [
        (account_id, *((entry, None) if isinstance(entry, str) else entry))
        for account_id, item in accounts.items()
        for entry in item.nft
    ]
    staking = [
        (account_id, pool_id) for account_id, item in accounts.items() for pool_id in item.staking
    ]
    return {
        "accounts": {
            "account_id": list(accounts),
            "status": [item.balance[1] for item in holdings],
            "balance": [item.balance[0] for item in holdings],
            **{
                name: [None] * len(holdings)
                for name in (
                    "locked storage_bytes storage_cost spendable n_tokens n_nfts n_pools "
                    "last_update_block_height contract code_hash code_account_id bootstrap_nonce"
                ).split()
            },
        },
        "ft": {
            "account_id": [row[0] for row in ft],
            "contract_id": [row[1] for row in ft],
            "balance": [row[2] for row in ft],
            "last_update_block_height": [7] * len(ft),
            "status": [row[3] for row in ft],
        },
        "nft": {
            "account_id": [row[0] for row in nft],
            "contract_id": [row[1] for row in nft],
            "token_id": [row[2] for row in nft],
            "last_update_block_height": [None] * len(nft),
        },
        "staking": {
            "account_id": [row[0] for row in staking],
            "pool_id": [row[1] for row in staking],
            "last_update_block_height": [None] * len(staking),
        },
        "exposure": {
            "account_id": list(accounts),
            "exposure_class": [item.exposure for item in holdings],
            "status": [
                "not_indexed" if item.balance[1] == "not_indexed" else "ok" for item in holdings
            ],
            "n_direct": [len(item.staking) for item in holdings],
            "n_liquid": [0] * len(holdings),
            "n_unknown": [0] * len(holdings),
            "direct_pools": [list(item.staking) for item in holdings],
            "liquid_tokens": [[] for _ in holdings],
        },
    }


def status_columns(read: Mapping[int, str], failed: Mapping[int, str]) -> dict[str, Any]:
    """Return the columns of `subjects` and `errors`, from account ids by position."""
    return {
        "subjects": {
            "position": list(read),
            "subject": list(read.values()),
            "fetched_at": [FETCHED_AT] * len(read),
        },
        "errors": {
            "position": list(failed),
            "subject": list(failed.values()),
            "kind": ["failed"] * len(failed),
            "error": ["TransportError"] * len(failed),
            "message": ["no response"] * len(failed),
            "retryable": [True] * len(failed),
            "fetched_at": [FETCHED_AT] * len(failed),
        },
    }


def write_tables(
    out: object, subjects: Mapping[int, tuple[str, str]], tables: Mapping[str, Any]
) -> None:
    """Write one part: its subjects and their outcomes, by position, and the rows of its tables."""
    with closing(Part(storage.folder(out), min(subjects))) as part:
        for position, (text, outcome) in subjects.items():
            part.add_subject(Subject(position, text), outcome)
        for table, rows in tables.items():
            part.add(table, rows)
        part.commit()


def write_end(out: object) -> None:
    """Record that the end of the source was reached."""
    manifests.write_finished(storage.folder(out))


def write_part(
    out: object,
    start: int,
    accounts: Mapping[str, Holdings | None],
    views: Sequence[str],
) -> None:
    """Write one part; accounts whose holdings are None failed."""
    holdings = {account_id: item for account_id, item in accounts.items() if item is not None}
    positions = dict(enumerate(accounts, start))
    read = {position: text for position, text in positions.items() if text in holdings}
    failed = {position: text for position, text in positions.items() if text not in holdings}
    columns = {**view_columns(holdings), **status_columns(read, failed)}
    subjects = {
        position: (text, "ok" if position in read else "failed")
        for position, text in positions.items()
    }
    tables = {}
    for table in (*views, "subjects", "errors"):
        frame = build.build_frame(collected.schema_name(table), columns[table])
        tables[table] = arrow_tables.of_frame(table, frame)
    write_tables(out, subjects, tables)


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a document of a collection on purpose: its checksum is right again."""
    document = json.loads(path.read_bytes())
    change(document)
    del document["checksum"]
    content = json.dumps(document)[:-1]
    digest = hashlib.sha256(content.encode()).hexdigest()
    path.write_text(f'{content},"checksum":"{digest}"}}')


def write_collection(
    out: object,
    accounts: Mapping[str, Holdings | None],
    *,
    part_size: int = 100,
    views: Sequence[str] = INDEXED_VIEWS,
    finished: bool = True,
    **options: Any,
) -> Collection:
    """Write a collection of accounts and open it; `options` are fields of its manifest."""
    folder = storage.folder(out)
    manifest = manifests.Manifest(
        views=list(views),
        schemas=manifests.table_schemas(views),
        **{"kind": "accounts", "network": "lab", **options},
    )
    manifests.open_manifest(folder, manifest)
    items = list(accounts.items())
    for start in range(0, len(items), part_size):
        write_part(out, start, dict(items[start : start + part_size]), views)
    if finished:
        write_end(out)
    return Collection(folder)
