"""Frames of saved responses, decoded as from a live request."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import validation
from ledgerkit.api import calls, rest, rpc
from ledgerkit.api.models.chain import MALFORMED
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.frames import accounts as account_frames
from ledgerkit.frames import chain as chain_frames
from ledgerkit.frames import tokens as token_frames
from ledgerkit.verbs.accounts import build_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from ledgerkit.api.models import chain
    from ledgerkit.api.models import rest as rest_models
    from ledgerkit.tracing.trace import Trace

# The calls below only decode: their ids and hashes are never sent.
_ANY_ID, _ANY_HASH = "saved.near", "1" * 32
_FINAL = validation.block_reference("final")


def read(source: bytes | str | PathLike[str], view: str) -> pd.DataFrame:
    """
    Return the frame of a saved response.

    Parameters
    ----------
    source
        The response's bytes, or the path of a file with them: a whole JSON-RPC response,
        its bare result, a REST body, or for ``receipts`` and ``edges`` also a Transactions
        API document.
    view
        The kind of frame: ``accounts``, ``accounts_of``, ``ft``, ``nft``, ``staking``,
        ``top_holders``, ``keys``, ``blocks``, ``chunks``, ``transactions``,
        ``receipts``, ``edges``, ``state``, ``changes``, ``validators``, ``gas_price``,
        ``status`` or ``indexer_status``.

    Returns
    -------
    frame
        Typed as `schema(view)`, exactly as from a live request. Values that the response
        does not contain, such as the account of a list of keys, are missing.

    Raises
    ------
    InvalidRequestError
        If there is no such view, or the file can't be read.
    DecodeError
        If the document is not a response of that view; the error states the path in it.
    LedgerError
        If the response is an error.

    Notes
    -----
    Source: the saved response.
    """
    frame = _VIEWS[validation.one_of(view, "view", tuple(_VIEWS))]
    return frame(read_source(source))


def read_source(source: bytes | str | PathLike[str]) -> bytes:
    """Return the bytes of a source, which are passed or read from a file."""
    if isinstance(source, bytes):
        return source
    if not isinstance(source, str | PathLike):
        raise InvalidRequestError.refuse("source", source, "bytes, or the path of a file")
    try:
        return Path(source).read_bytes()
    except (OSError, ValueError) as error:
        rule = f"the path of a readable file ({getattr(error, 'strerror', error)})"
    raise InvalidRequestError.refuse("source", str(source), rule)


def returned_value(source: bytes | str | PathLike[str]) -> Any:
    """Return the value of a saved ``call_function`` response: decoded JSON, or the bytes."""
    call = rpc.call_function(_ANY_ID, "view", b"", _FINAL)
    result = calls.read_saved(call, read_source(source))
    return rpc.json_or_bytes(rpc.result_bytes(result, call.request))


def _reader(
    call: calls.Call[Any], frame: Callable[[Any], pd.DataFrame]
) -> Callable[[bytes], pd.DataFrame]:
    """Build the reader of a view from a call's decoder and a frame builder."""
    return lambda body: frame(calls.read_saved(call, body))


class _FullMember(msgspec.Struct):
    """The member that only ``/full`` responses have."""

    nfts: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def _is_full(body: bytes) -> bool:
    """Return True for a ``/full`` response."""
    try:
        return msgspec.json.decode(body, type=_FullMember).nfts is not msgspec.UNSET
    except MALFORMED:
        return False  # the view's own decoder raises the error


def _nft(body: bytes) -> pd.DataFrame:
    """Tabulate the collections of an ``/nft`` or ``/full`` response."""
    if _is_full(body):
        return build_snapshot(calls.read_saved(rest.full(_ANY_ID), body)).nft
    tokens: rest_models.FungibleTokens = calls.read_saved(rest.ft(_ANY_ID), body)
    if b'"balance"' in body and tokens.tokens:
        msg = "the document lists fungible tokens, not NFTs"
        raise DecodeError(msg, remedy='Read it with view="ft".', path="$.tokens[0].balance")
    collections: rest_models.Collections = calls.read_saved(rest.nft(_ANY_ID), body)
    return token_frames.nft([(collections.account_id, collections.tokens)])


def _chunk_headers(block: chain.Block) -> pd.DataFrame:
    """Tabulate the chunk headers of a block."""
    return chain_frames.chunks(block.chunks, block_height=block.header.height)


def _chunks(body: bytes) -> pd.DataFrame:
    """Tabulate a chunk, or the chunk headers of a block."""
    try:
        chunk = calls.read_saved(rpc.chunk(_ANY_HASH), body)
    except DecodeError:
        return _reader(rpc.block(_FINAL), _chunk_headers)(body)
    return chain_frames.chunks([chunk.header], contents=[chunk])


def _trace(body: bytes) -> Trace:
    """Read a receipt tree."""
    from ledgerkit.tracing.trace import Trace

    return Trace.from_json(body)


_VIEWS: dict[str, Callable[[bytes], pd.DataFrame]] = {
    "accounts": _reader(rest.full(_ANY_ID), lambda response: account_frames.accounts([response])),
    "accounts_of": _reader(rest.accounts_of(""), account_frames.accounts_of),
    "ft": _reader(rest.ft(_ANY_ID), lambda response: token_frames.ft([response])),
    "nft": _nft,
    "staking": _reader(rest.staking(_ANY_ID), lambda response: token_frames.staking([response])),
    "top_holders": _reader(rest.top_holders(_ANY_ID), token_frames.top_holders),
    "keys": _reader(
        rpc.view_access_key_list(_ANY_ID, _FINAL),
        lambda response: account_frames.keys([(None, response)]),
    ),
    "blocks": _reader(rpc.block(_FINAL), lambda block: chain_frames.blocks([block])),
    "chunks": _chunks,
    "transactions": _reader(
        rpc.chunk(_ANY_HASH), lambda chunk: chain_frames.transactions(None, [chunk])
    ),
    "receipts": lambda body: _trace(body).receipts,
    "edges": lambda body: _trace(body).edges,
    "state": _reader(rpc.view_state(_ANY_ID, b"", _FINAL), chain_frames.state),
    "changes": _reader(rpc.changes("", _FINAL, {}), chain_frames.changes),
    "validators": _reader(
        rpc.validators([None]),
        lambda response: chain_frames.validators(response.current_validators),
    ),
    "gas_price": _reader(rpc.gas_price(None), chain_frames.gas_price),
    "status": _reader(rpc.status(), chain_frames.status),
    "indexer_status": _reader(rest.status(), chain_frames.indexer_status),
}
