"""
Frames drawn with matplotlib: each function takes a frame, draws and returns the Axes.

They fetch nothing and change no setting. With `ax` they draw there; without, they make a
figure, which a notebook shows. matplotlib comes with ``pip install "ledgerkit[notebook]"`` and
loads with the first drawing. Colours are Okabe's and Ito's, which colour-blind eyes tell
apart; shapes, hatches and line styles say the same without colour.
"""

from ledgerkit.plots.curves import history
from ledgerkit.plots.flows import token_flow
from ledgerkit.plots.holdings import balances, concentration, exposure, staking
from ledgerkit.plots.icicles import gas_icicle
from ledgerkit.plots.timelines import timeline
from ledgerkit.plots.trees import receipt_tree

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
