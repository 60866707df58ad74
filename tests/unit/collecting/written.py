"""Collections written row by row, without a ledger: what their readers are tested with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ledgerkit.collecting import arrow_tables, storage
from ledgerkit.collecting import manifest as collecting_manifest
from ledgerkit.collecting.accounts import VIEWS
from ledgerkit.collecting.collection import Collection
from ledgerkit.collecting.manifest import Manifest
from ledgerkit.collecting.part_files import Part
from ledgerkit.collecting.sources import Subject
from ledgerkit.frames import build

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AT = 1_767_225_600_000_000_000  # 2026-01-01
Told = tuple[int | None, str]  # a balance, and the status beside it


@dataclass
class Held:
    """What one account holds."""

    balance: Told = (0, "ok")
    ft: Mapping[str, Told] = field(default_factory=dict)
    nft: Sequence[str] = ()
    staking: Sequence[str] = ()
    exposure: str = "no_visible_staking_position"


def rows(accounts: Mapping[str, Held]) -> dict[str, dict[str, list[Any]]]:
    """Lay out the columns of all views."""
    ft = [(who, what, *told) for who, held in accounts.items() for what, told in held.ft.items()]
    nft = [(who, what) for who, held in accounts.items() for what in held.nft]
    staking = [(who, what) for who, held in accounts.items() for what in held.staking]
    held = list(accounts.values())
    return {
        "accounts": {
            "account_id": list(accounts),
            "status": [one.balance[1] for one in held],
            "balance": [one.balance[0] for one in held],
            **{
                name: [None] * len(held)
                for name in (
                    "locked storage_bytes storage_cost spendable n_tokens n_nfts n_pools "
                    "last_update_block_height"
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
            "last_update_block_height": [None] * len(nft),
        },
        "staking": {
            "account_id": [row[0] for row in staking],
            "pool_id": [row[1] for row in staking],
            "last_update_block_height": [None] * len(staking),
        },
        "exposure": {
            "account_id": list(accounts),
            "exposure_class": [one.exposure for one in held],
            "n_direct": [len(one.staking) for one in held],
            "n_liquid": [0] * len(held),
            "n_unknown": [0] * len(held),
            "direct_pools": [list(one.staking) for one in held],
            "liquid_tokens": [[] for _ in held],
        },
    }


def records(answered: Mapping[int, str], failed: Mapping[int, str]) -> dict[str, Any]:
    """Lay out who was answered and who was not."""
    return {
        "subjects": {
            "position": list(answered),
            "subject": list(answered.values()),
            "fetched_at": [AT] * len(answered),
        },
        "errors": {
            "position": list(failed),
            "subject": list(failed.values()),
            "kind": ["failed"] * len(failed),
            "error": ["TransportError"] * len(failed),
            "message": ["no answer"] * len(failed),
            "retryable": [True] * len(failed),
            "fetched_at": [AT] * len(failed),
        },
    }


def stretch(
    folder: storage.Folder, start: int, accounts: Mapping[str, Held | None], views: Sequence[str]
) -> None:
    """Write a stretch of subjects; those that hold None were asked in vain."""
    known = {who: held for who, held in accounts.items() if held is not None}
    placed = dict(enumerate(accounts, start))
    answered = {place: who for place, who in placed.items() if who in known}
    failed = {place: who for place, who in placed.items() if who not in known}
    tables = {**rows(known), **records(answered, failed)}
    with Part(folder, start) as part:
        for place, who in placed.items():
            part.subject(Subject(place, who), "ok" if who in known else "failed")
        for table in (*views, "subjects", "errors"):
            name = collecting_manifest.frame_name(table)
            part.add(table, arrow_tables.table(name, build.build_frame(name, tables[table])))
        part.commit()


def write(
    out: object,
    accounts: Mapping[str, Held | None],
    *,
    size: int = 100,
    views: Sequence[str] = VIEWS,
    finished: bool = True,
    **told: Any,
) -> Collection:
    """Write a collection, `size` accounts in a stretch, and open it."""
    folder = storage.folder(out)
    told = {"kind": "accounts", "network": "lab", **told}
    manifest = Manifest(views=list(views), schemas=collecting_manifest.schemas(views), **told)
    collecting_manifest.begin(folder, manifest)
    listed = list(accounts.items())
    for start in range(0, len(listed), size):
        stretch(folder, start, dict(listed[start : start + size]), views)
    if finished:
        collecting_manifest.finish(folder, len(listed), "")
    return Collection(folder)
