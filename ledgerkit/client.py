"""The Ledger: one key, both surfaces, a context manager; and the session's default."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Never, Self, TypeVar

from ledgerkit import user_warnings, validation
from ledgerkit.api import calls, rpc
from ledgerkit.block_search import time_to_height
from ledgerkit.block_search.bisection import Points
from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.progress import NoBar
from ledgerkit.transport import networks
from ledgerkit.transport.networks import ApiKey

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from types import TracebackType

    from ledgerkit.api.calls import Call
    from ledgerkit.api.models import chain
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.transport.disk_cache import Store
    from ledgerkit.transport.embedded import Faults, World
    from ledgerkit.transport.http import AnyTransport
    from ledgerkit.transport.networks import Network
    from ledgerkit.transport.settings import Cache, RetryPolicy, Settings
    from ledgerkit.validation import BlockReference

T = TypeVar("T")
OnError = Literal["raise", "collect"]
_WORTH_A_BAR = 2
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
        from ledgerkit.transport.http import Http

        self.network = settings.network
        self._http = Http(settings)
        self._points = Points()

    @property
    def rate(self) -> float | None:
        """Most requests a second; None is no limit."""
        return self._http.settings.rate

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
        return self.send(rpc.call(validation.method_name(method), params))

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
            From `ledgerkit.api.rpc` or `ledgerkit.api.rest`.

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
        value = self._http.send(call)
        self._warn_of_cache()
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
        stop = validation.one_of(on_error, "on_error", ("raise", "collect")) == "raise"
        self._warn_of_strangers(calls)
        off = not progress or len(calls) < _WORTH_A_BAR
        with bar(total=len(calls), desc=label, disable=off, delay=0.5, leave=False) as shown:
            values = self._http.send_many(calls, stop=stop, done=shown.update)
        self._warn_of_cache()
        return values

    def stream(
        self, calls: Iterable[Call[T]], *, size: int = 256
    ) -> Generator[list[T | LedgerError], None, None]:
        """
        Send described calls as an iterator brings them, however many.

        Requests go on while what is given back is worked on: calls are taken from the
        iterator some batches ahead, in the caller's thread, and never more.

        Parameters
        ----------
        calls
            The calls; they may never end.
        size
            How many answers are given at a time.

        Returns
        -------
        batches
            Lists of answers in the order of the calls, the last perhaps shorter; each
            failure stands in its call's place. Closing it cancels what is under way.
            What `calls` raises is raised once all that was asked before is given.

        Raises
        ------
        InvalidRequestError
            If `size` is no positive integer, or the ledger is closed.
        """
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise InvalidRequestError.refuse("size", size, "an integer from 1 up")
        return self._http.stream(calls, size=size)

    def sibling(self, *, in_flight: int | None = None, rate: float | None = None) -> Ledger:
        """
        Open another ledger that asks the same hosts in the same way, at a pace of its own.

        It does not become the session's default. A transport that was passed to `connect`,
        and the embedded ledger, stay open when it is closed.

        Parameters
        ----------
        in_flight
            Most requests at a time; None is as here.
        rate
            Most requests a second, if this ledger allows as many; None is as here.

        Returns
        -------
        ledger
            Open. The two count their requests apart.

        Raises
        ------
        InvalidRequestError
            If an argument is malformed, or this ledger is closed.
        """
        return Ledger(_paced(self._http.ready().settings, in_flight, rate, borrowed=True))

    def description(self) -> Description:
        """
        Describe this ledger for another process, without its key.

        Returns
        -------
        description
            Plain values, for `reopen` there.

        Raises
        ------
        InvalidRequestError
            If a transport answers in this process: no other one can reach it.
        """
        settings = self._http.settings
        if settings.transport is not None:
            msg = f"{_who(self)} answers in this process: another one cannot ask it"
            remedy = "Run `ledgerkit serve` and connect to its address."
            raise InvalidRequestError(msg, remedy=remedy, field="ledger")
        return Description(replace(settings, key=None), needs_key=settings.key is not None)

    @property
    def store(self) -> Store | None:
        """What is kept on disk for the next session, if anything."""
        return self._http.ready().store

    def forget(self) -> None:
        """Forget all that is kept, in memory and on disk."""
        self._http.ready().forget()

    def _warn_of_cache(self) -> None:
        """Say once that nothing is kept on disk any more."""
        trouble = self._http.store.trouble() if self._http.store else None
        if trouble:
            user_warnings.warn(trouble, stacklevel=depth())

    def _warn_of_strangers(self, calls: Sequence[Call[Any]]) -> None:
        """Say which accounts the embedded ledger does not hold: the public one may."""
        look = getattr(self._http.settings.transport, "strangers", None)
        strangers: list[str] = look(calls) if look else []
        if strangers:
            more = len(strangers) - _MOST_NAMED
            named = ", ".join(strangers[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
            user_warnings.warn(
                f"{_who(self)} holds no account {named}, and knows nothing of the public "
                'networks: connect("mainnet") asks there',
                stacklevel=depth(),
            )

    def locate(self, at: object = None) -> BlockReference:
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
        found = validation.block_reference(at)
        if found.timestamp_ns is None:
            return found
        [point] = self.locate_many([found])
        if isinstance(point, LedgerError):
            raise point
        return validation.block_reference(point.hash)

    def locate_many(self, places: Sequence[object]) -> list[Point | LedgerError]:
        """
        Find the blocks of many points in the chain's history at once.

        Final blocks that are read on the way are remembered, so that the next search
        begins from its nearest neighbours.

        Parameters
        ----------
        places
            Each as `locate` takes it.

        Returns
        -------
        points
            One a place, with `height`, `time_ns` and `hash`: of a time the last final
            block that is not younger; of a height that was skipped the last block below.
            A failure stands in its place.

        Raises
        ------
        InvalidRequestError
            If one is malformed; nothing was sent then.

        Notes
        -----
        Source: block.
        """
        checked = [
            at if isinstance(at, validation.BlockReference) else validation.block_reference(at)
            for at in places
        ]
        return time_to_height.find(self._blocks, self._points, checked)

    def _blocks(self, wanted: Sequence[Call[chain.Block]]) -> list[chain.Block | LedgerError]:
        """Read blocks, one directly and many at once; a failure stands in its call's place."""
        if len(wanted) > 1:
            return self.send_many(wanted, on_error="collect", progress=False)
        try:
            return [self.send(call) for call in wanted]
        except LedgerError as error:
            return [error]

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


@dataclass(frozen=True, slots=True)
class Description:
    """
    What another process needs to open the same ledger; the key is not in it.

    Parameters
    ----------
    settings
        Where and how patiently to ask.
    needs_key
        Whether the hosts are asked with a key.
    """

    settings: Settings
    needs_key: bool


def reopen(
    description: Description, *, in_flight: int | None = None, rate: float | None = None
) -> Ledger:
    """
    Open a ledger that another process described.

    It does not become the session's default.

    Parameters
    ----------
    description
        From `Ledger.description`.
    in_flight
        Most requests at a time; None is as described.
    rate
        Most requests a second, if the description allows as many; None is as described.

    Returns
    -------
    ledger
        Open. Its key is the one of this process's environment.

    Raises
    ------
    InvalidRequestError
        If the hosts are asked with a key and the environment holds none.
    """
    if not isinstance(description, Description):
        rule = "what Ledger.description() returned"
        raise InvalidRequestError.refuse("description", description, rule)
    settings = _paced(description.settings, in_flight, rate)
    return Ledger(replace(settings, key=_needed_key()) if description.needs_key else settings)


def _needed_key() -> ApiKey:
    """Read the environment's key where there must be one."""
    key = _environments_key()
    if key is None:
        msg = "this ledger is asked with an API key, and the environment holds none"
        remedy = "Set LEDGERKIT_API_KEY in the environment of this process."
        raise InvalidRequestError(msg, remedy=remedy, field="api_key")
    key.check()
    return key


def _paced(
    settings: Settings, in_flight: int | None, rate: float | None, *, borrowed: bool = False
) -> Settings:
    """Change the pace; a rate only lowers the one there is."""
    changed = replace(
        settings,
        in_flight=settings.in_flight if in_flight is None else in_flight,
        rate=settings.rate if rate is None else rate,
        borrowed=borrowed,
    )
    if rate is None or settings.rate is None:
        return changed
    return replace(changed, rate=min(rate, settings.rate))


def _who(ledger: Ledger) -> str:
    """Name who answers."""
    name = getattr(ledger._http.settings.transport, "name", None)  # noqa: SLF001 - of this module
    if ledger.network.name != networks.LOCAL or name is None:
        return ledger.network.name
    return f"the embedded ledger (world {name})" if name else "the embedded ledger"


def depth() -> int:
    """Count the calls from a warning up to whoever called this package."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("ledgerkit."):
        frame, depth = frame.f_back, depth + 1
    return depth


def bar(*, disable: bool, **options: Any) -> Any:
    """Open a progress bar: tqdm.auto warns in a notebook that has no widgets."""
    from importlib.util import find_spec

    if disable:  # tqdm would take a lock of the system's for a bar that nobody sees, too
        return NoBar()
    if find_spec("ipywidgets"):
        from tqdm import auto

        return auto.tqdm(**options)
    import tqdm

    return tqdm.tqdm(**options)


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
    cache: bool | str | PathLike[str] | Cache | None = None,
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
    cache
        Keep on disk what can't change, for the next session: final transactions, blocks,
        chunks and whatever is read at a block's hash, and for a day the metadata of tokens.
        A folder, a `Cache` with its bounds, or True for the user's cache folder, which
        ``ledgerkit[cache]`` finds. None and False keep nothing.

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
    from ledgerkit.transport.settings import RetryPolicy, Settings

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
    kept = _cache(cache, found, own_transport=embedded or transport is not None)
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
        cache=kept,
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
        user_warnings.warn(told, stacklevel=depth())
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
    from ledgerkit.transport import embedded as transport_embedded

    way = transport_embedded.open_local("demo" if world is None else world, size=size, seed=seed)
    return replace(network, liquid_tokens=way.liquid_tokens), way


def _cache(
    given: bool | str | PathLike[str] | Cache | None,  # noqa: FBT001 - connect's option, as given
    network: Network,
    *,
    own_transport: bool,
) -> Cache | None:
    """Decide what is kept on disk; two networks must never be taken for each other there."""
    from ledgerkit.transport.settings import Cache

    if given is None or given is False:
        return None
    if own_transport:
        rule = (
            "left out for the embedded ledger and for a transport of one's own: "
            "their answers have no address to be told apart by"
        )
        raise InvalidRequestError.refuse("cache", given, rule)
    if not isinstance(given, Cache | str | PathLike | bool):
        raise InvalidRequestError.refuse("cache", given, "True, a folder, or a Cache")
    if isinstance(given, bool):
        return _placed(Cache(), network)
    return _placed(given if isinstance(given, Cache) else Cache(given), network)


def _placed(chosen: Cache, network: Network) -> Cache:
    """Name the folder in full: another process may work in another one."""
    if chosen.path is not None:
        return replace(chosen, path=Path(chosen.path).expanduser().absolute())
    here = [url for s in networks.SURFACES if (url := network.address(s))]
    if any(map(networks.is_loopback, here)):
        rule = "a folder of its own where a ledger on this machine answers: it may begin anew"
        raise InvalidRequestError.refuse("cache", chosen, rule)
    from ledgerkit.transport import disk_cache

    return replace(chosen, path=disk_cache.default_folder())


def _rate(
    rate: float | Literal["polite"] | None, network: Network, transport: AnyTransport | None
) -> float | None:
    """Decide the limit; what the caller's own transport reaches is the caller's matter."""
    if rate != "polite":
        return rate
    return network.rate if transport is None else None
