"""
Run the notebooks and store their outputs, the same bytes in each run.

`python tools/refresh_notebooks.py [--check] [NOTEBOOK ...]`; without names, all of notebooks/.
With --check nothing is written, and the exit code is 1 if a stored file differs.

Outputs and execution counts are stored, because nbval compares nothing without them.
Widget state is removed (it may contain typed secrets), and so are widget views, times and patch
versions. A cell tagged `live` is not run.
"""

import argparse
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


def refresh(path: Path, *, write: bool) -> bool:
    """Run one notebook, store it if `write`, and return True if it differs from the stored one."""
    text = execute(path)
    differs = text != path.read_text(encoding="utf-8")
    if differs and write:
        path.write_text(text, encoding="utf-8")
    print(f"{path.name}: {'differs' if differs else 'as stored'}", flush=True)
    return differs


def main(arguments: list[str] | None = None) -> int:
    """Refresh or check the named notebooks and return the exit code."""
    parser = argparse.ArgumentParser(description="Run notebooks and store repeatable outputs.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 on a change")
    parser.add_argument("notebooks", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    quiet_environment()
    paths = options.notebooks or sorted(FOLDER.glob("*.ipynb"))
    changed = [refresh(path.resolve(), write=not options.check) for path in paths]
    return int(options.check and any(changed))


if __name__ == "__main__":
    sys.exit(main())
