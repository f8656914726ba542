from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from datasette.app import Datasette
from datasette.utils.asgi import Request

class Facet:
    type: ClassVar[str | None]
    ds: Datasette
    request: Request
    database: str
    table: str | None
    sql: str
    params: Mapping[str, Any] | Sequence[Any]
    def get_configs(self) -> list[dict[str, Any]]: ...
    def get_facet_size(self) -> int: ...
    def get_querystring_pairs(self) -> list[tuple[str, str]]: ...
    async def get_columns(self, sql: str, params: Mapping[str, Any] | Sequence[Any] | None = None) -> list[str]: ...
    async def suggest(self) -> list[dict[str, Any]]: ...
    async def facet_results(self) -> tuple[list[dict[str, Any]], list[str]]: ...
