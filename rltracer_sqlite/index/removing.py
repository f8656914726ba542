"""Taking a run out of an index."""

from __future__ import annotations

import sqlite3

from .columns import Columns

# In an order in which no row is left that refers to one which is gone.
OF_RUN = ("annotations", "trajectories", "prompt_groups", "step_values", "steps", "shards")


def delete_run(connection: sqlite3.Connection, run_id: int) -> None:
    """Delete every row of a run, and the prompts that no other run has, inside the caller's transaction.

    Numbers of runs, prompt groups and trajectories are never used again, so that no old address leads to another one.
    """
    connection.execute("delete from problems where shard_id in (select id from shards where run_id = ?)", (run_id,))
    for table in OF_RUN:
        connection.execute(f"delete from {table} where run_id = ?", (run_id,))
    connection.execute("delete from runs where id = ?", (run_id,))
    connection.execute(
        """
        delete from prompts where not exists (select 1 from prompt_groups g where g.prompt_id = prompts.id)
        """
    )
    Columns(connection).recount()
