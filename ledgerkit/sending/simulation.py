"""Simulation of a transaction: its trace on a temporary fork of the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ledgerkit import client, validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol import Action, SignedTransaction
from ledgerkit.sending.arguments import check_actions
from ledgerkit.transport import embedded
from ledgerkit.verbs import transactions

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger
    from ledgerkit.tracing.trace import Trace


def simulate(
    receiver_id: str | None = None,
    actions: Action | Sequence[Action] | None = None,
    *,
    signer_id: str | None = None,
    transaction: SignedTransaction | None = None,
    at: object = None,
    ledger: Ledger | None = None,
) -> Trace:
    """
    Return the trace that a transaction would have; nothing is sent.

    The transaction runs in the embedded ledger, on a fork of the network: accounts, keys, code and
    contract state are read from the network at one block, and the fork is dropped afterwards.

    Parameters
    ----------
    receiver_id
        The account that receives the actions.
    actions
        One action or several of `ledgerkit.protocol`, such as ``Transfer(1)``.
    signer_id
        The account that would sign them. Its secret key is not needed: one of its full access keys
        counts as the key that signs.
    transaction
        A `SignedTransaction`, which replaces the three above; its signature, nonce and age are
        checked, too.
    at
        The block after which the transaction would run: a height, a block hash, a finality
        name, or a time; None is the last final block.
    ledger
        The ledger of the network; None is the session's default. The embedded ledger is forked
        like any other.

    Returns
    -------
    trace
        The trace after all receipts have run, as `trace` returns it: `Trace.explain`, `Trace.gas`
        and `Trace.balance_changes` work on it. Its hash and the ids of its receipts are not those
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
        If a value could not be read from the network. It never counts as missing.

    Notes
    -----
    Contracts are WebAssembly, which the extra ``ledgerkit[wasm]`` runs. The gas of host
    functions is exact by the node's table, except for the nodes of the state trie; the gas of
    instructions is approximate. A receipt on the network may find other balances and another state.

    Source: block, status, validators; query view_account, view_access_key, view_code and view_state
    at the block's hash.

    Examples
    --------
    >>> from ledgerkit import protocol
    >>> ledger = lk.connect("local")
    >>> args = b'{"receiver_id": "bob.near", "amount": "1000000"}'
    >>> call = protocol.FunctionCall("ft_transfer", args, gas=30 * 10**12, deposit=1)
    >>> trace = lk.simulate("gold.near", call, signer_id="alice.near")
    >>> trace.headline()
    'alice.near sent 1 GOLD to bob.near.'
    """
    upstream = client.current(ledger)
    checked: Sequence[Action] = ()
    if transaction is not None:
        if not isinstance(transaction, SignedTransaction):
            raise InvalidRequestError.refuse("transaction", transaction, "a SignedTransaction")
        passed = {"receiver_id": receiver_id, "actions": actions, "signer_id": signer_id}
        for name, value in passed.items():
            if value is not None:
                msg = f"leave {name} out: the signed transaction has its own"
                raise InvalidRequestError(msg, field=name, value=value)
        signer_id, receiver_id = str(transaction.transaction.signer_id), ""
    else:
        receiver_id = validation.account_id(receiver_id, "receiver_id")
        checked = check_actions([actions] if isinstance(actions, Action) else actions)
        signer_id = validation.account_id(signer_id, "signer_id")
    # The fork stays open, since the trace reads the names of tokens from it when shown.
    fork = client.connect("local", fork=upstream, at=at, make_default=False)
    if transaction is not None:
        tx_hash = embedded.run_signed(fork.world, transaction)
    else:
        tx_hash = embedded.run_unsigned(fork.world, signer_id, receiver_id, checked)
    return transactions.trace(tx_hash, signer_id, ledger=fork)
