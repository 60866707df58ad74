"""The commands of the embedded ledger: `serve`, `world`, and `sandbox` of a node."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerkit import errors
from ledgerkit._version import __version__
from ledgerkit.cli import exit_codes, output
from ledgerkit.cli.arguments import FLAG, REPEATED, Argument, Parser
from ledgerkit.cli.commands import Command

if TYPE_CHECKING:
    import argparse

    from ledgerkit.localnet.world import World

_MIN_BLOCK_S, _MAX_BLOCK_S = 0.01, 3600
_MAX_PORT = 65535


def _check_block_time(text: str) -> float:
    with suppress(ValueError):
        if _MIN_BLOCK_S <= float(text) <= _MAX_BLOCK_S:
            return float(text)
    raise errors.InvalidRequestError.refuse("--block-time", text, "0.01 to 3600 seconds")


def open_served(
    name: str = "demo",
    *,
    size: int | None = None,
    seed: int = 0,
    block_time: str | None = None,
    require_key: bool = False,
    spec_errors: bool = False,
) -> World:
    from ledgerkit.localnet.worlds import open_world
    from ledgerkit.transport import networks

    options: dict[str, Any] = {"spec_errors": spec_errors}
    if block_time is not None:
        block_time_ns = round(_check_block_time(block_time) * 10**9)
        options |= {"real_time": True, "block_time_ns": block_time_ns}
    if require_key:
        key = networks.environment("API_KEY")
        if key is None:
            message = "--require-key needs a key: set LEDGERKIT_API_KEY"
            raise errors.InvalidRequestError(message, field="--require-key")
        options["api_keys"] = (key,)
    return open_world(name, size=size, seed=seed, **options)


def _serve(args: argparse.Namespace, world: World) -> int:
    from ledgerkit.localnet.server import serve

    def ready(url: str) -> None:
        addresses = f"{url} (JSON-RPC), {url}/api (REST)"
        output.say(f"ledgerkit: world {args.name} on {addresses}; stop with Ctrl-C", flush=True)

    names = ("host", "port", "allow_remote", "allow_hosts", "allow_origins")
    serve(world, ready=ready, **{name: getattr(args, name) for name in names})
    return exit_codes.SUCCESS


def _print_world(args: argparse.Namespace, world: World) -> int:
    summary = world.summary
    if args.json:
        output.print_json(summary)
        return exit_codes.SUCCESS
    for account in summary.accounts:
        output.say(f"{account.account_id}  {account.secret_key or '-'}  {account.description}")
    for role, contracts in summary.contracts.items():
        output.say(f"{role}: {contracts if isinstance(contracts, str) else ', '.join(contracts)}")
    for tx in summary.transactions:
        output.say(f"{tx.tx_hash}  {tx.signer_id}  {tx.description}")
    return exit_codes.SUCCESS


_IGNORED = "ignored"  # the help of an option of the binary that has no meaning here


def _ignored(names: str) -> tuple[Argument, ...]:
    return tuple(Argument(f"--{name} VALUE", _IGNORED) for name in names.split())


_COMMON = (
    Argument("--home DIR", "the folder of the files; default: NEAR_HOME, or ~/.near"),
    Argument("--unsafe-fast-startup", _IGNORED, **FLAG),
    Argument("--verbose", _IGNORED, nargs="?"),
)
_INIT = (
    Argument("--chain-id ID", "default: a random one"),
    Argument("--account-id ID", "the validator; default: test.near"),
    Argument("--test-seed SEED", "the seed of the validator's key"),
    Argument("--fast", "short blocks and epochs", **FLAG),
    Argument("--num-shards", "the number of shards", type=int, choices=(1,)),
    Argument("--boot-nodes", _IGNORED),
    Argument("--download-config", _IGNORED, nargs="?"),
    Argument("--download-config-url", _IGNORED),
    Argument("--download-genesis", _IGNORED, **FLAG),
    *_ignored("download-genesis-url download-records-url genesis max-gas-burnt-view"),
    Argument("--state-sync-bucket", _IGNORED),
)
_RUN = (
    Argument("--rpc-addr HOST:PORT", "default: that of config.json"),
    Argument("--archive", "keep all states", **FLAG),
    *_ignored("boot-nodes connect-to-reliable-peers-on-startup"),
    Argument("--disable-rpc", _IGNORED, **FLAG),
    *_ignored("max-gas-burnt-view min-peers network-addr produce-empty-blocks"),
    *_ignored("rpc-prometheus-addr telemetry-url"),
)


_DUMP = (Argument("--stream", "write a folder `output` with all files", **FLAG),)
_DUMP_HELP = "write the state of the sandbox that runs, as a genesis"
_DUMP_EXAMPLE = "example: ledgerkit sandbox --home node view-state dump-state --stream"


class _Sandbox(Command):
    """The command `sandbox`, whose three actions have their own options."""

    def declare(self, parser: Parser) -> None:
        from ledgerkit.localnet.rpc.node import VERSION

        version = f"near-sandbox of ledgerkit {__version__} (release {VERSION})"
        parser.add_argument("--version", action="version", version=version)
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        init_help = "write the configuration, the genesis and the keys"
        run_help = "serve a new chain from the genesis file"
        init_example = "example: ledgerkit sandbox --home node init --fast"
        run_example = "example: ledgerkit sandbox --home node run --rpc-addr 127.0.0.1:3030"
        init = actions.add_parser("init", help=init_help, epilog=init_example)
        run = actions.add_parser("run", help=run_help, epilog=run_example)
        view = actions.add_parser("view-state", help=_DUMP_HELP, epilog=_DUMP_EXAMPLE)
        views = view.add_subparsers(dest="view", required=True, metavar="VIEW")
        dump = views.add_parser("dump-state", help=_DUMP_HELP, epilog=_DUMP_EXAMPLE)
        declared = ((parser, self.arguments), (init, _INIT), (run, _RUN), (dump, _DUMP))
        for subparser, arguments in declared:
            for argument in arguments:
                argument.declare(subparser)

    def run(self, args: argparse.Namespace) -> int:
        """Write the files of a sandbox, serve it until it is stopped, or write its state."""
        from ledgerkit.localnet.sandbox import home

        folder = home.default_home() if args.home is None else Path(args.home)
        options = {"init": _INIT, "run": _RUN}.get(args.action, ())
        ignored = [o.name for o in options if o.noun == _IGNORED and getattr(args, o.parameter)]
        if ignored:
            output.print_message(f"no meaning here, ignored: {', '.join(ignored)}")
        if args.action == "run":
            return _serve_sandbox(args, folder)
        if args.action == "view-state":
            return _dump_state(folder, stream=args.stream)
        names = ("chain_id", "account_id", "test_seed", "fast")
        home.init(folder, **{name: getattr(args, name) for name in names})
        return exit_codes.SUCCESS


def _dump_state(folder: Path, *, stream: bool) -> int:
    from ledgerkit import client
    from ledgerkit.localnet.sandbox import home

    with client.connect("sandbox", rpc_url=home.address(folder), make_default=False) as ledger:
        home.write_state(folder, ledger.rpc("sandbox_dump_state", {}), stream=stream)
    return exit_codes.SUCCESS


def _serve_sandbox(args: argparse.Namespace, folder: Path) -> int:
    from ledgerkit.localnet.sandbox import home
    from ledgerkit.localnet.server import serve

    node = home.Node(folder, archive=args.archive)
    host, port = _host_and_port(args.rpc_addr or node.rpc_address)
    with ExitStack() as stack:

        def ready(url: str) -> None:
            stack.enter_context(home.running(folder, url))
            output.say(f"ledgerkit: sandbox of {folder} on {url}", flush=True)

        serve(
            node.world,
            host=host,
            port=port,
            allow_remote=args.rpc_addr is not None,
            allow_origins=node.origins,
            ready=ready,
            with_parent=True,
        )
    return exit_codes.SUCCESS


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if host and port.isascii() and port.isdecimal() and int(port) <= _MAX_PORT:
        return host.strip("[]"), int(port)
    raise errors.InvalidRequestError.refuse("--rpc-addr", address, "HOST:PORT")


_BLOCK_TIME = "seconds between blocks; default: a block is produced when a request waits for one"
_ALLOWED_HOST = "answer to this name too, such as that of a proxy; can be repeated"
_ALLOWED_ORIGIN = "let the web pages of this origin use the ledger; can be repeated"
_SPEC_ERRORS = "add error.InvalidTransaction to rejections, which no node sends"
_SIZE_AND_SEED = (
    Argument("--size", "number of accounts, for the world crowd"),
    Argument("--seed", "random seed of the world"),
)

EMBEDDED = {
    "serve": Command(
        "serve an embedded ledger as JSON-RPC and REST API",
        "cli.embedded:open_served",
        *_SIZE_AND_SEED,
        Argument("--world WORLD", "the world's name", "name"),
        Argument("--host", "the address to listen on", default="127.0.0.1"),
        Argument("--port", "the port; 0 chooses a free one", type=int, default=3030),
        Argument("--block-time S", _BLOCK_TIME),
        Argument("--require-key", "require the API key in LEDGERKIT_API_KEY"),
        Argument("--allow-remote", "allow a --host that other machines can reach", **FLAG),
        Argument("--allow-host NAME", _ALLOWED_HOST, "allow_hosts", **REPEATED),
        Argument("--allow-origin ORIGIN", _ALLOWED_ORIGIN, "allow_origins", **REPEATED),
        Argument("--spec-errors", _SPEC_ERRORS),
        show=_serve,
        example="--port 3030 --world demo",
    ),
    "sandbox": _Sandbox(
        "stand in for the near-sandbox binary",
        "",
        *_COMMON,
        example="--home node init",
    ),
    "world": Command(
        "list the accounts, contracts and transactions of a world",
        "localnet.worlds:open_world",
        *_SIZE_AND_SEED,
        Argument("world", "the name", "name", nargs="?", default="demo"),
        Argument("--json", "print one JSON document", **FLAG),
        show=_print_world,
        example="demo --json",
    ),
}
