"""
Print what ledgerkit reads, and write it as a page: `python notebooks/demo.py [--out FILE]`.

It runs on the embedded ledger, with its world "demo", and needs no network. With
`lk.connect("mainnet")` the same verbs read the public network.
"""

from __future__ import annotations

import argparse
from html import escape
from pathlib import Path

import pandas as pd

import ledgerkit as lk

ACCOUNTS = ["alice.near", "bob.near", "carol.near", "dave.near"]
REFUNDED = "a swap that is refunded: the exchange is paused"
NOTICE = (
    "This data comes from the embedded ledger, which ran on this machine without a network. Its "
    "accounts are invented; nothing here exists on a public network."
)
Tables = dict[str, pd.DataFrame]

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 82rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c2330; background: #fff }
h1 { font-size: 1.6rem } h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem }
.notice { background: #fff6dd; border-left: 4px solid #d9a400; padding: .5rem .8rem }
.scroll, .ledgerkit-snapshot { overflow-x: auto }
table { border-collapse: collapse; font: 13px/1.4 ui-monospace, "DejaVu Sans Mono", monospace }
th, td { padding: .25rem .7rem; text-align: left !important; white-space: nowrap;
  border-bottom: 1px solid #e4e7ec }
th { background: #f4f6f9 } code, pre { font-size: 13px }
pre { background: #f4f6f9; padding: .8rem; overflow-x: auto }
.ledgerkit-snapshot { border: 1px solid #d5dae3; border-radius: 6px; padding: .2rem 1rem .8rem }
summary { cursor: pointer; padding: .25rem 0 }
"""


def tables() -> Tables:
    """Call each verb of the demo; return the frames by their line of code."""
    return {
        "lk.accounts(ids)": lk.accounts(ACCOUNTS),
        'lk.ft("alice.near", metadata=True)': lk.ft("alice.near", metadata=True),
        "lk.nft(ids)": lk.nft(ACCOUNTS),
        'lk.nft_tokens(ids, "tickets.grace.near")': lk.nft_tokens(ACCOUNTS, "tickets.grace.near"),
        "lk.staking(ids, positions=True)": lk.staking(ACCOUNTS, positions=True),
        "lk.exposure(ids)": lk.exposure(ACCOUNTS),
        'lk.top_holders("moon.near")': lk.top_holders("moon.near"),
        'lk.keys("alice.near")': lk.keys("alice.near"),
    }


def trace_described(ledger: lk.Ledger, description: str) -> lk.Trace:
    """Trace the transaction of the world that has this description."""
    transactions = ledger.world.summary.transactions
    tx = next(tx for tx in transactions if tx.description == description)
    return lk.trace(tx.tx_hash, tx.signer_id, ledger=ledger)


def slim(frame: pd.DataFrame) -> pd.DataFrame:
    """Drop empty columns and update heights, so that a row fits on a line."""
    filled = frame.dropna(axis="columns", how="all")
    return filled.drop(columns=["last_update_block_height"], errors="ignore")


def receipt_line(row: pd.Series) -> str:
    """Describe a receipt in one line: what it did, and its result."""
    if row["kind"] == "refund":
        return f"refund of {row['deposit'] / 10**24:.6f} NEAR -> {row['receiver_id']}"
    action = row["actions"] if pd.isna(row["method_name"]) else f"{row['method_name']}()"
    result = "ok" if pd.isna(row["error_message"]) else f"FAILED: {row['error_message']}"
    accounts = f"{row['predecessor_id']} -> {row['receiver_id']}"
    return f"{accounts}  {action}  in block {row['block_height']}  {result}"


def tree_text(receipts: pd.DataFrame, parent: str | None = None) -> str:
    """Format the receipts as a tree, each indented below its parent."""
    parents = receipts["parent_id"]
    children = receipts[parents.isna() if parent is None else parents == parent]
    lines = [
        "    " * row["depth"] + receipt_line(row) + "\n" + tree_text(receipts, row["receipt_id"])
        for _, row in children.iterrows()
    ]
    return "".join(lines)


def page(snapshot: lk.Snapshot, frames: Tables, trace: lk.Trace) -> str:
    """Return the report as a self-contained HTML page."""
    parts = [
        f"<h2><code>{escape(line)}</code></h2>"
        f'<div class="scroll">{slim(frame).to_html(index=False, border=0)}</div>'
        for line, frame in frames.items()
    ]
    title = "A look around with ledgerkit"
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>
<body><h1>{title}</h1><p class="notice">{escape(NOTICE)}</p>
<h2><code>{escape('lk.snapshot("alice.near")')}</code></h2>{snapshot._repr_html_()}
{"".join(parts)}
<h2><code>lk.trace(tx_hash, "ivan.near")</code></h2>
<p>{REFUNDED.capitalize()}. Verdict: <strong>{escape(trace.verdict)}</strong></p>
<pre>{escape(tree_text(trace.receipts))}</pre>
</body></html>
"""


def main(arguments: list[str] | None = None) -> None:
    """Read the data, print it, and write the report."""
    parser = argparse.ArgumentParser(description="Print and write examples on the embedded ledger.")
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="the page to write")
    out = parser.parse_args(arguments).out

    with lk.connect("local") as ledger:
        frames, snapshot = tables(), lk.snapshot("alice.near")
        trace = trace_described(ledger, REFUNDED)

    print(NOTICE)
    for line, frame in frames.items():
        print(f"\n>>> {line}\n{slim(frame).to_string(index=False)}")
    total = frames['lk.top_holders("moon.near")']["balance"].sum()
    print(f"\nThe balances add up exactly: {total} = 2**128 - 1 is {total == 2**128 - 1}.")
    print(f"\n>>> lk.receipts(tx_hash, 'ivan.near'), as a tree: {REFUNDED}")
    print(tree_text(trace.receipts))
    print(f"Verdict: {trace.verdict}")
    out.write_text(page(snapshot, frames, trace), encoding="utf-8")
    print(f"\nThe report is in {out}; open it in a browser.")


if __name__ == "__main__":
    main()
