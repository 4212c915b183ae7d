"""Servers that tests start and stop on this machine: PostgreSQL, S3 (moto's, in memory) and MLflow's tracking server.

Each has a free port of 127.0.0.1 and a folder, and is ended by its process id. They need, beside the project:

    PostgreSQL     Debian's package `postgresql`; a root user runs it as `postgres`
    S3             `moto[server]`, in an environment that is made once in .pytest_cache/moto, or FEDREPRO_MOTO=<its folder>
    MLflow         psycopg2 and boto3, from requirements-cluster.lock
"""

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedrepro.files import lock

PROJECT = Path(__file__).parents[2]
AWS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
START_S = 60
MOTO = "moto[server]==5.*"


@dataclass
class Server:
    """A process and its address."""

    address: str
    process: subprocess.Popen[bytes]

    def stop(self, *, kill: bool = False) -> None:
        """Ends the process; `kill` ends it without a chance to clean up."""
        if self.process.poll() is None:
            self.process.kill() if kill else self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def missing() -> str:
    """Names the programs and packages that this machine lacks to start all servers; "" if it has everything."""
    lacks = [] if postgres_programs() else ["PostgreSQL (apt-get install postgresql)"]
    lacks += [name for name in ("psycopg2", "boto3") if importlib.util.find_spec(name) is None]
    return ", ".join(lacks)


def postgres_programs() -> Path | None:
    """The program folder of the newest PostgreSQL; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[Server]:
    """Starts a PostgreSQL server with an empty database `mlflow`, owned by the user mlflow."""
    programs, port = postgres_programs(), free_port()
    assert programs is not None
    folder.mkdir(parents=True)
    for parent in (folder, *folder.parents):  # the user postgres cannot enter pytest's folders
        if os.geteuid() == 0 and parent.owner() == "root" and parent != Path("/tmp"):
            with contextlib.suppress(OSError):
                parent.chmod(parent.stat().st_mode | 0o011)
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    run = lambda *command: subprocess.run(  # noqa: E731
        command, check=True, cwd=folder, capture_output=True, **_user("postgres")
    )
    data = folder / "data"
    run(programs / "initdb", "-D", data, "-U", "mlflow", "--auth=trust", "--encoding=UTF8", "--locale=C")
    with (folder / "log").open("wb") as log:
        command = [programs / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **_user("postgres"))
    server = Server(f"postgresql://mlflow@127.0.0.1:{port}/mlflow", process)
    try:
        create = [programs / "createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "mlflow", "mlflow"]
        _wait(server, lambda: subprocess.run(create, cwd=folder, capture_output=True).returncode == 0, folder / "log")
        yield server
    finally:
        process.send_signal(2) if process.poll() is None else None  # fast shutdown: it disconnects clients
        server.stop()


@contextlib.contextmanager
def s3(folder: Path, bucket: str = "lab") -> Iterator[Server]:
    """An S3 server with an empty bucket. Its clients need its address and the environment AWS."""
    python, port = moto_environment(), free_port()
    folder.mkdir(parents=True)
    command = [python, "-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", str(port)]
    server = _start(f"http://127.0.0.1:{port}", command, folder / "log", {})
    script = f"import boto3; boto3.client('s3', endpoint_url={server.address!r}).create_bucket(Bucket={bucket!r})"
    make = [python, "-c", script]
    try:
        ready = lambda: subprocess.run(make, env=os.environ | AWS, capture_output=True).returncode == 0  # noqa: E731
        _wait(server, ready, folder / "log")
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def mlflow(folder: Path, database: str, artifacts: str, *, s3_address: str = "") -> Iterator[Server]:
    """MLflow's server over a database. It passes artifacts on to `artifacts`, for example `s3://lab/mlflow`."""
    port = free_port()
    folder.mkdir(parents=True)
    where = ["--backend-store-uri", database, "--artifacts-destination", artifacts]
    command = [sys.executable, "-m", "mlflow", "server", *where, "--host", "127.0.0.1", "--port", str(port), "--workers", "2"]
    off = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    server = _start(f"http://127.0.0.1:{port}", command, folder / "log", off | AWS | {"MLFLOW_S3_ENDPOINT_URL": s3_address})
    try:
        _wait(server, lambda: _answers(port), folder / "log")
        yield server
    finally:
        server.stop()


def moto_environment() -> Path:
    """The Python of an environment with moto. Makes the environment if there is none, in some 20 s from a package registry."""
    folder = Path(os.environ.get("FEDREPRO_MOTO", "") or PROJECT / ".pytest_cache" / "moto")
    python = folder / "bin" / "python"
    with lock(folder.with_suffix(".lock"), busy=lambda _: None):  # one of pytest's two processes makes it
        if not (folder / "bin" / "moto_server").exists():
            uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}") or "uv"
            subprocess.run([uv, "venv", "--quiet", "--clear", folder], check=True)
            subprocess.run([uv, "pip", "install", "--quiet", "--python", python, MOTO], check=True)
    return python


def free_port() -> int:
    """A port on which no process listens now."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def _start(address: str, command: Sequence[str | Path], log: Path, more: dict[str, str]) -> Server:
    with log.open("wb") as stream:
        process = subprocess.Popen(command, env=os.environ | more, stdout=stream, stderr=stream, start_new_session=True)
    return Server(address, process)


def _wait(server: Server, ready, log: Path) -> None:
    until = time.monotonic() + START_S
    while not ready():
        if server.process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"{server.address} did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)


def _answers(port: int) -> bool:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _user(name: str) -> dict[str, str]:
    """Arguments that start a process as this user if we are root, because PostgreSQL refuses to run as root."""
    return {"user": name, "group": name} if os.geteuid() == 0 else {}
