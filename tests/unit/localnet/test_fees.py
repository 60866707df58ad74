"""What everything costs, by the numbers of the protocol."""

import re
from pathlib import Path

import pytest

import ledgerkit as lk
from ledgerkit.localnet import fees, open_world
from ledgerkit.protocol import (
    AccessKey,
    AddKey,
    CreateAccount,
    DelegateAction,
    DeleteAccount,
    DeleteKey,
    DeployContract,
    DeterministicStateInit,
    FunctionCall,
    FunctionCallPermission,
    GasKeyFullAccess,
    GasKeyFunctionCall,
    Stake,
    StateInit,
    Transfer,
    TransferToGasKey,
    WithdrawFromGasKey,
)
from ledgerkit.protocol.actions import attached_gas, deposits
from tests.unit.localnet.ledger import TGAS, N, public, secret

OLD, NOW, NEXT = (fees.PROFILES[version] for version in ("84", "86", "87"))
HEX = "ab" * 32
ETH = "0x" + "cd" * 20
STATE = "0s" + "ef" * 20
FULL = AddKey(public("k"))
CALLS = AddKey(public("k"), AccessKey(0, FunctionCallPermission(None, "a.near", ["set", "get"])))
TRANSFER = (115_123_062_500,) * 3
CREATE_OLD = (3_850_000_000_000,) * 3
CREATE = (500_000_000_000, 500_000_000_000, 7_200_000_000_000)
KEY = (101_765_125_000,) * 3
CALL = (200_000_000_000, 200_000_000_000, 780_000_000_000)
GAS_KEY = (115_123_062_500, 115_123_062_500, 235_676_644_250)


def by_byte(count, base, byte):
    return tuple(one + count * more for one, more in zip(base, byte, strict=True))


# Send to oneself, send to others, execute.
EXPECTED = [
    (Transfer(1), "bob.near", TRANSFER),
    (CreateAccount(), "a.bob.near", CREATE),
    (Transfer(1), ETH, tuple(map(sum, zip(TRANSFER, CREATE, strict=True)))),
    (Transfer(1), HEX, tuple(map(sum, zip(TRANSFER, CREATE, KEY, strict=True)))),
    (FULL, "bob.near", KEY),
    (
        CALLS,
        "bob.near",
        by_byte(8, (102_217_625_000,) * 3, (1_925_331, 47_683_715, 1_925_331)),
    ),
    (DeleteKey(public("k")), "bob.near", (94_946_625_000,) * 3),
    (DeleteAccount("a.near"), "bob.near", (147_489_000_000,) * 3),
    (Stake(1, public("k")), "bob.near", (141_715_687_500, 141_715_687_500, 102_217_625_000)),
    (
        DeployContract(bytes(1000)),
        "bob.near",
        by_byte(1000, (184_765_750_000,) * 3, (6_812_999, 47_683_715, 64_572_944)),
    ),
    (
        FunctionCall("ping", b"12", TGAS),
        "bob.near",
        by_byte(6, CALL, (2_235_934, 47_683_715, 2_235_934)),
    ),
    # One record of 5 and 3 bytes.
    (
        DeterministicStateInit(StateInit("a.near", {b"STATE": b"one"})),
        STATE,
        (500_576_000_000, 500_576_000_000, 7_630_560_000_000),
    ),
    # The key is 33 bytes. In the state its path has 1 + 8 + 1 + 33, and its shortest value 27.
    (
        TransferToGasKey(public("k"), 1),
        "bob.near",
        by_byte(1, GAS_KEY, (33 * 59_357_464, 33 * 59_357_464, 70 * 101_435_400)),
    ),
    (
        WithdrawFromGasKey(public("k"), 1),
        "bob.near",
        by_byte(1, GAS_KEY, (33 * 59_357_464, 33 * 59_357_464, 70 * 101_435_400)),
    ),
    # Each of three nonces has the path, 2 bytes of index and 8 of value.
    (
        AddKey(public("k"), AccessKey(0, GasKeyFullAccess(0, 3))),
        "bob.near",
        by_byte(
            1,
            KEY,
            (18 * 59_357_464, 18 * 59_357_464, 3 * (64_196_736_000 + 53 * 101_435_400)),
        ),
    ),
    (
        AddKey(public("k"), AccessKey(0, GasKeyFunctionCall(0, 1, None, "a.near", ["set"]))),
        "bob.near",
        by_byte(
            1,
            by_byte(4, (102_217_625_000,) * 3, (1_925_331, 47_683_715, 1_925_331)),
            (18 * 59_357_464, 18 * 59_357_464, 64_196_736_000 + 53 * 101_435_400),
        ),
    ),
    (Transfer(1), STATE, tuple(map(sum, zip(TRANSFER, CREATE, strict=True)))),
]


def test_an_action_costs(subtests):
    """To send, near and far, and to execute; in version 87 as in 86."""
    for action, receiver_id, fee in EXPECTED:
        with subtests.test(fee=fee):
            assert tuple(NOW.fee(action, receiver_id)) == fee
            assert tuple(NEXT.fee(action, receiver_id)) == fee
            assert NOW.send([action], receiver_id, receiver_id) == fee[0]
            assert NOW.send([action], "alice.near", receiver_id) == fee[1]
            assert NOW.prepaid_execution([action, action], receiver_id) == 2 * fee[2]


def test_creating_was_cheaper():
    """3.85 Tgas each until version 84, for implicit accounts too."""
    assert tuple(OLD.fee(CreateAccount(), "a.bob.near")) == CREATE_OLD
    assert OLD.fee(Transfer(1), ETH).execute == 3_965_123_062_500
    assert OLD.fee(Transfer(1), HEX).execute == 4_066_888_187_500
    assert tuple(OLD.fee(Transfer(1), "bob.near")) == TRANSFER


def test_bytes_of_names_are_counted_in_utf8():
    """A method of two letters and three bytes costs three."""
    wide = NOW.fee(FunctionCall("aé", b"", TGAS), "bob.near").execute
    assert wide == 780_000_000_000 + 3 * 2_235_934


def test_a_delegate_prepays_what_is_inside():
    """Execution of its own, sending and execution of the receipt inside, and attached gas."""
    key = secret("bob.near")
    inner = [FunctionCall("a", b"", 7 * TGAS, 3), Transfer(5)]
    wanted = DelegateAction("bob.near", "s.near", inner, 1, 9, key.public_key).sign(key)
    assert tuple(NOW.fee(wanted, "bob.near")) == (200_000_000_000,) * 3
    receipt = 108_059_500_000
    sending = 200_000_000_000 + 47_683_715 + 115_123_062_500
    execution = receipt + 780_000_000_000 + 2_235_934 + 115_123_062_500
    assert NOW.prepaid_execution([wanted], "bob.near") == 200_000_000_000 + sending + execution
    # Sent by another, what is inside travels as far as the delegate itself; by bob, as near.
    assert NOW.send([wanted], "alice.near", "bob.near") == 200_000_000_000 + sending
    near = 200_000_000_000 + 2_235_934 + 115_123_062_500
    assert NOW.send([wanted], "bob.near", "bob.near") == 200_000_000_000 + near
    assert attached_gas([wanted, FunctionCall("b", b"", TGAS)]) == 8 * TGAS
    assert deposits([wanted, Transfer(4)]) == 12


def test_gas_has_a_least_purchase_price():
    """10^9 from version 85 on, the price itself if that is higher; before, always the price."""
    assert [NOW.purchase_price(price) for price in (10**8, 10**9, 2 * 10**9)] == [
        10**9,
        10**9,
        2 * 10**9,
    ]
    assert OLD.purchase_price(10**8) == 10**8


def test_bytes_beyond_770_lock_tokens():
    """10^19 for each byte of all, once there are more than 770."""
    assert fees.storage_shortfall(0, 770) == 0
    assert fees.storage_shortfall(0, 771) == 771 * 10**19
    assert fees.storage_shortfall(771 * 10**19 - 1, 771) == 1
    assert fees.storage_shortfall(N, 771) == 0


def test_versions_differ_in_so_much():
    """Rewards end with 87; dearer accounts came with 85."""
    assert [p.reward_percent for p in (OLD, NOW, NEXT)] == [30, 30, 0]
    assert [p.creation_charge for p in (OLD, NOW, NEXT)] == [0, 7 * 10**21, 7 * 10**21]


SNAPSHOT = Path(__file__).resolve().parents[4] / "shared/reports/protocol/parameters.snap"
# Names of fees that do not follow from those of the node's parameters.
FEE_NAMES = {
    "action_receipt_creation": "new_action_receipt",
    "data_receipt_creation_base": "data_receipt_base",
    "data_receipt_creation_byte": "data_receipt_byte",
    "action_use_global_contract_identifier_byte": "use_global_contract_byte",
    "action_gas_key_nonce_write_base": "gas_key_nonce_write",
}


def parameters():
    """Read nearcore's parameters of version 84: the fees, and the other numbers."""
    if not SNAPSHOT.exists():
        pytest.skip("the shared parameters are not here")
    table: dict[str, list[int]] = {}
    numbers, name = {}, ""
    for line in SNAPSHOT.read_text().splitlines():
        if fee := re.match(r"- (?:send_sir|send_not_sir|execution): +([0-9_]+)", line):
            table.setdefault(name, []).append(int(fee[1]))
        else:
            name, _, value = line.partition(" ")
            if re.fullmatch("[0-9_]+", value):
                numbers[name] = int(value)
    return table, numbers


def test_fees_are_those_of_the_node():
    """Each fee of the node's parameters is in the table, and no other."""
    expected = {}
    for name, gas in parameters()[0].items():
        short = name.replace("_per_", "_")
        expected[FEE_NAMES.get(short, short.removeprefix("action_"))] = fees.Fee(*gas)
    assert len(expected) == 26
    assert OLD.table == expected


def test_costs_and_limits_are_those_of_the_node():
    """The configuration that the ledger answers has the node's numbers, in each version."""
    numbers = parameters()[1]
    costs = {n.removeprefix("wasm_"): gas for n, gas in numbers.items() if n.startswith("wasm_")}
    limits = {name: limit for name, limit in numbers.items() if not name.startswith("wasm_")}
    assert costs.pop("regular_op_cost") == fees.REGULAR_OP
    for profile in fees.PROFILES:
        with lk.connect("local", world=open_world("empty", profile=profile)) as ledger:
            params = {"finality": "final"}
            config = ledger.rpc("EXPERIMENTAL_protocol_config", params)["runtime_config"]
        known = config["wasm_config"]["ext_costs"]
        assert {name: known[name] for name in costs} == costs
        known = config["wasm_config"]["limit_config"]
        assert {name: known[name] for name in limits} == limits
        # NEP-655, and runtime_configs/87.yaml and 88.yaml of nearcore.
        state_limits = known["max_state_init_entries"], known.get("max_universal_state_init_keys")
        assert state_limits == ((1500, 1024) if profile >= "87" else (2**32 - 1, None))
        assert known.get("max_globals_per_contract") == (65_536 if profile == "88" else None)
