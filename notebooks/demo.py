"""
Print what ledgerkit reads, and write it as a page: `python notebooks/demo.py [--out FILE]`.

It runs on the embedded ledger, with its world "demo", and needs matplotlib but no network. With
`lk.connect("mainnet")` the same verbs read the public network.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from html import escape
from pathlib import Path

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes

import ledgerkit as lk
from ledgerkit.plots.svg import svg_text

ACCOUNTS = ["alice.near", "bob.near", "carol.near", "dave.near"]
REFUNDED = "a swap that is refunded: the exchange is paused"
NOTICE = (
    "This data comes from the embedded ledger, which ran on this machine without a network. Its "
    "accounts are invented; nothing here exists on a public network."
)
NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
POSITIONS = "lk.staking(ids, positions=True)"
TOKENS = 'lk.ft("alice.near", metadata=True)'
HOLDERS = 'lk.top_holders("moon.near")'
Tables = dict[str, pd.DataFrame]
Plots = dict[str, Callable[[], Axes]]

STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --page: #fff; --soft: #f4f6f9; --line: #d5dae3;
  --note: #fff6dd; --edge: #b98a00 }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --page: #111; --soft: #1d222b;
  --line: #3a4250; --note: #2e2710; --edge: #d9a400 } .light { display: none } }
@media not (prefers-color-scheme: dark) { .dark { display: none } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--ink); background: var(--page) }
h1 { font-size: 1.6rem } h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; overflow-wrap: anywhere }
.notice { background: var(--note); border-left: 4px solid var(--edge); padding: .5rem .8rem }
.scroll { overflow-x: auto } svg { max-width: 100%; height: auto }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums }
caption { text-align: left; caption-side: bottom; padding-top: .3rem; opacity: .75 }
th, td { padding: .25rem .7rem; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--line) }
thead th { background: var(--soft) }
.scroll > .ledgerkit-human :is(thead td, tbody th) { display: none }
code, pre { font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace }
pre { background: var(--soft); padding: .8rem; overflow-x: auto }
"""


def tables() -> Tables:
    """Call each verb of the demo; return the frames by their line of code."""
    return {
        "lk.accounts(ids)": lk.accounts(ACCOUNTS),
        TOKENS: lk.ft("alice.near", metadata=True),
        "lk.nft(ids)": lk.nft(ACCOUNTS),
        'lk.nft_tokens(ids, "tickets.grace.near")': lk.nft_tokens(ACCOUNTS, "tickets.grace.near"),
        POSITIONS: lk.staking(ACCOUNTS, positions=True),
        "lk.exposure(ids)": lk.exposure(ACCOUNTS),
        HOLDERS: lk.top_holders("moon.near"),
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
        return f"refund of {lk.units.near_amount(row['deposit'])} -> {row['receiver_id']}"
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


def plots(frames: Tables, trace: lk.Trace) -> Plots:
    """Return what draws each plot of the report, by its line of code."""
    return {
        "lk.plots.balances(tokens)": lambda: lk.plots.balances(frames[TOKENS]),
        "lk.plots.staking(positions)": lambda: lk.plots.staking(frames[POSITIONS]),
        "trace.plot()": trace.plot,
        'trace.plot("flow")': lambda: trace.plot("flow"),
    }


def picture(draw: Callable[[], Axes]) -> str:
    """Draw a plot for a light and for a dark page, of which the style sheet hides one."""
    with rc_context({"svg.hashsalt": "ledgerkit"}):  # the same ids in each run
        drawings = {"light": svg_text(draw), "dark": svg_text(draw, dark=True)}
    return "".join(
        # Inside a page an SVG needs no namespace.
        f'<div class="{name}">{drawing.replace(NAMESPACE, "")}</div>'
        for name, drawing in drawings.items()
    )


def page(snapshot: lk.types.Snapshot, frames: Tables, drawings: Plots, trace: lk.Trace) -> str:
    """Return the report as a self-contained HTML page."""
    network = snapshot.state.attrs["network"]
    sections = {
        'lk.snapshot("alice.near")': snapshot._repr_html_(),
        **{line: lk.human(slim(frame))._repr_html_() for line, frame in frames.items()},
        **{line: picture(draw) for line, draw in drawings.items()},
    }
    parts = [
        f'<h2><code>{escape(line)}</code></h2><div class="scroll">{section}</div>'
        for line, section in sections.items()
    ]
    title, verdict = "A look around with ledgerkit", trace.verdict.replace("_", " ")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><h1>{title}</h1>
<p class="notice"><strong>Network: {escape(network)}.</strong> {escape(NOTICE)}</p>
{"".join(parts)}
<h2><code>lk.trace(tx_hash, "ivan.near")</code></h2>
<p>{escape(trace.headline())} Verdict: <strong>{escape(verdict)}</strong></p>
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
        report = page(snapshot, frames, plots(frames, trace), trace)

    print(NOTICE)
    for line, frame in frames.items():
        print(f"\n>>> {line}\n{lk.human(slim(frame)).texts().to_string(index=False)}")
    total = frames[HOLDERS]["balance"].sum()
    print(f"\nThe balances add up exactly: {total} = 2**128 - 1 is {total == 2**128 - 1}.")
    print(f"\n>>> lk.receipts(tx_hash, 'ivan.near'), as a tree: {REFUNDED}")
    print(tree_text(trace.receipts))
    print(f"Verdict: {trace.verdict}")
    out.write_text(report, encoding="utf-8")
    print(f"\nThe report is in {out}; open it in a browser.")


if __name__ == "__main__":
    main()
