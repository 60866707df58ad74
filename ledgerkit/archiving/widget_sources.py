"""Widgets of the social database, and the record of a widget in a token."""

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ledgerkit import client, json_decoding, validation
from ledgerkit.api import rpc
from ledgerkit.archiving import declaring
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.ledger import Ledger

SOCIAL_CONTRACTS = {
    "mainnet": "social.near",
    "testnet": "v1.social08.testnet",
    "localnet": "social.near",  # the chain id of the embedded ledger
}

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}", re.ASCII)
_NAME_RULE = "1 to 256 characters of A-Z, a-z, 0-9, _ . and -"


class Record(msgspec.Struct, frozen=True):
    """The provenance in a token's `extra`; serialized in this order."""

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
    A widget read from the social database.

    Parameters
    ----------
    author_account_id, widget_name
        The author and the name.
    source
        The source text.
    socialdb_block_height
        The block in which that text was written.
    contract_id, network
        The contract of the database, and the chain id of its network.
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
        """The path in the database."""
        return widget_path(self.author_account_id, self.widget_name)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the source, 64 hexadecimal digits."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def record(self) -> Record:
        """The provenance to store in a token."""
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
    return f"{author_account_id}/widget/{widget_name}"


def parse_record(extra: object) -> Record | None:
    """Parse the record in a token's `extra`; None if it is not one, or malformed."""
    try:
        text = extra if isinstance(extra, str | bytes) else b""
        record = json_decoding.decode(text, Record)
        check_widget(record.author_account_id, record.widget_name)
        validation.account_id(record.source_contract_id, "source_contract_id")
        validation.block_height(record.socialdb_block_height)
    except (msgspec.DecodeError, InvalidRequestError):
        return None
    path = widget_path(record.author_account_id, record.widget_name)
    return record if record.widget_path == path else None


def record_columns(record: Record | None, *names: str) -> dict[str, Any]:
    """Return the named fields of a record and its source, with None for a missing record."""
    source = ("source_contract_id", "source_network", "socialdb_block_height", "source_sha256")
    return {name: getattr(record, name, None) for name in (*names, *source)}


def check_widget(author_account_id: object, widget_name: object) -> tuple[str, str]:
    """Check the author and the name of a widget; a name must not be a path or a pattern."""
    author = validation.account_id(author_account_id, "author_account_id")
    if not isinstance(widget_name, str) or not _NAME.fullmatch(widget_name):
        raise InvalidRequestError.refuse("widget_name", widget_name, _NAME_RULE)
    return author, widget_name


@declaring.shared_parameters
def read_widget(
    author_account_id: str,
    widget_name: str,
    *,
    source: Ledger,
    social_contract_id: str | None = None,
    at: object = None,
) -> Widget | None:
    """
    Read a widget's source, and the block in which it was written.

    Returns
    -------
    widget
        None if the widget does not exist or was deleted. Its source can be empty.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, or the network's social database is not known.
    LedgerError
        If the request fails.

    Notes
    -----
    Source: view call get of the social database, with_block_height.
    """
    author, name = check_widget(author_account_id, widget_name)
    ledger = client.current(source)
    network = ledger.send(rpc.status()).chain_id
    contract_id = _social_contract(network, social_contract_id)
    path = widget_path(author, name)
    args = validation.json_args({"keys": [path], "options": {"with_block_height": True}})
    call = rpc.call_function(contract_id, "get", args, ledger.locate(at))
    call_result = ledger.send(call)
    leaf = _leaf(rpc.result_json(call_result, Any, call.request), path, call.request)
    if leaf is None:
        return None
    return Widget(author, name, *leaf, contract_id, network, call_result.block_height)


def _social_contract(network: str, contract_id: str | None) -> str:
    if contract_id is not None:
        return validation.account_id(contract_id, "social_contract_id")
    if network not in SOCIAL_CONTRACTS:
        expected = f"the contract of the social database, which is not known for {network}"
        raise InvalidRequestError.required("social_contract_id", expected)
    return SOCIAL_CONTRACTS[network]


def _leaf(node: Any, path: str, request: str) -> tuple[str, int] | None:
    """Return the text at a path and its block height; None if there is no text."""
    for label in path.split("/"):
        if not isinstance(node, dict):
            raise _decode_error(request, path, "no object above the text")
        if label not in node:
            return None
        node = node[label]
    leaf = node if isinstance(node, dict) else {"": node}
    # The text and block of a node with children are one level below it.
    if isinstance(leaf.get(""), dict):
        leaf = leaf[""]
    text, height = leaf.get(""), leaf.get(":block")
    if text is None:
        return None  # deleted, or a node with children only
    if not isinstance(text, str) or type(height) is not int:
        raise _decode_error(request, path, "no text with its block")
    return text, height


def _decode_error(request: str, path: str, problem: str) -> DecodeError:
    sentence = f"the response to {request} has {problem} at {path}"
    return DecodeError(sentence, request=request, path=path)
