"""Ownership of runs: claim them, load them into memory, reload and release them."""
