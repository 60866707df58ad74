"""What a transaction would do: its trace on a fork that is thrown away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import client, validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol import Action, SignedTransaction
from ledgerkit.sending.arguments import check_actions
from ledgerkit.transport import embedded
from ledgerkit.verbs import transactions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.ledger import Ledger
    from ledgerkit.tracing.trace import Trace


def simulate(
    actions: Action | Sequence[Action] | SignedTransaction,
    receiver_id: str | None = None,
    *,
    signer_id: str | None = None,
    at: object = None,
    ledger: Ledger | None = None,
) -> Trace:
    """
    Return the trace that a transaction would have; nothing is sent.

    The transaction runs in the embedded ledger, on a fork of the network: accounts, keys, code and
    contract state are read from the network at one block, and the fork is dropped afterwards.

    Parameters
    ----------
    actions
        One action or several of `ledgerkit.protocol`, such as ``Transfer(1)``; or a
        `SignedTransaction`, whose signature, nonce and age are checked too.
    receiver_id
        The account that receives the actions; for a `SignedTransaction` leave it out.
    signer_id
        The account that would sign them. No key of it is needed: an existing full access key is
        taken for the one that signs. For a `SignedTransaction` leave it out.
    at
        The block after which the transaction would run: a height, a block hash, a finality
        name, or a time; None is the last final block.
    ledger
        The ledger of the network; None is the session's default. The embedded ledger is forked
        like any other.

    Returns
    -------
    trace
        The trace after all receipts have run, as of `trace`: `Trace.explain`, `Trace.gas` and
        `Trace.balance_changes` work on it. Its hash and the ids of its receipts are not those
        that the network would give.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, or the signer has no full access key.
    InvalidTransactionError
        If the network would refuse the transaction; the subclass states the reason.
    TooLargeContractStateError
        If a contract's state is needed that the network does not list.
    LedgerError
        If a value could not be read from the network. It is never taken for missing.

    Notes
    -----
    Contracts are WebAssembly, which the extra ``ledgerkit[wasm]`` runs. The gas of host
    functions is exact by the node's table, but for the nodes of the state trie; the gas of
    instructions is approximate. A receipt on the network may find other balances and another state.

    Source: block, status, validators; query view_account, view_access_key, view_code and view_state
    at the block's hash.

    Examples
    --------
    >>> from ledgerkit import protocol
    >>> ledger = lk.connect("local")
    >>> args = b'{"receiver_id": "bob.near", "amount": "1000000"}'
    >>> call = protocol.FunctionCall("ft_transfer", args, gas=30 * 10**12, deposit=1)
    >>> trace = lk.simulate(call, "gold.near", signer_id="alice.near")
    >>> trace.headline()
    'alice.near sent 1 GOLD to bob.near.'
    """
    upstream = client.current(ledger)
    signed = actions if isinstance(actions, SignedTransaction) else None
    if signed is not None:
        for name, value in (("receiver_id", receiver_id), ("signer_id", signer_id)):
            if value is not None:
                msg = f"leave {name} out: the signed transaction has its own"
                raise InvalidRequestError(msg, field=name, value=value)
        sender_id, receiver = str(signed.transaction.signer_id), ""
    else:
        sender_id = validation.account_id(signer_id, "signer_id")
        receiver = validation.account_id(receiver_id, "receiver_id")
    listed = [actions] if isinstance(actions, Action) else actions
    checked = None if signed else check_actions(listed)
    # Not closed: the trace reads the tokens' names from it when they are shown.
    fork = client.connect("local", fork=upstream, at=at, make_default=False)
    if signed is not None:
        tx_hash = embedded.run_signed(fork.world, signed)
    else:
        tx_hash = embedded.run_unsigned(fork.world, sender_id, receiver, checked or ())
    return transactions.trace(tx_hash, sender_id, ledger=fork)
