"""
A chain on this machine: submit to it, let time pass, read what became of it.

::

    world = World(Settings(), genesis)
    world.submit(signed)
    world.advance(4)
    world.outcome(signed.hash).status
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ledgerkit.localnet import contract_sdk, fees, transaction_validity
from ledgerkit.localnet.actions import fixed_gas
from ledgerkit.localnet.chain import Chain
from ledgerkit.localnet.chain_types import (
    SYSTEM,
    SYSTEM_KEY,
    Account,
    ActionReceipt,
    Block,
    Change,
    Outcome,
    Receipt,
    TransactionRecord,
)
from ledgerkit.localnet.epochs import Epochs
from ledgerkit.localnet.execution_errors import CallError, CodeError, InvalidTransactionError
from ledgerkit.localnet.mempool import Mempool
from ledgerkit.localnet.runtime import BlockContext, Runtime, Work
from ledgerkit.localnet.vm import CallContext, Promise, Vm
from ledgerkit.localnet.world_summary import WorldSummary
from ledgerkit.protocol import CryptoHash, SignedTransaction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.localnet.genesis import Genesis
    from ledgerkit.localnet.settings import Settings
    from ledgerkit.localnet.state import State

_TX_GAS = fees.CHUNK_GAS // 2  # of a chunk's gas, what transactions may take
_NOBODY = CryptoHash(bytes(32))


class ViewResult(Struct, frozen=True):
    """What a view method returned and logged."""

    result: bytes
    logs: tuple[str, ...]


class World:
    """
    A chain and everything it knows.

    Parameters
    ----------
    settings
        Names, clock, shards, limits.
    genesis
        What there is before the first block.
    """

    def __init__(self, settings: Settings, genesis: Genesis) -> None:
        self.settings = settings
        self.lock = threading.RLock()
        self.store = genesis.store
        author = genesis.validators[0].account_id if genesis.validators else "validator.local"
        self.chain = Chain(settings, genesis.total_supply, author, genesis.fingerprint)
        self.epochs = Epochs(settings, genesis.validators)
        self.runtime = Runtime(self.store, settings)
        self.mempool = Mempool(settings.shard_of)
        self.summary = WorldSummary()
        self._shards = len(settings.shard_ids)
        self._before = [Work(position) for position in range(self._shards)]
        self._arrived: list[list[Receipt]] = [[] for _ in range(self._shards)]
        self._delayed: list[list[Receipt]] = [[] for _ in range(self._shards)]
        self._transactions: dict[CryptoHash, TransactionRecord] = {}
        self._outcomes: dict[CryptoHash, Outcome] = {}
        self._receipts: dict[CryptoHash, Receipt] = {}
        self._to_drop = 0
        self.burnt = 0
        self.minted = 0

    def __repr__(self) -> str:
        head = self.chain.head.height
        return f"<World {self.settings.chain_id}: block {head}, {len(self.account_ids())} accounts>"

    # Reading -----------------------------------------------------------------------------

    def state(self, height: int | None = None) -> State:
        """Look at the state after a block, by default the head."""
        return self.store.at() if height is None else self.store.at(height)

    def account_ids(self) -> list[str]:
        """List the accounts there are, in order."""
        return sorted(name for name, held in self.store.accounts.head.items() if held)

    def balance(self, account_id: str) -> int | None:
        """Give an account's yoctoNEAR at the head; None where there is no account."""
        account = self.store.accounts.get(account_id)
        return None if account is None else account.amount

    def transaction(self, tx_hash: CryptoHash) -> TransactionRecord | None:
        """Find a transaction that is in a block."""
        return self._transactions.get(tx_hash)

    def is_pending(self, tx_hash: CryptoHash) -> bool:
        """Tell whether a transaction waits for a block."""
        return tx_hash in self.mempool

    def outcome(self, outcome_id: CryptoHash) -> Outcome | None:
        """Find the outcome of a transaction or a receipt; None while there is none."""
        return self._outcomes.get(outcome_id)

    def receipt(self, receipt_id: CryptoHash) -> Receipt | None:
        """Find a receipt, executed or not."""
        return self._receipts.get(receipt_id)

    def receipts(self) -> list[Receipt]:
        """List all receipts there ever were."""
        return list(self._receipts.values())

    @property
    def is_busy(self) -> bool:
        """Whether anything is under way that another block would move."""
        return bool(
            len(self.mempool)
            or any(self._arrived)
            or any(self._delayed)
            or any(work.sent for work in self._before)
        )

    def view(self, contract_id: str, method_name: str, args: bytes, block: Block) -> ViewResult:
        """
        Call a view method.

        Parameters
        ----------
        contract_id
            Whose.
        method_name
            The method.
        args
            Its arguments.
        block
            After which block.

        Returns
        -------
        result
            What it returned and logged.

        Raises
        ------
        CallError
            If it failed; what it had logged is in `logs`.
        """
        state = self.store.at(block.height)
        account = state.account(contract_id)
        code_hash = None if account is None else state.code_hash(account)
        if account is None or code_hash is None:
            raise CodeError(contract_id)
        contract = contract_sdk.CONTRACTS_BY_HASH.get(code_hash)
        if contract is None:
            raise CodeError(None)
        context = self._view_context(contract_id, method_name, args, block, account)
        vm = Vm(context, state, self.runtime.profile)
        try:
            result = contract_sdk.run_method(contract, vm, method_name)
        except CallError as error:
            error.logs = tuple(vm.logs)
            raise
        return ViewResult(b"" if isinstance(result, Promise) else result, tuple(vm.logs))

    def _view_context(
        self, contract_id: str, method_name: str, args: bytes, block: Block, account: Account
    ) -> CallContext:
        """Gather what a view sees."""
        return CallContext(
            current_account_id=contract_id,
            signer_id=SYSTEM,
            signer_public_key=SYSTEM_KEY,
            predecessor_id=SYSTEM,
            input=args,
            block_height=block.height,
            block_timestamp=block.timestamp_ns,
            epoch_height=block.epoch_height,
            balance=account.amount,
            locked=account.locked,
            storage_usage=account.storage_usage,
            attached_deposit=0,
            prepaid_gas=fees.VIEW_GAS,
            random_seed=block.random_value,
            action_hash=_NOBODY,
            is_view=True,
            fixed_gas=fixed_gas(self.settings, contract_id, method_name),
        )

    # Acting ------------------------------------------------------------------------------

    def submit(self, signed: SignedTransaction) -> None:
        """
        Check a transaction as a node does that is asked to pass it on, and let it wait.

        Parameters
        ----------
        signed
            The transaction.

        Raises
        ------
        InvalidTransactionError
            The first thing that is wrong.
        """
        self.check(signed)
        if self._to_drop:
            self._to_drop -= 1
        else:
            self.mempool.add(signed)

    def check(self, signed: SignedTransaction) -> None:
        """
        Check a transaction against the head.

        Parameters
        ----------
        signed
            The transaction.

        Raises
        ------
        InvalidTransactionError
            The first thing that is wrong.
        """
        head = self.chain.head
        transaction_validity.check(
            signed,
            self.store.at(),
            self.settings,
            self.runtime.profile,
            gas_price=head.gas_price,
            height=head.height,
            height_of=self.chain.height_of,
        )

    def broadcast(self, signed: SignedTransaction) -> None:
        """Let a transaction wait if it is valid; what is not vanishes without a word."""
        try:
            self.submit(signed)
        except InvalidTransactionError:
            return

    def advance(self, blocks: int = 1, *, skip: int = 0, missing: Iterable[int] = ()) -> Block:
        """
        Let time pass.

        Parameters
        ----------
        blocks
            How many blocks to make.
        skip
            How many heights to leave out before the first.
        missing
            The ids of shards that have no chunk in these blocks.

        Returns
        -------
        block
            The head.
        """
        gaps = frozenset(self.settings.shard_ids.index(shard_id) for shard_id in missing)
        with self.lock:
            for _ in range(blocks):
                self._make(self.chain.head.height + 1 + skip, gaps)
                skip = 0
            return self.chain.head

    def settle(self, limit: int = 1000) -> Block:
        """
        Let time pass until nothing is under way, and what happened is final.

        Parameters
        ----------
        limit
            After how many blocks to stop in any case.

        Returns
        -------
        block
            The head.
        """
        for _ in range(limit):
            if not self.is_busy:
                break
            self.advance()
        return self.advance(3)

    def keys(self) -> dict[str, str]:
        """Give the published secret keys by account id; they are everybody's to use."""
        told = self.summary.accounts
        return {story.account_id: story.secret_key for story in told if story.secret_key}

    def deploy(
        self, account_id: str, contract: type[contract_sdk.Contract], *, balance: str = "10 NEAR"
    ) -> SignedTransaction:
        """
        Create an account with a contract, and let that be executed.

        Parameters
        ----------
        account_id
            Below an account whose key this world publishes, such as ``mine.near``.
        contract
            The contract.
        balance
            What the account gets.

        Returns
        -------
        signed
            The transaction, which is final.

        Raises
        ------
        InvalidRequestError
            If the key of the account above is not published, or the chain refuses, as it
            does where the account is there already.
        """
        from ledgerkit.localnet.deployment import check_deployed, deployment

        signed = deployment(self, account_id, contract, balance)
        self.submit(signed)
        self.settle()
        check_deployed(self, signed)
        return signed

    def adjust(self, **changes: Any) -> None:
        """Change settings from the next block on, by their names."""
        self.settings = replace(self.settings, **changes)
        self.chain.settings = self.runtime.settings = self.settings

    def drop_transactions(self, count: int) -> None:
        """Lose the next transactions that are submitted, as a network may."""
        self._to_drop = count

    def hold_finality(self, *, held: bool = True) -> None:
        """Let no further block become final, until told otherwise."""
        self.chain.finality_held = held

    # Blocks ------------------------------------------------------------------------------

    def _make(self, height: int, missing: frozenset[int]) -> None:
        """Make a block and apply it."""
        minted, turned = self._turn_epoch(height)
        prev = self.chain.head
        context = BlockContext(
            height,
            prev.timestamp_ns + self.settings.block_time_ns * (height - prev.height),
            self.epochs.current.height,
            self.chain.random_value(height),
            prev.gas_price,
        )
        works = [
            self._before[position] if position in missing else Work(position)
            for position in range(self._shards)
        ]
        included: list[tuple[SignedTransaction, ...]] = []
        local: list[list[ActionReceipt]] = []
        for position, work in enumerate(works):
            chosen = [] if position in missing else self._include(context, work)
            included.append(tuple(record.signed for record in chosen))
            local.append([record.receipt for record in chosen if record.is_local])
        block = self.chain.make(height, included, self._before, missing=missing, minted=minted)
        self._route(block)
        fresh = [work for work in works if work.shard not in missing]
        for work in fresh:
            self._apply(work, local[work.shard], context)
        self._note(block, fresh, turned)
        self._before = works

    def _turn_epoch(self, height: int) -> tuple[int, list[Change]]:
        """Begin an epoch where it is time."""
        if not self.chain.begins_epoch():
            return 0, []
        minted = self.epochs.begin_epoch(height, self.store)
        self.minted += minted
        return minted, self.store.commit(height, ("validator_accounts_update", None))

    def _include(self, block: BlockContext, work: Work) -> list[TransactionRecord]:
        """Choose transactions for a shard's chunk; what is no longer valid vanishes."""
        chosen: list[TransactionRecord] = []
        kept: list[SignedTransaction] = []
        for signed in self.mempool.pop_rounds(work.shard):
            if work.gas_used >= _TX_GAS or self._is_early(signed):
                kept.append(signed)
                continue
            record = self._convert(signed, block, work)
            if record is not None:
                chosen.append(record)
        for signed in kept:
            self.mempool.add(signed)
        return chosen

    def _is_early(self, signed: SignedTransaction) -> bool:
        """Tell whether a transaction's strict nonce waits for the ones before it."""
        tx = signed.transaction
        if tx.nonce_mode != "strict":
            return False
        held = self.store.access_keys.get(tx.signer_id, tx.public_key.packed)
        at = self.chain.height_of(tx.block_hash)
        valid = at is not None and self.chain.head.height <= at + self.settings.validity
        return valid and held is not None and tx.nonce > held.nonce + 1

    def _convert(
        self, signed: SignedTransaction, block: BlockContext, work: Work
    ) -> TransactionRecord | None:
        """Turn a transaction into a receipt, if it is still valid."""
        try:
            paid = transaction_validity.check(
                signed,
                self.store.at(),
                self.settings,
                self.runtime.profile,
                gas_price=block.gas_price,
                height=self.chain.head.height,
                height_of=self.chain.height_of,
                chunk_height=block.height,
            )
        except InvalidTransactionError:
            return None
        record = self.runtime.convert(signed, paid, block, work)
        self._transactions[signed.hash] = record
        self._receipts[record.receipt.receipt_id] = record.receipt
        return record

    def _route(self, block: Block) -> None:
        """Bring what the block's new chunks send to where the receivers live."""
        for chunk in block.chunks:
            if chunk.height_included == block.height:
                for receipt in chunk.receipts:
                    self._arrived[self.settings.shard_of(receipt.receiver_id)].append(receipt)

    def _apply(self, work: Work, local: list[ActionReceipt], block: BlockContext) -> None:
        """Apply a shard's receipts: local ones, delayed ones, those that arrived."""
        delayed, arrived = self._delayed[work.shard], self._arrived[work.shard]
        self._delayed[work.shard], self._arrived[work.shard] = [], []
        for receipt in [*local, *delayed, *arrived]:
            if work.gas_used >= fees.CHUNK_GAS:
                self._delayed[work.shard].append(receipt)
            else:
                self.runtime.receive(receipt, block, work)
        self.runtime.expire(block, work)

    def _note(self, block: Block, works: list[Work], turned: list[Change]) -> None:
        """Let what a block did be found."""
        self.chain.applied(block.height, works, turned)
        for work in works:
            self.epochs.add_proposals(work.proposals)
            self.burnt += work.balance_burnt
            self._outcomes.update((outcome.id, outcome) for outcome in work.outcomes)
            self._receipts.update((receipt.receipt_id, receipt) for receipt in work.sent)
            self._receipts.update((r.receipt_id, r) for r in work.yielded)
        if not self.settings.archival:
            self._collect_garbage()

    def _collect_garbage(self) -> None:
        """Forget the states of epochs that are too old."""
        kept = self.epochs.all[-self.settings.epochs_kept :]
        oldest = kept[0].start_height
        if oldest > self.chain.earliest.height:
            block = self.chain.by_height(oldest)
            if block is not None:
                self.chain.earliest = block
                self.store.prune(oldest)

    # Accounts ----------------------------------------------------------------------------

    def under_way(self) -> int:
        """Sum the yoctoNEAR that are in no account: in receipts not yet executed."""
        held: list[Receipt] = [r for work in self._before for r in work.sent]
        for position in range(self._shards):
            held += [*self._arrived[position], *self._delayed[position]]
        actions = [r for r in held if isinstance(r, ActionReceipt)]
        return sum(map(self._value, [*actions, *self.runtime.waiting()]))

    def _value(self, receipt: ActionReceipt) -> int:
        """Tell the yoctoNEAR that a receipt carries, as deposits and as gas."""
        profile = self.runtime.profile
        gas = profile.new_receipt_execute + fees.attached_gas(receipt.actions)
        gas += profile.prepaid_execution(receipt.actions, receipt.receiver_id)
        return fees.deposits(receipt.actions) + gas * receipt.gas_price

    def total_supply(self) -> int:
        """Sum all yoctoNEAR there are: what accounts have, and what is under way."""
        accounts = (held[b""] for held in self.store.accounts.head.values() if held)
        return sum(a.amount + a.locked for a in accounts) + self.under_way()
