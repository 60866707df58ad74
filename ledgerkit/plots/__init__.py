"""
Plots of ledgerkit's frames: each function draws a frame with matplotlib and returns the Axes.

The functions send no request and change no matplotlib setting. They draw on `ax` if it is
passed, else on a new figure, which a notebook shows. matplotlib comes with
``pip install "ledgerkit[notebook]"`` and is imported by the first plot. Colours are those of
Okabe and Ito's palette for colour-blind readers, made darker or lighter where the background
needs it; markers, hatches and line styles make the same distinctions without colour. The
network is named at the upper right if the frame's `attrs` have it.
"""

from typing import TYPE_CHECKING

from ledgerkit import errors
from ledgerkit.plots.balance_history import history
from ledgerkit.plots.gas_icicles import gas_icicle
from ledgerkit.plots.holdings import balances, concentration, exposure, staking
from ledgerkit.plots.receipt_timeline import timeline
from ledgerkit.plots.receipt_trees import receipt_tree
from ledgerkit.plots.statement_steps import statement
from ledgerkit.plots.token_flows import token_flow

__all__ = [
    "balances",
    "concentration",
    "exposure",
    "gas_icicle",
    "history",
    "receipt_tree",
    "staking",
    "statement",
    "timeline",
    "token_flow",
]

if not TYPE_CHECKING:  # type checkers report unknown names
    __getattr__ = errors.suggest_attributes(__name__)
