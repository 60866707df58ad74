"""
What ledgerkit reads, printed and written as a page: `python notebooks/demo.py [--out FILE]`.

No network is needed: the embedded ledger answers, about its world "demo". With
`lk.connect("mainnet")` in its place the same verbs read the public network.
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
    "The embedded ledger answers: it executed what is shown on this machine. Its accounts are "
    "invented, no network was asked, and nothing here exists on a public one."
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
    """Ask every verb of the demo, by the line that asks it."""
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


def story(ledger: lk.Ledger, told: str) -> lk.Trace:
    """Trace the transaction that a story of the world is about."""
    found = next(tx for tx in ledger.world.summary.transactions if tx.description == told)
    return lk.trace(found.tx_hash, found.signer_id, ledger=ledger)


def slim(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out columns without a value, and heights, so that a line holds a row."""
    found = frame.dropna(axis="columns", how="all")
    return found.drop(columns=["last_update_block_height"], errors="ignore")


def receipt_line(row: pd.Series) -> str:
    """Say in one line what a receipt did and how it ended."""
    if row["kind"] == "refund":
        return f"refund of {row['deposit'] / 10**24:.6f} NEAR -> {row['receiver_id']}"
    what = row["actions"] if pd.isna(row["method_name"]) else f"{row['method_name']}()"
    ended = "ok" if pd.isna(row["error_message"]) else f"FAILED: {row['error_message']}"
    place = f"{row['predecessor_id']} -> {row['receiver_id']}"
    return f"{place}  {what}  in block {row['block_height']}  {ended}"


def tree_text(receipts: pd.DataFrame, parent: str | None = None) -> str:
    """Indent each receipt below the one that made it."""
    made_by = receipts["parent_id"]
    children = receipts[made_by.isna() if parent is None else made_by == parent]
    lines = [
        "    " * row["depth"] + receipt_line(row) + "\n" + tree_text(receipts, row["receipt_id"])
        for _, row in children.iterrows()
    ]
    return "".join(lines)


def page(snapshot: lk.Snapshot, found: Tables, trace: lk.Trace) -> str:
    """Write the report: one page of HTML that needs nothing else."""
    parts = [
        f"<h2><code>{escape(line)}</code></h2>"
        f'<div class="scroll">{slim(frame).to_html(index=False, border=0)}</div>'
        for line, frame in found.items()
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
    """Read, print, and write the report."""
    parser = argparse.ArgumentParser(description="Look around in the world of the embedded ledger.")
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="the page to write")
    out = parser.parse_args(arguments).out

    with lk.connect("local") as ledger:
        found, snapshot, trace = tables(), lk.snapshot("alice.near"), story(ledger, REFUNDED)

    print(NOTICE)
    for line, frame in found.items():
        print(f"\n>>> {line}\n{slim(frame).to_string(index=False)}")
    total = found['lk.top_holders("moon.near")']["balance"].sum()
    print(f"\nThe balances add up exactly: {total} = 2**128 - 1 is {total == 2**128 - 1}.")
    print(f"\n>>> lk.receipts(tx_hash, 'ivan.near'), as a tree: {REFUNDED}")
    print(tree_text(trace.receipts))
    print(f"Verdict: {trace.verdict}")
    out.write_text(page(snapshot, found, trace), encoding="utf-8")
    print(f"\nThe report is in {out}; open it in a browser.")


if __name__ == "__main__":
    main()
