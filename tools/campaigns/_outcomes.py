"""The outcome of a case: a value that can be displayed, an error of ledgerkit, or a violation."""

from __future__ import annotations

import pickle
import resource
import signal
import threading
import time
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

import pandas as pd

import ledgerkit as lk
from ledgerkit.errors import LedgerError
from ledgerkit.frames.schemas import TRACE_FRAMES
from ledgerkit.user_warnings import collect_warnings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CPU_S = 5.0  # at most for one case
HANG_S = 60.0  # of a case that waits instead
PAGES = Path("/proc/self/statm")  # its first number is the address space in pages

# Showing what was read -------------------------------------------------------------------


def show(value: Any, *, closely: bool) -> None:
    """Build everything that a user can display of a value."""
    if isinstance(value, lk.Trace):
        show_trace(value, closely=closely)
    elif isinstance(value, lk.types.Submission):
        _ = value.stage, value.value, value.logs, value.stages, value.to_frame()
        if value.trace is not None:
            show(value.trace, closely=closely)
        value.raise_for_status()
    elif isinstance(value, tuple | list):
        for member in value[:3]:
            show(member, closely=closely)
    if closely:
        repr(value)
        if hasattr(value, "_repr_html_") and not isinstance(value, pd.DataFrame):
            value._repr_html_()


def show_trace(trace: lk.Trace, *, closely: bool) -> None:
    for name in TRACE_FRAMES:
        getattr(trace, name)
    _ = trace.verdict, trace.notes, trace.sender_id, trace.block_hashes
    trace.explain()
    if closely:
        trace.to_networkx()


def show_error(error: LedgerError, *, closely: bool) -> None:
    str(error)
    repr(error)
    if closely:
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled in the same line
        if str(copy) != str(error):
            raise AssertionError("a pickled error has another text")


# Reading ---------------------------------------------------------------------------------


class HangError(BaseException):
    """A case did not end."""


def _hang(*_: object) -> Never:
    raise HangError


@contextmanager
def time_limit() -> Iterator[None]:
    """Interrupt a case that does not end, where the system can; raise if it took too long."""
    can_interrupt = threading.current_thread() is threading.main_thread()
    if can_interrupt:
        signal.setitimer(signal.ITIMER_REAL, HANG_S)
    start = time.process_time()
    try:
        yield
        if time.process_time() - start > CPU_S:
            raise HangError
    finally:
        if can_interrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)


def outcome(read: Callable[[], Any], *, closely: bool) -> str:
    """Read and display; return "value", "error", or what is wrong."""
    try:
        with time_limit(), collect_warnings():
            try:
                show(read(), closely=closely)
            except LedgerError as error:
                show_error(error, closely=closely)
                return "error"
    except HangError:
        return f"takes more than {CPU_S:g} s"
    except Exception as error:  # noqa: BLE001 - any other error is what this script looks for
        return f"raises {type(error).__name__}: {str(error)[:200]} {place(error)}"
    return "value"


def place(error: BaseException) -> str:
    """Return the innermost line of the package that an error passed."""
    line, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "/ledgerkit/" in name:
            line = f"at {name.rpartition('/ledgerkit/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return line


@contextmanager
def limited_memory(more: int) -> Iterator[None]:
    """Limit the growth of the address space, so that allocating what a length claims fails."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(PAGES.read_text().split()[0]) * resource.getpagesize() if PAGES.exists() else 0
    with suppress(ValueError, OSError):  # not every system can
        resource.setrlimit(resource.RLIMIT_AS, (used + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def hostile_conditions(memory: int) -> Iterator[None]:
    """Make warnings errors, limit the memory, and prepare the interruption of hanging cases."""
    previous = None
    if threading.current_thread() is threading.main_thread():
        previous = signal.signal(signal.SIGALRM, _hang)
    try:
        with warnings.catch_warnings(), limited_memory(memory):
            warnings.simplefilter("error")
            yield
    finally:
        lk.disconnect()
        if previous is not None:
            signal.signal(signal.SIGALRM, previous)
