"""The transaction that puts a contract on a new account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.chain_types import Failure
from ledgerkit.protocol import (
    AccountId,
    AddKey,
    CreateAccount,
    DeployContract,
    SecretKey,
    SignedTransaction,
    Transaction,
    Transfer,
)
from ledgerkit.units import yocto

if TYPE_CHECKING:
    from ledgerkit.localnet.contract_sdk import Contract
    from ledgerkit.localnet.world import World

_NAMED = 3


def deployment(
    world: World, account_id: str, contract: type[Contract], balance: str
) -> SignedTransaction:
    """Sign for the account above a new one: create it, fund it, add the same key, deploy."""
    name = AccountId(account_id)
    parent_id = name.parent
    secret_text = world.keys().get(parent_id or "")
    if parent_id is None or secret_text is None:
        some = ", ".join(list(world.keys())[:_NAMED])
        rule = f"an id below an account whose key is published, such as {some}"
        raise InvalidRequestError.refuse("account_id", account_id, rule)
    secret = SecretKey.from_text(secret_text)
    held = world.state().access_key(parent_id, secret.public_key.packed)
    actions = (
        CreateAccount(),
        Transfer(yocto(balance)),
        AddKey(secret.public_key),
        DeployContract(contract.code),
    )
    nonce = held.nonce + 1 if held else 1
    block_hash = world.chain.final.hash
    tx = Transaction(parent_id, secret.public_key, nonce, name, block_hash, actions)
    return tx.sign(secret)


def check_deployed(world: World, signed: SignedTransaction) -> None:
    """Tell what the chain had against it."""
    record = world.transaction(signed.hash)
    outcome = None if record is None else world.outcome(record.receipt.receipt_id)
    status = None if outcome is None else outcome.status
    if status is None or isinstance(status, Failure):
        told = "it was never included" if status is None else status.error
        rule = f"an account that can be created: {told}"
        raise InvalidRequestError.refuse("account_id", str(signed.transaction.receiver_id), rule)
