"""The genesis of a chain: accounts, keys, contracts with storage records, validators."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING

from ledgerkit.localnet import fees
from ledgerkit.localnet.actions import EthereumWallet, key_bytes
from ledgerkit.localnet.chain_types import ACCOUNT_BYTES, NO_CODE, Account, Proposal
from ledgerkit.localnet.state import StateStore, nonce_key
from ledgerkit.protocol import AccessKey, AccountId, CryptoHash, PublicKey, SecretKey
from ledgerkit.protocol.access_keys import GasKey

if TYPE_CHECKING:
    from ledgerkit.localnet.contract_sdk import Contract

Record = tuple[bytes, bytes]


class Genesis:
    """The state before the first block; it has no transactions, receipts or logs."""

    def __init__(self, store: StateStore | None = None) -> None:
        self.store = StateStore() if store is None else store
        # The contract of Ethereum addresses, a global contract of the protocol itself.
        wallet_hash = self.code(EthereumWallet.code)
        self.store.global_codes.head[wallet_hash.hex()] = {b"": wallet_hash}
        self.validators: list[Proposal] = []
        # The known secret keys of validators, by public key.
        self.secret_keys: dict[PublicKey, SecretKey] = {}
        self._hasher = sha256()
        self.total_supply = 0

    def account(
        self,
        account_id: str,
        amount: int,
        *,
        keys: Iterable[PublicKey | tuple[PublicKey, AccessKey]] = (),
        contract: type[Contract] | bytes | None = None,  # in Python, or a Wasm module
        records: Iterable[Record] = (),
        locked: int = 0,  # yoctoNEAR at stake, in addition to `amount`
        validator_key: PublicKey | None = None,  # required if anything is locked
    ) -> None:
        """Add an account with a balance in yoctoNEAR; a bare public key has full access."""
        account_id = AccountId(account_id)
        storage = ACCOUNT_BYTES + sum(self._add_key(account_id, key) for key in keys)
        data: dict[bytes, bytes] = {}
        for key, value in records:
            data[key] = value
            storage += len(key) + len(value) + fees.RECORD_BYTES
        if data:
            self.store.data.head[account_id] = data
        code = contract if isinstance(contract, bytes | None) else contract.code
        code_hash = self.code(code) if code else NO_CODE
        storage += len(self.store.codes[code_hash])
        account = Account(amount, locked, code_hash, storage)
        self.store.accounts.head[account_id] = {b"": account}
        self.total_supply += amount + locked
        self._hasher.update(f"{account_id} {amount} {locked} {code_hash.hex()} {storage};".encode())
        if validator_key is not None:
            self.validators.append(Proposal(account_id, validator_key, locked))

    def _add_key(self, account_id: str, key: PublicKey | tuple[PublicKey, AccessKey]) -> int:
        """Add an access key; return its bytes of storage."""
        public_key, access_key = (key, AccessKey()) if isinstance(key, PublicKey) else key
        self.store.access_keys.head.setdefault(account_id, {})[public_key.stored] = access_key
        if isinstance(access_key.permission, GasKey):
            self.total_supply += access_key.permission.balance
            nonces = self.store.gas_key_nonces.head.setdefault(account_id, {})
            for index in range(access_key.permission.num_nonces):
                nonces[nonce_key(public_key.stored, index)] = access_key.nonce
        self._hasher.update(public_key.stored)
        return key_bytes(public_key, access_key)

    def code(self, code: bytes) -> CryptoHash:
        """Add code; return its hash."""
        code_hash = CryptoHash.of(code)
        self.store.codes.setdefault(code_hash, code)
        return code_hash

    @property
    def fingerprint(self) -> bytes:
        """The hash of all accounts, keys and code."""
        return self._hasher.digest()
