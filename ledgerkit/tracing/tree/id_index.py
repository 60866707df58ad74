"""
An index from receipt ids to row numbers.

Most lists of a result name the receipts in the order of the rows, and are compared with them. Of
other lists the ids are looked up by their hashes, all at once, and every match is compared; a dict
takes several times as long. If an id is not found, all are looked up in a dict, which is built at
first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

_MANY = 2_000  # below that a dict is as fast


class IdIndex:
    """
    Ids and their rows, in the order of first mention.

    Parameters
    ----------
    ids
        The first ids; a repeated id has the row of its first mention.
    """

    def __init__(self, ids: Sequence[str] = ()) -> None:
        self.ids: Sequence[str] = ids
        self._row_of: dict[str, int] = {}
        self._rows_of_hashes = _HashTable(_hashes(ids)) if len(ids) >= _MANY else None
        if self._rows_of_hashes is None or self._rows_of_hashes.has_equal:
            self._rows_of_hashes = None
            self._row_of = {id_: row for row, id_ in enumerate(dict.fromkeys(ids))}
            self.ids = list(self._row_of)
        self._first_ids = np.fromiter(self.ids, dtype=object, count=len(self.ids))

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.ids)

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Return the row of each id, adding ids that are new."""
        rows = self._known_rows(ids)
        if rows is None:
            row_of = self._dict()
            listed = [row_of.setdefault(id_, len(row_of)) for id_ in ids]
            self.ids = list(row_of)
            rows = np.array(listed, dtype=np.int64)
        return rows

    def id_array(self) -> np.ndarray:
        """Return the ids by row, as an array of objects."""
        if len(self._first_ids) == len(self.ids):
            return self._first_ids
        return np.fromiter(self.ids, dtype=object, count=len(self.ids))

    def _known_rows(self, ids: Sequence[str]) -> np.ndarray | None:
        """Return the rows of ids; None if some of them have to be looked up in the dict."""
        if not len(ids) or ids == self.ids:
            return np.arange(len(ids))
        if self._rows_of_hashes is None:
            return None
        rows = self._rows_of_hashes.rows(_hashes(ids))
        # Different ids may have equal hashes.
        same: np.ndarray = self._first_ids[rows] == np.fromiter(ids, object, count=len(ids))
        return rows if same.all() else None

    def _dict(self) -> dict[str, int]:
        """Return the dict of all ids, built at first use."""
        if len(self._row_of) < len(self.ids):
            self._row_of = dict(zip(self.ids, range(len(self.ids)), strict=True))
        return self._row_of


class _HashTable:
    """
    The row of each hash, in a table by the last bits of the hash.

    Of rows with the same last bits the table has the last one; the others are sorted by hash.

    Parameters
    ----------
    hashes
        The hash of each row.
    """

    def __init__(self, hashes: np.ndarray) -> None:
        self._hashes = hashes
        rows = np.arange(len(hashes), dtype=np.int32)
        self._last_bits = (1 << (2 * len(hashes)).bit_length()) - 1
        self._table = np.zeros(self._last_bits + 1, dtype=np.int32)
        places = hashes & self._last_bits
        self._table[places] = rows
        last_rows = self._table[places]
        others = np.flatnonzero(last_rows != rows)
        self._others = others[np.argsort(hashes[others])]
        self._other_hashes = hashes[self._others]
        is_equal = hashes[last_rows[self._others]] == self._other_hashes
        is_equal[1:] |= self._other_hashes[1:] == self._other_hashes[:-1]
        self.has_equal = bool(is_equal.any())

    def rows(self, hashes: np.ndarray) -> np.ndarray:
        """Return the row of each hash; any row for one that no row has."""
        rows: np.ndarray = self._table[hashes & self._last_bits].astype(np.int64)
        missing = np.flatnonzero(self._hashes[rows] != hashes)
        if missing.size and self._others.size:
            places = np.searchsorted(self._other_hashes, hashes[missing])
            rows[missing] = self._others[np.minimum(places, len(self._others) - 1)]
        return rows


def _hashes(ids: Sequence[str]) -> np.ndarray:
    """Hash ids."""
    return np.fromiter(map(hash, ids), dtype=np.int64, count=len(ids))
