"""A field for a secret: what is typed leaves the widget before anything else happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.widgets import _panel

if TYPE_CHECKING:
    from collections.abc import Callable

_EMPTY = "hidden once entered, and in no saved notebook"
_HELD = "one is held; type another in its place"


class Secret:
    """
    A field whose text is moved out of the widget's state at once.

    Parameters
    ----------
    label
        What is asked for.
    wrapped
        Puts the text into something that does not show it, and never raises.
    """

    def __init__(self, label: str, wrapped: Callable[[str], Any]) -> None:
        self._wrapped = wrapped
        self._held: Any = None
        self.box = _panel.library().Password(
            description=label,
            placeholder=_EMPTY,
            continuous_update=False,  # else each letter would be taken for a secret
            style={"description_width": "9em"},
            layout={"width": "44em", "max_width": "100%"},
        )
        # The kernel tells every front end what one of them typed, unless the trait forbids it.
        quiet = _panel.library("traitlets").Unicode("").tag(sync=True, echo_update=False)
        self.box.add_traits(value=quiet)
        self.box.observe(self._take, "value")

    @property
    def is_held(self) -> bool:
        """Whether something was typed that has not been used."""
        return self._held is not None

    @property
    def held(self) -> Any:
        """What was typed, wrapped; None where nothing was."""
        return self._held

    def forget(self) -> None:
        """Drop what was typed."""
        self._held = None
        self.box.placeholder = _EMPTY

    def _take(self, change: dict[str, Any]) -> None:
        """Move what is typed out of the widget."""
        if change["new"]:
            self.box.value = ""
            self._held = self._wrapped(change["new"].strip())
            self.box.placeholder = _HELD

    def __repr__(self) -> str:
        return f"<Secret {self.box.description}: {'held' if self.is_held else 'empty'}>"
