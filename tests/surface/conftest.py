"""The fixture by which tests send requests on each way to a host."""

from __future__ import annotations

from typing import Any

import pytest

from ledgerkit.transport import transports
from tests.loopback import WAYS, way_options


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the options of `connect` that choose each way to a host."""
    if request.param == "lanes":  # the ledger's own, which it opens where aiohttp is missing
        monkeypatch.setattr(transports, "find_spec", lambda _name: None)
        return way_options("bulk")
    return way_options(request.param)
