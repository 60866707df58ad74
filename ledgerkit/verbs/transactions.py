"""Verbs about transactions: results, receipt trees, single receipts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from ledgerkit import client, json_decoding, validation
from ledgerkit.api import rpc, services
from ledgerkit.api.models.services import ReceiptBodies
from ledgerkit.api.models.transactions import Transaction, decode_member
from ledgerkit.block_data import transaction_documents
from ledgerkit.block_data.headers import headers_by_hash
from ledgerkit.block_data.transactions import SOURCES, read_transactions
from ledgerkit.errors import (
    InvalidRequestError,
    LedgerError,
    NotFoundError,
    RateLimitedError,
    RpcMethodNotFoundError,
    TransactionTimeoutError,
    TransportError,
    UnknownReceiptError,
    UnknownTransactionError,
    quote,
)
from ledgerkit.tracing.trace import Trace
from ledgerkit.tracing.traces import Traces
from ledgerkit.verbs.blocks import transactions
from ledgerkit.verbs.declaring import verb, verb_of_many
from ledgerkit.verbs.fetching import Fetcher, errors_frame, open_fetcher, provenance
from ledgerkit.verbs.proving import check_anchor, prove
from ledgerkit.verbs.trace_reading import TransactionRef, build_traces, read_results, source_of

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.api.models.transactions import ExecutionOutcome, TransactionResponse
    from ledgerkit.ledger import Ledger
    from ledgerkit.tracing.proof import Proof
    from ledgerkit.verbs.declaring import Collecting, Raising

    Json = dict[str, Any]

# The members of EXPERIMENTAL_receipt; the Transactions API has more.
# Source: ReceiptView of nearcore, core/primitives/src/views.rs.
_MEMBERS = ("predecessor_id", "priority", "receipt", "receipt_id", "receiver_id")

Keys = Iterable[str | tuple[str, str]]


@verb
def trace(
    tx_hash: str,
    signer_id: str | None = None,
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    ledger: Ledger | None = None,
) -> Trace:
    """
    Return the trace of a transaction: its tree of receipts.

    Returns
    -------
    trace
        The tree of receipts, with frames, a `verdict` and an explanation. The verdict is
        ``pending`` while receipts have not run.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; then nothing is sent. Also if another account signed the
        transaction.
    UnknownTransactionError
        If the transaction does not exist, or the host does not have it.
    TransactionTimeoutError
        If the host does not report the transaction's outcome in time.

    Notes
    -----
    Source: POST /v0/transactions of the Transactions API, or tx_status, on older nodes
    EXPERIMENTAL_tx_status, with heights and times from block; shards and rewards from
    EXPERIMENTAL_protocol_config. Both sources give the same trace. While receipts are pending, the
    transaction is read from a node, unless `wait_until` is NONE, INCLUDED or INCLUDED_FINAL.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> trace = lk.trace("AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY", "ivan.near")
    >>> trace.verdict
    'succeeded_with_failed_receipts'
    >>> trace.receipts[["depth", "receiver_id", "method_name", "status"]].head(2)
       depth receiver_id       method_name              status
    0      0   gold.near  ft_transfer_call  success_receipt_id
    1      1    dex.near    ft_on_transfer             failure
    """
    key, level = _check_key(tx_hash, signer_id), _check_level(wait_until)
    validation.flag(blocks, "blocks")
    ledger = client.current(ledger)
    with _receipt_in_errors(ledger, key[0]):
        return _read_trace(ledger, key, level, blocks=blocks)


def _read_trace(
    ledger: Ledger, ref: TransactionRef, level: str = "FINAL", *, blocks: bool = True
) -> Trace:
    results = read_results(Fetcher(ledger), [ref], level)
    return build_traces(ledger, list(results.values()), blocks=blocks)[0]


@contextmanager
def _receipt_in_errors(ledger: Ledger, tx_hash: str) -> Iterator[None]:
    """Change the remedy of the error if the hash is the id of a receipt."""
    try:
        yield
    except (UnknownTransactionError, TransactionTimeoutError) as error:
        with suppress(LedgerError):
            origin_hash, _ = transaction_documents.receipt_origin(ledger, tx_hash)
            error.remedy = (
                f"This is the id of a receipt of transaction {quote(origin_hash)}: pass that hash, "
                f"or read the receipt with receipt({quote(tx_hash)})."
            )
        raise


@verb
def verify(
    transaction: Trace | str,
    signer_id: str | None = None,
    *,
    trusted: str | None = None,
    source: Literal["rpc", "documents", "indexer_rpc"] = "rpc",
    ledger: Ledger | None = None,
) -> Proof:
    """
    Prove the outcomes of a transaction, as `Trace.verify` does.

    Parameters
    ----------
    transaction
        The transaction's hash, or its trace, also one that was read from a file.
    signer_id
        The account that signed it, as for `trace`; leave it out if a trace is passed.
    trusted
        The hash of a block that you trust, as for `Trace.verify`.
    source
        The source of the proof, as for `Trace.verify`.
    ledger
        The ledger to read the proof from; None is the session's default.

    Returns
    -------
    proof
        How far each outcome is proved, and the reason if it is not proved further.

    Raises
    ------
    ProofError
        If a header or a list of validators differs from the chain's commitment, or signatures are
        wrong or too few.
    LedgerError
        If the transaction, a block or the validators could not be read.

    Notes
    -----
    Source: as `trace`, and as `Trace.verify`.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> trusted = ledger.rpc("block", {"finality": "final"})["header"]["hash"]
    >>> tx_hash = "8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE"
    >>> lk.verify(tx_hash, "alice.near", trusted=trusted)
    <Proof Proved: all 3 outcomes are committed to by block 180000050, which you named.>
    """
    ledger = client.current(ledger)
    if not isinstance(transaction, Trace):
        transaction = validation.crypto_hash(transaction, "transaction")
        check_anchor(trusted, source)  # before the trace is read
        return trace(transaction, signer_id, ledger=ledger).verify(trusted, source=source)
    if signer_id is not None:
        msg = "leave signer_id out: the trace has its own"
        raise InvalidRequestError(msg, field="signer_id", value=signer_id)
    prover = partial(prove, ledger)
    return transaction._verify_with(prover, trusted, source)  # noqa: SLF001 - of this package


def find_trace(id_: str, ledger: Ledger) -> Trace:
    key = _check_key(id_, None)
    try:
        return _read_trace(ledger, key)
    except (UnknownTransactionError, InvalidRequestError) as unknown:
        try:
            origin = transaction_documents.receipt_origin(ledger, key[0])
        except UnknownReceiptError:
            raise unknown from None
        return _read_trace(ledger, origin)


@overload
def traces(
    tx_hashes: Keys, *, wait_until: str = "FINAL", blocks: bool = True, **options: Unpack[Raising]
) -> Traces: ...
@overload
def traces(
    tx_hashes: Keys,
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    **options: Unpack[Collecting],
) -> tuple[Traces, pd.DataFrame]: ...
@verb_of_many
def traces(
    tx_hashes: Keys, *, wait_until: str = "FINAL", blocks: bool = True, **options: Any
) -> Traces | tuple[Traces, pd.DataFrame]:
    """
    Return the traces of several transactions, with the frames of all of them combined.

    Parameters
    ----------
    tx_hashes
        The transactions' hashes, read from the Transactions API, twenty per request. A pair of a
        hash and the account that signed the transaction is read from a node.
    on_error
        ``raise`` raises the first failure; ``collect`` also returns a frame of all failures,
        by transaction hash.

    Returns
    -------
    traces
        A mapping from hash to `Trace`, in the order of `tx_hashes`. Its frames, such as
        `receipts`, are the frames of all traces with `tx_hash` and `time` on each row, typed as
        `schema("traces_receipts")` and so on.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; then nothing is sent. Also if another account signed a
        transaction and failures are not collected.
    LedgerError
        If a transaction is unknown or could not be read and failures are not collected,
        or if a block could not be read.

    Notes
    -----
    Source: POST /v0/transactions of the Transactions API, or tx_status, on older nodes
    EXPERIMENTAL_tx_status, with heights and times from block; shards and rewards from
    EXPERIMENTAL_protocol_config.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> frame = lk.transactions(180000032).head(3)
    >>> traces = lk.traces(zip(frame["tx_hash"], frame["signer_id"]))
    >>> [trace.verdict for trace in traces.values()]
    ['fully_succeeded', 'succeeded_with_failed_receipts', 'failed']
    >>> traces.receipts.groupby("tx_hash").size().tolist()
    [2, 6, 3]
    """
    if isinstance(tx_hashes, str) or not isinstance(tx_hashes, Iterable):
        raise InvalidRequestError.refuse("tx_hashes", tx_hashes, "several hashes, such as a list")
    checked = list(dict.fromkeys(map(_check_item, validation.elements(tx_hashes))))
    level = _check_level(wait_until)
    validation.flag(blocks, "blocks")
    fetcher = open_fetcher(**options)
    return _read_traces(fetcher, checked, level, blocks=blocks)


def _read_traces(
    fetcher: Fetcher,
    refs: list[TransactionRef],
    level: str,
    *,
    blocks: bool,
    notes: Iterable[str] = (),
) -> Traces | tuple[Traces, pd.DataFrame]:
    results = read_results(fetcher, refs, level)
    responses = list(results.values())
    built = build_traces(fetcher.ledger, responses, blocks=blocks, progress=fetcher.progress)
    by_hash, source = dict(zip(results, built, strict=True)), source_of(responses)
    result = Traces(by_hash, attrs=provenance(fetcher.ledger, source), notes=notes)
    return (result, errors_frame(fetcher.failures)) if fetcher.on_error == "collect" else result


def _check_item(item: object) -> TransactionRef:
    if isinstance(item, str):
        return _check_key(item, None)
    items = tuple(item) if isinstance(item, Iterable) else ()
    if len(items) != 2:  # noqa: PLR2004 - a pair
        rule = "transactions' hashes, or pairs of a hash and its signer's account id"
        raise InvalidRequestError.refuse("tx_hashes", item, rule)
    return _check_key(items[0], validation.account_id(items[1], "signer_id"))


def _check_key(tx_hash: str, signer_id: str | None) -> TransactionRef:
    checked = validation.crypto_hash(tx_hash, "tx_hash")
    return checked, None if signer_id is None else validation.account_id(signer_id, "signer_id")


def _check_level(wait_until: str) -> str:
    return validation.one_of(wait_until, "wait_until", validation.WAIT_LEVELS)


@overload
def trace_block(
    at: object = "final",
    *,
    source: Literal["rpc", "documents", "indexer_rpc"] = "rpc",
    wait_until: str = "FINAL",
    blocks: bool = True,
    **options: Unpack[Raising],
) -> Traces: ...
@overload
def trace_block(
    at: object = "final",
    *,
    source: Literal["rpc", "documents", "indexer_rpc"] = "rpc",
    wait_until: str = "FINAL",
    blocks: bool = True,
    **options: Unpack[Collecting],
) -> tuple[Traces, pd.DataFrame]: ...
@verb_of_many
def trace_block(
    at: object = "final",
    *,
    source: Literal["rpc", "documents", "indexer_rpc"] = "rpc",
    wait_until: str = "FINAL",
    blocks: bool = True,
    **options: Any,
) -> Traces | tuple[Traces, pd.DataFrame]:
    """
    Return the traces of all transactions that a block includes, with their frames combined.

    Parameters
    ----------
    source
        The source: ``"rpc"``, a node, with a request for each chunk and transaction;
        ``"documents"``, the whole documents of this block and of those in which its receipts ran;
        or ``"indexer_rpc"``, such documents from a node of your own, which has to serve them.
    wait_until
        The level to wait for: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,
        EXECUTED or FINAL. A transaction that does not reach it in time is returned as far
        as it is known. Documents are final, and show transactions up to the last final block.
    blocks
        Read the blocks in which the receipts ran, for heights and times, and the protocol
        configuration in force, for shards and contract rewards.
    on_error
        ``raise`` raises the first failure; ``collect`` also returns a frame of all failures,
        by transaction hash.

    Returns
    -------
    traces
        A mapping from hash to `Trace`, in the block's order. Its frames, such as `receipts`,
        are the frames of all traces with `tx_hash` and `time` on each row, typed as
        `schema("traces_receipts")` and so on. Its `notes` name the items of the block that
        have no trace, because they are not signed transactions.

    Raises
    ------
    LedgerError
        If the block or one of its chunks could not be read, or if a transaction could not
        be read and failures are not collected.

    Notes
    -----
    Source: block, chunk and tx_status, on older nodes EXPERIMENTAL_tx_status, or /v0/block of the
    block documents, or block and EXPERIMENTAL_indexer_block; shards and rewards from
    EXPERIMENTAL_protocol_config.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> traces = lk.trace_block(180000032)
    >>> len(traces)
    14
    >>> transfers = traces.transfers[traces.transfers["kind"] == "token"]
    >>> transfers[["sender_id", "receiver_id", "asset", "amount"]]
       sender_id receiver_id             asset    amount
    4  ivan.near    dex.near  nep141:gold.near  80000000
    7   dex.near   ivan.near  nep141:gold.near  80000000
    """
    _check_level(wait_until)
    validation.flag(blocks, "blocks")
    fetcher = open_fetcher(**options)
    if validation.one_of(source, "source", validation.BLOCK_SOURCES) != "rpc":
        traces_read = _document_traces(fetcher, at, source, blocks=blocks)
        return (traces_read, errors_frame([])) if fetcher.on_error == "collect" else traces_read
    included = transactions(at, progress=fetcher.progress, ledger=fetcher.ledger)
    is_signed = included["kind"] == "signed"  # other items have no sender, and no trace
    pairs = included[is_signed][["tx_hash", "signer_id"]].itertuples(index=False, name=None)
    notes = _notes_on_unsigned_items(included[~is_signed]["tx_hash"])
    return _read_traces(fetcher, list(dict.fromkeys(pairs)), wait_until, blocks=blocks, notes=notes)


def _notes_on_unsigned_items(hashes: Iterable[object]) -> list[str]:
    note = "is an item of a chunk, but no signed transaction: see ledgerkit.transactions()"
    return [f"{tx_hash if isinstance(tx_hash, str) else 'it'} {note}" for tx_hash in hashes]


def _document_traces(fetcher: Fetcher, at: object, source: str, *, blocks: bool) -> Traces:
    ledger = fetcher.ledger
    reference = validation.block_reference(at)
    height, block_hash = reference.height, None
    if height is None:
        height, block_hash = ledger.pin(reference)
    responses, others = read_transactions(ledger, height, block_hash, source)
    built = build_traces(ledger, responses, blocks=blocks, progress=fetcher.progress)
    by_hash = {trace.tx_hash or "": trace for trace in built}
    notes = _notes_on_unsigned_items(item.hash for item in others)
    return Traces(by_hash, attrs=provenance(ledger, SOURCES[source]), notes=notes)


@verb
def receipts(
    tx_hash: str,
    signer_id: str | None = None,
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Return the receipts of a transaction as a frame.

    Parameters
    ----------
    blocks
        Read the blocks in which the receipts ran, for heights and times.

    Returns
    -------
    receipts
        One row per receipt in causal order, typed as `schema("receipts")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; then nothing is sent. Also if another account signed the
        transaction.
    UnknownTransactionError
        If the transaction does not exist, or the host does not have it.
    TransactionTimeoutError
        If the host does not report the transaction's outcome in time.

    Notes
    -----
    Source: as `trace`.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> frame = lk.receipts("8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE", "alice.near")
    >>> frame[["kind", "receiver_id", "status", "block_height", "gas_burnt"]]
         kind receiver_id         status  block_height     gas_burnt
    0  action    bob.near  success_value     180000005  223182562500
    1  refund  alice.near  success_value     180000006  223182562500
    """
    return trace(tx_hash, signer_id, wait_until=wait_until, blocks=blocks, ledger=ledger).receipts


@verb
def receipt(receipt_id: str, *, ledger: Ledger | None = None) -> dict[str, Any]:
    """
    Return one receipt as the node sends it, with its block and its transaction.

    Parameters
    ----------
    receipt_id
        The receipt's id.

    Returns
    -------
    receipt
        The decoded JSON of EXPERIMENTAL_receipt, with exact integers, and these members:
        `block_height` and `block_timestamp` (nanoseconds since 1970) of the block in which the
        receipt ran, None for a data receipt or a pending one; `transaction_hash`, `signer_id`,
        `tx_block_height` and `tx_block_timestamp` of the transaction that it belongs to, None if
        neither service knows it. From the Transactions API, a `refund_to` of null is left out.

    Raises
    ------
    UnknownReceiptError
        If the network does not know the receipt.

    Notes
    -----
    Source: POST /v0/receipt of the Transactions API. If the network has none, or it fails or does
    not know the receipt: EXPERIMENTAL_receipt, EXPERIMENTAL_receipt_to_tx, tx_status (on older
    nodes EXPERIMENTAL_tx_status) and block.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> frame = lk.receipts("8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE", "alice.near")
    >>> receipt = lk.receipt(frame["receipt_id"][0])
    >>> receipt["receiver_id"], receipt["receipt"]["Action"]["actions"]
    ('bob.near', [{'Transfer': {'deposit': '5000000000000000000000000'}}])
    >>> receipt["block_height"], receipt["transaction_hash"], receipt["signer_id"]
    (180000005, '8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE', 'alice.near')
    """
    receipt_id = validation.crypto_hash(receipt_id, "receipt_id")
    ledger = client.current(ledger)
    try:
        return _read_receipt(ledger, receipt_id)
    except UnknownReceiptError as error:
        if ledger.network.transactions_url is None:  # a node needs the signer to find it
            error.remedy += " If it is the hash of a transaction, use trace()."
        else:
            with suppress(LedgerError):
                transaction_documents.read_document(ledger, receipt_id)
                error.remedy = f"This is the hash of a transaction: use trace({quote(receipt_id)})."
        raise


# A single receipt -------------------------------------------------------------------------


def _read_receipt(ledger: Ledger, receipt_id: str) -> Json:
    if ledger.network.transactions_url is not None:
        with suppress(NotFoundError, RateLimitedError, TransportError):
            response = ledger.send(services.receipt_document(receipt_id))
            return _receipt_body(response, receipt_id) | _origin_members(
                ledger, response, receipt_id
            )
    body: Json = ledger.send(rpc.receipt(receipt_id))
    return body | _origin_members(ledger, _transaction_of_receipt(ledger, receipt_id), receipt_id)


def _receipt_body(response: TransactionResponse, receipt_id: str) -> Json:
    """Return a receipt of a document with the members that a node sends."""
    bodies = json_decoding.decode(response.body, ReceiptBodies)
    for raw in (*(pair.receipt for pair in bodies.receipts), *bodies.data_receipts):
        body = decode_member(raw, "$..receipts")
        if isinstance(body, dict) and body.get("receipt_id") == receipt_id:
            return {name: body[name] for name in _MEMBERS if name in body}
    raise UnknownReceiptError(receipt_id=receipt_id)


def _transaction_of_receipt(ledger: Ledger, receipt_id: str) -> TransactionResponse | None:
    try:
        origin = ledger.send(rpc.receipt_origin(receipt_id))
    except (NotFoundError, RpcMethodNotFoundError):  # only some nodes have the index
        return None
    signer_id = validation.account_id(origin.sender_account_id, "signer_id")
    return ledger.send(rpc.transaction(origin.transaction_hash, signer_id, "NONE"))


def _origin_members(ledger: Ledger, response: TransactionResponse | None, receipt_id: str) -> Json:
    """Return the members about the block of a receipt and about its transaction."""
    transaction = (response and response.transaction) or Transaction()
    first = response and response.result.transaction_outcome
    outcomes = response.result.outcomes if response else ()
    ran = next((outcome for outcome in outcomes if outcome.id == receipt_id), None)
    hashes = [
        outcome.block_hash
        for outcome in (ran, first)
        if outcome and outcome.block_hash and outcome.block_height is None
    ]
    headers = headers_by_hash(ledger, list(dict.fromkeys(hashes)))
    height, time_ns = _height_and_time(ran, headers)
    tx_height, tx_time_ns = _height_and_time(first, headers)
    return {
        "block_height": height,
        "block_timestamp": time_ns,
        "transaction_hash": transaction.hash,
        "signer_id": transaction.signer_id,
        "tx_block_height": tx_height,
        "tx_block_timestamp": tx_time_ns,
    }


def _height_and_time(
    outcome: ExecutionOutcome | None, headers: Mapping[str, BlockHeader]
) -> tuple[int | None, int | None]:
    if outcome is None:
        return None, None
    if outcome.block_height is not None:
        return outcome.block_height, outcome.block_timestamp
    header = headers.get(outcome.block_hash or "")
    return (None, None) if header is None else (header.height, header.time_ns)
