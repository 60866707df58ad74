"""Balances of an account's assets after blocks, read from an archival node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.api.models import chain
from ledgerkit.errors import (
    ContractError,
    DecodeError,
    GarbageCollectedBlockError,
    InvalidRequestError,
    LedgerError,
    NoContractCodeError,
    NoGlobalContractCodeError,
    UnknownAccessKeyError,
    UnknownAccountError,
)
from ledgerkit.frames import amounts
from ledgerkit.reconciling.model import GAS_KEY, NEAR, STAKE
from ledgerkit.tracing.token_standards import FUNGIBLE, MULTI_TOKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.api.calls import Call, Response
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.ledger import Ledger

ASSET_RULE = (
    '"near", "nep141:<contract>", "nep245:<contract>:<token_id>", "stake:<pool>" or '
    '"gas_key:<public_key>"'
)
# Where the account or the contract does not exist yet, or no more, it has nothing.
_NOTHING = (
    UnknownAccountError,
    UnknownAccessKeyError,
    NoContractCodeError,
    NoGlobalContractCodeError,
)
_HISTORY_REMEDY = "Connect with archival_rpc_url=, the address of an archival node."


def read_balances(
    ledger: Ledger,
    account_id: str,
    places: Sequence[tuple[str, Point]],
    *,
    progress: bool = False,
) -> list[int | None]:
    """
    Read the balance of each asset after each block, by its hash; None if the contract refuses.

    An account or contract that does not exist there has a balance of 0.
    """
    # Source: query view_account, view_access_key, view methods ft_balance_of, mt_balance_of and
    # get_account.
    calls = [balance_call(account_id, asset, point.hash) for asset, point in places]
    values = ledger.send_many(calls, on_error="collect", progress=progress, label="balances")
    for value in values:
        if isinstance(value, LedgerError):
            raise value
    return values  # type: ignore[return-value]  # errors are raised above


def balance_call(account_id: str, asset: str, block_hash: str) -> Call[int | None]:
    """Build the call for a balance after a block."""
    at = validation.block_reference(block_hash)
    kind, _, name = asset.partition(":")
    if asset == NEAR:
        return _call(rpc.view_account(account_id, at), _near)
    if kind == GAS_KEY:
        return _call(rpc.view_access_key(account_id, name, at), _gas_key)
    contract_id, _, token_id = name.partition(":")
    arguments = {"account_id": account_id}
    if kind == MULTI_TOKEN:
        arguments["token_id"] = token_id
    method, result_type, total = _METHODS[kind]
    args = validation.json_args(arguments)

    def read(result: chain.CallResult, request: str) -> int | None:
        try:
            value: int | None = total(rpc.result_json(result, result_type, request))
        except DecodeError:  # whatever it is, it is no balance
            return None
        return value

    return _call(rpc.call_function(contract_id, method, args, at), read)


def check_assets(assets: object) -> tuple[str, ...]:
    """Check the names of assets, without duplicates."""
    listed = [assets] if isinstance(assets, str) else assets
    if not isinstance(listed, list | tuple | set | frozenset) or not listed:
        raise InvalidRequestError.refuse("assets", assets, f"a list of {ASSET_RULE}")
    return tuple(dict.fromkeys(_check_asset(asset) for asset in listed))


def is_asset(name: str) -> bool:
    """Return True for the name of an asset whose balance can be read."""
    try:
        _check_asset(name)
    except InvalidRequestError:
        return False
    return True


def _check_asset(asset: object) -> str:
    text = asset if isinstance(asset, str) else ""
    kind, _, name = text.partition(":")
    contract_id, colon, token_id = name.partition(":")
    if text == NEAR:
        return text
    if kind == GAS_KEY and name:
        return f"{GAS_KEY}:{validation.public_key(name, 'assets')}"
    has_token = bool(token_id) if kind == MULTI_TOKEN else not colon
    is_known = f"{kind}:" in {f"{FUNGIBLE}:", f"{MULTI_TOKEN}:", STAKE}
    if not (is_known and contract_id and has_token):
        raise InvalidRequestError.refuse("assets", asset, ASSET_RULE)
    validation.account_id(contract_id, "assets")
    return text


def _call(call: Call[Any], read: Any) -> Call[int | None]:
    """Build a call that returns a balance, or None."""

    def read_balance(response: Response) -> int | None:
        try:
            value: int | None = read(call.read(response), call.request)
        except _NOTHING:
            return 0
        except ContractError:
            return None
        except GarbageCollectedBlockError as error:
            error.remedy = _HISTORY_REMEDY
            raise
        return value

    return replace(call, read=read_balance, keep=None, kind="")


def _near(account: chain.Account, request: str) -> int:
    """Return the balance of an account, with what it has staked itself."""
    values = amounts.plain([account.amount, account.locked])
    if values is None:
        sentence = f"{account.amount!r} and {account.locked!r} are not both amounts"
        raise DecodeError(sentence, request=request, path="$.result.amount")
    return sum(values)


def _gas_key(key: chain.AccessKey, _request: str) -> int | None:
    permission = key.permission
    members = next(iter(permission.values()), None) if isinstance(permission, dict) else None
    return _amount(members.get("balance", "0") if isinstance(members, dict) else "0")


def _stake(position: chain.StakingPosition) -> int | None:
    """Return the total balance with a pool."""
    values = amounts.plain([position.staked_balance, position.unstaked_balance])
    return None if values is None else sum(values)


def _amount(text: str) -> int | None:
    """Parse a balance; None if it is none."""
    values = amounts.plain([text])
    return None if values is None else values[0]


_METHODS: dict[str, tuple[str, Any, Any]] = {
    FUNGIBLE: ("ft_balance_of", str, _amount),
    MULTI_TOKEN: ("mt_balance_of", str, _amount),
    STAKE.rstrip(":"): ("get_account", chain.StakingPosition, _stake),
}
