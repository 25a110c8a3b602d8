"""Patches of goal runs: what a patch asks for, what follows from it, and how the run applies it."""
