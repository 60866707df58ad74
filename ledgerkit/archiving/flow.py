"""The flow itself: the steps in their order, what each found, and the outcome."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any

from ledgerkit import client, units, validation
from ledgerkit.archiving import sources, tokens
from ledgerkit.archiving.shown import card, columns_of
from ledgerkit.errors import InvalidRequestError, InvalidTransactionError, LedgerError, cut
from ledgerkit.frames import build
from ledgerkit.progress import Line
from ledgerkit.sending import signers
from ledgerkit.transport.settings import positive

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    import pandas as pd

    from ledgerkit.archiving.sources import Record, Widget
    from ledgerkit.archiving.tokens import Seen, TokenPlan
    from ledgerkit.client import Ledger
    from ledgerkit.sending.signers import Signer
    from ledgerkit.sending.submission import Submission

STEPS = (
    "receiver_view",
    "read_source",
    "token_id",
    "look_up",
    "read_again",
    "mint",
    "token",
    "owner_tokens",
)
OUTCOMES = {
    "archived": "The token was minted, and the collection tells it as it was meant.",
    "already_archived": "The token was there already; nothing was minted.",
    "missing_widget": "There is no such widget; nothing was minted.",
    "empty_source": "The widget's source is empty; nothing was minted.",
    "source_changed": "The source changed while it was being archived; nothing was minted.",
    "mint_failed": "The token could not be minted.",
    "token_not_appearing": "The collection does not tell the token; take the flow again.",
    "token_differs": "The token of that id has another owner or another source.",
}
MEANWHILE = {
    "under_way": "The flow is being taken.",
    "broke_off": "Something could not be asked; take the flow again to finish it.",
}
STATES = {
    "pending": "It is still to come.",
    "running": "It is being taken.",
    "done": "It was taken.",
    "stopped": "What it found ended the flow.",
    "failed": "It could not be asked, for the reason beside it.",
    "not_taken": "The flow is over and did not need it, or did not come to it.",
}
_LEAST_S = 0.001


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Archive:
    """
    How the archiving of a widget went.

    Parameters
    ----------
    outcome
        One of `ledgerkit.archiving.OUTCOMES`; of what `archive_steps` gives on the way one
        of `ledgerkit.archiving.MEANWHILE`.
    author_account_id, widget_name
        The widget.
    receiver_id, contract_id
        Whose the token is to be, in which collection.
    token_id
        The token's id; None where there is no source to derive it from.
    record
        What the token says of its source; None as well.
    submission
        The transaction that mints; None where none was sent.
    failure
        Why it could not be minted.
    steps
        One row a step, typed as `schema("archive_steps")`; each state is one of
        `ledgerkit.archiving.STATES`.
    """

    outcome: str
    author_account_id: str
    widget_name: str
    receiver_id: str
    contract_id: str
    token_id: str | None
    record: Record | None
    submission: Submission | None
    failure: LedgerError | None
    steps: pd.DataFrame

    @property
    def is_archived(self) -> bool:
        """Whether the token is there, as it was meant."""
        return self.outcome in ("archived", "already_archived")

    @property
    def step(self) -> str | None:
        """The step that is being taken, or that failed; None where the flow is over."""
        now = self.steps.loc[self.steps["state"].isin(["running", "failed"]), "step"]
        return None if now.empty else str(now.iloc[0])

    def way_back(self) -> str:
        """
        Say what there is of the token, and how to go on.

        Returns
        -------
        told
            A sentence or two.
        """
        if self.outcome in OUTCOMES:
            return OUTCOMES[self.outcome]
        states = dict(zip(self.steps["step"], self.steps["state"], strict=True))
        if self.submission is not None:
            return f"{self._told_of_mint()} {_AGAIN}"
        if states["mint"] in ("running", "failed"):
            return f"The mint of {self.token_id} may be on its way. {_AGAIN}"
        if states["token"] in ("running", "failed", "done"):
            return f"{self.token_id} was there already. {_AGAIN}"
        return "Nothing was minted this time. Take the flow again to finish it."

    def _told_of_mint(self) -> str:
        """Say how far the transaction is that mints."""
        sent = self.submission
        ended = {True: "is there", False: "was not minted by it", None: "may be on its way"}
        how = "" if sent is None else f"{ended[sent.fully_succeeded]}: transaction {sent.tx_hash}"
        return f"{self.token_id} {how}."

    def to_frame(self) -> pd.DataFrame:
        """
        Tell it in one row.

        Returns
        -------
        row
            Outcome, token, source and transaction, typed as `schema("archive")`.
        """
        values = {
            "outcome": self.outcome,
            "contract_id": self.contract_id,
            "token_id": self.token_id,
            "receiver_id": self.receiver_id,
            "author_account_id": self.author_account_id,
            "widget_name": self.widget_name,
            **columns_of(self.record, "widget_path"),
            "tx_hash": None if self.submission is None else str(self.submission.tx_hash),
        }
        return build.build_frame("archive", {name: [value] for name, value in values.items()})

    def __repr__(self) -> str:
        path = sources.widget_path(self.author_account_id, self.widget_name)
        token = "" if self.token_id is None else f" as {self.token_id} of {self.contract_id}"
        at = "" if self.step is None else f", {self.step}"
        return f"<Archive {path}{token}: {self.outcome}{at}>"

    def _repr_html_(self) -> str:
        """Draw a card: how it went, and a row a step; all text is escaped."""
        sentence = {**OUTCOMES, **MEANWHILE}[self.outcome]
        return card("archive", repr(self)[1:-1], sentence, self.steps)


_AGAIN = "Take the flow again: it looks for the token first, and mints no second one."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What was asked for, checked."""

    author_account_id: str
    widget_name: str
    receiver_id: str
    collection: str
    source: Ledger
    target: Ledger
    signer: Signer
    deposit: int
    timeout_s: float
    allow_mainnet: bool
    social_contract_id: str | None
    words: Mapping[str, Any]


@dataclass(slots=True)
class _Flow:
    """One taking of the flow: what was found so far."""

    request: _Request
    notes: list[dict[str, Any]] = field(default_factory=list)
    running: dict[str, Any] | None = None
    begun: float = 0.0
    plan: TokenPlan | None = None
    submission: Submission | None = None
    failure: LedgerError | None = None
    was_there: bool = False

    def told(self) -> Iterator[Archive]:
        """Take the steps; tell how it stands whenever one begins, and how it all went."""
        try:
            outcome = yield from self.take()
        except LedgerError as error:
            done = ", ".join(one["step"] for one in self.notes) or "none"
            self.fail(error)
            told = self.result("broke_off")
            error.add_note(f"archive_widget broke off; steps done: {done}. {told.way_back()}")
            yield told
            raise
        yield self.result(outcome)

    def take(self) -> Generator[Archive, None, str]:
        """Take the steps, and give the outcome."""
        yield self.begin("receiver_view")
        self.check_receiver()
        yield self.begin("read_source")
        widget = self.read_source()
        if widget is None:
            return "missing_widget"
        if not widget.source:
            return "empty_source"
        yield self.begin("token_id")
        plan = self.identify(widget)
        yield self.begin("look_up")
        if not self.look_up(plan):
            ended = yield from self.take_mint(widget, plan)
            if ended is not None:
                return ended
        yield self.begin("token")
        wrong = self.confirm(plan)
        if wrong is not None:
            return wrong
        yield self.begin("owner_tokens")
        return self.confirm_owner(plan)

    def take_mint(self, widget: Widget, plan: TokenPlan) -> Generator[Archive, None, str | None]:
        """Take the steps that mint; gives an outcome where they end the flow."""
        yield self.begin("read_again")
        if self.changed(widget):
            return "source_changed"
        yield self.begin("mint", f"{plan.token_id} is being minted")
        self.send(plan)
        if self.submission is not None:
            told = f"sent by {self.request.signer.account_id}, {self.submission.stage} so far"
            yield self.begin("mint", told, tx_hash=str(self.submission.tx_hash))
        return None if self.mint(plan) else "mint_failed"

    def check_receiver(self) -> None:
        """See whether the receiver's NFT view lists the collection; it need not."""
        asked = self.request
        held = tokens.receiver_view(asked.receiver_id, asked.collection, target=asked.target)
        word = "not yet" if held.empty else "already"
        detail = f"{asked.collection} is {word} among the collections of {asked.receiver_id}"
        self.note("receiver_view", detail)

    def read_source(self) -> Widget | None:
        """Read the source; without any text there is nothing to archive."""
        widget, path = self._read_final(), self._path
        if widget is None:
            self.note("read_source", f"there is no {path}, at the last final block", "stopped")
        elif not widget.source:
            self.note("read_source", f"{path} is empty", "stopped", block_height=widget.read_at)
        else:
            size, height = len(widget.source.encode()), widget.socialdb_block_height
            detail = f"{path}: {size} bytes, written in block {height}"
            self.note("read_source", detail, block_height=widget.read_at)
        return widget

    def identify(self, widget: Widget) -> TokenPlan:
        """Derive the token from the source."""
        self.plan = tokens.plan_token(widget, self.request.receiver_id, **self.request.words)
        self.note("token_id", f"{self.plan.token_id}, of SHA-256 {widget.sha256}")
        return self.plan

    def look_up(self, plan: TokenPlan) -> bool:
        """See whether the token is there already, final or not."""
        seen = self._seen(plan)
        self.was_there = seen.token is not None
        detail = f"{plan.token_id} is {'there already' if self.was_there else 'not there yet'}"
        self.note("look_up", detail, block_height=seen.block_height)
        return self.was_there

    def changed(self, before: Widget) -> bool:
        """Read the source again, right before minting."""
        now = self._read("optimistic")
        changed = _text(now) != before.source
        how = "is gone" if now is None else "has changed" if changed else "is the same"
        height = None if now is None else now.read_at
        state = "stopped" if changed else "done"
        self.note("read_again", f"{self._path} {how}", state, block_height=height)
        return changed

    def send(self, plan: TokenPlan) -> None:
        """Send what mints, until a block has taken it."""
        asked, self.begun = self.request, time.monotonic()
        try:
            self.submission = tokens.mint_token(
                plan,
                asked.collection,
                target=asked.target,
                signer=asked.signer,
                deposit=asked.deposit,
                wait_until="INCLUDED",
                timeout_s=asked.timeout_s,
                allow_mainnet=asked.allow_mainnet,
            )
        except InvalidTransactionError as error:
            self.failure = error

    def mint(self, plan: TokenPlan) -> bool:
        """Follow the mint; it has failed only if the token is not there all the same."""
        if self.submission is not None:
            left = self.request.timeout_s - (time.monotonic() - self.begun)
            try:
                self.failure = self.submission.wait("final", max(left, _LEAST_S)).failure
            except InvalidTransactionError as error:
                self.failure = error
        if self.failure is None:
            self._note_mint("done")
            return True
        # An earlier mint may have arrived first: the collection has each id once.
        self.was_there = self._seen(plan).token is not None
        why = "somebody's earlier mint has arrived" if self.was_there else "nothing was minted"
        state = "done" if self.was_there else "stopped"
        self._note_mint(state, f"{why}: {cut(self.failure.sentence)}")
        return self.was_there

    def confirm(self, plan: TokenPlan) -> str | None:
        """Compare the token that is final with the plan; gives an outcome where they differ."""
        asked = self.request
        seen = tokens.confirm_token(plan.token_id, asked.collection, target=asked.target)
        if seen.token is None:
            is_coming = self._seen(plan).token is not None
            word = "did not become final" if is_coming else "did not appear"
            detail = f"{plan.token_id} {word} in {tokens.ATTEMPTS} attempts"
            self.note("token", detail, "stopped", block_height=seen.block_height)
            return "token_not_appearing"
        wrong = tokens.differences(plan, seen.token)
        detail = "; ".join(wrong) or f"owner {plan.receiver_id} and hash are as meant"
        self.note("token", detail, "stopped" if wrong else "done", block_height=seen.block_height)
        return "token_differs" if wrong else None

    def confirm_owner(self, plan: TokenPlan) -> str:
        """See whether the collection lists the token among its owner's."""
        asked = self.request
        listed = tokens.owner_has(plan, asked.collection, target=asked.target)
        detail = f"{'listed' if listed else 'not listed'} among the tokens of {asked.receiver_id}"
        self.note("owner_tokens", detail, "done" if listed else "stopped")
        if not listed:
            return "token_not_appearing"
        return "already_archived" if self.was_there else "archived"

    @property
    def _path(self) -> str:
        """Where the widget stands."""
        return sources.widget_path(self.request.author_account_id, self.request.widget_name)

    def _read_final(self) -> Widget | None:
        """Read the widget as it is final; what was written just now is waited for."""
        head = self._read("optimistic")
        return tokens.until(
            lambda: self._read("final"),
            lambda final: _text(final) == _text(head),
            self.request.source,
        )

    def _read(self, at: str) -> Widget | None:
        """Read the widget."""
        asked = self.request
        return sources.read_widget(
            asked.author_account_id,
            asked.widget_name,
            source=asked.source,
            social_contract_id=asked.social_contract_id,
            at=at,
        )

    def _seen(self, plan: TokenPlan) -> Seen:
        """Ask for the token at the head."""
        asked = self.request
        return tokens.find_token(
            plan.token_id, asked.collection, target=asked.target, at="optimistic"
        )

    def _note_mint(self, state: str, detail: str | None = None) -> None:
        """Note how the minting went: its transaction, and the block that took it."""
        sent, name = self.submission, self.request.signer.account_id
        if sent is None:
            self.note("mint", detail or "", state)
            return
        is_minted = sent.fully_succeeded is True
        told = f"minted by {name}" if is_minted else f"sent by {name}, {sent.stage} so far"
        self.note("mint", detail or told, state, **self._place())

    def _place(self) -> dict[str, Any]:
        """Name the transaction that mints, and the block that took it."""
        sent = self.submission
        if sent is None:
            return {}
        stages = sent.stages.set_index("stage")["block_height"]
        height = int(stages["included"]) if sent.is_included else None
        return {"block_height": height, "tx_hash": str(sent.tx_hash)}

    def begin(self, step: str, detail: str | None = None, **where: Any) -> Archive:
        """Begin a step, and tell how it stands."""
        self.running = {"step": step, "state": "running", "detail": detail, **where}
        return self.result("under_way")

    def fail(self, error: LedgerError) -> None:
        """Note the step that could not be asked, and why."""
        if self.running is not None:
            tx_hash = self.running.get("tx_hash")
            self.note(self.running["step"], cut(error.sentence), "failed", tx_hash=tx_hash)

    def note(self, step: str, detail: str, state: str = "done", **where: Any) -> None:
        """Note how a step went."""
        self.running = None
        self.notes.append({"step": step, "state": state, "detail": detail, **where})

    def steps(self, rest: str) -> pd.DataFrame:
        """Tabulate the steps; those that were not taken have their rows too, as `rest`."""
        running = [] if self.running is None else [self.running]
        told = {one["step"]: one for one in (*self.notes, *running)}
        last = max((STEPS.index(step) for step in told), default=-1)
        rows = [
            told.get(step, {"step": step, "state": rest if at > last else "not_taken"})
            for at, step in enumerate(STEPS)
        ]
        names = ("step", "state", "detail", "block_height", "tx_hash")
        columns = {name: [row.get(name) for row in rows] for name in names}
        return build.build_frame("archive_steps", columns)

    def result(self, outcome: str) -> Archive:
        """Tell how it all went."""
        asked, plan = self.request, self.plan
        return Archive(
            outcome,
            asked.author_account_id,
            asked.widget_name,
            asked.receiver_id,
            asked.collection,
            None if plan is None else plan.token_id,
            None if plan is None else plan.record,
            self.submission,
            self.failure,
            self.steps("pending" if outcome == "under_way" else "not_taken"),
        )


def _text(widget: Widget | None) -> str | None:
    """Give a widget's source; None where there is no widget."""
    return None if widget is None else widget.source


def archive_widget(
    author_account_id: str,
    widget_name: str,
    receiver_id: str,
    *,
    source: Ledger,
    target: Ledger,
    collection: str,
    signer: Signer,
    deposit: str | int = "0.1 NEAR",
    token_prefix: str = tokens.PREFIX,
    title: str | None = None,
    description: str | None = None,
    copies: int = 1,
    social_contract_id: str | None = None,
    timeout_s: float = tokens.PATIENCE_S,
    allow_mainnet: bool = False,
) -> Archive:
    """
    Archive a widget: mint a token that tells its source's hash, and where it stood.

    Parameters
    ----------
    author_account_id
        Whose widget.
    widget_name
        Its name.
    receiver_id
        Whose the token becomes.
    source
        The ledger that holds the social database.
    target
        The ledger that holds the collection; it may be the same.
    collection
        The collection's contract.
    signer
        Who signs the minting on the target, and pays.
    deposit
        What is attached to it; of it the collection pays for the token's bytes.
    token_prefix
        What the token's id begins with; the first 12 digits of the source's hash follow.
    title, description
        Of the token; None is the widget's name, and its path and block.
    copies
        How many copies the token stands for.
    social_contract_id
        The database's contract; None is the one of mainnet, testnet or the embedded ledger.
    timeout_s
        How long to follow the transaction that mints.
    allow_mainnet
        Whether to sign where the target's chain is mainnet.

    Returns
    -------
    archive
        The outcome, the steps and the submission; a card in a notebook.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was asked then.
    LedgerError
        If something could not be asked. Taking the flow again finishes it, wherever it
        broke off, without a second token.

    Notes
    -----
    Source: GET /v1/account/{account_id}/nft; view calls get, nft_token and
    nft_tokens_for_owner; send_tx.
    """
    flow = _Flow(_request(**locals()))
    try:
        return _followed(flow)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(flow.result("broke_off").way_back())
        raise


def archive_steps(
    author_account_id: str, widget_name: str, receiver_id: str, **options: Any
) -> Iterator[Archive]:
    """
    Archive a widget as `archive_widget` does, and tell how it stands at each step.

    Parameters
    ----------
    author_account_id
        Whose widget.
    widget_name
        Its name.
    receiver_id
        Whose the token becomes.
    **options
        As `archive_widget` takes them.

    Returns
    -------
    archives
        One whenever a step begins, ``under_way`` with the state of each step and what it
        found; at last the one that `archive_widget` returns. A step is taken when the next
        one is asked for: who asks no further stops the flow there, and `Archive.way_back`
        says what that leaves. Before an error one tells which step failed.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was asked then.
    LedgerError
        If something could not be asked; as of `archive_widget`.
    """
    asked = signature(archive_widget).bind(author_account_id, widget_name, receiver_id, **options)
    asked.apply_defaults()
    return _Flow(_request(**asked.arguments)).told()


def _followed(flow: _Flow) -> Archive:
    """Take a flow to its end; a line shows how far it is."""
    found = flow.result("under_way")
    with Line() as line:
        for found in flow.told():
            line.show(repr(found)[1:-1])
    return found


def _request(**asked: Any) -> _Request:
    """Check what `archive_widget` was asked for."""
    author, name = sources.check_widget(asked["author_account_id"], asked["widget_name"])
    positive("timeout_s", asked["timeout_s"])
    if not isinstance(asked["allow_mainnet"], bool):
        rule = "True or False"
        raise InvalidRequestError.refuse("allow_mainnet", asked["allow_mainnet"], rule)
    prefix = tokens.checked_prefix(asked["token_prefix"])
    return _Request(
        author_account_id=author,
        widget_name=name,
        receiver_id=validation.account_id(asked["receiver_id"], "receiver_id"),
        collection=validation.account_id(asked["collection"], "collection"),
        source=client.current(asked["source"]),
        target=client.current(asked["target"]),
        signer=_signer(asked["signer"]),
        deposit=units.yocto(asked["deposit"], "deposit"),
        timeout_s=asked["timeout_s"],
        allow_mainnet=asked["allow_mainnet"],
        social_contract_id=_optional_id(asked["social_contract_id"]),
        words={"token_prefix": prefix, **_checked(asked)},
    )


def _signer(value: object) -> Signer:
    """Check who signs."""
    if not isinstance(value, signers.Signer):
        raise InvalidRequestError.refuse("signer", type(value).__name__, "what signer() returned")
    return value


def _optional_id(value: str | None) -> str | None:
    """Check the contract of the social database, if one is named."""
    return None if value is None else validation.account_id(value, "social_contract_id")


def _checked(asked: dict[str, Any]) -> dict[str, Any]:
    """Check title, description and copies before anything is asked."""
    words = {name: asked[name] for name in ("title", "description", "copies")}
    for name in ("title", "description"):
        if words[name] is not None:
            tokens.checked_text(words[name], name)
    copies = validation.integer(words["copies"], "copies", least=1, most=tokens.MOST_COPIES)
    return {**words, "copies": copies}
