"""
The tokens that executions burnt: the price of their gas, and balances of accounts and gas keys.

Besides the fee, which the signer pays, an outcome's `tokens_burnt` contains the balance that two
kinds of actions burn: deploying a global contract burns 10^20 yoctoNEAR per byte of the account
that deploys it (nearcore, `action_deploy_global_contract`; included since protocol version 83), and
deleting a gas key burns its balance (nearcore, `delete_gas_key` and `action_delete_account`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ledgerkit.protocol.actions import KINDS_BY_NAME

_DEPLOYMENTS = {name for name, kind in KINDS_BY_NAME.items() if kind.burns == "code"}
KEY_DELETIONS = {name for name, kind in KINDS_BY_NAME.items() if kind.burns == "keys"}
_BALANCE_BURNING_ACTIONS = _DEPLOYMENTS | KEY_DELETIONS
_BYTE_TOKENS = 10**20  # global_contract_storage_amount_per_byte, since protocol version 77
_MAX_KEYS_TOKENS = 10**24  # GasKeyInfo::MAX_BALANCE_TO_BURN
# Since protocol version 85, creating an account burns this many yoctoNEAR in total, including the
# price of this much gas.
_CREATION_TOKENS, _CREATION_GAS = 7 * 10**21, 7_200_000_000_000


class Execution(NamedTuple):
    """The gas and tokens of an execution, its account, and its actions if they took effect."""

    tokens: int | None
    gas: int | None
    block_hash: str | None
    actions: Collection[str] = ()

    @property
    def is_deployment(self) -> bool:
        """True if it deployed a global contract."""
        return not _DEPLOYMENTS.isdisjoint(self.actions)

    @property
    def is_deletion(self) -> bool:
        """True if it deleted keys, which may be gas keys."""
        return not KEY_DELETIONS.isdisjoint(self.actions)


class BurntTokens(NamedTuple):
    """The gas price of an execution and the balance that it burnt; None if unknown."""

    gas_price: int | None
    balance: int | None


def may_burn_balance(actions: Collection[str]) -> bool:
    """Return True if actions may burn a balance of the account that runs them."""
    return not _BALANCE_BURNING_ACTIONS.isdisjoint(actions)


def split_burnt_tokens(executions: Sequence[Execution]) -> list[BurntTokens]:
    """
    Return the gas price of each execution of a transaction, and the balance that it burnt.

    All executions in one block burn gas at one price. So the price of an execution that may have
    burnt a balance is that of another execution in its block. Refunds are left out: their gas is
    free.
    """
    parts: list[BurntTokens | None] = [
        None
        if may_burn_balance(execution.actions)
        else BurntTokens(gas_price(execution.tokens, execution.gas), 0)
        for execution in executions
    ]
    prices = {
        execution.block_hash: part.gas_price
        for execution, part in zip(executions, parts, strict=True)
        if part is not None and part.gas_price
    }
    return [
        part or _split(execution, prices) for execution, part in zip(executions, parts, strict=True)
    ]


def _split(execution: Execution, prices: dict[str | None, int]) -> BurntTokens:
    if execution.tokens is None or not execution.gas:
        return BurntTokens(None, None)
    price = prices.get(execution.block_hash) if execution.block_hash else None
    if price is not None:
        return BurntTokens(price, _balance_burnt(execution, price))
    if not execution.is_deployment:
        price = gas_price(execution.tokens, execution.gas)
        return BurntTokens(price, None if price is None else 0)
    parts = [BurntTokens(price, _balance_burnt(execution, price)) for price in set(prices.values())]
    possible = [part for part in parts if part.balance is not None]
    return possible[0] if len(possible) == 1 else BurntTokens(None, None)


def _balance_burnt(execution: Execution, price: int) -> int | None:
    """Return the balance that an execution burnt at this gas price; None if it is unknown."""
    surplus = (execution.tokens or 0) - price * (execution.gas or 0)
    if not execution.is_deployment:
        return surplus if 0 <= surplus <= _MAX_KEYS_TOKENS else None
    if execution.is_deletion:
        return None  # shared between the account and its keys in an unknown way
    charge = max(0, _CREATION_TOKENS - price * _CREATION_GAS)
    created = "CreateAccount" in execution.actions
    for balance in (surplus, surplus - charge) if created else (surplus,):
        if balance > 0 and balance % _BYTE_TOKENS == 0:
            return balance
    return None


def gas_price(tokens: int | None, gas: int | None) -> int | None:
    """Return the price at which gas was burnt; None if the tokens are not a multiple of the gas."""
    if tokens is None or not gas:
        return None
    price, remainder = divmod(tokens, gas)
    if not remainder:
        return price
    # The tokens may include the fixed amount that creating an account burns.
    if gas <= _CREATION_GAS or tokens < _CREATION_TOKENS:
        return None
    price, remainder = divmod(tokens - _CREATION_TOKENS, gas - _CREATION_GAS)
    return None if remainder else price
