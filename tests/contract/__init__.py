"""The contract of a store: one suite, run against every store there is."""
