"""
The calls of the JSON-RPC endpoint: one function for each documented method.

The models of transactions and commitments, which declare every kind of action, are loaded with
the first call that needs them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api import calls
from ledgerkit.api.models import chain
from ledgerkit.api.models.services import ReceiptOrigin
from ledgerkit.errors import (
    DecodeError,
    LedgerError,
    TransactionTimeoutError,
    UnavailableShardError,
    UnknownTransactionError,
    not_as_documented,
)

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.api.models import commitments
    from ledgerkit.api.models.block_documents import BlockResponse
    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.validation import BlockReference

T = TypeVar("T")

# Methods that `call` may repeat: all documented ones, which are safe to send twice.
_REPEATABLE = frozenset(
    "block chunk query status health gas_price validators changes block_effects tx network_info "
    "tx_status genesis_config light_client_proof next_light_client_block maintenance_windows "
    "client_config broadcast_tx_async broadcast_tx_commit send_tx".split()
)

STATE_PER_PAGE = 1000  # records; nodes from version 2.13 on may have a lower limit
_KEYS_PER_PAGE = 100  # the default maximum of nodes, which refuse longer lists without pages

# The remedies where a node serves no whole block. Source: nearcore, pull request 16407.
_SERVE_BLOCKS = (
    "In the config.json of the node set rpc.enable_indexer_rpc, save_tx_outcomes and"
    ' save_state_changes to true; or read blocks with another source, such as "rpc".'
)
_BLOCK_REMEDIES = {
    "METHOD_NOT_FOUND": _SERVE_BLOCKS,
    "UNSUPPORTED": _SERVE_BLOCKS,
    "LIMIT_EXCEEDED": 'The block is larger than the node sends at once: read it with source="rpc".',
}


def _always(_: object) -> bool:
    return True


def _has_block(response: Any) -> bool:
    return getattr(response, "block_hash", None) is not None


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def call(method: str, params: Any) -> Call[Any]:
    """Build a call of any method; its result is decoded JSON."""
    repeatable = method in _REPEATABLE or method.startswith("EXPERIMENTAL_")
    return calls.rpc(method, params, Any, request=method, repeatable=repeatable)


def query(
    request_type: str, at: BlockReference, result: Any, request: str, **fields: object
) -> Call[Any]:
    params = {"request_type": request_type, **fields, **at.params}
    keep = _has_block if at.pinned else None
    return calls.rpc("query", params, result, request=request, keep=keep, kind="read")


def view_account(account_id: str, at: BlockReference) -> Call[chain.Account]:
    request = f"the state of {account_id}"
    return query("view_account", at, chain.Account, request, account_id=account_id)


def view_access_key(account_id: str, public_key: str, at: BlockReference) -> Call[chain.AccessKey]:
    request = f"key {public_key} of {account_id}"
    fields = {"account_id": account_id, "public_key": public_key}
    return query("view_access_key", at, chain.AccessKey, request, **fields)


def view_access_key_list(
    account_id: str, at: BlockReference, after_key: str | None = None
) -> Call[chain.KeyList]:
    """Build the call for a page of an account's access keys; older nodes send all of them."""
    request = f"the keys of {account_id}"
    fields: dict[str, Any] = {"account_id": account_id, "limit": _KEYS_PER_PAGE}
    if after_key is None:
        return query("view_access_key_list", at, chain.KeyList, request, **fields)
    call = query("view_access_key_list", at, chain.KeyList, request, **fields, after_key=after_key)
    return _later_page(call, after_key, lambda page: page.last_key != after_key)


def _later_page(call: Call[T], after_key: str, is_after: Callable[[T], bool]) -> Call[T]:
    """Refuse a page that does not begin after a key: otherwise the pages would never end."""

    def read(response: calls.Response) -> T:
        page = call.read(response)
        if not is_after(page):
            msg = f"the response to {call.request} is a page that does not begin after {after_key}"
            raise DecodeError(msg, request=call.request, path="$.result.last_key")
        return page

    return replace(call, read=read)


def view_state(
    account_id: str,
    prefix: bytes,
    at: BlockReference,
    *,
    limit: int | None = None,
    after_key: bytes | None = None,
) -> Call[chain.State]:
    request = f"the contract state of {account_id}"
    fields: dict[str, Any] = {"account_id": account_id, "prefix_base64": base64_text(prefix)}
    if limit is not None:  # older nodes ignore it
        fields["limit"] = limit
    if after_key is None:
        return query("view_state", at, chain.State, request, **fields)
    fields["after_key_base64"] = base64_text(after_key)

    def is_after(page: chain.State) -> bool:
        keys = (*(item.key for item in page.values), page.last_key)
        return all(key is None or key > after_key for key in keys)

    call = query("view_state", at, chain.State, request, **fields)
    return _later_page(call, repr(after_key), is_after)


def view_code(account_id: str, at: BlockReference) -> Call[chain.Code]:
    request = f"the contract code of {account_id}"
    return query("view_code", at, chain.Code, request, account_id=account_id)


def view_global_contract_code(code_hash: str, at: BlockReference) -> Call[chain.Code]:
    request = f"global contract {code_hash}"
    return query("view_global_contract_code", at, chain.Code, request, code_hash=code_hash)


def view_global_contract_code_by_account_id(
    account_id: str, at: BlockReference
) -> Call[chain.Code]:
    request_type = "view_global_contract_code_by_account_id"
    request = f"the global contract of {account_id}"
    return query(request_type, at, chain.Code, request, account_id=account_id)


def view_gas_key_nonces(
    account_id: str, public_key: str, at: BlockReference
) -> Call[chain.GasKeyNonces]:
    fields = {"account_id": account_id, "public_key": public_key}
    request = f"the nonces of gas key {public_key} of {account_id}"
    return query("view_gas_key_nonces", at, chain.GasKeyNonces, request, **fields)


def call_function(
    contract_id: str, method_name: str, args: bytes, at: BlockReference
) -> Call[chain.CallResult]:
    fields = {
        "account_id": contract_id,
        "method_name": method_name,
        "args_base64": base64_text(args),
    }
    request = f"{method_name} of {contract_id}"
    return query("call_function", at, chain.CallResult, request, **fields)


def block(at: BlockReference) -> Call[chain.Block]:
    """Build the call for a block. Only a block requested by hash is cached."""
    return _block(at, chain.Block)


def whole_block(at: BlockReference) -> Call[commitments.WholeBlock]:
    """Build the call for a block with its whole header; cached as `block` is."""
    from ledgerkit.api.models import commitments

    return _block(at, commitments.WholeBlock, "the header of block" if at.pinned else "block")


def _block(at: BlockReference, result: Any, noun: str = "block") -> Call[Any]:
    request = f"{noun} {next(iter(at.params.values()))}"
    cached: Any = {"keep": _always, "kind": "block"} if at.pinned else {}
    return calls.rpc("block", at.params, result, request=request, **cached)


def indexer_block(block_hash: str, *, whole: bool = False) -> Call[BlockResponse]:
    """
    Build the call for a whole block, as a node sends it to indexers; `whole` as `decode_document`.

    Raises `UnavailableShardError` if the node does not track all shards of the block.
    """
    from ledgerkit.api.models.block_documents import BlockResponse, decode_document

    request = f"the document of block {block_hash}"

    def read(response: calls.Response) -> BlockResponse:
        try:
            body = bytes(calls.read_rpc(response, msgspec.Raw, request))
        except LedgerError as error:
            error.remedy = _BLOCK_REMEDIES.get(error.rpc_cause or "", error.remedy)
            raise
        document = decode_document(body, request, whole=whole)
        if document.tracked_shards is None:
            problem, path = "it has no tracked_shards", "$.tracked_shards"
            raise not_as_documented(f"the response to {request}", problem, path, request=request)
        missing = document.missing_shards()
        if missing:
            shards = f"shard {', '.join(map(str, missing))} of block {document.block.header.height}"
            remedy = 'Set tracked_shards_config in the config.json of the node to "AllShards".'
            raise UnavailableShardError(
                f"the node does not track {shards}",
                remedy=remedy,
                request=request,
                shard_id=missing[0],
            )
        return BlockResponse(document, body)

    params = {"block_hash": block_hash}
    expected = {"document.block.header.hash": block_hash}
    method = "EXPERIMENTAL_indexer_block"
    return calls.rpc(method, params, Any, request=request, read=read, expected=expected)


def chunk(chunk_id: str) -> Call[chain.Chunk]:
    params, request = {"chunk_id": chunk_id}, f"chunk {chunk_id}"
    return calls.rpc("chunk", params, chain.Chunk, request=request, keep=_always, kind="chunk")


def chunk_of(block_id: int | str, shard_id: int) -> Call[chain.Chunk]:
    request = f"the chunk of shard {shard_id} in block {block_id}"
    params = {"block_id": block_id, "shard_id": shard_id}

    def keep(chunk: chain.Chunk) -> bool:
        return chunk.header.shard_id == shard_id

    cached: Any = {"keep": keep, "kind": "chunk"} if isinstance(block_id, str) else {}
    return calls.rpc("chunk", params, chain.Chunk, request=request, **cached)


def validators_ordered(block_hash: str) -> Call[list[commitments.Validator]]:
    """Build the call for the validators of a block's epoch, in the order of their approvals."""
    from ledgerkit.api.models import commitments

    request = f"the validators at block {block_hash}"
    result = list[commitments.Validator]
    return calls.rpc(
        "EXPERIMENTAL_validators_ordered", {"block_id": block_hash}, result, request=request
    )


def next_light_client_block(last_block_hash: str) -> Call[commitments.LightClientBlock | None]:
    """Build the call for the block that a light client reads next; None if none is newer."""
    from ledgerkit.api.models import commitments

    request = f"the light-client block after {last_block_hash}"

    def read(response: calls.Response) -> commitments.LightClientBlock | None:
        is_block = calls.read_rpc(response, Any, request)
        kind = commitments.LightClientBlock if is_block else commitments.NoBlock
        block = calls.read_rpc(response, kind, request)
        return block if isinstance(block, commitments.LightClientBlock) else None

    params = {"last_block_hash": last_block_hash}
    return calls.rpc("next_light_client_block", params, Any, request=request, read=read)


def light_client_proof(
    outcome_id: str, account_id: str, light_client_head: str, *, is_transaction: bool
) -> Call[commitments.OutcomeProof]:
    from ledgerkit.api.models import commitments

    request = f"the proof of {outcome_id}"
    kind: dict[str, str] = {"type": "receipt", "receipt_id": outcome_id, "receiver_id": account_id}
    if is_transaction:
        kind = {"type": "transaction", "transaction_hash": outcome_id, "sender_id": account_id}
    params = {**kind, "light_client_head": light_client_head}
    result = commitments.OutcomeProof
    return calls.rpc("light_client_proof", params, result, request=request, keep=_always)


def status() -> Call[chain.Status]:
    return calls.rpc("status", [], chain.Status, request="the node's status")


def gas_price(block_id: int | str | None) -> Call[chain.GasPrice]:
    """Build the call for the gas price at a block; None is the newest block."""
    return calls.rpc("gas_price", [block_id], chain.GasPrice, request="the gas price")


def validators(params: Any) -> Call[chain.Validators]:
    return calls.rpc("validators", params, chain.Validators, request="the validators")


def changes(changes_type: str, at: BlockReference, subject: dict[str, Any]) -> Call[chain.Changes]:
    params = {"changes_type": changes_type, **subject, **at.params}
    request = f"{changes_type} in a block"
    return calls.rpc("EXPERIMENTAL_changes", params, chain.Changes, request=request)


def receipt(receipt_id: str) -> Call[Any]:
    params = {"receipt_id": receipt_id}
    request = f"receipt {receipt_id}"
    return calls.rpc("EXPERIMENTAL_receipt", params, Any, request=request, keep=_always)


def receipt_origin(receipt_id: str) -> Call[ReceiptOrigin]:
    method, params = "EXPERIMENTAL_receipt_to_tx", {"receipt_id": receipt_id}
    request = f"the transaction of receipt {receipt_id}"
    return calls.rpc(method, params, ReceiptOrigin, request=request, keep=_always)


def protocol_config(at: BlockReference) -> Call[Any]:
    request = "the protocol configuration"
    return calls.rpc("EXPERIMENTAL_protocol_config", at.params, Any, request=request)


def transaction(
    tx_hash: str, sender_account_id: str, wait_until: str, *, receipts: bool = True
) -> Call[TransactionResponse]:
    """Build the call for the result of a transaction, with or without its receipts."""
    params = {"tx_hash": tx_hash, "sender_account_id": sender_account_id, "wait_until": wait_until}
    if not receipts:
        return _transaction_call("tx", params)
    # Source: nearcore, pull request 16270, for nodes from 2.14 on.
    newer = _transaction_call("tx_status", params)
    return replace(_transaction_call("EXPERIMENTAL_tx_status", params), newer=newer)


def _transaction_call(method: str, params: dict[str, str]) -> Call[TransactionResponse]:
    tx_hash = params["tx_hash"]
    request = f"transaction {tx_hash} of {params['sender_account_id']}"

    def read(response: calls.Response) -> TransactionResponse:
        from ledgerkit.api.models import transactions

        try:
            result = transactions.decode_transaction(response.body, request=request)
        except DecodeError as error:
            decode_error = error
        else:
            return transactions.TransactionResponse(result, response.body, method)
        raise calls.prefer_status_error(response, request, decode_error)

    def keep(response: TransactionResponse) -> bool:
        """Return True if this is the final result of the requested transaction."""
        transaction = response.transaction
        is_final = response.result.final_execution_status == "FINAL"
        return is_final and transaction is not None and transaction.hash == tx_hash

    return calls.rpc(method, params, Any, request=request, read=read, keep=keep, kind="transaction")


class TimedOut(NamedTuple):
    """The value of a transaction that did not reach the requested level in time."""

    error: TransactionTimeoutError


def transaction_or_timeout(
    tx_hash: str, sender_account_id: str, wait_until: str
) -> Call[TransactionResponse | TimedOut]:
    """Build the call for a result with receipts; a timeout is a value, and not retried."""
    base_call: Call[Any] = transaction(tx_hash, sender_account_id, wait_until)
    newer = base_call.newer and _or_timeout(base_call.newer)
    return replace(_or_timeout(base_call), newer=newer)


def _or_timeout(base_call: Call[Any]) -> Call[TransactionResponse | TimedOut]:
    def read(response: calls.Response) -> TransactionResponse | TimedOut:
        try:
            value: TransactionResponse = base_call.read(response)
        except TransactionTimeoutError as error:
            return TimedOut(error.with_traceback(None))
        result = value.result
        # A node that does not track the sender's shard sends this level alone, for any hash.
        if result.final_execution_status == "NONE" and result.transaction is None:
            msg = f"This host does not know the status of {base_call.request} yet"
            return TimedOut(TransactionTimeoutError(msg, request=base_call.request))
        return value

    def keep(value: TransactionResponse | TimedOut) -> bool:
        return not isinstance(value, TimedOut) and bool(base_call.keep and base_call.keep(value))

    return replace(base_call, read=read, keep=keep)


def known_so_far(
    timed_out: TimedOut, value: TransactionResponse | TimedOut | LedgerError
) -> TransactionResponse | LedgerError:
    """
    Return the result of a transaction so far, or an error, after a timeout.

    `value` is that of the same request with the level NONE, for which nodes do not wait.
    """
    is_unknown = isinstance(value, UnknownTransactionError)
    # A node that has the transaction may share its address with a node that does not.
    is_contradiction = is_unknown and timed_out.error.cause_name == "PENDING"
    return timed_out.error if isinstance(value, TimedOut) or is_contradiction else value


def result_bytes(call_result: chain.CallResult, request: str) -> bytes:
    try:
        return bytes(call_result.result)
    except ValueError:
        msg = f"the response to {request} is not as documented: a byte is above 255"
        raise DecodeError(msg, request=request, path="$.result.result") from None


def result_json(call_result: chain.CallResult, result_type: Any, request: str) -> Any:
    data = result_bytes(call_result, request)
    try:
        return json_decoding.decode(data, result_type)
    except msgspec.DecodeError as problem:
        error = calls.not_as_documented(request, problem)
        error.remedy = "The contract returns something else: read it with ledgerkit.view()."
        raise error from None


def json_or_bytes(data: bytes) -> Any:
    """Decode JSON; return other bytes unchanged."""
    if not data:
        return None
    try:
        return json_decoding.decode(data)
    except msgspec.DecodeError:
        return data
