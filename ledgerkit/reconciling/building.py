"""
How a statement is built: entries from transactions, then from what no transaction lists.

1. The Transactions API lists the transactions of the account, and has their documents: receipts and
   logs lead to most entries, without a read of an archival node.
2. The Transfers API names transactions that the first list lacks, and transfers without one.
3. Balances are read at both ends. Where they do not add up the blocks in between are bisected, and
   the changes of a block's state may name the cause; what remains is a gap.
4. Balances with staking pools are read at the borders of epochs; what they grew by, as others' did,
   is a reward. Then they are compared with their entries as the other assets are.
"""

from __future__ import annotations

import heapq
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
from ledgerkit.reconciling.explaining import explain_gaps, settle_gas_keys
from ledgerkit.reconciling.liquid_staking import liquid_gains
from ledgerkit.reconciling.listing import (
    Listing,
    add_unlisted,
    find_start,
    indexed_entry,
    placed_by_balances,
)
from ledgerkit.reconciling.lockups import lockup_rewards
from ledgerkit.reconciling.model import NEAR, STAKE, Block, Facts, Token
from ledgerkit.reconciling.paces import ROUNDING
from ledgerkit.reconciling.reconcile import BalanceReader, Sums, find_gaps, sums_by_asset
from ledgerkit.tracing.token_standards import FUNGIBLE, MULTI_TOKEN
from ledgerkit.verbs.tokens import read_token_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ledgerkit.api.models.services import TransferRow
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.reconciling.explaining import Explained, Settled
    from ledgerkit.reconciling.listing import Listed
    from ledgerkit.reconciling.model import Entry, Reward
    from ledgerkit.reconciling.plan import Scope
    from ledgerkit.reconciling.stakes import PoolTest

_height = attrgetter("block_height")
_place = attrgetter("stop_height", "asset")
_INTENTS = "intents.near"  # its token ids are assets of their own, such as nep141:wrap.near


class Builder:
    """
    The builder of one statement.

    `again` are the hashes of transactions that were still running in an earlier part of it.
    """

    def __init__(self, scope: Scope, again: Iterable[str] = ()) -> None:
        self._ledger, self._account_id, self._scope = scope.ledger, scope.account_id, scope
        self._again = dict.fromkeys(again)
        self._reader = BalanceReader(scope.ledger, scope.account_id, progress=scope.progress)
        self._listing = Listing(scope)
        self._first: Block | None = None  # if the statement starts earlier
        self._notes: list[str] = []
        self._late: list[Entry] = []  # that do not come from the documents
        self._moved: frozenset[Entry] = frozenset()  # of deleted gas keys, to the account
        self._read_again: set[str] = set()  # transactions whose entries came from a node instead
        self._flows: list[Entry] = []  # deposits with pools, and withdrawals

    def build(self) -> tuple[Facts, EntryStore]:
        """Read everything, and return the facts and the entries of the statement."""
        listing = self._listing
        listed = listing.transactions()
        transfers = listing.transfers_beside(listed)
        if not listed and not transfers:
            self._check_account()
        start = self._scope.start or find_start(self._ledger, listed, transfers)
        pools = listing.pools()
        listed, indexed_rows = add_unlisted(self._ledger, listed, transfers, self._again)
        is_pool = stakes.pool_test(pools)
        documents = DocumentEntries(self._scope, is_pool, (r.receipt_id for r in indexed_rows))
        store = EntryStore(self._from_documents(documents, listed, start))
        indexed_rows = [r for r in indexed_rows if r.receipt_id not in documents.read_receipts]
        indexed_rows += listing.transfers_of(documents.lost)
        self._add_indexed(indexed_rows, start, is_pool)
        facts = Facts(
            self._account_id,
            self._ledger.network.name,
            self._first or _block(start),
            _block(self._scope.stop),
            assets=None if self._scope.assets is None else list(self._scope.assets),
        )
        listed_assets = self._listed_assets() if self._scope.assets is None else []
        assets = self._assets_of(store, listed_assets)
        self._reconcile(
            facts, store, [each for each in assets if not each.startswith(STAKE)], documents
        )
        pools = [*pools, *(flow.asset.removeprefix(STAKE) for flow in self._flows)]
        pools = [each for each in dict.fromkeys(pools) if self._scope.has_asset(STAKE + each)]
        facts.rewards = self._add_rewards(pools, facts)
        assets = [each for each in self._assets_of(store, ()) if each.startswith(STAKE)]
        assets += [STAKE + each for each in pools]
        self._reconcile(facts, store, list(dict.fromkeys(assets)), documents)
        balances = [each for each in facts.opening if facts.opening[each] or facts.closing[each]]
        assets = self._assets_of(store, [*listed_assets, *balances])
        facts.opening = {asset: facts.opening[asset] for asset in assets}
        facts.closing = {asset: facts.closing[asset] for asset in assets}
        if self._scope.assets is None:
            facts.rewards += self._further_rewards(facts, store)
        self._note_absent(facts, store)
        facts.tokens = self._tokens(assets)
        facts.unfinished = documents.unfinished
        facts.notes = [*listing.notes, *documents.notes, *self._notes]
        is_whole = not (self._late or self._moved or self._read_again)
        return facts, store if is_whole else EntryStore(self._in_order(store))

    def _check_account(self) -> None:
        """Raise if there is no account, and no balance can be read."""
        stop = self._scope.stop
        self._reader.read([(NEAR, stop.height)])
        if not self._reader.balance(NEAR, stop.height):
            at = validation.block_reference(stop.hash)
            self._ledger.send(rpc.view_account(self._account_id, at))

    # Entries -----------------------------------------------------------------------------

    def _from_documents(
        self, documents: DocumentEntries, listed: list[Listed], start: Point
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
        placed = placed_by_balances(entries, self._reader)
        for listed, entry in zip(entries, placed, strict=True):
            # What left the account arrives with the pool in the block that is listed.
            flow = stakes.stake_of_transfer(listed, is_pool)
            if flow is not None and self._is_inside(flow, start):
                self._late.append(flow)
                self._flows.append(flow)
            if self._is_inside(entry, start):
                self._late.append(stakes.with_pool(entry, is_pool))
        self._late = [entry for entry in self._late if self._scope.has_asset(entry.asset)]

    def _is_inside(self, entry: Entry, start: Point) -> bool:
        return start.height < entry.block_height <= self._scope.stop.height

    def _add_rewards(self, pools: list[str], facts: Facts) -> list[Reward]:
        unknown = [each for each in self._late if each.asset == NEAR and each.cause == "unknown"]
        unexplained = [(each.block_height, each.change) for each in unknown]
        unexplained += [(g.stop_height, g.missing or 0) for g in facts.gaps if g.asset == NEAR]
        doubtful = [height for height, change in unexplained if abs(change) <= 2 * ROUNDING]
        rewards = staking.rewards_of(
            self._ledger,
            self._account_id,
            pools,
            start=facts.start,
            stop=facts.stop,
            flows=self._flows,
            reader=self._reader,
            doubtful=doubtful,
        )
        self._late += staking.reward_entries(rewards)
        return rewards

    def _further_rewards(self, facts: Facts, store: EntryStore) -> list[Reward]:
        """Read the rewards of the account's lockup contract, and gains of liquid tokens."""
        ledger, ends = self._ledger, (facts.start, facts.stop)
        rewards = lockup_rewards(ledger, self._account_id, *ends, progress=self._scope.progress)
        contracts = {f"{FUNGIBLE}:{name}": name for name in ledger.network.liquid_tokens}
        tokens = [name for asset, name in contracts.items() if asset in facts.opening]
        if tokens:
            entries = [each for each in chain(store, self._late) if each.asset in contracts]
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

    def _note_absent(self, facts: Facts, store: EntryStore) -> None:
        ends = {
            asset for each in (facts.opening, facts.closing) for asset in each if each[asset] != 0
        }
        absent = {*(facts.assets or ())} - ends
        absent -= {entry.asset for entry in self._in_order(store)} if absent else set()
        known = self._listed_assets() if absent else []
        for asset in sorted(absent):
            hint = did_you_mean(asset, known)
            self._notes.append(f"{asset} was not held in this period. {hint}".rstrip())

    def _reconcile(
        self, facts: Facts, store: EntryStore, assets: list[str], documents: DocumentEntries
    ) -> None:
        """Compare entries with balances; add what blocks explain, and the gaps that remain."""
        settled, explained = self._explain(facts, store, assets, documents)
        while self._read_from_node(facts, documents, explained.tx_hashes):
            moved = (each.asset for each in self._late if not each.asset.startswith(STAKE))
            assets = list(dict.fromkeys([*assets, *moved]))
            settled, explained = self._explain(facts, store, assets, documents)
        self._moved |= settled.moved
        self._late += [*settled.entries, *explained.entries]
        facts.gaps = sorted([*facts.gaps, *explained.gaps], key=_place)

    def _explain(
        self, facts: Facts, store: EntryStore, assets: list[str], documents: DocumentEntries
    ) -> tuple[Settled, Explained]:
        """Find the gaps of assets, and what gas keys and the changes of blocks explain of them."""
        reader, known = self._reader, sums_by_asset(self._in_order(store))
        sums = {asset: known.get(asset, Sums()) for asset in assets}
        gaps = find_gaps(reader, sums, facts.start.height, facts.stop.height)
        facts.opening |= {each: reader.balance(each, facts.start.height) for each in assets}
        facts.closing |= {each: reader.balance(each, facts.stop.height) for each in assets}
        settled = settle_gas_keys(gaps, self._in_order(store), reader)
        entries = chain(self._in_order(store, settled.moved), settled.entries)
        explained = explain_gaps(
            self._ledger, self._account_id, settled.gaps, entries, documents.unfinished, reader
        )
        return settled, explained

    def _read_from_node(
        self, facts: Facts, documents: DocumentEntries, tx_hashes: Iterable[str]
    ) -> bool:
        """Replace the entries of transactions by those of a node; return True if it knows one."""
        known = documents.read_signed(each for each in tx_hashes if each not in self._read_again)
        self._read_again |= known.keys()
        new = [entry for entries in known.values() for entry in entries]
        self._late = [each for each in self._late if each.tx_hash not in known]
        self._flows = [each for each in self._flows if each.tx_hash not in known]
        self._flows += [entry for entry in new if entry.asset.startswith(STAKE)]
        self._late += [
            entry
            for entry in new
            if facts.start.height < entry.block_height <= facts.stop.height
            and self._scope.has_asset(entry.asset)
        ]
        return bool(known)

    def _in_order(
        self, store: EntryStore, also_moved: frozenset[Entry] = frozenset()
    ) -> Iterator[Entry]:
        self._late.sort(key=_height)
        again, moved = self._read_again, self._moved | also_moved
        others = (each for each in store if each.tx_hash not in again) if again else store
        entries = heapq.merge(others, self._late, key=_height)
        if not moved:
            return entries
        return (each._replace(asset=NEAR) if each in moved else each for each in entries)

    def _tokens(self, assets: Iterable[str]) -> dict[str, Token]:
        contracts = {asset: _metadata_contract(asset) for asset in assets}
        unique = dict.fromkeys(filter(None, contracts.values()))
        facts = read_token_facts(self._ledger, list(unique)) if unique else {}
        unread = [name for name, each in facts.items() if each.status == "unread"]
        self._notes += [f"the symbol and decimals of {name} could not be read" for name in unread]
        return {
            asset: Token(facts[contract_id].symbol, facts[contract_id].decimals)
            for asset, contract_id in contracts.items()
            if contract_id is not None
        }


def _metadata_contract(asset: str) -> str | None:
    # Source: near/intents, defuse/core: token ids are written as `nep141:<contract>`.
    intents = f"{MULTI_TOKEN}:{_INTENTS}:"
    kind, _, contract_id = asset.removeprefix(intents).partition(":")
    return contract_id if kind == FUNGIBLE else None


def _block(point: Point) -> Block:
    return Block(point.height, point.time_ns, point.hash)
