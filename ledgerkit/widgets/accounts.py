"""Panels about accounts: holdings, statements, keys, and classes of staking exposure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from ledgerkit import cards, units, validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames import html_tables
from ledgerkit.frames.human import readable
from ledgerkit.frames.schemas import CODE
from ledgerkit.frames.tokens import CLASSES
from ledgerkit.reconciling import verbs as reconciling
from ledgerkit.verbs import accounts, tokens
from ledgerkit.verbs.activity import activity
from ledgerkit.verbs.lockups import lockup_sources
from ledgerkit.verbs.lockups import lockups as read_lockups
from ledgerkit.verbs.token_facts import known_tokens
from ledgerkit.widgets import _html
from ledgerkit.widgets._blocks import Block, Content, Page, Plot
from ledgerkit.widgets._panel import Field, Panel
from ledgerkit.widgets._table import Table, error_pages
from ledgerkit.widgets._trace_view import VERDICTS

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger

_HIDDEN = ["account_id", "amount"]  # the subject, and a rounded copy of the balance
_CODE = [column.name for column in CODE]  # empty in a snapshot
_MAX_ACTIVITY = 20  # transactions: one request for their documents
_MAX_FOLDED = 100  # transactions that unfold to their entries
_ENTRY = {  # columns and their headings
    "asset": "asset",
    "change": "change",
    "balance_after": "balance after",
    "cause": "cause",
    "counterparty_id": "counterparty",
    "evidence": "evidence",
}
_BLOCK = "a height or an ISO time"


class AccountExplorer(Panel):
    """
    The state, latest transactions, tokens, NFTs, stakes and lockup contracts of an account.

    Parameters
    ----------
    account_id
        The initial value of the field.
    details
        True also calls contracts: for token symbols and amounts, stakes and lockup contracts.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Account"
    tooltip = "Look up the holdings of this account"
    links: ClassVar = {"account": "account_id", "contract": "account_id"}

    def __init__(
        self, account_id: str = "", *, details: bool = True, ledger: Ledger | None = None
    ) -> None:
        fields = {
            "account_id": Field("Account", account_id, "alice.near"),
            "details": Field(
                "Call contracts for symbols, amounts and stakes", details, kind="check"
            ),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        snapshot = accounts.snapshot(
            values["account_id"], metadata=values["details"], ledger=ledger
        )
        state, ft, staking = snapshot.state, snapshot.ft, snapshot.staking
        unread: list[pd.DataFrame] = []
        exposure, lockups = None, pd.DataFrame()
        collecting: Any = {"on_error": "collect", "progress": False, "ledger": ledger}
        has_lockups = values["details"] and bool(lockup_sources(ledger.network))
        if values["details"]:
            staking, errors = tokens.staking(snapshot.account_id, positions=True, **collecting)
            unread.append(errors)
        if has_lockups:
            lockups, errors = read_lockups(snapshot.account_id, **collecting)
            lockups = lockups[lockups["status"] != "no_account"]
            unread.append(errors)
        if ledger.network.liquid_tokens:
            exposure, errors = tokens.exposure(
                snapshot.account_id, lockups=has_lockups, **collecting
            )
            unread.append(errors)
        frames = {"account": state, "ft": ft, "nft": snapshot.nft, "staking": staking}
        is_token = snapshot.account_id in known_tokens(ledger)
        pages = [Page("Account", _account_card(state, exposure, is_token=is_token))]
        if ledger.network.transactions_url is not None:
            latest, errors = activity(
                snapshot.account_id,
                limit=_MAX_ACTIVITY,
                metadata=values["details"],
                **collecting,
            )
            unread.append(errors)
            frames["activity"] = latest
            if len(latest) or errors.empty:
                pages.append(Page("Activity", _activity_table(latest, snapshot.account_id)))
        for title, frame in {"Tokens": ft, "NFTs": snapshot.nft, "Staking": staking}.items():
            rows = frame.drop(columns=_HIDDEN, errors="ignore")
            pages.append(Page(title, Table(rows, name=title.lower())))
        if len(lockups):
            frames["lockups"] = lockups
            rows = lockups.drop(columns="account_id")
            pages.append(Page("Lockups", Table(rows, name="lockups", slim=True)))
        if exposure is not None:
            frames["exposure"] = exposure
        if any(map(len, unread)):
            frames["errors"] = pd.concat(unread).drop_duplicates(ignore_index=True)
            pages += error_pages(frames["errors"])
        sentence = f"{snapshot.account_id} on {ledger.network.name}{_counts(state)}."
        return Content(sentence, state, tuple(pages), frames, snapshot)


def _counts(state: pd.DataFrame) -> str:
    nouns = {"n_tokens": "token", "n_nfts": "NFT collection", "n_pools": "pool"}
    counts = state[list(nouns)].iloc[0]
    if counts.isna().any():
        return " is not indexed"
    counted = (units.count_text(int(counts[name]), noun) for name, noun in nouns.items())
    return f": {', '.join(counted)}"


def _account_card(state: pd.DataFrame, exposure: pd.DataFrame | None, *, is_token: bool) -> str:
    exposure_text = "unknown"  # where the network has no known liquid staking tokens, or an error
    if exposure is not None and len(exposure):
        column = "exposure_class" if exposure["status"].iloc[0] == "ok" else "status"
        exposure_text = str(readable(exposure)[column].iloc[0])
    account_id = str(state["account_id"].iloc[0])
    links = _html.link("statement", account_id, f"Statement of {account_id}")
    if is_token:
        links += f" · {_html.link('token', account_id, f'Token {account_id}')}"
    facts = _html.facts_table(state.drop(columns=_CODE))
    return f"<p>Staking exposure: {_html.badge(exposure_text)}</p><p>{links}</p>{facts}"


def _activity_table(frame: pd.DataFrame, account_id: str) -> str:
    if frame.empty:
        return _html.paragraph(f"No transaction of {account_id} is indexed.")
    rows = map(_activity_row, cards.records(frame), cards.records(readable(frame)))
    table = html_tables.table(rows, css_class="facts")
    if len(frame) < _MAX_ACTIVITY:
        return table
    code = f'ledgerkit.activity("{account_id}", limit=200)'
    return table + _html.paragraph(f"The newest {_MAX_ACTIVITY} transactions; {code} reads more.")


def _activity_row(row: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Format a transaction: its headline links to it, and the other facts wrap below."""
    mark, words, tone = VERDICTS[row["verdict"] or "unknown"]
    result = f'<span class="lk-tone-{tone}">{mark} {words}</span>'
    counterparty_id = row["counterparty_id"]
    facts = (
        result,
        _html.text(texts["tx_hash"]),
        _html.text(texts["method_name"]),
        counterparty_id and f"with {_html.link('account', counterparty_id)}",
        row["amounts"] and _html.text(f"{row['account_id']}: {row['amounts']}", 600),
    )
    headline = _html.link("transaction", row["tx_hash"], row["headline"] or "not read")
    cell = html_tables.cell(f"{headline}<br>{' · '.join(filter(None, facts))}")
    return html_tables.row([cell], name=_html.text(texts["time"]))


class KeyLookup(Panel):
    """
    The accounts of a public key.

    Parameters
    ----------
    public_key
        The initial value of the field.
    include_limited
        True includes accounts on which it is a function-call key.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Key"
    tooltip = "Look up the accounts of this key"
    links: ClassVar = {"key": "public_key"}

    def __init__(
        self, public_key: str = "", *, include_limited: bool = False, ledger: Ledger | None = None
    ) -> None:
        kinds = (("full-access keys only", "full"), ("all keys", "all"))
        fields = {
            "public_key": Field("Public key", public_key, "ed25519:…"),
            "kinds": Field(
                "Key type", "all" if include_limited else "full", kind="choice", options=kinds
            ),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        limited = values["kinds"] == "all"
        frame = accounts.accounts_of(values["public_key"], include_limited=limited, ledger=ledger)
        sentence = f"{units.count_text(len(frame), 'account')} on {ledger.network.name}."
        page = Page("Accounts", Table(frame.drop(columns="public_key"), name="accounts"))
        return Content(sentence, frame, (page,))


class StatementExplorer(Panel):
    """
    The statement of an account: balances, transactions, entries, gaps and rewards.

    Parameters
    ----------
    account_id, start, stop
        The initial values of the fields; `start` is included and `stop` excluded, as in
        `ledgerkit.statement`.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Statement"
    action = "Reconcile"
    tooltip = "List everything that changed the balances of this account"
    waiting = "Reading transactions and balances…"
    hint = (
        "Reconcile lists what changed the balances of the account in a period, and checks that"
        " opening balances and changes add up to the closing ones. It costs a request or more for"
        " 20 transactions, and some for each token and pool; it only reads."
    )
    links: ClassVar = {"statement": "account_id"}

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
            "start": Field(
                "First block",
                start,
                "2026-07, last month, an ISO time or a height; empty: all",
            ),
            "stop": Field("Block after the last", stop, f"{_BLOCK}; empty: up to the final one"),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        ends = (values["start"], values["stop"])
        blocks = [validation.height_or_text(end) if end else None for end in ends]
        account_id = values["account_id"]
        statement = reconciling.statement(account_id, *blocks, progress=False, ledger=ledger)
        entries, gaps, rewards = statement.entries, statement.gaps, statement.rewards
        summary: list[Block | str] = [statement._repr_html_()]
        if len(entries):
            summary.append(Plot(statement.plot))
        transactions = statement.by_transaction
        folded: list[Block | str] = [_transactions(transactions, entries)]
        if len(transactions) > _MAX_FOLDED:
            rows = transactions.drop(columns="account_id")
            folded.append(Table(rows, "All transactions", name="transactions", slim=True))
        # `change` is written with its symbol.
        rows = entries.drop(columns=["account_id", "symbol", "amount"])
        entries_page = Page("Entries", Table(rows, name="statement", slim=True))
        pages = [Page("Statement", *summary), Page("Transactions", *folded), entries_page]
        for title, frame in {"Gaps": gaps, "Rewards": rewards}.items():
            if len(frame):
                table = Table(frame.drop(columns="account_id"), name=title.lower())
                pages.append(Page(title, table))
        frames = {"statement": entries, "gaps": gaps}
        frames |= {"by_transaction": transactions, "totals": statement.totals, "rewards": rewards}
        counts = f"{units.count_text(len(entries), 'row')}, {units.count_text(len(gaps), 'gap')}"
        n_unknown = int(statement.totals["missing"].isna().sum())
        if n_unknown:
            counts += f", {units.count_text(n_unknown, 'balance')} not checked"
        sentence = f"{statement.account_id} on {ledger.network.name}: {counts}."
        return Content(sentence, entries, tuple(pages), frames, statement)


def _transactions(transactions: pd.DataFrame, entries: pd.DataFrame) -> str:
    """Format the newest transactions, each in a line that unfolds to its entries."""
    if transactions.empty:
        return _html.paragraph("No transaction changed a balance.")
    newest = transactions.tail(_MAX_FOLDED).iloc[::-1]
    # An entry without a transaction has a row of its own.
    positions: dict[object, list[int]] = defaultdict(list)
    for index, tx_hash in enumerate(entries["tx_hash"]):
        positions[tx_hash if isinstance(tx_hash, str) else index].append(index)
    groups = list(positions.values())[: -len(newest) - 1 : -1]
    parts = [
        _transaction(row, texts, cards.records(readable(entries.iloc[group])))
        for row, texts, group in zip(
            cards.records(newest), cards.records(readable(newest)), groups, strict=True
        )
    ]
    n_hidden = len(transactions) - len(newest)
    return "".join(parts) + _html.hidden_count(n_hidden, "earlier transaction", " in the table")


def _transaction(
    row: Mapping[str, Any], texts: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]
) -> str:
    counterparties = f"with {texts['counterparties']}" if row["counterparties"] else ""
    headline = (row["headline"] or "").removesuffix(".")  # an amount follows
    event = headline or " ".join(filter(None, (texts["causes"], texts["methods"], counterparties)))
    fee = f"fee {texts['fee']}" if row["fee"] else ""
    line = " · ".join(
        _html.text(part, 300) for part in (texts["time"], event, texts["changes"], fee) if part
    )
    table = html_tables.table(
        [
            html_tables.row([html_tables.cell(_html.text(entry[name])) for name in _ENTRY])
            for entry in entries
        ],
        head=[html_tables.heading(heading) for heading in _ENTRY.values()],
    )
    tx_hash = row["tx_hash"]
    link = f"<p>Transaction {_html.link('transaction', tx_hash)}</p>" if tx_hash else ""
    body = f'{link}<div class="scroll">{table}</div>'
    return f"<details><summary>{line}</summary>{body}</details>"


class StakingExposure(Panel):
    """
    The staking exposure classes of many accounts.

    Parameters
    ----------
    account_ids
        The initial value of the field.
    nonzero
        True calls the pools, and ignores positions that are zero.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Staking"
    action = "Classify"
    tooltip = "Look up and classify these accounts"

    def __init__(
        self,
        account_ids: Iterable[str] = (),
        *,
        nonzero: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        example = "one per line, or separated by commas"
        fields = {
            "account_ids": Field("Accounts", "\n".join(account_ids), example, kind="lines"),
            "nonzero": Field("Call pools, ignore zero positions", nonzero, kind="check"),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        ids = [name for name in re.split(r"[\s,;]+", values["account_ids"]) if name]
        if not ids:
            raise InvalidRequestError.required("account_ids", "one account per line")
        frame, errors = tokens.exposure(
            ids, nonzero=values["nonzero"], on_error="collect", progress=False, ledger=ledger
        )
        is_indexed = frame["status"] == "ok"
        sizes = frame.loc[is_indexed, "exposure_class"].value_counts()
        counts = {name.replace("_", " "): int(sizes.get(name, 0)) for name in CLASSES.values()}
        if not is_indexed.all():
            counts["not indexed"] = int((~is_indexed).sum())
        pages = [
            Page("Classes", _html.bars(counts, f"Accounts by class, of {len(frame)}")),
            Page("Accounts", Table(frame, name="exposure")),
            *error_pages(errors),
        ]
        sentence = f"{units.count_text(len(frame), 'account')} on {ledger.network.name} classified"
        sentence += f", {units.count_text(len(errors), 'error')}." if len(errors) else "."
        return Content(sentence, frame, tuple(pages), {"exposure": frame, "errors": errors})
