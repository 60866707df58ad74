"""
Transactions become receipts, receipts change state and make receipts.

One `Runtime` serves a chain. It holds, beside the state, what waits at the head: data
that came before its callback, callbacks that wait for data, yielded calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field, structs

from ledgerkit.localnet import fees, transaction_validity
from ledgerkit.localnet.actions import Run, refund
from ledgerkit.localnet.chain_types import (
    Account,
    ActionReceipt,
    Change,
    DataReceipt,
    Failure,
    Outcome,
    Proposal,
    Receipt,
    SuccessReceiptId,
    SuccessValue,
    TransactionRecord,
)
from ledgerkit.localnet.execution_errors import ActionError
from ledgerkit.protocol import CryptoHash, SignedTransaction, receipt_id_of

if TYPE_CHECKING:
    from ledgerkit.localnet.settings import Settings
    from ledgerkit.localnet.state import StateStore

Slot = tuple[str, CryptoHash]  # for whom data is, and its id
PERCENT = 100


class BlockContext(Struct, frozen=True):
    """What receipts see of the block in which they are applied."""

    height: int
    timestamp_ns: int
    epoch_height: int
    random_value: CryptoHash
    gas_price: int


class Work(Struct):
    """What one shard does in one block, as it grows."""

    shard: int
    outcomes: list[Outcome] = field(default_factory=list)
    sent: list[Receipt] = field(default_factory=list)
    yielded: list[Receipt] = field(default_factory=list)  # that wait where they were made
    proposals: list[Proposal] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    gas_used: int = 0
    balance_burnt: int = 0


class Runtime:
    """
    Applies transactions and receipts to a state.

    Parameters
    ----------
    store
        The state.
    settings
        Limits, shards.
    """

    def __init__(self, store: StateStore, settings: Settings) -> None:
        self.store, self.settings = store, settings
        self.profile = fees.PROFILES[settings.profile]
        self._received: dict[Slot, bytes | None] = {}
        self._waiting: dict[Slot, CryptoHash] = {}
        self._postponed: dict[CryptoHash, tuple[ActionReceipt, set[CryptoHash]]] = {}
        self._timeouts: dict[int, list[tuple[int, Slot]]] = {}  # of yields, by shard

    # Transactions ------------------------------------------------------------------------

    def convert(
        self,
        signed: SignedTransaction,
        paid: tuple[transaction_validity.Cost, Account, object],
        block: BlockContext,
        work: Work,
    ) -> TransactionRecord:
        """
        Take a checked transaction's cost and turn it into a receipt.

        Parameters
        ----------
        signed
            The transaction.
        paid
            Its cost, the signer paid up, and the key used.
        block
            The block.
        work
            Where the outcome goes, and a receipt for another account.

        Returns
        -------
        record
            The transaction and its receipt.
        """
        cost, account, access_key = paid
        tx = signed.transaction
        self.store.accounts.put(tx.signer_id, b"", account)
        self.store.access_keys.put(tx.signer_id, tx.public_key.packed, access_key)  # type: ignore[arg-type]  # as checked
        work.changes += self.store.commit(block.height, ("transaction_processing", signed.hash))
        receipt = ActionReceipt(
            receipt_id_of(signed.hash, block.height, 0),
            tx.signer_id,
            tx.receiver_id,
            tx.signer_id,
            tx.public_key,
            cost.purchase_price,
            tx.actions,
        )
        outcome = Outcome(
            signed.hash,
            tx.signer_id,
            (),
            (receipt.receipt_id,),
            cost.gas_burnt,
            cost.gas_burnt * block.gas_price,
            SuccessReceiptId(receipt.receipt_id),
            block.height,
            work.shard,
        )
        work.outcomes.append(outcome)
        work.gas_used += outcome.gas_burnt
        work.balance_burnt += outcome.tokens_burnt
        local = tx.signer_id == tx.receiver_id
        if not local:
            work.sent.append(receipt)
        return TransactionRecord(signed, outcome, receipt, local)

    # Receipts ----------------------------------------------------------------------------

    def receive(self, receipt: Receipt, block: BlockContext, work: Work) -> None:
        """
        Take in a receipt: execute it, or let it wait, or execute what waited for it.

        Parameters
        ----------
        receipt
            That arrived, or was local.
        block
            The block.
        work
            Where everything that follows goes.
        """
        if isinstance(receipt, DataReceipt):
            self._receive_data(receipt, block, work)
        elif isinstance(receipt, ActionReceipt):
            missing = {
                data_id
                for data_id in receipt.input_data_ids
                if (receipt.receiver_id, data_id) not in self._received
            }
            if missing:
                self._postpone(receipt, missing)
            else:
                self._execute(receipt, block, work)

    def _receive_data(self, receipt: DataReceipt, block: BlockContext, work: Work) -> None:
        """Keep data until all that its callback waits for is there."""
        slot = (receipt.receiver_id, receipt.data_id)
        if receipt.is_promise_resume and slot not in self._waiting:
            return  # time was up before
        self._received[slot] = receipt.data
        receipt_id = self._waiting.pop(slot, None)
        if receipt_id is None:
            return
        waiting, missing = self._postponed[receipt_id]
        missing.discard(receipt.data_id)
        if not missing:
            del self._postponed[receipt_id]
            self._execute(waiting, block, work)

    def _postpone(self, receipt: ActionReceipt, missing: set[CryptoHash]) -> None:
        """Let a receipt wait for data."""
        self._postponed[receipt.receipt_id] = (receipt, missing)
        for data_id in missing:
            self._waiting[receipt.receiver_id, data_id] = receipt.receipt_id

    def is_postponed(self, receipt_id: CryptoHash) -> bool:
        """Tell whether a receipt waits for data."""
        return receipt_id in self._postponed

    def waiting(self) -> list[ActionReceipt]:
        """List the receipts that wait for data."""
        return [receipt for receipt, _ in self._postponed.values()]

    def expire(self, block: BlockContext, work: Work) -> None:
        """Resume without data the yielded calls of a shard whose time is up."""
        held = self._timeouts.get(work.shard, [])
        due = [slot for height, slot in held if height <= block.height]
        self._timeouts[work.shard] = [entry for entry in held if entry[0] > block.height]
        for index, (account_id, data_id) in enumerate(due):
            if (account_id, data_id) in self._waiting:
                named = receipt_id_of(data_id, block.height, index)
                resume = DataReceipt(
                    named, account_id, account_id, data_id, None, is_promise_resume=True
                )
                work.sent.append(resume)

    def _execute(self, receipt: ActionReceipt, block: BlockContext, work: Work) -> None:
        """Execute a receipt whose data is all there."""
        receiver_id = receipt.receiver_id
        inputs = tuple(
            self._received.pop((receiver_id, data_id)) for data_id in receipt.input_data_ids
        )
        run = Run(
            receipt,
            self.store,
            self.settings,
            self.profile,
            height=block.height,
            timestamp_ns=block.timestamp_ns,
            epoch_height=block.epoch_height,
            random_value=block.random_value,
            inputs=inputs,
            waits=lambda data_id: self._is_yielded(receiver_id, data_id),
        )
        existed = run.account is not None
        failure = self._apply(run)
        work.changes += self.store.commit(block.height, ("receipt_processing", receipt.receipt_id))
        self._settle(run, failure, block, work, existed=existed)

    def _is_yielded(self, account_id: str, data_id: CryptoHash) -> bool:
        """Tell whether a yielded call of an account waits for a piece of data."""
        receipt_id = self._waiting.get((account_id, data_id))
        return receipt_id is not None and self._postponed[receipt_id][0].is_promise_yield

    def _apply(self, run: Run) -> Failure | None:
        """Apply the actions, or none of them."""
        mark = self.store.mark()
        try:
            run.apply()
        except ActionError as error:
            self.store.rollback(mark)
            run.new.clear()
            run.proposals.clear()
            run.account = run.state.account(run.receipt.receiver_id)
            return Failure({"ActionError": {"index": error.index, "kind": error.kind}})
        return None

    def _settle(
        self, run: Run, failure: Failure | None, block: BlockContext, work: Work, *, existed: bool
    ) -> None:
        """Give back what was not used, send what was made, and write the outcome."""
        receipt = run.receipt
        burn_price = min(receipt.gas_price, block.gas_price)
        created = failure is None and run.account is not None and not existed
        tokens_burnt = run.gas_burnt * burn_price
        if not receipt.is_refund:
            tokens_burnt += self._refund(run, failure, burn_price, created=created)
        elif failure is not None:
            work.balance_burnt += fees.deposits(receipt.actions)
        reward = self._reward(run, burn_price, block, work)
        sent = self._send(run, failure, block)
        outcome = Outcome(
            receipt.receipt_id,
            receipt.receiver_id,
            tuple(run.logs),
            tuple(new.receipt_id for new in sent if isinstance(new, ActionReceipt)),
            run.gas_burnt,
            tokens_burnt,
            failure or _status(run, sent),
            block.height,
            work.shard,
            run.lines(),
            tuple(run.contracts) if self.profile.later else None,
        )
        work.outcomes.append(outcome)
        work.proposals += run.proposals
        work.gas_used += run.gas_burnt
        work.balance_burnt += tokens_burnt - reward
        for made in sent:
            if isinstance(made, ActionReceipt) and made.is_promise_yield:
                self._yield(made, block, work)
            else:
                work.sent.append(made)

    def _refund(self, run: Run, failure: Failure | None, burn_price: int, *, created: bool) -> int:
        """Make the refunds of a receipt; tell what the creation of an account burns besides."""
        receipt, profile = run.receipt, self.profile
        if failure is not None:
            deposit = fees.deposits(receipt.actions)
            if deposit:
                run.new.append(refund(receipt.refund_to or receipt.predecessor_id, deposit))
        gross = (
            profile.new_receipt_execute
            + profile.prepaid_execution(receipt.actions, receipt.receiver_id)
            + fees.attached_gas(receipt.actions)
        )
        unused = gross - (run.gas_burnt if failure else run.gas_used)
        price = receipt.gas_price
        surplus = run.gas_burnt * (price - burn_price)
        charge = 0
        if created and profile.creation_charge:
            charge = min(self._creation_charge(burn_price), surplus)
        amount = unused * price + surplus - charge
        if amount:
            given_back = refund(
                receipt.signer_id, amount, receipt.signer_id, receipt.signer_public_key
            )
            run.new.append(given_back)
        return charge

    def _creation_charge(self, burn_price: int) -> int:
        """Tell what an account's creation costs beyond its gas."""
        gas = self.profile.table["create_account"].execute
        return max(0, self.profile.creation_charge - burn_price * gas)

    def _reward(self, run: Run, burn_price: int, block: BlockContext, work: Work) -> int:
        """Give the contract its share of what its calls burnt."""
        reward = run.call_gas * self.profile.reward_percent // PERCENT * burn_price
        if not reward or run.account is None:
            return 0
        run.change(amount=reward)
        cause = ("action_receipt_gas_reward", run.receipt.receipt_id)
        work.changes += self.store.commit(block.height, cause)
        return reward

    def _send(self, run: Run, failure: Failure | None, block: BlockContext) -> list[Receipt]:
        """Name what a receipt makes, in its order: receipts, refunds, data for its callers."""
        receipt = run.receipt
        promised = None if failure is not None or isinstance(run.result, bytes) else run.result
        sent: list[Receipt] = []
        for salt, new in enumerate([*run.new, *_data(run, failure)]):
            named = receipt_id_of(receipt.receipt_id, block.height, salt)
            if salt == promised and isinstance(new, ActionReceipt):
                # What was to be told by this receipt is told by the one it returns.
                receivers = new.output_data_receivers + receipt.output_data_receivers
                new = structs.replace(new, output_data_receivers=receivers)  # noqa: PLW2901 - the same one, completed
            sent.append(structs.replace(new, receipt_id=named))
        return sent

    def _yield(self, receipt: ActionReceipt, block: BlockContext, work: Work) -> None:
        """Let a yielded call wait, right where it was made."""
        due = block.height + self.settings.yield_timeout
        work.yielded.append(receipt)
        held = self._timeouts.setdefault(work.shard, [])
        held.extend((due, (receipt.receiver_id, data_id)) for data_id in receipt.input_data_ids)
        self._postpone(receipt, set(receipt.input_data_ids))


def _data(run: Run, failure: Failure | None) -> list[Receipt]:
    """Make the data that callers wait for; none where a promise will tell it."""
    if failure is None and isinstance(run.result, int):
        return []
    data = run.result if failure is None and isinstance(run.result, bytes) else None
    receipt = run.receipt
    return [
        DataReceipt(receipt.receipt_id, receipt.receiver_id, receiver_id, data_id, data)
        for data_id, receiver_id in receipt.output_data_receivers
    ]


def _status(run: Run, sent: list[Receipt]) -> SuccessValue | SuccessReceiptId:
    """Tell how a receipt ended that did not fail."""
    if isinstance(run.result, bytes):
        return SuccessValue(run.result)
    return SuccessReceiptId(sent[run.result].receipt_id)
