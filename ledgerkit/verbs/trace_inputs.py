"""Traces of results, with the blocks and protocol rules that a result lacks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit.api import rpc
from ledgerkit.api.models.transactions import TransactionResponse
from ledgerkit.block_data.protocol_rules import (
    common_rules,
    headers_with_rules,
    rules_by_height,
)
from ledgerkit.tracing.trace import Trace
from ledgerkit.verbs.fetching import provenance
from ledgerkit.verbs.proving import prove
from ledgerkit.verbs.tokens import read_token_facts
from ledgerkit.verbs.trace_results import source_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.ledger import Ledger
    from ledgerkit.tracing.trace import Prover, TokenLookup

    Span = tuple[int, int]  # the first and the last height at which receipts ran


def build_traces(
    ledger: Ledger, answers: Sequence[TransactionResponse], *, blocks: bool, progress: bool = True
) -> list[Trace]:
    """Build the traces of results; with `blocks`, read their blocks and the rules in force."""
    spans = [answer.result.height_span() if blocks else None for answer in answers]
    pairs = list(zip(answers, spans, strict=True))
    documents = [(answer, span) for answer, span in pairs if span is not None]
    others = [answer for answer, span in pairs if span is None]
    from_documents = iter(_traces_with_heights(ledger, documents))
    from_others = iter(_traces_without_heights(ledger, others, blocks=blocks, progress=progress))
    return [next(from_others if span is None else from_documents) for span in spans]


def _traces_without_heights(
    ledger: Ledger, answers: Sequence[TransactionResponse], *, blocks: bool, progress: bool
) -> list[Trace]:
    """Build the traces of results without heights; with `blocks`, read their blocks."""
    hashes = [answer.result.block_hashes() if blocks else [] for answer in answers]
    unique = list(dict.fromkeys(block_hash for listed in hashes for block_hash in listed))
    headers, rules = headers_with_rules(ledger, unique, progress=progress)
    tokens, prover = partial(read_token_facts, ledger), partial(prove, ledger)
    return [
        build_trace(
            answer,
            {h: headers[h] for h in listed},
            rules,
            _attrs(ledger, answer),
            tokens=tokens,
            prover=prover,
        )
        for answer, listed in zip(answers, hashes, strict=True)
    ]


def _traces_with_heights(
    ledger: Ledger, documents: Sequence[tuple[TransactionResponse, Span]]
) -> list[Trace]:
    """Build the traces of documents, with the gas profiles that only nodes send."""
    heights = [height for _, span in documents for height in span]
    rules_at = rules_by_height(ledger, heights)
    tokens, prover = partial(read_token_facts, ledger), partial(prove, ledger)

    def build(answer: TransactionResponse, span: Span, **options: Any) -> Trace:
        rules = common_rules([rules_at[height] for height in span])
        attrs = _attrs(ledger, answer)
        return Trace(
            answer.result,
            answer.body,
            rules=rules,
            attrs=attrs,
            tokens=tokens,
            prover=prover,
            **options,
        )

    traces = [build(*document) for document in documents]
    # Source: in recorded documents of the Transactions API each `gas_profile` is null. It is
    # needed for receipts that do more than call, which burn gas that no result names.
    lacking = {at: trace for at, trace in enumerate(traces) if trace._lacks_gas_profile()}  # noqa: SLF001 - of this package
    for at, answer in _read_profiles(ledger, lacking):
        document, span = documents[at]
        traces[at] = build(answer, span, blocks=document.result.block_places())
    return traces


def _read_profiles(
    ledger: Ledger, lacking: Mapping[int, Trace]
) -> Iterator[tuple[int, TransactionResponse]]:
    """Read transactions with their gas profiles from a node, where it has them."""
    pairs = [(trace.tx_hash or "", trace.signer_id or "") for trace in lacking.values()]
    calls = [rpc.transaction_or_timeout(*pair, "NONE") for pair in pairs]
    answers = ledger.send_many(calls, on_error="collect", progress=False) if calls else []
    for at, answer in zip(lacking, answers, strict=True):
        if isinstance(answer, TransactionResponse) and answer.result.has_finished():
            yield at, answer


def _attrs(ledger: Ledger, answer: TransactionResponse) -> dict[str, Any]:
    """Return the provenance of a result."""
    return provenance(ledger, source_of([answer]))


def build_trace(
    answer: TransactionResponse,
    headers: Mapping[str, BlockHeader],
    rules: Mapping[str, Rules | None],
    attrs: Mapping[str, Any] | None = None,
    *,
    tokens: TokenLookup | None = None,
    prover: Prover | None = None,
) -> Trace:
    """Build the trace of one result, with its block headers by hash and the rules by epoch."""
    return Trace(
        answer.result,
        answer.body,
        blocks={h: (header.height, header.time_ns or 0) for h, header in headers.items()},
        rules=common_rules([rules.get(header.epoch_id) for header in headers.values()]),
        attrs=attrs,
        tokens=tokens,
        prover=prover,
    )
