"""How worlds are written: a genesis with published keys, and what happens after it."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.sdk import to_json
from ledgerkit.localnet.stories import Story, TxStory
from ledgerkit.protocol import Action, FunctionCall, SecretKey, SignedTransaction, Transaction
from ledgerkit.protocol.types import to_base58
from ledgerkit.units import yocto

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ledgerkit.localnet.sdk import Contract
    from ledgerkit.localnet.world import World
    from ledgerkit.protocol import PublicKey

TGAS = 10**12


def published_key(world: str, seed: int, name: str) -> SecretKey:
    """Make the throw-away key that an account of a world has on every machine."""
    secret = sha256(f"{world} {seed} {name}".encode()).digest()
    return SecretKey.from_text(to_base58(secret))


def function_call(
    method_name: str, args: dict[str, Any] | None = None, *, gas: int = 30, deposit: int | str = 0
) -> FunctionCall:
    """Write a call: arguments as JSON, gas in Tgas, a deposit in yoctoNEAR or as "1 NEAR"."""
    amount = yocto(deposit) if isinstance(deposit, str) else deposit
    return FunctionCall(method_name, to_json(args or {}), gas * TGAS, amount)


class Beginning(Genesis):
    """
    A genesis whose accounts have the published keys of a world.

    Parameters
    ----------
    name, seed
        What the keys are made of.
    """

    def __init__(self, name: str, seed: int) -> None:
        super().__init__()
        self._name, self._seed = name, seed

    def key(self, name: str) -> SecretKey:
        """Give a published key."""
        return published_key(self._name, self._seed, name)

    def public(self, name: str) -> PublicKey:
        """Give the public key of a published key."""
        return self.key(name).public_key

    def contract(
        self,
        account_id: str,
        amount: int,
        contract: type[Contract],
        records: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Put in an account with a contract, its records, and one key."""
        key = self.public(account_id)
        self.account(account_id, amount, keys=[key], contract=contract, records=records)

    def stories(self, told: Mapping[str, str]) -> list[Story]:
        """Tell who is who, with their keys."""
        return [Story(name, self.key(name).reveal(), story) for name, story in told.items()]


class Script:
    """
    Signs and sends what accounts of a world do.

    Parameters
    ----------
    world
        Where it happens.
    beginning
        What the world began with, for its keys.
    """

    def __init__(self, world: World, beginning: Beginning) -> None:
        self.world, self.key = world, beginning.key
        self._nonces: dict[tuple[str, bytes], int] = {}

    def sign(
        self,
        signer_id: str,
        receiver_id: str,
        actions: Sequence[Action],
        *,
        key: str | None = None,
    ) -> SignedTransaction:
        """
        Sign a transaction.

        Parameters
        ----------
        signer_id
            Who.
        receiver_id
            To whom.
        actions
            What.
        key
            The name of the key; the signer's first, if left out.

        Returns
        -------
        signed
            With the key's next nonce, at the last final block.
        """
        secret = self.key(key or signer_id)
        nonce = self.next_nonce(signer_id, secret)
        block_hash = self.world.chain.final.hash
        tx = Transaction(signer_id, secret.public_key, nonce, receiver_id, block_hash, actions)
        return tx.sign(secret)

    def next_nonce(self, account_id: str, secret: SecretKey) -> int:
        """Give the next nonce of a key, and count it as used."""
        packed = secret.public_key.packed
        held = self.world.state().access_key(account_id, packed)
        last = max(self._nonces.get((account_id, packed), 0), held.nonce if held else 0)
        self._nonces[account_id, packed] = last + 1
        return last + 1

    def send(self, story: str, signed: SignedTransaction) -> SignedTransaction:
        """Send a transaction, and tell about it."""
        self.world.submit(signed)
        signer_id = str(signed.transaction.signer_id)
        self.world.stories.transactions.append(TxStory(str(signed.hash), signer_id, story))
        return signed

    def act(
        self,
        story: str,
        signer_id: str,
        receiver_id: str,
        *actions: Action,
        key: str | None = None,
    ) -> SignedTransaction:
        """Sign a transaction, send it, and tell about it."""
        return self.send(story, self.sign(signer_id, receiver_id, actions, key=key))
