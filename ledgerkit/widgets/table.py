"""A table of any frame, or the view of a trace, for a notebook."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, overload

import pandas as pd

from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames.human import human
from ledgerkit.tracing.trace import Trace
from ledgerkit.widgets._blocks import Block, Content, Page
from ledgerkit.widgets._panel import Panel
from ledgerkit.widgets._table import Table
from ledgerkit.widgets._trace_view import TraceView
from ledgerkit.widgets._window import name_badge


@overload
def show(frame: pd.DataFrame, *, caption: str = "") -> FrameView: ...
@overload
def show(frame: Trace, *, caption: str = "") -> TracePanel: ...
def show(frame: pd.DataFrame | Trace, *, caption: str = "") -> FrameView | TracePanel:
    """
    Return a table of a frame for a notebook: sorted, filtered, searched and saved exactly.

    A trace is shown as a tree of receipts that folds, with the details of each receipt, a timeline
    by block and shard, and balance changes.

    In a table, amounts are shown in units; the button "Exact values", copying a cell and saved
    files have every digit. Only the page that is visible goes to the front end, so a frame may
    have any number of rows. Ids are links to their own view.

    Parameters
    ----------
    frame
        Any frame, or a trace. An index that is not just a row number is shown as columns.
    caption
        A sentence above the table.

    Returns
    -------
    view
        The table or the trace. A notebook displays it as the last value of a cell.

    Raises
    ------
    InvalidRequestError
        If `frame` is no DataFrame and no trace, or the notebook extra is not installed.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.show(lk.validators()[["account_id", "stake", "num_produced_blocks"]])
              account_id            stake num_produced_blocks
    0  north.poolv1.near  500,390.00 NEAR                  53
    1  south.poolv1.near  501,025.00 NEAR                   0
    2   east.poolv1.near  500,000.00 NEAR                   0
    <BLANKLINE>
    3 rows; network: local
    """
    if isinstance(frame, Trace):
        return TracePanel(frame, caption=caption)
    return FrameView(frame, caption=caption)


class _BlockPanel(Panel):
    """A panel without a form, which shows one block."""

    action = ""  # there is nothing to request

    def _set(self, block: Block, content: Content) -> None:
        self.content = replace(content, pages=(Page(self.title, block),))
        self.window.finish(self)  # so that Back returns to it from the view of an id

    def network_badge(self) -> dict[str, str]:
        """Return the network that the frame was read from; no text if it is not known."""
        frame: Any = self.result
        return name_badge(str(frame.attrs.get("network", "")))

    def static_body(self) -> str:
        caption = self.content.message if self.content.status else ""
        return caption + "".join(block.static() for block in self.content.pages[0].blocks)


class FrameView(_BlockPanel):
    """
    A table of a frame, as `ledgerkit.show` returns it.

    Parameters
    ----------
    frame
        The frame.
    caption
        A sentence above the table.
    """

    title = "Table"

    def __init__(self, frame: pd.DataFrame, *, caption: str = "") -> None:
        super().__init__({})
        if not isinstance(frame, pd.DataFrame):
            raise InvalidRequestError.refuse("frame", frame, "a pandas DataFrame, or a trace")
        content = Content("", result=frame, frames={"result": frame})
        # The badge of the window names the network of its requests, which may be another one.
        network = frame.attrs.get("network")
        source = "" if network is None else f"network: {network}"
        self._set(Table(frame, "; ".join(filter(None, (caption, source)))), content)

    def __repr__(self) -> str:
        frame: Any = self.result
        return repr(human(frame))


class TracePanel(_BlockPanel):
    """
    A trace, as `ledgerkit.show` returns it.

    Parameters
    ----------
    trace
        The trace.
    caption
        A sentence above it.
    """

    title = "Trace"

    def __init__(self, trace: Trace, *, caption: str = "") -> None:
        super().__init__({})
        receipts = trace.receipts
        frames = {"receipts": receipts, "edges": trace.edges}
        content = Content(caption, result=receipts, frames=frames, value=trace)
        self._set(TraceView(trace), content)

    def __repr__(self) -> str:
        return repr(self.value)
