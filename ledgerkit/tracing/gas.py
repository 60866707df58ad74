"""
Gas and value of each receipt: gas burnt in calls, its price, refunds and contract rewards.

The signer buys gas in advance and gets most of it back: in the end it has paid for the gas burnt.
A result does not contain the contracts' share of the gas that their calls burn: it is computed
from that gas, its price and the protocol's rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Raw
from pandas import NA

from ledgerkit import json_decoding
from ledgerkit.api.models.actions import Action, Actions, action_name, function_call
from ledgerkit.api.models.transactions import ExecutionOutcome, Metadata, TxResult, decode_member
from ledgerkit.protocol.actions import KINDS_BY_NAME, call_bytes
from ledgerkit.tracing.action_fields import deposit, parse_amount, total_deposit
from ledgerkit.tracing.actions import SUCCEEDED
from ledgerkit.tracing.burnt_tokens import (
    BurntTokens,
    Execution,
    gas_price,
    may_burn_balance,
    split_burnt_tokens,
)
from ledgerkit.tracing.tree.frame_columns import SYSTEM

if TYPE_CHECKING:
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.tracing.tree import Forest

    Columns = dict[str, Any]

FAILURE, UNKNOWN = "failure", "unknown"
NO_NAMES, CALLS, TRANSFERS = map(frozenset, ((), ("FunctionCall",), ("Transfer",)))
_WITHOUT_CALLS = KINDS_BY_NAME.keys() - CALLS
_EXECUTED = frozenset({*SUCCEEDED, FAILURE})
_METADATA: json_decoding.Decoder[Metadata | None] = json_decoding.decoder(Metadata | None)


class ReceiptValues:
    """
    The deposits, gas, refunds and contract rewards of each receipt, by position.

    Values that the document does not contain are None. Amounts are in yoctoNEAR. `gas_keys` are
    the gas keys that paid, by transaction: empty if the key is not named, None for another key.
    Without the rules that were in force when a transaction ran, its rewards are unknown.
    """

    def __init__(self, forest: Forest, rules: Sequence[Rules | None]) -> None:
        self.forest, self.rules, self.actions = forest, rules, forest.actions()
        self.has_bodies = all(result.bodies is not None for result in forest.results)
        self.trees: list[int] = forest.trees
        self.starts: list[int] = forest.starts
        self.parents: list[int] = forest.parents
        self.status: list[str] = forest.columns["status"]
        self.is_refund = [kind == "refund" for kind in forest.columns["kind"]]
        self.receivers: list[str | None] = forest.columns["receiver_id"]
        self.senders: list[str | None] = forest.columns["predecessor_id"]
        self.tokens_burnt: list[int | None] = forest.columns["tokens_burnt"]
        self.gas_burnt: list[int | None] = forest.columns["gas_burnt"]
        contents = [_names_and_deposit(receipt_actions) for receipt_actions in self.actions]
        self.names = [names for names, _ in contents]
        self.deposits = [total for _, total in contents]
        self.was_executed = [
            status in _EXECUTED or (status == UNKNOWN and gas != 0)
            for status, gas in zip(self.status, self.gas_burnt, strict=True)
        ]
        self.gas_keys = [_gas_key(result) for result in forest.results]
        self.refund_kinds = [
            self._refund_kind(position) if is_refund else None
            for position, is_refund in enumerate(self.is_refund)
        ]

    @cached_property
    def executions(self) -> list[ExecutionOutcome | None]:
        return self.forest.executions()

    @cached_property
    def balance_burnt(self) -> list[int | None]:
        """The tokens that each receipt burnt from its receiver's balance or gas keys."""
        if not any(map(may_burn_balance, self.names)):
            return [0] * len(self.names)
        return [part.balance for part in self.burnt[1]]

    @cached_property
    def gas_in_calls(self) -> list[int | None]:
        return [self._gas_in_calls(position) for position in range(len(self.forest))]

    @cached_property
    def rewards(self) -> list[int | None]:
        return [self._reward(position, burnt) for position, burnt in enumerate(self.gas_in_calls)]

    @cached_property
    def gas_refunds(self) -> list[int | None]:
        """The sum of the gas refunds that each receipt created; None if a refund is unknown."""
        # A receipt with neither body nor outcome has no kind, and may be a refund.
        may_refund = [kind != "action" for kind in self.forest.columns["kind"]]
        sums: list[int | None] = [
            None if status == UNKNOWN and gas is None else 0
            for status, gas in zip(self.status, self.gas_burnt, strict=True)
        ]
        for position, parent in enumerate(self.parents):
            total, amount = sums[parent] if parent >= 0 else None, self.deposits[position]
            if total is None or not may_refund[position]:
                continue
            if amount is None:
                sums[parent] = None
            elif self.refund_kinds[position] == "refund_gas":
                sums[parent] = total + amount
        return sums

    def rows(self, tree: int) -> range:
        return range(self.starts[tree], self.starts[tree + 1])

    def transaction_fee(self, tree: int = 0) -> int | None:
        """Return the cost of the gas burnt so far; None if it is unknown."""
        total, rows = self.forest.conversions[tree].tokens_burnt, self.rows(tree)
        if total is None:
            return None if rows else 0  # without receipts it is not on the chain yet
        for position in rows:
            fee = self._added_fee(position)
            if fee is None:
                return None
            total += fee
        return total

    def _added_fee(self, position: int) -> int | None:
        """Return the part of the fee from a receipt: the tokens burnt, or a lost refund of gas."""
        if not self.was_executed[position]:
            return 0
        if self.is_refund[position]:
            is_gas = self.refund_kinds[position] == "refund_gas"
            is_lost = self.status[position] == FAILURE or self.is_refund_to_account(position)
            return self.deposits[position] if is_gas and is_lost else 0
        tokens, balance = self.tokens_burnt[position], self.balance_burnt[position]
        if tokens is None:
            return None
        if balance is None:  # before protocol version 83 the tokens did not include it
            price = self.burnt[1][position].gas_price
            is_fee = price is not None and tokens == price * (self.gas_burnt[position] or 0)
            return tokens if is_fee else None
        return tokens - balance

    def gas_key(self, position: int) -> str | None:
        """Return the gas key that paid for the transaction of a receipt; None for another key."""
        return self.gas_keys[self.trees[position]]

    def is_refund_to_account(self, position: int) -> bool:
        """Return True for a refund to the account, because its gas key has been deleted."""
        if self.refund_kinds[position] != "refund_gas" or self.gas_key(position) is None:
            return False
        key = self.trees[position], self.receivers[position]
        return self._gas_key_deletions.get(key, position) < position

    @cached_property
    def _gas_key_deletions(self) -> dict[tuple[int, str | None], int]:
        """The first receipt that deleted the gas key that paid, by tree and account."""
        positions: dict[tuple[int, str | None], int] = {}
        for position, status in enumerate(self.status):
            gas_key = self.gas_key(position)
            is_deletion = status in SUCCEEDED and gas_key in deleted_keys(self.actions[position])
            if gas_key is not None and is_deletion:
                positions.setdefault((self.trees[position], self.receivers[position]), position)
        return positions

    @cached_property
    def burnt(self) -> tuple[list[BurntTokens], list[BurntTokens]]:
        """The tokens that the transactions themselves burnt, and those that the receipts burnt."""
        firsts = [
            BurntTokens(gas_price(first.tokens_burnt, first.gas_burnt), 0)
            for first in self.forest.conversions
        ]
        burnt = [
            BurntTokens(gas_price(tokens, gas), 0)
            for tokens, gas in zip(self.tokens_burnt, self.gas_burnt, strict=True)
        ]
        contents = zip(self.trees, self.names, self.status, strict=True)
        # A failed receipt burns no balance: its changes are rolled back.
        for tree in {
            tree
            for tree, names, status in contents
            if status != FAILURE and may_burn_balance(names)
        }:
            rows = self.rows(tree)
            firsts[tree], *burnt[rows.start : rows.stop] = self._split_in_tree(tree)
        return firsts, burnt

    def _split_in_tree(self, tree: int) -> list[BurntTokens]:
        """Split the tokens that a transaction itself and its receipts burnt."""
        first = self.forest.conversions[tree]
        outcome = self.forest.results[tree].transaction_outcome
        block_hash = None if outcome is None else outcome.block_hash
        executions = [Execution(first.tokens_burnt, first.gas_burnt, block_hash)]
        for position in self.rows(tree):
            names = () if self.status[position] == FAILURE else self.names[position]
            block_hash = self.forest.columns["block_hash"][position]
            executions.append(
                Execution(self.tokens_burnt[position], self.gas_burnt[position], block_hash, names)
            )
        return split_burnt_tokens(executions)

    def _gas_in_calls(self, position: int) -> int | None:
        """Return the gas that a receipt burnt in its calls: all its gas, less its fees."""
        burnt = self.gas_burnt[position]
        if not self.was_executed[position] or burnt is None:
            return None
        # An undeclared kind of action may call; then the profile has the gas of its calls.
        has_no_calls = self.actions[position] is not None and self.names[position] <= _WITHOUT_CALLS
        if self.is_refund[position] or has_no_calls:
            return 0
        fees = self._fee_gas(position)
        if fees is not None and fees <= burnt:
            return burnt - fees
        execution = self.executions[position]
        return None if execution is None else _profile_gas(execution.outcome.metadata)

    def _fee_gas(self, position: int) -> int | None:
        """Return the gas for the fees of a receipt that has only calls; None if unknown."""
        rules, actions = self.rules[self.trees[position]], self.actions[position]
        if rules is None or actions is None or self.names[position] != CALLS:
            return None
        if self.status[position] == FAILURE and len(actions) > 1:
            return None  # the result does not say which actions ran
        total = rules.receipt_gas
        for action in actions:
            call = function_call(action)
            if call is None or call.args is None:
                return None
            total += rules.call_gas
            total += call_bytes(call.method_name or "", call.args) * rules.call_byte_gas
        return total

    def _refund_kind(self, position: int) -> str:
        """Return the kind of a refund: of gas, a deposit, or a deleted account's balance."""
        if self.forest.columns["signer_id"][position] not in (None, SYSTEM):
            return "refund_gas"
        parent = self.parents[position]
        succeeded = parent >= 0 and self.status[parent] != FAILURE
        is_deletion = succeeded and self.receivers[position] in beneficiaries(self.actions[parent])
        return "beneficiary" if is_deletion else "refund_deposit"

    def payer(self, position: int) -> str | None:
        """
        Return the account that a receipt's deposits come from.

        A successful receipt that refunds a deposit (a DeterministicStateInit keeps only what the
        account needs for its storage) or deletes its account pays from its own account.
        """
        parent = self.parents[position]
        if not self.is_refund[position] or parent < 0 or self.status[parent] not in SUCCEEDED:
            return self.senders[position]
        return SYSTEM if self.refund_kinds[position] == "refund_gas" else self.receivers[parent]

    def _reward(self, position: int, burnt: int | None) -> int | None:
        if burnt == 0 or not self.was_executed[position]:
            return 0
        rules = self.rules[self.trees[position]]
        if burnt is None or rules is None:
            return None
        share = burnt * rules.reward[0] // rules.reward[1]
        # An account that was deleted, or whose creation was rolled back, gets nothing.
        names, has_failed = self.names[position], self.status[position] == FAILURE
        if not share or ("CreateAccount" if has_failed else "DeleteAccount") in names:
            return 0
        if has_failed and "DeterministicStateInit" in names:
            return None  # the result does not say whether the account existed before
        price = self.burnt[1][position].gas_price
        return None if price is None else share * price


def deleted_keys(actions: Actions | None) -> list[str | None]:
    """List the public keys that actions delete."""
    return [
        action.delete_key.public_key
        for action in actions or ()
        if not isinstance(action, str) and action.delete_key is not None
    ]


def beneficiaries(actions: Actions | None) -> list[str | None]:
    """List the beneficiaries of the accounts that actions delete."""
    return [
        action.delete_account.beneficiary_id
        for action in actions or ()
        if not isinstance(action, str) and action.delete_account is not None
    ]


def _gas_key(result: TxResult) -> str | None:
    """Return the gas key that paid (empty if it is not named); None for another key."""
    # Nodes write nonce_index for gas keys alone (nearcore, SignedTransactionView).
    transaction = result.transaction
    if transaction is None or transaction.nonce_index is None:
        return None
    return transaction.public_key or ""


def _profile_gas(metadata: Raw | Metadata | None) -> int | None:
    profile = metadata
    if isinstance(metadata, Raw):
        profile = decode_member(metadata, "$..metadata", _METADATA)
    costs = profile.gas_profile if isinstance(profile, Metadata) else None
    if costs is None:
        return None
    return sum(parse_amount(str(cost.gas_used or 0), "$..gas_profile") for cost in costs)


def _names_and_deposit(actions: Actions | None) -> tuple[frozenset[str], int | None]:
    if actions is not None and len(actions) == 1:
        action = actions[0]
        if type(action) is Action and action.delegate is None and action.delegate_v2 is None:
            content = action.function_call or action.transfer
            if content is not None:  # most receipts
                return CALLS if content is action.function_call else TRANSFERS, deposit(action)
    return frozenset(map(action_name, actions or ())), total_deposit(actions)


def gas_columns(values: ReceiptValues) -> Columns:
    """Compute the columns of one tree's gas frame: the transaction's conversion, then receipts."""
    forest, [first] = values.forest, values.forest.conversions
    conversions, receipts = values.burnt
    burnt = [*conversions, *receipts]
    return {
        "position": range(-1, len(forest)),
        "kind": ["conversion", *forest.columns["kind"]],
        "account_id": [first.signer_id, *forest.columns["receiver_id"]],
        "gas_burnt": [first.gas_burnt, *values.gas_burnt],
        "gas_in_calls": [0, *values.gas_in_calls],
        "tokens_burnt": _or_na([first.tokens_burnt, *values.tokens_burnt]),
        "balance_burnt": _or_na([part.balance for part in burnt]),
        "gas_price": _or_na([part.gas_price for part in burnt]),
        "gas_refund": _or_na([0, *values.gas_refunds]),
        "contract_reward": _or_na([0, *values.rewards]),
    }


def _or_na(values: list[int | None]) -> list[Any]:
    return [NA if value is None else value for value in values]
