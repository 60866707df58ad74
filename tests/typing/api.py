"""The public API as users write it: read by type checkers, never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias, assert_type

import httpx
import pandas as pd
from matplotlib.axes import Axes

import ledgerkit as lk
from ledgerkit import errors, protocol
from ledgerkit.types import (
    Diff,
    FollowedBlock,
    Following,
    I129Dtype,
    Plan,
    Proof,
    StatementPlan,
    Traces,
    U128Array,
    U128Dtype,
)

Both: TypeAlias = tuple[pd.DataFrame, pd.DataFrame]
Lags: TypeAlias = list[tuple[int, int, str | None]]
TracesAndFailures: TypeAlias = tuple[Traces, pd.DataFrame]


def connecting() -> None:
    """A ledger is opened, passed along and closed."""
    ledger = lk.connect("testnet", api_key="key", timeout_s=5, rate=None, in_flight=64)
    assert_type(ledger, lk.Ledger)
    lk.connect(transport=httpx.MockTransport(lambda _: httpx.Response(200)))
    lk.connect("lab", rpc_url="http://127.0.0.1:3030", retries=lk.RetryPolicy(attempts=2))
    lk.connect("mainnet", key_in="query", rate="polite")
    lk.connect("mainnet", cache=True)
    lk.connect("mainnet", cache=Path("kept"))
    lk.connect("mainnet", cache=lk.Cache("kept", max_bytes=2**30, metadata_s=3600))
    assert_type(lk.cache_info(), pd.DataFrame)
    assert_type(lk.clear_cache(ledger), None)
    local = lk.connect("local", world="crowd", size=100, seed=7)
    lk.connect(world=local.world)
    local.world.advance(2)
    local.faults.add("status=429; times=2")
    with lk.connect("mainnet") as inner:
        assert_type(inner, lk.Ledger)
        assert_type(inner.rpc("block", {"finality": "final"}), Any)
        assert_type(inner.get("/v0/account/root.near/ft"), Any)
        assert_type(inner.post("/v0/blocks", {"limit": 1}, surface="transactions"), Any)
    assert_type(ledger.close(), None)
    assert_type(lk.disconnect(), None)


def one_frame(ledger: lk.Ledger) -> None:
    """Without collecting, the many-subject verbs give one frame."""
    assert_type(lk.accounts("root.near"), pd.DataFrame)
    assert_type(lk.accounts(["a.near", "b.near"], at="final", ledger=ledger), pd.DataFrame)
    assert_type(lk.ft(pd.Series(["a.near"]), metadata=True, progress=False), pd.DataFrame)
    assert_type(lk.nft("root.near", on_error="raise"), pd.DataFrame)
    assert_type(lk.nft_tokens("root.near", "nft.near", page=20), pd.DataFrame)
    assert_type(lk.staking("root.near", pools=["p.poolv1.near"]), pd.DataFrame)
    assert_type(lk.lockups("root.near"), pd.DataFrame)
    assert_type(lk.exposure(["root.near"], nonzero=True, liquid_tokens=()), pd.DataFrame)
    start, stop = pd.Timestamp("2026-01-01"), "2026-02-01"
    assert_type(lk.history("root.near", start, stop, every="1D"), pd.DataFrame)
    statement = lk.statement("root.near", start, stop, assets=["near"])
    assert_type(statement, lk.Statement)
    assert_type(statement.entries, pd.DataFrame)
    assert_type(lk.history("root.near", 1, None, views="ft", contracts=["a.near"]), pd.DataFrame)
    assert_type(lk.activity("root.near", limit=5, metadata=False), pd.DataFrame)
    assert_type(lk.account_transactions("root.near", start, role=["signer"]), pd.DataFrame)
    assert_type(lk.transfers_of(["a.near"], 1, "final", direction="sender"), pd.DataFrame)
    assert_type(lk.key_values("a.near", key="color", history=True), pd.DataFrame)


def two_frames() -> None:
    """When failures are collected, they are a second frame."""
    assert_type(lk.accounts(["root.near"], on_error="collect"), Both)
    assert_type(lk.ft(["root.near"], on_error="collect"), Both)
    assert_type(lk.nft(["root.near"], on_error="collect"), Both)
    assert_type(lk.nft_tokens(["root.near"], "nft.near", on_error="collect"), Both)
    assert_type(lk.staking(["root.near"], on_error="collect"), Both)
    assert_type(lk.exposure(["root.near"], on_error="collect"), Both)
    assert_type(lk.history("root.near", 1, "final", on_error="collect"), Both)
    assert_type(lk.activity("root.near", on_error="collect"), Both)
    assert_type(lk.account_transactions("root.near", on_error="collect"), Both)
    assert_type(lk.transfers_of("root.near", on_error="collect"), Both)
    assert_type(lk.key_values("root.near", on_error="collect"), Both)
    frame, failed = lk.ft(["root.near"], on_error="collect")
    assert_type(frame, pd.DataFrame)
    assert_type(failed, pd.DataFrame)


def one_account() -> None:
    """Verbs of one account, one token, one key."""
    taken = lk.snapshot("root.near")
    assert_type(taken, lk.types.Snapshot)
    assert_type(taken.account_id, str)
    assert_type(taken.state, pd.DataFrame)
    assert_type(taken.ft, pd.DataFrame)
    assert_type(lk.accounts_of("ed25519:1", include_limited=True), pd.DataFrame)
    assert_type(lk.balance("root.near"), int)
    assert_type(lk.balance("root.near", "wrap.near", at="2026-01-01"), int)
    assert_type(lk.keys("root.near", at=pd.Timestamp("2026-01-01")), pd.DataFrame)
    assert_type(lk.keys("root.near", public_key="ed25519:1"), pd.DataFrame)
    assert_type(lk.keys(["root.near"], on_error="collect"), Both)
    assert_type(lk.token_metadata("wrap.near", at=1), pd.DataFrame)
    assert_type(lk.token_metadata(["wrap.near"], on_error="collect"), Both)
    assert_type(lk.ft("root.near", contracts="wrap.near", at="2026-01"), pd.DataFrame)
    assert_type(lk.ft("root.near", contracts=["wrap.near"], on_error="collect"), Both)
    assert_type(lk.top_holders("wrap.near"), pd.DataFrame)


def the_chain() -> None:
    """Verbs of blocks, the node and contracts."""
    assert_type(lk.block(), pd.DataFrame)
    assert_type(lk.block(at=120_000_000), pd.DataFrame)
    assert_type(lk.blocks(120_000_000, 120_000_010), pd.DataFrame)
    assert_type(lk.blocks(120_000_000, 120_000_010, source="documents"), pd.DataFrame)
    assert_type(lk.chunks("optimistic"), pd.DataFrame)
    assert_type(lk.chunks("final", shard_id=0), pd.DataFrame)
    assert_type(lk.transactions(), pd.DataFrame)
    assert_type(lk.status(), pd.DataFrame)
    assert_type(lk.doctor(save="report.lk"), pd.DataFrame)
    assert_type(lk.gas_price(), pd.DataFrame)
    assert_type(lk.validators(which="kickouts"), pd.DataFrame)
    assert_type(lk.changes(["root.near"]), pd.DataFrame)
    assert_type(lk.contract_state("social.near", b"k"), pd.DataFrame)
    assert_type(lk.contract_code("social.near"), bytes)
    assert_type(lk.contract_code(global_contract_account_id="wallet.near"), bytes)
    assert_type(lk.protocol_config(), dict[str, Any])
    assert_type(lk.view("wrap.near", "ft_metadata"), Any)
    assert_type(lk.view_many([("wrap.near", "ft_metadata"), ("a.near", "m", {"k": 1})]), list[Any])


def one_transaction() -> None:
    """A transaction's tree, live and from a file."""
    found = lk.trace("hash", "root.near", wait_until="FINAL", blocks=False)
    assert_type(found, lk.Trace)
    assert_type(found.receipts, pd.DataFrame)
    assert_type(found.edges, pd.DataFrame)
    assert_type(found.verdict, str)
    assert_type(found.tx_hash, str | None)
    assert_type(found.signer_id, str | None)
    assert_type(found.sender_id, str | None)
    for frame in (found.events, found.transfers, found.balance_changes, found.gas, found.logs):
        assert_type(frame, pd.DataFrame)
    assert_type(found.actions, pd.DataFrame)
    assert_type(found.notes, tuple[str, ...])
    assert_type(found.explain(), str)
    assert_type(found.explain(metadata=False), str)
    assert_type(found.to_networkx(), Any)
    found.plot()
    found.plot("flow", asset="near")
    assert_type(lk.Trace.from_json(b"{}"), lk.Trace)
    assert_type(lk.Trace.from_json(b"{}", rules=lk.protocol_config()), lk.Trace)
    assert_type(lk.Trace.load("trace.json"), lk.Trace)
    assert_type(lk.trace("hash"), lk.Trace)
    assert_type(lk.receipts("hash", "root.near"), pd.DataFrame)
    assert_type(lk.receipts("hash"), pd.DataFrame)
    assert_type(lk.receipt("receipt"), dict[str, Any])
    assert_type(lk.traces(["hash", ("hash", "root.near")]), Traces)
    many = lk.traces([("hash", "root.near")], blocks=False)
    assert_type(many, Traces)
    assert_type(many["hash"], lk.Trace)
    assert_type(list(many), list[str])
    assert_type(many.notes, tuple[str, ...])
    for frame in (many.receipts, many.edges, many.actions, many.logs, many.events):
        assert_type(frame, pd.DataFrame)
    for frame in (many.transfers, many.balance_changes, many.gas):
        assert_type(frame, pd.DataFrame)
    assert_type(lk.traces([("hash", "root.near")], on_error="collect"), TracesAndFailures)
    assert_type(lk.trace_block(120_000_000), Traces)
    assert_type(lk.trace_block(120_000_000, source="documents"), Traces)
    assert_type(lk.trace_block(on_error="collect"), TracesAndFailures)
    assert_type(lk.receipt("id"), dict[str, Any])


def one_statement(ledger: lk.Ledger) -> None:
    """A statement is rehearsed, read, saved, loaded and continued."""
    plan = lk.statement("root.near", 1, dry_run=True, ledger=ledger)
    assert_type(plan, StatementPlan)
    assert_type(plan.requests, dict[str, int])
    statement = lk.statement("root.near", 1, "final", assets=["near"], ledger=ledger)
    assert_type(statement, lk.Statement)
    for frame in (statement.entries, statement.gaps, statement.totals, statement.rewards):
        assert_type(frame, pd.DataFrame)
    assert_type(statement.save("root.parquet"), Path)
    assert_type(lk.Statement.load("root.parquet").extend(ledger=ledger), lk.Statement)


def many_accounts(ledger: lk.Ledger) -> None:
    """A collection is written, rehearsed, opened and compared."""
    collection = lk.collect(["root.near"], ["ft", "nft"], out="march", rate=5, ledger=ledger)
    assert_type(collection, lk.types.Collection)
    assert_type(lk.collect("ids.parquet", "ft", Path("april"), column="id"), lk.types.Collection)
    plan = lk.collect(iter(["root.near"]), out="s3://bucket/run", dry_run=True)
    assert_type(plan, Plan)
    assert_type(plan.requests, int | None)
    assert_type(lk.open_collection(Path("march")).pandas("ft", columns="balance"), pd.DataFrame)
    assert_type(collection.summary(), pd.DataFrame)
    assert_type(collection.errors(), pd.DataFrame)
    assert_type(collection.tables, tuple[str, ...])
    assert_type(collection.finished, bool)
    assert_type(collection.counts, dict[str, int])
    for opened in (collection.arrow("ft"), collection.polars("ft"), collection.dask("ft")):
        assert_type(opened, Any)
    statements = lk.statements(["root.near"], "run", 1, "final", rate=5, ledger=ledger)
    assert_type(statements, lk.types.Collection)
    blocks = lk.collect_blocks(1, "final", ["blocks", "events"], "run", rate=5, ledger=ledger)
    assert_type(blocks, lk.types.Collection)
    assert_type(
        lk.collect_blocks(1, 9, out="run", source="documents", workers=2), lk.types.Collection
    )
    assert_type(blocks.traces(["hash"], ledger=ledger), Traces)
    assert_type(lk.collect_blocks("2026-01-01", 9, out=Path("run"), dry_run=True), Plan)
    followed = lk.follow(1, ["blocks"], out="run", max_blocks=9, stop="2026-01-01", ledger=ledger)
    assert_type(followed, Following[FollowedBlock])
    with followed as following:
        assert_type(next(following)["blocks"], pd.DataFrame)
        assert_type([(block.height, block.behind, block.waiting) for block in following], Lags)
    assert_type(next(lk.follow(views="transactions", progress=False)), pd.DataFrame)
    found = lk.diff(collection, "april", view="accounts")
    assert_type(found, Diff)
    assert_type(found.changes, pd.DataFrame)
    assert_type(found.not_compared, pd.DataFrame)
    assert_type(found.summary(), pd.DataFrame)
    assert_type(found.n_compared, int)


def sending(ledger: lk.Ledger, public_key: protocol.PublicKey) -> None:
    """Verbs that send give a Submission, and a frame where they only rehearse."""
    me = lk.signer("a.testnet", credentials=True, network="testnet")
    assert_type(me, lk.types.Signer)
    assert_type(lk.use_signer("a.testnet", keyring=True), lk.types.Signer | None)
    assert_type(lk.use_signer(None), lk.types.Signer | None)
    assert_type(lk.transfer("b.testnet", "1 NEAR", key=me), lk.types.Submission)
    assert_type(lk.transfer("b.testnet", 1, dry_run=True), pd.DataFrame)
    assert_type(lk.call("c.testnet", "m", {"k": 1}, gas="9 Tgas", deposit=1), lk.types.Submission)
    assert_type(lk.call("c.testnet", "m", b"", dry_run=True, strict=True), pd.DataFrame)
    actions = [protocol.Transfer(1)]
    assert_type(lk.send("b.testnet", actions, via="broadcast_tx_async"), lk.types.Submission)
    assert_type(lk.add_key(public_key, receiver_id="c.testnet"), lk.types.Submission)
    assert_type(lk.delete_key("ed25519:1", allow_mainnet=True), lk.types.Submission)
    made = lk.create_account("x.a.testnet", public_key=public_key, balance="1 NEAR")
    assert_type(made, lk.types.Submission)
    assert_type(lk.deploy(b"code", timeout_s=5), lk.types.Submission)
    trace = lk.simulate("a.near", [], signer_id="b.near")
    assert_type(trace, lk.Trace)
    assert_type(trace.verify("hash"), Proof)
    with lk.record("case.lk", mode="extend") as recorded:
        assert_type(recorded, lk.Ledger)
    assert_type(lk.read_recording("case.lk"), pd.DataFrame)
    assert_type(lk.verify("hash", "a.near", trusted="hash").rows, pd.DataFrame)
    signed = lk.delegate("b.testnet", actions, signer_id="a.testnet", ledger=ledger)
    assert_type(signed, protocol.Delegate)
    assert_type(lk.relay(signed, wait_until="FINAL"), lk.types.Submission)
    assert_type(lk.relay("base64"), lk.types.Submission)
    assert_type(lk.relay(b"borsh", dry_run=True), pd.DataFrame)


def following(sent: lk.types.Submission) -> None:
    assert_type(lk.track("hash", "a.testnet", timeout_s=None), lk.types.Submission)
    assert_type(lk.track("hash", "a.testnet", timeout_s=0), lk.types.Submission)
    assert_type(sent.wait("FINAL", timeout_s=5).refresh(), lk.types.Submission)
    assert_type(sent.stage, str)
    assert_type(sent.stages, pd.DataFrame)
    assert_type(sent.to_frame(), pd.DataFrame)
    assert_type(sent.fully_succeeded, bool | None)
    assert_type(sent.failure, lk.LedgerError | None)
    assert_type(sent.value, Any)
    assert_type(sent.logs, list[str])
    assert_type(sent.trace, lk.Trace | None)
    assert_type(sent.signed, protocol.SignedTransaction | None)
    assert_type(sent.raise_for_status(), None)


def archiving(ledger: lk.Ledger, me: lk.types.Signer) -> None:
    made = lk.archiving.archive_widget(
        "a.testnet",
        "W",
        "b.testnet",
        source=ledger,
        target=ledger,
        collection="c.testnet",
        signer=me,
    )
    assert_type(made, lk.archiving.Archive)
    found = lk.archiving.verify_archive(made, source=ledger, target=ledger, collection="c.testnet")
    assert_type(found, lk.archiving.Verification)


def offline() -> None:
    """Saved answers and schemas need no ledger."""
    assert_type(lk.read_response("answer.json", "ft"), pd.DataFrame)
    assert_type(lk.read_response(Path("answer.json"), "receipts"), pd.DataFrame)
    assert_type(lk.read_response(b"{}", "keys"), pd.DataFrame)
    assert_type(lk.schema("ft"), pd.DataFrame)
    assert_type(lk.__version__, str)


def amounts(frame: pd.DataFrame, held: pd.Series[int], taken: U128Array) -> None:
    """Amounts are a dtype of their own, with units and files."""
    assert_type(taken.nbytes, int)
    assert_type(taken.copy(), U128Array)
    dtype: U128Dtype | I129Dtype = taken.dtype
    assert_type(dtype, U128Dtype | I129Dtype)
    assert_type(lk.to_units(held, 24, as_="decimal"), "pd.Series[Any]")
    assert_type(lk.from_units(held, frame["decimals"]), "pd.Series[Any]")
    whole: int = lk.from_units("0.1", 24)
    written: str = lk.to_units(whole, 24)
    assert_type(lk.amount_format()(whole), str)
    assert_type(written, str)
    assert_type(lk.amount_format(6, "USDT", thousands=",")(5), str)
    assert_type(lk.to_arrow(frame), Any)
    assert_type(lk.to_polars(frame), Any)
    assert_type(lk.write_parquet(frame, Path("ft.parquet")), None)
    assert_type(lk.to_excel(frame, Path("ft.xlsx"), sheet_name="ft"), None)
    assert_type(lk.human(frame, digits=None).texts(), pd.DataFrame)
    assert_type(lk.read_parquet("ft.parquet"), pd.DataFrame)


def panels() -> None:
    """Panels ask when told, and give a frame to go on with."""
    assert_type(lk.explore(), lk.widgets.Explorer)
    assert_type(lk.show(lk.ft("alice.near")), lk.widgets.FrameView)
    assert_type(lk.human(lk.ft("alice.near")).texts(), pd.DataFrame)
    assert_type(lk.statement("alice.near", 1, "final", assets="near"), lk.Statement)
    statement = lk.statement("alice.near")
    assert_type(statement.entries, pd.DataFrame)
    assert_type(statement.to_csv("a.csv", "koinly", price=statement.entries), Path)
    assert_type(statement.plot("near"), Axes)
    assert_type(lk.widgets.StatementExplorer("alice.near").press(), lk.widgets.StatementExplorer)
    panel = lk.widgets.AccountExplorer("alice.near")
    assert_type(panel.result, pd.DataFrame | None)


def failing() -> str:
    """Errors are told apart by class, and tell more by attribute."""
    try:
        lk.block(at=1)
    except errors.UnknownBlockError as error:
        assert_type(error.block, object)
        assert_type(error.block_height, int | None)
        return error.remedy
    except errors.RateLimitedError as error:
        assert_type(error.retry_after, float | None)
        return str(error)
    except errors.InvalidRequestError as error:
        assert_type(error.field, str | None)
        return error.sentence
    except lk.LedgerError as error:
        assert_type(error.retryable, bool)
        return error.remedy
    return ""
