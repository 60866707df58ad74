"""From results to traces: the blocks and rules that they lack, each read once for all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.api.models.protocol_rules import rules_of
from ledgerkit.errors import LedgerError
from ledgerkit.tracing.trace import Trace
from ledgerkit.verbs.fetching import Ask, provenance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.api.rpc import TxAnswer
    from ledgerkit.client import Ledger

SOURCE = "EXPERIMENTAL_tx_status"
_rules: WeakKeyDictionary[Ledger, dict[str, Rules | None]] = WeakKeyDictionary()


def traced(
    asked: Ledger, answers: Sequence[TxAnswer], *, blocks: bool, progress: bool = True
) -> list[Trace]:
    """
    Make traces of results.

    Parameters
    ----------
    asked
        The ledger they come from.
    answers
        The results.
    blocks
        Whether to read the blocks that receipts ran in, and the rules in force then.
    progress
        Whether a bar shows.

    Returns
    -------
    traces
        One a result, in order.

    Raises
    ------
    LedgerError
        If a block could not be read.
    """
    hashes = [answer.result.block_hashes() if blocks else [] for answer in answers]
    known = _headers(asked, list(dict.fromkeys(one for each in hashes for one in each)), progress)
    rules = _rules_by_epoch(asked, known)
    told = provenance(asked, SOURCE)
    return [
        trace_of(answer, {one: known[one] for one in own}, rules, told)
        for answer, own in zip(answers, hashes, strict=True)
    ]


def trace_of(
    answer: TxAnswer,
    known: Mapping[str, BlockHeader],
    rules: Mapping[str, Rules | None],
    attrs: Mapping[str, Any] | None = None,
) -> Trace:
    """
    Make a trace of one result and what it lacks.

    Parameters
    ----------
    answer
        The result.
    known
        The blocks that its receipts ran in, by hash.
    rules
        Those in force, by epoch.
    attrs
        Provenance to hang on the frames.

    Returns
    -------
    trace
        The transaction's trace.
    """
    return Trace(
        answer.result,
        answer.body,
        blocks={name: (head.height, head.time_ns or 0) for name, head in known.items()},
        rules=_common([rules.get(head.epoch_id) for head in known.values()]),
        attrs=attrs,
    )


def _headers(asked: Ledger, hashes: Sequence[str], progress: bool) -> dict[str, BlockHeader]:  # noqa: FBT001 - handed on
    """Read blocks by their hashes."""
    calls = [rpc.block(validation.block_reference(block_hash)) for block_hash in hashes]
    found = Ask(asked, "raise", progress).send(calls, "blocks")
    heads = [block.header for block in found if not isinstance(block, LedgerError)]
    return dict(zip(hashes, heads, strict=True))


def _rules_by_epoch(asked: Ledger, known: dict[str, BlockHeader]) -> dict[str, Rules | None]:
    """Read the rules of each epoch once; where a host does not tell them they stay unknown."""
    kept = _rules.setdefault(asked, {})
    missing = {
        header.epoch_id: block_hash
        for block_hash, header in known.items()
        if header.epoch_id not in kept
    }
    for epoch_id, block_hash in missing.items():
        try:
            kept[epoch_id] = rules_of(
                asked.send(rpc.protocol_config(validation.block_reference(block_hash)))
            )
        except LedgerError as error:  # a trace without them says so in its notes
            if not error.retryable:
                kept[epoch_id] = None
    return kept


def _common(rules: Sequence[Rules | None]) -> Rules | None:
    """Give the rules that held all the time; None if they changed on the way."""
    return rules[0] if rules and len(set(rules)) == 1 else None
