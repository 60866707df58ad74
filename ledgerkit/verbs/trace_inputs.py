"""Inputs of traces: the blocks and protocol rules that a result lacks, each read once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.api.models.protocol_rules import rules_of
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError
from ledgerkit.tracing.trace import Trace
from ledgerkit.verbs.fetching import provenance
from ledgerkit.verbs.tokens import read_token_facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledgerkit.api.calls import Call
    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.api.rpc import TransactionResponse
    from ledgerkit.client import Ledger
    from ledgerkit.tracing.trace import TokenLookup
    from ledgerkit.verbs.fetching import Fetcher

SOURCE = "EXPERIMENTAL_tx_status"


def read_results(
    fetcher: Fetcher, pairs: Sequence[tuple[str, str]], wait_until: str
) -> dict[str, TransactionResponse]:
    """Read results by transaction hash; those not done in time are read as far as they are."""
    calls = [rpc.transaction_or_timeout(*pair, wait_until) for pair in pairs]
    received = fetcher.send(calls, "transactions")
    values: dict[tuple[str, str], Any] = dict(zip(pairs, received, strict=True))
    late = {pair: value for pair, value in values.items() if isinstance(value, rpc.TimedOut)}
    # The errors are collected: each is compared with the timeout before it.
    calls = [rpc.transaction_or_timeout(*pair, "NONE") for pair in late]
    answers = fetcher.ledger.send_many(calls, on_error="collect", progress=False) if late else []
    for (pair, value), answer in zip(late.items(), answers, strict=True):
        values[pair] = rpc.known_so_far(value, answer)
    results = {}
    for (tx_hash, sender), answer in values.items():
        value = _check_sender(answer, tx_hash, sender)
        if isinstance(value, LedgerError):
            fetcher.fail(tx_hash, value)
        else:
            results[tx_hash] = value
    return results


def _check_sender(value: Any, tx_hash: str, sender: str) -> Any:
    """Return a result, or the error if another account signed the transaction."""
    # The node only derives the shard from the sender, and ignores it if it tracks that shard.
    transaction = None if isinstance(value, LedgerError) else value.result.transaction
    signer_id = transaction.signer_id if transaction else None
    if signer_id in (None, sender):
        return value
    expected = f"'{signer_id}', which signed transaction {tx_hash}"
    return InvalidRequestError.refuse("sender", sender, expected)


def build_traces(
    ledger: Ledger, answers: Sequence[TransactionResponse], *, blocks: bool, progress: bool = True
) -> list[Trace]:
    """Build the traces of results; with `blocks`, read their blocks and the rules in force."""
    hashes = [answer.result.block_hashes() if blocks else [] for answer in answers]
    unique = list(dict.fromkeys(block_hash for listed in hashes for block_hash in listed))
    headers = _read_headers(ledger, unique, progress=progress)
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


def _read_headers(
    ledger: Ledger, hashes: Sequence[str], *, progress: bool
) -> dict[str, BlockHeader]:
    """Read block headers by their hashes; the first time, also the rules at the first block."""
    rules = _known_rules(ledger)
    first_hash = [] if rules else hashes[:1]
    calls: list[Call[Any]] = [rpc.block(validation.received_hash(h)) for h in hashes]
    calls += [rpc.protocol_config(validation.received_hash(h)) for h in first_hash]
    answers = ledger.send_many(calls, on_error="collect", progress=progress, label="blocks")
    headers: dict[str, BlockHeader] = {}
    for block_hash, answer in zip(hashes, answers, strict=False):
        if isinstance(answer, LedgerError):
            raise answer
        headers[block_hash] = answer.header
    for block_hash, answer in zip(first_hash, answers[len(hashes) :], strict=True):
        _add_rules(rules, headers[block_hash].epoch_id, answer)
    return headers


def _rules_by_epoch(ledger: Ledger, headers: Mapping[str, BlockHeader]) -> dict[str, Rules | None]:
    """Read the rules of each epoch, once per ledger; None if the node does not send them."""
    rules = _known_rules(ledger)
    missing = {
        header.epoch_id: block_hash
        for block_hash, header in headers.items()
        if header.epoch_id not in rules
    }
    calls = [rpc.protocol_config(validation.received_hash(h)) for h in missing.values()]
    answers = ledger.send_many(calls, on_error="collect", progress=False) if calls else []
    for epoch_id, answer in zip(missing, answers, strict=True):
        _add_rules(rules, epoch_id, answer)
    return rules


def _known_rules(ledger: Ledger) -> dict[str, Rules | None]:
    """Return the rules by epoch that this ledger has read so far."""
    rules: dict[str, Rules | None] = ledger.memo("protocol_rules", dict)
    return rules


def _add_rules(rules: dict[str, Rules | None], epoch_id: str, answer: Any) -> None:
    """Add the rules of an epoch; without them, traces state in their notes what is unknown."""
    if isinstance(answer, LedgerError) and answer.retryable:
        return
    try:
        rules[epoch_id] = None if isinstance(answer, LedgerError) else rules_of(answer)
    except DecodeError:
        rules[epoch_id] = None


def _common_rules(rules: Sequence[Rules | None]) -> Rules | None:
    """Return the rules if all blocks share them; None if they changed in between."""
    return rules[0] if rules and len(set(rules)) == 1 else None
