"""The values in USD that the Transfers API sends, and the entries that they belong to."""

# Source: fastnear/transfers-indexer, src/block_indexer.rs (`execute_tasks`) and src/pricing.rs: a
# value is the amount as a float times the last price of 1Click at or before the time of the block.
# Only rows that were indexed live have one. 1Click sends the price 0 for tokens without a price.

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit import units
from ledgerkit.reconciling.model import NEAR, Entry

if TYPE_CHECKING:
    from ledgerkit.api.models.services import TransferRow


class _Key(NamedTuple):
    """The facts in which a transfer and its entry agree."""

    receipt_id: str | None
    asset: str
    change: int | None
    height: int | None  # None for NEAR that was sent: it arrives in a later block


class TransferValues:
    """
    The values of transfers.

    A value belongs to the entry with the receipt, the asset, the exact amount and the block of its
    transfer. If a receipt has several such transfers, all of them must have the same value, and as
    many entries must exist. A fee has no value: the service values only the part that came back.
    """

    def __init__(self) -> None:
        self._rows: dict[_Key, set[tuple[object, float, int]]] = defaultdict(set)

    def add(self, row: TransferRow) -> None:
        """Add the value of a transfer, if it has one; pages may repeat a row."""
        usd, change = row.usd_amount, row.change
        if usd is not None:
            is_usable = change is not None and usd * change > 0
            key = _key(row.receipt_id if is_usable else None, row.asset, change, row.height)
            self._rows[key].add((row.key, usd, row.timestamp_ns))

    def assign(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield entries with their values; `entries` is iterated twice."""
        counts = Counter(key for key in map(_key_of, entries) if key in self._rows)
        values = {
            key: next(iter(rows))[1:]
            for key, rows in self._rows.items()
            if key.receipt_id is not None
            and len(rows) == counts[key]
            and len({row[1:] for row in rows}) == 1
        }
        for key in values:
            del self._rows[key]
        for entry in entries:
            earlier = entry.usd_amount, entry.usd_time_ns  # an extended statement has some
            usd, time_ns = earlier if entry.cause == "fee" else values.get(_key_of(entry), earlier)
            yield entry._replace(usd_amount=usd, usd_time_ns=time_ns)

    def notes(self, last_ns: int) -> list[str]:
        """Return a note on the values up to a time that `assign` did not use."""
        unused = sum(time_ns <= last_ns for rows in self._rows.values() for *_, time_ns in rows)
        if not unused:
            return []
        transfers = units.count_text(unused, "transfer")
        sentence = (
            f"the values of {transfers} are not used: they are 0 or of another sign than the "
            "amount, or no single entry has the same receipt and amount"
        )
        return [sentence]


def _key_of(entry: Entry) -> _Key:
    return _key(entry.receipt_id, entry.asset, entry.change, entry.block_height)


def _key(receipt_id: str | None, asset: str, change: int | None, height: int) -> _Key:
    is_sent_near = asset == NEAR and change is not None and change < 0
    return _Key(receipt_id, asset, change, None if is_sent_near else height)
