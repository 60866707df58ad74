"""
What accounts, keys, code and records are at a block, and what a contract's views return.

A request is read into a `View` first, and only then its block is looked for. The methods
named for themselves answer with errors alone; `query` tells two of these as results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import rpc_json
from ledgerkit.localnet.execution_errors import CallError, CodeError
from ledgerkit.localnet.rpc import blocks
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import HandlerError, Object, ParseError
from ledgerkit.protocol import AccountId, CryptoHash, PublicKey

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Account, Block
    from ledgerkit.localnet.rpc.params import Members, Reference
    from ledgerkit.localnet.state import State
    from ledgerkit.localnet.world import World

MOST_STATE = 50_000  # bytes of records that are shown at once
_MOST_PATH = 10 * 1024
_BASE58_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class At:
    """
    The world at a block.

    Parameters
    ----------
    world
        The world.
    block
        The block; its state is still kept.
    """

    __slots__ = ("block", "state", "world")

    def __init__(self, world: World, block: Block) -> None:
        self.world, self.block = world, block
        self.state: State = world.state(block.height)

    @property
    def where(self) -> Object:
        """Which block, as every answer tells."""
        return where(self.block)

    def account(self, account_id: AccountId) -> Account:
        """Give an account that must exist."""
        found = self.state.account(account_id)
        if found is None:
            data = f"account {account_id} does not exist while viewing"
            raise self.failure("UNKNOWN_ACCOUNT", data, requested_account_id=account_id)
        return found

    def failure(
        self, cause: str, data: str, *, told: str | None = None, **info: Any
    ) -> HandlerError:
        """Say why there is no answer at this block."""
        return HandlerError(cause, data, info | self.where, told=told)


View = Callable[[At], Object]


def where(block: Block) -> Object:
    """Tell a block's height and hash."""
    return {"block_height": block.height, "block_hash": block.hash}


# Methods ---------------------------------------------------------------------------------


def query(world: World, params: Any) -> Object:
    """Answer `query`: a failed call and a missing key are results."""
    reference, view = _request(params)
    block = _find(world, reference)
    try:
        return _look(world, block, view)
    except HandlerError as error:
        if error.told is None:
            raise
        return {"error": error.told, "logs": []} | where(block)


def answer(request_type: str, world: World, params: Any) -> Object:
    """Answer a method that is named for one type of request."""
    held = read.members(params)
    reference = read.reference(held)
    view = _VIEWS[request_type](held)
    return _look(world, _find(world, reference), view)


def access_key_list(world: World, params: Any) -> Object:
    """Answer `EXPERIMENTAL_view_access_key_list`: here the account must exist."""
    held = read.members(params)
    reference = read.reference(held)
    view = _access_key_list(held)
    at = At(world, _find(world, reference))
    at.account(read.account_id(held["account_id"]))
    return view(at) | at.where


def _look(world: World, block: Block, view: View) -> Object:
    """Look at a block's state."""
    at = At(world, block)
    return view(at) | at.where


def _find(world: World, reference: Reference) -> Block:
    """Find a block whose state is kept."""
    block = blocks.named(world, reference)
    if block is None:
        info = {"block_reference": reference.shown}
        raise blocks.unknown(world, reference, info, "BLOCK HEADER")
    if blocks.is_dropped(world, block):
        data = (
            f"The data for block #{block.height} is garbage collected on this node, "
            "use an archival node to fetch historical data"
        )
        raise HandlerError("GARBAGE_COLLECTED_BLOCK", data, where(block))
    return block


def _request(params: Any) -> tuple[Reference, View]:
    """Read the params of `query`: an object, or a path and its data."""
    both = read.pair(params)
    if both is not None:
        return read.LATEST, _by_path(read.text(both[0]), read.text(both[1]))
    held = read.members(params)
    reference = read.reference(held)
    request_type = read.member(held, "request_type", read.one_of(tuple(_VIEWS)))
    return reference, _VIEWS[request_type](held)


def _by_path(path: str, data: str) -> View:
    """Read a request in the old form, such as ``call/alice.near/method``."""
    command, *rest = path.split("/", 2)
    if not rest:
        raise ParseError("Not enough query parameters provided")
    try:
        held: Members = {"account_id": AccountId(rest[0])}
    except InvalidRequestError:
        raise ParseError(read.account_rule(rest[0])) from None
    more = rest[1:]
    if command == "access_key" and more:
        return _path_key(held["account_id"], more[0])
    if command == "call":
        return _path_call(held["account_id"], more, _base58(data, path))
    if command == "contract":
        return _state_of(held["account_id"], _base58(data, path))
    names = {"account": "view_account", "code": "view_code", "access_key": "view_access_key_list"}
    if command not in names:
        raise ParseError(f"Unknown path {command}")
    return _VIEWS[names[command]](held)


def _path_key(account_id: AccountId, written: str) -> View:
    """Read the request for one access key, in the old form."""
    try:
        public_key = PublicKey.from_text(written)
    except InvalidRequestError:
        raise ParseError("Invalid public key") from None
    return partial(_show_access_key, account_id, public_key)


def _path_call(account_id: AccountId, more: list[str], args: bytes) -> View:
    """Read a call, in the old form."""
    if not more:
        raise ParseError("Method name is missing")
    return partial(_show_call, account_id, more[0], args)


def _base58(data: str, path: str) -> bytes:
    """Read the data that goes with a path."""
    if len(data) + len(path) > _MOST_PATH:
        raise ParseError("Query data size is too large")
    number = 0
    for at, char in enumerate(data):
        digit = _BASE58_ALPHABET.find(char)
        if digit < 0:
            message = f"provided string contained invalid character {char!r} at byte {at}"
            raise ParseError(message)
        number = number * 58 + digit
    zeros = len(data) - len(data.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


# Accounts, keys, code --------------------------------------------------------------------


def _account(held: Members) -> View:
    """Read the request for an account."""
    account_id = read.member(held, "account_id", read.account_id)
    return lambda at: rpc_json.account(at.account(account_id))


def _code(held: Members) -> View:
    """Read the request for an account's code, its own or the global one that it uses."""
    account_id = read.member(held, "account_id", read.account_id)

    def show(at: At) -> Object:
        code_hash = at.state.code_hash(at.account(account_id))
        if code_hash is None:
            raise _no_code(at, account_id, told=None)
        return _show_code(at, code_hash)

    return show


def _show_code(at: At, code_hash: CryptoHash) -> Object:
    """Show code."""
    return {"code_base64": rpc_json.base64(at.state.store.codes[code_hash]), "hash": code_hash}


def _no_code(at: At, account_id: AccountId, *, told: str | None) -> HandlerError:
    """Say that an account has no code."""
    data = (
        f"Contract code for contract ID #{account_id} has never been observed on the node "
        f"at block #{at.block.height}"
    )
    return at.failure("NO_CONTRACT_CODE", data, told=told, contract_account_id=account_id)


def _global_code(held: Members) -> View:
    """Read the request for global code, by its hash."""
    code_hash = read.member(held, "code_hash", read.crypto_hash)
    return partial(_show_global_code, code_hash, {"hash": code_hash})


def _global_code_by_account(held: Members) -> View:
    """Read the request for global code, by the account that publishes it."""
    account_id = read.member(held, "account_id", read.account_id)
    return partial(_show_global_code, account_id, {"account_id": account_id})


def _show_global_code(contract: CryptoHash | AccountId, identifier: Object, at: At) -> Object:
    """Show global code."""
    code_hash = at.state.global_code_hash(contract)
    if code_hash is None:
        data = (
            f"Global contract code with identifier {contract} has never been observed on the "
            f"node at block #{at.block.height}"
        )
        raise at.failure("NO_GLOBAL_CONTRACT_CODE", data, identifier=identifier)
    return _show_code(at, code_hash)


def _access_key(held: Members) -> View:
    """Read the request for an access key."""
    account_id = read.member(held, "account_id", read.account_id)
    public_key = read.member(held, "public_key", read.public_key)
    return partial(_show_access_key, account_id, public_key)


def _show_access_key(account_id: AccountId, public_key: PublicKey, at: At) -> Object:
    """Show an access key."""
    at.account(account_id)
    found = at.state.access_key(account_id, public_key.packed)
    if found is None:
        data = (
            f"Access key for public key {public_key} has never been observed on the node "
            f"at block #{at.block.height}"
        )
        told = f"access key {public_key} does not exist while viewing"
        raise at.failure("UNKNOWN_ACCESS_KEY", data, told=told, public_key=str(public_key))
    return rpc_json.access_key(found)


def _access_key_list(held: Members) -> View:
    """Read the request for all access keys of an account."""
    account_id = read.member(held, "account_id", read.account_id)
    after = read.optional(held, "after_key", read.public_key)
    most = read.optional(held, "limit", read.limit)

    def show(at: At) -> Object:
        keys = at.state.access_keys(account_id)
        wanted = [entry for entry in keys if after is None or entry[0] > after.packed]
        rows = [
            {"public_key": rpc_json.public_key_text(packed), "access_key": rpc_json.access_key(key)}
            for packed, key in wanted[:most]
        ]
        more = {"last_key": rows[-1]["public_key"]} if len(rows) < len(wanted) else {}
        return {"keys": rows} | more

    return show


def _gas_key_nonces(held: Members) -> View:
    """Read the request for a gas key's nonces: this chain has no gas keys."""
    account_id = read.member(held, "account_id", read.account_id)
    public_key = read.member(held, "public_key", read.public_key)

    def show(at: At) -> Object:
        at.account(account_id)
        data = (
            f"Gas key for public key {public_key} has never been observed on the node "
            f"at block #{at.block.height}"
        )
        raise at.failure("UNKNOWN_GAS_KEY", data, public_key=str(public_key))

    return show


# Records and calls -----------------------------------------------------------------------


def _state(held: Members) -> View:
    """Read the request for a contract's records."""
    account_id = read.member(held, "account_id", read.account_id)
    prefix = read.member(held, "prefix_base64", read.base64)
    proof = read.optional(held, "include_proof", read.boolean)
    after = read.optional(held, "after_key_base64", read.base64)
    most = read.optional(held, "limit", read.limit)
    return _state_of(account_id, prefix, after, most, proof=bool(proof))


def _state_of(
    account_id: AccountId,
    prefix: bytes,
    after: bytes | None = None,
    most: int | None = None,
    *,
    proof: bool = False,
) -> View:
    """Prepare to show a contract's records, those after a key, so many at most."""

    def show(at: At) -> Object:
        account = at.account(account_id)
        if most is None:
            _check_size(at, account_id, account)
        records = at.state.records(account_id, prefix)
        wanted = [entry for entry in records if after is None or entry[0] > after]
        values = [
            {"key": rpc_json.base64(key), "value": rpc_json.base64(value)}
            for key, value in wanted[:most]
        ]
        more = {"last_key": values[-1]["key"]} if len(values) < len(wanted) else {}
        return {"values": values} | ({"proof": []} if proof else {}) | more

    return show


def _check_size(at: At, account_id: AccountId, account: Account) -> None:
    """Refuse to show more records at once than a node does."""
    if account.storage_usage - len(at.state.store.codes[account.code_hash]) > MOST_STATE:
        data = f"State of contract {account_id} is too large to be viewed"
        raise at.failure("TOO_LARGE_CONTRACT_STATE", data, contract_account_id=account_id)


def _call(held: Members) -> View:
    """Read a view call."""
    account_id = read.member(held, "account_id", read.account_id)
    method_name = read.member(held, "method_name", read.text)
    args = read.member(held, "args_base64", read.base64)
    return partial(_show_call, account_id, method_name, args)


def _show_call(account_id: AccountId, method_name: str, args: bytes, at: At) -> Object:
    """Show what a view returns."""
    if at.state.code_hash(at.account(account_id)) is None:
        raise _no_code(at, account_id, told=_call_text(CodeError(account_id)))
    try:
        called = at.world.view(account_id, method_name, args, at.block)
    except CallError as error:
        raise _failed_call(at, error) from None
    return {"result": list(called.result), "logs": list(called.logs)}


def _failed_call(at: At, error: CallError) -> HandlerError:
    """Say why a view failed."""
    told = _call_text(error)
    data = f"Function call returned an error: {told}"
    return at.failure("CONTRACT_EXECUTION_ERROR", data, told=told, vm_error=error.failure)


def _call_text(error: CallError) -> str:
    """Write why a view failed."""
    return f"wasm execution failed with error: {error.view_message}"


_VIEWS: dict[str, Callable[[Members], View]] = {
    "view_account": _account,
    "view_code": _code,
    "view_state": _state,
    "view_access_key": _access_key,
    "view_access_key_list": _access_key_list,
    "view_gas_key_nonces": _gas_key_nonces,
    "call_function": _call,
    "view_global_contract_code": _global_code,
    "view_global_contract_code_by_account_id": _global_code_by_account,
}
