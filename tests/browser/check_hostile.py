"""Texts that would run if a page took them for markup, in every panel: they are only read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser.person import Person

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = "<script>window.hurt=1</script><img/src=x/onerror=window.hurt=2>"  # without a blank
WORLD = f"""\
import httpx
import ledgerkit as lk
from ledgerkit.localnet import Contract, call, view
HOSTILE = {HOSTILE!r}
LONGEST = "a" * 64

class Trap(Contract):
    @view
    def ft_metadata(self):
        return {{"spec": "ft-1.0.0", "name": HOSTILE, "symbol": HOSTILE, "decimals": 6}}

    @view
    def nft_tokens_for_owner(self, account_id: str, from_index: str, limit: int):
        told = {{"title": HOSTILE, "description": HOSTILE + "a" * 1_000_000, "media": HOSTILE}}
        token = {{"token_id": HOSTILE, "owner_id": account_id, "metadata": told}}
        return [token][:limit] if from_index == "0" else []

    @call
    def spring(self, bait: str):
        self.vm.log(bait)
        raise ValueError(bait)

def answer(request):
    if "public_key" in request.url.path:
        return httpx.Response(200, json={{"public_key": "k", "account_ids": [HOSTILE, LONGEST]}})
    return httpx.Response(200, json={{
        "account_id": HOSTILE,
        "tokens": [{{"contract_id": HOSTILE, "balance": "1", "last_update_block_height": 1}}],
        "nfts": [{{"contract_id": HOSTILE, "last_update_block_height": 1}}],
        "pools": [{{"pool_id": HOSTILE, "last_update_block_height": 1}}],
        "state": {{"balance": "1", "locked": "0", "storage_bytes": 1}},
    }})

local = lk.connect("local")
local.world.deploy("trap.near", Trap)
lab = lk.connect("lab", transport=httpx.MockTransport(answer))
w = lk.widgets"""
DRAWN = "[src^='data:image/png;base64,']"  # by the panel itself
PANELS = [
    'w.AccountExplorer("a.near", details=False, ledger=lab)',
    'w.KeyLookup("ed25519:" + "1" * 32, ledger=lab)',
    "w.StakingExposure([HOSTILE], ledger=local)",
    'w.ContractViewer("trap.near", "ft_metadata", ledger=local)',
    'w.NftGallery("alice.near", "trap.near", pictures=True, ledger=local)',
    "w.AccountExplorer(HOSTILE, ledger=local)",
    "w.TransactionExplorer(HOSTILE, HOSTILE, ledger=local)",
]
SPRING = """\
sent = lk.call(
    "trap.near", "spring", {"bait": HOSTILE},
    signer_id="alice.near", wait_until="FINAL", ledger=local,
)
w.TransactionExplorer(sent.tx_hash, "alice.near", ledger=local).press()"""
CELLS = [WORLD, SPRING, *(f"{source}.press()" for source in PANELS)]


@pytest.fixture(scope="module")
def page(opened: Any) -> Iterator[Any]:
    """Open a page of all panels, each with its hostile answer."""
    with opened("hostile", CELLS) as found:
        inner = 1  # where the panel of a key opens an account
        expect(found.locator(".ledgerkit-panel")).to_have_count(len(CELLS) - 1 + inner)
        yield found


def test_nothing_runs(page):
    """No script ran and no picture was tried, on any page of any answer."""
    shown = page.locator(".ledgerkit-panel").all_text_contents()
    assert sum(HOSTILE in text for text in shown) == len(CELLS) - 1

    for tab in page.get_by_role("tab").all():
        tab.click()
    page.wait_for_timeout(300)

    assert page.evaluate("window.hurt") is None
    assert page.locator(".ledgerkit-panel script").count() == 0
    assert page.locator(f".ledgerkit-panel img:not({DRAWN})").count() == 0
    page.set_viewport_size({"width": 1200, "height": 3_000})
    Person(page).picture("hostile")
