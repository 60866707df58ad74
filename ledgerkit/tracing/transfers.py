"""
What moved, between whom, and who paid for it: transfers, balance changes, gas.

A result does not say what the signer paid for gas, but what became of it: all of it was
either burnt or given back. And no result tells the share that contracts get of what their
calls burn: it follows from the gas of each call, its price and the rules in force.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pandas import NA

from ledgerkit.tracing import actions as tracing_actions
from ledgerkit.tracing import token_events
from ledgerkit.tracing.token_events import Moved
from ledgerkit.tracing.tree.tables import action_name, amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.api.models.transactions import Action, TxResult
    from ledgerkit.tracing.tree import Tree

    Actions = Sequence[Action | str]
    Columns = dict[str, Any]

NEAR, SYSTEM = "near", "system"
FAILURE = "failure"
_SHOWN = 3
_NOT_TOLD = "what they move is not told, and not counted, for"
_NOT_RUN = "not run yet, so that what was paid for their gas is not counted:"
_NO_SHARE = (
    "the contract's share of the gas, which follows from the rules in force, is not known and not "
    "counted for"
)
# Since protocol version 86 the creation of an account burns this much in all; the gas for it
# counts towards that.
_CREATION_TOKENS, _CREATION_GAS = 7 * 10**21, 7_200_000_000_000
_KIND_OF = {
    "Transfer": "transfer",
    "TransferToGasKey": "transfer",
    "FunctionCall": "deposit",
    "DeterministicStateInit": "deposit",
}


@dataclass(frozen=True, slots=True)
class Movements:
    """
    What moved in one transaction.

    `near` are the changes of NEAR by account, `in_calls`, `prices`, `refunds` and `rewards`
    speak of positions in the tree, and `notes` say what is not known.
    """

    rows: list[Moved]
    near: dict[str, int]
    in_calls: list[int | None]
    prices: list[int | None]
    refunds: list[int]
    rewards: list[int | None]
    notes: tuple[str, ...]


def movements(
    tree: Tree, result: TxResult, asked: list[Actions | None], rules: Rules | None
) -> Movements:
    """
    Find out what moved.

    Parameters
    ----------
    tree
        The receipt tree.
    result
        The result it was made from.
    asked
        What each receipt asks for, from `ledgerkit.tracing.actions.asked`.
    rules
        Those in force when it ran; without them the rewards of contracts are not known.

    Returns
    -------
    movements
        Transfers in the order of receipts, and everything else that is told of value.
    """
    facts = _Facts(tree, result, asked, rules)
    tokens, odd = token_events.moved(tree)
    rows = sorted([*_near_rows(facts), *tokens], key=lambda row: row.at)
    return Movements(
        rows,
        _near_changes(facts),
        facts.in_calls,
        facts.prices,
        facts.refunds,
        facts.rewards,
        (*_gaps(facts), *odd),
    )


class _Facts:
    """What is known of each receipt, by position."""

    def __init__(
        self, tree: Tree, result: TxResult, asked: list[Actions | None], rules: Rules | None
    ) -> None:
        """Gather it."""
        columns = tree.columns
        self.tree, self.rules, self.columns = tree, rules, columns
        self.is_plain = result.bodies is None
        self.parents: list[int] = tree.parents.tolist()
        self.status: list[str] = columns["status"].tolist()
        self.is_refund: list[bool] = [kind == "refund" for kind in columns["kind"]]
        self.receivers: list[str | None] = columns["receiver_id"].tolist()
        self.senders: list[str | None] = columns["predecessor_id"].tolist()
        self.asked = asked
        self.carried = [_carried(actions) for actions in self.asked]
        self.tokens = [None if burnt is NA else burnt for burnt in columns["tokens_burnt"]]
        self.gas: list[int | None] = columns["gas_burnt"].tolist()
        profile = _profiled(result)
        self.in_calls = [self._in_calls(at, profile) for at in range(len(tree))]
        self.prices = [_price(*burnt) for burnt in zip(self.tokens, self.gas, strict=True)]
        self.kinds = [self._kind_of_refund(at) for at in range(len(tree))]
        self.refunds = [0] * len(tree)
        for at, kind in enumerate(self.kinds):
            if kind == "refund_gas" and self.parents[at] >= 0:
                self.refunds[self.parents[at]] += self.carried[at] or 0
        self.rewards = [self._reward(at) for at in range(len(tree))]

    def names(self, at: int) -> set[str]:
        """Name the actions of a receipt."""
        return set(map(action_name, self.asked[at] or ()))

    def ran(self, at: int) -> bool:
        """Tell whether a receipt was executed."""
        return self.status[at] == FAILURE or self.status[at] in tracing_actions.SUCCEEDED

    def _in_calls(self, at: int, profile: dict[str, int | None]) -> int | None:
        """Tell what contracts burnt inside calls: what the receipt burnt beside its fees."""
        burnt, actions = self.gas[at], self.asked[at]
        if not self.ran(at) or burnt is None:
            return None
        if self.is_refund[at] or (actions is not None and "FunctionCall" not in self.names(at)):
            return 0
        fees = self._fees(at)
        if fees is None or burnt < fees:
            return profile.get(self.tree.ids[at])
        return burnt - fees

    def _fees(self, at: int) -> int | None:
        """Add up the fees of a receipt of calls alone; None where not all of them can be known."""
        rules, actions = self.rules, self.asked[at]
        if rules is None or actions is None or self.names(at) != {"FunctionCall"}:
            return None
        if self.status[at] == FAILURE and len(actions) > 1:
            return None
        total = rules.receipt_gas
        for action in actions:
            call = None if isinstance(action, str) else action.function_call
            if call is None or call.args is None:
                return None
            size = len((call.method_name or "").encode()) + len(call.args)
            total += rules.call_gas + size * rules.call_byte_gas
        return total

    def _kind_of_refund(self, at: int) -> str | None:
        """Tell what the chain gives back: gas to the signer, a deposit, or a whole account."""
        if not self.is_refund[at]:
            return None
        if self.columns["signer_id"][at] not in (None, SYSTEM):
            return "refund_gas"
        parent = self.parents[at]
        ended = parent >= 0 and self.status[parent] != FAILURE
        return (
            "beneficiary" if ended and "DeleteAccount" in self.names(parent) else "refund_deposit"
        )

    def _reward(self, at: int) -> int | None:
        """Tell what the contract got for its calls, failed ones too."""
        burnt, rules = self.in_calls[at], self.rules
        if not self.ran(at) or burnt == 0:
            return 0
        if burnt is None or rules is None:
            return None
        gone = "CreateAccount" if self.status[at] == FAILURE else "DeleteAccount"
        share = burnt * rules.reward[0] // rules.reward[1]
        if not share or gone in self.names(at):
            return 0  # nobody is there to get it
        price = self.prices[at]
        return None if price is None else share * price


def _carried(actions: Actions | None) -> int | None:
    """Add up what actions move, those inside a Delegate too; None if one of them is not told."""
    if actions is None:
        return None
    total = 0
    for action in actions:
        inner = tracing_actions.delegated(action)
        part = tracing_actions.deposit(action) if inner is None else _carried(inner.actions or ())
        if part is None:
            return None
        total += part
    return total


def _profiled(result: TxResult) -> dict[str, int | None]:
    """Add up what each outcome says that its calls burnt; None where it says nothing."""
    found: dict[str, int | None] = {}
    for _, piece in result.executions.pieces():
        for execution in piece:
            told = execution.outcome.metadata
            costs = None if told is None else told.gas_profile
            gas = None if costs is None else sum(_gas(cost.gas_used) for cost in costs)
            found.setdefault(execution.id or "", gas)
    return found


def _gas(value: int | str | None) -> int:
    """Read gas, which a profile writes as text."""
    return amount(value, "$..gas_profile") if isinstance(value, str) else value or 0


def _price(tokens: int | None, gas: int | None) -> int | None:
    """Tell at which price gas was burnt; None where nothing tells it."""
    if tokens is None or not gas:
        return None
    price, rest = divmod(tokens, gas)
    if not rest:
        return price
    # The fee may hold the rest of what it burns to create an account.
    if gas <= _CREATION_GAS or tokens < _CREATION_TOKENS:
        return None
    price, rest = divmod(tokens - _CREATION_TOKENS, gas - _CREATION_GAS)
    return None if rest else price


def _paid_for_gas(facts: _Facts) -> int:
    """Add up what was burnt of the signer's gas and what was given back: what it had paid."""
    rows = range(len(facts.tree))
    return sum(
        (facts.tokens[at] or 0) + facts.refunds[at] for at in rows if not facts.is_refund[at]
    )


def _fee(facts: _Facts) -> int:
    """Tell what the signer paid when the transaction was taken in, beside deposits."""
    return (facts.tree.conversion.tokens_burnt or 0) + _paid_for_gas(facts)


def _near_rows(facts: _Facts) -> Iterable[Moved]:
    """List what moved of NEAR."""
    signer_id, fee = facts.tree.conversion.signer_id, _fee(facts)
    if signer_id is not None and fee:
        yield Moved(-1, "fee", NEAR, signer_id, SYSTEM, fee)
    for at, status in enumerate(facts.status):
        sender_id, receiver_id = facts.senders[at], facts.receivers[at]
        if status in tracing_actions.SUCCEEDED:
            kind = facts.kinds[at]
            if kind == "beneficiary":
                sender_id = facts.receivers[facts.parents[at]]
            for asked, moved in _deposits(facts.asked[at]):
                yield Moved(at, kind or asked, NEAR, sender_id, receiver_id, moved)
        reward = facts.rewards[at]
        if reward:
            yield Moved(at, "contract_reward", NEAR, SYSTEM, receiver_id, reward)


def _deposits(actions: Actions | None) -> list[tuple[str, int]]:
    """Add up what the actions of a receipt move, by kind."""
    found: dict[str, int] = {}
    for action in actions or ():
        inner = tracing_actions.delegated(action)
        kind = _KIND_OF.get(action_name(action), "delegated")
        part = tracing_actions.deposit(action) if inner is None else _carried(inner.actions or ())
        found[kind] = found.get(kind, 0) + (part or 0)
    return [(kind, total) for kind, total in found.items() if total]


def _near_changes(facts: _Facts) -> dict[str, int]:
    """Add up who has how much more or less: what leaves, leaves when its receipt is made."""
    found: dict[str, int] = {}

    def add(account_id: str | None, change: int) -> None:
        if account_id is not None and account_id != SYSTEM:
            found[account_id] = found.get(account_id, 0) + change

    add(facts.tree.conversion.signer_id, -_fee(facts))
    for at, status in enumerate(facts.status):
        moved = facts.carried[at] or 0
        if facts.kinds[at] == "beneficiary":
            add(facts.receivers[facts.parents[at]], -moved)
        add(facts.senders[at], -moved)
        if status in tracing_actions.SUCCEEDED:
            add(facts.receivers[at], moved)
        add(facts.receivers[at], facts.rewards[at] or 0)
    return found


def _gaps(facts: _Facts) -> list[str]:
    """Say what of the value that moved is not known."""
    rows = range(len(facts.tree))
    gaps = (
        # That a plain document has no bodies is said once, of all of them.
        (_NOT_TOLD, [at for at in rows if facts.carried[at] is None and not facts.is_plain]),
        (_NOT_RUN, [at for at in rows if not facts.ran(at)]),
        (_NO_SHARE, [at for at in rows if facts.rewards[at] is None]),
    )
    return [f"{what} {_some(facts, those)}" for what, those in gaps if those]


def _some(facts: _Facts, places: list[int]) -> str:
    """Name a few receipts of many."""
    named = ", ".join(facts.tree.ids[places[:_SHOWN]])
    return named + (f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else "")


def transfer_columns(tree: Tree, found: Movements) -> Columns:
    """
    Compute the columns of the transfers frame.

    Parameters
    ----------
    tree
        The receipt tree.
    found
        What moved in it.

    Returns
    -------
    columns
        One sequence a column, one row a movement.
    """
    rows = found.rows
    return tracing_actions.at_receipts(tree, [row.at for row in rows]) | {
        "kind": [row.kind for row in rows],
        "asset": [row.asset for row in rows],
        "sender_id": [row.sender_id for row in rows],
        "receiver_id": [row.receiver_id for row in rows],
        "amount": [row.amount for row in rows],
        "memo": [row.memo for row in rows],
    }


def change_columns(found: Movements) -> Columns:
    """
    Compute the columns of the balance_changes frame.

    Parameters
    ----------
    found
        What moved.

    Returns
    -------
    columns
        One sequence a column, one row an account and asset whose balance is another, by name.
    """
    changes = {(account_id, NEAR): change for account_id, change in found.near.items()}
    for row in found.rows:
        if row.asset != NEAR:
            for account_id, change in ((row.sender_id, -row.amount), (row.receiver_id, row.amount)):
                if account_id is not None:
                    key = (account_id, row.asset)
                    changes[key] = changes.get(key, 0) + change
    told = sorted((key, change) for key, change in changes.items() if change)
    return {
        "account_id": [account_id for (account_id, _), _ in told],
        "asset": [asset for (_, asset), _ in told],
        "change": [change for _, change in told],
    }


def gas_columns(tree: Tree, found: Movements) -> Columns:
    """
    Compute the columns of the gas frame.

    Parameters
    ----------
    tree
        The receipt tree.
    found
        What moved in it.

    Returns
    -------
    columns
        One sequence a column: the transaction's conversion, then one row a receipt.
    """
    columns, first = tree.columns, tree.conversion
    tokens = NA if first.tokens_burnt is None else first.tokens_burnt
    price = _price(first.tokens_burnt, first.gas_burnt)
    return tracing_actions.at_receipts(tree, range(-1, len(tree))) | {
        "kind": ["conversion", *columns["kind"]],
        "account_id": [first.signer_id, *columns["receiver_id"]],
        "gas_burnt": [first.gas_burnt, *columns["gas_burnt"].tolist()],
        "gas_in_calls": [0, *found.in_calls],
        "tokens_burnt": [tokens, *columns["tokens_burnt"]],
        "gas_price": [NA if one is None else one for one in (price, *found.prices)],
        "gas_refund": [0, *found.refunds],
        "contract_reward": [NA if one is None else one for one in (0, *found.rewards)],
    }
