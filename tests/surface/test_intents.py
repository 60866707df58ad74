"""NEAR Intents in the world of a person: balances, rows of traces and tables, statements."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.localnet import Contract, World, call, open_world, view
from tests.command_line import main
from tests.surface.test_history import counted
from tests.surface.test_verbs import rows

pytestmark = pytest.mark.usefixtures("no_session_left")

NEAR = 10**24
WRAP, USDT = "nep141:wrap.near", "nep141:usdt.tether-token.near"
COLUMNS = ["account_id", "contract_id", "token_id", "held_in", "balance"]


@pytest.fixture
def ledger() -> lk.Ledger:
    """A ledger of the person's world."""
    return lk.connect("local", world="person")


def test_tokens_in_intents_are_rows_beside_those_of_the_wallet(ledger: lk.Ledger):
    """Maria deposited 10 of 20 wNEAR, swapped 5 for 12.5 USDT, sent 1 and withdrew 2.5."""
    held = lk.ft("maria.near", intents=True)
    assert held.attrs["schema"] == "ft_intents"
    tokens = held[held["contract_id"].isin(["wrap.near", "usdt.tether-token.near"])]
    assert [tuple(row) for row in tokens[COLUMNS[1:]].fillna("").itertuples(index=False)] == [
        ("usdt.tether-token.near", "", "wallet", 2_500_000),
        ("wrap.near", "", "wallet", 10 * NEAR),
        ("wrap.near", WRAP, "intents.near", 5 * NEAR),
        ("usdt.tether-token.near", USDT, "intents.near", 9_000_000),
    ]
    assert held["status"].unique().tolist() == ["ok"]
    assert held.attrs["block_height"] == ledger.world.chain.final.height
    both = lk.ft(["solver.near", "friend.near"], contracts="wrap.near", intents=True)
    assert both["account_id"].tolist() == ["solver.near", "solver.near", "friend.near"]
    # 50 wNEAR of the start and 5 of the swap, less the fee of a millionth that Maria paid.
    assert both["balance"].tolist() == [0, 55 * NEAR - 5 * 10**18, 0]


@pytest.mark.usefixtures("ledger")
def test_their_amounts_have_the_decimals_of_the_token():
    """The metadata is that of the contract that the token id names."""
    held = lk.ft("friend.near", intents=True, metadata=True)
    [row] = held[held["held_in"] == "intents.near"].to_dict("records")
    assert (row["symbol"], row["decimals"], row["amount"]) == ("USDt", 6, 1.0)
    assert held.attrs["schema"] == "ft_intents_metadata"


def test_balances_at_a_past_block(ledger: lk.Ledger):
    """Before the swap, all of the deposit was there; both kinds are of one block."""
    [swap] = [tx for tx in ledger.world.summary.transactions if "swap" in tx.description]
    height = int(lk.trace(swap.tx_hash).intents["block_height"].iloc[0])
    held = lk.ft("maria.near", contracts="wrap.near", at=height - 1, intents=True)
    assert held["balance"].tolist() == [10 * NEAR, 10 * NEAR]
    assert held.attrs["block_height"] == height - 1


class Many(Contract):
    """A verifier that keeps 250 tokens for everybody: the amount is the number of the token."""

    @view
    def mt_tokens_for_owner(self, account_id: str, from_index: str, limit: int) -> list[Any]:
        if account_id == "grace.near":
            return [{"token_id": "nep171:nft.near:1"}, {"token_id": "nep245:mt.near:a:b"}]
        if account_id == "victor.near":
            return [{"token_id": str(number)} for number in range(100_001)]
        numbers = range(int(from_index), min(250, int(from_index) + limit))
        return [{"token_id": f"nep141:t{number}.near"} for number in numbers]

    @view
    def mt_batch_balance_of(self, account_id: str, token_ids: list[str]) -> list[str]:
        if account_id == "grace.near":
            return ["1", str(2**128 - 1)]
        return [name.removeprefix("nep141:t").removesuffix(".near") for name in token_ids]


class Broken(Contract):
    """A verifier whose results are the JSON that the account's name stands for."""

    @view
    def mt_tokens_for_owner(self, account_id: str, from_index: str, limit: int) -> bytes:  # noqa: ARG002 - the standard's arguments
        names = {
            "alice.near": '["a"]',
            "bob.near": '[{"token_id":1}]',
            "carol.near": "null",
            "trent.near": '[{"token_id":{}}]',
            "grace.near": json.dumps([{"token_id": WRAP}] * 2),
        }
        page = json.dumps([{"token_id": f"nep141:t{number}.near"} for number in range(100)])
        return names.get(account_id, page).encode()

    @view
    def mt_batch_balance_of(self, account_id: str, token_ids: list[str]) -> bytes:  # noqa: ARG002 - the standard's arguments
        names = {"dave.near": '["1"]', "uma.near": json.dumps(["-1"] * 100)}
        return names.get(account_id, json.dumps(["1"] * 100)).encode()


def connect_to(contract: type[Contract]) -> World:
    """Connect to a demo world with another verifier contract."""
    world = open_world("demo")
    lk.connect(world=world)
    world.deploy("intents.near", contract)
    world.advance(3)
    return world


def test_all_pages_are_read():
    """250 tokens are three pages of ids and three of balances, at one block."""
    way = counted(connect_to(Many))
    held = lk.ft("uma.near", intents=True)
    inside = held[held["held_in"] == "intents.near"]
    assert inside["balance"].tolist() == list(range(250))
    # The block, the tokens of the indexer, and six view calls.
    assert way.methods == {"GET": 1, "block": 1, "query": 6}
    held = lk.ft("uma.near", contracts="gold.near", intents=True)
    assert held["held_in"].tolist() == ["wallet"]


def test_tokens_of_other_standards_have_their_ids():
    """An NFT or multi-token has no fungible contract; nothing is read for its metadata."""
    connect_to(Many)
    held = lk.ft("grace.near", contracts="gold.near", intents=True)
    assert held["held_in"].tolist() == ["wallet"]
    held = lk.ft("grace.near", intents=True, metadata=True)
    held = held[held["held_in"] == "intents.near"]
    assert held["contract_id"].isna().all()
    assert held["token_id"].tolist() == ["nep171:nft.near:1", "nep245:mt.near:a:b"]
    assert held["balance"].tolist() == [1, 2**128 - 1]
    assert held["metadata_status"].unique().tolist() == ["missing"]


def test_results_that_cannot_be_read_are_failures():
    """Each account is named, and what was read before, such as a page that comes twice, is left."""
    connect_to(Broken)
    people = "alice bob carol dave uma ivan trent grace"
    names = [f"{name}.near" for name in people.split()]
    held, failures = lk.ft(names, intents=True, on_error="collect")
    assert sorted(failures["subject"]) == sorted(names)
    assert failures["error"].unique().tolist() == ["DecodeError"]
    assert held["held_in"].unique().tolist() == ["wallet"]


def test_endless_tokens_are_an_error():
    """A contract that always has more tokens is not read forever."""
    connect_to(Many)
    with pytest.raises(errors.DecodeError, match="more than 100000 tokens"):
        lk.ft("victor.near", intents=True)


def test_a_network_without_the_contract():
    """A mistake is refused before anything is sent; an absent contract is named."""
    lk.connect("testnet")
    with pytest.raises(errors.InvalidRequestError, match=r"intents\.near is not on testnet"):
        lk.ft("alice.testnet", intents=True)
    lk.connect("local")
    with pytest.raises(errors.LedgerError, match=r"intents\.near"):
        lk.ft("alice.near", intents=True)


def test_the_table_of_a_collection_is_that_of_the_traces(ledger: lk.Ledger, tmp_path: Any):
    """The rows of blocks equal those of the traces of their transactions, and answer SQL."""
    run = lk.collect_blocks("genesis", out=tmp_path / "run", progress=False)
    table = run.pandas("intents")
    hashes = [tx.tx_hash for tx in ledger.world.summary.transactions]
    traced = lk.traces(hashes).intents
    columns = [name for name in traced.columns if name in table.columns]
    assert rows(table[columns]) == rows(traced[columns])
    assert table["kind"].tolist() == ["deposit", "swap", "swap", "transfer", "withdrawal"]
    with run.duckdb() as db:
        sql = "SELECT given_asset, sum(given) FROM intents WHERE referral IS NOT NULL GROUP BY 1"
        assert db.sql(sql).fetchall() == [(WRAP, 5 * NEAR)]


@pytest.mark.usefixtures("ledger")
def test_a_statement_names_what_happened_in_intents():
    """The balances add up, and each change of tokens in intents.near has its cause."""
    assets = [f"nep245:intents.near:{token_id}" for token_id in (WRAP, USDT)]
    statement = lk.statement("maria.near", assets=[*assets, "nep141:wrap.near"])
    assert "every balance adds up" in str(statement)
    entries = statement.entries
    inside = entries[entries["asset"].str.startswith("nep245:intents.near:")]
    changes = inside[["cause", "change", "counterparty_id"]].itertuples(index=False)
    assert sorted(map(tuple, changes)) == [
        ("intents_deposit", 10 * NEAR, "maria.near"),
        ("intents_withdrawal", -2_500_000, "maria.near"),
        ("swap", -5 * NEAR + 5 * 10**18, "solver.near"),
        ("swap", -5 * 10**18, "near"),
        # The gift of 1 USDT is settled with the swap: the contract nets what an account gets.
        ("swap", 11_500_000, "solver.near"),
    ]
    headlines = statement.by_transaction["headline"].tolist()
    swap = "maria.near swapped 5 wNEAR for 12.5 USDt"
    assert f"intents.near executed intents: {swap}; with 1 other intent." in headlines


class Minting(Contract):
    """A verifier that mints tokens of any id."""

    @call
    def mint(self, token_id: str) -> None:
        data = {"owner_id": "bob.near", "token_ids": [token_id], "amounts": ["5"]}
        self.event("nep245", "1.0.0", "mt_mint", [data])

    @view
    def mt_balance_of(self, account_id: str, token_id: str) -> str:  # noqa: ARG002 - the standard's arguments
        return "5"


def test_a_statement_with_ids_that_name_no_contract():
    """An id without a contract has no symbol, and what an id hides is escaped in the text."""
    world = connect_to(Minting)
    lk.use_signer("alice.near", world.keys()["alice.near"])
    for token_id in ("nep141:", "nep141:\u202eno account"):
        lk.call("intents.near", "mint", {"token_id": token_id}, wait_until="FINAL")
    statement = lk.statement("bob.near", world.chain.head.height - 20)
    inside = statement.entries[statement.entries["asset"].str.startswith("nep245:")]
    assert inside["symbol"].isna().all()
    assert inside["change"].tolist() == [5, 5]
    assert "the symbol and decimals of \\u202eno account could not be read" in str(statement)
    assert "\u202e" not in str(statement)


@pytest.mark.usefixtures("ledger")
def test_tax_files_count_tokens_in_intents_as_the_same_token(tmp_path: Any):
    """The deposit is no trade; the swap is one: 5 wNEAR for 12.5 USDT, less the gift of 1."""
    assets = [WRAP, USDT, *(f"nep245:intents.near:{token_id}" for token_id in (WRAP, USDT))]
    statement = lk.statement("maria.near", assets=assets)
    path = statement.to_csv(tmp_path / "koinly.csv", format="koinly")
    sent = ["Sent Amount", "Sent Currency", "Received Amount", "Received Currency"]
    table = pd.read_csv(path, dtype=str)
    assert table[sent].values.tolist() == [["5", "wNEAR", "11.5", "USDt"]]


def test_the_command_line(capsys: pytest.CaptureFixture[str]):
    """`ledgerkit ft --intents` refuses a network without the contract, too."""
    assert main(["ft", "alice.testnet", "--intents", "--network", "testnet"]) == 2
    assert "intents.near is not on testnet" in capsys.readouterr().err
