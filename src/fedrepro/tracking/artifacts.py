"""Files of a run, beside its numbers: linked where the store is a folder, sent where it is not."""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from fedrepro.engine.artifacts import FOLDERS
from fedrepro.errors import UserError
from fedrepro.files import link, read_json
from fedrepro.tracking.address import Address, shorten
from fedrepro.tracking.content import RunContent, SeedContent
from fedrepro.tracking.planned_runs import artifact_files

UNTOLD = ("files", "class_counts")  # of a manifest: too long for a page


def store_files(address: Address, uri: str, root: Path, run: RunContent) -> None:
    """Stores a seed's `artifact_files`.

    Skips a `uri` that is a folder of another machine: a shared database names a folder of the machine that created the
    experiment.
    """
    files = artifact_files(root, run.wanted, run.path) if isinstance(run, SeedContent) else {}
    folder = local(uri)
    if files and not folder:
        _send(files, uri, address)
    elif folder and folder.parents[3].is_dir():  # the root of the artifacts is on this machine
        for name, path in files.items():
            link(path.resolve(), folder / name)  # a link: no model is stored twice


def remove_files(uri: str) -> None:
    """Removes the files of a run for good."""
    folder = local(uri)
    if folder:
        shutil.rmtree(folder.parent, ignore_errors=True)
    else:
        with _plainly(uri):
            _repository(uri, None).delete_artifacts()


def local(uri: str) -> Path | None:
    """The folder that an address names, or None where it is none."""
    parsed = urlparse(uri)
    return Path(unquote(parsed.path)) if parsed.scheme in ("", "file") else None


def datasets(root: Path, run: RunContent) -> list[Any]:
    """The inputs of a seed as MLflow shows them: partition, participation, proxy set, arrays."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    inputs: list[Any] = []
    if not isinstance(run, SeedContent):
        return inputs
    for kind, sha256 in run.receipt["inputs"].items():
        identity = str(run.wanted.run.inputs.get(kind) or "")
        if not sha256 or not identity:
            continue
        if kind == "arrays":
            path, name = root / identity / "manifest.json", Path(identity).as_posix().removeprefix("data/arrays/")
        else:
            name = f"{identity}/seed{run.wanted.seed}"
            path = root / FOLDERS.get(kind, Path("data", kind)) / f"{name}.json"
        manifest: dict[str, Any] = {}
        with contextlib.suppress(UserError):  # missing on this machine, or damaged: training reports it
            manifest = read_json(path)
        dataset = Dataset(
            name=name,
            digest=sha256[:36],  # as much of a sha256 as MLflow keeps
            source_type="local",
            source=json.dumps({"uri": str(path)}),
            profile=json.dumps({key: manifest[key] for key in manifest if key not in UNTOLD}, sort_keys=True),
        )
        inputs.append(DatasetInput(dataset, [InputTag("mlflow.data.context", kind)]))
    return inputs


def _repository(uri: str, address: Address | None) -> Any:
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    return get_artifact_repository(uri, tracking_uri=address and address.uri)


def _send(files: dict[str, Path], uri: str, address: Address) -> None:
    with _plainly(uri), tempfile.TemporaryDirectory() as folder:  # MLflow takes the name that a file has here
        repository = _repository(uri, address)
        for name, path in files.items():
            (link := Path(folder) / name).symlink_to(path.resolve())
            repository.log_artifact(str(link))


@contextlib.contextmanager
def _plainly(uri: str) -> Iterator[None]:
    """Raises UserError with the reason if the file store fails: without credentials, or for an unknown bucket."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException:
        raise
    except Exception as error:  # each file store has its own exceptions
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"files of runs at {uri} cannot be written: {shorten(reason)}") from error
