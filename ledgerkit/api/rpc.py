"""The JSON-RPC endpoint: one function a documented call, nothing is sent here."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ledgerkit.api import calls
from ledgerkit.api.models import chain, transactions
from ledgerkit.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.api.calls import Call
    from ledgerkit.validation import BlockReference

# What the escape hatch may repeat: everything documented but unsigned novelties.
_READS = frozenset(
    "block chunk query status health gas_price validators changes block_effects tx network_info "
    "genesis_config light_client_proof next_light_client_block maintenance_windows client_config "
    "broadcast_tx_async broadcast_tx_commit send_tx".split()
)


def _always(_: object) -> bool:
    """Say that an answer can never change."""
    return True


def _of_block(at: BlockReference) -> Callable[[Any], bool] | None:
    """Ask of an answer to say that it is of the very block that was named by its hash."""
    if not at.pinned:
        return None
    wanted = at.params["block_id"]
    return lambda answer: getattr(answer, "block_hash", None) == wanted


def _is_object(answer: chain.CallResult) -> bool:
    """Tell whether a view call returned an object of JSON, as metadata is."""
    try:
        return isinstance(msgspec.json.decode(bytes(answer.result)), dict)
    except (ValueError, RecursionError):  # other bytes, or no bytes
        return False


def base64_text(data: bytes) -> str:
    """Write bytes as standard base64."""
    return base64.b64encode(data).decode()


def call(method: str, params: Any) -> Call[Any]:
    """Describe any method; the result stays decoded JSON."""
    repeatable = method in _READS or method.startswith("EXPERIMENTAL_")
    return calls.rpc(method, params, Any, asked=f"{method}", repeatable=repeatable)


def query(
    request_type: str, at: BlockReference, result: Any, asked: str, **fields: object
) -> Call[Any]:
    """Describe a `query` of any request type."""
    params = {"request_type": request_type, **fields, **at.params}
    described = calls.rpc("query", params, result, asked=asked, keep=_of_block(at))
    return replace(described, kind="read")


def view_account(account_id: str, at: BlockReference) -> Call[chain.Account]:
    """Describe the reading of an account's state."""
    asked = f"the state of {account_id}"
    return query("view_account", at, chain.Account, asked, account_id=account_id)


def view_access_key(account_id: str, public_key: str, at: BlockReference) -> Call[chain.AccessKey]:
    """Describe the reading of one access key."""
    asked = f"key {public_key} of {account_id}"
    fields = {"account_id": account_id, "public_key": public_key}
    return query("view_access_key", at, chain.AccessKey, asked, **fields)


def view_access_key_list(account_id: str, at: BlockReference) -> Call[chain.KeyList]:
    """Describe the reading of all access keys."""
    asked = f"the keys of {account_id}"
    return query("view_access_key_list", at, chain.KeyList, asked, account_id=account_id)


def view_state(account_id: str, prefix: bytes, at: BlockReference) -> Call[chain.State]:
    """Describe the reading of a contract's state."""
    fields = {"account_id": account_id, "prefix_base64": base64_text(prefix)}
    return query("view_state", at, chain.State, f"the contract state of {account_id}", **fields)


def view_code(account_id: str, at: BlockReference) -> Call[chain.Code]:
    """Describe the reading of a contract's code."""
    asked = f"the contract code of {account_id}"
    return query("view_code", at, chain.Code, asked, account_id=account_id)


def view_global_contract_code(code_hash: str, at: BlockReference) -> Call[chain.Code]:
    """Describe the reading of a global contract by its hash."""
    asked = f"global contract {code_hash}"
    return query("view_global_contract_code", at, chain.Code, asked, code_hash=code_hash)


def view_global_contract_code_by_account_id(
    account_id: str, at: BlockReference
) -> Call[chain.Code]:
    """Describe the reading of a global contract by the account that deployed it."""
    request_type = "view_global_contract_code_by_account_id"
    asked = f"the global contract of {account_id}"
    return query(request_type, at, chain.Code, asked, account_id=account_id)


def view_gas_key_nonces(
    account_id: str, public_key: str, at: BlockReference
) -> Call[chain.GasKeyNonces]:
    """Describe the reading of a gas key's nonces."""
    fields = {"account_id": account_id, "public_key": public_key}
    asked = f"the nonces of gas key {public_key} of {account_id}"
    return query("view_gas_key_nonces", at, chain.GasKeyNonces, asked, **fields)


def call_function(
    contract_id: str, method_name: str, args: bytes, at: BlockReference, *, keep: bool = False
) -> Call[chain.CallResult]:
    """Describe a view call; `keep` where it tells metadata, which seldom changes."""
    fields = {
        "account_id": contract_id,
        "method_name": method_name,
        "args_base64": base64_text(args),
    }
    asked = f"{method_name} of {contract_id}"
    described = query("call_function", at, chain.CallResult, asked, **fields)
    if not keep or at.pinned:
        return described
    return replace(described, keep=_is_object, kind="metadata")


def block(at: BlockReference) -> Call[chain.Block]:
    """Describe the reading of a block; one by its height may still be another's tomorrow."""
    wanted = next(iter(at.params.values()))

    def keep(block: chain.Block) -> bool:
        return block.header.hash == wanted

    asked = f"block {wanted}"
    described = calls.rpc("block", at.params, chain.Block, asked=asked)
    return replace(described, keep=keep, kind="block") if at.pinned else described


def chunk(chunk_id: str) -> Call[chain.Chunk]:
    """Describe the reading of a chunk by its hash."""

    def keep(found: chain.Chunk) -> bool:
        return found.header.chunk_hash == chunk_id

    asked = f"chunk {chunk_id}"
    described = calls.rpc("chunk", {"chunk_id": chunk_id}, chain.Chunk, asked=asked, keep=keep)
    return replace(described, kind="chunk")


def chunk_of(block_id: int | str, shard_id: int) -> Call[chain.Chunk]:
    """Describe the reading of a chunk by its block and shard."""
    asked = f"the chunk of shard {shard_id} in block {block_id}"
    params = {"block_id": block_id, "shard_id": shard_id}

    def keep(found: chain.Chunk) -> bool:
        return found.header.shard_id == shard_id

    described = calls.rpc("chunk", params, chain.Chunk, asked=asked)
    return replace(described, keep=keep, kind="chunk") if isinstance(block_id, str) else described


def status() -> Call[chain.Status]:
    """Describe the node's status."""
    return calls.rpc("status", [], chain.Status, asked="the node's status")


def gas_price(block_id: int | str | None) -> Call[chain.GasPrice]:
    """Describe the gas price of a block, or of the head."""
    return calls.rpc("gas_price", [block_id], chain.GasPrice, asked="the gas price")


def validators(params: Any) -> Call[chain.Validators]:
    """Describe the validators of an epoch."""
    return calls.rpc("validators", params, chain.Validators, asked="the validators")


def changes(changes_type: str, at: BlockReference, subject: dict[str, Any]) -> Call[chain.Changes]:
    """Describe the changes of one kind in a block."""
    params = {"changes_type": changes_type, **subject, **at.params}
    asked = f"{changes_type} in a block"
    return calls.rpc("EXPERIMENTAL_changes", params, chain.Changes, asked=asked)


def receipt(receipt_id: str) -> Call[Any]:
    """Describe the reading of one receipt."""
    params = {"receipt_id": receipt_id}
    asked = f"receipt {receipt_id}"
    return calls.rpc("EXPERIMENTAL_receipt", params, Any, asked=asked, keep=_always)


def protocol_config(at: BlockReference) -> Call[Any]:
    """Describe the protocol's configuration at a block."""
    asked = "the protocol configuration"
    return calls.rpc("EXPERIMENTAL_protocol_config", at.params, Any, asked=asked)


class TxAnswer(NamedTuple):
    """A transaction's decoded result, and the very bytes it was decoded from."""

    result: transactions.TxResult
    body: bytes


def transaction(
    tx_hash: str, sender_account_id: str, wait_until: str, *, receipts: bool = True
) -> Call[TxAnswer]:
    """Describe the following of a transaction, with its receipts or without."""
    asked = f"transaction {tx_hash} of {sender_account_id}"

    def read(answer: calls.Response) -> TxAnswer:
        try:
            decoded = transactions.decode_transaction(answer.body, asked=asked)
        except DecodeError as error:
            problem = error
        else:
            return TxAnswer(decoded, answer.body)
        raise calls.status_first(answer, asked, problem)

    params = {"tx_hash": tx_hash, "sender_account_id": sender_account_id, "wait_until": wait_until}
    method = "EXPERIMENTAL_tx_status" if receipts else "tx"
    described = calls.rpc(method, params, Any, asked=asked)

    def keep(found: TxAnswer) -> bool:
        """Tell whether it is this transaction's result, and can't change any more."""
        told = found.result.transaction
        final = found.result.final_execution_status == "FINAL"
        return final and told is not None and told.hash == tx_hash

    return replace(described, read=read, keep=keep, kind="transaction")


def returned(answer: chain.CallResult, asked: str) -> bytes:
    """Give the bytes that a view call returned."""
    try:
        return bytes(answer.result)
    except ValueError:
        msg = f"the answer to {asked} is not as documented: a byte above 255"
        raise DecodeError(msg, asked=asked, path="$.result.result") from None


def decoded(answer: chain.CallResult, kind: Any, asked: str) -> Any:
    """Decode the JSON that a view call returned."""
    data = returned(answer, asked)
    try:
        return calls.decoder(kind).decode(data)
    except calls.MALFORMED as error:
        raise calls.not_as_documented(asked, error) from None


def json_or_bytes(data: bytes) -> Any:
    """Decode JSON, or leave other bytes as they are."""
    if not data:
        return None
    try:
        return msgspec.json.decode(data)
    except calls.MALFORMED:
        return data
