"""A deterministic, realistic prime-rl run of any size, for benchmarks."""
