"""The history of accounts, from servers that page as the services' sources say."""

from __future__ import annotations

import itertools
import json
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.api.calls import Response
from ledgerkit.transport.background_loop import drive
from ledgerkit.verbs import account_history, service_pages
from tests.loopback import Reply, as_json, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ledgerkit.api.calls import Call

SHARED = Path(__file__).parents[3] / "shared/wire/history"
recorded = pytest.mark.skipif(not SHARED.exists(), reason="the recorded answers are not here")
UNTYPED: Any = lk  # as whoever calls it without a type checker
ALICE, BOB = "alice.near", "bob.near"
MS = 1_000_000
BLOCK_NS = 600_000_007  # between two blocks
ROLES = (
    "is_signer",
    "is_delegated_signer",
    "is_real_signer",
    "is_any_signer",
    "is_predecessor",
    "is_explicit_refund_to",
    "is_receiver",
    "is_real_receiver",
    "is_function_call",
    "is_action_arg",
    "is_event_log",
    "is_success",
)


def transaction_row(height: int, index: int, **flags: bool) -> dict[str, Any]:
    """Build a row of /v0/account; the hash is that of its position."""
    return {
        "account_id": ALICE,
        "transaction_hash": f"{height}-{index}",
        "tx_block_height": height,
        "tx_block_timestamp": str(height * 10**9),
        "tx_index": index,
        **dict.fromkeys(ROLES, True),
        **flags,
    }


def account_answer(table: list[dict[str, Any]], body: dict[str, Any], page: int = 200) -> Any:
    """
    Answer /v0/account as the server does, from a table that may have duplicates.

    Source: fastnear/explorer-api, src/click.rs and src/api.rs: `limit + 50` rows are read, repeated
    ones dropped, the rest cut; a page shorter than the limit has no token.
    """
    desc, limit = body.get("desc", True), min(body.get("limit", 200), page)
    low, high = body.get("from_tx_block_height", 0), body.get("to_tx_block_height", 10**15)
    rows = [row for row in table if low <= row["tx_block_height"] <= high]
    rows = [row for row in rows if all(row[n] == body[n] for n in ROLES if n in body)]
    count = len(rows)
    rows.sort(key=lambda row: (row["tx_block_height"], row["tx_index"]), reverse=desc)
    if token := body.get("resume_token"):
        place = divmod(int(token), 2**32)
        positions = [(row["tx_block_height"], row["tx_index"]) for row in rows]
        pairs = zip(rows, positions, strict=True)
        rows = [row for row, p in pairs if (p < place if desc else p > place)]
    unique: list[dict[str, Any]] = []
    for row in rows[: limit + page // 4]:
        if not unique or row["transaction_hash"] != unique[-1]["transaction_hash"]:
            unique.append(row)
    unique = unique[:limit]
    answer: dict[str, Any] = {"account_txs": unique}
    if len(unique) == limit:
        last = unique[-1]
        answer["resume_token"] = str(last["tx_block_height"] << 32 | last["tx_index"])
    return answer if token else answer | {"txs_count": count}


def transfer_row(time_ns: int, index: int, amount: int = 1, **members: Any) -> dict[str, Any]:
    return {
        "block_height": str(time_ns // BLOCK_NS),
        "block_timestamp": str(time_ns),
        "transaction_id": "tx",
        "receipt_id": "receipt",
        "action_index": None,
        "log_index": 0,
        "transfer_index": index,
        "signer_id": ALICE,
        "predecessor_id": ALICE,
        "receipt_account_id": ALICE,
        "account_id": ALICE,
        "other_account_id": "bob.near",
        "asset_id": "native:near",
        "asset_type": "Near",
        "amount": str(amount),
        "method_name": None,
        "transfer_type": "NativeTransfer",
        "human_amount": amount / 10**24,
        "usd_amount": None,
        "start_of_block_balance": "0",
        "end_of_block_balance": str(abs(amount)),
        **members,
    }


def transfers_answer(
    table: list[dict[str, Any]],
    body: dict[str, Any],
    page: int = 100,
    resumed: Callable[[int], float] = lambda time_ns: time_ns,
) -> Any:
    """
    Answer /v0/transfers as the server does; `resumed` is the time of a token as it compares it.

    Source: fastnear/transfers-api, src/click.rs, where times are floats of seconds.
    """
    desc = body.get("desc", False)
    low, high = body.get("from_timestamp_ms", 0) * MS, body.get("to_timestamp_ms", 10**16) * MS
    rows = [row for row in table if low <= int(row["block_timestamp"]) < high]
    if direction := body.get("direction"):
        rows = [r for r in rows if r["amount"].startswith("-") == (direction == "sender")]
    rows.sort(key=lambda r: (int(r["block_timestamp"]), r["transfer_index"]), reverse=desc)
    if token := body.get("resume_token"):
        time_ns, index = divmod(int(token), 2**32)
        sign, compared = -1 if desc else 1, resumed(time_ns)

        def is_behind(row: dict[str, Any]) -> bool:
            own = int(row["block_timestamp"])
            if own == compared:
                return bool(sign * row["transfer_index"] > sign * index)
            return sign * own > sign * compared

        rows = [row for row in rows if is_behind(row)]
    rows = rows[: min(body.get("limit", 100), page)]
    token = None
    if len(rows) == page:
        last = rows[-1]
        token = str(int(last["block_timestamp"]) << 32 | last["transfer_index"])
    return {"transfers": rows, "resume_token": token}


class CountingReader:
    """Reads pages from an answer, without a connection; so many at most."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any], most: int) -> None:
        self.answer, self.most = answer, most

    async def value(self, call: Call[Any]) -> Any:
        self.most -= 1
        assert self.most, "the pages do not end"
        body = json.loads(call.body or b"{}")
        return call.read(Response(json.dumps(self.answer(body)).encode()))


def walk(pages: Any, answer: Callable[[dict[str, Any]], Any], most: int = 1000) -> list[Any]:
    async def rows() -> list[Any]:
        lists = [page async for page in pages(CountingReader(answer, most))]
        assert all(lists), "an empty list of rows"
        return [row for page in lists for row in page]

    return drive(rows())


# Transactions ---------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@example(
    places=[(29, 0), (29, 1), (29, 1), (29, 1), (30, 0), (30, 0)],
    page=4,
    newest_first=True,
    low=0,
    high=29,
)
@example(
    places=[(10, 0), (10, 1), (10, 1), (10, 1), (11, 0), (11, 0)],
    page=4,
    newest_first=True,
    low=10,
    high=10,
)
@given(
    places=st.lists(st.tuples(st.integers(10, 40), st.integers(0, 3)), max_size=120),
    page=st.integers(4, 12),
    newest_first=st.booleans(),
    low=st.integers(0, 45),
    high=st.integers(0, 45),
)
def test_any_table_gives_each_transaction_once(
    *, places: list[tuple[int, int]], page: int, newest_first: bool, low: int, high: int
) -> None:
    """Duplicates of the service's table end pages early; all rows arrive, once, in order."""
    by_block: dict[int, list[tuple[int, int]]] = {}
    for place in places:
        by_block.setdefault(place[0], []).append(place)
    # The service has no way past more rows of one block than it reads at once, which are 250.
    places = [place for block in by_block.values() for place in block[:page]]
    table = [transaction_row(*place) for place in places]
    steps = partial(
        service_pages.transactions,
        account_id=ALICE,
        start_height=low,
        stop_height=high,
        newest_first=newest_first,
    )
    rows = walk(steps, lambda body: account_answer(table, body, page))
    expected = sorted({p for p in places if low <= p[0] <= high}, reverse=newest_first)
    assert [row.position for row in rows] == expected


@settings(max_examples=100, deadline=None)
@given(
    places=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 30)), max_size=120),
    page=st.integers(4, 12),
    newest_first=st.booleans(),
    rounding=st.sampled_from([0, -100, 100]),
    ends=st.tuples(st.integers(0, 13), st.integers(0, 13)),
)
def test_any_table_gives_each_transfer_once(
    *,
    places: list[tuple[int, int]],
    page: int,
    newest_first: bool,
    rounding: int,
    ends: tuple[int, int],
) -> None:
    """Tokens that repeat or skip rows of a block lose nothing, or are an error."""
    table = [transfer_row(t * BLOCK_NS + 10**18, i, 1 + i) for t, i in sorted(set(places))]
    low, high = (t * BLOCK_NS + 10**18 for t in ends)
    steps = partial(
        service_pages.transfers,
        account_id=ALICE,
        start_ns=low,
        stop_ns=high,
        newest_first=newest_first,
    )

    def answer(body: dict[str, Any]) -> Any:
        return transfers_answer(table, body, page, lambda time_ns: time_ns + rounding)

    expected = [(int(r["block_timestamp"]), r["transfer_index"]) for r in table]
    expected = sorted((e for e in expected if low <= e[0] <= high), reverse=newest_first)
    in_block = max((sum(e[0] == t for e in expected) for t, _ in expected), default=0)
    try:
        rows = walk(steps, answer)
    except errors.DecodeError:
        assert rounding
        assert in_block >= 2 * page
    else:
        assert [(row.timestamp_ns, row.transfer_index) for row in rows] == expected


# Verbs, over HTTP -----------------------------------------------------------------------


@contextmanager
def services(
    transactions: list[dict[str, Any]] | None = None,
    transfers: list[dict[str, Any]] | None = None,
    entries: list[dict[str, Any]] | None = None,
    **options: Any,
) -> Iterator[tuple[lk.Ledger, list[Any]]]:
    """Serve tables, and connect to them; yield the ledger and the bodies it sends."""
    bodies: list[Any] = []

    def answer(_method: str, path: str, _headers: Any, body: bytes) -> Reply:
        sent = json.loads(body)
        bodies.append((path, sent))
        if path == "/tx/v0/account":
            return as_json(account_answer(of_account(transactions or [], sent), sent))
        if path == "/transfers/v0/transfers":
            return as_json(transfers_answer(of_account(transfers or [], sent), sent))
        return as_json(entries_answer(entries or [], path, sent))

    retries = lk.RetryPolicy(attempts=1, total_s=20.0)
    with serve(answer) as server:
        urls = {
            "transactions_url": f"{server.url}/tx",
            "transfers_url": f"{server.url}/transfers",
            "kv_url": f"{server.url}/kv",
        }
        options = {**urls, "retries": retries, "make_default": False, **options}
        with lk.connect("lab", **options) as ledger:
            yield ledger, bodies


def of_account(table: list[dict[str, Any]], body: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in table if row["account_id"] == body["account_id"]]


def entries_answer(table: list[dict[str, Any]], path: str, body: dict[str, Any]) -> Any:
    """
    Answer the key-value data in pages of two, from a table in its order.

    Source: fastnear/kv-fastdata-server, src/main.rs: a full page has a token.
    """
    if "key" in body and "key_prefix" in body:
        return {"error": "key and key_prefix are mutually exclusive"}
    kind, *ids = path.removeprefix("/kv/v0/").split("/")
    rows = [
        row
        for row in table
        if [row["current_account_id"], row["predecessor_id"]][: len(ids)] == ids
    ]
    rows = [row for row in rows if row["key"] == body.get("key", row["key"])]
    rows = [row for row in rows if row["key"].startswith(body.get("key_prefix", ""))]
    if kind == "latest":
        rows = list({row["key"]: row for row in rows}.values())
    first = int(body.get("page_token", "0"))
    page = rows[first : first + 2]
    return {"entries": page} | ({"page_token": str(first + 2)} if len(page) == 2 else {})


def entry(key: str, value: Any, height: int, **members: Any) -> dict[str, Any]:
    ids = {"current_account_id": "data.near", "predecessor_id": ALICE}
    times = {"block_height": height, "block_timestamp": height * 10**9}
    return {**ids, **times, "key": key, "value": value, **members}


def test_transactions_of_accounts_are_rows() -> None:
    """Each account's transactions are there once, in the order of the chain, with their flags."""
    table = [transaction_row(height, i) for height, i in itertools.product(range(100, 230), (3, 1))]
    table += table[:7] * 20  # duplicates, as of a table that is not merged yet
    table.append({**transaction_row(150, 9, is_success=False), "account_id": BOB})
    with services(table) as (ledger, bodies):
        frame = lk.account_transactions([ALICE, BOB], ledger=ledger)
    assert list(frame.columns) == lk.schema("account_transactions")["name"].tolist()
    assert [str(t) for t in frame.dtypes] == [
        {"time": "datetime64[ns, UTC]"}.get(d, d)
        for d in lk.schema("account_transactions")["dtype"]
    ]
    own = frame[frame["account_id"] == ALICE]
    expected = [f"{h}-{i}" for h, i in itertools.product(range(100, 230), (1, 3))]
    assert own["tx_hash"].tolist() == expected
    assert own["time"].iloc[0].value == 100 * 10**9
    assert frame.iloc[-1][["account_id", "tx_hash", "is_success"]].tolist() == [BOB, "150-9", False]
    assert {body["limit"] for _, body in bodies} == {200}
    assert {body["desc"] for _, body in bodies} == {False}  # the defaults of versions differ


def test_a_complete_answer_is_not_requested_again() -> None:
    """As many rows as the service counts are all of them: a page each, and no more."""
    with services([transaction_row(height, 0) for height in range(450)]) as (ledger, bodies):
        assert len(lk.account_transactions(ALICE, ledger=ledger)) == 450
        assert [b.get("resume_token") for _, b in bodies] == [None, str(199 << 32), str(399 << 32)]
        assert len(lk.account_transactions(BOB, ledger=ledger)) == 0
    assert len(bodies) == 4


def test_a_count_above_the_rows_ends() -> None:
    """The service counts duplicates; after the last block nothing is requested for ever."""
    table = [transaction_row(5, 0)] * 3
    with services(table) as (ledger, bodies):
        assert len(lk.account_transactions(ALICE, ledger=ledger)) == 1
    assert [body.get("from_tx_block_height") for _, body in bodies] == [0, 5, 6]


def test_ranges_roles_and_limits_of_transactions() -> None:
    """A range has no `stop`; roles and success are filters; a limit takes the newest rows."""
    table = [transaction_row(h, 0, is_signer=h % 2 == 0, is_success=h > 12) for h in range(10, 20)]
    requests: list[tuple[tuple[object, ...], Any]] = [
        ((12, 15), {}),
        ((12, 12), {}),
        ((), {"role": "signer", "success": True}),
        ((), {"role": ["signer", "receiver"], "success": False}),
        ((None, 18), {"limit": 2}),
    ]
    with services(table) as (ledger, bodies):
        frames = [lk.account_transactions(ALICE, *e, **o, ledger=ledger) for e, o in requests]
    heights = [frame["tx_block_height"].tolist() for frame in frames]
    assert heights == [[12, 13, 14], [], [14, 16, 18], [10, 12], [16, 17]]
    assert bodies[-1][1]["desc"] is True
    assert bodies[-1][1]["to_tx_block_height"] == 18  # some say inclusive, some exclusive


def test_transfers_of_accounts_are_exact() -> None:
    """Amounts are integers and their exact text; a cut one is missing, and marked."""
    cut = 2**127 - 1
    ft = {"asset_id": "nep141:gold.near", "asset_type": "Ft"}
    start = 10**18
    table = [
        transfer_row(start, 1, 10**23, human_amount=0.09999999999999999),
        transfer_row(start, 2, -(10**38) - 7, **ft, human_amount=-1e32),
        transfer_row(start + BLOCK_NS, 1, cut, human_amount=1.7e14),
        transfer_row(start + BLOCK_NS, 2, -cut - 1, **ft, human_amount=None),
        transfer_row(start + 2 * BLOCK_NS, 0, 5, **ft, human_amount=None),
    ]
    with services(transfers=table) as (ledger, bodies):
        frame = lk.transfers_of(ALICE, ledger=ledger)
        tokens = lk.transfers_of(
            ALICE, assets="nep141:gold.near", direction="sender", ledger=ledger
        )
        near = lk.transfers_of(ALICE, assets="near", ledger=ledger)
    assert list(frame.columns) == lk.schema("transfers_of")["name"].tolist()
    assert frame["change"].tolist() == [10**23, -(10**38) - 7, pd.NA, pd.NA, 5]
    assert frame["is_exact"].tolist() == [True, True, False, False, True]
    exact = "-100000000000000000000000000000000.000007"
    assert frame["amount"].fillna("?").tolist() == ["0.1", exact, "?", "?", "?"]
    assert frame["symbol"].fillna("?").tolist() == ["NEAR", "?", "NEAR", "?", "?"]
    assert frame["balance_after"].tolist()[1] == 10**38 + 7
    assert tokens["transfer_index"].tolist() == [2, 2]
    assert near["asset"].tolist() == ["near", "near"]
    assert bodies[1][1]["asset_id"] == "nep141:gold.near"
    assert (bodies[0][1].get("direction"), bodies[1][1]["direction"]) == (None, "sender")
    assert bodies[-1][1]["asset_id"] == "native:near"


def test_a_block_of_many_transfers_is_read_whole() -> None:
    """More transfers in a block than a page has are all there, in order, once."""
    start = 10**18
    table = [transfer_row(start, i) for i in range(130)]
    table += [transfer_row(start + BLOCK_NS, i) for i in range(3)]
    with services(transfers=table) as (ledger, _):
        frame = lk.transfers_of(ALICE, ledger=ledger)
        newest = lk.transfers_of(ALICE, limit=20, ledger=ledger)
    assert frame["transfer_index"].tolist() == [*range(130), 0, 1, 2]
    assert newest["transfer_index"].tolist() == [*range(113, 130), 0, 1, 2]


def test_a_range_of_transfers_is_that_of_its_times() -> None:
    """`start` is included and `stop` is not, to the nanosecond."""
    start = 1_800_000_000 * 10**9
    table = [transfer_row(start + n, i) for i, n in enumerate((-1, 0, 1, 2))]
    times = "2027-01-15T08:00:00", "2027-01-15T08:00:00.000000002"
    with services(transfers=table) as (ledger, bodies):
        frame = lk.transfers_of(ALICE, *times, ledger=ledger)
    assert frame["transfer_index"].tolist() == [1, 2]
    assert bodies[0][1]["from_timestamp_ms"] == start // MS - 1


@pytest.mark.parametrize("inner", [[], [60], [59, 60, 61], range(1, 149)])
def test_parts_of_the_transfers_together_are_all(inner: Sequence[int]) -> None:
    """Parts read side by side have each row once, in order, without those of listed hashes."""
    start = 10**18
    rows = [(start + i // 3 * BLOCK_NS, i, f"tx{i % 7}") for i in range(450)]
    table = [transfer_row(ns, i, transaction_id=tx_hash) for ns, i, tx_hash in rows]
    borders = [start + n * BLOCK_NS for n in (0, *inner, 149)]
    with services(transfers=table) as (ledger, _):
        unlisted = account_history.selected_transfers(
            ledger,
            ALICE,
            borders,
            lambda row: row.transaction_id not in {"tx0", "tx5"},
            progress=False,
        )
    last = borders[-1]  # which is not included
    expected = [i for ns, i, tx_hash in rows if tx_hash not in {"tx0", "tx5"} and ns < last]
    assert [row.transfer_index for row in unlisted] == expected


def test_a_transfer_to_itself_has_two_rows() -> None:
    """The two sides of a transfer have one index and are both there; repeats are not."""
    row, other = transfer_row(10**18, 4, 7), transfer_row(10**18, 4, -7)
    with services(transfers=[row, other, row]) as (ledger, _):
        assert lk.transfers_of(ALICE, ledger=ledger)["change"].tolist() == [7, -7]


def test_a_service_that_requires_a_direction_is_sent_both() -> None:
    """Where `direction` is required, both are requested and merged."""
    table = [transfer_row(10**18 + i * BLOCK_NS, 0, (-1) ** i * (i + 1)) for i in range(5)]

    def answer(_method: str, _path: str, _headers: Any, body: bytes) -> Reply:
        sent = json.loads(body)
        if "direction" not in sent:
            # Source: actix-web's answer to a body that serde refuses.
            return Reply(400, b"Json deserialize error: missing field `direction` at line 1")
        return as_json(transfers_answer(table, sent))

    with (
        serve(answer) as server,
        lk.connect("lab", transfers_url=server.url, make_default=False) as ledger,
    ):
        assert lk.transfers_of(ALICE, ledger=ledger)["change"].tolist() == [1, -2, 3, -4, 5]
        newest = lk.transfers_of(ALICE, limit=2, ledger=ledger)
    assert newest["change"].tolist() == [-4, 5]


def test_metadata_names_the_tokens() -> None:
    """With metadata, symbols and decimals are those of the tokens' contracts."""
    with lk.connect("local", make_default=False) as ledger:
        frame = lk.transfers_of(ALICE, metadata=True, ledger=ledger)
    gold = frame[frame["asset"] == "nep141:gold.near"]
    assert set(gold["symbol"]) == {"GOLD"}
    scaled = [lk.units.to_text(change, 6) for change in gold["change"]]
    assert gold["amount"].tolist() == scaled


def test_entries_are_rows() -> None:
    """All pages of the latest entries or of all are read; values are decoded JSON."""
    big = {"n": 2**70, "list": [1, None, "a"]}
    table = [
        entry("color", "blue", 1),
        entry("color", "red", 2, tx_hash="tx", receipt_id="receipt", action_index=1),
        entry("size", big, 3),
        entry("size/x", None, 4, predecessor_id=BOB),
        entry("zoom", 1, 5),
    ]
    with services(entries=table) as (ledger, bodies):
        latest = lk.key_values("data.near", ledger=ledger)
        history = lk.key_values("data.near", ALICE, key="color", history=True, ledger=ledger)
        prefixed = lk.key_values("data.near", prefix="size", ledger=ledger)
        first = lk.key_values("data.near", limit=1, ledger=ledger)
    assert list(latest.columns) == lk.schema("key_values")["name"].tolist()
    assert latest["key"].tolist() == ["color", "size", "size/x", "zoom"]
    assert latest["value"].tolist() == ["red", big, None, 1]
    assert latest["time"].iloc[0].value == 2 * 10**9
    assert history[["value", "tx_hash"]].fillna("").to_numpy().tolist() == [
        ["blue", ""],
        ["red", "tx"],
    ]
    assert prefixed["predecessor_id"].tolist() == [ALICE, BOB]
    assert first["key"].tolist() == ["color"]
    assert bodies[0][0] == "/kv/v0/latest/data.near"
    path, sent = next((path, sent) for path, sent in bodies if sent.get("key"))
    assert path == f"/kv/v0/history/data.near/{ALICE}"
    assert (sent["include_metadata"], sent["asc"], sent["limit"]) == (True, True, 200)


# Failures -------------------------------------------------------------------------------


REFUSED: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    ("account_ids", "account_transactions", ("A",), {}),
    ("start", "account_transactions", (ALICE, "soon"), {}),
    ("stop", "account_transactions", (ALICE, 5, 4), {}),
    ("role", "account_transactions", (ALICE,), {"role": "sender"}),
    ("success", "account_transactions", (ALICE,), {"success": "yes"}),
    ("limit", "account_transactions", (ALICE,), {"limit": 0}),
    ("assets", "transfers_of", (ALICE,), {"assets": "gold.near"}),
    ("assets", "transfers_of", (ALICE,), {"assets": ["near", "nep245:a.near"]}),
    ("direction", "transfers_of", (ALICE,), {"direction": "in"}),
    ("stop", "transfers_of", (ALICE, "2026-02-01", "2026-01-01"), {}),
    ("prefix", "key_values", ("data.near",), {"key": "a", "prefix": "b"}),
    ("history", "key_values", ("data.near",), {"history": 1}),
]


def test_bad_arguments_are_refused(subtests: pytest.Subtests) -> None:
    """A malformed argument is an error that names it, and nothing is sent."""
    with services() as (ledger, bodies):
        untyped: Any = ledger
        for field, verb, arguments, options in REFUSED:
            with subtests.test(field=field, verb=verb):
                with pytest.raises(errors.InvalidRequestError) as caught:
                    getattr(lk, verb)(*arguments, **options, ledger=ledger)
                assert caught.value.field == field
        for field, request in (
            ("body", lambda: untyped.post("/v0/account", [], surface="transactions")),
            ("surface", lambda: untyped.post("/v0/account", {}, surface="rpc")),
            ("path", lambda: untyped.get("v0/health", surface="kv")),
        ):
            with pytest.raises(errors.InvalidRequestError) as caught:
                request()
            assert caught.value.field == field
    assert bodies == []


def test_a_network_without_the_service_says_so() -> None:
    """Testnet has no Transfers API: the error names the service and what to pass."""
    with (
        lk.connect("testnet", make_default=False) as ledger,
        pytest.raises(errors.InvalidRequestError, match="testnet has no Transfers API") as caught,
    ):
        lk.transfers_of(ALICE, ledger=ledger)
    assert caught.value.field == "transfers_url"
    assert "transfers_url=" in caught.value.remedy


def test_failures_are_collected() -> None:
    """An account that could not be read is a row of the errors, and has no rows."""

    def answer(_method: str, _path: str, _headers: Any, body: bytes) -> Reply:
        sent = json.loads(body)
        if sent["account_id"] == BOB and "resume_token" in sent:
            return as_json("Internal server error (Clickhouse)", status=500)
        return as_json(account_answer(of_account(table, sent), sent))

    table = [transaction_row(height, 0) for height in range(201)]
    table += [{**row, "account_id": BOB} for row in table]
    retries = lk.RetryPolicy(attempts=1, total_s=5.0)
    with serve(answer) as server:
        options: Any = {"transactions_url": server.url, "retries": retries, "make_default": False}
        with lk.connect("lab", **options) as ledger:
            frame, failed = lk.account_transactions([ALICE, BOB], on_error="collect", ledger=ledger)
            with pytest.raises(errors.TransportError):
                lk.account_transactions([ALICE, BOB], ledger=ledger)
    assert (len(frame), set(frame["account_id"])) == (201, {ALICE})
    assert failed["subject"].tolist() == [BOB]


WRONG: dict[str, Any] = {
    "of another account": {"account_txs": [{**transaction_row(1, 0), "account_id": BOB}]},
    "without the filter": {"account_txs": [transaction_row(1, 0, is_signer=False)]},
    "in another order": {"account_txs": [transaction_row(2, 0), transaction_row(1, 0)]},
    "of 2024": {
        "account_txs": [{k: transaction_row(1, 0)[k] for k in list(transaction_row(1, 0))[:4]}]
    },
    "without a list": {"txs_count": 3},
    "with a text for a time": {
        "account_txs": [{**transaction_row(1, 0), "tx_block_timestamp": "now"}]
    },
}


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
def test_wrong_answers_are_refused(answer: Any) -> None:
    """An answer to another question, or of an unknown shape, is an error and never a row."""
    wrong = (errors.DecodeError, errors.UnmatchedResponseError)
    retries = lk.RetryPolicy(attempts=1, total_s=5.0)
    with serve(lambda *_: as_json(answer)) as server:
        options: Any = {"transactions_url": server.url, "retries": retries, "make_default": False}
        with lk.connect("lab", **options) as ledger, pytest.raises(wrong):
            lk.account_transactions(ALICE, role="signer", ledger=ledger)


def test_pages_that_repeat_end() -> None:
    """A token that leads to the same page again is not followed for ever."""
    rows = [transaction_row(height, 0) for height in range(3)]
    again = {"account_txs": rows, "resume_token": "1", "txs_count": 9}
    steps = partial(service_pages.transactions, account_id=ALICE)
    assert len(walk(steps, lambda _: again, most=20)) == 3
    page = {"entries": [entry("a", 1, 1)], "page_token": "1"}
    entries = partial(
        service_pages.key_values,
        contract_id="data.near",
        predecessor_id=None,
        history=False,
        key=None,
        prefix=None,
    )
    with pytest.raises(errors.DecodeError, match="same page"):
        walk(entries, lambda _: page)
    row = transfer_row(10**18, 0)
    transfers = {"transfers": [row], "resume_token": "1"}
    with pytest.raises(errors.DecodeError, match="order"):
        walk(partial(service_pages.transfers, account_id=ALICE), lambda _: transfers)


def test_repeated_rows_do_not_stand_in_for_others() -> None:
    """Two rows of a count of two are not all rows if they are the same one."""
    table = [transaction_row(height, 0) for height in (5, 6)]

    def answer(body: dict[str, Any]) -> Any:
        rows = [row for row in table if row["tx_block_height"] >= body["from_tx_block_height"]]
        return {"account_txs": rows[:1] * 2, "txs_count": len(rows)}

    steps = partial(service_pages.transactions, account_id=ALICE)
    assert [row.tx_block_height for row in walk(steps, answer, most=20)] == [5, 6]


# Saved and recorded answers ---------------------------------------------------------------


def test_saved_answers_give_the_same_frames() -> None:
    """A saved response is read as a live one, and another view is named for it."""
    with lk.connect("local", make_default=False) as ledger:
        body = {"account_id": ALICE, "desc": False}
        saved = ledger.post("/v0/account", body, surface="transactions")
        live = lk.account_transactions(ALICE, ledger=ledger)
        assert lk.read_response(json.dumps(saved).encode(), "account_transactions").equals(live)
        saved = ledger.post("/v0/transfers", body, surface="transfers")
        document = json.dumps(saved).encode()
        assert lk.read_response(document, "transfers_of").equals(
            lk.transfers_of(ALICE, ledger=ledger)
        )
    with pytest.raises(errors.DecodeError, match="transfers_of"):
        lk.read_response(document, "key_values")
    entries = json.dumps({"entries": [entry("a", [1], 2)]}).encode()
    assert lk.read_response(entries, "key_values")["value"].tolist() == [[1]]


@recorded
def test_recorded_transfers_are_read() -> None:
    """Rows of January and June 2026 have the amounts that were recorded, also without members."""
    folder = SHARED / "transfers"
    page = folder / "v2026-01_shitzu_dao_two_rows.json"
    frame = lk.read_response(page, "transfers_of")
    recorded_rows = json.loads(page.read_text())["transfers"]
    assert frame["change"].tolist() == [int(row["amount"]) for row in recorded_rows]
    assert frame["amount"].tolist() == ["0.1", "-0.1"]  # the service says 0.09999999999999999
    assert frame["time"].astype("int64").tolist() == [
        int(r["block_timestamp"]) for r in recorded_rows
    ]
    names = ("v2026-01_row_ft_partial.json", "v2026-06_row_ft_petersalomonsen.json")
    rows = [json.loads((folder / name).read_text()) for name in names]
    single = lk.read_response(json.dumps({"transfers": rows}).encode(), "transfers_of")
    assert single["change"].tolist() == [9300000000, 16311238469076383501666531]
    # The later row has a balance after it that is its amount, and 24 decimals.
    assert single["balance_after"].tolist()[1] == 16311238469076383501666531
    assert single["amount"].fillna("").tolist() == ["", "16.311238469076383501666531"]


@recorded
def test_recorded_transactions_of_2024_are_read() -> None:
    """Answers of the retired generation have no roles, which are missing; times are exact."""
    source = SHARED / "txapi_v2024" / "v2024_account_near_max_block_height.json"
    frame = lk.read_response(source, "account_transactions")
    rows = json.loads(source.read_text())["account_txs"]
    assert frame["tx_hash"].tolist() == [row["transaction_hash"] for row in rows]
    assert frame["time"].astype("int64").tolist() == [row["tx_block_timestamp"] for row in rows]
    assert frame[["tx_index", *ROLES]].isna().all(axis=None)


def test_an_error_names_the_method_of_a_raw_request() -> None:
    """What `ledger.post` sent is called POST, also where its response is an error."""
    with pytest.raises(errors.InvalidRequestError, match="POST /v0/account: "):
        lk.connect("local").post("/v0/account", {}, surface="transactions")
