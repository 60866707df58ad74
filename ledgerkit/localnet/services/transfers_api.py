"""The Transfers API: one path, which lists the transfers of an account page by page."""

# Source: fastnear/transfers-api, src/api.rs, src/click.rs and the Transfers API's skill.md; the
# members of a row as fastnear/transfers-indexer writes them (process_transfer_row).

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from ledgerkit.localnet.contract_sdk import from_json
from ledgerkit.localnet.execution_errors import LocalnetError
from ledgerkit.localnet.http_messages import encode_json
from ledgerkit.localnet.services import requests
from ledgerkit.localnet.services.requests import Unsigned
from ledgerkit.localnet.services.transfer_rows import NATIVE, Row, TransferIndex
from ledgerkit.protocol import AccountId
from ledgerkit.validation import is_account_id

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

MAX_LIMIT = 100
_INT128_MAX = 2**127 - 1
_MAX_TIMESTAMP_NS = (2**32 - 1) // 2 * 10**9
_NEAR_FACTOR = 1e24
_INTENTS = "intents.near"
_ASSET_TYPES = {"native": "Near", "nep141": "Ft", "nep245": "Mt"}
_Digits = Annotated[str, Meta(pattern=r"^\+?[0-9]{1,39}$")]


class Query(Struct):
    """The body of a request."""

    account_id: AccountId
    resume_token: _Digits | None = None
    from_timestamp_ms: Unsigned | None = None
    to_timestamp_ms: Unsigned | None = None
    limit: Unsigned | None = None
    desc: bool | None = None
    min_amount: _Digits | None = None
    min_human_amount: float | None = None
    min_usd_amount: float | None = None
    asset_id: str | None = None
    direction: Literal["sender", "receiver"] | None = None
    ignore_system: bool | None = None


def respond(world: World, method: str, path: str, body: bytes) -> dict[str, Any] | None:
    """Answer a request; None for an unknown path."""
    if path != "/v0/transfers" or method != "POST":
        return None
    return _page(world, requests.decode_body(body, Query))


def _page(world: World, query: Query) -> dict[str, Any]:
    """Return a page; a full one has a token, even if no row follows."""
    limit = requests.page_length(query.limit, MAX_LIMIT)
    rows = TransferIndex.of(world).rows(str(query.account_id))
    view = _AccountView(world, str(query.account_id))
    matches = _filter(query, view)
    transfers, last = [], None
    for row in reversed(rows) if query.desc else rows:
        if matches(row):
            transfers.append(view.members(row))
            last = row
            if len(transfers) == limit:
                break
    token = None
    if last is not None and len(transfers) == limit:
        token = str(last.block.timestamp_ns << 32 | last.transfer_index)
    return {"transfers": transfers, "resume_token": token}


def _filter(query: Query, view: _AccountView) -> Callable[[Row], bool]:
    resumes = _resume_filter(query)
    start_s = _bound_s(query.from_timestamp_ms or 0)
    stop = query.to_timestamp_ms
    stop_s = _MAX_TIMESTAMP_NS / 1e9 if stop is None else _bound_s(stop)
    direction = {"sender": -1, "receiver": 1, None: 0}[query.direction]

    def matches(row: Row) -> bool:
        # In SQL null is not unequal to a text, so `ignore_system` also drops mints and burns.
        return (
            start_s <= row.block.timestamp_ns / 1e9 < stop_s
            and resumes(row)
            and (query.asset_id is None or row.tokens.asset_id == query.asset_id)
            and (not direction or direction * view.amount(row) > 0)
            and (query.min_amount is None or abs(view.amount(row)) >= int(query.min_amount))
            and (query.min_human_amount is None or view.reaches(row, query.min_human_amount))
            and query.min_usd_amount is None  # there are no prices here
            and not (query.ignore_system and view.other_id(row) in ("system", None))
        )

    return matches


def _bound_s(milliseconds: int) -> float:
    """Return an end of the range in seconds, the server's unit of comparison."""
    return min(milliseconds * 10**6, _MAX_TIMESTAMP_NS) / 1e9


def _resume_filter(query: Query) -> Callable[[Row], bool]:
    """
    Return the filter of the rows after a token.

    The token's time becomes a float of seconds, in steps of 238 ns. If it is not the exact time of
    its block, rows of this block are repeated or lost.
    """
    if query.resume_token is None:
        return lambda _: True
    time_ns, index = divmod(int(query.resume_token), 2**32)
    token_ns = Fraction(float(min(time_ns, _MAX_TIMESTAMP_NS)) / 1e9) * 10**9
    sign = -1 if query.desc else 1

    def is_after(row: Row) -> bool:
        later = sign * (row.block.timestamp_ns - token_ns)
        return later > 0 or (later == 0 and sign * (row.transfer_index - index) > 0)

    return is_after


class _AccountView:
    """The rows of one account, with signed amounts, balances and the token's decimals."""

    def __init__(self, world: World, account_id: str) -> None:
        self._world, self._account_id = world, account_id
        self._values: dict[tuple[str, str, bytes, int], Any] = {}

    def members(self, row: Row) -> dict[str, Any]:
        block, receipt, start = row.block, row.receipt, row.block.prev_height
        return {
            "block_height": str(block.height),
            "block_timestamp": str(block.timestamp_ns),
            "transaction_id": row.transaction_id,
            "receipt_id": receipt.receipt_id,
            "action_index": row.action_index,
            "log_index": row.log_index,
            "transfer_index": row.transfer_index,
            "signer_id": receipt.signer_id,
            "predecessor_id": receipt.predecessor_id,
            "receipt_account_id": receipt.receiver_id,
            "account_id": self._account_id,
            "other_account_id": self.other_id(row),
            "asset_id": row.tokens.asset_id,
            "asset_type": _ASSET_TYPES[row.tokens.asset_id.partition(":")[0]],
            "amount": str(self.amount(row)),
            "method_name": row.method_name,
            "transfer_type": row.transfer_type,
            "human_amount": self._human_amount(row),
            "usd_amount": None,
            "start_of_block_balance": None if start is None else self._balance(row, start),
            "end_of_block_balance": self._balance(row, row.block.height),
        }

    def _is_sender(self, row: Row) -> bool:
        """Return True if the account sent the transfer; a transfer to itself counts as received."""
        return row.tokens.receiver_id != self._account_id

    def other_id(self, row: Row) -> str | None:
        """Return the other account; None for a mint or a burn."""
        return row.tokens.receiver_id if self._is_sender(row) else row.tokens.sender_id

    def amount(self, row: Row) -> int:
        """Return the signed amount, cut to the range of Int128."""
        amount = min(row.tokens.amount, _INT128_MAX)
        return -amount if self._is_sender(row) else amount

    def reaches(self, row: Row, least: float) -> bool:
        """Return True if the amount in whole tokens is known and large enough."""
        amount = self._human_amount(row)
        return amount is not None and abs(amount) >= least

    def _human_amount(self, row: Row) -> float | None:
        """Return the signed amount in whole tokens; None without the token's decimals."""
        factor = _NEAR_FACTOR
        if row.tokens.asset_id != NATIVE:
            decimals = self._decimals(row)
            if decimals is None:
                return None
            factor = 10.0**decimals
        return (-1 if self._is_sender(row) else 1) * (float(row.tokens.amount) / factor)

    def _decimals(self, row: Row) -> int | None:
        """Return a token's decimals after the block of a transfer, or None."""
        standard, _, token = row.tokens.asset_id.partition(":")
        contract_id, _, token_id = token.partition(":")
        if standard == "nep245" and contract_id == _INTENTS:  # its token id names the wrapped token
            standard, _, token = token_id.partition(":")
            if standard in ("nep141", "nep245"):
                contract_id, _, token_id = token.partition(":")
        if standard == "nep141":
            metadata = self._view(contract_id, "ft_metadata", {}, row.block.height, _Metadata)
            return None if metadata is None else int(metadata.decimals)
        args = {"token_ids": [token_id]}
        method = "mt_metadata_base_by_token_id"
        metadata = self._view(contract_id, method, args, row.block.height, list[_Metadata])
        return int(metadata[0].decimals) if metadata else None

    def _balance(self, row: Row, height: int) -> str | None:
        """Return the account's balance after a block; None if it cannot be read."""
        if height < self._world.chain.earliest.height:
            return None
        if row.tokens.asset_id == NATIVE:
            account = self._world.state(height).account(self._account_id)
            return None if account is None else str(account.amount + account.locked)
        standard, _, token = row.tokens.asset_id.partition(":")
        contract_id, _, token_id = token.partition(":")
        args = {"account_id": self._account_id}
        method = "ft_balance_of"
        if standard == "nep245":
            args, method = args | {"token_id": token_id}, "mt_balance_of"
        balance: str | None = self._view(contract_id, method, args, height, _Digits)
        return None if balance is None else str(int(balance))

    def _view(self, contract_id: str, method: str, args: Any, height: int, kind: Any) -> Any:
        """Call a view method after a block; None if it fails or returns another type."""
        encoded = encode_json(args)
        key = (contract_id, method, encoded, height)
        if key not in self._values:
            self._values[key] = None
            block = self._world.chain.by_height(height)
            if block is not None and is_account_id(contract_id):
                with suppress(LocalnetError):
                    result = self._world.view(contract_id, method, encoded, block).result
                    self._values[key] = from_json(result, kind)
        return self._values[key]


class _Metadata(Struct):
    decimals: Annotated[int, Meta(ge=0, le=255)]
