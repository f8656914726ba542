"""Fuzzing of everything that reads what others wrote: `python -m fuzz TARGET --seconds N`. See docs/fuzzing.md."""
