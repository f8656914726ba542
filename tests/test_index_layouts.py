"""Every layout, indexed and read back: counts, places, annotations and messages are those that were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite import PrimeRLAdapter, RLTracer
from tests.indexing import index, rows, value
from tests.layouts import LAYOUTS, Expected


@pytest.fixture(params=sorted(LAYOUTS))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Expected:
    return LAYOUTS[request.param](tmp_path / "run")


def test_rows_are_those_that_were_written(written: Expected, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    done = index(database, written.root)
    found = rows(
        database,
        """
        select t.uid, t.branches, t.reward, t.split, t.step, s.path, t.line, t.byte_offset, t.byte_length, t.item,
            ifnull(t.effective, 0), t.ship_step, t.advantage
        from trajectories t join shards s on s.id = t.shard_id where t.uid <> ifnull(t.episode_id, '')
        """,
    )
    if any("_rollouts" in row[5] for row in found):  # these rows say it themselves, by is_filtered
        found = [(*row[:10], int(written.by_uid[row[0]]["effective"]), *row[11:]) for row in found]
    names = ("branches", "reward", "split", "step", "file", "line", "offset", "length", "item", "effective")
    wanted = {uid: tuple(facts[name] for name in names) for uid, facts in written.by_uid.items()}
    assert {row[0]: pytest.approx(row[1:11]) for row in found} == wanted
    for uid, *_, ship_step, advantage in found:
        assert advantage == pytest.approx(written.by_uid[uid]["advantage"])
        if written.by_uid[uid]["ship_step"] is not None:
            assert ship_step == written.by_uid[uid]["ship_step"]
    assert len(done.waiting) == written.torn_tails


def test_failed_episodes_are_rows_without_turns(written: Expected, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    index(database, written.root)
    failed = rows(database, "select uid, turns, ok, reward, success from trajectories where uid = episode_id")
    assert sorted(failed) == sorted((uid, 0, 0, None, None) for uid in written.failed)


def test_statistics_are_those_of_the_rows(written: Expected, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    index(database, written.root)
    total = written.trajectories + written.failed_episodes
    assert value(database, "select sum(trajectories) from prompt_groups") == total
    assert value(database, "select sum(trajectories) from steps") == total
    assert value(database, "select coalesce(sum(reward), 0) from trajectories") == pytest.approx(written.reward_sum)
    different = """
        select g.id from prompt_groups g join trajectories t on t.prompt_group_id = g.id group by g.id
        having g.scored <> count(t.success) or g.successes <> coalesce(sum(t.success), 0)
            or abs(ifnull(g.reward_mean, 0) - ifnull(avg(t.reward), 0)) > 1e-9
    """
    assert rows(database, different) == []


def test_messages_are_those_of_the_record(written: Expected, tmp_path: Path) -> None:
    adapter = PrimeRLAdapter(written.root, index_path=tmp_path / "x.sqlite")
    seen = set()
    for step in RLTracer(adapter).steps():
        for group in step.prompts():
            for reference in group.trajectories():
                loaded = reference.load()
                uid = loaded.metadata["uid"]
                seen.add(uid)
                if uid in written.by_uid:
                    assert [plain(message) for message in loaded.messages] == [
                        plain(message) for message in written.by_uid[uid]["messages"]
                    ]
                    assert len(loaded.branches) == written.by_uid[uid]["branches"]
    adapter.close()
    assert seen == {*written.by_uid, *written.failed}


def plain(message: dict[str, Any]) -> tuple[Any, ...]:
    """Return what must be equal in a recorded and in a normal message, read independently of the library."""
    import json

    calls = []
    for recorded in message.get("tool_calls") or ():
        call = json.loads(recorded) if isinstance(recorded, str) else recorded
        inner = call.get("function") or call
        calls.append((call.get("id"), inner["name"], inner["arguments"]))
    return message["role"], message.get("content"), message.get("reasoning_content"), calls, message.get("tool_call_id")
