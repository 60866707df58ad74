"""Statements of accounts: each change of each asset, with its cause, and sums that hold."""

from __future__ import annotations

from ledgerkit.reconciling.model import CAUSES as CAUSES
