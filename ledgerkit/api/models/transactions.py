"""
The result of a transaction, decoded into one form from the documents of all services.

Its long lists are decoded piece by piece, because tens of thousands of receipts as structs would
take more memory than the document.
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from ledgerkit import errors, json_decoding
from ledgerkit.api import chain_errors
from ledgerkit.api.models.actions import Action
from ledgerkit.api.models.chain import UInt63
from ledgerkit.api.models.other_kinds import OTHER, OtherKind, decode_with_other_kinds
from ledgerkit.api.models.protocol_rules import Gas, Rules

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

DISTRIBUTION = "GlobalContractDistribution"


class DataReceiver(TypedDict, total=False):
    """An account that waits for the result of a receipt."""

    data_id: str
    receiver_id: str


class ActionReceipt(Struct, gc=False):
    """The body of an action receipt."""

    signer_id: str | None = None
    actions: list[Action | str] | None = None
    input_data_ids: list[str] | None = None
    output_data_receivers: list[DataReceiver] | None = None


class ReceiptBody(Struct, gc=False, rename="pascal", forbid_unknown_fields=True):
    """The content of a receipt; exactly one member is set."""

    action: ActionReceipt | None = None
    data: Raw | UnsetType = UNSET
    global_contract_distribution: Raw | UnsetType = UNSET
    other: OtherKind | None = field(name=OTHER, default=None)

    @property
    def kind(self) -> str | None:
        """The name of its kind; None without content."""
        if self.action is not None:
            return "Action"
        if self.data is not UNSET:
            return "Data"
        if self.global_contract_distribution is not UNSET:
            return DISTRIBUTION
        return self.other.name if self.other else None


class Receipt(Struct, gc=False):
    """A receipt: its sender, receiver and content."""

    receipt_id: str
    predecessor_id: str | None = None
    receiver_id: str | None = None
    receipt: ReceiptBody | None = None


class Status(Struct, gc=False, rename="pascal", forbid_unknown_fields=True):
    """The status of an execution, where the wire sends an object."""

    success_value: str | UnsetType | None = UNSET
    success_receipt_id: str | None = None
    failure: Raw | UnsetType = UNSET
    other: OtherKind | None = field(name=OTHER, default=None)

    def __post_init__(self) -> None:
        """Raise `ValueError` if it has several statuses: readers would choose differently."""
        has_value = isinstance(self.success_value, str)
        if has_value + (self.success_receipt_id is not None) + (self.failure is not UNSET) > 1:
            raise ValueError("has more than one of SuccessValue, SuccessReceiptId and Failure")


class Cost(Struct, gc=False):
    """An entry of a gas profile; `cost` names the operation that used the gas."""

    gas_used: Gas | str | None = None
    cost: str | None = None
    cost_category: str | None = None


class Metadata(Struct, gc=False):
    """The gas profile of calls; null without calls, and in old outcomes."""

    gas_profile: list[Cost] | None = None


class CategorizedMetadata(Metadata, gc=False):
    """
    The gas profile of calls, summed when it is decoded.

    It has three entries without names, for WASM instructions, host functions and actions, and then
    one entry per unknown category.
    """

    def __post_init__(self) -> None:
        """Sum the profile; raise `ValueError` if an entry is not as documented."""
        if self.gas_profile:
            self.gas_profile = _gas_by_category(self.gas_profile)

    def gas(self, category: int) -> int | None:
        """Return the total of a category, by its position; None without a profile."""
        if self.gas_profile is None:
            return None
        total: Any = self.gas_profile[category].gas_used if self.gas_profile else 0
        return int(total)

    def other_gas(self) -> dict[str | None, Any]:
        """Return the totals of the unknown categories by their names."""
        return {cost.cost_category: cost.gas_used for cost in (self.gas_profile or ())[3:]}


def _gas_by_category(profile: list[Cost]) -> list[Cost]:
    texts: list[Any] = [cost.gas_used for cost in profile]
    if not "".join(texts).encode().isdigit():  # a `TypeError` unless all are texts
        raise ValueError("gas_used is not a text of digits")
    wasm = host = actions = 0
    others: dict[str, int] = {}
    for cost, gas in zip(profile, map(int, texts), strict=True):
        # WASM instructions are listed among the host functions. Source: nearcore,
        # core/primitives/src/views.rs, impl From<ExecutionMetadata> for ExecutionMetadataView.
        if cost.cost_category == "WASM_HOST_COST":
            if cost.cost == "WASM_INSTRUCTION":
                wasm += gas
            elif cost.cost is None:
                raise ValueError("an entry without its cost")
            else:
                host += gas
        elif cost.cost_category == "ACTION_COST":
            actions += gas
        elif cost.cost_category is None:
            raise ValueError("an entry without its cost_category")
        else:
            others[cost.cost_category] = others.get(cost.cost_category, 0) + gas
    named = (Cost(gas, cost_category=name) for name, gas in others.items())
    return [Cost(wasm), Cost(host), Cost(actions), *named]


class Outcome(Struct, gc=False):
    """The outcome of an execution: its costs, logs and new receipts."""

    logs: list[str] | None = None
    receipt_ids: list[str] | None = None
    gas_burnt: Gas | None = None
    tokens_burnt: str | None = None
    status: Status | str | None = None
    executor_id: str | None = None
    metadata: Raw = Raw(b"null")  # the gas profile stays encoded, because it is seldom read


class WholeOutcome(Outcome, gc=False):
    """An outcome as block documents have it: complete, with its account."""

    # Source: nearcore, core/primitives/src/views.rs, ExecutionOutcomeView.
    logs: list[str]
    receipt_ids: list[str]
    gas_burnt: Gas
    tokens_burnt: str
    status: Status | str
    executor_id: str

    def __post_init__(self) -> None:
        """Copy the gas profile, which would keep the whole document in memory."""
        self.metadata = self.metadata.copy()

    def profile(self) -> CategorizedMetadata | None:
        """Return the gas profile, decoded once."""
        if isinstance(self.metadata, Raw):
            path, decoder = "$..outcome.metadata", json_decoding.decoder(CategorizedMetadata | None)
            self.metadata = decode_member(self.metadata, path, decoder)
        return self.metadata  # type: ignore[return-value]  # decoded above


class ExecutionOutcome(Struct, gc=False):
    """An outcome and its block; only some services send height, time and shard."""

    id: str
    outcome: Outcome
    block_hash: str | None = None
    block_height: UInt63 | None = None
    block_timestamp: UInt63 | None = None
    shard_id: UInt63 | None = None


class Transaction(Struct, gc=False):
    """A signed transaction; only gas keys have a `nonce_index`."""

    hash: str | None = None
    signer_id: str | None = None
    public_key: str | None = None
    nonce_index: int | None = None
    receiver_id: str | None = None
    actions: list[Action | str] | None = None
    signature: str | None = None


class Result(Struct, gc=False):
    """The result of a transaction from a node; only some methods send `receipts`."""

    final_execution_status: str | None = None
    status: Status | str | None = None
    transaction: Transaction | None = None
    transaction_outcome: ExecutionOutcome | None = None
    receipts_outcome: list[Raw] | None = None
    receipts: list[Raw] | None = None


class IndexedReceipt(Struct, gc=False):
    """The receipt of a pair of receipt and outcome in a Transactions API document."""

    receipt: Receipt | None = None


class IndexedOutcome(Struct, gc=False):
    """The outcome of a pair of receipt and outcome in a Transactions API document."""

    execution_outcome: ExecutionOutcome | None = None


class IndexedTransaction(Struct, gc=False):
    """One transaction of a Transactions API response."""

    transaction: Transaction
    execution_outcome: ExecutionOutcome | None = None
    receipts: list[Raw] | None = None


class Document(Struct, gc=False):
    """The members that distinguish the three kinds of document."""

    result: Result | UnsetType | None = UNSET
    error: Raw | UnsetType = UNSET
    transactions: list[IndexedTransaction] | UnsetType | None = UNSET
    execution_outcome: Raw | UnsetType = UNSET


class TraceContext(Struct, gc=False, omit_defaults=True):
    """The block heights and times, rules and network that are added to a saved document."""

    blocks: dict[str, tuple[UInt63, UInt63]] = {}
    rules: Rules | None = None
    network: str | None = None


class SavedDocument(Struct, gc=False):
    """The member that ledgerkit adds to a saved document."""

    ledgerkit: TraceContext


PIECE = 512  # elements
_ANY = json_decoding.decoder(Any)
_DOCUMENT = json_decoding.decoder(Document)
_BARE = json_decoding.decoder(Result)
_INDEXED = json_decoding.decoder(IndexedTransaction)
_SAVED = json_decoding.decoder(SavedDocument)
_CONTEXT_PREFIX = b'{"ledgerkit":'
_CONTEXT_START = re.compile(rb'\s*\{\s*"ledgerkit"\s*:')  # other programs may add spaces


class LongList(ABC, Generic[T_co]):
    """A long list in a document, decoded when it is read; `path` is its path there."""

    path: str

    @abstractmethod
    def pieces(self) -> Iterable[Sequence[T_co]]:
        """Yield the decoded elements, without nulls, a piece at a time."""

    def __iter__(self) -> Iterator[T_co]:
        return chain.from_iterable(self.pieces())


@dataclass(frozen=True, repr=False)
class LazyList(LongList[T]):
    """
    A `LongList` of encoded elements of one type; a list of a single piece is decoded once.

    In a Transactions API document outcomes and bodies are members of pairs, and `member` is the
    name of the member to read.
    """

    raws: Sequence[Raw]
    element: Any
    path: str
    request: str
    member: str | None = None
    _decoded: list[list[T]] = dataclasses.field(default_factory=list, init=False, compare=False)

    def pieces(self) -> Iterable[list[T]]:
        if len(self.raws) > PIECE:
            return self._decode_pieces()
        if not self._decoded:
            self._decoded[:] = self._decode_pieces()  # in one step, because threads share it
        return self._decoded

    def _decode_pieces(self) -> Iterator[list[T]]:
        decoder = json_decoding.decoder(self.element)
        for start in range(0, len(self.raws), PIECE):
            raws = self.raws[start : start + PIECE]
            try:
                piece = decoder.decode_all(raws)
            except msgspec.DecodeError:
                piece = [self._decode_element(start + i, raw) for i, raw in enumerate(raws)]
            if self.member is not None:
                members = [getattr(pair, self.member) for pair in piece]
                piece = [member for member in members if member is not None]
            yield piece

    def _decode_element(self, position: int, raw: Raw) -> Any:
        try:
            return decode_with_other_kinds(json_decoding.decoder(self.element), raw)
        except msgspec.DecodeError as problem:
            path = f"{self.path}[{position}]"
            raise decode_error(problem, bytes(raw), self.request, path) from None


@dataclass(frozen=True, repr=False)
class DecodedList(LongList[T]):
    """A `LongList` of decoded elements."""

    elements: Sequence[T]
    path: str = "$.receipts"

    def pieces(self) -> Iterable[Sequence[T]]:
        return [self.elements]


@dataclass(frozen=True, slots=True)
class TxResult:
    """
    The result of a transaction in one form for all services; missing members are None.

    `bodies` is missing in plain ``tx``, and `status` in the Transactions API.
    """

    final_execution_status: str | None
    status: Status | str | None
    transaction: Transaction | None
    transaction_outcome: ExecutionOutcome | None
    outcomes: LongList[ExecutionOutcome]
    bodies: LongList[Receipt] | None
    is_indexed: bool = False  # a document of the Transactions API, not a node's result

    def created_ids(self) -> list[str]:
        first = self.transaction_outcome
        return (first.outcome.receipt_ids or []) if first else []

    def receipt_ids(self) -> set[str]:
        return {outcome.id for outcome in self.outcomes}

    def block_hashes(self) -> list[str]:
        """List the blocks in which receipts ran, without duplicates."""
        hashes = dict.fromkeys(outcome.block_hash for outcome in self.outcomes)
        return [block_hash for block_hash in hashes if block_hash is not None]

    def height_span(self) -> tuple[int, int] | None:
        """Return the first and the last height at which receipts ran; None if one is missing."""
        heights = [outcome.block_height for outcome in self.outcomes]
        present = [height for height in heights if height is not None]
        return (min(present), max(present)) if present and len(present) == len(heights) else None

    def block_places(self) -> dict[str, tuple[int, int]]:
        """Return the heights and times of blocks by hash, as far as the document has both."""
        return {
            outcome.block_hash: (outcome.block_height, outcome.block_timestamp)
            for outcome in (*self.outcomes, self.transaction_outcome)
            if outcome is not None
            and outcome.block_hash is not None
            and outcome.block_height is not None
            and outcome.block_timestamp is not None
        }

    @property
    def is_final(self) -> bool:
        """True unless its level is lower; old nodes and the Transactions API send no level."""
        return self.final_execution_status in (None, "FINAL")

    def has_finished(self) -> bool:
        """
        Return True if all receipts of the transaction have run.

        After a failure receipts such as refunds may still run. In a node's result, receipts may
        have run in blocks that are not final; see `is_final`.
        """
        created = set(self.created_ids())
        for outcome in self.outcomes:
            created.update(outcome.outcome.receipt_ids or ())
        return self.transaction_outcome is not None and created <= self.receipt_ids()


class TransactionResponse(NamedTuple):
    """The decoded result of a transaction, its document, and the source of the document."""

    result: TxResult
    body: bytes
    source: str

    @property
    def transaction(self) -> Transaction | None:
        return self.result.transaction


def decode_transaction(data: bytes, *, request: str, tx_hash: str | None = None) -> TxResult:
    """
    Decode the result of a transaction.

    `data` is a JSON-RPC response (of ``EXPERIMENTAL_tx_status``, ``tx``, ``send_tx`` and similar
    methods), its bare result, or a Transactions API document, whole or one element. `tx_hash`
    selects one of several transactions; without it such a document is an `InvalidRequestError`.
    """
    try:
        return _decode_document(data, request, tx_hash)
    except msgspec.DecodeError as problem:
        raise decode_error(problem, data, request) from None


def decode_indexed(
    data: bytes, *, request: str, source: str = "/v0/transactions"
) -> TransactionResponse:
    """Decode one transaction of a Transactions API response, as `decode_transaction` does."""
    try:
        indexed = decode_with_other_kinds(_INDEXED, data)
    except msgspec.DecodeError as problem:
        raise decode_error(problem, data, request) from None
    return TransactionResponse(_from_transactions_api(indexed, "$", request), data, source)


def embed_context(data: bytes, context: TraceContext) -> bytes:
    """Add a context to a document as its first member, without changing the other bytes."""
    return _CONTEXT_PREFIX + msgspec.json.encode(context) + b"," + data.lstrip()[1:]


def decode_context(data: bytes) -> TraceContext:
    """
    Decode the context that `embed_context` added to a document; empty if there is none.

    It is empty for a document that is not JSON. Raises `errors.DecodeError` if it is malformed.
    """
    try:
        return _SAVED.decode(data).ledgerkit if _CONTEXT_START.match(data) else TraceContext()
    except msgspec.ValidationError as problem:
        raise decode_error(problem, data, "a saved transaction") from None
    except msgspec.DecodeError:
        return TraceContext()


def _decode_document(data: bytes, request: str, tx_hash: str | None) -> TxResult:
    document = decode_with_other_kinds(_DOCUMENT, data)
    if document.error is not UNSET and bytes(document.error) != b"null":
        raise chain_errors.from_rpc(json_decoding.decode(document.error), request=request)
    if document.result is not UNSET:
        return _from_node(document.result, "$.result", request)
    if document.transactions is not UNSET:
        return _select_transaction(document.transactions or [], tx_hash, request)
    if document.execution_outcome is not UNSET:
        return _from_transactions_api(decode_with_other_kinds(_INDEXED, data), "$", request)
    return _from_node(decode_with_other_kinds(_BARE, data), "$", request)


def decode_member(raw: Raw, path: str, decoder: json_decoding.Decoder[Any] = _ANY) -> Any:
    try:
        return decoder.decode(raw)
    except msgspec.DecodeError as problem:
        raise errors.not_as_documented("the document", problem, path) from None


def _from_node(result: Result | None, path: str, request: str) -> TxResult:
    """Convert a node's result; raise if it has no known member."""
    if result is None or result == Result():
        sentence = f"the response to {request} contains no transaction at {path}"
        raise errors.DecodeError(sentence, request=request, path=path)
    _check_hash(result.transaction, result.transaction_outcome, request)
    bodies, outcomes = result.receipts, result.receipts_outcome or []
    return TxResult(
        result.final_execution_status,
        result.status,
        result.transaction,
        result.transaction_outcome,
        LazyList(outcomes, ExecutionOutcome, f"{path}.receipts_outcome", request),
        None if bodies is None else LazyList(bodies, Receipt, f"{path}.receipts", request),
    )


def _check_hash(
    transaction: Transaction | None, outcome: ExecutionOutcome | None, request: str
) -> None:
    tx_hash = transaction.hash if transaction else None
    if outcome is not None and tx_hash not in (None, outcome.id):
        problem = f"the outcome of {tx_hash} is of {outcome.id}"
        sentence = f"the response to {request} is not as documented: {problem}"
        raise errors.DecodeError(sentence, request=request, path="$")


def _select_transaction(
    transactions: list[IndexedTransaction], tx_hash: str | None, request: str
) -> TxResult:
    matches = [
        (position, transaction)
        for position, transaction in enumerate(transactions)
        if tx_hash in (None, transaction.transaction.hash)
    ]
    if not matches:
        missing = "any transaction" if tx_hash is None else f"transaction {tx_hash}"
        sentence = f"the response to {request} does not contain {missing}"
        raise errors.UnknownTransactionError(sentence, transaction_hash=tx_hash, request=request)
    if len(matches) > 1 and tx_hash is None:
        expected = f"the hash of one of the document's {len(matches)} transactions"
        raise errors.InvalidRequestError.required("tx_hash", expected)
    position, transaction = matches[0]
    return _from_transactions_api(transaction, f"$.transactions[{position}]", request)


def _from_transactions_api(indexed: IndexedTransaction, path: str, request: str) -> TxResult:
    _check_hash(indexed.transaction, indexed.execution_outcome, request)
    pairs, path = indexed.receipts or [], f"{path}.receipts"
    return TxResult(
        None,
        None,
        indexed.transaction,
        indexed.execution_outcome,
        LazyList(pairs, IndexedOutcome, path, request, "execution_outcome"),
        LazyList(pairs, IndexedReceipt, path, request, "receipt"),
        is_indexed=True,
    )


def decode_error(
    problem: Exception, data: bytes, request: str, path: str = "$"
) -> errors.DecodeError:
    """Build the error for a document, or for its part at `path`."""
    document = f"the response to {request}"
    if isinstance(problem, msgspec.ValidationError):
        return errors.not_as_documented(document, problem, path, request=request)
    start = errors.excerpt(data[:400].decode("utf-8", "replace"), 60)
    sentence = f"{document} is not JSON ({problem}); it starts with {start!r}"
    return errors.DecodeError(sentence, request=request, path=path)
