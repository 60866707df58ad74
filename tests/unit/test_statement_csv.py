"""CSV files of a statement: the columns that tax programs document, and sums that stay exact."""

from __future__ import annotations

import csv
import inspect
import random
from collections import defaultdict
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from ledgerkit import user_warnings
from ledgerkit.errors import FileError, InvalidRequestError
from ledgerkit.reconciling.csv_formats import write_csv
from ledgerkit.reconciling.model import CAUSES, Gap, Token
from ledgerkit.reconciling.statement import Statement
from ledgerkit.reconciling.tax_formats import TAX_FORMATS
from tests.unit.statement_frames import ONE, Frames, entry, statement

if TYPE_CHECKING:
    from pathlib import Path

    from ledgerkit.reconciling.model import Entry

GOLD, DUST, FAKE = "nep141:gold.near", "nep141:dust.near", "nep141:fake.near"
TOKENS = {GOLD: Token("GOLD", 6), FAKE: Token("NEAR", 24)}
EXACT = Context(prec=200)
SWAP = [
    entry(110, "near", "fee", -3 * 10**20, tx_hash="swap"),
    entry(110, GOLD, "token", -2_500_000, tx_hash="swap", counterparty_id="dex.near"),
    entry(112, "near", "deposit", ONE, tx_hash="swap", method_name="pay", memo="for gold"),
    entry(113, "near", "fee", 10**20, tx_hash="swap"),
]


def prices(*rows: tuple[str, str, Any, str]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["asset", "time", "price", "currency"])
    return frame.assign(time=pd.to_datetime(frame["time"], utc=True, format="ISO8601"))


def written(frames: Frames, folder: Path, form: str, **more: Any) -> list[dict[str, str]]:
    path = write_csv(frames.rows, frames.facts, folder / "statement.csv", form, **more)
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def filled(row: dict[str, str]) -> dict[str, str]:
    """Return the cells of a row that are not empty."""
    return {name: cell for name, cell in row.items() if cell}


def test_a_swap_is_one_row_for_koinly(tmp_path: Path):
    """What went out and what came in stand in one row, and the fee in a row of its own."""
    # Source: the universal template of https://support.koinly.io/en/articles/9489976
    # A fee in a currency of its row is ignored: hodgerpodger/staketaxcsv, issue 385.
    row, fee = written(statement(SWAP, tokens=TOKENS), tmp_path, "koinly")
    assert list(row) == (
        "Date,Sent Amount,Sent Currency,Received Amount,Received Currency,Fee Amount,"
        "Fee Currency,Net Worth Amount,Net Worth Currency,Label,Description,TxHash"
    ).split(",")
    assert filled(row) == {
        "Date": "2026-08-01 00:00:10 UTC",
        "Sent Amount": "2.5",
        "Sent Currency": "GOLD",
        "Received Amount": "1",
        "Received Currency": "NEAR",
        "Description": "fee, token, dex.near, deposit, pay, for gold",
        "TxHash": "swap",
    }
    sent = ("Sent Amount", "0.0002"), ("Sent Currency", "NEAR"), ("Label", "Cost")
    assert dict(sent).items() <= fee.items()


def test_a_batch_of_formal_deposits_is_a_fee(tmp_path: Path):
    """Three calls of one receipt, each with the 1 yoctoNEAR of NEP-141, leave the swap one row."""
    usdc = "nep141:usdc.near"
    rows = [
        entry(110, "near", "deposit", -3, tx_hash="batch", method_name="ft_transfer_call"),
        entry(110, GOLD, "token", -2_500_000, tx_hash="batch"),
        entry(112, usdc, "token", 9_000_000, tx_hash="batch"),
        entry(113, "near", "refund", 2, tx_hash="batch"),
    ]
    tokens = TOKENS | {usdc: Token("USDC", 6)}
    [row] = written(statement(rows, tokens=tokens, opening={GOLD: 2_500_000}), tmp_path, "koinly")
    assert (row["Sent Amount"], row["Received Amount"], row["Label"]) == ("2.5", "9", "")
    assert (row["Fee Amount"], row["Fee Currency"]) == ("0." + "0" * 23 + "1", "NEAR")


def test_a_fee_in_a_third_currency_stays_in_its_row_for_koinly(tmp_path: Path):
    """A payment of tokens has the fee in NEAR beside it."""
    rows = [entry for entry in SWAP if entry.cause != "deposit"]
    [row] = written(statement(rows, tokens=TOKENS), tmp_path, "koinly")
    assert (row["Sent Currency"], row["Fee Amount"], row["Fee Currency"]) == (
        *("GOLD", "0.0002", "NEAR"),
    )


def test_a_fee_is_part_of_the_amount_for_cointracking(tmp_path: Path):
    """CoinTracking computes with the amounts only, so these include the fee."""
    # Source: https://cointracking.freshdesk.com/en/support/solutions/articles/29000007202
    # (a sale of 500 with a fee of 5 is 505; a coin fee is taken from what was bought)
    rows = [*SWAP, entry(120, "near", "transfer", -ONE, tx_hash="pay")]
    rows.append(entry(120, "near", "fee", -(10**20), tx_hash="pay"))
    swap, pay = written(statement(rows, tokens=TOKENS), tmp_path, "cointracking")
    # Source: https://cointracking.info/import/import_csv/
    assert list(swap)[:12] == (
        "Type,Buy Amount,Buy Currency,Sell Amount,Sell Currency,Fee,Fee Currency,Exchange,"
        "Trade-Group,Comment,Date,Tx-ID"
    ).split(",")
    assert filled(swap) == {
        "Type": "Trade",
        "Buy Amount": "0.9998",
        "Buy Currency": "NEAR",
        "Sell Amount": "2.5",
        "Sell Currency": "GOLD",
        "Fee": "0.0002",
        "Fee Currency": "NEAR",
        "Exchange": "NEAR",
        "Trade-Group": "alice.near",
        "Comment": "fee, token, dex.near, deposit, pay, for gold",
        "Date": "2026-08-01 00:00:10",
        "Tx-ID": "swap",
    }
    assert [pay[name] for name in ("Type", "Sell Amount", "Fee")] == [
        "Withdrawal",
        "1.0001",
        "0.0001",
    ]


def test_a_fee_in_a_third_currency_is_a_row_for_cointracking(tmp_path: Path):
    """Nobody subtracts it otherwise: a token sent, paid for with NEAR."""
    # Source: https://cointracking.freshdesk.com/en/support/solutions/articles/29000007202
    rows = [
        entry(110, "near", "fee", -(10**20), tx_hash="t"),
        entry(110, GOLD, "token", -1, tx_hash="t"),
    ]
    sent, fee = written(statement(rows, opening={GOLD: 9}, tokens=TOKENS), tmp_path, "cointracking")
    assert (sent["Type"], sent["Sell Amount"], sent["Fee"]) == ("Withdrawal", "0.000001", "")
    assert (fee["Type"], fee["Sell Amount"], fee["Sell Currency"]) == (
        "Other Fee",
        "0.0001",
        "NEAR",
    )


@pytest.mark.parametrize(
    ("cause", "change", "label", "kind"),
    [
        ("staking_reward", ONE, "Reward", "Staking"),
        ("validator_reward", ONE, "Reward", "Staking"),
        ("gas_reward", 5, "Reward", "Reward / Bonus"),
        ("storage_burn", -5, "Cost", "Other Fee"),
        ("fee", -5, "Cost", "Other Fee"),
        ("fee", 5, "Fee refund", "Income (non taxable)"),
        ("transfer", 5, "", "Deposit"),
        ("burn", -5, "", "Withdrawal"),
    ],
)
def test_labels(tmp_path: Path, cause: str, change: int, label: str, kind: str):
    """A cause has the label that each program documents for it, moves have none."""
    # Source: https://support.koinly.io/en/articles/9490023-what-are-tags
    # Source: https://cointracking.freshdesk.com/en/support/solutions/articles/29000034379
    frames = statement([entry(110, "near", cause, change)], opening={"near": ONE})
    [row] = written(frames, tmp_path, "koinly")
    assert row["Label"] == label
    [row] = written(frames, tmp_path, "cointracking")
    assert row["Type"] == kind


def test_a_stake_is_no_disposal(tmp_path: Path):
    """NEAR that moves to a pool stays the account's; the reward is all that is reported."""
    pool = "stake:astro.poolv1.near"
    rows = [
        entry(110, "near", "stake", -ONE, tx_hash="s"),
        entry(111, pool, "stake", ONE, tx_hash="s"),
        entry(112, pool, "unstake", 0, tx_hash="u"),
        entry(113, "near", "gas_key", -ONE, tx_hash="k"),
        entry(113, "gas_key:ed25519:1", "gas_key", ONE, tx_hash="k"),
        entry(150, pool, "staking_reward", 7),
    ]
    frames = statement(rows, opening={"near": 3 * ONE})
    for form, column in (("koinly", "Received Amount"), ("cointracking", "Buy Amount")):
        [row] = written(frames, tmp_path, form)
        assert row[column] == "0.000000000000000000000007"
    assert len(written(frames, tmp_path, "plain")) == 6


def test_a_deposit_of_one_yocto_is_a_fee(tmp_path: Path):
    """Tokens that are claimed with the deposit that NEP-141 demands are not bought with it."""
    rows = [
        entry(110, "near", "deposit", -1, tx_hash="claim"),
        entry(111, GOLD, "token", 10**6, tx_hash="claim"),
        entry(112, "near", "deposit", -1, tx_hash="fails"),
        entry(113, "near", "refund", 1, tx_hash="fails"),
    ]
    got, fee = written(statement(rows, tokens=TOKENS), tmp_path, "koinly")
    assert (got["Received Amount"], got["Sent Amount"], got["Label"]) == ("1", "", "")
    assert (fee["Sent Amount"], fee["Label"]) == ("0.000000000000000000000001", "Cost")


def test_no_token_passes_for_another(tmp_path: Path):
    """A symbol that is not unique, or reads as NEAR, or has no decimals, is replaced by the id."""
    tokens = TOKENS | {"nep141:a.near": Token("USDC", 6), "nep141:b.near": Token("usdc", 6)}
    assets = [FAKE, DUST, GOLD, "nep141:a.near", "nep141:b.near"]
    rows = [entry(110 + at, asset, "token", 10**6) for at, asset in enumerate(assets)]
    table = written(statement(rows, tokens=tokens), tmp_path, "koinly")
    assert [(row["Received Amount"], row["Received Currency"]) for row in table] == [
        ("0.000000000000000001", FAKE),
        ("1000000", DUST),
        ("1", "GOLD"),
        ("1", "nep141:a.near"),
        ("1", "nep141:b.near"),
    ]
    assert "smallest units" in table[1]["Description"]


def test_sums_of_any_file_are_those_of_the_entries(tmp_path: Path):
    """Whatever happened, received - sent - fees of a currency is the sum of its changes."""
    random_ = random.Random(7)  # noqa: S311 - no secret
    assets = ["near", "stake:p.near", GOLD, DUST]
    causes = [cause for cause in CAUSES if cause != "fee"]
    for _ in range(20):
        rows = []
        for height in range(101, 190):
            tx_hash = random_.choice([None, f"tx{height // 4}"])
            change = random_.randint(-(10**30), 10**30)
            rows.append(
                entry(
                    height, random_.choice(assets), random_.choice(causes), change, tx_hash=tx_hash
                )
            )
            rows.append(entry(height, "near", "fee", -random_.randint(0, 10**30), tx_hash=tx_hash))
        opening = dict.fromkeys(assets, 10**34)
        frames = statement(rows, opening=opening, tokens=TOKENS)
        expected: dict[str, Decimal] = defaultdict(Decimal)
        for moved in rows:
            name, places = {GOLD: ("GOLD", 6), DUST: (DUST, 0)}.get(moved.asset, ("NEAR", 24))
            amount = Decimal(moved.change).scaleb(-places, EXACT)
            expected[name] = EXACT.add(expected[name], amount)
        for form, columns in (
            ("koinly", {"Received": 1, "Sent": -1, "Fee": -1}),
            ("cointracking", {"Buy": 1, "Sell": -1}),
        ):
            sums: dict[str, Decimal] = defaultdict(Decimal)
            for row in written(frames, tmp_path, form):
                for column, sign in columns.items():
                    if row[f"{column} Amount"]:
                        amount = Decimal(row[f"{column} Amount"])
                        name = row[f"{column} Currency"]
                        assert amount > 0
                        sums[name] = EXACT.fma(amount, sign, sums[name])
            assert sums == expected


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_file_in_parts_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int):
    """Balances and transactions are carried on from part to part, in the order of the entries."""
    random_ = random.Random(size)  # noqa: S311 - no secret
    rows = [
        entry(
            101 + at // 3,
            random_.choice(["near", GOLD]),
            "transfer",
            random_.randint(-9, 9),
            tx_hash=random_.choice([None, *(f"tx{at // 7 + late}" for late in range(3))]),
        )
        for at in range(60)
    ]
    frames = statement(rows, tokens=TOKENS)
    whole = {form: written(frames, tmp_path, form) for form in ("plain", "koinly", "cointracking")}
    monkeypatch.setattr("ledgerkit.reconciling.frames.PART_SIZE", size)
    for form, expected in whole.items():
        assert written(frames, tmp_path, form) == expected
    assert [row["balance_after"] for row in whole["plain"]] == [
        str(balance) for balance in frames.entries["balance_after"]
    ]
    hashes = [row["TxHash"] for row in whole["koinly"] if row["TxHash"]]
    first = dict.fromkeys(row.tx_hash for row in rows if row.tx_hash and row.tx_hash in hashes)
    assert list(dict.fromkeys(hashes)) == list(first)


def test_all_columns(tmp_path: Path):
    """The plain file has the frame's columns, exact integers and no column of values."""
    frames = statement(SWAP, tokens=TOKENS, opening={GOLD: 5 * 10**6, "near": 2**120})
    rows = written(frames, tmp_path, "plain")
    assert list(rows[0]) == list(frames.entries.columns)
    assert [row["change"] for row in rows] == [str(row.change) for row in SWAP]
    assert rows[0]["balance_before"] == str(2**120)


def test_values_are_exact_and_never_invented(tmp_path: Path):
    """The last price at or before the entry counts; before the first, and without one, none."""
    rows = [entry(height, "near", "transfer", 3) for height in (110, 120, 130)]
    rows += [entry(140, "stake:p.near", "staking_reward", ONE + 1), entry(150, GOLD, "token", 5)]
    known = prices(
        ("near", "2026-08-01T00:00:20Z", 2.35, "USD"),  # at block 120
        ("near", "2026-08-01T00:00:29.5Z", Decimal("1E-30"), "EUR"),
        ("near", "2026-08-02", 99, "USD"),
    )
    frames = statement(rows, tokens=TOKENS)
    table = written(frames, tmp_path, "plain", price=known)
    assert [row["value"] for row in table] == [
        "",
        "0.00000000000000000000000705",
        f"0.{'0' * 53}3",
        f"0.{'0' * 29}1{'0' * 23}1",
        "",
    ]
    assert [row["price_currency"] for row in table] == ["", "USD", "EUR", "EUR", ""]
    table = written(frames, tmp_path, "koinly", price=known)
    assert [row["Net Worth Currency"] for row in table] == ["", "USD", "EUR", "EUR", ""]


def test_values_of_a_trade(tmp_path: Path):
    """Koinly has one value of a trade, what was received; CoinTracking has one of each side."""
    known = prices(("near", "2026-08-01", "4", "USD"), (GOLD, "2026-08-01", 2, "USD"))
    frames = statement(SWAP, tokens=TOKENS)
    row, _ = written(frames, tmp_path, "koinly", price=known)
    assert (row["Net Worth Amount"], row["Net Worth Currency"]) == ("4", "USD")
    row, _ = written(frames, tmp_path, "koinly", price=known.tail(1))
    assert row["Net Worth Amount"] == "5"  # only the side sent has a price
    [row] = written(frames, tmp_path, "cointracking", price=known)
    values = [row[f"{side} Value in Account Currency"] for side in ("Buy", "Sell")]
    assert values == ["3.9992", "5"]


def test_two_currencies_are_refused_for_cointracking(tmp_path: Path):
    """Its columns have no currency: they are in that of the account."""
    known = prices(("near", "2026-08-01", 1, "USD"), (GOLD, "2026-08-01", 1, "EUR"))
    with pytest.raises(InvalidRequestError, match=r"CoinTracking account"):
        written(statement(SWAP, tokens=TOKENS), tmp_path, "cointracking", price=known)


def valued(rows: list[Entry], *values: float | None) -> Frames:
    """Build a statement whose entries have values of the Transfers API."""
    pairs = zip(rows, values, strict=True)
    rows = [
        row._replace(usd_amount=usd, usd_time_ns=None if usd is None else 1) for row, usd in pairs
    ]
    frames = statement(rows, tokens=TOKENS)
    frames.facts.n_valued = sum(usd is not None for usd in values)
    return frames


def test_values_of_a_service_come_after_prices(tmp_path: Path):
    """A price of the user values a row, on either side; otherwise the service's value does."""
    frames = valued(SWAP, None, -5.25, 4.5, None)
    columns = "Net Worth Amount", "Net Worth Currency"
    for known, expected in [
        (None, ("4.5", "USD")),
        (prices((GOLD, "2026-08-01", 2, "EUR")), ("5", "EUR")),
        (prices((FAKE, "2026-08-01", 2, "EUR")), ("4.5", "USD")),
    ]:
        row, fee = written(frames, tmp_path, "koinly", price=known)
        assert tuple(row[name] for name in columns) == expected
        assert [fee[name] for name in columns] == ["", ""]
    table = written(frames, tmp_path, "plain", price=prices((GOLD, "2026-08-01", 2, "EUR")))
    assert [row["value"] for row in table] == ["", "-5", "", ""]
    assert [row["usd_amount"] for row in table] == ["", "-5.25", "4.5", ""]
    assert [row["usd_source"] for row in table] == ["", "Transfers API", "Transfers API", ""]


def test_values_in_usd_are_in_no_file_of_another_currency(tmp_path: Path):
    """CoinTracking's columns name none: they have USD alone, or what the user's prices are in."""
    frames = valued(SWAP, None, -5.25, 4.5, None)
    names = "Buy Value in Account Currency", "Sell Value in Account Currency"
    for currency, expected in [("USD", ["4.5", "5.25"]), ("EUR", ["", ""])]:
        known = prices((FAKE, "2026-08-01", 2, currency))
        for fee in (frames, valued(SWAP[1:3], -5.25, 4.5)):
            [row] = written(fee, tmp_path, "cointracking", price=known)
            # The fee is part of the amount of NEAR in the first file, and has no value.
            values = ["" if fee is frames else expected[0], expected[1]]
            assert [row[name] for name in names] == values


def test_a_sum_of_values_is_as_exact_as_their_texts(tmp_path: Path):
    """Values of amounts in one direction add up; a net amount has none, nor has half a sum."""
    rows = [
        entry(110, GOLD, "token", change, tx_hash="batch", receipt_id=str(index))
        for index, change in enumerate((3, 4, -2))
    ]
    for count, values, expected in [
        (2, (0.1, 0.2), "0.3"),
        (2, (1e-7, 1e-7), "0.0000002"),
        (2, (0.1, None), ""),
        (3, (0.1, 0.2, -0.1), ""),
    ]:
        [row] = written(valued(rows[:count], *values), tmp_path, "koinly")
        assert row["Net Worth Amount"] == expected


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"asset": 7}, 'price["asset"]'),
        ({"price": float("nan")}, 'price["price"]'),
        ({"price": -1}, 'price["price"]'),
        ({"price": "two"}, 'price["price"]'),
        ({"price": True}, 'price["price"]'),
        ({"price": "1E999999"}, 'price["price"]'),
        ({"currency": None}, 'price["currency"]'),
        ({"time": pd.Timestamp("2026-08-01")}, 'price["time"]'),
        ({"time": "2026-08-01"}, 'price["time"]'),
        ({"time": pd.NaT}, 'price["time"]'),
    ],
)
def test_a_malformed_price_is_refused_by_column(tmp_path: Path, change: dict[str, Any], field: str):
    """Nothing is written, and the error names the column."""
    usual = {
        "asset": "near",
        "time": pd.Timestamp("2026-08-01", tz="UTC"),
        "price": 1,
        "currency": "USD",
    }
    with pytest.raises(InvalidRequestError) as caught:
        written(
            statement(SWAP, tokens=TOKENS), tmp_path, "plain", price=pd.DataFrame([usual | change])
        )
    assert caught.value.field == field
    assert list(tmp_path.iterdir()) == []


def test_prices_need_their_columns_and_one_price_a_time(tmp_path: Path):
    """A missing column, no frame at all and two prices at one time are refused."""
    known = prices(("near", "2026-08-01", 1, "USD"))
    for bad, field in (
        (known.drop(columns="currency"), 'price["currency"]'),
        ({"near": 1}, "price"),
        (pd.concat([known, known]), 'price["time"]'),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            written(statement(SWAP, tokens=TOKENS), tmp_path, "plain", price=bad)
        assert caught.value.field == field


def test_a_float_price_counts_as_it_is_written(tmp_path: Path):
    """A float of 0.1 is the price 0.1, not the binary fraction beside it."""
    frames = statement([entry(110, "near", "transfer", ONE)])
    for price in (0.1, np.float64(0.1), "0.1", Decimal("0.10")):
        known = prices(("near", "2026-08-01", price, "USD"))
        assert written(frames, tmp_path, "plain", price=known)[0]["value"] == "0.1"


def test_texts_of_the_chain_are_no_formulas(tmp_path: Path):
    """A memo, a method and a symbol reach no spreadsheet as a formula."""
    rows = [entry(110, GOLD, "token", 1, memo="=1+1", method_name="@m", tx_hash="=t")]
    frames = statement(rows, tokens={GOLD: Token("+GOLD", 0)})
    for form in ("plain", "koinly", "cointracking"):
        for row in written(frames, tmp_path, form):
            cells = [cell for cell in row.values() if cell and not cell.lstrip("-").isdigit()]
            assert not any(cell[0] in "=+-@" for cell in cells)


def test_a_time_that_is_unknown(tmp_path: Path):
    """Tax programs need a time: the entry is refused, and the plain file has it."""
    frames = statement([entry(110, "near", "transfer", 1)._replace(timestamp_ns=None)])
    with pytest.raises(InvalidRequestError, match="block 110"):
        written(frames, tmp_path, "koinly")
    assert len(written(frames, tmp_path, "plain")) == 1


def test_a_gap_is_announced(tmp_path: Path):
    """A file that does not add up is written with a warning."""
    frames = statement(SWAP, tokens=TOKENS, gaps=[Gap("near", 150, 151, 5, "unknown")])
    with user_warnings.collect_warnings() as messages:
        written(frames, tmp_path, "koinly")
    assert messages == ["the statement has 1 gap, so the entries in statement.csv do not add up"]


def test_without_entries_there_are_headings(tmp_path: Path):
    """An account to which nothing happened has a file without rows."""
    for form in ("plain", "koinly", "cointracking"):
        assert written(statement([]), tmp_path, form) == []
        assert (tmp_path / "statement.csv").read_text().count(",") > 10


def test_each_format_is_in_the_signature():
    """Type checkers accept the formats that there are, and no other."""
    names = ("plain", *TAX_FORMATS)
    parameters = inspect.signature(Statement.to_csv).parameters
    assert parameters["format"].annotation == f"Literal[{', '.join(map(repr, names))}]"


def test_bad_arguments_and_folders(tmp_path: Path):
    """A format that does not exist and a folder that is missing are errors of the tree."""
    frames = statement(SWAP, tokens=TOKENS)
    with pytest.raises(InvalidRequestError, match="koinly"):
        write_csv(frames.rows, frames.facts, tmp_path / "a.csv", "koinli")
    with pytest.raises(FileError):
        write_csv(frames.rows, frames.facts, tmp_path / "none" / "a.csv")
    assert list(tmp_path.iterdir()) == []
