"""`connect`, which opens a ledger, and the default ledger that verbs use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from ledgerkit import user_warnings, validation
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.files import file_errors
from ledgerkit.ledger import Description, Ledger, open_like
from ledgerkit.transport import networks
from ledgerkit.transport.networks import ApiKey, Network
from ledgerkit.transport.settings import Cache, RetryPolicy, Settings

if TYPE_CHECKING:
    from ledgerkit.transport.embedded import EmbeddedLedger, World
    from ledgerkit.transport.exchange import Source
    from ledgerkit.transport.httpx_transports import AnyTransport
    from ledgerkit.transport.recorder import Recorder
    from ledgerkit.transport.replay import Replay

RECORDING = ".lk"  # the ending of a recording's name
_WORKER_REMEDY = (
    "Call connect() with the network in each worker, such as with "
    'ProcessPoolExecutor(initializer=ledgerkit.connect, initargs=("mainnet",)).'
)

_default: Ledger | None = None
_recorder: Recorder | None = None  # the recorder of the current `record` block


def use(ledger: Ledger) -> None:
    global _default  # noqa: PLW0603 - one default for the process
    _default = ledger


def default() -> Ledger | None:
    """Return the session's default ledger, without opening one."""
    return _default


def current(ledger: Ledger | None = None) -> Ledger:
    """
    Return the ledger that a verb uses: the one passed, or the default one.

    If none was opened, `connect` opens one, with a warning. Raises `InvalidRequestError` if the
    argument is not a ledger, ``LEDGERKIT_NETWORK`` is not a known network, or this is a worker
    process in which none was opened.
    """
    if ledger is None:
        return _default or _connect_with_warning()
    if not isinstance(ledger, Ledger):
        raise InvalidRequestError.refuse("ledger", ledger, "a Ledger, as connect() returns it")
    is_recorded = ledger.is_embedded or ledger.session.settings.recorder is _recorder
    if _recorder is not None and not is_recorded:
        user_warnings.warn(
            f"this ledger was opened before {cut(_recorder.path)}, which does not record it: use "
            "the ledger that record() returns"
        )
    return ledger


def _connect_with_warning() -> Ledger:
    from multiprocessing import parent_process  # imported late, since it is slow to import

    # A spawned worker does not have its parent's ledger, whose network may be another one.
    if parent_process() is not None:
        msg = "this is a worker process, in which connect() was not called"
        raise InvalidRequestError(msg, remedy=_WORKER_REMEDY, field="ledger")
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
    max_response_bytes: int = 2**28,
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
        together with addresses. The path of a file that ends in ``.lk`` is a recording, which
        alone answers all requests, see `record`. None uses the environment variable
        ``LEDGERKIT_NETWORK``; if it is not set and there is no address, the embedded ledger.
    api_key
        The API key for all services of the network. None uses ``LEDGERKIT_API_KEY``, except
        for the embedded ledger or if an address is passed: the key for one service must not
        be sent to another.
    rpc_url, api_url, archival_rpc_url
        The addresses of the JSON-RPC endpoint, the REST API and the archival JSON-RPC
        endpoint, in place of the network's. For the first two, None uses
        ``LEDGERKIT_RPC_URL`` and ``LEDGERKIT_API_URL``, except with ``network="local"``.
    transactions_url, transfers_url, blocks_url, kv_url
        The addresses of the Transactions API, the Transfers API, the block documents and the
        key-value data, in place of the network's. None uses
        ``LEDGERKIT_TRANSACTIONS_URL``, ``LEDGERKIT_TRANSFERS_URL``, ``LEDGERKIT_BLOCKS_URL``
        and ``LEDGERKIT_KV_URL``, except with ``network="local"``. Testnet has no Transfers API,
        and with a passed `rpc_url` or `api_url` a network has only the services whose addresses
        are passed too.
    transport
        An `httpx.BaseTransport`, which gets a thread for each request, or an
        `httpx.AsyncBaseTransport`, to send all requests with. Install httpx to use one.
    timeout_s
        Maximum number of seconds for one request, from connecting to unpacking the response.
    max_response_bytes
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
        Maximum number of concurrent requests.
    key_in
        Where the key is sent: in a ``"header"``, or in the ``"query"`` as ``apiKey=``.
    world
        The world of the embedded ledger: ``"demo"``, ``"empty"``, ``"crowd"``,
        ``"person"``, or an open world. None is ``"demo"``.
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
        A file ending in ``.lk``, which must not exist, to record all requests and responses
        of this ledger in; with `fork`, those to the network that is continued.
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

    # A recording answers alone.
    if (path := _recording_path(network)) is not None:
        others = (key, transport, world, size, seed or None, fork, at, record, cache or None)
        replay = _open_recording(path, *others, *urls.values())
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

    # The environment's key is not sent to an address that was passed.
    if key is None and not any(urls.values()) and not is_embedded:
        key = _environment_key()
    if key is not None:
        key.check()

    recorder = _recorder if record is None else new_recorder(record)
    in_process = is_embedded or transport is not None
    disk_cache = _cache_settings(cache, chosen, recorder, in_process=in_process)
    source: Source | AnyTransport | None = transport
    if fork is not None:
        chosen, source = _open_fork(chosen, fork, at, record)
        recorder = None  # the ledger of the network is recorded
    elif is_embedded:
        from ledgerkit.transport import embedded

        source = embedded.open_local("demo" if world is None else world, size=size, seed=seed)
        chosen = replace(chosen, liquid_tokens=source.liquid_tokens, venear_id=source.venear_id)
    settings = Settings(
        network=chosen,
        key=key,
        key_in=key_in,
        transport=source,
        timeout_s=timeout_s,
        max_response_bytes=max_response_bytes,
        retries=retries,
        rate=None if rate == "polite" else rate,
        # The public hosts' limits do not apply to a transport of the caller.
        polite=rate == "polite" and source is None,
        in_flight=in_flight,
        cache=disk_cache,
        recorder=recorder,
    )
    return _open(settings, make_default=validation.flag(make_default, "make_default"))


def _open(settings: Settings, *, make_default: bool) -> Ledger:
    ledger = Ledger(settings)
    if make_default:
        use(ledger)
    return ledger


def _environment_key() -> ApiKey | None:
    text = networks.environment("API_KEY")
    return None if text is None else ApiKey(text)


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
    settings = description.settings.lowered(in_flight, rate)
    if description.needs_key:
        key = _environment_key()
        if key is None:
            msg = "this ledger needs an API key, and the environment has none"
            remedy = "Set LEDGERKIT_API_KEY in the environment of this process."
            raise InvalidRequestError(msg, remedy=remedy, field="api_key")
        key.check()
        settings = replace(settings, key=key)
    return Ledger(settings)


# The embedded ledger ----------------------------------------------------------------------


def _check_embedded_options(
    fork: object, at: object, *, has_world: bool, is_embedded: bool
) -> None:
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


def _open_fork(
    network: Network,
    fork: str | PathLike[str] | Ledger,
    at: object,
    record: str | PathLike[str] | None,
) -> tuple[Network, EmbeddedLedger]:
    """Open a fork, at a block, of a network by name or ledger; it has no indexed services."""
    from ledgerkit.transport import embedded

    if isinstance(fork, Ledger) and record is not None:
        rule = "left out where fork= is an open ledger: record that one"
        raise InvalidRequestError.refuse("record", str(record), rule)
    if not isinstance(fork, Ledger):
        fork = connect(fork, record=record, make_default=False)
    _, block_hash = fork.pin(at)
    transport = embedded.open_fork(fork.rpc, fork.network.name, block_hash)
    rpc_only = replace(
        network,
        api_url=None,
        transactions_url=None,
        transfers_url=None,
        kv_url=None,
        venear_id=fork.network.venear_id,
    )
    return rpc_only, transport


# Recordings -------------------------------------------------------------------------------


def _recording_path(network: object) -> Path | None:
    """Return the path of a recording that is passed as a network; None for other networks."""
    name = networks.environment("NETWORK") if network is None else network
    is_path = isinstance(name, PathLike) or (isinstance(name, str) and name.endswith(RECORDING))
    return validation.file_path(name, "network") if is_path else None


def _open_recording(path: Path, *others: object) -> Replay:
    from ledgerkit.transport.replay import Replay

    if any(value is not None for value in others):
        msg = f"{cut(path)} is a recording, which answers alone"
        remedy = "Pass no key, address, world, fork, transport or other recording with it."
        raise InvalidRequestError(msg, remedy=remedy, field="network")
    replay = Replay(path)
    if replay.file.torn_bytes:
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
    with file_errors(f"write {file}"):
        file.parent.stat()  # before anything is sent
    return Recorder(file, mode, is_shared=is_shared, asks_chain=field == "record")


@contextmanager
def recorded_by(recorder: Recorder, ledger: Ledger | None) -> Iterator[Ledger]:
    """Record the ledgers that are opened in a block; the first copies `ledger` or the default."""
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
    if cache is None or cache is False:
        return None
    obstacle = ""
    if in_process:  # entries are stored by host: two transports would share them
        obstacle = "with the embedded ledger or with transport="
    elif recorder is not None:
        obstacle = "while recording: answers of earlier sessions would be missing"
    if obstacle:
        msg, remedy = f"cache= cannot be used {obstacle}", "Connect without cache=."
        raise InvalidRequestError(msg, remedy=remedy, field="cache")
    if cache is True:
        cache = Cache()
    elif isinstance(cache, str | PathLike):
        cache = Cache(cache)
    elif not isinstance(cache, Cache):
        raise InvalidRequestError.refuse("cache", cache, "True, a folder, or a Cache")
    if cache.path is not None:  # absolute, because another process may work elsewhere
        return replace(cache, path=Path(cache.path).expanduser().absolute())
    if any(map(networks.is_loopback, network.addresses.values())):
        rule = "a folder, because a ledger on this machine may start again with another chain"
        raise InvalidRequestError.refuse("cache", cache, rule)
    from ledgerkit.transport import disk_cache

    return replace(cache, path=disk_cache.default_folder())
