"""`rltracer serve`: its options, its index, and the server that it starts."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import click
import pytest
from click.testing import CliRunner

from rltracer_sqlite.browse.process import safe_environment
from rltracer_sqlite.cli.serve import (
    SETTINGS,
    arguments,
    browse_config,
    chosen_port,
    command,
    is_loopback,
    prepare_index,
    shown_host,
)
from rltracer_sqlite.index.database import IndexFileError
from rltracer_sqlite.on_demand import cached_index
from tests.indexing import value
from tests.layouts import append, message, trace
from tests.small_runs import write_step


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "Give the folder of your runs"),
        (["--browse-root", "x", "--run", "y"], "or a single run with --run"),
        (["x", "--browse-root", "y"], "Give the folder of your runs"),
        (["--browse-root", "nothing-here"], "does not exist"),
        (["--run", "nothing-here"], "does not exist"),
        (["--browse-root", ".", "--tokenizer", "nothing-here"], "does not exist"),
        (["--browse-root", ".", "--port", "70000"], "--port"),
    ],
)
def test_what_cannot_be_served_is_said(options: list[str], words: str) -> None:
    result = CliRunner().invoke(command, options)
    assert result.exit_code != 0
    assert words in result.output


def test_the_index_is_in_the_cache_and_not_in_the_run(tmp_path: Path) -> None:
    write_step(tmp_path / "run", 1, "a")
    before = sorted(path for path in tmp_path.rglob("*"))
    file = prepare_index(tmp_path, None)
    assert file == cached_index(tmp_path).absolute()
    assert sorted(path for path in tmp_path.rglob("*")) == before
    assert value(file, "pragma journal_mode") == "wal"


def test_a_given_index_is_used_and_kept(tmp_path: Path) -> None:
    assert prepare_index(tmp_path, tmp_path / "new/x.sqlite") == tmp_path / "new/x.sqlite"
    (tmp_path / "other.sqlite").write_bytes(b"something else, and longer than a hundred bytes " * 3)
    with pytest.raises(IndexFileError, match="not a SQLite database"):
        prepare_index(tmp_path, tmp_path / "other.sqlite")
    assert (tmp_path / "other.sqlite").read_bytes().startswith(b"something else")


def test_the_configuration_names_the_folder_and_the_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    config = browse_config(tmp_path / "runs", tmp_path / "my.sqlite", tmp_path / "tokenizer.json", True)
    plugin = config["plugins"]["datasette-rltracer"]
    assert plugin["roots"] == [str(tmp_path / "runs"), str(tmp_path / "tokenizer.json")]
    assert plugin["browse"] == {
        "root": str(tmp_path / "runs"),
        "database": "my",
        "tokenizer": str(tmp_path / "tokenizer.json"),
        "fts": True,
        "only_here": True,
    }


def test_the_server_gets_the_right_settings(tmp_path: Path) -> None:
    line = arguments(tmp_path / "x.sqlite", tmp_path / "m.json", "127.0.0.1", 8123)
    assert line[:2] == ["serve", str(tmp_path / "x.sqlite")]
    assert line[line.index("--host") + 1] == "127.0.0.1"
    for name, setting in SETTINGS.items():
        place = line.index(name)
        assert line[place - 1 : place + 2] == ["--setting", name, setting]


def test_the_usual_port_or_a_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with pytest.raises(click.ClickException, match=f"Cannot listen on 127.0.0.1:{number}: "):
            chosen_port("127.0.0.1", number)  # its address would be somebody else's
        assert chosen_port("127.0.0.1", 0) not in (0, number)
        assert chosen_port("127.0.0.1", None) > 0
    assert chosen_port("127.0.0.1", number) == number


@pytest.mark.threat("T50")
@pytest.mark.parametrize(
    ("host", "only_here"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("192.168.1.5", False), ("example.org", False)],
)  # fmt: skip
def test_who_can_reach_an_address(host: str, only_here: bool) -> None:
    assert is_loopback(host) is only_here
    assert shown_host(host) == (f"[{host}]" if ":" in host else host)


def test_a_real_server_reads_a_step_when_it_is_opened(tmp_path: Path) -> None:
    file = write_step(tmp_path / "runs/first", 3, "a question", "another")
    port = chosen_port("127.0.0.1", 0)
    line = "from rltracer_sqlite.cli.serve import main; main()"
    options = ["--browse-root", str(tmp_path / "runs"), "--port", str(port), "--index", str(tmp_path / "i.sqlite")]
    options += ["--watch", "--every", "0.1"]
    server = subprocess.Popen(
        [sys.executable, "-c", line, *options],
        env=safe_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}/-/rltracer"
        assert server.stdout
        assert server.stdout.readline().decode().startswith(f"{address}  (")
        with urlopen(address) as response:  # it answers as soon as its address is printed
            assert "first" in response.read().decode()
        page = opened(f"{address}/i/browse/first/3?waited=1", until="a question")
        assert "prompt group" in page
        append(file, trace([message("user", "a later question")], id="later"))
        write_step(tmp_path / "runs/first", 4, "of the next step")
        assert "a later question" in opened(f"{address}/i/step/1/3", until="a later question")
        assert "of the next step" in opened(f"{address}/i/step/1/4", until="of the next step")
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert server.returncode == 0
    assert is_free(port)  # the server ends with the command
    assert json.dumps(sorted(path.name for path in (tmp_path / "runs").iterdir())) == '["first"]'


def test_the_demo_prints_the_address_of_its_overview(demo: Path) -> None:
    index = str(demo / "x.sqlite")
    line = f"from pathlib import Path; from rltracer_sqlite.cli.demo import serve; serve(Path({index!r}), 0)"
    server = subprocess.Popen(
        [sys.executable, "-c", line], env=safe_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert server.stdout
        address = server.stdout.readline().decode().partition("  (")[0]
        assert address.endswith("/-/rltracer/x/")
        assert "prime-rl" in opened(address)
    finally:
        server.terminate()
        server.communicate(timeout=60)


@pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX systems")
@pytest.mark.parametrize(
    ("serving", "name"), [("serve", "SIGTERM"), ("serve", "SIGINT"), ("serve", "SIGHUP"), ("demo", "SIGINT")]
)
def test_a_signal_to_the_command_alone_ends_it_and_its_server(tmp_path: Path, serving: str, name: str) -> None:
    if signal.getsignal(getattr(signal, name)) == signal.SIG_IGN and name == "SIGHUP":
        pytest.skip("the tests run under nohup, which the server inherits and heeds")
    write_step(tmp_path / "runs/first", 3, "a question")
    port = chosen_port("127.0.0.1", 0)
    of = {"serve": [tmp_path / "runs", "--index", tmp_path / "i.sqlite"], "demo": [tmp_path / "demo"]}
    server = subprocess.Popen(
        [sys.executable, "-c", "from rltracer_sqlite.cli import main; main()", serving, *of[serving], f"--port={port}"],
        env=safe_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True,
    )  # fmt: skip
    try:
        assert server.stdout
        while "http://" not in (line := server.stdout.readline()):
            assert line, server.communicate()
        server.send_signal(getattr(signal, name))
        _, complained = server.communicate(timeout=60)  # whatever it started has let go of these
    finally:
        server.kill()
    assert (server.returncode, "Traceback" in complained) == (0, False)
    assert is_free(port)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def opened(address: str, until: str = "", seconds: float = 60) -> str:
    """Return a page, asked for until it is there and holds some words."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urlopen(address) as response:
                page = str(response.read().decode())
            if until in page:
                return page
        except OSError:
            page = ""
        assert time.monotonic() < end, page[:500]
        time.sleep(0.2)
