"""Collecting accounts: the call for a set of views, and the tables of the responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.api import rest, rpc
from ledgerkit.collecting.outcomes import read_each
from ledgerkit.errors import LedgerError
from ledgerkit.frames import accounts as account_frames
from ledgerkit.frames import arrow_tables, collected
from ledgerkit.frames import tokens as token_frames

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call, Surface
    from ledgerkit.collecting.account_sources import Subject
    from ledgerkit.collecting.outcomes import Outcome
    from ledgerkit.ledger import Ledger

    BuildColumns = Callable[[Sequence[Any]], dict[str, Any]]

VIEWS = collected.VIEWS["accounts"]


def _view_account(account_id: str) -> Call[Any]:
    return rpc.view_account(account_id, validation.block_reference(None))


# Single views have smaller responses; all other sets of views need the full response.
_SINGLE_VIEW: dict[tuple[str, ...], Callable[[str], Call[Any]]] = {
    ("ft",): rest.ft,
    ("nft",): rest.nft,
    ("staking",): rest.staking,
    ("contracts",): _view_account,
}


def call_of(views: Sequence[str]) -> Callable[[str], Call[Any]]:
    return _SINGLE_VIEW.get(tuple(views), rest.full)


class AccountReader:
    """A reader of views of accounts; the exposure counts the liquid tokens."""

    noun = "accounts"

    def __init__(self, views: Sequence[str], liquid_tokens: Iterable[str]) -> None:
        self.surfaces: tuple[Surface, ...] = ("rpc",) if "contracts" in views else ("api",)
        self._call = call_of(views)
        exposure = partial(token_frames.exposure_columns, liquid=frozenset(liquid_tokens))
        builders: dict[str, BuildColumns] = {**_COLUMNS, "exposure": exposure}
        self._columns = {view: builders[view] for view in views}

    def read(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Request accounts; yield their outcomes in order, a batch at a time."""
        return read_each(ledger, subjects, self._call)

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        pairs = [
            (subject.text, value)
            for subject, value in outcomes
            if value is not None and not isinstance(value, LedgerError)
        ]
        # The state of an account on the chain does not repeat the account's id.
        values = pairs if "contracts" in self._columns else [value for _, value in pairs]
        return {
            view: arrow_tables.of_columns(view, columns(values))
            for view, columns in self._columns.items()
        }


def _nft_columns(views: Sequence[Any]) -> dict[str, Any]:
    rows = [(v.account_id, v.nfts if hasattr(v, "nfts") else v.tokens) for v in views]
    return token_frames.nft_columns(rows)


_COLUMNS: dict[str, BuildColumns] = {
    "accounts": account_frames.account_columns,
    "ft": token_frames.ft_columns,
    "nft": _nft_columns,
    "staking": lambda views: token_frames.pool_columns(token_frames.pool_rows(views)),
    "contracts": account_frames.contract_columns,
}
