"""
The host functions that a Wasm module may import, as nearcore declares them.

Sources: near-vm-runner/src/imports.rs has their names and types, wasmtime_runner/logic.rs what they
do. Numbers come as unsigned integers. What a function means is a method of `Vm` or `Promise`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, Never

from ledgerkit.localnet.execution_errors import HostError, PanicError
from ledgerkit.localnet.wasm import cryptography
from ledgerkit.localnet.wasm.guest import Guest, bad_utf16
from ledgerkit.protocol import CryptoHash
from ledgerkit.units import U64_MAX

if TYPE_CHECKING:
    from ledgerkit.localnet.fees import Profile
    from ledgerkit.localnet.promises import Promise

ValueType = Literal["i32", "i64"]
Run = Callable[..., int | None]

_LONG: tuple[ValueType, ...] = ("i64",)
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


def available(profile: Profile) -> dict[str, HostFunction]:
    """Return the host functions of a protocol version."""
    version = profile.version
    return {name: each for name, each in HOST_FUNCTIONS.items() if each.since <= version}


def _host(
    parameters: int,
    *,
    result: ValueType | None = None,
    since: int = 0,
    changes: bool = False,
) -> Callable[[Run], Run]:
    """
    Declare a host function of some 64-bit numbers, under the name of the Python function.

    One that changes something burns its base cost, and fails in a view, before it reads anything.
    """

    def declare(run: Run) -> Run:
        name = run.__name__.removesuffix("_")
        results: tuple[ValueType, ...] = () if result is None else (result,)
        new_run = _not_in_views(name, run) if changes else run
        HOST_FUNCTIONS[name] = HostFunction(_LONG * parameters, results, new_run, since)
        return new_run

    return declare


def _not_in_views(name: str, run: Run) -> Run:
    """Return a host function that begins like those of the `Vm` that fail in a view call."""
    # The node's error names a call with a weight like one without.
    public_name = name.removesuffix("_weight")

    def begin(guest: Guest, *numbers: int) -> int | None:
        """Begin the host function, and run it."""
        guest.vm.host_call(public_name)
        guest.vm.is_begun = True
        try:
            return run(guest, *numbers)
        finally:
            guest.vm.is_begun = False

    return begin


# Registers -------------------------------------------------------------------------------


@_host(2)
def read_register(guest: Guest, register_id: int, address: int) -> None:
    """Copy a register into the memory."""
    guest.burn("BASE")
    guest.write_memory(address, guest.read_register(register_id))


@_host(1, result="i64")
def register_len(guest: Guest, register_id: int) -> int:
    """Return the number of bytes in a register."""
    guest.burn("BASE")
    return guest.register_length(register_id)


@_host(3)
def write_register(guest: Guest, register_id: int, length: int, address: int) -> None:
    """Copy bytes of the memory into a register."""
    guest.burn("BASE")
    guest.write_register(register_id, guest.read_memory(address, length))


# The context -----------------------------------------------------------------------------


@_host(1)
def current_account_id(guest: Guest, register_id: int) -> None:
    """Write the account whose contract runs."""
    guest.burn("BASE")
    guest.write_register(register_id, guest.vm.current_account_id.encode())


@_host(1, since=85)
def chain_id(guest: Guest, register_id: int) -> None:
    """Write the chain id."""
    guest.burn("BASE")
    guest.write_register(register_id, guest.vm.context.chain_id.encode())


@_host(1)
def signer_account_id(guest: Guest, register_id: int) -> None:
    """Write the signer of the transaction."""
    guest.write_register(register_id, guest.vm.signer_id.encode())


@_host(1)
def signer_account_pk(guest: Guest, register_id: int) -> None:
    """Write the public key that signed the transaction."""
    guest.write_register(register_id, guest.vm.signer_public_key.packed)


@_host(1)
def predecessor_account_id(guest: Guest, register_id: int) -> None:
    """Write the account that calls."""
    guest.write_register(register_id, guest.vm.predecessor_id.encode())


@_host(1)
def refund_to_account_id(guest: Guest, register_id: int) -> None:
    """Write the account to which the deposits return if the receipt fails."""
    guest.write_register(register_id, guest.vm.refund_to_id.encode())


@_host(1)
def input_(guest: Guest, register_id: int) -> None:
    """Write the encoded arguments."""
    guest.burn("BASE")
    guest.write_register(register_id, guest.vm.input, by_bytes=False)


@_host(0, result="i64")
def block_index(guest: Guest) -> int:
    """Return the height of the current block."""
    guest.burn("BASE")
    return guest.vm.block_height


@_host(0, result="i64")
def block_timestamp(guest: Guest) -> int:
    """Return the time of the current block, in nanoseconds."""
    guest.burn("BASE")
    return guest.vm.block_timestamp


@_host(0, result="i64")
def epoch_height(guest: Guest) -> int:
    """Return the number of epochs before the current one."""
    guest.burn("BASE")
    return guest.vm.epoch_height


@_host(0, result="i64")
def storage_usage(guest: Guest) -> int:
    """Return the account's bytes of storage."""
    guest.burn("BASE")
    return guest.vm.storage_usage


_CONTRACT_KINDS = {"local": 1, "global_hash": 2, "global_account_id": 3}


@_host(1, result="i64")
def current_contract_code(guest: Guest, register_id: int) -> int:
    """Write the hash or the owner of the account's code; return its kind, 0 for none."""
    guest.burn("BASE")
    contract = guest.vm.context.contract
    if contract is None:
        return 0
    kind, identifier = contract
    data = bytes(identifier) if isinstance(identifier, CryptoHash) else identifier.encode()
    guest.write_register(register_id, data)
    return _CONTRACT_KINDS[kind]


# Amounts and gas -------------------------------------------------------------------------


@_host(1)
def account_balance(guest: Guest, address: int) -> None:
    """Write the account's balance, with the attached deposit."""
    guest.burn("BASE")
    guest.write_u128(address, guest.vm.balance)


@_host(1)
def account_locked_balance(guest: Guest, address: int) -> None:
    """Write the account's balance at stake."""
    guest.burn("BASE")
    guest.write_u128(address, guest.vm.locked)


@_host(1)
def attached_deposit(guest: Guest, address: int) -> None:
    """Write the deposit of the call."""
    guest.write_u128(address, guest.vm.attached_deposit)


@_host(0, result="i64")
def prepaid_gas(guest: Guest) -> int:
    """Return the gas attached to the call."""
    return guest.vm.prepaid_gas


@_host(0, result="i64")
def used_gas(guest: Guest) -> int:
    """Return the gas burnt and reserved until now."""
    return guest.vm.used_gas


@_host(3)
def validator_stake(guest: Guest, length: int, address: int, stake_address: int) -> None:
    """Write the stake of a validator, 0 for another account."""
    guest.burn("BASE")
    account_id = guest.read_account_id(length, address)
    guest.burn("VALIDATOR_STAKE_BASE")
    guest.write_u128(stake_address, guest.vm.context.validator_stakes.get(account_id, 0))


@_host(1)
def validator_total_stake(guest: Guest, stake_address: int) -> None:
    """Write the stake of all validators."""
    guest.burn("BASE")
    guest.burn("VALIDATOR_TOTAL_STAKE_BASE")
    guest.write_u128(stake_address, sum(guest.vm.context.validator_stakes.values()))


def _burn_instructions(guest: Guest, count: int) -> None:
    """Burn the gas of instructions, which old modules count themselves."""
    guest.burn_instructions(count)


HOST_FUNCTIONS["gas"] = HostFunction(("i32",), (), _burn_instructions)


# Hashes and signatures -------------------------------------------------------------------


@_host(1)
def random_seed(guest: Guest, register_id: int) -> None:
    """Write 32 random bytes."""
    guest.burn("BASE")
    guest.write_register(register_id, guest.vm.random_seed)


@_host(3)
def sha256(guest: Guest, length: int, address: int, register_id: int) -> None:
    """Write a SHA-256 hash."""
    guest.write_register(register_id, guest.vm.sha256(guest.read(length, address)))


@_host(3)
def keccak256(guest: Guest, length: int, address: int, register_id: int) -> None:
    """Write a Keccak-256 hash."""
    _keccak(guest, 256, length, address, register_id)


@_host(3)
def keccak512(guest: Guest, length: int, address: int, register_id: int) -> None:
    """Write a Keccak-512 hash."""
    _keccak(guest, 512, length, address, register_id)


def _keccak(guest: Guest, bits: int, length: int, address: int, register_id: int) -> None:
    """Write a Keccak hash."""
    guest.burn(f"KECCAK{bits}_BASE")
    data = guest.read(length, address)
    guest.burn(f"KECCAK{bits}_BYTE", len(data))
    guest.write_register(register_id, cryptography.keccak(data, bits))


@_host(3)
def ripemd160(guest: Guest, length: int, address: int, register_id: int) -> None:
    """Write a RIPEMD-160 hash."""
    guest.burn("RIPEMD160_BASE")
    data = guest.read(length, address)
    guest.burn("RIPEMD160_BLOCK", (len(data) + 8) // 64 + 1)
    guest.write_register(register_id, cryptography.ripemd160(data))


@_host(7, result="i64")
def ecrecover(
    guest: Guest,
    hash_length: int,
    hash_address: int,
    signature_length: int,
    signature_address: int,
    v: int,
    malleability_flag: int,
    register_id: int,
) -> int:
    """Write the public key that signed a hash; return 0 if there is none."""
    guest.burn("ECRECOVER_BASE")
    signature = guest.read(signature_length, signature_address)
    if len(signature) != cryptography.SIGNATURE_BYTES:
        length = len(signature)
        _ecrecover_error(f"The length of the signature: {length}, exceeds the limit of 64 bytes")
    if v >= cryptography.RECOVERY_IDS:
        _ecrecover_error(f"V recovery byte 0 through 3 are valid but was provided {v}")
    message = guest.read(hash_length, hash_address)
    if len(message) != _HASH_BYTES:
        length = len(message)
        _ecrecover_error(f"The length of the hash: {length}, exceeds the limit of 32 bytes")
    if malleability_flag > 1:
        flag = malleability_flag
        _ecrecover_error(f"Malleability flag needs to be 0 or 1, but is instead {flag}")
    is_strict = malleability_flag == 1
    key = cryptography.recover_secp256k1(message, signature + bytes([v]), reject_upper=is_strict)
    if key is None:
        return 0
    guest.write_register(register_id, key)
    return 1


def _ecrecover_error(message: str) -> Never:
    """Fail for an argument of `ecrecover`."""
    raise HostError(f"ECDSA recover error: {message}", f'ECRecoverError {{ msg: "{message}" }}')


@_host(6, result="i64")
def ed25519_verify(
    guest: Guest,
    signature_length: int,
    signature_address: int,
    message_length: int,
    message_address: int,
    key_length: int,
    key_address: int,
) -> int:
    """Return 1 if an ed25519 signature is valid, otherwise 0."""
    guest.burn("ED25519_VERIFY_BASE")
    signature = guest.read(signature_length, signature_address)
    if len(signature) != cryptography.SIGNATURE_BYTES:
        _ed25519_error("invalid signature length")
    if signature[-1] & cryptography.UNREDUCED:
        return 0
    message = guest.read(message_length, message_address)
    guest.burn("ED25519_VERIFY_BYTE", len(message))
    key = guest.read(key_length, key_address)
    if len(key) != cryptography.ED25519_KEY_BYTES:
        _ed25519_error("invalid public key length")
    return int(cryptography.verify_ed25519(key, message, signature))


def _ed25519_error(message: str) -> Never:
    """Fail for an argument of `ed25519_verify`."""
    raise HostError(
        f"ED25519 signature verification error: {message}",
        f'Ed25519VerifyInvalidInput {{ msg: "{message}" }}',
    )


@_host(6, result="i64", since=85)
def p256_verify(
    guest: Guest,
    signature_length: int,
    signature_address: int,
    message_length: int,
    message_address: int,
    key_length: int,
    key_address: int,
) -> int:
    """Return 1 if a signature of a hash by a compressed P-256 key is valid, otherwise 0."""
    guest.burn("P256_VERIFY_BASE")
    signature = guest.read(signature_length, signature_address)
    if len(signature) != cryptography.SIGNATURE_BYTES:
        _p256_error("invalid signature length")
    message = guest.read(message_length, message_address)
    guest.burn("P256_VERIFY_BYTE", len(message))
    key = guest.read(key_length, key_address)
    if len(key) != cryptography.P256_KEY_BYTES:
        _p256_error("invalid public key length")
    return int(cryptography.verify_p256(key, message, signature))


def _p256_error(message: str) -> Never:
    """Fail for an argument of `p256_verify`."""
    raise HostError(
        f"P256 signature verification error: {message}",
        f'P256VerifyInvalidInput {{ msg: "{message}" }}',
    )


# Results, logs and panics ----------------------------------------------------------------


@_host(2)
def value_return(guest: Guest, length: int, address: int) -> None:
    """Set the result of the call."""
    guest.vm.value_return(guest.read(length, address))


@_host(0)
def panic(guest: Guest) -> None:
    """Stop with an error."""
    guest.burn("BASE")
    raise PanicError("explicit guest panic")


@_host(2)
def panic_utf8(guest: Guest, length: int, address: int) -> None:
    """Stop with a text."""
    guest.burn("BASE")
    raise PanicError(guest.read_utf8(length, address))


@_host(2)
def log_utf8(guest: Guest, length: int, address: int) -> None:
    """Log a text."""
    guest.burn("BASE")
    guest.vm.check_log_count()
    guest.vm.add_log(guest.read_utf8(length, address))


@_host(2)
def log_utf16(guest: Guest, length: int, address: int) -> None:
    """Log a text of UTF-16 code units."""
    guest.burn("BASE")
    guest.vm.check_log_count()
    guest.vm.add_log(guest.read_utf16(length, address))


def _abort(guest: Guest, message_address: int, file_address: int, line: int, column: int) -> None:
    """Stop with a text of AssemblyScript, which is logged too."""
    guest.burn("BASE")
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


HOST_FUNCTIONS["abort"] = HostFunction(("i32",) * 4, (), _abort)


# Storage ---------------------------------------------------------------------------------


@_host(5, result="i64", changes=True)
def storage_write(
    guest: Guest,
    key_length: int,
    key_address: int,
    value_length: int,
    value_address: int,
    register_id: int,
) -> int:
    """Write a record; return 1, and the value in a register, if it replaces one."""
    key = guest.read(key_length, key_address)
    old = guest.vm.storage_write(key, guest.read(value_length, value_address))
    return _old_value(guest, old, register_id)


@_host(3, result="i64")
def storage_read(guest: Guest, length: int, address: int, register_id: int) -> int:
    """Read a record into a register; return 0 if there is none."""
    value = guest.vm.storage_read(guest.read(length, address))
    return _old_value(guest, value, register_id)


@_host(3, result="i64", changes=True)
def storage_remove(guest: Guest, length: int, address: int, register_id: int) -> int:
    """Remove a record; return 1, and its value in a register, if there was one."""
    value = guest.vm.storage_remove(guest.read(length, address))
    return _old_value(guest, value, register_id)


def _old_value(guest: Guest, value: bytes | None, register_id: int) -> int:
    """Write the value of a record to a register; return 0 if there is none."""
    if value is None:
        return 0
    guest.write_register(register_id, value)
    return 1


@_host(2, result="i64")
def storage_has_key(guest: Guest, length: int, address: int) -> int:
    """Return 1 if a record exists."""
    return int(guest.vm.storage_has_key(guest.read(length, address)))


def _deprecated(name: str, _: Guest, *_numbers: int) -> Never:
    """Refuse a host function that no longer works."""
    raise HostError(
        f"Attempted to call deprecated host function {name}",
        f'Deprecated {{ method_name: "{name}" }}',
    )


for _name, _count in (
    ("storage_iter_prefix", 2),
    ("storage_iter_range", 4),
    ("storage_iter_next", 3),
):
    HOST_FUNCTIONS[_name] = HostFunction(_LONG * _count, ("i64",), partial(_deprecated, _name))


# Promises --------------------------------------------------------------------------------


@_host(2, result="i64", changes=True)
def promise_batch_create(guest: Guest, length: int, address: int) -> int:
    """Create a receipt; return the promise's index."""
    return guest.add_promise(guest.vm.promise(guest.read_account_id(length, address)))


@_host(3, result="i64", changes=True)
def promise_batch_then(guest: Guest, index: int, length: int, address: int) -> int:
    """Create a receipt that waits for a promise; return the new promise's index."""
    account_id = guest.read_account_id(length, address)
    return guest.add_promise(guest.vm.promise_then(guest.promise(index), account_id))


@_host(8, result="i64")
def promise_create(guest: Guest, length: int, address: int, *call: int) -> int:
    """Create a receipt with a call; return the promise's index."""
    index = promise_batch_create(guest, length, address)
    promise_batch_action_function_call(guest, index, *call)
    return index or 0


@_host(9, result="i64")
def promise_then(guest: Guest, index: int, length: int, address: int, *call: int) -> int:
    """Create a receipt with a call that waits for a promise; return the new promise's index."""
    new_index = promise_batch_then(guest, index, length, address)
    promise_batch_action_function_call(guest, new_index, *call)
    return new_index or 0


@_host(2, result="i64", changes=True)
def promise_and(guest: Guest, address: int, count: int) -> int:
    """Join promises; return the new promise's index."""
    data = guest.read_memory(address, 8 * count)
    indices = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
    return guest.add_promise(guest.vm.join(*[guest.promise(index) for index in indices]))


@_host(1, changes=True)
def promise_return(guest: Guest, index: int) -> None:
    """Return the result of a promise."""
    guest.vm.promise_return(guest.promise(index))


@_host(3, changes=True)
def promise_set_refund_to(guest: Guest, index: int, length: int, address: int) -> None:
    """Set the account to which the deposits return if the receipt fails."""
    account_id = guest.read_account_id(length, address)
    guest.promise(index).refund_to(account_id)


@_host(0, result="i64")
def promise_results_count(guest: Guest) -> int:
    """Return the number of results that this callback waited for."""
    return len(guest.vm.promise_results)


_SUCCESSFUL, _FAILED = 1, 2


@_host(2, result="i64")
def promise_result(guest: Guest, index: int, register_id: int) -> int:
    """Write a result that this callback waited for; return if it succeeded or failed."""
    guest.vm.host_call("promise_result")
    results = guest.vm.context.promise_results
    if index >= len(results):
        raise HostError(
            f"Accessed invalid promise result index: {index}",
            f"InvalidPromiseResultIndex {{ result_idx: {index} }}",
        )
    data = results[index]
    if data is None:
        return _FAILED
    guest.write_register(register_id, data, by_bytes=False)
    return _SUCCESSFUL


# Actions ---------------------------------------------------------------------------------


@_host(1, changes=True)
def promise_batch_action_create_account(guest: Guest, index: int) -> None:
    """Add the creation of the receiver."""
    guest.promise(index).create_account()


@_host(2, changes=True)
def promise_batch_action_transfer(guest: Guest, index: int, amount_address: int) -> None:
    """Add a transfer."""
    amount = guest.read_u128(amount_address)
    guest.promise(index).transfer(amount)


@_host(7)
def promise_batch_action_function_call(guest: Guest, *call: int) -> None:
    """Add a call."""
    promise_batch_action_function_call_weight(guest, *call, 0)


@_host(8, changes=True)
def promise_batch_action_function_call_weight(
    guest: Guest,
    index: int,
    name_length: int,
    name_address: int,
    args_length: int,
    args_address: int,
    amount_address: int,
    gas: int,
    weight: int,
) -> None:
    """Add a call with a share of the unused gas."""
    amount = guest.read_u128(amount_address)
    name = guest.read_method_name(name_length, name_address)
    args = guest.read(args_length, args_address)
    promise = guest.promise(index)
    promise.function_call(name, args, deposit=amount, gas=gas, weight=weight)


@_host(4, changes=True)
def promise_batch_action_stake(
    guest: Guest, index: int, amount_address: int, key_length: int, key_address: int
) -> None:
    """Add a stake."""
    amount = guest.read_u128(amount_address)
    key = guest.read_public_key(key_length, key_address)
    guest.promise(index).stake(amount, key)


@_host(3, changes=True)
def promise_batch_action_delete_account(
    guest: Guest, index: int, length: int, address: int
) -> None:
    """Add the deletion of the receiver."""
    beneficiary_id = guest.read_account_id(length, address)
    guest.promise(index).delete_account(beneficiary_id)


@_host(4, changes=True)
def promise_batch_action_add_key_with_full_access(
    guest: Guest, index: int, key_length: int, key_address: int, nonce: int
) -> None:
    """Add a full access key."""
    key = guest.read_public_key(key_length, key_address)
    guest.promise(index).add_full_access_key(key, nonce)


@_host(9, changes=True)
def promise_batch_action_add_key_with_function_call(
    guest: Guest,
    index: int,
    key_length: int,
    key_address: int,
    nonce: int,
    allowance_address: int,
    receiver_length: int,
    receiver_address: int,
    names_length: int,
    names_address: int,
) -> None:
    """Add a function call key."""
    key = guest.read_public_key(key_length, key_address)
    allowance = guest.read_u128(allowance_address) or None
    receiver_id = guest.read_account_id(receiver_length, receiver_address)
    names = guest.read_method_names(names_length, names_address)
    guest.promise(index).add_access_key(key, allowance, receiver_id, names, nonce)


@_host(3, changes=True)
def promise_batch_action_delete_key(
    guest: Guest, index: int, key_length: int, key_address: int
) -> None:
    """Add the removal of a key."""
    key = guest.read_public_key(key_length, key_address)
    guest.promise(index).delete_key(key)


@_host(4, since=85, changes=True)
def promise_batch_action_transfer_to_gas_key(
    guest: Guest, index: int, key_length: int, key_address: int, amount_address: int
) -> None:
    """Add a transfer to a gas key."""
    key = guest.read_public_key(key_length, key_address)
    guest.promise(index).transfer_to_gas_key(key, guest.read_u128(amount_address))


@_host(4, since=85, changes=True)
def promise_batch_action_add_gas_key_with_full_access(
    guest: Guest, index: int, key_length: int, key_address: int, num_nonces: int
) -> None:
    """Add a gas key with full access."""
    key = guest.read_public_key(key_length, key_address)
    guest.promise(index).add_full_access_gas_key(key, _u16(num_nonces))


@_host(9, since=85, changes=True)
def promise_batch_action_add_gas_key_with_function_call(
    guest: Guest,
    index: int,
    key_length: int,
    key_address: int,
    num_nonces: int,
    allowance_address: int,
    receiver_length: int,
    receiver_address: int,
    names_length: int,
    names_address: int,
) -> None:
    """Add a gas key for function calls."""
    key = guest.read_public_key(key_length, key_address)
    count = _u16(num_nonces)
    allowance = guest.read_u128(allowance_address) or None
    receiver_id = guest.read_account_id(receiver_length, receiver_address)
    names = guest.read_method_names(names_length, names_address)
    guest.promise(index).add_gas_key(key, count, allowance, receiver_id, names)


def _u16(number: int) -> int:
    """Check the number of a gas key's nonces."""
    if number > _MAX_NONCES:
        raise HostError("Integer overflow.", "IntegerOverflow")
    return number


# Code ------------------------------------------------------------------------------------


@_host(3, changes=True)
def promise_batch_action_deploy_contract(
    guest: Guest, index: int, length: int, address: int
) -> None:
    """Add code to deploy."""
    code = guest.read(length, address)
    guest.promise(index).deploy_contract(code)


@_host(3, changes=True)
def promise_batch_action_deploy_global_contract(
    guest: Guest, index: int, length: int, address: int
) -> None:
    """Add code to publish by its hash."""
    code = guest.read(length, address)
    guest.promise(index).deploy_global_contract(code, "CodeHash")


@_host(3, changes=True)
def promise_batch_action_deploy_global_contract_by_account_id(
    guest: Guest, index: int, length: int, address: int
) -> None:
    """Add code to publish by its owner."""
    code = guest.read(length, address)
    guest.promise(index).deploy_global_contract(code, "AccountId")


@_host(3, changes=True)
def promise_batch_action_use_global_contract(
    guest: Guest, index: int, length: int, address: int
) -> None:
    """Add the use of a global contract by its hash."""
    code_hash = _read_hash(guest, length, address)
    guest.promise(index).use_global_contract(code_hash)


@_host(3, changes=True)
def promise_batch_action_use_global_contract_by_account_id(
    guest: Guest, index: int, length: int, address: int
) -> None:
    """Add the use of a global contract by its owner."""
    owner_id = guest.read_account_id(length, address)
    guest.promise(index).use_global_contract(owner_id)


@_host(4, result="i64", changes=True)
def promise_batch_action_state_init(
    guest: Guest, index: int, length: int, address: int, amount_address: int
) -> int:
    """Add the initial state of an account whose code has a hash; return the action's index."""
    code_hash = _read_hash(guest, length, address)
    amount = guest.read_u128(amount_address)
    return guest.promise(index).state_init(code_hash, amount)


@_host(4, result="i64", changes=True)
def promise_batch_action_state_init_by_account_id(
    guest: Guest, index: int, length: int, address: int, amount_address: int
) -> int:
    """Add the initial state of an account whose code has an owner; return the action's index."""
    owner_id = guest.read_account_id(length, address)
    amount = guest.read_u128(amount_address)
    return guest.promise(index).state_init(owner_id, amount)


@_host(6, changes=True)
def set_state_init_data_entry(
    guest: Guest,
    index: int,
    action_index: int,
    key_length: int,
    key_address: int,
    value_length: int,
    value_address: int,
) -> None:
    """Add a record to an initial state."""
    key = guest.read(key_length, key_address)
    value = guest.read(value_length, value_address)
    guest.promise(index).set_state_init_entry(action_index, key, value)


def _read_hash(guest: Guest, length: int, address: int) -> CryptoHash:
    """Read the hash of a global contract."""
    data = guest.read(length, address)
    if len(data) != _HASH_BYTES:
        raise HostError("contract code hash is malformed", "ContractCodeHashMalformed")
    return CryptoHash(data)


# Yielded calls ---------------------------------------------------------------------------


@_host(7, result="i64", changes=True)
def promise_yield_create(
    guest: Guest,
    name_length: int,
    name_address: int,
    args_length: int,
    args_address: int,
    gas: int,
    weight: int,
    register_id: int,
) -> int:
    """Create a call that waits to be resumed, its data id in a register; return its index."""
    name = guest.read_method_name(name_length, name_address)
    args = guest.read(args_length, args_address)
    promise, data_id = guest.vm.yield_create(name, args, gas=gas, weight=weight)
    guest.write_register(register_id, bytes(data_id))
    return guest.add_promise(promise)


@_host(9, result="i64", since=85, changes=True)
def promise_yield_create_with_id(
    guest: Guest,
    name_length: int,
    name_address: int,
    args_length: int,
    args_address: int,
    amount_address: int,
    gas: int,
    weight: int,
    id_length: int,
    id_address: int,
) -> int:
    """Create a call that waits under an id of its own; return 2^64 - 1 if the id is in use."""
    amount = guest.read_u128(amount_address)
    name = guest.read_method_name(name_length, name_address)
    args = guest.read(args_length, args_address)
    yield_id = guest.read(id_length, id_address)
    promise: Promise | None = guest.vm.yield_create_with_id(
        name, args, yield_id, deposit=amount, gas=gas, weight=weight
    )
    return U64_MAX if promise is None else guest.add_promise(promise)


@_host(4, result="i32", changes=True)
def promise_yield_resume(
    guest: Guest, id_length: int, id_address: int, payload_length: int, payload_address: int
) -> int:
    """Send a waiting call its data; return 0 if no call waits for it."""
    data_id = guest.read(id_length, id_address)
    payload = guest.read(payload_length, payload_address)
    return int(guest.vm.yield_resume(data_id, payload))


@_host(4, result="i32", since=85, changes=True)
def promise_yield_resume_with_yield_id(
    guest: Guest, id_length: int, id_address: int, payload_length: int, payload_address: int
) -> int:
    """Send its data to the call that waits under an id; return 0 if there is none."""
    yield_id = guest.read(id_length, id_address)
    payload = guest.read(payload_length, payload_address)
    return int(guest.vm.yield_resume_with_id(yield_id, payload))


# Functions that this ledger does not have ------------------------------------------------


def _missing(name: str, _: Guest, *_numbers: int) -> Never:
    """Refuse a host function that this ledger does not have."""
    raise HostError(
        f"the embedded ledger does not have the host function {name}", f"Missing: {name}"
    )


_CURVE_FUNCTIONS: tuple[tuple[str, int, tuple[ValueType, ...]], ...] = (
    ("alt_bn128_g1_multiexp", 3, ()),
    ("alt_bn128_g1_sum", 3, ()),
    ("alt_bn128_pairing_check", 2, ("i64",)),
    ("bls12381_p1_sum", 3, ("i64",)),
    ("bls12381_p2_sum", 3, ("i64",)),
    ("bls12381_g1_multiexp", 3, ("i64",)),
    ("bls12381_g2_multiexp", 3, ("i64",)),
    ("bls12381_map_fp_to_g1", 3, ("i64",)),
    ("bls12381_map_fp2_to_g2", 3, ("i64",)),
    ("bls12381_pairing_check", 2, ("i64",)),
    ("bls12381_p1_decompress", 3, ("i64",)),
    ("bls12381_p2_decompress", 3, ("i64",)),
)
for _name, _count, _results in _CURVE_FUNCTIONS:
    HOST_FUNCTIONS[_name] = HostFunction(_LONG * _count, _results, partial(_missing, _name))
HOST_FUNCTIONS["ml_dsa_verify"] = HostFunction(
    _LONG * 6, ("i64",), partial(_missing, "ml_dsa_verify"), since=87
)
for _name in ("sha3_256", "sha3_384", "sha3_512", "universal_state_init_to_account_id"):
    HOST_FUNCTIONS[_name] = HostFunction(_LONG * 3, (), partial(_missing, _name), since=87)
HOST_FUNCTIONS["promise_batch_action_universal_state_init"] = HostFunction(
    _LONG * 4, (), partial(_missing, "promise_batch_action_universal_state_init"), since=87
)
