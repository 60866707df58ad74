"""Recording: each exchange of a ledger is appended to a file, without secrets."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from ledgerkit._version import __version__
from ledgerkit.api import matching, rpc
from ledgerkit.errors import FileError, InvalidRequestError, LedgerError
from ledgerkit.protocol.actions import Delegate, DelegateV2
from ledgerkit.protocol.transactions import SignedTransaction
from ledgerkit.transport import forks, recording_files, secret_bytes
from ledgerkit.transport.exchange import Transport
from ledgerkit.transport.recording_files import Header, RecordedError, RecordWriter
from ledgerkit.transport.replay import Replay, recorded_network, request_of

if TYPE_CHECKING:
    from pathlib import Path

    from ledgerkit.api.calls import Response
    from ledgerkit.protocol.borsh import Borsh
    from ledgerkit.transport.exchange import Exchange
    from ledgerkit.transport.networks import ApiKey
    from ledgerkit.transport.recording_files import RecordedExchange, RecordedNetwork
    from ledgerkit.transport.settings import Settings

# Methods and parameters with the bytes of a signed transaction, also of a malformed one. Other
# methods may have them, too: `tx` takes them in place of a hash.
# Source: nearcore, chain/jsonrpc/src/api/transactions.rs, RpcTransactionStatusRequest.
_SENDING = (b"signed_tx", b"broadcast_tx", b"send_tx", b"check_tx")
_SIGNED: tuple[tuple[type[Borsh], bytes], ...] = (
    (SignedTransaction, b""),
    # Wallets pass delegate actions to relayers without the tag of an action.
    *((kind, tag) for kind in (Delegate, DelegateV2) for tag in (b"", bytes([kind.tag]))),
)


class Recorder:
    """
    Records the exchanges of one network's ledgers in a file.

    A new file is created with the first exchange. When a file is extended, it answers the requests
    that it already contains.
    With `asks_chain` the status of the node, which names the chain, is requested first. A shared
    recorder stays open when one of its ledgers is closed. After `close` exchanges pass without
    being recorded.
    """

    def __init__(
        self,
        path: Path,
        mode: Literal["new", "extend"],
        *,
        is_shared: bool = False,
        asks_chain: bool = True,
    ) -> None:
        self.path = path
        self.is_shared = is_shared
        self.asks_chain = asks_chain
        self.is_closed = False
        self.failure: LedgerError | None = None  # nothing is recorded after it
        self.earlier: Replay | None = None  # the records that the file had
        self._writer: RecordWriter | None = None
        self._network: RecordedNetwork | None = None
        self._source: int | None = None  # the id of the ledger's source
        self._lock = threading.Lock()
        forks.register(self)
        if mode == "extend":
            self.earlier = Replay(path)
            self._network = self.earlier.file.header.network
            self._writer = RecordWriter(path)

    def wrap(self, transport: Transport, settings: Settings) -> Transport:
        return _RecordedTransport(self, transport, settings)

    def begin(self, settings: Settings) -> bool:
        """Check that a ledger is of the recorded network; return True for a new file."""
        name, source = settings.network.name, id(settings.transport)
        recorded = recorded_network(settings.network)
        with self._lock:
            is_new = self._writer is None
            if is_new:
                header = Header(recording_files.VERSION, __version__, recorded)
                self._writer, self._network = RecordWriter(self.path, header), recorded
            if self._network != recorded:
                raise self._conflict(f"records {self._network and self._network.name}", name)
            if self._source not in (None, source):
                raise self._conflict("records another embedded ledger", name)
            self._source = source
        return is_new

    def add(self, record: RecordedExchange, body: bytes, asked_at: int) -> None:
        """Write a record, unless the file was closed meanwhile."""
        with self._lock:
            if self._writer is not None and not self.is_closed:
                self._writer.add(record, body, asked_at)

    def after_fork(self) -> None:
        """Refuse to record in a forked child: the file is the parent's."""
        self._lock = threading.Lock()
        msg = f"{self.path} records another process: a forked one cannot add to it"
        remedy = "Connect again with another file."
        self.failure = InvalidRequestError(msg, remedy=remedy, field="ledger")
        self._writer = None  # closing it would end the file

    def close(self) -> None:
        """End the file; calling it again does nothing."""
        with self._lock:
            if self._writer is not None and not self.is_closed:
                self._writer.close()
            self.is_closed = True

    def _conflict(self, purpose: str, name: str) -> InvalidRequestError:
        """Build the error for a ledger of another chain, whose responses would be mixed up."""
        msg = f"{self.path} {purpose}, and cannot have answers of this ledger ({name}) too"
        return InvalidRequestError(msg, remedy="Record each network in a file.", field="record")


class _RecordedTransport(Transport):
    def __init__(self, recorder: Recorder, transport: Transport, settings: Settings) -> None:
        self.in_process, self.is_recording = transport.in_process, transport.is_recording
        self._recorder, self._transport, self._settings = recorder, transport, settings
        self._has_begun = False

    def wait(self, seconds: float) -> float:
        return self._transport.wait(seconds)

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def exchange(self, exchange: Exchange) -> Response | LedgerError:
        """Make an exchange and record it, or answer it from the earlier records."""
        recorder, network = self._recorder, self._settings.network
        if recorder.is_closed:
            return await self._transport.exchange(exchange)
        if recorder.failure is not None:
            return recorder.failure
        try:
            if not self._has_begun:
                is_new = recorder.begin(self._settings)
                self._has_begun = True
                if is_new and recorder.asks_chain and network.rpc_url:
                    status = exchange._replace(call=rpc.status(), surface="rpc", call_id="chain")
                    await self._record(status, names_chain=True)
            if recorder.earlier is not None:
                response = recorder.earlier.next_response(exchange, network)
                if response is not None:
                    return response
            return await self._record(exchange)
        except FileError as error:  # later records would follow an incomplete one
            recorder.failure = error
            return error
        except InvalidRequestError as error:
            return error

    async def _record(
        self, exchange: Exchange, *, names_chain: bool = False
    ) -> Response | LedgerError:
        """Make an exchange and record it, unless its request was not sent."""
        asked_at = time.time_ns()
        response = await self._transport.exchange(exchange)
        if not isinstance(response, InvalidRequestError):
            record = request_of(exchange, self._settings.network)
            record.names_chain = names_chain
            body = _add_response(record, response, exchange.call_id)
            self._recorder.add(record, _without_secrets(record, body, self._settings.key), asked_at)
        return response


def _add_response(
    record: RecordedExchange, response: Response | LedgerError, call_id: str | None
) -> bytes:
    """Add a response to the record of its request; return its body without the call's id."""
    if isinstance(response, LedgerError):
        names = RecordedError.__struct_fields__
        attributes: dict[str, Any] = {name: getattr(response, name, None) for name in names}
        record.error = RecordedError(**attributes)
        return b""
    record.status, record.retry_after = response.status, response.retry_after
    restored = None if call_id is None else matching.restore_placeholder(response.body, call_id)
    return restored or response.body


def _without_secrets(record: RecordedExchange, body: bytes, key: ApiKey | None) -> bytes:
    """Leave out a request with signed bytes or a secret, and a response's body with a secret."""
    request = f"{record.path}\n{record.body or ''}".encode()
    if _is_signed(request) or secret_bytes.secret_in(request, key, is_request=True):
        record.request_digest = record.key.hex()
        record.path, record.body = "", None
    if len(body) > recording_files.MAX_RECORD_BYTES - recording_files.FRAME_BYTES:
        record.withheld = "it is too large"
    elif secret := secret_bytes.secret_in(body, key):
        record.withheld = f"it contains what looks like {secret}"
    return b"" if record.withheld else body


def _is_signed(request: bytes) -> bool:
    """Return True if a request has a signed transaction or delegate action, in any method."""
    if any(name in request for name in _SENDING):
        return True
    forms = secret_bytes.forms(request)
    return any(_decodes_as(kind, tag + form) for form in forms for kind, tag in _SIGNED)


def _decodes_as(kind: type[Borsh], data: bytes) -> bool:
    with suppress(LedgerError):
        kind.decode(data)
        return True
    return False
