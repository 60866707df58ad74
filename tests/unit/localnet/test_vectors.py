"""The shared vectors, executed: whole trees of receipts, the table of fees and its examples."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledgerkit.localnet import fees
from ledgerkit.localnet.chain_types import ActionReceipt, DataReceipt
from ledgerkit.localnet.contracts.fungible_token import FungibleToken
from ledgerkit.localnet.contracts.token_receiver import TokenReceiver
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.rpc import outcomes
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World
from ledgerkit.protocol import (
    AccessKey,
    Action,
    AddKey,
    CreateAccount,
    CryptoHash,
    Delegate,
    DelegateAction,
    DeleteKey,
    DeployContract,
    FunctionCall,
    FunctionCallPermission,
    PublicKey,
    Signature,
    SignedTransaction,
    Stake,
    Transfer,
)
from tests.unit.localnet.ledger import PRICE, START, Ledger, N, public

SHARED = Path(__file__).resolve().parents[4] / "shared" / "vectors"
RECEIVERS: dict[str, dict[str, Any]] = {
    "ft_transfer_call_part_refunded": {"unused": 400},
    "ft_transfer_call_receiver_panics": {"panics": "no thanks"},
}


def load(name):
    """Read a file of vectors; None where there is none."""
    path = SHARED / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def pytest_generate_tests(metafunc):
    """Give a test each tree, or each example of the fees; none, and it is skipped."""
    if "tree" in metafunc.fixturenames:
        trees = (load("trees.json") or {"cases": []})["cases"]
        metafunc.parametrize("tree", trees, ids=[tree["name"] for tree in trees])
    if "example" in metafunc.fixturenames:
        cases = (load("fees.json") or {"examples": []})["examples"]
        metafunc.parametrize("example", cases, ids=[case["name"] for case in cases])


@pytest.fixture
def table():
    """Return the file of fees, or skip."""
    found = load("fees.json")
    if found is None:
        pytest.skip("the vectors are not beside this checkout")
    return found


# Recordings ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["delegate_small", "delegate_cross_contract", "intents_execute"])
def test_recorded_transactions_burnt_what_ours_would(name):
    """On the public network the same actions burnt the same gas, when sent and when executed."""
    recorded = load(f"../wire/samples/txapi/{name}.json")
    if recorded is None:
        pytest.skip("the recordings are not beside this checkout")
    profile = fees.PROFILES["84"]
    (one,) = recorded["transactions"]
    tx = one["transaction"]
    signer_id, receiver_id = tx["signer_id"], tx["receiver_id"]
    actions = [recorded_action(row) for row in tx["actions"]]
    burnt = profile.new_receipt_send(to_self=signer_id == receiver_id)
    burnt += profile.send(actions, signer_id, receiver_id)
    assert burnt == one["execution_outcome"]["outcome"]["gas_burnt"]
    first = one["receipts"][0]["execution_outcome"]["outcome"]
    if isinstance(actions[0], Delegate):
        inner = actions[0].delegate_action
        burnt = profile.new_receipt_execute + profile.fee(actions[0], receiver_id).execute
        burnt += profile.send(inner.actions, inner.sender_id, inner.receiver_id)
        assert burnt == first["gas_burnt"]


@pytest.mark.parametrize("name", ["delegate_small", "delegate_cross_contract", "intents_execute"])
def test_recorded_receipts_gave_back_what_ours_would(name):
    """The refund is what was bought less what burnt and what the promises took with them."""
    recorded = load(f"../wire/samples/txapi/{name}.json")
    if recorded is None:
        pytest.skip("the recordings are not beside this checkout")
    found = {one["receipt"]["receipt_id"]: one for one in recorded["transactions"][0]["receipts"]}
    receipts = {receipt_id: one["receipt"] for receipt_id, one in found.items()}
    for receipt_id, receipt in receipts.items():
        held = receipt["receipt"].get("Action")
        if held is not None and receipt["predecessor_id"] != "system":
            outcome = found[receipt_id]["execution_outcome"]["outcome"]
            made = [receipts[child] for child in outcome["receipt_ids"]]
            unused = bought(receipt) - outcome["gas_burnt"]
            unused -= sum(bought(child) for child in made if child["predecessor_id"] != "system")
            given = [c["receipt"]["Action"] for c in made if c["predecessor_id"] == "system"]
            amounts = [int(one["actions"][0]["Transfer"]["deposit"]) for one in given]
            assert sum(amounts) == unused * int(held["gas_price"])


def bought(receipt):
    """Tell the gas that a recorded receipt carries."""
    profile = fees.PROFILES["84"]
    actions = [recorded_action(row) for row in receipt["receipt"]["Action"]["actions"]]
    return profile.prepaid_gas(actions, receipt["receiver_id"])


def recorded_action(row):
    """Read a transfer, a call or a delegate as answers write them."""
    ((kind, held),) = row.items()
    if kind == "Transfer":
        return Transfer(int(held["deposit"]))
    if kind == "FunctionCall":
        args = base64.b64decode(held["args"])
        return FunctionCall(held["method_name"], args, held["gas"], int(held["deposit"]))
    wanted = held["delegate_action"]
    delegated = DelegateAction(
        wanted["sender_id"],
        wanted["receiver_id"],
        [recorded_action(one) for one in wanted["actions"]],
        wanted["nonce"],
        wanted["max_block_height"],
        PublicKey.from_text(wanted["public_key"]),
    )
    return Delegate(delegated, Signature.from_text(held["signature"]))


# Trees -----------------------------------------------------------------------------------


def world_of(tree):
    """Make the world in which a tree grew, and execute its transaction at its height."""
    signed = SignedTransaction.from_base64(tree["signed_base64"])
    genesis = Genesis()
    told = RECEIVERS.get(tree["name"], {})
    genesis.account("alice.near", 1000 * N, keys=[signed.transaction.public_key])
    genesis.account(
        "bob.near", 1000 * N, contract=TokenReceiver, records=TokenReceiver.genesis(**told)
    )
    holders = {"alice.near": 10**6, "bob.near": 0}
    records = FungibleToken.genesis("token.near", holders)
    genesis.account("token.near", 1000 * N, contract=FungibleToken, records=records)
    height = tree["tx_height"]
    settings = Settings(genesis_height=height - 1, vm_gas=tree["vm_gas_assumed"])
    world = World(settings, genesis)
    # The file says which hash stands in the transaction, not of which block it is.
    world.chain._by_hash[signed.transaction.block_hash] = world.chain.genesis
    world.submit(signed)
    return world, signed


def is_at(world, tree, outcome_id):
    """Tell whether something was executed at the height that the file has."""
    return world.outcome(CryptoHash(outcome_id)).block_height == tree["executed_at"][outcome_id]


def as_filed(world, answer):
    """Name blocks as the file does, and leave empty what it leaves empty."""
    for outcome in (answer["transaction_outcome"], *answer["receipts_outcome"]):
        height = world.chain.height_of(CryptoHash(outcome["block_hash"]))
        outcome["proof"] = []
        outcome["block_hash"] = str(CryptoHash.of(b"ledgerkit block %d" % height))
        metadata = outcome["outcome"]["metadata"]
        if metadata["gas_profile"] is not None:
            metadata["gas_profile"] = []
            metadata["contracts"] = [None] * len(metadata["contracts"])
    return answer


def test_trees_are_reproduced(tree):
    """EXPERIMENTAL_tx_status answers exactly what the file has, blocks by their heights."""
    world, signed = world_of(tree)
    world.settle()
    record = world.transaction(signed.hash)
    assert record.outcome.block_height == tree["tx_height"]
    execution = outcomes.find_execution(world, signed.hash)
    assert execution is not None
    answer = outcomes.result(world, execution, receipts=True)
    assert as_filed(world, json.loads(json.dumps(answer))) == tree["result"]


def test_trees_grow_in_the_blocks_they_should(tree):
    """Every receipt is executed at the height that the file tells."""
    world, _ = world_of(tree)
    world.settle()
    assert [i for i in tree["executed_at"] if not is_at(world, tree, i)] == []


def test_trees_name_their_data(tree):
    """Data receipts have the ids, the owners and the data that the file tells."""
    world, _ = world_of(tree)
    world.settle()
    found = [
        {
            "receipt_id": str(receipt.receipt_id),
            "predecessor_id": receipt.predecessor_id,
            "receiver_id": receipt.receiver_id,
            "data_id": str(receipt.data_id),
            "data": None if receipt.data is None else base64.b64encode(receipt.data).decode(),
        }
        for receipt in world.receipts()
        if isinstance(receipt, DataReceipt)
    ]
    expected = [dict(receipt) for receipt in tree["data_receipts"]]
    heights = [receipt.pop("created_height") for receipt in expected]
    assert found == expected
    sent = [
        block.height - 1
        for block in world.chain.blocks()
        for chunk in block.chunks
        for receipt in chunk.receipts
        if isinstance(receipt, DataReceipt)
    ]
    assert sent == heights


def test_trees_cost_what_they_should(tree):
    """The signer is debited the total cost, and each refund gives back what was not used."""
    world, _ = world_of(tree)
    before = world.balance("alice.near")
    local = tree["name"] == "transfer_local"
    world.advance()
    paid = before - world.balance("alice.near")
    assert paid == int(tree["total_cost"]) - (N if local else 0)
    world.settle()
    for receipt_id, sums in tree["calc"].items():
        outcome = world.outcome(CryptoHash(receipt_id))
        refunds = [world.receipt(child) for child in outcome.receipt_ids]
        gas = [r for r in refunds if r.predecessor_id == "system" and r.signer_id == "alice.near"]
        assert [r.actions for r in gas] == [(Transfer(int(sums["refund"])),)]


# Fees ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["84", "86", "87"])
def test_the_table_of_fees_is_the_files(table, version):
    """Every fee this node knows is the file's, in each version."""
    expected = {name: tuple(fee) for name, fee in table["fees_pv84"].items()}
    if version != "84":
        expected |= {name: tuple(fee) for name, fee in table["fees_pv86_overrides"].items()}
    expected["new_action_receipt"] = expected.pop("action_receipt")
    assert {name: tuple(fee) for name, fee in fees.PROFILES[version].table.items()} == expected


def test_profiles_differ_as_the_file_says(table):
    """The least purchase price, the creation charge and the reward are each version's."""
    profiles = table["profiles"]
    profiles["pv87"] = profiles["pv86"] | profiles["pv87"]
    for name, expected in profiles.items():
        profile = fees.PROFILES[name.removeprefix("pv")]
        part, whole = expected["burnt_gas_reward"]
        assert profile.min_purchase_price == int(expected["min_gas_purchase_price"])
        assert profile.creation_charge == int(expected["account_creation_charge"])
        assert profile.reward_percent * whole == part * 100


def test_host_functions_cost_what_the_file_says(table):
    """What the machine charges for is charged at the file's price."""
    names = {"host_call_base": "base", "contract_loading_byte": "contract_loading_bytes"}
    costs = {
        names.get(name, name).upper(): gas
        for name, gas in table["vm_host_costs"].items()
        if name not in ("note", "trie_node_touch")
    }
    assert costs.pop("REGULAR_OP") == fees.REGULAR_OP
    assert {name: fees.HOST_COSTS[name] for name in costs} == costs


ACTIONS: dict[str, Callable[..., Action]] = {
    "Transfer": Transfer,
    "CreateAccount": CreateAccount,
    "AddFull": lambda: AddKey(public("new")),
    "AddFC": lambda names: AddKey(
        public("new"), AccessKey(0, FunctionCallPermission(None, "a.near", names))
    ),
    "DeleteKey": lambda: DeleteKey(public("old")),
    "Stake": lambda: Stake(2 * N, public("validator")),
    "Deploy": lambda size: DeployContract(bytes(size)),
    "FC": lambda name, size, gas, deposit: FunctionCall(name, bytes(size), gas, deposit),
}


def actions_of(example):
    return [ACTIONS[name](*operands) for name, *operands in example["actions"]]


def ledger_of(profile):
    """Make a chain with the accounts of the examples; `alice.near` has a key to delete."""
    genesis = Genesis()
    genesis.account("alice.near", 1000 * N, keys=[public("alice.near"), public("old")])
    ledger = Ledger("bob.near", "pool.near", "token.near", genesis=genesis, profile=profile)
    assert ledger.world.chain.head.gas_price == PRICE
    return ledger


@pytest.mark.parametrize("version", ["pv84", "pv86"])
def test_examples_are_executed_at_their_cost(example, version):
    """A transaction burns, is debited and gets back what the file has, to the yocto."""
    expected = example[version]
    ledger = ledger_of(version.removeprefix("pv"))
    actions = actions_of(example)
    signer_id, receiver_id = example["signer_id"], example["receiver_id"]
    before = ledger.account(signer_id).amount
    tx_hash = ledger.send(signer_id, receiver_id, *actions)
    ledger.world.advance()
    outcome = ledger.outcome(tx_hash)
    assert outcome.gas_burnt == expected["tx_gas_burnt"]
    assert outcome.tokens_burnt == int(expected["tx_tokens_burnt"])
    receipt = ledger.receipt(outcome.receipt_ids[0])
    assert isinstance(receipt, ActionReceipt)
    assert receipt.gas_price == int(expected["receipt_gas_price"])
    if signer_id != receiver_id:
        assert before - ledger.account(signer_id).amount == int(expected["total_cost"])
    ledger.world.settle()
    if "on_success" in expected:
        check_success(ledger, ledger.outcome(receipt.receipt_id), receiver_id, expected)
    assert ledger.is_whole()


def check_success(ledger, outcome, receiver_id, expected):
    """Compare a receipt's outcome and its refund with the file's."""
    wanted = expected["on_success"]
    assert outcome.gas_burnt == wanted["receipt_gas_burnt"]
    assert outcome.tokens_burnt == int(wanted["receipt_tokens_burnt"])
    refunds = [ledger.receipt(child).actions for child in outcome.receipt_ids]
    amount = int(wanted["gas_refund"])
    assert refunds == ([(Transfer(amount),)] if amount else [])
    known = ledger.world.state(START).account(receiver_id) is not None
    assert known is not wanted["account_created"]
