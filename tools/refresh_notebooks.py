"""
Run the notebooks and store their outputs, the same bytes in each run.

`python tools/refresh_notebooks.py [NOTEBOOK ...]`; without names, all of notebooks/.

Outputs and execution counts are stored, because nbval compares nothing without them.
Widget state is removed (it may contain typed secrets), and so are widget views, times and patch
versions. A cell tagged `live` is not run.
"""

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"  # contains a random model id
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def quiet_environment() -> None:
    """Remove the environment variables that would show in outputs."""
    for name in [n for n in os.environ if n.startswith("LEDGERKIT_") or n == "MPLBACKEND"]:
        del os.environ[name]


def tidy_cell(position: int, cell: Any) -> None:
    """Remove from a cell what changes with each run."""
    cell["id"] = f"cell-{position:03d}"
    tags = cell["metadata"].get("tags")
    cell["metadata"] = nbformat.from_dict({"tags": tags} if tags else {})
    for output in cell.get("outputs", ()):
        output.get("data", {}).pop(WIDGET_VIEW, None)


def execute(path: Path) -> str:
    """Run one notebook in its own folder and return the text to store."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        skip_cells_with_tag="live",
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    notebook["metadata"] = nbformat.from_dict(METADATA)
    for position, cell in enumerate(notebook["cells"]):
        tidy_cell(position, cell)
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def main(words: list[str]) -> None:
    """Run the named notebooks, or all, and store those that differ."""
    quiet_environment()
    for path in [Path(word).resolve() for word in words] or sorted(FOLDER.glob("*.ipynb")):
        text = execute(path)
        word = "as stored" if text == path.read_text(encoding="utf-8") else "differs"
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {word}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
