"""The commands that do more than print one result."""

from __future__ import annotations

import sys
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import errors
from ledgerkit.cli import arguments as shared
from ledgerkit.cli import completion, connection, exit_codes, output, sandbox, statements

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    import pandas as pd

    from ledgerkit.collecting.following import FollowedBlock

_MIN_BLOCK_NS, _MAX_BLOCK_NS = 10**7, 3600 * 10**9


class Task(NamedTuple):
    """A command: its help, arguments and function, and the schema of a frame that it prints."""

    help: str
    declare: Callable[[argparse.ArgumentParser], object]
    run: Callable[[argparse.Namespace], int]
    frame: Callable[[argparse.Namespace], str] | None = None


# The connection ---------------------------------------------------------------------------


def _doctor_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `doctor`."""
    shared.declare_network(parser)
    shared.declare_form(parser)
    parser.add_argument(
        "--save",
        metavar="FILE.lk",
        help="record requests and responses in a file, without the API key",
    )


def _doctor(args: argparse.Namespace) -> int:
    """Check each surface, and print a table; exit with the code of the first error."""
    from ledgerkit.verbs import doctor

    form = output.form(args, "doctor")
    with connection.connect(args) as ledger:
        frame = doctor.doctor(save=args.save, ledger=ledger)
    if form.format == "table" and form.columns is None:
        _print_surfaces(frame)
    else:
        output.print_value(frame, form)
    failures = frame[frame["error"].notna()]
    for surface, message in zip(failures["surface"], failures["message"], strict=True):
        output.print_message(f"{surface}: {message}")
    return exit_codes.first_exit_code(failures)


def _print_surfaces(frame: pd.DataFrame) -> None:
    """Print a line for each surface, the limits, and the members that ledgerkit does not know."""
    headings = {
        "surface": "surface",
        "host": "host",
        "latency_ms": "ms",
        "protocol_version": "proto",
        "block_height": "block",
    }
    table = frame[list(headings)].rename(columns=headings)
    table["status"] = frame["error"].notna().map({True: "failed", False: "ok"})
    output.print_table(table, output.Form())
    output.say()
    output.say(output.wrap(f"limits: {frame.attrs['limits']}", 80))
    for surface, members in zip(frame["surface"], frame["unknown_members"], strict=True):
        if members:
            text = f"{surface}: ledgerkit does not know {', '.join(members)}"
            output.say(output.wrap(text, 80))


def _inspect_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `inspect`."""
    parser.add_argument("recording", metavar="FILE.lk", help="the recording")
    shared.declare_form(parser)


def _inspect(args: argparse.Namespace) -> int:
    """Print the requests of a recording, and what it is."""
    from ledgerkit.verbs import recordings

    form = output.form(args, "recording")
    frame = recordings.inspect(args.recording)
    output.print_value(frame, form)
    if form.format == "table":
        chain_id = frame.attrs["chain_id"] or "unknown"
        output.say()
        output.say(
            f"{len(frame):,} requests to {frame.attrs['network']} (chain id {chain_id}), recorded"
            f" by ledgerkit {frame.attrs['ledgerkit']} in {frame.attrs['size_bytes']:,} bytes"
        )
    if frame.attrs["torn_bytes"]:
        output.print_message("the last response is incomplete, and is left out")
    return 0


# The embedded ledger ----------------------------------------------------------------------


def _world_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Declare the options of a world."""
    parser.add_argument("--size", type=int, help="number of accounts, for the world crowd")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the world")
    return parser


def _serve_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `serve`."""
    _world_arguments(parser).add_argument("--world", default="demo", help="the world's name")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--port", type=int, default=3030, help="the port; 0 chooses a free one")
    parser.add_argument(
        "--block-time",
        metavar="S",
        help="seconds between blocks; default: a block is produced when a request waits for one",
    )
    parser.add_argument(
        "--require-key", action="store_true", help="require the API key in LEDGERKIT_API_KEY"
    )
    parser.add_argument(
        "--allow-remote", action="store_true", help="allow a --host that other machines can reach"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="answer to this name too, such as that of a proxy; can be repeated",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let the web pages of this origin use the ledger; can be repeated",
    )
    parser.add_argument(
        "--spec-errors",
        action="store_true",
        help="add error.InvalidTransaction to rejections, which no node sends",
    )


def _world_command_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `world`."""
    _world_arguments(parser).add_argument("world", nargs="?", default="demo", help="the name")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _serve(args: argparse.Namespace) -> int:
    """Serve a world until it is interrupted."""
    from ledgerkit.localnet.server import serve
    from ledgerkit.localnet.worlds import open_world

    world = open_world(args.world, size=args.size, seed=args.seed, **_chain_settings(args))

    def ready(url: str) -> None:
        addresses = f"{url} (JSON-RPC), {url}/api (REST)"
        output.say(f"ledgerkit: world {args.world} on {addresses}; stop with Ctrl-C", flush=True)

    serve(
        world,
        host=args.host,
        port=args.port,
        allow_remote=args.allow_remote,
        allow_hosts=args.allow_host,
        allow_origins=args.allow_origin,
        ready=ready,
    )
    return 0


def _chain_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of a world's clock, keys and errors."""
    from ledgerkit.transport import networks

    options: dict[str, Any] = {"spec_errors": args.spec_errors}
    if args.block_time is not None:
        options |= {"real_time": True, "block_time_ns": _nanoseconds(args.block_time)}
    if args.require_key:
        key = networks.environment("API_KEY")
        if key is None:
            raise errors.InvalidRequestError(
                "--require-key needs a key: set LEDGERKIT_API_KEY", field="--require-key"
            )
        options["api_keys"] = (key,)
    return options


def _nanoseconds(text: str) -> int:
    """Parse seconds into nanoseconds."""
    try:
        nanoseconds = Decimal(text) * 10**9
        if nanoseconds.is_finite() and _MIN_BLOCK_NS <= nanoseconds <= _MAX_BLOCK_NS:
            return int(nanoseconds)
    except InvalidOperation:
        pass
    raise errors.InvalidRequestError.refuse("--block-time", text, "0.01 to 3600 seconds")


def _world(args: argparse.Namespace) -> int:
    """Print the accounts of a world with their keys, its contracts and transactions."""
    from ledgerkit.localnet.worlds import open_world

    summary = open_world(args.world, size=args.size, seed=args.seed).summary
    if args.json:
        output.print_json(summary)
        return 0
    for account in summary.accounts:
        output.say(f"{account.account_id}  {account.secret_key or '-'}  {account.description}")
    for role, contracts in summary.contracts.items():
        output.say(f"{role}: {contracts if isinstance(contracts, str) else ', '.join(contracts)}")
    for tx in summary.transactions:
        output.say(f"{tx.tx_hash}  {tx.signer_id}  {tx.description}")
    return 0


# Many accounts ----------------------------------------------------------------------------


def _collect_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `collect`."""
    parser.add_argument("ids", metavar="IDS", help="a file of account ids: text, CSV or Parquet")
    parser.add_argument(
        "out", metavar="OUT", help="the folder to write to, local or such as s3://…"
    )
    shared.declare_network(parser)
    parser.add_argument(
        "--views", metavar="VIEW,…", help="some of accounts,ft,nft,staking,exposure"
    )
    parser.add_argument("--column", default="account_id", help="the column of ids in the file")
    _run_arguments(parser)


def _collect_blocks_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `collect-blocks`."""
    parser.add_argument(
        "start", metavar="START", help="the first block: a height, a hash or an ISO time"
    )
    parser.add_argument("stop", metavar="STOP", help="the block after the last one, as START")
    parser.add_argument(
        "out", metavar="OUT", help="the folder to write to, local or such as s3://…"
    )
    shared.declare_network(parser)
    parser.add_argument(
        "--views",
        metavar="VIEW,…",
        help="some of blocks,chunks,transactions,receipts,events,transfers, and of block"
        " documents outcomes,actions,balances,data_receipts; default: all",
    )
    parser.add_argument(
        "--source", choices=("documents", "rpc"), help="default: documents, if there are any"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="number of processes")
    _run_arguments(parser)


def _follow_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `follow`."""
    parser.add_argument(
        "start",
        metavar="START",
        nargs="?",
        default="final",
        help="the first block: a height, a hash or an ISO time; default: the last final one",
    )
    shared.declare_network(parser)
    shared.declare_form(parser)
    parser.add_argument(
        "--views",
        metavar="VIEW,…",
        help="some of the views of collect-blocks, or one to print as CSV or JSON",
    )
    parser.add_argument("--out", metavar="OUT", help="a folder to store the blocks in as well")
    parser.add_argument("--until", metavar="STOP", help="the block to stop before, as START")
    parser.add_argument("--max-blocks", type=int, metavar="N", help="stop after so many blocks")


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a collection."""
    parser.add_argument(
        "--rate", type=float, metavar="N", help="maximum number of requests a second"
    )
    parser.add_argument(
        "--in-flight", type=int, metavar="N", help="maximum number of concurrent requests"
    )
    parser.add_argument(
        "--retry-failed", action="store_true", help="request again what could not be read before"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the planned requests and files; send nothing"
    )


def _diff_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `diff`."""
    parser.add_argument("before", metavar="BEFORE", help="the folder of the earlier collection")
    parser.add_argument("after", metavar="AFTER", help="the folder of the later collection")
    parser.add_argument("--view", default="ft", help="accounts, ft, nft, staking or exposure")
    shared.declare_form(parser)


def _collect(args: argparse.Namespace) -> int:
    """Collect accounts, and print a summary."""
    from ledgerkit.collecting import accounts, collect

    views = shared.names(args.views, accounts.VIEWS)
    return _run_collection(args, partial(collect.collect, args.ids, views, column=args.column))


def _collect_blocks(args: argparse.Namespace) -> int:
    """Collect a range of blocks, and print a summary."""
    from ledgerkit.collecting import collect_blocks

    views = shared.names(args.views) or None
    ends = shared.height_or_text(args.start), shared.height_or_text(args.stop)
    options = {"source": args.source, "workers": args.workers}
    return _run_collection(args, partial(collect_blocks.collect_blocks, *ends, views, **options))


def _followed_views(args: argparse.Namespace) -> list[str]:
    """Return the views to follow: two by default, or the one to print."""
    is_table = args.format == "table"
    views = shared.names(args.views, ("blocks", "transactions") if is_table else ("blocks",))
    if not is_table and len(views) > 1:
        raise errors.InvalidRequestError.refuse(
            "--views", args.views, "one view, to print its rows"
        )
    if is_table and args.columns is not None:
        expected = "left out: each block is a line; --format csv prints the rows of a view"
        raise errors.InvalidRequestError.refuse("--columns", args.columns, expected)
    return views


def _follow(args: argparse.Namespace) -> int:
    """Print a line for each block, or the rows of a view as CSV or JSON."""
    from ledgerkit.collecting import follow, manifests

    views = _followed_views(args)
    form = output.form(args, manifests.schema_name(views[0]))
    start, until = shared.height_or_text(args.start), shared.height_or_text(args.until)
    options: dict[str, Any] = {"out": args.out, "max_blocks": args.max_blocks, "until": until}
    with (
        connection.connect(args) as ledger,
        follow.follow(start, views, **options, ledger=ledger) as blocks,
    ):
        for number, block in enumerate(blocks):
            if form.format == "table":
                _print_block(block)
            else:
                _print_rows(block[views[0]], form, header=not number)
            output.flush()
    return 0


def _print_block(block: FollowedBlock) -> None:
    """Print a line about a block: its rows in each view, and how far behind the head it is."""
    rows = [f"{len(frame):,} {view}" for view, frame in block.items() if view != "blocks"]
    texts = [
        str(block.height),
        f"{block.time:%Y-%m-%d %H:%M:%S}",
        *rows,
        f"{block.behind:,} behind",
    ]
    output.say("  ".join(texts))


def _print_rows(frame: pd.DataFrame, form: output.Form, *, header: bool) -> None:
    """Print rows as CSV or as lines of JSON."""
    rows = frame if form.columns is None else frame[form.columns]
    if form.format == "json":
        output.print_json_lines(rows, raw=form.raw)
    elif header or not rows.empty:
        output.print_csv(rows, raw=form.raw, header=header)


def _run_collection(args: argparse.Namespace, run: Callable[..., Any]) -> int:
    """Run a collection, and print its summary."""
    names = ("out", "in_flight", "rate", "retry_failed", "dry_run")
    options = {name: getattr(args, name) for name in names} | {"progress": sys.stderr.isatty()}
    with connection.connect(args) as ledger:
        collection = run(**options, ledger=ledger)
    if args.dry_run:
        return 0
    output.print_table(collection.summary(), output.Form())
    failures = collection.errors()
    return exit_codes.first_exit_code(failures[failures["kind"] == "failed"])


def _diff(args: argparse.Namespace) -> int:
    """Print the changes between two collections."""
    from ledgerkit.collecting import diff

    form = output.form(args, f"diff_{args.view}")
    difference = diff.diff(args.before, args.after, args.view)
    output.print_value(difference.changes, form)
    if not difference.not_compared.empty:
        count = len(difference.not_compared)
        start = f"{count:,} accounts were not compared: they were"
        start = "1 account was not compared: it was" if count == 1 else start
        output.print_message(f"{start} not read in both collections")
    return 0


TASKS = {
    "doctor": Task(
        "check the hosts of the network", _doctor_arguments, _doctor, lambda _: "doctor"
    ),
    "inspect": Task(
        "list the requests of a recording", _inspect_arguments, _inspect, lambda _: "recording"
    ),
    "statement": Task(
        "everything that changed an account's balances, and whether it adds up",
        statements.declare,
        statements.run,
        statements.frame,
    ),
    "collect": Task("read many accounts into Parquet files", _collect_arguments, _collect),
    "collect-blocks": Task(
        "read a range of blocks into Parquet files", _collect_blocks_arguments, _collect_blocks
    ),
    "follow": Task(
        "print each new block, and store the blocks in Parquet files",
        _follow_arguments,
        _follow,
        lambda _: "blocks",
    ),
    "diff": Task(
        "compare two collections", _diff_arguments, _diff, lambda args: f"diff_{args.view}"
    ),
    "serve": Task("serve an embedded ledger as JSON-RPC and REST API", _serve_arguments, _serve),
    "sandbox": Task("stand in for the near-sandbox binary", sandbox.declare, sandbox.run),
    "world": Task(
        "list the accounts, contracts and transactions of a world", _world_command_arguments, _world
    ),
    "completion": Task(
        "print a script that completes commands in bash, zsh or fish",
        completion.declare,
        completion.run,
    ),
}
