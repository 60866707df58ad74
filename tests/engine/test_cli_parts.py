"""Parts of the command line: exit codes of errors and gaps, and the layout of tables."""

from __future__ import annotations

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.cli import main
from ledgerkit.cli.exit_codes import EXIT_CODES, exit_code
from ledgerkit.cli.tables import layout
from ledgerkit.reconciling import verbs
from ledgerkit.reconciling.entry_store import EntryStore
from ledgerkit.reconciling.model import Gap
from ledgerkit.reconciling.statement import Statement
from tests.unit.statement_frames import entry, statement

TOP = 2**128 - 1
SWAP = ("F6JaqhBY4b4vGkST4nhyVykCZ6L21hj4u4aAfnqTor66", "ivan.near")  # in the demo world


def table_rows(frame, width, *, exact=False):
    """Lay a frame out in a width, without styles."""
    lines = layout(frame, None, width, exact=exact, raw=False)
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def test_each_branch_of_errors_has_its_code():
    """Every direct subclass of LedgerError is in the table, so none falls through."""
    branches = {
        kind
        for kind in errors.LedgerError.__subclasses__()
        if kind.__module__ == "ledgerkit.errors"
    }
    assert {kind for row in EXIT_CODES for kind in row.errors} == branches
    assert {kind.__name__: exit_code(kind) for kind in branches} == {
        "InvalidTransactionError": 1,
        "ReceiptFailedError": 1,
        "DroppedError": 1,
        "ContractError": 1,
        "FileError": 1,
        "InvalidRequestError": 2,
        "NotFoundError": 3,
        "TransportError": 4,
        "RateLimitedError": 4,
        "AuthError": 4,
        "DecodeError": 5,
        "ProofError": 5,
    }


def test_gaps_have_a_code_of_their_own(capsys, monkeypatch):
    """The statement is printed all the same, and a script sees that it does not add up."""
    entries = [entry(110, "near", "transfer", 5)]
    made = statement(entries, gaps=[Gap("near", 150, 151, 7, "no transaction")])
    gapped = Statement(made.facts, EntryStore(entries))
    monkeypatch.setattr(verbs, "statement", lambda *_, **__: gapped)
    code = main(["statement", "alice.near", "--network", "local"])
    assert code == 6
    assert (
        "gap: near 7 yocto, after block 150 up to block 151: no transaction"
        in capsys.readouterr().out
    )


def test_no_number_of_an_exact_table_is_rounded_or_scientific():
    """Amounts to 2**128 - 1, signed integers, floats and long arguments keep every digit."""
    frame = pd.DataFrame(
        {
            "amount": pd.Series([TOP, 1], dtype="u128"),
            "price": pd.array([1e-9, None], dtype="Float64"),
            "change": pd.Series([-TOP, None], dtype=object),
            "ratio": [3.4e20, 1e-7],
            "args": [{"amount": "7" * 90}, [TOP]],
        }
    )
    rows = table_rows(frame, 40, exact=True)
    words = " ".join(rows).split()
    assert {str(TOP), str(-TOP), "340000000000000000000", "0.0000001", "0.000000001"} <= set(words)
    assert f'{{"amount": "{"7" * 90}"}}' in " ".join(rows)
    assert f"[{TOP}]" in words


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("exact", [False, True])
def test_lines_fit_the_terminal(exact, width):
    """No line is wider than the terminal, so none is broken inside a number."""
    with lk.connect("local") as ledger:
        trace = lk.trace(*SWAP, ledger=ledger)
        frames = [
            lk.accounts(["alice.near", "bob.near"], ledger=ledger),
            lk.ft("alice.near", metadata=True, ledger=ledger),
            lk.keys("alice.near", ledger=ledger),
            lk.history("alice.near", 180000000, "final", every=20, ledger=ledger),
            trace.transfers,
            trace.gas,
        ]
    for frame in frames:
        rows = table_rows(frame, width, exact=exact)
        assert [row for row in rows if len(row) > width] == []
        assert len(rows) > len(frame)


def test_ids_are_shortened_only_where_a_table_does_not_fit():
    """A hash can be copied from a wide terminal, from a pipe, and with --exact."""
    with lk.connect("local") as ledger:
        frame = lk.receipts(*SWAP, ledger=ledger)[["receipt_id", "parent_id", "status"]]
    whole = "RiXRM7VrQXrXmeP4McpKE5cnSQmq2x1U1RvtYmj2YAy"
    assert "RiXRM7…2YAy" in " ".join(table_rows(frame, 80))
    for width, exact in ((120, False), (None, False), (80, True)):
        assert whole in " ".join(table_rows(frame, width, exact=exact))


def test_wide_characters_keep_the_columns_aligned():
    """A symbol in Chinese takes two cells for each character; a mark over a letter none."""
    frame = pd.DataFrame({"symbol": ["金", "ab", "e\u0301"], "status": ["ok", "ok", "ok"]})
    rows = table_rows(frame, None)
    assert rows == ["symbol  status", "金      ok", "ab      ok", "e\u0301       ok"]
