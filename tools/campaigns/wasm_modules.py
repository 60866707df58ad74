"""
A hostile module of WebAssembly never hangs, crashes or grows past its limit.

Modules are damaged at random, or made to loop, recurse, allocate, log or import without an end. A
call must succeed or fail as a contract call does, within its gas, in a bounded time and memory.
"""

from __future__ import annotations

import random
import resource
import time
from typing import TYPE_CHECKING

from ledgerkit.localnet import fees
from ledgerkit.localnet.chain_types import NO_CODE, Account, BlockContext, CallContext
from ledgerkit.localnet.execution_errors import CallError
from ledgerkit.localnet.state import StateStore
from ledgerkit.localnet.vm import Vm
from ledgerkit.localnet.wasm import engine
from ledgerkit.protocol import CryptoHash, PublicKey
from tests import wasm_contracts
from tests.wasm_texts import CALLER, COUNTER, HOSTILE, compiled
from tools.campaigns._byte_mutations import WAYS, small_step

if TYPE_CHECKING:
    from tools.campaigns._campaign import Tally

COUNT = 10_000
SMALL = 80
GAS = 30 * fees.TGAS
MAX_S = 10.0  # of one call, with the compilation
MAX_GROWTH_KB = 700_000  # of the process
LARGE_EVERY = 40  # of so many modules, one is a contract of other projects
SUCCEEDED, FAILED = "succeeded", "failed"
EXPECTED = (SUCCEEDED, "CompilationError", "ExecutionError", "MethodResolveError")
KEY = PublicKey("ed25519", bytes(32))


def call(code: bytes, method_name: str) -> str:
    """Call a method of a module; return how it ended."""
    context = CallContext(
        current_account_id="alice.near",
        signer_id="bob.near",
        signer_public_key=KEY,
        predecessor_id="bob.near",
        account=Account(10**24),
        block=BlockContext(1, 1, 1, NO_CODE, 0, {}),
        input=b"{}",
        attached_deposit=0,
        prepaid_gas=GAS,
        random_seed=bytes(32),
        action_hash=CryptoHash(bytes(32)),
        code_size=len(code),
    )
    vm = Vm(context, StateStore().at(), fees.PROFILES["86"])
    try:
        engine.run_module(vm, code, method_name)
    except CallError as error:
        failure = error.failure
        return next(iter(failure)) if isinstance(failure, dict) else failure
    finally:
        if not 0 <= vm.gas.burnt <= vm.gas.used <= GAS:
            raise AssertionError(f"burnt {vm.gas.burnt}, used {vm.gas.used} of {GAS}")
    return SUCCEEDED


def peak_kb() -> int:
    """Return the largest memory of this process until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run(count: int, seed: int, tally: Tally) -> None:
    """Call hostile modules, and then damaged ones."""
    rng = random.Random(seed)
    small = [(compiled(text), "main") for text in HOSTILE.values()]
    small += [(compiled(COUNTER), "increase"), (compiled(CALLER), "main")]
    downloaded = (wasm_contracts.read(name) for name in wasm_contracts.DIGESTS)
    large = [(code, "new_default_meta") for code in downloaded if code is not None] or small
    for code, name in small:
        tally.count(call(code, name))
    begin_kb = peak_kb()
    for number in range(count):
        code, name = rng.choice(large if number % LARGE_EVERY == 0 else small)
        way = rng.choice((rng.choice(WAYS), small_step, small_step))  # these often stay valid
        damaged = way(rng, [code])
        begin = time.monotonic()
        try:
            tally.count(call(damaged, name))
        except Exception as error:  # noqa: BLE001 - anything else is what is searched for
            tally.violate(f"seed {seed}, module {number}: {type(error).__name__}: {error}")
        took = time.monotonic() - begin
        if took > MAX_S:
            tally.violate(f"seed {seed}, module {number}: {took:.1f} s")
    grown = peak_kb() - begin_kb
    tally.notes.append(f"the process grew by {grown // 1024} MiB")
    if grown > MAX_GROWTH_KB:
        tally.violate(f"seed {seed}: the process grew by {grown // 1024} MiB")
