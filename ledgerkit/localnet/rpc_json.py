"""
The wire's JSON of everything the chain keeps: who is who in a block, a receipt, an outcome.

Each function takes a record and gives what the node shows of it. Amounts are texts of
digits, gas, nonces and heights are numbers, bytes are base64, hashes and keys base58.
What stands inside a delegated action is shown in its raw form, which differs.
"""

from __future__ import annotations

from binascii import b2a_base64
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import fees
from ledgerkit.localnet.chain_types import (
    NO_CODE,
    Account,
    ActionReceipt,
    DataReceipt,
    Failure,
    SuccessValue,
)
from ledgerkit.protocol import (
    AccessKey,
    Action,
    AddKey,
    CreateAccount,
    CryptoHash,
    Delegate,
    DelegateV2,
    DeleteAccount,
    DeleteKey,
    DeployContract,
    DeployGlobalContract,
    FullAccess,
    FunctionCall,
    FunctionCallPermission,
    PublicKey,
    Signature,
    SignedTransaction,
    Stake,
    Transfer,
    UseGlobalContract,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ledgerkit.localnet.chain_types import Block, Change, Chunk, Outcome, Proposal, Receipt
    from ledgerkit.localnet.execution_errors import Json

Object = dict[str, Any]

_NS = 10**9
_KINDS = {
    "account": "account_touched",
    "access_key": "access_key_touched",
    "data": "data_touched",
    "code": "contract_code_touched",
}


@lru_cache(maxsize=65_536)
def text(value: CryptoHash | PublicKey) -> str:
    """Write a hash or a key; the same ones come again and again."""
    return str(value)


def base64(data: bytes) -> str:
    """Write bytes."""
    return b2a_base64(data, newline=False).decode()


def root(parts: Iterable[CryptoHash]) -> CryptoHash:
    """Give one hash for several; nothing is the root of nothing."""
    held = list(parts)
    return CryptoHash.of(b"".join(held)) if any(map(any, held)) else NO_CODE


def sealed(content: CryptoHash) -> str:
    """Give what stands where a validator's signature does: no key ever made it."""
    return str(Signature("ed25519", content + bytes(32)))


def rfc3339(time_ns: int) -> str:
    """Write a time in UTC, to the nanosecond."""
    from datetime import UTC, datetime

    seconds, rest = divmod(time_ns, _NS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


# Accounts and keys -----------------------------------------------------------------------


def account(record: Account) -> Object:
    """Show an account."""
    shown = {
        "amount": str(record.amount),
        "locked": str(record.locked),
        "code_hash": text(record.code_hash),
        "storage_usage": record.storage_usage,
        "storage_paid_at": 0,
    }
    if isinstance(record.global_contract, CryptoHash):
        shown["global_contract_hash"] = text(record.global_contract)
    elif record.global_contract is not None:
        shown["global_contract_account_id"] = record.global_contract
    return shown


def access_key(key: AccessKey) -> Object:
    """Show an access key."""
    return {"nonce": key.nonce, "permission": _permission(key)}


def _permission(key: AccessKey) -> Json:
    """Show what a key may sign."""
    permission = key.permission
    if isinstance(permission, FullAccess):
        return "FullAccess"
    if not isinstance(permission, FunctionCallPermission):
        raise TypeError(f"{type(permission).__name__} is a permission of later nodes")
    allowance = permission.allowance
    shown = {
        "allowance": None if allowance is None else str(allowance),
        "receiver_id": permission.receiver_id,
        "method_names": list(permission.method_names),
    }
    return {"FunctionCall": shown}


def public_key_text(data: bytes) -> str:
    """Write a public key that the state keeps in its binary form."""
    return text(PublicKey.decode(data))


# Actions ---------------------------------------------------------------------------------


def action(record: Action) -> Json:
    """Show an action."""
    return _VIEW[type(record)](record)


def raw_action(record: Action) -> Json:
    """Show an action inside a delegated one."""
    return _RAW[type(record)](record)


def _hash_of(code: bytes) -> str:
    """Write the hash of code, as bytes are written."""
    return base64(sha256(code).digest())


def _call(record: FunctionCall) -> Json:
    """Show a call."""
    shown = {
        "method_name": record.method_name,
        "args": base64(record.args),
        "gas": record.gas,
        "deposit": str(record.deposit),
    }
    return {"FunctionCall": shown}


def _add_key(record: AddKey) -> Json:
    """Show the adding of a key."""
    shown = {"public_key": text(record.public_key), "access_key": access_key(record.access_key)}
    return {"AddKey": shown}


def _deploy_global(record: DeployGlobalContract) -> Json:
    """Show the publishing of code: each way to name it has its own action."""
    by_account = record.deploy_mode == "AccountId"
    name = "DeployGlobalContractByAccountId" if by_account else "DeployGlobalContract"
    return {name: {"code": _hash_of(record.code)}}


def _use_global(record: UseGlobalContract) -> Json:
    """Show the use of published code."""
    contract = record.contract_identifier
    if isinstance(contract, CryptoHash):
        return {"UseGlobalContract": {"code_hash": text(contract)}}
    return {"UseGlobalContractByAccountId": {"account_id": contract}}


def _raw_use_global(record: UseGlobalContract) -> Json:
    """Show the use of published code, inside a delegated action."""
    contract = record.contract_identifier
    is_hash = isinstance(contract, CryptoHash)
    named = {"hash": text(contract)} if is_hash else {"account_id": contract}
    return {"UseGlobalContract": {"contract_identifier": named}}


def _delegated(record: Delegate | DelegateV2) -> Object:
    """Show what both versions of a delegated action have."""
    wanted = record.delegate_action
    return {
        "sender_id": wanted.sender_id,
        "receiver_id": wanted.receiver_id,
        "actions": [raw_action(each) for each in wanted.actions],
        "nonce": wanted.nonce,
        "max_block_height": wanted.max_block_height,
        "public_key": text(wanted.public_key),
    }


def _delegate(record: Delegate) -> Json:
    """Show a delegated action."""
    shown = {"delegate_action": _delegated(record), "signature": str(record.signature)}
    return {"Delegate": shown}


def _delegate_v2(record: DelegateV2) -> Json:
    """Show a delegated action of the second version, whose nonce may be a gas key's."""
    wanted = record.delegate_action
    nonce: Object = {"Nonce": {"nonce": wanted.nonce}}
    if wanted.nonce_index is not None:
        nonce = {"GasKeyNonce": {"nonce": wanted.nonce, "nonce_index": wanted.nonce_index}}
    shown = {"V2": _delegated(record) | {"nonce": nonce}}
    return {"DelegateV2": {"delegate_action": shown, "signature": str(record.signature)}}


_VIEW: dict[type[Action], Callable[[Any], Json]] = {
    CreateAccount: lambda _: "CreateAccount",
    DeployContract: lambda a: {"DeployContract": {"code": _hash_of(a.code)}},
    FunctionCall: _call,
    Transfer: lambda a: {"Transfer": {"deposit": str(a.deposit)}},
    Stake: lambda a: {"Stake": {"stake": str(a.stake), "public_key": text(a.public_key)}},
    AddKey: _add_key,
    DeleteKey: lambda a: {"DeleteKey": {"public_key": text(a.public_key)}},
    DeleteAccount: lambda a: {"DeleteAccount": {"beneficiary_id": a.beneficiary_id}},
    Delegate: _delegate,
    DeployGlobalContract: _deploy_global,
    UseGlobalContract: _use_global,
    DelegateV2: _delegate_v2,
}
_RAW: dict[type[Action], Callable[[Any], Json]] = {
    **_VIEW,
    CreateAccount: lambda _: {"CreateAccount": {}},
    DeployContract: lambda a: {"DeployContract": {"code": base64(a.code)}},
    DeployGlobalContract: lambda a: {
        "DeployGlobalContract": {"code": base64(a.code), "deploy_mode": a.deploy_mode}
    },
    UseGlobalContract: _raw_use_global,
}


# Transactions, receipts, outcomes --------------------------------------------------------


def transaction(signed: SignedTransaction) -> Object:
    """Show a transaction."""
    tx = signed.transaction
    shown = {
        "signer_id": tx.signer_id,
        "public_key": text(tx.public_key),
        "nonce": tx.nonce,
        "receiver_id": tx.receiver_id,
        "actions": [action(each) for each in tx.actions],
        "priority_fee": 0,
        "signature": str(signed.signature),
        "hash": text(signed.hash),
    }
    if tx.version:
        shown["nonce_mode"] = tx.nonce_mode
    if tx.nonce_index is not None:
        shown["nonce_index"] = tx.nonce_index
    return shown


def receipt(record: Receipt) -> Object:
    """Show a receipt."""
    return {
        "predecessor_id": record.predecessor_id,
        "priority": 0,
        "receiver_id": record.receiver_id,
        "receipt_id": text(record.receipt_id),
        "receipt": _contents(record),
    }


def _contents(record: Receipt) -> Json:
    """Show what a receipt brings."""
    if isinstance(record, ActionReceipt):
        return {"Action": _action_receipt(record)}
    if not isinstance(record, DataReceipt):
        raise TypeError(f"{type(record).__name__} is no receipt")
    shown = {
        "data_id": text(record.data_id),
        "data": None if record.data is None else base64(record.data),
        "is_promise_resume": record.is_promise_resume,
    }
    return {"Data": shown}


def _action_receipt(record: ActionReceipt) -> Object:
    """Show actions, and the data they wait for and give to others."""
    return {
        "actions": [action(each) for each in record.actions],
        "gas_price": str(record.gas_price),
        "input_data_ids": [text(each) for each in record.input_data_ids],
        "is_promise_yield": record.is_promise_yield,
        "output_data_receivers": [
            {"data_id": text(data_id), "receiver_id": receiver_id}
            for data_id, receiver_id in record.output_data_receivers
        ],
        "refund_to": record.refund_to,
        "signer_id": record.signer_id,
        "signer_public_key": text(record.signer_public_key),
    }


def outcome(record: Outcome, block_hash: CryptoHash) -> Object:
    """Show how a transaction or a receipt ended, and in which block."""
    shown = {
        "executor_id": record.executor_id,
        "logs": list(record.logs),
        "receipt_ids": [text(each) for each in record.receipt_ids],
        "gas_burnt": record.gas_burnt,
        "tokens_burnt": str(record.tokens_burnt),
        "status": outcome_status(record),
        "metadata": _metadata(record),
    }
    return {
        "id": text(record.id),
        "block_hash": text(block_hash),
        "proof": [],
        "outcome": shown,
    }


def outcome_status(record: Outcome) -> Json:
    """Show how it ended."""
    ended = record.status
    if isinstance(ended, Failure):
        return {"Failure": ended.error}
    if isinstance(ended, SuccessValue):
        return {"SuccessValue": base64(ended.value)}
    return {"SuccessReceiptId": text(ended.receipt_id)}


def _metadata(record: Outcome) -> Object:
    """Show what the gas went to, and which contracts there were before each action."""
    if record.gas_profile is None:
        return {"version": 1, "gas_profile": None}
    lines = [
        {"cost_category": line.category, "cost": line.cost, "gas_used": str(line.gas_used)}
        for line in record.gas_profile
    ]
    if record.contracts is None:
        return {"version": 3, "gas_profile": lines}
    contracts = [None if each is None else {each[0]: str(each[1])} for each in record.contracts]
    return {"version": 4, "gas_profile": lines, "contracts": contracts}


# Blocks and chunks -----------------------------------------------------------------------


def block(record: Block, version: int) -> Object:
    """Show a block, of a chain at a protocol version."""
    return {
        "author": record.author,
        "header": block_header(record, version),
        "chunks": [chunk_header(each) for each in record.chunks],
    }


def block_header(record: Block, version: int) -> Object:
    """Show a block's header."""
    return _names(record) | _roots(record) | _counts(record, version)


def _names(record: Block) -> Object:
    """Show where in the chain a block is."""
    return {
        "height": record.height,
        "prev_height": record.prev_height,
        "epoch_id": text(record.epoch_id),
        "next_epoch_id": text(record.next_epoch_id),
        "hash": text(record.hash),
        "prev_hash": text(record.prev_hash),
        "timestamp": record.timestamp_ns,
        "timestamp_nanosec": str(record.timestamp_ns),
        "block_ordinal": record.ordinal,
        "last_final_block": text(record.last_final_block),
        "last_ds_final_block": text(record.last_ds_final_block),
    }


def _roots(record: Block) -> Object:
    """Show the hashes that stand for a block's contents."""
    chunks = record.chunks
    headers = root(chunk.chunk_hash for chunk in chunks)
    return {
        "prev_state_root": text(state_root(record)),
        "block_body_hash": text(headers),
        "chunk_receipts_root": text(root(chunk.outgoing_receipts_root for chunk in chunks)),
        "chunk_headers_root": text(headers),
        "chunk_tx_root": text(root(chunk.tx_root for chunk in chunks)),
        "outcome_root": text(root(chunk.outcome_root for chunk in chunks)),
        "challenges_root": text(NO_CODE),
        "random_value": text(record.random_value),
        "next_bp_hash": text(CryptoHash.of(record.author.encode())),
        "block_merkle_root": text(CryptoHash.of(record.prev_hash)),
        "epoch_sync_data_hash": None,
    }


def state_root(record: Block) -> CryptoHash:
    """Give the hash that stands for the state before a block."""
    return root(chunk.prev_state_root for chunk in record.chunks)


def _counts(record: Block, version: int) -> Object:
    """Show the rest of a block's header."""
    mask = record.chunk_mask
    new = [chunk for chunk, is_new in zip(record.chunks, mask, strict=True) if is_new]
    return {
        "chunks_included": len(new),
        "chunk_mask": list(mask),
        "chunk_endorsements": [[255] if is_new else [] for is_new in mask],
        "shard_split": None,
        "gas_price": str(record.gas_price),
        "total_supply": str(record.total_supply),
        "rent_paid": "0",
        "validator_reward": "0",
        "validator_proposals": [proposal(p) for chunk in new for p in chunk.validator_proposals],
        "challenges_result": [],
        "approvals": [None],
        "signature": sealed(record.hash),
        "latest_protocol_version": version,
    }


def chunk(record: Chunk, author: str) -> Object:
    """Show a chunk, with what is in it."""
    return {
        "author": author,
        "header": chunk_header(record),
        "transactions": [transaction(signed) for signed in record.transactions],
        "receipts": [receipt(each) for each in record.receipts],
    }


def chunk_header(record: Chunk) -> Object:
    """Show a chunk's header."""
    return {
        "chunk_hash": text(record.chunk_hash),
        "prev_block_hash": text(record.prev_block_hash),
        "outcome_root": text(record.outcome_root),
        "prev_state_root": text(record.prev_state_root),
        "encoded_merkle_root": text(CryptoHash.of(record.chunk_hash)),
        "encoded_length": record.encoded_length,
        "height_created": record.height_created,
        "height_included": record.height_included,
        "shard_id": record.shard_id,
        "gas_used": record.gas_used,
        "gas_limit": fees.CHUNK_GAS,
        "rent_paid": "0",
        "validator_reward": "0",
        "balance_burnt": str(record.balance_burnt),
        "outgoing_receipts_root": text(record.outgoing_receipts_root),
        "tx_root": text(record.tx_root),
        "validator_proposals": [proposal(each) for each in record.validator_proposals],
        "congestion_info": _congestion(record.shard_id),
        "bandwidth_requests": {"V1": {"requests": []}},
        "proposed_split": None,
        "signature": sealed(record.chunk_hash),
    }


def _congestion(shard_id: int) -> Object:
    """Show that a shard is free."""
    return {
        "delayed_receipts_gas": "0",
        "buffered_receipts_gas": "0",
        "receipt_bytes": 0,
        "allowed_shard": shard_id,
    }


def proposal(record: Proposal) -> Object:
    """Show what a validator wants to have at stake."""
    return {
        "account_id": record.account_id,
        "public_key": text(record.public_key),
        "stake": str(record.stake),
        "validator_stake_struct_version": "V1",
    }


# Changes of state ------------------------------------------------------------------------


def change(record: Change) -> Object:
    """Show a change of state, and why it came."""
    name, shown = _changed(record)
    ending = "deletion" if record.value is None else "update"
    return {
        "cause": _cause(record),
        "type": f"{name}_{ending}",
        "change": {"account_id": record.account_id} | shown,
    }


def _changed(record: Change) -> tuple[str, Object]:
    """Show what a change leaves, and give its kind's name."""
    value = record.value
    if record.kind == "account":
        return "account", account(value) if isinstance(value, Account) else {}
    held: Object
    if record.kind == "access_key":
        held = {"access_key": access_key(value)} if isinstance(value, AccessKey) else {}
        return "access_key", {"public_key": public_key_text(record.key)} | held
    written = base64(value) if isinstance(value, bytes) else None
    if record.kind == "data":
        held = {} if written is None else {"value_base64": written}
        return "data", {"key_base64": base64(record.key)} | held
    return "contract_code", {} if written is None else {"code_base64": written}


def _cause(record: Change) -> Object:
    """Show why state changed."""
    kind, what = record.cause
    if what is None:
        return {"type": kind}
    name = "tx_hash" if kind == "transaction_processing" else "receipt_hash"
    return {"type": kind, name: text(what)}


def touched_accounts(records: Iterable[Change]) -> list[Object]:
    """Show whose state changed, each account once for each kind of it."""
    seen = dict.fromkeys((each.kind, each.account_id) for each in records)
    return [
        {"type": _KINDS[kind], "account_id": account_id}
        for kind, account_id in seen
        if kind in _KINDS
    ]
