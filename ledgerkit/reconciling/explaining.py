"""
The causes of changes that no transaction lists.

A block's document, and `EXPERIMENTAL_changes` of a node, have the balance of an account after each
transaction and receipt that changed it, with the cause.

The deletion of an account burns the balances of its gas keys, which its transaction does not
name. A refund of gas to a gas key that another transaction has deleted goes to the account.
"""

# Source: recorded block 151,768,255 of mainnet (state_changes), nearcore StateChangeCause.
# Gas keys: nearcore, runtime/runtime/src: `action_delete_account` and `refund_gas_key`, NEP-611.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
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
from ledgerkit.reconciling.model import GAS_KEY, NEAR, Entry, Gap

if TYPE_CHECKING:
    from ledgerkit.api.models.chain import Changes
    from ledgerkit.ledger import Ledger
    from ledgerkit.reconciling.reconcile import BalanceReader

ChangesByCause = dict[tuple[str, str | None], int]  # balance changes by type of cause and hash


class _Update(NamedTuple):
    """The balance of an account after one transaction or receipt, staked or not."""

    balance: int  # yoctoNEAR
    cause_type: str
    cause_hash: str | None  # transaction or receipt; None for a change by the chain itself


class _GapBlock(NamedTuple):
    """The block of a gap: its known entries, the changes in it, and a template of new entries."""

    entries: list[Entry]
    changes: ChangesByCause
    template: Entry


class GapExplanation(NamedTuple):
    """Entries from the changes of blocks, and the gaps that remain."""

    entries: list[Entry]
    gaps: list[Gap]
    tx_hashes: dict[str, None]  # transactions whose entries do not explain all that they took


def explain_gaps(  # noqa: PLR0917 - an account, its gaps, and what is known
    ledger: Ledger,
    account_id: str,
    gaps: Sequence[Gap],
    entries: Iterable[Entry],
    unfinished: Collection[str],
    reader: BalanceReader,
) -> GapExplanation:
    """
    Explain gaps of NEAR whose block is known, from the changes of state in that block.

    If `unfinished` transactions took more than their entries, the excess is the gas of pending
    receipts.
    """
    located = {gap for gap in gaps if gap.asset == NEAR and gap.missing and gap.has_block}
    blocks = {gap.stop_height for gap in located}
    known_entries: dict[int, list[Entry]] = defaultdict(list)
    for entry in entries if blocks else ():
        if entry.asset == NEAR and entry.block_height in blocks:
            known_entries[entry.block_height].append(entry)
    updates = _read_updates(ledger, account_id, sorted(blocks), progress=reader.progress)
    explained = GapExplanation([], [], {})
    for gap in gaps:
        missing: list[Entry] = []
        if gap in located:
            height = gap.stop_height
            template = Entry(height, reader.time_ns(height), NEAR, "", 0, evidence="proved")
            changes = _changes(gap, updates[height], reader)
            block = _GapBlock(known_entries[height], changes, template)
            payments = [*_payments(block, unfinished)]
            missing = [*_missing_entries(gap, block, payments)]
            unknown = (entry.tx_hash for entry in payments if entry.cause == "unknown")
            explained.tx_hashes.update(dict.fromkeys(filter(None, unknown)))
        if missing and sum(entry.change for entry in missing) == gap.missing:
            explained.entries.extend(missing)
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


def _missing_entries(gap: Gap, block: _GapBlock, payments: Iterable[Entry]) -> Iterator[Entry]:
    """Yield entries for a block's changes that have none, the most certain causes first."""
    unexplained = gap.missing or 0
    for entry in (*_validator_rewards(block), *_contract_rewards(block), *payments):
        if not unexplained:
            return
        unexplained -= entry.change
        yield entry
    receipt_ids = {id_ for cause_type, id_ in block.changes if cause_type == "receipt_processing"}
    receipt_ids -= {entry.receipt_id for entry in block.entries}
    if unexplained and len(receipt_ids) == 1:
        receipt_id = receipt_ids.pop()
        yield block.template._replace(cause="unknown", change=unexplained, receipt_id=receipt_id)


def _validator_rewards(block: _GapBlock) -> Iterator[Entry]:
    for (cause_type, _), change in block.changes.items():
        if cause_type == "validator_accounts_update" and change:
            yield block.template._replace(cause="validator_reward", change=change)


def _contract_rewards(block: _GapBlock) -> Iterator[Entry]:
    """Yield rewards for calls that have none; a document may not say if the contract existed."""
    rewarded = {entry.receipt_id for entry in block.entries if entry.cause == "gas_reward"}
    for (cause_type, cause_hash), change in block.changes.items():
        if cause_type == "action_receipt_gas_reward" and cause_hash not in rewarded:
            yield block.template._replace(cause="gas_reward", change=change, receipt_id=cause_hash)


def _payments(block: _GapBlock, unfinished: Collection[str]) -> Iterator[Entry]:
    """Yield, as entries, the parts of transactions' changes that their entries do not explain."""
    for (cause_type, cause_hash), change in block.changes.items():
        if cause_type != "transaction_processing":
            continue
        # The balance of a deleted account is taken by a receipt, in the same block or later.
        entries = [e for e in block.entries if e.tx_hash == cause_hash and e.cause != "deleted"]
        unexplained = change - sum(entry.change for entry in entries if entry.change < 0)
        # The gas of pending receipts is in no document; all other fees are in the outcomes.
        cause = "fee" if entries and cause_hash in unfinished else "unknown"
        if unexplained:
            yield block.template._replace(cause=cause, change=unexplained, tx_hash=cause_hash)


def _read_updates(
    ledger: Ledger, account_id: str, heights: Sequence[int], *, progress: bool
) -> dict[int, list[_Update]]:
    """Read the changes of an account in blocks; a block that no host has counts as unchanged."""
    subject = {"account_ids": [account_id]}
    blocks = map(validation.block_reference, heights)
    calls = [rpc.changes("account_changes", block, subject) for block in blocks]
    options: dict[str, Any] = {"on_error": "collect", "progress": progress, "label": "changes"}
    responses = ledger.send_many(calls, **options)
    return {
        height: _updates(ledger, account_id, height, response)
        for height, response in zip(heights, responses, strict=True)
    }


def _updates(
    ledger: Ledger, account_id: str, height: int, response: Changes | LedgerError
) -> list[_Update]:
    """Read a node's response or, if it is an error, the block's much larger document."""
    if not isinstance(response, LedgerError):
        return _node_updates(response)
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
        for failure in (response, error):
            if failure.retryable:
                raise failure from None
    return []


def _node_updates(response: Changes) -> list[_Update]:
    try:
        return [
            _update(json_decoding.convert(asdict(change), StateChange))
            for change in response.changes
            if change.type in ACCOUNT_CHANGES
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


class DeletedKeyResult(NamedTuple):
    """Entries moved to the account, entries of deletions, and the gaps that remain."""

    moved: frozenset[Entry]
    entries: list[Entry]
    gaps: list[Gap]


def explain_deleted_gas_keys(
    gaps: Sequence[Gap], entries: Iterable[Entry], reader: BalanceReader
) -> DeletedKeyResult:
    """Explain the gaps of gas keys whose balance is 0 after the block."""
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
        misplaced = _refunds_with_sum(refunds[gap.asset, height], lost)
        to_account = missing.get((NEAR, height))
        if misplaced and to_account:
            moved.update(misplaced)
            missing[NEAR, height] = to_account - lost
        elif to_account != lost:  # the balance was burnt: the account did not get it
            time_ns = reader.time_ns(height)
            deleted.append(Entry(height, time_ns, gap.asset, "deleted", -lost, evidence="proved"))
        else:
            continue
        missing[gap.asset, height] = 0
    updated = [gap._replace(missing=missing[gap.asset, gap.stop_height]) for gap in gaps]
    return DeletedKeyResult(frozenset(moved), deleted, [gap for gap in updated if gap.missing != 0])


def _is_emptied(gap: Gap, reader: BalanceReader) -> bool:
    is_lost = gap.has_block and (gap.missing or 0) < 0 and gap.asset.startswith(GAS_KEY)
    return is_lost and reader.balance(gap.asset, gap.stop_height) == 0


def _refunds_with_sum(refunds: list[Entry], total: int) -> list[Entry]:
    """Return all refunds or a single one, whichever have this sum; otherwise nothing."""
    choices = [refunds, *([refund] for refund in refunds)]
    return next((chosen for chosen in choices if sum(e.change for e in chosen) == total), [])
