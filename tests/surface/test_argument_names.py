"""Each malformed argument of a verb is refused by its name, before anything is sent."""

import inspect
from typing import Any

import pytest

import ledgerkit as lk
from ledgerkit import errors
from tests.loopback import as_json, serve

TX_HASH = "AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY"
KEY = "ed25519:FekbqN74kXhVPRd8ysAqJwLydFvTPYh7ZXHmhqCETcR3"
GOOD: dict[str, Any] = {
    "account_id": "alice.near",
    "account_ids": ["alice.near"],
    "actions": [lk.protocol.Transfer(1)],
    "amount": "1 NEAR",
    "balance": "1 NEAR",
    "code": b"\0asm",
    "contract_id": "gold.near",
    "contract_ids": "gold.near",
    "method_name": "ft_metadata",
    "new_account_id": "x.alice.near",
    "public_key": KEY,
    "receipt_id": TX_HASH,
    "receiver_id": "bob.near",
    "requests": [("gold.near", "ft_metadata")],
    "source": b"{}",
    "start": 10,
    "stop": 12,
    "transaction": TX_HASH,
    "tx_hash": TX_HASH,
    "tx_hashes": [TX_HASH],
    "view": "ft",
}
# What they take is checked elsewhere: connections, frames, files, and signed delegate actions.
OTHERS = set(
    "amount_format cache_info clear_cache connect disconnect doctor explore from_units human "
    "read_parquet record relay schema show signer to_arrow to_excel to_polars to_units "
    "use_signer write_parquet".split()
)
FREE = {"ledger", "column"}  # a ledger of another kind; a column of a list has no use
VERBS = {
    name: getattr(lk, name)
    for name in lk.__all__
    if inspect.isfunction(getattr(lk, name)) and name not in OTHERS
}


class Malformed:
    """A value that no argument takes."""


def arguments(name: str, parameter: str, malformed: object) -> dict[str, Any]:
    """Return valid values for what the verb requires, and a malformed one."""
    parameters = inspect.signature(VERBS[name]).parameters
    required = [p.name for p in parameters.values() if p.default is p.empty]
    values = {n: GOOD[n] for n in required if n in GOOD}
    if "allow_mainnet" in parameters:
        values |= {"signer_id": "alice.near", "key": lk.protocol.SecretKey.generate()}
    if name == "simulate" and parameter != "transaction":
        values |= {"receiver_id": "bob.near", "actions": GOOD["actions"], "signer_id": "a.near"}
    if name == "exposure":
        values["liquid_tokens"] = ["liquid.near"]
    if name == "contract_code" and parameter == "at":
        values["contract_id"] = "gold.near"
    if name == "diff":
        values |= {"before": "missing", "after": "missing"}
    if "out" in parameters:
        values["out"] = "run"
    if "signer_id" in required:
        values["signer_id"] = "alice.near"
    return values | {parameter: malformed}


def check_refusal(name: str, parameter: inspect.Parameter, ledger: lk.Ledger) -> None:
    """Check that a verb names the malformed argument; a text such as "no" is no flag."""
    is_flag = parameter.annotation in {"bool", "bool | None"}
    values = arguments(name, parameter.name, "no" if is_flag else Malformed())
    if "ledger" in inspect.signature(VERBS[name]).parameters:
        values["ledger"] = ledger
    with pytest.raises(ValueError, match=r"is not valid|is required|needs|leave") as caught:
        VERBS[name](**values)
    assert isinstance(caught.value, errors.InvalidRequestError)
    assert caught.value.field == parameter.name, f"{name}({parameter.name}=…): {caught.value}"
    if is_flag:
        rule = f"{parameter.name} 'no' is not valid: expected True or False."
        assert str(caught.value) == rule


def test_malformed_arguments_are_refused_by_their_names(tmp_path, monkeypatch) -> None:
    """`field` is the name of the argument, for each argument of each verb; nothing is sent."""
    monkeypatch.chdir(tmp_path)
    cases = [
        (name, parameter)
        for name, verb in VERBS.items()
        for parameter in inspect.signature(verb).parameters.values()
        if parameter.name not in FREE
    ]
    with serve(lambda *_: as_json({})) as server:
        services = ("archival_rpc", "transactions", "transfers", "blocks", "kv", "rpc", "api")
        urls: dict[str, Any] = {f"{service}_url": server.url for service in services}
        with lk.connect("lab", **urls, make_default=False) as ledger:
            for name, parameter in cases:
                check_refusal(name, parameter, ledger)
    assert len(cases) > 250
    assert server.requests == []
    assert list(tmp_path.iterdir()) == []
