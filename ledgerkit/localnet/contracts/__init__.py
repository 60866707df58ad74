"""Contracts of the embedded ledger, one module each."""
