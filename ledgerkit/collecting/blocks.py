"""A collection of blocks: what is asked about a height, and what tables the answers make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.api.models.protocol_rules import rules_of
from ledgerkit.collecting import account_requests, arrow_tables, manifest, request_scheduling
from ledgerkit.collecting.skipped_heights import Absent, settled
from ledgerkit.errors import (
    AuthError,
    DecodeError,
    LedgerError,
    TransactionTimeoutError,
    UnknownBlockError,
)
from ledgerkit.frames import chain as tables
from ledgerkit.tracing.trace import events_in, receipts_in
from ledgerkit.u128 import arrow
from ledgerkit.verbs.trace_inputs import trace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pandas as pd

    from ledgerkit.api.models import chain
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.client import Ledger
    from ledgerkit.collecting.account_requests import Outcome
    from ledgerkit.collecting.request_scheduling import Inquiry
    from ledgerkit.collecting.sources import Subject

VIEWS = ("blocks", "chunks", "transactions", "receipts", "events")
_TRACED = {"receipts": receipts_in, "events": events_in}
_HEADERS = 4_096  # of blocks read lately: receipts run in blocks that are read anyway
_OPEN = ("not_executed", "unknown")


class Contents(NamedTuple):
    """What was read of a height: its block, the chunks that are new in it, frames of traces."""

    block: chain.Block
    chunks: list[chain.Chunk]
    traced: dict[str, pd.DataFrame]


class Heights:
    """
    Asks about heights.

    Parameters
    ----------
    views
        Some of `VIEWS`.
    """

    def __init__(self, views: Sequence[str]) -> None:
        self._views = tuple(views)
        self._headers: dict[str, chain.BlockHeader] = {}
        self._rules: dict[str, Rules | None] = {}
        self._pinned: dict[str, str] = {}  # a block of each epoch, at which its rules are asked

    def ask(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Ask about heights, some at a time, in their order; one that lacks a part has failed."""
        held: list[Outcome] = []
        for batch in settled(ledger, request_scheduling.outcomes(ledger, subjects, self._inquire)):
            held += batch
            silent, kept, error = account_requests.silence(held, 0, "heights")
            if error is not None:
                yield held[:kept]
                raise error
            answered = len(held) - silent
            yield held[:answered]
            held = held[answered:]
        yield held

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """
        Hold the answers among some outcomes in Arrow tables.

        Parameters
        ----------
        outcomes
            Heights with what was answered.

        Returns
        -------
        tables
            A `pyarrow.Table` a view.

        Raises
        ------
        DecodeError
            If an answer fits no column.
        """
        found = [value for _, value in outcomes if isinstance(value, Contents)]
        return {
            view: _BUILD[view](found) if view in _BUILD else _joined(view, found)
            for view in self._views
        }

    def key(self, table: str) -> str:
        """Name the column of a table that tells which height a row belongs to."""
        return "tx_block_height" if table in _TRACED else "block_height"

    def _inquire(self, subject: Subject) -> Inquiry:
        """Ask for a block and, where they are wanted, its chunks and its transactions."""
        [block] = yield [rpc.block(validation.block_reference(subject.position))]
        if isinstance(block, UnknownBlockError):
            return Absent(block)
        _check([block])
        _same(block.header.height, subject.position, f"block {subject.position}")
        self._remember(block.header)
        chunks = (yield from _chunks(block)) if self._views != ("blocks",) else []
        views = [view for view in self._views if view in _TRACED]
        sent = {tx.hash: tx.signer_id for chunk in chunks for tx in chunk.transactions}
        if not views or not sent:
            return Contents(block, chunks, {})
        traces = yield from self._traces(sent)
        views = list(dict.fromkeys(["receipts", *views]))  # they tell whether all has run
        frames = {view: _TRACED[view](subject.position, traces) for view in views}
        _check_whole(frames["receipts"])
        return Contents(block, chunks, frames)

    def _remember(self, header: chain.BlockHeader) -> None:
        """Keep a block's header for the receipts that ran in it."""
        self._headers[header.hash] = header
        if len(self._headers) > _HEADERS:
            del self._headers[next(iter(self._headers))]

    def _traces(self, sent: dict[str, str]) -> Inquiry:
        """Ask for the results of transactions, and for the blocks in which receipts ran."""
        answers = yield [rpc.transaction(name, who, "FINAL") for name, who in sent.items()]
        _check(answers)
        told = dict(zip(sent, answers, strict=True))
        for name, answer in told.items():
            sent_then = answer.result.transaction
            _same(sent_then and sent_then.hash, name, f"transaction {name}")
        ran = {name: answer.result.block_hashes() for name, answer in told.items()}
        known = yield from self._known(dict.fromkeys(one for each in ran.values() for one in each))
        yield from self._learn(known)
        return {
            name: trace_of(answer, {one: known[one] for one in ran[name]}, self._rules)
            for name, answer in told.items()
        }

    def _known(self, hashes: Iterable[str]) -> Inquiry:
        """Give headers by their hashes; those not read lately are asked for."""
        known = {name: self._headers.get(name) for name in hashes}
        missing = [name for name, header in known.items() if header is None]
        blocks = (
            (yield [rpc.block(validation.block_reference(name)) for name in missing])
            if missing
            else []
        )
        _check(blocks)
        for name, block in zip(missing, blocks, strict=True):
            _same(block.header.hash, name, f"block {name}")
            self._remember(block.header)
            known[name] = block.header
        return known

    def _learn(self, known: dict[str, chain.BlockHeader]) -> Inquiry:
        """Ask once for the rules of each epoch; a host that does not tell them leaves them out."""
        for name, header in known.items():
            epoch = header.epoch_id
            if epoch not in self._rules:
                pinned = self._pinned.setdefault(epoch, name)
                [config] = yield [rpc.protocol_config(validation.block_reference(pinned))]
                self._rules[epoch] = _rules(config)


def _chunks(block: chain.Block) -> Inquiry:
    """Ask for the chunks that are new in a block."""
    fresh = [c.chunk_hash for c in block.chunks if c.height_included == block.header.height]
    found = yield [rpc.chunk(chunk_hash) for chunk_hash in fresh]
    _check(found)
    for chunk, chunk_hash in zip(found, fresh, strict=True):
        _same(chunk.header.chunk_hash, chunk_hash, f"chunk {chunk_hash}")
    return found


def _check(answers: Sequence[Any]) -> None:
    """Raise the first error among answers."""
    for answer in answers:
        if isinstance(answer, LedgerError):
            raise answer


def _same(found: object, wanted: object, asked: str) -> None:
    """Refuse an answer about something else."""
    if found != wanted:
        raise DecodeError(f"{asked} was asked for, and {found} was answered", asked=asked)


def _check_whole(receipts: pd.DataFrame) -> None:
    """Refuse transactions of which a receipt has still to run."""
    waiting = receipts[receipts["status"].isin(_OPEN)]
    if len(waiting):
        first = waiting["tx_hash"].iloc[0]
        msg = f"{len(waiting)} receipts have not run yet, the first of them of transaction {first}"
        raise TransactionTimeoutError(msg, remedy=_LATER)


_LATER = "Run the same command with retry_failed=True in a while."


def _rules(config: Any) -> Rules | None:
    """Read the rules of an epoch; None where the host does not tell them."""
    if isinstance(config, LedgerError):
        if config.retryable or isinstance(config, AuthError):
            raise config
        return None
    try:
        return rules_of(config)
    except DecodeError:
        return None


def _blocks(found: Sequence[Contents]) -> Any:
    """Tabulate blocks."""
    return arrow_tables.table("blocks", tables.blocks([each.block for each in found]))


def _chunk_rows(found: Sequence[Contents]) -> Any:
    """Tabulate the chunks of blocks: the new ones as they were read, old ones by their headers."""
    rows = []
    for block, chunks, _ in found:
        read = {chunk.header.chunk_hash: chunk for chunk in chunks}
        height = block.header.height
        rows += [(height, head, read.get(head.chunk_hash)) for head in block.chunks]
    return arrow_tables.table("chunks", tables.chunks_of(rows))


def _transactions(found: Sequence[Contents]) -> Any:
    """Tabulate transactions."""
    rows = [(each.block.header.height, chunk) for each in found for chunk in each.chunks]
    return arrow_tables.table("transactions", tables.transactions_of(rows))


_BUILD: dict[str, Callable[[Sequence[Contents]], Any]] = {
    "blocks": _blocks,
    "chunks": _chunk_rows,
    "transactions": _transactions,
}


def _joined(view: str, found: Sequence[Contents]) -> Any:
    """Put frames of traces one below the other."""
    name = manifest.frame_name(view)
    parts = [arrow_tables.table(name, each.traced[view]) for each in found if view in each.traced]
    return arrow.library().concat_tables([arrow_tables.schema(name).empty_table(), *parts])
