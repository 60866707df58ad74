"""The stored notebooks: complete, clean, and the same bytes after each refresh."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def code_cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells that run here; those tagged `live` use a public network."""
    return [
        cell
        for cell in load(path)["cells"]
        if cell["cell_type"] == "code" and "live" not in cell["metadata"].get("tags", [])
    ]


def test_there_are_notebooks():
    """The folder is not empty, so the other tests here check something."""
    assert PATHS != []


def test_notebooks_are_numbered():
    """The notebooks are numbered from 1, without gaps or repeats."""
    assert [int(path.name[:2]) for path in PATHS] == list(range(1, len(PATHS) + 1))


@each_notebook
def test_the_readme_links_to_it(path):
    """The README links to each notebook."""
    assert f"](notebooks/{path.name})" in (ROOT / "README.md").read_text(encoding="utf-8")


@each_notebook
def test_its_links_lead_to_notebooks(path):
    """Each link to a notebook leads to one."""
    text = "".join(line for cell in load(path)["cells"] for line in cell["source"])
    linked = re.findall(r"\]\((\d\d_\w+\.ipynb)\)", text)

    assert [name for name in linked if not (FOLDER / name).exists()] == []


@each_notebook
def test_it_opens_with_a_title_and_a_ledger(path):
    """A title, then the embedded ledger, and the line for a public network."""
    cells = load(path)["cells"]
    opening = "".join(code_cells(path)[0]["source"])

    assert "".join(cells[0]["source"]).startswith("# ")
    assert 'lk.connect("local"' in opening
    assert re.search(r'^# .*lk\.connect\("(mainnet|testnet)"\)', opening, re.MULTILINE)


@each_notebook
def test_outputs_do_not_depend_on_the_run(path):
    """No output contains an object's address, a time of reading or a machine's path."""
    outputs = [cell["outputs"] for cell in code_cells(path)]

    assert re.findall(r"at 0x[0-9a-f]+|fetched_at|/tmp/|/(?:home|root)/", json.dumps(outputs)) == []


@each_notebook
def test_every_code_cell_was_run_in_order(path):
    """Each code cell was run, in order: nbval compares nothing in other cells."""
    counts = [cell["execution_count"] for cell in code_cells(path)]

    assert counts == list(range(1, len(counts) + 1))
    assert any(cell["outputs"] for cell in code_cells(path))


@each_notebook
def test_no_cell_ends_in_an_error(path):
    """An error is stored only in cells tagged `raises-exception`."""
    failed = [
        cell["id"]
        for cell in code_cells(path)
        if any(output["output_type"] == "error" for output in cell["outputs"])
        and "raises-exception" not in cell["metadata"].get("tags", [])
    ]

    assert failed == []


@each_notebook
def test_no_metadata_of_a_run_is_stored(path):
    """Widget state could hold a key; times and random ids would change with every run."""
    notebook = load(path)
    extra = {key for cell in notebook["cells"] for key in cell["metadata"]} - {"tags"}

    assert sorted(notebook["metadata"]) == ["kernelspec", "language_info"]
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    assert extra == set()
    assert "widget-view" not in path.read_text(encoding="utf-8")


@each_notebook
def test_cell_ids_are_their_places(path):
    """Cell ids are not random, so that an unchanged notebook keeps its bytes."""
    ids = [cell["id"] for cell in load(path)["cells"]]

    assert ids == [f"cell-{place:03d}" for place in range(len(ids))]


@each_notebook
def test_no_cell_escapes_the_comparison(path):
    """Every output is compared; only live cells may be skipped."""
    tags = [tag for cell in code_cells(path) for tag in cell["metadata"].get("tags", [])]
    source = "".join("".join(cell["source"]) for cell in code_cells(path))

    assert [tag for tag in tags if tag.startswith("nbval-")] == []
    assert re.findall(r"#\s*NBVAL_\w+", source) == []
