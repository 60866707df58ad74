"""Subjects with their responses, in order, and the errors that end a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
    from ledgerkit.api.calls import Call, Surface
    from ledgerkit.collecting.account_sources import Subject
    from ledgerkit.ledger import Ledger

BATCH = 256
MAX_RATE_LIMITED_S = 600.0
_MAX_UNANSWERED = 64  # subjects in a row without a response, after which the service is down


class Outcome(NamedTuple):
    """A subject with its response or error; None if it was not requested."""

    subject: Subject
    value: Any


class SubjectReader(Protocol):
    """The requests for one kind of subject, and the tables made of the responses."""

    noun: str  # the plural noun for the subjects, such as "accounts"
    surfaces: tuple[Surface, ...]  # the surfaces that are sent requests

    def read(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Request subjects; yield their outcomes in order, in batches; see `read_outcomes`."""
        ...

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """Return a `pyarrow.Table` for each view; raise `DecodeError` if a value fits no column."""
        ...


def read_each(
    ledger: Ledger, subjects: Iterable[Subject], call: Callable[[str], Call[Any]]
) -> Iterator[list[Outcome]]:
    """
    Read each subject with one call; yield batches in the order of the subjects.

    Subjects with a problem are passed on without a request.
    """
    requests = ((s, call(s.text) if s.problem is None else None) for s in subjects)
    wait_s = MAX_RATE_LIMITED_S
    for pairs in ledger.session.stream_pairs(requests, size=BATCH, rate_limit_wait_s=wait_s):
        yield [Outcome(*pair) for pair in pairs]


def read_outcomes(
    reader: SubjectReader, ledger: Ledger, subjects: Iterable[Subject]
) -> Iterator[list[Outcome]]:
    """
    Read subjects; outcomes without a response wait until a later subject has one.

    If the service is down they are not stored as failed. A request that was not sent, because
    the host is down, ends the run, as do many subjects in a row without a response.

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
                raise _ending_error(value)
            is_timeout = isinstance(value, TransactionTimeoutError)
            if isinstance(value, TransportError) and not is_timeout:
                unanswered.append(outcome)
                n_unanswered += 1
                if n_unanswered >= _MAX_UNANSWERED or value.not_sent:
                    yield ready
                    raise _no_response_error(n_unanswered, reader.noun, value)
            elif value is None and 0 < len(unanswered) < BATCH:  # it was not requested
                unanswered.append(outcome)
            else:
                ready += [*unanswered, outcome]
                unanswered.clear()
                n_unanswered = 0
        yield ready
    yield unanswered


def _ending_error(error: AuthError | RateLimitedError) -> LedgerError:
    """Return the error that ends a run; a rate limit error advises to continue the run."""
    if isinstance(error, AuthError):
        return error
    return RateLimitedError(error.sentence, remedy=f"{error.remedy} Then {RUN_AGAIN}")


def _no_response_error(count: int, noun: str, last: TransportError) -> TransportError:
    sentence = f"{count} {noun} in a row had no response; the last: {last.sentence}"
    return TransportError(sentence, remedy=f"Wait a while and {RUN_AGAIN}", request=last.request)
