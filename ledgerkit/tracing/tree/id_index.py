"""
An index from receipt ids to row numbers.

The ids of a large result are looked up by their hashes, all at once, and every match is
compared; a dict takes twice as long. If an id is not found, all are looked up in a dict, which
is built at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence

    Ids = Sequence[str] | np.ndarray

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
        self._hashes = pd.Index(_hashes(ids), copy=False) if len(ids) >= _MANY else None
        if self._hashes is None or not self._hashes.is_unique:
            self._hashes = None
            self._row_of = {id_: row for row, id_ in enumerate(dict.fromkeys(ids))}
            self.ids = list(self._row_of)
        self._first_ids = np.fromiter(self.ids, dtype=object, count=len(self.ids))

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.ids)

    def rows(self, ids: Ids) -> np.ndarray:
        """Return the row of each id, adding ids that are new; an array of objects saves a copy."""
        rows = self._rows_by_hash(ids)
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

    def find_row(self, id_: str) -> int | None:
        """Return the row of one id; None if it has none."""
        rows = self._rows_by_hash([id_])
        return self._dict().get(id_) if rows is None else int(rows[0])

    def _rows_by_hash(self, ids: Ids) -> np.ndarray | None:
        """Look ids up by their hashes; None if not all of them are found."""
        if self._hashes is None or not len(ids):
            return None
        rows: np.ndarray = self._hashes.get_indexer(_hashes(ids))
        if rows.min() < 0 or not self._match(rows, ids):
            return None
        return rows.astype(np.int64, copy=False)

    def _match(self, rows: np.ndarray, ids: Ids) -> bool:
        """Return True if the rows have exactly these ids: different ids may have equal hashes."""
        texts = ids if isinstance(ids, np.ndarray) else np.fromiter(ids, object, count=len(ids))
        same: np.ndarray = self._first_ids[rows] == texts
        return bool(same.all())

    def _dict(self) -> dict[str, int]:
        """Return the dict of all ids, built at first use."""
        if len(self._row_of) < len(self.ids):
            self._row_of = dict(zip(self.ids, range(len(self.ids)), strict=True))
        return self._row_of


def _hashes(ids: Ids) -> np.ndarray:
    """Hash ids."""
    return np.fromiter(map(hash, ids), dtype=np.int64, count=len(ids))
