"""
A receiver of tokens, which keeps or returns them, or panics.

The transfer's message decides: ``return TEXT`` returns that text, ``panic TEXT`` panics with
it. With any other message, such as ``take``, the contract's configured behaviour applies.
"""

from collections.abc import Iterator

import msgspec

from ledgerkit.localnet.contract_sdk import STATE_KEY, U128, Contract, call, to_json
from ledgerkit.protocol import AccountId


class TokenReceiver(Contract, code_name="ledgerkit.localnet.contracts.receiver.Receiver"):
    """A contract that keeps all tokens, unless its message or state says otherwise."""

    class State(msgspec.Struct):
        """The behaviour for messages that do not decide."""

        unused: int = 0  # returned from a fungible transfer; if not 0, an NFT is returned too
        panics: str | None = None

    state: State

    @call
    def ft_on_transfer(self, sender_id: AccountId, amount: U128, msg: str) -> str:  # noqa: ARG002 - the standard's arguments
        """Return the unused amount of a fungible token transfer."""
        reply = self._reply(msg)
        return str(self.state.unused) if reply is None else reply

    @call
    def nft_on_transfer(
        self,
        sender_id: AccountId,  # noqa: ARG002 - the standard's arguments
        previous_owner_id: AccountId,  # noqa: ARG002 - as above
        token_id: str,  # noqa: ARG002 - as above
        msg: str,
    ) -> bool:
        """Return True to send a token back, as after the message ``return true``."""
        reply = self._reply(msg)
        return self.state.unused > 0 if reply is None else reply == "true"

    def _reply(self, msg: str) -> str | None:
        """Return the reply that a message requests, or None; panic if it or the state says so."""
        verb, _, argument = msg.partition(" ")
        panics = argument if verb == "panic" else self.state.panics
        if verb == "return":
            return argument
        if panics is not None:
            self.vm.panic(panics)
        return None

    @classmethod
    def genesis(cls, unused: int = 0, panics: str | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the record of a receiver with a configured behaviour."""
        yield STATE_KEY, to_json(cls.State(unused, panics))
