"""What an S3 server refuses, breaks off or does not answer: said once, nothing lost, and read when it can be."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources import remote_requests
from rltracer_sqlite.sources.base import LocatorError, SourceError
from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.sources.remote import RemoteRoot
from tests.indexing import rows, value
from tests.remote.s3_runs import ALL, ROOT, count, lines, open_run_of, problems, refresh
from tests.remote.s3_server import Fault, Respond, S3Server, refusing


def test_what_vanishes_is_kept_and_flagged(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    s3.put("my-run/step_2/train/all/traces.jsonl", lines(range(5, 8)))
    refresh(database)
    s3.delete(f"my-run/{ALL}")
    assert refresh(database).gone == [ALL]
    assert (count(database), value(database, "select count(*) from trajectories")) == (3, 8)


def truncating(times: int = 1_000_000) -> Fault:
    """Return a fault that breaks off the answer to a GET in the middle, so many times."""
    left = [times]

    def fault(environ: dict[str, Any], respond: Respond) -> Iterable[bytes] | None:
        if environ["REQUEST_METHOD"] != "GET" or "HTTP_RANGE" not in environ or not left[0]:
            return None
        left[0] -= 1
        first, last = map(int, environ["HTTP_RANGE"].removeprefix("bytes=").split("-"))
        respond("206 Partial Content", [("Content-Length", str(last - first + 1)), ("Connection", "close")])
        return [b"x" * ((last - first) // 2)]

    return fault


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (refusing("403 AccessDenied"), "access is denied"),
        (refusing("404 NoSuchKey"), "is not there any more"),
        (refusing("404 NoSuchBucket"), "is not there any more"),
        (refusing("500 InternalError"), "refused"),
        (truncating(), "cannot be read"),
    ],
    ids=["403", "404", "bucket", "500", "truncated"],
)
def test_a_file_that_cannot_be_read_stays_unread_until_it_can(
    s3: S3Server, database: Path, fault: Fault, sentence: str
) -> None:
    s3.put("my-run/step_1/train/all/traces.jsonl", lines(range(5)))
    refresh(database)
    s3.put("my-run/step_2/train/all/traces.jsonl", lines(range(5, 300), "x" * 1000))
    s3.requests.clear()
    with s3.failing(fault):
        refresh(database)
    assert len(s3.asked("GET")) < 40
    assert rows(database, "select state from shards order by path") == [("complete",), ("unread",)]
    [problem] = problems(database)
    assert sentence in problem
    assert "hush" not in problem
    assert "\n" not in problem
    refresh(database)
    assert (count(database), problems(database)) == (300, [])


def test_a_fault_in_the_middle_keeps_the_index_consistent(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(300), "x" * 1000))

    def fault(environ: dict[str, Any], respond: Respond) -> Iterable[bytes] | None:
        return refusing("403 AccessDenied")(environ, respond) if len(s3.asked("GET")) > 3 else None

    with s3.failing(fault):
        refresh(database)
    assert value(database, "select state from shards") == "unread"
    refresh(database)
    assert (count(database), value(database, "select count(distinct uid) from trajectories")) == (300, 300)


@pytest.mark.parametrize("fault", [refusing("503 SlowDown", times=1), truncating(1)], ids=["503", "truncated"])
def test_a_fault_that_passes_is_not_noticed(s3: S3Server, database: Path, fault: Fault) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    with s3.failing(fault):
        refresh(database)
    assert (count(database), problems(database)) == (5, [])


def test_a_server_that_does_not_answer_is_given_up(
    s3: S3Server, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from threading import Event

    s3.put(f"my-run/{ALL}", lines(range(5)))
    monkeypatch.setattr("rltracer_sqlite.sources.remote.TIMEOUT", 0.1)
    woken = Event()

    def fault(environ: dict[str, Any], respond: Respond) -> Iterable[bytes] | None:
        if "list-type" not in environ["QUERY_STRING"]:
            woken.wait(10)
        return None

    with s3.failing(fault):
        refresh(database)
        woken.set()
    assert "there was no answer in time" in problems(database)[0]


def test_a_server_that_is_gone_is_not_asked_for_every_file(s3: S3Server, database: Path) -> None:
    for step in range(1, 9):
        s3.put(f"my-run/step_{step}/train/all/traces.jsonl", lines([step]))
    with s3.failing(refusing("500 InternalError")):
        refresh(database)
    assert len(s3.asked("GET")) == 3 * remote_requests.ATTEMPTS
    assert value(database, "select count(*) from shards where state = 'unread'") == 8
    assert refresh(database).read_shards == 8
    assert count(database) == 8


def test_a_place_that_cannot_be_listed_changes_nothing(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    refresh(database)

    def fault(environ: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        respond("403 AccessDenied", [])
        return [b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"]

    with s3.failing(fault), pytest.raises(SourceError, match="s3://runs/my-run cannot be read: access is denied"):
        refresh(database)
    s3.delete(f"my-run/{ALL}")
    s3.delete("")
    with pytest.raises(SourceError, match="does not exist"):
        refresh(database)
    assert count(database) == 5
    with pytest.raises(LocatorError, match="not there any more"):
        open_run_of(database).load_trajectory(1)


def test_a_record_is_checked_against_what_was_indexed(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    refresh(database)
    s3.put(f"my-run/{ALL}", lines(reversed(range(5))))
    with pytest.raises(LocatorError, match="has changed since it was indexed"):
        open_run_of(database).load_trajectory(1)
    with open_shard(RemoteRoot(ROOT), ALL) as reader:
        assert json.loads(reader.pread(10_000, 0).split(b"\n")[0])["id"] == "t4"
