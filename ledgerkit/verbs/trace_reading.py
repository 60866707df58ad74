"""Traces of transactions: their results, with the blocks and protocol rules that these lack."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from ledgerkit import progress
from ledgerkit.api import rpc
from ledgerkit.block_data import transaction_documents
from ledgerkit.block_data.protocol_rules import (
    common_rules,
    headers_with_rules,
    rules_by_span,
)
from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.tracing.trace import Trace
from ledgerkit.verbs.fetching import provenance
from ledgerkit.verbs.proving import prove
from ledgerkit.verbs.tokens import read_token_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.ledger import Ledger
    from ledgerkit.verbs.fetching import Fetcher

# The Transactions API has final blocks only, so its documents have reached these levels.
_REACHED = ("NONE", "INCLUDED", "INCLUDED_FINAL")
_ASK_A_NODE = (
    "Or pass the account that signed the transaction as signer_id, to read it from a node."
)

Key = tuple[str, str | None]  # a transaction's hash, and its signer if it is known


def read_results(
    fetcher: Fetcher, keys: Sequence[Key], wait_until: str
) -> dict[str, TransactionResponse]:
    """
    Read results by transaction hash; those not done in time are read as far as they are.

    Transactions of an unknown signer are read from the Transactions API, others from a node, and
    so are those that the API has before they are done.
    """
    tx_hashes = [tx_hash for tx_hash, signer_id in keys if signer_id is None]
    values = _read_documents(fetcher, tx_hashes)
    pairs = [(tx_hash, signer_id) for tx_hash, signer_id in keys if signer_id is not None]
    for tx_hash, value in values.items():
        signer_id = _signer_to_ask(value, wait_until)
        if signer_id is not None:
            pairs.append((tx_hash, signer_id))
    values |= _read_from_node(fetcher, pairs, wait_until)
    results = {}
    for tx_hash, _ in keys:
        value = values[tx_hash]
        if isinstance(value, LedgerError):
            fetcher.fail(tx_hash, value)
        else:
            results[tx_hash] = value
    return results


def _read_documents(
    fetcher: Fetcher, tx_hashes: Sequence[str]
) -> dict[str, TransactionResponse | LedgerError]:
    values: dict[str, TransactionResponse | LedgerError] = {}
    if not tx_hashes:
        return values
    if fetcher.ledger.network.transactions_url is None:
        return dict.fromkeys(tx_hashes, transaction_documents.no_index_error(fetcher.ledger))
    is_single = len(tx_hashes) == 1 or not fetcher.progress
    with progress.bar(total=len(tx_hashes), desc="transactions", disable=is_single) as bar:
        for batch in transaction_documents.stream_documents(fetcher.ledger, tx_hashes):
            values.update(batch)
            bar.update(len(batch))
    for value in values.values():
        if isinstance(value, LedgerError) and not value.remedy.endswith(_ASK_A_NODE):
            value.remedy = f"{value.remedy} {_ASK_A_NODE}"
    return values


def _signer_to_ask(value: TransactionResponse | LedgerError, wait_until: str) -> str | None:
    """Return the signer of a transaction that a node must wait for; None for any other."""
    if isinstance(value, LedgerError) or wait_until in _REACHED or value.result.has_finished():
        return None
    return value.transaction.signer_id if value.transaction else None


def _read_from_node(
    fetcher: Fetcher, pairs: Sequence[tuple[str, str]], wait_until: str
) -> dict[str, TransactionResponse | LedgerError]:
    if not pairs:
        return {}
    calls = [rpc.transaction_or_timeout(*pair, wait_until) for pair in pairs]
    received = fetcher.send(calls, "transactions")
    values: dict[tuple[str, str], Any] = dict(zip(pairs, received, strict=True))
    late = {pair: value for pair, value in values.items() if isinstance(value, rpc.TimedOut)}
    # The errors are collected: each is compared with the timeout before it.
    calls = [rpc.transaction_or_timeout(*pair, "NONE") for pair in late]
    answers = fetcher.ledger.send_many(calls, on_error="collect", progress=False) if late else []
    for (pair, value), answer in zip(late.items(), answers, strict=True):
        values[pair] = rpc.known_so_far(value, answer)
    return {pair[0]: _check_signer(answer, *pair) for pair, answer in values.items()}


def _check_signer(value: Any, tx_hash: str, signer_id: str) -> Any:
    """Return a result, or the error if another account signed the transaction."""
    # The node only derives the shard from the signer, and ignores it if it tracks that shard.
    transaction = None if isinstance(value, LedgerError) else value.result.transaction
    actual_id = transaction.signer_id if transaction else None
    if actual_id in (None, signer_id):
        return value
    expected = f"'{actual_id}', which signed transaction {tx_hash}"
    return InvalidRequestError.refuse("signer_id", signer_id, expected)


# Building traces --------------------------------------------------------------------------


def source_of(answers: Sequence[TransactionResponse]) -> str:
    """Return the source of results, for `attrs`: all that was requested."""
    return ", ".join(dict.fromkeys(answer.source for answer in answers))


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
    profiled = transaction_documents.read_finished_from_node(ledger, senders)
    for at, trace in lacking.items():
        if answer := profiled.get(trace.tx_hash or ""):
            traces[at] = build(at, answer, answers[at].result.block_places())
    return traces
