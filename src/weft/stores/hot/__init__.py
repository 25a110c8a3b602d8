"""The hot store: plain hops of runs are committed to a write-ahead log in Redis, and drained into the durable store."""
