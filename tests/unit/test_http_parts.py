"""The parts of the transport that need no host: rate, cache, key, pauses, workers, the loop."""

from __future__ import annotations

import asyncio
import gc
import heapq
import html
import itertools
import json
import logging
import math
import random
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit.api import rest
from ledgerkit.api.calls import Response
from ledgerkit.errors import InvalidRequestError, RateLimitedError, TransportError
from ledgerkit.transport import (
    background_loop,
    memory_cache,
    rate_limit,
    retry,
    session,
)
from ledgerkit.transport.networks import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HIDDEN = b"[key hidden]"


# Rate -----------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Stop the clock; the function given back moves it."""
    now = [1000.0]
    monkeypatch.setattr("ledgerkit.transport.rate_limit.time.monotonic", lambda: now[0])

    def forward(seconds: float) -> None:
        now[0] += seconds

    return forward


def test_places_are_spaced_evenly(clock):
    """With four requests a second each place is a quarter second after the one before."""
    pacer = rate_limit.RateLimiter(4)
    assert [pacer.reserve(math.inf) for _ in range(4)] == [0.0, 0.25, 0.5, 0.75]
    clock(10)
    assert [pacer.reserve(math.inf) for _ in range(2)] == [0.0, 0.25]


def test_without_a_rate_nobody_waits(clock):
    """No rate is no limit, but a pause that a host asked for holds even then."""
    pacer = rate_limit.RateLimiter(None)
    assert [pacer.reserve(math.inf) for _ in range(3)] == [0.0, 0.0, 0.0]
    pacer.pause(5)
    pacer.pause(2)
    assert pacer.reserve(math.inf) == 5.0
    clock(5)
    assert pacer.reserve(math.inf) == 0.0


@pytest.mark.usefixtures("clock")
def test_a_place_that_comes_too_late_is_not_taken():
    """Who cannot wait for a place leaves it to others, and a place given back is free again."""
    pacer = rate_limit.RateLimiter(1)
    assert pacer.reserve(1000.0) == 0.0
    assert pacer.reserve(1000.5) is None
    assert pacer.reserve(1001.0) == 1.0
    pacer.release(pacer.void_count)
    assert pacer.reserve(1001.0) == 1.0


def test_a_cancelled_wait_gives_its_place_back():
    """An interrupted queue leaves no hole: the next read does not wait for those who left."""
    with lk.connect("lab", transport=httpx.MockTransport(_fine), rate=2) as ledger:
        pacer = ledger.session._rate_limiters["api"]

        async def queue() -> None:
            tasks = [
                asyncio.create_task(ledger.session.answer(rest.ft(f"a{i}.near"))) for i in range(5)
            ]
            await asyncio.wait(tasks, timeout=0.1)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

        background_loop.current().run(queue())
        assert pacer.reserve(math.inf) == pytest.approx(0.4, abs=0.1)


def starts(
    pacer: rate_limit.RateLimiter, clock: Callable[[float], None], count: int
) -> list[float]:
    """Take places, waiting for each; gives the waits."""
    waits = []
    for _ in range(count):
        waits.append(pacer.reserve(math.inf) or 0.0)
        clock(waits[-1])
    return waits


def refuse(pacer: rate_limit.RateLimiter, count: int = 3, started: float = math.inf) -> Any:
    """Count refusals of requests that started after the last slowdown; return the last result."""
    return [pacer.record(started, refused=True) for _ in range(count)][-1]


def accept(pacer: rate_limit.RateLimiter, count: int) -> None:
    """Count responses to requests that started after the last slowdown."""
    assert not any(pacer.record(math.inf, refused=False) for _ in range(count))


def test_refusals_alone_halve_the_rate(clock):
    """If all of 40 requests a second are refused, 20 start from then on, even without a limit."""
    pacer = rate_limit.RateLimiter(None)
    assert sum(starts(pacer, clock, 40)) == 0
    assert refuse(pacer) == 20.0
    assert starts(pacer, clock, 3) == pytest.approx([0.0, 0.05, 0.05], rel=0.02)


def test_the_rate_is_cut_by_half_of_the_refused_share(clock):
    """With a quarter of the requests refused, the rate is cut by an eighth."""
    pacer = rate_limit.RateLimiter(None)
    starts(pacer, clock, 40)
    accept(pacer, 9)
    assert refuse(pacer, 2) is None
    accept(pacer, 3)
    assert refuse(pacer, 2) == pytest.approx(40 * (1 - 4 / 16 / 2))


def test_scattered_refusals_change_nothing(clock):
    """One request refused in a hundred slows no other one down, however many there are."""
    pacer = rate_limit.RateLimiter(None)
    for _ in range(50):
        assert starts(pacer, clock, 100) == [0.0] * 100
        accept(pacer, 99)
        assert refuse(pacer, 1) is None
        assert pacer.is_scattered
        clock(0.05)
    assert pacer.rate == math.inf


@pytest.mark.usefixtures("clock")
def test_the_first_refusals_are_not_scattered():
    """Before there are enough responses to compare with, the others wait with a refused one."""
    pacer = rate_limit.RateLimiter(None)
    accept(pacer, 5)
    refuse(pacer, 1)
    assert not pacer.is_scattered
    accept(pacer, 20)
    assert pacer.is_scattered
    refuse(pacer, 6)
    assert not pacer.is_scattered


def test_a_full_minute_is_never_scattered(clock):
    """A host with a known limit for a minute refuses for that limit, however rarely."""
    pacer = rate_limit.RateLimiter(20, per_minute=50)
    starts(pacer, clock, 40)
    accept(pacer, 40)
    assert refuse(pacer, 1) is not None
    assert not pacer.is_scattered


def test_the_rate_is_what_really_started(clock):
    """Where the limit allows 100 but 10 a second started, half of 10 is what goes on."""
    pacer = rate_limit.RateLimiter(100)
    for _ in range(30):
        assert pacer.reserve(math.inf) == 0.0
        clock(0.1)
    assert refuse(pacer) == 5.0


def test_a_burst_of_refusals_counts_once(clock):
    """Of many requests that began before the rate was lowered, only the first ones lower it."""
    pacer = rate_limit.RateLimiter(64)
    begun = [1000.0 + wait for wait in starts(pacer, clock, 64)]
    clock(0.1)
    results = [pacer.record(one, refused=True) for one in begun[:10]]
    assert results == [None, None, 32.0, *[None] * 7]
    clock(0.01)
    assert refuse(pacer, 20, begun[3]) is None
    assert refuse(pacer, 2, 1002.0) == pytest.approx(16.0, rel=0.02)  # began after that


def test_the_rate_never_falls_below_one_a_second(clock):
    """However often a host refuses, a request a second goes on; a lower limit stays."""
    pacer = rate_limit.RateLimiter(None)
    starts(pacer, clock, 3)
    assert refuse(pacer) == 1.5
    assert [refuse(pacer, 2) for _ in range(4)] == [1.0] * 4
    slow = rate_limit.RateLimiter(0.5)
    assert refuse(slow) == 0.5


def test_the_rate_returns_and_then_grows(clock):
    """A lowered rate doubles every 10 s, so that a halved one is back then, up to the limit."""
    pacer = rate_limit.RateLimiter(40)
    for _ in range(2):
        starts(pacer, clock, 10)
        clock(1)
    assert refuse(pacer) == pytest.approx(10 / 2, abs=1.5)
    lowered = pacer.rate
    rates = []
    for _ in range(4):
        clock(10)
        rates.append(pacer.rate)
    assert rates == pytest.approx([2 * lowered, 4 * lowered, min(8 * lowered, 40), 40])


def test_without_a_limit_it_is_lifted_again(clock):
    """Without a limit the rate is free again a minute after it was too much."""
    pacer = rate_limit.RateLimiter(None)
    starts(pacer, clock, 100)
    assert refuse(pacer) == 50.0
    clock(60)
    assert pacer.rate == pytest.approx(50 * 2**6)
    clock(0.1)
    assert pacer.rate == math.inf
    assert sum(starts(pacer, clock, 100)) == 0


def test_the_rate_does_not_grow_in_a_pause(clock):
    """While a host has asked for a pause, nothing is learned about what it bears."""
    pacer = rate_limit.RateLimiter(20)
    starts(pacer, clock, 21)
    assert refuse(pacer) == 10.0
    pacer.pause(60)
    clock(60)
    assert pacer.rate == pytest.approx(10.0)
    clock(10)
    assert pacer.rate == pytest.approx(20.0)
    pacer.pause(60)
    assert pacer.rate == pytest.approx(20.0)


class Host:
    """
    A simulated host, and requests to it: 128 at a time, each answered after some 30 ms.

    A refused request is sent again after a random pause, as `Session` does it.
    """

    def __init__(self, clock: Callable[[float], None], seed: int) -> None:
        self.clock, self.luck = clock, random.Random(seed)  # noqa: S311 - no secret
        self.now, self.numbers = 0.0, itertools.count()
        self.events: list[tuple[float, int, Callable[..., bool], Any]] = []
        self.pacer = rate_limit.RateLimiter(None)
        self.refused = 0

    def run(self, count: int, refuses: Callable[[float], bool]) -> float:
        """Send requests until `count` are answered; return the seconds."""
        waiting = count
        for _ in range(min(count, 128)):
            waiting -= 1
            self.reserve(0.25)
        while self.events:
            at, _, step, arguments = heapq.heappop(self.events)
            self.clock(at - self.now)
            self.now = at
            if not step(*arguments, refuses) and waiting:
                waiting -= 1
                self.reserve(0.25)
        return self.now

    def later(self, seconds: float, step: Callable[..., bool], *arguments: Any) -> None:
        entry = (self.now + seconds, next(self.numbers), step, arguments)
        heapq.heappush(self.events, entry)

    def reserve(self, longest: float, *_: object) -> bool:
        epoch, seconds = self.pacer.void_count, self.pacer.reserve(math.inf) or 0.0
        self.later(seconds, self.start, epoch, seconds, longest)
        return True

    def start(self, epoch: int, waited: float, longest: float, *_: object) -> bool:
        """Send a request, unless a pause has voided its slot."""
        if waited and epoch != self.pacer.void_count:
            return self.reserve(longest)
        self.later(self.luck.uniform(0.02, 0.04), self.answer, 1000.0 + self.now, longest)
        return True

    def answer(self, started: float, longest: float, refuses: Callable[[float], bool]) -> bool:
        """Answer a request; return True unless it is over."""
        is_refused = refuses(self.now)
        self.pacer.record(started, refused=is_refused)
        if is_refused:
            self.refused += 1
            pause = self.luck.uniform(0, longest)
            if not self.pacer.is_scattered:
                self.pacer.pause(pause)
            self.later(pause, self.reserve, min(2 * longest, 5.0))
        return is_refused


def test_one_refusal_in_a_hundred_costs_little_time(clock):
    """3,000 requests of which 1 % are refused at random take less than twice the time."""
    undisturbed = Host(clock, 0).run(3_000, lambda _now: False)
    host = Host(clock, 0)
    assert host.run(3_000, lambda _now: host.luck.random() < 0.01) < 2 * undisturbed
    assert host.refused >= 15


@pytest.mark.parametrize(("limit", "share"), [(20, 0.12), (200, 0.02), (1_000, 0.01)])
def test_a_limit_of_the_host_is_found(clock, limit, share):
    """A host's own limit is used to 85 %, and few requests are refused once it is known."""
    tokens, filled = limit / 5, 0.0

    def refuses(now: float) -> bool:
        nonlocal tokens, filled
        tokens, filled = min(limit / 5, tokens + (now - filled) * limit), now
        is_refused = tokens < 1
        tokens -= not is_refused
        return is_refused

    host = Host(clock, 0)
    begin = host.run(10 * limit, refuses)
    found_out, host.refused = host.refused, 0
    seconds = host.run(60 * limit, refuses) - begin
    assert 60 / seconds > 0.85
    assert host.refused < share * 60 * limit
    assert found_out < 400


def test_a_pause_holds_those_that_have_a_place(clock):
    """A place taken before a pause is void: who waited for it takes another one after it."""
    pacer = rate_limit.RateLimiter(2)
    assert [pacer.reserve(math.inf) for _ in range(3)] == [0.0, 0.5, 1.0]
    turn = pacer.void_count
    pacer.pause(5)
    assert pacer.void_count != turn
    pacer.release(turn)  # of no use to anyone any more
    clock(0.5)
    assert pacer.reserve(math.inf) == 4.5
    pacer.pause(1)  # within the other one
    assert pacer.reserve(math.inf) == 5.0


def test_a_minute_has_so_many_requests(clock):
    """Three a minute start at once, the fourth when the first is a minute and a second ago."""
    pacer = rate_limit.RateLimiter(10, per_minute=3)
    assert starts(pacer, clock, 3) == pytest.approx([0.0, 0.1, 0.1])
    assert pacer.reserve(1060.9) is None
    assert starts(pacer, clock, 4) == pytest.approx([60.8, 0.1, 0.1, 60.8])
    clock(500)
    assert starts(pacer, clock, 4) == pytest.approx([0.0, 0.1, 0.1, 60.8])


def test_a_place_given_back_is_free_in_its_minute(clock):
    """A cancelled or voided start does not count in its minute."""
    pacer = rate_limit.RateLimiter(10, per_minute=2)
    assert [pacer.reserve(math.inf) for _ in range(2)] == pytest.approx([0.0, 0.1])
    pacer.release(pacer.void_count)
    assert pacer.reserve(math.inf) == pytest.approx(0.1)
    pacer.pause(5)  # voids the second one
    assert pacer.reserve(math.inf) == pytest.approx(5.0)
    clock(5)
    assert pacer.reserve(math.inf) == pytest.approx(56.0)


@given(st.integers(1, 6), st.lists(st.floats(0, 40), max_size=30), st.sampled_from([None, 0.1, 3]))
def test_no_window_of_a_minute_has_more(per_minute, gaps, rate):
    """Whatever the pauses between reads, no 60 seconds have more starts than allowed."""
    now = 1000.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ledgerkit.transport.rate_limit.time.monotonic", lambda: now)
        pacer = rate_limit.RateLimiter(rate, per_minute)
        times = []
        for gap in gaps:
            now += gap
            now += pacer.reserve(math.inf) or 0.0
            times.append(now)
    spans = [late - early for early, late in zip(times, times[per_minute:], strict=False)]
    assert all(span > 60 for span in spans)


@given(st.integers(1, 6), st.lists(st.tuples(st.floats(0, 40), st.booleans()), max_size=40))
def test_a_lost_connection_makes_room_for_one_request_only(per_minute, attempts):
    """No 60 seconds have more requests that reach the host, whichever attempts do not."""
    now = 1000.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ledgerkit.transport.rate_limit.time.monotonic", lambda: now)
        pacer = rate_limit.RateLimiter(None, per_minute)
        times = []
        for gap, is_connected in attempts:
            now += gap
            now += pacer.reserve(math.inf) or 0.0
            if is_connected:
                times.append(now)
            else:
                pacer.uncount()
    spans = [late - early for early, late in zip(times, times[per_minute:], strict=False)]
    assert all(span > 60 for span in spans)


@pytest.mark.parametrize(
    ("limit", "text", "seconds"),
    [
        (rate_limit.Limit(), "no rate limit", None),
        (rate_limit.Limit(20.0), "at most 20 requests a second", 15.0),
        (
            rate_limit.Limit(20.0, 50, "without a key"),
            "at most 50 requests a minute without a key",
            305.0,
        ),
        (rate_limit.Limit(0.5, 50, "without a key"), "at most 0.5 requests a second", 600.0),
    ],
)
def test_a_limit_in_words_and_as_time(limit, text, seconds):
    """A limit names the bound that holds, and the least time of 300 requests."""
    assert (str(limit), limit.seconds(300)) == (text, seconds)


@pytest.fixture
def _no_shared_limiters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what the process has sent to public hosts; they see no request of these tests."""
    monkeypatch.setattr(session, "_shared_limiters", {})


@pytest.mark.usefixtures("_no_shared_limiters")
def test_ledgers_of_one_process_share_the_limit_of_a_minute(clock):
    """A public host counts all that comes from an address: connecting again begins no minute."""
    with lk.connect("mainnet") as first, first.sibling() as sibling:
        starts(first.session._rate_limiters["api"], clock, 30)
        starts(sibling.session._rate_limiters["api"], clock, 20)
    with lk.connect("mainnet") as again, lk.connect("mainnet", api_key="k" * 20) as keyed:
        assert again.session._rate_limiters["api"].reserve(1e6) == pytest.approx(58.55)
        assert again.session._rate_limiters["rpc"].reserve(1e6) == 0.0
        assert keyed.session._rate_limiters["api"].reserve(1e6) == 0.0
    with lk.connect("lab", api_url="http://127.0.0.1:1", rate=1) as own, own.sibling() as other:
        starts(own.session._rate_limiters["api"], clock, 5)
        assert other.session._rate_limiters["api"].reserve(1e6) == 0.0
    lk.disconnect()


@pytest.mark.usefixtures("_no_shared_limiters")
def test_the_limit_of_a_minute_leaves_time_to_try_again(clock, monkeypatch):
    """Waiting for the next minute is not counted: a failed read is still tried again in it."""
    replies = [Response(b"busy", 503), Response(b"busy", 503)]
    replies.append(Response(b'{"account_id":"a.near","tokens":[]}'))

    async def exchange(_exchange: object) -> Response:
        return replies.pop(0)

    async def sleep(seconds: float) -> None:
        clock(seconds)

    with lk.connect("mainnet", retries=lk.RetryPolicy(attempts=3, total_s=5)) as ledger:
        limiter = ledger.session._rate_limiters["api"]
        starts(limiter, clock, 49)
        monkeypatch.setattr(ledger.session._transport, "exchange", exchange)
        monkeypatch.setattr(ledger.session, "_sleep", sleep)
        assert ledger.send(rest.ft("a.near")).account_id == "a.near"
        assert limiter.reserve(1e6) == pytest.approx(0.05)  # in the minute after the first
    lk.disconnect()


def test_a_read_that_waits_is_held_by_a_pause():
    """A queued read whose turn comes in a pause waits on instead of asking."""
    asked: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        token = {"contract_id": "t.near", "balance": "1"}  # else the account is looked up
        return httpx.Response(200, json={"tokens": [token]})

    with lk.connect("lab", transport=httpx.MockTransport(handle), rate=1) as ledger:
        lk.ft("a.near", ledger=ledger)
        threading.Timer(0.05, ledger.session._rate_limiters["api"].pause, [1.2]).start()
        begin = time.monotonic()
        lk.ft("b.near", ledger=ledger)
        assert time.monotonic() - begin > 1.2
    assert len(asked) == 2


# Cache ----------------------------------------------------------------------------------


def test_the_cache_drops_what_was_used_least():
    """Above its size the cache drops the body that was not asked for the longest."""
    cache = memory_cache.MemoryCache(10)
    for name in "abc":
        cache.put(name, name.encode() * 3)
    assert cache.get("a") == b"aaa"
    cache.put("d", b"ddd")
    assert [cache.get(name) for name in "abcd"] == [b"aaa", None, b"ccc", b"ddd"]
    cache.put("d", b"dd")  # replaced, not added
    cache.put("e", b"ee")
    assert [cache.get(name) for name in "acde"] == [b"aaa", b"ccc", b"dd", b"ee"]


def test_a_body_larger_than_the_cache_is_not_kept():
    """A body above the size of the cache is not stored, and drops no other."""
    cache = memory_cache.MemoryCache(10)
    cache.put("small", b"x" * 10)
    cache.put("big", b"x" * 11)
    assert cache.get("big") is None
    assert cache.get("small") == b"x" * 10


def test_a_body_may_have_a_lifetime():
    """A body that is too old is not given; one without a lifetime always is."""
    cache = memory_cache.MemoryCache(10)
    cache.put("old", b"1", expires_at=50.0)
    cache.put("ever", b"2")
    assert [cache.get("old", now) for now in (0.0, 49.9, 50.0)] == [b"1", b"1", None]
    assert cache.get("ever", 1e18) == b"2"


def test_a_cleared_cache_has_all_its_room():
    """Clearing forgets every body, and their bytes count no more."""
    cache = memory_cache.MemoryCache(10)
    cache.put("a", b"x" * 10)
    cache.clear()
    assert cache.get("a") is None
    cache.put("b", b"x" * 10)
    assert cache.get("b") == b"x" * 10


# What a host says about time -----------------------------------------------------------


def test_retry_after(subtests):
    """A pause is seconds or a date; what is neither, negative or endless is no pause."""
    cases = [
        (None, None),
        ("3", 3.0),
        (" 3 ", 3.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("9" * 400, None),
        ("", None),
        ("soon", None),
        ("Wed, 99 Foo 2026 07:28:00 GMT", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 9999999 07:28:00 GMT", None),
    ]
    for text, seconds in cases:
        with subtests.test(text=text):
            assert retry.parse_retry_after(text) == seconds


# The key --------------------------------------------------------------------------------


def plain(char: str) -> bool:
    """Tell a character that no notation changes."""
    return char.isalnum() or char in "-._~"


keys = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=8, max_size=40).map(
    str.strip
)
spellings = st.sampled_from(
    [
        str,
        quote,
        quote_plus,
        lambda key: quote(key, safe=""),
        lambda key: quote(key, safe="").lower() if key == key.lower() else quote(key),
        lambda key: json.dumps(key)[1:-1],
        lambda key: json.dumps(key)[1:-1].replace("/", r"\/"),
        html.escape,
        lambda key: "".join(c if plain(c) else f"&#{ord(c)};" for c in key),
        lambda key: "".join(c if plain(c) else f"\\u{ord(c):04X}" for c in key),
    ]
)


@given(key=keys.filter(lambda key: len(key) >= 8), spelled=spellings)
def test_a_key_is_hidden_however_it_is_spelled(key, spelled):
    """A key that a host repeats is taken out as URLs, JSON and HTML spell it."""
    text = f'{{"error": "no such key: {spelled(key)}"}}'.encode()
    assert ApiKey(key).hide(text) == b'{"error": "no such key: ' + HIDDEN + b'"}'


# Failures -------------------------------------------------------------------------------


def _fine(_request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={"tokens": []})


class Wrong(httpx.BaseTransport):
    """A transport that does what it is told."""

    def __init__(self, act: Callable[[httpx.Request], Any]) -> None:
        self.act = act
        self.asked = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        return self.act(request)


class AsyncWrong(httpx.AsyncBaseTransport):
    """The same, on a loop."""

    def __init__(self, act: Callable[[httpx.Request], Any]) -> None:
        self.act = act
        self.asked = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        return self.act(request)


class OneWay(httpx.SyncByteStream):
    """A body that only threads can read."""

    def __iter__(self) -> Iterator[bytes]:
        yield b"{}"


def raising(error: BaseException) -> Callable[[httpx.Request], object]:
    """Make an act that raises."""

    def act(_request: httpx.Request) -> object:
        raise error

    return act


def failure(transport: httpx.BaseTransport | httpx.AsyncBaseTransport) -> TransportError:
    retries = lk.RetryPolicy(attempts=2, total_s=5)
    with lk.connect("lab", transport=transport, retries=retries, timeout_s=2) as ledger:
        with pytest.raises(TransportError) as caught:
            lk.ft("a.near", ledger=ledger)
        assert caught.value.request == "the tokens of a.near"
        return caught.value


@pytest.mark.parametrize("kind", [Wrong, AsyncWrong])
@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda _: None, "AttributeError"),
        (lambda _: "text", "AttributeError"),
        (lambda _: httpx.Request("GET", "http://a"), "AttributeError"),
        (raising(KeyError("nothing recorded")), "KeyError: 'nothing recorded'"),
        (raising(AssertionError()), "AssertionError: AssertionError"),
        (raising(httpx.StreamClosed()), "StreamClosed"),
    ],
    ids=["nothing", "text", "request", "KeyError", "AssertionError", "StreamClosed"],
)
def test_a_broken_transport_is_blamed(kind, act, words):
    """A transport that hands back nonsense, or raises, is named with the line, and not retried."""
    transport = kind(act)
    error = failure(transport)
    assert (
        f"the request to localhost for the tokens of a.near failed: error in the transport: {words}"
        in str(error)
    )
    assert ".py, line " in str(error)
    assert str(error).endswith("Correct the transport passed to connect().")
    assert (error.retryable, transport.asked) == (False, 1)


@pytest.mark.parametrize("kind", [Wrong, AsyncWrong])
@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("no route"),
        httpx.ReadError("no route"),
        httpx.RemoteProtocolError("no route"),
        httpx.DecodingError("no route"),
        ConnectionResetError("no route"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failed_transport_is_asked_again(kind, error):
    """What a transport may fail with is a TransportError that says so, after all attempts."""
    transport = kind(raising(error))
    told = failure(transport)
    assert str(told).startswith(
        "the request to localhost for the tokens of a.near failed: no route."
    )
    assert (told.retryable, transport.asked) == (True, 2)


@pytest.mark.parametrize("kind", [Wrong, AsyncWrong])
@pytest.mark.parametrize(
    "error", [httpx.ReadTimeout("x"), httpx.PoolTimeout("x"), TimeoutError()], ids=repr
)
def test_a_timeout_says_how_long(kind, error):
    """A timeout names the seconds that passed for one attempt."""
    assert "for the tokens of a.near failed: no answer within 2 s" in str(
        failure(kind(raising(error)))
    )


def test_a_body_for_threads_cannot_be_read_on_a_loop():
    """A body of the wrong kind is the transport's failure too."""
    error = failure(AsyncWrong(lambda _: httpx.Response(200, stream=OneWay())))
    assert "error in the transport: RuntimeError: Attempted to call an async close" in str(error)


@pytest.mark.parametrize("kind", [Wrong, AsyncWrong])
@pytest.mark.parametrize(
    "stop",
    [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), BaseException()],
    ids=repr,
)
def test_a_transport_cannot_end_the_loop(kind, stop):
    """A transport that exits is a failure; the background loop goes on."""
    before = background_loop.current()
    words = f"error in the transport: {type(stop).__name__}"
    assert words in str(failure(kind(raising(stop))))
    with lk.connect("lab", transport=kind(raising(stop))) as ledger:
        _, errors = lk.ft(["a.near", "b.near"], ledger=ledger, on_error="collect", progress=False)
    assert errors["message"].str.contains(words).tolist() == [True, True]
    assert background_loop.current() is before
    with lk.connect("lab", transport=kind(_fine)) as ledger:
        assert lk.ft("a.near", ledger=ledger).empty


def test_a_transport_is_checked():
    """What is not a transport is refused by connect."""
    wrong: Any = httpx.Client
    with pytest.raises(InvalidRequestError, match=r"an httpx\.BaseTransport") as caught:
        lk.connect("lab", transport=wrong)
    assert caught.value.field == "transport"


def test_no_address_for_a_surface():
    """A ledger that knows only one surface names the option that is missing for the other."""
    with lk.connect("lab", api_url="http://127.0.0.1:9", in_flight=1) as ledger:
        with pytest.raises(InvalidRequestError, match=r"as rpc_url=") as caught:
            lk.gas_price(ledger=ledger)
        assert caught.value.field == "rpc_url"


# Retries --------------------------------------------------------------------------------


def test_pauses_grow_and_end(monkeypatch):
    """Pauses grow twofold up to 5 s, on top of what the host asks for, and end as told."""
    monkeypatch.setattr(retry, "_jitter", lambda longest_s: longest_s)
    error = TransportError("busy")
    backoff = retry.Backoff(8)
    assert [backoff.next_pause(error) for _ in range(8)] == [0.25, 0.5, 1, 2, 4, 5, 5, None]
    assert retry.Backoff(2).next_pause(TransportError("busy", retry_after=3.0)) == 3.25
    assert retry.Backoff(2, time.monotonic() + 0.2).next_pause(error) is None
    assert retry.Backoff(1).next_pause(error) is None


def test_a_rate_limited_call_is_repeated_in_a_stream():
    """A stream that is to wait for a rate limit repeats the call until it is answered."""
    answers = [httpx.Response(429), httpx.Response(429), httpx.Response(429)]

    def handle(request: httpx.Request) -> httpx.Response:
        return answers.pop() if answers else _fine(request)

    policy = lk.RetryPolicy(attempts=1)
    with lk.connect("lab", transport=httpx.MockTransport(handle), retries=policy) as ledger:
        [[value]] = ledger.stream([rest.ft("a.near")])
        assert isinstance(value, RateLimitedError)
        [[value]] = ledger.stream([rest.ft("a.near")], rate_limit_wait_s=10)
        assert getattr(value, "account_id", None) == "a.near"
    assert answers == []


# The loop -------------------------------------------------------------------------------


def test_a_ledger_is_not_asked_from_its_own_loop():
    """A transport that asks a ledger on the loop that serves it fails instead of hanging."""

    def act(_request: httpx.Request) -> httpx.Response:
        lk.status(ledger=ledger)
        return _fine(_request)

    with lk.connect("lab", transport=AsyncWrong(act)) as ledger:
        with pytest.raises(InvalidRequestError, match="from inside its own transport") as caught:
            lk.ft("a.near", ledger=ledger)
        assert caught.value.field == "ledger"


def test_what_is_left_is_cancelled_at_the_end():
    """At the end of a loop its work is cancelled, its thread is gone, and later work is dropped."""
    loop = background_loop.Loop()
    seen: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            seen.append("cancelled")

    async def parting() -> None:
        await asyncio.sleep(0.01)
        seen.append("parted")

    asyncio.run_coroutine_threadsafe(forever(), loop._loop)
    loop.run_later(parting())
    loop._end()
    assert seen == ["parted", "cancelled"]
    assert not loop.alive
    loop.run_later(parting())
    assert seen == ["parted", "cancelled"]


class Closing(httpx.AsyncBaseTransport):
    """A transport that remembers that it was closed."""

    closed = False

    async def aclose(self) -> None:
        self.closed = True


def test_a_forgotten_ledger_leaves_a_transport_alone():
    """A ledger that is dropped without being closed does not close what it was given."""
    given_one = Closing()
    ledger = lk.connect("lab", transport=given_one)
    del ledger
    lk.disconnect()
    assert given_one.closed  # closed by name
    given_one.closed = False
    ledger = lk.connect("lab", transport=given_one)
    lk.connect("lab", transport=httpx.MockTransport(_fine))
    del ledger
    gc.collect()
    assert not given_one.closed


# Logging --------------------------------------------------------------------------------


def test_a_retry_is_told_to_those_who_listen(caplog):
    """Asking again is logged, with the reason and the wait, under the name of the package."""
    answers = iter([httpx.Response(503, text="busy"), _fine(httpx.Request("GET", "http://a"))])
    with (
        caplog.at_level(logging.INFO, "ledgerkit"),
        lk.connect("lab", transport=httpx.MockTransport(lambda _: next(answers))) as ledger,
    ):
        lk.ft("a.near", ledger=ledger)
    (record,) = caplog.records
    assert record.name == "ledgerkit"
    assert record.getMessage().startswith("retrying in 0.")
    assert "HTTP 503 in response to the tokens of a.near: busy" in record.getMessage()


@given(st.text())
def test_a_subject_in_a_path(subject):
    """A subject is percent-encoded, also its slashes and colons."""
    assert rest.full(subject).path == f"/v1/account/{quote(subject, safe='')}/full"
