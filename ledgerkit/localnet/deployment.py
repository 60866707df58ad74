"""Deployment of a contract to a new account by one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.chain_types import Failure, Outcome
from ledgerkit.localnet.contract_sdk import Contract
from ledgerkit.protocol import (
    AccountId,
    AddKey,
    CreateAccount,
    CryptoHash,
    DeployContract,
    SecretKey,
    SignedTransaction,
    Transaction,
    Transfer,
)
from ledgerkit.units import yocto

if TYPE_CHECKING:
    from ledgerkit.localnet.state import State

_MAX_EXAMPLES = 3


def deployment(
    account_id: str,
    contract: type[Contract] | bytes | PathLike[str],
    balance: str,
    *,
    secret_keys: Mapping[str, str],
    state: State,
    block_hash: CryptoHash,
) -> SignedTransaction:
    """Sign, for the parent account, the creation of an account with a balance, a key and code."""
    code = _read_code(contract)
    new_id = AccountId(account_id)
    parent_id = new_id.parent
    secret_text = secret_keys.get(parent_id or "")
    if parent_id is None or secret_text is None:
        examples = ", ".join(list(secret_keys)[:_MAX_EXAMPLES])
        expected = f"a sub-account of an account with a published key, such as {examples}"
        raise InvalidRequestError.refuse("account_id", account_id, expected)
    secret = SecretKey.from_text(secret_text)
    access_key = state.access_key(parent_id, secret.public_key.stored)
    actions = (
        CreateAccount(),
        Transfer(yocto(balance)),
        AddKey(secret.public_key),
        DeployContract(code),
    )
    nonce = access_key.nonce + 1 if access_key else 1
    return Transaction(parent_id, secret.public_key, nonce, new_id, block_hash, actions).sign(
        secret
    )


def _read_code(contract: type[Contract] | bytes | PathLike[str]) -> bytes:
    if isinstance(contract, type) and issubclass(contract, Contract):
        return contract.code
    if isinstance(contract, bytes):
        return contract
    expected = "a Contract class, the bytes of a compiled contract, or a path to its file"
    if not isinstance(contract, PathLike):
        raise InvalidRequestError.refuse("contract", contract, expected)
    try:
        return Path(contract).read_bytes()
    except OSError as error:
        raise InvalidRequestError.refuse("contract", contract, f"{expected} ({error})") from None


def check_deployed(signed: SignedTransaction, outcome: Outcome | None) -> None:
    """Raise an error if a deployment failed, by the outcome of its receipt."""
    status = None if outcome is None else outcome.status
    if status is None or isinstance(status, Failure):
        reason = "the transaction was not included" if status is None else status.error
        account_id = str(signed.transaction.receiver_id)
        expected = f"an account that can be created: {reason}"
        raise InvalidRequestError.refuse("account_id", account_id, expected)
