"""The Ledger: one key, both surfaces, a context manager; and the session's default."""

from __future__ import annotations

import inspect
import warnings
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Never, Self, TypeVar

from ledgerkit import calls, checks, networks, rpc
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError, UnknownBlockError
from ledgerkit.networks import ApiKey

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from ledgerkit._http import AnyTransport
    from ledgerkit._local import Faults, World
    from ledgerkit.calls import Call
    from ledgerkit.checks import At
    from ledgerkit.networks import Network
    from ledgerkit.settings import RetryPolicy, Settings
    from ledgerkit.wire import chain

T = TypeVar("T")
OnError = Literal["raise", "collect"]
_WORTH_A_BAR = 2
_LONGEST_GAP = 64  # more heights in a row are hardly ever skipped
_MOST_NAMED = 3


class Ledger:
    """
    An open way to one network: both surfaces, one key.

    Made by `connect`. Verbs take it as ``ledger=``; the raw JSON of any call is
    reached by `rpc` and `get`. Closing it, or leaving its ``with`` block, closes
    its connections.

    Parameters
    ----------
    settings
        Where, as whom and how patiently to ask.
    """

    def __init__(self, settings: Settings) -> None:
        from ledgerkit._http import Http

        self.network = settings.network
        self._http = Http(settings)

    @property
    def world(self) -> World:
        """The world of the embedded ledger: let time pass in it, look behind its answers."""
        found: World = self._embedded("world")
        return found

    @property
    def faults(self) -> Faults:
        """What is to go wrong in the embedded ledger: ``ledger.faults.add("status=429")``."""
        found: Faults = self._embedded("faults")
        return found

    def _embedded(self, name: str) -> Any:
        """Give a part of the embedded ledger; its transport alone has one."""
        found = getattr(self._http.settings.transport, name, None)
        if found is None:
            msg = f"{self.network.name} is not the embedded ledger and has no {name}"
            raise InvalidRequestError(msg, remedy='Connect with connect("local").', field=name)
        return found

    def rpc(self, method: str, params: Any = ()) -> Any:
        """
        Call any JSON-RPC method.

        Parameters
        ----------
        method
            The method, such as ``"block"``.
        params
            Its parameters, an object or an array.

        Returns
        -------
        result
            The decoded `result`; integers of any size stay exact.

        Raises
        ------
        LedgerError
            The typed error of the answer, or of the failure to ask.

        Notes
        -----
        Source: POST / of the JSON-RPC endpoint.
        """
        return self.send(rpc.call(checks.method_name(method), params))

    def get(self, path: str) -> Any:
        """
        Read any path of the indexed REST API.

        Parameters
        ----------
        path
            The path, such as ``"/v1/account/root.near/ft"``.

        Returns
        -------
        body
            The decoded JSON.

        Raises
        ------
        LedgerError
            The typed error of the status, or of the failure to ask.

        Notes
        -----
        Source: GET of the indexed REST API.
        """
        return self.send(_raw_path(path))

    def send(self, call: Call[T]) -> T:
        """
        Send a described call.

        Parameters
        ----------
        call
            From `ledgerkit.rpc` or `ledgerkit.indexed`.

        Returns
        -------
        value
            Its typed answer.

        Raises
        ------
        LedgerError
            The typed error of the answer, or of the failure to ask.
        """
        self._warn_of_strangers([call])
        return self._http.send(call)

    def send_many(
        self,
        calls: Sequence[Call[T]],
        *,
        on_error: OnError = "raise",
        progress: bool = True,
        label: str = "",
    ) -> list[T | LedgerError]:
        """
        Send described calls concurrently.

        Parameters
        ----------
        calls
            The calls.
        on_error
            ``raise`` stops at the first failure; ``collect`` leaves each failure in
            its call's place.
        progress
            Whether a bar shows, once it takes longer than half a second.
        label
            What the bar is about.

        Returns
        -------
        values
            One a call, in order.

        Raises
        ------
        LedgerError
            The first failure, unless collected.
        """
        stop = checks.one_of(on_error, "on_error", ("raise", "collect")) == "raise"
        self._warn_of_strangers(calls)
        off = not progress or len(calls) < _WORTH_A_BAR
        with _bar()(total=len(calls), desc=label, disable=off, delay=0.5, leave=False) as bar:
            return self._http.send_many(calls, stop=stop, done=bar.update)

    def _warn_of_strangers(self, calls: Sequence[Call[Any]]) -> None:
        """Say which accounts the embedded ledger does not hold: the public one may."""
        look = getattr(self._http.settings.transport, "strangers", None)
        strangers: list[str] = look(calls) if look else []
        if strangers:
            more = len(strangers) - _MOST_NAMED
            named = ", ".join(strangers[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
            warnings.warn(
                f"{_who(self)} holds no account {named}, and knows nothing of the public "
                'networks: connect("mainnet") asks there',
                stacklevel=_depth(),
            )

    def locate(self, at: object = None) -> At:
        """
        Read a point in the chain's history, finding the block of a time.

        Parameters
        ----------
        at
            As everywhere: a height, a block hash, a finality name, a time.

        Returns
        -------
        at
            A block reference. For a time: the last block that is not younger.

        Raises
        ------
        InvalidRequestError
            If it is none of these, or a time before the first block.
        """
        found = checks.at(at)
        return found if found.timestamp_ns is None else self._at_time(found.timestamp_ns)

    def _at_time(self, timestamp_ns: int) -> At:
        """Bisect heights for the last block that is not younger than a time."""
        after = self.send(rpc.block(checks.at("final")))
        best = self.send(rpc.block(checks.at("genesis")))
        if timestamp_ns < _time(best):
            rule = f"not before the first block, {_time(best)} ns since 1970"
            raise InvalidRequestError.refuse("at", timestamp_ns, rule)
        if timestamp_ns >= _time(after):
            return checks.at(after.header.hash)
        while after.header.height - best.header.height > 1:
            block = self._block_between(best, after)
            if block is None:
                break
            if _time(block) > timestamp_ns:
                after = block
            else:
                best = block
        return checks.at(best.header.hash)

    def _block_between(self, low: chain.Block, high: chain.Block) -> chain.Block | None:
        """Read a block between two, near their middle; None when `low` is the parent of `high`."""
        middle = (low.header.height + high.header.height) // 2
        lowest = max(low.header.height, middle - _LONGEST_GAP)
        for height in range(middle, lowest, -1):
            with suppress(UnknownBlockError):
                return self.send(rpc.block(checks.at(height)))
        # Nothing below the middle: the parent of the upper one tells skipped from dropped.
        if high.header.prev_hash == low.header.hash:
            return None
        parent = self.send(rpc.block(checks.at(high.header.prev_hash)))
        if lowest > low.header.height and parent.header.height > middle:
            raise UnknownBlockError(
                f"this host holds no block from height {lowest + 1} to {middle}",
                remedy="Connect with archival_rpc_url=, whose host keeps every block.",
            )
        return parent

    def close(self) -> None:
        """Close the connections; calling it again does nothing."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger {self.network.name}>"

    def __reduce__(self) -> Never:
        """Refuse to be pickled."""
        msg = "a Ledger holds connections and perhaps a key; pickle its frames instead"
        raise TypeError(msg)


def _who(ledger: Ledger) -> str:
    """Name who answers."""
    name = getattr(ledger._http.settings.transport, "name", None)  # noqa: SLF001 - of this module
    if ledger.network.name != networks.LOCAL or name is None:
        return ledger.network.name
    return f"the embedded ledger (world {name})" if name else "the embedded ledger"


def _depth() -> int:
    """Count the calls from a warning up to whoever called this package."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("ledgerkit."):
        frame, depth = frame.f_back, depth + 1
    return depth


def _bar() -> Any:
    """Choose the progress bar: tqdm.auto warns in a notebook that has no widgets."""
    from importlib.util import find_spec

    if find_spec("ipywidgets"):
        from tqdm import auto

        return auto.tqdm
    import tqdm

    return tqdm.tqdm


def _time(block: chain.Block) -> int:
    """Give a block's time; without one it can't be found by time."""
    if block.header.time_ns is None:
        what = f"block {block.header.height}"
        raise DecodeError(f"{what} has no timestamp", asked=what, path="$.result.header.timestamp")
    return block.header.time_ns


def _raw_path(path: str) -> Call[Any]:
    """Describe any path of the REST API."""
    if not isinstance(path, str) or not path.startswith("/") or "?" in path or "#" in path:
        rule = "a path that begins with / and has no query"
        shown = path.partition("?")[0] if isinstance(path, str) else path  # a query may hold a key
        raise InvalidRequestError.refuse("path", shown, rule)
    return calls.get(path, Any, asked=f"GET {path}")


_default: Ledger | None = None


def connect(
    network: str | None = None,
    *,
    api_key: str | None = None,
    rpc_url: str | None = None,
    api_url: str | None = None,
    archival_rpc_url: str | None = None,
    transport: AnyTransport | None = None,
    timeout_s: float = 20.0,
    retries: RetryPolicy | None = None,
    rate: float | Literal["polite"] | None = "polite",
    in_flight: int = 8,
    key_in: Literal["header", "query"] = "header",
    world: str | World | None = None,
    size: int | None = None,
    seed: int = 0,
) -> Ledger:
    """
    Open a ledger and make it the session's default.

    Parameters
    ----------
    network
        ``"mainnet"``, ``"testnet"``, ``"local"`` for the embedded ledger, or any name
        beside addresses of its own. None reads ``LEDGERKIT_NETWORK``; where that names
        none and there is no address, the embedded ledger answers.
    api_key
        One key for both surfaces. None reads ``LEDGERKIT_API_KEY``, unless an address
        is passed here or the embedded ledger answers: a key meant for one service is
        not sent to another.
    rpc_url, api_url, archival_rpc_url
        Addresses in place of the network's own. None reads ``LEDGERKIT_RPC_URL``
        and ``LEDGERKIT_API_URL``.
    transport
        Any `httpx.BaseTransport` (many subjects then use threads) or
        `httpx.AsyncBaseTransport` that answers in the network's place.
    timeout_s
        Seconds one request may take.
    retries
        How often and how long a read is tried.
    rate
        Most requests a second; ``"polite"`` is 20 on the public hosts and no limit
        elsewhere, None is no limit.
    in_flight
        Most requests at a time. Beyond 8 the extra ``ledgerkit[bulk]`` is faster.
    key_in
        Where the key travels: ``"header"``, or ``"query"`` as ``apiKey=``.
    world
        For the embedded ledger: ``"demo"``, ``"empty"``, ``"crowd"``, or an open world.
        None is ``"demo"``.
    size, seed
        How large a named world is, where that varies, and which of the possible ones.

    Returns
    -------
    ledger
        Open, and the default of every verb.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, or a key would travel over plain http.
    """
    global _default  # noqa: PLW0603 - the session's default
    from ledgerkit.settings import RetryPolicy, Settings

    own = any((rpc_url, api_url, archival_rpc_url))
    key = None if api_key is None else ApiKey(api_key)
    del api_key  # a traceback shows local variables
    found = networks.resolve(
        networks.LOCAL if network is None and world is not None else network,
        rpc_url=rpc_url,
        api_url=api_url,
        archival_rpc_url=archival_rpc_url,
        bare=transport is not None,
    )
    embedded = transport is None and found is networks.PRESETS[networks.LOCAL]
    if key is None and not own and not embedded:
        key = _environments_key()
    if key is not None:
        key.check()
    if embedded:
        found, transport = _open_local(found, world, size, seed)
    elif world is not None or size is not None or seed:
        rule = 'left out, or beside "local" without an address: it is of the embedded ledger'
        raise InvalidRequestError.refuse("world", world, rule)
    settings = Settings(
        network=found,
        key=key,
        key_in=key_in,
        transport=transport,
        timeout_s=timeout_s,
        retries=retries or RetryPolicy(),
        rate=_rate(rate, found, transport),
        in_flight=in_flight,
    )
    _default = Ledger(settings)
    return _default


def current(ledger: Ledger | None = None) -> Ledger:
    """
    Give the ledger a verb asks: the one passed, or the session's default.

    Parameters
    ----------
    ledger
        The one passed.

    Returns
    -------
    ledger
        An open ledger. Without any, `connect` is called without a name, and says so.

    Raises
    ------
    InvalidRequestError
        If what is passed is no ledger, or the environment names no network there is.
    """
    if ledger is not None:
        if not isinstance(ledger, Ledger):
            raise InvalidRequestError.refuse("ledger", ledger, "what connect() returned")
        return ledger
    if _default is None:
        chosen = connect()
        told = f"no ledger was chosen: {_who(chosen)} answers"
        if chosen.network.name == networks.LOCAL:
            told += '; connect("mainnet") asks the public network'
        warnings.warn(told, stacklevel=_depth())
        return chosen
    return _default


def disconnect() -> None:
    """Close the session's default ledger, if there is one."""
    global _default  # noqa: PLW0603 - the session's default
    if _default is not None:
        _default.close()
        _default = None


def _environments_key() -> ApiKey | None:
    """Wrap the environment's key as soon as it is seen."""
    text = networks.environment("API_KEY")
    return None if text is None else ApiKey(text)


def _open_local(
    network: Network, world: str | World | None, size: int | None, seed: int
) -> tuple[Network, AnyTransport]:
    """Open the embedded ledger; which of its tokens are liquid stake is for its world to say."""
    from ledgerkit import _local

    way = _local.open_local("demo" if world is None else world, size=size, seed=seed)
    return replace(network, liquid_tokens=way.liquid_tokens), way


def _rate(
    rate: float | Literal["polite"] | None, network: Network, transport: AnyTransport | None
) -> float | None:
    """Decide the limit; what the caller's own transport reaches is the caller's matter."""
    if rate != "polite":
        return rate
    return network.rate if transport is None else None
