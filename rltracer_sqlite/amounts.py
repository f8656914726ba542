"""Numbers as people read them: so many things, sizes in bytes, ranges of steps, and lists that are not endless."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MOST_RANGES = 10
ONE_LINE = str.maketrans("\n\r\t", "␊␍␉")  # a name within a line
LIST_COLUMNS = 60
LONGEST_NAME = 60  # of a run or a split, in a sentence
HISSING = ("ch", "s", "x")

Range = tuple[int, int]  # the first and the last of steps that follow each other


def plural(count: int, what: str) -> str:
    """Return a number of things: '1 step', '1,000 steps', '2 trajectories', '3 branches'."""
    return f"{count:,} {what if count == 1 else several(what)}"


def some_of(count: int, there: int, what: str) -> str:
    """Return how many there are of something, and which part of them is meant: '8 prompts', '5 of the 8 prompts'."""
    return plural(there, what) if count == there else f"{count:,} of the {plural(there, what)}"


def several(what: str) -> str:
    """Return what more than one of something is called."""
    return what[:-1] + "ies" if what.endswith("y") else what + ("es" if what.endswith(HISSING) else "s")


def size(number: float) -> str:
    """Return a number of bytes for people, in powers of 1000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def exactly(number: float) -> str:
    """Return a number as short as it can be read back from: 1 and 0.5, and all digits of others."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def ranges(steps: Iterable[int]) -> str:
    """Return steps as people write them, such as 1–8, 10; of very many ranges the first and the last."""
    return ranges_in_words(in_ranges(steps))


def ranges_in_words(found: Sequence[Range]) -> str:
    """Return ranges of numbers as people write them, of very many the first and the last."""
    return ", ".join("…" if one is None else "–".join(dict.fromkeys(map(str, one))) for one in few(found))


def in_ranges(steps: Iterable[int]) -> list[Range]:
    """Return steps as ranges of those that follow each other."""
    found: list[Range] = []
    for step in sorted(steps):
        if found and step == found[-1][1] + 1:
            found[-1] = (found[-1][0], step)
        else:
            found.append((step, step))
    return found


def few(found: Sequence[Range]) -> list[Range | None]:
    """Return ranges, of very many the first and the last with None between them."""
    return [*found] if len(found) <= MOST_RANGES else [*found[: MOST_RANGES - 1], None, found[-1]]


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters: a longer one is cut off, which an ellipsis says."""
    return text if len(text) <= most else text[: most - 1] + "…"


def shortened_name(name: str, most: int) -> str:
    """Return a name of at most so many characters: a longer one lacks its middle, since many differ at their ends."""
    return name if len(name) <= most else name[: most // 3] + "…" + name[len(name) - (most - 1 - most // 3) :]


def listed(names: Iterable[str], columns: int = LIST_COLUMNS, more: int = 0) -> str:
    """Return names for a sentence, as many as take these columns, and how many more there are: 'a, b and 3 more'.

    `more` are those that are not among the names.
    """
    told = list(names)
    shown = told[:1]
    for name in told[1:]:
        if len(", ".join([*shown, name])) > columns:
            break
        shown.append(name)
    more += len(told) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
