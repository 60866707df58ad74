"""The embedded ledger as a transport: requests reach a world without a socket."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from ledgerkit import json_decoding
from ledgerkit.api import chain_errors, matching
from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.clock import UnansweredError, WaitEndedError
from ledgerkit.localnet.execution_errors import InvalidTransactionError
from ledgerkit.localnet.faults import Faults
from ledgerkit.localnet.forking import ForkedWorld, SourceError
from ledgerkit.localnet.http_gateway import Gateway
from ledgerkit.localnet.http_messages import HttpRequest
from ledgerkit.localnet.settings import SECOND_NS
from ledgerkit.localnet.world import World
from ledgerkit.localnet.worlds import open_world
from ledgerkit.transport.exchange import Connections, RawRequest, Source, http_response
from ledgerkit.transport.response_body import BodyReader

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call, Response
    from ledgerkit.protocol import Action, SignedTransaction

__all__ = [
    "EmbeddedLedger",
    "Faults",
    "World",
    "open_fork",
    "open_local",
    "run_signed",
    "run_unsigned",
]

T = TypeVar("T")

DROPPED = "Server disconnected without sending a response."
TRUNCATED = "peer closed connection without sending complete message body"
_ACCOUNT_QUERIES = ("view_account", "view_access_key", "view_access_key_list")


class EmbeddedLedger(Source):
    """A world and the gateway to it, which any number of ledgers may use."""

    def __init__(self, world: World, *, name: str = "") -> None:
        self.gateway = Gateway(world)
        self.name = name

    @property
    def world(self) -> World:
        return self.gateway.world

    @property
    def faults(self) -> Faults:
        return self.gateway.faults

    @property
    def liquid_tokens(self) -> tuple[str, ...]:
        tokens = self.world.summary.contracts.get("liquid", ())
        return (tokens,) if isinstance(tokens, str) else tuple(tokens)

    @property
    def venear_id(self) -> str | None:
        """The veNEAR contract of the world, if there is one."""
        contract_id = self.world.summary.contracts.get("venear")
        return contract_id if isinstance(contract_id, str) else None

    def open(self, sleep: Callable[[float], None]) -> Connections:
        """Open connections for one ledger; other ledgers may use the world, too."""
        return _EmbeddedConnections(self.gateway, sleep)

    def produce_block(self) -> bool:
        """Produce a block in logical time; return False in real time."""
        if self.world.settings.real_time:
            return False
        self.world.advance()
        return True

    def missing_accounts(self, calls: Iterable[Call[Any]]) -> list[str]:
        """Return the accounts of calls that the world does not have, without repeats."""
        if isinstance(self.world, ForkedWorld):  # its accounts are on its network
            return []
        with self.world.lock:
            state = self.world.state()
            account_ids = dict.fromkeys(map(_account_of, calls))
            return [i for i in account_ids if i is not None and state.account(i) is None]


class _EmbeddedConnections(Connections):
    in_process = True

    def __init__(self, gateway: Gateway, sleep: Callable[[float], None]) -> None:
        self._gateway = gateway
        self._sleep = sleep

    async def send(self, request: RawRequest) -> Response:
        """Return the world's response; blocks are produced while a request waits for one."""
        clock = CallerClock(self._gateway.world, request.deadline, self._sleep)
        body = request.body or b""
        http_request = local_request(request.method, request.url, request.headers, body)
        try:
            response = await self._gateway.answer(http_request, clock)
        except UnansweredError as error:
            raise error.error from None
        if response.dropped:
            raise ConnectionError(DROPPED)
        reader = BodyReader(request)
        reader.add(response.sent_body)
        if response.truncated is not None:
            raise ConnectionError(TRUNCATED)
        return http_response(response.status, dict(response.headers), reader.whole())


class CallerClock:
    """A clock that produces blocks, and blocks the thread for as long as they take."""

    def __init__(self, world: World, deadline: float, sleep: Callable[[float], None]) -> None:
        self._world = world
        self._deadline = deadline
        self._sleep = sleep

    async def next_block(self) -> None:
        """Produce a block, and wait as long as it takes in real time."""
        self._world.advance()
        settings = self._world.settings
        if settings.real_time:
            await self.sleep(settings.block_time_ns / SECOND_NS)

    async def sleep(self, seconds: float) -> None:
        """Block the thread; give the request up at its deadline, or once its ledger is closed."""
        remaining_s = self._deadline - time.monotonic()
        try:
            self._sleep(max(0.0, min(seconds, remaining_s)))
        except InvalidRequestError as error:  # the ledger is closed
            raise WaitEndedError(error) from None
        if seconds > remaining_s:
            raise WaitEndedError(TimeoutError())


def local_request(method: str, url: str, headers: dict[str, str], body: bytes) -> HttpRequest:
    parts = urlsplit(url)
    return HttpRequest(method, parts.path, parts.query, headers, body)


def open_local(world: str | World, *, size: int | None = None, seed: int = 0) -> EmbeddedLedger:
    if isinstance(world, World):
        if size is not None or seed:
            msg = "size and seed are for a world's name, not for an open world"
            raise InvalidRequestError(msg, field="seed" if seed else "size")
        return EmbeddedLedger(world)
    if not isinstance(world, str):
        raise InvalidRequestError.refuse("world", world, "a world's name, or a World")
    return EmbeddedLedger(open_world(world, size=size, seed=seed), name=world)


def open_fork(read: Callable[[str, Any], Any], network: str, block_hash: str) -> EmbeddedLedger:
    return EmbeddedLedger(ForkedWorld(read, network, block_hash), name=f"fork of {network}")


def run_unsigned(world: World, signer_id: str, receiver_id: str, actions: Sequence[Action]) -> str:
    """Run a transaction of any account until all is executed; return its hash."""
    return str(_run(world, lambda: world.submit_unsigned(signer_id, receiver_id, actions)).hash)


def run_signed(world: World, signed: SignedTransaction) -> str:
    """Run a signed transaction until all is executed; return its hash."""
    _run(world, lambda: world.submit(signed))
    return str(signed.hash)


def _run(world: World, submit: Callable[[], T]) -> T:
    try:
        with world.lock:
            submitted = submit()
            world.settle()
    except SourceError as error:
        raise error.error from None
    except InvalidTransactionError as error:
        raise chain_errors.invalid_transaction(error.error) from None
    return submitted


def _account_of(call: Call[Any]) -> str | None:
    if call.body is None:
        subject = matching.expected_of_path(call.path)
        account_id = subject.get("account_id", subject.get("token_id"))
        return None if account_id is None else str(account_id)
    params = json_decoding.decode(call.body).get("params")
    is_query = isinstance(params, dict) and params.get("request_type") in _ACCOUNT_QUERIES
    account_id = params.get("account_id") if is_query else None
    return account_id if isinstance(account_id, str) else None
