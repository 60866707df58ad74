"""What a chain begins with: accounts, keys, contracts and their records, validators."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from ledgerkit.localnet import fees
from ledgerkit.localnet.actions import key_bytes
from ledgerkit.localnet.chain_types import NO_CODE, Account, Proposal
from ledgerkit.localnet.state import StateStore
from ledgerkit.protocol import AccessKey, AccountId, CryptoHash, PublicKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.localnet.contract_sdk import Contract

Record = tuple[bytes, bytes]


class Genesis:
    """
    Collects what is there before the first block; each account once.

    Nothing in it was executed, so nothing in it has a transaction, a receipt or a log.
    """

    def __init__(self) -> None:
        self.store = StateStore()
        self.validators: list[Proposal] = []
        self._hasher = sha256()
        self.total_supply = 0

    def account(
        self,
        account_id: str,
        amount: int,
        *,
        keys: Iterable[PublicKey | tuple[PublicKey, AccessKey]] = (),
        contract: type[Contract] | None = None,
        records: Iterable[Record] = (),
        locked: int = 0,
        validator_key: PublicKey | None = None,
    ) -> None:
        """
        Put in an account.

        Parameters
        ----------
        account_id
            Its id.
        amount
            Its yoctoNEAR, beside what is locked.
        keys
            Full access keys, or keys with what they may do and their nonce.
        contract
            Its contract.
        records
            The contract's records.
        locked
            Its yoctoNEAR at stake.
        validator_key
            The key it validates with; needed where something is at stake.
        """
        name = AccountId(account_id)
        storage = 100
        for key in keys:
            storage += self._add_key(name, key)
        held: dict[bytes, bytes] = {}
        for record, value in records:
            held[record] = value
            storage += len(record) + len(value) + fees.RECORD_BYTES
        if held:
            self.store.data.head[name] = held
        code_hash = NO_CODE if contract is None else self.code(contract.code)
        storage += len(self.store.codes[code_hash])
        account = Account(amount, locked, code_hash, storage)
        self.store.accounts.head[name] = {b"": account}
        self.total_supply += amount + locked
        self._hasher.update(f"{name} {amount} {locked} {code_hash.hex()} {storage};".encode())
        if validator_key is not None:
            self.validators.append(Proposal(name, validator_key, locked))

    def _add_key(self, account_id: str, key: PublicKey | tuple[PublicKey, AccessKey]) -> int:
        """Put in a key; tell how many bytes it takes."""
        public_key, access_key = (key, AccessKey()) if isinstance(key, PublicKey) else key
        self.store.access_keys.head.setdefault(account_id, {})[public_key.packed] = access_key
        self._hasher.update(public_key.packed)
        return key_bytes(public_key, access_key)

    def code(self, code: bytes) -> CryptoHash:
        """Put in code, for accounts to run."""
        named = CryptoHash.of(code)
        self.store.codes.setdefault(named, code)
        return named

    @property
    def fingerprint(self) -> bytes:
        """A hash of accounts, keys and code."""
        return self._hasher.digest()
