"""The frame of the staking exposure of accounts, from the pools and tokens listed for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.frames import amounts, build

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from ledgerkit.api.models import rest

    # The pools, or the liquid staking tokens, of each account, with their amounts if known.
    Entries = list[list[tuple[str, int | None]]]

CLASSES = {  # by whether there are pools, and liquid staking tokens
    (True, True): "mixed",
    (True, False): "direct_only",
    (False, True): "liquid_only",
    (False, False): "no_visible_staking_position",
}


def exposure(
    responses: Sequence[rest.Full],
    *,
    liquid: frozenset[str],
    stakes: Mapping[tuple[str | None, str], int | None] | None = None,
) -> pd.DataFrame:
    """Build the exposure frame; with `stakes`, pools and tokens of zero are ignored."""
    return build.build_frame("exposure", exposure_columns(responses, liquid, stakes))


def exposure_columns(
    responses: Sequence[rest.Full],
    liquid: frozenset[str],
    stakes: Mapping[tuple[str | None, str], int | None] | None = None,
) -> dict[str, Any]:
    """Return the columns of the exposure frame; `stakes` as in `exposure`."""
    known = stakes or {}
    pools = [
        [(p.pool_id, known.get((response.account_id, p.pool_id))) for p in response.pools or ()]
        for response in responses
    ]
    tokens = _liquid_tokens(responses, liquid)
    if stakes is not None:
        pools, tokens = _nonzero(pools), _nonzero(tokens)
    indexed = [response.is_indexed for response in responses]
    rows = list(zip(pools, tokens, indexed, strict=True))
    return {
        "account_id": [response.account_id for response in responses],
        "exposure_class": [CLASSES[bool(direct), bool(listed)] for direct, listed, _ in rows],
        "status": ["ok" if known else "not_indexed" for known in indexed],
        "n_direct": [len(direct) if known else None for direct, _, known in rows],
        "n_liquid": [len(listed) if known else None for _, listed, known in rows],
        "n_unknown": [
            [amount for _, amount in direct + listed].count(None) if known else None
            for direct, listed, known in rows
        ],
        "direct_pools": [[pool_id for pool_id, _ in direct] for direct in pools],
        "liquid_tokens": [[contract_id for contract_id, _ in listed] for listed in tokens],
    }


def _liquid_tokens(responses: Sequence[rest.Full], liquid: frozenset[str]) -> Entries:
    """List the liquid staking tokens of each account, with their balances if known."""
    tokens = [[t for t in r.tokens or () if t.contract_id in liquid] for r in responses]
    # All balances are parsed at once: one call per account would be slow.
    texts = [token.balance or None for listed in tokens for token in listed]
    parsed = amounts.parse(texts).tolist()
    balances = iter([b if isinstance(b, int) else None for b in parsed])
    return [[(token.contract_id, next(balances)) for token in listed] for listed in tokens]


def _nonzero(entries: Entries) -> Entries:
    return [[entry for entry in account if entry[1] != 0] for account in entries]
