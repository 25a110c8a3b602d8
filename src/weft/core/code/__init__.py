"""Code runs: an async function whose operations are recorded by location and replayed in the order of the log."""
