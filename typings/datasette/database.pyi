import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

_Made = TypeVar("_Made")

class QueryInterrupted(Exception): ...

class Results:
    rows: list[sqlite3.Row]
    truncated: bool
    @property
    def columns(self) -> list[str]: ...
    def first(self) -> sqlite3.Row | None: ...
    def single_value(self) -> Any: ...
    def __iter__(self) -> Iterator[sqlite3.Row]: ...
    def __len__(self) -> int: ...

class Database:
    name: str
    route: str
    path: str | None
    is_mutable: bool
    async def execute(
        self,
        sql: str,
        params: Mapping[str, Any] | Sequence[Any] | None = None,
        truncate: bool = False,
        custom_time_limit: int | None = None,
        page_size: int | None = None,
        log_sql_errors: bool = True,
    ) -> Results: ...
    async def execute_fn(self, fn: Callable[[sqlite3.Connection], _Made]) -> _Made: ...
    async def table_exists(self, table: str) -> bool: ...
    async def table_columns(self, table: str) -> list[str]: ...
