"""Widgets as the social database tells them, and what a token says of one."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import client, validation
from ledgerkit.api import rpc
from ledgerkit.errors import DecodeError, InvalidRequestError

if TYPE_CHECKING:
    from ledgerkit.client import Ledger

SOCIAL_CONTRACTS = {
    "mainnet": "social.near",
    "testnet": "v1.social08.testnet",
    "localnet": "social.near",  # what the embedded ledger calls itself
}

_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,256}", re.ASCII)
_LABEL_RULE = "1 to 256 characters of A-Z, a-z, 0-9, _ . and -"


class Record(msgspec.Struct, frozen=True):
    """What a token's `extra` says of its source; serialized in this order."""

    author_account_id: str
    widget_name: str
    widget_path: str
    source_contract_id: str
    source_network: str
    socialdb_block_height: int
    source_sha256: str


@dataclass(frozen=True, slots=True)
class Widget:
    """
    A widget as the social database tells it.

    Parameters
    ----------
    author_account_id, widget_name
        Which one.
    source
        Its text.
    socialdb_block_height
        The block in which that text was written.
    contract_id, network
        Where: the database's contract, and the chain as its node names it.
    read_at
        The block at which it was read.
    """

    author_account_id: str
    widget_name: str
    source: str = field(repr=False)
    socialdb_block_height: int
    contract_id: str
    network: str
    read_at: int | None = None

    @property
    def path(self) -> str:
        """Where it stands in the database."""
        return widget_path(self.author_account_id, self.widget_name)

    @property
    def sha256(self) -> str:
        """The hash of its text, 64 hexadecimal digits."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def record(self) -> Record:
        """What a token says of it."""
        return Record(
            self.author_account_id,
            self.widget_name,
            self.path,
            self.contract_id,
            self.network,
            self.socialdb_block_height,
            self.sha256,
        )


def widget_path(author_account_id: str, widget_name: str) -> str:
    """Give the path of a widget in the social database."""
    return f"{author_account_id}/widget/{widget_name}"


def recorded(extra: object) -> Record | None:
    """Read what a token's `extra` says of its source; None where it says no such thing."""
    try:
        text = extra if isinstance(extra, str | bytes) else b""
        record = msgspec.json.decode(text, type=Record)
        check_widget(record.author_account_id, record.widget_name)
        validation.account_id(record.source_contract_id, "source_contract_id")
        validation.block_height(record.socialdb_block_height)
    except (msgspec.DecodeError, UnicodeError, RecursionError, InvalidRequestError):
        return None
    path = widget_path(record.author_account_id, record.widget_name)
    return record if record.widget_path == path else None


def check_widget(author_account_id: object, widget_name: object) -> tuple[str, str]:
    """Check which widget is meant; a name is one label of the database, and no pattern."""
    author = validation.account_id(author_account_id, "author_account_id")
    if not isinstance(widget_name, str) or not _LABEL.fullmatch(widget_name):
        raise InvalidRequestError.refuse("widget_name", widget_name, _LABEL_RULE)
    return author, widget_name


def read_widget(
    author_account_id: str,
    widget_name: str,
    *,
    source: Ledger,
    social_contract_id: str | None = None,
    at: object = None,
) -> Widget | None:
    """
    Read a widget's source, and the block it was written in.

    Parameters
    ----------
    author_account_id
        Whose widget.
    widget_name
        Its name.
    source
        The ledger that holds the social database.
    social_contract_id
        The database's contract; None is the one of mainnet, testnet or the embedded ledger.
    at
        A height, a block hash, a finality name or a time; None is ``final``.

    Returns
    -------
    widget
        None where there is none, or none any more. An empty source is one.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, or the network's social database is not known.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: view call get of the social database, with_block_height.
    """
    author, name = check_widget(author_account_id, widget_name)
    asked = client.current(source)
    network = asked.send(rpc.status()).chain_id
    contract_id = _social_contract(network, social_contract_id)
    path = widget_path(author, name)
    args = {"keys": [path], "options": {"with_block_height": True}}
    data = validation.json_args(args)
    call = rpc.call_function(contract_id, "get", data, asked.locate(at))
    answer = asked.send(call)
    leaf = _leaf(rpc.decoded(answer, Any, call.asked), path, call.asked)
    if leaf is None:
        return None
    return Widget(author, name, *leaf, contract_id, network, answer.block_height)


def _social_contract(network: str, given: str | None) -> str:
    """Choose the contract of the social database."""
    if given is not None:
        return validation.account_id(given, "social_contract_id")
    if network not in SOCIAL_CONTRACTS:
        rule = f"the contract of the social database, which is not known of {network}"
        raise InvalidRequestError.refuse("social_contract_id", given, rule)
    return SOCIAL_CONTRACTS[network]


def _leaf(found: Any, path: str, asked: str) -> tuple[str, int] | None:
    """Find the text at a path and the height beside it; None where there is none."""
    for label in path.split("/"):
        if not isinstance(found, dict):
            raise _not_as_documented(asked, path, "no object on the way")
        if label not in found:
            return None
        found = found[label]
    told = found if isinstance(found, dict) else {"": found}
    if isinstance(told.get(""), dict):
        told = told[""]  # a node that has children too keeps its own text one level below
    text, height = told.get(""), told.get(":block")
    if text is None:
        return None  # deleted, or nothing but children
    if not isinstance(text, str) or type(height) is not int:
        raise _not_as_documented(asked, path, "no text with its block")
    return text, height


def _not_as_documented(asked: str, path: str, problem: str) -> DecodeError:
    """Say that the database's answer can't be read."""
    return DecodeError(f"the answer to {asked} has {problem} at {path}", asked=asked, path=path)
