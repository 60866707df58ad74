"""The embedded verifier contract, compared with what the real one logged."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from ledgerkit.localnet.contracts.intents import Intents
from tests.unit.localnet.contracts import ContractHarness

RECORDED = Path(__file__).parents[4] / "shared/wire/samples/txapi/intents_execute.json"
USER = "d573bb736d15cbd16382df2fb4505c12a44b52b0263f3a4453ef4f40d1d92fa1"
SOLVER, SOLVER_KEY = "solver-priv-liq.near", "ed25519:2sN5rG9HVcpuX6xpDJCLRXMq293b1N9rpVGdodNXXYas"
COLLECTOR = "7066024d3f20f94de601c003163367873cca78507eeca4df66d9be645f197f05"
SOL, WRAP = "nep141:sol.omft.near", "nep141:wrap.near"
USDT = "nep141:eth-0xdac17f958d2ee523a2206206994597c13d831ec7.omft.near"
DEADLINE = 1_771_106_620_626_000_000  # of the first message: 2026-02-14T22:03:40.626Z


@pytest.fixture
def contract() -> ContractHarness:
    """A contract in which the recorded user has 0.0015 SOL, and the solver what it gave."""
    balances = {
        USER: {SOL: 1_500_000},
        SOLVER: {USDT: 131702, WRAP: 120314225526075022872827},
    }
    records = Intents.genesis(
        "wrap.near", balances, {SOLVER: [SOLVER_KEY]}, fee=1, fee_collector=COLLECTOR
    )
    contract = ContractHarness(Intents, "intents.near", records)
    contract.time_ns = DEADLINE
    return contract


@pytest.mark.skipif(not RECORDED.exists(), reason="the recordings are elsewhere")
class TestRecorded:
    """The messages that three keys signed on mainnet."""

    def signed(self) -> list[Any]:
        document = json.loads(RECORDED.read_text())["transactions"][0]
        args = document["transaction"]["actions"][0]["FunctionCall"]["args"]
        signed: list[Any] = json.loads(base64.b64decode(args))["signed"]
        return signed

    def logs(self) -> list[Any]:
        [first, *_] = json.loads(RECORDED.read_text())["transactions"][0]["receipts"]
        lines = first["execution_outcome"]["outcome"]["logs"]
        return [json.loads(line.removeprefix("EVENT_JSON:")) for line in lines]

    def test_it_logs_what_the_real_contract_logged(self, contract: ContractHarness) -> None:
        """The same signed messages have the same hashes, fees, transfers and burnt tokens."""
        result = contract.call("execute_intents", "intents.near", signed=self.signed())
        logs = [json.loads(line.removeprefix("EVENT_JSON:")) for line in result.logs]
        recorded = self.logs()
        # The real contract keeps transfers in hash maps, whose order is not defined.
        for event in (logs[6], recorded[6]):
            event["data"] = sorted(
                (row["old_owner_id"], row["new_owner_id"], *pair)
                for row in event["data"]
                for pair in zip(row["token_ids"], row["amounts"], strict=True)
            )
        assert logs == recorded
        assert result.logs[0].endswith('"fees_collected":{"' + USDT + '":"1"}}]}')
        [(receiver_id, method, args, _, deposit), callback] = result.calls
        assert (receiver_id, method, deposit) == ("wrap.near", "near_withdraw", 1)
        assert json.loads(args) == {"amount": "120314105211849496797804"}
        assert callback[1] == "do_native_withdraw"
        balances = {SOL: "1496998", USDT: "131701", WRAP: "120314225526075023"}
        for account_id, token_id in ((SOLVER, SOL), (SOLVER, USDT), (COLLECTOR, WRAP)):
            balance = contract.view("mt_balance_of", account_id=account_id, token_id=token_id)
            assert balance == balances[token_id]
        assert contract.view("mt_tokens_for_owner", account_id=USER) == []

    def test_messages_that_it_refuses(self, contract: ContractHarness) -> None:
        """One that is late, changed, used before, or that nobody matches."""
        contract.time_ns = DEADLINE + 1
        refusal = contract.panic_message("execute_intents", signed=self.signed())
        assert refusal == "deadline has expired"
        contract.time_ns = DEADLINE
        changed = self.signed()
        changed[2]["payload"]["message"] = changed[2]["payload"]["message"].replace("3000", "3001")
        refusal = contract.panic_message("execute_intents", signed=changed)
        assert refusal == "invalid signature"
        again = [self.signed()[0], self.signed()[0]]
        assert contract.panic_message("execute_intents", signed=again) == "nonce was already used"
        refusal = contract.panic_message("execute_intents", signed=self.signed()[:1])
        error, sums = (
            refusal.removeprefix("invariant violated: "),
            {USDT: "-131701", SOL: "1496998"},
        )
        assert json.loads(error) == {"error": "unmatched_deltas", "unmatched_deltas": sums}


def test_a_deposit_is_minted_for_the_account_of_the_message(contract: ContractHarness) -> None:
    """Without a message, it is the sender's."""
    for msg in ("", "b.near", '{"receiver_id":"b.near"}'):
        owner_id = "b.near" if msg else "a.near"
        result = contract.call("ft_on_transfer", "t.near", sender_id="a.near", amount="5", msg=msg)
        assert result.value == "0"
        assert json.loads(result.logs[0].removeprefix("EVENT_JSON:")) == {
            "standard": "nep245",
            "version": "1.0.0",
            "event": "mt_mint",
            "data": [
                {
                    "owner_id": owner_id,
                    "token_ids": ["nep141:t.near"],
                    "amounts": ["5"],
                    "memo": "deposit",
                }
            ],
        }


def test_a_withdrawal_that_failed_is_minted_again(contract: ContractHarness) -> None:
    """`ft_transfer` failed: the owner has its tokens again, with the memo ``refund``."""
    resolve = {"token": "sol.omft.near", "sender_id": USER, "amount": "5"}
    result = contract.call("ft_resolve_withdraw", "intents.near", results=(b"",), **resolve)
    assert (result.value, result.logs) == ("5", [])
    result = contract.call("ft_resolve_withdraw", "intents.near", results=(None,), **resolve)
    assert result.value == "0"
    assert '"memo":"refund"' in result.logs[0]
    page = contract.view("mt_batch_balance_of", account_id=USER, token_ids=[SOL, WRAP])
    assert page == ["1500005", "0"]
