"""`Ledger`, a connection to one network, and the default one that `connect` opens."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Never, Self, TypeVar, cast, get_args

from ledgerkit import units, user_warnings, validation
from ledgerkit.api import calls, rpc
from ledgerkit.block_search import time_to_height
from ledgerkit.block_search.bisection import Points
from ledgerkit.errors import (
    InvalidRequestError,
    LedgerError,
    UnknownBlockError,
    UnknownEpochError,
    cut,
)
from ledgerkit.garbage_collector import collector_paused
from ledgerkit.progress import bar, show_waits
from ledgerkit.transport import networks
from ledgerkit.transport.networks import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from types import TracebackType

    from ledgerkit.api.calls import Call
    from ledgerkit.api.models import chain
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.transport.disk_cache import DiskCache
    from ledgerkit.transport.embedded import AsyncLocal, Faults, Local, World
    from ledgerkit.transport.httpx_transports import AnyTransport
    from ledgerkit.transport.networks import Network
    from ledgerkit.transport.rate_limit import Limit
    from ledgerkit.transport.recorder import Recorder
    from ledgerkit.transport.replay import Replay
    from ledgerkit.transport.settings import Cache, RetryPolicy, Settings
    from ledgerkit.validation import BlockReference

    Embedded = Local | AsyncLocal

T = TypeVar("T")
OnError = Literal["raise", "collect"]
RestSurface = Literal["api", "transactions", "transfers", "blocks", "kv"]
RECORDING = ".lk"  # how the name of a recording ends
_MIN_CALLS_FOR_BAR = 2
_MAX_IDS_IN_WARNING = 3


class Ledger:
    """
    A connection to one network: JSON-RPC, the REST API and other services, and one key for all.

    `connect` opens it. Verbs take it as ``ledger=``; `rpc`, `get` and `post` return the raw JSON
    of any call. Closing it, or leaving its ``with`` block, closes its connections.

    Parameters
    ----------
    settings
        The network, the key, and the limits.

    Examples
    --------
    >>> with lk.connect("local") as ledger:
    ...     ledger.rpc("gas_price", [None])
    {'gas_price': '100000000'}
    """

    # Other modules of the package use `session`, which sends the requests, and `clock`.
    def __init__(self, settings: Settings) -> None:
        from ledgerkit.transport.session import Session

        self.network = settings.network
        self._embedded = _as_embedded(settings.transport)
        self._replay = _as_replay(settings.transport)
        self.display_name = _display_name(settings.network, self._embedded)
        self.clock = Clock(self._replay)
        self.session = Session(settings)
        self._points = Points()
        self._memo: dict[str, Any] = {}

    @property
    def limit(self) -> Limit:
        """The rate limit of the host that is sent the fewest requests."""
        return self.session.settings.lowest_limit()

    @property
    def is_embedded(self) -> bool:
        """True for the embedded ledger, whose data is invented."""
        return self._embedded is not None

    @property
    def replay(self) -> Replay | None:
        """The recording that answers; None if answers come from hosts or the embedded ledger."""
        return self._replay

    @property
    def world(self) -> World:
        """The world of the embedded ledger: its blocks and its state."""
        return self._require_embedded("world").world

    @property
    def faults(self) -> Faults:
        """The faults injected into the embedded ledger: ``ledger.faults.add("status=429")``."""
        return self._require_embedded("faults").faults

    def _require_embedded(self, field: str) -> Embedded:
        if self._embedded is None:
            msg = f"{self.network.name} is not the embedded ledger and has no {field}"
            raise InvalidRequestError(msg, remedy='Connect with connect("local").', field=field)
        return self._embedded

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
            If the host reports an error, or could not be reached.

        Notes
        -----
        Source: POST / of the JSON-RPC endpoint.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> ledger.rpc("block", {"finality": "final"})["header"]["height"]
        180000050
        """
        return self.send(rpc.call(validation.method_name(method), params))

    def get(self, path: str, *, surface: RestSurface = "api") -> Any:
        """
        Read any path of the REST API, or of another service.

        Parameters
        ----------
        path
            The path, such as ``"/v1/account/root.near/ft"``, and its query if it has one.
        surface
            The service: ``"api"``, the REST API; ``"transactions"``, ``"transfers"``,
            ``"blocks"``, the block documents; or ``"kv"``, the key-value data.

        Returns
        -------
        body
            The decoded JSON; integers of any size stay exact.

        Raises
        ------
        InvalidRequestError
            If an argument is malformed, or the network does not have the service.
        LedgerError
            If the host reports an error, or could not be reached.

        Notes
        -----
        Source: GET of the service.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> ledger.get("/v1/account/leo.near/staking")["pools"]
        [{'last_update_block_height': 180000005, 'pool_id': 'north.poolv1.near'}]
        """
        validation.one_of(surface, "surface", get_args(RestSurface))
        path = validation.request_path(path)
        return self.send(calls.get(path, Any, request=f"GET {path}", surface=surface))

    def post(self, path: str, body: dict[str, Any], *, surface: RestSurface) -> Any:
        """
        Send a JSON object to any path of a service, which answers with JSON.

        Parameters
        ----------
        path
            The path, such as ``"/v0/transfers"``.
        body
            The members of the object.
        surface
            The service, as for `get`.

        Returns
        -------
        body
            The decoded JSON; integers of any size stay exact.

        Raises
        ------
        InvalidRequestError
            If an argument is malformed, or the network does not have the service.
        LedgerError
            If the host reports an error, or could not be reached.

        Notes
        -----
        Source: POST of the service.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> body = {"account_id": "nina.near", "limit": 1, "desc": True}
        >>> page = ledger.post("/v0/transfers", body, surface="transfers")
        >>> page["transfers"][0]["amount"]
        '2000000000000000000000000'
        """
        validation.one_of(surface, "surface", get_args(RestSurface))
        path = validation.request_path(path)
        data = validation.json_args(body, "body")
        if not isinstance(body, dict):
            raise InvalidRequestError.refuse("body", body, "a dict, the members of a JSON object")
        call = calls.get(path, Any, request=f"POST {path}", surface=surface)
        return self.send(replace(call, body=data))

    def send(self, call: Call[T]) -> T:
        """
        Send a call.

        Parameters
        ----------
        call
            A call of `ledgerkit.api.rpc` or `ledgerkit.api.rest`.

        Returns
        -------
        value
            The decoded response.

        Raises
        ------
        LedgerError
            If the host reports an error, or could not be reached.

        Examples
        --------
        >>> from ledgerkit.api import rest
        >>> ledger = lk.connect("local")
        >>> ledger.send(rest.staking("leo.near")).pools[0].pool_id
        'north.poolv1.near'
        """
        with newest_block_in_errors(self):
            return self._send(call)

    def _send(self, call: Call[T]) -> T:
        self._warn_of_missing_accounts([call])
        with show_waits():
            value = self.session.send(call)
        self._warn_of_disk_cache()
        return value

    def send_many(
        self,
        calls: Sequence[Call[T]],
        *,
        on_error: OnError = "raise",
        progress: bool = True,
        label: str = "",
    ) -> list[T | LedgerError]:
        """
        Send calls concurrently.

        Parameters
        ----------
        calls
            The calls.
        on_error
            ``raise`` stops at the first failure; ``collect`` returns each error in its
            call's place.
        progress
            Whether to show a progress bar, after half a second.
        label
            The title of the bar.

        Returns
        -------
        values
            The decoded responses, in the order of the calls.

        Raises
        ------
        LedgerError
            The first failure, unless collected.

        Examples
        --------
        >>> from ledgerkit.api import rest
        >>> ledger = lk.connect("local")
        >>> calls = [rest.staking("leo.near"), rest.staking("bob.near")]
        >>> [len(response.pools) for response in ledger.send_many(calls)]
        [1, 2]
        """
        stop = validation.one_of(on_error, "on_error", ("raise", "collect")) == "raise"
        self._warn_of_missing_accounts(calls)
        disable = not progress or len(calls) < _MIN_CALLS_FOR_BAR
        with (
            newest_block_in_errors(self),
            bar(total=len(calls), desc=label, disable=disable, delay=0.5, leave=False) as tracker,
            show_waits() if disable else nullcontext(),
        ):
            values = self.session.send_many(calls, stop_on_error=stop, progress=tracker.update)
        self._warn_of_disk_cache()
        return values

    def stream(
        self, calls: Iterable[Call[T]], *, size: int = 256, rate_limit_wait_s: float = 0.0
    ) -> Generator[list[T | LedgerError], None, None]:
        """
        Send calls as their iterator yields them, however many there are.

        Calls are taken from the iterator a few batches ahead, in the caller's thread, and
        are sent while the caller processes a batch.

        Parameters
        ----------
        calls
            The calls; the iterator may be endless.
        size
            The number of responses in a batch.
        rate_limit_wait_s
            Seconds for which a rate-limited call (HTTP 429) is repeated, beyond the
            ledger's `RetryPolicy`, before its error is returned.

        Returns
        -------
        batches
            Lists of decoded responses in the order of the calls; the last may be shorter. A
            failed call has its error in its place. Closing the generator cancels the requests
            in flight. An exception that `calls` raises is raised here after the responses to
            the calls before it.

        Raises
        ------
        InvalidRequestError
            If `size` is not a positive integer, or the ledger is closed.

        Examples
        --------
        >>> from ledgerkit.api import rest
        >>> ledger = lk.connect("local")
        >>> calls = (rest.ft(account_id) for account_id in ledger.world.account_ids())
        >>> [len(batch) for batch in ledger.stream(calls, size=20)]
        [20, 20, 7]
        """
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise InvalidRequestError.refuse("size", size, "an integer from 1 up")
        return self.session.stream(calls, size=size, rate_limit_wait_s=rate_limit_wait_s)

    def sibling(self, *, in_flight: int | None = None, rate: float | None = None) -> Ledger:
        """
        Open another ledger with the same hosts and its own limits.

        It does not become the default ledger, and is closed with this one. A transport that
        was passed to `connect`, and the embedded ledger, stay open when it is closed.

        Parameters
        ----------
        in_flight
            Maximum number of concurrent requests; None is this ledger's limit.
        rate
            Maximum number of requests a second to each host, up to this ledger's limit; None
            is that limit.

        Returns
        -------
        ledger
            The open ledger. The limits of the two ledgers apply separately; a public host's
            limit for a minute is shared by all ledgers of the process that have the same rate.

        Raises
        ------
        InvalidRequestError
            If an argument is malformed, or this ledger is closed.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> slow = ledger.sibling(in_flight=1, rate=5)
        >>> slow
        <Ledger local: at most 5 requests a second, to each host>
        >>> lk.gas_price(ledger=slow)
           gas_price
        0  100000000
        """
        limits = _limits(self.session.settings, in_flight, rate)
        ledger = open_like(self, **limits)
        self.session.siblings.add(ledger)
        return ledger

    def description(self) -> Description:
        """
        Describe this ledger for another process, without its key.

        Returns
        -------
        description
            The settings, to be passed to `reopen`.

        Raises
        ------
        InvalidRequestError
            If the ledger has a transport in this process, which no other process can use.

        Examples
        --------
        >>> from ledgerkit import client
        >>> ledger = lk.connect("testnet", rate=2)
        >>> client.reopen(ledger.description())
        <Ledger testnet: at most 2 requests a second, to each host>
        """
        settings = self.session.settings
        if settings.recorder is not None:
            msg = "another process cannot add to a recording"
            remedy = "Use a ledger that is not recorded."
            raise InvalidRequestError(msg, remedy=remedy, field="ledger")
        if settings.transport is not None:
            msg = f"another process cannot use {self.display_name}: its transport is in this one"
            remedy = "Run `ledgerkit serve` and connect to its address."
            raise InvalidRequestError(msg, remedy=remedy, field="ledger")
        return Description(replace(settings, key=None), needs_key=settings.key is not None)

    @property
    def disk_cache(self) -> DiskCache | None:
        """The disk cache; None if there is none."""
        return self.session.ready().disk_cache

    def forget(self) -> None:
        """
        Drop all cached responses, in memory and on disk.

        Examples
        --------
        >>> ledger = lk.connect("mainnet", cache="responses")
        >>> ledger.forget()
        >>> lk.cache_info()["entries"].tolist()
        [0, 0, 0, 0, 0]
        """
        self.session.ready().clear_caches()

    def memo(self, key: str, factory: Callable[[], T]) -> T:
        """
        Return the object stored under a key; the first call builds it.

        Parameters
        ----------
        key
            The name of the object, such as ``"chain"``.
        factory
            Builds the object. If two threads run it, the first result is used.

        Returns
        -------
        value
            The same object at every call, also after `forget`.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> ledger.memo("names", dict)["alice.near"] = "Alice"
        >>> ledger.memo("names", dict)
        {'alice.near': 'Alice'}
        """
        if key not in self._memo:
            self._memo.setdefault(key, factory())
        value: T = self._memo[key]
        return value

    def _warn_of_disk_cache(self) -> None:
        """Warn, once, if the disk cache was switched off."""
        disk_cache = self.session.disk_cache
        if disk_cache and (warning := disk_cache.pop_warning()):
            user_warnings.warn(warning)

    def _warn_of_missing_accounts(self, calls: Sequence[Call[Any]]) -> None:
        """Warn of accounts that the embedded ledger lacks: the user may mean public ones."""
        missing_ids = [] if self._embedded is None else self._embedded.missing_accounts(calls)
        if missing_ids:
            ids = ", ".join(missing_ids[:_MAX_IDS_IN_WARNING])
            if len(missing_ids) > _MAX_IDS_IN_WARNING:
                ids += f" and {len(missing_ids) - _MAX_IDS_IN_WARNING} more"
            hint = self.network.account_hint(missing_ids[0]) if len(missing_ids) == 1 else ""
            user_warnings.warn(
                f"{self.display_name} has no account {ids}.{hint and f' {hint}'} Use "
                'connect("mainnet") to read from the public network.'
            )

    def locate(self, at: object = None) -> BlockReference:
        """
        Resolve a block reference; a time is resolved to its block.

        Parameters
        ----------
        at
            A height, a block hash, a finality name, or a time.

        Returns
        -------
        at
            A block reference. For a time: that of the last block at or before it.

        Raises
        ------
        InvalidRequestError
            If it is none of these, or a time before the first block.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> ledger.locate("2026-08-01T00:00:20").params
        {'block_id': '9ywLa8ec12z8sFuzp6mfZDdg3oGvmBveRc2M4EmDJ7jk'}
        """
        reference = validation.block_reference(at)
        if reference.timestamp_ns is None:
            return reference
        return validation.block_reference(self.pin(reference)[1])

    def pin(self, at: object = None) -> tuple[int, str]:
        """
        Return height and hash of a block, at which several reads see the same state.

        Parameters
        ----------
        at
            A height, a block hash, a finality name, or a time.

        Returns
        -------
        height, block_hash
            Those of the block; for a time, of the last final block at or before it.

        Raises
        ------
        InvalidRequestError
            If it is none of these, or a time before the first block.
        LedgerError
            If the block could not be read.

        Notes
        -----
        Source: block.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> ledger.pin("2026-08-01T00:00:20")
        (180000033, '9ywLa8ec12z8sFuzp6mfZDdg3oGvmBveRc2M4EmDJ7jk')
        """
        reference = _block_reference(at)
        if reference.timestamp_ns is None:
            header = self.send(rpc.block(reference)).header
            return header.height, header.hash
        [point] = self.locate_many([reference])
        if isinstance(point, LedgerError):
            raise point
        return point.height, point.hash

    def locate_many(self, places: Sequence[object]) -> list[Point | LedgerError]:
        """
        Resolve many block references and times to blocks.

        The heights and times of the final blocks that are read are stored: the next search
        starts from the nearest ones.

        Parameters
        ----------
        places
            Heights, block hashes, finality names or times, as for `locate`.

        Returns
        -------
        points
            A point for each, with `height`, `time_ns` and `hash`. For a time: the last
            final block at or before it. For a skipped height: the last block below it. A
            reference that could not be resolved has its error in its place.

        Raises
        ------
        InvalidRequestError
            If one is malformed. Nothing has been sent then.

        Notes
        -----
        Source: block.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> points = ledger.locate_many(["genesis", "2026-08-01T00:00:20", "final"])
        >>> [point.height for point in points]
        [180000000, 180000033, 180000050]
        """
        references = [_block_reference(at) for at in places]
        return time_to_height.find_blocks(self._blocks, self._points, references)

    def _blocks(self, calls: Sequence[Call[chain.Block]]) -> list[chain.Block | LedgerError]:
        """Read blocks; a failed call has its error in its place."""
        if len(calls) > 1:
            return self.send_many(calls, on_error="collect", progress=False)
        try:
            return [self._send(call) for call in calls]
        except LedgerError as error:
            return [error]

    def close(self) -> None:
        """
        Close the connections; calling it again does nothing.

        Verbs that other threads run on this ledger end at once with `InvalidRequestError`,
        also while they wait for a rate limit, and send no further request.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> ledger.close()
        >>> lk.gas_price()
        Traceback (most recent call last):
          ...
        ledgerkit.errors.InvalidRequestError: this ledger is closed. Connect again.
        """
        self.session.close()

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
        session = getattr(self, "session", None)  # a traceback may show one that __init__ refused
        limits = "" if session is None else session.settings.limits_text()
        if self._replay is not None:
            answers = units.count_text(len(self._replay), "answer")
            limits = f"{answers} recorded in {cut(self._replay.path)}"
        return f"<Ledger {cut(self.network.name)}{': ' if limits else ''}{limits}>"

    def __reduce__(self) -> Never:
        """Refuse to be pickled."""
        msg = "a Ledger holds connections and perhaps a key; pickle its frames instead"
        raise TypeError(msg)


class Clock:
    """A ledger's clock, which in a recording shows the recorded times."""

    def __init__(self, replay: Replay | None) -> None:
        self._replay = replay

    def monotonic(self) -> float:
        """Return seconds that never go back; the waits that a recording skips are added."""
        return time.monotonic() + (0.0 if self._replay is None else self._replay.waited_s)

    def time_ns(self) -> int:
        """Return the time of the last answer in a recording, else the present, in ns."""
        asked_at = None if self._replay is None else self._replay.asked_at
        return time.time_ns() if asked_at is None else asked_at


def _as_embedded(transport: AnyTransport | None) -> Embedded | None:
    """Return the transport of the embedded ledger; None for any other."""
    if "ledgerkit.transport.embedded" not in sys.modules:  # hosts do not need the embedded ledger
        return None
    from ledgerkit.transport.embedded import AsyncLocal, Local

    return transport if isinstance(transport, Local | AsyncLocal) else None


def _as_replay(transport: AnyTransport | None) -> Replay | None:
    """Return the transport of a recording; None for any other."""
    if "ledgerkit.transport.replay" not in sys.modules:
        return None
    from ledgerkit.transport.replay import Replay

    return transport if isinstance(transport, Replay) else None


def _display_name(network: Network, embedded: Embedded | None) -> str:
    """Return the name of a network, or of the embedded ledger and its world."""
    if embedded is None or network.name != networks.LOCAL:
        return network.name
    return (
        f"the embedded ledger (world {embedded.name})" if embedded.name else "the embedded ledger"
    )


def _block_reference(at: object) -> BlockReference:
    """Parse a block reference, which may be parsed already."""
    return at if isinstance(at, validation.BlockReference) else validation.block_reference(at)


@contextmanager
def newest_block_in_errors(ledger: Ledger, height: object = None) -> Iterator[None]:
    """Name the newest block in the remedy of an error about a height, or `height`, above it."""
    try:
        yield
    except (UnknownBlockError, UnknownEpochError) as error:
        height = error.block_height if height is None else height
        if isinstance(height, int):
            # If the newest block cannot be read, the error is raised as it is.
            with suppress(LedgerError), show_waits():
                call = rpc.block(validation.block_reference("optimistic"))
                newest = ledger.session.send(call).header.height
                if height > newest:
                    error.remedy = f"The newest block is {newest}: pass a height up to it, or wait."
        raise


# Ledgers like another one -----------------------------------------------------------------


def open_like(ledger: Ledger, **changes: Any) -> Ledger:
    """Open a ledger with the settings of an open one but for `changes`; it shares its transport."""
    return Ledger(replace(ledger.session.ready().settings, borrowed=True, **changes))


def _limits(settings: Settings, in_flight: int | None, rate: float | None) -> dict[str, Any]:
    """Return the settings of other limits; None changes nothing, and a rate can only be lowered."""
    from ledgerkit.transport.settings import positive

    changes: dict[str, Any] = {}
    if in_flight is not None:
        changes["in_flight"] = in_flight
    if rate is not None:
        positive("rate", rate)
        changes["rate"] = min(rate, settings.rate or rate)
    return changes


@dataclass(frozen=True, slots=True)
class Description:
    """The settings of a ledger for another process: `needs_key` is True if they had a key."""

    settings: Settings
    needs_key: bool


def reopen(
    description: Description, *, in_flight: int | None = None, rate: float | None = None
) -> Ledger:
    """
    Open a ledger from its description, with the limits of `Ledger.sibling`.

    It does not become the default one. Its key is read from the environment of this process;
    raises `InvalidRequestError` if requests need one and there is none.
    """
    if not isinstance(description, Description):
        rule = "the result of Ledger.description()"
        raise InvalidRequestError.refuse("description", description, rule)
    settings = description.settings
    settings = replace(settings, **_limits(settings, in_flight, rate))
    if description.needs_key:
        key = _environment_key()
        if key is None:
            msg = "this ledger needs an API key, and the environment has none"
            remedy = "Set LEDGERKIT_API_KEY in the environment of this process."
            raise InvalidRequestError(msg, remedy=remedy, field="api_key")
        key.check()
        settings = replace(settings, key=key)
    return Ledger(settings)


# The default ledger -----------------------------------------------------------------------


_default: Ledger | None = None
_recorder: Recorder | None = None  # of the block of `record` that is running


def use(ledger: Ledger) -> None:
    """Make a ledger the session's default."""
    global _default  # noqa: PLW0603 - one default for the process
    _default = ledger


def default() -> Ledger | None:
    """Return the session's default ledger, without opening one."""
    return _default


def current(ledger: Ledger | None = None) -> Ledger:
    """
    Return the ledger that a verb uses: the one passed, or the default one.

    If none was opened, `connect` opens one, with a warning. Raises `InvalidRequestError` if the
    argument is not a ledger, or ``LEDGERKIT_NETWORK`` is not a known network.
    """
    if ledger is None:
        return _default or _connect_unasked()
    if not isinstance(ledger, Ledger):
        raise InvalidRequestError.refuse("ledger", ledger, "a Ledger, as connect() returns it")
    is_recorded = ledger.is_embedded or ledger.session.settings.recorder is _recorder
    if _recorder is not None and not is_recorded:
        user_warnings.warn(
            f"this ledger was opened before {cut(_recorder.path)}, which does not record it: use "
            "the ledger that record() returns"
        )
    return ledger


def _connect_unasked() -> Ledger:
    """Open the default ledger, and warn which one it is."""
    ledger = connect()
    warning = f"connect() was not called: using {ledger.display_name}"
    if ledger.network.name == networks.LOCAL:
        warning += '. Use connect("mainnet") to read from the public network.'
    user_warnings.warn(warning)
    return ledger


def disconnect() -> None:
    """
    Close the default ledger, if there is one.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.disconnect()
    >>> lk.gas_price(ledger=ledger)
    Traceback (most recent call last):
      ...
    ledgerkit.errors.InvalidRequestError: this ledger is closed. Connect again.
    """
    global _default  # noqa: PLW0603 - one default for the process
    if _default is not None:
        _default.close()
        _default = None


# Connecting -------------------------------------------------------------------------------


def connect(
    network: str | PathLike[str] | None = None,
    *,
    api_key: str | None = None,
    rpc_url: str | None = None,
    api_url: str | None = None,
    archival_rpc_url: str | None = None,
    transactions_url: str | None = None,
    transfers_url: str | None = None,
    blocks_url: str | None = None,
    kv_url: str | None = None,
    transport: AnyTransport | None = None,
    timeout_s: float = 20.0,
    max_answer_bytes: int = 2**28,
    retries: RetryPolicy | None = None,
    rate: float | Literal["polite"] | None = "polite",
    in_flight: int = 16,
    key_in: Literal["header", "query"] = "header",
    world: str | World | None = None,
    size: int | None = None,
    seed: int = 0,
    fork: str | PathLike[str] | Ledger | None = None,
    at: object = None,
    record: str | PathLike[str] | None = None,
    cache: bool | str | PathLike[str] | Cache | None = None,
    make_default: bool = True,
) -> Ledger:
    """
    Open a ledger and make it the default one.

    Parameters
    ----------
    network
        ``"mainnet"``, ``"testnet"``, ``"local"`` for the embedded ledger, or any name
        together with addresses. The path of a file that ends in ``.lk`` is a recording, from
        which alone everything is answered, see `record`. None uses the environment variable
        ``LEDGERKIT_NETWORK``; if it is not set and there is no address, the embedded ledger.
    api_key
        The API key for all services of the network. None uses ``LEDGERKIT_API_KEY``, except
        for the embedded ledger or if an address is passed: the key for one service must not
        be sent to another.
    rpc_url, api_url, archival_rpc_url
        The addresses of the JSON-RPC endpoint, the REST API and the archival JSON-RPC
        endpoint, in place of those of the network. For the first two, None uses
        ``LEDGERKIT_RPC_URL`` and ``LEDGERKIT_API_URL``, except with ``network="local"``.
    transactions_url, transfers_url, blocks_url, kv_url
        The addresses of the Transactions API, the Transfers API, the block documents and the
        key-value data, in place of those of the network. None uses
        ``LEDGERKIT_TRANSACTIONS_URL``, ``LEDGERKIT_TRANSFERS_URL``, ``LEDGERKIT_BLOCKS_URL``
        and ``LEDGERKIT_KV_URL``, except with ``network="local"``. Testnet has no Transfers API,
        and with an own `rpc_url` or `api_url` a network has only those services whose addresses
        are passed too.
    transport
        An `httpx.BaseTransport` (which is used in threads, and limits each wait by the timeout)
        or `httpx.AsyncBaseTransport` to send all requests with.
    timeout_s
        Maximum number of seconds for one request, from connecting to unpacking the response.
    max_answer_bytes
        Maximum number of bytes of one response, as sent and unpacked. A larger one is
        refused as soon as its size is known to exceed this. The default is 256 MiB; the largest
        known responses, to transactions with tens of thousands of receipts, have some 50 MB.
        Up to `in_flight` responses are received at a time, each within this limit.
    retries
        The limits for repeating a failed read; None is ``RetryPolicy()``.
    rate
        Maximum number of requests a second to each host. ``"polite"`` is what the public
        hosts accept: without a key, 50 requests a minute to each host of fastnear.com and
        180 to neardata.xyz, in bursts of 20 a second; with a key, 10,000 a minute. For other
        hosts it is no limit. None is no limit.
    in_flight
        Maximum number of concurrent requests; with the extra ``ledgerkit[bulk]`` they take
        less work.
    key_in
        Where the key is sent: in a ``"header"``, or in the ``"query"`` as ``apiKey=``.
    world
        The world of the embedded ledger: ``"demo"``, ``"empty"``, ``"crowd"``, or an open
        world. None is ``"demo"``.
    size, seed
        The number of accounts, for the world ``"crowd"``; the random seed of any world.
    fork
        For the embedded ledger: the network that it continues, by name, as an open ledger or
        as a recording, in place of a world. Accounts, keys, code and contract state are read
        from it when they are first needed, and then change only here; nothing is ever sent there.
        Contracts run with the extra ``ledgerkit[wasm]``.
    at
        The block after which the fork begins: a height, a block hash, a finality name, or a
        time; None is the last final block.
    record
        A file ending in ``.lk``, which must not exist, to record all requests and answers of
        this ledger in; with `fork` those of the network that is continued.
    cache
        Where to cache responses on disk for later sessions: a folder, a `Cache` with its
        limits, or True for the user's cache folder, which needs ``ledgerkit[cache]``. Cached
        are final transactions, blocks, chunks and everything read at a block's hash, which
        cannot change, and for a day the metadata of tokens. None and False cache nothing on
        disk.
    make_default
        False leaves the session's default as it is; the ledger is for ``ledger=`` arguments.

    Returns
    -------
    ledger
        The open ledger. As the default, verbs use it unless another one is passed to them.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, or the key would be sent over plain http.
    RecordingError
        If `network` is a file that is no recording, or is damaged.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> ledger.world
    <World localnet: block 180000052, 47 accounts>
    >>> lk.connect("testnet", rate=2)
    <Ledger testnet: at most 2 requests a second, to each host>
    """
    from ledgerkit.transport.settings import RetryPolicy, Settings

    key = None if api_key is None else ApiKey(api_key)
    del api_key  # a traceback shows local variables
    urls = {
        "rpc_url": rpc_url,
        "api_url": api_url,
        "archival_rpc_url": archival_rpc_url,
        "transactions_url": transactions_url,
        "transfers_url": transfers_url,
        "blocks_url": blocks_url,
        "kv_url": kv_url,
    }
    retries = retries or RetryPolicy()

    # What answers: a recording, or else the embedded ledger, a transport or hosts.
    if (path := _recording_path(network)) is not None:
        others = (key, transport, world, size, seed or None, fork, at, record, cache or None)
        _refuse_beside_recording(path, *others, *urls.values())
        replay = _open_recording(path)
        settings = Settings(
            network=replay.network, transport=replay, retries=retries, in_flight=in_flight
        )
        return _open(settings, make_default=make_default)
    if error := networks.name_error(network):
        del network  # it may be an API key
        raise error
    name = cast("str | None", network)
    if name is None and (world is not None or fork is not None):
        name = networks.LOCAL
    chosen = networks.resolve(name, has_transport=transport is not None, **urls)
    is_embedded = transport is None and chosen is networks.PRESETS[networks.LOCAL]
    has_world = world is not None or size is not None or bool(seed)
    _check_embedded_options(fork, at, has_world=has_world, is_embedded=is_embedded)

    # The key: the environment's is not sent to an address that was passed.
    if key is None and not any(urls.values()) and not is_embedded:
        key = _environment_key()
    if key is not None:
        key.check()

    recorder = _recorder if record is None else new_recorder(record)
    in_process = is_embedded or transport is not None
    stored = _cache_settings(cache, chosen, recorder, in_process=in_process)
    if fork is not None:
        chosen, transport = _open_fork(chosen, fork, at, record)
        recorder = None  # it is the network that is recorded
    elif is_embedded:
        chosen, transport = _open_local(chosen, world, size, seed)
    settings = Settings(
        network=chosen,
        key=key,
        key_in=key_in,
        transport=transport,
        timeout_s=timeout_s,
        max_answer_bytes=max_answer_bytes,
        retries=retries,
        rate=None if rate == "polite" else rate,
        # The public hosts' limits do not apply to a transport of the caller.
        polite=rate == "polite" and transport is None,
        in_flight=in_flight,
        cache=stored,
        recorder=recorder,
    )
    return _open(settings, make_default=make_default)


def _open(settings: Settings, *, make_default: bool) -> Ledger:
    with collector_paused():
        ledger = Ledger(settings)
    if make_default:
        use(ledger)
    return ledger


def _environment_key() -> ApiKey | None:
    text = networks.environment("API_KEY")
    return None if text is None else ApiKey(text)


# The embedded ledger ----------------------------------------------------------------------


def _check_embedded_options(
    fork: object, at: object, *, has_world: bool, is_embedded: bool
) -> None:
    """Raise if options of the embedded ledger exclude each other, or are for another one."""
    is_fork = is_embedded and fork is not None
    if is_fork and has_world:
        msg = "fork= takes the place of a world: leave world, size and seed out"
        raise InvalidRequestError(msg, field="fork")
    if not is_fork and (fork is not None or at is not None):
        msg = "fork and at are for a fork in the embedded ledger"
        remedy = 'Connect with connect("local", fork="mainnet").'
        raise InvalidRequestError(msg, remedy=remedy, field="fork" if fork is not None else "at")
    if has_world and not is_embedded:
        msg = "world, size and seed are for the embedded ledger"
        raise InvalidRequestError(msg, remedy='Connect with connect("local").', field="world")


def _open_local(
    network: Network, world: str | World | None, size: int | None, seed: int
) -> tuple[Network, AnyTransport]:
    """Open the embedded ledger; the liquid staking tokens are those of its world."""
    with collector_paused():
        from ledgerkit.transport import embedded

        transport = embedded.open_local("demo" if world is None else world, size=size, seed=seed)
    return replace(network, liquid_tokens=transport.liquid_tokens), transport


def _open_fork(
    network: Network,
    fork: str | PathLike[str] | Ledger,
    at: object,
    record: str | PathLike[str] | None,
) -> tuple[Network, AnyTransport]:
    """Open a fork of a network, named or open, at a block; it has no indexed services."""
    from ledgerkit.transport import embedded

    if isinstance(fork, Ledger) and record is not None:
        rule = "left out where fork= is an open ledger: record that one"
        raise InvalidRequestError.refuse("record", str(record), rule)
    upstream = (
        fork if isinstance(fork, Ledger) else connect(fork, record=record, make_default=False)
    )
    _, block_hash = upstream.pin("final" if at is None else at)
    transport = embedded.open_fork(upstream.rpc, upstream.network.name, block_hash)
    rpc_only = replace(
        network, api_url=None, transactions_url=None, transfers_url=None, kv_url=None
    )
    return rpc_only, transport


# Recordings -------------------------------------------------------------------------------


def _recording_path(network: object) -> Path | None:
    """Return the path of a recording, if that is what a network is named by; else None."""
    name = networks.environment("NETWORK") if network is None else network
    is_path = isinstance(name, PathLike) or (isinstance(name, str) and name.endswith(RECORDING))
    return validation.file_path(name, "network") if is_path else None


def _refuse_beside_recording(path: Path, *others: object) -> None:
    """Raise if a recording is opened together with another source of answers, or a key."""
    if any(value is not None for value in others):
        msg = f"{cut(path)} is a recording, which answers alone"
        remedy = "Pass no key, address, world, fork, transport or other recording with it."
        raise InvalidRequestError(msg, remedy=remedy, field="network")


def _open_recording(path: Path) -> Replay:
    """Open a recording, and warn if its last answer is incomplete."""
    from ledgerkit.transport.replay import Replay

    replay = Replay(path)
    if replay.torn_bytes:
        user_warnings.warn(
            f"{cut(path)} ends within an answer, which is left out: its process was killed"
        )
    return replay


def new_recorder(
    path: str | PathLike[str],
    mode: Literal["new", "extend"] = "new",
    *,
    field: str = "record",
    is_shared: bool = False,
) -> Recorder:
    """Open a recorder; a shared one stays open when a ledger closes. `field` is named in errors."""
    from ledgerkit.transport.recorder import Recorder

    file = validation.file_path(path, field)
    if file.suffix != RECORDING:
        rule = f"the path of a file that ends in {RECORDING}, by which connect() knows a recording"
        raise InvalidRequestError.refuse(field, str(path), rule)
    if mode == "new" and file.exists():
        rule = 'a file that does not exist; lk.record(path, mode="extend") adds to one'
        raise InvalidRequestError.refuse(field, str(path), rule)
    with validation.writing(file):
        file.parent.stat()  # before anything is sent
    return Recorder(file, mode, is_shared=is_shared, asks_chain=field == "record")


@contextmanager
def recorded_by(recorder: Recorder, ledger: Ledger | None) -> Iterator[Ledger]:
    """Record the ledgers that are opened in a block; the first is like `ledger` or the default."""
    global _default, _recorder
    if _recorder is not None:
        recorder.close()
        msg = f"{_recorder.path} is being recorded, and only one recording can be at a time"
        raise InvalidRequestError(msg, remedy="Leave its block first.", field="record")
    outer = _default
    opened = open_like(current(ledger), recorder=recorder, cache=None)
    _default, _recorder = opened, recorder
    try:
        yield opened
    finally:
        _default, _recorder = outer, None
        opened.close()
        recorder.close()


# The disk cache ---------------------------------------------------------------------------


def _cache_settings(
    cache: bool | str | PathLike[str] | Cache | None,  # noqa: FBT001 - connect's option
    network: Network,
    recorder: Recorder | None,
    *,
    in_process: bool,
) -> Cache | None:
    """Check connect's option `cache` and complete its folder."""
    from ledgerkit.transport.settings import Cache

    if cache is None or cache is False:
        return None
    remedy = "Connect without cache=."
    if in_process:  # entries are stored by host: those of two transports would be mixed up
        msg = "cache= cannot be used with the embedded ledger or with transport="
        raise InvalidRequestError(msg, remedy=remedy, field="cache")
    if recorder is not None:
        msg = "cache= cannot be used while recording: answers of earlier sessions would be missing"
        raise InvalidRequestError(msg, remedy=remedy, field="cache")
    if not isinstance(cache, Cache | str | PathLike | bool):
        raise InvalidRequestError.refuse("cache", cache, "True, a folder, or a Cache")
    if not isinstance(cache, Cache):
        cache = Cache() if isinstance(cache, bool) else Cache(cache)
    if cache.path is not None:  # absolute, because another process may work elsewhere
        return replace(cache, path=Path(cache.path).expanduser().absolute())
    urls = [url for s in networks.SURFACES if (url := network.address(s))]
    if any(map(networks.is_loopback, urls)):
        rule = "a folder, because a ledger on this machine may start again with another chain"
        raise InvalidRequestError.refuse("cache", cache, rule)
    from ledgerkit.transport import disk_cache

    return replace(cache, path=disk_cache.default_folder())
