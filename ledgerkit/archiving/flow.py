"""The archive flow: its steps in order, their results, and the outcome."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any

from ledgerkit import cards, client, validation
from ledgerkit.archiving import declaring, tokens, widget_sources
from ledgerkit.errors import InvalidRequestError, InvalidTransactionError, LedgerError, cut
from ledgerkit.frames import build
from ledgerkit.progress import Line
from ledgerkit.sending import signers
from ledgerkit.sending.arguments import parse_near
from ledgerkit.transport.settings import positive

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.archiving.tokens import TokenPlan, TokenReading
    from ledgerkit.archiving.widget_sources import Record, Widget
    from ledgerkit.ledger import Ledger
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
    "archived": "The token was minted, and its owner and source are as planned.",
    "already_archived": "The token already existed; nothing was minted.",
    "missing_widget": "The widget does not exist; nothing was minted.",
    "empty_source": "The widget's source is empty; nothing was minted.",
    "source_changed": "The source changed during archiving; nothing was minted.",
    "mint_failed": "The token could not be minted.",
    "token_not_appearing": "The collection does not return the token; archive the widget again.",
    "token_differs": "The token of that id has another owner or another source.",
}
MEANWHILE = {
    "under_way": "Archiving is in progress.",
    "broke_off": "A request failed; archive the widget again to finish.",
}
STATES = {
    "pending": "The step has not started.",
    "running": "The step is running.",
    "done": "The step has finished.",
    "stopped": "The step's result ended the flow.",
    "failed": "A request of the step failed, for the reason in `detail`.",
    "not_taken": "The flow ended before the step, or did not need it.",
}
_MIN_TIMEOUT_S = 0.001
_AGAIN = "Archive the widget again to finish: an existing token is found, and not minted twice."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Archive:
    """
    The state or the outcome of archiving a widget.

    Parameters
    ----------
    outcome
        One of `ledgerkit.archiving.OUTCOMES`; before the end, one of
        `ledgerkit.archiving.MEANWHILE`.
    author_account_id, widget_name
        The widget.
    receiver_id, contract_id
        The owner of the token, and its collection.
    token_id
        The token id; None without a source to derive it from.
    record
        The token's record of its source, or None.
    submission
        The transaction that mints; None if none was sent.
    failure
        The reason why the token could not be minted, or None.
    steps
        One row per step, typed as `schema("archive_steps")`; each state is one of
        `ledgerkit.archiving.STATES`.

    Examples
    --------
    >>> from ledgerkit.archiving import archive_widget
    >>> ledger = lk.connect("local")
    >>> grace = lk.signer("grace.near", ledger.world.keys()["grace.near"])
    >>> where = {"source": ledger, "target": ledger, "collection": "stamps.grace.near"}
    >>> widget = ("heidi.near", "Clock")
    >>> archive = archive_widget(*widget, "alice.near", signer=grace, **where)
    >>> archive.outcome, archive.token_id
    ('archived', 'widget-8ab0028ead1b')
    >>> archive.steps[["step", "state", "block_height"]].head(3)
                step state  block_height
    0  receiver_view  done          <NA>
    1    read_source  done     180000050
    2       token_id  done          <NA>
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
        """True if the token exists as planned."""
        return self.outcome in ("archived", "already_archived")

    @property
    def step(self) -> str | None:
        """The step that is running, or that failed; None at the end of the flow."""
        current = self.steps.loc[self.steps["state"].isin(["running", "failed"]), "step"]
        return None if current.empty else str(current.iloc[0])

    def way_back(self) -> str:
        """
        Describe whether the token was minted, and how to finish.

        Returns
        -------
        description
            One to three sentences.

        Examples
        --------
        >>> from ledgerkit.archiving import archive_widget
        >>> ledger = lk.connect("local")
        >>> grace = lk.signer("grace.near", ledger.world.keys()["grace.near"])
        >>> networks = {"source": ledger, "target": ledger}
        >>> options = {"collection": "stamps.grace.near", "signer": grace, **networks}
        >>> archive = archive_widget("heidi.near", "Clock", "alice.near", **options)
        >>> archive.way_back()
        'The token was minted, and its owner and source are as planned.'
        """
        if self.outcome in OUTCOMES:
            return OUTCOMES[self.outcome]
        states = dict(zip(self.steps["step"], self.steps["state"], strict=True))
        if self.submission is not None:
            verbs = {True: "was minted", False: "was not minted", None: "may have been minted"}
            verb = verbs[self.submission.fully_succeeded]
            tx_hash = self.submission.tx_hash
            return f"Token {cut(self.token_id)} {verb} by transaction {tx_hash}. {_AGAIN}"
        if states["mint"] in ("running", "failed"):
            return f"Token {cut(self.token_id)} may have been minted. {_AGAIN}"
        if states["token"] in ("running", "failed", "done"):
            return f"Token {cut(self.token_id)} already existed. {_AGAIN}"
        return "Nothing was minted. Archive the widget again to finish."

    def to_frame(self) -> pd.DataFrame:
        """
        Return the outcome as one row.

        Returns
        -------
        row
            Outcome, token, source and transaction, typed as `schema("archive")`.

        Examples
        --------
        >>> from ledgerkit.archiving import archive_widget
        >>> ledger = lk.connect("local")
        >>> grace = lk.signer("grace.near", ledger.world.keys()["grace.near"])
        >>> networks = {"source": ledger, "target": ledger}
        >>> options = {"collection": "stamps.grace.near", "signer": grace, **networks}
        >>> archive = archive_widget("heidi.near", "Clock", "alice.near", **options)
        >>> archive.to_frame()[["outcome", "token_id", "widget_name"]]
            outcome             token_id widget_name
        0  archived  widget-8ab0028ead1b       Clock
        """
        values = {
            "outcome": self.outcome,
            "contract_id": self.contract_id,
            "token_id": self.token_id,
            "receiver_id": self.receiver_id,
            "author_account_id": self.author_account_id,
            "widget_name": self.widget_name,
            **widget_sources.record_columns(self.record, "widget_path"),
            "tx_hash": None if self.submission is None else str(self.submission.tx_hash),
        }
        return build.of_rows("archive", [values])

    def __repr__(self) -> str:
        path = cut(widget_sources.widget_path(self.author_account_id, self.widget_name))
        token_id, contract_id = cut(self.token_id), cut(self.contract_id)
        token = "" if self.token_id is None else f" as {token_id} of {contract_id}"
        step = "" if self.step is None else f", {self.step}"
        return f"<Archive {path}{token}: {self.outcome}{step}>"

    def _repr_html_(self) -> str:
        return cards.table_card(
            "archive",
            headline=repr(self)[1:-1],
            explanation={**OUTCOMES, **MEANWHILE}[self.outcome],
            caption="Steps",
            rows=self.steps.astype("string"),  # heights are ids, without commas
            network=None if self.submission is None else self.submission.ledger.network.name,
        )


@dataclass(slots=True, kw_only=True)
class _Flow:
    """A run of the flow: the checked arguments of `archive_widget`, and the results so far."""

    author_account_id: str
    widget_name: str
    receiver_id: str
    source: Ledger
    target: Ledger
    collection: str
    signer: Signer
    deposit: str | int
    token_prefix: str
    title: str | None
    description: str | None
    copies: int
    social_contract_id: str | None
    timeout_s: float
    allow_mainnet: bool
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)  # by steps that have begun
    sent_at: float = 0.0  # a time of the monotonic clock
    plan: TokenPlan | None = None
    submission: Submission | None = None
    failure: LedgerError | None = None
    existed: bool = False

    def __post_init__(self) -> None:
        """Check the arguments, before the first request."""
        author, name = widget_sources.check_widget(self.author_account_id, self.widget_name)
        self.author_account_id, self.widget_name = author, name
        positive("timeout_s", self.timeout_s)
        validation.flag(self.allow_mainnet, "allow_mainnet")
        if self.social_contract_id is not None:
            validation.account_id(self.social_contract_id, "social_contract_id")
        tokens.check_plan_options(self.token_prefix, self.title, self.description, self.copies)
        self.receiver_id = validation.account_id(self.receiver_id, "receiver_id")
        self.collection = validation.account_id(self.collection, "collection")
        self.source, self.target = client.current(self.source), client.current(self.target)
        if not isinstance(self.signer, signers.Signer):
            kind = type(self.signer).__name__
            raise InvalidRequestError.refuse("signer", kind, "the result of lk.signer()")
        self.deposit = f"{parse_near(self.deposit, 'deposit')} yocto"

    # Order --------------------------------------------------------------------------------

    def run(self) -> Iterator[Archive]:
        """Run the steps; yield the state whenever one begins, and the outcome."""
        try:
            outcome = yield from self.run_steps()
        except LedgerError as error:
            done = [step for step, row in self.rows.items() if row["state"] != "running"]
            if len(done) < len(self.rows):
                self.end_step(cut(error.sentence), "failed")
            state = self.archive("broke_off")
            steps = ", ".join(done) or "none"
            error.add_note(f"archive_widget broke off; steps done: {steps}. {state.way_back()}")
            yield state
            raise
        yield self.archive(outcome)

    def run_steps(self) -> Generator[Archive, None, str]:
        yield self.begin_step("receiver_view")
        self.check_receiver()
        yield self.begin_step("read_source")
        widget = self.read_source()
        if widget is None:
            return "missing_widget"
        if not widget.source:
            return "empty_source"
        yield self.begin_step("token_id")
        plan = self.plan_token(widget)
        yield self.begin_step("look_up")
        if not self.find_existing(plan):
            yield self.begin_step("read_again")
            if self.has_changed(widget):
                return "source_changed"
            yield self.begin_step("mint", f"minting {plan.token_id}")
            self.send_mint(plan)
            if self.submission is not None:
                text, tx_hash = self._submission_text(self.submission), self.submission.tx_hash
                yield self.begin_step("mint", text, tx_hash=str(tx_hash))
            if not self.follow_mint(plan):
                return "mint_failed"
        yield self.begin_step("token")
        outcome = self.confirm_token(plan)
        if outcome is not None:
            return outcome
        yield self.begin_step("owner_tokens")
        return self.confirm_owner(plan)

    # Steps --------------------------------------------------------------------------------

    def check_receiver(self) -> None:
        """Check whether the receiver's NFT list includes the collection, which is not required."""
        collections = tokens.receiver_view(self.receiver_id, self.collection, target=self.target)
        verb = "does not include" if collections.empty else "includes"
        self.end_step(f"the NFT list of {self.receiver_id} {verb} {self.collection}")

    def read_source(self) -> Widget | None:
        """Read the final source, waiting for a change that is not final yet."""
        head = self._read("optimistic")
        widget = tokens.read_until(
            lambda: self._read("final"),
            lambda final: _source(final) == _source(head),
            self.source,
        )
        if widget is None:
            self.end_step(f"{self._path} does not exist at the last final block", "stopped")
        elif not widget.source:
            self.end_step(f"{self._path} is empty", "stopped", widget.read_at)
        else:
            size, height = len(widget.source.encode()), widget.socialdb_block_height
            detail = f"{self._path}: {size} bytes, written in block {height}"
            self.end_step(detail, block_height=widget.read_at)
        return widget

    def plan_token(self, widget: Widget) -> TokenPlan:
        self.plan = tokens.plan_token(
            widget,
            self.receiver_id,
            token_prefix=self.token_prefix,
            title=self.title,
            description=self.description,
            copies=self.copies,
        )
        self.end_step(f"{self.plan.token_id}, from SHA-256 {widget.sha256}")
        return self.plan

    def find_existing(self, plan: TokenPlan) -> bool:
        """Check whether the token already exists, final or not."""
        reading = self._find_at_head(plan)
        self.existed = reading.token is not None
        existence = "already exists" if self.existed else "does not exist yet"
        self.end_step(f"{plan.token_id} {existence}", block_height=reading.block_height)
        return self.existed

    def has_changed(self, widget: Widget) -> bool:
        """Read the source again, right before minting."""
        now = self._read("optimistic")
        has_changed = _source(now) != widget.source
        change = "was deleted" if now is None else "has changed" if has_changed else "is unchanged"
        height = None if now is None else now.read_at
        self.end_step(f"{self._path} {change}", "stopped" if has_changed else "done", height)
        return has_changed

    def send_mint(self, plan: TokenPlan) -> None:
        """Send the transaction that mints, and wait until a block includes it."""
        self.sent_at = time.monotonic()
        try:
            self.submission = tokens.mint_token(
                plan,
                self.collection,
                target=self.target,
                signer=self.signer,
                deposit=self.deposit,
                wait_until="INCLUDED",
                timeout_s=self.timeout_s,
                allow_mainnet=self.allow_mainnet,
            )
        except InvalidTransactionError as error:
            self.failure = error

    def follow_mint(self, plan: TokenPlan) -> bool:
        """Wait for the transaction that mints; return True if the token exists after it."""
        if self.submission is not None:
            remaining_s = self.timeout_s - (time.monotonic() - self.sent_at)
            try:
                submission = self.submission.wait("FINAL", max(remaining_s, _MIN_TIMEOUT_S))
                self.failure = submission.failure
            except InvalidTransactionError as error:
                self.failure = error
        if self.failure is None:
            self._end_mint("done")
            return True
        # An earlier mint may have used the id: a collection has each id once.
        self.existed = self._find_at_head(plan).token is not None
        result = "an earlier mint was first" if self.existed else "nothing was minted"
        state = "done" if self.existed else "stopped"
        self._end_mint(state, f"{result}: {cut(self.failure.sentence)}")
        return self.existed

    def confirm_token(self, plan: TokenPlan) -> str | None:
        """Compare the final token with the plan; return an outcome only if they differ."""
        reading = tokens.confirm_token(plan.token_id, self.collection, target=self.target)
        if reading.token is None:
            is_pending = self._find_at_head(plan).token is not None
            problem = "did not become final" if is_pending else "did not appear"
            detail = f"{plan.token_id} {problem} in {tokens.ATTEMPTS} attempts"
            self.end_step(detail, "stopped", reading.block_height)
            return "token_not_appearing"
        differences = tokens.differences(plan, reading.token)
        detail = "; ".join(differences) or f"owner {plan.receiver_id} and hash are as planned"
        self.end_step(detail, "stopped" if differences else "done", reading.block_height)
        return "token_differs" if differences else None

    def confirm_owner(self, plan: TokenPlan) -> str:
        """Check that the collection lists the token among its owner's; return the outcome."""
        is_listed = tokens.owner_has(plan, self.collection, target=self.target)
        listed = "listed" if is_listed else "not listed"
        detail = f"{listed} among the tokens of {self.receiver_id}"
        self.end_step(detail, "done" if is_listed else "stopped")
        if not is_listed:
            return "token_not_appearing"
        return "already_archived" if self.existed else "archived"

    @property
    def _path(self) -> str:
        return widget_sources.widget_path(self.author_account_id, self.widget_name)

    def _read(self, finality: str) -> Widget | None:
        return widget_sources.read_widget(
            self.author_account_id,
            self.widget_name,
            source=self.source,
            social_contract_id=self.social_contract_id,
            at=finality,
        )

    def _find_at_head(self, plan: TokenPlan) -> TokenReading:
        token_id, collection = plan.token_id, self.collection
        return tokens.find_token(token_id, collection, target=self.target, at="optimistic")

    # Rows of the steps --------------------------------------------------------------------

    def begin_step(self, step: str, detail: str | None = None, **columns: Any) -> Archive:
        self.rows[step] = {"step": step, "state": "running", "detail": detail, **columns}
        return self.archive("under_way")

    def end_step(self, detail: str, state: str = "done", block_height: int | None = None) -> None:
        """Complete the row of the step that began last."""
        ended = {"state": state, "detail": detail, "block_height": block_height}
        self.rows[next(reversed(self.rows))] |= ended

    def _end_mint(self, state: str, detail: str = "") -> None:
        submission, height = self.submission, None
        if submission is not None:
            detail = detail or self._submission_text(submission)
            heights = submission.stages.set_index("stage")["block_height"]
            height = int(heights["included"]) if submission.is_included else None
        self.end_step(detail, state, height)

    def _submission_text(self, submission: Submission) -> str:
        if submission.fully_succeeded is True:
            return f"minted by {self.signer.account_id}"
        return f"sent by {self.signer.account_id}, stage {submission.stage}"

    def steps_frame(self, remaining: str) -> pd.DataFrame:
        """Tabulate the steps; steps after the last one that began have the state `remaining`."""
        last = max((STEPS.index(step) for step in self.rows), default=-1)
        rows = [
            self.rows.get(step, {"step": step, "state": remaining if index > last else "not_taken"})
            for index, step in enumerate(STEPS)
        ]
        names = ("step", "state", "detail", "block_height", "tx_hash")
        columns = {name: [row.get(name) for row in rows] for name in names}
        return build.build_frame("archive_steps", columns)

    def archive(self, outcome: str) -> Archive:
        plan = self.plan
        return Archive(
            outcome,
            self.author_account_id,
            self.widget_name,
            self.receiver_id,
            self.collection,
            None if plan is None else plan.token_id,
            None if plan is None else plan.record,
            self.submission,
            self.failure,
            self.steps_frame("pending" if outcome == "under_way" else "not_taken"),
        )


def _source(widget: Widget | None) -> str | None:
    return None if widget is None else widget.source


@declaring.shared_parameters
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
    timeout_s: float = tokens.TIMEOUT_S,
    allow_mainnet: bool = False,
) -> Archive:
    """
    Archive a widget: mint a token that records the hash of its source and where it is.

    Parameters
    ----------
    target
        The ledger that holds the collection; it may be the same.

    Returns
    -------
    archive
        The outcome, the steps and the submission; a card in a notebook.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; then no request was sent.
    LedgerError
        If a request fails. Calling the function again finishes the flow, without a second
        token.

    Notes
    -----
    Source: GET /v1/account/{account_id}/nft; view calls get, nft_token and
    nft_tokens_for_owner; send_tx.

    Examples
    --------
    >>> from ledgerkit.archiving import archive_widget
    >>> ledger = lk.connect("local")
    >>> grace = lk.signer("grace.near", ledger.world.keys()["grace.near"])
    >>> networks = {"source": ledger, "target": ledger}
    >>> options = {"collection": "stamps.grace.near", "signer": grace, **networks}
    >>> archive = archive_widget("heidi.near", "Clock", "alice.near", **options)
    >>> archive.outcome, archive.token_id
    ('archived', 'widget-8ab0028ead1b')
    >>> archive_widget("heidi.near", "Nothing", "alice.near", **options).outcome
    'missing_widget'
    """
    flow = _Flow(**locals())
    archive = flow.archive("under_way")
    try:
        with Line() as line:
            for archive in flow.run():
                line.show(repr(archive)[1:-1])
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(flow.archive("broke_off").way_back())
        raise
    return archive


def archive_steps(
    author_account_id: str, widget_name: str, receiver_id: str, **options: Any
) -> Iterator[Archive]:
    """
    Archive a widget as `archive_widget` does, and yield the state at each step.

    Parameters
    ----------
    author_account_id
        The author of the widget.
    widget_name
        The name of the widget.
    receiver_id
        The account that will own the token.
    **options
        The options of `archive_widget`.

    Returns
    -------
    archives
        An `Archive` whenever a step begins, with the states of all steps; the last one is the
        result of `archive_widget`. A step runs when the next state is requested, so leaving the
        loop stops the flow; `Archive.way_back` then shows whether the token was minted. Before
        an error, an `Archive` shows the step that failed.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; then no request was sent.
    LedgerError
        If a request fails, as in `archive_widget`.
    """
    bound = signature(archive_widget).bind(author_account_id, widget_name, receiver_id, **options)
    bound.apply_defaults()
    return _Flow(**bound.arguments).run()
