"""
Any number of busy blocks: copies of recorded block 151,768,255 of mainnet with own ids and heights.

The receipts that a block executes were created in earlier blocks, which were not recorded. So the
copies are linked: each of the 58 transactions of a copy creates one receipt that the next copy
executes, those create the second generation of receipts, which the copy after that executes, and
those the third. Every transaction is complete after three blocks, and a copy has as many
transactions, receipts, actions, logs and changes of state as the recorded block. Receipts that were
created and are executed by no copy are left out of the lists of created receipts.
"""

import gzip
import json
import re
from pathlib import Path
from typing import Any

from _copies import SUFFIX, Template, encode

SAMPLE = (
    Path(__file__).resolve().parents[2]
    / "shared/wire/samples/blocks/neardata_mainnet_151768255.json"
)
ARCHIVE_BLOCKS = 10
START = 160_000_000  # the height of copy 0
_BLOCK_NS = 600_000_000
_MARK = re.compile(r"(?P<mark>@(id|height|time|digits)([+-]\d+)@)")


class Copies:
    """Copies of the recorded block."""

    def __init__(self) -> None:
        document = json.loads(SAMPLE.read_bytes())
        ids = _link(document)
        _mark_numbers(document)
        text = json.dumps(document, separators=(",", ":"))
        pattern = re.compile(r'"([1-9A-HJ-NP-Za-km-z]{32,44})(@\w+)?"')
        text = pattern.sub(lambda match: _marked(match, ids), text)
        text = re.sub(r'"(@(?:height|time)[+-]\d+@)"', r"\1", text)
        self._template = Template(text, _MARK)

    def copy(self, number: int) -> bytes:
        """Return one copy."""
        values = {}
        for mark in self._template.marks:
            _, kind, delta = _MARK.findall(mark[1])[0]
            if kind == "id":
                values[mark] = encode(58 + number + int(delta))
            elif kind == "height":
                values[mark] = b"%d" % (START + number + int(delta))
            else:
                values[mark] = b"%d" % (1_700_000_000_000_000_000 + number * _BLOCK_NS)
        return self._template.fill(values)

    def archive(self, start: int) -> bytes:
        """Return the archive that begins at a height."""
        first = start - START
        names = range(start, start + ARCHIVE_BLOCKS)
        bodies = map(self.copy, range(first, first + ARCHIVE_BLOCKS))
        files = [_member(b"%012d.json" % n, body) for n, body in zip(names, bodies, strict=True)]
        return _compress(b"".join((*files, bytes(1024))))


def _marked(match: re.Match[str], ids: dict[str, int]) -> str:
    """Mark the number in an id, if it differs by copy."""
    delta = ids.get(match[1] + (match[2] or ""))
    return match[0] if delta is None else f'"{match[1][:-SUFFIX]}@id{delta:+d}@"'


def _compress(data: bytes) -> bytes:
    """Compress as fast as can be."""
    try:
        from isal import igzip
    except ImportError:
        return gzip.compress(data, 1, mtime=0)
    return bytes(igzip.compress(data, 1, mtime=0))


def _member(name: bytes, body: bytes) -> bytes:
    """Return a file of a tar."""
    header = bytearray(512)
    header[: len(name)] = name
    header[100:108] = b"0000644\0"
    header[108:124] = b"0000000\0" * 2
    header[124:136] = b"%011o\0" % len(body)
    header[136:148] = b"00000000000\0"
    header[148:157] = b" " * 8 + b"0"
    header[257:265] = b"ustar  \0"
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + body + bytes(-len(body) % 512)


def _executions(document: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """List the transactions and the executed receipts of a document."""
    shards = document["shards"]
    transactions = [item for shard in shards for item in shard["chunk"]["transactions"]]
    receipts = [pair for shard in shards for pair in shard["receipt_execution_outcomes"]]
    return transactions, receipts


def _link(document: dict[str, Any]) -> dict[str, int]:
    """Link the copies; return each id that differs by copy, with the copy that it is of."""
    transactions, receipts = _executions(document)
    header = document["block"]["header"]
    ids = {header["hash"]: 0, f"{header['hash']}@parent": -1, f"{header['hash']}@final": -2}
    header["prev_hash"] = f"{header['hash']}@parent"
    header["last_final_block"] = f"{header['hash']}@final"
    ids |= dict.fromkeys([chunk["chunk_hash"] for chunk in document["block"]["chunks"]], 0)
    ids |= dict.fromkeys([item["transaction"]["hash"] for item in transactions], 0)
    ids |= dict.fromkeys([pair["receipt"]["receipt_id"] for pair in receipts], 0)
    for shard in document["shards"]:
        ids |= dict.fromkeys([receipt["receipt_id"] for receipt in shard["chunk"]["receipts"]], 0)
    for pair in receipts:
        body = pair["receipt"]["receipt"]["Action"]
        data_ids = [
            *body["input_data_ids"],
            *(to["data_id"] for to in body["output_data_receivers"]),
        ]
        ids |= dict.fromkeys(data_ids, 0)
    # Ids of the next copy are the same texts, marked apart from those of this one.
    generations = _generations(transactions, receipts)
    for item in transactions:
        item["outcome"]["execution_outcome"]["outcome"]["receipt_ids"] = []
    for pair in receipts:
        pair["execution_outcome"]["outcome"]["receipt_ids"] = []
    creators = [(item["outcome"], item["transaction"]["hash"]) for item in transactions]
    for age, generation in enumerate(generations, 1):
        created = []
        for at, pair in enumerate(generation):
            creator, tx_hash = creators[at % len(creators)]
            receipt_id = pair["receipt"]["receipt_id"]
            creator["execution_outcome"]["outcome"]["receipt_ids"].append(f"{receipt_id}@next")
            pair["tx_hash"] = f"{tx_hash}@{age}"
            created.append((pair, tx_hash))
            ids[f"{receipt_id}@next"], ids[f"{tx_hash}@{age}"] = 1, -age
        creators = created
    for item in (*(item["outcome"] for item in transactions), *receipts):
        outcome = item["execution_outcome"]["outcome"]
        if "SuccessReceiptId" in outcome["status"]:
            created_ids = outcome["receipt_ids"]
            status = {"SuccessReceiptId": created_ids[0]} if created_ids else {"SuccessValue": ""}
            outcome["status"] = status
    return ids


def _generations(transactions: list[Any], receipts: list[Any]) -> list[list[Any]]:
    """Divide the executed receipts: those that transactions create, and two more generations."""
    first = [pair for pair in receipts if pair["receipt"]["predecessor_id"] != "system"]
    first = first[: len(transactions)]
    chosen = {id(pair) for pair in first}
    others = [pair for pair in receipts if id(pair) not in chosen]
    half = len(others) // 2
    return [first, others[:half], others[half:]]


def _mark_numbers(document: dict[str, Any]) -> None:
    """Replace heights and times by marks."""
    header = document["block"]["header"]
    header |= {"height": "@height+0@", "prev_height": "@height-1@", "timestamp": "@time+0@"}
    header["timestamp_nanosec"] = "@digits+0@"
    chunks = [*document["block"]["chunks"], *(s["chunk"]["header"] for s in document["shards"])]
    for chunk in chunks:
        chunk |= {"height_created": "@height+0@", "height_included": "@height+0@"}
