"""The fields and buttons of a panel, whose texts arrive with the messages of the front end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

_EMPTY = "hidden once entered; not saved in the notebook"
_ENTERED = "entered; type another one to replace it"


@dataclass(slots=True)
class Field:
    """
    A field of a form.

    Parameters
    ----------
    label
        The label.
    value
        The value: a text, or a bool for a check box.
    example
        An example of a value, shown while the field is empty.
    kind
        The kind of field: one line, several lines, yes or no, or one of `options`.
    options
        The labels and values to choose from.
    """

    label: str
    value: Any = ""
    example: str = ""
    kind: Literal["line", "lines", "check", "choice"] = "line"
    options: tuple[tuple[str, str], ...] = ()

    def state(self, name: str) -> dict[str, Any]:
        """Return the field as the front end draws it."""
        return {
            "name": name,
            "label": self.label,
            "value": self.value,
            "example": self.example,
            "kind": self.kind,
            "options": self.options,
        }

    def accept(self, value: object) -> None:
        """Store a value of the front end; one that the field cannot have is ignored."""
        is_known = self.kind != "choice" or value in {known for _, known in self.options}
        if type(value) is type(self.value) and is_known:
            self.value = value


@dataclass(slots=True)
class Button:
    """
    A button of a panel beside its first one.

    Parameters
    ----------
    label, tooltip
        What it says, and what it does.
    press
        Called when it is pressed.
    enabled
        Whether it can be pressed.
    """

    label: str
    tooltip: str
    press: Callable[[], None]
    enabled: bool = False

    def state(self, name: str) -> dict[str, Any]:
        """Return the button as the front end draws it."""
        return {
            "name": name,
            "label": self.label,
            "tooltip": self.tooltip,
            "enabled": self.enabled,
        }


class SecretField:
    """
    A password field, whose text the front end sends once and then forgets.

    Parameters
    ----------
    label
        The label of the field.
    wrap
        Wraps the text in an object that does not print it. It must not raise: a traceback
        would contain the text.
    """

    def __init__(self, label: str, wrap: Callable[[str], Any]) -> None:
        self.label = label
        self._wrap = wrap
        self._secret: Any = None

    @property
    def secret(self) -> Any:
        """The wrapped secret, or None."""
        return self._secret

    def enter(self, text: object) -> None:
        """Store a text; an empty one changes nothing."""
        if isinstance(text, str) and text.strip():
            self._secret = self._wrap(text.strip())

    def clear(self) -> None:
        """Drop the secret."""
        self._secret = None

    def state(self) -> dict[str, Any]:
        """Return the field as the front end draws it, without the secret."""
        return {"label": self.label, "example": _EMPTY if self._secret is None else _ENTERED}

    def __repr__(self) -> str:
        return f"<SecretField {self.label}: {'empty' if self._secret is None else 'entered'}>"
