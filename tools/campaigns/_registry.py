"""The campaigns by name: every module of this folder that does not begin with an underscore."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def load(name: str) -> ModuleType:
    """
    Import a campaign.

    A campaign has `COUNT` and `SMALL`, the numbers of cases of the full run and of the test;
    `EXPECTED`, the results that must occur in both; and `run(count, seed, tally)`.
    """
    return import_module(f"tools.campaigns.{name}")
