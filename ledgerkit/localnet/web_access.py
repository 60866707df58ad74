"""
Checks of the host that a request names, and of the web page that it comes from.

Any page in a browser can send requests to this machine. The browser names the page's site in the
`Origin` header, which the page cannot change. A site can make its own name resolve to this machine
(DNS rebinding); its requests then need no `Origin`, but the `Host` header has the site's name.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from msgspec import structs

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.http_messages import HttpResponse, text_response, with_length

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.localnet.http_messages import Header, HttpRequest

ANY_ORIGIN = "*"
_QUOTED_CHARACTERS = 100  # of a header, in a refusal
_NAME = r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)"
_HOST = re.compile(_NAME + r"(?::\d*)?", re.IGNORECASE)
_WEB_ORIGIN = re.compile(rf"https?://{_NAME}(?::\d+)?", re.IGNORECASE)
_ANY_ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^\s/]+", re.IGNORECASE)
_HEADER_NAME = r"[\w!#$%&'*+.^`|~-]+"
_HEADER_NAMES = re.compile(rf"{_HEADER_NAME}(?:\s*,\s*{_HEADER_NAME})*", re.ASCII)
_VARY = (("vary", "origin"),)


class WebAccess:
    """
    The hosts that a server answers to, and the origins that may use it from a browser.

    The names and addresses of this machine alone (localhost, 127.0.0.1, [::1]) are always
    accepted, on any port.

    Parameters
    ----------
    host
        The address or name that the server listens on; 0.0.0.0 and :: accept every address
        as host, but no name.
    hosts
        Other names that requests may use for the server.
    origins
        Other origins, such as ``https://app.example``; ``null`` is that of a local file, ``*``
        is any.

    Raises
    ------
    InvalidRequestError
        If a name or an origin is malformed.
    """

    def __init__(self, host: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._hosts = {_bare(host), *map(_checked_host, hosts)}
        self._any_address = _is_unspecified(host)
        self._origins = {_checked_origin(origin) for origin in origins}

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
        shared: tuple[Header, ...] = ()
        if origin is not None and self._accepts_origin(origin):
            shared = (
                ("access-control-allow-origin", origin),
                ("access-control-expose-headers", "retry-after"),
            )
        return structs.replace(response, headers=(*response.headers, *_VARY, *shared))

    def _accepts_host(self, text: str) -> bool:
        """Return True if a request may name this host."""
        match = _HOST.fullmatch(text)
        if match is None:
            return False
        name = _bare(match[1])
        # An address cannot be rebound: a page under it was loaded from this machine.
        return name in self._hosts or is_loopback(name) or (self._any_address and _is_address(name))

    def _accepts_origin(self, text: str) -> bool:
        """Return True if the pages of an origin may use the server."""
        if ANY_ORIGIN in self._origins or text.lower() in self._origins:
            return True
        match = _WEB_ORIGIN.fullmatch(text)
        return match is not None and is_loopback(_bare(match[1]))


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    """Return True for an IP address, False for a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_unspecified(host: str) -> bool:
    """Return True for the address that stands for all of this machine."""
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified


def _bare(host: str) -> str:
    """Return a host in lower case, an IPv6 address without brackets."""
    return host.lower().strip("[]")


def _checked_host(host: str) -> str:
    """Check a host to accept."""
    match = _HOST.fullmatch(host)
    if match is None or match[0] != match[1]:
        expected = "a name or an address without a port, such as ledger.example"
        raise InvalidRequestError.refuse("allow_hosts", host, expected)
    return _bare(host)


def _checked_origin(origin: str) -> str:
    """Check an origin to accept."""
    if not _ANY_ORIGIN.fullmatch(origin):
        expected = 'an origin without a path, such as https://app.example, or "null" or "*"'
        raise InvalidRequestError.refuse("allow_origins", origin, expected)
    return origin.lower()


def _refusal(header: str, value: str, option: str) -> HttpResponse:
    """Build the refusal of a request by one of its headers."""
    quoted = repr(value[:_QUOTED_CHARACTERS])
    text = f"this ledger refuses requests with the {header} {quoted}; {option} allows another one"
    return with_length(text_response(text, 403))


def _preflight_response(request: HttpRequest) -> HttpResponse:
    """Allow a browser to send its request with the headers that it announces (CORS)."""
    requested = request.headers.get("access-control-request-headers", "")
    names = requested if _HEADER_NAMES.fullmatch(requested) else "authorization, content-type"
    headers = (
        ("access-control-allow-methods", "GET, HEAD, POST, OPTIONS"),
        ("access-control-allow-headers", names),
        ("access-control-max-age", "600"),
        ("access-control-allow-private-network", "true"),  # for public sites, in some browsers
    )
    return with_length(HttpResponse(200, headers))
