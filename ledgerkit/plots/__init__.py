"""
Frames drawn with matplotlib: each function takes a frame, draws and returns the Axes.

They fetch nothing and change no setting. With `ax` they draw there; without, they make a
figure, which a notebook shows. matplotlib comes with ``pip install "ledgerkit[notebook]"`` and
loads with the first drawing. Colours are Okabe's and Ito's, which colour-blind eyes tell
apart; shapes, hatches and line styles say the same without colour.
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
