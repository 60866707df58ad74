"""u128 is known to pandas whichever of the two is imported first, and costs nothing before."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ARRANGE = "import ledgerkit.u128.registration; ledgerkit.u128.registration.register()"
DASK = "import dask.dataframe as dd"
USE = "import json; print(json.dumps(str(pd.array(['1'], dtype='u128').dtype)))"


def run(*lines, path=""):
    """Run lines in a fresh interpreter, where warnings are errors, and decode what it prints."""
    command = [sys.executable, "-W", "error", "-c", "\n".join(lines)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"PYTHONPATH": f"{path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "order",
    [
        (ARRANGE, "import pandas as pd"),
        ("import pandas as pd", ARRANGE),
        (ARRANGE, "from pandas.api.types import pandas_dtype", "import pandas as pd"),
        (ARRANGE, "import ledgerkit.u128.array", "import pandas as pd"),
        (ARRANGE, "import ledgerkit.frames.build", "import pandas as pd"),
    ],
    ids=["ledgerkit first", "pandas first", "a part of pandas", "the array", "through ledgerkit"],
)
def test_any_order_registers_the_dtype(order):
    """After both imports the dtype has its name, whatever came first."""
    assert run(*order, USE) == "u128"


@pytest.mark.parametrize("order", [(ARRANGE, DASK), (DASK, ARRANGE)], ids=["first", "last"])
def test_any_order_registers_the_dtype_with_dask(order):
    """Workers of a cluster import ledgerkit when a column arrives, after Dask or before it."""
    pytest.importorskip("dask", reason="the extra `dask`")
    frame = "dd.from_pandas(pd.DataFrame({'n': pd.array(['1'], dtype='u128')}), npartitions=1)"
    show = f"print(json.dumps(str(({frame}['n'] + 1).max().compute())))"
    assert run(*order, "import json, pandas as pd", show) == "2"


def test_nothing_is_loaded_before_pandas_is():
    """Arranging loads neither pandas nor numpy nor the array."""
    found = run(
        "import json, sys",
        ARRANGE,
        "heavy = ('pandas', 'numpy', 'ledgerkit.u128.array')",
        "print(json.dumps([name for name in heavy if name in sys.modules]))",
    )
    assert found == []


def test_the_finder_steps_aside():
    """Once pandas is there, no finder is left, and pandas keeps its own loader."""
    found = run(
        "import json, sys",
        ARRANGE,
        "before = len(sys.meta_path)",
        "ledgerkit.u128.registration.register()",
        "again = len(sys.meta_path)",
        "import pandas as pd",
        "loaders = [type(l).__name__ for l in (pd.__loader__, pd.__spec__.loader)]",
        "print(json.dumps([again - before, len(sys.meta_path) - before, loaders]))",
    )
    assert found == [0, -1, ["SourceFileLoader", "SourceFileLoader"]]


def test_looking_for_pandas_is_not_loading_it():
    """Whoever only asks whether pandas is installed does not use the hook up."""
    found = run(
        "import importlib.util",
        ARRANGE,
        "assert importlib.util.find_spec('pandas').name == 'pandas'",
        "import pandas as pd",
        USE,
    )
    assert found == "u128"


def test_the_loader_of_pandas_has_the_members_of_its_own():
    """Before pandas is imported, tools find its file, its source and its data as usual."""
    found = run(
        "import importlib.util, json",
        "names = ('get_filename', 'is_package', 'get_code', 'path', 'name')",
        "plain = importlib.util.find_spec('pandas').loader",
        ARRANGE,
        "loader = importlib.util.find_spec('pandas').loader",
        "assert loader.get_filename('pandas') == plain.get_filename('pandas')",
        "assert loader.is_package('pandas')",
        "assert 'import' in loader.get_source('pandas')",
        "print(json.dumps([name for name in names if not hasattr(loader, name)]))",
    )
    assert found == []


def test_a_pandas_that_fails_fails_by_itself(tmp_path):
    """A broken pandas raises its own error; once mended, the dtype is registered."""
    (tmp_path / "pandas.py").write_text("raise ImportError('broken')\n")
    found = run(
        "import sys",
        ARRANGE,
        "try:",
        "    import pandas as pd",
        "except ImportError as error:",
        "    assert str(error) == 'broken'",
        f"sys.path.remove({str(tmp_path)!r})",
        "import importlib; importlib.invalidate_caches()",
        "import pandas as pd",
        USE,
        path=str(tmp_path),
    )
    assert found == "u128"


def test_without_pandas_nothing_happens():
    """Where pandas is not installed, the usual error says so."""
    found = run(
        "import json, sys",
        ARRANGE,
        "sys.path[:] = []",
        "try:",
        "    import pandas",
        "except ModuleNotFoundError as error:",
        "    print(json.dumps(error.name))",
    )
    assert found == "pandas"
