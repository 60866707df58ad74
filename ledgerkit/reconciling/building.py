"""
How a statement is built: entries from transactions, then from what no transaction lists.

1. The Transactions API lists the transactions of the account, and has their documents: receipts and
   logs lead to most entries, without a read of an archival node.
2. The Transfers API names transactions that the first list lacks, and transfers without one.
3. Balances with staking pools are read at the borders of epochs; what they grew by is a reward.
4. Balances are read at both ends. Where they do not add up the blocks in between are bisected, and
   the changes of a block's state may name the cause; what remains is a gap.
"""

from __future__ import annotations

import heapq
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit import validation
from ledgerkit.api import rest, rpc
from ledgerkit.client import bar
from ledgerkit.errors import LedgerError, UnknownTransactionError
from ledgerkit.reconciling import indexed, stakes
from ledgerkit.reconciling import rewards as staking
from ledgerkit.reconciling.balances import is_asset
from ledgerkit.reconciling.entries import Placed, entries_of
from ledgerkit.reconciling.entry_store import EntryStore
from ledgerkit.reconciling.explaining import explain_gaps
from ledgerkit.reconciling.gas_keys import settle_gas_keys
from ledgerkit.reconciling.liquid_staking import liquid_gains
from ledgerkit.reconciling.lockups import lockup_rewards
from ledgerkit.reconciling.model import NEAR, STAKE, Block, Facts, Token
from ledgerkit.reconciling.plan import PART
from ledgerkit.reconciling.reconcile import BalanceReader, Sums, find_gaps, sums_by_asset
from ledgerkit.reconciling.statement import Statement
from ledgerkit.tracing.token_standards import FUNGIBLE, MULTI_TOKEN
from ledgerkit.tracing.trace import Trace
from ledgerkit.verbs.account_history import selected_transfers, transaction_rows
from ledgerkit.verbs.documents import stream_documents
from ledgerkit.verbs.protocol_rules import rules_by_height
from ledgerkit.verbs.tokens import read_token_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.api.models.services import TransferRow
    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.client import Ledger
    from ledgerkit.reconciling.model import Entry, Reward

    PoolTest = Callable[[str], bool]

# Blocks before the start, in which transactions may begin that go on after it: a yield ends after
# 200 blocks (nearcore, yield_timeout_length_in_blocks), and what waits for it may yield again.
_MARGIN = 1_000
_LATEST_ARRIVAL_NS = 10 * 10**9  # NEAR that left in the last block arrives in a later one
_INTENTS = "intents.near"  # its token ids are assets of their own, such as nep141:wrap.near


class Listed(NamedTuple):
    """A transaction in the order of the chain."""

    height: int
    position: int  # in the block
    tx_hash: str


class Builder:
    """
    The builder of one statement.

    Parameters
    ----------
    ledger
        The ledger to read from.
    account_id
        The account.
    start, stop
        The blocks after which the statement starts and stops; without a start it begins before
        the account's first transaction.
    assets
        The only assets of the statement; None is all.
    again
        Hashes of transactions that were still running in an earlier part of the statement.
    progress
        Whether to show progress bars.
    """

    def __init__(
        self,
        ledger: Ledger,
        account_id: str,
        start: Point | None,
        stop: Point,
        assets: tuple[str, ...] | None = None,
        *,
        again: Iterable[str] = (),
        progress: bool = True,
    ) -> None:
        self._ledger, self._account_id, self._assets = ledger, account_id, assets
        self._start, self._stop, self._progress = start, stop, progress
        self._again = dict.fromkeys(again)
        self._reader = BalanceReader(ledger, account_id, progress=progress)
        self._borders_ns: list[int] = []  # between parts of the transactions
        self._unfinished: list[str] = []
        self._notes: list[str] = []
        self._late: list[Entry] = []  # that do not come from the documents
        self._moved: frozenset[Entry] = frozenset()  # of deleted gas keys, to the account
        self._flows: list[Entry] = []  # deposits with pools, and withdrawals
        self._listed_assets: dict[str, None] = {}  # by indexers, in order
        self._lost: set[str] = set()  # hashes of transactions whose documents are missing
        # Of transfers without a transaction: whether a document has the receipt.
        self._receipts: dict[str | None, bool] = {}

    def build(self) -> Statement:
        """Read everything, and return the statement."""
        listed = self._list_transactions()
        transfers = self._list_transfers({each.tx_hash for each in listed})
        if not listed and not transfers:
            self._check_account()
        start = self._start or self._find_start(listed, transfers)
        pools = self._pools()
        listed, indexed_rows = self._add_unlisted(listed, transfers)
        is_pool = stakes.pool_test(pools)
        self._receipts = dict.fromkeys((row.receipt_id for row in indexed_rows), False)
        store = EntryStore(self._from_documents(listed, start, is_pool))
        indexed_rows = [row for row in indexed_rows if not self._receipts[row.receipt_id]]
        self._add_indexed([*indexed_rows, *self._transfers_of_lost()], start, is_pool)
        facts = self._new_facts(_block(start))
        facts.rewards = self._add_rewards(pools, facts)
        sums = sums_by_asset(self._in_order(store))
        assets = self._assets_of(sums)
        self._reconcile(facts, store, {asset: sums.get(asset, Sums()) for asset in assets})
        if self._assets is None:
            facts.rewards += self._further_rewards(facts, store)
        facts.tokens = self._tokens(assets)
        facts.unfinished, facts.notes = self._unfinished, self._notes
        return Statement(facts, self._merged(store))

    def _new_facts(self, start: Block) -> Facts:
        """Return what is known of a statement before anything is read."""
        assets = None if self._assets is None else list(self._assets)
        network = self._ledger.network.name
        return Facts(self._account_id, network, start, _block(self._stop), assets=assets)

    # Sources -----------------------------------------------------------------------------

    def _list_transactions(self) -> list[Listed]:
        """List the transactions of the account in the order of the chain."""
        first = 0 if self._start is None else max(0, self._start.height - _MARGIN)
        with bar(
            desc="transactions", disable=not self._progress, delay=0.5, leave=False
        ) as tracker:
            rows = transaction_rows(
                self._ledger, self._account_id, first, self._stop.height, tracker.update
            )
            listed: dict[str, Listed] = {}  # by hash, because entries of two rows count twice
            for row in rows:
                if len(listed) % PART == PART - 1:
                    self._borders_ns.append(row.timestamp_ns)
                place = Listed(row.tx_block_height, row.tx_index or 0, row.transaction_hash)
                listed.setdefault(row.transaction_hash, place)
        return list(listed.values())

    def _list_transfers(self, known: set[str]) -> list[TransferRow]:
        """List the transfers whose transaction is not listed, and note the assets of all."""
        if self._ledger.network.transfers_url is None:
            self._notes.append(
                f"{self._ledger.network.name} has no Transfers API: what no transaction lists, "
                "such as tokens that a contract's owner creates, shows only as gaps"
            )
            return []

        def is_unlisted(row: TransferRow) -> bool:
            self._listed_assets[row.asset] = None
            return row.transaction_id not in known

        transfers = self._transfers(is_unlisted)
        self._notes += [
            f"the Transfers API lists {asset}, which is of an unknown kind"
            for asset in self._listed_assets
            if not is_asset(asset)
        ]
        return transfers

    def _transfers(self, where: Callable[[TransferRow], bool]) -> list[TransferRow]:
        """Read transfers of the period, and of those that may have left in its last block."""
        first_ns = 0 if self._start is None else self._start.time_ns + 1
        last_ns = self._stop.time_ns + _LATEST_ARRIVAL_NS + 1
        inner = [time_ns for time_ns in self._borders_ns if first_ns < time_ns < last_ns]
        borders_ns = sorted({first_ns, *inner, last_ns})
        rows = selected_transfers(
            self._ledger, self._account_id, borders_ns, where, progress=self._progress
        )
        return [r for r in rows if r.height <= self._stop.height + 1 and is_asset(r.asset)]

    def _find_start(self, listed: list[Listed], transfers: list[TransferRow]) -> Point:
        """Return the block before the account's first change that is listed."""
        heights = [each.height for each in listed[:1]] + [row.height - 1 for row in transfers[:1]]
        first = min(heights, default=0)
        places = [first - 1, first] if first else ["genesis"]  # the first may be of the first block
        points = self._ledger.locate_many(places)
        point = next((each for each in points if not isinstance(each, LedgerError)), points[0])
        if isinstance(point, LedgerError):
            raise point
        return point

    def _pools(self) -> list[str]:
        """List the pools that the indexer knows of, or those among the requested assets."""
        if self._assets is not None:
            return [a.removeprefix(STAKE) for a in self._assets if a.startswith(STAKE)]
        if self._ledger.network.api_url is None:
            return []
        pools = staking.listed_pools(self._ledger, self._account_id)
        self._listed_assets.update((STAKE + pool_id, None) for pool_id in pools)
        return pools

    def _add_unlisted(
        self, listed: list[Listed], transfers: list[TransferRow]
    ) -> tuple[list[Listed], list[TransferRow]]:
        """Add transactions that only transfers name; return also the transfers without one."""
        hashes = dict.fromkeys(row.transaction_id for row in transfers if row.transaction_id)
        known = {each.tx_hash for each in listed}
        hashes.update((tx_hash, None) for tx_hash in self._again if tx_hash not in known)
        extra = {}
        for batch in stream_documents(self._ledger, hashes):
            for tx_hash, document in batch:
                place = _place(document)
                if place is not None:
                    extra[tx_hash] = Listed(*place, tx_hash)
        alone = [row for row in transfers if row.transaction_id not in extra]
        return sorted([*listed, *extra.values()]), alone

    def _transfers_of_lost(self) -> list[TransferRow]:
        """List the transfers of transactions whose documents are missing."""
        if not self._lost or self._ledger.network.transfers_url is None:
            return []
        return self._transfers(lambda row: row.transaction_id in self._lost)

    def _check_account(self) -> None:
        """Raise if there is no account, and no balance can be read."""
        height = self._stop.height
        self._reader.read([(NEAR, height)])
        if not self._reader.balance(NEAR, height):
            at = validation.block_reference(self._stop.hash)
            self._ledger.send(rpc.view_account(self._account_id, at))

    # Entries -----------------------------------------------------------------------------

    def _from_documents(
        self, listed: list[Listed], start: Point, is_pool: PoolTest
    ) -> Iterator[Entry]:
        """Yield the entries of transactions in causal order."""
        waiting: list[Placed] = []
        rules = rules_by_height(self._ledger, (each.height for each in listed))
        with bar(
            total=len(listed), desc="documents", disable=not self._progress, delay=0.5, leave=False
        ) as tracker:
            position = 0
            for batch in stream_documents(self._ledger, (each.tx_hash for each in listed)):
                for tx_hash, document in batch:
                    height = listed[position].height
                    while waiting and waiting[0].place[0] < height:
                        yield heapq.heappop(waiting).entry
                    own_rules = rules[height]
                    for placed in self._read(tx_hash, document, position, own_rules, is_pool):
                        if start.height < placed.place[0] <= self._stop.height:
                            heapq.heappush(waiting, placed)
                    position += 1
                tracker.update(len(batch))
        while waiting:
            yield heapq.heappop(waiting).entry

    def _read(
        self,
        tx_hash: str,
        document: TransactionResponse | LedgerError,
        position: int,
        rules: Rules | None,
        is_pool: PoolTest,
    ) -> list[Placed]:
        """Return the entries of one transaction."""
        if isinstance(document, UnknownTransactionError):
            self._notes.append(f"transaction {tx_hash} is listed, but its document is missing")
            self._lost.add(tx_hash)
            return []
        if isinstance(document, LedgerError):
            raise document
        if self._receipts:  # the indexer does not know the transaction of each transfer
            ids = document.result.receipt_ids() & self._receipts.keys()
            self._receipts.update(dict.fromkeys(ids, True))
        trace = Trace(document.result, document.body, rules=rules)
        placed, is_complete = entries_of(trace, self._account_id, position)
        if trace.verdict == "pending":
            self._unfinished.append(tx_hash)
        elif not is_complete:
            trace = self._from_node(trace, document, rules)
            placed, is_complete = entries_of(trace, self._account_id, position)
            if not is_complete:
                self._notes.append(f"an amount of transaction {tx_hash} is unknown")
        flows = stakes.stake_entries(trace, self._account_id, is_pool)
        self._flows += flows
        staked = [
            Placed((e.block_height, True, position, len(placed) + at, at), e)
            for at, e in enumerate(flows)
        ]
        own = [Placed(place, stakes.with_pool(entry, is_pool)) for place, entry in placed]
        return [each for each in (*own, *staked) if self._is_wanted(each.entry.asset)]

    def _from_node(self, trace: Trace, document: TransactionResponse, rules: Rules | None) -> Trace:
        """Read a trace from the node, which sends gas profiles; else return the given one."""
        if trace.tx_hash is None or trace.signer_id is None:
            return trace
        try:
            answer = self._ledger.send(rpc.transaction(trace.tx_hash, trace.signer_id, "FINAL"))
        except LedgerError as error:
            if error.retryable:
                raise
            return trace  # a note, and perhaps a gap, say what is unknown
        return Trace(answer.result, answer.body, blocks=document.result.block_places(), rules=rules)

    def _is_wanted(self, asset: str) -> bool:
        """Return True for an asset of the statement."""
        return self._assets is None or asset in self._assets

    def _add_indexed(self, rows: list[TransferRow], start: Point, is_pool: PoolTest) -> None:
        """Add entries for transfers without a document."""
        entries = []
        for row in rows:
            entry = indexed.indexed_entry(row)
            if entry is None:
                self._notes.append(
                    f"the Transfers API cut off an amount of {row.asset} in block {row.height}"
                )
            elif self._is_wanted(entry.asset) or is_pool(entry.counterparty_id or ""):
                entries.append(entry)
        placed = indexed.placed_by_balances(entries, self._reader)
        for listed, entry in zip(entries, placed, strict=True):
            # What left the account arrives with the pool in the block that is listed.
            flow = stakes.stake_of_transfer(listed, is_pool)
            if flow is not None and self._is_inside(flow, start):
                self._late.append(flow)
                self._flows.append(flow)
            if self._is_inside(entry, start):
                self._late.append(stakes.with_pool(entry, is_pool))
        self._late = [entry for entry in self._late if self._is_wanted(entry.asset)]

    def _is_inside(self, entry: Entry, start: Point) -> bool:
        """Return True for an entry of the period."""
        return start.height < entry.block_height <= self._stop.height

    def _add_rewards(self, pools: list[str], facts: Facts) -> list[Reward]:
        """Add entries for the rewards of pools."""
        own = [e.asset.removeprefix(STAKE) for e in self._flows if self._is_wanted(e.asset)]
        rewards = staking.rewards_of(
            self._ledger,
            self._account_id,
            dict.fromkeys([*pools, *own]),
            start=facts.start,
            stop=facts.stop,
            flows=self._flows,
            progress=self._progress,
        )
        self._late += staking.reward_entries(rewards)
        return rewards

    def _further_rewards(self, facts: Facts, store: EntryStore) -> list[Reward]:
        """Read the rewards of the account's lockup contract, and gains of liquid tokens."""
        ledger, ends = self._ledger, (facts.start, facts.stop)
        rewards = lockup_rewards(ledger, self._account_id, *ends, progress=self._progress)
        contracts = {f"{FUNGIBLE}:{name}": name for name in ledger.network.liquid_tokens}
        tokens = [name for asset, name in contracts.items() if asset in facts.opening]
        if tokens:
            entries = [each for each in chain(store, self._late) if each.asset in contracts]
            rewards += liquid_gains(ledger, self._account_id, tokens, *ends, entries)
        return rewards

    # Balances ----------------------------------------------------------------------------

    def _assets_of(self, with_entries: Iterable[str]) -> list[str]:
        """List the assets of the statement: those with entries, and those that indexers list."""
        if self._assets is not None:
            return list(self._assets)
        assets = dict.fromkeys([NEAR, *with_entries])
        assets.update((asset, None) for asset in self._listed_assets if is_asset(asset))
        if self._ledger.network.api_url is not None:
            tokens = self._ledger.send(rest.ft(self._account_id)).tokens or ()
            assets.update((f"{FUNGIBLE}:{token.contract_id}", None) for token in tokens)
        return list(assets)

    def _reconcile(self, facts: Facts, store: EntryStore, sums: dict[str, Sums]) -> None:
        """Compare entries with balances; add what blocks explain, and the gaps that remain."""
        reader, ends = self._reader, (facts.start.height, facts.stop.height)
        reader.read((asset, height) for asset in sums for height in ends)
        facts.opening = {asset: reader.balance(asset, ends[0]) for asset in sums}
        facts.closing = {asset: reader.balance(asset, ends[1]) for asset in sums}
        settled = settle_gas_keys(find_gaps(reader, sums, *ends), store, reader)
        self._moved = settled.moved
        self._late += settled.entries
        entries = self._in_order(store)
        explained = explain_gaps(self._ledger, self._account_id, settled.gaps, entries, reader)
        self._late += explained.entries
        facts.gaps = explained.gaps

    def _merged(self, store: EntryStore) -> EntryStore:
        """Return all entries in causal order, in a new store if there are others."""
        return EntryStore(self._in_order(store)) if self._late or self._moved else store

    def _in_order(self, store: EntryStore) -> Iterator[Entry]:
        """Yield all entries in causal order."""
        self._late.sort(key=_height)
        entries = (e._replace(asset=NEAR) if e in self._moved else e for e in store)
        return heapq.merge(entries if self._moved else store, self._late, key=_height)

    def _tokens(self, assets: Iterable[str]) -> dict[str, Token]:
        """Read symbols and decimals of tokens."""
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


def _height(entry: Entry) -> int:
    """Return the height of an entry's block."""
    return entry.block_height


def _metadata_contract(asset: str) -> str | None:
    """Return the contract that has the symbol and decimals of an asset."""
    # Source: near/intents, defuse/core: token ids are written as `nep141:<contract>`.
    intents = f"{MULTI_TOKEN}:{_INTENTS}:"
    kind, _, contract_id = asset.removeprefix(intents).partition(":")
    return contract_id if kind == FUNGIBLE else None


def _place(document: TransactionResponse | LedgerError) -> tuple[int, int] | None:
    """Return the height of a transaction's block, and 0; None if it is unknown."""
    if isinstance(document, UnknownTransactionError):
        return None
    if isinstance(document, LedgerError):
        raise document
    outcome = document.result.transaction_outcome
    return None if outcome is None or outcome.block_height is None else (outcome.block_height, 0)


def _block(point: Point) -> Block:
    """Return an end of a statement."""
    return Block(point.height, point.time_ns, point.hash)
