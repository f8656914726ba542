"""Load exported files with Hugging Face `datasets`, and put each row through TRL's own checks and chat templating.

Run it in an environment of its own, which has no need of this package:

    pip install datasets trl zstandard
    python benchmarks/check_formats.py sft.jsonl rl.jsonl.gz pairs.parquet …

The kind of each file is told by its columns. It ends with an error at the first row that does not fit.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

# ChatML with tools and tool calls, much like that of Qwen; contents may be text or parts.
TEMPLATE = """
{%- if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}
{%- if part.type == "text" %}{{ part.text }}{% else %}<image>{% endif %}{% endfor %}{% endif %}
{%- for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}
"""


def tokenizer() -> Any:
    """Return a tokenizer of single characters; only its chat template is of interest."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"[UNK]": 0}, "[UNK]")))
    made.chat_template = TEMPLATE
    return made


def load(path: Path, cache: str) -> Any:
    """Return a file as `datasets` reads it."""
    from datasets import load_dataset

    kind = "parquet" if path.suffix == ".parquet" else "json"
    return load_dataset(kind, data_files=str(path), split="train", cache_dir=cache)


def check(path: Path, cache: str) -> str:
    """Return what was found in a file, in words. Raises AssertionError for a row that does not fit."""
    from trl.data_utils import apply_chat_template, is_conversational, maybe_extract_prompt

    rows, made, called, pictures = load(path, cache), tokenizer(), 0, 0
    assert len(rows), "no rows"
    for row in rows:
        columns = [name for name in ("messages", "prompt", "chosen", "rejected") if row.get(name) is not None]
        example = {name: [without_nulls(message) for message in row[name]] for name in columns}
        assert is_conversational(example), example
        called += any("tool_calls" in message for said in example.values() for message in said)
        pictures += any(isinstance(message["content"], list) for said in example.values() for message in said)
        tools = row.get("tools")
        tools = json.loads(tools) if isinstance(tools, str) else tools
        assert tools is None or all(tool["function"]["name"] for tool in tools)
        if "chosen" in example:
            assert set(maybe_extract_prompt(dict(example))) >= {"prompt", "chosen", "rejected"}
        rendered = apply_chat_template(example, made, tools=tools or None)
        assert all(isinstance(text, str) and text for text in rendered.values())
    return f"{len(rows):,} rows of {', '.join(rows.column_names)}; {called:,} with tool calls, {pictures:,} with parts"


def without_nulls(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without the nulls that Arrow puts where a key is missing in this row and not in another."""
    parts = message.get("content")
    kept = {key: value for key, value in message.items() if value is not None}
    if isinstance(parts, list):
        kept["content"] = [{key: value for key, value in part.items() if value is not None} for part in parts]
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        for file in asked.files:
            print(f"{file}: {check(file, cache)}")


if __name__ == "__main__":
    main()
