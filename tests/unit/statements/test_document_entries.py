"""The entries of a statement that come from the documents of transactions."""

from __future__ import annotations

import ledgerkit as lk
from ledgerkit.reconciling.document_entries import ordered_entries

TRANSFER = "8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE"


def test_a_transaction_that_cannot_be_described_keeps_its_entries():
    """A malformed action of the transaction leaves the amounts of its receipts, and no headline."""
    with lk.connect("local", make_default=False) as ledger:
        document = ledger.post(
            "/v0/transactions", {"tx_hashes": [TRANSFER]}, surface="transactions"
        )["transactions"][0]
    transfers = []
    for deposit in ("5" + "0" * 24, "five"):
        document["transaction"]["actions"][0]["Transfer"]["deposit"] = deposit
        placed, is_complete = ordered_entries(lk.Trace.from_json(document), "bob.near")
        assert is_complete
        transfers += [each.entry for each in placed]
    described, malformed = transfers
    assert (described.cause, described.change) == ("transfer", 5 * 10**24)
    assert described.headline == "alice.near sent 5 NEAR to bob.near."
    assert malformed == described._replace(headline=None)
