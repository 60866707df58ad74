"""One call of each service beside JSON-RPC and the REST API, to check that it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.api import calls, matching
from ledgerkit.api.models import rest, services

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call

# An account with transfers on mainnet, the only network that has the Transfers API.
_ACCOUNT_ID = "root.near"
# An entry of mainnet that the documentation of FastNEAR shows; testnet answers with an empty list.
_ENTRY = {
    "current_account_id": "contextual.near",
    "predecessor_id": "jemartel.near",
    "key": "account_id",
}


def node_status(surface: calls.Surface) -> Call[services.NodeStatus]:
    """Build the call for the status of a node, regular or archival."""
    return calls.rpc("status", [], services.NodeStatus, request="the status", surface=surface)


def last_block() -> Call[services.BlockRows]:
    """Build the Transactions API's call for the newest block."""
    body = {"limit": 1, "desc": True}
    return calls.post(
        "transactions", "/v0/blocks", body, services.BlockRows, request="the newest block"
    )


def last_transfer() -> Call[services.Transfers]:
    """Build the Transfers API's call for the newest transfer to an account."""
    # Some versions of the service require `direction`, others ignore it.
    body = {"account_id": _ACCOUNT_ID, "direction": "receiver", "limit": 1, "desc": True}
    request = f"the newest transfer to {_ACCOUNT_ID}"
    expected: matching.Expected = {"transfers.account_id": _ACCOUNT_ID}
    model = services.Transfers
    return calls.post("transfers", "/v0/transfers", body, model, request=request, expected=expected)


def block_headers(height: int) -> Call[services.BlockDocument | None]:
    """Build the block documents' call for a block without its chunks; None is a skipped height."""
    path, model = f"/v0/block/{height}/headers", services.BlockDocument | None
    expected: matching.Expected = {"header.height": height}
    request = f"block {height}"
    return calls.get(path, model, request=request, expected=expected, surface="blocks")


def blocks_health() -> Call[rest.Health]:
    """Build the call for the health of the block documents."""
    return calls.get("/health", rest.Health, request="the health", surface="blocks")


def key_value() -> Call[services.KeyValues]:
    """Build the key-value data's call for one key."""
    path, model = "/v0/latest/" + "/".join(_ENTRY.values()), services.KeyValues
    expected: matching.Expected = {f"entries.{name}": text for name, text in _ENTRY.items()}
    return calls.get(path, model, request="one entry", expected=expected, surface="kv")
