"""The `Statement` of an account."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Literal, Self

from ledgerkit import cards, client, intervals, prompt_text
from ledgerkit.reconciling import frames, statement_files, summary
from ledgerkit.reconciling.rewards import rewards_frame

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes

    from ledgerkit.ledger import Ledger
    from ledgerkit.reconciling.entry_store import EntryStore
    from ledgerkit.reconciling.model import StatementData


class Statement(prompt_text.HasContext):
    """
    Everything that changed the balances of an account in an interval of blocks.

    The opening balance plus all entries is the closing balance, to the smallest unit. Otherwise
    `gaps` lists the blocks and the missing amounts.

    Parameters
    ----------
    facts
        The account, the period, the balances at its ends, the gaps and the rewards.
    store
        The entries, in causal order.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> statement = lk.statement("bob.near")
    >>> statement.totals[["asset", "closing", "missing"]]
                         asset                      closing  missing
    0                     near  454999448234985267100000000        0
    1         nep141:gold.near                     37000000        0
    2         nep141:moon.near   12000000000000000000000000        0
    3  stake:north.poolv1.near  250000000000000000123456789        0
    4  stake:south.poolv1.near  100000000000000000123456789        0
    """

    def __init__(self, facts: StatementData, store: EntryStore) -> None:
        self.facts, self.store = facts, store

    @property
    def account_id(self) -> str:
        """The id of the account."""
        return self.facts.account_id

    @cached_property
    def entries(self) -> pd.DataFrame:
        """
        One row per change of one asset, in causal order.

        Typed as ``schema("statement")``, with values as ``schema("statement_values")``.
        """
        return self._with_attrs(frames.entries_frame(self.facts, self.store))

    @cached_property
    def by_transaction(self) -> pd.DataFrame:
        """
        One row per transaction with its headline, net changes and fee.

        An entry without a transaction has a row of its own. Rows are in the order of their first
        entries, typed as ``schema("statement_by_transaction")``.
        """
        return self._with_attrs(frames.by_transaction_frame(self.facts, self.store))

    @cached_property
    def gaps(self) -> pd.DataFrame:
        """One row per change that no entry explains, typed as ``schema("statement_gaps")``."""
        return self._with_attrs(frames.gaps_frame(self.facts))

    @cached_property
    def totals(self) -> pd.DataFrame:
        """One row per asset: the sums of its entries, typed as ``schema("statement_totals")``."""
        return self._with_attrs(frames.totals_frame(self.facts, self.store))

    @cached_property
    def rewards(self) -> pd.DataFrame:
        """One row per pool and epoch, typed as ``schema("statement_rewards")``."""
        return self._with_attrs(rewards_frame(self.facts.account_id, self.facts.rewards))

    def extend(
        self, stop: object = None, *, progress: bool = True, ledger: Ledger | None = None
    ) -> Statement:
        """
        Return the statement with a later `stop`, without reading everything again.

        The result equals a statement that is read in one go. Transactions that were still running
        are read again, and so are the last 1,000 blocks if something was missing there.

        Parameters
        ----------
        stop
            The block after the last one, as for `statement`.
        progress
            Whether to show progress bars.
        ledger
            The ledger to read from; None is the session's default.

        Returns
        -------
        statement
            A new statement with the same start; this one does not change.

        Raises
        ------
        InvalidRequestError
            If `stop` is malformed or before the end of this statement, or the ledger is of
            another network.
        LedgerError
            As `statement`.

        Notes
        -----
        Source: as `statement`. The rewards of staking and the balances at both ends are read again.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> earlier = lk.statement("bob.near", stop=180000020)
        >>> earlier.extend().entries.equals(lk.statement("bob.near").entries)
        True
        """
        from ledgerkit.reconciling import extending, plan

        ledger = client.current(ledger)
        _, last = plan.locate_ends(ledger, intervals.parse(None, stop))
        later = extending.Continuation(ledger, self, last, progress=progress)
        return Statement(*later.build())

    def _prompt_context(self) -> prompt_text.Context:
        sentences = summary.sentences(self.facts, len(self.store), self.totals)
        lines = "\n".join([*sentences, summary.verdict(self.totals, self.gaps)])
        return prompt_text.Context(
            "statement of an account",
            {"summary": lines, "totals": self.totals, "gaps": self.gaps},
            self.totals.attrs,
        )

    def save(self, path: str | PathLike[str]) -> Path:
        """
        Write the statement to a Parquet file, for `load`.

        The rows of the file are the entries, with exact amounts as text; all else is in its
        metadata. The file appears complete or not at all.

        Parameters
        ----------
        path
            The file; an existing one is replaced.

        Returns
        -------
        path
            The path of the file.

        Raises
        ------
        FileError
            If the file can't be written.
        InvalidRequestError
            If pyarrow is not installed.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> lk.statement("bob.near").save("bob.parquet").name
        'bob.parquet'
        """
        return statement_files.write(path, self.facts, self.store)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """
        Read a statement that `save` wrote.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        statement
            The statement as it was saved; `extend` continues it.

        Raises
        ------
        DecodeError
            If the file is damaged, or no statement.
        FileError
            If the file can't be read.
        InvalidRequestError
            If a newer ledgerkit wrote it, or pyarrow is not installed.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> statement = lk.statement("bob.near")
        >>> loaded = lk.Statement.load(statement.save("bob.parquet"))
        >>> loaded.entries.equals(statement.entries)
        True
        """
        return cls(*statement_files.read(path))

    def to_csv(
        self,
        path: str | Path,
        format: Literal["plain", "koinly", "cointracking"] = "plain",  # noqa: A002 - a file's
        *,
        price: pd.DataFrame | None = None,
    ) -> Path:
        """
        Write the entries to a CSV file: all of them, or as a tax program imports them.

        Parameters
        ----------
        path
            The file; an existing one is replaced, and appears complete or not at all.
        format
            ``plain`` has the columns of `entries`. ``koinly`` and ``cointracking`` have the columns
            of Koinly's universal template and of CoinTracking's CSV import: one row per transaction
            that swaps one asset for another, with its fee, otherwise one row per asset. There the
            stake with a pool counts as NEAR of the account: deposits and withdrawals have no row,
            rewards do. Times are UTC: choose UTC in CoinTracking.
        price
            Prices of whole tokens, with the columns asset (as in `entries`), time (with a time
            zone), price (a Decimal, integer, decimal text or float) and currency. The value of an
            entry is its amount times the last price of the asset at or before it, exactly; it is
            empty if there is none. A stake has the price of ``near``. A row of a tax program
            without such a value has that of ``values="usd"``, unless amounts came back or one has
            no value. CoinTracking's file, whose account is in one currency, has values in USD only
            if all prices are in USD, or there are none.

        Returns
        -------
        path
            The path of the file.

        Raises
        ------
        InvalidRequestError
            If an argument is malformed; the message names a wrong column of `price`. Also if the
            format needs the time of a block, and it is unknown.
        FileError
            If the file can't be written.

        Warns
        -----
        UserWarning
            If the statement has gaps, so that the entries do not add up.

        Notes
        -----
        Amounts have all digits and no exponents. Texts are safe for spreadsheets: a text that
        begins like a formula gets an apostrophe. A token is named by its symbol, or by its id if
        another token of the statement has the same symbol, or if its decimals are unknown: then
        the amount is in smallest units.

        Examples
        --------
        >>> import pandas as pd
        >>> ledger = lk.connect("local")
        >>> statement = lk.statement("bob.near")
        >>> path = statement.to_csv("koinly.csv", "koinly")
        >>> pd.read_csv(path)[["Sent Amount", "Received Amount", "Fee Amount", "Label"]]
           Sent Amount  Received Amount  Fee Amount Label
        0     0.000552              NaN         NaN  Cost
        1          NaN              5.0         NaN   NaN
        """
        from ledgerkit.reconciling import csv_formats

        return csv_formats.write_csv(self.store, self.facts, path, format, price)

    def plot(self, asset: str | None = None, *, ax: Axes | None = None) -> Axes:
        """
        Draw the balances as steps, each change in the colour of its cause, with gaps hatched.

        Parameters
        ----------
        asset
            An asset, as in `entries`; None draws NEAR and the largest others.
        ax
            The axes to draw on; None makes a figure.

        Returns
        -------
        ax
            The axes, as `ledgerkit.plots.statement` draws them.

        Raises
        ------
        InvalidRequestError
            If the statement has no such asset, or matplotlib is not installed.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> ax = lk.statement("bob.near").plot("near")
        >>> ax.get_ylabel()
        'balance (NEAR)'
        """
        from ledgerkit import plots

        return plots.statement(self.entries, self.totals, self.gaps, asset=asset, ax=ax)

    def __repr__(self) -> str:
        return summary.text(self.facts, len(self.store), self.totals, self.gaps)

    def _repr_html_(self) -> str:
        return cards.statement_card(
            headline=summary.headline(self.facts),
            sentences=summary.sentences(self.facts, len(self.store), self.totals),
            verdict=summary.verdict(self.totals, self.gaps),
            totals=self.totals,
            gaps=self.gaps,
            rewards=self.rewards,
            network=self.facts.network,
        )

    def _with_attrs(self, frame: pd.DataFrame) -> pd.DataFrame:
        facts = self.facts
        frame.attrs.update(
            network=facts.network,
            tokens={asset: [token.decimals, token.symbol] for asset, token in facts.tokens.items()},
            source="Transactions API, Transfers API and balances of an archival node",
            start_height=facts.start.height + 1,
            stop_height=facts.stop.height + 1,
        )
        return frame
