"""Patches of graph runs: what a changed graph means for the tokens of a run. Pure."""
