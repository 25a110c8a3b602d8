"""The pure core: what happens to a run. No clock, no randomness, no I/O, no logging."""
