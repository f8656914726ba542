"""The pickle inside a torch file, read by an interpreter that can build lists, dictionaries and tensors only.

Nothing is imported and nothing is called: the few names that torch.save writes for tensors are known, and anything
else is refused. Opcodes as documented in Python's pickletools; tensors as in torch/_utils.py, `_rebuild_tensor_v2`.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass
from typing import Any

MAX_VALUES = 10_000_000

ELEMENTS = {
    "DoubleStorage": "d",
    "FloatStorage": "f",
    "HalfStorage": "e",
    "LongStorage": "q",
    "IntStorage": "i",
    "ShortStorage": "h",
    "CharStorage": "b",
    "ByteStorage": "B",
    "BoolStorage": "?",
    "BFloat16Storage": "bfloat16",
}
"""The storages of torch -> the struct format of one element."""

REBUILD, ORDERED = "torch._utils _rebuild_tensor_v2", "collections OrderedDict"
NAMES = {REBUILD, ORDERED, *(f"torch {storage}" for storage in ELEMENTS)}


class PickleRefused(ValueError):
    """A pickle that holds something else than lists and dictionaries of tensors and scalars."""


@dataclass(frozen=True)
class Name:
    """A name that the pickle refers to; never imported."""

    name: str


@dataclass(frozen=True)
class Storage:
    """A block of numbers: its key in the archive and the format of an element."""

    key: str
    element: str
    count: int


@dataclass(frozen=True)
class TensorView:
    """Where a tensor's numbers are in a storage. Offsets and strides in elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_tensors(data: bytes) -> Any:
    """Return what the pickle of a torch file describes. Raises PickleRefused."""
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                return machine.pop()
            machine.step(opcode.name, argument)
    except PickleRefused:
        raise
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, MemoryError) as error:
        raise PickleRefused(f"its pickle is damaged ({error or type(error).__name__})") from None
    raise PickleRefused("its pickle has no end")


class _Machine:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []  # how much the stack held at each mark that is still open
        self.memo: dict[int, Any] = {}
        self.steps = 0

    def pop(self) -> Any:
        return self.stack.pop()

    def step(self, name: str, argument: Any) -> None:
        self.steps += 1
        if self.steps > MAX_VALUES:
            raise PickleRefused("its pickle is too long")
        match name:
            case "PROTO" | "FRAME":
                pass
            case "MARK":
                self.marks.append(len(self.stack))
            case "EMPTY_LIST":
                self.stack.append([])
            case "EMPTY_DICT":
                self.stack.append({})
            case "EMPTY_TUPLE":
                self.stack.append(())
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                self.stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[name])
            case "BININT" | "BININT1" | "BININT2" | "LONG1" | "BINFLOAT" | "BINUNICODE" | "SHORT_BINUNICODE":
                self.stack.append(argument)
            case "BINPUT" | "LONG_BINPUT":
                self.memo[argument] = self.stack[-1]
            case "MEMOIZE":
                self.memo[len(self.memo)] = self.stack[-1]
            case "BINGET" | "LONG_BINGET":
                self.stack.append(self.memo[argument])
            case "GLOBAL":
                self._name(argument)
            case "STACK_GLOBAL":
                attribute, module = self.pop(), self.pop()
                self._name(f"{module} {attribute}")
            case _:
                self._join(name)

    def _join(self, name: str) -> None:
        """Do the opcodes that make one value of several."""
        match name:
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                count = int(name[-1])
                self.stack[-count:] = [tuple(self.stack[-count:])]
            case "TUPLE":
                self.stack.append(tuple(self._since_mark()))
            case "APPEND":
                self._extend([self.pop()])
            case "APPENDS":
                self._extend(self._since_mark())
            case "SETITEM":
                self._update([self.pop(), self.pop()][::-1])
            case "SETITEMS":
                self._update(self._since_mark())
            case "BINPERSID":
                self.stack.append(_storage(self.pop()))
            case "REDUCE":
                arguments = self.pop()
                self.stack.append(_rebuilt(self.pop(), arguments))
            case _:
                raise PickleRefused(f"its pickle uses {name}, which tensors do not need")

    def _since_mark(self) -> list[Any]:
        at = self.marks.pop()
        values = self.stack[at:]
        del self.stack[at:]
        return values

    def _name(self, name: str) -> None:
        if name not in NAMES:
            raise PickleRefused(f"its pickle asks for {name.replace(' ', '.')[:100]!r}, which is not a tensor")
        self.stack.append(Name(name))

    def _extend(self, values: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise PickleRefused("its pickle appends to something that is no list")
        self.stack[-1].extend(values)

    def _update(self, values: list[Any]) -> None:
        if type(self.stack[-1]) is not dict or not all(type(key) is str for key in values[::2]):
            raise PickleRefused("its pickle has a dictionary whose keys are no text")
        self.stack[-1].update(zip(values[::2], values[1::2], strict=True))


def _storage(reference: Any) -> Storage:
    kind, name, key, _, count = reference
    if kind != "storage" or not isinstance(name, Name) or not isinstance(key, str) or type(count) is not int:
        raise PickleRefused("its pickle refers to something that is no storage")
    return Storage(key, ELEMENTS[name.name.removeprefix("torch ")], count)


def _rebuilt(callee: Any, arguments: Any) -> Any:
    if callee == Name(ORDERED) and arguments == ():
        return {}
    if callee != Name(REBUILD):
        raise PickleRefused("its pickle calls something that makes no tensor")
    storage, offset, shape, strides = arguments[:4]
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, Storage) or not all(type(number) is int and number >= 0 for number in numbers):
        raise PickleRefused("its pickle has a tensor of impossible size")
    if len(shape) != len(strides) or len(shape) > 8:
        raise PickleRefused("its pickle has a tensor of impossible size")
    return TensorView(storage, offset, tuple(shape), tuple(strides))
