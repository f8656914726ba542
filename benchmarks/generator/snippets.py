"""Short texts of six kinds, of which prompts, answers and tool results are put together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from numpy.random import Generator

HERE = Path(__file__).parent
WORDS = (HERE / "words.txt").read_text(encoding="utf-8").split()
IDENTIFIERS = (HERE / "identifiers.txt").read_text(encoding="utf-8").split()
FOREIGN = [
    "解析这个问题需要先确定边界条件，然后逐步归纳。",
    "函数返回值应当为一个整数列表；注意空输入。",
    "データベースの接続がタイムアウトしました。再試行してください。",
    "Проверьте, что индекс не выходит за границы массива.",
    "La fonction renvoie « vrai » si l’entrée est valide — sinon, une erreur.",
    "يجب أن يكون الناتج عددًا صحيحًا موجبًا.",
    "ผลลัพธ์ไม่ถูกต้อง ลองใหม่อีกครั้ง",
    "🚀 build passed ✅ 12/12 tests 🎉",
    "αβγ ∑_{i=1}^{n} xᵢ² ≤ ∫₀^∞ e^{-t} dt ≈ 1.0 ± 0.02",
    "naïve café coöperate façade — “quoted” text… ½ ¾ №42",
    "한국어 문장도 포함되어야 합니다. 결과를 확인하세요.",
    "😀👩‍💻🧪 edge-case: zero-width\u200bjoiner and \u00a0nbsp",
]


def sentence(rng: Generator) -> str:
    """Return 6 to 23 words, the common ones often, with a capital and a mark at the end."""
    ranks = rng.zipf(1.25, int(rng.integers(6, 24))) * 3 % len(WORDS)
    words = [WORDS[min(rank, len(WORDS) - 1)] for rank in ranks]
    return " ".join(words).capitalize() + rng.choice([".", ".", ".", ";", "?", ":"])


def prose(rng: Generator) -> str:
    """Return a paragraph."""
    return " ".join(sentence(rng) for _ in range(int(rng.integers(2, 7)))) + "\n\n"


def mathematics(rng: Generator) -> str:
    """Return a paragraph with LaTeX, whose backslashes JSON has to escape."""
    a, b, c, d = (int(value) for value in rng.integers(2, 999, 4))
    return (
        f"Let $x_{{{a % 9}}} = \\frac{{{a}}}{{{b}}}$ and $y = \\sqrt{{{c}}}$. "
        f"Then $x^2 + y^2 = {a * a / (b * b) + c:.6f}$, so \\[ \\sum_{{k=1}}^{{{d}}} k = {d * (d + 1) // 2} \\]\n"
        f"Hence {a}*{b}+{c} = {a * b + c}. {sentence(rng)}\n\n"
    )


def code(rng: Generator) -> str:
    """Return a fenced Python function with quotes, braces and escapes."""
    name, a, b, c = (IDENTIFIERS[int(place)] for place in rng.integers(0, len(IDENTIFIERS), 4))
    n = int(rng.integers(1, 99))
    return (
        f'```python\ndef {name}_{n}({a}: list[int], {b}: str = "{c}\\t") -> dict[str, int]:\n'
        f'    """{sentence(rng)}"""\n    out = {{}}\n    for i, v in enumerate({a}):\n'
        f"        if v % {n} == 0 and v != '\\n':\n"
        f'            out[f"{{{b}}}-{{i}}"] = out.get({b}, 0) + v * {n}\n'
        f"        # {sentence(rng)}\n    return out\n```\n"
    )


def foreign(rng: Generator) -> str:
    """Return a line of other scripts, emoji and signs."""
    return " ".join(FOREIGN[int(place)] for place in rng.integers(0, len(FOREIGN), int(rng.integers(1, 4)))) + "\n"


def json_result(rng: Generator) -> str:
    """Return what a search tool answers: JSON inside a JSON string, compact or indented."""
    rows = [
        {
            "id": f"doc-{int(rng.integers(1e6))}",
            "score": round(float(rng.random()), 6),
            "snippet": sentence(rng),
            "ok": bool(rng.random() < 0.7),
            "meta": {"lang": "en", "n": None},
        }
        for _ in range(int(rng.integers(1, 6)))
    ]
    answer = {"results": rows, "took_ms": int(rng.integers(1, 900))}
    return json.dumps(answer, indent=None if rng.random() < 0.6 else 2, ensure_ascii=bool(rng.random() < 0.5)) + "\n"


def log(rng: Generator) -> str:
    """Return a few lines of a server's log."""
    return "".join(_log_line(rng) for _ in range(int(rng.integers(2, 7))))


def _log_line(rng: Generator) -> str:
    day, hour, minute = int(rng.integers(1, 29)), int(rng.integers(24)), int(rng.integers(60))
    return (
        f"2026-08-{day:02d}T{hour:02d}:{minute:02d}:11.{int(rng.integers(1000)):03d}Z "
        f"{rng.choice(['INFO', 'WARN', 'ERROR'])} [worker-{int(rng.integers(16))}] {sentence(rng)}"
        f"\tpath=/srv/app/{rng.choice(IDENTIFIERS)}/{rng.choice(IDENTIFIERS)}.py:{int(rng.integers(900))}\n"
    )


KINDS: dict[str, Callable[[Generator], str]] = {
    "prose": prose,
    "math": mathematics,
    "code": code,
    "uni": foreign,
    "json": json_result,
    "log": log,
}
# What a part of a conversation is made of, and how often.
MIXTURES = {
    "prompt": (["prose", "math", "code", "uni"], [0.55, 0.25, 0.15, 0.05]),
    "reason": (["prose", "math", "code", "uni"], [0.5, 0.25, 0.2, 0.05]),
    "answer": (["prose", "code", "math", "uni"], [0.45, 0.3, 0.2, 0.05]),
    "tool": (["json", "log", "code", "uni"], [0.45, 0.4, 0.1, 0.05]),
}
