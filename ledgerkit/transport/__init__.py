"""HTTP to the two surfaces: sessions, retries, rate limits, caches, and the embedded ledger."""
