"""The services of a world as hosts of their own: a node, and block documents."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import ledgerkit as lk
from ledgerkit.localnet.services.block_documents import document
from tests.local_transport import LocalTransport, responding
from tests.loopback import serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.localnet.world import World
    from tests.document_host import DocumentHost


def documents_of(world: World) -> dict[int, bytes]:
    """Return the documents of the blocks of a world, up to the final one."""
    last = world.chain.final.height
    blocks = [block for block in world.chain.blocks() if block.height <= last]
    return {block.height: json.dumps(document(world, block)).encode() for block in blocks}


@contextmanager
def hosts(world: World, host: DocumentHost, **options: Any) -> Iterator[lk.Ledger]:
    """Serve the node of a world and its block documents, and connect."""
    options = {"retries": lk.RetryPolicy(attempts=4, total_s=20.0), **options}
    with (
        serve(responding(LocalTransport(world))) as rpc,
        serve(host) as blocks,
        lk.connect("lab", rpc_url=rpc.url, blocks_url=blocks.url, **options) as ledger,
    ):
        yield ledger
    lk.disconnect()
