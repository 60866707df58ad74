"""What a notebook displays for an error, with a real kernel."""

from __future__ import annotations

import re
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

CALL = 'def read(name):\n    return lk.keys(name)\n\nread("alice")'
SENTENCE = (
    "UnknownAccountError: Account alice does not exist at block 180000050 (request: the state of"
    " alice). Did you mean 'alice.near'? Check the spelling, the network (mainnet or testnet) and"
    " the block."
)


@pytest.fixture(scope="module")
def displayed() -> dict[str, str]:
    """The traceback of each cell that fails, without colours."""
    caused = "raise lk.LedgerError('No') from error"
    cells = [
        'import ledgerkit as lk\n\nlk.connect("local")',
        CALL,
        "%tb Verbose",
        f"try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    {caused}",
        "lk.account",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    NotebookClient(notebook, timeout=300, allow_errors=True, kernel_name="python3").execute()
    return {cell.source: _errors_of(cell) for cell in notebook.cells}


def _errors_of(cell: Any) -> str:
    lines = [output["traceback"] for output in cell.outputs if output.output_type == "error"]
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join("\n".join(part) for part in lines))


def test_a_ledger_error_shows_the_callers_lines_sentence_and_remedy(displayed) -> None:
    """Each line of the cell on the way is marked; no line of the package is displayed."""
    shown = displayed[CALL]
    marked = [line for line in shown.splitlines() if line.startswith("---->")]
    assert marked == ['----> 4 read("alice")', "----> 2     return lk.keys(name)"]
    assert shown.splitlines()[-1] == SENTENCE
    assert "File " not in shown


def test_the_whole_traceback_is_displayed_on_demand(displayed) -> None:
    """`%tb Verbose` has the lines of the package, and ends in the same sentence."""
    shown = displayed["%tb Verbose"]
    assert re.search(r"File .*verbs/accounts\.py", shown)
    assert shown.splitlines()[-1] == SENTENCE


def test_the_cause_is_not_displayed(displayed) -> None:
    """An error that another one caused is displayed alone."""
    [shown] = [text for cell, text in displayed.items() if cell.startswith("try:")]
    assert shown.splitlines()[-1] == "LedgerError: No."
    assert "ZeroDivisionError: division by zero" not in shown


def test_a_misspelt_verb_names_the_likely_one(displayed) -> None:
    """A notebook does not add suggestions, so the sentence has one."""
    assert displayed["lk.account"].splitlines()[-1] == (
        "AttributeError: module 'ledgerkit' has no attribute 'account'; did you mean 'accounts'?"
    )
