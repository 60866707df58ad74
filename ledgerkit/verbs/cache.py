"""Verbs about what is kept on disk from one session to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import client
from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames import build

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.client import Ledger
    from ledgerkit.transport.disk_cache import Store


def cache_info(ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Tell what a ledger keeps on disk, and how much asking it spared.

    Parameters
    ----------
    ledger
        The ledger; None is the session's default.

    Returns
    -------
    cache
        One row a kind of answer, typed as `schema("cache")`; hits and misses are
        of this ledger. `attrs` holds the folder's `path` and `max_bytes`.

    Raises
    ------
    InvalidRequestError
        If the ledger keeps nothing on disk.

    Notes
    -----
    Source: the folder given to `connect` as ``cache=``; nothing is asked.
    """
    from ledgerkit.transport.disk_cache import KINDS

    store = _store_of(client.current(ledger))
    held = store.held()
    columns = {
        "kind": list(KINDS),
        "entries": [held.get(kind, (0, 0))[0] for kind in KINDS],
        "bytes": [held.get(kind, (0, 0))[1] for kind in KINDS],
        "hits": [store.hits[kind] for kind in KINDS],
        "misses": [store.misses[kind] for kind in KINDS],
    }
    attrs = {"path": str(store.folder), "max_bytes": store.settings.max_bytes}
    return build.build_frame("cache", columns, attrs=attrs)


def clear_cache(ledger: Ledger | None = None) -> None:
    """
    Forget all that a ledger keeps, in memory and on disk.

    Parameters
    ----------
    ledger
        The ledger; None is the session's default.

    Raises
    ------
    InvalidRequestError
        If the ledger keeps nothing on disk, or its folder could not be cleared.

    Notes
    -----
    Source: the folder given to `connect` as ``cache=``. Entries of other networks in it
    go too.
    """
    asked = client.current(ledger)
    store = _store_of(asked)
    asked.forget()
    if any(entries for entries, _ in store.held().values()):
        msg = f"the cache in {store.folder} is in use and was not cleared"
        remedy = "Try again, or remove the folder once nothing uses it."
        raise InvalidRequestError(msg, remedy=remedy, field="cache")


def _store_of(ledger: Ledger) -> Store:
    """Find what a ledger keeps on disk."""
    store = ledger.store
    if store is None:
        msg = f"{ledger.network.name} was connected without a cache"
        raise InvalidRequestError(msg, remedy='Connect with cache="a folder".', field="cache")
    return store
