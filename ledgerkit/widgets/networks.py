"""The panel that chooses which network is asked, and with which key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import client
from ledgerkit.transport import networks
from ledgerkit.transport.networks import ApiKey
from ledgerkit.verbs import node
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Found, Panel, Part
from ledgerkit.widgets._secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator


class NetworkPicker(Panel):
    """
    Connect to a network: it becomes the session's default, which the other panels ask.

    A key that is typed here leaves the field at once, and goes to the next network that is
    connected to, and to no other.

    Parameters
    ----------
    network
        The network to begin with; `press` connects.
    """

    title = "Network"
    action = "Connect"
    tooltip = "Ask this network from now on"
    waiting = "Connecting…"

    def __init__(self, network: str = networks.LOCAL) -> None:
        told = {networks.LOCAL: "local: the embedded ledger, without a network"}
        options = [(told.get(name, name), name) for name in networks.PRESETS]
        self.key = Secret("API key", ApiKey)
        fields = {"network": _panel.choice("Network", options, network)}
        super().__init__(fields, more=[self.key.box])
        self.key.box.on_msg(self._entered)

    def _steps(self, asked: dict[str, Any]) -> Iterator[Found]:
        """Connect, and see who answers."""
        name, key = asked["network"], self.key.held
        if name == networks.LOCAL or key is None:
            ledger = client.connect(name)
        else:
            ledger = client.connect(name, api_key=key.reveal())
        frame = node.status(ledger=ledger)
        row = _html.records(frame)[0]
        sentence = f"{name} answers: chain {row['chain_id']}, block {row['latest_block_height']}."
        parts = (Part("Node", _html.facts(row.items()), frame),)
        yield Found(sentence, frame, parts, value=ledger)

    def _rest(self) -> None:
        """Drop the key, whoever it went to: it is for one network."""
        super()._rest()
        self.key.forget()
