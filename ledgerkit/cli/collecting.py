"""The commands of collections: `collect`, `collect-blocks`, `follow` and `diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import errors
from ledgerkit.cli import exit_codes, output
from ledgerkit.cli.arguments import BLOCK, FORM, NETWORK, Argument
from ledgerkit.cli.commands import Command
from ledgerkit.frames.collected import VIEWS, schema_name
from ledgerkit.validation import BLOCK_SOURCES, WHOLE_BLOCK_SOURCES

if TYPE_CHECKING:
    import argparse

    from ledgerkit.collecting.collection import Collection
    from ledgerkit.collecting.diff import Diff


def _print_summary(args: argparse.Namespace, collection: Collection) -> int:
    if args.dry_run:  # the verb prints its plan
        return exit_codes.SUCCESS
    output.print_table(collection.summary())
    failures = collection.errors()
    return exit_codes.first_exit_code(failures[failures["kind"] == "failed"])


def _check_views(args: argparse.Namespace) -> None:
    is_table = args.format == "table"
    if args.views is None:
        args.views = ["blocks", "transactions"] if is_table else ["blocks"]
    refuse = errors.InvalidRequestError.refuse
    if is_table and args.columns is not None:
        expected = "left out: each block is a line; --format csv prints the rows of a view"
        raise refuse("--columns", ",".join(args.columns), expected)
    if not is_table and len(args.views) > 1:
        raise refuse("--views", ",".join(args.views), "one view, to print its rows")


def _print_blocks(args: argparse.Namespace, following: Any) -> int:
    with following as blocks:
        for number, block in enumerate(blocks):
            if args.format == "table":
                frames = [(view, frame) for view, frame in block.items() if view != "blocks"]
                counts = [f"{len(frame):,} {view}" for view, frame in frames]
                texts = [block.height, f"{block.time:%Y-%m-%d %H:%M:%S}", *counts]
                output.say("  ".join(map(str, [*texts, f"{block.behind:,} behind"])))
            else:
                rows = block[args.views[0]]
                output.print_rows(rows, args, header=not number, as_lines=True)
            output.flush()
    return exit_codes.SUCCESS


def _print_changes(args: argparse.Namespace, difference: Diff) -> int:
    output.print_value(difference.changes, args)
    count = len(difference.not_compared)
    if count:
        several = f"{count:,} accounts were not compared: they were"
        accounts = "1 account was not compared: it was" if count == 1 else several
        output.print_message(f"{accounts} not read in both collections")
    return exit_codes.SUCCESS


_ACCOUNT_VIEWS = VIEWS["accounts"]
_FIRST = f"the first block: {BLOCK}"
_BLOCK_VIEWS = (
    "some of blocks,chunks,transactions,receipts,events,transfers,intents, and of whole blocks "
    "outcomes,actions,balances,data_receipts; default: all"
)
_FOLLOWED_VIEWS = "some of the views of collect-blocks, or one to print as CSV or JSON"
_OUT = Argument("OUT", "the folder to write to, local or such as s3://…", nargs=None)
_RUN = (
    Argument("--rate N", "maximum number of requests a second"),
    Argument("--in-flight N", "maximum number of concurrent requests"),
    Argument("--retry-failed", "request again what could not be read before"),
    Argument("--dry-run", "print the planned requests and files; send nothing"),
)

COLLECTING = {
    "collect": Command(
        "read many accounts into Parquet files",
        "collecting.collect:collect",
        Argument("IDS", "a file of account ids: text, CSV or Parquet", "account_ids", type=str),
        _OUT,
        *NETWORK,
        Argument("--views", f"some of {','.join(_ACCOUNT_VIEWS)}"),
        Argument("--column", "the column of ids in the file"),
        *_RUN,
        show=_print_summary,
        example="people.txt march --views ft --rate 5",
    ),
    "collect-blocks": Command(
        "read a range of blocks into Parquet files",
        "collecting.collect_blocks:collect_blocks",
        Argument("START", _FIRST),
        Argument("STOP", "the block after the last one, as START; default: no end", nargs="?"),
        _OUT,
        *NETWORK,
        Argument("--views", _BLOCK_VIEWS),
        Argument("--source", "default: documents, if there are any", choices=BLOCK_SOURCES),
        Argument("--workers N", "number of processes"),
        *_RUN,
        show=_print_summary,
        example="180000010 180000012 blocks --views chunks",
    ),
    "follow": Command(
        "print each new block, and store the blocks in Parquet files",
        "collecting.follow:follow",
        Argument("START", f"{_FIRST}; default: the last final one"),
        *NETWORK,
        *FORM,
        Argument("--views", _FOLLOWED_VIEWS, default=None),
        Argument("--out", "a folder to store the blocks in as well"),
        Argument("--source", "default: documents", choices=WHOLE_BLOCK_SOURCES),
        Argument("--stop", "the block after the last one, as START; default: no end"),
        Argument("--max-blocks N", "stop after so many blocks"),
        schema=lambda args: schema_name(args.views[0] if args.views else "blocks"),
        show=_print_blocks,
        check=_check_views,
        example="--max-blocks 3 --views transactions --csv",
    ),
    "diff": Command(
        "compare two collections",
        "collecting.diff:diff",
        Argument("BEFORE", "the folder of the earlier collection"),
        Argument("AFTER", "the folder of the later collection"),
        Argument("--view", f"{', '.join(_ACCOUNT_VIEWS[:-1])} or {_ACCOUNT_VIEWS[-1]}"),
        *FORM,
        schema=lambda args: f"diff_{args.view}",
        show=_print_changes,
        example="march april --view ft",
    ),
}
