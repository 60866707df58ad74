"""Panels without a front end: what a person types and clicks, and what comes of it."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import pickle
import re
import subprocess
import sys
import threading
import warnings
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import client, errors, units, user_warnings
from ledgerkit.localnet import Contract, view
from ledgerkit.widgets import _downloads, _html, _panel, contracts, gallery, transactions
from ledgerkit.widgets._panel import Page, Panel, PanelResult

w = pytest.importorskip("ipywidgets")
embed = pytest.importorskip("ipywidgets.embed")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
MOST = 2**128 - 1
ALICES = 340282366920926463463374607431768211454  # of moon.near
PLANTED = "planted-key-8c1f0a77"
HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def ledger() -> Iterator[lk.Ledger]:
    """Open the world "demo"."""
    with lk.connect("local") as opened:
        yield opened
    lk.disconnect()


@pytest.fixture(autouse=True)
def _no_widget_left() -> Iterator[None]:
    """Begin and end each test without a widget."""
    yield
    w.Widget.close_all()


def typed(field: Any, text: str) -> None:
    """Type a text: the front end sends the field's new value."""
    data = {"method": "update", "state": {"value": text}, "buffer_paths": []}
    field._handle_msg({"content": {"data": data}, "buffers": []})


def entered(field: Any) -> None:
    """Press Enter in a field."""
    field._handle_custom_msg({"event": "submit"}, [])


def clicked(button: Any) -> None:
    """Click a button."""
    button._handle_custom_msg({"event": "click"}, [])


class Slow(Panel):
    """A panel whose answer comes when a test lets it."""

    title = "Slow"

    def __init__(self) -> None:
        super().__init__({"name": _panel.text_box("Name")})
        self.asked: list[str] = []
        self.gates: dict[str, threading.Event] = {}

    def _read(self, asked: dict[str, Any], _: lk.Ledger) -> PanelResult:
        self.asked.append(asked["name"])
        gate = self.gates.get(asked["name"])
        if gate is not None:
            gate.wait(10)
        frame = pd.DataFrame({"name": [asked["name"]]})
        page = Page("One", _html.table(frame), frame)
        return PanelResult(f"found {asked['name']}", frame, (page,))


async def until(true: Callable[[], bool]) -> None:
    """Wait for something, ten seconds at most."""
    for _ in range(1_000):
        if true():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it never came true")


# The course of one question ---------------------------------------------------------------


def test_enter_and_clicks_make_one_question():
    """Enter and two clicks at once ask once."""
    panel = Slow()

    async def act():
        typed(panel.fields["name"], "alice")
        entered(panel.fields["name"])
        clicked(panel.button)
        clicked(panel.button)
        return await panel.wait()

    frame = asyncio.run(act())

    assert panel.asked == ["alice"]
    assert frame["name"].tolist() == ["alice"]


def test_a_click_that_overtakes_the_text_reads_the_text():
    """The field's value may arrive after the click, and is asked for all the same."""
    panel = Slow()

    async def act():
        clicked(panel.button)
        typed(panel.fields["name"], " late.near ")
        await panel.wait()

    asyncio.run(act())

    assert panel.asked == ["late.near"]


def test_while_it_runs_cancel_is_open_and_the_button_is_not():
    """The panel shows that it is busy, and is ready again afterwards."""
    panel = Slow()
    gate = panel.gates["a"] = threading.Event()
    seen = []

    async def act():
        typed(panel.fields["name"], "a")
        clicked(panel.button)
        await until(lambda: bool(panel.asked))
        seen.append((panel.button.disabled, panel.stop.disabled, panel.status.value))
        gate.set()
        await panel.wait()

    asyncio.run(act())

    assert seen == [(True, False, _html.status("Loading…"))]
    assert (panel.button.disabled, panel.stop.disabled) == (False, True)
    assert panel.status.value == _html.status("found a")


def test_cancel_leaves_nothing_behind():
    """After Cancel the answer that still comes is dropped."""
    panel = Slow()
    gate = panel.gates["a"] = threading.Event()

    async def act():
        typed(panel.fields["name"], "a")
        clicked(panel.button)
        await until(lambda: bool(panel.asked))
        clicked(panel.stop)
        await panel.wait()
        gate.set()

    asyncio.run(act())

    assert "Cancelled." in panel.status.value
    assert (panel.result, panel.results.children) == (None, ())
    assert (panel.button.disabled, panel.stop.disabled) == (False, True)


def test_a_second_question_takes_the_first_ones_place():
    """The first answer arrives last, and is not shown."""
    panel = Slow()
    gate = panel.gates["first"] = threading.Event()

    async def act():
        typed(panel.fields["name"], "first")
        entered(panel.fields["name"])
        await until(lambda: panel.asked == ["first"])
        typed(panel.fields["name"], "second")
        entered(panel.fields["name"])
        await panel.wait()
        gate.set()
        await asyncio.sleep(0.05)

    asyncio.run(act())

    assert panel.asked == ["first", "second"]
    assert panel.result is not None
    assert panel.result["name"].tolist() == ["second"]
    assert "found second" in panel.status.value
    assert panel.button.disabled is False


def test_without_a_loop_a_click_waits():
    """In a plain script there is nobody to answer later."""
    panel = Slow()
    panel.fields["name"].value = "a"

    clicked(panel.button)

    assert panel.asked == ["a"]
    assert panel.press() is panel


def test_an_old_answer_does_not_stand_under_a_new_question():
    """A failure leaves neither a frame nor a table of the answer before."""
    panel = lk.widgets.AccountExplorer("alice.near").press()
    panel.fields["account_id"].value = "Not an id"

    panel.press()

    assert panel.result is None
    assert panel.frames == {}
    assert panel.results.children == ()
    assert isinstance(panel.error, errors.InvalidRequestError)


def test_answers_that_are_replaced_are_closed():
    """Asking again and again keeps no widgets of the answers before."""
    panel = lk.widgets.AccountExplorer("alice.near").press()
    before = len(w.widgets.widget._instances)

    for _ in range(3):
        panel.press()

    assert len(w.widgets.widget._instances) == before


def test_the_open_tab_stays_open():
    """Who looks at the tokens of one account sees the tokens of the next one."""
    panel = lk.widgets.AccountExplorer("alice.near").press()
    panel.results.children[0].selected_index = 1
    panel.fields["account_id"].value = "bob.near"

    panel.press()

    assert panel.results.children[0].selected_index == 1


# What is shown ----------------------------------------------------------------------------


def test_an_error_says_what_happened_and_what_to_do():
    """The sentence and the remedy are read out, escaped."""
    panel = lk.widgets.AccountExplorer("<b>").press()

    assert panel.status.value == (
        '<div role="alert"><strong>account_id &#x27;&lt;b&gt;&#x27; is not valid: expected 2 '
        "to 64 characters: a-z, 0-9, and single - _ . between them.</strong></div>"
    )
    assert repr(panel) == "<AccountExplorer: InvalidRequestError>"


def test_what_nobody_expected_is_shown_too(monkeypatch):
    """An exception in a handler would be seen by nobody."""
    panel = Slow()
    monkeypatch.setattr(panel, "_read", lambda *_: 1 / 0)

    async def act():
        clicked(panel.button)
        await panel.wait()

    asyncio.run(act())

    assert "<strong>ZeroDivisionError: division by zero</strong>" in panel.status.value
    assert panel.button.disabled is False


def test_a_warning_of_the_embedded_ledger_is_shown():
    """That an account lives elsewhere, if anywhere, stands in the panel."""
    panel = lk.widgets.AccountExplorer("nobody.near").press()

    assert "nobody.near on local is not indexed." in panel.status.value
    assert panel.status.value.count("has no account nobody.near") == 1
    assert "Use connect(&quot;mainnet&quot;)" in panel.status.value


def test_an_account_that_is_not_indexed_is_counted_apart():
    """Of an account of which nothing is known the panels say so, and no class."""
    panel = lk.widgets.StakingExposure(["alice.near", "nobody.near"]).press()
    bars = re.findall(r'<th scope="row">(\w+)</th>.*?<td>(\d+)</td>', panel.static())
    assert dict(bars) == {
        "mixed": "1",
        "direct_only": "0",
        "liquid_only": "0",
        "no_visible_staking_position": "0",
        "not_indexed": "1",
    }
    account = lk.widgets.AccountExplorer("nobody.near").press().static()
    assert re.search(r"Staking exposure: <strong[^>]*>not_indexed<", account)


def test_who_answers_is_said_where_nobody_chose():
    """Without a ledger the embedded one answers, and the panel says so."""
    lk.disconnect()
    panel = lk.widgets.StakingExposure(["carol.near"]).press()
    lk.disconnect()

    assert "connect() was not called: using the embedded ledger (world demo)" in panel.status.value


def test_warnings_are_collected_by_thread():
    """A warning is added to the list of its own thread, and the process's filters stay."""
    before, hook = list(warnings.filters), warnings.showwarning
    inside, leave, others = threading.Event(), threading.Event(), []

    def other() -> None:
        with user_warnings.collect_warnings() as messages:
            inside.set()
            leave.wait(10)
            user_warnings.warn("there", 1)
            others.append(list(messages))

    thread = threading.Thread(target=other)
    with user_warnings.collect_warnings() as messages:
        thread.start()
        inside.wait(10)
        user_warnings.warn("here", 1)
    leave.set()
    thread.join()

    assert (messages, others) == (["here"], [["there"]])
    assert (list(warnings.filters), warnings.showwarning) == (before, hook)


def test_warnings_outside_a_collection_are_issued():
    """They name the line of the caller, and those of other packages are never collected."""
    with user_warnings.collect_warnings() as messages, pytest.warns(UserWarning, match="else"):
        warnings.warn("else", stacklevel=1)

    with pytest.warns(UserWarning, match="own") as issued:
        user_warnings.warn("own", 1)

    assert messages == []
    assert issued[0].filename == __file__


def test_static_html_stands_in_for_the_widgets():
    """Where no front end runs there is a table; where one does there are widgets."""
    panel = lk.widgets.AccountExplorer("alice.near")
    assert "No request yet." in panel._repr_mimebundle_()["text/html"]

    bundle = panel.press()._repr_mimebundle_()

    view_type = "application/vnd.jupyter.widget-view+json"
    assert set(bundle) == {"text/plain", "text/html", view_type}
    assert bundle["text/plain"] == repr(panel)
    assert repr(panel) == (
        "<AccountExplorer: alice.near on local: 7 tokens, 2 NFT collections, 2 pools.>"
    )
    assert f'<td class="number">{ALICES}</td>' in bundle["text/html"]
    assert "data:" not in bundle["text/html"]


def test_static_html_is_the_same_each_time():
    """Two askings give the same bytes, so that a stored notebook does not change."""
    panel = lk.widgets.AccountExplorer("alice.near")

    assert panel.press().static() == panel.press().static()


PANELS: list[Callable[[], Panel]] = [
    lk.widgets.NetworkPicker,
    lk.widgets.AccountExplorer,
    lk.widgets.KeyLookup,
    lk.widgets.TransactionExplorer,
    lk.widgets.StakingExposure,
    lk.widgets.ContractViewer,
    lk.widgets.NftGallery,
    lk.widgets.SendForm,
    lk.widgets.ArchiveFlow,
]


@pytest.mark.parametrize("make", PANELS, ids=range(len(PANELS)))
def test_fields_have_labels_and_come_before_the_buttons(make):
    """Tab walks through the fields, then the button, then Cancel; each has its words."""
    panel = make()
    order = [child for child in panel.view.children if not isinstance(child, w.HTML)]
    fields, row = list(panel.fields.values()), panel.button
    at = next(i for i, child in enumerate(order) if row in getattr(child, "children", ()))

    assert order[: len(fields)] == fields
    assert all(child.description for child in order[:at])
    assert order[at].children[0] is panel.button
    assert order[at].children[-1] is panel.stop
    assert all(button.description and button.tooltip for button in order[at].children)
    assert panel.stop.disabled is True


@pytest.mark.parametrize("make", PANELS, ids=range(len(PANELS)))
def test_enter_in_each_line_begins(make, monkeypatch):
    """Every field of one line takes Enter."""
    panel = make()
    begun: list[object] = []
    monkeypatch.setattr(panel, "_start", begun.append)
    boxes = [c for c in panel.view.children if isinstance(c, w.Text)]

    for box in boxes:
        entered(box)

    assert len(begun) == len(boxes)


# Hostile texts ----------------------------------------------------------------------------


class Trap(Contract):
    """A contract whose every text is markup, and one of them a megabyte."""

    @view
    def ft_metadata(self) -> dict[str, Any]:
        """Tell markup as a token's metadata."""
        return {"spec": "ft-1.0.0", "name": HOSTILE, "symbol": HOSTILE, "decimals": 6}

    @view
    def nft_tokens_for_owner(self, account_id: str, from_index: str, limit: int) -> list[Any]:
        """List a token whose texts are markup."""
        told = {"title": HOSTILE, "description": HOSTILE + "a" * 1_000_000, "media": HOSTILE}
        token = {"token_id": HOSTILE, "owner_id": account_id, "metadata": told}
        return [token][:limit] if from_index == "0" else []


def html_of(widget: Any) -> Iterator[str]:
    """Collect every text below a widget that a front end reads as HTML."""
    if isinstance(widget, w.HTML | w.HTMLMath):
        yield widget.value
    for child in getattr(widget, "children", ()):
        yield from html_of(child)


def harmless(panel: Panel) -> bool:
    """Tell whether a panel shows hostile texts, and as text only."""
    shown = "".join(html_of(panel.view)) + panel.static()
    return "&lt;script&gt;" in shown and "<script" not in shown and "<img" not in shown


def test_a_hostile_token_is_only_text(ledger):
    """Markup in an NFT's title, id and media shows as text; a megabyte is cut."""
    ledger.world.deploy("trap.near", Trap)
    panel = lk.widgets.NftGallery("alice.near", "trap.near", pictures=True).press()

    assert panel.result is not None
    assert panel.result["title"].tolist() == [HOSTILE]
    assert len(panel.result["description"].iloc[0]) == 1_000_000 + len(HOSTILE)
    assert harmless(panel)
    assert len(panel.static()) < 10_000


def test_a_hostile_answer_is_only_text(ledger):
    """A view call's answer shows as text."""
    ledger.world.deploy("trap.near", Trap)

    assert harmless(lk.widgets.ContractViewer("trap.near", "ft_metadata").press())


def hostile_answer(request: httpx.Request) -> httpx.Response:
    """Answer as an indexer that puts markup into every text."""
    pools = [{"pool_id": HOSTILE, "last_update_block_height": 1}]
    if "public_key" in request.url.path:
        return httpx.Response(200, json={"account_ids": [HOSTILE]})
    body = {
        "tokens": [{"contract_id": HOSTILE, "balance": "1", "last_update_block_height": 1}],
        "nfts": [{"contract_id": HOSTILE, "last_update_block_height": 1}],
        "pools": pools,
        "state": {"balance": "1", "locked": "0", "storage_bytes": 1},
    }
    return httpx.Response(200, json=body)


@pytest.mark.parametrize(
    "make",
    [
        lambda hostile: lk.widgets.AccountExplorer("a.near", details=False, ledger=hostile),
        lambda hostile: lk.widgets.KeyLookup("ed25519:" + "1" * 32, ledger=hostile),
    ],
    ids=["account", "key"],
)
def test_a_hostile_indexer_is_only_text(make):
    """Markup in place of account ids shows as text."""
    with lk.connect("lab", transport=httpx.MockTransport(hostile_answer)) as hostile:
        panel = make(hostile).press()
    lk.disconnect()

    assert panel.error is None
    assert harmless(panel)


def test_what_does_not_print_is_shown():
    """A change of writing direction can't make one id look like another."""
    assert _html.text("a\u202eb\x00c") == r"a\u202eb\x00c"


@pytest.mark.parametrize(
    ("media", "shown"),
    [
        ("https://example.com/a.png", True),
        ("data:image/png;base64,AAAA", True),
        ("http://example.com/a.png", False),
        ("data:image/svg+xml;base64,AAAA", False),
        ("data:text/html;base64,AAAA", False),
        ("javascript:alert(1)", False),
        ("A-1.svg", False),
        ("https://", False),
        ("https://[", False),
        ("https://example.com/\u202egnp.a", False),
        ("data:image/png;base64," + "A" * 200_000, False),
    ],
)
def test_only_pictures_that_run_nothing_load(media, shown):
    """A picture loads from https or from data of a pixel format, and from nowhere else."""
    assert gallery.picture_source(media) == (media if shown else None)


def test_pictures_load_when_asked_for():
    """Without the tick no address of the chain is in any attribute."""
    row = dict.fromkeys(lk.schema("nft_tokens")["name"])
    frame = pd.DataFrame([{**row, "token_id": "1", "media": 'https://e.com/"onload="x'}])

    assert "<img" not in gallery.cards(frame)
    assert 'src="https://e.com/&quot;onload=&quot;x">' in gallery.cards(frame, pictures=True)


# Secrets ----------------------------------------------------------------------------------


def states() -> str:
    """Write the state of every widget, as a saved notebook and an exported page hold it."""
    found = list(w.widgets.widget._instances.values())
    manager = w.Widget.get_manager_state(widgets=found)
    page = embed.embed_data(views=[one for one in found if isinstance(one, w.DOMWidget)])
    return json.dumps([manager, page], default=repr)


def test_a_key_that_is_typed_is_in_no_state():
    """Before, while and after it is used a key is in no widget, page, text or pickle."""
    picker = lk.widgets.NetworkPicker("testnet")
    typed(picker.key.box, PLANTED)

    assert picker.key.secret.reveal() == PLANTED
    told = [states(), repr(picker), repr(picker.key), picker.static(), repr(vars(picker.key))]
    assert [text for text in told if PLANTED in text] == []
    assert picker.key.box.value == ""
    with pytest.raises(TypeError):
        pickle.dumps(picker.key.secret)


def test_the_front_end_is_told_that_the_field_is_empty(monkeypatch):
    """What was typed is taken out of the page's own copy too."""
    secret = lk.widgets.NetworkPicker().key
    sent = []
    monkeypatch.setattr(secret.box, "_send", lambda message, **_: sent.append(message))

    typed(secret.box, PLANTED)

    states = [m["state"] for m in sent if m["method"] == "update"]
    assert {"value": ""}.items() <= {k: v for s in states for k, v in s.items()}.items()
    assert PLANTED not in json.dumps(sent)  # nor repeated to other front ends


def test_a_key_goes_to_the_network_it_was_typed_for(monkeypatch):
    """The chosen network gets the key once; the next one gets none, the embedded one never."""
    given: list[tuple[str, str | None]] = []
    real = client.connect

    def connect(name: str, *, api_key: str | None = None) -> lk.Ledger:
        given.append((name, api_key))
        return real("local")

    monkeypatch.setattr(client, "connect", connect)
    picker = lk.widgets.NetworkPicker("testnet")
    typed(picker.key.box, PLANTED)
    picker.press().press()
    picker.fields["network"].value = "local"
    typed(picker.key.box, PLANTED)
    picker.press()
    lk.disconnect()

    assert given == [("testnet", PLANTED), ("testnet", None), ("local", None)]
    assert picker.key.is_entered is False
    assert PLANTED not in states()


def test_a_key_that_cannot_be_one_is_not_shown():
    """The message about a malformed key does not hold it."""
    picker = lk.widgets.NetworkPicker("testnet")
    typed(picker.key.box, PLANTED + "é")

    picker.press()
    lk.disconnect()

    assert "api_key is not a text of printable ASCII" in picker.status.value
    assert PLANTED not in states() + repr(picker)


# Without the library ----------------------------------------------------------------------


def test_without_ipywidgets_the_extra_is_named(monkeypatch):
    """Who lacks ipywidgets is told what to install."""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)

    with pytest.raises(errors.InvalidRequestError) as caught:
        lk.explore()

    assert str(caught.value) == ('A panel needs ipywidgets: pip install "ledgerkit[notebook]".')


def test_ipywidgets_load_with_the_first_panel():
    """The modules alone load nothing to draw with."""
    code = (
        "import sys, ledgerkit.widgets\n"
        "print([n for n in ('ipywidgets', 'matplotlib', 'IPython') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True
    )

    assert done.stdout == "[]\n"


# Each panel -------------------------------------------------------------------------------


def test_the_account_panel_gives_the_verbs_frames():
    """Each tab's frame is what its verb gives; `.result` is the account's own row."""
    panel = lk.widgets.AccountExplorer("alice.near").press()

    assert list(panel.frames) == ["account", "ft", "nft", "staking", "exposure"]
    assert panel.result is not None
    pd.testing.assert_frame_equal(panel.result, lk.accounts("alice.near"))
    pd.testing.assert_frame_equal(panel.frames["ft"], lk.ft("alice.near", metadata=True))
    staking = lk.staking("alice.near", positions=True)
    pd.testing.assert_frame_equal(panel.frames["staking"], staking)
    assert panel.results.children[0].titles == ("Account", "Tokens", "NFTs", "Staking")
    assert '<strong class="badge" style="border-color:#0072B2">mixed</strong>' in panel.static()


def test_the_account_panel_can_leave_contracts_alone():
    """Without details the indexer alone is asked."""
    panel = lk.widgets.AccountExplorer("alice.near", details=False).press()

    assert list(panel.frames["ft"]) == list(lk.schema("ft")["name"])
    assert list(panel.frames["staking"]) == list(lk.schema("staking")["name"])


def test_an_account_that_holds_nothing_is_no_error():
    """Nothing held is said, not hidden."""
    panel = lk.widgets.AccountExplorer("dave.near").press()

    assert panel.error is None
    assert "no_visible_staking_position" in panel.static()
    assert "<h4>Staking</h4><p>None.</p>" in panel.static()


def test_a_key_leads_to_its_accounts_and_they_open():
    """The accounts of a key are offered, and the chosen one is looked up below."""
    key = lk.keys("alice.near")["public_key"].iloc[0]
    panel = lk.widgets.KeyLookup(key, include_limited=True)
    assert panel.open.disabled is True

    panel.press()
    frame = lk.accounts_of(key, include_limited=True)
    assert list(panel.chosen.options) == frame["account_id"].tolist()
    panel.chosen.value = "alice.near"
    clicked(panel.open)

    assert panel.account.result is not None
    assert panel.account.result["account_id"].tolist() == ["alice.near"]


def story(ledger: lk.Ledger, told: str) -> Any:
    """Find the transaction that a story of the world is about."""
    return next(tx for tx in ledger.world.summary.transactions if tx.description == told)


def test_a_transaction_shows_verdict_tree_and_receipts(ledger):
    """The failed receipt stands out below the one that made it, with its reason."""
    found = story(ledger, "a swap that is refunded: the exchange is paused")
    panel = lk.widgets.TransactionExplorer(found.tx_hash, found.signer_id).press()
    lines = re.findall(r"<li[^>]*>(.*?)</li>", panel.static())

    assert panel.result is not None
    pd.testing.assert_frame_equal(panel.result, panel.value.receipts)
    assert "succeeded_with_failed_receipts</strong>" in panel.static()
    assert len(lines) == 6
    assert unescape(lines[0]).startswith("ivan.near → gold.near: <code>ft_transfer_call()</code>")
    assert "<strong>failed: Smart contract panicked: the contract is paused</strong>" in lines[1]
    assert lines[2].startswith("↳ system → ivan.near: <code>refund of ")


def test_a_transaction_tells_its_story_and_draws_its_timeline(ledger):
    """The story stands under the verdict; the picture has words, and is no part of the page."""
    pytest.importorskip("matplotlib")
    found = story(ledger, "a swap that is refunded: the exchange is paused")
    panel = lk.widgets.TransactionExplorer(found.tx_hash, found.signer_id).press()
    shown = "".join(html_of(panel.results))

    assert _html.prose(panel.value.explain()) in panel.static()
    assert 'alt="Timeline of 6 receipts by shard and block" src="data:image/png' in shown
    assert "data:image" not in panel.static()


def test_a_deep_tree_is_written_to_its_limit():
    """A chain of 2,000 receipts is no recursion; the first 300 are lines."""
    rows = [
        {
            "receipt_id": str(at),
            "parent_id": str(at - 1) if at else None,
            "depth": at,
            "status": "success_value",
            "kind": "action",
            "predecessor_id": "a.near",
            "receiver_id": "b.near",
            "method_name": "go",
            "block_height": at,
        }
        for at in range(2_000)
    ]
    text = transactions.receipt_tree(pd.DataFrame(rows))

    assert text.count("<li") == 300
    assert text.endswith("<p>… and 1,700 more receipts</p>")
    assert "margin-left:40em" in text
    assert "margin-left:42em" not in text


def test_accounts_are_classed_and_counted():
    """Every class has its bar, the empty ones too; what was not read has a table."""
    panel = lk.widgets.StakingExposure(["alice.near", "bob.near", "carol.near"]).press()
    assert panel.result is not None
    found = dict(zip(panel.result["account_id"], panel.result["exposure_class"], strict=True))
    bars = re.findall(r'<th scope="row">(\w+)</th>.*?<td>(\d+)</td>', panel.static())

    assert found == {
        "alice.near": "mixed",
        "bob.near": "direct_only",
        "carol.near": "liquid_only",
    }
    assert bars == [
        ("mixed", "1"),
        ("direct_only", "1"),
        ("liquid_only", "1"),
        ("no_visible_staking_position", "0"),
    ]


def test_accounts_stand_on_lines_or_between_commas():
    """The field tells its text when it is left, not letter by letter; the button asks."""
    panel = lk.widgets.StakingExposure()
    box = panel.fields["account_ids"]
    assert box.continuous_update is False

    typed(box, "alice.near, bob.near\n\n carol.near;")
    assert panel.result is None
    clicked(panel.button)

    assert panel.result is not None
    assert panel.result["account_id"].tolist() == ["alice.near", "bob.near", "carol.near"]


def test_no_account_is_said():
    """An empty field asks nothing."""
    panel = lk.widgets.StakingExposure().press()

    assert "account_ids is required: one account per line" in panel.status.value


def test_a_view_call_is_decoded_and_framed():
    """An object is a row a member, and the value stays as decoded."""
    panel = lk.widgets.ContractViewer("wrap.near", "ft_metadata").press()

    assert panel.value["symbol"] == "wNEAR"
    assert panel.result is not None
    assert dict(panel.result.to_numpy().tolist())["decimals"] == 24


def test_arguments_are_sent_as_typed():
    """A balance comes back for the account that was typed; what is no JSON is refused."""
    args = '{"account_id": "alice.near"}'
    panel = lk.widgets.ContractViewer("moon.near", "ft_balance_of", args).press()
    assert panel.value == str(ALICES)

    panel.fields["args"].value = "{account_id}"
    panel.press()

    assert panel.result is None
    assert "is not valid: expected JSON, such as" in panel.status.value


@pytest.mark.parametrize(
    ("text", "sent"),
    [("", b"{}"), ('{"n": 0.10}', b'{"n": 0.10}'), (f"[{MOST}]", f"[{MOST}]".encode())],
)
def test_numbers_in_arguments_stay_as_typed(text, sent):
    """No number passes through a float on its way."""
    assert contracts.json_bytes(text) == sent


@pytest.mark.parametrize(
    ("value", "columns"),
    [
        ([{"a": MOST}, {"b": 1}], {"a": [MOST, None], "b": [None, 1]}),
        ({"a": MOST}, {"name": ["a"], "value": [MOST]}),
        ([1, MOST], {"value": [1, MOST]}),
        ("x", {"value": ["x"]}),
        (None, {"value": [None]}),
        ([], {"value": []}),
        (b"\x00", {"value": [b"\x00"]}),
    ],
)
def test_any_answer_makes_a_frame(value, columns):
    """Integers of any size are exact, and a gap makes no float of them."""
    frame = contracts.result_frame(value)

    assert {name: frame[name].tolist() for name in frame} == columns
    assert [column.dtype for _, column in frame.items() if column.dtype != object] == []


def test_a_gallery_shows_all_collections():
    """Without a collection those that the indexer lists are asked."""
    panel = lk.widgets.NftGallery("alice.near").press()

    assert panel.result is not None
    assert sorted(panel.result["contract_id"]) == ["stamps.grace.near", "tickets.grace.near"]
    assert panel.static().count("<figure>") == 2
    assert "2 tokens of 2 collections on local." in panel.status.value


def test_what_is_no_collection_is_told():
    """A contract without NFTs is a row of its own, with its message."""
    panel = lk.widgets.NftGallery("alice.near", "gold.near").press()

    assert panel.error is None
    assert "0 tokens of 1 collection on local, 1 error." in panel.status.value
    assert panel.frames["errors"]["subject"].tolist() == ["gold.near"]


class Stamps(Contract):
    """A collection of one token, whose media continues its base address."""

    @view
    def nft_metadata(self) -> dict[str, Any]:
        """Tell the base address."""
        return {"spec": "nft-1.0.0", "name": "S", "symbol": "S", "base_uri": "https://e.com/s/"}

    @view
    def nft_tokens_for_owner(self, account_id: str, from_index: str, limit: int) -> list[Any]:
        """List three tokens: of a relative address, of a whole one, and without a picture."""
        told = {"1": "/A-1.png", "2": "https://o.com/b.png", "3": None}
        tokens = [
            {"token_id": token_id, "owner_id": account_id, "metadata": {"media": media}}
            for token_id, media in told.items()
        ]
        return tokens[:limit] if from_index == "0" else []


def test_media_continues_the_collections_base_address(ledger):
    """The card shows the picture at the whole address, and the frame has it beside the media."""
    ledger.world.deploy("base.near", Stamps)
    panel = lk.widgets.NftGallery("alice.near", "base.near", pictures=True).press()
    whole = ["https://e.com/s/A-1.png", "https://o.com/b.png"]

    assert panel.result is not None
    assert panel.result["media"].tolist()[:2] == ["/A-1.png", "https://o.com/b.png"]
    assert panel.result["media_url"].tolist()[:2] == whole
    assert pd.isna(panel.result["media_url"].iloc[2])
    assert re.findall(r'src="([^"]+)"', panel.static()) == whole
    tokens = lk.nft_tokens("alice.near", "base.near")
    pd.testing.assert_frame_equal(panel.result.drop(columns="media_url"), tokens)


@pytest.mark.parametrize(
    ("media", "base", "address"),
    [
        ("a.png", "https://e.com", "https://e.com/a.png"),
        ("/a.png", "https://e.com/", "https://e.com/a.png"),
        ("//o.com/a.png", "https://e.com", "https://e.com/o.com/a.png"),
        ("bafybei", "https://e.com/ipfs", "https://e.com/ipfs/bafybei"),
        ("https://o.com/a.png", "https://e.com", "https://o.com/a.png"),
        ("ipfs://bafybei", "https://e.com", "ipfs://bafybei"),
        ("javascript:x", "https://e.com", "javascript:x"),
        ("data:image/png;base64,AAAA", "https://e.com", "data:image/png;base64,AAAA"),
        ("a.png", None, "a.png"),
        ("", "https://e.com", ""),
    ],
)
def test_only_relative_media_continues_a_base(media, base, address):
    """A whole address stays as it is, whatever its scheme; which ones load is another rule."""
    assert gallery.media_address(media, base) == address


def test_one_is_no_plural():
    """One token of one collection, one account, one receipt."""
    shown = lk.widgets.NftGallery("alice.near", "stamps.grace.near").press()
    assert "1 token of 1 collection on local." in shown.status.value
    classified = lk.widgets.StakingExposure(["a.near"]).press()
    assert "1 account on local classified." in repr(classified)
    assert [units.count_text(n, "pool") for n in (0, 1, 1200)] == [
        "0 pools",
        "1 pool",
        "1,200 pools",
    ]
    table = _html.table(pd.DataFrame({"n": range(51)}))
    assert table.endswith("<p>… and 1 more row in .result</p>")


def test_numbers_stand_beside_their_names():
    """Only a column of nothing but numbers, and its name, stands to the right."""
    assert _html.facts([("n", 7)]) == (
        '<table class="facts"><tbody><tr><th scope="row">n</th><td>7</td></tr></tbody></table>'
    )
    shown = _html.table(pd.DataFrame({"a": [1, None], "b": [1, "x"]}, dtype=object))
    assert '<th scope="col" class="number">a</th><th scope="col">b</th>' in shown
    assert '<td class="number">1</td><td>1</td>' in shown
    assert '<td class="number"></td><td>x</td>' in shown


def test_the_network_panel_makes_the_sessions_default():
    """Who connects here is asked by every other panel, and by the verbs."""
    lk.disconnect()
    panel = lk.widgets.NetworkPicker().press()
    chosen = client.current()
    lk.disconnect()

    assert panel.value is chosen
    assert panel.result is not None
    assert panel.result["chain_id"].tolist() == ["localnet"]
    assert panel.fields["network"].options[0][1] == "mainnet"


# Saving -----------------------------------------------------------------------------------


def files(panel: Panel) -> dict[str, bytes]:
    """Take the files of the first page's links."""
    shown = "".join(html_of(panel.results))
    found = re.findall(r'download="[\w]+\.(\w+)" href="data:[\w./-]+;base64,([\w+/=]+)"', shown)
    return {kind: base64.b64decode(data) for kind, data in reversed(found)}


def test_a_table_is_saved_exactly(tmp_path):
    """CSV and Parquet hold every digit; a link and a file hold the same."""
    pytest.importorskip("pyarrow")
    panel = lk.widgets.ContractViewer("moon.near", "ft_total_supply").press()
    panel.result = pd.DataFrame({"n": pd.Series([MOST, None, ["a"]], dtype=object)})
    panel.save(tmp_path / "a.csv")
    panel.save(tmp_path / "a.parquet")

    assert (tmp_path / "a.csv").read_text() == f'n\n{MOST}\n""\n"[""a""]"\n'
    saved = pd.read_parquet(tmp_path / "a.parquet")
    assert saved["n"].tolist()[0] == str(MOST)
    assert pd.isna(saved["n"].iloc[1])
    assert files(panel)["csv"].decode() == f"value\n{MOST}\n"
    assert re.findall(r">(\w+)</a>", "".join(html_of(panel.results))) == ["CSV", "Parquet"]
    parquet = pd.read_parquet(io.BytesIO(files(panel)["parquet"]))
    assert parquet["value"].tolist() == [str(MOST)]


def test_other_columns_are_saved_as_they_are():
    """Only columns of Python objects become text."""
    frame = pd.DataFrame({"h": pd.Series([1, pd.NA], dtype="Int64"), "s": ["a", None]})

    assert _downloads.objects_as_text(frame).dtypes.equals(frame.dtypes)


def test_a_large_table_has_no_link():
    """What is too large for a page is saved in the next cell."""
    frame = pd.DataFrame({"a": range(5_001)})

    html = _downloads.links(frame, "a")

    assert html == "<p>Too large for a download link: save it with .save(path)</p>"


@pytest.mark.parametrize("name", ["a.xlsx", "a"])
def test_another_format_is_refused(name, tmp_path):
    """A path that ends otherwise, or a panel without an answer, is refused."""
    panel = lk.widgets.AccountExplorer("alice.near")
    with pytest.raises(errors.InvalidRequestError, match="press the button first"):
        panel.save(tmp_path / "a.csv")

    with pytest.raises(errors.InvalidRequestError, match=r"a path to \.csv or \.parquet"):
        panel.press().save(tmp_path / name)


def test_a_table_that_cannot_be_saved(tmp_path):
    """A place that cannot be written raises FileError, and what is no path InvalidRequestError."""
    panel = lk.widgets.ContractViewer("moon.near", "ft_total_supply").press()
    with pytest.raises(errors.FileError, match="Could not write"):
        panel.save(tmp_path / "no" / "a.csv")
    with pytest.raises(errors.InvalidRequestError, match="path 7 is not valid"):
        panel.save(7)  # type: ignore[arg-type]  # refused


# Sending ----------------------------------------------------------------------------------


def test_a_panel_sends_nothing_to_mainnet():
    """Neither the form nor the flow begins where the network is the public one."""
    given = httpx.MockTransport(lambda _: pytest.fail("something was asked"))
    with lk.connect("mainnet", transport=given) as mainnet:
        form = lk.widgets.SendForm("a.near", "b.near", "1 NEAR", ledger=mainnet).press()
    lk.disconnect()

    assert "Panels do not send transactions to mainnet." in form.status.value
    assert form.send.disabled is True


def test_what_is_previewed_is_sent_once():
    """Preview shows the transaction, Send sends that one, and a second click none."""
    form = lk.widgets.SendForm("alice.near", "bob.near", "1 NEAR").press()
    before = lk.accounts("bob.near", at="final")["balance"].iloc[0]
    assert form.result is not None
    meant = form.result["tx_hash"].iloc[0]
    assert form.send.disabled is False

    async def act():
        clicked(form.send)
        clicked(form.send)
        clicked(form.button)
        await form.wait()

    asyncio.run(act())

    assert form.submission.tx_hash == meant
    assert "<p>alice.near sent 1 NEAR to bob.near.</p>" in form.static()
    assert form.result["stage"].tolist()[-1] == "final"
    assert lk.accounts("bob.near", at="final")["balance"].iloc[0] == before + 10**24
    assert form.send.disabled is True


def test_a_changed_field_asks_for_a_new_preview():
    """What is sent is what was looked at."""
    form = lk.widgets.SendForm("alice.near", "bob.near", "1 NEAR").press()

    typed(form.fields["amount"], "2 NEAR")

    assert form.send.disabled is True
    form.submit()
    assert "Nothing was sent" in form.status.value
    assert form.submission is None


def test_a_failed_receipt_is_told():
    """That it was included is no success."""
    form = lk.widgets.SendForm("alice.near", "nosuch.near", "1 NEAR").press()

    form.submit()

    assert ": final, failed." in form.status.value
    assert "Account nosuch.near does not exist" in form.static()


def test_a_call_is_sent_with_its_arguments():
    """A method makes a call of it."""
    form = lk.widgets.SendForm("bob.near", "counter.near", "0 NEAR", method="increment").press()
    assert form.result is not None
    assert form.result["actions"].tolist() == ["FunctionCall"]
    assert '<th scope="row">method</th><td>increment</td>' in form.static()

    form.submit()

    assert form.submission.fully_succeeded is True


def test_a_secret_key_is_in_no_state(ledger):
    """The key signs the preview, and is nowhere to be read."""
    text = ledger.world.keys()["alice.near"]
    form = lk.widgets.SendForm("alice.near", "bob.near", "1 NEAR")
    typed(form.key.box, str(text))
    bare = str(text).partition(":")[2]

    form.press()
    shown = states() + repr(form) + form.static() + repr(form.key.secret)
    form.submit()

    assert form.submission.fully_succeeded is True
    assert bare not in shown + states()
    assert form.key.is_entered is False


def test_a_widget_is_archived_once():
    """The steps are told with their states; taking the flow again mints nothing."""
    asked = ("heidi.near", "Clock", "alice.near", "stamps.grace.near", "grace.near")
    panel = lk.widgets.ArchiveFlow(*asked).press()
    assert panel.result is not None
    assert panel.result["outcome"].tolist() == ["archived"]
    assert set(panel.frames["steps"]["state"]) == {"done"}

    panel.press()

    assert panel.result["outcome"].tolist() == ["already_archived"]
    assert panel.result["tx_hash"].isna().all()


# All of them ------------------------------------------------------------------------------


def test_the_explorer_joins_all_panels():
    """Each panel is a tab; the open one's frame is the explorer's."""
    explorer = lk.explore()

    assert list(explorer.view.titles) == [
        "Network",
        "Account",
        "Key",
        "Transaction",
        "Staking",
        "Contract",
        "NFTs",
        "Send",
        "Archive",
    ]
    explorer.select(explorer.account).fields["account_id"].value = "alice.near"
    explorer.account.press()
    assert explorer.selected is explorer.account
    assert explorer.result is explorer.account.result
    assert "<h3>Account</h3>" in explorer.static()
    assert "<h3>Key</h3>" not in explorer.static()


def test_a_key_found_in_the_explorer_opens_the_accounts_tab():
    """Opening an account switches to its tab and looks it up there."""
    explorer = lk.explore()
    explorer.select(explorer.key)
    explorer.key.fields["public_key"].value = lk.keys("bob.near")["public_key"].iloc[0]
    explorer.key.press().chosen.value = "bob.near"

    clicked(explorer.key.open)

    assert explorer.selected is explorer.account
    assert explorer.result is not None
    assert explorer.result["account_id"].tolist() == ["bob.near"]


def test_a_given_ledger_leaves_no_network_to_choose(ledger):
    """Panels over a ledger of one's own ask that one, whatever the session's default is."""
    with lk.connect("lab", transport=httpx.MockTransport(hostile_answer)):
        explorer = lk.explore(ledger=ledger)
        explorer.account.fields["account_id"].value = "alice.near"
        explorer.account.press()

    assert explorer.network is None
    assert "alice.near on local" in explorer.account.status.value
