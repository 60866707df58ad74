"""The `Trace` of a transaction: its receipt tree as frames, its verdict and explanation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

from ledgerkit import prompt_text, validation
from ledgerkit.api.models.actions import delegate_action
from ledgerkit.api.models.protocol_rules import Rules, rules_of
from ledgerkit.api.models.transactions import (
    TraceContext,
    TxResult,
    decode_context,
    decode_transaction,
    embed_context,
)
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError, cut
from ledgerkit.extras import require
from ledgerkit.files import replacing
from ledgerkit.frames import build
from ledgerkit.tracing import actions as action_rows
from ledgerkit.tracing import balance_timeline
from ledgerkit.tracing import gas as receipt_gas
from ledgerkit.tracing import intents as intent_rows
from ledgerkit.tracing import transfers as transfer_rows
from ledgerkit.tracing.amount_texts import AmountTexts
from ledgerkit.tracing.transaction_data import (
    TransactionData,
    failures_by_receipt,
    read_request,
    token_contracts,
)
from ledgerkit.tracing.tree import build_tree, verdict

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes

    from ledgerkit.frames.tokens import TokenFacts
    from ledgerkit.tracing.actions import Event
    from ledgerkit.tracing.balance_timeline import BalanceChange
    from ledgerkit.tracing.gas import ReceiptValues
    from ledgerkit.tracing.intents import IntentMove
    from ledgerkit.tracing.proof import Proof
    from ledgerkit.tracing.token_events import Transfer

    TokenLookup = Callable[[Sequence[str]], Mapping[str, TokenFacts]]
    # Proves the outcomes of a result by the heights and times of blocks, a trusted hash, a source.
    Prover = Callable[[TxResult, Mapping[str, tuple[int, int]], object, str], Proof]

_PLOTS = ("tree", "timeline", "gas", "flow")


class Trace(prompt_text.HasContext):
    """
    A transaction and all receipts that it led to, as frames.

    Parameters
    ----------
    result
        The decoded result of the transaction.
    source
        The bytes of the document that the result was decoded from, written by `save`.
    blocks
        Height and time (nanoseconds since 1970) by block hash, for results without them.
    rules
        The protocol's rules when the transaction ran, which results do not contain: the shard
        of each account, and the contracts' share of burnt gas.
    attrs
        Provenance for the frames' `attrs`.
    tokens
        Reads symbol and decimals of fungible tokens, by their contracts, when `explain` is
        first called; without it the explanation counts tokens in their smallest unit.
    prover
        Reads the paths of the outcomes and follows them, for `verify`.

    Notes
    -----
    Source: tx_status, on older nodes EXPERIMENTAL_tx_status, tx, send_tx, or POST /v0/transactions
    of the Transactions API. A live response and a saved one give the same frames. A trace can be
    pickled and copied: with its document and all that was read for it, but without the ledger.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> trace = lk.trace("AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY", "ivan.near")
    >>> trace.verdict
    'succeeded_with_failed_receipts'
    >>> trace.transfers[["kind", "sender_id", "receiver_id", "asset", "amount"]].head(2)
          kind  sender_id receiver_id asset                 amount
    0      fee  ivan.near      system  near  747443224752000000000
    1  deposit  ivan.near   gold.near  near                      1
    """

    def __init__(
        self,
        result: TxResult,
        source: bytes,
        *,
        blocks: Mapping[str, tuple[int, int]] | None = None,
        rules: Rules | None = None,
        attrs: Mapping[str, Any] | None = None,
        tokens: TokenLookup | None = None,
        prover: Prover | None = None,
    ) -> None:
        """Build the tree; the frames are built when they are first used."""
        shard_of = None if rules is None else rules.shard_of
        self._tree = build_tree(result, blocks=blocks, shard_of=shard_of)
        self._verdict = verdict(self._tree)
        self._result, self._source = result, source
        self._attrs = dict(attrs or {})
        self._context = TraceContext(dict(blocks or {}), rules, self._attrs.get("network"))
        self._tokens, self._prover = tokens, prover
        self._proof: Proof | None = None
        self._remedy: AbstractContextManager[object] = nullcontext()

    @classmethod
    def from_json(
        cls,
        data: bytes | str | dict[str, Any],
        *,
        tx_hash: str | None = None,
        blocks: Mapping[str, tuple[int, int]] | None = None,
        rules: Mapping[str, Any] | None = None,
    ) -> Self:
        """
        Read a trace from the JSON of a transaction's result.

        Parameters
        ----------
        data
            A JSON-RPC response or its bare result, or a Transactions API document, whole or
            one element; as text or decoded.
        tx_hash
            The transaction to read from a Transactions API document that has several.
        blocks
            Height and time (nanoseconds since 1970) by block hash, for results without them.
        rules
            The result of `protocol_config` at the time of the transaction: without it shards
            and contract rewards are unknown.

        Returns
        -------
        trace
            The transaction's trace.

        Raises
        ------
        InvalidRequestError
            If `data` is no text, bytes or decoded JSON.
        DecodeError
            If the document is not as documented; `path` is the place.
        LedgerError
            If the document is a JSON-RPC error response: its typed error.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> tx_hash = "8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE"
        >>> params = {"tx_hash": tx_hash, "sender_account_id": "alice.near"}
        >>> trace = lk.Trace.from_json(ledger.rpc("EXPERIMENTAL_tx_status", params))
        >>> trace.headline()
        'alice.near sent 5 NEAR to bob.near.'
        """
        source = _as_bytes(data)
        saved = decode_context(source)
        blocks = {**saved.blocks, **(blocks or {})}
        decoded_rules = saved.rules if rules is None else rules_of(rules)
        with _RemedyOfSaved() as remedy:
            result = decode_transaction(source, request="a saved transaction", tx_hash=tx_hash)
            attrs = {} if saved.network is None else {"network": saved.network}
            trace = cls(result, source, blocks=blocks, rules=decoded_rules, attrs=attrs)
        trace._remedy = remedy
        return trace

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """
        Read a trace from a file: one written by `save`, or any document `from_json` reads.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        trace
            The trace; its frames equal those of the saved trace.

        Raises
        ------
        InvalidRequestError
            If the file can't be read.
        LedgerError
            As `from_json`.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> trace = lk.trace("8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE", "alice.near")
        >>> lk.Trace.load(trace.save("transfer.json")).receipts.equals(trace.receipts)
        True
        """
        return cls.from_json(validation.file_bytes(path, "path"))

    def save(self, path: str | Path) -> Path:
        """
        Write the document that this trace was read from, byte for byte.

        The network, and heights, times and rules from other requests are added to the document as
        a member named ``ledgerkit``, which other programs ignore. The file is written under a
        temporary name and then renamed, so it is never incomplete.

        Parameters
        ----------
        path
            The file; an existing one is replaced.

        Returns
        -------
        path
            The path of the file.

        Raises
        ------
        FileError
            If the file can't be written.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> trace = lk.trace("8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE", "alice.near")
        >>> trace.save("transfer.json").name
        'transfer.json'
        """
        path = validation.file_path(path, "path")
        is_saved = decode_context(self._source) == self._context
        data = self._source if is_saved else embed_context(self._source, self._context)
        with replacing(path) as file:
            file.write(data)
        return path

    @cached_property
    def receipts(self) -> pd.DataFrame:
        """One row per receipt in causal order, typed as ``schema("receipts")``; built once."""
        return self._frame("receipts")

    @cached_property
    def edges(self) -> pd.DataFrame:
        """One row per edge between receipts, by child, typed as ``schema("edges")``; built once."""
        return self._frame("edges")

    @cached_property
    def actions(self) -> pd.DataFrame:
        """One row per action, including those in a Delegate, typed as ``schema("actions")``."""
        return self._frame("actions")

    @cached_property
    def logs(self) -> pd.DataFrame:
        """One row per log line, also of failed receipts, typed as ``schema("logs")``."""
        return self._frame("logs")

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row per event (NEP-297), invalid ones with a note, typed as ``schema("events")``."""
        return self._frame("events")

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """One row per transfer of NEAR or tokens, typed as ``schema("transfers")``."""
        return self._frame("transfers")

    @cached_property
    def intents(self) -> pd.DataFrame:
        """One row per swap or move in NEAR Intents, or on a bridge: ``schema("intents")``."""
        return self._frame("intents")

    @cached_property
    def balance_changes(self) -> pd.DataFrame:
        """
        The sum of `transfers` by account and asset, typed as ``schema("balance_changes")``.

        `notes` lists what it does not contain.
        """
        return self._frame("balance_changes")

    @cached_property
    def gas(self) -> pd.DataFrame:
        """One row for the transaction and per receipt, typed as ``schema("gas")``."""
        return self._frame("gas")

    def _columns(self, name: str) -> dict[str, Any]:
        """Compute the columns of a frame; those about receipts have the `position` of each."""
        tree = self._tree
        builders: dict[str, Callable[[], dict[str, Any]]] = {
            "receipts": lambda: dict(tree.columns),
            "edges": tree.edges,
            "actions": lambda: action_rows.action_columns(tree),
            "logs": lambda: action_rows.log_columns(tree),
            "events": lambda: action_rows.event_columns(tree, self._events),
            "transfers": lambda: transfer_rows.transfer_columns(self._transfers[0]),
            "intents": lambda: intent_rows.intent_columns(self._intents[0]),
            "balance_changes": lambda: transfer_rows.balance_change_columns(self._transfers[0]),
            "gas": lambda: receipt_gas.gas_columns(self._values),
        }
        with self._remedy:
            return builders[name]()

    def _frame(self, name: str) -> pd.DataFrame:
        with self._remedy:
            columns = action_rows.with_receipts(self._columns(name), self._tree.columns)
            return build.build_frame(name, columns, attrs=self._attrs)

    @cached_property
    def _values(self) -> ReceiptValues:
        return receipt_gas.ReceiptValues(self._tree, [self._context.rules])

    def _lacks_gas_profile(self) -> bool:
        """Return True if the gas burnt in calls is unknown for a receipt that has run."""
        with self._remedy:
            gas, was_executed = self._values.gas_in_calls, self._values.was_executed
        return any(burnt is None and ran for burnt, ran in zip(gas, was_executed, strict=True))

    @cached_property
    def _events(self) -> list[Event]:
        return action_rows.parse_events(self._tree)

    @cached_property
    def _transfers(self) -> tuple[list[Transfer], tuple[str, ...]]:
        return transfer_rows.list_transfers(self._values, self._events)

    @cached_property
    def _intents(self) -> tuple[list[IntentMove], tuple[str, ...]]:
        return intent_rows.list_intents(self._tree, self._events)

    def balance_timeline(self) -> list[BalanceChange]:
        """
        List the changes of balances, each in the block in which it happened.

        Returns
        -------
        changes
            Two changes per transfer: the sender's, when the receipt is created, and the
            receiver's, when the receipt runs. All gas is bought when the transaction is
            included; refunds return what was not burnt. The sums by account and asset equal
            `balance_changes`. The height of the transaction's own block is in documents of the
            Transactions API, not in a node's.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> trace = lk.trace("8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE", "alice.near")
        >>> for change in trace.balance_timeline():
        ...     print(change.height, change.account_id, change.kind, change.change)
        None alice.near fee -245500818750000000000
        180000006 alice.near refund_gas 200864306250000000000
        None alice.near transfer -5000000000000000000000000
        180000005 bob.near transfer 5000000000000000000000000
        """
        included = self._result.transaction_outcome
        block: tuple[int | None, int | None] = (None, None)
        if included is not None:
            block = included.block_height, included.block_timestamp
            if block[0] is None:
                block = self._context.blocks.get(included.block_hash or "", block)
        with self._remedy:
            changes = balance_timeline.balance_timeline(self._values, self._transfers[0], block)
            return balance_timeline.with_intents(changes, self._intents[0])

    def stake_timeline(self) -> list[BalanceChange]:
        """
        List the changes of balances with staking pools, from the log lines of the pools.

        Returns
        -------
        changes
            Changes of the assets `stake:<pool>`: deposits are positive, withdrawals negative;
            staking and unstaking within the pool are 0. Any contract can log such lines: check
            that it is a pool.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> trace = lk.trace("56mcSXc8DH2UbS86MbgQ7JmujYVSabP9e5UEMeFwzyko", "bob.near")
        >>> for change in trace.stake_timeline():
        ...     print(change.account_id, change.kind, change.asset, change.change)
        bob.near stake stake:north.poolv1.near 50000000000000000000000000
        """
        with self._remedy:
            return balance_timeline.stake_changes(self._values)

    @property
    def verdict(self) -> str:
        """The transaction's overall result; `ledgerkit.tracing.tree.verdict` lists the values."""
        return self._verdict

    @property
    def tx_hash(self) -> str | None:
        """The transaction's hash; None if the document does not contain it."""
        return self._tree.conversion.tx_hash

    @property
    def signer_id(self) -> str | None:
        """The account that signed the transaction; None if the document does not contain it."""
        return self._tree.conversion.signer_id

    @property
    def sender_id(self) -> str | None:
        """The account that signed the actions: the sender of a Delegate, otherwise `signer_id`."""
        transaction = self._result.transaction
        for action in (transaction.actions if transaction else None) or ():
            inner = delegate_action(action)
            if inner is not None and inner.sender_id is not None:
                return inner.sender_id
        return self.signer_id

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on missing parts of the document, and on what is therefore not counted."""
        level, is_final = self._result.final_execution_status, self._result.is_final
        unfinished = () if is_final else (f"the transaction is {level} and not final yet",)
        with self._remedy:
            unknown = transfer_rows.unknown_values(self._values)
            notes = *self._transfers[1], *self._intents[1]
        return (*unfinished, *self._tree.notes, *unknown, *notes)

    @property
    def block_hashes(self) -> list[str]:
        """The hashes of blocks in which receipts ran and whose heights are unknown, each once."""
        hashes, heights = self._tree.columns["block_hash"], self._tree.columns["block_height"]
        blocks = dict.fromkeys(zip(hashes, heights, strict=True))
        return [
            block_hash for block_hash, height in blocks if block_hash is not None and height is None
        ]

    def explain(self, *, metadata: bool = True) -> str:
        """
        Describe the transaction in a few paragraphs, from the document alone.

        Parameters
        ----------
        metadata
            Write amounts of fungible tokens in whole tokens, with their symbols. The metadata of
            each token is read once. It is unknown for a trace that was read from a file, and for
            a token whose contract does not send it: such amounts are in the smallest unit.

        Returns
        -------
        text
            A headline: who did what, or tried to, and what came back. Then the actions and their
            sender, the result, the receipts with block and shard, the failures with their
            remedies, the transfers, the cost and the duration. Always the same for the same
            trace. Amounts are rounded as by `amount_format`: the frames have the exact ones.

        Raises
        ------
        DecodeError
            If a part of the document is not as documented.

        Notes
        -----
        Source: the document of the trace; symbols and decimals from the view method ft_metadata.

        Examples
        --------
        >>> import textwrap
        >>> ledger = lk.connect("local")
        >>> trace = lk.trace("AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY", "ivan.near")
        >>> for paragraph in trace.explain().splitlines()[:5]:
        ...     print(textwrap.fill(paragraph, 80))
        ivan.near tried to swap 80 GOLD on dex.near; the exchange panicked and the
        tokens came back (the contract is paused).
        <BLANKLINE>
        ivan.near sent transaction AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY to
        gold.near: call ft_transfer_call with 1 yocto and 150 Tgas.
        <BLANKLINE>
        Its status is success, but 1 of 3 receipts other than refunds failed, so the
        actions of that receipt had no effect. It returned "0".
        """
        from ledgerkit.tracing import explain as explanations

        with self._remedy:
            text = explanations.explain(self._data(metadata=metadata), self.notes)
        return text if self._proof is None else f"{text}\n\n{self._proof.summary}"

    def _prompt_context(self) -> prompt_text.Context:
        transfers = self.transfers.copy()
        transfers.attrs["tokens"] = {
            f"nep141:{contract_id}": [fact.decimals, fact.symbol]
            for contract_id, fact in self._token_facts.items()
        }
        return prompt_text.Context(
            f"transaction: {self.verdict}",
            {"explanation": self.explain(), "transfers": transfers},
            self._attrs,
        )

    def headline(self, *, metadata: bool = True) -> str:
        """
        Describe the transaction in one sentence: the first paragraph of `explain`.

        Parameters
        ----------
        metadata
            As in `explain`.

        Returns
        -------
        text
            Who did what, or tried to, and what came back; empty if the document does not contain
            the transaction.

        Raises
        ------
        DecodeError
            If a part of the document is not as documented.

        Notes
        -----
        Source: as `explain`.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> trace = lk.trace("HJLBTjnu3qVHA19q5U3cLffXoKMpzM9x1oSZndTYzYb8", "alice.near")
        >>> trace.headline()
        'alice.near sent token 204 of stamps.grace.near to uma.near.'
        """
        from ledgerkit.tracing import explain as explanations

        with self._remedy:
            return explanations.headline(self._data(metadata=metadata))

    def _data(self, *, metadata: bool) -> TransactionData:
        amounts = AmountTexts(self._token_facts if metadata else {})
        with self._remedy:
            return TransactionData(
                self._tree,
                self._verdict,
                self._result,
                self._values,
                self._transfers[0],
                failures_by_receipt(self._tree),
                amounts,
                self._intents[0],
            )

    @cached_property
    def _token_facts(self) -> Mapping[str, TokenFacts]:
        """Symbol and decimals of the fungible tokens, by contract; none if they are unknown."""
        if self._tokens is None:
            return {}
        with self._remedy:
            contracts = token_contracts(read_request(self._result), self._transfers[0])
        try:
            return self._tokens(contracts) if contracts else {}
        except LedgerError:  # the amounts are known nevertheless, in the smallest unit
            return {}

    def verify(
        self,
        trusted: str | None = None,
        *,
        source: Literal["rpc", "documents", "indexer_rpc"] = "rpc",
    ) -> Proof:
        """
        Prove the outcomes: follow each to a block that is trusted, or signed by two thirds.

        The chain commits to each outcome by a leaf, to the leaves of a shard by a root, to the
        roots by the header of a block, and to blocks by the header of a later one. All of these
        hashes are computed here, from the document of this trace. The later block is one that you
        trust, or one with signatures of validators that hold more than two thirds of the stake.
        Afterwards `receipts` has a column `proved`, and `explain` ends with the result.

        Parameters
        ----------
        trusted
            The hash of a block that you trust, from another source. If it is later than the
            transaction, paths end there. Otherwise validators' signatures are checked from its
            epoch on. None begins at the transaction's own block, with the validators that the
            network itself lists: a wrong response is noticed, a whole invented chain is not.
        source
            Where the proof is read from: ``"rpc"``, a path for each outcome from a node that has
            the transaction; ``"documents"``, the block documents, with all outcomes of the shards,
            for any final block; or ``"indexer_rpc"``, these from a node of your own. With the last
            two, a `trusted` block may be up to 1,000 blocks later.

        Returns
        -------
        proof
            How far each outcome is proved, and why not further.

        Raises
        ------
        InvalidRequestError
            If `trusted` is no hash, or the trace is of a file or a copy:
            ``ledgerkit.verify(trace)`` reads the paths from a network.
        ProofError
            If a header or a list of validators is not what the chain commits to, or signatures
            are wrong or too few.
        DecodeError
            If the document's outcomes are not complete.
        LedgerError
            If a block or the validators could not be read. A path that could not be read is a note.

        Notes
        -----
        Source: light_client_proof, next_light_client_block, EXPERIMENTAL_validators_ordered and
        block, or EXPERIMENTAL_indexer_block or the block documents; the light-client specification
        of the protocol.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> trace = lk.trace("8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE", "alice.near")
        >>> trace.verify().rows[["kind", "executor_id", "proved"]]
                  kind executor_id  proved
        0  transaction  alice.near  signed
        1      receipt    bob.near  signed
        2      receipt  alice.near  signed
        """
        if self._prover is None:
            msg = "the trace is of a file or a copy, so the paths of its outcomes are unknown"
            remedy = "Read them from a network: ledgerkit.verify(trace, ledger=…)."
            raise InvalidRequestError(msg, remedy=remedy, field="ledger")
        return self._verify_with(self._prover, trusted, source)

    def _verify_with(self, prover: Prover, trusted: str | None, source: str) -> Proof:
        """Prove the outcomes with another prover, and add the result to the receipts."""
        self._proof = proof = prover(self._result, self._context.blocks, trusted, source)
        levels = dict(zip(proof.rows["outcome_id"], proof.rows["proved"], strict=True))
        for frame in (self.receipts, self.events, self.transfers):
            frame["proved"] = frame["receipt_id"].map(levels).astype("str")
        # Outcomes commit to log lines, and so to events, but not to the actions of receipts.
        is_event = self.transfers["evidence"] == "event"
        self.transfers["proved"] = self.transfers["proved"].where(is_event)
        return proof

    def to_networkx(self) -> Any:
        """
        Build a networkx graph of the receipts and their edges.

        Returns
        -------
        graph
            A `networkx.MultiDiGraph`: one node per receipt, with the columns of `receipts` as
            attributes, and one edge per row of `edges`, with `kind` and `data_id`.

        Raises
        ------
        InvalidRequestError
            If networkx is not installed.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> trace = lk.trace("AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY", "ivan.near")
        >>> graph = trace.to_networkx()
        >>> graph.number_of_nodes(), graph.number_of_edges()
        (6, 6)
        """
        graph = require("networkx", "graph", "to_networkx()").MultiDiGraph()
        receipts, edges = self.receipts, self.edges
        nodes = zip(receipts["receipt_id"], receipts.to_dict("records"), strict=True)
        graph.add_nodes_from(nodes)
        attributes = edges[["kind", "data_id"]].to_dict("records")
        graph.add_edges_from(zip(edges["parent_id"], edges["child_id"], attributes, strict=True))
        return graph

    def plot(self, kind: str = "tree", ax: Axes | None = None, **options: Any) -> Axes:
        """
        Draw the transaction.

        Parameters
        ----------
        kind
            ``tree``, ``timeline`` (by shard and block), ``gas`` (burnt by each receipt) or
            ``flow`` (transfers between accounts; the first time, it reads the symbols and
            decimals of their tokens as `explain` does).
        ax
            The axes to draw on; None creates a figure.
        **options
            Options of the function of `ledgerkit.plots`.

        Returns
        -------
        ax
            The axes with the plot.

        Raises
        ------
        InvalidRequestError
            If `kind` is none of these.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> trace = lk.trace("AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY", "ivan.near")
        >>> ax = trace.plot("timeline")
        >>> ax.get_title(loc="left")
        '6 receipts, 1 failed'
        """
        validation.one_of(kind, "kind", _PLOTS)
        from ledgerkit import plots
        from ledgerkit.plots import token_units

        if kind == "gas":
            return plots.gas_icicle(self.receipts, ax=ax, **options)
        if kind == "flow":
            tokens = token_units.tokens_frame(self._token_facts)
            return plots.token_flow(self.transfers, ax=ax, **{"tokens": tokens, **options})
        draw = plots.receipt_tree if kind == "tree" else plots.timeline
        return draw(self.receipts, self.edges, ax=ax, **options)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle and copy, without the members that send requests."""
        return {**self.__dict__, "_tokens": None, "_prover": None}

    def __repr__(self) -> str:
        sender_id, signer_id = cut(self.sender_id), cut(self.signer_id)
        relayer = "" if sender_id == signer_id else f", relayed by {signer_id}"
        transaction = f"{cut(self.tx_hash)} of {sender_id}{relayer}"
        return f"<Trace {transaction}: {len(self._tree)} receipts, {self.verdict}>"

    def _repr_html_(self) -> str:
        """Return a card as HTML: headline, explanation, tree; texts from the chain are escaped."""
        from ledgerkit import cards

        headline, _, explanation = self.explain().partition("\n\n")
        return cards.trace_card(
            headline=headline,
            explanation=explanation,
            receipts=self.receipts,
            edges=self.edges,
            transfers=self.transfers,
            format_amount=AmountTexts(self._token_facts).text,
            network=self._attrs.get("network"),
        )


class _RemedyOfSaved:
    """Replaces the remedy of an error in a saved document: another request can't repair it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: object, __: object) -> None:
        if isinstance(error, DecodeError):
            error.remedy = "Check that the document is complete, and the result of a transaction."


def _as_bytes(data: bytes | str | dict[str, Any]) -> bytes:
    if isinstance(data, str):
        return validation.plain_text(data, "data").encode()
    if not isinstance(data, dict):
        return validation.raw_bytes(data, "data")
    try:
        return json.dumps(data).encode()
    except (TypeError, ValueError, RecursionError) as error:
        expected = f"a decoded JSON document ({error})"
    raise InvalidRequestError.refuse("data", data, expected)
