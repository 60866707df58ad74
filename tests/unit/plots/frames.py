"""Frames to draw, and each plot with a frame of its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import plots as drawings
from ledgerkit.frames import build
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.reconciling.model import Gap
from tests.unit.statement_frames import entry, statement

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

plots: Any = drawings  # matplotlib's annotations do not distinguish a bar from other patches
NEAR, TGAS = 10**24, 10**12
START_NS = 1_785_542_400 * 10**9


def frame(name: str, rows: list[dict[str, Any]], network: str | None = None) -> pd.DataFrame:
    """Build a frame of which only some columns have values."""
    lists = {"logs", "input_data_ids", "output_data_receivers", "waits_for"}
    columns = {
        column.name: [
            row.get(column.name, [] if column.name in lists else {"bool": False}.get(column.dtype))
            for row in rows
        ]
        for column in SCHEMAS[name]
    }
    return build.build_frame(name, columns, attrs={"network": network} if network else None)


def receipt(name: str, parent: str | None = None, **values: Any) -> dict[str, Any]:
    """Return a row of a receipt that succeeded and burnt 1 Tgas."""
    usual = {"kind": "action", "receiver_id": "dex.near", "method_name": "swap", "shard_id": 1}
    end = {"status": "success_value", "gas_burnt": TGAS, "block_height": 100}
    return {"receipt_id": name, "parent_id": parent, **usual, **end, **values}


def every_state(network: str | None = None) -> pd.DataFrame:
    """Return receipts of every state, of seven contracts, with a gap of 300 blocks."""
    critical: dict[str, Any] = {"on_critical_path": True}
    rows = [
        receipt("A", **critical),
        receipt("B", "A", receiver_id="wrap.near", status="failure", block_height=101, shard_id=2),
        receipt("C", "A", kind="refund", receiver_id="alice.near", block_height=101),
        receipt("D", "A", block_height=400, **critical),
        receipt("E", "A", status="unknown", block_height=102, gas_burnt=None),
        receipt("F", "A", status="not_executed", block_height=None, gas_burnt=None),
        *[receipt(f"G{n}", "A", receiver_id=f"c{n}.near", gas_burnt=2 * TGAS) for n in range(6)],
    ]
    return frame("receipts", rows, network)


def data_edges() -> pd.DataFrame:
    """Return a data dependency of D on B."""
    return frame("edges", [{"parent_id": "B", "child_id": "D", "kind": "data", "data_id": "d"}])


def transfers(network: str | None = None) -> pd.DataFrame:
    """Return a transfer of every kind and one of a token."""
    kinds = "transfer fee burnt undelivered refund_gas contract_reward".split()
    ends = {"sender_id": "alice.near", "receiver_id": "bob.near"}
    rows = [{"kind": kind, "asset": "near", "amount": NEAR, **ends} for kind in kinds]
    gold = {"kind": "token", "asset": "nep141:gold.near", "amount": 80_000_000}
    return frame("transfers", [*rows, {**gold, **ends}], network)


def tokens(network: str | None = None) -> pd.DataFrame:
    """Return balances of two tokens, of which one has no decimals."""
    gold = {"contract_id": "gold.near", "symbol": "GOLD", "decimals": 6, "balance": 80_000_000}
    odd = {"contract_id": "odd.near", "symbol": "ODD", "balance": 5}
    rows = [{"account_id": "alice.near", "status": "ok", **token} for token in (gold, odd)]
    return frame("ft_metadata", rows, network)


def positions(network: str | None = None) -> pd.DataFrame:
    """Return stake of every part."""
    usual = {"account_id": "bob.near", "staked": 3 * NEAR, "unstaked": NEAR, "status": "ok"}
    rows = [{"pool_id": f"p{free}.near", "can_withdraw": free, **usual} for free in (True, False)]
    return frame("staking_positions", rows, network)


def holders(network: str | None = None) -> pd.DataFrame:
    rows = [
        {"contract_id": f"t{n}.near", "balance": balance, "status": "ok"}
        for n in range(6)
        for balance in (1, 2, 9)
    ]
    return frame("top_holders", rows, network)


def exposures(network: str | None = None) -> pd.DataFrame:
    """Return an account of each class, and one that is not indexed."""
    names = "direct_only liquid_only mixed no_visible_staking_position other".split()
    rows = [{"account_id": f"{n}.near", "exposure_class": n, "status": "ok"} for n in names]
    return frame("exposure", [*rows, {**rows[0], "status": "not_indexed"}], network)


def readings(network: str | None = None, view: str = "staking") -> pd.DataFrame:
    """Return two readings of seven lines."""
    usual = {"account_id": "a.near", "view": view, "status": "ok", "unstaked": 0, "locked": 0}
    rows = [
        {"contract_id": f"p{n}.near", "staked": n * NEAR, "balance": n, "time": at, **usual}
        for n in range(7)
        for at in (START_NS, START_NS + 10**10)
    ]
    return frame("history", rows, network)


def changes(network: str | None = None) -> pd.DataFrame:
    """Return changes of seven assets for eight causes."""
    causes = "transfer deposit refund fee mint burn unknown stake".split()
    rows = [
        entry(100 + n, f"nep141:t{n % 7}.near", cause, 10 + n) for n, cause in enumerate(causes)
    ]
    made = statement(rows).entries
    made.attrs["network"] = network
    return made


def gap() -> pd.DataFrame:
    known = [Gap("nep141:t1.near", 101, 105, 7, "unknown")]
    return statement([entry(100, "nep141:t1.near", "mint", 1)], gaps=known).gaps


PLOTS: dict[str, tuple[Callable[..., Any], Callable[..., pd.DataFrame]]] = {
    "receipt_tree": (lambda f, **kw: plots.receipt_tree(f, data_edges(), **kw), every_state),
    "timeline": (lambda f, **kw: plots.timeline(f, data_edges(), **kw), every_state),
    "gas_icicle": (plots.gas_icicle, every_state),
    "token_flow": (plots.token_flow, transfers),
    "balances": (plots.balances, tokens),
    "staking": (plots.staking, positions),
    "concentration": (plots.concentration, holders),
    "exposure": (plots.exposure, exposures),
    "history": (plots.history, readings),
    "statement": (lambda f, **kw: plots.statement(f, None, gap(), **kw), changes),
}
