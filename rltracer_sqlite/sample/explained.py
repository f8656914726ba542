"""A function to write and to explain in three languages; a second agent, which is not trained, judges it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from .task import Draft, Task

SYSTEM = "You write short, correct Python and explain it to people who do not program."
PROMPT = (
    "Write a Python function `is_leap(year)` for the Gregorian calendar. Then explain its rule in one sentence each "
    "in German, Japanese and Arabic."
)
JUDGE_SYSTEM = (
    "You check answers. Try the function on the years given, then finish with a line `Score: 0` to `Score: 5`."
)
YEARS = (1900, 2000, 2023, 2024)


@dataclass(frozen=True)
class Rule:
    """A rule for leap years, right or wrong, as code and in words."""

    code: str
    holds: Callable[[int], bool]
    thought: str
    words: tuple[str, str, str]  # German, Japanese, Arabic


RIGHT = Rule(
    "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)",
    lambda year: year % 4 == 0 and (year % 100 != 0 or year % 400 == 0),
    "Every fourth year, but not the full centuries, except every fourth of those: 2000 yes, 1900 no.",
    (
        "Ein Jahr ist ein Schaltjahr, wenn es durch 4 teilbar ist; volle Jahrhunderte nur, wenn durch 400.",
        "4で割り切れる年はうるう年ですが、100で割り切れて400で割り切れない年は平年です。",
        "تكون السنة كبيسة إذا قبلت القسمة على 4، إلا إذا قبلت القسمة على 100 ولم تقبلها على 400.",
    ),
)
WRONG = (
    Rule(
        "year % 4 == 0",
        lambda year: year % 4 == 0,
        "A leap year comes every four years, so the remainder by 4 decides.",
        (
            "Ein Jahr ist ein Schaltjahr, wenn es durch 4 teilbar ist.",
            "4で割り切れる年はうるう年です。",
            "تكون السنة كبيسة إذا قبلت القسمة على 4.",
        ),
    ),
    Rule(
        "year % 4 == 0 and year % 100 != 0",
        lambda year: year % 4 == 0 and year % 100 != 0,
        "Every fourth year. Full centuries are left out, so I exclude what 100 divides.",
        (
            "Ein Jahr ist ein Schaltjahr, wenn es durch 4, aber nicht durch 100 teilbar ist.",
            "4で割り切れ、100で割り切れない年がうるう年です。",
            "تكون السنة كبيسة إذا قبلت القسمة على 4 ولم تقبل القسمة على 100.",
        ),
    ),
)


def attempt(draft: Draft, passed: bool, rng: Random) -> None:
    """Write the function and the three sentences; the score is the judge's."""
    rule = RIGHT if passed else rng.choice(WRONG)
    lines = ["def is_leap(year: int) -> bool:"]
    if rng.random() < 0.5:
        lines.append('    """Say whether a year of the Gregorian calendar has a 29 February."""')
    lines.append(f"    return {rule.code}")
    german, japanese, arabic = rule.words
    code = "\n".join(lines)
    draft.say(
        f"```python\n{code}\n```\n\n- **Deutsch:** {german}\n- **日本語:** {japanese}\n- **العربية:** {arabic}",
        rule.thought,
    )
    score = verdict(rule)[0]
    draft.score(passed, {"judge": (score / 5, 1.0), "format": (1.0, 0.1)})
    draft.metrics["judge_score"] = float(score)


def verdict(rule: Rule) -> tuple[int, str]:
    """Return the judge's score of a rule, out of 5, and its reasons."""
    tried = ", ".join(f"{year} → {rule.holds(year)}" for year in YEARS)
    faults = [year for year in YEARS if rule.holds(year) != RIGHT.holds(year)]
    if not faults:
        return 5, f"{tried}. All four are right, and the three sentences give the same rule.\nScore: 5"
    return 2, f"{tried}. {faults[0]} is wrong, and the sentences repeat the mistake.\nScore: 2"


def judge(solver: Draft) -> Draft:
    """Return what the judge says about a solver's answer."""
    answer = str(solver.nodes[-1]["message"]["content"])
    rule = next(rule for rule in (RIGHT, *WRONG) if f"return {rule.code}\n" in answer)
    score, reasons = verdict(rule)
    draft = Draft()
    draft.add({"role": "system", "content": JUDGE_SYSTEM})
    years = ", ".join(map(str, YEARS))
    draft.add({"role": "user", "content": f"The task was:\n{PROMPT}\n\nTry {years}. The answer:\n\n{answer}"})
    draft.say(reasons)
    draft.metrics = {"judge_score": float(score), "num_turns": 1.0}
    return draft


TRAIN = (Task("leap-years", "code-explained", "ExplainTask", 0, PROMPT, SYSTEM, RIGHT.code, attempt),)
