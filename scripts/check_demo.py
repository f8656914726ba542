"""Serve the demo with the Datasette of this environment and ask for a trajectory page over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

WAIT_SECONDS = 60


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).parent / "rltracer"), "demo", folder]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            address = next(line.split()[0] for line in server.stdout or () if line.startswith("http"))
            page = fetch(trajectory_page(address))
            assert "<article" in page, "the trajectory page shows no messages"
        finally:
            server.terminate()
            server.wait()
    print(f"demo: a trajectory page answered at {address}")


def trajectory_page(address: str) -> str:
    """Return the address of the page of some trajectory of the demo, whose overview is at `address`."""
    base, database = address.rstrip("/").split("/-/rltracer/")
    rows = json.loads(fetch(f"{base}/{database}/trajectories.json?_shape=array&_size=1&turns__gte=2"))
    return f"{base}/-/rltracer/{database}/trajectory/{rows[0]['id']}"


def fetch(address: str) -> str:
    """Return the text behind an address, waiting for the server to come up."""
    for _ in range(WAIT_SECONDS * 10):
        try:
            with urllib.request.urlopen(address, timeout=WAIT_SECONDS) as response:
                return str(response.read().decode())
        except urllib.error.HTTPError:
            raise
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{address} did not answer")


if __name__ == "__main__":
    main()
