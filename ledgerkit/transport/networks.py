"""Where the services are: presets, custom addresses, and the environment."""

from __future__ import annotations

import html
import ipaddress
import os
import re
from dataclasses import dataclass, replace
from typing import Literal, Never
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ledgerkit import validation
from ledgerkit.errors import InvalidRequestError

Surface = Literal["rpc", "archival_rpc", "api"]
SURFACES: tuple[Surface, ...] = ("rpc", "archival_rpc", "api")

# Limits of the public hosts are not published; this many requests a second is polite.
PUBLIC_RATE = 20.0

LOCAL = "local"  # the embedded ledger: it needs no network

_TELLING = 8  # a shorter key may well be a part of honest data


@dataclass(frozen=True, slots=True, repr=False)
class Network:
    """The addresses of one network, and what is known of it."""

    name: str
    rpc_url: str | None
    archival_rpc_url: str | None
    api_url: str | None
    rate: float | None = None
    liquid_tokens: tuple[str, ...] = ()

    def address(self, surface: Surface) -> str | None:
        """Give the address of one surface; None where there is none."""
        by_surface = {
            "rpc": self.rpc_url,
            "archival_rpc": self.archival_rpc_url,
            "api": self.api_url,
        }
        return by_surface[surface]

    def __repr__(self) -> str:
        """Name the hosts only: a provider's path may hold a key."""
        hosts = {urlsplit(u).hostname for u in (self.rpc_url, self.api_url) if u}
        return f"<Network {self.name}: {', '.join(sorted(h for h in hosts if h))}>"


PRESETS = {
    "mainnet": Network(
        "mainnet",
        "https://rpc.mainnet.fastnear.com",
        "https://archival-rpc.mainnet.fastnear.com",
        "https://api.fastnear.com",
        PUBLIC_RATE,
        (
            "meta-pool.near",
            "linear-protocol.near",
            "v2-nearx.stader-labs.near",
            "lst.rhealab.near",
        ),
    ),
    "testnet": Network(
        "testnet",
        "https://rpc.testnet.fastnear.com",
        "https://archival-rpc.testnet.fastnear.com",
        "https://test.api.fastnear.com",
        PUBLIC_RATE,
        ("meta-v2.pool.testnet", "linear-protocol.testnet"),
    ),
    # Nothing is sent: these are the addresses that `ledgerkit serve` has.
    LOCAL: Network(LOCAL, "http://127.0.0.1:3030", None, "http://127.0.0.1:3030/api"),
}


class ApiKey:
    """
    An API key that shows itself only when a request is made.

    Parameters
    ----------
    text
        The key. What is wrong with it is told by `check`, where no frame holds it.
    """

    __slots__ = ("__weakref__", "_spellings", "_text")

    def __init__(self, text: str) -> None:
        self._text = text.strip() if isinstance(text, str) else ""
        if not (self._text.isascii() and self._text.isprintable()):
            self._text = ""
        told = len(self._text) >= _TELLING
        self._spellings = (
            re.compile("".join(map(_spellings, self._text)).encode()) if told else None
        )

    def check(self) -> None:
        """Refuse what cannot be a key, without showing it."""
        if not self._text:
            msg = "api_key is not a text of printable ASCII characters (value not shown)"
            raise InvalidRequestError(msg, field="api_key", value=None, rule="printable ASCII")

    def reveal(self) -> str:
        """Give the key's text, for the one request it is for."""
        return self._text

    def hide(self, data: bytes) -> bytes:
        """Take the key out of what a host sends; one too short to tell from data stays."""
        return data if self._spellings is None else self._spellings.sub(b"[key hidden]", data)

    def __repr__(self) -> str:
        return "<ApiKey hidden>"

    def __reduce__(self) -> Never:
        """Refuse to be pickled."""
        msg = "an API key is never pickled; connect again where it is needed"
        raise TypeError(msg)


def _spellings(char: str) -> str:
    """Match a character as it is, or as URLs, JSON and HTML write it."""
    if char.isalnum() or char in "-._~":  # which all of them leave alone
        return re.escape(char)
    code = f"{ord(char):02x}"
    told = {char, f"\\{char}", html.escape(char), "+" if char == " " else char}
    ways = "|".join(re.escape(way) for way in sorted(told, key=len, reverse=True))
    return rf"(?:(?i:%{code}|\\u00{code}|&#x0*{code};)|&#0*{ord(char)};|{ways})"


def environment(name: str) -> str | None:
    """Read one of ledgerkit's variables; an empty one counts as absent."""
    return os.environ.get(f"LEDGERKIT_{name}") or None


def resolve(
    name: str | None,
    *,
    rpc_url: str | None = None,
    api_url: str | None = None,
    archival_rpc_url: str | None = None,
    bare: bool = False,
) -> Network:
    """
    Find the addresses to use.

    Parameters
    ----------
    name
        ``mainnet``, ``testnet``, ``local``, or any name beside addresses of its own.
        None reads ``LEDGERKIT_NETWORK``; where that names none and there is no
        address, it is ``local``.
    rpc_url, api_url, archival_rpc_url
        Addresses in place of the preset's; ``LEDGERKIT_RPC_URL`` and
        ``LEDGERKIT_API_URL`` serve where none is given.
    bare
        Whether a transport of the caller's answers, so that no address is needed.

    Returns
    -------
    network
        The addresses, checked.

    Raises
    ------
    InvalidRequestError
        If the name is unknown, or an address malformed.
    """
    asked, name = name, name or environment("NETWORK")
    given = {
        "rpc_url": rpc_url,
        "api_url": api_url,
        "archival_rpc_url": archival_rpc_url,
    }
    if asked != LOCAL:  # who asks for it by name wants no other host
        given["rpc_url"] = rpc_url or environment("RPC_URL")
        given["api_url"] = api_url or environment("API_URL")
    custom = {key: validation.url(text, key) for key, text in given.items() if text}
    if name in PRESETS:
        return _adjusted(PRESETS[name], custom)
    if not custom and not bare:
        if name is not None:
            rule = f"one of {', '.join(PRESETS)}, or any name with rpc_url= or api_url="
            raise InvalidRequestError.refuse("network", name, rule)
        return PRESETS[LOCAL]
    stand_in = "http://localhost" if bare else None
    return Network(
        name or "custom",
        custom.get("rpc_url", stand_in),
        custom.get("archival_rpc_url"),
        custom.get("api_url", stand_in),
    )


def _adjusted(preset: Network, custom: dict[str, str]) -> Network:
    """Put custom addresses in a preset's place; the polite rate is for the preset's own hosts."""
    if not custom:
        return preset
    rpc_url = custom.get("rpc_url", preset.rpc_url)
    # The preset's archival host stays behind where the caller's own endpoint answers.
    archival = preset.archival_rpc_url if rpc_url == preset.rpc_url else None
    return replace(
        preset,
        rpc_url=rpc_url,
        archival_rpc_url=custom.get("archival_rpc_url", archival),
        api_url=custom.get("api_url", preset.api_url),
        rate=None if {"rpc_url", "api_url"} <= custom.keys() else preset.rate,
    )


def host(url: str) -> str:
    """Show an address without its path, which may hold a provider's key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}"


def is_exposed(url: str) -> bool:
    """Tell whether anyone on the way could read what is sent to an address."""
    return urlsplit(url).scheme != "https" and not is_loopback(url)


def is_loopback(url: str) -> bool:
    """Tell whether an address stays on this machine."""
    name = urlsplit(url).hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:  # some other name, perhaps 127.example.com
        return False


def proxy_for(url: str) -> str | None:
    """Find the proxy that the environment names for an address."""
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
