"""The node's JSON-RPC: each method, each way to ask, each error with its HTTP status."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.localnet import rpc_api
from ledgerkit.localnet.contract_sdk import to_json
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.rpc import node
from ledgerkit.protocol import (
    AccessKey,
    AddKey,
    CryptoHash,
    DeleteAccount,
    DeleteKey,
    DeployContract,
    DeployGlobalContract,
    FunctionCallPermission,
    Transfer,
    UseGlobalContract,
)
from ledgerkit.transport import background_loop
from tests.strict_errors import read_error
from tests.unit.localnet.clocks import InstantClock
from tests.unit.localnet.ledger import START, TGAS, Ledger, N, Script, do, public

SHAPES = Path(__file__).resolve().parents[4] / "shared" / "vectors" / "shapes.json"
ONES = "1" * 32
NOWHERE = str(CryptoHash.of(b"nowhere"))
FINAL = {"finality": "final"}
HEAD = {"finality": "optimistic"}
LEVELS = "`NONE`, `INCLUDED`, `EXECUTED_OPTIMISTIC`, `INCLUDED_FINAL`, `EXECUTED`, `FINAL`"
METHODS = sorted(rpc_api.METHOD_NAMES)
IDLE = 16  # blocks in which nothing happens, before waiting is over


def drive(world, body, clock=None):
    """Drive the response to a body; return the response and the number of waits."""
    clock = clock or InstantClock(world)
    return background_loop.drive(rpc_api.respond(world, body, clock)), len(clock.waits)


class SlowClock(InstantClock):
    """A clock that lets real time pass, and produces no block."""

    async def next_block(self):
        self.waits.append(None)
        time.sleep(0.005)  # noqa: ASYNC251 - it runs without a loop


def ask(world, method, params=None):
    """Call a method; return the HTTP status, the answer and the number of blocks it took."""
    body = {"jsonrpc": "2.0", "id": "x", "method": method, "params": params}
    reply, blocks = drive(world, msgspec.json.encode(body))
    assert dict(reply.headers)["content-type"] == "application/json"
    answer = json.loads(reply.body)
    assert (answer["jsonrpc"], answer["id"], len(answer)) == ("2.0", "x", 3)
    if "error" in answer and not world.settings.spec_errors:
        read_error(method, answer["error"])
    return reply.status, answer, blocks


def result(world, method, params=None):
    status, answer, _ = ask(world, method, params)
    assert status == 200, answer
    return answer["result"]


def handler(world, method, params=None, status=200):
    """Call a method that fails; return the cause's name and info, and the error's data."""
    actual, answer, _ = ask(world, method, params)
    error = answer["error"]
    assert actual == status
    assert (error["name"], error["code"]) == ("HANDLER_ERROR", -32000)
    assert error["message"] == "Server error"
    return error["cause"]["name"], error["cause"].get("info"), error["data"]


def refusal(world, method, params=None):
    """Call a method with params that it cannot parse; return the message."""
    status, answer, _ = ask(world, method, params)
    error = answer["error"]
    assert status == 400
    assert error == {
        "name": "REQUEST_VALIDATION_ERROR",
        "cause": {"name": "PARSE_ERROR", "info": {"error_message": error["data"]}},
        "code": -32700,
        "message": "Parse error",
        "data": error["data"],
    }
    return error["data"]


@pytest.fixture
def ledger():
    """Return a small chain, three blocks old, with an account whose records are too many."""
    genesis = Genesis()
    records = [(b"k%02d" % number, bytes(1000)) for number in range(60)]
    genesis.account("large.near", 1000 * N, contract=Script, records=records)
    genesis.account("v.near", N, locked=10 * N, validator_key=public("v.near"))
    chain = Ledger("alice.near", "bob.near", scripts=("script.near",), genesis=genesis)
    chain.world.advance(3)
    return chain


@pytest.fixture
def world(ledger):
    return ledger.world


def packed(signed):
    return [signed.to_base64()]


# The envelope ----------------------------------------------------------------------------


class TestEnvelope:
    """Bodies, ids and methods, whatever is called."""

    @pytest.mark.parametrize("written", ['"x"', "7", "1.50", "null", '{"a":[1, 2]}', "1e400"])
    def test_id(self, world, written):
        """An id comes back as it was written, whatever it is."""
        body = f'{{"jsonrpc":"2.0","method":"health","id":{written}}}'
        reply, _ = drive(world, body.encode())
        assert reply.status == 200
        assert reply.body == f'{{"jsonrpc":"2.0","result":null,"id":{written}}}'.encode()

    @pytest.mark.parametrize(
        "body",
        [
            b'{"jsonrpc":"2.0","method":"status"}',
            b"[]",
            b'[{"jsonrpc":"2.0","method":"status","id":1}]',
        ],
        ids=["no id", "empty batch", "batch"],
    )
    def test_no_request(self, world, body):
        """Without an id, and for several calls at once, there is one error, of no id."""
        reply, _ = drive(world, body)
        answer = json.loads(reply.body)
        assert (reply.status, answer["id"]) == (400, None)
        assert answer["error"]["code"] == -32700
        assert answer["error"]["data"] == "JSON RPC Request format was expected"

    @pytest.mark.parametrize(
        "body",
        [
            b"5",
            b'"x"',
            b"{}",
            b'{"jsonrpc":"1.0","method":"status","id":1}',
            b'{"jsonrpc":"2.0","method":"status","id":1,"more":1}',
            b'{"jsonrpc":"2.0","method":5,"id":1}',
        ],
    )
    def test_other_values(self, world, body):
        """JSON that is no call is refused in plain text."""
        reply, _ = drive(world, body)
        assert (reply.status, dict(reply.headers)["content-type"]) == (
            422,
            "text/plain; charset=utf-8",
        )
        assert reply.body.startswith(b"Failed to deserialize the JSON body into the target type: ")

    def test_no_json(self, subtests, world):
        """What is no JSON, or too deep, is refused in plain text."""
        cases = [
            b"",
            b"{",
            b'{"jsonrpc":"2.0","method":"status","id":"\xff"}',
            b'{"jsonrpc":"2.0","method":"status","id":1} x',
            b"[" * 100_000 + b"]" * 100_000,
            b'{"jsonrpc":"2.0","method":"query","id":1,"params":' + b"[" * 100_000 + b"]" * 100_000,
            b'{"jsonrpc":"2.0","method":"query","id":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        ]
        for body in cases:
            with subtests.test(body=body[:20]):
                reply, _ = drive(world, body)
                assert (reply.status, dict(reply.headers)["content-type"]) == (
                    400,
                    "text/plain; charset=utf-8",
                )
                assert reply.body.startswith(b"Failed to parse the request body as JSON: ")

    @pytest.mark.parametrize(
        "method",
        [
            "nope",
            "EXPERIMENTAL_nope",
        ],
    )
    def test_unknown_method(self, world, method):
        """A method that is not there is named in the error."""
        status, answer, _ = ask(world, method, [])
        assert status == 400
        assert answer["error"] == {
            "name": "REQUEST_VALIDATION_ERROR",
            "cause": {"name": "METHOD_NOT_FOUND", "info": {"method_name": method}},
            "code": -32601,
            "message": "Method not found",
            "data": method,
        }


# Blocks ----------------------------------------------------------------------------------


class TestBlocks:
    """Blocks, chunks, prices."""

    def test_reference(self, subtests, world):
        """A block is found by finality, checkpoint, height; and then by its hash."""
        cases = [
            ({"finality": "optimistic"}, START + 3),
            ({"finality": "near-final"}, START + 2),
            ({"finality": "final"}, START + 1),
            ({"sync_checkpoint": "genesis"}, START),
            ({"sync_checkpoint": "earliest_available"}, START),
            ({"block_id": START + 2}, START + 2),
            ([START + 2], START + 2),
        ]
        for params, height in cases:
            with subtests.test(height=height):
                header = result(world, "block", params)["header"]
                assert header["height"] == height
                assert result(world, "block", [header["hash"]])["header"] == header
                assert result(world, "block", {"block_id": header["hash"]})["header"] == header

    def test_links(self, world):
        """A block names the one before it, and the last that are final."""
        header = result(world, "block", HEAD)["header"]
        prev = result(world, "block", [header["prev_hash"]])["header"]
        assert header["prev_height"] == prev["height"] == START + 2
        assert header["last_ds_final_block"] == prev["hash"]
        assert header["last_final_block"] == prev["prev_hash"]

    def test_params(self, subtests, world):
        """Params that are no block reference are refused, and it is said why."""
        cases = [
            ({}, "invalid value: map, expected map with a single key"),
            (None, "invalid type: null, expected a map"),
            ([], "invalid type: sequence, expected a map"),
            ([1, 2], "invalid type: sequence, expected a map"),
            ([None], "data did not match any variant of untagged enum BlockId"),
            ({"block_id": -1}, "data did not match any variant of untagged enum BlockId"),
            ({"block_id": True}, "data did not match any variant of untagged enum BlockId"),
            ({"block_id": "0"}, "data did not match any variant of untagged enum BlockId"),
            (
                {"finality": "near_final"},
                "unknown variant `near_final`, expected one of `optimistic`, `near-final`, `final`",
            ),
            ({"finality": 1}, "invalid type: integer `1`, expected a string"),
            (
                {"h": 1},
                "unknown variant `h`, expected one of `block_id`, `finality`, `sync_checkpoint`",
            ),
        ]
        for params, text in cases:
            with subtests.test(text=text):
                assert refusal(world, "block", params) == f"Failed parsing args: {text}"

    def test_unknown(self, world):
        """A height to come answers 200, one below the head never comes: 422."""
        message = "DB Not Found Error: BLOCK HEIGHT: 9999 \n Cause: Unknown"
        assert handler(world, "block", [9999]) == ("UNKNOWN_BLOCK", {}, message)
        message = "DB Not Found Error: BLOCK HEIGHT: 5 \n Cause: Unknown"
        for method in ("block", "gas_price", "block_effects"):
            error = handler(world, method, {"block_id": 5}, 422)
            assert error == ("UNKNOWN_BLOCK", {}, message)
        message = f"DB Not Found Error: BLOCK: {NOWHERE} \n Cause: Unknown"
        assert handler(world, "block", [NOWHERE]) == ("UNKNOWN_BLOCK", {}, message)

    def test_skipped(self, world):
        """A skipped height is no block; the next one names the one before the gap."""
        world.advance(skip=2)
        assert handler(world, "block", [START + 4], 422)[0] == "UNKNOWN_BLOCK"
        header = result(world, "block", HEAD)["header"]
        assert (header["height"], header["prev_height"]) == (START + 6, START + 3)

    def test_chunk(self, ledger, world):
        """A chunk is found by hash, by block and shard, as list and as object."""
        signed = ledger.sign("alice.near", "bob.near", Transfer(1))
        world.submit(signed)
        block = world.advance()
        place = world.settings.shard_of("alice.near")
        chunk = block.chunks[place]
        forms = (
            [str(chunk.chunk_hash)],
            {"chunk_id": str(chunk.chunk_hash)},
            [[block.height, chunk.shard_id]],
            [[str(block.hash), chunk.shard_id]],
            {"block_id": block.height, "shard_id": chunk.shard_id},
        )
        chunks = [result(world, "chunk", params) for params in forms]
        assert chunks == [chunks[0]] * 5
        assert [tx["hash"] for tx in chunks[0]["transactions"]] == [str(signed.hash)]
        sent = result(world, "chunk", [[world.advance().height, chunk.shard_id]])["receipts"]
        assert [receipt["receiver_id"] for receipt in sent] == ["bob.near"]

    def test_chunk_errors(self, world):
        """Chunk, shard and block may each be missing."""
        message = (
            f"Chunk Missing (unavailable on the node): ChunkHash(`{NOWHERE}`) \n Cause: Unknown"
        )
        assert handler(world, "chunk", [NOWHERE]) == (
            "UNKNOWN_CHUNK",
            {"chunk_hash": NOWHERE},
            message,
        )
        assert handler(world, "chunk", [[START, 99]])[:2] == ("INVALID_SHARD_ID", {"shard_id": 99})
        assert handler(world, "chunk", [[9999, 0]])[:2] == ("UNKNOWN_BLOCK", {})
        assert "untagged enum ChunkReference" in refusal(world, "chunk", {"shard_id": 1})
        for shard_id in ("0", -1, True):
            assert "expected u64" in refusal(world, "chunk", [[START, shard_id]])

    @pytest.mark.parametrize("params", [[None], [START], {"block_id": None}, {"block_id": START}])
    def test_gas_price(self, world, params):
        """The price of gas is a text."""
        assert result(world, "gas_price", params) == {"gas_price": "100000000"}


# Accounts --------------------------------------------------------------------------------


def query(request_type, **members):
    """Give the params of a query at the head."""
    return {"request_type": request_type} | HEAD | members


def call(method_name, *steps, account_id="script.near"):
    """Give the params of a view call."""
    args = base64.b64encode(to_json({"steps": list(steps)})).decode()
    return query("call_function", account_id=account_id, method_name=method_name, args_base64=args)


def at(world):
    """Tell of the head what answers tell."""
    head = world.chain.head
    return {"block_height": head.height, "block_hash": str(head.hash)}


class TestQuery:
    """What `query` answers, and the methods named for one type of request."""

    def test_account(self, world):
        """An account is told with the block it is of."""
        account = {
            "amount": str(1000 * N),
            "locked": "0",
            "code_hash": ONES,
            "storage_usage": 182,
            "storage_paid_at": 0,
        }
        params = query("view_account", account_id="alice.near")
        assert result(world, "query", params) == account | at(world)
        assert result(world, "EXPERIMENTAL_view_account", params) == account | at(world)
        assert result(world, "query", ["account/alice.near", ""]) == account | at(world)

    def test_old_block(self, ledger, world):
        """An older block tells the older state."""
        ledger.run("alice.near", "bob.near", Transfer(N))
        then = query("view_account", account_id="bob.near") | {"block_id": START}
        del then["finality"]
        assert result(world, "query", then)["amount"] == str(1000 * N)
        now = query("view_account", account_id="bob.near")
        assert result(world, "query", now)["amount"] == str(1001 * N)

    @pytest.mark.parametrize("prefix", ["ed25519:", ""])
    def test_access_key(self, world, prefix):
        """A key is found with and without its curve's name."""
        written = prefix + str(public("alice.near")).removeprefix("ed25519:")
        response = {"nonce": 0, "permission": "FullAccess"} | at(world)
        params = query("view_access_key", account_id="alice.near", public_key=written)
        assert result(world, "query", params) == response
        assert result(world, "EXPERIMENTAL_view_access_key", params) == response
        assert result(world, "query", [f"access_key/alice.near/{written}", ""]) == response

    def test_access_key_list(self, ledger, world):
        """Keys come in the order of their bytes, a page at a time if wanted."""
        limited = AccessKey(0, FunctionCallPermission(None, "bob.near", ["m"]))
        ledger.run("alice.near", "alice.near", AddKey(public("more"), limited))
        params = query("view_access_key_list", account_id="alice.near")
        keys = result(world, "query", params)["keys"]
        assert result(world, "query", ["access_key/alice.near", ""])["keys"] == keys
        assert result(world, "EXPERIMENTAL_view_access_key_list", params)["keys"] == keys
        names = sorted(["alice.near", "more"], key=lambda name: public(name).packed)
        assert [key["public_key"] for key in keys] == [str(public(name)) for name in names]
        added = next(key for key in keys if key["public_key"] == str(public("more")))
        assert added["access_key"]["permission"] == {
            "FunctionCall": {"allowance": None, "receiver_id": "bob.near", "method_names": ["m"]}
        }
        page = result(world, "query", params | {"limit": 1})
        assert (page["keys"], page["last_key"]) == (keys[:1], keys[0]["public_key"])
        page = result(world, "query", params | {"after_key": page["last_key"], "limit": 1})
        assert page["keys"] == keys[1:]
        assert "last_key" not in page

    def test_code(self, world):
        """Code comes with its hash."""
        params = query("view_code", account_id="script.near")
        response = result(world, "query", params)
        assert base64.b64decode(response["code_base64"]) == Script.code
        assert response["hash"] == str(Script.code_hash)
        assert result(world, "EXPERIMENTAL_view_code", params) == response
        assert result(world, "query", ["code/script.near", ""]) == response

    def test_state(self, ledger, world):
        """Records come in the order of their keys, those with a prefix."""
        ledger.run("alice.near", "script.near", do(["write", "b", "2"], ["write", "a", "1"]))
        params = query("view_state", account_id="script.near", prefix_base64="")
        rows = [{"key": "YQ==", "value": "MQ=="}, {"key": "Yg==", "value": "Mg=="}]
        assert result(world, "query", params) == {"values": rows} | at(world)
        assert result(world, "query", params | {"prefix_base64": "Yg=="})["values"] == rows[1:]
        assert result(world, "query", ["contract/script.near", "2g"])["values"] == rows[:1]
        proved = result(world, "EXPERIMENTAL_view_state", params | {"include_proof": True})
        assert (proved["proof"], proved["values"]) == ([], rows)

    def test_large_state(self, world):
        """More than 50,000 bytes of records are shown in pages only."""
        params = query("view_state", account_id="large.near", prefix_base64="azA=")
        message = "State of contract large.near is too large to be viewed"
        info = {"contract_account_id": "large.near"} | at(world)
        refused = ("TOO_LARGE_CONTRACT_STATE", info, message)
        assert handler(world, "query", params) == refused
        page = result(world, "query", params | {"limit": 3})
        keys = [base64.b64decode(row["key"]) for row in page["values"]]
        assert (keys, page["last_key"]) == ([b"k00", b"k01", b"k02"], "azAy")
        page = result(world, "query", params | {"limit": 9, "after_key_base64": "azAy"})
        assert (len(page["values"]), "last_key" in page) == (7, False)

    def test_call(self, ledger, world):
        """A view returns bytes, as numbers, and its logs."""
        ledger.run("alice.near", "script.near", do(["write", "b", "2"]))
        args = base64.b64encode(b'{"key":"b"}').decode()
        params = query(
            "call_function", account_id="script.near", method_name="peek", args_base64=args
        )
        response = {"result": [34, 50, 34], "logs": []} | at(world)
        assert result(world, "query", params) == response
        assert result(world, "EXPERIMENTAL_call_function", params) == response
        logged = result(world, "query", call("do", ["log", "hi"]))
        assert (logged["result"], logged["logs"]) == ([110, 117, 108, 108], ["hi"])

    def test_legacy_call(self, world):
        """The old form carries its arguments in base58."""
        data = "3PABVMw9zB27fxKmT6WEgBmJTtKx5TSGoFBQtWCdVeJS"
        reply = result(world, "query", ["call/script.near/nope", data])
        assert reply["error"].endswith("MethodResolveError(MethodNotFound)")

    @pytest.mark.parametrize(
        ("params", "text"),
        [
            (call("nope"), "MethodResolveError(MethodNotFound)"),
            (call("do", ["panic", 'n"o']), 'HostError(GuestPanic { panic_msg: "n\\"o" })'),
            (
                call("do", ["write", "a", "b"]),
                'HostError(ProhibitedInView { method_name: "storage_write" })',
            ),
            (
                call("do", account_id="bob.near"),
                'CompilationError(CodeDoesNotExist { account_id: "bob.near" })',
            ),
        ],
        ids=["method", "panic", "write", "code"],
    )
    def test_failed_call(self, world, params, text):
        """A call that fails is a result, with HTTP 200."""
        message = {"error": f"wasm execution failed with error: {text}", "logs": []}
        assert result(world, "query", params) == message | at(world)

    def test_failed_call_as_error(self, world):
        """The method named for calls tells the same as a proper error."""
        name, info, data = handler(world, "EXPERIMENTAL_call_function", call("do", ["panic", "no"]))
        assert name == "CONTRACT_EXECUTION_ERROR"
        assert info == {"vm_error": {"ExecutionError": "Smart contract panicked: no"}} | at(world)
        assert data == (
            "Function call returned an error: wasm execution failed with error: "
            'HostError(GuestPanic { panic_msg: "no" })'
        )
        params = call("do", account_id="bob.near")
        name, info, _ = handler(world, "EXPERIMENTAL_call_function", params)
        assert (name, info) == ("NO_CONTRACT_CODE", {"contract_account_id": "bob.near"} | at(world))

    def test_missing_key(self, world):
        """A missing key is a result of `query`, and an error elsewhere."""
        key = str(public("bob.near"))
        params = query("view_access_key", account_id="alice.near", public_key=key)
        message = {"error": f"access key {key} does not exist while viewing", "logs": []}
        assert result(world, "query", params) == message | at(world)
        name, info, _ = handler(world, "EXPERIMENTAL_view_access_key", params)
        assert (name, info) == ("UNKNOWN_ACCESS_KEY", {"public_key": key} | at(world))

    @pytest.mark.parametrize(
        "params",
        [
            query("view_account"),
            query("view_code"),
            query("view_state", prefix_base64=""),
            query("view_access_key", public_key=str(public("alice.near"))),
            query("view_gas_key_nonces", public_key=str(public("alice.near"))),
            call("do"),
        ],
        ids=["account", "code", "state", "key", "gas key", "call"],
    )
    def test_missing_account(self, world, params):
        """An account that does not exist is an error, in both kinds of methods."""
        request = params | {"account_id": "ghost.near"}
        message = "account ghost.near does not exist while viewing"
        refused = ("UNKNOWN_ACCOUNT", {"requested_account_id": "ghost.near"} | at(world), message)
        assert handler(world, "query", request) == refused
        assert handler(world, f"EXPERIMENTAL_{params['request_type']}", request) == refused

    def test_a_long_list_of_keys_comes_in_pages(self, ledger, world):
        """Above 100 keys a whole list is refused; a longer page is shortened to 100 keys."""
        # nearcore, test_view_access_keys_unpaginated_over_limit_errors and the tests beside it
        for start in (0, 50):
            keys = [public(f"key {n}") for n in range(start, start + 50)]
            added = [AddKey(key, AccessKey(0)) for key in keys]
            ledger.run("alice.near", "alice.near", *added)
            params = query("view_access_key_list", account_id="alice.near")
            if start == 0:
                assert len(result(world, "query", params)["keys"]) == 51
        info = {"requested_account_id": "alice.near", "limit": 100}
        data = (
            "Account alice.near has more than 100 access keys; use a paginated "
            "view_access_key_list request"
        )
        refused = ("TOO_MANY_ACCESS_KEYS", info | at(world), data)
        assert handler(world, "query", params) == refused
        assert handler(world, "EXPERIMENTAL_view_access_key_list", params) == refused
        page = result(world, "query", params | {"limit": 1_000})
        assert len(page["keys"]) == 100
        rest = result(world, "query", params | {"after_key": page["last_key"]})
        assert len(rest["keys"]) == 1
        assert "last_key" not in rest

    def test_keys_of_a_missing_account(self, world):
        """An account that does not exist has no keys, for `query`."""
        params = query("view_access_key_list", account_id="ghost.near")
        assert result(world, "query", params)["keys"] == []
        error = handler(world, "EXPERIMENTAL_view_access_key_list", params)
        assert error[0] == "UNKNOWN_ACCOUNT"

    def test_missing_code(self, world):
        """Where there is no code, `view_code` fails."""
        name, info, data = handler(world, "query", query("view_code", account_id="bob.near"))
        assert (name, info) == ("NO_CONTRACT_CODE", {"contract_account_id": "bob.near"} | at(world))
        assert data == (
            "Contract code for contract ID #bob.near has never been observed on the node "
            f"at block #{START + 3}"
        )

    def test_gas_keys(self, world):
        """There are no gas keys."""
        key = str(public("alice.near"))
        params = query("view_gas_key_nonces", account_id="alice.near", public_key=key)
        for method in ("query", "EXPERIMENTAL_view_gas_key_nonces"):
            name, info, _ = handler(world, method, params)
            assert (name, info) == ("UNKNOWN_GAS_KEY", {"public_key": key} | at(world))

    @pytest.mark.parametrize(
        ("params", "identifier"),
        [
            (query("view_global_contract_code", code_hash=NOWHERE), {"hash": NOWHERE}),
            (
                query("view_global_contract_code_by_account_id", account_id="bob.near"),
                {"account_id": "bob.near"},
            ),
        ],
        ids=["hash", "account"],
    )
    def test_missing_global_code(self, world, params, identifier):
        """Code that nobody published is an error that repeats how it was named."""
        name, info, _ = handler(world, "query", params)
        assert (name, info) == ("NO_GLOBAL_CONTRACT_CODE", {"identifier": identifier} | at(world))

    def test_global_code(self, ledger, world):
        """Published code is found by its hash, by who published it, and by who uses it."""
        ledger.run("alice.near", "alice.near", DeployGlobalContract(b"code", "AccountId"))
        ledger.run("alice.near", "alice.near", DeployGlobalContract(b"code", "CodeHash"))
        ledger.run("bob.near", "bob.near", UseGlobalContract("alice.near"))
        code_hash = str(CryptoHash.of(b"code"))
        response = {"code_base64": "Y29kZQ==", "hash": code_hash} | at(world)
        for params in (
            query("view_global_contract_code", code_hash=code_hash),
            query("view_global_contract_code_by_account_id", account_id="alice.near"),
            query("view_code", account_id="bob.near"),
        ):
            assert result(world, "query", params) == response
        account = result(world, "query", query("view_account", account_id="bob.near"))
        assert (account["code_hash"], account["global_contract_account_id"]) == (ONES, "alice.near")

    def test_unknown_block(self, world):
        """A missing block is told with the reference as it was sent."""
        params = {"request_type": "view_account", "account_id": "alice.near"}
        message = "DB Not Found Error: BLOCK HEIGHT: 9999 \n Cause: Unknown"
        info: dict[str, Any] = {"block_reference": {"block_id": 9999}}
        refused = ("UNKNOWN_BLOCK", info, message)
        assert handler(world, "query", params | info["block_reference"]) == refused
        info = {"block_reference": {"block_id": 5}}
        assert handler(world, "query", params | info["block_reference"], 422)[1] == info
        info = {"block_reference": {"block_id": NOWHERE}}
        assert handler(world, "query", params | info["block_reference"])[1] == info

    def test_garbage_collected(self):
        """A node that is no archive knows old blocks' names, and not their state."""
        ledger = Ledger("alice.near", archival=False, epoch_length=5, epochs_kept=1)
        ledger.world.advance(20)
        assert ledger.world.chain.earliest.height > START + 2
        block = ledger.world.chain.by_height(START + 2)
        assert block is not None
        params = {"request_type": "view_account", "account_id": "alice.near"}
        name, info, data = handler(ledger.world, "query", params | {"block_id": START + 2})
        where = {"block_height": START + 2, "block_hash": str(block.hash)}
        assert (name, info) == ("GARBAGE_COLLECTED_BLOCK", where)
        assert data == (
            f"The data for block #{START + 2} is garbage collected on this node, "
            "use an archival node to fetch historical data"
        )
        assert handler(ledger.world, "block", [START + 2], 422)[0] == "UNKNOWN_BLOCK"
        oldest = result(ledger.world, "block", {"sync_checkpoint": "earliest_available"})
        sync = result(ledger.world, "status", [])["sync_info"]
        assert sync["earliest_block_hash"] == oldest["header"]["hash"]

    def test_account_ids(self, subtests, world):
        """An account id that can't be one is told by the rule that it breaks."""
        cases = [
            ("a", "the Account ID is too short"),
            ("a" * 65, "the Account ID is too long"),
            ("Alice.near", "the Account ID contains an invalid character 'A' at index 0"),
            ("invalid..account", "the Account ID has a redundant separator '.' at index 8"),
            (".near", "the Account ID has a redundant separator '.' at index 0"),
            ("near-", "the Account ID has a redundant separator '-' at index 4"),
            ("ünear", "the Account ID contains an invalid character 'ü' at index 0"),
        ]
        for account_id, text in cases:
            with subtests.test(account_id=account_id):
                message = f'Failed parsing args: invalid value: "{account_id}", {text}'
                params = query("view_account", account_id=account_id)
                assert refusal(world, "query", params) == message
                assert refusal(world, "query", [f"account/{account_id}", ""]) == text

    def test_params(self, subtests, world):
        """What is wrong with params is told in the node's words."""
        state = query("view_state", account_id="alice.near")
        every, key = state | {"prefix_base64": ""}, state | {"request_type": "view_access_key"}
        cases = [
            (HEAD, "missing field `request_type`"),
            (
                {"request_type": "view_account", "account_id": "alice.near"},
                "no variant of enum BlockReference found in flattened data",
            ),
            (query("view_account"), "missing field `account_id`"),
            (query("view_account", account_id=5), "invalid type: integer `5`, expected a string"),
            (state, "missing field `prefix_base64`"),
            (every | {"limit": 0}, "invalid value: integer `0`, expected a nonzero u32"),
            (every | {"limit": "9"}, 'invalid type: string "9", expected a nonzero u32'),
            (every | {"include_proof": 1}, "invalid type: integer `1`, expected a boolean"),
            (state | {"prefix_base64": "a_b="}, "Invalid symbol 95, offset 1."),
            (state | {"prefix_base64": "abc"}, "Invalid padding"),
            (key | {"public_key": "rsa:11"}, "unknown key type 'rsa'"),
            (
                key | {"public_key": "ed25519:0"},
                "invalid key data: provided string contained invalid character '0' at byte 0",
            ),
            (key | {"public_key": "11"}, "invalid key data: incorrect length for key"),
            (query("view_global_contract_code", code_hash="11"), "incorrect length for hash"),
            (call("do") | {"args_base64": None}, "invalid type: null, expected a string"),
            ("x", 'invalid type: string "x", expected a map'),
            (1.5, "invalid type: floating point `1.5`, expected a map"),
            (False, "invalid type: boolean `false`, expected a map"),
            ([1, {}], "invalid type: integer `1`, expected a string"),
            (["account/alice.near", {}], "invalid type: map, expected a string"),
        ]
        for params, text in cases:
            with subtests.test(text=text):
                assert refusal(world, "query", params) == f"Failed parsing args: {text}"

    @pytest.mark.parametrize(
        ("path", "data", "text"),
        [
            ("account", "", "Not enough query parameters provided"),
            ("nope/alice.near", "", "Unknown path nope"),
            ("call/alice.near", "", "Method name is missing"),
            ("access_key/alice.near/x", "", "Invalid public key"),
            (
                "contract/alice.near",
                "1O",
                "provided string contained invalid character 'O' at byte 1",
            ),
            ("contract/alice.near", "1" * 10_240, "Query data size is too large"),
        ],
    )
    def test_paths(self, world, path, data, text):
        """What is wrong with a request of the old form is told too."""
        assert refusal(world, "query", [path, data]) == text

    def test_unknown_request_type(self, world):
        """An unknown type is told with the known ones."""
        message = refusal(world, "query", query("view_gas"))
        known = "expected one of `view_account`, `view_code`, `view_state`"
        assert message.startswith(f"Failed parsing args: unknown variant `view_gas`, {known}")


# Transactions ----------------------------------------------------------------------------


def nested(depth):
    """Give the steps of calls within calls, each of which returns the inner one's result."""
    steps: list[list[Any]] = [["value", "end"]]
    for _ in range(depth):
        steps = [["call", "c", "script.near", steps], ["give", "c"]]
    return steps


class TestSending:
    """Sending, and waiting for what was sent."""

    @pytest.mark.parametrize(
        ("wait_until", "blocks", "status"),
        [
            (None, 2, "EXECUTED_OPTIMISTIC"),
            ("INCLUDED", 1, "INCLUDED"),
            ("EXECUTED_OPTIMISTIC", 2, "EXECUTED_OPTIMISTIC"),
            ("INCLUDED_FINAL", 3, "EXECUTED"),
            ("EXECUTED", 3, "EXECUTED"),
            ("FINAL", 5, "FINAL"),
        ],
    )
    def test_levels(self, ledger, world, wait_until, blocks, status):
        """A transfer is included, executed, final after so many blocks."""
        signed = ledger.sign("alice.near", "bob.near", Transfer(N))
        params = {"signed_tx_base64": signed.to_base64(), "wait_until": wait_until}
        http_status, answer, waited = ask(world, "send_tx", params)
        response = answer["result"]
        assert (http_status, waited, response["final_execution_status"]) == (200, blocks, status)
        assert response["transaction"]["hash"] == str(signed.hash)
        ended = "Started" if wait_until == "INCLUDED" else {"SuccessValue": ""}
        assert response["status"] == ended
        assert "receipts" not in response

    def test_included_final(self, ledger, world):
        """A transaction may be final while its receipts still run."""
        signed = ledger.sign("alice.near", "script.near", do(*nested(5)))
        params = {"signed_tx_base64": signed.to_base64(), "wait_until": "INCLUDED_FINAL"}
        _, answer, blocks = ask(world, "send_tx", params)
        assert (blocks, answer["result"]["final_execution_status"]) == (3, "INCLUDED_FINAL")
        assert answer["result"]["status"] == "Started"
        params = {"tx_hash": str(signed.hash), "sender_account_id": "alice.near"}
        _, answer, _ = ask(world, "tx", params)
        assert answer["result"]["final_execution_status"] == "EXECUTED"

    def test_none(self, ledger, world):
        """Who does not wait is told nothing, right or wrong."""
        good = ledger.sign("alice.near", "bob.near", Transfer(N))
        bad = ledger.sign("alice.near", "bob.near", Transfer(N), key="bob.near")
        for signed in (good, bad):
            params = {"signed_tx_base64": signed.to_base64(), "wait_until": "NONE"}
            assert ask(world, "send_tx", params)[::2] == (200, 0)
            assert result(world, "send_tx", params) == {"final_execution_status": "NONE"}
        world.settle()
        assert world.transaction(good.hash) is not None
        assert world.transaction(bad.hash) is None

    @pytest.mark.parametrize("form", ["list", "object"])
    def test_commit(self, ledger, world, form):
        """`broadcast_tx_commit` waits for execution, as `send_tx` does by default."""
        signed = ledger.sign("alice.near", "bob.near", Transfer(N))
        params = packed(signed) if form == "list" else {"signed_tx_base64": signed.to_base64()}
        _, answer, blocks = ask(world, "broadcast_tx_commit", params)
        assert (blocks, answer["result"]["final_execution_status"]) == (2, "EXECUTED_OPTIMISTIC")

    @pytest.mark.parametrize("nonce", [None, 0])
    def test_async(self, ledger, world, nonce):
        """`broadcast_tx_async` gives the hash at once, even of what no block takes."""
        signed = ledger.sign("alice.near", "bob.near", Transfer(N), nonce=nonce)
        assert ask(world, "broadcast_tx_async", packed(signed))[::2] == (200, 0)
        assert result(world, "broadcast_tx_async", packed(signed)) == str(signed.hash)
        world.settle()
        assert (world.transaction(signed.hash) is None) == (nonce == 0)

    def test_again(self, ledger, world):
        """The same bytes may be sent again, before and after they are in a block."""
        signed = ledger.sign("alice.near", "bob.near", Transfer(N))
        world.submit(signed)
        first = result(world, "send_tx", packed(signed))
        _, answer, blocks = ask(world, "send_tx", packed(signed))
        assert (blocks, answer["result"]) == (0, first)
        world.settle()
        assert world.balance("bob.near") == 1001 * N

    @pytest.mark.parametrize("method", ["send_tx", "broadcast_tx_commit"])
    def test_refused(self, ledger, world, method):
        """Why no block takes a transaction stands in `data`, as a node sends it."""
        ledger.run("alice.near", "bob.near", Transfer(N))
        signed = ledger.sign("alice.near", "bob.near", Transfer(N), nonce=1)
        status, answer, blocks = ask(world, method, packed(signed))
        reason = {"InvalidNonce": {"tx_nonce": 1, "ak_nonce": 1}}
        assert (status, blocks) == (200, 0)
        assert answer["error"] == {
            "name": "HANDLER_ERROR",
            "cause": {"name": "INVALID_TRANSACTION", "info": {}},
            "code": -32000,
            "message": "Server error",
            "data": {"TxExecutionError": {"InvalidTxError": reason}},
        }

    def test_refused_by_a_word(self, ledger, world):
        """A reason without members is a bare word in `data`; on request it is named beside it."""
        signed = ledger.sign("alice.near", "bob.near", Transfer(N), block=bytes(32))
        error = ask(world, "send_tx", packed(signed))[1]["error"]
        assert error["data"] == {"TxExecutionError": {"InvalidTxError": "Expired"}}
        assert "InvalidTransaction" not in error
        world.adjust(spec_errors=True)
        error = ask(world, "send_tx", packed(signed))[1]["error"]
        assert error["InvalidTransaction"] == {"Expired": None}

    def test_superseded(self, ledger, world):
        """What is dropped because another took its nonce ends as invalid, by its bytes."""
        first = ledger.sign("alice.near", "bob.near", Transfer(1), nonce=7)
        second = ledger.sign("alice.near", "bob.near", Transfer(2), nonce=7)
        world.submit(first)
        status, answer, blocks = ask(world, "send_tx", packed(second))
        reason = answer["error"]["data"]["TxExecutionError"]["InvalidTxError"]
        assert (status, blocks) == (200, 1)
        assert reason == {"InvalidNonce": {"tx_nonce": 7, "ak_nonce": 7}}
        by_hash = handler(world, "tx", [str(second.hash), "alice.near"], 408)
        assert by_hash == ("TIMEOUT_ERROR", {"cause": "NOT_OBSERVED"}, "Timeout")

    def test_lost(self, ledger, world):
        """What the network loses times out at once: nothing will change."""
        world.drop_transactions(1)
        signed = ledger.sign("alice.near", "bob.near", Transfer(1))
        status, answer, blocks = ask(world, "send_tx", packed(signed))
        assert (status, blocks) == (408, 0)
        assert answer["error"]["cause"]["info"] == {"cause": "NOT_OBSERVED"}
        assert ask(world, "send_tx", packed(signed))[0] == 200

    def test_params(self, subtests, world):
        """Params that name no transaction are refused, and it is said why."""
        cases = [
            ("send_tx", ["a", "b"], "Unable to parse send request: too many params passed"),
            (
                "broadcast_tx_async",
                ["", ""],
                "Unable to parse send request: too many params passed",
            ),
            ("send_tx", {}, "Failed parsing args: missing field `signed_tx_base64`"),
            ("send_tx", [5], "Failed parsing args: invalid type: integer `5`, expected a string"),
            ("send_tx", ["*"], "Failed to decode transaction: Invalid symbol 42, offset 0."),
            ("tx", ["_w=="], "Failed to decode transaction: Invalid symbol 95, offset 0."),
            ("tx", {"tx_hash": ONES}, "Failed parsing args: missing field `sender_account_id`"),
            ("tx", {"sender_account_id": "a.b"}, "Failed parsing args: missing field `tx_hash`"),
            ("tx", ["11", "alice.near"], "Failed parsing args: incorrect length for hash"),
            (
                "tx",
                [NOWHERE, "a"],
                'Failed parsing args: invalid value: "a", the Account ID is too short',
            ),
            (
                "EXPERIMENTAL_tx_status",
                [NOWHERE, "alice.near", "FINAL"],
                "Failed parsing args: invalid type: sequence, expected a map",
            ),
            (
                "tx",
                {"tx_hash": NOWHERE, "sender_account_id": "a.b", "wait_until": "EXECUTED_FINAL"},
                f"Failed parsing args: unknown variant `EXECUTED_FINAL`, expected one of {LEVELS}",
            ),
        ]
        for method, params, text in cases:
            with subtests.test(text=text):
                assert refusal(world, method, params) == text

    def test_undecodable(self, ledger, world):
        """Bytes that are no transaction are refused by every method that takes some."""
        cut = base64.b64encode(ledger.sign("alice.near", "bob.near").encode()[:-1]).decode()
        for method in ("send_tx", "broadcast_tx_async", "broadcast_tx_commit", "tx"):
            for params in ([cut], {"signed_tx_base64": cut}):
                message = refusal(world, method, params)
                assert message.startswith("Failed to decode transaction: ")


class TestPolling:
    """Reads that lag behind the head, where no clock runs."""

    READS: tuple[tuple[str, Any], ...] = (
        ("query", {"request_type": "view_account", "account_id": "bob.near", "finality": "final"}),
        ("block", {"finality": "final"}),
        ("block", {"finality": "near-final"}),
        ("status", []),
    )

    @pytest.mark.parametrize(("method", "params"), READS)
    def test_polling_makes_a_transfer_final(self, ledger, world, method, params):
        """Each read produces a block until all is final; then the world rests."""
        world.settle()
        signed = ledger.sign("alice.near", "bob.near", Transfer(N))
        ask(world, "send_tx", packed(signed))
        executed = world.chain.head.height
        blocks = [ask(world, method, params)[2] for _ in range(12)]
        n_blocks = sum(blocks)
        assert blocks == [1] * n_blocks + [0] * (12 - n_blocks)
        assert world.chain.final.height >= executed
        tx = {"tx_hash": str(signed.hash), "sender_account_id": "alice.near", "wait_until": "FINAL"}
        assert ask(world, "tx", tx)[2] == 0

    def test_the_head_is_read_as_it_is(self, ledger, world):
        """Reads of the head and of a height produce nothing."""
        signed = ledger.sign("alice.near", "bob.near", Transfer(N))
        ask(world, "send_tx", packed(signed))
        height = world.chain.head.height
        for method, params in (
            ("block", {"finality": "optimistic"}),
            ("block", {"block_id": height}),
            ("gas_price", [None]),
            ("validators", [None]),
        ):
            assert ask(world, method, params)[2] == 0
        assert world.chain.head.height == height


class TestStatus:
    """Asking for transactions."""

    @pytest.fixture
    def sent(self, ledger):
        signed = ledger.sign("alice.near", "bob.near", Transfer(N))
        ledger.world.submit(signed)
        ledger.world.settle()
        ledger.world.advance(3)
        return signed

    def test_forms(self, world, sent):
        """A transaction is found by hash and either party, and by its bytes."""
        tx_hash = str(sent.hash)
        forms = (
            [tx_hash, "alice.near"],
            [tx_hash, "bob.near"],
            {"tx_hash": tx_hash, "sender_account_id": "bob.near"},
            {"tx_hash": tx_hash, "sender_account_id": "alice.near", "wait_until": "FINAL"},
            packed(sent),
            {"signed_tx_base64": sent.to_base64()},
        )
        answers = [ask(world, "tx", params) for params in forms]
        assert [blocks for _, _, blocks in answers] == [0] * 6
        assert [answer["result"] for _, answer, _ in answers] == [answers[0][1]["result"]] * 6

    def test_receipts(self, world, sent):
        """Only the longer method shows the receipts: the transfer and its refund."""
        params = [str(sent.hash), "alice.near"]
        short = result(world, "tx", params)
        response = result(world, "EXPERIMENTAL_tx_status", params)
        receipts = response.pop("receipts")
        assert response == short
        parties = [(each["predecessor_id"], each["receiver_id"]) for each in receipts]
        assert parties == [("alice.near", "bob.near"), ("system", "alice.near")]
        ids = [outcome["id"] for outcome in response["receipts_outcome"]]
        assert [each["receipt_id"] for each in receipts] == ids
        first = world.chain.by_height(START + 5)
        assert response["receipts_outcome"][0]["block_hash"] == str(first.hash)

    def test_local_receipt(self, ledger, world):
        """A receipt to oneself has an outcome, and is not among the receipts."""
        signed = ledger.sign("alice.near", "alice.near", Transfer(N))
        world.submit(signed)
        response = result(world, "EXPERIMENTAL_tx_status", packed(signed))
        first = response["transaction_outcome"]["outcome"]["receipt_ids"]
        assert [outcome["id"] for outcome in response["receipts_outcome"]] == first
        assert response["receipts"] == []

    def test_failure_that_was_caught(self, ledger, world):
        """A receipt may fail though the transaction succeeds."""
        steps = (
            ["call", "c", "script.near", [["panic", "no"]]],
            ["then", "t", "c", "script.near", [["value", "fine"]]],
            ["give", "t"],
        )
        signed = ledger.sign("alice.near", "script.near", do(*steps))
        response = result(world, "broadcast_tx_commit", packed(signed))
        assert response["status"] == {"SuccessValue": base64.b64encode(b'"fine"').decode()}
        states = [outcome["outcome"]["status"] for outcome in response["receipts_outcome"]]
        assert sum("Failure" in state for state in states) == 1

    def test_failure(self, ledger, world):
        """A transaction that fails is a result, and its own outcome is a success."""
        signed = ledger.sign("alice.near", "script.near", do(["panic", "no"]))
        response = result(world, "broadcast_tx_commit", packed(signed))
        kind = {"FunctionCallError": {"ExecutionError": "Smart contract panicked: no"}}
        assert response["status"] == {"Failure": {"ActionError": {"index": 0, "kind": kind}}}
        assert "SuccessReceiptId" in response["transaction_outcome"]["outcome"]["status"]

    def test_unknown(self, world):
        """An unknown transaction is so at once if nobody waits, and times out otherwise."""
        params = {"tx_hash": NOWHERE, "sender_account_id": "alice.near"}
        message = f"Transaction {NOWHERE} doesn't exist"
        name, info, data = handler(world, "tx", params | {"wait_until": "NONE"})
        assert (name, data) == ("UNKNOWN_TRANSACTION", message)
        assert info == {"requested_transaction_hash": NOWHERE}
        status, answer, blocks = ask(world, "tx", params)
        assert (status, blocks) == (408, 0)
        assert answer["error"]["cause"] == {
            "name": "TIMEOUT_ERROR",
            "info": {"cause": "NOT_OBSERVED"},
        }
        assert answer["error"]["data"] == "Timeout"

    def test_bytes_never_sent(self, ledger, world):
        """Bytes that were never sent are checked: invalid if so, else not observed."""
        good = ledger.sign("alice.near", "bob.near", Transfer(N))
        bad = ledger.sign("alice.near", "bob.near", Transfer(N), key="bob.near")
        assert handler(world, "tx", packed(good), 408)[0] == "TIMEOUT_ERROR"
        assert handler(world, "tx", packed(bad))[0] == "INVALID_TRANSACTION"
        assert world.transaction(good.hash) is None

    @pytest.mark.parametrize("wait_until", ["NONE", "INCLUDED"])
    def test_polling(self, ledger, world, wait_until):
        """Who polls without waiting sees the transaction go on, a block each time."""
        tx_hash = ledger.send("alice.near", "bob.near", Transfer(N))
        params = {
            "tx_hash": str(tx_hash),
            "sender_account_id": "alice.near",
            "wait_until": wait_until,
        }
        seen = []
        for _ in range(6):
            _, answer, blocks = ask(world, "tx", params)
            seen.append((blocks, answer["result"]["final_execution_status"]))
        assert seen == [
            (1, "INCLUDED"),
            (1, "EXECUTED_OPTIMISTIC"),
            (1, "EXECUTED"),
            (1, "EXECUTED"),
            (1, "FINAL"),
            (0, "FINAL"),
        ]

    def test_stuck_finality(self, ledger, world):
        """Where nothing becomes final, waiting ends and says how far it came."""
        world.hold_finality()
        signed = ledger.sign("alice.near", "bob.near", Transfer(N))
        params = {"signed_tx_base64": signed.to_base64(), "wait_until": "FINAL"}
        status, answer, blocks = ask(world, "send_tx", params)
        assert (status, blocks) == (408, 3 + IDLE)
        info = answer["error"]["cause"]["info"]
        assert info["cause"] == "PENDING"
        assert info["status"]["final_execution_status"] == "EXECUTED_OPTIMISTIC"
        assert info["status"]["transaction"]["hash"] == str(signed.hash)

    def test_waiting_for_ever(self, ledger, world):
        """A call that yielded and is never answered is not waited for."""
        signed = ledger.sign("alice.near", "script.near", do(["wait", "w", []], ["give", "w"]))
        status, answer, _ = ask(world, "send_tx", packed(signed))
        assert (status, answer["error"]["cause"]["info"]["cause"]) == (408, "PENDING")

    def test_long_chain(self, ledger, world):
        """A chain of calls longer than the timeout without progress is waited for to its end."""
        steps = nested(IDLE + 8)
        signed = ledger.sign("alice.near", "script.near", do(*steps, gas=900 * TGAS))
        status, answer, blocks = ask(world, "send_tx", packed(signed))
        assert (status, blocks) == (200, IDLE + 10)
        assert answer["result"]["status"] == {"SuccessValue": "ImVuZCI="}

    def test_forgotten(self):
        """A node that is no archive forgets transactions with their blocks."""
        ledger = Ledger("alice.near", archival=False, epoch_length=5, epochs_kept=1)
        signed = ledger.sign("alice.near", "alice.near", Transfer(1))
        ledger.world.submit(signed)
        ledger.world.advance(20)
        params = {"tx_hash": str(signed.hash), "sender_account_id": "a.b", "wait_until": "NONE"}
        assert handler(ledger.world, "tx", params)[0] == "UNKNOWN_TRANSACTION"

    def test_real_time(self):
        """In real time the clock ends the waiting, be the transaction known or not."""
        ledger = Ledger("alice.near", real_time=True, timeout_ns=30_000_000)
        body = {"jsonrpc": "2.0", "id": "x", "method": "tx", "params": [NOWHERE, "alice.near"]}
        began = time.monotonic()
        reply, pauses = drive(ledger.world, json.dumps(body).encode(), SlowClock(ledger.world))
        assert (reply.status, pauses > 0) == (408, True)
        assert time.monotonic() - began >= 0.03
        assert ledger.world.chain.head.height == START


# History ---------------------------------------------------------------------------------


class TestHistory:
    """Receipts and changes of state."""

    def test_receipt(self, ledger, world):
        """A receipt is found by its id, and from it its transaction."""
        tx_hash = ledger.send("alice.near", "bob.near", Transfer(N))
        world.settle()
        first = ledger.outcome(tx_hash).receipt_ids[0]
        refund = ledger.outcome(first).receipt_ids[0]
        response = result(world, "EXPERIMENTAL_receipt", {"receipt_id": str(refund)})
        assert (response["predecessor_id"], response["receiver_id"]) == ("system", "alice.near")
        origin = {"transaction_hash": str(tx_hash), "sender_account_id": "alice.near"}
        for receipt_id in (first, refund):
            params = {"receipt_id": str(receipt_id)}
            assert result(world, "EXPERIMENTAL_receipt_to_tx", params) == origin

    @pytest.mark.parametrize("method", ["EXPERIMENTAL_receipt", "EXPERIMENTAL_receipt_to_tx"])
    def test_unknown_receipt(self, world, method):
        """A receipt that is not there is named."""
        message = f"Receipt with id {NOWHERE} has never been observed on this node"
        refused = ("UNKNOWN_RECEIPT", {"receipt_id": NOWHERE}, message)
        assert handler(world, method, {"receipt_id": NOWHERE}) == refused
        assert refusal(world, method, {}) == "Failed parsing args: missing field `receipt_id`"

    @pytest.mark.parametrize("method", ["changes", "EXPERIMENTAL_changes"])
    def test_key_changes(self, ledger, world, method):
        """A transaction changes its key's nonce, and tells so in its own block."""
        tx_hash = ledger.send("alice.near", "bob.near", Transfer(N), nonce=5)
        block = world.advance()
        key = {"account_id": "alice.near", "public_key": str(public("alice.near"))}
        change = {
            "cause": {"type": "transaction_processing", "tx_hash": str(tx_hash)},
            "type": "access_key_update",
            "change": key | {"access_key": {"nonce": 5, "permission": "FullAccess"}},
        }
        for request in (
            {"changes_type": "single_access_key_changes", "keys": [key]},
            {"changes_type": "all_access_key_changes", "account_ids": ["alice.near"]},
        ):
            response = result(world, method, request | {"block_id": block.height})
            assert response == {"block_hash": str(block.hash), "changes": [change]}

    def test_account_changes(self, ledger, world):
        """An account that is deleted is told so; others are not told."""
        ledger.send("bob.near", "bob.near", DeleteAccount("alice.near"))
        block = world.advance()
        params = {"changes_type": "account_changes", "account_ids": ["bob.near"]}
        changes = result(world, "changes", params | {"block_id": block.height})["changes"]
        assert [change["type"] for change in changes] == ["account_update", "account_deletion"]
        assert changes[1]["change"] == {"account_id": "bob.near"}
        params["account_ids"] = ["alice.near"]
        assert result(world, "changes", params | {"block_id": block.height})["changes"] == []

    def test_deleted_key(self, ledger, world):
        """A key that is deleted is told by its text."""
        key = str(public("bob.near"))
        ledger.send("bob.near", "bob.near", DeleteKey(public("bob.near")))
        block = world.advance()
        params = {"changes_type": "all_access_key_changes", "account_ids": ["bob.near"]}
        changes = result(world, "changes", params | {"block_id": block.height})["changes"]
        assert changes[-1]["type"] == "access_key_deletion"
        assert changes[-1]["change"] == {"account_id": "bob.near", "public_key": key}

    def test_data_changes(self, ledger, world):
        """Records that changed are told, those with a prefix."""
        ledger.send("alice.near", "script.near", do(["write", "ab", "1"], ["write", "b", "2"]))
        block = world.advance(2)
        params = {"changes_type": "data_changes", "account_ids": ["script.near"]}
        params |= {"key_prefix_base64": "YQ==", "block_id": block.height}
        changes = result(world, "changes", params)["changes"]
        assert [change["change"] for change in changes] == [
            {"account_id": "script.near", "key_base64": "YWI=", "value_base64": "MQ=="}
        ]

    def test_code_changes(self, ledger, world):
        """Code that is deployed is told with the account's change, once."""
        ledger.send("bob.near", "bob.near", DeployContract(b"\0asm"))
        block = world.advance()
        params = {"changes_type": "contract_code_changes", "account_ids": ["bob.near"]}
        changes = result(world, "changes", params | {"block_id": block.height})["changes"]
        assert [(change["type"], change["change"]) for change in changes] == [
            ("contract_code_update", {"account_id": "bob.near", "code_base64": "AGFzbQ=="})
        ]

    @pytest.mark.parametrize("method", ["block_effects", "EXPERIMENTAL_changes_in_block"])
    def test_effects(self, ledger, world, method):
        """A block tells whose state it changed."""
        ledger.send("alice.near", "bob.near", Transfer(N))
        block = world.advance()
        assert result(world, method, {"block_id": block.height}) == {
            "block_hash": str(block.hash),
            "changes": [
                {"type": "account_touched", "account_id": "alice.near"},
                {"type": "access_key_touched", "account_id": "alice.near"},
            ],
        }

    def test_params(self, world):
        """What is wanted must be said."""
        message = refusal(world, "changes", HEAD)
        assert message == "Failed parsing args: missing field `changes_type`"
        message = refusal(world, "changes", HEAD | {"changes_type": "account_changes"})
        assert message == "Failed parsing args: missing field `account_ids`"
        params = HEAD | {"changes_type": "account_changes", "account_ids": "alice.near"}
        assert "expected a sequence" in refusal(world, "changes", params)


# The node --------------------------------------------------------------------------------


def page(world, path):
    return node.PAGES[path](world)


class TestNode:
    """What the node tells of itself and its chain."""

    @pytest.mark.parametrize("params", [None, [], {"finality": "final"}, "x"])
    def test_status(self, world, params):
        """The status answers whatever params; its times are texts."""
        response = result(world, "status", params)
        assert response["chain_id"] == "localnet"
        assert (response["protocol_version"], response["uptime_sec"]) == (86, 1)
        assert response["validators"] == [{"account_id": "v.near"}]
        sync = response["sync_info"]
        assert (sync["latest_block_height"], sync["earliest_block_height"]) == (START + 3, START)
        assert sync["latest_block_hash"] == str(world.chain.head.hash)
        assert sync["latest_block_time"] == "2026-08-01T00:00:01.800000000Z"
        assert response["genesis_hash"] == sync["earliest_block_hash"]

    def test_pages(self, world):
        """The node's own pages show status, health and a few figures."""
        pages = ("/status", "/health", "/metrics")
        status, health, metrics = (page(world, path) for path in pages)
        assert json.loads(status.body) == result(world, "status")
        assert (health.status, health.body) == (200, b"null")
        assert f"\nnear_block_height_head {START + 3}\n".encode() in metrics.body
        assert dict(metrics.headers)["content-type"].startswith("text/plain")

    @pytest.mark.parametrize(
        "params", [[None], "latest", {"latest": None}, {"epoch_id": ONES}], ids=str
    )
    def test_validators(self, world, params):
        """The one validator made all blocks, and a chunk of each shard in each."""
        response = result(world, "validators", params)
        shards = list(world.settings.shard_ids)
        assert response["current_validators"] == [
            {
                "account_id": "v.near",
                "public_key": str(public("v.near")),
                "stake": str(10 * N),
                "is_slashed": False,
                "shards": shards,
                "num_produced_blocks": 4,
                "num_expected_blocks": 4,
                "num_produced_chunks": 36,
                "num_expected_chunks": 36,
                "num_produced_chunks_per_shard": [4] * 9,
                "num_expected_chunks_per_shard": [4] * 9,
                "num_produced_endorsements": 36,
                "num_expected_endorsements": 36,
                "num_produced_endorsements_per_shard": [4] * 9,
                "num_expected_endorsements_per_shard": [4] * 9,
                "shards_endorsed": shards,
            }
        ]
        assert [each["account_id"] for each in response["next_validators"]] == ["v.near"]
        assert (response["epoch_height"], response["epoch_start_height"]) == (0, START)

    def test_validators_of_an_epoch(self):
        """By a block, only an epoch that is over is told, and only by its last block."""
        genesis = Genesis()
        genesis.account("v.near", N, locked=10_000 * N, validator_key=public("v.near"))
        world = Ledger("alice.near", genesis=genesis, epoch_length=10).world
        world.advance(25)
        starts = [epoch.start_height for epoch in world.epochs.all]
        assert len(starts) == 3
        over = result(world, "validators", [starts[1] - 1])
        assert (over["epoch_height"], over["epoch_start_height"]) == (0, START)
        ended = result(world, "validators", {"block_id": starts[2] - 1})
        assert ended["validator_reward_paid_prev_epoch"] == {"v.near": str(N)}
        for height in (starts[1], world.chain.head.height):
            refused = handler(world, "validators", [height])
            message = ("VALIDATOR_INFO_UNAVAILABLE", None, "Validator info unavailable")
            assert refused == message

    @pytest.mark.parametrize("params", [[9999], {"block_id": NOWHERE}, {"epoch_id": NOWHERE}])
    def test_unknown_epoch(self, world, params):
        """An epoch that is not there has no validators."""
        assert handler(world, "validators", params) == ("UNKNOWN_EPOCH", None, "Unknown Epoch")

    def test_validators_ordered(self, world):
        """The validators in the order of their blocks."""
        expected = [
            {
                "account_id": "v.near",
                "public_key": str(public("v.near")),
                "stake": str(10 * N),
                "validator_stake_struct_version": "V1",
            }
        ]
        for block_id in (None, START):
            params = {"block_id": block_id}
            assert result(world, "EXPERIMENTAL_validators_ordered", params) == expected

    @pytest.mark.parametrize("method", ["genesis_config", "EXPERIMENTAL_genesis_config"])
    def test_genesis_config(self, world, method):
        """What the chain began with."""
        response = result(world, method, None)
        assert (response["genesis_height"], response["chain_id"]) == (START, "localnet")
        assert response["genesis_time"] == "2026-08-01T00:00:00.000000000Z"
        assert response["total_supply"] == str((1000 * 4 + 11) * N)
        assert response["validators"] == [
            {"account_id": "v.near", "public_key": str(public("v.near")), "amount": str(10 * N)}
        ]

    def test_protocol_config(self, world):
        """The fees are the table's that transactions are charged by."""
        response = result(world, "EXPERIMENTAL_protocol_config", FINAL)
        runtime = response["runtime_config"]
        assert (response["protocol_version"], response["epoch_length"]) == (86, 43_200)
        assert runtime["storage_amount_per_byte"] == "10000000000000000000"
        assert runtime["account_creation_charge"] == "7000000000000000000000"
        costs = runtime["transaction_costs"]["action_creation_config"]
        assert costs["create_account_cost"] == {
            "send_sir": 500_000_000_000,
            "send_not_sir": 500_000_000_000,
            "execution": 7_200_000_000_000,
        }
        layout = response["shard_layout"]["V2"]
        assert layout["id_to_index_map"]["10"] == 0
        assert layout["index_to_id_map"]["8"] == 5
        assert handler(world, "EXPERIMENTAL_protocol_config", [9999])[0] == "UNKNOWN_BLOCK"

    # Source: nearcore, core/parameters/src/snapshots, near_parameters__config_store__tests__84,
    # 85 and 87; for version 87 also runtime_configs/87.yaml.
    @pytest.mark.parametrize(
        ("profile", "values"),
        [
            (
                "84",
                {
                    "transaction_costs.burnt_gas_reward": [3, 10],
                    "transaction_costs.ml_dsa_65_verification_cost": 0,
                    "wasm_config.ext_costs.yield_create_with_id_base": 300_000_000_000_000,
                    "wasm_config.gas_key_host_fns": False,
                    "wasm_config.limit_config.max_receipt_total_input_size": 4_294_967_295,
                    "min_gas_purchase_price": "0",
                    "account_creation_charge": "0",
                },
            ),
            (
                "86",
                {
                    "transaction_costs.burnt_gas_reward": [3, 10],
                    "transaction_costs.ml_dsa_65_verification_cost": 100_000_000_000,
                    "wasm_config.ext_costs.yield_create_with_id_base": 290_000_000_000,
                    "wasm_config.ext_costs.touching_trie_node": 2_280_000_000,
                    "wasm_config.ext_costs.bls12381_g2_multiexp_element": 1_995_000_000_000,
                    "wasm_config.ext_costs.storage_iter_next_base": 0,
                    "wasm_config.gas_key_host_fns": True,
                    "wasm_config.sha3_host_fns": False,
                    "wasm_config.linear_op_base_cost": 26_328_192,
                    "wasm_config.limit_config.max_function_body_size": 196_608,
                    "wasm_config.limit_config.max_deploy_actions_per_receipt": 10,
                    "congestion_control_config.reject_tx_congestion_threshold": 0.8,
                    "witness_config.combined_transactions_size_limit": 4_194_304,
                    "min_gas_purchase_price": "1000000000",
                },
            ),
            (
                "87",
                {
                    "transaction_costs.burnt_gas_reward": [0, 1],
                    "wasm_config.sha3_host_fns": True,
                    "wasm_config.limit_config.max_receipt_total_input_size": 4_194_944,
                    "wasm_config.limit_config.max_state_init_entries": 1500,
                    "wasm_config.limit_config.min_contract_size_per_local": 2,
                },
            ),
        ],
    )
    def test_the_rules_of_a_version(self, profile, values):
        """All members of a node's configuration, with its values."""
        world = Ledger("alice.near", profile=profile).world
        rules = result(world, "EXPERIMENTAL_protocol_config", FINAL)["runtime_config"]
        for path, expected in values.items():
            value = rules
            for name in path.split("."):
                value = value[name]
            assert (path, value) == (path, expected)
        assert len(rules["wasm_config"]["ext_costs"]) == 100
        assert len(rules["congestion_control_config"]) == 10

    def test_a_node_without_peers(self, world):
        """The methods about the network of nodes have the values of a single node."""
        assert result(world, "network_info", []) == {
            "active_peers": [],
            "num_active_peers": 0,
            "peer_max_count": 0,
            "sent_bytes_per_sec": 0,
            "received_bytes_per_sec": 0,
            "known_producers": [],
        }
        head = world.advance(5).height
        assert result(world, "EXPERIMENTAL_split_storage_info", {}) == {
            "head_height": head,
            "final_head_height": head - 2,
            "cold_head_height": None,
            "hot_db_kind": "Archive",
        }
        config = result(world, "client_config", [])
        assert config["min_block_production_delay"] == "[0,600000000]"
        assert (config["epoch_length"], config["archive"]) == (43_200, True)

    @pytest.mark.parametrize("prefix", ["", "EXPERIMENTAL_"])
    def test_maintenance_windows(self, world, prefix):
        """An account that produces no block has the rest of the epoch; the producer has none."""
        head = world.advance(5).height
        method = f"{prefix}maintenance_windows"
        window = {"start": head, "end": START + 43_200}
        assert result(world, method, {"account_id": "alice.near"}) == [window]
        assert result(world, method, {"account_id": str(world.chain.head.author)}) == []

    def test_congestion(self, world):
        """No shard is congested; a chunk that is not there is an error, as of `chunk`."""
        world.advance(2)
        by_shard = {"block_id": START + 2, "shard_id": 10}
        assert result(world, "EXPERIMENTAL_congestion_level", by_shard) == {"congestion_level": 0.0}
        missing = handler(world, "EXPERIMENTAL_congestion_level", {"chunk_id": NOWHERE})
        assert missing[0] == "UNKNOWN_CHUNK"


# Anything --------------------------------------------------------------------------------

WORDS = ("final", "alice.near", "ghost.near", "view_account", "call_function", "YQ==", "1", "")
MEMBERS = (
    "account_id account_ids after_key args_base64 block_id changes_type chunk_id code_hash "
    "epoch_id finality key_prefix_base64 keys latest limit method_name prefix_base64 public_key "
    "receipt_id request_type sender_account_id shard_id signed_tx_base64 sync_checkpoint tx_hash"
).split()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(MEMBERS) | st.text(max_size=3), inner, max_size=6)
    ),
)


@pytest.fixture(scope="module")
def old_world():
    """Return a world that no test changes but by letting time pass."""
    return Ledger("alice.near", scripts=("script.near",)).world


@given(method=st.sampled_from(METHODS), params=VALUES)
def test_anything(old_world, method, params):
    """Whatever the params are, the answer is a result or an error with the status it goes with."""
    status, answer, _ = ask(old_world, method, params)
    if "result" in answer:
        assert status == 200
    else:
        allowed = {"REQUEST_VALIDATION_ERROR": (400,), "HANDLER_ERROR": (200, 408, 422)}
        assert status in allowed[answer["error"]["name"]]


# Shapes ----------------------------------------------------------------------------------


def differences(expected, actual, where=""):
    """List where two values differ in members or types."""
    if type(expected) is not type(actual):
        return [f"{where}: {type(actual).__name__}, not {type(expected).__name__}"]
    if isinstance(expected, dict):
        odd = [f"{where}.{name}" for name in expected.keys() ^ actual.keys()]
        both = expected.keys() & actual.keys()
        return odd + [d for n in both for d in differences(expected[n], actual[n], f"{where}.{n}")]
    if isinstance(expected, list) and expected:
        return [d for each in actual for d in differences(expected[0], each, f"{where}[]")]
    return []


@pytest.fixture
def shapes():
    """Return the typed examples, or skip."""
    if not SHAPES.is_file():
        pytest.skip("the shared vectors are not here")
    return json.loads(SHAPES.read_text(encoding="utf-8"))


class TestShapes:
    """Every member and type of the shared examples."""

    def test_results(self, ledger, world, shapes):
        """Results have the members and types of the examples, and no others."""
        world.submit(ledger.sign("alice.near", "bob.near", Transfer(N)))
        shard = world.advance(2).chunks[world.settings.shard_of("alice.near")].shard_id
        key = str(public("alice.near"))
        calls = {
            "block": ("block", HEAD),
            "status": ("status", []),
            "view_account": ("query", query("view_account", account_id="bob.near")),
            "view_access_key": (
                "query",
                query("view_access_key", account_id="alice.near", public_key=key),
            ),
            "call_function": ("query", call("do")),
        }
        for name, (method, params) in calls.items():
            assert differences(shapes[name], result(world, method, params)) == [], name
        for height in (START + 4, START + 5):
            chunk = result(world, "chunk", [[height, shard]])
            assert len(chunk["transactions"]) + len(chunk["receipts"]) == 1
            assert differences(shapes["chunk"], chunk) == []
