"""The door of the embedded ledger: who answers which path, who may ask, and what goes wrong."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import rest_api, rpc_api
from ledgerkit.localnet.faults import Fault, Faults, parse_fault
from ledgerkit.localnet.http_gateway import Gateway
from ledgerkit.localnet.http_messages import HttpRequest, HttpResponse
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import SecretKey, SignedTransaction, Transaction, Transfer
from ledgerkit.transport.background_loop import drive
from tests.unit.localnet.clocks import InstantClock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledgerkit.localnet.world import World

KEY = "PLANTED-key-0123456789"
JSON = {"content-type": "application/json"}
PLAIN = "text/plain; charset=utf-8"
CALL = b'{"jsonrpc":"2.0","id":"seven","method":"any","params":[]}'


@pytest.fixture
def world() -> World:
    """A chain with hardly anything on it."""
    return open_world("empty")


@pytest.fixture
def locked() -> World:
    """A chain that demands a key."""
    return open_world("empty", api_keys=("another-key", KEY))


def take(
    door: Gateway,
    method: str,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    query: str = "",
) -> tuple[HttpResponse, list[float | None]]:
    """Give one answer, with a block whenever one is awaited; say what it waited for."""
    clock = InstantClock(door.world)
    answer = door.answer(HttpRequest(method, path, query, headers or {}, body), clock)
    return drive(answer), clock.waits


def ask(door: Gateway, method: str, path: str, *args: Any, **more: Any) -> HttpResponse:
    return take(door, method, path, *args, **more)[0]


def call(door: Gateway, body: bytes = CALL, **headers: str) -> HttpResponse:
    return ask(door, "POST", "/", body, JSON | {k.replace("_", "-"): v for k, v in headers.items()})


def fails(monkeypatch: pytest.MonkeyPatch, message: str) -> None:
    """Let the JSON-RPC surface raise."""

    async def respond(*_: object) -> HttpResponse:
        raise RuntimeError(message)

    monkeypatch.setattr(rpc_api, "respond", respond)


def transfer(world: World) -> SignedTransaction:
    key = SecretKey.from_text(world.keys()["near"])
    tx = Transaction("near", key.public_key, 1, "near", world.chain.head.hash, [Transfer(1)])
    return tx.sign(key)


# Who answers ----------------------------------------------------------------------------


def test_each_path_has_its_methods(subtests: pytest.Subtests, world: World) -> None:
    """A path that nobody has is 404, a method that a path does not take 405."""
    cases = [
        ("GET", "/api/health", 200),
        ("GET", "/api/v1/account/near/full", 200),
        ("GET", "/v1/account/near/full", 200),
        ("GET", "/v0/account/near/ft", 200),
        ("GET", "/api/v1/account/near%2Enear/ft", 200),
        ("GET", "/api/api/status", 404),
        ("HEAD", "/api/status", 200),
        ("GET", "/status", 200),
        ("GET", "/health", 200),
        ("GET", "/api", 404),
        ("GET", "/api/v3/account/near/full", 404),
        ("GET", "/apis", 404),
        ("GET", "/debug", 404),
        ("GET", "/v2/account/near/full", 404),
        ("POST", "/v9", 404),
        ("GET", "/", 405),
        ("PUT", "/", 405),
        ("POST", "/api/health", 405),
        ("DELETE", "/status", 405),
        ("GET", "/transactions/v0/account", 405),
        ("PUT", "/kv/v0/multi", 405),
        ("POST", "/blocks/health", 405),
        ("POST", "/transactions", 404),
        ("POST", "/transactionsv0/account", 404),
    ]
    for method, path, status in cases:
        with subtests.test(method=method, path=path):
            assert ask(Gateway(world), method, path).status == status


def test_a_refused_method_names_the_others(world: World) -> None:
    """What is allowed stands in a header."""
    assert dict(ask(Gateway(world), "GET", "/").headers)["allow"] == "POST, OPTIONS"
    assert dict(ask(Gateway(world), "PUT", "/status").headers)["allow"] == "GET, HEAD, OPTIONS"


def test_a_service_refuses_a_body_that_is_not_json(world: World) -> None:
    """The framework of the services checks the type and the size of a body (actix-web's Json)."""
    path, large = "/transactions/v0/blocks", b" " * (2 * 2**20 + 1)
    plain = ask(Gateway(world), "POST", path, b"{}", {"content-type": "text/plain"})
    assert (plain.status, plain.body) == (400, b"Content type error")
    assert ask(Gateway(world), "POST", path, large, JSON).status == 413


def test_a_service_has_the_keys_and_the_faults_of_the_others(locked: World) -> None:
    """A service needs a key in the header or the query, and its faults are injected."""
    path, query = "/transactions/v0/none", f"apiKey={KEY}"
    gateway = Gateway(locked)
    assert ask(gateway, "POST", path, b"{}", JSON).status == 401
    assert ask(gateway, "POST", path, b"{}", JSON, query=query).status == 404
    bearer = JSON | {"authorization": f"Bearer {KEY}"}
    assert ask(gateway, "POST", path, b"{}", bearer).status == 404
    gateway.faults.add("status=429; retry-after=3; times=1")
    response = ask(gateway, "POST", path, b"{}", bearer)
    assert response.status == 429
    assert dict(response.headers)["retry-after"] == "3"


# Bodies ---------------------------------------------------------------------------------


def test_json_by_any_name(subtests: pytest.Subtests, world: World) -> None:
    """Every type that is JSON is taken as JSON, whose method is unknown; no other is read."""
    named = ("application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json")
    others = ("", "application/jsonp", "json", "application/x")
    for kind in (*named, "application/json;charset=utf-8", *others):
        with subtests.test(kind=kind):
            response = call(Gateway(world), content_type=kind)
            assert (b"METHOD_NOT_FOUND" in response.body) is (kind not in others)
            assert response.status == (415 if kind in others else 400)


def test_the_largest_body(world: World) -> None:
    """10 MiB are read, one byte more is not."""
    assert call(Gateway(world), bytes(10_485_760)).body.startswith(b"Failed to parse")
    answer = call(Gateway(world), bytes(10_485_761))
    assert answer.status == 413
    assert answer.body == b"Failed to buffer the request body: length limit exceeded"


# Waiting, and what fails inside -----------------------------------------------------------


class OtherThreadsClock(InstantClock):
    """A clock that lets another thread produce each block."""

    async def next_block(self) -> None:
        self.waits.append(None)
        other = threading.Thread(target=self.world.advance, daemon=True)
        other.start()
        other.join(30)
        assert not other.is_alive()


def rpc_call(method: str, params: Any) -> tuple[str, str, bytes]:
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return "POST", "/", json.dumps(call).encode()


def test_waiting_leaves_the_world_free(world: World) -> None:
    """Whatever waits for a block holds no lock meanwhile: another thread can produce it."""
    head = world.chain.head
    sending = {"signed_tx_base64": transfer(world).to_base64(), "wait_until": "INCLUDED"}
    for method, path, body in (
        rpc_call("send_tx", sending),  # what is sent is not final at the reads that follow
        rpc_call("block", {"finality": "final"}),
        ("GET", "/v1/account/near/ft", b""),
        ("GET", f"/blocks/v0/block/{head.height + 4}", b""),
    ):
        clock = OtherThreadsClock(world)
        request = HttpRequest(method, path, "", JSON, body)
        assert drive(Gateway(world).answer(request, clock)).status == 200
        assert clock.waits


@pytest.mark.parametrize(
    ("body", "told"), [(CALL, "seven"), (b'{"id":7}', 7), (b"{", None), (b"[1]", None)]
)
def test_a_mistake_inside_is_an_internal_error(
    world: World,
    body: bytes,
    told: object,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An exception is logged and answered in the node's words; the id comes back."""
    fails(monkeypatch, "a secret of the inside")
    answer = call(Gateway(world), body)
    found = json.loads(answer.body)

    assert (answer.status, found["id"]) == (500, told)
    assert found["error"]["name"] == "INTERNAL_ERROR"
    assert found["error"]["cause"]["name"] == "INTERNAL_ERROR"
    assert found["error"]["code"] == -32000
    assert b"a secret" not in answer.body
    assert [record.name for record in caplog.records] == ["ledgerkit.localnet"]
    assert not world.lock._is_owned()  # type: ignore[attr-defined]  # nobody else can tell


def test_a_mistake_inside_a_page(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The REST API owns up in its own form: a JSON string."""
    monkeypatch.setattr(rest_api, "respond", lambda *_: 1 // 0)
    answer = ask(Gateway(world), "GET", "/v1/account/near/ft")
    assert (answer.status, answer.body) == (500, b'"Internal server error"')
    assert len(caplog.records) == 1


def test_the_log_of_a_mistake_is_escaped(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What a client has sent cannot control the server's terminal through a traceback."""
    fails(monkeypatch, "\x1b]0;title\x07 \u202e")
    call(Gateway(world), b'{"method":"block","id":1}')
    assert r"RuntimeError: \x1b]0;title\x07 \u202e" in caplog.text
    assert "\x1b" not in caplog.text
    assert "\nTraceback" in caplog.text


# Keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"authorization": f"Bearer {KEY}"}, ""),
        ({"authorization": f"bearer  {KEY} "}, ""),
        ({"authorization": "Bearer another-key"}, ""),
        ({}, f"apiKey={KEY}"),
        ({}, "x=1&apiKey=PLANTED%2Dkey%2D0123456789"),
        ({"authorization": "Bearer wrong"}, f"apiKey={KEY}"),
    ],
)
def test_a_demanded_key_is_taken(locked: World, headers: dict[str, str], query: str) -> None:
    """Each of the keys opens both surfaces, from the header and from the query."""
    door = Gateway(locked)
    assert ask(door, "GET", "/api/health", b"", headers, query=query).status == 200
    body = ask(door, "POST", "/", CALL, headers | JSON, query=query).body
    assert b"METHOD_NOT_FOUND" in body


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({}, ""),
        ({"authorization": "Bearer wrong"}, ""),
        ({"authorization": "Bearer "}, "apiKey="),
        ({"authorization": f"Basic {KEY}"}, ""),
        ({"authorization": KEY}, ""),
        ({}, f"apikey={KEY}"),
        ({}, f"apiKey={KEY}x"),
        ({}, "apiKey=schl%C3%BCssel"),
    ],
)
def test_a_wrong_key_is_refused(locked: World, headers: dict[str, str], query: str) -> None:
    """Without a right key each surface refuses in its form, and repeats no key."""
    door = Gateway(locked)
    text = "Unauthorized: this ledger requires an API key, and the request has no valid one"
    page = ask(door, "GET", "/api/v1/account/near/ft", b"", headers, query=query)
    assert (page.status, json.loads(page.body)) == (401, text)
    answer = ask(door, "POST", "/", CALL, headers | JSON, query=query)
    assert (answer.status, answer.body) == (401, text.encode())
    assert dict(answer.headers)["content-type"] == PLAIN
    assert dict(answer.headers)["www-authenticate"] == "Bearer"
    assert ask(door, "GET", "/status", b"", headers, query=query).status == 401
    assert ask(door, "GET", "/metrics", b"", headers, query=query).status == 403


def test_a_key_that_nobody_asked_for(world: World) -> None:
    """Clients send keys of their own; a world that demands none looks at none."""
    for headers, query in (({"authorization": "Bearer py-near"}, ""), ({}, "apiKey=anything")):
        assert ask(Gateway(world), "GET", "/api/health", b"", headers, query=query).status == 200


def test_a_key_is_shown_nowhere(
    locked: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a repr nor a log of what failed has the key."""
    request = HttpRequest(
        "POST", "/", f"apiKey={KEY}", {"authorization": f"Bearer {KEY}"} | JSON, CALL
    )
    assert repr(request) == "<HttpRequest POST />"
    fails(monkeypatch, "inside")
    door = Gateway(locked)
    answer = drive(door.answer(request, InstantClock(locked)))
    assert KEY not in f"{answer} {caplog.text} {door.world!r} {locked.settings!r}"


# Faults ---------------------------------------------------------------------------------


def test_a_fault_is_read(subtests: pytest.Subtests) -> None:
    """Every word is told with its value."""
    cases = [
        ("latency=0.2", Fault(latency=0.2)),
        ("status=429; retry-after=1", Fault(status=429, retry_after="1")),
        (" status = 503 ;times=2", Fault(status=503, times=2)),
        ("html", Fault(html=True)),
        ("drop", Fault(drop="before")),
        ("drop=after", Fault(drop="after")),
        ("truncate=0", Fault(truncate=0)),
        ("drop-transactions=2; skip-blocks=3", Fault(drop_transactions=2, skip_blocks=3)),
        ("hold-finality=false", Fault(hold_finality=False)),
        (
            "status=429;retry-after=Wed, 21 Oct 2026 07:28:00 GMT",
            Fault(status=429, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"),
        ),
    ]
    for text, fault in cases:
        with subtests.test(text=text):
            assert parse_fault(text) == fault


def test_a_malformed_fault_is_refused(subtests: pytest.Subtests, world: World) -> None:
    """The sentence names what is wrong, to whoever made the gateway and over HTTP."""
    cases = [
        ("", "unknown field"),
        ("statu=429", "statu"),
        ("status", "$.status"),
        ("status=200", ">= 400"),
        ("status=600", "<= 599"),
        ("latency=-1", ">= 0"),
        ("latency=61", "<= 60"),
        ("latency=nan", "$.latency"),
        ("latency=inf", "$.latency"),
        ("truncate=1.5", "$.truncate"),
        ("times=0", ">= 1"),
        ("drop=twice", "twice"),
        ("retry-after=1\r\nx: y", "$.retry-after"),
        ("status=500; status=429", "only once"),
    ]
    for text, words in cases:
        with subtests.test(text=text):
            with pytest.raises(InvalidRequestError) as caught:
                Faults(text)
            assert words in str(caught.value)
            assert caught.value.field == "fault"
            answer = ask(Gateway(world), "GET", "/api/health", b"", {"x-ledgerkit-fault": text})
            assert (answer.status, words in answer.body.decode()) == (400, True)


def test_faults_come_one_after_the_other(world: World) -> None:
    """Each is used up before the next; one without a number stays."""
    door = Gateway(world, Faults("status=500; times=2", "status=429; times=1"))
    got = [ask(door, "GET", "/api/health").status for _ in range(4)]
    door.faults.add("status=503")
    got += [ask(door, "GET", "/api/health").status for _ in range(3)]
    door.faults.clear()
    got.append(ask(door, "GET", "/api/health").status)
    assert got == [500, 500, 429, 200, 503, 503, 503, 200]


def test_a_header_fails_its_own_request(world: World) -> None:
    """The header's fault comes before those of the queue, and uses none of them up."""
    door = Gateway(world, Faults("status=500; times=1"))

    def status(text: str | None) -> int:
        headers = {} if text is None else {"x-ledgerkit-fault": text}
        return ask(door, "GET", "/api/health", b"", headers).status

    assert [status("status=503") for _ in range(2)] == [503, 503]
    assert [status(None) for _ in range(2)] == [500, 200]


def test_latency_is_slept_before_anything_happens(world: World) -> None:
    """The seconds are for the driver to wait; the answer is the right one."""
    answer, waits = take(Gateway(world, Faults("latency=0.25")), "GET", "/api/health")
    assert (waits, answer.body) == ([0.25], b'{"status":"ok"}')


LIMITED = b'{"jsonrpc":"2.0","error":{"code":-429,"message":"Too Many Requests"},"id":"seven"}'
PAGE = (
    b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head>"
    b"<body><h1>502 Bad Gateway</h1></body></html>\n"
)


@pytest.mark.parametrize(
    ("text", "method", "wanted"),
    [
        ("status=429", "GET", (429, "application/json", b'"Too Many Requests"')),
        ("status=500", "GET", (500, "application/json", b'"Internal server error"')),
        ("status=503", "GET", (503, PLAIN, b"Service Unavailable")),
        ("status=599", "GET", (599, PLAIN, b"Failure")),
        ("status=429", "POST", (429, "application/json", LIMITED)),
        ("status=401", "GET", (401, "application/json", b'"Unauthorized"')),
        ("status=403", "POST", (403, PLAIN, b"Forbidden")),
        ("status=504", "POST", (504, PLAIN, b"Gateway Timeout")),
        ("html", "POST", (502, "text/html; charset=utf-8", PAGE)),
    ],
)
def test_what_stands_in_an_answers_place(
    world: World, text: str, method: str, wanted: tuple[int, str, bytes]
) -> None:
    """Each surface fails in its own form."""
    path = "/" if method == "POST" else "/api/health"
    answer = ask(Gateway(world, Faults(text)), method, path, CALL, JSON)
    assert (answer.status, dict(answer.headers)["content-type"], answer.body) == wanted


def test_a_pause_that_is_asked_for(world: World) -> None:
    """`Retry-After` comes with any failing status, and only when told."""
    for text, pause in (
        ("status=429; retry-after=7", "7"),
        ("status=500; retry-after=2", "2"),
        ("html; retry-after=3", "3"),
        ("status=429", None),
    ):
        answer = ask(Gateway(world, Faults(text)), "POST", "/", CALL, JSON)
        assert dict(answer.headers).get("retry-after") == pause


def test_an_answer_lost_before_or_after(world: World) -> None:
    """Lost before, nothing was done; lost after, it was, and the caller can't know."""
    signed = transfer(world)
    sending = rpc_call("broadcast_tx_async", [signed.to_base64()])
    assert ask(Gateway(world, Faults("drop")), *sending, JSON).dropped
    assert not world.is_pending(signed.hash)
    assert ask(Gateway(world, Faults("drop=after")), *sending, JSON).dropped
    assert world.is_pending(signed.hash)


def test_the_chain_stumbles_when_told(world: World) -> None:
    """Heights are left out and finality is held before the request is answered."""
    door = Gateway(world, Faults("skip-blocks=3; times=1", "hold-finality=true; times=1"))
    start = world.chain.head.height
    ask(door, "GET", "/api/health")
    assert world.chain.head.height == start + 4
    assert world.chain.by_height(start + 3) is None
    world.advance(3)
    final = world.chain.final.height
    ask(door, "GET", "/api/health")
    world.advance(5)
    assert world.chain.final.height == final
    ask(door, "GET", "/api/health", b"", {"x-ledgerkit-fault": "hold-finality=false"})
    world.advance(5)
    assert world.chain.final.height > final


def test_transactions_are_dropped_when_told(world: World) -> None:
    """So many are accepted and never seen again."""
    signed = transfer(world)
    sending = rpc_call("broadcast_tx_async", [signed.to_base64()])
    gateway = Gateway(world, Faults("drop-transactions=1; times=1"))
    for is_pending in (False, True):
        assert ask(gateway, *sending, JSON).status == 200
        assert world.is_pending(signed.hash) is is_pending
