"""The embedded ledger: a chain on this machine that answers as the public services do."""
