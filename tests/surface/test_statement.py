"""Statements of the embedded ledger's accounts, bad input, and hosts that lack something."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.protocol import CryptoHash
from tests.loopback import Reply, as_json, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

UNTYPED: Any = lk  # as whoever calls it without a type checker
UNREADABLE = "nep141:torn.near"  # a contract of the demo world whose ft_balance_of is broken


@pytest.fixture(scope="module")
def ledger() -> Iterator[lk.Ledger]:
    with lk.connect("local", make_default=False) as ledger:
        yield ledger


def statement(ledger: lk.Ledger, account_id: str, *ends: object, **options: Any) -> lk.Statement:
    """Build a statement without progress bars."""
    return lk.statement(account_id, *ends, ledger=ledger, progress=False, **options)


def test_the_statements_of_all_accounts_add_up(ledger: lk.Ledger) -> None:
    """For every account of the demo world and every asset, entries are the change of balances."""
    world, n_entries = ledger.world, 0
    for account_id in world.account_ids():
        own = statement(ledger, account_id)
        assert own.gaps.empty, account_id
        for row in own.totals.to_dict("records"):
            if row["asset"] != UNREADABLE:
                assert row["missing"] == 0, (account_id, row["asset"])
        account = world.state(own.facts.stop.height).account(account_id)
        assert account is not None
        assert own.facts.closing["near"] == account.amount + account.locked
        n_entries += len(own.entries)
    assert n_entries > 300


def test_the_balance_after_an_entry_is_that_of_the_chain(ledger: lk.Ledger) -> None:
    """After the last entry of a block the running balance is the account's at that block."""
    own = statement(ledger, "ivan.near").entries
    near = own[own["asset"] == "near"].groupby("block_height")["balance_after"].last()
    for height, balance in zip(near.index.tolist(), near, strict=True):
        account = ledger.world.state(height).account("ivan.near")
        assert account is not None
        assert balance == account.amount + account.locked
    assert len(near) > 5


def test_a_transaction_is_one_row(ledger: lk.Ledger) -> None:
    """A swap is its net changes and its fee: what the transaction's trace says it moved."""
    rows = statement(ledger, "ivan.near").by_transaction
    assert rows["tx_hash"].is_unique
    swap = rows[rows["methods"].str.contains("ft_transfer_call", na=False)].iloc[0]
    trace = lk.trace(swap["tx_hash"], ledger=ledger)
    assert swap["headline"] == trace.headline()
    assert "swapped 120 GOLD for 1.50 wNEAR" in trace.headline()
    moved = trace.balance_changes.set_index("account_id").loc["ivan.near"]
    net = {asset: swap["changes"].get(asset, 0) for asset in moved["asset"]}
    net["near"] += swap["fee"]
    assert net == dict(zip(moved["asset"], moved["change"], strict=True))
    assert swap["changes"]["near"] == -1
    assert (swap["causes"], swap["n_entries"]) == ("deposit, token", 9)


def test_a_reward_has_a_row_of_its_own() -> None:
    """An entry without a transaction is a row without a hash."""
    with lk.connect("local", make_default=False) as own:
        key = own.world.keys()["bob.near"]
        for _ in range(3):
            own.world.advance(2, skip=43_200)
            lk.call("north.poolv1.near", "ping", signer_id="bob.near", key=key, ledger=own)
        whole = statement(own, "bob.near", "genesis")
    rows = whole.by_transaction[whole.by_transaction["causes"] == "staking_reward"]
    assert rows[["tx_hash", "headline"]].isna().all(axis=None)
    expected = [{"stake:north.poolv1.near": reward} for reward in whole.rewards["reward"]]
    assert rows["changes"].tolist() == expected
    assert len(expected) >= 2


def test_a_statement_of_a_part(ledger: lk.Ledger) -> None:
    """The entries between two blocks are those of the whole statement in these blocks."""
    whole = statement(ledger, "ivan.near").entries
    start, stop = 180000013, 180000035
    part = statement(ledger, "ivan.near", start, stop)
    assert part.gaps.empty
    heights = whole["block_height"]
    expected = whole[(heights >= start) & (heights < stop)].reset_index(drop=True)
    columns = [name for name in expected if name != "evidence"]  # the ends are other readings
    assert part.entries[columns].equals(expected[columns])


def test_an_entry_between_two_readings_is_proved(ledger: lk.Ledger) -> None:
    """The only change of an asset is proved by its balances at both ends."""
    entries = statement(ledger, "bob.near").entries
    blocks = entries.groupby("asset")["block_height"].nunique()
    evidence = entries.groupby("asset")["evidence"].unique()
    assert (blocks["stake:north.poolv1.near"], blocks["near"]) == (1, 5)
    assert evidence["stake:north.poolv1.near"].tolist() == ["proved"]
    assert evidence["near"].tolist() == ["derived"]


def test_a_time_before_the_chain_is_refused_by_name(ledger: lk.Ledger) -> None:
    """The argument and the time of the first block are in the message."""
    short = statement(ledger, "ivan.near", stop=180000014)
    for field in ("start", "stop"):
        with pytest.raises(errors.InvalidRequestError, match=f"{field} '2020-01-01'.* 2026-08-01"):
            UNTYPED.statement("ivan.near", **{field: "2020-01-01"}, ledger=ledger)
    with pytest.raises(errors.InvalidRequestError, match="stop '2020-01-01'"):
        short.extend("2020-01-01", ledger=ledger)


def test_a_stake_that_does_not_change_is_in_the_totals(ledger: lk.Ledger) -> None:
    """Pools of the account are assets too, without an entry in the period."""
    totals = statement(ledger, "alice.near").totals.set_index("asset")
    assert str(totals.loc["stake:north.poolv1.near", "closing"]) == "150000000000000000123456789"
    assert totals.loc["stake:north.poolv1.near", "n_entries"] == 0


def test_only_the_requested_assets(ledger: lk.Ledger) -> None:
    """A statement of one asset has its entries and totals alone."""
    asset = "nep141:gold.near"
    whole = statement(ledger, "ivan.near").entries
    own = statement(ledger, "ivan.near", assets=asset)
    assert own.totals["asset"].tolist() == [asset]
    assert own.entries.equals(whole[whole["asset"] == asset].reset_index(drop=True))


def test_an_asset_that_the_account_never_had(ledger: lk.Ledger) -> None:
    """Its statement is empty, with the declared columns, and says that it was not held."""
    own = statement(ledger, "ivan.near", assets=["nep141:glod.near"])
    frames = {
        "statement": own.entries,
        "statement_gaps": own.gaps,
        "statement_rewards": own.rewards,
    }
    for name, frame in frames.items():
        assert frame.empty
        assert frame.columns.tolist() == lk.schema(name)["name"].tolist()
    assert own.totals["asset"].tolist() == ["nep141:glod.near"]
    assert "? not held: nep141:glod.near; nothing was checked" in repr(own)
    assert "Did you mean 'nep141:gold.near'?" in repr(own)
    both = repr(statement(ledger, "ivan.near", assets=["near", "nep141:glod.near"]))
    assert "? not held: nep141:glod.near; all others add up" in both


def test_assets_by_other_names(ledger: lk.Ledger) -> None:
    """NEAR in capitals, and the contract of a token alone, name the same assets."""
    for name, asset in {"NEAR": "near", "gold.near": "nep141:gold.near"}.items():
        own, same = (statement(ledger, "ivan.near", assets=each) for each in (name, asset))
        assert own.totals["asset"].tolist() == [asset]
        assert own.entries.equals(same.entries)


def test_an_unknown_account(ledger: lk.Ledger) -> None:
    """An account that never was is an error, not an empty statement."""
    with (
        pytest.warns(UserWarning, match=r"no account nobody\.near"),
        pytest.raises(errors.UnknownAccountError, match=r"nobody\.near"),
    ):
        statement(ledger, "nobody.near")


def test_malformed_arguments(subtests: pytest.Subtests, ledger: lk.Ledger) -> None:
    """A malformed argument is named before anything is sent."""
    cases: list[Any] = [
        ({"account_id": "Not An Account"}, "account_id"),
        ({"assets": []}, "assets"),
        ({"assets": 5}, "assets"),
        ({"assets": "Gold.near"}, "assets"),
        ({"assets": "nep141:"}, "assets"),
        ({"assets": "nep245:intents.near"}, "assets"),
        ({"assets": "nep171:nft.near"}, "assets"),
        ({"assets": ["near", "gas_key:abc"]}, "assets"),
        ({"start": 1.5}, "start"),
        ({"stop": "yesterday"}, "stop"),
    ]
    for options, field in cases:
        with subtests.test(options=repr(options)):
            arguments: dict[str, Any] = {"account_id": "ivan.near", **options}
            with pytest.raises(errors.InvalidRequestError) as caught:
                lk.statement(**arguments, ledger=ledger, progress=False)
            assert caught.value.field == field


def test_a_start_after_the_stop(ledger: lk.Ledger) -> None:
    """The error names both blocks."""
    with pytest.raises(errors.InvalidRequestError, match=r"stop 180000010.*before 180000020"):
        statement(ledger, "ivan.near", 180000020, 180000010)


def block(height: int) -> dict[str, Any]:
    hash_ = str(CryptoHash(height.to_bytes(32, "big")))
    prev_hash = str(CryptoHash((height - 1).to_bytes(32, "big")))
    times = {"timestamp": height * 10**9, "timestamp_nanosec": str(height * 10**9)}
    ids = {"hash": hash_, "prev_hash": prev_hash, "prev_height": height - 1, "height": height}
    epochs = {"epoch_id": prev_hash, "next_epoch_id": prev_hash, "last_final_block": prev_hash}
    rest = {"gas_price": "1", "total_supply": "1", "chunks_included": 0}
    header = {**ids, **epochs, **times, **rest, "latest_protocol_version": 86}
    return {"header": header, "chunks": [], "author": "a"}


class Node:
    """A node with blocks and a status for each of the services; all bodies are empty answers."""

    def __init__(self, status: int = 200) -> None:
        self.status = status

    def respond(self, _method: str, path: str, _headers: Any, body: bytes) -> Reply:
        call = json.loads(body) if body else {}
        if path.startswith("/v0/"):
            answers: dict[str, Any] = {
                "/v0/account": {"account_txs": []},
                "/v0/transfers": {"transfers": []},
            }
            return as_json(answers.get(path, {}), self.status)
        if call.get("method") == "block":
            height = call["params"].get("block_id", 2_000)
            return as_json({"jsonrpc": "2.0", "id": call["id"], "result": block(int(height))})
        info = {"block_height": 1_000, "block_hash": call["params"]["block_id"]}
        cause = {"name": "GARBAGE_COLLECTED_BLOCK", "info": info}
        error = {"name": "HANDLER_ERROR", "cause": cause, "code": -32000, "message": "m"}
        return as_json({"jsonrpc": "2.0", "id": call["id"], "error": error})


def test_a_network_without_a_transactions_api() -> None:
    """The error names the address that is missing."""
    with serve(Node().respond) as server:
        lab = lk.connect("lab", rpc_url=server.url, make_default=False)
        with lab, pytest.raises(errors.InvalidRequestError, match="transactions_url"):
            statement(lab, "ivan.near", 1_000, 2_000)


def test_a_host_without_history() -> None:
    """A node that dropped the state is an error whose remedy is an archival host."""
    with serve(Node().respond) as server:
        urls: dict[str, Any] = {"rpc_url": server.url, "transactions_url": server.url}
        lab = lk.connect("lab", **urls, make_default=False)
        with lab, pytest.raises(errors.GarbageCollectedBlockError, match="archival_rpc_url"):
            statement(lab, "ivan.near", 1_000, 2_000, assets="near")


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_without_access(status: int) -> None:
    """A refused key is an error, and no empty statement."""
    with serve(Node(status).respond) as server:
        urls: dict[str, Any] = {"rpc_url": server.url, "transactions_url": server.url}
        lab = lk.connect("lab", **urls, make_default=False)
        with lab, pytest.raises(errors.AuthError):
            statement(lab, "ivan.near", 1_000, 2_000)


@pytest.mark.parametrize("start", ["2030-01", "2030-01-01T00:00:00"])
def test_a_period_after_the_last_block_is_refused(ledger: lk.Ledger, start: str) -> None:
    """Nothing is known of a time that no block has reached, so it is not empty."""
    with pytest.raises(lk.errors.InvalidRequestError, match=r"2030-01-01.* before the last block"):
        lk.statement("bob.near", start, progress=False, ledger=ledger)
