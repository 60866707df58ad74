"""The archive panel without a front end: its steps while they happen, and what Cancel leaves."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit import archiving, errors
from ledgerkit.archiving import flow
from ledgerkit.widgets import _html
from tests.unit.front_end import FrontEnd, until

w = pytest.importorskip("ipywidgets")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.widgets import ArchiveFlow
    from ledgerkit.widgets._blocks import Content

ASKED = ("heidi.near", "Clock", "alice.near", "stamps.grace.near", "grace.near")
TOKEN_ID = "widget-8ab0028ead1b"
ALL = len(archiving.STEPS)


@pytest.fixture(autouse=True)
def ledger() -> Iterator[lk.Ledger]:
    with lk.connect("local") as opened:
        yield opened
    lk.disconnect()
    w.Widget.close_all()


@pytest.fixture
def panel() -> ArchiveFlow:
    return lk.widgets.ArchiveFlow(*ASKED)


class Gate:
    """Holds a step back until a test lets it go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        self.reached, self.opened, self.ended = (threading.Event() for _ in range(3))
        original = getattr(flow._Flow, step)

        def held(*asked: Any) -> Any:
            self.reached.set()
            self.opened.wait(60)
            value = original(*asked)
            self.ended.set()
            return value

        monkeypatch.setattr(flow._Flow, step, held)


def states(panel: ArchiveFlow) -> list[str]:
    return panel.frames["steps"]["state"].tolist()


def minted(ledger: lk.Ledger) -> bool:
    place: dict[str, Any] = {"target": ledger, "at": "optimistic"}
    return archiving.find_token(TOKEN_ID, "stamps.grace.near", **place).token is not None


def test_every_step_is_shown_when_it_begins(
    panel: ArchiveFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pending, running, done; the sentence names the step, and the table what was found."""
    told: list[tuple[str, list[str], str]] = []
    show = panel._show

    def shown(content: Content) -> None:
        show(content)
        if content.frames:
            told.append((panel.content.message, states(panel), panel.static()))

    monkeypatch.setattr(panel, "_show", shown)
    panel.press()

    places = [*range(6), 5, 6, 7]  # the mint is shown again once it is sent
    for place, (status, now, _) in zip(places, told[:-1], strict=True):
        assert status == _html.status(f"Step {place + 1} of {ALL}: {archiving.STEPS[place]}…")
        assert now == [*["done"] * place, "running", *["pending"] * (ALL - 1 - place)]
    assert "written in block 180000013" in told[2][2]
    assert TOKEN_ID in told[3][2]
    assert "sent by grace.near, stage included" in told[6][2]
    assert states(panel) == ["done"] * ALL
    assert panel.content.message == _html.status(archiving.OUTCOMES["archived"])


def test_while_it_runs_only_cancel_can_be_pressed(
    panel: ArchiveFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The button rests, Enter begins no second flow, and the keyboard finds Cancel open."""
    gate = Gate(monkeypatch, "read_source")
    front = FrontEnd(panel)
    seen: list[Any] = []

    async def act() -> None:
        front.press()
        await until(gate.reached.is_set)
        running = panel._task
        front.press()
        seen.append((front.panel["is_busy"], panel._task is running))
        seen.append(states(panel)[:3])
        gate.opened.set()
        await panel.wait()

    asyncio.run(act())

    assert seen == [(True, True), ["done", "running", "pending"]]
    assert front.panel["is_busy"] is False
    assert states(panel) == ["done"] * ALL


def cancelled(panel: ArchiveFlow, gate: Gate) -> None:
    """Archive, cancel at a gate, and let the step that runs end."""
    front = FrontEnd(panel)

    async def act() -> None:
        front.press()
        await until(gate.reached.is_set)
        front.cancel()
        await panel.wait()
        gate.opened.set()
        await until(gate.ended.is_set)

    asyncio.run(act())


def test_cancel_before_the_mint_mints_nothing(
    panel: ArchiveFlow, ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step that runs is the last; the panel says that nothing was minted, and goes on."""
    with monkeypatch.context() as patch:
        cancelled(panel, Gate(patch, "has_changed"))

    told = "Cancelled. Nothing was minted. Archive the widget again to finish."
    assert panel.content.message == _html.status(told)
    assert states(panel) == [*["done"] * 4, "cancelled", *["not_taken"] * 3]
    assert "cancelled" in panel.static()
    assert panel.result is None
    assert panel.is_busy is False
    assert not minted(ledger)

    panel.press()
    assert panel.result is not None
    assert panel.result["outcome"].tolist() == ["archived"]


def test_cancel_while_it_is_being_minted_loses_no_mint(
    panel: ArchiveFlow, ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mint goes on unseen, which the panel says; taken again, the flow finds that token."""
    with monkeypatch.context() as patch:
        cancelled(panel, Gate(patch, "send_mint"))

    assert f"Token {TOKEN_ID} may have been minted." in panel.content.message
    assert "an existing token is found, and not minted twice." in panel.content.message
    ledger.world.settle()
    assert minted(ledger)

    panel.press()
    assert panel.result is not None
    assert panel.result["outcome"].tolist() == ["already_archived"]


def test_cancel_after_the_mint_was_sent_names_its_transaction(
    panel: ArchiveFlow, ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`value` keeps what was sent, with its hash, which `resume` follows."""
    with monkeypatch.context() as patch:
        cancelled(panel, Gate(patch, "follow_mint"))

    sent = panel.value.submission
    assert f"transaction {sent.tx_hash}." in panel.content.message
    assert panel.frames["steps"]["tx_hash"].dropna().tolist() == [sent.tx_hash]
    followed = lk.track(sent.tx_hash, "grace.near", ledger=ledger, timeout_s=0).wait("FINAL")
    assert followed.fully_succeeded is True


def test_cancel_before_the_first_step_says_so(panel: ArchiveFlow) -> None:
    """A press that is taken back at once has asked nothing."""
    front = FrontEnd(panel)

    async def act() -> None:
        front.press()
        await asyncio.sleep(0)
        front.cancel()
        await panel.wait()

    asyncio.run(act())

    message = "Cancelled before the first step. Nothing was minted."
    assert panel.content.message == _html.status(message)
    assert (panel.result, panel.frames) == (None, {})


def test_a_step_that_fails_is_shown_with_its_reason(panel: ArchiveFlow) -> None:
    """The error with its remedy, and the steps up to the one that failed."""
    panel.fields["collection"].value = "counter.near"
    panel.press()

    assert isinstance(panel.error, errors.ContractMethodNotFoundError)
    assert 'role="alert"' in panel.content.message
    assert "Nothing was minted. Archive the widget again to finish." in panel.content.message
    assert states(panel) == [*["done"] * 3, "failed", *["not_taken"] * 4]
    assert _html.text(panel.frames["steps"]["detail"][3]) in panel.static()
    assert panel.result is None


def test_a_field_that_is_wrong_shows_no_steps(panel: ArchiveFlow) -> None:
    """Nothing was asked, so that nothing is told of it."""
    panel.press()
    panel.fields["receiver_id"].value = "Alice"
    panel.press()

    assert isinstance(panel.error, errors.InvalidRequestError)
    assert (panel.frames, panel.value, panel.content.pages) == ({}, None, ())
