"""
The tokens that executions burnt: the price of their gas, and what was taken from a balance.

Besides the fee, which the signer pays, an outcome's `tokens_burnt` contains what two kinds of
actions take from the account that runs them: deploying a global contract burns 10^20 yoctoNEAR
for each byte (nearcore, `action_deploy_global_contract`; included since protocol version 83), and
deleting a gas key burns its balance (nearcore, `delete_gas_key` and `action_delete_account`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.protocol.actions import KINDS_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_DEPLOYMENTS = {name for name, kind in KINDS_BY_NAME.items() if kind.burns == "code"}
KEY_DELETIONS = {name for name, kind in KINDS_BY_NAME.items() if kind.burns == "keys"}
_TAKING = _DEPLOYMENTS | KEY_DELETIONS
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
    """The gas price of an execution and what it took from a balance; None if unknown."""

    gas_price: int | None
    balance: int | None


def may_take(actions: Collection[str]) -> bool:
    """Return True if actions may take something from the balance of the account that runs them."""
    return not _TAKING.isdisjoint(actions)


def split_burnt_tokens(executions: Sequence[Execution]) -> list[BurntTokens]:
    """
    Return the gas price of each execution of a transaction, and what it took from a balance.

    All executions in one block burn gas at one price. So the price of an execution that may have
    taken something from a balance is that of another one in its block. Refunds are left out: their
    gas is free.
    """
    parts: list[BurntTokens | None] = [
        None
        if may_take(execution.actions)
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
        return BurntTokens(price, _taken(execution, price))
    if not execution.is_deployment:
        own = gas_price(execution.tokens, execution.gas)
        return BurntTokens(own, None if own is None else 0)
    matches = [(price, _taken(execution, price)) for price in sorted(set(prices.values()))]
    known = [BurntTokens(price, taken) for price, taken in matches if taken is not None]
    return known[0] if len(known) == 1 else BurntTokens(None, None)


def _taken(execution: Execution, price: int) -> int | None:
    """Return what an execution at this gas price took from a balance; None if it is unknown."""
    surplus = (execution.tokens or 0) - price * (execution.gas or 0)
    if not execution.is_deployment:
        return surplus if 0 <= surplus <= _MAX_KEYS_TOKENS else None
    if execution.is_deletion:
        return None  # shared between the account and its keys in an unknown way
    charge = max(0, _CREATION_TOKENS - price * _CREATION_GAS)
    created = "CreateAccount" in execution.actions
    for taken in (surplus, surplus - charge) if created else (surplus,):
        if taken > 0 and taken % _BYTE_TOKENS == 0:
            return taken
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
