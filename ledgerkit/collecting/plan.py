"""The plan of a run: what it would request and write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ledgerkit.collecting import manifests
from ledgerkit.frames import arrow_tables
from ledgerkit.units import duration_text
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    from ledgerkit.collecting.manifests import Manifest
    from ledgerkit.transport.rate_limit import Limit


@dataclass(frozen=True)
class Plan:
    """
    The plan of a run.

    Parameters
    ----------
    out
        The folder that the run would write to.
    network
        The network that the run would read from.
    request
        The request for one subject.
    requests
        Number of requests; None if the source can be read only once.
    limit
        The rate limit: `rate` requests a second, and `per_minute` in any minute.
    stored
        Number of subjects that are stored already.
    failed
        Number of stored subjects that could not be read.
    skipped
        Numbers of malformed and of repeated entries, which are recorded without a request.
    schemas
        The columns of each table with their Arrow types.

    Examples
    --------
    >>> from contextlib import redirect_stdout
    >>> ledger = lk.connect("local")
    >>> ids = ["alice.near", "bob.near"]
    >>> with redirect_stdout(None):  # a dry run prints its plan
    ...     plan = lk.collect(ids, "ft", "monday", rate=20, dry_run=True)
    >>> plan.requests, plan.seconds
    (2, 0.1)
    """

    out: str
    network: str
    request: str
    requests: int | None
    limit: Limit
    stored: int
    failed: int
    skipped: dict[str, int] = field(default_factory=dict)
    schemas: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """The minimum time of the requests in seconds; None if it is unknown."""
        return None if self.requests is None else self.limit.seconds(self.requests)

    def __str__(self) -> str:
        requests = f"{self.request} for each id; the ids can be read only once"
        if self.requests is not None:
            requests = f"{self.requests:,} x {self.request}"
        time = str(self.limit)
        if self.seconds is not None:
            time += f": {duration_text(self.seconds)} or more"
        stored = f"{self.stored:,} already"
        if self.failed:
            stored += f", {self.failed:,} of them failed (retry_failed=True requests them again)"
        lines = [
            f"would collect from {self.network} to {self.out}",
            f"  requests   {requests}",
            f"  time       {time}",
            f"  stored     {stored}",
        ]
        lines += [
            f"  {kind:<11}{count:,}: recorded, not requested"
            for kind, count in self.skipped.items()
        ]
        for table, types in self.schemas.items():
            columns = ", ".join(f"{name} {arrow_type}" for name, arrow_type in types.items())
            lines.append(f"  {table + '/part-*.parquet'}\n    {columns}")
        return escape_invisible("\n".join(lines), keep="\n")


def arrow_types(manifest: Manifest) -> dict[str, dict[str, str]]:
    """Return the columns of each table of a run with their Arrow types."""
    return {
        table: {field.name: str(field.type) for field in arrow_tables.schema(table)}
        for table in manifests.table_names(manifest)
    }
