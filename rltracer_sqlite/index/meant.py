"""Which prompts of a run are meant by a number, by the beginning of a key or by the beginning of a text."""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

from .among import ALL, Among
from .lists import table_rows, with_key
from .queries import row_number

LONGEST_NUMBER = 7  # digits that are always a prompt's number; lists show eight characters of a key
LONGEST_TEXT = 200  # characters of a text that are compared with the previews
NUMBER, KEY, TEXT = "number", "key", "text"


class Meant(NamedTuple):
    """The prompts that a text means: `by` which of its meanings, and each with number, key, split and preview."""

    by: str
    prompts: list[dict[str, Any]]
    other_keys: list[str]  # of prompts whose keys begin with the same digits, where it is meant by the number

    @property
    def keys(self) -> set[str]:
        """The keys of the groups, as `list_prompts` gives them."""
        return {prompt["prompt"] for prompt in self.prompts}

    @property
    def numbers(self) -> list[int]:
        """The numbers of the prompts."""
        return list(dict.fromkeys(prompt["prompt_id"] for prompt in self.prompts))


def prompts_meant(
    connection: sqlite3.Connection, run_id: int, asked: str, step: int | None = None, among: Among = ALL
) -> Meant:
    """Return which prompts of a step, or of all steps (None), are meant: by number, else by key, else by text.

    Up to seven digits are a number and nothing else, so that the number of a prompt which a step has not never leads to
    another prompt.
    """
    found = list(_candidates(connection, run_id, asked, step, among))
    number = row_number(asked)
    by_number = [row for row in found if row["prompt_id"] == number]
    if number is not None and len(asked) <= LONGEST_NUMBER:
        return Meant(NUMBER, by_number, [])
    by_key = [row for row in found if asked and row["prompt"].startswith(asked)]
    if by_number:
        others = dict.fromkeys(row["prompt"][:12] for row in by_key if row["prompt_id"] != number)
        return Meant(NUMBER, by_number, list(others))
    if by_key:
        return Meant(KEY, by_key, [])
    return Meant(TEXT, [row for row in found if row["begins"]], [])


def runs_of_prompt(connection: sqlite3.Connection, number: int) -> list[str]:
    """Return the names of the runs that have the prompt of this number."""
    sql = """
        select name from runs where id in (select run_id from prompt_groups where prompt_id = ?) order by id
    """
    return [name for (name,) in connection.execute(sql, (number,))]


def _candidates(
    connection: sqlite3.Connection, run_id: int, asked: str, step: int | None, among: Among
) -> list[dict[str, Any]]:
    key = asked.partition(":")[0].partition("@")[0][:64]
    rows = table_rows(
        connection,
        f"""
        select distinct p.id as prompt_id, p.key, p.task, g.split, p.preview,
            :text <> '' and lower(substr(p.preview, 1, length(:text))) = lower(:text) as begins
        from prompt_groups g join prompts p on p.id = g.prompt_id
        where g.run_id = :run and (:step is null or g.step = :step) and {among.condition("g")}
            and (p.id = :number or p.key between :first and :last or begins)
        order by p.id, g.split
        """,
        among.asked(
            run=run_id,
            step=step,
            number=row_number(asked),
            first=key,
            last=f"{key}\U0010ffff",
            text=" ".join(asked.rstrip("…").split())[:LONGEST_TEXT],
        ),
    )
    return list(map(with_key, rows))
