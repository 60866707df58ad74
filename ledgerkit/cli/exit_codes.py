"""The exit codes of the command line, as `ledgerkit --help` lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ledgerkit import errors

if TYPE_CHECKING:
    import pandas as pd


class ExitCode(NamedTuple):
    """An exit code: its number, its meaning, and the classes of errors that have it."""

    code: int
    meaning: str
    errors: tuple[type[errors.LedgerError], ...] = ()


SUCCESS, FAILED, GAPS, NOT_CHECKED, INTERRUPTED = 0, 1, 6, 7, 130
_REFUSED = (
    *(errors.InvalidTransactionError, errors.ReceiptFailedError, errors.DroppedError),
    *(errors.ContractError, errors.FileError),
)
_NOT_ASKED = (errors.TransportError, errors.RateLimitedError, errors.AuthError)
_NOT_BELIEVED = (errors.DecodeError, errors.ProofError)
EXIT_CODES = (
    ExitCode(SUCCESS, "success; or the reader of the output closed it"),
    ExitCode(
        FAILED,
        "the ledger refused it, a contract failed, or a file could not be written",
        _REFUSED,
    ),
    ExitCode(2, "an argument is not valid", (errors.InvalidRequestError,)),
    ExitCode(
        3,
        "no such account, key, block or transaction, or not on this host",
        (errors.NotFoundError,),
    ),
    ExitCode(4, "the request failed: connection, rate limit or API key", _NOT_ASKED),
    ExitCode(5, "the response was not as documented, or is not proved", _NOT_BELIEVED),
    ExitCode(GAPS, "a statement has gaps: it was printed or written, and does not add up"),
    ExitCode(NOT_CHECKED, "a statement adds up as far as it was checked, but not all of it was"),
    ExitCode(INTERRUPTED, "interrupted by Ctrl-C (serve: 0)"),
)


def exit_code(kind: type[errors.LedgerError]) -> int:
    return next((row.code for row in EXIT_CODES if issubclass(kind, row.errors)), FAILED)


def first_exit_code(failures: pd.DataFrame) -> int:
    """Return the exit code of the first row of a frame of errors; 0 if it has none."""
    if failures.empty:
        return SUCCESS
    return exit_code(getattr(errors, failures["error"].iloc[0], errors.LedgerError))


def help_text() -> str:
    return "\n".join(["exit codes:", *(f"  {row.code:<3}  {row.meaning}" for row in EXIT_CODES)])
