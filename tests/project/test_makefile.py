"""The Makefile: an environment that it did not make is used or refused, and never emptied."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def make(environment: Path) -> subprocess.CompletedProcess[str]:
    """Run the step that makes the environment in a folder."""
    own = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")  # of a make that runs the tests
    return subprocess.run(
        ["make", f"VENV={environment}", environment / "made.stamp"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in own},
        capture_output=True,
        text=True,
        check=False,
    )


def environment_with(folder: Path, python: str) -> Path:
    interpreter = folder / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.write_text(python)
    interpreter.chmod(0o755)
    (folder / "mine").touch()
    return folder


def test_an_environment_of_somebody_else_is_used(tmp_path):
    """A folder that has a Python which is new enough keeps all that it has."""
    folder = environment_with(tmp_path / "env", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')

    made = make(folder)

    assert (made.returncode, made.stdout) == (0, f"using the environment in {folder}\n")
    assert (folder / "mine").exists()


def test_what_is_no_environment_is_refused(tmp_path):
    """A folder without such a Python is left as it is, and the message says what to do."""
    folder = environment_with(tmp_path / "env", "#!/bin/sh\nexit 1\n")

    made = make(folder)

    assert made.returncode != 0
    assert f"{folder} is there already" in made.stderr
    assert "VENV=other" in made.stderr
    assert (folder / "mine").exists()
    assert not (folder / "made.stamp").exists()
