"""
Rows that services send in pages: all rows of a range, each once, in order.

The asynchronous generators yield lists of rows, and read their pages with a `Reader`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from ledgerkit import progress
from ledgerkit.api import services
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.api.models.services import (
        AccountPage,
        AccountTransaction,
        KeyValue,
        TransferRow,
        Transfers,
    )
    from ledgerkit.transport.session import Reader
    from ledgerkit.verbs.fetching import Fetcher

    Position = tuple[int, int]
    Window = tuple[int, int | None]  # milliseconds since 1970, the second exclusive
    R_ = TypeVar("R_")
    Pages = Callable[[Reader], AsyncGenerator[list[R_], None]]

R = TypeVar("R")

_MS = 1_000_000  # nanoseconds


def collect(
    fetcher: Fetcher, pages: Mapping[str, Pages[R]], label: str, limit: int | None
) -> list[tuple[str, list[R]]]:
    """
    Collect the rows of each subject, at most `limit` per subject.

    The subjects are read concurrently. A subject that fails is a failure of the fetcher, and has
    no rows.
    """
    new_counts: deque[int] = deque()  # rows that the bar does not show yet

    async def read(reader: Reader, subject: str) -> list[R] | LedgerError:
        collected: list[R] = []
        try:
            async with aclosing(pages[subject](reader)) as lists:
                async for page in lists:
                    collected += page
                    new_counts.append(len(page))
                    if limit is not None and len(collected) >= limit:
                        break
        except LedgerError as error:
            return error
        return collected[:limit]

    def show(_count: int) -> None:
        while new_counts:
            bar.update(new_counts.popleft())

    values = fetcher.ledger.session.read_each(pages, read, progress=show)
    with (
        progress.Bar(desc=label, unit=" rows", disable=not fetcher.progress) as bar,
        closing(values),
    ):
        return fetcher.succeeded(pages, values)


# Transactions of an account ---------------------------------------------------------------


async def transactions(
    reader: Reader,
    account_id: str,
    start_height: int = 0,
    stop_height: int | None = None,
    *,
    filters: Mapping[str, bool] | None = None,
    newest_first: bool = False,
) -> AsyncGenerator[list[AccountTransaction], None]:
    """
    Yield the transactions of an account, from a height to another, both inclusive.

    The service cuts a page short if its table has many duplicates there, and then sends no
    token, as after the last page. Unless as many rows arrived as the service counts, the rows are
    therefore requested again from the block of the last row, and from the block after it, until
    nothing new arrives. The service counts duplicates, so a higher count alone is no reason to
    continue. In a block with more than 250 rows, including duplicates, rows may stay hidden.
    """
    # Source: fastnear/explorer-api, src/click.rs: `get_account_txs` reads `limit + 50` rows, drops
    # duplicates, and returns `limit` of them; `get_account_txs_count` counts without FINAL.
    low, high = start_height, stop_height
    above = int(newest_first)  # a page includes the block above its range
    last: Position | None = None
    while high is None or low <= high + above:
        # A narrower range may show rows that the block above the range hid before.
        pages = _AccountPages(start_height, stop_height, last, newest_first=newest_first)
        token: str | None = None
        while not pages.is_finished:
            call = services.account_page(
                account_id,
                start_height=low,
                stop_height=high,
                desc=newest_first,
                filters=filters,
                resume_token=token,
            )
            page = await reader.value(call)
            if new_rows := pages.add(page):
                yield new_rows
            token = page.resume_token
        if pages.is_complete or pages.last is None:
            return
        border = pages.last[0]
        if pages.last == last:
            border += -1 if newest_first else 1
            if border == (high if newest_first else low):
                return  # there is nothing after the last block either
        last = pages.last
        low, high = (low, border) if newest_first else (border, high)


class _AccountPages:
    """The pages of a range, from the first to the last, which has no token."""

    def __init__(
        self, low: int, high: int | None, last: Position | None, *, newest_first: bool
    ) -> None:
        self.last = last  # the position of the last row
        self.is_finished = False
        self._low, self._high, self._newest_first = low, high, newest_first
        self._count: int | None = None  # rows that the service counts
        self._received = 0
        self._page_end: Position | None = None  # the position of the last row of the last page

    @property
    def is_complete(self) -> bool:
        """True if certainly no rows are missing."""
        return not self._received or (self._count is not None and self._received >= self._count)

    def add(self, page: AccountPage) -> list[AccountTransaction]:
        """Count the rows of a page, and return the new ones."""
        if not self._received:
            self._count = page.txs_count
        positions = [row.position for row in page.account_txs]
        if positions != sorted(positions, reverse=self._newest_first):
            raise _order_error("account_txs")
        # Repeated rows do not count: they do not replace rows that the page leaves out.
        self._received += len({p for p in positions if self._is_behind(p, self._page_end)})
        new_rows = []
        for row, position in zip(page.account_txs, positions, strict=True):
            if self._is_behind(position, self.last) and self._is_inside(position[0]):
                new_rows.append(row)
                self.last = position
        # Following tokens that lead nowhere, or back, would never end.
        leads_on = bool(positions) and self._is_behind(positions[-1], self._page_end)
        self.is_finished = page.resume_token is None or not leads_on
        self._page_end = positions[-1] if leads_on else self._page_end
        return new_rows

    def _is_behind(self, position: Position, other: Position | None) -> bool:
        if other is None:
            return True
        return position < other if self._newest_first else position > other

    def _is_inside(self, height: int) -> bool:
        return self._low <= height and (self._high is None or height <= self._high)


def _order_error(member: str) -> DecodeError:
    return DecodeError("the rows of a page are not in the requested order", path=f"$.{member}")


# Transfers --------------------------------------------------------------------------------


async def transfers(
    reader: Reader,
    account_id: str,
    start_ns: int = 0,
    stop_ns: int | None = None,
    *,
    asset_id: str | None = None,
    direction: str | None = None,
    newest_first: bool = False,
    where: Callable[[TransferRow], bool] | None = None,
) -> AsyncGenerator[list[TransferRow], None]:
    """
    Yield the transfers of an account, from a time to another, both inclusive.

    `direction` is sender, receiver, or None for both; if the service requires a direction, both
    are requested. Transfers for which `where` returns False are left out.
    """
    pages = _TransferPages(account_id, start_ns, stop_ns, asset_id, direction, newest_first, where)
    try:
        async for new_rows in _transfers(reader, pages):
            yield new_rows
    except InvalidRequestError as error:
        # Source: the OpenAPI document of fastnear/transfers-api requires `direction`; its source
        # does not, and clients of the deployed service leave it out.
        if direction is not None or "direction" not in str(error.text or ""):
            raise
        yield await _both_directions(reader, pages)


async def _both_directions(reader: Reader, pages: _TransferPages) -> list[TransferRow]:
    by_key: dict[tuple[object, ...], TransferRow] = {}
    for direction in ("sender", "receiver"):
        async for new_rows in _transfers(reader, replace(pages, direction=direction)):
            by_key |= {row.key: row for row in new_rows}
    return sorted(by_key.values(), key=_transfer_position, reverse=pages.newest_first)


async def _transfers(
    reader: Reader, pages: _TransferPages
) -> AsyncGenerator[list[TransferRow], None]:
    """
    Yield the transfers of an account in one direction, or in both.

    The service compares times as floats, so its tokens may repeat or skip rows of the block in
    which a page ends. The next page is therefore requested from just before that block.
    """
    # Source: fastnear/transfers-api, src/click.rs: `timestamp_ns as f64 / 1e9`.
    stop_ns, newest_first = pages.stop_ns, pages.newest_first
    sign = -1 if newest_first else 1
    low = max(pages.start_ns // _MS - 1, 0)
    high = None if stop_ns is None else stop_ns // _MS + 2
    seen: set[tuple[object, ...]] = set()
    border_ns: int | None = None  # the time of the block in which the last page ended
    while True:
        page = await reader.value(pages.call((low, high)))
        pages.check_order(page)
        if new_rows := pages.new_rows(page.transfers, seen):
            yield new_rows
        if page.resume_token is None or not page.transfers:
            return
        seen = {row.key for row in page.transfers}
        last_ns = page.transfers[-1].timestamp_ns
        if border_ns is not None and sign * last_ns < sign * border_ns:
            raise _order_error("transfers")
        is_whole = last_ns == border_ns
        if is_whole:  # a single block fills the page
            block = await _whole_block(reader, pages, page)
            if new_rows := pages.new_rows(block, seen):
                yield new_rows
        border_ns = last_ns + is_whole * sign
        # Floats are exact to a millisecond, and blocks are many milliseconds apart.
        border_ms = last_ns // _MS + sign * (1 if is_whole else -1)
        low, high = (low, border_ms + 1) if newest_first else (max(border_ms, 0), high)


@dataclass(frozen=True, slots=True)
class _TransferPages:
    """The pages of transfers in a range of times, both ends inclusive."""

    account_id: str
    start_ns: int
    stop_ns: int | None
    asset_id: str | None
    direction: str | None
    newest_first: bool
    where: Callable[[TransferRow], bool] | None

    def call(
        self, window: Window, *, from_end: bool = False, token: str | None = None
    ) -> Call[Transfers]:
        return services.transfers_page(
            self.account_id,
            from_ms=window[0],
            to_ms=window[1],
            desc=self.newest_first != from_end,
            asset_id=self.asset_id,
            direction=self.direction,
            resume_token=token,
        )

    def check_order(self, page: Transfers) -> None:
        """Raise if the rows of a page are not in the requested order."""
        times = [row.timestamp_ns for row in page.transfers]
        if times != sorted(times, reverse=self.newest_first):
            raise _order_error("transfers")

    def new_rows(
        self, transfers: Sequence[TransferRow], seen: AbstractSet[tuple[object, ...]]
    ) -> list[TransferRow]:
        """Return the requested rows that were not seen before."""
        new = {row.key: row for row in transfers if row.key not in seen and self._has(row)}
        return list(new.values())

    def _has(self, row: TransferRow) -> bool:
        if self.asset_id not in (None, row.asset_id):  # the service may ignore this filter
            return False
        if self.direction not in (None, "sender" if row.is_payment else "receiver"):
            return False
        is_late = self.stop_ns is not None and row.timestamp_ns > self.stop_ns
        if row.timestamp_ns < self.start_ns or is_late:
            return False
        return self.where is None or self.where(row)


async def _whole_block(reader: Reader, pages: _TransferPages, page: Transfers) -> list[TransferRow]:
    """
    Return all transfers of a block that has more of them than a page.

    They are read from both ends, and in between by tokens, which may fail.
    """
    time_ns = page.transfers[-1].timestamp_ns
    window = time_ns // _MS - 1, time_ns // _MS + 2
    other_end = await reader.value(pages.call(window, from_end=True))
    by_key = {row.key: row for row in page.transfers}
    while not any(row.key in by_key for row in other_end.transfers):
        page = await reader.value(pages.call(window, token=page.resume_token))
        count = len(by_key)
        by_key |= {row.key: row for row in page.transfers}
        if len(by_key) == count:
            msg = f"the service repeats transfers of {pages.account_id} within one block"
            raise DecodeError(msg, path="$.resume_token")
    by_key |= {row.key: row for row in other_end.transfers}
    return sorted(by_key.values(), key=_transfer_position, reverse=pages.newest_first)


def _transfer_position(row: TransferRow) -> tuple[int, int]:
    return row.timestamp_ns, row.transfer_index or 0


# Key-value data ---------------------------------------------------------------------------


async def key_values(
    reader: Reader,
    contract_id: str,
    predecessor_id: str | None,
    *,
    history: bool,
    key: str | None,
    prefix: str | None,
) -> AsyncGenerator[list[KeyValue], None]:
    """Yield the entries of a contract, in the service's order."""
    token: str | None = None
    tokens: set[str] = set()
    while True:
        call = services.key_values_page(
            contract_id,
            predecessor_id,
            history=history,
            key=key,
            prefix=prefix,
            page_token=token,
        )
        page = await reader.value(call)
        yield page.entries
        token = page.page_token
        if token is None:
            return
        if token in tokens:
            raise DecodeError("the service sends the same page again", path="$.page_token")
        tokens.add(token)
