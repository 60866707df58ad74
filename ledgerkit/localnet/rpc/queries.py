"""
The methods that return accounts, keys, code, records and the results of contracts' views.

A request is parsed completely into a `Query` before its block is resolved, as in the node.
`query` returns two of the errors as results; the methods of a single request type do not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import base58

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import rpc_json
from ledgerkit.localnet.execution_errors import CallError, CodeError
from ledgerkit.localnet.rpc import blocks
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import HandlerError, InternalError, Object, ParseError
from ledgerkit.protocol import AccountId, CryptoHash, PublicKey
from ledgerkit.validation import is_account_id

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Account, Block
    from ledgerkit.localnet.rpc.params import Members, Reference
    from ledgerkit.localnet.state import State
    from ledgerkit.localnet.world import World

MAX_STATE_BYTES = 50_000  # records in one response
MAX_ACCESS_KEYS = 100  # in one response (nearcore, default_view_access_keys_limit)
_COLLECTED = "GARBAGE_COLLECTED_BLOCK"
_MAX_PATH_QUERY_BYTES = 10 * 1024


class Snapshot:
    """The state of a world after a block."""

    __slots__ = ("block", "state", "world")

    def __init__(self, world: World, block: Block) -> None:
        self.world, self.block = world, block
        self.state: State = world.state(block.height)

    def account(self, account_id: AccountId) -> Account:
        """Return an account, or raise if it does not exist."""
        account = self.state.account(account_id)
        if account is None:
            data = f"account {account_id} does not exist while viewing"
            raise self.error("UNKNOWN_ACCOUNT", data, requested_account_id=account_id)
        return account

    def error(
        self, cause: str, data: str, *, query_message: str | None = None, **info: Any
    ) -> HandlerError:
        return HandlerError(
            cause, data, info | block_members(self.block), query_message=query_message
        )

    def never_observed(self, name: str) -> str:
        """Return the error message for something that the state does not have."""
        return f"{name} has never been observed on the node at block #{self.block.height}"


Query = Callable[[Snapshot], Object]


def block_members(block: Block) -> Object:
    return {"block_height": block.height, "block_hash": block.hash}


# Methods ---------------------------------------------------------------------------------


def query(world: World, params: Any) -> Object:
    """Return the result of `query`; a failed call and a missing key are results too."""
    reference, run = _parse_query(params)
    block = _find_block(world, reference)
    try:
        return _run_query(world, block, run)
    except HandlerError as error:
        if error.query_message is None:
            raise
        return {"error": error.query_message, "logs": []} | block_members(block)


def single_type(request_type: str, world: World, params: Any) -> Object:
    """Return the result of a method with one request type, as `EXPERIMENTAL_view_account`."""
    members = read.members(params)
    reference = read.reference(members)
    run = _parse_members(request_type, members)
    block = _find_state_block(world, reference)
    Snapshot(world, block).account(read.account_id(members["account_id"]))  # it must exist
    return _run_query(world, block, run)


def _run_query(world: World, block: Block, run: Query) -> Object:
    return run(Snapshot(world, block)) | block_members(block)


def _find_block(world: World, reference: Reference) -> Block:
    """Return the block of a reference, or raise if it is unknown or garbage collected."""
    block = blocks.resolve(world, reference)
    if block is None:
        info = {"block_reference": {reference.kind: reference.value}}
        raise blocks.unknown_block(world, reference, info, "BLOCK HEADER")
    if blocks.is_collected(world, block):
        data = (
            f"The data for block #{block.height} is garbage collected on this node, "
            "use an archival node to fetch historical data"
        )
        raise HandlerError(_COLLECTED, data, block_members(block))
    return block


def _find_state_block(world: World, reference: Reference) -> Block:
    """Return the block of a reference; a collected block is an internal error here."""
    # Source: nearcore, chain/jsonrpc-primitives/src/types/view_*.rs, From<RpcQueryError>.
    try:
        return _find_block(world, reference)
    except HandlerError as error:
        if error.error["cause"]["name"] != _COLLECTED:
            raise
        message = error.error["data"]
        data = f"The node reached its limits. Try again later. More details: {message}"
        raise InternalError(message, data) from None


def _parse_query(params: Any) -> tuple[Reference, Query]:
    """Parse the params of `query`: an object, or a path and its data."""
    path_and_data = read.pair(params)
    if path_and_data is not None:
        path, data = path_and_data
        return read.LATEST, _parse_path(read.text(path), read.text(data))
    members = read.members(params)
    reference = read.reference(members)
    request_type = read.member(members, "request_type", read.one_of(tuple(_TYPES)))
    return reference, _parse_members(request_type, members)


def _parse_members(request_type: str, members: Members) -> Query:
    run, required, optional = _TYPES[request_type]
    values: dict[str, Any] = {
        name: read.member(members, name, parse) for name, parse in required.items()
    }
    values |= {name: read.optional(members, name, parse) for name, parse in optional.items()}
    return partial(run, **values)


# The path form, such as ``call/alice.near/method`` ---------------------------------------


def _parse_path(path: str, data: str) -> Query:
    command, *arguments = path.split("/", 2)
    if not arguments:
        raise ParseError("Not enough query parameters provided")
    if not is_account_id(arguments[0]):
        raise ParseError(read.account_rule(arguments[0]))
    account_id = AccountId(arguments[0])
    extra = arguments[1:]
    types = {"account": "view_account", "code": "view_code", "access_key": "view_access_key_list"}
    if command == "access_key" and extra:
        return partial(_view_access_key, account_id=account_id, public_key=_path_key(extra[0]))
    if command == "call":
        args = _decode_base58(data, path)
        if not extra:
            raise ParseError("Method name is missing")
        return partial(
            _call_function, account_id=account_id, method_name=extra[0], args_base64=args
        )
    if command == "contract":
        prefix = _decode_base58(data, path)
        return partial(_view_state, account_id=account_id, prefix_base64=prefix)
    if command not in types:
        raise ParseError(f"Unknown path {command}")
    return _parse_members(types[command], {"account_id": account_id})


def _path_key(text: str) -> PublicKey:
    try:
        return PublicKey.from_text(text)
    except InvalidRequestError:
        raise ParseError("Invalid public key") from None


def _decode_base58(data: str, path: str) -> bytes:
    if len(data) + len(path) > _MAX_PATH_QUERY_BYTES:
        raise ParseError("Query data size is too large")
    reason = read.base58_rule(data)
    if reason is not None:
        raise ParseError(reason)
    return base58.b58decode(data)


# The request types, with the names of their members --------------------------------------


def _view_account(at: Snapshot, account_id: AccountId) -> Object:
    return rpc_json.account(at.account(account_id))


def _view_code(at: Snapshot, account_id: AccountId) -> Object:
    code_hash = at.state.code_hash(at.account(account_id))
    if code_hash is None:
        raise _no_code(at, account_id)
    return _code_members(at, code_hash)


def _code_members(at: Snapshot, code_hash: CryptoHash) -> Object:
    return {"code_base64": rpc_json.base64(at.state.store.codes[code_hash]), "hash": code_hash}


def _no_code(
    at: Snapshot, account_id: AccountId, *, query_message: str | None = None
) -> HandlerError:
    cause = at.never_observed(f"Contract code for contract ID #{account_id}")
    return at.error(
        "NO_CONTRACT_CODE", cause, query_message=query_message, contract_account_id=account_id
    )


def _view_global_code(at: Snapshot, **identifier: CryptoHash | AccountId) -> Object:
    [(kind, contract)] = identifier.items()
    code_hash = at.state.global_code_hash(contract)
    if code_hash is None:
        cause = at.never_observed(f"Global contract code with identifier {contract}")
        member = "hash" if kind == "code_hash" else kind
        raise at.error("NO_GLOBAL_CONTRACT_CODE", cause, identifier={member: contract})
    return _code_members(at, code_hash)


def _view_access_key(at: Snapshot, account_id: AccountId, public_key: PublicKey) -> Object:
    at.account(account_id)
    access_key = at.state.access_key(account_id, public_key.stored)
    if access_key is None:
        cause = at.never_observed(f"Access key for public key {public_key}")
        message = f"access key {public_key} does not exist while viewing"
        raise at.error(
            "UNKNOWN_ACCESS_KEY", cause, query_message=message, public_key=str(public_key)
        )
    return rpc_json.access_key(access_key)


def _view_access_key_list(
    at: Snapshot, account_id: AccountId, after_key: PublicKey | None, limit: int | None
) -> Object:
    entries = [
        entry
        for entry in at.state.access_keys(account_id)
        if after_key is None or entry[0] > after_key.stored
    ]
    if limit is None and after_key is None and len(entries) > MAX_ACCESS_KEYS:
        cause = (
            f"Account {account_id} has more than {MAX_ACCESS_KEYS} access keys; use a paginated"
            " view_access_key_list request"
        )
        info: Object = {"requested_account_id": account_id, "limit": MAX_ACCESS_KEYS}
        raise at.error("TOO_MANY_ACCESS_KEYS", cause, **info)
    keys = [
        {"public_key": rpc_json.public_key_text(packed), "access_key": rpc_json.access_key(key)}
        for packed, key in entries[: min(limit or MAX_ACCESS_KEYS, MAX_ACCESS_KEYS)]
    ]
    last_key = {"last_key": keys[-1]["public_key"]} if len(keys) < len(entries) else {}
    return {"keys": keys} | last_key


def _view_gas_key_nonces(at: Snapshot, account_id: AccountId, public_key: PublicKey) -> Object:
    at.account(account_id)
    nonces = at.state.gas_key_nonces(account_id, public_key.stored)
    if nonces:
        return {"nonces": nonces}
    cause = at.never_observed(f"Gas key for public key {public_key}")
    raise at.error("UNKNOWN_GAS_KEY", cause, public_key=str(public_key))


def _view_state(
    at: Snapshot,
    account_id: AccountId,
    prefix_base64: bytes,
    *,
    include_proof: bool | None = None,
    after_key_base64: bytes | None = None,
    limit: int | None = None,
) -> Object:
    """Return a contract's records by prefix; without a limit, raise if they are too large."""
    account = at.account(account_id)
    size = account.storage_usage - len(at.state.store.codes[account.code_hash])
    if limit is None and size > MAX_STATE_BYTES:
        cause = f"State of contract {account_id} is too large to be viewed"
        raise at.error("TOO_LARGE_CONTRACT_STATE", cause, contract_account_id=account_id)
    records = [
        record
        for record in at.state.records(account_id, prefix_base64)
        if after_key_base64 is None or record[0] > after_key_base64
    ]
    values = [
        {"key": rpc_json.base64(key), "value": rpc_json.base64(value)}
        for key, value in records[:limit]
    ]
    last_key = {"last_key": values[-1]["key"]} if len(values) < len(records) else {}
    return {"values": values} | ({"proof": []} if include_proof else {}) | last_key


def _call_function(
    at: Snapshot, account_id: AccountId, method_name: str, args_base64: bytes
) -> Object:
    if at.state.code_hash(at.account(account_id)) is None:
        raise _no_code(at, account_id, query_message=_call_message(CodeError(account_id)))
    try:
        outcome = at.world.view(account_id, method_name, args_base64, at.block)
    except CallError as error:
        message = _call_message(error)
        cause = f"Function call returned an error: {message}"
        raise at.error(
            "CONTRACT_EXECUTION_ERROR", cause, query_message=message, vm_error=error.failure
        ) from None
    return {"result": list(outcome.result), "logs": list(outcome.logs)}


def _call_message(error: CallError) -> str:
    return f"wasm execution failed with error: {error.view_message}"


_Parsers = dict[str, Callable[[Any], Any]]
_ACCOUNT: _Parsers = {"account_id": read.account_id}
_ACCOUNT_AND_KEY: _Parsers = _ACCOUNT | {"public_key": read.public_key}
# By request type: its function, and the parsers of its required and its optional members.
_TYPES: dict[str, tuple[Callable[..., Object], _Parsers, _Parsers]] = {
    "view_account": (_view_account, _ACCOUNT, {}),
    "view_code": (_view_code, _ACCOUNT, {}),
    "view_state": (
        _view_state,
        _ACCOUNT | {"prefix_base64": read.base64},
        {"include_proof": read.boolean, "after_key_base64": read.base64, "limit": read.limit},
    ),
    "view_access_key": (_view_access_key, _ACCOUNT_AND_KEY, {}),
    "view_access_key_list": (
        _view_access_key_list,
        _ACCOUNT,
        {"after_key": read.stored_key, "limit": read.limit},
    ),
    "view_gas_key_nonces": (_view_gas_key_nonces, _ACCOUNT_AND_KEY, {}),
    "call_function": (
        _call_function,
        _ACCOUNT | {"method_name": read.text, "args_base64": read.base64},
        {},
    ),
    "view_global_contract_code": (_view_global_code, {"code_hash": read.crypto_hash}, {}),
    "view_global_contract_code_by_account_id": (_view_global_code, _ACCOUNT, {}),
}
# The types with their own method.
SINGLE_TYPES = (
    *("view_account", "view_code", "view_state", "view_access_key", "view_access_key_list"),
    *("view_gas_key_nonces", "call_function"),
)
