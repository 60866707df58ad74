"""
The base class of panels: a form, one request at a time, and its result.

A front end sends the texts of a form together with the click, so the request has the latest
texts. It runs in a thread, so that Cancel, or the next request, is handled meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from ledgerkit import client, remedies, validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require
from ledgerkit.files import replacing
from ledgerkit.user_warnings import collect_warnings
from ledgerkit.visible_text import escape_invisible
from ledgerkit.widgets import _html
from ledgerkit.widgets._blocks import Content
from ledgerkit.widgets._downloads import file_bytes
from ledgerkit.widgets._window import LINKS, Window, in_thread, network_badge

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from ledgerkit.ledger import Ledger

_EMPTY = "hidden once entered; not saved in the notebook"
_ENTERED = "entered; type another one to replace it"


class Displayable:
    """An object that a notebook shows as one widget, or as HTML without a front end."""

    window: Window

    @property
    def view(self) -> Any:
        """The widget, which an application lays out among its own."""
        return self.window.view

    def static(self) -> str:
        """
        Format the current content without widgets.

        Returns
        -------
        html
            The title, the status and the tables; texts from the chain are escaped.
        """
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return the widget, and the HTML to show without a front end."""
        del include, exclude  # a front end chooses what it can show
        self.window.view.fallback = html = self.static()
        bundle = self.window.view._repr_mimebundle_()
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
        return {**data, "text/plain": repr(self), "text/html": html}

    def _display_(self) -> Any:
        """Return the widget to marimo, which looks for this method first."""
        self.window.view.fallback = self.static()
        return self.window.view


class Panel(Displayable):
    """
    A form, a button and the result of the request below.

    Parameters
    ----------
    fields
        The fields by name, in the order of the Tab key.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    secrets
        The password fields by name.
    buttons
        Further buttons by name.

    Attributes
    ----------
    result
        The main frame of the last result, or None.
    frames
        All its frames, by name.
    value
        The object that the frames were made from.
    error
        The error of the last request, or None.
    """

    title: ClassVar[str] = ""
    action: ClassVar[str] = "Look up"
    tooltip: ClassVar[str] = "Send the request"
    waiting: ClassVar[str] = "Loading…"
    # What the button does and costs, shown before the first request.
    hint: ClassVar[str] = "No request yet."
    # A result of a look-up can be returned to; one of sending or connecting cannot.
    can_return: bool = True
    # The kinds of ids whose links open this panel, each with the field that takes the id.
    links: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        LINKS.update({kind: (cls, field) for kind, field in cls.links.items()})

    def __init__(
        self,
        fields: dict[str, Field],
        ledger: Ledger | None = None,
        *,
        secrets: dict[str, SecretField] | None = None,
        buttons: dict[str, Button] | None = None,
    ) -> None:
        require("anywidget", "notebook", "A panel")
        self.fields = fields
        self.ledger = ledger
        self.secrets = secrets or {}
        self.buttons = buttons or {}
        self.content = Content(self.hint)
        self.is_busy = False
        self._n_filled = 0  # how often the kernel filled in the form
        self.window = Window([self], ledger)
        self._task: asyncio.Task[None] | None = None

    @property
    def result(self) -> pd.DataFrame | None:
        """The main frame of the last result, or None."""
        return self.content.result

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """All frames of the last result, by name."""
        return self.content.frames

    @property
    def value(self) -> Any:
        """The object that the frames were made from."""
        return self.content.value

    @property
    def error(self) -> Exception | None:
        """The error of the last request, or None."""
        return self.content.error

    # To override --------------------------------------------------------------------------

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        """Read the result for the values of the fields; runs in a thread."""
        raise NotImplementedError

    def _results(self, values: dict[str, Any]) -> Iterator[Content]:
        """
        Yield the result; before it, intermediate ones that it replaces.

        Each result is shown before the next is read, so Cancel shows the step that was running,
        and the next step never starts. Each may be read in a different thread.
        """
        yield self._read(values, client.current(self.ledger))

    def refresh(self) -> None:
        """Update what depends on the session's network; called when the panel is opened."""

    def network_badge(self) -> dict[str, str]:
        """Return the network that the panel is about, as the front end draws it."""
        return network_badge(self.ledger or self.window.ledger)

    # Requests -----------------------------------------------------------------------------

    def press(self) -> Self:
        """
        Send the request as the button does, and wait for the result.

        Returns
        -------
        panel
            This panel, with `result` or `error`.
        """
        self.cancel()
        self._task = None
        self._run(self._results(self.values()))
        return self

    def ask(self) -> None:
        """Send the request as the button does; in a notebook, without waiting for the result."""
        self._start(self._results(self.values()))

    def cancel(self) -> None:
        """Stop waiting for the result."""
        if self._task is not None and not self._task.done():
            self._task.cancel()

    async def wait(self) -> pd.DataFrame | None:
        """
        Wait for the request that a click started.

        Returns
        -------
        result
            The main frame; None if the request failed or was cancelled.
        """
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])
        return self.result

    def save(self, path: str | Path) -> None:
        """
        Write the main frame of the last result to a file.

        Parameters
        ----------
        path
            A path that ends in ``.csv``, ``.parquet`` or ``.xlsx``. CSV is safe for
            spreadsheets: a text that begins like a formula gets an apostrophe;
            ``result.to_csv()`` writes all exactly.

        Raises
        ------
        InvalidRequestError
            If there is no result, or the path ends otherwise.
        FileError
            If the file can't be written.
        """
        path = validation.file_path(path, "path")
        if self.result is None:
            sentence = "there is no result to save: press the button first"
            raise InvalidRequestError(sentence, field="result")
        data = file_bytes(self.result, path)
        with replacing(path) as file:
            file.write(data)

    def values(self) -> dict[str, Any]:
        """Return the values of the fields, texts without spaces around them."""
        values = {name: field.value for name, field in self.fields.items()}
        return {n: v.strip() if isinstance(v, str) else v for n, v in values.items()}

    def accept(self, values: Mapping[str, Any]) -> None:
        """Store the values that a front end sent."""
        for name, value in values.items():
            if name in self.fields:
                self.fields[name].accept(value)

    def fill(self, values: Mapping[str, Any]) -> None:
        """Store values, which also replace what somebody has typed and not sent."""
        self._n_filled += 1
        self.accept(values)

    def _start(self, results: Iterator[Content]) -> None:
        """Run a request in place of the current one; without an event loop, wait for it."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._run(results)
            return
        self.cancel()
        self._task = loop.create_task(self._run_in_threads(results))

    def _run(self, results: Iterator[Content]) -> None:
        self._set_busy()
        try:
            while (content := _next_content(results)) is not None:
                self._show(content)
        except Exception as error:  # noqa: BLE001 - shown in the panel, as after a click
            self._show_error(error)
        finally:
            self._set_ready()

    async def _run_in_threads(self, results: Iterator[Content]) -> None:
        task = asyncio.current_task()
        try:
            self._set_busy()
            while (content := await in_thread(_next_content, results)) is not None:
                self._show(content)
        except asyncio.CancelledError:
            if self._task is task:
                self._show_cancelled()
            raise
        except Exception as error:  # noqa: BLE001 - an exception in a handler would be invisible
            self._show_error(error)
        finally:
            if self._task is task:
                self._set_ready()

    # Display ------------------------------------------------------------------------------

    def _set_busy(self) -> None:
        self.is_busy = True
        self._show(Content(self.waiting))

    def _set_ready(self) -> None:
        self.is_busy = False
        self.window.finish(self)

    def _show(self, content: Content) -> None:
        rewrite = remedies.for_explorer if self.window.has_network_tab else str
        # Visits compare contents by identity, so a content that is shown again is not copied.
        self.content = content if content.rewrite is rewrite else replace(content, rewrite=rewrite)
        self.window.send_panel(self)

    def _show_error(self, error: Exception) -> None:
        self._show(Content("", error=error))

    def _show_cancelled(self) -> None:
        self._show(Content("Cancelled."))

    def restore(self, values: Mapping[str, Any], content: Content) -> None:
        """Show an earlier result again, without a request."""
        self.cancel()
        self._task, self.is_busy = None, False
        self.fill(values)
        self._show(content)

    def state(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "action": self.action,
            "tooltip": self.tooltip,
            "fields": [field.state(name) for name, field in self.fields.items()],
            "secrets": [{"name": n, **secret.state()} for n, secret in self.secrets.items()],
            "buttons": [button.state(name) for name, button in self.buttons.items()],
            "is_busy": self.is_busy,
            "message": self.content.message,
            "n_filled": self._n_filled,
            "result": self.content.number,
        }

    def pages(self) -> list[dict[str, Any]]:
        return [{"title": page.title, "blocks": page.described} for page in self.content.pages]

    def static(self) -> str:
        """Format the current content without widgets, as `Displayable.static` describes."""
        return f'{_html.STYLE}<div class="{_html.CLASSES}">{self.static_body()}</div>'

    def static_body(self) -> str:
        pages = "".join(page.static() for page in self.content.pages)
        return f"<h3>{_html.text(self.title)}</h3>{self.content.message}{pages}"

    def __repr__(self) -> str:
        error = self.content.error
        text = self.content.status if error is None else type(error).__name__
        return f"<{type(self).__name__}: {escape_invisible(text)}>"


def _next_content(results: Iterator[Content]) -> Content | None:
    """Read the next result, with the warnings about it; None after the last one."""
    with collect_warnings() as warnings:
        content = next(results, None)
    if content is None:
        return None
    for page in content.pages:
        page.described  # noqa: B018 - computed here, since a large table takes a while
    frames = content.frames
    if not frames and content.result is not None:
        frames = {"result": content.result}
    return replace(content, frames=frames, warnings=tuple(dict.fromkeys(warnings)))


# Fields and buttons -----------------------------------------------------------------------


@dataclass(slots=True)
class Field:
    """A field of a form."""

    label: str
    value: Any = ""  # a text, or a bool for a check box
    example: str = ""  # shown while the field is empty
    kind: Literal["line", "lines", "check", "choice"] = "line"
    options: tuple[tuple[str, str], ...] = ()  # labels and values to choose from

    def state(self, name: str) -> dict[str, Any]:
        return {"name": name, **asdict(self)}

    def accept(self, value: object) -> None:
        """Store a value of the front end; one that the field cannot have is ignored."""
        is_valid = self.kind != "choice" or value in {option for _, option in self.options}
        if type(value) is type(self.value) and is_valid:
            self.value = value


@dataclass(slots=True)
class Button:
    """A further button of a panel."""

    label: str
    tooltip: str
    press: Callable[[], None]
    enabled: bool = False

    def state(self, name: str) -> dict[str, Any]:
        names = ("label", "tooltip", "enabled")
        return {"name": name, **{key: getattr(self, key) for key in names}}


class SecretField:
    """
    A password field, whose text the front end sends once and then forgets.

    `wrap` puts the text into an object that does not print it. It must not raise: a traceback
    would contain the text.
    """

    def __init__(self, label: str, wrap: Callable[[str], Any]) -> None:
        self.label = label
        self._wrap = wrap
        self.secret: Any = None

    def enter(self, text: object) -> None:
        """Store a text; an empty one changes nothing."""
        if isinstance(text, str) and text.strip():
            self.secret = self._wrap(text.strip())

    def clear(self) -> None:
        self.secret = None

    def state(self) -> dict[str, Any]:
        """Return the field as the front end draws it, without the secret."""
        return {"label": self.label, "example": _EMPTY if self.secret is None else _ENTERED}

    def __repr__(self) -> str:
        return f"<SecretField {self.label}: {'empty' if self.secret is None else 'entered'}>"
