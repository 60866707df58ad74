"""Vectors made by other implementations, where they lie beside the checkout."""

import json
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[4] / "shared"


def load(name):
    """Read a JSON file of the shared folder; None where there is none."""
    path = SHARED / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def sent():
    """Return (name, base64) of each signed transaction among the recorded requests."""
    recorded = load("wire/samples/tx/signed_transactions.json") or []
    found = [(one["tx_hash"], one["signed_tx_base64"]) for one in recorded]
    for path in sorted((SHARED / "wire/samples/rpc").glob("*.request.json")):
        params = json.loads(path.read_text(encoding="utf-8"))["params"]
        encoded = params["signed_tx_base64"] if isinstance(params, dict) else params[0]
        found.append((path.name, encoded))
    return found


def pytest_generate_tests(metafunc):
    """Give each case of the vectors to a test that asks for one; none, and it is skipped."""
    if "vector" in metafunc.fixturenames:
        known = load("vectors/transactions.json") or {"transactions": []}
        cases = known["transactions"]
        metafunc.parametrize("vector", cases, ids=[case["name"] for case in cases])
    if "recorded" in metafunc.fixturenames:
        metafunc.parametrize("recorded", sent(), ids=[name for name, _ in sent()])


@pytest.fixture(scope="session")
def vectors():
    """Return the file of vectors, or skip."""
    known = load("vectors/transactions.json")
    if known is None:
        pytest.skip("the vectors are not beside this checkout")
    return known


@pytest.fixture(scope="session")
def recordings():
    """Return the recorded transactions with their fields, or skip."""
    known = load("wire/samples/tx/signed_transactions.json")
    if known is None:
        pytest.skip("the recordings are not beside this checkout")
    return known
