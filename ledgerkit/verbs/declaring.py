"""Options that the verbs share, and their descriptions in docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Required, TypedDict, TypeVar, cast

from ledgerkit.docstrings import F, share
from ledgerkit.verbs.fetching import open_fetcher

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger

P = ParamSpec("P")
T = TypeVar("T")

_NONE_SENTENCE = re.compile(r"\s+None is [^.]*\.$")
_PARAMETERS = {
    "account_ids": "One account id or several; duplicates are dropped.",
    "contract_ids": "One contract id or several; duplicates are dropped.",
    "account_id": "The account.",
    "contract_id": "The contract's account.",
    "at": (
        'A height, block hash, finality name or time. A date, or a month such as ``"2026-07"``,\n'
        "    is its first moment in UTC. None is ``final``."
    ),
    "start": (
        "The first block: a height, block hash, finality name or time; a time is the first block\n"
        '    at or after it. A period in UTC, ``"2026-07"``, ``"last month"``, ``"this month"``,\n'
        '    ``"last year"`` or ``"this year"``, is both ends without a `stop`, and with a `stop`\n'
        "    its first moment. None is the first block that a service lists."
    ),
    "stop": (
        "The block after the last one, as in `range`, in the same forms as `start`. None reads up\n"
        "    to the newest final block, and includes it."
    ),
    "tx_hash": "The transaction's hash.",
    "signer_id": (
        "The account that signed it. With it the transaction is read from a node, which has a new\n"
        "    one some seconds earlier. None reads it from the Transactions API."
    ),
    "wait_until": (
        "The level to wait for: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,\n"
        "    EXECUTED or FINAL. A transaction that does not reach it in time is returned as far\n"
        "    as it is known."
    ),
    "blocks": (
        "Read the protocol configuration in force, for shards and contract rewards, and the "
        "blocks\n"
        "    in which the receipts ran, for heights and times: a node does not send these with a\n"
        "    transaction. Each is read once and cached."
    ),
    "engine": (
        '``"local"``, or a `dask.distributed.Client`, whose workers then send the requests and\n'
        "    write the files; they share the rate."
    ),
    "in_flight": "Maximum number of concurrent requests; None is the ledger's limit.",
    "rate": (
        "Maximum number of requests a second, up to the ledger's limit; None is the ledger's\n"
        "    limit. It is lowered automatically while the host rate limits requests."
    ),
    "on_error": (
        "``raise`` raises the first failure; ``collect`` returns a second frame of all\n"
        "    failures."
    ),
    "progress": "Show a progress bar.",
    "ledger": "The ledger to read from; None is the session's default.",
}


class Options(TypedDict, total=False):
    """The options of a verb that reads many subjects, for its overloads."""

    progress: bool
    ledger: Ledger | None


class Raising(Options, total=False):
    """The options with which a verb raises the first failure."""

    on_error: Literal["raise"]


class Collecting(Options, total=False):
    """The options with which a verb returns the failures too."""

    on_error: Required[Literal["collect"]]


def verb(function: F) -> F:
    """Add the shared parameters and errors to the docstring of a verb."""
    names = inspect.signature(function).parameters
    subject = "an account" if "account_ids" in names else "the response"
    errors = {"LedgerError": f"If {subject} could not be read."}
    if names.keys() - {"progress", "ledger"}:
        malformed = "If an argument is malformed. Nothing is sent."
        errors = {"InvalidRequestError": malformed} | errors
    return share(function, _parameters(function), errors)


def verb_of_many(function: F) -> F:
    """Declare a verb that reads many subjects, with the options of `open_fetcher`."""
    return verb(cast("F", with_options(open_fetcher)(function)))


def shared_parameters(function: F) -> F:
    return share(function, _parameters(function), {})


def _parameters(function: Callable[..., Any]) -> dict[str, str]:
    names = inspect.signature(function).parameters
    texts = dict(_PARAMETERS)
    for name in names.keys() & {"at", "start"}:
        if names[name].default is not None:
            texts[name] = _NONE_SENTENCE.sub("", texts[name])
    return texts


def with_options(options: Callable[..., object]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Build a decorator that declares the parameters of a function as the options of a verb."""
    shared = inspect.signature(options).parameters.values()

    def declare(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        signature = signature.replace(parameters=[*parameters, *shared])

        @wraps(function)
        def verb(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:  # such as a misspelt option
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(*args, **kwargs)

        verb.__signature__ = signature  # type: ignore[attr-defined]  # as PEP 362 defines it
        return verb

    return declare
