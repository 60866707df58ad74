"""
Build, hash, sign, verify and decode transactions, without a network.

A transaction in five lines::

    key = SecretKey.from_text(text)
    tx = Transaction("alice.near", key.public_key, nonce, "bob.near", block_hash, [Transfer(1)])
    signed = tx.sign(key)
    signed.hash, signed.to_base64()
    SignedTransaction.from_base64(text).verify()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import errors
from ledgerkit.protocol.access_keys import (
    AccessKey,
    FullAccess,
    FunctionCallPermission,
    GasKeyFullAccess,
    GasKeyFunctionCall,
)
from ledgerkit.protocol.actions import (
    Action,
    AddKey,
    CreateAccount,
    Delegate,
    DelegateAction,
    DelegateActionV2,
    DelegateV2,
    DeleteAccount,
    DeleteKey,
    DeployContract,
    DeployGlobalContract,
    DeterministicStateInit,
    FunctionCall,
    Stake,
    StateInit,
    Transfer,
    TransferToGasKey,
    UniversalStateInit,
    UniversalStateInitV1,
    UseGlobalContract,
    WithdrawFromGasKey,
)
from ledgerkit.protocol.derived_ids import (
    action_hash,
    data_id,
    deterministic_account_id,
    eth_implicit_account_id,
    implicit_account_id,
    random_seed_of,
    receipt_id_of,
    universal_account_id,
)
from ledgerkit.protocol.keys import Credentials, SecretKey
from ledgerkit.protocol.signed_messages import OffchainMessage
from ledgerkit.protocol.transactions import SignedTransaction, Transaction
from ledgerkit.protocol.types import (
    AccountId,
    Balance,
    BlockHeight,
    CryptoHash,
    Gas,
    Nonce,
    PublicKey,
    ShardId,
    Signature,
)

__all__ = [
    "AccessKey",
    "AccountId",
    "Action",
    "AddKey",
    "Balance",
    "BlockHeight",
    "CreateAccount",
    "Credentials",
    "CryptoHash",
    "Delegate",
    "DelegateAction",
    "DelegateActionV2",
    "DelegateV2",
    "DeleteAccount",
    "DeleteKey",
    "DeployContract",
    "DeployGlobalContract",
    "DeterministicStateInit",
    "FullAccess",
    "FunctionCall",
    "FunctionCallPermission",
    "Gas",
    "GasKeyFullAccess",
    "GasKeyFunctionCall",
    "Nonce",
    "OffchainMessage",
    "PublicKey",
    "SecretKey",
    "ShardId",
    "Signature",
    "SignedTransaction",
    "Stake",
    "StateInit",
    "Transaction",
    "Transfer",
    "TransferToGasKey",
    "UniversalStateInit",
    "UniversalStateInitV1",
    "UseGlobalContract",
    "WithdrawFromGasKey",
    "action_hash",
    "data_id",
    "deterministic_account_id",
    "eth_implicit_account_id",
    "implicit_account_id",
    "random_seed_of",
    "receipt_id_of",
    "universal_account_id",
]

if not TYPE_CHECKING:  # type checkers report unknown names
    __getattr__ = errors.suggest_attributes(__name__)
