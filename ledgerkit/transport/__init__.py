"""HTTP for JSON-RPC and the REST API: sessions, retries, rate limit, caches, embedded ledger."""
