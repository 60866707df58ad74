"""
Gas and value of each receipt: gas burnt in calls, its price, refunds and contract rewards.

The signer buys gas in advance and gets most of it back: in the end it has paid for what was burnt.
A result does not contain the share that contracts receive of the gas that their calls burn: it is
computed from that gas, its price and the protocol's rules.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from pandas import NA

from ledgerkit.tracing.action_fields import action_name, delegate_action, deposit, parse_amount
from ledgerkit.tracing.actions import SUCCEEDED, receipt_key_columns
from ledgerkit.tracing.burnt_tokens import BurntTokens, Execution, split_burnt_tokens
from ledgerkit.tracing.tree.frame_columns import SYSTEM

if TYPE_CHECKING:
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.api.models.transactions import TxResult
    from ledgerkit.tracing.action_fields import Actions
    from ledgerkit.tracing.tree import Tree

    Columns = dict[str, Any]

FAILURE, UNKNOWN = "failure", "unknown"


class ReceiptValues:
    """
    The deposits, gas, refunds and contract rewards of each receipt, by position.

    None stands for what the document does not contain. Amounts are in yoctoNEAR.

    Parameters
    ----------
    tree
        The receipt tree.
    result
        The result that the tree was built from.
    actions
        The actions of each receipt.
    rules
        The rules in force when the transaction ran; without them rewards are unknown.
    """

    def __init__(
        self, tree: Tree, result: TxResult, actions: list[Actions | None], rules: Rules | None
    ) -> None:
        columns = tree.columns
        self.tree, self.rules, self.actions = tree, rules, actions
        self.has_bodies = result.bodies is not None
        self.parents: list[int] = tree.parents.tolist()
        self.status: list[str] = columns["status"].tolist()
        self.is_refund: list[bool] = [kind == "refund" for kind in columns["kind"]]
        self.receivers: list[str | None] = columns["receiver_id"].tolist()
        self.senders: list[str | None] = columns["predecessor_id"].tolist()
        self.signers: list[str | None] = columns["signer_id"].tolist()
        self.deposits = [total_deposit(receipt_actions) for receipt_actions in actions]
        self.tokens_burnt: list[int | None] = [
            None if burnt is NA else burnt for burnt in columns["tokens_burnt"]
        ]
        self.gas_burnt: list[int | None] = columns["gas_burnt"].tolist()
        profiles = _profile_gas(result)
        self.gas_in_calls = [self._gas_in_calls(at, profiles) for at in range(len(tree))]
        self.gas_key = _gas_key(result)
        self.conversion, *self.burnt = self._split_burnt_tokens(result)
        self.refund_kinds = [self._refund_kind(at) for at in range(len(tree))]
        self.gas_refunds = self._sum_gas_refunds()
        self.rewards = [self._reward(at) for at in range(len(tree))]

    def _sum_gas_refunds(self) -> list[int | None]:
        """Sum the gas refunds that each receipt created; None if one of them is unknown."""
        # A receipt with neither body nor outcome has no kind, and may be a refund.
        may_refund = [kind != "action" for kind in self.tree.columns["kind"]]
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

    def action_names(self, at: int) -> set[str]:
        """Return the names of a receipt's actions."""
        return set(map(action_name, self.actions[at] or ()))

    def was_executed(self, at: int) -> bool:
        """Return True if a receipt has run; one of unknown status has, unless it burnt no gas."""
        if self.status[at] == UNKNOWN:
            return self.gas_burnt[at] != 0
        return self.status[at] == FAILURE or self.status[at] in SUCCEEDED

    def transaction_fee(self) -> int | None:
        """Return what was paid for gas so far, less refunds; None if it is unknown."""
        first = self.tree.conversion.tokens_burnt
        if first is None and not len(self.tree):
            return 0  # not on the chain yet
        parts = [first, *(self._fee(at) for at in range(len(self.tree)))]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    def _fee(self, at: int) -> int | None:
        """Return what a receipt adds to the fee: the tokens burnt, or a refund that was lost."""
        if not self.was_executed(at):
            return 0
        if self.is_refund[at]:
            is_gas = self.refund_kinds[at] == "refund_gas"
            is_lost = self.status[at] == FAILURE or self.is_refund_to_account(at)
            return self.deposits[at] if is_gas and is_lost else 0
        tokens, (price, taken) = self.tokens_burnt[at], self.burnt[at]
        if tokens is None:
            return None
        if taken is None:  # before protocol version 83 the tokens did not include it
            is_fee = price is not None and tokens == price * (self.gas_burnt[at] or 0)
            return tokens if is_fee else None
        return tokens - taken

    def is_refund_to_account(self, at: int) -> bool:
        """Return True for a refund to the account, because its gas key has been deleted."""
        if self.refund_kinds[at] != "refund_gas":
            return False
        return self._gas_key_deletions.get(self.receivers[at], at) < at

    @cached_property
    def _gas_key_deletions(self) -> dict[str | None, int]:
        """The first receipt in which an account deleted the gas key that paid, by account."""
        positions: dict[str | None, int] = {}
        for at, status in enumerate(self.status):
            is_deletion = status in SUCCEEDED and self.gas_key in deleted_keys(self.actions[at])
            if self.gas_key is not None and is_deletion:
                positions.setdefault(self.receivers[at], at)
        return positions

    def _split_burnt_tokens(self, result: TxResult) -> list[BurntTokens]:
        """Split the tokens that the transaction itself and each receipt burnt."""
        first, own = self.tree.conversion, result.transaction_outcome
        own_block = None if own is None else own.block_hash
        executions = [Execution(first.tokens_burnt, first.gas_burnt, own_block)]
        blocks = self.tree.columns["block_hash"].tolist()
        for at, status in enumerate(self.status):
            # What a failed receipt took from a balance is rolled back and not counted.
            names = () if status == FAILURE else self.action_names(at)
            tokens, gas = self.tokens_burnt[at], self.gas_burnt[at]
            executions.append(Execution(tokens, gas, blocks[at], names))
        return split_burnt_tokens(executions)

    def _gas_in_calls(self, at: int, profiles: dict[str, int | None]) -> int | None:
        """Return the gas burnt inside calls: the gas burnt by the receipt, less its fees."""
        burnt, actions = self.gas_burnt[at], self.actions[at]
        if not self.was_executed(at) or burnt is None:
            return None
        has_calls = actions is None or "FunctionCall" in self.action_names(at)
        if self.is_refund[at] or not has_calls:
            return 0
        fees = self._fees(at)
        if fees is None or burnt < fees:
            return profiles.get(self.tree.ids[at])
        return burnt - fees

    def _fees(self, at: int) -> int | None:
        """Sum the fees of a receipt that has only calls; None unless all fees are known."""
        rules, actions = self.rules, self.actions[at]
        if rules is None or actions is None or self.action_names(at) != {"FunctionCall"}:
            return None
        if self.status[at] == FAILURE and len(actions) > 1:
            return None  # the result does not say which actions ran
        total = rules.receipt_gas
        for action in actions:
            call = None if isinstance(action, str) else action.function_call
            if call is None or call.args is None:
                return None
            size = len((call.method_name or "").encode()) + len(call.args)
            total += rules.call_gas + size * rules.call_byte_gas
        return total

    def _refund_kind(self, at: int) -> str | None:
        """Classify a refund: of gas, of a deposit, or the balance of a deleted account."""
        if not self.is_refund[at]:
            return None
        if self.signers[at] not in (None, SYSTEM):
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

    def _reward(self, at: int) -> int | None:
        """Return the contract's share of the gas that its calls burnt, including failed calls."""
        burnt, rules = self.gas_in_calls[at], self.rules
        if not self.was_executed(at) or burnt == 0:
            return 0
        if burnt is None or rules is None:
            return None
        share = burnt * rules.reward[0] // rules.reward[1]
        # An account that was deleted, or whose creation was rolled back, gets nothing.
        names, has_failed = self.action_names(at), self.status[at] == FAILURE
        if not share or ("CreateAccount" if has_failed else "DeleteAccount") in names:
            return 0
        if has_failed and "DeterministicStateInit" in names:
            return None  # the result does not say whether the account existed before
        price = self.burnt[at].gas_price
        return None if price is None else share * price


def total_deposit(actions: Actions | None) -> int | None:
    """Sum the deposits of actions, including those inside a Delegate; None if one is unknown."""
    if actions is None:
        return None
    total = 0
    for action in actions:
        yocto = action_deposit(action)
        if yocto is None:
            return None
        total += yocto
    return total


def action_deposit(action: Any) -> int | None:
    """Return the deposit of an action, of a Delegate that of its content; None if unknown."""
    inner = delegate_action(action)
    return deposit(action) if inner is None else total_deposit(inner.actions)


def deleted_keys(actions: Actions | None) -> list[str | None]:
    """List the public keys that actions delete."""
    known = [action for action in actions or () if not isinstance(action, str)]
    return [action.delete_key.public_key for action in known if action.delete_key is not None]


def beneficiaries(actions: Actions | None) -> list[str | None]:
    """List the accounts that receive the balance of an account that actions delete."""
    known = [action for action in actions or () if not isinstance(action, str)]
    return [
        action.delete_account.beneficiary_id
        for action in known
        if action.delete_account is not None
    ]


def _gas_key(result: TxResult) -> str | None:
    """Return the gas key that paid (empty if it is not named); None for any other key."""
    # Nodes write nonce_index for gas keys alone (nearcore, SignedTransactionView).
    transaction = result.transaction
    if transaction is None or transaction.nonce_index is None:
        return None
    return transaction.public_key or ""


def _profile_gas(result: TxResult) -> dict[str, int | None]:
    """Sum the gas profile of each outcome, by receipt; None for an outcome without a profile."""
    sums: dict[str, int | None] = {}
    for _, piece in result.executions.pieces():
        for execution in piece:
            metadata = execution.outcome.metadata
            costs = None if metadata is None else metadata.gas_profile
            gas = None if costs is None else sum(_profile_entry(cost.gas_used) for cost in costs)
            sums.setdefault(execution.id or "", gas)
    return sums


def _profile_entry(value: int | str | None) -> int:
    """Parse the gas of a profile's entry, which nodes send as text."""
    return parse_amount(value, "$..gas_profile") if isinstance(value, str) else value or 0


def gas_columns(values: ReceiptValues) -> Columns:
    """Compute the columns of the gas frame: the transaction's conversion, then each receipt."""
    tree, first, burnt = values.tree, values.tree.conversion, [values.conversion, *values.burnt]
    return receipt_key_columns(tree, range(-1, len(tree))) | {
        "kind": ["conversion", *tree.columns["kind"]],
        "account_id": [first.signer_id, *tree.columns["receiver_id"]],
        "gas_burnt": [first.gas_burnt, *values.gas_burnt],
        "gas_in_calls": [0, *values.gas_in_calls],
        "tokens_burnt": _or_na([first.tokens_burnt, *values.tokens_burnt]),
        "balance_burnt": _or_na([part.balance for part in burnt]),
        "gas_price": _or_na([part.gas_price for part in burnt]),
        "gas_refund": _or_na([0, *values.gas_refunds]),
        "contract_reward": _or_na([0, *values.rewards]),
    }


def _or_na(values: list[int | None]) -> list[Any]:
    """Replace None by NA."""
    return [NA if value is None else value for value in values]
