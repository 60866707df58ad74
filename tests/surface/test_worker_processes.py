"""What verbs answer in worker processes, which do not have the ledger of their parent."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit.errors import InvalidRequestError

if TYPE_CHECKING:
    from pathlib import Path

METHODS = [
    name for name in ("spawn", "forkserver") if name in multiprocessing.get_all_start_methods()
]


def network_of(account_id: str) -> Any:
    """Read an account in a worker, as a user's own function does."""
    return lk.accounts(account_id).attrs["network"]


def ask_worker(method: str, **options: Any) -> Any:
    """Return what a new worker process answers."""
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, mp_context=context, **options) as pool:
        return pool.submit(network_of, "alice.near").result(120)


@pytest.mark.usefixtures("no_session_left")
@pytest.mark.parametrize("method", METHODS)
def test_a_worker_without_a_ledger_is_refused(method: str) -> None:
    """A worker that did not connect never answers from the embedded ledger: it names connect()."""
    lk.connect("testnet")
    with pytest.raises(InvalidRequestError, match=r"connect\(\) was not called") as caught:
        ask_worker(method)
    assert "initializer=ledgerkit.connect" in caught.value.remedy


@pytest.mark.usefixtures("no_session_left")
def test_a_worker_that_connects_answers() -> None:
    """The way that the error names works: each worker connects when it starts."""
    assert ask_worker("spawn", initializer=lk.connect, initargs=("local",)) == "local"


FRAMES = (
    *("receipts", "edges", "actions", "logs"),
    *("events", "transfers", "balance_changes", "gas"),
)


@pytest.mark.usefixtures("no_session_left")
def test_a_worker_returns_traces() -> None:
    """A trace that a pool returns is the same, with the metadata that was read for it."""
    lk.connect("local")
    traces = lk.trace_block(180000032)
    explained = {tx_hash: trace.explain() for tx_hash, trace in traces.items()}
    assert any(" GOLD " in text for text in explained.values())
    lk.disconnect()
    for copied in (pickle.loads(pickle.dumps(traces)), copy.deepcopy(traces)):  # noqa: S301 - our own
        assert {tx_hash: trace.explain() for tx_hash, trace in copied.items()} == explained
        for name in FRAMES:
            assert getattr(copied, name).equals(getattr(traces, name)), name
            for tx_hash, trace in copied.items():
                assert getattr(trace, name).equals(getattr(traces[tx_hash], name)), name


@pytest.mark.usefixtures("no_session_left")
def test_a_copied_trace_has_no_ledger(tmp_path: Path) -> None:
    """A copy sends no request: metadata that was not read is unknown, and so are paths."""
    ledger = lk.connect("local")
    trace = lk.trace("AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY", "ivan.near")
    copied = copy.copy(trace)
    assert copied.headline() == trace.headline(metadata=False) != trace.headline()
    with pytest.raises(InvalidRequestError, match="is of a file or a copy"):
        copied.verify()
    assert lk.verify(copied, ledger=ledger).is_complete
    saved = [each.save(tmp_path / "trace.json").read_bytes() for each in (copied, trace)]
    assert saved[0] == saved[1]
