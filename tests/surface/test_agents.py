"""An agent asks `ledgerkit mcp` through the client of the official package, and reads the truth."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client, StdioServerParameters

import ledgerkit as lk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp.types import CallToolResult, Tool

KEY = "k-91b7e0d2c4f84a6bb1f3a09c5d7e8f62"
SECRET_KEY = "ed25519:" + "4" * 87
SWAP = "AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY"
GONE = "4" * 44
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "balance": ("account", {"account_ids": ["alice.near"]}),
    "failure": ("trace", {"tx_hash": SWAP}),
    "transfers": ("trace", {"tx_hash": SWAP, "frame": "transfers"}),
    "holders": ("holders", {"contract_id": "gold.near"}),
    "stake": ("staking", {"account_ids": ["alice.near", "bob.near"]}),
    "statement": ("statement", {"account_id": "bob.near"}),
    "plan": ("statement", {"account_id": "ivan.near", "max_requests": 5}),
    "first page": ("holders", {"contract_id": "gold.near", "max_rows": 20}),
    "second page": ("holders", {"contract_id": "gold.near", "max_rows": 20, "offset": 20}),
    "unknown transaction": ("trace", {"tx_hash": GONE}),
    "wrong argument": ("account", {"accounts": "alice.near"}),
    "no argument": ("view", {"contract_id": "gold.near"}),
    "key in the wrong place": ("account", {"account_ids": [SECRET_KEY]}),
    "no tool": ("transfer", {"receiver_id": "bob.near"}),
    "doctor": ("doctor", {}),
}


@pytest.fixture(scope="module")
def session() -> tuple[list[Tool], dict[str, CallToolResult]]:
    """Return the tools of a server process, and its answers to `CALLS`."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-W", "error", "-m", "ledgerkit", "mcp", "--network", "local"],
        env={"LEDGERKIT_API_KEY": KEY},
    )

    async def ask() -> tuple[list[Tool], dict[str, CallToolResult]]:
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
            return tools, {name: await client.call_tool(*call) for name, call in CALLS.items()}

    return asyncio.run(ask())


@pytest.fixture
def answers(session: tuple[list[Tool], dict[str, CallToolResult]]) -> dict[str, str]:
    """Return the texts of the answers."""
    return {name: result.content[0].text for name, result in session[1].items()}  # type: ignore[union-attr]  # a text


@pytest.fixture
def ledger() -> Iterator[lk.Ledger]:
    """Open the world that the server has."""
    with lk.connect("local") as opened:
        yield opened


def rows(text: str) -> list[dict[str, str]]:
    """Read the last table of an answer."""
    head, _, body = text.rpartition("\n⟦\n")
    names = head.rpartition("\n")[2].split("\t")
    lines = body.partition("\n⟧")[0].splitlines()
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines]


def test_what_is_the_balance(answers: dict[str, str], ledger: lk.Ledger) -> None:
    """The first question: the answer has every digit of the balance."""
    [row] = rows(answers["balance"])
    assert row["balance"] == str(lk.balance("alice.near", ledger=ledger))
    assert row["balance"] == "12340675470645764809599999996"
    assert row["balance (human)"] == "12,340.675470645764809599999996 NEAR"


def test_why_did_it_fail(answers: dict[str, str], ledger: lk.Ledger) -> None:
    """The second question: the answer is the explanation, and the frame is exact."""
    trace = lk.trace(SWAP, ledger=ledger)
    assert f"⟦{trace.explain()}⟧" in answers["failure"]
    assert "the exchange panicked" in answers["failure"]
    amounts = [row["amount"] for row in rows(answers["transfers"])]
    assert amounts == trace.transfers["amount"].astype(str).tolist()


def test_who_holds_most(answers: dict[str, str], ledger: lk.Ledger) -> None:
    """The third question: the answer lists the holders, the largest first."""
    frame = lk.top_holders("gold.near", ledger=ledger)
    table = rows(answers["holders"])
    assert [row["account_id"] for row in table] == frame["account_id"].tolist()
    assert [row["balance"] for row in table] == frame["balance"].astype(str).tolist()
    assert (table[0]["account_id"], table[0]["balance"]) == ("dex.near", "400120000000")


def test_what_is_staked(answers: dict[str, str], ledger: lk.Ledger) -> None:
    """The fourth question: the answer has each stake, to the yoctoNEAR."""
    frame = lk.staking(["alice.near", "bob.near"], positions=True, ledger=ledger)
    table = rows(answers["stake"])
    assert [row["staked"] for row in table] == frame["staked"].astype(str).tolist()
    assert table[0]["staked (human)"] == "0.000000000000000123456789 NEAR"


def test_does_it_add_up(answers: dict[str, str], ledger: lk.Ledger) -> None:
    """The fifth question: the answer says that the statement adds up, with exact totals."""
    totals = lk.statement("bob.near", ledger=ledger).totals
    assert "✓ every balance adds up" in answers["statement"]
    for name in ("asset", "opening", "closing", "missing"):
        assert [row[name] for row in rows(answers["statement"])] == totals[name].map(str).tolist()


def test_every_tool_only_reads(session: tuple[list[Tool], dict[str, CallToolResult]]) -> None:
    """Ten tools have the names of questions, describe each argument, and are read-only."""
    tools = session[0]
    names = "account tokens activity trace statement holders staking view verify doctor"
    assert [tool.name for tool in tools] == names.split()
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert all(field["description"] for field in tool.input_schema["properties"].values())
    assert len(json.dumps([tool.model_dump(mode="json") for tool in tools])) < 20_000


def test_a_plan_comes_before_many_requests(answers: dict[str, str]) -> None:
    """A statement that needs more requests than allowed is planned, and says how to allow it."""
    assert "would read the statement of ivan.near" in answers["plan"]
    assert "call again with max_requests=" in answers["plan"]


def test_a_second_page_goes_on(answers: dict[str, str]) -> None:
    """Pages that follow each other are the table."""
    assert answers["first page"].endswith("(rows 1 to 20 of 24; go on with offset=20)")
    pages = rows(answers["first page"]) + rows(answers["second page"])
    assert pages == rows(answers["holders"])


def test_an_error_says_what_to_do(
    session: tuple[list[Tool], dict[str, CallToolResult]], answers: dict[str, str]
) -> None:
    """An error is marked as one, and names the argument or the remedy; others are not."""
    errors = {name for name, result in session[1].items() if result.is_error}
    failing = "unknown transaction, wrong argument, no argument, key in the wrong place, no tool"
    assert errors == set(failing.split(", "))
    assert answers["unknown transaction"].startswith("UnknownTransactionError: ⟦")
    assert "\nremedy: " in answers["unknown transaction"]
    assert "argument 'accounts' is not valid" in answers["wrong argument"]
    assert "method_name is required" in answers["no argument"]
    assert "tool 'transfer' is not valid" in answers["no tool"]


def test_no_answer_has_the_key(answers: dict[str, str]) -> None:
    """Neither the API key of the environment nor a key in the wrong place is in an answer."""
    assert [name for name, text in answers.items() if KEY in text or SECRET_KEY in text] == []
