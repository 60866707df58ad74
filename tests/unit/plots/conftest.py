"""Axes for plots, without a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture
def ax() -> Any:
    """Return axes that pyplot does not know."""
    return Figure(figsize=(8, 5), layout="constrained").add_subplot()
