"""Every public verb against a small chain and indexer of our own, over a real HTTP server."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import base58
import numpy as np
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.protocol import DeployGlobalContract, UseGlobalContract
from tests.loopback import Reply, Server, as_json, asking, failure, result, serve

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "ed25519:" + base58.b58encode(bytes(range(32))).decode()
FIRST, HEAD = 100, 140
GENESIS_NS = 1_600_000_000_123_456_789
STEP_NS = 1_000_000_007
UNTYPED: Any = lk  # as whoever calls it without a type checker
SKIPPED = {104, 110, 111, 112, 113}


def fake_hash(text: object) -> str:
    """Invent a hash: 32 bytes in base58."""
    return base58.b58encode(hashlib.sha256(str(text).encode()).digest()).decode()


def time_ns(height: int) -> int:
    return GENESIS_NS + (height - FIRST) * STEP_NS


def make_block(height: int, /, *, chunks: int = 1, **header: Any) -> dict[str, Any]:
    """Invent a block; its parent is the height before that was not skipped."""
    before = height - 1
    while before in SKIPPED:
        before -= 1
    return {
        "author": "val.near",
        "chunks": [make_chunk_header(height, shard) for shard in range(chunks)],
        "header": {
            "height": height,
            "hash": fake_hash(height),
            "prev_height": before,
            "prev_hash": fake_hash(before),
            "epoch_id": fake_hash("epoch"),
            "chunks_included": chunks,
            "gas_price": "100000000",
            "total_supply": str(2**128 - 1),
            "timestamp": time_ns(height),
            "timestamp_nanosec": str(time_ns(height)),
            "last_final_block": fake_hash(before),
            "latest_protocol_version": 80,
            "chunk_mask": [True] * chunks,
            **header,
        },
    }


def make_chunk_header(height: int, shard: int) -> dict[str, Any]:
    """Invent a chunk's header; shard 1 missed its turn at odd heights."""
    included = height - 1 if shard == 1 and height % 2 else height
    return {
        "chunk_hash": fake_hash(f"chunk {included} {shard}"),
        "shard_id": shard,
        "height_created": included,
        "height_included": included,
        "gas_used": 10**15 + shard,
        "gas_limit": 2 * 10**15,
        "balance_burnt": "123",
    }


def panic(text: str) -> dict[str, Any]:
    """Fail as a contract does: inside the result."""
    words = f'wasm execution failed with error: HostError(GuestPanic {{ panic_msg: "{text}" }})'
    return {"error": words, "logs": []}


@dataclass
class Fake:
    """A chain and an indexer in one: REST bodies by path, views by contract and method."""

    rest: dict[str, Any] = field(default_factory=dict)
    views: dict[tuple[str, str], Any] = field(default_factory=dict)
    accounts: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, Any] = field(default_factory=dict)
    blocks: dict[int, Any] = field(
        default_factory=lambda: {
            h: make_block(h) for h in range(FIRST, HEAD + 1) if h not in SKIPPED
        }
    )

    def __call__(self, method: str, path: str, _headers: object, body: bytes) -> Reply:
        if method == "GET":
            found = self.rest.get(path, Reply(404))
            return found if isinstance(found, Reply) else as_json(found)
        call = json.loads(body)
        name, params = call["method"], call["params"]
        if name in self.methods:
            return self._reply(self.methods[name], params)
        if name == "block":
            return self._block(params)
        if name == "query":
            return self._query(params)
        return failure("METHOD_NOT_FOUND", {"method_name": name}, 400)

    @staticmethod
    def _reply(answer: Any, params: Any) -> Reply:
        """Take a value, or what a function makes of the parameters, as a result."""
        value = answer(params) if callable(answer) else answer
        return value if isinstance(value, Reply) else result(value)

    def _find(self, params: dict[str, Any]) -> Any:
        if "finality" in params:
            return self.blocks[max(self.blocks)]
        if "sync_checkpoint" in params:
            return self.blocks[min(self.blocks)]
        wanted = params["block_id"]
        by_hash = {block["header"]["hash"]: block for block in self.blocks.values()}
        return self.blocks.get(wanted) or by_hash.get(wanted)

    def _block(self, params: dict[str, Any]) -> Reply:
        """Answer `block`."""
        found = self._find(params)
        if found:
            return result(found)
        # A node names the block in `data` only.
        block_id = params["block_id"]
        noun = "BLOCK" if isinstance(block_id, str) else "BLOCK HEIGHT"
        text = f"DB Not Found Error: {noun}: {block_id} \n Cause: Unknown"
        return failure("UNKNOWN_BLOCK", {}, 422, data=text)

    def _query(self, params: dict[str, Any]) -> Reply:
        """Answer `query`."""
        found = self._find(params)
        if not found:
            return failure("UNKNOWN_BLOCK", {"block_reference": {"block_id": params["block_id"]}})
        place = {"block_height": found["header"]["height"], "block_hash": found["header"]["hash"]}
        account_id, kind = params["account_id"], params["request_type"]
        if kind == "view_access_key_list":  # a missing account has an empty list
            return result({"keys": self.keys.get(account_id, []), **place})
        if kind == "view_account":
            told = self.accounts.get(account_id)
        else:
            told = self._called(account_id, params)
        if told is None:
            return failure("UNKNOWN_ACCOUNT", {"requested_account_id": account_id, **place})
        return told if isinstance(told, Reply) else result({**place, **told})

    def _called(self, contract_id: str, params: dict[str, Any]) -> Any:
        """Answer `call_function`."""
        answer = self.views.get((contract_id, params["method_name"]))
        if callable(answer):
            answer = answer(json.loads(base64.b64decode(params["args_base64"])))
        if answer is None or isinstance(answer, Reply | dict):
            return answer
        return {"result": list(answer), "logs": []}


def as_bytes(value: object) -> bytes:
    """Give what a contract returns for a JSON value."""
    return json.dumps(value).encode()


def rows(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """List the values of some columns by row, whatever is missing as None."""
    lists = [
        [None if v is pd.NA or v != v else v for v in frame[c].tolist()]  # noqa: PLR0124 - NaN
        for c in columns
    ]
    return list(zip(*lists, strict=True))


def ft_view(account_id: str, *tokens: tuple[Any, ...]) -> dict[str, Any]:
    """Invent an FT view: contract, balance, height."""
    fields = ("contract_id", "balance", "last_update_block_height")
    return {
        "account_id": account_id,
        "tokens": [dict(zip(fields, t, strict=False)) for t in tokens],
    }


def nft_view(account_id: str, *entries: tuple[Any, ...]) -> dict[str, Any]:
    """Invent an NFT view: contract, height, and the token if there is one."""
    fields = ("contract_id", "last_update_block_height", "token_id")
    rows = [dict(zip(fields, entry, strict=False)) for entry in entries]
    return {"account_id": account_id, "tokens": rows}


def full_view(account_id: str, **members: Any) -> dict[str, Any]:
    """Invent a `/full` view."""
    state = {"balance": "10", "locked": "0", "storage_bytes": 100}
    told = {"account_id": account_id, "pools": [], "tokens": [], "nfts": [], "state": state}
    return told | members


def dtypes(frame: pd.DataFrame) -> list[str]:
    return [str(dtype) for dtype in frame.dtypes]


# Accounts -------------------------------------------------------------------------------


def test_every_verb_is_asked_here() -> None:
    """No public verb is without a test here, with what sends or collects, or with the panels."""
    tests = Path(__file__).parents[1]
    folders = ("surface", "engine", "unit", "unit/collecting")
    paths = [path for folder in folders for path in (tests / folder).glob("test_*.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    asked = set(re.findall(r"\blk\.([a-z_]+)[(,]", text))
    verbs = {name for name in lk.__all__ if name.islower() and not name.startswith("_")}
    assert verbs - asked - {"errors"} == set()


def test_accounts_of_many() -> None:
    """Two accounts and one unknown to the indexer are three rows of one frame."""
    nfts = [{"contract_id": "art.near", "last_update_block_height": 7}]
    pools = [{"pool_id": "p.poolv1.near", "last_update_block_height": 9}]
    tokens = [{"contract_id": "t.near", "balance": "1", "last_update_block_height": None}]
    state = {"balance": str(2**128 - 1), "locked": "1", "storage_bytes": 771}
    fake = Fake()
    fake.rest["/v1/account/a.near/full"] = full_view(
        "a.near", nfts=nfts, pools=pools, tokens=tokens, state=state
    )
    fake.rest["/v1/account/b.near/full"] = {"account_id": "b.near", "state": None}
    fake.rest["/v1/account/c.near/full"] = full_view("c.near")
    with asking(fake):
        frame = lk.accounts(["a.near", "b.near", "c.near", "a.near"], progress=False)
    columns = ("account_id", "status", "balance", "locked", "storage_bytes", "storage_cost")
    assert rows(frame, *columns, "spendable") == [
        ("a.near", "ok", 2**128 - 1, 1, 771, 771 * 10**19, 2**128 - 1 - 771 * 10**19 + 1),
        ("b.near", "not_indexed", None, None, None, None, None),
        ("c.near", "ok", 10, 0, 100, 10**21, 10),
    ]
    assert rows(frame, "n_tokens", "n_nfts", "n_pools", "last_update_block_height") == [
        (1, 1, 1, 9),
        (None, None, None, None),
        (0, 0, 0, None),
    ]
    assert frame.attrs["network"] == "lab"
    assert frame.attrs["source"] == "GET /v1/account/{account_id}/full"


def test_accounts_at_one_block() -> None:
    """State at a block is read for all accounts at the same hash; a missing account is a row."""
    told = {
        "amount": "5000000000000000000000000",
        "locked": "7",
        "code_hash": "1" * 32,
        "storage_usage": 500,
        "storage_paid_at": 0,
    }
    fake = Fake(accounts={"a.near": told, "c.near": told})
    with asking(fake) as server:
        frame = lk.accounts(["a.near", "gone.near", "c.near"], at=103, progress=False)
    assert rows(frame, "account_id", "status", "balance", "locked", "storage_bytes") == [
        ("a.near", "ok", 5 * 10**24, 7, 500),
        ("gone.near", "no_account", None, None, None),
        ("c.near", "ok", 5 * 10**24, 7, 500),
    ]
    queried = [c["params"]["block_id"] for c in server.calls if c["method"] == "query"]
    assert queried == [fake_hash(103)] * 3
    assert frame.attrs["block_height"] == 103
    assert frame.attrs["block_hash"] == fake_hash(103)


def test_contracts_of_accounts() -> None:
    """
    Each form of code is named, as `view_account` has it: none, local, or published code.

    The members are those of `RpcViewAccountResponse` of near-jsonrpc-models 1.0.102.
    """
    plain = {"amount": "5", "locked": "0", "code_hash": "1" * 32, "storage_usage": 9}
    code_hash = fake_hash("code")
    fake = Fake(
        accounts={
            "none.near": plain,
            "local.near": plain | {"code_hash": code_hash},
            "hash.near": plain | {"global_contract_hash": code_hash},
            "by.near": plain | {"global_contract_account_id": "publisher.near"},
            "0u.near": plain | {"state": "uninitialized", "bootstrap_nonce": 2**40},
        }
    )
    ids = [*fake.accounts, "gone.near"]
    for account_id in ids:
        fake.rest[f"/v1/account/{account_id}/full"] = full_view(account_id)
    columns = ("account_id", "contract", "code_hash", "code_account_id", "bootstrap_nonce")
    expected = [
        ("none.near", "none", None, None, None),
        ("local.near", "local", code_hash, None, None),
        ("hash.near", "global_by_hash", code_hash, None, None),
        ("by.near", "global_by_account", None, "publisher.near", None),
        ("0u.near", "none", None, None, 2**40),
        ("gone.near", None, None, None, None),
    ]
    with asking(fake):
        assert rows(lk.accounts(ids, at=103, progress=False), *columns) == expected
        indexed = lk.accounts(ids, code=True, progress=False)
        assert rows(indexed, *columns) == expected
        assert indexed["n_tokens"].notna().all()
        unasked = lk.accounts(ids, progress=False)
    assert unasked[list(columns[1:])].isna().all(axis=None)


def test_code_that_changed_is_listed(tmp_path: Path) -> None:
    """`collect` stores the contracts of accounts, and `diff` lists the code that changed."""
    code = b"\0asm\1\0\0\0"
    # nearcore hashes the code with SHA-256.
    code_hash = base58.b58encode(hashlib.sha256(code).digest()).decode()
    ids = ["alice.near", "bob.near", "carol.near", "gold.near"]
    with lk.connect("local") as ledger:
        for name in ids[:3]:
            lk.use_signer(name, ledger.world.keys()[name])
        before = lk.collect(ids, "contracts", tmp_path / "before", progress=False)
        publish = DeployGlobalContract(code, deploy_mode="AccountId")
        use = UseGlobalContract("alice.near")
        for signer_id, action in {"alice.near": publish, "bob.near": use}.items():
            lk.send(signer_id, [action], signer_id=signer_id, wait_until="FINAL")
        lk.deploy(code, signer_id="carol.near", wait_until="FINAL")
        after = lk.collect(ids, "contracts", tmp_path / "after", progress=False)
        with pytest.raises(errors.InvalidRequestError, match="contracts alone"):
            lk.collect(ids, ["ft", "contracts"], tmp_path / "mixed", progress=False)
    stored = after.pandas("contracts").set_index("account_id")
    assert list(stored["contract"]) == ["none", "global_by_account", "local", "local"]
    assert stored.loc["carol.near", "code_hash"] == code_hash
    changes = lk.diff(before, after, "contracts").changes
    assert rows(changes, "account_id", "change", "before", "after", "code_after") == [
        ("bob.near", "entered", "none", "global_by_account", "alice.near"),
        ("carol.near", "entered", "none", "local", code_hash),
    ]


def test_accounts_of_a_key() -> None:
    """Full-access accounts and all accounts are two questions; the first row is primary."""
    path = "/v1/public_key/" + KEY.replace(":", "%3A")
    fake = Fake()
    fake.rest[path] = {"public_key": KEY, "account_ids": ["b.near", "a.near"]}
    fake.rest[path + "/all"] = {"public_key": KEY}
    with asking(fake):
        found = lk.accounts_of(KEY)
        limited = lk.accounts_of(KEY, include_limited=True)
    assert rows(found, "account_id", "is_primary") == [("b.near", True), ("a.near", False)]
    assert len(limited) == 0
    assert dtypes(limited) == dtypes(found) == ["str", "str", "bool"]


def test_keys_of_every_permission() -> None:
    """Each kind of key, also the gas keys, is a row; nonces beyond 2^63 stay exact."""
    call = {"allowance": None, "receiver_id": "app.near", "method_names": ["go", "stop"]}
    gas_key = {"balance": str(2**128 - 1), "num_nonces": 4}
    listed = [
        (3 * 10**6 + 5, "FullAccess"),
        (2**64 - 1, {"FunctionCall": call}),
        (0, {"GasKeyFullAccess": gas_key}),
        (0, {"GasKeyFunctionCall": gas_key | call}),
        (5, {"FunctionCall": call | {"allowance": "9"}}),
    ]
    entries = [
        {"public_key": KEY, "access_key": {"nonce": nonce, "permission": permission}}
        for nonce, permission in listed
    ]
    with asking(Fake(keys={"a.near": entries})) as server:
        frame = lk.keys("a.near")
    assert len(server.requests) == 1
    assert rows(frame, "nonce", "permission", "added_at_block", "use_count") == [
        (3 * 10**6 + 5, "FullAccess", 4, 5),
        (2**64 - 1, "FunctionCall", 18446744073710, 551615),
        # The nonce of a gas key itself is not used (nearcore, add_gas_key).
        (0, "GasKeyFullAccess", None, None),
        (0, "GasKeyFunctionCall", None, None),
        (5, "FunctionCall", None, 5),
    ]
    assert rows(frame, "receiver_id", "method_names", "allowance", "is_unlimited") == [
        (None, None, None, None),
        ("app.near", ["go", "stop"], None, True),
        (None, None, None, None),
        ("app.near", ["go", "stop"], None, True),
        ("app.near", ["go", "stop"], 9, False),
    ]
    assert rows(frame, "balance", "num_nonces") == [
        (None, None),
        (None, None),
        (2**128 - 1, 4),
        (2**128 - 1, 4),
        (None, None),
    ]
    assert frame["balance"].dtype == "u128"


@pytest.mark.parametrize(
    "gas_key",
    [{"balance": "1", "num_nonces": 1.5}, {"balance": "1", "num_nonces": "4"}, {"balance": 1}],
    ids=str,
)
def test_a_gas_key_of_unknown_shape_is_refused(gas_key: dict[str, Any]) -> None:
    """A balance is text and a number of nonces an integer; nothing else is rounded to them."""
    access_key = {"nonce": 0, "permission": {"GasKeyFullAccess": gas_key}}
    entries = [{"public_key": KEY, "access_key": access_key}]
    with asking(Fake(keys={"a.near": entries})):
        with pytest.raises(errors.DecodeError) as caught:
            lk.keys("a.near")
        frame, failed = lk.keys("a.near", on_error="collect")
    assert caught.value.request == "the keys of a.near"
    assert len(frame) == 0
    assert rows(failed, "subject", "error") == [("a.near", "DecodeError")]


def test_keys_of_a_missing_account() -> None:
    """An empty key list of an account that does not exist is an error, not an empty frame."""
    account = {"amount": "1", "locked": "0", "code_hash": "1" * 32, "storage_usage": 100}
    with asking(Fake(accounts={"bare.near": account})):
        with pytest.raises(errors.UnknownAccountError) as caught:
            lk.keys("gone.near")
        bare = lk.keys("bare.near")
    assert caught.value.account_id == "gone.near"
    assert caught.value.block_height == HEAD
    assert len(bare) == 0


def paged_keys(size: int) -> Callable[[dict[str, Any]], Any]:
    """Answer with pages of keys as a node does, at most `size` keys each."""
    names = {"big.near": "abcdefg", "small.near": "xy", "even.near": "klmnop"}

    def query(params: dict[str, Any]) -> Any:
        if params.get("finality"):
            place = {"block_height": HEAD, "block_hash": fake_hash(HEAD)}
        else:
            place = {"block_height": 0, "block_hash": params["block_id"]}
        if params["account_id"] not in names:
            return failure("UNKNOWN_ACCOUNT", {"requested_account_id": params["account_id"]})
        listed = sorted(fake_key(letter) for letter in names[params["account_id"]])
        there = [key for key in listed if key > params.get("after_key", "")]
        page = there[: min(size, params["limit"])]
        last_key = {"last_key": page[-1]} if len(page) < len(there) else {}
        access_key = {"nonce": 1, "permission": "FullAccess"}
        entries = [{"public_key": key, "access_key": access_key} for key in page]
        return {"keys": entries, **last_key, **place}

    return query


def fake_key(seed: object) -> str:
    return f"ed25519:{fake_hash(seed)}"


def test_keys_come_in_pages() -> None:
    """All pages are read, each from the block of the first one; a full last page ends it."""
    with asking(Fake(methods={"query": paged_keys(3)})) as server:
        frame = lk.keys("big.near")
        even = lk.keys("even.near")
    assert frame["public_key"].tolist() == sorted(fake_key(letter) for letter in "abcdefg")
    assert even["public_key"].tolist() == sorted(fake_key(letter) for letter in "klmnop")
    sent = [call["params"] for call in server.calls]
    assert [len(frame) for frame in (frame, even)] == [7, 6]
    assert [params["account_id"] for params in sent] == ["big.near"] * 3 + ["even.near"] * 2
    assert {params["limit"] for params in sent} == {100}  # the maximum of nodes by default
    assert [params.get("block_id") for params in sent[:3]] == [None] + [fake_hash(HEAD)] * 2
    assert sent[1]["after_key"] == frame["public_key"].iloc[2]
    assert frame.attrs["block_hash"] == fake_hash(HEAD)


def test_keys_of_many_accounts() -> None:
    """The rows are in the order of the ids, all at one block; a missing account is a failure."""
    ids = ["small.near", "gone.near", "big.near", "small.near"]
    with asking(Fake(methods={"query": paged_keys(3)})) as server:
        frame, failed = lk.keys(ids, on_error="collect", progress=False)
        with pytest.raises(errors.UnknownAccountError):
            lk.keys(ids, progress=False)
        nothing, no_failures = lk.keys([], on_error="collect")
    assert frame.columns[0] == "account_id"
    assert frame["account_id"].tolist() == ["small.near"] * 2 + ["big.near"] * 7
    assert rows(failed, "subject", "error") == [("gone.near", "UnknownAccountError")]
    queries = [call["params"] for call in server.calls if call["method"] == "query"]
    assert {params["block_id"] for params in queries} == {fake_hash(HEAD)}
    assert frame.attrs["block_hash"] == fake_hash(HEAD)
    assert (len(nothing), len(no_failures)) == (0, 0)
    assert dtypes(nothing) == dtypes(frame)


def test_one_key_of_many_accounts() -> None:
    """A key is read from each account; one that lacks it is a failure."""
    place = {"block_height": 9, "block_hash": fake_hash(HEAD)}

    def query(params: dict[str, Any]) -> Any:
        if params["account_id"] == "b.near":
            return {"error": f"access key {KEY} does not exist while viewing", "logs": [], **place}
        return {"nonce": 7, "permission": "FullAccess", **place}

    ids = ["c.near", "b.near", "a.near"]
    with asking(Fake(methods={"query": query})):
        frame, failed = lk.keys(ids, public_key=KEY, on_error="collect", progress=False)
    assert rows(frame, "account_id", "nonce") == [("c.near", 7), ("a.near", 7)]
    assert rows(failed, "subject", "error") == [("b.near", "UnknownAccessKeyError")]


def test_pages_of_keys_that_do_not_advance_are_refused() -> None:
    """A host that ignores `after_key` is an error, and no endless list of keys."""

    def query(params: dict[str, Any]) -> Any:
        return paged_keys(3)({name: params[name] for name in set(params) - {"after_key"}})

    with asking(Fake(methods={"query": query})) as server:
        with pytest.raises(errors.DecodeError, match="does not begin after") as caught:
            lk.keys("big.near")
        assert len(server.requests) == 2
    assert caught.value.request == "the keys of big.near"


def test_one_key() -> None:
    """A single key is the row that the list has; a missing one is an error, not an empty frame."""
    place = {"block_height": 9, "block_hash": fake_hash(9)}

    def query(params: dict[str, Any]) -> Any:
        if params["account_id"] == "a.near":
            return {"nonce": 7, "permission": "FullAccess", **place}
        return {"error": f"access key {KEY} does not exist while viewing", "logs": [], **place}

    with asking(Fake(methods={"query": query})) as server:
        frame = lk.keys("a.near", public_key=KEY)
        with pytest.raises(errors.UnknownAccessKeyError) as caught:
            lk.keys("b.near", public_key=KEY)
    assert rows(frame, "account_id", "public_key", "nonce") == [("a.near", KEY, 7)]
    assert caught.value.public_key == KEY
    assert server.calls[0]["params"]["request_type"] == "view_access_key"


# Tokens ---------------------------------------------------------------------------------


def test_null_empty_and_zero_are_three_things() -> None:
    """A balance of null, of "" and of "0" never become each other."""
    fake = Fake()
    view = ft_view("a.near", ("x.near", None, 1), ("y.near", "", 2), ("z.near", "0", None))
    fake.rest["/v1/account/a.near/ft"] = view
    fake.rest["/v1/account/b.near/ft"] = {"account_id": "b.near"}
    fake.rest["/v1/account/c.near/ft"] = {"account_id": "c.near", "tokens": None, "new": [1]}
    with asking(fake):
        frame = lk.ft(["a.near", "b.near", "c.near"], progress=False)
        empty = lk.ft("b.near")
    assert rows(frame, "contract_id", "balance", "status", "last_update_block_height") == [
        ("x.near", None, "pending", 1),
        ("y.near", None, "broken", 2),
        ("z.near", 0, "ok", None),
    ]
    assert frame["balance"].iloc[0] is pd.NA
    assert len(empty) == 0
    assert dtypes(empty) == dtypes(frame)


def two_of_three() -> Fake:
    """Answer for a.near and c.near; fail for b.near."""
    fake = Fake()
    for account_id in ("a.near", "c.near"):
        path = f"/v1/account/{account_id}"
        fake.rest[path + "/ft"] = ft_view(account_id, ("t.near", str(2**128 - 1), 5))
        fake.rest[path + "/nft"] = nft_view(account_id, ("n.near", 6))
        fake.rest[path + "/full"] = full_view(account_id)
        fake.rest[path + "/staking"] = {"account_id": account_id, "pools": [{"pool_id": "p.near"}]}
    for view in ("ft", "nft", "full", "staking"):
        fake.rest[f"/v1/account/b.near/{view}"] = as_json("Invalid argument", 400)
    return fake


MANY: dict[str, Callable[..., Any]] = {
    "accounts": lambda ids, **options: lk.accounts(ids, progress=False, **options),
    "ft": lambda ids, **options: lk.ft(ids, progress=False, **options),
    "nft": lambda ids, **options: lk.nft(ids, progress=False, **options),
    "staking": lambda ids, **options: lk.staking(ids, progress=False, **options),
    "exposure": lambda ids, **options: lk.exposure(
        ids, liquid_tokens=["t.near"], progress=False, **options
    ),
}


@pytest.mark.parametrize("verb", MANY)
def test_collected_failures(verb: str) -> None:
    """With collect the others' rows are kept, in order, and the failed ones are listed."""
    with asking(two_of_three()):
        frame, failed = MANY[verb](["a.near", "b.near", "c.near"], on_error="collect")
        both = MANY[verb](["a.near", "c.near"])
    assert frame["account_id"].tolist() == ["a.near", "c.near"]
    pd.testing.assert_frame_equal(frame, both)
    assert rows(failed, "subject", "error", "retryable") == [
        ("b.near", "InvalidRequestError", False)
    ]
    assert "HTTP 400" in failed["message"].iloc[0]
    assert "b.near" in failed["message"].iloc[0]
    assert dtypes(failed) == ["str", "str", "str", "bool"]


@pytest.mark.parametrize("verb", MANY)
def test_raised_failures(verb: str) -> None:
    """With raise the typed error of the failed subject is raised."""
    with asking(two_of_three()), pytest.raises(errors.InvalidRequestError) as caught:
        MANY[verb](["a.near", "b.near", "c.near"])
    assert caught.value.status == 400
    assert "b.near" in str(caught.value)


@pytest.mark.parametrize("verb", MANY)
def test_no_subjects(verb: str) -> None:
    """No ids are no requests, an empty frame, and no failures."""
    with asking(two_of_three()) as server:
        frame, failed = MANY[verb]([], on_error="collect")
        full = MANY[verb](["a.near"])
    assert (len(frame), len(failed)) == (0, 0)
    assert dtypes(frame) == dtypes(full)
    assert len(server.requests) == 1


def test_a_value_that_fits_no_column_is_its_subjects_failure() -> None:
    """One account's broken number neither hides in the others' rows nor takes them along."""
    fake = two_of_three()
    fake.rest["/v1/account/b.near/ft"] = ft_view("b.near", ("t.near", "1", 1), ("u.near", "-1", 1))
    with asking(fake):
        frame, failed = lk.ft(["a.near", "b.near", "c.near"], on_error="collect", progress=False)
        with pytest.raises(errors.DecodeError) as caught:
            lk.ft(["a.near", "b.near", "c.near"], progress=False)
    assert frame["account_id"].tolist() == ["a.near", "c.near"]
    assert rows(failed, "subject", "error") == [("b.near", "DecodeError")]
    assert caught.value.path == "balance[1]"
    assert "b.near" in str(caught.value)
    assert "'-1'" in str(caught.value)


def test_amounts_in_human_units_and_back() -> None:
    """What a verb answers is written in units and read back, every digit kept."""
    fake = Fake()
    tokens = [("t.near", "1234500000", 1), ("u.near", None, 1), ("v.near", str(2**128 - 1), 1)]
    fake.rest["/v1/account/a.near/ft"] = ft_view("a.near", *tokens)
    with asking(fake):
        balance = lk.ft("a.near")["balance"]
    written = lk.to_units(balance, 6)
    assert written.dropna().tolist() == ["1234.5", "340282366920938463463374607431768.211455"]
    assert written.isna().tolist() == [False, True, False]
    assert lk.from_units(written, 6).equals(balance)
    show = lk.amount_format(6, "USDT")
    assert show(balance.iloc[0]) == "1,234.5 USDT"
    assert show(balance.iloc[1]) == "<NA>"


def test_frames_go_to_parquet_and_come_back(tmp_path: Path) -> None:
    """A frame of a verb comes back from a file with its dtypes; 39 digits are refused."""
    fake = Fake()
    tokens = [("t.near", "5", 7), ("u.near", None, None), ("v.near", str(10**38 - 1), 1)]
    fake.rest["/v1/account/a.near/ft"] = ft_view("a.near", *tokens)
    fake.rest["/v1/account/b.near/ft"] = ft_view("b.near", ("v.near", str(2**128 - 1), 1))
    with asking(fake):
        frame, hostile = lk.ft("a.near"), lk.ft("b.near")
    lk.write_parquet(frame, tmp_path / "lk.parquet")
    frame.to_parquet(tmp_path / "pd.parquet")
    for name in ("lk", "pd"):
        pd.testing.assert_frame_equal(lk.read_parquet(tmp_path / f"{name}.parquet"), frame)
        balance = pd.read_parquet(tmp_path / f"{name}.parquet")["balance"]
        pd.testing.assert_series_equal(balance, frame["balance"])
    table = lk.to_arrow(frame)
    assert str(table.schema.field("balance").type) == "decimal128(38, 0)"
    assert table.column("balance").to_pylist() == [5, None, 10**38 - 1]
    with pytest.raises(errors.InvalidRequestError, match=r"column balance .* too large for"):
        lk.to_arrow(hostile)


def test_frames_go_to_polars() -> None:
    """Polars has every digit, missing amounts and the types of a verb's frame; sums are exact."""
    pl = pytest.importorskip("polars", reason="the extra `bulk`")
    fake = Fake()
    tokens = [("t.near", "5", 7), ("u.near", None, None), ("v.near", str(10**38 - 6), 1)]
    fake.rest["/v1/account/a.near/ft"] = ft_view("a.near", *tokens)
    fake.rest["/v1/account/b.near/ft"] = ft_view("b.near", ("v.near", str(2**128 - 1), 1))
    with asking(fake):
        frame, hostile = lk.ft("a.near"), lk.ft("b.near")
    rows = lk.to_polars(frame)
    assert rows.columns == list(frame.columns)
    assert rows.schema["balance"] == pl.Decimal(38, 0)
    assert rows.schema["last_update_block_height"] == pl.Int64
    assert rows["balance"].to_list() == [5, None, 10**38 - 6]
    assert rows["balance"].sum() == 10**38 - 1
    with pytest.raises(errors.InvalidRequestError, match=r"column balance .* too large for"):
        lk.to_polars(hostile)
    assert lk.to_polars(hostile.astype({"balance": "str"}))["balance"].item() == str(2**128 - 1)
    times = lk.to_polars(pd.DataFrame({"time": pd.to_datetime([5], unit="ns", utc=True)}))
    assert times.schema["time"] == pl.Datetime("ns", "UTC")


def test_frames_go_to_excel(tmp_path: Path) -> None:
    """An Excel file of a verb's frame has every digit of the largest amount."""
    pytest.importorskip("xlsxwriter", reason="the extra `excel`")
    pytest.importorskip("openpyxl")
    fake = Fake()
    tokens = [("t.near", "5", 7), ("u.near", None, None), ("v.near", str(2**128 - 1), 1)]
    fake.rest["/v1/account/a.near/ft"] = ft_view("a.near", *tokens)
    with asking(fake):
        frame = lk.ft("a.near")
    lk.to_excel(frame, tmp_path / "ft.xlsx")
    balance = pd.read_excel(tmp_path / "ft.xlsx", dtype={"balance": "u128"})["balance"]
    pd.testing.assert_series_equal(balance, frame["balance"])


def test_nft_entries_with_a_token_id() -> None:
    """Two tokens of one collection are two rows, and still one collection in the counts."""
    entries = nft_view("a.near", ("n.near", 6, "1"), ("n.near", 7, "2"), ("m.near", None))
    fake = Fake()
    fake.rest["/v1/account/a.near/nft"] = entries
    fake.rest["/v1/account/a.near/full"] = full_view("a.near", nfts=entries["tokens"])
    with asking(fake):
        frame, snapshot = lk.nft("a.near"), lk.snapshot("a.near")
    assert rows(frame, "account_id", "contract_id", "token_id", "last_update_block_height") == [
        ("a.near", "n.near", "1", 6),
        ("a.near", "n.near", "2", 7),
        ("a.near", "m.near", None, None),
    ]
    pd.testing.assert_frame_equal(snapshot.nft, frame)
    assert snapshot.state["n_nfts"].tolist() == [2]
    assert repr(snapshot) == "<Snapshot a.near: 0 tokens, 2 NFT collections, 0 pools>"


def test_the_subject_of_the_request_completes_a_response() -> None:
    """A response that does not repeat its account, key or token is about the requested one."""
    token = {"contract_id": "t.near", "balance": "5"}
    fake = Fake()
    for account_id in ("a.near", "b.near"):
        path = f"/v1/account/{account_id}"
        fake.rest[f"{path}/ft"] = {"tokens": [token]}
        fake.rest[f"{path}/nft"] = {"tokens": [{"contract_id": "n.near", "token_id": "1"}]}
        fake.rest[f"{path}/staking"] = {"pools": [{"pool_id": "p.near"}]}
        fake.rest[f"{path}/full"] = {"tokens": [token], "state": {}}
    fake.rest[f"/v1/public_key/{KEY.replace(':', '%3A')}"] = {"account_ids": ["a.near"]}
    fake.rest["/v1/ft/t.near/top"] = {"accounts": [{"account_id": "a.near", "balance": "5"}]}
    with asking(fake):
        for verb in ("ft", "nft", "staking", "accounts", "exposure"):
            frame = MANY[verb](["a.near", "b.near"])
            assert frame["account_id"].tolist() == ["a.near", "b.near"]
        keys = lk.accounts_of(KEY)
        holders = lk.top_holders("t.near")
    assert rows(keys, "public_key", "account_id") == [(KEY, "a.near")]
    assert rows(holders, "contract_id", "account_id", "balance") == [("t.near", "a.near", 5)]


@pytest.mark.parametrize(
    ("state", "amounts"),
    [
        ({}, (None, None, None, None)),
        ({"balance": "10"}, (10, None, None, None)),
        ({"balance": "10", "storage_bytes": 1000}, (10, None, 1000, None)),
        ({"balance": "10", "locked": "0", "storage_bytes": 1}, (10, 0, 1, 10)),
    ],
)
def test_a_state_that_lacks_members(state: dict[str, Any], amounts: tuple[Any, ...]) -> None:
    """What a state does not state is missing, also what would be computed from it."""
    fake = Fake()
    fake.rest["/v1/account/a.near/full"] = full_view("a.near", state=state)
    with asking(fake):
        frame = lk.accounts("a.near")
    assert rows(frame, "balance", "locked", "storage_bytes", "spendable") == [amounts]
    assert rows(frame, "status", "n_tokens") == [("ok", 0)]


OTHER_KINDS: dict[str, tuple[dict[str, Any], ...]] = {
    "ft": (
        {"account_id": "a.near", "contract_ids": ["t.near"]},
        {"account_id": "a.near", "pools": []},
        {"account_id": "a.near", "tokens": [{"contract_id": "n.near"}]},
        {"status": "ok"},
        {},
    ),
    "nft": (
        {"account_id": "a.near", "contract_ids": ["n.near"]},
        {"account_id": "a.near", "tokens": [{"contract_id": "t.near", "balance": None}]},
        {"account_id": "a.near", "nfts": []},
    ),
    "staking": (
        {"account_id": "a.near", "tokens": []},
        {"account_id": "a.near", "pools": ["p.near"]},
    ),
    "accounts": (
        {"account_id": "a.near", "tokens": []},
        {"account_id": "a.near", "pools": []},
        {"account_id": "a.near", "contract_ids": []},
    ),
}


def test_a_response_of_another_kind(subtests: pytest.Subtests) -> None:
    """A response of another kind is an error with its request, never an empty frame."""
    cases = [(verb, body) for verb, bodies in OTHER_KINDS.items() for body in bodies]
    for verb, body in cases:
        with subtests.test(verb=verb, body=body):
            reply = as_json(body)
            with asking(lambda *_, reply=reply: reply), pytest.raises(errors.DecodeError) as caught:
                MANY[verb](["a.near"])
            assert "a.near" in str(caught.value)
            assert caught.value.path is not None


def test_a_response_with_nothing_but_its_account() -> None:
    """Any list may be absent: an account without any has no rows, and nothing is known of it."""
    with asking(lambda *_: as_json({"account_id": "a.near"})):
        for verb in ("ft", "nft", "staking"):
            with pytest.warns(UserWarning, match=r"does not know a\.near"):
                assert len(MANY[verb](["a.near"])) == 0
        assert rows(MANY["accounts"](["a.near"]), "status", "n_tokens") == [("not_indexed", None)]


@dataclass
class RecordedIndexer:
    """The REST API as recorded for an unknown account: empty lists, and a state of null."""

    accounts: tuple[str, ...]
    paths: list[str] = field(default_factory=list)

    def __call__(self, method: str, path: str, _headers: object, _body: bytes) -> Reply:
        """Answer a request; in every pool an unknown account has nothing."""
        if method == "POST":
            zeros = {"staked_balance": "0", "unstaked_balance": "0", "can_withdraw": True}
            return result({"result": list(as_bytes({"account_id": "x", **zeros})), "logs": []})
        self.paths.append(path)
        _, _, _, account_id, kind = path.split("/")
        if kind == "staking":
            return as_json({"account_id": account_id, "pools": []})
        if kind != "full":
            return as_json({"account_id": account_id, "tokens": []})
        state = {"balance": "1", "locked": "0", "storage_bytes": 182}
        known = account_id in self.accounts
        return as_json(full_view(account_id, state=state if known else None))


@pytest.mark.parametrize("verb", ["ft", "nft", "staking"])
def test_a_misspelt_account_is_named(verb: str) -> None:
    """What an account without tokens and no account have in common is told apart, once a call.

    Unknown accounts have empty lists and `state: null`, as the service sends them.
    """
    ids = ["alise.near", "alice.near", "empty.near"]
    indexer = RecordedIndexer(("alice.near", "empty.near"))
    with asking(indexer), pytest.warns(UserWarning, match="does not know") as caught:
        assert len(MANY[verb](ids)) == 0
    [message] = [str(warning.message) for warning in caught]
    assert "does not know alise.near (Did you mean 'alice.near'?): check the spelling" in message


def test_accounts_that_hold_nothing_are_looked_up_within_a_limit() -> None:
    """No warning names an account that exists; at most twenty accounts are looked up."""
    ids = [f"a{number}.near" for number in range(30)]
    indexer = RecordedIndexer(tuple(ids))
    with asking(indexer):
        lk.ft(ids, progress=False)
    assert sum(path.endswith("/full") for path in indexer.paths) == 20


def test_a_misspelt_owner_is_named_by_nft_tokens() -> None:
    """A collection's contract returns no tokens for an account that does not exist, too."""
    indexer = RecordedIndexer(("alice.near",))

    def answer(method: str, path: str, headers: object, body: bytes) -> Reply:
        if method == "GET":
            return indexer(method, path, headers, body)
        place = {"block_height": 9, "block_hash": fake_hash(9)}
        return result({"result": list(b"[]"), "logs": [], **place})

    with asking(answer), pytest.warns(UserWarning, match="does not know alise.near"):
        lk.nft_tokens("alise.near", "c.near", progress=False)


def test_a_position_of_an_unknown_account_says_so() -> None:
    """A pool has zeros for any account; the status of one that is not known is not ok."""
    indexer = RecordedIndexer(("alice.near",))
    with asking(indexer), pytest.warns(UserWarning, match="does not know"):
        frame = lk.staking(["alice.near", "alise.near"], pools=["p.near"], progress=False)
    assert rows(frame, "account_id", "staked", "status") == [
        ("alice.near", 0, "ok"),
        ("alise.near", 0, "not_indexed"),
    ]


def test_a_query_passes_through() -> None:
    """`get` sends a query unchanged, and never a key in it."""
    with asking(lambda *_: as_json([1])) as server:
        ledger = server.ledger
        assert ledger.get("/v1/x?network=testnet&a=%20b") == [1]
        assert server.paths == ["/v1/x?network=testnet&a=%20b"]
        with pytest.raises(errors.InvalidRequestError) as caught:
            ledger.get("/v1/x?a=1&APIKEY=secret")
    assert "secret" not in str(caught.value)
    assert len(server.requests) == 1


def test_top_holders() -> None:
    """Ranks count the wire's order; null and "" are told apart here too."""
    holders = [("a.near", "5"), ("b.near", None), ("c.near", ""), ("d.near", "0")]
    fake = Fake()
    fake.rest["/v1/ft/t.near/top"] = {
        "token_id": "t.near",
        "accounts": [{"account_id": a, "balance": b} for a, b in holders],
    }
    fake.rest["/v1/ft/u.near/top"] = {"token_id": "u.near"}
    with asking(fake):
        frame, empty = lk.top_holders("t.near"), lk.top_holders("u.near")
    assert rows(frame, "rank", "account_id", "balance", "status") == [
        (1, "a.near", 5, "ok"),
        (2, "b.near", None, "pending"),
        (3, "c.near", None, "broken"),
        (4, "d.near", 0, "ok"),
    ]
    assert dtypes(empty) == dtypes(frame)


# Some holders of first.tkn.near in a recorded response of api.fastnear.com; all balances there
# add up to 10^27.
FIRST_TOKEN = {
    "mob.near": "979894691374420631019486155",
    "ref-finance.near": "10290906529190035816723",
    "ryanmehta.near": "0",
}


def token_fake(supply: object, balances: dict[str, str]) -> Fake:
    """Invent the holders and the view methods of t.near."""
    holders = [{"account_id": name, "balance": text} for name, text in balances.items()]
    fake = Fake(rest={"/v1/ft/t.near/top": {"accounts": holders}})
    fake.views["t.near", "ft_metadata"] = as_bytes({"symbol": "FIRST", "decimals": 18})
    fake.views["t.near", "ft_total_supply"] = as_bytes(supply)
    return fake


def test_shares_of_holders_are_parts_of_the_total_supply() -> None:
    """A share needs the contract's supply, since only the largest holders are listed."""
    with asking(token_fake(str(10**27), FIRST_TOKEN)) as server:
        frame = lk.top_holders("t.near", metadata=True)
        assert len(server.requests) == 3
        lk.top_holders("t.near")
        assert len(server.requests) == 4
    assert frame["share"].round(12).tolist() == [0.979894691374, 0.000010290907, 0.0]
    assert frame["total_supply"].tolist() == [10**27] * 3
    assert rows(frame.head(1), "symbol", "decimals", "amount", "metadata_status") == [
        ("FIRST", 18, 979894691.3744206, "ok")
    ]
    assert "notes" not in frame.attrs


@pytest.mark.parametrize("supply", [None, "1.5", -1, str(2**128), [], "0"])
def test_shares_of_an_unknown_supply_are_missing(supply: object) -> None:
    """A supply that is not an amount is a warning and a note; none has shares of zero."""
    note = "the total supply of t.near can't be read, so that shares are missing"
    fake = token_fake(supply, {"a.near": "5"})
    with asking(fake), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = lk.top_holders("t.near", metadata=True)
    assert frame["share"].isna().all()
    assert frame["balance"].tolist() == [5]
    notes = [] if supply == "0" else [note]
    assert frame.attrs.get("notes", []) == notes == [str(w.message) for w in caught]


def test_a_node_that_answers_something_else_has_stated_no_supply() -> None:
    """What a node sends instead of a result is an error, and no unknown supply."""
    fake = token_fake("5", {"a.near": "5"})
    fake.views["t.near", "ft_total_supply"] = result({"result": "no bytes", "logs": []})
    with asking(fake), pytest.raises(errors.DecodeError, match="ft_total_supply"):
        lk.top_holders("t.near", metadata=True)


# Metadata -------------------------------------------------------------------------------

HOSTILE: dict[str, tuple[Any, str, str | None, int | None]] = {
    "fine.near": ({"symbol": "FINE", "decimals": 2}, "ok", "FINE", 2),
    "icon.near": (
        {"symbol": "ICON", "decimals": 0, "icon": "data:image/svg+xml," + "A" * 2**20},
        "ok",
        "ICON",
        0,
    ),
    "text.near": ({"symbol": "TEXT", "decimals": "24"}, "broken", "TEXT", None),
    "minus.near": ({"symbol": "MINUS", "decimals": -1}, "broken", "MINUS", None),
    "large.near": ({"symbol": "LARGE", "decimals": 300}, "broken", "LARGE", None),
    "half.near": ({"symbol": "HALF", "decimals": 1.5}, "broken", "HALF", None),
    "yes.near": ({"symbol": "YES", "decimals": True}, "broken", "YES", None),
    "huge.near": (b'{"symbol":"HUGE","decimals":1e400}', "broken", None, None),
    "tags.near": (
        {"symbol": "<script>alert(1)</script>", "decimals": 1},
        "ok",
        "<script>alert(1)</script>",
        1,
    ),
    "ctrl.near": (
        {"symbol": "A\x00\x1b[31mB\u202e\nC", "decimals": 1},
        "ok",
        r"A\x00\x1b[31mB\u202e C",
        1,
    ),
    "long.near": ({"symbol": "L" * 10**5, "decimals": 1}, "ok", "L" * 64, 1),
    "deep.near": (b'{"x":' + b"[" * 10**5 + b"]" * 10**5 + b"}", "broken", None, None),
    "list.near": ([1, 2], "broken", None, None),
    "null.near": (None, "broken", None, None),
    "bytes.near": (b"\xff\xfe\x00", "broken", None, None),
    "nothing.near": (b"", "broken", None, None),
    "number.near": ({"symbol": 7, "decimals": 3}, "broken", None, 3),
    "blank.near": ({"symbol": "  ", "decimals": 3}, "broken", None, 3),
}


def test_hostile_metadata() -> None:
    """Whatever a token's contract says of itself, the frame stands and says what is usable."""
    fake = Fake()
    for contract_id, (told, *_) in HOSTILE.items():
        answer = told if isinstance(told, bytes) else as_bytes(told)
        fake.views[contract_id, "ft_metadata"] = answer
    fake.views["panic.near", "ft_metadata"] = panic("no metadata")
    contracts = [*HOSTILE, "panic.near", "gone.near"]
    fake.rest["/v1/account/a.near/ft"] = ft_view("a.near", *((c, "250", 1) for c in contracts))
    with asking(fake):
        frame = lk.ft("a.near", metadata=True, progress=False)
    expected = [(status, symbol, decimals) for _, status, symbol, decimals in HOSTILE.values()]
    expected += [("missing", None, None)] * 2
    assert rows(frame, "metadata_status", "symbol", "decimals") == expected
    amounts = dict(rows(frame, "contract_id", "amount"))
    assert amounts["fine.near"] == 2.5
    assert amounts["icon.near"] == 250.0
    assert amounts["tags.near"] == 25.0
    assert amounts["number.near"] == 0.25
    assert amounts["text.near"] is None
    assert frame["balance"].tolist() == [250] * len(contracts)


def test_metadata_that_could_not_be_asked() -> None:
    """Not reaching a contract is that contract's failure; the balances stay, told as unread."""
    fake = Fake()
    fake.rest["/v1/account/a.near/ft"] = ft_view("a.near", ("t.near", "1", 1))
    fake.rest["/v1/account/b.near/ft"] = ft_view("b.near", ("u.near", "1", 1))
    fake.views["t.near", "ft_metadata"] = Reply(503)
    fake.views["u.near", "ft_metadata"] = as_bytes({"symbol": "U", "decimals": 1})
    with asking(fake):
        frame, failed = lk.ft(
            ["a.near", "b.near"], metadata=True, on_error="collect", progress=False
        )
        with pytest.raises(errors.TransportError) as caught:
            lk.ft("a.near", metadata=True)
    assert rows(frame, "account_id", "balance", "symbol", "metadata_status") == [
        ("a.near", 1, None, "unread"),
        ("b.near", 1, "U", "ok"),
    ]
    assert rows(failed, "subject", "error", "retryable") == [("t.near", "TransportError", True)]
    assert caught.value.status == 503


def test_a_snapshot_has_symbols_and_amounts_if_they_are_asked_for() -> None:
    """Without metadata there is one request; an unread symbol hides no balance."""
    fake = Fake()
    tokens = [{"contract_id": name, "balance": "250"} for name in ("t.near", "u.near", "v.near")]
    fake.rest["/v1/account/a.near/full"] = {"state": {}, "tokens": tokens}
    fake.views["t.near", "ft_metadata"] = as_bytes({"symbol": "T", "decimals": 2})
    fake.views["u.near", "ft_metadata"] = Reply(503)
    with asking(fake) as server:
        plain = lk.snapshot("a.near")
        assert len(server.requests) == 1
        snapshot = lk.snapshot("a.near", metadata=True)
    assert plain.ft.attrs["schema"] == "ft"
    assert rows(snapshot.ft, "balance", "symbol", "amount", "metadata_status") == [
        (250, "T", 2.5, "ok"),
        (250, None, None, "unread"),
        (250, None, None, "missing"),
    ]


# NFT tokens -----------------------------------------------------------------------------


def collection(tokens: int, cap: int | None = None, **token: Any) -> Callable[[Any], bytes]:
    """Invent an NFT contract that pages, capped at `cap` tokens a page."""

    def page(args: dict[str, Any]) -> bytes:
        assert isinstance(args["from_index"], str)
        start, limit = int(args["from_index"]), min(args["limit"], cap or tokens)
        owner = args["account_id"]
        ids = range(tokens)[start : start + limit]
        return as_bytes([{"token_id": f"#{i}", "owner_id": owner, **token} for i in ids])

    return page


@pytest.mark.parametrize("cap", [None, 3])
def test_nft_tokens_over_pages(cap: int | None) -> None:
    """Three pages and more make one frame, also where the contract caps its pages."""
    fake = Fake(views={("art.near", "nft_tokens_for_owner"): collection(12, cap)})
    with asking(fake) as server:
        frame = lk.nft_tokens("a.near", "art.near", at=120, page=5)
    assert frame["token_id"].tolist() == [f"#{i}" for i in range(12)]
    asked = [c["params"] for c in server.calls if c["method"] == "query"]
    starts = [json.loads(base64.b64decode(p["args_base64"]))["from_index"] for p in asked]
    assert starts == (["0", "5", "10", "12"] if cap is None else ["0", "3", "6", "9", "12"])
    assert asked[0]["block_id"] == 120
    assert {p["block_id"] for p in asked[1:]} == {fake_hash(120)}  # as the first page states
    assert (frame.attrs["block_height"], frame.attrs["block_hash"]) == (120, fake_hash(120))


def test_nft_tokens_of_a_contract_that_does_not_page() -> None:
    """A contract that always gives all tokens is asked twice, and its tokens come once."""
    all_of_them = as_bytes([{"token_id": "#0"}, {"token_id": "#1"}])
    with asking(Fake(views={("art.near", "nft_tokens_for_owner"): all_of_them})) as server:
        frame = lk.nft_tokens("a.near", "art.near")
    assert frame["token_id"].tolist() == ["#0", "#1"]
    assert len(server.requests) == 2


def test_nft_tokens_of_a_contract_that_panics_past_the_end() -> None:
    """The embedded ledger's collections do, as the standard's library: it is the end, no error."""
    ledger = lk.connect("local")
    frame = lk.nft_tokens("alice.near", "stamps.grace.near", page=1)
    assert frame["token_id"].tolist() == ["17"]
    with pytest.raises(errors.ContractPanicError, match="Out of bounds"):
        lk.view(
            "stamps.grace.near",
            "nft_tokens_for_owner",
            {"account_id": "alice.near", "from_index": "1", "limit": 1},
            ledger=ledger,
        )


def test_a_contract_that_lists_no_tokens_is_named() -> None:
    """The remedy is about the contract, which answers in its own way, and not about the service."""
    fake = Fake(views={("art.near", "nft_tokens_for_owner"): as_bytes({"tokens": []})})
    with asking(fake), pytest.raises(errors.DecodeError, match=r"of art\.near") as caught:
        lk.nft_tokens("a.near", "art.near")
    assert "The contract returns something else" in str(caught.value)


def ends_at(count: int, supply: Any) -> dict[tuple[str, str], Any]:
    """Invent a collection whose `limit` is the end of the slice, with its supply for an owner."""

    def page(args: dict[str, Any]) -> bytes:
        ids = range(count)[int(args["from_index"]) : args["limit"]]
        return as_bytes([{"token_id": f"#{i}"} for i in ids])

    return {
        ("art.near", "nft_tokens_for_owner"): page,
        ("art.near", "nft_supply_for_owner"): supply,
    }


@pytest.mark.parametrize("supply", [as_bytes("120"), as_bytes(120)])
def test_nft_tokens_where_limit_is_an_end(supply: bytes) -> None:
    """An early empty page is checked with the supply for the owner (NEP-181), and read on."""
    with asking(Fake(views=ends_at(120, supply))), warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = lk.nft_tokens("a.near", "art.near")
    assert frame["token_id"].tolist() == [f"#{i}" for i in range(120)]
    assert "notes" not in frame.attrs


@pytest.mark.parametrize(
    ("supply", "total"), [(panic("MethodNotFound"), "an unknown number of"), (b'"130"', "130")]
)
def test_nft_tokens_that_may_be_more(supply: Any, total: str) -> None:
    """Without a supply, or with a larger one, the frame says that it has at least these."""
    count = 50 if "unknown" in total else 120
    note = f"a.near has at least {count} tokens of art.near, which listed {count} of {total} tokens"
    with asking(Fake(views=ends_at(120, supply))), pytest.warns(UserWarning, match=note):
        frame = lk.nft_tokens("a.near", "art.near")
    assert (len(frame), frame.attrs["notes"]) == (count, [note])


@pytest.mark.parametrize(("index", "limit"), [(int, int), (str, str), (int, str)])
def test_nft_tokens_of_other_argument_types(index: type, limit: type) -> None:
    """A contract that wants a number for from_index or a text for limit gets it."""

    def page(args: dict[str, Any]) -> Any:
        if (type(args["from_index"]), type(args["limit"])) != (index, limit):
            return panic("Failed to deserialize input from JSON.: invalid type: integer `50`")
        start = int(args["from_index"])
        return as_bytes([{"token_id": f"#{i}"} for i in range(7)[start : start + 3]])

    with asking(Fake(views={("art.near", "nft_tokens_for_owner"): page})):
        frame = lk.nft_tokens(["a.near", "b.near"], "art.near", progress=False)
    assert frame["token_id"].tolist() == [f"#{i}" for i in range(7)] * 2


@pytest.mark.parametrize("page", [50, 2, 1])
def test_nft_tokens_are_read_each_for_itself(page: int) -> None:
    """A member or a token that can't be read is missing with a note, and hides no other one."""
    tokens = [
        {"token_id": "a", "metadata": "a text"},
        {"token_id": 2**70, "metadata": {"title": "numbered"}},
        {"token_id": "c", "metadata": {"title": "listed"}, "approved_account_ids": ["m.near"]},
        {"owner_id": "a.near"},
        "d",
        {"token_id": "e", "metadata": {"title": "fine"}, "approved_account_ids": {"m.near": 1}},
    ]
    views = ends_at(6, as_bytes("6"))
    views["art.near", "nft_tokens_for_owner"] = lambda args: as_bytes(
        tokens[int(args["from_index"]) :][: args["limit"]]
    )
    with asking(Fake(views=views)), pytest.warns(UserWarning, match="art.near sent what can't be"):
        frame = lk.nft_tokens("a.near", "art.near", page=page)
    assert rows(frame, "token_id", "title", "approved_account_ids") == [
        ("a", None, None),
        ("1180591620717411303424", "numbered", None),
        ("c", "listed", None),
        ("e", "fine", {"m.near": 1}),
    ]
    unread = [
        "metadata of token 'a'",
        "approved_account_ids of token 'c'",
        *["a token without a token_id"] * 2,
    ]
    assert frame.attrs["notes"] == [f"art.near sent what can't be read: {', '.join(unread)}"]


def test_chunks_of_the_first_block_after_a_resharding() -> None:
    """Both halves of a split shard repeat its header: one chunk, and the key stays a key."""
    # Source: nearcore, Chain::get_prev_chunk_headers, and validate_chunk_headers, which compares.
    block = make_block(120, chunks=2)
    split = make_chunk_header(119, 5)
    block["chunks"] += [split, split]
    block["header"]["chunk_mask"] = [True, True, False, False]
    with asking(Fake(blocks={120: block})):
        frame = lk.chunks(120)
        blocks = lk.block(120)
    assert rows(frame, "block_height", "shard_id", "is_new") == [
        (120, 0, True),
        (120, 1, True),
        (120, 5, False),
    ]
    assert rows(blocks, "n_chunks") == [(4,)]


def test_nft_metadata_of_any_type() -> None:
    """Numbers where texts belong, wrapped owners and absent members are all kept as text."""
    token = {
        "owner_id": {"Account": "a.near"},
        "metadata": {"title": "<b>", "copies": 1, "issued_at": 1700000000000, "extra": {"k": []}},
        "approved_account_ids": {"market.near": 3},
    }
    fake = Fake(views={("art.near", "nft_tokens_for_owner"): collection(1, None, **token)})
    with asking(fake):
        frame = lk.nft_tokens("a.near", "art.near")
    columns = ("owner_id", "title", "copies", "issued_at", "extra", "media")
    assert rows(frame, *columns) == [
        ('{"Account":"a.near"}', "<b>", "1", "1700000000000", '{"k":[]}', None)
    ]
    assert frame["approved_account_ids"].tolist() == [{"market.near": 3}]


def test_nft_tokens_of_many_accounts() -> None:
    """Accounts are paged side by side; one whose call fails is listed and has no rows."""

    def answer(args: dict[str, Any]) -> Any:
        if args["account_id"] == "b.near":
            return panic("out of gas")
        return collection(4)(args)

    with asking(Fake(views={("art.near", "nft_tokens_for_owner"): answer})):
        frame, failed = lk.nft_tokens(
            ["a.near", "b.near", "c.near"], "art.near", page=3, on_error="collect", progress=False
        )
        with pytest.raises(errors.ContractPanicError) as caught:
            lk.nft_tokens("b.near", "art.near")
    assert frame["account_id"].tolist() == ["a.near"] * 4 + ["c.near"] * 4
    assert rows(failed, "subject", "error") == [("b.near", "ContractPanicError")]
    assert caught.value.panic_msg == "out of gas"


# Staking --------------------------------------------------------------------------------


def pool(staked: str, unstaked: str = "0", *, can_withdraw: bool = True) -> Callable[[Any], bytes]:
    told = {"staked_balance": staked, "unstaked_balance": unstaked, "can_withdraw": can_withdraw}
    return lambda args: as_bytes(told | {"account_id": args["account_id"]})


def pools_of(account_id: str, *pool_ids: str) -> dict[str, Any]:
    """Invent a staking view."""
    listed = [{"pool_id": p, "last_update_block_height": 3} for p in pool_ids]
    return {"account_id": account_id, "pools": listed}


def test_balances_that_are_json_numbers() -> None:
    """A contract's JSON number is exact with all its digits; a rounded one is not an amount."""
    exact = 340282366920938463463374607431768211455
    position = {"staked_balance": exact, "unstaked_balance": 7, "can_withdraw": True}
    fake = Fake(
        rest={"/v1/account/a.near/staking": pools_of("a.near", "p.near")},
        views={
            ("t.near", "ft_balance_of"): as_bytes(exact),
            ("r.near", "ft_balance_of"): b"1e24",
            ("p.near", "get_account"): as_bytes(position),
        },
    )
    with asking(fake):
        view = lk.view("t.near", "ft_balance_of", {"account_id": "a.near"})
        read = lk.history(
            "a.near", 120, 120, every=1, views="ft", contracts=["t.near", "r.near"], progress=False
        )
        staked = lk.staking("a.near", positions=True, progress=False)
    assert view == exact
    assert rows(read, "contract_id", "balance", "status") == [
        ("t.near", exact, "ok"),
        ("r.near", None, "broken"),
    ]
    assert rows(staked, "staked", "unstaked", "status") == [(exact, 7, "ok")]


def test_staking_positions() -> None:
    """Listed and named pools are asked; what is no pool is said to be none."""
    fake = Fake(
        views={
            ("one.poolv1.near", "get_account"): pool(str(10**30), "7", can_withdraw=False),
            ("two.poolv1.near", "get_account"): pool("0"),
            ("text.near", "get_account"): b"hello",
            ("odd.near", "get_account"): pool("many"),
            ("panic.near", "get_account"): panic("no"),
        }
    )
    fake.rest["/v1/account/a.near/staking"] = pools_of("a.near", "one.poolv1.near", "text.near")
    more = ["two.poolv1.near", "one.poolv1.near", "panic.near", "gone.near", "odd.near"]
    with asking(fake):
        frame = lk.staking("a.near", pools=more, progress=False)
        plain = lk.staking("a.near")
    columns = ("pool_id", "staked", "unstaked", "can_withdraw", "status", "source")
    assert rows(frame, *columns, "last_update_block_height") == [
        ("one.poolv1.near", 10**30, 7, False, "ok", "indexed", 3),
        ("text.near", None, None, None, "not_a_pool", "indexed", 3),
        ("two.poolv1.near", 0, 0, True, "ok", "asked", None),
        ("panic.near", None, None, None, "not_a_pool", "asked", None),
        ("gone.near", None, None, None, "not_a_pool", "asked", None),
        ("odd.near", None, None, None, "not_a_pool", "asked", None),
    ]
    assert list(plain.columns) == ["account_id", "pool_id", "last_update_block_height"]


def test_a_pool_that_could_not_be_asked() -> None:
    """Not reaching a pool is a failure, never an absent stake."""
    fake = Fake(
        views={("one.near", "get_account"): Reply(500), ("two.near", "get_account"): pool("1")}
    )
    fake.rest["/v1/account/a.near/staking"] = pools_of("a.near", "one.near", "two.near")
    with asking(fake):
        frame, failed = lk.staking("a.near", positions=True, on_error="collect", progress=False)
        with pytest.raises(errors.TransportError):
            lk.staking("a.near", positions=True, progress=False)
    assert rows(frame, "pool_id", "staked") == [("two.near", 1)]
    assert rows(failed, "subject", "error") == [("a.near in one.near", "TransportError")]


def exposed() -> Fake:
    """Invent six accounts of all classes."""
    token = {"contract_id": "liquid.near", "last_update_block_height": 1}
    other = {"contract_id": "coin.near", "balance": "5", "last_update_block_height": 1}
    told: dict[str, tuple[list[str], list[str | None]]] = {
        "both.near": (["one.near"], ["9"]),
        "direct.near": (["one.near", "zero.near"], []),
        "liquid.near": ([], ["9"]),
        "none.near": ([], []),
        "spent.near": (["zero.near"], ["0"]),
        "unsure.near": (["text.near"], [None]),
    }
    fake = Fake(
        views={
            ("one.near", "get_account"): pool("1"),
            ("zero.near", "get_account"): pool("0"),
            ("text.near", "get_account"): b"hello",
        }
    )
    for account_id, (pools, balances) in told.items():
        tokens = [token | {"balance": balance} for balance in balances] + [other]
        listed = pools_of(account_id, *pools)["pools"]
        fake.rest[f"/v1/account/{account_id}/full"] = full_view(
            account_id, pools=listed, tokens=tokens
        )
    return fake


IDS = ["both.near", "direct.near", "liquid.near", "none.near", "spent.near", "unsure.near"]
COUNTS = ("exposure_class", "n_direct", "n_liquid", "n_unknown")


def test_exposure_counts_any_entry() -> None:
    """Any listed entry counts, a spent one too; nothing visible is a class, not an error."""
    with asking(exposed()) as server:
        frame = lk.exposure(IDS, liquid_tokens=["liquid.near"], progress=False)
    assert rows(frame, *COUNTS) == [
        ("mixed", 1, 1, 1),
        ("direct_only", 2, 0, 2),
        ("liquid_only", 0, 1, 0),
        ("no_visible_staking_position", 0, 0, 0),
        ("mixed", 1, 1, 1),
        ("mixed", 1, 1, 2),
    ]
    assert frame["direct_pools"].tolist()[1] == ["one.near", "zero.near"]
    assert frame["liquid_tokens"].tolist()[2] == ["liquid.near"]
    assert len(server.requests) == 6


def test_exposure_drops_zeros_when_asked() -> None:
    """Known zeros are dropped, what is unknown stays and is counted."""
    with asking(exposed()):
        frame = lk.exposure(IDS, liquid_tokens=["liquid.near"], nonzero=True, progress=False)
    assert rows(frame, *COUNTS) == [
        ("mixed", 1, 1, 0),
        ("direct_only", 1, 0, 0),
        ("liquid_only", 0, 1, 0),
        ("no_visible_staking_position", 0, 0, 0),
        ("no_visible_staking_position", 0, 0, 0),
        ("mixed", 1, 1, 2),
    ]
    assert frame["direct_pools"].tolist()[1] == ["one.near"]


def test_an_account_that_is_not_indexed_has_no_known_exposure() -> None:
    """Unknown is not zero: the class is of what is visible, the status says that nothing is."""
    fake = Fake()
    pools = [{"pool_id": "p.near"}]
    fake.rest["/v1/account/a.near/full"] = full_view("a.near", state=None)
    fake.rest["/v1/account/b.near/full"] = full_view("b.near")
    fake.rest["/v1/account/c.near/full"] = full_view("c.near", state=None, pools=pools)
    with asking(fake):
        frame = lk.exposure(["a.near", "b.near", "c.near"], liquid_tokens=[], progress=False)
        accounts = lk.accounts(["a.near", "b.near", "c.near"], progress=False)
        snapshots = [repr(lk.snapshot(name)) for name in ("a.near", "c.near")]
    assert rows(frame, "status", *COUNTS) == [
        ("not_indexed", "no_visible_staking_position", None, None, None),
        ("ok", "no_visible_staking_position", 0, 0, 0),
        ("ok", "direct_only", 1, 0, 1),
    ]
    assert rows(accounts, "status", "n_tokens", "n_nfts", "n_pools") == [
        ("not_indexed", None, None, None),
        ("ok", 0, 0, 0),
        ("not_indexed", 0, 0, 1),
    ]
    assert snapshots == [
        "<Snapshot a.near: not indexed>",
        "<Snapshot c.near: 0 tokens, 0 NFT collections, 1 pools>",
    ]


# Of luciotato.near, a developer of the wallet Narwallets, in its public repository.
LOCKUP = "f481fe97dddaa46fcede6ea5d24e685066b123b5.lockup.near"


def with_lockup() -> Fake:
    """Invent an owner whose lockup contract has staked 100,000 NEAR, and who has 3 beside it."""
    fake = Fake()
    owner = full_view("luciotato.near", pools=[{"pool_id": "own.near"}])
    fake.rest["/v1/account/luciotato.near/full"] = owner
    fake.rest["/v1/account/luciotato.near/staking"] = pools_of("luciotato.near", "own.near")
    fake.rest["/v1/account/only.near/full"] = full_view("only.near")
    # The pool that the contract selected is not indexed yet.
    fake.rest[f"/v1/account/{LOCKUP}/staking"] = pools_of(LOCKUP, "own.near")
    fake.views[(LOCKUP, "get_staking_pool_account_id")] = b'"big.near"'
    only = f"{hashlib.sha256(b'only.near').hexdigest()[:40]}.lockup.near"
    fake.rest[f"/v1/account/{only}/staking"] = pools_of(only, "big.near")
    fake.views[(only, "get_staking_pool_account_id")] = panic("replaced by its owner")

    def position(args: dict[str, str]) -> bytes:
        staked = {LOCKUP: 10**29, "luciotato.near": 3 * 10**24}.get(args["account_id"], 0)
        return pool(str(staked))(args)

    fake.views[("big.near", "get_account")] = position
    fake.views[("own.near", "get_account")] = position
    return fake


def test_staking_of_a_lockup_contract() -> None:
    """The stakes of an owner's lockup contract are rows of the owner, of a source of their own.

    Source of the contract's account: near/core-contracts, lockup-factory/src/lib.rs.
    """
    with asking(with_lockup()):
        frame = lk.staking("luciotato.near", positions=True, progress=False)
    assert rows(frame, "account_id", "pool_id", "staked", "source") == [
        ("luciotato.near", "own.near", 3 * 10**24, "indexed"),
        ("luciotato.near", "own.near", 10**29, "lockup"),
        ("luciotato.near", "big.near", 10**29, "lockup"),
    ]


@pytest.mark.parametrize(
    ("nonzero", "class_of_only"),
    [(False, "direct_only"), (True, "no_visible_staking_position")],
)
def test_exposure_counts_lockup_contracts(*, nonzero: bool, class_of_only: str) -> None:
    """An owner who stakes through a lockup contract is exposed; a stake of zero can be ignored."""
    ids = ["luciotato.near", "only.near"]
    options: Any = {"liquid_tokens": [], "progress": False}
    with asking(with_lockup()):
        frame = lk.exposure(ids, lockups=True, nonzero=nonzero, **options)
        without = lk.exposure(ids, **options)
    assert frame["exposure_class"].tolist() == ["direct_only", class_of_only]
    assert frame["direct_pools"].tolist()[0] == ["own.near", "big.near"]
    sources = [["indexed", "lockup"], [] if nonzero else ["lockup"]]
    assert frame["sources"].tolist() == sources
    assert without["direct_pools"].tolist() == [["own.near"], []]


def test_a_lockup_contract_that_could_not_be_read() -> None:
    """A failure leaves its owner out of the classes: unknown is not "no visible position"."""
    fake = with_lockup()
    fake.rest[f"/v1/account/{LOCKUP}/staking"] = Reply(500)
    ids = ["luciotato.near", "only.near"]
    with asking(fake):
        frame, failures = lk.exposure(
            ids, lockups=True, liquid_tokens=[], progress=False, on_error="collect"
        )
    assert frame["account_id"].tolist() == ["only.near"]
    assert failures["subject"].tolist() == ["luciotato.near"]


def test_lockup_contracts_are_not_known_on_testnet() -> None:
    """Wallets do not agree on a factory there, so the option is refused before anything is sent."""
    with pytest.raises(errors.InvalidRequestError, match="testnet"):
        lk.exposure("a.testnet", lockups=True, ledger=lk.connect("testnet", make_default=False))


def test_exposure_needs_to_know_the_tokens() -> None:
    """A network without known liquid tokens asks for them before anything is sent."""
    with asking(exposed()) as server:
        with pytest.raises(errors.InvalidRequestError, match="liquid_tokens") as caught:
            lk.exposure("both.near")
        assert server.requests == []
    assert caught.value.field == "liquid_tokens"


# View calls -----------------------------------------------------------------------------


def test_view_decodes_what_a_contract_returns() -> None:
    """JSON is decoded exactly, other bytes are bytes, null and nothing are None."""
    fake = Fake(
        views={
            ("c.near", "big"): b'{"n":340282366920938463463374607431768211456}',
            ("c.near", "bytes"): b"\x00\x01\xff",
            ("c.near", "null"): b"null",
            ("c.near", "nothing"): b"",
            ("c.near", "echo"): as_bytes,
        }
    )
    with asking(fake):
        assert lk.view("c.near", "big") == {"n": 2**128}
        assert lk.view("c.near", "bytes") == b"\x00\x01\xff"
        assert lk.view("c.near", "null") is None
        assert lk.view("c.near", "nothing") is None
        assert lk.view("c.near", "nothing", raw=True) == b""
        assert lk.view("c.near", "echo", {"a": [1, "ü"]}) == {"a": [1, "ü"]}
        assert lk.view("c.near", "echo", b'{"raw": true}') == {"raw": True}
        assert lk.view("c.near", "echo") == {}


def test_view_failures_are_typed() -> None:
    """A panic, a missing contract and a byte beyond 255 are three errors."""
    fake = Fake(
        views={("c.near", "fail"): panic('no \\"luck\\"'), ("c.near", "odd"): {"result": [256]}}
    )
    with asking(fake):
        with pytest.raises(errors.ContractPanicError) as panicked:
            lk.view("c.near", "fail")
        with pytest.raises(errors.UnknownAccountError):
            lk.view("gone.near", "fail")
        with pytest.raises(errors.DecodeError) as odd:
            lk.view("c.near", "odd")
    assert panicked.value.panic_msg == 'no "luck"'
    assert panicked.value.block_height == HEAD
    assert (odd.value.request, odd.value.path) == ("odd of c.near", "$.result.result")


def test_view_many_at_one_block() -> None:
    """Answers come in order at one block, an error in the place of its call."""
    odd = {"result": [256], "logs": []}
    fake = Fake(
        views={
            ("c.near", "echo"): as_bytes,
            ("c.near", "fail"): panic("no"),
            ("c.near", "odd"): odd,
        }
    )
    asked_for: list[tuple[Any, ...]] = [
        ("c.near", "echo", {"n": 1}),
        ("c.near", "fail"),
        ("c.near", "echo", [2]),
        ("c.near", "odd"),
    ]
    with asking(fake) as server:
        values = lk.view_many(asked_for, at=130, progress=False)
        assert lk.view_many([]) == []
    assert values[0] == {"n": 1}
    assert isinstance(values[1], errors.ContractPanicError)
    assert values[2] == [2]
    assert isinstance(values[3], errors.DecodeError)
    asked = {c["params"]["block_id"] for c in server.calls if c["method"] == "query"}
    assert asked == {fake_hash(130)}


# Blocks ---------------------------------------------------------------------------------


def test_block() -> None:
    """One block is one row, gas summed over its new chunks, its time exact."""
    fake = Fake()
    fake.blocks[121] = make_block(121, chunks=2)  # the second chunk is an old one
    with asking(fake):
        frame = lk.block(121)
    assert rows(frame, "block_height", "block_hash", "prev_height", "prev_hash") == [
        (121, fake_hash(121), 120, fake_hash(120))
    ]
    assert rows(frame, "n_chunks", "gas_used", "gas_limit", "total_supply", "protocol_version") == [
        (2, 10**15, 2 * 10**15, 2**128 - 1, 80)
    ]
    assert frame["time"].iloc[0].as_unit("ns").value == time_ns(121)
    assert str(frame["time"].dtype) == "datetime64[ns, UTC]"


def test_at(subtests: pytest.Subtests) -> None:
    """A point in time is found by height, hash, finality, checkpoint or time."""
    cases = [
        (120, 120),
        (np.int64(120), 120),
        (np.uint64(120), 120),
        (fake_hash(120), 120),
        ("final", HEAD),
        ("optimistic", HEAD),
        ("near-final", HEAD),
        ("genesis", FIRST),
        ("earliest_available", FIRST),
        (None, HEAD),
        (pd.Timestamp(time_ns(120), tz="UTC"), 120),
        (pd.Timestamp(time_ns(120) - 1, tz="UTC"), 119),
        (pd.Timestamp(time_ns(120) + 1, tz="UTC").tz_convert("Asia/Tokyo"), 120),
        (np.datetime64(time_ns(120), "ns"), 120),
        (datetime.fromtimestamp(time_ns(120) // 10**9 + 1, UTC), 120),
        (pd.Timestamp(time_ns(112), tz="UTC"), 109),  # skipped heights
        (pd.Timestamp(time_ns(104), tz="UTC"), 103),
        (pd.Timestamp(GENESIS_NS, tz="UTC"), FIRST),
        ("2100-01-01", HEAD),
        (pd.Timestamp(time_ns(120), tz="UTC").isoformat(), 120),
        (pd.Timestamp(time_ns(120) - 1, tz="UTC").isoformat(), 119),
    ]
    for at, height in cases:
        with subtests.test(at=at):
            with asking(Fake()) as server:
                frame = lk.block(at)
            assert frame["block_height"].tolist() == [height]
            assert len(server.requests) <= 20


def test_at_a_time_before_the_chain() -> None:
    """A time before the first block is refused, naming the first block's time."""
    with asking(Fake()), pytest.raises(errors.InvalidRequestError) as caught:
        lk.block("2020-01-01T00:00:00")
    assert caught.value.field == "at"
    assert str(GENESIS_NS) in str(caught.value)


def test_at_a_time_that_the_host_has_dropped() -> None:
    """A time whose block this host has dropped is an error, never another block."""
    fake = Fake()
    for height in range(FIRST + 1, 120):
        fake.blocks.pop(height, None)
    with asking(fake) as server, pytest.raises(errors.UnknownBlockError):
        lk.block(pd.Timestamp(time_ns(115), tz="UTC"))
    assert len(server.requests) < 30


def test_blocks_that_are_not_proven_to_be_skipped() -> None:
    """A missing block between others is an error, since its absence is not proven."""
    fake = Fake()
    del fake.blocks[107]
    with asking(fake), pytest.raises(errors.UnknownBlockError) as caught:
        lk.blocks(105, 109, progress=False)
    assert caught.value.request == "block 107"


@pytest.mark.parametrize(
    ("start", "stop", "heights"),
    [
        (102, 116, [102, 103, 105, 106, 107, 108, 109, 114, 115]),  # gaps within
        (108, 112, [108, 109]),  # the range ends in a gap that the next block proves
        (110, 114, []),  # nothing but skipped heights
        (112, 116, [114, 115]),  # the range begins in a gap
        (120, 120, []),  # nothing asked for
    ],
)
def test_blocks_around_gaps(start: int, stop: int, heights: list[int]) -> None:
    """A gap in the range or at an end is proven by the block after it, and is no row or error."""
    with asking(Fake()):
        frame = lk.blocks(start, stop, progress=False)
    assert frame["block_height"].tolist() == heights
    assert len(frame.columns) == len(lk.schema("blocks"))


NEWEST = f"The newest block is {HEAD}: pass a height up to it, or wait."


@pytest.mark.parametrize(
    "read",
    [
        lambda: lk.block(HEAD + 1),
        lambda: lk.blocks(HEAD - 1, HEAD + 3, progress=False),
        lambda: lk.chunks(10**12),
        lambda: lk.accounts("a.near", at=10**12),
        lambda: lk.keys("a.near", at=10**12),
        lambda: lk.history("a.near", HEAD, HEAD + 2, every=1, progress=False),
    ],
    ids=["block", "blocks", "chunks", "accounts", "keys", "history"],
)
def test_a_block_above_the_head_names_the_head(read: Callable[[], object]) -> None:
    """A height that is still to come is refused with the newest height, after one request."""
    with asking(Fake()) as server, pytest.raises(errors.UnknownBlockError) as caught:
        read()
    assert caught.value.remedy == NEWEST
    assert [c["params"] for c in server.calls].count({"finality": "optimistic"}) == 1


@pytest.mark.parametrize(
    "read",
    [
        lambda at: lk.changes("a.near", at=at),
        lk.block,
        lk.gas_price,
        lambda at: lk.view("a.near", "x", at=at),
        lambda at: lk.protocol_config(at=at),
    ],
    ids=["changes", "block", "gas_price", "view", "protocol_config"],
)
@pytest.mark.parametrize("at", [42, fake_hash("none")])
def test_an_unknown_block_is_named_where_the_node_does_not(
    read: Callable[[object], object], at: object
) -> None:
    """A node that sends UNKNOWN_BLOCK with an empty info leaves its name to the request.

    Source of the answer: near/near-jsonrpc-client-rs, issue 28, which quotes it.
    """
    answer = failure("UNKNOWN_BLOCK", {}, data={"info": {}, "name": "UNKNOWN_BLOCK"})
    with asking(lambda *_: answer), pytest.raises(errors.UnknownBlockError) as caught:
        read(at)
    assert caught.value.sentence == f"This host does not have block {at}"
    assert caught.value.block == at


def test_an_unknown_block_by_finality_is_named() -> None:
    """A node without a final block is asked for one by its finality, which the error names."""
    answer = failure("UNKNOWN_BLOCK", {}, data={"info": {}, "name": "UNKNOWN_BLOCK"})
    with asking(lambda *_: answer), pytest.raises(errors.UnknownBlockError) as caught:
        lk.view("a.near", "x")
    assert caught.value.sentence == "This host does not have block finality final"


def test_validators_above_the_head_name_the_head() -> None:
    """A node reports an unknown epoch for a height that is still to come, without the height."""
    with lk.connect("local") as ledger:
        newest = lk.block("optimistic", ledger=ledger)["block_height"][0]
        with pytest.raises(errors.UnknownEpochError) as caught:
            lk.validators(newest + 1, ledger=ledger)
        assert caught.value.remedy.startswith(f"The newest block is {newest}: ")
        with pytest.raises(errors.UnknownEpochError) as caught:
            lk.validators(fake_hash("none"), ledger=ledger)
    assert caught.value.remedy == errors.UnknownEpochError.remedy


def test_a_missing_block_below_the_head_has_its_own_remedy() -> None:
    """A skipped height, an unknown hash and a failing host leave the error as it was."""
    remedy = errors.UnknownBlockError.remedy
    with asking(Fake()) as server:
        for at in (110, fake_hash("none")):
            with pytest.raises(errors.UnknownBlockError) as caught:
                lk.block(at)
            assert caught.value.remedy == remedy
    assert [c["params"] for c in server.calls].count({"finality": "optimistic"}) == 1
    fake = Fake()

    def forgetful(*request: Any) -> Reply:
        return Reply(500) if b"optimistic" in request[3] else fake(*request)

    with asking(forgetful), pytest.raises(errors.UnknownBlockError) as caught:
        lk.block(10**12)
    assert (caught.value.block_height, caught.value.remedy) == (10**12, remedy)


@pytest.mark.parametrize(
    ("network", "account_id", "hint"),
    [
        ("mainnet", "alice", "Did you mean 'alice.near'?"),
        ("testnet", "alice", "Did you mean 'alice.testnet'?"),
        ("mainnet", "alice.testnet", 'Did you mean connect("testnet")?'),
        ("testnet", "alice.near", 'Did you mean connect("mainnet")?'),
        ("mainnet", "alice.near", ""),
        ("mainnet", "alice.bob", ""),
        ("mainnet", "ab" * 32, ""),
        ("mainnet", "0x" + "ab" * 20, ""),
        ("lab", "alice", ""),
    ],
)
def test_an_unknown_account_names_the_likely_one(network: str, account_id: str, hint: str) -> None:
    """The remedy completes a name without its top-level account, without another request."""
    usual = errors.UnknownAccountError.remedy
    with serve(Fake()) as server:
        ledger = lk.connect(network, rpc_url=server.url, api_url=server.url)
        with ledger, pytest.raises(errors.UnknownAccountError) as caught:
            lk.view(account_id, "get", ledger=ledger)
    assert caught.value.remedy == f"{hint} {usual}".lstrip()
    assert len(server.requests) == 1


def test_chunks_and_chunk() -> None:
    """A block's chunk headers, and one chunk named in two ways."""
    header = make_chunk_header(121, 0)
    told = {"author": "cp.near", "header": header, "transactions": [], "receipts": [{}, {}]}
    fake = Fake(methods={"chunk": told})
    fake.blocks[121] = make_block(121, chunks=2)
    with asking(fake) as server:
        heads = lk.chunks(121)
        by_hash = lk.chunks(chunk_id=header["chunk_hash"])
        by_shard = lk.chunks(121, shard_id=0)
    assert rows(heads, "shard_id", "is_new", "height_included", "gas_used", "balance_burnt") == [
        (0, True, 121, 10**15, 123),
        (1, False, 120, 10**15 + 1, 123),
    ]
    assert rows(by_hash, "block_height", "author", "is_new", "n_transactions", "n_receipts") == [
        (None, "cp.near", None, 0, 2)
    ]
    assert rows(by_shard, "block_height", "is_new") == [(121, True)]
    assert server.calls[-1]["params"] == {"block_id": fake_hash(121), "shard_id": 0}


def test_transactions_of_a_block() -> None:
    """A block's transactions come by shard; chunks that are old news are not read again."""
    call = {"method_name": "go", "args": "", "gas": 2**64 - 1, "deposit": "5"}
    told = {
        "hash": fake_hash("tx"),
        "signer_id": "a.near",
        "receiver_id": "b.near",
        "public_key": KEY,
        "nonce": 2**64 - 1,
        "signature": "ed25519:1",
        "actions": [
            "CreateAccount",
            {"Transfer": {"deposit": str(2**127)}},
            {"FunctionCall": call},
        ],
    }
    header = make_chunk_header(121, 0)
    chunk = {"author": "cp.near", "header": header, "transactions": [told], "receipts": []}
    fake = Fake(methods={"chunk": chunk})
    fake.blocks[121] = make_block(121, chunks=2)
    with asking(fake) as server:
        frame = lk.transactions(121)
    columns = ("block_height", "shard_id", "tx_hash", "signer_id", "receiver_id", "nonce")
    assert rows(frame, *columns) == [(121, 0, fake_hash("tx"), "a.near", "b.near", 2**64 - 1)]
    assert rows(frame, "actions", "method_name", "deposit", "gas_attached") == [
        ("CreateAccount+Transfer+FunctionCall", "go", 2**127 + 5, 2**64 - 1)
    ]
    assert [c["params"] for c in server.calls[1:]] == [{"chunk_id": header["chunk_hash"]}]


def test_a_blocks_traces() -> None:
    """The transactions that a block's chunks list are traced, each by its signer."""
    sent: dict[str, Any] = {"hash": fake_hash("tx"), "signer_id": "a.near"}
    sent |= {"receiver_id": "b.near", "public_key": KEY, "nonce": 1, "actions": []}
    chunk = {"author": "v.near", "header": make_chunk_header(121, 0), "transactions": [sent]}
    told = {"chunk": chunk, "EXPERIMENTAL_tx_status": transaction_result()}
    with asking(Fake(methods=told)) as server:
        found = lk.trace_block(121, blocks=False, wait_until="EXECUTED")
    assert list(found) == [fake_hash("tx")]
    assert rows(found.receipts, "tx_hash", "receipt_id") == [
        (fake_hash("tx"), fake_hash("receipt"))
    ]
    wanted = {"tx_hash": fake_hash("tx"), "sender_account_id": "a.near", "wait_until": "EXECUTED"}
    assert server.calls[-1]["params"] == wanted


def test_transactions_of_any_actions() -> None:
    """Relayed calls are named; an unknown action has its name, and moves its deposit."""
    call = {"FunctionCall": {"method_name": "go", "args": "e30=", "gas": 7, "deposit": "9"}}
    odd: list[list[Any]] = [
        [{"Delegate": {"delegate_action": {"actions": [call, {"CreateAccount": {}}]}}}],
        [{"DelegateV2": {"delegate_action": {"V2": {"actions": [call]}}}}],
        [{"Novelty": ["x"]}, "Bare", {"Stake": {"stake": "5", "public_key": KEY}}],
        [{"Novelty": {"deposit": "6", "x": [1]}}, {"Transfer": {"deposit": "5"}}],
        [{}],
        [],
    ]
    shared = {"signer_id": "a.near", "receiver_id": "b.near", "public_key": KEY, "nonce": 1}
    sent = [shared | {"hash": fake_hash(n), "actions": some} for n, some in enumerate(odd)]
    chunk = {"author": "v.near", "header": make_chunk_header(121, 0), "transactions": sent}
    with asking(Fake(methods={"chunk": chunk})):
        frame = lk.transactions(121)
    assert rows(frame, "actions", "method_name", "deposit", "gas_attached") == [
        ("Delegate", "go", 0, 7),
        ("DelegateV2", "go", 0, 7),
        ("Novelty+Bare+Stake", None, None, 0),
        ("Novelty+Transfer", None, 11, 0),
        ("Unknown", None, None, 0),
        ("", None, 0, 0),
    ]


# The node -------------------------------------------------------------------------------


def test_gas_price_and_protocol_config() -> None:
    """A price at a finality is asked by that block's hash; the configuration comes as sent."""
    fake = Fake(
        methods={
            "gas_price": {"gas_price": str(2**127)},
            "EXPERIMENTAL_protocol_config": {"big": 2**80, "protocol_version": 80},
        }
    )
    with asking(fake) as server:
        price, config = lk.gas_price("optimistic"), lk.protocol_config()
        lk.gas_price(120)
    assert price["gas_price"].tolist() == [2**127]
    assert config == {"big": 2**80, "protocol_version": 80}
    asked = [c["params"] for c in server.calls if c["method"] == "gas_price"]
    assert asked == [[fake_hash(HEAD)], [120]]


def test_validators_and_kickouts() -> None:
    """Reasons are one line, whatever their shape."""
    stake = {"account_id": "v.near", "public_key": KEY, "stake": str(10**33)}
    reasons = [
        "Unstaked",
        {"NotEnoughBlocks": {"produced": 1, "expected": 9}},
        {"NotEnoughStake": {"stake_u128": "1", "threshold_u128": "2"}},
    ]
    told = {
        "current_validators": [stake | {"shards": [1, 3], "num_produced_chunks": 4}],
        "prev_epoch_kickout": [{"account_id": "k.near", "reason": r} for r in reasons],
        "epoch_height": 12,
        "epoch_start_height": 100,
    }
    with asking(Fake(methods={"validators": told})) as server:
        now, out = lk.validators(), lk.validators(120, which="kickouts")
    assert rows(now, "account_id", "stake", "shards", "num_produced_chunks") == [
        ("v.near", 10**33, [1, 3], 4)
    ]
    assert out["reason"].tolist() == [
        "Unstaked",
        "NotEnoughBlocks produced=1 expected=9",
        "NotEnoughStake stake_u128=1 threshold_u128=2",
    ]
    assert [c["params"] for c in server.calls] == [[None], {"block_id": 120}]
    assert out.attrs["epoch_height"] == 12


def test_changes_of_data_below_a_prefix() -> None:
    """Changes of a contract's data name their receipt; the prefix is sent in base64."""
    change = {"account_id": "c.near", "key_base64": "aw=="}
    cause = {"type": "receipt_processing", "receipt_hash": fake_hash("r")}
    listed = [{"type": "data_deletion", "cause": cause, "change": change}]
    told = {"block_hash": fake_hash(5), "changes": listed}
    with asking(Fake(methods={"EXPERIMENTAL_changes": told})) as server:
        changed = lk.changes(["c.near"], "data_changes", at=120, prefix=b"k")
    assert rows(changed, "type", "account_id", "cause", "cause_hash", "change") == [
        ("data_deletion", "c.near", "receipt_processing", fake_hash("r"), change)
    ]
    assert server.calls[0]["params"] == {
        "changes_type": "data_changes",
        "account_ids": ["c.near"],
        "key_prefix_base64": "aw==",
        "block_id": 120,
    }


RECORDS = [b"k%d" % number for number in range(5)]


def paged_state(params: dict[str, Any]) -> Reply:
    """Answer view_state as nodes from version 2.13 on do, with at most two records a page.

    Source: nearcore, pull requests 15743 and 16075.
    """
    place = {"block_height": HEAD, "block_hash": fake_hash(HEAD)}
    if "limit" not in params:
        info = {"contract_account_id": params["account_id"], **place}
        return failure("TOO_LARGE_CONTRACT_STATE", info)
    after = base64.b64decode(params.get("after_key_base64", ""))
    keys = [key for key in RECORDS if key > after][:2]
    return result({**state_page(keys), **({} if RECORDS[-1] in keys else last_of(keys)), **place})


def state_page(keys: list[bytes]) -> dict[str, Any]:
    texts = [base64.b64encode(key).decode() for key in keys]
    return {"values": [{"key": text, "value": "dg=="} for text in texts], "proof": []}


def last_of(keys: list[bytes]) -> dict[str, str]:
    """Return the member of a page after which more keys follow."""
    return {"last_key": base64.b64encode(keys[-1]).decode()}


def test_a_large_state_is_read_in_pages() -> None:
    """All records of a state that is too large for one response are there, of one block."""
    fake = Fake(methods={"query": paged_state})
    with asking(fake) as server:
        state = lk.contract_state("big.near")
    assert state["key"].tolist() == RECORDS
    assert state.attrs["block_hash"] == fake_hash(HEAD)
    places = [call["params"].get("block_id") for call in server.calls]
    assert places == [None, None, fake_hash(HEAD), fake_hash(HEAD)]


def test_a_page_that_was_not_requested_is_continued() -> None:
    """A page with `last_key` is not the whole state, also where a node sends it unasked."""
    place = {"block_height": HEAD, "block_hash": fake_hash(HEAD)}
    first = {**state_page(RECORDS[:2]), **last_of(RECORDS[:2]), **place}

    def answer(params: dict[str, Any]) -> Reply:
        return paged_state(params) if "after_key_base64" in params else result(first)

    with asking(Fake(methods={"query": answer})):
        assert lk.contract_state("big.near")["key"].tolist() == RECORDS
    repeated = pytest.raises(errors.DecodeError, match=r"does not begin after b'k1'")
    with asking(Fake(methods={"query": lambda _: result(first)})), repeated:
        lk.contract_state("big.near")


def test_a_node_without_pages_refuses_a_large_state() -> None:
    """A node before version 2.13 ignores the limit, and the error says what to do."""
    refusal = failure("TOO_LARGE_CONTRACT_STATE", {"contract_account_id": "big.near"})
    unpaged = pytest.raises(errors.TooLargeContractStateError, match=r"from version 2\.13")
    with asking(Fake(methods={"query": lambda _: refusal})), unpaged:
        lk.contract_state("big.near")


def test_a_saved_page_is_not_the_whole() -> None:
    """A page of a state or of keys from a file is read with a warning; the last one without."""
    place = {"block_height": HEAD, "block_hash": fake_hash(HEAD)}
    page = {**state_page(RECORDS[:2]), **last_of(RECORDS[:2]), **place}
    with pytest.warns(UserWarning, match="one page"):
        assert len(lk.read_response(as_bytes(page), "state")) == 2
    assert len(lk.read_response(as_bytes(state_page(RECORDS) | place), "state")) == 5
    with pytest.warns(UserWarning, match="one page"):
        assert len(lk.read_response(as_bytes({"keys": [], "last_key": KEY, **place}), "keys")) == 0


def test_global_contract_code_by_hash_or_by_account() -> None:
    """A global contract has two names, and exactly one of them is given."""
    code = {"code_base64": base64.b64encode(b"\0asm").decode(), "hash": fake_hash("code")}
    with asking(Fake(methods={"query": code})) as server:
        assert lk.contract_code(global_contract_hash=fake_hash("code")) == b"\0asm"
        assert lk.contract_code(global_contract_account_id="wallet.near") == b"\0asm"
        assert lk.contract_code("c.near") == b"\0asm"
        with pytest.raises(errors.InvalidRequestError, match="contract_id is required"):
            lk.contract_code()
        with pytest.raises(errors.InvalidRequestError, match="only one of contract_id and global"):
            lk.contract_code("c.near", global_contract_hash=fake_hash("code"))
    assert [call["params"]["request_type"] for call in server.calls] == [
        "view_global_contract_code",
        "view_global_contract_code_by_account_id",
        "view_code",
    ]


def test_validators_of_an_epoch_by_its_id() -> None:
    """An epoch is named by itself or by its last block, not by both."""
    told = {"current_validators": [], "epoch_height": 3, "epoch_start_height": 1}
    with asking(Fake(methods={"validators": told})) as server:
        frame = lk.validators(epoch_id=fake_hash("epoch"))
        with pytest.raises(errors.InvalidRequestError):
            lk.validators(120, epoch_id=fake_hash("epoch"))
    assert len(frame) == 0
    assert frame.attrs["epoch_height"] == 3
    assert [call["params"] for call in server.calls] == [{"epoch_id": fake_hash("epoch")}]


# Transactions ---------------------------------------------------------------------------


def transaction_result(tx_hash: str = fake_hash("tx")) -> dict[str, Any]:
    """Invent a transfer and its receipt, executed at height 121."""
    receipt_id, action = fake_hash("receipt"), {"Transfer": {"deposit": "7"}}
    outcome = {
        "logs": [],
        "receipt_ids": [],
        "gas_burnt": 5,
        "tokens_burnt": "500",
        "executor_id": "b.near",
        "status": {"SuccessValue": ""},
    }
    converted = outcome | {
        "receipt_ids": [receipt_id],
        "executor_id": "a.near",
        "status": {"SuccessReceiptId": receipt_id},
    }
    return {
        "final_execution_status": "FINAL",
        "status": {"SuccessValue": ""},
        "transaction": {
            "signer_id": "a.near",
            "public_key": KEY,
            "nonce": 1,
            "receiver_id": "b.near",
            "actions": [action],
            "signature": "ed25519:1",
            "hash": tx_hash,
        },
        "transaction_outcome": {
            "proof": [],
            "block_hash": fake_hash(120),
            "id": tx_hash,
            "outcome": converted,
        },
        "receipts_outcome": [
            {"proof": [], "block_hash": fake_hash(121), "id": receipt_id, "outcome": outcome}
        ],
        "receipts": [
            {
                "predecessor_id": "a.near",
                "receiver_id": "b.near",
                "receipt_id": receipt_id,
                "receipt": {
                    "Action": {
                        "signer_id": "a.near",
                        "signer_public_key": KEY,
                        "gas_price": "100",
                        "actions": [action],
                        "input_data_ids": [],
                        "output_data_receivers": [],
                    }
                },
            }
        ],
    }


def test_trace_and_receipts() -> None:
    """A tree comes with heights and times of its blocks, each block read once."""
    told = transaction_result()
    fake = Fake(methods={"tx_status": told})
    with asking(fake) as server:
        found = lk.trace(fake_hash("tx"), "a.near")
        frame = lk.receipts(fake_hash("tx"), "a.near")
    assert (found.tx_hash, found.signer_id, found.verdict) == (
        fake_hash("tx"),
        "a.near",
        "fully_succeeded",
    )
    columns = ("receipt_id", "receiver_id", "actions", "deposit", "block_height", "gas_burnt")
    assert rows(frame, *columns) == [(fake_hash("receipt"), "b.near", "Transfer", 7, 121, 5)]
    assert frame["time"].iloc[0].as_unit("ns").value == time_ns(121)
    pd.testing.assert_frame_equal(frame, found.receipts)
    assert frame.attrs["source"] == "tx_status"
    asked = [c["method"] for c in server.calls]
    assert asked[0] == "tx_status"
    assert sorted(asked[1:]) == ["EXPERIMENTAL_protocol_config", "block"]  # sent together


def token_transfer() -> dict[str, Any]:
    """Invent a transfer of 2.5 tokens, with its event."""
    found = transaction_result()
    args = base64.b64encode(b'{"receiver_id":"c.near","amount":"250"}').decode()
    call = {"method_name": "ft_transfer", "args": args, "gas": 9, "deposit": "1"}
    data = [{"old_owner_id": "a.near", "new_owner_id": "c.near", "amount": "250"}]
    event = {"standard": "nep141", "version": "1.0.0", "event": "ft_transfer", "data": data}
    outcome = found["receipts_outcome"][0]["outcome"]
    outcome["logs"] = ["EVENT_JSON:" + json.dumps(event)]
    found["transaction"]["actions"] = [{"FunctionCall": call}]
    found["receipts"][0]["receipt"]["Action"]["actions"] = [{"FunctionCall": call}]
    return found


def test_an_explanation_reads_the_metadata_of_a_token_once() -> None:
    """Amounts are in whole tokens; two transactions of one token are one request for it."""
    fake = Fake(methods={"EXPERIMENTAL_tx_status": token_transfer()})
    fake.views["b.near", "ft_metadata"] = as_bytes({"symbol": "TOK", "decimals": 2})
    with asking(fake) as server:
        traces = [lk.trace(fake_hash("tx"), "a.near", blocks=False) for _ in range(2)]
        raw = traces[0].explain(metadata=False)
        assert "query" not in [call["method"] for call in server.calls]
        texts = [trace.explain() for trace in (*traces, traces[0])]
    assert raw.startswith("a.near sent 250 units of b.near to c.near.\n")
    assert texts[0].startswith("a.near sent 2.5 TOK to c.near.\n")
    assert "2.5 TOK (b.near) from a.near to c.near" in texts[0]
    assert texts == [texts[0]] * 3
    assert [call["method"] for call in server.calls].count("query") == 1


@pytest.mark.parametrize("answer", [Reply(503), panic("no metadata"), b"[]"], ids=repr)
def test_an_explanation_stands_without_metadata(answer: Any) -> None:
    """A host that does not answer, and a token without metadata: amounts in the smallest unit."""
    fake = Fake(methods={"EXPERIMENTAL_tx_status": token_transfer()})
    fake.views["b.near", "ft_metadata"] = answer
    with asking(fake):
        trace = lk.trace(fake_hash("tx"), "a.near", blocks=False)
        text = trace.explain()
    assert text == trace.explain(metadata=False)
    assert text.startswith("a.near sent 250 units of b.near to c.near.\n")


def test_a_closed_ledger_explains_without_metadata() -> None:
    """A trace outlives the ledger that it was read from, and so does its card."""
    fake = Fake(methods={"EXPERIMENTAL_tx_status": token_transfer()})
    with asking(fake):
        trace = lk.trace(fake_hash("tx"), "a.near", blocks=False)
        lk.disconnect()
    assert trace._repr_html_().startswith(
        '<div class="ledgerkit-trace tex2jax_ignore mathjax_ignore">'
        "<h3>a.near sent 250 units of b.near to c.near.</h3>"
    )


def unfinished_result() -> dict[str, Any]:
    """Invent a transaction whose receipt created another one, which has not run yet."""
    told = transaction_result()
    waiting = {
        "receipt_ids": [fake_hash("late")],
        "status": {"SuccessReceiptId": fake_hash("late")},
    }
    [executed] = told["receipts_outcome"]
    executed["outcome"] |= waiting
    return told | {"final_execution_status": "INCLUDED_FINAL", "status": "Started"}


def late(answer: Any, info: Any = None) -> Callable[[dict[str, Any]], Any]:
    """Time out as a node does while it waits, and answer what waits for nothing."""

    def told(params: dict[str, Any]) -> Any:
        return answer if params["wait_until"] == "NONE" else failure("TIMEOUT_ERROR", info, 408)

    return told


# Older nodes send no info; newer ones as TimeoutErrorCause of nearcore writes it
# (chain/jsonrpc-primitives/src/types/transactions.rs).
PENDING = {"cause": "PENDING", "status": {"final_execution_status": "INCLUDED_FINAL"}}
UNSEEN = failure("UNKNOWN_TRANSACTION", {"requested_transaction_hash": fake_hash("tx")})


@pytest.mark.parametrize("info", [None, PENDING], ids=["older node", "newer node"])
def test_a_transaction_that_is_not_done(info: Any) -> None:
    """What is known of a pending transaction is its trace; the timeout is no error."""
    fake = Fake(methods={"tx_status": late(unfinished_result(), info)})
    with asking(fake, retries=lk.RetryPolicy()) as server:
        found = lk.trace(fake_hash("tx"), "a.near")
        frame = lk.receipts(fake_hash("tx"), "a.near")
        _, failed = lk.traces([(fake_hash("tx"), "a.near")], on_error="collect")
    assert (found.verdict, found.signer_id) == ("pending", "a.near")
    assert "the transaction is INCLUDED_FINAL and not final yet" in found.notes
    assert rows(frame, "receipt_id", "status", "block_height") == [
        (fake_hash("receipt"), "success_receipt_id", 121),
        (fake_hash("late"), "not_executed", None),
    ]
    assert len(failed) == 0
    levels = [call["params"]["wait_until"] for call in server.calls if "wait" in str(call)]
    assert levels == ["FINAL", "NONE"] * 3


def test_a_transaction_in_a_chunk_that_has_not_run() -> None:
    """Nodes send its level alone: it is pending, and has no receipts yet."""
    fake = Fake(methods={"EXPERIMENTAL_tx_status": late({"final_execution_status": "INCLUDED"})})
    with asking(fake):
        found = lk.trace(fake_hash("tx"), "a.near")
    assert (found.verdict, len(found.receipts)) == ("pending", 0)


def test_a_transaction_that_nobody_knows() -> None:
    """A hash that no node has seen is not found: it is neither pending nor a timeout."""
    fake = Fake(methods={"EXPERIMENTAL_tx_status": late(UNSEEN, {"cause": "NOT_OBSERVED"})})
    verbs: list[Callable[..., Any]] = [lk.trace, lk.receipts, lambda *pair: lk.traces([pair])]
    with asking(fake):
        for verb in verbs:
            with pytest.raises(errors.UnknownTransactionError) as caught:
                verb(fake_hash("tx"), "a.near")
            sentence = f"No transaction {fake_hash('tx')} is known to this network"
            assert caught.value.sentence == sentence
        _, failed = lk.traces([(fake_hash("tx"), "a.near")], on_error="collect")
    assert rows(failed, "subject", "error") == [(fake_hash("tx"), "UnknownTransactionError")]


@pytest.mark.parametrize(
    ("answer", "info"),
    [(UNSEEN, PENDING), ({"final_execution_status": "NONE"}, None)],
    ids=["seen by one node alone", "shard not tracked"],
)
def test_nothing_is_claimed_of_a_transaction_without_a_status(answer: Any, info: Any) -> None:
    """A node that cannot tell leaves it at the timeout: not unknown, and not pending."""
    fake = Fake(methods={"EXPERIMENTAL_tx_status": late(answer, info)})
    with asking(fake), pytest.raises(errors.TransactionTimeoutError) as caught:
        lk.trace(fake_hash("tx"), "a.near")
    assert caught.value.rpc_cause == "TIMEOUT_ERROR"
    assert caught.value.retryable


def test_an_old_transaction_is_read_from_the_archival_host() -> None:
    """What the regular host waited for and does not know, the archival host has."""
    archive = Fake(methods={"tx_status": transaction_result()})
    regular = Fake(methods={"tx_status": late(UNSEEN, {"cause": "NOT_OBSERVED"})})
    with serve(archive) as other, asking(regular, archival_rpc_url=other.url) as server:
        found = lk.trace(fake_hash("tx"), "a.near", blocks=False)
    assert found.verdict == "fully_succeeded"
    assert (len(server.requests), len(other.requests)) == (2, 1)


@pytest.mark.parametrize("wait_until", ["FINAL", "NONE"])
def test_a_wrong_sender_is_named_with_the_right_one(wait_until: str) -> None:
    """The node only derives a shard from the sender; the result says who signed."""
    fake = Fake(methods={"EXPERIMENTAL_tx_status": transaction_result()})
    pairs = [(fake_hash("tx"), "b.near")]
    with asking(fake):
        with pytest.raises(errors.InvalidRequestError) as caught:
            lk.trace(*pairs[0], wait_until=wait_until)
        _, failed = lk.traces(pairs, wait_until=wait_until, on_error="collect")
    assert (caught.value.field, caught.value.value) == ("signer_id", "b.near")
    assert caught.value.rule == f"'a.near', which signed transaction {fake_hash('tx')}"
    assert rows(failed, "subject", "error") == [(fake_hash("tx"), "InvalidRequestError")]


def test_receipt() -> None:
    """One receipt comes as sent; what this node cannot look up is None."""
    told = transaction_result()["receipts"][0]
    unknown = dict.fromkeys(("transaction_hash", "signer_id"))
    places = dict.fromkeys(
        ("block_height", "block_timestamp", "tx_block_height", "tx_block_timestamp")
    )
    with asking(Fake(methods={"EXPERIMENTAL_receipt": told})):
        assert lk.receipt(fake_hash("receipt")) == told | unknown | places


def test_a_receipt_id_in_place_of_a_hash_is_recognized() -> None:
    """The error about an unknown transaction names the transaction of the receipt, once asked.

    Source of the answer: EXPERIMENTAL_receipt_to_tx of nearcore,
    chain/jsonrpc-primitives/src/types/receipts.rs.
    """
    origin = {"transaction_hash": fake_hash("tx"), "sender_account_id": "a.near"}
    unseen = failure("UNKNOWN_TRANSACTION", {"requested_transaction_hash": fake_hash("receipt")})
    methods = {"tx_status": unseen, "tx": unseen, "EXPERIMENTAL_receipt_to_tx": origin}
    read: Callable[..., Any]
    for read in (lk.trace, lk.receipts, lk.verify):
        unknown = pytest.raises(errors.UnknownTransactionError)
        with asking(Fake(methods=methods)) as server, unknown as caught:
            read(fake_hash("receipt"), "a.near")
        assert f"a receipt of transaction '{fake_hash('tx')}'" in caught.value.remedy
        assert f"receipt('{fake_hash('receipt')}')" in caught.value.remedy
        assert len(server.calls) == 2


def test_a_hash_in_place_of_a_receipt_id_is_recognized() -> None:
    """The Transactions API recognizes it; a node finds no transaction by its hash alone."""
    with lk.connect("local") as ledger:
        tx_hash = lk.transactions(180_000_032, ledger=ledger)["tx_hash"][0]
        with pytest.raises(errors.UnknownReceiptError) as caught:
            lk.receipt(tx_hash, ledger=ledger)
    assert caught.value.remedy == f"This is the hash of a transaction: use trace('{tx_hash}')."
    hinted = pytest.raises(errors.UnknownReceiptError, match=r"use trace\(\)")
    with asking(Fake(methods={"EXPERIMENTAL_receipt": failure("UNKNOWN_RECEIPT")})), hinted:
        lk.receipt(fake_hash("tx"))


def test_read_gives_what_a_live_call_gives(tmp_path: Path) -> None:
    """A saved answer, as bytes or as a file, is framed as a live one."""
    view = ft_view("a.near", ("t.near", "1", 1))
    path = tmp_path / "ft.json"
    path.write_text(json.dumps(view), encoding="utf-8")
    with asking(Fake(rest={"/v1/account/a.near/ft": view})):
        live = lk.ft("a.near")
    pd.testing.assert_frame_equal(lk.read_response(path, "ft"), live)
    pd.testing.assert_frame_equal(lk.read_response(str(path), "ft"), live)
    pd.testing.assert_frame_equal(lk.read_response(path.read_bytes(), "ft"), live)


def test_schema_tells_every_column() -> None:
    """The schema of a frame lists its columns in order."""
    with asking(two_of_three()):
        frame = lk.ft("a.near")
    assert lk.schema("ft")["name"].tolist() == list(frame.columns)


# Version 0 and raw calls ----------------------------------------------------------------


def test_raw_calls() -> None:
    """Any method is reachable, with integers of any size; its errors are typed."""
    with asking(Fake(methods={"genesis_config": {"supply": 2**100}})) as server:
        assert server.ledger.rpc("genesis_config") == {"supply": 2**100}
        with pytest.raises(errors.RpcMethodNotFoundError) as caught:
            server.ledger.rpc("no_such_method", {})
        with pytest.raises(errors.UnknownBlockError) as unknown:
            server.ledger.rpc("block", {"block_id": 10**12})
    assert unknown.value.remedy == NEWEST
    assert caught.value.method_name == "no_such_method"


def test_connect_and_disconnect() -> None:
    """A closed ledger answers no more, and is no default."""
    with asking(two_of_three()):
        ledger = lk.connect("lab", rpc_url="http://127.0.0.1:9", api_url="http://127.0.0.1:9")
        lk.disconnect()
        with pytest.raises(errors.InvalidRequestError, match="closed"):
            lk.ft("a.near", ledger=ledger)
        with asking(two_of_three()):
            assert len(lk.ft("a.near")) == 1


# Answers that are none ------------------------------------------------------------------

HTML = b"<!DOCTYPE html><html><body><h1>Bad gateway</h1></body></html>"
FT = "the tokens of a.near"
STATUS = "the node's status"


RPC = b'{"jsonrpc":"2.0","id":"x"'
UNREADABLE: list[tuple[str, Callable[[], Any], bytes, str]] = [
    (FT, lambda: lk.ft("a.near"), HTML, "$"),
    (FT, lambda: lk.ft("a.near"), b"", "$"),
    (FT, lambda: lk.ft("a.near"), b"[]", "$"),
    (FT, lambda: lk.ft("a.near"), b"\xff\xfe", "$"),
    (FT, lambda: lk.ft("a.near"), b"[" * 10**5, "$"),
    (FT, lambda: lk.ft("a.near"), b'{"account_id":"a.near","tokens":{}}', "$.tokens"),
    (FT, lambda: lk.ft("a.near"), b'{"tokens":[{"contract_id":7}]}', "$.tokens[0].contract_id"),
    (FT, lambda: lk.ft("a.near"), b'{"tokens":[{"contract_id":"t.near"}]}', "$.tokens[0]"),
    (STATUS, lk.status, HTML, "$"),
    (STATUS, lk.status, RPC + b"}", "$"),
    (STATUS, lk.status, RPC + b',"result":{"chain_id":1}}', "$.result.chain_id"),
    (STATUS, lk.status, RPC + b',"result":null}', "$.result"),
    (STATUS, lk.status, RPC + b',"result":{"chain_id":"t","sy', "$"),
]


def test_answers_that_are_not_as_documented(subtests: pytest.Subtests) -> None:
    """A success that cannot be read names what was asked and the place, on both surfaces."""
    for request, ask, body, path in UNREADABLE:
        with subtests.test(request=request, body=body[:20]):
            reply = Reply(200, body)
            with asking(lambda *_, reply=reply: reply), pytest.raises(errors.DecodeError) as caught:
                ask()
            assert (caught.value.request, caught.value.path) == (request, path)
            assert request in str(caught.value)


@pytest.mark.parametrize(
    ("method", "told", "ask", "path"),
    [
        ("block", make_block(120, gas_price="-1"), lambda: lk.block(120), "gas_price[0]"),
        (
            "block",
            make_block(120, timestamp_nanosec="yesterday"),
            lambda: lk.block(120),
            None,
        ),
        (
            "block",
            make_block(120, height=2**63, hash=fake_hash(1)),
            lambda: lk.block("final"),
            "$.result.header.height",
        ),
        ("gas_price", {"gas_price": ""}, lk.gas_price, "gas_price[0]"),
    ],
)
def test_values_that_fit_no_column(
    method: str, told: Any, ask: Callable[[], Any], path: str | None
) -> None:
    """A value that no column can hold is a DecodeError that names it, never a wrong number."""
    with asking(Fake(methods={method: told})), pytest.raises(errors.DecodeError) as caught:
        ask()
    assert path is None or caught.value.path == path


# Refused before anything is sent --------------------------------------------------------

REFUSED: list[tuple[Callable[[], Any], str, str, str]] = [
    (lambda: lk.ft("Bad.Near"), "account_ids", "'Bad.Near'", "a-z, 0-9"),
    (lambda: UNTYPED.ft(7), "account_ids", "7", "a list, Series or Index"),
    (lambda: lk.accounts_of("ed25519:abc"), "public_key", "'ed25519:abc'", "base58"),
    (lambda: lk.nft_tokens("a.near", "c.near", page=0), "page", "0", "from 1 to 1000"),
    (lambda: lk.keys("a.near", at=-1), "at", "-1", "from 0 to"),
    (lambda: lk.blocks(5, 3), "stop", "3", "not before 5"),
    (lambda: lk.blocks(0, 10**6), "stop", "1000000", "100,000"),
    (lambda: UNTYPED.blocks("a", 3), "start", "'a'", "a height, a block hash"),
    (lambda: UNTYPED.blocks(3, 5, verify="x"), "verify", "'x'", "True or False"),
    (lambda: lk.chunks(chunk_id="xyz"), "chunk_id", "'xyz'", "32 bytes"),
    (lambda: lk.chunks(chunk_id=fake_hash(1), shard_id=1), "chunk_id", fake_hash(1), "either"),
    (lambda: lk.view("c.near", ""), "method_name", "''", "1 to 256"),
    (lambda: lk.view("c.near", "m", {1, 2} and object()), "args", "object", "JSON"),
    (lambda: lk.view_many([("c.near",)]), "requests[0]", "('c.near',)", "a tuple"),
    (lambda: lk.changes("a.near", "all"), "kind", "'all'", "account_changes"),
    (lambda: UNTYPED.changes("a.near", "data_changes", prefix="k"), "prefix", "'k'", "bytes"),
    (
        lambda: lk.changes("a.near", "single_access_key_changes"),
        "public_key",
        "None",
        "ed25519",
    ),
    (lambda: UNTYPED.validators(which="all"), "which", "'all'", "current"),
    (
        lambda: lk.trace(fake_hash(1), "a.near", wait_until="DONE"),
        "wait_until",
        "'DONE'",
        "FINAL",
    ),
    (lambda: lk.receipt("0" * 44), "receipt_id", "0" * 44, "base58"),
    (lambda: lk.read_response(b"{}", "tokens"), "view", "'tokens'", "one of"),
    (lambda: lk.read_response("/no/such/file", "ft"), "source", "'/no/such/file'", "No such file"),
    (lambda: lk.schema("tokens"), "name", "'tokens'", "one of"),
]
COLLECTING: dict[str, Callable[..., Any]] = MANY | {
    "keys": lk.keys,
    "accounts at": lambda ids, **options: lk.accounts(ids, at=120, **options),
    "nft_tokens": lambda ids, **options: lk.nft_tokens(ids, "c.near", **options),
}


def test_a_mistyped_on_error(subtests: pytest.Subtests) -> None:
    """A word that `on_error` does not know is refused before anything is sent."""
    for verb, collect in COLLECTING.items():
        with subtests.test(verb=verb):
            with asking(Fake()) as server:
                with pytest.raises(errors.InvalidRequestError) as caught:
                    collect(["a.near"], on_error="colect")
                assert server.requests == []
            assert (caught.value.field, caught.value.value) == ("on_error", "colect")
            assert caught.value.rule == "one of raise, collect"


def test_refused_before_sending(subtests: pytest.Subtests) -> None:
    """A malformed argument is refused by name, value and rule, and nothing is sent."""
    for ask, field_, value, rule in REFUSED:
        with subtests.test(field=field_, value=value):
            with asking(Fake()) as server:
                with pytest.raises(errors.InvalidRequestError) as caught:
                    ask()
                assert server.requests == []
            error = caught.value
            assert error.field == field_
            assert field_ in str(error)
            assert value in str(error)
            assert rule in str(error)


def test_raw_requests_are_refused_before_sending() -> None:
    """A malformed path or method is refused by name and rule, and nothing is sent."""
    with asking(Fake()) as server:
        for path, rule in (
            ("v1/x", "begins with /"),
            ("/x?apiKey=1", "api_key="),
            ("/x#c", "without a fragment"),
        ):
            with pytest.raises(errors.InvalidRequestError, match=f"path .*{rule}"):
                server.ledger.get(path)
        with pytest.raises(errors.InvalidRequestError, match=r"method .*1 to 256"):
            server.ledger.rpc("")
        assert server.requests == []


MISTYPED: dict[str, Callable[[], Any]] = {
    "ft": lambda: UNTYPED.ft("a.near", metdata=True),
    "accounts": lambda: UNTYPED.accounts("a.near", block=5),
    "snapshot": lambda: UNTYPED.snapshot("a.near", at=5),
    "view": lambda: UNTYPED.view("c.near", "m", {}, None),
    "block": lambda: UNTYPED.block(hight=5),
    "history": lambda: UNTYPED.history("a.near", 1, 2, step=1),
    "connect": lambda: UNTYPED.connect("testnet", apikey="x"),
    "RetryPolicy": lambda: UNTYPED.RetryPolicy(tries=3),
}


def test_a_mistyped_option_is_a_type_error(subtests: pytest.Subtests) -> None:
    """An option that does not exist is never ignored."""
    for verb, misspell in MISTYPED.items():
        with subtests.test(verb=verb), asking(Fake()) as server:
            with pytest.raises(TypeError):
                misspell()
            assert server.requests == []


def test_a_ledger_can_be_passed() -> None:
    """A verb asks the ledger it is given, not the session's default."""

    def named(server: Server) -> lk.Ledger:
        return lk.connect("other", rpc_url=server.url, api_url=server.url)

    with asking(two_of_three()) as first:
        default = first.ledger
        with asking(two_of_three()) as second, named(second) as ledger:
            frame = lk.ft("a.near", ledger=ledger)
            assert frame.attrs["network"] == "other"
            assert lk.ft("a.near", ledger=default).attrs["network"] == "lab"
            assert (len(first.requests), len(second.requests)) == (1, 1)
        default.close()
    with pytest.raises(errors.InvalidRequestError, match="ledger"):
        UNTYPED.ft("a.near", ledger="testnet")
