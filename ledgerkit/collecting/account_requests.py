"""Subjects in, outcomes out, in order: what a run asks, and when it had better stop asking."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ledgerkit.errors import (
    AuthError,
    LedgerError,
    RateLimitedError,
    TransactionTimeoutError,
    TransportError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ledgerkit.api.calls import Call
    from ledgerkit.client import Ledger
    from ledgerkit.collecting.sources import Subject

BATCH = 256
PATIENCE_S = 600.0  # with a host that says it is asked too much
_SILENCE = 64  # so many subjects in a row without any answer are the service's matter


class Outcome(NamedTuple):
    """A subject and its answer: None if it was not asked about."""

    subject: Subject
    value: Any


class Asker(Protocol):
    """What one kind of collection asks and makes of the answers."""

    def ask(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Ask about subjects, a batch at a time, in their order."""
        ...

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """Hold the answers among some outcomes in Arrow tables, by the name of the table."""
        ...

    def key(self, table: str) -> str:
        """Name the column of a table that tells which subject a row belongs to."""
        ...


def answers(
    ledger: Ledger, subjects: Iterable[Subject], call: Callable[[str], Call[Any]]
) -> Iterator[list[Outcome]]:
    """
    Ask about each subject with one call.

    Parameters
    ----------
    ledger
        The ledger.
    subjects
        However many; those with a problem are passed through.
    call
        Describes the call of a subject's text.

    Yields
    ------
    outcomes
        A batch, in the order of the subjects.

    Raises
    ------
    AuthError
        If the host refuses the key: nobody would be answered.
    RateLimitedError
        If the host's patience stays exhausted.
    TransportError
        If the service answers nobody any more.
    """
    waiting: deque[Subject] = deque()

    def calls() -> Iterator[Call[Any]]:
        for subject in subjects:
            waiting.append(subject)
            if subject.problem is None:
                yield call(subject.text)

    silent = 0
    for values in ledger.stream(calls(), size=BATCH):
        batch = _insisted(ledger, _joined(waiting, iter(values), len(values)), call)
        silent, kept, error = silence(batch, silent, "accounts")
        yield batch[:kept]
        if error is not None:
            raise error
    while waiting:
        yield [Outcome(waiting.popleft(), None) for _ in range(min(BATCH, len(waiting)))]


def _joined(waiting: deque[Subject], values: Iterator[Any], count: int) -> list[Outcome]:
    """Put answers beside their subjects, and those not asked about between them."""
    batch = []
    while count:
        subject = waiting.popleft()
        asked = subject.problem is None
        batch.append(Outcome(subject, next(values) if asked else None))
        count -= asked
    return batch


def _insisted(
    ledger: Ledger, batch: list[Outcome], call: Callable[[str], Call[Any]]
) -> list[Outcome]:
    """Ask once more where the host was asked too much: that says nothing about an account."""
    deadline = time.monotonic() + PATIENCE_S
    while limited := [n for n, (_, v) in enumerate(batch) if isinstance(v, RateLimitedError)]:
        if time.monotonic() >= deadline:
            error = batch[limited[0]].value
            raise exhausted(error)
        again = [call(batch[n].subject.text) for n in limited]
        values = ledger.send_many(again, on_error="collect", progress=False)
        for n, value in zip(limited, values, strict=True):
            batch[n] = batch[n]._replace(value=value)
    return batch


def exhausted(error: RateLimitedError) -> RateLimitedError:
    """Say that a host has borne nothing for too long."""
    return RateLimitedError(error.sentence, remedy=_LATER)


def silence(
    batch: Sequence[Outcome], silent: int, what: str
) -> tuple[int, int, LedgerError | None]:
    """
    Count how many in a row went without an answer.

    Parameters
    ----------
    batch
        Subjects with their answers.
    silent
        How many before them had none.
    what
        What subjects are called.

    Returns
    -------
    silent, kept, error
        How many have none at the end; how many of the batch to keep; what to raise then.
    """
    for place, (_, value) in enumerate(batch):
        if isinstance(value, AuthError):
            return 0, place, value
        if not isinstance(value, TransportError) or isinstance(value, TransactionTimeoutError):
            silent = 0 if value is not None else silent
            continue
        silent += 1
        if silent >= _SILENCE:
            sentence = f"{silent} {what} in a row were not answered; the last: {value.sentence}"
            error = TransportError(sentence, remedy=_LATER, asked=value.asked)
            return silent, max(0, place + 1 - silent), error
    return silent, len(batch), None


_LATER = "Run the same command again later: what is stored is kept, and not asked again."
