"""The verb `diff`: the changes from one collection to a later one, in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from ledgerkit import validation
from ledgerkit.collecting import storage
from ledgerkit.collecting.collection import Collection
from ledgerkit.collecting.committed_files import CommittedFiles, attach
from ledgerkit.errors import FileError, InvalidRequestError, cut
from ledgerkit.extras import require
from ledgerkit.frames import build
from ledgerkit.frames.collected import ERRORS, SUBJECTS, VIEWS
from ledgerkit.u128 import parquet
from ledgerkit.u128.array import U128Dtype

_SIDES = ("before", "after")
# The columns that identify a row together with account_id; rows of NFT collections lack token_id.
_KEYS = {"ft": ["contract_id"], "nft": ["contract_id", "token_id"], "staking": ["pool_id"]}
_AMOUNTS = ("accounts", "ft")
# Limits of DuckDB, which spills tables larger than memory to a temporary folder.
_LIMITS = {"memory_limit": "500MB", "threads": "4"}
_BALANCE_CHANGES = ("entered", "left", "grew", "shrank", "became_known", "became_unknown")
_CHANGES = {
    "accounts": _BALANCE_CHANGES,
    "ft": _BALANCE_CHANGES,
    "nft": ("entered", "left"),
    "staking": ("entered", "left"),
    "exposure": ("entered", "left", "changed"),
    "contracts": ("entered", "left", "changed"),
}
# The compared columns of views that are not amounts or lists.
_VALUES = {
    "exposure": ["exposure_class", "status"],
    "contracts": ["contract", "code_hash", "code_account_id"],
}
_ENTERED_OR_LEFT = "CASE WHEN a.account_id IS NULL THEN 'left' ELSE 'entered' END AS change"
# The columns of changes in SQL; `b` is the row before, and `a` the row after.
_CHANGE_COLUMNS = {
    "nft": _ENTERED_OR_LEFT,
    "staking": _ENTERED_OR_LEFT,
    "exposure": """
        CASE b.status WHEN 'not_indexed' THEN b.status ELSE b.exposure_class END AS before,
        CASE a.status WHEN 'not_indexed' THEN a.status ELSE a.exposure_class END AS after,
        CASE WHEN 'not_indexed' IN (before, after) THEN 'changed'
            WHEN before = 'no_visible_staking_position' THEN 'entered'
            WHEN after = 'no_visible_staking_position' THEN 'left'
            ELSE 'changed' END AS change""",
    "contracts": """
        b.contract AS before, coalesce(b.code_hash, b.code_account_id) AS code_before,
        a.contract AS after, coalesce(a.code_hash, a.code_account_id) AS code_after,
        CASE WHEN before = 'none' THEN 'entered' WHEN after = 'none' THEN 'left'
            ELSE 'changed' END AS change""",
}


@dataclass(frozen=True, eq=False)
class Diff:
    """
    The changes between two collections.

    Parameters
    ----------
    view
        The compared view.
    n_compared
        Number of accounts that were read in both collections.
    changes
        One row for each change, by account; depending on `view` typed as
        ``schema("diff_accounts")``, ``schema("diff_ft")``, ``schema("diff_nft")``,
        ``schema("diff_staking")``, ``schema("diff_exposure")`` or ``schema("diff_contracts")``.
    not_compared
        Accounts that were not read in one of the collections; typed as
        ``schema("diff_not_compared")``.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> before = lk.collect(["bob.near", "dave.near"], "ft", "monday")
    >>> gift = {"receiver_id": "dave.near", "amount": "1000000"}
    >>> bob = lk.use_signer("bob.near", ledger.world.keys()["bob.near"])
    >>> sent = lk.call("gold.near", "ft_transfer", gift, deposit="1 yocto")
    >>> block = ledger.world.advance(5)  # the indexer is a few blocks behind
    >>> after = lk.collect(["bob.near", "dave.near"], "ft", "tuesday")
    >>> diff = lk.diff(before, after)
    >>> diff
    <Diff of ft: 2 changes of 2 accounts, 0 not compared>
    >>> diff.changes[["account_id", "contract_id", "change", "difference"]]
      account_id contract_id  change  difference
    0   bob.near   gold.near  shrank    -1000000
    1  dave.near   gold.near    grew     1000000
    """

    view: str
    n_compared: int
    changes: pd.DataFrame
    not_compared: pd.DataFrame

    def __repr__(self) -> str:
        changes = f"{len(self.changes):,} changes of {self.n_compared:,} accounts"
        return f"<Diff of {self.view}: {changes}, {len(self.not_compared):,} not compared>"

    def summary(self) -> pd.DataFrame:
        """
        Count the changes by kind.

        Returns
        -------
        summary
            One row for each kind, also those without changes; typed as ``schema("diff_summary")``.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> before = lk.collect(["alice.near", "bob.near"], "ft", "monday")
        >>> block = ledger.world.advance(4)  # the indexer is a few blocks behind
        >>> after = lk.collect(["alice.near", "bob.near"], "ft", "tuesday")
        >>> lk.diff(before, after).summary()
                   change  n_rows  n_accounts
        0         entered       0           0
        1            left       0           0
        2            grew       0           0
        3          shrank       0           0
        4    became_known       1           1
        5  became_unknown       0           0
        """
        kinds = _CHANGES[self.view]
        changed = [self.changes.loc[self.changes["change"] == kind, "account_id"] for kind in kinds]
        columns = {
            "change": kinds,
            "n_rows": [len(accounts) for accounts in changed],
            "n_accounts": [accounts.nunique() for accounts in changed],
        }
        attrs = {
            "network": self.changes.attrs["network"],
            "n_compared": self.n_compared,
            "n_not_compared": len(self.not_compared),
        }
        return build.build_frame("diff_summary", columns, attrs=attrs)


def diff(
    before: Collection | str | PathLike[str],
    after: Collection | str | PathLike[str],
    view: str = "ft",
) -> Diff:
    """
    Compare two collections: which holdings appeared, disappeared or changed, and by how much.

    Accounts that were not read in both are listed and not compared: an account that could
    not be read has not lost anything. A balance that became pending or broken is now unknown.

    Parameters
    ----------
    before
        The earlier collection, or its folder.
    after
        The later collection, or its folder.
    view
        What to compare: balances of ``accounts`` or ``ft``, entries of ``nft`` or
        ``staking``, classes of ``exposure``, or the code of ``contracts``. Code that an account
        published can change without a change of the accounts that use it.

    Returns
    -------
    diff
        The changes, and the accounts that were not compared. Only these are in memory.

    Raises
    ------
    DecodeError
        If a file is missing or damaged.
    InvalidRequestError
        If an argument is not a collection of accounts, lacks the view, or cannot be compared
        with the other collection.
    FileError
        If a file cannot be read, or there is no disk space for temporary files.

    Notes
    -----
    Source: the files of the two folders; no request is sent.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> before = lk.collect(["alice.near", "bob.near"], "accounts", "monday")
    >>> sent = lk.transfer("bob.near", "2 NEAR", signer_id="alice.near")
    >>> block = ledger.world.advance(5)  # the indexer is a few blocks behind
    >>> after = lk.collect(["alice.near", "bob.near"], "accounts", "tuesday")
    >>> diff = lk.diff(before, after, view="accounts")
    >>> diff.changes[["account_id", "change", "difference"]]
       account_id  change                  difference
    0  alice.near  shrank  -2000044636512500000000000
    1    bob.near    grew   2000000000000000000000000
    """
    validation.one_of(view, "view", VIEWS["accounts"])
    sources = [
        side if isinstance(side, Collection) else storage.folder(side, field)
        for field, side in (("before", before), ("after", after))
    ]
    collections = [side if isinstance(side, Collection) else Collection(side) for side in sources]
    sides = [collection.files for collection in collections]
    _check_comparable(view, *sides)
    duckdb, tables = require("duckdb", "bulk", "Comparing collections"), (view, SUBJECTS, ERRORS)
    with tempfile.TemporaryDirectory() as spill_folder:
        config = {**_LIMITS, "temp_directory": spill_folder}
        try:
            with duckdb.connect(config=config) as connection:
                for side, files in zip(_SIDES, sides, strict=True):
                    attach(connection, files, tables, f"{side}_")
                names = set(sides[0].schema(view).names) & set(sides[1].schema(view).names)
                comparison = _compare(connection, view, names)
        except duckdb.Error as error:
            for files in sides:
                files.check_again(tables)
            raise FileError(operation="compare the collections", reason=cut(error)) from error
    for frame in (comparison.changes, comparison.not_compared):
        frame.attrs["network"] = sides[0].manifest.network  # both sides have the same network
    return comparison


def _check_comparable(view: str, before: CommittedFiles, after: CommittedFiles) -> None:
    for side, files in zip(_SIDES, (before, after), strict=True):
        if view not in files.manifest.views:
            expected = f"a view of {side}, which has {', '.join(files.manifest.views)}"
            raise InvalidRequestError.refuse("view", view, expected, choices=files.manifest.views)
    same = ["kind", "network", "liquid_tokens"] if view == "exposure" else ["kind", "network"]
    for field in same:
        old, new = getattr(before.manifest, field), getattr(after.manifest, field)
        if old != new:
            msg = f"before and after cannot be compared: {field} is {old} before and {new} after"
            raise InvalidRequestError(msg, field="after", value=new)


def _compare(connection: Any, view: str, names: AbstractSet[str]) -> Diff:
    """Compare two collections whose tables are views of a connection, with some columns."""
    keys = ["account_id", *_KEYS.get(view, [])]
    values = [name for name in ("balance", "balance_text", "status") if name in names]
    values = _VALUES.get(view, values)
    for side in _SIDES:
        connection.execute(_status_query(side, view, keys))
    connection.execute(_PAIRED)
    [(count,)] = connection.sql("SELECT count(*) FROM paired WHERE compared").fetchall()
    others = connection.sql(_NOT_COMPARED).to_arrow_table()
    changed = connection.sql(_changes_query(view, keys, values)).to_arrow_table()
    unread = {name: others[name].to_pylist() for name in others.column_names}
    not_compared = build.build_frame("diff_not_compared", unread)
    columns = {name: changed[name].to_numpy() for name in changed.column_names}
    if view in _AMOUNTS:
        columns = {key: columns[key] for key in keys} | _balance_changes(changed)
        is_change = columns["change"] != ""
        columns = {name: values[is_change] for name, values in columns.items()}
    changes = build.build_frame(f"diff_{view}", columns)
    return Diff(view, count, changes, not_compared)


# Queries ----------------------------------------------------------------------------------


def _status_query(side: str, view: str, keys: Sequence[str]) -> str:
    """Return the query that creates the table of account statuses of a collection."""
    return f"""
        CREATE TEMP TABLE {side}_status AS
        SELECT subject AS account_id, CASE WHEN subject IN (
            SELECT account_id FROM {side}_.{view} GROUP BY {", ".join(keys)} HAVING count(*) > 1
        ) THEN 'unclear' ELSE 'answered' END AS status
        FROM {side}_.subjects
        UNION ALL SELECT subject, 'failed' FROM {side}_.errors WHERE kind = 'failed'
    """  # noqa: S608 - only names of this module and the schemas


_PAIRED = """
    CREATE TEMP TABLE paired AS
    SELECT account_id, coalesce(b.status, 'absent') AS before,
        coalesce(a.status, 'absent') AS after,
        before = 'answered' AND after = 'answered' AS compared
    FROM before_status AS b FULL JOIN after_status AS a USING (account_id)
"""
_NOT_COMPARED = (
    "SELECT account_id, before, after FROM paired WHERE NOT compared ORDER BY account_id"
)


def _changes_query(view: str, keys: Sequence[str], values: Sequence[str]) -> str:
    """Return the query for the rows that differ, with the values of both sides."""
    columns = [f"coalesce(b.{key}, a.{key}) AS {key}" for key in keys]
    if view in _AMOUNTS:
        columns += [f"{side[0]}.{value} AS {side}_{value}" for side in _SIDES for value in values]
        columns += [f"{side[0]}.account_id IS NOT NULL AS {side}_listed" for side in _SIDES]
    else:
        columns.append(_CHANGE_COLUMNS[view])
    same = " AND ".join(f"b.{key} IS NOT DISTINCT FROM a.{key}" for key in keys)
    differs = [f"b.{value} IS DISTINCT FROM a.{value}" for value in values]
    where = " OR ".join(["b.account_id IS NULL", "a.account_id IS NULL", *differs])
    rows = "SELECT v.* FROM {}_.{} AS v SEMI JOIN compared ON v.account_id = compared.account_id"
    return f"""
        WITH compared AS (SELECT account_id FROM paired WHERE compared)
        SELECT {", ".join(columns)}
        FROM ({rows.format("before", view)}) AS b
        FULL JOIN ({rows.format("after", view)}) AS a ON {same}
        WHERE {where}
        ORDER BY {", ".join(keys)}
    """  # noqa: S608 - only names of this module and the schemas


# Balances ---------------------------------------------------------------------------------


def _balance_changes(changed: Any) -> dict[str, Any]:
    """Return the columns of changed balances; a token that is not listed has balance 0."""
    old, new = (_balances(changed, side) for side in _SIDES)
    old_unknown, new_unknown = old.isna().to_numpy(), new.isna().to_numpy()
    both_known = ~(old_unknown | new_unknown)
    comparisons = ((old == 0) & (new > 0), (old > 0) & (new == 0), old < new, old > new)
    conditions = [c.to_numpy(dtype=bool, na_value=False) & both_known for c in comparisons]
    conditions += [old_unknown & ~new_unknown, new_unknown & ~old_unknown]
    columns = {
        "change": np.select(conditions, list(map(np.array, _BALANCE_CHANGES)), "").astype(object),
        "before": old.array,
        "after": new.array,
        "difference": (new - old).array,
    }
    for side in _SIDES:
        listed, status = (changed[f"{side}_{name}"].to_numpy() for name in ("listed", "status"))
        columns[f"{side}_status"] = np.where(listed, status.astype(object), "not_listed")
    return columns


def _balances(changed: Any, side: str) -> pd.Series[Any]:
    """Return the balances of one side; the largest are restored from their text column."""
    name = f"{side}_balance"
    columns = changed.select([c for c in changed.column_names if c.startswith(name)])
    if f"{name}_text" in columns.column_names:
        index = columns.column_names.index(f"{name}_text")
        text_field = columns.field(index).with_metadata({parquet.MARK: name.encode()})
        columns = parquet.restore_large(columns.set_column(index, text_field, columns[index]))
    balances = pd.Series(U128Dtype().__from_arrow__(columns[name]))
    return balances.mask(~changed[f"{side}_listed"].to_numpy(), 0)
