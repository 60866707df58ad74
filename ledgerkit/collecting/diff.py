"""The verb `diff`: what changed from one collection to a later one, in bounded memory."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit import validation
from ledgerkit.collecting.accounts import VIEWS
from ledgerkit.collecting.collection import Collection, open_collection
from ledgerkit.collecting.committed_files import attach
from ledgerkit.collecting.manifest import ERRORS, SUBJECTS
from ledgerkit.errors import FileError, InvalidRequestError, cut
from ledgerkit.extras import require
from ledgerkit.frames import build
from ledgerkit.u128 import parquet
from ledgerkit.u128.array import U128Dtype

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from ledgerkit.collecting.committed_files import Stored

_SIDES = ("before", "after")
_KEYS = {"ft": "contract_id", "nft": "contract_id", "staking": "pool_id"}  # beside the account
_AMOUNTS = ("accounts", "ft")
_NOTHING = "no_visible_staking_position"
# DuckDB's bounds: each thread holds some of its memory, and what does not fit goes to a folder.
_BOUNDS = {"memory_limit": "500MB", "threads": "4"}
_GAINS = ("entered", "left", "grew", "shrank", "became_known", "became_unknown")
_CHANGES = {
    "accounts": _GAINS,
    "ft": _GAINS,
    "nft": ("entered", "left"),
    "staking": ("entered", "left"),
    "exposure": ("entered", "left", "changed"),
}


@dataclass(frozen=True, eq=False)
class Diff:
    """
    What changed between two collections.

    Parameters
    ----------
    view
        What was compared.
    n_compared
        How many accounts were answered in both.
    changes
        A row a change, by account; typed, as `view` says, as ``schema("diff_accounts")``,
        ``schema("diff_ft")``, ``schema("diff_nft")``, ``schema("diff_staking")`` or
        ``schema("diff_exposure")``.
    not_compared
        Accounts without an answer in one of the two, of which nothing is said; typed as
        ``schema("diff_not_compared")``.
    """

    view: str
    n_compared: int
    changes: pd.DataFrame
    not_compared: pd.DataFrame

    def __repr__(self) -> str:
        told = f"{len(self.changes):,} changes of {self.n_compared:,} accounts"
        return f"<Diff of {self.view}: {told}, {len(self.not_compared):,} not compared>"

    def summary(self) -> pd.DataFrame:
        """
        Count the changes by kind.

        Returns
        -------
        summary
            A row a kind, also where there is none; typed as ``schema("diff_summary")``.
        """
        kinds = _CHANGES[self.view]
        found = [self.changes.loc[self.changes["change"] == kind, "account_id"] for kind in kinds]
        listed = {
            "change": kinds,
            "n_rows": [len(accounts) for accounts in found],
            "n_accounts": [accounts.nunique() for accounts in found],
        }
        attrs = {"n_compared": self.n_compared, "n_not_compared": len(self.not_compared)}
        return build.build_frame("diff_summary", listed, attrs=attrs)


def diff(
    before: Collection | str | PathLike[str],
    after: Collection | str | PathLike[str],
    view: str = "ft",
) -> Diff:
    """
    Compare two collections: who gained, who left, and by how much exactly.

    Accounts that were not answered in both are listed, not compared: that nobody could be
    asked is no loss. Nor is a balance that is pending or broken; it became unknown.

    Parameters
    ----------
    before
        The earlier collection, opened, or its folder.
    after
        The later one.
    view
        What to compare: balances of ``accounts`` or ``ft``, what is listed of ``nft`` and
        ``staking``, or the class of ``exposure``.

    Returns
    -------
    diff
        The changes, and who was not compared. Only these came to memory.

    Raises
    ------
    DecodeError
        If a file is missing or torn.
    InvalidRequestError
        If one is no collection of accounts, lacks the view, or cannot be compared with the
        other.
    FileError
        If a file cannot be read, or there is no room for what memory does not hold.

    Notes
    -----
    Source: the files of the two folders; nothing is asked.
    """
    validation.one_of(view, "view", VIEWS)
    sides = [_opened(one).stored for one in (before, after)]
    _check(view, *sides)
    duckdb = require("duckdb", "bulk", "Comparing runs")
    with tempfile.TemporaryDirectory() as spilled:
        bounds = {**_BOUNDS, "temp_directory": spilled}
        try:
            with duckdb.connect(config=bounds) as connection:
                for side, stored in zip(_SIDES, sides, strict=True):
                    attach(connection, stored, f"{side}_")
                return _compared(connection, view, [field.name for field in sides[0].schema(view)])
        except duckdb.Error as error:
            for stored in sides:
                for table in (view, SUBJECTS, ERRORS):
                    stored.verify(table)
            raise FileError(operation="compare the two", reason=cut(error)) from error


def _opened(one: object) -> Collection:
    """Open a collection, unless it is open."""
    return one if isinstance(one, Collection) else open_collection(one)  # type: ignore[arg-type]  # checked there


def _check(view: str, before: Stored, after: Stored) -> None:
    """Refuse what is not to be compared."""
    for side, stored in zip(_SIDES, (before, after), strict=True):
        if view not in stored.manifest.views:
            rule = f"of {side}, which has {', '.join(stored.manifest.views)}"
            raise InvalidRequestError.refuse("view", view, rule)
    was, now = before.manifest, after.manifest
    alike = ["kind", "network", "liquid_tokens"] if view == "exposure" else ["kind", "network"]
    for field in alike:
        if getattr(was, field) != getattr(now, field):
            rule = f"of the same {field} as before: {getattr(was, field)}"
            raise InvalidRequestError.refuse("after", getattr(now, field), rule)


def _compared(connection: Any, view: str, names: Sequence[str]) -> Diff:
    """Compare two collections that a connection has."""
    keys = ["account_id", _KEYS[view]] if view in _KEYS else ["account_id"]
    values = [name for name in ("balance", "balance_text", "status") if name in names]
    values = ["exposure_class"] if view == "exposure" else values
    for side in _SIDES:
        connection.execute(_asked(side, view, keys))
    connection.execute(_PAIRED)
    [(count,)] = connection.sql("SELECT count(*) FROM paired WHERE compared").fetchall()
    left_out = connection.sql(_LEFT_OUT).to_arrow_table()
    changed = connection.sql(_joined(view, keys, values)).to_arrow_table()
    columns = {name: left_out[name].to_pylist() for name in left_out.column_names}
    not_compared = build.build_frame("diff_not_compared", columns)
    return Diff(view, count, _changes(view, changed, keys), not_compared)


# What DuckDB is asked ---------------------------------------------------------------------


def _asked(side: str, view: str, keys: Sequence[str]) -> str:
    """Write the query that tells how it went with each account of one collection."""
    return f"""
        CREATE TEMP TABLE {side}_asked AS
        SELECT subject AS account_id, CASE WHEN subject IN (
            SELECT account_id FROM {side}_.{view} GROUP BY {", ".join(keys)} HAVING count(*) > 1
        ) THEN 'unclear' ELSE 'answered' END AS told
        FROM {side}_.subjects
        UNION ALL SELECT subject, 'failed' FROM {side}_.errors WHERE kind = 'failed'
    """  # noqa: S608 - all of them names of this module's and the schemas'


_PAIRED = """
    CREATE TEMP TABLE paired AS
    SELECT account_id, coalesce(b.told, 'absent') AS before, coalesce(a.told, 'absent') AS after,
        before = 'answered' AND after = 'answered' AS compared
    FROM before_asked AS b FULL JOIN after_asked AS a USING (account_id)
"""
_LEFT_OUT = "SELECT account_id, before, after FROM paired WHERE NOT compared ORDER BY account_id"


def _joined(view: str, keys: Sequence[str], values: Sequence[str]) -> str:
    """Write the query that gives each row of which anything differs, with both sides of it."""
    told = [f"coalesce(b.{key}, a.{key}) AS {key}" for key in keys]
    told += [f"{side[0]}.{value} AS {side}_{value}" for side in _SIDES for value in values]
    told += [f"{side[0]}.account_id IS NOT NULL AS {side}_listed" for side in _SIDES]
    same = " AND ".join(f"b.{key} = a.{key}" for key in keys)
    differs = [f"b.{value} IS DISTINCT FROM a.{value}" for value in values]
    where = " OR ".join(["b.account_id IS NULL", "a.account_id IS NULL", *differs])
    rows = "SELECT v.* FROM {}_.{} AS v SEMI JOIN those ON v.account_id = those.account_id"
    return f"""
        WITH those AS (SELECT account_id FROM paired WHERE compared)
        SELECT {", ".join(told)}
        FROM ({rows.format("before", view)}) AS b
        FULL JOIN ({rows.format("after", view)}) AS a ON {same}
        WHERE {where}
        ORDER BY {", ".join(keys)}
    """  # noqa: S608 - all of them names of this module's and the schemas'


# What is made of it -----------------------------------------------------------------------


def _changes(view: str, changed: Any, keys: Sequence[str]) -> pd.DataFrame:
    """Say of each row that differs what it means."""
    columns = {key: changed[key].to_numpy() for key in keys}
    if view in _AMOUNTS:
        told = dict(_gains(changed))
    elif view == "exposure":
        told = _classes(changed)
    else:
        listed = changed["after_listed"].to_numpy()
        told = {"change": np.where(listed, "entered", "left").astype(object)}
    columns |= told
    kept = columns["change"] != ""
    name = f"diff_{view}"
    return build.build_frame(name, {column: values[kept] for column, values in columns.items()})


def _classes(changed: Any) -> dict[str, Any]:
    """Say how classes changed."""
    was, now = (changed[f"{side}_exposure_class"].to_numpy() for side in _SIDES)
    change = _chosen([was == _NOTHING, now == _NOTHING], ("entered", "left"), "changed")
    return {"change": change, "before": was, "after": now}


def _chosen(conditions: Sequence[np.ndarray], words: Sequence[str], other: str) -> np.ndarray:
    """Choose for each row the word of the first condition that it meets."""
    return np.select(conditions, [np.array(word) for word in words], other).astype(object)


def _gains(changed: Any) -> Iterator[tuple[str, Any]]:
    """Say how balances changed; a token that is not listed was never held, which is 0."""
    was, now = (_balances(changed, side) for side in _SIDES)
    open_before, open_after = was.isna().to_numpy(), now.isna().to_numpy()
    known = ~(open_before | open_after)
    conditions = ((was == 0) & (now > 0), (was > 0) & (now == 0), was < now, was > now)
    held = [condition.to_numpy(dtype=bool, na_value=False) & known for condition in conditions]
    told = [open_before & ~open_after, open_after & ~open_before]
    yield "change", _chosen([*held, *told], _GAINS, "")
    yield "before", was.array
    yield "after", now.array
    yield "difference", (now - was).astype(object).where(known, None).to_numpy(dtype=object)
    for side in _SIDES:
        listed, status = (changed[f"{side}_{name}"].to_numpy() for name in ("listed", "status"))
        yield f"{side}_status", np.where(listed, status.astype(object), "not_listed")


def _balances(changed: Any, side: str) -> pd.Series[Any]:
    """Restore the balances of one side, the largest ones from their digits."""
    name = f"{side}_balance"
    found = changed.select([one for one in changed.column_names if one.startswith(name)])
    if f"{name}_text" in found.column_names:
        place = found.column_names.index(f"{name}_text")
        marked = found.field(place).with_metadata({parquet.MARK: name.encode()})
        found = parquet.restore_large(found.set_column(place, marked, found[place]))
    balances = pd.Series(U128Dtype().__from_arrow__(found[name]))
    return balances.mask(~changed[f"{side}_listed"].to_numpy(), 0)
