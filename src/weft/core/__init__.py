"""The pure core: how runs change state. No clock, no randomness, no I/O, no logging."""
