"""The command that prints or writes the statement of an account."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ledgerkit import errors
from ledgerkit.cli import arguments as shared
from ledgerkit.cli import connection, exit_codes, output

if TYPE_CHECKING:
    import argparse

    from ledgerkit.reconciling.csv_formats import Format
    from ledgerkit.reconciling.plan import StatementPlan
    from ledgerkit.reconciling.statement import Statement

FRAMES = ("entries", "gaps", "totals", "rewards")
_FILE_FORMATS: dict[str, Format] = {
    "csv": "plain",
    "koinly": "koinly",
    "cointracking": "cointracking",
}


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `statement`."""
    parser.add_argument("account_id", help="the account id")
    block = "a height, a hash, final, or an ISO time"
    parser.add_argument("--start", help=f"the block before the first entry: {block}")
    parser.add_argument("--stop", help="the block of the last entry, as --start; default: final")
    parser.add_argument(
        "--assets",
        metavar="ASSET,…",
        help="only these: near, nep141:CONTRACT, nep245:CONTRACT:TOKEN_ID, stake:POOL, gas_key:KEY",
    )
    parser.add_argument(
        "--frame",
        choices=FRAMES,
        help="print this frame, not the summary; default of CSV and JSON: entries",
    )
    shared.declare_form(parser, more_formats=("koinly", "cointracking"))
    parser.add_argument("--out", metavar="FILE", help="write the entries to a CSV file")
    shared.declare_network(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print how many requests it needs; the blocks at the ends are requested all the same",
    )


def frame(args: argparse.Namespace) -> str:
    """Return the schema of the frame that is printed."""
    name = args.frame or "entries"
    return "statement" if name == "entries" else f"statement_{name}"


def run(args: argparse.Namespace) -> int:
    """Print a statement or write it to a file; exit with a code of its own if it has gaps."""
    form = output.form(args, frame(args))
    _check(args)
    ends = shared.height_or_text(args.start), shared.height_or_text(args.stop)
    assets = shared.names(args.assets) or None
    with connection.connect(args) as ledger:
        from ledgerkit.reconciling import verbs

        if args.dry_run:
            _print_plan(verbs.plan(args.account_id, *ends, assets, ledger), args)
            return exit_codes.SUCCESS
        statement = verbs.statement(
            args.account_id,
            *ends,
            assets=assets,
            progress=sys.stderr.isatty(),
            ledger=ledger,
        )
    if args.out is not None:
        statement.to_csv(args.out, _FILE_FORMATS[args.format])
    else:
        _print(statement, args, form)
    return exit_codes.SUCCESS if statement.gaps.empty else exit_codes.GAPS


def _check(args: argparse.Namespace) -> None:
    """Check options that belong together, before anything is sent."""
    is_for_tax = args.format not in ("table", "csv", "json")
    if args.out is not None and args.format not in _FILE_FORMATS:
        names = ", ".join(_FILE_FORMATS)
        raise errors.InvalidRequestError.refuse("--format", args.format, f"{names} with --out")
    for name in ("frame", "columns"):
        if getattr(args, name) is not None and (is_for_tax or args.out is not None):
            expected = "left out: the file has the columns of its format"
            raise errors.InvalidRequestError.refuse(f"--{name}", getattr(args, name), expected)


def _print_plan(plan: StatementPlan, args: argparse.Namespace) -> None:
    """Print a plan as text with the columns of the frame, or as JSON."""
    if args.format == "json":
        limits = {name: str(limit) for name, limit in plan.limits.items()}
        output.print_json({**vars(plan), "limits": limits, "seconds": plan.seconds})
    else:
        output.say(str(plan))
        connection.print_columns(frame(args))


def _print(statement: Statement, args: argparse.Namespace, form: output.Form) -> None:
    """Print the summary, a frame, or the rows of a tax program."""
    if args.format not in ("table", "csv", "json"):
        from ledgerkit.reconciling import csv_formats

        parts = csv_formats.tables(statement.store, statement.facts, args.format)
        for at, part in enumerate(parts):
            output.print_csv(part, raw=form.raw, header=not at)
    elif args.format == "table" and args.frame is None and args.columns is None:
        output.print_value(output.Text(repr(statement)), form)
    else:
        output.print_value(getattr(statement, args.frame or "entries"), form)
