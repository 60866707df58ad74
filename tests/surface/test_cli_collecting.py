"""`ledgerkit collect` and `ledgerkit diff`: what is printed where, and the exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from tests.command_line import main
from tests.loopback import Reply, as_json, serve

if TYPE_CHECKING:
    from pathlib import Path

TOP = 2**128 - 1


def answering(balances: dict[str, int]) -> Any:
    """Answer with these balances of one token, and refuse everybody else."""

    def answer(_method: str, path: str, *_: object) -> Reply:
        who = path.split("/")[3]
        if who not in balances:
            return Reply(400, b'"Invalid argument"')
        token = {"contract_id": "t.near", "balance": str(balances[who])}
        return as_json({"account_id": who, "tokens": [token]})

    return answer


def collect(out: Path, ids: str, balances: dict[str, int], *more: str) -> tuple[int, int]:
    """Run `collect` for the ids; gives the exit code, and how many requests there were."""
    file = out.parent / "ids.csv"
    file.write_text("who\n" + ids.replace(" ", "\n"))
    with serve(answering(balances)) as server:
        where = ["--api-url", server.url, "--network", "lab"]
        argv = ["collect", str(file), str(out), "--views", "ft", "--column", "who", *where, *more]
        return main(argv), len(server.requests)


def test_what_was_collected_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables are printed with their rows, a malformed id is no failure, the code is 0."""
    assert collect(tmp_path / "out", "a.near b.near NO", {"a.near": TOP, "b.near": 1}) == (0, 2)
    out, err = capsys.readouterr()
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["table", "n_files", "n_rows", "n_bytes"]
    assert [line[:3] for line in lines[1:]] == [
        ["ft", "1", "2"],
        ["subjects", "1", "2"],
        ["errors", "1", "1"],
    ]
    assert err == ""
    assert lk.open_collection(tmp_path / "out").pandas("ft")["balance"].tolist() == [TOP, 1]


@pytest.mark.filterwarnings("always")  # the command line prints them
def test_who_was_asked_in_vain_decides_the_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure is said and has its own code; --retry-failed asks only those again."""
    assert collect(tmp_path / "out", "a.near b.near", {"a.near": 1}) == (2, 2)
    assert "1 account could not be read" in capsys.readouterr().err
    both = {"a.near": 1, "b.near": 2}
    assert collect(tmp_path / "out", "a.near b.near", both) == (2, 0)
    assert collect(tmp_path / "out", "a.near b.near", both, "--retry-failed") == (0, 1)
    assert lk.open_collection(tmp_path / "out").pandas("ft")["balance"].tolist() == [1, 2]


def test_a_rehearsal_asks_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--dry-run counts requests and time at the rate given."""
    more = ("--dry-run", "--rate", "0.5", "--in-flight", "2")
    assert collect(tmp_path / "out", "a.near b.near", {}, *more) == (0, 0)
    printed = capsys.readouterr().out
    assert "GET /v1/account/{account_id}/ft" in printed
    assert "at most 0.5 requests a second: 4 s or more" in printed
    assert not (tmp_path / "out").exists()


def test_differences_leave_exact_and_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A difference of 39 digits with its sign is in the CSV; who was not compared is counted."""
    collect(tmp_path / "one", "a.near b.near", {"a.near": TOP, "b.near": 1})
    collect(tmp_path / "two", "a.near c.near", {"a.near": 1, "c.near": 1})
    capsys.readouterr()
    assert main(["diff", str(tmp_path / "one"), str(tmp_path / "two"), "--format", "csv"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "account_id,contract_id,change,before,after,difference,before_status,after_status",
        f"a.near,t.near,shrank,{TOP},1,{1 - TOP},ok,ok",
    ]
    assert (
        err == "ledgerkit: 2 accounts were not compared: they were not read in both collections\n"
    )
    assert main(["diff", str(tmp_path / "one"), str(tmp_path / "two"), "--format", "json"]) == 0
    assert f'"difference":"{1 - TOP}"' in capsys.readouterr().out


def test_bad_arguments_are_one_sentence_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is no collection, and a view that is none, are named."""
    assert main(["diff", str(tmp_path), str(tmp_path)]) == 2
    assert "is not a collection" in capsys.readouterr().err
    assert collect(tmp_path / "out", "a.near", {}, "--views", "ft,tokens") == (2, 0)
    assert "one or more of accounts, ft, nft, staking, exposure" in capsys.readouterr().err
