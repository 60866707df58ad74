"""Balances, fungible tokens and their metadata, read by view calls at one block."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.localnet import Contract, World, open_world, view
from tests.loopback import Reply, asking

pytestmark = pytest.mark.usefixtures("no_session_left")

NEAR = 10**24
U128_MAX = 2**128 - 1
UNTYPED: Any = lk  # as whoever calls it without a type checker
SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "wire" / "samples" / "rpc"


class Odd(Contract):
    """A token whose balances are the JSON that `ODD` has for the account."""

    @view
    def ft_balance_of(self, account_id: str) -> bytes:
        """Return the bytes."""
        return ODD[account_id]


ODD = {
    "zero.near": b'"0"',
    "most.near": json.dumps(str(U128_MAX)).encode(),
    "number.near": str(U128_MAX).encode(),
    "large.near": json.dumps(str(2**128)).encode(),
    "minus.near": b'"-1"',
    "point.near": b'"1.5"',
    "float.near": b"1e24",
    "empty.near": b'""',
    "null.near": b"null",
    "list.near": b'["1"]',
    "nothing.near": b"",
    "bytes.near": b"\xff\xfe",
    "digits.near": b'"\xd9\xa3"',  # a digit of another script
}
AMOUNTS = {"zero.near": 0, "most.near": U128_MAX, "number.near": U128_MAX}
NO_AMOUNTS = sorted(ODD.keys() - AMOUNTS.keys())


def odd_world() -> World:
    """Open the demo world with the contract `Odd`, and connect to it."""
    world = open_world("demo")
    lk.connect(world=world)
    world.deploy("odd.near", Odd)
    world.advance(3)
    return world


def transfer(world: World, sender_id: str, receiver_id: str, amount: int) -> int:
    """Send GOLD; return the height from which on the receiver has it."""
    lk.use_signer(sender_id, world.keys()[sender_id])
    args = {"receiver_id": receiver_id, "amount": str(amount)}
    lk.call("gold.near", "ft_transfer", args, deposit="1 yoctoNEAR", wait_until="FINAL")
    return world.chain.final.height


def world_balance(world: World, contract_id: str, account_id: str, height: int) -> int:
    """Ask the token behind the client's back."""
    args = json.dumps({"account_id": account_id}).encode()
    block = world.chain.by_height(height)
    assert block is not None
    return int(json.loads(world.view(contract_id, "ft_balance_of", args, block).result))


def hash_at(world: World, height: int) -> str:
    """Return the hash of a block."""
    block = world.chain.by_height(height)
    assert block is not None
    return str(block.hash)


def recorded(name: str) -> bytes:
    """Return a recorded response of a node."""
    if not SAMPLES.is_dir():
        pytest.skip("the recordings are not here")
    return (SAMPLES / name).read_bytes()


# One balance ------------------------------------------------------------------------------


def test_a_balance_of_near_is_what_the_account_can_move() -> None:
    """It is `amount` of the node, without the stake that is locked; it changes with a transfer."""
    world = open_world("demo")
    ledger = lk.connect(world=world)
    state = ledger.rpc(
        "query", {"request_type": "view_account", "finality": "final", "account_id": "bob.near"}
    )
    before = world.chain.final.height
    balance = lk.balance("bob.near")
    assert type(balance) is int
    assert balance == lk.balance("bob.near", "near") == int(state["amount"])
    lk.use_signer("alice.near", world.keys()["alice.near"])
    lk.transfer("bob.near", "7 yoctoNEAR", wait_until="FINAL")
    assert lk.balance("bob.near", "NEAR") == balance + 7
    assert lk.balance("bob.near", at=before) == balance
    assert lk.balance("bob.near", at=hash_at(world, before)) == balance


def test_a_balance_of_a_token() -> None:
    """The contract tells it at any block; the asset is named by its contract, or as transfers."""
    world = open_world("demo")
    lk.connect(world=world)
    before = world.chain.final.height
    after = transfer(world, "alice.near", "bob.near", 1234)
    for asset in ("gold.near", "nep141:gold.near"):
        past, now = (lk.balance("alice.near", asset, at=at) for at in (before, after))
        assert past == world_balance(world, "gold.near", "alice.near", before)
        assert now == lk.balance("alice.near", asset) == past - 1234


def test_a_balance_costs_one_request() -> None:
    """The recorded answers of nodes are read exactly: an amount as text, and one as a number."""
    answers = {
        "view_account": recorded("query_view_account.json"),
        "call_function": recorded("query_call_function_number.json"),
    }
    with asking(lambda *sent: Reply(200, answers[asked(sent)["request_type"]])) as server:
        assert lk.balance("example.testnet") == 399992611103597728750000000
        assert lk.balance("example.testnet", "token.testnet") == 0
        state, token = (one["params"] for one in server.calls)
    assert state == {
        "request_type": "view_account",
        "account_id": "example.testnet",
        "finality": "final",
    }
    assert token == {
        "request_type": "call_function",
        "account_id": "token.testnet",
        "method_name": "ft_balance_of",
        "args_base64": base64.b64encode(b'{"account_id":"example.testnet"}').decode(),
        "finality": "final",
    }


def asked(sent: tuple[Any, ...]) -> dict[str, Any]:
    """Return the parameters of a request."""
    params: dict[str, Any] = json.loads(sent[3])["params"]
    return params


@pytest.mark.parametrize(("account_id", "balance"), AMOUNTS.items())
def test_a_balance_is_exact(account_id: str, balance: int) -> None:
    """Every amount of 128 bits is read with all its digits, as a text and as a number."""
    odd_world()
    assert lk.balance(account_id, "odd.near") == balance


@pytest.mark.parametrize("account_id", NO_AMOUNTS)
def test_what_is_no_amount_is_no_balance(account_id: str) -> None:
    """Anything else that a contract returns is an error that names the account and contract."""
    odd_world()
    with pytest.raises(errors.DecodeError) as caught:
        lk.balance(account_id, "odd.near")
    assert f"the balance of {account_id} in odd.near" in str(caught.value)


NO_BALANCES = {  # of alice.near in the demo world, by contract
    "torn.near": errors.ContractPanicError,
    "counter.near": errors.ContractMethodNotFoundError,
    "dave.near": errors.NoContractCodeError,
    "nowhere.near": errors.UnknownAccountError,
}


@pytest.mark.filterwarnings("ignore:the embedded ledger has no account nowhere.near")
@pytest.mark.parametrize(("contract_id", "error"), NO_BALANCES.items())
def test_a_contract_without_balances_is_an_error(contract_id: str, error: Any) -> None:
    """What can't be read is never 0; the error names the account and the contract."""
    lk.connect("local")
    with pytest.raises(error) as caught:
        lk.balance("alice.near", contract_id)
    assert f"the balance of alice.near in {contract_id}" in str(caught.value)


def test_an_account_that_does_not_exist_has_no_near() -> None:
    """There is an error, also before the account was created; tokens only know their holders."""
    lk.connect("local")
    with pytest.raises(errors.UnknownAccountError):
        lk.balance("nina.near", at="genesis")
    assert lk.balance("nina.near") == 2 * NEAR
    assert lk.balance("nina.near", "gold.near", at="genesis") == 0


@pytest.mark.parametrize("asset", ["Near", "GOLD", "", "nep141:", "nep245:a.near:1", None, 7, b"a"])
def test_what_is_no_asset(asset: object) -> None:
    """Symbols name many tokens, so that only NEAR and contracts are assets; nothing is sent."""
    lk.connect("local")
    with pytest.raises(errors.InvalidRequestError) as caught:
        UNTYPED.balance("alice.near", asset)
    assert caught.value.field == "asset"
    assert "expected NEAR, or the contract id of a fungible token" in str(caught.value)
