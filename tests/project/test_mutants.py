"""The mutants of tools/mutants.txt change what is there: their words stand in a file once."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_each_mutant_changes_its_file():
    """A mutant of code that has moved on would survive or die for another reason."""
    spec = importlib.util.spec_from_file_location("mutate", ROOT / "tools" / "mutate.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    mutants = tool.mutants()
    assert len(mutants) == 36
    for mutant in mutants:
        source = (ROOT / "ledgerkit" / mutant.path).read_text(encoding="utf-8")
        assert tool.mutated(mutant) == source.replace(mutant.old, mutant.new)
        assert all((ROOT / "tests" / path).exists() for path in mutant.tests.split())
