"""Redirects of block documents: which are followed, with what, and in what time."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit.api import services
from ledgerkit.errors import TransportError
from ledgerkit.transport.networks import ApiKey, Network
from ledgerkit.transport.settings import Settings
from tests.document_host import small_documents
from tests.loopback import Reply, as_json, serve

if TYPE_CHECKING:
    from collections.abc import Callable

HEIGHT = 151_768_255
KEY = "lk_planted_0123456789abcdef"
DOCUMENT = json.loads(small_documents([HEIGHT])[HEIGHT])


def connect(answer: Callable[[httpx.Request], httpx.Response], **options: Any) -> lk.Ledger:
    """Connect to mainnet, whose hosts are answered by a function."""
    transport = httpx.MockTransport(answer)
    retries = lk.RetryPolicy(attempts=1, total_s=20.0)
    return lk.connect(
        "mainnet", transport=transport, make_default=False, retries=retries, **options
    )


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
            response = ledger.send(services.block_document(HEIGHT))
        assert response is not None
        assert json.loads(response.body) == DOCUMENT
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
