"""The addresses of networks: from presets, from arguments, and from the environment."""

from __future__ import annotations

import ipaddress
import os
import re
from base64 import b64encode
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import get_args
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from ledgerkit import validation
from ledgerkit.api.calls import RestSurface, Surface
from ledgerkit.api.chain_errors import AccountDoesNotExistError
from ledgerkit.errors import InvalidRequestError, LedgerError, UnknownAccountError, cut, quote
from ledgerkit.redaction import SecretText, secret_in

SURFACES: tuple[Surface, ...] = get_args(Surface)
SERVICES: dict[Surface, str] = {
    "rpc": "JSON-RPC endpoint",
    "archival_rpc": "archival JSON-RPC endpoint",
    "api": "REST API",
    "transactions": "Transactions API",
    "transfers": "Transfers API",
    "blocks": "block documents",
    "kv": "key-value data",
}

# The hosts of block archives, each with the first height of the next archive.
# Source: MAINNET_ARCHIVE_BOUNDARIES in fastnear/libs, neardata-fetcher/src/utils.rs. The third
# height is from the constant of the same name in Nearblocks/nearblocks.
_MAINNET_ARCHIVES = tuple(
    (stop, f"https://a{number}.mainnet.neardata.xyz/raw")
    for number, stop in enumerate((122_000_000, 142_000_000, 177_000_000, None))
)

# Requests a minute that the hosts of a domain accept from one address without a key. For RPC,
# FastNEAR's prices name 50; its notes on `docs.fastnear.com/debug` name about 100, perhaps for
# all hosts of fastnear.com together. The README of fastnear/neardata-server names 180.
_PER_MINUTE = {"fastnear.com": 50, "neardata.xyz": 180}
KEY_PER_MINUTE = 10_000  # smallest plan; others have 20,000 and 50,000 (the same notes)

_SERVICE_URLS = tuple(f"{surface}_url" for surface in get_args(RestSurface) if surface != "api")
_ENVIRONMENT_URLS = ("rpc_url", "api_url", *_SERVICE_URLS)

LOCAL = "local"  # the embedded ledger
_TOP_LEVEL = {
    "mainnet": "near",
    "testnet": "testnet",
    LOCAL: "near",
}  # the ends of most account ids
_SHORTEST_IMPLICIT = 42  # characters: "0x" or "0s" and 40 digits
_NAME = re.compile(r"\w[\w. -]{0,23}")  # shorter than an API key


@dataclass(frozen=True, slots=True, repr=False)
class Network:
    """The addresses of one network, its liquid staking tokens, and its veNEAR contract."""

    name: str
    rpc_url: str | None = None
    archival_rpc_url: str | None = None
    api_url: str | None = None
    liquid_tokens: tuple[str, ...] = ()
    transactions_url: str | None = None
    transfers_url: str | None = None
    blocks_url: str | None = None
    kv_url: str | None = None
    archive_urls: tuple[tuple[int | None, str], ...] = ()  # a height and the archive below it
    venear_id: str | None = None  # the contract that creates House-of-Stake lockups

    @property
    def addresses(self) -> dict[Surface, str]:
        return {surface: url for surface in SURFACES if (url := self.address(surface))}

    def address(self, surface: Surface) -> str | None:
        """Return the address of one surface; None if there is none."""
        url: str | None = getattr(self, f"{surface}_url")
        return url

    def host(self, surface: Surface) -> str:
        """Return the name of a surface's host; empty if there is none."""
        return urlsplit(self.address(surface) or "").hostname or ""

    def required_address(self, surface: Surface, request: str) -> str:
        """Return the address of one surface; raise if there is none for a request."""
        url = self.address(surface)
        if url is None:
            field = f"{surface}_url"
            msg = f"{cut(self.name)} has no {SERVICES[surface]}, which {request} would come from"
            remedy = f"Pass connect() its address as {field}=, if there is one."
            raise InvalidRequestError(msg, remedy=remedy, field=field)
        return url

    def archive_address(self, height: int) -> str:
        for stop, url in self.archive_urls:
            if stop is None or height < stop:
                return url
        return f"{self.blocks_url}/raw"

    def account_hint(self, account_id: str) -> str:
        """Return the account or network that the caller of an unknown account may mean, or ""."""
        expected = _TOP_LEVEL.get(self.name)
        name, _, top_level = account_id.rpartition(".")
        if expected is None or top_level == expected or len(account_id) >= _SHORTEST_IMPLICIT:
            return ""
        if not name:
            return f"Did you mean {quote(f'{account_id}.{expected}')}?"
        other = next((key for key, value in _TOP_LEVEL.items() if value == top_level), None)
        return "" if other is None or self.name == LOCAL else f'Did you mean connect("{other}")?'

    def __repr__(self) -> str:
        """Show the hosts only: a path may hold a provider's key."""
        hosts = {cut(self.host("rpc")), cut(self.host("api"))} - {""}
        return f"<Network {cut(self.name)}: {', '.join(sorted(hosts))}>"


PRESETS = {
    "mainnet": Network(
        "mainnet",
        "https://rpc.mainnet.fastnear.com",
        "https://archival-rpc.mainnet.fastnear.com",
        "https://api.fastnear.com",
        (
            "meta-pool.near",
            "linear-protocol.near",
            "v2-nearx.stader-labs.near",
            "lst.rhealab.near",
        ),
        transactions_url="https://tx.main.fastnear.com",
        transfers_url="https://transfers.main.fastnear.com",
        blocks_url="https://mainnet.neardata.xyz",
        archive_urls=_MAINNET_ARCHIVES,
        kv_url="https://kv.main.fastnear.com",
        # Source: voteagora/agora-near, src/lib/contractConstants.ts, the environment "prod"; and
        # voteagora/near-deployment-guides, MAINNET.md.
        venear_id="venear.dao",
    ),
    "testnet": Network(
        "testnet",
        "https://rpc.testnet.fastnear.com",
        "https://archival-rpc.testnet.fastnear.com",
        "https://test.api.fastnear.com",
        ("meta-v2.pool.testnet", "linear-protocol.testnet"),
        transactions_url="https://tx.test.fastnear.com",
        blocks_url="https://testnet.neardata.xyz",
        kv_url="https://kv.test.fastnear.com",
    ),
    # Nothing is sent there: they are the default addresses of `ledgerkit serve`.
    LOCAL: Network(
        LOCAL,
        "http://127.0.0.1:3030",
        None,
        "http://127.0.0.1:3030/api",
        transactions_url="http://127.0.0.1:3030/transactions",
        transfers_url="http://127.0.0.1:3030/transfers",
        blocks_url="http://127.0.0.1:3030/blocks",
        kv_url="http://127.0.0.1:3030/kv",
    ),
}

PUBLIC = PRESETS.keys() - {LOCAL}

_NAME_RULE = f"one of {', '.join(PRESETS)}, or any short name with rpc_url= or api_url="


class ApiKey(SecretText):
    """
    An API key, hidden wherever it is printed.

    A malformed key counts as empty; `check` raises for it later, when no frame on the traceback
    holds its text.
    """

    __slots__ = ()
    noun = "an API key"
    placeholder = "[key hidden]"

    def __init__(self, text: str) -> None:
        text = text.strip() if isinstance(text, str) else ""
        super().__init__(text if text.isascii() and text.isprintable() else "")

    def check(self) -> None:
        """Raise if the text cannot be a key, without showing it."""
        if not self._text:
            msg = "api_key is not a text of printable ASCII characters (value not shown)"
            raise InvalidRequestError(msg, field="api_key", value=None, rule="printable ASCII")


def environment(name: str) -> str | None:
    """Read one of ledgerkit's environment variables; an empty one counts as absent."""
    return os.environ.get(f"LEDGERKIT_{name}") or None


def add_account_hint(network: Network, error: LedgerError) -> None:
    """Suggest the likely account in the remedy of an unknown-account error."""
    if isinstance(error, UnknownAccountError | AccountDoesNotExistError):
        hint = network.account_hint(error.account_id or "")
        if hint and not error.remedy.startswith(hint):
            error.remedy = f"{hint} {error.remedy}"


def name_error(name: object) -> InvalidRequestError | None:
    """Return the error for what cannot be a network's name, such as an API key; else None."""
    if not isinstance(name, str):
        return None if name is None else InvalidRequestError.refuse("network", name, _NAME_RULE)
    if not name or (_NAME.fullmatch(name) and secret_in(name) is None):
        return None
    msg = f"the network may be an API key, and is not shown: expected {_NAME_RULE}"
    return InvalidRequestError(msg, remedy="Pass a key as api_key=.", field="network")


def resolve(name: str | None, *, has_transport: bool = False, **urls: str | None) -> Network:
    """
    Resolve the network arguments of `connect`; with a transport no address is needed.

    `urls` are addresses by the names of `Network`. Raises `InvalidRequestError` if the name is
    unknown, or an address is malformed.
    """
    requested, name = name, name or environment("NETWORK")
    error = name_error(name)
    if error is not None:
        del requested, name  # a traceback shows local variables
        raise error
    if requested != LOCAL:  # the embedded ledger, by its name, must not become another host
        urls |= {key: urls.get(key) or environment(key.upper()) for key in _ENVIRONMENT_URLS}
    custom = {key: validation.url(text, key) for key, text in urls.items() if text}
    if name in PRESETS:
        return _with_custom_urls(PRESETS[name], custom) if custom else PRESETS[name]
    if has_transport:
        custom = {"rpc_url": "http://localhost", "api_url": "http://localhost"} | custom
    if custom:
        return Network(name or "custom", **custom)  # type: ignore[arg-type]  # as below
    if name is None:
        return PRESETS[LOCAL]
    raise InvalidRequestError.refuse("network", name, _NAME_RULE, choices=PRESETS)


def _with_custom_urls(preset: Network, custom: dict[str, str]) -> Network:
    """Replace addresses of a preset; the caller's endpoints may serve another chain."""
    dropped: dict[str, None] = {}
    if custom.get("rpc_url", preset.rpc_url) != preset.rpc_url:
        dropped["archival_rpc_url"] = None
    if custom.keys() & {"rpc_url", "api_url"}:
        dropped |= dict.fromkeys(_SERVICE_URLS)
    urls: dict[str, str | None] = {**dropped, **custom}
    archives = () if "blocks_url" in urls else preset.archive_urls
    return replace(preset, archive_urls=archives, **urls)  # type: ignore[arg-type]  # mypy takes them for any field


def per_minute(host: str, *, has_key: bool) -> int | None:
    """Return how many requests a minute a public host accepts; None for any other host."""
    for domain, anonymous in _PER_MINUTE.items():
        if host.endswith(f".{domain}"):
            return KEY_PER_MINUTE if has_key else anonymous
    return None


def port_of(address: SplitResult) -> int:
    """Return the port of an address or of its scheme; raise ValueError if it is invalid."""
    return address.port or (443 if address.scheme == "https" else 80)


def is_loopback(url: str) -> bool:
    """Return True if an address is of this machine."""
    name = urlsplit(url).hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:  # a name such as 127.example.com
        return False


class Proxy:
    """
    A proxy of the environment, with its password hidden.

    A malformed URL raises later, in `check`, when no frame on the traceback holds its text.
    """

    __slots__ = ("_basic", "_hidden", "login", "scheme", "url")

    def __init__(self, text: str) -> None:
        parts = validation.split_url(text if "://" in text else f"http://{text}")
        self.url, self.scheme = "", "" if parts is None else parts.scheme
        self.login: tuple[str, SecretText] | None = None
        self._basic = SecretText("")
        # A password with an unquoted "/", "?" or "#" would become a host, and be shown.
        if parts is None or not parts.hostname:
            return
        if parts.path.strip("/") or parts.query or parts.fragment:
            return
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        if parts.username or parts.password:
            user, password = unquote(parts.username or ""), unquote(parts.password or "")
            self.login = user, SecretText(password)
            # Requests carry these too, so errors could repeat them.
            self._basic = SecretText(b64encode(f"{user}:{password}".encode()).decode())
            self._hidden = SecretText("" if password else user)

    @property
    def is_socks(self) -> bool:
        """True for a SOCKS proxy, which connects to hosts without knowing HTTP."""
        return self.scheme.startswith("socks")

    def headers(self) -> dict[str, str]:
        basic = self._basic.reveal()
        return {"Proxy-Authorization": f"Basic {basic}"} if basic else {}

    def check(self) -> None:
        """Raise if the URL is malformed, without showing it."""
        if not self.url:
            raise InvalidRequestError(
                "the proxy of the environment is not a valid URL (value not shown)",
                remedy="Write it as http://user:password@host:port, the password %-quoted.",
                field="proxy",
            )

    def __repr__(self) -> str:
        return f"<Proxy {self.url}>"


# Cached, so that the passwords are hidden for as long as the process runs.
_proxy = lru_cache(maxsize=8)(Proxy)


def proxy_for(url: str) -> Proxy | None:
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    text = proxies.get(parts.scheme) or proxies.get("all")
    return _proxy(text) if text else None
