"""
Signing with the next nonce of a key, and sending, in turn with the key's other senders.

The first request of a ledger reads its chain's identity too: nothing is signed for mainnet
unless that is allowed, and all senders on one chain share the nonces of a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ledgerkit import user_warnings, validation
from ledgerkit.api import calls, rpc
from ledgerkit.api.models.chain import AccessKey, Account
from ledgerkit.errors import (
    DecodeError,
    InvalidRequestError,
    InvalidTransactionError,
    LedgerError,
    RequestRoutedError,
    RpcMethodNotFoundError,
    TransactionTimeoutError,
    UnknownAccessKeyError,
    UnknownAccountError,
)
from ledgerkit.frames import build
from ledgerkit.frames.accounts import permission_fields, spendable
from ledgerkit.protocol import (
    Action,
    CryptoHash,
    Delegate,
    DelegateAction,
    DeleteAccount,
    SignedTransaction,
    Transaction,
)
from ledgerkit.protocol.actions import attached_gas, deposits
from ledgerkit.sending import arguments, broadcast, fees, nonces
from ledgerkit.sending.lifecycle import Tracker
from ledgerkit.sending.nonces import Anchor, NonceQueue
from ledgerkit.sending.submission import Submission, remember, wait_for_level
from ledgerkit.tracing.action_fields import parse_amount
from ledgerkit.units import near_text
from ledgerkit.verbs.fetching import provenance

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.calls import Call
    from ledgerkit.ledger import Ledger
    from ledgerkit.sending.signers import Signer

MAINNET = "mainnet"
_DELEGATION_BLOCKS = 1200  # about ten minutes to find a relayer


@dataclass(frozen=True, slots=True)
class SendOptions:
    """The checked options of a verb."""

    ledger: Ledger
    signer: Signer
    wait_until: str
    timeout_s: float
    via: str
    strict: bool
    allow_mainnet: bool
    dry_run: bool


class _Chain(Struct, frozen=True):
    """The members of a node's status that identify its chain."""

    chain_id: str
    genesis_hash: str | None = None


# Keys on a chain --------------------------------------------------------------------------


class _Key:
    """
    A signer's key on the chain of a ledger, with its nonce queues.

    `initializes_signer` is True for a transaction with the initial state of its signer, a universal
    account: it is signed before the chain has the key.
    """

    def __init__(self, options: SendOptions, *, initializes_signer: bool = False) -> None:
        self.options, self.ledger, signer = options, options.ledger, options.signer
        self._initializes_signer = initializes_signer
        self.names = str(signer.account_id), str(signer.public_key)
        self._memo: dict[str, _Chain] = self.ledger.memo("chain", dict)

    def calls(self) -> list[Call[Any]]:
        head, final = map(validation.block_reference, ("optimistic", "final"))
        return [rpc.view_access_key(*self.names, head), rpc.block(final)]

    def read(self, requests: Sequence[Call[Any]]) -> list[Any]:
        """Send calls concurrently, the first time with one for the chain's identity."""
        is_first = not self._memo  # read once: another thread may add it meanwhile
        if is_first:
            requests = [calls.rpc("status", [], _Chain, request="the node's status"), *requests]
        responses = self.ledger.send_many(requests, on_error="collect", progress=False)
        if is_first:
            self._memo["chain"] = _value_or_raise(responses.pop(0))
        return responses

    def open(self) -> tuple[AccessKey, Anchor] | None:
        """Check the chain; the first time on a ledger, also read the key and a block."""
        responses = self.read([] if self._memo else self.calls())
        if self._memo["chain"].chain_id == MAINNET and not self.options.allow_mainnet:
            msg = "this ledger is the public mainnet, where transactions move real NEAR"
            remedy = "Pass allow_mainnet=True to sign for it, or connect to another network."
            raise InvalidRequestError(msg, remedy=remedy, field="allow_mainnet", value=False)
        return self.key_and_block(responses) if responses else None

    @cached_property
    def queues(self) -> nonces.KeyQueues:
        """The queues of the key on this chain, shared by all `Ledger` objects on it."""
        chain = self._memo["chain"]
        # Embedded worlds may share a genesis, and an old node does not send its genesis hash.
        owner: str | nonces.Memo = broadcast.embedded_world(self.ledger) or self.ledger
        is_live = self.ledger.replay is None  # a recording has its own nonces
        if owner is self.ledger and chain.genesis_hash and is_live:
            owner = f"{chain.chain_id} {chain.genesis_hash}"
        return nonces.key_queues(owner, *self.names)

    def key_and_block(self, responses: Sequence[Any]) -> tuple[AccessKey, Anchor]:
        """Return the key and the block that were read; store whether it is a gas key."""
        key, block = responses
        is_missing = isinstance(key, UnknownAccessKeyError | UnknownAccountError)
        if is_missing and self.options.signer.account_id.kind == "universal":
            key = self._key_without_state(key)
        key, block = _value_or_raise(key), _value_or_raise(block)
        kind, permission = permission_fields(key.permission)
        count: int | None = permission.get("num_nonces")
        if kind.startswith("GasKey") and not count:
            raise DecodeError("a gas key has no number of nonces", path="permission")
        self.queues.num_nonces = count
        return key, Anchor(block.header.height, CryptoHash(block.header.hash))

    def _key_without_state(self, error: LedgerError) -> Any:
        """Return the key of a signer without its initial state; the error for other signers."""
        account_id, _ = self.names
        if isinstance(error, UnknownAccountError):
            error.remedy = "Send NEAR to the account first: a transfer creates it."
            return error
        head = validation.block_reference("optimistic")
        nonce = self.ledger.send(rpc.view_account(account_id, head)).bootstrap_nonce
        if nonce is None:
            return error
        if not self._initializes_signer:
            msg = f"{account_id} has no initial state yet, so no key can sign for it"
            remedy = (
                "First send it UniversalStateInit: from any account, or from itself, signed with a"
                " key of that state."
            )
            raise InvalidRequestError(msg, remedy=remedy, field="signer_id", value=account_id)
        return AccessKey(nonce, "FullAccess")

    def anchor(self, queue: NonceQueue, read: tuple[AccessKey, Anchor] | None) -> Anchor | None:
        """Return the block to reference; None if the queue does not fit the key."""
        anchor = queue.anchor
        if anchor is None:  # the last block is old: read the key's nonce and a new one
            key, anchor = read or self.key_and_block(self.read(self.calls()))
            if not self.queues.fits(queue):
                return None
            queue.update(self.last_nonce(key, queue), anchor)
        return anchor

    def last_nonce(self, key: AccessKey, queue: NonceQueue) -> int:
        """Return the last nonce of a queue; the nonces of a gas key are read separately."""
        if queue.nonce_index is None:
            return key.nonce
        head = validation.block_reference("optimistic")
        return broadcast.read_nonce(self.ledger, *self.names, queue.nonce_index, head)


def _value_or_raise(response: Any) -> Any:
    if isinstance(response, LedgerError):
        raise response
    return response


# Transactions -----------------------------------------------------------------------------


class Draft:
    """A transaction that is not signed yet: the options of its verb, its receiver and actions."""

    def __init__(self, options: SendOptions, receiver_id: str, actions: Sequence[Action]) -> None:
        self.options, self.receiver_id, self.actions = options, receiver_id, actions
        unsigned = self.transaction(0, None, CryptoHash(bytes(32)))
        arguments.check_size(unsigned)
        self.key = _Key(options, initializes_signer=unsigned.initializes_signer)

    def transaction(
        self, nonce: int, nonce_index: int | None, block_hash: CryptoHash
    ) -> Transaction:
        """Build the transaction; only version 1 has a strict nonce mode and a gas key's nonces."""
        options: dict[str, Any] = {}
        if self.options.strict or nonce_index is not None:
            mode = "strict" if self.options.strict else "monotonic"
            options = {"version": 1, "nonce_mode": mode, "nonce_index": nonce_index}
        account_id, public_key = self.options.signer.account_id, self.options.signer.public_key
        return Transaction(
            account_id, public_key, nonce, self.receiver_id, block_hash, self.actions, **options
        )

    def run(self) -> Submission | pd.DataFrame:
        return self._dry_run() if self.options.dry_run else self._send()

    def _send(self) -> Submission:
        deadline = self.options.ledger.clock.monotonic() + self.options.timeout_s
        submission = self._sign_and_send(self.key.open())
        self._wait(submission, deadline)
        # A transaction is signed again at most once, and only when the first bytes can no longer
        # land: two valid signatures of one intent could both be applied.
        if submission.tracker.wait_until_signable():
            submission = self._sign_and_send()
            self._wait(submission, deadline)
            submission.tracker.wait_until_signable()  # checks whether refused bytes were included
        if submission.tracker.is_rejected:
            submission.raise_for_status()
        self._wait(submission, deadline)
        return submission

    def _wait(self, submission: Submission, deadline: float) -> None:
        if self.options.wait_until != "NONE" and submission.tracker.refusal is None:
            wait_for_level(submission, self.options.wait_until, deadline)

    def _sign_and_send(self, read: tuple[AccessKey, Anchor] | None = None) -> Submission:
        submission = None
        while submission is None:  # twice, if the key turns out to be a gas key
            submission = self._send_in_turn(self.key.queues.pick(), read)
        return submission

    def _send_in_turn(
        self, queue: NonceQueue, read: tuple[AccessKey, Anchor] | None
    ) -> Submission | None:
        """Sign and send when it is this sender's turn; None if the queue does not fit the key."""
        options = self.options
        level = "NONE" if options.wait_until == "NONE" else "INCLUDED"
        with queue.turn():
            if options.strict:
                _resend_unconfirmed(options.ledger, queue)
            anchor = self.key.anchor(queue, read)
            if anchor is None:
                return None
            submission, signed = self._sign(queue, anchor)
            # send_tx returns after a block, and holding the turn for so long would delay the
            # other senders. Only the order of nonces needs the turn, so the bytes are first
            # broadcast.
            in_one_step = options.strict or queue.has_one_sender
            first_via = options.via if in_one_step else "broadcast_tx_async"
            submission.tracker.send(signed, first_via, level)
        if not in_one_step and level != "NONE" and options.via != "broadcast_tx_async":
            submission.tracker.send(signed, options.via, level)
            submission.tracker.confirm_refusal()
        return submission

    def _sign(self, queue: NonceQueue, anchor: Anchor) -> tuple[Submission, SignedTransaction]:
        nonce = queue.reserve(strict=self.options.strict)
        tx = self.transaction(nonce, queue.nonce_index, anchor.block_hash)
        signed = tx.sign(self.options.signer.key)
        queue.add_signed(signed)
        tracker = Tracker(
            self.options.ledger,
            str(signed.hash),
            str(tx.signer_id),
            signed=signed,
            anchor_height=anchor.height,
            queue=queue,
        )
        submission = Submission(tracker)
        remember(submission)
        return submission, signed

    def _dry_run(self) -> pd.DataFrame:
        final = validation.block_reference("final")
        head = validation.block_reference("optimistic")
        requests = [
            *self.key.calls(),
            rpc.view_account(self.key.names[0], head),
            rpc.gas_price(None),
            rpc.protocol_config(final),
        ]
        deletes_itself = self.receiver_id == self.key.names[0]
        deletions = [a for a in self.actions if isinstance(a, DeleteAccount) and deletes_itself]
        requests += [rpc.view_account(action.beneficiary_id, head) for action in deletions]
        key_response, block, account, price, config, *beneficiaries = self.key.read(requests)
        key, anchor = self.key.key_and_block((key_response, block))
        queue = self.key.queues.pick()
        nonce = queue.peek(self.key.last_nonce(key, queue))
        tx = self.transaction(nonce, queue.nonce_index, anchor.block_hash)
        pays_itself = queue.nonce_index is not None
        if isinstance(config, RpcMethodNotFoundError):  # an older node
            config = None
        gas_price = parse_amount(_value_or_raise(price).gas_price, "$.result.gas_price")
        cost_bound = fees.cost_bound(tx, _value_or_raise(config), gas_price)
        deposit = deposits(tx.actions)
        _warn_of_balance(tx, _value_or_raise(account), deposit if pays_itself else cost_bound)
        for action, response in zip(deletions, beneficiaries, strict=True):
            _warn_of_loss(tx, _value_or_raise(account), action.beneficiary_id, response)
        row = {
            "tx_hash": str(tx.hash),
            "signer_id": str(tx.signer_id),
            "receiver_id": str(tx.receiver_id),
            "actions": "+".join(action.name for action in tx.actions),
            "nonce": nonce,
            "size": arguments.check_size(tx),
            "cost_bound": cost_bound,
            "gas_attached": attached_gas(tx.actions),
            "deposit": deposit,
            "block_hash": str(tx.block_hash),
            "expires_at_height": anchor.height + broadcast.validity_in(config),
            "nonce_index": queue.nonce_index,
            "gas_payer": str(tx.public_key) if pays_itself else str(tx.signer_id),
        }
        source = "view_access_key, view_account, gas_price, EXPERIMENTAL_protocol_config"
        attrs = provenance(self.options.ledger, source)
        return build.of_rows("dry_run", [row], attrs)


def _warn_of_balance(tx: Transaction, account: Account, most: int | None) -> None:
    balance, locked = (
        parse_amount(text, f"$.result.{name}")
        for name, text in (("amount", account.amount), ("locked", account.locked))
    )
    available = spendable(balance, locked, account.storage_usage)
    deposit = deposits(tx.actions)
    if available < (deposit if most is None else most):
        cost = f"at least {near_text(deposit)}" if most is None else f"up to {near_text(most)}"
        would = "would" if available < deposit else "may"
        user_warnings.warn(
            f"{tx.signer_id} can spend {near_text(available)}, and this transaction takes {cost}"
            f" before refunds: the network {would} refuse it"
        )


def _warn_of_loss(tx: Transaction, account: Account, beneficiary_id: str, response: object) -> None:
    """Warn if the balance of a deleted account goes to itself or to a missing account."""
    is_absent = isinstance(response, UnknownAccountError)
    if not is_absent:
        _value_or_raise(response)
    if is_absent or beneficiary_id == tx.receiver_id:
        balance = near_text(parse_amount(account.amount, "$.result.amount"))
        then = "does" if is_absent else "then does"
        user_warnings.warn(
            f"what is left of {balance} of {tx.signer_id} would be lost, because {beneficiary_id}"
            f" {then} not exist"
        )


def _resend_unconfirmed(ledger: Ledger, queue: NonceQueue) -> None:
    """Send unconfirmed bytes again or release their nonces: a strict nonce allows no gap."""
    for signed in queue.unconfirmed():
        nonce = signed.transaction.nonce
        try:
            broadcast.send_signed(ledger, signed, "send_tx", "INCLUDED")
        except (TransactionTimeoutError, RequestRoutedError):
            continue
        except InvalidTransactionError:
            queue.release(nonce)
        else:
            queue.mark_used(nonce)


def sign_delegate(
    options: SendOptions, receiver_id: str, actions: Sequence[Action], last_height: int | None
) -> Delegate:
    """Sign a delegate action with the next nonce of the key, which is no gas key."""
    name, public_key = options.signer.account_id, options.signer.public_key
    # Malformed arguments fail here, before the key is read.
    DelegateAction(name, receiver_id, actions, 0, last_height or 0, public_key)
    key = _Key(options)
    read, queue = key.open(), key.queues.ordinary
    with queue.turn():
        anchor = key.anchor(queue, read)
        if anchor is None:
            rule = "an access key that is no gas key, to sign a delegate action"
            raise InvalidRequestError.refuse("key", str(public_key), rule)
        nonce = queue.reserve()
    last = last_height or anchor.height + _DELEGATION_BLOCKS
    action = DelegateAction(name, receiver_id, actions, nonce, last, public_key)
    return action.sign(options.signer.key)
