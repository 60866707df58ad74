"""
Drive py-near against the embedded ledger.

`ledgerkit world demo --json` with `actors` added on standard input, the ledger's address as the
argument: `tests/clients/run.py` does both.
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import base58
from py_near import transactions
from py_near.account import Account, ViewFunctionError
from py_near.dapps.fts import FtModel
from py_near.exceptions import provider as refusals
from py_near.models import TransactionResult

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

check = Checks("py-near")


def returned(result: TransactionResult) -> Any:
    text = base64.b64decode(result.status["SuccessValue"])
    return json.loads(text) if text else None


def burnt(result: TransactionResult) -> int:
    """Add up the fees of a transaction and of all its receipts."""
    outcomes = [result.transaction_outcome, *result.receipt_outcome]
    return sum(int(outcome.tokens_burnt) for outcome in outcomes)


async def final(account: Account, result: TransactionResult) -> TransactionResult:
    """Wait until the last refund has run and is final."""
    params = {
        "tx_hash": result.transaction.hash,
        "sender_account_id": account.account_id,
        "wait_until": "FINAL",
    }
    return TransactionResult(**await account.provider.json_rpc("tx", params))


async def reads(account: Account, world: Demo) -> None:
    """View the account, its key and a contract's answers."""
    state = await account.fetch_state()
    check.equal("view account: no code", state["code_hash"], "1" * 32)
    check.equal("view account: storage", state["storage_usage"], PLAIN)
    check.equal("view account: balance", await account.get_balance(), int(state["amount"]))
    key = await account.get_access_key(account.signer)
    check.equal("access key: permission", key.permission, "FullAccess")
    keys = await account.get_access_key_list()
    check.equal("access keys: nonce", keys[0].access_key["nonce"], key.nonce)
    ft = world.contracts["ft"]
    bounds = await account.view_function(ft, "storage_balance_bounds", {})
    check.equal("view call", bounds.result, {"min": str(REGISTRATION), "max": str(REGISTRATION)})
    try:
        await account.view_function(ft, "no_such_method", {})
        error = "none"
    except ViewFunctionError as caught:
        error = str(caught)
    wanted = "wasm execution failed with error: MethodResolveError(MethodNotFound)"
    check.equal("view call of a missing method", error, wanted)


async def transfer(account: Account, world: Demo) -> None:
    """Send 1 N and see both balances move by it and the fee, to the yocto."""
    receiver_id = world.receiver_id
    before = await account.get_balance(), await account.get_balance(receiver_id)
    nonce = (await account.get_access_key(account.signer)).nonce
    result = await account.send_money(receiver_id, NEAR)
    check.equal("transfer: status", result.status, {"SuccessValue": ""})
    await final(account, result)
    check.equal("transfer: sender", await account.get_balance(), before[0] - NEAR - TRANSFER_FEE)
    check.equal("transfer: receiver", await account.get_balance(receiver_id), before[1] + NEAR)
    after = (await account.get_access_key(account.signer)).nonce
    check.equal("transfer: nonce", after, nonce + 1)


async def status(account: Account, world: Demo) -> None:
    """Ask for a transaction by its hash, naming the receiver as this client does."""
    hash_ = await account.send_money(world.receiver_id, 5, included=True)
    result = await account.provider.get_tx(hash_, world.receiver_id)
    check.equal("tx status: hash", result.transaction.hash, hash_)
    check.equal("tx status: action", result.transaction.actions[0].deposit, "5")
    check.equal(
        "tx status: receipts",
        result.transaction_outcome.receipt_ids[0],
        result.receipt_outcome[0].receipt_id,
    )
    full = await account.provider.get_tx_status(hash_, world.receiver_id)
    check.equal("tx status with receipts", full.receipts[0]["predecessor_id"], account.account_id)
    sent = await account.provider.send_tx(await signed(account, world.receiver_id, 6, ahead=1))
    result = await account.provider.get_tx(sent, world.receiver_id)
    check.equal("broadcast_tx_async, then tx", result.transaction.actions[0].deposit, "6")
    await final(account, result)


async def deposit(account: Account, world: Demo) -> None:
    """Pay for somebody's storage: the deposit and the fees are what leaves the account."""
    ft, new_id = world.contracts["ft"], "registered.by.py-near"
    before = await account.get_balance()
    result = await account.ft.storage_deposit(ft, new_id, amount=REGISTRATION)
    result = await final(account, result)
    check.equal(
        "call with deposit: result",
        returned(result),
        {"total": str(REGISTRATION), "available": "0"},
    )
    spent = before - await account.get_balance()
    check.equal("call with deposit: balance", spent, REGISTRATION + burnt(result))
    check.equal(
        "call with deposit: state", await account.ft.storage_balance_of(ft, new_id), REGISTRATION
    )


async def transfer_call(account: Account, world: Demo) -> None:
    """Send tokens to a contract that keeps them, and to the paused exchange that refuses them."""
    ft = world.contracts["ft"]
    for name, used, failed in (("receiver", 20, 0), ("dex", 0, 1)):
        contract_id = world.contracts[name]
        people = account.account_id, contract_id
        before = [await account.ft.get_ft_raw_balance(ft, who) for who in people]
        result = await account.ft.transfer_call(FtModel(ft, 0), contract_id, 20, memo="take")
        check.equal(f"ft_transfer_call to {contract_id}: used", returned(result), str(used))
        failures = [outcome.error for outcome in result.receipt_outcome if outcome.error]
        check.equal(f"ft_transfer_call to {contract_id}: failures", len(failures), failed)
        after = [await account.ft.get_ft_raw_balance(ft, who) for who in people]
        wanted = [before[0] - used, before[1] + used]
        check.equal(f"ft_transfer_call to {contract_id}: balances", after, wanted)
        await final(account, result)


async def failing_call(account: Account, world: Demo) -> None:
    """Call a method that panics: the status and the receipt say so, and only fees are gone."""
    before = await account.get_balance()
    args = {"message": "no thanks"}
    result = await account.function_call(world.contracts["counter"], "fail", args)
    text = "Smart contract panicked: no thanks"
    kind = {"FunctionCallError": {"ExecutionError": text}}
    wanted = {"Failure": {"ActionError": {"index": 0, "kind": kind}}}
    check.equal("failing call: status", result.status, wanted)
    error = result.receipt_outcome[0].error.error
    check.equal("failing call: receipt", error, {"ExecutionError": text})
    result = await final(account, result)
    spent = before - await account.get_balance()
    check.equal("failing call: balance", spent, burnt(result))


async def signed(account: Account, receiver_id: str, amount: int, *, ahead: int) -> str:
    """Sign a transfer with a nonce so far ahead of the key's."""
    nonce = (await account.get_access_key(account.signer)).nonce + ahead
    head = (await account.provider.get_status())["sync_info"]["latest_block_hash"]
    actions = [transactions.create_transfer_action(amount)]
    return transactions.sign_and_serialize_transaction(
        account.account_id, account.signer, receiver_id, nonce, actions, base58.b58decode(head)
    )


async def refused(account: Account, world: Demo) -> None:
    """Send what the ledger refuses: the client's own exceptions carry the values."""
    amount, balance = 10**33, await account.get_balance()
    try:
        await account.send_money(world.receiver_id, amount)
        got = None
    except refusals.NotEnoughBalance as error:
        got = error.signer_id, int(error.balance), int(error.cost)
    wanted = account.account_id, balance, amount + TRANSFER_DEBIT
    check.equal("refused: NotEnoughBalance", got, wanted)
    nonce = (await account.get_access_key(account.signer)).nonce
    text = await signed(account, world.receiver_id, 1, ahead=0)
    try:
        await account.provider.send_tx_and_wait(text)
        nonces = None
    except refusals.InvalidNonce as error:
        nonces = error.tx_nonce, error.ak_nonce
    check.equal("refused: InvalidNonce", nonces, (nonce, nonce))


async def main() -> None:
    """Run every check on one account."""
    world = demo()
    account = Account(world.sender_id, world.secret_key, world.url)
    await account.startup()
    for part in (reads, transfer, status, deposit, transfer_call, failing_call, refused):
        await part(account, world)
    await account.shutdown()
    check.done()


if __name__ == "__main__":
    asyncio.run(main())
