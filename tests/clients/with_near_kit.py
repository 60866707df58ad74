"""
Drive near-kit (Python) against the embedded ledger.

`ledgerkit world demo --json` with `actors` added on standard input, the ledger's address as the
argument: `tests/clients/run.py` does both.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import base58
from near import (
    AccessKeyNotFoundError,
    AccountNotFoundError,
    Amount,
    ContractPanicError,
    InsufficientBalanceError,
    InvalidNonceError,
    Near,
    TokenAmount,
    function_call,
    generate_key,
    transfer,
)
from near.wire import Transaction, sign_transaction, to_wire_public_key

from tests.clients.checks import (
    NEAR,
    PLAIN,
    REGISTRATION,
    TRANSFER_DEBIT,
    TRANSFER_FEE,
    Checks,
    Demo,
    demo,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from near import NearError
    from near.models import TransactionResult

check = Checks("near-kit")


def raised(kind: type[NearError], act: Callable[[], object]) -> Any:
    """Return the error of that class that an act ends in; None where it ends well."""
    try:
        act()
    except kind as error:
        return error
    return None


def burnt(result: TransactionResult) -> int:
    """Add up the fees of a transaction and of all its receipts."""
    outcomes = [result.transaction_outcome, *result.receipts_outcome]
    return sum(int(outcome.outcome["tokens_burnt"]) for outcome in outcomes)


def reads(client: Near, world: Demo) -> None:
    """View the account, its key and a contract's answers; miss what is not there."""
    account = client.account()
    check.equal("view account: no code", account.code_hash, "1" * 32)
    check.equal("view account: storage", account.storage_usage, PLAIN)
    check.equal("view account: missing", client.account_exists("nobody.at-all"), wanted=False)
    error = raised(AccountNotFoundError, lambda: client.account("nobody.at-all"))
    check.equal("view account: error", error.account_id, "nobody.at-all")
    public_key = str(client.signer.public_key)
    key = client.access_key(world.sender_id, public_key)
    check.equal("access key: permission", key.permission, "FullAccess")
    check.equal("access keys", [row.public_key for row in client.access_keys()], [public_key])
    other = str(generate_key().public_key)
    error = raised(AccessKeyNotFoundError, lambda: client.access_key(world.sender_id, other))
    check.equal("access key: error", (error.account_id, error.public_key), (world.sender_id, other))


def views(client: Near, world: Demo) -> None:
    """Call view methods, at the head and at the genesis of the token's answers."""
    ft = world.contracts["ft"]
    bounds = client.view(ft, "storage_balance_bounds")
    check.equal("view call", bounds, {"min": str(REGISTRATION), "max": str(REGISTRATION)})
    metadata = client.ft_metadata(ft)
    check.equal("view call: metadata", metadata.spec, "ft-1.0.0")
    error = raised(ContractPanicError, lambda: client.view(ft, "no_such_method"))
    text = "wasm execution failed with error: MethodResolveError(MethodNotFound)"
    check.equal("view call of a missing method", error.panic, f"{ft}.no_such_method: {text}")


def send(client: Near, world: Demo) -> None:
    """Send 1 N and see both balances move by it and the fee, to the yocto."""
    before = client.balance(), client.balance(world.receiver_id)
    result = client.send(world.receiver_id, "1 NEAR", wait_until="FINAL")
    check.equal("transfer: status", result.status, {"SuccessValue": ""})
    check.equal("transfer: level", result.final_execution_status, "FINAL")
    check.equal("transfer: fee", burnt(result), TRANSFER_FEE)
    check.equal("transfer: sender", client.balance(), before[0] - NEAR - TRANSFER_FEE)
    check.equal("transfer: receiver", client.balance(world.receiver_id), before[1] + NEAR)


def status(client: Near, world: Demo) -> None:
    """Ask for a transaction by its hash, and for those of the world."""
    sent = client.send(world.receiver_id, "5 yocto")
    found = client.transaction_status(sent.transaction_hash, wait_until="FINAL")
    check.equal("tx status: hash", found.transaction_hash, sent.transaction_hash)
    check.equal("tx status: receipts", len(found.receipts_outcome), 2)
    check.equal("tx status: action", found.transaction["actions"], [{"Transfer": {"deposit": "5"}}])
    results = [
        client.transaction_status(row["tx_hash"], sender_id=row["signer_id"])
        for row in world.finished
    ]
    hashes = [row["tx_hash"] for row in world.finished]
    check.equal("tx status: the world's", [row.transaction_hash for row in results], hashes)


def deposit(client: Near, world: Demo) -> None:
    """Pay for somebody's storage: the deposit and the fees are what leaves the account."""
    ft, new_id = world.contracts["ft"], "registered.by.near-kit"
    before = client.balance()
    result = client.call(
        ft,
        "storage_deposit",
        {"account_id": new_id},
        deposit=Amount.yocto(REGISTRATION),
        wait_until="FINAL",
    )
    check.equal(
        "call with deposit: result",
        result.json_value(),
        {"total": str(REGISTRATION), "available": "0"},
    )
    check.equal(
        "call with deposit: balance", before - client.balance(), REGISTRATION + burnt(result)
    )


def batch(client: Near, world: Demo) -> None:
    """Register a receiver and send to it in one transaction of two calls."""
    ft, new_id = world.contracts["ft"], "batched.by.near-kit"
    before = client.ft_balance(ft)
    amount = TokenAmount(7, symbol=before.symbol, decimals=before.decimals)
    result = client.ft_transfer(ft, new_id, amount, register=True)
    check.equal("batch: actions", len(result.transaction["actions"]), 2)
    check.equal("batch: sender", client.ft_balance(ft), before - 7)
    check.equal("batch: receiver", client.ft_balance(ft, new_id), 7)


def transfer_call(client: Near, world: Demo) -> None:
    """Send tokens to a contract that keeps them: all of them are used."""
    ft, receiver = world.contracts["ft"], world.contracts["receiver"]
    before = client.ft_balance(ft), client.ft_balance(ft, receiver)
    amount = TokenAmount(20, symbol=before[0].symbol, decimals=before[0].decimals)
    result = client.ft_transfer_call(ft, receiver, amount, "take")
    check.equal("ft_transfer_call: used", result.json_value(), "20")
    after = client.ft_balance(ft), client.ft_balance(ft, receiver)
    check.equal("ft_transfer_call: balances", after, (before[0] - 20, before[1] + 20))


def refunded(client: Near, world: Demo) -> None:
    """Send tokens to the paused exchange: the client raises for its receipt, all comes back."""
    ft, dex = world.contracts["ft"], world.contracts["dex"]
    before = client.ft_balance(ft), client.ft_balance(ft, dex)
    amount = TokenAmount(20, symbol=before[0].symbol, decimals=before[0].decimals)
    error = raised(ContractPanicError, lambda: client.ft_transfer_call(ft, dex, amount, ""))
    used = base64.b64decode(error.data["status"]["SuccessValue"])
    check.equal("ft_transfer_call refused: used", used, b'"0"')
    after = client.ft_balance(ft), client.ft_balance(ft, dex)
    check.equal("ft_transfer_call refused: balances", after, before)


def failing_call(client: Near, world: Demo) -> None:
    """Call a method that panics: the client raises its words, and only fees are gone."""
    counter, before = world.contracts["counter"], client.view(world.contracts["counter"], "get_num")
    actions = [function_call("increment"), function_call("fail", {"message": "no thanks"})]
    error = raised(ContractPanicError, lambda: client.send_transaction(counter, actions))
    check.equal("failing call: panic", error.panic, "Smart contract panicked: no thanks")
    failure = error.data["status"]["Failure"]["ActionError"]
    check.equal("failing call: index", failure["index"], 1)
    check.equal("failing call: rolled back", client.view(counter, "get_num"), before)
    client.call(counter, "increment")
    check.equal("call: state", client.view(counter, "get_num"), before + 1)


def signed(client: Near, receiver_id: str, nonce: int) -> str:
    """Sign a transfer of 1 yocto with a nonce of one's own."""
    head = client.rpc("block", {"finality": "final"})["header"]["hash"]
    transaction = Transaction(
        signer_id=client.signer.account_id,
        public_key=to_wire_public_key(client.signer.public_key),
        nonce=nonce,
        receiver_id=receiver_id,
        block_hash=base58.b58decode(head),
        actions=[transfer("1 yocto")],
    )
    return base64.b64encode(sign_transaction(transaction, client.signer)[1]).decode()


def refused(client: Near, world: Demo) -> None:
    """Send what the ledger refuses: the client's own exceptions carry the values."""
    amount = Amount.yocto(10**33)
    error = raised(InsufficientBalanceError, lambda: client.send(world.receiver_id, amount))
    # Read afterwards: the client reads final state before it sends, which advances the chain.
    wanted = client.balance(), amount + TRANSFER_DEBIT
    check.equal("refused: NotEnoughBalance", (error.available, error.required), wanted)
    client.send(world.receiver_id, "1 yocto", wait_until="FINAL")  # keys are read at the final head
    nonce = client.access_key(world.sender_id, str(client.signer.public_key)).nonce
    params = {"signed_tx_base64": signed(client, world.receiver_id, nonce)}
    error = raised(InvalidNonceError, lambda: client.rpc("send_tx", params))
    check.equal("refused: InvalidNonce", error.ak_nonce, nonce)


def main() -> None:
    """Run every check on one account."""
    world = demo()
    client = Near(
        "localnet", rpc_url=world.url, account_id=world.sender_id, private_key=world.secret_key
    )
    with client:
        for part in (
            reads,
            views,
            send,
            status,
            deposit,
            batch,
            transfer_call,
            refunded,
            failing_call,
            refused,
        ):
            part(client, world)
    check.done()


if __name__ == "__main__":
    main()
