"""The metadata of tokens: what frames and texts say about the tokens that they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ledgerkit import validation
from ledgerkit.frames import tokens as frames
from ledgerkit.verbs import readings
from ledgerkit.verbs.fetching import Fetcher

if TYPE_CHECKING:
    from ledgerkit.frames.tokens import Metadata, TokenFacts
    from ledgerkit.ledger import Ledger
    from ledgerkit.validation import BlockReference


def read_token_facts(ledger: Ledger, contract_ids: Sequence[str]) -> dict[str, TokenFacts]:
    """Read the metadata of tokens; if that fails, the status of the token is ``unread``."""
    return fetch_token_facts(Fetcher(ledger, "collect", progress=False), contract_ids)


def fetch_token_facts(fetcher: Fetcher, contract_ids: Sequence[str]) -> dict[str, TokenFacts]:
    metadata = fetch_metadata(fetcher, contract_ids, validation.block_reference("final"))
    facts = {c: frames.token_facts(value) for c, value in metadata.items()}
    known_tokens(fetcher.ledger).update({c: fact for c, fact in facts.items() if fact.symbol})
    return facts


def fetch_metadata(
    fetcher: Fetcher, contract_ids: Sequence[str], at: BlockReference
) -> dict[str, Metadata]:
    """Read the metadata of tokens, or the reason that there is none; add failures."""
    calls = {contract_id: readings.metadata_call(contract_id, at) for contract_id in contract_ids}
    unread: dict[str, Metadata] = dict.fromkeys(contract_ids, "unread")
    return unread | dict(fetcher.fetch(calls, "metadata"))


def known_tokens(ledger: Ledger) -> dict[str, TokenFacts]:
    """Return the tokens whose symbols this ledger has read, by contract."""
    return ledger.memo("tokens", dict)
