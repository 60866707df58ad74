"""
Drive near-api (Python) against the embedded ledger.

`ledgerkit world demo --json` with `actors` added on standard input, the ledger's address as the
argument: `tests/clients/run.py` does both.
"""

from __future__ import annotations

import base64
from importlib import import_module
from typing import Any

import base58

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

near_api = import_module("near_api")  # of an environment that the type checker does not see

check = Checks("near-api")


def balance(account: Any, account_id: str | None = None) -> int:
    """Read an account's yoctoNEAR at the head."""
    return int(account.provider.get_account(account_id or account.account_id)["amount"])


def burnt(result: dict[str, Any]) -> int:
    """Add up the fees of a transaction and of all its receipts."""
    outcomes = [result["transaction_outcome"], *result["receipts_outcome"]]
    return sum(int(row["outcome"]["tokens_burnt"]) for row in outcomes)


def final(account: Any, result: dict[str, Any]) -> dict[str, Any]:
    """Wait until the last refund has run and is final."""
    place = {"tx_hash": result["transaction"]["hash"], "sender_account_id": account.account_id}
    return account.provider.json_rpc("tx", {**place, "wait_until": "FINAL"})


def reads(account: Any, world: Demo) -> None:
    """View the account, its key, the node, a block by hash, and a contract's answers."""
    check.equal("view account: storage", account.state["storage_usage"], PLAIN)
    check.equal("access key: permission", account.access_key["permission"], "FullAccess")
    keys = account.provider.get_access_key_list(world.sender_id)["keys"]
    check.equal("access keys: nonce", keys[0]["access_key"]["nonce"], account.access_key["nonce"])
    head = account.provider.get_status()["sync_info"]
    block = account.provider.get_block(head["latest_block_hash"])
    check.equal("block of GET /status", block["header"]["height"], head["latest_block_height"])
    ft = world.contracts["ft"]
    bounds = account.view_function(ft, "storage_balance_bounds", {})["result"]
    check.equal("view call", bounds, {"min": str(REGISTRATION), "max": str(REGISTRATION)})
    try:
        error = account.view_function(ft, "no_such_method", {})
    except near_api.account.ViewFunctionError as caught:
        error = str(caught)
    wanted = "wasm execution failed with error: MethodResolveError(MethodNotFound)"
    check.equal("view call of a missing method", error, wanted)


def transfer(account: Any, world: Demo) -> None:
    """Send 1 N and see both balances move by it and the fee, to the yocto."""
    before = balance(account), balance(account, world.receiver_id)
    result = account.send_money(world.receiver_id, NEAR)
    check.equal("transfer: status", result["status"], {"SuccessValue": ""})
    check.equal("transfer: fee", burnt(final(account, result)), TRANSFER_FEE)
    check.equal("transfer: sender", balance(account), before[0] - NEAR - TRANSFER_FEE)
    check.equal("transfer: receiver", balance(account, world.receiver_id), before[1] + NEAR)
    hash_ = result["transaction"]["hash"]
    found = account.provider.get_tx(hash_, world.receiver_id)
    check.equal("tx status: hash", found["transaction"]["hash"], hash_)


def deposit(account: Any, world: Demo) -> None:
    """Pay for somebody's storage: the deposit and the fees are what leaves the account."""
    before = balance(account)
    args = {"account_id": "registered.by.near-api"}
    result = account.function_call(
        world.contracts["ft"], "storage_deposit", args, amount=REGISTRATION
    )
    result = final(account, result)
    check.equal(
        "call with deposit: balance", before - balance(account), REGISTRATION + burnt(result)
    )


def transfer_call(account: Any, world: Demo) -> None:
    """Send tokens to a contract that keeps them, and to the paused exchange that refuses them."""
    ft = world.contracts["ft"]
    for name, used in (("receiver", b'"20"'), ("dex", b'"0"')):
        args = {"receiver_id": world.contracts[name], "amount": "20", "msg": "take"}
        result = account.function_call(ft, "ft_transfer_call", args, amount=1)
        value = base64.b64decode(result["status"]["SuccessValue"])
        check.equal(f"ft_transfer_call to {world.contracts[name]}: used", value, used)


def failures(account: Any, world: Demo) -> None:
    """Call what panics, and send what is refused."""
    try:
        failure = account.function_call(
            world.contracts["counter"], "fail", {"message": "no thanks"}
        )
    except near_api.account.TransactionError as error:
        failure = error.args[0]
    kind = {"FunctionCallError": {"ExecutionError": "Smart contract panicked: no thanks"}}
    check.equal("failing call", failure, {"ActionError": {"index": 0, "kind": kind}})
    amount = 10**33
    try:
        refusal = account.send_money(world.receiver_id, amount)
    except near_api.providers.JsonProviderError as error:
        refusal = error.args[0]["data"]["TxExecutionError"]["InvalidTxError"]["NotEnoughBalance"]
    cost = amount + TRANSFER_DEBIT
    # Read afterwards: the client reads final state before it sends, which advances the chain.
    available = str(balance(account))
    wanted = {"signer_id": world.sender_id, "balance": available, "cost": str(cost)}
    check.equal("refused: NotEnoughBalance", refusal, wanted)


def later(account: Any, world: Demo) -> None:
    """Send without waiting, and find the transaction afterwards."""
    block_hash = base58.b58decode(account.provider.get_status()["sync_info"]["latest_block_hash"])
    nonce = account.access_key["nonce"] + 1
    actions = [near_api.transactions.create_transfer_action(6)]
    raw = near_api.transactions.sign_and_serialize_transaction(
        world.receiver_id, nonce, actions, block_hash, account.signer
    )
    hash_ = account.provider.send_tx(raw)
    found = account.provider.get_tx(hash_, world.receiver_id)
    sent = found["transaction"]["actions"]
    check.equal("broadcast_tx_async, then tx", sent, [{"Transfer": {"deposit": "6"}}])


def main() -> None:
    """Run every check on one account."""
    world = demo()
    signer = near_api.signer.Signer(world.sender_id, near_api.signer.KeyPair(world.secret_key))
    account = near_api.account.Account(near_api.providers.JsonProvider(world.url), signer)
    for part in (reads, transfer, deposit, transfer_call, failures, later):
        part(account, world)
    check.done()


if __name__ == "__main__":
    main()
