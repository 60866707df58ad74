"""What a run would do, told before anything is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ledgerkit.collecting import arrow_tables
from ledgerkit.collecting import manifest as collecting_manifest
from ledgerkit.collecting.part_writer import FAILED
from ledgerkit.collecting.resume import Left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.collecting.manifest import Commit, Manifest
    from ledgerkit.collecting.sources import Source


@dataclass(frozen=True)
class Plan:
    """
    A run that was not begun.

    Parameters
    ----------
    out
        Where it would write.
    network
        Whom it would ask.
    request
        The request that answers one subject.
    requests
        How many would be sent; None where the source can be read only once.
    rate
        Most requests a second; None is no limit.
    stored
        Subjects that are stored already.
    failed
        Of these, those that were asked in vain.
    skipped
        Entries by what is wrong with them: recorded, not asked about.
    schemas
        The columns of each table with their Arrow types.
    """

    out: str
    network: str
    request: str
    requests: int | None
    rate: float | None
    stored: int
    failed: int
    skipped: dict[str, int] = field(default_factory=dict)
    schemas: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """The least time the requests take at the rate; None where there is no telling."""
        if self.requests is None or self.rate is None:
            return None
        return self.requests / self.rate

    def __str__(self) -> str:
        lines = [
            f"would collect from {self.network} to {self.out}",
            f"  requests   {_counted(self.requests)} x {self.request}",
            f"  time       {self._time()}",
            f"  stored     {self.stored:,} already{self._failed()}",
        ]
        lines += [
            f"  {kind:<11}{count:,}: recorded, not asked" for kind, count in self.skipped.items()
        ]
        for table, types in self.schemas.items():
            told = ", ".join(f"{name} {kind}" for name, kind in types.items())
            lines.append(f"  {table + '/part-*.parquet'}\n    {told}")
        return "\n".join(lines)

    def _failed(self) -> str:
        """Say how to ask again."""
        if not self.failed:
            return ""
        return f", {self.failed:,} of them in vain (retry_failed=True asks them again)"

    def _time(self) -> str:
        """Say how long it takes at least."""
        if self.rate is None:
            return "as fast as the host answers: no rate is set"
        begun = f"at most {self.rate:g} requests a second"
        return begun if self.seconds is None else f"{begun}: {_lasting(self.seconds)} or more"


def _counted(number: int | None) -> str:
    """Write a number, or that nobody knows it."""
    return "one for each id, of a source that is read once:" if number is None else f"{number:,}"


def _lasting(seconds: float) -> str:
    """Write a time in the units that a person uses."""
    if seconds < 2 * 60:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h"


def plan(
    manifest: Manifest,
    out: str,
    commits: Sequence[Commit],
    source: Source,
    *,
    request: str,
    rate: float | None,
    retry_failed: bool,
) -> Plan:
    """
    Work out what a run would do.

    Parameters
    ----------
    manifest
        The run.
    out
        Where it would write.
    commits
        What is stored.
    source
        The subjects; one that can be read only once is left alone.
    request
        The request that answers one subject.
    rate
        Most requests a second.
    retry_failed
        Whether those asked in vain would be asked again.

    Returns
    -------
    plan
        Nothing was asked or written.

    Raises
    ------
    InvalidRequestError
        If the source is not the one that is stored in part.
    """
    failed = sum(commit.counts.get(FAILED, 0) for commit in commits)
    requests: int | None = None
    skipped: dict[str, int] = {}
    if source.again:
        requests = failed if retry_failed else 0
        for subject in Left(source, commits):
            if subject.problem is None:
                requests += 1
            else:
                skipped[subject.problem] = skipped.get(subject.problem, 0) + 1
    stored = sum(commit.stop - commit.start for commit in commits)
    types = schemas(manifest)
    return Plan(out, manifest.network, request, requests, rate, stored, failed, skipped, types)


def schemas(manifest: Manifest) -> dict[str, dict[str, str]]:
    """List the columns of each table of a run with their Arrow types."""
    return {
        table: {
            field.name: str(field.type)
            for field in arrow_tables.schema(collecting_manifest.frame_name(table))
        }
        for table in collecting_manifest.tables(manifest)
    }
