"""The CSV formats that tax programs import: their columns, and the labels of rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TaxFormat:
    """
    The format of a tax program.

    Parameters
    ----------
    columns
        The columns in their order, each with the cell of `csv_formats` that it contains.
    labels
        The labels of rows by side (``sent``, ``received`` or ``trade``) and kind: fee, cost,
        staking, bonus, or "" for all other kinds.
    fee_is_included
        Whether the amounts contain the fee.
    currency_of
        The account whose currency the values are in; None if each row names its currency.
    """

    columns: dict[str, str]
    labels: dict[tuple[str, str], str]
    fee_is_included: bool = False
    currency_of: str | None = None

    def label_of(self, side: str, kind: str) -> str | None:
        return self.labels.get((side, kind), self.labels.get((side, "")))


# Source: the universal template of https://support.koinly.io/en/articles/9489976 and the tags of
# https://support.koinly.io/en/articles/9490023-what-are-tags
# The template's dates are "YYYY-MM-DD 00:00 UTC". Seconds are accepted: exporters that users import
# from write them, such as hodgerpodger/staketaxcsv (src/staketaxcsv/common/Exporter.py) and
# klever-io/kleverchain-koinly-exporter (koinly.go).
_KOINLY = TaxFormat(
    columns={
        "Date": "date with zone",
        "Sent Amount": "sent",
        "Sent Currency": "sent currency",
        "Received Amount": "received",
        "Received Currency": "received currency",
        "Fee Amount": "fee",
        "Fee Currency": "fee currency",
        "Net Worth Amount": "value",
        "Net Worth Currency": "value currency",
        "Label": "label",
        "Description": "note",
        "TxHash": "transaction",
    },
    labels={
        ("sent", "fee"): "Cost",
        ("sent", "cost"): "Cost",
        ("received", "fee"): "Fee refund",
        ("received", "staking"): "Reward",
        ("received", "bonus"): "Reward",
    },
)

# Source: https://cointracking.info/import/import_csv/ (columns, and three optional ones after the
# date) and https://cointracking.freshdesk.com/en/support/solutions/articles/29000034379 (types);
# fees: https://cointracking.freshdesk.com/en/support/solutions/articles/29000007202-entering-fees
_COINTRACKING = TaxFormat(
    columns={
        "Type": "label",
        "Buy Amount": "received",
        "Buy Currency": "received currency",
        "Sell Amount": "sent",
        "Sell Currency": "sent currency",
        "Fee": "fee",
        "Fee Currency": "fee currency",
        "Exchange": "network",
        "Trade-Group": "account",
        "Comment": "note",
        "Date": "date",
        "Tx-ID": "transaction",
        "Buy Value in Account Currency": "received value",
        "Sell Value in Account Currency": "sent value",
    },
    labels={
        ("trade", ""): "Trade",
        ("sent", ""): "Withdrawal",
        ("sent", "fee"): "Other Fee",
        ("sent", "cost"): "Other Fee",
        ("received", ""): "Deposit",
        ("received", "fee"): "Income (non taxable)",
        ("received", "staking"): "Staking",
        ("received", "bonus"): "Reward / Bonus",
    },
    fee_is_included=True,
    currency_of="the CoinTracking account",
)

TAX_FORMATS = {"koinly": _KOINLY, "cointracking": _COINTRACKING}
