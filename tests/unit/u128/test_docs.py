"""What docs/u128.md shows is what happens: its examples are run, and their output compared."""

import doctest
import re
from pathlib import Path

import pandas as pd
import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "u128.md"


# Dask sets its indexes in a way that pandas 4 will not know.
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.set_index")
def test_examples_give_the_output_shown(tmp_path, monkeypatch):
    """Every example of the page, in its order, prints what stands below it."""
    for library in ("pyarrow", "duckdb", "dask.dataframe"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```pycon\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []

    with pd.option_context("display.width", 100, "display.max_columns", 20):
        result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)

    assert "".join(report) == ""
    assert result.attempted > 30
