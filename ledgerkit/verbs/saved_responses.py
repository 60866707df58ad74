"""Frames of saved responses, decoded as from a live request."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from ledgerkit import user_warnings, validation
from ledgerkit.api import calls, rest, rpc
from ledgerkit.api.models import rest as rest_models
from ledgerkit.api.models import services as service_models
from ledgerkit.api.models.block_documents import (
    BlockDocument,
    Shard,
    decode_chunk,
    decode_document,
    decode_shard,
    result_of,
)
from ledgerkit.errors import NOT_AS_DOCUMENTED, DecodeError, InvalidRequestError, LedgerError
from ledgerkit.frames import account_history as history_frames
from ledgerkit.frames import accounts as account_frames
from ledgerkit.frames import build
from ledgerkit.frames import chain as chain_frames
from ledgerkit.frames import tokens as token_frames
from ledgerkit.frames.collected import DOCUMENT_VIEWS
from ledgerkit.tracing import actions
from ledgerkit.tracing.tree import Forest, build_forest
from ledgerkit.verbs import document_kinds

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.models import chain
    from ledgerkit.tracing.trace import Trace
    from ledgerkit.verbs.document_kinds import Kind

    Reader = Callable[[bytes, Kind | None], pd.DataFrame]

T = TypeVar("T")

# The calls below are only used for decoding: their ids and hashes are never sent.
_ANY_ID, _ANY_HASH = "saved.near", "1" * 32
_FINAL = validation.block_reference("final")
_REQUEST = "the request"
_NOTE = (
    "a block document has the receipts that ran in one block: what their transactions' other "
    "blocks have (parent_id, depth, waits_for, subtree_gas, on_critical_path) is unknown"
)


def read_response(source: bytes | str | PathLike[str], view: str) -> pd.DataFrame:
    """
    Return the frame of a saved response.

    Parameters
    ----------
    source
        The response's bytes, or the path of a file with them: a whole JSON-RPC response,
        its bare result, a REST body, or for ``receipts``, ``edges`` and ``events`` also a
        Transactions API document. ``blocks``, ``chunks``, ``transactions``, ``receipts``
        and ``events`` also read a whole block, and all but ``blocks`` one shard of it, as
        the block service and NEAR Lake send them.
    view
        The kind of frame: ``accounts``, ``accounts_of``, ``ft``, ``nft``, ``staking``,
        ``top_holders``, ``keys``, ``blocks``, ``chunks``, ``transactions``,
        ``receipts``, ``edges``, ``events``, ``state``, ``changes``, ``validators``,
        ``gas_price``, ``status``, ``account_transactions``, ``transfers_of``, ``key_values``,
        or of a whole block also ``outcomes``, ``actions``, ``balances`` or ``data_receipts``.

    Returns
    -------
    frame
        Typed as `schema(view)`, exactly as from a live request; the views ``outcomes``,
        ``actions``, ``balances`` and ``data_receipts`` of a block document are typed as the
        tables of `collect_blocks`, such as ``schema("collected_outcomes")``. Values that the
        response does not contain, such as the account of a list of keys, are missing. The
        receipts of a block document are those that ran in this block; values from other
        blocks, such as their `parent_id` and `depth`, are missing.

    Raises
    ------
    InvalidRequestError
        If there is no such view, the file can't be read, or it has several transactions: read
        one of these with `Trace.from_json`.
    DecodeError
        If the document is not a response of that view; the error names the path in it, and
        the view that reads the document, if its kind is known.
    LedgerError
        If the response is an error.

    Notes
    -----
    Source: the saved response.

    Examples
    --------
    >>> import json
    >>> from pathlib import Path
    >>> ledger = lk.connect("local")
    >>> response = ledger.get("/v1/account/alice.near/staking")
    >>> _ = Path("alice.json").write_text(json.dumps(response))
    >>> lk.read_response("alice.json", "staking")
       account_id            pool_id  last_update_block_height
    0  alice.near   east.poolv1.near                      <NA>
    1  alice.near  north.poolv1.near                      <NA>
    """
    read_body = _VIEWS[validation.one_of(view, "view", tuple(_VIEWS))]
    body = read_source(source)
    kind = document_kinds.recognize(body)
    try:
        if kind is None or view in kind.views:
            return read_body(body, kind)
        reason, path = "", "$"
    except DecodeError as error:
        reason, path = _reason(error), error.path or "$"
    except LedgerError as error:
        error.request = None  # the real request is unknown
        raise
    kind = document_kinds.refine(kind, body)
    if kind is not None and view not in kind.views:
        raise _other_kind(kind, view)
    sentence = f"the document can't be read as {view!r}: {reason}"
    raise DecodeError(sentence, remedy=_INCOMPLETE, path=path)


def _other_kind(kind: Kind, view: str) -> DecodeError:
    """Build the error for a document of a kind that the view can't read."""
    sentence = f"view {view!r} can't read this document: it is {kind.name}"
    views = " or ".join(f'view="{name}"' for name in kind.views)
    remedy = f"Read it with {views}." if views else kind.advice
    return DecodeError(sentence, remedy=remedy, path="$")


_INCOMPLETE = "Check that the document is complete, and that it is a response of this kind."


def _reason(error: DecodeError) -> str:
    """Return the problem of a document, without the request, which was never sent."""
    return error.sentence.rpartition(NOT_AS_DOCUMENTED)[2]


def read_source(source: bytes | str | PathLike[str]) -> bytes:
    """Return the bytes of a source: bytes as they are, or the contents of a file."""
    if isinstance(source, bytes):
        return source
    if not isinstance(source, str | PathLike):
        raise InvalidRequestError.refuse("source", source, "bytes, or the path of a file")
    return validation.file_bytes(source, "source")


def returned_value(source: bytes | str | PathLike[str]) -> Any:
    """Return the value of a saved ``call_function`` response: decoded JSON, or the bytes."""
    call = rpc.call_function(_ANY_ID, "view", b"", _FINAL)
    try:
        result = calls.read_saved(call, read_source(source))
        return rpc.json_or_bytes(rpc.result_bytes(result, call.request))
    except DecodeError as error:
        sentence = f"the document is not a response of a view call: {_reason(error)}"
        raise DecodeError(sentence, remedy=_INCOMPLETE, path=error.path) from None
    except LedgerError as error:
        error.request = None
        raise


def _rpc_reader(call: calls.Call[Any], frame: Callable[[Any], pd.DataFrame]) -> Reader:
    """Build the reader of a node's response, which warns if that is not the last page."""

    def read_body(body: bytes, _: Kind | None) -> pd.DataFrame:
        response = calls.read_saved(call, body)
        if getattr(response, "last_key", None) is not None:
            user_warnings.warn("the document is one page, and not the last one: rows are missing")
        return frame(response)

    return read_body


def _rest_reader(model: type[rest_models.Listing], frame: Callable[[Any], pd.DataFrame]) -> Reader:
    """Build the reader of a view of the REST API; a full response has all of these views."""

    def read_body(body: bytes, kind: Kind | None) -> pd.DataFrame:
        model_read = rest_models.Full if kind is document_kinds.FULL else model
        return frame(rest.read_listing(calls.Response(body), model_read, _REQUEST))

    return read_body


def _nft(response: rest_models.Collections | rest_models.Full) -> pd.DataFrame:
    entries = response.nfts if isinstance(response, rest_models.Full) else response.tokens
    return token_frames.nft([(response.account_id, entries)])


def _block_document(body: bytes, kind: Kind | None) -> BlockDocument | Shard | None:
    """Decode a whole block or one shard of it; None for any other document."""
    if kind is document_kinds.WHOLE_BLOCK:
        return decode_document(body, _REQUEST)
    return decode_shard(body, _REQUEST) if kind is document_kinds.SHARD else None


def _decode(body: bytes, kind: type[T]) -> T:
    document: T = calls.read_api(calls.Response(body), kind, _REQUEST)
    return document


def _blocks(body: bytes, kind: Kind | None) -> pd.DataFrame:
    if kind is document_kinds.WHOLE_BLOCK:
        return chain_frames.blocks([decode_document(body, _REQUEST).block])
    return chain_frames.blocks([calls.read_saved(rpc.block(_FINAL), body)])


def _table_of_block(view: str) -> Reader:
    def read_body(body: bytes, _: Kind | None) -> pd.DataFrame:
        from ledgerkit.block_data.block_tables import block_tables
        from ledgerkit.block_data.contents import DocumentContents
        from ledgerkit.frames import arrow_tables

        contents = DocumentContents(decode_document(body, _REQUEST), [], len(body))
        return arrow_tables.frame(view, block_tables([view], [contents])[view])

    return read_body


def _read_chunk(body: bytes) -> chain.Chunk:
    try:
        return calls.read_saved(rpc.chunk(_ANY_HASH), body)
    except DecodeError as error:
        try:
            return decode_chunk(body, _REQUEST)
        except DecodeError:
            raise error from None


def _chunks(body: bytes, kind: Kind | None) -> pd.DataFrame:
    document = _block_document(body, kind)
    if isinstance(document, BlockDocument):
        rows = chain_frames.chunk_rows(document.block, document.chunks())
    elif kind is document_kinds.BLOCK:
        rows = chain_frames.chunk_rows(calls.read_saved(rpc.block(_FINAL), body), [])
    else:
        rows = [(height, chunk.header, chunk) for height, chunk in _new_chunks(body, document)]
    return chain_frames.chunks(rows)


def _transactions(body: bytes, kind: Kind | None) -> pd.DataFrame:
    return chain_frames.transactions(_new_chunks(body, _block_document(body, kind)))


def _new_chunks(
    body: bytes, document: BlockDocument | Shard | None
) -> list[tuple[int | None, chain.Chunk]]:
    """Return the new chunks of a document, with the height of its block if known."""
    if document is None:
        return [(None, _read_chunk(body))]
    if isinstance(document, BlockDocument):
        return [(document.block.header.height, chunk) for chunk in document.chunks()]
    return [(document.block_height, document.chunk.as_node_sends())] if document.chunk else []


def _receipts(body: bytes, kind: Kind | None) -> pd.DataFrame:
    """Build the receipts frame; of a block document the receipts that ran, in its order."""
    document = _block_document(body, kind)
    if document is None:
        return _trace(body).receipts
    forest = _forest(document)
    chunks = [shard.chunk for shard in _shards(document).values() if shard.chunk is not None]
    local_ids = {receipt_id for chunk in chunks for receipt_id in chunk.local_ids()}
    waits = zip(forest.columns["waits_for"], forest.columns["input_data_ids"], strict=True)
    columns = {
        **forest.columns,
        **dict.fromkeys(("depth", "subtree_gas", "on_critical_path"), [None] * len(forest)),
        "order": forest.outcome_at,
        "is_local": [receipt_id in local_ids for receipt_id in forest.ids],
        "waits_for": [None if inputs else producers for producers, inputs in waits],
    }
    frame = build.build_frame("receipts", columns)
    # The trees also have the receipts that were created, and ran in later blocks.
    frame = frame[frame["order"] >= 0].sort_values("order", ignore_index=True)
    frame.attrs["notes"] = [_NOTE]
    return frame


def _events(body: bytes, kind: Kind | None) -> pd.DataFrame:
    """Build the events frame; of a block document those of the receipts that ran, in its order."""
    document = _block_document(body, kind)
    if document is None:
        return _trace(body).events
    forest = _forest(document)
    columns = actions.event_columns(forest, actions.parse_events(forest))
    ordered = {**forest.columns, "order": forest.outcome_at}
    frame = build.build_frame("events", actions.with_receipts(columns, ordered))
    return frame.sort_values(["order", "log_index"], ignore_index=True)


def _forest(document: BlockDocument | Shard) -> Forest:
    return build_forest(
        [
            result_of(shard.receipt_execution_outcomes, f"{path}.receipt_execution_outcomes")
            for path, shard in _shards(document).items()
        ]
    )


def _shards(document: BlockDocument | Shard) -> dict[str, Shard]:
    """Return the shards of a document by their paths; a single shard has the path "$"."""
    if isinstance(document, Shard):
        return {"$": document}
    return {f"$.shards[{index}]": shard for index, shard in enumerate(document.shards)}


def _trace(body: bytes) -> Trace:
    from ledgerkit.tracing.trace import Trace

    try:
        return Trace.from_json(body)
    except InvalidRequestError as error:
        if error.field != "tx_hash":  # `read_response` has no such argument
            raise
    remedy = "Read one of them with ledgerkit.Trace.from_json(data, tx_hash=…)."
    raise InvalidRequestError("the document has several transactions", remedy=remedy)


_VIEWS: dict[str, Reader] = {
    "accounts": _rest_reader(rest_models.Full, lambda full: account_frames.accounts([full])),
    "accounts_of": _rest_reader(rest_models.KeyAccounts, account_frames.accounts_of),
    "ft": _rest_reader(rest_models.FungibleTokens, lambda listing: token_frames.ft([listing])),
    "nft": _rest_reader(rest_models.Collections, _nft),
    "staking": _rest_reader(rest_models.Staking, lambda listing: token_frames.staking([listing])),
    "top_holders": _rest_reader(rest_models.TopHolders, token_frames.top_holders),
    "keys": _rpc_reader(
        rpc.view_access_key_list(_ANY_ID, _FINAL),
        lambda response: account_frames.keys([(None, response)]),
    ),
    "blocks": _blocks,
    "chunks": _chunks,
    "transactions": _transactions,
    "receipts": _receipts,
    "edges": lambda body, _: _trace(body).edges,
    "events": _events,
    **{view: _table_of_block(view) for view in DOCUMENT_VIEWS},
    "state": _rpc_reader(rpc.view_state(_ANY_ID, b"", _FINAL), chain_frames.state),
    "changes": _rpc_reader(rpc.changes("", _FINAL, {}), chain_frames.changes),
    "validators": _rpc_reader(
        rpc.validators([None]),
        lambda response: chain_frames.validators(response.current_validators),
    ),
    "gas_price": _rpc_reader(rpc.gas_price(None), chain_frames.gas_price),
    "status": _rpc_reader(rpc.status(), chain_frames.status),
    "account_transactions": lambda body, _: history_frames.account_transactions(
        _decode(body, service_models.AccountPage).account_txs
    ),
    "transfers_of": lambda body, _: history_frames.transfers_of(
        _decode(body, service_models.Transfers).transfers
    ),
    "key_values": lambda body, _: history_frames.key_values(
        _decode(body, service_models.KeyValues).entries
    ),
}
