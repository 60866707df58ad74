"""The panels that send, in a browser: previewed, sent once, and found on the ledger afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser.person import Person

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPLORER = """\
import ledgerkit as lk
lk.connect("local")
lk.explore()"""
WIDGET = {"Author": "heidi.near", "Widget": "Clock", "Receiver": "alice.near"}
STEPS = 8
STAGES = ["accepted", "included", "first_receipt_succeeded", "all_receipts_complete", "final"]


@pytest.fixture(scope="module")
def explorer(opened: Any) -> Iterator[Person]:
    """Open the explorer over a ledger of its own."""
    with opened("sending", [EXPLORER]) as page:
        yield Person(page)


@pytest.fixture
def at(explorer: Person) -> Any:
    def go(title: str) -> Person:
        explorer.page.get_by_role("tab", name=title, exact=True).first.click()
        return explorer

    return go


def preview(person: Person, receiver_id: str, amount: str) -> dict[str, str]:
    """Preview a transfer of alice.near's."""
    person.type("Signer", "alice.near")
    person.type("Receiver", receiver_id)
    person.enter("Amount", amount)
    person.answered("Not sent yet. Press Send to send this transaction to local.")
    return person.facts()


def test_what_is_previewed_is_sent_once(at):
    """Nothing is sent before Send; a double click sends one transaction, the previewed one."""
    person = at("Send")
    expect(person.button("Send")).to_be_disabled()
    first = preview(person, "bob.near", "1.5 NEAR")
    assert first["deposit"] == "1.5 NEAR"
    person.picture("send_preview")

    person.click("Send", times=2)
    person.answered(f"{first['tx_hash']} of alice.near: final.")

    head, *stages = person.grid()
    assert [row[head.index("stage")] for row in stages] == STAGES
    expect(person.button("Send")).to_be_disabled()
    person.picture("send")

    second = preview(person, "bob.near", "1.5 NEAR")
    assert int(second["nonce"]) == int(first["nonce"]) + 1
    person = at("Transaction")
    person.type("Transaction", first["tx_hash"])
    person.enter("Signer", "alice.near")
    person.answered("Succeeded on local: ")


def test_a_changed_field_asks_for_a_new_preview(at):
    """What is sent is what was looked at."""
    person = at("Send")
    preview(person, "bob.near", "2 NEAR")
    expect(person.button("Send")).to_be_enabled()

    person.type("Amount", "3 NEAR")
    person.press("Tab")

    expect(person.button("Send")).to_be_disabled()


def test_a_secret_key_leaves_its_field(at, local):
    """The key that is typed signs the preview, and stands nowhere on the page."""
    secret = str(local.world.keys()["dave.near"])
    person = at("Send")
    person.type("Signer", "dave.near")
    person.type("Receiver", "bob.near")
    person.type("Amount", "1 NEAR")
    person.field("Secret key").press_sequentially(secret)
    person.press("Enter")
    person.answered("Not sent yet. Press Send to send this transaction to local.")

    assert person.facts()["signer_id"] == "dave.near"
    assert person.field("Secret key").input_value() == ""
    assert secret.partition(":")[2] not in person.page.content()
    person.click("Send")
    person.answered(" of dave.near: final.")
    assert secret.partition(":")[2] not in person.page.content()


def test_a_widget_is_archived_once(at):
    """Every step tells its state; taking the flow again mints nothing."""
    person = at("Archive")
    for label, text in WIDGET.items():
        person.type(label, text)
    person.type("Collection", "stamps.grace.near")
    person.type("Signer", "grace.near")
    person.click("Archive")
    person.answered("The token was minted, and its owner and source are as planned.")
    head, *rows = person.grid()
    assert [row[head.index("state")] for row in rows] == ["done"] * STEPS
    person.picture("archive")
    person.open("Token")
    token = person.facts()
    assert token["outcome"] == "archived"

    person.click("Archive")
    person.answered("already")
    person.open("Token")
    again = person.facts()

    assert again["outcome"] == "already archived"
    assert again["token_id"] == token["token_id"]
    assert again["tx_hash"] == ""
