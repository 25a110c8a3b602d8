"""Protocols: what the engine needs from outside. Each has one contract suite and several implementations."""
