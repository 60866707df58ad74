"""
Execution of Wasm modules with wasmtime, as nearcore does.

Instructions burn gas by wasmtime's fuel: nearly every instruction takes one unit. The node counts
a little differently (it also charges for the frames of functions), so the gas of instructions is
approximate; the gas of host functions is exact. Modules are compiled once, and run one at a time.
"""

import atexit
import threading
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require
from ledgerkit.localnet import fees
from ledgerkit.localnet.execution_errors import (
    CallError,
    LinkError,
    MethodError,
    PrepareError,
    TrapError,
    UnavailableError,
)
from ledgerkit.localnet.gas_counter import HOST, INSTRUCTIONS
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.vm import Vm
from ledgerkit.localnet.wasm import host_functions, modules
from ledgerkit.localnet.wasm.guest import Guest, memory_violation
from ledgerkit.localnet.wasm.host_functions import HostFunction

MAX_COMPILED = 64  # modules, the most recently used
MAX_STACK_BYTES = 512 * 1024
_U32, _U64 = 2**32, 2**64
_I32_MAX, _I64_MAX = 2**31 - 1, 2**63 - 1

# nearcore's names and texts of traps by wasmtime's names (near-vm-runner, errors.rs).
# nearcore counts the stack itself, and reports its end as a memory access out of bounds.
_ARITHMETIC = ("IllegalArithmetic", "An arithmetic exception, e.g. divided by zero.")
_OUT_OF_BOUNDS = ("MemoryOutOfBounds", "Memory out of bounds trap.")
_TRAPS = {
    "UNREACHABLE": ("Unreachable", "An `unreachable` opcode was executed."),
    "BAD_SIGNATURE": (
        "IncorrectCallIndirectSignature",
        "Call indirect incorrect signature trap.",
    ),
    "INDIRECT_CALL_TO_NULL": ("IndirectCallToNull", "Indirect call to null."),
    "MEMORY_OUT_OF_BOUNDS": _OUT_OF_BOUNDS,
    "TABLE_OUT_OF_BOUNDS": _OUT_OF_BOUNDS,
    "INTEGER_OVERFLOW": _ARITHMETIC,
    "INTEGER_DIVISION_BY_ZERO": _ARITHMETIC,
    "BAD_CONVERSION_TO_INTEGER": _ARITHMETIC,
}


_lock = threading.Lock()  # wasmtime-py keeps the last exception of a host function for all threads


def run_module(vm: Vm, code: bytes, method_name: str) -> bytes | Promise:
    """Run a method of a module; return its result, or the promise that it returns."""
    if not method_name:
        raise MethodError("MethodEmptyName")
    with _lock:
        module = _compile(code, vm.profile.version)
        if isinstance(module, CallError):
            raise CallError(module.text, module.failure, module.view_message)
        _check_method(module, method_name)
        vm.burn_loading()
        _Call(vm).run(module, method_name)
    return vm.finish()


# Compilation -----------------------------------------------------------------------------


@cache
def _wasmtime() -> Any:
    try:
        return require("wasmtime", "wasm", "A contract of WebAssembly")
    except InvalidRequestError as error:
        raise UnavailableError(str(error)) from None


@cache
def _engine() -> Any:
    """Build the compiler with nearcore's features (near-vm-runner, features.rs)."""
    wasmtime = _wasmtime()
    config = wasmtime.Config()
    config.consume_fuel = True
    config.cranelift_nan_canonicalization = True
    config.max_wasm_stack = MAX_STACK_BYTES
    config.wasm_reference_types = True
    config.wasm_bulk_memory = True
    for feature in (
        *("wasm_threads", "wasm_tail_call", "wasm_simd", "wasm_relaxed_simd", "wasm_multi_value"),
        *("wasm_multi_memory", "wasm_memory64", "wasm_exceptions", "wasm_function_references"),
        *("wasm_gc", "wasm_custom_page_sizes", "wasm_stack_switching", "wasm_component_model"),
        "wasm_wide_arithmetic",
    ):
        setattr(config, feature, False)
    atexit.register(forget)
    return wasmtime.Engine(config)


def forget() -> None:
    """Drop the compiled modules and the compiler, at exit before the interpreter does."""
    _compile.cache_clear()
    _linker.cache_clear()
    _engine.cache_clear()


@cache
def _linker(version: int) -> Any:
    wasmtime = _wasmtime()
    linker = wasmtime.Linker(_engine())
    types = {"i32": wasmtime.ValType.i32(), "i64": wasmtime.ValType.i64()}
    for name, function in host_functions.available(version).items():
        parameters = [types[kind] for kind in function.parameters]
        results = [types[kind] for kind in function.results]
        linker.define_func("env", name, wasmtime.FuncType(parameters, results), _callback(function))
    return linker


@lru_cache(maxsize=MAX_COMPILED)
def _compile(code: bytes, version: int) -> Any:
    """Prepare and compile a module; return the error of a module that cannot run."""
    wasmtime, engine = _wasmtime(), _engine()
    try:
        prepared = modules.prepare(code, version)
        wasmtime.Module.validate(engine, code)
        module = wasmtime.Module(engine, prepared)
        _check_imports(module, host_functions.available(version))
    except wasmtime.WasmtimeError:
        return PrepareError("Deserialization")
    except (PrepareError, LinkError) as error:
        return error.with_traceback(None)
    return module


def _check_imports(module: Any, functions: dict[str, HostFunction]) -> None:
    for item in module.imports:
        function = functions.get(item.name)
        if function is None:
            raise LinkError("unknown or invalid import")
        types = [*map(str, item.type.params)], [*map(str, item.type.results)]
        if types != (list(function.parameters), list(function.results)):
            raise LinkError(f"incompatible import type for `env::{item.name}`")


def _check_method(module: Any, method_name: str) -> None:
    """Check that a module exports a method without parameters and results."""
    kinds = {item.name: item.type for item in module.exports}
    kind = kinds.get(method_name)
    if not isinstance(kind, _wasmtime().FuncType):
        raise MethodError
    if kind.params or kind.results:
        raise MethodError("MethodInvalidSignature")


# Execution -------------------------------------------------------------------------------


class _Call:
    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._store = _wasmtime().Store(_engine())
        self._store.set_limits(
            memory_size=modules.MAX_PAGES * modules.PAGE_BYTES,
            table_elements=modules.MAX_TABLE_ELEMENTS,
            instances=1,
            tables=modules.MAX_TABLES,
            memories=1,
        )
        self._memory: Any = None
        self._fuel = 0
        self._error: BaseException | None = None
        self.guest = Guest(vm, self)

    def run(self, module: Any, method_name: str) -> None:
        """Run a module's start function, if there is one, and a method."""
        wasmtime = _wasmtime()
        _Running.call = self
        try:
            self._refuel()
            linker = _linker(self._vm.profile.version)
            exports = linker.instantiate(self._store, module).exports(self._store)
            self._memory = exports[modules.MEMORY_EXPORT]
            if modules.START_EXPORT in exports:
                exports[modules.START_EXPORT](self._store)
            exports[method_name](self._store)
        except (wasmtime.WasmtimeError, wasmtime.Trap, _StoppedError) as error:
            self._raise(error)
        finally:
            _Running.call = None
        self._burn_fuel()

    def host(self, run: Callable[..., int | None], numbers: tuple[int, ...]) -> int | None:
        """Run a host function; convert the fuel to gas before it and back after it."""
        try:
            self._burn_fuel()
            result = run(self.guest, *numbers)
            self._refuel()
        except BaseException as error:  # noqa: BLE001 - raised again outside of the module's frames
            self._error = error
            raise _StoppedError from None
        return result

    def _refuel(self) -> None:
        self._fuel = self._vm.gas.remaining // fees.REGULAR_OP
        self._store.set_fuel(self._fuel)

    def _burn_fuel(self) -> None:
        remaining = self._store.get_fuel()
        self.guest.burn_instructions(self._fuel - remaining)
        self._fuel = remaining

    def _raise(self, error: Exception) -> None:
        if self._error is not None:
            raise self._error
        trap = getattr(getattr(error, "trap_code", None), "name", None)
        if trap is None:
            raise LinkError(str(error).splitlines()[0])
        if trap == "OUT_OF_FUEL":
            self._vm.gas.burn(self._vm.gas.remaining, HOST, INSTRUCTIONS)
            raise self._vm.gas.exceeded()
        self._burn_fuel()
        if trap == "STACK_OVERFLOW":
            raise memory_violation()
        raise TrapError(*_TRAPS.get(trap, ("GenericTrap", "Generic trap.")))

    # The guest's memory.

    def read(self, address: int, length: int) -> bytes:
        self._check_bounds(address, length)
        return bytes(self._memory.read(self._store, address, address + length))

    def write(self, address: int, data: bytes) -> None:
        self._check_bounds(address, len(data))
        if data:  # wasmtime-py refuses to write nothing at the end of the memory
            self._memory.write(self._store, data, address)

    def _check_bounds(self, address: int, length: int) -> None:
        if address + length > self._memory.data_len(self._store):
            raise memory_violation()


class _Running:
    """The holder of the current call, which has the lock."""

    call: _Call | None = None


class _StoppedError(Exception):
    """A host function stopped the call."""


def _callback(function: HostFunction) -> Callable[..., int | None]:
    """Build the function that wasmtime calls, with signed in place of unsigned numbers."""
    run, sizes = function.run, tuple(_U32 if p == "i32" else _U64 for p in function.parameters)
    is_long = function.results == ("i64",)

    def callback(*numbers: int) -> int | None:
        call = _Running.call
        if call is None:
            raise _StoppedError
        unsigned = tuple(n % size for n, size in zip(numbers, sizes, strict=True))
        result = call.host(run, unsigned)
        if result is None:
            return None
        if is_long:
            return result - _U64 if result > _I64_MAX else result
        return result - _U32 if result > _I32_MAX else result

    return callback
