"""
The result of a transaction as three services write it.

Its long lists are split first and decoded a piece at a time: tens of thousands of receipts
as structs, all at once, would take more memory than the document.
"""

from __future__ import annotations

import gc
import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, NoReturn, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from ledgerkit import errors
from ledgerkit.api import chain_errors
from ledgerkit.api.models.protocol_rules import Rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T = TypeVar("T")

# What a frame holds in a nullable Int64: gas, heights, shards, nanoseconds.
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class FunctionCall(Struct, gc=False):
    """A call of a contract's method; `args` were base64."""

    method_name: str | None = None
    args: bytes | None = None
    gas: Count | None = None
    deposit: str | None = None


class Deposit(Struct, gc=False):
    """An action of which only the tokens it moves are read."""

    deposit: str | None = None


class DelegateAction(Struct, gc=False):
    """What somebody else signed; the second version sits one member deeper."""

    sender_id: str | None = None
    receiver_id: str | None = None
    actions: list[Action | str] | None = None
    v2: DelegateAction | None = field(name="V2", default=None)


class Delegate(Struct, gc=False):
    """A relayed action."""

    delegate_action: DelegateAction | None = None


class Action(Struct, gc=False, rename="pascal", forbid_unknown_fields=True):
    """
    One action: an object of one member, which names it.

    Payloads that nothing reads stay undecoded, so their spelling (which differs inside
    a Delegate) does not matter. Names that are not here end up as bare strings.
    """

    function_call: FunctionCall | None = None
    transfer: Deposit | None = None
    delegate: Delegate | None = None
    delegate_v2: Delegate | None = None
    deterministic_state_init: Deposit | None = None
    transfer_to_gas_key: Deposit | None = None
    create_account: Raw | UnsetType = UNSET
    deploy_contract: Raw | UnsetType = UNSET
    stake: Raw | UnsetType = UNSET
    add_key: Raw | UnsetType = UNSET
    delete_key: Raw | UnsetType = UNSET
    delete_account: Raw | UnsetType = UNSET
    deploy_global_contract: Raw | UnsetType = UNSET
    deploy_global_contract_by_account_id: Raw | UnsetType = UNSET
    use_global_contract: Raw | UnsetType = UNSET
    use_global_contract_by_account_id: Raw | UnsetType = UNSET
    withdraw_from_gas_key: Raw | UnsetType = UNSET


class ActionReceipt(Struct, gc=False):
    """The body of an action receipt."""

    signer_id: str | None = None
    actions: list[Action | str] | None = None
    input_data_ids: list[str] | None = None
    output_data_receivers: list[dict[str, Any]] | None = None


class ReceiptBody(Struct, gc=False, rename="pascal"):
    """What a receipt carries: one of these; none for a kind not known here."""

    action: ActionReceipt | None = None
    data: Raw | UnsetType = UNSET
    global_contract_distribution: Raw | UnsetType = UNSET


class Receipt(Struct, gc=False):
    """A receipt: from whom, to whom, and what."""

    receipt_id: str
    predecessor_id: str | None = None
    receiver_id: str | None = None
    receipt: ReceiptBody | None = None


class Status(Struct, gc=False, rename="pascal"):
    """How an execution ended, where the wire sends more than a word."""

    success_value: str | UnsetType | None = UNSET
    success_receipt_id: str | None = None
    failure: Raw | UnsetType = UNSET


class Outcome(Struct, gc=False):
    """What an execution burnt, said and made."""

    logs: list[str] | None = None
    receipt_ids: list[str] | None = None
    gas_burnt: Count | None = None
    tokens_burnt: str | None = None
    status: Status | str | None = None


class Cost(Struct, gc=False):
    """What a call burnt on one thing."""

    gas_used: Count | str | None = None


class Metadata(Struct, gc=False):
    """What a call burnt on what; null where nothing was called, and in old outcomes."""

    gas_profile: list[Cost] | None = None


class Executor(Struct, gc=False):
    """Who executed (the receipt tells it too) and what its calls burnt: seldom read."""

    executor_id: str | None = None
    metadata: Metadata | None = None


class Execution(Struct, gc=False):
    """An outcome of which only the executor's part is read."""

    outcome: Executor
    id: str | None = None


class ExecutionOutcome(Struct, gc=False):
    """An outcome and where it happened; height, time and shard come from some services only."""

    id: str
    outcome: Outcome
    block_hash: str | None = None
    block_height: Count | None = None
    block_timestamp: Count | None = None
    shard_id: Count | None = None


class Transaction(Struct, gc=False):
    """A signed transaction, as far as it is read."""

    hash: str | None = None
    signer_id: str | None = None
    receiver_id: str | None = None
    actions: list[Action | str] | None = None


class Result(Struct, gc=False):
    """The result of a transaction as a node sends it; `receipts` comes from some methods only."""

    final_execution_status: str | None = None
    status: Status | str | None = None
    transaction: Transaction | None = None
    transaction_outcome: ExecutionOutcome | None = None
    receipts_outcome: list[Raw] | None = None
    receipts: list[Raw] | None = None


class IndexedReceipt(Struct, gc=False):
    """A receipt beside its outcome, as the Transactions API pairs them."""

    receipt: Receipt | None = None
    execution_outcome: ExecutionOutcome | None = None


class IndexedExecution(Struct, gc=False):
    """Such a pair, of which only the executor is read."""

    execution_outcome: Execution | None = None


class IndexedTransaction(Struct, gc=False):
    """One element of a Transactions API answer."""

    transaction: Transaction
    execution_outcome: ExecutionOutcome | None = None
    receipts: list[Raw] | None = None


class Document(Struct, gc=False):
    """The members by which the three kinds of document are told apart."""

    result: Result | UnsetType | None = UNSET
    error: Raw | UnsetType = UNSET
    transactions: list[IndexedTransaction] | UnsetType | None = UNSET
    execution_outcome: Raw | UnsetType = UNSET


class Kept(Struct, gc=False, omit_defaults=True):
    """What ledgerkit adds to a document that it saves."""

    blocks: dict[str, tuple[Count, Count]] = {}
    rules: Rules | None = None


class Saved(Struct, gc=False):
    """A saved document, as far as it was added to."""

    ledgerkit: Kept


PIECE = 512
_DOCUMENT = msgspec.json.Decoder(Document)
_BARE = msgspec.json.Decoder(Result)
_INDEXED = msgspec.json.Decoder(IndexedTransaction)
_OUTCOME = msgspec.json.Decoder(ExecutionOutcome)
_EXECUTION = msgspec.json.Decoder(Execution)
_EXECUTED = msgspec.json.Decoder(IndexedExecution)
_RECEIPT = msgspec.json.Decoder(Receipt)
_PAIR = msgspec.json.Decoder(IndexedReceipt)
_SAVED = msgspec.json.Decoder(Saved)
_ADDED = b'{"ledgerkit":'
_NAMES = frozenset(Action.__struct_encode_fields__)
_NO_SUCH_FIELD = "Object contains unknown field"
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True, repr=False)
class Parts(Generic[T]):
    """
    A long list in a document, decoded a piece at a time.

    `path` is where it stands. In a Transactions API document outcomes and bodies are members
    of pairs; `member` then says which.
    """

    raws: Sequence[Raw]
    decoder: msgspec.json.Decoder[Any]
    path: str
    asked: str
    member: str | None = None

    def __len__(self) -> int:
        """Count the elements."""
        return len(self.raws)

    def pieces(self) -> Iterator[tuple[int, list[T]]]:
        """
        Decode the list.

        Yields
        ------
        start
            The position of a piece in the list.
        piece
            Its elements; those that are null left out.

        Raises
        ------
        DecodeError
            If an element is not as documented; `path` names the place.
        """
        for start in range(0, len(self.raws), PIECE):
            raws = self.raws[start : start + PIECE]
            try:
                piece = list(map(self.decoder.decode, raws))
            except _BROKEN:
                piece = [self._decode(start + offset, raw) for offset, raw in enumerate(raws)]
            if self.member is not None:
                members = [getattr(pair, self.member) for pair in piece]
                piece = [member for member in members if member is not None]
            yield start, piece

    def _decode(self, position: int, raw: Raw) -> Any:
        """Decode one element; if it can't be done, say which it is."""
        try:
            return _decode(self.decoder, raw)
        except _BROKEN as problem:
            place = f"{self.path}[{position}]"
            raise _refusal(problem, bytes(raw), self.asked, place) from None


@dataclass(frozen=True, slots=True)
class TxResult:
    """
    The result of a transaction, whoever sent it; what was not sent is None.

    `bodies` is None where the service does not send any (plain ``tx``), and `status` where it
    sends no overall one (Transactions API).
    """

    final_execution_status: str | None
    status: Status | str | None
    transaction: Transaction | None
    transaction_outcome: ExecutionOutcome | None
    outcomes: Parts[ExecutionOutcome]
    executions: Parts[Execution]
    bodies: Parts[Receipt] | None

    def block_hashes(self) -> list[str]:
        """List the blocks in which receipts ran, each once."""
        found = (outcome.block_hash for _, piece in self.outcomes.pieces() for outcome in piece)
        return [block_hash for block_hash in dict.fromkeys(found) if block_hash is not None]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from walking a large document while it is being read."""
    was_running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_running:
            gc.enable()


def decode_transaction(data: bytes, *, asked: str, tx_hash: str | None = None) -> TxResult:
    """
    Decode the result of a transaction.

    Parameters
    ----------
    data
        A JSON-RPC answer (of ``EXPERIMENTAL_tx_status``, ``tx``, ``send_tx`` and their
        likes), its bare result, or a Transactions API document, whole or one element.
    asked
        What was asked, in a few words, for errors.
    tx_hash
        Which transaction to take from a Transactions API document that holds several.

    Returns
    -------
    result
        The same shape for every kind of document; what was not sent is None.

    Raises
    ------
    DecodeError
        If the text is not such a document; `path` names the place.
    UnknownTransactionError
        If a Transactions API document does not hold the transaction.
    InvalidRequestError
        If it holds several and none was chosen.
    LedgerError
        The typed error of a JSON-RPC answer that carries one.

    Notes
    -----
    Source: POST / of the JSON-RPC endpoint, POST /v0/transactions of the Transactions API.
    """
    with collector_paused():
        try:
            return _read(data, asked, tx_hash)
        except _BROKEN as problem:
            raise _refusal(problem, data, asked) from None


def with_kept(data: bytes, kept: Kept) -> bytes:
    """
    Add what is known besides to a document, as its first member; the rest stays byte for byte.

    Parameters
    ----------
    data
        The document.
    kept
        Heights and times of blocks, and the rules in force.

    Returns
    -------
    data
        The longer document.
    """
    return _ADDED + msgspec.json.encode(kept) + b"," + data.lstrip()[1:]


def decode_kept(data: bytes) -> Kept:
    """
    Decode what `with_kept` added.

    Parameters
    ----------
    data
        A document, added to or not.

    Returns
    -------
    kept
        What was added; empty where nothing was.
    """
    try:
        return _SAVED.decode(data).ledgerkit if data.startswith(_ADDED) else Kept()
    except msgspec.DecodeError:
        return Kept()


def _read(data: bytes, asked: str, tx_hash: str | None) -> TxResult:
    """Tell the kinds of document apart and decode."""
    document = _decode(_DOCUMENT, data)
    if document.error is not UNSET and bytes(document.error) != b"null":
        raise chain_errors.from_rpc(msgspec.json.decode(document.error), asked=asked)
    if document.result is not UNSET:
        return _told(document.result, "$.result", asked)
    if document.transactions is not UNSET:
        return _chosen(document.transactions or [], tx_hash, asked)
    if document.execution_outcome is not UNSET:
        return _paired(_decode(_INDEXED, data), "$", asked)
    return _told(_decode(_BARE, data), "$", asked)


def _told(result: Result | None, path: str, asked: str) -> TxResult:
    """Take a node's result; refuse an object that says nothing about a transaction."""
    if result is None or result == Result():
        sentence = f"the answer to {asked} holds no transaction at {path}"
        raise errors.DecodeError(sentence, asked=asked, path=path)
    bodies, outcomes = result.receipts, result.receipts_outcome or []
    return TxResult(
        result.final_execution_status,
        result.status,
        result.transaction,
        result.transaction_outcome,
        Parts(outcomes, _OUTCOME, f"{path}.receipts_outcome", asked),
        Parts(outcomes, _EXECUTION, f"{path}.receipts_outcome", asked),
        None if bodies is None else Parts(bodies, _RECEIPT, f"{path}.receipts", asked),
    )


def _chosen(transactions: list[IndexedTransaction], tx_hash: str | None, asked: str) -> TxResult:
    """Take the wanted transaction out of a list."""
    wanted = [
        (position, transaction)
        for position, transaction in enumerate(transactions)
        if tx_hash in (None, transaction.transaction.hash)
    ]
    if not wanted:
        sentence = f"the answer to {asked} does not hold transaction {tx_hash or 'any'}"
        raise errors.UnknownTransactionError(sentence, transaction_hash=tx_hash, asked=asked)
    if len(wanted) > 1 and tx_hash is None:
        rule = f"the document holds {len(wanted)} transactions; name one by its hash"
        raise errors.InvalidRequestError.refuse("tx_hash", tx_hash, rule)
    position, transaction = wanted[0]
    return _paired(transaction, f"$.transactions[{position}]", asked)


def _paired(indexed: IndexedTransaction, path: str, asked: str) -> TxResult:
    """Take a Transactions API element."""
    pairs, path = indexed.receipts or [], f"{path}.receipts"
    return TxResult(
        None,
        None,
        indexed.transaction,
        indexed.execution_outcome,
        Parts(pairs, _PAIR, path, asked, "execution_outcome"),
        Parts(pairs, _EXECUTED, path, asked, "execution_outcome"),
        Parts(pairs, _PAIR, path, asked, "receipt"),
    )


def _decode(decoder: msgspec.json.Decoder[T], data: bytes | Raw) -> T:
    """Decode; if there are actions that are not known here, put their names in their place."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as problem:
        if not str(problem).startswith(_NO_SUCH_FIELD):
            raise
    try:
        value = json.loads(bytes(data), object_hook=_bare_names, parse_constant=_refuse_constant)
    except ValueError as problem:
        raise msgspec.DecodeError(str(problem)) from None
    return decoder.decode(json.dumps(value).encode())


def _refuse_constant(name: str) -> NoReturn:
    """Refuse what Python takes for JSON and nobody else does."""
    raise ValueError(f"{name} is no JSON")


def _bare_names(value: dict[str, Any]) -> dict[str, Any]:
    """Replace unknown actions in one object's `actions`."""
    actions = value.get("actions")
    if isinstance(actions, list):
        value["actions"] = [_bare_name(action) for action in actions]
    return value


def _bare_name(action: object) -> object:
    """Name an unknown action; of a known one keep what is known."""
    if not isinstance(action, dict) or _NAMES.issuperset(action):
        return action
    return {name: action[name] for name in _NAMES.intersection(action)} or next(iter(action))


def _refusal(problem: Exception, data: bytes, asked: str, place: str = "$") -> errors.DecodeError:
    """Say what is wrong with a document, or with the part of it that stands at `place`."""
    what, _, path = str(problem).partition(" - at `$")
    path = place + path.rstrip("`")
    if isinstance(problem, msgspec.ValidationError):
        sentence = f"the answer to {asked} is not as documented: {what} at {path}"
    else:
        begin = data[:60].decode("utf-8", "replace")
        sentence = f"the answer to {asked} is no JSON document ({what}); it begins {begin!r}"
    return errors.DecodeError(sentence, asked=asked, path=path)
