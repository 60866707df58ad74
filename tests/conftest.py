"""Settings that every test starts with: no LEDGERKIT_ variables, no network outside its folder."""

import gc
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import ledgerkit as lk
from ledgerkit.transport import embedded
from tests import world_copies

TESTS = Path(__file__).resolve().parent
LOOPBACK = ("127.", "::1", "localhost")
LIVE = os.environ.get("LEDGERKIT_LIVE") == "1"

# A slow or busy machine is no failure. CI repeats the same examples in each run; elsewhere each
# run has others, so half of Hypothesis's usual number find the same in time.
settings.register_profile(
    "ledgerkit",
    max_examples=50,
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ledgerkit")


def pytest_configure() -> None:
    """
    Restore Ctrl-C where the tests were started with SIGINT ignored.

    A shell script's `nohup make test &` does so. Python then installs no handler, and every
    child process inherits the ignored signal; a handler of our own is reset for children.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of public networks unless LEDGERKIT_LIVE is 1; begin with those of Dask."""
    # Processes without work take tests from the end of another's list: with the module in the
    # middle, two of them start its cluster.
    items.sort(key=lambda item: "cluster" not in getattr(item, "fixturenames", ()))
    for item in items:
        if item.get_closest_marker("live") and not LIVE:
            item.add_marker(pytest.mark.skip(reason="set LEDGERKIT_LIVE=1 to run it"))


def pytest_collection_finish() -> None:
    """Collect less garbage: not what the modules hold, and seldom in full, for an eighth of CPU."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)  # a full collection takes a tenth of a second


def allowed(item: pytest.Item, address: Any) -> bool:
    """Return True if a test may connect: unit tests nowhere, the others to this machine."""
    if isinstance(address, str | bytes):  # a Unix socket, which never leaves the machine
        return True
    if TESTS / "unit" in item.path.parents:
        return False
    return str(address[0]).startswith(LOOPBACK)


def guarded(connect: Callable[..., Any], item: pytest.Item) -> Callable[..., Any]:
    """Wrap a socket's `connect` so that a forbidden address fails the test by name."""

    def guard(self: socket.socket, address: Any) -> Any:
        if not allowed(item, address):
            pytest.fail(f"{item.nodeid} may not connect to {address!r}", pytrace=False)
        return connect(self, address)

    return guard


@pytest.fixture(scope="session", autouse=True)
def _copied_worlds() -> Iterator[None]:
    """Open copies of the worlds by name, which are built once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "open_world", world_copies.open_copy)
        yield


@pytest.fixture
def no_session_left() -> Iterator[None]:
    """Leave neither a default ledger nor a signer of the session to the next test."""
    yield
    lk.use_signer(None)
    lk.disconnect()


@pytest.fixture(autouse=True)
def _own_settings_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the LEDGERKIT_ variables of the environment the tests run in."""
    for name in [n for n in os.environ if n.startswith("LEDGERKIT_")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _network_as_allowed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections that the test's folder does not allow."""
    if request.node.get_closest_marker("live"):
        return
    for name in ("connect", "connect_ex"):
        original = getattr(socket.socket, name)
        monkeypatch.setattr(socket.socket, name, guarded(original, request.node))
