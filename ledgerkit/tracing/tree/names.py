"""
From the ids of receipts to rows, as integers.

A large result is looked up by the hashes of its ids, all at once, and every hit is compared:
a dict of as many texts takes twice as long. Whatever is not found that way is looked up in a
dict, which only then is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence

    Texts = Sequence[str] | np.ndarray

_MANY = 2_000  # below that a dict is as fast


class Names:
    """
    Ids and their rows, in the order of first mention.

    Parameters
    ----------
    ids
        The first ids; of one that comes twice the first counts.
    """

    def __init__(self, ids: Sequence[str] = ()) -> None:
        self.ids: Sequence[str] = ids
        self._rows: dict[str, int] = {}
        self._hashes = pd.Index(_hashes(ids), copy=False) if len(ids) >= _MANY else None
        if self._hashes is None or not self._hashes.is_unique:
            self._hashes = None
            self._rows = {id_: row for row, id_ in enumerate(dict.fromkeys(ids))}
            self.ids = list(self._rows)
        self._first = np.fromiter(self.ids, dtype=object, count=len(self.ids))

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.ids)

    def rows(self, wanted: Texts) -> np.ndarray:
        """
        Give the rows of ids; one not mentioned before gets the next row.

        Parameters
        ----------
        wanted
            The ids; an array of objects saves a copy.

        Returns
        -------
        rows
            One a wanted id.
        """
        found = self._hashed(wanted)
        if found is None:
            known = self._named()
            listed = [known.setdefault(id_, len(known)) for id_ in wanted]
            self.ids = list(known)
            found = np.array(listed, dtype=np.int64)
        return found

    def texts(self) -> np.ndarray:
        """List the ids by row."""
        if len(self._first) == len(self.ids):
            return self._first
        return np.fromiter(self.ids, dtype=object, count=len(self.ids))

    def find(self, id_: str) -> int | None:
        """Give the row of one id, None where there is none."""
        found = self._hashed([id_])
        return self._named().get(id_) if found is None else int(found[0])

    def _hashed(self, wanted: Texts) -> np.ndarray | None:
        """Look ids up by their hashes; None if that does not find all of them."""
        if self._hashes is None or not len(wanted):
            return None
        found: np.ndarray = self._hashes.get_indexer(_hashes(wanted))
        if found.min() < 0 or not self._are(found, wanted):
            return None
        return found.astype(np.int64, copy=False)

    def _are(self, rows: np.ndarray, wanted: Texts) -> bool:
        """Tell whether rows have the ids that were wanted."""
        texts = wanted
        if not isinstance(texts, np.ndarray):
            texts = np.fromiter(wanted, dtype=object, count=len(wanted))
        same: np.ndarray = self._first[rows] == texts
        return bool(same.all())

    def _named(self) -> dict[str, int]:
        """Give the dict of all ids."""
        if len(self._rows) < len(self.ids):
            self._rows = dict(zip(self.ids, range(len(self.ids)), strict=True))
        return self._rows


def _hashes(ids: Texts) -> np.ndarray:
    """Hash ids."""
    return np.fromiter(map(hash, ids), dtype=np.int64, count=len(ids))
