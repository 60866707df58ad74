"""The server for agents: read-only tools of the Model Context Protocol on stdin and stdout."""

from __future__ import annotations

import asyncio
import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import client, prompt_text, remedies, user_warnings, validation
from ledgerkit._version import __version__
from ledgerkit.docstrings import docstring_texts
from ledgerkit.errors import InvalidRequestError, LedgerError, cut
from ledgerkit.extras import require
from ledgerkit.frames.human import json_text
from ledgerkit.frames.schemas import SCHEMAS, STATEMENT_FRAMES, TRACE_FRAMES
from ledgerkit.reconciling import verbs as statements
from ledgerkit.redaction import hide
from ledgerkit.tracing.proof import Proof
from ledgerkit.units import duration_text
from ledgerkit.verbs.fetching import provenance

if TYPE_CHECKING:
    import pandas as pd
    from mcp import types
    from mcp.server import Server

    from ledgerkit.ledger import Ledger
    from ledgerkit.reconciling.plan import StatementPlan

    Arguments = dict[str, Any]

_MAX_REQUESTS = 100  # that a call may send without asking
_MAX_RESULTS = 4  # that can be continued with `offset` or `frame`
_MOST = 10**9
_MAX_TITLE = 300  # characters of repeated arguments
_PAGE, _MAX_HASHES = 200, 20  # transactions in a page, and documents in a request
_LIST = {"type": "array", "items": {"type": "string"}}
_JSON_TYPES: dict[str, dict[str, Any]] = {
    # A block is an object.
    **{name: {"type": "string"} for name in ("str", "Trace | str", "object")},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "Any": {"type": "object"},  # the arguments of a view method
    **dict.fromkeys(("Ids", "Iterable[str]", "str | Iterable[str]"), _LIST),
}
_OFFSET = "The first row of a frame, or character of a text, to show: as an answer says to go on."
# The integers that say how a call is answered: their defaults and descriptions.
_LIMITS = {
    "max_requests": (_MAX_REQUESTS, "If more requests are needed, only the plan is returned."),
    "offset": (0, _OFFSET),
    "max_rows": (prompt_text.MAX_ROWS, "The maximum number of rows to show."),
}


class _Tool(NamedTuple):
    """
    A tool: when to use it, its verb and the arguments that it has, and its frames.

    `options` are passed to the verb too. `frames` can be chosen instead of the summary, and
    `schema` is that of a single frame. `cost` computes the requests of a call, or its plan.
    """

    use: str
    verb: str
    arguments: str
    options: Mapping[str, Any] = {}
    schema: str = ""
    frames: Sequence[str] = ()
    cost: Callable[[Ledger, Arguments], int | StatementPlan] | None = None

    @property
    def function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = pkgutil.resolve_name(f"ledgerkit.{self.verb}")
        return function

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        parameters = inspect.signature(self.function).parameters
        return {name: parameters[name] for name in self.arguments.split()}

    def input_schema(self) -> dict[str, Any]:
        """Build the JSON schema of the arguments, with the descriptions of the verb."""
        texts = docstring_texts(self.function)
        properties = {
            name: _property(parameter, texts.get(name, ""))
            for name, parameter in self.parameters.items()
        }
        if self.frames:
            text = "Return this frame, not the summary; a following call does not read again."
            names = list(self.frames)
            properties["frame"] = {"type": "string", "enum": names, "description": text}
        for name, (default, text) in _LIMITS.items():
            if name != "max_requests" or self.cost is not None:
                properties[name] = {"type": "integer", "default": default, "description": text}
        required = [name for name, p in self.parameters.items() if p.default is p.empty]
        return {"type": "object", "properties": properties, "required": required}

    def description(self) -> str:
        """Describe the tool by the first line of its verb, its use and its columns."""
        summary = docstring_texts(self.function)[""]
        names = ", ".join(column.name for column in SCHEMAS.get(self.schema, ()))
        return f"{summary} {self.use}" + (f" Columns: {names}." if names else "")


def _per_account(_ledger: Ledger, arguments: Arguments) -> int:
    n_contracts = len(validation.account_id_list(arguments.get("contracts", ()), "contracts"))
    n_codes = validation.flag(arguments.get("code", False), "code")
    return len(validation.account_ids(arguments["account_ids"])) * (max(n_contracts, 1) + n_codes)


def _of_activity(ledger: Ledger, arguments: Arguments) -> int:
    limit = validation.integer(arguments.get("limit", 20), "limit", least=1, most=_MOST)
    n_ids = _per_account(ledger, arguments)
    return n_ids * -(-limit // _PAGE) - (-n_ids * limit // _MAX_HASHES)


def _of_positions(ledger: Ledger, arguments: Arguments) -> int:
    # Everywhere but on testnet, an account may have two lockup contracts.
    return _per_account(ledger, arguments) * (1 if ledger.network.name == "testnet" else 3)


def _of_statement(ledger: Ledger, arguments: Arguments) -> StatementPlan:
    start, stop, assets = map(arguments.get, ("start", "stop", "assets"))
    return statements.plan(arguments["account_id"], start, stop, assets, ledger)


_TOOLS = {
    "account": _Tool(
        "Use it for the exact NEAR balance of accounts, now or at a past block.",
        "verbs.accounts:accounts",
        "account_ids at code",
        schema="accounts",
        cost=_per_account,
    ),
    "tokens": _Tool(
        "Symbols cost a request per token, and are left out beyond max_requests.",
        "verbs.tokens:ft",
        "account_ids contracts at",
        schema="ft_metadata",
        cost=_per_account,
    ),
    "activity": _Tool(
        "Use it to see what accounts did lately.",
        "verbs.activity:activity",
        "account_ids limit",
        schema="activity",
        cost=_of_activity,
    ),
    "trace": _Tool(
        "Use it to explain what a transaction did, or why it failed.",
        "verbs.transactions:trace",
        "tx_hash signer_id",
        frames=TRACE_FRAMES,
    ),
    "statement": _Tool(
        "Use it to account for each change of the balances in a period; staking rewards too.",
        "reconciling.verbs:statement",
        "account_id start stop assets",
        frames=STATEMENT_FRAMES,
        cost=_of_statement,
    ),
    "holders": _Tool(
        "At most 100, with their shares of the total supply.",
        "verbs.tokens:top_holders",
        "contract_id",
        {"metadata": True},
        schema="top_holders_metadata",
    ),
    "staking": _Tool(
        "Use it to see what is staked now, read from each pool.",
        "verbs.tokens:staking",
        "account_ids pools",
        {"positions": True},
        schema="staking_positions",
        cost=_of_positions,
    ),
    "view": _Tool(
        "It changes nothing.",
        "verbs.contracts:view",
        "contract_id method_name args at",
    ),
    "verify": _Tool(
        "Use it to prove what a trace says, instead of trusting the host.",
        "verbs.transactions:verify",
        "transaction signer_id trusted",
        schema="proof",
    ),
    "doctor": _Tool(
        "Use it if requests fail, and for the rate limits.",
        "verbs.doctor:doctor",
        "",
        schema="doctor",
    ),
}


def _property(parameter: inspect.Parameter, text: str) -> dict[str, Any]:
    annotation = str(parameter.annotation).removesuffix(" | None")  # a text in this package
    schema = {**_JSON_TYPES[annotation], "description": text.replace("None", "null")}
    if isinstance(parameter.default, (bool, int)):
        schema["default"] = parameter.default
    return schema


class Answers:
    """
    The answers of the tools: texts for a language model.

    The last results are stored, so that a call with `offset` or `frame` continues the answer to
    the same arguments, and sends nothing.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._results: dict[str, Any] = {}

    def answer(self, name: str, passed: Mapping[str, Any]) -> tuple[str, bool]:
        """Return the answer to a call, and whether it is an error."""
        with user_warnings.collect_warnings() as messages:
            try:
                text, is_error = self._answer(name, passed)
            except LedgerError as error:
                text, is_error = _error_text(error), True
        notes = dict.fromkeys(f"warning: {prompt_text.mark(_say(m))}" for m in messages)
        return "\n".join([text, *notes]), is_error

    def _answer(self, name: str, passed: Mapping[str, Any]) -> tuple[str, bool]:
        tool = _TOOLS[validation.one_of(name, "tool", tuple(_TOOLS))]
        arguments, choices = _parse(tool, passed)
        frame, offset = choices.get("frame"), choices["offset"]
        key = json_text([name, arguments])
        title = f"{name}({cut(hide(json_text(dict(passed))), _MAX_TITLE)})"
        result = self._results.pop(key, None) if offset or frame else None
        if result is None:
            plan = self._plan(tool, arguments, choices["max_requests"])
            if plan:
                return prompt_text.visible(f"{title}\n{plan}", keep="\n"), False
            result = self._read(tool, arguments, choices["max_requests"])
        self._results[key] = result
        while len(self._results) > _MAX_RESULTS:
            self._results.pop(next(iter(self._results)), None)
        if tool.frames and frame is None:
            if offset:
                raise InvalidRequestError.refuse("offset", offset, "0, unless a frame is named")
            return result.to_context(max_rows=choices["max_rows"]), False
        parts, attrs = _parts(result, frame or tool.schema)
        attrs = attrs or provenance(self._ledger, "query call_function")
        is_error = "errors" in parts and parts[tool.schema].empty  # type: ignore[union-attr]  # a frame
        if is_error:
            parts = {"errors": parts["errors"]}  # a frame without rows would say that there is none
        if isinstance(result, Proof):
            title += f": {result.summary}"
        text = prompt_text.write_context(
            prompt_text.Context(title, parts, attrs),
            offset=offset,
            max_rows=choices["max_rows"],
            more="go on with offset={stop}",
        )
        return text, is_error

    def _plan(self, tool: _Tool, arguments: Arguments, max_requests: int) -> str:
        """Return the plan of a call that needs more requests than it may send."""
        plan = 0 if tool.cost is None else tool.cost(self._ledger, arguments)
        count = plan if isinstance(plan, int) else sum(plan.requests.values())
        if count <= max_requests:
            return ""
        text = str(plan)
        if isinstance(plan, int):
            seconds = self._ledger.limit.seconds(count)
            text = f"{count:,} requests or more; {self._ledger.limit}"
            text += f"; {duration_text(seconds)} or more" if seconds else ""
        more = f"To read it, call again with max_requests={count}; or ask for less."
        return f"Not read, because max_requests is {max_requests}. {text}\n{more}"

    def _read(self, tool: _Tool, arguments: Arguments, max_requests: int) -> Any:
        """Call the verb; tokens get their symbols if there are requests left for them."""
        names = inspect.signature(tool.function).parameters
        passed = {"on_error": "collect", "progress": False, "ledger": self._ledger}
        options = {name: value for name, value in passed.items() if name in names}
        result = tool.function(**options, **tool.options, **arguments)
        if tool.schema == "ft_metadata":
            needed = 2 * _per_account(self._ledger, arguments) + result[0]["contract_id"].nunique()
            if needed <= max_requests:
                return tool.function(**options, **arguments, metadata=True)
            user_warnings.warn(f"symbols were not read: that needs max_requests={needed}")
        return result


def _parse(tool: _Tool, passed: Mapping[str, Any]) -> tuple[Arguments, dict[str, Any]]:
    """Check the names of arguments, and split them into the verb's and those of the answer."""
    schema = tool.input_schema()
    arguments = {
        validation.one_of(name, "argument", tuple(schema["properties"])): value
        for name, value in passed.items()
        if value is not None
    }
    for name in schema["required"]:
        if name not in arguments:
            text = schema["properties"][name]["description"]
            raise InvalidRequestError.required(name, text)
    choices: dict[str, Any] = {
        name: validation.integer(arguments.pop(name, default), name, most=_MOST)
        for name, (default, _) in _LIMITS.items()
    }
    if "frame" in arguments:
        choices["frame"] = validation.one_of(arguments.pop("frame"), "frame", tuple(tool.frames))
    for name, value in arguments.items():
        annotation = str(tool.parameters[name].annotation)
        if annotation == "Any" and isinstance(value, str):
            arguments[name] = validation.json_text(value)
        elif annotation == "object" and isinstance(value, str):
            arguments[name] = validation.height_or_text(value)
    return arguments, choices


def _parts(result: Any, name: str) -> tuple[dict[str, str | pd.DataFrame], Mapping[Any, Any]]:
    """Return the texts and frames of a result by name, and their provenance."""
    if isinstance(result, tuple):
        frame, failures = result
        texts = {key: failures[key].map(_say) for key in ("subject", "message")}
        errors = {"errors": failures.assign(**texts)} if len(failures) else {}
        return {name: frame, **errors}, frame.attrs
    if isinstance(result, Proof):
        result = result.rows
    if name in TRACE_FRAMES or name in STATEMENT_FRAMES:
        result = getattr(result, name, result)
    if hasattr(result, "attrs"):
        return {name: result}, result.attrs
    text = result.hex() if isinstance(result, bytes) else json_text(result)
    return {"result": text}, {}


def _error_text(error: LedgerError) -> str:
    """Write an error; its sentence may quote the chain, and its remedy is ledgerkit's."""
    message = str(error)
    sentence = message.removesuffix(error.remedy).strip() if error.remedy else message
    lines = [f"{type(error).__name__}: {prompt_text.mark(sentence)}"]
    if error.remedy:
        lines.append(f"remedy: {prompt_text.visible(error.remedy)}")
    lines.append(prompt_text.RULE)
    return _say("\n".join(lines))


def _say(text: str) -> str:
    """Return a message with remedies for who configures the server, and no secret."""
    return hide(remedies.for_command_line(text))


def build_server(ledger: Ledger) -> Server:
    """Build the server of a ledger, for any transport of the package `mcp`."""
    require("mcp", "mcp", "The server for agents")
    from mcp import types
    from mcp.server import Server

    answers = Answers(ledger)
    hints = types.ToolAnnotations(read_only_hint=True, destructive_hint=False)
    tools = [
        types.Tool(
            name=name,
            description=tool.description(),
            input_schema=tool.input_schema(),
            annotations=hints,
        )
        for name, tool in _TOOLS.items()
    ]

    async def list_tools(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        passed = params.arguments or {}
        text, is_error = await asyncio.to_thread(answers.answer, params.name, passed)
        content = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[content], is_error=is_error)

    instructions = (
        f"Reads {ledger.display_name}; nothing is signed or sent to the chain. Amounts have all "
        "digits in the smallest unit, and columns ending in (human) have them in units. <NA> is "
        f"an unknown value, not 0. {prompt_text.RULE} An answer says how many rows it has, and "
        "how to go on."
    )
    return Server(
        "ledgerkit",
        version=__version__,
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve(*, ledger: Ledger | None = None) -> None:
    """Serve the tools to a client on stdin and stdout, until it closes them."""
    ledger = client.current(ledger)
    server = build_server(ledger)
    from mcp.server.stdio import stdio_server

    async def run() -> None:
        async with stdio_server() as (reader, writer):
            try:
                await server.run(reader, writer, server.create_initialization_options())
            finally:
                ledger.close()  # ends the requests of calls that still run

    asyncio.run(run())
