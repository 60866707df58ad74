"""
The gas of calls that fail, and when gas ends: values of nearcore's own tests.

Those are in near-vm-runner/src/logic/tests: promises.rs, gas_counter.rs, miscs.rs, view_method.rs.
They run with the fees of `RuntimeFeesConfig::test` (core/parameters/src/cost.rs).
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import pytest

from ledgerkit.localnet import fees
from ledgerkit.localnet.execution_errors import HostError
from ledgerkit.localnet.fees import TGAS, Fee
from ledgerkit.localnet.wasm.host_functions import HOST_FUNCTIONS, available
from tests.unit.localnet.machine import KEY, Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IN_REGISTER = 2**64 - 1
PREPAID = 10 * TGAS


def uniform(gas: int) -> Fee:
    """Build a fee with the same gas to send and to execute."""
    return Fee(gas, gas, gas)


TEST_TABLE = fees.PROFILES["86"].table | {
    "new_action_receipt": uniform(108_059_500_000),
    "data_receipt_base": uniform(4_697_339_419_375),
    "data_receipt_byte": uniform(59_357_464),
    "create_account": uniform(3_850_000_000_000),
    "deploy_contract_byte": uniform(6_812_999),
    "function_call": uniform(2_319_861_500_000),
    "function_call_byte": uniform(2_235_934),
    "add_function_call_key_byte": uniform(1_925_331),
    "deploy_global_contract_byte": Fee(6_812_999, 6_812_999, 70_000_000),
    "deterministic_state_init": Fee(3_850_000_000_000, 3_850_000_000_000, 4_080_000_000_000),
}


def machine_of(fee: dict[str, Fee] | None = None, **context: object) -> Machine:
    """Build the context of nearcore's tests, with other fees."""
    profile = replace(fees.PROFILES["86"], table=TEST_TABLE | (fee or {}))
    values: dict[str, object] = {"balance": 110, "prepaid_gas": 100 * TGAS, **context}
    return Machine(profile, **values)


def create(machine: Machine, receiver_id: bytes = b"rick.test") -> int:
    """Create a receipt; return its promise's index."""
    return machine.run("promise_batch_create", *machine.put(receiver_id))


# Failed calls burn gas too ---------------------------------------------------------------

Numbers = tuple[int, ...]


def no_numbers(_: Machine) -> Numbers:
    return ()


def code(machine: Machine) -> Numbers:
    return machine.put(b"sample")


def code_hash(machine: Machine) -> Numbers:
    return machine.put(sha256(b"arbitrary").digest())


def stake(machine: Machine) -> Numbers:
    return (machine.amount(110), *machine.put(KEY.packed))


def function_call_key(machine: Machine) -> Numbers:
    key, names = machine.put(KEY.packed), machine.put(b"foo,bar")
    return (*key, 1, machine.amount(999), *machine.put(b"sam"), *names)


def refuse(machine: Machine, name: str, *numbers: int) -> HostError:
    """Run a host function that fails; return its error."""
    with pytest.raises(HostError) as caught:
        machine.run(name, *numbers)
    return caught.value


@pytest.mark.parametrize(
    ("action", "write", "extra", "used"),
    [
        ("create_account", no_numbers, (), 12_578_263_688_564),
        ("deploy_contract", code, (), 5_255_774_958_146),
        ("deploy_global_contract", code, (), 5_256_154_080_152),
        ("use_global_contract", code_hash, (b"not a valid CryptoHash repr",), 5_262_559_186_522),
        ("stake", stake, (), 5_138_414_976_215),
        ("add_key_with_function_call", function_call_key, (), 5_126_680_499_695),
    ],
)
def test_gas_of_actions_with_refused_ones(action, write, extra, used):
    """An action for no promise, and for a joint one, costs what it did before it was refused."""
    machine, name = machine_of(), f"promise_batch_action_{action}"
    call = (*machine.put(b"promise_create"), *machine.put(b"args"), machine.amount(0), 0)
    index = machine.run("promise_create", *machine.put(b"rick.test"), *call)
    numbers = write(machine)
    error = refuse(machine, name, 123, *numbers)
    assert error.text == "123 does not correspond to existing promises"
    joint = machine.run("promise_and", machine.put(index.to_bytes(8, "little"))[1], 1)
    error = refuse(machine, name, joint, *numbers)
    assert error.text == "Actions can only be appended to non-joint promise."
    for data in extra:
        refuse(machine, name, 123, *machine.put(data))
    machine.run(name, index, *numbers)
    assert machine.run("used_gas") == used


def test_gas_of_transfers_with_refused_ones():
    """A transfer that exceeds the balance has burnt its fee, and reserved what it costs later."""
    machine = machine_of()
    call = (*machine.put(b"promise_create"), *machine.put(b"args"), machine.amount(0), 0)
    index = machine.run("promise_create", *machine.put(b"rick.test"), *call)
    amount = machine.amount(110)
    joint = machine.run("promise_and", machine.put(index.to_bytes(8, "little"))[1], 1)
    for wrong in (123, joint):
        refuse(machine, "promise_batch_action_transfer", wrong, amount)
    machine.run("promise_batch_action_transfer", index, amount)
    error = refuse(machine, "promise_batch_action_transfer", index, machine.amount(1))
    assert error.text == "Exceeded the account balance."
    assert machine.run("used_gas") == 5_349_703_444_787


def test_gas_of_callbacks_with_a_refused_one():
    """A callback may follow a joint promise of one receipt, but no promise that is not there."""
    machine = machine_of()
    call = (*machine.put(b"promise_create"), *machine.put(b"args"), machine.amount(0), 0)
    index = machine.run("promise_create", *machine.put(b"rick.test"), *call)
    receiver = machine.put(b"rick.test")
    refuse(machine, "promise_batch_then", 123, *receiver)
    joint = machine.run("promise_and", machine.put(index.to_bytes(8, "little"))[1], 1)
    machine.run("promise_batch_then", joint, *receiver)
    machine.run("promise_batch_then", index, *receiver)
    assert machine.run("used_gas") == 24_124_999_601_771


def test_gas_of_an_initial_state():
    """An initial state costs by its entries and bytes, read from the memory or from registers."""
    machine = machine_of()
    index = create(machine)
    for register_id, data in enumerate((b"key2", b"value2")):
        machine.guest.write_register(register_id, data)
    owner, amount = machine.put(b"global.near"), machine.amount(110)
    name = "promise_batch_action_state_init_by_account_id"
    action = machine.run(name, index, *owner, amount)
    record = (*machine.put(b"key"), *machine.put(b"value"))
    machine.run("set_state_init_data_entry", index, action, *record)
    registers = (IN_REGISTER, 0, IN_REGISTER, 1)
    machine.run("set_state_init_data_entry", index, action, *registers)
    assert machine.run("used_gas") == 8_586_074_959_513
    profile = machine.vm.gas.profile
    assert profile["ACTION_COST", "DETERMINISTIC_STATE_INIT_BYTE"] == 1_296_000_000
    assert profile["ACTION_COST", "DETERMINISTIC_STATE_INIT_ENTRY"] == 0


# Gas ends at each fee --------------------------------------------------------------------


def new_receipt(machine: Machine) -> None:
    create(machine)


def dependency(machine: Machine) -> None:
    """Create a receipt that waits for another."""
    machine.run("promise_batch_then", create(machine), *machine.put(b"rick.test"))


def value_return(machine: Machine) -> None:
    """Return 11 bytes to a waiting receipt."""
    machine.run("value_return", *machine.put(b"lorem ipsum"))


class Amount(NamedTuple):
    """An amount in the memory."""

    yocto: int


def action(
    name: str, *parts: bytes | int | Amount, receiver_id: bytes = b"alice.test"
) -> Callable[[Machine], None]:
    """Return a function that adds an action; bytes and amounts are written to the memory."""

    def add(machine: Machine) -> None:
        numbers = [create(machine, receiver_id)]
        for part in parts:
            if isinstance(part, Amount):
                numbers.append(machine.amount(part.yocto))
            else:
                numbers += machine.put(part) if isinstance(part, bytes) else [part]
        machine.run(f"{ACTION}{name}", *numbers)

    return add


ACTION = "promise_batch_action_"


def state_init(machine: Machine) -> tuple[int, int]:
    """Add an initial state; return the indices of its promise and action."""
    index = create(machine)
    owner = machine.put(sha256(b"some code").digest())
    return index, machine.run(f"{ACTION}state_init", index, *owner, machine.amount(110))


def state_record(machine: Machine) -> None:
    """Add an initial state with a record of 8 bytes."""
    indices = state_init(machine)
    record = (*machine.put(b"key"), *machine.put(b"value"))
    machine.run("set_state_init_data_entry", *indices, *record)


CODE, HASH = b"lorem ipsum with length 26", sha256(b"arbitrary").digest()
RICK = b"rick.test"
create_account = action("create_account", receiver_id=RICK)
delete_account = action("delete_account", b"alice.test", receiver_id=b"bob.test")
deploy = action("deploy_contract", CODE, receiver_id=RICK)
deploy_global = action("deploy_global_contract", CODE, receiver_id=RICK)
use_global = action("use_global_contract", HASH, receiver_id=RICK)
use_global_of = action("use_global_contract_by_account_id", b"alice.near", receiver_id=RICK)
function_call = action(
    "function_call", b"fn_with_len_14", CODE, Amount(1), 1, receiver_id=RICK
)  # of 40 bytes
transfer = action("transfer", Amount(1))
new_stake = action("stake", Amount(1), KEY.packed, receiver_id=b"pool.test")
full_access_key = action("add_key_with_full_access", KEY.packed, 0)
new_call_key = action(
    "add_key_with_function_call", KEY.packed, 0, Amount(1), b"alice.test", b"foo,baz"
)
delete_key = action("delete_key", KEY.packed)
LIMITS = [
    ("new_action_receipt", 1, new_receipt, 8_644_846_690),
    ("new_action_receipt", 2, dependency, 9_411_968_532_130),
    ("data_receipt_base", 1, dependency, PREPAID),
    ("data_receipt_byte", 11, value_return, PREPAID),
    ("create_account", 1, create_account, 116_969_114_801),
    ("delete_account", 1, delete_account, 125_349_193_370),
    ("deploy_contract", 1, deploy, 119_677_812_659),
    ("deploy_contract_byte", 26, deploy, 304_443_562_909),
    ("deploy_global_contract", 1, deploy_global, 119_677_812_659),
    ("deploy_global_contract_byte", 26, deploy_global, 304_443_562_909),
    ("use_global_contract", 1, use_global, 119_700_620_657),
    ("use_global_contract", 1, use_global_of, 125_644_575_182),
    ("use_global_contract_byte", 32, use_global, 304_466_370_967),
    ("use_global_contract_byte", 10, use_global_of, 310_410_325_272),
    ("function_call", 1, function_call, 125_011_579_049),
    ("function_call_byte", 40, function_call, 2_444_873_079_439),
    ("transfer", 1, transfer, 119_935_181_141),
    ("stake", 1, new_stake, 122_375_106_518),
    ("add_full_access_key", 1, full_access_key, 119_999_803_802),
    ("add_function_call_key", 1, new_call_key, 133_982_421_242),
    ("add_function_call_key_byte", 7, new_call_key, 236_200_046_312),
    ("delete_key", 1, delete_key, 119_999_803_802),
    ("deterministic_state_init", 1, state_init, 122_371_305_185),
    ("deterministic_state_init_entry", 1, state_record, 3_977_886_210_360),
    ("deterministic_state_init_byte", 8, state_record, 3_977_886_210_430),
]


LIMIT_IDS = [f"{number}-{limit[0]}" for number, limit in enumerate(LIMITS)]


@pytest.mark.parametrize(("name", "count", "run", "burnt"), LIMITS, ids=LIMIT_IDS)
def test_reserved_gas_ends_at_each_fee(name, count, run, burnt):
    """A fee to execute that is not there burns what was burnt before it, and uses all gas."""
    fee = {name: Fee(1, 10, PREPAID // count + 1)}
    machine = machine_of(fee, prepaid_gas=PREPAID, data_receivers=("alice.test",))
    with pytest.raises(HostError) as caught:
        run(machine)
    assert caught.value.text == "Exceeded the prepaid gas."
    assert (machine.vm.gas.burnt, machine.vm.gas.used) == (burnt, PREPAID)


@pytest.mark.parametrize(("name", "count", "run"), [limit[:3] for limit in LIMITS], ids=LIMIT_IDS)
def test_burnt_gas_ends_at_each_fee(name, count, run, monkeypatch):
    """A fee to send that exceeds what a call may burn burns everything, reserved gas included."""
    monkeypatch.setattr(fees, "MAX_GAS_BURNT", PREPAID)
    fee = {name: Fee(PREPAID // count + 1, PREPAID // count + 10, 1)}
    machine = machine_of(fee, prepaid_gas=PREPAID, data_receivers=("alice.test",))
    with pytest.raises(HostError) as caught:
        run(machine)
    assert caught.value.view_message == "HostError(GasLimitExceeded)"
    assert (machine.vm.gas.burnt, machine.vm.gas.used) == (PREPAID, PREPAID)


def test_instructions_burn_reserved_gas():
    """Gas that a module counts itself burns all prepaid gas when it exceeds what is left."""
    machine = machine_of()
    create(machine)
    opcodes = 2 * (100 * TGAS // fees.REGULAR_OP)
    assert refuse(machine, "gas", opcodes).text == "Exceeded the prepaid gas."
    assert machine.vm.gas.burnt == machine.vm.gas.used == 100 * TGAS


def test_attached_gas_that_is_not_there_is_not_burnt():
    """A call with more gas than there is reserves everything, and burns its own costs."""
    machine = machine_of()
    index = create(machine)
    call = (*machine.put(b"promise_batch_action"), *machine.put(b"args"), machine.amount(0))
    error = refuse(machine, f"{ACTION}function_call", index, *call, 200 * TGAS)
    assert error.text == "Exceeded the prepaid gas."
    assert machine.vm.gas.burnt < 50 * TGAS
    assert machine.vm.gas.used == 100 * TGAS


def test_gas_beyond_64_bits():
    """Gas that 64 bits do not hold is an overflow, which burns nothing."""
    machine = machine_of()
    index = create(machine)
    call = (*machine.put(b"go"), *machine.put(b""), machine.amount(0))
    for arguments in (
        (f"{ACTION}function_call", index, *call, 2**64 - 1),
        ("value_return", 2**64 - 2, 0),
        ("promise_and", 0, 2**61),
    ):
        assert refuse(machine, *arguments).text == "Integer overflow."
    assert machine.vm.gas.burnt < TGAS * 10


# Limits and views ------------------------------------------------------------------------


def test_a_joint_promise_of_one_receipt_cannot_be_returned():
    """A promise is joint even if it joins one receipt only."""
    machine = machine_of()
    index = create(machine)
    joint = machine.run("promise_and", machine.put(index.to_bytes(8, "little"))[1], 1)
    error = refuse(machine, "promise_return", joint)
    assert error.text == "Returning joint promise is currently prohibited."


def prohibited() -> Iterator[tuple[str, str]]:
    """Return the functions that a view may not call, with the names in their errors."""
    names = {
        "promise_create": "promise_batch_create",
        "promise_then": "promise_batch_then",
        "promise_batch_action_function_call_weight": "promise_batch_action_function_call",
    }
    others = {"signer_account_id", "signer_account_pk", "predecessor_account_id", "prepaid_gas"}
    others |= {"used_gas", "storage_write", "storage_remove", "set_state_init_data_entry"}
    others |= {"refund_to_account_id"}
    for name in available(86):
        if name in others or name.startswith("promise_"):
            yield name, names.get(name, name)


def test_views_refuse_before_they_read(subtests):
    """In a view these functions fail by name, whatever their numbers refer to."""
    for name, in_error in list(prohibited()):
        with subtests.test(name=name):
            machine = machine_of(is_view=True)
            numbers = [2**40 for _ in HOST_FUNCTIONS[name].parameters]
            assert (
                refuse(machine, name, *numbers).text == f"{in_error} is not allowed in view calls"
            )
