"""Which hosts and web pages a served ledger accepts."""

from __future__ import annotations

import pytest

from ledgerkit import errors
from ledgerkit.localnet.http_messages import HttpRequest, HttpResponse
from ledgerkit.localnet.web_access import WebAccess

HERE = "127.0.0.1"
ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - a server of all addresses is what is tested
OK = HttpResponse(200, (), b"{}")


def request(method: str = "POST", **headers: str) -> HttpRequest:
    """Build a request; it names the host localhost unless another one is passed."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return HttpRequest(method, "/", "", {"host": "localhost:3030"} | named, b"")


def status(access: WebAccess, **headers: str) -> int:
    """Return the status of a refusal, 200 without one."""
    response = access.intercept(request(**headers))
    return 200 if response is None else response.status


# Hosts ----------------------------------------------------------------------------------

OWN = ["localhost", "LOCALHOST:3030", "127.0.0.1", "127.0.0.1:8080", "127.9.9.9:1", "[::1]:3030"]
FOREIGN = [
    "",
    "evil.example",
    "evil.example:3030",
    "localhost.evil.example",
    "localhost.",
    "127.0.0.1.evil.example:3030",
    "localhost@evil.example",
    "evil.example/localhost",
    "localhost, evil.example",
    "192.168.1.7:3030",
    "0.0.0.0:3030",
    "[::ffff:192.168.1.7]:3030",
    "[::1",
    "localhost:port",
    "locałhost",
]


@pytest.mark.parametrize("host", OWN)
def test_this_machine_by_any_of_its_names(host: str) -> None:
    """Loopback names are accepted on any port: a port may be forwarded."""
    assert status(WebAccess(HERE), host=host) == 200


def test_a_name_that_was_made_to_resolve_to_this_machine(subtests: pytest.Subtests) -> None:
    """A request for any other host is refused (DNS rebinding)."""
    for host in FOREIGN:
        with subtests.test(host=host):
            assert status(WebAccess(HERE), host=host) == 403


def test_a_request_without_a_host() -> None:
    """A request without a host is refused: HTTP/1.0 allows it, but no browser sends it."""
    assert WebAccess(HERE).intercept(HttpRequest("GET", "/", "", {}, b"")) is not None


def test_a_server_for_other_machines() -> None:
    """A server accepts the name or address it listens on; on 0.0.0.0 any address, but no name."""
    assert status(WebAccess("192.168.1.7"), host="192.168.1.7:3030") == 200
    assert status(WebAccess("192.168.1.7"), host="192.168.1.8:3030") == 403
    assert status(WebAccess("Ledger.example"), host="ledger.example") == 200
    for everywhere in (ALL_ADDRESSES, "::"):
        access = WebAccess(everywhere)
        assert status(access, host="192.168.1.7:3030") == 200
        assert status(access, host="[fe80::1]:3030") == 200
        assert status(access, host="evil.example:3030") == 403


def test_a_name_is_added_by_an_option() -> None:
    """The name of a proxy is accepted when it is listed."""
    access = WebAccess(HERE, hosts=["Hub.example", "[fe80::1]"])
    assert [status(access, host=h) for h in ("hub.example:443", "[fe80::1]")] == [200, 200]
    assert status(access, host="other.example") == 403


# Origins --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:5173", "https://localhost", "http://127.0.0.1:8888", "http://[::1]:1234"],
)
def test_a_page_of_this_machine(origin: str) -> None:
    """Requests of a page on localhost pass, and the page may read the responses."""
    access, sent = WebAccess(HERE), request(origin=origin)
    assert access.intercept(sent) is None
    headers = dict(access.share(sent, OK).headers)
    assert headers == {
        "vary": "origin",
        "access-control-allow-origin": origin,
        "access-control-expose-headers": "retry-after",
    }


def test_a_page_of_another_site(subtests: pytest.Subtests) -> None:
    """Requests of other pages are refused: they neither send transactions nor read responses."""
    cases = [
        "",
        "null",
        "https://evil.example",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example/localhost",
        "http://localhost:1:2",
        "chrome-extension://localhost",
        "file://",
        "http://192.168.1.7",
        "http://localhost http://evil.example",
    ]
    for origin in cases:
        with subtests.test(origin=origin):
            access, sent = WebAccess(HERE), request(origin=origin)
            refusal = access.intercept(sent)
            assert refusal is not None
            assert refusal.status == 403
            assert refusal.body.decode() == (
                f"this ledger refuses requests with the origin {origin!r}; "
                "--allow-origin allows another one"
            )
            assert dict(access.share(sent, OK).headers) == {"vary": "origin"}


def test_origins_are_added_by_an_option() -> None:
    """Exactly the listed origins are accepted; scheme and port are a part of an origin."""
    access = WebAccess(HERE, origins=["https://App.example", "null", "chrome-extension://abc"])
    for origin in ("https://app.example", "null", "chrome-extension://abc"):
        assert status(access, origin=origin) == 200
    for origin in ("http://app.example", "https://app.example:444", "https://x.app.example"):
        assert status(access, origin=origin) == 403


def test_any_origin() -> None:
    """With "*" each origin is accepted and named in its response, never with credentials."""
    access, sent = WebAccess(HERE, origins=["*"]), request(origin="https://any.example")
    assert access.intercept(sent) is None
    headers = dict(access.share(sent, OK).headers)
    assert headers["access-control-allow-origin"] == "https://any.example"
    assert "access-control-allow-credentials" not in headers


def test_a_program_sends_no_origin() -> None:
    """A request without an origin passes, and its response has no headers for browsers."""
    access, sent = WebAccess(HERE), request()
    assert access.intercept(sent) is None
    assert access.share(sent, OK).headers == (("vary", "origin"),)


@pytest.mark.parametrize("origin", ["app.example", "https://app.example/", "https://", " ", ""])
def test_a_malformed_origin_is_refused(origin: str) -> None:
    """An origin that no browser would send is an error at the start, not a closed door later."""
    with pytest.raises(errors.InvalidRequestError, match=r"allow_origins .* is not valid"):
        WebAccess(HERE, origins=[origin])


@pytest.mark.parametrize("host", ["", "hub.example:443", "http://hub.example", "a b", "*"])
def test_a_malformed_host_is_refused(host: str) -> None:
    """A host with a scheme or a port is an error of the option."""
    with pytest.raises(errors.InvalidRequestError, match=r"allow_hosts .* is not valid"):
        WebAccess(HERE, hosts=[host])


# Preflights -----------------------------------------------------------------------------


@pytest.mark.parametrize("requested", ["authorization,content-type", "x-own-header"])
def test_a_preflight(requested: str) -> None:
    """A browser learns that it may send the request, before it sends the key."""
    sent = request("OPTIONS", origin="http://localhost", access_control_request_headers=requested)
    access = WebAccess(HERE)
    response = access.intercept(sent)
    assert response is not None
    assert (response.status, response.body) == (200, b"")
    headers = dict(access.share(sent, response).headers)
    assert headers["access-control-allow-methods"] == "GET, HEAD, POST, OPTIONS"
    assert headers["access-control-allow-headers"] == requested
    assert headers["access-control-allow-private-network"] == "true"
    assert headers["access-control-allow-origin"] == "http://localhost"


def test_a_preflight_of_another_site() -> None:
    """A preflight is refused like the request it announces, also for a private network."""
    sent = request(
        "OPTIONS", origin="https://evil.example", access_control_request_private_network="true"
    )
    response = WebAccess(HERE).intercept(sent)
    assert response is not None
    assert response.status == 403
    assert [name for name, _ in response.headers if name.startswith("access-control")] == []
