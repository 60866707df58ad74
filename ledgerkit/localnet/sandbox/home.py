"""
The home folder of a sandbox: its configuration, its genesis and its keys, in the node's format.

Source: nearcore, nearcore/src/config.rs and core/crypto/src/key_file.rs.
"""

import json
import os
import secrets
import string
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ledgerkit import json_decoding
from ledgerkit.errors import FileError, InvalidRequestError
from ledgerkit.localnet.rpc.node import RPC_ADDRESS
from ledgerkit.localnet.sandbox import genesis
from ledgerkit.localnet.sandbox.world import SandboxWorld
from ledgerkit.localnet.settings import SECOND_NS
from ledgerkit.protocol import AccountId, SecretKey

CONFIG, NODE_KEY, VALIDATOR_KEY = "config.json", "node_key.json", "validator_key.json"
_ADDRESS = "data/rpc_address"  # written while a sandbox runs
_OUTPUT, _RECORDS = "output", "records.json"
# The shortest and the longest time between blocks, in milliseconds.
_FAST_BLOCK_MS, _BLOCK_MS = (120, 500), (600, 2000)


def default_home() -> Path:
    """Return the folder of the variable NEAR_HOME, or `.near` in the user's home."""
    return Path(os.environ.get("NEAR_HOME") or Path.home() / ".near")


# Writing ---------------------------------------------------------------------------------


def init(
    home: Path,
    *,
    chain_id: str | None = None,
    account_id: str | None = None,
    test_seed: str | None = None,
    fast: bool = False,
) -> None:
    """Write the files of a new chain; in an initialised folder only the missing keys."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        _write_key(home / NODE_KEY, "node", None)
        validator_id = AccountId(account_id or "test.near")
        key = _write_key(home / VALIDATOR_KEY, validator_id, test_seed)
        if (home / CONFIG).exists():
            return
        alphabet = string.ascii_letters + string.digits
        name = chain_id or f"test-chain-{''.join(secrets.choice(alphabet) for _ in range(5))}"
        length = genesis.FAST_EPOCH_LENGTH if fast else genesis.EPOCH_LENGTH
        _write(home / genesis.FILE, genesis.new_genesis(name, validator_id, key.public_key, length))
        _write(home / CONFIG, _new_config(*(_FAST_BLOCK_MS if fast else _BLOCK_MS)))
    except OSError as error:
        raise FileError.failed(f"write {home}", error) from error


def _write_key(path: Path, account_id: str, seed: str | None) -> SecretKey:
    """Write a new key's file, readable by its owner only; return the key, new or existing."""
    if path.exists():
        data = _read(path)
        if data.get("account_id") != account_id:
            expected = f"the account of {path.name}, {data.get('account_id')}"
            raise InvalidRequestError.refuse("--account-id", account_id, expected)
        return SecretKey.from_credentials(json.dumps(data))
    key = SecretKey.generate() if seed is None else genesis.seeded_key(seed)
    secret = {
        "account_id": account_id,
        "public_key": str(key.public_key),
        "secret_key": key.reveal(),
    }
    path.touch(mode=0o600)
    _write(path, secret)
    return key


def _write(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _new_config(min_block_ms: int, max_block_ms: int) -> dict[str, Any]:
    """Build a node's configuration: the members that a sandbox reads and clients edit."""
    return {
        "genesis_file": genesis.FILE,
        "genesis_records_file": None,
        "validator_key_file": VALIDATOR_KEY,
        "node_key_file": NODE_KEY,
        "rpc": {
            "addr": RPC_ADDRESS,
            "prometheus_addr": None,
            "cors_allowed_origins": [],
            "polling_config": {
                "polling_interval": {"secs": 0, "nanos": 200_000_000},
                "polling_timeout": {"secs": 10, "nanos": 0},
            },
            "limits_config": {"json_payload_max_size": 10 * 2**20},
        },
        "telemetry": {"endpoints": []},
        "network": {"addr": "127.0.0.1:24567", "boot_nodes": "", "skip_sync_wait": True},
        "consensus": {
            "min_num_peers": 0,
            "min_block_production_delay": _duration(min_block_ms),
            "max_block_production_delay": _duration(max_block_ms),
            "produce_empty_blocks": True,
        },
        "tracked_shards_config": "AllShards",
        "archive": False,
        "gc": {"gc_num_epochs_to_keep": 5},
        "max_gas_burnt_view": None,
        "store": {"max_open_files": 10_000},
    }


def _duration(milliseconds: int) -> dict[str, int]:
    seconds, remaining_ms = divmod(milliseconds, 1000)
    return {"secs": seconds, "nanos": remaining_ms * 10**6}


@contextmanager
def running(home: Path, url: str) -> Iterator[None]:
    """Write a running sandbox's address to its folder, if the folder is writable."""
    path = home / _ADDRESS
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        path.write_text(url, encoding="utf-8")
    yield
    with suppress(OSError):
        path.unlink()


def address(home: Path) -> str:
    try:
        return (home / _ADDRESS).read_text(encoding="utf-8")
    except OSError:
        expected = "the folder of a sandbox that runs: it holds the state in memory"
        raise InvalidRequestError.refuse("--home", str(home), expected) from None


def write_state(home: Path, state: dict[str, Any], *, stream: bool) -> None:
    """Write a genesis with a state: as output.json, or with the other files to a folder output."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    config = _read(home / CONFIG)
    data = _read(home / str(config.get("genesis_file", genesis.FILE)))
    data |= {**state, "genesis_time": now}
    try:
        if not stream:
            _write(home / f"{_OUTPUT}.json", data)
            return
        folder = home / _OUTPUT
        folder.mkdir(exist_ok=True)
        _write(folder / _RECORDS, data.pop("records"))
        _write(folder / genesis.FILE, {**data, "records": []})
        files = {"genesis_file": genesis.FILE, "genesis_records_file": _RECORDS}
        _write(folder / CONFIG, config | files)
        for name in (NODE_KEY, VALIDATOR_KEY):
            if (home / name).exists():
                (folder / name).touch(mode=0o600)
                _write(folder / name, _read(home / name))
    except OSError as error:
        raise FileError.failed(f"write {home}", error) from error


# Reading ---------------------------------------------------------------------------------


class Node:
    """A sandbox as the files of its home describe it."""

    def __init__(self, home: Path, *, archive: bool = False) -> None:
        config = _read(home / CONFIG)
        data = _read(home / str(config.get("genesis_file", genesis.FILE)))
        records_file = config.get("genesis_records_file")
        if records_file is not None:
            data["records"] = _read_json(home / str(records_file))
        rpc = _object(config, "rpc")
        self.rpc_address = str(rpc.get("addr", RPC_ADDRESS))
        self.origins = [str(origin) for origin in rpc.get("cors_allowed_origins", ())]
        consensus = _object(config, "consensus")
        shortest = _nanoseconds(consensus, "min_block_production_delay")
        longest = _nanoseconds(consensus, "max_block_production_delay")
        skip_ns = (shortest + longest) // 2  # source: nearcore, Client::sandbox_delta_time
        settings = genesis.read_settings(
            data,
            skip_ns,
            block_time_ns=shortest,
            timeout_ns=_nanoseconds(_object(rpc, "polling_config"), "polling_timeout"),
            archival=archive or config.get("archive") is True,
            epochs_kept=int(_object(config, "gc").get("gc_num_epochs_to_keep", 5)),
        )
        first_state = genesis.FileGenesis(data)
        if (home / VALIDATOR_KEY).exists():
            key = SecretKey.from_credentials(json.dumps(_read(home / VALIDATOR_KEY)))
            first_state.secret_keys[key.public_key] = key
        self.world = SandboxWorld(settings, first_state, skip_ns)


def _read(path: Path) -> dict[str, Any]:
    value = _read_json(path)
    if isinstance(value, dict):
        return value
    raise InvalidRequestError.refuse(path.name, type(value).__name__, "a JSON object")


def _read_json(path: Path) -> Any:
    try:
        return json_decoding.decode(path.read_bytes())
    except FileNotFoundError:
        expected = "a folder that `init` has written"
        raise InvalidRequestError.refuse("--home", str(path.parent), expected) from None
    except OSError as error:
        raise FileError.failed(f"read {path}", error) from error
    except msgspec.DecodeError as error:
        raise InvalidRequestError.refuse(path.name, str(error), "JSON") from None


def _object(data: dict[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name)
    if isinstance(value, dict):
        return value
    raise InvalidRequestError.refuse(f"{CONFIG}: {name}", value, "an object")


def _nanoseconds(data: dict[str, Any], name: str) -> int:
    match data.get(name):
        case {"secs": int(seconds), "nanos": int(nanoseconds)} if seconds + nanoseconds > 0:
            return seconds * SECOND_NS + nanoseconds
        case value:
            expected = 'a duration such as {"secs": 0, "nanos": 120000000}'
            raise InvalidRequestError.refuse(f"{CONFIG}: {name}", value, expected)
