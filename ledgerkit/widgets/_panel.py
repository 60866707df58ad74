"""
What panels share: fields, a button, Enter, Cancel, and the course of one question.

A press waits a moment before it reads the fields, since a click can overtake what was just
typed; this also makes one question of Enter and a click. The question itself runs in a
thread, so that Cancel, or the next question, is heard meanwhile.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ledgerkit import client
from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require
from ledgerkit.user_warnings import collect_warnings
from ledgerkit.widgets import _downloads, _html

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd

    from ledgerkit.client import Ledger

SETTLE_S = 0.1
_WIDE = {"width": "44em", "max_width": "100%"}


def library(module: str = "ipywidgets") -> Any:
    """Import ipywidgets, or another module of the notebook extra."""
    return require(module, "notebook", "A panel")


def text_box(label: str, value: str = "", such_as: str = "") -> Any:
    """Make a field of one line, which tells its text when it is whole: at Enter, or on leaving."""
    # Letter by letter, a kernel far away would still lack the last ones when Enter comes.
    return library().Text(
        description=label,
        value=value,
        placeholder=such_as,
        continuous_update=False,
        style=_labels(),
        layout=_WIDE,
    )


def tick_box(label: str, *, value: bool) -> Any:
    """Make a field for yes or no."""
    return library().Checkbox(
        description=label, value=value, indent=True, style=_labels(), layout=_WIDE
    )


def choice(label: str, options: Sequence[str | tuple[str, str]], value: str | None = None) -> Any:
    """Make a field for one of several."""
    return library().Dropdown(
        description=label, options=options, value=value, style=_labels(), layout=_WIDE
    )


def button(label: str, tooltip: str, *, primary: bool = False, disabled: bool = False) -> Any:
    """Make a button; its label is a word, since pictures may not load."""
    style = "primary" if primary else ""
    return library().Button(
        description=label, tooltip=tooltip, button_style=style, disabled=disabled
    )


def _labels() -> dict[str, str]:
    """Give labels the same width everywhere."""
    return {"description_width": "9em"}


@dataclass(frozen=True, slots=True)
class Part:
    """One page of a result; `frame` is what can be saved of it."""

    title: str
    html: str
    frame: pd.DataFrame | None = None
    is_picture: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a question found: a sentence, the frame to go on with, and pages to look at."""

    sentence: str
    result: pd.DataFrame
    parts: tuple[Part, ...]
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    value: object = None


class Shown:
    """Something that a notebook shows: as widgets, or as plain HTML where there is no front end."""

    view: Any

    def static(self) -> str:
        """
        Write what is shown, for where no front end runs.

        Returns
        -------
        html
            The title, what happened and the tables; texts from the chain are escaped.
        """
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Give the widgets, and what is shown in their place."""
        bundle = self.view._repr_mimebundle_(include=include, exclude=exclude)
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
        return {**data, "text/plain": repr(self), "text/html": self.static()}


class Panel(Shown):
    """
    A question with its fields, and the answer below.

    Parameters
    ----------
    fields
        The fields by the name of what they hold, in the order of the keyboard.
    ledger
        The ledger to ask; None is the session's default at the time of the question.
    more
        What stands between the fields and the buttons.
    buttons
        What stands beside the button.

    Attributes
    ----------
    result
        The frame of the last answer, to go on with; None while there is none.
    frames
        All its frames, by name.
    value
        What they were made from.
    error
        Why there is no answer.
    """

    title: ClassVar[str] = ""
    action: ClassVar[str] = "Look up"
    tooltip: ClassVar[str] = "Ask the ledger"
    waiting: ClassVar[str] = "Asking…"

    def __init__(
        self,
        fields: dict[str, Any],
        ledger: Ledger | None = None,
        *,
        more: Sequence[Any] = (),
        buttons: Sequence[Any] = (),
    ) -> None:
        w = library()
        self.fields = fields
        self.ledger = ledger
        self.button = button(self.action, self.tooltip, primary=True)
        self.stop = button("Cancel", "Stop waiting for the answer", disabled=True)
        self.status = w.HTML(_html.status("Nothing asked yet."))
        self.results = w.VBox()
        row = w.HBox([self.button, *buttons, self.stop])
        style = w.HTML(_html.STYLE)
        self.view = w.VBox([style, *fields.values(), *more, row, self.status, self.results])
        for name in _html.CLASSES.split():
            self.view.add_class(name)
        self.result: pd.DataFrame | None = None
        self.frames: dict[str, pd.DataFrame] = {}
        self.value: Any = None
        self.error: Exception | None = None
        self._task: asyncio.Task[None] | None = None
        self._parts: tuple[Part, ...] = ()
        self._open_page = ""
        self._clear()
        self.button.on_click(lambda _: self.ask())
        self.stop.on_click(lambda _: self.cancel())
        for one in fields.values():
            one.on_msg(self._entered)

    # The question -------------------------------------------------------------------------

    def _find(self, asked: dict[str, Any], ledger: Ledger) -> Found:
        """Answer one question; runs in a thread and touches no widget."""
        raise NotImplementedError

    def _steps(self, asked: dict[str, Any]) -> Iterator[Found]:
        """Give the answer, or how far it is, step by step."""
        yield self._find(asked, client.current(self.ledger))

    def _read(self) -> dict[str, Any]:
        """Read the fields."""
        values = {name: one.value for name, one in self.fields.items()}
        return {n: v.strip() if isinstance(v, str) else v for n, v in values.items()}

    # Pressing -----------------------------------------------------------------------------

    def press(self) -> Self:
        """
        Do what the button does, and wait for it.

        Returns
        -------
        panel
            This one, with `result`, or with `error`.
        """
        self.cancel()
        self._task = None
        self._ask_now(lambda: self._steps(self._read()))
        return self

    def cancel(self) -> None:
        """Stop waiting for the answer."""
        if self._task is not None and not self._task.done():
            self._task.cancel()

    async def wait(self) -> pd.DataFrame | None:
        """
        Await the question that a click began.

        Returns
        -------
        result
            Its frame; None where it failed or was cancelled.
        """
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])
        return self.result

    def save(self, path: str | Path) -> None:
        """
        Write the frame of the last answer to a file.

        Parameters
        ----------
        path
            Ends in ``.csv`` or ``.parquet``.

        Raises
        ------
        InvalidRequestError
            If there is no answer, or the path ends otherwise.
        """
        if self.result is None:
            raise InvalidRequestError.refuse("result", None, "an answer: press the button first")
        write = _downloads.FORMATS.get(Path(path).suffix.removeprefix("."))
        if write is None:
            raise InvalidRequestError.refuse("path", str(path), "a path to .csv or .parquet")
        Path(path).write_bytes(write(self.result))

    def ask(self) -> None:
        """Do what the button does, without waiting for it where a loop runs, as in a notebook."""
        self._begin(lambda: self._steps(self._read()))

    def _entered(self, _: object, content: dict[str, Any], __: object) -> None:
        """Take Enter in a field."""
        if content.get("event") == "submit":
            self.ask()

    def _begin(self, opened: Callable[[], Iterator[Found]]) -> None:
        """Begin a question in place of the one that runs; without a loop there is no waiting."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._ask_now(opened)
            return
        self.cancel()
        self._task = loop.create_task(self._ask(opened))

    def _ask_now(self, opened: Callable[[], Iterator[Found]]) -> None:
        """Ask, and wait for the end."""
        self._busy()
        try:
            steps = opened()
            while (told := _next(steps)) is not None:
                self._show(*told)
        except Exception as error:  # noqa: BLE001 - shown, as for a click
            self._fail(error)
        finally:
            self._rest()

    async def _ask(self, opened: Callable[[], Iterator[Found]]) -> None:
        """Ask in a thread, unless somebody asks anew meanwhile."""
        me = asyncio.current_task()
        try:
            await asyncio.sleep(SETTLE_S)
            self._busy()
            steps = opened()
            while (told := await asyncio.to_thread(_next, steps)) is not None:
                self._show(*told)
        except asyncio.CancelledError:
            if self._task is me:
                self._cancelled()
            raise
        except Exception as error:  # noqa: BLE001 - nobody sees what a handler raises
            self._fail(error)
        finally:
            if self._task is me:
                self._rest()

    # Showing ------------------------------------------------------------------------------

    def _busy(self) -> None:
        """Show that it is being asked; an old answer would be taken for the new one."""
        self._clear()
        self._place(())
        self._say(self.waiting)
        self.button.disabled, self.stop.disabled = True, False

    def _rest(self) -> None:
        """Be ready for the next question."""
        self.button.disabled, self.stop.disabled = False, True

    def _show(self, found: Found, notes: Sequence[str] = ()) -> None:
        """Show what was found."""
        self.result, self.value = found.result, found.value
        self.frames = found.frames or {"result": found.result}
        self._say(found.sentence, notes)
        self._place(found.parts)

    def _fail(self, error: Exception) -> None:
        """Show what went wrong, and what to do."""
        self._clear()
        self.error = error
        self._place(())
        self._told = type(error).__name__
        self.status.value = _html.failure(error)

    def _cancelled(self) -> None:
        """Show that nobody waits any more."""
        self._say("Cancelled.")

    def _clear(self) -> None:
        """Forget the last answer."""
        self.result = self.value = self.error = None
        self.frames = {}
        self._told = "nothing asked yet"

    def _say(self, sentence: str, notes: Sequence[str] = ()) -> None:
        """Say in a sentence how it stands."""
        self._told = sentence
        lines = [_html.text(line, 600) for line in (sentence, *notes)]
        self.status.value = _html.status("<br>".join(lines))

    def _place(self, parts: tuple[Part, ...]) -> None:
        """Show the pages of an answer; several of them as tabs."""
        w = library()
        old = self.results.children
        self._parts = parts
        pages = [w.VBox(self._page(part)) for part in parts]
        if old and isinstance(old[0], w.Tab):
            self._open_page = old[0].titles[old[0].selected_index or 0]
        if len(pages) > 1:
            titles = [part.title for part in parts]
            at = titles.index(self._open_page) if self._open_page in titles else 0
            pages = [w.Tab(children=pages, titles=titles, selected_index=at)]
        self.results.children = tuple(pages)
        for one in old:
            _close(one)

    def _page(self, part: Part) -> list[Any]:
        """Make the widgets of a page; a table can be saved from where it is seen."""
        w = library()
        shown = [w.HTML(part.html)]
        if part.frame is not None:
            name = f"{self.title} {part.title}".lower().replace(" ", "_")
            shown.append(w.HTML(_downloads.links(part.frame, name)))
        return shown

    def static(self) -> str:
        """
        Write what is shown, for where no front end runs.

        Returns
        -------
        html
            The title, what happened and the tables; texts from the chain are escaped.
        """
        pages = "".join(
            f"<h4>{_html.text(part.title)}</h4>{part.html}"
            for part in self._parts
            if not part.is_picture
        )
        head = f"<h3>{_html.text(self.title)}</h3>{self.status.value}"
        return f'{_html.STYLE}<div class="{_html.CLASSES}">{head}{pages}</div>'

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._told}>"


def _next(steps: Iterator[Found]) -> tuple[Found, list[str]] | None:
    """Take the next step, and hear what it warns of."""
    with collect_warnings() as heard:
        found = next(steps, None)
    return None if found is None else (found, list(dict.fromkeys(heard)))


def _close(widget: Any) -> None:
    """Take a widget out of the front end, with all that is in it."""
    own = (getattr(widget, name, None) for name in ("style", "layout"))
    for one in (*getattr(widget, "children", ()), *own):
        if one is not None:
            _close(one)
    widget.close()
