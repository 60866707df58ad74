"""Recordings: files of requests and responses that repeat an analysis without a network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec

from ledgerkit import client, json_decoding, validation
from ledgerkit.api import matching
from ledgerkit.api.models.chain import Envelope
from ledgerkit.frames import build
from ledgerkit.transport.recording_files import Record, RecordedExchange, RecordFile
from ledgerkit.transport.replay import replayed_network

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.calls import Surface
    from ledgerkit.ledger import Ledger

# Members of a request that name an account; the first one present counts.
_ACCOUNT_MEMBERS = ("account_id", "sender_account_id", "contract_id", "predecessor_id")


@contextmanager
def record(
    path: str | PathLike[str],
    *,
    mode: Literal["new", "extend"] = "new",
    ledger: Ledger | None = None,
) -> Iterator[Ledger]:
    """
    Record all requests of a ``with`` block, and their responses, in one file.

    ``connect(path)`` then replays the file without a network, so the same analysis gives the same
    result anywhere and at any time. Each exchange is on disk before its response is used: a killed
    process loses none.

    Parameters
    ----------
    path
        The file, whose name ends in ``.lk``.
    mode
        ``"new"`` creates the file, which must not exist. ``"extend"`` adds to it: requests that
        the file has are replayed, and only others are sent to the network.
    ledger
        The ledger to record; None is the session's default.

    Yields
    ------
    ledger
        A ledger with the same settings and empty caches. It is the default within the block,
        until `connect` opens another one there.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, the file exists, another process is writing to it, or another
        ``with`` block is being recorded. Within the block, if a ledger of another network is used.
    RecordingError
        If the file to extend is not a recording, or is damaged.

    Notes
    -----
    The API key is never stored, nor is a path of a host, a signed transaction, or a request or
    response with a secret key or a seed phrase: `read_recording` lists these as withheld.

    Source: the requests of the block, and status of the node for its chain id.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> with lk.record("case.lk"):
    ...     recorded = lk.accounts("alice.near")
    >>> lk.connect("case.lk")
    <Ledger local: 1 answer recorded in case.lk>
    >>> lk.accounts("alice.near").equals(recorded)
    True
    """
    validation.one_of(mode, "mode", ("new", "extend"))
    recorder = client.new_recorder(path, mode, is_shared=True)
    with client.recorded_by(recorder, ledger) as recorded:
        yield recorded


def read_recording(path: str | PathLike[str]) -> pd.DataFrame:
    """
    List the requests of a recording.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    exchanges
        One row per request, in the order of the file, typed as `schema("recording")`. In
        ``attrs``: the `network`; the `chain_id` that its node named, None if no response does;
        the version of `ledgerkit` that recorded it; the `size_bytes` of the file; its `digest`,
        which covers all requests and responses; and the `torn_bytes` of a response that a killed
        process left incomplete.

    Raises
    ------
    RecordingError
        If the file is not a recording, is damaged, or is of a newer version.

    Notes
    -----
    Source: the file.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> with lk.record("case.lk"):
    ...     _ = lk.ft("alice.near")
    >>> lk.read_recording("case.lk")[["surface", "method", "account_id", "size_bytes"]]
      surface                     method  account_id  size_bytes
    0     rpc                     status         NaN        1081
    1     api  /v1/account/alice.near/ft  alice.near         663
    """
    file = validation.file_path(path, "path")
    source = RecordFile(file)
    network = replayed_network(file, source.header.network)
    hosts = {s: urlsplit(url).netloc for s, url in source.header.network.urls.items()}
    chain_id = None
    rows: list[dict[str, Any]] = []
    for item in source.records():
        rows.append(_row(item, hosts))
        if chain_id is None and rows[-1]["method"] == "status":
            chain_id = _chain_id(item)
    attrs = {
        "network": network.name,
        "source": "the recording",
        "chain_id": chain_id,
        "ledgerkit": source.header.ledgerkit,
        "size_bytes": file.stat().st_size,
        "digest": source.digest.hex(),
        "torn_bytes": source.torn_bytes,
    }
    return build.of_rows("recording", rows, attrs)


class _Chain(msgspec.Struct):
    chain_id: str


def _chain_id(item: Record) -> str | None:
    try:
        result = json_decoding.decode(item.body, Envelope[_Chain]).result
    except msgspec.DecodeError:
        return None
    return result.chain_id if isinstance(result, _Chain) else None  # None: an error


def _row(item: Record, hosts: dict[Surface, str]) -> dict[str, Any]:
    exchange = item.exchange
    method, account_id = _method(exchange)
    error = exchange.error
    return {
        "surface": exchange.surface,
        "host": urlsplit(exchange.url).netloc or hosts.get(exchange.surface),
        "method": method,
        "account_id": account_id,
        "status": None if error else exchange.status,
        "size_bytes": exchange.size,
        "asked_at": item.asked_at,
        "error": error.sentence if error else None,
        "withheld": exchange.withheld or ("the request" if exchange.request_digest else None),
    }


def _method(exchange: RecordedExchange) -> tuple[str | None, str | None]:
    """Return the method or the path of a request, and the account that it names."""
    if exchange.request_digest:
        return None, None
    document: Any = None
    if exchange.body is not None:
        try:
            document = json_decoding.decode(exchange.body)
        except msgspec.DecodeError:
            return exchange.path, None
    is_rpc = isinstance(document, dict) and "jsonrpc" in document
    if is_rpc and isinstance(document.get("method"), str):
        params = document.get("params")
        kind = params.get("request_type") if isinstance(params, dict) else None
        method = f"query {kind}" if isinstance(kind, str) else document["method"]
        return method, _account_id(params)
    return exchange.path, _account_id(matching.expected_of_path(exchange.path) or document)


def _account_id(members: Any) -> str | None:
    if not isinstance(members, dict):
        return None
    named = (members.get(name) for name in _ACCOUNT_MEMBERS)
    return next((name for name in named if isinstance(name, str)), None)
