"""Export SFT rows as a user of rltracer 0.1.0 does. Runs in that package's environment."""

from __future__ import annotations

import sys

from rltracer import DifficultyFilter, ExportPreferences, FieldFilter, TraceDataExporter, TraceRunSpec

run, output = sys.argv[1:]
preferences = ExportPreferences(
    difficulty=DifficultyFilter(min_pass_rate=0.05),
    field_filters=(FieldFilter("metrics.num_turns", maximum=8),),
    window_size=6,
    per_prompt=2,
)
TraceDataExporter([TraceRunSpec(run, name="M")], preferences).write_jsonl(output)
