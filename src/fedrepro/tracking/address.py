"""Where the runs are: the project's own `mlflow.db`, or what `MLFLOW_TRACKING_URI` names. Pure.

The project's own database belongs to its folder alone. Any other address may be shared: several folders, on several machines,
write into it. If two folders have a result of the same run and seed, the newer one stays. No folder removes any other run that
another one wrote.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from fedrepro.errors import UserError

VARIABLE = "MLFLOW_TRACKING_URI"
ARTIFACT_ROOT = "MLFLOW_DEFAULT_ARTIFACT_ROOT"  # as `mlflow server` takes it
ARTIFACTS = Path("mlartifacts")
OWN = "mlflow.db"


@dataclass(frozen=True)
class Address:
    """A tracking store. `database`: the file of a SQLite store; `artifacts`: where new experiments keep their files, None if
    MLflow's server decides that."""

    uri: str
    database: Path | None
    artifacts: str | None
    shared: bool

    @property
    def served(self) -> bool:
        """Whether MLflow's server holds the store, so that all access is by HTTP."""
        return self.uri.startswith("http")

    def __str__(self) -> str:
        """The address for messages, without its password."""
        return str(self.database) if self.database else re.sub(r"(?<=://)([^/@:]*):[^/@]*@", r"\1:***@", self.uri)


def default_address(root: Path) -> Address:
    """The SQLite file of the project at `root`."""
    path = Path(root) / OWN
    return Address(f"sqlite:///{path}", path, (Path(root) / ARTIFACTS).as_uri(), shared=False)


def find(root: Path) -> Address:
    """What the environment names, or else the project's own. UserError for an address of an unknown form."""
    root, uri = Path(root).resolve(), os.environ.get(VARIABLE, "").strip()
    artifacts = os.environ.get(ARTIFACT_ROOT) or (root / ARTIFACTS).as_uri()
    if not uri:
        return default_address(root)
    if re.match(r"https?://[^/\s]", uri):
        return Address(uri.rstrip("/"), None, None, shared=True)
    if re.match(r"postgresql(\+\w+)?://\S", uri):
        return Address(uri, None, artifacts, shared=True)
    if re.match(r"sqlite:///[^\s:]", uri):
        path = root / uri.removeprefix("sqlite:///")
        return default_address(root) if path == root / OWN else Address(f"sqlite:///{path}", path, artifacts, shared=True)
    forms = "postgresql://USER@HOST/DATABASE, http://HOST:PORT or sqlite:///FILE"
    raise UserError(f"{VARIABLE} = {uri!r}: not understood; set it to {forms}, or unset it for {OWN}")


def shorten(reason: str, most: int = 300) -> str:
    """Cuts out the middle of a long reason: its beginning names MLflow's action, its end the cause of the failure."""
    return reason if len(reason) <= most else f"{reason[: most // 2]} ... {reason[-most // 2 :]}"
