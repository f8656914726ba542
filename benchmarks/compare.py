"""Measure this project against rltracer 0.1.0, DuckDB and jq, and write the table of ratios.

    python -m benchmarks.compare --cache ~/.cache/rltracer-benchmarks

Makes the runs and the environments in the cache folder (about 4 GB) when they are not there, runs each operation
as whole processes that take turns, checks that both sides give the same answer, and writes results.json and
results.md. Needs only the standard library; exit code 1 when a demand is not met.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from benchmarks.comparison.bench import Bench
from benchmarks.comparison.environments import OURS
from benchmarks.comparison.operation import Operation
from benchmarks.comparison.operations import all_operations
from benchmarks.comparison.processes import Command, ProgramFailed, measure
from benchmarks.comparison.results import Result, document, markdown


def main() -> None:
    """Measure what was asked for."""
    options = arguments().parse_args()
    chosen = [one for one in all_operations() if re.search(options.only, one.name)]
    if left_out := [one.name for one in chosen if one.needs_tokenizer and not options.tokenizer]:
        print(f"Left out for want of --tokenizer: {', '.join(left_out)}", file=sys.stderr)
        chosen = [one for one in chosen if one.name not in left_out]
    if options.list:
        print("\n".join(one.name for one in chosen))
        return
    bench = Bench(options.cache.expanduser().absolute(), options.checkout, options.tokenizer)
    results = [measure_operation(bench, operation, options.repeats) for operation in chosen]
    about = document(results, bench, options.repeats)
    target = options.out or bench.folder
    target.mkdir(parents=True, exist_ok=True)
    table = markdown(results, about)
    (target / "results.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    (target / "results.md").write_text(table, encoding="utf-8")
    print(table)
    sys.exit(1 if any(result.misses for result in results) else 0)


def measure_operation(bench: Bench, operation: Operation, repeats: int) -> Result:
    """Run both sides of an operation in turn, so that a busy machine slows both."""
    result = Result(operation, peak_bar=operation.peak_bar(bench) if operation.peak_bar else None)
    try:
        ours, other = operation.ours(bench), operation.other(bench) if operation.other else None
        raw = bench.program(OURS, "raw_read", *operation.reads(bench)) if operation.reads else None
        for number in range(repeats):
            if other:
                result.other.append(measure(other, bench.home))
            result.ours.append(measure(ours, bench.home))
            if raw:
                result.raw += measure(Command(raw), bench.home).inside
            print(f"{operation.name}: {number + 1} of {repeats}", file=sys.stderr)
    except ProgramFailed as error:
        result.failure = str(error)
        print(error, file=sys.stderr)
    finally:
        if operation.after:
            operation.after(bench)
    return result


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--cache", type=Path, required=True, help="a folder for environments, runs and indexes")
    add("--out", type=Path, help="where results.json and results.md go (default: the cache folder)")
    add("--only", metavar="PATTERN", default="", help="only operations whose name matches this regular expression")
    add("--repeats", type=int, default=5, help="runs of each side (default 5)")
    add("--checkout", type=Path, default=Path(__file__).parents[1], help="the checkout to measure (default: this one)")
    add("--tokenizer", type=Path, help="a Qwen3 tokenizer.json, for token ids that decode to the texts")
    add("--list", action="store_true", help="print the operations and do nothing")
    return parser


if __name__ == "__main__":
    main()
