"""The panel that calls view methods of contracts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.verbs import contracts
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Found, Panel, Part

if TYPE_CHECKING:
    from ledgerkit.client import Ledger


_MOST_MEMBERS = 200  # a column each; a contract that tells more names them by its data


class ContractViewer(Panel):
    """
    A view method of a contract: its answer decoded, and as a frame.

    Parameters
    ----------
    contract_id, method
        The method to begin with; `press` asks.
    args
        Its arguments, a text of JSON.
    at
        A height, a block hash or a finality name; empty is ``final``.
    ledger
        The ledger to ask; None is the session's default at the time of the question.
    """

    title = "Contract"
    action = "Call view"
    tooltip = "Call this method; nothing is changed or paid for"

    def __init__(
        self,
        contract_id: str = "",
        method: str = "",
        args: str = "{}",
        *,
        at: str = "",
        ledger: Ledger | None = None,
    ) -> None:
        fields = {
            "contract_id": _panel.text_box("Contract", contract_id, "wrap.near"),
            "method": _panel.text_box("Method", method, "ft_metadata"),
            "args": _panel.text_box("Arguments", args, '{"account_id": "alice.near"}'),
            "at": _panel.text_box("At block", at, "final"),
        }
        super().__init__(fields, ledger)

    def _find(self, asked: dict[str, Any], ledger: Ledger) -> Found:
        """Call the method, with the arguments exactly as typed."""
        value = contracts.view(
            asked["contract_id"],
            asked["method"],
            checked(asked["args"]),
            at=_point(asked["at"]),
            ledger=ledger,
        )
        frame = framed(value)
        parts = (
            Part("Answer", _html.written(written(value))),
            Part("Table", _html.table(frame), frame),
        )
        sentence = f"{asked['method']} of {asked['contract_id']} on {ledger.network.name} answered."
        return Found(sentence, frame, parts, value=value)


def checked(text: str) -> bytes:
    """
    Check that a text is JSON, and pass it on as it is.

    Parameters
    ----------
    text
        What was typed; nothing is an empty object.

    Returns
    -------
    args
        The bytes to send; no number passes through a float.

    Raises
    ------
    InvalidRequestError
        If it is no JSON.
    """
    try:
        json.loads(text or "{}")
    except ValueError as error:
        rule = f'JSON, such as {{"account_id": "alice.near"}} ({error})'
        raise InvalidRequestError.refuse("args", text, rule) from None
    return (text or "{}").encode()


def written(value: Any) -> str:
    """
    Write a decoded answer as it is read.

    Parameters
    ----------
    value
        JSON, or bytes.

    Returns
    -------
    text
        JSON with a member a line; bytes as Python writes them.
    """
    if isinstance(value, bytes):
        return repr(value)
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:  # levels upon levels
        return cut(value)


def framed(value: Any) -> pd.DataFrame:
    """
    Tabulate a decoded answer, integers of any size exact.

    Parameters
    ----------
    value
        JSON, or bytes.

    Returns
    -------
    frame
        A list of objects gives a row each, an object a row a member, anything else one
        column ``value``, as do objects of more than 200 members; every column holds
        Python objects.
    """
    names = _members(value)
    if 0 < len(names) <= _MOST_MEMBERS:
        columns = {name: [one.get(name) for one in value] for name in names}
    elif isinstance(value, dict):
        columns = {"name": list(value), "value": list(value.values())}
    else:
        columns = {"value": value if isinstance(value, list) else [value]}
    return pd.DataFrame({name: pd.Series(items, dtype=object) for name, items in columns.items()})


def _members(value: Any) -> list[str]:
    """List what the objects of a list tell; nothing where not all of it are objects."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        return []
    return list(dict.fromkeys(name for one in value for name in one))


def _point(text: str) -> str | int | None:
    """Read a height as a number; anything else is a hash, a finality or a time."""
    return int(text) if text.isascii() and text.isdigit() else text or None
