"""The values of a row by the roles that a mapping gives to its columns, and what of them does not fit."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..lines import NOT_FINITE
from ..values import MAX_TEXT, integer_in_text, number
from .mapping import Role, Shape
from .rows import Row, json_text, kind_of

BOOLEANS = {"True": 1.0, "False": 0.0}
MAX_LIKE = 300  # characters of a text that a part is taken from


class RoleValues:
    """The values that the roles of a shape find in a row, with remarks on those that do not fit."""

    def __init__(self, row: Row, shape: Shape) -> None:
        self.row, self.shape = row, shape
        self.remarks: list[str] = []

    def get(self, name: str) -> Any:
        role = self.shape.roles.get(name)
        return self.resolve(role) if role else None

    def resolve(self, role: Role) -> Any:
        if role.present is not None:
            return role.then if self.row.has(role.present) else role.otherwise
        value = role.constant
        for column in role.columns:
            if (found := self.row.get(column)) is not None:
                value = found
                break
        if role.total and isinstance(value, list):
            numbers = [number(one) for one in value]
            value = None if None in numbers or not numbers else sum(one for one in numbers if one is not None)
        if role.like and value is not None:
            found = role.like.find(str(value)[:MAX_LIKE], whole=True)
            value = found["part"] if found else None
        return role.values.get(str(value), value) if role.values else value

    def is_recorded(self, name: str) -> bool:
        """Say whether the row has a column for a role, also where nothing is in it."""
        role = self.shape.roles.get(name)
        return role is not None and any(self.row.has_place(column) for column in role.columns)

    def number(self, role: Role, name: str) -> float | None:
        value = self.resolve(role)
        if isinstance(value, str):
            written = BOOLEANS.get(value, json_text(value) if len(value) <= MAX_TEXT else None)
            value = value if written is None and value.strip() else written
        finite = number(value)
        if finite is None and value is not None and not isinstance(value, float):
            column = role.columns[0] if role.columns else name
            found = kind_of(value)
            odd = NOT_FINITE if found == "number" else f"expected a number, found {found}"
            self.remarks.append(f"column {column}: {odd}")
        if value is None:
            self._remark_on_numbers(role)
        return finite

    def truth(self) -> Any:
        """Return the expected answer as it is recorded, None where none is or it is a number beyond all range."""
        role = self.shape.roles.get("truth")
        value = self.resolve(role) if role else None
        if role and value is None:
            self._remark_on_numbers(role)
        return value

    def _remark_on_numbers(self, role: Role) -> None:
        """Say of a number that its column holds and that is none of a double, such as 1e999, that it is not taken."""
        for column in role.columns:
            if column in self.row.cells and self.row.kind(column) == "number" and self.row.get(column) is None:
                self.remarks.append(f"column {column}: {NOT_FINITE}")

    def number_at(self, name: str) -> float | None:
        role = self.shape.roles.get(name)
        return self.number(role, name) if role else None

    def integer_at(self, name: str) -> int | None:
        value = self.get(name)
        found = integer_in_text(value)
        if found is None and value is not None:
            self.remarks.append(
                f"column {self.shape.roles[name].columns[:1]}: expected an integer, found {value!r:.40}"
            )
        return found

    @cached_property
    def used(self) -> frozenset[str]:
        """Return the columns whose whole value a role has taken, and those that are never values of their own."""
        taken = [
            next((column for column in role.columns if self.row.kind(column) != "null"), role.columns[0])
            for role in self.shape.roles.values()
            if role.columns and not role.like
        ]
        return self.shape.used.union(taken)
