"""Requests of the verbs: one per subject, with failures collected and provenance added."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from ledgerkit import client, user_warnings, validation
from ledgerkit.api import rest
from ledgerkit.errors import DecodeError, LedgerError, cut, did_you_mean
from ledgerkit.frames import build as frame_builder
from ledgerkit.ledger import Ledger, OnError, newest_block_in_errors

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.validation import BlockReference

T = TypeVar("T")
R = TypeVar("R")
Ids = str | Iterable[str]
FrameResult = pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]

_MAX_LOOKED_UP = 20  # accounts without a row; each costs a request
_MAX_NAMED = 3


@dataclass(slots=True)
class Fetcher:
    """The sender of a verb's requests, with its error mode and its failures so far."""

    ledger: Ledger
    on_error: OnError = "raise"
    progress: bool = True
    failures: list[tuple[str, LedgerError]] = field(default_factory=list)
    read_at: dict[str, object] = field(default_factory=dict)  # the block, for `attrs`

    def __post_init__(self) -> None:
        validation.one_of(self.on_error, "on_error", ("raise", "collect"))
        validation.flag(self.progress, "progress")

    def pin(self, at: object) -> BlockReference:
        """Return the hash of the block at which all subjects are read; the frame names it."""
        height, block_hash = self.ledger.pin(at)
        self.read_at = {"block_height": height, "block_hash": block_hash}
        return validation.block_reference(block_hash)

    def fetch(self, calls: Mapping[str, Call[T]], label: str) -> list[tuple[str, T]]:
        """Send the call of each subject; return the subjects that succeeded, with their values."""
        values = self.send(list(calls.values()), label)
        return self.succeeded(calls, values)

    def succeeded(
        self, subjects: Iterable[str], values: Iterable[T | LedgerError]
    ) -> list[tuple[str, T]]:
        """Return the subjects with their values; errors among the values are failures."""
        fetched = []
        for subject, value in zip(subjects, values, strict=True):
            if isinstance(value, LedgerError):
                self.fail(subject, value)
            else:
                fetched.append((subject, value))
        return fetched

    def send(self, calls: Sequence[Call[T]], label: str) -> list[T | LedgerError]:
        return self.ledger.send_many(
            calls, on_error=self.on_error, progress=self.progress, label=label
        )

    def fail(self, subject: str, error: LedgerError) -> None:
        if self.on_error == "raise":
            with newest_block_in_errors(self.ledger):
                raise error
        self.failures.append((subject, error))

    def frame(
        self,
        fetched: Sequence[tuple[str, T]],
        build: Callable[[Sequence[T]], pd.DataFrame],
        label: str,
    ) -> pd.DataFrame:
        """Build the frame of all values; a value that can't be tabulated is a failure."""
        with suppress(DecodeError):
            return build([value for _, value in fetched])

        def check(subject: str, value: T) -> T:
            with request_in_errors(f"{label} of {subject}"):
                build([value])
            return value

        return build([value for _, value in self.convert(fetched, check)])

    def convert(
        self, fetched: Iterable[tuple[str, T]], convert: Callable[[str, T], R]
    ) -> list[tuple[str, R]]:
        """Convert the values of subjects; an error of `convert` is a failure."""
        converted = []
        for subject, value in fetched:
            try:
                converted.append((subject, convert(subject, value)))
            except LedgerError as error:
                self.fail(subject, error)
        return converted

    def warn_of_unknown(self, is_listed: Mapping[str, bool]) -> Collection[str]:
        """
        Warn of accounts without a row that the REST API does not know, and return them.

        A misspelt id looks like an empty account. The first 20 ids without a row are looked up; the
        embedded ledger issues its own warning.
        """
        network = self.ledger.network
        empty_ids = [name for name, listed in is_listed.items() if not listed][:_MAX_LOOKED_UP]
        if self.ledger.is_embedded or network.api_url is None or not empty_ids:
            return ()
        calls = list(map(rest.full, empty_ids))
        responses = self.ledger.send_many(calls, on_error="collect", progress=False)
        unknown: dict[str, str] = {}
        for name, response in zip(empty_ids, responses, strict=True):
            if not isinstance(response, LedgerError) and not response.is_indexed:
                others = [other for other in is_listed if other != name and other not in unknown]
                unknown[name] = network.account_hint(name) or did_you_mean(name, others)
        if unknown:
            names = [f"{name} ({hint})" if hint else name for name, hint in unknown.items()]
            names[_MAX_NAMED:] = [f"{len(names) - _MAX_NAMED} more"] * (len(names) > _MAX_NAMED)
            user_warnings.warn(
                f"the REST API of {cut(self.ledger.display_name)} does not know"
                f" {', '.join(names)}: check the spelling and the network"
            )
        return unknown

    def result(self, frame: pd.DataFrame, source: str, **read_at: object) -> FrameResult:
        """Return the frame with its provenance, and the failures if they are collected."""
        frame.attrs.update(provenance(self.ledger, source, **(self.read_at | read_at)))
        return (frame, errors_frame(self.failures)) if self.on_error == "collect" else frame


def open_fetcher(
    *, on_error: OnError = "raise", progress: bool = True, ledger: Ledger | None = None
) -> Fetcher:
    """Build the fetcher of a verb from its options."""
    return Fetcher(client.current(ledger), on_error, progress)


@contextmanager
def request_in_errors(request: str) -> Iterator[None]:
    """Add the request to a `DecodeError` that names none."""
    try:
        yield
    except DecodeError as error:
        error.request = error.request or request
        raise


def read_frame(
    ledger: Ledger | None, call: Call[T], build: Callable[[T], pd.DataFrame], source: str
) -> pd.DataFrame:
    ledger = client.current(ledger)
    response = ledger.send(call)
    return sourced_frame(ledger, lambda: build(response), source)


def sourced_frame(
    ledger: Ledger, build: Callable[[], pd.DataFrame], source: str, **read_at: object
) -> pd.DataFrame:
    with request_in_errors(source):
        frame = build()
    frame.attrs.update(provenance(ledger, source, **read_at))
    return frame


def provenance(ledger: Ledger, source: str, **read_at: object) -> dict[str, Any]:
    """Return the `attrs` of a frame: network, source, block if any, and time of the request."""
    seconds = ledger.clock.time_ns() // 10**9  # in a replay, the time of the recording
    now = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    block = {name: value for name, value in read_at.items() if value is not None}
    return {"network": ledger.network.name, "source": source, **block, "fetched_at": now}


def errors_frame(failures: Sequence[tuple[str, LedgerError]]) -> pd.DataFrame:
    columns = {
        "subject": [subject for subject, _ in failures],
        "error": [type(error).__name__ for _, error in failures],
        "message": [str(error) for _, error in failures],
        "retryable": [error.retryable for _, error in failures],
    }
    return frame_builder.build_frame("errors", columns)
