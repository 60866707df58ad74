"""Checking a connection: one request to each surface of the network."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import inspect

from ledgerkit import client, errors, json_decoding
from ledgerkit.api import calls, rest, services
from ledgerkit.api.models import chain
from ledgerkit.api.models import rest as rest_models
from ledgerkit.api.models import services as models
from ledgerkit.frames import build
from ledgerkit.ledger import Ledger, open_like
from ledgerkit.transport import networks
from ledgerkit.verbs.fetching import provenance

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.calls import Call, Response, Surface
    from ledgerkit.transport.recorder import Recorder
    from ledgerkit.transport.settings import Settings

# Block documents are a few blocks behind a node, and requests for a later block would wait.
_BLOCKS_BEHIND = 20
_MAX_NAME = 64  # characters of an unknown member


@dataclass
class _Check:
    """The check of one surface: its call and response, and the decoded value or the error."""

    call: Call[Any]
    response: Response | None = None
    seconds: float = 0.0
    value: Any = None
    unknown: list[str] = field(default_factory=list)
    error: errors.LedgerError | None = None


def doctor(
    *, save: str | PathLike[str] | None = None, ledger: Ledger | None = None
) -> pd.DataFrame:
    """
    Check each surface of the network with one request.

    A surface that does not respond is a row with its error. Requests are not repeated.

    Parameters
    ----------
    save
        A new file ending in ``.lk`` for the requests and responses, without the API key. Attach
        it to a report: `connect` replays it. None writes nothing.
    ledger
        The ledger to check; None is the session's default.

    Returns
    -------
    surfaces
        One row per surface that the network has, typed as `schema("doctor")`. The rate limits
        are in ``attrs["limits"]``.

    Raises
    ------
    InvalidRequestError
        If `save` is not such a path, or the ledger is closed.
    FileError
        If the file can't be written.

    Notes
    -----
    Source: status of both JSON-RPC hosts, GET /status of the REST API, POST /v0/blocks of the
    Transactions API, POST /v0/transfers of the Transfers API, GET /v0/block/{height}/headers of
    the block documents, GET /v0/latest/{contract}/{predecessor}/{key} of the key-value data.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.doctor()[["surface", "host", "protocol_version", "error"]].head(2)
      surface             host  protocol_version error
    0     rpc  embedded ledger                86   NaN
    1     api  embedded ledger              <NA>   NaN
    """
    ledger = client.current(ledger)
    recorder = None if save is None else client.new_recorder(save, field="save")
    recording = nullcontext() if recorder is None else closing(recorder)
    with recording, _open_single(ledger, recorder) as single:
        checks = _send_calls(single, _calls(single))
        if single.network.blocks_url:
            checks += _send_calls(single, [_block_call(checks)])
    for check in checks:
        check.error = check.error or _problem(ledger, check)
    return _frame(ledger, checks)


def _open_single(ledger: Ledger, recorder: Recorder | None) -> Ledger:
    """Open a ledger for single requests: the same hosts and key, no retries, limits or cache."""
    settings = ledger.session.settings
    return open_like(
        ledger,
        retries=replace(settings.retries, attempts=1, total_s=settings.timeout_s),
        rate=None,
        polite=False,
        in_flight=len(networks.SURFACES),
        cache=None,
        recorder=recorder or settings.recorder,
    )


def _calls(ledger: Ledger) -> list[Call[Any]]:
    # Block documents need a height first.
    by_surface: list[Call[Any]] = [
        services.node_status("rpc"),
        services.node_status("archival_rpc"),
        rest.status(),
        services.last_block(),
        services.last_transfer(),
        services.key_value(),
    ]
    return [call for call in by_surface if ledger.network.address(call.surface)]


def _block_call(checks: Sequence[_Check]) -> Call[Any]:
    """Return the call for a recent block document, or for the health if no height is known."""
    heights = [height for check in checks if (height := _block(check.value)[1])]
    if not heights:
        return services.blocks_health()
    return services.block_headers(max(max(heights) - _BLOCKS_BEHIND, 0))


def _send_calls(ledger: Ledger, calls: Sequence[Call[Any]]) -> list[_Check]:
    checks = [_Check(call) for call in calls]
    start = time.monotonic()
    timed = [_timed_call(check, start) for check in checks]
    values = ledger.send_many(timed, on_error="collect", progress=False)
    for check, value in zip(checks, values, strict=True):
        if isinstance(value, errors.LedgerError):
            check.error = value
        else:
            check.value = value
    return checks


def _timed_call(check: _Check, start: float) -> Call[Any]:
    def read(response: Response) -> Any:
        check.response, check.seconds = response, time.monotonic() - start
        value = check.call.read(response)
        try:
            document = json_decoding.decode(response.body)
        except msgspec.DecodeError as error:  # the model's decoder skips unknown members unread
            raise calls.not_as_documented(check.call.request, error) from None
        document = document["result"] if check.call.is_rpc else document
        check.unknown = unknown_members(document, type(value))
        return value

    return replace(check.call, read=read)


def unknown_members(document: Any, model: Any) -> list[str]:
    """
    List the members of a decoded document that its model neither has nor lists as `unread`.

    They are paths such as ``sync_info.new`` or ``chunks[].new``. Members of members that the model
    types as `Any` are ignored.
    """
    return list(dict.fromkeys(_unknown_paths(document, inspect.type_info(model), "")))


def _unknown_paths(value: Any, kind: inspect.Type, path: str) -> Iterator[str]:
    if isinstance(kind, inspect.UnionType):
        for member in kind.types:
            yield from _unknown_paths(value, member, path)
    elif isinstance(kind, inspect.StructType) and isinstance(value, dict):
        types = {field.encode_name: field.type for field in kind.fields}
        types |= dict.fromkeys(getattr(kind.cls, "unread", ()), inspect.AnyType())
        for name, member in value.items():
            member_path = f"{path}.{name}" if path else name
            if name in types:
                yield from _unknown_paths(member, types[name], member_path)
            else:
                yield f"{path}.{errors.cut(name, _MAX_NAME)}".lstrip(".")
    elif isinstance(kind, inspect.ListType) and isinstance(value, list):
        for item in value:
            yield from _unknown_paths(item, kind.item_type, f"{path}[]")
    elif isinstance(kind, inspect.DictType) and isinstance(value, dict):
        for item in value.values():
            yield from _unknown_paths(item, kind.value_type, f"{path}.*")


def _problem(ledger: Ledger, check: _Check) -> errors.LedgerError | None:
    """Return the error of a surface that responds but is not usable; None if it is usable."""
    value, surface = check.value, check.call.surface
    if isinstance(value, rest_models.Health) and value.status != "ok":
        return errors.NodeNotReadyError(f"the service reports that it is {value.status}")
    if not isinstance(value, models.NodeStatus):
        return None
    name = ledger.network.name
    if name in networks.PUBLIC and value.chain_id != name:
        msg = f"the node is one of {value.chain_id}, not of {name}"
        return errors.InvalidRequestError(
            msg, remedy=f"Pass connect() the {surface}_url= of a node of {name}.", field=surface
        )
    if value.sync_info.syncing:
        return errors.NodeNotReadyError("the node is still catching up with the chain")
    return None


def _block(value: Any) -> tuple[int | None, int | None]:
    if isinstance(value, models.NodeStatus):
        return value.protocol_version, value.sync_info.latest_block_height
    if isinstance(value, rest_models.IndexerStatus):
        return None, value.sync_block_height
    if isinstance(value, models.BlockRows) and value.blocks:
        return value.blocks[0].protocol_version, value.blocks[0].block_height
    if isinstance(value, chain.Block):
        return value.header.latest_protocol_version, value.header.height
    return None, None


def _version(value: Any) -> str | None:
    if isinstance(value, models.NodeStatus):
        return value.version.version
    return value.version if isinstance(value, rest_models.IndexerStatus) else None


def _frame(ledger: Ledger, checks: Sequence[_Check]) -> pd.DataFrame:
    settings = ledger.session.settings
    blocks = [_block(check.value) for check in checks]
    failures = [check.error for check in checks]
    columns = {
        "surface": [check.call.surface for check in checks],
        "host": [_host(ledger, check.call.surface) for check in checks],
        "latency_ms": [round(c.seconds * 1000) if c.response else None for c in checks],
        "version": [_version(check.value) for check in checks],
        "protocol_version": [version for version, _ in blocks],
        "block_height": [height for _, height in blocks],
        "unknown_members": [check.unknown for check in checks],
        "per_minute": [settings.per_minute(check.call.surface) for check in checks],
        "has_key": [settings.key is not None] * len(checks),
        "error": [type(error).__name__ if error else None for error in failures],
        "message": [str(error) if error else None for error in failures],
    }
    attrs = provenance(ledger, "one request to each surface", limits=_limits(settings))
    return build.build_frame("doctor", columns, attrs=attrs)


def _limits(settings: Settings) -> str:
    text = settings.limits_text() or "no rate limit"
    if settings.lowest_limit().per_minute and settings.key is None:
        text += f"; an API key allows {networks.KEY_PER_MINUTE:,} a minute or more"
    return text


def _host(ledger: Ledger, surface: Surface) -> str:
    """Return the host of a surface without the path, which may contain a provider's key."""
    if ledger.is_embedded:
        return "embedded ledger"
    parts = urlsplit(ledger.network.address(surface) or "")
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
