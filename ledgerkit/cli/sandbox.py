"""The command `sandbox`, with the command line of a node's sandbox binary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerkit import errors
from ledgerkit._version import __version__
from ledgerkit.cli import output

if TYPE_CHECKING:
    import argparse

_MAX_PORT = 65535
_VALUE: dict[str, Any] = {}
_FLAG: dict[str, Any] = {"action": "store_true"}
# Options of the binary that have no meaning here.
_IGNORED = {
    "init": {
        "--boot-nodes": _VALUE,
        "--download-config": {"nargs": "?"},
        "--download-config-url": _VALUE,
        "--download-genesis": _FLAG,
        "--download-genesis-url": _VALUE,
        "--download-records-url": _VALUE,
        "--genesis": _VALUE,
        "--max-gas-burnt-view": _VALUE,
        "--state-sync-bucket": _VALUE,
    },
    "run": {
        "--boot-nodes": _VALUE,
        "--connect-to-reliable-peers-on-startup": _VALUE,
        "--disable-rpc": _FLAG,
        "--max-gas-burnt-view": _VALUE,
        "--min-peers": _VALUE,
        "--network-addr": _VALUE,
        "--produce-empty-blocks": _VALUE,
        "--rpc-prometheus-addr": _VALUE,
        "--telemetry-url": _VALUE,
    },
}


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `sandbox`."""
    from ledgerkit.localnet.rpc.node import VERSION

    version = f"near-sandbox of ledgerkit {__version__} (release {VERSION})"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument(
        "--home", metavar="DIR", help="the folder of the files; default: NEAR_HOME, or ~/.near"
    )
    parser.add_argument("--unsafe-fast-startup", action="store_true", help="ignored")
    parser.add_argument("--verbose", nargs="?", help="ignored")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    init = actions.add_parser("init", help="write the configuration, the genesis and the keys")
    init.add_argument("--chain-id", metavar="ID", help="default: a random one")
    init.add_argument("--account-id", metavar="ID", help="the validator; default: test.near")
    init.add_argument("--test-seed", metavar="SEED", help="the seed of the validator's key")
    init.add_argument("--fast", action="store_true", help="short blocks and epochs")
    init.add_argument("--num-shards", type=int, choices=(1,), help="the number of shards")
    run_parser = actions.add_parser("run", help="serve a new chain from the genesis file")
    run_parser.add_argument("--rpc-addr", metavar="HOST:PORT", help="default: that of config.json")
    run_parser.add_argument("--archive", action="store_true", help="keep all states")
    for subparser, options in ((init, _IGNORED["init"]), (run_parser, _IGNORED["run"])):
        for name, option in options.items():
            subparser.add_argument(name, help="ignored", **option)


def run(args: argparse.Namespace) -> int:
    """Write the files of a sandbox, or serve it until it is stopped."""
    from ledgerkit.localnet.sandbox import home

    folder = home.default_home() if args.home is None else Path(args.home)
    _note_ignored(args)
    if args.action == "run":
        return _serve(args, folder)
    home.init(
        folder,
        chain_id=args.chain_id,
        account_id=args.account_id,
        test_seed=args.test_seed,
        fast=args.fast,
    )
    return 0


def _note_ignored(args: argparse.Namespace) -> None:
    """Print the options that were passed and have no meaning here."""
    names = [name for name in _IGNORED[args.action] if getattr(args, _attribute(name))]
    if names:
        output.print_message(f"no meaning here, ignored: {', '.join(names)}")


def _attribute(option: str) -> str:
    """Return the name under which argparse stores an option."""
    return option.removeprefix("--").replace("-", "_")


def _serve(args: argparse.Namespace, folder: Path) -> int:
    """Serve a chain from the files of a folder."""
    from ledgerkit.localnet.sandbox.home import Node
    from ledgerkit.localnet.server import serve

    node = Node(folder, archive=args.archive)
    host, port = _host_and_port(args.rpc_addr or node.rpc_address)
    serve(
        node.world,
        host=host,
        port=port,
        allow_remote=args.rpc_addr is not None,
        allow_origins=node.origins,
        ready=lambda url: output.say(f"ledgerkit: sandbox of {folder} on {url}", flush=True),
        with_parent=True,
    )
    return 0


def _host_and_port(address: str) -> tuple[str, int]:
    """Split an address such as 127.0.0.1:3030 or [::1]:3030."""
    host, _, port = address.rpartition(":")
    if host and port.isascii() and port.isdecimal() and int(port) <= _MAX_PORT:
        return host.strip("[]"), int(port)
    raise errors.InvalidRequestError.refuse("--rpc-addr", address, "HOST:PORT")
