"""Panels without a front end: what a person types and clicks, and what comes of it."""

from __future__ import annotations

import asyncio
import html
import json
import pickle
import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import client, errors, user_warnings
from ledgerkit.localnet import Contract, view
from ledgerkit.widgets import _html, contracts, gallery, search
from ledgerkit.widgets._blocks import Content, Page
from ledgerkit.widgets._panel import Field, Panel
from ledgerkit.widgets._table import Table
from tests import hostile, world_copies
from tests.local_transport import LocalTransport
from tests.unit.front_end import FrontEnd, until

w = pytest.importorskip("ipywidgets")
embed = pytest.importorskip("ipywidgets.embed")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
MOST = 2**128 - 1
ALICES = 340282366920926463463374607431768211454  # of moon.near
PLANTED = "planted-key-8c1f0a77"
UNASKED = httpx.MockTransport(lambda _: pytest.fail("a request was sent"))


@pytest.fixture(autouse=True)
def ledger() -> Iterator[lk.Ledger]:
    with lk.connect("local") as opened:
        yield opened
    lk.disconnect()


@pytest.fixture(autouse=True)
def _no_widget_left() -> Iterator[None]:
    """Begin and end each test without a widget."""
    yield
    w.Widget.close_all()


class Slow(Panel):
    """A panel whose result comes when a test opens its gate."""

    title = "Slow"

    def __init__(self) -> None:
        super().__init__({"name": Field("Name")})
        self.requests: list[str] = []
        self.gates: dict[str, threading.Event] = {}

    def _read(self, values: dict[str, Any], _: lk.Ledger) -> Content:
        self.requests.append(values["name"])
        gate = self.gates.get(values["name"])
        if gate is not None:
            gate.wait(60)
        frame = pd.DataFrame({"name": [values["name"]]})
        return Content(f"read {values['name']}", frame, (Page("One", Table(frame)),))


# One request ------------------------------------------------------------------------------


def test_enter_and_clicks_make_one_request():
    """Enter and two clicks at once send one request."""
    panel = Slow()
    front = FrontEnd(panel)

    async def act():
        for _ in range(3):
            front.type("name", " alice ")
            front.press()
        return await panel.wait()

    frame = asyncio.run(act())

    assert panel.requests == ["alice"]
    assert frame["name"].tolist() == ["alice"]


def test_while_it_runs_the_panel_is_busy():
    """The panel shows that it is busy, and is ready again afterwards."""
    panel = Slow()
    gate = panel.gates["a"] = threading.Event()
    front = FrontEnd(panel)
    seen = []

    async def act():
        front.type("name", "a")
        front.press()
        await until(lambda: bool(panel.requests))
        seen.append((front.panel["is_busy"], front.panel["message"], front.panel["pages"]))
        gate.set()
        await panel.wait()

    asyncio.run(act())

    assert seen == [(True, _html.status("Loading…"), [])]
    assert front.panel["is_busy"] is False
    assert front.panel["message"] == _html.status("read a")
    assert front.titles == ["One"]


def test_cancel_drops_the_result():
    """After Cancel the result that still comes is dropped."""
    panel = Slow()
    gate = panel.gates["a"] = threading.Event()
    front = FrontEnd(panel)

    async def act():
        front.type("name", "a")
        front.press()
        await until(lambda: bool(panel.requests))
        front.cancel()
        await panel.wait()
        gate.set()

    asyncio.run(act())

    assert front.panel["message"] == _html.status("Cancelled.")
    assert (panel.result, front.panel["pages"], front.panel["is_busy"]) == (None, [], False)


def test_a_second_request_replaces_the_first():
    """The first result arrives last, and is not shown."""
    panel = Slow()
    gate = panel.gates["first"] = threading.Event()
    front = FrontEnd(panel)

    async def act():
        front.type("name", "first")
        front.press()
        await until(lambda: panel.requests == ["first"])
        front.type("name", "second")
        front.press()
        await panel.wait()
        gate.set()
        await asyncio.sleep(0.05)

    asyncio.run(act())

    assert panel.requests == ["first", "second"]
    assert panel.result is not None
    assert panel.result["name"].tolist() == ["second"]
    assert front.panel["message"] == _html.status("read second")
    assert front.panel["is_busy"] is False


def test_without_an_event_loop_a_click_waits():
    """In a plain script the click returns when the result is there."""
    panel = Slow()
    front = FrontEnd(panel)
    front.type("name", "a")

    front.press()

    assert panel.requests == ["a"]
    assert panel.press() is panel


def test_a_failure_drops_the_result_before():
    """A failure leaves neither a frame nor a table of the result before."""
    panel = lk.widgets.AccountExplorer("alice.near").press()
    panel.fields["account_id"].value = "Not an id"

    panel.press()

    assert panel.result is None
    assert panel.frames == {}
    assert FrontEnd(panel).panel["pages"] == []
    assert isinstance(panel.error, errors.InvalidRequestError)


@pytest.mark.parametrize(
    "message",
    [
        None,
        "press",
        {},
        {"type": "unknown"},
        {"type": "press", "values": {"nosuch": 1, "name": 7}},
        {"type": "secret", "name": "nosuch", "text": "x"},
        {"type": "open", "kind": "nosuch", "id": "x"},
        {"type": "block", "at": [9, 9], "message": {}},
        {"type": "block", "at": "x"},
        {"type": "back"},
        {"type": "forward"},
    ],
)
def test_a_malformed_message_changes_no_field(message):
    """Whatever a page sends, a field holds a value of its own kind, and nothing raises."""
    panel = Slow()
    FrontEnd(panel)

    panel.window.receive(message)

    assert panel.fields["name"].value == ""


# What is shown ----------------------------------------------------------------------------


def test_an_error_says_what_happened_and_what_to_do():
    """The sentence and the remedy are read out, escaped."""
    panel = lk.widgets.AccountExplorer("<b>").press()

    assert panel.content.message == (
        '<div role="alert"><strong>account_id &#x27;&lt;b&gt;&#x27; is not valid: expected 2 '
        "to 64 characters: a-z, 0-9, and single - _ . between them.</strong></div>"
    )
    assert repr(panel) == "<AccountExplorer: InvalidRequestError>"


def test_what_nobody_expected_is_shown_too(monkeypatch):
    """An exception in a handler would be seen by nobody."""
    panel = Slow()
    monkeypatch.setattr(panel, "_read", lambda *_: 1 / 0)

    front = FrontEnd(panel)

    async def act():
        front.press()
        await panel.wait()

    asyncio.run(act())

    assert "<strong>ZeroDivisionError: division by zero</strong>" in front.panel["message"]
    assert front.panel["is_busy"] is False


def test_a_warning_of_the_embedded_ledger_is_shown():
    """An account of which nothing is known has no class, and may live elsewhere."""
    panel = lk.widgets.AccountExplorer("nobody.near").press()
    assert re.search(r"Staking exposure: <strong[^>]*>not indexed<", panel.static())

    assert "nobody.near on local is not indexed." in panel.content.message
    assert panel.content.message.count("has no account nobody.near") == 1
    assert "Use connect(&quot;mainnet&quot;)" in panel.content.message


def test_who_answers_is_said_where_nobody_chose():
    """Without a ledger the embedded one answers, and the panel says so."""
    lk.disconnect()
    panel = lk.widgets.StakingExposure(["carol.near"]).press()
    lk.disconnect()

    warning = "connect() was not called: using the embedded ledger (world demo)"
    assert warning in panel.content.message


def test_warnings_are_collected_by_thread():
    """A warning is added to the list of its own thread, and the process's filters stay."""
    before, hook = list(warnings.filters), warnings.showwarning
    inside, leave, others = threading.Event(), threading.Event(), []

    def other() -> None:
        with user_warnings.collect_warnings() as messages:
            inside.set()
            leave.wait(60)
            user_warnings.warn("there")
            others.append(list(messages))

    thread = threading.Thread(target=other)
    with user_warnings.collect_warnings() as messages:
        thread.start()
        inside.wait(60)
        user_warnings.warn("here")
    leave.set()
    thread.join()

    assert (messages, others) == (["here"], [["there"]])
    assert (list(warnings.filters), warnings.showwarning) == (before, hook)


def test_warnings_outside_a_collection_are_issued():
    """They name the line of the caller, and those of other packages are never collected."""
    with user_warnings.collect_warnings() as messages, pytest.warns(UserWarning, match="else"):
        warnings.warn("else", stacklevel=1)

    with pytest.warns(UserWarning, match="own") as issued:
        user_warnings.warn("own")

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
    assert f'title="{ALICES}"' in bundle["text/html"]
    assert "data:" not in bundle["text/html"]


PANELS: list[Callable[[], Panel]] = [
    lk.widgets.NetworkPicker,
    lk.widgets.AccountExplorer,
    lk.widgets.KeyLookup,
    lk.widgets.TransactionExplorer,
    lk.widgets.BlockExplorer,
    lk.widgets.Search,
    lk.widgets.StakingExposure,
    lk.widgets.StatementExplorer,
    lk.widgets.TokenExplorer,
    lk.widgets.ContractViewer,
    lk.widgets.NftGallery,
    lk.widgets.SendForm,
    lk.widgets.ArchiveFlow,
]


@pytest.mark.parametrize("make", PANELS, ids=range(len(PANELS)))
def test_every_field_and_button_has_a_label(make):
    """A screen reader names each field and each button; a button says what it does."""
    front = FrontEnd(make())
    fields = [*front.panel["fields"], *front.panel["secrets"]]

    assert [field for field in fields if not field["label"]] == []
    assert front.panel["action"]
    assert front.panel["tooltip"]
    assert [b for b in front.panel["buttons"] if not (b["label"] and b["tooltip"])] == []


# Pictures ---------------------------------------------------------------------------------


def test_only_pictures_that_run_nothing_load(subtests):
    """A picture loads from https or from data of a pixel format, and from nowhere else."""
    cases = [
        ("https://example.com/a.png", True),
        ("data:image/png;base64,AAAA", True),
        ("http://example.com/a.png", False),
        ("data:image/svg+xml;base64,AAAA", False),
        ("data:text/html;base64,AAAA", False),
        ("javascript:alert(1)", False),
        ("A-1.svg", False),
        ("https://", False),
        ("https://[", False),
        # Browsers load this one from a.example (WHATWG URL), urlsplit names b.example.
        ("https://a.example\\@b.example/x.png", False),
        ("https://example.com/\u202egnp.a", False),
        ("data:image/png;base64," + "A" * 200_000, False),
    ]
    for media, shown in cases:
        with subtests.test(media=media):
            assert gallery.picture_source(media) == (media if shown else None)


def test_a_picture_elsewhere_waits_for_a_click_that_names_its_host():
    """The address is in no attribute that loads it; data of a pixel format is shown."""
    row = dict.fromkeys(lk.schema("nft_tokens")["name"])
    media = ['https://e.com/"onload="x', "data:image/png;base64,AAAA"]
    rows = [{**row, "token_id": "1", "contract_id": "a.near", "media": m} for m in media]

    elsewhere, inside = (gallery.cards(pd.DataFrame([row])) for row in rows)

    assert "<img" not in elsewhere
    expected = 'data-picture="https://e.com/&quot;onload=&quot;x" data-alt="1"'
    assert expected in elsewhere
    assert ">picture at e.com</small>" in elsewhere
    assert '<img alt="1" src="data:image/png;base64,AAAA">' in inside


# Secrets ----------------------------------------------------------------------------------


def states() -> str:
    """Write the state of every widget, as a saved notebook and an exported page hold it."""
    widgets = list(w.widgets.widget._instances.values())
    manager = w.Widget.get_manager_state(widgets=widgets)
    views = [widget for widget in widgets if isinstance(widget, w.DOMWidget)]
    return json.dumps([manager, embed.embed_data(views=views)], default=repr)


def test_an_entered_key_is_in_no_state_and_no_message():
    """Before, while and after it is used a key is in no widget, page, text or pickle."""
    picker = lk.widgets.NetworkPicker("testnet")
    front = FrontEnd(picker)
    front.enter_secret("key", PLANTED)

    assert picker.key.secret.reveal() == PLANTED
    picker._repr_mimebundle_()
    texts = [states(), front.text, repr(picker), repr(picker.key), picker.static()]
    texts += [repr(vars(picker.key))]
    assert [text for text in texts if PLANTED in text] == []
    assert front.panel["secrets"][0]["example"] == "entered; type another one to replace it"
    with pytest.raises(TypeError):
        pickle.dumps(picker.key.secret)


def test_a_key_goes_to_the_network_it_was_entered_for(monkeypatch):
    """The chosen network gets the key once; the next one gets none, the embedded one never."""
    calls: list[tuple[str, str | None]] = []
    real = client.connect

    def connect(name: str, *, api_key: str | None = None, make_default: bool = True) -> lk.Ledger:
        calls.append((name, api_key))
        return real("local", make_default=make_default)

    monkeypatch.setattr(client, "connect", connect)
    picker = lk.widgets.NetworkPicker("testnet")
    front = FrontEnd(picker)
    front.enter_secret("key", PLANTED)
    picker.press().press()
    picker.fields["network"].value = "local"
    front.enter_secret("key", PLANTED)
    picker.press()
    lk.disconnect()

    assert calls == [("testnet", PLANTED), ("testnet", None), ("local", None)]
    assert picker.key.secret is None
    assert PLANTED not in states() + front.text


def test_a_malformed_key_is_not_shown():
    """The message about a malformed key does not hold it."""
    picker = lk.widgets.NetworkPicker("testnet")
    front = FrontEnd(picker)
    front.enter_secret("key", PLANTED + "é")

    picker.press()

    assert "api_key is not a text of printable ASCII" in picker.content.message
    assert PLANTED not in states() + front.text + repr(picker)


# Without the library ----------------------------------------------------------------------


def test_without_anywidget_the_extra_is_named(monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "anywidget", None)

    with pytest.raises(errors.InvalidRequestError) as caught:
        lk.explore()

    assert str(caught.value) == ('A panel needs anywidget: pip install "ledgerkit[notebook]".')


def test_ipywidgets_load_with_the_first_panel():
    """The modules alone load nothing to draw with."""
    code = (
        "import sys, ledgerkit.widgets\n"
        "names = ('anywidget', 'ipywidgets', 'matplotlib', 'IPython')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True
    )

    assert done.stdout == "[]\n"


# Each panel -------------------------------------------------------------------------------


def test_the_account_panel_gives_the_verbs_frames():
    """Each tab's frame is what its verb gives; `.result` is the account's own row."""
    panel = lk.widgets.AccountExplorer("alice.near").press()

    names = ["account", "ft", "nft", "staking", "activity", "exposure"]
    assert list(panel.frames) == names
    assert panel.result is not None
    pd.testing.assert_frame_equal(panel.result, lk.accounts("alice.near"))
    pd.testing.assert_frame_equal(panel.frames["ft"], lk.ft("alice.near", metadata=True))
    staking = lk.staking("alice.near", positions=True)
    pd.testing.assert_frame_equal(panel.frames["staking"], staking)
    assert FrontEnd(panel).titles == ["Account", "Activity", "Tokens", "NFTs", "Staking"]
    assert '<strong class="badge" style="border-color:#0072B2">mixed</strong>' in panel.static()


def test_the_account_panel_shows_lockups_and_the_sources_of_stakes():
    """Each stake has its source, and each lockup contract what its owner can spend now."""
    with lk.connect("local", world="person"):
        panel = lk.widgets.AccountExplorer("maria.near").press()
        lockups = lk.lockups("maria.near")
        html = panel.static()

    assert FrontEnd(panel).titles[-2:] == ["Staking", "Lockups"]
    pd.testing.assert_frame_equal(panel.frames["lockups"], lockups)
    sources = panel.frames["staking"]["source"].tolist()
    assert sources == ["indexed", "lockup", "venear", "liquid"]
    assert panel.frames["exposure"]["sources"].tolist() == [sources]
    for text in ("venear", "96.50 NEAR", "12.0002 NEAR", ".lockup.near"):
        assert text in html


def test_the_activity_of_an_account_opens_its_transactions():
    """Each row has the headline as a link, the verdict in words, and the account's changes."""
    panel = lk.widgets.AccountExplorer("ivan.near").press()

    activity = panel.frames["activity"]
    pd.testing.assert_frame_equal(activity, lk.activity("ivan.near"))
    html = panel.static()
    for tx_hash, headline in zip(activity["tx_hash"], activity["headline"], strict=True):
        assert f'data-kind="transaction" data-id="{tx_hash}">{headline}</span>' in html
    assert "! succeeded, but receipts failed" in html
    assert "ivan.near: -0.0012 NEAR, -120 GOLD, +1.50 wNEAR" in html
    assert "No transaction of nobody.near is indexed." in (
        lk.widgets.AccountExplorer("nobody.near").press().static()
    )


def test_transactions_that_could_not_be_listed_are_an_error_not_nothing():
    """The page of errors names the failure, and no page says that there is no transaction."""
    transport = LocalTransport(world_copies.open_copy("demo"))
    url = "http://127.0.0.1:1/nothing"
    with lk.connect("lab", transport=transport, transactions_url=url, make_default=False) as ledger:
        panel = lk.widgets.AccountExplorer("ivan.near", ledger=ledger).press()
        assert FrontEnd(panel).titles == ["Account", "Tokens", "NFTs", "Staking", "Errors"]


def test_a_network_without_an_index_of_transactions_has_no_activity():
    """Nothing is shown that could be read as an account without transactions."""
    transport = LocalTransport(world_copies.open_copy("demo"))
    with lk.connect("lab", transport=transport, make_default=False) as ledger:
        assert ledger.network.transactions_url is None
        panel = lk.widgets.AccountExplorer("ivan.near", ledger=ledger).press()
        assert FrontEnd(panel).titles == ["Account", "Tokens", "NFTs", "Staking"]


def test_the_account_panel_can_leave_contracts_alone():
    """Without details the indexer alone is asked."""
    panel = lk.widgets.AccountExplorer("alice.near", details=False).press()

    assert list(panel.frames["ft"]) == list(lk.schema("ft")["name"])
    assert list(panel.frames["staking"]) == list(lk.schema("staking")["name"])


def test_an_account_that_holds_nothing_is_no_error():
    """Nothing held is said, not hidden."""
    panel = lk.widgets.AccountExplorer("dave.near").press()

    assert panel.error is None
    assert "no visible staking position" in panel.static()
    assert panel.frames["staking"].empty


def test_a_key_leads_to_its_accounts():
    """The accounts of a key are listed, and a link opens one in the same view."""
    key = lk.keys("alice.near")["public_key"].iloc[0]
    panel = lk.widgets.KeyLookup(key, include_limited=True).press()
    front = FrontEnd(panel)
    assert panel.result is not None
    pd.testing.assert_frame_equal(panel.result, lk.accounts_of(key, include_limited=True))

    front.send(type="open", kind="account", id="alice.near")

    assert front.panel["title"] == "Account"
    assert "alice.near on local: 7 tokens" in front.panel["message"]


def story(ledger: lk.Ledger, told: str) -> Any:
    """Find the transaction that a story of the world is about."""
    return next(tx for tx in ledger.world.summary.transactions if tx.description == told)


def test_a_transaction_is_found_without_its_signer(ledger):
    """A hash, or the id of one of its receipts, is enough on the embedded ledger."""
    chosen = story(ledger, "a swap that is refunded: the exchange is paused")
    panel = lk.widgets.TransactionExplorer(chosen.tx_hash).press()
    assert panel.result is not None
    pd.testing.assert_frame_equal(panel.result, panel.value.receipts)
    assert "Succeeded, but receipts failed on local" in panel.content.message

    panel.fields["tx_hash"].value = panel.result["receipt_id"].iloc[-1]
    panel.press()

    assert panel.value.tx_hash == chosen.tx_hash


def test_accounts_are_classed_and_counted():
    """Every class has its bar, the empty ones too, and so have accounts that are not indexed."""
    panel = lk.widgets.StakingExposure(["alice.near", "bob.near", "carol.near", "nobody.near"])
    panel.press()
    bars = re.findall(r'<th scope="row">([\w ]+)</th>.*?<td>(\d+)</td>', panel.static())

    assert panel.result is not None
    classes = panel.result["exposure_class"].tolist()
    assert classes[:3] == ["mixed", "direct_only", "liquid_only"]
    assert bars == [
        ("mixed", "1"),
        ("direct only", "1"),
        ("liquid only", "1"),
        ("no visible staking position", "0"),
        ("not indexed", "1"),
    ]


def test_digits_beyond_every_height_are_refused():
    """Digits that no height has are refused as the verb refuses them."""
    panel = lk.widgets.StatementExplorer("alice.near", "9" * 5_000).press()

    assert isinstance(panel.error, errors.InvalidRequestError)
    assert "expected a height" in panel.content.message


def test_accounts_stand_on_lines_or_between_commas():
    """Lines, commas and spaces separate accounts."""
    panel = lk.widgets.StakingExposure()
    front = FrontEnd(panel)

    front.type("account_ids", "alice.near, bob.near\n\n carol.near;")
    front.press()

    assert panel.result is not None
    assert panel.result["account_id"].tolist() == ["alice.near", "bob.near", "carol.near"]


def test_no_account_is_said():
    """An empty field asks nothing."""
    panel = lk.widgets.StakingExposure().press()

    assert "account_ids is required: one account per line" in panel.content.message


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
    assert "is not valid: expected JSON, such as" in panel.content.message


@pytest.mark.parametrize(
    ("text", "sent"),
    [("", b"{}"), ('{"n": 0.10}', b'{"n": 0.10}'), (f"[{MOST}]", f"[{MOST}]".encode())],
)
def test_numbers_in_arguments_stay_as_typed(text, sent):
    """No number passes through a float on its way."""
    assert contracts.json_bytes(text) == sent


def test_any_answer_makes_a_frame(subtests):
    """Integers of any size are exact, and a gap makes no float of them."""
    cases = [
        ([{"a": MOST}, {"b": 1}], {"a": [MOST, None], "b": [None, 1]}),
        ({"a": MOST}, {"name": ["a"], "value": [MOST]}),
        ([1, MOST], {"value": [1, MOST]}),
        ("x", {"value": ["x"]}),
        (None, {"value": [None]}),
        ([], {"value": []}),
        (b"\x00", {"value": [b"\x00"]}),
    ]
    for value, columns in cases:
        with subtests.test(columns=columns):
            frame = contracts.result_frame(value)

            assert {name: frame[name].tolist() for name in frame} == columns
            assert [column.dtype for _, column in frame.items() if column.dtype != object] == []


def test_a_gallery_shows_all_collections():
    """Without a collection those that the indexer lists are asked."""
    panel = lk.widgets.NftGallery("alice.near").press()

    assert panel.result is not None
    assert sorted(panel.result["contract_id"]) == ["stamps.grace.near", "tickets.grace.near"]
    assert panel.static().count("<figure>") == 2
    assert "2 tokens of 2 collections on local." in panel.content.message


def test_what_is_no_collection_is_told():
    """A contract without NFTs is a row of its own, with its message."""
    panel = lk.widgets.NftGallery("alice.near", "gold.near").press()

    assert panel.error is None
    assert "0 tokens of 1 collection on local, 1 error." in panel.content.message
    assert panel.frames["errors"]["subject"].tolist() == ["gold.near"]


class Stamps(Contract):
    """A collection of one token, whose media continues its base address."""

    @view
    def nft_metadata(self) -> dict[str, Any]:
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
    panel = lk.widgets.NftGallery("alice.near", "base.near").press()
    whole = ["https://e.com/s/A-1.png", "https://o.com/b.png"]

    assert panel.result is not None
    assert panel.result["media"].tolist()[:2] == ["/A-1.png", "https://o.com/b.png"]
    assert panel.result["media_url"].tolist()[:2] == whole
    assert pd.isna(panel.result["media_url"].iloc[2])
    assert re.findall(r'data-picture="([^"]+)"', panel.static()) == whole
    tokens = lk.nft_tokens("alice.near", "base.near")
    pd.testing.assert_frame_equal(panel.result.drop(columns="media_url"), tokens)


def test_only_relative_media_continues_a_base(subtests):
    """A whole address stays as it is, whatever its scheme; which ones load is another rule."""
    cases = [
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
    ]
    for media, base, address in cases:
        with subtests.test(media=media):
            assert gallery.media_address(media, base) == address


def test_numbers_stand_beside_their_names():
    """Only a column of nothing but numbers, and its name, stands to the right."""
    shown = Table(pd.DataFrame({"a": [1, None], "b": [1, "x"]}, dtype=object)).static()
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


@pytest.mark.parametrize("name", ["a.txt", "a"])
def test_another_format_is_refused(name, tmp_path):
    """A path that ends otherwise, or a panel without an answer, is refused."""
    panel = lk.widgets.AccountExplorer("alice.near")
    with pytest.raises(errors.InvalidRequestError, match="press the button first"):
        panel.save(tmp_path / "a.csv")

    with pytest.raises(errors.InvalidRequestError, match=r"path .* is not valid"):
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
    with lk.connect("mainnet", transport=UNASKED) as mainnet:
        form = lk.widgets.SendForm("a.near", "b.near", "1 NEAR", ledger=mainnet).press()
    lk.disconnect()

    assert "Panels do not send transactions to mainnet." in form.content.message
    assert form.send.enabled is False


def test_what_is_previewed_is_sent_once():
    """Preview shows the transaction, Send sends that one, and a second click none."""
    form = lk.widgets.SendForm("alice.near", "bob.near", "1 NEAR").press()
    before = lk.accounts("bob.near", at="final")["balance"].iloc[0]
    assert form.result is not None
    meant = form.result["tx_hash"].iloc[0]
    assert form.send.enabled is True

    front = FrontEnd(form)

    async def act():
        front.press("send")
        front.press("send")
        front.press()
        await form.wait()

    asyncio.run(act())

    assert form.submission.tx_hash == meant
    assert "<p>alice.near sent 1 NEAR to bob.near.</p>" in form.static()
    assert form.result["stage"].tolist()[-1] == "final"
    assert lk.accounts("bob.near", at="final")["balance"].iloc[0] == before + 10**24
    assert form.send.enabled is False


def test_a_changed_field_asks_for_a_new_preview():
    """What is sent is what was looked at."""
    form = lk.widgets.SendForm("alice.near", "bob.near", "1 NEAR").press()

    front = FrontEnd(form)
    front.type("amount", "2 NEAR")

    front.press("send")

    assert front.is_enabled("send") is False
    assert "Nothing was sent" in form.content.message
    assert form.submission is None


def test_a_failed_receipt_is_told():
    """That it was included is no success."""
    form = lk.widgets.SendForm("alice.near", "nosuch.near", "1 NEAR").press()

    form.submit()

    assert ": final, failed." in form.content.message
    assert "Account nosuch.near does not exist" in form.static()


def test_a_transaction_whose_stages_cannot_be_read_names_the_way_on(monkeypatch):
    """An error after the sending says how to continue with the transaction that was sent."""
    form = lk.widgets.SendForm("alice.near", "bob.near", "1 NEAR").press()

    def refuse(*_: object, **__: object) -> None:
        raise errors.AuthError

    monkeypatch.setattr(lk.types.Submission, "wait", refuse)
    form.submit()

    way_on = f'lk.track("{form.submission.tx_hash}", "alice.near")'
    assert isinstance(form.error, errors.AuthError)
    assert way_on in html.unescape(form.content.message)


def test_a_call_is_sent_with_its_arguments():
    """A method makes a call of it."""
    form = lk.widgets.SendForm(
        "bob.near", "counter.near", "0 NEAR", method_name="increment"
    ).press()
    assert form.result is not None
    assert form.result["actions"].tolist() == ["FunctionCall"]
    assert '<th scope="row">method_name</th><td>increment</td>' in form.static()

    form.submit()

    assert form.submission.fully_succeeded is True


def test_a_secret_key_is_in_no_state(ledger):
    """The key signs the preview, and is nowhere to be read."""
    text = ledger.world.keys()["alice.near"]
    form = lk.widgets.SendForm("alice.near", "bob.near", "1 NEAR")
    front = FrontEnd(form)
    front.enter_secret("key", str(text))
    bare = str(text).partition(":")[2]

    form.press()
    shown = states() + front.text + repr(form) + form.static() + repr(form.key.secret)
    form.submit()

    assert form.submission.fully_succeeded is True
    assert bare not in shown + states() + front.text
    assert form.key.secret is None


# All of them ------------------------------------------------------------------------------


TITLES = (
    "Search Network Account Statement Key Transaction Block Staking Token Contract NFTs Send"
    " Archive"
).split()


def test_the_explorer_joins_all_panels():
    """Each panel is a tab; the open one's frame is the explorer's."""
    explorer = lk.explore()
    front = FrontEnd(explorer)
    assert front.state["titles"] == TITLES

    front.send(type="select", panel="Account")
    front.type("account_id", "alice.near")
    front.press()

    assert explorer.selected is explorer.account
    assert explorer.result is explorer.account.result
    assert "<h3>Account</h3>" in explorer.static()
    assert "<h3>Key</h3>" not in explorer.static()


SEARCHES = {
    "alice.near": "Account",
    "  alice.near ": "Account",
    "0x5b38da6a701c568545dcfcb03fcb875f56beddc4": "Account",
    "98793cd91a3f870fb126f66285808c7e094afcfc4eda8a970f6648cdf0dbd6de": "Account",
    "ed25519:11111111111111111111111111111111": "Key",
    "180000052": "Block",
    "wrap.near ft_metadata": "Contract",
    'moon.near ft_balance_of {"account_id": "alice.near"}': "Contract",
    "https://nearblocks.io/address/alice.near": "Account",
}


def test_the_search_box_recognises_an_id(subtests):
    """An id, a key, a height, a contract with a method or an explorer's address opens its view."""
    for text, title in SEARCHES.items():
        with subtests.test(text=text):
            front = FrontEnd(lk.explore())

            front.send(type="open", kind="search", id=text)

            assert front.state["selected"] == title
            assert 'role="alert"' not in front.panel["message"]


def test_the_search_box_looks_a_hash_up(ledger):
    """Hashes of transactions and blocks and receipt ids have one form: the network decides."""
    chosen = story(ledger, "a plain transfer")
    receipt_id = lk.receipts(chosen.tx_hash, chosen.signer_id)["receipt_id"].iloc[0]
    block_hash = lk.block(180000052)["block_hash"].iloc[0]
    front = FrontEnd(lk.explore())

    titles = []
    for text in (chosen.tx_hash, receipt_id, block_hash):
        front.send(type="open", kind="search", id=text)
        titles.append((front.state["selected"], 'role="alert"' in front.panel["message"]))

    assert titles == [("Transaction", False), ("Transaction", False), ("Block", False)]


def test_a_token_has_a_page_with_its_supply_and_holders():
    """The share of each holder is one of the whole supply, and the curve has both themes."""
    panel = lk.widgets.TokenExplorer("gold.near").press()
    front = FrontEnd(panel)

    sentence = (
        "gold.near on local: 22 holders listed, with all of the supply, 2 more with a balance that"
        " is 0 or unknown."
    )
    assert panel.content.status == sentence
    assert front.titles == ["Token", "Curve"]
    facts, table = front.panel["pages"][0]["blocks"]
    assert ">Gold</" in facts["html"]
    assert 'title="485349000000">485,349 GOLD<' in facts["html"]
    assert 'data-kind="contract" data-id="gold.near"' in facts["html"]
    first = [c["text"] if isinstance(c, dict) else c for c in table["rows"][0]["cells"]]
    assert first == ["1", "dex.near", "400,120 GOLD", "82.44%", "ok", "GOLD", "6"]
    [curve] = front.panel["pages"][1]["blocks"]
    assert 'class="on-dark"' in curve["html"]


def test_pictures_in_ipfs_need_a_gateway():
    """Only the host that a person entered is asked, at once, and for nothing outside of IPFS."""
    media = {
        "ipfs://bafy1/one%20a.png": "https://gate.example/ipfs/bafy1/one%20a.png",
        "ipfs://ipfs/QmHash": "https://gate.example/ipfs/QmHash",
        "ipfs://bafy1/../../admin": None,
        "ipfs://bafy1?x=1": None,
        "https://other.example/a.png": None,
    }
    row = {"title": "t", "token_id": "1", "contract_id": "nft.near", "description": None}
    for address, source in media.items():
        frame = pd.DataFrame([{**row, "media": address}])
        html = gallery.cards(frame, "https://gate.example/ipfs/")
        chosen = re.findall(r'data-picture="([^"]*)" data-alt="t" data-chosen', html)
        assert chosen == ([source] if source else [])
        assert "<img" not in html
        assert "data-chosen" not in gallery.cards(frame)
    panel = lk.widgets.NftGallery("alice.near", gateway="http://gate.example").press()
    assert isinstance(panel.error, lk.errors.InvalidRequestError)
    assert panel.error.field == "gateway"


def test_tabs_keep_the_account():
    """A tab without a result takes the account that was looked up last, and asks nothing."""
    explorer = lk.explore("alice.near")
    front = FrontEnd(explorer)
    front.send(type="select", panel="Statement")
    assert explorer.statement.values()["account_id"] == "alice.near"
    assert "Reconcile lists what changed the balances" in front.panel["message"]
    front.press()
    front.send(type="select", panel="Account")
    front.type("account_id", "bob.near")
    front.press()
    front.send(type="select", panel="Statement")
    assert explorer.statement.value.account_id == "alice.near"
    front.send(type="select", panel="NFTs")
    assert explorer.nfts.values()["account_id"] == "bob.near"
    front.send(type="back")
    assert explorer.selected is explorer.account


def test_a_transaction_of_a_statement_unfolds_to_its_entries():
    """Each line has time, net changes and fee; its entries are in it, and their number adds up."""
    statement = lk.statement("alice.near", progress=False)
    panel = lk.widgets.StatementExplorer("alice.near").press()
    html = panel.content.pages[1].static()
    assert html.count("<details>") == len(statement.by_transaction) == 7
    bodies = html.split("<details>")[:0:-1]  # the newest one comes first
    counts = [body.count("<tr>") - 1 for body in bodies]
    assert counts == list(statement.by_transaction["n_entries"])
    words = "alice.near sent 5 NEAR to bob.near · -5 NEAR · fee -0.000045 NEAR"
    assert f"{words}</summary>" in bodies[0]
    assert "fee" not in bodies[-1].partition("</summary>")[0]


def test_a_token_without_holders_or_supply_says_so():
    """What is unknown is a warning and missing, never zero."""
    panel = lk.widgets.TokenExplorer("alice.near").press()

    assert panel.error is None
    assert panel.content.status == "alice.near on local: 0 holders listed."
    assert any("total supply of alice.near can't be read" in w for w in panel.content.warnings)
    assert [page.title for page in panel.content.pages] == ["Token"]


def test_tokens_link_to_their_pages():
    """Contracts of tokens and assets are links; an account that is a token links to its page."""
    front = FrontEnd(lk.explore("alice.near"))
    [page] = [page for page in front.panel["pages"] if page["title"] == "Tokens"]
    columns = {c["name"]: c["id"] for c in page["blocks"][0]["columns"]}
    assert columns["contract_id"] == "token"
    entries = Table(lk.statement("bob.near", progress=False).entries).describe()
    assert {c["name"]: c["id"] for c in entries["columns"]}["asset"] == "asset"

    front.send(type="open", kind="token", id="gold.near")
    assert front.state["selected"] == "Token"
    front.send(type="open", kind="contract", id="gold.near")
    assert 'data-kind="token" data-id="gold.near"' in front.panel["pages"][0]["blocks"][0]["html"]


def links_of(front: FrontEnd) -> list[tuple[str, str]]:
    """Return the kinds and ids of the links on the first page of a result."""
    return re.findall(r'data-kind="(\w+)" data-id="([\w.-]+)"', str(front.panel["pages"]))


class Namesake(Contract):
    """A token that uses the symbol of another, and an account id as its name."""

    @view
    def ft_metadata(self) -> dict[str, Any]:
        return {"spec": "ft-1.0.0", "name": "alice.near", "symbol": "GOLD", "decimals": 6}


def test_a_symbol_lists_all_tokens_that_have_it(ledger):
    """A symbol is never an identity: each match is shown with its contract, and none is opened."""
    ledger.world.deploy("fake.near", Namesake)
    front = FrontEnd(lk.explore("alice.near", tokens=["fake.near"]))

    front.send(type="open", kind="search", id="gold")

    assert front.state["selected"] == "Search"
    assert "2 tokens read in this session have the symbol gold." in front.panel["message"]
    matches = [("token", "gold.near"), ("token", "fake.near"), ("account", "gold")]
    assert sorted(links_of(front)) == sorted(matches)
    front.send(type="open", kind="token", id="fake.near")
    front.send(type="back")
    assert sorted(links_of(front)) == sorted(matches)


def test_a_token_whose_symbol_cannot_be_read_is_named(ledger):
    """A match that is missing for an error is not one that does not exist."""
    ledger.world.deploy("fake.near", Namesake)
    front = FrontEnd(lk.explore("alice.near", tokens=["fake.near"]))
    ledger.faults.add("status=500")

    front.send(type="open", kind="search", id="gold")

    assert "1 token read in this session has the symbol gold." in front.panel["message"]
    assert "the symbols of fake.near could not be read" in front.panel["message"]


def test_a_symbol_hides_no_account_or_hash(ledger):
    """Tokens are not looked up for an id with a dot, a height or a hash: no request is sent."""
    ledger.world.deploy("fake.near", Namesake)
    for text in ("alice.near", "180000052", "1" * 32):
        explorer = lk.explore(tokens=["fake.near"])
        FrontEnd(explorer).send(type="open", kind="search", id=text)
        assert "symbol" not in explorer.search.content.status
    assert "fake.near" not in ledger.memo("tokens", dict)


@pytest.mark.parametrize("text", ["", "Not an id!", "A" * 43])
def test_the_search_box_refuses_what_names_nothing(text):
    """The message says what would be right, and no other view opens."""
    front = FrontEnd(lk.explore())

    front.send(type="open", kind="search", id=text)

    assert front.state["selected"] == "Search"
    assert 'role="alert"' in front.panel["message"]


def test_a_lookup_that_fails_is_not_taken_for_an_unknown_hash(ledger):
    """If the network cannot be asked, the error says so, and the hash is not called unknown."""
    ledger.faults.add("status=500")
    front = FrontEnd(lk.explore("", ledger=ledger))

    front.send(type="open", kind="search", id="1" * 32)

    assert isinstance(front.window.selected.error, errors.LedgerError)
    assert not isinstance(front.window.selected.error, errors.InvalidRequestError)


def test_back_and_forward_return_to_results_without_a_request(ledger):
    """Back shows the result before with its form; a new result drops those after it."""
    front = FrontEnd(lk.explore())
    for text in ("alice.near", "wrap.near ft_metadata", "bob.near"):
        front.send(type="open", kind="search", id=text)
    ledger.faults.add("status=500")
    shown = []

    for step in ("back", "back", "forward"):
        front.send(type=step)
        shown.append((front.panel["title"], front.panel["fields"][0]["value"]))

    contract, account = ("Contract", "wrap.near"), ("Account", "alice.near")
    assert shown == [contract, account, contract]
    assert (front.state["can_go_back"], front.state["can_go_forward"]) == (True, True)
    assert front.titles == ["Result", "Table"]


def test_back_leaves_a_tab_that_was_opened_in_between():
    """From a tab without a result, Back returns to the last result."""
    front = FrontEnd(lk.explore("alice.near"))
    front.send(type="select", panel="Block")

    front.send(type="back")

    assert (front.panel["title"], front.titles[0]) == ("Account", "Account")


def test_the_network_is_shown():
    """The badge tells invented data from real data, and a custom network from both."""
    badges = [FrontEnd(lk.explore()).state["network"]]
    networks: list[dict[str, Any]] = [
        {"network": "mainnet"},
        {"network": "testnet"},
        {"network": "lab"},
        {"network": "mainnet", "rpc_url": "http://127.0.0.1:9"},
    ]
    for options in networks:
        with lk.connect(**options, transport=UNASKED):
            badges.append(FrontEnd(lk.explore()).state["network"])
    lk.disconnect()
    badges.append(FrontEnd(lk.explore()).state["network"])

    assert [(badge["kind"], badge["text"]) for badge in badges] == [
        ("local", "local: embedded ledger, invented data"),
        ("mainnet", "mainnet"),
        ("testnet", "testnet"),
        ("custom", "lab (custom)"),
        ("custom", "mainnet (custom)"),
        ("none", "not connected yet"),
    ]


def test_a_failed_connect_changes_nothing(ledger, monkeypatch):
    """A network that does not answer does not become the session's default."""
    real = client.connect

    def connect(name: str, **options: Any) -> lk.Ledger:
        refused = httpx.MockTransport(lambda _: httpx.Response(503))
        retries = lk.RetryPolicy(attempts=1)
        return real(name, transport=refused, retries=retries, **options)

    monkeypatch.setattr(client, "connect", connect)
    explorer = lk.explore()
    front = FrontEnd(explorer)
    front.send(type="select", panel="Network")

    front.type("network", "mainnet")
    front.press()

    assert isinstance(explorer.selected.error, errors.LedgerError)
    assert client.current() is ledger
    assert front.state["network"]["kind"] == "local"


def test_examples_are_those_of_the_embedded_ledger(ledger):
    """Each account and transaction of the world is a link; elsewhere nothing is offered."""
    pages = FrontEnd(lk.explore()).panel["pages"]
    html = "".join(page["blocks"][0]["html"] for page in pages)
    summary = ledger.world.summary
    kinds = re.findall(r'data-kind="(\w+)" data-id="([\w.]+)"', html)
    expected = [("account", a.account_id) for a in summary.accounts]
    expected += [("transaction", t.tx_hash) for t in summary.transactions]
    with lk.connect("mainnet", transport=UNASKED):
        elsewhere = FrontEnd(lk.explore()).panel["pages"]

    assert kinds == expected
    assert elsewhere == []


def test_a_given_ledger_leaves_no_network_to_choose(ledger):
    """Panels over a ledger of one's own ask that one, whatever the session's default is."""
    with lk.connect("lab", transport=httpx.MockTransport(hostile.answer)):
        explorer = lk.explore(ledger=ledger)
        explorer.account.fields["account_id"].value = "alice.near"
        explorer.account.press()

    assert explorer.network is None
    assert "alice.near on local" in explorer.account.content.message


def test_deeply_nested_arguments_are_refused():
    """Ten thousand brackets are an error of the field, not of the panel."""
    with pytest.raises(errors.InvalidRequestError, match=r"args .* is not valid: expected JSON"):
        contracts.json_bytes("[" * 100_000)
    with pytest.raises(errors.InvalidRequestError, match="expected JSON"):
        contracts.json_bytes('{"amount": NaN}')  # as Python writes it, and no contract reads it


# Two pages, and changes meanwhile -----------------------------------------------------------


def test_an_answer_belongs_to_the_result_it_was_asked_of():
    """A message to a table that was replaced is refused, not answered from the new table."""
    panel = lk.widgets.AccountExplorer("alice.near").press()
    front = FrontEnd(panel)
    earlier = front.panel["result"]
    question = {"do": "cell", "row": 0, "column": 0}
    assert front.ask_block([2, 0], question).keys() == {"text", "visible"}

    panel.press()
    front.send(type="block", at=[2, 0], result=earlier, request="2", message=question)

    replies = [m["payload"] for m in front.messages if m["type"] == "reply"]
    assert replies[-1] == {"error": "This result has been replaced by a newer one."}
    assert front.ask_block([2, 0], question).keys() == {"text", "visible"}


def test_every_message_is_answered_with_the_present_network():
    """The badge and the examples follow the session, also where a message changes nothing."""
    front = FrontEnd(lk.explore())
    assert front.titles == ["Accounts of the embedded ledger", "Transactions"]

    with lk.connect("testnet", transport=UNASKED):
        front.send(type="cancel")

        assert front.state["network"] == {"kind": "testnet", "text": "testnet"}
        front.send(type="select", panel="Search")
        assert front.titles == []


def test_a_frame_shows_the_network_it_was_read_from(ledger):
    """Invented data stays named so, after the session has connected elsewhere."""
    frame = lk.validators()
    first = ledger.world.summary.transactions[0]
    trace = lk.trace(first.tx_hash, first.signer_id)
    with lk.connect("mainnet", transport=UNASKED):
        shown = [lk.show(frame), lk.show(trace), lk.show(pd.DataFrame({"a": [1]}))]
        badges = [FrontEnd(each).state["network"] for each in shown]

    local = {"kind": "local", "text": "local: embedded ledger, invented data"}
    assert badges == [local, local, {"kind": "none", "text": ""}]


def test_a_caption_of_a_trace_is_in_its_static_html(ledger):
    """A notebook that is only read has the sentence above the trace."""
    first = ledger.world.summary.transactions[0]
    trace = lk.trace(first.tx_hash, first.signer_id)
    assert "as of <b>" not in lk.show(trace, caption="as of <b>").static()
    assert "as of &lt;b&gt;" in lk.show(trace, caption="as of <b>").static()


def test_a_search_that_ends_late_opens_nothing_over_another_view(monkeypatch):
    """Somebody who has opened another tab meanwhile stays there."""
    gate, started = threading.Event(), threading.Event()
    real = search.recognise

    def recognise(text: str, chosen: lk.Ledger) -> Any:
        started.set()
        gate.wait(60)
        return real(text, chosen)

    monkeypatch.setattr(search, "recognise", recognise)
    explorer = lk.explore()
    front = FrontEnd(explorer)

    async def act():
        front.send(type="open", kind="search", id="alice.near")
        await until(started.is_set)
        front.send(type="select", panel="Block")
        gate.set()
        await explorer.search.wait()

    asyncio.run(act())

    assert (front.panel["title"], explorer.account.result) == ("Block", None)


def test_cancelled_requests_do_not_stop_those_after_them():
    """Requests that wait for a dead host in their threads leave the next one a thread."""
    panel = Slow()
    names = [f"dead {number}" for number in range(40)]  # more than asyncio's pool has threads
    panel.gates = {name: threading.Event() for name in names}
    front = FrontEnd(panel)

    async def act():
        for name in names:
            front.type("name", name)
            front.press()
            await until(lambda: panel.requests[-1:] == [panel.values()["name"]])
            front.cancel()
            await panel.wait()
        front.type("name", "alive")
        front.press()
        frame = await panel.wait()
        for gate in panel.gates.values():
            gate.set()
        return frame

    assert asyncio.run(act())["name"].tolist() == ["alive"]


def test_a_form_is_filled_in_over_what_was_typed():
    """The page is told that the kernel filled in the form, even with the texts it had."""
    front = FrontEnd(lk.widgets.AccountExplorer("alice.near"))
    before = front.panel["n_filled"]

    front.send(type="open", kind="account", id="alice.near")

    assert front.panel["n_filled"] == before + 1


# Statements -----------------------------------------------------------------------------


def test_a_statement_has_its_card_its_picture_and_its_tables():
    """The card says whether it adds up; the entries are a table that can be saved."""
    panel = lk.widgets.StatementExplorer("bob.near").press()
    assert panel.error is None
    assert panel.content.status == "bob.near on local: 7 rows, 0 gaps."
    front = FrontEnd(panel)
    assert front.titles == ["Statement", "Transactions", "Entries"]
    card, picture = (block["html"] for block in front.panel["pages"][0]["blocks"])
    assert "every balance adds up" in card
    assert picture.startswith('<div class="on-light"><svg')
    assert '<div class="on-dark"><svg' in picture
    assert panel.result is not None
    assert panel.result.equals(lk.statement("bob.near").entries)
    saved = front.ask_block([2, 0], {"do": "save", "format": "csv"})
    assert (saved["name"], saved["n_rows"]) == ("statement.csv", 7)


def test_a_period_of_a_statement():
    """Heights and times are taken as they are typed; a bad one is an error in the panel."""
    panel = lk.widgets.StatementExplorer("bob.near", "180000004", "180000006").press()
    assert panel.result is not None
    assert set(panel.result["block_height"]) == {180000004, 180000005}
    assert lk.widgets.StatementExplorer("bob.near", "2026-08-01T00:00:10Z").press().error is None
    wrong = lk.widgets.StatementExplorer("bob.near", "yesterday").press()
    assert isinstance(wrong.error, errors.InvalidRequestError)


def test_an_account_leads_to_its_statement():
    """A link on the page of an account opens the statement."""
    explorer = lk.widgets.Explorer("bob.near")
    front = FrontEnd(explorer)
    assert 'data-kind="statement" data-id="bob.near"' in explorer.account.static()
    front.send(type="open", kind="statement", id="bob.near")
    assert explorer.selected is explorer.statement
    assert explorer.statement.result is not None
