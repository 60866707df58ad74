"""A plot as the last line of a cell: the picture, and no line about the axes."""

from __future__ import annotations

from typing import Any

import pytest

START = """
import ledgerkit as lk
from ledgerkit import plots
frame = lk.exposure("alice.near", ledger=lk.connect("local"))
"""


@pytest.fixture(scope="module")
def cells() -> list[Any]:
    """Run cells in a kernel, and return their outputs."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    sources = [
        START,
        "plots.exposure(frame)",
        "ax = plots.exposure(frame)\nax.set_title('my title')\nax",
        "ax",
        "import matplotlib.pyplot as plt\nplots.exposure(frame, ax=plt.figure().add_subplot())",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return [cell["outputs"] for cell in notebook["cells"]]


def kinds(outputs: list[Any]) -> list[str]:
    data = [output.get("data", {}) for output in outputs]
    return ["picture" if "image/png" in one else str(one.get("text/plain")) for one in data]


def test_a_plot_is_a_picture_only(cells: list[Any]):
    """The cell has one output; `<Axes: …>` is not written above it."""
    assert kinds(cells[1]) == ["picture"]


def test_the_axes_can_be_changed_and_shown_again(cells: list[Any]):
    """The result is the axes of matplotlib; in a later cell they show their picture again."""
    assert kinds(cells[2]) == ["picture"]
    assert kinds(cells[3]) == ["picture"]


def test_axes_of_the_user_stay_as_they_are(cells: list[Any]):
    """Axes that the user made are displayed as matplotlib displays them."""
    assert [kind.partition(":")[0] for kind in kinds(cells[4])] == ["<Axes", "picture"]
