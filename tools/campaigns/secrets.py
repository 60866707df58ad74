"""
A secret in a wrong place appears in no message, attribute, pickle, log, file or request.

A secret key of each curve, a seed phrase, an API key and a proxy's password are passed as every
parameter of every public function, in several shapes (whole, damaged, in lists, URLs and JSON),
as every argument of every command, in every environment variable and in files. Each time the
error with its attributes, pickle and traceback, the result, the warnings, the log, the output, the
files and all requests are searched for any twelve characters of the secret, or three words.
All possible cases are tried; a smaller count takes a sample of them.
"""

from __future__ import annotations

import inspect
import io
import itertools
import json
import logging
import os
import pickle
import random
import tempfile
import traceback
import warnings
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import base58
import pandas as pd

import ledgerkit as lk
from ledgerkit import cli, protocol
from ledgerkit.errors import LedgerError
from tests.loopback import Reply, as_json, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.loopback import Server
    from tools.campaigns._campaign import Tally

COUNT = 30_000  # more than there are, so all cases are tried
SMALL = 50
EXPECTED = ("refused", "returned")
PIECE = 12  # characters of a secret that must not be shown
WORDS = (
    "abandon ability able about above absent absorb abstract absurd abuse access accident account "
    "accuse achieve acid acoustic acquire across act action actor actress actual adapt add addict"
)
# What these parameters have is sent by design: a caller's own data, for a contract to read.
DATA = {"args", "params", "actions", "requests", "data", "message", "value", "pairs", "kwargs"}
# These name files, which the caller chose; errors are searched all the same.
PATHS = {"out", "path", "save", "cache", "before", "after", "folder", "target", "credentials"}
READERS = {"collect", "statements"}  # which read ids from the file at a path
# The variables by which commands reach the host of this run.
OWN_HOST = ("LEDGERKIT_RPC_URL", "LEDGERKIT_API_URL")
SECRETS_OWN = {"key", "api_key", "secret_key"}  # where a secret belongs
RESULT_CLASSES = set(
    "Archive Collection Diff Ledger LedgerError Plan Snapshot Statement Submission Trace Traces "
    "U128Array U128Dtype Verification".split()
)
GOOD: Mapping[str, Any] = {
    "progress": False,
    "account_ids": ["alice.near", "bob.near"],
    "values": ["1", "2"],
    "decimals": 24,
    "public_key": "ed25519:" + base58.b58encode(bytes(range(32))).decode(),
    "tx_hash": base58.b58encode(bytes(range(1, 33))).decode(),
    "start": 1,
    "stop": 3,
    "args": {},
    "actions": [],
    "requests": [],
    "amount": "1 NEAR",
    "code": b"\0asm",
    "pairs": [("a.near", "b.near")],
    "frame": pd.DataFrame({"a": [1]}),
}


class Case(NamedTuple):
    """One way in: what is called, its parameter, the secret and the value that has it."""

    way: str
    target: str
    parameter: str
    secret: str
    shape: str


# Secrets and their shapes -------------------------------------------------------------------


def make_secrets(rng: random.Random) -> dict[str, str]:
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
    seed = "ed25519:" + base58.b58encode(rng.randbytes(32)).decode()
    return {
        "secret key": protocol.SecretKey.from_text(seed).reveal(),
        "secp256k1 key": "secp256k1:" + base58.b58encode(rng.randbytes(32)).decode(),
        "seed phrase": " ".join(rng.sample(WORDS.split(), 12)),
        "API key": "Fn7_" + "".join(rng.choices(letters, k=28)),
        "unknown API key": "Fn8_" + "".join(rng.choices(letters, k=28)),
        "password": "".join(rng.choices(letters, k=20)),
    }


def shapes(secret: str) -> dict[str, Any]:
    """Return values that have a secret, by name."""
    at = len(secret) // 3
    return {
        "whole": secret,
        "lost": secret[:at] + secret[at + 1 :],
        "mistyped": secret[:at] + ("0" if secret[at] != " " else "  ") + secret[at + 1 :],
        "spaces": f"  {secret}\n",
        "list": ["alice.near", secret],
        "dict": {"a": {"b": [secret]}},
        "bytes": secret.encode(),
        "query": f"https://host.example/?apiKey={secret.replace(' ', '%20')}",
        "login": f"https://me:{secret.replace(' ', '%20')}@host.example/",
        "JSON": json.dumps({"private_key": secret}),
        "long": f"{'x, ' * 900}{secret}{', y' * 900}",
        "path": Path("folder", secret),
        "series": pd.Series(["alice.near", secret]),
    }


# A password alone is a text like any other: it is known by its place in a URL. A method may have
# any name, and a file, too: only what is surely a secret is refused there.
ONLY_IN = {
    "password": {"query", "login", "JSON"},
    "unknown API key": set(shapes("x")) - {"lost"},
    "API key": set(shapes("x")) - {"lost"},
}
ANY_TEXT = {"method", "method_name", "method_names"}


def pieces(secret: str) -> list[str]:
    """Return the parts that must not be found: any characters in a row, or words."""
    words = secret.split()
    if len(words) > 1:
        runs = [words[at : at + 3] for at in range(len(words) - 2)]
        return [between.join(run) for run in runs for between in (" ", "', '", "%20")]
    body = secret.rpartition(":")[2]
    return [body[at : at + PIECE] for at in range(0, len(body) - PIECE, PIECE // 2)]


# Ways in ------------------------------------------------------------------------------------


def functions() -> dict[str, Callable[..., Any]]:
    """Return all public functions, classes that callers build, and methods of a ledger, by name."""
    methods = ("rpc", "get", "pin", "locate", "sibling", "stream")
    named = {f"Ledger.{name}": getattr(lk.Ledger, name) for name in methods}
    for module, prefix in ((lk, ""), (protocol, "protocol.")):
        for name in module.__all__:
            item = getattr(module, name)
            if callable(item) and name not in RESULT_CLASSES:
                named[prefix + name] = item
    return named


def function_targets() -> Iterator[tuple[str, str, str]]:
    """Yield every parameter of every public function, but those that are secret anyway."""
    for name, function in functions().items():
        for parameter in inspect.signature(function).parameters:
            if parameter not in {"self", "ledger", "progress", "field"} | SECRETS_OWN:
                yield "function", name, parameter


def command_targets() -> Iterator[tuple[str, str, str]]:
    """Yield every argument of every command, and an option that people guess."""
    for name, command in cli.COMMANDS.items():
        if name != "serve":
            for argument in command.arguments:
                yield "command", name, argument.name.lower()
        yield "command", name, "--api-key"


def targets() -> Iterator[tuple[str, str, str]]:
    """Yield every way in: its kind, what is called, and the parameter."""
    yield from function_targets()
    yield from command_targets()
    for name in ("NETWORK", "RPC_URL", "API_URL", "ACCOUNT_ID", "API_KEY"):
        yield "environment", "LEDGERKIT_" + name, ""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        for in_flight in ("4", "16"):
            yield "proxy", name, in_flight
    for name in ("ids.txt", "ids.csv", "credentials.json"):
        yield "file", name, ""


def all_cases() -> list[Case]:
    names = make_secrets(random.Random(0))
    every = itertools.product(targets(), names, shapes("x"))
    return [
        case
        for (way, target, parameter), secret, shape in every
        if is_possible(case := Case(way, target, parameter, secret, shape))
    ]


def is_possible(case: Case) -> bool:
    """Return True unless a value cannot be passed that way, or cannot be known as a secret."""
    if case.shape not in ONLY_IN.get(case.secret, (case.shape,)):
        return False
    is_file = case.target in READERS and case.shape == "path"
    if (is_file or case.parameter.lstrip("-") in PATHS) and case.secret in ONLY_IN:
        return False
    if case.parameter in ANY_TEXT and case.secret.startswith("unknown"):
        return False
    is_text = isinstance(shapes("x y")[case.shape], str)
    return is_text or case.way not in ("environment", "command", "file")


# Calls --------------------------------------------------------------------------------------


def call_function(case: Case, value: Any, ledger: lk.Ledger) -> Any:
    """Call a public function with a secret as one parameter, and plausible others."""
    function = functions()[case.target]
    signature = inspect.signature(function)
    others = {**GOOD, "self": ledger, "ledger": ledger}
    bound = signature.bind_partial()
    for name, one in signature.parameters.items():
        is_needed = one.default is one.empty and one.kind is not one.VAR_KEYWORD
        if name == case.parameter:
            is_open = one.kind is one.VAR_KEYWORD
            bound.arguments[name] = {"signer_id": value} if is_open else value
        elif is_needed or name in {"ledger", "progress"}:
            bound.arguments[name] = others.get(name, "alice.near")
    result = function(*bound.args, **bound.kwargs)
    return list(result) if inspect.isgenerator(result) else result


def call_command(case: Case, value: str, _ledger: lk.Ledger) -> Any:
    """Run a command with a secret as one argument."""
    arguments = cli.COMMANDS[case.target].arguments
    positional = [argument.name.lower() for argument in arguments if not argument.is_option]
    texts = {"args": "{}", "out": "out", "start": "1", "stop": "2", "before": "a", "after": "b"}
    values = [value if n == case.parameter else texts.get(n, "alice.near") for n in positional]
    option = [f"{case.parameter}={value}"] if case.parameter.startswith("-") else []
    return cli.main([case.target, *option, "--", *values] if values else [case.target, *option])


def read_environment(case: Case, value: str, _ledger: lk.Ledger) -> Any:
    """Connect and read the signer with a secret in a variable."""
    if "\0" in value:
        return None
    with mock.patch.dict(os.environ, {case.target: value}):
        if case.target == "LEDGERKIT_API_KEY":
            return repr(lk.connect("mainnet"))
        if case.target == "LEDGERKIT_ACCOUNT_ID":
            return repr(lk.signer())
        return repr(lk.connect())


def use_proxy(case: Case, value: str, ledger: lk.Ledger) -> Any:
    """Send a request through a proxy whose URL has the secret as its password."""
    host = ledger.network.rpc_url.removeprefix("http://") if ledger.network.rpc_url else ""
    scheme = "https" if case.target == "HTTPS_PROXY" else "http"
    urls = {
        "login": f"http://me:{value}@{host}",
        "query": f"http://me:{value}@127.0.0.1:1",
        "JSON": f"http://me:12/{value}@{host}",
    }
    environment = {case.target: urls[case.shape], "NO_PROXY": "", "no_proxy": ""}
    retries = lk.RetryPolicy(attempts=1, total_s=5)
    options: dict[str, Any] = {"in_flight": int(case.parameter), "retries": retries}
    with (
        mock.patch.dict(os.environ, environment),
        lk.connect("lab", rpc_url=f"{scheme}://host.example", **options) as other,
    ):
        return other.rpc("status")


def read_file(case: Case, value: str, ledger: lk.Ledger) -> Any:
    """Read a file that has the secret in place of an account id, or is malformed."""
    if case.target == "credentials.json":
        Path(case.target).write_text(json.dumps({"public_key": "x", "private_key": value}))
        return lk.signer("alice.near", credentials=case.target)
    head = "account_id\n" if case.target.endswith("csv") else ""
    Path(case.target).write_text(f"{head}{json.dumps(value)}\nalice.near\n")
    collection = lk.collect(case.target, ["accounts"], out="out", ledger=ledger, progress=False)
    Path(case.target).unlink()
    return collection.errors().to_csv()


CALLS: Mapping[str, Callable[[Case, Any, lk.Ledger], Any]] = {
    "function": call_function,
    "command": call_command,
    "environment": read_environment,
    "proxy": use_proxy,
    "file": read_file,
}

# Ways out -----------------------------------------------------------------------------------


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and its causes and contexts, suppressed or not."""
    waiting, seen = [error], set()
    while waiting:
        linked = waiting.pop()
        if linked is not None and id(linked) not in seen:
            seen.add(id(linked))
            waiting += [linked.__cause__, linked.__context__]
            yield linked


def error_texts(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield all that an error shows or stores."""
    yield "traceback", "".join(traceback.format_exception(error))
    for linked in chain(error):
        yield "message", f"{linked} {linked!r}"
        yield "attributes", f"{linked.args} {vars(linked)}"
    if isinstance(error, LedgerError):
        with suppress(TypeError):
            yield "pickle", pickle.dumps(error).decode("latin-1")


def output_of(result: Any) -> Iterator[tuple[str, str]]:
    with suppress(Exception):
        yield "result", f"{result!r} {result}"
    if isinstance(result, pd.DataFrame):
        yield "result", result.to_csv() + str(result.attrs)
    elif hasattr(result, "_repr_html_"):
        yield "HTML", str(result._repr_html_())


def files_of(folder: Path, case: Case) -> Iterator[tuple[str, str]]:
    """Yield the files that were written."""
    for path in folder.rglob("*"):
        if case.parameter.lstrip("-") not in PATHS:
            yield "file name", str(path.relative_to(folder))
        if path.is_file():
            yield "file", path.read_bytes().decode("latin-1")


@contextmanager
def listening() -> Iterator[io.StringIO]:
    """Collect the log, the warnings and all output."""
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    with (
        redirect_stdout(lines),
        redirect_stderr(lines),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        try:
            yield lines
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
            lines.write("".join(str(one.message) for one in caught))


def sent_texts(server: Server) -> Iterator[tuple[str, str]]:
    """Yield the requests that a host received."""
    for request in server.requests:
        headers = {k: v for k, v in request.headers.items() if "authorization" not in k}
        yield "request", f"{request.path} {headers} {request.body.decode('utf-8', 'replace')}"


def attempt(case: Case, secret: str, server: Server, ledger: lk.Ledger) -> tuple[str, list[str]]:
    """Make one call; return how it ended and the places where the secret appeared."""
    value = secret if case.way == "proxy" else shapes(secret)[case.shape]
    texts: list[tuple[str, str]] = []
    server.requests.clear()
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),  # away from the user's files
        mock.patch.dict(os.environ, {"HOME": folder}),
        listening() as lines,
    ):
        try:
            result = CALLS[case.way](case, value, ledger)
        except SystemExit:  # of argparse, which has printed its message
            ended = "refused"
        except Exception as error:  # noqa: BLE001 - each is searched
            ended = "refused"
            texts += error_texts(error)
        else:
            ended = "returned"
            if case.parameter not in DATA | PATHS and not case.target.startswith("protocol."):
                texts += output_of(result)
        Path(".mark").touch()
        if not (case.way == "file" and case.target == "credentials.json"):
            texts += files_of(Path(folder), case)
    texts.append(("output", lines.getvalue()))
    if case.parameter.lstrip("-") not in DATA:
        texts += sent_texts(server)
    places = {place for place, text in texts for piece in pieces(secret) if piece in text}
    return ended, sorted(places)


def refuse_all(method: str, path: str, headers: Mapping[str, str], _body: bytes) -> Reply:
    """Refuse every request, and repeat it as a debug page does."""
    return as_json({"error": f"{method} {path}", "headers": dict(headers)}, 400)


def run(count: int, seed: int, tally: Tally) -> None:
    """Try the cases, or a sample of them."""
    rng = random.Random(seed)
    secrets = make_secrets(rng)
    cases = all_cases()
    total = len(cases)
    if count < total:
        cases = rng.sample(cases, count)
    options: dict[str, Any] = {
        "retries": lk.RetryPolicy(attempts=1, total_s=5),
        "timeout_s": 5,
        "api_key": secrets["API key"],
    }
    with (
        serve(refuse_all) as server,
        lk.connect("lab", rpc_url=server.url, api_url=server.url, **options) as ledger,
        mock.patch.dict(os.environ, dict.fromkeys(OWN_HOST, server.url)),
    ):
        for case in cases:
            ended, places = attempt(case, secrets[case.secret], server, ledger)
            tally.count(ended)
            tally.count(f"by {case.way}")
            for place in places:
                tally.violate(f"{case}: in its {place}")
    lk.use_signer(None)
    tally.notes.append(f"{len(cases):,} of {total:,} cases")
