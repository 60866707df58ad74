"""Frames of accounts, their history and keys, and of the accounts of a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from ledgerkit.errors import DecodeError
from ledgerkit.frames import amounts, build

if TYPE_CHECKING:
    from ledgerkit.api.models import chain, rest
    from ledgerkit.block_search.bisection import Point

STORAGE_PRICE = 10**19  # yoctoNEAR per byte
# Accounts up to this many bytes need no balance for storage (NEP-448).
FREE_BYTES = 770
# A new key starts at nonce (block height - 1) * 10^6, so that no nonce is used twice (nearcore,
# AccessKey::ACCESS_KEY_NONCE_RANGE_MULTIPLIER). Older keys started at 0.
NONCE_STEP = 10**6
_NO_CODE = "1" * 32  # the hash of accounts without code: 32 zero bytes
PERMISSIONS = ("FullAccess", "FunctionCall", "GasKeyFullAccess", "GasKeyFunctionCall")
_PERMISSION_QUOTED = 80  # characters of an unknown permission in an error


def accounts(
    responses: Sequence[rest.Full], states: Mapping[str, chain.Account | None] | None = None
) -> pd.DataFrame:
    """Build the accounts frame from ``/full`` responses, with contracts from ``view_account``."""
    on_chain = [(states or {}).get(response.account_id or "") for response in responses]
    return build.build_frame("accounts", account_columns(responses, on_chain))


def account_columns(
    responses: Sequence[rest.Full], on_chain: Sequence[chain.Account | None] | None = None
) -> dict[str, Any]:
    """Return the columns of the accounts frame; an account that is not indexed has no `state`."""
    states = [response.state for response in responses]
    indexed = [response if response.is_indexed else None for response in responses]
    return _account_columns(
        [response.account_id for response in responses],
        ["not_indexed" if state is None else "ok" for state in states],
        [None if state is None else state.balance for state in states],
        [None if state is None else state.locked for state in states],
        [None if state is None else state.storage_bytes for state in states],
        n_tokens=[None if r is None else len(r.tokens or ()) for r in indexed],
        # A service may list several tokens of one collection.
        n_nfts=[None if r is None else len({t.contract_id for t in r.nfts or ()}) for r in indexed],
        n_pools=[None if r is None else len(r.pools or ()) for r in indexed],
        last_update_block_height=[_last_update(response) for response in responses],
        **_code_columns(on_chain or [None] * len(responses)),
    )


def accounts_at(responses: Sequence[tuple[str, chain.Account | None]]) -> pd.DataFrame:
    """Build the accounts frame from states of ``view_account``; None is a missing account."""
    states = [state for _, state in responses]
    missing = [None] * len(responses)
    columns = _account_columns(
        [account_id for account_id, _ in responses],
        ["no_account" if state is None else "ok" for state in states],
        [None if state is None else state.amount for state in states],
        [None if state is None else state.locked for state in states],
        [None if state is None else state.storage_usage for state in states],
        n_tokens=missing,
        n_nfts=missing,
        n_pools=missing,
        last_update_block_height=missing,
        **_code_columns([state for _, state in responses]),
    )
    return build.build_frame("accounts", columns)


def _account_columns(
    account_ids: Sequence[str | None],
    statuses: list[str],
    balances: list[str | None],
    locked: list[str | None],
    sizes: list[int | None],
    **others: Any,
) -> dict[str, Any]:
    """Return the columns of the accounts frame; `others` depend on the source."""
    balance = amounts.parse(balances, name="balance")
    lock = amounts.parse(locked, name="locked")
    columns = {
        "account_id": account_ids,
        "status": statuses,
        "balance": balance,
        "locked": lock,
        "storage_bytes": sizes,
        "storage_cost": [None if size is None else size * STORAGE_PRICE for size in sizes],
        "spendable": [
            None
            if size is None or free is pd.NA or staked is pd.NA
            else spendable(free, staked, size)
            for free, staked, size in zip(balance, lock, sizes, strict=True)
        ],
    }
    return columns | others


def contract_columns(responses: Sequence[tuple[str, chain.Account]]) -> dict[str, Any]:
    """Return the columns of the contracts frame from ``view_account`` responses."""
    ids = [account_id for account_id, _ in responses]
    return {"account_id": ids} | _code_columns([account for _, account in responses])


def _code_columns(states: Sequence[chain.Account | None]) -> dict[str, Any]:
    codes = [(None, None, None) if state is None else _contract_code(state) for state in states]
    contracts, hashes, account_ids = zip(*codes, strict=True) if codes else ((), (), ())
    return {
        "contract": list(contracts),
        "code_hash": list(hashes),
        "code_account_id": list(account_ids),
        "bootstrap_nonce": [None if state is None else state.bootstrap_nonce for state in states],
    }


def _contract_code(account: chain.Account) -> tuple[str, str | None, str | None]:
    """Return the kind of an account's contract, its hash, and the account that published it."""
    # Global code has its own members, and then `code_hash` says that there is no code (nearcore,
    # AccountView::from).
    if account.global_contract_account_id is not None:
        return "global_by_account", None, account.global_contract_account_id
    if account.global_contract_hash is not None:
        return "global_by_hash", account.global_contract_hash, None
    if account.code_hash == _NO_CODE:
        return "none", None, None
    return "local", account.code_hash, None


def spendable(balance: int, locked: int, storage_bytes: int) -> int:
    """Return the yoctoNEAR that is not needed for storage, which locked tokens cover first."""
    # nearcore compares the storage cost with balance and locked tokens together.
    storage_cost = 0 if storage_bytes <= FREE_BYTES else storage_bytes * STORAGE_PRICE
    return max(0, balance - max(0, storage_cost - locked))


def _last_update(response: rest.Full) -> int | None:
    heights = [
        height
        for entries in (response.pools, response.tokens, response.nfts)
        for entry in entries or ()
        if (height := entry.last_update_block_height) is not None
    ]
    return max(heights, default=None)


def accounts_of(response: rest.KeyAccounts) -> pd.DataFrame:
    """Build the accounts_of frame: one row per account, in the response's order."""
    ids = response.account_ids or []
    columns = {
        "public_key": [response.public_key] * len(ids),
        "account_id": ids,
        "is_primary": [index == 0 for index in range(len(ids))],
    }
    return build.build_frame("accounts_of", columns)


def keys(responses: Sequence[tuple[str | None, chain.KeyList]]) -> pd.DataFrame:
    """Build the keys frame of accounts, whose ids may be unknown; one row per key."""
    entries = [entry for _, response in responses for entry in response.keys]
    permissions = [permission_fields(entry.access_key.permission) for entry in entries]
    kinds = [kind for kind, _ in permissions]
    fields = [members for _, members in permissions]
    nonces = [entry.access_key.nonce for entry in entries]
    receivers = [members.get("receiver_id") for members in fields]
    # Nodes do not use the nonce of a gas key itself, which stays 0 (nearcore, add_gas_key).
    counted = [
        None if kind.startswith("GasKey") else nonce
        for nonce, kind in zip(nonces, kinds, strict=True)
    ]
    return build.build_frame(
        "keys",
        {
            "account_id": [name for name, response in responses for _ in response.keys],
            "public_key": [entry.public_key for entry in entries],
            "nonce": nonces,
            "permission": kinds,
            "receiver_id": receivers,
            "method_names": [members.get("method_names") for members in fields],
            "allowance": amounts.parse([m.get("allowance") for m in fields], name="allowance"),
            "is_unlimited": [
                None if receiver is None else members.get("allowance") is None
                for receiver, members in zip(receivers, fields, strict=True)
            ],
            "added_at_block": [
                n // NONCE_STEP + 1 if n is not None and n >= NONCE_STEP else None for n in counted
            ],
            "use_count": [None if n is None else n % NONCE_STEP for n in counted],
            "balance": amounts.parse([m.get("balance") for m in fields], name="balance"),
            "num_nonces": [members.get("num_nonces") for members in fields],
        },
    )


def permission_fields(value: Any) -> tuple[str, dict[str, Any]]:
    """
    Parse a permission, a string or an object of one member, into its kind and fields.

    An unknown kind has no fields, because their meaning is unknown.
    """
    if isinstance(value, str):
        return value, {}
    if len(value) == 1:
        kind, fields = next(iter(value.items()))
        if kind not in PERMISSIONS:
            return kind, {}
        if isinstance(fields, list):  # the raw form of gas keys: two objects in an array
            objects = [part for part in fields if isinstance(part, dict)]
            fields = {name: item for part in objects for name, item in part.items()}
        fields = {} if fields is None else fields
        if isinstance(fields, dict) and isinstance(fields.get("num_nonces"), int | None):
            return kind, fields
    quoted = repr(str(value)[:_PERMISSION_QUOTED])
    raise DecodeError(f"a key's permission {quoted} has no known shape", path="permission")


# History ----------------------------------------------------------------------------------


class Reading(NamedTuple):
    """The status and amounts of a view at a block; amounts of other views are None."""

    status: str
    balance: int | None = None
    locked: int | None = None
    staked: int | None = None
    unstaked: int | None = None
    storage_bytes: int | None = None

    @property
    def total(self) -> int | None:
        """The sum of the amounts: 0 without an account or contract, None if it is unknown."""
        if self.status in ("no_account", "no_contract"):
            return 0
        parts = (self.balance, self.locked, self.staked, self.unstaked)
        return sum(part or 0 for part in parts) if self.status == "ok" else None


class Row(NamedTuple):
    """A reading with its account, view, contract and block."""

    account_id: str
    view: str
    contract_id: str | None
    point: Point
    reading: Reading


def history(rows: Sequence[Row]) -> pd.DataFrame:
    members = {"block_height": "point.height", "block_hash": "point.hash", "time": "point.time_ns"}
    members |= {name: f"reading.{name}" for name in Reading._fields}
    return build.build_frame("history", build.columns_of("history", rows, members))
