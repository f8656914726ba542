from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import jinja2
from datasette.database import Database, Results
from datasette.permissions import Resource
from datasette.url_builder import Urls
from datasette.utils.asgi import Request

_App = Callable[[dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]

class _Answer:
    """What the client returns: the part of httpx.Response that is used, by whatever name a line of Datasette has it."""

    status_code: int
    text: str
    def json(self) -> Any: ...

class DatasetteClient:
    async def request(
        self, method: str, path: str, *, avoid_path_rewrites: bool = ..., headers: Mapping[str, str] = ...
    ) -> _Answer: ...
    async def get(self, path: str) -> _Answer: ...

class Datasette:
    databases: dict[str, Database]
    config: dict[str, Any]  # of 1.0
    _metadata_local: dict[str, Any]  # of 0.65
    client: DatasetteClient
    @property
    def urls(self) -> Urls: ...
    def __init__(self, files: Sequence[str] = ..., **settings: Any) -> None: ...
    def app(self) -> _App: ...
    async def invoke_startup(self) -> None: ...
    def get_database(self, name: str | None = None, route: str | None = None) -> Database: ...
    def setting(self, key: str) -> Any: ...
    def absolute_url(self, request: Request, path: str) -> str: ...
    def plugin_config(self, plugin_name: str, database: str | None = None) -> Any: ...
    async def execute(
        self,
        db_name: str,
        sql: str,
        params: Mapping[str, Any] | Sequence[Any] | None = None,
        truncate: bool = False,
        custom_time_limit: int | None = None,
    ) -> Results: ...
    async def render_template(
        self,
        templates: str | Sequence[str] | jinja2.Template,
        context: Mapping[str, Any] | None = None,
        request: Request | None = None,
        view_name: str | None = None,
    ) -> str: ...

    # Of 0.65.
    async def permission_allowed(
        self,
        actor: Mapping[str, Any] | None,
        action: str,
        resource: str | tuple[str, str] | None = None,
        default: bool | None = False,
    ) -> bool | None: ...
    async def ensure_permissions(
        self, actor: Mapping[str, Any] | None, permissions: Sequence[str | tuple[str, str | tuple[str, str]]]
    ) -> None: ...

    # Of 1.0.
    async def allowed(
        self, *, action: str, resource: Resource | None = None, actor: Mapping[str, Any] | None = None
    ) -> bool: ...
    async def get_resource_metadata(self, database_name: str, resource_name: str) -> dict[str, str]: ...
    async def set_resource_metadata(self, database_name: str, resource_name: str, key: str, value: str) -> None: ...
    async def get_column_metadata(self, database_name: str, resource_name: str, column_name: str) -> dict[str, str]: ...
    async def set_column_metadata(
        self, database_name: str, resource_name: str, column_name: str, key: str, value: str
    ) -> None: ...
