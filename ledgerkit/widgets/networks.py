"""A panel that connects to a network, with an API key if one is entered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledgerkit import client
from ledgerkit.transport import networks
from ledgerkit.transport.networks import ApiKey
from ledgerkit.verbs import node
from ledgerkit.widgets import _html
from ledgerkit.widgets._blocks import Content, Page
from ledgerkit.widgets._panel import Field, Panel, SecretField


class NetworkPicker(Panel):
    """
    A choice of network, which becomes the session's default once its node has answered.

    If the node does not answer, the session's network does not change. An API key is removed from
    the field at once, and used for the next connection only.

    Parameters
    ----------
    network
        The network that is selected first.
    """

    title = "Network"
    action = "Connect"
    tooltip = "Use this network from now on"
    waiting = "Connecting…"
    can_return = False

    def __init__(self, network: str = networks.LOCAL) -> None:
        labels = {networks.LOCAL: "local: the embedded ledger, offline"}
        options = tuple((labels.get(name, name), name) for name in networks.PRESETS)
        self.key = SecretField("API key", ApiKey)
        fields = {"network": Field("Network", network, kind="choice", options=options)}
        super().__init__(fields, secrets={"key": self.key})

    def _results(self, values: dict[str, Any]) -> Iterator[Content]:
        """Read the status of the network's node, then make the network the default."""
        name, key = values["network"], self.key.secret
        if name == networks.LOCAL or key is None:
            ledger = client.connect(name, make_default=False)
        else:
            ledger = client.connect(name, api_key=key.reveal(), make_default=False)
        frame = node.status(ledger=ledger)
        client.use(ledger)
        row = frame.iloc[0]
        chain_id, height = row["chain_id"], row["latest_block_height"]
        sentence = f"Connected to {name}: chain {chain_id}, block {height}."
        pages = (Page("Node", _html.facts_table(frame)),)
        yield Content(sentence, frame, pages, value=ledger)

    def _set_ready(self) -> None:
        """Drop the key, which is for one network only."""
        self.key.clear()
        super()._set_ready()
