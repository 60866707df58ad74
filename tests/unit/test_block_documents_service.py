"""The block documents of the embedded ledger, against recorded ones and the server's source."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import base58
import pytest

import ledgerkit as lk
from ledgerkit.localnet.http_messages import HttpRequest, HttpResponse
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import Transfer
from tests.unit.localnet.clocks import answer
from tests.unit.localnet.ledger import START, Ledger, N, do

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.localnet.world import World

RECORDED = Path(__file__).parents[3] / "shared" / "wire" / "samples" / "blocks"
NAMES = ["neardata_mainnet_151768255", "neardata_testnet_232952651"]
DAY, YEAR = "public, max-age=86400", "public, max-age=31536000"
# The columns of the trie. Source: nearcore, core/primitives/src/trie_key.rs, mod col.
COLUMNS = {"account": 0, "contract_code": 1, "access_key": 2, "data": 9}
# Members that nodes send since the recordings were made (nearcore 2.8 and later: views.rs), or in
# blocks with other transactions.
NEWER = {
    "block.header.shard_split",
    "block.chunks[].proposed_split",
    "shards[].chunk.header.proposed_split",
    "shards[].receipt_execution_outcomes[].execution_outcome.outcome.metadata.contracts[]",
    "shards[].receipt_execution_outcomes[].execution_outcome.outcome.metadata.contracts[].local",
    "shards[].state_changes[].change.code_base64",
    "shards[].state_changes[].change.global_contract_hash",
}
# What differs by transaction: actions, failures, proposals, and receipts as elsewhere.
CONTENTS = ("actions[]", "Failure", "validator_proposals[]", "local_receipts[]", "refund_to")
UNFILLED = ("proof[]", "approvals[]")  # lists of a real chain's validators


def recorded(name: str) -> Any:
    """Read a recorded document; skip where the recordings are not here."""
    if not RECORDED.is_dir():
        pytest.skip("the recorded blocks are not here")
    return json.loads((RECORDED / f"{name}.json").read_bytes())


def ask(world: World, path: str, query: str = "") -> HttpResponse:
    """Request a path below /blocks; blocks are produced while the request waits."""
    return answer(world, HttpRequest("GET", f"/blocks{path}", query, {}, b""))


def document(world: World, height: int) -> Any:
    response = ask(world, f"/v0/block/{height}")
    if response.status == 302:
        place = dict(response.headers)["location"]
        response = ask(world, place.removeprefix("/blocks"))
    assert response.status == 200
    return json.loads(response.body)


@pytest.fixture(scope="module")
def demo() -> World:
    return open_world("demo")


@pytest.fixture(scope="module")
def documents(demo: World) -> list[Any]:
    final = demo.chain.final.height
    return [document(demo, height) for height in range(demo.chain.genesis.height, final + 1)]


# Documents, compared with recorded ones ----------------------------------------------------


def members(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the JSON type of each member, but not what contracts or callers write."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from members(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            yield from members(item, f"{path}[]")
    else:
        yield path, type(value).__name__


def types(*values: Any) -> dict[str, set[str]]:
    merged: dict[str, set[str]] = defaultdict(set)
    for value in values:
        for path, kind in members(value):
            merged[path].add(kind)
    return merged


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_member_is_there(name: str, documents: list[Any]) -> None:
    """A document has each member of the recorded ones, with a value of the same JSON type."""
    ours, theirs = types(*documents), types(recorded(name))
    missing = {path for path, kinds in theirs.items() if not kinds <= ours.get(path, set())}
    assert {path for path in missing if not any(part in path for part in UNFILLED)} == set()


def test_no_other_member_is_there(documents: list[Any]) -> None:
    """A document has no member that neither the recorded ones nor newer nodes have."""
    known = types(*(recorded(name) for name in NAMES))
    extra = types(*documents).keys() - known.keys()
    assert {path for path in extra if not any(part in path for part in CONTENTS)} == NEWER


def order(change: Any) -> tuple[int, bytes, bytes]:
    """Return the trie key of a change: its column, account and key."""
    kind, data = change["type"].rpartition("_")[0], change["change"]
    key = b""
    if "public_key" in data:
        curve, _, text = data["public_key"].partition(":")
        key = bytes([curve != "ed25519"]) + base58.b58decode(text)
    elif "key_base64" in data:
        key = base64.b64decode(data["key_base64"])
    return COLUMNS[kind], data["account_id"].encode(), key


@pytest.mark.parametrize("name", NAMES)
def test_changes_are_sorted_as_recorded(name: str, documents: list[Any]) -> None:
    """The changes of a shard are sorted by the trie's keys, in recorded documents and here."""
    for each in (recorded(name), *documents):
        for shard in each["shards"]:
            keys = [order(change) for change in shard["state_changes"]]
            assert keys == sorted(keys)


def test_documents_agree_with_the_node(demo: World, documents: list[Any]) -> None:
    """Blocks, chunks and changes are those that JSON-RPC returns, and each outcome is in one."""
    with lk.connect(world=demo, make_default=False) as ledger:
        for each in documents[::7]:
            height = each["block"]["header"]["height"]
            assert ledger.rpc("block", {"block_id": height}) == each["block"]
            for shard in each["shards"]:
                chunk = shard["chunk"]
                if chunk is not None:
                    params = {"block_id": height, "shard_id": shard["shard_id"]}
                    node = ledger.rpc("chunk", params)
                    assert node["receipts"] == chunk["receipts"]
                    inner = [item["transaction"] for item in chunk["transactions"]]
                    assert node["transactions"] == inner


def test_every_receipt_names_its_transaction(demo: World, documents: list[Any]) -> None:
    """tx_hash is the transaction that EXPERIMENTAL_tx_status has the receipt in."""
    executed: dict[str, set[str]] = defaultdict(set)
    for each in documents:
        for shard in each["shards"]:
            for item in shard["receipt_execution_outcomes"]:
                executed[item["tx_hash"]].add(item["receipt"]["receipt_id"])
                assert item["execution_outcome"]["id"] == item["receipt"]["receipt_id"]
    with lk.connect(world=demo, make_default=False) as ledger:
        for tx_hash in list(executed)[::9]:
            params = {"tx_hash": tx_hash, "sender_account_id": "near", "wait_until": "NONE"}
            outcomes = ledger.rpc("EXPERIMENTAL_tx_status", params)["receipts_outcome"]
            assert executed[tx_hash] <= {outcome["id"] for outcome in outcomes}


def test_changes_have_the_recorded_causes(documents: list[Any]) -> None:
    """Each kind of change has the causes of the recorded ones; own calls are local receipts."""
    local = [item for each in documents for shard in each["shards"] if (item := shard["chunk"])]
    assert any(chunk["local_receipts"] for chunk in local)
    causes = {
        (change["type"], change["cause"]["type"])
        for each in documents
        for shard in each["shards"]
        for change in shard["state_changes"]
    }
    # All pairs of a recorded block of mainnet, but for a storage record that nothing removed.
    recorded_pairs = {
        (change["type"], change["cause"]["type"])
        for shard in recorded(NAMES[0])["shards"]
        for change in shard["state_changes"]
    }
    assert recorded_pairs - causes <= {("data_deletion", "receipt_processing")}


# Paths and refusals: fastnear/neardata-server, src/api.rs ----------------------------------


def headers(response: HttpResponse) -> dict[str, str]:
    return dict(response.headers)


def test_the_ends_redirect(demo: World) -> None:
    """The first and the last block are redirects, which keep the rest of the path and the query."""
    genesis, final = demo.chain.genesis.height, demo.chain.final.height
    first = ask(demo, "/v0/first_block", "apiKey=k")
    place = f"/blocks/v0/block/{genesis}?apiKey=k"
    assert (first.status, headers(first)) == (302, {"location": place, "cache-control": DAY})
    last = ask(demo, "/v0/last_block/final/headers", "apiKey=k")
    place = f"/blocks/v0/block/{final}/headers?apiKey=k"
    assert (last.status, headers(last)) == (302, {"location": place})
    newest = ask(demo, "/v0/last_block/optimistic")
    place = f"/blocks/v0/block_opt/{demo.chain.head.height}"
    assert (newest.status, headers(newest)) == (302, {"location": place})
    assert ask(demo, "/v0/last_block/near-final").body == b'"Invalid argument"'


def test_old_blocks_are_at_another_address(demo: World) -> None:
    """An old height leads to the archive, an old optimistic one to the final one first."""
    genesis, final = demo.chain.genesis.height, demo.chain.final.height
    old = ask(demo, f"/v0/block/{genesis}/shard/1", "apiKey=k")
    place = f"/blocks/archive/v0/block/{genesis}/shard/1?apiKey=k"
    assert (old.status, headers(old)) == (302, {"location": place, "cache-control": DAY})
    opt = ask(demo, f"/v0/block_opt/{genesis}")
    assert (opt.status, headers(opt)["location"]) == (302, f"/blocks/v0/block/{genesis}")
    recent = ask(demo, f"/archive/v0/block/{final}")
    assert (recent.status, headers(recent)["location"]) == (302, f"/blocks/v0/block/{final}")


def test_parts_of_a_document(demo: World) -> None:
    """Headers, chunks and shards are parts of the document; what is not there is null."""
    height = demo.chain.final.height
    path = f"/v0/block/{height}"
    whole = ask(demo, path)
    assert headers(whole)["cache-control"] == YEAR
    content = json.loads(whole.body)
    assert json.loads(ask(demo, f"{path}/headers").body) == content["block"]
    shard = content["shards"][2]
    assert json.loads(ask(demo, f"{path}/shard/{shard['shard_id']}").body) == shard
    assert json.loads(ask(demo, f"{path}/chunk/{shard['shard_id']}").body) == shard["chunk"]
    assert ask(demo, f"{path}/shard/77").body == ask(demo, f"{path}/chunk/77").body == b"null"
    assert json.loads(ask(demo, f"/v0/block_opt/{height}").body) == content


@pytest.mark.parametrize(
    ("height", "kind", "cache"),
    [
        (10**15 + 1, "BLOCK_HEIGHT_TOO_HIGH", DAY),
        (START - 1, "BLOCK_HEIGHT_TOO_LOW", DAY),
        (START + 11, "BLOCK_DOES_NOT_EXIST", None),
    ],
)
def test_heights_without_a_document(height: int, kind: str, cache: str | None) -> None:
    """Heights that are too high, too low or too far ahead are errors of their own type."""
    response = ask(chain().world, f"/v0/block/{height}")
    assert (response.status, json.loads(response.body)["type"]) == (404, kind)
    assert headers(response).get("cache-control") == cache


def test_other_refusals() -> None:
    """What is no number is a JSON string with status 400; there is a page for the health."""
    world = chain().world
    for path in ("/v0/block/x", "/v0/block/-1", f"/v0/block/{START}/shard/x", f"/v0/block/{2**64}"):
        response = ask(world, path)
        assert (response.status, response.body) == (400, b'"Invalid argument"')
    assert ask(world, "/health").body == b'{"status":"ok"}'
    assert ask(world, f"/v0/block/{START}/other").status == 404


def chain() -> Any:
    return Ledger("ann.near", "ben.near", scripts=("s.near",))


def test_a_request_waits_for_a_block_that_is_not_far() -> None:
    """A height at most ten ahead of the last one is answered when its block is there."""
    world = chain().world
    response = ask(world, f"/v0/block_opt/{START + 10}")
    assert json.loads(response.body)["block"]["header"]["height"] == START + 10
    assert world.chain.head.height == START + 10
    final = world.chain.final.height
    assert ask(world, f"/v0/block/{final + 1}").status == 200
    assert world.chain.final.height == final + 1
    world.hold_finality()
    late = ask(world, f"/v0/block/{final + 2}")
    assert (late.status, late.body) == (500, b'"Cache error: The block is not cached"')


def test_a_skipped_height_is_null_for_a_day() -> None:
    """A height without a block is null, which caches keep for a day."""
    world = chain().world
    world.advance(2)
    world.advance(4, skip=1)
    response = ask(world, f"/v0/block/{START + 3}")
    assert (response.status, response.body) == (200, b"null")
    assert headers(response)["cache-control"] == DAY


# Archives: fastnear/neardata-server, src/reader.rs ------------------------------------------


def unpack(response: HttpResponse) -> dict[str, bytes]:
    assert response.status == 200
    with tarfile.open(fileobj=io.BytesIO(response.body), mode="r:gz") as archive:
        files = {info.name: archive.extractfile(info) for info in archive}
        return {name: file.read() for name, file in files.items() if file is not None}


def skipping_world() -> World:
    """Open a world whose heights 23 to 41 after the first one were skipped."""
    world: World = chain().world
    world.advance(22)
    world.advance(30, skip=19)
    return world


def test_an_archive_has_the_documents_of_ten_heights() -> None:
    """Each member is the single document of its height; a skipped height has none."""
    world = skipping_world()
    members = unpack(ask(world, "/raw/000000/001/000000001020.tgz", "apiKey=k"))
    assert list(members) == [f"00000000102{last}.json" for last in range(3)]
    for name, content in members.items():
        assert json.loads(content) == document(world, int(name[:12]))
    assert len(unpack(ask(world, "/raw/000000/001/000000001000.tgz"))) == 10
    assert len(unpack(ask(world, "/raw/000000/001/000000001050.tgz"))) == 10


@pytest.mark.parametrize(
    "path",
    [
        "000000/001/000000001030",  # all ten heights were skipped
        "000000/001/000000001070",  # the last block is 71, so it is not complete
        "000000/000/000000000990",  # before the first block
        "000000/001/000000001001",
        "000000/002/000000001000",
        "000000/001/1000",
    ],
)
def test_a_missing_archive_is_404(path: str) -> None:
    """Archives that would be empty or are not complete, and other names, are not there."""
    response = ask(skipping_world(), f"/raw/{path}.tgz")
    assert (response.status, response.body) == (404, b"")


def test_an_archive_appears_when_its_last_height_is_final() -> None:
    """The same bytes are sent whenever an archive is requested, from when it is complete."""
    world = chain().world
    path = "/raw/000000/001/000000001000.tgz"
    while world.chain.final.height < START + 9:
        assert ask(world, path).status == 404
        world.advance()
    first = ask(world, path)
    world.advance(100)
    assert ask(world, path) == first
    assert headers(first) == {"content-type": "application/gzip", "cache-control": YEAR}


# A client of the embedded ledger -----------------------------------------------------------


def test_balances_end_with_those_of_the_state() -> None:
    """The last change of a block is the account's balance after it, the first one the charge."""
    ledger = chain()
    world = ledger.world
    ledger.run("ann.near", "s.near", do(["transfer", "t", "ben.near", str(N)], deposit=2 * N))
    ledger.run("ann.near", "ann.near", Transfer(5))
    world.advance(3)
    after = dict.fromkeys(("ann.near", "ben.near", "s.near"), 1000 * N)
    causes = []
    with lk.connect(world=world, make_default=False) as client:
        for height in range(START + 1, world.chain.final.height + 1):
            document = client.get(f"/v0/block/{height}", surface="blocks")
            balances = lk.read_response(json.dumps(document).encode(), "balances")
            after |= dict(zip(balances["account_id"], balances["amount"], strict=True))
            for name in after:
                account = world.state(height).account(name)
                assert account is not None
                assert after[name] == account.amount
            causes += balances.loc[balances["account_id"] == "s.near", "cause"].tolist()
    assert causes[:2] == ["receipt_processing", "action_receipt_gas_reward"]
