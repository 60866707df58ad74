"""
The host functions that a Wasm module may import, as nearcore declares them.

Sources: near-vm-runner/src/imports.rs for names and types, wasmtime_runner/logic.rs for effects.
Numbers are unsigned integers. A method of `Vm` or `Promise` implements each function's effect.
"""

import hashlib
import struct
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Never

from ledgerkit.localnet.execution_errors import HostError, PanicError
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.vm import Vm
from ledgerkit.localnet.wasm import cryptography
from ledgerkit.localnet.wasm.guest import Guest, bad_utf16
from ledgerkit.protocol import CryptoHash, curves, universal_account_id
from ledgerkit.units import U64_MAX

ValueType = Literal["i32", "i64"]
Run = Callable[..., int | None]

_HASH_BYTES = 32
_MAX_NONCES = 2**16 - 1
_MIN_TEXT_ADDRESS = 4  # AssemblyScript has a text's length in the four bytes before it


class HostFunction(NamedTuple):
    """A host function."""

    parameters: tuple[ValueType, ...]
    results: tuple[ValueType, ...]
    run: Run  # (guest, *numbers) -> number
    since: int = 0  # the protocol version


HOST_FUNCTIONS: dict[str, HostFunction] = {}


def available(version: int) -> dict[str, HostFunction]:
    return {name: item for name, item in HOST_FUNCTIONS.items() if item.since <= version}


# Arguments -------------------------------------------------------------------------------


def _unread(_: Guest, *numbers: int) -> int | tuple[int, ...]:
    return numbers if len(numbers) > 1 else numbers[0]


class _Argument(NamedTuple):
    """An argument of a host function: its numbers, and how its value is read from them."""

    read: Callable[..., Any] = _unread  # (guest, *numbers) -> value
    size: int = 1  # the count of numbers
    order: int = 1  # arguments are read in this order, then by position
    type: ValueType = "i64"


def _nonce_count(_: Guest, number: int) -> int:
    if number > _MAX_NONCES:
        raise HostError("Integer overflow.", "IntegerOverflow")
    return number


def _allowance(guest: Guest, address: int) -> int | None:
    return guest.read_u128(address) or None


def _code_hash(guest: Guest, length: int, address: int) -> CryptoHash:
    data = guest.read(length, address)
    if len(data) != _HASH_BYTES:
        raise HostError("contract code hash is malformed", "ContractCodeHashMalformed")
    return CryptoHash(data)


_NUMBER = _Argument()
_INT32 = _Argument(type="i32")
_SPAN = _Argument(size=2)  # the length and the address of bytes that the function itself reads
_BYTES = _Argument(Guest.read, 2)
_AMOUNT = _Argument(Guest.read_u128)
_FIRST_AMOUNT = _Argument(Guest.read_u128, order=0)
_ALLOWANCE = _Argument(_allowance)
_ACCOUNT_ID = _Argument(Guest.read_account_id, 2)
_PUBLIC_KEY = _Argument(Guest.read_public_key, 2)
_METHOD_NAME = _Argument(Guest.read_method_name, 2)
_METHOD_NAMES = _Argument(Guest.read_method_names, 2)
_CODE_HASH = _Argument(_code_hash, 2)
_NONCE_COUNT = _Argument(_nonce_count)
_PROMISE = _Argument(Guest.promise, order=2)


def _read_values(arguments: Sequence[_Argument], guest: Guest, numbers: Sequence[int]) -> list[Any]:
    ends = list(accumulate(argument.size for argument in arguments))
    values: list[Any] = [None] * len(arguments)
    for position in sorted(range(len(arguments)), key=lambda index: arguments[index].order):
        argument, end = arguments[position], ends[position]
        values[position] = argument.read(guest, *numbers[end - argument.size : end])
    return values


def _host(
    *arguments: _Argument,
    name: str | None = None,
    cost: str | None = None,
    result: ValueType | None = None,
    since: int = 0,
    changes: bool = False,
) -> Callable[[Run], Run]:
    """
    Declare a host function, by default under the name of the Python function.

    The cost is burnt before the arguments are read. A function with `changes` burns its base cost
    then, and fails in a view.
    """

    def declare(run: Run) -> Run:
        full_name = name or run.__name__
        # The node's error names a call with a weight like a call without one.
        public_name = full_name.removesuffix("_weight")

        def call(guest: Guest, *numbers: int) -> int | None:
            if cost is not None:
                guest.burn(cost)
            if not changes:
                return run(guest, *_read_values(arguments, guest, numbers))
            guest.vm.host_call(public_name)
            guest.vm.is_begun = True
            try:
                return run(guest, *_read_values(arguments, guest, numbers))
            finally:
                guest.vm.is_begun = False

        types = tuple(item.type for item in arguments for _ in range(item.size))
        results = () if result is None else (result,)
        HOST_FUNCTIONS[full_name] = HostFunction(types, results, call, since)
        return call

    return declare


# Registers -------------------------------------------------------------------------------


@_host(_NUMBER, _NUMBER, cost="BASE")
def read_register(guest: Guest, register_id: int, address: int) -> None:
    guest.write_memory(address, guest.read_register(register_id))


@_host(_NUMBER, cost="BASE", result="i64")
def register_len(guest: Guest, register_id: int) -> int:
    return guest.register_length(register_id)


@_host(_NUMBER, _SPAN, cost="BASE")
def write_register(guest: Guest, register_id: int, span: tuple[int, int]) -> None:
    length, address = span
    guest.write_register(register_id, guest.read_memory(address, length))


# The context -----------------------------------------------------------------------------


def _to_register(read: Callable[[Vm], bytes], guest: Guest, register_id: int) -> None:
    guest.write_register(register_id, read(guest.vm))


def _to_memory(read: Callable[[Vm], int], guest: Guest, address: int) -> None:
    guest.write_u128(address, read(guest.vm))


def _as_result(read: Callable[[Vm], int], guest: Guest) -> int:
    return read(guest.vm)


# Host functions without a cost here read a property of `Vm` that burns it.
_REGISTER_VALUES: tuple[tuple[str, str | None, int, Callable[[Vm], bytes]], ...] = (
    ("current_account_id", "BASE", 0, lambda vm: vm.current_account_id.encode()),
    ("chain_id", "BASE", 85, lambda vm: vm.context.chain_id.encode()),
    ("signer_account_id", None, 0, lambda vm: vm.signer_id.encode()),
    ("signer_account_pk", None, 0, lambda vm: vm.signer_public_key.packed),
    ("predecessor_account_id", None, 0, lambda vm: vm.predecessor_id.encode()),
    ("refund_to_account_id", None, 0, lambda vm: vm.refund_to_id.encode()),
    ("random_seed", "BASE", 0, lambda vm: vm.random_seed),
)
for _name, _cost, _since, _read in _REGISTER_VALUES:
    _host(_NUMBER, name=_name, cost=_cost, since=_since)(partial(_to_register, _read))

_AMOUNTS: tuple[tuple[str, str | None, str], ...] = (
    ("account_balance", "BASE", "balance"),
    ("account_locked_balance", "BASE", "locked"),
    ("attached_deposit", None, "attached_deposit"),
)
for _name, _cost, _attribute in _AMOUNTS:
    _host(_NUMBER, name=_name, cost=_cost)(partial(_to_memory, attrgetter(_attribute)))

_NUMBERS: tuple[tuple[str, str | None, str], ...] = (
    ("block_index", "BASE", "block_height"),
    ("block_timestamp", "BASE", "block_timestamp"),
    ("epoch_height", "BASE", "epoch_height"),
    ("storage_usage", "BASE", "storage_usage"),
    ("prepaid_gas", None, "prepaid_gas"),
    ("used_gas", None, "used_gas"),
)
for _name, _cost, _attribute in _NUMBERS:
    _host(name=_name, cost=_cost, result="i64")(partial(_as_result, attrgetter(_attribute)))


@_host(_NUMBER, name="input", cost="BASE")
def _input(guest: Guest, register_id: int) -> None:
    guest.write_register(register_id, guest.vm.input, by_bytes=False)


_CONTRACT_KINDS = {"local": 1, "global_hash": 2, "global_account_id": 3}


@_host(_NUMBER, cost="BASE", result="i64")
def current_contract_code(guest: Guest, register_id: int) -> int:
    """Write the hash or the owner of the account's code; return its kind, 0 for none."""
    contract = guest.vm.context.account.contract
    if contract is None:
        return 0
    kind, identifier = contract
    data = bytes(identifier) if isinstance(identifier, CryptoHash) else identifier.encode()
    guest.write_register(register_id, data)
    return _CONTRACT_KINDS[kind]


@_host(_ACCOUNT_ID, _NUMBER, cost="BASE")
def validator_stake(guest: Guest, account_id: str, stake_address: int) -> None:
    guest.burn("VALIDATOR_STAKE_BASE")
    guest.write_u128(stake_address, guest.vm.context.block.validator_stakes.get(account_id, 0))


@_host(_NUMBER, cost="BASE")
def validator_total_stake(guest: Guest, stake_address: int) -> None:
    guest.burn("VALIDATOR_TOTAL_STAKE_BASE")
    guest.write_u128(stake_address, sum(guest.vm.context.block.validator_stakes.values()))


# Old modules count their instructions themselves.
_host(_INT32, name="gas")(Guest.burn_instructions)


# Hashes and signatures -------------------------------------------------------------------


@_host(_BYTES, _NUMBER)
def sha256(guest: Guest, data: bytes, register_id: int) -> None:
    guest.write_register(register_id, guest.vm.sha256(data))


def _hash(
    cost: str, compute: Callable[[bytes], bytes], guest: Guest, data: bytes, register_id: int
) -> None:
    guest.burn(cost, len(data))
    guest.write_register(register_id, compute(data))


_HASHES: tuple[tuple[str, Callable[[bytes], bytes], int], ...] = (
    ("keccak256", partial(cryptography.keccak, bits=256), 0),
    ("keccak512", partial(cryptography.keccak, bits=512), 0),
    ("sha3_256", lambda data: hashlib.sha3_256(data).digest(), 87),
    ("sha3_384", lambda data: hashlib.sha3_384(data).digest(), 87),
    ("sha3_512", lambda data: hashlib.sha3_512(data).digest(), 87),
    ("universal_state_init_to_account_id", lambda data: universal_account_id(data).encode(), 87),
)
for _name, _compute, _since in _HASHES:
    _cost = _name.upper()
    _declare = _host(_BYTES, _NUMBER, name=_name, cost=f"{_cost}_BASE", since=_since)
    _declare(partial(_hash, f"{_cost}_BYTE", _compute))


@_host(_BYTES, _NUMBER, cost="RIPEMD160_BASE")
def ripemd160(guest: Guest, data: bytes, register_id: int) -> None:
    guest.burn("RIPEMD160_BLOCK", (len(data) + 8) // 64 + 1)
    guest.write_register(register_id, cryptography.ripemd160(data))


@_host(_SPAN, _SPAN, _NUMBER, _NUMBER, _NUMBER, cost="ECRECOVER_BASE", result="i64")
def ecrecover(
    guest: Guest,
    hash_span: tuple[int, int],
    signature_span: tuple[int, int],
    v: int,
    malleability_flag: int,
    register_id: int,
) -> int:
    """Write the public key that signed a hash; return 0 if there is none."""
    signature = guest.read(*signature_span)
    if len(signature) != cryptography.SIGNATURE_BYTES:
        length = len(signature)
        _ecrecover_error(f"The length of the signature: {length}, exceeds the limit of 64 bytes")
    if v >= cryptography.RECOVERY_IDS:
        _ecrecover_error(f"V recovery byte 0 through 3 are valid but was provided {v}")
    message = guest.read(*hash_span)
    if len(message) != _HASH_BYTES:
        length = len(message)
        _ecrecover_error(f"The length of the hash: {length}, exceeds the limit of 32 bytes")
    if malleability_flag > 1:
        flag = malleability_flag
        _ecrecover_error(f"Malleability flag needs to be 0 or 1, but is instead {flag}")
    is_strict = malleability_flag == 1
    key = cryptography.recover_secp256k1(message, signature + bytes([v]), reject_upper=is_strict)
    return _to_register_if_any(guest, key, register_id)


def _ecrecover_error(message: str) -> Never:
    raise HostError(f"ECDSA recover error: {message}", "ECRecoverError", msg=message)


def _verify(
    curve: str,
    key_bytes: int,
    verify: Callable[[bytes, bytes, bytes], bool],  # key, message, signature
    malformed_bits: int,  # in a signature's last byte
    guest: Guest,
    signature_span: tuple[int, int],
    message_span: tuple[int, int],
    key_span: tuple[int, int],
) -> int:
    signature = guest.read(*signature_span)
    if len(signature) != cryptography.SIGNATURE_BYTES:
        raise _signature_error(curve, "invalid signature length")
    if signature[-1] & malformed_bits:
        return 0
    message = guest.read(*message_span)
    guest.burn(f"{curve.upper()}_VERIFY_BYTE", len(message))
    key = guest.read(*key_span)
    if len(key) != key_bytes:
        raise _signature_error(curve, "invalid public key length")
    return int(verify(key, message, signature))


def _signature_error(curve: str, reason: str) -> HostError:
    text = f"{curve.upper()} signature verification error: {reason}"
    return HostError(text, f"{curve.capitalize()}VerifyInvalidInput", msg=reason)


_SPANS = (_SPAN, _SPAN, _SPAN)
_host(*_SPANS, name="ed25519_verify", cost="ED25519_VERIFY_BASE", result="i64")(
    partial(
        _verify,
        "ed25519",
        cryptography.ED25519_KEY_BYTES,
        partial(curves.verify, "ed25519"),
        cryptography.UNREDUCED,
    )
)
_host(*_SPANS, name="p256_verify", cost="P256_VERIFY_BASE", result="i64", since=85)(
    partial(_verify, "p256", cryptography.P256_KEY_BYTES, cryptography.verify_p256, 0)
)


# Results, logs and panics ----------------------------------------------------------------


@_host(_BYTES)
def value_return(guest: Guest, value: bytes) -> None:
    guest.vm.value_return(value)


@_host(cost="BASE")
def panic(_: Guest) -> None:
    raise PanicError("explicit guest panic")


@_host(_SPAN, cost="BASE")
def panic_utf8(guest: Guest, span: tuple[int, int]) -> None:
    raise PanicError(guest.read_utf8(*span))


@_host(_SPAN, cost="BASE")
def log_utf8(guest: Guest, span: tuple[int, int]) -> None:
    guest.vm.check_log_count()
    guest.vm.add_log(guest.read_utf8(*span))


@_host(_SPAN, cost="BASE")
def log_utf16(guest: Guest, span: tuple[int, int]) -> None:
    guest.vm.check_log_count()
    guest.vm.add_log(guest.read_utf16(*span))


@_host(_INT32, _INT32, _INT32, _INT32, cost="BASE")
def abort(guest: Guest, message_address: int, file_address: int, line: int, column: int) -> None:
    """Log a text of AssemblyScript, and stop with it."""
    if min(message_address, file_address) < _MIN_TEXT_ADDRESS:
        raise bad_utf16()
    guest.vm.check_log_count()
    sizes = [
        int.from_bytes(guest.read_memory(address - 4, 4), "little")
        for address in (message_address, file_address)
    ]
    text = guest.read_utf16(sizes[0], message_address)
    file = guest.read_utf16(sizes[1], file_address)
    message = f'{text}, filename: "{file}" line: {line} col: {column}'
    guest.burn("LOG_BASE")
    guest.burn("LOG_BYTE", len(message.encode()))
    guest.vm.push_log(f"ABORT: {message}")
    raise PanicError(message)


# Storage ---------------------------------------------------------------------------------


@_host(_BYTES, _BYTES, _NUMBER, result="i64", changes=True)
def storage_write(guest: Guest, key: bytes, value: bytes, register_id: int) -> int:
    """Write a record; return 1, with the replaced value in a register, or 0."""
    return _to_register_if_any(guest, guest.vm.storage_write(key, value), register_id)


@_host(_BYTES, _NUMBER, result="i64")
def storage_read(guest: Guest, key: bytes, register_id: int) -> int:
    """Read a record into a register; return 0 if there is none."""
    return _to_register_if_any(guest, guest.vm.storage_read(key), register_id)


@_host(_BYTES, _NUMBER, result="i64", changes=True)
def storage_remove(guest: Guest, key: bytes, register_id: int) -> int:
    """Remove a record; return 1, with its value in a register, or 0."""
    return _to_register_if_any(guest, guest.vm.storage_remove(key), register_id)


def _to_register_if_any(guest: Guest, value: bytes | None, register_id: int) -> int:
    """Write a value to a register and return 1; return 0 if there is none."""
    if value is None:
        return 0
    guest.write_register(register_id, value)
    return 1


@_host(_BYTES, result="i64")
def storage_has_key(guest: Guest, key: bytes) -> int:
    return int(guest.vm.storage_has_key(key))


def _deprecated(name: str, _: Guest, *_numbers: int) -> Never:
    text = f"Attempted to call deprecated host function {name}"
    raise HostError(text, "Deprecated", method_name=name)


for _name, _count in (
    ("storage_iter_prefix", 2),
    ("storage_iter_range", 4),
    ("storage_iter_next", 3),
):
    _host(*[_NUMBER] * _count, name=_name, result="i64")(partial(_deprecated, _name))


# Promises --------------------------------------------------------------------------------


@_host(_ACCOUNT_ID, result="i64", changes=True)
def promise_batch_create(guest: Guest, receiver_id: str) -> int:
    """Create a receipt; return the promise's index."""
    return guest.add_promise(guest.vm.promise(receiver_id))


@_host(_PROMISE, _ACCOUNT_ID, result="i64", changes=True)
def promise_batch_then(guest: Guest, promise: Promise, receiver_id: str) -> int:
    """Create a receipt that waits for a promise; return the new promise's index."""
    return guest.add_promise(guest.vm.promise_then(promise, receiver_id))


@_host(_NUMBER, _NUMBER, result="i64", changes=True)
def promise_and(guest: Guest, address: int, count: int) -> int:
    """Join promises; return the new promise's index."""
    data = guest.read_memory(address, 8 * count)
    indices = [index for (index,) in struct.iter_unpack("<Q", data)]
    return guest.add_promise(guest.vm.join(*[guest.promise(index) for index in indices]))


@_host(_PROMISE, changes=True)
def promise_return(guest: Guest, promise: Promise) -> None:
    guest.vm.promise_return(promise)


@_host(_PROMISE, _ACCOUNT_ID, changes=True)
def promise_set_refund_to(_: Guest, promise: Promise, account_id: str) -> None:
    """Set the account to which the deposits return if the receipt fails."""
    promise.refund_to(account_id)


@_host(result="i64")
def promise_results_count(guest: Guest) -> int:
    return len(guest.vm.promise_results)


_SUCCESSFUL, _FAILED = 1, 2


@_host(_NUMBER, _NUMBER, result="i64")
def promise_result(guest: Guest, index: int, register_id: int) -> int:
    """Write a result that this callback waited for; return 1 for success, 2 for failure."""
    guest.vm.host_call("promise_result")
    results = guest.vm.context.promise_results
    if index >= len(results):
        text = f"Accessed invalid promise result index: {index}"
        raise HostError(text, "InvalidPromiseResultIndex", result_idx=index)
    data = results[index]
    if data is None:
        return _FAILED
    guest.write_register(register_id, data, by_bytes=False)
    return _SUCCESSFUL


# Actions ---------------------------------------------------------------------------------


@_host(_PROMISE, _METHOD_NAME, _BYTES, _FIRST_AMOUNT, _NUMBER, _NUMBER, changes=True)
def promise_batch_action_function_call_weight(
    _: Guest, promise: Promise, name: str, args: bytes, deposit: int, gas: int, weight: int
) -> None:
    promise.function_call(name, args, deposit=deposit, gas=gas, weight=weight)


@_host(*[_NUMBER] * 7)
def promise_batch_action_function_call(guest: Guest, *call: int) -> None:
    promise_batch_action_function_call_weight(guest, *call, 0)


@_host(*[_NUMBER] * 8, result="i64")
def promise_create(guest: Guest, length: int, address: int, *call: int) -> int:
    """Create a receipt with a call; return the promise's index."""
    index = promise_batch_create(guest, length, address)
    promise_batch_action_function_call(guest, index, *call)
    return index or 0


@_host(*[_NUMBER] * 9, result="i64")
def promise_then(guest: Guest, index: int, length: int, address: int, *call: int) -> int:
    """Create a receipt with a call that waits for a promise; return the new promise's index."""
    new_index = promise_batch_then(guest, index, length, address)
    promise_batch_action_function_call(guest, new_index, *call)
    return new_index or 0


def _add_action(add: Callable[..., object], _: Guest, promise: Promise, *values: Any) -> None:
    add(promise, *values)


_CALLS = (_ALLOWANCE, _ACCOUNT_ID, _METHOD_NAMES)  # the permission of a key for function calls
_deploy = Promise.deploy_global_contract
# Functions that add an action: (promise, *values), and their arguments.
_ACTIONS: dict[str, tuple[Callable[..., object], tuple[_Argument, ...]]] = {
    "create_account": (Promise.create_account, ()),
    "transfer": (Promise.transfer, (_AMOUNT,)),
    "stake": (Promise.stake, (_AMOUNT, _PUBLIC_KEY)),
    "delete_account": (Promise.delete_account, (_ACCOUNT_ID,)),
    "add_key_with_full_access": (Promise.add_full_access_key, (_PUBLIC_KEY, _NUMBER)),
    "add_key_with_function_call": (
        lambda promise, key, nonce, *calls: promise.add_access_key(key, *calls, nonce),
        (_PUBLIC_KEY, _NUMBER, *_CALLS),
    ),
    "delete_key": (Promise.delete_key, (_PUBLIC_KEY,)),
    "transfer_to_gas_key": (Promise.transfer_to_gas_key, (_PUBLIC_KEY, _AMOUNT)),
    "add_gas_key_with_full_access": (
        Promise.add_full_access_gas_key,
        (_PUBLIC_KEY, _NONCE_COUNT),
    ),
    "add_gas_key_with_function_call": (Promise.add_gas_key, (_PUBLIC_KEY, _NONCE_COUNT, *_CALLS)),
    "deploy_contract": (Promise.deploy_contract, (_BYTES,)),
    "deploy_global_contract": (partial(_deploy, deploy_mode="CodeHash"), (_BYTES,)),
    "deploy_global_contract_by_account_id": (partial(_deploy, deploy_mode="AccountId"), (_BYTES,)),
    "use_global_contract": (Promise.use_global_contract, (_CODE_HASH,)),
    "use_global_contract_by_account_id": (Promise.use_global_contract, (_ACCOUNT_ID,)),
    "universal_state_init": (Promise.universal_state_init, (_BYTES, _AMOUNT)),
}
_SINCE = {
    "transfer_to_gas_key": 85,
    "add_gas_key_with_full_access": 85,
    "add_gas_key_with_function_call": 85,
    "universal_state_init": 87,
}
for _name, (_add, _arguments) in _ACTIONS.items():
    _since, _name = _SINCE.get(_name, 0), f"promise_batch_action_{_name}"
    _declare = _host(_PROMISE, *_arguments, name=_name, since=_since, changes=True)
    _declare(partial(_add_action, _add))


def _state_init(_: Guest, promise: Promise, code: CryptoHash | str, amount: int) -> int:
    return promise.state_init(code, amount)


for _name, _code in (("state_init", _CODE_HASH), ("state_init_by_account_id", _ACCOUNT_ID)):
    _name = f"promise_batch_action_{_name}"
    _host(_PROMISE, _code, _AMOUNT, name=_name, result="i64", changes=True)(_state_init)


@_host(_PROMISE, _NUMBER, _BYTES, _BYTES, changes=True)
def set_state_init_data_entry(
    _: Guest, promise: Promise, action_index: int, key: bytes, value: bytes
) -> None:
    promise.set_state_init_entry(action_index, key, value)


# Yielded calls ---------------------------------------------------------------------------


@_host(_METHOD_NAME, _BYTES, _NUMBER, _NUMBER, _NUMBER, result="i64", changes=True)
def promise_yield_create(
    guest: Guest, name: str, args: bytes, gas: int, weight: int, register_id: int
) -> int:
    """Create a call that waits to be resumed, its data id in a register; return its index."""
    promise, data_id = guest.vm.yield_create(name, args, gas=gas, weight=weight)
    guest.write_register(register_id, bytes(data_id))
    return guest.add_promise(promise)


@_host(
    *(_METHOD_NAME, _BYTES, _FIRST_AMOUNT, _NUMBER, _NUMBER, _BYTES),
    result="i64",
    since=85,
    changes=True,
)
def promise_yield_create_with_id(
    guest: Guest, name: str, args: bytes, deposit: int, gas: int, weight: int, yield_id: bytes
) -> int:
    """Create a call that waits under an id of its own; return 2^64 - 1 if the id is in use."""
    promise = guest.vm.yield_create_with_id(
        name, args, yield_id, deposit=deposit, gas=gas, weight=weight
    )
    return U64_MAX if promise is None else guest.add_promise(promise)


@_host(_BYTES, _BYTES, result="i32", changes=True)
def promise_yield_resume(guest: Guest, data_id: bytes, payload: bytes) -> int:
    """Send a waiting call its data; return 0 if no call waits for it."""
    return int(guest.vm.yield_resume(data_id, payload))


@_host(_BYTES, _BYTES, result="i32", since=85, changes=True)
def promise_yield_resume_with_yield_id(guest: Guest, yield_id: bytes, payload: bytes) -> int:
    """Send its data to the call that waits under an id; return 0 if there is none."""
    return int(guest.vm.yield_resume_with_id(yield_id, payload))


# Functions that this ledger does not have ------------------------------------------------


def _missing(name: str, _: Guest, *_numbers: int) -> Never:
    raise HostError(
        f"the embedded ledger does not have the host function {name}", f"Missing: {name}"
    )


_MISSING: tuple[tuple[str, int, ValueType | None, int], ...] = (
    ("alt_bn128_g1_multiexp", 3, None, 0),
    ("alt_bn128_g1_sum", 3, None, 0),
    ("alt_bn128_pairing_check", 2, "i64", 0),
    ("bls12381_p1_sum", 3, "i64", 0),
    ("bls12381_p2_sum", 3, "i64", 0),
    ("bls12381_g1_multiexp", 3, "i64", 0),
    ("bls12381_g2_multiexp", 3, "i64", 0),
    ("bls12381_map_fp_to_g1", 3, "i64", 0),
    ("bls12381_map_fp2_to_g2", 3, "i64", 0),
    ("bls12381_pairing_check", 2, "i64", 0),
    ("bls12381_p1_decompress", 3, "i64", 0),
    ("bls12381_p2_decompress", 3, "i64", 0),
    ("ml_dsa_verify", 6, "i64", 87),
)
for _name, _count, _result, _since in _MISSING:
    _declare = _host(*[_NUMBER] * _count, name=_name, result=_result, since=_since)
    _declare(partial(_missing, _name))
