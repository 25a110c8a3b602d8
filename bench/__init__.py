"""Weft beside its peers, the raw store and a prototype floor, on the same workloads (``python -m bench.run``)."""
