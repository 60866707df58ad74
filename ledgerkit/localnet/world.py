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
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import fees, transaction_validity
from ledgerkit.localnet.actions import contract_of, fixed_gas
from ledgerkit.localnet.chain import Chain
from ledgerkit.localnet.chain_types import (
    Account,
    ActionReceipt,
    Block,
    BlockContext,
    CallContext,
    Change,
    DistributionReceipt,
    Outcome,
    Receipt,
    TransactionRecord,
)
from ledgerkit.localnet.contract_sdk import Contract, run_code
from ledgerkit.localnet.deployment import check_deployed, deployment
from ledgerkit.localnet.epochs import Epochs
from ledgerkit.localnet.execution_errors import CallError, CodeError, InvalidTransactionError
from ledgerkit.localnet.mempool import Mempool
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.runtime import Runtime, ShardResult
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import (
    AccessKey,
    Action,
    CryptoHash,
    FullAccess,
    PublicKey,
    Signature,
    SignedTransaction,
    Transaction,
)
from ledgerkit.protocol.access_keys import GasKey
from ledgerkit.protocol.actions import deposits

if TYPE_CHECKING:
    from ledgerkit.localnet.genesis import Genesis
    from ledgerkit.localnet.settings import Settings
    from ledgerkit.localnet.state import State

_MAX_CONVERSION_GAS = fees.CHUNK_GAS // 2  # per chunk, to leave gas for receipts
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
        self._arrived: list[list[Receipt]] = [[] for _ in range(self._shards)]
        self._delayed: list[list[Receipt]] = [[] for _ in range(self._shards)]
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
            or any(self._arrived)
            or any(self._delayed)
            or any(result.sent for result in self._last_results)
        )

    def view(self, contract_id: str, method_name: str, args: bytes, block: Block) -> ViewResult:
        """Call a view method on the state after a block; raise CallError if it fails."""
        state = self.store.at(block.height)
        account = state.account(contract_id)
        if account is None:
            raise CodeError(contract_id)
        context = self._view_context(contract_id, method_name, args, block, account)
        vm = Vm(context, state, self.runtime.profile)
        try:
            result = run_code(vm, state, account, method_name)
        except CallError as error:
            error.logs = tuple(vm.logs)
            raise
        return ViewResult(b"" if isinstance(result, Promise) else result, tuple(vm.logs))

    def _view_context(
        self, contract_id: str, method_name: str, args: bytes, block: Block, account: Account
    ) -> CallContext:
        return CallContext(
            current_account_id=contract_id,
            input=args,
            block_height=block.height,
            block_timestamp=block.timestamp_ns,
            epoch_height=block.epoch_height,
            balance=account.amount,
            locked=account.locked,
            storage_usage=account.storage_usage,
            prepaid_gas=fees.VIEW_GAS,
            random_seed=block.random_value,
            chain_id=self.settings.chain_id,
            validator_stakes=self.epochs.stakes(),
            contract=contract_of(account),
            is_view=True,
            fixed_gas=fixed_gas(self.settings, contract_id, method_name),
        )

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
        self._check(signed, self.chain.head.gas_price, is_signed=False)
        self.mempool.add(signed)
        return signed

    def check(self, signed: SignedTransaction) -> None:
        """Check a transaction at the head; raise InvalidTransactionError at the first failure."""
        self._check(signed, self.chain.head.gas_price)

    def _check(
        self,
        signed: SignedTransaction,
        gas_price: int,
        chunk_height: int | None = None,
        *,
        is_signed: bool = True,
    ) -> tuple[transaction_validity.Cost, Account, AccessKey | None]:
        """Check a transaction on submission or, with a chunk's height, on inclusion."""
        return transaction_validity.check(
            signed,
            self.store.at(),
            self.settings,
            self.runtime.profile,
            gas_price=gas_price,
            height=self.chain.head.height,
            height_of=self._height_of,
            chunk_height=chunk_height,
            is_signed=is_signed,
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
        signed = deployment(
            account_id,
            contract,
            balance,
            secret_keys=self.keys(),
            state=self.state(),
            block_hash=self.chain.final.hash,
        )
        self.submit(signed)
        self.settle()
        record = self.transaction(signed.hash)
        check_deployed(signed, self.outcome(record.receipt.receipt_id) if record else None)
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
        included = [
            [] if shard in missing else self._include(context, result)
            for shard, result in enumerate(results)
        ]
        transactions = [tuple(record.signed for record in records) for records in included]
        previous = self._last_results
        block = self.chain.make_block(
            height, transactions, previous, missing=missing, minted=minted, epochs=self.epochs
        )
        self._route_receipts(block)
        new_results = [result for result in results if result.shard not in missing]
        for result in new_results:
            local = [record.receipt for record in included[result.shard] if record.is_local]
            self._apply(result, local, context)
        self._record_results(block, new_results, epoch_changes)
        if any(included) or any(result.outcomes for result in new_results):
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

    def _include(self, block: BlockContext, result: ShardResult) -> list[TransactionRecord]:
        """Move transactions from the mempool to a shard's chunk; drop invalid ones."""
        included: list[TransactionRecord] = []
        postponed: list[SignedTransaction] = []
        for signed in self.mempool.pop_rounds(result.shard):
            if result.gas_used >= _MAX_CONVERSION_GAS or self._waits_for_nonce(signed):
                postponed.append(signed)
                continue
            record = self._convert_if_valid(signed, block, result)
            if record is not None:
                included.append(record)
        for signed in postponed:
            self.mempool.add(signed)
        return included

    def _waits_for_nonce(self, signed: SignedTransaction) -> bool:
        """Return True if the nonces before a transaction's strict nonce are not used yet."""
        tx = signed.transaction
        if tx.nonce_mode != "strict":
            return False
        state, height = self.store.at(), self.chain.head.height
        access_key = state.access_key(tx.signer_id, tx.public_key.stored)
        if access_key is None:
            return False
        try:
            transaction_validity.check_age(tx, self.settings, height, self._height_of)
            ak_nonce = transaction_validity.last_nonce(tx, access_key, state)
        except InvalidTransactionError:
            return False
        return tx.nonce > ak_nonce + 1

    def _convert_if_valid(
        self, signed: SignedTransaction, block: BlockContext, result: ShardResult
    ) -> TransactionRecord | None:
        try:
            charge = self._check(signed, block.gas_price, block.height)
        except InvalidTransactionError:
            return None
        record = self.runtime.convert(signed, charge, block, result)
        self._transactions[signed.hash] = record
        self._receipts[record.receipt.receipt_id] = record.receipt
        return record

    def _route_receipts(self, block: Block) -> None:
        for chunk in block.new_chunks:
            for receipt in chunk.receipts:
                self._arrived[self._shard_of(receipt)].append(receipt)

    def _shard_of(self, receipt: Receipt) -> int:
        if isinstance(receipt, DistributionReceipt):
            return self.settings.shard_ids.index(receipt.target_shard)
        return self.settings.shard_of(receipt.receiver_id)

    def _apply(self, result: ShardResult, local: list[ActionReceipt], block: BlockContext) -> None:
        """
        Apply a shard's receipts: local ones, then delayed ones, then new ones.

        After Ctrl-C in a contract, its receipt and the following ones are delayed.
        """
        delayed, arrived = self._delayed[result.shard], self._arrived[result.shard]
        self._delayed[result.shard], self._arrived[result.shard] = [], []
        for receipt in [*local, *delayed, *arrived]:
            if result.gas_used >= fees.CHUNK_GAS or self._interrupt is not None:
                self._delayed[result.shard].append(receipt)
                continue
            try:
                self.runtime.receive(receipt, block, result)
            except KeyboardInterrupt as interrupt:
                self._interrupt = interrupt
                self._delayed[result.shard].append(receipt)
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
        return balances + self.value_in_gas_keys() + self.value_in_receipts()

    def value_in_gas_keys(self) -> int:
        """Sum the yoctoNEAR that gas keys hold for gas."""
        keys = (key for keys in self.store.access_keys.head.values() for key in keys.values())
        return sum(k.permission.balance for k in keys if isinstance(k.permission, GasKey))

    def value_in_receipts(self) -> int:
        """Sum the yoctoNEAR in receipts not yet executed."""
        receipts: list[Receipt] = [r for result in self._last_results for r in result.sent]
        for shard in range(self._shards):
            receipts += [*self._arrived[shard], *self._delayed[shard]]
        receipts += self.runtime.postponed()
        prepaid_gas = self.runtime.profile.prepaid_gas
        return sum(
            deposits(r.actions) + prepaid_gas(r.actions, r.receiver_id) * r.gas_price
            for r in receipts
            if isinstance(r, ActionReceipt)
        )
