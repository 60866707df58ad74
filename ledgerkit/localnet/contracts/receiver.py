"""
A receiver of tokens, which keeps, gives back or refuses what it is sent.

The message decides: ``return TEXT`` answers with that text, ``panic TEXT`` panics with it.
Any other message, such as ``take``, leaves it to what the contract was told in advance.
"""

from collections.abc import Iterator

import msgspec

from ledgerkit.localnet.contract_sdk import STATE_KEY, U128, Contract, call, to_json, view
from ledgerkit.protocol import AccountId


class Receiver(Contract):
    """Keeps everything, where nobody told it otherwise."""

    class State(msgspec.Struct):
        """What is done where the message does not decide."""

        unused: int = 0  # what a fungible transfer gets back; a single token too, if it is not 0
        panics: str | None = None

    state: State

    @call
    def ft_on_transfer(self, sender_id: AccountId, amount: U128, msg: str) -> str:  # noqa: ARG002 - the standard's arguments
        """Tell how much of a fungible token is not used."""
        told = self._told(msg)
        return str(self.state.unused) if told is None else told

    @call
    def nft_on_transfer(
        self,
        sender_id: AccountId,  # noqa: ARG002 - the standard's arguments
        previous_owner_id: AccountId,  # noqa: ARG002 - as above
        token_id: str,  # noqa: ARG002 - as above
        msg: str,
    ) -> bool:
        """Tell whether a token goes back: ``return true`` sends it back."""
        told = self._told(msg)
        return self.state.unused > 0 if told is None else told == "true"

    def _told(self, msg: str) -> str | None:
        """Do what the message says; give what it wants returned, None if it leaves that open."""
        verb, _, rest = msg.partition(" ")
        panics = rest if verb == "panic" else self.state.panics
        if verb == "return":
            return rest
        if panics is not None:
            self.vm.panic(panics)
        return None

    @call(private=True)
    def set_behaviour(self, unused: U128, panics: str | None = None) -> None:
        """Say what to do where the message does not decide; only the account itself may."""
        self.state.unused, self.state.panics = int(unused), panics

    @view
    def get_behaviour(self) -> dict[str, U128 | str | None]:
        """Give what is done where the message does not decide."""
        return {"unused": U128(self.state.unused), "panics": self.state.panics}

    @classmethod
    def genesis(cls, unused: int = 0, panics: str | None = None) -> Iterator[tuple[bytes, bytes]]:
        """
        Give the records of a receiver that was told what to do.

        Parameters
        ----------
        unused
            How much it gives back.
        panics
            What it panics with; None to take what it is sent.

        Yields
        ------
        key, value
            A record.
        """
        yield STATE_KEY, to_json(cls.State(unused, panics))
