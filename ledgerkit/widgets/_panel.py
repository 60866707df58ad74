"""
The base class of panels: fields, buttons, one request at a time, and its result.

A click waits a moment before it reads the fields, since it can overtake the text that was just
typed; this also joins Enter and a click into one request. The request runs in a thread, so that
Cancel, or the next request, is handled meanwhile.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ledgerkit import client, validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require
from ledgerkit.user_warnings import collect_warnings
from ledgerkit.visible_text import escape_invisible
from ledgerkit.widgets import _downloads, _html

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pandas as pd

    from ledgerkit.client import Ledger

SETTLE_S = 0.1
LABEL_STYLE = {"description_width": "9em"}
FIELD_LAYOUT = {"width": "44em", "max_width": "100%"}
_NO_REQUEST = "No request yet."


def widgets_library(module: str = "ipywidgets") -> Any:
    """Import ipywidgets, or another module of the notebook extra."""
    return require(module, "notebook", "A panel")


def text_box(label: str, value: str = "", example: str = "") -> Any:
    """Build a field of one line; its value changes at Enter, or when it loses the focus."""
    # With an update per keystroke, a remote kernel could lack the last ones when Enter comes.
    return widgets_library().Text(
        description=label,
        value=value,
        placeholder=example,
        continuous_update=False,
        style=LABEL_STYLE,
        layout=FIELD_LAYOUT,
    )


def text_area(label: str, value: str = "", example: str = "") -> Any:
    """Build a field of several lines."""
    return widgets_library().Textarea(
        description=label,
        value=value,
        placeholder=example,
        continuous_update=False,
        rows=5,
        style=LABEL_STYLE,
        layout=FIELD_LAYOUT,
    )


def check_box(label: str, *, value: bool) -> Any:
    """Build a field for yes or no."""
    return widgets_library().Checkbox(
        description=label, value=value, indent=True, style=LABEL_STYLE, layout=FIELD_LAYOUT
    )


def drop_down(
    label: str, options: Sequence[str | tuple[str, str]], value: str | None = None
) -> Any:
    """Build a field for one of several options."""
    return widgets_library().Dropdown(
        description=label, options=options, value=value, style=LABEL_STYLE, layout=FIELD_LAYOUT
    )


def button(label: str, tooltip: str, *, primary: bool = False, disabled: bool = False) -> Any:
    """Build a button; its label is a word, since icon fonts may not load."""
    style = "primary" if primary else ""
    return widgets_library().Button(
        description=label, tooltip=tooltip, button_style=style, disabled=disabled
    )


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a result, and the frame that can be saved from it."""

    title: str
    html: str
    frame: pd.DataFrame | None = None
    is_picture: bool = False


@dataclass(frozen=True, slots=True)
class PanelResult:
    """The result of a request: a status sentence, the main frame and the pages."""

    sentence: str
    result: pd.DataFrame
    pages: tuple[Page, ...]
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    value: object = None


def error_pages(errors: pd.DataFrame) -> list[Page]:
    """Return a page that lists errors, if there are any."""
    return [Page("Errors", _html.table(errors), errors)] if len(errors) else []


class Displayable:
    """An object that a notebook shows as widgets, or as HTML without a front end."""

    view: Any

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
        """Return the widgets, and the HTML to show without a front end."""
        bundle = self.view._repr_mimebundle_(include=include, exclude=exclude)
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
        return {**data, "text/plain": repr(self), "text/html": self.static()}


class Panel(Displayable):
    """
    Input fields, a button and the result of the request below.

    Parameters
    ----------
    fields
        The fields by name, in the order of the Tab key.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    extra_fields
        Widgets between the fields and the buttons.
    buttons
        Further buttons.

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

    def __init__(
        self,
        fields: dict[str, Any],
        ledger: Ledger | None = None,
        *,
        extra_fields: Sequence[Any] = (),
        buttons: Sequence[Any] = (),
    ) -> None:
        w = widgets_library()
        self.fields = fields
        self.ledger = ledger
        self.button = button(self.action, self.tooltip, primary=True)
        self.stop = button("Cancel", "Stop waiting for the result", disabled=True)
        self.status = w.HTML(_html.status(_NO_REQUEST))
        self.results = w.VBox()
        row = w.HBox([self.button, *buttons, self.stop])
        style = w.HTML(_html.STYLE)
        inputs = (*fields.values(), *extra_fields)
        self.view = w.VBox([style, *inputs, row, self.status, self.results])
        for name in _html.CLASSES.split():
            self.view.add_class(name)
        self.result: pd.DataFrame | None = None
        self.frames: dict[str, pd.DataFrame] = {}
        self.value: Any = None
        self.error: Exception | None = None
        self._task: asyncio.Task[None] | None = None
        self._pages: tuple[Page, ...] = ()
        self._open_page = ""
        self._clear_result()
        self.button.on_click(lambda _: self.ask())
        self.stop.on_click(lambda _: self.cancel())
        for widget in inputs:
            widget.on_msg(self._on_message)

    # To override --------------------------------------------------------------------------

    def _read(self, values: dict[str, Any], ledger: Ledger) -> PanelResult:
        """Read the result for the values of the fields; runs in a thread, uses no widget."""
        raise NotImplementedError

    def _read_steps(self, values: dict[str, Any]) -> Iterator[PanelResult]:
        """Read the result, preceded by intermediate ones if there are steps to show."""
        yield self._read(values, client.current(self.ledger))

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
        self._run(lambda: self._read_steps(self._field_values()))
        return self

    def ask(self) -> None:
        """Send the request as the button does; in a notebook, without waiting for the result."""
        self._start(lambda: self._read_steps(self._field_values()))

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
            A path that ends in ``.csv`` or ``.parquet``. CSV is safe for spreadsheets: a text
            that begins like a formula gets an apostrophe; ``result.to_csv()`` writes all exactly.

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
        write = _downloads.FORMATS.get(path.suffix.removeprefix("."))
        if write is None:
            raise InvalidRequestError.refuse("path", str(path), "a path to .csv or .parquet")
        data = write(self.result)
        with validation.writing(path):
            path.write_bytes(data)

    def _field_values(self) -> dict[str, Any]:
        """Return the values of the fields, texts without spaces around them."""
        values = {name: widget.value for name, widget in self.fields.items()}
        return {n: v.strip() if isinstance(v, str) else v for n, v in values.items()}

    def _on_message(self, _: object, content: dict[str, Any], __: object) -> None:
        """Send the request at Enter in a field."""
        if content.get("event") == "submit":
            self.ask()

    def _start(self, open_steps: Callable[[], Iterator[PanelResult]]) -> None:
        """Run a request in place of the current one; without an event loop, wait for it."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._run(open_steps)
            return
        self.cancel()
        self._task = loop.create_task(self._run_in_thread(open_steps))

    def _run(self, open_steps: Callable[[], Iterator[PanelResult]]) -> None:
        """Run a request in this thread."""
        self._set_busy()
        try:
            steps = open_steps()
            while (step := _next_step(steps)) is not None:
                self._show_result(*step)
        except Exception as error:  # noqa: BLE001 - shown in the panel, as after a click
            self._show_error(error)
        finally:
            self._set_ready()

    async def _run_in_thread(self, open_steps: Callable[[], Iterator[PanelResult]]) -> None:
        """Run a request in a thread, until it ends or another one replaces it."""
        me = asyncio.current_task()
        try:
            await asyncio.sleep(SETTLE_S)
            self._set_busy()
            steps = open_steps()
            while (step := await asyncio.to_thread(_next_step, steps)) is not None:
                self._show_result(*step)
        except asyncio.CancelledError:
            if self._task is me:
                self._show_cancelled()
            raise
        except Exception as error:  # noqa: BLE001 - an exception in a handler would be invisible
            self._show_error(error)
        finally:
            if self._task is me:
                self._set_ready()

    # Display ------------------------------------------------------------------------------

    def _set_busy(self) -> None:
        """Clear the last result, and disable all buttons but Cancel."""
        self._clear_result()
        self._show_pages(())
        self._set_status(self.waiting)
        self.button.disabled, self.stop.disabled = True, False

    def _set_ready(self) -> None:
        """Enable the button."""
        self.button.disabled, self.stop.disabled = False, True

    def _show_result(self, result: PanelResult, warnings: Sequence[str] = ()) -> None:
        """Show a result with the warnings about it."""
        self.result, self.value = result.result, result.value
        self.frames = result.frames or {"result": result.result}
        self._set_status(result.sentence, warnings)
        self._show_pages(result.pages)

    def _show_error(self, error: Exception) -> None:
        """Show an error in place of a result."""
        self._clear_result()
        self.error = error
        self._show_pages(())
        self._status_text = type(error).__name__
        self.status.value = _html.alert(error)

    def _show_cancelled(self) -> None:
        """Show that the request was cancelled."""
        self._set_status("Cancelled.")

    def _clear_result(self) -> None:
        """Drop the last result."""
        self.result = self.value = self.error = None
        self.frames = {}
        self._status_text = _NO_REQUEST

    def _set_status(self, sentence: str, warnings: Sequence[str] = ()) -> None:
        """Show a status sentence, and warnings below it."""
        self._status_text = sentence
        lines = [_html.text(line, 600) for line in (sentence, *warnings)]
        self.status.value = _html.status("<br>".join(lines))

    def _show_pages(self, pages: tuple[Page, ...]) -> None:
        """Show the pages of a result, several of them as tabs; an open tab stays open."""
        w = widgets_library()
        old = self.results.children
        self._pages = pages
        if old and isinstance(old[0], w.Tab):
            self._open_page = old[0].titles[old[0].selected_index or 0]
        children = [w.VBox(self._page_widgets(page)) for page in pages]
        if len(children) > 1:
            titles = [page.title for page in pages]
            at = titles.index(self._open_page) if self._open_page in titles else 0
            children = [w.Tab(children=children, titles=titles, selected_index=at)]
        self.results.children = tuple(children)
        for widget in old:
            _close(widget)

    def _page_widgets(self, page: Page) -> list[Any]:
        """Build the widgets of a page: its HTML, and download links of its frame."""
        w = widgets_library()
        widgets = [w.HTML(page.html)]
        if page.frame is not None:
            name = f"{self.title} {page.title}".lower().replace(" ", "_")
            widgets.append(w.HTML(_downloads.links(page.frame, name)))
        return widgets

    def static(self) -> str:
        """Format the current content without widgets, as `Displayable.static` describes."""
        pages = "".join(
            f"<h4>{_html.text(page.title)}</h4>{page.html}"
            for page in self._pages
            if not page.is_picture
        )
        head = f"<h3>{_html.text(self.title)}</h3>{self.status.value}"
        return f'{_html.STYLE}<div class="{_html.CLASSES}">{head}{pages}</div>'

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {escape_invisible(self._status_text)}>"


def _next_step(steps: Iterator[PanelResult]) -> tuple[PanelResult, list[str]] | None:
    """Return the next step and the warnings about it, or None after the last one."""
    with collect_warnings() as warnings:
        step = next(steps, None)
    return None if step is None else (step, list(dict.fromkeys(warnings)))


def _close(widget: Any) -> None:
    """Close a widget and all widgets in it, which the kernel would otherwise keep."""
    own = (getattr(widget, name, None) for name in ("style", "layout"))
    for child in (*getattr(widget, "children", ()), *own):
        if child is not None:
            _close(child)
    widget.close()
