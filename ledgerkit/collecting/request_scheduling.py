"""Subjects that take several requests, one after the other: those of all are under way at once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator
from contextlib import closing
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

from ledgerkit.collecting import account_requests
from ledgerkit.collecting.account_requests import Outcome
from ledgerkit.errors import LedgerError, RateLimitedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ledgerkit.api.calls import Call
    from ledgerkit.client import Ledger
    from ledgerkit.collecting.sources import Subject

# It yields calls, is sent their answers (errors among them), and returns what it found; the
# errors that it raises are its subject's failure.
Inquiry = Generator[list["Call[Any]"], list[Any], Any]
_SIZE = 16  # so few that little is lost when a run is interrupted


def outcomes(
    ledger: Ledger, subjects: Iterable[Subject], inquire: Callable[[Subject], Inquiry]
) -> Iterator[list[Outcome]]:
    """
    Inquire about each subject.

    New inquiries begin only when no request of an earlier one waits, so that there are never
    more of them than requests under way.

    Parameters
    ----------
    ledger
        The ledger.
    subjects
        However many.
    inquire
        Begins the inquiry about one.

    Yields
    ------
    outcomes
        Some, perhaps none, in the order of the subjects.

    Raises
    ------
    RateLimitedError
        If the host's patience stays exhausted.
    """
    desk = _Desk(_Case(subject, inquire(subject)) for subject in subjects)
    while desk.is_busy():
        with closing(ledger.stream(desk.calls(), size=_SIZE)) as batches:
            for values in batches:
                for value in values:
                    desk.take(value)
                yield list(desk.finished())
    yield list(desk.finished())


def answer(ledger: Ledger, subject: Subject, inquiry: Inquiry) -> Any:
    """
    Inquire about one subject.

    Parameters
    ----------
    ledger
        The ledger.
    subject
        The subject.
    inquiry
        The inquiry about it.

    Returns
    -------
    value
        What it found, or the error that it raised.
    """
    found = [one for some in outcomes(ledger, [subject], lambda _: inquiry) for one in some]
    return found[0].value


class _Case:
    """
    One inquiry and what it waits for.

    Parameters
    ----------
    subject
        The subject.
    inquiry
        Not begun yet.
    """

    def __init__(self, subject: Subject, inquiry: Inquiry) -> None:
        self.subject = subject
        self.outcome: Outcome | None = None
        self._inquiry = inquiry
        self._answers: list[Any] | None = None
        self._missing = 0

    def go_on(self) -> list[Call[Any]]:
        """Hand over the answers; gives the calls that come next, none at the end."""
        calls: list[Call[Any]] = []
        while not calls and self.outcome is None:
            try:
                calls = self._inquiry.send(self._answers)  # type: ignore[arg-type]  # None begins it
            except StopIteration as end:
                self.outcome = Outcome(self.subject, end.value)
            except LedgerError as error:
                self.outcome = Outcome(self.subject, error)
            self._answers, self._missing = [None] * len(calls), len(calls)
        return calls

    def answer(self, place: int, value: Any) -> bool:
        """Put an answer in its place; tells whether it was the last."""
        if self._answers is not None:
            self._answers[place] = value
        self._missing -= 1
        return not self._missing


class _Desk:
    """
    Hands out the calls of inquiries, those of the first subject first, and each question once.

    Parameters
    ----------
    cases
        The inquiries, in the order of their subjects.
    """

    def __init__(self, cases: Iterator[_Case]) -> None:
        self._cases = cases
        self._open: deque[_Case] = deque()
        self._ready: list[tuple[int, int, Call[Any]]] = []
        self._asked: deque[Call[Any]] = deque()
        self._waiting: dict[Any, list[tuple[_Case, int]]] = {}
        self._count = count()
        self._limited_since: float | None = None

    def is_busy(self) -> bool:
        """Tell whether there is something to ask, beginning inquiries until there is."""
        while not self._ready and self._begin():
            pass
        return bool(self._ready)

    def calls(self) -> Iterator[Call[Any]]:
        """Give calls until those under way have to be answered first."""
        while self.is_busy():
            call = heappop(self._ready)[2]
            self._asked.append(call)
            yield call

    def _begin(self) -> bool:
        """Begin the next inquiry, if there is one."""
        case = next(self._cases, None)
        if case is None:
            return False
        self._open.append(case)
        self._proceed(case)
        return True

    def _proceed(self, case: _Case) -> None:
        """Take an inquiry a step further; what another one asks just now is not asked again."""
        for place, call in enumerate(case.go_on()):
            waiting = self._waiting.setdefault(call.key, [])
            if not waiting:
                self._queue(case, call)
            waiting.append((case, place))

    def _queue(self, case: _Case, call: Call[Any]) -> None:
        """Let a call wait for its turn."""
        heappush(self._ready, (case.subject.position, next(self._count), call))

    def take(self, value: Any) -> None:
        """Hand an answer to those who wait for it."""
        call = self._asked.popleft()
        if isinstance(value, RateLimitedError):
            self._insist(call, value)
            return
        self._limited_since = None
        for case, place in self._waiting.pop(call.key):
            if case.answer(place, value):
                self._proceed(case)

    def _insist(self, call: Call[Any], error: RateLimitedError) -> None:
        """Ask once more where the host was asked too much: that says nothing about a subject."""
        now = time.monotonic()
        self._limited_since = self._limited_since or now
        if now - self._limited_since >= account_requests.PATIENCE_S:
            raise account_requests.exhausted(error)
        self._queue(self._waiting[call.key][0][0], call)

    def finished(self) -> Iterator[Outcome]:
        """Give what is known, up to the first subject that is still inquired about."""
        while self._open and (outcome := self._open[0].outcome) is not None:
            self._open.popleft()
            yield outcome
