"""Forks of a network, and transactions that are simulated on them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.localnet import forking, rpc_api
from ledgerkit.localnet.rpc import queries
from ledgerkit.protocol import (
    AddKey,
    CreateAccount,
    DeleteAccount,
    DeleteKey,
    FunctionCall,
    SecretKey,
    Transaction,
    Transfer,
)
from ledgerkit.transport.background_loop import drive
from tests.loopback import Reply, serve
from tests.unit.localnet.clocks import InstantClock
from tests.world_copies import open_copy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.protocol import Action

N = 10**24
READS = ("view_account", "view_access_key_list", "view_state", "view_code")


class Network:
    """A world behind HTTP, which records the methods that it is asked."""

    def __init__(self) -> None:
        self.world = open_copy("demo")
        self.ledger = lk.connect("local", world=self.world, make_default=False)
        self.methods: list[str] = []
        self.faults: dict[str, Reply] = {}
        self.changes: dict[str, dict[str, Any]] = {}  # of results, by method

    def answer(self, _method: str, _path: str, _headers: Any, data: bytes) -> Reply:
        """Answer a call as the world does, or with the fault of its method."""
        body = json.loads(data)
        params = body["params"]
        kind = params.get("request_type", "") if isinstance(params, dict) else ""
        name = kind or body["method"]
        self.methods.append(name)
        if name in self.faults:
            return self.faults[name]
        coroutine = rpc_api.respond(self.world, data, InstantClock(self.world))
        response = drive(coroutine)
        body = response.body
        if name in self.changes:
            document = json.loads(body)
            document["result"] |= self.changes[name]
            body = json.dumps(document).encode()
        return Reply(response.status, body, {"content-type": "application/json"})


@pytest.fixture
def network() -> Iterator[tuple[Network, lk.Ledger]]:
    source = Network()
    with (
        serve(source.answer) as server,
        lk.connect("lab", rpc_url=server.url, make_default=False) as ledger,
    ):
        yield source, ledger


def fork_of(ledger: lk.Ledger, **options: Any) -> lk.Ledger:
    return lk.connect("local", fork=ledger, make_default=False, **options)


def test_a_fork_has_the_state_of_the_network(network) -> None:
    """Accounts, keys, records and views are those of the block; nothing but reads is sent."""
    source, ledger = network
    fork = fork_of(ledger)
    for params in (
        {"request_type": "view_account", "account_id": "alice.near"},
        {"request_type": "view_access_key_list", "account_id": "frank.near"},
        {"request_type": "view_state", "account_id": "gold.near", "prefix_base64": ""},
        {"request_type": "view_code", "account_id": "gold.near"},
    ):
        here, there = (
            each.rpc("query", {**params, "finality": "final"}) for each in (fork, source.ledger)
        )
        for member in ("block_height", "block_hash"):
            del here[member], there[member]
        assert here == there
    args = {"account_id": "alice.near"}
    assert lk.view("gold.near", "ft_balance_of", args, ledger=fork) == lk.view(
        "gold.near", "ft_balance_of", args, ledger=source.ledger
    )
    with pytest.raises(errors.UnknownAccountError):
        fork.rpc(
            "query",
            {"request_type": "view_account", "account_id": "no.near", "finality": "final"},
        )
    reads = {"block", "status", "validators", "view_account", "view_access_key_list"}
    assert set(source.methods) <= reads | {"view_state", "view_code", "view_access_key"}
    assert "fork of lab at block 180000050" in repr(fork.world)


def test_a_fork_has_accounts_without_state(network) -> None:
    """A universal account keeps the nonce of its first transaction."""
    source, ledger = network
    source.changes["view_account"] = {"state": "uninitialized", "bootstrap_nonce": 7}
    params = {"request_type": "view_account", "account_id": "alice.near", "finality": "final"}
    account = fork_of(ledger).rpc("query", params)
    assert (account["state"], account["bootstrap_nonce"]) == ("uninitialized", 7)


def test_a_fork_changes_only_itself(network) -> None:
    """What is sent on a fork happens there, exactly; the network stays as it was."""
    source, ledger = network
    before = source.world.balance("bob.near")
    height = source.world.chain.head.height
    fork = fork_of(ledger)
    key = source.world.keys()["alice.near"]
    sent = lk.transfer(
        "bob.near", "3 NEAR", signer_id="alice.near", key=key, wait_until="FINAL", ledger=fork
    )
    assert sent.fully_succeeded
    assert fork.world.balance("bob.near") == before + 3 * N
    assert source.world.balance("bob.near") == before
    assert source.world.chain.head.height == height
    assert not {"send_tx", "broadcast_tx_async", "broadcast_tx_commit"} & set(source.methods)


def test_each_value_is_read_once(network) -> None:
    """A second read of the same account, key, code or state asks nothing."""
    source, ledger = network
    fork = fork_of(ledger)
    params = {"account_id": "alice.near"}
    first = lk.view("gold.near", "ft_balance_of", params, ledger=fork)
    count = len(source.methods)
    assert lk.view("gold.near", "ft_balance_of", params, ledger=fork) == first
    assert len(source.methods) == count


TRANSACTIONS: dict[str, tuple[str, str, list[Action]]] = {
    "transfer": ("alice.near", "bob.near", [Transfer(N)]),
    "token": (
        "alice.near",
        "gold.near",
        [
            FunctionCall(
                "ft_transfer", b'{"receiver_id": "bob.near", "amount": "7"}', 30 * 10**12, 1
            )
        ],
    ),
    "swap": (
        "ivan.near",
        "gold.near",
        [
            FunctionCall(
                "ft_transfer_call",
                b'{"receiver_id": "nobody.near", "amount": "5", "msg": ""}',
                100 * 10**12,
                1,
            )
        ],
    ),
    "create": (
        "alice.near",
        "new.alice.near",
        [CreateAccount(), Transfer(N), AddKey(SecretKey.generate().public_key)],
    ),
    "panic": ("alice.near", "gold.near", [FunctionCall("ft_transfer", b"{}", 30 * 10**12, 1)]),
    "missing": ("alice.near", "no.near", [FunctionCall("f", b"{}", 30 * 10**12, 0)]),
    "delete": ("heidi.near", "heidi.near", [DeleteAccount("alice.near")]),
    "stake": ("bob.near", "north.poolv1.near", [FunctionCall("ping", b"", 30 * 10**12, 0)]),
}


def facts(trace: lk.Trace) -> Any:
    """Return what a trace says, without hashes, heights and what depends on the computation."""
    receipts = trace.receipts
    columns = ["predecessor_id", "receiver_id", "status", "depth", "gas_burnt"]
    changes = trace.balance_changes
    return (
        trace.verdict,
        receipts[columns].values.tolist(),
        list(trace.logs["log"]),
        sorted(zip(changes["account_id"], map(int, changes["change"]), strict=True)),
    )


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_what_is_simulated_happens(network, name) -> None:
    """The trace of a simulated transaction is that of the real one, sent afterwards."""
    source, ledger = network
    signer_id, receiver_id, actions = TRANSACTIONS[name]
    simulated = lk.simulate(receiver_id, actions, signer_id=signer_id, ledger=ledger)
    source.world.advance(1)
    sent = lk.send(
        receiver_id, actions, signer_id=signer_id, wait_until="FINAL", ledger=source.ledger
    )
    assert facts(simulated) == facts(lk.trace(sent.tx_hash, signer_id, ledger=source.ledger))


def test_signed_transactions_are_checked(network) -> None:
    """A signed transaction has its own nonce, age and signature, and each of them counts."""
    source, ledger = network
    key = SecretKey.from_text(source.world.keys()["alice.near"])
    access_key = source.world.state().access_key("alice.near", key.public_key.packed)
    assert access_key is not None
    block_hash = source.world.chain.final.hash

    def signed(nonce: int, block: Any = block_hash) -> Any:
        tx = Transaction("alice.near", key.public_key, nonce, "bob.near", block, [Transfer(1)])
        return tx.sign(key)

    assert (
        lk.simulate(transaction=signed(access_key.nonce + 1), ledger=ledger).verdict
        == "fully_succeeded"
    )
    with pytest.raises(lk.errors.InvalidTransactionError, match="nonce"):
        lk.simulate(transaction=signed(access_key.nonce), ledger=ledger)
    with pytest.raises(lk.errors.InvalidTransactionError, match="block"):
        lk.simulate(
            transaction=signed(access_key.nonce + 1, type(block_hash)(bytes(32))), ledger=ledger
        )
    with pytest.raises(errors.InvalidRequestError, match="leave receiver_id out"):
        lk.simulate("bob.near", transaction=signed(access_key.nonce + 1), ledger=ledger)


def test_bad_input_is_refused(network) -> None:
    """Unknown signers, no signer, and more than there is; the world of the default is forked."""
    _, ledger = network
    with pytest.raises(errors.InvalidRequestError, match="signer_id"):
        lk.simulate("bob.near", Transfer(1), ledger=ledger)
    with pytest.raises(errors.InvalidRequestError, match="full access key"):
        lk.simulate("bob.near", Transfer(1), signer_id="no.near", ledger=ledger)
    with pytest.raises(errors.InvalidTransactionError, match="NEAR"):
        lk.simulate("bob.near", Transfer(10**9 * N), signer_id="alice.near", ledger=ledger)
    with pytest.raises(errors.InvalidRequestError, match="actions"):
        lk.simulate("bob.near", [], signer_id="alice.near", ledger=ledger)
    for options in ({"fork": ledger, "world": "demo"}, {"at": 5}):
        with pytest.raises(errors.InvalidRequestError):
            lk.connect("local", make_default=False, **options)
    with pytest.raises(errors.InvalidRequestError, match="fork"):
        lk.connect("testnet", fork=ledger, make_default=False)


@pytest.mark.parametrize("name", READS)
def test_a_value_that_cannot_be_read_is_not_missing(network, name) -> None:
    """The error of the network is raised, the fork stays as it was, and asking again goes on."""
    source, ledger = network
    fork = fork_of(ledger)
    call = FunctionCall("ft_transfer", b'{"receiver_id": "bob.near", "amount": "7"}', 10**14, 1)
    source.faults[name] = Reply(500, b"{}", {"content-type": "application/json"})
    height = fork.world.chain.head.height
    with pytest.raises(errors.LedgerError) as caught:
        lk.simulate("gold.near", call, signer_id="alice.near", ledger=ledger)
    assert not isinstance(caught.value, errors.NotFoundError)
    del source.faults[name]
    assert fork.world.chain.head.height == height
    trace = lk.simulate("gold.near", call, signer_id="alice.near", ledger=ledger)
    assert trace.verdict == "fully_succeeded"


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("view_account", {"amount": -5}),
        ("view_account", {"code_hash": "0"}),
        ("view_access_key", {"permission": {"Everything": {}}}),
        ("view_access_key", {"permission": {"GasKeyFunctionCall": {"balance": "1"}}}),
        ("view_access_key_list", {"keys": [{"public_key": "ed25519:1"}]}),
        ("view_access_key_list", {"keys": None}),
        ("view_state", {"values": [{"key": "AA=="}]}),
        ("view_state", {"values": [{"key": "?", "value": "AA=="}]}),
        ("view_code", {"code_base64": 5}),
    ],
    ids=range(9),
)
def test_a_malformed_value_is_the_networks_error(network, name, members) -> None:
    """A response that is not as a node documents it is a DecodeError, and nothing is guessed."""
    source, ledger = network
    source.changes[name] = members
    fork = fork_of(ledger)
    signer: dict[str, Any] = {"signer_id": "alice.near", "ledger": fork}
    signer["key"] = source.world.keys()["alice.near"]
    reads = {
        "view_access_key_list": lambda: lk.keys("alice.near", ledger=fork),
        "view_state": lambda: lk.contract_state("gold.near", ledger=fork),
        "view_code": lambda: lk.contract_code("gold.near", ledger=fork),
    }
    read = reads.get(name, lambda: lk.transfer("bob.near", "1 NEAR", **signer))
    with pytest.raises(errors.DecodeError):
        read()


@pytest.mark.parametrize("name", ["status", "validators"])
def test_a_fork_of_a_malformed_answer_is_not_opened(network, name) -> None:
    """What a fork begins with is checked when it is opened."""
    source, ledger = network
    source.changes[name] = {"protocol_version": "86", "epoch_height": None}
    with pytest.raises(errors.DecodeError):
        fork_of(ledger)


def test_a_block_is_produced_whole_or_not_at_all(network) -> None:
    """A failed read in the middle of a block leaves the chain and the mempool as they were."""
    source, ledger = network
    fork = fork_of(ledger)
    world = fork.world
    world.submit_unsigned(
        "alice.near", "gold.near", [FunctionCall("ft_total_supply", b"{}", 10**14)]
    )
    source.faults["view_state"] = Reply(500, b"{}", {"content-type": "application/json"})
    height, balance = world.chain.head.height, world.balance("alice.near")
    assert balance is not None
    for _ in range(3):
        with pytest.raises(Exception, match="500"):
            world.settle()
    assert world.chain.head.height - height <= 1
    source.faults.clear()
    world.settle()
    assert (world.balance("alice.near") or 0) < balance
    assert not world.is_busy


def test_keys_are_read_alone_or_together(network) -> None:
    """One key is read for a signature; a deletion of the account reads all of them."""
    source, ledger = network
    key = source.world.keys()["alice.near"]
    public_key = SecretKey.from_text(key).public_key
    fork = fork_of(ledger)
    sent = lk.transfer("bob.near", "1 NEAR", signer_id="alice.near", key=key, ledger=fork)
    assert sent.fully_succeeded
    assert "view_access_key_list" not in source.methods
    deletion = [DeleteKey(public_key)]
    trace = lk.simulate("alice.near", deletion, signer_id="alice.near", ledger=ledger)
    assert trace.verdict == "fully_succeeded"
    assert "view_access_key_list" in source.methods


def test_a_large_state_is_listed_in_pages(network, monkeypatch) -> None:
    """A state that the network sends in pages alone is whole in the fork, and in its answers."""
    source, ledger = network
    state = lk.contract_state("gold.near", ledger=source.ledger)
    fork = fork_of(ledger)
    monkeypatch.setattr(queries, "MAX_STATE_BYTES", 1)
    monkeypatch.setattr(forking, "_STATE_PER_PAGE", 2)
    source.methods.clear()
    assert lk.contract_state("gold.near", ledger=fork).equals(state)
    assert source.methods.count("view_state") == 1 + -(-len(state) // 2)


def test_an_old_block_is_forked(network) -> None:
    """A fork begins at the block that `at` names, by height, hash or finality."""
    source, ledger = network
    for at in (180_000_030, source.ledger.pin(180_000_030)[1]):
        fork = fork_of(ledger, at=at)
        assert fork.world.chain.head.height == 180_000_030
        then = source.world.state(180_000_030).account("alice.near")
        assert fork.world.balance("alice.near") == then.amount
