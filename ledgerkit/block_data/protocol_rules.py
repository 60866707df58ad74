"""The protocol's rules in force, which results of transactions do not contain, each read once."""

from __future__ import annotations

from bisect import bisect, insort
from itertools import chain
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.api.models.protocol_rules import rules_of
from ledgerkit.errors import AuthError, DecodeError, LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.ledger import Ledger


def rules_by_epoch(
    ledger: Ledger, headers: Mapping[str, BlockHeader], *, must_answer: bool = False
) -> dict[str, Rules | None]:
    """Read the rules of each epoch, once per ledger; None if the node does not send them."""
    rules: dict[str, Rules | None] = ledger.memo("protocol_rules", dict)
    missing = {
        header.epoch_id: block_hash
        for block_hash, header in headers.items()
        if header.epoch_id not in rules
    }
    calls = [rpc.protocol_config(validation.received_hash(h)) for h in missing.values()]
    answers = ledger.send_many(calls, on_error="collect", progress=False)
    for epoch_id, answer in zip(missing, answers, strict=True):
        add_rules(rules, epoch_id, answer, must_answer=must_answer)
    return rules


def headers_with_rules(
    ledger: Ledger, hashes: Sequence[str], *, progress: bool
) -> tuple[dict[str, BlockHeader], dict[str, Rules | None]]:
    """Read headers by hash, and the rules by epoch; the first ones in the same round trip."""
    rules: dict[str, Rules | None] = ledger.memo("protocol_rules", dict)
    first = [] if rules else hashes[:1]
    calls: list[Any] = [rpc.block(validation.received_hash(h)) for h in hashes]
    calls += [rpc.protocol_config(validation.received_hash(h)) for h in first]
    answers = ledger.send_many(calls, on_error="collect", progress=progress, label="blocks")
    headers: dict[str, BlockHeader] = {}
    for block_hash, answer in zip(hashes, answers, strict=False):
        if isinstance(answer, LedgerError):
            raise answer
        headers[block_hash] = answer.header
    for block_hash, answer in zip(first, answers[len(hashes) :], strict=True):
        add_rules(rules, headers[block_hash].epoch_id, answer)
    return headers, rules_by_epoch(ledger, headers)


def read_rules(ledger: Ledger, header: BlockHeader) -> Rules | None:
    """
    Return the rules in force at a block; None if there is no node, or it does not send them.

    Raises `LedgerError` if they could not be read.
    """
    if ledger.network.address("rpc") is None:
        return None
    return rules_by_epoch(ledger, {header.hash: header}, must_answer=True)[header.epoch_id]


def add_rules(
    rules: dict[str, Rules | None], epoch_id: str, answer: Any, *, must_answer: bool = False
) -> None:
    """
    Add the rules of an epoch.

    After an error that may pass they stay unknown, and notes of traces say so; with `must_answer`,
    such an error and that of a refused key are raised, since what is stored stays.
    """
    if isinstance(answer, LedgerError):
        if must_answer and (answer.retryable or isinstance(answer, AuthError)):
            raise answer
        if answer.retryable:
            return
    rules[epoch_id] = _rules_or_none(answer)


def _rules_or_none(answer: Any) -> Rules | None:
    """Decode the rules; None if the node does not send them."""
    try:
        return None if isinstance(answer, LedgerError) else rules_of(answer)
    except DecodeError:
        return None


def common_rules(rules: Sequence[Rules | None]) -> Rules | None:
    """Return the rules if all blocks share them; None if they changed in between."""
    return rules[0] if rules and len(set(rules)) == 1 else None


class _KnownRules:
    """The rules at the heights at which they were read, in order of height."""

    def __init__(self) -> None:
        self._rules: dict[int, Rules | None] = {}
        self._heights: list[int] = []

    def add(self, height: int, rules: Rules | None) -> None:
        """Add the rules at a height."""
        if height not in self._rules:
            self._rules[height] = rules
            insort(self._heights, height)

    def around(self, height: int) -> tuple[int, ...]:
        """Return the nearest heights with rules, below and above; alone the height itself."""
        if height in self._rules:
            return (height,)
        at = bisect(self._heights, height)
        return tuple(self._heights[max(at - 1, 0) : at + 1])

    def covers(self, height: int) -> bool:
        """Return True if the rules at a height are known: they never change back."""
        around = self.around(height)
        is_between = len(around) > 1 and self._rules[around[0]] == self._rules[around[1]]
        return height in self._rules or is_between

    def get(self, height: int) -> Rules | None:
        """Return the rules at a height; None if they are unknown."""
        return self._rules[self.around(height)[0]] if self.covers(height) else None


def rules_by_height(ledger: Ledger, heights: Iterable[int]) -> dict[int, Rules | None]:
    """
    Read the rules in force at heights; None where the node does not send them.

    Rules change at a few epochs a year. Between two heights with equal rules nothing is read: for
    many heights in a range, read first the rules at its ends.
    """
    known: _KnownRules = ledger.memo("rules_by_height", _KnownRules)
    requested = list(dict.fromkeys(heights))
    unread = set(requested)
    while missing := sorted(height for height in unread if not known.covers(height)):
        ends = known.around(missing[0])
        # A height halfway between different rules halves the range of those that differ.
        middle = [sum(ends) // 2] if len(ends) == 2 else []  # noqa: PLR2004 - below and above
        to_read = list(dict.fromkeys((missing[0], missing[-1], *middle)))
        calls = [rpc.protocol_config(validation.block_reference(height)) for height in to_read]
        answers = ledger.send_many(calls, on_error="collect", progress=False)
        for height, answer in zip(to_read, answers, strict=True):
            is_failed = isinstance(answer, LedgerError)  # a height in the middle may be skipped
            if not is_failed or (height in unread and not answer.retryable):
                known.add(height, _rules_or_none(answer))
        unread -= set(to_read)
    return {height: known.get(height) for height in requested}


def rules_by_span(ledger: Ledger, spans: Sequence[tuple[int, int] | None]) -> list[Rules | None]:
    """Read the rules that both ends of each span share; None without a span."""
    at = rules_by_height(ledger, chain.from_iterable(filter(None, spans)))
    return [common_rules([at[height] for height in span or ()]) for span in spans]
