"""The machine's limits and what it burns, and what a view may not do."""

import pytest

from ledgerkit.localnet import fees
from ledgerkit.localnet.chain_types import GasCost
from ledgerkit.localnet.contract_sdk import Contract, call, view
from ledgerkit.localnet.execution_errors import CallError
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.protocol import DeployContract, FunctionCall
from tests.unit.localnet.ledger import TGAS, Ledger, N, Script, do, result_of

MIB = 2**20


class Nosy(Contract):
    """Asks and does, in views, what only a transaction may."""

    @view
    def ask(self, name: str) -> str:
        self.vm.log(f"asking {name}")
        return str(getattr(self.vm, name))

    @view
    def act(self, verb: str) -> None:
        """Do something that changes the chain."""
        if verb == "write":
            self.vm.storage_write(b"k", b"v")
        elif verb == "remove":
            self.vm.storage_remove(b"k")
        elif verb == "promise":
            self.vm.promise("a.near")
        elif verb == "join":
            self.vm.join()
        elif verb == "wait":
            self.vm.yield_create("ask", b"")
        else:
            self.vm.yield_resume(bytes(32), b"")

    @view
    def grumble(self) -> None:
        """Log, and panic with a text that needs quoting."""
        self.vm.log("before")
        self.vm.panic('say "no"\n')

    @view
    def bare(self) -> None:
        """Return nothing."""

    @view
    def spin(self) -> None:
        """Burn more than a view has."""
        self.vm.gas.burn(1001 * TGAS, "WASM_HOST_COST", "WASM_INSTRUCTION")

    @call(private=True)
    def own(self) -> None:
        """Be nobody else's."""

    @call
    def free(self) -> None:
        """Take no deposit."""

    @call
    def results(self, size: int) -> bytes:
        return bytes(size)

    @call
    def store(self, key: int, value: int) -> None:
        """Write a record of such sizes."""
        self.vm.storage_write(bytes(key), bytes(value))

    @call
    def crowd(self, count: int) -> None:
        """Make so many promises."""
        for _ in range(count):
            self.vm.promise("bob.near")

    @call
    def gather(self, count: int) -> None:
        """Join so many promises."""
        promise = self.vm.promise("bob.near")
        self.vm.join(*[promise] * count)

    @call
    def misuse(self, what: str) -> object:
        """Do with a promise what cannot be done."""
        promise = self.vm.promise("bob.near")
        joint = self.vm.join(promise, promise)
        if what == "act":
            joint.transfer(1)
        elif what == "refund":
            joint.refund_to("bob.near")
        elif what == "name":
            promise.function_call("", b"")
        elif what == "key":
            promise.delete_key("ed25519:0")
        elif what == "account":
            self.vm.promise("Bob")
        elif what == "resume":
            self.vm.yield_resume(bytes(32), bytes(1025))
        return joint


@pytest.fixture
def ledger():
    """Return a chain with the contract, whose own computation burns nothing."""
    genesis = Genesis()
    genesis.account("n.near", 1000 * N, contract=Nosy)
    return Ledger("alice.near", "bob.near", scripts=["s.near"], genesis=genesis)


def look(ledger, contract_id, method_name, args=b"{}"):
    """Call a view at the head."""
    return ledger.world.view(contract_id, method_name, args, ledger.world.chain.head)


def refusal(ledger, contract_id, method_name, args=b"{}"):
    """Give what a view that fails tells, and what it logged."""
    with pytest.raises(CallError) as caught:
        look(ledger, contract_id, method_name, args)
    return caught.value.view_message, caught.value.logs


def error(ledger, method_name, args, gas=300 * TGAS):
    """Give the text of the error of a call that fails."""
    action = FunctionCall(method_name, args, gas)
    return result_of(ledger.run("alice.near", "n.near", action))["FunctionCallError"][
        "ExecutionError"
    ]


# Views -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("signer_id", "signer_account_id"),
        ("signer_public_key", "signer_account_pk"),
        ("predecessor_id", "predecessor_account_id"),
        ("prepaid_gas", "prepaid_gas"),
        ("used_gas", "used_gas"),
        ("promise_results", "promise_results_count"),
    ],
)
def test_a_view_has_no_caller(ledger, name, host):
    """Whatever only a transaction has is refused, by the host function's own name."""
    expected = f'HostError(ProhibitedInView {{ method_name: "{host}" }})'
    args = b'{"name": "%s"}' % name.encode()
    assert refusal(ledger, "n.near", "ask", args) == (expected, (f"asking {name}",))


@pytest.mark.parametrize(
    ("verb", "host"),
    [
        ("write", "storage_write"),
        ("remove", "storage_remove"),
        ("promise", "promise_batch_create"),
        ("join", "promise_and"),
        ("wait", "promise_yield_create"),
        ("resume", "promise_yield_resume"),
    ],
)
def test_a_view_changes_nothing(ledger, verb, host):
    """Writes and promises are refused, and the record is not there."""
    expected = f'HostError(ProhibitedInView {{ method_name: "{host}" }})'
    args = b'{"verb": "%s"}' % verb.encode()
    assert refusal(ledger, "n.near", "act", args)[0] == expected
    assert ledger.world.state().data("n.near", b"k") is None


def test_a_view_sees_the_block_it_is_asked_at(ledger):
    """Height, time, balance and its own name are there."""
    block = ledger.world.advance(3)
    for name, value in (
        ("block_height", block.height),
        ("block_timestamp", block.timestamp_ns),
        ("epoch_height", 0),
        ("current_account_id", "n.near"),
        ("balance", 1000 * N),
        ("locked", 0),
    ):
        found = look(ledger, "n.near", "ask", b'{"name": "%s"}' % name.encode())
        assert found.result == b'"%s"' % str(value).encode()
        assert found.logs == (f"asking {name}",)


def test_views_fail_in_the_nodes_words(ledger):
    """A panic, no method, no code and too little gas, as the debug output writes them."""
    panic = 'HostError(GuestPanic { panic_msg: "say \\"no\\"\\n" })'
    assert refusal(ledger, "n.near", "grumble") == (panic, ("before",))
    assert refusal(ledger, "n.near", "nothing")[0] == "MethodResolveError(MethodNotFound)"
    missing = 'CompilationError(CodeDoesNotExist { account_id: "bob.near" })'
    assert refusal(ledger, "bob.near", "get")[0] == missing
    assert refusal(ledger, "n.near", "spin")[0] == "HostError(GasLimitExceeded)"
    assert look(ledger, "n.near", "bare").result == b""


def test_a_view_of_unknown_code_cannot_be_prepared(ledger):
    """Bytes that are no contract are there, and do not run; no account has no code."""
    ledger.run("alice.near", "alice.near", DeployContract(b"\0asm"))
    expected = "CompilationError(PrepareError(Deserialization))"
    assert refusal(ledger, "alice.near", "get")[0] == expected
    missing = 'CompilationError(CodeDoesNotExist { account_id: "no.near" })'
    assert refusal(ledger, "no.near", "get")[0] == missing


def test_bad_arguments_panic(ledger):
    """No JSON, a missing argument and one of another kind are one and the same to a contract."""
    expected = 'HostError(GuestPanic { panic_msg: "Failed to deserialize input from JSON." })'
    for args in (b"{", b"[]", b"{}", b'{"name": 5}', b"[" * 100_000):
        assert refusal(ledger, "n.near", "ask", args)[0] == expected


# Who may call ----------------------------------------------------------------------------


def test_a_private_method_is_the_contracts_own(ledger):
    """Anybody else is told so."""
    expected = "Smart contract panicked: Method own is private"
    assert error(ledger, "own", b"") == expected


def test_a_method_takes_no_deposit_unless_it_says_so(ledger):
    """The deposit goes back, less nothing."""
    outcome = ledger.run("alice.near", "n.near", FunctionCall("free", b"", 10 * TGAS, 5))
    message = "Smart contract panicked: Method free doesn't accept deposit"
    assert result_of(outcome) == {"FunctionCallError": {"ExecutionError": message}}
    assert ledger.receipt(outcome.receipt_ids[0]).actions[0].deposit == 5


# Limits ----------------------------------------------------------------------------------


def test_a_call_logs_a_hundred_lines(ledger):
    """100 pass; the 101st stops the call, and the hundred stay."""
    outcome = ledger.run("alice.near", "s.near", do(["log", "x", 100]))
    assert result_of(outcome) is None
    outcome = ledger.run("alice.near", "s.near", do(["log", "x", 101]))
    message = "The number of logs will exceed the limit 100"
    assert result_of(outcome) == {"FunctionCallError": {"ExecutionError": message}}
    assert outcome.logs == ("x",) * 100


def test_a_call_logs_16384_bytes(ledger):
    """Counted together, in UTF-8."""
    outcome = ledger.run("alice.near", "s.near", do(["log", "é" * 4096, 2]))
    assert result_of(outcome) is None
    outcome = ledger.run("alice.near", "s.near", do(["log", "é" * 4096, 2], ["log", "x"]))
    message = "The length of a log message 16385 exceeds the limit 16384"
    assert result_of(outcome) == {"FunctionCallError": {"ExecutionError": message}}
    assert len(outcome.logs) == 2


def test_promises_are_limited(ledger):
    """1024 in one call; one more is refused."""
    gas = 400 * TGAS  # each burns and reserves a receipt
    outcome = ledger.run("alice.near", "n.near", FunctionCall("crowd", b'{"count": 1024}', gas))
    assert len(outcome.receipt_ids) == 1024 + 1
    expected = "The number of promises within a FunctionCall 1025 exceeds the limit 1024"
    assert error(ledger, "crowd", b'{"count": 1025}', gas) == expected


def test_inputs_are_limited(ledger):
    """128 may be joined; the error of more has the first number beyond, as the node's."""
    outcome = ledger.run(
        "alice.near", "n.near", FunctionCall("gather", b'{"count": 128}', TGAS * 9)
    )
    assert result_of(outcome) is None
    expected = "The number of input data dependencies 129 exceeds the limit 128"
    assert error(ledger, "gather", b'{"count": 200}') == expected


def test_results_and_records_are_limited(ledger):
    """4 MiB of result and of value, 2048 bytes of key."""
    outcome = ledger.run(
        "alice.near", "n.near", FunctionCall("results", b'{"size": 4194304}', 9 * TGAS)
    )
    assert len(outcome.status.value) == 4 * MIB
    expected = "The length of a returned value 4194305 exceeds the limit 4194304"
    assert error(ledger, "results", b'{"size": 4194305}') == expected
    outcome = ledger.run(
        "alice.near", "n.near", FunctionCall("store", b'{"key": 2048, "value": 9}', 9 * TGAS)
    )
    assert ledger.world.state().data("n.near", bytes(2048)) == bytes(9)
    expected = "The length of a storage key 2049 exceeds the limit 2048"
    assert error(ledger, "store", b'{"key": 2049, "value": 9}') == expected
    expected = "The length of a storage value 4194305 exceeds the limit 4194304"
    assert error(ledger, "store", b'{"key": 1, "value": 4194305}') == expected


def test_promises_are_used_as_they_are_meant(subtests, ledger):
    """What the host refuses is told in its words."""
    cases = [
        ("act", "Actions can only be appended to non-joint promise."),
        ("refund", "Setting refund_to on a joint promise is prohibited."),
        ("return", "Returning joint promise is currently prohibited."),
        ("name", "Tried to call an empty method name."),
        ("key", "VM Logic provided an invalid public key"),
        ("account", "VM Logic returned an invalid account id"),
        ("resume", "Yield resume payload is 1025 bytes which exceeds the 1024 byte limit"),
    ]
    for what, expected in cases:
        with subtests.test(what=what):
            assert error(ledger, "misuse", b'{"what": "%s"}' % what.encode()) == expected


# Gas -------------------------------------------------------------------------------------


def test_a_promise_costs_its_sending_at_once():
    """Receipt and action are burnt in the caller; their execution and their gas are set aside."""
    genesis = Genesis()
    genesis.account("s.near", 10 * N, contract=Script)
    ledger = Ledger("alice.near", genesis=genesis, vm_gas={"s.near.do": 2 * TGAS})
    steps = (["call", "a", "bob.near", [], {"gas": 7 * TGAS}], ["then", "b", "a", "s.near", []])
    call = do(*steps, gas=100 * TGAS)
    outcome = ledger.run("alice.near", "s.near", call)
    inner = 2 + len(b'{"steps":[]}')  # "do", and its arguments
    sent = 108_059_500_000 * 2 + 200_000_000_000 * 2 + inner * (47_683_715 + 2_235_934)
    data = 2 * 36_486_732_312
    own = 108_059_500_000 + 780_000_000_000 + (2 + len(call.args)) * 2_235_934
    assert outcome.gas_burnt == own + 2 * TGAS + sent + data
    receipts = [ledger.receipt(child) for child in outcome.receipt_ids]
    carried = 2 * (108_059_500_000 + 780_000_000_000 + inner * 2_235_934) + 12 * TGAS
    unused = own + 100 * TGAS - outcome.gas_burnt - carried
    assert receipts[2].actions[0].deposit == unused * 10**9 + outcome.gas_burnt * 9 * 10**8


def test_a_profile_keeps_base_and_bytes_apart():
    """As the public network does: what a call costs in any case, and what its bytes cost."""
    ledger = Ledger("alice.near", scripts=["s.near"], vm_gas={".do": 0})
    outcome = ledger.run("alice.near", "s.near", do(["call", "a", "bob.near", []]))
    inner = 2 + len(b'{"steps":[]}')
    assert outcome.gas_profile == (
        GasCost("ACTION_COST", "FUNCTION_CALL_BASE", 200_000_000_000),
        GasCost("ACTION_COST", "FUNCTION_CALL_BYTE", inner * 47_683_715),
        GasCost("ACTION_COST", "NEW_ACTION_RECEIPT", 108_059_500_000),
    )


def test_what_a_callee_returns_is_paid_by_the_byte():
    """Somebody waits for it: each byte is sent and received, at the callee's cost."""
    ledger = Ledger("alice.near", scripts=["s.near", "t.near"], vm_gas={".do": 0})
    steps = ["value", "x" * 98]
    outcome = ledger.run(
        "alice.near",
        "s.near",
        do(["call", "a", "t.near", [steps]], ["then", "b", "a", "s.near", []]),
    )
    called = ledger.children(outcome)[0]
    assert GasCost("ACTION_COST", "NEW_DATA_RECEIPT_BYTE", 100 * 64_895_726) in called.gas_profile
    alone = ledger.run("alice.near", "t.near", do(steps))
    assert alone.gas_profile == ()


def test_a_fixed_cost_is_all_a_computation_burns():
    """By contract and method, or by method alone; the first goes before."""
    table = {"s.near.do": 3 * TGAS, ".do": TGAS}
    ledger = Ledger("alice.near", scripts=["s.near", "t.near"], vm_gas=table)
    call = do(["write", "k", "v"], ["log", "x"])
    own = 108_059_500_000 + 780_000_000_000 + (2 + len(call.args)) * 2_235_934
    for name, gas in (("s.near", 3 * TGAS), ("t.near", TGAS)):
        outcome = ledger.run("alice.near", name, call)
        assert outcome.gas_burnt == own + gas
        assert outcome.gas_profile == (GasCost("WASM_HOST_COST", "WASM_INSTRUCTION", gas),)


def test_host_functions_are_counted():
    """The profile of a write has the write's base, its key's and its value's bytes."""
    ledger = Ledger("alice.near", scripts=["s.near"])
    outcome = ledger.run("alice.near", "s.near", do(["write", "key", "value"]))
    lines = {line.cost: line.gas_used for line in outcome.gas_profile}
    assert lines["STORAGE_WRITE_BASE"] == 64_196_736_000
    assert lines["STORAGE_WRITE_KEY_BYTE"] == 3 * 70_482_867
    assert lines["STORAGE_WRITE_VALUE_BYTE"] == 5 * 31_018_539
    assert lines["WASM_INSTRUCTION"] == fees.CALL_BASE == TGAS
    assert lines["CONTRACT_LOADING_BYTES"] == len(Script.code) * 1_089_295
    own = 108_059_500_000 + 780_000_000_000
    own += (2 + len(do(["write", "key", "value"]).args)) * 2_235_934
    assert outcome.gas_burnt == own + sum(lines.values())
    assert list(outcome.gas_profile) == sorted(outcome.gas_profile, key=lambda line: line.cost)
