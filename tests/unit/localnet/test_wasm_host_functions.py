"""
The host functions of Wasm modules: results, errors, and gas by the node's fee table.

The counts of costs, the hashes and the signatures are those of nearcore's own tests
(near-vm-runner/src/logic/tests), without the calls by which they read a result.
"""

from __future__ import annotations

import pytest

from ledgerkit.localnet import fees
from ledgerkit.localnet.execution_errors import CallError, HostError, PanicError
from ledgerkit.localnet.wasm.host_functions import available
from ledgerkit.protocol import (
    AccessKey,
    AddKey,
    CryptoHash,
    DeterministicStateInit,
    FunctionCall,
    FunctionCallPermission,
    StateInit,
    UniversalStateInit,
    UniversalStateInitV1,
)
from tests.unit.localnet.ledger import N
from tests.unit.localnet.machine import KEY, Machine

NO_REGISTER = 2**64 - 1
SHA256 = "12b0739c2d64f184b4864d2a696fc77f767 05cff582b53937a371a242a9ca09e".replace(" ", "")
KECCAK256 = "686e3a7ae6b5d791e7e531a27ba7b13a1a8e81ad0725091ae9734066 3d550a9f".replace(" ", "")
KECCAK512 = (
    "37866089a87abb5f434c127a920be16a75c29a9d30a05a92 68d1767edee6c87d3049c5ec7badc0c55a99a7796458"
    "d1f089 56ef295780dbf988cbdc6d2ea8eabe"
).replace(" ", "")
RIPEMD160 = "15669c73e8033ad72354811e8f56d46846610ee1"
# Hashes of no bytes: NIST, Cryptographic Algorithm Validation Program, the test vectors of SHA-3.
SHA3 = {
    256: "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a",
    384: "0c63a75b845e4f7d01107d852e4c2485c51a50aaaa94fc61995e71bbee983a2a"
    "c3713831264adb47fb6bd1e058d5f004",
    512: "a69f73cca23a9ac5c8b567dc185a756e97c982164fe25859e0d1dcc1475c80a6"
    "15b2123af1f5f94c11e3e9402c3ac558f500199d95b6d3e301758586281dcd26",
}


@pytest.mark.parametrize(
    ("name", "digest", "cost"),
    [
        ("sha256", SHA256, {"sha256_base": 1, "sha256_byte": 7}),
        ("keccak256", KECCAK256, {"keccak256_base": 1, "keccak256_byte": 7}),
        ("keccak512", KECCAK512, {"keccak512_base": 1, "keccak512_byte": 7}),
        ("ripemd160", RIPEMD160, {"ripemd160_base": 1, "ripemd160_block": 1}),
    ],
)
def test_hashes(name, digest, cost):
    """A hash costs by the bytes it reads, hashes and writes."""
    machine = Machine()
    machine.run(name, *machine.put(b"tesdsst"), 0)
    size = len(digest) // 2
    written = {"write_register_base": 1, "write_register_byte": size}
    assert machine.costs() == {"read_memory_base": 1, "read_memory_byte": 7} | cost | written
    assert machine.guest.read_register(0).hex() == digest


def test_sha3():
    """The hashes of FIPS 202 came with version 87; they cost as the Keccak ones do."""
    for bits, digest in SHA3.items():
        machine = Machine()
        machine.run(f"sha3_{bits}", *machine.put(b""), 0)
        assert machine.guest.read_register(0).hex() == digest
        machine.costs()
        machine.run(f"sha3_{bits}", *machine.put(b"tesdsst"), 0)
        costs = {f"sha3_{bits}_base": 1, f"sha3_{bits}_byte": 7}
        read = {"read_memory_base": 1, "read_memory_byte": 7}
        written = {"write_register_base": 1, "write_register_byte": bits // 8}
        assert machine.costs() == read | costs | written


def test_a_hash_of_a_register():
    """With 2^64 - 1 as its length, an address is the id of a register."""
    machine = Machine()
    machine.guest.write_register(1, b"tesdsst")
    machine.costs()
    machine.run("sha256", NO_REGISTER, 1, 0)
    assert machine.costs() == {
        "read_register_base": 1,
        "read_register_byte": 7,
        "sha256_base": 1,
        "sha256_byte": 7,
        "write_register_base": 1,
        "write_register_byte": 32,
    }
    assert machine.guest.read_register(0).hex() == SHA256


def test_logs_cost_by_their_bytes():
    """A text of UTF-8 is read, decoded and logged; one that is not UTF-8 is refused."""
    text = "j ñ r'ø qò$`5 y'5 øò{%÷ `Võ%"
    machine, size = Machine(), len(text.encode())
    machine.run("log_utf8", *machine.put(text.encode()))
    assert machine.vm.logs == [text]
    assert machine.costs() == {
        "base": 1,
        "log_base": 1,
        "log_byte": size,
        "read_memory_base": 1,
        "read_memory_byte": size,
        "utf8_decoding_base": 1,
        "utf8_decoding_byte": size,
    }
    with pytest.raises(HostError, match="bad UTF-8"):
        machine.run("log_utf8", *machine.put(b"\x80"))
    assert machine.costs() == {
        "base": 1,
        "read_memory_base": 1,
        "read_memory_byte": 1,
        "utf8_decoding_base": 1,
        "utf8_decoding_byte": 1,
    }


def test_texts_up_to_a_zero():
    """With 2^64 - 1 as its length a text ends with a zero, and each read costs."""
    machine = Machine()
    _, address = machine.put(b"abc\0")
    machine.run("log_utf8", NO_REGISTER, address)
    assert machine.vm.logs == ["abc"]
    assert machine.costs()["read_memory_base"] == 4
    _, address = machine.put("dé".encode("utf-16-le") + b"\0\0")
    machine.run("log_utf16", NO_REGISTER, address)
    assert machine.vm.logs == ["abc", "dé"]
    with pytest.raises(HostError, match="bad UTF-16"):
        machine.run("log_utf16", *machine.put(b"odd"))


def test_panics():
    """A panic has the module's text, that of AssemblyScript with a file, a line and a column."""
    machine = Machine()
    with pytest.raises(PanicError, match="explicit guest panic"):
        machine.run("panic")
    with pytest.raises(PanicError, match="no more"):
        machine.run("panic_utf8", *machine.put(b"no more"))
    addresses = []
    for text in ("sorry", "index.ts"):
        data = text.encode("utf-16-le")
        machine.put(len(data).to_bytes(4, "little"))
        addresses.append(machine.put(data)[1])
    with pytest.raises(PanicError) as caught:
        machine.run("abort", *addresses, 3, 4)
    assert caught.value.text == 'sorry, filename: "index.ts" line: 3 col: 4'
    assert machine.vm.logs == ['ABORT: sorry, filename: "index.ts" line: 3 col: 4']


def test_registers():
    """Registers are limited in number and size, and reading one that is not set is refused."""
    machine = Machine()
    machine.run("write_register", 5, *machine.put(b"value"))
    assert machine.run("register_len", 5) == 5
    assert machine.run("register_len", 6) == 2**64 - 1
    machine.run("read_register", 5, 1000)
    assert machine.memory.read(1000, 5) == b"value"
    with pytest.raises(HostError, match="Accessed invalid register id: 6"):
        machine.run("read_register", 6, 0)
    for register_id in range(100, 199):
        machine.guest.write_register(register_id, b"")
    with pytest.raises(HostError, match="Accessed memory outside the bounds"):
        machine.guest.write_register(5, b"")  # the node refuses a replacement too


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("current_account_id", b"alice.near"),
        ("signer_account_id", b"bob.near"),
        ("signer_account_pk", b"\0" + bytes(range(32))),
        ("predecessor_account_id", b"carol.near"),
        ("input", b"arguments"),
        ("random_seed", bytes(32)),
        ("chain_id", b"localnet"),
    ],
)
def test_the_context(name, expected):
    """Context functions write to a register; arguments cost nothing by their bytes."""
    machine = Machine()
    machine.run(name, 0)
    costs = {"base": 1, "write_register_base": 1, "write_register_byte": len(expected)}
    if name == "input":
        del costs["write_register_byte"]
    assert machine.costs() == costs
    assert machine.guest.read_register(0) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("account_balance", 100 * N), ("account_locked_balance", 7), ("attached_deposit", 2)],
)
def test_amounts(name, expected):
    """Amounts are written to the memory in 16 bytes."""
    machine = Machine()
    machine.run(name, 8)
    assert int.from_bytes(machine.memory.read(8, 16), "little") == expected
    assert machine.costs() == {"base": 1, "write_memory_base": 1, "write_memory_byte": 16}


def test_storage_costs_by_the_bytes_of_keys_and_values():
    """Writing, replacing, reading and removing a record, as nearcore charges for each."""
    machine = Machine()
    key, value = machine.put(b"foo"), machine.put(b"barbar")
    assert machine.run("storage_write", *key, *value, 0) == 0
    read = {"base": 1, "read_memory_base": 2, "read_memory_byte": 9}
    written = {
        "storage_write_base": 1,
        "storage_write_key_byte": 3,
        "storage_write_value_byte": 6,
    }
    assert machine.costs() == read | written
    assert machine.vm.storage_usage == 12 + 40 + 3 + 6
    old = {
        "storage_write_evicted_byte": 6,
        "write_register_base": 1,
        "write_register_byte": 6,
    }
    assert machine.run("storage_write", *key, *value, 0) == 1
    assert machine.costs() == read | written | old
    assert machine.run("storage_read", *key, 1) == 1
    assert machine.costs() == {
        "base": 1,
        "read_memory_base": 1,
        "read_memory_byte": 3,
        "storage_read_base": 1,
        "storage_read_key_byte": 3,
        "storage_read_value_byte": 6,
        "write_register_base": 1,
        "write_register_byte": 6,
    }
    assert machine.run("storage_has_key", *key) == 1
    assert machine.costs()["storage_has_key_byte"] == 3
    assert machine.run("storage_remove", *key, 2) == 1
    assert machine.costs() == {
        "base": 1,
        "read_memory_base": 1,
        "read_memory_byte": 3,
        "storage_remove_base": 1,
        "storage_remove_key_byte": 3,
        "storage_remove_ret_value_byte": 6,
        "write_register_base": 1,
        "write_register_byte": 6,
    }
    assert machine.guest.read_register(2) == b"barbar"
    assert machine.vm.storage_usage == 12
    assert machine.run("storage_remove", *key, 2) == machine.run("storage_read", *key, 2) == 0


def test_iterators_are_deprecated():
    """The node refuses them in these words."""
    with pytest.raises(HostError) as caught:
        Machine().run("storage_iter_prefix", 0, 0)
    assert caught.value.text == "Attempted to call deprecated host function storage_iter_prefix"


def test_a_promise_with_many_actions():
    """A batch collects its actions in their order, with the deposits deducted."""
    machine = Machine()
    index = machine.run("promise_batch_create", *machine.put(b"rick.test"))
    machine.run("promise_batch_action_create_account", index)
    machine.run("promise_batch_action_transfer", index, machine.amount(N))
    key = machine.put(KEY.packed)
    machine.run("promise_batch_action_add_key_with_full_access", index, *key, 3)
    machine.run(
        "promise_batch_action_add_key_with_function_call",
        *(index, *key, 0, machine.amount(0), *machine.put(b"dex.near"), *machine.put(b"a,b")),
    )
    call = (*machine.put(b"init"), *machine.put(b"{}"), machine.amount(5), 10 * fees.TGAS)
    machine.run("promise_batch_action_function_call", index, *call)
    (draft,) = machine.vm.drafts
    assert draft.receiver_id == "rick.test"
    assert [action.name for action in draft.actions[:2]] == ["CreateAccount", "Transfer"]
    permission = FunctionCallPermission(None, "dex.near", ("a", "b"))
    assert draft.actions[2:] == [
        AddKey(KEY, AccessKey(3)),
        AddKey(KEY, AccessKey(0, permission)),
        FunctionCall("init", b"{}", 10 * fees.TGAS, 5),
    ]
    assert machine.vm.balance == 99 * N - 5


def test_callbacks_and_joined_promises():
    """A callback waits for the data of each promise that it follows."""
    machine = Machine()
    call = (*machine.put(b"do"), *machine.put(b""), machine.amount(0), 0)
    first = machine.run("promise_create", *machine.put(b"a.near"), *call)
    second = machine.run("promise_create", *machine.put(b"b.near"), *call)
    _, address = machine.put(first.to_bytes(8, "little") + second.to_bytes(8, "little"))
    machine.costs()
    both = machine.run("promise_and", address, 2)
    assert machine.costs() == {
        "base": 1,
        "promise_and_base": 1,
        "promise_and_per_promise": 16,
        "read_memory_base": 1,
        "read_memory_byte": 16,
    }
    callback = machine.run("promise_then", both, *machine.put(b"alice.near"), *call)
    machine.run("promise_return", callback)
    drafts = machine.vm.drafts
    waits_for = drafts[2].input_data_ids
    assert [d.output_data_receivers for d in drafts[:2]] == [
        [(data_id, "alice.near")] for data_id in waits_for
    ]
    assert machine.vm.result is machine.guest.promises[callback]
    with pytest.raises(HostError, match="Returning joint promise is currently prohibited"):
        machine.run("promise_return", both)
    with pytest.raises(HostError, match="9 does not correspond to existing promises"):
        machine.run("promise_return", 9)


def test_results_of_promises():
    """A callback reads what succeeded, and sees what failed."""
    machine = Machine(promise_results=(b"value", None))
    assert machine.run("promise_results_count") == 2
    assert machine.run("promise_result", 0, 0) == 1
    assert machine.guest.read_register(0) == b"value"
    assert machine.run("promise_result", 1, 0) == 2
    with pytest.raises(HostError, match="Accessed invalid promise result index: 2"):
        machine.run("promise_result", 2, 0)


def test_an_initial_state():
    """Records are added one by one, and a key only once."""
    machine = Machine()
    index = machine.run("promise_batch_create", *machine.put(b"a.near"))
    code = machine.put(b"\1" * 32)
    action = machine.run("promise_batch_action_state_init", index, *code, machine.amount(9))
    record = (*machine.put(b"key"), *machine.put(b"value"))
    machine.run("set_state_init_data_entry", index, action, *record)
    state_init = StateInit(CryptoHash(b"\1" * 32), {b"key": b"value"})
    assert machine.vm.drafts[0].actions == [DeterministicStateInit(state_init, 9)]
    with pytest.raises(HostError, match="Data entry for given key already exists"):
        machine.run("set_state_init_data_entry", index, action, *record)
    with pytest.raises(HostError, match="Action 5 in receipt 0 does not exist"):
        machine.run("set_state_init_data_entry", index, 5, *record)


def test_the_state_of_a_universal_account():
    """The action has the bytes as they are, with the fees of what they stand for (NEP-655)."""
    machine = Machine(fees.PROFILES["87"])
    vector = bytes.fromhex(f"00 00 00000000 01000000 03 {'11' * 32}")  # of nearcore
    machine.run("universal_state_init_to_account_id", *machine.put(vector), 3)
    assert machine.costs() == {
        "read_memory_base": 1,
        "read_memory_byte": len(vector),
        "universal_state_init_to_account_id_base": 1,
        "universal_state_init_to_account_id_byte": len(vector),
        "write_register_base": 1,
        "write_register_byte": 54,
    }
    account_id = machine.guest.read_register(3)
    assert account_id == b"0ux8te7g99f9kqzdtp9h4qnwt9aczpgayymmtbdc50w199rcw3at1g"
    index = machine.run("promise_batch_create", *machine.put(b"0u" + b"0" * 52))
    machine.vm.gas.profile.clear()
    state_init = UniversalStateInitV1(None, {b"a": b"1"}, [KEY]).encode()
    data = machine.put(state_init)
    machine.run("promise_batch_action_universal_state_init", index, *data, machine.amount(9))
    assert machine.vm.drafts[0].actions == [UniversalStateInit(state_init, 9)]
    assert machine.vm.balance == 100 * N - 9
    sent = {
        name: gas
        for (kind, name), gas in machine.vm.gas.profile.items()
        if kind != "WASM_HOST_COST"
    }
    assert {name: gas for name, gas in sent.items() if gas} == {
        "UNIVERSAL_STATE_INIT_BASE": 500_000_000_000,
        "UNIVERSAL_STATE_INIT_BYTE": len(state_init) * 72_000_000,
        "ADD_FULL_ACCESS_KEY": 101_765_125_000,
    }


def test_yielded_calls():
    """A call waits under its data id, or under an id of the contract's own, which is unique."""
    machine = Machine()
    call = (*machine.put(b"go"), *machine.put(b"{}"))
    machine.run("promise_yield_create", *call, fees.TGAS, 0, 7)
    data_id = machine.guest.read_register(7)
    assert machine.vm.yielded == [data_id]
    payload = machine.put(b"now")
    assert machine.run("promise_yield_resume", *machine.put(data_id), *payload) == 1
    assert machine.run("promise_yield_resume", *machine.put(bytes(32)), *payload) == 0
    with pytest.raises(HostError, match="yield resumption token is malformed"):
        machine.run("promise_yield_resume", *machine.put(b"short"), *payload)
    own_id = machine.put(b"\7" * 32)
    create = (*call, machine.amount(0), fees.TGAS, 0)
    assert machine.run("promise_yield_create_with_id", *create, *own_id) == 1
    assert machine.run("promise_yield_create_with_id", *create, *own_id) == 2**64 - 1
    assert machine.run("promise_yield_resume_with_yield_id", *own_id, *payload) == 1


def test_signatures():
    """Valid and invalid signatures of three curves, from nearcore's vectors and RFC 8032."""
    machine = Machine()
    key = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    signature = bytes.fromhex(
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9"
        "b46bd25bf5f0595bbe24655141438e7a100b"
    )
    arguments = (*machine.put(signature), *machine.put(b""), *machine.put(key))
    assert machine.run("ed25519_verify", *arguments) == 1
    other = (*machine.put(signature), *machine.put(b"x"), *machine.put(key))
    assert machine.run("ed25519_verify", *other) == 0
    message = "ce0677bb30baa8cf067c88db9811f4333d131bf8bcf12fe7065d211dce971008"
    recoverable = (
        "90f27b8b488db00b00606796d2987f6a5f59ae62ea05effe84fef5b8b0e549984a691139ad57a3f0b906637673aa"
        "2f63d1f55cb1a69199d4009eea23ceaddc93"
    )
    public = (
        "e32df42865e97135acfb65f3bae71bdc86f4d49150ad6a440b6f15878109880a0a2b2667f7e725ceea70c673093b"
        "f67663e0312623c8e091b13cf2c0f11ef652"
    )
    parts = (*machine.put(bytes.fromhex(message)), *machine.put(bytes.fromhex(recoverable)))
    machine.costs()
    assert machine.run("ecrecover", *parts, 1, 1, 3) == 1
    assert machine.costs() == {
        "ecrecover_base": 1,
        "read_memory_base": 2,
        "read_memory_byte": 96,
        "write_register_base": 1,
        "write_register_byte": 64,
    }
    assert machine.guest.read_register(3).hex() == public
    zeros = (*machine.put(bytes(32)), *machine.put(bytes(64)))
    assert machine.run("ecrecover", *zeros, 0, 0, 3) == 0
    with pytest.raises(HostError, match="V recovery byte 0 through 3 are valid but was provided 4"):
        machine.run("ecrecover", *parts, 4, 0, 3)


def test_addresses_outside_of_the_memory():
    """Reading and writing outside of the memory fails, at the cost of the bytes."""
    machine = Machine()
    with pytest.raises(HostError, match="Accessed memory outside the bounds"):
        machine.run("value_return", 10, 65_530)
    assert machine.costs()["read_memory_byte"] == 10
    with pytest.raises(HostError, match="Accessed memory outside the bounds"):
        machine.run("account_balance", 65_530)


def test_gas_ends_in_two_ways():
    """A call has its prepaid gas; a view has the limit of the node."""
    for is_view, text in (
        (False, "Exceeded the prepaid gas."),
        (True, "Exceeded the maximum amount of gas allowed to burn per contract."),
    ):
        machine = Machine(is_view=is_view, prepaid_gas=1000)
        with pytest.raises(HostError) as caught:
            machine.run("block_index")
        assert caught.value.text == text
        assert machine.vm.gas.burnt == 1000


def test_functions_by_protocol_version():
    """Version 86 has 89 functions, 85 brought seven of them; others say that they are missing."""
    counts = {version: len(available(version)) for version in (84, 86, 87)}
    assert counts == {84: 82, 86: 89, 87: 95}
    with pytest.raises(CallError) as caught:
        Machine().run("bls12381_p1_sum", 0, 0, 0)
    expected = "the embedded ledger does not have the host function bls12381_p1_sum"
    assert caught.value.failure == {"ExecutionError": expected}
