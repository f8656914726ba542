"""A small prime-rl run, made up but whole, to try everything on: `write_sample(folder)`."""

from __future__ import annotations

from .write import write_sample

__all__ = ["write_sample"]
