"""Balances of an account's assets after blocks, read from an archival node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.errors import (
    DecodeError,
    InvalidRequestError,
    UnknownAccessKeyError,
    UnknownAccountError,
)
from ledgerkit.frames import amounts
from ledgerkit.frames.accounts import PERMISSIONS, Reading, permission_fields
from ledgerkit.reconciling.model import GAS_KEY, NEAR, STAKE
from ledgerkit.tracing.token_standards import FUNGIBLE, MULTI_TOKEN
from ledgerkit.verbs import readings

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call, Response
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.ledger import Ledger
    from ledgerkit.validation import BlockReference

ASSET_RULE = (
    '"near", "nep141:<contract>" or the contract alone, "nep245:<contract>:<token_id>", '
    '"stake:<pool>" or "gas_key:<public_key>"'
)


def read_balances(
    ledger: Ledger,
    account_id: str,
    assets_at: Sequence[tuple[str, Point]],
    *,
    progress: bool = False,
) -> list[int | None]:
    """
    Read the balance of each asset after each block, by its hash; None if the contract refuses.

    An account or contract that does not exist there has a balance of 0.
    """
    # Source: query view_account, view_access_key, view methods ft_balance_of, mt_balance_of and
    # get_account.
    # Balances are not cached: a statement reads thousands of them, each once.
    calls = [
        replace(_reading_call(account_id, asset, point.hash), keep=None, kind="")
        for asset, point in assets_at
    ]
    values: list[Any] = ledger.send_many(calls, progress=progress, label="balances")
    return [reading.total for reading in values]


def _reading_call(account_id: str, asset: str, block_hash: str) -> Call[Reading]:
    at = validation.block_reference(block_hash)
    kind, _, name = asset.partition(":")
    contract_id, _, token_id = name.partition(":")
    if asset == NEAR:
        return readings.state_call(account_id, at)
    if kind == GAS_KEY:
        return _gas_key_call(account_id, name, at)
    if kind == MULTI_TOKEN:
        return readings.token_reading_call(account_id, contract_id, at, token_id)
    call = readings.token_reading_call if kind == FUNGIBLE else readings.stake_call
    return call(account_id, contract_id, at)


def _gas_key_call(account_id: str, public_key: str, at: BlockReference) -> Call[Reading]:
    call = rpc.view_access_key(account_id, public_key, at)

    def read(response: Response) -> Reading:
        try:
            key = call.read(response)
        except (UnknownAccountError, UnknownAccessKeyError):
            return Reading("no_account")
        try:
            kind, fields = permission_fields(key.permission)
        except DecodeError:
            return Reading("broken")
        # The balance of a permission of an unknown kind is unknown.
        is_known = kind in PERMISSIONS
        values = amounts.plain([fields.get("balance", "0")]) if is_known else None
        return Reading("broken") if values is None else Reading("ok", values[0])

    return readings.reading_call(call, read)


def check_assets(assets: object) -> tuple[str, ...]:
    """Check the names of assets, and return them without duplicates."""
    listed = [assets] if isinstance(assets, str) else assets
    if not isinstance(listed, list | tuple | set | frozenset) or not listed:
        raise InvalidRequestError.refuse("assets", assets, f"a list of {ASSET_RULE}")
    return tuple(dict.fromkeys(_check_asset(asset) for asset in listed))


def is_asset(name: str) -> bool:
    """Return True for the name of an asset whose balance can be read."""
    try:
        return _check_asset(name) == name
    except InvalidRequestError:
        return False


def _check_asset(asset: object) -> str:
    text = asset if isinstance(asset, str) else ""
    if text.casefold() == NEAR:
        return NEAR
    if validation.is_account_id(text):  # the contract of a token
        return f"{FUNGIBLE}:{text}"
    kind, _, name = text.partition(":")
    contract_id, colon, token_id = name.partition(":")
    if kind == GAS_KEY and name:
        return f"{GAS_KEY}:{validation.public_key(name, 'assets')}"
    has_token = bool(token_id) if kind == MULTI_TOKEN else not colon
    is_known = f"{kind}:" in {f"{FUNGIBLE}:", f"{MULTI_TOKEN}:", STAKE}
    if not (is_known and contract_id and has_token):
        raise InvalidRequestError.refuse("assets", asset, ASSET_RULE)
    validation.account_id(contract_id, "assets")
    return text
