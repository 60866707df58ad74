"""
A world that continues another network from one of its blocks.

Accounts, keys, code and storage records are read from the network when they are first needed, at
that block, and then change only here. Nothing is ever sent there.
"""

from __future__ import annotations

import copy
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

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
from ledgerkit.localnet.fees import PROFILES
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.state import StateStore, VersionedTable, nonce_key, split_nonce_key
from ledgerkit.localnet.world import World
from ledgerkit.protocol import (
    AccessKey,
    CryptoHash,
    FullAccess,
    FunctionCallPermission,
    GasKeyFullAccess,
    GasKeyFunctionCall,
    PublicKey,
)
from ledgerkit.protocol.access_keys import GasKey
from ledgerkit.validation import HASH_BYTES, decode_base58

if TYPE_CHECKING:
    from ledgerkit.localnet.state import Journal
    from ledgerkit.protocol.access_keys import Permission

Read = Callable[[str, Any], Any]  # calls a method of the network's JSON-RPC, returns its result
V = TypeVar("V")
_HEAD = 2**64


class SourceError(Exception):
    """A value of the network could not be read; the chain is as it was before."""

    def __init__(self, error: LedgerError) -> None:
        super().__init__(str(error))
        self.error = error


class Source:
    """The state of a network after one block, each value read once."""

    def __init__(self, read: Read, block_hash: str, network: str) -> None:
        self._read, self.block_hash, self.network = read, block_hash, network
        self._values: dict[tuple[Any, ...], Any] = {}
        self._states: dict[str, dict[bytes, bytes] | None] = {}  # None: too large to be listed

    @property
    def n_values(self) -> int:
        """The number of values that were read."""
        return len(self._values)

    def _once(self, key: tuple[Any, ...], load: Callable[[], V]) -> V:
        """Return a value, read at most once."""
        if key not in self._values:
            try:
                self._values[key] = load()
            except LedgerError as error:
                raise SourceError(error) from error
        value: V = self._values[key]
        return value

    def _query(self, request_type: str, **fields: Any) -> dict[str, Any]:
        """Query the state after the block."""
        # JSON has no account ids, which are texts of their own class.
        texts = {name: str(v) if isinstance(v, str) else v for name, v in fields.items()}
        params = {"request_type": request_type, "block_id": self.block_hash, **texts}
        result = self._read("query", params)
        if not isinstance(result, dict) or result.get("block_hash") != self.block_hash:
            msg = f"{self.network} sent no {request_type} at block {self.block_hash}"
            raise DecodeError(msg, path="$.result.block_hash")
        return result

    def account(self, account_id: str) -> Account | None:
        """Return an account, or None."""

        def load() -> Account | None:
            try:
                result = self._query("view_account", account_id=account_id)
            except UnknownAccountError:
                return None
            return _account(result)

        return self._once(("account", account_id), load)

    def access_key(self, account_id: str, packed: bytes) -> AccessKey | None:
        """Return the access key of a packed public key, or None."""
        listed = self._values.get(("keys", account_id))
        if listed is not None:
            key: AccessKey | None = listed.get(packed)
            return key

        def load() -> AccessKey | None:
            result = self._query(
                "view_access_key", account_id=account_id, public_key=str(_public_key(packed))
            )
            return None if "error" in result else _access_key(result)

        return self._once(("key", account_id, packed), load)

    def access_keys(self, account_id: str) -> dict[bytes, AccessKey]:
        """Return all access keys of an account, by packed public key."""

        def load() -> dict[bytes, AccessKey]:
            keys: dict[bytes, AccessKey] = {}
            page: dict[str, Any] = {}
            while True:
                result = self._query("view_access_key_list", account_id=account_id, **page)
                for entry in result["keys"]:
                    packed = PublicKey.from_text(entry["public_key"]).stored
                    keys[packed] = _access_key(entry["access_key"])
                last_key = result.get("last_key")
                if last_key is None or last_key == page.get("after_key"):
                    return keys
                page = {"after_key": last_key}

        return self._once(("keys", account_id), load)

    def gas_key_nonces(self, account_id: str, packed: bytes) -> list[int]:
        """Return the nonces of a gas key, none for another key."""
        access_key = self.access_key(account_id, packed)
        if access_key is None or not isinstance(access_key.permission, GasKey):
            return []

        def load() -> list[int]:
            key = str(_public_key(packed))
            fields = {"account_id": account_id, "public_key": key}
            return [int(nonce) for nonce in self._query("view_gas_key_nonces", **fields)["nonces"]]

        return self._once(("nonces", account_id, packed), load)

    def record(self, account_id: str, key: bytes) -> bytes | None:
        """Return a storage record's value: from the whole state if it is small, else by its key."""
        state = self._state(account_id)
        if state is not None:
            return state.get(key)

        def load() -> bytes | None:
            return self._view_state(account_id, key, limit=1).get(key)

        return self._once(("record", account_id, key), load)

    def records(self, account_id: str) -> dict[bytes, bytes]:
        """Return all storage records of a contract; fail if the network does not list them."""
        state = self._state(account_id)
        if state is None:
            msg = f"The state of {account_id} is too large for {self.network} to list"
            raise SourceError(
                TooLargeContractStateError(
                    msg, remedy="Ask a node of your own, which has no such limit."
                )
            )
        return state

    def _state(self, account_id: str) -> dict[bytes, bytes] | None:
        """Return the whole state of a contract; None if the network does not list it."""

        def load() -> dict[bytes, bytes] | None:
            try:
                return self._view_state(account_id, b"")
            except TooLargeContractStateError:
                return None

        return self._once(("state", account_id), load)

    def _view_state(self, account_id: str, prefix: bytes, **page: int) -> dict[bytes, bytes]:
        """Read the storage records with a prefix."""
        encoded = b64encode(prefix).decode()
        result = self._query("view_state", account_id=account_id, prefix_base64=encoded, **page)
        return {b64decode(each["key"]): b64decode(each["value"]) for each in result["values"]}

    def code(self, account_id: str, code_hash: CryptoHash) -> bytes:
        """Return the code of an account, whose hash is known."""

        def load() -> bytes:
            return _code(self._query("view_code", account_id=account_id), code_hash)

        return self._once(("code", code_hash), load)

    def global_code(self, name: str) -> tuple[CryptoHash, bytes] | None:
        """Return the hash and the code of a global contract, or None."""

        def load() -> tuple[CryptoHash, bytes] | None:
            try:
                result = self._query(*_global_request(name)[:1], **_global_request(name)[1])
            except (NoGlobalContractCodeError, NoContractCodeError, UnknownAccountError):
                return None
            code_hash = _hash(result["hash"])
            return code_hash, _code(result, code_hash)

        return self._once(("global", name), load)

    def height_of(self, block_hash: CryptoHash) -> int | None:
        """Return the height of a block of the network, or None."""

        def load() -> int | None:
            try:
                header = self._read("block", {"block_id": str(block_hash)})["header"]
            except UnknownBlockError:
                return None
            return int(header["height"])

        return self._once(("block", block_hash), load)


def _global_request(name: str) -> tuple[str, dict[str, str]]:
    """Return the request for a global contract by its name in the state: a hash or an owner."""
    if len(name) == 2 * len(NO_CODE) and all(char in "0123456789abcdef" for char in name):
        code_hash = str(CryptoHash(bytes.fromhex(name)))
        return "view_global_contract_code", {"code_hash": code_hash}
    return "view_global_contract_code_by_account_id", {"account_id": name}


def _hash(text: str) -> CryptoHash:
    """Read a hash."""
    data = decode_base58(text, HASH_BYTES)
    if data is None:
        raise DecodeError(f"{text!r} is not a hash", path="$.result")
    return CryptoHash(data)


def _account(result: dict[str, Any]) -> Account:
    """Read an account."""
    by_hash, owner_id = result.get("global_contract_hash"), result.get("global_contract_account_id")
    return Account(
        int(result["amount"]),
        int(result["locked"]),
        _hash(result["code_hash"]),
        int(result["storage_usage"]),
        owner_id if by_hash is None else _hash(by_hash),
    )


def _access_key(result: dict[str, Any]) -> AccessKey:
    """Read an access key."""
    return AccessKey(int(result["nonce"]), _permission(result["permission"]))


def _permission(value: Any) -> Permission:
    """Read the permission of an access key."""
    if value == "FullAccess":
        return FullAccess()
    [(kind, members)] = value.items()
    if kind == "GasKeyFullAccess":
        return GasKeyFullAccess(int(members["balance"]), members["num_nonces"])
    allowance = members["allowance"]
    limit = None if allowance is None else int(allowance)
    call = (limit, members["receiver_id"], tuple(members["method_names"]))
    if kind == "FunctionCall":
        return FunctionCallPermission(*call)
    if kind == "GasKeyFunctionCall":
        return GasKeyFunctionCall(int(members["balance"]), members["num_nonces"], *call)
    msg = f"an access key has the permission {kind!r}, which is not known"
    raise DecodeError(msg, path="$.result.permission")


def _code(result: dict[str, Any], code_hash: CryptoHash) -> bytes:
    """Read code, which must have the hash."""
    code = b64decode(result["code_base64"])
    if CryptoHash.of(code) != code_hash:
        raise DecodeError(f"the code of {code_hash} has another hash", path="$.result.code_base64")
    return code


def _public_key(packed: bytes) -> PublicKey:
    """Return the public key of its packed bytes."""
    return PublicKey.decode(packed)


# The state -------------------------------------------------------------------------------


class _ForkedTable(VersionedTable[Any]):
    """A table whose values come from the network until they are written here."""

    def __init__(
        self,
        kind: str,
        journal: Journal,
        load: Callable[[str, bytes], Any],
        load_all: Callable[[str], Iterator[tuple[bytes, Any]]],
    ) -> None:
        super().__init__(kind, journal)
        self._load, self._load_all = load, load_all
        self._written: set[tuple[str, bytes]] = set()

    def get(self, account_id: str, key: bytes = b"", height: int = _HEAD) -> Any:
        """Return the value after the block of a height, or None."""
        if (account_id, key) in self._written:
            return super().get(account_id, key, height)
        return self._load(account_id, key)

    def put(self, account_id: str, key: bytes, value: Any) -> None:
        """Write a value, or delete it with None."""
        if (account_id, key) not in self._written:
            original = self._load(account_id, key)
            self._written.add((account_id, key))
            if original is not None:
                self.head.setdefault(account_id, {})[key] = original
        super().put(account_id, key, value)

    def items(
        self, account_id: str, prefix: bytes = b"", height: int = _HEAD
    ) -> Iterator[tuple[bytes, Any]]:
        """Iterate over an account's keys and values, sorted by key."""
        keys = {key for key, _ in self._load_all(account_id)}
        keys.update(key for name, key in self._written if name == account_id)
        for key in sorted(keys):
            if key.startswith(prefix):
                value = self.get(account_id, key, height)
                if value is not None:
                    yield key, value


class _Codes(dict[CryptoHash, bytes]):
    """The code by its hash, read from the network for the accounts that were met."""

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
    """The state of a network, with what changed here."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._code = _Codes(source)
        self.codes = self._code
        journal = self._journal
        self.accounts = _ForkedTable("account", journal, self._account, _nothing)
        self.access_keys = _ForkedTable("access_key", journal, self._key, self._keys)
        self.gas_key_nonces = _ForkedTable("gas_key_nonce", journal, self._nonce, self._nonces)
        self.data = _ForkedTable("data", journal, self._record, self._records)
        self.global_codes = _ForkedTable("global_code", journal, self._global_code, _nothing)

    def _account(self, account_id: str, _: bytes) -> Account | None:
        """Return an account of the network."""
        account = self._source.account(account_id)
        if account is not None:
            self._code.owners.setdefault(account.code_hash, account_id)
        return account

    def _key(self, account_id: str, packed: bytes) -> AccessKey | None:
        """Return an access key of the network."""
        exists = self._source.account(account_id) is not None
        return self._source.access_key(account_id, packed) if exists else None

    def _keys(self, account_id: str) -> Iterator[tuple[bytes, AccessKey]]:
        """Iterate over the access keys of the network."""
        if self._source.account(account_id) is not None:
            yield from self._source.access_keys(account_id).items()

    def _nonce(self, account_id: str, key: bytes) -> int | None:
        """Return a nonce of a gas key of the network."""
        packed, index = split_nonce_key(key)
        exists = self._source.account(account_id) is not None
        nonces = self._source.gas_key_nonces(account_id, packed) if exists else []
        return nonces[index] if index < len(nonces) else None

    def _nonces(self, account_id: str) -> Iterator[tuple[bytes, int]]:
        """Iterate over the nonces of the gas keys of the network."""
        for packed, _ in self._keys(account_id):
            for index, nonce in enumerate(self._source.gas_key_nonces(account_id, packed)):
                yield nonce_key(packed, index), nonce

    def _record(self, account_id: str, key: bytes) -> bytes | None:
        """Return a storage record of the network."""
        return self._source.record(account_id, key) if self._exists(account_id) else None

    def _records(self, account_id: str) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the storage records of the network."""
        if self._exists(account_id):
            yield from self._source.records(account_id).items()

    def _exists(self, account_id: str) -> bool:
        """Return True if an account of the network exists."""
        return self._source.account(account_id) is not None

    def _global_code(self, name: str, _: bytes) -> bytes | None:
        """Return the hash of a global contract of the network."""
        hash_and_code = self._source.global_code(name)
        if hash_and_code is None:
            return None
        code_hash, code = hash_and_code
        self._code.setdefault(code_hash, code)
        return code_hash


def _nothing(_: str) -> Iterator[tuple[bytes, Any]]:
    """Iterate over nothing: these tables have one value a name."""
    return iter(())


# The world -------------------------------------------------------------------------------


class ForkedWorld(World):
    """
    A world that continues another network.

    Parameters
    ----------
    read
        Calls a method of the network's JSON-RPC.
    network
        Its name, for messages.
    block_hash
        The hash of the block after which the fork begins.
    """

    def __init__(self, read: Read, network: str, block_hash: str) -> None:
        header = read("block", {"block_id": block_hash})["header"]
        status = read("status", [])
        validators = read("validators", [None])
        self.source = Source(read, block_hash, network)
        genesis = Genesis()
        wallet_codes = genesis.store.codes
        genesis.store = ForkedStore(self.source)
        genesis.store.codes.update(wallet_codes)
        genesis.total_supply = int(header["total_supply"])
        settings = Settings(
            chain_id=f"fork-of-{network}",
            profile=_profile(status["protocol_version"]),
            genesis_height=header["height"],
            genesis_time_ns=int(header["timestamp_nanosec"]),
            gas_price=int(header["gas_price"]),
        )
        super().__init__(settings, genesis)
        self.epochs.current.height = validators["epoch_height"]

    def __repr__(self) -> str:
        """Return the network and block of the fork, and the number of values read."""
        head, values = self.chain.head.height, self.source.n_values
        start = self.settings.genesis_height
        return (
            f"<World fork of {self.source.network} at block {start}: block {head}, "
            f"{values} values read>"
        )

    def _height_of(self, block_hash: CryptoHash) -> int | None:
        """Return the height of a block of this chain or of the network, or None."""
        height = super()._height_of(block_hash)
        return self.source.height_of(block_hash) if height is None else height

    def _make_block(self, height: int, missing: frozenset[int]) -> None:
        """Produce a block, or none if a value could not be read."""
        saved = self._saved() if self.is_busy else None
        try:
            super()._make_block(height, missing)
        except SourceError:
            if saved is not None:
                self.__dict__.update(saved)
            raise

    def _saved(self) -> dict[str, Any]:
        """Copy what the production of a block changes."""
        shared = (self.source, self.lock, self.settings, self._memo, self.summary)
        saved: dict[str, Any] = copy.deepcopy(self.__dict__, {id(each): each for each in shared})
        return saved


def _profile(version: int) -> Any:
    """Return the rules of a protocol version: those of the newest one that is not newer."""
    known = [name for name in PROFILES if int(name) <= version]
    if not known:
        oldest = min(PROFILES, key=int)
        msg = f"the network runs protocol version {version}; the embedded ledger knows {oldest} on"
        raise InvalidRequestError(msg, field="fork", value=version)
    return max(known, key=int)
