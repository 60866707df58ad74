"""Inputs of traces: the blocks and protocol rules that a result lacks, each read once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.api.models.protocol_rules import rules_of
from ledgerkit.errors import LedgerError
from ledgerkit.tracing.trace import Trace
from ledgerkit.verbs.fetching import Fetcher, provenance
from ledgerkit.verbs.tokens import read_token_facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.api.rpc import TransactionResponse
    from ledgerkit.client import Ledger
    from ledgerkit.tracing.trace import TokenLookup

SOURCE = "EXPERIMENTAL_tx_status"


def build_traces(
    ledger: Ledger, answers: Sequence[TransactionResponse], *, blocks: bool, progress: bool = True
) -> list[Trace]:
    """Build the traces of results; with `blocks`, read their blocks and the rules in force."""
    hashes = [answer.result.block_hashes() if blocks else [] for answer in answers]
    unique = list(dict.fromkeys(block_hash for listed in hashes for block_hash in listed))
    headers = _read_headers(Fetcher(ledger, "raise", progress), unique)
    rules = _rules_by_epoch(ledger, headers)
    attrs, tokens = provenance(ledger, SOURCE), partial(read_token_facts, ledger)
    return [
        build_trace(answer, {h: headers[h] for h in listed}, rules, attrs, tokens)
        for answer, listed in zip(answers, hashes, strict=True)
    ]


def build_trace(
    answer: TransactionResponse,
    headers: Mapping[str, BlockHeader],
    rules: Mapping[str, Rules | None],
    attrs: Mapping[str, Any] | None = None,
    tokens: TokenLookup | None = None,
) -> Trace:
    """Build the trace of one result, with its block headers by hash and the rules by epoch."""
    return Trace(
        answer.result,
        answer.body,
        blocks={h: (header.height, header.time_ns or 0) for h, header in headers.items()},
        rules=_common_rules([rules.get(header.epoch_id) for header in headers.values()]),
        attrs=attrs,
        tokens=tokens,
    )


def _read_headers(fetcher: Fetcher, hashes: Sequence[str]) -> dict[str, BlockHeader]:
    """Read block headers by their hashes."""
    calls = [rpc.block(validation.block_reference(block_hash)) for block_hash in hashes]
    answers = fetcher.send(calls, "blocks")
    headers = [answer.header for answer in answers if not isinstance(answer, LedgerError)]
    return dict(zip(hashes, headers, strict=True))


def _rules_by_epoch(ledger: Ledger, headers: Mapping[str, BlockHeader]) -> dict[str, Rules | None]:
    """Read the rules of each epoch, once per ledger; None if the node does not send them."""
    rules: dict[str, Rules | None] = ledger.memo("protocol_rules", dict)
    missing = {
        header.epoch_id: block_hash
        for block_hash, header in headers.items()
        if header.epoch_id not in rules
    }
    for epoch_id, block_hash in missing.items():
        call = rpc.protocol_config(validation.block_reference(block_hash))
        try:
            rules[epoch_id] = rules_of(ledger.send(call))
        except LedgerError as error:  # the trace states in its notes that they are missing
            if not error.retryable:
                rules[epoch_id] = None
    return rules


def _common_rules(rules: Sequence[Rules | None]) -> Rules | None:
    """Return the rules if all blocks share them; None if they changed in between."""
    return rules[0] if rules and len(set(rules)) == 1 else None
