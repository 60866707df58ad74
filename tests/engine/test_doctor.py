"""The check of a connection, over real HTTP servers and the real command line."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest

import ledgerkit as lk
from ledgerkit.api.models import chain
from ledgerkit.api.models import rest as rest_models
from ledgerkit.api.models import services as models
from ledgerkit.cli import main
from ledgerkit.errors import FileError, InvalidRequestError
from ledgerkit.transport.networks import PRESETS, SURFACES, Network
from ledgerkit.transport.settings import Settings
from ledgerkit.verbs.doctor import unknown_members
from tests.loopback import Reply, Server, as_json, result, serve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "wire"
recorded = pytest.mark.skipif(not SHARED.is_dir(), reason="the recordings are not here")
KEY = "lk_planted_0123456789abcdef"
HEIGHT = 151_768_275

# In the shape of the recordings, with a member that is not documented in some.
STATUS = {
    "version": {"version": "2.11.0", "build": "2.11.0", "commit": "9f2b", "rustc_version": "1.86"},
    "chain_id": "mainnet",
    "genesis_hash": "EPnLgE7iEq9s7yTkos96M3cWymH5avBAPm3qx3NXqR8H",
    "protocol_version": 86,
    "latest_protocol_version": 86,
    "rpc_addr": "0.0.0.0:3030",
    "validators": [{"account_id": "node0", "is_slashed": False}],
    "sync_info": {
        "latest_block_hash": "11111111111111111111111111111112",
        "latest_block_height": HEIGHT,
        "latest_block_time": "2025-06-24T10:00:00.000000000Z",
        "syncing": False,
        "moon_phase": "full",
    },
    "uptime_sec": 7,
    "horoscope": {},
}
HEADER = {
    "height": HEIGHT - 20,
    "hash": "11111111111111111111111111111112",
    "prev_hash": "11111111111111111111111111111113",
    "epoch_id": "11111111111111111111111111111114",
    "chunks_included": 0,
    "gas_price": "100000000",
    "total_supply": "1",
    "latest_protocol_version": 86,
}
TRANSFER = {
    "block_height": str(HEIGHT - 3),
    "block_timestamp": "1750000000000000000",
    "account_id": "root.near",
    "amount": "-1",
    "asset_id": "native:near",
}
ENTRY = {
    "block_height": 185_965_311,
    "block_timestamp": 1_771_000_000_000_000_000,
    "current_account_id": "contextual.near",
    "predecessor_id": "jemartel.near",
    "key": "account_id",
    "value": "a",
    "tx_hash": None,
}
ANSWERS: dict[str, Reply] = {
    "rpc": result(STATUS),
    "archival_rpc": result(STATUS),
    "api": as_json({"version": "0.10.0", "sync_block_height": HEIGHT - 2, "queue": 3}),
    "transactions": as_json({"blocks": [{"block_height": HEIGHT - 1, "protocol_version": 86}]}),
    "transfers": as_json({"transfers": [TRANSFER, TRANSFER], "resume_token": None}),
    "kv": as_json({"entries": [ENTRY]}),
    "blocks": as_json({"author": "a.near", "header": HEADER, "chunks": []}),
}


# The services of the embedded ledger, in the order of the report.
LOCAL_SERVICES = [s for s in ANSWERS if s not in ("rpc", "api") and PRESETS["local"].address(s)]  # type: ignore[arg-type]  # they are surfaces


def by_surface(answers: Mapping[str, Reply]) -> Any:
    """Answer each surface, which is the first part of the path."""

    def handler(_method: str, path: str, *_: object) -> Reply:
        return answers[path.split("/", 2)[1].partition("?")[0]]

    return handler


@contextmanager
def network(
    answers: Mapping[str, Reply] = ANSWERS, name: str = "mainnet", **options: Any
) -> Iterator[tuple[lk.Ledger, Server]]:
    with serve(by_surface(answers)) as server:
        urls = {f"{surface}_url": f"{server.url}/{surface}" for surface in SURFACES}
        settings = Settings(network=Network(name, **urls), **options)  # type: ignore[arg-type]  # by their names
        with lk.Ledger(settings) as ledger:
            yield ledger, server


def test_each_surface_is_a_row() -> None:
    """A row says which version, protocol and block a surface has, and what is new in it."""
    with network() as (ledger, server):
        frame = lk.doctor(ledger=ledger)
    assert frame["surface"].tolist() == list(ANSWERS)
    rows = frame.set_index("surface")
    assert rows["error"].isna().all()
    assert rows["message"].isna().all()
    assert (rows["latency_ms"] >= 0).all()
    assert rows["version"].dropna().to_dict() == {
        "rpc": "2.11.0",
        "archival_rpc": "2.11.0",
        "api": "0.10.0",
    }
    assert rows["protocol_version"].dropna().to_dict() == dict.fromkeys(
        ("rpc", "archival_rpc", "transactions", "blocks"), 86
    )
    assert rows["block_height"].dropna().to_dict() == {
        "rpc": HEIGHT,
        "archival_rpc": HEIGHT,
        "api": HEIGHT - 2,
        "transactions": HEIGHT - 1,
        "blocks": HEIGHT - 20,
    }
    new = {surface: names for surface, names in rows["unknown_members"].items() if names}
    assert new == {
        "rpc": ["sync_info.moon_phase", "horoscope"],
        "archival_rpc": ["sync_info.moon_phase", "horoscope"],
        "api": ["queue"],
    }
    host = server.url.removeprefix("http://")
    assert rows["host"].tolist() == [host] * len(SURFACES)
    assert not rows["has_key"].any()


def test_each_surface_is_asked_once() -> None:
    """The requests are the documented ones; a block is asked for that all hosts should have."""
    with network() as (ledger, server):
        lk.doctor(ledger=ledger)
    bodies = {request.path: request.json for request in server.requests if request.body}
    assert sorted(server.paths) == [
        "/api/status",
        "/archival_rpc",
        f"/blocks/v0/block/{HEIGHT - 20}/headers",
        "/kv/v0/latest/contextual.near/jemartel.near/account_id",
        "/rpc",
        "/transactions/v0/blocks",
        "/transfers/v0/transfers",
    ]
    assert bodies["/rpc"]["method"] == "status"
    assert bodies["/transactions/v0/blocks"] == {"limit": 1, "desc": True}
    assert bodies["/transfers/v0/transfers"] == {
        "account_id": "root.near",
        "direction": "receiver",
        "limit": 1,
        "desc": True,
    }


@pytest.mark.parametrize("status", [503, 429, 408])
def test_a_failing_surface_stops_no_other(status: int) -> None:
    """A refusal is the row of its surface, asked once; the others are asked all the same."""
    answers = {**ANSWERS, "rpc": Reply(status, b"not now")}
    with network(answers) as (ledger, server):
        frame = lk.doctor(ledger=ledger).set_index("surface")
    kind = "RateLimitedError" if status == 429 else "TransportError"
    assert frame["error"].dropna().to_dict() == {"rpc": kind}
    assert f"HTTP {status} in response to the status: not now" in frame["message"]["rpc"]
    assert frame["block_height"]["blocks"] == HEIGHT - 20
    assert server.paths.count("/rpc") == 1


def test_dead_hosts_are_rows_with_their_error() -> None:
    """Where nobody listens each surface has its own row, and block documents are asked too."""
    with create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    urls = {f"{surface}_url": url for surface in SURFACES}
    with lk.Ledger(Settings(network=Network("lab", **urls))) as ledger:  # type: ignore[arg-type]  # by their names
        frame = lk.doctor(ledger=ledger)
    assert set(frame["surface"]) == set(SURFACES)
    assert set(frame["error"]) == {"TransportError"}
    assert frame["latency_ms"].isna().all()
    assert all("Check the connection" in message for message in frame["message"])


def test_without_a_height_block_documents_are_asked_for_their_health() -> None:
    """If no other surface names a block, an unhealthy service is told all the same."""
    down = {surface: Reply(503) for surface in ANSWERS} | {
        "blocks": as_json({"status": "unhealthy"})
    }
    with network(down) as (ledger, server):
        frame = lk.doctor(ledger=ledger).set_index("surface")
    assert "/blocks/health" in server.paths
    assert frame["error"]["blocks"] == "NodeNotReadyError"
    assert frame["message"]["blocks"].startswith("the service reports that it is unhealthy. ")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            {"chain_id": "testnet"},
            "InvalidRequestError",
            "the node is one of testnet, not of mainnet. Pass connect() the rpc_url= of a node",
        ),
        (
            {"sync_info": {**STATUS["sync_info"], "syncing": True}},  # type: ignore[dict-item]  # a dict of any values
            "NodeNotReadyError",
            "the node is still catching up with the chain. Try again in a few seconds",
        ),
        ({"version": None}, "DecodeError", "the response to the status is not as documented"),
    ],
    ids=["chain", "syncing", "shape"],
)
def test_an_answer_that_is_of_no_use_is_an_error(
    change: dict[str, Any], error: str, words: str
) -> None:
    """A node of another chain, one that is behind, or another form is not a healthy node."""
    with network({**ANSWERS, "rpc": result({**STATUS, **change})}) as (ledger, _):
        frame = lk.doctor(ledger=ledger).set_index("surface")
    assert frame["error"].dropna().to_dict() == {"rpc": error}
    assert words in frame["message"]["rpc"]


def test_services_of_a_custom_network_are_checked() -> None:
    """Each service whose address was passed is a row, also where there is no node."""
    rows = [{"block_height": HEIGHT, "protocol_version": 86}]
    with serve(by_surface({**ANSWERS, "transactions": as_json({"blocks": rows})})) as server:
        services = ("transactions", "transfers", "kv", "blocks")
        urls: dict[str, Any] = {f"{s}_url": f"{server.url}/{s}" for s in services}
        with lk.connect("lab", make_default=False, **urls) as ledger:
            frame = lk.doctor(ledger=ledger)
    assert frame["surface"].tolist() == list(services)
    assert frame["error"].isna().all()


# The file --------------------------------------------------------------------------------


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """A missing folder is a typed error that names the file; a bad path sends nothing."""
    with network() as (ledger, server):
        with pytest.raises(FileError, match=r"Could not write .*report\.lk: No such file"):
            lk.doctor(save=tmp_path / "no" / "report.lk", ledger=ledger)
        n_requests = len(server.requests)
        with pytest.raises(InvalidRequestError, match="save 7 is not valid"):
            lk.doctor(save=7, ledger=ledger)  # type: ignore[arg-type]  # refused
        assert len(server.requests) == n_requests


# Unknown members -------------------------------------------------------------------------


class Leaf(msgspec.Struct):
    """A leaf."""

    n: int
    free: Any = None


class Tree(msgspec.Struct, rename="pascal"):
    """A tree."""

    leaves: list[Leaf] | None
    by_name: dict[str, Leaf | None] = {}


def test_unknown_members_of_a_nested_document() -> None:
    """New members are found at any depth, each path once, and never inside of `Any`."""
    document = {
        "Leaves": [{"n": 1, "x": 0}, {"n": 2, "x": 1, "free": {"y": 1}}],
        "ByName": {"a": {"n": 1, "z": 2}, "b": None},
        "leaves": [],
    }
    names = unknown_members(document, Tree | None)
    assert names == ["Leaves[].x", "ByName.*.z", "leaves"]
    assert unknown_members(None, Tree | None) == []


def test_a_hostile_name_is_one_short_line() -> None:
    """A member's name is another's text: it is cut, and breaks no line."""
    [name] = unknown_members({"a\nb" * 1000: 1}, rest_models.Health | None)[-1:]
    assert len(name) <= 64
    assert name.isprintable()


@recorded
def test_recorded_answers_have_no_unknown_members() -> None:
    """The models have every member of what the services really sent."""

    def document(name: str) -> Any:
        answer = json.loads((SHARED / name).read_bytes())
        return answer["result"] if "jsonrpc" in answer else answer

    blocks = ("neardata_mainnet_151768255", "neardata_testnet_232952651")
    documents = [
        (document("samples/rpc/status.json"), models.NodeStatus),
        (document("samples/rest/status.json"), rest_models.IndexerStatus),
        (document("history/transfers/v2026-01_shitzu_dao_two_rows.json"), models.Transfers),
        (document("history/transfers/v2026-06_row_ft_petersalomonsen.json"), models.TransferRow),
        *((document(f"samples/blocks/{n}.json")["block"], chain.Block) for n in blocks),
    ]
    for value, model in documents:
        msgspec.convert(value, model)
        assert unknown_members(value, model) == []


# The command line ------------------------------------------------------------------------


def test_the_command_passes_on_the_embedded_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ledgerkit doctor` exits with 0 and prints an aligned line for each surface."""
    report = tmp_path / "report.lk"
    assert main(["doctor", "--network", "local", "--save", str(report)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    head, rpc, api, *services, empty, limits = out.splitlines()
    assert head.split() == ["surface", "host", "ms", "proto", "block", "status"]
    assert re.fullmatch(r"rpc +embedded ledger +\d+ +86 +\d+ +ok", rpc)
    assert re.fullmatch(r"api +embedded ledger +\d+ +\d+ +ok", api)
    assert [line.split()[0] for line in services] == LOCAL_SERVICES
    assert all(line.endswith(" ok") for line in services)
    assert (empty, limits) == ("", "limits: no rate limit")
    assert len(lk.read_recording(report)) == 2 + len(LOCAL_SERVICES)


def test_the_command_tells_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """A dead host is one line with a remedy, and exit code 4; new members are listed."""
    with create_server(("127.0.0.1", 0)) as closed:
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with serve(lambda *_: ANSWERS["api"]) as server:
        code = main(["doctor", "--network", "lab", "--rpc-url", dead, "--api-url", server.url])
    out, err = capsys.readouterr()
    assert code == 4
    assert "api: ledgerkit does not know queue" in out.splitlines()
    [line] = err.splitlines()
    assert line.startswith("ledgerkit: rpc: the request to 127.0.0.1 for the status failed: ")
    assert line.endswith("Check the connection and the address of the host, then try again.")


def test_the_report_fits_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines about mainnet, whose hosts have long names, have at most 80 characters."""
    transport = httpx.MockTransport(_nobody)
    with lk.connect("mainnet", transport=transport) as ledger:
        frame = lk.doctor(ledger=ledger)
    frame["latency_ms"], frame["protocol_version"], frame["block_height"] = 19_999, 86, 218_000_000
    monkeypatch.setattr("ledgerkit.verbs.doctor.doctor", lambda **_: frame)
    assert main(["doctor", "--network", "mainnet"]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    [archival] = [line.split() for line in lines if "archival-rpc" in line]
    host = "archival-rpc.mainnet.fastnear.com"
    assert archival == ["archival_rpc", host, "19999", "86", "218000000", "failed"]


def _nobody(_request: httpx.Request) -> httpx.Response:
    """Answer nothing of use, for hosts that only the public network has."""
    return httpx.Response(503)


def test_the_limits_say_what_a_key_changes() -> None:
    """The frame names the limits that hold, and those with a key."""
    with lk.connect("mainnet", transport=httpx.MockTransport(_nobody)) as ledger:
        frame = lk.doctor(ledger=ledger).set_index("surface")
    assert frame["per_minute"].to_dict() == {
        **dict.fromkeys(("rpc", "archival_rpc", "api", "transactions", "transfers", "kv"), 50),
        "blocks": 180,
    }
    with lk.connect("testnet", transport=httpx.MockTransport(_nobody), api_key=KEY) as ledger:
        frame = lk.doctor(ledger=ledger)
    assert frame["per_minute"].tolist() == [10_000] * 6
    assert "transfers" not in set(frame["surface"])
