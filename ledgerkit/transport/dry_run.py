"""A transport that notes calls and sends none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import InvalidRequestError, TransportError
from ledgerkit.transport.exchange import Transport

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.errors import LedgerError
    from ledgerkit.transport.exchange import Exchange
    from ledgerkit.transport.networks import Network

_OTHERS_S = 0.05  # for the other requests that are sent together


class DryRun(Transport):
    """A transport without answers, which notes the calls."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.calls: list[Call[Any]] = []

    async def exchange(self, exchange: Exchange) -> LedgerError:
        """Note a call; its answer is an error that is not retried."""
        request = exchange.call.request
        try:
            self._network.required_address(exchange.surface, request)
        except InvalidRequestError as error:
            return error
        self.calls.append(exchange.call)
        await asyncio.sleep(_OTHERS_S)
        return TransportError(f"{request} was not sent", request=request, retryable=False)
