"""Perform steps: attempts, slots, timeouts, threads and processes."""
