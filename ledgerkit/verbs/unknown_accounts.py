"""Accounts that the REST API does not know: a misspelt id looks like one that holds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import user_warnings
from ledgerkit.api import rest
from ledgerkit.errors import cut, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledgerkit.ledger import Ledger

_MAX_CHECKED = 20  # accounts with nothing listed, each of which costs a request
_MAX_NAMED = 3


def warn_of_unknown_accounts(ledger: Ledger, is_listed: Mapping[str, bool]) -> set[str]:
    """
    Return the accounts that the REST API does not know, with a warning that names them.

    `is_listed` is False for accounts of which nothing is listed; the first 20 of them are looked
    up. One that cannot be looked up is not returned. The embedded ledger warns by itself.
    """
    empty_ids = [account_id for account_id, listed in is_listed.items() if not listed]
    if ledger.is_embedded or ledger.network.api_url is None or not empty_ids:
        return set()
    calls = list(map(rest.full, empty_ids[:_MAX_CHECKED]))
    responses = ledger.send_many(calls, on_error="collect", progress=False)
    pairs = list(zip(empty_ids, responses, strict=False))
    unknown = [i for i, response in pairs if getattr(response, "is_indexed", None) is False]
    if unknown:
        known = [account_id for account_id in is_listed if account_id not in unknown]
        names = ", ".join(_with_hint(ledger, i, known) for i in unknown[:_MAX_NAMED])
        more = f" and {len(unknown) - _MAX_NAMED} more" if len(unknown) > _MAX_NAMED else ""
        user_warnings.warn(
            f"the REST API of {cut(ledger.display_name)} does not know {names}{more}: check the "
            "spelling and the network"
        )
    return set(unknown)


def _with_hint(ledger: Ledger, account_id: str, known: list[str]) -> str:
    hint = ledger.network.account_hint(account_id) or did_you_mean(account_id, known)
    return f"{account_id} ({hint})" if hint else account_id
