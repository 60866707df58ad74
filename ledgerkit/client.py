"""The Ledger: one key, both surfaces, a context manager; and the session's default."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Never, Self, TypeVar

from ledgerkit import calls, checks, networks, rpc
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError, UnknownBlockError
from ledgerkit.networks import ApiKey

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from ledgerkit._http import AnyTransport
    from ledgerkit.calls import Call
    from ledgerkit.checks import At
    from ledgerkit.networks import Network
    from ledgerkit.settings import RetryPolicy, Settings
    from ledgerkit.wire import chain

T = TypeVar("T")
OnError = Literal["raise", "collect"]
_WORTH_A_BAR = 2
_LONGEST_GAP = 64  # more heights in a row are hardly ever skipped


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
        off = not progress or len(calls) < _WORTH_A_BAR
        with _bar()(total=len(calls), desc=label, disable=off, delay=0.5, leave=False) as bar:
            return self._http.send_many(calls, stop=stop, done=bar.update)

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
) -> Ledger:
    """
    Open a ledger and make it the session's default.

    Parameters
    ----------
    network
        ``"mainnet"``, ``"testnet"``, or any name beside addresses of its own. None
        reads ``LEDGERKIT_NETWORK``.
    api_key
        One key for both surfaces. None reads ``LEDGERKIT_API_KEY``, unless an
        address is passed here: a key meant for one service is not sent to another.
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

    Returns
    -------
    ledger
        Open, and the default of every verb.

    Raises
    ------
    NotConnectedError
        If neither network nor address is given.
    InvalidRequestError
        If an argument is malformed, or a key would travel over plain http.
    """
    global _default  # noqa: PLW0603 - the session's default
    from ledgerkit.settings import RetryPolicy, Settings

    own = any((rpc_url, api_url, archival_rpc_url))
    key = _key(api_key, own_addresses=own)
    del api_key  # a traceback shows local variables
    if key is not None:
        key.check()
    found = networks.resolve(
        network,
        rpc_url=rpc_url,
        api_url=api_url,
        archival_rpc_url=archival_rpc_url,
        bare=transport is not None,
    )
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
    NotConnectedError
        If none is passed, none is the default and the environment names none.
    """
    if ledger is not None:
        if not isinstance(ledger, Ledger):
            raise InvalidRequestError.refuse("ledger", ledger, "what connect() returned")
        return ledger
    if _default is None:
        chosen = connect()
        warnings.warn(f"no ledger was chosen: {chosen.network.name} answers", stacklevel=3)
        return chosen
    return _default


def disconnect() -> None:
    """Close the session's default ledger, if there is one."""
    global _default  # noqa: PLW0603 - the session's default
    if _default is not None:
        _default.close()
        _default = None


def _key(api_key: str | None, *, own_addresses: bool) -> ApiKey | None:
    """Wrap the key as soon as it is seen."""
    if api_key is None and not own_addresses:
        api_key = networks.environment("API_KEY")
    return None if api_key is None else ApiKey(api_key)


def _rate(
    rate: float | Literal["polite"] | None, network: Network, transport: AnyTransport | None
) -> float | None:
    """Decide the limit; what the caller's own transport reaches is the caller's matter."""
    if rate != "polite":
        return rate
    return network.rate if transport is None else None
