"""
Plots of ledgerkit's frames: each function draws a frame with matplotlib and returns the Axes.

The functions send no request and change no matplotlib setting. They draw on `ax` if it is
passed, else on a new figure, which a notebook shows. matplotlib comes with
``pip install "ledgerkit[notebook]"`` and is imported by the first plot. Colours are the
colour-blind safe palette of Okabe and Ito; markers, hatches and line styles tell the same
things apart without colour.
"""

from ledgerkit.plots.balance_history import history
from ledgerkit.plots.gas_icicles import gas_icicle
from ledgerkit.plots.holdings import balances, concentration, exposure, staking
from ledgerkit.plots.receipt_timeline import timeline
from ledgerkit.plots.receipt_trees import receipt_tree
from ledgerkit.plots.token_flows import token_flow

__all__ = [
    "balances",
    "concentration",
    "exposure",
    "gas_icicle",
    "history",
    "receipt_tree",
    "staking",
    "timeline",
    "token_flow",
]
