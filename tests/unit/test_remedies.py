"""A remedy speaks of what its reader has: options of a command, or tabs of the explorer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import ledgerkit as lk
from ledgerkit import errors, remedies
from ledgerkit.api import chain_errors
from tests.command_line import main

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON = re.compile(r"\w\(|\w=")  # a call, or a keyword argument


def classes(base: type[errors.LedgerError]) -> Iterator[type[errors.LedgerError]]:
    for error_class in base.__subclasses__():
        yield error_class
        yield from classes(error_class)


def test_no_remedy_of_a_class_speaks_python_to_the_command_line(subtests):
    """Each remedy of a class of errors names options and commands there."""
    assert chain_errors.__name__  # its classes are loaded
    for remedy in {error_class.remedy for error_class in classes(errors.LedgerError)}:
        with subtests.test(remedy=remedy):
            assert not PYTHON.search(remedies.for_command_line(remedy))


@pytest.mark.parametrize(
    ("python", "command_line", "explorer"),
    [
        (
            'Use connect("mainnet") to read from the public network.',
            "Use --network mainnet to read from the public network.",
            "Choose the network mainnet in the tab Network to read from the public network.",
        ),
        (
            'Did you mean connect("testnet")?',
            "Did you mean --network testnet?",
            "Did you mean the network testnet (tab Network)?",
        ),
        (
            errors.RateLimitedError.remedy,
            "Wait a minute, or set LEDGERKIT_API_KEY.",
            "Wait a minute, or connect with an API key in the tab Network.",
        ),
        (
            errors.AuthError.remedy,
            "Check the API key in LEDGERKIT_API_KEY, and that it is valid for this network.",
            "Check the API key entered in the tab Network, and that it is valid for this network.",
        ),
        (
            "Pass connect() its address as transactions_url=, if there is one.",
            "Set its address as LEDGERKIT_TRANSACTIONS_URL, if there is one.",
            "Pass connect() its address as transactions_url=, if there is one.",
        ),
    ],
)
def test_the_words_of_each_reader(python, command_line, explorer):
    """The same remedy in the words of each reader; Python's stay where there is no other way."""
    assert remedies.for_command_line(python) == command_line
    assert remedies.for_explorer(python) == explorer


def test_the_command_line_speaks_of_its_options(capsys):
    """The warning about an account that the embedded ledger lacks names --network."""
    assert main(["keys", "nobody.near", "--network", "local"]) == 3
    shown = capsys.readouterr().err
    assert "Use --network mainnet to read from the public network." in shown
    assert "connect(" not in shown


def test_the_explorer_speaks_of_its_tab():
    """The same warning names the tab Network, which a panel alone and a fixed ledger lack."""
    pytest.importorskip("ipywidgets")
    with lk.connect("local") as ledger:
        assert "in the tab Network" in lk.explore("nobody.near").account.content.message
        fixed = lk.explore("nobody.near", ledger=ledger)
        assert "Use connect(&quot;mainnet&quot;)" in fixed.account.content.message


def test_the_search_box_suggests_as_verbs_do():
    """An account in capitals is suggested in the search box as well."""
    pytest.importorskip("ipywidgets")
    with lk.connect("local"):
        assert (
            "Did you mean &#x27;alice.near&#x27;?"
            in lk.explore("Alice.near").search.content.message
        )
