"""The hot path: a write-ahead log in Redis before the durable store."""
