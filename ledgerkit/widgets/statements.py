"""A panel with the statement of an account: whether it adds up, its entries, gaps and rewards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.plots.svg import LIGHT, svg_text
from ledgerkit.reconciling import verbs
from ledgerkit.units import count_text
from ledgerkit.widgets._blocks import Content, Page
from ledgerkit.widgets._fields import Field
from ledgerkit.widgets._panel import Panel
from ledgerkit.widgets._table import Table

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger
    from ledgerkit.reconciling.statement import Statement

_BLOCK = "a height or an ISO time"


class StatementExplorer(Panel):
    """
    The statement of an account: balances, entries, gaps and rewards.

    Parameters
    ----------
    account_id, start, stop
        The initial values of the fields; the period is as in `ledgerkit.statement`.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Statement"
    action = "Reconcile"
    tooltip = "List everything that changed the balances of this account"
    waiting = "Reading transactions and balances…"

    def __init__(
        self,
        account_id: str = "",
        start: str = "",
        stop: str = "",
        *,
        ledger: Ledger | None = None,
    ) -> None:
        fields = {
            "account_id": Field("Account", account_id, "alice.near"),
            "start": Field("After block", start, f"{_BLOCK}; empty: the first change"),
            "stop": Field("Up to block", stop, f"{_BLOCK}; empty: the final one"),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        texts = (values["start"], values["stop"])
        ends = [int(end) if end.isdecimal() else end or None for end in texts]
        statement = verbs.statement(values["account_id"], *ends, progress=False, ledger=ledger)
        entries, gaps, rewards = statement.entries, statement.gaps, statement.rewards
        blocks = [statement._repr_html_()]
        if len(entries):
            blocks.append(_picture(statement))
        pages = [
            Page("Statement", *blocks),
            Page("Entries", Table(entries.drop(columns="account_id"), name="statement", slim=True)),
        ]
        if len(gaps):
            pages.append(Page("Gaps", Table(gaps.drop(columns="account_id"), name="gaps")))
        if len(rewards):
            pages.append(Page("Rewards", Table(rewards.drop(columns="account_id"), name="rewards")))
        frames = {
            "statement": entries,
            "gaps": gaps,
            "totals": statement.totals,
            "rewards": rewards,
        }
        counts = f"{count_text(len(entries), 'row')}, {count_text(len(gaps), 'gap')}"
        sentence = f"{statement.account_id} on {ledger.network.name}: {counts}."
        return Content(sentence, entries, tuple(pages), frames, statement)


def _picture(statement: Statement) -> str:
    """Return the plot of a statement, on the background that it is drawn for."""
    return f'<div style="background:{LIGHT}">{svg_text(statement.plot)}</div>'
