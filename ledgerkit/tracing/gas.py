"""
Gas and value of each receipt: gas burnt in calls, its price, refunds and contract rewards.

The signer buys gas in advance and gets most of it back: in the end it has paid for what was burnt.
A result does not contain the share that contracts receive of the gas that their calls burn: it is
computed from that gas, its price and the protocol's rules.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Raw
from pandas import NA

from ledgerkit import json_decoding
from ledgerkit.api.models.actions import Action, action_name, function_call
from ledgerkit.api.models.transactions import Metadata, decode_member
from ledgerkit.protocol.actions import KINDS_BY_NAME, call_bytes
from ledgerkit.tracing.action_fields import deposit, parse_amount, total_deposit
from ledgerkit.tracing.actions import SUCCEEDED
from ledgerkit.tracing.burnt_tokens import (
    BurntTokens,
    Execution,
    gas_price,
    may_take,
    split_burnt_tokens,
)
from ledgerkit.tracing.tree.frame_columns import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.api.models.actions import Actions
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.api.models.transactions import ExecutionOutcome, TxResult
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

    None stands for what the document does not contain. Amounts are in yoctoNEAR. `gas_keys` are
    the gas keys that paid, by transaction: empty if one is not named, None for any other key.
    Without the rules that were in force when a transaction ran, its rewards are unknown.
    """

    def __init__(self, forest: Forest, rules: Sequence[Rules | None]) -> None:
        self.forest, self.rules, self.actions = forest, rules, forest.actions()
        self.has_bodies = all(result.bodies is not None for result in forest.results)
        self.trees: list[int] = forest.trees.tolist()
        self.starts: list[int] = forest.starts.tolist()
        self.parents: list[int] = forest.parents.tolist()
        self.status: list[str] = forest.listed("status")
        self.is_refund = [kind == "refund" for kind in forest.listed("kind")]
        self.receivers: list[str | None] = forest.listed("receiver_id")
        self.senders: list[str | None] = forest.listed("predecessor_id")
        self.tokens_burnt: list[int | None] = forest.listed("tokens_burnt")
        self.gas_burnt: list[int | None] = forest.listed("gas_burnt")
        contents = [_names_and_deposit(receipt_actions) for receipt_actions in self.actions]
        self.names = [names for names, _ in contents]
        self.deposits = [total for _, total in contents]
        self.was_executed = [
            status in _EXECUTED or (status == UNKNOWN and gas != 0)
            for status, gas in zip(self.status, self.gas_burnt, strict=True)
        ]
        self.gas_keys = [_gas_key(result) for result in forest.results]
        self.refund_kinds = [
            self._refund_kind(at) if is_refund else None
            for at, is_refund in enumerate(self.is_refund)
        ]

    @cached_property
    def executions(self) -> list[ExecutionOutcome | None]:
        """The outcome of each receipt."""
        return self.forest.executions()

    @cached_property
    def taken(self) -> list[int | None]:
        """List what each receipt took from the balance or the gas keys of its receiver."""
        if not any(map(may_take, self.names)):
            return [0] * len(self.names)
        return [part.balance for part in self.burnt[1]]

    @cached_property
    def gas_in_calls(self) -> list[int | None]:
        """The gas that each receipt burnt in calls."""
        return [self._gas_in_calls(at) for at in range(len(self.forest))]

    @cached_property
    def rewards(self) -> list[int | None]:
        """The reward of the contract of each receipt."""
        return [self._reward(at, burnt) for at, burnt in enumerate(self.gas_in_calls)]

    @cached_property
    def gas_refunds(self) -> list[int | None]:
        """The sum of the gas refunds that each receipt created; None if one of them is unknown."""
        # A receipt with neither body nor outcome has no kind, and may be a refund.
        may_refund = [kind != "action" for kind in self.forest.columns["kind"]]
        sums: list[int | None] = [
            None if status == UNKNOWN and gas is None else 0
            for status, gas in zip(self.status, self.gas_burnt, strict=True)
        ]
        for at, parent in enumerate(self.parents):
            total, amount = sums[parent] if parent >= 0 else None, self.deposits[at]
            if total is None or not may_refund[at]:
                continue
            if amount is None:
                sums[parent] = None
            elif self.refund_kinds[at] == "refund_gas":
                sums[parent] = total + amount
        return sums

    def rows(self, tree: int) -> range:
        """Return the positions of the receipts of a tree."""
        return range(self.starts[tree], self.starts[tree + 1])

    def transaction_fee(self, tree: int = 0) -> int | None:
        """Return what was paid for gas so far, less refunds; None if it is unknown."""
        total, rows = self.forest.conversions[tree].tokens_burnt, self.rows(tree)
        if total is None:
            return None if rows else 0  # without receipts it is not on the chain yet
        for at in rows:
            fee = self._fee(at)
            if fee is None:
                return None
            total += fee
        return total

    def _fee(self, at: int) -> int | None:
        """Return what a receipt adds to the fee: the tokens burnt, or a refund that was lost."""
        if not self.was_executed[at]:
            return 0
        if self.is_refund[at]:
            is_gas = self.refund_kinds[at] == "refund_gas"
            is_lost = self.status[at] == FAILURE or self.is_refund_to_account(at)
            return self.deposits[at] if is_gas and is_lost else 0
        tokens, taken = self.tokens_burnt[at], self.taken[at]
        if tokens is None:
            return None
        if taken is None:  # before protocol version 83 the tokens did not include it
            price = self.burnt[1][at].gas_price
            is_fee = price is not None and tokens == price * (self.gas_burnt[at] or 0)
            return tokens if is_fee else None
        return tokens - taken

    def gas_key(self, at: int) -> str | None:
        """Return the gas key that paid for the transaction of a receipt; None for another key."""
        return self.gas_keys[self.trees[at]]

    def is_refund_to_account(self, at: int) -> bool:
        """Return True for a refund to the account, because its gas key has been deleted."""
        if self.refund_kinds[at] != "refund_gas" or self.gas_key(at) is None:
            return False
        return self._gas_key_deletions.get((self.trees[at], self.receivers[at]), at) < at

    @cached_property
    def _gas_key_deletions(self) -> dict[tuple[int, str | None], int]:
        """The first receipt in which an account deleted the gas key that paid, by tree."""
        positions: dict[tuple[int, str | None], int] = {}
        for at, status in enumerate(self.status):
            gas_key = self.gas_key(at)
            is_deletion = status in SUCCEEDED and gas_key in deleted_keys(self.actions[at])
            if gas_key is not None and is_deletion:
                positions.setdefault((self.trees[at], self.receivers[at]), at)
        return positions

    @cached_property
    def burnt(self) -> tuple[list[BurntTokens], list[BurntTokens]]:
        """The tokens that the transactions themselves burnt, and those that the receipts did."""
        firsts = [
            BurntTokens(gas_price(first.tokens_burnt, first.gas_burnt), 0)
            for first in self.forest.conversions
        ]
        burnt = [
            BurntTokens(gas_price(tokens, gas), 0)
            for tokens, gas in zip(self.tokens_burnt, self.gas_burnt, strict=True)
        ]
        # What a failed receipt took from a balance is rolled back and not counted.
        taking = [at for at, names in enumerate(self.names) if may_take(names)]
        for tree in {self.trees[at] for at in taking if self.status[at] != FAILURE}:
            at = self.rows(tree)
            firsts[tree], *burnt[at.start : at.stop] = self._split_in_tree(tree)
        return firsts, burnt

    def _split_in_tree(self, tree: int) -> list[BurntTokens]:
        """Split the tokens that a transaction itself and its receipts burnt."""
        first = self.forest.conversions[tree]
        own = self.forest.results[tree].transaction_outcome
        own_block = None if own is None else own.block_hash
        executions = [Execution(first.tokens_burnt, first.gas_burnt, own_block)]
        for at in self.rows(tree):
            names = () if self.status[at] == FAILURE else self.names[at]
            block_hash = self.forest.columns["block_hash"][at]
            executions.append(
                Execution(self.tokens_burnt[at], self.gas_burnt[at], block_hash, names)
            )
        return split_burnt_tokens(executions)

    def _gas_in_calls(self, at: int) -> int | None:
        """Return the gas burnt inside calls: the gas burnt by the receipt, less its fees."""
        burnt = self.gas_burnt[at]
        if not self.was_executed[at] or burnt is None:
            return None
        # A kind that is not declared may call, and the profile has the gas of its calls.
        has_no_calls = self.actions[at] is not None and self.names[at] <= _WITHOUT_CALLS
        if self.is_refund[at] or has_no_calls:
            return 0
        fees = self._fees(at)
        if fees is not None and fees <= burnt:
            return burnt - fees
        execution = self.executions[at]
        return None if execution is None else _profile_gas(execution.outcome.metadata)

    def _fees(self, at: int) -> int | None:
        """Sum the fees of a receipt that has only calls; None unless all fees are known."""
        rules, actions = self.rules[self.trees[at]], self.actions[at]
        if rules is None or actions is None or self.names[at] != CALLS:
            return None
        if self.status[at] == FAILURE and len(actions) > 1:
            return None  # the result does not say which actions ran
        total = rules.receipt_gas
        for action in actions:
            call = function_call(action)
            if call is None or call.args is None:
                return None
            total += rules.call_gas
            total += call_bytes(call.method_name or "", call.args) * rules.call_byte_gas
        return total

    def _refund_kind(self, at: int) -> str:
        """Classify a refund: of gas, of a deposit, or the balance of a deleted account."""
        if self.forest.columns["signer_id"][at] not in (None, SYSTEM):
            return "refund_gas"
        parent = self.parents[at]
        succeeded = parent >= 0 and self.status[parent] != FAILURE
        is_deletion = succeeded and self.receivers[at] in beneficiaries(self.actions[parent])
        return "beneficiary" if is_deletion else "refund_deposit"

    def payer(self, at: int) -> str | None:
        """
        Return the account that a receipt's deposits come from.

        A successful receipt that refunds a deposit (a DeterministicStateInit keeps only what the
        account needs for its storage) or deletes its account pays from its own account.
        """
        parent = self.parents[at]
        if not self.is_refund[at] or parent < 0 or self.status[parent] not in SUCCEEDED:
            return self.senders[at]
        return SYSTEM if self.refund_kinds[at] == "refund_gas" else self.receivers[parent]

    def _reward(self, at: int, burnt: int | None) -> int | None:
        if burnt == 0 or not self.was_executed[at]:
            return 0
        rules = self.rules[self.trees[at]]
        if burnt is None or rules is None:
            return None
        share = burnt * rules.reward[0] // rules.reward[1]
        # An account that was deleted, or whose creation was rolled back, gets nothing.
        names, has_failed = self.names[at], self.status[at] == FAILURE
        if not share or ("CreateAccount" if has_failed else "DeleteAccount") in names:
            return 0
        if has_failed and "DeterministicStateInit" in names:
            return None  # the result does not say whether the account existed before
        price = self.burnt[1][at].gas_price
        return None if price is None else share * price


def deleted_keys(actions: Actions | None) -> list[str | None]:
    """List the public keys that actions delete."""
    deletions = (None if isinstance(each, str) else each.delete_key for each in actions or ())
    return [deletion.public_key for deletion in deletions if deletion is not None]


def beneficiaries(actions: Actions | None) -> list[str | None]:
    """List the accounts that receive the balance of an account that actions delete."""
    deletions = (None if isinstance(each, str) else each.delete_account for each in actions or ())
    return [deletion.beneficiary_id for deletion in deletions if deletion is not None]


def _gas_key(result: TxResult) -> str | None:
    """Return the gas key that paid (empty if it is not named); None for any other key."""
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
        "at": range(-1, len(forest)),
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
