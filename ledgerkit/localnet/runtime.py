"""
The runtime: converts transactions to receipts and executes receipts.

A chain has one `Runtime`. Besides the state it stores data that arrived before its callback,
callbacks that wait for data, and yielded calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, structs

from ledgerkit.localnet import fees, transaction_validity
from ledgerkit.localnet.actions import ReceiptRun, refund
from ledgerkit.localnet.chain_types import (
    ActionReceipt,
    BlockContext,
    Change,
    DataReceipt,
    DistributionReceipt,
    Failure,
    Outcome,
    Proposal,
    Receipt,
    SuccessReceiptId,
    SuccessValue,
    TransactionRecord,
)
from ledgerkit.localnet.execution_errors import ActionError
from ledgerkit.localnet.fees import Feature
from ledgerkit.localnet.promises import Yields
from ledgerkit.localnet.state import StateStore, global_name, nonce_key
from ledgerkit.protocol import CryptoHash, SignedTransaction, receipt_id_of
from ledgerkit.protocol.actions import deposits

if TYPE_CHECKING:
    from ledgerkit.localnet.settings import Settings

DataKey = tuple[str, CryptoHash]  # the account that data is for, and the data id


class ShardResult(Struct):
    """The results of one shard's application in one block, as they accumulate."""

    shard: int  # the shard's position
    transactions: list[TransactionRecord] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    sent: list[Receipt] = field(default_factory=list)
    yielded: list[Receipt] = field(default_factory=list)  # they stay on the shard
    proposals: list[Proposal] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    gas_used: int = 0
    balance_burnt: int = 0


class Runtime:
    """The executor of transactions and receipts."""

    def __init__(self, store: StateStore, settings: Settings) -> None:
        self.store, self.settings = store, settings
        self.profile = fees.PROFILES[settings.profile]
        self._received: dict[DataKey, bytes | None] = {}
        self._waiting: dict[DataKey, ActionReceipt] = {}  # the receipt that waits for the data
        self._yield_timeouts: dict[int, list[tuple[int, DataKey]]] = {}  # by shard, with heights
        self._yield_ids: dict[tuple[str, bytes], CryptoHash] = {}  # data ids, by contracts' own ids

    # Transactions ------------------------------------------------------------------------

    def convert(
        self,
        signed: SignedTransaction,
        charge: transaction_validity.Charge,
        block: BlockContext,
        result: ShardResult,
    ) -> TransactionRecord:
        """Charge the signer of a valid transaction and convert the transaction to a receipt."""
        cost, account, access_key = charge
        tx, tx_hash = signed.transaction, signed.hash
        self.store.accounts.put(tx.signer_id, b"", account)
        if access_key is not None:
            self.store.access_keys.put(tx.signer_id, tx.public_key.stored, access_key)
        if tx.nonce_index is not None:
            key = nonce_key(tx.public_key.stored, tx.nonce_index)
            self.store.gas_key_nonces.put(tx.signer_id, key, tx.nonce)
        result.changes += self.store.commit(block.height, ("transaction_processing", tx_hash))
        receipt = ActionReceipt(
            receipt_id_of(tx_hash, block.height, 0),
            tx.signer_id,
            tx.receiver_id,
            tx.signer_id,
            tx.public_key,
            cost.purchase_price,
            tx.actions,
        )
        outcome = Outcome(
            tx_hash,
            tx.signer_id,
            (),
            (receipt.receipt_id,),
            cost.gas_burnt,
            cost.gas_burnt * block.gas_price,
            SuccessReceiptId(receipt.receipt_id),
            block.height,
            result.shard,
        )
        result.outcomes.append(outcome)
        result.gas_used += outcome.gas_burnt
        result.balance_burnt += outcome.tokens_burnt
        is_local = tx.signer_id == tx.receiver_id
        if not is_local:
            result.sent.append(receipt)
        return TransactionRecord(signed, outcome, receipt, is_local)

    # Receipts ----------------------------------------------------------------------------

    def receive(self, receipt: Receipt, block: BlockContext, result: ShardResult) -> None:
        """Process a receipt: execute it, postpone it, or execute the receipt that waited for it."""
        if isinstance(receipt, ActionReceipt):
            self._execute_or_postpone(receipt, block, result)
        elif isinstance(receipt, DataReceipt):
            self._receive_data(receipt, block, result)
        elif isinstance(receipt, DistributionReceipt):
            self._distribute(receipt, block, result)

    def _distribute(
        self, receipt: DistributionReceipt, block: BlockContext, result: ShardResult
    ) -> None:
        """
        Store a global contract, and send it on to the next shard.

        All shards share one state here, so only the first delivery writes it.
        """
        if not receipt.delivered_shards:
            self.store.global_codes.put(global_name(receipt.contract), b"", receipt.code_hash)
            cause = ("receipt_processing", receipt.receipt_id)
            result.changes += self.store.commit(block.height, cause)
        delivered = sorted({*receipt.delivered_shards, receipt.target_shard})
        remaining = [shard_id for shard_id in self.settings.shard_ids if shard_id not in delivered]
        if remaining:
            forwarded = structs.replace(
                receipt,
                receipt_id=receipt_id_of(receipt.receipt_id, block.height, 0),
                target_shard=remaining[0],
                delivered_shards=tuple(delivered),
            )
            result.sent.append(forwarded)

    def _receive_data(self, receipt: DataReceipt, block: BlockContext, result: ShardResult) -> None:
        """Store data; execute the callback that waits for it if nothing else is missing."""
        key = (receipt.receiver_id, receipt.data_id)
        if receipt.is_promise_resume and key not in self._waiting:
            return  # the yielded call has timed out
        self._received[key] = receipt.data
        callback = self._waiting.pop(key, None)
        if callback is None:
            return
        try:
            self._execute_or_postpone(callback, block, result)
        except KeyboardInterrupt:
            self._waiting[key] = callback
            raise

    def postponed(self) -> list[ActionReceipt]:
        return list(self._waiting.values())

    def resume_timed_out(self, block: BlockContext, result: ShardResult) -> None:
        """Resume, without data, the shard's yielded calls whose timeout has passed."""
        timeouts = self._yield_timeouts.get(result.shard, [])
        due = [key for height, key in timeouts if height <= block.height]
        self._yield_timeouts[result.shard] = [
            entry for entry in timeouts if entry[0] > block.height
        ]
        for index, (account_id, data_id) in enumerate(due):
            if (account_id, data_id) in self._waiting:
                receipt_id = receipt_id_of(data_id, block.height, index)
                resume = DataReceipt(
                    receipt_id, account_id, account_id, data_id, None, is_promise_resume=True
                )
                result.sent.append(resume)

    def _execute_or_postpone(
        self, receipt: ActionReceipt, block: BlockContext, result: ShardResult
    ) -> None:
        keys = [(receipt.receiver_id, data_id) for data_id in receipt.input_data_ids]
        missing = [key for key in keys if key not in self._received]
        self._waiting.update(dict.fromkeys(missing, receipt))
        if not missing:
            self._execute(receipt, block, result)

    def _execute(self, receipt: ActionReceipt, block: BlockContext, result: ShardResult) -> None:
        receiver_id = receipt.receiver_id
        input_ids = receipt.input_data_ids
        inputs = tuple([self._received.pop((receiver_id, data_id)) for data_id in input_ids])
        run = ReceiptRun(
            receipt,
            self.store,
            self.settings,
            self.profile,
            block,
            inputs=inputs,
            yields=self._yields_of(receiver_id),
        )
        existed = run.account is not None
        try:
            failure = self._apply(run)
        except KeyboardInterrupt:  # in a contract: its call is undone, and runs again
            self.store.rollback(0)
            for data_id, data in zip(input_ids, inputs, strict=True):
                self._received[receiver_id, data_id] = data
            raise
        result.changes += self.store.commit(
            block.height, ("receipt_processing", receipt.receipt_id)
        )
        self._finish(run, failure, result, existed=existed)

    def _yields_of(self, account_id: str) -> Yields:
        def is_waiting(data_id: CryptoHash) -> bool:
            receipt = self._waiting.get((account_id, data_id))
            return receipt is not None and receipt.is_promise_yield

        def data_id_of(yield_id: bytes) -> CryptoHash | None:
            data_id = self._yield_ids.get((account_id, yield_id))
            return None if data_id is None or not is_waiting(data_id) else data_id

        return Yields(is_waiting, data_id_of)

    def _apply(self, run: ReceiptRun) -> Failure | None:
        mark = self.store.mark()
        try:
            run.apply()
        except ActionError as error:
            self.store.rollback(mark)
            run.new_receipts.clear()
            run.proposals.clear()
            run.tokens_burnt = run.tokens_minted = 0
            run.yield_ids.clear()
            run.account = run.state.account(run.receipt.receiver_id)
            return Failure({"ActionError": {"index": error.index, "kind": error.kind}})
        return None

    def _finish(
        self, run: ReceiptRun, failure: Failure | None, result: ShardResult, *, existed: bool
    ) -> None:
        """Refund unused gas, send the new receipts and record the outcome."""
        receipt, block = run.receipt, run.block
        burn_price = min(receipt.gas_price, block.gas_price)
        is_created = failure is None and run.account is not None and not existed
        tokens_burnt = run.gas_burnt * burn_price + run.tokens_burnt
        if not receipt.is_refund:
            tokens_burnt += self._refund(run, failure, burn_price, is_created=is_created)
        elif failure is not None:
            # A refund whose receiver was deleted burns.
            result.balance_burnt += deposits(receipt.actions)
        reward = self._pay_reward(run, burn_price, result)
        sent = self._receipts_to_send(run, failure)
        outcome = Outcome(
            receipt.receipt_id,
            receipt.receiver_id,
            tuple(run.logs),
            tuple([new.receipt_id for new in sent if isinstance(new, ActionReceipt)]),
            run.gas_burnt,
            tokens_burnt,
            failure or _success_status(run, sent),
            block.height,
            result.shard,
            run.gas_profile(),
            tuple(run.contracts) if self.profile.has(Feature.CONTRACTS_IN_METADATA) else None,
        )
        result.outcomes.append(outcome)
        for yield_id, data_id in run.yield_ids.items():
            self._yield_ids[receipt.receiver_id, yield_id] = data_id
        result.proposals += run.proposals
        result.gas_used += run.gas_burnt
        result.balance_burnt += tokens_burnt - reward - run.tokens_minted
        for new in sent:
            if isinstance(new, ActionReceipt) and new.is_promise_yield:
                self._yield(new, block, result)
            else:
                result.sent.append(new)

    def _refund(
        self, run: ReceiptRun, failure: Failure | None, burn_price: int, *, is_created: bool
    ) -> int:
        """Add the refunds of a receipt; return the charge of a created account, in yoctoNEAR."""
        receipt, profile = run.receipt, self.profile
        if failure is not None:
            deposit = deposits(receipt.actions)
            if deposit:
                run.new_receipts.append(refund(receipt.deposit_refund_receiver, deposit))
        prepaid = profile.prepaid_gas(receipt.actions, receipt.receiver_id)
        unused = prepaid - (run.gas_burnt if failure else run.gas_used)
        # Gas was bought at the receipt's price, and burns at the block's price if that is lower.
        surplus = run.gas_burnt * (receipt.gas_price - burn_price)
        charge = 0
        if is_created and profile.creation_charge:
            creation_gas = profile.table["create_account"].execute
            beyond_gas = max(0, profile.creation_charge - burn_price * creation_gas)
            charge = min(beyond_gas, surplus)
        amount = unused * receipt.gas_price + surplus - charge
        if amount:
            signer_id, public_key = receipt.signer_id, receipt.signer_public_key
            run.new_receipts.append(refund(signer_id, amount, signer_id, public_key))
        return charge

    def _pay_reward(self, run: ReceiptRun, burn_price: int, result: ShardResult) -> int:
        """Pay the contract its share of the gas that its calls burnt."""
        reward = run.call_gas * self.profile.reward_percent // 100 * burn_price
        if not reward or run.account is None:
            return 0
        run.change(amount=reward)
        cause = ("action_receipt_gas_reward", run.receipt.receipt_id)
        result.changes += self.store.commit(run.block.height, cause)
        return reward

    def _receipts_to_send(self, run: ReceiptRun, failure: Failure | None) -> list[Receipt]:
        """Assign ids to the new receipts, in nearcore's order: receipts, refunds, data."""
        receipt = run.receipt
        is_value = failure is not None or isinstance(run.result, bytes)
        returned = None if is_value else run.result  # the position of the returned promise
        sent: list[Receipt] = []
        for index, new in enumerate([*run.new_receipts, *_data_receipts(run, failure)]):
            receipt_id = receipt_id_of(receipt.receipt_id, run.block.height, index)
            changes: dict[str, Any] = {"receipt_id": receipt_id}
            if index == returned and isinstance(new, ActionReceipt):
                # The returned promise sends its result to the receivers of this receipt's result.
                receivers = new.output_data_receivers + receipt.output_data_receivers
                changes["output_data_receivers"] = receivers
            sent.append(structs.replace(new, **changes))
        return sent

    def _yield(self, receipt: ActionReceipt, block: BlockContext, result: ShardResult) -> None:
        """Postpone a yielded call (NEP-519), which stays on its shard."""
        due = block.height + self.settings.yield_timeout
        result.yielded.append(receipt)
        timeouts = self._yield_timeouts.setdefault(result.shard, [])
        for data_id in receipt.input_data_ids:
            key = (receipt.receiver_id, data_id)
            timeouts.append((due, key))
            self._waiting[key] = receipt


def _data_receipts(run: ReceiptRun, failure: Failure | None) -> list[Receipt]:
    """Build the data receipts for waiting callbacks; none if a returned promise sends them."""
    receipt = run.receipt
    receivers = receipt.output_data_receivers
    if not receivers or (failure is None and isinstance(run.result, int)):
        return []
    data = run.result if failure is None and isinstance(run.result, bytes) else None
    return [
        DataReceipt(receipt.receipt_id, receipt.receiver_id, receiver_id, data_id, data)
        for data_id, receiver_id in receivers
    ]


def _success_status(run: ReceiptRun, sent: list[Receipt]) -> SuccessValue | SuccessReceiptId:
    if isinstance(run.result, bytes):
        return SuccessValue(run.result)
    return SuccessReceiptId(sent[run.result].receipt_id)
