"""
A REST API of invented accounts, as fast as Python can send prepared responses.

The response for an account depends on its id alone, and is the same in each run.
"""

import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

import _host
import msgspec

VARIANTS = 64
MOST_TOKENS = 34  # 17 on average, as in accounts in use
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "


def path(number: int, view: str = "full") -> str:
    """Return the path of an invented account."""
    return f"/v1/account/account-{number}.near/{view}"


def account_ids(count: int) -> Iterator[str]:
    """Return the ids of invented accounts."""
    return (f"account-{number}.near" for number in range(count))


def count_tokens(count: int) -> int:
    """Count the tokens that the first `count` accounts hold."""
    variants = (zlib.crc32(name.encode()) % VARIANTS for name in account_ids(count))
    return sum(variant * MOST_TOKENS // (VARIANTS - 1) for variant in variants)


def tails() -> list[bytes]:
    """Build the part of a response after the account id, for each variant."""
    parts = []
    for variant in range(VARIANTS):
        tokens = [
            {
                "contract_id": f"token{(variant * 7 + n) % 97}.near",
                "balance": str(10**24 * (variant + 1) + n),
                "last_update_block_height": 170_000_000 + variant * n,
            }
            for n in range(variant * MOST_TOKENS // (VARIANTS - 1))
        ]
        view = {
            "tokens": tokens,
            "nfts": [{"contract_id": f"art{variant % 9}.near"}] * (variant % 2),
            "pools": [{"pool_id": f"node{variant % 5}.pool.near"}] * (variant % 3 == 0),
            "state": {"balance": str(10**24 + variant), "locked": "0", "storage_bytes": 182},
        }
        parts.append(b'",' + msgspec.json.encode(view)[1:])
    return parts


def host() -> _host.Respond:
    """Prepare the responses."""
    variants = tails()

    def respond(target: str, _body: bytes) -> bytes:
        account_id = target.split("/")[3].encode()
        tail = variants[zlib.crc32(account_id) % VARIANTS]
        size = b"%d" % (len(b'{"account_id":"') + len(account_id) + len(tail))
        return b"".join((_HEAD, size, b'\r\n\r\n{"account_id":"', account_id, tail))

    return respond


def running(latency_s: float = 0.0) -> AbstractContextManager[str]:
    """Run the service in another process."""
    return _host.running(host, latency_s)
