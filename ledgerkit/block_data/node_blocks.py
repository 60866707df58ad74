"""The blocks of many heights, from a node."""

from __future__ import annotations

from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.api import rpc

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from ledgerkit.api.calls import Call
    from ledgerkit.api.models import chain
    from ledgerkit.errors import LedgerError
    from ledgerkit.ledger import Ledger
    from ledgerkit.validation import BlockReference

    NodeRead = tuple[int, chain.Block | LedgerError]


def read_node_blocks(
    ledger: Ledger,
    heights: Iterable[int],
    *,
    size: int,
    whole: bool = False,
    ahead: int | None = None,
    rate_limit_wait_s: float = 0.0,
) -> Generator[NodeRead, None, None]:
    """
    Yield heights, each with its block or error.

    With `whole` it has its whole header. The other options are those of `Session.stream`.
    """
    build: Callable[[BlockReference], Call[Any]] = rpc.whole_block if whole else rpc.block
    sent: deque[int] = deque()

    def calls() -> Iterator[Call[Any]]:
        for height in heights:
            sent.append(height)
            yield build(validation.block_reference(height))

    stream = ledger.session.stream(
        calls(), size=size, ahead=ahead, rate_limit_wait_s=rate_limit_wait_s
    )
    with closing(stream) as batches:
        for blocks in batches:
            for block in blocks:
                yield sent.popleft(), block
