"""The example source, judged by what stands in a file."""

from __future__ import annotations

from pathlib import Path

from rltracer_source_chatlog import ChatlogSource

from rltracer_sqlite.adapter import IndexedAdapter
from rltracer_sqlite.model import RLTracer

LOG = """\
# reward=1 step=3
user: How much is 6 times 7?
assistant: 42

# reward=0 step=3
user: How much is 6 times 7?
assistant: 41

"""


def test_a_log_can_be_indexed_and_read(tmp_path: Path) -> None:
    log, index = tmp_path / "run" / "a.chatlog", tmp_path / "index.sqlite"
    log.parent.mkdir()
    log.write_text(LOG)
    source = ChatlogSource()
    assert source.recognises(log.parent)
    adapter = IndexedAdapter(source, log.parent, index)
    (group,) = RLTracer(adapter).step(3).prompts()
    loaded = [reference.load() for reference in group.trajectories()]
    adapter.close()
    assert group.preview == "How much is 6 times 7?"
    assert [trajectory.metadata["reward"] for trajectory in loaded] == [1.0, 0.0]
    assert [trajectory.messages[-1]["content"] for trajectory in loaded] == ["42", "41"]


def test_a_log_that_grows_is_read_on(tmp_path: Path) -> None:
    log = tmp_path / "a.chatlog"
    log.write_text(LOG + "# reward=1 step=4\nuser: half a blo")
    source = ChatlogSource()
    (shard,) = source.shards(tmp_path)
    *_, reached = source.scan(tmp_path, shard)
    assert (reached.offset, reached.line, reached.waiting) == (len(LOG), 8, 34)
    log.write_text(LOG + "# reward=1 step=4\nuser: half a block\nassistant: no\n\n")
    entry, reached = source.scan(tmp_path, shard, reached)
    assert (entry.step, entry.line, reached.waiting) == (4, 9, 0)
