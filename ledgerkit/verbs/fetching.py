"""What verbs share: asking about one subject or many, provenance, failures as rows."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from ledgerkit import validation
from ledgerkit.errors import DecodeError, LedgerError
from ledgerkit.frames import build as frame_builder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ledgerkit.api.calls import Call
    from ledgerkit.client import Ledger, OnError

T = TypeVar("T")
Ids = str | Iterable[str]
Answer = pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]


@dataclass(slots=True)
class Ask:
    """One verb's way of asking: the ledger, what a failure does, and the failures so far."""

    ledger: Ledger
    on_error: OnError = "raise"
    progress: bool = True
    failures: list[tuple[str, LedgerError]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse what would be ignored, before anything is sent."""
        validation.one_of(self.on_error, "on_error", ("raise", "collect"))

    def each(
        self, subjects: Sequence[str], calls: Sequence[Call[T]], label: str
    ) -> list[tuple[str, T]]:
        """Send one call a subject; gives the subjects that answered, with their answers."""
        values = self.send(calls, label)
        kept = []
        for subject, value in zip(subjects, values, strict=True):
            if isinstance(value, LedgerError):
                self.failures.append((subject, value))
            else:
                kept.append((subject, value))
        return kept

    def send(self, calls: Sequence[Call[T]], label: str) -> list[T | LedgerError]:
        """Send calls, one directly and many at once."""
        if len(calls) == 1 and self.on_error == "raise":
            return [self.ledger.send(calls[0])]
        return self.ledger.send_many(
            calls, on_error=self.on_error, progress=self.progress, label=label
        )

    def fails(self, subject: str, error: LedgerError) -> None:
        """Raise a failure, or note it for its subject."""
        if self.on_error == "raise":
            raise error
        self.failures.append((subject, error))

    def frame(
        self,
        views: Sequence[tuple[str, T]],
        build: Callable[[Sequence[T]], pd.DataFrame],
        what: str,
    ) -> pd.DataFrame:
        """Frame all answers; one that fits no column is its own subject's failure."""
        with suppress(DecodeError):
            return build([view for _, view in views])
        kept = []
        for subject, view in views:
            try:
                naming(partial(build, [view]), f"{what} of {subject}")
            except DecodeError as error:
                self.fails(subject, error)
            else:
                kept.append(view)
        return build(kept)

    def answer(self, frame: pd.DataFrame, source: str, **read_at: object) -> Answer:
        """Add where the frame comes from; beside it go the failures, if collected."""
        frame.attrs.update(provenance(self.ledger, source, **read_at))
        return (frame, errors_frame(self.failures)) if self.on_error == "collect" else frame


def naming(build: Callable[[], T], asked: str) -> T:
    """Frame an answer; a value that fits no column is told with what was asked."""
    try:
        return build()
    except DecodeError as error:
        error.asked = error.asked or asked
        raise


def framed(
    ledger: Ledger, build: Callable[[], pd.DataFrame], source: str, **read_at: object
) -> pd.DataFrame:
    """Frame one answer and add where it comes from."""
    frame = naming(build, source)
    frame.attrs.update(provenance(ledger, source, **read_at))
    return frame


def provenance(ledger: Ledger, source: str, **read_at: object) -> dict[str, Any]:
    """Tell where a frame comes from; small, and never needed for correctness."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    told = {name: value for name, value in read_at.items() if value is not None}
    return {"network": ledger.network.name, "source": source, **told, "fetched_at": now}


def errors_frame(failures: Sequence[tuple[str, LedgerError]]) -> pd.DataFrame:
    """Tabulate failures, typed as `schema("errors")`."""
    columns = {
        "subject": [subject for subject, _ in failures],
        "error": [type(error).__name__ for _, error in failures],
        "message": [str(error) for _, error in failures],
        "retryable": [error.retryable for _, error in failures],
    }
    return frame_builder.build_frame("errors", columns)
