"""The calls of the services other than JSON-RPC and the REST API: pages of rows, and checks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api import calls, matching
from ledgerkit.api.models import chain, rest, services
from ledgerkit.api.models.block_documents import BlockResponse, decode_document
from ledgerkit.api.models.transactions import TransactionResponse, decode_indexed
from ledgerkit.errors import (
    DecodeError,
    UnknownBlockError,
    UnknownReceiptError,
    UnknownTransactionError,
)

if TYPE_CHECKING:
    from msgspec import Raw

    from ledgerkit.api.calls import Call

    Documents = dict[str, TransactionResponse | DecodeError]

MAX_HASHES = 20  # per request. Source: DEFAULT_TX_LIMIT in fastnear/explorer-api.

# The maximum numbers of rows per page; the services silently lower a higher limit.
# Source: fastnear/explorer-api, fastnear/transfers-api and fastnear/kv-fastdata-server.
ACCOUNT_PAGE, TRANSFERS_PAGE, KEY_VALUES_PAGE = 200, 100, 200
_NOT_FOUND = 404
_OUT_OF_RANGE = re.compile(rb'"type"\s*:\s*"(BLOCK_[A-Z_]+)"')
# The remedies for a height that the block documents refuse, by the type of the refusal.
# Source: fastnear/neardata-server, src/api.rs, get_block_inner.
_REMEDIES = {
    "BLOCK_HEIGHT_TOO_LOW": "The block documents begin with a later block: pass a higher height.",
    "BLOCK_HEIGHT_TOO_HIGH": "No block has such a height: pass a lower one.",
    "BLOCK_DOES_NOT_EXIST": "The chain has not come so far: wait, or pass a lower height.",
}
_MAX_HEIGHT = 10**15  # the Transactions API refuses higher heights

# An account with transfers on mainnet, the only network that has the Transfers API.
_ACCOUNT_ID = "root.near"
# An entry of mainnet from the documentation of FastNEAR; testnet sends an empty list.
_ENTRY = {
    "current_account_id": "contextual.near",
    "predecessor_id": "jemartel.near",
    "key": "account_id",
}


def account_page(
    account_id: str,
    *,
    start_height: int | None = None,
    stop_height: int | None = None,
    desc: bool = False,
    filters: Mapping[str, bool] | None = None,
    resume_token: str | None = None,
) -> Call[services.AccountPage]:
    """
    Build the Transactions API's call for transactions of an account in a range of heights.

    `filters` are values of the twelve flags of a row, such as ``{"is_signer": True}``.
    """
    # Source: fastnear/explorer-api, src/click.rs, where both heights are inclusive; its
    # documentation excludes the last height. The default of `desc` also differs between the two.
    flags = dict(filters or {})
    body = _without_none(
        account_id=account_id,
        **flags,
        from_tx_block_height=None if start_height is None else min(start_height, _MAX_HEIGHT),
        to_tx_block_height=None if stop_height is None else min(stop_height + 1, _MAX_HEIGHT),
        limit=ACCOUNT_PAGE,
        desc=desc,
        resume_token=resume_token,
    )
    members = {"account_id": account_id, **flags}
    return calls.post(
        "transactions",
        "/v0/account",
        body,
        services.AccountPage,
        request=f"the transactions of {account_id}",
        expected={f"account_txs.{name}": value for name, value in members.items()},
    )


def transfers_page(
    account_id: str,
    *,
    from_ms: int | None = None,
    to_ms: int | None = None,
    desc: bool = False,
    asset_id: str | None = None,
    direction: str | None = None,
    resume_token: str | None = None,
) -> Call[services.Transfers]:
    """
    Build the Transfers API's call for transfers of an account.

    Times are milliseconds since 1970, the first inclusive, the second exclusive. `direction` is
    sender, receiver or None.
    """
    body = _without_none(
        account_id=account_id,
        direction=direction,
        asset_id=asset_id,
        from_timestamp_ms=from_ms,
        to_timestamp_ms=to_ms,
        limit=TRANSFERS_PAGE,
        desc=desc,
        resume_token=resume_token,
    )
    return _transfers(body, f"the transfers of {account_id}")


def _transfers(body: dict[str, Any], request: str) -> Call[services.Transfers]:
    path, model = "/v0/transfers", services.Transfers
    expected = {"transfers.account_id": body["account_id"]}
    return calls.post("transfers", path, body, model, request=request, expected=expected)


def key_values_page(
    contract_id: str,
    predecessor_id: str | None = None,
    *,
    history: bool = False,
    key: str | None = None,
    prefix: str | None = None,
    page_token: str | None = None,
) -> Call[services.KeyValues]:
    """Build the key-value data's call for entries: the latest per key, or all with `history`."""
    # Source: fastnear/kv-fastdata-server, src/main.rs; the default order is the newest first.
    body = _without_none(
        key=key,
        key_prefix=prefix,
        limit=KEY_VALUES_PAGE,
        page_token=page_token,
        include_metadata=True,
        asc=True if history else None,
    )
    ids = [contract_id] if predecessor_id is None else [contract_id, predecessor_id]
    path = "/".join(["/v0", "history" if history else "latest", *(quote(i, safe="") for i in ids)])
    members = _without_none(current_account_id=contract_id, predecessor_id=predecessor_id, key=key)
    expected = {f"entries.{name}": value for name, value in members.items()}
    request, model = f"the key-value data of {contract_id}", services.KeyValues
    return calls.post("kv", path, body, model, request=request, expected=expected)


def _without_none(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def node_status(surface: calls.Surface) -> Call[services.NodeStatus]:
    return calls.rpc("status", [], services.NodeStatus, request="the status", surface=surface)


def last_block() -> Call[services.BlockRows]:
    """Build the Transactions API's call for the newest block."""
    body = {"limit": 1, "desc": True}
    return calls.post(
        "transactions", "/v0/blocks", body, services.BlockRows, request="the newest block"
    )


def last_transfer() -> Call[services.Transfers]:
    """Build the Transfers API's call for the newest transfer to an account."""
    # Some versions of the service require `direction`, others ignore it.
    body = {"account_id": _ACCOUNT_ID, "direction": "receiver", "limit": 1, "desc": True}
    return _transfers(body, f"the newest transfer to {_ACCOUNT_ID}")


def block_headers(height: int, *, fresh: bool = False) -> Call[chain.Block | None]:
    """
    Build the block documents' call for a block without its chunks; None is a skipped height.

    With `fresh`, no cache between here and the service has the response.
    """
    path, model = f"/v0/block/{height}/headers{_fresh_query(fresh=fresh)}", chain.Block | None
    expected, request = {"header.height": height}, f"block {height}"

    def read(response: calls.Response) -> chain.Block | None:
        _check_range(response, height, request)
        block: chain.Block | None = calls.read_api(response, model, request)
        return block

    return calls.get(path, model, request=request, read=read, expected=expected, surface="blocks")


def last_final_block() -> Call[chain.Block]:
    """Build the block documents' call for the last final block, without its chunks."""
    # The path redirects to a block, for which a cache may still have an earlier null.
    path = f"/v0/last_block/final/headers{_fresh_query(fresh=True)}"
    request = "the last final block"
    return calls.get(path, chain.Block, request=request, surface="blocks")


def block_document(
    height: int, *, whole: bool = False, fresh: bool = False
) -> Call[BlockResponse | None]:
    """
    Build the block documents' call for a whole block; None is a skipped height.

    `whole` as in `decode_document`, and `fresh` as in `block_headers`.
    """
    path = f"/v0/block/{height}{_fresh_query(fresh=fresh)}"
    request = f"the document of block {height}"

    def read(response: calls.Response) -> BlockResponse | None:
        _check_range(response, height, request)
        calls.check_status(response, request)
        is_null = response.body.strip() == b"null"
        return None if is_null else read_block(response.body, height, whole=whole)

    return calls.get(path, Any, request=request, read=read, surface="blocks")


def read_block(body: bytes, height: int, *, whole: bool = False) -> BlockResponse:
    """Decode the document of the block at a height; raise if it belongs to another block."""
    request = f"the document of block {height}"
    document = decode_document(body, request, whole=whole)
    matching.check_members(document, {"block.header.height": height}, request)
    return BlockResponse(document, body)


def block_archive(network_url: str, start: int, *, fresh: bool = False) -> Call[bytes | None]:
    """
    Build the block documents' call for the archive of ten blocks from a height on.

    `network_url` is the address of its host. The value is the archive as received; None if the
    host lacks it. `fresh` as in `block_headers`.
    """
    # Source: fastnear/neardata-server, src/reader.rs, archive_filename.
    name = f"{start:012d}"
    path = f"/{name[:6]}/{name[6:9]}/{name}.tgz{_fresh_query(fresh=fresh)}"
    request = f"the archive of blocks {start} to {start + 9}"

    def read(response: calls.Response) -> bytes | None:
        if response.status == _NOT_FOUND:
            return None
        calls.check_status(response, request)
        return response.body

    call = calls.get(path, Any, request=request, read=read, surface="blocks")
    return replace(call, url=network_url)


def _fresh_query(*, fresh: bool) -> str:
    """Return a unique query, so that no cache has the response; "" without `fresh`."""
    # The service ignores queries. Source: fastnear/neardata-server, src/api.rs. The key of a cache
    # is the whole target URI, query included: RFC 9111, section 2.
    return f"?fresh={matching.new_id()}" if fresh else ""


def _check_range(response: calls.Response, height: int, request: str) -> None:
    """Raise if the block documents refuse a height."""
    refusal = _OUT_OF_RANGE.search(response.body) if response.status == _NOT_FOUND else None
    if refusal:
        remedy = _REMEDIES.get(refusal[1].decode())
        raise UnknownBlockError(block=height, request=request, remedy=remedy)


def blocks_health() -> Call[rest.Health]:
    return calls.get("/health", rest.Health, request="the health", surface="blocks")


def key_value() -> Call[services.KeyValues]:
    path, model = "/v0/latest/" + "/".join(_ENTRY.values()), services.KeyValues
    expected = {f"entries.{name}": text for name, text in _ENTRY.items()}
    return calls.get(path, model, request="one entry", expected=expected, surface="kv")


def transaction_documents(tx_hashes: Sequence[str]) -> Call[Documents]:
    """Build the call for up to `MAX_HASHES` transactions; unknown ones are left out."""
    request = f"{len(tx_hashes)} transactions"
    if len(tx_hashes) == 1:
        request = f"transaction {tx_hashes[0]}"

    def read(response: calls.Response) -> Documents:
        model = services.RawTransactions
        decoded: services.RawTransactions = calls.read_api(response, model, request)
        # The documents need not be in the order of the hashes.
        documents: Documents = {}
        for raw in decoded.transactions:
            tx_hash = _transaction_hash(raw, request)
            matching.check_members({"hash": tx_hash}, {"hash": list(tx_hashes)}, request)
            try:
                documents[tx_hash] = decode_indexed(bytes(raw), request=f"transaction {tx_hash}")
            except DecodeError as error:
                documents[tx_hash] = error
        return documents

    def parts(documents: Documents) -> Iterator[tuple[Call[Any], bytes]]:
        for tx_hash, document in documents.items():
            if not isinstance(document, DecodeError):
                yield from _single_response(tx_hash, document)

    body = {"tx_hashes": list(tx_hashes)}
    base_call = calls.post(
        "transactions", "/v0/transactions", body, Any, request=request, read=read
    )
    return replace(base_call, parts=parts)


def transaction_document(tx_hash: str) -> Call[TransactionResponse]:
    base_call: Call[Any] = transaction_documents([tx_hash])

    def read(response: calls.Response) -> TransactionResponse:
        documents: Documents = base_call.read(response)
        document = documents.get(tx_hash)
        if document is None:
            raise UnknownTransactionError(transaction_hash=tx_hash)
        if isinstance(document, DecodeError):
            raise document
        return document

    # The service has final blocks only, so a transaction is final once all its receipts ran.
    # Source: the indexer reads blocks with neardata-fetcher, whose default finality is final.
    return replace(base_call, read=read, keep=_has_finished, kind="transaction", parts=None)


def receipt_document(receipt_id: str) -> Call[TransactionResponse]:
    """Build the call for the transaction of a receipt, which may be a data receipt."""
    request = f"receipt {receipt_id}"

    def read(response: calls.Response) -> TransactionResponse:
        model = services.ReceiptDocument
        document: services.ReceiptDocument = calls.read_api(response, model, request)
        # Source: both members are null for an unknown receipt (fastnear/explorer-api).
        if bytes(document.transaction) == b"null":
            raise UnknownReceiptError(receipt_id=receipt_id)
        members = {"receipt_id": document.receipt and document.receipt.receipt_id}
        matching.check_members(members, {"receipt_id": receipt_id}, request)
        return decode_indexed(bytes(document.transaction), request=request)

    body = {"receipt_id": receipt_id}
    base_call = calls.post("transactions", "/v0/receipt", body, Any, request=request, read=read)

    def parts(document: TransactionResponse) -> Iterator[tuple[Call[Any], bytes]]:
        if document.transaction is not None and document.transaction.hash is not None:
            yield from _single_response(document.transaction.hash, document)

    return replace(base_call, keep=_has_finished, kind="transaction", parts=parts)


def _single_response(
    tx_hash: str, document: TransactionResponse
) -> Iterator[tuple[Call[Any], bytes]]:
    if document.result.has_finished():
        yield transaction_document(tx_hash), b'{"transactions":[' + document.body + b"]}"


def _has_finished(document: TransactionResponse) -> bool:
    return document.result.has_finished()


def _transaction_hash(document: Raw, request: str) -> str:
    try:
        decoded = json_decoding.decode(document, services.TransactionDocument)
    except msgspec.DecodeError as error:
        raise calls.not_as_documented(request, error) from None
    return decoded.transaction.hash
