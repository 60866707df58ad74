"""The protocol's rules in force, which results of transactions do not contain; read once."""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.api.models.protocol_rules import Rules, rules_of
from ledgerkit.errors import AuthError, DecodeError, LedgerError

if TYPE_CHECKING:
    from ledgerkit.api.models.chain import BlockHeader
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
    responses = ledger.send_many(calls, on_error="collect", progress=False)
    for epoch_id, response in zip(missing, responses, strict=True):
        add_rules(rules, epoch_id, response, must_answer=must_answer)
    return rules


def headers_with_rules(
    ledger: Ledger, hashes: Sequence[str], *, progress: bool
) -> tuple[dict[str, BlockHeader], dict[str, Rules | None]]:
    """Read headers by hash and rules by epoch, the first rules in the same round trip."""
    rules: dict[str, Rules | None] = ledger.memo("protocol_rules", dict)
    first = [] if rules else hashes[:1]
    calls: list[Any] = [rpc.block(validation.received_hash(h)) for h in hashes]
    calls += [rpc.protocol_config(validation.received_hash(h)) for h in first]
    responses = ledger.send_many(calls, on_error="collect", progress=progress, label="blocks")
    headers: dict[str, BlockHeader] = {}
    for block_hash, response in zip(hashes, responses, strict=False):
        if isinstance(response, LedgerError):
            raise response
        headers[block_hash] = response.header
    for block_hash, response in zip(first, responses[len(hashes) :], strict=True):
        add_rules(rules, headers[block_hash].epoch_id, response)
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
    rules: dict[str, Rules | None], epoch_id: str, response: Any, *, must_answer: bool = False
) -> None:
    """
    Add the rules of an epoch.

    After an error that may pass they stay unknown, and notes of traces say so; with `must_answer`,
    such an error or a refused key is raised, because the caller stores the result.
    """
    if isinstance(response, LedgerError):
        if must_answer and (response.retryable or isinstance(response, AuthError)):
            raise response
        if response.retryable:
            return
    rules[epoch_id] = _rules_or_none(response)


def _rules_or_none(response: Any) -> Rules | None:
    try:
        return None if isinstance(response, LedgerError) else rules_of(response)
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
        if height not in self._rules:
            self._rules[height] = rules
            insort(self._heights, height)

    def around(self, height: int) -> tuple[int, ...]:
        """Return the nearest heights with rules, below and above, or the height itself."""
        if height in self._rules:
            return (height,)
        index = bisect(self._heights, height)
        return tuple(self._heights[max(index - 1, 0) : index + 1])

    def covers(self, height: int) -> bool:
        """Return True if the rules at a height are known: rules never change back."""
        around = self.around(height)
        is_between = len(around) > 1 and self._rules[around[0]] == self._rules[around[1]]
        return height in self._rules or is_between

    def get(self, height: int) -> Rules | None:
        return self._rules[self.around(height)[0]] if self.covers(height) else None


def rules_by_height(ledger: Ledger, heights: Iterable[int]) -> dict[int, Rules | None]:
    """
    Read the rules in force at heights; None where the node does not send them.

    Rules change at a few epochs a year. Between two heights with equal rules no request is sent:
    for many heights in a range, first read the rules at its ends.
    """
    rules: _KnownRules = ledger.memo("rules_by_height", _KnownRules)
    requested = list(dict.fromkeys(heights))
    unread = set(requested)
    while missing := sorted(height for height in unread if not rules.covers(height)):
        ends = rules.around(missing[0])
        # Reading halfway between two different rules halves the range with the change.
        middle = [sum(ends) // 2] if len(ends) == 2 else []  # noqa: PLR2004 - below and above
        to_read = list(dict.fromkeys((missing[0], missing[-1], *middle)))
        calls = [rpc.protocol_config(validation.block_reference(height)) for height in to_read]
        responses = ledger.send_many(calls, on_error="collect", progress=False)
        for height, response in zip(to_read, responses, strict=True):
            is_failed = isinstance(response, LedgerError)  # a height in the middle may be skipped
            if not is_failed or (height in unread and not response.retryable):
                rules.add(height, _rules_or_none(response))
        unread -= set(to_read)
    return {height: rules.get(height) for height in requested}


def rules_by_span(ledger: Ledger, spans: Sequence[tuple[int, int] | None]) -> list[Rules | None]:
    """Read the rules that both ends of each span share; None without a span."""
    rules = rules_by_height(ledger, chain.from_iterable(filter(None, spans)))
    return [common_rules([rules[height] for height in span or ()]) for span in spans]
