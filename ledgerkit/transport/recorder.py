"""Recording: each exchange of a ledger is appended to a file, without secrets."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple, Self

from ledgerkit._version import __version__
from ledgerkit.api import matching, rpc
from ledgerkit.errors import FileError, InvalidRequestError, LedgerError
from ledgerkit.transport import forks, recording_files, secret_bytes
from ledgerkit.transport.recording_files import Header, RecordedError, RecordWriter
from ledgerkit.transport.replay import RecordedAnswers, digest_of, recorded_network, request_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    from ledgerkit.api.calls import Response
    from ledgerkit.transport.exchange import Exchange, Transport
    from ledgerkit.transport.networks import ApiKey, Network
    from ledgerkit.transport.recording_files import RecordedNetwork

# Methods and parameters with the bytes of a signed transaction.
_SENDING = (b"signed_tx", b"broadcast_tx", b"send_tx")


class _Recorded(NamedTuple):
    """What a recorder has to know of a ledger."""

    network: Network
    key: ApiKey | None
    source: object


class Recorder:
    """
    Records the exchanges of one network's ledgers in a file.

    Parameters
    ----------
    path
        The file.
    mode
        ``"new"`` creates the file, ``"extend"`` adds to one: what it has is answered from it.
    is_shared
        Whether it stays open when one of its ledgers is closed.
    asks_chain
        Whether the first exchange is preceded by a request for the status of the node, whose
        answer names the chain.

    Notes
    -----
    The file is created with the first exchange. After `close` exchanges pass without being
    recorded.
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
        self._asks_chain = asks_chain
        self._lock = threading.Lock()
        self._is_of_parent = False
        self._writer: RecordWriter | None = None
        self._earlier: RecordedAnswers | None = None
        self._network: RecordedNetwork | None = None
        self._sources: set[int] = set()  # their ids
        self._checked: _Recorded | None = None
        self._is_closed = False
        self._failure: FileError | None = None
        forks.register(self)
        if mode == "extend":
            header, digest = recording_files.repair(path)
            self._network = header.network
            self._earlier = RecordedAnswers(path)
            self._writer = RecordWriter(path, None, digest)

    def over(
        self, transport: Transport, network: Network, key: ApiKey | None, source: object
    ) -> Transport:
        """Return a transport of one ledger whose exchanges are recorded."""
        return _RecordedTransport(self, transport, _Recorded(network, key, source))

    async def exchange(
        self, exchange: Exchange, transport: Transport, ledger: _Recorded
    ) -> Response | LedgerError:
        """Make an exchange and record it, or answer it from what the file had."""
        if self._is_closed:
            return await transport.exchange(exchange)
        if self._failure is not None:
            return self._failure
        try:
            if self._begins(ledger) and ledger.network.rpc_url and self._asks_chain:
                status = exchange._replace(call=rpc.status(), surface="rpc", call_id="chain")
                await self._record(status, transport, ledger, names_chain=True)
            if self._earlier is not None:
                answer = self._earlier.next_answer(exchange, ledger.network)
                if answer is not None:
                    return answer
            return await self._record(exchange, transport, ledger)
        except FileError as error:  # what follows would come after half a record
            self._failure = error
            return error
        except InvalidRequestError as error:
            return error

    def after_fork(self) -> None:
        """Refuse to record in a forked child: the file is the parent's."""
        self._lock = threading.Lock()
        self._is_of_parent = True
        if self._writer is not None:
            self._writer.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the file; calling it again does nothing."""
        with self._lock:
            self._is_closed = True
            if self._writer is not None:
                self._writer.close()

    async def _record(
        self,
        exchange: Exchange,
        transport: Transport,
        ledger: _Recorded,
        *,
        names_chain: bool = False,
    ) -> Response | LedgerError:
        """Make an exchange and record it; one whose request was not sent has no record."""
        asked_at = time.time_ns()
        answer = await transport.exchange(exchange)
        if not isinstance(answer, InvalidRequestError):
            record, body = _record_of(exchange, ledger, answer)
            record.names_chain = names_chain
            with self._lock:
                if self._writer is not None and not self._is_closed:
                    self._writer.add(record, body, asked_at)
        return answer

    def _begins(self, ledger: _Recorded) -> bool:
        """Check that a ledger is of the recorded network; return True for the first exchange."""
        if self._is_of_parent:
            msg = f"{self.path} records another process: a forked one cannot add to it"
            raise InvalidRequestError(
                msg, remedy="Connect again with another file.", field="ledger"
            )
        if ledger is self._checked:
            return False
        network = recorded_network(ledger.network)
        with self._lock:
            begins = self._writer is None
            if begins:
                header = Header(recording_files.VERSION, __version__, network)
                self._writer = RecordWriter(self.path, header)
                self._network = network
            if self._network != network:
                raise self._other(f"records {self._network and self._network.name}", network.name)
            if self._sources and id(ledger.source) not in self._sources:
                raise self._other("records another embedded ledger", network.name)
            self._sources.add(id(ledger.source))
            self._checked = ledger
        return begins

    def _other(self, what: str, name: str) -> InvalidRequestError:
        """Build the error for the ledger of another chain, whose answers would be mixed up."""
        msg = f"{self.path} {what}, and cannot have answers of this ledger ({name}) too"
        return InvalidRequestError(msg, remedy="Record each network in a file.", field="record")


class _RecordedTransport:
    """A transport of one ledger whose exchanges are recorded."""

    def __init__(self, recorder: Recorder, transport: Transport, ledger: _Recorded) -> None:
        self.in_process, self.is_recording = transport.in_process, transport.is_recording
        self.wait, self.aclose = transport.wait, transport.aclose
        self._recorder = recorder
        self._transport = transport
        self._ledger = ledger

    async def exchange(self, exchange: Exchange) -> Response | LedgerError:
        """Make an exchange and record it, or answer it from what the file had."""
        return await self._recorder.exchange(exchange, self._transport, self._ledger)


def _record_of(
    exchange: Exchange, ledger: _Recorded, answer: Response | LedgerError
) -> tuple[recording_files.Exchange, bytes]:
    """Return the record of an exchange, and the body of the answer without the call's id."""
    record = request_of(exchange, ledger.network)
    body = b""
    if isinstance(answer, LedgerError):
        record.error = _recorded_error(answer)
    else:
        body = answer.body
        if exchange.call_id is not None:
            body = matching.restore_placeholder(body, exchange.call_id) or body
        record.status, record.retry_after = answer.status, answer.retry_after
    return record, _without_secrets(record, body, ledger.key)


def _without_secrets(record: recording_files.Exchange, body: bytes, key: ApiKey | None) -> bytes:
    """Leave out a request with signed bytes or a secret, and the body of an answer with one."""
    request = f"{record.path}\n{record.body or ''}\n".encode()
    has_secret = secret_bytes.secret_in(request + body, key) is not None  # almost never
    is_signed = any(name in request for name in _SENDING)
    if is_signed or (has_secret and secret_bytes.secret_in(request, key)):
        record.request_digest = digest_of(record)
        record.path, record.body = "", None
    if len(body) > recording_files.MAX_RECORD_BYTES - recording_files.FRAME_BYTES:
        record.withheld = "it is too large"
    elif has_secret and (secret := secret_bytes.secret_in(body, key)):
        record.withheld = f"it contains what looks like {secret}"
    return b"" if record.withheld else body


def _recorded_error(error: LedgerError) -> RecordedError:
    """Return the attributes of the error of an exchange without an answer."""
    details = {
        name: getattr(error, name, None)
        for name in ("reason", "status", "no_connection", "max_bytes")
    }
    return RecordedError(error.sentence, error.remedy, error.retryable, **details)
