"""Frames from saved answers: the same decoding as a live call, without a network."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import validation
from ledgerkit.api import calls, rest, rpc
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.frames import accounts as account_tables
from ledgerkit.frames import chain as chain_tables
from ledgerkit.frames import tokens as token_tables
from ledgerkit.verbs.accounts import snapshot_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from ledgerkit.api.models import chain
    from ledgerkit.api.models import rest as indexed_wire
    from ledgerkit.tracing.trace import Trace

_SOME_ID, _SOME_HASH = "saved.near", "1" * 32
_FINAL = validation.block_reference("final")


def read(source: bytes | str | PathLike[str], view: str) -> pd.DataFrame:
    """
    Frame a saved answer.

    Parameters
    ----------
    source
        The answer's bytes, or the path of a file that holds them: a whole JSON-RPC
        answer, its bare result, a REST body, or for ``receipts`` and ``edges`` also
        a Transactions API document.
    view
        The frame wanted: ``accounts``, ``accounts_of``, ``ft``, ``nft``, ``staking``,
        ``top_holders``, ``keys``, ``blocks``, ``chunks``, ``transactions``,
        ``receipts``, ``edges``, ``state``, ``changes``, ``validators``, ``gas_price``,
        ``status`` or ``indexer_status``.

    Returns
    -------
    frame
        Typed as `schema(view)`, exactly as from a live call. What the answer itself
        does not tell, such as whose keys a key list holds, is missing.

    Raises
    ------
    InvalidRequestError
        If there is no such view, or the file cannot be read.
    DecodeError
        If the document is not an answer of that view; names the place.
    LedgerError
        The typed error that the answer holds.

    Notes
    -----
    Source: the saved document.
    """
    frame = _VIEWS[validation.one_of(view, "view", tuple(_VIEWS))]
    return frame(content(source))


def content(source: bytes | str | PathLike[str]) -> bytes:
    """Give the bytes of a source: itself, or the file at that path."""
    if isinstance(source, bytes):
        return source
    if not isinstance(source, str | PathLike):
        raise InvalidRequestError.refuse("source", source, "bytes, or the path of a file")
    try:
        return Path(source).read_bytes()
    except (OSError, ValueError) as error:
        rule = f"a file that can be read ({getattr(error, 'strerror', error)})"
    raise InvalidRequestError.refuse("source", str(source), rule)


def value_of(source: bytes | str | PathLike[str]) -> Any:
    """Give what a saved ``call_function`` returned: decoded JSON, or the bytes."""
    call = rpc.call_function(_SOME_ID, "view", b"", _FINAL)
    return rpc.json_or_bytes(rpc.returned(calls.read_saved(call, content(source)), call.asked))


def _framed(
    call: calls.Call[Any], frame: Callable[[Any], pd.DataFrame]
) -> Callable[[bytes], pd.DataFrame]:
    """Read with a call's own reader, then frame."""
    return lambda body: frame(calls.read_saved(call, body))


class _Kind(msgspec.Struct):
    """What tells a ``/full`` answer from the narrower ones."""

    nfts: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def _is_full(body: bytes) -> bool:
    """Tell a ``/full`` answer."""
    try:
        return msgspec.json.decode(body, type=_Kind).nfts is not msgspec.UNSET
    except calls.MALFORMED:
        return False  # the view's own reader says what is wrong


def _nft(body: bytes) -> pd.DataFrame:
    """Frame the collections of a ``/nft`` or ``/full`` answer."""
    if _is_full(body):
        return snapshot_of(calls.read_saved(rest.full(_SOME_ID), body)).nft
    tokens: indexed_wire.FungibleTokens = calls.read_saved(rest.ft(_SOME_ID), body)
    if b'"balance"' in body and tokens.tokens:
        msg = "the document is a view of fungible tokens, not of NFTs"
        raise DecodeError(msg, remedy='Read it with view="ft".', path="$.tokens[0].balance")
    view: indexed_wire.Collections = calls.read_saved(rest.nft(_SOME_ID), body)
    return token_tables.nft([(view.account_id, view.tokens)])


def _staking(body: bytes) -> pd.DataFrame:
    """Frame the pools of a ``/staking`` or ``/full`` answer."""
    view: indexed_wire.Staking = calls.read_saved(rest.staking(_SOME_ID), body)
    rows = [(view.account_id, p.pool_id, p.last_update_block_height, "") for p in view.pools or ()]
    return token_tables.staking(rows)


def _chunk_headers(view: chain.Block) -> pd.DataFrame:
    """Frame the chunk headers of a block."""
    return chain_tables.chunks(view.chunks, block_height=view.header.height)


def _chunks(body: bytes) -> pd.DataFrame:
    """Frame a chunk, or the chunk headers of a block."""
    try:
        view = calls.read_saved(rpc.chunk(_SOME_HASH), body)
    except DecodeError:
        return _framed(rpc.block(_FINAL), _chunk_headers)(body)
    return chain_tables.chunks([view.header], contents=[view])


def _trace(body: bytes) -> Trace:
    """Read a receipt tree."""
    from ledgerkit.tracing.trace import Trace

    return Trace.from_json(body)


_VIEWS: dict[str, Callable[[bytes], pd.DataFrame]] = {
    "accounts": _framed(rest.full(_SOME_ID), lambda view: account_tables.accounts([view])),
    "accounts_of": _framed(rest.accounts_of(""), account_tables.accounts_of),
    "ft": _framed(rest.ft(_SOME_ID), lambda view: token_tables.ft([view])),
    "nft": _nft,
    "staking": _staking,
    "top_holders": _framed(rest.top_holders(_SOME_ID), token_tables.top_holders),
    "keys": _framed(
        rpc.view_access_key_list(_SOME_ID, _FINAL), lambda view: account_tables.keys(None, view)
    ),
    "blocks": _framed(rpc.block(_FINAL), lambda view: chain_tables.blocks([view])),
    "chunks": _chunks,
    "transactions": _framed(
        rpc.chunk(_SOME_HASH), lambda view: chain_tables.transactions(None, [view])
    ),
    "receipts": lambda body: _trace(body).receipts,
    "edges": lambda body: _trace(body).edges,
    "state": _framed(rpc.view_state(_SOME_ID, b"", _FINAL), chain_tables.state),
    "changes": _framed(rpc.changes("", _FINAL, {}), chain_tables.changes),
    "validators": _framed(
        rpc.validators([None]), lambda view: chain_tables.validators(view.current_validators)
    ),
    "gas_price": _framed(rpc.gas_price(None), chain_tables.gas_price),
    "status": _framed(rpc.status(), chain_tables.status),
    "indexer_status": _framed(rest.status(), chain_tables.indexer_status),
}
