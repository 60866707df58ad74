"""
Checks of the host that a request names, and of the web page that it comes from.

Any page in a browser can send requests to this machine. The browser names the page's site in the
`Origin` header, which the page cannot change. A site can make its own name resolve to this machine
(DNS rebinding); its requests then need no `Origin`, but the `Host` header has the site's name.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

from msgspec import structs

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.http_messages import HttpRequest, HttpResponse, text_response

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d*)?", re.IGNORECASE)
_ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^\s/]+", re.IGNORECASE)


class WebAccess:
    """
    The hosts that a server answers to, and the origins that may use it from a browser.

    The names of this machine alone, such as localhost and 127.0.0.1, are always accepted, on any
    port. A server that listens on 0.0.0.0 or :: accepts every address, but no name.
    """

    def __init__(
        self, host: str, hosts: Collection[str] = (), origins: Collection[str] = ()
    ) -> None:
        address = _address(host)
        self._accepts_addresses = address is not None and address.is_unspecified
        self._hosts = {host.lower(), *map(_host_name, hosts)}
        self._origins = {origin.lower() for origin in origins}
        for name in hosts:
            if not name or _host_name(name) != name.lower().strip("[]"):
                expected = "a name or an address without a port, such as ledger.example"
                raise InvalidRequestError.refuse("allow_hosts", name, expected)
        for origin in origins:
            if not _ORIGIN.fullmatch(origin):
                expected = 'an origin without a path, such as https://app.example, or "null" or "*"'
                raise InvalidRequestError.refuse("allow_origins", origin, expected)

    def intercept(self, request: HttpRequest) -> HttpResponse | None:
        """Return the response to a refused request or a preflight; None lets a request pass."""
        host = request.headers.get("host", "")
        if not self._accepts_host(host):
            return _refusal("host", host, "--allow-host")
        origin = request.headers.get("origin")
        if origin is not None and not self._accepts_origin(origin):
            return _refusal("origin", origin, "--allow-origin")
        return _preflight_response(request) if request.method == "OPTIONS" else None

    def share(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Add the headers that let an accepted page read a response (CORS)."""
        origin = request.headers.get("origin")
        headers = [*response.headers, ("vary", "origin")]
        if origin is not None and self._accepts_origin(origin):
            headers.append(("access-control-allow-origin", origin))
            headers.append(("access-control-expose-headers", "retry-after"))
        return structs.replace(response, headers=tuple(headers))

    def _accepts_host(self, text: str) -> bool:
        name = _host_name(text)
        # An address cannot be rebound: a page under it was loaded from this machine.
        is_own_address = self._accepts_addresses and _address(name) is not None
        return name in self._hosts or is_loopback(name) or is_own_address

    def _accepts_origin(self, text: str) -> bool:
        scheme, _, host = text.lower().partition("://")
        is_local = scheme in ("http", "https") and is_loopback(_host_name(host))
        return is_local or not self._origins.isdisjoint(("*", text.lower()))


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:  # a name
        return None


def _host_name(text: str) -> str:
    """Return a host in lower case, without its port and brackets; "" if it is malformed."""
    match = _HOST.fullmatch(text)
    return match[1].lower().strip("[]") if match else ""


def _refusal(header: str, value: str, option: str) -> HttpResponse:
    text = f"this ledger refuses requests with the {header} {value!r}; {option} allows another one"
    return text_response(text, 403)


def _preflight_response(request: HttpRequest) -> HttpResponse:
    """Allow a browser to send its request with the headers that it announces (CORS)."""
    names = request.headers.get("access-control-request-headers", "authorization, content-type")
    headers = (
        ("access-control-allow-methods", "GET, HEAD, POST, OPTIONS"),
        ("access-control-allow-headers", names),
        ("access-control-max-age", "600"),
        ("access-control-allow-private-network", "true"),  # for public sites, in some browsers
    )
    return HttpResponse(200, headers)
