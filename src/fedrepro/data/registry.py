"""The data sets fedrepro knows: `data/registry.yaml`, checked key by key.

An entry says where a data set comes from and how to tell that what arrived is right. It knows nothing of shapes other than the
native one, of partitions or of runs.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from fedrepro.errors import UserError
from fedrepro.files import canonical_hash
from fedrepro.registry import unknown

REGISTRY = Path("data/registry.yaml")

Md5 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
# Both become folder and file names, so neither may climb out of its folder.
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$")]
Url = Annotated[str, StringConstraints(pattern=r"^https?://.*/$")]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SourceFile(_Strict):
    """One published file. At least one checksum is known; the unpacked one wins, so that a mirror may pack the content anew."""

    name: FileName
    md5: Md5 | None = None  # of the file as published
    unpacked_md5: Md5 | None = None  # of its content after gunzip

    @model_validator(mode="after")
    def _has_a_checksum(self) -> "SourceFile":
        if self.md5 is None and self.unpacked_md5 is None:
            raise ValueError(f"{self.name} has no checksum; give md5 or unpacked_md5")
        return self


class Normalise(_Strict):
    """A pixel x in 0..255 enters a model as (x / 255 - mean) / std, per channel."""

    mean: tuple[float, ...]
    std: tuple[Annotated[float, Field(gt=0)], ...]


class Entry(_Strict):
    """One data set of the registry, immutable."""

    name: FileName
    title: str
    homepage: str
    licence: str
    kind: Literal["digits", "idx"]  # the module of fedrepro.data that reads it
    classes: Annotated[int, Field(ge=2)]
    class_names: tuple[str, ...]  # [classes]
    native_shape: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]]  # C, H, W
    normalise: Normalise  # one value per native channel
    urls: tuple[Url, ...] = ()  # folders, tried in this order
    files: tuple[SourceFile, ...] = ()
    torchvision_class: Literal["MNIST", "FashionMNIST"] | None = None  # kind idx: the class that reads the unpacked files
    content_sha256: Sha256 | None = None  # kind digits: see fedrepro.data.digits.content_sha256

    @model_validator(mode="after")
    def _fits_together(self) -> "Entry":
        if len(self.class_names) != self.classes:
            raise ValueError(f"class_names has {len(self.class_names)} names for {self.classes} classes")
        channels = self.native_shape[0]
        if not len(self.normalise.mean) == len(self.normalise.std) == channels:
            raise ValueError(f"normalise needs {channels} mean and std, one per channel of native_shape")
        needs = {"digits": ("content_sha256",), "idx": ("torchvision_class", "files")}[self.kind]
        missing = [key for key in needs if not getattr(self, key)]
        if missing:
            raise ValueError(f"kind {self.kind} needs the key {missing[0]}")
        return self

    @property
    def sha(self) -> str:
        """Hex sha256 of everything here that decides the arrays and how they are fed; it enters every hash made downstream.

        Titles, licences, class names and addresses are left out: a new mirror or a corrected title must not retrain anything.
        """
        checksums = {file.name: file.unpacked_md5 or file.md5 for file in self.files}
        decides = {
            "name": self.name,
            "kind": self.kind,
            "classes": self.classes,
            "native_shape": self.native_shape,
            "normalise": self.normalise.model_dump(mode="json"),
            "checksums": checksums,
            "torchvision_class": self.torchvision_class,
            "content_sha256": self.content_sha256,
        }
        return canonical_hash({key: value for key, value in decides.items() if value is not None}, 64)


class _Entries(dict[str, Entry]):
    """A dict whose missing key is a sentence for the user."""

    def __init__(self, path: Path, entries: dict[str, Entry]) -> None:
        super().__init__(entries)
        self._path = path

    def __missing__(self, name: str) -> Entry:
        raise UserError(f"{self._path}: {unknown('data set', name, sorted(self))}")


def load_registry(path: Path = REGISTRY) -> dict[str, Entry]:
    """All entries by name, in file order. Asking the result for an unknown name is a UserError that offers the nearest one.

    UserError naming file, data set and key for anything that is missing, misspelt, of the wrong type or contradictory.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text())
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; run the command in the project's root folder") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or not content:
        raise UserError(f"{path}: expected data sets by name, found {type(content).__name__}")
    return _Entries(path, {name: _entry(path, name, value) for name, value in content.items()})


def _entry(path: Path, name: Any, value: Any) -> Entry:
    if not isinstance(value, dict):
        raise UserError(f"{path}: {name}: expected keys and values, found {value!r}")
    try:
        return Entry.model_validate({"name": name, **value})
    except ValidationError as error:
        # A misspelt key also leaves the true one missing: the misspelling is the better news.
        problem = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
        *parents, last = map(str, problem["loc"] or ("",))
        if problem["type"] == "extra_forbidden":
            model = {"files": SourceFile, "normalise": Normalise}[parents[0]] if parents else Entry
            what = unknown("key", last, sorted(set(model.model_fields) - {"name"} if model is Entry else model.model_fields))
        else:
            what, parents = problem["msg"].removeprefix("Value error, "), [*parents, last]
        where = ".".join(filter(None, parents))
        raise UserError(f"{path}: {name}: {where + ': ' if where else ''}{what}") from error
