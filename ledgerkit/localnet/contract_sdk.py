"""
What contracts are written with.

A contract is a class; its methods are marked, their parameters are the JSON arguments::

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

The class lives behind a small piece of code that names it, so that it is deployed, hashed
and paid for as any code is. An amount is a `U128`: a text of digits in JSON, an int inside.
"""

from __future__ import annotations

import inspect
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

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.execution_errors import LocalnetError, MethodError, PanicError
from ledgerkit.localnet.vm import Promise, Vm
from ledgerkit.protocol import AccountId, CryptoHash, PublicKey
from ledgerkit.protocol.borsh import text
from ledgerkit.units import U128_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")

ONE_YOCTO = "Requires attached deposit of exactly 1 yoctoNEAR"
BAD_INPUT = "Failed to deserialize input from JSON."
NOT_INITIALIZED = "The contract is not initialized"
INITIALIZED = "The contract has already been initialized"
STATE_KEY = b"STATE"
CONTRACTS_BY_HASH: dict[CryptoHash, type[Contract]] = {}
_WASM = b"\0asm\1\0\0\0"
_SECTION = b"ledgerkit"


class U128(int):
    """An amount: in JSON a text of digits."""

    __slots__ = ()


class Method(NamedTuple):
    """How a method may be called."""

    writes: bool
    payable: bool = False
    private: bool = False
    init: bool = False


def view(function: F) -> F:
    """Mark a method that only reads."""
    function.__dict__["contract_method"] = Method(writes=False)
    return function


@overload
def call(function: F) -> F: ...
@overload
def call(*, payable: bool = ..., private: bool = ..., init: bool = ...) -> Callable[[F], F]: ...
def call(
    function: F | None = None, *, payable: bool = False, private: bool = False, init: bool = False
) -> F | Callable[[F], F]:
    """
    Mark a method that may write.

    Parameters
    ----------
    function
        The method, where the mark has no options.
    payable
        Whether it takes a deposit.
    private
        Whether only the contract itself may call it.
    init
        Whether it makes the contract's first state, once.

    Returns
    -------
    marked
        The method, or what marks it.
    """

    def mark(function: F) -> F:
        function.__dict__["contract_method"] = Method(
            writes=True, payable=payable, private=private, init=init
        )
        return function

    return mark if function is None else mark(function)


class Contract:
    """
    One account's contract, while one of its methods runs.

    Parameters
    ----------
    vm
        The machine: what the call came with, records, logs, promises.
    """

    methods: ClassVar[dict[str, Callable[..., Any]]] = {}
    code: ClassVar[bytes] = b""  # what is deployed
    code_hash: ClassVar[CryptoHash]
    State: ClassVar[type[msgspec.Struct]]  # optional: kept as one record, read and written here

    def __init_subclass__(cls, *, code_name: str | None = None, **options: Any) -> None:
        """
        Collect the marked methods, and build the code that names the class.

        A class that was moved passes its first name as `code_name`, so that its code and
        the hashes of the worlds it is deployed in stay the same.
        """
        super().__init_subclass__(**options)
        cls.methods = {
            name: function
            for name, function in inspect.getmembers(cls, inspect.isfunction)
            if hasattr(function, "contract_method")
        }
        cls.code = _code(code_name or f"{cls.__module__}.{cls.__qualname__}")
        cls.code_hash = CryptoHash(sha256(cls.code).digest())
        CONTRACTS_BY_HASH[cls.code_hash] = cls

    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        self.state: Any = None

    def event(self, standard: str, version: str, event: str, data: list[dict[str, Any]]) -> None:
        """Log an event (NEP-297); members that are None are left out."""
        rows = [{k: v for k, v in row.items() if v is not None} for row in data]
        told = {"standard": standard, "version": version, "event": event, "data": rows}
        self.vm.log("EVENT_JSON:" + to_json(told).decode())

    def require(self, holds: object, message: str) -> None:
        """Panic unless something holds."""
        if not holds:
            raise PanicError(message)

    def assert_one_yocto(self) -> None:
        """Ask for a deposit of one yoctoNEAR, which only a full access key can attach."""
        self.require(self.vm.attached_deposit == 1, ONE_YOCTO)


def _code(name: str) -> bytes:
    """Write an empty Wasm module with a custom section that names a class."""
    section = bytes([len(_SECTION)]) + _SECTION + name.encode()
    size, packed = len(section), b""
    while True:
        more = size > 0x7F  # noqa: PLR2004 - seven bits to a byte
        packed += bytes([size & 0x7F | more << 7])
        size >>= 7
        if not more:
            return _WASM + b"\0" + packed + section


# Running ---------------------------------------------------------------------------------


def run_method(cls: type[Contract], vm: Vm, method_name: str) -> bytes | Promise:
    """
    Run a method.

    Parameters
    ----------
    cls
        The contract.
    vm
        The machine.
    method_name
        The method.

    Returns
    -------
    result
        JSON, nothing, or a promise whose result is this one's.

    Raises
    ------
    CallError
        If the contract or the machine stops.
    """
    vm.begin()
    function = cls.methods.get(method_name)
    if function is None:
        raise MethodError
    method: Method = function.__dict__["contract_method"]
    if method.private and (vm.is_view or vm.predecessor_id != vm.current_account_id):
        raise PanicError(f"Method {method_name} is private")
    if method.writes and not method.payable and not vm.is_view and vm.attached_deposit:
        raise PanicError(f"Method {method_name} doesn't accept deposit")
    contract = cls(vm)
    held = _load(cls, contract, init=method.init)
    arguments = _arguments(function, vm.input)
    result = _call(function, contract, arguments)
    if method.writes and contract.state is not None:
        written = to_json(contract.state)
        if written != held:
            vm.storage_write(STATE_KEY, written)
    done = result if isinstance(result, Promise) else _result(function, result)
    vm.finish(done)
    return done


def _call(function: Callable[..., Any], contract: Contract, arguments: dict[str, Any]) -> Any:
    """Run a contract's own code; what goes wrong in it stops this call, and nothing else."""
    try:
        return function(contract, **arguments)
    except LocalnetError:
        raise
    except Exception as error:
        raise PanicError(f"panicked at '{type(error).__name__}: {error}'") from error


def _load(cls: type[Contract], contract: Contract, *, init: bool) -> bytes | None:
    """Read the contract's state, where it has one."""
    shape = getattr(cls, "State", None)
    if shape is None:
        return None
    held = contract.vm.storage_read(STATE_KEY)
    if init and held is not None:
        raise PanicError(INITIALIZED)
    if held is not None:
        contract.state = msgspec.json.decode(held, type=shape, dec_hook=_read)
    elif not init:
        try:
            contract.state = shape()
        except TypeError:  # a state without defaults is made by an init method
            raise PanicError(NOT_INITIALIZED) from None
    return held


class _Shape(NamedTuple):
    """How a method's arguments are read, and whether it returns nothing."""

    arguments: type[msgspec.Struct]
    names: tuple[str, ...]
    keys: frozenset[str]  # the arguments that are public keys
    returns_nothing: bool


_shapes: dict[Callable[..., Any], _Shape] = {}


def _shape(function: Callable[..., Any]) -> _Shape:
    """Find out a method's shape, once."""
    found = _shapes.get(function)
    if found is None:
        found = _shapes[function] = _find_shape(function)
    return found


def _find_shape(function: Callable[..., Any]) -> _Shape:
    """Read a method's parameters and annotations."""
    hints = get_type_hints(function)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    fields: list[Any] = []
    keys = set()
    for parameter in parameters:
        hint = hints.get(parameter.name, Any)
        if hint in (PublicKey, PublicKey | None):  # a dataclass, which would be read as an object
            keys.add(parameter.name)
            hint = str if hint is PublicKey else str | None
        optional = parameter.default is not inspect.Parameter.empty
        fields.append((parameter.name, hint, *((parameter.default,) if optional else ())))
    shape = msgspec.defstruct(function.__name__, fields, kw_only=True)
    names = tuple(parameter.name for parameter in parameters)
    returned = hints.get("return", Any)
    return _Shape(shape, names, frozenset(keys), returned is None or returned is type(None))


def _arguments(function: Callable[..., Any], data: bytes) -> dict[str, Any]:
    """Read the JSON arguments by the method's parameters."""
    shape = _shape(function)
    if not shape.names:
        return {}
    try:
        found = msgspec.json.decode(data or b"{}", type=shape.arguments, dec_hook=_read)
        given = {name: getattr(found, name) for name in shape.names}
        for name in shape.keys:
            given[name] = None if given[name] is None else PublicKey.from_text(given[name])
    except (msgspec.DecodeError, RecursionError, InvalidRequestError):
        raise PanicError(BAD_INPUT) from None
    return given


def _read(kind: type, value: Any) -> Any:
    """Read a value of a kind that JSON does not have."""
    try:
        if kind is U128 and isinstance(value, str) and value.isascii() and value.isdigit():
            number = int(value) if len(value) <= len(str(U128_MAX)) else U128_MAX + 1
            if number <= U128_MAX:
                return U128(number)
        elif kind is AccountId:
            return AccountId(value)
    except InvalidRequestError:
        pass
    raise ValueError(f"no {kind.__name__}")


def _result(function: Callable[..., Any], result: Any) -> bytes:
    """Write what a method returns: nothing for a method that is said to return None."""
    if isinstance(result, bytes):
        return result
    if result is None and _shape(function).returns_nothing:
        return b""
    if isinstance(result, PublicKey):  # a dataclass, which would be written as an object
        result = str(result)
    return to_json(result)


def to_json(value: Any) -> bytes:
    """Write JSON as contracts do: compact, amounts as texts."""
    return msgspec.json.encode(value, enc_hook=_write)


def _write(value: Any) -> Any:
    """Write a value of a kind that JSON does not have."""
    if isinstance(value, U128):
        return str(int(value))
    if isinstance(value, AccountId | CryptoHash):
        return str(value)
    raise TypeError(f"{type(value).__name__} can't be written as JSON")


def from_json(data: bytes | None) -> Any:
    """Read what another contract returned; None if it failed or is no JSON."""
    try:
        return None if data is None else msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None


# Records ---------------------------------------------------------------------------------


class BalanceMap:
    """
    Amounts by account, 16 bytes each, as contracts keep them.

    Parameters
    ----------
    vm
        The machine.
    prefix
        What their keys begin with.
    """

    def __init__(self, vm: Vm, prefix: bytes) -> None:
        self._vm, self._prefix = vm, prefix

    def get(self, account_id: str) -> int | None:
        """Give an amount, None where none is kept."""
        held = self._vm.storage_read(self._prefix + text(account_id))
        return None if held is None else int.from_bytes(held, "little")

    def put(self, account_id: str, amount: int) -> None:
        """Keep an amount."""
        self._vm.storage_write(self._prefix + text(account_id), amount.to_bytes(16, "little"))

    def remove(self, account_id: str) -> None:
        """Keep none."""
        self._vm.storage_remove(self._prefix + text(account_id))

    def __contains__(self, account_id: str) -> bool:
        return self._vm.storage_has_key(self._prefix + text(account_id))


class JsonMap(Generic[T]):
    """
    Values by text, written as JSON.

    Parameters
    ----------
    vm
        The machine.
    prefix
        What their keys begin with.
    kind
        What a value is read as.
    """

    def __init__(self, vm: Vm, prefix: bytes, kind: type[T]) -> None:
        self._vm, self._prefix, self._kind = vm, prefix, kind

    def get(self, key: str) -> T | None:
        """Give a value, None where there is none."""
        held = self._vm.storage_read(self._prefix + text(key))
        return None if held is None else self._decode(held)

    def put(self, key: str, value: T) -> None:
        """Keep a value."""
        self._vm.storage_write(self._prefix + text(key), to_json(value))

    def remove(self, key: str) -> bool:
        """Keep none; tell whether there was one."""
        return self._vm.storage_remove(self._prefix + text(key))

    def __contains__(self, key: str) -> bool:
        return self._vm.storage_has_key(self._prefix + text(key))

    def items(self) -> Iterator[tuple[str, T]]:
        """Go through keys and values, in the order of the packed keys."""
        skip = len(self._prefix) + 4
        for key, value in self._vm.records(self._prefix):
            yield key[skip:].decode(), self._decode(value)

    def _decode(self, value: bytes) -> T:
        """Read a value."""
        return msgspec.json.decode(value, type=self._kind, dec_hook=_read)
