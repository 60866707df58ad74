"""Archives of block documents: the files that are read, and those that are refused."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerkit.block_data import archives
from ledgerkit.block_data.archives import read_archive
from ledgerkit.errors import DecodeError, LedgerError, ResponseTooLargeError
from tests.document_host import member, pack, small_documents, tar

START = 151_768_250
DOCUMENTS = small_documents([START, START + 1, START + 4, START + 9])
LIMIT = 2**20
END = bytes(1024)


def read(body: bytes, limit: int = LIMIT) -> dict[int, bytes]:
    """Read an archive that begins at `START`."""
    return read_archive(body, START, limit)


def file(height: int, body: bytes = b"{}", **options: object) -> bytes:
    return member(f"{height:012d}.json", body, **options)  # type: ignore[arg-type]  # as member


@pytest.fixture(params=["zlib", "isal"], autouse=True)
def fastest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    module = zlib
    if request.param == "isal":
        module = pytest.importorskip("isal.isal_zlib")
    monkeypatch.setattr(archives, "_fastest_zlib", lambda: module)


# What is read -----------------------------------------------------------------------------


def test_the_documents_of_an_archive() -> None:
    """Each file is the document of a height, byte for byte; skipped heights have none."""
    assert read(pack(tar(DOCUMENTS))) == DOCUMENTS


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_archives_of_another_writer(form: int) -> None:
    """Both forms of headers that tar itself writes are read, with the padding of a record."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=form) as writer:
        for height, body in DOCUMENTS.items():
            info = tarfile.TarInfo(f"{height:012d}.json")
            info.size, info.mtime = len(body), 1_700_000_000
            writer.addfile(info, io.BytesIO(body))
    assert read(out.getvalue()) == DOCUMENTS


@pytest.mark.parametrize("n_sectors", [0, 19])
def test_a_record_is_filled_after_the_end(n_sectors: int) -> None:
    """Tar fills its last record of 20 sectors: from two to 21 empty ones end an archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as writer:
        info = tarfile.TarInfo(f"{START:012d}.json")
        info.size = 512 * n_sectors
        writer.addfile(info, io.BytesIO(b"x" * info.size))
    assert read(out.getvalue()) == {START: b"x" * info.size}


def test_an_old_header_has_no_type() -> None:
    """A type of NUL is a plain file, as the headers of 1979 have it (POSIX.1-1988)."""
    assert read(pack(file(START, kind=b"\0") + END)) == {START: b"{}"}


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.integers(START, START + 9), st.binary(max_size=3000), max_size=10))
def test_any_documents_are_read_back(documents: dict[int, bytes]) -> None:
    """Documents of any bytes come back in the order of the archive."""
    received = read(pack(tar(documents)))
    assert list(received.items()) == list(documents.items())


# What is refused --------------------------------------------------------------------------

NAMES = [
    f"../{START:012d}.json",
    f"/etc/{START:012d}.json",
    f"./{START:012d}.json",
    f"{START}.json",
    f"{START:012d}.json.gz",
    f"{START:012d}",
    f"{START:012d}.json\0x",
    f"{START:012d}.JSON",
    f"{START + 10:012d}.json",
    f"{START - 1:012d}.json",
    "٣" * 12 + ".json",
    "",
]


def test_other_names_are_refused(subtests: pytest.Subtests) -> None:
    """A file is named for one of the ten heights, without a path."""
    refusal = f"the archive of blocks {START} to {START + 9} is not"
    for name in NAMES:
        with subtests.test(name=name), pytest.raises(DecodeError, match=refusal):
            read(pack(member(name, b"{}") + END))


def test_only_plain_files_are_read() -> None:
    """Links, folders, devices, sparse files and headers of pax or GNU are refused."""
    for kind in set(range(1, 256)) - {ord("0")}:
        with pytest.raises(DecodeError, match="it has more than plain files"):
            read(pack(file(START, kind=bytes([kind])) + END))


@pytest.mark.parametrize("target", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links_are_refused(target: bytes) -> None:
    """A link is refused, also one whose type says that it is a file."""
    info = tarfile.TarInfo(f"{START:012d}.json")
    info.type, info.linkname = target, "/etc/passwd"
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    with pytest.raises(DecodeError, match="more than plain files"):
        read(pack(bytes(header) + END))
    header[156:157] = b"0"
    with pytest.raises(DecodeError, match="more than plain files"):
        read(pack(checked(header) + END))


def checked(header: bytearray) -> bytes:
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    return bytes(header)


def test_a_path_of_two_parts_is_refused() -> None:
    """The first part of a long path stands at the end of a header; it must be empty."""
    header = bytearray(file(START)[:512])
    header[345:348] = b"../"
    with pytest.raises(DecodeError, match="more than plain files"):
        read(pack(checked(header) + b"{}".ljust(512, b"\0") + END))


def test_a_block_twice_is_refused() -> None:
    """Two documents of one height contradict each other."""
    with pytest.raises(DecodeError, match=f"block {START} that does not belong there"):
        read(pack(file(START) + file(START, b"{ }") + END))


def test_other_sizes_are_refused(subtests: pytest.Subtests) -> None:
    """A size is an octal number, in no other form."""
    cases = [b"\x80" + bytes(10) + b"\x02", b"0000000000x\0", b"-0000000002\0", bytes(12)]
    for size in cases:
        with subtests.test(size=size):
            header = bytearray(file(START)[:512])
            header[124:136] = size
            with pytest.raises(DecodeError):
                read(pack(checked(header) + b"{}".ljust(512, b"\0") + END))


def test_a_wrong_checksum_is_refused() -> None:
    """Each header has the sum of its bytes, and each gzip that of its contents."""
    header = bytearray(file(START))
    header[11] ^= 1
    with pytest.raises(DecodeError, match="it is no tar, or damaged"):
        read(pack(bytes(header) + END))
    body = pack(tar(DOCUMENTS))
    for at in (-8, -1):  # the checksum, and the size
        damaged = bytearray(body)
        damaged[at] ^= 1
        with pytest.raises(DecodeError, match="it is no gzip, or damaged"):
            read(bytes(damaged))


def test_an_archive_cut_at_any_sector_is_refused() -> None:
    """A tar without its end is refused wherever it ends, also between two files."""
    whole = tar(DOCUMENTS)
    assert len(whole) == 10 * 512
    for stop in range(0, len(whole), 512):
        with pytest.raises(DecodeError, match=r"it is cut|its end is missing"):
            read(pack(whole[:stop]))


def test_a_cut_gzip_is_refused() -> None:
    """An archive that was not received whole is refused wherever it ends."""
    body = pack(tar(DOCUMENTS))
    for stop in range(len(body)):
        with pytest.raises(DecodeError):
            read(body[:stop])


@pytest.mark.parametrize(
    "more",
    [b"x", bytes(512), pack(b""), pack(tar(DOCUMENTS))],
    ids=["byte", "zeros", "gzip", "tar"],
)
def test_nothing_follows_an_archive(more: bytes) -> None:
    """Bytes after the end of the gzip, a second one too, are refused."""
    with pytest.raises(DecodeError, match="goes on after its end"):
        read(pack(tar(DOCUMENTS)) + more)


def test_nothing_follows_a_tar(subtests: pytest.Subtests) -> None:
    """After the files there are empty sectors, at most those of a record."""
    for more in [b"x" * 512, b"\0" * 511 + b"x", b"\0", bytes(512 * 30)]:
        with subtests.test(more=more[:8]):
            with pytest.raises(DecodeError, match=r"goes on after its end|too long"):
                read(pack(tar(DOCUMENTS) + more))
            assert read(pack(tar(DOCUMENTS) + bytes(512 * 18))) == DOCUMENTS


@given(st.binary(max_size=2000))
@settings(max_examples=100, deadline=None)
def test_any_other_bytes_are_refused(body: bytes) -> None:
    """Bytes that are no archive raise a typed error, packed or not."""
    for data in (body, pack(body)):
        with pytest.raises(LedgerError):
            read(data)


# Limits -----------------------------------------------------------------------------------


def test_a_bomb_is_refused_while_it_is_unpacked() -> None:
    """Of an archive that is larger than the limit, no more than the limit is unpacked."""
    bomb = pack(file(START, bytes(200 * 2**20)) + END)
    assert len(bomb) < LIMIT
    tracemalloc.start()
    try:
        with pytest.raises(ResponseTooLargeError, match="has more than 1,048,576 bytes"):
            read(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2 * LIMIT
    finally:
        tracemalloc.stop()


def test_a_bomb_in_the_padding_is_refused_at_once() -> None:
    """Zeros after the end, or in place of a header, are not unpacked."""
    zeros = pack(bytes(200 * 2**20))
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="its end is missing, or too long"):
            read(zeros, 2**30)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_many_files_count_together() -> None:
    """The limit is that of the whole archive, with its headers."""
    documents = {START + at: bytes(1024) for at in range(4)}
    whole = len(tar(documents)) - 512  # the second sector of the end is no content
    assert read(pack(tar(documents)), whole) == documents
    with pytest.raises(ResponseTooLargeError):
        read(pack(tar(documents)), whole - 1)


def test_a_document_of_the_size_that_the_header_states() -> None:
    """A size that is too large reads into the next file, and is refused."""
    with pytest.raises(DecodeError):
        read(pack(file(START, b"{}", size=600) + file(START + 1) + END))
    with pytest.raises(DecodeError):
        read(pack(file(START, json.dumps("x" * 600).encode(), size=2) + END))


def test_gzip_without_a_checksum_is_no_archive() -> None:
    """Deflated bytes without the header and the checksum of gzip are refused."""
    raw = zlib.compress(tar(DOCUMENTS))
    with pytest.raises(DecodeError, match="it is no gzip"):
        read(raw)
    assert gzip.decompress(pack(tar(DOCUMENTS))) == tar(DOCUMENTS)
