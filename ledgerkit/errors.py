"""
The tree of errors that ledgerkit raises.

LedgerError
├── TransportError                    no usable response; says nothing about the ledger
│   ├── TransactionTimeoutError       `wait_until` was not reached in time
│   ├── NodeNotReadyError             the node is starting or behind
│   ├── NodeError                     the node failed while answering
│   ├── UnavailableShardError         the node does not track the shard
│   ├── RequestRoutedError            the node forwarded the transaction
│   ├── ResponseTooLargeError         the response is larger than `max_response_bytes`
│   ├── NotRecordedError              the recording has no answer to the request
│   └── UnmatchedResponseError        the response belongs to another request
├── RateLimitedError                  too many requests
├── AuthError                         the API key was refused
├── NotFoundError                     it does not exist, or not on this host
│   ├── UnknownAccountError
│   ├── UnknownAccessKeyError
│   ├── UnknownBlockError
│   ├── GarbageCollectedBlockError
│   ├── UnknownChunkError
│   ├── UnknownTransactionError
│   ├── UnknownReceiptError
│   ├── UnknownTransactionOrReceiptError
│   ├── UnknownEpochError
│   └── ProofNotReadyError
├── InvalidRequestError               invalid, often before anything is sent; also a `ValueError`
│   ├── RpcMethodNotFoundError
│   ├── RequestParseError
│   ├── InvalidAccountError
│   ├── InvalidShardIdError
│   ├── TooLargeContractStateError
│   ├── TooManyAccessKeysError
│   ├── ValidatorInfoUnavailableError
│   └── LookupLimitError
├── InvalidTransactionError           the chain refused it; classes in `api.chain_errors`
├── ReceiptFailedError                a receipt failed; classes in `api.chain_errors`
├── DroppedError                      the transaction was never included
├── ContractError                     a view call failed in the contract
│   ├── ContractPanicError
│   ├── ContractMethodNotFoundError
│   ├── NoContractCodeError
│   ├── NoGlobalContractCodeError
│   ├── ViewGasExceededError
│   └── ProhibitedInViewError
├── DecodeError                       the response is not as documented
├── ProofError                        what was received is not what the chain commits to
└── FileError                         a file could not be read or written
    └── RecordingError                a file is no recording, or is damaged

Each error has a `remedy` (what to do next) unless its sentence says so already, `retryable`
(the same request may succeed soon) and `elsewhere` (another host, such as the archival one,
may have the answer).
"""

from __future__ import annotations

import copy
import errno
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self

from ledgerkit.redaction import hide, repr_of, secret_in
from ledgerkit.visible_text import escape_invisible

_MAX_SHOWN = 120
_MAX_QUOTED = 200
_SPACE = re.compile(r"\s+", re.ASCII)
# Remedies that several modules end with.
RUN_AGAIN = "run the same command again: stored data is kept."
CONNECT_ARCHIVE = "Pass archival_rpc_url= to connect(): an archival host has every block and state."
_PLACEHOLDER_MARKS = str.maketrans("{}", "``")  # for a template in a docstring


def cut(value: object, limit: int = _MAX_SHOWN) -> str:
    """
    Return a value as one line of at most `limit` characters; a shortened one ends in "…".

    Invisible characters are escaped, as `visible_text` describes.
    """
    # The text may be megabytes long, so it is shortened before it is split.
    text = _plain(value, limit)[: 4 * limit]
    if len(text) > limit or not text.isprintable():
        text = _SPACE.sub(" ", text).strip()
    line = escape_invisible(text)
    return line if len(line) <= limit else line[: limit - 1].rstrip("\u200c\u200d") + "…"


def _plain(value: object, limit: int) -> str:
    """Return a value as text, a dict as "name value, name value"."""
    try:
        if isinstance(value, dict) and value:
            return ", ".join(f"{key} {str(item)[:limit]}" for key, item in value.items())
        return str(value)
    except (ValueError, RecursionError):  # an int of thousands of digits, or deep nesting
        return f"a {type(value).__name__} too large to show"


def excerpt(value: object, limit: int = _MAX_SHOWN) -> str:
    """Shorten a text that was received as `cut` does, and hide secrets that begin in it."""
    text = _plain(value, limit)
    return cut(text if len(text) <= limit else hide(text[: 4 * limit]), limit)


class _TemplateValues(dict[str, str]):
    """Values of a template by name; a missing one reads "(no NAME given)"."""

    def __missing__(self, key: str) -> str:
        return f"(no {key} given)"


def quote(value: object, limit: int = _MAX_SHOWN) -> str:
    """Quote a value that a caller passed, on one line; a secret is named, but not shown."""
    secret = secret_in(value)
    return cut(repr_of(value), limit) if secret is None else f"({secret}, not shown)"


def did_you_mean(name: object, choices: Iterable[str], **synonyms: str) -> str:
    """
    Return "Did you mean 'mainnet'?" for a misspelt name; "" if no choice is like it.

    A name that is like a synonym means the choice that is its value.
    """
    spellings = synonyms | {choice.casefold(): choice for choice in choices}
    if not isinstance(name, str) or not spellings:
        return ""
    from difflib import get_close_matches

    matches = get_close_matches(name[:_MAX_SHOWN].casefold(), spellings, n=1)
    return f"Did you mean {quote(spellings[matches[0]])}?" if matches else ""


def missing_attribute(
    module: str, name: str, choices: Iterable[str], **synonyms: str
) -> AttributeError:
    """Build the error for a name that a module does not have, with the result of `did_you_mean`."""
    # Interpreters and notebooks look for private names such as `_repr_html_` in every object.
    looked_for = name.removeprefix("get_")
    hint = "" if name.startswith("_") else did_you_mean(looked_for, choices, **synonyms)
    hint = f"; {hint[0].lower()}{hint[1:]}" if hint else ""
    # With `obj` unset, Python does not append a suggestion of its own.
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)


def suggest_attributes(module: str) -> Callable[[str], Never]:
    """Build the `__getattr__` of a module: it raises for a name that the module does not have."""

    def refuse_name(name: str) -> Never:
        names = vars(sys.modules[module])
        public = [other for other in names if not other.startswith("_")]
        raise missing_attribute(module, name, names.get("__all__", public))

    return refuse_name


def fill(template: str, details: Mapping[str, object]) -> str:
    """
    Fill the template of an error class with values, each shortened to one line.

    Missing and None values read "(no NAME given)"; `{at}` becomes " at block N", or nothing.
    """
    values = {name: excerpt(value) for name, value in details.items() if value is not None}
    texts = _TemplateValues(values)
    texts["at"] = f" at block {texts['block_height']}" if "block_height" in texts else ""
    return template.format_map(texts)


class LedgerError(Exception):
    """
    The base class of all errors that ledgerkit raises.

    Parameters
    ----------
    sentence
        What happened, with the values. By default the template of the class, filled.
    remedy
        What to do next, if it differs from the remedy of the class.
    **details
        Attributes of the error. Declared attributes that are not passed are None.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> try:
    ...     lk.view("counter.near", "get_number")
    ... except lk.LedgerError as error:
    ...     print(type(error).__name__, error.retryable)
    ...     print(error.remedy)
    ContractMethodNotFoundError False
    Check the method name and the contract id.
    """

    template: str = "The request failed"
    remedy: str = ""
    retryable: bool = False
    elsewhere: bool = False
    request: str | None = None
    rpc_cause: str | None = None
    fields: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        """Collect the declared attributes and set a default of None for each."""
        if cls.__doc__ is None:
            cls.__doc__ = f"{cls.template.translate(_PLACEHOLDER_MARKS)}."
        cls.fields = {**cls.fields, **cls.__annotations__}
        for name in cls.__annotations__:
            if not hasattr(cls, name):
                setattr(cls, name, None)

    def __init__(self, sentence: str = "", *, remedy: str | None = None, **details: object) -> None:
        """Pass only the sentence to `Exception`, so that every subclass can be pickled."""
        super().__init__(hide(sentence or fill(self.template, details)))
        for name, value in details.items():
            self.__dict__[name] = hide(value) if isinstance(value, str) else value
        if details.get("value") is not None and secret_in(details["value"]):
            self.__dict__["value"] = None
        if remedy is not None:
            self.remedy = remedy

    @property
    def sentence(self) -> str:
        """The message without the remedy."""
        return escape_invisible(str(self.args[0]) if self.args else self.template)

    def _context(self) -> str:
        """Return what was requested, unless the sentence contains it."""
        return (
            f"request: {self.request}" if self.request and self.request not in self.sentence else ""
        )

    def __str__(self) -> str:
        """Return what happened, then what to do, with invisible characters escaped."""
        context = self._context()
        sentence = self.sentence.rstrip(". ") if context else self.sentence.rstrip()
        sentence += f" ({context})" if context else ""
        stop = "" if sentence.endswith((".", "!", "?", "…")) else "."
        return escape_invisible(f"{sentence}{stop} {self.remedy}".rstrip())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({cut(self.sentence, 80)!r})"

    def _render_traceback_(self) -> list[str]:
        """Format this error for IPython: the caller's lines, the sentence and the remedy."""
        # IPython calls this method. With another mode than its default one, such as by
        # `%tb Verbose`, it shows the lines of this package and the causes too.
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython else None
        if shell is None:
            return traceback.format_exception(self)
        frames, error = self.__traceback__, self
        if shell.InteractiveTB.mode == "Context":
            # A copy has no cause and no context, whose lines IPython would show.
            frames, error = _callers_frames(frames), copy.copy(self)
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(self), error, frames)
        return lines


def _callers_frames(frames: TracebackType | None) -> TracebackType | None:
    callers: list[TracebackType] = []
    while frames is not None:
        module = str(frames.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] == "ledgerkit":
            break
        callers.append(frames)
        frames = frames.tb_next
    copied = None
    for caller in reversed(callers):
        copied = TracebackType(copied, caller.tb_frame, caller.tb_lasti, caller.tb_lineno)
    return copied


# No usable response ---------------------------------------------------------------------


class TransportError(LedgerError):
    """
    No usable response: no connection, a timeout, a failing host, or a body that is not JSON.

    `reason` is why there was no response at all. `no_connection` is True if the host could not be
    connected to. `not_sent` is True if the request was not even sent, because many before it had
    no response.
    """

    status: int | None
    retry_after: float | None
    reason: str | None
    no_connection: bool | None
    not_sent: bool | None
    template = "The host did not respond"
    remedy = "Check the connection and the address of the host, then try again."
    retryable = True


class TransactionTimeoutError(TransportError):
    """The transaction did not reach the level of `wait_until` in time; it may still succeed."""

    cause_name: str | None
    template = "The transaction did not reach the requested level in time; it may still succeed"
    remedy = "Request the transaction by its hash until it is final; do not sign a new one yet."
    elsewhere = True


class NodeNotReadyError(TransportError):
    """The node is starting, syncing, or has not computed the result yet."""

    elapsed: object
    epoch_id: str | None
    shard_id: int | None
    template = "The node is not ready"
    remedy = "Try again in a few seconds, or use another host."


class NodeError(TransportError):
    """The node failed internally, or reported an error that ledgerkit does not know."""

    code: int | None
    text: str | None
    template = "The node failed: {text}"
    remedy = "Try again in a moment; if the error persists, use another host."


class UnavailableShardError(TransportError):
    """The node does not track the requested shard."""

    shard_id: int | None
    requested_shard_id: int | None
    template = "The node does not track shard {shard_id}"
    remedy = "Use another host, for example the archival one."
    retryable = False
    elsewhere = True


class ResponseTooLargeError(TransportError):
    """The response is larger than `max_response_bytes`, as sent or unpacked."""

    max_bytes: int | None
    template = "The response has more than {max_bytes} bytes"
    remedy = "Request less at once, or allow more with connect(max_response_bytes=...)."
    retryable = False


class RequestRoutedError(TransportError):
    """The node forwarded the transaction to another node and does not wait for its result."""

    transaction_hash: str | None
    template = "The node forwarded transaction {transaction_hash} to another node"
    remedy = "Request the transaction by its hash; there is no need to send it again."
    retryable = False


class UnmatchedResponseError(TransportError):
    """The response belongs to another request; it was not used."""

    template = "The response belongs to another request"
    remedy = (
        "Try again; if the error persists, the host or a proxy on the way mixes up responses: use"
        " another one."
    )


class NotRecordedError(TransportError):
    """The recording has no answer to the request; nothing is known of it."""

    template = "The recording has no answer to the request"
    remedy = 'Ask it once more while connected, within lk.record(path, mode="extend").'
    retryable = False


class RateLimitedError(LedgerError):
    """The host refuses requests because there were too many."""

    status: int | None
    retry_after: float | None
    template = "Too many requests"
    remedy = "Wait a minute, lower rate=, or connect with an API key."
    retryable = True


class AuthError(LedgerError):
    """The host refused the API key, or requires one."""

    status: int | None
    template = "The host refused the API key"
    remedy = "Check the API key passed to connect(), and that it is valid for this network."


# It does not exist, or not on this host -------------------------------------------------


class NotFoundError(LedgerError):
    """The requested object does not exist, or this host does not have it."""

    block_height: int | None
    block_hash: str | None
    template = "Not found{at}"
    remedy = "Check the name, the network and the requested block."


class UnknownAccountError(NotFoundError):
    """The account does not exist at the requested block."""

    account_id: str | None
    requested_account_id: str | None
    template = "Account {account_id} does not exist{at}"
    remedy = "Check the spelling, the network (mainnet or testnet) and the block."


class UnknownAccessKeyError(NotFoundError):
    """The account does not have the access key, or does not exist."""

    public_key: str | None
    account_id: str | None
    template = "Access key {public_key} does not exist{at}"
    remedy = "List the account's keys with keys(); if there are none, check the account id."


class UnknownBlockError(NotFoundError):
    """The block does not exist (some heights are skipped), or this host does not have it."""

    block: object
    block_reference: object
    template = "This host does not have block {block}"
    remedy = (
        "Request a neighbouring height (some heights have no block), use the archival host for"
        " an old block, or wait for a future one."
    )
    elsewhere = True


class GarbageCollectedBlockError(NotFoundError):
    """The host has the block, but has discarded its state."""

    template = "This host has discarded the state of block {block_height}, {block_hash}"
    remedy = CONNECT_ARCHIVE
    elsewhere = True


class UnknownChunkError(NotFoundError):
    """The host does not have the chunk, or not yet."""

    chunk_hash: str | None
    template = "This host does not have chunk {chunk_hash}"
    remedy = "Use the archival host for an old chunk; wait a moment for a new one."
    elsewhere = True


class UnknownTransactionError(NotFoundError):
    """The transaction does not exist, or this host does not have it."""

    transaction_hash: str | None
    requested_transaction_hash: str | None
    template = "No transaction {transaction_hash} is known to this network"
    remedy = (
        "Check the hash, the sender and the network; use the archival host for an old"
        " transaction, or wait for a new one."
    )
    elsewhere = True


class UnknownReceiptError(NotFoundError):
    """The host does not have the receipt, or not yet."""

    receipt_id: str | None
    template = "This host does not have receipt {receipt_id}"
    remedy = "Check the id; use the archival host for an old receipt, or wait for a new one."
    elsewhere = True


class UnknownTransactionOrReceiptError(NotFoundError):
    """The host has neither a transaction nor a receipt with this id."""

    transaction_or_receipt_id: str | None
    template = "This host has no transaction or receipt {transaction_or_receipt_id}"
    remedy = "Check the id, wait until it is final, or use the archival host."
    elsewhere = True


class UnknownEpochError(NotFoundError):
    """The host does not have the epoch."""

    epoch_id: str | None
    text: str | None
    template = "This host does not have the requested epoch: {text}"
    remedy = "Pass the epoch_id of a block header, or none for the latest epoch."


class ProofNotReadyError(NotFoundError):
    """The proof is not available yet."""

    transaction_or_receipt_id: str | None
    text: str | None
    template = "The proof is not available yet: {text}"
    remedy = "Wait until the outcome's block is final, then request the proof again."


# The request is invalid -----------------------------------------------------------------


class InvalidRequestError(LedgerError, ValueError):
    """The request is invalid; also raised for invalid arguments, before anything is sent."""

    field: str | None
    value: object
    rule: str | None
    status: int | None
    text: str | None
    template = "The request was refused: {text}"
    remedy = ""  # the sentence itself says what would be valid

    @classmethod
    def refuse(
        cls, field: str, value: object, expected: str, *, choices: Iterable[str] = ()
    ) -> Self:
        """
        Build the error for an invalid argument.

        Parameters
        ----------
        field
            Name of the argument, such as "account_id".
        value
            The value that was passed. It is neither shown nor stored if it may be a secret.
        expected
            What would be valid: a noun phrase that follows "expected".
        choices
            The valid words; the remedy names the one that a misspelt value is most like.

        Returns
        -------
        error
            To be raised by the caller.
        """
        secret = secret_in(value)
        if secret is not None:
            sentence = f"{secret} was passed as {field}, and is not shown: expected {expected}"
            return cls(sentence, field=field, value=None, rule=expected)
        error = cls(
            f"{field} {cut(repr_of(value))} is not valid: expected {expected}",
            field=field,
            remedy=did_you_mean(value, choices) or None,
            rule=expected,
        )
        error.value = value
        return error

    @classmethod
    def required(cls, field: str, expected: str) -> Self:
        """
        Build the error for a missing argument.

        Parameters
        ----------
        field
            Name of the argument, such as "out".
        expected
            What to pass: a noun phrase, such as "the folder to write to".

        Returns
        -------
        error
            To be raised by the caller.
        """
        return cls(f"{field} is required: {expected}", field=field, rule=expected)


class RpcMethodNotFoundError(InvalidRequestError):
    """The node has no RPC method with this name."""

    method_name: str | None
    template = "The node has no RPC method {method_name}"
    remedy = "Check the method name; newer methods need a newer node."


class RequestParseError(InvalidRequestError):
    """The node could not read the parameters."""

    error_message: str | None
    template = "The node could not read the request: {error_message}"
    remedy = "Correct the parameter."


class InvalidAccountError(InvalidRequestError):
    """The account id is malformed."""

    account_id: str | None
    requested_account_id: str | None
    block_height: int | None
    block_hash: str | None
    template = "Account id {account_id} is malformed"
    remedy = "Use 2 to 64 characters: a-z and 0-9, separated by single '.', '-' or '_'."


class InvalidShardIdError(InvalidRequestError):
    """The shard is not in the shard layout of the block."""

    shard_id: int | None
    template = "Shard {shard_id} is not in the shard layout of the block"
    remedy = "Use a shard_id from the chunks of the block; the ids are not contiguous."


class TooLargeContractStateError(InvalidRequestError):
    """The contract has more state than the host returns."""

    account_id: str | None
    contract_account_id: str | None
    block_height: int | None
    block_hash: str | None
    template = "Contract {account_id} has more state than this host returns"
    remedy = (
        "Use a longer key prefix, a node that sends the state in pages (from version 2.13 on), or"
        " the contract's view methods."
    )


class TooManyAccessKeysError(InvalidRequestError):
    """The account has more access keys than the host returns at once."""

    account_id: str | None
    requested_account_id: str | None
    limit: int | None
    block_height: int | None
    block_hash: str | None
    template = "Account {account_id} has more than {limit} access keys"
    remedy = "Read them with keys(), which requests them in pages."


class ValidatorInfoUnavailableError(InvalidRequestError):
    """The host has no validator information for the block."""

    template = "This host has no validator information for the block"
    remedy = "Pass the last block of an epoch, an epoch_id, or nothing for the latest epoch."


class LookupLimitError(InvalidRequestError):
    """The search from a receipt to its transaction exceeded a limit of the host."""

    requested: int | None
    maximum: int | None
    scanned: int | None
    limit: int | None
    template = "The host stopped the search: {text}"
    remedy = "Pass the block_height and shard_id of the receipt, or look up the transaction itself."


# Refused by the chain, failed on it, or not readable ------------------------------------


class InvalidTransactionError(LedgerError):
    """
    The chain refused the transaction; nothing was executed.

    `variant` is the chain's name for the reason and `payload` its values as received. The
    values are attributes too, amounts as ints in yoctoNEAR; missing ones are None.
    """

    variant: str = "Unknown"
    payload: object
    template = "The chain refused the transaction: {variant}"
    remedy = "Correct the transaction, then sign and send it again."


class ReceiptFailedError(LedgerError):
    """
    A receipt of the transaction failed; other receipts may have succeeded.

    `kind` is the path of the chain's variants, such as "FunctionCallError.ExecutionError",
    `variant` its last part, and `index` the position of the failed action.
    """

    receipt_id: str | None
    kind: str = "Unknown"
    variant: str = "Unknown"
    index: int | None
    payload: object
    template = "The receipt failed: {variant}"
    remedy = "See the transaction's trace for what ran before this receipt."

    def _context(self) -> str:
        """Return the receipt id and the index of the failed action."""
        receipt = f"receipt {self.receipt_id}" if self.receipt_id else ""
        action = f"action {self.index}" if self.index is not None else ""
        return ", ".join(part for part in (receipt, action, super()._context()) if part)


class DroppedError(LedgerError):
    """The transaction was accepted, was not included in a block, and no longer can be."""

    transaction_hash: str | None
    template = "Transaction {transaction_hash} was not included in a block and no longer can be"
    remedy = "Sign it again with a new nonce and block hash, and send it."


class ContractError(LedgerError):
    """A view call failed in the contract."""

    vm_error: object
    block_height: int | None
    block_hash: str | None
    template = "The view call failed in the contract{at}: {vm_error}"
    remedy = "Check the method and its arguments against the contract's documentation."


class ContractPanicError(ContractError):
    """The contract panicked with a message."""

    panic_msg: str
    template = "The contract panicked{at}: {panic_msg}"
    remedy = "Do what the contract's message asks: change the call, or wait and call again."


class ContractMethodNotFoundError(ContractError):
    """The contract does not have the method."""

    reason: str | None
    template = "The contract does not have the method{at}: {reason}"
    remedy = "Check the method name and the contract id."


class NoContractCodeError(ContractError):
    """The account has no contract."""

    account_id: str | None
    contract_account_id: str | None
    template = "Account {account_id} has no contract{at}"
    remedy = "Check the contract id and the network."


class NoGlobalContractCodeError(ContractError):
    """The global contract does not exist."""

    identifier: object
    template = "Global contract {identifier} does not exist{at}"
    remedy = "Check the code hash or the account id that published the contract."


class ViewGasExceededError(ContractError):
    """The view call ran out of the gas that a host allows for it."""

    template = "The view call needs more gas than the host allows{at}"
    remedy = "Ask for less in one call, for example a smaller page (limit), or use another host."


class ProhibitedInViewError(ContractError):
    """The method called a host function that is only allowed in a transaction."""

    method_name: str | None
    template = "The contract called {method_name}, which is not allowed in a view call{at}"
    remedy = "Call the method in a signed transaction instead of a view call."


NOT_AS_DOCUMENTED = " is not as documented: "  # before the reason in the sentence of an error


class DecodeError(LedgerError):
    """The response does not have the documented form."""

    path: str | None
    template = "The response is not as documented at {path}"
    remedy = (
        "Try again; if the error persists, the service has changed and ledgerkit needs an update."
    )


def not_as_documented(
    document: str, problem: object, parent: str = "$", **details: Any
) -> DecodeError:
    """Build the error for a decoder's problem with a document, or with its part at `parent`."""
    reason, _, path = str(problem).partition(" - at `$")
    path = parent + path.rstrip("`")
    return DecodeError(f"{document}{NOT_AS_DOCUMENTED}{reason} at {path}", path=path, **details)


# HTTP errors without a documented body --------------------------------------------------

_AUTH = {401, 402, 403}
_TIMEOUT = 408
_TOO_MANY = 429
_REMEDIES = {
    402: "The quota of the API key is used up: renew it, or connect without a key.",
    404: "Check the address of the host: it does not have this path.",
    413: "Send a smaller request.",
    415: "Check the address of the host: it expects another content type.",
}
_ORIGIN = "Use an API key that is not restricted to web origins, or none."


def from_status(
    status: int, text: str, *, request: str, retry_after: float | None = None
) -> LedgerError:
    """
    Build the error for a failing HTTP status whose body has no documented error.

    At most 200 characters of the body `text` are quoted, on one line. `retry_after` is the pause
    that the host requests, in seconds. Errors with status 5xx or 408 are retryable.
    """
    quoted = excerpt(text, _MAX_QUOTED)
    sentence = f"HTTP {status} in response to {request}" + (f": {quoted}" if quoted else "")
    details: dict[str, Any] = {"status": status, "request": request, "retry_after": retry_after}
    if status == _TOO_MANY:
        return RateLimitedError(sentence, **details)
    remedy = _REMEDIES.get(status)
    if status in _AUTH:
        if "origin_not_allowed" in text:
            sentence, remedy = f"The API key is restricted to web origins. {sentence}", _ORIGIN
        return AuthError(sentence, remedy=remedy, status=status, request=request)
    if status in range(400, 500) and status != _TIMEOUT:
        return InvalidRequestError(
            sentence, remedy=remedy, status=status, request=request, text=quoted
        )
    retryable = status == _TIMEOUT or status in range(500, 600)
    return TransportError(sentence, retryable=retryable, **details)


class ProofError(LedgerError):
    """What was received is not what the chain commits to."""

    block_hash: str | None
    template = "The data of block {block_hash} is not what its hash commits to"
    remedy = "Use none of it; read it again from another host."


class FileError(LedgerError):
    """A file could not be read or written; files written before are intact."""

    template = "Could not {operation}: {reason}"
    remedy = f"Solve the problem and {RUN_AGAIN}"
    operation: str | None = None
    reason: str | None = None

    @classmethod
    def failed(cls, operation: str, error: OSError) -> Self:
        """Build the error from an `OSError`; `operation` completes "could not ..."."""
        remedy = f"Free some disk space and {RUN_AGAIN}" if error.errno in _DISK_FULL else None
        reason = error.strerror or str(error) or type(error).__name__
        return cls(remedy=remedy, operation=operation, reason=reason)


class RecordingError(FileError):
    """A file is no recording, is damaged, or was made by a newer version."""

    remedy = "Check the path, and that the file was copied whole."


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)

if not TYPE_CHECKING:  # type checkers report unknown names
    __getattr__ = suggest_attributes(__name__)
