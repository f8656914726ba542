"""Trajectories that have no text for want of a tokenizer, and whose tokenizer the files of their run name."""

from __future__ import annotations

import sqlite3

from ..sources.prime_rl.layout import TOKEN_LAYOUTS
from ..sources.table.mapping import WHOSE_TOKENIZER


def count_without_text(connection: sqlite3.Connection, run_id: int) -> int:
    """Return how many trajectories of a run are token ids that no tokenizer has made text of."""
    marks = ", ".join("?" * len(TOKEN_LAYOUTS))
    # By shards, which lie together; prime-rl's records outside of token files hold text, and need no look.
    sql = f"""
        select count(*)
        from runs r join shards s on s.run_id = r.id cross join trajectories t on t.shard_id = s.id
        where r.id = ? and (r.source <> 'prime-rl' or s.layout in ({marks})) and t.content_kind = 'token_ids'
    """
    return int(connection.execute(sql, (run_id, *TOKEN_LAYOUTS)).fetchone()[0])


def models_named(connection: sqlite3.Connection, run_id: int) -> list[str]:
    """Return the models, or tokenizers, that files beside the rollouts name, each once, as they are recorded."""
    rows = connection.execute(
        """
        select distinct substr(p.reason, instr(p.reason, :whose) + length(:whose))
        from problems p join shards s on s.id = p.shard_id
        where s.run_id = :run and s.state = 'aside' and instr(p.reason, :whose) order by p.id limit 10
        """,
        {"run": run_id, "whose": WHOSE_TOKENIZER},
    )
    return [name for (name,) in rows]
