"""What contracts are written with: arguments, state, results, records, and code that names them."""

import json

import msgspec
import pytest

from ledgerkit.localnet.contract_sdk import (
    U128,
    BalanceMap,
    Contract,
    JsonMap,
    call,
    from_json,
    to_json,
    view,
)
from ledgerkit.localnet.execution_errors import CallError
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    AddKey,
    CryptoHash,
    DeleteAccount,
    FunctionCall,
    FunctionCallPermission,
    PublicKey,
    Stake,
)
from ledgerkit.units import U128_MAX
from tests.unit.localnet.ledger import TGAS, Ledger, N, public, result_of

KEY = str(public("k"))


class Counter(Contract):
    """Counts, in a state with defaults."""

    class State(msgspec.Struct):
        """How far."""

        number: int = 5

    state: State

    @view
    def get(self) -> int:
        """Tell how far."""
        return self.state.number

    @call
    def add(self, by: int = 1) -> None:
        self.state.number += by

    @call
    def add_and_fail(self, by: int) -> None:
        self.state.number += by
        raise KeyError(by)


class Owned(Contract):
    """Has to be initialised."""

    class State(msgspec.Struct):
        """Whose it is."""

        owner_id: str

    state: State

    @call(init=True)
    def new(self, owner_id: AccountId) -> None:
        self.state = self.State(str(owner_id))

    @view
    def owner(self) -> str:
        return self.state.owner_id


class Kinds(Contract):
    """Takes and gives values of every kind."""

    @view
    def amount(self, value: U128) -> U128:
        return U128(value * 2)

    @view
    def account(self, value: AccountId) -> AccountId:
        return value

    @view
    def key(self, value: PublicKey | None = None) -> PublicKey | None:
        return value

    @view
    def many(self, value: list[U128], more: dict[str, int] | None = None) -> dict:
        """Give several kinds at once."""
        return {"sum": U128(sum(value)), "more": more, "hash": CryptoHash(bytes(32))}

    @view
    def raw(self) -> bytes:
        return b"\xff"

    @view
    def null(self) -> str | None:
        """Give nothing, in JSON."""

    @view
    def tell(self) -> None:
        """Log an event with a member that is absent."""
        self.event("nep1", "1.0.0", "happened", [{"a": U128(1), "memo": None}])

    @call
    def keep(self) -> list:
        balances = BalanceMap(self.vm, b"b")
        balances.put("bob.near", 7)
        balances.put("amy.near", U128_MAX)
        balances.put("gone.near", 1)
        balances.remove("gone.near")
        records = JsonMap(self.vm, b"r", list[int])
        for name in ("x", "a", "é"):
            records.put(name, [1, 2])
        told_of = records.remove("x"), records.remove("x"), "a" in records, "x" in records
        kept = [balances.get(name) for name in ("bob.near", "amy.near", "gone.near")]
        return [*told_of, *map(str, kept), "bob.near" in balances]

    @call
    def send(self) -> None:
        """Make a receipt with the rarer actions."""
        promise = self.vm.promise("a.near")
        promise.add_access_key(KEY, 5, "b.near", ["m"]).stake(N, KEY).delete_account("c.near")


@pytest.fixture
def ledger():
    genesis = Genesis()
    for name, contract in (("c.near", Counter), ("o.near", Owned), ("k.near", Kinds)):
        genesis.account(name, 100 * N, contract=contract)
    return Ledger("alice.near", genesis=genesis)


def ask(ledger, contract_id, method_name, **args):
    """Call a view, with JSON in and out."""
    packed = json.dumps(args).encode()
    found = ledger.world.view(contract_id, method_name, packed, ledger.world.chain.head).result
    return json.loads(found) if found else None


def refusal(ledger, *args, **more):
    """Give the text of a panic in a view."""
    with pytest.raises(CallError) as caught:
        ask(ledger, *args, **more)
    return str(caught.value)


def act(ledger, contract_id, method_name, deposit=0, **args):
    """Call a method; give its outcome."""
    packed = json.dumps(args).encode()
    action = FunctionCall(method_name, packed, 100 * TGAS, deposit)
    return ledger.run("alice.near", contract_id, action)


# State -----------------------------------------------------------------------------------


def test_a_state_begins_with_its_defaults(ledger):
    """Before any call it is not stored; a call that changes it writes it."""
    assert ask(ledger, "c.near", "get") == 5
    assert list(ledger.world.state().records("c.near")) == []
    act(ledger, "c.near", "add", by=3)
    assert ask(ledger, "c.near", "get") == 8
    assert list(ledger.world.state().records("c.near")) == [(b"STATE", b'{"number":8}')]


def test_a_call_that_fails_leaves_the_state(ledger):
    """What goes wrong in a contract's own code is a panic, which names the mistake."""
    outcome = act(ledger, "c.near", "add_and_fail", by=3)
    error = result_of(outcome)["FunctionCallError"]["ExecutionError"]
    assert error == "Smart contract panicked: panicked at 'KeyError: 3'"
    assert ask(ledger, "c.near", "get") == 5
    assert ledger.is_whole()


def test_a_contract_is_initialised_once(ledger):
    """Before, every method panics; after, only the init method does."""
    assert refusal(ledger, "o.near", "owner") == "The contract is not initialized"
    act(ledger, "o.near", "new", owner_id="bob.near")
    assert ask(ledger, "o.near", "owner") == "bob.near"
    outcome = act(ledger, "o.near", "new", owner_id="eve.near")
    error = result_of(outcome)["FunctionCallError"]["ExecutionError"]
    assert error == "Smart contract panicked: The contract has already been initialized"
    assert ask(ledger, "o.near", "owner") == "bob.near"


# Arguments and results -------------------------------------------------------------------


@pytest.mark.parametrize("value", ["0", "1", "+1", str(U128_MAX // 2)])
def test_amounts_are_texts(ledger, value):
    """In JSON an amount is a text of digits, of any size, exact; Rust takes a plus before them."""
    assert ask(ledger, "k.near", "amount", value=value) == str(int(value) * 2)


def test_arguments_are_of_their_kind(subtests, ledger):
    """What is no amount, no account id or no key is refused before the method runs."""
    cases = [
        ("amount", 5),
        ("amount", "-1"),
        ("amount", ""),
        ("amount", "1.0"),
        ("amount", "٣"),
        ("amount", str(U128_MAX + 1)),
        ("amount", "9" * 10_000),
        ("amount", None),
        ("account", "A"),
        ("account", "a"),
        ("account", 7),
        ("key", "ed25519:0"),
        ("key", 7),
    ]
    for method, value in cases:
        with subtests.test(method=method, value=value):
            expected = "Failed to deserialize input from JSON."
            assert refusal(ledger, "k.near", method, value=value) == expected


def test_values_of_every_kind_come_back(ledger):
    """Ids and keys are texts, amounts inside lists are read, null stands for nothing."""
    assert ask(ledger, "k.near", "account", value="bob.near") == "bob.near"
    assert ask(ledger, "k.near", "key", value=KEY) == KEY
    assert ask(ledger, "k.near", "key") is None
    found = ask(ledger, "k.near", "many", value=["1", "2"], more={"a": 1})
    assert found == {"sum": "3", "more": {"a": 1}, "hash": "1" * 32}
    block = ledger.world.chain.head
    assert ledger.world.view("k.near", "raw", b"", block).result == b"\xff"
    assert ledger.world.view("k.near", "null", b"", block).result == b"null"


def test_further_arguments_are_ignored(ledger):
    """As contracts do, which name what they take."""
    assert ask(ledger, "k.near", "amount", value="1", other=2) == "2"


def test_an_event_is_one_line_of_json(ledger):
    """Compact, its members in order, what is absent left out."""
    found = ledger.world.view("k.near", "tell", b"{}", ledger.world.chain.head)
    assert found.logs == (
        'EVENT_JSON:{"standard":"nep1","version":"1.0.0","event":"happened","data":[{"a":"1"}]}',
    )
    assert found.result == b""


def test_what_another_returned_is_read_or_nothing():
    """A failure, no JSON and depth without end are all None."""
    assert from_json(b'{"a": 1}') == {"a": 1}
    for bad in (None, b"", b"{", b"\xff", b"[" * 100_000):
        assert from_json(bad) is None
    assert to_json({"a": U128(5), "b": AccountId("a.near")}) == b'{"a":"5","b":"a.near"}'
    with pytest.raises(TypeError):
        to_json(object())


# Records and promises --------------------------------------------------------------------


def test_records_and_balances_are_kept(ledger):
    """Balances take 16 bytes."""
    found = result_of(act(ledger, "k.near", "keep"))
    assert found[:4] == [True, False, True, False]
    assert found[4:8] == ["7", str(U128_MAX), "None", True]
    state = ledger.world.state()
    assert state.data("k.near", b"b\x08\0\0\0bob.near") == b"\x07" + bytes(15)
    assert state.data("k.near", b"r\x01\0\0\0a") == b"[1,2]"


def test_a_promise_carries_the_rarer_actions(ledger):
    """Keys for calls, stakes and deletions are actions of the receipt that is made."""
    outcome = act(ledger, "k.near", "send")
    made = ledger.receipt(outcome.receipt_ids[0])
    lines = {line.cost: line.gas_used for line in outcome.gas_profile}
    assert lines["ADD_FUNCTION_CALL_KEY_BASE"] == 102_217_625_000
    assert lines["ADD_FUNCTION_CALL_KEY_BYTE"] == 2 * 47_683_715
    assert lines["STAKE"] == 141_715_687_500
    assert lines["DELETE_ACCOUNT"] == 147_489_000_000
    permission = FunctionCallPermission(5, "b.near", ["m"])
    assert made.actions == (
        AddKey(public("k"), AccessKey(0, permission)),
        Stake(N, public("k")),
        DeleteAccount("c.near"),
    )


# Code ------------------------------------------------------------------------------------


def test_code_is_a_module_that_names_its_class():
    """A Wasm header and one custom section, so that it has a size and a hash of its own."""
    name = f"{Counter.__module__}.{Counter.__qualname__}".encode()
    section = b"\x09ledgerkit" + name
    assert Counter.code == b"\0asm\x01\0\0\0\0" + bytes([len(section)]) + section
    assert Counter.code_hash == CryptoHash.of(Counter.code)
    assert Counter.code_hash != Owned.code_hash
    assert set(Counter.methods) == {"get", "add", "add_and_fail"}


def test_long_names_have_long_sections():
    """A section of more than 127 bytes has its length in two."""
    code = type("X" * 200, (Contract,), {}).__dict__["code"]
    size = len(code) - 8 - 1 - 2
    assert code[9:11] == bytes([size & 0x7F | 0x80, size >> 7])
    assert code.endswith(b"X" * 200)
