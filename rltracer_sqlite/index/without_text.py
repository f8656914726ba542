"""Trajectories that have no text for want of a tokenizer, and whose tokenizer the files of their run name."""

from __future__ import annotations

import sqlite3

from ..amounts import plural
from ..sources.prime_rl.layout import TOKEN_LAYOUTS

MOST_COUNTED = 100_000  # trajectories, for a page: as many as take a tenth of a second
OF_TOKENS = ", ".join(f"'{layout}'" for layout in TOKEN_LAYOUTS)
# How many trajectories of a run `r` are token ids without a tokenizer, up to one more than are counted. Only files
# whose first or last trajectory is one are looked through: a page has no time for all rows of a run.
WITHOUT_TEXT = f"""
(
    select count(*) from (
        select 1 from {{schema}}.shards f cross join {{schema}}.trajectories t on t.shard_id = f.id
        where f.run_id = r.id and r.tokenizer is null and (r.source <> 'prime-rl' or f.layout in ({OF_TOKENS}))
            and 'token_ids' in (
                (select content_kind from {{schema}}.trajectories where shard_id = f.id order by id limit 1),
                (select content_kind from {{schema}}.trajectories where shard_id = f.id order by id desc limit 1)
            )
            and t.content_kind = 'token_ids'
        limit {MOST_COUNTED + 1}
    )
) as without_text
"""


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


def needs_tokenizer(count: int) -> str:
    """Return that so many trajectories have no text, and what is missing."""
    some = plural(count, "trajectory") if count <= MOST_COUNTED else f"more than {MOST_COUNTED:,} trajectories"
    return f"the text of {some} needs a tokenizer"


def models_named(connection: sqlite3.Connection, run_id: int) -> list[str]:
    """Return the models, or tokenizers, that files beside the rollouts name, each once, as they are recorded."""
    from ..sources.table.mapping import WHOSE_TOKENIZER

    rows = connection.execute(
        """
        select distinct substr(p.reason, instr(p.reason, :whose) + length(:whose))
        from problems p join shards s on s.id = p.shard_id
        where s.run_id = :run and s.state = 'aside' and instr(p.reason, :whose) order by p.id limit 10
        """,
        {"run": run_id, "whose": WHOSE_TOKENIZER},
    )
    return [name for (name,) in rows]
