"""Recorded answers, over a real HTTP server, through the public API to frames and errors."""

from __future__ import annotations

import json
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import client, errors
from ledgerkit.api import chain_errors
from ledgerkit.verbs import saved_responses
from tests.loopback import Reply, Server, asking, failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "wire" / "samples"
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the recordings are not here")

# Whole blocks, which tests/unit/test_block_documents.py reads, and what is sent, not answered.
ELSEWHERE = ("blocks/", "tx/signed_transactions.json")
TAKEN: set[str] = set()

KEY = "ed25519:FekbqN74kXhVPRd8ysAqJwLydFvTPYh7ZXHmhqCETcR3"
TX_HASH = "6zgh2u9DqHHiXzdy9ouTP7oGky2T4nugqzqt9wJZwNFm"
AT_172M = {
    "block_height": 172797974,
    "block_hash": "7KwKtM54UbF7RkpZ2vcMtVkq8QMvH82AYKk5dZvK5bZR",
}


def sample(name: str, status: int = 200) -> pytest.MarkDecorator:
    """Serve a recording to the test, which thereby accounts for it."""
    TAKEN.add(name)
    return pytest.mark.parametrize("server", [(name, status)], indirect=True, ids=[name])


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Answer whatever is asked with the bytes of one recording."""
    with serving(*request.param) as running:
        yield running


@contextmanager
def serving(name: str, status: int = 200) -> Iterator[Server]:
    """Answer whatever is asked with the bytes of one recording."""
    body = (SAMPLES / name).read_bytes()
    with asking(lambda *_: Reply(status, body)) as running:
        yield running
        assert running.requests, f"nobody asked for {name}"


def saved(name: str, view: str) -> pd.DataFrame:
    """Frame a recording from its file."""
    return lk.read(SAMPLES / name, view)


def rows(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """List the values of some columns by row, whatever is missing as None."""
    return list(zip(*(plain(frame[column]) for column in columns), strict=True))


def plain(column: pd.Series) -> list[Any]:
    """List the values of a column: None for each of pandas' ways to miss one, times as integers."""
    values = column.astype("int64").tolist() if column.dtype.kind == "M" else column.tolist()
    return [None if one is pd.NA or one != one else one for one in values]  # noqa: PLR0124 - NaN


def test_no_recording_is_forgotten() -> None:
    """Every recorded answer has a test that serves it."""
    found = {path.relative_to(SAMPLES).as_posix() for path in SAMPLES.rglob("*.json")}
    answers = {name for name in found if not name.startswith(ELSEWHERE)}
    assert {name for name in answers if not name.endswith(".request.json")} == TAKEN


# By recording: the views that read it, each with its number of rows. All others refuse it.
VIEWS = {
    "rest/health.json": "",
    "rest/status.json": "indexer_status 1",
    "rest/v0_public_key_root.near.json": "accounts_of 2",
    "rest/v1_account_ft_here.tg.json": "ft 2",
    "rest/v1_account_full_here.tg.json": "accounts 1, ft 7, nft 4, staking 1",
    "rest/v1_account_full_mob.near.json": "accounts 1, ft 93, nft 49, staking 5",
    "rest/v1_account_nft_sharddog.near.json": "nft 22",
    "rest/v1_account_staking_mob.near.json": "staking 5",
    "rest/v1_ft_top_first.tkn.near.json": "top_holders 7",
    "rpc/EXPERIMENTAL_changes_single_access_key.json": "changes 1",
    "rpc/EXPERIMENTAL_receipt.json": "",
    "rpc/EXPERIMENTAL_tx_status.response.json": "receipts 4, edges 3, events 0",
    "rpc/block.json": "blocks 1, chunks 1",
    "rpc/broadcast_tx_async.request.json": "",
    "rpc/broadcast_tx_async.response.json": "",
    "rpc/chunk.json": "chunks 1, transactions 0",
    "rpc/gas_price.json": "gas_price 1",
    "rpc/query_call_function_ft_metadata.json": "",
    "rpc/query_call_function_null.json": "",
    "rpc/query_call_function_number.json": "",
    "rpc/query_view_access_key.json": "",
    "rpc/query_view_access_key_list.json": "keys 12",
    "rpc/query_view_account.json": "",
    "rpc/query_view_state_with_proof.json": "state 35",
    "rpc/send_tx.request.json": "",
    "rpc/send_tx.response.json": "receipts 2, edges 1, events 0",
    "rpc/status.json": "status 1",
    "rpc/tx.response.json": "receipts 2, edges 1, events 0",
    "rpc/validators.json": "validators 41",
    "tx/ft_transfer_call_with_callback.json": "receipts 6, edges 6, events 0",
    "tx/ft_transfer_failure_guest_panic.json": "receipts 3, edges 2, events 0",
    "tx/ft_transfer_success.json": "receipts 2, edges 1, events 0",
    "tx/local_receipt_omitted.json": "receipts 2, edges 1, events 0",
    "tx/sandbox_create_account_executed_optimistic.json": "receipts 2, edges 1, events 0",
    "txapi/delegate_cross_contract.json": "receipts 6, edges 6, events 2",
    "txapi/delegate_small.json": "receipts 3, edges 2, events 5",
    "txapi/intents_execute.json": "receipts 8, edges 8, events 8",
}


def test_every_answer_has_its_views() -> None:
    """No recorded answer other than an error is left out of the table."""
    assert {name for name in TAKEN if not name.startswith("errors/")} <= VIEWS.keys()


def test_a_recording_is_read_as_its_own_views_only(subtests: pytest.Subtests) -> None:
    """Read as any other view it is an error that names those views, and no empty frame."""
    for name, views in VIEWS.items():
        with subtests.test(name=name):
            lengths = dict(pair.split() for pair in views.split(", ") if pair)
            for view in saved_responses._VIEWS:
                if view in lengths:
                    assert len(saved(name, view)) == int(lengths[view])
                    continue
                with pytest.raises(errors.DecodeError) as caught:
                    saved(name, view)
                assert all(f'view="{other}"' in str(caught.value) for other in lengths)


def test_a_recorded_error_is_no_frame(subtests: pytest.Subtests) -> None:
    """An error is an error as every view."""
    for name in sorted(path.name for path in (SAMPLES / "errors").glob("*.json")):
        with subtests.test(name=name):
            for view in saved_responses._VIEWS:
                with pytest.raises(errors.LedgerError):
                    saved(f"errors/{name}", view)


# Frames ---------------------------------------------------------------------------------


class Read(NamedTuple):
    """How a recording is asked for and read: its verb and view, what is sent, and its columns."""

    verb: Callable[[], pd.DataFrame]
    view: str
    sent: Any  # the path, or the parameters of the call
    columns: dict[str, list[Any]]


POOLS = ["zavodil.poolv1.near", "usn.pool.near", "usn-unofficial.pool.near", "epic.poolv1.near"]
POOLS.append("here.poolv1.near")
CHUNK_HASH = "EBM2qg5cGr47EjMPtH88uvmXHDHqmWPzKaQadbWhdw22"
CHUNK: dict[str, list[Any]] = {
    "shard_id": [0],
    "chunk_hash": [CHUNK_HASH],
    "height_created": [17821130],
    "height_included": [17821130],
    "gas_used": [0],
    "gas_limit": [1000000000000000],
    "balance_burnt": [0],
}
CHANGED_KEY = "ed25519:25KEc7t7MQohAJ4EDThd2vkksKkwangnuJFzcoiXj9oM"
CHANGED = "example-acct.testnet"
READS: list[tuple[str, Read]] = [
    (
        "rest/status.json",
        Read(
            lk.indexer_status,
            "indexer_status",
            "/status",
            {
                "version": ["0.10.0"],
                "sync_block_height": [129734103],
                "sync_block_time": [1728256282197171397],
                "sync_latency_s": [4.671730603],
                "sync_balance_block_height": [129734103],
            },
        ),
    ),
    (
        "rest/v0_public_key_root.near.json",
        Read(
            lambda: lk.accounts_of(KEY),
            "accounts_of",
            f"/v1/public_key/{KEY.replace(':', '%3A')}",
            {
                "public_key": [KEY] * 2,
                "account_id": [
                    "root.near",
                    "d9af67ff794a93e05bdba5c25ad7af027d72b3b76823051c0fb4b6e3e79ac51e",
                ],
                "is_primary": [True, False],
            },
        ),
    ),
    (
        "rest/v1_account_ft_here.tg.json",
        Read(
            lambda: lk.ft("here.tg"),
            "ft",
            "/v1/account/here.tg/ft",
            {
                "account_id": ["here.tg"] * 2,
                "contract_id": ["game.hot.tg", "usdt.tether-token.near"],
                "balance": [10000, 81000],
                "last_update_block_height": [115615375, None],
                "status": ["ok"] * 2,
            },
        ),
    ),
    (
        "rest/v1_account_staking_mob.near.json",
        Read(
            lambda: lk.staking("mob.near"),
            "staking",
            "/v1/account/mob.near/staking",
            {
                "pool_id": POOLS,
                "last_update_block_height": [114976469, None, None, None, 114976560],
            },
        ),
    ),
    (
        "rest/v1_ft_top_first.tkn.near.json",
        Read(
            lambda: lk.top_holders("first.tkn.near"),
            "top_holders",
            "/v1/ft/first.tkn.near/top",
            {
                "rank": [1, 2, 3, 4, 5, 6, 7],
                "balance": [
                    979894691374420631019486155,
                    10319841074196024761995069,
                    9775084808910328058513245,
                    10290906529190035816723,
                    91835943826124178808,
                    10000,
                    0,
                ],
            },
        ),
    ),
    (
        "rpc/block.json",
        Read(
            lk.block,
            "blocks",
            {"finality": "final"},
            {
                "block_height": [17821130],
                "block_hash": ["CLo31YCUhzz8ZPtS5vXLFskyZgHV5qWgXinBQHgu9Pyd"],
                "time": [1601280114229875635],
                "author": ["bitcat.pool.f863973.m0"],
                "prev_height": [None],  # old nodes do not send it
                "prev_hash": ["2yUTTubrv1gJhTUVnHXh66JG3qxStBqySoN6wzRzgdVD"],
                "epoch_id": ["7Wr3GFJkYeCxjVGz3gDaxvAMUzXuzG8MjFXTFoAXB6ZZ"],
                "last_final_block": ["AaxTqjYND5WAKbV2UZaFed6DH1DShN9fEemtnpTsv3eR"],
                "chunks_included": [1],
                "gas_limit": [1000000000000000],
                "gas_price": [100000000],
                "total_supply": [1042339182040791154864822502764857],
                "protocol_version": [35],
            },
        ),
    ),
    (
        "rpc/block.json",
        Read(
            lambda: lk.chunks(17821130),
            "chunks",
            {"block_id": 17821130},
            CHUNK
            | {"author": [None], "n_transactions": [None], "n_receipts": [None]}
            | {"block_height": [17821130], "is_new": [True]},
        ),
    ),
    (
        "rpc/chunk.json",
        Read(
            lambda: lk.chunk(CHUNK_HASH),
            "chunks",
            {"chunk_id": CHUNK_HASH},
            CHUNK
            | {"author": ["bitcat.pool.f863973.m0"], "n_transactions": [0], "n_receipts": [0]}
            | {"block_height": [None], "is_new": [None]},
        ),
    ),
    ("rpc/gas_price.json", Read(lk.gas_price, "gas_price", [None], {"gas_price": [100000000]})),
    (
        "rpc/status.json",
        Read(
            lk.status,
            "status",
            [],
            {
                "chain_id": ["testnet"],
                "latest_block_height": [17774278],
                "latest_block_time": [1601251178008063088],
                "latest_block_hash": ["44kieHwr7Gg5r72V3DgU7cpgV2aySkk5qbBCdvwens8T"],
                "earliest_block_height": [None],
                "epoch_id": [None],
                "protocol_version": [35],
                "version": ["1.14.0-rc.1"],
                "n_validators": [41],
            },
        ),
    ),
    (
        "rpc/EXPERIMENTAL_changes_single_access_key.json",
        Read(
            lambda: lk.changes("single_access_key_changes", CHANGED, public_key=CHANGED_KEY),
            "changes",
            {
                "changes_type": "single_access_key_changes",
                "keys": [{"account_id": CHANGED, "public_key": CHANGED_KEY}],
                "finality": "final",
            },
            {
                "type": ["access_key_update"],
                "account_id": [CHANGED],
                "cause": ["transaction_processing"],
                "cause_hash": ["HshPyqddLxsganFxHHeH9LtkGekXDCuAt6axVgJLboXV"],
                "change": [
                    {
                        "account_id": CHANGED,
                        "public_key": CHANGED_KEY,
                        "access_key": {"nonce": 1, "permission": "FullAccess"},
                    }
                ],
            },
        ),
    ),
]
TAKEN.update(name for name, _ in READS)


def test_frames_of_recordings(subtests: pytest.Subtests) -> None:
    """Each value is the recorded one, whatever is absent is missing; the file gives the same."""
    for name, (verb, view, sent, columns) in READS:
        with subtests.test(name=name, view=view):
            with serving(name) as server:
                frame = verb()
            assert {column: plain(frame[column]) for column in columns} == columns
            assert sent in (server.paths[0], *(call["params"] for call in server.calls))
            pd.testing.assert_frame_equal(saved(name, view), frame)


@sample("rest/health.json")
def test_health(server: Server) -> None:
    """A healthy indexer says ok."""
    assert lk.health() == "ok"
    assert server.paths == ["/health"]


@sample("rest/v1_account_full_here.tg.json")
def test_snapshot(server: Server) -> None:
    """One call gives all four frames of an account."""
    taken = lk.snapshot("here.tg")
    assert server.paths == ["/v1/account/here.tg/full"]
    columns = ("balance", "storage_bytes", "storage_cost", "spendable", "last_update_block_height")
    assert rows(taken.state, *columns) == [
        (
            240420562203528059226991880,
            26340,
            263400000000000000000000,
            240157162203528059226991880,
            128025061,
        )
    ]
    assert rows(taken.ft.tail(2), "contract_id", "balance", "status") == [
        ("wbnb.hot.tg", 8999999999899999, "ok"),
        ("v1.omni.hot.tg", None, "broken"),
    ]
    heights = [None, 115282010, 118841842, 121969370]
    assert plain(taken.nft["last_update_block_height"]) == heights
    assert rows(taken.staking, "pool_id", "last_update_block_height") == [(POOLS[-1], None)]
    assert repr(taken) == "<Snapshot here.tg: 7 tokens, 4 NFT collections, 1 pools>"


@sample("rest/v1_account_full_mob.near.json")
def test_snapshot_of_many_rows(server: Server) -> None:
    """Broken balances are counted apart, null heights stay missing, sums are exact."""
    taken = lk.snapshot("mob.near")
    tokens = taken.ft
    assert rows(taken.state, "n_tokens", "n_nfts", "n_pools") == [(93, 49, 5)]
    assert tokens["status"].value_counts().to_dict() == {"ok": 91, "broken": 2}
    assert tokens["balance"].dropna().sum() == 1003874492575162947535938910946721835
    assert (tokens["balance"].dropna() == 0).sum() == 11
    assert tokens["last_update_block_height"].isna().sum() == 54
    assert taken.nft["last_update_block_height"].isna().sum() == 26
    exposure = lk.exposure(
        "mob.near", liquid_tokens=["meta-pool.near", "linear-protocol.near"], progress=False
    )
    columns = ("exposure_class", "n_direct", "n_liquid", "n_unknown", "direct_pools")
    assert rows(exposure, *columns) == [("mixed", 5, 2, 5, POOLS)]
    assert set(server.paths) == {"/v1/account/mob.near/full"}
    for view, frame in (
        ("accounts", lk.accounts("mob.near")),
        ("ft", tokens),
        ("nft", taken.nft),
        ("staking", taken.staking),
    ):
        pd.testing.assert_frame_equal(saved("rest/v1_account_full_mob.near.json", view), frame)


@sample("rest/v1_account_nft_sharddog.near.json")
def test_nft(server: Server) -> None:
    """An account's collections come one a row, four of them with a height."""
    frame = lk.nft("sharddog.near")
    assert len(frame) == 22
    assert frame["account_id"].unique().tolist() == ["sharddog.near"]
    known = frame.dropna(subset="last_update_block_height")
    assert rows(known, "contract_id", "last_update_block_height") == [
        ("mint.sharddog.near", 115034954),
        ("comic.sharddog.near", 114988538),
        ("mintv2.sharddog.near", 114973604),
        ("claim.sharddog.near", 115039779),
    ]
    assert server.paths == ["/v1/account/sharddog.near/nft"]
    pd.testing.assert_frame_equal(saved("rest/v1_account_nft_sharddog.near.json", "nft"), frame)


@sample("rpc/validators.json")
def test_validators(server: Server) -> None:
    """Current, next and proposed validators have one schema; stakes sum exactly."""
    current, following = lk.validators(), lk.validators(which="next")
    proposals, kickouts = lk.validators(which="proposals"), lk.validators(which="kickouts")
    assert [len(f) for f in (current, following, proposals, kickouts)] == [41, 41, 3, 0]
    assert current["stake"].sum() == 12436191779945819192263882149440
    assert following["stake"].sum() == 12500436822364574285189976201559
    columns = ("account_id", "stake", "shards", "num_produced_blocks", "num_produced_chunks")
    assert rows(current.tail(1), *columns) == [
        ("zpool.pool.f863973.m0", 140932616764414290525265048028, [0], 120, None)
    ]
    assert rows(proposals, "account_id", "stake")[0] == (
        "kytzu.pool.f863973.m0",
        114346100195275968419224582943,
    )
    for frame in (following, proposals, kickouts):
        pd.testing.assert_series_equal(frame.dtypes, current.dtypes)
    assert current.attrs["epoch_height"] == 321
    assert current.attrs["epoch_start_height"] == 17754191
    assert server.calls[0]["params"] == [None]
    pd.testing.assert_frame_equal(saved("rpc/validators.json", "validators"), current)


@sample("rpc/query_call_function_ft_metadata.json")
def test_view(server: Server) -> None:
    """A view call's byte array reads as the JSON it is."""
    assert lk.view("example.testnet", "ft_metadata") == {
        "spec": "ft-1.0.0",
        "name": "Example Token Name",
        "symbol": "MOCHI",
        "icon": None,
        "reference": None,
        "reference_hash": None,
        "decimals": 24,
    }
    assert server.calls[0]["params"] == {
        "request_type": "call_function",
        "account_id": "example.testnet",
        "method_name": "ft_metadata",
        "args_base64": "e30=",
        "finality": "final",
    }


def test_ft_with_metadata() -> None:
    """A token's own metadata gives its symbol and the balance in human units."""
    told = (SAMPLES / "rpc/query_call_function_ft_metadata.json").read_bytes()
    held = (SAMPLES / "rest/v1_account_ft_here.tg.json").read_bytes()
    with asking(lambda method, *_: Reply(200, told if method == "POST" else held)) as server:
        frame = lk.ft("here.tg", metadata=True, progress=False)
    assert rows(frame, "balance", "symbol", "decimals", "amount", "metadata_status") == [
        (10000, "MOCHI", 24, 1e-20, "ok"),
        (81000, "MOCHI", 24, 8.1e-20, "ok"),
    ]
    assert sorted(call["params"]["account_id"] for call in server.calls) == [
        "game.hot.tg",
        "usdt.tether-token.near",
    ]


@sample("rpc/query_call_function_null.json")
def test_view_of_null(server: Server) -> None:
    """A contract that answers null gives None; the bytes are there on request."""
    args = {"account_id": "alice.testnet"}
    assert lk.view("example.testnet", "storage_balance_of", args) is None
    assert lk.view("example.testnet", "storage_balance_of", args, raw=True) == b"null"
    asked = server.calls[0]["params"]["args_base64"]
    assert asked == "eyJhY2NvdW50X2lkIjoiYWxpY2UudGVzdG5ldCJ9"


@sample("rpc/query_call_function_number.json")
def test_view_of_a_number(server: Server) -> None:
    """One digit is a number, not a byte."""
    assert lk.view("example.testnet", "get_num") == 0
    assert len(server.requests) == 1


@sample("rpc/query_view_access_key.json")
def test_one_access_key(server: Server) -> None:
    """The raw call gives the decoded result, amounts as the texts they are."""
    params = {
        "request_type": "view_access_key",
        "account_id": "client.chainlink.testnet",
        "public_key": KEY,
        "finality": "final",
    }
    assert client.current().rpc("query", params) == {
        "nonce": 85,
        "permission": {
            "FunctionCall": {
                "allowance": "18501534631167209000000000",
                "receiver_id": "client.chainlink.testnet",
                "method_names": ["get_token_price"],
            }
        },
        "block_height": 19884918,
        "block_hash": "GGJQ8yjmo7aEoj8ZpAhGehnq9BSWFx4xswHYzDwwAP2n",
    }
    assert server.calls[0]["params"] == params


@sample("rpc/query_view_access_key_list.json")
def test_keys(server: Server) -> None:
    """Full and limited keys share one frame; old nonces tell no creation block."""
    frame = lk.keys("client.testnet")
    assert len(frame) == 12
    columns = ("nonce", "permission", "receiver_id", "method_names", "allowance", "is_unlimited")
    assert rows(frame, *columns)[:3] == [
        (17, "FunctionCall", "place.meta", [], 9999203942481156415000, False),
        (2, "FunctionCall", "dev-1596616186817-8588944", [], 9999930655034196535000, False),
        (0, "FullAccess", None, None, None, None),
    ]
    assert frame["permission"].value_counts().to_dict() == {"FullAccess": 7, "FunctionCall": 5}
    assert frame["nonce"].tolist() == [17, 2, 0, 2, 2, 8, 0, 0, 17, 31, 0, 0]
    assert frame["use_count"].tolist() == frame["nonce"].tolist()
    assert frame["added_at_block"].isna().all()
    assert frame["allowance"].dropna().sum() == 49999056681212395905000
    assert frame.attrs["block_height"] == 17798231
    assert frame.attrs["block_hash"] == "Gm7YSdx22wPuciW1jTTeRGP9mFqmon69ErFQvgcFyEEB"
    assert server.calls[0]["params"]["request_type"] == "view_access_key_list"
    offline = saved("rpc/query_view_access_key_list.json", "keys")
    assert offline["account_id"].isna().all()
    pd.testing.assert_frame_equal(offline.drop(columns="account_id"), frame.iloc[:, 1:])


TAKEN.add("rpc/query_view_account.json")


def test_accounts_at_a_block() -> None:
    """State at a height is read at that height's block, by its hash."""
    answers = {
        "block": (SAMPLES / "rpc/block.json").read_bytes(),
        "query": (SAMPLES / "rpc/query_view_account.json").read_bytes(),
    }
    recorded_at = json.loads(answers["query"])["result"]["block_hash"].encode()
    block_hash = json.loads(answers["block"])["result"]["header"]["hash"].encode()
    answers["query"] = answers["query"].replace(recorded_at, block_hash)

    def script(_method: str, _path: str, _headers: object, body: bytes) -> Reply:
        return Reply(200, answers["block" if b'"method":"block"' in body else "query"])

    with asking(script) as server:
        frame = lk.accounts("client.testnet", at=17821130)
    balance = 399992611103597728750000000
    assert rows(frame, "balance", "spendable", "storage_bytes", "n_tokens") == [
        (balance, balance, 642, None)  # small accounts lock nothing
    ]
    assert [call["params"] for call in server.calls] == [
        {"block_id": 17821130},
        {
            "request_type": "view_account",
            "account_id": "client.testnet",
            "block_id": "CLo31YCUhzz8ZPtS5vXLFskyZgHV5qWgXinBQHgu9Pyd",
        },
    ]
    assert frame.attrs["block_height"] == 17821130


@sample("rpc/query_view_state_with_proof.json")
def test_contract_state(server: Server) -> None:
    """Keys and values are the bytes behind their base64."""
    frame = lk.contract_state("guest-book.testnet", b"m:")
    assert len(frame) == 35
    hello = b'{"premium":true,"sender":"joshford.testnet","text":"hello"}'
    assert rows(frame, "key", "value")[0] == (b"m::0", hello)
    assert rows(frame, "key", "value")[-1] == (b"m:len", b"34")
    assert server.calls[0]["params"]["prefix_base64"] == "bTo="
    assert frame.attrs["block_height"] == 17814234
    pd.testing.assert_frame_equal(saved("rpc/query_view_state_with_proof.json", "state"), frame)


TAKEN.add("rpc/EXPERIMENTAL_receipt.json")


def test_receipt() -> None:
    """A single receipt comes as the node sends it, also from one that looks up nothing else."""
    receipt_id = "2EbembRPJhREPtmHCrGv3Xtdm3xoc5BMVYHm3b2kjvMY"
    body = (SAMPLES / "rpc/EXPERIMENTAL_receipt.json").read_bytes()

    def node(method: str, path: str, _: object, request: bytes) -> Reply:
        assert (method, path) == ("POST", "/")
        name = json.loads(request)["method"]
        if name == "EXPERIMENTAL_receipt":
            return Reply(200, body)
        return failure("METHOD_NOT_FOUND", {"method_name": name}, 400)

    with asking(node) as server:
        found = lk.receipt(receipt_id)
    assert found.pop("transaction_hash") is None
    assert (found["receipt_id"], found["receiver_id"]) == (receipt_id, "frol.testnet")
    deposit = found["receipt"]["Action"]["actions"][0]["Transfer"]["deposit"]
    assert Decimal(deposit) == 10**24
    assert server.calls[0]["params"] == {"receipt_id": receipt_id}


@sample("rpc/broadcast_tx_async.response.json")
def test_broadcast_tx_async(server: Server) -> None:
    """The raw call gives a bare hash as it is."""
    assert client.current().rpc("broadcast_tx_async", ["c2lnbmVk"]) == TX_HASH
    assert server.calls[0]["method"] == "broadcast_tx_async"


@sample("rpc/send_tx.response.json")
def test_send_tx(server: Server) -> None:
    """The raw answer of a submission is a trace too."""
    answer = client.current().rpc("send_tx", {"signed_tx_base64": "c2lnbmVk"})
    assert answer["transaction"]["hash"] == "ASS7oYwGiem9HaNwJe6vS2kznx2CxueKDvU9BAYJRjNR"
    found = lk.Trace.from_json(answer)
    assert (found.verdict, found.signer_id) == ("fully_succeeded", "sender.testnet")
    assert set(found.receipts["receipt_id"]) == {
        "BLV2q6p8DX7pVgXRtGtBkyUNrnqkNyU7iSksXG7BjVZh",
        "3sawynPNP8UkeCviGqJGwiwEacfPyxDKRxsEWPpaUqtR",
    }
    assert found.receipts["gas_burnt"].sum() == 223182562500
    assert len(server.requests) == 1


# Transactions ---------------------------------------------------------------------------

# By receipt in causal order: the first letters of its id and of its creator's, kind, receiver,
# actions, methods, status, block height; - is missing.
TREES: dict[str, tuple[str, str, str, int, int, str]] = {
    "rpc/EXPERIMENTAL_tx_status.response.json": (
        "HEgnVQZfs9uJzrqTob4g2Xmebqodq9waZvApSkrbcAhd",
        "bowen",
        "fully_succeeded",
        3716372331644,
        371637233164400000000,
        """
        FXMV - action evgeny.lockup.m0 FunctionCall transfer success_receipt_id -
        3Ad7 FXMV action bowen Transfer - success_value -
        FDp8 FXMV refund bowen Transfer - success_value -
        5DdQ 3Ad7 refund bowen Transfer - success_value -
        """,
    ),
    "rpc/tx.response.json": (
        TX_HASH,
        "sender.testnet",
        "fully_succeeded",
        223182562500,
        22318256250000000000,
        """
        3dMf - action receiver.testnet Transfer - success_value -
        46KY 3dMf refund sender.testnet - - success_value -
        """,
    ),
    "tx/ft_transfer_call_with_callback.json": (
        "5n1kwA3TQQyFTkddR2Jau3H1Pt8ebQNGaov6aCQ6TDp1",
        "serhii.testnet",
        "fully_succeeded",
        30389027523632,
        3038902752363200000000,
        """
        Hw6z - action dev-1623333795623-21399959778159
            FunctionCall ft_transfer_call success_receipt_id -
        EB69 Hw6z action dev-1623693121955-71667632531176
            FunctionCall ft_on_transfer success_value -
        H7YW Hw6z refund serhii.testnet Transfer - success_value -
        Akwg EB69 refund serhii.testnet Transfer - success_value -
        4Tc8 Hw6z action dev-1623333795623-21399959778159
            FunctionCall ft_resolve_transfer success_value -
        9rxc 4Tc8 refund serhii.testnet Transfer - success_value -
        """,
    ),
    "tx/ft_transfer_failure_guest_panic.json": (
        "CKHzodHvFw4C87PazsniycYZZHm37CEWLE2u8VUUMU7r",
        "serhii.near",
        "failed",
        4011776278642,
        401177627864200000000,
        """
        5bdB - action berryclub.ek.near FunctionCall ft_transfer failure -
        Td3Q 5bdB refund serhii.near Transfer - success_value -
        DwLM 5bdB refund serhii.near Transfer - success_value -
        """,
    ),
    "tx/ft_transfer_success.json": (
        "2Fy4714idMCoja7QLdGAbQZHzV2XEnUdwZX6yGa46VMX",
        "serhii.near",
        "fully_succeeded",
        6365774114160,
        636577411416000000000,
        """
        ExhY - action berryclub.ek.near FunctionCall ft_transfer success_value -
        EAPh ExhY refund serhii.near Transfer - success_value -
        """,
    ),
    "tx/local_receipt_omitted.json": (
        "FGREJkC1e8y95Rc35iD1LVRiDy1WcAZhAxxkSinfb2mL",
        "multisigtest.testnet",
        "fully_succeeded",
        8024094920263,
        802409492026300000000,
        """
        94Li - action multisigtest.testnet FunctionCall add_request_and_confirm success_value -
        4qgD 94Li refund multisigtest.testnet Transfer - success_value -
        """,
    ),
    "tx/sandbox_create_account_executed_optimistic.json": (
        "G83yVZmRo9PvwGv5XyNAQRC9biKZ5Psb5VnsNKemsSEe",
        "test.near",
        "fully_succeeded",
        4174947687500,
        417494768750000000000,
        """
        CDqC - action counter-4fd14aca.test.near CreateAccount+AddKey+Transfer - success_value -
        7jm6 CDqC - - - - not_executed -
        """,
    ),
    "txapi/delegate_cross_contract.json": (
        "DmBi9D9KNUJDL7to4bt4hQDEkRNPwAQe9JzARox45MYY",
        "sweat-relayer.near",
        "fully_succeeded",
        35292828257930,
        3484646313293000000000,
        """
        4LVo - action oracle.sweat Delegate defer_batch success_value 185572451
        Bujp 4LVo action token.sweat FunctionCall defer_batch success_receipt_id 185572452
        3fmg Bujp action claim.sweat FunctionCall record_batch_for_hold success_value 185572453
        u884 3fmg refund sweat-relayer.near Transfer - success_value 185572454
        5GcF Bujp action token.sweat FunctionCall on_record success_value 185572454
        4kyC 5GcF refund sweat-relayer.near Transfer - success_value 185572455
        """,
    ),
    "txapi/delegate_small.json": (
        "3eWyQXxCmA4Jfu6pp2wRWsxF7MJGw3QJEaiUq6jDRQxL",
        "0-relay.hot.tg",
        "fully_succeeded",
        4215651285197,
        399246872269700000000,
        """
        94Z3 - action manhcoi83.tg Delegate l2_claim success_value 185572451
        DBuf 94Z3 action game.hot.tg FunctionCall l2_claim success_value 185572452
        2JFB DBuf refund 0-relay.hot.tg Transfer - success_value 185572453
        """,
    ),
    "txapi/intents_execute.json": (
        "AAU7v3EWXKoZRturd85uUWWFFR8tnNWnVSmwdyGRjhmx",
        "intents.near",
        "fully_succeeded",
        18544185630972,
        1787463794347200000000,
        """
        H7C7 - action intents.near FunctionCall execute_intents success_value 185572450
        BVKz H7C7 action wrap.near FunctionCall near_withdraw success_receipt_id 185572451
        6DDT H7C7 refund intents.near Transfer - success_value 185572451
        E5io BVKz action intents.near Transfer - success_value 185572452
        AoVq BVKz refund intents.near Transfer - success_value 185572452
        767T H7C7 action intents.near FunctionCall do_native_withdraw success_receipt_id 185572453
        6NW2 767T action e2e-tests-prod.near Transfer - success_value 185572454
        DYbV 767T refund intents.near Transfer - success_value 185572454
        """,
    ),
}
TAKEN.update(TREES)


def sketch(receipts: pd.DataFrame) -> list[str]:
    """Write a tree as `TREES` does, word by word."""
    columns = ("kind", "receiver_id", "actions", "method_name", "status", "block_height")
    found = rows(receipts, "receipt_id", "parent_id", *columns)
    return [
        str("-" if value is None else value)
        for receipt_id, parent_id, *values in found
        for value in (receipt_id[:4], parent_id and parent_id[:4], *values)
    ]


@pytest.mark.parametrize("name", TREES)
def test_trees(name: str) -> None:
    """A live answer and the saved one give the same tree, in causal order, with exact sums."""
    tx_hash, signer_id, verdict, gas, tokens, drawn = TREES[name]
    body = (SAMPLES / name).read_bytes()
    live = name.startswith(("rpc/", "tx/")) and not name.startswith("tx/sandbox")
    with asking(lambda *_: Reply(200, body)) as server:
        if live:
            found = lk.trace(tx_hash, signer_id, blocks=False)
            assert server.calls[0]["params"]["tx_hash"] == tx_hash
        else:  # a bare result, or a document of another service
            found = lk.Trace.from_json(client.current().get("/v0/transactions"))
    assert (found.tx_hash, found.signer_id, found.verdict) == (tx_hash, signer_id, verdict)
    assert sketch(found.receipts) == drawn.split()
    assert found.receipts["gas_burnt"].sum() == gas
    assert found.receipts["tokens_burnt"].dropna().sum() == tokens
    pd.testing.assert_frame_equal(saved(name, "receipts"), found.receipts)
    pd.testing.assert_frame_equal(saved(name, "edges"), found.edges)


def test_a_failed_receipt() -> None:
    """A panic is named by kind and by its own words."""
    frame = saved("tx/ft_transfer_failure_guest_panic.json", "receipts")
    assert rows(frame.head(1), "error_kind", "error_message", "deposit", "args") == [
        (
            "FunctionCallError.ExecutionError",
            "Smart contract panicked: The account doesn't have enough balance",
            1,
            {"receiver_id": "volovyk.near", "amount": "10000000000000000000"},
        )
    ]
    assert frame["error_kind"].isna().tolist() == [False, True, True]
    assert frame["deposit"].tolist() == [1, 1, 18_653_463_364_152_698_495_356]


def test_a_callback_waits_for_data() -> None:
    """A callback names the receipt that produces its input, and the edge names the data."""
    name = "tx/ft_transfer_call_with_callback.json"
    frame, edges = saved(name, "receipts"), saved(name, "edges")
    producer = "EB69xtJiLRh9RNzAHgBGmom8551hrK2xSRreqbjvJgu5"
    callback = "4Tc8MsrJZSMpNZx7u4jSqxr3WhRzqxaNHxLJFqz8tUPR"
    waits = dict(rows(frame, "receipt_id", "waits_for"))
    assert waits.pop(callback) == [producer]
    assert set(map(tuple, waits.values())) == {()}
    data = edges[edges["kind"] == "data"]
    data_id = "EiDQi54XHfdD1KEcgiNzogXxXuwTpzeQfmyqVwbq7H4D"
    assert rows(data, "parent_id", "child_id", "data_id") == [(producer, callback, data_id)]
    assert frame["subtree_gas"].tolist() == [30389027523632, 3568066327145, 0, 0, 6208280264404, 0]
    assert frame["on_critical_path"].tolist() == [True, True, False, False, True, True]
    refunded = "Refund 1 from dev-1623693121955-71667632531176 to serhii.testnet"
    assert list(frame["logs"].iloc[4]) == [refunded]


def test_a_local_receipt_is_rebuilt() -> None:
    """The receipt that the node left out is read from the transaction."""
    frame = saved("tx/local_receipt_omitted.json", "receipts")
    assert frame["is_local"].tolist() == [True, False]
    assert frame["args"].iloc[0]["request"]["receiver_id"] == "bowen"
    assert frame["gas_attached"].iloc[0] == 30 * 10**12


def test_a_plain_answer_says_what_it_lacks() -> None:
    """A result without receipts is a tree with a note."""
    found = lk.Trace.load(SAMPLES / "rpc/tx.response.json")
    assert len(found.notes) == 1
    assert "no receipt bodies" in found.notes[0]


@sample("rpc/tx.response.json")
def test_tx(server: Server) -> None:
    """The verb `tx` gives the node's own answer."""
    answer = lk.tx(TX_HASH, "sender.testnet")
    assert answer["final_execution_status"] == "FINAL"
    assert answer["transaction"]["nonce"] == 15
    assert server.calls[0]["method"] == "tx"
    assert server.calls[0]["params"] == {
        "tx_hash": TX_HASH,
        "sender_account_id": "sender.testnet",
        "wait_until": "FINAL",
    }


# Errors ---------------------------------------------------------------------------------


def refusal(kind: type[errors.LedgerError], ask: Any) -> dict[str, Any]:
    """Ask, and give the attributes of the error, which is of exactly that class."""
    with pytest.raises(kind) as caught:
        ask()
    assert type(caught.value) is kind
    assert caught.value.remedy in str(caught.value)
    return vars(caught.value)


@sample("errors/block_unknown_block.json")
def test_unknown_block(server: Server) -> None:
    """A block named only in the node's words is named by the error."""
    block_hash = "7DhZVpds3ntNCawMq9U1kGkMGjy6e6FGUf83tZBWPZm7"
    told = refusal(errors.UnknownBlockError, lambda: lk.block(block_hash))
    assert told == {
        "block": block_hash,
        "block_hash": block_hash,
        "request": f"block {block_hash}",
        "rpc_cause": "UNKNOWN_BLOCK",
    }
    assert len(server.requests) == 1


@sample("errors/block_unknown_block.json", status=422)
def test_unknown_block_with_a_failing_status(server: Server) -> None:
    """The body says what happened, whatever the status."""
    told = refusal(errors.UnknownBlockError, lambda: lk.block(140000000))
    assert told["rpc_cause"] == "UNKNOWN_BLOCK"
    assert len(server.requests) == 1


@sample("errors/query_unknown_block.json")
def test_unknown_block_of_a_query(server: Server) -> None:
    """The reference that was asked for comes back with the error."""
    told = refusal(errors.UnknownBlockError, lambda: lk.keys("alice.near", at=1))
    assert told == {
        "block": 1,
        "block_height": 1,
        "block_reference": {"block_id": 1},
        "request": "the keys of alice.near",
        "rpc_cause": "UNKNOWN_BLOCK",
    }
    assert server.calls[0]["params"]["block_id"] == 1


@sample("errors/query_unknown_account.json")
def test_unknown_account(server: Server) -> None:
    """An account that does not exist is named, with the block."""
    missing = "this-account-does-not-exist-12345678.near"
    told = refusal(errors.UnknownAccountError, lambda: lk.contract_state(missing))
    assert told == AT_172M | {
        "account_id": missing,
        "requested_account_id": missing,
        "request": f"the contract state of {missing}",
        "rpc_cause": "UNKNOWN_ACCOUNT",
    }
    assert len(server.requests) == 1


MISSING_KEY = "ed25519:HbcF7MfbaLv6EViPkS3pDELF5cfHDKV73JJR6TdYC5BV"


@sample("errors/query_access_key_missing_in_result.json")
def test_unknown_access_key(server: Server) -> None:
    """A failure inside a result is a failure, of the raw call too."""
    params = {
        "request_type": "view_access_key",
        "account_id": "alice.near",
        "public_key": MISSING_KEY,
        "finality": "final",
    }
    told = refusal(errors.UnknownAccessKeyError, lambda: client.current().rpc("query", params))
    assert told == AT_172M | {"public_key": MISSING_KEY, "request": "query"}
    assert len(server.requests) == 1


@sample("errors/query_method_not_found_in_result.json")
def test_method_not_found_in_a_contract(server: Server) -> None:
    """A contract without the method says so, at a block."""
    told = refusal(errors.ContractMethodNotFoundError, lambda: lk.view("a.near", "no_such"))
    assert told == AT_172M | {
        "reason": "MethodNotFound",
        "vm_error": "wasm execution failed with error: MethodResolveError(MethodNotFound)",
        "request": "no_such of a.near",
    }
    assert len(server.requests) == 1


@sample("errors/parse_error_invalid_account_id.json", status=400)
def test_parse_error(server: Server) -> None:
    """What the node could not read is quoted."""
    words = (
        'Failed parsing args: invalid value: "invalid..account", '
        "the Account ID has a redundant separator '.' at index 8"
    )
    told = refusal(errors.RequestParseError, lambda: client.current().rpc("query", {}))
    assert told["error_message"] == words
    assert told["rpc_cause"] == "PARSE_ERROR"
    assert len(server.requests) == 1


@sample("errors/rpc_method_not_found.json", status=400)
def test_no_such_rpc_method(server: Server) -> None:
    """A method that the node does not know is named."""
    name = "this_method_does_not_exist"
    told = refusal(errors.RpcMethodNotFoundError, lambda: client.current().rpc(name))
    assert (told["method_name"], told["rpc_cause"]) == (name, "METHOD_NOT_FOUND")
    assert server.calls[0]["method"] == name


@sample("errors/tx_timeout.json", status=408)
def test_transaction_timeout(server: Server) -> None:
    """A transaction that did not finish in time did not fail; the node is asked what it knows."""
    told = refusal(errors.TransactionTimeoutError, lambda: lk.trace(TX_HASH, "alice.near"))
    assert told["rpc_cause"] == "TIMEOUT_ERROR"
    assert told["cause_name"] is None
    levels = [call["params"]["wait_until"] for call in server.calls]
    assert levels == ["FINAL", "NONE"]


@sample("errors/broadcast_tx_commit_invalid_nonce.json")
def test_invalid_nonce(server: Server) -> None:
    """A refused transaction tells its variant, with the values as attributes."""
    ask = ("broadcast_tx_commit", ["c2lnbmVk"])
    told = refusal(chain_errors.InvalidNonceError, lambda: client.current().rpc(*ask))
    assert (told["tx_nonce"], told["ak_nonce"]) == (1, 60462377000000)
    assert (told["variant"], told["rpc_cause"]) == ("InvalidNonce", "INVALID_TRANSACTION")
    assert len(server.requests) == 1
