"""
Two worlds with the same accounts and transactions, whose token is Python in one, Wasm in the other.

Compared are, for each transaction: its receipts with their ids, senders, receivers, actions, data
dependencies and order, their statuses with the texts of failures, and their logs; and after it the
balances and the supply of the token, and the bytes of storage that all accounts gained.

Gas is not compared, nor what depends on it: the gas of attached calls, and the deposits of gas
refunds. Python code has no instructions to count. Of a panic, the place in the source and the words
of the JSON decoder are not compared.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ledgerkit.localnet.chain_types import ActionReceipt, Failure, SuccessReceiptId
from ledgerkit.localnet.contracts.fungible_token import FungibleToken
from ledgerkit.localnet.contracts.token_receiver import TokenReceiver
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import (
    AddKey,
    CreateAccount,
    FunctionCall,
    SecretKey,
    Transaction,
    Transfer,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from ledgerkit.localnet.chain_types import Outcome
    from ledgerkit.protocol import Action

N = 10**24
REGISTRATION = 125 * 10**19
TOKEN = "token.near"
RECEIVER = "receiver.near"
PEOPLE = ("alice.near", "bob.near", "carol.near", "dave.near")
SUPPLY = 10**9
GAS = 100 * 10**12
MESSAGES = ("take", "return 0", "return 3", "return 999999999999", "return many", "panic no", "")


class TokenWorld:
    """A world with a token, people and a receiver."""

    def __init__(self, token: Any = FungibleToken) -> None:
        self.world = open_world("empty")
        self.key = SecretKey.from_text(self.world.keys()["near"])
        for name in PEOPLE:
            create = [CreateAccount(), Transfer(1000 * N), AddKey(self.key.public_key)]
            self.send("near", name, create)
        self.world.deploy(RECEIVER, TokenReceiver)
        self.world.deploy(TOKEN, token)
        args = {"owner_id": "alice.near", "total_supply": str(SUPPLY)}
        self.send(TOKEN, TOKEN, [call("new_default_meta", args)])
        self.storage = self._storage()

    def send(self, signer_id: str, receiver_id: str, actions: Sequence[Action]) -> list[Any]:
        """Send a transaction; describe its outcomes."""
        state = self.world.state()
        access_key = state.access_key(signer_id, self.key.public_key.packed)
        assert access_key is not None
        nonce, block_hash = access_key.nonce + 1, self.world.chain.genesis.hash
        tx = Transaction(signer_id, self.key.public_key, nonce, receiver_id, block_hash, actions)
        signed = tx.sign(self.key)
        self.world.submit(signed)
        self.world.settle()
        record = self.world.transaction(signed.hash)
        assert record is not None
        stack, lines = [record.receipt.receipt_id], []
        while stack:
            outcome = self.world.outcome(stack.pop())
            assert outcome is not None
            lines.append(self._describe(outcome))
            stack.extend(reversed(outcome.receipt_ids))
        return lines

    def _describe(self, outcome: Outcome) -> Any:
        """Return what is compared of a receipt and its outcome."""
        receipt = self.world.receipt(outcome.id)
        assert isinstance(receipt, ActionReceipt)
        status = outcome.status
        if isinstance(status, Failure):
            shown: Any = _without_place(json.dumps(status.error))
        else:
            shown = status.receipt_id if isinstance(status, SuccessReceiptId) else status.value
        return (
            outcome.id,
            outcome.block_height,
            receipt.predecessor_id,
            receipt.receiver_id,
            [_action(each, is_refund=receipt.is_refund) for each in receipt.actions],
            receipt.input_data_ids,
            receipt.output_data_receivers,
            shown,
            outcome.logs,
            outcome.receipt_ids,
        )

    def view(self, method_name: str, **args: Any) -> Any:
        data = json.dumps(args).encode()
        return json.loads(self.world.view(TOKEN, method_name, data, self.world.chain.head).result)

    def _storage(self) -> dict[str, int]:
        """Return the bytes of storage of all accounts, without the token's own state record."""
        state = self.world.state()
        accounts = {name: state.account(name) for name in self.world.account_ids()}
        sizes = {name: each.storage_usage for name, each in accounts.items() if each}
        sizes[TOKEN] -= len(state.data(TOKEN, b"STATE") or b"")  # Python writes it as JSON
        return sizes

    def summary(self) -> Any:
        """Return the token's balances and supply, and the bytes of storage that were gained."""
        balances = {
            name: (
                self.view("ft_balance_of", account_id=name),
                self.view("storage_balance_of", account_id=name),
            )
            for name in (*PEOPLE, RECEIVER)
        }
        gained = {name: size - self.storage[name] for name, size in self._storage().items()}
        return balances, self.view("ft_total_supply"), gained


def _without_place(text: str) -> str:
    """Drop what depends on the module's SDK: the place of a panic, and its JSON decoder's words."""
    text = re.sub(r"panicked at [\w./-]+:\d+:\d+:\\n", "", text)
    return re.sub(r"(Failed to deserialize input from JSON\.)[^}]*", r"\1", text)


def _action(action: Action, *, is_refund: bool) -> Any:
    """Return what is compared of an action: nothing that depends on gas."""
    if isinstance(action, FunctionCall):
        return action.method_name, action.args, action.deposit
    return "refund" if is_refund else action


def call(method_name: str, args: Any, deposit: int = 0) -> FunctionCall:
    data = args if isinstance(args, bytes) else json.dumps(args).encode()
    return FunctionCall(method_name, data, GAS, deposit)


def random_call(rng: random.Random) -> tuple[str, FunctionCall]:
    """Return a signer and a call that succeeds, or fails in one of many ways."""
    signer_id = rng.choice(PEOPLE)
    other_id = rng.choice((*PEOPLE, *PEOPLE, RECEIVER, RECEIVER, TOKEN, "nobody.near", "BAD"))
    amount: Any = rng.choice(
        (1, 1, 7, 7, rng.randrange(1000), rng.randrange(10**6), 0, SUPPLY, 10**30, "x")
    )
    deposit = rng.choice((*(1,) * 10, 0, 2))
    transfer = {"receiver_id": other_id, "amount": str(amount)}
    if rng.random() < 0.3:
        transfer["memo"] = "for you"
    kind = rng.randrange(8)
    if kind <= 2:
        return signer_id, call("ft_transfer", transfer, deposit)
    if kind <= 4:
        target = rng.choice((RECEIVER, RECEIVER, other_id))
        args = {**transfer, "receiver_id": target, "msg": rng.choice(MESSAGES)}
        return signer_id, call("ft_transfer_call", args, deposit)
    if kind == 5:
        options = rng.choice(({}, {"account_id": other_id}, {"registration_only": True}))
        paid = rng.choice((REGISTRATION, REGISTRATION, 2 * REGISTRATION, 1, 0))
        return signer_id, call("storage_deposit", options, paid)
    if kind == 6:
        forced = rng.choice(({}, {}, {"force": True}, {"force": False}, {"force": None}))
        signer_id = rng.choice(PEOPLE[1:])  # the owner keeps the supply
        return signer_id, call("storage_unregister", forced, deposit)
    others: tuple[tuple[str, Any], ...] = (
        ("storage_withdraw", {}),
        ("storage_withdraw", {"amount": "1"}),
        ("ft_transfer", b"{"),
        ("ft_transfer", b""),
        ("ft_resolve_transfer", {**transfer, "sender_id": signer_id}),
        ("new_default_meta", {"owner_id": signer_id, "total_supply": "5"}),
        ("no_such_method", {}),
    )
    name, args = rng.choice(others)
    return signer_id, call(name, args, deposit)


class Pair:
    """The same transactions in both worlds."""

    def __init__(self, module: bytes) -> None:
        self.python, self.wasm = TokenWorld(), TokenWorld(module)

    def send(self, signer_id: str, action: FunctionCall) -> tuple[bool, str | None]:
        """Send a call in both; return if its first receipt succeeded, and the first difference."""
        here = self.python.send(signer_id, TOKEN, [action])
        there = self.wasm.send(signer_id, TOKEN, [action])
        label = f"{signer_id}: {action.method_name}({action.args!r}), deposit {action.deposit}"
        for number, (own, real) in enumerate(zip(here, there, strict=False)):
            if own != real:
                return False, f"{label}: receipt {number} is {own}, and of the module {real}"
        if len(here) != len(there):
            return False, f"{label}: {len(here)} receipts, and of the module {len(there)}"
        if self.python.summary() != self.wasm.summary():
            own, real = self.python.summary(), self.wasm.summary()
            return False, f"{label}: state {own}, and of the module {real}"
        return "ActionError" not in str(here[0][7]), None
