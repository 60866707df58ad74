"""`follow`: the blocks of a chain as they come, and the collection that they are stored in."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import ledgerkit as lk
from ledgerkit import progress
from ledgerkit.block_data import contents
from ledgerkit.block_data.following import DocumentFeed
from ledgerkit.cli import main
from ledgerkit.errors import InvalidRequestError, UnmatchedResponseError
from ledgerkit.localnet.worlds import open_world
from tests.collected_blocks import heights_of, read_rows
from tests.unit.localnet.ledger import Ledger, do

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ledgerkit.localnet.world import World

RPC_VIEWS = ("blocks", "chunks", "transactions", "receipts", "events", "transfers")
VIEWS = (*RPC_VIEWS, "outcomes", "actions", "balances", "data_receipts")
UNTYPED: Any = lk  # as whoever calls it without a type checker


@pytest.fixture
def ledger() -> Iterator[lk.Ledger]:
    """Connect to a world of its own, in which nothing happens; heights 15 to 17 are skipped."""
    world = open_world("empty")
    world.advance(14 - (world.chain.head.height - world.chain.genesis.height))
    world.advance(13, skip=3)
    with lk.connect("local", world=world, make_default=False) as opened:
        yield opened


def stored(out: Path, view: str) -> pd.DataFrame:
    """Read a table of a collection, without the times at which it was read."""
    return read_rows(lk.open_collection(out), view)


# The blocks -------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["documents", "indexer_rpc"])
def test_blocks_come_once_and_in_order(ledger: lk.Ledger, source: Any) -> None:
    """Old blocks come first, then those that are produced while they are waited for."""
    heights, final = heights_of(ledger.world), ledger.world.chain.final.height
    n_blocks = len(heights) + 20
    blocks = list(lk.follow("genesis", source=source, max_blocks=n_blocks, ledger=ledger))
    new = range(final + 1, final + 21)
    assert [block.height for block in blocks] == [*heights, *new]
    assert [block.behind for block in blocks] == [*(final - each for each in heights), *[0] * 20]
    assert ledger.world.chain.final.height == final + 20
    assert blocks[15].time == pd.Timestamp(blocks[15]["blocks"]["time"][0])


def test_the_last_final_block_is_the_first(ledger: lk.Ledger) -> None:
    """Without a start it begins at the head, with blocks and their transactions."""
    final = ledger.world.chain.final.height
    block = next(lk.follow(ledger=ledger))
    assert (block.height, block.behind, block.waiting) == (final, 0, None)
    assert list(block) == ["blocks", "transactions"]
    assert repr(block) == f"<FollowedBlock {final} of local, 0 behind: blocks 1, transactions 0>"
    attrs = {"network": "local", "block_height": final, "behind": 0, "schema": "blocks"}
    assert block["blocks"].attrs.items() >= attrs.items()


def test_one_view_yields_its_frames(ledger: lk.Ledger) -> None:
    """With the name of a view, frames are yielded, which name their block."""
    final = ledger.world.chain.final.height
    first, second = lk.follow(views="chunks", max_blocks=2, ledger=ledger)
    assert first.columns.tolist() == lk.schema("chunks")["name"].tolist()
    assert [frame.attrs["block_height"] for frame in (first, second)] == [final, final + 1]


@pytest.mark.parametrize("source", ["documents", "indexer_rpc"])
def test_frames_are_those_of_the_node(busy: World, source: Any, tmp_path: Path) -> None:
    """The rows of every block together are those that `collect_blocks` reads by JSON-RPC."""
    first, last = busy.chain.genesis.height + 1, busy.chain.final.height + 1
    with lk.connect("local", world=busy, make_default=False) as ledger:
        blocks = list(lk.follow(first, RPC_VIEWS, source=source, stop=last, ledger=ledger))
        out = tmp_path / "run"
        lk.collect_blocks(first, last, RPC_VIEWS, out, source="rpc", progress=False, ledger=ledger)
    assert len(blocks) == lk.open_collection(out).counts["ok"]
    for view in RPC_VIEWS:
        frames = [block[view] for block in blocks]
        for frame in frames:
            frame.attrs.clear()
        together = pd.concat([frame for frame in frames if len(frame)], ignore_index=True)
        assert_frame_equal(together, stored(out, view))


# Where it ends ----------------------------------------------------------------------------


def test_it_stops_before_a_block(ledger: lk.Ledger) -> None:
    """`stop` is a height, also a skipped one, a hash, a finality or a time to come."""
    start, final = ledger.world.chain.genesis.height, ledger.world.chain.final
    options: dict[str, Any] = {"views": "blocks", "ledger": ledger}
    stop: object
    for stop in (start + 3, str(ledger.world.chain.by_height(start + 3).hash)):  # type: ignore[union-attr]  # it is there
        assert len(list(lk.follow(start, stop=stop, **options))) == 3
    assert len(list(lk.follow(start + 10, stop=start + 16, **options))) == 5
    *_, last = lk.follow(start + 10, stop="final", **options)
    assert last.attrs["block_height"] == final.height - 1
    begin = pd.Timestamp(final.timestamp_ns, tz="UTC")
    stop = begin + pd.Timedelta(seconds=5)
    *_, last = lk.follow(start + 10, stop=stop, **options)
    assert begin < last["time"][0] < stop
    assert list(lk.follow(start + 10, stop=start + 10, **options)) == []


def test_closing_the_ledger_ends_it(ledger: lk.Ledger) -> None:
    """After the ledger is closed the iterator raises, rather than to end like a finished one."""
    blocks = lk.follow(ledger=ledger)
    next(blocks)
    ledger.close()
    with pytest.raises(InvalidRequestError, match="this ledger is closed"):
        next(blocks)


def test_it_waits_for_a_long_receipt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A block comes with the known rows if receipts take too long; the next call completes it."""
    monkeypatch.setattr(contents, "_MAX_BYTES", 20_000)
    node = Ledger("ann.near", scripts=("s.near",), yield_timeout=40)
    node.send("ann.near", "s.near", do(["wait", "w", [["results"]]], ["give", "w"]))
    first = node.world.advance().height
    out, views = tmp_path / "run", ["blocks", "receipts"]
    with lk.connect("local", world=node.world, make_default=False) as ledger:
        options: dict[str, Any] = {"out": out, "progress": False, "ledger": ledger}
        blocks = list(lk.follow(first, views, max_blocks=3, **options))
        assert [block.height for block in blocks] == [first, first + 1, first + 2]
        assert "is not final yet" in str(blocks[0].waiting)
        assert "not_executed" in blocks[0]["receipts"]["status"].tolist()
        assert lk.open_collection(out).counts == {"waiting": 1, "ok": 2}
        node.world.advance(50)
        monkeypatch.undo()
        [block] = lk.follow(views=views, max_blocks=1, **options)
        lk.collect_blocks(
            first, first + 4, views, tmp_path / "whole", progress=False, ledger=ledger
        )
    assert block.height == first + 3
    assert lk.open_collection(out).counts == {"ok": 4}
    for view in views:
        assert_frame_equal(stored(out, view), stored(tmp_path / "whole", view))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"start": "tomorrow"}, "start"),
        ({"views": "reciepts"}, "receipts"),
        ({"views": []}, "views"),
        ({"max_blocks": 0}, "max_blocks"),
        ({"stop": "never"}, "stop"),
        ({"out": 3}, "out"),
    ],
)
def test_malformed_arguments_are_refused_at_once(
    options: dict[str, Any], reason: str, ledger: lk.Ledger
) -> None:
    """An argument is checked when `follow` is called, and the error names it."""
    with pytest.raises(InvalidRequestError, match=reason):
        UNTYPED.follow(**options, ledger=ledger)


def test_a_network_without_block_documents_is_refused() -> None:
    """There is nothing to follow without block documents, and the error says what to pass."""
    url = "http://127.0.0.1:9"
    with (
        lk.connect("lab", rpc_url=url, api_url=url, make_default=False) as ledger,
        pytest.raises(InvalidRequestError, match="blocks_url="),
    ):
        lk.follow(ledger=ledger)


def test_a_line_says_how_far_behind_it_is(
    ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a terminal a line names the last block and the wait; it is gone when a block comes."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "_DELAY_S", 0.0)
    final = ledger.world.chain.final.height
    blocks = lk.follow(final - 1, max_blocks=3, ledger=ledger)
    for text in (
        f"waiting for block {final - 1:,}",
        f"block {final - 1:,}, 1 behind the head",
        f"waiting for block {final + 1:,}",
    ):
        next(blocks)
        written = capsys.readouterr().err
        assert f"follow local: {text}" in written
        assert written.endswith(" \r")
    assert list(blocks) == []
    assert capsys.readouterr().err.endswith(" \r")


# A folder ---------------------------------------------------------------------------------


def test_the_next_call_continues(ledger: lk.Ledger, tmp_path: Path) -> None:
    """Several calls store what `collect_blocks` stores, skipped heights among it."""
    start, out = ledger.world.chain.genesis.height + 1, tmp_path / "run"
    options: dict[str, Any] = {"out": out, "progress": False, "ledger": ledger}
    heights: list[int] = []
    for count in (1, 13, 9, 12):
        heights += [each.height for each in lk.follow(start, VIEWS, max_blocks=count, **options)]
        assert lk.open_collection(out).finished
    whole = tmp_path / "whole"
    lk.collect_blocks(start, heights[-1] + 1, VIEWS, whole, progress=False, ledger=ledger)
    assert heights == heights_of(ledger.world)[1:]
    assert lk.open_collection(out).counts == {"ok": 35, "skipped": 3}
    for view in (*VIEWS, "subjects", "errors"):
        assert_frame_equal(stored(out, view), stored(whole, view))


def test_closing_stores_the_blocks(ledger: lk.Ledger, tmp_path: Path) -> None:
    """A ``with`` block, `close` and the end of the iterator each store what was yielded."""
    options: dict[str, Any] = {"out": tmp_path / "run", "progress": False, "ledger": ledger}
    with lk.follow(views="blocks", **options) as frames:
        next(frames)
    blocks = lk.follow(views="blocks", **options)
    next(blocks)
    blocks.close()
    blocks.close()
    assert list(blocks) == []
    del frames, blocks
    next(lk.follow(views="blocks", **options))
    gc.collect()
    assert lk.open_collection(tmp_path / "run").counts == {"ok": 3}


def test_the_end_of_the_process_stores_the_blocks(tmp_path: Path) -> None:
    """An iterator that a script leaves open is closed at its end."""
    script = (
        "import ledgerkit as lk; lk.connect('local');"
        f" blocks = lk.follow(views='blocks', out={str(tmp_path / 'run')!r}); next(blocks); 1 / 0"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert b"ZeroDivisionError" in done.stderr
    assert lk.open_collection(tmp_path / "run").counts == {"ok": 1}


def test_a_folder_of_another_chain_is_refused(ledger: lk.Ledger, tmp_path: Path) -> None:
    """The first new block must follow on the last stored one."""
    options: dict[str, Any] = {"views": "blocks", "out": tmp_path / "run", "progress": False}
    list(lk.follow(max_blocks=2, ledger=ledger, **options))
    other = open_world("empty", seed=5)
    other.advance(ledger.world.chain.head.height - other.chain.head.height + 3)
    with lk.connect("local", world=other, make_default=False) as wrong:
        blocks = lk.follow(ledger=wrong, **options)
        with pytest.raises(UnmatchedResponseError, match="is not of the same chain"):
            next(blocks)
    assert lk.open_collection(tmp_path / "run").counts == {"ok": 2}


def test_a_folder_of_another_run_is_refused(ledger: lk.Ledger, tmp_path: Path) -> None:
    """Other views need another folder."""
    list(lk.follow(views="blocks", out=tmp_path, max_blocks=1, progress=False, ledger=ledger))
    with pytest.raises(InvalidRequestError, match="views"):
        lk.follow(views="chunks", out=tmp_path, ledger=ledger)


def test_a_second_writer_is_refused(ledger: lk.Ledger, tmp_path: Path) -> None:
    """While another thread follows into a folder, nobody else does."""
    options: dict[str, Any] = {"out": tmp_path / "run", "progress": False, "ledger": ledger}
    is_waiting, is_over = threading.Event(), threading.Event()

    def show(*_: object) -> tuple[()]:
        is_waiting.set()
        is_over.wait(20)
        return ()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DocumentFeed, "_read_next", show)
        blocks = lk.follow(**options)
        reader = threading.Thread(target=next, args=(blocks, None))
        reader.start()
        assert is_waiting.wait(20)
        with pytest.raises(InvalidRequestError, match="writing to"):
            next(lk.follow(**options))
        patch.undo()
        is_over.set()
        reader.join()
    blocks.close()
    assert lk.open_collection(tmp_path / "run").counts == {"ok": 1}


# The command ------------------------------------------------------------------------------


def test_the_command_prints_a_line_for_each_block(capsys: pytest.CaptureFixture[str]) -> None:
    """Each block is a line with its time, the rows of its views, and how far behind it is."""
    command = ["follow", "180000046", "--network", "local", "--max-blocks", "3"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == [
        "180000046  2026-08-01 00:00:27  0 transactions  4 behind",
        "180000047  2026-08-01 00:00:28  2 transactions  3 behind",
        "180000048  2026-08-01 00:00:28  0 transactions  2 behind",
    ]


def test_the_command_prints_rows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """CSV has one header, JSON an object a line; a folder is written as well."""
    command = ["follow", "180000046", "--network", "local", "--max-blocks", "3"]
    command += ["--views", "transactions", "--columns", "block_height,signer_id"]
    assert main([*command, "--format", "csv", "--out", str(tmp_path / "run")]) == 0
    rows = ["block_height,signer_id", "180000047,mallory.near", "180000047,alice.near"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == rows[0]
    assert len(lines) == 3
    assert lk.open_collection(tmp_path / "run").counts == {"ok": 3}
    assert main([*command, "--format", "json"]) == 0
    assert capsys.readouterr().out.count('{"block_height":180000047,"signer_id":') == 2


@pytest.mark.parametrize(
    "options",
    [["--columns", "block_height"], ["--format", "csv", "--views", "blocks,chunks"]],
)
def test_the_command_refuses_what_it_would_not_print(options: list[str]) -> None:
    """Columns need rows, and rows are those of one view."""
    assert main(["follow", "--network", "local", *options]) == 2
