"""What verbs answer in worker processes, which do not have the ledger of their parent."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import ledgerkit as lk
from ledgerkit.errors import InvalidRequestError

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
