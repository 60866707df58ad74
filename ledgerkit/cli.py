"""The command line: arguments and printing only."""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
import textwrap
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from ledgerkit import errors, json_decoding, user_warnings, validation
from ledgerkit._version import __version__
from ledgerkit.redaction import hide, secret_in
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from ledgerkit.api.calls import Call
    from ledgerkit.client import Ledger

EXIT_CODES = """\
exit codes:
  0    success
  1    the ledger refused the request, or a contract failed
  2    an argument is not valid
  3    not found: no such account, key, block or transaction
  4    the request failed: connection, rate limit or API key
  5    the response was not as documented
  130  interrupted

environment: LEDGERKIT_NETWORK, LEDGERKIT_API_KEY, LEDGERKIT_RPC_URL, LEDGERKIT_API_URL
"""

_CODES: tuple[tuple[type[errors.LedgerError] | tuple[type[errors.LedgerError], ...], int], ...] = (
    (errors.InvalidRequestError, 2),
    (errors.NotFoundError, 3),
    ((errors.TransportError, errors.RateLimitedError, errors.AuthError), 4),
    (errors.DecodeError, 5),
)
_MOST_DIGITS = 20  # of a height, which has 64 bits
_INTERRUPTED = 130
# An option that people guess, with its value: a key is read from the environment only.
_SECRET_OPTION = re.compile(r"(?i)(--?[\w-]*(?:key|token|secret|pass|phrase)[\w-]*)[ =]\S.*")
_MIN_BLOCK_NS, _MAX_BLOCK_NS = 10**7, 3600 * 10**9


class Task(NamedTuple):
    """A command that does more than print one frame: its help, arguments and function."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], object]
    run: Callable[[argparse.Namespace], int]


class Command(NamedTuple):
    """A command that reads and prints one frame: its arguments, first calls, verb and frame."""

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
        The exit code.
    """
    args = _parser().parse_args(argv)
    try:
        with user_warnings.handle_warnings(functools.cache(_print_message)):  # each message once
            return TASKS[args.command].run(args) if args.command in TASKS else _run(args)
    except errors.LedgerError as error:
        _print_message(str(error))
        return _exit_code(type(error))
    except KeyboardInterrupt:
        _print_message("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
        return 0


def _run(args: argparse.Namespace) -> int:
    """Print a saved response, the planned requests, or the result read from the ledger."""
    command = COMMANDS[args.command]
    if args.from_file is not None:
        _print(_read_file(args, command), args.format, raw=args.raw)
        return 0
    planned = command.plan(args)  # checks the arguments, before anything is sent
    if args.dry_run:
        _print_plan(args, planned, command.frame(args))
        return 0
    with _connect(args) as ledger:
        result = command.read(args, ledger)
    if not isinstance(result, tuple):
        _print(result, args.format, raw=args.raw)
        return 0
    frame, failures = result
    if failures.empty or not frame.empty:
        _print(frame, args.format, raw=args.raw)
    for subject, message in zip(failures["subject"], failures["message"], strict=True):
        _print_message(f"{subject}: {message}")
    return _first_exit_code(failures)


def _read_file(args: argparse.Namespace, command: Command) -> Any:
    """Read a saved response."""
    from ledgerkit.verbs import saved_responses

    if args.command == "view":
        return saved_responses.returned_value(args.from_file)
    return saved_responses.read(args.from_file, command.saved)


def _connect(args: argparse.Namespace) -> Ledger:
    """Open the ledger; print a message if it is the embedded one by default."""
    from ledgerkit import client
    from ledgerkit.transport import networks

    ledger = client.connect(args.network, rpc_url=args.rpc_url, api_url=args.api_url)
    chosen = args.network or networks.environment("NETWORK")
    if ledger.network.name == networks.LOCAL and not chosen:
        _print_message("using the embedded ledger; --network mainnet reads from the public network")
    return ledger


def _print_message(message: str) -> None:
    """Print a warning or an error to stderr, in one line."""
    _say(f"ledgerkit: {' '.join(hide(message).split())}", file=sys.stderr)


def _exit_code(kind: type[errors.LedgerError]) -> int:
    """Return the exit code of a class of errors."""
    return next((code for kinds, code in _CODES if issubclass(kind, kinds)), 1)


def _first_exit_code(failures: pd.DataFrame) -> int:
    """Return the exit code of the first failure; 0 if there is none."""
    if failures.empty:
        return 0
    return _exit_code(getattr(errors, failures["error"].iloc[0], errors.LedgerError))


# Printing ---------------------------------------------------------------------------------


def _say(text: str = "", *, raw: bool = False, **options: Any) -> None:
    """Print a text, with invisible characters escaped unless `raw`: all output passes here."""
    print(text if raw else escape_invisible(text, keep="\n"), **options)


def _print(value: Any, form: str, *, raw: bool = False) -> None:
    """Print a frame, or the result of a view method; `raw` leaves each text as it is."""
    import pandas as pd

    if not isinstance(value, pd.DataFrame):
        _print_json(value, raw=raw) if not isinstance(value, bytes) else _say(value.hex())
    elif form == "csv":
        from ledgerkit.frames.csv_text import csv_text

        _say(
            value.to_csv(index=False, lineterminator="\n") if raw else csv_text(value),
            raw=raw,
            end="",
        )
    elif form == "json":
        _print_json(_records(value), raw=raw)
    elif value.empty:
        _say(f"no rows ({', '.join(value.columns)})")
    else:
        table = value if raw else _with_visible_texts(value)
        _say(table.to_string(index=False, na_rep="", max_colwidth=60), raw=raw)


def _with_visible_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame in which each text is one line; a line break could imitate a row."""
    columns = {
        str(name): [escape_invisible(v) if isinstance(v, str) else v for v in column]
        for name, column in frame.items()
        if column.dtype.kind == "O"
    }
    return frame.assign(**columns).astype({name: frame[name].dtype for name in columns})


def _print_json(value: Any, *, raw: bool = False) -> None:
    """Print JSON; its escapes of invisible characters leave the document the same."""
    text = _json(value).decode()
    _say(text if raw else escape_invisible(text, as_json=True), raw=raw)


def _json(value: Any) -> bytes:
    """Encode as JSON, integers of any size exact."""
    import msgspec

    return msgspec.json.encode(value, enc_hook=str)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Convert rows to objects; exact amounts to texts, which no JSON reader rounds."""
    columns: dict[str, list[Any]] = {}
    for name, column in frame.items():
        values = column.astype(object).where(column.notna(), None).tolist()
        as_text = column.dtype == "u128"
        columns[str(name)] = [str(v) if as_text and isinstance(v, int) else v for v in values]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _print_plan(args: argparse.Namespace, planned: Sequence[Call[Any]], name: str) -> None:
    """Print the first requests that a command would send, and the columns of its frame."""
    from ledgerkit import client
    from ledgerkit.frames import build

    with _connect(args) as ledger:
        network = ledger.network
        limit = client.settings(ledger).lowest_limit({call.surface for call in planned})
    columns = {
        "surface": [call.surface for call in planned],
        "method": ["GET" if call.body is None else "POST" for call in planned],
        "address": [_address(network.address(call.surface)) + call.path for call in planned],
        "body": [None if call.body is None else call.body.decode() for call in planned],
    }
    _say("first requests (not sent; an API key would be in a header):")
    _say(
        build.build_frame("requests", columns).to_string(index=False, na_rep="", max_colwidth=None)
    )
    _say(f"rate limit: {limit}")
    if name:
        _say(f"\ncolumns of the result ({name}):")
        _say(build.schema(name).to_string(index=False, na_rep=""))


def _address(url: str | None) -> str:
    """Return the address of a host; a path may hold a provider's key, and is not shown."""
    from ledgerkit.transport import networks

    if url is None or networks.is_loopback(url) or not urlsplit(url).path:
        return url or "(none)"
    return f"{url.removesuffix(urlsplit(url).path)}/…"


# Commands ---------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser whose messages repeat no secret, with invisible characters escaped."""

    _arguments: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments, and store them for `error`."""
        self._arguments = sys.argv[1:] if args is None else args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the message and exit."""
        message = _SECRET_OPTION.sub(r"\1 (not shown)", message)
        # The message alone could mislead: a list of commands reads like a seed phrase.
        secret = secret_in(message) and secret_in(self._arguments)
        if secret is not None:
            message = f"{secret} was passed as an argument, and is not shown"
        super().error(escape_invisible(message))


def _parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = _Parser(
        prog="ledgerkit",
        description="Read accounts, tokens and transactions of NEAR, with exact numbers.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ledgerkit {__version__}")
    common = _Parser(add_help=False)
    _network_arguments(common)
    _format_argument(common)
    common.add_argument("--from-file", metavar="FILE", help="read a saved response; send nothing")
    common.add_argument(
        "--dry-run", action="store_true", help="print the requests and the columns; send nothing"
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
    """Declare the options that choose the network."""
    parser.add_argument("--network", help="mainnet, testnet, local, or any name with addresses")
    parser.add_argument("--rpc-url", help="address of the JSON-RPC endpoint")
    parser.add_argument("--api-url", help="address of the REST API")


def _format_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the option that chooses the output format."""
    parser.add_argument(
        "--format", choices=("table", "csv", "json"), default="table", help="output format"
    )
    parser.add_argument(
        "--raw",
        action="store_true",
        help="print texts exactly: control characters are not escaped, nor formulas in CSV",
    )


def _ids(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Declare account ids; optional, because --from-file needs none."""
    parser.add_argument("account_id", nargs="*", help="one or more account ids")
    return parser


def _at(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Declare the option that chooses a block."""
    parser.add_argument("--at", help="a height, a hash, final, optimistic, or an ISO time")
    return parser


def _height_or_text(text: str | None) -> int | str | None:
    """Convert digits to a height; leave any other text."""
    is_height = text and len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal()
    return int(text) if is_height and text else text


def _options(ledger: Ledger) -> dict[str, Any]:
    """Return the options by which verbs return failures beside the rows."""
    return {"ledger": ledger, "on_error": "collect", "progress": sys.stderr.isatty()}


def _account_ids(args: argparse.Namespace) -> list[str]:
    """Check the account ids; at least one is needed."""
    return validation.account_ids(args.account_id) or validation.account_ids("")


def _block_ref(at: str | None) -> Any:
    """Return the first block to read: a search for a time begins at the genesis block."""
    reference = validation.block_reference(_height_or_text(at))
    return reference if reference.timestamp_ns is None else validation.block_reference("genesis")


def _each(view: str) -> Callable[[argparse.Namespace], list[Call[Any]]]:
    """Return a function that plans one REST call for each account."""

    def plan(args: argparse.Namespace) -> list[Call[Any]]:
        from ledgerkit.api import rest

        return [getattr(rest, view)(account_id) for account_id in _account_ids(args)]

    return plan


def _plan_account(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the calls of `account`."""
    from ledgerkit.api import rpc

    if args.at is None:
        return _each("full")(args)
    at = _block_ref(args.at)
    return [rpc.block(at), *(rpc.view_account(i, at) for i in _account_ids(args))]


def _plan_keys(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the calls of `keys`."""
    from ledgerkit.api import rpc

    at = _block_ref(args.at)
    account_ids = _account_ids(args)
    pages = [rpc.view_access_key_list(account_id, at) for account_id in account_ids]
    return pages if len(pages) == 1 else [rpc.block(at), *pages]


def _plan_block(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the calls of `block`."""
    from ledgerkit.api import rpc

    return [rpc.block(_block_ref(args.block))]


def _plan_view(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the calls of `view`."""
    from ledgerkit.api import rpc

    contract_id = validation.account_id(args.contract_id, "contract_id")
    method, at = validation.method_name(args.method), _block_ref(args.at)
    return [rpc.call_function(contract_id, method, _json_bytes(args.args), at)]


def _plan_receipts(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the calls of `receipts`."""
    from ledgerkit.api import rpc

    tx_hash = validation.crypto_hash(args.tx_hash, "tx_hash")
    return [rpc.transaction(tx_hash, validation.account_id(args.sender, "sender"), args.wait_until)]


def _json_bytes(text: str | None) -> bytes:
    """Check that a view method's arguments are JSON, and encode them."""
    import msgspec

    data = (text or "{}").encode()
    try:
        json_decoding.decode(data)
    except msgspec.DecodeError as error:
        raise errors.InvalidRequestError.refuse("args", text, f"JSON ({error})") from None
    return data


def _read_ft(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read fungible tokens."""
    from ledgerkit.verbs import tokens

    return tokens.ft(_account_ids(args), metadata=args.metadata, **_options(ledger))


def _read_nft(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read NFT collections."""
    from ledgerkit.verbs import tokens

    return tokens.nft(_account_ids(args), **_options(ledger))


def _read_staking(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read staking pools."""
    from ledgerkit.verbs import tokens

    options = {"positions": args.positions, "pools": args.pool} | _options(ledger)
    return tokens.staking(_account_ids(args), **options)


def _read_account(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read accounts."""
    from ledgerkit.verbs import accounts

    at = _height_or_text(args.at)
    return accounts.accounts(_account_ids(args), at=at, **_options(ledger))


def _read_keys(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read the access keys of accounts."""
    from ledgerkit.verbs import accounts

    at = _height_or_text(args.at)
    return accounts.keys(_account_ids(args), at=at, **_options(ledger))


def _read_block(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read a block."""
    from ledgerkit.verbs import blocks

    return blocks.block(_height_or_text(args.block), ledger=ledger)


def _read_view(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Call a view method."""
    from ledgerkit.verbs import contracts

    at = _height_or_text(args.at)
    data = _json_bytes(args.args)
    return contracts.view(args.contract_id, args.method, data, at=at, ledger=ledger)


def _read_receipts(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read the receipts of a transaction; print its headline above a table."""
    from ledgerkit.verbs import transactions

    trace = transactions.trace(args.tx_hash, args.sender, wait_until=args.wait_until, ledger=ledger)
    headline = trace.headline() if args.format == "table" else ""
    if headline:
        _say(f"{headline}\n")
    return trace.receipts


def _ft_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ft`."""
    _ids(parser).add_argument(
        "--metadata", action="store_true", help="add the columns symbol, decimals and amount"
    )


def _staking_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `staking`."""
    _ids(parser).add_argument(
        "--positions", action="store_true", help="read the current stake from each pool"
    )
    parser.add_argument(
        "--pool", action="append", default=[], help="another pool to read; can be repeated"
    )


def _block_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `block`."""
    parser.add_argument(
        "block", nargs="?", default="final", help="a height, a hash, final, or an ISO time"
    )


def _view_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `view`."""
    parser.add_argument("contract_id", nargs="?", help="the contract's account id")
    parser.add_argument("method", nargs="?", help="the view method")
    parser.add_argument("args", nargs="?", help="the method's arguments, as JSON")
    _at(parser)


def _receipts_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `receipts`."""
    parser.add_argument("tx_hash", nargs="?", help="the transaction's hash")
    parser.add_argument("sender", nargs="?", help="the account id of its signer")
    parser.add_argument("--wait-until", choices=validation.WAIT_LEVELS, default="FINAL")


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
        "access keys of accounts",
        lambda parser: _at(_ids(parser)),
        _plan_keys,
        _read_keys,
        lambda _: "keys",
        "keys",
    ),
    "block": Command(
        "one block", _block_arguments, _plan_block, _read_block, lambda _: "blocks", "blocks"
    ),
    "view": Command(
        "the result of a contract's view method",
        _view_arguments,
        _plan_view,
        _read_view,
        lambda _: "",
        "",
    ),
    "receipts": Command(
        "the receipts of a transaction",
        _receipts_arguments,
        _plan_receipts,
        _read_receipts,
        lambda _: "receipts",
        "receipts",
    ),
}


# The connection ---------------------------------------------------------------------------


def _doctor_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `doctor`."""
    _network_arguments(parser)
    _format_argument(parser)
    parser.add_argument(
        "--save", metavar="FILE", help="write the responses to a file, without the API key"
    )


def _doctor(args: argparse.Namespace) -> int:
    """Check each surface, and print a table; exit with the code of the first error."""
    from ledgerkit.verbs import doctor

    with _connect(args) as ledger:
        frame = doctor.doctor(save=args.save, ledger=ledger)
    if args.format == "table":
        _print_surfaces(frame)
    else:
        _print(frame, args.format, raw=args.raw)
    failures = frame[frame["error"].notna()]
    for surface, message in zip(failures["surface"], failures["message"], strict=True):
        _print_message(f"{surface}: {message}")
    return _first_exit_code(failures)


def _print_surfaces(frame: pd.DataFrame) -> None:
    """Print a line for each surface, the limits, and the members that ledgerkit does not know."""
    headings = {
        "surface": "surface",
        "host": "host",
        "latency_ms": "ms",
        "protocol_version": "protocol",
        "block_height": "block",
    }
    table = frame[list(headings)].rename(columns=headings).astype("string").fillna("")
    table["status"] = frame["error"].notna().map({True: "failed", False: "ok"})
    _say(table.to_string(index=False))
    _say()
    _print_wrapped(f"limits: {frame.attrs['limits']}")
    for surface, members in zip(frame["surface"], frame["unknown_members"], strict=True):
        if members:
            _print_wrapped(f"{surface}: ledgerkit does not know {', '.join(members)}")


def _print_wrapped(text: str) -> None:
    """Print a text in lines of a narrow terminal."""
    lines = textwrap.wrap(
        text, 80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    _say("\n".join(lines))


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
        _say(f"ledgerkit: world {args.world} on {addresses}; stop with Ctrl-C", flush=True)

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
    """Return the settings of a world's clock and keys."""
    from ledgerkit.transport import networks

    options: dict[str, Any] = {}
    if args.block_time is not None:
        options = {"real_time": True, "block_time_ns": _nanoseconds(args.block_time)}
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
        _print_json(summary)
        return 0
    for account in summary.accounts:
        _say(f"{account.account_id}  {account.secret_key or '-'}  {account.description}")
    for role, contracts in summary.contracts.items():
        _say(f"{role}: {contracts if isinstance(contracts, str) else ', '.join(contracts)}")
    for tx in summary.transactions:
        _say(f"{tx.tx_hash}  {tx.signer_id}  {tx.description}")
    return 0


# Many accounts ----------------------------------------------------------------------------


def _collect_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `collect`."""
    parser.add_argument("ids", metavar="IDS", help="a file of account ids: text, CSV or Parquet")
    parser.add_argument(
        "out", metavar="OUT", help="the folder to write to, local or such as s3://…"
    )
    _network_arguments(parser)
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
    _network_arguments(parser)
    parser.add_argument(
        "--views",
        metavar="VIEW,…",
        help="some of blocks,chunks,transactions,receipts,events",
    )
    _run_arguments(parser)


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
    _format_argument(parser)


def _collect(args: argparse.Namespace) -> int:
    """Collect accounts, and print a summary."""
    from ledgerkit.collecting import accounts, collect

    views = accounts.VIEWS if args.views is None else args.views.split(",")
    return _run_collection(args, partial(collect.collect, args.ids, views, column=args.column))


def _collect_blocks(args: argparse.Namespace) -> int:
    """Collect a range of blocks, and print a summary."""
    from ledgerkit.collecting import blocks as collecting_blocks
    from ledgerkit.collecting import collect_blocks

    views = collecting_blocks.VIEWS if args.views is None else args.views.split(",")
    ends = _height_or_text(args.start), _height_or_text(args.stop)
    return _run_collection(args, partial(collect_blocks.collect_blocks, *ends, views))


def _run_collection(args: argparse.Namespace, run: Callable[..., Any]) -> int:
    """Run a collection, and print its summary."""
    names = ("out", "in_flight", "rate", "retry_failed", "dry_run")
    options = {name: getattr(args, name) for name in names} | {"progress": sys.stderr.isatty()}
    with _connect(args) as ledger:
        collection = run(**options, ledger=ledger)
    if args.dry_run:
        return 0
    _print(collection.summary(), "table")
    failures = collection.errors()
    return _first_exit_code(failures[failures["kind"] == "failed"])


def _diff(args: argparse.Namespace) -> int:
    """Print the changes between two collections."""
    from ledgerkit.collecting import diff

    difference = diff.diff(args.before, args.after, args.view)
    _print(difference.changes, args.format, raw=args.raw)
    if not difference.not_compared.empty:
        count = len(difference.not_compared)
        start = f"{count:,} accounts were not compared: they were"
        start = "1 account was not compared: it was" if count == 1 else start
        _print_message(f"{start} not read in both collections")
    return 0


TASKS = {
    "doctor": Task("check the hosts of the network", _doctor_arguments, _doctor),
    "collect": Task("read many accounts into Parquet files", _collect_arguments, _collect),
    "collect-blocks": Task(
        "read a range of blocks into Parquet files", _collect_blocks_arguments, _collect_blocks
    ),
    "diff": Task("compare two collections", _diff_arguments, _diff),
    "serve": Task("serve an embedded ledger as JSON-RPC and REST API", _serve_arguments, _serve),
    "world": Task(
        "list the accounts, contracts and transactions of a world", _world_command_arguments, _world
    ),
}
