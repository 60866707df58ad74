"""Scheduling of subjects that need several requests in a row: many subjects are read at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from contextlib import closing
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

from ledgerkit.collecting import outcomes
from ledgerkit.collecting.outcomes import Outcome
from ledgerkit.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ledgerkit.api.calls import Call
    from ledgerkit.collecting.sources import Subject
    from ledgerkit.ledger import Ledger

# The steps of reading one subject. It yields calls, receives their values (errors included) and
# returns the result. An error that it raises becomes the outcome of its subject.
Steps = Generator[list["Call[Any]"], list[Any], Any]
_SIZE = 16  # small batches, so that an interrupted run loses little


def read_in_steps(
    ledger: Ledger, subjects: Iterable[Subject], steps: Callable[[Subject], Steps]
) -> Iterator[list[Outcome]]:
    """
    Read each subject; yield the outcomes in the order of the subjects.

    A subject is started only when no request of an earlier one is waiting, so there are
    never more started subjects than requests in flight.
    """
    scheduler = _Scheduler(_Reading(subject, steps(subject)) for subject in subjects)
    while scheduler.has_calls():
        wait_s = outcomes.MAX_RATE_LIMITED_S
        stream = ledger.stream(scheduler.calls(), size=_SIZE, rate_limit_wait_s=wait_s)
        with closing(stream) as batches:
            for values in batches:
                for value in values:
                    scheduler.receive(value)
                yield list(scheduler.finished())
    yield list(scheduler.finished())


def read_one(ledger: Ledger, subject: Subject, steps: Steps) -> Any:
    """Read one subject; return its result, or the error that its steps raised."""
    batches = read_in_steps(ledger, [subject], lambda _: steps)
    return next(outcome for batch in list(batches) for outcome in batch).value


class _Reading:
    """The reading of one subject: its steps, and the values that the next step needs."""

    def __init__(self, subject: Subject, steps: Steps) -> None:
        self.subject = subject
        self.outcome: Outcome | None = None
        self._steps = steps
        self._values: list[Any] | None = None
        self._n_missing = 0

    def next_calls(self) -> list[Call[Any]]:
        """Pass the values on and return the next calls; none once the subject is finished."""
        calls: list[Call[Any]] = []
        while not calls and self.outcome is None:
            try:
                calls = self._steps.send(self._values)  # type: ignore[arg-type]  # None starts it
            except StopIteration as end:
                self.outcome = Outcome(self.subject, end.value)
            except LedgerError as error:
                self.outcome = Outcome(self.subject, error)
            self._values, self._n_missing = [None] * len(calls), len(calls)
        return calls

    def receive(self, index: int, value: Any) -> bool:
        """Store the value of a call; return True if it was the last missing one."""
        if self._values is not None:
            self._values[index] = value
        self._n_missing -= 1
        return not self._n_missing


class _Scheduler:
    """
    A queue of calls, those of the first subject first; equal calls are sent once.

    Parameters
    ----------
    readings
        In the order of their subjects.
    """

    def __init__(self, readings: Iterator[_Reading]) -> None:
        self._readings = readings
        self._started: deque[_Reading] = deque()
        self._ready: list[tuple[int, int, Call[Any]]] = []
        self._in_flight: deque[Call[Any]] = deque()
        self._receivers: dict[Any, list[tuple[_Reading, int]]] = {}
        self._numbers = count()  # break ties in the heap: calls cannot be compared

    def has_calls(self) -> bool:
        """Start readings until a call is ready; return False if there is none."""
        while not self._ready and self._start_next():
            pass
        return bool(self._ready)

    def calls(self) -> Iterator[Call[Any]]:
        """Yield calls until the next ones depend on values that are in flight."""
        while self.has_calls():
            call = heappop(self._ready)[2]
            self._in_flight.append(call)
            yield call

    def _start_next(self) -> bool:
        """Start the next reading; return False if there is none."""
        reading = next(self._readings, None)
        if reading is None:
            return False
        self._started.append(reading)
        self._advance(reading)
        return True

    def _advance(self, reading: _Reading) -> None:
        """Queue the next calls of a reading; one that is already queued is not sent again."""
        for index, call in enumerate(reading.next_calls()):
            receivers = self._receivers.setdefault(call.key, [])
            if not receivers:
                entry = (reading.subject.position, next(self._numbers), call)
                heappush(self._ready, entry)
            receivers.append((reading, index))

    def receive(self, value: Any) -> None:
        """Pass the value of the oldest call in flight to the readings that need it."""
        call = self._in_flight.popleft()
        for reading, index in self._receivers.pop(call.key):
            if reading.receive(index, value):
                self._advance(reading)

    def finished(self) -> Iterator[Outcome]:
        """Yield the outcomes up to the first subject that is still being read."""
        while self._started and (outcome := self._started[0].outcome) is not None:
            self._started.popleft()
            yield outcome
