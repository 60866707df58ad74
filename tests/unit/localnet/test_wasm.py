"""
Contracts of WebAssembly in a world: their outcomes, failures and limits.

The texts of failures are those of nearcore's tests (near-vm-runner/src/tests), for modules of the
same kind; the modules here are small and have been written for these tests.
"""

from __future__ import annotations

from typing import Any

import pytest

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import fees
from ledgerkit.localnet.chain_types import Failure, SuccessValue
from ledgerkit.localnet.execution_errors import CallError
from ledgerkit.localnet.wasm import engine, modules
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import FunctionCall
from tests.unit.localnet.machine import Machine
from tests.wasm_texts import COUNTER, compiled

ARITHMETIC = "WebAssembly trap: An arithmetic exception, e.g. divided by zero."
FAILURES = {
    "unreachable": (
        '(func (export "main") unreachable)',
        "WebAssembly trap: An `unreachable` opcode was executed.",
    ),
    "division": (
        '(func (export "main") (drop (i32.div_u (i32.const 1) (i32.const 0))))',
        ARITHMETIC,
    ),
    "overflow": (
        '(func (export "main") (drop (i32.div_s (i32.const 0x80000000) (i32.const -1))))',
        ARITHMETIC,
    ),
    "memory": (
        '(memory 1) (func (export "main") (drop (i32.load (i32.const 0x7fffffff))))',
        "WebAssembly trap: Memory out of bounds trap.",
    ),
    "null": (
        (
            "(table 1 funcref) (type $t (func)) "
            '(func (export "main") (call_indirect (type $t) (i32.const 0)))'
        ),
        "WebAssembly trap: Indirect call to null.",
    ),
    "signature": (
        (
            "(type $t (func (param i32))) (table funcref (elem $f)) (func $f) "
            '(func (export "main") (call_indirect (type $t) (i32.const 1) (i32.const 0)))'
        ),
        "WebAssembly trap: Call indirect incorrect signature trap.",
    ),
    "recursion": (
        '(func $f (export "main") (call $f))',
        "Accessed memory outside the bounds.",
    ),
    "read beyond": (
        (
            '(import "env" "value_return" (func $return (param i64 i64))) (memory 1)'
            '(func (export "main") (call $return (i64.const 1) (i64.const 0x4000000)))'
        ),
        "Accessed memory outside the bounds.",
    ),
    "write beyond": (
        (
            '(import "env" "signer_account_id" (func $signer (param i64)))'
            '(import "env" "read_register" (func $read (param i64 i64))) (memory 1)'
            '(func (export "main") (call $signer (i64.const 0))'
            "  (call $read (i64.const 0) (i64.const 0x3ffffff)))"
        ),
        "Accessed memory outside the bounds.",
    ),
    "loop": ('(func (export "main") (loop $l (br $l)))', "Exceeded the prepaid gas."),
    "panic": (
        '(import "env" "panic" (func $panic)) (func (export "main") (call $panic))',
        "Smart contract panicked: explicit guest panic",
    ),
    "import": (
        '(import "env" "nothing" (func)) (func (export "main"))',
        "Link Error: unknown or invalid import",
    ),
}
UNPREPARED = {
    "other module": ('(import "wasi" "f" (func)) (func (export "main"))', "Instantiate"),
    "memory": ('(import "env" "memory" (memory 1)) (func (export "main"))', "Memory"),
    "global": ('(import "env" "g" (global i32)) (func (export "main"))', "Instantiate"),
    "two tables": ('(table 1 funcref) (table 1 funcref) (func (export "main"))', "TooManyTables"),
    "long table": ('(table 10001 funcref) (func (export "main"))', "TooManyTableElements"),
    "threads": ('(memory 1 2 shared) (func (export "main"))', "Deserialization"),
    "functions": ("(func)" * 10_001 + '(func (export "main"))', "TooManyFunctions"),
    "locals": (
        f"(func (local {'i64 ' * 50_000}))" * 21 + '(func (export "main"))',
        "TooManyLocals",
    ),
}


class Contract:
    """A deployed module."""

    def __init__(self, code: Any) -> None:
        self.world = open_world("empty")
        (self.root,) = self.world.keys()
        self.account_id = f"module.{self.root}"
        self.world.deploy(self.account_id, code)

    def call(self, method_name: str, gas: int = 30 * fees.TGAS) -> Any:
        """Send a call; return its receipt's outcome."""
        action = FunctionCall(method_name, b"", gas, 0)
        signed = self.world.submit_unsigned(self.root, self.account_id, [action])
        self.world.settle()
        record = self.world.transaction(signed.hash)
        assert record is not None
        return self.world.outcome(record.receipt.receipt_id)

    def view(self, method_name: str) -> bytes:
        return self.world.view(self.account_id, method_name, b"", self.world.chain.head).result


def failure(outcome: Any) -> object:
    """Return what failed in a call."""
    assert isinstance(outcome.status, Failure)
    error: Any = outcome.status.error
    return error["ActionError"]["kind"]["FunctionCallError"]


def test_a_module_keeps_its_state():
    """Calls change the records of their account, and views read them."""
    contract = Contract(compiled(COUNTER))
    for _ in range(3):
        outcome = contract.call("increase")
        assert outcome.status == SuccessValue(b"")
        assert outcome.logs == ("increased",)
    assert contract.view("get") == (3).to_bytes(8, "little")
    state = contract.world.state()
    assert state.data(contract.account_id, b"count") == (3).to_bytes(8, "little")
    account = state.account(contract.account_id)
    code_size = len(compiled(COUNTER))
    assert account is not None
    assert account.storage_usage == 100 + 82 + code_size + 5 + 8 + 40


def test_gas_of_a_module():
    """A call burns the loading of its code and its instructions, and no flat amount."""
    outcome = Contract(compiled('(module (func (export "main") (nop)))')).call("main")
    profile = {each.cost: each.gas_used for each in outcome.gas_profile}
    size = len(compiled('(module (func (export "main") (nop)))'))
    assert profile.pop("CONTRACT_LOADING_BASE") == 35_445_963
    assert profile.pop("CONTRACT_LOADING_BYTES") == 1_089_295 * size
    instructions = profile.pop("WASM_INSTRUCTION")
    assert instructions % 822_756 == 0
    assert 0 < instructions <= 3 * 822_756
    assert profile == {}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_in_the_words_of_the_node(name):
    """Traps, panics and unknown imports fail the receipt with nearcore's text."""
    body, text = FAILURES[name]
    outcome = Contract(compiled(f"(module {body})")).call("main")
    assert failure(outcome) == {"ExecutionError": text}
    if name == "loop":  # all of the gas is burnt
        assert sum(each.gas_used for each in outcome.gas_profile) == 30 * fees.TGAS


@pytest.mark.parametrize("name", UNPREPARED)
def test_modules_that_a_node_does_not_prepare(name):
    """A module beyond the node's limits fails before it burns gas."""
    body, reason = UNPREPARED[name]
    code = compiled(f"(module {body})")
    with pytest.raises(CallError) as caught:
        engine.run_module(Machine().vm, code, "main")
    assert caught.value.failure == {"CompilationError": {"PrepareError": reason}}


def test_globals_have_a_limit_since_88():
    """65,536 in runtime_configs/88.yaml of nearcore; before, one more could be called."""
    number = "(global i32 (i32.const 0))"
    most, more = (
        compiled(f'(module {number * count} (func (export "main")))') for count in (65_536, 65_537)
    )
    engine.run_module(Machine(fees.PROFILES["87"]).vm, more, "main")
    engine.run_module(Machine(fees.PROFILES["88"]).vm, most, "main")
    with pytest.raises(CallError) as caught:
        engine.run_module(Machine(fees.PROFILES["88"]).vm, more, "main")
    assert caught.value.failure == {"CompilationError": {"PrepareError": "TooManyGlobals"}}


@pytest.mark.parametrize("code", [b"\0asm", b"\0asm\1\0\0\0\xff", b"\0asm\1\0\0\0\1\5", b"text"])
def test_bytes_that_are_no_module(code):
    """They can be deployed, as in a node, and fail when they are called."""
    expected = {"CompilationError": {"PrepareError": "Deserialization"}}
    outcome = Contract(code).call("main")
    assert failure(outcome) == expected
    assert outcome.gas_profile == ()


def test_methods_that_cannot_be_called():
    """No such method, one with parameters, and a global; nothing is burnt for them."""
    contract = Contract(
        compiled(
            '(module (func (export "takes") (param i32)) '
            '(global (export "number") i32 (i32.const 1)))'
        )
    )
    for name, reason in (
        ("nothing", "MethodNotFound"),
        ("number", "MethodNotFound"),
        ("takes", "MethodInvalidSignature"),
    ):
        outcome = contract.call(name)
        assert failure(outcome) == {"MethodResolveError": reason}
        assert outcome.gas_profile == ()


def test_the_memory_has_the_limits_of_the_node():
    """A module begins with 1,024 pages, whatever it declares, and grows to 2,048 at most."""
    text = """
    (module
      (import "env" "value_return" (func $return (param i64 i64)))
      (memory 1)
      (func (export "main")
        (i32.store (i32.const 0) (memory.size))
        (i32.store (i32.const 4) (memory.grow (i32.const 1024)))
        (i32.store (i32.const 8) (memory.grow (i32.const 1)))
        (call $return (i64.const 12) (i64.const 0))))
    """
    outcome = Contract(compiled(text)).call("main")
    sizes = [1024, 1024, 2**32 - 1]
    assert outcome.status == SuccessValue(b"".join(n.to_bytes(4, "little") for n in sizes))


def test_nothing_is_read_and_written_at_the_end_of_the_memory():
    """An empty range there is inside the bounds."""
    text = """
    (module
      (import "env" "input" (func $input (param i64)))
      (import "env" "read_register" (func $read (param i64 i64)))
      (import "env" "value_return" (func $return (param i64 i64)))
      (memory 1)
      (func (export "main")
        (call $input (i64.const 0))
        (call $read (i64.const 0) (i64.const 0x4000000))
        (call $return (i64.const 0) (i64.const 0x4000000))))
    """
    assert Contract(compiled(text)).call("main").status == SuccessValue(b"")


def test_a_start_function_runs_before_each_call():
    """It burns gas as any other, and its failure is the call's."""
    text = '(module (func $begin unreachable) (start $begin) (func (export "main")))'
    outcome = Contract(compiled(text)).call("main")
    expected = "WebAssembly trap: An `unreachable` opcode was executed."
    assert failure(outcome) == {"ExecutionError": expected}


def test_a_module_is_compiled_once(monkeypatch):
    """Later calls of the same code use the compiled module."""
    contract = Contract(compiled(COUNTER))
    contract.call("increase")
    monkeypatch.setattr(modules, "prepare", None)
    assert contract.call("increase").status == SuccessValue(b"")


def test_without_the_extra_a_call_says_what_is_missing(monkeypatch):
    """The failure names the extra; it is not that of a damaged module."""
    contract = Contract(compiled(COUNTER))

    def missing(*names: str) -> None:
        raise InvalidRequestError(f"install ledgerkit[{names[1]}]", field=names[0])

    engine._wasmtime.cache_clear()
    engine.forget()
    monkeypatch.setattr(engine, "require", missing)
    assert "ledgerkit[wasm]" in str(failure(contract.call("increase")))
    with pytest.raises(CallError) as caught:
        contract.view("get")
    assert "ledgerkit[wasm]" in caught.value.view_message


def test_paths_and_bytes_are_deployed(tmp_path):
    """A file and its bytes are the same contract; other things are refused."""
    path = tmp_path / "counter.wasm"
    path.write_bytes(compiled(COUNTER))
    assert Contract(path).call("increase").logs == ("increased",)
    with pytest.raises(InvalidRequestError, match="contract"):
        Contract(tmp_path / "missing.wasm")
    with pytest.raises(InvalidRequestError, match="contract"):
        Contract("counter.wasm")
