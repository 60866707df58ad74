"""The last final block of the block documents, which must be one of the node's chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import validation
from ledgerkit.api import rpc, services
from ledgerkit.errors import UnknownBlockError, UnmatchedResponseError

if TYPE_CHECKING:
    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.ledger import Ledger


def final_header(ledger: Ledger) -> BlockHeader:
    """
    Return the header of the last final block of the block documents.

    Documents do not name their network. So the node, if the ledger has one, is asked for the same
    block; raises `UnmatchedResponseError` if it has another one there.
    """
    final: BlockHeader = ledger.send(services.last_final_block()).header
    if ledger.network.address("rpc") is not None:
        _check_same(ledger, final)
    return final


def _check_same(ledger: Ledger, final: BlockHeader) -> None:
    """Compare the newest block that both the block documents and the node have."""
    node = ledger.send(rpc.block(validation.block_reference("final"))).header
    height = min(node.height, final.height)
    own = final if final.height == height else _document_header(ledger, height)
    other = node if node.height == height else _node_header(ledger, height)
    if own is None or other is None or own.hash != other.hash:
        sentence = (
            f"block {height} of the block documents is not that of the node: they are of"
            " different networks"
        )
        remedy = "Pass rpc_url= and blocks_url= of the same network to connect()."
        request = f"the document of block {height}"
        raise UnmatchedResponseError(sentence, remedy=remedy, request=request)


def _document_header(ledger: Ledger, height: int) -> BlockHeader | None:
    """Return the header of a block by the block documents; None if they have none there."""
    block = ledger.send(services.block_headers(height, fresh=True))
    return None if block is None else block.header


def _node_header(ledger: Ledger, height: int) -> BlockHeader | None:
    """Return the header of a block by the node; None if it has none there."""
    try:
        return ledger.send(rpc.block(validation.block_reference(height))).header
    except UnknownBlockError:
        return None
