"""The key-value data of the embedded ledger: what is stored, in which order, and refusals."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import ledgerkit as lk
from ledgerkit.api import services as service_calls
from ledgerkit.localnet import services
from ledgerkit.localnet.chain_types import Failure
from ledgerkit.localnet.http_messages import HttpRequest
from ledgerkit.localnet.services import key_value_index
from ledgerkit.protocol import CryptoHash, FunctionCall
from tests.unit.localnet.ledger import TGAS, Ledger

HUB = "contextual.near"  # does not exist here: nothing need be deployed


@pytest.fixture
def ledger() -> Ledger:
    """Build a world in which two people wrote values for an account that does not exist."""
    ledger = Ledger("alice.near", "bob.near")
    write(ledger, "alice.near", {"name": "Alice", "links/web": {"b": 1, "a": [2, 1]}})
    write(ledger, "bob.near", {"name": None})
    write(ledger, "alice.near", {"name": "Alice A."})
    return ledger


def write(ledger: Ledger, writer_id: str, values: Any, receiver_id: str = HUB) -> str:
    """Send a write; return the transaction's hash."""
    call = FunctionCall("__fastdata_kv", json.dumps(values).encode(), 10 * TGAS, 0)
    tx_hash = ledger.send(writer_id, receiver_id, call)
    ledger.world.settle()
    return str(tx_hash)


def request(ledger: Ledger, method: str, path: str, **members: Any) -> tuple[int, Any]:
    """Send a request; return the status and the decoded response."""
    body = json.dumps(members).encode()
    sent = HttpRequest(method, f"/kv/v0/{path}", "", {"content-type": "application/json"}, body)
    response = services.respond("kv", ledger.world, sent)
    return response.status, json.loads(response.body or b"null")


def post(ledger: Ledger, path: str, **members: Any) -> Any:
    """Send a request that succeeds; return the decoded response."""
    status, answer = request(ledger, "POST", path, **members)
    assert status == 200, answer
    return answer


def pairs(answer: Any) -> list[tuple[str, str, Any]]:
    entries = answer["entries"]
    return [(each["predecessor_id"], each["key"], each["value"]) for each in entries]


# Writing -----------------------------------------------------------------------------------


def test_values_are_stored_as_the_indexer_does() -> None:
    """Only an object of up to 256 keys is accepted, sorted; keys and values are limited."""
    # Source: the rules of FastNEAR's kv-sub-indexer, and the expected values of the tests of a
    # second implementation of them.
    accepted = list(key_value_index.values(b'{"b": {"z": 1, "a": [2, 1]}, "a": null}'))
    assert accepted == [("a", b"null"), ("b", b'{"a":[2,1],"z":1}')]
    assert list(key_value_index.values(b"[1]")) == []
    assert list(key_value_index.values(b"\xff")) == []
    many = {str(number): 1 for number in range(257)}
    assert list(key_value_index.values(json.dumps(many).encode())) == []
    del many["256"]
    assert len(list(key_value_index.values(json.dumps(many).encode()))) == 256
    args = {"k" * 1025: 1, "big": "x" * 262_144, "ok": 1}  # the quotes count
    assert list(key_value_index.values(json.dumps(args).encode())) == [("ok", b"1")]
    [(_, number)] = key_value_index.values(b'{"i": 18446744073709551616}')
    assert repr(json.loads(number)) == "1.8446744073709552e+19"


def test_an_entry_names_its_write(ledger: Ledger) -> None:
    """A failed call counts; with metadata an entry names the receipt and the transaction."""
    tx_hash = write(ledger, "bob.near", {"color": "red"})
    plain = request(ledger, "GET", f"latest/{HUB}/bob.near/color")[1]["entries"]
    [entry] = post(ledger, f"latest/{HUB}", key="color", include_metadata=True)["entries"]
    assert entry["tx_hash"] == tx_hash
    assert (entry["signer_id"], entry["action_index"]) == ("bob.near", 0)
    block = ledger.world.chain.by_height(entry["block_height"])
    assert block is not None
    assert entry["block_timestamp"] == block.timestamp_ns
    metadata = ("receipt_id", "action_index", "tx_hash", "signer_id")
    assert plain == [{name: value for name, value in entry.items() if name not in metadata}]
    outcome = ledger.outcome(CryptoHash(entry["receipt_id"]))
    assert isinstance(outcome.status, Failure)


# Reading -----------------------------------------------------------------------------------


def test_the_last_values_are_sorted_by_key(ledger: Ledger) -> None:
    """Tables of last values are sorted by key, then by writer, or by contract."""
    web = ("alice.near", "links/web", {"a": [2, 1], "b": 1})
    named = [("alice.near", "name", "Alice A."), ("bob.near", "name", None)]
    assert pairs(post(ledger, f"latest/{HUB}")) == [web, *named]
    assert pairs(post(ledger, f"latest/{HUB}", key_prefix="na")) == named
    assert pairs(post(ledger, f"latest/{HUB}/alice.near")) == [web, named[0]]
    assert pairs(post(ledger, f"latest/{HUB}/alice.near", key="name")) == named[:1]
    write(ledger, "alice.near", {"z": 1}, "a.near")
    assert pairs(post(ledger, "all/alice.near")) == [("alice.near", "z", 1), web, named[0]]
    assert pairs(request(ledger, "GET", f"latest/{HUB}/alice.near/links/web")[1]) == [web]
    assert pairs(post(ledger, "latest/nobody.near")) == []


def test_a_history_is_newest_first_unless_it_is_ascending(ledger: Ledger) -> None:
    """Histories are sorted by key and height of a contract, or by height of a key."""
    first, last = ("alice.near", "name", "Alice"), ("alice.near", "name", "Alice A.")
    other, web = ("bob.near", "name", None), ("alice.near", "links/web", {"a": [2, 1], "b": 1})
    assert pairs(post(ledger, "history", key="name")) == [last, other, first]
    assert pairs(post(ledger, "history", key="name", asc=True)) == [first, other, last]
    assert pairs(post(ledger, f"history/{HUB}")) == [last, other, first, web]
    assert pairs(post(ledger, f"history/{HUB}/alice.near", asc=True)) == [web, first, last]
    assert pairs(post(ledger, f"history/{HUB}/alice.near", key="name")) == [last, first]
    assert pairs(request(ledger, "GET", f"history/{HUB}/alice.near/name")[1]) == [last, first]


def test_an_empty_prefix_matches_no_key(ledger: Ledger) -> None:
    """The range of an empty prefix ends at the character 1 (src/scylladb.rs, prefix_end)."""
    assert post(ledger, f"latest/{HUB}", key_prefix="") == {"entries": []}


@pytest.mark.parametrize(
    ("path", "members"),
    [
        (f"history/{HUB}/alice.near", {}),
        (f"history/{HUB}/alice.near", {"key": "k3"}),
        (f"history/{HUB}/alice.near", {"key_prefix": "k", "asc": True}),
        (f"history/{HUB}", {}),
        (f"history/{HUB}", {"key_prefix": "k"}),
        (f"latest/{HUB}/alice.near", {}),
        (f"latest/{HUB}", {"key_prefix": "k"}),
        ("all/alice.near", {}),
        ("history", {"key": "k3"}),
        ("history", {"key": "k3", "asc": True}),
    ],
)
def test_pages_have_every_entry_once(ledger: Ledger, path: str, members: dict[str, Any]) -> None:
    """A page of as many entries as its limit has a token, the last one too."""
    for number in range(4):
        write(ledger, "alice.near", {f"k{each}": number for each in range(6)})
        write(ledger, "bob.near", {f"k{each}": number for each in range(6)})
    whole = post(ledger, path, limit=200, **members)
    assert "page_token" not in whole
    entries: list[Any] = []
    page = post(ledger, path, limit=2, **members)
    while page["entries"]:
        entries += page["entries"]
        if "page_token" not in page:
            break
        page = post(ledger, path, limit=2, page_token=page["page_token"], **members)
    assert entries == whole["entries"]
    assert len(entries) >= 4


def test_a_token_is_a_document(ledger: Ledger) -> None:
    """A token is the unpadded base64 of the last entry's place, for URLs (src/main.rs)."""
    token = post(ledger, f"latest/{HUB}", limit=1)["page_token"]
    document = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    assert document == b'{"k":"links/web","p":"alice.near"}'
    assert "=" not in token


def test_limits_are_clamped(ledger: Ledger) -> None:
    """A page has 50 entries by default, and 1 to 200 (src/main.rs, clamp_limit)."""
    for start in (0, 250):
        write(ledger, "alice.near", {f"n{start + each:04}": each for each in range(250)})
    counts = [len(post(ledger, f"latest/{HUB}")["entries"])]
    counts += [len(post(ledger, f"latest/{HUB}", limit=n)["entries"]) for n in (0, -5, 7, 999)]
    assert counts == [50, 1, 1, 7, 200]


def test_several_keys_are_answered_in_their_order(ledger: Ledger) -> None:
    """An entry that was never written is null; a key may have slashes."""
    keys = [f"{HUB}/bob.near/none", f"{HUB}/alice.near/links/web", f"{HUB}/bob.near/name"]
    answer = post(ledger, "multi", keys=keys)["entries"]
    assert [each and each["value"] for each in answer] == [None, {"a": [2, 1], "b": 1}, None]
    assert [each and each["key"] for each in answer] == [None, "links/web", "name"]


# Refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "members", "text"),
    [
        (
            f"latest/{HUB}",
            {"key": "a", "key_prefix": "a"},
            "key and key_prefix are mutually exclusive",
        ),
        (f"latest/{HUB}", {"page_token": "!"}, "Invalid page_token"),
        (f"latest/{HUB}", {"page_token": "e30"}, "Invalid page_token"),  # {}
        (f"history/{HUB}", {"page_token": "eyJrIjoxfQ"}, "Invalid page_token"),  # {"k":1}
        ("multi", {"keys": ["a/b/c"] * 101}, "Maximum 100 keys per request"),
        (
            "multi",
            {"keys": ["a/b"]},
            'Invalid key format: "a/b". Expected current_account_id/predecessor_id/key',
        ),
    ],
)
def test_the_service_explains_its_refusals(
    ledger: Ledger, path: str, members: dict[str, Any], text: str
) -> None:
    """A refused argument is an object with the reason (src/main.rs)."""
    assert request(ledger, "POST", path, **members) == (400, {"error": text})


def test_other_paths_are_not_there(subtests: pytest.Subtests, ledger: Ledger) -> None:
    """Each path has one method; ids cannot be empty."""
    cases = [
        ("GET", "multi"),
        ("GET", f"latest/{HUB}"),
        ("GET", f"latest/{HUB}/alice.near"),
        ("POST", f"latest/{HUB}/alice.near/name"),
        ("POST", "all"),
        ("POST", "latest//alice.near"),
        ("POST", "nothing"),
    ]
    for method, path in cases:
        with subtests.test(path=path):
            assert request(ledger, method, path)[0] == 404


def test_a_ledger_reaches_the_service_in_process() -> None:
    """The embedded ledger's key-value data is called as that of a public network."""
    with lk.connect("local", make_default=False) as local:
        assert local.send(service_calls.key_value()).entries == []
