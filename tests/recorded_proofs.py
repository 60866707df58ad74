"""What recorded documents of the real networks commit to: headers, outcomes and their roots."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ledgerkit.api.models.commitments import Header, PathItem
from ledgerkit.api.models.transactions import WholeOutcome

SAMPLES = Path(__file__).resolve().parents[2] / "shared" / "wire" / "samples"
BLOCKS = SAMPLES / "blocks"
# One member of this document was edited by those who recorded it: `chunk_receipts_root` repeats
# `chunk_headers_root`. The document's own chunk header has the right one.
EDITED = "borealis_mainnet_34834053.json"


def documents() -> dict[str, Any]:
    paths = [*sorted(BLOCKS.glob("*.json")), SAMPLES / "rpc" / "block.json"]
    bodies = {path.name: json.loads(path.read_text("utf-8")) for path in paths if path.exists()}
    return {name: body.get("result", body) for name, body in bodies.items()}


def headers() -> dict[str, Header]:
    blocks = {name: body.get("block", body) for name, body in documents().items()}
    return {
        name: msgspec.convert(block["header"], Header)
        for name, block in blocks.items()
        if "header" in block
    }


def shards() -> Iterator[tuple[str, list[Any]]]:
    """List the recorded shards: a name, and the outcomes as they were recorded."""
    for name, body in documents().items():
        parts = body.get("shards", [body] if "receipt_execution_outcomes" in body else [])
        for part in parts:
            chunk = part.get("chunk") or {"transactions": []}
            outcomes = [t["outcome"]["execution_outcome"] for t in chunk["transactions"]]
            outcomes += [each["execution_outcome"] for each in part["receipt_execution_outcomes"]]
            if outcomes:
                yield f"{name} {part['shard_id']}", outcomes


def transaction_outcomes() -> Iterator[tuple[str, Any]]:
    for path in sorted([*SAMPLES.glob("tx/*.json"), *SAMPLES.glob("rpc/*.json")]):
        document = json.loads(path.read_text("utf-8"))
        result = document.get("result", document) if isinstance(document, dict) else {}
        if "transaction_outcome" in result:
            for execution in (result["transaction_outcome"], *result["receipts_outcome"]):
                yield path.name, execution


def outcome(recorded: Any) -> WholeOutcome:
    return msgspec.json.decode(json.dumps(recorded["outcome"]), type=WholeOutcome)


def path(recorded: Any) -> list[PathItem]:
    return msgspec.convert(recorded.get("proof") or [], list[PathItem])
