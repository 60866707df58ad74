"""A panel that connects to a network, with an API key if one is entered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import client
from ledgerkit.transport import networks
from ledgerkit.transport.networks import ApiKey
from ledgerkit.verbs import node
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Page, Panel, PanelResult
from ledgerkit.widgets._secret_field import SecretField

if TYPE_CHECKING:
    from collections.abc import Iterator


class NetworkPicker(Panel):
    """
    A choice of network, which becomes the session's default and that of the other panels.

    An API key that is entered is removed from the field at once. It is used for the next
    connection only.

    Parameters
    ----------
    network
        The network that is selected first.
    """

    title = "Network"
    action = "Connect"
    tooltip = "Use this network from now on"
    waiting = "Connecting…"

    def __init__(self, network: str = networks.LOCAL) -> None:
        labels = {networks.LOCAL: "local: the embedded ledger, offline"}
        options = [(labels.get(name, name), name) for name in networks.PRESETS]
        self.key = SecretField("API key", ApiKey)
        fields = {"network": _panel.drop_down("Network", options, network)}
        super().__init__(fields, extra_fields=[self.key.box])

    def _read_steps(self, values: dict[str, Any]) -> Iterator[PanelResult]:
        """Connect, and read the status of the node."""
        name, key = values["network"], self.key.secret
        if name == networks.LOCAL or key is None:
            ledger = client.connect(name)
        else:
            ledger = client.connect(name, api_key=key.reveal())
        frame = node.status(ledger=ledger)
        row = _html.records(frame)[0]
        chain_id, height = row["chain_id"], row["latest_block_height"]
        sentence = f"Connected to {name}: chain {chain_id}, block {height}."
        pages = (Page("Node", _html.facts(row.items()), frame),)
        yield PanelResult(sentence, frame, pages, value=ledger)

    def _set_ready(self) -> None:
        """Drop the key, which is for one network only."""
        super()._set_ready()
        self.key.clear()
