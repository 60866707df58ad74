"""A transport that notes calls and sends none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import TransportError
from ledgerkit.transport.exchange import Source

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.transport.exchange import Exchange

_OTHERS_S = 0.05  # for the other requests that are sent together


class DryRun(Source):
    """A source without answers, which notes the calls."""

    kind = "dry run"
    in_process = is_recording = False

    def __init__(self) -> None:
        self.calls: list[Call[Any]] = []

    def open(self, *_: object) -> DryRun:
        """Return this transport."""
        return self

    def wait(self, seconds: float) -> float:
        """Return the seconds."""
        return seconds

    async def exchange(self, exchange: Exchange) -> TransportError:
        """Note a call; its answer is an error that is not retried."""
        self.calls.append(exchange.call)
        await asyncio.sleep(_OTHERS_S)
        request = exchange.call.request
        return TransportError(f"{request} was not sent", request=request, retryable=False)

    async def aclose(self) -> None:
        """Do nothing."""
