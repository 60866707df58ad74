"""A trace reads, saves and shows one transaction's receipt tree."""

from __future__ import annotations

import errno
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from ledgerkit.api.models.transactions import decode_transaction
from ledgerkit.errors import DecodeError, FileError, InvalidRequestError
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.tracing.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

EMPTY = {"final_execution_status": "NONE"}


def outcome(id_: str, *made: str, **told: Any) -> dict[str, Any]:
    usual = {"logs": [], "gas_burnt": 5, "tokens_burnt": "500", "executor_id": "bob.near"}
    status = {"status": {"SuccessValue": ""}, "receipt_ids": list(made)}
    return {"id": id_, "block_hash": f"block of {id_}", "outcome": usual | status | told}


def document(**more: Any) -> dict[str, Any]:
    """Write a call of which the second receipt failed."""
    call = {
        "FunctionCall": {"method_name": "pay", "args": "eyJ0byI6ImMifQ==", "gas": 9, "deposit": "3"}
    }
    body = {"signer_id": "alice.near", "actions": [call]}
    sent = {"predecessor_id": "alice.near", "receiver_id": "bob.near", "receipt": {"Action": body}}
    failure = {"ActionError": {"index": 0, "kind": {"AccountDoesNotExist": {"account_id": "c"}}}}
    return {
        "transaction": {"hash": "T", "signer_id": "alice.near", "receiver_id": "bob.near"},
        "transaction_outcome": outcome("T", "R0", status={"SuccessReceiptId": "R0"}),
        "receipts_outcome": [outcome("R0", "R1"), outcome("R1", status={"Failure": failure})],
        "receipts": [{"receipt_id": id_, **sent} for id_ in ("R0", "R1")],
        **more,
    }


def bytes_of(written: dict[str, Any]) -> bytes:
    """Write JSON the way a person might: indented, in UTF-8."""
    return json.dumps(written, indent=2, ensure_ascii=False).encode()


BLOCKS = {"block of R0": (7, 1771106600329561530), "block of R1": (8, 1771106600329561531)}


def test_one_row_a_receipt_as_the_schema_says():
    """Values land in their columns, exact and typed."""
    frame = Trace.from_json(document(), blocks=BLOCKS).receipts
    assert list(frame.columns) == [column.name for column in SCHEMAS["receipts"]]
    first = frame.iloc[0]
    assert first["receipt_id"] == "R0"
    assert first["method_name"] == "pay"
    assert first["args"] == {"to": "c"}
    assert (first["deposit"], first["gas_attached"], first["gas_burnt"]) == (3, 9, 5)
    assert first["time"] == pd.Timestamp(1771106600329561530, tz="UTC")
    assert first["time"].nanosecond == 530
    assert frame["subtree_gas"].tolist() == [10, 5]
    assert frame["status"].tolist() == ["success_value", "failure"]
    assert frame["error_kind"].isna().tolist() == [True, False]
    assert frame["error_kind"].iloc[1] == "AccountDoesNotExist"
    assert frame["parent_id"].isna().tolist() == [True, False]


def test_bytes_text_and_decoded_json_are_the_same():
    """A document may come as bytes, as text or decoded."""
    written = document()
    frames = [
        Trace.from_json(data).receipts for data in (bytes_of(written), json.dumps(written), written)
    ]
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frame, frames[0])


def test_summary():
    """Hash, signer, verdict and notes are at hand."""
    found = Trace.from_json(document())
    assert (found.tx_hash, found.signer_id) == ("T", "alice.near")
    assert found.verdict == "succeeded_with_failed_receipts"
    assert len(found.notes) == 1  # a lone document tells no rules, and so no rewards
    assert found.notes[0].endswith("not counted: R0, R1")
    assert repr(found) == "<Trace T of alice.near: 2 receipts, succeeded_with_failed_receipts>"
    assert repr(Trace.from_json(EMPTY)) == "<Trace None of None: 0 receipts, pending>"


def test_frames_are_kept_and_the_verdict_is_not_theirs():
    """A frame is made once and is the caller's; what is written into it changes no verdict."""
    found = Trace.from_json(document())
    assert found.receipts is found.receipts
    found.receipts["note"] = "mine"
    found.receipts.loc[:, "status"] = "success_value"
    found.receipts.loc[:, "receipt_id"] = "none"
    assert found.receipts["note"].tolist() == ["mine", "mine"]
    assert found.verdict == "succeeded_with_failed_receipts"
    assert found.edges["child_id"].tolist() == ["R1"]


def test_save_keeps_the_bytes(tmp_path: Path):
    """A saved document is the one that was read, byte for byte; loading gives equal frames."""
    data = b"\n" + bytes_of({"jsonrpc": "2.0", "result": document(note="\u00e9"), "id": "x"})
    found = Trace.from_json(data)
    path = found.save(tmp_path / "trace.json")
    assert path.read_bytes() == data
    again = Trace.load(path)
    pd.testing.assert_frame_equal(again.receipts, found.receipts)
    pd.testing.assert_frame_equal(again.edges, found.edges)
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace.json"]


def test_save_follows_no_link(tmp_path: Path):
    """Links at the path, and at a temporary name that could be guessed, are not written through."""
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    for name in ("trace.json", f".trace.json.{os.getpid()}.part"):
        (tmp_path / name).symlink_to(mine)
    saved = Trace.from_json(bytes_of(document())).save(tmp_path / "trace.json")
    assert mine.read_text() == "mine"
    assert not saved.is_symlink()
    assert Trace.load(saved).verdict == Trace.from_json(bytes_of(document())).verdict


@pytest.mark.parametrize("wrapped", [False, True])
def test_heights_are_saved_with_the_document(tmp_path: Path, *, wrapped: bool):
    """Heights from elsewhere are saved as one more member; loaded frames equal the live ones."""
    written = {"result": document()} if wrapped else document()
    found = Trace.from_json(bytes_of(written), blocks=BLOCKS)
    path = found.save(tmp_path / "trace.json")
    saved = json.loads(path.read_bytes())
    assert saved.pop("ledgerkit") == {
        "blocks": {name: list(place) for name, place in BLOCKS.items()}
    }
    assert saved == written
    again = Trace.load(path)
    assert again.receipts["block_height"].tolist() == [7, 8]
    pd.testing.assert_frame_equal(again.receipts, found.receipts)
    assert again.save(tmp_path / "second.json").read_bytes() == path.read_bytes()


def test_the_network_is_saved_with_the_document(tmp_path: Path):
    """A trace that is read from a file names the network that it came from."""
    data = bytes_of(document())
    live = Trace(decode_transaction(data, request="T"), data, attrs={"network": "mainnet"})

    loaded = Trace.load(live.save(tmp_path / "trace.json"))
    assert loaded.receipts.attrs["network"] == "mainnet"
    assert "network: <strong>mainnet</strong>" in loaded._repr_html_()
    assert (
        loaded.save(tmp_path / "second.json").read_bytes() == (tmp_path / "trace.json").read_bytes()
    )
    assert "network:" not in Trace.from_json(data)._repr_html_()


def test_a_trace_is_saved_to_a_path_only(tmp_path: Path):
    """A place that cannot be written raises FileError, and what is no path InvalidRequestError."""
    trace = Trace.from_json(document())
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "no" / "trace.json", tmp_path / "file" / "trace.json"):
        with pytest.raises(FileError, match="Could not write"):
            trace.save(path)
    for other in (7, None, b"trace.json", "a\0b", "\ud800"):
        with pytest.raises(InvalidRequestError, match=r"path .* is not valid"):
            trace.save(other)  # type: ignore[arg-type]  # refused
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """If writing breaks off, the file of that name keeps its content and no part is left."""
    path = tmp_path / "trace.json"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(type(path), "replace", full)
    with pytest.raises(FileError, match=r"Could not write .*trace\.json: No space left on device"):
        Trace.from_json(document()).save(path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace.json"]


def test_block_hashes_are_those_still_without_height():
    """Each block of unknown height is named once, and none that is known."""
    assert Trace.from_json(document()).block_hashes == ["block of R0", "block of R1"]
    assert Trace.from_json(document(), blocks=dict([*BLOCKS.items()][:1])).block_hashes == [
        "block of R1"
    ]
    assert Trace.from_json(document(), blocks=BLOCKS).block_hashes == []
    assert Trace.from_json(EMPTY).block_hashes == []


def test_one_of_several_transactions():
    """A Transactions API document with several transactions needs a hash."""
    several = {"transactions": [{"transaction": {"hash": name}} for name in ("T1", "T2")]}
    assert Trace.from_json(several, tx_hash="T2").tx_hash == "T2"


def test_a_wrong_document_is_refused_at_once():
    """A wrong type far inside is found when the trace is made, not when a frame is looked at."""
    written = document()
    written["receipts_outcome"][1]["outcome"]["gas_burnt"] = "lots"
    with pytest.raises(DecodeError) as refused:
        Trace.from_json(written)
    assert refused.value.path == "$.receipts_outcome[1].outcome.gas_burnt"


def test_a_later_error_of_a_document_has_the_remedy_of_a_document():
    """An amount is read with its frame; asking a service again does not repair a file."""
    written = document()
    written["transaction"]["actions"] = [{"Transfer": {"deposit": "1 NEAR"}}]
    data = json.dumps(written).encode()
    answered = Trace(decode_transaction(data, request="T"), data)
    for trace, advice in ((Trace.from_json(written), "Check that"), (answered, "Try again")):
        for read in (trace.explain, trace.headline):
            with pytest.raises(DecodeError, match="1 NEAR") as refused:
                read()
            assert refused.value.remedy.startswith(advice)


def test_a_missing_networkx_names_its_extra(monkeypatch: pytest.MonkeyPatch):
    """Without the library the error says how to install it."""
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(InvalidRequestError) as refused:
        Trace.from_json(document()).to_networkx()
    assert 'pip install "ledgerkit[graph]"' in str(refused.value)


@pytest.mark.parametrize("kind", ["tree", "timeline", "gas", "flow"])
def test_each_kind_of_plot_is_drawn_where_it_is_asked(kind: str):
    """A plot goes to the axes that are given."""
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert Trace.from_json(document(), blocks=BLOCKS).plot(kind, ax) is ax
    assert ax.has_data() or ax.texts or ax.patches


def test_an_unknown_plot_is_refused():
    """The sentence lists the kinds there are."""
    with pytest.raises(InvalidRequestError) as refused:
        Trace.from_json(document()).plot("pie")
    assert "tree, timeline, gas, flow" in str(refused.value)


def test_attrs_carry_the_provenance():
    """Provenance given to a trace travels with both frames."""
    plain = Trace.from_json(document())
    assert plain.receipts.attrs == {"schema": "receipts"}
    data = bytes_of(document())
    live = Trace(decode_transaction(data, request="T"), data, attrs={"network": "mainnet"})
    assert live.receipts.attrs == {"network": "mainnet", "schema": "receipts"}
    assert live.edges.attrs == {"network": "mainnet", "schema": "edges"}


@pytest.mark.parametrize("name", ["missing/trace.json", "x" * 300, "folder"])
def test_a_file_that_cannot_be_written_is_a_file_error(tmp_path: Path, name: str):
    """Saving to a missing folder, to too long a name or to a folder names the path."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="Could not write"):
        Trace.from_json(document()).save(tmp_path / name)
    assert list((tmp_path / "folder").iterdir()) == []


@pytest.mark.parametrize("name", ["a\0b", "\ud800"], ids=["null", "surrogate"])
def test_a_path_that_no_system_has_is_refused(name: str):
    """A null character or a lone surrogate in a path is refused like any other argument."""
    with pytest.raises(InvalidRequestError, match=r"path .* is not valid: expected the path"):
        Trace.from_json(document()).save(name)
