"""Subjects and the responses to them, in order; and when a run must stop requesting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ledgerkit.errors import (
    RUN_AGAIN,
    AuthError,
    LedgerError,
    RateLimitedError,
    TransactionTimeoutError,
    TransportError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ledgerkit.api.calls import Call, Surface
    from ledgerkit.collecting.sources import Subject
    from ledgerkit.ledger import Ledger

BATCH = 256
MAX_RATE_LIMITED_S = 600.0
_MAX_UNANSWERED = 64  # so many subjects in a row without a response: the service is down


class Outcome(NamedTuple):
    """A subject with its response or error; None if it was not requested."""

    subject: Subject
    value: Any


class SubjectReader(Protocol):
    """The requests for one kind of subject, and the tables made of the responses."""

    noun: str  # the plural noun for the subjects, such as "accounts"
    surfaces: tuple[Surface, ...]  # those that are sent requests

    def read(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Request subjects; yield their outcomes in order, a batch at a time; see `read_held`."""
        ...

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """Return a `pyarrow.Table` of the responses for each view."""
        ...


def read_each(
    ledger: Ledger, subjects: Iterable[Subject], call: Callable[[str], Call[Any]]
) -> Iterator[list[Outcome]]:
    """
    Read each subject with one call; yield batches in the order of the subjects.

    Subjects with a problem are passed on without a request.
    """
    requests = ((each, call(each.text) if each.problem is None else None) for each in subjects)
    wait_s = MAX_RATE_LIMITED_S
    for pairs in ledger.session.stream_pairs(requests, size=BATCH, rate_limit_wait_s=wait_s):
        yield [Outcome(*pair) for pair in pairs]


def read_held(
    reader: SubjectReader, ledger: Ledger, subjects: Iterable[Subject]
) -> Iterator[list[Outcome]]:
    """
    Read subjects; outcomes without a response wait until a later subject has one.

    If the service is down they are not stored as failed. A request that was not sent, because
    the host is down, ends the run like many subjects in a row without a response.

    Raises `AuthError` if the host refuses the API key, `RateLimitedError` if every request is
    rate limited for ten minutes, and `TransportError` if the service is down.
    """
    unanswered: list[Outcome] = []
    n_unanswered = 0
    for batch in reader.read(ledger, subjects):
        ready: list[Outcome] = []
        for outcome in batch:
            value = outcome.value
            if isinstance(value, AuthError | RateLimitedError):
                yield ready + unanswered
                raise _final(value)
            if _is_unanswered(value):
                unanswered.append(outcome)
                n_unanswered += 1
                if n_unanswered >= _MAX_UNANSWERED or value.not_sent:
                    yield ready
                    raise _no_response(n_unanswered, reader.noun, value)
            elif value is None and 0 < len(unanswered) < BATCH:  # it was not requested
                unanswered.append(outcome)
            else:
                ready += [*unanswered, outcome]
                unanswered.clear()
                n_unanswered = 0
        yield ready
    yield unanswered


def _is_unanswered(value: object) -> bool:
    return isinstance(value, TransportError) and not isinstance(value, TransactionTimeoutError)


def _final(error: AuthError | RateLimitedError) -> LedgerError:
    """Return the error that ends a run; after many attempts it says that the run continues."""
    if isinstance(error, AuthError):
        return error
    return RateLimitedError(error.sentence, remedy=f"{error.remedy} Then {RUN_AGAIN}")


def _no_response(count: int, noun: str, last: TransportError) -> TransportError:
    sentence = f"{count} {noun} in a row had no response; the last: {last.sentence}"
    return TransportError(sentence, remedy=f"Wait a while and {RUN_AGAIN}", request=last.request)
