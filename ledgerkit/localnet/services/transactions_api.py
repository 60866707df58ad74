"""The Transactions API of the embedded ledger: a path and a body in, a result out."""

# Source: fastnear/explorer-api, src/api.rs, src/click.rs and src/types.rs.

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ledgerkit.localnet.http_messages import json_response
from ledgerkit.localnet.rpc_json import base58
from ledgerkit.localnet.services import documents, requests
from ledgerkit.localnet.services.requests import RefusedError, Unsigned
from ledgerkit.localnet.services.transaction_index import ROLES, RoleFilters, TransactionIndex
from ledgerkit.protocol import AccountId, CryptoHash

if TYPE_CHECKING:
    from ledgerkit.localnet.services.transaction_index import IndexedTransaction
    from ledgerkit.localnet.world import World

_MAX_TRANSACTIONS = 20
_MAX_ROWS = 200
_SPARE_ROWS = 50  # read beyond a page, because there are duplicates
_MAX_BLOCKS = 100
_MAX_HEIGHT = 10**15
_MAX_TOKEN_DIGITS = 39  # the digits of 128 bits
_INDEX_BITS = 32


def respond(world: World, method: str, path: str, body: bytes) -> dict[str, Any] | None:
    """Answer a request; None for an unknown path."""
    handler = _HANDLERS.get(path)
    return None if handler is None or method != "POST" else handler(world, body)


def _bad_request(message: str) -> RefusedError:
    return RefusedError(json_response({"error": "Bad request", "message": message}, 400))


def _check_heights(*heights: int | None) -> None:
    if any((height or 0) > _MAX_HEIGHT for height in heights):
        raise _bad_request(f"Block height exceeds maximum allowed value of {_MAX_HEIGHT}")


# /v0/account -------------------------------------------------------------------------------


class _AccountBody(RoleFilters, kw_only=True):
    account_id: AccountId
    is_success: bool | None = None
    from_tx_block_height: Unsigned | None = None
    to_tx_block_height: Unsigned | None = None
    limit: Unsigned | None = None
    desc: bool | None = None
    resume_token: str | None = None


def _account(world: World, body: bytes) -> dict[str, Any]:
    args = requests.decode_body(body, _AccountBody)
    _check_heights(args.from_tx_block_height, args.to_tx_block_height)
    after = _parse_token(args.resume_token)
    limit = requests.page_length(args.limit, _MAX_ROWS)
    copies = 1 + world.settings.duplicate_rows
    # With many duplicates a page is short, so it looks like the last one.
    most = min(limit, math.ceil((limit + _SPARE_ROWS) / copies))
    page = list(islice(_select(world, args, after), most))
    account_id = str(args.account_id)
    rows = [documents.account_row(account_id, transaction) for transaction in page]
    response: dict[str, Any] = {"account_txs": rows}
    if len(rows) == limit:
        token = rows[-1]["tx_block_height"] << _INDEX_BITS | rows[-1]["tx_index"]
        response["resume_token"] = str(token)
    if after is None:
        response["txs_count"] = copies * sum(1 for _ in _select(world, args, None))
    return response


def _parse_token(text: str | None) -> tuple[int, int] | None:
    """Parse the height and the index after which a page begins."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_TOKEN_DIGITS):
        raise RefusedError(requests.refusal("invalid digit found in string"))
    height, index = divmod(int(text), 2**_INDEX_BITS)
    return min(height, _MAX_HEIGHT), index


def _select(
    world: World, args: _AccountBody, after: tuple[int, int] | None
) -> Iterator[IndexedTransaction]:
    index, account_id = TransactionIndex.of(world), str(args.account_id)
    positions = index.positions(account_id)
    # A tuple sorts after its own prefix, so a height alone is the bound of its block.
    start, stop = bisect_left(positions, (args.from_tx_block_height or 0,)), len(positions)
    if args.to_tx_block_height is not None:
        stop = bisect_left(positions, (args.to_tx_block_height + 1,))
    descending = args.desc is not False
    if after is not None and descending:
        stop = min(stop, bisect_left(positions, after))
    elif after is not None:
        start = max(start, bisect_left(positions, (after[0], after[1] + 1)))
    filters = {role: flag for role in ROLES if (flag := getattr(args, role)) is not None}
    for number in range(stop - 1, start - 1, -1) if descending else range(start, stop):
        transaction = index.transaction(positions[number][2])
        if transaction is None or args.is_success not in (None, transaction.is_success):
            continue
        roles = transaction.roles[account_id]
        if all((role in roles) == required for role, required in filters.items()):
            yield transaction


# The other paths ---------------------------------------------------------------------------


class _TransactionsBody(Struct):
    tx_hashes: list[CryptoHash]


def _transactions(world: World, body: bytes) -> dict[str, Any]:
    """List the known transactions of some hashes, in the order of the table."""
    hashes = requests.decode_body(body, _TransactionsBody).tx_hashes
    if len(hashes) > _MAX_TRANSACTIONS:
        raise _bad_request(f"Too many transactions requested. Limit is {_MAX_TRANSACTIONS}")
    index = TransactionIndex.of(world)
    transactions = map(index.transaction, sorted(set(hashes), key=base58))
    return {"transactions": [documents.document(tx) for tx in transactions if tx]}


class _ReceiptBody(Struct):
    receipt_id: CryptoHash


def _receipt(world: World, body: bytes) -> dict[str, Any]:
    receipt_id = requests.decode_body(body, _ReceiptBody).receipt_id
    row = TransactionIndex.of(world).receipt(receipt_id)
    if row is None:
        return {"receipt": None, "transaction": None}
    transaction = documents.document(row.transaction)
    return {"receipt": documents.receipt_row(world, row), "transaction": transaction}


class _BlockBody(Struct):
    block_id: Unsigned | str
    with_transactions: bool | None = None
    with_receipts: bool | None = None


def _block(world: World, body: bytes) -> dict[str, Any]:
    args = requests.decode_body(body, _BlockBody)
    height: int | None
    if isinstance(args.block_id, str):
        height = world.chain.height_of(requests.crypto_hash(args.block_id))
    else:
        height = args.block_id
    entry = None if height is None else TransactionIndex.of(world).blocks.get(height)
    if entry is None:
        return {"block": None}
    response: dict[str, Any] = {"block": documents.block_row(entry, world.runtime.profile.version)}
    if args.with_transactions:
        published = [tx for tx in entry.transactions if tx.receipts]
        response["block_txs"] = [documents.transaction_row(world, tx) for tx in published]
    if args.with_receipts:
        response["block_receipts"] = [documents.receipt_row(world, row) for row in entry.receipts]
    return response


class _BlocksBody(Struct):
    from_block_height: Unsigned | None = None
    to_block_height: Unsigned | None = None
    limit: Unsigned | None = None
    desc: bool | None = None


def _blocks(world: World, body: bytes) -> dict[str, Any]:
    args = requests.decode_body(body, _BlocksBody)
    _check_heights(args.from_block_height, args.to_block_height)
    limit = requests.page_length(args.limit, _MAX_BLOCKS)
    index, version = TransactionIndex.of(world), world.runtime.profile.version
    first = max(args.from_block_height or 0, world.chain.genesis.height)
    last = index.block.height
    if args.to_block_height is not None:
        last = min(last, args.to_block_height)
    heights: Iterable[int] = range(first, last + 1)
    if args.desc is not False:
        heights = range(last, first - 1, -1)
    entries = (index.blocks[height] for height in heights if height in index.blocks)
    return {"blocks": [documents.block_row(block, version) for block in islice(entries, limit)]}


_HANDLERS: dict[str, Callable[[World, bytes], dict[str, Any]]] = {
    "/v0/account": _account,
    "/v0/transactions": _transactions,
    "/v0/receipt": _receipt,
    "/v0/block": _block,
    "/v0/blocks": _blocks,
}
