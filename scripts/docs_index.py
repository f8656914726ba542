"""The list of documentation pages: those that are there, in the order in which they are of use."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs"
GROUPS: dict[str, dict[str, str]] = {
    "Use": {
        "getting-started.md": "from a run's folder to its hardest prompt, and to a file of rows",
        "cookbook.md": "what one asks while a policy is trained, answered on the demo",
        "pages.md": "the pages in Datasette, and what each can do",
        "export.md": "SFT rows, RL prompts and preference pairs",
        "retemplate.md": "exported rows with the prompts of another template",
        "cluster.md": "indexing with many processes or a cluster",
        "remote.md": "runs in object stores and on other hosts",
        "operations.md": "over SSH, on a shared host, behind a proxy; large runs, live runs, backup",
    },
    "Look up": {
        "schema.md": "every table and column, and why they are as they are",
        "commands.md": "the help of every command",
        "formats.md": "every system and layout, one by one",
        "tokens.md": "token shards, and the numbers beside each token",
        "mappings.md": "without code",
        "performance.md": "what has been measured, and how to measure again",
    },
    "Trust": {
        "security.md": "who may supply what, and what each can make us do",
        "faults.md": "full disks, killed processes and rewritten files",
        "fuzzing.md": "how every reader was fed nonsense, and for how long",
    },
    "Change": {
        "architecture.md": "why there are two boundaries, and where to add what",
        "writing-a-source.md": "a reader for files that no table describes",
        "releasing.md": "the first release and later ones",
    },
}


def contents(folder: Path = FOLDER) -> str:
    """Return a Markdown list of the pages of a folder; those that no group names come last, by their own titles."""
    here = {path.name for path in folder.glob("*.md")} - {"index.md"}
    known = {name for pages in GROUPS.values() for name in pages}
    groups = {**GROUPS, "More": dict.fromkeys(sorted(here - known), "")}
    text = ""
    for heading, pages in groups.items():
        lines = [_line(folder / name, says) for name, says in pages.items() if name in here]
        if lines:
            text += f"## {heading}\n\n" + "\n".join(lines) + "\n\n"
    return text


def _line(page: Path, says: str) -> str:
    title = page.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")
    return f"* [{title}]({page.name})" + (f": {says}" if says else "")
