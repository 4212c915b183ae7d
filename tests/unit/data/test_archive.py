"""Archives are recognised by their content. Unsafe, damaged and doubtful ones are refused in one line."""

import gzip
import hashlib
import io
import tarfile
import tracemalloc
import zipfile
from types import SimpleNamespace

import pytest

from fedrepro.data.archive import extracted, members
from fedrepro.data.download import _is_published
from fedrepro.errors import UserError
from tests.helpers.one_line import one_line
from tests.helpers.published import tar, zipped

from .conftest import flip_a_byte

CONTENT = {"a/one.txt": b"1" * 3000, "a/b/two.txt": bytes(range(256)) * 40}
PACKINGS = {"tar": lambda m: tar(m, ""), "tar.gz": tar, "tar.xz": lambda m: tar(m, "xz"), "zip": zipped}


def everything(path):
    return dict(members(path, lambda name: True))


@pytest.mark.parametrize("packing", PACKINGS)
def test_told_apart_by_content(packing, tmp_path):
    """The file's name does not matter, "./a" is "a", and only the wanted members are read."""
    path = tmp_path / "data.bin"
    path.write_bytes(PACKINGS[packing]({f"./{name}": content for name, content in CONTENT.items()}))
    assert everything(path) == CONTENT
    assert dict(members(path, lambda name: name.startswith("a/b"))) == {"a/b/two.txt": CONTENT["a/b/two.txt"]}


def test_a_tar_that_ends_in_a_zip_is_a_tar(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(tar({"inner.zip": zipped(CONTENT)}, ""))
    assert list(everything(path)) == ["inner.zip"]


@pytest.mark.parametrize("packing", ["tar", "zip"])
@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "a\\..\\up", "a/.."])
def test_unsafe_names_are_refused(name, packing, tmp_path):
    """An unsafe name is refused even if the member is not wanted."""
    path = tmp_path / "x"
    path.write_bytes(PACKINGS[packing]({"good": b"", name: b"x"}))
    with pytest.raises(UserError, match="leads out of the archive's folder; do not use this archive") as caught:
        list(members(path, lambda name: name == "good"))
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_are_refused(kind, tmp_path):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo("a/link")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    (tmp_path / "x").write_bytes(stream.getvalue())
    with pytest.raises(UserError, match="a/link: a link or a device, not a file"):
        everything(tmp_path / "x")


def test_links_in_a_zip_are_refused(tmp_path):
    info = zipfile.ZipInfo("a/link")
    info.create_system, info.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(UserError, match="a/link: a link or a device"):
        everything(tmp_path / "x")


def test_a_name_that_occurs_twice_is_refused(tmp_path):
    """The names "a" and "./a" mean one file, so it is unclear which member is meant."""
    (tmp_path / "x").write_bytes(tar({"a": b"1", "./a": b"2"}))
    with pytest.raises(UserError, match="a: occurs twice"):
        everything(tmp_path / "x")
    with pytest.raises(UserError, match="a: occurs twice"):  # also if another member is wanted
        list(members(tmp_path / "x", lambda name: name == "b"))


def test_a_repacked_archive_is_known_by_its_members(tmp_path):
    """Its own MD5 is another one. That of each listed member decides."""
    (tmp_path / "x").write_bytes(tar({"a": b"1", "more": b"2"}))
    for content, known in ((b"1", True), (b"3", False)):
        listed = SimpleNamespace(md5="0" * 32, unpacked_md5=None, members={"a": hashlib.md5(content).hexdigest()})
        assert _is_published(listed, tmp_path / "x", False, None) == known
    listed.md5 = hashlib.md5((tmp_path / "x").read_bytes()).hexdigest()
    assert _is_published(listed, tmp_path / "x", False, None)  # a download by its own MD5 passes, and so it does later


@pytest.mark.parametrize("packing", PACKINGS)
def test_truncated_archives_are_refused(packing, tmp_path):
    path = tmp_path / "x"
    content = PACKINGS[packing](CONTENT)
    path.write_bytes(content[: 6000 if packing == "tar" else len(content) * 2 // 3])
    with one_line("damaged or truncated, or neither a zip nor a tar archive"):
        everything(path)


@pytest.mark.parametrize("packing", ["tar", "tar.gz"])
@pytest.mark.parametrize("damage", ["header", "cut between members", "cut within a header"])
def test_a_tar_that_ends_early_is_refused(damage, packing, tmp_path):
    """tarfile takes all three cuts for the end of the archive."""
    content = bytearray(tar(CONTENT, ""))
    second = 512 + 3072  # header and padded content of the first member
    if damage == "header":
        content[second + 150] ^= 1  # its checksum
    packed = bytes(content if damage == "header" else content[: second + (200 if "within" in damage else 0)])
    (tmp_path / "x").write_bytes(gzip.compress(packed) if packing == "tar.gz" else packed)
    with pytest.raises(UserError, match="ends without the mark of its end, or a header is damaged"):
        everything(tmp_path / "x")


def test_the_checksum_of_a_packed_tar_is_read(tmp_path):
    """The tar is complete, but gzip's checksum and length are its last eight bytes."""
    content = bytearray(tar(CONTENT))
    content[-8] ^= 1
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UserError, match=r"damaged or truncated.*CRC"):
        everything(tmp_path / "x")


def test_a_damaged_member_is_named(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(zipped({"first": b"x", "bad": bytes(range(256)) * 40}, zipfile.ZIP_STORED))
    flip_a_byte(path)
    with pytest.raises(UserError, match="x: bad: damaged"):
        everything(path)


@pytest.mark.parametrize("content", [b"", b"<html>not here</html>", b"PK\x03\x04 cut"])
def test_no_archive_at_all(content, tmp_path):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UserError, match="neither a zip nor a tar archive"):
        everything(tmp_path / "x")


def test_a_zip_with_a_name_that_is_not_text(tmp_path):
    """The entry says that its name is UTF-8, and it is not."""
    content = zipped({"\u00e9": b"x"}).replace("\u00e9".encode(), b"\xff\xfe")
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UserError, match="damaged or truncated") as caught:
        everything(tmp_path / "x")
    assert "\n" not in str(caught.value)


def test_extracted_for_the_length_of_the_block(tmp_path):
    """Members have their new names during the block and are gone afterwards, also if the block fails."""
    (tmp_path / "x").write_bytes(zipped(CONTENT))

    def look():
        with extracted(tmp_path / "x", {"a/one.txt": "else/where"}, tmp_path / "out") as folder:
            assert [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()] == ["else/where"]
            assert (folder / "else/where").read_bytes() == CONTENT["a/one.txt"]
            raise KeyError

    with pytest.raises(KeyError):
        look()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("packing", ["zip", "tar", "gz in a tar"])
def test_a_large_member_is_copied_piece_by_piece(packing, tmp_path):
    content = bytes(32 << 20)
    packed = {
        "zip": zipped({"a.gz": content}),
        "tar": tar({"a.gz": content}),
        "gz in a tar": tar({"a.gz": gzip.compress(content)}),
    }
    (tmp_path / "x").write_bytes(packed[packing])
    target = "a" if packing.startswith("gz") else "a.gz"
    tracemalloc.start()
    try:
        with extracted(tmp_path / "x", {"a.gz": target}, tmp_path / "out") as folder:
            peak = tracemalloc.get_traced_memory()[1]
            assert (folder / target).stat().st_size == len(content)
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_a_damaged_gzip_in_an_archive_is_named(tmp_path):
    (tmp_path / "x").write_bytes(tar({"a.gz": gzip.compress(b"x" * 4000)[:-12]}))
    with (
        pytest.raises(UserError, match="truncated, or not a gzip file"),
        extracted(tmp_path / "x", {"a.gz": "a"}, tmp_path / "out"),
    ):
        pass
    assert not (tmp_path / "out").exists()
