"""`Ledger`, a connection to one network."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Never, Self, TypeVar, cast, get_args, overload

from ledgerkit import units, user_warnings, validation
from ledgerkit.api import calls, rpc
from ledgerkit.api.calls import Call, RestSurface
from ledgerkit.block_search import time_to_height
from ledgerkit.block_search.bisection import Point, Points
from ledgerkit.errors import (
    InvalidRequestError,
    LedgerError,
    UnknownBlockError,
    UnknownEpochError,
    cut,
)
from ledgerkit.progress import Bar, show_waits
from ledgerkit.transport import networks
from ledgerkit.transport.exchange import Source, Transport
from ledgerkit.transport.settings import Settings, count

if TYPE_CHECKING:
    from ledgerkit.transport.disk_cache import DiskCache
    from ledgerkit.transport.embedded import EmbeddedLedger, Faults, World
    from ledgerkit.transport.networks import Network
    from ledgerkit.transport.rate_limit import Limit
    from ledgerkit.transport.replay import Replay
    from ledgerkit.validation import BlockReference

T = TypeVar("T")
OnError = Literal["raise", "collect"]
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
        source: Any = settings.transport
        is_embedded = isinstance(source, Source)
        is_replay = isinstance(source, Transport) and source.is_recording
        self._embedded: EmbeddedLedger | None = source if is_embedded else None
        self._replay: Replay | None = source if is_replay else None
        self.display_name = _display_name(settings.network, self._embedded)
        self.clock: ModuleType | Replay = time if self._replay is None else self._replay
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
        """The recording; None if responses come from hosts or the embedded ledger."""
        return self._replay

    @property
    def world(self) -> World:
        """The world of the embedded ledger: its blocks and its state."""
        return self._require_embedded("world").world

    @property
    def faults(self) -> Faults:
        """The faults injected into the embedded ledger: ``ledger.faults.add("status=429")``."""
        return self._require_embedded("faults").faults

    def _require_embedded(self, field: str) -> EmbeddedLedger:
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
        return self.send(rpc.call(validation.method_name(method, "method"), params))

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
        return self.send(_service_call("GET", path, surface))

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
        call = _service_call("POST", path, surface)
        data = validation.json_args(body, "body")
        if not isinstance(body, dict):
            raise InvalidRequestError.refuse("body", body, "a dict, the members of a JSON object")
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
        self._warn_of_missing_accounts([call])
        with newest_block_in_errors(self), show_waits():
            value = self.session.send(call)
        self._warn_of_disk_cache()
        return value

    @overload
    def send_many(
        self, calls: Sequence[Call[T]], *, progress: bool = True, label: str = ""
    ) -> list[T]: ...
    @overload
    def send_many(
        self, calls: Sequence[Call[T]], *, on_error: OnError, progress: bool = True, label: str = ""
    ) -> list[T | LedgerError]: ...
    def send_many(  # type: ignore[misc]  # a list of values is no list of values and errors
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
            Bar(total=len(calls), desc=label, disable=disable) as tracker,
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
        count("size", size)
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
        lowered = self.session.settings.lowered(in_flight, rate)
        ledger = open_like(self, in_flight=lowered.in_flight, rate=lowered.rate)
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
        return cast("T", self._memo[key])

    def _warn_of_disk_cache(self) -> None:
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
            The block's; for a time, those of the last final block at or before it.

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
        reference = validation.block_reference(at)
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
            A point for each reference, with `height`, `time_ns` and `hash`. For a time: the last
            final block at or before it. For a skipped height: the last block below it. A
            reference that could not be resolved has its error in its place.

        Raises
        ------
        InvalidRequestError
            If a reference is malformed; then nothing was sent.

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
        references = [validation.block_reference(at) for at in places]
        send = partial(self.send_many, on_error="collect", progress=False)
        return time_to_height.find_blocks(send, self._points, references)

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

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        # A traceback may show a ledger that __init__ refused.
        session = getattr(self, "session", None)
        limits = "" if session is None else session.settings.limits_text()
        if self._replay is not None:
            count = units.count_text(len(self._replay), "answer")
            limits = f"{count} recorded in {cut(self._replay.path)}"
        return f"<Ledger {cut(self.network.name)}{': ' if limits else ''}{limits}>"

    def __reduce__(self) -> Never:
        msg = "a Ledger holds connections and perhaps a key; pickle its frames instead"
        raise TypeError(msg)


def _service_call(verb: str, path: object, surface: RestSurface) -> Call[Any]:
    validation.one_of(surface, "surface", get_args(RestSurface))
    checked = validation.request_path(path)
    return calls.get(checked, Any, request=f"{verb} {checked}", surface=surface)


def _display_name(network: Network, embedded: EmbeddedLedger | None) -> str:
    if embedded is None or network.name != networks.LOCAL:
        return network.name
    world = f" (world {embedded.name})" if embedded.name else ""
    return f"the embedded ledger{world}"


@contextmanager
def newest_block_in_errors(ledger: Ledger, height: object = None) -> Iterator[None]:
    """Name the newest block in the remedy of an error about a higher one, at `height` if passed."""
    try:
        yield
    except (UnknownBlockError, UnknownEpochError) as error:
        height = error.block_height if height is None else height
        if isinstance(height, int):
            # If the newest block cannot be read, the error is raised unchanged.
            with suppress(LedgerError), show_waits():
                call = rpc.block(validation.block_reference("optimistic"))
                newest = ledger.session.send(call).header.height
                if height > newest:
                    error.remedy = f"The newest block is {newest}: pass a height up to it, or wait."
        raise


def locate_arguments(ledger: Ledger, values: Mapping[str, object]) -> dict[str, Point]:
    """Locate the blocks of arguments by name; an error names its argument."""
    references = [validation.block_reference(value, name) for name, value in values.items()]
    points = dict(zip(values, ledger.locate_many(references) if values else [], strict=True))
    for name, point in points.items():
        if isinstance(point, LedgerError):
            refuse_reference(point, name, getattr(values[name], "written", values[name]))
            raise point
    return cast("dict[str, Point]", points)


def refuse_reference(error: LedgerError, name: str, value: object) -> None:
    """Raise the error of a refused block reference with the name of its argument."""
    if isinstance(error, InvalidRequestError) and error.field == "at":
        raise InvalidRequestError.refuse(name, value, error.rule or "")


def open_like(ledger: Ledger, **changes: Any) -> Ledger:
    """Open a ledger with the transport and settings of an open one, except for `changes`."""
    return Ledger(replace(ledger.session.ready().settings, borrowed=True, **changes))


@dataclass(frozen=True, slots=True)
class Description:
    """The settings of a ledger for another process: `needs_key` is True if they had a key."""

    settings: Settings
    needs_key: bool
