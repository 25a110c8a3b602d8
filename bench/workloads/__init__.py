"""The systems that live in Weft's own environment: Weft itself, the raw store and the prototype floor."""
