"""Subjects and the responses to them, in order; and when a run must stop requesting."""

from __future__ import annotations

from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ledgerkit.errors import (
    AuthError,
    LedgerError,
    RateLimitedError,
    TransactionTimeoutError,
    TransportError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence

    from ledgerkit.api.calls import Call, Surface
    from ledgerkit.collecting.sources import Subject
    from ledgerkit.ledger import Ledger
    from ledgerkit.transport.session import Reader

S = TypeVar("S")

BATCH = 256
_CALLS = 4  # of one block are sent together, about
MAX_RATE_LIMITED_S = 600.0
_MAX_UNANSWERED = 64  # so many subjects in a row without a response: the service is down
_RUN_AGAIN = "Run the same command again later: stored data is kept and not requested again."


class Outcome(NamedTuple):
    """A subject with its response or error; None if it was not requested."""

    subject: Subject
    value: Any


class SubjectReader(Protocol):
    """The requests for one kind of subject, and the tables made of the responses."""

    surfaces: tuple[Surface, ...]  # those that are sent requests

    def read(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Request subjects; yield their outcomes in order, a batch at a time."""
        ...

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """Return a `pyarrow.Table` of the responses for each view."""
        ...

    def key_column(self, table: str) -> str:
        """Return the column that holds the subject of a row."""
        ...


def read_subjects(
    ledger: Ledger,
    subjects: Iterable[S],
    read: Callable[[Reader, S], Coroutine[Any, Any, Outcome]],
) -> Iterator[list[Outcome]]:
    """Read subjects that need several requests each; yield their outcomes in order."""
    with closing(
        ledger.session.read_each(
            subjects, read, n_calls=_CALLS, rate_limit_wait_s=MAX_RATE_LIMITED_S
        )
    ) as outcomes:
        for outcome in outcomes:
            yield [outcome]


def read_each(
    ledger: Ledger, subjects: Iterable[Subject], call: Callable[[str], Call[Any]]
) -> Iterator[list[Outcome]]:
    """
    Read each subject with one call; yield batches in the order of the subjects.

    Subjects with a problem are passed on without a request. Raises `AuthError` if the host
    refuses the API key, `RateLimitedError` if every request is rate limited for ten minutes,
    and `TransportError` if many subjects in a row have no response.
    """
    pending: deque[Subject] = deque()

    def calls() -> Iterator[Call[Any]]:
        for subject in subjects:
            pending.append(subject)
            if subject.problem is None:
                yield call(subject.text)

    unanswered = 0
    for values in ledger.stream(calls(), size=BATCH, rate_limit_wait_s=MAX_RATE_LIMITED_S):
        batch = _pair(pending, iter(values), len(values))
        unanswered, n_usable, error = count_unanswered(batch, unanswered, "accounts")
        yield batch[:n_usable]
        if error is not None:
            raise error
    while pending:
        yield [Outcome(pending.popleft(), None) for _ in range(min(BATCH, len(pending)))]


def _pair(pending: deque[Subject], values: Iterator[Any], n_values: int) -> list[Outcome]:
    """Pair responses with their subjects; subjects with a problem are in between."""
    batch = []
    while n_values:
        subject = pending.popleft()
        is_requested = subject.problem is None
        batch.append(Outcome(subject, next(values) if is_requested else None))
        n_values -= is_requested
    return batch


def hold_unanswered(batches: Iterable[list[Outcome]], noun: str) -> Iterator[list[Outcome]]:
    """
    Pass outcomes on; the last ones wait while they have no response.

    If the service is down, they are not stored as failed. Raises the errors of
    `count_unanswered`.
    """
    pending: list[Outcome] = []
    for batch in batches:
        pending += batch
        unanswered, n_usable, error = count_unanswered(pending, 0, noun)
        if error is not None:
            yield pending[:n_usable]
            raise error
        n_answered = len(pending) - unanswered
        yield pending[:n_answered]
        pending = pending[n_answered:]
    yield pending


def count_unanswered(
    batch: Sequence[Outcome], unanswered: int, noun: str
) -> tuple[int, int, LedgerError | None]:
    """
    Count how many subjects in a row have no response.

    A request that was not sent, because the host is down, ends the run like many such subjects.

    Parameters
    ----------
    batch
        Subjects with their responses.
    unanswered
        The count before this batch.
    noun
        The plural noun for the subjects, such as "accounts".

    Returns
    -------
    unanswered, n_usable, error
        The count after this batch; the number of outcomes to store; the error to raise after
        storing them, if any.
    """
    for n, (_, value) in enumerate(batch):
        if isinstance(value, AuthError):
            return 0, n, value
        if isinstance(value, RateLimitedError):  # after MAX_RATE_LIMITED_S of attempts
            remedy = f"{value.remedy} {_RUN_AGAIN}"
            return 0, n, RateLimitedError(value.sentence, remedy=remedy)
        if not isinstance(value, TransportError) or isinstance(value, TransactionTimeoutError):
            unanswered = 0 if value is not None else unanswered
            continue
        unanswered += 1
        if unanswered >= _MAX_UNANSWERED or value.not_sent:
            sentence = f"{unanswered} {noun} in a row had no response; the last: {value.sentence}"
            error = TransportError(sentence, remedy=_RUN_AGAIN, request=value.request)
            return unanswered, max(0, n + 1 - unanswered), error
    return unanswered, len(batch), None
