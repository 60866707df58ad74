"""Streams: order, places of failures, how far ahead is asked, the end; siblings, descriptions."""

from __future__ import annotations

import asyncio
import gc
import inspect
import itertools
import os
import pickle
import random
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit import client
from ledgerkit.api import rest
from ledgerkit.api.calls import Call
from ledgerkit.errors import InvalidRequestError, TransportError
from ledgerkit.transport import background_loop, settings, streaming
from tests.loopback import TLS, Reply, as_json, serve
from tests.loopback import connected as asking
from tests.scripts import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.loopback import Server

ROOT = Path(__file__).resolve().parents[2]
KEY = "PLANTED-mossw0rt/Qx+42=z&y"
PARTS = (KEY, "PLANTED", "mossw0rt", "Qx+42", "Qx%2B42")
ONCE = lk.RetryPolicy(attempts=1, total_s=10)
two_ways = pytest.mark.parametrize("way", ["own", "sync"], indirect=True)


def name(path: str) -> str:
    return path.split("/")[3]


def fine(_method: str, path: str, *_: object) -> Reply:
    return as_json({"account_id": name(path), "tokens": []})


class Source:
    """Calls without an end, or so many, which counts what was taken from it, and where."""

    def __init__(self, count: int | None = None) -> None:
        numbers = itertools.count() if count is None else range(count)
        self.left = iter(numbers)
        self.taken = 0
        self.threads: set[threading.Thread] = set()

    def __iter__(self) -> Iterator[Any]:
        for number in self.left:
            self.taken += 1
            self.threads.add(threading.current_thread())
            yield rest.ft(f"a{number}.near")


def names(count: int, first: int = 0) -> list[str]:
    return [f"a{number}.near" for number in range(first, first + count)]


def answered_ids(batch: list[Any]) -> list[Any]:
    """Return the account ids of answers, and the types of failures."""
    return [getattr(value, "account_id", type(value)) for value in batch]


def until(true: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not (result := true()) and time.monotonic() < end:
        time.sleep(0.01)
    return result


def have_arrived(server: Server, count: int) -> bool:
    """Wait until a server has received this many requests."""
    return until(lambda: len(server.requests) >= count)


def tasks() -> int:
    """Count the tasks that answer calls; stopping and closing have tasks of their own."""

    async def count() -> int:
        names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
        return names.count(streaming.Stream._run.__qualname__)

    return background_loop.current().run(count())


def workers() -> int:
    """Count the threads that answer calls."""
    return sum(thread.name == "ledgerkit_transport" for thread in threading.enumerate())


# Order, places, batches -----------------------------------------------------------------


def test_answers_come_in_the_order_of_the_calls(way):
    """Whoever answers first: the batches are whole, and in the order of the calls."""
    luck = random.Random(7)  # noqa: S311 - no secret

    def handler(*asked: Any) -> Reply:
        time.sleep(luck.random() / 50)
        return fine(*asked)

    with asking(handler, **way) as (ledger, server):
        batches = [answered_ids(batch) for batch in ledger.stream(Source(150), size=32)]
    assert [len(batch) for batch in batches] == [32, 32, 32, 32, 22]
    assert list(itertools.chain.from_iterable(batches)) == names(150)
    assert len(server.requests) == 150


@two_ways
@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (20, [10, 10]), (21, [10, 10, 1])])
def test_the_last_batch_may_be_shorter(way, count, sizes):
    """There is no empty batch at the end, and none without calls."""
    with asking(fine, **way) as (ledger, _):
        assert [len(batch) for batch in ledger.stream(Source(count), size=10)] == sizes


@pytest.mark.parametrize("size", [0, -1, True, 2.5, "9", None])
def test_a_size_is_checked_at_once(size):
    """A size that is no positive integer is refused before anything is asked."""
    with (
        asking(fine) as (ledger, server),
        pytest.raises(InvalidRequestError, match="an integer from 1 up") as caught,
    ):
        ledger.stream(Source(), size=size)
    assert caught.value.field == "size"
    assert server.requests == []


# How far ahead --------------------------------------------------------------------------


@two_ways
def test_the_source_is_taken_as_batches_are(way):
    """Of an endless source so much is taken as documented, in the caller's thread alone."""
    source = Source()
    size, ahead = 10, streaming.batches_ahead(10, way["in_flight"])
    with asking(fine, **way) as (ledger, _):
        stream = ledger.stream(source, size=size)
        assert source.taken == 0
        for given in range(5):
            assert answered_ids(next(stream)) == names(size, given * size)
            assert source.taken <= (given + ahead + 1) * size
        # The rest is asked although nobody takes it, and then no more.
        assert source.taken >= 4 * size + way["in_flight"]
        stream.close()
    assert source.threads == {threading.current_thread()}


@two_ways
def test_the_pipeline_stays_full(way):
    """While who takes the answers is busy, as many requests as allowed are under way."""
    lock = threading.Lock()
    now: list[int] = [0]
    seen: list[int] = []

    def handler(*asked: Any) -> Reply:
        with lock:
            now[0] += 1
        time.sleep(0.1)
        with lock:
            seen.append(now[0])
            now[0] -= 1
        return fine(*asked)

    with asking(handler, **way) as (ledger, server):
        stream = ledger.stream(Source(), size=16)
        for _ in range(6):
            before = len(server.requests)  # a batch is added before `next` returns
            next(stream)
            assert have_arrived(server, before + way["in_flight"])
        stream.close()
    assert max(seen) == way["in_flight"]


@two_ways
def test_a_slow_source_holds_up_nothing(way):
    """What a slow source has given is asked while it gives the next, and given when whole."""
    source = Source(120)
    has_batch = threading.Event()

    def slow() -> Iterator[Any]:
        for call in source:
            has_batch.wait(0.05)
            yield call

    with asking(fine, **way) as (ledger, _):
        stream = ledger.stream(slow(), size=10)
        assert answered_ids(next(stream)) == names(10)
        assert source.taken < 120
        has_batch.set()
        assert sum(len(batch) for batch in stream) == 110


# Sources --------------------------------------------------------------------------------


@two_ways
def test_a_source_that_raises(way):
    """What the source raises comes after the answers to all that was asked before it."""

    def broken() -> Iterator[Any]:
        yield from Source(25)
        msg = "no more ids"
        raise OSError(msg)

    batches: list[list[Any]] = []
    with asking(fine, **way) as (ledger, _):
        with pytest.raises(OSError, match="no more ids"):
            batches.extend(map(answered_ids, ledger.stream(broken(), size=10)))
        assert until(lambda: tasks() == workers() == 0)
    assert batches == [names(10), names(10, 10), names(5, 20)]


@two_ways
def test_a_source_that_asks_a_ledger(way):
    """A source may ask a ledger for what comes next: another one, or the same."""

    def asking_too(ledger: lk.Ledger) -> Iterator[Any]:
        for number in range(30):
            found = ledger.send(rest.ft(f"a{number}.near")).account_id
            yield rest.ft(str(found))

    with asking(fine, **way) as (ledger, _), ledger.sibling(in_flight=1) as other:
        for source in (other, ledger):
            batches = ledger.stream(asking_too(source), size=7)
            assert [one for batch in batches for one in answered_ids(batch)] == names(30)


def test_many_streams_at_once(way):
    """Streams of one ledger keep to its limit together, each in its own order."""
    with asking(fine, **way) as (ledger, _):
        streams = [ledger.stream(Source(50), size=10) for _ in range(3)]
        for batches in zip(*streams, strict=True):
            assert answered_ids(batches[0]) == answered_ids(batches[1]) == answered_ids(batches[2])


# The end --------------------------------------------------------------------------------


def test_an_early_end_leaves_nothing(way):
    """Closing a stream cancels what is under way: no task, no thread, no request is left."""

    def handler(*asked: Any) -> Reply:
        time.sleep(0.02)
        return fine(*asked)

    with asking(handler, **way) as (ledger, server):
        stream = ledger.stream(Source(), size=8)
        next(stream)
        stream.close()
        assert until(lambda: tasks() == workers() == 0)
        asked = server.settled()
        assert server.settled() == asked
        assert list(stream) == []
        assert lk.ft("a7.near", ledger=ledger).empty
        gc.collect()


@two_ways
def test_a_forgotten_stream_ends(way):
    """A stream that nobody holds any more is over, wherever the collector finds it."""
    with asking(fine, **way) as (ledger, _):
        circle: list[Any] = [ledger.stream(Source(), size=8)]
        next(circle[0])
        circle.append(circle)
        del circle

        async def collect() -> None:
            gc.collect()

        background_loop.current().run(collect())
        assert until(lambda: tasks() == workers() == 0)


@two_ways
def test_a_closed_ledger_ends_its_stream(way):
    """A ledger closed between two batches refuses the next; closed before, it begins none."""
    with asking(fine, **way) as (ledger, _):
        stream = ledger.stream(Source(), size=8)
        next(stream)
        ledger.close()
        with pytest.raises(InvalidRequestError, match="this ledger is closed"):
            next(stream)
        with pytest.raises(InvalidRequestError, match="this ledger is closed"):
            ledger.stream(Source())
        assert until(lambda: tasks() == workers() == 0)


class Broken(httpx.AsyncBaseTransport):
    """A transport that cannot be cancelled."""

    def __init__(self) -> None:
        self.free = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer when it is free, whoever wants it to stop."""
        while not self.free and name(request.url.path) != "a0.near":
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return httpx.Response(200, json={"account_id": name(request.url.path), "tokens": []})


def test_a_transport_that_hangs_is_not_waited_for():
    """Closing a stream waits a second at most for a transport that does not let go."""
    transport = Broken()
    with lk.connect("lab", transport=transport, in_flight=2) as ledger:
        stream = ledger.stream(Source(), size=1)
        assert answered_ids(next(stream)) == names(1)
        begin = time.monotonic()
        stream.close()
        assert time.monotonic() - begin < 30
        transport.free = True
        assert until(lambda: tasks() == 0)


def test_what_is_wrong_inside_is_raised():
    """A reader that fails with something else than a LedgerError ends the stream with it."""

    def wrong(_answer: object) -> object:
        msg = "a mistake of ours"
        raise ZeroDivisionError(msg)

    calls = [Call(surface="api", request="it", read=wrong, path="/v1/account/a/ft")]
    for transport in (None, httpx.HTTPTransport(verify=TLS)):
        with asking(fine, transport=transport) as (ledger, _):
            with pytest.raises(ZeroDivisionError, match="a mistake of ours"):
                list(ledger.stream(calls * 20, size=4))
            # The other workers notice the failure when they finish their own request.
            assert until(lambda: tasks() == workers() == 0)


SCRIPT = """
import os, sys, warnings
import httpx
import ledgerkit as lk
from itertools import count
from ledgerkit.api import rest as indexed

url, kind = sys.argv[1:]
class Blocking(httpx.BaseTransport):
    def handle_request(self, request):
        name = request.url.path.split("/")[3]
        return httpx.Response(200, json={"account_id": name, "tokens": []})

more = {"transport": Blocking()} if kind == "sync" else {}
ledger = lk.connect("lab", api_url=url, in_flight=16, **more)
calls = lambda: (indexed.ft(f"a{i}.near") for i in count())
stream = ledger.stream(calls(), size=8)
assert [one.account_id for one in next(stream)] == [f"a{i}.near" for i in range(8)]
"""
FORK = """
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons advise against forking
if child := os.fork():
    assert len(next(stream)) == 8
    assert os.waitpid(child, 0)[1] == 0
    assert len(next(stream)) == 8
else:
    try:
        next(stream)
    except lk.errors.InvalidRequestError as error:
        assert "cannot continue in a forked process" in str(error)
    else:
        raise SystemExit(9)
    assert len(next(ledger.stream(calls(), size=8))) == 8
"""


@pytest.mark.parametrize(
    ("kind", "ending"),
    [("own", ""), ("own", "del stream"), ("own", "ledger.close()"), ("sync", "")],
)
def test_nothing_is_left_at_the_end(kind, ending):
    """A script that ends in the middle of a stream leaves no task, no thread, no warning."""
    with serve(fine) as server:
        ended = run(SCRIPT + ending, server.url, kind)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("kind", ["own", "sync"])
def test_a_fork_in_the_middle(kind):
    """The parent's stream goes on after a fork; the child's is over, and it may begin another."""
    with serve(fine) as server:
        ended = run(SCRIPT + FORK, server.url, kind)
    assert (ended.returncode, ended.stderr) == (0, "")


# The embedded ledger --------------------------------------------------------------------


def test_the_embedded_ledger_streams():
    """The embedded ledger answers a stream in process, and survives a sibling's end."""
    with lk.connect("local") as ledger:
        with ledger.sibling(in_flight=3) as other:
            assert sum(len(batch) for batch in other.stream(Source(100), size=30)) == 100
            assert client.current() is ledger
        assert other.world is ledger.world
        assert len(lk.block(ledger=ledger)) == 1


# Siblings and descriptions --------------------------------------------------------------


def test_a_sibling_has_a_pace_of_its_own():
    """A sibling asks the same hosts with the same key; its rate may only be lower."""
    with asking(fine, rate=30, in_flight=4, api_key=KEY) as (ledger, server):
        with ledger.sibling(in_flight=9, rate=20) as other:
            assert other is not client.current()
            assert (other.session.settings.in_flight, other.session.settings.rate) == (9, 20)
            other.send(rest.ft("a.near"))
        assert ledger.sibling(rate=50).session.settings.rate == 30
        assert ledger.sibling().session.settings.rate == 30
        ledger.send(rest.ft("a.near"))
        with pytest.raises(InvalidRequestError, match="a number above 0"):
            ledger.sibling(rate=-1)
        with pytest.raises(InvalidRequestError, match="an integer from 1"):
            ledger.sibling(in_flight=0)
    assert [one.headers["authorization"] for one in server.requests] == [f"Bearer {KEY}"] * 2
    with asking(fine) as (ledger, _):
        assert ledger.sibling(rate=5).session.settings.rate == 5
        ledger.close()
        with pytest.raises(InvalidRequestError, match="this ledger is closed"):
            ledger.sibling()


class Closing(httpx.BaseTransport):
    """A transport that tells whether it was closed."""

    closed = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"account_id": name(request.url.path), "tokens": []})

    def close(self) -> None:
        self.closed = True


def test_a_sibling_closes_no_transport_of_the_user():
    """Closing a sibling leaves the transport open that both use."""
    transport = Closing()
    with lk.connect("lab", transport=transport) as ledger:
        other = ledger.sibling().sibling()
        other.close()
        with pytest.raises(InvalidRequestError, match="this ledger is closed"):
            other.send(rest.ft("a.near"))
        assert not transport.closed
    assert transport.closed


def test_a_description_opens_the_same_ledger(monkeypatch):
    """A description pickles without the key; the process that opens it brings its own."""
    options: dict[str, Any] = {"timeout_s": 3, "rate": 30, "in_flight": 4, "key_in": "query"}
    with asking(fine, api_key=KEY, **options) as (ledger, server):
        description = ledger.description()
        assert description.needs_key
        written = pickle.dumps(description)
        assert [part for part in PARTS if part in f"{description!r}{written!r}"] == []
        again = pickle.loads(written)  # noqa: S301 - our own
        assert again == description
        with pytest.raises(InvalidRequestError, match="Set LEDGERKIT_API_KEY") as caught:
            client.reopen(again)
        assert caught.value.field == "api_key"
        monkeypatch.setenv("LEDGERKIT_API_KEY", KEY)
        with client.reopen(again, in_flight=2, rate=60) as other:
            assert other is not client.current()
            found = other.session.settings
            assert (found.in_flight, found.rate, found.timeout_s) == (2, 30, 3)
            assert (found.network, found.retries) == (ledger.network, ONCE)
            other.send(rest.ft("a.near"))
    assert dict(httpx.URL("http://host" + server.paths[0]).params) == {"apiKey": KEY}


def test_a_description_without_a_key(monkeypatch):
    """Who asks without a key is described so; the key of another process stays there."""
    with asking(fine) as (ledger, server):
        description = ledger.description()
        assert not description.needs_key
        monkeypatch.setenv("LEDGERKIT_API_KEY", KEY)
        with client.reopen(description) as other:
            other.send(rest.ft("a.near"))
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("transport", [None, httpx.MockTransport(lambda _: httpx.Response(200))])
def test_what_answers_in_process_is_not_described(transport):
    """A world or a transport of this process is out of reach for another, which is said."""
    with (
        lk.connect("local" if transport is None else "lab", transport=transport) as ledger,
        pytest.raises(InvalidRequestError, match="Run `ledgerkit serve`"),
    ):
        ledger.description()


def test_what_is_no_description():
    """What no ledger has described is refused."""
    wrong: Any = settings.RetryPolicy()
    with pytest.raises(InvalidRequestError, match=r"the result of Ledger"):
        client.reopen(wrong)


# The key --------------------------------------------------------------------------------


@pytest.mark.parametrize("key_in", ["header", "query"])
def test_no_failure_of_a_stream_holds_the_key(way, key_in):
    """Failures in a stream quote a host that repeats the key without it, and hold no request."""

    def echo(method: str, path: str, headers: Any, _body: bytes) -> Reply:
        return as_json({"error": f"{method} {path} {headers.get('authorization')}"}, 503)

    with asking(echo, **way, api_key=KEY, key_in=key_in) as (ledger, _):
        stream = ledger.stream(Source(20), size=10)
        failures = [*next(stream), *next(stream)]
        held = inspect.getgeneratorlocals(stream)
        assert [part for part in PARTS if part in repr(held)] == []
    assert {type(one) for one in failures} == {TransportError}
    for one in failures:
        assert isinstance(one, TransportError)
        assert (one.__cause__, one.__context__, one.__traceback__) == (None, None, None)
        assert [part for part in PARTS if part in f"{one!r} {one} {vars(one)}"] == []
