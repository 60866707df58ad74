"""The detection of a dead host: a batch stops sending after several failures in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.errors import TransportError

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call, Surface

MAX_FAILURES = 10  # requests in a row, each with all its attempts


class Outage:
    """
    The requests of one batch that had no response, in a row and for the same reason.

    A response of any kind, an error of the host included, ends the row. Hosts are counted
    separately.
    """

    def __init__(self) -> None:
        self._failures: dict[str, tuple[str, int]] = {}

    def record(self, surface: Surface, value: object) -> None:
        """Count the value of a call that was sent to the host of a surface."""
        reason = value.reason if isinstance(value, TransportError) else None
        if reason is None:
            self._failures.pop(surface, None)
            return
        earlier, count = self._failures.get(surface, (reason, 0))
        self._failures[surface] = reason, count + 1 if reason == earlier else 1

    def error(self, call: Call[Any], surface: Surface) -> TransportError | None:
        """Return the error of a call that is not sent; None if it should be sent."""
        reason, count = self._failures.get(surface, ("", 0))
        if count < MAX_FAILURES:
            return None
        sentence = f"not sent, because the last {count} requests had no response: {reason}"
        return TransportError(sentence, request=call.request, not_sent=True)
