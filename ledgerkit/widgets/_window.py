"""
A view with its panels: messages of the front end, links between panels, Back and Forward.

A message is a JSON object whose ``type`` names a method here. Replies go to every front end
that shows the view, with the number of their request.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ledgerkit import client
from ledgerkit.errors import LedgerError, cut
from ledgerkit.extras import require
from ledgerkit.transport import networks

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger
    from ledgerkit.widgets._blocks import Content
    from ledgerkit.widgets._panel import Panel

    Message = Mapping[str, Any]

_MAX_VISITS = 50  # results that Back can return to; older ones are dropped


# The panel that shows ids of each kind, and its field; the classes of panels add themselves.
LINKS: dict[str, tuple[type[Panel], str]] = {}

# The ES modules in ``static/`` are joined, since an anywidget has a single one. This needs no build
# step and no host to load from. A module imports only from those before it.
_MODULES = ("dom", "table", "trace", "form", "panel")
_IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a link or a search: a panel and the texts of its fields."""

    panel_class: type[Panel]
    values: dict[str, str]


def target(kind: str, id_: str) -> Target:
    panel_class, field = LINKS[kind]
    return Target(panel_class, {field: id_})


@dataclass(frozen=True, slots=True)
class Visit:
    """A result to which Back and Forward return."""

    panel: Panel
    values: dict[str, Any]
    content: Content


class Window:
    """
    A view with one or several panels; the first one is open at first.

    Panels that links open use `ledger`; None is the session's default. With tabs there is also
    the search box.
    """

    def __init__(
        self, panels: Sequence[Panel], ledger: Ledger | None = None, *, has_tabs: bool = False
    ) -> None:
        self.panels = list(panels)
        self.ledger = ledger
        self.has_tabs = has_tabs
        self.selected = self.panels[0]
        self._account_id = ""  # the account that was looked up last
        self._filled: dict[str, str] = {}  # ids that were filled in, by the panel's title
        self._visits: list[Visit] = []
        self._position = -1
        self._is_shown = False
        self._sent: Content | None = None  # the content that the front ends show

    @property
    def has_network_tab(self) -> bool:
        """True if a person can choose the network here."""
        return self.has_tabs and self.ledger is None

    @cached_property
    def view(self) -> Any:
        """The widget, built when it is needed first."""
        view = view_class()()
        view.on_msg(lambda _, content, __: self.receive(content))
        self._is_shown = True
        return view

    # Messages of the front end ------------------------------------------------------------

    def receive(self, message: object) -> None:
        """Handle one message of a front end; an unknown one is ignored."""
        if isinstance(message, dict):
            handler = self._handlers.get(message.get("type"))
            if handler is not None:
                handler(message)
        self.send_window()  # so the page knows that the kernel answers, and which network it uses

    @cached_property
    def _handlers(self) -> dict[object, Callable[[Message], None]]:
        return {
            "ready": lambda _: self.send_all(),
            "select": lambda m: self.visit(self._panel(m)),
            "press": self._press,
            "secret": self._enter_secret,
            "cancel": lambda m: self._panel(m).cancel(),
            "open": lambda m: self.open(str(m.get("kind")), str(m.get("id"))),
            "back": lambda _: self.go(-1),
            "forward": lambda _: self.go(1),
            "block": self._ask_block,
        }

    def _panel(self, message: Message) -> Panel:
        named = (panel for panel in self.panels if panel.title == message.get("panel"))
        return next(named, self.selected)

    def _press(self, message: Message) -> None:
        panel = self._panel(message)
        panel.accept(message.get("values") or {})
        button = panel.buttons.get(str(message.get("button")))
        if button is None:
            panel.ask()
        elif button.enabled:
            button.press()

    def _enter_secret(self, message: Message) -> None:
        panel = self._panel(message)
        secret = panel.secrets.get(str(message.get("name")))
        if secret is not None:
            secret.enter(message.get("text"))
        self.send_panel(panel)

    def _ask_block(self, message: Message) -> None:
        """Answer a message to a block of a result; in a thread, if an event loop runs here."""
        content = self._panel(message).content  # read now, since the thread may run later
        try:
            asyncio.get_running_loop().create_task(self._answer_in_thread(content, message))
        except RuntimeError:
            self._send_reply(message, _block_reply(content, message))

    async def _answer_in_thread(self, content: Content, message: Message) -> None:
        self._send_reply(message, await in_thread(_block_reply, content, message))

    def _send_reply(self, message: Message, payload: dict[str, Any]) -> None:
        self.send({"type": "reply", "request": message.get("request"), "payload": payload})

    # Navigation ---------------------------------------------------------------------------

    def visit(self, panel: Panel) -> None:
        """Open a panel; without a result it takes the account that was looked up last."""
        is_unused = not (panel.is_busy or panel.content.pages)
        if is_unused and self._filled.get(panel.title) != self._account_id:
            self._filled[panel.title] = self._account_id  # once, since a person may change it
            if panel.values().get("account_id") not in (None, self._account_id):
                panel.fill({"account_id": self._account_id})
        self.select(panel)

    def select(self, panel: Panel) -> None:
        self.selected = panel
        panel.refresh()
        self.send_window()
        self.send_panel(panel, is_new=True)

    def open(self, kind: str, id_: str) -> None:
        if kind in LINKS:
            self.open_target(target(kind, id_))

    def open_target(self, target: Target, *, wait: bool = False) -> None:
        """Fill in the form of a panel and press its button; with `wait`, return with its result."""
        panel = self._panel_of(target.panel_class)
        texts = (name for name, field in panel.fields.items() if field.kind in ("line", "lines"))
        panel.fill({name: target.values.get(name, "") for name in texts})
        self.select(panel)
        if wait:
            panel.press()
        else:
            panel.ask()

    def _panel_of(self, panel_class: type[Panel]) -> Panel:
        """Return this window's panel of a class, which is added if it is missing."""
        for panel in self.panels:
            if isinstance(panel, panel_class):
                return panel
        panel = panel_class(ledger=self.ledger)  # type: ignore[call-arg]  # all subclasses do
        panel.window = self
        self.panels.append(panel)
        return panel

    def finish(self, panel: Panel) -> None:
        """Remember the result of a panel, so that Back can return to it, and its account."""
        if panel.content.pages:
            self._account_id = panel.values().get("account_id", self._account_id)
        if panel is self.selected and panel.can_return and panel.content.pages:
            del self._visits[self._position + 1 :]
            self._visits.append(Visit(panel, panel.values(), panel.content))
            del self._visits[:-_MAX_VISITS]
            self._position = len(self._visits) - 1
        self.send_panel(panel)
        self.send_window()

    def go(self, steps: int) -> None:
        position = self._visit_position(steps)
        if position is not None:
            self._position = position
            visit = self._visits[position]
            self.selected = visit.panel
            visit.panel.restore(visit.values, visit.content)
            self.send_window()

    def _visit_position(self, steps: int) -> int | None:
        current = self._position
        is_elsewhere = current >= 0 and self._visits[current].content is not self.selected.content
        position = current if is_elsewhere and steps < 0 else current + steps
        return position if 0 <= position < len(self._visits) else None

    # Messages to the front end ------------------------------------------------------------

    def send(self, message: dict[str, Any]) -> None:
        """Send a message to the front ends, if the view is shown anywhere."""
        if self._is_shown:
            self.view.send(message)

    def send_all(self) -> None:
        self.send_window()
        self.send_panel(self.selected, is_new=True)

    def send_window(self) -> None:
        if self._is_shown:
            self.send(
                {
                    "type": "window",
                    "has_tabs": self.has_tabs,
                    "titles": [panel.title for panel in self.panels],
                    "selected": self.selected.title,
                    "network": self.selected.network_badge(),
                    "can_go_back": self._visit_position(-1) is not None,
                    "can_go_forward": self._visit_position(1) is not None,
                }
            )

    def send_panel(self, panel: Panel, *, is_new: bool = False) -> None:
        if self._is_shown and panel is self.selected:
            pages = panel.pages() if is_new or panel.content is not self._sent else None
            self._sent = panel.content
            self.send({"type": "panel", **panel.state(), "pages": pages})


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Run a function in a new thread; all threads of a pool might be waiting for a dead host."""
    pool = ThreadPoolExecutor(1)
    call = partial(copy_context().run, function, *args)
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, call)
    finally:
        pool.shutdown(wait=False)


def network_badge(ledger: Ledger | None) -> dict[str, str]:
    """Return the network that requests go to, with a note where its data is invented."""
    ledger = ledger or client.default()
    if ledger is None:
        return {"kind": "none", "text": "not connected yet"}
    name = ledger.network.name
    preset = networks.PRESETS.get(name)
    is_public = preset is not None and preset.rpc_url == ledger.network.rpc_url
    if ledger.replay is not None:
        return {"kind": name_badge(name)["kind"], "text": f"{cut(name)}: recorded"}
    if ledger.is_embedded or is_public:
        return name_badge(name)
    return {"kind": "custom", "text": f"{name} (custom)"}


def name_badge(name: str) -> dict[str, str]:
    note = ": embedded ledger, invented data" if name == networks.LOCAL else ""
    kind = name if name in networks.PRESETS else "custom" if name else "none"
    return {"kind": kind, "text": f"{cut(name)}{note}"}


def _block_reply(content: Content, message: Message) -> dict[str, Any]:
    if message.get("result") != content.number:
        return {"error": "This result has been replaced by a newer one."}
    try:
        page, number = message["at"]
        block = content.pages[page].blocks[number]
    except (LookupError, TypeError, ValueError):
        return {"error": "The result has no such part."}
    try:
        reply: dict[str, Any] = block.handle(message["message"])
    except LedgerError as error:
        return {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - an exception in a handler would be invisible
        return {"error": f"{type(error).__name__}: {error}"}
    return reply


# The widget -------------------------------------------------------------------------------


def _read(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def javascript() -> str:
    """Join the ES modules into one, by dropping their imports from each other."""
    sources = (_read(f"{name}.js") for name in _MODULES)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", source)) for source in sources)


@cache
def view_class() -> Any:
    """
    Build the widget's class, which needs the notebook extra.

    Its content comes by messages. The synchronised state has only HTML without scripts, for front
    ends without a kernel; so a saved notebook contains no secret.
    """
    anywidget = require("anywidget", "notebook", "A panel")
    traitlets = require("traitlets", "notebook", "A panel")

    class View(anywidget.AnyWidget):  # type: ignore[misc, name-defined]  # loaded lazily
        """A panel in a front end."""

        _esm = javascript()
        _css = _read("static.css") + _read("style.css")
        fallback = traitlets.Unicode("").tag(sync=True)

    return View
