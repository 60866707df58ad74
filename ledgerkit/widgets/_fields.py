"""The fields and buttons of a panel, whose texts arrive with the messages of the front end."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

_EMPTY = "hidden once entered; not saved in the notebook"
_ENTERED = "entered; type another one to replace it"


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
        is_known = self.kind != "choice" or value in {known for _, known in self.options}
        if type(value) is type(self.value) and is_known:
            self.value = value


@dataclass(slots=True)
class Button:
    """A button of a panel beside its first one."""

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
