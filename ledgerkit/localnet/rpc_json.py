"""
The node's JSON of accounts, actions, transactions, receipts, outcomes, blocks and changes.

The forms are those of nearcore's views (core/primitives/src/views.rs): amounts are strings of
digits; gas, nonces and heights are numbers; bytes are base64; hashes and keys are base58. The
actions inside a delegated action keep their raw form, which differs.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import commitments, fees
from ledgerkit.localnet.chain_types import (
    NO_CODE,
    Account,
    ActionReceipt,
    DataReceipt,
    DistributionReceipt,
    Failure,
    SuccessValue,
)
from ledgerkit.localnet.settings import SECOND_NS
from ledgerkit.localnet.state import split_nonce_key
from ledgerkit.protocol import (
    AccessKey,
    Action,
    CryptoHash,
    FullAccess,
    FunctionCallPermission,
    GasKeyFullAccess,
    GasKeyFunctionCall,
    PublicKey,
    Signature,
    SignedTransaction,
)
from ledgerkit.protocol import actions as kinds
from ledgerkit.protocol.borsh import layout_of

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Block, Change, Chunk, Outcome, Proposal, Receipt
    from ledgerkit.localnet.execution_errors import Json
    from ledgerkit.protocol.borsh import Record

Object = dict[str, Any]

_TOUCHED_TYPES = {
    "account": "account_touched",
    "access_key": "access_key_touched",
    "gas_key_nonce": "access_key_touched",
    "data": "data_touched",
    "code": "contract_code_touched",
}


@lru_cache(maxsize=65_536)  # base58 is slow, and the same hashes and keys recur
def base58(value: CryptoHash | PublicKey) -> str:
    return str(value)


def base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def placeholder_signature(content: CryptoHash) -> Signature:
    """Return a placeholder for a validator's signature, which is not valid for any key."""
    return Signature("ed25519", content + bytes(32))


def rfc3339(time_ns: int) -> str:
    """Format a time in UTC, to the nanosecond."""
    seconds, nanoseconds = divmod(time_ns, SECOND_NS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09}Z"


# Accounts and keys -----------------------------------------------------------------------


def account(record: Account) -> Object:
    data = {
        "amount": str(record.amount),
        "locked": str(record.locked),
        "code_hash": base58(record.code_hash),
        "storage_usage": record.storage_usage,
        "storage_paid_at": 0,
    }
    if isinstance(record.global_contract, CryptoHash):
        data["global_contract_hash"] = base58(record.global_contract)
    elif record.global_contract is not None:
        data["global_contract_account_id"] = record.global_contract
    if record.bootstrap_nonce is not None:
        data |= {"state": "uninitialized", "bootstrap_nonce": record.bootstrap_nonce}
    return data


def access_key(key: AccessKey) -> Object:
    permission = key.permission
    data = _value("permission", permission)
    if isinstance(permission, GasKeyFunctionCall):
        data = {"GasKeyFunctionCall": _members(permission)}
    return {"nonce": key.nonce, "permission": data}


def public_key_text(data: bytes) -> str:
    return str(PublicKey.from_stored(data))


# Actions ---------------------------------------------------------------------------------


def action(record: Action) -> Json:
    name = record.name
    members: Object | None = None
    match record:
        case kinds.CreateAccount():
            return name
        case kinds.DeployContract(code=code):
            members = {"code": _code_hash(code)}
        case kinds.DeployGlobalContract(code=code, deploy_mode=mode):
            name += "ByAccountId" if mode == "AccountId" else ""
            members = {"code": _code_hash(code)}
        case kinds.UseGlobalContract(contract_identifier=CryptoHash() as code_hash):
            members = {"code_hash": base58(code_hash)}
        case kinds.UseGlobalContract(contract_identifier=owner_id):
            name, members = "UseGlobalContractByAccountId", {"account_id": owner_id}
        case kinds.AddKey(public_key=public_key, access_key=key):
            members = {"public_key": base58(public_key), "access_key": access_key(key)}
        case kinds.DeterministicStateInit(state_init=state_init, deposit=deposit):
            members = _members(state_init) | {"deposit": str(deposit)}
    return {name: _members(record) if members is None else members}


def _code_hash(code: bytes) -> str:
    return base64(sha256(code).digest())  # other hashes are base58


def global_contract(identifier: CryptoHash | str) -> Object:
    is_hash = isinstance(identifier, CryptoHash)
    return {"hash": base58(identifier)} if is_hash else {"account_id": identifier}


def _members(record: Record) -> Object:
    """Build the members of a record from its declared fields, in the raw form."""
    return {name: _value(name, getattr(record, name)) for name, _ in layout_of(type(record))}


def _value(name: str, value: Any) -> Any:
    """Build the JSON of a field: the form depends on its type, and for numbers on its name."""
    if name in _AMOUNTS:
        return None if value is None else str(value)
    if name in _CONTRACTS and isinstance(value, CryptoHash | str):
        return global_contract(value)
    form = _FORMS.get(type(value))
    return value if form is None else form(value)


def _delegate_v2(record: kinds.DelegateActionV2) -> Object:
    """Build the JSON of a delegated action V2, whose nonce may be a gas key's."""
    data = _members(record)
    nonce, index = data["nonce"], data.pop("nonce_index")
    data["nonce"] = {"Nonce": {"nonce": nonce}}
    if index is not None:
        data["nonce"] = {"GasKeyNonce": {"nonce": nonce, "nonce_index": index}}
    return {"V2": data}


def _gas_key_call(record: GasKeyFunctionCall) -> Object:
    """Build the JSON of a gas key for calls; the node's variant has two values."""
    data = _members(record)
    gas_key = {name: data.pop(name) for name in ("balance", "num_nonces")}
    return {"GasKeyFunctionCall": [gas_key, data]}


_AMOUNTS = frozenset({"deposit", "stake", "amount", "balance", "allowance"})
_CONTRACTS = frozenset({"contract_identifier", "code"})  # may name a global contract
_FORMS: dict[type, Callable[[Any], Any]] = {
    PublicKey: base58,
    Signature: str,
    bytes: base64,
    # A tuple has the actions of a delegated action, or method names.
    tuple: lambda items: [{a.name: _members(a)} if isinstance(a, Action) else a for a in items],
    dict: lambda data: {base64(key): base64(value) for key, value in data.items()},
    AccessKey: _members,
    FullAccess: lambda _: "FullAccess",
    FunctionCallPermission: lambda permission: {"FunctionCall": _members(permission)},
    GasKeyFullAccess: lambda permission: {"GasKeyFullAccess": _members(permission)},
    GasKeyFunctionCall: _gas_key_call,
    kinds.StateInit: lambda state: {"V1": _members(state)},
    kinds.DelegateAction: _members,
    kinds.DelegateActionV2: _delegate_v2,
}


# Transactions, receipts, outcomes --------------------------------------------------------


def transaction(signed: SignedTransaction) -> Object:
    tx = signed.transaction
    data = {
        "signer_id": tx.signer_id,
        "public_key": base58(tx.public_key),
        "nonce": tx.nonce,
        "receiver_id": tx.receiver_id,
        "actions": [action(item) for item in tx.actions],
        "priority_fee": 0,
        "signature": str(signed.signature),
        "hash": base58(signed.hash),
    }
    if tx.version:
        data["nonce_mode"] = tx.nonce_mode
    if tx.nonce_index is not None:
        data["nonce_index"] = tx.nonce_index
    return data


def receipt(record: Receipt) -> Object:
    return {
        "predecessor_id": record.predecessor_id,
        "priority": 0,
        "receiver_id": record.receiver_id,
        "receipt_id": base58(record.receipt_id),
        "receipt": _receipt_contents(record),
    }


def _receipt_contents(record: Receipt) -> Json:
    if isinstance(record, ActionReceipt):
        return {"Action": _action_receipt(record)}
    if isinstance(record, DistributionReceipt):
        return {"GlobalContractDistribution": _distribution(record)}
    if not isinstance(record, DataReceipt):
        raise TypeError(f"{type(record).__name__} is not a receipt")
    data = {
        "data_id": base58(record.data_id),
        "data": None if record.data is None else base64(record.data),
        "is_promise_resume": record.is_promise_resume,
    }
    return {"Data": data}


def _distribution(record: DistributionReceipt) -> Object:
    """Build the JSON of a distribution receipt; the code is the base64 of its hash."""
    return {
        "id": global_contract(record.contract),
        "target_shard": record.target_shard,
        "already_delivered_shards": list(record.delivered_shards),
        "code": base64(record.code_hash),
        "nonce": record.nonce,
    }


def _action_receipt(record: ActionReceipt) -> Object:
    return {
        "actions": [action(item) for item in record.actions],
        "gas_price": str(record.gas_price),
        "input_data_ids": [base58(data_id) for data_id in record.input_data_ids],
        "is_promise_yield": record.is_promise_yield,
        "output_data_receivers": [
            {"data_id": base58(data_id), "receiver_id": receiver_id}
            for data_id, receiver_id in record.output_data_receivers
        ],
        "refund_to": record.refund_to,
        "signer_id": record.signer_id,
        "signer_public_key": base58(record.signer_public_key),
    }


def merkle_path(path: Iterable[tuple[CryptoHash, bool]]) -> list[Object]:
    sides = ("Right", "Left")
    return [{"hash": base58(neighbour), "direction": sides[is_left]} for neighbour, is_left in path]


def outcome(
    record: Outcome, block_hash: CryptoHash, path: Iterable[tuple[CryptoHash, bool]] = ()
) -> Object:
    """Build the JSON of an outcome in a block, with the path to the root of its shard."""
    data = {
        "executor_id": record.executor_id,
        "logs": list(record.logs),
        "receipt_ids": [base58(receipt_id) for receipt_id in record.receipt_ids],
        "gas_burnt": record.gas_burnt,
        "tokens_burnt": str(record.tokens_burnt),
        "status": outcome_status(record),
        "metadata": _metadata(record),
    }
    return {
        "id": base58(record.id),
        "block_hash": base58(block_hash),
        "proof": merkle_path(path),
        "outcome": data,
    }


def outcome_status(record: Outcome) -> Json:
    status = record.status
    if isinstance(status, Failure):
        return {"Failure": status.error}
    if isinstance(status, SuccessValue):
        return {"SuccessValue": base64(status.value)}
    return {"SuccessReceiptId": base58(status.receipt_id)}


def _metadata(record: Outcome) -> Object:
    if record.gas_profile is None:
        return {"version": 1, "gas_profile": None}
    lines = [
        {"cost_category": line.category, "cost": line.cost, "gas_used": str(line.gas_used)}
        for line in record.gas_profile
    ]
    if record.contracts is None:
        return {"version": 3, "gas_profile": lines}
    contracts = [code and {code[0]: str(code[1])} for code in record.contracts]
    return {"version": 4, "gas_profile": lines, "contracts": contracts}


# Blocks and chunks -----------------------------------------------------------------------


def block(record: Block, version: int) -> Object:
    return {
        "author": record.author,
        "header": block_header(record, version),
        "chunks": [*map(chunk_header, record.chunks)],
    }


def block_header(record: Block, version: int) -> Object:
    roots, mask = commitments.block_roots(record), record.chunk_mask
    return {
        "height": record.height,
        "prev_height": record.prev_height,
        "epoch_id": base58(record.epoch_id),
        "next_epoch_id": base58(record.next_epoch_id),
        "hash": base58(record.hash),
        "prev_hash": base58(record.prev_hash),
        "timestamp": record.timestamp_ns,
        "timestamp_nanosec": str(record.timestamp_ns),
        "block_ordinal": record.ordinal,
        "last_final_block": base58(record.last_final_block),
        "last_ds_final_block": base58(record.last_ds_final_block),
        "prev_state_root": base58(roots.state),
        "block_body_hash": base58(roots.chunks),
        "chunk_receipts_root": base58(roots.receipts),
        "chunk_headers_root": base58(roots.chunks),
        "chunk_tx_root": base58(roots.transactions),
        "outcome_root": base58(roots.outcomes),
        "challenges_root": base58(NO_CODE),
        "random_value": base58(record.random_value),
        "next_bp_hash": base58(record.next_bp_hash),
        "block_merkle_root": base58(record.block_merkle_root),
        "epoch_sync_data_hash": None,
        "chunks_included": sum(mask),
        "chunk_mask": list(mask),
        "chunk_endorsements": commitments.endorsements(record),
        "shard_split": None,
        "gas_price": str(record.gas_price),
        "total_supply": str(record.total_supply),
        "rent_paid": "0",
        "validator_reward": "0",
        "validator_proposals": [*map(proposal, commitments.proposals(record))],
        "challenges_result": [],
        "approvals": [signature and str(signature) for signature in record.approvals],
        "signature": str(record.signature or placeholder_signature(record.hash)),
        "latest_protocol_version": version,
    }


def chunk(record: Chunk, author: str) -> Object:
    return {
        "author": author,
        "header": chunk_header(record),
        "transactions": [*map(transaction, record.transactions)],
        "receipts": [*map(receipt, record.receipts)],
    }


def chunk_header(record: Chunk) -> Object:
    return {
        "chunk_hash": base58(record.chunk_hash),
        "prev_block_hash": base58(record.prev_block_hash),
        "outcome_root": base58(record.outcome_root),
        "prev_state_root": base58(record.prev_state_root),
        "encoded_merkle_root": base58(CryptoHash.of(record.chunk_hash)),
        "encoded_length": record.encoded_length,
        "height_created": record.height_created,
        "height_included": record.height_included,
        "shard_id": record.shard_id,
        "gas_used": record.gas_used,
        "gas_limit": fees.CHUNK_GAS,
        "rent_paid": "0",
        "validator_reward": "0",
        "balance_burnt": str(record.balance_burnt),
        "outgoing_receipts_root": base58(record.outgoing_receipts_root),
        "tx_root": base58(record.tx_root),
        "validator_proposals": [*map(proposal, record.validator_proposals)],
        "congestion_info": {
            "delayed_receipts_gas": "0",
            "buffered_receipts_gas": "0",
            "receipt_bytes": 0,
            "allowed_shard": record.shard_id,
        },
        "bandwidth_requests": {"V1": {"requests": []}},
        "proposed_split": None,
        "signature": str(placeholder_signature(record.chunk_hash)),
    }


def proposal(record: Proposal) -> Object:
    return {
        "account_id": record.account_id,
        "public_key": base58(record.public_key),
        "stake": str(record.stake),
        "validator_stake_struct_version": "V1",
    }


# Changes of state ------------------------------------------------------------------------


def change(record: Change) -> Object:
    name, data = _change_value(record)
    suffix = "deletion" if record.value is None else "update"
    return {
        "cause": _cause(record),
        "type": f"{name}_{suffix}",
        "change": {"account_id": record.account_id} | data,
    }


def _change_value(record: Change) -> tuple[str, Object]:
    value = record.value
    data: Object
    if record.kind == "account":
        return "account", account(value) if isinstance(value, Account) else {}
    if record.kind == "access_key":
        data = {"access_key": access_key(value)} if isinstance(value, AccessKey) else {}
        return "access_key", {"public_key": public_key_text(record.key)} | data
    if record.kind == "gas_key_nonce":
        packed, index = split_nonce_key(record.key)
        data = {"public_key": public_key_text(packed), "index": index}
        return "gas_key_nonce", data | ({} if value is None else {"nonce": value})
    encoded = base64(value) if isinstance(value, bytes) else None
    if record.kind == "data":
        data = {} if encoded is None else {"value_base64": encoded}
        return "data", {"key_base64": base64(record.key)} | data
    return "contract_code", {} if encoded is None else {"code_base64": encoded}


def _cause(record: Change) -> Object:
    kind, cause_id = record.cause
    if cause_id is None:
        return {"type": kind}
    name = "tx_hash" if kind == "transaction_processing" else "receipt_hash"
    return {"type": kind, name: base58(cause_id)}


def touched_accounts(records: Iterable[Change]) -> list[Object]:
    """List the changed accounts, once per kind of change."""
    unique = dict.fromkeys((record.kind, record.account_id) for record in records)
    return [
        {"type": _TOUCHED_TYPES[kind], "account_id": account_id}
        for kind, account_id in unique
        if kind in _TOUCHED_TYPES
    ]
