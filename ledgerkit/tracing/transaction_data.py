"""The data of a transaction from which its headline and explanation are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from ledgerkit.api import chain_errors
from ledgerkit.api.models.actions import Actions, delegate_action, function_calls
from ledgerkit.api.models.transactions import DISTRIBUTION, Status, TxResult, decode_member
from ledgerkit.protocol.actions import KINDS_BY_NAME, is_delegate
from ledgerkit.tracing.amount_texts import IN_INTENTS, AmountTexts, plain, split_asset
from ledgerkit.tracing.gas import UNKNOWN, ReceiptValues
from ledgerkit.tracing.tree.outcomes import other_status

if TYPE_CHECKING:
    from ledgerkit.errors import LedgerError
    from ledgerkit.tracing.intents import IntentMove
    from ledgerkit.tracing.token_events import Transfer
    from ledgerkit.tracing.tree import Tree

_TOKEN_METHODS = {"ft_transfer", "ft_transfer_call", "near_withdraw"}
_MAX_TOKENS = 20  # metadata to read for one transaction


class Request(NamedTuple):
    """The actions that an account signed, None if unknown, and their relayer, if any."""

    sender_id: str | None
    receiver_id: str | None
    actions: Actions | None
    relayer_id: str | None = None


@dataclass(slots=True)
class TransactionData:
    """
    A transaction; `failures` are the errors of receipts, by their position.

    `verdict` is that of `ledgerkit.tracing.tree.verdict`. `non_refunds` are the positions of
    receipts other than refunds, and `failed_receipts` the failed ones among them. `request` is None
    if the document does not contain it. `data_edges` are producer, consumer and data_id.
    `column` lists a column of the receipts, None where a value is missing.
    """

    tree: Tree
    verdict: str
    result: TxResult
    values: ReceiptValues
    transfers: list[Transfer]
    failures: dict[int, LedgerError]
    amounts: AmountTexts
    intents: list[IntentMove]
    non_refunds: list[int] = field(init=False)
    failed_receipts: list[int] = field(init=False)
    request: Request | None = field(init=False)
    data_edges: list[tuple[int, int, str]] = field(init=False)
    column: Callable[[str], list[Any]] = field(init=False, repr=False)
    _names: dict[int, str] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.column = self.tree.columns.__getitem__
        kinds = self.column("kind")
        self.non_refunds = [row for row, kind in enumerate(kinds) if kind != "refund"]
        self.failed_receipts = [row for row in self.non_refunds if row in self.failures]
        self.request = read_request(self.result)
        self.data_edges = self.tree.data

    @property
    def has_other_kinds(self) -> bool:
        """True if the kind of a status, receipt or action is undeclared."""
        column, values = self.column, self.values
        statuses = zip(column("status"), column("error_message"), strict=True)
        bodies = zip(column("actions"), values.actions, strict=True)
        return (
            any(status == UNKNOWN and message for status, message in statuses)
            or any(not names <= KINDS_BY_NAME.keys() for names in values.names)
            or any(kind not in (None, DISTRIBUTION) and actions is None for kind, actions in bodies)
            or (self.verdict == "unknown" and other_status(self.result.status) is not None)
        )

    @property
    def lacks(self) -> str:
        """The beginning of a sentence about unknown data."""
        return (
            "ledgerkit does not know" if self.has_other_kinds else "the document does not contain"
        )

    def name(self, position: int) -> str:
        """Return a name for a receipt: its method or actions, and its receiver."""
        if position not in self._names:
            self._names[position] = self._build_name(position)
        return self._names[position]

    def _build_name(self, position: int) -> str:
        receiver_id = account(self.column("receiver_id")[position])
        if self.column("kind")[position] == "refund":
            return f"the refund to {receiver_id}"
        actions = self.column("actions")[position]
        method = None if is_delegate(actions) else self.column("method_name")[position]
        if method:
            return plain(f"{method} on {receiver_id}")
        if not actions:
            return f"{'a' if actions is None else 'an empty'} receipt for {receiver_id}"
        return plain(f"{actions} to {receiver_id}")


def read_request(result: TxResult) -> Request | None:
    """Return the request; None if the document does not contain it."""
    transaction = result.transaction
    if transaction is None or transaction.signer_id is None:
        return None
    actions = transaction.actions
    inner = delegate_action(actions[0]) if actions and len(actions) == 1 else None
    if inner is None or inner.actions is None:
        return Request(transaction.signer_id, transaction.receiver_id, actions)
    return Request(inner.sender_id, inner.receiver_id, inner.actions, transaction.signer_id)


def token_contracts(request: Request | None, transfers: list[Transfer]) -> list[str]:
    """List the contracts of the fungible tokens of a transaction, at most 20."""
    actions = request.actions if request else None
    methods = {call.method_name for call in function_calls(actions or ())}
    is_token = request is not None and request.receiver_id and methods & _TOKEN_METHODS
    contracts = [request.receiver_id] if request and is_token else []
    assets = (split_asset(row.asset.removeprefix(IN_INTENTS)) for row in transfers)
    contracts += [contract_id for standard, contract_id, _ in assets if standard == "nep141"]
    return [contract_id for contract_id in dict.fromkeys(contracts) if contract_id][:_MAX_TOKENS]


def account(account_id: str | None) -> str:
    """Return an account id as one short line, or "an unknown account"."""
    return "an unknown account" if account_id is None else plain(account_id)


def failures_by_receipt(tree: Tree) -> dict[int, LedgerError]:
    """Return the errors of receipts by position."""
    errors: dict[int, LedgerError] = {}
    if "failure" not in tree.columns["status"]:
        return errors
    for position, execution in enumerate(tree.executions()):
        status = execution.outcome.status if execution else None
        if execution is not None and isinstance(status, Status) and status.failure is not UNSET:
            failure = decode_member(status.failure, f"the outcome of {execution.id}")
            errors[position] = chain_errors.receipt_failure(failure, receipt_id=execution.id)
    return errors
