"""
A notebook that was recorded over HTTP gives the same outputs from its recordings, without sockets.

Each notebook runs twice: its ledgers are first those of a served world, recorded, and then the
recordings. No recording contains a secret key of the world.
"""

from __future__ import annotations

import json
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbclient import NotebookClient

from ledgerkit.localnet.worlds import open_world
from ledgerkit.transport.recording_files import RecordFile
from tools.refresh_notebooks import FOLDER, tidy_cell

if TYPE_CHECKING:
    from tools.campaigns._tally import Tally

COUNT = 15
SMALL = 1
EXPECTED = ("notebooks with the same outputs",)
_FIRST = "08_"  # the one about sending and waiting, which alone the small edition runs


def outputs(path: Path, mode: str, folder: str) -> list[Any]:
    """Run a notebook, and return the outputs of its cells."""
    notebook = nbformat.read(path, as_version=4)
    root = str(FOLDER.parent)
    setup = (
        f"import sys; sys.path.insert(0, {root!r})\n"
        f"from tools.campaigns._recorded_kernel import install; install({mode!r}, {folder!r})"
    )
    notebook["cells"].insert(0, nbformat.v4.new_code_cell(setup))
    NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        store_widget_state=False,
        skip_cells_with_tag="live",
        coalesce_streams=True,
        allow_errors=True,  # a cell may be about the embedded ledger alone; its error is an output
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    for position, cell in enumerate(notebook["cells"]):
        tidy_cell(position, cell)
    return [cell.get("outputs") for cell in notebook["cells"][1:]]


def without_clock(outputs: list[Any]) -> str:
    """Return outputs as text without the times of this machine's clock, which no request asks."""
    return re.sub(rf"{datetime.now(UTC):%Y-%m-%d} [\d:.]+", "(now)", json.dumps(outputs))


def secrets_of(folder: str) -> list[str]:
    """Return the recordings in a folder that contain a secret key of the demo world."""
    keys = [key.encode() for key in open_world("demo").keys().values()]
    holding = []
    for path in Path(folder).glob("*.lk"):
        texts = [str(item.exchange).encode() + item.body for item in RecordFile(path).records()]
        if any(key in text for text in texts for key in keys):
            holding.append(path.name)
    return holding


def run(count: int, _seed: int, tally: Tally) -> None:
    """Record and replay notebooks."""
    paths = sorted(
        FOLDER.glob("*.ipynb"), key=lambda path: (not path.name.startswith(_FIRST), path)
    )
    for path in paths[:count]:
        with tempfile.TemporaryDirectory() as folder:
            recorded = outputs(path, "record", folder)
            replayed = outputs(path, "replay", folder)
            for name in secrets_of(folder):
                tally.violate(f"{path.name}: {name} contains a secret key")
        cells = [tuple(map(without_clock, pair)) for pair in zip(recorded, replayed, strict=True)]
        if all(before == after for before, after in cells):
            tally.count("notebooks with the same outputs")
        for number, (before, after) in enumerate(cells):
            if before != after:
                tally.violate(f"{path.name}, cell {number}: {before} became {after}")
