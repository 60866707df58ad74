"""
A world: a chain to submit transactions to, with its state and its clock.

::

    world = World(Settings(), genesis)
    world.submit(signed)
    world.advance(4)
    world.outcome(signed.hash).status
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import fees, transaction_validity
from ledgerkit.localnet.actions import fixed_gas
from ledgerkit.localnet.chain import Chain
from ledgerkit.localnet.chain_types import (
    ActionReceipt,
    Block,
    BlockContext,
    CallContext,
    Change,
    DistributionReceipt,
    Failure,
    Outcome,
    Receipt,
    TransactionRecord,
)
from ledgerkit.localnet.contract_sdk import Contract, run_code
from ledgerkit.localnet.epochs import Epochs
from ledgerkit.localnet.execution_errors import CallError, CodeError, InvalidTransactionError
from ledgerkit.localnet.mempool import Mempool
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.runtime import Runtime, ShardResult
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import (
    AccountId,
    Action,
    AddKey,
    CreateAccount,
    CryptoHash,
    DeployContract,
    FullAccess,
    PublicKey,
    SecretKey,
    Signature,
    SignedTransaction,
    Transaction,
    Transfer,
)
from ledgerkit.protocol.access_keys import GasKey
from ledgerkit.protocol.actions import deposits
from ledgerkit.units import yocto

if TYPE_CHECKING:
    from ledgerkit.localnet.genesis import Genesis
    from ledgerkit.localnet.settings import Settings
    from ledgerkit.localnet.state import State

_MAX_CONVERSION_GAS = fees.CHUNK_GAS // 2  # per chunk, to leave gas for receipts
_MAX_EXAMPLES = 3  # accounts that an error names
_SIGNATURE_BYTES = {"ed25519": 64, "secp256k1": 65}

T = TypeVar("T")


class AccountSummary(Struct, frozen=True):
    """An account with its purpose and its published key."""

    account_id: str
    secret_key: str | None
    description: str


class TransactionSummary(Struct, frozen=True):
    """A transaction with a description of what it did."""

    tx_hash: str
    signer_id: str
    description: str


class WorldSummary(Struct):
    """The accounts, contracts and transactions worth knowing in a world."""

    accounts: list[AccountSummary] = field(default_factory=list)
    contracts: dict[str, str | list[str]] = field(default_factory=dict)
    transactions: list[TransactionSummary] = field(default_factory=list)


class ViewResult(Struct, frozen=True):
    """The result and the logs of a view call."""

    result: bytes
    logs: tuple[str, ...]


class World:
    """A chain with its state, its mempool and its clock."""

    def __init__(self, settings: Settings, genesis: Genesis) -> None:
        self.settings = settings
        self.lock = threading.RLock()
        self.store = genesis.store
        self.chain = Chain(settings, genesis)
        self.epochs = Epochs(settings, genesis.validators)
        self.runtime = Runtime(self.store, settings)
        self.mempool = Mempool(settings.shard_of)
        self.summary = WorldSummary()
        self._shards = len(settings.shard_ids)
        self._last_results = [ShardResult(shard) for shard in range(self._shards)]
        # By shard: the receipts that it has not applied, first the delayed ones.
        self._queues: list[list[Receipt]] = [[] for _ in range(self._shards)]
        self._transactions: dict[CryptoHash, TransactionRecord] = {}
        self._last_event_height = settings.genesis_height
        self.is_used = False  # True once a request has sent a transaction
        self.answered_reads: set[int] = set()  # the hashes of reads since the last block
        self._outcomes: dict[CryptoHash, Outcome] = {}
        self._receipts: dict[CryptoHash, Receipt] = {}
        self._origins: dict[CryptoHash, CryptoHash] = {}  # transactions by receipt
        self._remaining_drops = 0
        self._interrupt: KeyboardInterrupt | None = None  # Ctrl-C, until the block is complete
        self.burnt = 0
        self.minted = 0
        self._memo: dict[str, Any] = {}

    def __repr__(self) -> str:
        head = self.chain.head.height
        return f"<World {self.settings.chain_id}: block {head}, {len(self.account_ids())} accounts>"

    def memo(self, key: str, factory: Callable[[], T]) -> T:
        """Return the object that this world holds under a key, built at the first use."""
        if key not in self._memo:
            self._memo.setdefault(key, factory())
        value: T = self._memo[key]
        return value

    # Reading -----------------------------------------------------------------------------

    def state(self, height: int | None = None) -> State:
        """Return the state after the block of a height, by default the head."""
        return self.store.at() if height is None else self.store.at(height)

    def account_ids(self) -> list[str]:
        """List the accounts at the head, sorted."""
        return sorted(name for name, values in self.store.accounts.head.items() if values)

    def balance(self, account_id: str) -> int | None:
        """Return an account's yoctoNEAR at the head; None if it does not exist."""
        account = self.store.accounts.get(account_id)
        return None if account is None else account.amount

    def transaction(self, tx_hash: CryptoHash) -> TransactionRecord | None:
        """Return a transaction that is in a block, or None."""
        return self._transactions.get(tx_hash)

    def is_pending(self, tx_hash: CryptoHash) -> bool:
        """Return True if a transaction waits for a block."""
        return tx_hash in self.mempool

    def outcome(self, outcome_id: CryptoHash) -> Outcome | None:
        """Return the outcome of a transaction or receipt; None before its execution."""
        return self._outcomes.get(outcome_id)

    def receipt(self, receipt_id: CryptoHash) -> Receipt | None:
        """Return a receipt, executed or not, or None."""
        return self._receipts.get(receipt_id)

    def origin(self, receipt_id: CryptoHash) -> CryptoHash:
        """Return the hash of a receipt's transaction, or another id unchanged."""
        return self._origins.get(receipt_id, receipt_id)

    def executions(self, block: Block) -> Iterator[tuple[ActionReceipt, Outcome]]:
        """Iterate over the receipts that a block executed, with their outcomes."""
        for outcome in self.chain.outcomes_at(block.height):
            receipt = self.receipt(outcome.id)
            if isinstance(receipt, ActionReceipt):  # not the outcome of a transaction
                yield receipt, outcome

    def receipts(self) -> list[Receipt]:
        """List all receipts since genesis."""
        return list(self._receipts.values())

    @property
    def lags(self) -> bool:
        """
        True in logical time while an event is pending or not final.

        Blocks then come only when a request waits for one. So that a client can poll, reads of
        blocks behind the head produce a block while this is true.
        """
        if self.settings.real_time:
            return False
        return self.is_busy or self.chain.final.height < self._last_event_height

    @property
    def index_lags(self) -> bool:
        """True in logical time while the index lacks transactions that requests have sent."""
        lag = self.settings.indexer_lag + self.settings.balance_lag
        is_behind = self.chain.final.height - lag < self._last_event_height
        return self.is_used and is_behind and not self.settings.real_time

    @property
    def is_busy(self) -> bool:
        """True if a transaction or receipt waits for the next block."""
        return bool(
            len(self.mempool)
            or any(self._queues)
            or any(result.sent for result in self._last_results)
        )

    def view(self, contract_id: str, method_name: str, args: bytes, block: Block) -> ViewResult:
        """Call a view method on the state after a block; raise CallError if it fails."""
        state = self.store.at(block.height)
        account = state.account(contract_id)
        if account is None:
            raise CodeError(contract_id)
        context = CallContext(
            current_account_id=contract_id,
            account=account,
            block=BlockContext(
                block.height,
                block.timestamp_ns,
                block.epoch_height,
                block.random_value,
                block.gas_price,
                self.epochs.stakes(),
            ),
            input=args,
            prepaid_gas=fees.VIEW_GAS,
            random_seed=block.random_value,
            chain_id=self.settings.chain_id,
            is_view=True,
            fixed_gas=fixed_gas(self.settings, contract_id, method_name),
        )
        vm = Vm(context, state, self.runtime.profile)
        try:
            result = run_code(vm, state, account, method_name)
        except CallError as error:
            error.logs = tuple(vm.logs)
            raise
        return ViewResult(b"" if isinstance(result, Promise) else result, tuple(vm.logs))

    # Transactions and time ---------------------------------------------------------------

    def submit(self, signed: SignedTransaction) -> None:
        """Check a transaction and add it to the mempool."""
        self.check(signed)
        if self._remaining_drops:
            self._remaining_drops -= 1
        else:
            self.mempool.add(signed)

    def submit_unsigned(
        self, signer_id: str, receiver_id: str, actions: Sequence[Action]
    ) -> SignedTransaction:
        """
        Add a transaction of any account to the mempool, as if it had signed; return it.

        The transaction has a full access key of the account and the key's next nonce. All checks
        apply except that of the signature.
        """
        keys = [
            (public_key, access_key.nonce + 1)
            for stored, access_key in self.store.at().access_keys(signer_id)
            if isinstance(access_key.permission, FullAccess)
            and (public_key := PublicKey.from_stored(stored)).curve in _SIGNATURE_BYTES
        ]
        if not keys:
            expected = "an account with a full access key of ed25519 or secp256k1"
            raise InvalidRequestError.refuse("signer_id", signer_id, expected)
        key, nonce = keys[0]
        tx = Transaction(signer_id, key, nonce, receiver_id, self.chain.final.hash, actions)
        placeholder = Signature(key.curve, bytes(_SIGNATURE_BYTES[key.curve]))
        signed = SignedTransaction(tx, placeholder)
        self.check(signed, is_signed=False)
        self.mempool.add(signed)
        return signed

    def check(
        self, signed: SignedTransaction, chunk_height: int | None = None, *, is_signed: bool = True
    ) -> transaction_validity.Charge:
        """
        Check a transaction on submission or, with a chunk's height, on inclusion.

        Returns the cost, and the account and access key after the payment; raises
        InvalidTransactionError at the first failure.
        """
        return transaction_validity.check(
            signed,
            self.store.at(),
            self.runtime.profile,
            is_expired=self._is_expired(signed.transaction),
            gas_price=self.chain.head.gas_price,
            chunk_height=chunk_height,
            is_signed=is_signed,
        )

    def _is_expired(self, tx: Transaction) -> bool:
        block_height = self._height_of(tx.block_hash)
        return (
            block_height is None or self.chain.head.height > block_height + self.settings.validity
        )

    def _height_of(self, block_hash: CryptoHash) -> int | None:
        return self.chain.height_of(block_hash)

    def broadcast(self, signed: SignedTransaction) -> None:
        """Submit a transaction; drop it silently if it is not valid."""
        with suppress(InvalidTransactionError):
            self.submit(signed)

    def advance(self, blocks: int = 1, *, skip: int = 0, missing: Iterable[int] = ()) -> Block:
        """Produce blocks, the first after `skip` skipped heights; return the head."""
        # The missing shards, by id, have no new chunk in these blocks.
        positions = frozenset(self.settings.shard_ids.index(shard_id) for shard_id in missing)
        with self.lock:
            for _ in range(blocks):
                self._make_block(self.chain.head.height + 1 + skip, positions)
                skip = 0
            return self.chain.head

    def settle(self, limit: int = 1000) -> Block:  # the most blocks until the execution
        """Produce blocks until all receipts are executed and final; return the head."""
        for _ in range(limit):
            if not self.is_busy:
                break
            self.advance()
        return self.advance(3)

    def keys(self) -> dict[str, str]:
        """Return the published secret keys by account id; anybody may use them."""
        accounts = self.summary.accounts
        return {entry.account_id: entry.secret_key for entry in accounts if entry.secret_key}

    def deploy(
        self,
        account_id: str,
        contract: type[Contract] | bytes | PathLike[str],
        *,
        balance: str = "10 NEAR",
    ) -> SignedTransaction:
        """
        Deploy a contract to a new sub-account of an account with a published key.

        The contract is a Python class, the bytes of a compiled contract, or the path of its file.
        """
        code = _read_code(contract)
        new_id, secret_keys = AccountId(account_id), self.keys()
        parent_id = new_id.parent
        secret_text = secret_keys.get(parent_id or "")
        if parent_id is None or secret_text is None:
            examples = ", ".join(list(secret_keys)[:_MAX_EXAMPLES])
            expected = f"a sub-account of an account with a published key, such as {examples}"
            raise InvalidRequestError.refuse("account_id", account_id, expected)
        secret = SecretKey.from_text(secret_text)
        public_key = secret.public_key
        access_key = self.state().access_key(parent_id, public_key.stored)
        nonce = access_key.nonce + 1 if access_key else 1
        deposit = Transfer(yocto(balance))
        actions = (CreateAccount(), deposit, AddKey(public_key), DeployContract(code))
        block_hash = self.chain.final.hash
        tx = Transaction(parent_id, public_key, nonce, new_id, block_hash, actions)
        signed = tx.sign(secret)
        self.submit(signed)
        self.settle()
        record = self.transaction(signed.hash)
        outcome = self.outcome(record.receipt.receipt_id) if record else None
        status = None if outcome is None else outcome.status
        if status is None or isinstance(status, Failure):
            reason = "the transaction was not included" if status is None else status.error
            expected = f"an account that can be created: {reason}"
            raise InvalidRequestError.refuse("account_id", account_id, expected)
        return signed

    def adjust(self, **changes: Any) -> None:
        """Change settings by name, from the next block on."""
        self.settings = replace(self.settings, **changes)
        self.chain.settings = self.runtime.settings = self.settings

    def drop_transactions(self, count: int) -> None:
        """Drop the next transactions that are submitted, as a network may."""
        self._remaining_drops = count

    def hold_finality(self, *, hold: bool = True) -> None:
        """Stop blocks from becoming final, or resume with ``hold=False``."""
        self.chain.finality_held = hold

    # Blocks ------------------------------------------------------------------------------

    def _make_block(self, height: int, missing: frozenset[int]) -> None:
        minted, epoch_changes = self._begin_epoch_if_due(height)
        context = BlockContext(
            height,
            self.chain.timestamp_ns(height),
            self.epochs.current.height,
            self.chain.random_value(height),
            self.chain.head.gas_price,
            self.epochs.stakes(),
        )
        results = [
            self._last_results[shard] if shard in missing else ShardResult(shard)
            for shard in range(self._shards)
        ]
        new_results = [result for result in results if result.shard not in missing]
        for result in new_results:
            self._include(context, result)
        block = self.chain.make_block(
            height, results, self._last_results, minted=minted, epochs=self.epochs
        )
        for chunk in block.new_chunks:
            for receipt in chunk.receipts:
                self._queues[self._shard_of(receipt)].append(receipt)
        for result in new_results:
            self._apply(result, context)
        self._record_results(block, new_results, epoch_changes)
        if any(result.outcomes for result in new_results):
            self._last_event_height = height
        self.answered_reads.clear()
        self._last_results = results
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            raise interrupt

    def _begin_epoch_if_due(self, height: int) -> tuple[int, list[Change]]:
        """Start an epoch if it is due; return the minted yoctoNEAR and the changes of state."""
        if not self.chain.begins_epoch():
            return 0, []
        minted = self.epochs.begin_epoch(height, self.store)
        self.minted += minted
        return minted, self.store.commit(height, ("validator_accounts_update", None))

    def _include(self, block: BlockContext, result: ShardResult) -> None:
        """Move transactions from the mempool to a shard's chunk; drop invalid ones."""
        postponed: list[SignedTransaction] = []
        for signed in self.mempool.pop_rounds(result.shard):
            if result.gas_used >= _MAX_CONVERSION_GAS or self._waits_for_nonce(signed):
                postponed.append(signed)
                continue
            try:
                charge = self.check(signed, block.height)
            except InvalidTransactionError:
                continue
            record = self.runtime.convert(signed, charge, block, result)
            self._transactions[signed.hash] = record
            self._receipts[record.receipt.receipt_id] = record.receipt
            result.transactions.append(record)
        for signed in postponed:
            self.mempool.add(signed)

    def _waits_for_nonce(self, signed: SignedTransaction) -> bool:
        """Return True if the nonces before a transaction's strict nonce are not used yet."""
        tx = signed.transaction
        if tx.nonce_mode != "strict":
            return False
        state = self.store.at()
        access_key = state.access_key(tx.signer_id, tx.public_key.stored)
        if access_key is None or self._is_expired(tx):
            return False
        try:
            ak_nonce = transaction_validity.last_nonce(tx, access_key, state)
        except InvalidTransactionError:
            return False
        return tx.nonce > ak_nonce + 1

    def _shard_of(self, receipt: Receipt) -> int:
        if isinstance(receipt, DistributionReceipt):
            return self.settings.shard_ids.index(receipt.target_shard)
        return self.settings.shard_of(receipt.receiver_id)

    def _apply(self, result: ShardResult, block: BlockContext) -> None:
        """
        Apply a shard's receipts: local ones, then delayed ones, then new ones.

        After Ctrl-C in a contract, its receipt and the following ones are delayed.
        """
        local = [record.receipt for record in result.transactions if record.is_local]
        receipts = [*local, *self._queues[result.shard]]
        delayed = self._queues[result.shard] = []
        for receipt in receipts:
            if result.gas_used >= fees.CHUNK_GAS or self._interrupt is not None:
                delayed.append(receipt)
                continue
            try:
                self.runtime.receive(receipt, block, result)
            except KeyboardInterrupt as interrupt:
                self._interrupt = interrupt
                delayed.append(receipt)
        self.runtime.resume_timed_out(block, result)

    def _record_results(
        self, block: Block, results: list[ShardResult], epoch_changes: list[Change]
    ) -> None:
        self.chain.add_results(block.height, results, epoch_changes)
        for result in results:
            self.epochs.add_proposals(result.proposals)
            self.burnt += result.balance_burnt
            for outcome in result.outcomes:
                self._outcomes[outcome.id] = outcome
                tx_hash = self.origin(outcome.id)
                self._origins.update(dict.fromkeys(outcome.receipt_ids, tx_hash))
            for receipts in (result.sent, result.yielded):
                self._receipts.update({receipt.receipt_id: receipt for receipt in receipts})
        if not self.settings.archival:
            self._collect_garbage()

    def _collect_garbage(self) -> None:
        oldest = self.epochs.all[-self.settings.epochs_kept :][0].start_height
        if oldest > self.chain.earliest.height:
            block = self.chain.by_height(oldest)
            if block is not None:
                self.chain.earliest = block
                self.store.prune(oldest)

    # Sums --------------------------------------------------------------------------------

    def total_supply(self) -> int:
        """Sum all yoctoNEAR, in accounts, in gas keys and in receipts not yet executed."""
        accounts = (values[b""] for values in self.store.accounts.head.values() if values)
        balances = sum(a.amount + a.locked for a in accounts)
        keys = (key for keys in self.store.access_keys.head.values() for key in keys.values())
        gas_keys = sum(k.permission.balance for k in keys if isinstance(k.permission, GasKey))
        return balances + gas_keys + self.value_in_receipts()

    def value_in_receipts(self) -> int:
        """Sum the yoctoNEAR in receipts not yet executed."""
        prepaid_gas = self.runtime.profile.prepaid_gas
        return sum(
            deposits(r.actions) + prepaid_gas(r.actions, r.receiver_id) * r.gas_price
            for r in self._receipts.values()
            if isinstance(r, ActionReceipt) and r.receipt_id not in self._outcomes
        )


def _read_code(contract: type[Contract] | bytes | PathLike[str]) -> bytes:
    if isinstance(contract, type) and issubclass(contract, Contract):
        return contract.code
    if isinstance(contract, bytes):
        return contract
    expected = "a Contract class, the bytes of a compiled contract, or a path to its file"
    if not isinstance(contract, PathLike):
        raise InvalidRequestError.refuse("contract", contract, expected)
    try:
        return Path(contract).read_bytes()
    except OSError as error:
        raise InvalidRequestError.refuse("contract", contract, f"{expected} ({error})") from None
