"""The commands that read and print a frame, a value or a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import errors, validation
from ledgerkit.cli import exit_codes, output
from ledgerkit.cli.arguments import (
    BLOCK,
    FLAG,
    FORM,
    INTERVAL,
    NETWORK,
    REPEATED,
    Argument,
    form_arguments,
)
from ledgerkit.cli.commands import Command, print_columns, print_failures, print_result
from ledgerkit.frames.schemas import STATEMENT_FRAMES, TRACE_FRAMES
from ledgerkit.reconciling.tax_formats import TAX_FORMATS
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    import argparse

    import pandas as pd

    from ledgerkit.ledger import Ledger
    from ledgerkit.tracing.trace import Trace
    from ledgerkit.verbs.accounts import Snapshot

_DOCTOR_COLUMNS = ["surface", "host", "latency_ms", "protocol_version", "block_height"]
_SNAPSHOT_COLUMNS = ["contract_id", "pool_id", "token_id", "symbol", "balance", "status"]
_DOCTOR_HEADINGS = ["surface", "host", "ms", "proto", "block"]


def _encode_args(args: argparse.Namespace) -> None:
    if args.args is not None:
        args.args = validation.json_text(args.args)


def _print_trace(args: argparse.Namespace, trace: Trace) -> int:
    if args.frame is None and args.columns is None and args.format == "table":
        output.print_text(trace.explain(), raw=args.raw_texts)
        return exit_codes.SUCCESS
    return print_result(args, getattr(trace, args.frame or "receipts"))


def _print_activity(args: argparse.Namespace, result: tuple[pd.DataFrame, pd.DataFrame]) -> int:
    from ledgerkit import cards
    from ledgerkit.frames.human import readable

    frame, failures = result
    if args.format != "table" or args.columns is not None or args.exact or frame.empty:
        return print_result(args, result)
    tables = (cards.records(table, len(frame)) for table in (frame, readable(frame)))
    for row, texts in zip(*tables, strict=True):
        lines = (
            f"{texts['time']}  {texts['verdict'] or 'not read'}",
            row["headline"],
            row["amounts"] and f"{row['account_id']}: {row['amounts']}",
            f"{row['tx_hash']}\n",
        )
        output.print_text("\n".join(filter(None, lines)) + "\n", raw=args.raw_texts)
    return print_failures(failures, "subject")


def _print_proof(args: argparse.Namespace, trace: Trace) -> int:
    proof = trace.verify(args.trusted, source=args.source)
    if not proof.is_complete:
        notes = dict.fromkeys(proof.rows["note"].dropna())
        raise errors.ProofError(" ".join([proof.summary, *notes]))
    return _print_below(proof.summary, args, proof.rows)


def _print_below(headline: str, args: argparse.Namespace, frame: pd.DataFrame) -> int:
    if headline and args.format == "table":
        output.say(f"{headline}\n", style="heading")
    return print_result(args, frame)


def _print_doctor(args: argparse.Namespace, frame: pd.DataFrame) -> int:
    if args.format != "table" or args.columns is not None:
        output.print_value(frame, args)
    else:
        table = frame[_DOCTOR_COLUMNS].set_axis(_DOCTOR_HEADINGS, axis="columns")
        table["status"] = frame["error"].notna().map({True: "failed", False: "ok"})
        output.print_table(table)
        unknown = zip(frame["surface"], frame["unknown_members"], strict=True)
        notes = [f"{name}: ledgerkit does not know {', '.join(m)}" for name, m in unknown if m]
        output.say()
        for note in (f"limits: {frame.attrs['limits']}", *notes):
            output.say(output.wrap(note, 80))
    return print_failures(frame[frame["error"].notna()], "surface")


def _print_recording(args: argparse.Namespace, frame: pd.DataFrame) -> int:
    output.print_value(frame, args)
    facts = frame.attrs
    if args.format == "table":
        line = (
            f"{len(frame):,} requests to {facts['network']} (chain id "
            f"{facts['chain_id'] or 'unknown'}), recorded by ledgerkit {facts['ledgerkit']} in "
            f"{facts['size_bytes']:,} bytes"
        )
        output.say(f"\n{escape_invisible(line)}")  # a node may have named any chain
    if facts["torn_bytes"]:
        output.print_message("the last response is incomplete, and is left out")
    return exit_codes.SUCCESS


class _Statement(Command):
    """The command `statement`, whose plan is printed here as well."""

    def call(self, args: argparse.Namespace, ledger: Ledger | None) -> Any:
        if args.dry_run:
            from ledgerkit.reconciling import verbs

            scope = args.account_id, args.start, args.stop, args.assets, ledger
            return verbs.plan(*scope, values=args.values)
        return super().call(args, ledger)


def _statement_schema(args: argparse.Namespace) -> str:
    if args.frame not in (None, "entries"):
        return f"statement_{args.frame}"
    return "statement" if args.values is None else "statement_values"


def _check_statement(args: argparse.Namespace) -> None:
    is_for_tax = args.format in TAX_FORMATS
    if args.out is not None and args.format in ("table", "json"):
        expected = f"{', '.join(('csv', *TAX_FORMATS))} with --out"
        raise errors.InvalidRequestError.refuse("--format", args.format, expected)
    columns = None if args.columns is None else ",".join(args.columns)
    for name, value in (("--frame", args.frame), ("--columns", columns)):
        if value is not None and (is_for_tax or args.out is not None):
            expected = "left out: the file has the columns of its format"
            raise errors.InvalidRequestError.refuse(name, value, expected)


# Exit codes by the first character of a statement's verdict.
_CODE_OF_MARK = {"✓": exit_codes.SUCCESS, "⚠": exit_codes.GAPS, "?": exit_codes.NOT_CHECKED}


def _print_statement(args: argparse.Namespace, result: Any) -> int:
    from ledgerkit.reconciling import summary

    if args.dry_run and args.format == "json":
        limits = {name: str(limit) for name, limit in result.limits.items()}
        output.print_json({**vars(result), "limits": limits, "seconds": result.seconds})
        return exit_codes.SUCCESS
    if args.dry_run:
        output.say(str(result))
        print_columns(_statement_schema(args))
        return exit_codes.SUCCESS
    if args.out is not None:
        result.to_csv(args.out, "plain" if args.format == "csv" else args.format)
    elif args.format in TAX_FORMATS:
        from ledgerkit.reconciling import csv_formats

        parts = csv_formats.tables(result.store, result.facts, args.format)
        for number, part in enumerate(parts):
            output.print_rows(part, args, header=not number)
    elif args.format == "table" and args.frame is None and args.columns is None:
        output.print_text(repr(result), raw=args.raw_texts)
    else:
        if args.frame == "rewards" and args.format == "table":
            from ledgerkit.reconciling import earnings

            facts, totals = result.facts, result.totals
            earned = list(earnings.sentences(facts, totals))
            lines = "\n".join(earned or [earnings.no_rewards(facts, totals)])
            output.print_text(lines, raw=args.raw_texts)
        output.print_value(getattr(result, args.frame or "entries"), args)
    return _CODE_OF_MARK[summary.verdict(result.totals, result.gaps)[0]]


def _snapshot_schema(args: argparse.Namespace) -> str:
    frame = args.frame or "ft"
    names = {"state": "accounts", "ft": "ft_metadata" if args.metadata else "ft"}
    return names.get(frame, frame)


def _print_snapshot(args: argparse.Namespace, snapshot: Snapshot) -> int:
    """Print one frame; as a table for people, print all frames that have rows."""
    if args.frame is not None or args.format != "table" or args.columns is not None:
        return print_result(args, getattr(snapshot, args.frame or "ft"))
    print_result(args, snapshot.state)
    frames = {"Tokens": snapshot.ft, "NFTs": snapshot.nft, "Staking": snapshot.staking}
    for title, frame in frames.items():
        if len(frame):
            output.say(f"\n{title}", style="heading")
            columns = [c for c in _SNAPSHOT_COLUMNS if c in frame and frame[c].notna().any()]
            output.print_table(frame, columns, exact=args.exact, raw=args.raw_texts)
    return exit_codes.SUCCESS


def _print_holders(args: argparse.Namespace, frame: pd.DataFrame) -> int:
    """Print the supply above a table of the columns that differ between holders."""
    if args.format != "table" or args.columns is not None or "share" not in frame or frame.empty:
        return print_result(args, frame)
    from ledgerkit.frames.human import readable

    first = readable(frame.head(1), short_ids=False).iloc[0]
    supply = first["total_supply"] or "unknown"
    headline = f"Largest holders of {first['contract_id']}; total supply: {supply}"
    args.columns = ["rank", "account_id", "balance", "share", "status"]
    return _print_below(headline, args, frame)


_ID = Argument(
    "account_id", "one or more account ids", "account_ids", noun="the account id", nargs="*"
)
_HISTORY = (_ID, *INTERVAL)
_FROM_FILE = Argument("--from-file FILE", "read a saved response; send nothing")
_DRY_RUN = Argument("--dry-run", "print the requests and the columns; send nothing", **FLAG)
_OPTIONS = (*FORM, *NETWORK, _DRY_RUN)
_SAVABLE = (*FORM, *NETWORK, _FROM_FILE, _DRY_RUN)
_AT = Argument("--at", "a height, a hash, final, optimistic, or an ISO time")
_CHOSEN: dict[str, Any] = {**REPEATED, "default": None}
_LISTED = "to read; can be repeated; default: those that the indexer lists"
_CONTRACT = "a token contract to ask; can be repeated; default: the indexer's list"
_ROLE = "only with this role of the account, such as signer, receiver or function_call"
_SUCCESS = "only transactions that succeeded, or with --no-success that did not"
_EVERY = "the spacing: a number of heights, or 6h, 1D or MS; default: 24 readings"
_FRAME = (
    f"print a frame, not the explanation: {', '.join(TRACE_FRAMES)}; default of CSV and JSON: "
    "receipts"
)
_SOURCE = "where the proof is read from: paths of a node, or whole blocks; default: rpc"
_SAVE = "record requests and responses in a file, without the API key"
_ASSETS = "only these: near, nep141:CONTRACT, nep245:CONTRACT:TOKEN_ID, stake:POOL, gas_key:KEY"
_VALUES = "add the values of entries in this currency, which the Transfers API sends"
_STATEMENT_FRAME = (
    f"print a frame, not the summary: {', '.join(STATEMENT_FRAMES)}; default of CSV and JSON: "
    "entries"
)
_PLAN = "print how many requests it needs; the blocks at the ends are requested all the same"
_NO_METADATA = "leave out symbol, supply and shares, which cost two view calls"
_NO_SYMBOLS = "leave out symbols and amounts, which cost a view call for each token"
_SNAPSHOT_FRAME = "print this frame, not all; default of CSV and JSON: ft"
_LEVEL = f"the level to wait for: {', '.join(validation.WAIT_LEVELS)}; default: FINAL"
_TRANSACTION = (
    Argument("tx_hash", "the transaction's hash", nargs="?"),
    Argument("signer_id", "the account id of its signer; default: looked up by the hash"),
    Argument("--wait-until LEVEL", _LEVEL, choices=validation.WAIT_LEVELS),
)

READING = {
    "account": Command(
        "balances, storage and holdings of accounts",
        "verbs.accounts:accounts",
        _ID,
        Argument("--code", "ask a node too which of them are contracts, and of which code"),
        _AT,
        *_SAVABLE,
        example="alice.near bob.near --network mainnet",
    ),
    "ft": Command(
        "fungible tokens of accounts",
        "verbs.tokens:ft",
        _ID,
        Argument("--contract ID", _CONTRACT, "contracts", **_CHOSEN),
        _AT,
        Argument("--metadata", "add the columns symbol, decimals and amount"),
        Argument("--intents", "add the tokens that intents.near keeps for the accounts"),
        *_SAVABLE,
        schema=lambda args: f"ft{'_intents' * args.intents}{'_metadata' * args.metadata}",
        example="alice.near --metadata --csv",
    ),
    "nft": Command(
        "NFT collections of accounts",
        "verbs.tokens:nft",
        _ID,
        *_SAVABLE,
        example="alice.near --json",
    ),
    "staking": Command(
        "staking pools of accounts",
        "verbs.tokens:staking",
        _ID,
        Argument("--positions", "read the current stake from each pool"),
        Argument("--pool POOL", "another pool to read; can be repeated", "pools", **REPEATED),
        *_SAVABLE,
        schema=lambda args: "staking_positions" if args.positions or args.pools else "staking",
        example="alice.near --positions",
    ),
    "lockups": Command(
        "lockup contracts of accounts: what is locked, vested, and can be spent now",
        "verbs.lockups:lockups",
        _ID,
        *_OPTIONS,
        example="alice.near --network mainnet",
    ),
    "keys": Command(
        "access keys of accounts",
        "verbs.accounts:keys",
        _ID,
        _AT,
        *_SAVABLE,
        example="alice.near --network mainnet",
    ),
    "snapshot": Command(
        "one account: its balance, its tokens with symbols and amounts, NFTs and pools",
        "verbs.accounts:snapshot",
        Argument("account_id", "the account id"),
        Argument("--no-metadata", _NO_SYMBOLS, "metadata", action="store_false", default=True),
        Argument("--frame", _SNAPSHOT_FRAME, choices=("state", "ft", "nft", "staking")),
        *_OPTIONS,
        schema=_snapshot_schema,
        show=_print_snapshot,
        example="alice.near --network mainnet",
    ),
    "holders": Command(
        "the largest holders of a token, with their shares of its supply",
        "verbs.tokens:top_holders",
        Argument("contract_id", "the token's contract", nargs="?"),
        Argument("--no-metadata", _NO_METADATA, "metadata", action="store_false", default=True),
        *_SAVABLE,
        schema=lambda args: f"top_holders{'_metadata' * (args.metadata and not args.from_file)}",
        show=_print_holders,
        example="wrap.near --network mainnet",
    ),
    "history": Command(
        "holdings of an account at several blocks",
        "verbs.history:history",
        Argument("account_id", "the account id"),
        Argument("start", f"the first block: {BLOCK}"),
        Argument("stop", "the last block, which is read too, as START"),
        Argument("--every", _EVERY),
        Argument("--views", "some of accounts,ft,staking; default: accounts"),
        Argument("--contract ID", f"a token contract {_LISTED}", "contracts", **_CHOSEN),
        Argument("--pool ID", f"a staking pool {_LISTED}", "pools", **_CHOSEN),
        *_OPTIONS,
        example="alice.near 2026-08-01 final --every 10s",
    ),
    "activity": Command(
        "what accounts did lately: the newest transactions, each in a sentence",
        "verbs.activity:activity",
        _ID,
        Argument("--limit", "the newest transactions, at most this many; default: 20"),
        *_OPTIONS,
        show=_print_activity,
        example="alice.near --limit 5 --network mainnet",
    ),
    "transactions": Command(
        "transactions that accounts took part in",
        "verbs.account_history:account_transactions",
        *_HISTORY,
        Argument("--role", _ROLE),
        Argument("--success", _SUCCESS),
        Argument("--limit", "the newest transactions, at most this many"),
        *_SAVABLE,
        example="alice.near --no-success --limit 10",
    ),
    "transfers": Command(
        "transfers of accounts, as an indexer lists them",
        "verbs.account_history:transfers_of",
        *_HISTORY,
        Argument("--assets", "only these: near, nep141:CONTRACT or nep245:CONTRACT:TOKEN_ID"),
        Argument("--direction", "what was sent, or what was received"),
        Argument("--metadata", "read symbols and decimals of tokens"),
        Argument("--limit", "the newest transfers, at most this many"),
        *_SAVABLE,
        example="alice.near --assets near --metadata",
    ),
    "block": Command(
        "one block",
        "verbs.blocks:block",
        Argument("block", "a height, a hash, final, or an ISO time", "at"),
        *_SAVABLE,
        schema="blocks",
        example="final",
    ),
    "view": Command(
        "the result of a contract's view method",
        "verbs.contracts:view",
        Argument("contract_id", "the contract's account id", nargs="?"),
        Argument("method_name", "the view method", nargs="?"),
        Argument("args", "the method's arguments, as JSON"),
        *(_AT, *_SAVABLE),
        schema="",
        load="verbs.saved_responses:returned_value",
        check=_encode_args,
        example='gold.near ft_balance_of \'{"account_id": "alice.near"}\'',
    ),
    "trace": Command(
        "what a transaction did: its explanation, or a frame of its receipts",
        "verbs.transactions:trace",
        *_TRANSACTION,
        Argument("--frame NAME", _FRAME, choices=TRACE_FRAMES),
        *_SAVABLE,
        schema=lambda args: args.frame or "receipts",
        show=_print_trace,
        load="tracing.trace:Trace.load",
        example="8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE",
    ),
    "verify": Command(
        "prove the outcomes of a transaction",
        "verbs.transactions:trace",
        *_TRANSACTION,
        Argument("--trusted HASH", "a block that you trust, by its hash; see the guide"),
        Argument("--source", _SOURCE, choices=validation.BLOCK_SOURCES, default="rpc"),
        *_OPTIONS,
        schema="proof",
        show=_print_proof,
        example="8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE",
    ),
    "receipts": Command(
        "the receipts of a transaction",
        "verbs.transactions:trace",
        *(*_TRANSACTION, *_SAVABLE),
        schema="receipts",
        show=lambda args, trace: _print_below(trace.headline(), args, trace.receipts),
        example="8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE --csv",
    ),
    "doctor": Command(
        "check the hosts of the network",
        "verbs.doctor:doctor",
        *(*NETWORK, *FORM, Argument("--save FILE.lk", _SAVE)),
        show=_print_doctor,
        example="--network mainnet",
    ),
    "inspect": Command(
        "list the requests of a recording",
        "verbs.recordings:read_recording",
        Argument("recording FILE.lk", "the recording", "path"),
        *FORM,
        schema="recording",
        show=_print_recording,
        example="case.lk",
    ),
    "mcp": Command(
        "serve read-only tools for agents (Model Context Protocol) on stdin and stdout",
        "mcp_server:serve",
        *NETWORK,
        schema="",
        show=lambda *_: exit_codes.SUCCESS,
        example="--network mainnet",
    ),
    "statement": _Statement(
        "everything that changed an account's balances, and whether it adds up",
        "reconciling.verbs:statement",
        Argument("account_id", "the account id"),
        *INTERVAL,
        Argument("--assets", _ASSETS),
        Argument("--values", _VALUES),
        Argument("--frame NAME", _STATEMENT_FRAME, choices=STATEMENT_FRAMES),
        *form_arguments(*TAX_FORMATS),
        Argument("--out FILE", "write the entries to a CSV file"),
        *NETWORK,
        Argument("--dry-run", _PLAN),
        schema=_statement_schema,
        show=_print_statement,
        check=_check_statement,
        example="bob.near --values usd --frame entries",
    ),
}
