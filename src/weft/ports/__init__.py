"""Protocols only: what the engine asks of the outside. Each has one contract suite and several implementations."""
