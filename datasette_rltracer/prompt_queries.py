"""What the page of a prompt asks the index: the prompt, its steps as the terminal lists them, and what was read."""

from __future__ import annotations

from rltracer_sqlite.index.among import Among
from rltracer_sqlite.index.over_steps import over_steps_query
from rltracer_sqlite.index.states import STATES

from .queries import Query

MOST_KINDS = 50
MOST_TRIES = 5  # records that are tried for the prompt where the best and the worst cannot be read

PROMPT = """
select
    p.id, p.key, p.preview, r.id as run_id, r.name as run, r.success_path, r.success_threshold
from prompts p join runs r on r.id = :run
where p.id = :prompt and exists (select 1 from prompt_groups where prompt_id = :prompt and run_id = :run)
"""
# The splits and environments that a prompt is in.
KINDS = f"""
select split, env, count(*) as prompt_groups, count(*) over () as listed
from prompt_groups where prompt_id = :prompt and run_id = :run group by split, env
order by split is not 'train', split, env limit {MOST_KINDS}
"""
RUN_STATES = f"select * from ({STATES.format(schema='main').strip()}) where id = :run"
READABLE = f"""
select t.id from prompt_groups g cross join trajectories t on t.prompt_group_id = g.id
where g.prompt_id = :prompt and g.run_id = :run and t.gone = 0 limit {MOST_TRIES}
"""


def page_queries(run: int, prompt: int, among: Among) -> list[Query]:
    """Return the queries for a prompt, the splits it is in, its steps, what of its run was read, and its records."""
    asked = {"run": run, "prompt": prompt}
    texts = (PROMPT, KINDS, RUN_STATES, READABLE)
    head, kinds, states, readable = (Query(text, asked) for text in texts)
    return [head, kinds, Query(*over_steps_query(run, [prompt], among)), states, readable]
