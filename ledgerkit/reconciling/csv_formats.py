"""A statement's entries as a CSV file: all columns, or rows that tax programs import."""

from __future__ import annotations

from collections import Counter, deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import pandas as pd

from ledgerkit import units, user_warnings, validation
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.frames.csv_text import csv_text
from ledgerkit.reconciling import frames
from ledgerkit.reconciling.model import GAS_KEY, NEAR, STAKE, Token
from ledgerkit.reconciling.prices import Price, Prices

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from decimal import Decimal
    from pathlib import Path

    from ledgerkit.reconciling.entry_store import EntryStore
    from ledgerkit.reconciling.model import Entry, Facts

Format = Literal["plain", "koinly", "cointracking"]
FORMATS: tuple[Format, ...] = get_args(Format)
_NEAR_TOKEN = Token("NEAR", units.NEAR_DECIMALS)
_MAX_NOTE = 200  # characters

# What a row is about, beside moves and trades: causes that tax programs treat apart.
_KINDS = {
    "fee": "fee",
    "storage_burn": "cost",
    "staking_reward": "staking",
    "validator_reward": "staking",
    "gas_reward": "bonus",
}

# Source: the universal template of https://support.koinly.io/en/articles/9489976 and the tags of
# https://support.koinly.io/en/articles/9490023-what-are-tags
# The template's dates are "YYYY-MM-DD 00:00 UTC". Seconds are accepted: exporters that users import
# from write them, such as hodgerpodger/staketaxcsv (src/staketaxcsv/common/Exporter.py) and
# klever-io/kleverchain-koinly-exporter (koinly.go).
_KOINLY_COLUMNS = (
    "Date",
    "Sent Amount",
    "Sent Currency",
    "Received Amount",
    "Received Currency",
    "Fee Amount",
    "Fee Currency",
    "Net Worth Amount",
    "Net Worth Currency",
    "Label",
    "Description",
    "TxHash",
)
_KOINLY_SENT = {"fee": "Cost", "cost": "Cost"}
_KOINLY_RECEIVED = {"fee": "Fee refund", "staking": "Reward", "bonus": "Reward"}

# Source: https://cointracking.info/import/import_csv/ (columns, and three optional ones after the
# date) and https://cointracking.freshdesk.com/en/support/solutions/articles/29000034379 (types).
_COINTRACKING_COLUMNS = (
    "Type",
    "Buy Amount",
    "Buy Currency",
    "Sell Amount",
    "Sell Currency",
    "Fee",
    "Fee Currency",
    "Exchange",
    "Trade-Group",
    "Comment",
    "Date",
    "Tx-ID",
    "Buy Value in Account Currency",
    "Sell Value in Account Currency",
)
_COINTRACKING_SENT = {"fee": "Other Fee", "cost": "Other Fee"}
_COINTRACKING_RECEIVED = {
    "fee": "Income (non taxable)",
    "staking": "Staking",
    "bonus": "Reward / Bonus",
}


class _Amount(NamedTuple):
    """An amount of an asset, above 0."""

    asset: str
    units: int


class _Row(NamedTuple):
    """A row for a tax program: what came in, what went out, and the fee."""

    kind: str
    time_ns: int
    tx_hash: str | None
    note: str
    received: _Amount | None = None
    sent: _Amount | None = None
    fee: _Amount | None = None


def write_csv(
    entries: Sequence[Entry] | EntryStore,
    facts: Facts,
    path: str | Path,
    format: str = "plain",  # noqa: A002 - the word of the command line, too
    price: pd.DataFrame | None = None,
) -> Path:
    """Write the entries of a statement, as `Statement.to_csv` describes."""
    target = validation.file_path(path, "path")
    parts = tables(entries, facts, format, price)
    if facts.gaps:
        gaps = units.count_text(len(facts.gaps), "gap")
        message = f"the statement has {gaps}, so the entries in {target.name} do not add up"
        user_warnings.warn(message)
    texts = (csv_text(part, header=not at) for at, part in enumerate(parts))
    validation.replace_file(target, (text.encode() for text in texts))
    return target


def tables(
    entries: Sequence[Entry] | EntryStore,
    facts: Facts,
    format: str = "plain",  # noqa: A002 - as above
    price: pd.DataFrame | None = None,
) -> Iterator[pd.DataFrame]:
    """Check the arguments, and return the rows of a CSV file in parts of limited size."""
    validation.one_of(format, "format", FORMATS)
    prices = Prices(price)
    if format == "plain":
        return (_plain(part, facts, prices) for part in frames.entry_frames(facts, entries))
    names = _Names(facts)
    rows = _rows(entries, names)
    if format == "cointracking":
        return _cointracking(rows, names, prices, facts)
    return _koinly(rows, names, prices)


# All columns ------------------------------------------------------------------------------


def _plain(part: pd.DataFrame, facts: Facts, prices: Prices) -> pd.DataFrame:
    """Return the entries, with their values if there are prices."""
    if not prices.currencies:
        return part
    names = _Names(facts)
    known: list[Price | None] = []
    values: list[str | None] = []
    for asset, time_ns, change in _columns(part, "asset", "time", "change"):
        amount = _Amount(_fungible(asset), change)
        known.append(prices.at(amount.asset, time_ns))
        values.append(_value_text(names.value(amount, known[-1])))
    return part.assign(
        price=_text_column([None if own is None else f"{own.amount:f}" for own in known]),
        price_currency=_text_column([None if own is None else own.currency for own in known]),
        value=_text_column(values),
    )


def _text_column(texts: list[str | None]) -> Any:
    """Return texts as a column, missing where they are None."""
    return pd.array(texts, dtype="str")


# Rows for tax programs --------------------------------------------------------------------


class _Names:
    """The names of currencies in a file, and their decimals."""

    def __init__(self, facts: Facts) -> None:
        self._tokens = facts.tokens
        symbols = (units.token_symbol(token.symbol) for token in facts.tokens.values())
        self._counts = Counter(symbol.lower() for symbol in symbols)

    def token(self, asset: str) -> Token:
        """Return symbol and decimals of an asset."""
        return _NEAR_TOKEN if asset == NEAR else self._tokens.get(asset, Token(None, None))

    def currency(self, asset: str) -> str:
        """
        Return the name of an asset that no other asset of the file has.

        This is its symbol. Any contract can call its token NEAR or USDC: a symbol that several
        assets have is replaced by their ids, and so is one without known decimals.
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
        self._sums: dict[str, dict[str, int]] = {}  # changes by kind and asset
        self._words: dict[str, None] = {}
        self.is_complete = False

    def add(self, asset: str, cause: str, change: int, words: Iterable[str | None]) -> None:
        """Add an entry; the deposit of 1 yoctoNEAR that many methods demand counts as a fee."""
        # Source: NEP-141, "Reference-level explanation". A claim of tokens would be a trade.
        is_formal = asset == NEAR and (cause, change) in (("deposit", -1), ("refund", 1))
        sums = self._sums.setdefault("fee" if is_formal else _KINDS.get(cause, "move"), {})
        sums[asset] = sums.get(asset, 0) + change
        self._words |= dict.fromkeys(word for word in (cause, *words) if word)

    def rows(self, names: _Names) -> Iterator[_Row]:
        """
        Yield the rows of the transaction, in which amounts that came back are left out.

        One asset in and one out is a trade. The fee is in the first row that sends something, or
        in a row of its own.
        """
        fee = self._sums.pop("fee", {}).get(NEAR, 0)
        rows = [row for kind in self._sums for row in self._moves(kind, names)]
        payer = next((at for at, row in enumerate(rows) if row.sent), None)
        if fee < 0 and payer is not None:
            rows[payer] = rows[payer]._replace(fee=_Amount(NEAR, -fee))
        elif fee:
            rows.append(self._row("fee", names, NEAR, fee))
        yield from rows

    def _moves(self, kind: str, names: _Names) -> list[_Row]:
        """Return the rows of a kind, without the fee."""
        rows = [
            self._row(kind, names, asset, change)
            for asset, change in self._sums[kind].items()
            if change
        ]
        received, sent = ([row for row in rows if row[at]] for at in (4, 5))
        if kind == "move" and len(received) == len(sent) == 1:
            return [received[0]._replace(sent=sent[0].sent)]
        return rows

    def _row(self, kind: str, names: _Names, asset: str, change: int) -> _Row:
        words = list(self._words)
        if names.token(asset).decimals is None:
            words.append("amount in smallest units")
        amount = _Amount(asset, abs(change))
        row = _Row(kind, self.time_ns, self.tx_hash, cut(", ".join(words), _MAX_NOTE))
        return row._replace(received=amount) if change > 0 else row._replace(sent=amount)


def _rows(entries: Sequence[Entry] | EntryStore, names: _Names) -> Iterator[_Row]:
    """
    Yield rows for tax programs, in the order of the entries.

    A stake is NEAR of the account like its balance: a deposit with a pool is no disposal, and
    only rewards have rows.
    """
    last = {entry.tx_hash: at for at, entry in enumerate(entries) if entry.change}
    groups: deque[_Group] = deque()
    by_hash: dict[str, _Group] = {}  # those that are not complete
    for at, entry in enumerate(entries):
        if not entry.change:
            continue
        group = by_hash.get(entry.tx_hash or "")
        if group is None:
            groups.append(group := _Group(_known_time(entry), entry.tx_hash))
        words = entry.counterparty_id, entry.method_name, entry.memo
        group.add(_fungible(entry.asset), entry.cause, entry.change, words)
        if entry.tx_hash and last[entry.tx_hash] > at:
            by_hash[entry.tx_hash] = group
            continue
        group.is_complete = True
        by_hash.pop(entry.tx_hash or "", None)
        while groups and groups[0].is_complete:
            yield from groups.popleft().rows(names)


def _known_time(entry: Entry) -> int:
    """Return the time of an entry; raise if it is unknown."""
    if entry.timestamp_ns is None:
        height = entry.block_height
        sentence = f"the time of block {height} is unknown, and tax programs need one"
        raise InvalidRequestError(
            sentence, field="format", remedy='Use format="plain", which has heights.'
        )
    return entry.timestamp_ns


def _fungible(asset: str) -> str:
    """Return the asset that a balance is an amount of: NEAR for a stake and a gas key."""
    return NEAR if asset.startswith((STAKE, GAS_KEY)) else asset


def _columns(frame: pd.DataFrame, *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of some columns: None for missing values, times as nanoseconds."""
    columns = []
    for name in names:
        column = frame[name]
        is_known = column.notna()
        values = column.dt.as_unit("ns").astype("int64") if name == "time" else column
        columns.append(values.astype(object).where(is_known, None).tolist())
    return zip(*columns, strict=True)


def _value_text(value: Decimal | None) -> str | None:
    """Format a value with all digits and without an exponent."""
    if value is None:
        return None
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _date(time_ns: int) -> str:
    """Format a time in UTC to the second."""
    return datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _cells(amount: _Amount | None, names: _Names) -> tuple[str | None, str | None]:
    return (None, None) if amount is None else (names.amount(amount), names.currency(amount.asset))


def _tables(
    columns: tuple[str, ...], rows: Iterator[tuple[str | None, ...]]
) -> Iterator[pd.DataFrame]:
    """Yield rows of texts as frames."""
    for part in frames.in_parts(rows):
        lists = zip(*part, strict=True) if part else [[] for _ in columns]
        yield pd.DataFrame(
            {name: _text_column(list(values)) for name, values in zip(columns, lists, strict=True)}
        )


def _koinly(rows: Iterable[_Row], names: _Names, prices: Prices) -> Iterator[pd.DataFrame]:
    """Return rows as Koinly imports them; the amount sent does not contain the fee."""
    return _tables(_KOINLY_COLUMNS, (_koinly_row(row, names, prices) for row in rows))


def _koinly_row(row: _Row, names: _Names, prices: Prices) -> tuple[str | None, ...]:
    label = None
    if row.received is None or row.sent is None:
        label = (_KOINLY_SENT if row.sent else _KOINLY_RECEIVED).get(row.kind)
    return (
        f"{_date(row.time_ns)} UTC",
        *_cells(row.sent, names),
        *_cells(row.received, names),
        *_cells(row.fee, names),
        *_net_worth(row, names, prices),
        label,
        row.note,
        row.tx_hash,
    )


def _net_worth(row: _Row, names: _Names, prices: Prices) -> tuple[str | None, str | None]:
    """Return the value of what was received, or of what was sent, and its currency."""
    for amount in (row.received, row.sent):
        price = None if amount is None else prices.at(amount.asset, row.time_ns)
        value = None if amount is None else names.value(amount, price)
        if price is not None and value is not None:
            return _value_text(value), price.currency
    return None, None


def _cointracking(
    rows: Iterable[_Row], names: _Names, prices: Prices, facts: Facts
) -> Iterator[pd.DataFrame]:
    """Return rows as CoinTracking imports them."""
    if len(prices.currencies) > 1:
        expected = "one currency, that of the CoinTracking account"
        raise InvalidRequestError.refuse('price["currency"]', prices.currencies, expected)
    parts = (part for row in rows for part in _with_fee_included(row))
    wallet = facts.account_id
    texts = (_cointracking_row(part, names, prices, wallet) for part in parts)
    return _tables(_COINTRACKING_COLUMNS, texts)


def _cointracking_row(
    row: _Row, names: _Names, prices: Prices, wallet: str
) -> tuple[str | None, ...]:
    """Return the texts of a row for CoinTracking."""
    return (
        _cointracking_type(row),
        *_cells(row.received, names),
        *_cells(row.sent, names),
        *_cells(row.fee, names),
        "NEAR",
        wallet,
        row.note,
        _date(row.time_ns),
        row.tx_hash,
        _value(row.received, row, names, prices),
        _value(row.sent, row, names, prices),
    )


def _cointracking_type(row: _Row) -> str:
    if row.received and row.sent:
        return "Trade"
    if row.sent:
        return _COINTRACKING_SENT.get(row.kind, "Withdrawal")
    return _COINTRACKING_RECEIVED.get(row.kind, "Deposit")


def _with_fee_included(row: _Row) -> list[_Row]:
    """
    Include the fee in the amounts, or return it as a row of its own if it is in a third currency.

    Source: https://cointracking.freshdesk.com/en/support/solutions/articles/29000007202-entering-fees
    """
    fee, sent, received = row.fee, row.sent, row.received
    if fee is None:
        return [row]
    if sent and sent.asset == fee.asset:
        return [row._replace(sent=_Amount(sent.asset, sent.units + fee.units))]
    if received and received.asset == fee.asset and received.units > fee.units:
        return [row._replace(received=_Amount(received.asset, received.units - fee.units))]
    return [
        row._replace(fee=None),
        row._replace(kind="fee", received=None, sent=fee, fee=None),
    ]


def _value(amount: _Amount | None, row: _Row, names: _Names, prices: Prices) -> str | None:
    """Format the value of an amount, if there is a price."""
    if amount is None:
        return None
    return _value_text(names.value(amount, prices.at(amount.asset, row.time_ns)))
