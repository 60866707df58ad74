"""The stored notebooks: run, clean, and the same bytes after each refresh."""

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
    """Read one notebook as the JSON that it is."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def code_cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells that run here; one tagged `live` asks a public network."""
    return [
        cell
        for cell in load(path)["cells"]
        if cell["cell_type"] == "code" and "live" not in cell["metadata"].get("tags", [])
    ]


def test_there_are_notebooks():
    """An empty folder must not make the other tests here pass with nothing to check."""
    assert PATHS != []


def test_notebooks_are_numbered():
    """A number is a notebook's place in the series: none is missing, none is there twice."""
    assert [int(path.name[:2]) for path in PATHS] == list(range(1, len(PATHS) + 1))


@each_notebook
def test_the_readme_leads_to_it(path):
    """Who reads the README finds each of them."""
    assert f"](notebooks/{path.name})" in (ROOT / "README.md").read_text(encoding="utf-8")


@each_notebook
def test_links_lead_to_notebooks_that_are_there(path):
    """A notebook that is renamed takes the links to it along."""
    prose = "".join(text for cell in load(path)["cells"] for text in cell["source"])
    linked = re.findall(r"\]\((\d\d_\w+\.ipynb)\)", prose)

    assert [name for name in linked if not (FOLDER / name).exists()] == []


@each_notebook
def test_it_opens_with_a_title_and_a_ledger(path):
    """One title; then the embedded ledger, and the line that asks a public network instead."""
    cells = load(path)["cells"]
    opening = "".join(code_cells(path)[0]["source"])

    assert "".join(cells[0]["source"]).startswith("# ")
    assert 'lk.connect("local"' in opening
    assert re.search(r'^# .*lk\.connect\("(mainnet|testnet)"\)', opening, re.MULTILINE)


@each_notebook
def test_outputs_tell_nothing_of_the_run(path):
    """No address of an object, no time of reading and no path of a machine is in an output."""
    outputs = [cell["outputs"] for cell in code_cells(path)]

    assert re.findall(r"at 0x[0-9a-f]+|fetched_at|/tmp/|/(?:home|root)/", json.dumps(outputs)) == []


@each_notebook
def test_every_code_cell_was_run_in_order(path):
    """Nothing is compared in a cell that was never run, so none is stored that way."""
    counts = [cell["execution_count"] for cell in code_cells(path)]

    assert counts == list(range(1, len(counts) + 1))
    assert any(cell["outputs"] for cell in code_cells(path))


@each_notebook
def test_no_cell_ends_in_an_error(path):
    """An error is stored only where its cell says that it is what there is to see."""
    failed = [
        cell["id"]
        for cell in code_cells(path)
        if any(output["output_type"] == "error" for output in cell["outputs"])
        and "raises-exception" not in cell["metadata"].get("tags", [])
    ]

    assert failed == []


@each_notebook
def test_nothing_of_one_run_is_kept(path):
    """Widget state could hold a key, and times and random ids would change with every run."""
    notebook = load(path)
    extra = {key for cell in notebook["cells"] for key in cell["metadata"]} - {"tags"}

    assert sorted(notebook["metadata"]) == ["kernelspec", "language_info"]
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    assert extra == set()
    assert "widget-view" not in path.read_text(encoding="utf-8")


@each_notebook
def test_cell_ids_are_their_places(path):
    """A random id would make a file differ that says the same."""
    ids = [cell["id"] for cell in load(path)["cells"]]

    assert ids == [f"cell-{place:03d}" for place in range(len(ids))]


@each_notebook
def test_no_cell_escapes_the_comparison(path):
    """Every output is compared; a cell may be skipped only where it is live."""
    tags = [tag for cell in code_cells(path) for tag in cell["metadata"].get("tags", [])]
    source = "".join("".join(cell["source"]) for cell in code_cells(path))

    assert [tag for tag in tags if tag.startswith("nbval-")] == []
    assert re.findall(r"#\s*NBVAL_\w+", source) == []
