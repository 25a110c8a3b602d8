"""The peers, each driven in an environment of its own under ``build/bench-peers``."""
