"""Closing a ledger while a verb uses it: the verb ends at once, and nothing more is sent."""

from __future__ import annotations

import asyncio
import gc
import itertools
import signal
import threading
import time
import warnings
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit import ledger as ledger_module
from ledgerkit import progress
from ledgerkit.api import rest
from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.worlds import open_world
from ledgerkit.transport import background_loop, session, streaming
from tests.interrupts import LONG_S, interrupt
from tests.loopback import TOKEN, Reply, as_json, serve

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator
    from pathlib import Path

    from ledgerkit.transport.session import Reader
    from tests.loopback import Server

CLOSED = r"this ledger is closed\. Connect again\."


def one(ledger: lk.Ledger, _folder: Path) -> object:
    return lk.ft("a1.near", ledger=ledger)


def many(ledger: lk.Ledger, _folder: Path) -> object:
    """Read many accounts, and collect the errors."""
    ids = [f"a{number}.near" for number in range(100)]
    return lk.ft(ids, ledger=ledger, on_error="collect", progress=False)


def stream(ledger: lk.Ledger, _folder: Path) -> object:
    calls = (rest.ft(f"a{number}.near") for number in itertools.count())
    return next(ledger.stream(calls, size=8))


def collect(ledger: lk.Ledger, folder: Path) -> object:
    ids = [f"a{number}.near" for number in range(1_000)]
    return lk.collect(ids, out=folder / "out", views=["ft"], ledger=ledger, progress=False)


# What differs in code: how a verb waits for its calls, and what a call waits for.
waiting = pytest.mark.parametrize(
    ("verb", "wait"), [(one, "request"), (many, "rate"), (stream, "retry"), (collect, "request")]
)


class Host:
    """A host that answers one request, and keeps the others waiting in one of three ways."""

    def __init__(self, wait: str) -> None:
        self.wait = wait
        self.is_over, self.arrived = threading.Event(), threading.Event()

    def __call__(self, _method: str, path: str, *_: object) -> Reply:
        account_id = path.split("/")[3]
        self.arrived.set()
        if self.wait == "retry":
            return Reply(429, b"slow down", {"retry-after": str(LONG_S)})
        if self.wait == "request":
            self.is_over.wait(LONG_S)
        return as_json({"account_id": account_id, "tokens": [TOKEN]})


@contextmanager
def connected(wait: str, way: dict[str, Any]) -> Iterator[tuple[lk.Ledger, Server, Host]]:
    """Connect to such a host; with "rate" the one free slot is used."""
    host = Host(wait)
    rate = 1 / LONG_S if wait == "rate" else None
    policy = lk.RetryPolicy(attempts=4, total_s=3 * LONG_S)
    with (
        serve(host) as server,
        lk.connect("lab", api_url=server.url, rate=rate, retries=policy, **way) as ledger,
    ):
        if wait == "rate":
            lk.ft("a0.near", ledger=ledger)
        try:
            yield ledger, server, host
        finally:
            host.is_over.set()


def running() -> int:
    """Count the threads and tasks that answer calls."""
    owners = {session.Session.__name__, streaming.Stream.__name__}

    async def count() -> int:
        names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
        return sum(name.partition(".")[0] in owners for name in names)

    n_tasks = background_loop.current().run(count())  # first: they start the threads
    return n_tasks + sum(t.name == "ledgerkit_transport" for t in threading.enumerate())


def all_end() -> bool:
    """Wait until nothing runs any more."""
    until = time.monotonic() + LONG_S
    while running() and time.monotonic() < until:
        time.sleep(0.01)
    return not running()


@waiting
def test_closed_by_another_thread(verb, wait, way, tmp_path):
    """The waiting verb raises, whatever it waits for, and no request is sent afterwards."""
    errors: list[InvalidRequestError] = []

    def work() -> None:
        with pytest.raises(InvalidRequestError, match=CLOSED) as caught:
            verb(ledger, tmp_path)
        errors.append(caught.value)

    with connected(wait, way) as (ledger, server, host):
        thread = threading.Thread(target=work)
        thread.start()
        assert host.arrived.wait(LONG_S)
        time.sleep(0.05)  # most often the verb waits by now; if not, the claim is the same
        ledger.close()
        n_requests = server.settled()
        thread.join(LONG_S / 2)
        assert not thread.is_alive()
        host.is_over.set()
        assert all_end()
        with pytest.raises(InvalidRequestError, match=CLOSED):
            verb(ledger, tmp_path)
        assert server.settled() == n_requests <= way["in_flight"]
    assert [error.field for error in errors] == ["ledger"]
    errors.clear()
    gc.collect()


@pytest.mark.parametrize("verb", [one, many])
@pytest.mark.parametrize("way", ["own", "sync"], indirect=True)
def test_closed_while_a_verb_starts(verb, way, monkeypatch, tmp_path):
    """A verb that checked the ledger just before it was closed raises at once too."""
    original = session.Session.answer

    async def close_first(*arguments: Any, **options: Any) -> Any:
        closing = threading.Thread(target=ledger.close)
        closing.start()
        closing.join(0.1)  # the ledger is closed by then; the thread waits for this call's end
        return await original(*arguments, **options)

    with connected("rate", way) as (ledger, server, _):
        monkeypatch.setattr(session.Session, "answer", close_first)
        begin = time.monotonic()
        with pytest.raises(InvalidRequestError, match=CLOSED):
            verb(ledger, tmp_path)
        assert time.monotonic() - begin < LONG_S / 2
    assert len(server.requests) == 1


@waiting
@pytest.mark.parametrize("way", ["own", "sync"], indirect=True)
def test_closed_by_a_signal_handler(verb, wait, way, tmp_path):
    """A handler of the waiting thread itself may close the ledger."""

    def send() -> None:
        host.arrived.wait(LONG_S)
        time.sleep(0.05)  # most often the verb waits by then; if not, the claim is the same
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    with connected(wait, way) as (ledger, _, host):
        before = signal.signal(signal.SIGUSR1, lambda *_: ledger.close())
        thread = threading.Thread(target=send)
        thread.start()
        try:
            with pytest.raises(InvalidRequestError, match=CLOSED):
                verb(ledger, tmp_path)
            assert not host.is_over.is_set()
        finally:
            thread.join()
            signal.signal(signal.SIGUSR1, before)
        host.is_over.set()
        assert all_end()


@waiting
@pytest.mark.parametrize("way", ["own", "sync"], indirect=True)
def test_ctrl_c(verb, wait, way, tmp_path):
    """Ctrl-C ends a verb, and then its `with` block, whatever it waits for."""
    with connected(wait, way) as (ledger, _, host):
        interrupt(lambda: verb(ledger, tmp_path), after=host.arrived)
        assert not host.is_over.is_set()
        ledger.close()
        host.is_over.set()
        assert all_end()


def test_a_sibling_is_closed_with_its_ledger():
    """What a sibling does ends with the ledger that it came from."""
    with connected("request", {"in_flight": 4}) as (ledger, server, _):
        sibling = ledger.sibling(in_flight=2)
        ledger.close()
        with pytest.raises(InvalidRequestError, match=CLOSED):
            lk.ft("a.near", ledger=sibling)
    assert server.requests == []


class Bar(progress.Bar):
    """A progress bar that does something when it counts the first result."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(disable=True)
        self.act = act
        self.is_done = False

    def update(self, count: int = 1) -> None:
        if count and not self.is_done:
            self.is_done = True
            self.act()


def with_bar(ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Read many accounts, and do something in the thread that counts them."""
    with monkeypatch.context() as patched:
        patched.setattr(ledger_module, "Bar", lambda **_: Bar(act))
        lk.ft([f"a{number}.near" for number in range(100)], ledger=ledger)


def with_source(ledger: lk.Ledger, _patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Read a stream, and do something in its source when some requests are under way."""

    def source() -> Iterator[Any]:
        for number in itertools.count():
            if number == 5:
                act()
            yield rest.ft(f"a{number}.near")

    for _ in ledger.stream(source(), size=8):
        pass


def fine(_method: str, path: str, *_: object) -> Reply:
    return as_json({"account_id": path.split("/")[3], "tokens": [TOKEN]})


class LastHangs:
    """A host that answers at once, except the last of a hundred accounts."""

    def __init__(self) -> None:
        self.is_over = threading.Event()

    def __call__(self, method: str, path: str, *_: object) -> Reply:
        if "/a99." in path:
            self.is_over.wait(LONG_S)
        return fine(method, path)


# httpcore leaves a connection open that a thread opens while its pool is closed.
without_threads = pytest.mark.parametrize("way", ["own", "async"], indirect=True)


@without_threads
@pytest.mark.parametrize("verb", [with_bar, with_source])
def test_closed_from_within(verb, way, monkeypatch):
    """A progress bar or the source of a stream may close the ledger that it belongs to."""
    host = LastHangs()
    with serve(host) as server, lk.connect("lab", api_url=server.url, **way) as ledger:
        with pytest.raises(InvalidRequestError, match=CLOSED):
            verb(ledger, monkeypatch, ledger.close)
        assert not host.is_over.is_set()
        assert all_end()
        host.is_over.set()


@pytest.mark.parametrize("verb", [with_bar, with_source])
def test_the_embedded_ledger_is_closed_from_within(verb, monkeypatch):
    """The same holds where everything runs in the caller's thread."""
    with lk.connect("local", world="empty") as ledger:
        refused = pytest.raises(InvalidRequestError, match=CLOSED)
        with warnings.catch_warnings(), refused:
            warnings.simplefilter("ignore", UserWarning)  # the world lacks the accounts
            verb(ledger, monkeypatch, ledger.close)


@without_threads
@pytest.mark.parametrize("verb", [one, stream])
def test_closed_by_several_threads(verb, way, tmp_path):
    """Any number of threads may close a ledger at once; all return, and its verb ends."""
    with connected("request", way) as (ledger, _, host):

        def close() -> None:
            host.arrived.wait(LONG_S)
            barrier.wait()
            ledger.close()

        barrier = threading.Barrier(8)
        threads = [threading.Thread(target=close) for _ in range(8)]
        for thread in threads:
            thread.start()
        with pytest.raises(InvalidRequestError, match=CLOSED):
            verb(ledger, tmp_path)
        for thread in threads:
            thread.join(LONG_S / 2)
            assert not thread.is_alive()
        assert not host.is_over.is_set()
        host.is_over.set()
        assert all_end()


@pytest.mark.parametrize("verb", [with_bar, with_source])
def test_ctrl_c_within(verb, way, monkeypatch):
    """Ctrl-C in a progress bar or in the source of a stream ends the verb, and not the ledger."""
    host = LastHangs()
    with serve(host) as server, lk.connect("lab", api_url=server.url, **way) as ledger:
        with pytest.raises(KeyboardInterrupt):
            verb(ledger, monkeypatch, lambda: signal.raise_signal(signal.SIGINT))
        host.is_over.set()
        assert all_end()
        n_requests = server.settled()
        assert len(lk.ft("a.near", ledger=ledger)) == 1
        assert len(server.requests) == n_requests + 1


class Interrupting:
    """An object whose finalizer is interrupted by Ctrl-C, which Python drops there."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("verb", [with_bar, with_source])
def test_a_dropped_ctrl_c_costs_one_more(verb, way, monkeypatch):
    """After a Ctrl-C that a finalizer swallowed a verb goes on, and the next one ends it."""
    dropped, go_on = threading.Event(), threading.Event()

    def handler(method: str, path: str, *_: object) -> Reply:
        if dropped.is_set() or "/a99." in path:
            go_on.wait(LONG_S)
        return fine(method, path)

    def drop() -> None:
        Interrupting()
        dropped.set()

    patient = lk.RetryPolicy(attempts=1, total_s=2 * LONG_S)
    with (
        serve(handler) as server,
        lk.connect("lab", api_url=server.url, retries=patient, **way) as ledger,
    ):
        interrupt(lambda: verb(ledger, monkeypatch, drop), after=dropped)
        go_on.set()
        assert all_end()
        assert len(lk.ft("a.near", ledger=ledger)) == 1


def test_ctrl_c_while_pages_are_read(way):
    """Ctrl-C ends the wait for a page, and so does closing; the rows before it were passed on."""

    async def pages(reader: Reader) -> AsyncGenerator[Any, None]:
        for number in itertools.count():
            yield await reader.answers([rest.ft(f"a{number}.near")])

    def handler(method: str, path: str, *_: object) -> Reply:
        if "a2." in path:
            arrived.set()
            go_on.wait(LONG_S)
        return fine(method, path)

    def read() -> None:
        with closing(ledger.session.iterate(pages)) as rows:
            numbers.extend(number for number, _ in enumerate(rows))

    def close() -> None:
        arrived.wait(LONG_S)
        ledger.close()

    numbers: list[int] = []
    go_on, arrived = threading.Event(), threading.Event()
    with serve(handler) as server, lk.connect("lab", api_url=server.url, **way) as ledger:
        interrupt(read, after=arrived)
        assert numbers == [0, 1]
        arrived.clear()
        closer = threading.Thread(target=close)
        closer.start()
        with pytest.raises(InvalidRequestError, match=CLOSED):
            read()
        closer.join()
        assert numbers == [0, 1, 0, 1]
        go_on.set()
        assert all_end()


class Hanging(httpx.AsyncBaseTransport):
    """An asynchronous transport that does not close."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=fine("GET", request.url.path).body)

    async def aclose(self) -> None:
        await asyncio.sleep(2 * LONG_S)


def test_a_transport_that_does_not_close():
    """Closing a ledger does not wait for a transport that hangs."""
    ledger = lk.connect("lab", transport=Hanging())
    assert len(lk.ft("a.near", ledger=ledger)) == 1
    begin = time.monotonic()
    ledger.close()
    assert time.monotonic() - begin < LONG_S


class Blocking(httpx.AsyncBaseTransport):
    """An asynchronous transport that blocks its loop."""

    def __init__(self) -> None:
        self.arrived, self.is_over = threading.Event(), threading.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.arrived.set()
        self.is_over.wait(2 * LONG_S)
        return httpx.Response(200, content=fine("GET", request.url.path).body)


def test_a_transport_that_blocks_the_loop():
    """Closing a ledger does not wait for a transport that blocks the background loop."""

    def work() -> None:
        with pytest.raises(InvalidRequestError, match=CLOSED):
            lk.ft("a.near", ledger=ledger)

    transport = Blocking()
    ledger = lk.connect("lab", transport=transport)
    thread = threading.Thread(target=work)
    thread.start()
    assert transport.arrived.wait(LONG_S)
    begin = time.monotonic()
    ledger.close()
    assert time.monotonic() - begin < LONG_S
    transport.is_over.set()
    thread.join()
    assert all_end()


def check_closing_during_transfer(ledger: lk.Ledger) -> None:
    """Close a ledger while a transfer waits; the transfer must raise."""
    timer = threading.Timer(0.2, ledger.close)
    timer.start()
    with pytest.raises(InvalidRequestError, match="this ledger is closed"):
        lk.transfer("near", "1 NEAR", signer_id="near", ledger=ledger)
    timer.join()
    lk.disconnect()


def test_the_embedded_ledger_is_closed_while_a_transaction_waits():
    """With real time a block may be an hour away: the waiting verb raises."""
    world = open_world("empty", real_time=True, block_time_ns=3600 * 10**9, timeout_ns=7200 * 10**9)
    ledger = lk.connect("local", world=world, timeout_s=7200.0)
    check_closing_during_transfer(ledger)


def test_a_transaction_that_is_sent_again_later():
    """A Retry-After that a sender waits for ends with the ledger."""
    ledger = lk.connect("local", world="empty")
    lk.transfer("near", "1 NEAR", signer_id="near", ledger=ledger)  # reads key and block
    ledger.faults.add(f"status=429; retry-after={LONG_S:g}")
    check_closing_during_transfer(ledger)
