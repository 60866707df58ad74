"""A statement's entries as a CSV file: all columns, or rows that tax programs import."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from ledgerkit import units, user_warnings, validation
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.files import replacing
from ledgerkit.frames.csv_text import csv_text
from ledgerkit.protocol.limits import MAX_ACTIONS
from ledgerkit.reconciling import frames
from ledgerkit.reconciling.model import NEAR, Entry, StatementData, Token, unit_asset
from ledgerkit.reconciling.prices import EXACT, Price, Prices
from ledgerkit.reconciling.tax_formats import TAX_FORMATS, TaxFormat
from ledgerkit.tracing.token_standards import FUNGIBLE
from ledgerkit.transport.networks import PRESETS

if TYPE_CHECKING:
    from pathlib import Path

    from ledgerkit.reconciling.entry_store import EntryStore

_MAX_NOTE = 200  # characters
# veNEAR counts votes, and cannot be transferred.
# Source: houseofstake/house-of-stake-contracts, `venear-contract/src/token.rs`.
_VOTES = f"{FUNGIBLE}:{PRESETS['mainnet'].venear_id}"

# The kinds of rows other than moves and trades: causes that tax programs treat specially.
_KINDS = {
    "fee": "fee",
    "storage_burn": "cost",
    "staking_reward": "staking",
    "validator_reward": "staking",
    "gas_reward": "bonus",
}


class _Amount(NamedTuple):
    """An amount of an asset, and the value in USD that a service sent; None if it is unknown."""

    asset: str
    units: int
    usd: Decimal | None = None

    def plus(self, other: _Amount) -> _Amount:
        """Add an amount; a value of amounts with two signs would say little about the sum."""
        usd = None
        if self.usd is not None and other.usd is not None and self.units * other.units > 0:
            usd = EXACT.add(self.usd, other.usd)
        return _Amount(self.asset, self.units + other.units, usd)


class _TaxRow(NamedTuple):
    kind: str
    time_ns: int
    tx_hash: str | None
    note: str
    received: _Amount | None = None
    sent: _Amount | None = None
    fee: _Amount | None = None


def write_csv(
    entries: Sequence[Entry] | EntryStore,
    facts: StatementData,
    path: str | Path,
    format: str = "plain",  # noqa: A002 - as in the command line
    price: pd.DataFrame | None = None,
) -> Path:
    """Write the entries of a statement, as `Statement.to_csv` describes."""
    target = validation.file_path(path, "path")
    parts = tables(entries, facts, format, price)
    if facts.gaps:
        gaps = units.count_text(len(facts.gaps), "gap")
        message = f"the statement has {gaps}, so the entries in {target.name} do not add up"
        user_warnings.warn(message)
    texts = (csv_text(part, header=not index) for index, part in enumerate(parts))
    with replacing(target) as file:
        file.writelines(text.encode() for text in texts)
    return target


def tables(
    entries: Sequence[Entry] | EntryStore,
    facts: StatementData,
    format: str = "plain",  # noqa: A002 - as above
    price: pd.DataFrame | None = None,
) -> Iterator[pd.DataFrame]:
    """Check the arguments, and return the rows of a CSV file in parts of limited size."""
    validation.one_of(format, "format", ("plain", *TAX_FORMATS))
    prices = Prices(price)
    if format in TAX_FORMATS:
        return _tax_tables(entries, facts, TAX_FORMATS[format], prices)
    if not prices.currencies:
        return frames.entry_frames(facts, entries)
    return _tables_with_values(entries, facts, prices)


def _tables_with_values(
    entries: Sequence[Entry] | EntryStore, facts: StatementData, prices: Prices
) -> Iterator[pd.DataFrame]:
    names = _Names(facts)
    parts = zip(frames.in_parts(entries), frames.entry_frames(facts, entries), strict=True)
    for part, frame in parts:
        amounts = [_Amount(unit_asset(entry.asset), entry.change) for entry in part]
        at_entries = [
            prices.at(amount.asset, entry.timestamp_ns)
            for amount, entry in zip(amounts, part, strict=True)
        ]
        values = map(names.value, amounts, at_entries)
        yield frame.assign(
            price=_text_column(price and f"{price.amount:f}" for price in at_entries),
            price_currency=_text_column(price and price.currency for price in at_entries),
            value=_text_column(map(_value_text, values)),
        )


def _text_column(texts: Iterable[str | None]) -> Any:
    return pd.array(list(texts), dtype="str")


# Rows for tax programs --------------------------------------------------------------------


class _Names:
    """The names of currencies in a file, and their decimals."""

    def __init__(self, facts: StatementData) -> None:
        self._facts, self.account_id = facts, facts.account_id
        self._tokens = {unit_asset(asset): token for asset, token in facts.tokens.items()}
        symbols = (units.token_symbol(token.symbol) for token in self._tokens.values())
        self._counts = Counter(symbol.lower() for symbol in symbols)

    def token(self, asset: str) -> Token:
        return self._tokens.get(asset) or frames.token_of(self._facts, asset)

    def currency(self, asset: str) -> str:
        """
        Return the name of an asset, unique in the file: its symbol, or else its id.

        Any contract can call its token NEAR or USDC: a symbol that several assets share, or one
        without known decimals, is replaced by the id.
        """
        token = self.token(asset)
        if asset == NEAR:
            return "NEAR"
        symbol = units.token_symbol(token.symbol)
        is_unique = symbol != units.TOKENS and self._counts[symbol.lower()] == 1
        return symbol if is_unique and token.decimals is not None else asset

    def amount(self, amount: _Amount) -> str:
        """Format an amount with all digits: whole tokens, or smallest units without decimals."""
        return units.to_text(amount.units, self.token(amount.asset).decimals or 0)

    def value(self, amount: _Amount, price: Price | None) -> Decimal | None:
        """Compute the exact value of an amount; None without a price or decimals."""
        decimals = self.token(amount.asset).decimals
        if price is None or decimals is None:
            return None
        return price.value(amount.units, decimals)


class _Group:
    """The entries of one transaction, or one entry without a transaction."""

    def __init__(self, time_ns: int, tx_hash: str | None) -> None:
        self.time_ns, self.tx_hash = time_ns, tx_hash
        self._sums: dict[str, dict[str, _Amount]] = {}  # changes by kind and asset
        self._notes: dict[str, None] = {}
        self.is_complete = False

    def add(self, amount: _Amount, cause: str, notes: Iterable[str | None]) -> None:
        """Add an entry; the deposits of 1 yoctoNEAR that many methods demand count as fees."""
        # Otherwise a claim of tokens would be a trade. An entry sums the deposits of a receipt, and
        # each of its actions may demand one. Source: NEP-141, "Reference-level explanation".
        formal = {"deposit": range(-MAX_ACTIONS, 0), "refund": range(1, MAX_ACTIONS + 1)}
        asset, change, _ = amount
        is_formal = asset == NEAR and change in formal.get(cause, ())
        sums = self._sums.setdefault("fee" if is_formal else _KINDS.get(cause, "move"), {})
        sums[asset] = sums[asset].plus(amount) if asset in sums else amount
        self._notes |= dict.fromkeys(note for note in (cause, *notes) if note)

    def rows(self, names: _Names) -> Iterator[_TaxRow]:
        """
        Yield the rows of the transaction, without amounts that came back.

        One asset received and one sent is a trade. The fee is in the first row that sends
        something, or in a separate row.
        """
        fee = self._sums.pop("fee", {}).get(NEAR, _Amount(NEAR, 0))
        rows = [row for kind in self._sums for row in self._moves(kind, names)]
        payer = next((index for index, row in enumerate(rows) if row.sent), None)
        if fee.units < 0 and payer is not None:
            rows[payer] = rows[payer]._replace(fee=_Amount(NEAR, -fee.units))
        elif fee.units:
            rows.append(self._row("fee", names, fee))
        yield from rows

    def _moves(self, kind: str, names: _Names) -> list[_TaxRow]:
        rows = [
            self._row(kind, names, change) for change in self._sums[kind].values() if change.units
        ]
        received, sent = [row for row in rows if row.received], [row for row in rows if row.sent]
        if kind == "move" and len(received) == len(sent) == 1:
            return [received[0]._replace(sent=sent[0].sent)]
        return rows

    def _row(self, kind: str, names: _Names, change: _Amount) -> _TaxRow:
        notes = list(self._notes)
        if names.token(change.asset).decimals is None:
            notes.append("amount in smallest units")
        usd = None if change.usd is None else change.usd.copy_abs()
        amount = _Amount(change.asset, abs(change.units), usd)
        row = _TaxRow(kind, self.time_ns, self.tx_hash, cut(", ".join(notes), _MAX_NOTE))
        return row._replace(received=amount) if change.units > 0 else row._replace(sent=amount)


def _rows(
    entries: Sequence[Entry] | EntryStore, names: _Names, *, has_usd: bool
) -> Iterator[_TaxRow]:
    """
    Yield rows for tax programs, in the order of the entries; `has_usd` includes values in USD.

    A stake is NEAR of the account like its balance: a deposit with a pool is not a disposal, and
    only rewards have rows.
    """
    last = {entry.tx_hash: index for index, entry in enumerate(entries) if _is_counted(entry)}
    groups: OrderedDict[str | int, _Group] = OrderedDict()
    for index, entry in enumerate(entries):
        if not _is_counted(entry):
            continue
        key = entry.tx_hash or index
        if key not in groups:
            groups[key] = _Group(_known_time(entry), entry.tx_hash)
        notes = entry.counterparty_id, entry.method_name, entry.memo
        usd = entry.usd_amount if has_usd else None
        value = None if usd is None else Decimal(repr(usd))
        amount = _Amount(unit_asset(entry.asset), entry.change, value)
        groups[key].add(amount, entry.cause, notes)
        groups[key].is_complete = not entry.tx_hash or last[entry.tx_hash] == index
        while groups and next(iter(groups.values())).is_complete:
            _, group = groups.popitem(last=False)
            yield from group.rows(names)


def _is_counted(entry: Entry) -> bool:
    return entry.change != 0 and entry.asset != _VOTES


def _known_time(entry: Entry) -> int:
    if entry.timestamp_ns is None:
        sentence = f"the time of block {entry.block_height} is unknown, and tax programs need one"
        raise InvalidRequestError(
            sentence, field="format", remedy='Use format="plain", which has heights.'
        )
    return entry.timestamp_ns


def _value_text(value: Decimal | None) -> str | None:
    if value is None:
        return None
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _tax_tables(
    entries: Sequence[Entry] | EntryStore, facts: StatementData, form: TaxFormat, prices: Prices
) -> Iterator[pd.DataFrame]:
    if form.currency_of is not None and len(prices.currencies) > 1:
        expected = f"one currency, that of {form.currency_of}"
        raise InvalidRequestError.refuse('price["currency"]', prices.currencies, expected)
    names = _Names(facts)
    split = _include_fee if form.fee_is_included else _separate_fee
    # One currency for all values: that of the user's prices.
    has_usd = form.currency_of is None or prices.currencies in ([], ["USD"])
    rows = (part for row in _rows(entries, names, has_usd=has_usd) for part in split(row))
    cells = (_cells(row, form, names, prices) for row in rows)
    return (
        pd.DataFrame(
            {
                column: _text_column(row[cell] for row in part)
                for column, cell in form.columns.items()
            }
        )
        for part in frames.in_parts(cells)
    )


def _cells(row: _TaxRow, form: TaxFormat, names: _Names, prices: Prices) -> dict[str, str | None]:
    """Return the cells that formats choose from; the amount sent does not contain the fee."""
    date = datetime.fromtimestamp(row.time_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    side = "sent" if row.received is None else "received" if row.sent is None else "trade"
    cells: dict[str, str | None] = {
        "date": date,
        "date with zone": f"{date} UTC",
        "label": form.label_of(side, row.kind),
        "note": row.note,
        "transaction": row.tx_hash,
        "network": "NEAR",
        "account": names.account_id,
    }
    price_values, service_values = [], []
    for cell, amount in (("fee", row.fee), ("received", row.received), ("sent", row.sent)):
        price = None if amount is None else prices.at(amount.asset, row.time_ns)
        price_value = None if amount is None else _value_text(names.value(amount, price))
        service_value = None if amount is None else _value_text(amount.usd)
        cells[cell] = None if amount is None else names.amount(amount)
        cells[f"{cell} currency"] = None if amount is None else names.currency(amount.asset)
        cells[f"{cell} value"] = price_value or service_value
        if cell != "fee":
            price_values.append((price_value, price and price.currency))
            service_values.append((service_value, "USD"))
    # The value of a row is the value of the received amount, or else of the sent amount; the
    # user's prices come before the values of a service.
    values = (value for value in (*price_values, *service_values) if value[0] is not None)
    cells["value"], cells["value currency"] = next(values, (None, None))
    return cells


def _include_fee(row: _TaxRow) -> list[_TaxRow]:
    """Include the fee in the amounts; a fee in a third currency becomes a separate row."""
    fee, sent, received = row.fee, row.sent, row.received
    if fee is None:
        return [row]
    if sent and sent.asset == fee.asset:
        return [row._replace(sent=_Amount(sent.asset, sent.units + fee.units))]
    if received and received.asset == fee.asset and received.units > fee.units:
        return [row._replace(received=_Amount(received.asset, received.units - fee.units))]
    return _split_fee(row)


def _separate_fee(row: _TaxRow) -> list[_TaxRow]:
    """Move a fee in a currency of the row to a separate row."""
    # Source: hodgerpodger/staketaxcsv, issue 385, according to which Koinly ignores such fees.
    assets = [amount.asset for amount in (row.sent, row.received) if amount is not None]
    return _split_fee(row) if row.fee is not None and row.fee.asset in assets else [row]


def _split_fee(row: _TaxRow) -> list[_TaxRow]:
    fee = row._replace(kind="fee", received=None, sent=row.fee, fee=None)
    return [row._replace(fee=None), fee]
