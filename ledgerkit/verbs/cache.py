"""Verbs about the disk cache of a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import client
from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames import build

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.ledger import Ledger
    from ledgerkit.transport.disk_cache import DiskCache


def cache_info(ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Return the size, hits and misses of a ledger's disk cache.

    Parameters
    ----------
    ledger
        The ledger; None is the session's default.

    Returns
    -------
    cache
        One row per kind of response, typed as `schema("cache")`; hits and misses count this
        ledger's requests. `attrs` has the folder's `path` and `max_bytes`.

    Raises
    ------
    InvalidRequestError
        If the ledger has no disk cache.

    Notes
    -----
    Source: the folder passed to `connect` as ``cache=``. Nothing is sent.

    Examples
    --------
    >>> ledger = lk.connect("mainnet", cache="responses")
    >>> lk.cache_info()
              kind  entries  bytes  hits  misses
    0        block        0      0     0       0
    1        chunk        0      0     0       0
    2  transaction        0      0     0       0
    3         read        0      0     0       0
    4     metadata        0      0     0       0
    """
    from ledgerkit.transport.disk_cache import KINDS

    cache = _require_cache(client.current(ledger))
    sizes = cache.sizes()
    columns = {
        "kind": list(KINDS),
        "entries": [sizes.get(kind, (0, 0))[0] for kind in KINDS],
        "bytes": [sizes.get(kind, (0, 0))[1] for kind in KINDS],
        "hits": [cache.hits[kind] for kind in KINDS],
        "misses": [cache.misses[kind] for kind in KINDS],
    }
    attrs = {"path": str(cache.folder), "max_bytes": cache.settings.max_bytes}
    return build.build_frame("cache", columns, attrs=attrs)


def clear_cache(ledger: Ledger | None = None) -> None:
    """
    Clear a ledger's caches, in memory and on disk.

    Parameters
    ----------
    ledger
        The ledger; None is the session's default.

    Raises
    ------
    InvalidRequestError
        If the ledger has no disk cache, or its folder could not be cleared.

    Notes
    -----
    Source: the folder passed to `connect` as ``cache=``. Entries of other networks are removed
    as well.

    Examples
    --------
    >>> ledger = lk.connect("mainnet", cache="responses")
    >>> lk.clear_cache()
    >>> lk.cache_info()["entries"].tolist()
    [0, 0, 0, 0, 0]
    """
    ledger = client.current(ledger)
    cache = _require_cache(ledger)
    ledger.forget()
    if any(entries for entries, _ in cache.sizes().values()):
        msg = f"the cache in {cache.folder} is in use and was not cleared"
        remedy = "Try again, or remove the folder when no process uses it."
        raise InvalidRequestError(msg, remedy=remedy, field="cache")


def _require_cache(ledger: Ledger) -> DiskCache:
    cache = ledger.disk_cache
    if cache is None:
        msg = f"{ledger.network.name} was connected without a cache"
        remedy = 'Connect with cache= and a folder, such as cache="ledgerkit-cache".'
        raise InvalidRequestError(msg, remedy=remedy, field="cache")
    return cache
