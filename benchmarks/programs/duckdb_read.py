"""The prompts of every step and their success, asked of the files with DuckDB and the columns written by hand."""

from __future__ import annotations

import json
import sys

import duckdb

COLUMNS = """{
    id: 'varchar',
    nodes: 'struct(message struct(role varchar, content varchar))[]',
    metrics: 'struct(correct_final_label double)'
}"""
QUESTION = """
with records as (
    select
        regexp_extract(filename, 'step_(\\d+)', 1)::int as step,
        regexp_extract(filename, '/(train|eval)/', 1) as split,
        list_filter(nodes, lambda node: node.message.role = 'user')[1].message.content as prompt,
        metrics.correct_final_label as label
    from read_json(?, format = 'newline_delimited', filename = true, maximum_object_size = 67108864, columns = COLUMNS)
)
select step, split, count(*), count(label), coalesce(sum((label >= 1)::int), 0)::int
from records group by step, split, prompt
""".replace("COLUMNS", COLUMNS)


if __name__ == "__main__":
    rows = duckdb.execute(QUESTION, [sys.argv[1:]]).fetchall()
    print(json.dumps({"answer": sorted(map(list, rows))}))
