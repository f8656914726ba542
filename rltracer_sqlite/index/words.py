"""What the full text of an index, where it has one, is told of trajectories that go: see `search.tables`."""

from __future__ import annotations

import sqlite3

DIGESTS = "trajectories_text_digests"  # a row for each trajectory whose words were read


def forget_words(connection: sqlite3.Connection, trajectory_ids: list[int]) -> None:
    """Count trajectories no longer among those that can be searched, inside the caller's transaction."""
    found = connection.execute("select 1 from sqlite_master where type = 'table' and name = ?", (DIGESTS,)).fetchone()
    if trajectory_ids and found:
        ids = ((identity,) for identity in trajectory_ids)
        connection.executemany(f"delete from {DIGESTS} where trajectory_id = ?", ids)
