"""A collection of accounts: which call answers its views, and what tables the answers make."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit.api import rest
from ledgerkit.collecting import account_requests, arrow_tables
from ledgerkit.errors import DecodeError, LedgerError
from ledgerkit.frames import accounts as account_tables
from ledgerkit.frames import tokens as token_tables
from ledgerkit.verbs.tokens import exposure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pandas as pd

    from ledgerkit.api.calls import Call
    from ledgerkit.client import Ledger
    from ledgerkit.collecting.account_requests import Outcome
    from ledgerkit.collecting.sources import Subject

    Framing = Callable[[Sequence[Any]], pd.DataFrame]

VIEWS = ("accounts", "ft", "nft", "staking", "exposure")
# A single view has a smaller answer of its own; all others are parts of the full one.
_NARROW: dict[tuple[str, ...], Callable[[str], Call[Any]]] = {
    ("ft",): rest.ft,
    ("nft",): rest.nft,
    ("staking",): rest.staking,
}
_PATHS = {views: f"GET /v1/account/{{account_id}}/{views[0]}" for views in _NARROW}


def source_of(views: Sequence[str]) -> str:
    """Name the request that answers these views."""
    return _PATHS.get(tuple(views), "GET /v1/account/{account_id}/full")


class Accounts:
    """
    Asks about accounts.

    Parameters
    ----------
    views
        Some of `VIEWS`.
    liquid_tokens
        The liquid staking tokens by which exposure is classed.
    """

    def __init__(self, views: Sequence[str], liquid_tokens: Iterable[str]) -> None:
        self._call = _NARROW.get(tuple(views), rest.full)
        classed = partial(exposure_of, liquid=frozenset(liquid_tokens))
        known: dict[str, Framing] = {**_FRAMES, "exposure": classed}
        self._frames = {view: known[view] for view in views}

    def ask(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Ask about accounts, a batch at a time, in their order; unusable answers are failures."""
        for batch in account_requests.answers(ledger, subjects, self._call):
            yield [outcome._replace(value=_meant(outcome)) for outcome in batch]

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """
        Hold the answers among some outcomes in Arrow tables.

        Parameters
        ----------
        outcomes
            Accounts with what was answered.

        Returns
        -------
        tables
            A `pyarrow.Table` a view.

        Raises
        ------
        DecodeError
            If an answer fits no column.
        """
        views = [v for _, v in outcomes if v is not None and not isinstance(v, LedgerError)]
        return {
            view: arrow_tables.table(view, frame(views)) for view, frame in self._frames.items()
        }

    def key(self, table: str) -> str:  # noqa: ARG002 - the same for all of them
        """Name the column of a table that tells which account a row belongs to."""
        return "account_id"


def _meant(outcome: Outcome) -> Any:
    """Refuse an answer about somebody else."""
    subject, value = outcome
    if value is None or isinstance(value, LedgerError) or value.account_id == subject.text:
        return value
    sentence = f"{subject.text} was asked about, and {value.account_id} was answered"
    return DecodeError(sentence, path="$.account_id", asked=f"the view of {subject.text}")


def _nft(views: Sequence[Any]) -> pd.DataFrame:
    """Tabulate collections, of a full answer or of one about nothing else."""
    listed = [(v.account_id, v.nfts if hasattr(v, "nfts") else v.tokens) for v in views]
    return token_tables.nft(listed)


def _staking(views: Sequence[Any]) -> pd.DataFrame:
    """Tabulate pools."""
    rows = [
        (view.account_id, pool.pool_id, pool.last_update_block_height, "indexed")
        for view in views
        for pool in view.pools or ()
    ]
    return token_tables.staking(rows)


_FRAMES: dict[str, Framing] = {
    "accounts": account_tables.accounts,
    "ft": token_tables.ft,
    "nft": _nft,
    "staking": _staking,
}
