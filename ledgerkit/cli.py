"""The command line: arguments and printing only."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import errors
from ledgerkit._version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from ledgerkit.api.calls import Call
    from ledgerkit.client import Ledger

EXIT_CODES = """\
exit codes:
  0    everything was read
  1    the ledger refused, or a contract failed
  2    the arguments are not right
  3    there is none: no such account, key, block, transaction
  4    could not ask: connection, rate limit, API key
  5    the answer was not as documented
  130  interrupted

environment: LEDGERKIT_NETWORK, LEDGERKIT_API_KEY, LEDGERKIT_RPC_URL, LEDGERKIT_API_URL
"""

_CODES: tuple[tuple[type[errors.LedgerError] | tuple[type[errors.LedgerError], ...], int], ...] = (
    (errors.InvalidRequestError, 2),
    (errors.NotFoundError, 3),
    ((errors.TransportError, errors.RateLimitedError, errors.AuthError), 4),
    (errors.DecodeError, 5),
)
_INTERRUPTED = 130
_SHORTEST_NS, _LONGEST_NS = 10**7, 3600 * 10**9


class Task(NamedTuple):
    """One command that reads no ledger: its arguments, and what it does."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], object]
    run: Callable[[argparse.Namespace], int]


class Command(NamedTuple):
    """One command: its arguments, the calls it starts with, what it reads, its frame."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], object]
    plan: Callable[[argparse.Namespace], list[Call[Any]]]
    read: Callable[[argparse.Namespace, Ledger], Any]
    frame: Callable[[argparse.Namespace], str]
    saved: str


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run one command.

    Parameters
    ----------
    argv
        The arguments; None is those of the process.

    Returns
    -------
    code
        The exit code; the console script exits with it.
    """
    args = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            return TASKS[args.command].run(args) if args.command in TASKS else _run(args)
    except errors.LedgerError as error:
        return _complain(error)
    except KeyboardInterrupt:
        print("ledgerkit: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
        return 0


def _run(args: argparse.Namespace) -> int:
    """Print the plan, a saved answer, or what the ledger says."""
    command = COMMANDS[args.command]
    if args.from_file is not None:
        _print(_saved(args, command), args.format)
        return 0
    planned = command.plan(args)  # checks the arguments, before anything is sent
    if args.dry_run:
        _print_plan(args, planned, command.frame(args))
        return 0
    from ledgerkit import client

    with client.connect(args.network, rpc_url=args.rpc_url, api_url=args.api_url) as ledger:
        _say_who(args, ledger)
        found = command.read(args, ledger)
    if not isinstance(found, tuple):
        _print(found, args.format)
        return 0
    frame, failed = found
    if failed.empty or not frame.empty:
        _print(frame, args.format)
    return 0 if failed.empty else _complain_of(failed)


def _saved(args: argparse.Namespace, command: Command) -> Any:
    """Read a saved answer in place of the ledger's."""
    from ledgerkit.verbs import saved_responses

    if args.command == "view":
        return saved_responses.value_of(args.from_file)
    return saved_responses.read(args.from_file, command.saved)


def _say_who(args: argparse.Namespace, ledger: Ledger) -> None:
    """Say that the embedded ledger answers, where nobody chose it."""
    from ledgerkit.transport import networks

    if ledger.network.name == networks.LOCAL and not (
        args.network or networks.environment("NETWORK")
    ):
        told = "the embedded ledger answers; --network mainnet asks the public network"
        print(f"ledgerkit: {told}", file=sys.stderr)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Say a warning in one line, without the place in the code that it came from."""
    print(f"ledgerkit: {' '.join(str(message).split())}", file=sys.stderr)


def _complain(error: errors.LedgerError) -> int:
    """Say what went wrong in one line; gives the exit code."""
    print(f"ledgerkit: {' '.join(str(error).split())}", file=sys.stderr)
    return next((code for kinds, code in _CODES if isinstance(error, kinds)), 1)


def _complain_of(failed: pd.DataFrame) -> int:
    """Say what went wrong with each subject; gives the first one's exit code."""
    for subject, message in zip(failed["subject"], failed["message"], strict=True):
        print(f"ledgerkit: {subject}: {' '.join(message.split())}", file=sys.stderr)
    return _code_of(failed)


def _code_of(failed: pd.DataFrame) -> int:
    """Give the exit code of the first failure, 0 where there is none."""
    if failed.empty:
        return 0
    first = getattr(errors, failed["error"].iloc[0], errors.LedgerError)
    return next((code for kinds, code in _CODES if issubclass(first, kinds)), 1)


# Printing ---------------------------------------------------------------------------------


def _print(value: Any, form: str) -> None:
    """Print a frame, or what a view call returned."""
    import pandas as pd

    if not isinstance(value, pd.DataFrame):
        print(_json(value).decode() if not isinstance(value, bytes) else value.hex())
    elif form == "csv":
        value.to_csv(sys.stdout, index=False)
    elif form == "json":
        print(_json(_records(value)).decode())
    elif value.empty:
        print(f"no rows ({', '.join(value.columns)})")
    else:
        print(value.to_string(index=False, na_rep="", max_colwidth=60))


def _json(value: Any) -> bytes:
    """Encode as JSON, integers of any size exact."""
    import msgspec

    return msgspec.json.encode(value, enc_hook=str)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Turn rows into objects; exact amounts are texts, which every JSON reader keeps exact."""
    columns: dict[str, list[Any]] = {}
    for name, column in frame.items():
        values = column.astype(object).where(column.notna(), None).tolist()
        as_text = column.dtype == "u128"
        columns[str(name)] = [str(v) if as_text and isinstance(v, int) else v for v in values]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _print_plan(args: argparse.Namespace, planned: Sequence[Call[Any]], name: str) -> None:
    """Print the first requests a command would send, and the columns to come."""
    from ledgerkit.frames import build
    from ledgerkit.transport import networks

    network = networks.resolve(args.network, rpc_url=args.rpc_url, api_url=args.api_url)
    columns = {
        "surface": [call.surface for call in planned],
        "method": ["GET" if call.body is None else "POST" for call in planned],
        "address": [f"{network.address(call.surface) or '(none)'}{call.path}" for call in planned],
        "body": [None if call.body is None else call.body.decode() for call in planned],
    }
    print("first requests (nothing is sent; an API key would travel in the header):")
    print(
        build.build_frame("requests", columns).to_string(index=False, na_rep="", max_colwidth=None)
    )
    if name:
        print(f"\ncolumns to come ({name}):")
        print(build.schema(name).to_string(index=False, na_rep=""))


# Commands ---------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    """Build the parser."""
    parser = argparse.ArgumentParser(
        prog="ledgerkit",
        description="Read accounts, tokens and transactions of NEAR, with exact numbers.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ledgerkit {__version__}")
    common = argparse.ArgumentParser(add_help=False)
    _network_arguments(common)
    _format_argument(common)
    common.add_argument("--from-file", metavar="FILE", help="read a saved answer, send nothing")
    common.add_argument(
        "--dry-run", action="store_true", help="print the requests and columns, send nothing"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.arguments(
            commands.add_parser(name, help=command.help, description=command.help, parents=[common])
        )
    for name, task in TASKS.items():
        task.arguments(commands.add_parser(name, help=task.help, description=task.help))
    return parser


def _network_arguments(parser: argparse.ArgumentParser) -> None:
    """Take whom to ask."""
    parser.add_argument("--network", help="mainnet, testnet, local, or a name beside addresses")
    parser.add_argument("--rpc-url", help="address of a JSON-RPC endpoint")
    parser.add_argument("--api-url", help="address of an indexed REST API")


def _format_argument(parser: argparse.ArgumentParser) -> None:
    """Take how to print."""
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table")


def _ids(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Take account ids; none are needed beside a file."""
    parser.add_argument("account_id", nargs="*", help="one account id or several")
    return parser


def _id(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Take one account id; none is needed beside a file."""
    parser.add_argument("account_id", nargs="?", help="the account")
    return parser


def _at(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Take a point in history."""
    parser.add_argument("--at", help="height, block hash, final, optimistic, or an ISO time")
    return parser


def _height_or_text(text: str | None) -> int | str | None:
    """Read a height from digits; anything else stays text."""
    return int(text) if text and text.isascii() and text.isdecimal() else text


def _options(ledger: Ledger) -> dict[str, Any]:
    """Keep the rows of subjects that could be read, beside the failures."""
    return {"ledger": ledger, "on_error": "collect", "progress": sys.stderr.isatty()}


def _subjects(args: argparse.Namespace) -> list[str]:
    """Check the account ids."""
    from ledgerkit import validation

    return validation.account_ids(args.account_id) or validation.account_ids("")


def _block_ref(at: str | None) -> Any:
    """Name a block; a time is found from the first and the last one on."""
    from ledgerkit import validation

    point = validation.block_reference(_height_or_text(at))
    return validation.block_reference("genesis") if point.timestamp_ns is not None else point


def _each(describe: str) -> Callable[[argparse.Namespace], list[Call[Any]]]:
    """Plan one REST call an account."""

    def plan(args: argparse.Namespace) -> list[Call[Any]]:
        from ledgerkit.api import rest

        return [getattr(rest, describe)(one) for one in _subjects(args)]

    return plan


def _plan_account(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the reading of accounts, now or at a block."""
    from ledgerkit.api import rpc

    if args.at is None:
        return _each("full")(args)
    point = _block_ref(args.at)
    return [rpc.block(point), *(rpc.view_account(one, point) for one in _subjects(args))]


def _plan_keys(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the reading of keys."""
    from ledgerkit import validation
    from ledgerkit.api import rpc

    account_id = validation.account_id(args.account_id)
    return [rpc.view_access_key_list(account_id, _block_ref(args.at))]


def _plan_block(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the reading of a block."""
    from ledgerkit.api import rpc

    return [rpc.block(_block_ref(args.block))]


def _plan_view(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan a view call."""
    from ledgerkit import validation
    from ledgerkit.api import rpc

    contract_id = validation.account_id(args.contract_id, "contract_id")
    method, point = validation.method_name(args.method), _block_ref(args.at)
    return [rpc.call_function(contract_id, method, _json_text(args.args), point)]


def _plan_receipts(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the reading of a transaction."""
    from ledgerkit import validation
    from ledgerkit.api import rpc

    tx_hash = validation.crypto_hash(args.tx_hash, "tx_hash")
    return [rpc.transaction(tx_hash, validation.account_id(args.sender, "sender"), args.wait_until)]


def _json_text(text: str | None) -> bytes:
    """Check that a view call's arguments are JSON."""
    import msgspec

    data = (text or "{}").encode()
    try:
        msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise errors.InvalidRequestError.refuse("args", text, f"JSON ({error})") from None
    return data


def _read_ft(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read fungible tokens."""
    from ledgerkit.verbs import tokens

    return tokens.ft(_subjects(args), metadata=args.metadata, **_options(ledger))


def _read_nft(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read NFT collections."""
    from ledgerkit.verbs import tokens

    return tokens.nft(_subjects(args), **_options(ledger))


def _read_staking(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read staking pools."""
    from ledgerkit.verbs import tokens

    wanted = {"positions": args.positions, "pools": args.pool}
    return tokens.staking(_subjects(args), **wanted, **_options(ledger))


def _read_account(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read accounts."""
    from ledgerkit.verbs import accounts

    at = _height_or_text(args.at)
    return accounts.accounts(_subjects(args), at=at, **_options(ledger))


def _read_keys(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read the access keys of an account."""
    from ledgerkit.verbs import accounts

    return accounts.keys(args.account_id, at=_height_or_text(args.at), ledger=ledger)


def _read_block(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read a block."""
    from ledgerkit.verbs import blocks

    return blocks.block(_height_or_text(args.block), ledger=ledger)


def _read_view(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Call a view method."""
    from ledgerkit.verbs import contracts

    at = _height_or_text(args.at)
    data = _json_text(args.args)
    return contracts.view(args.contract_id, args.method, data, at=at, ledger=ledger)


def _read_receipts(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read a receipt tree."""
    from ledgerkit.verbs import transactions

    return transactions.receipts(
        args.tx_hash, args.sender, wait_until=args.wait_until, ledger=ledger
    )


def _ft_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ft`."""
    _ids(parser).add_argument(
        "--metadata", action="store_true", help="add symbol, decimals and human units"
    )


def _staking_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `staking`."""
    _ids(parser).add_argument(
        "--positions", action="store_true", help="ask each pool for the present stake"
    )
    parser.add_argument("--pool", action="append", default=[], help="one more pool to ask")


def _block_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `block`."""
    parser.add_argument(
        "block", nargs="?", default="final", help="height, block hash, final, or an ISO time"
    )


def _view_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `view`."""
    parser.add_argument("contract_id", nargs="?", help="the contract")
    parser.add_argument("method", nargs="?", help="the view method")
    parser.add_argument("args", nargs="?", help="its arguments as JSON")
    _at(parser)


def _receipts_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `receipts`."""
    from ledgerkit.validation import WAIT_LEVELS

    parser.add_argument("tx_hash", nargs="?", help="the transaction")
    parser.add_argument("sender", nargs="?", help="the account that signed it")
    parser.add_argument("--wait-until", choices=WAIT_LEVELS, default="FINAL")


COMMANDS = {
    "account": Command(
        "balances, storage and holdings of accounts",
        lambda parser: _at(_ids(parser)),
        _plan_account,
        _read_account,
        lambda _: "accounts",
        "accounts",
    ),
    "ft": Command(
        "fungible tokens of accounts",
        _ft_arguments,
        _each("ft"),
        _read_ft,
        lambda args: "ft_metadata" if args.metadata else "ft",
        "ft",
    ),
    "nft": Command(
        "NFT collections of accounts", _ids, _each("nft"), _read_nft, lambda _: "nft", "nft"
    ),
    "staking": Command(
        "staking pools of accounts",
        _staking_arguments,
        _each("staking"),
        _read_staking,
        lambda args: "staking_positions" if args.positions or args.pool else "staking",
        "staking",
    ),
    "keys": Command(
        "access keys of an account",
        lambda parser: _at(_id(parser)),
        _plan_keys,
        _read_keys,
        lambda _: "keys",
        "keys",
    ),
    "block": Command(
        "one block", _block_arguments, _plan_block, _read_block, lambda _: "blocks", "blocks"
    ),
    "view": Command(
        "what a contract's view method returns",
        _view_arguments,
        _plan_view,
        _read_view,
        lambda _: "",
        "",
    ),
    "receipts": Command(
        "the receipt tree of a transaction",
        _receipts_arguments,
        _plan_receipts,
        _read_receipts,
        lambda _: "receipts",
        "receipts",
    ),
}


# The embedded ledger ----------------------------------------------------------------------


def _world_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Declare what a world is opened with."""
    parser.add_argument("--size", type=int, help="how many accounts, where a world lets choose")
    parser.add_argument("--seed", type=int, default=0, help="which of the possible worlds")
    return parser


def _serve_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `serve`."""
    _world_arguments(parser).add_argument("--world", default="demo", help="its name")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at")
    parser.add_argument("--port", type=int, default=3030, help="the port; 0 is any free one")
    parser.add_argument(
        "--block-time", metavar="S", help="seconds a block; without it time moves when awaited"
    )
    parser.add_argument(
        "--require-key", action="store_true", help="demand the key that LEDGERKIT_API_KEY holds"
    )
    parser.add_argument(
        "--allow-remote", action="store_true", help="let other machines in, if --host does"
    )


def _tell_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `world`."""
    _world_arguments(parser).add_argument("world", nargs="?", default="demo", help="its name")
    parser.add_argument("--json", action="store_true", help="print all as one JSON document")


def _serve(args: argparse.Namespace) -> int:
    """Serve a world until a signal comes."""
    from ledgerkit.localnet.server import serve
    from ledgerkit.localnet.worlds import open_world

    world = open_world(args.world, size=args.size, seed=args.seed, **_chain_settings(args))

    def ready(url: str) -> None:
        told = f"world {args.world} on {url} (JSON-RPC), {url}/api (REST)"
        print(f"ledgerkit: {told}; stop with Ctrl-C", flush=True)

    serve(world, host=args.host, port=args.port, allow_remote=args.allow_remote, ready=ready)
    return 0


def _chain_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Choose a chain's clock and its keys."""
    from ledgerkit.transport import networks

    options: dict[str, Any] = {}
    if args.block_time is not None:
        options = {"real_time": True, "block_time_ns": _nanoseconds(args.block_time)}
    if args.require_key:
        key = networks.environment("API_KEY")
        if key is None:
            rule = "beside the variable LEDGERKIT_API_KEY, which holds the key"
            raise errors.InvalidRequestError.refuse("--require-key", None, rule)
        options["api_keys"] = (key,)
    return options


def _nanoseconds(text: str) -> int:
    """Read seconds as whole nanoseconds."""
    try:
        found = Decimal(text) * 10**9
        if found.is_finite() and _SHORTEST_NS <= found <= _LONGEST_NS:
            return int(found)
    except InvalidOperation:
        pass
    raise errors.InvalidRequestError.refuse("--block-time", text, "seconds from 0.01 to 3600")


def _tell(args: argparse.Namespace) -> int:
    """Print who lives in a world, and with which keys."""
    from ledgerkit.localnet.worlds import open_world

    summary = open_world(args.world, size=args.size, seed=args.seed).summary
    if args.json:
        print(_json(summary).decode())
        return 0
    for account in summary.accounts:
        print(f"{account.account_id}  {account.secret_key or '-'}  {account.description}")
    for name, found in summary.contracts.items():
        print(f"{name}: {found if isinstance(found, str) else ', '.join(found)}")
    for tx in summary.transactions:
        print(f"{tx.tx_hash}  {tx.signer_id}  {tx.description}")
    return 0


# Many accounts ----------------------------------------------------------------------------


def _collect_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `collect`."""
    parser.add_argument("ids", metavar="IDS", help="a file of ids: lines, CSV or Parquet")
    parser.add_argument("out", metavar="OUT", help="the folder to write to, or an address")
    _network_arguments(parser)
    parser.add_argument("--views", metavar="VIEW,…", help="accounts,ft,nft,staking,exposure")
    parser.add_argument("--column", default="account_id", help="the file's column of ids")
    _run_arguments(parser)


def _collect_blocks_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `collect-blocks`."""
    parser.add_argument("start", metavar="START", help="the first height, a hash or an ISO time")
    parser.add_argument("stop", metavar="STOP", help="the height after the last, as START")
    parser.add_argument("out", metavar="OUT", help="the folder to write to, or an address")
    _network_arguments(parser)
    parser.add_argument(
        "--views", metavar="VIEW,…", help="blocks,chunks,transactions,receipts,events"
    )
    _run_arguments(parser)


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how a run goes."""
    parser.add_argument("--rate", type=float, metavar="N", help="most requests a second")
    parser.add_argument("--in-flight", type=int, metavar="N", help="most requests at a time")
    parser.add_argument(
        "--retry-failed", action="store_true", help="ask those again that were asked in vain"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be asked and written"
    )


def _diff_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `diff`."""
    parser.add_argument("before", metavar="BEFORE", help="the folder of a collection")
    parser.add_argument("after", metavar="AFTER", help="that of a later one")
    parser.add_argument("--view", default="ft", help="accounts, ft, nft, staking or exposure")
    _format_argument(parser)


def _collect(args: argparse.Namespace) -> int:
    """Read many accounts into a folder, and print what is there then."""
    from ledgerkit.collecting import accounts, collect

    views = accounts.VIEWS if args.views is None else args.views.split(",")
    return _collected(args, partial(collect.collect, args.ids, views, column=args.column))


def _collect_blocks(args: argparse.Namespace) -> int:
    """Read a range of blocks into a folder, and print what is there then."""
    from ledgerkit.collecting import blocks as collecting_blocks
    from ledgerkit.collecting import collect_blocks

    views = collecting_blocks.VIEWS if args.views is None else args.views.split(",")
    ends = _height_or_text(args.start), _height_or_text(args.stop)
    return _collected(args, partial(collect_blocks.collect_blocks, *ends, views))


def _collected(args: argparse.Namespace, run: Callable[..., Any]) -> int:
    """Collect, and print what is there then."""
    from ledgerkit import client

    named = ("out", "in_flight", "rate", "retry_failed", "dry_run")
    options = {name: getattr(args, name) for name in named} | {"progress": sys.stderr.isatty()}
    with client.connect(args.network, rpc_url=args.rpc_url, api_url=args.api_url) as ledger:
        _say_who(args, ledger)
        found = run(**options, ledger=ledger)
    if args.dry_run:
        return 0
    _print(found.summary(), "table")
    errors_found = found.errors()
    return _code_of(errors_found[errors_found["kind"] == "failed"])


def _diff(args: argparse.Namespace) -> int:
    """Print what changed between two collections."""
    from ledgerkit.collecting import diff

    found = diff.diff(args.before, args.after, args.view)
    _print(found.changes, args.format)
    if not found.not_compared.empty:
        told = "had no answer in one of the two, and were not compared"
        print(f"ledgerkit: {len(found.not_compared):,} accounts {told}", file=sys.stderr)
    return 0


TASKS = {
    "collect": Task("many accounts into Parquet files", _collect_arguments, _collect),
    "collect-blocks": Task(
        "a range of blocks into Parquet files", _collect_blocks_arguments, _collect_blocks
    ),
    "diff": Task("what changed between two collections", _diff_arguments, _diff),
    "serve": Task("answer as a node and an indexer do, on this machine", _serve_arguments, _serve),
    "world": Task("who lives in a world of the embedded ledger", _tell_arguments, _tell),
}
