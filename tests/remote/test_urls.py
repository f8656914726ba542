"""What a URL may be, who allows it, and what is said of one that is not read."""

from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.remembered_roots import forget_root, remember_root, remembered_roots, roots_file
from rltracer_sqlite.roots import RootNotAllowed, Roots
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.base import SourceError
from rltracer_sqlite.sources.places import place
from rltracer_sqlite.sources.remote import RemoteRoot
from rltracer_sqlite.sources.remote_listing import status_of
from rltracer_sqlite.sources.remote_requests import canonical, redacted
from tests.layouts import append, message, trace


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://bucket/run", "s3://bucket/run"), ("S3://bucket//run/", "s3://bucket/run"), ("s3://b", "s3://b"),
        ("hf://datasets/me/data@main/run", "hf://datasets/me/data@main/run"), ("ssh://host:22/data", "ssh://host:22/data"),
        ("s3://bucket/a run/ü", "s3://bucket/a run/ü"),
    ],
)  # fmt: skip
def test_a_url_is_written_in_one_way(text: str, expected: str) -> None:
    root = place(text)
    assert str(root) == str(pickle.loads(pickle.dumps(root))) == expected


@pytest.mark.threat("T8")
@pytest.mark.parametrize(
    "text",
    [
        "file:///etc", "http://host/run", "simplecache::s3://bucket/run", "s3://bucket/a::b", "github://a:b@/x",
        "s3://key:hush@bucket/run", "ssh://me@host/run", "s3://bucket/../x", "s3://bucket/./x", "s3:///run", "s3://",
        "s3://bucket/run?versionId=hush", "s3://bucket/run#x", "s3://bucket/a\nb", "s3://bucket/a\\b",
        "s3://b/" + "x" * 3000,
    ],
)  # fmt: skip
def test_a_url_that_is_not_read_is_refused_without_repeating_a_secret(text: str) -> None:
    with pytest.raises(SourceError) as refused:
        canonical(text)
    assert "hush" not in str(refused.value)


def test_a_message_from_a_network_keeps_no_secret() -> None:
    text = "cannot reach http://me:hush@host:9000/b?X-Amz-Signature=hush2&x=1 'http://h/a?t=hush3' now"
    assert redacted(text) == "cannot reach http://…@host:9000/b?… 'http://h/a?…' now"


@pytest.mark.threat("T8")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://bucket/run", True), ("s3://bucket/run/step_1", True), ("S3://bucket//run", True),
        ("s3://bucket/run-2", False), ("s3://bucket", False), ("s3://other/run", False), ("gs://bucket/run", False),
        ("s3://bucket/run/../other", False), ("file:///etc", False), ("s3://k:hush@bucket/run", False),
        ("http://h", False),
    ],
)  # fmt: skip
def test_an_index_leads_to_urls_that_were_allowed_only(tmp_path: Path, url: str, expected: bool) -> None:
    remember_root(RemoteRoot("s3://bucket/run"))
    for roots in (Roots.for_database(tmp_path / "x.sqlite"), Roots.for_database(None, ["s3://bucket/run", "/data"])):
        if expected:
            assert str(roots.check(url)).startswith("s3://bucket/run")
        else:
            with pytest.raises(RootNotAllowed) as refused:
                roots.check(url)
            assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("info", "status"),
    [
        ({"size": 3, "mtime": 5.5}, (3, 5_500_000_000)),
        ({"size": 3, "LastModified": datetime(1970, 1, 1, 0, 0, 7, tzinfo=timezone.utc)}, (3, 7_000_000_000)),
        ({"size": 3, "updated": "1970-01-01T00:00:07.000Z"}, (3, 7_000_000_000)),
        ({"size": 3}, (3, 0)),
        ({"size": 1 << 80, "mtime": 1e30}, (1 << 62, 1 << 62)),
        ({"size": -5, "mtime": -1, "updated": "soon"}, (0, 0)),
        ({"type": "link", "size": 9}, (-1, 0)),
    ],
)
def test_what_a_server_says_of_a_file(info: dict[str, Any], status: tuple[int, int]) -> None:
    assert status_of(info) == status


def test_an_etag_tells_two_versions_of_a_second_apart() -> None:
    times = {status_of({"size": 1, "mtime": 7, "ETag": etag})[1] for etag in ("a", "b")}
    assert len(times) == 2
    assert {time // 1_000_000_000 for time in times} == {7}


@pytest.mark.parametrize("configured", ["/data", ["http://host"], ["s3://key:hush@bucket"], [5], [None], []])
def test_a_wrong_configuration_allows_nothing(configured: Any, tmp_path: Path) -> None:
    roots = Roots.for_database(tmp_path / "x.sqlite", configured)
    for url in (tmp_path, "http://host", "s3://bucket/run", "/etc"):
        with pytest.raises(RootNotAllowed):
            roots.check(url)


def test_a_url_is_remembered_once_and_forgotten(tmp_path: Path) -> None:
    for root in (RemoteRoot("s3://bucket/run/"), RemoteRoot("s3://bucket/run"), tmp_path):
        remember_root(root)
    with roots_file().open("a") as file:
        file.write("http://not-read\n")
    assert remembered_roots() == [RemoteRoot("s3://bucket/run"), tmp_path]
    assert forget_root(RemoteRoot("s3://bucket/run"))
    assert remembered_roots() == [tmp_path]


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(SourceError, match=r"pip install 'datasette-rltracer\[remote\]'"):
        RemoteRoot("s3://bucket/run").exists()


def test_a_url_that_was_made_a_path_is_pointed_out() -> None:
    with pytest.raises(SourceError, match="A URL is given as text"):
        source_for(Path("s3://bucket/run"))


def test_local_runs_import_no_network(tmp_path: Path) -> None:
    append(
        tmp_path / "run" / "step_1/train/all/traces.jsonl",
        trace([message("user", "6 * 7?"), message("assistant", "42")]),
    )
    code = (
        "import sys; from rltracer_sqlite.cli import main\n"
        f"sys.argv[1:] = ['index', {str(tmp_path / 'x.sqlite')!r}, {str(tmp_path / 'run')!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"from rltracer_sqlite import open_run; open_run({str(tmp_path / 'x.sqlite')!r}).load_trajectory(1)\n"
        "print([name for name in ('fsspec', 's3fs', 'asyncio') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"
