"""Traces of results, with the blocks and protocol rules that a result lacks."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from ledgerkit.block_data.protocol_rules import (
    common_rules,
    headers_with_rules,
    rules_by_span,
)
from ledgerkit.block_data.transaction_documents import read_finished_from_node
from ledgerkit.tracing.trace import Trace
from ledgerkit.verbs.fetching import provenance
from ledgerkit.verbs.proving import prove
from ledgerkit.verbs.tokens import read_token_facts
from ledgerkit.verbs.trace_results import source_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.ledger import Ledger


def build_traces(
    ledger: Ledger, answers: Sequence[TransactionResponse], *, blocks: bool, progress: bool = True
) -> list[Trace]:
    """
    Build the traces of results; with `blocks`, read their blocks and the rules in force.

    Documents of the Transactions API have heights; their gas profiles are read from a node.
    """
    spans = [answer.result.height_span() if blocks else None for answer in answers]
    hashes = [
        answer.result.block_hashes() if blocks and span is None else []
        for answer, span in zip(answers, spans, strict=True)
    ]
    rules_at = rules_by_span(ledger, spans)
    unique = list(dict.fromkeys(chain.from_iterable(hashes)))
    headers, rules_in = headers_with_rules(ledger, unique, progress=progress)
    options: dict[str, Any] = {
        "tokens": partial(read_token_facts, ledger),
        "prover": partial(prove, ledger),
    }

    def build(at: int, answer: TransactionResponse, places: dict[str, tuple[int, int]]) -> Trace:
        own_headers = [headers[block_hash] for block_hash in hashes[at]]
        rules_of_headers = common_rules([rules_in.get(h.epoch_id) for h in own_headers])
        rules = rules_of_headers if spans[at] is None else rules_at[at]
        attrs = provenance(ledger, source_of([answer]))
        result, body = answer.result, answer.body
        return Trace(result, body, blocks=places, rules=rules, attrs=attrs, **options)

    traces = [
        build(at, answer, {h: (headers[h].height, headers[h].time_ns or 0) for h in hashes[at]})
        for at, answer in enumerate(answers)
    ]
    # Source: in recorded documents of the Transactions API each `gas_profile` is null. It is
    # needed for receipts that do more than call, which burn gas that no result names.
    lacking = {
        at: trace
        for at, trace in enumerate(traces)
        if spans[at] is not None and trace._lacks_gas_profile()  # noqa: SLF001 - of this package
    }
    senders = {trace.tx_hash or "": trace.signer_id or "" for trace in lacking.values()}
    profiled = read_finished_from_node(ledger, senders)
    for at, trace in lacking.items():
        if answer := profiled.get(trace.tx_hash or ""):
            traces[at] = build(at, answer, answers[at].result.block_places())
    return traces
