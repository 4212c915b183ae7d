"""The data sets fedrepro knows: `data/registry.yaml`, checked key by key.

An entry gives the source of a data set and the checksums of its files. It does not describe shapes other than the
native one, partitions or runs.
"""

import itertools
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, read_yaml
from fedrepro.registry import unknown
from fedrepro.typed import Strict, check

REGISTRY = Path("data/registry.yaml")

Md5 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
# Both become folder and file names, so neither may climb out of its folder.
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$")]
Url = Annotated[str, StringConstraints(pattern=r"^https?://.*/$")]


Side = Annotated[int, Field(ge=1)]

# Kind, the module of fedrepro.data that reads it -> what an entry of it must have and may have, beyond what all have. Nothing
# else is accepted.
KEYS_OF_KIND: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "digits": (("class_names", "content_sha256"), ()),
    "idx": (("class_names", "torchvision_class", "files"), ("urls",)),
    "parquet": (("class_names", "files"), ("urls", "image_column", "label_column")),
    "cifar": (("class_names", "torchvision_class", "files"), ("urls",)),
    "emnist": (("class_names", "files"), ("urls",)),
    "tff_h5": (("class_names", "files"), ("urls",)),
    "tiny_imagenet": (("files",), ("urls",)),
    "folders": (("class_names", "files"), ("urls", "domains", "test_share")),
    "synthetic_faces": (("class_names", "content_sha256"), ()),
    "yolo": (("class_names", "files"), ("urls", "test_share")),
    "synthetic_text": (("class_names", "content_sha256"), ()),
    "plays": (("files", "speakers", "test_share"), ("urls",)),
    "digit_five": (("class_names", "files"), ("urls",)),
    "digit_domains": (("class_names", "content_sha256"), ()),
}
_TORCHVISION_CLASSES = {"idx": ("MNIST", "FashionMNIST"), "cifar": ("CIFAR10", "CIFAR100")}
_WITH_BOXES = ("synthetic_faces", "yolo")
_TEXT = ("synthetic_text", "plays")
_ENCODED = ("parquet", "tiny_imagenet", "folders", "yolo")  # images as JPEG, PNG and the like
_ONE_FILE = ("plays",)
_ONE_ARCHIVE = ("cifar", "emnist", "tff_h5", "tiny_imagenet", "folders", "yolo")
_KEYS_OF_SOME_KIND = {key for needs, may_have in KEYS_OF_KIND.values() for key in (*needs, *may_have)}


def _require_kind(kind: str) -> str:
    if kind not in KEYS_OF_KIND:
        raise ValueError(unknown("kind", kind, [*KEYS_OF_KIND]))
    return kind


class SourceFile(Strict):
    """One published file. Where the content's checksums are known they win, so that a mirror may pack the content anew."""

    name: FileName
    md5: Md5 | None = None  # of the file as published
    unpacked_md5: Md5 | None = None  # of its content after gunzip
    members: dict[str, Md5] = Field({})  # of files in an archive, by their name there: all right, or the archive's md5 is
    split: Literal["train", "test"] | None = None  # kind parquet: what its rows are for
    # No checksum is published anywhere: the sha256 of the first download holds. Says nothing of whether that one was right.
    trust_first_download: bool = False
    in_mirror: Annotated[str, StringConstraints(pattern=r"^\w[\w.+-]*(/\w[\w.+-]*)*$")] | None = (
        None  # another place for it there
    )

    @model_validator(mode="after")
    def _has_a_checksum(self) -> "SourceFile":
        has_checksum = bool(self.md5 or self.unpacked_md5 or self.members)
        if not has_checksum and not self.trust_first_download:
            raise ValueError(f"{self.name} has no checksum; give md5, unpacked_md5 or members, or trust_first_download: true")
        if has_checksum and self.trust_first_download:
            raise ValueError(f"{self.name} has a checksum; take trust_first_download out")
        return self

    @property
    def checksum(self) -> str | dict[str, str] | None:
        """What identifies the content: MD5 after gunzip, of the members, or of the file as published; None if only trusted."""
        return self.unpacked_md5 or self.members or self.md5


class Entry(Strict, allow_inf_nan=False):
    """One data set of the registry, immutable."""

    name: FileName
    title: str
    homepage: str
    licence: str
    kind: Annotated[str, AfterValidator(_require_kind)]
    classes: Annotated[int, Field(ge=1)]
    class_names: tuple[str, ...] = ()  # [classes]; left out where the files name them
    native_shape: Annotated[tuple[Side, ...], Field(min_length=1, max_length=3)]  # C, H, W of images; of text T, characters
    images: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] | None = None  # training, test; checked
    # Of x / 255 over the training images, one value per native channel. A fact for runs that ask for it; decides no array.
    channel_mean: tuple[Annotated[float, Field(ge=0, le=1)], ...] = ()
    channel_std: tuple[Annotated[float, Field(gt=0, le=1)], ...] = ()
    same_as: str | None = None  # the entry whose very images and labels these are, in another order
    urls: tuple[Url, ...] = ()  # folders, tried in this order
    files: tuple[SourceFile, ...] = ()
    torchvision_class: str | None = None  # kind cifar: the class that reads its files; kind idx: the folder of its files
    content_sha256: Sha256 | None = None  # of what we make: see fedrepro.data.source.Source.content_sha256
    image_column: str = "img"  # kind parquet: a struct with the encoded image in its field `bytes`
    label_column: str = "label"  # kind parquet: whole numbers 0..classes-1
    domains: tuple[str, ...] = ()  # kind folders: names of the folders above the classes; become the groups of the arrays
    speakers: Literal["colon", "capitals"] | None = None  # kind plays: how a line tells who speaks, see fedrepro.data.plays
    # Kinds folders and yolo: share that is tested (folders: of every class of every domain), where there is no official split.
    # Kind plays: of every role's lines, the last ones.
    test_share: Annotated[float, Field(gt=0, lt=1)] | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> "Entry":
        needs, may_have = KEYS_OF_KIND[self.kind]
        missing = [key for key in needs if not getattr(self, key)]
        if missing:
            raise ValueError(f"kind {self.kind} needs the key {missing[0]}")
        foreign = sorted((self.model_fields_set & _KEYS_OF_SOME_KIND) - {*needs, *may_have})
        if foreign:
            raise ValueError(f"kind {self.kind} has no key {foreign[0]}; take it out")
        if self.classes < 2 and not self.has_boxes:
            raise ValueError(f"classes: {self.classes} leaves nothing to tell apart; use at least 2")
        if self.class_names and len(self.class_names) != self.classes:
            raise ValueError(f"class_names has {len(self.class_names)} names for {self.classes} classes")
        for key in ("class_names", "domains"):
            if len(set(getattr(self, key))) < len(getattr(self, key)):
                raise ValueError(f"{key} has a name twice")
        axes = 1 if self.kind in _TEXT else 3
        if len(self.native_shape) != axes:
            what = "text is [characters of a window]" if axes == 1 else "images are [channels, height, width]"
            raise ValueError(f"native_shape: {what}, not {[*self.native_shape]}")
        channels, counts = self.native_shape[0], (len(self.channel_mean), len(self.channel_std))
        if counts not in ((channels, channels), (0, 0)):
            raise ValueError(f"channel_mean and channel_std need {channels} values each, one per channel of native_shape")
        allowed = _TORCHVISION_CLASSES.get(self.kind, ())
        if allowed and self.torchvision_class not in allowed:
            use = " or ".join(allowed)
            raise ValueError(f"torchvision_class {self.torchvision_class!r} does not read kind {self.kind}; use {use}")
        if self.kind in _ENCODED and channels not in (1, 3):
            raise ValueError(f"native_shape: images of kind {self.kind} have 1 or 3 channels, not {channels}")
        self._check_files()
        return self

    def _check_files(self) -> None:
        for kinds, what in ((_ONE_ARCHIVE, "archive"), (_ONE_FILE, "file")):
            if self.kind in kinds and len(self.files) != 1:
                raise ValueError(f"files: kind {self.kind} is one {what}, found {len(self.files)} files")
        if self.kind == "cifar" and not self.files[0].members:
            raise ValueError("files: kind cifar needs members with the md5 of each: nothing unknown is ever unpickled")
        if self.kind == "parquet" and {file.split for file in self.files} != {"train", "test"}:
            raise ValueError("files: each needs split: train or split: test, and both must occur")
        for key, kinds in (("split", ("parquet",)), ("members", _ONE_ARCHIVE)):
            if self.kind not in kinds and any(getattr(file, key) for file in self.files):
                raise ValueError(f"files: kind {self.kind} has no key {key}; take it out")

    @property
    def has_boxes(self) -> bool:
        """Whether it is for detection: its images come with boxes."""
        return self.kind in _WITH_BOXES

    @property
    def holds(self) -> str:
        """What a sample is: images, or text."""
        return "text" if self.kind in _TEXT else "images"

    @property
    def has_groups(self) -> bool:
        """Whether its samples have groups: domains, writers or roles."""
        return bool(self.domains) or self.kind in (*_TEXT, "tff_h5", "digit_five", "digit_domains")

    @property
    def statistics(self) -> dict[str, list[float]] | None:
        """{"mean": [C], "std": [C]} of x / 255 over the training images, or None where they are not known."""
        return {"mean": [*self.channel_mean], "std": [*self.channel_std]} if self.channel_mean else None

    @cached_property
    def sha(self) -> str:
        """Hex sha256 of everything here that decides the arrays; it enters every hash made downstream.

        Titles, licences, class names, addresses, channel statistics and `same_as` are left out: a new mirror or a corrected
        title must not retrain anything, and what a run does with the statistics is a setting of the run.
        """
        files = [[file.name, file.split, file.checksum] for file in self.files]  # their order is that of the images
        decides = {"name": self.name, "classes": self.classes, "native_shape": self.native_shape, "files": files}
        keys = {"kind", *itertools.chain(*KEYS_OF_KIND[self.kind])} - {"files", "urls"}
        keys -= set() if self.kind == "folders" else {"class_names"}  # there, their order makes the labels
        return canonical_hash(decides | {key: getattr(self, key) for key in keys}, 64)

    def made(self, manifest: Any) -> bool:
        """Whether arrays with this manifest were made from this entry as it is today."""
        return isinstance(manifest, dict) and manifest.get("source", {}).get("entry_sha") == self.sha


class _Entries(dict[str, Entry]):
    """A dict that raises a UserError for a missing key."""

    def __init__(self, path: Path, entries: dict[str, Entry]) -> None:
        super().__init__(entries)
        self._path = path

    def __missing__(self, name: str) -> Entry:
        raise UserError(f"{self._path}: {unknown('data set', name, sorted(self))}")


def load_registry(path: Path = REGISTRY) -> dict[str, Entry]:
    """All entries by name, in file order. An unknown name raises a UserError that offers the nearest one.

    UserError naming file, data set and key for anything that is missing, misspelt, of the wrong type or contradictory.
    """
    path = Path(path)
    content = read_yaml(path, missing="run the command in the project's root folder")
    if not isinstance(content, dict) or not content:
        raise UserError(f"{path}: expected data sets by name, found {type(content).__name__ if content else 'nothing'}")
    entries = _Entries(path, {name: _entry(path, name, value) for name, value in content.items()})
    for name, entry in entries.items():
        if entry.same_as is not None and entry.same_as not in entries:
            raise UserError(f"{path}: {name}: same_as: {unknown('data set', entry.same_as, sorted(entries))}")
    return entries


def _entry(path: Path, name: Any, value: Any) -> Entry:
    if not isinstance(value, dict):
        raise UserError(f"{path}: {name}: expected keys and values, found {value!r}")
    return check(Entry, {"name": name, **value}, f"{path}: {name}")
