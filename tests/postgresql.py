"""A real PostgreSQL server for tests."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest


def binaries() -> Path:
    """The folder of PostgreSQL's programs, the newest."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    return max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), default=Path("/none/initdb")).parent


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def postgresql(tmp_path: Path) -> Iterator[str]:
    """The address of a server on loopback, which ends with the test; root starts it as somebody else."""
    if not (binaries() / "initdb").is_file():
        pytest.skip("no PostgreSQL here: see scripts/install-postgresql")
    home = Path(tempfile.mkdtemp())  # where others than root can go
    who = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    folder, programs, at = home / "cluster", binaries(), port()
    if who:
        shutil.chown(home, **who)
    initdb = [programs / "initdb", "-D", folder, "-A", "trust", "-U", "degem", "-N"]
    subprocess.run(initdb, check=True, capture_output=True, cwd="/", **who)
    command = [programs / "postgres", "-D", folder, "-h", "127.0.0.1", "-p", str(at), "-k", ""]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **who)
    address = f"postgresql://degem:secret@127.0.0.1:{at}/postgres"
    try:
        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(address).close()
                break
            except psycopg.OperationalError:
                assert server.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < until, (tmp_path / "log").read_text()
                time.sleep(0.05)
        yield address
    finally:
        server.send_signal(signal.SIGINT)  # at once, whoever is connected
        server.wait(60)
        shutil.rmtree(home)
