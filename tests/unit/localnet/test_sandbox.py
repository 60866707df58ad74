"""The sandbox: records and genesis files of a node, patches of the state, and fast forward."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import rpc_api
from ledgerkit.localnet.rpc.errors import ParseError
from ledgerkit.localnet.sandbox import genesis, home, records
from ledgerkit.localnet.sandbox.world import SandboxWorld
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import CryptoHash, DeployGlobalContract, Transfer, UseGlobalContract
from ledgerkit.protocol.access_keys import (
    AccessKey,
    FunctionCallPermission,
    GasKeyFullAccess,
    GasKeyFunctionCall,
)
from ledgerkit.transport.background_loop import drive
from tests.unit.localnet.clocks import InstantClock

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 10**9
SKIP_NS = 310_000_000
NOW = 1_800_000_000 * SECOND
NO_CODE = "11111111111111111111111111111111"
# The key of the seed "test" in nearcore, core/crypto/src/signature.rs.
TEST_PUBLIC_KEY = "ed25519:DcA2MzgpJbrUATQLLceocVckhhAqrkingax4oJ9kZ847"
TEST_SECRET_KEY = (
    "ed25519:3KyUuch8pYP47krBq4DosFEVBMR5wDTMQ8AThzM8"
    "kAEcBQEpsPdYTZ2FPX5ZnSoLrerjwg66hwwJaW1wHzprd5k3"
)


def new_genesis(epoch_length: int = 60) -> dict[str, Any]:
    key = genesis.seeded_key("test").public_key
    return genesis.new_genesis("test-chain", "test.near", key, epoch_length)


def open_sandbox(data: dict[str, Any] | None = None, clock: Any = lambda: NOW) -> SandboxWorld:
    """Open the world of a genesis file; 310 milliseconds pass with a height that is skipped."""
    data = new_genesis() if data is None else data
    settings = genesis.read_settings(data, SKIP_NS)
    return SandboxWorld(settings, genesis.FileGenesis(data), SKIP_NS, clock)


def ask(world: Any, method: str, params: Any) -> dict[str, Any]:
    """Call a JSON-RPC method; blocks come when it waits for one."""
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    response = rpc_api.respond(world, json.dumps(call).encode(), InstantClock(world))
    answer: dict[str, Any] = json.loads(drive(response).body)
    return answer


def account_record(account_id: str, **changes: Any) -> dict[str, Any]:
    account = {"amount": "5", "locked": "0", "code_hash": NO_CODE, "storage_usage": 182}
    return {"Account": {"account_id": account_id, "account": account | changes}}


def key_record(account_id: str, permission: Any = "FullAccess") -> dict[str, Any]:
    access_key = {"nonce": 7, "permission": permission}
    data = {"account_id": account_id, "public_key": TEST_PUBLIC_KEY, "access_key": access_key}
    return {"AccessKey": data}


class TestKeys:
    def test_a_seed_gives_the_key_of_nearcore(self):
        """The key of the seed "test" is the one in nearcore's own tests."""
        key = genesis.seeded_key("test")
        assert str(key.public_key) == TEST_PUBLIC_KEY
        assert key.reveal() == TEST_SECRET_KEY

    def test_a_long_seed_is_cut(self):
        """Of a seed the first 32 bytes count."""
        assert genesis.seeded_key("x" * 40).reveal() == genesis.seeded_key("x" * 32).reveal()


class TestRecords:
    def test_permissions_have_the_shapes_of_serde(self):
        """A gas key's permission is a tuple of its balance and of the calls, as serde writes it."""
        calls = {"allowance": "9", "receiver_id": "a.near", "method_names": ["m"]}
        gas_key = {"balance": "3", "num_nonces": 2}
        shapes = {
            "FunctionCall": (calls, FunctionCallPermission(9, "a.near", ("m",))),
            "GasKeyFullAccess": (gas_key, GasKeyFullAccess(3, 2)),
            "GasKeyFunctionCall": (
                [gas_key, calls],
                GasKeyFunctionCall(3, 2, 9, "a.near", ("m",)),
            ),
        }
        for name, (contents, permission) in shapes.items():
            record = records.state_record(key_record("a.near", {name: contents}))
            assert isinstance(record, records.AccessKeyRecord)
            assert record.access_key == AccessKey(7, permission)

    def test_an_account_of_the_second_version_may_use_a_global_contract(self):
        """The first version has none: the node drops the member there."""
        for version, contract in (("V1", None), ("V2", "code.near")):
            value = account_record(
                "a.near", version=version, global_contract_account_id="code.near"
            )
            record = records.state_record(value)
            assert isinstance(record, records.AccountRecord)
            assert record.account.global_contract == contract

    def test_a_malformed_record_is_refused(self, subtests):
        """The message names the member or the kind."""
        cases = [
            ({"Acount": {}}, "unknown variant `Acount`, expected one of `Account`, `Data`"),
            ({"DelayedReceipt": {}}, "`DelayedReceipt` records are not supported"),
            ({"Account": {"account_id": "a.near"}}, "missing field `account`"),
            (account_record("A"), "the Account ID is too short"),
            (account_record("a.near", amount=5), "invalid type: integer `5`"),
            (account_record("a.near", amount=str(2**128)), "expected a u128 as a string"),
            (account_record("a.near", code_hash="1"), "incorrect length for hash"),
            (
                account_record(
                    "a.near", code_hash=str(CryptoHash.of(b"")), global_contract_hash=NO_CODE
                ),
                "An Account can't contain both a local and global contract",
            ),
            (
                {"Data": {"account_id": "a.near", "data_key": "=", "value": ""}},
                "Invalid padding",
            ),
            (key_record("a.near", "None"), "expected a map"),
        ]
        for value, reason in cases:
            with subtests.test(reason=reason):
                with pytest.raises(ParseError, match="Failed parsing args") as caught:
                    records.state_record(value)
                assert reason in caught.value.message


class TestGenesis:
    def test_a_new_chain_has_the_accounts_of_nearcore(self):
        """A validator with 10^9 NEAR and 5 * 10^7 at stake, and near (nearcore: init_configs)."""
        world = open_sandbox()
        assert world.account_ids() == ["near", "test.near"]
        account = world.state().account("test.near")
        assert account is not None
        assert (account.amount, account.locked) == (10**33, 5 * 10**31)
        assert account.storage_usage == 182  # 100, and 82 of the key
        assert (world.chain.genesis.height, world.chain.genesis.author) == (0, "test.near")
        assert len(world.settings.shard_ids) == 1

    def test_clients_add_accounts(self):
        """What clients write before the start is there: account, key, code and storage."""
        data = new_genesis()
        code = b"not a module"
        data["total_supply"] = str(int(data["total_supply"]) + 5)
        data["epoch_length"] = 250
        data["records"] += [
            account_record("sandbox", code_hash=str(CryptoHash.of(code))),
            key_record("sandbox"),
            {"Contract": {"account_id": "sandbox", "code": "bm90IGEgbW9kdWxl"}},
            {"Data": {"account_id": "sandbox", "data_key": "a2V5", "value": "dmFsdWU="}},
        ]
        world = open_sandbox(data)
        account = world.state().account("sandbox")
        assert account is not None
        assert world.store.codes[account.code_hash] == code
        assert world.state().data("sandbox", b"key") == b"value"
        assert account.storage_usage == 100 + 82 + len(code) + len(b"keyvalue") + 40
        [(_, access_key)] = world.state().access_keys("sandbox")
        assert access_key == AccessKey(7)
        assert world.settings.epoch_length == 250

    def test_a_wrong_file_is_refused(self, subtests):
        """The message names the member; the node checks the same (genesis_validate.rs)."""
        cases = [
            (lambda data: data.update(total_supply="1"), "total_supply"),
            (lambda data: data.update(validators=[]), "validators"),
            (lambda data: data.update(chain_id="mainnet"), "a sandbox is no public network"),
            (lambda data: data.update(protocol_version=29), "protocol_version"),
            (lambda data: data.update(epoch_length=0), "epoch_length"),
            (lambda data: data.update(genesis_time="yesterday"), "yesterday"),
            (lambda data: data.update(genesis_time="2026-01-01T00:00:00"), "no time zone"),
            (lambda data: data.update(max_inflation_rate=[1, 0]), "a denominator"),
            (lambda data: data.update(shard_layout={"V0": {"num_shards": 4}}), "shard_layout"),
            (lambda data: data["records"].append(account_record("near")), "one record of each"),
            (lambda data: data["records"].append(key_record("x.near")), "x.near"),
            (lambda data: data.pop("records"), "missing field `records`"),
        ]
        for change, reason in cases:
            with subtests.test(reason=reason):
                data = copy.deepcopy(new_genesis())
                change(data)
                with pytest.raises(InvalidRequestError) as caught:
                    open_sandbox(data)
                assert "genesis.json" in str(caught.value)
                assert reason in str(caught.value)


class TestPatches:
    def test_a_patch_is_applied_with_the_next_block(self):
        """The answer comes after it; before, the account is not there."""
        world = open_sandbox()
        answer = ask(world, "sandbox_patch_state", {"records": [account_record("rich.near")]})
        assert answer["result"] == {}
        assert world.chain.head.height == 1
        assert world.balance("rich.near") == 5
        assert world.state(0).account("rich.near") is None
        [change] = world.chain.changes(1)
        assert (change.cause, change.account_id) == (("migration", None), "rich.near")

    def test_a_patch_overwrites(self):
        """The records replace what is there, and leave the other records of an account."""
        world = open_sandbox()
        code = b"code"
        patch = [
            account_record("near", code_hash=str(CryptoHash.of(code))),
            {"Contract": {"account_id": "near", "code": "Y29kZQ=="}},
            {"Data": {"account_id": "near", "data_key": "aw==", "value": "dg=="}},
            {
                "GasKeyNonce": {
                    "account_id": "near",
                    "public_key": TEST_PUBLIC_KEY,
                    "index": 1,
                    "nonce": 8,
                }
            },
        ]
        ask(world, "sandbox_patch_state", [patch])
        state = world.state()
        assert (world.balance("near"), state.data("near", b"k")) == (5, b"v")
        assert len(list(state.access_keys("near"))) == 1
        packed = genesis.seeded_key("test").public_key.packed
        assert state.gas_key_nonce("near", packed, 1) == 8

    def test_code_needs_its_hash_in_the_account(self):
        """A node ends with a panic there; the sandbox refuses, and nothing is written."""
        world = open_sandbox()
        code = {"Contract": {"account_id": "near", "code": "Y29kZQ=="}}
        error = ask(world, "sandbox_patch_state", {"records": [code]})["error"]
        assert error["name"] == "INTERNAL_ERROR"
        assert "the code of near has the hash" in error["cause"]["info"]["error_message"]
        code["Contract"]["account_id"] = "nobody.near"
        error = ask(world, "sandbox_patch_state", {"records": [code]})["error"]
        assert "nobody.near does not exist" in error["cause"]["info"]["error_message"]
        assert world.chain.head.height == 0

    def test_other_worlds_have_no_such_methods(self):
        """A node that is no sandbox does not know them."""
        world = open_world("empty")
        for method in ("sandbox_patch_state", "sandbox_fast_forward"):
            assert ask(world, method, {})["error"]["cause"]["name"] == "METHOD_NOT_FOUND"


class TestDump:
    def test_records_are_written_as_they_were_read(self):
        """Each kind of record has the node's form, in which `sandbox_patch_state` takes it."""
        # Source: nearcore, core/primitives/src/state_record.rs; the forms are those of serde.
        calls = {"allowance": "9", "receiver_id": "a.near", "method_names": ["m"]}
        gas_key = {"balance": "3", "num_nonces": 2}
        code_hash = str(CryptoHash.of(b"code"))
        of_key = {"account_id": "a.near", "public_key": TEST_PUBLIC_KEY}
        patched: list[dict[str, Any]] = [
            account_record("a.near", code_hash=code_hash, version="V1"),
            account_record("b.near", version="V2", global_contract_account_id="c.near"),
            account_record("c.near", version="V2", global_contract_hash=code_hash),
            {"Contract": {"account_id": "a.near", "code": "Y29kZQ=="}},
            key_record("a.near", {"GasKeyFunctionCall": [gas_key, calls]}),
            *({"GasKeyNonce": {**of_key, "index": i, "nonce": n}} for i, n in enumerate((5, 6))),
            key_record("b.near", {"FunctionCall": {**calls, "allowance": None}}),
            key_record("c.near", {"GasKeyFullAccess": gas_key}),
            {"Data": {"account_id": "a.near", "data_key": "aw==", "value": "dg=="}},
        ]
        world = open_sandbox()
        assert ask(world, "sandbox_patch_state", {"records": patched})["result"] == {}
        result = ask(world, "sandbox_dump_state", {})["result"]
        own = [each for each in result["records"] if "near" not in owner(each).split(".")[:1]]
        assert [each for each in own if owner(each) != "test.near"] == patched
        supply = int(new_genesis()["total_supply"]) + 3 * 5
        assert result["total_supply"] == str(supply)
        assert result["genesis_height"] == world.chain.head.height + 1

    def test_a_chain_goes_on_from_its_dump(self):
        """Another sandbox has the same accounts; what was earned since the epoch is not staked."""
        # Source: nearcore, tools/state-viewer/src/state_dump.rs, iterate_over_records.
        world = open_sandbox()
        world.submit_unsigned("test.near", "near", [Transfer(7)])
        world.advance(70)
        data = new_genesis() | ask(world, "sandbox_dump_state", {})["result"]
        other = open_sandbox(data)
        assert other.balance("near") == 10**33 + 7
        before, after = (each.store.accounts.get("test.near") for each in (world, other))
        assert before is not None
        assert after is not None
        assert after.amount + after.locked == before.amount + before.locked
        assert before.locked > after.locked == 5 * 10**31
        assert other.chain.genesis.height == 71


def owner(record: dict[str, Any]) -> str:
    [members] = record.values()
    return str(members["account_id"])


class TestFastForward:
    @pytest.mark.parametrize("delta", [1, 25, 56, 57, 60, 1000])
    def test_the_head_is_exactly_so_much_higher(self, delta):
        """Time passes with each height: the mean of the shortest and the longest block time."""
        world = open_sandbox()
        world.advance(2)
        before = world.chain.head
        assert ask(world, "sandbox_fast_forward", {"delta_height": delta})["result"] == {}
        head = world.chain.head
        assert head.height - before.height == delta
        assert head.timestamp_ns - before.timestamp_ns == delta * SKIP_NS - 1

    def test_no_epoch_is_skipped(self):
        """Epochs keep their length, as stakes are released after four of them."""
        world = open_sandbox()
        ask(world, "sandbox_fast_forward", {"delta_height": 100_000})
        starts = [epoch.start_height for epoch in world.epochs.all]
        assert {later - epoch for epoch, later in pairwise(starts)} == {60}
        assert world.chain.head.epoch_height == len(starts) - 1 == 100_000 // 60
        assert len(list(world.chain.blocks())) < 100_000 // 60 * 5

    def test_a_validator_earns_what_inflation_pays(self):
        """A year mints 5 % of the supply, 90 % for validators; what was earned is staked too."""
        data = new_genesis(43_200)
        world = open_sandbox(data)
        ask(world, "sandbox_fast_forward", {"delta_height": 43_200 * 10})
        reward = world.minted / int(data["total_supply"])
        year = 365 * 24 * 3600 * SECOND
        assert reward == pytest.approx(0.05 * 0.9 * 43_200 * 10 * SKIP_NS / year, rel=0.01)
        data["max_inflation_rate"] = [0, 1]
        world = open_sandbox(data)
        ask(world, "sandbox_fast_forward", {"delta_height": 43_200 * 10})
        assert world.minted == 0

    def test_blocks_become_final_again(self):
        """Three blocks in a row after a fast forward make the first one final."""
        world = open_sandbox()
        ask(world, "sandbox_fast_forward", {"delta_height": 30})
        assert world.advance(2).height == 32
        assert world.chain.final.height == 30

    def test_epochs_of_three_heights_are_refused(self):
        """As by the node, whose fast forward needs three blocks before an epoch."""
        world = open_sandbox(new_genesis(3))
        error = ask(world, "sandbox_fast_forward", {"delta_height": 1})["error"]
        message = error["cause"]["info"]["error_message"]
        assert "Unsupported: fast_forward with an epoch length of 3 or less" in message

    @pytest.mark.parametrize("params", [{}, {"delta_height": -1}, {"delta_height": "1"}])
    def test_malformed_params_are_refused(self, params):
        """As those of any method."""
        error = ask(open_sandbox(), "sandbox_fast_forward", params)["error"]
        assert error["cause"]["name"] == "PARSE_ERROR"


class TestChunks:
    """As in nearcore: the chunks of a block are produced once the block before is accepted."""

    def test_a_transaction_waits_for_the_chunk_after_the_next(self):
        """nearcore, TestEnv.produce_block: what came before a block is in the next one."""
        world = open_sandbox()
        world.advance(10)
        tx_hash = world.submit_unsigned("test.near", "near", [Transfer(1)]).hash
        world.advance()
        assert world.transaction(tx_hash) is None
        assert world.is_pending(tx_hash)
        world.advance()
        assert world.transaction(tx_hash) is not None
        assert world.chain.head.height == 12

    def test_a_published_contract_can_be_used_at_once(self):
        """When its transaction is executed, so is its distribution before the next one is."""
        world = open_sandbox()
        for number in range(6):
            code = b"code %d" % number
            published = world.submit_unsigned(
                "test.near", "test.near", [DeployGlobalContract(code, "CodeHash")]
            )
            while world.outcome(published.hash) is None:
                world.advance()
            use = UseGlobalContract(CryptoHash.of(code))
            used = world.submit_unsigned("test.near", "test.near", [use])
            world.settle()
            converted = world.outcome(used.hash)
            assert converted is not None
            [receipt_id] = converted.receipt_ids
            executed = world.outcome(receipt_id)
            assert executed is not None
            assert "SuccessValue" in str(executed.status)


def test_blocks_have_the_time_of_the_clock():
    """Two blocks at the same time are a nanosecond apart, as in the node."""
    times = iter([NOW, NOW, NOW + SECOND])
    world = open_sandbox(clock=lambda: next(times))
    assert [world.advance().timestamp_ns - NOW for _ in range(3)] == [0, 1, SECOND]


class TestHome:
    def test_init_writes_the_files_of_a_node(self, tmp_path: Path):
        """Keys for the owner alone; a second time nothing is changed."""
        folder = tmp_path / "home"
        home.init(folder, account_id="sandbox", test_seed="sandbox", fast=True)
        names = ["config.json", "genesis.json", "node_key.json", "validator_key.json"]
        files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        assert list(files) == names
        for name in names[2:]:
            assert (folder / name).stat().st_mode & 0o777 == 0o600
        key = json.loads(files["validator_key.json"])
        # The key of the sandbox image, as near-kit's tests have it.
        assert key["public_key"] == "ed25519:8m5xVk5HSrudbw9pptQPLnFsKYAmGGng5hzvjgARxso4"
        assert key["account_id"] == "sandbox"
        home.init(folder, account_id="sandbox")
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
        with pytest.raises(InvalidRequestError, match="--account-id"):
            home.init(folder)

    def test_fast_chains_have_short_blocks_and_epochs(self, tmp_path: Path):
        """nearcore: FAST_MIN_BLOCK_PRODUCTION_DELAY and FAST_EPOCH_LENGTH; 600 ms otherwise."""
        settings = []
        for fast in (True, False):
            home.init(tmp_path / str(fast), fast=fast)
            settings.append(home.Node(tmp_path / str(fast)).world.settings)
        assert [each.block_time_ns for each in settings] == [120_000_000, 600_000_000]
        assert [each.epoch_length for each in settings] == [60, 500]
        assert all(each.chain_id.startswith("test-chain-") for each in settings)

    def test_a_folder_without_files_is_refused(self, tmp_path: Path):
        """The message names what writes them."""
        with pytest.raises(InvalidRequestError, match="init"):
            home.Node(tmp_path)

    def test_a_malformed_configuration_is_refused(self, tmp_path: Path):
        """The message names the file, and the member if there is one."""
        home.init(tmp_path)
        config = json.loads((tmp_path / "config.json").read_text())
        config["consensus"]["min_block_production_delay"] = 120
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(InvalidRequestError, match="min_block_production_delay"):
            home.Node(tmp_path)
        (tmp_path / "config.json").write_text("{")
        with pytest.raises(InvalidRequestError, match=r"config\.json"):
            home.Node(tmp_path)
