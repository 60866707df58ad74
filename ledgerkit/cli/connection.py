"""The connection of a command, and the requests that it would send."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from ledgerkit import errors
from ledgerkit.api.matching import PLACEHOLDER
from ledgerkit.cli import output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ledgerkit.client import Ledger
    from ledgerkit.transport.networks import Surface

_CALL_ID = re.compile('(?<="id":)"[0-9a-f]+"')  # of a JSON-RPC call: a new one each time


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


def print_requests(args: argparse.Namespace, read: Callable[[Ledger], object]) -> None:
    """Print the first requests that a command would send, without sending them."""
    from ledgerkit import client
    from ledgerkit.frames import build
    from ledgerkit.transport import networks
    from ledgerkit.transport.dry_run import DryRun
    from ledgerkit.transport.settings import Settings

    with connect(args) as ledger:
        network, settings = ledger.network, client.settings(ledger)
    addresses = {s: url for s in networks.SURFACES if (url := network.address(s))}
    # Each service has its name as its host, by which its requests are known.
    hosts: dict[str, Any] = {f"{surface}_url": f"http://{surface}" for surface in addresses}
    transport = DryRun()
    with client.Ledger(Settings(network=replace(network, **hosts), transport=transport)) as ledger:
        try:
            read(ledger)
        except errors.LedgerError:  # an argument is not valid, or a request was not sent
            if not transport.requests:
                raise
    columns: dict[str, list[Any]] = {"surface": [], "method": [], "address": [], "body": []}
    for request in transport.requests:
        surface = cast("Surface", request.url.host)
        address = _shown_address(addresses[surface]) + request.url.raw_path.decode()
        body = _CALL_ID.sub(f'"{PLACEHOLDER}"', request.content.decode())
        row = (surface, request.method, address.removesuffix("/"), body or None)
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    output.say("first requests (not sent; an API key would be in a header):")
    output.print_table(build.build_frame("requests", columns), exact=True)
    output.say(f"rate limit: {settings.lowest_limit(columns['surface'])}")


def print_columns(name: str) -> None:
    """Print the columns of a frame."""
    from ledgerkit.frames import build

    output.say(f"\ncolumns of the result ({name}):")
    output.print_table(build.schema(name), exact=True)


def _shown_address(url: str) -> str:
    """Return the address of a host; a path may hold a provider's key, and is not shown."""
    from ledgerkit.transport import networks

    path = urlsplit(url).path
    return url if networks.is_loopback(url) or not path else f"{url.removesuffix(path)}/…"
