"""A small chain for tests: accounts with known keys, and a contract that runs given steps."""

import json
from functools import cache
from hashlib import sha256
from itertools import count

import base58

from ledgerkit.localnet.chain_types import Failure, SuccessReceiptId, SuccessValue
from ledgerkit.localnet.contract_sdk import Contract, call, to_json, view
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.promises import Promise  # noqa: TC001 - annotations are read when it runs
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World
from ledgerkit.protocol import FunctionCall, SecretKey, Transaction
from tests.strict_errors import read_failure

N = 10**24
TGAS = 10**12
PRICE = 10**8
START = 1000


@cache
def secret(name):
    return SecretKey.from_text(base58.b58encode(sha256(name.encode()).digest()).decode())


def public(name):
    return secret(name).public_key


class Script(Contract):
    """Does the steps it is given, each a list: a verb and its operands."""

    @call(payable=True)
    def do(self, steps: list) -> object:
        """Do all steps; return what one of them says."""
        self.made: dict[str, Promise] = {}
        self.answer: object = None
        for verb, *operands in steps:
            getattr(self, f"_{verb}")(*operands)
        return self.answer

    @view
    def peek(self, key: str) -> str | None:
        held = self.vm.storage_read(key.encode())
        return None if held is None else held.decode()

    def _log(self, text, times=1):
        for _ in range(times):
            self.vm.log(text)

    def _panic(self, text):
        self.vm.panic(text)

    def _write(self, key, value):
        self.vm.storage_write(key.encode(), value.encode())

    def _remove(self, key):
        self.vm.storage_remove(key.encode())

    def _burn(self, gas):
        self.vm.gas.burn(gas, "WASM_HOST_COST", "WASM_INSTRUCTION")

    def _value(self, value):
        self.answer = value

    def _tell(self, *names):
        self.answer = [str(getattr(self.vm, name)) for name in names]

    def _results(self):
        self.answer = [None if r is None else r.decode() for r in self.vm.promise_results]

    def _call(self, name, receiver_id, steps, options=None):
        promise = self.vm.promise(receiver_id)
        self.made[name] = self._add(promise, steps, options or {"weight": 1})

    def _then(self, name, after, receiver_id, steps):
        promise = self.made[after].then(receiver_id)
        self.made[name] = self._add(promise, steps, {"gas": 5 * TGAS})

    def _add(self, promise, steps, options):
        return promise.function_call("do", to_json({"steps": steps}), **options)

    def _join(self, name, *parts):
        self.made[name] = self.vm.join(*(self.made[part] for part in parts))

    def _transfer(self, name, receiver_id, amount):
        self.made[name] = self.vm.promise(receiver_id).transfer(int(amount))

    def _refund_to(self, name, account_id):
        self.made[name].refund_to(account_id)

    def _batch(self, name, receiver_id, *actions):
        promise = self.vm.promise(receiver_id)
        for method, *operands in actions:
            getattr(promise, method)(*operands)
        self.made[name] = promise

    def _give(self, name):
        self.answer = self.made[name]

    def _wait(self, name, steps):
        args = to_json({"steps": steps})
        promise, data_id = self.vm.yield_create("do", args, gas=10 * TGAS)
        self.vm.storage_write(b"wait", data_id)
        self.made[name] = promise

    def _resume(self, payload, times=1):
        data_id = self.vm.storage_read(b"wait") or b""
        self.answer = [self.vm.yield_resume(data_id, payload.encode()) for _ in range(times)]


def do(*steps, gas=100 * TGAS, deposit=0):
    """Call a `Script`."""
    return FunctionCall("do", to_json({"steps": list(steps)}), gas, deposit)


class Ledger:
    """A world whose accounts have the keys of their names; `scripts` have the contract."""

    def __init__(self, *names, scripts=(), balance=1000 * N, genesis=None, **settings):
        self.genesis = genesis or Genesis()
        for name in (*names, *scripts):
            contract = Script if name in scripts else None
            self.genesis.account(name, balance, keys=[public(name)], contract=contract)
        self.world = World(Settings(genesis_height=START, **settings), self.genesis)
        self.nonces = count(1)

    def sign(self, signer_id, receiver_id, *actions, key=None, nonce=None, block=None, **more):
        """Make a transaction of the head; each has a higher nonce than the one before."""
        held = secret(key or signer_id)
        return Transaction(
            signer_id,
            held.public_key,
            next(self.nonces) if nonce is None else nonce,
            receiver_id,
            block or self.world.chain.head.hash,
            actions,
            **more,
        ).sign(held)

    def send(self, *args, **more):
        """Sign and submit; give the hash."""
        signed = self.sign(*args, **more)
        self.world.submit(signed)
        return signed.hash

    def run(self, *args, **more):
        """Sign, submit and let it end; give the outcome of the transaction's receipt."""
        tx_hash = self.send(*args, **more)
        self.world.settle()
        return self.outcome(self.outcome(tx_hash).receipt_ids[0])

    def outcome(self, outcome_id):
        found = self.world.outcome(outcome_id)
        assert found is not None
        if isinstance(found.status, Failure):
            read_failure(found.status.error)
        return found

    def receipt(self, receipt_id):
        found = self.world.receipt(receipt_id)
        assert found is not None
        return found

    def children(self, outcome):
        """Give the outcomes of the receipts that an outcome made."""
        return [self.outcome(child) for child in outcome.receipt_ids]

    def account(self, name):
        return self.world.state().account(name)

    def access_key(self, name, key=None):
        return self.world.state().access_key(name, public(key or name).stored)

    def is_whole(self):
        """Return True if the total supply adds up: no yoctoNEAR was created or lost."""
        world = self.world
        return world.total_supply() == self.genesis.total_supply + world.minted - world.burnt


def result_of(outcome):
    """Return the decoded value of an outcome, or its receipt id, or its kind of error."""
    status = outcome.status
    if isinstance(status, SuccessValue):
        return json.loads(status.value) if status.value else None
    if isinstance(status, SuccessReceiptId):
        return status.receipt_id
    return status.error["ActionError"]["kind"]


def index_of(outcome):
    return outcome.status.error["ActionError"]["index"]


def is_postponed(world, receipt_id):
    """Return True if a receipt waits for data."""
    return any(receipt.receipt_id == receipt_id for receipt in world.runtime.postponed())
