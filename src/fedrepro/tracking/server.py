"""Serves the MLflow UI over the project's database."""

import os
import socket
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from fedrepro import console
from fedrepro.errors import UserError
from fedrepro.tracking.address import ARTIFACTS, find

APP = "fedrepro"  # of pyproject.toml's entry points
FOLLOW_S = 30
LOG = Path("logs/track/ui.log")
DATABASE = "FEDREPRO_DATABASE"  # environment variable with the address of the runs


def ui(root: Path = Path(), host: str = "127.0.0.1", port: int = 5000) -> None:
    """Prints the address of the UI and replaces this process by MLflow's server, unless that already runs elsewhere.

    UserError when there is nothing to show or the port is taken.
    """
    root = Path(root).resolve()
    store = find(root)
    if store.served:
        console.say(f"MLflow UI: {store}")
        return
    if store.database and not store.database.exists():
        raise UserError(f"{store.database}: no such file; run `fedrepro track` first")
    require_port(root, host, port)
    console.say(f"MLflow UI: http://{host}:{port} (Ctrl-C ends it)")
    # Telemetry and background jobs are off: nothing here uses them, and they write into the database.
    environment = {"PYTHONWARNINGS": "ignore"} | os.environ  # of MLflow's own imports
    environment |= {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    environment |= {DATABASE: store.uri}
    _follow(root)
    os.execve(sys.executable, command(root, host, port), environment)


def _follow(root: Path) -> None:
    """Starts a process that syncs until this one ends, so that the UI shows running trainings. It writes its messages to
    `LOG`."""
    command = [sys.executable, "-m", "fedrepro", "track", "--published", "--every", str(FOLLOW_S)]
    command += ["--beside", str(os.getpid())]
    log = root / LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as log_file:
        options: dict[str, Any] = {"cwd": root, "start_new_session": True, "stdin": subprocess.DEVNULL}
        subprocess.Popen(command, **options, stdout=log_file, stderr=log_file)


def command(root: Path, host: str, port: int) -> list[str]:
    """The server's command line: one worker, no line for each request, artifacts read from where the runs say they are."""
    app = ["--app-name", APP] if entry_points(group="mlflow.app", name=APP) else []  # missing if an older version is installed
    where = [*app, "--backend-store-uri", find(root).uri, "--artifacts-destination", str(root / ARTIFACTS)]
    server = ["--host", host, "--port", str(port), "--workers", "1", "--uvicorn-opts", "--log-level warning"]
    return [sys.executable, "-m", "mlflow", "server", *where, *server]


def require_port(root: Path, host: str, port: int) -> None:
    """UserError when the port is taken. A server that runs elsewhere needs none here."""
    if find(Path(root).resolve()).served:
        return
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            advice = f"use another: make ui PORT={port + 1}"
            raise UserError(f"port {port} on {host} cannot be used ({error.strerror}); {advice}") from error
