"""Published files, fetched once and verified: from a mirror if there is one, else from the registry's addresses.

A file passes through `<target>.download` (as it arrives) and `<target>.partial` (unpacked), and gets its name only when its
checksum is right; so a file under its own name is good. The sha256 is recorded in `data/raw/<dataset>/sha256.json` at the first
good download and holds ever after, also against a source that later serves something else.
"""

import contextlib
import gzip
import hashlib
import os
import shutil
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedrepro.data.archive import extracted, members_md5
from fedrepro.data.registry import Entry, SourceFile
from fedrepro.data.transfer import Absent, BadSource, is_url, transfer
from fedrepro.errors import UserError
from fedrepro.files import lock, read_json, sha256_file, write_json, writing

RAW = Path("data/raw")
LOCKS = Path("data/.locks")  # not among the raw files, whose folder is versioned by content
RECORD = "sha256.json"
MIRROR_VARIABLE = "FEDREPRO_MIRROR"


class Unfit(BadSource):
    """The source's file is not the published one."""


class Fetcher(contextlib.ExitStack):
    """Fetches the files of one data set into `root/data/raw/<dataset>`. The folder is locked from the first file that has to be
    fetched, or from `unpacked`, to the end of `with`."""

    def __init__(self, dataset: str, urls: Sequence[str], root: Path, mirror: str | None = None) -> None:
        super().__init__()
        self.dataset, self.folder = dataset, Path(root) / RAW / dataset
        self._lock = Path(root) / LOCKS / f"{dataset}.lock"
        self._urls = urls
        self._mirror = mirror or os.environ.get(MIRROR_VARIABLE) or None
        self._locked = False

    def fetch(self, file: SourceFile, target: str, unpack: bool) -> str:
        """Puts the (gunzipped, if `unpack`) content of `file` at `folder/target`; returns its hex sha256.

        A file that is there is verified and kept. UserError in one line, naming the file and every source tried.
        """
        path = self.folder / target
        if not (path.exists() and target in self._records()):  # else it is only read, and the folder may be read-only
            self._begin()
        if path.exists():
            return self._verify_present(file, path, target, unpack)
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        refusals: list[tuple[str, BadSource]] = []
        for source in self._sources(file):
            try:
                sha256 = self._fetch_from(source, file, path, target, unpack)
            except BadSource as reason:
                refusals.append((source, reason))
                continue
            for refused, reason in refusals:
                if not isinstance(reason, Absent):
                    print(f"{self.dataset}: {refused}: {reason}; took {source} instead", file=sys.stderr)
            return sha256
        tried = "; ".join(f"{source}: {reason}" for source, reason in refusals) or "no source is known"
        if any(isinstance(reason, Unfit) for _, reason in refusals):
            advice = "put the published file there, or correct its checksum in data/registry.yaml if this one is right"
        else:
            advice = f"check the connection, or put {file.name} in a folder and set {MIRROR_VARIABLE} to that folder"
        raise UserError(f"{self.dataset}: cannot get {file.name}: {tried}; {advice}")

    def only(self, entry: Entry) -> tuple[Path, dict[str, str]]:
        """Fetches the one file of `entry` without unpacking it; returns its path, and its name with its hex sha256."""
        (file,) = entry.files
        return self.folder / file.name, {file.name: self.fetch(file, file.name, unpack=False)}

    def unpacked(self, path: Path, targets: dict[str, str]) -> Path:
        """A folder with the members in `targets` of the archive at `path`, until the end of `with`. See `archive.extracted`.

        Locked, since all shapes of a data set are unpacked into the same folder.
        """
        self._lock_folder()
        return self.enter_context(extracted(path, targets, self.folder / ".unpacked"))

    def _begin(self) -> None:
        """Checks the mirror and takes the lock, before the first file: data that are made here need neither."""
        if self._locked:
            return
        if self._mirror and not is_url(self._mirror) and not Path(self._mirror).expanduser().is_dir():
            advice = f"give a folder or an http(s) address, or unset {MIRROR_VARIABLE}"
            raise UserError(f"mirror {self._mirror!r}: no such folder; {advice}")
        self._lock_folder()

    def _lock_folder(self) -> None:
        """Two shapes of one data set may be prepared at the same time; the second waits and then finds the files."""
        if not self._locked:
            self.enter_context(lock(self._lock, busy=self._wait))
            self._locked = True

    def _sources(self, file: SourceFile) -> Iterator[str]:
        if self._mirror:
            base = self._mirror if is_url(self._mirror) else str(Path(self._mirror).expanduser())
            places = (f"{self.dataset}/{file.name}", file.name, file.in_mirror)
            yield from (f"{base.rstrip('/')}/{place}" for place in places if place)
        yield from (f"{url}{file.name}" for url in self._urls)

    def _fetch_from(self, source: str, file: SourceFile, path: Path, target: str, unpack: bool) -> str:
        arriving, partial = (path.with_name(f"{path.name}.{ending}") for ending in ("download", "partial"))
        try:
            transfer(source, arriving)
            _check(file, arriving, partial, unpack)
            ready = partial if unpack else arriving
            sha256 = sha256_file(ready)
            self._record(target, sha256)
            if unpack and file.md5 and not file.unpacked_md5:
                self._record(_packed(target), _md5(arriving))
            with writing(path):
                ready.replace(path)
            return sha256
        finally:
            arriving.unlink(missing_ok=True)
            partial.unlink(missing_ok=True)

    def _verify_present(self, file: SourceFile, path: Path, target: str, unpack: bool) -> str:
        sha256, recorded = sha256_file(path), self._records().get(target)
        if recorded is None:  # put there by hand
            expected = file.unpacked_md5 if unpack else file.md5
            verified = _members_match(file, path) or file.trust_first_download
            if not verified and (expected is None or _md5(path) != expected):
                raise UserError(f"{path}: not fetched by fedrepro and not verifiable; delete it and run the same command again")
            self._record(target, sha256)
        elif recorded != sha256:
            raise UserError(f"{path}: changed since it was downloaded; delete it and run the same command again")
        elif not _is_published(file, path, unpack, self._records().get(_packed(target))):
            advice = f"delete the folder {self.folder} and run the same command again, or correct the checksum"
            raise UserError(f"{path}: was downloaded by another checksum than data/registry.yaml has now; {advice}")
        return sha256

    def _records(self) -> dict[str, str]:
        path = self.folder / RECORD
        records = read_json(path) if path.exists() else {}
        if not isinstance(records, dict):
            raise UserError(f"{path}: not a list of checksums by file name; delete it and run the same command again")
        return records

    def _record(self, target: str, sha256: str) -> None:
        records = self._records()
        if records.get(target, sha256) != sha256:
            raise BadSource(f"not what was first downloaded ({self.folder / RECORD}; delete that file to start afresh)")
        if target not in records:
            write_json(self.folder / RECORD, {**records, target: sha256})

    def _wait(self, holder: str) -> None:
        print(f"{self.dataset}: process {holder} is fetching or unpacking this data set; waiting for it", file=sys.stderr)


def _check(file: SourceFile, arrived: Path, unpacked: Path, unpack: bool) -> None:
    """Unpacks if asked to. BadSource unless a checksum is right: of the content where known, so that a mirror may repack it."""
    if unpack:
        with writing(unpacked):
            _unpack(arrived, unpacked)
    if unpack and file.unpacked_md5:
        md5, expected, what = _md5(unpacked), file.unpacked_md5, "its content"
    else:
        md5, expected, what = _md5(arrived), file.md5, "the file"
    if not (expected == md5 or _members_match(file, arrived) or file.trust_first_download):
        mismatches = [f"expected {expected}"] * bool(expected) + ["and its members are not those listed"] * bool(file.members)
        raise Unfit(f"corrupt, or not the published file (md5 of {what} {md5}, {', '.join(mismatches)})")


def _packed(target: str) -> str:
    """Returns the name in the record of the md5 of the packed file that `target` was unpacked from."""
    return f"{target}, packed (md5)"


def _is_published(file: SourceFile, path: Path, unpack: bool, packed_md5: str | None) -> bool:
    """Whether the file at `path` has the checksum that the registry gives; True if it gives none. `packed_md5`: of what it was
    unpacked from; None where that is not on record."""
    expected = file.unpacked_md5 if unpack else file.md5
    if expected:
        return _md5(path) == expected or _members_match(file, path)
    if unpack and file.md5 and packed_md5:
        return packed_md5 == file.md5
    return not file.members or _members_match(file, path)


def _members_match(file: SourceFile, path: Path) -> bool:
    """Whether an archive holds every member that the registry lists, each with its MD5."""
    try:
        return bool(file.members) and members_md5(path, set(file.members)) == file.members
    except UserError:
        return False


def _unpack(packed: Path, unpacked: Path) -> None:
    try:
        with gzip.open(packed) as stream, unpacked.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 18)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadSource(f"truncated, or not a gzip file ({error})") from error


def _md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
