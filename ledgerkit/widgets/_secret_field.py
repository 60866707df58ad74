"""Password fields whose text is removed from the widget as soon as it is entered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.widgets import _panel

if TYPE_CHECKING:
    from collections.abc import Callable

_EMPTY = "hidden once entered; not saved in the notebook"
_ENTERED = "entered; type another one to replace it"


class SecretField:
    """
    A password field that keeps its text outside the widget's state.

    Parameters
    ----------
    label
        The label of the field.
    wrap
        Wraps the text in an object that does not print it. It must not raise: a traceback
        would contain the text.
    """

    def __init__(self, label: str, wrap: Callable[[str], Any]) -> None:
        self._wrap = wrap
        self._secret: Any = None
        self.box = _panel.widgets_library().Password(
            description=label,
            placeholder=_EMPTY,
            continuous_update=False,  # else each keystroke would be stored as a secret
            style=_panel.LABEL_STYLE,
            layout=_panel.FIELD_LAYOUT,
        )
        # By default ipywidgets echoes a front end's update to all front ends: a second page
        # on the same kernel would receive the secret.
        unechoed = _panel.widgets_library("traitlets").Unicode("").tag(sync=True, echo_update=False)
        self.box.add_traits(value=unechoed)
        self.box.observe(self._store, "value")

    @property
    def is_entered(self) -> bool:
        """True if a secret was entered and not used yet."""
        return self._secret is not None

    @property
    def secret(self) -> Any:
        """The wrapped secret, or None."""
        return self._secret

    def clear(self) -> None:
        """Drop the secret."""
        self._secret = None
        self.box.placeholder = _EMPTY

    def _store(self, change: dict[str, Any]) -> None:
        """Move the entered text out of the widget."""
        if change["new"]:
            self.box.value = ""
            self._secret = self._wrap(change["new"].strip())
            self.box.placeholder = _ENTERED

    def __repr__(self) -> str:
        return f"<SecretField {self.box.description}: {'entered' if self.is_entered else 'empty'}>"
