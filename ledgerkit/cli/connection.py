"""The connection of a command, and the requests that it would send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ledgerkit.cli import output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ledgerkit.api.calls import Call
    from ledgerkit.ledger import Ledger


def connect(args: argparse.Namespace) -> Ledger:
    """Open the ledger; print a message if it is the embedded one by default."""
    from ledgerkit import client
    from ledgerkit.transport import networks

    ledger = client.connect(
        args.network, rpc_url=args.rpc_url, api_url=args.api_url, record=args.record
    )
    chosen = args.network or networks.environment("NETWORK")
    if ledger.network.name == networks.LOCAL and not chosen:
        output.print_message(
            "using the embedded ledger; --network mainnet reads from the public network"
        )
    return ledger


def print_plan(args: argparse.Namespace, planned: Sequence[Call[Any]], name: str) -> None:
    """Print the first requests that a command would send, and the columns of its frame."""
    from ledgerkit.frames import build

    with connect(args) as ledger:
        network = ledger.network
        limit = ledger.session.settings.lowest_limit({call.surface for call in planned})
    columns = {
        "surface": [call.surface for call in planned],
        "method": ["GET" if call.body is None else "POST" for call in planned],
        "address": [_address(network.address(call.surface)) + call.path for call in planned],
        "body": [None if call.body is None else call.body.decode() for call in planned],
    }
    output.say("first requests (not sent; an API key would be in a header):")
    output.print_table(build.build_frame("requests", columns), output.Form(exact=True))
    output.say(f"rate limit: {limit}")
    if name:
        print_columns(name)


def print_columns(name: str) -> None:
    """Print the columns of a frame."""
    from ledgerkit.frames import build

    output.say(f"\ncolumns of the result ({name}):")
    output.print_table(build.schema(name), output.Form(exact=True))


def _address(url: str | None) -> str:
    """Return the address of a host; a path may hold a provider's key, and is not shown."""
    from ledgerkit.transport import networks

    if url is None or networks.is_loopback(url) or not urlsplit(url).path:
        return url or "(none)"
    return f"{url.removesuffix(urlsplit(url).path)}/…"
