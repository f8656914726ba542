#!/usr/bin/env python3
"""Make a deterministic, realistic prime-rl run of any size.

    python -m benchmarks.gen_run OUT --format traces

With `--format`
    traces        rollouts/step_N/{train,eval}/{all,effective}/traces.jsonl, a Trace per line
    episodes      the same files with an Episode per line, nulls left out
    bin           rollouts/step_N/rank_R.bin, msgpack arrays of micro batches
    token_export  token_exports/step_N/rank_R.jsonl and STABLE

The same arguments always give the same bytes. A step samples its prompts without replacement, so every record of a
run has an id of its own. Token ids are real Qwen3 ids when --tokenizer names a tokenizer.json: those of a
trajectory decode to its chat text. Without one they are random. Needs numpy, orjson and msgspec, and tokenizers
with --tokenizer.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    yes_or_no = argparse.BooleanOptionalAction
    add("out", type=Path, help="the folder of the run")
    add("--format", choices=["traces", "episodes", "bin", "token_export"], default="traces")
    add("--steps", type=int, default=24)
    add("--prompts", type=int, default=32, help="prompts a step")
    add("--rollouts", type=int, default=8, help="rollouts of a prompt")
    add("--unique-prompts", type=int, default=0, help="distinct prompts (default: each is sampled in about 3 steps)")
    add("--turns", type=int, default=4, help="mean number of assistant turns")
    add("--tokens-per-turn", type=int, default=450, help="median of the sampled tokens of a turn")
    add("--prompt-tokens", type=int, default=220, help="median of the tokens of a prompt")
    add("--tokens", action=yes_or_no, default=True, help="write token arrays into the traces")
    add("--advantages", action=yes_or_no, default=True, help="write advantages for each token")
    add("--float-decimals", type=int, help="round floats of tokens (verifiers 0.4.0: 4; default: every digit)")
    add("--eval-every", type=int, default=8, help="an evaluation every N steps (0: none)")
    add("--effective", type=float, default=0.0, help="share of the clean rollouts that are copied to effective/")
    add("--agents", type=int, default=1, help="traces of an episode")
    add("--error-rate", type=float, default=0.03, help="share of the rollouts that fail")
    add("--envs", nargs="+", default=["math-env", "swe-env", "search-env"])
    add("--ranks", type=int, default=2, help="token shards of a step")
    add("--seq-len", type=int, default=16384, help="tokens of a micro batch")
    add("--tokenizer", metavar="PATH", help="a Qwen3 tokenizer.json")
    add("--seed", type=int, default=0)
    return parser


def main() -> None:
    """Write the run and print its size."""
    options = arguments().parse_args()
    if not __package__:  # run as a file, beside which alone Python looks then
        sys.path.insert(0, str(Path(__file__).parents[1]))
    from benchmarks.generator.rollouts import RolloutMaker

    maker = RolloutMaker(options)
    if options.format in ("traces", "episodes"):
        from benchmarks.generator.jsonl import write_jsonl as write
    elif options.format == "bin":
        from benchmarks.generator.token_shards import write_bins as write
    else:
        from benchmarks.generator.token_shards import write_token_exports as write
    print(write(maker, options.out))


if __name__ == "__main__":
    main()
