"""A transport that notes requests and sends none."""

from __future__ import annotations

from ledgerkit.transport.httpx_library import httpx


class DryRun(httpx.AsyncBaseTransport):
    """A transport that refuses each request, and notes it in `requests`."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Note a request; its answer is an error that is not retried."""
        self.requests.append(request)
        return httpx.Response(400)
