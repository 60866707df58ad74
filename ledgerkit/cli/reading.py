"""The commands that read and print a frame, a value or a text."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import errors, json_decoding, validation
from ledgerkit.cli import arguments as shared
from ledgerkit.cli import connection, exit_codes, output

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.api.calls import Call
    from ledgerkit.ledger import Ledger
    from ledgerkit.tracing.trace import Trace


class Command(NamedTuple):
    """
    A command that reads a result and prints it.

    `arguments` declares what no other command has, `plan` builds the first calls, `read` reads
    the result, `frame` is its schema ("" if it is no frame), and `load` reads it from a saved
    response, if there is such a response.
    """

    help: str
    arguments: Callable[[argparse.ArgumentParser], object]
    plan: Callable[[argparse.Namespace], list[Call[Any]]]
    read: Callable[[argparse.Namespace, Ledger], Any]
    frame: Callable[[argparse.Namespace], str]
    load: Callable[[argparse.Namespace], Any] | None = None

    def declare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the command."""
        self.arguments(parser)
        shared.declare_form(parser)
        shared.declare_network(parser)
        if self.load is not None:
            parser.add_argument(
                "--from-file", metavar="FILE", help="read a saved response; send nothing"
            )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="print the requests and the columns; send nothing",
        )


def read_and_print(args: argparse.Namespace, command: Command) -> int:
    """Print a saved response, the planned requests, or the result read from the ledger."""
    form = output.form(args, command.frame(args))
    if command.load is not None and args.from_file is not None:
        output.print_value(command.load(args), form)
        return exit_codes.SUCCESS
    planned = command.plan(args)  # checks the arguments, before anything is sent
    if args.dry_run:
        connection.print_plan(args, planned, command.frame(args))
        return exit_codes.SUCCESS
    with connection.connect(args) as ledger:
        result = command.read(args, ledger)
    if not isinstance(result, tuple):
        output.print_value(result, form)
        return exit_codes.SUCCESS
    frame, failures = result
    if failures.empty or not frame.empty:
        output.print_value(frame, form)
    for subject, message in zip(failures["subject"], failures["message"], strict=True):
        output.print_message(f"{subject}: {message}")
    return exit_codes.first_exit_code(failures)


def _block_ref(at: str | None) -> Any:
    """Return the first block to read: a search for a time begins at the genesis block."""
    reference = validation.block_reference(shared.height_or_text(at))
    return reference if reference.timestamp_ns is None else validation.block_reference("genesis")


def _each(view: str) -> Callable[[argparse.Namespace], list[Call[Any]]]:
    """Return a function that plans one REST call for each account."""

    def plan(args: argparse.Namespace) -> list[Call[Any]]:
        from ledgerkit.api import rest

        return [getattr(rest, view)(account_id) for account_id in shared.account_ids(args)]

    return plan


def _plan_account(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the calls of `account`."""
    from ledgerkit.api import rpc

    if args.at is None:
        return _each("full")(args)
    at = _block_ref(args.at)
    return [rpc.block(at), *(rpc.view_account(i, at) for i in shared.account_ids(args))]


def _plan_keys(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the calls of `keys`."""
    from ledgerkit.api import rpc

    at = _block_ref(args.at)
    account_ids = shared.account_ids(args)
    pages = [rpc.view_access_key_list(account_id, at) for account_id in account_ids]
    return pages if len(pages) == 1 else [rpc.block(at), *pages]


def _plan_block(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the calls of `block`."""
    from ledgerkit.api import rpc

    return [rpc.block(_block_ref(args.block))]


def _plan_view(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the calls of `view`."""
    from ledgerkit.api import rpc

    contract_id = shared.required(args, "contract_id", "the contract's account id")
    contract_id = validation.account_id(contract_id, "contract_id")
    method = validation.method_name(shared.required(args, "method", "the view method"))
    return [rpc.call_function(contract_id, method, _json_bytes(args.args), _block_ref(args.at))]


def _plan_trace(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the calls of `trace` and `receipts`."""
    from ledgerkit.api import rpc, services

    tx_hash = shared.required(args, "tx_hash", "the transaction's hash")
    tx_hash = validation.crypto_hash(tx_hash, "tx_hash")
    if args.sender is None:
        return [services.transaction_document(tx_hash)]
    sender = validation.account_id(args.sender, "sender")
    return [rpc.transaction(tx_hash, sender, args.wait_until)]


def _plan_history(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the calls of `history`: the ends of the range, and the contracts to look up."""
    from ledgerkit.api import rest, rpc
    from ledgerkit.verbs import history, sampling

    account_id = validation.account_id(args.account_id)
    views = history.check_views(shared.names(args.views))
    start, stop, every = map(shared.height_or_text, (args.start, args.stop, args.every))
    sampling.check_range(start, stop, every, width=1)
    blocks = [rpc.block(_block_ref(at)) for at in dict.fromkeys(("final", args.start))]
    lists_tokens = "ft" in views and not args.contract
    lists_pools = "staking" in views and not args.pool
    return [
        *([rest.ft(account_id)] if lists_tokens else []),
        *([rest.staking(account_id)] if lists_pools else []),
        *blocks,
    ]


def _plan_range(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the calls that find the blocks of `--start` and `--stop`; heights need none."""
    from ledgerkit.api import rpc

    ends = [shared.height_or_text(end) for end in (args.start, args.stop)]
    for end in ends:
        if end is not None:
            validation.block_reference(end)
    return [rpc.block(_block_ref(end)) for end in ends if isinstance(end, str)]


def _plan_transactions(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the first calls of `transactions`."""
    from ledgerkit.api import services

    ids = shared.account_ids(args)
    is_newest = args.limit is not None
    pages = [services.account_page(account_id, desc=is_newest) for account_id in ids]
    return [*_plan_range(args), *pages]


def _plan_transfers(args: argparse.Namespace) -> list[Call[Any]]:
    """Plan the first calls of `transfers`."""
    from ledgerkit.api import services

    ids = shared.account_ids(args)
    is_newest, direction = args.limit is not None, args.direction
    pages = [services.transfers_page(i, desc=is_newest, direction=direction) for i in ids]
    return [*_plan_range(args), *pages]


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

    return tokens.ft(
        shared.account_ids(args), metadata=args.metadata, **shared.progress_options(ledger)
    )


def _read_nft(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read NFT collections."""
    from ledgerkit.verbs import tokens

    return tokens.nft(shared.account_ids(args), **shared.progress_options(ledger))


def _read_staking(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read staking pools."""
    from ledgerkit.verbs import tokens

    options = {"positions": args.positions, "pools": args.pool} | shared.progress_options(ledger)
    return tokens.staking(shared.account_ids(args), **options)


def _read_account(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read accounts."""
    from ledgerkit.verbs import accounts

    at = shared.height_or_text(args.at)
    return accounts.accounts(shared.account_ids(args), at=at, **shared.progress_options(ledger))


def _read_keys(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read the access keys of accounts."""
    from ledgerkit.verbs import accounts

    at = shared.height_or_text(args.at)
    return accounts.keys(shared.account_ids(args), at=at, **shared.progress_options(ledger))


def _read_block(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read a block."""
    from ledgerkit.verbs import blocks

    return blocks.block(shared.height_or_text(args.block), ledger=ledger)


def _read_view(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Call a view method."""
    from ledgerkit.verbs import contracts

    at = shared.height_or_text(args.at)
    data = _json_bytes(args.args)
    return contracts.view(args.contract_id, args.method, data, at=at, ledger=ledger)


def _read_history(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read the holdings of an account at several blocks."""
    from ledgerkit.verbs import history

    return history.history(
        args.account_id,
        shared.height_or_text(args.start),
        shared.height_or_text(args.stop),
        every=shared.height_or_text(args.every),
        views=shared.names(args.views),
        contracts=args.contract,
        pools=args.pool,
        **shared.progress_options(ledger),
    )


def _read_transactions(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read the transactions of accounts."""
    from ledgerkit.verbs import account_history

    return account_history.account_transactions(
        shared.account_ids(args),
        shared.height_or_text(args.start),
        shared.height_or_text(args.stop),
        role=shared.names(args.role) or None,
        success=args.success,
        limit=args.limit,
        **shared.progress_options(ledger),
    )


def _read_transfers(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read the transfers of accounts."""
    from ledgerkit.verbs import account_history

    return account_history.transfers_of(
        shared.account_ids(args),
        shared.height_or_text(args.start),
        shared.height_or_text(args.stop),
        asset=args.asset,
        direction=args.direction,
        metadata=args.metadata,
        limit=args.limit,
        **shared.progress_options(ledger),
    )


def _trace(args: argparse.Namespace, ledger: Ledger) -> Trace:
    """Read the trace of a transaction."""
    from ledgerkit.verbs import transactions

    return transactions.trace(args.tx_hash, args.sender, wait_until=args.wait_until, ledger=ledger)


def _trace_result(args: argparse.Namespace, trace: Trace) -> Any:
    """Return the explanation of a trace, or the frame that was chosen."""
    if args.frame is None and args.columns is None and args.format == "table":
        return output.Text(trace.explain())
    return getattr(trace, args.frame or "receipts")


def _load_trace(args: argparse.Namespace) -> Any:
    """Read a saved trace."""
    from ledgerkit.tracing.trace import Trace

    return _trace_result(args, Trace.load(args.from_file))


def _read_receipts(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Read the receipts of a transaction; print its headline above a table."""
    trace = _trace(args, ledger)
    headline = trace.headline() if args.format == "table" else ""
    if headline:
        output.say(f"{headline}\n", style="heading")
    return trace.receipts


def _load(view: str) -> Callable[[argparse.Namespace], Any]:
    """Return a function that reads the frame of a saved response."""

    def load(args: argparse.Namespace) -> Any:
        from ledgerkit.verbs import saved_responses

        return saved_responses.read(args.from_file, view)

    return load


def _load_view(args: argparse.Namespace) -> Any:
    """Read the value that a saved view call returned."""
    from ledgerkit.verbs import saved_responses

    return saved_responses.returned_value(args.from_file)


def _ft_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ft`."""
    shared.declare_ids(parser).add_argument(
        "--metadata", action="store_true", help="add the columns symbol, decimals and amount"
    )


def _staking_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `staking`."""
    shared.declare_ids(parser).add_argument(
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
    shared.declare_at(parser)


def _history_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `history`."""
    block = "a height, a hash, genesis, final, or an ISO time"
    parser.add_argument("account_id", help="the account id")
    parser.add_argument("start", help=f"the first block: {block}")
    parser.add_argument("stop", help="the end of the range, as START")
    parser.add_argument(
        "--every", help="the spacing: a number of heights, or 6h, 1D or MS; default: 24 readings"
    )
    parser.add_argument(
        "--views",
        metavar="VIEW,…",
        default="accounts",
        help="some of accounts,ft,staking; default: accounts",
    )
    for option, noun in (("--contract", "token contract"), ("--pool", "staking pool")):
        parser.add_argument(
            option,
            metavar="ID",
            action="append",
            default=[],
            help=f"a {noun} to read; can be repeated; default: those that the indexer lists",
        )


def _transactions_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `transactions`."""
    shared.declare_range(shared.declare_ids(parser))
    parser.add_argument(
        "--role",
        metavar="ROLE,…",
        help="only with this role of the account, such as signer, receiver or function_call",
    )
    parser.add_argument(
        "--success",
        action=argparse.BooleanOptionalAction,
        help="only transactions that succeeded, or with --no-success that did not",
    )
    parser.add_argument("--limit", type=int, help="the newest transactions, at most this many")


def _transfers_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `transfers`."""
    shared.declare_range(shared.declare_ids(parser))
    parser.add_argument("--asset", help="near, nep141:CONTRACT or nep245:CONTRACT:TOKEN_ID")
    parser.add_argument(
        "--direction", choices=("sender", "receiver"), help="what was sent, or what was received"
    )
    parser.add_argument(
        "--metadata", action="store_true", help="read symbols and decimals of tokens"
    )
    parser.add_argument("--limit", type=int, help="the newest transfers, at most this many")


def _receipts_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `receipts`."""
    parser.add_argument("tx_hash", nargs="?", help="the transaction's hash")
    parser.add_argument(
        "sender", nargs="?", help="the account id of its signer; default: looked up by the hash"
    )
    parser.add_argument(
        "--wait-until",
        choices=validation.WAIT_LEVELS,
        default="FINAL",
        help="the level to wait for; default: FINAL",
    )


def _trace_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `trace`."""
    from ledgerkit.frames.schemas import TRACE_FRAMES

    _receipts_arguments(parser)
    parser.add_argument(
        "--frame",
        choices=TRACE_FRAMES,
        help="print this frame, not the explanation; default of CSV and JSON: receipts",
    )


def _verify_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `verify`."""
    _receipts_arguments(parser)
    parser.add_argument(
        "--trusted", metavar="HASH", help="a block that you trust, by its hash; see the guide"
    )
    parser.add_argument(
        "--source",
        choices=("rpc", "documents"),
        default="rpc",
        help="where the proof is read from: paths of a node, or block documents; default: rpc",
    )


def _verify(args: argparse.Namespace, ledger: Ledger) -> Any:
    """Prove the outcomes of a transaction; raise if one is not proved."""
    proof = _trace(args, ledger).verify(args.trusted, source=args.source)
    if not proof.is_complete:
        notes = dict.fromkeys(proof.rows["note"].dropna())
        raise errors.ProofError(" ".join([proof.summary, *notes]))
    if args.format == "table":
        output.say(f"{proof.summary}\n", style="heading")
    return proof.rows


COMMANDS = {
    "account": Command(
        "balances, storage and holdings of accounts",
        lambda parser: shared.declare_at(shared.declare_ids(parser)),
        _plan_account,
        _read_account,
        lambda _: "accounts",
        _load("accounts"),
    ),
    "ft": Command(
        "fungible tokens of accounts",
        _ft_arguments,
        _each("ft"),
        _read_ft,
        lambda args: "ft_metadata" if args.metadata else "ft",
        _load("ft"),
    ),
    "nft": Command(
        "NFT collections of accounts",
        shared.declare_ids,
        _each("nft"),
        _read_nft,
        lambda _: "nft",
        _load("nft"),
    ),
    "staking": Command(
        "staking pools of accounts",
        _staking_arguments,
        _each("staking"),
        _read_staking,
        lambda args: "staking_positions" if args.positions or args.pool else "staking",
        _load("staking"),
    ),
    "keys": Command(
        "access keys of accounts",
        lambda parser: shared.declare_at(shared.declare_ids(parser)),
        _plan_keys,
        _read_keys,
        lambda _: "keys",
        _load("keys"),
    ),
    "history": Command(
        "holdings of an account at several blocks",
        _history_arguments,
        _plan_history,
        _read_history,
        lambda _: "history",
    ),
    "transactions": Command(
        "transactions that accounts took part in",
        _transactions_arguments,
        _plan_transactions,
        _read_transactions,
        lambda _: "account_transactions",
        _load("account_transactions"),
    ),
    "transfers": Command(
        "transfers of accounts, as an indexer lists them",
        _transfers_arguments,
        _plan_transfers,
        _read_transfers,
        lambda _: "transfers_of",
        _load("transfers_of"),
    ),
    "block": Command(
        "one block",
        _block_arguments,
        _plan_block,
        _read_block,
        lambda _: "blocks",
        _load("blocks"),
    ),
    "view": Command(
        "the result of a contract's view method",
        _view_arguments,
        _plan_view,
        _read_view,
        lambda _: "",
        _load_view,
    ),
    "trace": Command(
        "what a transaction did: its explanation, or a frame of its receipts",
        _trace_arguments,
        _plan_trace,
        lambda args, ledger: _trace_result(args, _trace(args, ledger)),
        lambda args: args.frame or "receipts",
        _load_trace,
    ),
    "verify": Command(
        "prove the outcomes of a transaction",
        _verify_arguments,
        _plan_trace,
        _verify,
        lambda _: "proof",
    ),
    "receipts": Command(
        "the receipts of a transaction",
        _receipts_arguments,
        _plan_trace,
        _read_receipts,
        lambda _: "receipts",
        _load("receipts"),
    ),
}
