"""The command that prints or writes the statement of an account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import errors
from ledgerkit.cli import connection, exit_codes, output
from ledgerkit.cli.arguments import NETWORK, Argument, form_arguments
from ledgerkit.cli.commands import Command

if TYPE_CHECKING:
    import argparse

    from ledgerkit.client import Ledger
    from ledgerkit.reconciling.csv_formats import Format
    from ledgerkit.reconciling.plan import StatementPlan
    from ledgerkit.reconciling.statement import Statement

_FRAME_FORMATS = ("table", "csv", "json")
_FILE_FORMATS: dict[str, Format] = {
    "csv": "plain",
    "koinly": "koinly",
    "cointracking": "cointracking",
}


def _schema(args: argparse.Namespace) -> str:
    """Return the schema of the frame that is printed."""
    return f"statement_{args.frame}" if args.frame not in (None, "entries") else "statement"


class _Statement(Command):
    """The command `statement`, whose plan is printed here as well."""

    def call(self, args: argparse.Namespace, ledger: Ledger | None) -> Statement | StatementPlan:
        """Return the statement, or with --dry-run its plan."""
        if not args.dry_run:
            statement: Statement = super().call(args, ledger)
            return statement
        from ledgerkit.reconciling import verbs

        return verbs.plan(args.account_id, args.start, args.stop, args.assets, ledger)


def _check(args: argparse.Namespace) -> None:
    """Check options that belong together, before anything is sent."""
    if args.out is not None and args.format not in _FILE_FORMATS:
        names = ", ".join(_FILE_FORMATS)
        raise errors.InvalidRequestError.refuse("--format", args.format, f"{names} with --out")
    if args.out is not None or args.format not in _FRAME_FORMATS:
        expected = "left out: the file has the columns of its format"
        if args.frame is not None:
            raise errors.InvalidRequestError.refuse("--frame", args.frame, expected)
        if args.columns is not None:
            names = ",".join(args.columns)
            raise errors.InvalidRequestError.refuse("--columns", names, expected)


def _print(args: argparse.Namespace, result: Any) -> int:
    """Print a statement or write it to a file; return a code of its own if it has gaps."""
    if args.dry_run:
        return _print_plan(args, result)
    if args.out is not None:
        result.to_csv(args.out, _FILE_FORMATS[args.format])
    elif args.format not in _FRAME_FORMATS:
        from ledgerkit.reconciling import csv_formats

        parts = csv_formats.tables(result.store, result.facts, args.format)
        for number, part in enumerate(parts):
            output.print_rows(part, args, header=not number)
    elif args.format == "table" and args.frame is None and args.columns is None:
        output.print_text(repr(result), raw=args.raw_texts)
    else:
        output.print_value(getattr(result, args.frame or "entries"), args)
    return exit_codes.SUCCESS if result.gaps.empty else exit_codes.GAPS


def _print_plan(args: argparse.Namespace, plan: StatementPlan) -> int:
    """Print a plan as text with the columns of the frame, or as JSON."""
    if args.format == "json":
        limits = {name: str(limit) for name, limit in plan.limits.items()}
        output.print_json({**vars(plan), "limits": limits, "seconds": plan.seconds})
    else:
        output.say(str(plan))
        connection.print_columns(_schema(args))
    return exit_codes.SUCCESS


_BLOCK = "a height, a hash, final, or an ISO time"
STATEMENT = _Statement(
    "everything that changed an account's balances, and whether it adds up",
    "reconciling.verbs:statement",
    Argument("account_id", "the account id"),
    Argument("--start", f"the block before the first entry: {_BLOCK}"),
    Argument("--stop", "the block of the last entry, as --start; default: final"),
    Argument(
        "--assets",
        "only these: near, nep141:CONTRACT, nep245:CONTRACT:TOKEN_ID, stake:POOL, gas_key:KEY",
    ),
    Argument(
        "--frame",
        "print this frame, not the summary; default of CSV and JSON: entries",
        choices=("entries", "gaps", "totals", "rewards"),
    ),
    *form_arguments("koinly", "cointracking"),
    Argument("--out FILE", "write the entries to a CSV file"),
    *NETWORK,
    Argument(
        "--dry-run",
        "print how many requests it needs; the blocks at the ends are requested all the same",
    ),
    schema=_schema,
    show=_print,
    check=_check,
)
