"""A planted key of the API: it is used, and is in no notebook, page or message afterwards."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
from playwright.sync_api import expect

from tests.browser import serving
from tests.browser.check_lab import READY, SAVED
from tests.browser.person import Person

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page, WebSocket

KEY = "PLANTED-mossw0rt/Qx+42=z&y~kelp"  # letters that URLs, JSON and HTML spell differently
OTHER = "PLANTED-barnac1e/Zz+77=q&u~tide"  # typed
PLANTED = {"LEDGERKIT_API_KEY": KEY, "PLANTED": OTHER}
HIDDEN = "[key hidden]"
CELLS = [
    """\
import json, os
import httpx
import ledgerkit as lk
from ledgerkit import client
from tests import hostile

def answer(request):  # a host that repeats every secret it was sent
    told = f"{request.url} {request.headers.get('authorization')} {request.headers!r}"
    if request.method == "POST":
        call = json.loads(request.content)
        status = {**hostile.STATUS, "version": {"version": told, "build": told}}
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": call["id"], "result": status})
    return httpx.Response(401, text=told)

transport = httpx.MockTransport(answer)
connect = client.connect
client.connect = lambda name, **more: connect(name, transport=transport, **more)""",
    """\
by_environment = connect("testnet", transport=transport)
display(by_environment, lk.status(), by_environment.network, vars(by_environment))
lk.widgets.AccountExplorer("a.near").press()""",
    """\
given = connect("testnet", transport=transport, api_key=os.environ["PLANTED"])
display(given, lk.status(ledger=given), given.network, vars(given))
try:
    lk.accounts("a.near", ledger=given)
except lk.LedgerError as error:
    print(error, repr(error), vars(error))
lk.widgets.AccountExplorer("a.near", ledger=given).press()""",
    """\
def enter(panel, text):  # as a front end sends it
    message = {"type": "secret", "panel": "Network", "name": "key", "text": text}
    panel.window.view._handle_custom_msg(message, [])

picker = lk.widgets.NetworkPicker("testnet")
enter(picker, os.environ["PLANTED"])
picker.press()
enter(picker, os.environ["PLANTED"])  # and not used
picker""",
    """\
explorer = lk.explore()
explorer.network.fields["network"].value = "testnet"
explorer.account.fields["account_id"].value = "a.near"
enter(explorer, os.environ["PLANTED"])
explorer.network.press(), explorer.account.press()
enter(explorer, os.environ["PLANTED"])
explorer""",
]


def spellings(key: str) -> set[str]:
    """Spell a key as texts may hold it; of base64 what does not depend on its place."""
    data = key.encode()
    shifted = [b64encode(bytes(at) + data).decode()[4:-4] for at in range(3)]
    safe = [part.replace("+", "-").replace("/", "_") for part in shifted]
    written = [key, quote(key), quote(key, safe=""), quote_plus(key), html.escape(key)]
    return {*written, *shifted, *safe, json.dumps(key)[1:-1], data.hex(), key[8:16], key[::-1]}


def spellings_in(text: str) -> list[str]:
    return [one for key in (KEY, OTHER) for one in spellings(key) if one.lower() in text.lower()]


def exported(path: Path) -> str:
    """Export a notebook as a page, widgets and all."""
    words = [sys.executable, "-m", "nbconvert", "--to", "html", "--stdout", str(path)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=path.parent)
    return done.stdout


def test_spellings_are_found():
    """The search finds a key in base64 at any place, in an address and in a page."""
    for at in range(3):
        assert spellings_in(b64encode(b"x" * at + KEY.encode() + b"more").decode())
    assert spellings_in(f"?apiKey={quote_plus(OTHER)}")
    assert spellings_in(html.escape(f"<b>{KEY}"))
    assert spellings_in(json.dumps({"a": OTHER}))
    assert not spellings_in("nothing of it")


def test_an_executed_notebook_holds_no_key(tmp_path):
    """Keys of the environment, of connect and of both panels are in no output, state or export."""
    import nbformat
    from nbclient import NotebookClient

    path = tmp_path / "keys.ipynb"
    serving.write(path, CELLS)
    notebook = nbformat.read(path, as_version=4)
    env = serving.environment(tmp_path / "own") | PLANTED
    NotebookClient(notebook, store_widget_state=True, timeout=120).execute(env=env)
    nbformat.write(notebook, path)
    saved = path.read_text(encoding="utf-8")

    assert '"application/vnd.jupyter.widget-state+json"' in saved
    assert saved.count(HIDDEN) >= len(CELLS) - 1
    assert spellings_in(saved) == []
    page = exported(path)
    assert HIDDEN in page
    assert spellings_in(page) == []


@pytest.fixture
def heard() -> list[str]:
    """Keep what pages are told."""
    return []


def listen(page: Page, heard: list[str]) -> None:
    """Keep every message that comes, and every document."""

    def opened(socket: WebSocket) -> None:
        socket.on("framereceived", lambda data: heard.append(as_text(data)))

    page.on("websocket", opened)
    page.on("response", lambda one: heard.append(one.url))


def as_text(data: str | bytes) -> str:
    return data if isinstance(data, str) else data.decode("utf-8", "replace")


def type_key(page: Page) -> None:
    """Type the other key into the panel, ask with it, and type it again without asking."""
    page.locator(".ledgerkit-panel:visible").get_by_label("API key").last.wait_for()
    for press in ("Enter", "Tab"):
        field = page.locator(".ledgerkit-panel:visible").get_by_label("API key").last
        field.press_sequentially(OTHER)
        field.press(press)
        expect(field).to_have_value("")
    page.wait_for_timeout(1_000)


def test_a_voila_page_holds_no_key(watching, browser: Browser, tmp_path, heard):
    """Neither the page, nor a message of the kernel to it, has a key, whatever way it came."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    serving.write(folder / "keys.ipynb", CELLS)
    with (
        serving.voila(folder, tmp_path / "own", **PLANTED) as address,
        watching(browser) as page,
    ):
        listen(page, heard)
        document = page.goto(f"{address}/keys.ipynb")
        type_key(page)
        heard += [document.text(), page.content()]
        Person(page).picture("keys")

    assert any(HIDDEN in one for one in heard)
    assert any("comm_msg" in one for one in heard)
    assert [spelt for one in heard for spelt in spellings_in(one)] == []


def test_a_notebook_saved_in_lab_holds_no_key(watching, browser: Browser, tmp_path, heard):
    """Saved with the state of its widgets, and exported, it has none of the keys."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    path = folder / "keys.ipynb"
    serving.write(path, CELLS)
    with (
        serving.lab(folder, tmp_path / "own", **PLANTED) as address,
        watching(browser) as page,
    ):
        listen(page, heard)
        page.goto(f"{address}/keys.ipynb")
        page.wait_for_function(READY)
        page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
        type_key(page)
        page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_function(SAVED)
        page.wait_for_timeout(500)
        heard.append(page.content())
    saved = path.read_text(encoding="utf-8")

    assert '"application/vnd.jupyter.widget-state+json"' in saved
    assert HIDDEN in saved
    assert spellings_in(saved) == []
    assert spellings_in(exported(path)) == []
    assert [spelt for one in heard for spelt in spellings_in(one)] == []
