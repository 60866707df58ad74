"""The mutants of tools/mutants.txt change what is there: their words stand in a file once."""

from pathlib import Path

from tools import mutate

ROOT = Path(__file__).resolve().parents[2]


def test_each_mutant_changes_its_file():
    """A mutant of code that has moved on would survive or die for another reason."""
    mutants = mutate.mutants()
    assert len(mutants) == 39
    for mutant in mutants:
        source = (ROOT / "ledgerkit" / mutant.path).read_text(encoding="utf-8")
        assert mutate.mutated(mutant) == source.replace(mutant.old, mutant.new)
        assert all((ROOT / "tests" / path).exists() for path in mutant.tests.split())
