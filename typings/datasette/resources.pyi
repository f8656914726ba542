# Of 1.0.
from datasette.permissions import Resource

class DatabaseResource(Resource):
    def __init__(self, database: str) -> None: ...

class TableResource(Resource):
    def __init__(self, database: str, table: str) -> None: ...
