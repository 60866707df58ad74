"""Values of a statement's entries, which the Transfers API sends with transfers."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.protocol import FunctionCall, Transfer
from ledgerkit.reconciling import extending
from tests.history_node import History, serve_history
from tests.local_transport import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ledgerkit.localnet.world import World

    Edit = Callable[[list[dict[str, Any]]], object]
    Body = Callable[[bytes], bytes]

UNTYPED: Any = lk  # as whoever calls it without a type checker
FOLDER = Path(__file__).parents[3] / "shared/wire/history/transfers"
BOB, GOLD = "bob.near", "nep141:gold.near"
PRICES = {"native:near": 2.0, GOLD: 0.5}
NONE_KNOWN = "value in USD known for 0 of 7 entries, from the Transfers API; 7 have none"


def price(rows: list[dict[str, Any]]) -> None:
    """Add values to rows as the indexer does: the amount as a float times a price, rounded here."""
    for row in rows:
        if row["asset_id"] in PRICES:
            row["usd_amount"] = round(row["human_amount"] * PRICES[row["asset_id"]], 6)


class Priced(LocalTransport):
    """A transport to a world whose rows of transfers are edited, and then their JSON."""

    n_requests = 0

    def __init__(self, world: World, edit: Edit, body: Body) -> None:
        super().__init__(world)
        self.edit, self.body = edit, body

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the world's response, or the edited one."""
        self.n_requests += 1
        response = super().handle_request(request)
        if not request.url.path.endswith("/v0/transfers"):
            return response
        page = json.loads(response.read())
        self.edit(page["transfers"])
        return httpx.Response(200, content=self.body(json.dumps(page).encode()))


@contextmanager
def connected(world: World, edit: Edit = price, body: Body = bytes) -> Iterator[lk.Ledger]:
    """Connect to a world with edited rows."""
    transport = Priced(world, edit, body)
    with lk.connect("local", transport=transport, make_default=False) as ledger:
        yield ledger


def statement(
    world: World, account_id: str = BOB, edit: Edit = price, body: Body = bytes, **options: Any
) -> lk.Statement:
    """Build a statement with values from edited rows."""
    with connected(world, edit, body) as ledger:
        options = {"values": "usd", "progress": False, "ledger": ledger} | options
        result: lk.Statement = UNTYPED.statement(account_id, **options)
    return result


@pytest.fixture(scope="module")
def world() -> World:
    """Return the world of the demo accounts."""
    return lk.connect("local", make_default=False).world


def rows_of(frame: pd.DataFrame, *names: str) -> list[list[Any]]:
    """List the values of columns by row, None where missing."""
    columns = frame[list(names)].astype(object)
    return columns.where(columns.notna(), None).to_numpy().tolist()


# A recorded answer ------------------------------------------------------------------------

TWO_ROWS = FOLDER / "v2026-01_shitzu_dao_two_rows.json"
ARRIVED, LEFT = 179_253_694, 179_276_524  # the second transfer arrives in the next block


@pytest.fixture(scope="module")
def recorded() -> Iterator[lk.Statement]:
    """Build the statement of two recorded transfers; other changes in between were not recorded."""
    if not TWO_ROWS.exists():
        pytest.skip("the recorded answers are not here")
    rows = json.loads(TWO_ROWS.read_text())["transfers"]
    first, second = (int(row["start_of_block_balance"]) for row in rows)
    balances = {
        ARRIVED: (first, int(rows[0]["end_of_block_balance"])),
        ARRIVED + 1: (int(rows[0]["end_of_block_balance"]), second + 10**23),
        LEFT: (second + 10**23, second),
        LEFT + 1: (second, int(rows[1]["end_of_block_balance"])),
    }
    times = {ARRIVED: rows[0]["block_timestamp"], LEFT + 1: rows[1]["block_timestamp"]}
    document = {
        "accountId": rows[0]["account_id"],
        "stakingPools": [],
        "transactions": [
            {
                "block": height,
                "timestamp": int(times.get(height, 0)),
                "changes": {},
                "transfers": [],
                "balanceBefore": {"near": before, "fungibleTokens": {}, "intentsTokens": {}},
                "balanceAfter": {"near": after, "fungibleTokens": {}, "intentsTokens": {}},
            }
            for height, (before, after) in balances.items()
        ],
    }
    history = History(document)
    history.rows = rows
    surfaces = "rpc_url api_url transactions_url transfers_url".split()
    with serve_history(history) as server:
        urls: dict[str, Any] = dict.fromkeys(surfaces, server.url)
        with lk.connect("lab", **urls, make_default=False) as ledger:
            period = ARRIVED, LEFT + 2
            options: dict[str, Any] = {"assets": "near", "ledger": ledger, "progress": False}
            yield lk.statement(history.account_id, *period, values="usd", **options)


def test_recorded_values_are_those_of_their_entries(recorded: lk.Statement):
    """0.1 NEAR came in worth 0.152 USD, and went out worth as much, one block before its row."""
    entries = recorded.entries
    names = "block_height", "change", "usd_amount", "usd_source", "usd_time"
    assert rows_of(entries, *names) == [
        [ARRIVED, 10**23, 0.152, "Transfers API", pd.Timestamp(1767259167010382617, tz="UTC")],
        [LEFT, -(10**23), -0.152, "Transfers API", pd.Timestamp(1767273179000799870, tz="UTC")],
    ]
    known = "value in USD known for 2 of 2 entries, from the Transfers API; 0 have none"
    assert known in repr(recorded)
    assert known in recorded._repr_html_()


def test_recorded_values_are_in_files(recorded: lk.Statement, tmp_path: Path):
    """All columns have the float as it was sent; Koinly's have it without a sign."""
    with pytest.warns(UserWarning, match="the statement has 2 gaps"):  # the other changes
        plain = pd.read_csv(recorded.to_csv(tmp_path / "a.csv"), dtype=str)
    with pytest.warns(UserWarning, match="the statement has 2 gaps"):
        koinly = pd.read_csv(recorded.to_csv(tmp_path / "b.csv", "koinly"), dtype=str)
    assert plain["usd_amount"].tolist() == ["0.152", "-0.152"]
    names = "Received Amount", "Sent Amount", "Net Worth Amount", "Net Worth Currency"
    assert rows_of(koinly, *names) == [["0.1", None, "0.152", "USD"], [None, "0.1", "0.152", "USD"]]


# The embedded ledger, with prices --------------------------------------------------------


def test_an_entry_has_the_value_of_its_row(world: World):
    """At 2 USD, 50 NEAR to a pool and 5 NEAR from alice are valued; fees and stakes are not."""
    names = "block_height", "asset", "cause", "usd_amount"
    pool = "stake:north.poolv1.near"
    own = statement(world)
    assert rows_of(own.entries, *names) == [
        [180000004, "near", "fee", None],
        [180000004, "near", "stake", -100.0],
        [180000005, "near", "transfer", 10.0],
        [180000005, pool, "stake", None],
        [180000006, "near", "fee", None],
        [180000007, "near", "fee", None],
        [180000008, "near", "fee", None],
    ]
    is_valued = own.entries["usd_amount"].notna()
    assert (own.entries["usd_source"].notna() == is_valued).all()
    assert (own.entries["usd_time"].notna() == is_valued).all()
    assert "value in USD known for 2 of 7 entries, from the Transfers API; 5 have none" in repr(own)
    assert own.facts.notes == []


def test_without_the_option_nothing_changes(world: World):
    """Other columns are the same, and no value is read; the option costs no request."""
    plain, valued = statement(world, values=None), statement(world)
    assert plain.entries.attrs["schema"] == "statement"
    assert valued.entries.attrs["schema"] == "statement_values"
    assert list(plain.entries) == lk.schema("statement")["name"].tolist()
    assert valued.entries[list(plain.entries)].equals(plain.entries)
    assert "USD" not in repr(plain)
    ways = Priced(world, price, bytes), Priced(world, price, bytes)
    for way, values in zip(ways, (None, "usd"), strict=True):
        with lk.connect("local", transport=way, make_default=False) as ledger:
            UNTYPED.statement(BOB, values=values, progress=False, ledger=ledger)
    assert ways[0].n_requests == ways[1].n_requests


def test_values_that_contradict_their_row_are_not_used(world: World, subtests: pytest.Subtests):
    """A value of another sign, of 0, or of another amount or receipt belongs to no entry."""

    def changed(name: str, value: Callable[[Any], object]) -> Edit:
        def edit(rows: list[dict[str, Any]]) -> None:
            price(rows)
            for row in rows:
                if row["other_account_id"] != "system":
                    row[name] = value(row[name])

        return edit

    cases: list[tuple[str, Callable[[Any], object]]] = [
        ("usd_amount", lambda usd: -usd),
        ("usd_amount", lambda _: 0.0),
        ("amount", lambda amount: amount + "0"),
        ("receipt_id", lambda _: "8SVstk7GxHfwJTksAsMNXYH8aKXQPBwPeFrhQ35pVyWy"),
        ("receipt_id", lambda _: None),
        ("asset_id", lambda _: GOLD),
    ]
    for name, value in cases:
        with subtests.test(name=name):
            own = statement(world, edit=changed(name, value))
            assert own.entries["usd_amount"].isna().all()
            assert NONE_KNOWN in repr(own)
            assert own.facts.notes[-1].startswith("the values of 2 transfers are not used: ")


def test_what_is_no_float_is_refused(world: World, subtests: pytest.Subtests):
    """A text or a number beyond a float is an error that names the member; NaN is no JSON."""
    cases = {b'"10.0"': "usd_amount", b"1e400": "usd_amount", b"NaN": "JSON"}
    for text, message in cases.items():
        with subtests.test(text=text), pytest.raises(errors.DecodeError, match=message):
            statement(world, body=partial(_replace, text))


def _replace(text: bytes, body: bytes) -> bytes:
    return body.replace(b"10.0", text)


def batch(world: World, receiver_id: str, actions: list[Any]) -> None:
    """Send actions of alice in one receipt."""
    with lk.connect("local", world=world, make_default=False) as ledger:
        key = world.keys()["alice.near"]
        lk.send(
            receiver_id, actions, signer_id="alice.near", key=key, wait_until="FINAL", ledger=ledger
        )


def test_equal_transfers_of_a_receipt():
    """Two transfers of as much have the same value; without one of the rows neither is known."""
    with lk.connect("local", make_default=False) as ledger:
        own = ledger.world
    args = json.dumps({"receiver_id": "bob.near", "amount": "5000000"}).encode()
    batch(own, "gold.near", [FunctionCall("ft_transfer", args, 10**13, 1) for _ in range(2)])
    start = own.chain.head.height - 20
    options: dict[str, Any] = {"assets": GOLD, "start": start}
    assert rows_of(statement(own, **options).entries, "amount", "usd_amount") == [["5", 2.5]] * 2

    def differ(rows: list[dict[str, Any]]) -> None:
        price(rows)
        rows[-1]["usd_amount"] = 3.0

    def lose(rows: list[dict[str, Any]]) -> None:
        price(rows)
        del rows[-1]

    for edit in (differ, lose):
        less = statement(own, edit=edit, **options)
        assert less.entries["usd_amount"].isna().all()
        assert any("are not used" in note or "is not used" in note for note in less.facts.notes)


def test_a_sum_of_transfers_has_no_value():
    """Two transfers of NEAR in a receipt are one entry, whose amount no row has."""
    with lk.connect("local", make_default=False) as ledger:
        own = ledger.world
    batch(own, "bob.near", [Transfer(10**24), Transfer(2 * 10**24)])
    last = statement(own).entries.iloc[-1]
    assert (last["amount"], last["cause"], last["usd_amount"]) == ("3", "transfer", pd.NA)


def test_extending_and_saving_keep_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Entries that are not read again keep their values, and new ones get theirs."""
    monkeypatch.setattr(extending, "_RECENT", 10)
    with lk.connect("local", make_default=False) as ledger:
        own = ledger.world
    earlier = statement(own)
    saved = lk.Statement.load(earlier.save(tmp_path / "bob.parquet"))
    assert saved.entries.equals(earlier.entries)
    batch(own, BOB, [Transfer(3 * 10**24)])
    whole = statement(own)
    with connected(own, lambda rows: price(rows[-1:])) as ledger:
        extended = saved.extend(progress=False, ledger=ledger)
    assert extended.entries.equals(whole.entries)
    assert extended.entries["usd_amount"].dropna().tolist() == [-100.0, 10.0, 6.0]
    assert extended.facts.n_valued == 3


def test_what_has_no_values_is_refused(world: World):
    """Another currency, and a network without a Transfers API, are refused before a request."""
    way = Priced(world, price, bytes)
    with (
        lk.connect("local", transport=way, make_default=False) as ledger,
        pytest.raises(errors.InvalidRequestError, match="values 'eur' is not valid"),
    ):
        UNTYPED.statement(BOB, values="eur", ledger=ledger)
    assert way.n_requests == 0
    with (
        lk.connect("testnet", make_default=False) as ledger,
        pytest.raises(errors.InvalidRequestError, match="testnet has no Transfers API"),
    ):
        lk.statement("bob.testnet", values="usd", ledger=ledger)
