"""
The causes of changes that no transaction lists.

A block's document, and `EXPERIMENTAL_changes` of a node, have the balance of an account after each
transaction and receipt that changed it, with the cause.

The deletion of an account burns the balances of its gas keys, and its transaction does not name
them. A refund of gas to a gas key that another transaction has deleted goes to the account.
"""

# Source: recorded block 151,768,255 of mainnet (state_changes), nearcore StateChangeCause.
# Gas keys: nearcore, runtime/runtime/src: `action_delete_account` and `refund_gas_key`, NEP-611.

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import asdict

from ledgerkit import json_decoding, validation
from ledgerkit.api import rpc
from ledgerkit.api.models.block_documents import ACCOUNT_CHANGES, StateChange
from ledgerkit.block_data.headers import Skipped
from ledgerkit.block_data.reading import read_document
from ledgerkit.errors import DecodeError, LedgerError
from ledgerkit.frames import amounts
from ledgerkit.reconciling.model import GAS_KEY, NEAR, Entry

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from ledgerkit.api.models.chain import Changes
    from ledgerkit.ledger import Ledger
    from ledgerkit.reconciling.model import Gap
    from ledgerkit.reconciling.reconcile import BalanceReader

_VALIDATOR_CAUSE = "validator_accounts_update"
_TRANSACTION_CAUSE = "transaction_processing"
_RECEIPT_CAUSE = "receipt_processing"
_REWARD_CAUSE = "action_receipt_gas_reward"

ChangesByCause = dict[tuple[str, str | None], int]  # of a balance, by type of cause and hash


class _Update(NamedTuple):
    """The balance of an account after one transaction or receipt, staked or not."""

    balance: int  # yoctoNEAR
    cause_type: str
    cause_hash: str | None  # of the transaction or receipt; None for a change by the chain itself


class Explained(NamedTuple):
    """The entries that blocks explain, and the gaps that remain."""

    entries: list[Entry]
    gaps: list[Gap]
    tx_hashes: dict[str, None]  # of transactions that took what no entry has


def explain_gaps(  # noqa: PLR0917 - an account, its gaps, and what is known
    ledger: Ledger,
    account_id: str,
    gaps: Sequence[Gap],
    entries: Iterable[Entry],
    unfinished: Collection[str],
    reader: BalanceReader,
) -> Explained:
    """
    Explain gaps of NEAR whose block is known by the changes of state in that block.

    Of `unfinished` transactions, what they took beyond their entries is gas of receipts to come.
    """
    placed = {gap for gap in gaps if gap.asset == NEAR and gap.missing and gap.has_block}
    blocks = {gap.stop_height for gap in placed}
    known: dict[int, list[Entry]] = defaultdict(list)
    for entry in entries if blocks else ():
        if entry.asset == NEAR and entry.block_height in blocks:
            known[entry.block_height].append(entry)
    updates = _read_updates(ledger, account_id, sorted(blocks), progress=reader.progress)
    explained = Explained([], [], {})
    for gap in gaps:
        own: list[Entry] = []
        if gap in placed:
            changes = _changes(gap, updates[gap.stop_height], reader)
            place = Entry(gap.stop_height, reader.time_ns(gap.stop_height), NEAR, "", 0)
            place = place._replace(evidence="proved")
            payments = [*_payments(place, changes, known[gap.stop_height], unfinished)]
            own = [*_missing_entries(gap, place, changes, known[gap.stop_height], payments)]
            unknown = (entry.tx_hash for entry in payments if entry.cause == "unknown")
            explained.tx_hashes.update(dict.fromkeys(filter(None, unknown)))
        if own and sum(entry.change for entry in own) == gap.missing:
            explained.entries.extend(own)
        else:
            explained.gaps.append(gap)
    return explained


def _changes(gap: Gap, updates: Iterable[_Update], reader: BalanceReader) -> ChangesByCause:
    balance = reader.balance(NEAR, gap.start_height) or 0
    changes: defaultdict[tuple[str, str | None], int] = defaultdict(int)
    for update in updates:
        changes[update.cause_type, update.cause_hash] += update.balance - balance
        balance = update.balance
    return changes


def _missing_entries(
    gap: Gap, place: Entry, changes: ChangesByCause, known: list[Entry], payments: list[Entry]
) -> Iterator[Entry]:
    """Yield entries for the changes of a block that the known ones leave out, the surest first."""
    unexplained = gap.missing or 0
    for entry in (
        *_validator_rewards(place, changes),
        *_contract_rewards(place, changes, known),
        *payments,
    ):
        if not unexplained:
            return
        unexplained -= entry.change
        yield entry
    ids = {entry.receipt_id for entry in known}
    unknown_ids = [
        hash_ for type_, hash_ in changes if type_ == _RECEIPT_CAUSE and hash_ not in ids
    ]
    if unexplained and len(unknown_ids) == 1:
        yield place._replace(cause="unknown", change=unexplained, receipt_id=unknown_ids[0])


def _validator_rewards(place: Entry, changes: ChangesByCause) -> Iterator[Entry]:
    for (cause_type, _), change in changes.items():
        if cause_type == _VALIDATOR_CAUSE and change:
            yield place._replace(cause="validator_reward", change=change)


def _contract_rewards(place: Entry, changes: ChangesByCause, known: list[Entry]) -> Iterator[Entry]:
    """Yield rewards for calls: a document may not say if the contract was there to get them."""
    rewarded = {entry.receipt_id for entry in known if entry.cause == "gas_reward"}
    for (cause_type, cause_hash), change in changes.items():
        if cause_type == _REWARD_CAUSE and cause_hash not in rewarded:
            yield place._replace(cause="gas_reward", change=change, receipt_id=cause_hash)


def _payments(
    place: Entry, changes: ChangesByCause, known: list[Entry], unfinished: Collection[str]
) -> Iterator[Entry]:
    """Yield what transactions took from their signer beyond the known entries."""
    for (cause_type, cause_hash), change in changes.items():
        if cause_type != _TRANSACTION_CAUSE:
            continue
        # What a deleted account had, its receipt took, in the same block or later.
        mine = (e for e in known if e.tx_hash == cause_hash and e.cause != "deleted")
        own = [entry.change for entry in mine]
        unexplained = change - sum(paid for paid in own if paid < 0)
        # The gas of receipts that have not run is in no document. All else that is a fee is in the
        # outcomes of the transaction.
        cause = "fee" if own and cause_hash in unfinished else "unknown"
        if unexplained:
            yield place._replace(cause=cause, change=unexplained, tx_hash=cause_hash)


def _read_updates(
    ledger: Ledger, account_id: str, heights: Sequence[int], *, progress: bool
) -> dict[int, list[_Update]]:
    """Return what blocks did to an account's balances; nothing for a block that no host has."""
    subject = {"account_ids": [account_id]}
    places = map(validation.block_reference, heights)
    calls = [rpc.changes("account_changes", at, subject) for at in places]
    options: dict[str, Any] = {"on_error": "collect", "progress": progress, "label": "changes"}
    answers = ledger.send_many(calls, **options)
    return {
        height: _updates(ledger, account_id, height, answer)
        for height, answer in zip(heights, answers, strict=True)
    }


def _updates(
    ledger: Ledger, account_id: str, height: int, answer: Changes | LedgerError
) -> list[_Update]:
    """Read what a node says of a block; else its document, which is a thousand times larger."""
    if not isinstance(answer, LedgerError):
        return _node_updates(answer)
    try:
        document = read_document(ledger, height)
        if isinstance(document, Skipped):
            return []
        return [
            _update(change)
            for shard in document.shards
            for change in shard.state_changes
            if change.type in ACCOUNT_CHANGES and change.change.account_id == account_id
        ]
    except LedgerError as error:
        if unanswered := [each for each in (answer, error) if each.retryable]:
            raise unanswered[0] from None
    return []


def _node_updates(answer: Changes) -> list[_Update]:
    try:
        return [
            _update(json_decoding.convert(asdict(each), StateChange))
            for each in answer.changes
            if each.type in ACCOUNT_CHANGES
        ]
    except (DecodeError, msgspec.DecodeError) as problem:
        msg = f"the response to account_changes is not as documented: {problem}"
        raise DecodeError(msg, request="account_changes", path="$.result.changes") from None


def _update(change: StateChange) -> _Update:
    account, cause = change.account(), change.cause
    balances = amounts.plain([account.amount, account.locked])
    if balances is None:
        path = "$.shards[].state_changes[].change"
        sentence = f"an {change.type} of {account.account_id} has no whole balance at {path}"
        raise DecodeError(sentence, path=path)
    return _Update(sum(balances), cause.type, cause.receipt_hash or cause.tx_hash)


# Gas keys that were deleted ---------------------------------------------------------------


class Settled(NamedTuple):
    """Entries that are those of the account, entries of deletions, and the gaps that remain."""

    moved: frozenset[Entry]
    entries: list[Entry]
    gaps: list[Gap]


def settle_gas_keys(
    gaps: Sequence[Gap], entries: Iterable[Entry], reader: BalanceReader
) -> Settled:
    """Explain the gaps of gas keys after whose block there is no balance."""
    emptied = [gap for gap in gaps if _is_emptied(gap, reader)]
    refunds: dict[tuple[str, int], list[Entry]] = defaultdict(list)
    for entry in entries if emptied else ():
        if entry.asset.startswith(GAS_KEY) and entry.cause == "fee" and entry.change > 0:
            refunds[entry.asset, entry.block_height].append(entry)
    missing = {(gap.asset, gap.stop_height): gap.missing for gap in gaps}
    moved: set[Entry] = set()
    deleted: list[Entry] = []
    for gap in emptied:
        lost, height = -(gap.missing or 0), gap.stop_height
        own = _with_sum(refunds[gap.asset, height], lost)
        to_account = missing.get((NEAR, height))
        if own and to_account:
            moved.update(own)
            missing[NEAR, height] = to_account - lost
        elif to_account != lost:  # the balance did not go to the account: it was burnt
            time_ns = reader.time_ns(height)
            deleted.append(Entry(height, time_ns, gap.asset, "deleted", -lost, evidence="proved"))
        else:
            continue
        missing[gap.asset, height] = 0
    updated = [gap._replace(missing=missing[gap.asset, gap.stop_height]) for gap in gaps]
    return Settled(frozenset(moved), deleted, [gap for gap in updated if gap.missing != 0])


def _is_emptied(gap: Gap, reader: BalanceReader) -> bool:
    is_lost = gap.has_block and (gap.missing or 0) < 0 and gap.asset.startswith(GAS_KEY)
    return is_lost and reader.balance(gap.asset, gap.stop_height) == 0


def _with_sum(refunds: list[Entry], total: int) -> list[Entry]:
    """Return all refunds, or one of them, if they are this sum; otherwise nothing."""
    choices = [refunds, *([refund] for refund in refunds)]
    return next((each for each in choices if sum(e.change for e in each) == total), [])
