"""Where the services are, and where an API key may and may not go."""

from __future__ import annotations

import json
import pickle
import socket
from typing import Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.transport import networks

pytestmark = pytest.mark.usefixtures("no_session_left")

KEY = "PLANTED-key-0123456789"
OWN = "https://rpc.example.com"
SERVICES = ("transactions_url", "transfers_url", "blocks_url", "kv_url")
URLS = ("rpc_url", "api_url", "archival_rpc_url", *SERVICES)
UNTYPED: Any = lk  # as whoever calls it without a type checker


def sent(network: str | None = None, **options: str) -> list[httpx.Request]:
    """Connect, ask both surfaces once, and give the requests that were made."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        if request.method != "POST":
            return httpx.Response(200, json={"status": "ok"})
        result = {"result": {"gas_price": "1"}, "id": json.loads(request.content)["id"]}
        return httpx.Response(200, json=result)

    ledger = UNTYPED.connect(network, transport=httpx.MockTransport(answer), **options)
    with ledger:
        ledger.get("/health")
        lk.gas_price()
    return requests


# Addresses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rpc", "archival", "api"),
    [
        (
            "mainnet",
            "https://rpc.mainnet.fastnear.com",
            "https://archival-rpc.mainnet.fastnear.com",
            "https://api.fastnear.com",
        ),
        (
            "testnet",
            "https://rpc.testnet.fastnear.com",
            "https://archival-rpc.testnet.fastnear.com",
            "https://test.api.fastnear.com",
        ),
    ],
)
def test_presets(name: str, rpc: str, archival: str, api: str) -> None:
    """The presets know all three addresses and some liquid tokens."""
    found = networks.resolve(name)
    assert [found.address(s) for s in ("rpc", "archival_rpc", "api")] == [rpc, archival, api]
    assert len(found.liquid_tokens) > 0
    host = rpc.removeprefix("https://")
    assert repr(found).startswith(f"<Network {name}: ")
    assert host in repr(found)


def test_an_address_of_ones_own() -> None:
    """Addresses of one's own make a network of any name; nothing else is assumed."""
    found = networks.resolve("lab", rpc_url=OWN + "/", api_url="http://127.0.0.1:3000")
    assert found == networks.Network("lab", OWN, None, "http://127.0.0.1:3000")
    assert (found.transactions_url, found.liquid_tokens) == (None, ())
    assert networks.resolve(None, rpc_url=OWN).name == "custom"
    assert networks.resolve(None, rpc_url=OWN).api_url is None


def test_a_preset_with_an_address_of_ones_own() -> None:
    """One address replaced keeps the others, but not another operator's archive."""
    found = networks.resolve("mainnet", rpc_url=OWN)
    assert (found.rpc_url, found.archival_rpc_url) == (OWN, None)
    assert found.api_url == "https://api.fastnear.com"
    assert (found.transactions_url, found.blocks_url) == (None, None)
    archive = networks.resolve("mainnet", archival_rpc_url=OWN)
    assert archive.blocks_url == "https://mainnet.neardata.xyz"
    assert archive.rpc_url == "https://rpc.mainnet.fastnear.com"
    assert archive.archival_rpc_url == OWN


def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables stand in for arguments; an argument wins, an empty variable is none."""
    monkeypatch.setenv("LEDGERKIT_NETWORK", "testnet")
    assert networks.resolve(None).rpc_url == "https://rpc.testnet.fastnear.com"
    assert networks.resolve("mainnet").rpc_url == "https://rpc.mainnet.fastnear.com"
    monkeypatch.setenv("LEDGERKIT_RPC_URL", OWN)
    monkeypatch.setenv("LEDGERKIT_API_URL", "https://api.example.com")
    found = networks.resolve(None)
    assert (found.name, found.rpc_url, found.api_url) == ("testnet", OWN, "https://api.example.com")
    assert (
        networks.resolve(None, rpc_url="https://x.example.com").rpc_url == "https://x.example.com"
    )
    for name in ("NETWORK", "RPC_URL", "API_URL"):
        monkeypatch.setenv(f"LEDGERKIT_{name}", "")
    assert networks.resolve(None) is networks.PRESETS["local"]


@pytest.mark.parametrize("field", SERVICES)
def test_a_service_at_an_address_of_ones_own(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service has the address that was passed, or of the environment; the others stay."""
    own: Any = {field: OWN}
    found = networks.resolve("mainnet", **own)
    preset = networks.PRESETS["mainnet"]
    for url in URLS:
        assert getattr(found, url) == (OWN if url == field else getattr(preset, url))
    lab = networks.resolve("lab", **own)
    assert {url for url in URLS if getattr(lab, url)} == {field}
    beside = networks.resolve("mainnet", rpc_url="https://x.example.com", **own)
    assert [url for url in SERVICES if getattr(beside, url)] == [field]
    monkeypatch.setenv(f"LEDGERKIT_{field.upper()}", "https://x.example.com")
    assert getattr(networks.resolve("mainnet"), field) == "https://x.example.com"
    assert getattr(networks.resolve("mainnet", **own), field) == OWN
    assert networks.resolve("local") is networks.PRESETS["local"]


@pytest.mark.parametrize("field", SERVICES)
def test_another_process_has_the_services(field: str) -> None:
    """A ledger that is described for another process opens there with its services."""
    from ledgerkit import client

    options: dict[str, Any] = {field: OWN}
    ledger = lk.connect("lab", rate=3, make_default=False, **options)
    with client.reopen(pickle.loads(pickle.dumps(ledger.description()))) as other:  # noqa: S301 - own
        assert getattr(other.network, field) == OWN
        assert other.network == ledger.network
    ledger.close()


@pytest.mark.parametrize("name", [None, "local", ""])
def test_no_network_is_chosen(name: str | None) -> None:
    """Without a choice it is the embedded ledger, at the addresses that `serve` has."""
    found = networks.resolve(name)
    assert [found.address(s) for s in ("rpc", "archival_rpc", "api")] == [
        "http://127.0.0.1:3030",
        None,
        "http://127.0.0.1:3030/api",
    ]
    assert found.name == "local"


def test_the_embedded_ledger_by_name_is_no_other_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address of the environment does not come between; one that is passed does."""
    monkeypatch.setenv("LEDGERKIT_RPC_URL", OWN)
    assert networks.resolve("local") is networks.PRESETS["local"]
    assert networks.resolve(None).rpc_url == OWN
    assert networks.resolve("local", rpc_url=OWN).rpc_url == OWN
    monkeypatch.setenv("LEDGERKIT_NETWORK", "local")
    assert networks.resolve(None).rpc_url == OWN


def test_a_mistyped_network() -> None:
    """A name that is no preset, without addresses, is refused with those there are."""
    with pytest.raises(errors.InvalidRequestError) as caught:
        lk.connect("mainet")
    assert (caught.value.field, caught.value.value) == ("network", "mainet")
    assert "mainnet, testnet, local" in str(caught.value)
    assert caught.value.remedy == "Did you mean 'mainnet'?"


def test_a_verb_without_a_ledger_warns_when_the_environment_chose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A network that only the environment names is used, with a warning that says which."""
    from ledgerkit import client

    monkeypatch.setenv("LEDGERKIT_NETWORK", "testnet")
    with pytest.warns(UserWarning, match="using testnet"):
        assert client.current().network.name == "testnet"
    assert client.current().network.name == "testnet"  # silent from now on


@pytest.mark.parametrize("field", URLS)
def test_addresses_hold_no_credentials(subtests: pytest.Subtests, field: str) -> None:
    """Credentials in an address are refused, and not repeated."""
    cases = [
        f"https://user:{KEY}@rpc.example.com",
        f"https://rpc.example.com?apiKey={KEY}",
        f"https://rpc.example.com#{KEY}",
    ]
    for address in cases:
        with subtests.test(address=address):
            with pytest.raises(errors.InvalidRequestError) as caught:
                UNTYPED.connect("lab", **{field: address})
            assert caught.value.field == field
            assert KEY not in f"{caught.value} {caught.value!r} {vars(caught.value)}"
            assert "api_key=" in str(caught.value)


def test_a_network_shows_hosts_only() -> None:
    """A provider's path may hold a key, and is not shown."""
    found = networks.resolve("lab", rpc_url=f"https://rpc.example.com/{KEY}", api_url=OWN)
    assert repr(found) == "<Network lab: rpc.example.com>"


# The key --------------------------------------------------------------------------------


def test_the_environments_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the environment is used with a preset; an argument wins over it."""
    monkeypatch.setenv("LEDGERKIT_API_KEY", KEY)
    assert {r.headers["authorization"] for r in sent("testnet")} == {f"Bearer {KEY}"}
    other = sent("testnet", api_key="another-key")
    assert {r.headers["authorization"] for r in other} == {"Bearer another-key"}


@pytest.mark.parametrize("field", URLS)
def test_no_key_over_plain_http(subtests: pytest.Subtests, field: str) -> None:
    """A key is refused where anyone on the way could read it; the error shows no key."""
    cases = [
        "http://rpc.example.com",
        "HTTP://rpc.example.com",
        "http://192.168.1.7:3030",
        "http://0.0.0.0:3030",
        "http://127.example.com",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://10.0.0.1",
        "http://[::2]",
    ]
    for address in cases:
        with subtests.test(address=address):
            options = {"rpc_url": OWN, "api_url": OWN} | {field: address}
            with pytest.raises(errors.InvalidRequestError) as caught:
                UNTYPED.connect("lab", api_key=KEY, **options)
            assert caught.value.field == field
            assert "https" in str(caught.value)
            assert KEY not in f"{caught.value} {vars(caught.value)}"


@pytest.mark.parametrize(
    "address",
    ["http://localhost:3030", "http://127.0.0.1:3030", "http://127.1.2.3", "http://[::1]:3030"],
)
def test_a_key_stays_on_this_machine(address: str) -> None:
    """Plain http to this machine is no risk."""
    requests = sent("lab", api_key=KEY, rpc_url=address, api_url=address)
    assert {r.headers["authorization"] for r in requests} == {f"Bearer {KEY}"}


# Limits ---------------------------------------------------------------------------------


def test_the_limits_of_public_hosts(subtests: pytest.Subtests) -> None:
    """A public host accepts 50 requests a minute, or 180 for blocks, and 10,000 with a key."""
    cases = [
        ("rpc.mainnet.fastnear.com", 50, 10_000),
        ("api.fastnear.com", 50, 10_000),
        ("testnet.neardata.xyz", 180, 10_000),
        ("notfastnear.com", None, None),
        ("fastnear.com.example.org", None, None),
        ("127.0.0.1", None, None),
    ]
    for host, without_key, with_key in cases:
        with subtests.test(host=host):
            assert networks.per_minute(host, has_key=False) == without_key
            assert networks.per_minute(host, has_key=True) == with_key


def test_a_ledger_says_its_limits(subtests: pytest.Subtests) -> None:
    """The repr of a ledger says how much it sends; the limit depends on host, key and rate."""
    cases: list[Any] = [
        (
            {"network": "mainnet"},
            (
                "mainnet: at most 50 requests a minute without an API key, to each host; "
                "180 to mainnet.neardata.xyz"
            ),
        ),
        (
            {"network": "mainnet", "api_key": KEY},
            "mainnet: at most 10,000 requests a minute with the API key, to each host",
        ),
        (
            {"network": "mainnet", "rpc_url": OWN},  # the indexer is still the public one
            "mainnet: at most 50 requests a minute without an API key, to each host",
        ),
        ({"network": "mainnet", "rpc_url": OWN, "api_url": OWN}, "mainnet"),
        ({"network": "mainnet", "rate": 5}, "mainnet: at most 5 requests a second, to each host"),
        ({"network": "mainnet", "rate": None}, "mainnet"),
        ({"network": "lab", "rpc_url": OWN, "rate": "polite"}, "lab"),
        ({"network": "local"}, "local"),
    ]
    for options, limits in cases:
        with subtests.test(options=options), lk.connect(**options) as ledger:
            assert repr(ledger) == f"<Ledger {limits}>"


def test_a_key_of_the_environment_lifts_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is that of the key which is really sent: a custom host gets none."""
    monkeypatch.setenv("LEDGERKIT_API_KEY", KEY)
    with lk.connect("mainnet") as ledger:
        assert ledger.limit.per_minute == 10_000
    with lk.connect("mainnet", rpc_url=OWN) as ledger:
        assert ledger.limit.per_minute == 50


def test_a_lower_rate_keeps_the_hosts_limit() -> None:
    """A sibling's own rate comes on top of what the hosts accept in a minute."""
    with lk.connect("mainnet") as ledger, ledger.sibling(rate=10) as other:
        assert (other.limit.rate, other.limit.per_minute) == (10, 50)
        assert other.limit.seconds(20) == 2.0
        assert other.limit.seconds(101) == 122.0  # the 101st starts in the third minute


# Settings -------------------------------------------------------------------------------


def test_options_that_make_no_sense(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option with a senseless value is refused by name, before any connection is opened."""
    cases: list[Any] = [
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": "20"}, "timeout_s"),
        ({"timeout_s": True}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"rate": 0}, "rate"),
        ({"rate": "fast"}, "rate"),
        ({"in_flight": 0}, "in_flight"),
        ({"in_flight": 1.5}, "in_flight"),
        ({"in_flight": 10**6}, "in_flight"),
        ({"key_in": "body"}, "key_in"),
        ({"retries": 3}, "retries"),
        ({"transport": object()}, "transport"),
        ({"rpc_url": "rpc.example.com"}, "rpc_url"),
        ({"world": "demo"}, "world"),
        ({"fork": "mainnet"}, "fork"),
        ({"at": 5}, "at"),
        ({"cache": 5}, "cache"),
        ({"record": "case.txt"}, "record"),
    ]
    for options, field in cases:
        with subtests.test(options=repr(options)):
            monkeypatch.setattr(socket, "socket", None)
            with pytest.raises(errors.InvalidRequestError) as caught:
                UNTYPED.connect("testnet", **options)
            assert caught.value.field == field


@pytest.mark.parametrize("options", [{"attempts": 0}, {"attempts": 1.5}, {"total_s": 0}], ids=str)
def test_retries_that_make_no_sense(options: dict[str, float]) -> None:
    """A policy that never tries, or has no time, is refused by name."""
    with pytest.raises(errors.InvalidRequestError) as caught:
        UNTYPED.RetryPolicy(**options)
    assert caught.value.field == next(iter(options))
