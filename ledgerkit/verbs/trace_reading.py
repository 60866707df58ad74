"""Reading traces: results of transactions, and the blocks and protocol rules they refer to."""

from __future__ import annotations

from collections.abc import Sequence
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
from ledgerkit.verbs.fetching import Fetcher, provenance
from ledgerkit.verbs.proving import prove
from ledgerkit.verbs.token_facts import read_token_facts

if TYPE_CHECKING:
    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.ledger import Ledger

# The Transactions API has final blocks only, so its documents have reached these levels.
_REACHED = ("NONE", "INCLUDED", "INCLUDED_FINAL")
_ASK_A_NODE = (
    "Or pass the account that signed the transaction as signer_id, to read it from a node."
)

TransactionRef = tuple[str, str | None]  # a transaction's hash, and its signer if it is known


def read_results(
    fetcher: Fetcher, refs: Sequence[TransactionRef], wait_until: str
) -> dict[str, TransactionResponse]:
    """
    Read results by hash; a transaction that times out is returned as far as it has run.

    Transactions of an unknown signer are read from the Transactions API. Others are read from a
    node, and so are transactions that are not done in the API.
    """
    tx_hashes = [tx_hash for tx_hash, signer_id in refs if signer_id is None]
    values = _read_documents(fetcher, tx_hashes)
    pairs = [(tx_hash, signer_id) for tx_hash, signer_id in refs if signer_id is not None]
    for tx_hash, value in values.items():
        signer_id = _awaited_signer(value, wait_until)
        if signer_id is not None:
            pairs.append((tx_hash, signer_id))
    values |= _read_from_node(fetcher, pairs, wait_until)
    results = {}
    for tx_hash, _ in refs:
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
    with progress.Bar(total=len(tx_hashes), desc="transactions", disable=is_single) as bar:
        for batch in transaction_documents.stream_documents(fetcher.ledger, tx_hashes):
            values.update(batch)
            bar.update(len(batch))
    for value in values.values():
        if isinstance(value, LedgerError) and not value.remedy.endswith(_ASK_A_NODE):
            value.remedy = f"{value.remedy} {_ASK_A_NODE}"
    return values


def _awaited_signer(value: TransactionResponse | LedgerError, wait_until: str) -> str | None:
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
    # Errors are collected, because `known_so_far` compares them with the timeout before.
    calls = [rpc.transaction_or_timeout(*pair, "NONE") for pair in late]
    later = fetcher.ledger.send_many(calls, on_error="collect", progress=False) if late else []
    for (pair, value), later_value in zip(late.items(), later, strict=True):
        values[pair] = rpc.known_so_far(value, later_value)
    return {pair[0]: _check_signer(value, *pair) for pair, value in values.items()}


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


def source_of(responses: Sequence[TransactionResponse]) -> str:
    """Return the sources of responses, for `attrs`."""
    return ", ".join(dict.fromkeys(response.source for response in responses))


def build_traces(
    ledger: Ledger, responses: Sequence[TransactionResponse], *, blocks: bool, progress: bool = True
) -> list[Trace]:
    """
    Build the traces of results; with `blocks`, read their blocks and the rules in force.

    Documents of the Transactions API have heights; their gas profiles are read from a node.
    """
    spans = [response.result.height_span() if blocks else None for response in responses]
    hashes = [
        response.result.block_hashes() if blocks and span is None else []
        for response, span in zip(responses, spans, strict=True)
    ]
    rules_at = rules_by_span(ledger, spans)
    unique = list(dict.fromkeys(chain.from_iterable(hashes)))
    headers, rules_in = headers_with_rules(ledger, unique, progress=progress)
    options: dict[str, Any] = {
        "tokens": partial(read_token_facts, ledger),
        "prover": partial(prove, ledger),
    }

    def build(i: int, response: TransactionResponse, times: dict[str, tuple[int, int]]) -> Trace:
        rules_of_blocks = [rules_in.get(headers[h].epoch_id) for h in hashes[i]]
        rules = common_rules(rules_of_blocks) if spans[i] is None else rules_at[i]
        attrs = provenance(ledger, source_of([response]))
        result, body = response.result, response.body
        return Trace(result, body, blocks=times, rules=rules, attrs=attrs, **options)

    traces = [
        build(i, response, {h: (headers[h].height, headers[h].time_ns or 0) for h in hashes[i]})
        for i, response in enumerate(responses)
    ]
    # Receipts that do more than call need a gas profile: they burn gas that no result names.
    # Source: in recorded documents of the Transactions API each `gas_profile` is null.
    lacking = {
        i: trace
        for i, trace in enumerate(traces)
        if spans[i] is not None and trace._lacks_gas_profile()  # noqa: SLF001 - of this package
    }
    senders = {trace.tx_hash or "": trace.signer_id or "" for trace in lacking.values()}
    profiled = transaction_documents.read_finished_from_node(ledger, senders)
    for i, trace in lacking.items():
        if response := profiled.get(trace.tx_hash or ""):
            traces[i] = build(i, response, responses[i].result.block_places())
    return traces
