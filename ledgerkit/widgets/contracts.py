"""A panel that calls view methods of contracts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit import validation
from ledgerkit.errors import cut
from ledgerkit.verbs import contracts
from ledgerkit.widgets import _html
from ledgerkit.widgets._blocks import Content, Page
from ledgerkit.widgets._panel import Field, Panel
from ledgerkit.widgets._table import Table

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger

_MAX_MEMBERS = 200  # columns; a contract with more uses ids or the like as member names


class ContractViewer(Panel):
    """
    The result of a view method, decoded and as a frame.

    Parameters
    ----------
    contract_id, method_name
        The initial values of the fields.
    args
        The arguments as JSON text.
    at
        A height, block hash, finality or time; empty is ``final``.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Contract"
    action = "Call view"
    tooltip = "Call this method; it is free and changes nothing"

    def __init__(
        self,
        contract_id: str = "",
        method_name: str = "",
        args: str = "{}",
        *,
        at: str = "",
        ledger: Ledger | None = None,
    ) -> None:
        fields = {
            "contract_id": Field("Contract", contract_id, "wrap.near"),
            "method_name": Field("Method", method_name, "ft_metadata"),
            "args": Field("Arguments", args, '{"account_id": "alice.near"}'),
            "at": Field("At block", at, "final"),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        """Call the method, with the arguments exactly as typed."""
        contract_id, method_name = values["contract_id"], values["method_name"]
        args, at = json_bytes(values["args"]), block_reference(values["at"])
        value = contracts.view(contract_id, method_name, args, at=at, ledger=ledger)
        frame = result_frame(value)
        pages = (
            Page("Result", _html.preformatted(_result_text(value))),
            Page("Table", Table(frame, name=method_name)),
        )
        sentence = f"{method_name} of {contract_id} on {ledger.network.name} returned a result."
        return Content(sentence, frame, pages, value=value)


def json_bytes(text: str) -> bytes:
    return validation.json_text(text or "{}", 'JSON, such as {"account_id": "alice.near"}')


def _result_text(value: Any) -> str:
    if isinstance(value, bytes):
        return repr(value)
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:
        return cut(value)


def result_frame(value: Any) -> pd.DataFrame:
    """
    Tabulate a decoded result, with exact integers of any size.

    A list of objects has one row per object, an object one row per member. Anything else, and
    objects with more than 200 different members, has one column ``value``.
    """
    is_list = isinstance(value, list) and all(isinstance(item, dict) for item in value)
    names = dict.fromkeys(name for item in value for name in item) if is_list else {}
    if 0 < len(names) <= _MAX_MEMBERS:
        columns = {name: [item.get(name) for item in value] for name in names}
    elif isinstance(value, dict):
        columns = {"name": list(value), "value": list(value.values())}
    else:
        columns = {"value": value if isinstance(value, list) else [value]}
    return pd.DataFrame({name: pd.Series(items, dtype=object) for name, items in columns.items()})


def block_reference(text: str) -> str | int | None:
    """Convert a height to an integer; other texts are hashes, finalities or times."""
    return validation.height_or_text(text) if text else None
