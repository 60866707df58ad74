"""
Building a statement: entries from transactions, then from other sources.

1. The Transactions API lists the transactions of the account, and has their documents: most entries
   come from receipts and logs, without a read of an archival node.
2. The Transfers API adds transactions that the first list lacks, and transfers without one.
3. Balances are read at both ends. If they do not add up, the blocks in between are bisected, and
   the changes of a block's state may name the cause. Unexplained changes are gaps.
4. Balances with staking pools are read at the borders of epochs; growth that other accounts share
   is a reward. Then these balances are compared with their entries, too.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from ledgerkit import validation
from ledgerkit.api import rest, rpc
from ledgerkit.errors import did_you_mean
from ledgerkit.reconciling import rewards as staking
from ledgerkit.reconciling import stakes
from ledgerkit.reconciling.balances import is_asset
from ledgerkit.reconciling.document_entries import DocumentEntries
from ledgerkit.reconciling.entry_store import EntryStore
from ledgerkit.reconciling.explaining import explain_deleted_gas_keys, explain_gaps
from ledgerkit.reconciling.liquid_staking import liquid_gains
from ledgerkit.reconciling.listing import (
    Listing,
    add_unlisted,
    find_start,
    indexed_entry,
    locate_by_balances,
)
from ledgerkit.reconciling.lockups import lockup_rewards
from ledgerkit.reconciling.model import NEAR, STAKE, Block, StatementData, Token
from ledgerkit.reconciling.pool_growth import ROUNDING
from ledgerkit.reconciling.reconcile import BalanceReader, Sums, find_gaps, sums_by_asset
from ledgerkit.tracing.amount_texts import IN_INTENTS
from ledgerkit.tracing.token_standards import FUNGIBLE
from ledgerkit.verbs.token_facts import read_token_facts

if TYPE_CHECKING:
    from ledgerkit.api.models.services import TransferRow
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.reconciling.explaining import DeletedKeyResult, GapExplanation
    from ledgerkit.reconciling.listing import ListedTx
    from ledgerkit.reconciling.model import Entry, Reward
    from ledgerkit.reconciling.plan import Scope
    from ledgerkit.reconciling.stakes import PoolTest

_height = attrgetter("block_height")
_gap_order = attrgetter("stop_height", "asset")


class Builder:
    """
    The builder of one statement.

    `unfinished_hashes` are the transactions that were still running when an earlier part was built.
    """

    def __init__(self, scope: Scope, unfinished_hashes: Iterable[str] = ()) -> None:
        self._ledger, self._account_id, self._scope = scope.ledger, scope.account_id, scope
        self._unfinished = dict.fromkeys(unfinished_hashes)
        self._reader = BalanceReader(scope.ledger, scope.account_id, progress=scope.progress)
        self._listing = Listing(scope)
        self._first: Block | None = None  # the start of an extended statement
        self._notes: list[str] = []
        self._other_entries: list[Entry] = []  # not from documents of the Transactions API
        self._moved: frozenset[Entry] = frozenset()  # from deleted gas keys to the account
        self._reread: set[str] = set()  # transactions whose entries come from a node
        self._flows: list[Entry] = []  # deposits with pools, and withdrawals

    def build(self) -> tuple[StatementData, EntryStore]:
        """Read everything, and return the facts and the entries of the statement."""
        listing = self._listing
        listed = listing.transactions()
        transfers = listing.transfers_of_other_transactions(listed)
        if not listed and not transfers:
            self._check_account()
        start = self._scope.start or find_start(self._ledger, listed, transfers)
        pools = listing.pools()
        listed, indexed_rows = add_unlisted(self._ledger, listed, transfers, self._unfinished)
        is_pool = stakes.pool_test(pools)
        documents = DocumentEntries(self._scope, is_pool, (r.receipt_id for r in indexed_rows))
        store = EntryStore(self._from_documents(documents, listed, start))
        indexed_rows = [r for r in indexed_rows if r.receipt_id not in documents.read_receipts]
        indexed_rows += listing.transfers_of(documents.lost)
        self._add_indexed(indexed_rows, start, is_pool)
        facts = StatementData(
            self._account_id,
            self._ledger.network.name,
            self._first or _block(start),
            _block(self._scope.stop),
            assets=None if self._scope.assets is None else list(self._scope.assets),
        )
        listed_assets = self._listed_assets() if self._scope.assets is None else []
        assets = self._assets_of(store, listed_assets)
        plain_assets = [asset for asset in assets if not asset.startswith(STAKE)]
        self._reconcile(facts, store, plain_assets, documents)
        pools = [*pools, *(flow.asset.removeprefix(STAKE) for flow in self._flows)]
        pools = [name for name in dict.fromkeys(pools) if self._scope.has_asset(STAKE + name)]
        facts.rewards = self._add_rewards(pools, facts)
        stake_assets = [asset for asset in self._assets_of(store, ()) if asset.startswith(STAKE)]
        stake_assets += [STAKE + pool_id for pool_id in pools]
        self._reconcile(facts, store, list(dict.fromkeys(stake_assets)), documents)
        balances = [name for name in facts.opening if facts.opening[name] or facts.closing[name]]
        assets = self._assets_of(store, [*listed_assets, *balances])
        facts.opening = {asset: facts.opening[asset] for asset in assets}
        facts.closing = {asset: facts.closing[asset] for asset in assets}
        if self._scope.assets is None:
            facts.rewards += self._other_rewards(facts, store)
        self._note_absent(facts, store)
        facts.tokens = self._tokens(assets)
        facts.unfinished = documents.unfinished
        facts.notes = [*listing.notes, *documents.notes, *self._notes]
        is_complete = not (self._other_entries or self._moved or self._reread)
        store = store if is_complete else EntryStore(self._in_order(store))
        return facts, self._with_values(store, facts) if self._scope.has_values else store

    def _with_values(self, store: EntryStore, facts: StatementData) -> EntryStore:
        values = self._listing.values
        store = EntryStore(values.assign(store))
        facts.n_valued = sum(entry.usd_amount is not None for entry in store)
        facts.notes += values.notes(facts.stop.timestamp_ns)
        return store

    def _check_account(self) -> None:
        """Raise if the account does not exist at the end."""
        stop = self._scope.stop
        self._reader.read([(NEAR, stop.height)])
        if not self._reader.balance(NEAR, stop.height):
            block = validation.block_reference(stop.hash)
            self._ledger.send(rpc.view_account(self._account_id, block))

    # Entries -----------------------------------------------------------------------------

    def _from_documents(
        self, documents: DocumentEntries, listed: list[ListedTx], start: Point
    ) -> Iterator[Entry]:
        yield from documents.read(listed, start.height)
        self._flows += documents.flows

    def _add_indexed(self, rows: list[TransferRow], start: Point, is_pool: PoolTest) -> None:
        entries = []
        for row in rows:
            entry = indexed_entry(row)
            if entry is None:
                self._notes.append(
                    f"the Transfers API cut off an amount of {row.asset} in block {row.height}"
                )
            elif self._scope.has_asset(entry.asset) or is_pool(entry.counterparty_id or ""):
                entries.append(entry)
        located = locate_by_balances(entries, self._reader)
        for listed, entry in zip(entries, located, strict=True):
            # NEAR arrives at the pool in the listed block, later than it leaves the account.
            flow = stakes.stake_of_transfer(listed, is_pool)
            if flow is not None and self._is_inside(flow, start):
                self._other_entries.append(flow)
                self._flows.append(flow)
            if self._is_inside(entry, start):
                self._other_entries.append(stakes.with_pool_cause(entry, is_pool))
        self._other_entries = [e for e in self._other_entries if self._scope.has_asset(e.asset)]

    def _is_inside(self, entry: Entry, start: Point) -> bool:
        return start.height < entry.block_height <= self._scope.stop.height

    def _add_rewards(self, pools: list[str], facts: StatementData) -> list[Reward]:
        unexplained = [
            (entry.block_height, entry.change)
            for entry in self._other_entries
            if entry.asset == NEAR and entry.cause == "unknown"
        ]
        unexplained += [(g.stop_height, g.missing or 0) for g in facts.gaps if g.asset == NEAR]
        doubtful = [height for height, change in unexplained if abs(change) <= 2 * ROUNDING]
        rewards = staking.read_rewards(
            self._ledger,
            self._account_id,
            pools,
            start=facts.start,
            stop=facts.stop,
            flows=self._flows,
            reader=self._reader,
            doubtful=doubtful,
        )
        self._other_entries += staking.reward_entries(rewards)
        return rewards

    def _other_rewards(self, facts: StatementData, store: EntryStore) -> list[Reward]:
        ledger, ends, progress = self._ledger, (facts.start, facts.stop), self._scope.progress
        rewards = lockup_rewards(ledger, self._account_id, *ends, self._notes, progress=progress)
        contracts = {f"{FUNGIBLE}:{name}": name for name in ledger.network.liquid_tokens}
        tokens = [name for asset, name in contracts.items() if asset in facts.opening]
        if tokens:
            entries = [e for e in chain(store, self._other_entries) if e.asset in contracts]
            rewards += liquid_gains(ledger, self._account_id, tokens, *ends, entries, facts.gaps)
        return rewards

    # Balances ----------------------------------------------------------------------------

    def _listed_assets(self) -> list[str]:
        assets = [asset for asset in self._listing.assets if is_asset(asset)]
        if self._ledger.network.api_url is not None:
            tokens = self._ledger.send(rest.ft(self._account_id)).tokens or ()
            assets += [f"{FUNGIBLE}:{token.contract_id}" for token in tokens]
        return assets

    def _assets_of(self, store: EntryStore, listed: Iterable[str]) -> list[str]:
        if self._scope.assets is not None:
            return list(self._scope.assets)
        with_entries = (entry.asset for entry in self._in_order(store))
        return list(dict.fromkeys([NEAR, *with_entries, *listed]))

    def _note_absent(self, facts: StatementData, store: EntryStore) -> None:
        balances = [*facts.opening.items(), *facts.closing.items()]
        absent = {*(facts.assets or ())} - {asset for asset, balance in balances if balance != 0}
        absent -= {entry.asset for entry in self._in_order(store)} if absent else set()
        listed_assets = self._listed_assets() if absent else []
        for asset in sorted(absent):
            hint = did_you_mean(asset, listed_assets)
            self._notes.append(f"{asset} was not held in this period. {hint}".rstrip())

    def _reconcile(
        self, facts: StatementData, store: EntryStore, assets: list[str], documents: DocumentEntries
    ) -> None:
        """Compare entries with balances; add entries that explain gaps, and the other gaps."""
        deleted_keys, explained = self._explain(facts, store, assets, documents)
        while self._read_from_node(facts, documents, explained.tx_hashes):
            other_assets = (entry.asset for entry in self._other_entries)
            new_assets = (asset for asset in other_assets if not asset.startswith(STAKE))
            assets = list(dict.fromkeys([*assets, *new_assets]))
            deleted_keys, explained = self._explain(facts, store, assets, documents)
        self._moved |= deleted_keys.moved
        self._other_entries += [*deleted_keys.entries, *explained.entries]
        facts.gaps = sorted([*facts.gaps, *explained.gaps], key=_gap_order)

    def _explain(
        self, facts: StatementData, store: EntryStore, assets: list[str], documents: DocumentEntries
    ) -> tuple[DeletedKeyResult, GapExplanation]:
        """Find gaps, and explain them by deleted gas keys and by the changes of blocks."""
        reader, all_sums = self._reader, sums_by_asset(self._in_order(store))
        sums = {asset: all_sums.get(asset, Sums()) for asset in assets}
        gaps = find_gaps(reader, sums, facts.start.height, facts.stop.height)
        facts.opening |= {asset: reader.balance(asset, facts.start.height) for asset in assets}
        facts.closing |= {asset: reader.balance(asset, facts.stop.height) for asset in assets}
        deleted_keys = explain_deleted_gas_keys(gaps, self._in_order(store), reader)
        entries = chain(self._in_order(store, deleted_keys.moved), deleted_keys.entries)
        explained = explain_gaps(
            self._ledger, self._account_id, deleted_keys.gaps, entries, documents.unfinished, reader
        )
        return deleted_keys, explained

    def _read_from_node(
        self, facts: StatementData, documents: DocumentEntries, tx_hashes: Iterable[str]
    ) -> bool:
        """Replace the entries of transactions by those of a node; return True if it has any."""
        reread = documents.read_signed(h for h in tx_hashes if h not in self._reread)
        self._reread |= reread.keys()
        new = [entry for entries in reread.values() for entry in entries]
        self._other_entries = [e for e in self._other_entries if e.tx_hash not in reread]
        self._flows = [flow for flow in self._flows if flow.tx_hash not in reread]
        self._flows += [entry for entry in new if entry.asset.startswith(STAKE)]
        self._other_entries += [
            entry
            for entry in new
            if facts.start.height < entry.block_height <= facts.stop.height
            and self._scope.has_asset(entry.asset)
        ]
        return bool(reread)

    def _in_order(
        self, store: EntryStore, also_moved: frozenset[Entry] = frozenset()
    ) -> Iterator[Entry]:
        self._other_entries.sort(key=_height)
        reread, moved = self._reread, self._moved | also_moved
        stored = (entry for entry in store if entry.tx_hash not in reread) if reread else store
        entries = heapq.merge(stored, self._other_entries, key=_height)
        if not moved:
            return entries
        return (entry._replace(asset=NEAR) if entry in moved else entry for entry in entries)

    def _tokens(self, assets: Iterable[str]) -> dict[str, Token]:
        contracts = {asset: _metadata_contract(asset) for asset in assets}
        unique = dict.fromkeys(filter(None, contracts.values()))
        facts = read_token_facts(self._ledger, list(unique)) if unique else {}
        unread = [name for name, token in facts.items() if token.status == "unread"]
        self._notes += [f"the symbol and decimals of {name} could not be read" for name in unread]
        return {
            asset: Token(facts[contract_id].symbol, facts[contract_id].decimals)
            for asset, contract_id in contracts.items()
            if contract_id is not None
        }


def _metadata_contract(asset: str) -> str | None:
    # Source: near/intents, defuse/core: token ids are written as `nep141:<contract>`.
    kind, _, contract_id = asset.removeprefix(IN_INTENTS).partition(":")
    return contract_id or None if kind == FUNGIBLE else None


def _block(point: Point) -> Block:
    return Block(point.height, point.time_ns, point.hash)
