"""
The SDK that contracts are written with.

A contract is a class. Its methods are marked, and their parameters are the JSON arguments::

    class Counter(Contract):
        class State(msgspec.Struct):
            number: int = 0

        @view
        def get_num(self) -> int:
            return self.state.number

        @call
        def increment(self, by: int = 1) -> None:
            self.state.number += by
            self.vm.log(f"Increased number to {self.state.number}")

The deployed code is a small Wasm module with the name of the class, so that it is hashed and paid
for like any code. An amount is a `U128`: a string of digits in JSON, an int in Python.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    TypeVar,
    get_type_hints,
    overload,
)

import msgspec

from ledgerkit import json_decoding
from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.execution_errors import CodeError, LocalnetError, MethodError, PanicError
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.wasm import modules
from ledgerkit.protocol import AccountId, CryptoHash, PublicKey
from ledgerkit.protocol.borsh import text
from ledgerkit.units import U128_MAX
from ledgerkit.validation import is_account_id

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Account
    from ledgerkit.localnet.state import State
    from ledgerkit.localnet.vm import Vm

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")

# The panic messages of near/near-sdk-rs.
ONE_YOCTO = "Requires attached deposit of exactly 1 yoctoNEAR"
BAD_INPUT = "Failed to deserialize input from JSON."
NOT_INITIALIZED = "The contract is not initialized"
INITIALIZED = "The contract has already been initialized"
ONE_RESULT = "Contract expected a result on the callback"
STATE_KEY = b"STATE"
CONTRACTS_BY_HASH: dict[CryptoHash, type[Contract]] = {}
_SECTION = b"ledgerkit"
_EVENT = "EVENT_JSON:"
_DIGITS = re.compile(r"\+?[0-9]{1,40}")  # int() is slow on very long texts


class U128(int):
    """An amount: a string of digits in JSON."""

    __slots__ = ()


class MethodOptions(NamedTuple):
    """The options of a contract's method."""

    writes: bool
    payable: bool = False
    private: bool = False
    init: bool = False


def view(function: F) -> F:
    """Mark a method as a view method, which only reads."""
    function.__dict__["contract_method"] = MethodOptions(writes=False)
    return function


def state_view(name: str, kind: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
    """Build a view method that returns a member of the contract's state, converted to a type."""

    def read(self: Contract) -> Any:
        value = getattr(self.state, name)
        return value if kind is None else kind(value)

    return view(read)


@overload
def call(function: F) -> F: ...
@overload
def call(*, payable: bool = ..., private: bool = ..., init: bool = ...) -> Callable[[F], F]: ...
def call(
    function: F | None = None, *, payable: bool = False, private: bool = False, init: bool = False
) -> F | Callable[[F], F]:
    """
    Mark a method as a call method, which may write.

    Parameters
    ----------
    function
        The method, if there are no options.
    payable
        True to accept a deposit.
    private
        True to let only the contract itself call it.
    init
        True for the method that creates the contract's state; it can run only once.

    Returns
    -------
    marked
        The method, or a decorator.
    """

    def mark(function: F) -> F:
        function.__dict__["contract_method"] = MethodOptions(
            writes=True, payable=payable, private=private, init=init
        )
        return function

    return mark if function is None else mark(function)


class Contract:
    """The contract of an account during one call."""

    methods: ClassVar[dict[str, Callable[..., Any]]] = {}
    code: ClassVar[bytes] = b""  # to deploy
    code_hash: ClassVar[CryptoHash]
    # Optional: the state is read before a method and written after it.
    State: ClassVar[type[msgspec.Struct]]

    def __init_subclass__(cls, *, code_name: str | None = None, **options: Any) -> None:
        """
        Collect the marked methods, and build the code that names the class.

        Keep the old name of a moved class as `code_name`: code and hashes of worlds include it.
        """
        super().__init_subclass__(**options)
        cls.methods = {
            name: function
            for name, function in inspect.getmembers(cls, inspect.isfunction)
            if hasattr(function, "contract_method")
        }
        # An empty Wasm module, with the name of the class in a custom section.
        name = code_name or f"{cls.__module__}.{cls.__qualname__}"
        section = modules.blob(modules.blob(_SECTION) + name.encode())
        cls.code = modules.HEADER + bytes([modules.CUSTOM]) + section
        cls.code_hash = CryptoHash(sha256(cls.code).digest())
        CONTRACTS_BY_HASH[cls.code_hash] = cls

    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        self.state: Any = None

    def event(self, standard: str, version: str, event: str, data: list[dict[str, Any]]) -> None:
        """Log an event (NEP-297); members that are None are left out."""
        rows = [{k: v for k, v in row.items() if v is not None} for row in data]
        log = {"standard": standard, "version": version, "event": event, "data": rows}
        self.vm.log(_EVENT + to_json(log).decode())

    def require(self, condition: object, message: str) -> None:
        """Panic unless a condition is true."""
        if not condition:
            raise PanicError(message)

    def assert_one_yocto(self) -> None:
        """Panic unless one yoctoNEAR is attached; only a full access key can sign for it."""
        self.require(self.vm.attached_deposit == 1, ONE_YOCTO)

    def call_back(self, promise: Promise, method_name: str, gas: int, **args: Any) -> Promise:
        """Call a method of this contract after a promise; return the promise of its result."""
        callback = promise.then(self.vm.current_account_id)
        return callback.function_call(method_name, to_json(args), gas=gas)


# Running ---------------------------------------------------------------------------------


def run_code(vm: Vm, state: State, account: Account | None, method_name: str) -> bytes | Promise:
    """Run a method of the code that an account runs; return its result or its promise."""
    code_hash = None if account is None else state.code_hash(account)
    if code_hash is None:
        raise CodeError(vm.current_account_id)
    contract = CONTRACTS_BY_HASH.get(code_hash)
    if contract is not None:
        return run_method(contract, vm, method_name)
    from ledgerkit.localnet.wasm import engine

    return engine.run_module(vm, state.store.codes[code_hash], method_name)


def run_method(cls: type[Contract], vm: Vm, method_name: str) -> bytes | Promise:
    """Run a method; return its encoded result, or the promise that it returns."""
    function = cls.methods.get(method_name)
    if function is None:
        raise MethodError  # before any gas burns, as in the node
    vm.begin()
    options: MethodOptions = function.__dict__["contract_method"]
    if options.private and (vm.is_view or vm.predecessor_id != vm.current_account_id):
        raise PanicError(f"Method {method_name} is private")
    if options.writes and not options.payable and not vm.is_view and vm.attached_deposit:
        raise PanicError(f"Method {method_name} doesn't accept deposit")
    contract = cls(vm)
    old_state = _load_state(cls, contract, init=options.init)
    arguments = _decode_arguments(function, vm.input)
    returned = _invoke(function, contract, arguments)
    if options.writes and contract.state is not None:
        new_state = to_json(contract.state)
        if new_state != old_state:
            vm.storage_write(STATE_KEY, new_state)
    if isinstance(returned, Promise):
        vm.promise_return(returned)
    elif value := _encode_result(function, returned):
        vm.value_return(value)
    return vm.finish()


def _invoke(function: Callable[..., Any], contract: Contract, arguments: dict[str, Any]) -> Any:
    """Run a method; its exceptions become panics."""
    try:
        return function(contract, **arguments)
    except LocalnetError:
        raise
    except Exception as error:
        raise PanicError(f"panicked at '{type(error).__name__}: {error}'") from error


def _load_state(cls: type[Contract], contract: Contract, *, init: bool) -> bytes | None:
    state_type = getattr(cls, "State", None)
    if state_type is None:
        return None
    data = contract.vm.storage_read(STATE_KEY)
    if init and data is not None:
        raise PanicError(INITIALIZED)
    if data is not None:
        contract.state = json_decoding.decode(data, state_type, _decode_other)
    elif not init:
        try:
            contract.state = state_type()
        except TypeError:  # a state without defaults is created by an init method
            raise PanicError(NOT_INITIALIZED) from None
    return data


class _Signature(NamedTuple):
    arguments: type[msgspec.Struct]
    keys: frozenset[str]  # the arguments that are public keys
    returns_nothing: bool


@cache
def _signature(function: Callable[..., Any]) -> _Signature:
    hints = get_type_hints(function)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    fields: list[Any] = []
    keys = set()
    for parameter in parameters:
        hint = hints.get(parameter.name, Any)
        if hint in (PublicKey, PublicKey | None):  # msgspec would decode a dataclass as an object
            keys.add(parameter.name)
            hint = str if hint is PublicKey else str | None
        optional = parameter.default is not inspect.Parameter.empty
        fields.append((parameter.name, hint, *((parameter.default,) if optional else ())))
    arguments = msgspec.defstruct(function.__name__, fields, kw_only=True)
    result = hints.get("return", Any)
    return _Signature(arguments, frozenset(keys), result is None or result is type(None))


def _decode_arguments(function: Callable[..., Any], data: bytes) -> dict[str, Any]:
    signature = _signature(function)
    if not signature.arguments.__struct_fields__:
        return {}
    try:
        decoded = json_decoding.decode(data or b"{}", signature.arguments, _decode_other)
        arguments = msgspec.structs.asdict(decoded)
        for name in signature.keys:
            value = arguments[name]
            arguments[name] = None if value is None else PublicKey.from_text(value)
    except (msgspec.DecodeError, InvalidRequestError):
        raise PanicError(BAD_INPUT) from None
    return arguments


def _decode_other(kind: type, value: object) -> object:
    """Build an amount or an account id from its text, as the types of near-sdk-rs do."""
    if kind is AccountId and is_account_id(value):
        return AccountId(value)
    if kind is U128 and isinstance(value, str) and _DIGITS.fullmatch(value):
        amount = U128(value)
        if amount <= U128_MAX:
            return amount
    raise ValueError(f"not a valid {kind.__name__}")


def _encode_result(function: Callable[..., Any], result: Any) -> bytes:
    """Encode the result of a method; no bytes if its annotation is None."""
    if isinstance(result, bytes):
        return result
    if result is None and _signature(function).returns_nothing:
        return b""
    if isinstance(result, PublicKey):  # msgspec would encode a dataclass as an object
        result = str(result)
    return to_json(result)


def to_json(value: Any) -> bytes:
    """Encode a value as compact JSON, amounts as strings."""
    return msgspec.json.encode(value, enc_hook=_encode_other)


def _encode_other(value: Any) -> Any:
    if isinstance(value, U128):
        return str(int(value))
    if isinstance(value, AccountId | CryptoHash):
        return str(value)
    raise TypeError(f"{type(value).__name__} can't be written as JSON")


def from_json(data: bytes | str | msgspec.Raw | None, kind: Any = Any) -> Any:
    """Decode JSON; None if there is none, or it is malformed or not of the type."""
    try:
        return None if data is None else json_decoding.decode(data, kind, _decode_other)
    except msgspec.DecodeError:
        return None


def decode_event(log: str, kind: Any) -> Any:
    """Decode the event in a log (NEP-297); None if there is none, or it is not of the type."""
    return from_json(log.removeprefix(_EVENT), kind) if log.startswith(_EVENT) else None


def succeeded(vm: Vm) -> bool:
    """Return True if the only receipt that this callback waited for succeeded."""
    if len(vm.promise_results) != 1:
        vm.panic(ONE_RESULT)
    return vm.promise_results[0] is not None


def page(count: int, first: int, limit: int | None = None) -> range:
    """Return the indices of a page of a list."""
    end = count if limit is None else min(count, first + limit)
    return range(max(first, 0), end)


# Storage records -------------------------------------------------------------------------


class JsonMap(Generic[T]):
    """A map from texts to values, stored as JSON."""

    def __init__(self, vm: Vm, prefix: bytes, kind: type[T]) -> None:
        self._vm, self._prefix, self._kind = vm, prefix, kind

    def get(self, key: str) -> T | None:
        data = self._vm.storage_read(self._prefix + text(key))
        return None if data is None else self._decode(data)

    def required(self, key: str, message: str) -> T:
        """Return a value, or panic if there is none."""
        value = self.get(key)
        if value is None:
            self._vm.panic(message)
        return value

    def put(self, key: str, value: T) -> None:
        self._vm.storage_write(self._prefix + text(key), self._encode(value))

    def put_or_remove(self, key: str, value: T) -> None:
        """Write a value, or remove the record if it is 0 or empty."""
        if value:
            self.put(key, value)
        else:
            self.remove(key)

    def remove(self, key: str) -> bool:
        """Remove a value; return True if it existed."""
        return self._vm.storage_remove(self._prefix + text(key)) is not None

    def __contains__(self, key: str) -> bool:
        return self._vm.storage_has_key(self._prefix + text(key))

    def _encode(self, value: T) -> bytes:
        return to_json(value)

    def _decode(self, data: bytes) -> T:
        return json_decoding.decode(data, self._kind, _decode_other)


class BalanceMap(JsonMap[int]):
    """A map from account ids to amounts, stored in 16 bytes each."""

    def __init__(self, vm: Vm, prefix: bytes) -> None:
        super().__init__(vm, prefix, int)

    def _encode(self, value: int) -> bytes:
        return value.to_bytes(16, "little")

    def _decode(self, data: bytes) -> int:
        return int.from_bytes(data, "little")
