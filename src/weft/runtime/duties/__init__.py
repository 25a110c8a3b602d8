"""The recurring background duties of a host: one file for each duty, and one scheduler for all."""
