"""
A world that continues another network from one of its blocks.

Accounts, keys, code and storage records are read from the network when they are first needed, at
that block, and then change only here. Nothing is ever sent there.
"""

from __future__ import annotations

import copy
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ledgerkit.errors import (
    DecodeError,
    InvalidRequestError,
    LedgerError,
    NoContractCodeError,
    NoGlobalContractCodeError,
    TooLargeContractStateError,
    UnknownAccountError,
    UnknownBlockError,
)
from ledgerkit.localnet.chain_types import NO_CODE, Account
from ledgerkit.localnet.clock import UnansweredError
from ledgerkit.localnet.fees import PROFILES
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.rpc import params
from ledgerkit.localnet.rpc.errors import ParseError
from ledgerkit.localnet.sandbox import records as state_records
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.state import Journal, StateStore, VersionedTable, nonce_key, split_nonce_key
from ledgerkit.localnet.world import World
from ledgerkit.protocol import AccessKey, CryptoHash, PublicKey
from ledgerkit.protocol.access_keys import GasKey

Read = Callable[[str, Any], Any]  # calls a method of the network's JSON-RPC, returns its result
P = ParamSpec("P")
V = TypeVar("V")
_HEAD = 2**64
_STATE_PER_PAGE = 1000  # records


class SourceError(UnansweredError):
    """A value of the network could not be read; the chain is as it was before."""


@contextmanager
def _decoding() -> Iterator[None]:
    try:
        yield
    except ParseError as error:
        reason = error.message.removeprefix(params.FAILED)
        raise DecodeError(reason, path="$.result") from error


def _read_once(
    read: Callable[Concatenate[Source, P], V],
) -> Callable[Concatenate[Source, P], V]:

    @wraps(read)
    def read_value(source: Source, /, *args: P.args, **kwargs: P.kwargs) -> V:
        key = (read.__name__, *args)
        if key not in source.values:
            try:
                with _decoding():
                    source.values[key] = read(source, *args, **kwargs)
            except LedgerError as error:
                raise SourceError(error) from error
        value: V = source.values[key]
        return value

    return read_value


class Source:
    """The state of a network after one block, each value read once."""

    def __init__(self, read: Read, block_hash: str, network: str) -> None:
        self._read, self.block_hash, self.network = read, block_hash, network
        self.values: dict[tuple[Any, ...], Any] = {}
        self.codes = _Codes(self)

    def _query(self, request_type: str, **fields: Any) -> dict[str, Any]:
        # An account id is a text of its own class, which JSON does not have.
        texts = {name: str(v) if isinstance(v, str) else v for name, v in fields.items()}
        query = {"request_type": request_type, "block_id": self.block_hash, **texts}
        result = self._read("query", query)
        if not isinstance(result, dict) or result.get("block_hash") != self.block_hash:
            msg = f"{self.network} sent no {request_type} at block {self.block_hash}"
            raise DecodeError(msg, path="$.result.block_hash")
        return result

    @_read_once
    def account(self, account_id: str) -> Account | None:
        try:
            result = self._query("view_account", account_id=account_id)
        except UnknownAccountError:
            return None
        account = state_records.account(result | {"version": "V2"})
        self.codes.owners.setdefault(account.code_hash, account_id)
        return account

    def access_key(self, account_id: str, packed: bytes) -> AccessKey | None:
        if self.account(account_id) is None:
            return None
        is_listed = ("access_keys", account_id) in self.values
        if is_listed or not PublicKey.from_stored(packed).packed:  # a hash is in lists only
            return self.access_keys(account_id).get(packed)
        return self._single_key(account_id, packed)

    @_read_once
    def _single_key(self, account_id: str, packed: bytes) -> AccessKey | None:
        key = str(PublicKey.from_stored(packed))
        result = self._query("view_access_key", account_id=account_id, public_key=key)
        return None if "error" in result else _parse_access_key(result)

    @_read_once
    def access_keys(self, account_id: str) -> dict[bytes, AccessKey]:
        if self.account(account_id) is None:
            return {}
        keys: dict[bytes, AccessKey] = {}
        page: dict[str, Any] = {}
        while True:
            result = self._query("view_access_key_list", account_id=account_id, **page)
            for entry in params.member(result, "keys", params.many(params.members)):
                packed = params.member(entry, "public_key", params.stored_key).stored
                keys[packed] = params.member(entry, "access_key", _parse_access_key)
            last_key = result.get("last_key")
            if last_key is None or last_key == page.get("after_key"):
                return keys
            page = {"after_key": last_key}

    def nonce(self, account_id: str, key: bytes) -> int | None:
        packed, index = split_nonce_key(key)
        nonces = self._nonces_of_key(account_id, packed)
        return nonces[index] if index < len(nonces) else None

    def nonces(self, account_id: str) -> dict[bytes, int]:
        return {
            nonce_key(packed, index): nonce
            for packed in self.access_keys(account_id)
            for index, nonce in enumerate(self._nonces_of_key(account_id, packed))
        }

    def _nonces_of_key(self, account_id: str, packed: bytes) -> list[int]:
        key = self.access_key(account_id, packed)
        is_gas_key = key is not None and isinstance(key.permission, GasKey)
        return self._gas_key_nonces(account_id, packed) if is_gas_key else []

    @_read_once
    def _gas_key_nonces(self, account_id: str, packed: bytes) -> list[int]:
        fields = {"account_id": account_id, "public_key": str(PublicKey.from_stored(packed))}
        result = self._query("view_gas_key_nonces", **fields)
        return params.member(result, "nonces", params.many(params.u64))

    def record(self, account_id: str, key: bytes) -> bytes | None:
        """Return a record's value: from the whole state if it is small or listed, else by key."""
        state = self._state(account_id)
        if state is None:
            state = self.values.get(("_paged_state", account_id))
        return self._single_record(account_id, key) if state is None else state.get(key)

    @_read_once
    def _single_record(self, account_id: str, key: bytes) -> bytes | None:
        return self._view_state(account_id, key, limit=1)[0].get(key)

    def records(self, account_id: str) -> dict[bytes, bytes]:
        """Return all storage records of a contract; fail if the network does not list them."""
        state = self._state(account_id)
        return self._paged_state(account_id) if state is None else state

    @_read_once
    def _paged_state(self, account_id: str) -> dict[bytes, bytes]:
        return self._all_pages(account_id, limit=_STATE_PER_PAGE)

    @_read_once
    def _state(self, account_id: str) -> dict[bytes, bytes] | None:
        """Return the whole state of a contract; None if the network does not list it."""
        try:
            return self._all_pages(account_id) if self.account(account_id) else {}
        except TooLargeContractStateError:
            return None

    def _all_pages(self, account_id: str, **page: Any) -> dict[bytes, bytes]:
        state: dict[bytes, bytes] = {}
        while True:
            records, last_key = self._view_state(account_id, b"", **page)
            state |= records
            if last_key is None:
                return state
            if last_key == page.get("after_key_base64"):
                msg = f"{self.network} sent a page of {account_id} that does not advance"
                raise DecodeError(msg, path="$.result.last_key")
            page["after_key_base64"] = last_key

    def _view_state(
        self, account_id: str, prefix: bytes, **page: Any
    ) -> tuple[dict[bytes, bytes], str | None]:
        """Return the records of a page, and the last key if more pages follow."""
        encoded = b64encode(prefix).decode()
        result = self._query("view_state", account_id=account_id, prefix_base64=encoded, **page)
        records = params.member(result, "values", params.many(_parse_record))
        return dict(records), params.optional(result, "last_key", params.text)

    @_read_once
    def code(self, account_id: str, code_hash: CryptoHash) -> bytes:
        """Return the code of an account; its hash must match."""
        return _parse_code(self._query("view_code", account_id=account_id), code_hash)

    @_read_once
    def global_code(self, name: str) -> CryptoHash | None:
        """Return the hash of a global contract, or None; store its code too."""
        try:
            result = self._query(**_global_code_query(name))
        except (NoGlobalContractCodeError, NoContractCodeError, UnknownAccountError):
            return None
        code_hash = params.member(result, "hash", params.crypto_hash)
        self.codes.setdefault(code_hash, _parse_code(result, code_hash))
        return code_hash

    @_read_once
    def height_of(self, block_hash: CryptoHash) -> int | None:
        try:
            block = self._read("block", {"block_id": str(block_hash)})
        except UnknownBlockError:
            return None
        header = params.member(params.members(block), "header", params.members)
        return params.member(header, "height", params.u64)


def _global_code_query(name: str) -> dict[str, str]:
    """Build the query for a global contract by its name in the state: a hash or an owner."""
    if len(name) == 2 * len(NO_CODE) and all(char in "0123456789abcdef" for char in name):
        code_hash = str(CryptoHash(bytes.fromhex(name)))
        return {"request_type": "view_global_contract_code", "code_hash": code_hash}
    return {"request_type": "view_global_contract_code_by_account_id", "account_id": name}


def _parse_access_key(result: Any) -> AccessKey:
    """Parse an access key; a node writes the two parts of a gas key for calls as one object."""
    permission = params.member(params.members(result), "permission", params.anything)
    if isinstance(permission, dict) and "GasKeyFunctionCall" in permission:
        call = permission["GasKeyFunctionCall"]
        result = result | {"permission": {"GasKeyFunctionCall": [call, call]}}
    return state_records.access_key(result)


def _parse_record(value: Any) -> tuple[bytes, bytes]:
    members = params.members(value)
    key = params.member(members, "key", params.base64)
    return key, params.member(members, "value", params.base64)


def _parse_code(result: dict[str, Any], code_hash: CryptoHash) -> bytes:
    """Parse code, whose hash must match."""
    code = params.member(result, "code_base64", params.base64)
    if CryptoHash.of(code) != code_hash:
        raise DecodeError(f"the code of {code_hash} has another hash", path="$.result.code_base64")
    return code


# The state -------------------------------------------------------------------------------


class _ForkedTable(VersionedTable[Any]):
    """A table whose values come from the network until they are written here."""

    def __init__(
        self,
        kind: str,
        journal: Journal,
        load: Callable[[str, bytes], Any],
        list_keys: Callable[[str], Iterable[bytes]],
    ) -> None:
        super().__init__(kind, journal)
        self._load, self._list_keys = load, list_keys
        self._written: set[tuple[str, bytes]] = set()

    def get(self, account_id: str, key: bytes = b"", height: int = _HEAD) -> Any:
        if (account_id, key) in self._written:
            return super().get(account_id, key, height)
        return self._load(account_id, key)

    def put(self, account_id: str, key: bytes, value: Any) -> None:
        if (account_id, key) not in self._written:
            original = self._load(account_id, key)
            self._written.add((account_id, key))
            if original is not None:
                self.head.setdefault(account_id, {})[key] = original
        super().put(account_id, key, value)

    def keys(self, account_id: str, _height: int) -> set[bytes]:
        written = {key for name, key in self._written if name == account_id}
        return written.union(self._list_keys(account_id))


class _Codes(dict[CryptoHash, bytes]):
    """Code by hash, read from the network through an account that runs it."""

    def __init__(self, source: Source) -> None:
        super().__init__({NO_CODE: b""})
        self._source = source
        self.owners: dict[CryptoHash, str] = {}

    def __missing__(self, code_hash: CryptoHash) -> bytes:
        code = self._source.code(self.owners[code_hash], code_hash)
        self[code_hash] = code
        return code

    def __deepcopy__(self, _memo: dict[int, Any]) -> _Codes:
        return self  # the code of a hash never changes


class ForkedStore(StateStore):
    """The state of a network, with local changes."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.codes = source.codes
        tables: tuple[tuple[str, Callable[..., Any], Callable[[str], Iterable[bytes]]], ...] = (
            # Accounts and global contracts have one value per name.
            ("account", lambda account_id, _: source.account(account_id), lambda _: ()),
            ("access_key", source.access_key, source.access_keys),
            ("gas_key_nonce", source.nonce, source.nonces),
            ("data", source.record, source.records),
            ("global_code", lambda name, _: source.global_code(name), lambda _: ()),
        )
        forked = [_ForkedTable(kind, self._journal, load, keys) for kind, load, keys in tables]
        self.accounts, self.access_keys, self.gas_key_nonces, self.data, self.global_codes = forked


# The world -------------------------------------------------------------------------------


class ForkedWorld(World):
    """A world that continues a network after one of its blocks."""

    def __init__(self, read: Read, network: str, block_hash: str) -> None:
        block = read("block", {"block_id": block_hash})
        status = read("status", [])
        validators = read("validators", [None])
        self.source = Source(read, block_hash, network)
        genesis = Genesis(ForkedStore(self.source))
        with _decoding():
            header = params.member(params.members(block), "header", params.members)
            genesis.total_supply = params.member(header, "total_supply", state_records.balance)
            settings = Settings(
                chain_id=f"fork-of-{network}",
                profile=_newest_profile(params.member(status, "protocol_version", params.u64)),
                genesis_height=params.member(header, "height", params.u64),
                genesis_time_ns=params.member(header, "timestamp_nanosec", state_records.balance),
                gas_price=params.member(header, "gas_price", state_records.balance),
            )
            epoch_height = params.member(validators, "epoch_height", params.u64)
        super().__init__(settings, genesis)
        self.epochs.current.height = epoch_height

    def __repr__(self) -> str:
        head, values = self.chain.head.height, len(self.source.values)
        start = self.settings.genesis_height
        return (
            f"<World fork of {self.source.network} at block {start}: block {head}, "
            f"{values} values read>"
        )

    def _height_of(self, block_hash: CryptoHash) -> int | None:
        height = super()._height_of(block_hash)
        return self.source.height_of(block_hash) if height is None else height

    def _make_block(self, height: int, missing: frozenset[int]) -> None:
        """Produce a block, or none if a value could not be read."""
        saved = self._copy_state() if self.is_busy else None
        try:
            super()._make_block(height, missing)
        except SourceError:
            if saved is not None:
                self.__dict__.update(saved)
            raise

    def _copy_state(self) -> dict[str, Any]:
        shared = (self.source, self.lock, self.settings, self._memo, self.summary)
        state: dict[str, Any] = copy.deepcopy(self.__dict__, {id(value): value for value in shared})
        return state


def _newest_profile(version: int) -> Any:
    """Return the newest supported version that is not above a protocol version."""
    supported = [name for name in PROFILES if int(name) <= version]
    if not supported:
        oldest = min(PROFILES, key=int)
        msg = f"the network runs protocol version {version}; the embedded ledger knows {oldest} on"
        raise InvalidRequestError(msg, field="fork", value=version)
    return max(supported, key=int)
