"""Block documents as a client reads them: redirects, skipped heights, an account's balances."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit.api import calls, services
from ledgerkit.block_data.headers import Skipped
from ledgerkit.block_data.reading import read_document
from ledgerkit.block_data.updates import AccountUpdate, account_updates
from ledgerkit.errors import DecodeError, TransportError
from ledgerkit.transport.networks import ApiKey, Network
from ledgerkit.transport.settings import Settings
from tests.loopback import Reply, as_json, serve

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDED = Path(__file__).parents[3] / "shared/wire/samples/blocks/neardata_mainnet_151768255.json"
HEIGHT = 151_768_255
KEY = "lk_planted_0123456789abcdef"
HEADER = {
    "height": HEIGHT,
    "hash": "11111111111111111111111111111112",
    "prev_hash": "11111111111111111111111111111113",
    "epoch_id": "11111111111111111111111111111114",
    "chunks_included": 0,
    "gas_price": "100000000",
    "total_supply": "1",
}
DOCUMENT = {"block": {"author": "a.near", "header": HEADER, "chunks": []}, "shards": []}


def connect(answer: Callable[[httpx.Request], httpx.Response], **options: Any) -> lk.Ledger:
    """Connect to mainnet, whose hosts are answered by a function."""
    transport = httpx.MockTransport(answer)
    retries = lk.RetryPolicy(attempts=1, total_s=20.0)
    return lk.connect(
        "mainnet", transport=transport, make_default=False, retries=retries, **options
    )


@pytest.mark.parametrize("key_in", ["header", "query"])
def test_a_redirect_to_an_archive_is_followed_with_the_key(key_in: Any) -> None:
    """Old heights are redirected to a host of archives; the key is sent there too, once."""
    # Source: fastnear/neardata-server, src/api.rs: https://a{index}.{domain_name}/v0/block/{height}
    # and the query string of the request.
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        if request.url.host == "mainnet.neardata.xyz":
            place = f"https://a0.mainnet.neardata.xyz{request.url.raw_path.decode()}"
            return httpx.Response(302, headers={"location": place})
        return httpx.Response(200, json=DOCUMENT)

    with connect(answer, api_key=KEY, key_in=key_in) as ledger:
        body = ledger.send(services.block_document(HEIGHT))
    assert body is not None
    assert json.loads(body) == DOCUMENT
    hosts = ["mainnet.neardata.xyz", "a0.mainnet.neardata.xyz"]
    assert [request.url.host for request in requests] == hosts
    in_header = {"authorization": f"Bearer {KEY}"} if key_in == "header" else {}
    in_query = [("apiKey", KEY)] if key_in == "query" else []
    for request in requests:
        assert request.url.path == f"/v0/block/{HEIGHT}"
        assert request.url.params.multi_items() == in_query
        assert request.headers.get("authorization") == in_header.get("authorization")


@pytest.mark.parametrize(
    "place",
    [
        "https://mainnet.neardata.xyz.example/v0/block/7",
        "https://neardata.xyz/v0/block/7",
        "https://evilmainnet.neardata.xyz/v0/block/7",
        "https://testnet.neardata.xyz/v0/block/7",
        "http://a0.mainnet.neardata.xyz/v0/block/7",
        "https://a0.mainnet.neardata.xyz:8443/v0/block/7",
        "https://me:you@a0.mainnet.neardata.xyz/v0/block/7",
        "//evil.example/v0/block/7",
        "https://[bad/v0/block/7",
    ],
)
def test_no_redirect_leads_to_another_service(place: str) -> None:
    """A redirect to a host, port or scheme that is not the service's own is an error."""
    requests = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request.url.host)
        return httpx.Response(302, headers={"location": place})

    reason = r"redirects the request for .* \(HTTP 302\)"
    with connect(answer, api_key=KEY) as ledger, pytest.raises(TransportError, match=reason):
        ledger.send(services.block_document(7))
    assert requests == ["mainnet.neardata.xyz"]


@pytest.mark.parametrize("surface", ["api", "transactions"])
def test_other_services_are_not_followed(surface: Any) -> None:
    """Only the block documents redirect; elsewhere a redirect is an error."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(302, headers={"location": str(request.url)})

    with connect(answer) as ledger:
        call = calls.get("/v0/x", dict, request="it", surface=surface)
        with pytest.raises(TransportError, match="redirects the request for it"):
            ledger.send(call)


def test_redirects_end() -> None:
    """A service that redirects in circles is left after five redirects."""
    requests = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request.url.host)
        return httpx.Response(302, headers={"location": "/v0/block/7"})

    reason = "redirects the document of block 7 too often"
    with connect(answer) as ledger, pytest.raises(TransportError, match=reason):
        ledger.send(services.block_document(7))
    assert len(requests) == 6


def test_redirects_over_real_connections(way: dict[str, Any]) -> None:
    """On each way to a host a redirect within it is followed, with the key in the query."""

    def answer(_method: str, path: str, *_: object) -> Reply:
        if path.startswith("/blocks/v0"):
            return Reply(302, headers={"location": path.replace("/blocks", "/blocks/archive", 1)})
        return as_json(DOCUMENT)

    with serve(answer) as server:
        network = Network("lab", None, None, None, blocks_url=f"{server.url}/blocks")
        settings = Settings(network=network, key=ApiKey(KEY), key_in="query", **way)
        with lk.Ledger(settings) as ledger:
            body = ledger.send(services.block_document(HEIGHT))
        assert body is not None
        assert json.loads(body) == DOCUMENT
    query = f"?apiKey={KEY}"
    path = f"/v0/block/{HEIGHT}{query}"
    assert server.paths == [f"/blocks{path}", f"/blocks/archive{path}"]


def test_the_steps_of_a_redirect_share_one_timeout() -> None:
    """The second step has the time that the first one left."""
    timeouts: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        timeouts.append(request.extensions["timeout"]["connect"])
        if len(timeouts) == 1:
            time.sleep(0.05)
            return httpx.Response(302, headers={"location": "/v0/block/7"})
        return httpx.Response(200, json=DOCUMENT)

    with connect(answer, timeout_s=15.0) as ledger:
        ledger.send(services.block_document(HEIGHT))
    assert len(timeouts) == 2
    assert timeouts[1] + 0.04 <= timeouts[0] <= 15.0  # nine tenths are for connecting


def test_each_step_of_a_redirect_takes_a_place_in_the_rate() -> None:
    """A redirect is not followed unless the rate has a place for it in time."""
    requests = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request.url.host)
        return httpx.Response(302, headers={"location": "/v0/block/7"})

    reason = "failed: no time was left"
    with connect(answer, rate=0.01) as ledger, pytest.raises(TransportError, match=reason):
        ledger.send(services.block_document(HEIGHT))
    assert requests == ["mainnet.neardata.xyz"]


# Heights without a block -----------------------------------------------------------------


def skipping(headers: dict[int, Any]) -> Callable[[httpx.Request], httpx.Response]:
    """Answer with the headers of some heights, and with null for all others."""

    def answer(request: httpx.Request) -> httpx.Response:
        at = request.url.path.split("/")[3]
        height = max(headers) if at == "final" else int(at)
        return httpx.Response(200, content=json.dumps(headers.get(height)))

    return answer


def header(height: int, prev_height: int) -> Any:
    """Build the headers of a block."""
    members = {**HEADER, "height": height, "prev_height": prev_height}
    return {"author": "a.near", "header": members, "chunks": []}


def test_a_skipped_height_is_confirmed_by_the_next_block() -> None:
    """The service sends null for a height whose next block follows on an earlier one."""
    with connect(skipping({12: header(12, 9)})) as ledger:
        assert read_document(ledger, 10) == Skipped(9)
        assert account_updates(ledger, 10, "a.near") == []


def test_a_null_for_a_block_that_exists_is_an_error() -> None:
    """A null may be cached for a day at the head: the next block shows that it is wrong."""
    reason = r"no block 10, but block 11 .* block is 10"
    answer = skipping({11: header(11, 10)})
    with connect(answer) as ledger, pytest.raises(TransportError, match=reason):
        read_document(ledger, 10)


# The balances of an account --------------------------------------------------------------


def test_the_recorded_balances_of_an_account() -> None:
    """Each receipt and the reward of its gas give one line, in the order in which they ran."""
    if not RECORDED.exists():
        pytest.skip("the recorded blocks are not here")
    body = RECORDED.read_bytes()
    with connect(lambda _: httpx.Response(200, content=body)) as ledger:
        updates = account_updates(ledger, HEIGHT, "claim.sweat")
    first = "6GwByS9AqPEcSd9xM1cFLZgkLoUFGk6SGoPYbDQBKb72"
    second = "9TFZfnyxaQmQBfwkgH3vyfh6YeNYfQK6SWkpnbCcsvHm"
    run, reward, size = "receipt_processing", "action_receipt_gas_reward", 1_212_176_258
    assert updates == [
        (17_239_009_363_134_201_388_471_219_874, 0, size, run, first),
        (17_239_010_502_969_721_781_271_219_874, 0, size, reward, first),
        (17_239_010_502_969_721_781_271_219_874, 0, size, run, second),
        (17_239_011_608_246_341_099_971_219_874, 0, size, reward, second),
    ]


def test_a_deleted_account_has_nothing_left() -> None:
    """The deletion of an account has no balances: they are 0."""
    cause = {"type": "receipt_processing", "receipt_hash": "1" * 32}
    change = {"account_id": "a.near"}
    deletion = {"type": "account_deletion", "cause": cause, "change": change}
    with connect(lambda _: httpx.Response(200, json=with_changes(deletion))) as ledger:
        updates = account_updates(ledger, HEIGHT, "a.near")
    assert updates == [AccountUpdate(0, 0, 0, "receipt_processing", "1" * 32)]


@pytest.mark.parametrize("members", [{}, {"amount": "1", "locked": "-2", "storage_usage": 3}])
def test_an_update_without_a_balance_is_refused(members: dict[str, Any]) -> None:
    """An account_update lists both balances; another form is no known document."""
    change = {"account_id": "a.near", **members}
    cause = {"type": "validator_accounts_update"}
    document = with_changes({"type": "account_update", "cause": cause, "change": change})
    reason = r"\$\.shards\[\]\.state_changes"
    with (
        connect(lambda _: httpx.Response(200, json=document)) as ledger,
        pytest.raises(DecodeError, match=reason),
    ):
        account_updates(ledger, HEIGHT, "a.near")


def with_changes(*changes: Any) -> Any:
    """Build a document of one shard with changes of state."""
    executed = {"receipt_execution_outcomes": [], "state_changes": changes}
    shard = {"shard_id": 0, "chunk": None, **executed}
    return {**DOCUMENT, "shards": [shard]}
