"""
Contracts of other projects, compiled to WebAssembly, which tests download and nobody keeps here.

They are in the source distribution of near-kit (MIT). Where CI is set they are downloaded once to
`build/contracts`; elsewhere they are used if they are there, and the tests are skipped otherwise.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path

BUILD = Path(__file__).resolve().parents[1] / "build" / "contracts"
PACKAGE = "near-kit==1.3.0"
DIGESTS = {
    "fungible_token": "024570509fa82cf25ee2448ab63a8343b3c7ced16b68109d27448beaf4326bbb",
    "guestbook": "cc8b5667d67d7fb756a0a3d1c2ffc9f22d6e6b0849342996a3234ba5c8e8455c",
    "non_fungible_token": "97aecbe063628d270ca5578226f0c8f929dbc24fe053b9089254fd34ec3b5683",
}
ABSENT = f"the contracts of {PACKAGE} are not downloaded: python -m tests.wasm_contracts"


def read(name: str) -> bytes | None:
    """Return a contract, downloaded on CI; None if it is not there."""
    path = BUILD / f"{name}.wasm"
    if not path.is_file() and "CI" in os.environ:
        download()
    if not path.is_file():
        return None
    code = path.read_bytes()
    if sha256(code).hexdigest() != DIGESTS[name]:
        raise ValueError(f"{path} is not the {name} of {PACKAGE}")
    return code


def download() -> None:
    """Download the source distribution and unpack its contracts."""
    pip = (sys.executable, "-m", "pip", "download", "-qq", "--no-deps")
    name = PACKAGE.partition("==")[0]  # what builds it need not be built from source itself
    with tempfile.TemporaryDirectory() as folder:
        command = [*pip, "--no-binary", name, "--dest", folder, PACKAGE]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            return  # no network: the tests are skipped
        (archive,) = Path(folder).glob("*.tar.gz")
        BUILD.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as contents:
            for member in contents.getmembers():
                path = Path(member.name)
                source = contents.extractfile(member) if path.suffix == ".wasm" else None
                if source is not None and path.stem in DIGESTS:
                    (BUILD / path.name).write_bytes(source.read())


if __name__ == "__main__":
    download()
