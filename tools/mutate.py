"""
Change the package in one place at a time, and see whether the tests that hold it notice.

`python tools/mutate.py` tries all mutants, `python tools/mutate.py proofs` those whose file has
this in its path. Each is tried on a copy of the project, with the tests that are named beside it.
It prints those that survive, and exits with 1 if there are any.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Mutant(NamedTuple):
    """A change: the file, its words, what stands in their place, and the tests, below tests/."""

    path: str
    old: str
    new: str
    tests: str

    def __str__(self) -> str:
        return f"{self.path}: {self.old} → {self.new}"


MUTANTS = [
    Mutant(
        "proofs/light_client.py",
        "if approving <= total * 2 // 3:",
        "if approving < total * 2 // 3:",
        "unit/proofs",
    ),
    Mutant(
        "proofs/merkle.py",
        "while len(level) > 1:",
        "while len(level) > 2:",
        "unit/proofs",
    ),
    Mutant(
        "proofs/headers.py",
        "is_challenged = version >= _NUMBERED, version < _UNCHALLENGED",
        "is_challenged = version >= _NUMBERED, version <= _UNCHALLENGED",
        "unit/proofs",
    ),
    Mutant(
        "localnet/rpc/light_client.py",
        'is_transaction = kind == "transaction"',
        'is_transaction = kind != "transaction"',
        "unit/localnet/test_light_client.py",
    ),
    Mutant(
        "localnet/commitments.py",
        "if 2 * index + 1 < _width(level - 1, size):",
        "if 2 * index + 1 <= _width(level - 1, size):",
        "unit/proofs surface/test_proving.py",
    ),
    Mutant(
        "localnet/transaction_validity.py",
        "if size > limits.MAX_TRANSACTION_BYTES:",
        "if size >= limits.MAX_TRANSACTION_BYTES:",
        "unit/localnet/test_transaction_validity.py unit/localnet/test_strict_errors.py",
    ),
    Mutant(
        "localnet/transaction_validity.py",
        "height > block_height + settings.validity:",
        "height >= block_height + settings.validity:",
        "unit/localnet/test_transaction_validity.py unit/localnet/test_strict_errors.py",
    ),
    Mutant(
        "localnet/runtime.py",
        "is_local = tx.signer_id == tx.receiver_id",
        "is_local = tx.signer_id != tx.receiver_id",
        "unit/localnet/test_vectors.py",
    ),
    Mutant(
        "localnet/fees.py",
        "if storage_usage <= STORAGE_FREE:",
        "if storage_usage < STORAGE_FREE:",
        "unit/localnet",
    ),
    Mutant(
        "transport/retry.py",
        "if self._retries <= 0 or",
        "if self._retries < 0 or",
        "surface/test_http.py",
    ),
    Mutant(
        "transport/retry.py",
        "if count < _MAX_FAILURES:",
        "if count <= _MAX_FAILURES:",
        "surface/test_http.py unit/test_http_parts.py",
    ),
    Mutant(
        "transport/memory_cache.py",
        "while self._free_bytes < 0:",
        "while self._free_bytes <= 0:",
        "surface/test_cache.py unit/test_http_parts.py",
    ),
    Mutant(
        "transport/rate_limit.py",
        "if start > until:",
        "if start >= until:",
        "unit/test_http_parts.py",
    ),
    Mutant(
        "transport/http_transport.py",
        'host == own_host or host.endswith(f".{own_host}")',
        "host == own_host or host.endswith(own_host)",
        "surface/test_block_updates.py surface/test_reading_documents.py",
    ),
    Mutant(
        "api/matching.py",
        "if _response_id(body) != expected:",
        "if _response_id(body) == expected:",
        "surface/test_matching.py surface/test_http.py",
    ),
    Mutant(
        "redaction.py",
        "if len(text) >= _MIN_HIDDEN_LENGTH:",
        "if len(text) > _MIN_HIDDEN_LENGTH:",
        "unit/test_redaction.py",
    ),
    Mutant(
        "reconciling/reconcile.py",
        "self._heights[at] != height:",
        "self._heights[at] == height:",
        "surface/test_statements_of_many.py unit/statements",
    ),
    Mutant(
        "reconciling/rewards.py",
        "is_whole = before.begins_epoch and after.begins_epoch",
        "is_whole = before.begins_epoch or after.begins_epoch",
        "unit/test_rewards.py surface/test_rewards.py surface/test_pool_rewards.py",
    ),
    Mutant(
        "reconciling/rewards.py",
        "is_unlisted = not reward.total_before and not reward.deposits",
        "is_unlisted = not reward.total_before or not reward.deposits",
        "surface/test_rewards.py surface/test_pool_rewards.py",
    ),
    Mutant(
        "reconciling/explaining.py",
        "if own and sum(entry.change for entry in own) == gap.missing:",
        "if own:",
        "surface/test_statement_sources.py surface/test_statement_worlds.py",
    ),
    Mutant(
        "reconciling/gas_keys.py",
        "if own and to_account:",
        "if own or to_account:",
        "surface/test_statement_worlds.py",
    ),
    Mutant(
        "u128/planes.py",
        "return hi, lo, (above != 0) | (hi < cross)",
        "return hi, lo, above != 0",
        "unit/u128",
    ),
    Mutant(
        "u128/parsing.py",
        "ints.size and ints.min() < 0:",
        "ints.size and ints.max() < 0:",
        "unit/u128",
    ),
    Mutant(
        "u128/division.py",
        "if _is_exact(a) and _is_exact(b):",
        "if _is_exact(a) or _is_exact(b):",
        "unit/u128",
    ),
    Mutant(
        "u128/reductions.py",
        "if is_missing or (needed > 0 and",
        "if is_missing or (needed > 1 and",
        "unit/u128",
    ),
    Mutant(
        "units.py",
        "if 0 < yocto < _TINY:",
        "if 0 < yocto <= _TINY:",
        "unit/test_units.py unit/test_human.py",
    ),
    Mutant(
        "protocol/borsh.py",
        "if tag >= count:",
        "if tag > count:",
        "unit/protocol",
    ),
    Mutant(
        "protocol/borsh.py",
        "if self.position != len(self.data):",
        "if self.position > len(self.data):",
        "unit/protocol",
    ),
    Mutant(
        "protocol/borsh.py",
        "if count * min_bytes > len(self.data) - self.position:",
        "if count > len(self.data) - self.position:",
        "unit/protocol",
    ),
    Mutant(
        "protocol/keys.py",
        "int(step) >= _HARDENED",
        "int(step) > _HARDENED",
        "unit/protocol",
    ),
    Mutant(
        "collecting/resuming.py",
        "if digest.text() != commit.digest:",
        "if digest.text() == commit.digest:",
        "surface/test_collecting.py",
    ),
    Mutant(
        "collecting/part_writer.py",
        "n_subjects >= job.part_size",
        "n_subjects > job.part_size",
        "surface/test_collecting.py unit/collecting",
    ),
    Mutant(
        "collecting/committed_files.py",
        "if sizes.get(file.name) != file.size:",
        "if file.name not in sizes:",
        "surface/test_tampered_collections.py",
    ),
    Mutant(
        "sending/nonces.py",
        "if is_recent and self._reserved else None",
        "if is_recent else None",
        "surface/test_sending.py unit/test_nonces.py",
    ),
    Mutant(
        "tracing/transfers.py",
        "if signer_id is not None and fee != 0:",
        "if signer_id is not None and fee == 0:",
        "unit/test_transfers.py",
    ),
    Mutant(
        "tracing/token_calls.py",
        "return bool(loggers) and loggers.isdisjoint(methods)",
        "return bool(loggers)",
        "unit/test_transfers.py unit/test_headline.py",
    ),
]


def mutated(mutant: Mutant) -> str:
    """Return the source of a mutant; its words must stand in the file once."""
    source = (ROOT / "ledgerkit" / mutant.path).read_text(encoding="utf-8")
    if source.count(mutant.old) != 1:
        msg = f"{mutant.path} has {source.count(mutant.old)} times: {mutant.old}"
        raise ValueError(msg)
    return source.replace(mutant.old, mutant.new)


def survives(mutant: Mutant, folder: Path) -> bool:
    """Return True if the tests pass with a mutant in a copy of the project."""
    target = folder / "ledgerkit" / mutant.path
    original = target.read_text(encoding="utf-8")
    target.write_text(mutated(mutant), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, *(f"tests/{path}" for path in mutant.tests.split())],
            cwd=folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        target.write_text(original, encoding="utf-8")
    if done.returncode not in {0, 1, 2}:
        raise RuntimeError(done.stdout + done.stderr)
    return done.returncode == 0


def main(words: Sequence[str]) -> int:
    """Try the chosen mutants, and return the exit code."""
    chosen = [m for m in MUTANTS if not words or any(word in m.path for word in words)]
    survivors = []
    with tempfile.TemporaryDirectory(dir=ROOT.parent) as name:  # tests find what lies beside
        folder = Path(name)
        for part in ("ledgerkit", "tests", "tools"):
            shutil.copytree(ROOT / part, folder / part)
        shutil.copy(ROOT / "pyproject.toml", folder)
        for mutant in chosen:
            word = "killed"
            if survives(mutant, folder):
                word = "SURVIVES"
                survivors.append(mutant)
            print(f"{word:<9}{mutant}", flush=True)
    print(f"{len(chosen)} mutants, {len(survivors)} survive")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
