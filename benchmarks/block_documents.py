"""
Collections of busy blocks from block documents: blocks a second, memory, requests and rows.

The workload is recorded block 151,768,255 of mainnet (8 chunks, 58 transactions, 313 receipts,
1.7 MB) under distinct heights and ids (`_busy_blocks.py`), served as archives of ten by a host in
another process (`_block_host.py`). All ten tables are written to Parquet. Each collection runs in a
fresh process, whose peak memory is measured; a collection of ten blocks before it loads the
libraries. Blocks a second are those of a second of CPU time of the process with all its threads,
which is what one core does; the time on the clock is printed beside it.

The same archives are read with the usual code: `tarfile`, `json`, `pandas.json_normalize` and
`to_parquet`, into the seven tables that a document has without following its receipts. It is
compared with a collection of these tables.

`--small` stops at 100 blocks and judges no time, because a busy machine misses its targets.
Without the recorded block nothing is measured.
"""

import io
import json
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from _block_host import running
from _busy_blocks import ARCHIVE_BLOCKS, SAMPLE, START
from _measuring import apart, is_small, peak_mb
from _verdict import finish, say

COUNTS = (10**2, 10**3, 10**4)
WARM_UP = 10
NORMALIZED = 20  # blocks that json and pandas read
COMPARED = 100  # blocks of the collection that they are compared with
DECODED = 200
A_SECOND, DECODED_A_SECOND = 60.0, 400.0
OPENED_S = 0.3
FLAT, MOST_MB = 1.2, 300.0
AGAINST_PANDAS = 4.0
# Rows of a block in each table; the receipts are those of its own transactions.
ROWS = {
    "blocks": 1,
    "chunks": 8,
    "transactions": 58,
    "receipts": 313,
    "events": 91,
    "outcomes": 371,
    "actions": 379,
    "balances": 482,
    "data_receipts": 16,
}
SEVEN = ("blocks", "chunks", "transactions", "outcomes", "actions", "balances", "data_receipts")
# By RPC: the block, each new chunk, each transaction.
RPC_REQUESTS = 1 + ROWS["chunks"] + ROWS["transactions"]


class Figures(NamedTuple):
    """The time, memory, requests and rows of a run."""

    blocks: int
    seconds: float
    cpu_s: float
    peak_mb: float
    requests: int
    rows: dict[str, int]
    n_bytes: int
    opened_s: tuple[float, ...] = ()

    @property
    def a_second(self) -> float:
        """Blocks in a second of CPU time."""
        return self.blocks / self.cpu_s

    @property
    def complete(self) -> bool:
        """Return True if each table has the rows of all blocks."""
        expected = {name: n * self.blocks for name, n in ROWS.items() if name in self.rows}
        return all(self.rows[name] == n for name, n in expected.items())


def count_requests(url: str) -> int:
    """Return how many requests the host has answered."""
    with urlopen(f"{url}/requests") as response:  # noqa: S310 - of this machine
        counts: dict[str, int] = json.load(response)
    return sum(counts.values())


def collected(url: str, count: int, views: Sequence[str] | None = None) -> Figures:
    """Collect through the public function."""
    import ledgerkit as lk

    with tempfile.TemporaryDirectory() as folder:
        with lk.connect("lab", rpc_url=f"{url}/rpc", blocks_url=url, rate=None) as ledger:
            for name, n_blocks in (("warm_up", WARM_UP), ("out", count)):
                before = count_requests(url)
                begin, cpu = time.perf_counter(), time.process_time()
                stop, out = START + n_blocks, f"{folder}/{name}"
                collection = lk.collect_blocks(
                    START, stop, views, out=out, progress=False, ledger=ledger
                )
                took, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
        peak = peak_mb()  # before the files are read back
        summary = collection.summary()
        rows = dict(zip(summary["table"], map(int, summary["n_rows"]), strict=True))
        n_bytes = sum(path.stat().st_size for path in Path(folder, "out").rglob("*.parquet"))
        requests = count_requests(url) - before
        time.sleep(2)  # files that were just written are compared each time
        opened_s = tuple(open_seconds(f"{folder}/out") for _ in range(2))
        return Figures(count, took, cpu_s, peak, requests, rows, n_bytes, opened_s)


def open_seconds(folder: str) -> float:
    """Return the CPU seconds of opening a collection in DuckDB."""
    import ledgerkit as lk

    begin = time.process_time()
    lk.open_collection(folder).duckdb().close()
    return time.process_time() - begin


def normalized(url: str, count: int) -> Figures:
    """Read the archives with json and pandas, and write a file for each table."""
    import httpx
    import pandas as pd

    begin, cpu = time.perf_counter(), time.process_time()
    parts: dict[str, list[pd.DataFrame]] = {}
    with httpx.Client(trust_env=False) as client, tempfile.TemporaryDirectory() as folder:
        for start in range(START, START + count, ARCHIVE_BLOCKS):
            name = f"{start:012d}"
            body = client.get(f"{url}/raw/{name[:6]}/{name[6:9]}/{name}.tgz").content
            with tarfile.open(fileobj=io.BytesIO(body)) as archive:
                for file in map(archive.extractfile, archive):
                    document = json.loads(file.read() if file else b"")
                    for table, frame in normalize(document).items():
                        parts.setdefault(table, []).append(frame)
        rows = {}
        for table, frames in parts.items():
            whole = pd.concat(frames, ignore_index=True)
            rows[table] = len(whole)
            # A column may have text, objects and numbers.
            whole.astype(str).to_parquet(f"{folder}/{table}.parquet", compression="zstd")
        n_bytes = sum(path.stat().st_size for path in Path(folder).iterdir())
    took, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
    return Figures(count, took, cpu_s, peak_mb(), count // ARCHIVE_BLOCKS, rows, n_bytes)


def normalize(document: dict[str, Any]) -> dict[str, Any]:
    """Return the frames of one document."""
    import pandas as pd

    shards = document["shards"]
    chunks = [shard["chunk"] for shard in shards]
    executed = [pair for shard in shards for pair in shard["receipt_execution_outcomes"]]
    sent = [item for chunk in chunks for item in chunk["transactions"]]
    receipts = [receipt for chunk in chunks for receipt in chunk["receipts"]]
    changes = [change for shard in shards for change in shard["state_changes"]]
    frames = {
        "blocks": pd.json_normalize(document["block"]["header"]),
        "chunks": pd.json_normalize(document["block"]["chunks"]),
        "transactions": pd.json_normalize([item["transaction"] for item in sent]),
        "outcomes": pd.json_normalize([*(item["outcome"] for item in sent), *executed]),
        "actions": pd.json_normalize(
            executed, ["receipt", "receipt", "Action", "actions"], [["receipt", "receipt_id"]]
        ),
        "balances": pd.json_normalize([c for c in changes if c["type"] == "account_update"]),
        "data_receipts": pd.json_normalize([r for r in receipts if "Data" in r["receipt"]]),
    }
    height = document["block"]["header"]["height"]
    return {name: frame.assign(block_height=height) for name, frame in frames.items()}


def decoded(count: int) -> float:
    """Return how many documents are decoded in a second of CPU time, at best."""
    from ledgerkit.api.models.block_documents import decode_document

    body, best = SAMPLE.read_bytes(), float("inf")
    for _ in range(count):
        begin = time.process_time()
        decode_document(body, "the document")
        best = min(best, time.process_time() - begin)
    return 1 / best


def row(name: str, run: Figures) -> None:
    """Print a row of the table."""
    print(f"{name:<26}{run.blocks:>8,}{run.seconds:>9.1f}{run.cpu_s:>9.1f}", end="")
    print(f"{run.a_second:>10.1f}{run.peak_mb:>9.0f}{run.requests / run.blocks:>13.3f}", end="")
    print(f"{sum(run.rows.values()):>13,}{run.n_bytes / run.blocks / 1024:>12.1f}", flush=True)


def head() -> None:
    """Print the header of the table."""
    print(f"{'':<26}{'blocks':>8}{'seconds':>9}{'CPU s':>9}{'a CPU s':>10}{'peak MB':>9}", end="")
    print(f"{'req. a block':>13}{'rows':>13}{'kB a block':>12}")


def judge(last: Figures, ratio: float, rate: float) -> None:
    """Compare the times with their targets."""
    claim = f"at least {A_SECOND:.0f} busy blocks a second into Parquet, all tables, one core"
    say(claim, f"{last.a_second:.0f}", met=last.a_second >= A_SECOND)
    claim = f"at least {DECODED_A_SECOND:.0f} documents decoded a second"
    say(claim, f"{rate:.0f}", met=rate >= DECODED_A_SECOND)
    first_s, again_s = last.opened_s
    claim = f"10^4 blocks in DuckDB, opened again: at most {OPENED_S} s"
    say(claim, f"{again_s:.2f} s, the first time {first_s:.2f} s", met=again_s <= OPENED_S)
    claim = f"seven tables: at least {AGAINST_PANDAS:.0f} x as fast as json and pandas"
    say(claim, f"{ratio:.1f}", met=ratio >= AGAINST_PANDAS)


def judge_memory(runs: dict[int, Figures]) -> None:
    """Compare the peak memory of most blocks with that of fewest, and with its limit."""
    least, most = runs[min(runs)].peak_mb, runs[max(runs)].peak_mb
    flat = most / least
    say(f"memory at 10^4 at most {FLAT} x that at 10^2", f"{flat:.2f}", met=flat <= FLAT)
    say(f"memory at 10^4 at most {MOST_MB:.0f} MB", f"{most:.0f} MB", met=most <= MOST_MB)


def main() -> None:
    small = is_small("Time collections of blocks.")
    if not SAMPLE.exists():
        sys.exit(f"The recorded block is not here: {SAMPLE.name}")
    head()
    runs = {}
    with running(max(COUNTS)) as url:
        for count in COUNTS[:1] if small else COUNTS:
            runs[count] = apart(collected, url, count)
            row("all tables", runs[count])
        seven = apart(collected, url, COMPARED, SEVEN)
        row("seven tables", seven)
        pandas = apart(normalized, url, NORMALIZED)
        row("json and pandas", pandas)
    rate = apart(decoded, DECODED)
    every = [*runs.values(), seven]
    whole = all(run.complete for run in every)
    stored = sum(sum(run.rows.values()) for run in every)
    say("each run stored all rows of all blocks", f"{stored:,} rows", met=whole)
    last = runs[max(runs)]
    figure = f"{last.requests / last.blocks:.2f}; by RPC {RPC_REQUESTS}"
    say("at most 0.2 requests a block", figure, met=last.requests <= 0.2 * last.blocks)
    if not small:
        judge(last, seven.a_second / pandas.a_second, rate)
        judge_memory(runs)
    finish()


if __name__ == "__main__":
    main()
