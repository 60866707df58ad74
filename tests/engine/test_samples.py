"""Recorded answers, over a real HTTP server, through the public API to frames and errors."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import client, errors
from ledgerkit.api import chain_errors
from ledgerkit.verbs import saved_responses
from tests.loopback import Reply, Server, asking

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
    return lk.read_response(SAMPLES / name, view)


def rows(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """List the values of some columns by row, whatever is missing as None."""
    return list(zip(*(plain(frame[column]) for column in columns), strict=True))


def plain(column: pd.Series) -> list[Any]:
    """List the values of a column: None for each of pandas' ways to miss one, times as integers."""
    values = column.astype("int64").tolist() if column.dtype.kind == "M" else column.tolist()
    return [None if one is pd.NA or one != one else one for one in values]  # noqa: PLR0124 - NaN


def test_no_recording_is_forgotten() -> None:
    """Every recorded answer has a test that reads it."""
    found = {path.relative_to(SAMPLES).as_posix() for path in SAMPLES.rglob("*.json")}
    answers = {name for name in found if not name.startswith(ELSEWHERE)}
    assert {name for name in answers if not name.endswith(".request.json")} == TAKEN


# By recording: the views that read it, each with its number of rows. All others refuse it.
VIEWS = {
    "rest/health.json": "",
    "rest/status.json": "",
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

POOLS = ["zavodil.poolv1.near", "usn.pool.near", "usn-unofficial.pool.near", "epic.poolv1.near"]
POOLS.append("here.poolv1.near")
CHUNK_HASH = "EBM2qg5cGr47EjMPtH88uvmXHDHqmWPzKaQadbWhdw22"
CHANGED_KEY = "ed25519:25KEc7t7MQohAJ4EDThd2vkksKkwangnuJFzcoiXj9oM"
CHANGED = "example-acct.testnet"
CHANGES = "single_access_key_changes"


class Read(NamedTuple):
    """How a recording is read, as which view, what is sent, and what some columns hold."""

    verb: Callable[[], pd.DataFrame]
    view: str
    sent: Any  # the path, or the parameters of the call
    columns: dict[str, list[Any]] = {}  # noqa: RUF012 - never changed


READS: list[tuple[str, Read]] = [
    (
        "rest/v0_public_key_root.near.json",
        Read(
            lambda: lk.accounts_of(KEY),
            "accounts_of",
            f"/v1/public_key/{KEY.replace(':', '%3A')}",
            {"public_key": [KEY] * 2, "is_primary": [True, False]},
        ),
    ),
    (
        "rest/v1_account_ft_here.tg.json",
        Read(
            lambda: lk.ft("here.tg"),
            "ft",
            "/v1/account/here.tg/ft",
            {
                "contract_id": ["game.hot.tg", "usdt.tether-token.near"],
                "balance": [10000, 81000],
                "last_update_block_height": [115615375, None],
                "status": ["ok"] * 2,
            },
        ),
    ),
    (
        "rest/v1_account_nft_sharddog.near.json",
        Read(lambda: lk.nft("sharddog.near"), "nft", "/v1/account/sharddog.near/nft"),
    ),
    (
        "rest/v1_account_staking_mob.near.json",
        Read(
            lambda: lk.staking("mob.near"),
            "staking",
            "/v1/account/mob.near/staking",
            {"last_update_block_height": [114976469, None, None, None, 114976560]},
        ),
    ),
    (
        "rest/v1_ft_top_first.tkn.near.json",
        Read(lambda: lk.top_holders("first.tkn.near"), "top_holders", "/v1/ft/first.tkn.near/top"),
    ),
    (
        "rpc/block.json",
        Read(
            lk.block,
            "blocks",
            {"finality": "final"},
            {
                "time": [1601280114229875635],
                "prev_height": [None],  # old nodes do not send it
                "last_final_block": ["AaxTqjYND5WAKbV2UZaFed6DH1DShN9fEemtnpTsv3eR"],
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
            {"author": [None], "n_receipts": [None], "block_height": [17821130], "is_new": [True]},
        ),
    ),
    (
        "rpc/chunk.json",
        Read(
            lambda: lk.chunks(chunk_id=CHUNK_HASH),
            "chunks",
            {"chunk_id": CHUNK_HASH},
            {"author": ["bitcat.pool.f863973.m0"], "block_height": [None], "is_new": [None]},
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
                "latest_block_time": [1601251178008063088],
                "earliest_block_height": [None],
                "n_validators": [41],
            },
        ),
    ),
    (
        "rpc/EXPERIMENTAL_changes_single_access_key.json",
        Read(
            lambda: lk.changes(CHANGED, CHANGES, public_key=CHANGED_KEY),
            "changes",
            {
                "changes_type": CHANGES,
                "keys": [{"account_id": CHANGED, "public_key": CHANGED_KEY}],
                "finality": "final",
            },
            {"cause": ["transaction_processing"], "account_id": [CHANGED]},
        ),
    ),
    (
        "rpc/query_view_state_with_proof.json",
        Read(
            lambda: lk.contract_state("guest-book.testnet", b"m:"),
            "state",
            {
                "request_type": "view_state",
                "account_id": "guest-book.testnet",
                "prefix_base64": "bTo=",
                "finality": "final",
            },
        ),
    ),
]
TAKEN.update(name for name, _ in READS)


def test_frames_of_recordings(subtests: pytest.Subtests) -> None:
    """A verb and `read` give equal frames; values are exact, and what is absent is missing."""
    for name, (verb, view, sent, columns) in READS:
        with subtests.test(name=name, view=view):
            with serving(name) as server:
                frame = verb()
            assert {column: plain(frame[column]) for column in columns} == columns
            assert sent in (server.paths[0], *(call["params"] for call in server.calls))
            pd.testing.assert_frame_equal(saved(name, view), frame)


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


RECEIPT_ID = "2EbembRPJhREPtmHCrGv3Xtdm3xoc5BMVYHm3b2kjvMY"
RAW = [
    ("rpc/query_view_access_key.json", "query", {"request_type": "view_access_key"}),
    ("rpc/query_view_account.json", "query", {"request_type": "view_account"}),
    ("rpc/query_call_function_number.json", "query", {"request_type": "call_function"}),
    ("rpc/EXPERIMENTAL_receipt.json", "EXPERIMENTAL_receipt", {"receipt_id": RECEIPT_ID}),
    ("rpc/broadcast_tx_async.response.json", "broadcast_tx_async", ["c2lnbmVk"]),
]
TAKEN.update(name for name, *_ in RAW)


@pytest.mark.parametrize(("name", "method", "params"), RAW)
def test_raw_results(name: str, method: str, params: Any) -> None:
    """A raw call gives the decoded result, amounts as the texts they are."""
    with serving(name) as server:
        result = client.current().rpc(method, params)
    assert result == json.loads((SAMPLES / name).read_bytes())["result"]
    assert (server.calls[0]["method"], server.calls[0]["params"]) == (method, params)


TAKEN.update(("rest/health.json", "rest/status.json"))


@pytest.mark.parametrize("path", ["/health", "/status"])
def test_raw_paths(path: str) -> None:
    """A raw request of the REST API gives the decoded body."""
    with serving(f"rest{path}.json") as server:
        body = client.current().get(path)
    assert body == json.loads((SAMPLES / f"rest{path}.json").read_bytes())
    assert server.paths == [path]


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
TAKEN.update(("tx/ft_transfer_success.json", "tx/local_receipt_omitted.json"))
TAKEN.add("txapi/delegate_small.json")


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


# Errors ---------------------------------------------------------------------------------


def refusal(kind: type[errors.LedgerError], ask: Any) -> dict[str, Any]:
    """Ask, and give the attributes of the error, which is of exactly that class."""
    with pytest.raises(kind) as caught:
        ask()
    assert type(caught.value) is kind
    assert caught.value.remedy in str(caught.value)
    return vars(caught.value)


MISSING = "this-account-does-not-exist-12345678.near"
MISSING_KEY = "ed25519:HbcF7MfbaLv6EViPkS3pDELF5cfHDKV73JJR6TdYC5BV"
NO_BLOCK = "7DhZVpds3ntNCawMq9U1kGkMGjy6e6FGUf83tZBWPZm7"
PARSED = (
    'Failed parsing args: invalid value: "invalid..account", '
    "the Account ID has a redundant separator '.' at index 8"
)
REFUSALS: list[tuple[str, int, type[errors.LedgerError], Callable[[], Any], dict[str, Any]]] = [
    (
        "block_unknown_block",
        200,
        errors.UnknownBlockError,
        lambda: lk.block(NO_BLOCK),  # named only in the node's words
        {"block_hash": NO_BLOCK, "request": f"block {NO_BLOCK}", "rpc_cause": "UNKNOWN_BLOCK"},
    ),
    (
        "block_unknown_block",
        422,  # the body says what happened, whatever the status
        errors.UnknownBlockError,
        lambda: lk.block(140000000),
        {"rpc_cause": "UNKNOWN_BLOCK"},
    ),
    (
        "query_unknown_block",
        200,
        errors.UnknownBlockError,
        lambda: lk.keys("alice.near", at=1),
        {"block": 1, "block_height": 1, "block_reference": {"block_id": 1}},
    ),
    (
        "query_unknown_account",
        200,
        errors.UnknownAccountError,
        lambda: lk.contract_state(MISSING),
        AT_172M | {"account_id": MISSING, "requested_account_id": MISSING},
    ),
    (
        "query_access_key_missing_in_result",
        200,
        errors.UnknownAccessKeyError,
        lambda: client.current().rpc("query", {"public_key": MISSING_KEY}),
        AT_172M | {"public_key": MISSING_KEY, "request": "query"},
    ),
    (
        "query_method_not_found_in_result",
        200,
        errors.ContractMethodNotFoundError,
        lambda: lk.view("a.near", "no_such"),
        AT_172M | {"reason": "MethodNotFound", "request": "no_such of a.near"},
    ),
    (
        "parse_error_invalid_account_id",
        400,
        errors.RequestParseError,
        lambda: client.current().rpc("query", {}),
        {"error_message": PARSED, "rpc_cause": "PARSE_ERROR"},
    ),
    (
        "rpc_method_not_found",
        400,
        errors.RpcMethodNotFoundError,
        lambda: client.current().rpc("this_method_does_not_exist"),
        {"method_name": "this_method_does_not_exist", "rpc_cause": "METHOD_NOT_FOUND"},
    ),
    (
        "broadcast_tx_commit_invalid_nonce",
        200,
        chain_errors.InvalidNonceError,
        lambda: client.current().rpc("broadcast_tx_commit", ["c2lnbmVk"]),
        {
            "tx_nonce": 1,
            "ak_nonce": 60462377000000,
            "variant": "InvalidNonce",
            "rpc_cause": "INVALID_TRANSACTION",
        },
    ),
]
TAKEN.update(f"errors/{name}.json" for name, *_ in REFUSALS)


@pytest.mark.parametrize(("name", "status", "kind", "ask", "told"), REFUSALS)
def test_recorded_errors(
    name: str,
    status: int,
    kind: type[errors.LedgerError],
    ask: Callable[[], Any],
    told: dict[str, Any],
) -> None:
    """A recorded error has its class, and what it names as attributes."""
    with serving(f"errors/{name}.json", status):
        assert refusal(kind, ask).items() >= told.items()


@sample("errors/tx_timeout.json", status=408)
def test_transaction_timeout(server: Server) -> None:
    """A transaction that did not finish in time did not fail; the node is asked what it knows."""
    told = refusal(errors.TransactionTimeoutError, lambda: lk.trace(TX_HASH, "alice.near"))
    assert told["rpc_cause"] == "TIMEOUT_ERROR"
    assert told["cause_name"] is None
    levels = [call["params"].get("wait_until") for call in server.calls]
    assert levels[:2] == ["FINAL", "NONE"]
    assert levels[2:] in ([], [None])  # perhaps the hash is that of a receipt
