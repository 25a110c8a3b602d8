"""Protocols for everything the engine needs from outside. Each has a contract suite and several implementations."""
