"""Frames for reading: units, short ids, words; escaped, and never the frame itself."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames import build
from ledgerkit.frames.human import column_formats, human, id_kinds, plain_text, readable
from ledgerkit.frames.schemas import SCHEMAS, declared_columns
from ledgerkit.reconciling.entry_store import EntryStore
from ledgerkit.reconciling.model import Gap, Reward, Token
from ledgerkit.reconciling.statement import Statement
from ledgerkit.types import U128Array
from tests.unit.statement_frames import entry, statement

NEAR = 10**24
HASH = "7Bo8ZkYE9RFbPCRkdHvdjkiLVW9dMcRJyjHq9rWdSQx1"
KEY = f"ed25519:{HASH}"
IMPLICIT = "98793cd91a3f870fb126f66285808c7e094afcfc4eda8a970f6648cdf0dbd6de"
TIME = 1_700_000_000_123_456_789  # 2023-11-14 22:13:20.123456789 UTC


def frame_of(schema, **values):
    """Build a frame of a schema; columns that are not passed are missing, or False."""
    n_rows = len(next(iter(values.values())))
    empty = {"bool": False, "float64": float("nan")}
    columns = {
        column.name: values.get(column.name, [empty.get(column.dtype)] * n_rows)
        for column in SCHEMAS[schema]
    }
    return build.build_frame(schema, columns, attrs={"network": "lab"})


def texts(frame, **options):
    """Return the texts of the first row by column, without the empty ones."""
    row = human(frame, **options).texts().iloc[0]
    return {name: text for name, text in row.items() if text}


class Cells(HTMLParser):
    """The cells of a table as texts with their tooltips, and all elements."""

    def __init__(self, html):
        super().__init__()
        self.cells, self.tags, self._in_cell = [], set(), False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self._in_cell = tag == "td"
        if self._in_cell:
            self.cells.append(["", dict(attrs).get("title")])

    def handle_endtag(self, tag):
        self._in_cell = self._in_cell and tag != "td"

    def handle_data(self, data):
        if self._in_cell:
            self.cells[-1][0] += data


def test_an_account_is_in_near():
    """The schema knows the units: NEAR, bytes, heights, counts."""
    frame = frame_of(
        "accounts",
        account_id=[IMPLICIT],
        status=["not_indexed"],
        balance=[12_340_675_123 * 10**18],
        locked=[1],
        storage_bytes=[12_345],
        n_tokens=[1_234],
        last_update_block_height=[180_000_048],
    )

    assert texts(frame) == {
        "account_id": "98793cd91a3f870fb126…48cdf0dbd6de",
        "status": "not indexed",
        "balance": "12,340.68 NEAR",
        "locked": "1 yocto",
        "storage_bytes": "12,345",
        "n_tokens": "1,234",
        "last_update_block_height": "180000048",
    }


def test_part_of_a_frame_keeps_its_units():
    """The balance of an account is NEAR also where no other column says so."""
    frame = frame_of("accounts", account_id=["a.near"], balance=[NEAR])

    assert texts(frame[["account_id", "balance"]]) == {"account_id": "a.near", "balance": "1 NEAR"}


def test_tokens_are_in_their_units_row_by_row():
    """Decimals and symbols are in the frame; a symbol that poses as NEAR is not repeated."""
    frame = frame_of(
        "ft_metadata",
        account_id=["a.near"] * 4,
        balance=[80 * 10**6, 2**128 - 1, NEAR, 1_234],
        symbol=["GOLD", "MOON", "NEAR", "X"],
        decimals=[6, 18, 24, None],
    )

    assert human(frame).texts()["balance"].tolist() == [
        "80 GOLD",
        "340,282,366,920,938,463,463.37 MOON",
        "1 tokens",
        "1,234 units",
    ]
    assert human(frame, digits=None).texts()["balance"][1] == (
        "340,282,366,920,938,463,463.374607431768211455 MOON"
    )


def test_two_columns_of_a_row_agree():
    """The float of a balance has the balance's digits, and one that somebody changed its own."""
    known = {"account_id": ["a.near"] * 3, "decimals": [6, 18, 6], "symbol": ["GOLD", "MOON", "G"]}
    balances = [1_252_998_400, 2**128 - 1, 5_000_000]
    frame = frame_of(
        "ft_metadata", balance=balances, amount=[1252.9984, 2**128 / 1e18, 7.5], **known
    )

    shown = human(frame).texts()
    assert shown["balance"].tolist()[:2] == [
        "1,252.998 GOLD",
        "340,282,366,920,938,463,463.37 MOON",
    ]
    assert shown["amount"].tolist() == ["1,252.998", "340,282,366,920,938,463,463.37", "7.5"]


def test_transfers_and_changes_know_near_by_the_asset():
    """NEAR is in NEAR, also in gas keys and below zero; a token is in its smallest unit."""
    assets = ["near", f"gas_key:{KEY}", "nep141:gold.near"]
    transfers = frame_of("transfers", asset=assets, amount=[NEAR, 2 * NEAR, 1_000])
    changes = frame_of("balance_changes", asset=assets, change=[-NEAR, 25, -1])

    assert human(transfers).texts()["amount"].tolist() == ["1 NEAR", "2 NEAR", "1,000 units"]
    assert human(changes).texts()["change"].tolist() == ["-1 NEAR", "25 yocto", "-1 unit"]


def test_history_knows_near_by_the_view():
    """A balance is NEAR in rows about accounts, and a token's in the others."""
    frame = frame_of("history", view=["accounts", "ft"], balance=[NEAR, NEAR], locked=[NEAR, None])

    shown = human(frame).texts()
    assert shown["balance"].tolist() == ["1 NEAR", f"{NEAR:,} units"]
    assert shown["locked"].tolist() == ["1 NEAR", ""]


def test_the_difference_of_accounts_is_in_near():
    """A comparison of accounts differs from one of tokens by its schema."""
    frame = frame_of("diff_accounts", account_id=["a.near"], before=[NEAR], difference=[-NEAR // 2])

    assert texts(frame)["difference"] == "-0.5 NEAR"
    assert declared_columns(frame)["before"].unit == "yoctoNEAR"


def test_receipts_have_short_ids_times_and_words():
    """Ids are shortened in the middle, times end with the second, statuses are words."""
    frame = frame_of(
        "receipts",
        receipt_id=[HASH],
        status=["success_receipt_id"],
        time=[TIME],
        gas_burnt=[2_427_934_563_000],
        is_local=[True],
        on_critical_path=[False],
        logs=[["one", "two"]],
    )
    short = texts(frame)

    assert short["receipt_id"] == "7Bo8Zk…SQx1"
    assert short["status"] == "succeeded"
    assert short["time"] == "2023-11-14 22:13:20 UTC"
    assert short["gas_burnt"] == "2.43 Tgas"
    assert (short["is_local"], short["on_critical_path"]) == ("yes", "no")
    assert short["logs"] == '["one", "two"]'

    full = texts(frame, digits=None)
    assert full["receipt_id"] == HASH
    assert full["time"] == "2023-11-14 22:13:20.123456789 UTC"
    assert full["gas_burnt"] == "2.427934563 Tgas"


def test_hashes_without_a_page_are_short_too():
    """A chunk's hash and an epoch's id take no more room than a transaction's."""
    assert texts(frame_of("chunks", chunk_hash=[HASH]))["chunk_hash"] == "7Bo8Zk…SQx1"
    assert texts(frame_of("blocks", epoch_id=[HASH]))["epoch_id"] == "7Bo8Zk…SQx1"


def test_a_key_keeps_its_curve():
    """The curve is part of a key's text and stays; ids can stay whole for a command line."""
    frame = frame_of("keys", account_id=["a.near"], public_key=[KEY], allowance=[NEAR // 4])

    assert texts(frame)["public_key"] == "ed25519:7Bo8Zk…SQx1"
    assert readable(frame, short_ids=False)["public_key"][0] == KEY
    assert texts(frame)["allowance"] == "0.25 NEAR"


def test_a_foreign_frame_is_shown_plainly():
    """Unknown columns are texts; no large row turns a small number into an exponent."""
    frame = pd.DataFrame(
        {
            "ratio": [0.1 + 0.2, 3.4e20, 1e-9, float("nan")],
            "amount_of": U128Array._from_sequence([2**128 - 1, 0, None, 5]),
            7: [{"a": 1}, b"\x01\xff", None, "x\x1b"],
        },
        index=list("wxyz"),
    )
    shown = human(frame).texts()

    assert shown["ratio"].tolist() == [
        "0.30000000000000004",
        "340,000,000,000,000,000,000",
        "0.000000001",
        "",
    ]
    assert shown["amount_of"].iloc[0] == f"{2**128 - 1:,}"
    assert shown[7].tolist() == ['{"a": 1}', "01ff", "", "x\\x1b"]
    assert shown.index.tolist() == list("wxyz")


def test_a_frame_is_never_changed():
    """Reading a frame leaves its values, dtypes and attrs as they are."""
    frame = frame_of("accounts", account_id=["a.near"], balance=[NEAR])
    copy = frame.copy(deep=True)

    view = human(frame)
    shown = view.texts()
    shown.loc[0, "balance"] = "changed"
    assert len({repr(view), view._repr_html_()}) == 2
    pd.testing.assert_frame_equal(frame, copy)
    assert frame.attrs == copy.attrs


def test_html_is_escaped_and_keeps_the_full_text():
    """A name from the chain is text; an amount's tooltip has every digit."""
    name = '<img src=x onerror="alert(1)">'
    frame = frame_of("ft_metadata", contract_id=[name], symbol=[name], balance=[1], decimals=[0])
    frame["note"] = [name]
    page = Cells(human(frame)._repr_html_())

    assert page.tags == {"div", "table", "caption", "thead", "tbody", "tr", "td", "th"}
    assert [name, None] in page.cells

    balance = frame_of("accounts", balance=[12_340_675_123 * 10**18])
    cells = Cells(human(balance)._repr_html_()).cells
    assert ["12,340.68 NEAR", "12,340.675123 NEAR"] in cells


def test_the_network_is_named():
    """A frame names where it was read from, as text and as HTML."""
    frame = frame_of("accounts", account_id=["a.near"], balance=[NEAR])

    assert repr(human(frame)).endswith("1 row; network: lab")
    assert "<caption>1 row; network: lab</caption>" in human(frame)._repr_html_()


def test_a_long_frame_is_cut_as_pandas_would():
    """The first and the last rows are displayed, and the number of rows."""
    frame = frame_of("accounts", account_id=[f"a{n}.near" for n in range(1_000)])
    with pd.option_context("display.max_rows", 60, "display.min_rows", 4):
        text, html = repr(human(frame)), human(frame)._repr_html_()

    for shown in (text, html):
        assert [f"a{n}.near" in shown for n in (0, 1, 2, 997, 998, 999)] == [1, 1, 0, 0, 1, 1]
        assert "1,000 rows" in shown
        assert "…" in shown
    assert len(human(frame).texts()) == 1_000
    assert "5 rows" not in text  # the four, and the line between them


def test_an_empty_frame_is_shown():
    """Without rows the columns are named."""
    empty = human(build.empty_frame("ft_metadata"))

    assert "0 rows" in repr(empty)
    assert "metadata_status" in empty._repr_html_()


def test_every_schema_can_be_read():
    """A frame of each schema with one missing row has a text for each cell."""
    for schema, columns in SCHEMAS.items():
        frame = frame_of(schema, **{columns[0].name: [None]})
        shown = human(frame).texts()
        assert shown.shape == frame.shape
        assert all(isinstance(text, str) for text in shown.iloc[0])


def test_kinds_of_ids():
    """Ids name what they open: the contract of a balance is a token."""
    assert id_kinds(build.empty_frame("ft")) == {
        "account_id": "account",
        "contract_id": "token",
        "last_update_block_height": "block",
    }
    assert id_kinds(build.empty_frame("events"))["contract_id"] == "contract"
    assert id_kinds(build.empty_frame("submission")) == {
        "tx_hash": "transaction",
        "block_height": "block",
        "block_hash": "block",
    }
    assert id_kinds(build.empty_frame("keys"))["public_key"] == "key"
    assert id_kinds(build.empty_frame("edges"))["child_id"] == "receipt"


def test_formats_of_columns():
    """A single value is written as in the frame; numpy's integers are integers."""
    formats = column_formats(build.empty_frame("accounts"))

    assert formats["balance"](np.int64(10**18)) == "0.000001 NEAR"
    assert formats["balance"](pd.NA) == ""
    assert plain_text(pd.Timestamp("2026-01-02 03:04:05.678")) == "2026-01-02 03:04:05"


def test_refused():
    """Only a DataFrame, and only valid digits."""
    with pytest.raises(InvalidRequestError, match="a pandas DataFrame"):
        human([1])  # type: ignore[arg-type]  # refused
    with pytest.raises(InvalidRequestError, match="digits"):
        human(pd.DataFrame(), digits=-1)


def test_no_column_has_an_exponent_because_of_one_large_row():
    """A float of pandas would print 3.5 as 3.500000e+00 beside a large amount."""
    frame = frame_of("ft_metadata", amount=[0.0, 3.5, 3.4e20, None])

    printed = repr(frame[["amount"]]) + frame[["amount"]].to_html()
    assert "e+" not in printed
    assert "3.5" in printed
    assert "340000000000000000000" in printed
    assert frame["amount"].sum() == 3.4e20
    assert frame["amount"].to_numpy().dtype == np.float64


@pytest.mark.parametrize("decimals", ["18", 256, -1, 1.5, True])
def test_foreign_decimals_do_not_stop_the_display(decimals):
    """A column of that name may hold anything: the amount is then in the smallest unit."""
    frame = frame_of("ft", balance=[1_000])
    frame["decimals"] = [decimals]

    assert human(frame).texts()["balance"][0] == "1,000 units"


def test_headings_of_numbers_are_above_the_numbers():
    """In HTML a heading and its column are aligned alike; words are at the left."""
    frame = pd.DataFrame({"status": ["ok"], "n_tokens": [7], "can_withdraw": [True]})
    html = human(frame)._repr_html_()
    aligned = re.findall(r"<t[hd][^>]*text-align:right[^>]*>([^<]*)</t[hd]>", html)
    assert aligned == ["n_tokens", "7"]


def test_amounts_of_a_statement_are_in_units():
    """A stake is NEAR, and a token has the decimals of its row, if the frame has them."""
    frames = statement(
        [entry(110, "stake:p.near", "stake", 10**24), entry(111, "nep141:g.near", "mint", 5)],
        tokens={"nep141:g.near": Token("G", 1)},
    )
    assert list(readable(frames.entries)["change"]) == ["1 NEAR", "5 units"]
    assert list(readable(frames.totals)["closing"]) == ["0.5 G", "1 NEAR"]


def test_a_statement_is_in_units_of_its_tokens():
    """Amounts of entries, gaps and causes have symbols, and a yearly rate is a percentage."""
    entries = [
        entry(110, "near", "staking_reward", 10**24),
        entry(111, "nep141:gold.near", "token", -2_500_000),
    ]
    made = statement(
        entries,
        tokens={"nep141:gold.near": Token("GOLD", 6)},
        opening={"nep141:gold.near": 9_500_000},
        gaps=[Gap("nep141:gold.near", 150, 151, -7, "unknown")],
    )
    reward = Reward("p.near", "e", 100, 150, None, 10**24, 0, 0, 2 * 10**24, 0.09126)
    made.facts.rewards.append(reward)
    whole = Statement(made.facts, EntryStore(entries))
    texts = lk.human(whole.entries).texts()
    assert texts["change"].tolist() == ["1 NEAR", "-2.5 GOLD"]
    assert texts["balance_before"].tolist() == ["0 NEAR", "9.5 GOLD"]
    assert texts["cause"].tolist() == ["staking reward", "token"]
    changes = lk.human(whole.by_transaction).texts()["changes"].tolist()
    assert changes == ["1 NEAR", "-2.5 GOLD (nep141:gold.near)"]
    assert lk.human(whole.gaps).texts()["missing"].tolist() == ["-0.000007 GOLD"]
    totals = lk.human(whole.totals).texts()
    assert totals["in_by_cause"].tolist() == ["staking reward: 1 NEAR", ""]
    assert totals["out_by_cause"].tolist() == ["", "token: -2.5 GOLD"]
    assert lk.human(whole.rewards).texts()["apy"].tolist() == ["9.13%"]
    assert lk.human(whole.rewards, digits=None).texts()["apy"].tolist() == ["9.126%"]
